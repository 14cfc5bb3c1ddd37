"""Waits that a log records beside simulated ones, and how two series go together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from walltime.errors import WorkloadError
from walltime.metrics.jobs import mean
from walltime.metrics.summary import Averages

Array = np.ndarray


@dataclass(frozen=True)
class RecordedWaits(Averages):
    """Recorded and simulated waits of the same jobs, s; undefined values are nan."""

    jobs: int
    """whose waits are known"""
    mean_recorded: float
    mean_simulated: float
    median_recorded: float
    median_simulated: float
    p90_recorded: float
    p90_simulated: float
    max_recorded: float
    max_simulated: float
    correlation: float
    """Pearson's, from -1 to 1; long waits dominate it"""
    rank_correlation: float
    """Spearman's, from -1 to 1: do the same jobs wait long"""


def recorded_waits(recorded: Array, simulated: Array) -> RecordedWaits:
    """Put recorded and simulated waits side by side: means, quantiles, correlation.

    `recorded, simulated`: int64 s, shape (jobs,). Jobs with a recorded wait below 0, which means unknown, are left out.

    >>> found = recorded_waits(np.array([0, 10, 50, -1]), np.array([0, 20, 40, 99]))
    >>> found.jobs, found.mean_recorded, found.max_simulated, found.rank_correlation
    (3, 20.0, 40.0, 1.0)
    """
    recorded, simulated = np.asarray(recorded), np.asarray(simulated)
    known = recorded >= 0
    both = recorded[known], simulated[known]
    median, p90, longest = zip(*(np.percentile(w, [50, 90, 100]).tolist() if len(w) else [float("nan")] * 3 for w in both), strict=True)
    return RecordedWaits(
        jobs=int(known.sum()),
        mean_recorded=mean(both[0]),
        mean_simulated=mean(both[1]),
        median_recorded=median[0],
        median_simulated=median[1],
        p90_recorded=p90[0],
        p90_simulated=p90[1],
        max_recorded=longest[0],
        max_simulated=longest[1],
        correlation=correlation(*both),
        rank_correlation=rank_correlation(*both),
    )


def correlation(a: Array, b: Array) -> float:
    """Pearson's correlation of two series of equal length; nan where one of them does not vary.

    >>> round(correlation(np.array([1, 2, 3]), np.array([2, 4, 6])), 9)
    1.0
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if len(a) != len(b):
        raise WorkloadError(f"a correlation needs series of equal length, not {len(a)} and {len(b)}", "different_lengths")
    if len(a) < 2 or a.min() == a.max() or b.min() == b.max():
        return float("nan")
    a, b = a - a.mean(), b - b.mean()
    return float(np.clip(np.dot(a, b) / np.sqrt(np.dot(a, a) * np.dot(b, b)), -1, 1))


def rank_correlation(a: Array, b: Array) -> float:
    """Spearman's rank correlation of two series of equal length, equal values sharing their mean rank; nan where one does not vary.

    >>> round(rank_correlation(np.array([1, 2, 30]), np.array([5, 4, 3])), 9)
    -1.0
    """
    return correlation(_ranks(a), _ranks(b))


def _ranks(values: Array) -> Array:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[place]
