"""Compute the objectives of a search for orders on several logs, each relative to a baseline on the same jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from walltime.metrics import bounded_slowdown
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler
from walltime.tuning.search import simulate_grid
from walltime.workload import Array, Workload
from walltime.workload.scaling import head, shake

OBJECTIVES = ("bounded_slowdown", "wait_by_area", "p99_wait", "longest_wait", "longest_waits")
"""Mean bounded slowdown; mean wait of a processor second, s; 99th percentile and maximum of the waits, s; and the mean of the longest
thousandth of the waits, s, which is less noisy than the single longest one."""


def objectives(submit: Array, start: Array, runtime: Array, procs: Array) -> Array:
    """Return the `OBJECTIVES` of these jobs (int64, times in s), float64; 1 s is added to waits, because they may be 0.

    >>> objectives(*map(np.array, ([0, 0], [0, 90], [10, 10], [1, 3]))).tolist()
    [5.5, 68.5, 90.1, 91.0, 91.0]
    """
    wait = (start - submit).astype(np.float64)
    slowdown = bounded_slowdown(start - submit, runtime)
    area = runtime.astype(np.float64) * procs
    by_area = float((wait * area).sum() / area.sum()) if area.any() else float(wait.mean())
    most = -(-len(wait) // 1000)
    longest = np.partition(wait, len(wait) - most)[-most:]
    return np.array([slowdown.mean(), by_area + 1.0, float(np.percentile(wait, 99)) + 1.0, wait.max() + 1.0, float(longest.mean()) + 1.0])


@dataclass(frozen=True, eq=False)
class LogPart:
    """Simulated jobs of a log; the jobs from index `first` on are measured.

    `log`: the index of the log.
    """

    log: int
    jobs: Workload
    first: int = 0


def parts_of(logs: Sequence[Workload], share: float, copies: int, shaken: int, seed: int) -> tuple[list[LogPart], list[LogPart]]:
    """Return the parts for training, with the first `share` of each log's jobs, and the parts for choosing, with its later jobs.

    There are `copies` of each: as recorded, and shaken by up to `shaken` s. Parts for choosing include the earlier jobs, unmeasured.
    """
    early, late = [], []
    for number, log in enumerate(logs):
        cut = max(1, int(len(log) * share))
        for copy in range(copies):
            jobs = log if copy == 0 else shake(log, shaken, seed + copy)
            early.append(LogPart(number, head(jobs, cut)))
            if cut < len(log):
                late.append(LogPart(number, jobs, cut))
    return early, late


class Parts:
    """Simulate schedulers on all parts, with common random numbers."""

    def __init__(self, parts: Sequence[LogPart], baseline: Scheduler, workers: int | None = None):
        self.parts, self.workers = list(parts), workers
        self.logs = np.array([one.log for one in parts])
        self.baseline = np.log(self._values([baseline])[0])

    def relative(self, schedulers: Sequence[Scheduler], progress: Callable[[int], None] | None = None) -> Array:
        """Return logarithms of the objectives over the baseline's: float64 of shape (schedulers, parts, objectives)."""
        result: Array = np.log(self._values(schedulers, progress)) - self.baseline
        return result

    def _values(self, schedulers: Sequence[Scheduler], progress: Callable[[int], None] | None = None) -> Array:
        def run(part: LogPart, scheduler: Scheduler, check: Callable[[int], None]) -> Array:
            schedule, behind = simulate(part.jobs, scheduler, progress=check), slice(part.first, None)
            return objectives(*(column[behind] for column in (schedule.submit, schedule.start, schedule.runtime, part.jobs.procs)))

        return simulate_grid(run, schedulers, self.parts, self.workers, progress)


def by_log(relative: Array, logs: Array) -> Array:
    """Return the means over the copies of each log, float64, shape (..., logs, objectives)."""
    return np.stack([relative[..., logs == log, :].mean(axis=-2) for log in np.unique(logs)], axis=-2)


def merit(relative: Array, logs: Array, penalty: float) -> Array:
    """Return the minimised value for each log: float64 of shape (..., logs) from `relative` of shape (..., parts, objectives).

    It sums logarithms of ratios to the baseline: for mean bounded slowdown with weight 1, for wait by area and for the 99th percentile with
    weight 1/20 each, and for the longest waits, if above 0, with weight `penalty`.
    """
    means = by_log(relative, logs)
    result: Array = means[..., 0] + 0.05 * (means[..., 1] + means[..., 2]) + penalty * np.maximum(means[..., 4], 0.0)
    return result
