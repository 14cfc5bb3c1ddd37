"""Who gains and who loses: by hand, and what must hold for any two schedules."""

import json

import numpy as np
import pytest
from hypothesis import given

import walltime as wt
from tests.cli import HEADER, call, one_line
from tests.errors import raises
from tests.strategies import policies, workloads
from walltime import metrics
from walltime.errors import WorkloadError

HAND = {
    "before": np.array([10, 10, 10, 0, 100]),
    "after": np.array([0, 30, 10, 5, 40]),
    "procs": np.array([1, 2, 4, 8, 1]),
    "runtime": np.array([3600, 3600, 1800, 900, 7200]),
    "job_id": np.array([11, 12, 13, 14, 15]),
}


def test_gains__worked_by_hand():
    found = metrics.gains(**HAND, user=np.array([1, 1, 2, -1, 3]))
    assert found.shorter == metrics.Side(jobs=2, users=1, processor_hours=3, mean_change=-35)
    assert found.equal == metrics.Side(jobs=1, users=1, processor_hours=2, mean_change=0)
    assert found.longer == metrics.Side(jobs=2, users=1, processor_hours=4, mean_change=12.5)
    assert found.winning_users == [metrics.ChangedUser(user=3, jobs=1, mean_before=100, mean_after=40)]
    assert found.losing_users == [metrics.ChangedUser(user=1, jobs=2, mean_before=10, mean_after=15)]
    assert [job.job_id for job in found.winning_jobs] == [15, 11]
    assert found.losing_jobs == [metrics.ChangedJob(12, 1, 2, 3600, 10, 30), metrics.ChangedJob(14, None, 8, 900, 0, 5)]


def test_gains__without_users_and_with_few_names():
    found = metrics.gains(**HAND, most=1)
    assert (found.shorter.users, found.winning_users, found.losing_users) == (None, [], [])
    assert [job.job_id for job in found.winning_jobs] == [15]
    assert found.as_dict()["losing_jobs"][0]["job_id"] == 12


@given(workloads(), policies(), policies())
def test_gains__are_losses_the_other_way_round(workload, one, other):
    a, b = (wt.simulate(workload, policy, engine="reference") for policy in (one, other))
    there, back = a.gains(b), b.gains(a)
    assert there.shorter.jobs + there.equal.jobs + there.longer.jobs == len(workload)
    assert (there.shorter.jobs, there.longer.jobs) == (back.longer.jobs, back.shorter.jobs)
    assert (there.shorter.users, there.equal.users) == (back.longer.users, back.equal.users)
    changes = [side.jobs * side.mean_change for side in (there.shorter, there.equal, there.longer) if side.jobs]
    assert sum(changes) == pytest.approx(b.wait.sum() - a.wait.sum())
    assert [job.job_id for job in there.winning_jobs] == [job.job_id for job in back.losing_jobs]


def test_gains__needs_the_same_jobs():
    a = wt.simulate(wt.Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=1), "easy")
    b = wt.simulate(wt.Workload.from_arrays(submit=[1], runtime=[1], procs=[1], machine_procs=1), "easy")
    with raises(WorkloadError, "other_jobs"):
        a.gains(b)
    assert wt.compare(a, a).gains().equal.jobs == 1


def test_compare__says_who_gains(golden, capsys, tmp_path):
    log = tmp_path / "small.swf"
    rows = [(1, 0, 10, 3, 1), (2, 1, 10, 4, 2), (3, 2, 5, 1, 1)]
    log.write_text(HEADER + "".join(f"{j} {at} -1 {run} {p} -1 -1 {p} {run} -1 1 {u} 1 -1 -1 -1 -1 -1\n" for j, at, run, p, u in rows))
    status, out, _ = call(capsys, "compare", log, "--policy", "fcfs", "--policy", "easy", "--gains")
    assert status == 0
    golden("compare", out)
    assert "job 3 of user 1 gains" in out
    runs = json.loads(call(capsys, "compare", log, "--gains", "--json")[1])["runs"]
    assert "gains" not in runs[0]
    assert runs[1]["gains"]["shorter"] == {"jobs": 1, "users": 1, "processor_hours": 5 / 3600, "mean_change": -18}
    assert runs[1]["gains"]["winning_users"] == [{"user": 1, "jobs": 2, "mean_before": 9, "mean_after": 0}]
    assert "with a single run only" in one_line(*call(capsys, "compare", log, "--gains", "--replications", "2", "--shake", "3"))
