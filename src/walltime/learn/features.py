"""What an agent observes: every feature, with its unit and scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from walltime.engine import decisions as kernel
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
    Feature("wait", "s", "divided by 12 h, at most 1", "how long it has waited", 0.0),
    Feature("planned", "s", "divided by the longest of all episodes", "the runtime that is planned with", 1.0),
    Feature("processors", "processors", "divided by those of the machine", "the processors that it needs", 1.0),
    Feature("memory", "KB per processor", "divided by the most of all episodes; 1 if unknown", "the memory that it asked for", 1.0),
    Feature("user", "number", "divided by the highest of all episodes; 1 if unknown", "its user", 1.0),
    Feature("group", "number", "divided by the highest of all episodes; 1 if unknown", "its group", 1.0),
    Feature("executable", "number", "divided by the highest of all episodes; 1 if unknown", "its program", 1.0),
    Feature("fits", "", "0 or 1", "whether it fits now", 0.0),
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


def still_features(observation: str, workload: Workload, believed: Array, most: dict[str, int]) -> Array:
    """The features of each job that do not change while it waits, float32; `most`: the greatest value of each column."""
    size = workload.procs / workload.machine_procs
    if observation == "compact":
        planned = np.minimum(np.log1p(believed) / np.log1p(kernel.WEEK), 1.0)
        return np.column_stack([planned, size]).astype(np.float32)
    columns = [believed / max(most["believed"], 1), size]
    for name in ("requested_memory", "user", "group", "executable"):
        values = workload.columns.get(name, np.full(len(workload), -1, np.int64))
        columns.append(np.where(values >= 0, values / max(most[name], 1), 1.0))
    return np.column_stack(columns).astype(np.float32)


def greatest(workloads: list[Workload], believed: list[Array]) -> dict[str, int]:
    """The greatest value of each column that is scaled by it."""
    found = {"believed": max((int(values.max(initial=0)) for values in believed), default=0)}
    for name in ("requested_memory", "user", "group", "executable"):
        found[name] = max((int(w.columns[name].max(initial=0)) for w in workloads if name in w.columns), default=0)
    return found
