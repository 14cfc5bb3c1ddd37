"""Recorded and simulated waits of the same jobs: correlations, and the agreement that shows which differences can be trusted."""

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from walltime.errors import WorkloadError
from walltime.metrics.jobs import mean
from walltime.metrics.summary import Averages
from walltime.metrics.weekly_interval import FEWEST_WEEKS, LogWeeks, largest_part_mean
from walltime.wording import counted, human_time

Array = np.ndarray
FEW_JOBS = 50
"""Groups with fewer jobs than this are not trusted."""
POOR_RANKS = 0.2
"""Groups with a lower rank correlation are not trusted, because the jobs that wait long differ between simulation and record."""
NEAR = (60, 600, 3600)
"""Distances, s, between simulated and recorded starts; the share of jobs within each is reported."""


@dataclass(frozen=True)
class RecordedWaits(Averages):
    """Recorded and simulated waits of the same jobs, s; undefined values are nan."""

    jobs: int
    """jobs with a recorded wait"""
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
    """Spearman's, from -1 to 1: whether the same jobs wait long"""


def recorded_waits(recorded: Array, simulated: Array) -> RecordedWaits:
    """Compare recorded and simulated waits: means, quantiles, correlation.

    `recorded, simulated`: int64 s, shape (jobs,). Jobs with a recorded wait below 0 (unknown) are left out.

    >>> found = recorded_waits(np.array([0, 10, 50, -1]), np.array([0, 20, 40, 99]))
    >>> found.jobs, found.mean_recorded, found.max_simulated, found.rank_correlation
    (3, 20.0, 40.0, 1.0)
    """
    recorded, simulated = np.asarray(recorded), np.asarray(simulated)
    known = recorded >= 0
    both = recorded[known], simulated[known]
    values: dict[str, Any] = {}
    for side, waits in zip(("recorded", "simulated"), both, strict=True):
        quantiles = np.percentile(waits, [50, 90, 100]).tolist() if len(waits) else [math.nan] * 3
        names = (f"{name}_{side}" for name in ("mean", "median", "p90", "max"))
        values |= zip(names, [mean(waits), *quantiles], strict=True)
    return RecordedWaits(jobs=int(known.sum()), correlation=correlation(*both), rank_correlation=rank_correlation(*both), **values)


def correlation(a: Array, b: Array) -> float:
    """Return Pearson's correlation of two series of equal length; nan if one of them does not vary.

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
    """Return Spearman's rank correlation of two series of equal length, with mean ranks for ties; nan if one does not vary.

    >>> round(rank_correlation(np.array([1, 2, 30]), np.array([5, 4, 3])), 9)
    -1.0
    """
    return correlation(_ranks(a), _ranks(b))


def _ranks(values: Array) -> Array:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[place]


@dataclass(frozen=True)
class Agreement(Averages):
    """Recorded and simulated waits of a group of jobs, s, and the smallest simulated difference of mean waits that can be trusted.

    `bias`: mean simulated minus mean recorded wait; `low, high`: its interval under sampling of weeks, nan without one. `threshold`: the
    largest absolute bias in that interval or, without an interval, in any fifth of the log. `doubt`: why no difference can be trusted,
    empty if some can. `within`: shares of the jobs whose simulated start is within 1 min, 10 min, 1 h of the recorded one.
    """

    by: str
    group: str
    jobs: int
    mean_recorded: float
    mean_simulated: float
    median_recorded: float
    median_simulated: float
    p90_recorded: float
    p90_simulated: float
    correlation: float
    rank_correlation: float
    within: tuple[float, ...]
    bias: float
    low: float
    high: float
    threshold: float
    doubt: str = ""


def agreement(by: str, group: str, recorded: Array, simulated: Array, weeks: LogWeeks, inside: Array) -> Agreement:
    """Compare recorded with simulated waits (int64 s) of a group; `weeks`: weeks of the whole log; `inside`: the group's jobs in it."""
    waits = recorded_waits(recorded, simulated)
    off = (simulated - recorded).astype(np.float64)
    bias = float(off.mean())
    low, high = weeks.ends(off, inside)
    row = Agreement(
        by=by,
        group=group,
        within=tuple(float(np.mean(np.abs(off) <= near)) for near in NEAR),
        bias=bias,
        low=low,
        high=high,
        threshold=largest_part_mean(off, weeks.parts[inside]) if math.isnan(low) else max(abs(low), abs(high), abs(bias)),
        **{f.name: getattr(waits, f.name) for f in fields(waits) if f.name in Agreement.__dataclass_fields__},
    )
    return replace(row, doubt=_doubt(row, len(np.unique(weeks.weeks[inside])) >= FEWEST_WEEKS))


def _doubt(row: Agreement, weeks: bool) -> str:
    """Return the reason why no difference in this group can be trusted; empty if some can."""
    if row.jobs < FEW_JOBS:
        return f"only {counted(row.jobs, 'job')}"
    if not weeks:
        return "under 4 weeks of jobs"
    if row.mean_recorded and row.threshold > row.mean_recorded:
        return f"the calibration error of {human_time(row.threshold)} exceeds the recorded mean wait of {human_time(row.mean_recorded)}"
    if row.rank_correlation < POOR_RANKS:
        return f"the simulation ranks waits differently (rank correlation {row.rank_correlation:.2f})"
    return ""
