"""The mean of a short time series, such as weeks or windows, with an interval from blocks of successive values."""

import math
from collections.abc import Sequence

import numpy as np

from walltime.metrics.confidence import Interval, mean_interval, student_t

Array = np.ndarray
BLOCKS = 5
"""Number of blocks for the interval of a series. It is low because the weeks of a log resemble each other for months."""


def series_interval(values: Array, confidence: float = 0.90) -> Interval:
    """Return the confidence interval of the mean of a time series, by Student's t over five blocks of neighbours.

    `values`: float64, at least 2; fewer than five are a block each. Blocks differ in length by at most one value and are weighted by it.
    The interval is multiplied by `widening`, as neighbouring blocks are alike if neighbouring values are. Raises WorkloadError for fewer
    than 2 values. Source: Schmeiser, Oper. Res. 30 (1982), on the number of batches; the widening is ours.

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
    """Return the factor, 1 to 3, by which neighbouring values that are alike make the standard error of a mean from five blocks too small.

    `values`: float64, in order of time; 1 for fewer than three. The values are modelled as a first-order autoregressive process, whose
    error and whose expected estimate from blocks follow from the correlation of neighbours. A short series shows too little correlation, so
    the bias is corrected and one standard error added, up to (n - 1) / (n + 1), at which the autocorrelation time is all n values.
    Source: bias and error of the correlation: Kendall, Biometrika 41 (1954), and Bartlett, J. R. Stat. Soc. Suppl. 8 (1946). The bound is
    ours, tested with moving averages and with values that stay for a while at one of two levels.

    >>> widening(np.array([1.0, -1.0] * 10)), round(widening(np.repeat([1.0, -1.0, 1.0, -1.0], 5)), 2)
    (1.0, 2.67)
    """
    correlation = neighbour_correlation(values)
    if math.isnan(correlation):
        return 1.0
    count = len(values)
    upper = correlation + (1 + 3 * correlation) / count + math.sqrt((1 - correlation**2) / count)
    return max(1.0, _error_ratio(count, min(upper, (count - 1) / (count + 1))))


def _error_ratio(count: int, correlation: float) -> float:
    """Return the ratio of an autoregressive mean's standard error to its expected estimate from blocks; `correlation`: below 1."""

    def sum_variance(length: int) -> float:
        """Return the variance of the sum of neighbours with variance 1 each."""
        lags = np.arange(1, length)
        return length + 2 * float((length - lags) @ max(correlation, 0.0) ** lags)

    lengths = [len(part) for part in np.array_split(np.arange(count), min(BLOCKS, count))]
    true = sum_variance(count) / count**2
    expected = (sum(sum_variance(length) / length for length in lengths) / count - true) / (len(lengths) - 1)
    return math.sqrt(true / expected)


def halves_differ(values: Array, confidence: float = 0.90) -> bool:
    """Return whether the means of the earlier and the later half of a series differ beyond chance, by Welch's t.

    `values`: float64, in order of time; False for fewer than eight. Source: Welch, Biometrika 34 (1947).

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
    """Return the correlation between neighbours (lag 1); nan for fewer than three values, or equal ones.

    >>> neighbour_correlation(np.array([1.0, 2.0, 3.0, 4.0]))
    0.25
    """
    away = np.asarray(values, np.float64) - np.mean(values)
    power = float(away @ away)
    return float(away[1:] @ away[:-1]) / power if len(away) > 2 and power > 0 else float("nan")


def stratified_interval(values: Array, subjects: Sequence[object], confidence: float = 0.90) -> Interval:
    """Return the confidence interval of the mean over fixed subjects: only differences within a subject count as chance.

    `values`: float64, at least 2; `subjects`: one per value. If each subject has one value, the interval is by Student's t over all, as if
    the subjects were drawn. Degrees of freedom by Satterthwaite, Biometrics Bull. 2 (1946). Raises WorkloadError for fewer than 2 values.

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
    """Return the standard errors of the rows' means, and their degrees of freedom; only differences within a subject count as chance.

    `rows`: float64, rows x values; `subjects`: one per value. Degrees are whole numbers, 0 if no subject has two values.
    """
    parts, squares, free = np.zeros(len(rows)), np.zeros(len(rows)), 0
    for group in same_subject(subjects):
        if len(group) > 1:
            own = len(group) / rows.shape[1] ** 2 * rows[:, group].var(axis=1, ddof=1)
            parts += own
            squares += own**2 / (len(group) - 1)
            free += len(group) - 1
    degrees = np.floor(np.divide(parts**2, squares, out=np.full(len(rows), float(free)), where=squares > 0) + 1e-9)
    return np.sqrt(parts), degrees


def same_subject(subjects: Sequence[object]) -> list[Array]:
    """Return the indices of each subject's values."""
    names = list(subjects)
    return [np.array([place for place, one in enumerate(names) if one == name]) for name in dict.fromkeys(names)]
