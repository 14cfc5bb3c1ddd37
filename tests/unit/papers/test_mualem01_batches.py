"""Batch means as mualem01 has them: the rules for when to stop are those of the paper."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.errors import raises
from walltime.errors import WorkloadError
from walltime.metrics import mean_interval
from walltime.papers.mualem01.models import ALL_BATCHES, OUT_OF_JOBS, PRECISE, SATURATED, published_batch_means


def batches(*means: float, batch: int = 10) -> np.ndarray:
    """Values whose batches have these means; the values within a batch differ."""
    within = np.linspace(-1, 1, batch)
    return np.concatenate([mean + within for mean in means])


def test_published_batch_means__by_hand():
    # The first batch is the warm-up; then 10 and 30: mean 20, s = 14.142, t(0.95; 1) = 6.3138, half-width 63.138.
    result = published_batch_means(batches(1000, 10, 30), batch=10)
    assert result.interval.mean == pytest.approx(20)
    assert result.interval.half_width == pytest.approx(6.313752 * math.sqrt(200) / math.sqrt(2), rel=1e-6)
    assert (result.batches, result.stopped) == (2, OUT_OF_JOBS)


def test_published_batch_means__leaves_out_the_first_batch_and_what_fills_no_batch():
    values = np.concatenate([batches(1e6, 10, 12, 14), [1e9] * 9])
    assert published_batch_means(values, batch=10).interval.mean == pytest.approx(12)
    assert published_batch_means(values, batch=10, discard=2).interval.mean == pytest.approx(13)
    assert published_batch_means(values, batch=10, discard=0, saturation=1e9).interval.mean == pytest.approx((1e6 + 36) / 4)


def test_published_batch_means__is_scipys_interval_of_the_means_of_the_batches():
    random = np.random.default_rng(5)
    values = random.exponential(500, 3333 * 21)
    result = published_batch_means(values, precision=0)
    means = values.reshape(21, 3333).mean(axis=1)[1:]
    theirs = stats.t.interval(0.90, 19, loc=means.mean(), scale=means.std(ddof=1) / math.sqrt(20))
    assert (result.batches, result.stopped) == (20, OUT_OF_JOBS)
    assert (result.interval.low, result.interval.high) == pytest.approx(theirs, rel=1e-12)


def test_published_batch_means__stops_when_it_is_precise():
    # After two batches, 90 and 110, the interval is +- 63; it shrinks with each batch of 100.
    means = [0, 90, 110] + [100] * 40
    result = published_batch_means(batches(*means), batch=10, least=2)
    assert result.stopped == PRECISE
    used = np.array(means[1 : 1 + result.batches])
    assert mean_interval(used).half_width < 0.05 * used.mean() <= mean_interval(used[:-1]).half_width
    assert result.batches == 7  # half-width 1.943 sqrt(200 / 6 / 7) = 4.24; after 6 batches 2.015 sqrt(200 / 5 / 6) = 5.20
    assert published_batch_means(batches(*means), batch=10).batches == 10, "fewer say too little of how precise they are"
    assert published_batch_means(batches(*means), batch=10, least=12).batches == 12
    assert published_batch_means(batches(*means), batch=10, most=8).stopped == ALL_BATCHES


def test_published_batch_means__that_agree_by_chance_do_not_stop_it():
    # The first two batches hardly differ, and lie far off; mualem01's rule alone would take their mean.
    means = [0, 100, 100.5] + [200, 300, 220, 280] * 5
    result = published_batch_means(batches(*means), batch=10)
    assert published_batch_means(batches(*means), batch=10, least=2).interval.mean == 100.25
    assert result.batches > 9
    assert result.interval.high > 240


def test_published_batch_means__of_a_saturated_machine_stop_at_once_whatever_is_the_least():
    result = published_batch_means(batches(0, 40_000, 50_000, *[60_000] * 20), batch=10)
    assert (result.batches, result.stopped) == (2, SATURATED)


def test_published_batch_means__stops_when_the_machine_is_saturated():
    # Responses grow without end: the mean of 20,000 and 30,000 is not over 30,000, with 50,001 it is.
    result = published_batch_means(batches(10_000, 20_000, 30_000, 50_001, 60_000), batch=10)
    assert (result.batches, result.stopped) == (3, SATURATED)
    assert result.interval.mean == pytest.approx(100_001 / 3)
    exactly = published_batch_means(batches(0, 20_000, 30_000, 40_000), batch=10)
    assert exactly.stopped == OUT_OF_JOBS, "30,000 is not over 30,000"


def test_published_batch_means__stops_after_all_batches():
    means = [0] + [100, 200] * 100
    result = published_batch_means(batches(*means), batch=10, precision=0.001)
    assert (result.batches, result.stopped) == (100, ALL_BATCHES)
    assert published_batch_means(batches(*means), batch=10, precision=0.001, most=7).batches == 7
    assert published_batch_means(batches(*means[:101]), batch=10, precision=0.001).stopped == ALL_BATCHES, (
        "the last job fills the last batch"
    )
    assert published_batch_means(batches(*means[:100]), batch=10, precision=0.001).stopped == OUT_OF_JOBS


def test_published_batch_means__of_saturated_and_precise_values_says_saturated():
    assert published_batch_means(batches(0, 40_000, 40_000), batch=10).stopped == SATURATED


@pytest.mark.parametrize(("jobs", "discard"), [(0, 1), (2, 1), (29, 1), (19, 0), (39, 2)])
def test_published_batch_means__of_too_few_jobs_gets_one_line(jobs, discard):
    with raises(WorkloadError, "too_few_jobs", jobs, jobs // 10, discard + 2, "10"):
        published_batch_means(np.ones(jobs), batch=10, discard=discard)


@pytest.mark.parametrize("options", [{"batch": 0}, {"batch": -5}, {"discard": -1}, {"most": 1}, {"most": 0}, {"least": 1}])
def test_published_batch_means__of_impossible_batches_gets_one_line(options):
    with raises(WorkloadError, "number_out_of_range", "1"):
        published_batch_means(np.ones(100), **({"batch": 10} | options))


@pytest.mark.slow
def test_published_batch_means__holds_the_true_mean_as_often_as_it_says():
    # An autoregressive series, as waits are: neighbours resemble each other, batches of 500 hardly do.
    random = np.random.default_rng(6)
    held = 0
    for _ in range(200):
        noise = random.normal(size=500 * 11)
        series = np.zeros(len(noise))
        for k in range(1, len(series)):
            series[k] = 0.9 * series[k - 1] + noise[k]
        interval = published_batch_means(1000 + series, batch=500, precision=0).interval
        held += interval.low <= 1000 <= interval.high
    assert stats.binomtest(held, 200, 0.90).pvalue > 1e-3
