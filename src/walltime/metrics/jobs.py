"""Metrics of single jobs and of groups of jobs: wait, response, slowdown, backfilling."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from walltime.errors import WorkloadError

Array = np.ndarray

TAU = 10
"""Threshold of the bounded slowdown in seconds, as in feitelson98, mualem01 and tsafrir06."""


def wait(submit: Array, start: Array) -> Array:
    """Return the wait `w = start - submit`, int64 seconds. `submit, start`: int64 seconds, shape (jobs,).

    Source: mualem01, section 3.

    >>> wait(np.array([0, 5]), np.array([0, 65])).tolist()
    [0, 60]
    """
    return np.asarray(start) - np.asarray(submit)


def response(submit: Array, start: Array, runtime: Array) -> Array:
    """Return the response (turnaround) time `w + r = start + runtime - submit`, int64 seconds.

    `submit, start, runtime`: int64 seconds, shape (jobs,); `runtime` is the simulated runtime (killed jobs included).
    Source: mualem01, section 3.

    >>> response(np.array([0, 5]), np.array([0, 65]), np.array([10, 20])).tolist()
    [10, 80]
    """
    return np.asarray(start) + np.asarray(runtime) - np.asarray(submit)


def slowdown(wait: Array, runtime: Array) -> Array:
    """Return the slowdown `(w + r) / r`, float64; nan if the runtime is 0, so that a mean over such jobs is nan as well.

    `wait, runtime`: int64 seconds, shape (jobs,). Source: tang13, section 4.

    >>> slowdown(np.array([30, 30]), np.array([10, 0])).tolist()
    [4.0, nan]
    """
    wait, runtime = np.asarray(wait), np.asarray(runtime)
    undefined = runtime == 0
    return np.where(undefined, np.nan, (wait + runtime) / np.where(undefined, 1, runtime))


def bounded_slowdown(wait: Array, runtime: Array, form: Literal["max", "p1"] = "max", threshold: int = TAU) -> Array:
    """Return the bounded slowdown, float64: the slowdown with runtimes below `threshold` seconds counted as `threshold`.

    - `form="max"`: `max(1, (w + r) / max(threshold, r))`, never below 1 (tsafrir06)
    - `form="p1"`: `(w + r) / r` if `r > threshold`, else `(w + r) / threshold`; below 1 if `w + r < threshold` (feitelson98, mualem01)

    `wait, runtime`: int64 seconds, shape (jobs,). Raises WorkloadError for another form or a threshold below 1.

    Source: feitelson98; mualem01, section 3.1; tsafrir06, section II.

    >>> bounded_slowdown(np.array([0, 90]), np.array([2, 10])).tolist()
    [1.0, 10.0]
    >>> bounded_slowdown(np.array([0, 90]), np.array([2, 10]), form="p1").tolist()
    [0.2, 10.0]
    """
    if form not in ("max", "p1"):
        raise WorkloadError(f"unknown form of the bounded slowdown {form!r}. Valid options: max, p1", "unknown_slowdown")
    if threshold < 1:
        raise WorkloadError(f"the threshold of the bounded slowdown must be at least 1 s, not {threshold}", "number_out_of_range")
    runtime = np.asarray(runtime)
    ratio = (np.asarray(wait) + runtime) / np.maximum(runtime, threshold)
    return ratio if form == "p1" else np.maximum(ratio, 1.0)


def weighted_wait(wait: Array, priority: Array) -> float:
    """Return the average wait weighted by priority, `sum(W * P) / sum(P)`, in seconds; 0 if the priorities sum to 0.

    `wait`: int64 seconds, shape (jobs,). `priority`: float64, shape (jobs,), each job's score at its start by the queue order; under first
    come, first served it is the wait itself. Source: tang13, eq. 4.

    >>> weighted_wait(np.array([10, 30]), np.array([10, 30]))
    25.0
    """
    weight = np.asarray(priority, np.float64)
    total = float(weight.sum())
    return float(np.dot(np.asarray(wait, np.float64), weight)) / total if total != 0 else 0.0


@dataclass(frozen=True)
class BackfillStatistics:
    """The share of backfilled jobs, and means of these and of the other jobs; nan without such jobs."""

    percent: float
    """backfilled jobs, in percent of all"""
    mean_runtime: float
    """mean runtime of the backfilled jobs, s"""
    mean_procs: float
    """mean size of the backfilled jobs, processors"""
    mean_runtime_others: float
    """mean runtime of the other jobs, s"""
    mean_procs_others: float
    """mean size of the other jobs, processors"""


def backfill_statistics(runtime: Array, procs: Array, backfilled: Array) -> BackfillStatistics:
    """Return the percentage of backfilled jobs, with the mean runtime and size of backfilled and of other jobs.

    `runtime`: int64 seconds, `procs`: int64 processors, `backfilled`: bool; each of shape (jobs,). Source: mualem01, Fig. 5; tsafrir06,
    Figs. 5 and 9.

    >>> backfill_statistics(np.array([10, 50]), np.array([1, 4]), np.array([True, False])).percent
    50.0
    """
    chosen = np.asarray(backfilled, bool)
    means = [mean(np.asarray(column)[mask]) for mask in (chosen, ~chosen) for column in (runtime, procs)]
    return BackfillStatistics(100.0 * mean(chosen), *means)


def relative_difference(value: float, baseline: float) -> float:
    """Return the relative difference of two results, `100 * (value - baseline) / baseline`, in percent; nan for a baseline of 0.

    Source: mualem01, Table 1, whose columns compare conservative backfilling with EASY as the baseline.

    >>> round(relative_difference(11605, 11394), 1)
    1.9
    """
    return 100.0 * (value - baseline) / baseline if baseline != 0 else float("nan")


def mean(values: Array) -> float:
    """Return the arithmetic mean; nan, without a warning, if there are no values.

    >>> mean(np.array([1, 2])), mean(np.array([]))
    (1.5, nan)
    """
    return float(values.mean()) if len(values) else float("nan")


def accuracy(runtime: Array, estimate: Array) -> Array:
    """Return the accuracy of estimates, float64 in [0, 1]: the smaller of runtime and estimate divided by the larger.

    `runtime`, `estimate`: int64 s, shape (jobs,), estimates at least 1. Source: tang13, eq. 3.

    >>> accuracy(np.array([50, 100, 200, 0]), np.array([100, 100, 100, 1])).tolist()
    [0.5, 1.0, 0.5, 0.0]
    """
    runtime, estimate = np.asarray(runtime), np.asarray(estimate)
    return np.minimum(runtime, estimate) / np.maximum(runtime, estimate)
