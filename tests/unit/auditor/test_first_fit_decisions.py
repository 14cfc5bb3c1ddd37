"""Samples of large schedules on single nodes: a policy's own schedule is accepted, another policy's is found."""

import numpy as np
import pytest

import walltime as wt
from walltime.auditor import audit, first_fit_decisions
from walltime.machine import Machine, Outage, Partition, Pool
from walltime.policy import parse_policy
from walltime.workload import Workload

NODES = Machine(
    (Pool("a", 3, 4, memory=100), Pool("b", 1, 4, memory=200)),
    (Partition("1", ("a", "b")), Partition("2", ("a", "b"), tier=1)),
    (Outage("a", 0, 100_000, "1", 0),),
)


def crowd(count: int = 160) -> Workload:
    """Jobs whose memory matters, half as many as can run, so that the queue is empty at times and long at others."""
    draw = np.random.default_rng(3)
    runtime = draw.integers(5, 400, count)
    return Workload.from_arrays(
        submit=np.sort(draw.integers(0, 9000, count)),
        runtime=runtime,
        requested=2 * runtime,
        procs=draw.choice([1, 1, 2, 4, 6], count),
        machine_procs=16,
        columns={"mem_mb": draw.choice([10, 40, 90], count), "user": np.ones(count, np.int64), "partition": draw.integers(1, 3, count)},
    )


@pytest.fixture(scope="module")
def schedules():
    jobs = crowd()
    return {name: wt.simulate(jobs, name, machine=NODES, engine="reference") for name in ("fcfs", "easy", "conservative", "relaxed")}


@pytest.mark.parametrize("work", [3, 600, 1500])
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "relaxed"])
def test_sample__accepts_the_policys_own_schedule(schedules, policy, work, monkeypatch):
    monkeypatch.setattr(first_fit_decisions, "MOST_WORK", work)
    report = schedules[policy].audit()
    assert report.ok, report
    assert 0 < report.decided < 1
    assert any("seed" in text for text in report.assumed)


@pytest.mark.parametrize(("schedule", "policy"), [("fcfs", "easy"), ("easy", "fcfs"), ("fcfs", "conservative"), ("easy", "conservative")])
def test_sample__finds_another_policy(schedules, schedule, policy, monkeypatch):
    monkeypatch.setattr(first_fit_decisions, "MOST_WORK", 1500)
    found = schedules[schedule]
    report = audit(found.workload, found.columns(), parse_policy(policy), placement=found.placement, slots=found.slots)
    assert not report.ok
    assert 0 < report.decided < 1


def test_sample__of_a_small_schedule_is_all_of_it(schedules):
    report = schedules["easy"].audit()
    assert (report.ok, report.decided, report.assumed) == (True, 1.0, ())


def test_verdict__is_not_ok_where_decisions_are_not_checked():
    jobs = crowd(20)
    schedule = wt.simulate(jobs, "easy:predictor=last", machine=NODES, engine="reference")
    report = schedule.audit()
    assert (report.decided, report.violations, report.ok) == (0.0, (), False)
    assert report.answer("s.csv", jobs, "EASY").startswith("undecided: ")
    without = audit(schedule.workload, schedule.columns(), placement=schedule.placement)
    assert (without.decided, without.ok) == (None, True)


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_sample__follows_schedules_without_their_nodes(schedules, policy, monkeypatch):
    """Jobs that start together get their nodes in the order in which the policy starts them."""
    monkeypatch.setattr(first_fit_decisions, "MOST_WORK", 1500)
    found = schedules[policy]
    columns = {"job_id": found.workload.job_id, "start": found.start, "end": found.end}
    report = audit(found.workload, columns, found.policy, placement=found.placement)
    assert report.ok, report
    assert 0 < report.decided < 1
