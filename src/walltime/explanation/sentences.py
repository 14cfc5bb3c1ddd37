"""The explanation of a job's wait in plain sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise

import numpy as np

from walltime.explanation.records import HOW, Alternative, Cause, Change, Explanation, NumberExplanation, Overtaker
from walltime.machine import HINDSIGHT
from walltime.schedule.schedule import Schedule
from walltime.wording import human_time, lower_first

MOST_LISTED = 3
"""So many jobs, or changes of a reservation, are told one by one; all are in the explanation itself."""


WAYS = {"forward": "forward", "back": "back", "given up": "given up", "made": "made again"}
"""How a reservation changes."""


def sentences(why: NumberExplanation) -> list[str]:
    """A paragraph each on the job, its submission, its reservation, who overtook it, its start, and what would have helped."""
    told = [_job(why)]
    if why.wait == 0:
        return [*told, _started_at_once(why)]
    parts = (_submission(why), _waiting(why), _reservation(why), _overtaking(why), _start(why), sooner_sentences(why))
    return told + [" ".join(part) for part in map(list, parts) if part]


def date_of(schedule: Schedule, seconds: int) -> str:
    """The local date and time of a time of the simulation; empty where the log does not say when it begins."""
    origin = schedule.workload.origin
    if origin.unix_start_time is None:
        return ""
    try:
        return f"{datetime.fromtimestamp(origin.unix_start_time + seconds, origin.tzinfo()):%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return ""


def count(number: int, what: str) -> str:
    """So many of something.

    >>> count(1, "processor"), count(1200, "job")
    ('1 processor', '1,200 jobs')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def at(why: Explanation, seconds: int) -> str:
    """A time, with its date where the log has one."""
    date = date_of(why.schedule, seconds)
    return f"{seconds:,} s" + (f" ({date})" if date else "")


def submitted(why: Explanation) -> str:
    """When it was submitted, and if it was held, from when on it waited, and who says so."""
    w = why.schedule.workload
    job = np.flatnonzero(w.job_id == why.job)[0]
    held, told = (max(int(w.columns[name][job]), 0) if name in w.columns else 0 for name in ("held", HINDSIGHT))
    if not held:
        return f"submitted at {at(why, why.submit)}"
    source = "the log says"
    if told:
        source = "the machine's file says by hindsight" if told == held else "the log and, by hindsight, the machine's file say"
    return f"submitted at {at(why, why.submit - held)} and, as {source}, free to start from {at(why, why.submit)} on"


def _later(why: NumberExplanation, seconds: int) -> str:
    """A time, counted from the submission."""
    return "at its submission" if seconds == why.submit else f"{human_time(seconds - why.submit)} after its submission"


def _job(why: NumberExplanation) -> str:
    planned = "" if why.believed == why.requested else f" (the scheduler planned with {human_time(why.believed)})"
    machine = why.schedule.workload.machine_procs
    asked = f"Job {why.job}{owner(why)} asked for {why.procs:,} of {count(machine, 'processor')}"
    asked += f" for {human_time(why.requested)}{planned}"
    times = f"{submitted(why)}, "
    waited = f"it waited {human_time(why.wait)} and started at {at(why, why.start)}" if why.wait else "it started at once"
    return f"{asked}, and ran for {human_time(why.runtime)}. Under {lower_first(why.schedule.title)}, {times}{waited}."


def owner(why: Explanation) -> str:
    """Whose job it is, where the log has names."""
    w = why.schedule.workload
    if "user" not in w.origin.names or "user" not in w.columns:
        return ""
    number = int(w.columns["user"][np.flatnonzero(w.job_id == why.job)[0]])
    return f" of {w.origin.name_of('user', number)}" if number > 0 else ""


def _started_at_once(why: NumberExplanation) -> str:
    met = why.submission
    if why.kind != "backfilled":
        return f"When it was submitted, {_free(met.free)}, and nobody waited ahead of it."
    return f"When it was submitted, {_free(met.free)}, and it was backfilled. {_reserved_for_others(why)}".rstrip()


def _free(number: int) -> str:
    return f"{count(number, 'processor')} {'was' if number == 1 else 'were'} free"


def _reserved_for_others(why: NumberExplanation) -> str:
    """The first reservations that others had when it was submitted, in a sentence; empty if there were none."""
    met = why.submission
    each = [f"{one.procs:,} for job {one.job} in {human_time(one.start - why.submit)}" for one in met.reserved[:MOST_LISTED]]
    return f"Processors reserved for others: {', '.join(each)}{more(len(met.reserved))}." if each else ""


