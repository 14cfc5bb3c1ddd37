"""What must hold of every schedule, whichever engine made it: the papers' properties, and plain sense."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.strategies import COINCIDENT, OVERRUN, PERFECT, UPPER_BOUNDS, crowded, examples, orders, policies, real_and_planned, workloads
from walltime.engine.interface.number import NumberEngine
from walltime.engine.problem import Problem
from walltime.policy.log_view import LogView

MANY, SOME = examples(100), examples(50)
in_both_modes = pytest.mark.parametrize("coincident", COINCIDENT)


def any_size(estimates=None):
    extra = () if estimates is None else (estimates,)
    return st.one_of(workloads(*extra), workloads(*extra, max_size=25), crowded(*extra, max_size=35))


def same(a: wt.Schedule, b: wt.Schedule, *columns: str) -> None:
    for name in columns or ("start", "end", "kind", "reserved_start"):
        assert getattr(a, name).tolist() == getattr(b, name).tolist(), name


# ------------------------------------------------------------------------------------------------------- papers' properties


@in_both_modes
@MANY
@given(workload=any_size(UPPER_BOUNDS), backfill_order=orders())
def test_easy__head_never_starts_after_its_reservation(coincident, workload, backfill_order):
    # mualem01, Property 2: the delay of the head depends on running jobs only.
    schedule = wt.simulate(workload, wt.Easy(backfill_order=backfill_order), coincident=coincident)
    had = schedule.reserved_start >= 0
    assert (schedule.start[had] <= schedule.reserved_start[had]).all()


@pytest.mark.slow
@in_both_modes
@MANY
@given(workload=any_size(UPPER_BOUNDS), order=orders())
def test_conservative__no_job_starts_after_its_first_promise(coincident, workload, order):
    # mualem01, section 2.1: compression never delays anybody, in whichever order.
    schedule = wt.simulate(workload, wt.Conservative(order=order), coincident=coincident)
    assert (schedule.reserved_start >= workload.submit).all()
    assert (schedule.start <= schedule.reserved_start).all()


@in_both_modes
@MANY
@given(workload=any_size(PERFECT))
def test_conservative__both_variants_coincide_with_perfect_estimates(coincident, workload):
    # With perfect estimates nothing is compressed; then every job starts at its first reserved start.
    compress = wt.simulate(workload, wt.Conservative(), coincident=coincident)
    same(compress, wt.simulate(workload, wt.Conservative(variant="scratch"), coincident=coincident))
    assert compress.start.tolist() == compress.reserved_start.tolist()


@in_both_modes
@MANY
@given(workload=any_size(UPPER_BOUNDS), order=orders(), backfill_order=orders())
def test_easy__equals_one_reservation_made_from_scratch(coincident, workload, order, backfill_order):
    # Hybrid(1) takes EASY's path by definition, so the general path is made to run with depth 1 here.
    runtime, planned = real_and_planned(workload, "kill")
    columns = (workload.submit, runtime, planned, workload.procs, workload.machine_procs)
    policy = wt.Hybrid(depth=2, order=order, backfill_order=backfill_order)
    known = LogView.of(policy.reads, workload, workload.requested)
    fresh = NumberEngine(Problem(*columns, policy, known=known, coincident=coincident))
    fresh._memory.rules.depth = 1
    fresh.run()
    easy = wt.simulate(workload, wt.Easy(order=order, backfill_order=backfill_order), coincident=coincident)
    assert easy.start.tolist() == fresh.start.tolist()
    assert easy.kind.tolist() == fresh.kind.tolist()


@in_both_modes
@SOME
@given(workload=any_size(), order=orders(), backfill_order=orders(), overrun=st.sampled_from(OVERRUN))
def test_hybrid__of_depth_one_is_easy(coincident, workload, order, backfill_order, overrun):
    a, b = wt.Hybrid(depth=1, order=order, backfill_order=backfill_order), wt.Easy(order=order, backfill_order=backfill_order)
    same(*(wt.simulate(workload, p, coincident=coincident, overrun=overrun) for p in (a, b)))


@in_both_modes
@SOME
@given(workload=any_size(), order=orders(), overrun=st.sampled_from(OVERRUN), backfill_order=orders())
def test_hybrid__deeper_than_the_queue_is_conservative_from_scratch(coincident, workload, order, overrun, backfill_order):
    deep = wt.Hybrid(depth=len(workload), order=order, backfill_order=backfill_order)
    scratch = wt.Conservative(order=order, variant="scratch")
    if len(workload) > 1:  # else the depth is 1, which is EASY and promises less
        same(*(wt.simulate(workload, p, coincident=coincident, overrun=overrun) for p in (deep, scratch)))


@in_both_modes
@SOME
@given(workload=any_size(), overrun=st.sampled_from(OVERRUN))
def test_fcfs__starts_in_order_of_arrival(coincident, workload, overrun):
    schedule = wt.simulate(workload, wt.NoBackfilling(), coincident=coincident, overrun=overrun)
    assert (np.diff(schedule.start) >= 0).all()
    assert (schedule.kind != 2).all()
    assert (schedule.reserved_start == -1).all()


@in_both_modes
@SOME
@given(workload=any_size(UPPER_BOUNDS), factor=st.integers(2, 300), data=st.data())
def test_fcfs__does_not_depend_on_the_estimates(coincident, workload, factor, data):
    # It must not change the FCFS schedule, whereas a factor may change EASY's (tsafrir06, heel and toe).
    others = data.draw(st.lists(st.integers(1, 99), min_size=len(workload), max_size=len(workload)))
    expected = wt.simulate(workload, wt.NoBackfilling(), coincident=coincident)
    for planned in (workload.planned * factor, np.array(others)):
        told = workload.with_planned(planned)
        same(expected, wt.simulate(told, wt.NoBackfilling(), coincident=coincident))


# --------------------------------------------------------------------------------------------------------------- plain sense


@in_both_modes
@MANY
@given(workload=any_size(), policy=policies(), overrun=st.sampled_from(OVERRUN))
def test_schedule__has_room_for_every_job_and_begins_none_early(coincident, workload, policy, overrun):
    schedule = wt.simulate(workload, policy, coincident=coincident, overrun=overrun)
    real, _ = real_and_planned(workload, overrun)
    assert (schedule.start >= workload.submit).all()
    assert (schedule.end == schedule.start + real).all()
    for now in np.unique(schedule.start):
        at_once = (schedule.start <= now) & (now < schedule.end)
        assert workload.procs[at_once].sum() <= workload.machine_procs
        # A job that needs no time needs its processors all the same, after those that end now.
        for job in np.flatnonzero((schedule.start == now) & (schedule.end == now)):
            before = (schedule.start < now) & (now < schedule.end)
            assert workload.procs[before].sum() + workload.procs[job] <= workload.machine_procs


@in_both_modes
@MANY
@given(workload=any_size(), policy=policies(), overrun=st.sampled_from(OVERRUN))
def test_schedule__kinds_say_how_jobs_started(coincident, workload, policy, overrun):
    schedule = wt.simulate(workload, policy, coincident=coincident, overrun=overrun)
    at_once = schedule.start == workload.submit
    assert at_once[schedule.kind == wt.policy.Kind.IMMEDIATE].all()
    assert (~at_once)[schedule.kind == wt.policy.Kind.RESERVED].all()
    if policy.order == wt.FCFS:
        # Whoever starts later than one that arrived after it was overtaken; only a backfilled job overtakes.
        for job in range(len(workload)):
            overtakes = (schedule.start[:job] > schedule.start[job]).any()
            assert not overtakes or schedule.kind[job] == wt.policy.Kind.BACKFILLED


@in_both_modes
@SOME
@given(workload=any_size(), policy=policies(), overrun=st.sampled_from(OVERRUN))
def test_schedule__jobs_start_when_something_arrives_or_ends(coincident, workload, policy, overrun):
    # Not under conservative with compression, where a reservation may come due by itself.
    if isinstance(policy, wt.Conservative) and policy.variant == "compress":
        policy = wt.Conservative(variant="scratch", order=policy.order)
    schedule = wt.simulate(workload, policy, coincident=coincident, overrun=overrun)
    assert np.isin(schedule.start, np.concatenate([workload.submit, schedule.end])).all()


@in_both_modes
@SOME
@given(workload=any_size(UPPER_BOUNDS), policy=policies())
def test_schedule__machine_is_never_empty_while_a_job_waits(coincident, workload, policy):
    # Again not under compression in a single pass: see the golden example of a due reservation.
    if isinstance(policy, wt.Conservative) and policy.variant == "compress":
        policy = wt.Conservative(variant="scratch", order=policy.order)
    schedule = wt.simulate(workload, policy, coincident=coincident)
    for job in np.flatnonzero(schedule.start > workload.submit):
        before = schedule.start[job] - 1  # the last second in which it waited
        assert ((schedule.start <= before) & (before < schedule.end)).any()


@in_both_modes
@SOME
@given(workload=any_size(), policy=policies(), overrun=st.sampled_from(OVERRUN))
def test_schedule__is_the_same_twice(coincident, workload, policy, overrun):
    same(*(wt.simulate(workload, policy, coincident=coincident, overrun=overrun) for _ in range(2)))


@pytest.mark.slow
@in_both_modes
@SOME
@given(workload=any_size(), policy=policies(), overrun=st.sampled_from(OVERRUN), by=st.integers(1, 10**12))
def test_schedule__moves_with_the_submits(coincident, workload, policy, overrun, by):
    moved = wt.Workload.from_arrays(
        submit=workload.submit + by,
        runtime=workload.runtime,
        requested=workload.requested,
        planned=workload.planned,
        procs=workload.procs,
        machine_procs=workload.machine_procs,
        columns=workload.columns,
        origin=dataclasses.replace(workload.origin, unix_start_time=workload.origin.unix_start_time - by),
    )
    a, b = (wt.simulate(w, policy, coincident=coincident, overrun=overrun) for w in (workload, moved))
    assert (a.start + by).tolist() == b.start.tolist()
    assert a.kind.tolist() == b.kind.tolist()
    assert np.where(a.reserved_start >= 0, a.reserved_start + by, -1).tolist() == b.reserved_start.tolist()


@in_both_modes
@SOME
@given(workload=any_size(), policy=policies(), data=st.data())
def test_schedule__depends_on_job_ids_only_where_submits_are_equal(coincident, workload, policy, data):
    # Other ids, in the same order within a second, and the rows shuffled: the schedule of each job stays.
    count = len(workload)
    ids = np.array(data.draw(st.lists(st.integers(0, 10**6), min_size=count, max_size=count, unique=True)))
    for second in np.unique(workload.submit):
        tied = workload.submit == second
        ids[tied] = np.sort(ids[tied])
    rows = np.array(data.draw(st.permutations(range(count))))
    names = ("submit", "runtime", "requested", "planned", "procs")
    columns = {name: getattr(workload, name)[rows] for name in names}
    others = {name: values[rows] for name, values in workload.columns.items()}
    renamed = wt.Workload.from_arrays(
        **columns, job_id=ids[rows], machine_procs=workload.machine_procs, columns=others, origin=workload.origin
    )
    assert renamed.job_id.tolist() == ids.tolist()
    same(*(wt.simulate(w, policy, coincident=coincident) for w in (workload, renamed)))
