"""Score predictions of start times, and calibrate intervals so that 90 % of the starts are inside."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

Array = np.ndarray

CLASSES = {"under 1 h": 3600, "1 to 6 h": 6 * 3600, "over 6 h": 2**62}
"""Classes of the distance of a predicted start (its median), by their upper bounds, s."""
SPREAD = 60.0
"""The least distance of an interval's end from the median that is scaled, s."""
Factors = Mapping[str, tuple[float, float]]
"""For each class of CLASSES, the factors for the distances of the early and the late end from the median."""
STEP = 0.005
"""A known start moves the logarithm of a factor by 0.95 of this outwards, or by 0.05 of it inwards."""
MOST_FACTOR = 10.0
"""The largest factor; the smallest is its inverse."""
DAY = 86400
LATEST = 365 * DAY
"""The length of the period before now whose predictions give the factors, s."""
TAIL = 0.05
"""The part of the jobs that may start before the interval, and the part that may start after it."""


def distance_class(ahead: float) -> str:
    """Return the class of a start this many s ahead.

    >>> distance_class(60), distance_class(3600), distance_class(10**6)
    ('under 1 h', '1 to 6 h', 'over 6 h')
    """
    return next((name for name, bound in CLASSES.items() if ahead < bound), "over 6 h")


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


@dataclass(frozen=True)
class Outcome:
    """A prediction and the real start, in s after the snapshot.

    `job`: its label; `made`: when it was predicted (Unix time); `early, median, late`: the prediction (inf for never); `by_limits`,
    `slurm`: other predictions, NaN for none; `real`: the start.
    """

    job: str
    made: int
    early: float
    median: float
    late: float
    by_limits: float
    slurm: float
    real: float

    @property
    def name(self) -> str:
        """The class of the prediction, by its distance."""
        return distance_class(self.median)

    @property
    def inside(self) -> bool:
        """Whether the job started within the interval."""
        return self.early <= self.real <= self.late

    def scores(self) -> tuple[float, float]:
        """Return how early and how late the job started, in units of the distances of the interval's ends from the median."""
        if not np.isfinite(self.median):
            return (np.inf, -np.inf)
        late = (self.real - self.median) / max(self.late - self.median, SPREAD)
        return ((self.median - self.real) / max(self.median - self.early, SPREAD), late)


@dataclass(frozen=True)
class Score:
    """The scores of the predictions of a class.

    `jobs`: the number of predictions; `inside`, `before`, `after`: the parts of starts inside, before and after the interval. `error`: the
    median absolute error of the median, s; `error_limits`, `error_slurm`: of the other predictions, NaN without any; `slurm_jobs`: the
    number of Slurm's. `width`: the median width, s.
    """

    name: str
    jobs: int
    inside: float
    before: float
    after: float
    error: float
    error_limits: float
    error_slurm: float
    slurm_jobs: int
    width: float


def score_outcomes(outcomes: Sequence[Outcome]) -> list[Score]:
    """Return the scores of all predictions, and of each class that has any."""
    groups = [("all", list(outcomes)), *((name, [one for one in outcomes if one.name == name]) for name in CLASSES)]
    return [_score(name, group) for name, group in groups if group]


def _score(name: str, group: Sequence[Outcome]) -> Score:
    early, median, late, limits, slurm, real = (
        np.array([getattr(one, field) for one in group]) for field in ("early", "median", "late", "by_limits", "slurm", "real")
    )
    with np.errstate(invalid="ignore"):
        width = late - early
        errors = [np.abs(one - real) for one in (median, limits, slurm)]
    known = np.isfinite(slurm)
    return Score(
        name,
        len(group),
        float(((early <= real) & (real <= late)).mean()),
        float((real < early).mean()),
        float((real > late).mean()),
        float(np.median(errors[0])),
        _median(errors[1][~np.isnan(limits)]),
        _median(errors[2][known]),
        int(known.sum()),
        _median(width[np.isfinite(width)]),
    )


def _median(values: Array) -> float:
    return float(np.median(values)) if len(values) else float("nan")


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
        for side, score in enumerate(one.scores()):
            moved = ends[side] + STEP * ((1 - TAIL) if score > math.exp(ends[side]) else -TAIL)
            ends[side] = min(max(moved, -most), most)
    return {name: (math.exp(early), math.exp(late)) for name, (early, late) in logs.items()}


def apply_factors(outcomes: Sequence[Outcome], factors: Factors) -> list[Outcome]:
    """Return the outcomes with predictions adjusted with these factors."""
    if not outcomes:
        return []
    quantiles = scale_intervals(np.array([(one.early, one.median, one.late) for one in outcomes]).T, factors)
    return [replace(one, early=float(low), late=float(high)) for one, low, high in zip(outcomes, quantiles[0], quantiles[2], strict=True)]
