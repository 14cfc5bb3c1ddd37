"""A suite: windows of jobs, metrics and statistics that never change under its version; data in suites/*.toml."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Annotated

from walltime.declared import Key
from walltime.errors import PolicyError, WorkloadError
from walltime.estimates import parse_estimates
from walltime.logs import read
from walltime.simulation.windows import DAY, Window, check_cost, windows
from walltime.toml_file import TomlFile
from walltime.workload import Workload
from walltime.workload.models import parse_model
from walltime.workload.users import with_users

SUITES = ("classic", "archive", "overload", "estimates")
Count = Annotated[int, Key(least=0)]


def _cost(metric: str) -> str:
    check_cost(metric)
    return metric


@dataclass(frozen=True)
class Subject:
    """Jobs of a suite: windows of a log, or workloads that a model makes, one for each seed."""

    name: str
    checksums: Annotated[tuple[str, ...], Key("windows")] = ()
    """of the jobs of each window; written by tools/freeze_suites.py"""
    log: str | None = None
    """of the catalogue"""
    days: Count = 30
    """of a log: the length of a window"""
    warm_days: Count = 7
    """of a log: days before and after a window, whose jobs run and are not measured"""
    model: str | None = None
    """in place of a log"""
    jobs: Count = 3000
    """that a model makes"""
    load: float = 1.0
    """offered load of a model's jobs"""
    first_seed: Count = 1
    seeds: Annotated[int, Key(least=1)] = 5
    """how many, from the first one on"""
    warm_jobs: Count = 0
    """of a model: the first and the last ones, which are not measured"""
    users: Annotated[int, Key(least=1)] = 1
    """to whom a model's jobs are given"""
    procs: Annotated[int | None, Key(least=1)] = None
    """processors of the machine; without it as the log says"""
    estimates: str = "user"
    """what the scheduler is told of runtimes"""

    def __post_init__(self) -> None:
        if (self.log is None) == (self.model is None) or (self.model is not None and self.procs is None):
            raise PolicyError("needs either a log, or a model and procs")

    def windows(self, check: bool = True) -> list[Window]:
        """The windows, made of the log or by the model.

        Raises WorkloadError if they are not those of the suite (not with `check=False`), LogError for a log that is not on this machine.
        """
        made = self._of_model(self.model, self.procs) if self.model is not None and self.procs is not None else self._of_log()
        if check and tuple(one.checksum for one in made) != self.checksums:
            raise WorkloadError(
                f"the jobs of {self.name} are not those of the suite: another version of the log, or of numpy's generators", "other_jobs"
            )
        return made

    def _of_log(self) -> list[Window]:
        assert self.log is not None, "there is no model"
        jobs = self._estimated(read(self.log, procs=self.procs), 0)
        return windows(jobs, self.days * DAY, self.warm_days * DAY, self.warm_days * DAY)

    def _of_model(self, name: str, procs: int) -> list[Window]:
        """A window for each seed: a generated workload, without its first and last jobs."""
        made, model = [], parse_model(name)
        for seed in range(self.first_seed, self.first_seed + self.seeds):
            jobs = self._estimated(with_users(model.generate(self.jobs, procs, self.load, seed), self.users, seed), seed)
            inside = slice(self.warm_jobs, len(jobs) - self.warm_jobs)
            made.append(Window(int(jobs.submit[inside][0]), int(jobs.submit[inside][-1]) + 1, jobs, jobs.job_id[inside]))
        return made

    def _estimated(self, jobs: Workload, seed: int) -> Workload:
        return jobs.with_estimates(parse_estimates(self.estimates), seed)


@dataclass(frozen=True)
class Suite:
    """A suite, as its file says."""

    name: str
    version: int
    title: str
    """what it is about"""
    metrics: tuple[Annotated[str, Key(read=_cost)], ...]
    """of each window; the first one decides"""
    overrun: str
    """what becomes of jobs that run longer than requested"""
    baselines: tuple[str, ...]
    """schedulers that a leaderboard should have"""
    subjects: Annotated[tuple[Subject, ...], Key("subject")]
    definition: Annotated[str, Key(inside=True)] = ""
    """SHA-256 of the file"""


SUITE_FILE = TomlFile(Suite, "a suite", "the guide on the benchmark", PolicyError)


def read_suite(name: str) -> Suite:
    """The suite with this name; raises PolicyError, listing them, for an unknown one."""
    if name not in SUITES:
        others = "; that of predictions has its own command: walltime benchmark predictions LOG" if name == "predictions" else ""
        raise PolicyError(f"unknown suite {name!r}; known are {', '.join(SUITES)}{others}", "unknown_suite")
    return parse_suite((files("walltime.benchmark") / "suites" / f"{name}.toml").read_bytes(), f"{name}.toml")


def parse_suite(data: bytes, where: str = "the suite") -> Suite:
    """The suite that a file with these bytes defines, named `where` in errors; raises PolicyError."""
    suite = SUITE_FILE.value(SUITE_FILE.content(data.decode(), where), where)
    return replace(suite, definition=hashlib.sha256(data).hexdigest())
