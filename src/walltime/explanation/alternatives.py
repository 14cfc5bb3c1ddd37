"""What would have let a job start sooner: one thing is changed, and the whole workload simulated with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from walltime.explanation.records import Alternative
from walltime.policy import parse_policy
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import run_of
from walltime.simulation.specification import Scheduler
from walltime.workload import Workload

MINUTE, HOUR, DAY = 60, 3600, 86_400
ROUND = (
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 4, 6, 8, 12, 18)),
    *(n * DAY for n in (1, 2, 3, 4, 7)),
)
"""Lengths that people ask for, s."""
PIECE = 1_000_000
"""Steps of a simulation after which it is looked whether the job has started: a few ms."""
POLICIES = ("fcfs", "easy", "easy:backfill-order=sjf", "conservative")


def alternatives(schedule: Schedule, job: int, progress: Callable[[int], None] | None = None) -> Iterator[Alternative]:
    """Shorter requests, fewer processors, and other policies, each with the start (s) of the job (an index) that it gives.

    A request is one of `ROUND`, or as long as the job ran; none is so short that the job would be killed. Where the scheduler plans with
    something else than the request, it plans with that or the new request, whichever is shorter. With fewer processors the job is held to
    run for as long as before. `progress` is called now and then with the number of those that are done.
    """
    was = int(schedule.start[job])
    scheduler = Scheduler.of_schedule(schedule)
    for done, (what, value, workload, other) in enumerate(_changes(schedule, job, scheduler)):
        alive = partial(progress, done) if progress is not None else _nobody_asks
        start = _start(schedule, workload, other, job, alive)
        yield Alternative(what, value, start, was - start)


def with_request(workload: Workload, job: int, seconds: int) -> Workload:
    """The workload in which this job (an index) requests so many seconds."""
    requested, believed = workload.requested.copy(), workload.believed.copy()
    requested[job], believed[job] = seconds, min(seconds, int(believed[job]))
    return replace(workload, requested=requested, believed=believed)


def with_procs(workload: Workload, job: int, procs: int) -> Workload:
    """The workload in which this job (an index) uses so many processors, for as long as before."""
    changed = workload.procs.copy()
    changed[job] = procs
    return replace(workload, procs=changed)


def requests(requested: int, runtime: int) -> list[int]:
    """Requests below this one that do not end the job early, the longest first, s."""
    shortest = max(runtime, 1)
    return sorted({seconds for seconds in (shortest, *ROUND) if shortest <= seconds < requested}, reverse=True)


def sizes(procs: int) -> list[int]:
    """Powers of two, and halves of this number, halves of these, ..., below it; the largest first."""
    halves = {procs >> k for k in range(1, procs.bit_length())}
    powers = {1 << k for k in range(procs.bit_length()) if 1 << k < procs}
    return sorted(halves | powers, reverse=True)


def smaller_jobs(schedule: Schedule, job: int) -> Iterator[tuple[str, int, Workload]]:
    """Let a job (an index) request less time, or fewer processors: what is changed, to which value, and the workload with it."""
    w = schedule.workload
    for seconds in requests(int(w.requested[job]), int(schedule.runtime[job])):
        yield "request", seconds, with_request(w, job, seconds)
    for procs in sizes(int(w.procs[job])):
        yield "procs", procs, with_procs(w, job, procs)


def _changes(schedule: Schedule, job: int, scheduler: Scheduler) -> Iterator[tuple[str, int | str, Workload, Scheduler]]:
    """What is changed, to which value, and the workload and the scheduler with it."""
    w = schedule.workload
    for what, value, workload in smaller_jobs(schedule, job):
        yield what, value, workload, scheduler
    for text in POLICIES:
        policy = parse_policy(text)
        if policy != scheduler.policy:
            yield "policy", text, w, Scheduler(policy, scheduler.prediction)


def _nobody_asks() -> None:
    """Nobody wants to know how far it is."""


def _start(schedule: Schedule, workload: Workload, scheduler: Scheduler, job: int, alive: Callable[[], None]) -> int:
    """When the job starts in this workload, s; `alive` is called now and then."""
    engine = run_of(workload, scheduler, dialect=schedule.dialect, overrun=schedule.overrun).engine()
    while engine.start_of(job) < 0:
        alive()
        engine.advance(PIECE)
    return engine.start_of(job)
