"""A simulation run again up to the start of one job, and observed after each event.

The engine that made the schedule runs again and stops after every event from the job's submission on. So it shows the scheduler's own
state, under every policy, queue order, predictor and rule.
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

    `waiting`: by arrival. `running`: the expected end of each running job. `lengths`: the planned lengths of the jobs that started now, in
    the order of their starts. `head`: the first waiting job in queue order, -1 for none. `extra`: under EASY, the head's extra processors.
    `reserved`: the starts of known reservations.
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
    """The planned length of the explained job."""
    ahead: int | None = None
    """Jobs ahead of it in the queue; None once it has started."""


def snapshots(schedule: Schedule, job: int) -> Iterator[Snapshot]:
    """Yield the state after each event from the submission of the job (an index) to its start.

    Raises EngineError if it starts at another time than in the schedule, which this scheduler then does not make.
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
        f"simulated again, job {number} does not start at {schedule.start[job]} s as in the schedule; simulate the whole log again",
        "other_schedule",
    )


def snapshots_by(wanted: str, schedule: Schedule, job: int) -> Iterator[Snapshot]:
    """Yield the same from an engine by name, without a check of the job's start."""
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
