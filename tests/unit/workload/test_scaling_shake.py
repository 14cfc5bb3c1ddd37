"""Shaking: small, uniform, and the same for a job whoever else is there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

import walltime as wt
from tests.errors import raises
from tests.strategies import examples, workloads
from walltime.errors import PolicyError
from walltime.workload.models import MODELS
from walltime.workload.scaling import shake

LEVEL = 1e-3
ARRAYS = ("job_id", "submit", "runtime", "requested", "procs", "planned")


def regular(jobs: int, gap: int = 1000, first: int = 1000) -> wt.Workload:
    return wt.Workload.from_arrays(submit=first + gap * np.arange(jobs), runtime=[5] * jobs, procs=[1] * jobs, machine_procs=1)


def moves(before: wt.Workload, after: wt.Workload) -> dict[int, int]:
    """By how much each job was moved, by its id."""
    was = dict(zip(before.job_id.tolist(), before.submit.tolist(), strict=True))
    return {job: submit - was[job] for job, submit in zip(after.job_id.tolist(), after.submit.tolist(), strict=True)}


def test_shake__moves_uniformly_by_whole_seconds_from_minus_to_plus():
    jobs = regular(61_000)
    moved = np.array(list(moves(jobs, shake(jobs, 30, seed=11)).values()))
    assert (moved.min(), moved.max()) == (-30, 30)
    assert stats.chisquare(np.bincount(moved + 30, minlength=61)).pvalue > LEVEL


def test_shake__of_neighbours_and_of_seeds_has_nothing_in_common():
    jobs = regular(20_000)
    one, two = (np.array(list(moves(jobs, shake(jobs, 10, seed=seed)).values())) for seed in (1, 2))
    assert stats.chisquare(np.histogram2d(one, two, bins=21)[0].ravel()).pvalue > LEVEL
    assert stats.chisquare(np.histogram2d(one[1:], one[:-1], bins=21)[0].ravel()).pvalue > LEVEL


@given(workload=workloads(), seconds=st.integers(0, 100), seed=st.integers(0, 2**64 - 1))
@examples(200)
def test_shake__stays_within_its_bound_and_above_0_and_keeps_each_job(workload, seconds, seed):
    shaken = shake(workload, seconds, seed)
    for job, by in moves(workload, shaken).items():
        at = int(workload.submit[workload.job_id == job][0])
        assert -min(seconds, at) <= by <= seconds
    assert (np.diff(shaken.submit) >= 0).all()
    order = np.argsort(shaken.job_id)
    for name in ("job_id", "runtime", "requested", "procs", "planned"):
        assert getattr(shaken, name)[order].tolist() == getattr(workload, name)[np.argsort(workload.job_id)].tolist()


@given(workload=workloads(min_size=2), seed=st.integers(0, 1000), data=st.data())
@examples(100)
def test_shake__of_a_job_does_not_depend_on_the_other_jobs(workload, seed, data):
    chosen = data.draw(st.lists(st.integers(0, len(workload) - 1), min_size=1, unique=True).map(sorted))
    part = workload.take(np.array(chosen), "some")
    everything, some = moves(workload, shake(workload, 30, seed)), moves(part, shake(part, 30, seed))
    assert some == {job: everything[job] for job in some}


def test_shake__same_seed_same_jobs(golden):
    jobs = regular(100, gap=3)
    one, again, other = (shake(jobs, 30, seed) for seed in (4, 4, 5))
    assert np.array_equal(one.submit, again.submit)
    assert np.array_equal(one.job_id, again.job_id)
    assert not np.array_equal(one.submit, other.submit)
    golden("simulate", one.origin.steps)


def test_shake__may_change_the_order_and_takes_the_columns_along():
    jobs = wt.Workload.from_arrays(
        submit=100 + np.arange(200),
        runtime=np.arange(200),
        procs=[1] * 200,
        machine_procs=1,
        planned=np.arange(200) + 7,
        columns={"user": np.arange(200) * 3},
    )
    shaken = shake(jobs, 30, seed=1)
    assert not np.array_equal(shaken.job_id, jobs.job_id), "with a second between jobs, half a minute must change the order"
    assert np.array_equal(shaken.runtime, shaken.job_id - 1)
    assert np.array_equal(shaken.planned, shaken.runtime + 7)
    assert np.array_equal(shaken.columns["user"], shaken.runtime * 3)


def test_shake__by_nothing_changes_nothing():
    jobs = regular(20)
    assert np.array_equal(shake(jobs, 0, 3).submit, jobs.submit)


def test_shake__of_the_first_second_stays_above_0():
    jobs = wt.Workload.from_arrays(submit=[0] * 100, runtime=[1] * 100, procs=[1] * 100, machine_procs=1)
    shaken = shake(jobs, 50, seed=1)
    assert shaken.submit.min() == 0
    assert (shaken.submit == 0).sum() > 30, "about half of them"
    assert shaken.submit.max() <= 50


@pytest.mark.parametrize(("seconds", "said"), [(-1, "-1"), (10**9 + 1, "1000000001"), (2**80, "1.20893e+24"), (2.5, "2.5")])
def test_shake__that_cannot_be_gets_one_line(seconds, said):
    with raises(PolicyError, "number_out_of_range", said, "1000000000"):
        shake(regular(2), seconds)


def test_shake__may_be_wide():
    assert len(shake(regular(2), 10**9)) == 2


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_shake__with_a_seed_that_cannot_be_gets_one_line(seed):
    with raises(PolicyError, "number_out_of_range", "0", "2", "64", "1"):
        shake(regular(2), 3, seed)


def test_shake__default_is_half_a_minute():
    jobs = regular(1000)
    assert max(abs(by) for by in moves(jobs, shake(jobs)).values()) == 30


@pytest.mark.parametrize("seed", range(3))
def test_shake__keeps_who_waits_for_whom(seed):
    """Repetitions of a job that runs for a few seconds are closer to each other than the shake is wide."""
    jobs = MODELS["feitelson96"].generate(1000, 64, 0.7, seed).with_feedback()
    shaken = shake(jobs, 30, seed)
    assert shaken.feedback
    followed = {int(i): int(p) for i, p in zip(jobs.job_id, jobs.columns["preceding_job"], strict=True)}
    assert followed == {int(i): int(p) for i, p in zip(shaken.job_id, shaken.columns["preceding_job"], strict=True)}


@pytest.mark.parametrize("feedback", [True, False])
def test_shake__moves_a_chain_by_what_its_first_job_draws(feedback):
    jobs = MODELS["feitelson96"].generate(1000, 64, 0.7, 5).with_feedback(feedback)
    shaken = shake(jobs, 30, 2)
    by = moves(jobs, shaken)
    after, _ = jobs.dependencies()
    ids = jobs.job_id.tolist()
    assert (after >= 0).sum() > 100
    for job, followed in zip(ids, after.tolist(), strict=True):
        if followed >= 0:
            assert by[job] == by[ids[followed]]
    alone = shake(wt.Workload.from_arrays(**{n: getattr(jobs, n) for n in ARRAYS}, machine_procs=64), 30, 2)
    drawn = moves(jobs, alone)
    assert all(by[job] == drawn[job] for job, followed in zip(ids, after.tolist(), strict=True) if followed < 0)
    assert shaken.with_feedback().feedback


def test_shake__of_a_chain_stops_at_0_together():
    columns = {"preceding_job": np.array([-1, 1, 2])}
    jobs = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[1] * 3, procs=[1] * 3, machine_procs=1, columns=columns, feedback=True)
    seen = {tuple(shake(jobs, 5, seed).submit.tolist()) for seed in range(60)}
    assert seen == {(by, by + 1, by + 2) for by in range(6)}


def test_shake__does_not_hold_a_job_to_one_that_comes_after_it():
    columns = {"preceding_job": np.array([2, 2, -1])}
    jobs = wt.Workload.from_arrays(submit=[100, 200, 300], runtime=[1] * 3, procs=[1] * 3, machine_procs=1, columns=columns)
    plain = wt.Workload.from_arrays(submit=[100, 200, 300], runtime=[1] * 3, procs=[1] * 3, machine_procs=1)
    assert shake(jobs, 30, 1).submit.tolist() == shake(plain, 30, 1).submit.tolist()
