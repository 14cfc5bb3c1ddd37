"""Weeks resampled, and users who submit when their jobs have ended."""

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from walltime.errors import WorkloadError
from walltime.workloads import resample_weeks, with_sessions

DAY, WEEK = 86_400, 7 * 86_400


def log(submit, runtime, **columns):
    return wt.Workload.from_arrays(
        submit=submit,
        runtime=runtime,
        procs=[1] * len(submit),
        machine_procs=4,
        columns={name: np.array(values) for name, values in columns.items()},
    )


def test_sessions__by_hand():
    jobs = log(
        submit=[0, 10, 150, 160, 2000, 2000, 5000],
        runtime=[100, 90, 0, 10, 0, 5, 5],
        user=[1, 2, 1, 1, 1, 1, -1],
        wait=[0, 0, 0, -1, 0, 0, 0],
    )
    found = with_sessions(jobs)
    assert found.feedback
    # Job 3 follows job 1 (ended at 100); job 4 follows job 3, which took no time (150); jobs 5 and 6 come over 20 min later; job 5 ends
    # when it is submitted, and job 6 with it; job 7 is nobody's.
    assert found.columns["preceding_job"].tolist() == [-1, -1, 1, 3, -1, 5, -1]
    assert found.columns["think_time"].tolist() == [-1, -1, 50, 10, -1, 0, -1]
    assert with_sessions(jobs, within=40).columns["preceding_job"].tolist() == [-1, -1, -1, 3, -1, 5, -1]


@pytest.mark.parametrize(("columns", "what"), [({"user": [1, 1]}, "waits"), ({"wait": [0, 0]}, "users"), ({}, "users")])
def test_sessions__need_users_and_waits(columns, what):
    with raises(WorkloadError, "missing_column", what):
        with_sessions(log([0, 1], [1, 1], **columns))


def test_sessions__replayed_as_it_was():
    """Where the simulation gives the recorded schedule, feedback gives the recorded submissions."""
    jobs = wt.workloads.Lublin99().generate(jobs=300, machine_procs=64, load=0.7, seed=3)
    jobs = wt.workloads.with_users(jobs, 10, 1)
    schedule = wt.simulate(jobs, "easy")
    recorded = wt.Workload.from_arrays(
        submit=jobs.submit,
        runtime=jobs.runtime,
        requested=jobs.requested,
        procs=jobs.procs,
        machine_procs=64,
        columns={**jobs.columns, "wait": schedule.wait},
    )
    found = with_sessions(recorded)
    assert (found.columns["preceding_job"] >= 0).sum() > 20
    again = wt.simulate(found, "easy")
    np.testing.assert_array_equal(again.submit, jobs.submit)
    np.testing.assert_array_equal(again.start, schedule.start)
    later = wt.simulate(found, "fcfs")
    assert (later.submit >= jobs.submit).mean() > 0.9
    assert later.submit.sum() > jobs.submit.sum(), "who waits longer submits later"


def test_weeks__whole_at_their_weekday_and_time():
    rng = np.random.default_rng(1)
    submit = np.sort(rng.integers(0, 6 * WEEK, 500))
    jobs = log(submit, rng.integers(1, 9, 500), user=rng.integers(1, 5, 500), preceding_job=np.maximum(np.arange(500) - 3, -1))
    seen = set()
    for seed in range(10):
        found = resample_weeks(jobs, seed)
        assert len(np.unique(found.job_id)) == len(found)
        assert int(found.submit.max()) < 6 * WEEK + submit[0]
        counts = []
        for week in range(6):
            inside = (found.submit - submit[0]) // WEEK == week
            times = (found.submit[inside] - submit[0]) % WEEK
            of_week = [(submit[(submit - submit[0]) // WEEK == k] - submit[0]) % WEEK for k in range(6)]
            source = [k for k in range(6) if times.tolist() == of_week[k].tolist()]
            assert len(source) == 1
            counts.append(source[0])
        seen.add(tuple(counts))
        place = {int(job): k for k, job in enumerate(found.job_id)}
        for k, before in enumerate(found.columns["preceding_job"].tolist()):
            if before >= 0:
                assert place[before] < k
                assert (found.submit[place[before]] - submit[0]) // WEEK == (found.submit[k] - submit[0]) // WEEK
    assert len(seen) == 10
    assert resample_weeks(jobs, 3).submit.tolist() == resample_weeks(jobs, 3).submit.tolist()


def test_weeks__dependencies_hold_within_a_week_and_nobody_runs_at_first():
    jobs = log([0, 5, WEEK + 1], [1, 1, 1], depends_on=[-1, 1, 2], running_since=[-9, -1, -1])
    for seed in range(20):
        found = resample_weeks(jobs, seed)
        assert (found.columns["running_since"] == -1).all()
        ids = found.job_id.tolist()
        for k, other in enumerate(found.columns["depends_on"].tolist()):
            if other >= 0:
                assert ids[k - 1] == other
                assert found.submit[k] - found.submit[k - 1] == 5
