"""The mean of one long run: batches are merged until they hardly correlate, and a run that is too short gets no interval."""

import json

import numpy as np
import pytest
from scipy import signal, stats

from tests.cli import call
from tests.errors import raises
from walltime.errors import WorkloadError
from walltime.metrics import batch_means
from walltime.metrics.batches import PRECISE, SATURATED, TOO_SHORT, WIDE, correlated_values, jobs_needed
from walltime.metrics.series import neighbour_correlation, widening
from walltime.papers.mualem01.models import published_batch_means


def autoregressive(share: float, count: int, seed: int) -> np.ndarray:
    """A series in which neighbours correlate by `share`; its mean is 0, its autocorrelation time (1 + share) / (1 - share)."""
    return signal.lfilter([1.0], [1.0, -share], np.random.default_rng(seed).normal(size=count + 2000))[2000:]


def test_batch_means__merges_batches_until_they_hardly_correlate():
    found = batch_means(1000 + autoregressive(0.99, 200_000, 1), batch=200)
    assert found.correlation_asked > 0.25
    assert abs(found.correlation) < 0.4, "of 30 batches at most the correlation is known to 0.18 only"
    assert found.batch % 200 == 0
    assert found.batch >= 10 * found.alike
    assert 10 <= found.batches <= 30
    means = (1000 + autoregressive(0.99, 200_000, 1))[200:][: found.batches * found.batch].reshape(found.batches, -1).mean(axis=1)
    blocks = np.array_split(means, 5)
    square = sum(len(one) * (one.mean() - means.mean()) ** 2 for one in blocks) / 4 / len(means)
    half = stats.t.ppf(0.95, 4) * np.sqrt(square) * widening(means)
    assert (found.interval.low, found.interval.high) == pytest.approx((means.mean() - half, means.mean() + half), rel=1e-12)
    assert found.alike == pytest.approx(199, rel=0.6)


def test_batch_means__of_a_short_run_of_much_correlation_has_no_interval():
    found = batch_means(100 + autoregressive(0.99, 5000, 1), batch=100)
    assert (found.verdict, found.interval) == (TOO_SHORT, None)
    assert found.needed > 5000
    assert "too short" in found.reason
    assert f"{found.needed:,} jobs" in found.reason
    assert found.mean == pytest.approx((100 + autoregressive(0.99, 5000, 1))[100:].mean())


def test_batch_means__of_independent_values_keeps_the_batches_that_were_asked_for():
    values = np.random.default_rng(5).exponential(500, 3333 * 21)
    found = batch_means(values)
    assert (found.batch, found.batches) == (3333, 20)
    assert found.verdict == PRECISE
    assert batch_means(values[: 3333 * 12], batch=3333, precision=0.001).verdict == WIDE


def test_batch_means__is_not_saturated_by_a_few_batches():
    # mualem01's rule stops after two of 14 batches, the mean of which exceeds 30,000 s, and tells of no steady state.
    random = np.random.default_rng(2)
    values = random.exponential(np.repeat([34_000, 34_000, 34_000, *[9_000] * 12], 1000))
    assert published_batch_means(values, batch=1000).stopped == SATURATED
    found = batch_means(values, batch=1000)
    assert found.verdict != SATURATED
    assert found.mean == pytest.approx(values[1000:].mean())


def test_batch_means__is_saturated_where_the_lower_end_exceeds_the_limit():
    growing = np.linspace(0, 1e6, 30_000)
    found = batch_means(growing, batch=1000)
    assert (found.verdict, found.interval) == (SATURATED, None)
    assert "saturated" in found.reason
    assert batch_means(growing[:9000], batch=1000).verdict == TOO_SHORT, "eight batches say too little"
    steady = batch_means(np.random.default_rng(1).normal(40_000, 100, 50_000), batch=1000)
    assert (steady.verdict, steady.interval) == (SATURATED, None)


def test_batch_means__of_times_has_no_lower_end_below_0():
    random = np.random.default_rng(3)
    values = np.repeat(random.choice([0.0, 0.0, 0.0, 0.0, 100.0], 12), 100) * random.integers(0, 2, 1200)
    found = batch_means(values, batch=10, discard=0)
    assert found.interval is None or found.interval.low >= 0
    spikes = np.zeros(11_000)
    spikes[5005::5500] = 1e6
    assert batch_means(spikes, batch=1000).interval.low == 0


