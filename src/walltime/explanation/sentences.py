"""The explanation of a job's wait in plain sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise

import numpy as np

from walltime.explanation.records import HOW, Alternative, Cause, Change, Explanation, SinglePoolExplanation
from walltime.machine import HINDSIGHT
from walltime.wording import human_time, lower_first

MOST_LISTED = 3
"""Maximum number of jobs, or changes of a reservation, in a sentence; the explanation itself has all."""
WAYS = {"forward": "forward", "back": "back", "given up": "given up", "made": "made again"}
"""How a reservation changes."""


def sentences(why: SinglePoolExplanation) -> list[str]:
    """Return a paragraph each on the job, its submission, wait, reservation, overtaking jobs, start, and alternatives."""
    if why.wait == 0:
        return [_job(why), _started_at_once(why)]
    parts = (_submission(why), _waiting(why), _reservation(why), _overtaking(why), _start(why), sooner_sentences(why))
    return [_job(why), *(" ".join(part) for part in map(list, parts) if part)]


def count(number: int, what: str) -> str:
    """Return a number with its noun.

    >>> count(1, "processor"), count(1200, "job")
    ('1 processor', '1,200 jobs')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def at(why: Explanation, seconds: int) -> str:
    """Return a time of the simulation, with its local date and time if the log records its start."""
    origin = why.schedule.workload.origin
    try:
        date = datetime.fromtimestamp(origin.unix_start_time + seconds, origin.tzinfo()) if origin.unix_start_time is not None else None
    except (OverflowError, ValueError, OSError):
        date = None
    return f"{seconds:,} s" + (f" ({date:%Y-%m-%d %H:%M})" if date else "")


def submitted(why: Explanation) -> str:
    """Describe when the job was submitted and, if it was held, when it became eligible, with the source."""
    w = why.schedule.workload
    job = np.flatnonzero(w.job_id == why.job)[0]
    held, noted = (max(int(w.columns[name][job]), 0) if name in w.columns else 0 for name in ("held", HINDSIGHT))
    if not held:
        return f"submitted at {at(why, why.submit)}"
    source = "the log"
    if noted:
        source = "the machine file, in hindsight" if noted == held else "the log and, in hindsight, the machine file"
    return f"submitted at {at(why, why.submit - held)} and eligible from {at(why, why.submit)} on (according to {source})"


def _later(why: SinglePoolExplanation, seconds: int) -> str:
    """Describe a time relative to the submission."""
    return "at its submission" if seconds == why.submit else f"{human_time(seconds - why.submit)} after its submission"


def _job(why: SinglePoolExplanation) -> str:
    planned = "" if why.believed == why.requested else f" (the scheduler planned with {human_time(why.believed)})"
    machine = count(why.schedule.workload.machine_procs, "processor")
    requested = f"Job {why.job}{owner(why)} requested {why.procs:,} of {machine} for {human_time(why.requested)}{planned}"
    waited = f"it waited {human_time(why.wait)} and started at {at(why, why.start)}" if why.wait else "it started at once"
    return f"{requested}, and ran for {human_time(why.runtime)}. Under {lower_first(why.schedule.title)}, {submitted(why)}, {waited}."


def owner(why: Explanation) -> str:
    """Return " of USER" if the log names the job's user."""
    w = why.schedule.workload
    if "user" not in w.origin.names or "user" not in w.columns:
        return ""
    number = int(w.columns["user"][np.flatnonzero(w.job_id == why.job)[0]])
    return f" of {w.origin.name_of('user', number)}" if number > 0 else ""


def _started_at_once(why: SinglePoolExplanation) -> str:
    free = f"When it was submitted, {_free(why.submission.free)}"
    if why.kind != "backfilled":
        return f"{free}, and no job waited ahead of it."
    return f"{free}, and it was backfilled. {_reserved_for_others(why)}".rstrip()


def _free(number: int) -> str:
    return f"{count(number, 'processor')} {'was' if number == 1 else 'were'} free"


def _reserved_for_others(why: SinglePoolExplanation) -> str:
    """Describe the first reservations of other jobs at the submission; empty without any."""
    reserved = why.submission.reserved
    each = [f"{one.procs:,} for job {one.job} in {human_time(one.start - why.submit)}" for one in reserved[:MOST_LISTED]]
    return f"Processors reserved for other jobs: {', '.join(each)}{more(len(reserved))}." if each else ""


def _submission(why: SinglePoolExplanation) -> Iterator[str]:
    state = why.submission
    ran, ahead = (count(number, "job") if number else "no job" for number in (len(state.running), state.ahead))
    yield f"When it was submitted, {ran} ran, {_free(state.free)}, and {ahead} waited ahead of it."
    first = state.reserved[0] if state.reserved else None
    match state.held_back:
        case "too few":
            yield f"It needed {why.procs - state.free:,} more."
        case "order":
            yield "It would have fitted, but without backfilling no job overtakes a waiting one."
        case "head" if first is not None:
            yield (
                f"It would have fitted, but {count(first.procs, 'processor')} were reserved for job {first.job}, the head of the queue, "
                f"{human_time(first.start - why.submit)} later. It was expected to run for longer than that, and needed more than the "
                f"{max(state.extra or 0, 0):,} extra processors of job {first.job}."
            )
            return
        case "reservations":
            yield f"It would have fitted, but not for its planned {human_time(why.believed)}, because of other jobs' reservations."
        case "score":
            yield "It would have fitted, but its score was too far below the score of the head of the queue."
        case "policy":
            yield "It would have fitted; why the policy, which is plain Python, did not choose it is not known."
    if state.reserved:
        yield _reserved_for_others(why)


