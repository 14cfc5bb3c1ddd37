"""The tests that look for the future in predictions: honest ones pass; those that have seen the runtimes, or what was recorded, do not."""

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from tests.traces import trace_path
from walltime.errors import PolicyError
from walltime.predictors import parse_predictor
from walltime.predictors.hindsight import RECORDED, closeness, hindsight_remarks

HONEST = ("last", "tsafrir07", "tsafrir07:k=5", "similar15", "quantile", "gaussier15", "tang13:key=user", "user")


def some_jobs(count=4000, seed=3):
    """Jobs of users who each run things of about one length, and a third of them the same again."""
    draw = np.random.default_rng(seed)
    user = draw.integers(1, 60, count)
    runtime = np.exp(draw.normal(6 + (user % 7) / 2, 0.8)).astype(np.int64) + 1
    last: dict[int, int] = {}
    for job in range(count):
        if draw.random() < 1 / 3:
            runtime[job] = last.get(user[job], runtime[job])
        last[user[job]] = runtime[job]
    return wt.Workload.from_arrays(
        submit=np.cumsum(draw.integers(0, 300, count)),
        runtime=runtime,
        requested=3600 * 2 ** draw.integers(0, 5, count),
        procs=draw.integers(1, 9, count),
        machine_procs=32,
        columns={"user": user, "wait": draw.integers(61, 9999, count)},
    )


JOBS = some_jobs()


def remarks_of(jobs, predicted):
    return hindsight_remarks("x", jobs, jobs.requested, jobs.runtime, np.asarray(predicted, np.int64))


@pytest.mark.parametrize("name", HONEST)
def test_honest_predictor__is_not_accused(name):
    [made] = wt.predict(JOBS, [parse_predictor(name)], "easy")
    assert remarks_of(JOBS, made.predicted) == []


@pytest.mark.parametrize("noise", [0, 0.02, 0.08])
def test_runtimes_with_noise__are_found(golden, noise):
    predicted = JOBS.runtime * np.exp(np.random.default_rng(1).normal(0, noise, len(JOBS)))
    [said] = remarks_of(JOBS, predicted)
    golden("predict", said)


def test_closeness__counts_only_predictions_that_are_like_nothing_before():
    """The second job of user 1 is predicted by what the first ran; the third is like nothing, and within 1 % of what it ran."""
    jobs = wt.Workload.from_arrays(
        submit=[0, 1, 2, 3],
        runtime=[600, 600, 2000, 5000],
        requested=[90_000] * 4,
        procs=[1] * 4,
        machine_procs=4,
        columns={"user": np.array([1, 1, 1, 2])},
    )
    found = closeness(jobs, jobs.requested, jobs.runtime, np.array([-1, 600, 2010, 6000]), 0.1)
    assert (found.around, found.close) == (2, 1)


def test_recorded_waits__are_found_in_a_file(golden):
    [said] = remarks_of(JOBS, JOBS.columns["wait"])
    golden("predict", said)


@pytest.mark.parametrize("column", RECORDED)
def test_column_that_is_recorded_later__is_refused(column):
    with raises(PolicyError, "future_column", column):
        wt.simulate(JOBS, "easy", prediction=f"column:{column}")


@pytest.mark.slow
@pytest.mark.parametrize("name", HONEST)
def test_honest_predictor__is_not_accused_on_a_log(name):
    jobs = wt.read(trace_path("KTH-SP2-1996-2.1-cln.swf.gz"))
    [made] = wt.predict(jobs, [parse_predictor(name)])
    assert remarks_of(jobs, made.predicted) == []
