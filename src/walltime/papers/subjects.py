"""The input of an item: the paper's log if available, any other log, or a generated workload of the log's size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from walltime.errors import PolicyError
from walltime.estimates import Tsafrir05, largest_estimate
from walltime.logs import read, write_swf
from walltime.logs.catalogue import find_log, log_folder
from walltime.papers.printed import Printed
from walltime.workload import Workload
from walltime.workload.models.lublin99 import Lublin99

PAPER, OTHER, GENERATED = "paper", "other", "generated"
USERS, USERS_IN_GROUP = 200, 3
"""Number of users of a generated workload, and number of users per group."""
ABOUT_GENERATED = "no log: generated with the paper's number of jobs, machine, load and largest estimate"
GENERATED_START = 851_990_400
"""A generated workload starts on 31 December 1996, so that it has calendar months."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A workload on which items are run, as a file."""

    name: str
    """such as KTH for a paper's log or its substitute; the file's name for another log"""
    kind: str
    """`paper`: the paper's log in some version; `other`: any other log; `generated`: a workload of the log's size"""
    file: Path
    about: str
    """description of the file"""
    facts: Mapping[str, Any]
    """the paper's description of the log: machine, jobs, load, largest estimate"""

    @property
    def procs(self) -> int | None:
        """Return the processors of the machine in the paper, None for the log's own."""
        return self.facts.get("procs")

    @cached_property
    def workload(self) -> Workload:
        """Return the workload, on the paper's machine."""
        return read(self.file, procs=self.procs)

    @property
    def estimates(self) -> str:
        """Return the estimates that the paper used as the original ones."""
        return str(self.facts.get("estimates", "user"))

    @property
    def emax(self) -> int:
        """Return the largest estimate in seconds, which is the site's limit."""
        return int(self.facts.get("emax") or largest_estimate(self.workload.requested))

    @property
    def has_estimates(self) -> bool:
        """Return whether the log has user estimates, other than the runtimes, and the paper uses them."""
        w = self.workload
        return self.estimates == "user" and not np.array_equal(w.requested, np.maximum(w.runtime, 1))

    def has_column(self, name: str) -> bool:
        """Return whether the log records this column, such as `user`, for some job."""
        column = self.workload.columns.get(name)
        return column is not None and bool((column >= 0).any())

    @property
    def label(self) -> str:
        """Return the name and the file, for titles."""
        if self.kind == GENERATED:
            return self.name
        return f"{self.name} ({self.log})" if self.kind == PAPER else self.log

    @property
    def unix_start_time(self) -> int | None:
        """Return the start of the log in seconds since 1970, None if it is not recorded."""
        return self.workload.origin.unix_start_time

    @property
    def log(self) -> str:
        """Return the file's name without its extensions."""
        return _stem(self.file)


def _stem(file: Path) -> str:
    return file.name.removesuffix(".gz").removesuffix(".swf")


def find_subjects(
    given: Printed,
    *,
    only: Sequence[str] = (),
    folders: Sequence[Path] = (),
    traces: Sequence[Path] = (),
    made: Path,
    generated: bool = False,
) -> list[Subject]:
    """Return the subjects of a paper: other logs if `traces` names some, else one for each of the paper's logs.

    `only`: the names of the logs to keep, by default all. `folders`: where to look for the logs, by default where `walltime
    fetch` puts them. A missing log is replaced by a generated workload of its size, written into the folder `made`; `generated`
    replaces all of them. Raises PolicyError for a name that is not in the paper.
    """
    if traces:
        return [Subject(_stem(file), OTHER, file, "not a log of the paper", {}) for file in map(find_log, traces)]
    wanted = {name.upper() for name in only}
    unknown = [name for name in only if name.upper() not in {log.upper() for log in given.logs}]
    if unknown:
        raise PolicyError(
            f"unknown log {unknown[0]!r} of {given.paper}. Valid logs: {', '.join(given.logs)}; use traces=[LOG] for another log",
            "unknown_log",
        )
    chosen = [name for name in given.logs if not only or name.upper() in wanted]
    subjects = [_subject(name, given.logs[name], folders or [log_folder()], made, generated) for name in chosen]
    return [subject for subject in subjects if subject is not None]


def _subject(name: str, facts: Mapping[str, Any], folders: Sequence[Path], made: Path, generated: bool) -> Subject | None:
    """Return the log or its replacement; None if the log is only a substitute for the paper's log and is not available."""
    substitute = bool(facts.get("substitute"))
    for pattern, about in [] if generated else facts["files"]:
        files = [file for folder in folders for file in sorted(folder.glob("*.swf*")) if fnmatch(file.name, pattern)]
        if files:
            return Subject(name, OTHER if substitute else PAPER, files[0], about, facts)
    if substitute:
        return None
    file = made / f"generated-{name}.swf.gz"
    if not file.is_file():
        _generate(facts, file)
    return Subject(f"{name} (generated)", GENERATED, file, ABOUT_GENERATED, facts)


def _generate(facts: Mapping[str, Any], file: Path) -> None:
    """Write lublin99 jobs with tsafrir05 estimates, with the log's number of jobs, machine and load."""
    emax = int(facts["emax"])
    jobs = Lublin99().generate(int(facts["jobs"]), int(facts["procs"]), float(facts["load"]), seed=0)
    shares = np.cumsum(1 / np.arange(1, int(facts.get("users", USERS)) + 1))  # the k-th user's share is proportional to 1 / k
    user = 1 + np.searchsorted(shares / shares[-1], np.random.Generator(np.random.Philox(7)).random(len(jobs))).astype(np.int64)
    columns = {"user": user, "group": 1 + user // USERS_IN_GROUP}
    runtime = np.minimum(jobs.runtime, emax)
    cut = Workload.from_arrays(submit=jobs.submit, runtime=runtime, procs=jobs.procs, machine_procs=jobs.machine_procs, columns=columns)
    planned = Tsafrir05(emax=emax).draw(cut, 0)
    whole = replace(cut.with_planned(planned), requested=planned)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_swf(file, whole, extra_header=[f"; UnixStartTime: {GENERATED_START}", "; TimeZoneString: UTC"])
