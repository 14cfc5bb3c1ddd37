"""Columns of texts and of numbers that are none, and estimates as an array."""

from __future__ import annotations

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises

JOBS = {"submit": [2, 0, 1], "runtime": [5, 5, 5], "procs": [1, 1, 1], "machine_procs": 2}


@pytest.mark.slow
@pytest.mark.parametrize("users", [["ann", "bob", "ann"], np.array(["ann", "bob", "ann"]), np.array(["ann", "bob", "ann"], object)])
def test_texts__are_numbered_and_keep_their_names(users):
    jobs = wt.Workload.from_arrays(**JOBS, columns={"user": users})
    assert jobs.columns["user"].tolist() == [1, 2, 2]
    assert [jobs.origin.name_of("user", number) for number in (1, 2)] == ["bob", "ann"]
    order = wt.order(lambda user: -user)
    assert wt.simulate(jobs, wt.Easy(order=order)).start.tolist() == [0, 1, 5]


@pytest.mark.parametrize("users", [[1.0, float("nan"), 2.0], [1.5, 2, 2], ["ann", None, "bob"]])
def test_users_that_are_none__are_refused(users):
    with raises(wt.WorkloadError, "wrong_type", "user"):
        wt.Workload.from_arrays(**JOBS, columns={"user": users})


def test_estimates__may_be_an_array():
    jobs = wt.Workload.from_arrays(**JOBS, requested=[10, 10, 10])
    assert jobs.with_estimates(np.array([7, 8, 9])).planned.tolist() == [7, 8, 9]
