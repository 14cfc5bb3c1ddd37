"""The number of a job that `walltime explain --job` names."""

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from walltime.errors import PolicyError, WorkloadError
from walltime.explanation.waits import number_of


@pytest.fixture(scope="module")
def schedule():
    columns = {"array_job": np.array([-1, 52, 52]), "array_task": np.array([-1, 11, 12])}
    jobs = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[9] * 3, procs=[1] * 3, machine_procs=1, job_id=[50, 53, 60], columns=columns)
    return wt.simulate(jobs, "easy")


def test_number_of__jobs_and_tasks(schedule):
    assert [number_of(schedule, text) for text in ("50", "52_11", "52_12")] == [50, 53, 60]


@pytest.mark.parametrize("text", ["", "52_", "_12", "52_1_1", "x", "52_[1-3]", "5 2", "٥٢", "9" * 30])
def test_number_of__another_text_is_one_line(schedule, text):
    with raises(PolicyError, "wrong_job"):
        number_of(schedule, text)


def test_number_of__an_unknown_task(schedule):
    with raises(WorkloadError, "unknown_job", "52_9"):
        number_of(schedule, "52_9")
