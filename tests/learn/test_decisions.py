"""Agents that decide as a policy does get its schedule, job for job; nobody gets an invalid one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.strategies import OVERRUN, crowded, examples, workloads
from tests.traces import trace_path
from walltime.estimates import effective_times
from walltime.learn.batch import DECISIONS, FORMULAS, Batch, Rules
from walltime.learn.sources import Episode, as_episodes, windows

JOBS = st.one_of(workloads(), crowded(max_size=40))


def saf(planned, procs):
    return -float(planned * procs)


ORDERS = {"fcfs": wt.FCFS, "sjf": wt.SJF, "saf": wt.order(saf)}


def played(jobs: wt.Workload | Episode, choose, **options) -> Batch:
    """An episode in which `choose(batch)` gives the actions."""
    batch = Batch(as_episodes(jobs), Rules(slots=100, **options))
    batch.step(np.array([-1]))
    while not batch.over[0]:
        assert batch.mask[0].any()
        batch.step(np.array([choose(batch)]))
    return batch


def first(batch: Batch) -> int:
    return int(batch.mask[0].argmax())


def by(order: str, overrun: str = "kill"):
    """Chooses the job that comes first in an order, ties by arrival."""

    def choose(batch: Batch) -> int:
        jobs = batch.episodes[0].workload
        _, planned = effective_times(jobs, overrun)
        place = batch.waiting(0)
        length, procs = planned[place], jobs.procs[place]
        scores = {"fcfs": place, "sjf": length, "saf": length * procs}[order]
        scores = np.where(batch.mask[0, : len(place)] != 0, scores.astype(float), np.inf)
        return int(scores.argmin())

    return choose


@pytest.mark.parametrize("decision", DECISIONS)
@examples(60)
@given(jobs=JOBS, overrun=st.sampled_from(OVERRUN))
def test_easys_own_choices__give_its_schedule(decision, jobs, overrun):
    choose = first if decision != "formula" else lambda batch: FORMULAS.index("fcfs")
    expected = wt.simulate(jobs, "easy", overrun=overrun, engine="reference").start
    assert played(jobs, choose, decision=decision, overrun=overrun).starts(0).tolist() == expected.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("count", [6_000, pytest.param(28_489, marks=pytest.mark.nightly)], ids=["part", "whole"])
def test_easys_own_choices__give_its_schedule_of_a_log(decision, count):
    jobs = wt.workloads.head(wt.read(trace_path("KTH-SP2-1996-2")), count)
    choose = first if decision != "formula" else lambda batch: FORMULAS.index("fcfs")
    assert np.array_equal(played(jobs, choose, decision=decision).starts(0), wt.simulate(jobs, "easy").start)


@pytest.mark.parametrize("backfilling", [True, False])
@pytest.mark.parametrize("rules", ["papers", "papers:decisions=committed", "rlscheduler"])
@examples(60)
@given(jobs=JOBS, order=st.sampled_from(sorted(ORDERS)), overrun=st.sampled_from(OVERRUN))
def test_orders_as_agents__give_their_schedules(rules, backfilling, jobs, order, overrun):
    policy = wt.Easy(order=ORDERS[order], backfill_order=wt.FCFS) if backfilling else wt.NoBackfilling(order=ORDERS[order])
    expected = wt.simulate(jobs, policy, dialect=rules, overrun=overrun, engine="reference").start.tolist()
    dialect, _, reading = rules.partition(":")
    options = {"dialect": dialect, "committed": bool(reading) or None, "backfilling": backfilling, "overrun": overrun}
    batch = played(jobs, by(order, overrun), **options)
    assert batch.starts(0).tolist() == expected
    assert batch.play(0, order).tolist() == expected  # the formula in the kernel


@examples(60)
@given(jobs=JOBS, order=st.sampled_from(sorted(ORDERS)), overrun=st.sampled_from(OVERRUN))
def test_who_comes_next_and_who_fills_in_one_order__is_that_policy(jobs, order, overrun):
    expected = wt.simulate(jobs, wt.Easy(order=ORDERS[order]), overrun=overrun, engine="reference").start.tolist()
    assert played(jobs, by(order, overrun), decision="both", overrun=overrun).starts(0).tolist() == expected


@examples(60)
@given(jobs=JOBS, order=st.sampled_from(sorted(ORDERS)), fill=st.sampled_from(sorted(ORDERS)), decision=st.sampled_from(["next", "both"]))
def test_formulas_for_the_queue_and_for_backfilling__give_the_schedules_of_that_policy(jobs, order, fill, decision):
    batch = Batch(as_episodes(jobs), Rules(decision=decision))
    expected = wt.simulate(jobs, wt.Easy(order=ORDERS[order], backfill_order=ORDERS[fill]), engine="reference").start.tolist()
    assert batch.play(0, order, fill).tolist() == expected
    assert batch.play(0, order, None).tolist() == wt.simulate(jobs, wt.NoBackfilling(order=ORDERS[order])).start.tolist()


@pytest.mark.parametrize("decision", ["backfill", "formula"])
@examples(60)
@given(jobs=JOBS, order=st.sampled_from(sorted(ORDERS)))
def test_formulas__order_the_queue_and_backfilling(decision, jobs, order):
    expected = wt.simulate(jobs, wt.Easy(order=ORDERS[order]), engine="reference").start.tolist()
    batch = Batch(as_episodes(jobs), Rules(decision=decision))
    assert batch.play(0, order).tolist() == expected
    if decision == "formula":
        assert played(jobs, lambda _: FORMULAS.index(order), decision=decision, period=3).starts(0).tolist() == expected


@examples(60)
@given(jobs=crowded(), order=st.sampled_from(sorted(ORDERS)))
def test_backfilling_in_another_order__is_that_policy(jobs, order):
    expected = wt.simulate(jobs, wt.Easy(backfill_order=ORDERS[order]), engine="reference").start.tolist()
    assert played(jobs, by(order), decision="backfill").starts(0).tolist() == expected


@examples(60)
@given(jobs=crowded(), policy=st.sampled_from(["easy", "conservative", "fcfs"]), overrun=st.sampled_from(OVERRUN))
def test_warm_start__goes_on_where_the_scheduler_was(jobs, policy, overrun):
    episodes = windows(jobs, len(jobs) // 3, warm=policy, overrun=overrun)
    whole = wt.simulate(jobs, policy, overrun=overrun)
    for episode in episodes:
        before = whole.start < episode.begin
        runs = before & (whole.end >= episode.begin)
        assert sorted(episode.running[:, 0].tolist()) == sorted(whole.start[runs].tolist())
        own = episode.workload.job_id[episode.waiting]  # the first job of the window; jobs are numbered by arrival
        waits = (jobs.job_id < own) & ~before
        assert episode.workload.job_id[: episode.waiting].tolist() == jobs.job_id[waits].tolist()
    last = episodes[-1]
    if policy == "easy" and last.workload.job_id[-1] == jobs.job_id[-1]:
        expected = whole.start[np.isin(jobs.job_id, last.workload.job_id)]
        assert played(last, first, overrun=overrun).starts(0).tolist() == expected.tolist()


OPTIONS = [
    {},
    {"skip": True},
    {"committed": True, "skip": True},
    {"decision": "backfill"},
    {"decision": "both"},
    {"decision": "both", "skip": True, "slots": 3},
    {"decision": "both", "committed": True},
    {"decision": "formula", "period": 60},
    {"dialect": "rlscheduler"},
    {"dialect": "rlscheduler", "decision": "backfill"},
    {"backfilling": False, "observation": "published"},
    {"observation": "published", "slots": 12},
    {"decision": "backfill", "selection": "published", "slots": 12},
]


def check(batch: Batch, jobs: list[Episode]) -> None:
    """No more processors are in use than there are; the columns of the state fit together."""
    for e in range(batch.count):
        own = batch.state[e]
        assert 0 <= own.free <= jobs[0].workload.machine_procs
        assert own.started + own.waiting == own.arrived
    assert np.isfinite(batch.rewards).all()
    assert ((batch.seen >= 0) & (batch.seen <= 1)).all()
    assert ((batch.summary >= 0) & (batch.summary <= 1)).all()
    assert batch.mask.any(axis=1).all()


def random_steps(episodes: list[Episode], options: dict, steps: int, every: int = 1) -> None:
    batch, draw = Batch(episodes, Rules(**options), 16), np.random.default_rng(1)
    for number in range(steps // 16):
        over = batch.over
        if number % every == 0:
            check(batch, episodes)
        for e in np.flatnonzero(over & (batch.state[:16].started > 0)):
            jobs, start = batch.episodes[batch.state[e].episode].workload, batch.starts(int(e))
            assert (start >= jobs.submit).all()
            if number % every == 0:
                used = wt.metrics.busy_processors(start, start + np.minimum(jobs.runtime, jobs.requested), jobs.procs)[1]
                assert used.max(initial=0) <= jobs.machine_procs
        actions = draw.integers(0, batch.rules.actions, 16)
        batch.step(np.where(over, -1 - draw.integers(len(episodes), size=16), actions))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@examples(10)
@given(jobs=crowded())
def test_random_decisions__leave_no_invalid_state(options, jobs):
    random_steps([*windows(jobs, len(jobs) // 2, warm="easy"), *as_episodes(jobs)], options, 320)


@pytest.mark.nightly
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_million_random_decisions__leave_no_invalid_state(options):
    log = wt.workloads.Lublin99().generate(jobs=20_000, machine_procs=128, load=0.8, seed=1)
    random_steps(windows(log, 256, warm="easy"), options, 1_000_000, every=50)
