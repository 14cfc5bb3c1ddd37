"""Passes of the policies of the later literature in the reference engine, transcribed into plain Python.

`engine` is the `Reference` whose waiting and running jobs a pass works on.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from walltime.engine.reference.plain import BACKFILLED, Job


def relaxed(engine: Any, policy: Any) -> None:
    """Make a pass of EASY with the head's reservation delayed to the latest allowed time (Ward, Mahood and West 2002)."""
    while True:
        queue = engine._start_heads(policy)
        if not queue:
            return
        head, others = queue[0], engine._near_enough(queue[1:], queue[0], policy.order)
        shadow, _ = engine._shadow(head, literal=False)
        engine._note_head(head, shadow)
        known, earliest = engine.earliest_shadow
        engine.earliest_shadow = (head, min(earliest, shadow) if known is head else shadow)
        expected_wait = engine.expected_wait.setdefault(head.index, shadow - head.submit)
        may_wait = math.floor(policy.omega * expected_wait)
        latest = max(shadow, engine.earliest_shadow[1] + may_wait)
        ended = sum(job.procs for job in engine.running if engine._expected_end(job, engine.now) <= latest)
        extra = engine.free + ended - head.procs
        engine._kept = (head, latest, extra)
        for job in engine._in_order(others, policy.backfill_order or policy.order):
            if job.procs <= engine.free and (engine.now + job.believed <= latest or job.procs <= extra):
                engine._backfill(job, head)
                break
        else:
            return


def look_ahead(engine: Any, policy: Any) -> None:
    """Make a pass of EASY, or a hybrid without reservations, that backfills the best combination (Shmueli and Feitelson 2005)."""
    passes = policy.passes
    while True:
        queue = engine._start_heads(policy)
        if not queue:
            return
        head, shadow, extra = queue[0], math.inf, 0
        others = engine._near_enough(queue[1:], head, policy.order)
        if passes.depth != 0:
            shadow, extra = engine._shadow(head, literal=False)
            engine._note_head(head, shadow)
            engine._kept = (head, shadow, extra)
        free = engine.free

        def ends_in_time(job: Job, by: float = shadow) -> bool:
            return engine.now + job.believed <= by

        able = [job for job in others if job.procs <= free and (ends_in_time(job) or job.procs <= extra)]
        able = engine._in_order(able, policy.backfill_order or policy.order)[: passes.ahead]
        if not able:
            return
        value = functools.partial(_value, now=engine.now, objective=passes.objective)
        for job in _best_combination(able, free, extra, ends_in_time, value):
            if passes.depth == 0:
                engine._start(job, BACKFILLED)  # without a reservation there is no head whose shadow time could move
            else:
                engine._backfill(job, head)


def _value(job: Job, now: int, objective: str) -> tuple[int, int]:
    """Return the value of a job in a combination."""
    match objective:
        case "procs":
            return job.procs, 0
        case "seconds":
            return job.believed, 0
        case "procseconds":
            return job.procs * job.believed, 0
    slowdown = 1000 * (now - job.submit + job.believed) // job.believed
    return job.procs, min(slowdown, 2**34)


def _best_combination(
    jobs: Sequence[Job], free: int, extra: int, ends_in_time: Callable[[Job], bool], value: Callable[[Job], tuple[int, int]]
) -> list[Job]:
    """Return the jobs with the highest total value; of equal combinations the one with the job closest to the head, and so on."""

    @functools.cache
    def worth(first: int, free: int, extra: int) -> tuple[int, int]:
        """Return the value of the best combination of the jobs from this one on."""
        if first == len(jobs):
            return 0, 0
        return max(worth(first + 1, free, extra), taking(first, free, extra))

    def taking(first: int, free: int, extra: int) -> tuple[int, int]:
        """The same, if this one is in it; -1 if it cannot be."""
        job = jobs[first]
        if job.procs > free:
            return -1, -1
        if not ends_in_time(job):
            if job.procs > extra:
                return -1, -1
            extra -= job.procs
        rest, own = worth(first + 1, free - job.procs, extra), value(job)
        return rest[0] + own[0], rest[1] + own[1]

    chosen = []
    for k, job in enumerate(jobs):
        if taking(k, free, extra) == worth(k, free, extra):
            chosen.append(job)
            free -= job.procs
            extra -= 0 if ends_in_time(job) else job.procs
    return chosen


