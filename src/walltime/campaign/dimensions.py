"""What a plan can vary: each word once, with its type, its default, and how a value is checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from walltime.errors import PolicyError
from walltime.estimates import parse_estimates
from walltime.logs.filters import select
from walltime.policy import parse_order
from walltime.predictors import HISTORIES, parse_belief, parse_correction, parse_predictor
from walltime.schedule.overrun import OVERRUN
from walltime.schedule.scheduler import parse_scheduler
from walltime.schedule.variation import parse_span
from walltime.workload import Workload
from walltime.workload.columns import SWF_BY_NAME
from walltime.workload.models import parse_model
from walltime.workload.scaling import WAYS

DEFAULT = "default"
"""The value that stands for a word's default, where a list has to name one."""


@dataclass(frozen=True)
class Dimension:
    """A word of a plan."""

    name: str
    kind: type
    """str, int, float or bool"""
    default: Any
    meaning: str
    check: Callable[[Any], object] | None = None
    """raises a WalltimeError for a value that is none"""


def _one_of(*known: str) -> Callable[[str], None]:
    def check(value: str) -> None:
        if value not in known:
            raise PolicyError(f"unknown value {value!r}; known are {', '.join(known)}")

    return check


def _between(low: float, high: float, what: str) -> Callable[[float], None]:
    def check(value: float) -> None:
        if not low <= value <= high:
            raise PolicyError(f"{what}, not {value:g}")

    return check


def _filters(text: str) -> None:
    none: dict[str, Any] = {name: [] for name in ("submit", "runtime", "procs")}
    columns = {name: np.zeros(0, np.int64) for name in SWF_BY_NAME}
    workload = Workload.from_arrays(**none, machine_procs=1, columns=columns)
    for part in text.split(";"):
        if part.strip():
            select(workload, part.strip())


_AT_LEAST_1 = _between(1, 2**40, "it must be at least 1")

DIMENSIONS: dict[str, Dimension] = {
    d.name: d
    for d in (
        Dimension("trace", str, None, "a log, relative to the plan's folder, or the name of a fetched one"),
        Dimension("model", str, None, "instead of a log: a workload model, as for `walltime generate`", parse_model),
        Dimension("jobs", int, 10_000, "jobs that a model makes up", _AT_LEAST_1),
        Dimension("procs", int, None, "processors of the machine; 128 for a model", _AT_LEAST_1),
        Dimension("load", float, None, "offered load to scale to", _between(1e-9, 1.5, "a load must be over 0 and up to 1.5")),
        Dimension("scale_by", str, "interarrival", "what is changed for it", _one_of(*WAYS)),
        Dimension("remove", str, None, "jobs to leave out: a filter, or several separated by `;`", _filters),
        Dimension("window", str, None, "only jobs submitted in this span, such as 30d:60d", parse_span),
        Dimension("head", int, None, "only the first jobs", _AT_LEAST_1),
        Dimension("tail", int, None, "only the last jobs", _AT_LEAST_1),
        Dimension("too_wide", str, "drop", "jobs wider than the machine", _one_of("drop", "clip", "error")),
        Dimension("partial", str, "summary", "jobs that were interrupted", _one_of("summary", "parts")),
        Dimension("shake", int, 0, "move each submission by up to so many seconds", _between(0, 2**40, "it must be at least 0")),
        Dimension("feedback", bool, False, "submit jobs after the jobs that precede them"),
        Dimension("policy", str, "easy", "scheduling policy, with options as on the command line", parse_scheduler),
        Dimension("order", str, "fcfs", "order of the queue", parse_order),
        Dimension("backfill_order", str, None, "order in which jobs are tried for backfilling", parse_order),
        Dimension("estimates", str, "user", "what the scheduler is told", parse_estimates),
        Dimension("predictor", str, None, "learns runtimes from jobs that have ended", parse_predictor),
        Dimension("believe", str, "regular", "where its predictions are believed", parse_belief),
        Dimension("correction", str, "tsafrir07", "what is expected of a job that outlives its prediction", parse_correction),
        Dimension("history", str, "simulation", "what it learns from", _one_of(*HISTORIES)),
        Dimension("overrun", str, "kill", "jobs that run longer than they requested", _one_of(*OVERRUN)),
        Dimension("coincident", str, "batch", "events of one instant", _one_of("batch", "sequential")),
    )
}
"""The words of a plan's tables `fixed`, `grid` and `zip`, in their order."""

WORKLOAD = tuple(DIMENSIONS)[: tuple(DIMENSIONS).index("policy")]
"""The words that make the workload."""
