"""Convert a site's windows to the times of a log at which jobs of a kind do not start, or into which they are not planned to run."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from walltime.errors import WorkloadError
from walltime.machine.machine import Machine
from walltime.machine.tables import DAY, DAYS, Window, next_tick
from walltime.ragged import Ragged
from walltime.workload import Array, Workload

NEVER = int(np.iinfo(np.int64).max)
WEEK = 7 * DAY
CYCLE = 146_097
"""The days in 400 years, after which the calendar repeats, including weekdays and the rules of all time zones."""
EPOCH = date(1970, 1, 1)
ROOM = 60 * DAY
"""Shut hours are computed for at least this many seconds at a time."""


class SiteClock(NamedTuple):
    """A site's time zone, the Unix time at which the log starts (s), and the first submission (s from the start of the log)."""

    zone: tzinfo
    start: int
    first: int


class Hours(NamedTuple):
    """Periods in which no job starts, in order: the arrays `begin` and `end`, int64, s from the start of the log.

    If `crossing`, no job is planned to run across a `begin` either.
    """

    begin: Array
    end: Array
    crossing: bool

    def shut(self, moments: Array, length: int) -> Array:
        """Return, for each of these times (int64 s), whether a job that requests `length` s is forbidden to start; bool."""
        following = np.searchsorted(self.begin, moments, side="right")
        inside = (following > 0) & (moments < np.append(self.end, 0)[following - 1])
        if self.crossing and len(self.begin):
            ahead = np.append(self.begin, NEVER)[following]
            inside |= ahead - moments < length
        return inside


class ShutHours:
    """The shut hours of a window, from the first submission on and without an upper bound: they are computed as far as needed.

    * `span`: the validity of the window, from and until, s from the start of the log
    * `tick`: the scheduler's cycle, s; the hours start and end on ticks
    * `settled`: the time, s, after which all weeks are alike, or the window is no longer valid
    """

    def __init__(self, window: Window, site: SiteClock, span: tuple[int, int], tick: int = 1):
        self.window, self.site, self.span, self.tick = window, site, span, tick
        self.crossing = window.crossing
        self.settled = max(site.first, *(bound if abs(bound) < NEVER else site.first for bound in span))
        self._found = Hours(np.zeros(0, np.int64), np.zeros(0, np.int64), self.crossing), -NEVER  # replaced as a whole, as threads share it

    def __deepcopy__(self, _memo: Any) -> ShutHours:
        """Return itself: all copies of a simulation share the hours."""
        return self

    def until(self, moment: int) -> Hours:
        """Return all periods that start at or before a time, s, and the next one, if any; later periods may be included."""
        found, known = self._found
        if moment > known:
            known, more = max(moment, max(known, self.site.first) + ROOM), []
            for period in _joined(_periods(self, int(found.end[-1]) if len(found.end) else self.site.first - 1)):
                more.append(period)
                if period[0] > known:
                    break
            begin, end = np.array(more, np.int64).reshape(-1, 2).T
            found = Hours(np.append(found.begin, begin), np.append(found.end, end), self.crossing)
            self._found = found, known
        return found

    def on_ticks(self, tick: int) -> ShutHours:
        """Return the hours for a scheduler with a cycle of `tick` s."""
        return ShutHours(self.window, self.site, self.span, tick)


