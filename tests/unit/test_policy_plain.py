"""A policy of the user's own in plain Python, on the reference engine."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import walltime as wt

JOBS = wt.Workload.from_arrays(submit=[0, 1, 2, 3], runtime=[9, 4, 3, 2], requested=[10, 5, 3, 2], procs=[2, 2, 1, 1], machine_procs=3)


@dataclass(frozen=True)
class WidestFirst(wt.PlainPolicy):
    """Start the widest job that fits, until none does."""

    def choose(self, now, waiting, running, free):
        for job in sorted(waiting, key=lambda job: (-job.procs, job.index)):
            if job.procs <= free:
                free -= job.procs
                yield job


def test_plain_policy__decides_who_starts():
    # 1 on arrival, beside it 3, at 2, until 5, and 4, at 5. 2 (two wide) waits for 1, until 9.
    schedule = wt.simulate(JOBS, WidestFirst())
    assert schedule.start.tolist() == [0, 9, 2, 5]
    assert schedule.kind.tolist() == [0, 1, 2, 2]
    assert schedule.promised.tolist() == [-1] * 4
    assert schedule.end.tolist() == [9, 13, 5, 7]
    assert schedule.policy.name == "WidestFirst"


def test_plain_policy__runs_on_the_reference_engine_and_says_so():
    schedule = wt.simulate(JOBS, WidestFirst())
    assert schedule.start.tolist() == [0, 9, 2, 5]
    assert schedule.engine == "reference"
    with pytest.raises(wt.PolicyError, match=r"^WidestFirst runs on the reference engine only; leave the engine to be chosen"):
        wt.simulate(JOBS, WidestFirst(), engine="kernel")


def test_plain_policy__that_backfills_without_reservations_equals_hybrid_zero():
    @dataclass(frozen=True)
    class FirstFit(wt.PlainPolicy):
        def choose(self, now, waiting, running, free):
            for job in waiting:
                if job.procs <= free:
                    free -= job.procs
                    yield job

    own, built_in = wt.simulate(JOBS, FirstFit()), wt.simulate(JOBS, wt.Hybrid(depth=0))
    assert own.start.tolist() == built_in.start.tolist() == [0, 9, 2, 5]
    assert own.kind.tolist() == built_in.kind.tolist()


def test_plain_policy__is_told_the_time_and_the_jobs():
    seen = []

    @dataclass(frozen=True)
    class Watching(wt.PlainPolicy):
        def choose(self, now, waiting, running, free):
            seen.append((now, [job.index for job in waiting], [(job.index, job.start, job.expected_end) for job in running], free))
            return [job for job in waiting[:1] if job.procs <= free]

    wt.simulate(JOBS, Watching())
    assert seen[:3] == [(0, [0], [], 3), (1, [1], [(0, 0, 10)], 1), (2, [1, 2], [(0, 0, 10)], 1)]
    assert (9, [1, 2, 3], [], 3) in seen


def test_plain_policy__choosing_a_job_that_does_not_fit():
    @dataclass(frozen=True)
    class Greedy(wt.PlainPolicy):
        def choose(self, now, waiting, running, free):
            return waiting

    with pytest.raises(wt.PolicyError, match=r"^Greedy chose job number 2, which needs 2 processors of 1 free$"):
        wt.simulate(JOBS, Greedy())


def test_plain_policy__choosing_a_job_twice():
    @dataclass(frozen=True)
    class Twice(wt.PlainPolicy):
        def choose(self, now, waiting, running, free):
            return [*waiting[:1], *waiting[:1]]

    with pytest.raises(wt.PolicyError, match=r"^Twice chose job number 1, which is not waiting$"):
        wt.simulate(JOBS, Twice())


def test_plain_policy__choosing_a_running_job():
    @dataclass(frozen=True)
    class Again(wt.PlainPolicy):
        def choose(self, now, waiting, running, free):
            return running or waiting

    with pytest.raises(wt.PolicyError, match=r"^Again chose job number 1, which is not waiting$"):
        wt.simulate(JOBS, Again())


def test_plain_policy__that_never_starts_anybody():
    @dataclass(frozen=True)
    class Idle(wt.PlainPolicy):
        def choose(self, now, waiting, running, free):
            return ()

    with pytest.raises(wt.EngineError, match=r"^4 jobs wait for processors that nobody will free$"):
        wt.simulate(JOBS, Idle())


def test_plain_policy__without_choose_is_not_implemented():
    with pytest.raises(NotImplementedError):
        wt.simulate(JOBS, wt.PlainPolicy())