def _waiting(why: SinglePoolExplanation) -> Iterator[str]:
    if why.held:
        yield (
            f"Too few processors were free for {human_time(why.too_few)} of its wait; for {human_time(why.held)} enough were free, but "
            "it could not have them."
        )
    else:
        yield "For its whole wait, fewer processors were free than it needed."
    if why.head_since is None:
        yield "It never became first in the queue."
    elif why.head_since > why.submit:
        yield f"It became first in the queue {_later(why, why.head_since)}."
    else:
        yield "It was first in the queue from the beginning."


def _reservation(why: SinglePoolExplanation) -> Iterator[str]:
    made = why.reservations[0] if why.reservations else None
    if made is None:
        promise = why.schedule.policy.reservations
        planned = f"It had no reservation: {promise.reason}."
        yield "Its planned start is unknown, because the policy is plain Python." if promise.of == "unknown" else planned
        return
    yield f"Its first reservation was made {_later(why, made.time)}, for a start {_later(why, made.start)}."
    changes = list(pairwise(why.reservations))
    largest = sorted(sorted(changes, key=_size, reverse=True)[:MOST_LISTED], key=lambda pair: pair[1].time)
    if len(changes) > MOST_LISTED:
        kinds = Counter(change.what for _, change in changes)
        each = [f"{WAYS[what]} {kinds[what]:,} times" if kinds[what] > 1 else f"{WAYS[what]} once" for what in WAYS if kinds[what]]
        yield f"It changed {len(changes):,} times ({', '.join(each)}); the largest changes were these."
    for before, change in largest:
        yield _change(why, before, change)
    yield final_reservation(made.start, why)


def final_reservation(reserved: int, why: Explanation) -> str:
    """Compare the start with the first reservation."""
    gap = why.start - reserved
    when = "exactly at" if gap == 0 else f"{human_time(abs(gap))} {'after' if gap > 0 else 'before'}"
    return f"In the end it started {when} the time of its first reservation."


def _size(pair: tuple[Change, Change]) -> float:
    """Return the size of a change of a reservation, s; infinite if it is lost or made again."""
    before, change = pair
    return abs(change.start - before.start) if change.what in ("forward", "back") else math.inf


def _change(why: SinglePoolExplanation, before: Change, change: Change) -> str:
    when = _later(why, change.time)
    if change.what == "given up":
        return f"{_upper(when)} it lost its reservation to other jobs."
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
            return f"job {cause.job} had not ended when expected"
    return f"job {cause.job} was now expected to run for {human_time(cause.seconds)} longer"


def _overtaking(why: SinglePoolExplanation) -> Iterator[str]:
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
        worst = sorted(delays, key=lambda one: -one.delay)[:MOST_LISTED]
        each = [f"job {one.job} ({count(one.procs, 'processor')}, {human_time(one.runtime)}) by {human_time(one.delay)}" for one in worst]
        yield f"While it was first in the queue its start was delayed by {', '.join(each)}{more(len(delays))}."
    elif why.head_since is not None:
        yield "That did not delay its start while it was first in the queue."
    others = [one for one in overtakers if one.delay > 0 and one.head != why.job]
    if others:
        heads = len({one.head for one in others})
        delayed = "the job that was first in the queue then" if heads == 1 else f"{heads:,} jobs that were first in the queue then"
        total = human_time(sum(one.delay for one in others))
        yield f"{len(others):,} of them delayed {delayed}, by {total}{' in all' if len(others) > 1 else ''}."


def _start(why: SinglePoolExplanation) -> Iterator[str]:
    if not why.let_in:
        yield "No job ended at the time of its start."
        return
    each = []
    for one in why.let_in[:MOST_LISTED]:
        early = one.expected_end - one.end
        by = f" {human_time(abs(early))} {'earlier' if early > 0 else 'later'} than expected" if early else ""
        each.append(f"job {one.job} ended{by} and freed {count(one.procs, 'processor')}")
    yield f"It started when {', '.join(each)}{more(len(why.let_in))}."


def sooner_sentences(why: Explanation) -> Iterator[str]:
    """Yield the changes with which the job would have started sooner."""
    if not why.alternatives:
        return
    if not why.sooner:
        tried = "shorter requests, fewer processors, other policies"
        yield f"It would not have started sooner with any of {count(len(why.alternatives), 'change')} that were tried ({tried})."
        return
    for what in ("request", "procs"):
        helps = [one for one in why.sooner if one.what == what]
        if helps:
            best, own = max(helps, key=lambda one: one.gain), human_time(why.requested) if what == "request" else f"{why.procs:,}"
            least, most = _sooner_by(why, helps[0]), _sooner_by(why, best)
            rest = f", with {_value(best)} {most}" if most != least else ""
            yield f"With {_value(helps[0])} instead of {own} it would have started {least}{rest}."
        elif what == "request" and (others := [one for one in why.alternatives if one.what == what]):
            yield f"It would not have started sooner with a shorter request ({len(others)} were tried)."
    for what, where in (("partition", "in the partition"), ("policy", "under")):
        each = [f"{_sooner_by(why, one)} {where} {one.value}" for one in why.sooner if one.what == what]
        if each:
            yield f"It would have started {', '.join(each)}."
    kept = "; with fewer processors its runtime stays the same" if any(one.what == "procs" for one in why.sooner) else ""
    yield f"Each of these is a simulation of all jobs with this one change, which moves other jobs too{kept}."


def _value(one: Alternative) -> str:
    value = int(one.value)
    return f"a request of {human_time(value)}" if one.what == "request" else count(value, "processor")


def _sooner_by(why: Explanation, one: Alternative) -> str:
    return "at once" if one.start == why.submit else f"{human_time(one.gain)} sooner"


def more(number: int) -> str:
    """Return how many more there are than listed."""
    return f", and {number - MOST_LISTED:,} more" if number > MOST_LISTED else ""


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]
