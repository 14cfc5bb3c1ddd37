"""Feitelson'96 and the variants of mualem01: sizes, runtimes, repetitions and what they wait for."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import walltime as wt
from tests.errors import raises
from tests.traces import trace_path
from walltime.errors import PolicyError, WorkloadError
from walltime.workload.models.feitelson96 import (
    CLASSES,
    CTC_SP2,
    THREE_STAGES,
    TWO_STAGES,
    Feitelson96,
    FeitelsonVariant,
    Marginals,
    _pick,
    size_class,
)
from walltime.workload.models.model import stream

LEVEL = 1e-3
ALL = pytest.mark.parametrize(
    "model", [Feitelson96(), *(FeitelsonVariant(variant=v) for v in ("s", "l", "sl"))], ids=["f", "fs", "fl", "fsl"]
)


def agrees(observed, odds):
    """A chi-square test, cells with fewer than five expected jobs put together."""
    expected = odds * observed.sum()
    enough = expected >= 5
    observed = np.append(observed[enough], observed[~enough].sum())
    expected = np.append(expected[enough], expected[~enough].sum())
    keep = expected > 0
    assert observed[~keep].sum() == 0
    return keep.sum() == 1 or stats.chisquare(observed[keep], expected[keep]).pvalue > LEVEL


def first_runs(jobs):
    return jobs.columns["preceding_job"] < 0


def test_size_weights__are_harmonic_with_emphasis():
    sizes, weights = Feitelson96().size_weights(128)
    assert sizes.tolist() == list(range(1, 129))
    assert weights.sum() == pytest.approx(1)
    for n in (1, 3, 9, 10, 16, 100, 128):
        emphasis = (3.0 if n & (n - 1) == 0 else 1.0) * (1.5 if n <= 9 else 1.0)
        assert weights[n - 1] / weights[0] == pytest.approx(n**-1.5 * emphasis / 4.5)


@ALL
@pytest.mark.parametrize("procs", [1, 2, 100, 512])
def test_sizes__have_their_probabilities(model, procs):
    sizes, weights = model.size_weights(procs)
    drawn = sizes[_pick(weights, stream("test", 1, "size").random(30_000))]
    assert agrees(np.bincount(drawn, minlength=procs + 1)[sizes], weights)


@pytest.mark.parametrize("stages", [TWO_STAGES, THREE_STAGES])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_runtimes__are_hyper_exponential(stages, share):
    model = Feitelson96(stages=stages)
    procs = np.full(20_000, round(share * 1000))
    raw = model._runtimes(procs, 1000, stream("test", 2, "runtime"))
    assert stats.kstest(raw, lambda x: model.runtime_cdf(x, share)).pvalue > LEVEL
    odds = model.stage_weights(np.array(share))
    means = np.array([stage[0] for stage in stages])
    mean, second = odds @ means, odds @ (2 * means**2)
    assert raw.mean() == pytest.approx(mean, abs=4 * math.sqrt((second - mean**2) / len(raw)))
    assert math.sqrt(second - mean**2) / mean > 1
    assert (np.diff([model.stage_weights(np.array(s)) @ means for s in (0, 0.5, 1)]) > 0).all()


def test_two_stages__are_those_of_the_specification():
    (short, low, low_full), (long, high, high_full) = TWO_STAGES
    assert long == 7 * short
    assert (low, low_full) == (0.95, pytest.approx(0.95 - 0.20))
    assert (high, high_full) == (pytest.approx(0.05), 0.25)


def test_runs__have_their_probabilities():
    model = Feitelson96(max_runs=50)
    jobs = model.generate(200_000, 64, seed=3)
    runs = np.bincount(jobs.columns["executable"])[1:]
    # jobs whose runs have not all been submitted by the end of the workload would seem to have fewer
    early = jobs.columns["executable"][first_runs(jobs) & (jobs.submit < 0.5 * jobs.submit[-1])]
    assert agrees(np.bincount(runs[early - 1], minlength=51)[1:], model.run_weights())


def test_arrivals__first_runs_are_a_poisson_process():
    jobs = Feitelson96().generate(40_000, 64, 0.7, seed=4)
    gaps = np.diff(jobs.submit[first_runs(jobs)])
    # whole seconds blur an exponential distribution; a geometric one is what it becomes
    mean = gaps.mean()
    edges = np.unique(np.quantile(gaps, np.linspace(0, 1, 20)).astype(int))[1:-1]
    low, high = 1 - np.exp(-np.maximum(edges - 0.0, 0) / mean), 1 - np.exp(-(edges + 1.0) / mean)
    share = np.array([(gaps <= edge).mean() for edge in edges])
    slack = 4 * np.sqrt(high * (1 - high) / len(gaps)) + 1e-3
    assert ((share > low - slack) & (share < high + slack)).all()


@ALL
@pytest.mark.parametrize("load", [None, 0.2, 1.5])
@pytest.mark.parametrize("think", [0, 600])
def test_repetitions__are_submitted_when_the_run_before_would_have_ended(model, load, think):
    jobs = replace(model, think_time=think).generate(3000, 100, load, seed=5)
    before, thinks = jobs.columns["preceding_job"], jobs.columns["think_time"]
    assert jobs.job_id.tolist() == list(range(1, 3001))
    again = before > 0
    assert again.any()
    assert (before[~again] == -1).all()
    assert (thinks[~again] == -1).all()
    assert (thinks[again] == think).all()
    place = before[again] - 1
    assert (place < np.flatnonzero(again)).all()
    assert (jobs.submit[again] == jobs.submit[place] + jobs.runtime[place] + think).all()
    assert (jobs.procs[again] == jobs.procs[place]).all()
    assert (jobs.runtime[again] == jobs.runtime[place]).all()
    assert (jobs.columns["executable"][again] == jobs.columns["executable"][place]).all()
    assert len(np.unique(before[again])) == again.sum()  # one run waits for another one at most
    assert np.unique(jobs.columns["executable"]).tolist() == list(range(1, int((~again).sum()) + 1))


def test_repetitions__may_have_runtimes_of_their_own():
    jobs = Feitelson96(same_runtime=False).generate(3000, 100, 0.7, seed=5)
    again = jobs.columns["preceding_job"] > 0
    place = jobs.columns["preceding_job"][again] - 1
    assert (jobs.runtime[again] != jobs.runtime[place]).mean() > 0.9
    assert (jobs.submit[again] == jobs.submit[place] + jobs.runtime[place]).all()


@pytest.mark.parametrize("jobs", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("load", [1e-6, 0.1, 1.5])
def test_few_jobs__come_near_the_load_too(jobs, load):
    for seed in range(15):
        made = Feitelson96().generate(jobs, 4, load, seed)
        assert len(made) == jobs
        if jobs > 1:
            span = made.submit[-1] - made.submit[0]
            assert made.offered_load == pytest.approx(load, rel=2 / span + 1e-6), seed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stages": ((0.0, 1.0, 1.0),)}, ("wrong_probabilities", "stages", "0")),
        ({"stages": ((5.0, 0.5, 1.0),)}, ("wrong_probabilities", "1", "0.5")),
    ],
)
def test_bad_stages(change, message):
    with raises(WorkloadError, *message):
        Feitelson96(**change)


@pytest.mark.parametrize("change", [{"order": -1.0}, {"mean_gap": 0.0}, {"max_runs": 0}, {"think_time": -5}])
def test_bad_constants(change):
    name, value = next(iter(change.items()))
    with raises(PolicyError, "wrong_value", name.replace("_", "-"), f"{value:g}"):
        Feitelson96(**change)


# --------------------------------------------------------------------------------------------------------- mualem01's variants


def runtime_agrees(runtime, row):
    """A chi-square test against the quantiles between which a straight line runs (rounding blurs the short ones)."""
    edges = np.unique(np.array(CTC_SP2.runtimes[row], float)[8:-8:8]) + 0.5
    grid = np.linspace(0, 1, 200_001)
    lengths = np.floor(CTC_SP2.quantile(grid, row) + 0.5)
    odds = np.diff(np.concatenate([[0], np.searchsorted(lengths, edges) / len(grid), [1]]))
    return agrees(np.histogram(runtime, np.concatenate([[-1], edges, [np.inf]]))[0], odds)


def alone(variant, procs=512):
    """A workload without repetitions, so that every job is drawn on its own."""
    return FeitelsonVariant(variant=variant, max_runs=1).generate(40_000, procs, seed=6)


def test_fl__runs_as_long_as_the_log_and_longer_when_larger():
    jobs = alone("l")
    assert runtime_agrees(jobs.runtime, 0)
    plain = Feitelson96(max_runs=1).generate(40_000, 512, seed=6)
    assert jobs.runtime.mean() > 4 * plain.runtime.mean()
    wide = jobs.procs > 128
    assert jobs.runtime[wide].mean() > jobs.runtime[~wide].mean()


def test_fsl__has_the_sizes_of_the_log_and_its_runtimes_in_each_class():
    jobs = alone("sl")
    whose = size_class(jobs.procs)
    for k in range(CLASSES):
        assert runtime_agrees(jobs.runtime[whose == k], k + 1), k
    sizes, counts = CTC_SP2.fitting(512)
    assert agrees(np.bincount(jobs.procs, minlength=513)[sizes], counts / counts.sum())


def test_fs__changes_sizes_only():
    jobs = alone("s")
    sizes, counts = CTC_SP2.fitting(512)
    assert agrees(np.bincount(jobs.procs, minlength=513)[sizes], counts / counts.sum())
    assert jobs.runtime.mean() < 2500


def test_size_class__is_that_of_the_specification():
    assert size_class(np.array([1, 2, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 999])).tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]


def test_marginals__of_the_log_are_those_that_ship():
    log = wt.read(trace_path("CTC-SP2-1996-3.1-cln.recon"))
    fitted = Marginals.fit(log)
    assert (fitted.sizes, fitted.runtimes) == (CTC_SP2.sizes, CTC_SP2.runtimes)
    grid = (np.arange(100_000) + 0.5) / 100_000
    whose = size_class(log.procs)
    for row in range(CLASSES + 1):
        mine = log.runtime if row == 0 else log.runtime[whose == row - 1]
        assert fitted.quantile(grid, row).mean() == pytest.approx(mine.mean(), rel=0.005)


def test_marginals__of_any_log():
    log = wt.Workload.from_arrays(submit=[0, 1, 2, 3], runtime=[5, 50, 500, 500], procs=[2, 2, 4, 100], machine_procs=128)
    fitted = Marginals.fit(log)
    assert fitted.sizes == ((2, 2), (4, 1), (100, 1))
    assert [row[0] for row in fitted.runtimes] == [5, 5, 5, 5, 5, 5, 5, 500]  # classes without jobs get all of them
    model = FeitelsonVariant(variant="sl", marginals=fitted)
    jobs = model.generate(500, 64, seed=1)
    assert set(np.unique(jobs.procs)) == {2, 4}
    assert set(np.unique(jobs.runtime[jobs.procs == 2])) <= set(range(5, 501))
    with raises(WorkloadError, "no_job_fits", "2", "1"):
        model.generate(500, 1)
    with raises(PolicyError, "wrong_value", "variant", "'x'"):
        FeitelsonVariant(variant="x")
