"""Explain a wait on a single pool: run the simulation again, and observe it after each event from the job's submission to its start.

The engine that made the schedule runs again, so an explanation shows the scheduler's own state under every policy, queue order, predictor
and rule.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from walltime.errors import EngineError
from walltime.estimates import effective_times
from walltime.explanation.alternatives import alternatives
from walltime.explanation.pools import MachineExplanation, machine_explanation
from walltime.explanation.records import (
    Cause,
    Change,
    Overtaker,
    Reservation,
    RunningJob,
    SinglePoolExplanation,
    Submission,
    common_fields,
    index_of,
)
from walltime.explanation.sentences import texts
from walltime.policy import FCFS, Kind
from walltime.policy.easy import find_shadow
from walltime.policy.randomness import seeded
from walltime.policy.schedule_scores import Scores
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import new_engine, run_of
from walltime.simulation.specification import Scheduler


@dataclass
class Snapshot:
    """The machine and the queue after an event and the scheduling pass that follows it; jobs are indices, times s.

    `waiting`: the waiting jobs by arrival. `running`: the expected end of each running job. `lengths`: the planned durations of the jobs
    that started now, in the order of their starts. `head`: the first waiting job in queue order, -1 for none. `extra`: under EASY, the
    extra processors. `reserved`: the start of each known reservation, by job.
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
    """planned duration of the explained job, s"""
    ahead: int | None = None
    """number of jobs ahead of it in the queue; None once it has started"""


