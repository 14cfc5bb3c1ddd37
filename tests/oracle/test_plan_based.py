"""Plan-based scheduling: by hand, on both engines, by the auditor, and by the seed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, note, strategies as st

import walltime as wt
from tests.strategies import COINCIDENT, crowded, examples, policies, shrunk, workloads
from walltime.errors import PolicyError
from walltime.policy import PlanBased
from walltime.simulation.specification import Scheduler

RUNS = st.one_of(workloads(max_size=25), crowded())
CROWD = wt.Workload.from_arrays(submit=np.arange(30), runtime=np.arange(30) * 7 % 23 + 1, procs=np.arange(30) * 5 % 7 + 1, machine_procs=8)


@pytest.mark.parametrize("objective", ["sum", "square"])
@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_plan__by_hand(engine, objective):
    # Job 1 leaves one processor free until 10. In order of arrival, job 2 would wait 9 s and job 3 18 s; the other way round, 13 s and 0 s,
    # which is less in total and in squares. EASY must not delay job 2.
    jobs = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 12], procs=[3, 4, 1], machine_procs=4)
    schedule = wt.simulate(jobs, PlanBased(objective=objective), engine=engine)
    assert schedule.start.tolist() == [0, 14, 2]
    assert schedule.reserved_start.tolist() == [0, 10, 2]
    assert wt.simulate(jobs, "easy").start.tolist() == [0, 10, 20]


def test_plan__squares_prevent_long_waits():
    # Job 2 needs the whole machine, and narrow jobs keep coming. Under the sum of waits they all go first.
    count = 40
    submit, runtime = [0, 1, *range(2, 2 + 3 * count, 3)], [10, 10, *[12] * count]
    jobs = wt.Workload.from_arrays(submit=submit, runtime=runtime, procs=[3, 4, *[1] * count], machine_procs=4)
    by_sum, by_square = (wt.simulate(jobs, f"plan:objective={one}") for one in ("sum", "square"))
    assert by_sum.wait[1] == 130 > by_square.wait[1]
    assert by_sum.wait.sum() < by_square.wait.sum()


@pytest.mark.parametrize("coincident", COINCIDENT)
@examples(60)
@given(workload=RUNS, policy=policies("plan"), seed=st.integers(0, 3))
def test_plan__engines_agree_and_the_auditor_finds_no_fault(coincident, workload, policy, seed):
    note(f"{shrunk(workload)}\n{policy!r}")
    rules = {"coincident": coincident, "seed": seed}
    kernel, reference = (wt.simulate(workload, policy, engine=engine, **rules) for engine in ("kernel", "reference"))
    for name in ("start", "kind", "reserved_start"):
        assert np.array_equal(getattr(kernel, name), getattr(reference, name)), name
    report = kernel.audit()
    assert report.ok, str(report)
    assert report.decided == 1


@examples(40)
@given(workload=workloads(max_size=25))
def test_plan_of_one_job_at_a_time__is_conservative_backfilling_from_scratch(workload):
    one, other = PlanBased(lookahead=1), wt.Conservative(variant="scratch")
    assert np.array_equal(wt.simulate(workload, one).start, wt.simulate(workload, other).start)


def test_plan__depends_on_the_seed_of_the_run_and_of_the_policy():
    def starts(policy: str, seed: int) -> list[int]:
        return wt.simulate(CROWD, policy, seed=seed).start.tolist()

    assert starts("plan:iterations=5", 1) == starts("plan:iterations=5", 1)
    assert len({tuple(starts("plan:iterations=5", seed)) for seed in range(5)}) > 1
    assert len({tuple(starts(f"plan:iterations=5,seed={seed}", 1)) for seed in range(5)}) > 1
    assert Scheduler.of("plan").draws
    assert not Scheduler.of("easy").draws


def test_plan__of_another_seed_fails_the_audit_and_is_explained_by_its_own():
    schedule = next(one for seed in range(1, 9) if (one := wt.simulate(CROWD, "plan:iterations=5", seed=seed)).start.tolist() != _first())
    assert schedule.audit().ok
    assert not dataclasses.replace(schedule, seed=0).audit().ok
    assert wt.explain(schedule, 20, sooner=False).start == schedule.start[19]


def _first() -> list[int]:
    return wt.simulate(CROWD, "plan:iterations=5", seed=0).start.tolist()


def test_plan__takes_no_order():
    with pytest.raises(PolicyError) as caught:
        wt.policy.parse_policy("plan:order=sjf")
    assert caught.value.code == "conflicting_options"
