"""The same fifty jobs in every form in which a site may have Slurm's records give the same workload."""

import functools

import numpy as np
import pytest

from tests.slurm_forms import FORMS, gpus_of, records
from walltime.logs import read_log

COLUMNS = (
    *("wait", "status", "gpus", "mem_mb", "nodes", "array_job", "array_task", "priority", "exit_code", "requested_nodes"),
    *("requested_gpus", "requested_mem_mb", "requested_procs"),
)
NAMED = ("user", "group", "queue", "partition", "executable", "state", "gpu_type", "requested_gpu_type", "node_list", "constraints")
UNCERTAIN = dict.fromkeys(("sacct -P", "sacct -p"), ("executable", "constraints"))
"""Columns of texts that contain the separator of the form."""


@functools.cache
def expected(folder):
    FORMS["sacct -P with seconds since 1970"](folder / "jobs", records())
    return read_log(folder / "jobs").to_workload(procs=64)


def names(workload, column):
    return [workload.origin.name_of(column, number) if number > 0 else None for number in workload.columns[column].tolist()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("forms")


@pytest.mark.parametrize("form", FORMS)
def test_form__gives_the_same_workload(form, folder, tmp_path):
    whole = expected(folder)
    FORMS[form](tmp_path / "log", records())
    found = read_log(tmp_path / "log").to_workload(procs=64)
    for name in ("job_id", "submit", "runtime", "requested", "procs"):
        assert np.array_equal(getattr(found, name), getattr(whole, name)), name
    for name in COLUMNS:
        assert np.array_equal(found.columns[name], whole.columns[name]), name
    for name in set(NAMED) - set(UNCERTAIN.get(form, ())):
        assert names(found, name) == names(whole, name), name
    assert (found.origin.dropped, found.origin.changed) == (whole.origin.dropped, whole.origin.changed)


def test_workload__has_the_jobs_that_ran(folder):
    whole = expected(folder)
    ran = [k for k in range(1, 48) if not (k % 2 == 0 and k % 9 in (4, 8))]
    assert whole.job_id.tolist() == ran
    assert whole.runtime.tolist() == [100 + 10 * k for k in ran]
    assert whole.requested.tolist() == [365 * 86_400 if k % 7 == 0 else 600 * k for k in ran]
    assert np.maximum(whole.columns["gpus"], 0).tolist() == [gpus_of(k) for k in ran]
    dropped = {"still_pending": 1, "still_running": 1, "part_of_resized": 1, "never_started": 3, "cancelled_before_start": 3}
    assert dict(whole.origin.dropped) == dropped
