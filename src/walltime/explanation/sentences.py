"""Describe the wait of a job in words: a headline, and short texts with labels."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from walltime.explanation.records import (
    HELD_BACK,
    HOW,
    Alternative,
    Cause,
    Change,
    Explanation,
    SinglePoolExplanation,
    index_of,
    recorded_wait_of,
)
from walltime.machine import HINDSIGHT
from walltime.machine.tables import RESOURCES
from walltime.schedule.schedule import LongWait, Schedule
from walltime.tables import Cell, Table
from walltime.wording import UNDEFINED, counted, human_time, listed, lower_first, time_form

MOST_LISTED = 3
"""Maximum number of jobs, or changes of a reservation, in a text."""
WAYS = {"forward": "moved earlier", "back": "moved later", "given up": "lost", "made": "made again"}
"""Changes of a reservation, in words."""
Texts = Iterator[tuple[str, str]]
"""Pairs of a label and a text."""


def texts(why: SinglePoolExplanation) -> Texts:
    """Yield the headline, without a label; then, with labels, the reason, the course of the wait, overtaking jobs, and alternatives."""
    yield "", headline(why, f"{why.procs:,} of {counted(why.schedule.workload.machine_procs, 'processor')}")
    yield from recorded(why)
    if why.wait == 0:
        yield "at submission", "; ".join(filter(None, [_free(why), _reserved(why)]))
        return
    spans = "for the whole wait, too few processors were free"
    if why.held:
        few, held = human_time(why.too_few), human_time(why.held)
        others = "enough were free, but reserved for other jobs or for jobs ahead of it"
        spans = f"too few processors were free for {few}; for another {held}, {others}"
    yield "reason", f"{spans}; {ahead_of_it(why.submission.ahead)}, and {overtook_it(len(why.overtaken_by))}"
    yield from eligible(why)
    yield "at submission", _submission(why)
    yield from _course(why)
    if why.overtaken_by:
        yield "overtaken by", "; ".join(_overtaking(why))
    yield from sooner(why)


def ahead_of_it(jobs: int) -> str:
    """Describe the number of jobs ahead in the queue."""
    return f"{counted(jobs, 'job') if jobs else 'no job'} {'was' if jobs < 2 else 'were'} ahead of it in the queue"


def overtook_it(jobs: int) -> str:
    """Describe the number of jobs that arrived later and started earlier."""
    return f"{counted(jobs, 'later job') if jobs else 'no later job'} overtook it"


def headline(why: Explanation, size: str) -> str:
    """Describe the job's request, runtime and wait in one line; `size`: its processors, in words."""
    w, planned = why.schedule.workload, getattr(why, "planned", why.requested)
    plan = "" if planned == why.requested else f" ({human_time(planned)} planned)"
    job = f"Job {why.job}{owner(why)}: {size}, {human_time(why.requested)} requested{plan}, ran {human_time(why.runtime)}"
    waited = f"waited {human_time(why.wait)}" if why.wait else "started at once"
    when = w.origin.when(why.submit) + (f" to {w.origin.when(why.start)}" if why.wait else "")
    return f"{job}; {waited} under {lower_first(why.schedule.title)} ({when})"


def recorded(why: Explanation) -> Texts:
    """Yield a text on the simulated wait, which is the explained one, and the recorded wait."""
    log = why.recorded_wait
    known = "the log does not record its wait" if log is None else f"the log records {human_time(log)}"
    yield "simulated wait", f"{human_time(why.wait)}; {known}"


def eligible(why: Explanation) -> Texts:
    """Yield a text on when a held job was submitted and became eligible, and on the source of the eligible time."""
    w = why.schedule.workload
    held, noted = (max(int(w.columns[name][why.index]), 0) if name in w.columns else 0 for name in ("held", HINDSIGHT))
    if held:
        source = "the log"
        if noted:
            source = "the machine file, in hindsight" if noted == held else "the log and, in hindsight, the machine file"
        when = f"submitted at {w.origin.when(why.submit - held)}, eligible at {w.origin.when(why.submit)}"
        yield "held", f"{when} (according to {source}); its wait counts from then"


def interrupted(why: Explanation) -> Texts:
    """Yield the runs of the job that a preemption or a node failure ended."""
    lost = why.schedule.lost
    for job, start, end, requeued, _, failed in () if lost is None else zip(*lost, strict=True):
        if job == why.index:
            when, what = why.schedule.workload.origin.when(int(start)), "requeued" if requeued else "cancelled"
            yield ("failure" if failed else "preempted"), f"started at {when}, ran {human_time(int(end - start))}, and was {what}"


def _after(why: Explanation, time: int) -> str:
    return "at submission" if time == why.submit else f"after {human_time(time - why.submit)}"


