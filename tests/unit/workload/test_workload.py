"""A workload takes sequences in any order of arrival, and refuses what no machine could run: each error a test of its own."""

from __future__ import annotations

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from walltime.workload import MAX_TIME

GOOD = {"submit": [0, 5, 5], "runtime": [10, 20, 0], "requested": [10, 30, 1], "procs": [1, 4, 2], "machine_procs": 4}


def make(**changes) -> wt.Workload:
    return wt.Workload.from_arrays(**{**GOOD, **changes})


def test_workload__columns_are_int64_and_cannot_be_written():
    jobs = make(columns={"user": np.array([7, 8, 9])})
    assert len(jobs) == 3
    for name in ("job_id", "submit", "runtime", "requested", "procs", "planned"):
        array = getattr(jobs, name)
        assert array.dtype == np.int64
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        jobs.columns["user"][0] = 1


def test_workload__defaults():
    jobs = make(requested=None)
    assert jobs.requested.tolist() == [10, 20, 1]  # lifted to 1 s
    assert jobs.planned.tolist() == [10, 20, 1]
    assert jobs.job_id.tolist() == [1, 2, 3]


def test_workload__is_sorted_by_submit_and_then_job_id():
    jobs = wt.Workload.from_arrays(
        submit=[5, 0, 5], job_id=[9, 20, 3], runtime=[1, 2, 3], procs=[1, 2, 3], machine_procs=4, columns={"user": [10, 20, 30]}
    )
    assert jobs.job_id.tolist() == [20, 3, 9]
    assert jobs.submit.tolist() == [0, 5, 5]
    assert [jobs.runtime.tolist(), jobs.procs.tolist(), jobs.columns["user"].tolist()] == [[2, 3, 1], [2, 3, 1], [20, 30, 10]]


def test_workload__without_job_ids_keeps_the_given_order_within_a_second():
    jobs = make(submit=[5, 0, 5], procs=[1, 2, 3])
    assert (jobs.procs.tolist(), jobs.job_id.tolist()) == ([2, 1, 3], [1, 2, 3])


def test_workload__that_was_sorted_says_so_and_gives_results_in_the_given_order():
    jobs = make(submit=[5, 0, 5], procs=[1, 2, 3], runtime=[10, 20, 30], requested=[10, 20, 30])
    assert (jobs.order.tolist(), dict(jobs.origin.changed)) == ([1, 0, 2], {"reordered": 1})
    schedule = wt.simulate(jobs, wt.NoBackfilling())
    assert jobs.in_given_order(jobs.runtime).tolist() == [10, 20, 30]
    assert jobs.in_given_order(schedule.start).tolist() == [schedule.start[1], schedule.start[0], schedule.start[2]]
    with pytest.raises(ValueError, match="read-only"):
        jobs.order[0] = 5
    with raises(wt.WorkloadError, "wrong_length", "2"):
        jobs.in_given_order([1, 2])


def test_workload__in_order_of_arrival_has_no_other_order():
    jobs = make(submit=[0, 5, 5], procs=[1, 2, 3])
    assert jobs.order is None
    assert "reordered" not in jobs.origin.changed
    assert jobs.in_given_order(jobs.procs).tolist() == [1, 2, 3]


def test_workload__ids_that_change_the_order_within_a_second_are_no_late_submission():
    jobs = make(submit=[0, 5, 5], job_id=[1, 3, 2])
    assert (jobs.order.tolist(), dict(jobs.origin.changed)) == ([0, 2, 1], {})


def test_workload__given_order_outlives_parts_and_shakes():
    jobs = make(submit=[500, 0, 250], procs=[1, 2, 3], runtime=[10, 20, 30], requested=[10, 20, 30])
    assert wt.workloads.tail(jobs, 2).in_given_order(wt.workloads.tail(jobs, 2).runtime).tolist() == [10, 30]
    for shaken in (wt.workloads.shake(jobs, 400, seed) for seed in range(9)):
        assert shaken.in_given_order(shaken.runtime).tolist() == [10, 20, 30]
    ordered = make(submit=[0, 250, 500], procs=[1, 2, 3], runtime=[10, 20, 30], requested=[10, 20, 30])
    assert any(not np.array_equal(wt.workloads.shake(ordered, 400, seed).runtime, [10, 20, 30]) for seed in range(9))
    assert all(
        wt.workloads.shake(ordered, 400, seed).in_given_order(wt.workloads.shake(ordered, 400, seed).runtime).tolist() == [10, 20, 30]
        for seed in range(9)
    )


def test_workload__takes_whole_numbers_in_any_numeric_type():
    jobs = make(submit=np.array([0.0, 5.0, 5.0]), procs=np.array([1, 4, 2], np.uint8), runtime=np.array([10, 20, 0], np.int32))
    assert (jobs.submit.dtype, jobs.procs.dtype, jobs.runtime.dtype) == (np.int64,) * 3
    assert jobs.submit.tolist() == [0, 5, 5]