def hours_of(workload: Workload, machine: Machine, partition: Array, planned: Array) -> tuple[list[ShutHours], Ragged, int]:
    """Return a machine's windows during a log, the windows of each job, and the number of jobs for which some windows are ignored.

    `partition`: the number of each job's partition; `planned`: the planned occupation of each job's processors, int64 s. Windows without
    jobs are left out. Raises WorkloadError for a log without a start time.

    Each span between two changes of the windows is treated separately. In a span of a week or more, a window is ignored for jobs that it
    alone would keep from starting in any ordinary week. If the other windows together would never let a job start, the windows that the job
    may not run into are ignored, too; if that does not suffice, all windows are.
    """
    if not machine.windows:
        return [], Ragged.empty(len(workload)), 0
    start = workload.origin.unix_start_time
    if start is None:
        raise WorkloadError(
            "the machine has windows by the clock, but the log has no start time; give it a UnixStartTime, or leave the windows out",
            "unknown_start_time",
        )
    zone: tzinfo = workload.origin.tzinfo() if machine.clock is None else timezone(timedelta(seconds=machine.clock))
    spans = [span_of(workload, window) for window in machine.windows]
    kinds = [_kind(workload, machine, window, partition) for window in machine.windows]
    bounds = sorted({-NEVER, NEVER, *(bound for span in spans for bound in span)})
    outside = np.zeros(len(workload), bool)
    held: list[list[tuple[int, int, Array]]] = [[] for _ in machine.windows]
    for since, until in pairwise(bounds):
        there = [k for k, span in enumerate(spans) if span[0] <= since and until <= span[1]]
        holds = np.array([kinds[k] for k in there], bool).reshape(len(there), len(workload))
        if there and until - since >= WEEK:
            kept = _possible([machine.windows[k] for k in there], holds, planned, machine.overhead.tick)
            outside |= (kept != holds).any(axis=0) & (workload.submit < until)
            holds = kept
        for k, chosen in zip(there, holds, strict=True):
            same = held[k] and held[k][-1][1] == since and (held[k][-1][2] == chosen).all()
            held[k].append((held[k].pop()[0] if same else since, until, chosen))
    pieces = [(k, piece) for k, own in enumerate(held) for piece in own if piece[2].any()]
    site = SiteClock(zone, start, int(workload.submit[0]))
    windows = [ShutHours(machine.windows[k], site, (since, until)) for k, (since, until, _) in pieces]
    number, job = np.nonzero(np.array([chosen for _, (_, _, chosen) in pieces], bool).reshape(len(pieces), len(workload)))
    return windows, Ragged.of_pairs(len(workload), job, number), int(outside.sum())


def span_of(workload: Workload, window: Window) -> tuple[int, int]:
    """Return the validity of a window, from and until, s; raises WorkloadError for a date if the log has no start time."""
    since = -NEVER if window.since is None else seconds_of(workload, window.since, "a window")
    return since, NEVER if window.until is None else max(since, seconds_of(workload, window.until, "a window"))


def longest_between(windows: Sequence[Window], tick: int = 1) -> int:
    """Return the longest time, s, for which a job that starts on a tick may be planned under these windows in an ordinary week.

    Return 0 if no job can start, and NEVER if jobs of any length can.

    >>> longest_between([Window("17:00", days=("fri",)), Window("08:00", days=("mon",))]) // 3600
    105
    """
    hours = [(one.second + DAY * DAYS.index(day), one.length, one.crossing) for one in windows for day in one.days]
    if not hours:
        return NEVER
    longest = 0
    for opens in {(begin + length) % WEEK for begin, length, _ in hours}:
        if any((opens - begin) % WEEK < length for begin, length, _ in hours):
            continue
        ahead = [((begin - opens) % WEEK or WEEK, crossing) for begin, _, crossing in hours]
        if min(wait for wait, _ in ahead) >= tick:
            longest = max(longest, min((wait for wait, crossing in ahead if crossing), default=NEVER))
    return longest


def _possible(windows: Sequence[Window], holds: Array, planned: Array, tick: int) -> Array:
    """Return the jobs to which each window (row) applies, so that every job can start (see `hours_of`); bool, shaped like `holds`.

    `holds`: the jobs of each window's kind; bool, shape (windows, jobs). `planned`: the planned occupation of each job's processors, s.
    """
    doubt = np.flatnonzero(planned > longest_between(windows, tick))  # without these windows, at least as many times are left
    kept, planned = holds[:, doubt], planned[doubt]
    if not len(doubt):
        return holds
    for k, window in enumerate(windows):
        kept[k] &= planned <= longest_between([window], tick)
    crossing = np.array([window.crossing for window in windows], bool)
    for gives_way in (crossing, ~crossing):
        kinds, kind_of = np.unique(kept, axis=1, return_inverse=True)
        for number in range(kinds.shape[1]):
            together = [window for window, held in zip(windows, kinds[:, number], strict=True) if held]
            kept[np.ix_(gives_way, (kind_of.ravel() == number) & (planned > longest_between(together, tick)))] = False
    holds = holds.copy()
    holds[:, doubt] = kept
    return holds


