"""Replications: the same result on any number of threads, seeds in pairs, and a prompt end when something goes wrong."""

from __future__ import annotations

import threading
import time

import pytest

import walltime as wt
from tests.errors import raises
from walltime.errors import PolicyError, WorkloadError
from walltime.estimates import FModel
from walltime.simulation import Case, replication
from walltime.simulation.replication import Replications, replicate
from walltime.tables import number
from walltime.workload.models import MODELS
from walltime.workload.scaling import shake

JOBS = MODELS["lublin99"].generate(400, 64, 0.9, 2)
POLICY = wt.Easy()


def shaken(seed: int) -> wt.Workload:
    return shake(JOBS, 30, seed).with_estimates(FModel(4), seed)


@pytest.fixture(scope="module")
def one_thread() -> Replications:
    return replicate(shaken, POLICY, range(8), workers=1)


@pytest.mark.parametrize("workers", [2, 5, None])
def test_replications__do_not_depend_on_the_number_of_threads(one_thread, workers):
    assert replicate(shaken, POLICY, range(8), workers=workers).summaries == one_thread.summaries


def test_replications__do_not_depend_on_the_order_of_the_seeds(one_thread):
    seeds = [5, 0, 7, 2, 6, 1, 4, 3]
    other = replicate(shaken, POLICY, seeds, workers=2)
    assert list(other.seeds) == seeds
    assert [other.summaries[seeds.index(seed)] for seed in range(8)] == one_thread.summaries


def test_replications__can_be_run_alone(one_thread):
    assert replicate(shaken, POLICY, [6]).summaries == [one_thread.summaries[6]]
    assert wt.simulate(shaken(6), POLICY).summary() == one_thread.summaries[6]


def test_replications__differ_between_seeds(one_thread):
    assert len(set(one_thread.values("mean_wait").tolist())) == 8


def test_statistics__are_those_of_the_values(golden, one_thread):
    waits = one_thread.values("mean_wait")
    assert waits.tolist() == [summary.mean_wait for summary in one_thread.summaries]
    assert one_thread.band("mean_wait").mean == waits.mean()
    assert (one_thread.band("mean_wait").low, one_thread.band("mean_wait").high) == (waits.min(), waits.max())
    assert one_thread.spread("mean_wait") == waits.std(ddof=1) / waits.mean()
    golden("compare", one_thread.interval("mean_wait", 0.95).what)


def test_difference__is_taken_in_pairs(golden, one_thread):
    other = replicate(shaken, wt.NoBackfilling(), range(8), workers=2)
    difference = other.difference("mean_wait", one_thread)
    pairs = other.values("mean_wait") - one_thread.values("mean_wait")
    assert difference.mean == pytest.approx(pairs.mean())
    golden("compare", difference.what)
    assert difference.low < pairs.mean() < difference.high
    self = one_thread.difference("mean_wait", one_thread)
    assert (self.mean, self.half_width) == (0, 0)


@pytest.mark.parametrize("seeds", [range(7), range(1, 9), [1, 0, 2, 3, 4, 5, 6, 7]])
def test_difference__needs_the_same_seeds_in_the_same_order(one_thread, seeds):
    summaries = [one_thread.summaries[0]] * len(seeds)
    with raises(PolicyError, "different_seeds"):
        Replications(POLICY, seeds, summaries).difference("mean_wait", one_thread)


def test_options__reach_the_simulation():
    over = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[100, 10, 10], requested=[50, 10, 10], procs=[1, 1, 1], machine_procs=1)
    waits = {
        overrun: replicate(lambda seed: over, POLICY, [0], overrun=overrun).values("mean_wait")[0]
        for overrun in ("kill", "extend", "continue")
    }
    assert waits["kill"] == (0 + 49 + 58) / 3
    assert waits["extend"] == waits["continue"] == (0 + 99 + 108) / 3
    trimmed = replicate(lambda seed: JOBS, POLICY, [0], trim="tsafrir06").summaries[0]
    assert trimmed == wt.simulate(JOBS, POLICY).summary("tsafrir06")
    one_by_one = replicate(lambda seed: JOBS, wt.Conservative(), [0], coincident="sequential").summaries[0]
    assert one_by_one == wt.simulate(JOBS, wt.Conservative(), coincident="sequential").summary()


def test_progress__counts_to_the_number_of_seeds():
    told: list[int] = []
    replicate(shaken, POLICY, range(5), workers=2, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 5


def test_no_seeds__get_one_line():
    with raises(PolicyError, "number_out_of_range"):
        replicate(shaken, POLICY, [])


def test_unknown_option__gets_one_line():
    with raises(PolicyError, "unknown_overrun_rule", "'shrug'"):
        replicate(shaken, POLICY, range(3), overrun="shrug")


# ------------------------------------------------------------------------------------------------------------- the end


def test_error__of_one_replication_is_that_of_all():
    def fails(seed: int) -> wt.Workload:
        if seed == 3:
            raise WorkloadError("no jobs", "no_jobs")
        return shaken(seed)

    with raises(WorkloadError, "no_jobs"):
        replicate(fails, POLICY, range(6), workers=2)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, SystemExit])
def test_error__leaves_the_replications_that_have_not_begun(error):
    asked: list[int] = []
    lock = threading.Lock()

    def fails(seed: int) -> wt.Workload:
        with lock:
            asked.append(seed)
        time.sleep(0.02)
        if seed == 0:
            raise error("stop")
        return shaken(seed)

    with pytest.raises(error):
        replicate(fails, POLICY, range(1000), workers=2)
    assert len(asked) < 100


def test_error__of_the_progress_callback_ends_it():
    def stop(done: int) -> None:
        raise KeyboardInterrupt

    asked: list[int] = []

    def noted(seed: int) -> wt.Workload:
        asked.append(seed)
        return shaken(seed)

    with pytest.raises(KeyboardInterrupt):
        replicate(noted, POLICY, range(20_000), workers=2, progress=stop)
    assert len(asked) < 20_000


def test_error__stops_the_simulations_that_run(monkeypatch):
    looked = []

    def endless(workload, policy, *, progress=None, **options):
        while len(looked) < 10_000:
            looked.append(0)
            time.sleep(0.01)
            progress(0)
        return wt.simulate(workload, policy, **options)

    def fails(seed: int) -> wt.Workload:
        if seed == 1:
            time.sleep(0.1)
            raise KeyboardInterrupt
        return JOBS

    monkeypatch.setattr(replication, "simulate", endless)
    with pytest.raises(KeyboardInterrupt):
        replicate(fails, POLICY, range(2), workers=2)
    assert 0 < len(looked) < 10_000


def test_equal_seeds__are_refused():
    with raises(wt.PolicyError, "equal_seeds", 4):
        replicate(shaken, POLICY, [4, 2, 4])


def test_displays__in_notebooks_have_the_numbers():
    results, one = (replicate(shaken, POLICY, range(count)) for count in (3, 1))
    assert number(results.interval("mean_bounded_slowdown").mean) in results._repr_html_()
    assert number(one.summaries[0].mean_bounded_slowdown) in one._repr_html_()
    batch = wt.simulate_many(JOBS, [Case(), Case("fcfs")])
    assert all(text in batch._repr_html_() for text in ("easy", "fcfs", number(batch.summaries[1].mean_bounded_slowdown)))
