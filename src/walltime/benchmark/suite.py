"""Suites: windows of jobs, metrics and statistics that are fixed for each version; the data are in suites/*.toml."""

import hashlib
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Annotated

from walltime.declared import Field
from walltime.errors import PolicyError, WorkloadError
from walltime.estimates import parse_estimates
from walltime.logs import read
from walltime.simulation.windows import DAY, LogWindow, check_cost, windows
from walltime.toml_file import TomlFile
from walltime.workload.models import parse_model
from walltime.workload.resampling import with_users

SUITES = ("classic", "archive", "overload", "estimates")
Count = Annotated[int, Field(least=0)]


@dataclass(frozen=True)
class Subject:
    """Jobs of a suite: windows of a log, or workloads of a model, one for each seed."""

    name: str
    checksums: Annotated[tuple[str, ...], Field("windows")] = ()
    """checksums of each window's jobs; written by tools/freeze_suites.py"""
    log: str | None = None
    """a log of the catalogue"""
    days: Count = 30
    """length of a log's windows"""
    warm_days: Count = 7
    """days before and after a log's window, whose jobs run but are not measured"""
    model: str | None = None
    """a model, instead of a log"""
    jobs: Count = 3000
    """number of a model's jobs"""
    load: float = 1.0
    """offered load of a model's jobs"""
    first_seed: Count = 1
    seeds: Annotated[int, Field(least=1)] = 5
    """number of seeds, starting with the first one"""
    warm_jobs: Count = 0
    """number of jobs at the beginning and at the end of a model's workload that are not measured"""
    users: Annotated[int, Field(least=1)] = 1
    """number of users of a model's jobs"""
    procs: Annotated[int | None, Field(least=1)] = None
    """processors of the machine; default: the log's"""
    estimates: str = "user"
    """the scheduler's estimates"""

    def __post_init__(self) -> None:
        if (self.log is None) == (self.model is None) or (self.model is not None and self.procs is None):
            raise PolicyError("needs either a log, or a model and procs")

    def windows(self, check: bool = True) -> list[LogWindow]:
        """Return the windows of the log or model.

        Raises WorkloadError if their checksums differ from the suite's (not with `check=False`), LogError for a missing log.
        """
        estimates = parse_estimates(self.estimates)
        found = []
        if self.log is not None:
            jobs = read(self.log, procs=self.procs).with_estimates(estimates, 0)
            found = windows(jobs, self.days * DAY, self.warm_days * DAY, self.warm_days * DAY)
        elif self.model is not None and self.procs is not None:
            model = parse_model(self.model)
            for seed in range(self.first_seed, self.first_seed + self.seeds):
                jobs = with_users(model.generate(self.jobs, self.procs, self.load, seed), self.users, seed).with_estimates(estimates, seed)
                inside = slice(self.warm_jobs, len(jobs) - self.warm_jobs)
                found.append(LogWindow(int(jobs.submit[inside][0]), int(jobs.submit[inside][-1]) + 1, jobs, jobs.job_id[inside]))
        if check and tuple(one.checksum for one in found) != self.checksums:
            raise WorkloadError(
                f"the jobs of {self.name} differ from the suite's, because the log or numpy has another version; use the version of the "
                "suite's results",
                "other_jobs",
            )
        return found


@dataclass(frozen=True)
class Suite:
    """The content of a suite's file."""

    name: str
    version: int
    title: str
    """title of the suite"""
    metrics: tuple[Annotated[str, Field(read=check_cost)], ...]
    """metrics of each window; the first one determines the ranking"""
    overrun: str
    """treatment of jobs that run longer than requested"""
    baselines: tuple[str, ...]
    """recommended schedulers for a leaderboard"""
    subjects: Annotated[tuple[Subject, ...], Field("subject")]
    definition: Annotated[str, Field(inside=True)] = ""
    """SHA-256 of the file"""


SUITE_FILE = TomlFile(Suite, "a suite", "docs/guides/benchmarks.md", PolicyError)


def read_suite(name: str) -> Suite:
    """Return the suite with this name; raises PolicyError, listing the suites, for an unknown one."""
    if name not in SUITES:
        others = "; the suite of predictions has its own command: walltime benchmark predictions LOG" if name == "predictions" else ""
        raise PolicyError(f"unknown suite {name!r}. Valid suites: {', '.join(SUITES)}{others}", "unknown_suite")
    return parse_suite((files("walltime.benchmark") / "suites" / f"{name}.toml").read_bytes(), f"{name}.toml")


def parse_suite(data: bytes, where: str = "the suite") -> Suite:
    """Return the suite in the content of a file, which errors name `where`; raises PolicyError."""
    suite = SUITE_FILE.value(SUITE_FILE.content(data.decode(), where), where)
    return replace(suite, definition=hashlib.sha256(data).hexdigest())
