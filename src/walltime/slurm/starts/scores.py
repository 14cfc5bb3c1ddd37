"""Score predictions of start times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from walltime.workload import Array

CLASSES = {"under 1 h": 3600, "1 to 6 h": 6 * 3600, "over 6 h": 2**62}
"""Classes of how far ahead the predicted start (its median) is, with their upper bounds, s."""


def distance_class(ahead: float) -> str:
    """Return the class of a start that is this many s ahead.

    >>> distance_class(60), distance_class(3600), distance_class(10**6)
    ('under 1 h', '1 to 6 h', 'over 6 h')
    """
    return next((name for name, bound in CLASSES.items() if ahead < bound), "over 6 h")


@dataclass(frozen=True)
class Outcome:
    """A prediction and the real start, s after the snapshot.

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
        """Return the class of the prediction, by how far ahead it is."""
        return distance_class(self.median)

    @property
    def inside(self) -> bool:
        """Return whether the job started within the interval."""
        return self.early <= self.real <= self.late


@dataclass(frozen=True)
class Score:
    """The scores of the predictions of a class.

    `jobs`: the number of predictions; `inside`, `before`, `after`: the shares of starts inside, before and after the interval. `error`: the
    median absolute error of the median, s; `error_limits`, `error_slurm`: the same for the other predictions, NaN without any;
    `slurm_jobs`: the number of Slurm's predictions. `width`: the median width of the interval, s.
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
    inside, before, after = (float(part.mean()) for part in ((early <= real) & (real <= late), real < early, real > late))
    with np.errstate(invalid="ignore"):
        width = late - early
    error, error_limits, error_slurm = (_median(np.abs(one - real)[~np.isnan(one)]) for one in (median, limits, slurm))
    count, width = int(np.isfinite(slurm).sum()), _median(width[np.isfinite(width)])
    return Score(name, len(group), inside, before, after, error, error_limits, error_slurm, count, width)


def _median(values: Array) -> float:
    return float(np.median(values)) if len(values) else float("nan")
