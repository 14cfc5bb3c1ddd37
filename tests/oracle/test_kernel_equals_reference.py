"""The compiled kernel gives every job the start, the kind and the first promise that the reference engine gives it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, note, strategies as st

import walltime as wt
from tests.strategies import (
    COINCIDENT,
    ORDERS_THAT_READ,
    OVERRUN,
    POLICY_KINDS,
    crowded,
    dated,
    examples,
    policies,
    real_and_planned,
    shrunk,
    workloads,
)
from tests.traces import trace_path
from walltime.engine.interface.number import NumberEngine
from walltime.engine.problem import Problem
from walltime.policy.log_view import LogView

SMALL, LARGE = examples(60), examples(30)
"""Each example runs under all three overrun rules; per policy kind and way of handling coincident events."""
COLUMNS = ("start", "kind", "reserved_start", "end")


def assert_same(kernel: wt.Schedule, reference: wt.Schedule) -> None:
    for name in COLUMNS:
        fast, slow = getattr(kernel, name), getattr(reference, name)
        if not np.array_equal(fast, slow):
            job = int(np.flatnonzero(fast != slow)[0])
            raise AssertionError(f"{name} of job {job + 1}: kernel {fast[job]}, reference {slow[job]}")


def assert_engines_agree(workload: wt.Workload, policy: wt.policy.Policy, coincident: str, overrun: str) -> None:
    note(f"{shrunk(workload)}\n{policy!r} coincident={coincident!r} overrun={overrun!r}")
    assert_same(*(wt.simulate(workload, policy, coincident=coincident, overrun=overrun, engine=e) for e in ("kernel", "reference")))


@pytest.mark.parametrize("coincident", COINCIDENT)
@pytest.mark.parametrize("kind", POLICY_KINDS)
@SMALL
@given(data=st.data())
def test_kernel__equals_reference_on_small_workloads(kind, coincident, data):
    workload = data.draw(workloads(), label="workload")
    policy = data.draw(policies(kind), label="policy")
    for overrun in OVERRUN:
        assert_engines_agree(workload, policy, coincident, overrun)


@pytest.mark.parametrize("coincident", COINCIDENT)
@LARGE
@given(data=st.data())
def test_kernel__equals_reference_with_a_window(coincident, data):
    workload = data.draw(st.one_of(workloads(), crowded()), label="workload")
    policy = dataclasses.replace(data.draw(policies("fcfs"), label="policy"), window=data.draw(st.integers(1, 6), label="window"))
    for overrun in OVERRUN:
        assert_engines_agree(workload, policy, coincident, overrun)


@pytest.mark.slow
@pytest.mark.parametrize("coincident", COINCIDENT)
@pytest.mark.parametrize("kind", POLICY_KINDS)
@LARGE
@given(data=st.data())
def test_kernel__equals_reference_on_crowded_machines(kind, coincident, data):
    workload = data.draw(crowded(), label="workload")
    policy = data.draw(policies(kind), label="policy")
    for overrun in OVERRUN:
        assert_engines_agree(workload, policy, coincident, overrun)


@pytest.mark.parametrize("coincident", COINCIDENT)
@pytest.mark.parametrize("kind", [kind for kind in POLICY_KINDS if kind not in ("slack", "plan")])  # they take no order
@LARGE
@given(data=st.data())
def test_kernel__equals_reference_where_orders_read_the_clock_and_the_log(kind, coincident, data):
    workload = data.draw(dated(workloads(max_size=25)), label="workload")
    order, backfill_order = (data.draw(st.sampled_from(ORDERS_THAT_READ), label=role) for role in ("order", "backfill_order"))
    policy = dataclasses.replace(data.draw(policies(kind, own=False), label="policy"), order=order)
    if hasattr(policy, "backfill_order"):
        policy = dataclasses.replace(policy, backfill_order=backfill_order)
    for overrun in OVERRUN:
        assert_engines_agree(workload, policy, coincident, overrun)


@pytest.mark.parametrize("coincident", COINCIDENT)
@pytest.mark.parametrize("kind", POLICY_KINDS)
@LARGE
@given(data=st.data())
def test_kernel__run_in_pieces_equals_run_whole(kind, coincident, data):
    workload = data.draw(workloads(max_size=25), label="workload")
    policy = data.draw(policies(kind), label="policy")
    overrun = data.draw(st.sampled_from(OVERRUN), label="overrun")
    budgets = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=8), label="budgets")
    runtime, planned = real_and_planned(workload, overrun)
    known = LogView.of(policy.reads, workload, workload.requested)
    columns = (workload.submit, runtime, planned, workload.procs, workload.machine_procs)
    pieces = NumberEngine(Problem(*columns, policy, known=known, coincident=coincident))
    calls, started = 0, [0]
    while not pieces.advance(budgets[calls % len(budgets)]):
        calls += 1
        started.append(pieces.started)
        assert (pieces.start >= 0).sum() == pieces.started
    assert started == sorted(started)
    assert calls > 0 or sum(budgets) > len(workload)  # else nothing was cut
    assert pieces.advance(1)  # done is done
    whole = wt.simulate(workload, policy, coincident=coincident, overrun=overrun)
    for name in ("start", "kind", "reserved_start"):
        assert np.array_equal(getattr(pieces, name), getattr(whole, name)), name


LATER = (
    *("double", "relaxed", "selective", "selective:threshold=adaptive", "los", "los:ties=slowdown", "multiqueue", "slack"),
    *("hybrid:depth=1,fit=best", "hybrid:depth=1,fit=greedy,metric=procseconds", "hybrid:depth=0,fit=greedy"),
    *("easy:order=lcfs", "easy:order=lxf:starvation=86400", "easy:order=unicef", "easy:order=f2,backfill-order=saf", "easy:order=f4"),
)
SLOW = ("los", "los:ties=slowdown", "slack", "selective:threshold=adaptive")
"""Policies whose reference takes seconds for a part of a log."""
KTH_POLICIES = (
    *(wt.NoBackfilling(), wt.Easy(), wt.Conservative(), wt.Conservative(variant="scratch"), wt.Hybrid(depth=3)),
    *(pytest.param(wt.policy.parse_policy(text), marks=pytest.mark.nightly if text in SLOW else ()) for text in LATER),
)


PARTS = pytest.mark.parametrize(
    "count",
    [pytest.param(1_500, marks=pytest.mark.slow), pytest.param(28_489, marks=[pytest.mark.slow, pytest.mark.nightly])],
    ids=["part", "whole"],
)


@pytest.fixture(scope="module")
def kth_log() -> wt.Workload:
    return wt.read(trace_path("KTH-SP2-1996-2"))


@pytest.fixture
def kth(kth_log, count) -> wt.Workload:
    """The first jobs of the log, or all of them."""
    return wt.workloads.head(kth_log, count)


@pytest.mark.sampled(2)
@PARTS
@pytest.mark.parametrize("coincident", ["batch", pytest.param("sequential", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("policy", KTH_POLICIES, ids=lambda policy: policy.label)
def test_kernel__equals_reference_on_the_kth_log(kth, policy, coincident, count):
    assert len(kth) == count
    assert_same(*(wt.simulate(kth, policy, coincident=coincident, engine=e) for e in ("kernel", "reference")))


@PARTS
@pytest.mark.parametrize("overrun", ["extend", "continue"])
@pytest.mark.parametrize(
    "policy",
    [wt.Easy(), wt.Easy(backfill_order=wt.SJF), wt.Conservative(), wt.Hybrid(depth=3, order=wt.WFP)],
    ids=lambda policy: policy.label,
)
def test_kernel__equals_reference_on_kth_where_jobs_outlive_their_estimates(kth, policy, overrun, count):
    late = (kth.runtime > kth.requested).sum()
    assert late == 475 if count == 28_489 else late > 10  # so the overrun rules differ
    assert_same(*(wt.simulate(kth, policy, overrun=overrun, engine=e) for e in ("kernel", "reference")))
