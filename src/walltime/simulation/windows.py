"""Windows of a log: only jobs submitted in a period are measured, but the jobs around it are simulated too."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.metrics import Interval, Summary, series_interval
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler
from walltime.wording import shown
from walltime.workload import Array, Workload
from walltime.workload.scaling import shake

DAY = 86_400
MIN_JOBS = 20
"""Minimum number of measured jobs; windows with fewer are left out, since their means are too uncertain."""
COSTS = tuple(field.name for field in fields(Summary) if field.name.endswith(("_wait", "_response", "_slowdown", "_slowdown_p1")))
"""Fields of a summary that are averages or quantiles over single jobs, to be minimised."""


@dataclass(frozen=True, eq=False)
class LogWindow:
    """The jobs submitted from `begin` until before `end` (s), with the jobs to simulate before and after them.

    * `jobs`: all of these jobs; `measured`: the job numbers of the measured ones (int64)
    """

    begin: int
    end: int
    jobs: Workload
    measured: Array

    @property
    def checksum(self) -> str:
        """Return a SHA-256 checksum of everything that affects a simulation of this window."""
        jobs = self.jobs
        total = hashlib.sha256(f"{self.begin} {self.end} {jobs.machine_procs}".encode())
        for column in (jobs.job_id, jobs.submit, jobs.runtime, jobs.requested, jobs.planned, jobs.procs, self.measured):
            total.update(np.ascontiguousarray(column, "<i8").tobytes())
        for name in sorted(jobs.columns):  # predictors and orders may read them
            total.update(name.encode())
            total.update(np.ascontiguousarray(jobs.columns[name], "<i8").tobytes())
        return total.hexdigest()

    def shaken(self, seconds: int, seed: int) -> LogWindow:
        """Return the window with all submissions shifted at random and the same measured jobs."""
        return LogWindow(self.begin, self.end, shake(self.jobs, seconds, seed), self.measured)

    def summary(self, schedule: Schedule) -> Summary:
        """Return the averages over the measured jobs of a schedule of these jobs."""
        return schedule.summary(jobs=np.isin(schedule.workload.job_id, self.measured))

    def run(self, scheduler: Scheduler, progress: Callable[[int], None] | None = None, **rules: Any) -> Summary:
        """Simulate the jobs and return the averages over the measured ones; `rules`: additional arguments of `simulate`."""
        return self.summary(simulate(self.jobs, scheduler, progress=progress, **rules))


def windows(
    workload: Workload, length: int, warm: int, first: int = 0, last: int | None = None, after: int | None = None
) -> list[LogWindow]:
    """Return consecutive windows of `length` s between `first` and `last` (s after the first submission).

    A window includes the jobs of up to `warm` s before it and `after` s after it (default: `warm`), but none submitted before
    `first - warm` or after `last`. Windows with under 20 jobs are left out. Raises WorkloadError for an invalid length.
    """
    if length < 1 or warm < 0:
        raise WorkloadError(f"the length of windows must be at least 1 s and the warm-up at least 0 s, not {length} and {warm}")
    if not len(workload):
        return []
    zero = int(workload.submit[0])
    limit = int(workload.submit[-1]) + 1 if last is None else zero + last
    cuts = []
    for begin in range(zero + first, limit - length + 1, length):
        end = begin + length
        inside = slice(*np.searchsorted(workload.submit, [begin, end]))
        around = slice(*np.searchsorted(workload.submit, [begin - warm, min(end + (warm if after is None else after), limit)]))
        if inside.stop - inside.start >= MIN_JOBS:
            step = f"submitted from {workload.origin.span(begin - warm, end)}"
            jobs = workload.take(np.arange(around.start, around.stop), step)
            cuts.append(LogWindow(begin, end, jobs, workload.job_id[inside]))
    return cuts


def check_cost(metric: str) -> str:
    """Return the metric; raise PolicyError, listing the valid metrics, unless a lower value of it is better."""
    if metric not in COSTS:
        raise PolicyError(f"unknown measure {shown(metric)}. Valid measures: {', '.join(COSTS)}", "unknown_measure")
    return metric


def log_cost(values: Array | float, metric: str) -> Array:
    """Return the natural logarithm of a cost, whose differences are relative changes; 1 s is added to times, because they may be 0."""
    return np.log(np.asarray(values, np.float64) + (0.0 if "slowdown" in metric else 1.0))


def percent(logarithm: float) -> float:
    """Return a difference of `log_cost` as a change in percent.

    >>> round(percent(float(log_cost(3.0, "mean_slowdown") - log_cost(4.0, "mean_slowdown"))), 6)
    -25.0
    """
    return 100.0 * float(np.expm1(logarithm))


def in_percent(interval: Interval) -> Interval:
    """Return an interval of differences of `log_cost` as changes in percent."""
    what = f"{interval.what}, of the logarithms, as a change in %"
    return Interval(percent(interval.mean), percent(interval.low), percent(interval.high), what)


def change_interval(differences: Array) -> Interval:
    """Return the mean difference of `log_cost` (float64, one entry per window) as a change in percent, with its block-based interval."""
    return in_percent(series_interval(differences))
