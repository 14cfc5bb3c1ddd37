"""The formats of job logs that can be read, and reading a log whatever its format."""

from __future__ import annotations

import os

from walltime.errors import LogError
from walltime.logs.input import LogFile
from walltime.logs.joblog import JobLog, LogFormat, Partial, Rule, TooWide
from walltime.logs.places import find_log
from walltime.logs.rules import RULES
from walltime.logs.swf import SWF
from walltime.workload import Workload

FORMATS: list[LogFormat] = [
    SWF,
]
"""Every format, in the order in which they are tried."""
_SHOWN = 60


def read_log(path: str | os.PathLike[str], *, skip_bad_lines: bool = False) -> JobLog:
    """Read a job log as it stands, in whichever of the known formats it is, plain or gzip.

    `path`: a file, or the name of a log of the catalogue that is on this machine, such as `KTH-SP2`. The format is told by the
    content, else by the ending of the file's name. `skip_bad_lines` leaves out the lines that are no record and lists them in
    `bad_lines`.

    Raises LogError, in one line, for a file that cannot be read or has a bad line, and for a format that is not known.
    """
    file = LogFile(find_log(path))
    return format_of(file).read(file, skip_bad_lines)


def read(
    path: str | os.PathLike[str],
    *,
    procs: int | None = None,
    skip_bad_lines: bool = False,
    partial: Partial = "summary",
    too_wide: TooWide = "drop",
    requested_first: bool = False,
) -> Workload:
    """Read the jobs of a log: `read_log`, then `JobLog.to_workload`, with their options.

    `path`: a file, or the name of a log of the catalogue that is on this machine, such as `KTH-SP2`. `procs`: processors of the
    machine, where the log's header does not say it, or something else. Raises LogError where the file is not a log, WorkloadError
    where its jobs cannot be simulated.
    """
    log = read_log(path, skip_bad_lines=skip_bad_lines)
    return log.to_workload(procs=procs, partial=partial, too_wide=too_wide, requested_first=requested_first)


def format_of(file: LogFile) -> LogFormat:
    """The format of a file: one that recognises the content, of several the one with the file's ending, else by the ending alone.

    Raises LogError, naming the known formats, if there is none.
    """
    name = file.path.lower().removesuffix(".gz")
    by_name = [known for known in FORMATS if name.endswith(known.endings)]
    by_content = [known for known in FORMATS if known.recognises(file.head)]
    for found in ([known for known in by_content if known in by_name], by_content, by_name):
        if found:
            return found[0]
    first = next((line for line in file.head.split(b"\n") if line.strip()), b"").decode(errors="replace").strip()
    shown = first if len(first) <= _SHOWN else f"{first[: _SHOWN - 3]}..."
    known = ", ".join(f"{known.title} ({', '.join(known.endings)})" for known in FORMATS)
    raise LogError(f"{file.where}:1: no known format of job logs (the file begins with {shown!r}); known are {known}")


def all_rules() -> tuple[Rule, ...]:
    """The rules for every log, then those of the formats."""
    return (*RULES, *(rule for known in FORMATS for rule in known.rules))
