"""Intervals of predicted starts that are scaled by the outcomes of earlier predictions, one class of distances at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from walltime.slurm.starts.scores import Outcome, distance_class

Array = np.ndarray

SPREAD = 60.0
"""The least distance of an interval's end from the median that is scaled, s."""
Factors = Mapping[str, tuple[float, float]]
"""For each class of CLASSES, the factors for the distances of the early and the late end from the median."""
STEP = 0.005
"""A known start moves the logarithm of a factor by 0.95 of this outwards, or by 0.05 of it inwards."""
MOST_FACTOR = 10.0
"""The largest factor; the smallest is its inverse."""
DAY = 86_400
LATEST = 365 * DAY
"""The length of the period before now whose predictions give the factors, s."""
TAIL = 0.05
"""The part of the jobs that may start before the interval, and the part that may start after it."""


def scale_intervals(quantiles: Array, factors: Factors) -> Array:
    """Scale the distances of quantiles (s ahead; shape (3, jobs)) from the median by the factors of the job's class.

    >>> scale_intervals(np.array([[500.0], [1000.0], [3000.0]]), {"under 1 h": (1.5, 2.0)}).T.tolist()
    [[250.0, 1000.0, 5000.0]]
    """
    early, median, late = quantiles
    low, high = early.copy(), late.copy()
    for k in np.flatnonzero(np.isfinite(median)).tolist():
        pair = factors.get(distance_class(median[k]))
        if pair is not None:
            low[k] = max(0.0, median[k] - pair[0] * max(median[k] - early[k], SPREAD))
            high[k] = median[k] + pair[1] * max(late[k] - median[k], SPREAD)
    return np.stack([low, median, high])


def distances(one: Outcome) -> tuple[float, float]:
    """Return how early and how late the job started, in units of the distances of the interval's ends from the median."""
    if not np.isfinite(one.median):
        return (np.inf, -np.inf)
    late = (one.real - one.median) / max(one.late - one.median, SPREAD)
    return ((one.median - one.real) / max(one.median - one.early, SPREAD), late)


def learn_factors(outcomes: Sequence[Outcome]) -> Factors:
    """Learn the factors for the distances of the interval's ends from the median, by class.

    The factors are 1 at first. Each start that becomes known, in that order, moves both ends of its class. An end moves outwards if the
    start was beyond it with the factors so far, else inwards by a nineteenth of that step; so it settles where 5 % of the starts are beyond
    it. No independence of predictions is assumed; many of one day can be wrong together. Sources: adaptive conformal inference, Gibbs &
    Candes, NeurIPS 2021, whose step this is; for quantiles as here, Angelopoulos, Candes, Tibshirani, NeurIPS 2023; for each end by itself,
    Romano, Patterson, Candes, NeurIPS 2019.
    """
    logs: dict[str, list[float]] = {}
    most = math.log(MOST_FACTOR)
    for one in sorted(outcomes, key=lambda one: one.made + one.real):
        ends = logs.setdefault(one.name, [0.0, 0.0])
        for side, score in enumerate(distances(one)):
            moved = ends[side] + STEP * ((1 - TAIL) if score > math.exp(ends[side]) else -TAIL)
            ends[side] = min(max(moved, -most), most)
    return {name: (math.exp(early), math.exp(late)) for name, (early, late) in logs.items()}


def apply_factors(outcomes: Sequence[Outcome], factors: Factors) -> list[Outcome]:
    """Return the outcomes with predictions adjusted with these factors."""
    if not outcomes:
        return []
    quantiles = scale_intervals(np.array([(one.early, one.median, one.late) for one in outcomes]).T, factors)
    return [replace(one, early=float(low), late=float(high)) for one, low, high in zip(outcomes, quantiles[0], quantiles[2], strict=True)]
