"""Fairness: how much later jobs start because of jobs that arrived after them, and who waits by share of use."""

from __future__ import annotations

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
"""Usual number of jobs whose fair starts are computed."""
STREAM_SAMPLE = 201


@dataclass(frozen=True)
class Fairness(Averages):
    """Fair starts of a sample of jobs, and waits of users by what they use; undefined values are nan."""

    jobs: int
    """of the schedule"""
    sample: int
    """jobs whose fair starts were computed"""
    late_percent: float
    """of the sample, that start later than their fair start"""
    early_percent: float
    """of the sample, that start earlier than their fair start"""
    mean_miss: float
    """s later than the fair start, over the sample; a job that is not late counts as 0"""
    mean_miss_of_late: float
    """s, over the late jobs"""
    max_miss: float
    """s"""
    users: int
    """with a number in the log"""
    use_correlation: float
    """of ranks, from -1 to 1: of the users' shares of processor time with their mean waits"""


def fairness(
    schedule: Schedule, sample: int = SAMPLE, seed: int = 0, *, workers: int | None = None, progress: Callable[[int], None] | None = None
) -> Fairness:
    """How fair a schedule is to each job, by its fair start, and to users.

    The fair start of a job is its start if no job had arrived after it (same policy, same estimates). Each takes a simulation of all
    jobs up to that one, exact; so a `sample` of the jobs is drawn by the `seed`, or all are taken if they are not more. A sample is
    the same for all schedules of a workload. `workers`: threads, by default one per core. `progress` is called with the number of
    jobs done. Raises PolicyError for a bad sample or seed, WorkloadError with feedback, where it depends on the schedule who arrives
    later.
    Source: Sabin and Sadayappan, "Unfairness metrics for space-sharing parallel job schedulers", JSSPP 2005; the sample is ours.

    >>> from walltime import Easy, Workload
    >>> jobs = Workload.from_arrays(submit=[0, 1, 2, 3], runtime=[10, 10, 10, 5], procs=[3, 3, 2, 1], machine_procs=4)
    >>> fairness(simulate(jobs, Easy())).late_percent
    0.0
    """
    chosen = drawn(schedule, sample, seed)
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


def drawn(schedule: Schedule, sample: int, seed: int) -> Array:
    """The places of the sampled jobs, int64, in order of arrival; raises PolicyError for a bad sample or seed."""
    if isinstance(sample, bool) or not isinstance(sample, int) or sample < 1:
        raise PolicyError(f"a sample must be of at least 1 job, not {sample!r}", "number_out_of_range")
    if fault := seed_fault(seed):
        raise PolicyError(fault, "number_out_of_range")
    lot, _ = uniforms(seed, schedule.workload.job_id, STREAM_SAMPLE)
    return np.sort(np.argsort(lot, kind="stable")[:sample])


def fair_starts(schedule: Schedule, jobs: Array, *, workers: int | None = None, progress: Callable[[int], None] | None = None) -> Array:
    """The start of each of these jobs (int64 places in order of arrival) if no job had arrived after it, int64 s."""
    w = schedule.workload
    if w.feedback:
        raise WorkloadError("with feedback it depends on the schedule which jobs arrive later, so no job has a fair start", "feedback")
    if schedule.placement is not None:
        raise PolicyError("fair starts are not known on a machine of several pools yet; leave them out", "unsupported_machine")
    scheduler = Scheduler(schedule.policy, None if schedule.predictions is None else schedule.predictions.prediction)
    rules: dict[str, Any] = {"dialect": schedule.dialect, "overrun": schedule.overrun, "engine": schedule.engine}

    def make_worker() -> Callable[[int, Callable[[int], None]], int]:
        def run(number: int, check: Callable[[int], None]) -> int:
            job = int(jobs[number])
            before = w.take(np.arange(job + 1), f"the jobs up to {w.job_id[job]}")
            return int(simulate(before, scheduler, **rules, progress=check).start[job])

        return run

    return np.array(in_threads(make_worker, len(jobs), workers, progress), np.int64)


def _use(schedule: Schedule) -> tuple[int, float]:
    """The number of users, and the rank correlation of their shares of processor time with their mean waits."""
    users = schedule.workload.columns.get("user")
    if users is None:
        return 0, float("nan")
    known = users >= 0
    numbers, place = np.unique(users[known], return_inverse=True)
    use = np.bincount(place, weights=(schedule.workload.procs * schedule.runtime)[known].astype(np.float64))
    wait = np.bincount(place, weights=schedule.wait[known].astype(np.float64)) / np.bincount(place)
    return len(numbers), metrics.rank_correlation(use, wait)
