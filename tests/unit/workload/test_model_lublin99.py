"""Lublin'99 against its formulas: a loop for the arrivals, distributions for the rest."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.errors import raises
from walltime.errors import PolicyError
from walltime.workload.models.lublin99 import BATCH, INTERACTIVE, TYPELESS, Lublin99, _gamma_up_to, _sizes, day_time, day_weights
from walltime.workload.models.model import stream

LEVEL = 1e-3
CLASSES = pytest.mark.parametrize("part", [BATCH, INTERACTIVE, TYPELESS], ids=["batch", "interactive", "typeless"])


def arrivals_of_the_loop(part, gammas):
    """Buckets are used up one by one; `points` and `rem` live on from arrival to arrival."""
    weight = [0.0] * 48
    for i in range(11, 59):
        weight[(i - 1) % 48] = stats.gamma.cdf(i + 0.5, part.anum, scale=part.bnum) - stats.gamma.cdf(i - 0.5, part.anum, scale=part.bnum)
    mean = sum(weight) / 48
    weight = [w / mean for w in weight]
    points, rem, bucket, t, times = 0.0, 0.0, 0, 0.0, []
    for g in gammas:
        points += math.exp(g) / 1800
        while points > weight[bucket]:
            points -= weight[bucket]
            bucket = (bucket + 1) % 48
            t += 1800
        new = points / weight[bucket]
        t += 1800 * (new - rem)
        rem = new
        times.append(t)
    return np.array(times)


@CLASSES
def test_arrivals__are_those_of_the_authors_loop(part):
    random = stream("test", 1, "arrival")
    gammas = _gamma_up_to(13.0, np.full(5000, part.aarr * part.arar), np.full(5000, part.barr), random)
    model = Lublin99()
    points = model._points(part, 5000, stream("test", 1, "arrival"))
    np.testing.assert_allclose(day_time(part, points), arrivals_of_the_loop(part, gammas), rtol=0, atol=1e-3)


def test_generate__mixes_both_classes_by_their_arrivals_and_numbers_their_queues():
    jobs = Lublin99().generate(2000, 128, seed=4)
    both = {}
    for queue, (name, part) in enumerate([("interactive", INTERACTIVE), ("batch", BATCH)]):
        random = stream("lublin99", 4, f"{name} arrival")
        shape = np.full(2000, part.aarr * part.arar)
        both[queue] = arrivals_of_the_loop(part, _gamma_up_to(13.0, shape, np.full(2000, part.barr), random))
    merged = np.sort(np.concatenate(list(both.values())))[:2000]
    assert np.abs(jobs.submit - np.floor(merged)).max() <= 1
    for queue, times in both.items():
        mine = jobs.submit[jobs.columns["queue"] == queue]
        assert np.abs(mine - np.floor(times[: len(mine)])).max() <= 1


@CLASSES
def test_day_weights__are_differences_of_the_gamma_distribution(part):
    weights = day_weights(part)
    assert weights.mean() == pytest.approx(1, abs=1e-12)
    raw = {(i - 1) % 48: np.diff(stats.gamma.cdf([i - 0.5, i + 0.5], part.anum, scale=part.bnum))[0] for i in range(11, 59)}
    expected = np.array([raw[k] for k in range(48)])
    np.testing.assert_allclose(weights, expected / expected.mean(), rtol=1e-9)


def size_probabilities(part, most):
    """Probability of each size from 0 to `most`, from the definition: the same u decides serial and power of two."""

    def cdf(x):
        low, high = (x - part.low) / (part.med - part.low), (x - part.med) / (part.hi - part.med)
        return part.prob * np.clip(low, 0, 1) + (1 - part.prob) * np.clip(high, 0, 1)

    odds = np.zeros(most + 1)
    odds[1] += part.serial
    for l in range(int(part.hi) + 2):  # noqa: E741
        mass = cdf(l + 0.5) - cdf(l - 0.5)
        if 2**l <= most:
            odds[2**l] += part.pow2 * mass
    for n in range(1, most + 1):
        odds[n] += (1 - part.serial - part.pow2) * (cdf(math.log2(n + 0.5)) - cdf(math.log2(n - 0.5)))
    return odds


@CLASSES
def test_sizes__have_the_probabilities_of_the_definition(part):
    odds = size_probabilities(part, 128)
    assert odds.sum() == pytest.approx(1, abs=1e-9)
    count = 50_000
    drawn = np.bincount(_sizes(part, count, stream("test", 2, "size")), minlength=129)
    enough = odds * count >= 5
    observed = np.append(drawn[enough], drawn[~enough].sum())
    expected = np.append(odds[enough], odds[~enough].sum()) * count
    keep = expected > 0
    assert stats.chisquare(observed[keep], expected[keep]).pvalue > LEVEL
    assert observed[~keep].sum() == 0
    powers = [2**k for k in range(8)]
    assert drawn[1] / count == pytest.approx(odds[1], abs=0.01)
    assert drawn[powers].sum() / count == pytest.approx(odds[powers].sum(), abs=0.01)


def runtime_cdf(part, procs, seconds, longest=12.0):
    p = float(np.clip(part.pa * procs + part.pb, 0, 1))
    logs = np.log(np.maximum(seconds, 1e-300))
    cut = [
        np.minimum(stats.gamma.cdf(logs, a, scale=b) / stats.gamma.cdf(longest, a, scale=b), 1)
        for a, b in ((part.a1, part.b1), (part.a2, part.b2))
    ]
    return p * cut[0] + (1 - p) * cut[1]


@CLASSES
@pytest.mark.parametrize("procs", [1, 16, 64, 128])
def test_runtimes__follow_the_mixture_of_two_gammas(part, procs):
    drawn = Lublin99()._runtimes(part, np.full(20_000, procs), stream("test", 3, "runtime"))
    edges = np.unique(np.quantile(drawn, np.linspace(0, 1, 25)))
    edges = np.concatenate([[0], edges[1:-1], [math.ceil(math.exp(12))]])
    # a whole runtime r stands for [r, r + 1)
    observed = np.histogram(drawn, edges)[0]
    expected = np.diff(runtime_cdf(part, procs, edges.astype(float))) * len(drawn)
    below_one = runtime_cdf(part, procs, np.array([1e-300]))[0]
    expected[0] += below_one * len(drawn)
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > LEVEL


@CLASSES
def test_runtimes__have_the_mean_of_the_formula(part):
    procs = np.full(200_000, 8)
    drawn = Lublin99()._runtimes(part, procs, stream("test", 5, "runtime"))
    grid = np.linspace(0, 12, 20_001)
    p = part.pa * 8 + part.pb
    mean = 0.0
    for weight, a, b in ((p, part.a1, part.b1), (1 - p, part.a2, part.b2)):
        density = stats.gamma.pdf(grid, a, scale=b) / stats.gamma.cdf(12, a, scale=b)
        mean += weight * np.trapezoid(np.exp(grid) * density, grid)
    assert drawn.mean() + 0.5 == pytest.approx(mean, abs=4 * drawn.std() / math.sqrt(len(drawn)) + 0.5)


def half_hours(jobs):
    return np.bincount(jobs.submit % 86_400 // 1800, minlength=48)


@pytest.mark.parametrize("load", [None, 0.3, 1.2])
def test_daily_cycle__has_the_weights_at_every_load(load):
    made = Lublin99(classes="typeless").generate(200_000, 128, load, seed=1)
    days = np.ptp(made.submit) / 86_400
    apart = math.ceil(3 * len(made) / days)  # one job in some three days, so that one says little about the next
    weights = np.concatenate([[0.0], np.cumsum(day_weights(TYPELESS))]) / 48
    phase = np.interp(made.submit[::apart] % 86_400 + 0.5, np.arange(49) * 1800, weights)
    assert len(phase) > 100
    assert stats.kstest(phase, "uniform").pvalue > LEVEL
    assert np.corrcoef(half_hours(made), day_weights(TYPELESS))[0, 1] > 0.97


def test_daily_cycle__is_lost_where_arrival_times_are_stretched():
    made = Lublin99(classes="typeless", keep_cycle=False).generate(40_000, 128, 0.3, seed=1)
    natural = Lublin99(classes="typeless").generate(40_000, 128, None, seed=1)
    factor = (made.submit[-1] - made.submit[0]) / (natural.submit[-1] - natural.submit[0])
    np.testing.assert_allclose(made.submit - made.submit[0], (natural.submit - natural.submit[0]) * factor, atol=2 * max(factor, 1))
    assert (made.procs == natural.procs).all()
    assert (made.runtime == natural.runtime).all()
    share = half_hours(made) / len(made)
    assert abs(np.corrcoef(share, day_weights(TYPELESS))[0, 1]) < 0.7


def test_load__changes_only_the_times_of_typeless_jobs():
    made = [Lublin99(classes="typeless").generate(500, 64, load, seed=2) for load in (None, 0.4, 1.5)]
    for other in made[1:]:
        assert (other.procs == made[0].procs).all()
        assert (other.runtime == made[0].runtime).all()


@pytest.mark.parametrize("procs", [1, 2, 3, 7, 100, 128, 129, 4096, 100_000])
def test_for_machine__bounds_stay_in_order(procs):
    for part in (BATCH, INTERACTIVE, TYPELESS):
        moved = part.for_machine(procs)
        assert 0 <= moved.low <= moved.med <= moved.hi <= math.log2(procs) + 1e-12
        assert replace(moved, low=part.low, med=part.med, hi=part.hi) == part


def test_unknown_classes():
    with raises(PolicyError, "wrong_value", "classes", "'batch'"):
        Lublin99(classes="batch")
