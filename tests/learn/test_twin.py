"""The kernel of the learning environments does what its twin in plain Python does, whatever is decided."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.learn.twin import Twin, options_of
from tests.profiles import seeds
from tests.strategies import crowded, examples, workloads
from walltime.learn.batch import FORMULAS, Batch, Rules
from walltime.learn.sources import Episode, as_episodes, windows

JOBS = st.one_of(workloads(), crowded(max_size=40))


def compare(batch: Batch, twin: Twin) -> None:
    """What an agent sees is the same in both."""
    assert batch.now[0] == twin.now
    assert batch.over[0] == twin.over
    assert batch.mask[0].tolist() == twin.mask()
    rows, told = twin.observation()
    assert batch.seen[0] == pytest.approx(np.array(rows), abs=1e-6)
    assert batch.summary[0] == pytest.approx(np.array(told), abs=1e-6)
    assert [twin.jobs[i] for i in batch.waiting(0)] == twin.shown()


def play(episodes: list[Episode], options: dict, seed: int) -> int:
    """Decide at random in both, in one episode after the other; returns how many decisions there were."""
    batch, draw, steps = Batch(episodes, Rules(**options)), np.random.default_rng(seed), 0
    for number, episode in enumerate(episodes):
        batch.step(np.array([-1 - number]))
        twin = Twin(episode, Rules(**options), FORMULAS)
        compare(batch, twin)
        while not twin.over:
            action = int(draw.integers(0, batch.rules.actions))
            batch.step(np.array([action]))
            assert twin.decide(action) == pytest.approx(batch.rewards[0], rel=1e-9, abs=1e-9)
            compare(batch, twin)
            steps += 1
        assert batch.starts(0).tolist() == [job.start for job in twin.jobs]
    return steps


@examples(200)
@given(jobs=JOBS, data=st.data(), seed=st.integers(0, 1000))
def test_random_decisions__are_carried_out_as_by_the_twin(jobs, data, seed):
    options = options_of(lambda values: data.draw(st.sampled_from(values)))
    play(as_episodes(jobs), options, seed)


@examples(100)
@given(jobs=crowded(max_size=40), data=st.data(), seed=st.integers(0, 1000))
def test_random_decisions_after_a_warm_start__are_carried_out_as_by_the_twin(jobs, data, seed):
    options = options_of(lambda values: data.draw(st.sampled_from(values)))
    warm = data.draw(st.sampled_from(["easy", "fcfs", "conservative"]))
    play(windows(jobs, max(len(jobs) // 3, 1), warm=warm, overrun=options["overrun"]), options, seed)


@pytest.mark.parametrize("decision", ["next", "backfill", "both"])
@pytest.mark.parametrize("dialect", ["papers", "rlscheduler"])
def test_jobs_that_end_where_the_head_can_start__are_backfilled_as_by_the_twin(decision, dialect):
    draw = np.random.default_rng(1)
    for seed in seeds(200):
        count = 14
        runtime, procs = draw.integers(1, 5, count), draw.integers(1, 6, count)
        jobs = wt.Workload.from_arrays(
            submit=np.cumsum(draw.integers(0, 2, count)),
            runtime=runtime,
            requested=runtime + draw.integers(0, 2, count),
            procs=procs,
            machine_procs=8,
        )
        play(as_episodes(jobs), {"decision": decision, "dialect": dialect}, seed)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("decision", ["next", "backfill", "formula", "both"])
@pytest.mark.parametrize("dialect", ["papers", "rlscheduler"])
def test_queues_with_more_jobs_than_slots__are_shown_as_by_the_twin(decision, dialect):
    log = wt.workloads.Lublin99().generate(jobs=400, machine_procs=32, load=1.5, seed=5)
    users = np.random.default_rng(1).integers(-1, 9, len(log))
    log = dataclasses.replace(log, columns=log.columns | {"user": users})
    options = {"decision": decision, "dialect": dialect, "observation": "published", "slots": 20, "skip": True, "period": 600}
    assert play(windows(log, 200, warm="easy"), options, 1) > 20
