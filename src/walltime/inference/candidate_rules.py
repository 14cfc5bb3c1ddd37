"""Find candidates for a site's rules from counts in its log.

Candidates are instants that no job is planned across, hours in which some classes of jobs do not start, parts of the machine for small,
short jobs, limits on running jobs, and outages. One-step agreement decides whether a candidate explains the record (rule_search.py).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from walltime.machine.tables import DAY, DAYS, Window
from walltime.metrics import busy_processors
from walltime.workload import Array, Workload

SLOT = 1800
"""Windows begin and end at half hours, s."""
SLOTS = DAY // SLOT
NEARLY_NONE = 0.1
"""A window shorter than two hours is a candidate only if it has fewer starts than this share of its submissions."""
EXCEPTIONS = 0.01
"""Largest share of starts that may exceed a limit."""
MOST_AT_ONCE = 20
"""Largest limit on running jobs that is tried."""
NOT_OF_LIMITS = {"up_to", "narrower_than"}
"""Conditions on jobs that the limits of a machine file do not support."""
LOW = 0.7
"""An instant is a candidate if its count is below this share of the neighbouring counts."""
HELD = 0.5
"""Hours are candidates if a class of jobs has fewer starts in them than this share of its submissions."""
FEWEST = 20
"""Smallest number of jobs behind a count."""
FEW_STARTS = 80
"""Classes with fewer jobs are not counted by half hour."""
GROUPS: tuple[tuple[str, ...], ...] = (DAYS[:5], DAYS, DAYS[5:], *((day,) for day in DAYS))
STEPS = (-4, -2, -1, 1, 2, 4)
"""Shifts of the start or end of a window, in half hours."""
LONG = 4
"""Shortest window, in half hours, in which starts are fewer than usual but not almost absent."""
SPLITS = 8
"""Number of thresholds for requests and for sizes that are tried."""


class RecordedLog(NamedTuple):
    """A workload with its recorded starts and ends, int64 s, -1 if unknown, and a mask of the jobs with known starts."""

    workload: Workload
    start: Array
    end: Array
    known: Array

    @classmethod
    def of(cls, workload: Workload, start: Array) -> Self:
        """Return the record with the ends that follow from the starts."""
        return cls(workload, start, np.where(start >= 0, start + workload.runtime, -1), start >= 0)


def candidate_windows(log: RecordedLog, clock: int) -> list[Window]:
    """Return candidate windows from counts by half hour, over the whole log and each half; `clock`: the site's clock minus log time, s.

    An instant is a candidate if fewer jobs are planned across it than across the neighbouring half hours. Hours are candidates if jobs, or
    jobs with long, short, wide or narrow requests, start less often than they are submitted. They are tried with and without draining.
    """
    return list(dict.fromkeys(window for known in _halves(log) for window in _windows_of(log, known, clock)))


def _halves(log: RecordedLog) -> tuple[Array, Array, Array]:
    """Return masks of the jobs with known starts: all, in the first half of the log, and in the second half."""
    early = log.start < np.median(log.start[log.known])
    return log.known, log.known & early, log.known & ~early


def _windows_of(log: RecordedLog, known: Array, clock: int) -> list[Window]:
    """Return candidate windows from the counts of these jobs (bool)."""
    begin, request = log.start[known] + clock, log.workload.requested[known]
    windows: list[Window] = []
    short = request <= DAY  # longer ones cross every instant of the day
    crossed = _spread(begin[short] // SLOT + 1, -(-(begin + request)[short] // SLOT))  # the half hours strictly between
    for days in GROUPS:
        rows = [DAYS.index(day) for day in days]
        counts = crossed[rows].sum(axis=0)
        beside = (np.roll(counts, 1) + np.roll(counts, -1)) / 2
        low = (counts < LOW * beside) & (beside >= FEWEST)
        windows += [Window(_time(slot), days=days) for slot in np.flatnonzero(low).tolist()]
    return windows + _windows_of_kinds(log._replace(known=known), clock, log.start, _low_stretches)


def windows_of_few(log: RecordedLog, clock: int, held_since: Array) -> list[Window]:
    """Return candidate windows for classes with few jobs: hours in which these jobs wait although a policy would start them.

    `held_since`: the time, s, at which a policy without these windows would have started each job; by default, its recorded start.
    """
    return list(dict.fromkeys(_windows_of_kinds(log, clock, held_since, _held_stretches)))


def _windows_of_kinds(
    log: RecordedLog, clock: int, held_since: Array, stretches: Callable[[Array, Array, Array], Iterator[tuple[int, int]]]
) -> list[Window]:
    """Return windows for classes of jobs, with and without draining; `stretches` finds their hours in the counts by half hour."""
    w, known = log.workload, log.known
    begin, since, submitted = (times[known] + clock for times in (log.start, held_since, w.submit))
    request, procs = w.requested[known], w.procs[known]
    windows: list[Window] = []
    for kind in _kinds(request, procs):
        of = _of_kind(kind, request, procs)
        counts = _by_slot(begin[of]), _by_slot(submitted[of]), _spread(since[of] // SLOT, begin[of] // SLOT + 1)
        for days in GROUPS[:3]:
            rows = [DAYS.index(day) for day in days]
            for first, last in stretches(*(count[rows].sum(axis=0) for count in counts)):
                hours = Window(_time(first), _time((last + 1) % SLOTS), days=days, **kind)
                windows += [hours, replace(hours, drain=True)]
    return windows


def _held_stretches(starts: Array, comes: Array, there: Array) -> Iterator[tuple[int, int]]:
    """Yield stretches of at least four half hours in which waiting jobs start far less often than usual; they may span midnight."""
    if comes.sum() >= FEW_STARTS:
        return
    low = starts < HELD * there * (starts.sum() / max(there.sum(), 1))
    for first, last in _stretches(low | (there == 0)):
        inside = np.arange(first, last + 1 + SLOTS * (last < first)) % SLOTS
        own = np.flatnonzero(low[inside])  # a stretch does not begin or end with a half hour without jobs
        if len(own) and own[-1] - own[0] >= 3 and there[inside].sum() >= FEWEST:
            yield int(inside[own[0]]), int(inside[own[-1]])


def windows_near(window: Window) -> list[Window]:
    """Return variants of a window with other days, or with its start or end moved by up to two hours."""
    moved = [replace(window, begin=_moved(window.begin, by)) for by in STEPS]
    moved += [] if window.end is None else [replace(window, end=_moved(window.end, by)) for by in STEPS]
    moved += [replace(window, days=days) for days in GROUPS[:3]]
    return [one for one in moved if one != window and one.begin != one.end]


def _moved(time: str, by: int) -> str:
    return _time((int(time[:2]) * 2 + int(time[3:]) // 30 + by) % SLOTS)


def _time(slot: int) -> str:
    """Return the time of day, such as 08:30, at which a half hour of the day begins; `slot`: its number from midnight."""
    return f"{slot // 2:02d}:{slot % 2 * 30:02d}"


def _by_slot(time: Array) -> Array:
    """Count times (s since 1970 by the site's clock) by half hour of the week from Monday, shape (days, half hours)."""
    weekday = (time // DAY + 3) % 7  # 1 January 1970 was a Thursday
    return np.bincount(weekday * SLOTS + (time % DAY) // SLOT, minlength=7 * SLOTS).reshape(7, SLOTS)


def _spread(first: Array, last: Array) -> Array:
    """Count, for each half hour of the week, the intervals [first, last) that contain it, shape (days, half hours)."""
    counts = np.zeros(7 * SLOTS + 1, np.int64)
    length = np.minimum(last - first, 7 * SLOTS)
    place = (first + 3 * SLOTS) % (7 * SLOTS)
    some = length > 0
    place, length = place[some], length[some]
    np.add.at(counts, place, 1)
    over = place + length
    np.add.at(counts, np.minimum(over, 7 * SLOTS), -1)
    wrapped = over > 7 * SLOTS
    counts[0] += int(wrapped.sum())
    np.add.at(counts, (over - 7 * SLOTS)[wrapped], -1)
    return np.cumsum(counts[:-1]).reshape(7, SLOTS)


def _kinds(request: Array, procs: Array) -> Iterator[dict[str, Any]]:
    """Yield classes of jobs as conditions: none, then thresholds at frequent requests and sizes, and at fractions of the largest size."""
    yield {}
    for above, upto, values, others in (("longer_than", "up_to", request, ()), ("wider_than", "narrower_than", procs, (2, 4))):
        asked, counts = np.unique(values, return_counts=True)
        most = int(asked[-1])
        for value in sorted({*asked[np.argsort(-counts)[:SPLITS]].tolist(), *(most // part for part in others)}):
            if value < most:
                yield {above: int(value)}
                yield {upto: int(value) if upto == "up_to" else int(asked[np.searchsorted(asked, value, side="right")])}


def _of_kind(kind: dict[str, Any], request: Array, procs: Array) -> Array:
    """Return a mask (bool) of the jobs that belong to a class; `request`: requested time of each job, s."""
    most = np.iinfo(np.int64).max
    chosen = (request > kind.get("longer_than", -1)) & (request <= kind.get("up_to", most))
    of_kind: Array = chosen & (procs > kind.get("wider_than", -1)) & (procs < kind.get("narrower_than", most))
    return of_kind


def _low_stretches(starts: Array, comes: Array, _there: Array) -> Iterator[tuple[int, int]]:
    """Yield stretches of half hours with far fewer starts than submissions; stretches under two hours must have hardly any starts."""
    if comes.sum() >= FEW_STARTS:
        yield from _stretches(starts < HELD * comes)
        for first, last in _stretches(starts < NEARLY_NONE * comes, 1):
            inside = np.arange(first, last + 1 + SLOTS * (last < first)) % SLOTS
            if len(inside) < LONG and comes[inside].sum() >= FEWEST:
                yield first, last


def _stretches(chosen: Array, least: int = LONG) -> Iterator[tuple[int, int]]:
    """Yield the first and last half hour of each stretch of at least `least` chosen half hours of a day; it may span midnight."""
    if chosen.all() or not chosen.any():
        return
    turn = int(np.flatnonzero(~chosen)[0])
    turned = np.roll(chosen, -turn)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], turned.astype(np.int8), [0]])))
    for first, after in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if after - first >= least:
            yield (first + turn) % SLOTS, (after - 1 + turn) % SLOTS


@dataclass(frozen=True)
class InferredPool:
    """A part of the machine with `procs` processors, for jobs of up to `widest` processors and `longest` s.

    `since`, `until`: only jobs submitted between these log times, s, use this part; None for no bound.
    """

    widest: int
    longest: int
    procs: int
    since: int | None = None
    until: int | None = None

    def takes(self, workload: Workload) -> Array:
        """Return a mask (bool, shape (jobs,)) of the jobs that run on this part."""
        return (workload.procs <= self.widest) & (workload.requested <= self.longest) & submitted_in(workload, self.since, self.until)


def submitted_in(workload: Workload, since: int | None, until: int | None) -> Array:
    """Return a mask (bool, shape (jobs,)) of the jobs submitted between two log times, s; None for no bound."""
    chosen = np.ones(len(workload), bool)
    chosen &= True if since is None else workload.submit >= since
    chosen &= True if until is None else workload.submit < until
    return chosen


def candidate_parts(log: RecordedLog, machine_procs: int) -> list[InferredPool]:
    """Return candidate parts: small, short jobs wait, but together never use more than a small part of the machine.

    The whole log and each half are searched, because a part may be added or removed.
    """
    return list(dict.fromkeys(part for known in _halves(log) for part in _parts_of(log._replace(known=known), machine_procs)))


def _parts_of(log: RecordedLog, machine_procs: int) -> list[InferredPool]:
    w, parts = log.workload, []
    wait = np.where(log.known, log.start - w.submit, 0)
    for widest in _popular(w.procs):
        for longest in _popular(w.requested):
            part = InferredPool(widest, longest, 0)
            chosen = part.takes(w) & log.known
            if not FEWEST <= chosen.sum() <= 0.95 * log.known.sum():
                continue
            most = int(busy_processors(log.start[chosen], log.end[chosen], w.procs[chosen])[1].max(initial=0))
            if widest <= most <= machine_procs // 4 and (wait[chosen] > 600).sum() >= FEWEST:
                parts.append(InferredPool(widest, longest, most))
    return parts


def running_at_start(log: RecordedLog, group: Array) -> Array:
    """Return, for each job, the number of other jobs of its group that run when it starts; -1 if its start is unknown."""
    running = np.full(len(group), -1)
    order = np.lexsort((log.start, group))
    order = order[log.known[order]]
    for mine in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        running[mine] = np.arange(len(mine)) - np.searchsorted(np.sort(log.end[mine]), log.start[mine], side="right")
    return running


class EachLimit(NamedTuple):
    """A limit on running jobs for each value of a column, `user` or `group`, or for all jobs together if `by` is empty.

    With `wider_than` or `longer_than`, only jobs with more processors or longer requests (s) count.
    """

    by: str
    jobs: int
    wider_than: int | None = None
    longer_than: int | None = None

    def groups(self, workload: Workload) -> Array:
        """Return the group number of each job; -1 for jobs to which the limit does not apply."""
        values = workload.columns[self.by] if self.by else np.zeros(len(workload), np.int64)
        kind = {name: value for name, value in self._asdict().items() if name.endswith("_than") and value is not None}
        counted = _of_kind(kind, workload.requested, workload.procs) & (values >= 0)
        return np.where(counted, np.unique(np.where(counted, values, -1), return_inverse=True)[1] - int(not counted.all()), -1)


def candidate_limits(log: RecordedLog) -> list[EachLimit]:
    """Return limits that the record respects and often reaches: for each user, each group or all jobs, possibly of one class."""
    w, limits = log.workload, []
    for by in ("user", "group", ""):
        if by and len(np.unique(w.columns.get(by, ()))) < 2:
            continue
        for kind in _kinds(w.requested[log.known], w.procs[log.known]):
            if set(kind) & NOT_OF_LIMITS or not (by or kind):
                continue
            group = EachLimit(by, 0, **kind).groups(w)
            chosen = log.known & (group >= 0)
            if chosen.sum() < FEW_STARTS:
                continue
            running = running_at_start(log._replace(known=chosen), group)[chosen]
            most = int(np.quantile(running, 1 - EXCEPTIONS, method="inverted_cdf")) + 1
            if most <= MOST_AT_ONCE and (running == most - 1).sum() >= FEWEST:
                limits.append(EachLimit(by, most, **kind))
    return list(dict.fromkeys(limits))


def _popular(values: Array) -> list[int]:
    asked, counts = np.unique(values, return_counts=True)
    return sorted(asked[np.argsort(-counts)[:SPLITS]].tolist())


def not_eligible_before(log: RecordedLog, soon: int = 120) -> Array:
    """Return the time (int64 s) at which each job seems to have become eligible, inferred from recorded starts; else its submission.

    If a later job of the same user, at least as wide and as long, starts first, the earlier job was held or waited for a dependency. A job
    that starts within `soon` s after the end of its user's previous job may have depended on that job.
    """
    w = log.workload
    users = w.columns.get("user")
    eligible = w.submit.copy()
    if users is None:
        return eligible
    for user in np.unique(users[log.known & (users >= 0)]).tolist():
        mine = np.flatnonzero(log.known & (users == user))
        starts, ends = log.start[mine], np.sort(log.end[mine])
        for k, job in enumerate(mine.tolist()):
            later = mine[k + 1 :]
            over = later[(w.procs[later] >= w.procs[job]) & (w.requested[later] >= w.requested[job]) & (log.start[later] < log.start[job])]
            if len(over):
                eligible[job] = max(eligible[job], int(log.start[over].max()))
            place = np.searchsorted(ends, starts[k], side="right") - 1
            if place >= 0 and starts[k] - ends[place] <= soon and ends[place] > w.submit[job]:
                eligible[job] = max(eligible[job], int(ends[place]))
    return eligible


def stopped_stretches(log: RecordedLog, least: int = 3600) -> list[tuple[int, int]]:
    """Return intervals (begin, end) of at least `least` s in which nothing runs although jobs wait: outages of the whole machine."""
    known = log.start >= 0
    order = np.argsort(log.start[known], kind="stable")
    start, end, submit = log.start[known][order], log.end[known][order], log.workload.submit[known][order]
    busy = np.maximum.accumulate(end)
    gaps = np.flatnonzero(start[1:] - busy[:-1] >= least)
    waits = [bool((submit[k + 1 :][:200] < busy[k] + least // 2).any()) for k in gaps.tolist()]
    planned = np.maximum.accumulate(start + log.workload.requested[known][order])  # a scheduler starts jobs that end before a known outage
    begins = np.where(planned[gaps] < start[gaps + 1], np.maximum(busy[gaps], planned[gaps]), busy[gaps])
    return [(int(begin), int(start[k + 1])) for begin, k, some in zip(begins.tolist(), gaps.tolist(), waits, strict=True) if some]


def periods(stretches: Sequence[tuple[int, int]]) -> str:
    """Return the period of recurring outages, in words; empty if they do not recur."""
    if len(stretches) < 3:
        return ""
    days = np.diff([begin for begin, _ in stretches]) / DAY
    for every in (28, 14, 7):
        if np.mean(np.abs(days / every - np.round(days / every)) * every < 1) > 0.7 and np.round(days / every).min() >= 1:
            return f"every {every} days"
    return ""
