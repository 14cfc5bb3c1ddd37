"""How far a mean can be trusted: bands over replications, paired differences, bootstrap, relative spread."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from walltime.errors import WorkloadError
from walltime.wording import shown_change

Array = np.ndarray

FEW_RUNS = 20
"""Of fewer runs the smallest and the largest are shown, as percentiles of so few hold much less than they say."""


@dataclass(frozen=True)
class Interval:
    """A mean with an interval, and a description of the interval."""

    mean: float
    low: float
    high: float
    what: str

    @classmethod
    def around(cls, mean: float, half: float, what: str) -> Interval:
        """The interval from so far below the mean to as far above it."""
        return cls(mean, mean - half, mean + half, what)

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def as_change(self, scope: str, count: str) -> str:
        """A change in percent with its interval, what that is of, and how many values there were.

        >>> Interval(-12.3, -20.0, -4.0, "").as_change("such weeks", "9 weeks")
        '-12 % (90 % interval of such weeks: -20 % to -4 %; 9 weeks)'
        """
        mean, low, high = (shown_change(value, self.low, self.high) for value in (self.mean, self.low, self.high))
        return f"{mean} (90 % interval of {scope}: {low} to {high}; {count})"


def mean_interval(values: Array, confidence: float = 0.90) -> Interval:
    """Confidence interval of the mean of independent values, by Student's t.

    `values`: float64, at least 2. Raises WorkloadError for fewer.
    """
    values = np.asarray(values, np.float64)
    if len(values) < 2:
        raise WorkloadError("a confidence interval needs at least 2 independent values", "too_few_values")
    mean = float(values.mean())
    half = student_t(0.5 + confidence / 2, len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return Interval.around(mean, half, f"{100 * confidence:g} % confidence interval of the mean")


def prediction_interval(values: Array, confidence: float = 0.90) -> Interval:
    """Interval around the mean of independent runs in which a further one would lie, by Student's t.

    `values`: float64, at least 2. The interval is wider than that of the mean by the root of one more than their number, and asks less of a
    few runs: where a rare one is far away from all others, the mean over all is that of runs that the few may lack, but a further one is
    seldom rare. Raises WorkloadError for fewer than 2 values.
    Source: Hahn, J. Am. Stat. Assoc. 64 (1969).

    >>> found = prediction_interval(np.array([1.0, 2.0, 3.0]))
    >>> found.mean, round(found.half_width, 3)
    (2.0, 3.372)
    """
    of_mean = mean_interval(values, confidence)
    half = of_mean.half_width * math.sqrt(len(values) + 1)
    return Interval.around(of_mean.mean, half, f"{100 * confidence:g} % interval of one further run")


def percentile_band(values: Array, low: float = 5, high: float = 95) -> Interval:
    """Mean of the results of replications, and the band between two of their percentiles, of these replications alone.

    It is no confidence interval of the mean, though tsafrir06 calls it one, and says little of further replications: of those, 63 % lie
    between the 5th and the 95th percentile of 5, 84 % between those of 25. `range_of_runs` is of a further one.
    Source: tsafrir06, section III. Raises WorkloadError without any replication.

    >>> band = percentile_band(np.arange(101))
    >>> band.mean, band.low, band.high
    (50.0, 5.0, 95.0)
    """
    values = np.asarray(values, np.float64)
    if not len(values):
        raise WorkloadError("a band of percentiles needs at least 1 replication", "too_few_values")
    below, above = np.percentile(values, [low, high])
    return Interval(float(values.mean()), float(below), float(above), f"{low:g}th to {high:g}th percentile of {len(values)} replications")


def range_of_runs(values: Array) -> Interval:
    """Mean of runs that differ by their seeds, and the range in which a further one would lie.

    The smallest to the largest of fewer than 20 runs, which holds a further one with a probability of (n - 1) / (n + 1), as `what` says;
    from 20 on the 5th to the 95th percentile, taken so that it is 90 %. `values`: float64. Raises WorkloadError without any.
    Source: order statistics of n independent values divide a further one's probability into n + 1 equal parts (Wilks, Ann. Math. Statist.
    12, 1941); percentiles by Weibull's rule, p (n + 1).

    >>> range_of_runs(np.arange(5.0)).what, range_of_runs(np.arange(19, 70)).low
    ('smallest to largest of 5 runs; a further one lies between with 67 %', 20.6)
    """
    values = np.asarray(values, np.float64)
    count = len(values)
    if not count:
        raise WorkloadError("a range of runs needs at least 1 run", "too_few_values")
    low, high = ends_of_runs(values)
    return Interval(float(values.mean()), float(low), float(high), range_meaning(count))


def ends_of_runs(values: Array) -> tuple[Array, Array]:
    """The ends of `range_of_runs`; `values`: float64, shape (runs, ...); the ends have the shape of a run."""
    low, high = np.percentile(values, [0, 100] if len(values) < FEW_RUNS else [5, 95], axis=0, method="weibull")
    return low, high


def range_meaning(runs: int) -> str:
    """What the range of so many runs is, and how often a further one lies in it.

    >>> range_meaning(1), range_meaning(25)
    ('the only run', '5th to 95th percentile of 25 runs; a further one lies between with 90 %')
    """
    if runs < 2:
        return "the only run"
    what, share = ("smallest to largest", (runs - 1) / (runs + 1)) if runs < FEW_RUNS else ("5th to 95th percentile", 0.90)
    return f"{what} of {runs} runs; a further one lies between with {100 * share:.0f} %"


def paired_difference(values: Array, baseline: Array, confidence: float = 0.90) -> Interval:
    """Confidence interval of the mean difference between two sets of replications with the same seeds.

    Raises WorkloadError if the sets differ in length or have fewer than 2 values.
    """
    if len(values) != len(baseline):
        raise WorkloadError(f"{len(values)} and {len(baseline)} replications cannot be paired", "different_lengths")
    interval = mean_interval(np.asarray(values, np.float64) - np.asarray(baseline, np.float64), confidence)
    return Interval(interval.mean, interval.low, interval.high, f"{interval.what} of the paired differences")


def bootstrap(
    values: Array,
    groups: Array,
    statistic: Callable[[Array], float] = np.mean,
    *,
    samples: int = 1000,
    confidence: float = 0.90,
    seed: int = 0,
) -> Interval:
    """Percentile interval of a statistic from resampling whole groups of jobs (users or weeks) with replacement.

    `values`: float64, one per job; `groups`: one label per job. Jobs of one group are dependent, so they must not be resampled
    individually.
    Source: Efron, Ann. Statist. 7 (1979); resampling by groups is ours.

    Raises WorkloadError without any value, for groups that are not one per value, and without any sample.
    """
    if not len(values) or len(values) != len(groups) or samples < 1:
        needs = "1 value or more, a group for each, and 1 sample or more"
        raise WorkloadError(
            f"the bootstrap needs {needs}, not {len(values)} values, {len(groups)} groups and {samples} samples", "too_few_values"
        )
    order = np.argsort(groups, kind="stable")
    _, first = np.unique(np.asarray(groups)[order], return_index=True)
    parts = np.split(np.asarray(values, np.float64)[order], first[1:])
    random = np.random.Generator(np.random.Philox(seed))
    drawn = [float(statistic(np.concatenate([parts[i] for i in random.integers(0, len(parts), len(parts))]))) for _ in range(samples)]
    below, above = np.percentile(drawn, [50 - 50 * confidence, 50 + 50 * confidence])
    what = f"{100 * confidence:g} % bootstrap interval over {len(parts)} groups"
    return Interval(float(statistic(np.asarray(values, np.float64))), float(below), float(above), what)


def relative_spread(values: Array) -> float:
    """Standard deviation over mean of replications that should agree: how chaotic a result is.

    Not a number for a single one; raises WorkloadError without any.

    >>> relative_spread(np.array([1.0, 1.0, 1.0]))
    0.0
    """
    values = np.asarray(values, np.float64)
    if not len(values):
        raise WorkloadError("a spread needs at least 1 replication", "too_few_values")
    mean = float(values.mean())
    return float(values.std(ddof=1)) / abs(mean) if len(values) > 1 and mean else 0.0 if len(values) > 1 else math.nan


def student_t(probability: float, degrees: int) -> float:
    """Return a quantile of Student's t distribution.

    >>> round(student_t(0.95, 9), 4), round(student_t(0.95, 99), 4)
    (1.8331, 1.6604)
    """
    from scipy.special import stdtrit  # only those who need an interval wait for it

    if not 0.5 <= probability < 1 or degrees < 1:
        raise ValueError(f"the quantile must be from 0.5 to below 1 and the degrees of freedom at least 1, not {probability}, {degrees}")
    return float(stdtrit(degrees, probability))
