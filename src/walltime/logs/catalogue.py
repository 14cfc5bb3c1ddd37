"""The logs of the Parallel Workloads Archive that the papers and this project use, and the mappings shipped with this program."""

import os
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from walltime.declared import nearest, valid_options
from walltime.errors import LogError, PolicyError
from walltime.logs.input import path_of
from walltime.logs.mapping import MAPPING_FILE, TableMapping, plain_title
from walltime.wording import printable

ARCHIVE = "https://www.cs.huji.ac.il/labs/parallel/workload"
"""Address of the Parallel Workloads Archive."""

ACKNOWLEDGE = (
    "Logs belong to the sites that recorded them and must not be redistributed. If you publish results with one, please "
    "acknowledge the archive and the source of the log."
)


@dataclass(frozen=True)
class CatalogueEntry:
    """A log: its short name, its newest recommended file, the processors of its machine, and its use in the papers."""

    name: str
    file: str
    folder: str
    procs: int
    used: str
    sha256: str | None = None
    """Checksum of the file in the archive; if None (unknown), the checksum of the first download is recorded."""

    def address(self, archive: str = ARCHIVE) -> str:
        """Return the address of the file."""
        return f"{archive.rstrip('/')}/{self.folder}/{self.file}"


_LOGS = (
    ("KTH-SP2", "KTH-SP2-1996-2.1-cln.swf.gz", "l_kth_sp2", 100, "feitelson98, mualem01, tsafrir06: 28,490 jobs on 100 processors"),
    ("KTH-SP2-raw", "KTH-SP2-1996-2.swf.gz", "l_kth_sp2", 100, "feitelson98, mualem01, tsafrir06: with the first 14 jobs"),
    ("CTC-SP2", "CTC-SP2-1996-3.1-cln.swf.gz", "l_ctc_sp2", 338, "mualem01: 79,296 jobs, tsafrir06: 77,222; both with --procs 512"),
    ("SDSC-SP2", "SDSC-SP2-1998-4.2-cln.swf.gz", "l_sdsc_sp2", 128, "tsafrir06: 59,725 jobs on 128 processors"),
    ("SDSC-SP2-raw", "SDSC-SP2-1998-4.swf.gz", "l_sdsc_sp2", 128, "mualem01: 67,665 jobs on 128 processors, flurries included"),
    ("SDSC-BLUE", "SDSC-BLUE-2000-4.2-cln.swf.gz", "l_sdsc_blue", 1152, "tsafrir06: 243,314 jobs on 1,152 processors"),
    ("SDSC-Par95", "SDSC-Par-1995-3.1-cln.swf.gz", "l_sdsc_par", 416, "mualem01: with 1996, on 416 processors"),
    ("SDSC-Par96", "SDSC-Par-1996-3.1-cln.swf.gz", "l_sdsc_par", 416, "mualem01: with 1995, on 416 processors"),
    ("LANL-CM5", "LANL-CM5-1994-4.1-cln.swf.gz", "l_lanl_cm5", 1024, "mualem01: 201,387 jobs before cleaning, exact estimates"),
    ("ANL-Intrepid", "ANL-Intrepid-2009-1.swf.gz", "l_anl_int", 163_840, "tang13: its months January to September 2009"),
    ("HPC2N", "HPC2N-2002-2.2-cln.swf.gz", "l_hpc2n", 240, "none of the papers"),
    ("CEA-Curie", "CEA-Curie-2011-2.1-cln.swf.gz", "l_cea_curie", 93_312, "none of the papers"),
    ("UniLu-Gaia", "UniLu-Gaia-2014-2.swf.gz", "l_unilu_gaia", 2004, "none of the papers"),
)
CATALOGUE = tuple(CatalogueEntry(*row) for row in _LOGS)
"""The logs: recommended files under their plain names, uncleaned logs with the suffix `-raw`."""


def catalogue_entry(name: str) -> CatalogueEntry:
    """Return the entry with this name or file; raises PolicyError, which lists the valid names.

    >>> catalogue_entry("kth-sp2").procs
    100
    """
    for entry in CATALOGUE:
        if name.lower() in (entry.name.lower(), entry.file.lower()):
            return entry
    raise PolicyError(f"no log {name!r} in the catalogue{valid_options(name, [entry.name for entry in CATALOGUE])}", "unknown_log")


def log_folder() -> Path:
    """Return the folder of downloaded logs: `WALLTIME_LOGS`, or else a folder in the user's cache."""
    folder = os.environ.get("WALLTIME_LOGS")
    if folder:
        return Path(folder)
    import pooch

    return Path(pooch.os_cache("walltime")) / "logs"


def find_log(log: str | os.PathLike[str]) -> Path:
    """Return the file at a path, or the file of a catalogue log that is on this machine.

    A file of that name takes precedence over the catalogue, whose logs are searched for in the download folder and in `WALLTIME_TRACES`.
    Raises LogError for a log of the catalogue that is not on this machine, and for anything that is not a path.
    """
    name = path_of(log)
    path = Path(name)
    known = {known for entry in CATALOGUE for known in (entry.name.lower(), entry.file.lower())}
    with suppress(OSError, ValueError):  # too long, or with a null character
        if path.exists():
            return path
    if name.lower() not in known:
        question = "" if path.suffix else nearest(name, [entry.name for entry in CATALOGUE])
        if question:
            raise LogError(f"{printable(name)}: no such file; check its name{question}", "missing_file")
        return path
    entry = catalogue_entry(name)
    traces = os.environ.get("WALLTIME_TRACES")
    for folder in [log_folder(), *([Path(traces)] if traces else [])]:
        if (folder / entry.file).is_file():
            return folder / entry.file
    raise LogError(f"{entry.name} has not been downloaded yet; run: walltime fetch {entry.name}", "missing_download")


@cache
def shipped() -> Mapping[str, TableMapping]:
    """Return the shipped mappings by name, such as `f-data`; each describes its data set in `about`."""
    folder = files("walltime.logs") / "mappings"
    texts = {file.name.removesuffix(".toml"): file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".toml")}
    return {name: MAPPING_FILE.value(MAPPING_FILE.content(texts[name], name), name) for name in sorted(texts)}


def known_by_titles(titles: Collection[str]) -> tuple[str, TableMapping] | None:
    """Return the shipped mapping that recognises a table by its titles, and its name; the one with most marks, None if none does."""
    plain = {plain_title(title) for title in titles}
    marks = {name: mapping.about.marks for name, mapping in shipped().items() if mapping.about is not None and mapping.about.marks}
    fitting = [(len(marks[name]), name) for name in marks if {plain_title(mark) for mark in marks[name]} <= plain]
    for _, name in sorted(fitting, reverse=True):
        with suppress(LogError):  # an essential column is missing
            return name, replace(shipped()[name], titles=()).restricted(titles)
    return None


def known_by_lines(head: bytes) -> tuple[str, TableMapping] | None:
    """Return the shipped mapping that recognises a file without titles by its first bytes, and its name; None if none does."""
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
            plain = [line.replace(sign, mapping.delimiter) for line in records[:20]]
            if plain and all(pattern.match(line) for line in plain):
                return name, replace(mapping, delimiter=sign)
    return None
