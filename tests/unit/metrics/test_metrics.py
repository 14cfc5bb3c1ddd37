"""Metrics against examples worked by hand and against slow, obvious versions of themselves."""

import json
import math
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.errors import raises
from walltime import metrics
from walltime.errors import PolicyError, WalltimeError, WorkloadError
from walltime.metrics.summary import LESS, Summary, averages

HAND = {
    # job        A    B    C    D
    "submit": [0, 0, 10, 20],
    "start": [0, 100, 10, 100],
    "runtime": [100, 50, 5, 0],
    "procs": [3, 4, 1, 4],
    "backfilled": [False, False, True, False],
}
"""A machine of 4: A runs at once, C is backfilled beside it, B and D wait for A; D ends the moment it starts."""

jobs = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(0, 3000), st.integers(0, 400), st.integers(1, 16), st.booleans()), min_size=1, max_size=40
)


def columns(rows):
    submit, wait, runtime, procs, backfilled = (np.array(c) for c in zip(*rows, strict=True))
    order = np.argsort(submit, kind="stable")
    return submit[order], wait[order], runtime[order], procs[order], backfilled[order]


def test_summary__worked_by_hand():
    s = metrics.summarize(**HAND, machine_procs=4, offered_load=1.25)
    assert (s.jobs, s.measured_jobs, s.zero_runtime_jobs) == (4, 4, 1)
    assert s.mean_wait == (0 + 100 + 0 + 80) / 4
    assert s.mean_response == (100 + 150 + 5 + 80) / 4
    assert s.mean_slowdown == pytest.approx((1 + 3 + 1) / 3)
    assert s.mean_bounded_slowdown == pytest.approx((1 + 3 + 1 + 8) / 4)
    assert s.mean_bounded_slowdown_p1 == pytest.approx((1 + 3 + 0.5 + 8) / 4)
    assert s.utilization == pytest.approx((300 + 200 + 5) / (4 * 150))
    assert s.offered_load == 1.25
    assert s.backfilled_percent == 25.0
    assert (s.mean_runtime_backfilled, s.mean_procs_backfilled) == (5.0, 1.0)
    assert (s.mean_runtime_others, s.mean_procs_others) == (50.0, pytest.approx(11 / 3))
    assert (s.median_wait, s.max_wait, s.makespan) == (40.0, 100.0, 150.0)
    assert s.p90_wait == pytest.approx(94.0)


def test_summary__first_fields_are_those_of_the_json_contract():
    names = list(metrics.summarize(**HAND, machine_procs=4, offered_load=1.0).as_dict())
    assert names[:9] == [
        "jobs",
        "measured_jobs",
        "mean_wait",
        "mean_response",
        "mean_slowdown",
        "mean_bounded_slowdown",
        "utilization",
        "offered_load",
        "backfilled_percent",
    ]


def test_summary__one_job():
    s = metrics.summarize(submit=[7], start=[7], runtime=[60], procs=[2], backfilled=[False], machine_procs=4, offered_load=float("nan"))
    assert (s.mean_wait, s.mean_slowdown, s.mean_bounded_slowdown, s.utilization, s.backfilled_percent) == (0.0, 1.0, 1.0, 0.5, 0.0)
    assert math.isnan(s.mean_runtime_backfilled)
    assert s.as_dict()["offered_load"] is None


def test_summary__without_jobs_is_undefined_and_silent():
    empty = {name: [] for name in HAND}
    s = metrics.summarize(**empty, machine_procs=4, offered_load=float("nan"))
    assert (s.jobs, s.measured_jobs, s.zero_runtime_jobs) == (0, 0, 0)
    values = s.as_dict()
    assert {v for v in values.values() if v is not None} == {0}
    json.dumps(values, allow_nan=False)


def test_summary__all_runtimes_zero():
    s = metrics.summarize(
        submit=[0, 0], start=[0, 5], runtime=[0, 0], procs=[1, 1], backfilled=[False] * 2, machine_procs=1, offered_load=0.0
    )
    assert s.zero_runtime_jobs == 2
    assert math.isnan(s.mean_slowdown)
    assert s.mean_bounded_slowdown == 1.0
    assert s.mean_bounded_slowdown_p1 == 0.25


