"""Estimate an interval for the mean over many more weeks like the weeks of a log, or the reason why none can be given."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from walltime.metrics.confidence import Interval, student_t
from walltime.metrics.intervals import LEVEL, SHOWN_LEVEL
from walltime.metrics.machine import FEW_WAITING, queue_stretches
from walltime.metrics.series import BLOCKS, widening

Array = np.ndarray

WEEK = 7 * 86_400
FEWEST_WEEKS = 4
"""Minimum number of weeks for resampling other logs."""
FEWEST_WEEKS_OF_PART = 4
MOST_QUEUED = 0.9
"""Share of the time with a queue above which the parts of a log depend on each other."""


def weeks_of(submit: Array) -> Array:
    """Return the number of the week in which each job is submitted, from the first submission on, int64."""
    return (submit - submit.min()) // WEEK if len(submit) else np.zeros(0, np.int64)


def parts_of(submit: Array) -> Array:
    """Return the number of the part of the log, one of five of equal length, in which each job is submitted, int64.

    A queue makes a week depend on earlier weeks, so the parts are as long as possible while their spread can still be estimated.
    """
    if not len(submit):
        return np.zeros(0, np.int64)
    since = submit - submit.min()
    return since * BLOCKS // (int(since.max()) + 1)


def queued_share(submit: Array, start: Array) -> float:
    """Return the share of the time, up to the last submission, that lies in stretches with on average 10 or more waiting jobs.

    >>> queued_share(np.array([0] * 20 + [100]), np.array([50] * 20 + [100]))
    0.5
    """
    if not len(submit) or submit.max() == submit.min():
        return 0.0
    lengths, means = queue_stretches(submit, start, int(submit.max()))
    return float(lengths[means >= FEW_WAITING].sum()) / int(submit.max() - submit.min())


def no_interval_reason(submit: Array, queued: float) -> str:
    """Return the reason why no interval under sampling of weeks can be given; empty if one can.

    `submit`: the submissions of all jobs of the log, s; `queued`: the largest `queued_share` of the compared schedules.

    >>> no_interval_reason(np.arange(3) * WEEK, 0.5)
    'it needs at least 20 weeks'
    """
    fewest = BLOCKS * FEWEST_WEEKS_OF_PART
    if not len(submit) or submit.max() - submit.min() < (fewest - 1) * WEEK:
        return f"it needs at least {fewest} weeks"
    if queued > MOST_QUEUED:
        return f"jobs queue for {100 * queued:.0f} % of the time, so that no week is independent of the weeks before it"
    return ""


def mean_over_weeks(values: Array, weeks: Array, parts: Array, queued: float = 0.0, base: Array | None = None) -> Interval | None:
    """Return the mean of these values, and its interval under sampling of weeks; None if a part of the log has no jobs.

    `values`: float64, `weeks` and `parts`: int64, from `weeks_of` and `parts_of` over the whole log; each of shape (jobs,). Paired
    differences give a paired interval. Submissions are assumed not to depend on waits. Call `no_interval_reason` first, with the same
    `queued`. `base`: the values to which the changes are relative, float64, such as today's waits. The interval is then computed for
    sum(values) / sum(base) and multiplied by the mean of `base`, because relative changes vary much less from week to week: weeks with long
    waits have large differences. The interval is widened if neighbouring weeks are alike (`walltime.metrics.series.widening`). The half
    towards the outlying parts is multiplied by 1 / (1 - queued): long queues are rare but dominate the mean, and the log may have too few.
    Source: Student's t of the ratio of sums over parts (Cochran, Sampling Techniques, 3rd ed., 1977, section
    6.4). The few long parts and the longer side are ours; `validation/coverage_weeks.py` measures the coverage.

    >>> interval = mean_over_weeks(np.array([1.0, 3.0, 1.0, 3.0, 2.0]), np.arange(0, 20, 4), np.arange(5))
    >>> interval.mean, round(interval.low, 2), round(interval.high, 2), interval.what
    (2.0, 0.93, 3.07, '90 % interval of the mean under sampling of weeks, from 5 parts of the log')
    """
    count = np.bincount(parts, minlength=BLOCKS)
    if not count.all():
        return None
    mean = float(np.mean(values))
    expected = np.full(len(values), mean) if base is None or not base.any() else base * (values.sum() / base.sum())
    away = np.bincount(parts, weights=values - expected, minlength=BLOCKS) / count.mean()
    error = float(np.sqrt(away @ away / (BLOCKS - 1) / BLOCKS)) * widening(np.bincount(weeks, weights=values - expected))
    half = student_t(0.5 + LEVEL / 2, BLOCKS - 1) * error
    skew = float((away**3).sum())
    far = 1 / (1 - min(queued, MOST_QUEUED))
    below, above = (far, 1.0) if skew < 0 else (1.0, far)
    what = f"{SHOWN_LEVEL} interval of the mean under sampling of weeks, from {BLOCKS} parts of the log"
    return Interval(mean, mean - below * half, mean + above * half, what)


@dataclass(frozen=True, eq=False)
class LogWeeks:
    """The week and the part of the log of each submission, the share of time with a queue, and the reason if an interval is missing."""

    weeks: Array
    parts: Array
    queued: float
    withheld: str

    @classmethod
    def of(cls, submit: Array, *schedules: tuple[Array, Array]) -> Self:
        """Divide a log with these submissions; `schedules`: their submissions and starts; the schedule with the longest queues counts."""
        queued = max(queued_share(*one) for one in schedules)
        return cls(weeks_of(submit), parts_of(submit), queued, no_interval_reason(submit, queued))

    def ends(self, values: Array, jobs: Array, base: Array | None = None) -> tuple[float, float]:
        """Return the ends of the interval for the mean of these jobs' values under sampling of weeks; nan without an interval.

        `base`: the values to which the changes are relative, as in `mean_over_weeks`.
        """
        known = (values.astype(np.float64), self.weeks[jobs], self.parts[jobs], self.queued, base)
        interval = None if self.withheld else mean_over_weeks(*known)
        return (math.nan, math.nan) if interval is None else (interval.low, interval.high)


def largest_part_mean(values: Array, parts: Array) -> float:
    """Return the largest absolute mean over a part of the log; parts without jobs are ignored."""
    count = np.bincount(parts)
    total = np.bincount(parts, weights=values)
    return float(np.abs(total[count > 0] / count[count > 0]).max())


def agreeing_share(values: Array, weeks: Array) -> float:
    """Return the share of weeks with jobs in which the mean of the values has the sign of the overall mean; nan if that is 0."""
    mean = float(np.mean(values)) if len(values) else 0.0
    if not mean:
        return float("nan")
    _, place = np.unique(weeks, return_inverse=True)
    return float(np.mean(np.sign(np.bincount(place, weights=values)) == np.sign(mean)))
