"""A simulation run again up to the start of one job, and observed after each of its events.

The engine that made the schedule runs once more and is stopped after every event from the job's submission on. So it shows what the
scheduler had before it, under every policy, order of the queue, predictor and rule, and not something worked out afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from walltime.errors import EngineError
from walltime.estimates import effective_times
from walltime.policy import FCFS
from walltime.policy.schedule_scores import Scores
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import new_engine, run_of
from walltime.simulation.specification import Scheduler


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
        if order != FCFS:  # ties: by arrival
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