def test_summary__names_what_is_wrong():
    with raises(WorkloadError, "different_lengths"):
        metrics.summarize(**(HAND | {"procs": [1]}), machine_procs=4, offered_load=1.0)
    with raises(WorkloadError, "no_measured_jobs", "'tsafrir06'", "4"):
        metrics.summarize(**(HAND | {"start": [500] * 4}), machine_procs=4, offered_load=1.0, trim="tsafrir06")
    with raises(PolicyError, "unknown_trim", "'P5'", "none", "tsafrir06"):
        metrics.summarize(**HAND, machine_procs=4, offered_load=1.0, trim="P5")
    assert issubclass(PolicyError, ValueError)
    assert issubclass(PolicyError, WalltimeError)


def test_slowdown__is_undefined_where_nothing_ran():
    values = metrics.slowdown(np.array([5, 5, 0]), np.array([0, 5, 0]))
    assert np.isnan(values[[0, 2]]).all()
    assert values[1] == 2.0


@pytest.mark.parametrize(
    ("wait", "runtime", "p1", "p3"), [(0, 0, 0.0, 1.0), (0, 10, 1.0, 1.0), (0, 11, 1.0, 1.0), (3, 2, 0.5, 1.0), (22, 11, 3.0, 3.0)]
)
def test_bounded_slowdown__both_published_forms(wait, runtime, p1, p3):
    w, r = np.array([wait]), np.array([runtime])
    assert metrics.bounded_slowdown(w, r, form="p1")[0] == p1
    assert metrics.bounded_slowdown(w, r)[0] == p3


def test_bounded_slowdown__names_what_is_wrong():
    with raises(WorkloadError, "unknown_slowdown", "max", "p1"):
        metrics.bounded_slowdown(np.array([1]), np.array([1]), form="p2")
    with raises(WorkloadError, "number_out_of_range", "1"):
        metrics.bounded_slowdown(np.array([1]), np.array([1]), threshold=0)


@pytest.mark.slow
@given(jobs)
def test_bounded_slowdown__forms_agree_from_one_on_and_never_exceed_the_slowdown(rows):
    _, wait, runtime, _, _ = columns(rows)
    p1, p3 = metrics.bounded_slowdown(wait, runtime, form="p1"), metrics.bounded_slowdown(wait, runtime)
    assert np.array_equal(p3, np.maximum(p1, 1))
    ran = runtime > 0
    assert (p3[ran] <= metrics.slowdown(wait, runtime)[ran]).all()


def test_weighted_wait__examples():
    wait = np.array([0, 10, 30])
    assert metrics.weighted_wait(wait, wait) == (100 + 900) / 40
    assert metrics.weighted_wait(wait, np.ones(3)) == wait.mean()
    assert metrics.weighted_wait(wait, np.zeros(3)) == 0.0
    assert metrics.weighted_wait(wait[:0], wait[:0]) == 0.0


def test_relative_difference__examples():
    assert metrics.relative_difference(3, 4) == -25.0
    assert math.isnan(metrics.relative_difference(3, 0))


def test_backfill_statistics__without_any_backfilled_job():
    s = metrics.backfill_statistics(np.array([10, 20]), np.array([1, 3]), np.array([False, False]))
    assert s.percent == 0.0
    assert math.isnan(s.mean_runtime)
    assert math.isnan(s.mean_procs)
    assert (s.mean_runtime_others, s.mean_procs_others) == (15.0, 2.0)


def test_offered_load__needs_a_span():
    assert math.isnan(metrics.offered_load(np.array([5, 5]), np.array([1, 1]), np.array([1, 1]), 4))
    assert math.isnan(metrics.offered_load(*(np.array([], np.int64),) * 3, 4))


@given(jobs, st.integers(-100, 9000), st.integers(0, 4000))
def test_utilization__equals_a_sum_over_seconds(rows, begin, length):
    submit, wait, runtime, procs, _ = columns(rows)
    start = submit + wait
    got = metrics.utilization(start, start + runtime, procs, 16, begin, begin + length)
    if length == 0:
        assert math.isnan(got)
        return
    area = sum(
        int(p) * len(range(max(int(s), begin), min(int(s + r), begin + length))) for s, r, p in zip(start, runtime, procs, strict=True)
    )
    assert got == float(Fraction(area, 16 * length))


def test_utilization__is_exact_beyond_an_int64():
    big = 2**59
    end = np.array([big] * 64)
    assert metrics.utilization(end * 0, end, end * 0 + 2**10, 2**16, 0, big) == 1.0


