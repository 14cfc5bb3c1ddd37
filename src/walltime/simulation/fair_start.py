"""Fairness: how much later arrivals delay jobs, and how users' waits relate to their usage."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from walltime import metrics
from walltime.errors import PolicyError, WorkloadError
from walltime.metrics.jobs import mean
from walltime.metrics.summary import Averages
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler
from walltime.simulation.threads import in_threads
from walltime.wording import seed_fault
from walltime.workload.draws import uniforms

Array = np.ndarray

SAMPLE = 200
"""Default number of jobs whose fair starts are computed."""
STREAM_SAMPLE = 201


@dataclass(frozen=True)
class Fairness(Averages):
    """Fair starts of a sample of jobs, and the relation of users' waits to their usage; undefined values are nan."""

    jobs: int
    """number of jobs in the schedule"""
    sample: int
    """number of jobs whose fair starts were computed"""
    late_percent: float
    """percentage of the sample that starts later than its fair start"""
    early_percent: float
    """percentage of the sample that starts earlier than its fair start"""
    mean_miss: float
    """mean delay after the fair start over the sample, s; jobs that are not late count as 0"""
    mean_miss_of_late: float
    """mean delay of the late jobs, s"""
    max_miss: float
    """longest delay, s"""
    users: int
    """number of users whom the log names"""
    use_correlation: float
    """rank correlation of the users' shares of processor time with their mean waits"""


def fairness(
    schedule: Schedule, sample: int = SAMPLE, seed: int = 0, *, workers: int | None = None, progress: Callable[[int], None] | None = None
) -> Fairness:
    """Measure the fairness of a schedule to jobs, by their fair starts, and to users.

    A job's fair start is its start if no job had arrived after it (same policy, same estimates). Each fair start takes an exact
    simulation of all jobs up to this job, so at most `sample` jobs are drawn, by the `seed`; the sample is the same for all schedules of
    a workload. `workers`: threads, by default one per core. `progress` is called with the number of finished jobs. Raises PolicyError
    for an invalid sample or seed, WorkloadError with feedback, where arrivals depend on the schedule.
    Source: Sabin and Sadayappan, "Unfairness metrics for space-sharing parallel job schedulers", JSSPP 2005; the sample is ours.

    >>> from walltime import Easy, Workload
    >>> jobs = Workload.from_arrays(submit=[0, 1, 2, 3], runtime=[10, 10, 10, 5], procs=[3, 3, 2, 1], machine_procs=4)
    >>> fairness(simulate(jobs, Easy())).late_percent
    0.0
    """
    chosen = sample_jobs(schedule, sample, seed)
    miss = schedule.start[chosen] - fair_starts(schedule, chosen, workers=workers, progress=progress)
    late = np.maximum(miss, 0)
    users, correlation = _use(schedule)
    return Fairness(
        jobs=len(schedule),
        sample=len(chosen),
        late_percent=100 * mean(miss > 0),
        early_percent=100 * mean(miss < 0),
        mean_miss=mean(late),
        mean_miss_of_late=mean(late[late > 0]),
        max_miss=float(late.max()) if len(late) else float("nan"),
        users=users,
        use_correlation=correlation,
    )


def sample_jobs(schedule: Schedule, sample: int, seed: int) -> Array:
    """Return the indices of the sampled jobs, int64, in order of arrival; raises PolicyError for an invalid sample or seed."""
    if isinstance(sample, bool) or not isinstance(sample, int) or sample < 1:
        raise PolicyError(f"the sample must have at least 1 job, not {sample!r}", "number_out_of_range")
    if fault := seed_fault(seed):
        raise PolicyError(fault, "number_out_of_range")
    lot, _ = uniforms(seed, schedule.workload.job_id, STREAM_SAMPLE)
    return np.sort(np.argsort(lot, kind="stable")[:sample])


def fair_starts(schedule: Schedule, jobs: Array, *, workers: int | None = None, progress: Callable[[int], None] | None = None) -> Array:
    """Return the fair starts of these jobs (int64 indices in order of arrival), int64 s: the starts if no job had arrived after them."""
    w = schedule.workload
    if w.feedback:
        raise WorkloadError("with feedback, arrivals depend on the schedule, so jobs have no fair start; leave out feedback", "feedback")
    if schedule.placement is not None:
        raise PolicyError("fair starts are not supported on a machine of several pools; leave them out", "unsupported_machine")
    scheduler = Scheduler.of_schedule(schedule)
    rules: dict[str, Any] = {"dialect": schedule.dialect, "overrun": schedule.overrun, "engine": schedule.engine}

    def run(number: int, check: Callable[[int], None]) -> int:
        job = int(jobs[number])
        before = w.take(np.arange(job + 1), f"the jobs up to {w.job_id[job]}")
        return int(simulate(before, scheduler, **rules, progress=check).start[job])

    return np.array(in_threads(run, len(jobs), workers, progress), np.int64)


def _use(schedule: Schedule) -> tuple[int, float]:
    """Return the number of users, and the rank correlation of their shares of processor time with their mean waits."""
    users = schedule.workload.columns.get("user")
    if users is None:
        return 0, float("nan")
    known = users >= 0
    numbers, place = np.unique(users[known], return_inverse=True)
    use = np.bincount(place, weights=(schedule.workload.procs * schedule.runtime)[known].astype(np.float64))
    wait = np.bincount(place, weights=schedule.wait[known].astype(np.float64)) / np.bincount(place)
    return len(numbers), metrics.rank_correlation(use, wait)
