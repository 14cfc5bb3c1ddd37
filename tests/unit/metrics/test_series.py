"""Intervals of series: over blocks of neighbours, and over subjects that are fixed."""

import numpy as np
import pytest
from scipy import signal, stats

from tests.errors import raises
from walltime.errors import WorkloadError
from walltime.metrics import halves_differ, mean_interval, series_interval, stratified_interval
from walltime.metrics.series import widening


def autoregressive(share: float, count: int, runs: int, seed: int) -> np.ndarray:
    """Series in which neighbours correlate by `share`, shape (runs, count); their mean is 0."""
    noise = np.random.default_rng(seed).normal(size=(runs, count + 1000))
    return signal.lfilter([1.0], [1.0, -share], noise, axis=1)[:, 1000:]


def test_series_interval__is_students_t_over_five_blocks_and_wider():
    values = np.random.default_rng(1).normal(size=60)
    found = series_interval(values)
    means = values.reshape(5, 12).mean(axis=1)
    theirs = stats.sem(means) * stats.t.ppf(0.95, 4)
    assert found.mean == pytest.approx(means.mean())
    assert found.half_width == pytest.approx(theirs * widening(values))
    few = series_interval(values[:4])
    assert few.half_width == pytest.approx(mean_interval(values[:4]).half_width * widening(values[:4])), "each is a block"
    assert series_interval(values[:2]).half_width == pytest.approx(mean_interval(values[:2]).half_width)


def test_series_interval__counts_each_value_once_where_blocks_differ_in_length():
    values = np.arange(13.0)
    found = series_interval(values)
    assert found.mean == 6
    blocks = [np.arange(0, 3), np.arange(3, 6), np.arange(6, 9), np.arange(9, 11), np.arange(11, 13)]
    square = sum(len(one) * (one.mean() - 6) ** 2 for one in blocks) / 4 / 13
    assert found.half_width == pytest.approx(stats.t.ppf(0.95, 4) * np.sqrt(square) * widening(values))
    with raises(WorkloadError, "too_few_values", "2"):
        series_interval(np.ones(1))


def test_series_interval__of_equal_values_is_a_point():
    found = series_interval(np.full(20, 3.0))
    assert (found.low, found.high) == (3.0, 3.0)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "count"), [(0.0, 20), (0.5, 20), (0.8, 52), (0.8, 100)])
def test_series_interval__holds_where_neighbours_are_alike(share, count):
    # Over single values of a correlation of 0.8 it is 40 to 47 %; not widened, 20 of a correlation of 0.5 hold 82 %.
    series = autoregressive(share, count, 800, seed=2)
    found = [series_interval(one) for one in series]
    assert stats.binomtest(sum(one.low <= 0 <= one.high for one in found), len(found), 0.90).pvalue > 1e-3
    if share == 0.8:
        single = [mean_interval(one) for one in series]
        assert np.mean([one.low <= 0 <= one.high for one in single]) < 0.6


@pytest.mark.parametrize(("count", "blocks"), [(60, 5), (23, 5), (4, 4)])
def test_widening__is_the_error_over_what_blocks_let_expect(count, blocks):
    """The variances from the whole covariance matrix; the correlation is that of a series made to have it."""
    values = autoregressive(0.7, count, 1, seed=3)[0]
    away = values - values.mean()
    measured = (away[1:] @ away[:-1]) / (away @ away)
    alike = measured + (1 + 3 * measured) / count + np.sqrt((1 - measured**2) / count)
    lags = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    covariance = 3 * np.clip(alike, 0, (count - 1) / (count + 1)) ** lags
    rows = np.array([np.isin(np.arange(count), part) / len(part) for part in np.array_split(np.arange(count), blocks)])
    lengths = rows.astype(bool).sum(axis=1)
    off = rows - 1 / count
    expected = lengths @ np.diag(off @ covariance @ off.T) / (blocks - 1) / count
    assert widening(values) == pytest.approx(np.sqrt(covariance.mean() / expected))
    assert widening(values) > 1


def test_widening__is_never_below_1_and_bounded():
    assert widening(np.array([1.0, -1.0] * 20)) == 1
    assert widening(np.ones(20)) == 1
    assert widening(np.array([1.0, 5.0])) == 1
    assert widening(np.arange(20.0)) == widening(np.arange(20.0) ** 0.9) < 3, "a trend: as if it were all of it"
    assert widening(np.arange(1000.0)) < 3


def test_halves_differ__is_welchs_test():
    random = np.random.default_rng(3)
    for _ in range(20):
        early, late = random.normal(0, 1, 30), random.normal(0.4, 2, 30)
        theirs = stats.ttest_ind(early, late, equal_var=False).pvalue
        if abs(theirs - 0.1) > 0.005:
            assert halves_differ(np.concatenate([early, late])) == (theirs < 0.1)
    assert not halves_differ(np.ones(10))
    assert not halves_differ(np.array([0.0, 0, 0, 9, 9, 9])), "too few to say"


def test_stratified_interval__by_hand():
    # Two subjects, far apart; the error of the mean is that within them: sqrt((2/5)^2 * 2/2 + (3/5)^2 * 1/3).
    found = stratified_interval(np.array([1.0, 3.0, 101.0, 102.0, 103.0]), ["a", "a", "b", "b", "b"])
    parts = np.array([(2 / 5) ** 2 * 2 / 2, (3 / 5) ** 2 * 1 / 3])
    degrees = int(parts.sum() ** 2 / (parts[0] ** 2 / 1 + parts[1] ** 2 / 2))
    assert found.mean == pytest.approx(62)
    assert found.half_width == pytest.approx(stats.t.ppf(0.95, degrees) * np.sqrt(parts.sum()))
    assert stratified_interval(np.array([1.0, 2.0, 4.0]), "abc") == mean_interval(np.array([1.0, 2.0, 4.0])), "one each: as if drawn"


def test_stratified_interval__holds_the_mean_of_these_subjects():
    random = np.random.default_rng(4)
    subjects = np.repeat(np.arange(6), 5)
    held = [stratified_interval(3.0 * subjects + random.normal(size=30), subjects) for _ in range(400)]
    assert stats.binomtest(sum(one.low <= 7.5 <= one.high for one in held), 400, 0.90).pvalue > 1e-3
