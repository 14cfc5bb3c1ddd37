"""The windows of a site as times of a log: when jobs of a kind do not start, or are not planned to run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from walltime.errors import WorkloadError
from walltime.machine.machine import DAY, DAYS, Machine, Window
from walltime.ragged import Ragged
from walltime.workload import Workload

__all__ = ["Hours", "hours_of", "seconds_of"]

Array = np.ndarray
BEYOND = 60 * DAY
"""So long after the last submission windows still hold, or as long as the log lasts."""


class Hours(NamedTuple):
    """Stretches of time, int64, in order: from each of `begin` until the `end` beside it, s from the start of the log.

    No job starts in them. If `crossing`, none is planned to run across a `begin` either.
    """

    begin: Array
    end: Array
    crossing: bool

    def shut(self, moments: Array, length: int) -> Array:
        """Whether a job with a request of so many seconds may not start at each of these times (int64 s); bool."""
        following = np.searchsorted(self.begin, moments, side="right")
        inside = (following > 0) & (moments < np.append(self.end, 0)[following - 1])
        if self.crossing and len(self.begin):
            ahead = np.append(self.begin, np.iinfo(np.int64).max)[following]
            inside |= ahead - moments < length
        return inside


def hours_of(workload: Workload, machine: Machine, partition: Array) -> tuple[list[Hours], Ragged, int]:
    """The windows of a machine along a log, those of each job, and for how many jobs they leave no time at all.

    `partition`: the number of each job's partition, int64. Raises WorkloadError where the log does not say when it starts.
    """
    if not machine.windows:
        return [], Ragged.empty(len(workload)), 0
    jobs, of = [], []
    windows: list[Hours] = []
    outside = np.zeros(len(workload), bool)
    for window in machine.windows:
        hours = _hours(workload, window, machine.clock)
        chosen = _kind(workload, machine, window, partition)
        if hours.crossing and len(hours.begin) > 1:
            too_long = chosen & (workload.requested > int((hours.begin[1:] - hours.end[:-1]).max()))
            chosen &= ~too_long
            outside |= too_long
        jobs.append(np.flatnonzero(chosen))
        of.append(np.full(len(jobs[-1]), len(windows)))
        windows.append(hours)
    return windows, Ragged.of_pairs(len(workload), np.concatenate(jobs), np.concatenate(of)), int(outside.sum())


def _kind(workload: Workload, machine: Machine, window: Window, partition: Array) -> Array:
    """The jobs for which a window is."""
    chosen = np.ones(len(workload), bool)
    if window.partition is not None:
        chosen &= partition == [one.name for one in machine.partitions].index(window.partition)
    if window.longer_than is not None:
        chosen &= workload.requested > window.longer_than
    if window.up_to is not None:
        chosen &= workload.requested <= window.up_to
    if window.wider_than is not None:
        chosen &= workload.procs > window.wider_than
    if window.narrower_than is not None:
        chosen &= workload.procs < window.narrower_than
    return chosen


def _hours(workload: Workload, window: Window, clock: int | None) -> Hours:
    """A window's stretches of time."""
    start = workload.origin.unix_start_time
    if start is None:
        raise WorkloadError(
            "the machine has windows by the clock, but the log does not record when it starts; give it a UnixStartTime, or leave them out"
        )
    zone: tzinfo = workload.origin.tzinfo() if clock is None else timezone(timedelta(seconds=clock))
    first, last = int(workload.submit[0]), int(workload.submit[-1])
    last += max(last - first, BEYOND)
    since = first if window.since is None else seconds_of(workload, window.since, "a window")
    until = last if window.until is None else seconds_of(workload, window.until, "a window")
    day = datetime.fromtimestamp(start + first, UTC).astimezone(zone).date() - timedelta(days=1)
    wanted = {DAYS.index(name) for name in window.days}
    stretches: list[tuple[int, int]] = []
    while True:
        midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
        begin = int((midnight + timedelta(seconds=window.second)).timestamp()) - start
        if begin > last:
            break
        end = begin + window.length
        if day.weekday() in wanted and end >= max(since, first) and begin < until:
            stretches.append((max(begin, since), min(end, until)))
        day += timedelta(days=1)
    merged = _merged(stretches)
    return Hours(np.array([a for a, _ in merged], np.int64), np.array([b for _, b in merged], np.int64), window.crossing)


def _merged(stretches: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretches that touch are one."""
    merged: list[tuple[int, int]] = []
    for begin, end in stretches:
        if merged and begin <= merged[-1][1] and end > begin:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    assert all(a[1] <= b[0] for a, b in pairwise(merged))
    return merged


def seconds_of(workload: Workload, time: int | datetime, what: str) -> int:
    """A time in s from the start of the log; raises WorkloadError for a date where the log does not say when it starts."""
    if not isinstance(time, datetime):
        return int(time)
    start = workload.origin.unix_start_time
    if start is None:
        raise WorkloadError(f"{what} has a date, but the log does not record when it starts; give seconds from the start of the log")
    local = time if time.tzinfo is not None else time.replace(tzinfo=workload.origin.tzinfo())
    return int(local.timestamp()) - start
