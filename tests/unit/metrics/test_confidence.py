"""How far a mean can be trusted: compared with scipy, with examples by hand, and with how often an interval holds the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from tests.errors import raises
from tests.strategies import examples
from walltime.errors import WorkloadError
from walltime.metrics import (
    Interval,
    bootstrap,
    mean_interval,
    paired_difference,
    percentile_band,
    prediction_interval,
    range_of_runs,
    relative_spread,
)
from walltime.metrics.confidence import student_t

numbers = st.floats(-1e6, 1e6)

# ------------------------------------------------------------------------------------------------------------ Student's t


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 9, 10, 24, 99, 100, 999, 10_000])
@pytest.mark.parametrize("probability", [0.5, 0.6, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.9995])
def test_student_t__is_scipys(probability, degrees):
    assert student_t(probability, degrees) == pytest.approx(stats.t.ppf(probability, degrees), rel=1e-9, abs=1e-12)


def test_student_t__has_the_values_of_the_tables():
    assert student_t(0.95, 9) == pytest.approx(1.833, abs=5e-4)
    assert student_t(0.95, 98) == pytest.approx(1.661, abs=5e-4)
    assert student_t(0.75, 1) == pytest.approx(1.0, rel=1e-12), "the quartile of Cauchy's distribution"


@pytest.mark.parametrize(("probability", "degrees"), [(0.4, 3), (1.0, 3), (0.9, 0), (float("nan"), 3)])
def test_student_t__says_what_it_cannot_do(probability, degrees):
    with pytest.raises(ValueError, match="quantile"):
        student_t(probability, degrees)


# -------------------------------------------------------------------------------------------------------------- intervals


def test_mean_interval__by_hand(golden):
    # Mean 3, standard deviation sqrt(2.5), five values; t(0.95; 4) = 2.1318.
    interval = mean_interval(np.array([1, 2, 3, 4, 5]))
    assert interval.mean == 3
    assert interval.half_width == pytest.approx(2.1318468 * math.sqrt(2.5) / math.sqrt(5), rel=1e-7)
    golden("compare", interval.what)


@given(values=st.lists(numbers, min_size=2, max_size=30), confidence=st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]))
@examples(100)
def test_mean_interval__is_scipys(values, confidence):
    interval = mean_interval(np.array(values), confidence)
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    half = stats.t.ppf(0.5 + confidence / 2, len(values) - 1) * error
    assert interval.mean == pytest.approx(np.mean(values), rel=1e-12, abs=1e-9)
    assert interval.half_width == pytest.approx(half, rel=1e-9, abs=1e-6)
    assert interval.low <= interval.mean <= interval.high


@pytest.mark.parametrize("values", [[], [1.0]])
def test_mean_interval__of_fewer_than_two_values_gets_one_line(values):
    with raises(WorkloadError, "too_few_values", "2"):
        mean_interval(np.array(values))


def test_percentile_band__lies_between_percentiles_and_says_that_it_is_no_confidence_interval(golden):
    values = np.random.default_rng(1).exponential(size=100)
    band = percentile_band(values)
    assert (band.low, band.high) == tuple(np.percentile(values, [5, 95]))
    assert band.mean == values.mean()
    golden("compare", band.what)
    assert "confidence" not in band.what
    wide = percentile_band(values, 0, 100)
    assert (wide.low, wide.high, wide.what) == (values.min(), values.max(), "0th to 100th percentile of 100 replications")


def test_percentile_band__does_not_shrink_with_more_replications_but_an_interval_of_the_mean_does():
    random = np.random.default_rng(2)
    few, many = random.normal(100, 10, 50), random.normal(100, 10, 5000)
    assert percentile_band(many).half_width == pytest.approx(10 * stats.norm.ppf(0.95), rel=0.05)
    assert percentile_band(few).half_width == pytest.approx(percentile_band(many).half_width, rel=0.3)
    assert mean_interval(many).half_width < mean_interval(few).half_width / 5


@pytest.mark.slow
@pytest.mark.parametrize("runs", [2, 3, 5, 10, 19, 20, 25, 100])
def test_range_of_runs__holds_a_further_run_as_often_as_it_says(runs):
    random = np.random.default_rng(runs)
    held, trials = 0, 2000
    for _ in range(trials):
        found = range_of_runs(random.lognormal(size=runs))
        held += found.low <= random.lognormal() <= found.high
    said = float(found.what.split(" probability of ")[1].removesuffix(" %")) / 100
    assert said == pytest.approx(min((runs - 1) / (runs + 1), 0.9), abs=0.005)
    assert held / trials == pytest.approx(said, abs=3.5 * np.sqrt(said * (1 - said) / trials) + 0.005)


def test_range_of_runs__of_few_is_from_the_smallest_to_the_largest():
    found = range_of_runs(np.array([3.0, 1.0, 2.0]))
    assert (found.mean, found.low, found.high) == (2, 1, 3)
    assert range_of_runs(np.array([4.0])).what == "the only run"


def test_prediction_interval__is_that_of_a_further_normal_run():
    values = np.array([1.0, 4.0, 2.0, 7.0])
    found = prediction_interval(values)
    half = stats.t.ppf(0.95, 3) * values.std(ddof=1) * math.sqrt(1 + 1 / 4)
    assert (found.low, found.high) == pytest.approx((3.5 - half, 3.5 + half))
    assert "one further run" in found.what
    with raises(WorkloadError, "too_few_values", "2"):
        prediction_interval(values[:1])


def test_prediction_interval__holds_where_the_mean_of_a_few_does_not():
    """Runs of which one in seven is far away: six of them may have none."""
    random = np.random.default_rng(1)
    runs = random.normal(size=(1000, 7)) + 100 * (random.random((1000, 7)) < 1 / 7)
    further = [prediction_interval(row[:6]) for row in runs]
    assert np.mean([one.low <= row[6] <= one.high for one, row in zip(further, runs, strict=True)]) > 0.86
    means = [mean_interval(row[:6]) for row in runs]
    assert np.mean([one.low <= 100 / 7 <= one.high for one in means]) < 0.7


def test_paired_difference__is_scipys_paired_t_test(golden):
    random = np.random.default_rng(3)
    common = random.exponential(1000, 25)
    one, two = common + random.normal(5, 2, 25), common
    interval = paired_difference(one, two, 0.95)
    theirs = stats.ttest_rel(one, two).confidence_interval(0.95)
    assert (interval.low, interval.high) == (pytest.approx(theirs.low), pytest.approx(theirs.high))
    assert interval.mean == pytest.approx((one - two).mean())
    golden("compare", interval.what)
    # What pairing is for: the common part, hundreds of seconds, drops out.
    assert interval.half_width < 2
    assert mean_interval(one).half_width > 100


def test_paired_difference__of_unequal_sets_gets_one_line():
    with raises(WorkloadError, "different_lengths", "3", "2"):
        paired_difference(np.ones(3), np.ones(2))


def test_relative_spread__is_the_deviation_over_the_mean():
    assert relative_spread(np.array([90, 100, 110])) == pytest.approx(0.1)
    assert relative_spread(np.array([-90, -100, -110])) == pytest.approx(0.1)
    assert relative_spread(np.array([5, 5])) == 0
    assert relative_spread(np.array([0, 0])) == 0
    assert math.isnan(relative_spread(np.array([5]))), "one result does not say how far results spread"


def test_interval__knows_its_half_width():
    assert Interval(2, 1, 4, "").half_width == 1.5


# --------------------------------------------------------------------------------------------------------------- bootstrap


def test_bootstrap__draws_whole_groups():
    # Two users; each drawn sample holds users 1+1, 1+2, 2+1 or 2+2: means 0, 8 (2 jobs of 0, 8 of 10) or 10, nothing else.
    values, users = np.array([0.0] * 2 + [10.0] * 8), np.array([1] * 2 + [2] * 8)
    seen = []
    bootstrap(values, users, lambda drawn: seen.append(drawn.mean()) or float(drawn.mean()), samples=400, seed=1)
    assert set(np.round(seen, 12)) == {0.0, 8.0, 10.0}
    share = sum(value == 8.0 for value in seen[:400])
    assert stats.binomtest(share, 400, 0.5).pvalue > 1e-3


def test_bootstrap__is_the_same_for_the_same_seed_and_any_order_of_jobs_within_groups():
    random = np.random.default_rng(7)
    values, users = random.exponential(100, 500), random.integers(0, 40, 500)
    one = bootstrap(values, users, seed=3)
    assert one == bootstrap(values, users, seed=3)
    assert one != bootstrap(values, users, seed=4)
    order = random.permutation(500)
    shuffled = bootstrap(values[order], users[order], seed=3)
    assert (shuffled.low, shuffled.high) == pytest.approx((one.low, one.high))
    assert one.what == "90 % bootstrap interval over 40 groups"


@pytest.mark.slow
def test_bootstrap__is_wider_where_jobs_of_a_user_resemble_each_other():
    random = np.random.default_rng(8)
    users = np.repeat(np.arange(50), 20)
    values = np.repeat(random.normal(100, 10, 50), 20) + random.normal(0, 1, 1000)
    by_user = bootstrap(values, users, seed=1)
    by_job = bootstrap(values, np.arange(1000), seed=1)
    assert by_user.half_width > 3 * by_job.half_width
    # the standard error of the mean of 50 independent users
    assert by_user.half_width == pytest.approx(1.645 * 10 / math.sqrt(50), rel=0.25)


@pytest.mark.slow
def test_bootstrap__holds_the_true_mean_about_as_often_as_it_says():
    random = np.random.default_rng(9)
    held = 0
    for seed in range(200):
        users = np.repeat(np.arange(30), 10)
        values = np.repeat(random.normal(50, 5, 30), 10) + random.normal(0, 1, 300)
        interval = bootstrap(values, users, samples=200, seed=seed)
        held += interval.low <= 50 <= interval.high
    assert 0.80 <= held / 200 <= 0.95, "somewhat under 90 %: with 30 groups the percentile interval is a little short"


def test_bootstrap__takes_any_statistic():
    values, users = np.arange(100.0), np.arange(100)
    median = bootstrap(values, users, lambda v: float(np.median(v)), samples=300)
    assert median.mean == 49.5
    assert median.low < 49.5 < median.high


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: percentile_band(np.array([])), ("too_few_values", "1")),
        (lambda: range_of_runs(np.array([])), ("too_few_values", "1")),
        (lambda: relative_spread(np.array([])), ("too_few_values", "1")),
        (lambda: bootstrap(np.array([]), np.array([])), ("too_few_values", "1000")),
        (lambda: bootstrap(np.ones(3), np.ones(2)), ("too_few_values", "3", "2", "1000")),
        (lambda: bootstrap(np.ones(3), np.ones(3), samples=0), ("too_few_values", "3", "0")),
    ],
)
def test_nothing__to_compute_from_gets_one_line(wrong, message):
    with raises(WorkloadError, *message):
        wrong()