def selective(engine: Any, policy: Any) -> None:
    """Make a pass with reservations for the jobs whose expansion factor exceeds the threshold (Srinivasan et al. 2002)."""
    threshold = engine.mean_slowdown() if policy.threshold == "adaptive" else policy.threshold
    queue = engine._in_order(engine.waiting, policy.order)
    chosen = [job for job in queue if (engine.now - job.submit + job.believed) / job.believed > threshold]
    profile = engine._profile_of_running()
    for job in chosen:
        _reserve(engine, job, profile, queue)
    _start_beside(engine, [job for job in queue if job not in chosen], profile, queue, policy)


def multiple_queues(engine: Any, policy: Any) -> None:
    """Make a pass with reservations for the first job of each queue, and for the one behind it if it starts (Lawson and Smirni 2002)."""
    profile = engine._profile_of_running()
    line = engine._in_order(engine.waiting, policy.order)
    queues: list[list[Job]] = [[] for _ in range(len(policy.bounds) + 1)]
    for job in line:
        queues[policy.queue_of(job.believed)].append(job)
    open_queues = list(queues)
    while any(open_queues):
        first = min((queue[0] for queue in open_queues if queue), key=line.index)
        own = next(queue for queue in open_queues if queue and queue[0] is first)
        if _reserve(engine, first, profile, line):
            own.remove(first)
        else:
            open_queues.remove(own)
    others = [job for queue in queues for job in queue[1:]]
    _start_beside(engine, others, profile, line, policy)


def within_slack(engine: Any, policy: Any) -> None:
    """Make a pass that inserts newcomers as early as the slacks of the others allow (the idea of Talby and Feitelson 1999)."""
    engine.line = [job for job in engine.line if job.start < 0]
    for job, begin in _planned(engine, engine.line):
        job.reservation = begin
    for job in [job for job in engine.waiting if job not in engine.line]:
        for place in range(len(engine.line) + 1):
            plan = _planned(engine, [*engine.line[:place], job, *engine.line[place:]])
            if all(begin <= max(engine.latest[other.index], other.reservation) for other, begin in plan[place + 1 :]):
                break
        for other, begin in plan:
            other.reservation = begin
        engine.line.insert(place, job)
        job.reserved_start = job.reservation
        started = sorted((other for other in engine.jobs if other.start >= 0), key=lambda other: other.ticket)[-policy.recent :]
        mean_wait = sum(other.start - other.submit for other in started) / len(started) if started else 0
        engine.latest[job.index] = job.reservation + math.floor(policy.factor * max(mean_wait, 1))
    for job in engine.line:
        if job.reservation == engine.now:
            engine._start(job, engine._kind_behind(job, engine._ahead(job)))


def _planned(engine: Any, line: Sequence[Job]) -> list[tuple[Job, int]]:
    """Return the jobs in line and where they are planned one after the other."""
    profile = engine._profile_of_running()
    return [(job, profile.reserve(job)) for job in line]


def _reserve(engine: Any, job: Job, profile: Any, line: Sequence[Job]) -> bool:
    """Give a job a reservation; return whether it starts at once."""
    anchor = profile.reserve(job)
    if job.reserved_start < 0:
        job.reserved_start = anchor
    if anchor == engine.now:
        engine._start(job, engine._kind_behind(job, line[: line.index(job)]))
    return bool(anchor == engine.now)


def _start_beside(engine: Any, others: Sequence[Job], profile: Any, line: Sequence[Job], policy: Any) -> None:
    """Start the jobs that delay no reservation, in the backfill order."""
    for job in engine._in_order(others, policy.backfill_order or policy.order):
        if profile.anchor(job) == engine.now:
            profile.reserve(job)
            engine._start(job, engine._kind_behind(job, line[: line.index(job)]))


PASS_OF_KIND: dict[str, Callable[[Any, Any], None]] = {
    "relaxed": relaxed,
    "lookahead": look_ahead,
    "selective": selective,
    "multiqueue": multiple_queues,
    "slack": within_slack,
}
"""By the kinds of `walltime.policy.PassSpec`."""
