"""Downey'97: the speedup's properties, the log-uniform ranges, the rules that fix a size, and the day of two phases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from tests.errors import raises
from tests.strategies import examples
from walltime.errors import PolicyError, WorkloadError
from walltime.workload.models.downey97 import Downey97, chosen_size, speedup
from walltime.workload.models.model import stream

LEVEL = 1e-3
parallelism = st.floats(1, 1000)
sigmas = st.floats(0, 5)


def one(n, a, s):
    return float(speedup(np.array(float(n)), np.array(a), np.array(s)))


@examples(300)
@given(parallelism, sigmas)
def test_speedup__from_one_to_the_average_parallelism(a, s):
    assert one(1, a, s) == pytest.approx(1, rel=1e-9)
    assert one(1e9, a, s) == a
    assert one(max(2 * a, a + a * s) + 1, a, s) == a


@examples(300)
@given(parallelism, sigmas, st.floats(1, 3000), st.floats(0, 100))
def test_speedup__grows_with_processors_and_stays_below_their_number(a, s, n, more):
    here, there = one(n, a, s), one(n + more, a, s)
    assert here <= there * (1 + 1e-12)
    assert here <= min(n, a) * (1 + 1e-12)
    assert here / n >= there / (n + more) * (1 - 1e-12)  # efficiency falls


@examples(300)
@given(parallelism, sigmas)
def test_speedup__is_continuous(a, s):
    for place in {a, 2 * a - 1, a + a * s - s} - {0}:
        if place >= 1:
            below, above = one(place * (1 - 1e-9), a, s), one(place * (1 + 1e-9), a, s)
            assert above == pytest.approx(below, rel=1e-7)
    for n in (1.5, a, 1.5 * a, 3 * a):
        assert one(n, a, 1.0) == pytest.approx(one(n, a, math.nextafter(1.0, 2)), rel=1e-9)


@examples(300)
@given(st.floats(1, 1000), sigmas, st.floats(1, 3000))
def test_speedup__is_that_of_the_specification(a, s, n):
    if s <= 1:
        wanted = a * n / (a + s * (n - 1) / 2) if n <= a else a * n / (s * (a - 0.5) + n * (1 - s / 2)) if n <= 2 * a - 1 else a
    else:
        wanted = n * a * (s + 1) / (s * (n + a - 1) + a) if n <= a + a * s - s else a
    assert one(n, a, s) == pytest.approx(wanted, rel=1e-12)


@examples(300)
@given(parallelism, sigmas)
def test_knee__is_the_last_size_of_half_efficiency(a, s):
    knee = int(chosen_size("half-efficiency-knee", np.array([a]), np.array([s]))[0])
    assert one(knee, a, s) / knee >= 0.5 * (1 - 1e-9)
    assert one(knee + 1, a, s) / (knee + 1) < 0.5 * (1 + 1e-9)


def test_chosen_size__other_rules():
    a = np.array([1.0, 1.4, 1.6, 99.5])
    assert chosen_size("average-parallelism", a, a).tolist() == [1, 1, 2, 100]
    assert chosen_size(16, a, a).tolist() == [16] * 4


def log_uniform_mean(low, high):
    return (high - low) / math.log(high / low)


def test_draws__are_log_uniform():
    model = Downey97(least_parallelism=2, most_parallelism=64, least_work=10, most_work=1e5, least_sigma=0.5, most_sigma=1.5)
    a, s, work = model.draw(50_000, 128, seed=1)
    for values, low, high in ((a, 2, 64), (work, 10, 1e5)):
        assert stats.kstest(values, stats.loguniform(low, high).cdf).pvalue > LEVEL
        spread = stats.loguniform(low, high).std() / math.sqrt(len(values))
        assert values.mean() == pytest.approx(log_uniform_mean(low, high), abs=4 * spread)
    assert stats.kstest(s, stats.uniform(0.5, 1).cdf).pvalue > LEVEL
    assert abs(stats.spearmanr(a, work).statistic) < 0.02


@pytest.mark.parametrize("rule", ["average-parallelism", "half-efficiency-knee", 7])
def test_generate__runtime_is_work_over_speedup(rule):
    model = Downey97(size_rule=rule)
    jobs = model.generate(2000, 64, 0.8, seed=2)
    a, s, work = model.draw(2000, 64, seed=2)
    assert (jobs.procs == np.minimum(chosen_size(rule, a, s), 64)).all()
    assert (jobs.runtime == np.maximum(np.floor(work / speedup(jobs.procs, a, s) + 0.5), 1)).all()


@pytest.mark.parametrize("begins", [0, 28_800, 43_200, 72_000])
@pytest.mark.parametrize("load", [None, 0.3])
def test_arrivals__have_two_phases_of_twelve_hours(begins, load):
    model = Downey97(day_begins=begins, day_share=0.8, mean_gap=600)
    jobs = model.generate(20_000, 64, load, seed=3)
    clock = (jobs.submit - begins) % 86_400
    by_day = clock < 43_200
    assert stats.binomtest(int(by_day.sum()), len(jobs), 0.8).pvalue > LEVEL
    for phase in (clock[by_day], clock[~by_day] - 43_200):
        assert stats.kstest(phase + 0.5, stats.uniform(0, 43_200).cdf).pvalue > LEVEL


def test_arrivals__are_a_poisson_process_of_the_mean_gap():
    jobs = Downey97(day_share=0.5, mean_gap=5000).generate(20_000, 64, seed=4)
    gaps = np.diff(jobs.submit) + stream("test", 1, "blur").random(len(jobs) - 1) - 0.5
    assert stats.kstest(np.maximum(gaps, 0), stats.expon(scale=5000).cdf).pvalue > LEVEL


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_arrivals__all_in_one_phase(share):
    jobs = Downey97(day_share=share).generate(5000, 64, 0.7, seed=5)
    by_day = (jobs.submit - 28_800) % 86_400 < 43_200
    assert by_day.mean() == share


def test_keep_cycle__off_stretches_the_arrivals_themselves():
    made, natural = (Downey97(keep_cycle=False).generate(500, 64, load, seed=6) for load in (0.3, None))
    factor = np.ptp(made.submit) / np.ptp(natural.submit)
    np.testing.assert_allclose(made.submit / factor, natural.submit, atol=2 + 2 / factor, rtol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"least_parallelism": 0.5}, ("1", "0.5")),
        ({"least_work": 0.0}, ("least-work", "0")),
        ({"least_sigma": -1.0}, ("least-sigma", "0", "-1")),
        ({"mean_gap": -1.0}, ("mean-gap", "0", "-1")),
        ({"mean_gap": float("nan")}, ("mean-gap", "nan")),
        ({"day_share": 1.5}, ("day-share", "1", "1.5")),
        ({"day_begins": 86_400}, ("day-begins", "86400")),
    ],
)
def test_bad_constants(change, message):
    with raises(PolicyError, "wrong_value", *message):
        Downey97(**change)


@pytest.mark.parametrize("change", [{"most_parallelism": 0.5}, {"most_work": 1.0}, {"least_sigma": 3.0}])
def test_empty_ranges(change):
    with raises(WorkloadError, "number_out_of_range", next(iter(change)).partition("_")[2]):
        Downey97(**change)


@pytest.mark.parametrize("rule", [0, "best"])
def test_size_rule__other_values_are_refused(rule):
    with raises(PolicyError, "wrong_value", "size-rule", "1", "average-parallelism"):
        Downey97(size_rule=rule)
