"""Predict start times without simulations, as baselines for the intervals of the simulations."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator
from math import ceil, floor, sqrt

import numpy as np

from walltime.slurm.starts.replay import Record
from walltime.workload import Array

SIZES = (4, 16, 64)
"""Bounds of the classes of job sizes (processors) within a queue, from Brevik, Nurmi and Wolski."""
LEAST = 59
"""Smallest number of waits whose maximum is an upper bound on the 95 % quantile with 95 % confidence: log(0.05) / log(0.95)."""
MISSES = 3
"""Number of consecutive waits above their bound that mark a change point; fewer than 5 % of independent series have such a run."""
CONFIDENT = 1.645
"""The 95 % quantile of the normal distribution."""
LATEST = 1000
"""Number of the last waits of a class that `no_model` uses."""
FEWEST = 8


def _bounds(ranked: list[int]) -> tuple[int, int, int]:
    """Return a lower bound on the 5 % quantile, the median, and an upper bound on the 95 % quantile, both with 95 % confidence."""
    count = len(ranked)
    beyond = floor(0.05 * count - CONFIDENT * sqrt(0.05 * 0.95 * count))  # the number of waits beyond each bound
    return ranked[max(beyond, 0)], ranked[count // 2], ranked[min(count - 1 - beyond, count - 1)]


class _Waits:
    """The waits of one class since its last change point."""

    def __init__(self) -> None:
        self.latest: list[int] = []
        self.ranked: list[int] = []
        self.missed = 0

    def add(self, wait: int) -> None:
        if len(self.ranked) >= LEAST:
            self.missed = self.missed + 1 if wait > _bounds(self.ranked)[2] else 0
        self.latest.append(wait)
        insort(self.ranked, wait)
        if self.missed == MISSES:
            self.latest = self.latest[-LEAST:]
            self.ranked, self.missed = sorted(self.latest), 0


def qbets(record: Record, made: Array, job: Array) -> Array:
    """Return quantile bounds of the remaining waits by the method QBETS, s after `made`: shape (3, predictions).

    The bounds are from the history of waits by queue and size, which is cut at change points; the time that the job has waited is
    subtracted. `made`: the time of each prediction, s from the start of the log; `job`: the index of its job. A class of fewer than 59
    waits has the bounds of all jobs. For correlated waits, the method cuts after longer runs of misses; here, it always cuts after
    three. Sources: Brevik, Nurmi, Wolski, PPoPP 2006, section 3 (bounds by the binomial distribution, here by its normal approximation;
    change points); Nurmi, Brevik, Wolski, JSSPP 2007 (QBETS), here with fixed classes of processors.
    """
    classes = _classes(record)
    known: dict[int, _Waits] = {-1: _Waits()}
    bounds = np.zeros((3, len(made)))

    def learn(started: int) -> None:
        wait = int(record.start[started] - record.submit[started])
        known[-1].add(wait)
        known.setdefault(int(classes[started]), _Waits()).add(wait)

    for k in _in_time(record, made, learn):
        own = known.get(int(classes[job[k]]))
        ranked = (own if own is not None and len(own.ranked) >= LEAST else known[-1]).ranked
        bounds[:, k] = _bounds(ranked) if ranked else (0, 0, 0)
    return np.maximum(bounds - (made - record.submit[job]), 0)


def _in_time(record: Record, made: Array, learn: Callable[[int], None]) -> Iterator[int]:
    """Yield the indices of the predictions in order of time, after calling `learn` with each job that had started before."""
    order = np.argsort(record.start, kind="stable")
    starts, done = record.start[order], 0
    for k in np.argsort(made, kind="stable").tolist():
        until = int(np.searchsorted(starts, made[k]))
        for started in order[done:until].tolist():
            learn(started)
        done = max(done, until)
        yield k


def _classes(record: Record) -> Array:
    """Return the class of each job, by queue and size."""
    jobs = record.workload
    queue = jobs.columns.get("queue", np.zeros(len(jobs), np.int64))
    return np.maximum(queue, 0) * (len(SIZES) + 1) + np.searchsorted(SIZES, jobs.procs)


def no_model(record: Record, made: Array, job: Array) -> Array:
    """Return quantiles of the remaining waits, s after `made`, shape (3, predictions), from past waits alone.

    The quantiles are over recent waits of the job's class (queue, size) that were longer than the job has waited. Arguments: as in `qbets`.
    """
    classes = _classes(record)
    known: dict[int, list[int]] = {}
    quantiles = np.zeros((3, len(made)))

    def learn(started: int) -> None:
        for name in (-1, int(classes[started])):
            waits = known.setdefault(name, [])
            waits.append(int(record.start[started] - record.submit[started]))
            if len(waits) > 2 * LATEST:
                del waits[:-LATEST]

    for k in _in_time(record, made, learn):
        waited = int(made[k] - record.submit[job[k]])
        for name in (int(classes[job[k]]), -1):
            waits = np.sort(np.array(known.get(name, [])[-LATEST:], np.int64))
            longer = waits[np.searchsorted(waits, waited, side="right") :]
            if len(longer) >= FEWEST:
                break
        else:
            longer = waits[-FEWEST:]
        if len(longer):
            places = [max(floor(0.05 * (len(longer) + 1)), 1), len(longer) // 2 + 1, min(ceil(0.95 * (len(longer) + 1)), len(longer))]
            quantiles[:, k] = np.maximum(longer[np.array(places) - 1] - waited, 0)
    return quantiles
