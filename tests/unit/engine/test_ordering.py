"""The table by which compiled orders know the local time says what the calendar says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from walltime.engine.interface.orders import clock_of
from walltime.engine.kernel.callbacks import FIRST_OFFSET, local_time
from walltime.policy import Calendar

ZONES = ("Europe/Stockholm", "Australia/Lord_Howe", "America/St_Johns", "Africa/Casablanca", "Pacific/Apia", "Asia/Kathmandu")
MONDAY = datetime(2023, 3, 27)


def assert_clock_is_right(calendar: Calendar, first: int, last: int, times: np.ndarray) -> None:
    clock = clock_of(calendar, first, last)
    facts = np.array([0, 0, len(clock) // 2, *[0] * (FIRST_OFFSET - 3), *clock], np.int64)
    for time in times.tolist():
        local = calendar.local(time).replace(tzinfo=None)
        seconds = local_time(facts.ctypes.data, time)
        assert seconds % (7 * 86_400) == round((local - MONDAY).total_seconds()) % (7 * 86_400), (calendar, time)
        assert (seconds // 3600 % 24, seconds // 86_400 % 7) == (local.hour, local.weekday())


@pytest.mark.parametrize("zone", [*map(ZoneInfo, ZONES), UTC, timezone(timedelta(seconds=-12_600))], ids=str)
def test_clock__is_that_of_the_site(zone):
    begin = int(datetime(1990, 1, 1, tzinfo=UTC).timestamp())
    last = 50 * 366 * 86_400
    times = np.random.default_rng(1).integers(0, last, 2000)
    assert_clock_is_right(Calendar(begin, zone), 0, last, times)


def test_clock__changes_in_the_very_second():
    calendar = Calendar(1_679_792_400 - 1000, ZoneInfo("Europe/Stockholm"))
    assert_clock_is_right(calendar, 900, 1100, np.arange(900, 1101))
    zero, change, _ = clock_of(calendar, 900, 1100)
    assert (change, zero % 3600) == (1000, (1_679_792_400 - 1000) % 3600)
    assert clock_of(calendar, 1001, 1100) == [zero + 3600]


def test_clock__before_1970_and_of_a_log_that_begins_later_than_its_first_job():
    assert_clock_is_right(Calendar(-2_000_000_000, ZoneInfo("America/St_Johns")), 5, 10**9, np.arange(5, 10**9, 10**6))


def test_clock__of_times_that_no_calendar_has():
    with raises(wt.WorkloadError, "date_out_of_range"):
        clock_of(Calendar(2**58, UTC), 0, 10)
    assert clock_of(Calendar(0, UTC), 0, 2**59) == [3 * 86_400]  # no job may ever start so late
