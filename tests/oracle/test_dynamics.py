"""What starts do to each other (wild backfills, delays, SJFness): kernel, reference and definition agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, note, strategies as st

import walltime as wt
from tests.errors import raises
from tests.oracle import replay
from tests.strategies import (
    COINCIDENT,
    LATER_KINDS,
    OVERRUN,
    PERFECT,
    POLICY_KINDS,
    UPPER_BOUNDS,
    crowded,
    examples,
    orders,
    policies,
    real_and_planned,
    shrunk,
    workloads,
)
from walltime.engine.problem import Problem
from walltime.engine.reference.number import Reference
from walltime.policy.log_view import LogView

pytestmark = pytest.mark.slow

VALUES = ("wild", "suffered", "delay", "shortest", "alone", "sequence")
SMALL, LARGE = examples(30), examples(15)
NAMED = (
    wt.NoBackfilling(),
    wt.Easy(),
    wt.Easy(backfill_order=wt.SJF),
    wt.Easy(order=wt.SJF),
    wt.Easy(order=wt.WFP),
    wt.Easy(order=wt.WFP, backfill_order=wt.SJF),
    wt.Hybrid(depth=3),
    wt.Conservative(),
    wt.Conservative(variant="scratch"),
)
RECORDED = tuple(kind for kind in POLICY_KINDS if kind not in LATER_KINDS)
"""Policies under which the effects on the head of the queue are recorded."""
in_both_modes = pytest.mark.parametrize("coincident", COINCIDENT)


def assert_engines_agree(workload: wt.Workload, policy: wt.policy.Policy, coincident: str, overrun: str) -> None:
    note(f"{shrunk(workload)}\n{policy!r} coincident={coincident!r} overrun={overrun!r}")
    kernel, reference = (
        wt.simulate(workload, policy, coincident=coincident, overrun=overrun, engine=e, dynamics=True) for e in ("kernel", "reference")
    )
    assert kernel.start.tolist() == reference.start.tolist()
    for name in VALUES:
        assert getattr(kernel.dynamics, name).tolist() == getattr(reference.dynamics, name).tolist(), name


# ------------------------------------------------------------------------------------------------------ kernel = reference


@in_both_modes
@pytest.mark.parametrize("kind", RECORDED)
@SMALL
@given(data=st.data())
def test_dynamics__kernel_equals_reference_on_small_workloads(kind, coincident, data):
    workload = data.draw(workloads(), label="workload")
    policy = data.draw(policies(kind), label="policy")
    for overrun in OVERRUN:
        assert_engines_agree(workload, policy, coincident, overrun)


@in_both_modes
@pytest.mark.parametrize("policy", NAMED, ids=lambda policy: policy.label)
@LARGE
@given(workload=crowded())
def test_dynamics__kernel_equals_reference_on_crowded_machines(policy, coincident, workload):
    for overrun in OVERRUN:
        assert_engines_agree(workload, policy, coincident, overrun)


def test_dynamics__corpus_of_crowded_machines_has_all_that_can_happen():
    # Else the comparisons above might compare nothing: wild and mild backfills, repeated suffering, ties, trivial starts.
    found = dict.fromkeys(("wild", "mild", "repeated", "shortest", "not shortest", "alone"), 0)
    for case in replay.corpus(count=150, seed=3, jobs=50):
        columns = {name: case[name] for name in ("submit", "runtime", "requested", "planned", "procs", "machine_procs")}
        workload = wt.Workload.from_arrays(**columns)
        schedule = wt.simulate(workload, wt.Easy(), overrun=case["overrun"], coincident=case["coincident"], dynamics=True)
        seen = schedule.dynamics
        found["wild"] += int(seen.wild.sum())
        found["mild"] += int(((schedule.kind == wt.policy.Kind.BACKFILLED) & ~seen.wild).sum())
        found["repeated"] += int((seen.suffered > 1).sum())
        found["shortest"] += int((seen.shortest & ~seen.alone).sum())
        found["not shortest"] += int((~seen.shortest).sum())
        found["alone"] += int(seen.alone.sum())
    assert min(found.values()) >= 20, found


@in_both_modes
@SMALL
@given(workload=workloads(max_size=25), policy=st.sampled_from(RECORDED).flatmap(policies), overrun=st.sampled_from(OVERRUN))
def test_dynamics__looking_does_not_change_the_schedule(coincident, workload, policy, overrun):
    plain, watched = (wt.simulate(workload, policy, coincident=coincident, overrun=overrun, dynamics=d) for d in (False, True))
    assert plain.dynamics is None
    for name in ("start", "end", "kind", "reserved_start"):
        assert getattr(plain, name).tolist() == getattr(watched, name).tolist(), name
    columns = (workload.submit, *real_and_planned(workload, overrun), workload.procs, workload.machine_procs)
    known = LogView.of(policy.reads, workload, workload.requested)
    references = [Reference(Problem(*columns, policy, known=known, coincident=coincident, logged=d)) for d in (False, True)]
    for reference in references:
        reference.run()
    plain_jobs, watched_jobs = ([(j.start, j.kind, j.reserved_start, j.ticket) for j in reference.jobs] for reference in references)
    assert plain_jobs == watched_jobs


# ------------------------------------------------------------------- the definitions, applied to the finished schedule


def real_shadow(schedule: wt.Schedule, started: list[int], head: int, now: int) -> int:
    """The first time from now on at which the head fits, of the jobs that have started only those running that end later."""
    procs, end = schedule.workload.procs, schedule.end
    for time in sorted({now, *(int(end[job]) for job in started if end[job] > now)}):
        taken = sum(int(procs[job]) for job in started if end[job] > time)
        if taken + procs[head] <= schedule.workload.machine_procs:
            return time
    raise AssertionError("the machine is empty in the end")


@SMALL
@given(workload=st.one_of(workloads(max_size=25), crowded(max_size=35)), backfill_order=orders(), overrun=st.sampled_from(OVERRUN))
def test_dynamics__follow_from_the_schedule_and_the_sequence_of_its_starts(workload, backfill_order, overrun):
    # In order of arrival the head is the first of those that wait, and as a batch all arrivals of an instant come first.
    schedule = wt.simulate(workload, wt.Easy(backfill_order=backfill_order), overrun=overrun, dynamics=True)
    count = len(workload)
    wild, suffered, initial, shortest, alone = [False] * count, [0] * count, [-1] * count, [False] * count, [False] * count
    started: list[int] = []
    for job in schedule.dynamics.sequence.tolist():
        now = int(schedule.start[job])
        waiting = [other for other in range(count) if workload.submit[other] <= now and other not in started]
        shortest[job] = bool(schedule.runtime[job] == min(schedule.runtime[other] for other in waiting))
        alone[job] = waiting == [job]
        if schedule.kind[job] == wt.policy.Kind.BACKFILLED:
            head = waiting[0]
            before, after = (real_shadow(schedule, running, head, now) for running in (started, [*started, job]))
            initial[head] = before if initial[head] < 0 else initial[head]
            wild[job] = after > before
            suffered[head] += wild[job]
        started.append(job)
    delay = [int(schedule.start[job]) - initial[job] if suffered[job] else 0 for job in range(count)]
    for name, expected in (("wild", wild), ("suffered", suffered), ("delay", delay), ("shortest", shortest), ("alone", alone)):
        assert getattr(schedule.dynamics, name).tolist() == expected, name


# ------------------------------------------------------------------------------------------------------------ properties


@in_both_modes
@SMALL
@given(workload=st.one_of(workloads(PERFECT, max_size=25), crowded(PERFECT)), order=orders(), backfill_order=orders())
def test_dynamics__no_backfill_is_wild_with_perfect_estimates(coincident, workload, order, backfill_order):
    # tsafrir06, section V. The shadow time is then the real one, and a backfilled job ends by it or uses extra nodes.
    policy = wt.Easy(order=order, backfill_order=backfill_order)
    seen = wt.simulate(workload, policy, coincident=coincident, dynamics=True).dynamics
    assert not seen.wild.any()
    assert not seen.suffered.any()
    assert not seen.delay.any()


@in_both_modes
@SMALL
@given(
    workload=st.one_of(workloads(max_size=25), crowded()),
    policy=st.sampled_from(RECORDED).flatmap(policies),
    overrun=st.sampled_from(OVERRUN),
)
def test_dynamics__only_backfilled_jobs_are_wild_and_each_delays_one_head(coincident, workload, policy, overrun):
    schedule = wt.simulate(workload, policy, coincident=coincident, overrun=overrun, dynamics=True)
    seen = schedule.dynamics
    assert (schedule.kind[seen.wild] == wt.policy.Kind.BACKFILLED).all()
    assert seen.suffered.sum() == seen.wild.sum()
    # Each wild backfill moves the real shadow by 1 s at least, time alone never moves it forward, and no job starts before it.
    assert (seen.delay >= seen.suffered).all()
    assert ((seen.delay > 0) == (seen.suffered > 0)).all()
    # A blocked head fits when somebody who runs ends, and by then it has been submitted.
    delayed = seen.suffered > 0
    initial = (schedule.start - seen.delay)[delayed]
    assert np.isin(initial, schedule.end).all()
    assert (initial >= workload.submit[delayed]).all()
    if not isinstance(policy, (wt.Easy, wt.policy.Double)) and not (isinstance(policy, wt.Hybrid) and policy.depth == 1):
        assert not seen.wild.any()  # no one head has the reservation


@in_both_modes
@SMALL
@given(workload=st.one_of(workloads(UPPER_BOUNDS, max_size=25), crowded(UPPER_BOUNDS)), backfill_order=orders())
def test_dynamics__delays_end_by_the_reservation(coincident, workload, backfill_order):
    # tsafrir06, section V: heel and toe "may continue until T12 is reached", the reservation; the head, once first, stays first.
    schedule = wt.simulate(workload, wt.Easy(backfill_order=backfill_order), coincident=coincident, dynamics=True)
    delayed = schedule.dynamics.suffered > 0
    assert (schedule.start[delayed] <= schedule.reserved_start[delayed]).all()
    assert (schedule.kind[delayed] == wt.policy.Kind.RESERVED).all()


@in_both_modes
@SMALL
@given(
    workload=st.one_of(workloads(max_size=25), crowded()),
    policy=st.sampled_from(RECORDED).flatmap(policies),
    overrun=st.sampled_from(OVERRUN),
)
def test_dynamics__sequence_has_every_job_once_in_order_of_start(coincident, workload, policy, overrun):
    schedule = wt.simulate(workload, policy, coincident=coincident, overrun=overrun, dynamics=True)
    seen = schedule.dynamics
    assert sorted(seen.sequence.tolist()) == list(range(len(workload)))
    assert (np.diff(schedule.start[seen.sequence]) >= 0).all()
    assert seen.shortest[seen.alone].all()
    assert seen.alone[seen.sequence[-1]]


@in_both_modes
@SMALL
@given(workload=st.one_of(workloads(PERFECT, max_size=25), crowded(PERFECT)))
def test_dynamics__shortest_first_with_perfect_estimates_chooses_the_shortest(coincident, workload):
    assert wt.simulate(workload, wt.NoBackfilling(order=wt.SJF), coincident=coincident, dynamics=True).dynamics.shortest.all()


@in_both_modes
@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_dynamics__of_no_jobs_at_all(engine, coincident):
    empty = wt.Workload.from_arrays(submit=[], runtime=[], procs=[], machine_procs=4)
    seen = wt.simulate(empty, wt.Easy(), engine=engine, coincident=coincident, dynamics=True).dynamics
    kinds = {"wild": bool, "suffered": np.int64, "delay": np.int64, "shortest": bool, "alone": bool, "sequence": np.int64}
    assert {name: getattr(seen, name).dtype for name in VALUES} == {name: np.dtype(kind) for name, kind in kinds.items()}
    assert all(len(getattr(seen, name)) == 0 for name in VALUES)


@pytest.mark.parametrize("policy", ["relaxed", "los", "hybrid:depth=1,fit=greedy", "selective", "multiqueue", "slack"])
def test_dynamics__are_not_recorded_where_the_head_is_not_alone(policy):
    workload = wt.Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=1)
    with raises(wt.PolicyError, "unsupported_policy", "effects"):
        wt.simulate(workload, policy, dynamics=True)
    with raises(wt.PolicyError, "unsupported_policy", "effects"):
        wt.simulation.simulate_many(workload, [wt.simulation.Case(wt.policy.parse_policy(policy))], dynamics=True)