def snapshots(schedule: Schedule, job: int) -> Iterator[Snapshot]:
    """Yield the state after each event from the submission of the job with this index to its start.

    Raises EngineError if the job does not start at the same time as in the schedule, because the scheduler does not reproduce it.
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
        f"in a second simulation, job {number} does not start at {schedule.start[job]} s as in the schedule; simulate the whole log again",
        "other_schedule",
    )


def snapshots_by(wanted: str, schedule: Schedule, job: int) -> Iterator[Snapshot]:
    """Yield the states of `snapshots` from the engine with this name, without checking the job's start."""
    scheduler = Scheduler.of_schedule(schedule)
    with seeded(schedule.seed):
        problem = replace(run_of(schedule.workload, scheduler, dialect=schedule.dialect, overrun=schedule.overrun).problem, logged=True)
        engine: Any = new_engine(problem, wanted)
    order, submit = scheduler.policy.order, schedule.submit
    estimate = effective_times(schedule.workload, schedule.overrun)[1]
    scores = Scores(schedule.workload, [order], (submit, schedule.start, schedule.end, estimate))
    engine.run_until(int(submit[job]) - 1)
    while (seen := engine.observe()) is not None:
        now, waiting, length = seen.state.now, seen.state.queue.tolist(), engine.order_length
        if job not in waiting and job not in seen.started:
            continue
        in_order = waiting
        if order != FCFS:  # ties by arrival
            in_order = sorted(waiting, key=lambda one: -scores.of(one, order, now, int(length[one]), int(submit[one])))
        yield Snapshot(
            now=now,
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


def explain(
    schedule: Schedule, job: int, *, sooner: bool = True, progress: Callable[[int], None] | None = None
) -> SinglePoolExplanation | MachineExplanation:
    """Explain why the job with this number started when it did, as sentences and as data.

    The simulation runs again up to the job's start, so the explanation shows the scheduler's own view. `sooner`: also try changes that may
    let the job start sooner, in about twenty simulations; `progress` is called repeatedly with the number of completed ones. On a machine
    with several pools, the explanation is derived from the schedule, as a `walltime.explanation.MachineExplanation`. Raises WorkloadError
    for an unknown job, and EngineError if the scheduler does not reproduce the schedule.

    >>> from walltime import Easy, Workload, simulate
    >>> jobs = Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4)
    >>> why = explain(simulate(jobs, Easy()), 2)
    >>> why.wait, why.submission.held_back, [one.job for one in why.overtaken_by]
    (9, 'too few', [3])
    """
    index = index_of(schedule, job)
    if schedule.placement is not None:
        return machine_explanation(schedule, index, sooner, progress)
    tried = alternatives(schedule, index, progress) if sooner and schedule.start[index] > schedule.submit[index] else ()
    observer = _Observer(schedule, index)
    for snapshot in snapshots(schedule, index):
        observer.add(snapshot)
    assert observer.submission is not None, "the last snapshot is its start"
    why = SinglePoolExplanation(
        **common_fields(schedule, index),
        planned=observer.planned,
        submission=observer.submission,
        head_since=observer.head_since,
        reservations=tuple(observer.changes),
        overtaken_by=tuple(observer.overtakers),
        too_few=observer.too_few,
        held=observer.held,
        let_in=observer.let_in,
        alternatives=tuple(tried),
    )
    return replace(why, texts=tuple(texts(why)))


class _Observer:
    """Collect the course of one job's wait from the snapshots after each event."""

    def __init__(self, schedule: Schedule, job: int):
        self.schedule, self.job = schedule, job
        self.w, self.policy = schedule.workload, schedule.policy
        self.procs = int(self.w.procs[job])
        self.submission: Submission | None = None
        self.head_since: int | None = None
        self.planned = 0
        self.changes: list[Change] = []
        self.overtakers: list[Overtaker] = []
        self.too_few = self.held = 0
        self.let_in: tuple[RunningJob, ...] = ()
        self._before: Snapshot | None = None

    def add(self, snapshot: Snapshot) -> None:
        """Add the snapshot after the next event."""
        before = self._before
        self.planned = snapshot.length
        waits = self.job in snapshot.waiting
        if before is None:
            self.submission = self._submission(snapshot)
        else:
            span = snapshot.now - before.now
            enough = before.free >= self.procs
            self.held += span * enough
            self.too_few += span * (not enough)
        if waits:
            self._follow_reservation(before, snapshot)
            self._follow_overtakers(snapshot)
            if snapshot.head == self.job and self.head_since is None:
                self.head_since = snapshot.now
        elif before is not None:
            self.let_in = tuple(self._ran(one, before.running[one]) for one in before.running if one not in snapshot.running)
        self._before = snapshot

    # -------------------------------------------------------------- at its submission

    def _submission(self, snapshot: Snapshot) -> Submission:
        waits = self.job in snapshot.waiting
        others = [(start, one) for one, start in snapshot.reserved.items() if one != self.job]
        running = [self._ran(one, end) for one, end in snapshot.running.items() if one != self.job]
        return Submission(
            free=snapshot.free + (0 if waits else self.procs),
            ahead=snapshot.ahead or 0,
            held_back=self._held_back(snapshot) if waits else "nothing",
            running=tuple(sorted(running, key=lambda one: (one.expected_end, one.job))),
            reserved=tuple(Reservation(self._id(one), int(self.w.procs[one]), start) for start, one in sorted(others)),
            extra=snapshot.extra if snapshot.head != self.job else None,
        )

    def _held_back(self, snapshot: Snapshot) -> str:
        if snapshot.free < self.procs:
            return "too few"
        if not self.policy.passes.backfills:
            return "order"
        most = self.policy.passes.overtakes
        if most is not None and self._overtaken(snapshot) >= most:
            return "overtakes"
        match self.policy.reservations.of:
            case "unknown":
                return "policy"
            case "none":
                return "score"
            case "some" | "all":
                return "reservations"
        delays = snapshot.now + snapshot.length > snapshot.reserved[snapshot.head] and self.procs > (snapshot.extra or 0)
        return "head" if delays else "score"

    def _overtaken(self, snapshot: Snapshot) -> int:
        """Return the number of jobs that arrived after the head of the queue and have started."""
        submit, start, head = self.schedule.submit, self.schedule.start, snapshot.head
        later = (submit > submit[head]) | ((submit == submit[head]) & (np.arange(len(submit)) > head))
        return int(np.count_nonzero(later & (start <= snapshot.now)))

    # -------------------------------------------------------------- its reservation

    def _follow_reservation(self, before: Snapshot | None, snapshot: Snapshot) -> None:
        """Record a change of the job's reservation, with its causes."""
        old = None if before is None else before.reserved.get(self.job)
        new = snapshot.reserved.get(self.job)
        if new == old:
            return
        if new is None:
            self.changes.append(Change(snapshot.now, "given up", -1))
        elif old is None or before is None:
            self.changes.append(Change(snapshot.now, "made", new))
        elif new < old:
            self.changes.append(Change(snapshot.now, "forward", new, tuple(self._ended_early(before, snapshot))))
        else:
            self.changes.append(Change(snapshot.now, "back", new, tuple(self._outlived(before, snapshot))))

    def _ended_early(self, before: Snapshot, snapshot: Snapshot) -> Iterator[Cause]:
        """Yield the jobs that ended earlier than expected, which can make a reservation earlier."""
        for one, expected in before.running.items():
            if one not in snapshot.running and expected > snapshot.now:
                yield Cause("ended early", self._id(one), expected - snapshot.now)

    def _outlived(self, before: Snapshot, snapshot: Snapshot) -> Iterator[Cause]:
        """Yield the jobs that run longer than expected, which can delay a reservation."""
        for one, expected in snapshot.running.items():
            if expected <= snapshot.now:
                yield Cause("overdue", self._id(one), snapshot.now - expected)
            elif expected > before.running.get(one, expected):
                yield Cause("expected longer", self._id(one), expected - before.running[one])

    # -------------------------------------------------------------- overtaking jobs

    def _follow_overtakers(self, snapshot: Snapshot) -> None:
        """Record the later jobs that start now, and how much they delay the head of the queue."""
        submit, start, end = self.schedule.submit, self.schedule.start, self.schedule.end
        here, head = (submit[self.job], self.job), snapshot.head
        later = {one for one in snapshot.lengths if (submit[one], one) > here and start[one] < start[self.job]}
        if not later:
            return
        free = snapshot.free + sum(int(self.w.procs[one]) for one in snapshot.lengths)
        running = [(int(end[one]), int(self.w.procs[one])) for one in snapshot.running if one not in snapshot.lengths]
        wanted = int(self.w.procs[head])
        for one, length in snapshot.lengths.items():
            procs = int(self.w.procs[one])
            before = find_shadow(running, free, wanted, snapshot.now)[0]
            free -= procs
            running.append((int(end[one]), procs))
            if one in later:
                delay = find_shadow(running, free, wanted, snapshot.now)[0] - before
                times = (snapshot.now, length, int(self.schedule.runtime[one]))
                self.overtakers.append(Overtaker(self._id(one), procs, *times, self._how(snapshot, one, length), self._id(head), delay))

    def _how(self, snapshot: Snapshot, job: int, length: int) -> str:
        """Return how a job could overtake, as a key of `HOW`."""
        reserved = self.policy.reservations.of
        if reserved == "unknown":
            return "policy"
        if self.schedule.kind[job] != Kind.BACKFILLED:
            return "order"
        if reserved == "head":
            return "in time" if snapshot.now + length <= snapshot.reserved[snapshot.head] else "extra"
        return "fits" if reserved == "none" else "hole"

    def _ran(self, job: int, expected: int) -> RunningJob:
        return RunningJob(self._id(job), int(self.w.procs[job]), expected, int(self.schedule.end[job]))

    def _id(self, job: int) -> int:
        return int(self.w.job_id[job])
