"""Why a job waited: its explanation, and the longest waits of a schedule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from walltime.errors import WorkloadError
from walltime.explanation.alternatives import alternatives
from walltime.explanation.number import number_explanation
from walltime.explanation.pools import MachineExplanation, machine_explanation
from walltime.explanation.records import NumberExplanation
from walltime.explanation.sentences import sentences
from walltime.policy import Kind
from walltime.schedule.schedule import Schedule
from walltime.wording import human_time, shown


def explain(
    schedule: Schedule, job: int, *, sooner: bool = True, progress: Callable[[int], None] | None = None
) -> NumberExplanation | MachineExplanation:
    """Why the job with this number started when it did: printed in plain sentences, with `as_dict()` and as fields in numbers.

    The simulation runs again up to the job's start, so what is told is what the scheduler saw. `sooner`: also try what would have let
    the job start sooner, some twenty whole simulations; `progress` is called now and then with how many of them are done. On a machine of
    several pools the explanation is found from the schedule, and is a `walltime.explanation.MachineExplanation`. Raises WorkloadError for
    a job that is not there, and EngineError where the scheduler does not give this schedule again.

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
    why = number_explanation(schedule, index, tried)
    return replace(why, sentences=tuple(sentences(why)))


def index_of(schedule: Schedule, job: int) -> int:
    """Where a job number stands in order of arrival; raises WorkloadError where there is none, saying which there are."""
    ids = schedule.workload.job_id
    places = np.flatnonzero(ids == job) if isinstance(job, int | np.integer) and not isinstance(job, bool) else ids[:0]
    if len(places):
        return int(places[0])
    name = schedule.workload.origin.name
    if not len(ids):
        raise WorkloadError(f"there is no job {shown(job)}: {name} has no jobs", "empty_workload")
    dropped = "; records that were dropped have no schedule" if schedule.workload.origin.dropped else ""
    raise WorkloadError(
        f"{name} has no job {shown(job)}; its {len(ids):,} jobs have numbers from {ids.min()} to {ids.max()}{dropped}", "unknown_job"
    )


@dataclass(frozen=True)
class LongWait:
    """One of the longest waits.

    `job`: its number; `submit`, `wait`, `requested`: s; `ahead`: how many jobs waited when it was submitted that had arrived before it;
    `overtaken_by`: how many arrived later and started earlier.
    """

    job: int
    submit: int
    wait: int
    procs: int
    requested: int
    ahead: int
    overtaken_by: int
    kind: str

    def as_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        size = f"{self.procs:,} processor{'' if self.procs == 1 else 's'} for {human_time(self.requested)}"
        return (
            f"job {self.job} waited {human_time(self.wait)} for {size}: {self.ahead:,} waited before it, "
            f"{self.overtaken_by:,} overtook it, {'backfilled' if self.kind == 'backfilled' else 'started in its turn'}"
        )


def longest_waits(schedule: Schedule, count: int = 10) -> list[LongWait]:
    """The longest waits, the worst first, each printed as one line; of equal ones that of the job that arrived first.

    Jobs that did not wait are left out.
    """
    w, submit, start = schedule.workload, schedule.submit, schedule.start
    worst = np.argsort(submit - start, kind="stable")[: max(count, 0)]
    place = np.arange(len(w))
    waits = []
    for job in worst[start[worst] > submit[worst]].tolist():
        earlier = (submit < submit[job]) | ((submit == submit[job]) & (place < job))
        ahead = int((earlier & (start > submit[job])).sum())
        overtook = int((~earlier & (start < start[job])).sum())
        numbers = (int(w.job_id[job]), int(submit[job]), int(start[job] - submit[job]), int(w.procs[job]), int(w.requested[job]))
        waits.append(LongWait(*numbers, ahead, overtook, Kind(schedule.kind[job]).name.lower()))
    return waits
