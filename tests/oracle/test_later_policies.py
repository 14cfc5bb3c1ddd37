"""Policies of the later literature at the ends of their parameters are policies that are known already."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, note, strategies as st

import walltime as wt
from tests.strategies import COINCIDENT, PERFECT, UPPER_BOUNDS, crowded, examples, orders, shrunk, workloads
from walltime.errors import PolicyError
from walltime.policy import Formula, Lookahead, MultiQueue, Relaxed, Selective, Slack

ANY = examples(60)
COLUMNS = ("start", "kind", "reserved_start")
RUNS = st.one_of(workloads(max_size=25), crowded())


def assert_same(workload: wt.Workload, one: wt.policy.Policy, other: wt.policy.Policy, coincident: str = "batch", columns=COLUMNS) -> None:
    note(f"{shrunk(workload)}\n{one!r}\n{other!r} coincident={coincident!r}")
    for engine in ("kernel", "reference"):
        a, b = (wt.simulate(workload, policy, coincident=coincident, engine=engine) for policy in (one, other))
        for name in columns:
            assert np.array_equal(getattr(a, name), getattr(b, name)), (engine, name)


@pytest.mark.parametrize("coincident", COINCIDENT)
@pytest.mark.parametrize("policy", [Relaxed(omega=0), Lookahead(lookahead=1), wt.Hybrid(depth=1)], ids=lambda policy: policy.label)
@ANY
@given(workload=RUNS, order=orders(), backfill_order=orders())
@pytest.mark.slow
def test_easy__is_relaxed_by_nothing_and_a_lookahead_of_one(coincident, policy, workload, order, backfill_order):
    policy = dataclasses.replace(policy, order=order, backfill_order=backfill_order)
    assert_same(workload, policy, wt.Easy(order=order, backfill_order=backfill_order), coincident)


@pytest.mark.parametrize("coincident", COINCIDENT)
@ANY
@given(workload=RUNS, order=orders())
def test_conservative_from_scratch__is_selective_with_a_threshold_of_0(coincident, workload, order):
    assert_same(workload, Selective(order=order, threshold=0), wt.Conservative(order=order, variant="scratch"), coincident)


@ANY
@given(workload=RUNS)
def test_hybrid_without_reservations__is_selective_with_a_threshold_that_nobody_exceeds(workload):
    assert_same(workload, Selective(threshold=1e9), wt.Hybrid(depth=0), columns=("start",))


@ANY
@given(workload=RUNS, order=orders())
def test_hybrid_of_depth_1__is_one_queue_for_all(workload, order):
    # Where jobs are late the two differ: one reserves at the expected end, the other a second later.
    columns = ("start",) if (workload.runtime <= workload.planned).all() else ()
    assert_same(workload, MultiQueue(order=order, bounds=(1_000_000_000,)), wt.Hybrid(order=order, depth=1), columns=columns)


def overtaken(schedule: wt.Schedule) -> np.ndarray:
    """Return for each job how many later arrivals started strictly before it."""
    arrival = np.lexsort((np.arange(len(schedule.submit)), schedule.submit))
    start = schedule.start[arrival]
    return np.array([np.count_nonzero(start[i + 1 :] < start[i]) for i in range(len(start))])


@pytest.mark.parametrize("coincident", COINCIDENT)
@pytest.mark.parametrize("depth", [0, 1])
@ANY
@given(workload=RUNS, most=st.integers(0, 4), backfill_order=orders())
def test_bound_on_overtaking_jobs__is_kept_by_both_engines_and_the_auditor(coincident, depth, workload, most, backfill_order):
    policy = wt.Hybrid(depth=depth, overtakes=most, backfill_order=backfill_order)
    note(f"{shrunk(workload)}\n{policy!r}")
    kernel, reference = (wt.simulate(workload, policy, coincident=coincident, engine=engine) for engine in ("kernel", "reference"))
    for name in COLUMNS:
        assert np.array_equal(getattr(kernel, name), getattr(reference, name)), name
    assert overtaken(kernel).max(initial=0) <= most
    report = kernel.audit()
    assert report.ok, str(report)
    assert "overtaken_too_often" in report.checked


@pytest.mark.parametrize("coincident", COINCIDENT)
@ANY
@given(workload=RUNS)
def test_bound_on_overtaking_jobs__of_0_is_fcfs_and_a_large_one_is_easy(coincident, workload):
    assert_same(workload, wt.Easy(overtakes=0), wt.NoBackfilling(), coincident, columns=("start",))
    assert_same(workload, wt.Easy(overtakes=len(workload)), wt.Easy(), coincident)


@pytest.mark.parametrize(
    ("most", "start"), [(0, [0, 10, 20, 20, 20]), (1, [0, 10, 2, 20, 20]), (2, [0, 10, 2, 4, 20]), (3, [0, 10, 2, 4, 6])]
)
@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_bound_on_overtaking_jobs__by_hand(engine, most, start):
    # Job 1 leaves one processor free until 10, when job 2, which needs all four, starts. Jobs 3, 4 and 5 take turns on that processor.
    jobs = wt.Workload.from_arrays(submit=[0, 1, 2, 3, 4], runtime=[10, 10, 2, 2, 2], procs=[3, 4, 1, 1, 1], machine_procs=4)
    schedule = wt.simulate(jobs, f"easy:overtakes={most}", engine=engine)
    assert schedule.start.tolist() == start
    assert wt.explain(schedule, 5, sooner=False).submission.held_back == ("overtakes" if most < 2 else "too few")


@pytest.mark.parametrize("policy", ["easy:overtakes=1,order=sjf", "hybrid:depth=2,overtakes=1", "hybrid:depth=1,fit=greedy,overtakes=1"])
def test_bound_on_overtaking_jobs__conflicts_with_other_options(policy):
    with pytest.raises(PolicyError) as caught:
        wt.policy.parse_policy(policy)
    assert caught.value.code == "conflicting_options"


@pytest.mark.parametrize(("metric", "order"), [("procs", "lqf"), ("seconds", "ljf"), ("procseconds", "laf")])
@ANY
@given(workload=RUNS, depth=st.integers(0, 5))
def test_best_fit__is_a_backfill_order(metric, order, workload, depth):
    assert_same(workload, wt.Hybrid(depth=depth, fit="best", metric=metric), wt.Hybrid(depth=depth, backfill_order=Formula(order)))


@pytest.mark.slow
@ANY
@given(workload=RUNS)
def test_greedy__is_los_where_processors_count(workload):
    assert_same(workload, wt.Hybrid(depth=1, fit="greedy"), Lookahead())


@ANY
@given(workload=st.one_of(workloads(PERFECT, max_size=25), crowded(PERFECT)))
def test_slack_of_nothing__is_conservative_where_estimates_are_exact(workload):
    assert_same(workload, Slack(factor=0), wt.Conservative(), columns=("start",))


@ANY
@given(
    workload=st.one_of(workloads(UPPER_BOUNDS, max_size=25), crowded(UPPER_BOUNDS)),
    policy=st.sampled_from(
        (
            *(Relaxed(omega=omega) for omega in (0, 0.3, 1, 4)),
            *(Selective(threshold=threshold) for threshold in (0, 1, 1.5, 3, "adaptive")),
            *(
                Lookahead(),
                Lookahead(ties="slowdown"),
                Lookahead(objective="procseconds"),
                MultiQueue(bounds=(3, 8)),
                MultiQueue(bounds=(5,)),
                Slack(),
            ),
            *(wt.Hybrid(depth=depth, fit="greedy", metric="seconds") for depth in (0, 1)),
        )
    ),
)
def test_promises__are_kept(workload, policy):
    note(f"{shrunk(workload)}\n{policy!r}")
    report = wt.simulate(workload, policy).audit()
    assert report.ok, str(report)
    assert all(rule in report.checked for rule in policy.promises)
