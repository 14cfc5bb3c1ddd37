"""The hours in which a site's windows forbid starts, from the machine file and the site's clock, for the span of a schedule.

The clock is represented as stretches of time with a constant offset from UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from walltime.machine import Machine, Placement, Window
from walltime.machine.placing import NEVER
from walltime.machine.windows import span_of
from walltime.workload import Array, Workload

MINUTE, DAY = 60, 86_400
WEEK = 7 * DAY
CENTURIES = 146_097 * DAY
"""Length of 400 years, s, after which the calendar repeats."""
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class ShutHours(NamedTuple):
    """Hours [begin, end), int64 s, in which some `jobs` (bool) may not start; with `crossing`, nor be planned to run into them."""

    begin: Array
    end: Array
    crossing: bool
    jobs: Array


class SiteWindows:
    """The hours in which the windows of a machine forbid jobs to start.

    `workload`: the jobs as submitted; `planned`: their planned lengths, int64 s; `last`: the last time that matters, s.
    """

    def __init__(self, workload: Workload, placement: Placement, planned: Array, last: int):
        machine, self.planned, self.shut_hours = placement.machine, planned, list[ShutHours]()
        if not machine.windows:
            return
        windows, tick = machine.windows, machine.overhead.tick
        spans = [span_of(workload, window) for window in windows]
        bounds = sorted({-NEVER, NEVER, *(bound for span in spans for bound in span)})
        last = min(last + int(planned.max()), max(last, *bounds[:-1]) + 2 * WEEK)
        clock = _Clock(workload, machine, last)
        kinds = [_jobs_of(window, workload, machine, placement.partition) for window in windows]
        waits = placement.since == NEVER
        for number, window in enumerate(windows):
            begun, jobs = -NEVER, np.zeros(len(workload), bool)
            for since, until in pairwise(bounds):
                there = [k for k, span in enumerate(spans) if span[0] <= since and until <= span[1]]
                now = kinds[number].copy() if number in there else np.zeros(len(workload), bool)
                if now.any() and until - since >= WEEK:
                    room = _room(frozenset(windows[k] for k in there), tick)  # fewer windows leave at least as much time
                    for job in np.flatnonzero(now & waits & (planned > room)).tolist():
                        now[job] = window in _held_by(tuple(windows[k] for k in there if kinds[k][job]), int(planned[job]), tick)
                if (now != jobs).any():
                    self._hold(window, clock, (begun, since), jobs, tick)
                    begun, jobs = since, now
            self._hold(window, clock, (begun, NEVER), jobs, tick)

    def _hold(self, window: Window, clock: _Clock, span: tuple[int, int], jobs: Array, tick: int) -> None:
        if not jobs.any():
            return
        begin, end = (-(-side // tick) * tick for side in clock.hours(window, *span))
        begin, end = begin[end >= clock.first], end[end >= clock.first]
        if window.end is not None and len(begin):  # merge adjoining hours
            latest = np.maximum.accumulate(end)
            first = np.flatnonzero(np.append(True, begin[1:] > latest[:-1]))
            begin, end = begin[first], np.maximum.reduceat(end, first)
        self.shut_hours.append(ShutHours(begin, end, window.crossing, jobs))

    def shut(self, job: int, moment: int) -> bool:
        """Return whether a job, an index, may not start at a time, s."""
        for begin, end, crossing, jobs in self.shut_hours:
            if jobs[job]:
                k = int(np.searchsorted(begin, moment, "right"))
                if (k > 0 and moment < end[k - 1]) or (crossing and k < len(begin) and begin[k] < moment + self.planned[job]):
                    return True
        return False

    def changes(self) -> set[int]:
        """Return the times at which jobs may no longer start, or may start again, s."""
        return {time for one in self.shut_hours for side in (one.begin, one.end) for time in side.tolist()}


class _Clock:
    """A site's clock from the first submission until `last`: from `since[k]` on, it is ahead of UTC by `ahead[k]`.

    Times in s from the start of the log; the stretch before the first change begins at -NEVER.
    """

    def __init__(self, workload: Workload, machine: Machine, last: int):
        self.zone: tzinfo = workload.origin.tzinfo() if machine.clock is None else timezone(timedelta(seconds=machine.clock))
        self.start, self.first, self.last = workload.origin.unix_start_time or 0, int(workload.submit[0]), last
        low = self.first - 4 * DAY - machine.overhead.tick
        self.since, self.ahead = [-NEVER], [self._ahead(low)]
        while low < last:
            high = low + DAY
            if self._ahead(high) != self.ahead[-1]:
                until = high
                while high - low > 1:
                    middle = (low + high) // 2
                    low, high = (middle, high) if self._ahead(middle) == self.ahead[-1] else (low, middle)
                self.since.append(high)
                self.ahead.append(self._ahead(high))
                high = until if self._ahead(until) == self.ahead[-1] else high
            low = high

    def _ahead(self, moment: int) -> int:
        """Return the offset of the clock from UTC, s."""
        unix = moment + self.start
        then = datetime.fromtimestamp(unix - max(unix // CENTURIES, 0) * CENTURIES, UTC)
        return int((then.astimezone(self.zone).replace(tzinfo=UTC) - then).total_seconds())

    def hours(self, window: Window, since: int, until: int) -> tuple[Array, Array]:
        """Return the hours of a window within [since, until), clipped to this span: beginnings and ends, int64 s."""
        days = np.arange((self.start + self.first) // DAY - 4, (self.start + self.last) // DAY + 4)  # dates by the site's clock
        days = days[np.isin((days + 3) % 7, [DAYS.index(day) for day in window.days])]  # day 0 was a Thursday
        walls = days * DAY - self.start
        begin, _ = self._shows(walls + window.second)
        if window.end is None:
            begin = begin[(begin >= since) & (begin < until)]
            return begin, begin
        _, end = self._shows(walls + window.second + window.length)
        there = (begin < end) & (end > since) & (begin < until)
        return np.maximum(begin[there], since), np.minimum(end[there], until)

    def _shows(self, walls: Array) -> tuple[Array, Array]:
        """Return when the clock first and last shows these times, s after the start of the log; a skipped time becomes the next one."""
        first = np.full(len(walls), NEVER)
        stretches = list(zip(self.since, [*self.since[1:], NEVER], self.ahead, strict=True))
        for since, until, ahead in stretches[::-1]:
            reached = np.maximum(walls - ahead, since)
            first = np.where(reached < until, reached, first)
        last = first
        for since, until, ahead in stretches:
            last = np.where((since <= walls - ahead) & (walls - ahead < until), walls - ahead, last)
        return first, last


def _jobs_of(window: Window, workload: Workload, machine: Machine, partition: Array) -> Array:
    """Return a mask (bool, shape (jobs,)) of the jobs to which a window applies."""
    jobs = np.ones(len(workload), bool)
    for values, most, least in (
        (workload.requested, window.up_to, window.longer_than),
        (workload.procs, None if window.narrower_than is None else window.narrower_than - 1, window.wider_than),
    ):
        jobs &= (values <= (NEVER if most is None else most)) & (values > (-1 if least is None else least))
    names = np.array([one.name for one in machine.partitions])
    return jobs if window.partition is None else jobs & (names[partition] == window.partition)


def _held_by(windows: tuple[Window, ...], planned: int, tick: int) -> tuple[Window, ...]:
    """Return the windows that apply to a job, except windows that, alone or together, would never let it start."""
    alone = tuple(window for window in windows if planned <= _room(frozenset([window]), tick))
    hours = tuple(window for window in alone if not window.crossing)
    return next((held for held in (alone, hours) if planned <= _room(frozenset(held), tick)), ())


@cache
def _room(windows: frozenset[Window], tick: int) -> int:
    """Return the longest planned length, s, of a job that may start at some minute of a week, or within a tick after it; 0 for none."""
    shut, nexts = np.zeros(WEEK // MINUTE, bool), {False: np.full(WEEK // MINUTE, NEVER), True: np.full(WEEK // MINUTE, NEVER)}
    minutes = np.arange(WEEK // MINUTE)
    for window in windows:
        opens, length = window.second // MINUTE, window.length // MINUTE
        for day in window.days:
            since = (minutes - opens - DAYS.index(day) * (DAY // MINUTE)) % len(minutes)
            shut |= since < length
            wait = (len(minutes) - since) * MINUTE
            for kind in {False, window.crossing}:
                nexts[kind] = np.minimum(nexts[kind], wait)
    return int(nexts[True][~shut & (nexts[False] >= tick)].max(initial=0))
