"""Where logs are stored on this machine, and which file a name refers to."""

from __future__ import annotations

import os
from pathlib import Path

from walltime.errors import LogError
from walltime.logs.catalogue import CATALOGUE, catalogue_entry
from walltime.logs.input import path_of


def log_folder() -> Path:
    """Where downloaded logs are kept: `WALLTIME_LOGS`, else the per-user cache folder."""
    own = os.environ.get("WALLTIME_LOGS")
    if own:
        return Path(own)
    import pooch

    return Path(pooch.os_cache("walltime")) / "logs"


def log_folders() -> list[Path]:
    """Where logs of the catalogue are searched: the download folder, then the folder `WALLTIME_TRACES`, if set."""
    traces = os.environ.get("WALLTIME_TRACES")
    return [log_folder(), *([Path(traces)] if traces else [])]


def find_log(trace: str | os.PathLike[str]) -> Path:
    """The file that a name refers to: a path, or the name of a log of the catalogue that is on this machine.

    A file of that name takes precedence over the catalogue. Raises LogError for a catalogue log that is not on this machine,
    and for anything that is not a path.
    """
    name = path_of(trace)
    path = Path(name)
    known = {known for entry in CATALOGUE for known in (entry.name.lower(), entry.file.lower())}
    if name.lower() not in known or path.exists():
        return path
    entry = catalogue_entry(name)
    for folder in log_folders():
        if (folder / entry.file).is_file():
            return folder / entry.file
    raise LogError(f"{entry.name} is not on this machine yet; get it with: walltime fetch {entry.name}")
