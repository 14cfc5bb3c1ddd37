"""The mean of a short series, such as of weeks or windows one after the other, with an interval over blocks of neighbours."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from walltime.metrics.confidence import Interval, mean_interval, student_t

Array = np.ndarray
BLOCKS = 5
"""Blocks of neighbours that an interval of a series is made of: few, as a log's weeks resemble each other for months."""


def series_interval(values: Array, confidence: float = 0.90) -> Interval:
    """Confidence interval of the mean of values that follow each other in time, by Student's t over five blocks of neighbours.

    `values`: float64, at least 2; fewer than five are a block each. Blocks differ in length by one value at most and count by it. The
    interval is wider by `widening`, as neighbouring blocks are alike where neighbouring values are. Raises WorkloadError for fewer than 2
    values.

    Source: Schmeiser, Oper. Res. 30 (1982), on how many batches are worth it; that it is widened is ours.

    >>> found = series_interval(np.array([3.0, 1.0, 2.0, 5.0, 4.0, 2.0, 1.0, 4.0, 3.0, 5.0]))
    >>> found.mean, round(found.half_width, 3)
    (3.0, 1.075)
    """
    values = np.asarray(values, np.float64)
    if len(values) < 2:
        return mean_interval(values, confidence)
    blocks = min(BLOCKS, len(values))
    parts = np.array_split(values, blocks)
    mean = float(values.mean())
    weights = np.array([len(part) for part in parts])
    away = np.array([part.mean() for part in parts]) - mean
    error = math.sqrt(float(weights @ away**2) / (blocks - 1) / len(values))
    half = student_t(0.5 + confidence / 2, blocks - 1) * error * widening(values)
    return Interval.around(mean, half, f"{100 * confidence:g} % confidence interval of the mean, over {blocks} blocks of neighbours")


def widening(values: Array) -> float:
    """By how much the standard error of a mean from five blocks is too small where neighbouring values are alike; at least 1.

    `values`: float64, in order of time; of fewer than three nothing is known, and it is 1. The values are taken for a first-order
    autoregressive process, of which the error and what the blocks let expect of it follow from the correlation of neighbours. As a short
    series shows less correlation than there is, it is the corrected one and one standard error more; but at most (n - 1) / (n + 1), whose
    autocorrelation time is that of all n values, as what lasts for longer cannot be seen in them. So it is below 3.

    Source: bias and error of the correlation: Kendall, Biometrika 41 (1954), and Bartlett, J. R. Stat. Soc. Suppl. 8 (1946). The bound is
    ours, tried out with moving averages and with values that stay for a while at one of two levels.

    >>> widening(np.array([1.0, -1.0] * 10)), round(widening(np.repeat([1.0, -1.0, 1.0, -1.0], 5)), 2)
    (1.0, 2.67)
    """
    correlation = neighbour_correlation(values)
    if math.isnan(correlation):
        return 1.0
    count = len(values)
    upper = correlation + (1 + 3 * correlation) / count + math.sqrt((1 - correlation**2) / count)
    return max(1.0, _too_small(count, min(upper, (count - 1) / (count + 1))))


def _too_small(count: int, correlation: float) -> float:
    """The standard error of the mean of so many autoregressive values over that which their blocks let expect; `correlation` below 1."""

    def of_sum(length: int) -> float:
        """The variance of the sum of so many neighbours, where that of each is 1."""
        lags = np.arange(1, length)
        return length + 2 * float((length - lags) @ max(correlation, 0.0) ** lags)

    lengths = [len(part) for part in np.array_split(np.arange(count), min(BLOCKS, count))]
    of_mean = of_sum(count) / count**2
    expected = (sum(of_sum(length) / length for length in lengths) / count - of_mean) / (len(lengths) - 1)
    return math.sqrt(of_mean / expected)


def halves_differ(values: Array, confidence: float = 0.90) -> bool:
    """Whether the means of the earlier and of the later half of a series differ beyond chance (Welch's t).

    `values`: float64, in order of time. Fewer than eight do not say. Source: Welch, Biometrika 34 (1947).

    >>> halves_differ(np.array([1.0, 2.0, 1.0, 2.0, 5.0, 6.0, 5.0, 6.0])), halves_differ(np.array([1.0, 2.0] * 4))
    (True, False)
    """
    values = np.asarray(values, np.float64)
    if len(values) < 8:
        return False
    early, late = values[: len(values) // 2], values[len(values) // 2 :]
    one, other = early.var(ddof=1) / len(early), late.var(ddof=1) / len(late)
    if one + other == 0:
        return bool(early.mean() != late.mean())
    degrees = int((one + other) ** 2 / (one**2 / (len(early) - 1) + other**2 / (len(late) - 1)))
    return bool(abs(early.mean() - late.mean()) > student_t(0.5 + confidence / 2, max(degrees, 1)) * math.sqrt(one + other))


def neighbour_correlation(values: Array) -> float:
    """The correlation between neighbours (lag 1); not a number for fewer than three values, or equal ones.

    >>> neighbour_correlation(np.array([1.0, 2.0, 3.0, 4.0]))
    0.25
    """
    away = np.asarray(values, np.float64) - np.mean(values)
    power = float(away @ away)
    return float(away[1:] @ away[:-1]) / power if len(away) > 2 and power > 0 else float("nan")


def stratified_interval(values: Array, subjects: Sequence[object], confidence: float = 0.90) -> Interval:
    """Confidence interval of the mean of values of several subjects that are fixed, not drawn: only differences within each count.

    `values`: float64, at least 2; `subjects`: of each. The mean is that of all values. Where each subject has one value, it is Student's t
    over all, as if the subjects were drawn. Degrees of freedom by Satterthwaite, Biometrics Bull. 2 (1946). Raises WorkloadError for
    fewer than 2 values.

    >>> found = stratified_interval(np.array([1.0, 2.0, 11.0, 12.0]), ["a", "a", "b", "b"])
    >>> found.mean, round(found.half_width, 3)
    (6.5, 1.032)
    """
    values = np.asarray(values, np.float64)
    errors, degrees = stratified_errors(values[None], subjects)
    if degrees[0] < 1:
        return mean_interval(values, confidence)
    mean, half = float(values.mean()), student_t(0.5 + confidence / 2, int(degrees[0])) * float(errors[0])
    return Interval.around(mean, half, f"{100 * confidence:g} % confidence interval of the mean, the subjects fixed")


def stratified_errors(rows: Array, subjects: Sequence[object]) -> tuple[Array, Array]:
    """Standard errors of the means of rows, and their degrees of freedom, where only differences within a subject are chance.

    `rows`: float64, rows x values; `subjects`: of each value. Degrees are 0 where no subject has two values, and whole numbers.
    """
    groups = same_subject(subjects)
    total = rows.shape[1]
    parts, squares = np.zeros(len(rows)), np.zeros(len(rows))
    free = 0
    for group in groups:
        if len(group) < 2:
            continue
        own = len(group) / total**2 * rows[:, group].var(axis=1, ddof=1)
        parts += own
        squares += own**2 / (len(group) - 1)
        free += len(group) - 1
    degrees = np.floor(np.divide(parts**2, squares, out=np.full(len(rows), float(free)), where=squares > 0) + 1e-9)
    return np.sqrt(parts), degrees


def same_subject(subjects: Sequence[object]) -> list[Array]:
    """The places of each subject's values."""
    names = list(subjects)
    return [np.array([place for place, one in enumerate(names) if one == name]) for name in dict.fromkeys(names)]