def owner(why: Explanation) -> str:
    """Return " of USER" if the log names the job's user, otherwise an empty string."""
    w = why.schedule.workload
    if "user" not in w.origin.names or "user" not in w.columns:
        return ""
    number = int(w.columns["user"][why.index])
    return f" of {w.origin.name_of('user', number)}" if number > 0 else ""


def _free(why: SinglePoolExplanation) -> str:
    return f"{counted(why.submission.free, 'processor')} free, {counted(len(why.submission.running), 'job')} running"


def _reserved(why: SinglePoolExplanation) -> str:
    """Describe the first reservations of other jobs at the submission."""
    reserved = why.submission.reserved
    each = [f"{one.procs:,} for job {one.job} in {human_time(one.start - why.submit)}" for one in reserved[:MOST_LISTED]]
    return f"reserved: {', '.join(each)}{more(len(reserved))}" if each else ""


def _submission(why: SinglePoolExplanation) -> str:
    state = why.submission
    first = state.reserved[0] if state.reserved else None
    if state.held_back == "head" and first is not None:
        return (
            f"{_free(why)}: enough, but job {first.job}, the head of the queue, had {first.procs:,} reserved in "
            f"{human_time(first.start - why.submit)}; this job was expected to run longer, and needed more than the "
            f"{counted(max(state.extra or 0, 0), 'extra processor')}"
        )
    reason = HELD_BACK[state.held_back].format(missing=why.procs - state.free)
    return "; ".join(filter(None, [f"{_free(why)}: {reason}", _reserved(why)]))


def _course(why: SinglePoolExplanation) -> Texts:
    """Yield texts on when the job became first in the queue, on its reservation and the largest changes of it, and on its start."""
    made = why.reservations[0] if why.reservations else None
    events = [] if why.head_since is None else [(why.head_since, "first in the queue")]
    if made is None:
        promise = why.schedule.policy.reservations
        yield "reservation", "unknown, because the policy is plain Python" if promise.of == "unknown" else f"none: {promise.reason}"
    else:
        events.append((made.time, f"reserved for {human_time(made.start - why.submit)} after submission"))
    changes = list(pairwise(why.reservations))
    largest = sorted(changes, key=_size, reverse=True)[:MOST_LISTED]
    events += [(change.time, _change(why, before, change)) for before, change in largest]
    for time in sorted({time for time, _ in events}):
        yield _after(why, time), "; ".join(text for other, text in events if other == time)
    if len(changes) > MOST_LISTED:
        kinds = Counter(change.what for _, change in changes)
        each = [f"{WAYS[what]} {kinds[what]:,} times" if kinds[what] > 1 else f"{WAYS[what]} once" for what in WAYS if kinds[what]]
        yield "reservation", f"changed {len(changes):,} times ({', '.join(each)}); the largest changes are shown above"
    ends = [_end(one.job, one.expected_end - one.end, one.procs) for one in why.let_in[:MOST_LISTED]]
    started = "started" if made is None else f"started {from_reservation(made.start, why)}"
    yield _after(why, why.start), started + (f"{'' if made is None else ','} when {', '.join(ends)}{more(len(why.let_in))}" if ends else "")


def _end(job: int, early: int, procs: int) -> str:
    by = f" {human_time(abs(early))} {'earlier' if early > 0 else 'later'} than expected" if early else ""
    return f"job {job} ended{by} and freed {counted(procs, 'processor')}"


def from_reservation(reserved: int, why: Explanation) -> str:
    """Describe the start relative to the first reservation."""
    gap = why.start - reserved
    return (
        "at the time of its first reservation"
        if gap == 0
        else f"{human_time(abs(gap))} {'after' if gap > 0 else 'before'} its first reservation"
    )


def _size(pair: tuple[Change, Change]) -> float:
    """Return how far a reservation moved, s; infinite if it was lost or made again."""
    before, change = pair
    return abs(change.start - before.start) if change.what in ("forward", "back") else math.inf


def _change(why: SinglePoolExplanation, before: Change, change: Change) -> str:
    if change.what == "given up":
        return "reservation lost to other jobs"
    if change.what == "made":
        return f"reserved again, for {human_time(change.start - why.submit)} after submission"
    reasons = [_cause(cause) for cause in change.causes[:MOST_LISTED]]
    gap = change.start - before.start
    moved = f"reservation moved {human_time(abs(gap))} {'later' if gap > 0 else 'earlier'}"
    return f"{moved}: {', '.join(reasons)}{more(len(change.causes))}" if reasons else moved


def _cause(cause: Cause) -> str:
    match cause.what:
        case "ended early":
            return f"job {cause.job} ended {human_time(cause.seconds)} before its expected end"
        case "overdue":
            return f"job {cause.job} had not ended when expected"
    return f"job {cause.job} was now expected to run for {human_time(cause.seconds)} longer"