def _kind(workload: Workload, machine: Machine, window: Window, partition: Array) -> Array:
    """Return a mask (bool, shape (jobs,)) of the jobs of the window's kind."""
    chosen = np.ones(len(workload), bool)
    if window.partition is not None:
        chosen &= partition == [one.name for one in machine.partitions].index(window.partition)
    for values, compare, bound in (
        (workload.requested, np.greater, window.longer_than),
        (workload.requested, np.less_equal, window.up_to),
        (workload.procs, np.greater, window.wider_than),
        (workload.procs, np.less, window.narrower_than),
    ):
        if bound is not None:
            chosen &= compare(values, bound)
    return chosen


def _periods(hours: ShutHours, after: int) -> Iterator[tuple[int, int]]:
    """Yield the periods of a window that end after a time, one per day, s; periods of neighbouring days may touch.

    When the clock goes back, a time of day occurs twice: a period then starts at the first and ends at the last. When the clock goes
    forward, it skips times of day: such a period starts or ends at the change.
    """
    window, (zone, start, _), (since, until), tick = hours.window, hours.site, hours.span, hours.tick
    wanted = {DAYS.index(name) for name in window.days}
    day = (max(since, after) + start) // DAY - tick // DAY - 3  # the hours of a day may last two days longer, and move to later ticks
    begin = -NEVER
    while wanted and begin < until:
        if (day + 3) % 7 in wanted:  # the first of January 1970 was a Thursday
            begin = end = _instant(zone, day, window.second, False) - start
            if window.length:
                end = _instant(zone, day, window.second + window.length, True) - start
            inside = since < end and begin < end if window.length else since <= begin  # the clock may skip the hours of a day
            if inside and begin < until and (on_tick := next_tick(min(end, until), tick)) > after:
                yield next_tick(max(begin, since), tick), on_tick
        day += 1


def _instant(zone: tzinfo, day: int, second: int, late: bool) -> int:
    """Return the Unix time at which the clock first (`late`: last) shows a time of day; `day`: since 1970, `second`: after midnight."""
    day += second // DAY
    turns = max(day // CYCLE, 0)
    wall = datetime.combine(EPOCH + timedelta(days=day - turns * CYCLE), time(), zone) + timedelta(seconds=second % DAY)
    moment, repeated = int(wall.timestamp()), int(wall.replace(fold=1).timestamp())
    if repeated < moment:  # the clock never shows it, because it goes forward past it
        offset = wall.replace(fold=1).utcoffset()
        between = range(repeated, moment)
        moment = repeated + bisect_left(between, True, key=lambda at: datetime.fromtimestamp(at, zone).utcoffset() == offset)
    elif late:
        moment = repeated
    return moment + turns * CYCLE * DAY


def _joined(periods: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the periods, with adjoining periods joined into one."""
    last: tuple[int, int] | None = None
    for begin, end in periods:
        if last is not None and begin <= last[1] and end > begin:
            last = (last[0], max(last[1], end))
            continue
        if last is not None:
            yield last
        last = (begin, end)
    if last is not None:
        yield last


def seconds_of(workload: Workload, time: int | datetime, what: str) -> int:
    """Return a time as s from the start of the log; raises WorkloadError for a date if the log has no start time."""
    if not isinstance(time, datetime):
        return int(time)
    start = workload.origin.unix_start_time
    if start is None:
        raise WorkloadError(f"{what} has a date, but the log has no start time; give seconds from the start of the log")
    local = time if time.tzinfo is not None else time.replace(tzinfo=workload.origin.tzinfo())
    return int(local.timestamp()) - start
