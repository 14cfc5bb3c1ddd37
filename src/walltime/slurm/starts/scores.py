"""How good predictions of start times were, and what makes intervals of 90 % hold 90 %."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray

CLASSES = {"under 1 h": 3600, "1 to 6 h": 6 * 3600, "over 6 h": 2**62}
"""Classes of how far ahead a predicted start (its median) lies, by their upper bounds, s."""
SPREAD = 60.0
"""The least distance of the end of an interval from the median that is multiplied, s."""
Factors = Mapping[str, tuple[float, float]]
"""For each class of CLASSES, what the distances of the early and the late quantile from the median are multiplied with."""
STEP = 0.005
"""By how much a known start moves the logarithm of a factor, at most: 0.95 of it outwards, or 0.05 of it inwards."""
MOST_FACTOR = 10.0
"""No interval is widened by more, or narrowed to less than a part in so many."""
DAY = 86400
LATEST = 365 * DAY
"""Predictions of so long give the factors, the last ones, s."""
TAIL = 0.05
"""What may start before the interval, and what after it."""


def class_of(ahead: float) -> str:
    """The class of a start so many s ahead.

    >>> class_of(60), class_of(3600), class_of(10**6)
    ('under 1 h', '1 to 6 h', 'over 6 h')
    """
    return next((name for name, bound in CLASSES.items() if ahead < bound), "over 6 h")


def adjusted(quantiles: Array, factors: Factors) -> Array:
    """Quantiles (s ahead; shape (3, jobs)) whose distances from the median are multiplied with the factors of the job's class.

    >>> adjusted(np.array([[500.0], [1000.0], [3000.0]]), {"under 1 h": (1.5, 2.0)}).T.tolist()
    [[250.0, 1000.0, 5000.0]]
    """
    early, median, late = quantiles
    low, high = early.copy(), late.copy()
    for k in np.flatnonzero(np.isfinite(median)).tolist():
        pair = factors.get(class_of(median[k]))
        if pair is not None:
            low[k] = max(0.0, median[k] - pair[0] * max(median[k] - early[k], SPREAD))
            high[k] = median[k] + pair[1] * max(late[k] - median[k], SPREAD)
    return np.stack([low, median, high])


@dataclass(frozen=True)
class Outcome:
    """A prediction and what happened, all in s after the snapshot.

    `job`: its label; `made`: when it was predicted (Unix time); `early, median, late`: the prediction (inf for never); `by_limits`,
    `slurm`: other predictions, NaN for none; `real`: when it started.
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
        """The class of the prediction, by how far ahead it lies."""
        return class_of(self.median)

    @property
    def inside(self) -> bool:
        """Whether the job started within the interval."""
        return self.early <= self.real <= self.late

    def scores(self) -> tuple[float, float]:
        """How early and how late the job started, in the distances of the interval's ends from the median; negative on the other side."""
        if not np.isfinite(self.median):
            return (np.inf, -np.inf)
        late = (self.real - self.median) / max(self.late - self.median, SPREAD)
        return ((self.median - self.real) / max(self.median - self.early, SPREAD), late)


@dataclass(frozen=True)
class Score:
    """How good the predictions of a class were.

    `jobs`: predictions; `inside`: the part that started within the interval, `before`, `after` it. `error`: the median absolute error of
    the median, s; `error_limits`, `error_slurm`: of the other predictions, NaN without any; `slurm_jobs`: of how many. `width`: the median
    width, s.
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

    def as_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return asdict(self)


def scores_of(outcomes: Sequence[Outcome]) -> list[Score]:
    """The scores of all predictions, and of each class that has any."""
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


def factors_of(outcomes: Sequence[Outcome]) -> Factors:
    """What the distances of the interval's ends from the median are to be multiplied with, by class.

    The factors are 1 at first. Each start that becomes known, in the order in which they do, moves both ends of its class: outwards if it
    was on the outer side with the factors so far, else inwards, by a nineteenth of that; so an end comes to rest where 5 % of the starts
    are beyond it. Nothing is assumed of how predictions depend on each other, and many of one day can be wrong together. Sources: adaptive
    conformal inference, Gibbs & Candes, NeurIPS 2021, whose step this is; of quantiles as here, Angelopoulos, Candes, Tibshirani,
    NeurIPS 2023; for each end by itself Romano, Patterson, Candes, NeurIPS 2019.
    """
    logs: dict[str, list[float]] = {}
    most = math.log(MOST_FACTOR)
    for one in sorted(outcomes, key=lambda one: one.made + one.real):
        ends = logs.setdefault(one.name, [0.0, 0.0])
        for side, score in enumerate(one.scores()):
            moved = ends[side] + STEP * ((1 - TAIL) if score > math.exp(ends[side]) else -TAIL)
            ends[side] = min(max(moved, -most), most)
    return {name: (math.exp(early), math.exp(late)) for name, (early, late) in logs.items()}


def calibrated(outcomes: Sequence[Outcome], longest: int = LATEST) -> list[Outcome]:
    """The outcomes if each prediction had been adjusted with the factors of those before it whose jobs had started by then.

    Of these count those of the last `longest` s. In order of time.
    """
    adjusted_outcomes: list[Outcome] = []
    for moment in sorted({one.made for one in outcomes}):
        past = [one for one in outcomes if one.made >= moment - longest and one.made + one.real < moment]
        adjusted_outcomes += with_factors([one for one in outcomes if one.made == moment], factors_of(past))
    return adjusted_outcomes


def with_factors(outcomes: Sequence[Outcome], factors: Factors) -> list[Outcome]:
    """The outcomes as they would be if the predictions had been adjusted with these factors."""
    if not outcomes:
        return []
    quantiles = adjusted(np.array([(one.early, one.median, one.late) for one in outcomes]).T, factors)
    return [replace(one, early=float(low), late=float(high)) for one, low, high in zip(outcomes, quantiles[0], quantiles[2], strict=True)]
