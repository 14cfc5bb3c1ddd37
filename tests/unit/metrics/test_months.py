"""Calendar months in the local time of the site."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.errors import raises
from walltime import metrics
from walltime.errors import PolicyError, WorkloadError

STOCKHOLM = ZoneInfo("Europe/Stockholm")


def rows(submit, start, runtime, procs, unix_start_time=0, tzinfo=UTC, **options):
    submit, start, runtime, procs = (np.array(a, np.int64) for a in (submit, start, runtime, procs))
    return metrics.monthly(
        submit=submit,
        start=start,
        runtime=runtime,
        procs=procs,
        machine_procs=4,
        unix_start_time=unix_start_time,
        tzinfo=tzinfo,
        **options,
    )


def test_monthly__worked_by_hand():
    day = 86400
    # January 1970 has 31 days; A runs on days 0 to 10, B waits from day 20, runs on days 30 to 40 and so ends in February
    got = rows([0, 20 * day], [0, 30 * day], [10 * day, 10 * day], [2, 4])
    january, february = got
    assert (january.year, january.month, january.jobs, january.days) == (1970, 1, 1, 31.0)
    assert (february.year, february.month, february.jobs, february.days) == (1970, 2, 1, 9.0)
    assert january.load == pytest.approx((2 * 10 + 4 * 1) / (4 * 31))
    assert february.load == pytest.approx(4 * 9 / (4 * 28))
    assert (january.mean_wait, january.mean_response, january.mean_bounded_slowdown) == (0.0, 10 * day, 1.0)
    assert (february.mean_wait, february.mean_response, february.mean_bounded_slowdown_p1) == (10 * day, 20 * day, 2.0)


@pytest.mark.parametrize(("by", "expected"), [("end", [0, 0, 1]), ("start", [0, 1, 0]), ("submit", [1, 0, 0])])
def test_monthly__a_job_belongs_to_the_month_of_the_event_asked_for(by, expected):
    day = 86400
    got = rows([30 * day], [40 * day], [30 * day], [1], by=by)
    assert [m.jobs for m in got] == expected
    assert [m.as_dict()["mean_wait"] is None for m in got] == [not jobs for jobs in expected]


def test_monthly__midnight_is_local_and_starts_the_new_month():
    start_of_log = int(datetime(1996, 9, 30, 21, 59, 50, tzinfo=UTC).timestamp())
    # local summer time is two hours ahead: midnight comes 10 s after the log's start
    got = rows([0, 0], [0, 0], [9, 10], [1, 1], start_of_log, STOCKHOLM)
    assert [(m.year, m.month, m.jobs) for m in got] == [(1996, 9, 1), (1996, 10, 1)]
    assert [(m.month, m.jobs) for m in rows([0, 0], [0, 0], [9, 10], [1, 1], start_of_log)] == [(9, 2)]


def test_monthly__months_with_a_change_of_the_clock_are_an_hour_longer_or_shorter():
    first = int(datetime(1996, 10, 1, tzinfo=STOCKHOLM).timestamp())
    starts = [moment for _, _, moment in metrics.month_starts(first, first + 200 * 86400, STOCKHOLM)]
    seconds = np.diff(starts).tolist()
    assert seconds[:2] == [31 * 86400 + 3600, 30 * 86400]
    assert seconds[5] == 31 * 86400 - 3600


def test_monthly__names_what_is_wrong():
    with raises(PolicyError, "unknown_column", "end", "start", "submit"):
        rows([0], [0], [1], [1], by="arrival")
    with raises(WorkloadError, "unknown_start_time", "UnixStartTime"):
        rows([0], [0], [1], [1], unix_start_time=None)
    with raises(WorkloadError, "date_out_of_range"):
        rows([2**59], [2**59], [1], [1])
    assert rows([], [], [], []) == []


@given(
    st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 4)), min_size=1, max_size=30),
    st.integers(-(10**9), 10**9),
    st.sampled_from([UTC, STOCKHOLM, ZoneInfo("America/Los_Angeles"), timezone(timedelta(seconds=-18000))]),
    st.sampled_from(["end", "start", "submit"]),
)
def test_monthly__agrees_with_the_calendar_of_the_standard_library(jobs, origin, zone, by):
    submit, wait, runtime, procs = (np.array(c) for c in zip(*jobs, strict=True))
    start = submit + wait
    got = rows(submit, start, runtime, procs, origin, zone, by=by)
    event = {"end": start + runtime, "start": start, "submit": submit}[by]
    local = [datetime.fromtimestamp(origin + int(t), zone) for t in event]
    for m in got:
        assert m.jobs == sum((d.year, d.month) == (m.year, m.month) for d in local)
    assert sum(m.jobs for m in got) == len(jobs)
    spans = metrics.month_starts(origin + int(submit.min()), origin + int((start + runtime).max()), zone)
    busy = sum(m.load * 4 * (b[2] - a[2]) for m, a, b in zip(got, spans, spans[1:], strict=False))
    assert busy == pytest.approx(float(np.dot(runtime, procs)))
