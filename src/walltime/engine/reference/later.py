"""Passes of the policies of later papers in the reference engine, transcribed into plain Python.

`engine` is the `Reference` on whose waiting and running jobs a pass works.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from walltime.engine.reference.plain import Job


def relaxed(engine: Any) -> None:
    """Make a pass of EASY with the head's reservation postponed to its latest allowed start (Ward, Mahood and West 2002)."""
    engine._easy(functools.partial(_relaxed_reservation, engine))


def _relaxed_reservation(engine: Any, head: Job) -> tuple[int, int]:
    """Return the latest allowed start of the head, and the extra processors then."""
    shadow, _ = engine._shadow(head, literal=False)
    engine._note_head(head, shadow)
    known, earliest = engine.earliest_shadow
    engine.earliest_shadow = (head, min(earliest, shadow) if known is head else shadow)
    expected_wait = engine.expected_wait.setdefault(head.index, shadow - head.submit)
    latest = max(shadow, engine.earliest_shadow[1] + math.floor(engine.passes.omega * expected_wait))
    ended = sum(job.procs for job in engine.running if engine._expected_end(job, engine.now) <= latest)
    extra = engine.free + ended - head.procs
    engine._kept = (head, latest, extra)
    return latest, extra


def look_ahead(engine: Any) -> None:
    """Make a pass of EASY, or of a hybrid without reservations, that backfills the best combination (Shmueli and Feitelson 2005)."""
    passes = engine.passes
    while True:
        queue = engine._start_heads()
        if not queue:
            return
        head, shadow, extra = queue[0], math.inf, 0
        others = engine._near_enough(queue[1:], head)
        if passes.depth != 0:
            shadow, extra = engine._shadow(head, literal=False)
            engine._note_head(head, shadow)
            engine._kept = (head, shadow, extra)
        free = engine.free

        def ends_in_time(job: Job, by: float = shadow) -> bool:
            return engine.now + job.planned <= by

        able = [job for job in others if job.procs <= free and (ends_in_time(job) or job.procs <= extra)]
        able = engine._in_order(able, engine._backfill_order())[: passes.ahead]
        if not able:
            return
        value = functools.partial(_value, now=engine.now, objective=passes.objective)
        for job in _best_combination(able, free, extra, ends_in_time, value):
            if passes.depth == 0:
                engine._start(job, [head])  # without a reservation there is no head whose shadow time could move
            else:
                engine._backfill(job, head)


def _value(job: Job, now: int, objective: str) -> tuple[int, int]:
    if objective == "slowdown":
        slowdown = 1000 * (now - job.submit + job.planned) // job.planned
        return job.procs, min(slowdown, 2**34)
    return {"procs": job.procs, "seconds": job.planned, "procseconds": job.procs * job.planned}[objective], 0


def _best_combination(
    jobs: Sequence[Job], free: int, extra: int, ends_in_time: Callable[[Job], bool], value: Callable[[Job], tuple[int, int]]
) -> list[Job]:
    """Return the jobs with the highest total value; among equal combinations, the one with the job closest to the head, and so on."""

    @functools.cache
    def worth(first: int, free: int, extra: int) -> tuple[int, int]:
        """Return the value of the best combination of the jobs from this one on."""
        if first == len(jobs):
            return 0, 0
        return max(worth(first + 1, free, extra), taking(first, free, extra))

    def taking(first: int, free: int, extra: int) -> tuple[int, int]:
        """Return the value of the best combination of these jobs that contains the first; -1 if there is none."""
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


def selective(engine: Any) -> None:
    """Make a pass with reservations for the jobs whose expansion factor exceeds the threshold (Srinivasan et al. 2002)."""
    threshold = engine.mean_slowdown() if engine.passes.adapts else engine.passes.factor
    profile, line = engine._profile_of_running(), engine._in_order(engine.waiting, engine.policy.order)
    chosen = [job for job in line if (engine.now - job.submit + job.planned) / job.planned > threshold]
    for job in chosen:
        engine._reserve(job, profile, line)
    engine._start_around(profile, [job for job in line if job not in chosen], line)


def multiple_queues(engine: Any) -> None:
    """Make a pass with reservations for the first job of each queue, and for the next one if it starts (Lawson and Smirni 2002)."""
    profile, line = engine._profile_of_running(), engine._in_order(engine.waiting, engine.policy.order)
    closed, others = set(), []
    for job in line:
        if engine._class_of(job) in closed:
            others.append(job)
        elif not engine._reserve(job, profile, line):
            closed.add(engine._class_of(job))
    engine._start_around(profile, others, line)


