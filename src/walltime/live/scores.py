"""How good predictions of start times were, and what makes intervals of 90 % hold 90 %."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from walltime.live.horizons import CLASSES, SPREAD, Factors, adjusted, class_of

Array = np.ndarray

FEWEST, FEWEST_DAYS = 30, 7
"""With fewer predictions in a class, or predictions of fewer days, its intervals are left as they are."""
MOST_FACTOR = 10.0
"""No interval is widened by more."""
DAY = 86400
LATEST = 60 * DAY
"""Predictions of so long give the factors, the last ones, s."""
TAIL = 0.05
"""What may start before the interval, and what after it."""


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

    Each end is moved so far that all but 5 % of n past predictions would have had the start on its inner side: to the score that
    0.95 (n + 1) / n of them do not exceed. Every day has the same weight: the jobs of one queue wait for the same ends, so a thousand
    predictions of one day say little more than ten. Sources: split conformal prediction, as in Lei et al., J. Am. Stat. Assoc. 113 (2018),
    for each end by itself (Romano, Patterson, Candes, NeurIPS 2019); groups of equal weight as in Dunn, Wasserman, Ramdas, J. Am. Stat.
    Assoc. 118 (2023), but without their correction for the number of groups, which has no bound below 19 of them.
    """
    found: dict[str, tuple[float, float]] = {}
    for name in CLASSES:
        own = [one for one in outcomes if one.name == name]
        days, day_of, counts = np.unique([one.made // DAY for one in own], return_inverse=True, return_counts=True)
        if len(own) < FEWEST or len(days) < FEWEST_DAYS:
            continue
        scores = np.array([one.scores() for one in own])
        weights = 1 / counts[day_of]
        early, late = (_clipped(_quantile(scores[:, side], weights, (1 - TAIL) * (1 + 1 / len(own)))) for side in (0, 1))
        found[name] = (early, late)
    return found


def _quantile(values: Array, weights: Array, part: float) -> float:
    """The least value that this part of the weight does not exceed."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(values[order[min(len(values) - 1, int(np.searchsorted(reached, part - 1e-9)))]])


def _clipped(factor: float) -> float:
    return float(np.clip(factor, 0.0, MOST_FACTOR))


def calibrated(outcomes: Sequence[Outcome], longest: int = LATEST) -> list[Outcome]:
    """The outcomes if each prediction had been adjusted with the factors of those before it whose jobs had started by then.

    Of these count those of the last `longest` s. In order of time.
    """
    found: list[Outcome] = []
    for moment in sorted({one.made for one in outcomes}):
        past = [one for one in outcomes if one.made >= moment - longest and one.made + one.real < moment]
        found += with_factors([one for one in outcomes if one.made == moment], factors_of(past))
    return found


def with_factors(outcomes: Sequence[Outcome], factors: Factors) -> list[Outcome]:
    """The outcomes as they would be if the predictions had been adjusted with these factors."""
    if not outcomes:
        return []
    quantiles = adjusted(np.array([(one.early, one.median, one.late) for one in outcomes]).T, factors)
    return [replace(one, early=float(low), late=float(high)) for one, low, high in zip(outcomes, quantiles[0], quantiles[2], strict=True)]