@given(jobs)
def test_steps__equal_a_count_at_every_change(rows):
    submit, wait, runtime, procs, _ = columns(rows)
    start = submit + wait
    times, levels = metrics.busy_processors(start, start + runtime, procs)
    assert (np.diff(times) > 0).all()
    assert (np.diff(levels) != 0).all()
    moments = np.unique(np.concatenate((start, start + runtime, start - 1)))
    expected = [int(procs[(start <= t) & (t < start + runtime)].sum()) for t in moments]
    assert metrics.levels_at(times, levels, moments).tolist() == expected


@given(jobs)
def test_queue_length__its_integral_is_the_total_wait(rows):
    submit, wait, *_ = columns(rows)
    times, levels = metrics.queue_length(submit, submit + wait)
    assert int(np.dot(np.diff(times), levels[:-1])) == int(wait.sum())


def slow_p3(end, last_submit, ignored):
    """The trimming of tsafrir06, section II, one job at a time."""
    order = sorted(range(len(end)), key=lambda i: (end[i], i))
    size, kept = len(end), []
    for rank, i in enumerate(order, start=1):
        if ignored[i]:
            size -= 1
        elif rank > size // 100 and end[i] <= last_submit:
            kept.append(i)
    return kept


@given(st.lists(st.tuples(st.integers(0, 300), st.booleans()), max_size=400), st.integers(0, 300))
def test_measured__equals_the_slow_version(rows, last_submit):
    end = np.array([e for e, _ in rows], np.int64)
    ignored = np.array([i for _, i in rows], bool)
    for mask in (None, ignored):
        got = metrics.measured(end, last_submit, "tsafrir06", ignored=mask)
        assert np.flatnonzero(got).tolist() == sorted(slow_p3(end, last_submit, ignored & (mask is not None)))


def test_measured__one_percent_of_all_simulated_jobs():
    end = np.arange(250)[::-1]
    mask = metrics.measured(end, last_submit=1000, trim="tsafrir06")
    assert np.flatnonzero(~mask).tolist() == [248, 249]
    assert metrics.measured(end[:99], last_submit=1000, trim="tsafrir06").all()
    assert metrics.measured(end, last_submit=0).all()


def test_measured__ties_go_by_arrival_and_the_last_arrival_itself_counts():
    mask = metrics.measured(np.full(100, 7), last_submit=7, trim="tsafrir06")
    assert np.flatnonzero(~mask).tolist() == [0]


@given(jobs, st.integers(1, 10**9))
def test_summary__does_not_depend_on_when_the_log_starts(rows, shift):
    submit, wait, runtime, procs, backfilled = columns(rows)
    common = {"runtime": runtime, "procs": procs, "backfilled": backfilled, "machine_procs": 16, "offered_load": 0.5}
    one = metrics.summarize(submit=submit, start=submit + wait, **common)
    two = metrics.summarize(submit=submit + shift, start=submit + shift + wait, **common)
    assert one.as_dict() == two.as_dict()
    assert one.mean_response == pytest.approx(one.mean_wait + runtime.mean())
    assert 0 <= one.median_wait <= one.p90_wait <= one.p99_wait <= one.max_wait


@pytest.mark.parametrize(("trim", "kept"), [("last:0.3", [7, 8, 9]), ("last:1", list(range(10))), ("last:0.05", [9])])
def test_measured__the_last_share_of_the_jobs(trim, kept):
    assert np.flatnonzero(metrics.measured(np.arange(10), 5, trim)).tolist() == kept


@pytest.mark.parametrize("trim", ["last:0", "last:1.5", "last:x", "last:", "first:0.3"])
def test_measured__an_unknown_trim(trim):
    with raises(PolicyError, "unknown_trim"):
        metrics.measured(np.arange(10), 5, trim)


def test_averages__every_field_declares_the_unit_that_its_name_says():
    declared = averages()
    assert list(declared) == [field.name for field in fields(Summary)]
    for name, average in declared.items():
        seconds = any(part in name.split("_") for part in ("wait", "response", "runtime", "makespan")) and not name.endswith("_jobs")
        assert (average.unit == "s") == seconds, name
        assert (average.unit == "%") == name.endswith("_percent"), name
        assert average.better in (LESS, 0) or name == "utilization"
        assert average.better or not (name.endswith("_wait") or "slowdown" in name), name


def test_steady__leaves_out_at_most_a_tenth_of_the_jobs():
    end = np.arange(200)
    assert metrics.measured(end, 189, "steady").tolist() == metrics.measured(end, 189, "tsafrir06").tolist()
    assert metrics.measured(end, 189, "steady").sum() == 188
    assert metrics.measured(end, 150, "steady").all()
    assert not metrics.measured(end, 189, "steady", ignored=end < 5)[:5].any()
