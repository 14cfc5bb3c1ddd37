"""Hyper-Erlang distributions, their fit to three moments, and Jann'97, which is made of them."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from scipy import stats

import walltime as wt
from tests.errors import raises
from tests.strategies import examples
from tests.traces import trace_path
from walltime.errors import WorkloadError
from walltime.workload.models.jann97 import CTC_SP2, HyperErlang, Jann97, _fitting, fit_hyper_erlang
from walltime.workload.models.model import stream, values_of
from walltime.workload.scaling import window

LEVEL = 1e-3


def is_well_determined(made):
    """Whether the stage means of no order have a variance so small, and not 0, that rounding decides what it is."""
    m1, m2, _ = made.moments()
    variances = (abs(m2 / m1**2 * n / (n + 1) - 1) for n in range(1, made.order + 1))
    return not any(1e-12 < variance < 1e-2 for variance in variances)


distributions = st.builds(
    HyperErlang,
    order=st.integers(1, 12),
    share=st.one_of(st.sampled_from((0.0, 1.0)), st.floats(0.001, 0.999)),  # that of a rarer branch is lost in rounding
    first=st.floats(0.01, 1e5),
    second=st.floats(0.01, 1e5),
).filter(is_well_determined)


@examples(500)
@given(distributions)
def test_fit__has_the_moments_that_were_asked_for(made):
    fitted = fit_hyper_erlang(*made.moments())
    np.testing.assert_allclose(fitted.moments(), made.moments(), rtol=1e-9)
    assert fitted.order <= made.order


@examples(200)
@given(distributions)
def test_fit__has_the_smallest_order(made):
    """Independent formulas: at every smaller order one of the conditions fails."""
    order = fit_hyper_erlang(*made.moments()).order
    mu = made.moments()
    for n in range(1, order):
        m1, m2, m3 = mu[0] / n, mu[1] / (n * (n + 1)), mu[2] / (n * (n + 1) * (n + 2))
        assert m2 <= m1**2 * (1 + 1e-6) or m1 * m3 < m2**2 * (1 + 1e-6)


@examples(200)
@given(distributions)
def test_fit__is_that_of_the_recipe(made):
    mu1, mu2, mu3 = made.moments()
    fitted = fit_hyper_erlang(mu1, mu2, mu3)
    n = fitted.order
    m1, m2, m3 = mu1 / n, mu2 / (n * (n + 1)), mu3 / (n * (n + 1) * (n + 2))
    assume(m2 > m1**2 * 1.01)
    s, q = (m3 - m1 * m2) / (m2 - m1**2), (m1 * m3 - m2**2) / (m2 - m1**2)
    roots = sorted([(s - math.sqrt(s * s - 4 * q)) / 2, (s + math.sqrt(s * s - 4 * q)) / 2])
    assert [fitted.first, fitted.second] == pytest.approx(roots, rel=1e-4, abs=1e-6 * m1)
    assert fitted.share == pytest.approx((m1 - roots[1]) / (roots[0] - roots[1]), abs=1e-4)


@pytest.mark.parametrize("order", [1, 2, 5, 50])
def test_fit__single_erlang(order):
    made = HyperErlang(order, 1.0, 7.0, 0.0)
    fitted = fit_hyper_erlang(*made.moments())
    assert (fitted.order, fitted.share, fitted.second) == (order, 1.0, 0.0)
    assert fitted.first == pytest.approx(7.0)


@pytest.mark.parametrize(
    ("moments", "message"),
    [
        ((1.0, 0.5, 1.0), ("impossible_moments",)),
        ((1.0, 2.0, 3.0), ("impossible_moments",)),
        ((0.0, 1.0, 1.0), ("impossible_moments",)),
        ((1.0, math.inf, 1.0), ("impossible_moments",)),
        ((1.0, math.nan, 1.0), ("impossible_moments",)),
        ((5.0, 25.0, 125.0), ("impossible_moments", "100", "125")),
    ],
)
def test_fit__impossible_moments(moments, message):
    with raises(WorkloadError, *message):
        fit_hyper_erlang(*moments)


def test_hyper_erlang__impossible_parameters():
    for bad in [(0, 0.5, 1.0, 1.0), (1, 1.5, 1.0, 1.0), (1, 0.5, -1.0, 1.0), (1, 0.5, 1.0, math.inf)]:
        with raises(WorkloadError, "number_out_of_range"):
            HyperErlang(*bad)


def cdf(made, x):
    """The distribution function of a hyper-Erlang distribution, from scipy."""
    first = stats.gamma.cdf(x, made.order, scale=made.first)
    return made.share * first + (1 - made.share) * (stats.gamma.cdf(x, made.order, scale=made.second) if made.second else 1)


@pytest.mark.parametrize("made", [HyperErlang(1, 0.3, 5.0, 100.0), HyperErlang(4, 0.8, 1.0, 20.0), HyperErlang(7, 1.0, 3.0, 0.0)])
def test_hyper_erlang__draws_follow_its_distribution(made):
    drawn = made.draw(20_000, stream("test", 1, "draw"))
    assert stats.kstest(drawn, lambda x: cdf(made, x)).pvalue > LEVEL
    spread = math.sqrt((made.moment(2) - made.mean() ** 2) / len(drawn))
    assert drawn.mean() == pytest.approx(made.mean(), abs=4 * spread)


# ------------------------------------------------------------------------------------------------------------ the model


def test_generate__each_range_follows_its_own_distributions():
    made = Jann97().generate(60_000, 322, seed=1)
    whole = made.submit[-1]
    for part in CTC_SP2:
        mine = (made.procs >= part.low) & (made.procs <= part.high)
        runtime = made.runtime[mine]
        edges = np.concatenate([[-0.5], np.unique(np.quantile(runtime, np.linspace(0.05, 0.95, 19)).round()) + 0.5, [np.inf]])
        if mine.sum() > 500:
            expected = np.diff(np.concatenate([[0], cdf(part.runtime, edges[1:-1]), [1]])) * mine.sum()
            assert stats.chisquare(np.histogram(runtime, edges)[0], expected).pvalue > LEVEL
        gap_spread = math.sqrt(part.gap.moment(2) - part.gap.mean() ** 2) / part.gap.mean()
        expected_count = whole / part.gap.mean()
        assert mine.sum() == pytest.approx(expected_count, abs=5 * gap_spread * math.sqrt(expected_count))
        sizes, counts = np.unique(made.procs[mine], return_counts=True)
        if len(part.sizes) > 1 and mine.sum() > 1000:
            expected = np.array(part.counts) / sum(part.counts) * mine.sum()
            observed = np.array([counts[sizes == size].sum() for size in part.sizes])
            keep = expected >= 5
            observed = np.append(observed[keep], observed[~keep].sum())
            expected = np.append(expected[keep], expected[~keep].sum())
            keep = expected > 0
            assert stats.chisquare(observed[keep], expected[keep]).pvalue > LEVEL


def test_generate__gaps_of_a_range_follow_its_distribution():
    only = Jann97((CTC_SP2[0],))
    made = only.generate(20_000, 322, seed=2)
    gaps = np.diff(made.submit)
    edges = np.array([30, 100, 300, 1000, 3000, 10_000])
    # the fractions that whole seconds cut off move a gap by less than one second
    low, high = cdf(only.ranges[0].gap, edges - 1.0), cdf(only.ranges[0].gap, edges + 1.0)
    share = np.array([(gaps <= edge).mean() for edge in edges])
    slack = 4 * np.sqrt(low * (1 - low) / len(gaps))
    assert ((share > low - slack) & (share < high + slack)).all()


@pytest.mark.parametrize("procs", [1, 2, 3, 100])
def test_generate__a_smaller_machine_gets_fewer_jobs_and_none_that_is_wider(procs):
    made = Jann97().generate(20_000, procs, seed=3)
    full = Jann97().generate(20_000, 322, seed=3)
    assert made.procs.max() == procs
    kept = (full.procs <= procs).mean()
    rate = (made.submit[-1] / len(made)) / (full.submit[-1] / len(full))
    assert rate == pytest.approx(1 / kept, rel=0.1)


def test_fitting__sizes_beyond_the_machine_are_left_out():
    sizes, counts = _fitting(CTC_SP2[2], 3)
    assert sizes.tolist() == [3]
    assert counts.tolist() == [CTC_SP2[2].counts[0]]


def test_fit__moments_of_a_generated_log_come_back():
    made = Jann97().generate(20_000, 322, seed=5)
    again = Jann97.fit(made)
    for part in again.ranges:
        mine = (made.procs >= part.low) & (made.procs <= part.high)
        for values, fitted in ((np.diff(made.submit[mine]), part.gap), (made.runtime[mine], part.runtime)):
            raw = values.astype(float)
            np.testing.assert_allclose(fitted.moments(), [(raw**k).mean() for k in (1, 2, 3)], rtol=1e-9)
        assert sum(part.counts) == mine.sum()
    assert sum(sum(part.counts) for part in again.ranges) == len(made)
    assert again.changes.startswith("source='fitted from jann97-20000-322-5'")


@pytest.mark.parametrize(("ranges", "first"), [("powers", [1, 2, 4, 8]), ("fives", [1, 5, 10, 15]), ([4, 16, 400], [4, 16])])
def test_fit__ranges(ranges, first):
    made = Jann97().generate(20_000, 322, seed=5)
    parts = Jann97.fit(made, ranges=ranges).ranges
    assert [part.high for part in parts][: len(first)] == first
    assert parts[0].low == 1
    assert all(a.high + 1 == b.low for a, b in pairwise(parts))
    assert parts[-1].high == made.procs.max()
    assert all(sum(part.counts) >= 30 for part in parts)


def test_fit__impossible():
    few = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[1, 2, 3], procs=[1, 1, 1], machine_procs=4)
    with raises(WorkloadError, "too_few_jobs", "workload", "3"):
        Jann97.fit(few)
    same = wt.Workload.from_arrays(submit=np.arange(50) ** 2, runtime=[10] * 50, procs=[1] * 50, machine_procs=4)
    with raises(WorkloadError, "impossible_moments", "runtimes", "1"):
        Jann97.fit(same)
    for bad in ("threes", [], [0, 4], [4, 4]):
        with pytest.raises(WorkloadError):
            Jann97.fit(Jann97().generate(200, 8, seed=1), ranges=bad)
    with raises(WorkloadError, "no_size_ranges", "97"):
        Jann97(())


def test_shipped_parameters__are_those_of_the_log():
    fitted, log = values_of("ctc_sp2"), wt.read(trace_path("CTC-SP2-1996-3.1-cln.recon"))
    assert log.origin.sha256 == fitted["sha256"]
    part = window(log, 0, fitted["jann97_end"])
    assert (len(part), int(part.procs.max())) == (17_810, 322)
    for ours, theirs in zip(CTC_SP2, Jann97.fit(part).ranges, strict=True):
        assert (ours.low, ours.high, ours.sizes, ours.counts) == (theirs.low, theirs.high, theirs.sizes, theirs.counts)
        for a, b in ((ours.gap, theirs.gap), (ours.runtime, theirs.runtime)):
            assert a.order == b.order
            assert a.moments() == pytest.approx(b.moments(), rel=1e-9)
    assert max(part.runtime.order for part in CTC_SP2) == 8