def test_workload__with_planned_and_with_machine_leave_the_rest():
    jobs = make()
    told = jobs.with_planned([1, 2, 3])
    assert (told.planned.tolist(), told.requested.tolist()) == ([1, 2, 3], [10, 30, 1])
    assert jobs.planned.tolist() == [10, 30, 1]
    assert jobs.with_believed([1, 2, 3]).believed.tolist() == [1, 2, 3], "the former name"
    assert jobs.with_machine(100).machine_procs == 100


def test_workload__offered_load():
    assert make().offered_load == (10 * 1 + 20 * 4) / (4 * 5)
    assert np.isnan(make(submit=[5, 5, 5]).offered_load)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"machine_procs": 0}, id="no-processors"),
        pytest.param({"machine_procs": -4}, id="negative-processors"),
        pytest.param({"machine_procs": 3}, id="too-wide"),
        pytest.param({"submit": [0, -5, 5]}, id="negative-submit"),
        pytest.param({"runtime": [1, 1, -1]}, id="negative-runtime"),
        pytest.param({"requested": [1, 0, 1]}, id="no-request"),
        pytest.param({"planned": [0, 1, 1]}, id="nothing-planned"),
        pytest.param({"procs": [1, 1, 0]}, id="no-procs"),
        pytest.param({"runtime": [1, MAX_TIME, 1]}, id="too-long"),
        pytest.param({"submit": [0, 1, MAX_TIME]}, id="too-late"),
        pytest.param({"submit": [0, 1]}, id="lengths"),
        pytest.param({"job_id": [1, 2]}, id="ids-length"),
        pytest.param({"job_id": [1, 2, 2]}, id="ids-twice-in-a-second"),
        pytest.param({"job_id": [2, 1, 2]}, id="ids-twice"),
        pytest.param({"submit": [[0, 5, 5]]}, id="two-dimensions"),
        pytest.param({"submit": 0}, id="a-number"),
        pytest.param({"procs": ["1", "4", "2"]}, id="letters"),
        pytest.param({"runtime": [1, None, 2]}, id="none"),
        pytest.param({"runtime": [1.5, 1, 2]}, id="fractions"),
        pytest.param({"runtime": [np.nan, 1, 2]}, id="nan"),
        pytest.param({"runtime": [np.inf, 1, 2]}, id="inf"),
    ],
)
def test_workload__refuses(golden, changes):
    with pytest.raises(wt.WorkloadError) as caught:
        make(**changes)
    golden("simulate", str(caught.value))
    assert isinstance(caught.value, ValueError)


def test_workload__made_directly_must_be_in_order_of_arrival():
    good = make()
    columns = {name: getattr(good, name) for name in ("runtime", "requested", "procs", "planned", "job_id")}
    with raises(wt.WorkloadError, "wrong_order", "1", "2"):
        wt.Workload(submit=np.array([9, 5, 5]), machine_procs=4, **columns)


def test_workload__made_directly_must_have_columns_of_one_length():
    good = make()
    columns = {name: getattr(good, name) for name in ("submit", "runtime", "requested", "procs", "planned", "job_id")}
    with raises(wt.WorkloadError, "wrong_length", "user", "2", "3"):
        wt.Workload(machine_procs=4, columns={"user": np.array([1, 2])}, **columns)


def test_workload__refuses_any_number_of_processors_as_wider_than_the_machine():
    with raises(wt.WorkloadError, "job_too_wide", "4"):
        wt.Workload.from_arrays(submit=[0], runtime=[1], procs=[MAX_TIME], machine_procs=4)


def test_workload__with_machine_refuses_a_machine_that_is_too_small():
    with raises(wt.WorkloadError, "job_too_wide", "2", "4"):
        make().with_machine(2)


def test_workload__with_planned_refuses_the_wrong_number_of_estimates():
    with raises(wt.WorkloadError, "wrong_length", "planned", "2", "3"):
        make().with_planned([1, 2])


# Found while writing these tests; what is expected is what the class's docstring says: WorkloadError, one line.


def test_workload__refuses_a_column_that_is_too_long():
    with raises(wt.WorkloadError, "wrong_length", "user", "4"):
        make(columns={"user": [1, 2, 3, 4]})


def test_workload__refuses_a_column_that_is_too_short():
    with raises(wt.WorkloadError, "wrong_length", "user", "2"):
        make(columns={"user": [1, 2]})


def test_workload__refuses_a_fraction_of_a_processor():
    with pytest.raises(wt.WorkloadError):
        make(machine_procs=4.7)


def test_workload__refuses_a_machine_of_nan_processors():
    with pytest.raises(wt.WorkloadError):
        make(machine_procs=float("nan"))


def test_workload__refuses_a_float_that_no_int64_can_hold():
    with pytest.raises(wt.WorkloadError):
        make(runtime=[1e300, 1, 1])


def test_workload__refuses_more_processors_than_an_int64_can_count():
    with pytest.raises(wt.WorkloadError):
        make(machine_procs=2**70)
