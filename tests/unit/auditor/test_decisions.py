"""What a policy decides along a schedule: the plainest rules, each broken by hand, under every policy that promises them."""

import numpy as np
import pytest

import walltime as wt

EVERY = [
    "fcfs",
    "easy",
    "double",
    "hybrid:0",
    "hybrid:2",
    "conservative",
    "conservative-scratch",
    "relaxed",
    "selective",
    "los",
    "multiqueue",
    "slack",
]


def jobs_of(*rows, machine=4):
    """Jobs of (submit, runtime, procs), which ask for what they use, but for at least a second."""
    submit, runtime, procs = zip(*rows, strict=True)
    requested = [max(1, seconds) for seconds in runtime]
    return wt.Workload.from_arrays(submit=submit, runtime=runtime, requested=requested, procs=procs, machine_procs=machine)


def audited(jobs, starts, policy, **rules):
    """The report on these starts."""
    start = np.array(starts)
    policy = None if policy is None else wt.policy.parse_policy(policy)
    return wt.audit(jobs, {"job_id": jobs.job_id, "start": start, "end": start + jobs.runtime}, policy, **rules)


@pytest.mark.parametrize("policy", [None, *EVERY])
def test_a_job_of_no_length__does_not_start_on_a_full_machine(policy):
    jobs = jobs_of((0, 100, 4), (1, 0, 4))
    assert audited(jobs, [0, 100], policy).ok
    report = audited(jobs, [0, 1], policy)
    assert "capacity" in report.counts
    message = "job 2 runs for 0 s, but needs 4 processors at 1, when 0 are free"
    assert message in [v.message for v in report.violations]


def test_jobs_of_no_length__may_follow_each_other_in_one_instant():
    jobs = jobs_of((0, 0, 4), (0, 0, 4), (0, 10, 4))
    for policy in (None, *EVERY):
        assert audited(jobs, [0, 0, 0], policy).ok, policy


@pytest.mark.parametrize("policy", [None, "easy"])
def test_a_column_limit__cuts_no_runtime_short(golden, policy):
    jobs = wt.Workload.from_arrays(submit=[0, 0], runtime=[100, 50], procs=[4, 4], machine_procs=4)
    table = {"job_id": jobs.job_id, "start": np.array([0, 1]), "end": np.array([1, 2]), "limit": np.array([1, 1])}
    report = wt.audit(jobs, table, None if policy is None else wt.Easy())
    assert report.counts["end_differs"] == 2
    golden("audit", report.first.message)


def test_a_column_planned__does_not_hide_that_the_head_is_delayed():
    jobs = jobs_of((0, 100, 3), (1, 10, 4), (2, 1000, 1))
    start = np.array([0, 1002, 2])
    table = {"job_id": jobs.job_id, "start": start, "end": start + jobs.runtime, "planned": np.full(3, 2000)}
    report = wt.audit(jobs, table, wt.Easy())
    assert report.counts == {"planned_differs": 3, "reservation_delayed": 1}
    said = (
        "job 3 starts at 2, although easy would not start it: job 2 is ahead of it, has a reservation at 100, and leaves 0 extra processors"
    )
    assert [v.message for v in report.violations if v.rule == "reservation_delayed"] == [said]


@pytest.mark.parametrize("policy", ["easy", "conservative-scratch", "hybrid:1", "hybrid:2", "relaxed"])
def test_the_heads_reservation__is_now_where_it_fits_now(golden, policy):
    jobs = jobs_of((0, 100, 4), (1, 90_000, 1), (2, 100, 3), (3, 80_000, 3))
    assert audited(jobs, [0, 100, 100, 200], policy).ok
    report = audited(jobs, [0, 100, 80_100, 100], policy)
    assert report.counts["head_waits"] == 1
    golden("audit", report.first.message)


@pytest.mark.parametrize("policy", EVERY)
def test_a_whole_schedule__does_not_start_late(golden, policy):
    jobs = jobs_of((0, 10, 1))
    assert audited(jobs, [0], policy).ok
    report = audited(jobs, [1_000_000], policy)
    assert set(report.counts) & {"head_waits", "reserved_start_missed"}
    assert report.first.time == 0
    golden("audit", report.first.message)


def test_in_the_second_of_a_job_of_no_length__the_head_is_not_overtaken_under_easy():
    """Job 4 would delay the head, job 3: at 10 it is free to start on what job 2, of no length, has given back."""
    jobs = jobs_of((0, 10, 4), (1, 0, 2), (2, 10, 4), (3, 100, 2), (4, 50, 2))
    assert audited(jobs, [0, 10, 10, 20, 20], "easy").ok
    report = audited(jobs, [0, 10, 110, 10, 10], "easy")
    assert report.counts["head_waits"] == 1
    assert report.first.jobs == (3,)


@pytest.mark.parametrize("policy", [name for name in EVERY if name != "fcfs"])
def test_a_job_that_delays_nobody__is_not_left_waiting(policy):
    jobs = jobs_of((0, 100, 3), (1, 50, 4), (2, 20, 1))
    assert audited(jobs, [0, 100, 2], policy).ok
    report = audited(jobs, [0, 100, 3], policy)
    assert set(report.counts) & {"left_waiting", "reserved_start_missed"}
    assert report.first.time == 2


@pytest.mark.parametrize("policy", EVERY)
def test_a_start_between_two_events__is_out_of_turn_and_the_run_goes_on(policy):
    jobs = jobs_of((0, 100, 4), (1, 10, 4), (2, 10, 4))
    report = audited(jobs, [0, 105, 200], policy)
    assert set(report.counts) >= {"reservation_delayed"} or set(report.counts) >= {"out_of_turn"}
    assert [v.jobs[0] for v in report.violations] == [2, 2, 3, 3]


def test_violations__are_told_once_for_each_job():
    jobs = jobs_of(*((k, 1, 4) for k in range(20)))
    report = audited(jobs, [50, *range(1, 20)], "fcfs")
    assert report.counts == {"head_waits": 1, "out_of_turn": 1}


def test_audit__tells_how_far_it_is_and_can_be_interrupted():
    jobs = wt.workloads.Lublin99().generate(30_000, 64, load=0.6, seed=1)
    schedule = wt.simulate(jobs, "easy")
    seen = []
    assert wt.audit(jobs, schedule.columns(), schedule.policy, progress=seen.append).ok
    assert seen == sorted(seen)
    assert len(seen) >= 2

    def stop(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wt.audit(jobs, schedule.columns(), schedule.policy, progress=stop)
