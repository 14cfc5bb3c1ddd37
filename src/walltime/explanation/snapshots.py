"""A simulation run again up to the start of one job, and looked at after each of its events.

The engine that made the schedule runs once more and is stopped after every event from the job's submission on. So what is seen is what the
scheduler had before it, under every policy, order of the queue, predictor and rule, and not something worked out afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from walltime.auditor.scores import known_to
from walltime.engine.reference.number import Reference
from walltime.errors import EngineError
from walltime.policy import FCFS, Policy
from walltime.schedule.schedule import Schedule
from walltime.simulation.engines import lowered_prediction, needs_reference, new_kernel, new_reference
from walltime.simulation.specification import Scheduler

Array = np.ndarray


@dataclass
class Snapshot:
    """The machine and the queue after an event and the scheduling pass that follows it; jobs are indices, times s.

    `waiting`: in order of arrival. `running`: the expected end of each running job. `lengths`: how long each of the jobs that started
    now was expected to run while it waited, in the order in which they started. `head`: who comes first of those that wait, -1 for
    nobody. `extra`: under EASY, the processors that the head will not need when it starts. `reserved`: the reservations that are known.
    """

    now: int
    free: int
    waiting: list[int]
    running: dict[int, int]
    lengths: dict[int, int]
    head: int = -1
    extra: int | None = None
    reserved: dict[int, int] = field(default_factory=dict)
    length: int = 0
    """What is planned with for the job itself."""
    ahead: int | None = None
    """Jobs that come before it in the queue; None once it has started."""


def watch(schedule: Schedule, job: int) -> Iterator[Snapshot]:
    """What there was after each event from the submission of the job (an index) until its start, the last.

    Raises EngineError if it starts at another time than in the schedule, which then is not the one that this scheduler makes.
    """
    scheduler = Scheduler.of_schedule(schedule)
    reference = needs_reference(scheduler.policy, schedule.dialect, scheduler.prediction)
    for seen in (_watch_reference if reference else _watch_kernel)(schedule, scheduler, job):
        started = job in seen.lengths
        if started and seen.now != schedule.start[job]:
            break
        yield seen
        if started:
            return
    number = schedule.workload.job_id[job]
    raise EngineError(
        f"simulated again, job {number} does not start at {schedule.start[job]} s as in the schedule; simulate the whole anew"
    )


# ------------------------------------------------------------------ the compiled engine


def _watch_kernel(schedule: Schedule, scheduler: Scheduler, job: int) -> Iterator[Snapshot]:
    lowered = lowered_prediction(schedule.workload, scheduler, schedule.overrun)
    simulation = new_kernel(schedule.workload, scheduler, schedule.dialect, schedule.overrun, lowered, log=True)
    memory = simulation.memory
    state, jobs, queue, notes = memory.state, memory.jobs, memory.queue, memory.machine.notes
    rank = _Rank(schedule, scheduler, jobs.order_length)
    submit = int(schedule.submit[job])
    instants = np.unique(np.concatenate([schedule.submit, schedule.start, schedule.end]))
    instants = instants[instants < submit]
    done = False
    while not done and (ahead := len(instants) - int(np.searchsorted(instants, state.now, side="right"))) > 1:
        done = simulation.advance(ahead)  # an event takes one step at least, and each of these instants has one, so this stops before
    while not done:
        started = int(state.started)
        if memory.reservations.fresh is not None or memory.reservations.selected is not None:
            jobs.reserved_start[queue.job[int(state.queue_first) : int(state.queue_last)]] = -1  # each pass notes those that it makes
        done = simulation.advance(1)
        entries = queue[int(state.queue_first) : int(state.queue_last)]
        waiting = entries.job[jobs.start[entries.job] < 0].astype(np.int64)
        begun = notes.job[started : int(state.started)].tolist()
        if jobs.start[job] < 0 and job not in waiting:
            continue
        runs = memory.machine.running[: int(state.running)]
        waiting = waiting[np.argsort(jobs.arrival[waiting])]
        seen = Snapshot(
            now=int(state.now),
            free=int(state.free),
            waiting=waiting.tolist(),
            running=dict(zip(runs.job.tolist(), runs.expected.tolist(), strict=True)),
            lengths=dict(zip(begun, jobs.own_length[begun].tolist(), strict=True)) if begun else {},
            length=int(jobs.own_length[job]),
        )
        _note_reservations(seen, scheduler.policy, memory, entries)
        _note_order(seen, rank, job)
        yield seen


def _note_reservations(seen: Snapshot, policy: Policy, memory: Any, entries: Any) -> None:
    """Whoever has a reservation after this pass."""
    head, _, _, slack, kept = memory.reservations
    if kept is not None:
        plan = kept.plan.waiting[int(memory.state.queue_first) : int(memory.state.queue_last)]
        seen.reserved = dict(zip(entries.job.tolist(), plan.start.tolist(), strict=True))
    elif slack is not None:
        seen.reserved = {job: int(slack.reserved[job]) for job in seen.waiting}
    elif head is None:
        found = memory.jobs.reserved_start[seen.waiting].tolist()
        seen.reserved = {job: start for job, start in zip(seen.waiting, found, strict=True) if start >= 0}
    elif policy.reservations.of == "head" and memory.state.blocked >= 0:
        seen.reserved = {int(memory.state.blocked): int(memory.state.shadow)}
        seen.extra = int(memory.state.extra)


class _Rank:
    """What sorts waiting jobs as the queue does."""

    def __init__(self, schedule: Schedule, scheduler: Scheduler, length: Array):
        self._order, self._length = scheduler.policy.order, length
        self._submit, self._procs = schedule.submit, schedule.workload.procs
        self._first = int(schedule.workload.submit[0]) if len(schedule.workload) else 0
        self._known = known_to(scheduler.policy, schedule.workload, schedule.workload.requested)

    @property
    def by_arrival(self) -> bool:
        """Whether the queue is in order of arrival."""
        return self._order == FCFS

    def __call__(self, job: int, now: int) -> float:
        others = {name: int(values[job]) for name, values in self._known.columns.items()}
        if self._order.reads_calendar and self._known.calendar is not None:
            local = self._known.calendar.local(now)
            others |= {"hour": local.hour, "weekday": local.weekday()}
        others["elapsed"] = int(self._submit[job]) - self._first
        wait = now - int(self._submit[job])
        value = self._order.score(wait, int(self._length[job]), int(self._procs[job]), int(self._submit[job]), **others)
        return -self._order.standing(value, wait)


def _note_order(seen: Snapshot, rank: _Rank, job: int) -> None:
    """Who comes first of those that wait, and how many come before the job."""
    in_order = seen.waiting if rank.by_arrival else sorted(seen.waiting, key=lambda other: rank(other, seen.now))  # ties: by arrival
    seen.head = in_order[0] if in_order else -1
    seen.ahead = in_order.index(job) if job in in_order else None


# ----------------------------------------------------------------- the reference engine


class _Started(Exception):  # noqa: N818 (it is no error)
    """The job that is watched has started."""


class _Watched(Reference):
    """The reference engine, looked at after each of its passes."""

    watched = -1
    seen: list[Snapshot]

    def _pass(self) -> None:
        job, started = self.jobs[self.watched], self._started
        before = list(self.waiting)
        for one in before:
            one.reserved_start = -1  # each pass notes those that it makes
        super()._pass()
        noted = {one.index: one.reserved_start for one in before if one.start < 0}
        if job.arrival < 0:
            return
        begun = [one for one in self.running if one.ticket >= started]
        seen = Snapshot(
            now=self.now,
            free=self.free,
            waiting=[one.index for one in self.waiting],
            running={one.index: one.expected_end for one in self.running},
            lengths={one.index: one.believed for one in begun},
            length=job.believed,
        )
        in_order = [one.index for one in self._in_order(self.waiting, self.policy.order)]
        seen.head = in_order[0] if in_order else -1
        seen.ahead = in_order.index(job.index) if job.start < 0 else None
        head, shadow, extra = self._kept
        if self.policy.reservations.kept:
            seen.reserved = {one.index: one.reservation for one in self.waiting}
        elif self.policy.reservations.of == "head" and head is not None and head.start < 0 and head.index == seen.head:
            seen.reserved, seen.extra = {head.index: shadow}, extra
        else:
            seen.reserved = {index: start for index, start in noted.items() if start >= 0}
        self.seen.append(seen)
        if job.start >= 0:
            raise _Started


def _watch_reference(schedule: Schedule, scheduler: Scheduler, job: int) -> Iterator[Snapshot]:
    engine = new_reference(_Watched, schedule.workload, scheduler, schedule.dialect, schedule.overrun)
    engine.watched, engine.seen = job, []
    with suppress(_Started):
        engine.run()
    return iter(engine.seen)
