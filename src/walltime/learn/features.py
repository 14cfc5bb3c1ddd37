"""What an agent observes: every feature, with its unit and scale; and the formulas that order the queue, from which it may choose."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from walltime.engine.kernel import decisions as kernel
from walltime.workload import Workload

Array = np.ndarray


@dataclass(frozen=True)
class Feature:
    """A number from 0 to 1 that is observed: what it is of, in which unit, and the scale that brings it between 0 and 1.

    `padding`: its value in slots without a job.
    """

    name: str
    unit: str
    scale: str
    about: str
    padding: float = 0.0


COMPACT = (
    Feature("waits", "", "0 or 1", "whether a job waits in this slot"),
    Feature("wait", "s", "log(1 + x) / log(1 + 7 d), at most 1", "how long it has waited"),
    Feature("planned", "s", "log(1 + x) / log(1 + 7 d), at most 1", "the runtime that is planned with"),
    Feature("processors", "processors", "divided by those of the machine", "the processors that it needs"),
    Feature("fits", "", "0 or 1", "whether it fits now"),
    Feature("stretch", "", "log(1 + x) / log(1 + 1000), at most 1", "how long it has waited, divided by the planned runtime"),
    Feature("behind_head", "", "0 or 1", "whether it may start behind the reservation of the head; 0 while there is none"),
)
"""The compact observation of a job."""

PUBLISHED = (
    Feature("wait", "s", "divided by 12 h, at most 0.99999", "how long it has waited", 0.0),
    Feature("planned", "s", "divided by the longest runtime of the log, at most 0.99999", "the runtime that is planned with", 1.0),
    Feature("processors", "processors", "divided by those of the machine, at most 0.99999", "the processors that it needs", 1.0),
    Feature(
        "memory", "KB per processor", "divided by the most of the log, at most 0.99999; 1 if unknown", "the memory that it asked for", 1.0
    ),
    Feature("user", "number", "divided by the highest of the log, at most 0.99999; 1 if unknown", "its user", 1.0),
    Feature("group", "number", "divided by the highest of the log, at most 0.99999; 1 if unknown", "its group", 1.0),
    Feature("executable", "number", "divided by the highest of the log, at most 0.99999; 1 if unknown", "its program", 1.0),
    Feature("fits", "", "0.00001 or 0.99999", "whether it fits now", 0.0),
)
"""The observation of a job as in zhang20, for up to 128 jobs."""

QUEUE = (
    Feature("free", "processors", "divided by those of the machine", "free processors"),
    Feature("waiting", "jobs", "log(1 + x) / log(1 + 1024), at most 1", "waiting jobs, those without a slot too"),
    Feature(
        "work", "processor s", "divided by the processors, then log(1 + x) / log(1 + 30 d), at most 1", "planned work of the waiting jobs"
    ),
    Feature("shadow", "s", "log(1 + x) / log(1 + 7 d), at most 1", "time until the reservation of the head; 0 while there is none"),
    Feature("extra", "processors", "divided by those of the machine", "processors that the head will leave free; 0 without a reservation"),
    Feature("day", "s", "divided by 24 h", "time of the day, counted from the start of the log"),
)
"""The summary of the queue, observed beside the compact vectors of jobs."""

FEATURES = {"compact": COMPACT, "published": PUBLISHED}
"""The features of a job, by observation."""


NUMBERS = ("requested_memory", "user", "group", "executable")
"""Columns of a log that the published observation shows."""


def still_features(observation: str, workload: Workload, planned: Array, scales: Mapping[str, int]) -> Array:
    """The features of each job that do not change while it waits, float32; `scales`: the greatest value of each column."""
    size = workload.procs / workload.machine_procs
    if observation == "compact":
        return np.column_stack([np.minimum(np.log1p(planned) / np.log1p(kernel.WEEK), 1.0), size]).astype(np.float32)
    columns = [np.minimum(planned / max(scales["runtime"], 1), kernel.NEARLY_ONE), np.minimum(size, kernel.NEARLY_ONE)]
    for name in NUMBERS:
        values = workload.columns.get(name, np.full(len(workload), -1, np.int64))
        columns.append(np.where(values >= 0, np.minimum(values / max(scales[name], 1), kernel.NEARLY_ONE), 1.0))
    return np.column_stack(columns).astype(np.float32)


def scales_of(workload: Workload) -> dict[str, int]:
    """The greatest value of each column that is scaled by it; 0 for columns that a log has not."""
    columns = {"runtime": workload.runtime} | {name: workload.columns[name] for name in NUMBERS if name in workload.columns}
    return {name: int(columns[name].max(initial=0)) if name in columns else 0 for name in ("runtime", *NUMBERS)}


FORMULAS = ("fcfs", "sjf", "saf", "wfp3", "unicep", "f1", "f2", "f3", "f4")
"""The formulas that the decision `formula` chooses from, in this order, and the baselines: those of zhang20 (`walltime.papers.zhang20`)
and F2 to F4 of carastan17; the submission counts from the start of the log."""


def formula_terms(submit: Array, planned: Array, procs: Array) -> Array:
    """What does not change in a formula's score of a job while the job waits, float64, a column for each formula.

    That is the score itself, for `unicep` what the wait is divided by, and for `wfp3` nothing. Logarithms take longer than all else that
    a decision needs, so they are taken once; and not by numpy, whose last digit differs from that of other orders.
    """
    submitted = np.array([math.log10(max(time, 0.1)) for time in submit.tolist()])
    length = np.array([math.log10(time) for time in planned.tolist()])
    size = np.array([math.log2(count) for count in procs.tolist()])
    columns = {
        "fcfs": np.zeros(len(submit)),
        "sjf": planned,
        "saf": planned.astype(float) * procs,
        "wfp3": np.zeros(len(submit)),
        "unicep": (size + 1e-20) * planned,
        "f1": length * procs + 870.0 * submitted,
        "f2": np.sqrt(planned) * procs + 25_600.0 * submitted,
        "f3": planned.astype(float) * procs + 6.86e6 * submitted,
        "f4": planned * np.sqrt(procs) + 5.30e5 * submitted,
    }
    return np.column_stack([columns[name] for name in FORMULAS]).astype(np.float64)