def _submission(why: NumberExplanation) -> Iterator[str]:
    met = why.submission
    ran = f"{count(len(met.running), 'job')} ran" if met.running else "no job ran"
    ahead = f"{count(met.ahead, 'job')} waited ahead of it" if met.ahead else "nobody waited ahead of it"
    yield f"When it was submitted, {ran}, {_free(met.free)}, and {ahead}."
    first = met.reserved[0] if met.reserved else None
    match met.held_back:
        case "too few":
            yield f"It needed {why.procs - met.free:,} more."
        case "order":
            yield "It would have fitted, but without backfilling nobody overtakes a job that waits."
        case "head" if first is not None:
            yield (
                f"It would have fitted, but {count(first.procs, 'processor')} were reserved for job {first.job}, the head of the queue, "
                f"{human_time(first.start - why.submit)} later. It was expected to run for longer than that, and on more processors "
                f"than the {max(met.extra or 0, 0):,} that job {first.job} would leave over."
            )
            return
        case "reservations":
            yield f"It would have fitted, but not for the {human_time(why.believed)} that it was planned with; others had reservations."
        case "score":
            yield "It would have fitted, but its score was too far below that of the head of the queue."
        case "policy":
            yield "It would have fitted; why the policy did not choose it cannot be told, as it is plain Python."
    if met.reserved:
        yield _reserved_for_others(why)


def _waiting(why: NumberExplanation) -> Iterator[str]:
    if why.held:
        yield (
            f"Too few processors were free for {human_time(why.too_few)} of its wait; for {human_time(why.held)} enough were free, but "
            "it could not have them."
        )
    else:
        yield "All the time that it waited, fewer processors were free than it needed."
    if why.head_since is None:
        yield "It never became first in the queue."
    elif why.head_since > why.submit:
        yield f"It became first in the queue {_later(why, why.head_since)}."
    else:
        yield "It was first in the queue from the beginning."


def _reservation(why: NumberExplanation) -> Iterator[str]:
    who = why.schedule.policy.reservations
    made = why.reservations[0] if why.reservations else None
    if made is None:
        if who.of == "unknown":
            yield "What the policy planned for it cannot be told, as it is plain Python."
        else:
            yield f"It had no reservation: {who.reason}."
        return
    yield f"Its first reservation was made {_later(why, made.time)}, for a start {_later(why, made.start)}."
    changes = list(pairwise(why.reservations))
    largest = sorted(sorted(changes, key=_size, reverse=True)[:MOST_LISTED], key=lambda pair: pair[1].time)
    if len(changes) > MOST_LISTED:
        kinds = Counter(change.what for _, change in changes)
        told = [f"{WAYS[what]} {kinds[what]:,} times" if kinds[what] > 1 else f"{WAYS[what]} once" for what in WAYS if kinds[what]]
        yield f"It changed {len(changes):,} times ({', '.join(told)}); the largest changes were these."
    for before, change in largest:
        yield _change(why, before, change)
    yield reserved_in_the_end(made.start, why)


def reserved_in_the_end(reserved: int, why: Explanation) -> str:
    """How a start compares with the first reservation."""
    gap = why.start - reserved
    when = "exactly at" if gap == 0 else f"{human_time(abs(gap))} {'after' if gap > 0 else 'before'}"
    return f"In the end it started {when} the time of its first reservation."


def _size(pair: tuple[Change, Change]) -> float:
    """How large a change of a reservation is, s; losing it or getting it again is larger than any."""
    before, change = pair
    return abs(change.start - before.start) if change.what in ("forward", "back") else math.inf


def _change(why: NumberExplanation, before: Change, change: Change) -> str:
    when = _later(why, change.time)
    if change.what == "given up":
        return f"{_upper(when)} it lost its reservation to others."
    if change.what == "made":
        return f"{_upper(when)} it got one again, for a start {_later(why, change.start)}."
    moved = f"{_upper(when)} it moved {change.what} by {human_time(abs(change.start - before.start))}"
    reasons = [_cause(cause) for cause in change.causes[:MOST_LISTED]]
    return f"{moved}, as {', '.join(reasons)}{more(len(change.causes))}." if reasons else f"{moved}."


def _cause(cause: Cause) -> str:
    match cause.what:
        case "ended early":
            return f"job {cause.job} ended {human_time(cause.seconds)} before its expected end"
        case "overdue":
            return f"job {cause.job} had not ended when it was expected to"
    return f"job {cause.job} was now expected to run for {human_time(cause.seconds)} longer"


