"""Intervals of series: over blocks of neighbours, and over subjects that are fixed."""

import numpy as np
import pytest
from scipy import signal, stats

from walltime.errors import WorkloadError
from walltime.metrics import halves_differ, mean_interval, series_interval, stratified_interval


def test_series_interval__is_students_t_over_five_blocks():
    values = np.random.default_rng(1).normal(size=60)
    found = series_interval(values)
    means = values.reshape(5, 12).mean(axis=1)
    theirs = stats.t.interval(0.90, 4, loc=means.mean(), scale=stats.sem(means))
    assert (found.low, found.high) == pytest.approx(theirs)
    assert series_interval(values[:5]) == mean_interval(values[:5]), "each is a block"


def test_series_interval__counts_each_value_once_where_blocks_differ_in_length():
    values = np.arange(13.0)
    found = series_interval(values)
    assert found.mean == 6
    blocks = [np.arange(0, 3), np.arange(3, 6), np.arange(6, 9), np.arange(9, 11), np.arange(11, 13)]
    square = sum(len(one) * (one.mean() - 6) ** 2 for one in blocks) / 4 / 13
    assert found.half_width == pytest.approx(stats.t.ppf(0.95, 4) * np.sqrt(square))
    with pytest.raises(WorkloadError, match="at least 2"):
        series_interval(np.ones(1))


def test_series_interval__holds_where_neighbours_are_alike():
    # Over single values it is 47 %.
    noise = np.random.default_rng(2).normal(size=(400, 1100))
    series = signal.lfilter([1.0], [1.0, -0.8], noise, axis=1)[:, 1000:]
    found = [series_interval(one) for one in series]
    assert np.mean([one.low <= 0 <= one.high for one in found]) == pytest.approx(0.87, abs=0.05)
    single = [mean_interval(one) for one in series]
    assert np.mean([one.low <= 0 <= one.high for one in single]) < 0.6


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
