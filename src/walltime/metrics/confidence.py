"""Intervals of means: over replications, for paired differences and by bootstrap; relative spread."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from walltime.errors import WorkloadError
from walltime.wording import counted, shown_change

Array = np.ndarray

FEW_RUNS = 20
"""Fewer runs than this are described by their smallest and largest value, because percentiles of few runs contain too few further runs."""


@dataclass(frozen=True)
class Interval:
    """A mean with an interval, and a description of the interval."""

    mean: float
    low: float
    high: float
    what: str

    @classmethod
    def around(cls, mean: float, half: float, what: str) -> Self:
        """Return a symmetric interval around the mean."""
        return cls(mean, mean - half, mean + half, what)

    @property
    def half_width(self) -> float:
        """Return half the width of the interval."""
        return (self.high - self.low) / 2

    def as_change(self, scope: str, count: str) -> str:
        """Describe a change in percent with its interval, its scope, and the number of values.

        >>> Interval(-12.3, -20.0, -4.0, "").as_change("sampling of weeks", "9 weeks")
        '-12 % (90 % interval, sampling of weeks: -20 % to -4 %; 9 weeks)'
        """
        mean, low, high = (shown_change(value, self.low, self.high) for value in (self.mean, self.low, self.high))
        return f"{mean} (90 % interval, {scope}: {low} to {high}; {count})"


def mean_interval(values: Array, confidence: float = 0.90) -> Interval:
    """Return the confidence interval of the mean of independent values, by Student's t; raise WorkloadError for fewer than 2."""
    values = np.asarray(values, np.float64)
    if len(values) < 2:
        raise WorkloadError(f"a confidence interval needs at least 2 independent values, not {len(values)}", "too_few_values")
    mean = float(values.mean())
    half = student_t(0.5 + confidence / 2, len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return Interval.around(mean, half, f"{100 * confidence:g} % confidence interval of the mean")


def prediction_interval(values: Array, confidence: float = 0.90) -> Interval:
    """Return the interval around the mean of independent runs in which one further run would lie, by Student's t.

    `values`: float64, at least 2; WorkloadError for fewer. The interval is sqrt(n + 1) times as wide as the interval of the mean. It is
    more reliable for few runs: a rare outlier that these runs lack moves the mean over all runs, but one further run is seldom an outlier.
    Source: Hahn, J. Am. Stat. Assoc. 64 (1969).

    >>> found = prediction_interval(np.array([1.0, 2.0, 3.0]))
    >>> found.mean, round(found.half_width, 3)
    (2.0, 3.372)
    """
    interval = mean_interval(values, confidence)
    half = interval.half_width * math.sqrt(len(values) + 1)
    return Interval.around(interval.mean, half, f"{100 * confidence:g} % interval of one further run")


def percentile_band(values: Array, low: float = 5, high: float = 95) -> Interval:
    """Return the mean of replications, and the band between two percentiles of these replications alone.

    The band is not a confidence interval of the mean, although tsafrir06 calls it one. It describes new runs badly: only 63 % of them
    lie between the 5th and the 95th percentile of 5, and 84 % for 25; for these, use `range_of_runs`. Raises WorkloadError without values.
    Source: tsafrir06, section III.

    >>> band = percentile_band(np.arange(101))
    >>> band.mean, band.low, band.high
    (50.0, 5.0, 95.0)
    """
    values = np.asarray(values, np.float64)
    if not len(values):
        raise WorkloadError("a percentile band needs at least 1 replication", "too_few_values")
    below, above = np.percentile(values, [low, high])
    return Interval(float(values.mean()), float(below), float(above), f"{low:g}th to {high:g}th percentile of {len(values)} replications")


def range_of_runs(values: Array) -> Interval:
    """Return the mean of runs with different seeds, and the range in which one further run would lie.

    For fewer than 20 runs, the range is from the smallest to the largest value, and contains another run with probability
    `(n - 1) / (n + 1)`. From 20 runs on, it is from the 5th to the 95th percentile, with 90 %. Raises WorkloadError without `values`.
    Source: order statistics of n independent values divide the probability of a further one into n + 1 equal parts (Wilks, Ann. Math.
    Statist. 12, 1941); percentiles by Weibull's rule, p (n + 1).

    >>> range_of_runs(np.arange(5.0)).what, range_of_runs(np.arange(19, 70)).low
    ('smallest to largest of 5 runs; another run lies between them with a probability of 67 %', 20.6)
    """
    values = np.asarray(values, np.float64)
    count = len(values)
    if not count:
        raise WorkloadError("a range of runs needs at least 1 run", "too_few_values")
    low, high = ends_of_runs(values)
    return Interval(float(values.mean()), float(low), float(high), range_meaning(count))


def ends_of_runs(values: Array) -> tuple[Array, Array]:
    """Return the ends of `range_of_runs`, each with the shape of one run; `values`: float64, shape (runs, ...)."""
    low, high = np.percentile(values, [0, 100] if len(values) < FEW_RUNS else [5, 95], axis=0, method="weibull")
    return low, high


def range_meaning(runs: int) -> str:
    """Describe the range of this number of runs, and the probability that another run lies in it.

    >>> range_meaning(1), range_meaning(25)
    ('the only run', '5th to 95th percentile of 25 runs; another run lies between them with a probability of 90 %')
    """
    if runs < 2:
        return "the only run"
    what, share = ("smallest to largest", (runs - 1) / (runs + 1)) if runs < FEW_RUNS else ("5th to 95th percentile", 0.90)
    return f"{what} of {runs} runs; another run lies between them with a probability of {100 * share:.0f} %"


def paired_difference(values: Array, baseline: Array, confidence: float = 0.90) -> Interval:
    """Return the confidence interval of the mean difference between replications with the same seeds.

    Raises WorkloadError if the arrays differ in length or have fewer than 2 values.
    """
    if len(values) != len(baseline):
        raise WorkloadError(
            f"a paired difference needs equal numbers of replications, not {len(values)} and {len(baseline)}", "different_lengths"
        )
    interval = mean_interval(np.asarray(values, np.float64) - np.asarray(baseline, np.float64), confidence)
    return Interval(interval.mean, interval.low, interval.high, f"{interval.what} of the paired differences")


def paired_probability(values: Array, baseline: Array) -> float:
    """Return the two-sided p-value of Student's t test that the mean paired difference is 0; at least 2 pairs.

    >>> round(paired_probability(np.array([1.0, 2.0, 3.0]), np.zeros(3)), 4)
    0.0742
    """
    from scipy.special import stdtr  # loaded only for intervals, as it takes time

    change = np.asarray(values, np.float64) - np.asarray(baseline, np.float64)
    mean, error = abs(float(change.mean())), float(change.std(ddof=1)) / math.sqrt(len(change))
    return 2 * float(stdtr(len(change) - 1, -mean / error)) if error else float(not mean)


def holm(probabilities: Array) -> Array:
    """Return the p-values of a family of tests, corrected so that any true hypothesis is rejected as rarely as in a single test.

    `probabilities`: float64, one per test; no independence is assumed. Source: Holm, Scand. J. Statist. 6 (1979).

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(probabilities, kind="stable")
    corrected = np.empty(len(order))
    corrected[order] = np.minimum(np.maximum.accumulate(np.asarray(probabilities)[order] * np.arange(len(order), 0, -1)), 1)
    return corrected


def bootstrap(
    values: Array,
    groups: Array,
    statistic: Callable[[Array], float] = np.mean,
    *,
    samples: int = 1000,
    confidence: float = 0.90,
    seed: int = 0,
) -> Interval:
    """Return the percentile interval of a statistic, by resampling whole groups of jobs (users or weeks) with replacement.

    `values`: float64, one per job; `groups`: one label per job. Jobs of one group are dependent, so they must not be resampled singly.
    Raises WorkloadError without values or samples, or if the number of groups differs from the number of values.
    Source: Efron, Ann. Statist. 7 (1979); resampling by groups is ours.
    """
    if not len(values) or len(values) != len(groups) or samples < 1:
        given = f"{len(values)} values, {len(groups)} groups and {samples} samples"
        raise WorkloadError(f"the bootstrap needs at least 1 value, a group for each, and at least 1 sample, not {given}", "too_few_values")
    order = np.argsort(groups, kind="stable")
    _, first = np.unique(np.asarray(groups)[order], return_index=True)
    parts = np.split(np.asarray(values, np.float64)[order], first[1:])
    random = np.random.Generator(np.random.Philox(seed))
    drawn = [float(statistic(np.concatenate([parts[i] for i in random.integers(0, len(parts), len(parts))]))) for _ in range(samples)]
    below, above = np.percentile(drawn, [50 - 50 * confidence, 50 + 50 * confidence])
    what = f"{100 * confidence:g} % bootstrap interval over {counted(len(parts), 'group')}"
    return Interval(float(statistic(np.asarray(values, np.float64))), float(below), float(above), what)


def relative_spread(values: Array) -> float:
    """Return the standard deviation of replications divided by their mean; NaN for one value. Raises WorkloadError without values.

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
    from scipy.special import stdtrit  # loaded only for intervals, as it takes time

    if not 0.5 <= probability < 1 or degrees < 1:
        raise ValueError(f"the quantile must be from 0.5 to below 1 and the degrees of freedom at least 1, not {probability}, {degrees}")
    return float(stdtrit(degrees, probability))
