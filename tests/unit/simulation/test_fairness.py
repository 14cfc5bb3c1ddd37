"""Fair starts: by hand, first come first served, and against the reference engine; waits by share of use."""

import json

import numpy as np
import pytest
from hypothesis import given

import walltime as wt
from tests.cli import HEADER, call, one_line
from tests.errors import raises
from tests.profiles import examples
from tests.strategies import policies, workloads
from tests.traces import trace_path
from walltime.errors import PolicyError, WorkloadError
from walltime.simulation import Fairness, fairness
from walltime.simulation.fair_start import fair_starts, sample_jobs


def everybody(workload: wt.Workload) -> np.ndarray:
    return np.arange(len(workload))


def test_fair_starts__worked_by_hand():
    """A short job that arrives last is backfilled and runs on when the first job ends early."""
    jobs = wt.Workload.from_arrays(
        submit=[0, 1, 2],
        runtime=[10, 10, 18],
        requested=[20, 10, 18],
        procs=[3, 4, 1],
        machine_procs=4,
        columns={"user": np.array([1, 2, 1])},
    )
    schedule = wt.simulate(jobs, "easy")
    assert schedule.start.tolist() == [0, 20, 2]
    assert fair_starts(schedule, everybody(jobs)).tolist() == [0, 10, 2]
    assert fairness(schedule) == Fairness(
        jobs=3,
        sample=3,
        late_percent=pytest.approx(100 / 3),
        early_percent=0,
        mean_miss=pytest.approx(10 / 3),
        mean_miss_of_late=10,
        max_miss=10,
        users=2,
        use_correlation=-1,
    )


@examples(40)
@given(workloads(max_size=8), policies(own=False))
def test_fair_starts__are_those_of_the_reference_engine_job_by_job(workload, policy):
    schedule = wt.simulate(workload, policy)
    fair = fair_starts(schedule, everybody(workload), workers=1)
    for job in range(len(workload)):
        alone = workload.take(np.arange(job + 1), "up to this job")
        assert fair[job] == wt.simulate(alone, policy, engine="reference").start[job]
    assert fair[-1] == schedule.start[-1], "nobody arrives after the last job"


@examples(40)
@given(workloads(max_size=8))
def test_fairness__first_come_first_served_is_fair_to_all(workload):
    found = fairness(wt.simulate(workload, "fcfs"), workers=1)
    assert (found.late_percent, found.early_percent, found.mean_miss) == (0, 0, 0)


def test_fairness__the_sample_is_drawn_by_the_seed():
    one = np.ones(1000, np.int64)
    jobs = wt.Workload.from_arrays(submit=np.arange(1000), runtime=one, procs=one, machine_procs=1)
    schedule = wt.simulate(jobs, "fcfs")
    first = sample_jobs(schedule, 50, 1)
    assert (len(first), len(set(first.tolist()))) == (50, 50)
    assert (first == sample_jobs(wt.simulate(jobs, "easy"), 50, 1)).all()
    assert (first != sample_jobs(schedule, 50, 2)).any()
    assert len(sample_jobs(schedule, 5000, 0)) == 1000


def test_fairness__refuses():
    jobs = wt.Workload.from_arrays(submit=[0, 1], runtime=[5, 5], procs=[1, 1], machine_procs=1)
    schedule = wt.simulate(jobs, "easy")
    for sample, seed in ((0, 0), (True, 0), (10, -1)):
        with pytest.raises(PolicyError):
            fairness(schedule, sample, seed)
    with raises(WorkloadError, "feedback"):
        fairness(wt.simulate(jobs.with_feedback(), "easy"))


@pytest.mark.slow
def test_fairness__of_a_real_log():
    workload = wt.read(trace_path("KTH-SP2-1996-2.1-cln"))
    found = fairness(wt.simulate(workload, "easy"), sample=60, seed=3)
    assert (found.sample, found.users) == (60, 214)
    assert 0 < found.late_percent < 50


def test_simulate__fairness(golden, capsys, tmp_path):
    log = tmp_path / "small.swf"
    rows = [(1, 0, 10, 20, 3, 1), (2, 1, 10, 10, 4, 2), (3, 2, 18, 18, 1, 1)]
    log.write_text(HEADER + "".join(f"{j} {at} -1 {run} {p} -1 -1 {p} {req} -1 1 {u} 1 -1 -1 -1 -1 -1\n" for j, at, run, req, p, u in rows))
    status, out, _ = call(capsys, "simulate", log, "--fairness")
    assert status == 0
    assert "33.3 %" in out
    assert "all 3 jobs" in out
    golden("simulate", call(capsys, "simulate", log, "--fairness", "--fairness-sample", 2)[1])
    found = json.loads(call(capsys, "simulate", log, "--fairness", "--json")[1])["fairness"]
    assert (found["sample"], found["mean_miss_of_late"], found["use_correlation"]) == (3, 10, -1)
    assert "--fairness" in one_line(*call(capsys, "simulate", log, "--fairness-sample", 2))
    assert "with a single run only" in one_line(*call(capsys, "simulate", log, "--fairness", "--replications", "2", "--shake", "3"))
