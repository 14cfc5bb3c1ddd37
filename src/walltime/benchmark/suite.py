"""A suite: windows of jobs, metrics and statistics that never change under its version; data in suites/*.toml."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from walltime.errors import PolicyError, WorkloadError
from walltime.estimates import parse_estimates
from walltime.logs import read
from walltime.simulation.windows import DAY, Window, check_cost, windows
from walltime.workload import Workload
from walltime.workload.models import parse_model
from walltime.workload.users import with_users

SUITES = ("classic", "archive", "overload", "estimates")


@dataclass(frozen=True)
class Subject:
    """Jobs of a suite: `name`; how they are made (`made`); and the checksum of each window."""

    name: str
    made: Mapping[str, Any]
    checksums: tuple[str, ...]

    def windows(self, check: bool = True) -> list[Window]:
        """The windows, made of the log or by the model.

        Raises WorkloadError if they are not those of the suite (not with `check=False`), LogError for a log that is not on this machine.
        """
        found = self._of_log() if "log" in self.made else self._of_model()
        if check and tuple(one.checksum for one in found) != self.checksums:
            raise WorkloadError(f"the jobs of {self.name} are not those of the suite: another version of the log, or of numpy's generators")
        return found

    def _of_log(self) -> list[Window]:
        made = self.made
        jobs = read(made["log"], procs=made.get("procs"))
        return windows(self._estimated(jobs, 0), made["days"] * DAY, made["warm_days"] * DAY, made["warm_days"] * DAY)

    def _of_model(self) -> list[Window]:
        """A window for each seed: a generated workload, without its first and last jobs."""
        made, found = self.made, []
        for seed in range(made["first_seed"], made["first_seed"] + made["seeds"]):
            model = parse_model(made["model"])
            jobs = with_users(model.generate(made["jobs"], made["procs"], made["load"], seed), made["users"], seed)
            jobs = self._estimated(jobs, seed)
            inside = slice(made["warm_jobs"], len(jobs) - made["warm_jobs"])
            found.append(Window(int(jobs.submit[inside][0]), int(jobs.submit[inside][-1]) + 1, jobs, jobs.job_id[inside]))
        return found

    def _estimated(self, jobs: Workload, seed: int) -> Workload:
        return jobs.with_estimates(parse_estimates(self.made.get("estimates", "user")), seed)


@dataclass(frozen=True)
class Suite:
    """A suite, as its file says.

    `title`: what it is about. `metrics`: the first decides. `baselines`: schedulers that a leaderboard should have. `definition`: SHA-256
    of the file.
    """

    name: str
    version: int
    title: str
    metrics: tuple[str, ...]
    overrun: str
    baselines: tuple[str, ...]
    subjects: tuple[Subject, ...]
    definition: str


def read_suite(name: str) -> Suite:
    """The suite with this name; raises PolicyError, listing them, for an unknown one."""
    if name not in SUITES:
        raise PolicyError(f"unknown suite {name!r}; known are {', '.join(SUITES)}")
    return parse_suite((files("walltime.benchmark") / "suites" / f"{name}.toml").read_bytes())


def parse_suite(data: bytes) -> Suite:
    """The suite that a file defines."""
    found = tomllib.loads(data.decode())
    subjects = []
    for made in found["subject"]:
        own = {key: value for key, value in made.items() if key not in ("name", "windows")}
        subjects.append(Subject(made["name"], own, tuple(made.get("windows", ()))))
    for metric in found["metrics"]:
        check_cost(metric)
    return Suite(
        name=found["name"],
        version=found["version"],
        title=found["title"],
        metrics=tuple(found["metrics"]),
        overrun=found["overrun"],
        baselines=tuple(found["baselines"]),
        subjects=tuple(subjects),
        definition=hashlib.sha256(data).hexdigest(),
    )