def _overtaking(why: NumberExplanation) -> Iterator[str]:
    overtakers = why.overtaken_by
    if not overtakers:
        yield "No job that arrived later started before it."
        return
    ways = Counter(one.how for one in overtakers)
    one_by_one = f", job {overtakers[0].job}" if len(overtakers) == 1 else ""
    if len(ways) == 1:
        how = f"{one_by_one}, {HOW[overtakers[0].how]}"
    else:
        how = f": {', '.join(f'{number:,} {HOW[way]}' for way, number in ways.most_common())}"
    yield f"{count(len(overtakers), 'job')} that arrived later started before it{how}."
    delays = why.delayed_by
    if delays:
        each = [
            f"job {one.job} ({count(one.procs, 'processor')}, {human_time(one.runtime)}) by {human_time(one.delay)}"
            for one in _worst(delays)
        ]
        yield f"While it was first in the queue its start was put off by {', '.join(each)}{more(len(delays))}."
    elif why.head_since is not None:
        yield "That did not put its start off while it was first in the queue."
    others = [one for one in overtakers if one.delay > 0 and one.head != why.job]
    if others:
        heads = len({one.head for one in others})
        whom = "the job that was first in the queue then" if heads == 1 else f"{heads:,} jobs that were first in the queue then"
        total = human_time(sum(one.delay for one in others))
        yield f"{len(others):,} of them put off {whom}, by {total}{' in all' if len(others) > 1 else ''}."


def _worst(delays: Sequence[Overtaker]) -> list[Overtaker]:
    return sorted(delays, key=lambda one: -one.delay)[:MOST_LISTED]


def _start(why: NumberExplanation) -> Iterator[str]:
    if not why.let_in:
        yield "No job ended at the moment at which it started."
        return
    each = []
    for one in why.let_in[:MOST_LISTED]:
        early = one.expected_end - one.end
        by = f" {human_time(abs(early))} {'earlier' if early > 0 else 'later'} than expected" if early else ""
        each.append(f"job {one.job} ended{by} and freed {count(one.procs, 'processor')}")
    yield f"It started when {', '.join(each)}{more(len(why.let_in))}."


def sooner_sentences(why: Explanation) -> Iterator[str]:
    """What would have let it start sooner."""
    if not why.alternatives:
        return
    if not why.sooner:
        tried = "shorter requests, fewer processors, other policies"
        yield f"Of {count(len(why.alternatives), 'change')} that were tried ({tried}), none let it start sooner."
        return
    for what in ("request", "procs"):
        helps = [one for one in why.sooner if one.what == what]
        if helps:
            best = max(helps, key=lambda one: one.gain)
            told = f"With {_value(helps[0])} instead of {_asked(why, what)} it would have started {_sooner_by(why, helps[0])}"
            more = _sooner_by(why, best) != _sooner_by(why, helps[0])
            yield f"{told}, with {_value(best)} {_sooner_by(why, best)}." if more else f"{told}."
        elif what == "request" and (others := [one for one in why.alternatives if one.what == what]):
            yield f"No shorter request would have let it start sooner, of {len(others)} that were tried."
    elsewhere = [f"{_sooner_by(why, one)} in the partition {one.value}" for one in why.sooner if one.what == "partition"]
    if elsewhere:
        yield f"It would have started {', '.join(elsewhere)}."
    policies = [f"{_sooner_by(why, one)} under {one.value}" for one in why.sooner if one.what == "policy"]
    if policies:
        yield f"It would have started {', '.join(policies)}."
    fewer = any(one.what == "procs" for one in why.sooner)
    held = "; with fewer processors it is held to run for as long" if fewer else ""
    yield f"Each of these is a simulation of all jobs with this one change, which moves other jobs too{held}."


def _value(one: Alternative) -> str:
    value = int(one.value)
    return f"a request of {human_time(value)}" if one.what == "request" else count(value, "processor")


def _asked(why: Explanation, what: str) -> str:
    return human_time(why.requested) if what == "request" else f"{why.procs:,}"


def _sooner_by(why: Explanation, one: Alternative) -> str:
    return "at once" if one.start == why.submit else f"{human_time(one.gain)} sooner"


def more(number: int) -> str:
    """How many there are beside those that are told one by one."""
    return f", and {number - MOST_LISTED:,} more" if number > MOST_LISTED else ""


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]
