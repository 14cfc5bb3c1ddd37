"""The observations of an agent, which are features with units and scales, and the formulas that order the queue."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from walltime.engine.kernel import decisions as kernel
from walltime.workload import Array, Workload


@dataclass(frozen=True)
class Feature:
    """An observed number, scaled to the range from 0 to 1.

    `unit`: before scaling; `padding`: the value in slots without a job.
    """

    name: str
    unit: str
    scale: str
    about: str
    padding: float = 0.0


COMPACT = (
    Feature("waits", "", "0 or 1", "whether a job waits in this slot"),
    Feature("wait", "s", "log(1 + x) / log(1 + 7 d), at most 1", "wait so far"),
    Feature("planned", "s", "log(1 + x) / log(1 + 7 d), at most 1", "planned runtime"),
    Feature("processors", "processors", "divided by those of the machine", "processors of the job"),
    Feature("fits", "", "0 or 1", "whether the job fits now"),
    Feature("stretch", "", "log(1 + x) / log(1 + 1000), at most 1", "wait so far over planned runtime"),
    Feature("behind_head", "", "0 or 1", "whether the job may start behind the head's reservation; 0 without one"),
)
"""The compact observation of a job."""

PUBLISHED = (
    Feature("wait", "s", "divided by 12 h, at most 0.99999", "wait so far", 0.0),
    Feature("planned", "s", "divided by the longest runtime of the log, at most 0.99999", "planned runtime", 1.0),
    Feature("processors", "processors", "divided by those of the machine, at most 0.99999", "processors of the job", 1.0),
    Feature("memory", "KB per processor", "divided by the largest of the log, at most 0.99999; 1 if unknown", "requested memory", 1.0),
    Feature("user", "number", "divided by the highest of the log, at most 0.99999; 1 if unknown", "user of the job", 1.0),
    Feature("group", "number", "divided by the highest of the log, at most 0.99999; 1 if unknown", "group of the job", 1.0),
    Feature("executable", "number", "divided by the highest of the log, at most 0.99999; 1 if unknown", "program of the job", 1.0),
    Feature("fits", "", "0.00001 or 0.99999", "whether the job fits now", 0.0),
)
"""The observation of a job as in zhang20, for up to 128 jobs."""

QUEUE = (
    Feature("free", "processors", "divided by those of the machine", "free processors"),
    Feature("waiting", "jobs", "log(1 + x) / log(1 + 1024), at most 1", "waiting jobs, including those without a slot"),
    Feature(
        "work", "processor s", "divided by the processors, then log(1 + x) / log(1 + 30 d), at most 1", "planned work of the waiting jobs"
    ),
    Feature("shadow", "s", "log(1 + x) / log(1 + 7 d), at most 1", "time until the head's reservation; 0 without one"),
    Feature("extra", "processors", "divided by those of the machine", "extra processors; 0 without a reservation"),
    Feature("day", "s", "divided by 24 h", "time of day, from the start of the log"),
)
"""The summary of the queue, part of the compact observation."""

FEATURES = {"compact": COMPACT, "published": PUBLISHED}
"""The features of a job, by observation."""
NUMBERS = ("requested_memory", "user", "group", "executable")
"""Log columns of the published observation."""


def constant_features(observation: str, workload: Workload, planned: Array, scales: Mapping[str, int]) -> Array:
    """Return each job's features that are constant while it waits, float32; `scales`: the largest value of each column."""
    size = workload.procs / workload.machine_procs
    if observation == "compact":
        return np.column_stack([np.minimum(np.log1p(planned) / np.log1p(kernel.WEEK), 1.0), size]).astype(np.float32)
    columns = [np.minimum(planned / max(scales["runtime"], 1), kernel.NEARLY_ONE), np.minimum(size, kernel.NEARLY_ONE)]
    for name in NUMBERS:
        values = workload.columns.get(name, np.full(len(workload), -1, np.int64))
        columns.append(np.where(values >= 0, np.minimum(values / max(scales[name], 1), kernel.NEARLY_ONE), 1.0))
    return np.column_stack(columns).astype(np.float32)


def scales_of(workload: Workload) -> dict[str, int]:
    """Return the largest value of each column by which the column is scaled; 0 for missing columns."""
    columns = {"runtime": workload.runtime} | {name: workload.columns[name] for name in NUMBERS if name in workload.columns}
    return {name: int(columns[name].max(initial=0)) if name in columns else 0 for name in ("runtime", *NUMBERS)}


FORMULAS = ("fcfs", "sjf", "saf", "wfp3", "unicep", "f1", "f2", "f3", "f4")
"""The actions of the decision `formula`, in this order, and the baselines: formulas of zhang20 (`walltime.papers.zhang20`) and F2 to F4
of carastan17; the submission counts from the start of the log."""


def formula_terms(submit: Array, planned: Array, procs: Array) -> Array:
    """Return the constant part of each job's scores, float64, a column for each formula.

    This is the score itself, the divisor of the wait for `unicep`, and nothing for `wfp3`. Logarithms are the slowest part of a decision,
    so they are computed once; and not by numpy, whose last digit differs from other orders.
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
