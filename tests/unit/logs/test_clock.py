"""Local times in logs: zones, and both changes of clocks, at a few places by hand."""

import numpy as np
import polars as pl
import pytest

from tests.errors import raises
from walltime.errors import PolicyError
from walltime.logs.clock import Local, parse_zone, settle, to_unix


def unix(texts, zone):
    return to_unix(pl.Series(texts).str.to_datetime("%Y-%m-%d %H:%M", strict=False), zone)


@pytest.mark.parametrize(
    ("zone", "first", "last"),
    [
        ("Europe/Stockholm", 1792888200, 1792891800),  # 2026-10-25 02:30 is 00:30 or 01:30 UTC
        ("America/New_York", 1792909800, 1792909800),  # where clocks go back a week later: 06:30 UTC
        ("3600", 1792891800, 1792891800),
        ("UTC", 1792895400, 1792895400),
        (None, 1792895400, 1792895400),
    ],
)
def test_to_unix__of_the_hour_that_occurs_twice(zone, first, last):
    local = unix(["2026-10-25 02:30"], zone)
    assert (local.first.tolist(), local.last.tolist(), local.skipped.tolist()) == ([first], [last], [False])


@pytest.mark.parametrize(
    ("zone", "text", "seconds"),
    [
        ("Europe/Stockholm", "2026-03-29 02:30", 1774747800),  # as if at 01:30 UTC, 03:30 by the new clock
        ("Australia/Lord_Howe", "2026-10-04 02:15", 1791042300),  # half an hour is skipped; +10:30 before
    ],
)
def test_to_unix__of_a_time_that_never_was(zone, text, seconds):
    local = unix([text, None, "2026-06-01 12:00"], zone)
    assert local.skipped.tolist() == [True, False, False]
    assert local.first[:2].tolist() == [seconds, -1]


def pair(first, last):
    return Local(np.array([first]), np.array([last]), np.array([False]))


HOUR = 3600


@pytest.mark.parametrize(
    ("submit", "start", "end", "elapsed", "settled", "is_open"),
    [
        ((0, 0), (100, 100 + HOUR), (200 + HOUR, 200 + HOUR), 100, (0, 100 + HOUR, 200 + HOUR), False),
        ((0, 0), (100, 100 + HOUR), (200 + HOUR, 200 + HOUR), HOUR + 100, (0, 100, 200 + HOUR), False),
        ((50, 50 + HOUR), (100, 100), (200, 200), 100, (50, 100, 200), False),  # not after the start
        ((50, 50 + HOUR), (100 + HOUR, 100 + HOUR), (200 + HOUR, 200 + HOUR), 100, (50, 100 + HOUR, 200 + HOUR), True),
        ((50, 50 + HOUR), (10, 10 + HOUR), (20, 20 + HOUR), 10, (50, 10 + HOUR, 20 + HOUR), False),
        ((50, 50 + HOUR), (-1, -1), (-1, -1), -1, (50, -1, -1), True),
    ],
)
def test_settle__by_order_and_length(submit, start, end, elapsed, settled, is_open):
    times, still = settle([pair(*submit), pair(-1, -1), pair(*start), pair(*end)], np.array([elapsed]))
    assert tuple(int(times[name][0]) for name in ("submit", "start", "end")) == settled
    assert still.tolist() == [is_open]


@pytest.mark.parametrize(
    ("text", "zone"), [("+01:00", "3600"), ("-0330", "-12600"), ("UTC+2", "7200"), ("Europe/Stockholm", "Europe/Stockholm")]
)
def test_parse_zone(text, zone):
    assert parse_zone(text) == zone


@pytest.mark.parametrize("text", ["Stockholm", "+99:00", "", "../etc/passwd", "Europe"])
def test_parse_zone__of_none(text):
    with raises(PolicyError, "unknown_time_zone"):
        parse_zone(text)