def test_batch_means__says_where_the_whole_run_contradicts_it():
    random = np.random.default_rng(4)
    values = np.concatenate([random.exponential(90_000, 1000), random.exponential(500, 29_000)])
    found = batch_means(values, batch=1000)
    assert found.interval.high < found.whole
    assert f"{found.whole:,.0f}" in found.contradiction
    assert batch_means(values[1000:], batch=1000).contradiction == ""


def test_batch_means__wants_more_jobs_the_busier_the_machine_is(golden):
    values = np.random.default_rng(5).exponential(500, 70_000)
    found = batch_means(values, least=jobs_needed(0.6))
    assert (found.verdict, found.interval, found.needed) == (TOO_SHORT, None, 100_000)
    golden("compare", found.reason)
    assert batch_means(values, least=jobs_needed(0.3)).verdict == PRECISE
    assert jobs_needed(0.9) == 4 * jobs_needed(0.8) == 1_600_000
    assert jobs_needed(1.0) == jobs_needed(0.99), "finite"


def test_correlated_values__is_that_of_the_formula():
    assert correlated_values(np.random.default_rng(1).normal(size=100_000)) == pytest.approx(100), "a piece of a thousand"
    assert correlated_values(autoregressive(0.9, 100_000, 1)[:1000]) == pytest.approx(19, rel=0.6)
    assert correlated_values(autoregressive(0.998, 400_000, 1)) == pytest.approx(999, rel=0.35)
    assert correlated_values(np.ones(50)) == 1


def test_neighbour_correlation__by_hand():
    assert neighbour_correlation(np.array([1.0, 2.0, 3.0, 4.0])) == pytest.approx((1.5 * 0.5 - 0.25 + 1.5 * 0.5) / 5)
    assert np.isnan(neighbour_correlation(np.ones(5)))
    assert np.isnan(neighbour_correlation(np.array([1.0, 2.0])))


@pytest.mark.parametrize(("share", "count", "batch"), [(0.5, 3000, 30), (0.9, 6000, 50)])
def test_batch_means__holds_the_true_mean_as_often_as_it_says(share, count, batch):
    found = [batch_means(autoregressive(share, count, seed), batch=batch).interval for seed in range(200)]
    given = [one for one in found if one is not None]
    assert len(given) > 190
    assert stats.binomtest(sum(one.low <= 0 <= one.high for one in given), len(given), 0.90).pvalue > 1e-3


def test_batch_means__seldom_gives_an_interval_where_it_would_not_hold():
    # A run of fifty correlation times: as it was, 60 % held.
    found = [batch_means(autoregressive(0.99, 10_000, seed), batch=300) for seed in range(100)]
    assert sum(one.interval is None for one in found) > 70


@pytest.mark.parametrize(("jobs", "discard"), [(0, 1), (2, 1), (29, 1), (19, 0), (39, 2)])
def test_batch_means__of_too_few_jobs_gets_one_line(jobs, discard):
    with raises(WorkloadError, "too_few_jobs", jobs, jobs // 10, discard + 2, "10"):
        batch_means(np.ones(jobs), batch=10, discard=discard)


@pytest.mark.parametrize("options", [{"batch": 0}, {"batch": -5}, {"discard": -1}])
def test_batch_means__of_impossible_batches_gets_one_line(options):
    with raises(WorkloadError, "number_out_of_range", "1"):
        batch_means(np.ones(100), **({"batch": 10} | options))


def test_simulate__says_what_the_batches_are(tmp_path, capsys):
    log = tmp_path / "log.swf"
    assert call(capsys, "generate", "lublin99", "--jobs", 2000, "--procs", 64, "--load", 0.5, "--out", log)[0] == 0
    status, out, _ = call(capsys, "simulate", log, "--batch-means", 100)
    assert status == 0
    assert "correlation between neighbours" in out
    found = json.loads(call(capsys, "simulate", log, "--batch-means", 100, "--json")[1])["batch_means"]
    assert found["verdict"] in (PRECISE, WIDE, TOO_SHORT)
    assert (found["low"] is None) == (found["verdict"] == TOO_SHORT) == bool(found["reason"])
    assert found["asked"]["jobs_per_batch"] == 100
