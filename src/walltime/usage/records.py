"""Classes for the hours of groups of jobs, lost hours and patterns of waste; the glossary defines each number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from walltime.errors import WorkloadError
from walltime.wording import shown

if TYPE_CHECKING:
    from walltime.machine import Machine
    from walltime.metrics.energy import Carbon

RESOURCES = {"cores": "core-hours", "gpus": "GPU-hours", "memory": "GB-hours of memory", "nodes": "node-hours"}
"""The resources, and their hours in words."""
KINDS = ("asked", "allocated", "measured", "used")
"""The kinds of hours."""
CAUSES = {
    "out_of_memory": "out of memory",
    "limit": "limit reached",
    "node_failure": "node failure",
    "preempted": "preempted",
    "cancelled": "cancelled",
    "failed": "failed",
    "earlier_runs": "earlier runs of requeued jobs",
}
"""The causes of lost hours, and their words. A job has at most one; its earlier runs count separately."""
By = Literal["user", "group", "partition", "queue", "executable", "state", "gpu_type"]
GROUPINGS: Mapping[str, str] = {
    "user": "user", "group": "account", "partition": "partition", "queue": "queue", "executable": "job name", "state": "state",
    "gpu_type": "GPU type",
}  # fmt: skip
"""The columns by which hours are grouped, and their names."""
LISTED = 20
"""Number of groups that are listed; the others are one group."""
OTHERS = "others"
UNKNOWN = "unknown"
TENFOLD = 10
"""A memory request of at least this many times the used memory counts as tenfold."""
ONE_CORE = 1.1
"""Maximum mean number of busy processors with which a job counts as using a single one."""
IDLE_SESSION = 0.05
"""Share of busy processors below which an interactive session is idle."""
SESSIONS = r"(?i)^(?:interactive|salloc|bash|zsh|tcsh|sh|srun|.*jupyter.*|.*rstudio.*|.*vscode.*|.*code-server.*|(?:sys|usr)/dashboard/.*)$"
"""Job names of interactive sessions: of Slurm's salloc, shells, notebooks and Open OnDemand."""
PATTERNS = {
    "idle_gpus": ("idle GPUs", "gpus"),
    "some_idle_gpus": ("idle GPUs next to busy ones", "gpus"),
    "one_core": ("one busy processor on whole nodes", "cores"),
    "memory_tenfold": ("memory requested tenfold", "memory"),
    "idle_sessions": ("idle interactive sessions", "cores"),
}
"""The patterns of waste: their words, and the resource whose unused hours are reported."""


@dataclass(frozen=True)
class Hours:
    """Hours of one resource, summed over jobs; NaN where nothing is known."""

    asked: float
    """amount requested x time requested, over the jobs for which both are known"""
    allocated: float
    measured: float
    """allocated hours of the jobs whose use is recorded"""
    used: float
    """used hours of the same jobs"""
    unmeasured_jobs: int
    """jobs with allocated hours whose use is not recorded"""

    @property
    def unused(self) -> float:
        """Return the allocated hours that were not used, over the jobs whose use is recorded."""
        return self.measured - self.used

    @property
    def efficiency(self) -> float:
        """Return the used share of the measured hours; nan without any."""
        return self.used / self.measured if self.measured > 0 else math.nan


@dataclass(frozen=True)
class GroupHours:
    """A group of jobs and its hours by resource; `lost`: allocated core-hours of its killed, cancelled and failed jobs."""

    group: str
    jobs: int
    hours: Mapping[str, Hours]
    lost: float
    energy: float = math.nan
    """kWh of the jobs whose energy is known"""
    grams: float = math.nan
    """grams of CO2 of the same jobs"""
    energy_jobs: int = 0
    """the number of these jobs"""

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers ready for JSON, nan as None."""
        hours = {name: asdict(one) | {"unused": one.unused, "efficiency": one.efficiency} for name, one in self.hours.items()}
        return {
            "group": self.group,
            "jobs": self.jobs,
            **defined(hours),
            "lost": defined(self.lost),
            **defined({"energy_kwh": self.energy, "grams": self.grams}),
            "energy_jobs": self.energy_jobs,
        }


@dataclass(frozen=True, eq=False)
class Power:
    """A machine whose power is used for jobs without recorded energy, the price of a kWh, and the carbon intensity of electricity."""

    machine: Machine | None = None
    price: float | None = None
    carbon: Carbon | None = None


@dataclass(frozen=True)
class Lost:
    """Jobs that lost their hours for the same cause, and their allocated hours by resource."""

    cause: str
    jobs: int
    hours: Mapping[str, float]


@dataclass(frozen=True)
class Pattern:
    """Jobs with a pattern of waste; 0 jobs and nan hours if the log lacks the data to detect it."""

    name: str
    jobs: int
    judged: int
    """number of jobs for which the log has these data"""
    resource: str
    unused: float
    """hours of the resource that these jobs did not use"""


def check_groupings(names: Iterable[str]) -> None:
    """Raise WorkloadError for an unknown grouping."""
    for one in names:
        if one not in GROUPINGS:
            raise WorkloadError(f"unknown grouping {shown(one)}. Valid groupings: {', '.join(GROUPINGS)}", "unknown_grouping")


def defined(value: Any) -> Any:
    """Return the value, or None for nan."""
    if isinstance(value, Mapping):
        return {name: defined(one) for name, one in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value
