"""Predict start times without a simulation, as baselines for the predicted intervals."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator
from math import ceil, floor, sqrt

import numpy as np

from walltime.slurm.starts.replay import Record
from walltime.workload import Array

SIZES = (4, 16, 64)
"""Bounds of the classes of processors within a queue, those of Brevik, Nurmi and Wolski."""
LEAST = 59
"""The fewest waits whose largest one is above the 95 % quantile with 95 % confidence: log(0.05) / log(0.95)."""
MISSES = 3
"""Number of consecutive waits beyond their bound that mark a change point: by chance, under 5 % of independent series have such a run."""
CONFIDENT = 1.645
"""The 95 % quantile of the normal distribution."""
LATEST = 1000
"""The number of a class's last waits that count without a model."""
FEWEST = 8


def _bounds(ranked: list[int]) -> tuple[int, int, int]:
    """Return a lower bound of the 5 % quantile, the median, and an upper bound of the 95 % quantile, each bound with 95 % confidence."""
    count = len(ranked)
    beyond = floor(0.05 * count - CONFIDENT * sqrt(0.05 * 0.95 * count))  # how many lie beyond either bound
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
    """Return quantile bounds from the history of waits, by queue and size, cut at change points: s after `made`, shape (3, predictions).

    `made`: when each prediction is made, s from the start of the log; `job`: the place of its job. The job's wait until then is
    subtracted. A class of fewer than 59 waits has the bounds of all jobs. For correlated waits the method needs longer runs of misses
    before it cuts; here it always needs three. Sources: Brevik, Nurmi, Wolski, PPoPP 2006, section 3 (bounds by the binomial distribution,
    here by its normal approximation; change points); Nurmi, Brevik, Wolski, JSSPP 2007 (QBETS), here with fixed classes of processors.
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
    """Return the predictions in the order in which they are made, after calling `learn` with each job that started before."""
    order = np.argsort(record.start, kind="stable")
    starts, done = record.start[order], 0
    for k in np.argsort(made, kind="stable").tolist():
        until = int(np.searchsorted(starts, made[k]))
        for started in order[done:until].tolist():
            learn(started)
        done = max(done, until)
        yield k


def _classes(record: Record) -> Array:
    """Return the class of each job: its queue and its size."""
    jobs = record.workload
    queue = jobs.columns.get("queue", np.zeros(len(jobs), np.int64))
    return np.maximum(queue, 0) * (len(SIZES) + 1) + np.searchsorted(SIZES, jobs.procs)


def no_model(record: Record, made: Array, job: Array) -> Array:
    """Return quantiles of the last waits in the same queue and size that were longer than the job's wait until then, as `qbets` does."""
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
