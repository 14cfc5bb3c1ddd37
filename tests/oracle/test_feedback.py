"""Feedback: a job that is submitted only after the end of another one, in both engines, the auditor and the files."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests import strategies
from tests.errors import raises

COLUMNS = {"preceding_job": [-1, 1, 2, -1], "think_time": [-1, 0, 5, -1]}


def chain(**changes):
    """Jobs 1, 2, 3 are runs of one program, each submitted when the one before has ended; job 4 is somebody else's."""
    arrays = {"submit": [0, 10, 25, 3], "runtime": [10, 10, 10, 8], "procs": [2, 2, 2, 2], "machine_procs": 2}
    return wt.Workload.from_arrays(**(arrays | {"job_id": [1, 2, 3, 4], "columns": COLUMNS, "feedback": True} | changes))


@pytest.mark.parametrize("engine", ["kernel", "reference"])
@pytest.mark.parametrize("coincident", ["batch", "sequential"])
def test_feedback__submits_a_job_when_the_one_before_it_has_ended(engine, coincident):
    """Job 1 runs 0-10. Job 4 came at 3 and goes first, 10-18; job 2 is submitted at 10 and runs 18-28. Job 3 comes 5 s later, at 33."""
    schedule = wt.simulate(chain(), wt.NoBackfilling(), engine=engine, coincident=coincident)
    by_id = dict(zip(schedule.workload.job_id.tolist(), zip(schedule.submit.tolist(), schedule.start.tolist(), strict=True), strict=True))
    assert by_id == {1: (0, 0), 4: (3, 10), 2: (10, 18), 3: (33, 33)}
    assert schedule.wait.sum() == 7 + 8
    assert schedule.last_submit == 33
    assert schedule.audit().ok


def test_without_feedback__the_submissions_are_fixed():
    schedule = wt.simulate(chain(feedback=False), wt.NoBackfilling())
    assert sorted(zip(schedule.submit.tolist(), schedule.start.tolist(), strict=True)) == [(0, 0), (3, 10), (10, 18), (25, 28)]


def test_feedback__ignores_a_predecessor_that_is_not_there():
    columns = {"preceding_job": [-1, 99, 2, -1], "think_time": [-1, 0, 5, -1]}
    schedule = wt.simulate(chain(columns=columns), wt.NoBackfilling())
    assert schedule.submit[schedule.workload.job_id == 2] == 10


def test_feedback__refuses_a_job_that_follows_a_later_one():
    with raises(wt.WorkloadError, "wrong_dependency", "1", "3"):
        chain(columns={"preceding_job": [3, -1, -1, -1]})


def test_feedback__is_audited_against_the_ends_of_the_schedule(tmp_path):
    jobs = chain()
    table = wt.read_schedule(wt.simulate(jobs, wt.Easy()).write(tmp_path / "s.csv"))
    assert wt.audit(jobs, table, wt.Easy()).ok
    table["submit"][-1] += 1
    assert wt.audit(jobs, table, wt.Easy()).counts == {"submit_differs": 1}


@strategies.examples(200)
@given(strategies.workloads(), strategies.policies(), st.sampled_from(["batch", "sequential"]), st.data())
@pytest.mark.slow
def test_feedback__kernel_equals_reference(workload, policy, coincident, data):
    n = len(workload)
    place = np.array([data.draw(st.integers(-1, i - 1)) for i in range(n)], np.int64)
    preceding = np.where(place >= 0, workload.job_id[place], -1)
    think = np.array(data.draw(st.lists(st.sampled_from([-1, 0, 0, 1, 7]), min_size=n, max_size=n)), np.int64)
    jobs = wt.Workload.from_arrays(
        submit=workload.submit,
        runtime=workload.runtime,
        requested=workload.requested,
        planned=workload.planned,
        procs=workload.procs,
        job_id=workload.job_id,
        machine_procs=workload.machine_procs,
        columns={**workload.columns, "preceding_job": preceding, "think_time": think},
        origin=workload.origin,
        feedback=True,
    )
    kernel, reference = (wt.simulate(jobs, policy, coincident=coincident, engine=engine) for engine in ("kernel", "reference"))
    for name in ("submit", "start", "kind", "reserved_start"):
        assert getattr(kernel, name).tolist() == getattr(reference, name).tolist(), name
    assert kernel.audit().ok, str(kernel.audit())