def within_slack(engine: Any) -> None:
    """Make a pass that inserts newcomers as early as the slacks of other jobs allow (the idea of Talby and Feitelson 1999)."""
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
        started = sorted((other for other in engine.jobs if other.start >= 0), key=lambda other: other.ticket)[-engine.passes.recent :]
        mean_wait = sum(other.start - other.submit for other in started) / len(started) if started else 0
        engine.latest[job.index] = job.reservation + math.floor(engine.passes.factor * max(mean_wait, 1))
    for job in engine.line:
        if job.reservation == engine.now:
            engine._start(job, engine._ahead(job))


def _planned(engine: Any, line: Sequence[Job]) -> list[tuple[Job, int]]:
    """Return the jobs in line with their starts, s, if each is planned after the one before."""
    profile = engine._profile_of_running()
    return [(job, profile.reserve(job)) for job in line]


def annealed(engine: Any) -> None:
    """Make a pass according to the best plan that simulated annealing finds (Kopanski and Rzadca 2021)."""
    passes, line = engine.passes, engine.waiting[: engine.passes.ahead]

    def uniform() -> float:
        engine.random = engine.random * 48271 % (2**31 - 1)
        return float(engine.random / (2**31 - 1))

    def cost(order: Sequence[Job]) -> float:
        return sum((float(begin - job.submit) ** passes.power for job, begin in _planned(engine, order)), 0.0)

    keys: list[Callable[[Job], int]] = [lambda job: job.procs, lambda job: -job.procs, lambda job: job.planned, lambda job: -job.planned]
    orders = [list(line), *(sorted(line, key=key) for key in keys)]
    costs = [cost(order) for order in orders]
    least = before = min(costs)
    best = orders[costs.index(least)]
    order, temperature = list(best), max(costs) - least or 0.1 * least
    for swap in range(passes.iterations if temperature else 0):
        one, other = (math.floor(uniform() * len(order)) for _ in range(2))
        changed = list(order)
        changed[one], changed[other] = order[other], order[one]
        after = cost(changed)
        if after < before or uniform() < math.exp((before - after) / temperature):
            order, before = changed, after
        if before < least:
            best, least = order, before
        temperature *= 0.9 if swap % 6 == 5 else 1
    plan = _planned(engine, [*best, *engine.waiting[passes.ahead :]])
    for job, begin in sorted(plan, key=lambda one: one[0].arrival):
        job.note_reservation(begin)
        if begin == engine.now:
            engine._start(job, engine._ahead(job))


def on_particular_processors(engine: Any) -> None:
    """Make a pass of Batsim's batsched, in which jobs and reservations have particular processors (its easy_bf and conservative_bf).

    `engine.processors`: the processors that each job has, had or reserves, by index.
    """
    now, sets, only_head = engine.now, engine.processors, engine.passes.depth == 1
    line = engine._in_order(engine.waiting, engine.policy.order)
    new = [job for job in engine.waiting if job.index not in engine.seen]
    engine.seen.update(job.index for job in new)
    running = {job.index for job in engine.running}
    ended, engine.on_machine = bool(engine.on_machine - running), running

    def place(job: Job) -> None:
        """Find the earliest time at which the job fits, and the first processors that are free then; start the job if that is now."""
        job.reservation = -1
        taken = [(other.start, engine._expected_end(other, now + 1), sets[other.index]) for other in engine.running]
        taken += [(one.reservation, one.reservation + one.planned, sets[one.index]) for one in engine.waiting if one.reservation >= 0]
        for begin in sorted({now, *(end for _, end, _ in taken if end > now)}):
            free = set(range(engine.machine_procs))
            for first, end, processors in taken:
                if first < begin + job.planned and begin < end:
                    free -= processors
            if len(free) >= job.procs:
                break
        sets[job.index] = set(sorted(free)[: job.procs])
        if begin == now:
            engine._start(job, line[: line.index(job)])
            engine.on_machine.add(job.index)
        job.reservation = -1 if begin == now else begin
        if not only_head or job.reservation >= 0:
            job.note_reservation(begin)

    overdue = any(job.expected_end <= now for job in engine.running) or any(0 <= job.reservation < now for job in line)
    if ended and (engine.passes.compression == "scratch" or overdue):
        for job in line:
            job.reservation = -1
    if only_head:
        for job in line[1:]:
            job.reservation = -1
        for job in line:
            if job.reservation < 0:
                place(job)
            if job.reservation >= 0:
                break
    for job in line if ended else new:
        if job.start >= 0 or (only_head and job.reservation >= 0):
            continue
        noted = job.reserved_start
        place(job)
        if only_head and job.start < 0:
            job.reservation, job.reserved_start = -1, noted


PASS_OF_KIND: dict[str, Callable[[Any], None]] = {
    "relaxed": relaxed,
    "lookahead": look_ahead,
    "selective": selective,
    "multiqueue": multiple_queues,
    "slack": within_slack,
    "plan": annealed,
    "particular": on_particular_processors,
}
"""Passes by the kinds of `walltime.policy.PassSpec`."""