def _overtaking(why: SinglePoolExplanation) -> Iterator[str]:
    overtakers = why.overtaken_by
    ways = Counter(one.how for one in overtakers)
    if len(ways) == 1:
        who = f"job {overtakers[0].job}" if len(overtakers) == 1 else counted(len(overtakers), "job")
        yield f"{who} ({HOW[overtakers[0].how]})"
    else:
        yield f"{counted(len(overtakers), 'job')} ({', '.join(f'{number:,} {HOW[way]}' for way, number in ways.most_common())})"
    delays = why.delayed_by
    if delays:
        worst = sorted(delays, key=lambda one: -one.delay)[:MOST_LISTED]
        each = [f"{human_time(one.delay)} by job {one.job} ({counted(one.procs, 'processor')}, {human_time(one.runtime)})" for one in worst]
        yield f"while first in the queue, it was delayed {listed(each)}{more(len(delays))}"
    elif why.head_since is not None:
        yield (
            "none of them delayed it while it was first in the queue" if len(overtakers) > 1 else "no delay while it was first in the queue"
        )
    others = [one for one in overtakers if one.delay > 0 and one.head != why.job]
    if others:
        heads = len({one.head for one in others})
        delayed = "an earlier head of the queue" if heads == 1 else f"{heads:,} earlier heads of the queue"
        yield f"{len(others):,} of them delayed {delayed} by {human_time(sum(one.delay for one in others))}"


def sooner(why: Explanation) -> Texts:
    """Yield the changes that would have let the job start sooner."""
    if not why.alternatives:
        return
    helpful: list[Alternative] = []
    for what in ("request", "procs"):
        helps = [one for one in why.sooner if one.what == what]
        helpful += dict.fromkeys([*helps[:1], *sorted(helps, key=lambda one: -one.gain)[:1]])
    helpful += [one for what in ("partition", "policy") for one in why.sooner if one.what == what]
    each = [f"{'the policy ' if one.what == 'policy' else ''}{change_text(one)}: {sooner_by(why, one)}" for one in helpful]
    tried = f"none of the changes tried ({len(why.alternatives)}: shorter requests, fewer processors, other policies)"
    yield "sooner with", "; ".join(each) or tried


def change_text(one: Alternative) -> str:
    """Describe a change, such as a shorter request, in words."""
    match one.what:
        case "request":
            return f"a request of {human_time(int(one.value))}"
        case "procs":
            return counted(int(one.value), "processor")
    return f"the partition {one.value}" if one.what == "partition" else str(one.value)


def sooner_by(why: Explanation, one: Alternative) -> str:
    """Describe how much sooner the job starts under a change."""
    return "at once" if one.start == why.submit else f"{human_time(one.gain)} sooner"


def waits_table(schedule: Schedule, waits: Sequence[LongWait]) -> Table:
    """Return a table of these waits, with the recorded wait of each job if the log has waits."""
    placement, with_log = schedule.placement, schedule.workload.recorded_wait is not None
    resource = placement.machine.second if placement is not None and placement.second.any() else ""
    indices = [index_of(schedule, one.job) for one in waits]
    log = [recorded_wait_of(schedule, index) for index in indices] if with_log else []
    show = time_form([*(one.wait for one in waits), *(wait for wait in log if wait is not None)], short=True)
    show_request = time_form([one.requested for one in waits], short=True)
    rows: list[list[str | Cell]] = []
    for k, (one, index) in enumerate(zip(waits, indices, strict=True)):
        times = [Cell(show(one.wait), value=one.wait)]
        times += [Cell(UNDEFINED if (wait := log[k]) is None else show(wait), value=wait)] if with_log else []
        second = [f"{placement.second[index]:,}"] if placement is not None and resource else []
        amounts: list[str | Cell] = [f"{one.procs:,}", *second, Cell(show_request(one.requested), value=one.requested)]
        how = "backfill" if one.kind == "backfilled" else "in turn"
        rows.append([Cell(str(one.job), value=one.job), *times, *amounts, f"{one.ahead:,}", f"{one.overtaken_by:,}", how])
    waited = ["simulated wait", "recorded wait"] if with_log else ["wait"]
    size = ["procs", *([RESOURCES.get(resource, resource)] if resource else [])]
    columns = ["job", *waited, *size, "requested", "ahead", "overtaken by", "start"]
    return Table(columns, rows, f"Longest waits on {schedule.workload.origin.site} under {lower_first(schedule.title)}")


def more(number: int) -> str:
    """Return ", and N more" if a list has more than `MOST_LISTED` items, otherwise an empty string."""
    return f", and {number - MOST_LISTED:,} more" if number > MOST_LISTED else ""
