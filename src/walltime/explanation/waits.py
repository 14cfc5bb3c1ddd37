"""Why a job waited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from walltime.errors import WorkloadError
from walltime.explanation.alternatives import alternatives
from walltime.explanation.number import number_explanation
from walltime.explanation.pools import MachineExplanation, machine_explanation
from walltime.explanation.records import NumberExplanation
from walltime.explanation.sentences import sentences
from walltime.schedule.schedule import Schedule
from walltime.wording import shown


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
