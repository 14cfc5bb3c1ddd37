"""Weeks of a log: the interval of a mean over many more such weeks, and where none can be given."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from walltime.metrics.confidence import Interval, student_t
from walltime.metrics.intervals import LEVEL, SHOWN_LEVEL
from walltime.metrics.machine import FEW_WAITING, queue_stretches
from walltime.metrics.series import BLOCKS, widening

Array = np.ndarray

WEEK = 7 * 86_400
FEWEST_WEEKS = 4
"""Of fewer weeks no other logs are put together."""
FEWEST_WEEKS_OF_PART = 4
MOST_QUEUED = 0.9
"""Share of the time with a queue above which no part of a log is independent of the one before."""


def weeks_of(submit: Array) -> Array:
    """The number of the week in which each job is submitted, from the first submission on, int64."""
    return (submit - submit.min()) // WEEK if len(submit) else np.zeros(0, np.int64)


def parts_of(submit: Array) -> Array:
    """Which of the five parts of the log, equally long, each job is submitted in, int64.

    A queue makes a week depend on those before it, so the parts are as long as they can be and still say how they differ.
    """
    if not len(submit):
        return np.zeros(0, np.int64)
    since = submit - submit.min()
    return since * BLOCKS // (int(since.max()) + 1)


def queued_share(submit: Array, start: Array) -> float:
    """Share of the time up to the last submission in which jobs wait, on average 10 or more until none does.

    >>> queued_share(np.array([0] * 20 + [100]), np.array([50] * 20 + [100]))
    0.5
    """
    if not len(submit) or submit.max() == submit.min():
        return 0.0
    lengths, means = queue_stretches(submit, start, int(submit.max()))
    return float(lengths[means >= FEW_WAITING].sum()) / int(submit.max() - submit.min())


def why_no_interval(submit: Array, queued: float) -> str:
    """Why there is no interval over such weeks; empty if there can be one.

    `submit`: of all jobs of the log, s; `queued`: the largest `queued_share` of the schedules that are compared.

    >>> why_no_interval(np.arange(3) * WEEK, 0.5)
    'it takes 20 weeks'
    """
    fewest = BLOCKS * FEWEST_WEEKS_OF_PART
    if not len(submit) or submit.max() - submit.min() < (fewest - 1) * WEEK:
        return f"it takes {fewest} weeks"
    if queued > MOST_QUEUED:
        return f"jobs queue for {100 * queued:.0f} % of the time, so that no week is independent of those before it"
    return ""


def over_weeks(values: Array, weeks: Array, parts: Array, queued: float = 0.0) -> Interval | None:
    """The mean of these values, and the interval of the mean over many more such weeks; None where not all parts of the log have jobs.

    `values`: float64, `weeks` and `parts`: int64, from `weeks_of` and `parts_of` over the whole log; each of shape (jobs,). For paired
    differences the interval is paired. The schedule is taken as given: jobs are not submitted otherwise because others wait longer. Ask
    `why_no_interval` first. The interval is wider where neighbouring weeks are alike (`walltime.metrics.series.widening`). `queued`: as in
    `why_no_interval`. On the side to which parts lie out the interval is longer by 1 / (1 - queued): long queues are rare, but the longer
    the fuller the machine is, and a log may lack those that move the mean.
    Source: Student's t of the ratio of sums over parts (Cochran, Sampling Techniques, 3rd ed., 1977, section 6.4). That the parts are few
    and long, and one side is longer, is ours; how often it holds is measured by `validation/coverage_weeks.py`.

    >>> interval = over_weeks(np.array([1.0, 3.0, 1.0, 3.0, 2.0]), np.arange(0, 20, 4), np.arange(5))
    >>> interval.mean, round(interval.low, 2), round(interval.high, 2), interval.what
    (2.0, 0.93, 3.07, '90 % interval of the mean over such weeks, from 5 parts of the log')
    """
    count = np.bincount(parts, minlength=BLOCKS)
    if not count.all():
        return None
    mean = float(np.mean(values))
    away = (np.bincount(parts, weights=values, minlength=BLOCKS) - mean * count) / count.mean()
    error = float(np.sqrt(away @ away / (BLOCKS - 1) / BLOCKS)) * widening(np.bincount(weeks, weights=values - mean))
    half = student_t(0.5 + LEVEL / 2, BLOCKS - 1) * error
    skew = float((away**3).sum())
    far = 1 / (1 - min(queued, MOST_QUEUED))
    below, above = (far, 1.0) if skew < 0 else (1.0, far)
    what = f"{SHOWN_LEVEL} interval of the mean over such weeks, from {BLOCKS} parts of the log"
    return Interval(mean, mean - below * half, mean + above * half, what)


@dataclass(frozen=True, eq=False)
class LogWeeks:
    """The week and the part of the log in which each job is submitted, the share of the time with a queue, and why there is no interval."""

    weeks: Array
    parts: Array
    queued: float
    withheld: str

    @classmethod
    def of(cls, submit: Array, *schedules: tuple[Array, Array]) -> LogWeeks:
        """Divide a log with these submissions; of the schedules, each submissions and starts, the one with the longest queues counts."""
        queued = max(queued_share(*one) for one in schedules)
        return cls(weeks_of(submit), parts_of(submit), queued, why_no_interval(submit, queued))

    def ends(self, values: Array, jobs: Array) -> tuple[float, float]:
        """The ends of the interval of the mean over many more such weeks; nan where there is none. `values`: of these jobs."""
        interval = None if self.withheld else over_weeks(values.astype(np.float64), self.weeks[jobs], self.parts[jobs], self.queued)
        return (math.nan, math.nan) if interval is None else (interval.low, interval.high)


def largest_of_parts(values: Array, parts: Array) -> float:
    """The largest absolute mean of a part with jobs."""
    count = np.bincount(parts)
    total = np.bincount(parts, weights=values)
    return float(np.abs(total[count > 0] / count[count > 0]).max())


def share_that_agrees(values: Array, weeks: Array) -> float:
    """Share of the weeks with jobs in which the mean of the values has the sign of the mean over all; nan where that is 0."""
    mean = float(np.mean(values)) if len(values) else 0.0
    if not mean:
        return float("nan")
    _, place = np.unique(weeks, return_inverse=True)
    return float(np.mean(np.sign(np.bincount(place, weights=values)) == np.sign(mean)))
