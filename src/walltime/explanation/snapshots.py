"""A simulation run again up to the start of one job, and observed after each of its events.

The engine that made the schedule runs once more and is stopped after every event from the job's submission on. So it shows what the
scheduler had before it, under every policy, order of the queue, predictor and rule, and not something worked out afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime.auditor.scores import LongestWait, Standing
from walltime.engine.interface.choice import choose
from walltime.engine.problem import Problem
from walltime.engine.reference.number import Reference
from walltime.errors import EngineError
from walltime.estimates import effective_times
from walltime.explanation.past import Past
from walltime.policy import FCFS
from walltime.policy.log_view import LogView
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import run_of
from walltime.simulation.specification import Scheduler

if TYPE_CHECKING:
    from walltime.engine.interface.number import NumberEngine

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


def snapshots(schedule: Schedule, job: int) -> Iterator[Snapshot]:
    """What there was after each event from the submission of the job (an index) until its start, the last.

    Raises EngineError if it starts at another time than in the schedule, which then is not the one that this scheduler makes.
    """
    for snapshot in snapshots_by("auto", schedule, job):
        started = job in snapshot.lengths
        if started and snapshot.now != schedule.start[job]:
            break
        yield snapshot
        if started:
            return
    number = schedule.workload.job_id[job]
    raise EngineError(
        f"simulated again, job {number} does not start at {schedule.start[job]} s as in the schedule; simulate the whole anew",
        "other_schedule",
    )


def snapshots_by(wanted: str, schedule: Schedule, job: int) -> Iterator[Snapshot]:
    """The same by the engine that is wanted, and without a look at when the job starts in the schedule."""
    scheduler = Scheduler.of_schedule(schedule)
    problem = replace(run_of(schedule.workload, scheduler, dialect=schedule.dialect, overrun=schedule.overrun).problem, logged=True)
    if choose(problem, wanted)[0] == "reference":
        observer = Observer(problem)
        observer.job = job
        with suppress(_JobStarted):
            observer.run()
        return iter(observer.snapshots)
    from walltime.engine.interface.number import NumberEngine

    return _observed(NumberEngine(problem), schedule, scheduler, job)


def _observed(engine: NumberEngine, schedule: Schedule, scheduler: Scheduler, job: int) -> Iterator[Snapshot]:
    """What the compiled engine shows."""
    rank = _Rank(schedule, scheduler, engine.order_length)
    engine.run_until(int(schedule.submit[job]) - 1)
    while (seen := engine.observe()) is not None:
        waiting = seen.state.queue.tolist()
        if job not in waiting and job not in seen.started:
            continue
        in_order = waiting if rank.by_arrival else sorted(waiting, key=lambda other: rank(other, seen.state.now))  # ties: by arrival
        yield Snapshot(
            now=seen.state.now,
            free=seen.state.free,
            waiting=waiting,
            running=dict(zip(seen.state.running.tolist(), seen.state.expected_end.tolist(), strict=True)),
            lengths=seen.started,
            head=in_order[0] if in_order else -1,
            extra=seen.extra,
            reserved=seen.reserved,
            length=seen.started[job] if job in seen.started else int(seen.state.planned[waiting.index(job)]),
            ahead=in_order.index(job) if job in in_order else None,
        )


class _Rank:
    """What sorts waiting jobs as the queue does."""

    def __init__(self, schedule: Schedule, scheduler: Scheduler, length: Array):
        self._order, self._length = scheduler.policy.order, length
        self._submit, self._procs = schedule.submit, schedule.workload.procs
        self._first = int(schedule.workload.submit[0]) if len(schedule.workload) else 0
        self._waits = LongestWait(schedule.submit, schedule.start)
        jobs, estimate = schedule.workload, effective_times(schedule.workload, schedule.overrun)[1]
        self._standing = Standing(schedule.submit, schedule.start, schedule.end, jobs.procs, estimate, jobs.machine_procs)
        self._known = LogView.of(scheduler.policy.reads, schedule.workload, schedule.workload.requested)
        self._past = Past(self._order, schedule, {name: np.asarray(values) for name, values in self._known.columns.items()})

    @property
    def by_arrival(self) -> bool:
        """Whether the queue is in order of arrival."""
        return self._order == FCFS

    def __call__(self, job: int, now: int) -> float:
        others: dict[str, Any] = {name: int(values[job]) for name, values in self._known.columns.items()}
        if self._order.reads_calendar and self._known.calendar is not None:
            local = self._known.calendar.local(now)
            others |= {"hour": local.hour, "weekday": local.weekday()}
        others["elapsed"] = int(self._submit[job]) - self._first
        others |= self._past.of(job, now)
        others |= self._standing.at(now) if self._order.reads_standing else {}
        wait, longest = now - int(self._submit[job]), self._waits.before(now) if self._order.reads_longest else 0
        length, procs = int(self._length[job]), int(self._procs[job])
        value = self._order.score(wait, length, procs, int(self._submit[job]), longest=longest, **others)
        return -self._order.standing(value, wait, longest)


class _JobStarted(Exception):  # noqa: N818 (it is no error)
    """The job that is observed has started."""


class Observer(Reference):
    """The reference engine, observed after each of its passes while `job` waits."""

    job = -1

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self.snapshots: list[Snapshot] = []

    def _pass(self) -> None:
        job, started = self.jobs[self.job], self._started
        before = list(self.waiting)
        for one in before:
            one.reserved_start = -1  # each pass notes those that it makes
        super()._pass()
        noted = {one.index: one.reserved_start for one in before if one.start < 0}
        if job.arrival < 0:
            return
        in_order = [one.index for one in self._in_order(self.waiting, self.policy.order)]
        snapshot = Snapshot(
            now=self.now,
            free=self.free,
            waiting=[one.index for one in self.waiting],
            running={one.index: one.expected_end for one in self.running},
            lengths={one.index: one.believed for one in self.running if one.ticket >= started},
            head=in_order[0] if in_order else -1,
            length=job.believed,
            ahead=in_order.index(job.index) if job.start < 0 else None,
        )
        head, shadow, extra = self._kept
        if self.policy.reservations.kept:
            snapshot.reserved = {one.index: one.reservation for one in self.waiting}
        elif self.policy.reservations.of == "head" and head is not None and head.start < 0 and head.index == snapshot.head:
            snapshot.reserved, snapshot.extra = {head.index: shadow}, extra
        else:
            snapshot.reserved = {index: start for index, start in noted.items() if start >= 0}
        self.snapshots.append(snapshot)
        if job.start >= 0:
            raise _JobStarted
