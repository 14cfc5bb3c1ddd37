"""Real logs for tests: looked for in the folder that WALLTIME_TRACES names, else in ../shared/traces beside the checkout."""

import os
from pathlib import Path

import pytest

_FALLBACK = Path(__file__).resolve().parents[2] / "shared" / "traces"


def trace_folder() -> Path:
    """The folder in which logs are looked for; it need not exist."""
    return Path(os.environ.get("WALLTIME_TRACES") or _FALLBACK)


def trace_names() -> list[str]:
    """File names of the logs in the folder; none where there is no folder."""
    return sorted(path.name for path in trace_folder().glob("*.swf*"))


def trace_path(name: str) -> Path:
    """Path of a log, by its file name or by that without `.swf.gz`; skips the test where it is missing."""
    for ending in ("", ".swf.gz", ".swf"):
        path = trace_folder() / (name + ending)
        if path.is_file():
            return path
    pytest.skip(f"log {name} is not in {trace_folder()}; set WALLTIME_TRACES to a folder that has it")


def published_folder() -> Path:
    """The folder in which other groups' published results are looked for; it need not exist."""
    return Path(os.environ.get("WALLTIME_PUBLISHED") or _FALLBACK.with_name("published"))


def published_path(name: str) -> Path:
    """Path of a published result, relative to the folder; skips the test where it is missing."""
    path = published_folder() / name
    if path.is_file():
        return path
    pytest.skip(f"{name} is not in {published_folder()}; set WALLTIME_PUBLISHED to a folder that has it")


def field_path(name: str) -> Path:
    """Path of a file of another program, relative to the folder that WALLTIME_FIELD names; skips the test where it is missing."""
    folder = Path(os.environ.get("WALLTIME_FIELD") or _FALLBACK.with_name("field"))
    if (folder / name).is_file():
        return folder / name
    pytest.skip(f"{name} is not in {folder}; set WALLTIME_FIELD to a folder that has it")
