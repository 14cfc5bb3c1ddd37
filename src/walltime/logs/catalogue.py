"""The logs of the Parallel Workloads Archive that the papers and this project use, and where to get them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from walltime.errors import LogError, PolicyError
from walltime.logs.input import path_of
from walltime.logs.mapping import MAPPING_FILE, TableMapping, plain_title

ARCHIVE = "https://www.cs.huji.ac.il/labs/parallel/workload"
"""Address of the Parallel Workloads Archive."""

ACKNOWLEDGE = (
    "Logs belong to the sites that recorded them, and must not be redistributed. If you publish results with one, please "
    "acknowledge the archive and the source of the log."
)


@dataclass(frozen=True)
class CatalogueEntry:
    """One log: its short name, its newest recommended file, its machine, and how the papers used it."""

    name: str
    file: str
    folder: str
    procs: int
    used: str
    sha256: str | None = None
    """of the file as stored by the archive; if None (unknown), that of the first download is recorded"""

    def address(self, archive: str = ARCHIVE) -> str:
        """The address of the file."""
        return f"{archive.rstrip('/')}/{self.folder}/{self.file}"


CATALOGUE = (
    CatalogueEntry(
        "KTH-SP2", "KTH-SP2-1996-2.1-cln.swf.gz", "l_kth_sp2", 100, "feitelson98, mualem01, tsafrir06: 28,490 jobs on 100 processors"
    ),
    CatalogueEntry(
        "KTH-SP2-raw",
        "KTH-SP2-1996-2.swf.gz",
        "l_kth_sp2",
        100,
        "feitelson98, mualem01, tsafrir06: the log before its first 14 jobs were removed",
    ),
    CatalogueEntry(
        "CTC-SP2",
        "CTC-SP2-1996-3.1-cln.swf.gz",
        "l_ctc_sp2",
        338,
        "mualem01: 79,296 jobs, tsafrir06: 77,222; both on 512 processors (use --procs 512)",
    ),
    CatalogueEntry("SDSC-SP2", "SDSC-SP2-1998-4.2-cln.swf.gz", "l_sdsc_sp2", 128, "tsafrir06: 59,725 jobs on 128 processors"),
    CatalogueEntry(
        "SDSC-SP2-raw", "SDSC-SP2-1998-4.swf.gz", "l_sdsc_sp2", 128, "mualem01: 67,665 jobs on 128 processors, flurries included"
    ),
    CatalogueEntry("SDSC-BLUE", "SDSC-BLUE-2000-4.2-cln.swf.gz", "l_sdsc_blue", 1152, "tsafrir06: 243,314 jobs on 1,152 processors"),
    CatalogueEntry("SDSC-Par95", "SDSC-Par-1995-3.1-cln.swf.gz", "l_sdsc_par", 416, "mualem01: with 1996, on 416 processors"),
    CatalogueEntry("SDSC-Par96", "SDSC-Par-1996-3.1-cln.swf.gz", "l_sdsc_par", 416, "mualem01: with 1995, on 416 processors"),
    CatalogueEntry(
        "LANL-CM5", "LANL-CM5-1994-4.1-cln.swf.gz", "l_lanl_cm5", 1024, "mualem01: 201,387 jobs before cleaning, exact estimates"
    ),
    CatalogueEntry("ANL-Intrepid", "ANL-Intrepid-2009-1.swf.gz", "l_anl_int", 163_840, "tang13: its months January to September 2009"),
    CatalogueEntry("HPC2N", "HPC2N-2002-2.2-cln.swf.gz", "l_hpc2n", 240, "no paper here"),
    CatalogueEntry("CEA-Curie", "CEA-Curie-2011-2.1-cln.swf.gz", "l_cea_curie", 93_312, "no paper here"),
    CatalogueEntry("UniLu-Gaia", "UniLu-Gaia-2014-2.swf.gz", "l_unilu_gaia", 2004, "no paper here"),
)
"""Newest recommended files first under their plain names; `-raw` is the uncleaned log. The machine size is that of the header."""


def catalogue_entry(name: str) -> CatalogueEntry:
    """The entry with this name or file; raises PolicyError listing the known ones.

    >>> catalogue_entry("kth-sp2").procs
    100
    """
    for entry in CATALOGUE:
        if name.lower() in (entry.name.lower(), entry.file.lower()):
            return entry
    raise PolicyError(f"no log {name!r} in the catalogue; known are {', '.join(entry.name for entry in CATALOGUE)}", "unknown_log")


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
    raise LogError(f"{entry.name} is not on this machine yet; get it with: walltime fetch {entry.name}", "missing_download")


_LINES = 20


@cache
def shipped() -> Mapping[str, TableMapping]:
    """The mappings by name, such as `f-data`; each has `about`."""
    folder = files("walltime.logs") / "mappings"
    texts = {file.name.removesuffix(".toml"): file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".toml")}
    return {name: MAPPING_FILE.value(MAPPING_FILE.content(texts[name], name), name) for name in sorted(texts)}


def known_by_titles(titles: Collection[str]) -> tuple[str, TableMapping] | None:
    """The shipped mapping of a table with these titles: the one with most marks, all of which are there; None if there is none."""
    fitting = []
    there = {plain_title(title) for title in titles}
    for name, mapping in shipped().items():
        marks = mapping.about.marks if mapping.about is not None else ()
        if marks and {plain_title(mark) for mark in marks} <= there:
            fitting.append((len(marks), name))
    for _, name in sorted(fitting, reverse=True):
        try:
            return name, replace(shipped()[name], titles=()).restricted(titles)
        except LogError:  # what is needed is not there
            continue
    return None


def known_by_lines(head: bytes) -> tuple[str, TableMapping] | None:
    """The shipped mapping of a file without a heading that begins so; None if there is none."""
    head = head.removeprefix(b"\xef\xbb\xbf")
    lines = head[: 1 << 16].decode("utf-8", errors="replace").splitlines()[:-1] or [head[:4096].decode("utf-8", errors="replace")]
    for name, mapping in shipped().items():
        if mapping.about is None or mapping.about.line is None:
            continue
        pattern = re.compile(mapping.about.line)
        records = [
            line.replace('"', "") for line in lines if line.strip() and not (mapping.comment and line.lstrip().startswith(mapping.comment))
        ]
        for sign in dict.fromkeys((mapping.delimiter, ",", ";", "|")):
            plain = [line.replace(sign, mapping.delimiter) for line in records[:_LINES]]
            if plain and all(pattern.match(line) for line in plain):
                return name, replace(mapping, delimiter=sign)
    return None
