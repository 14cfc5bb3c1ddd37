"""How often jobs start within the intervals that `slurm start-times` gives, on generated logs with users.

The truth is the schedule of a log under EASY; a prediction knows the jobs that run and wait at its moment, and of the log those that had
ended. Real logs are in `validation/start_times.py`.
"""

from __future__ import annotations

import numpy as np

from validation.coverage import Sizes, Trials, experiment
from validation.interval_factors import DAY
from validation.start_times import calibrate_outcomes, replay_outcomes
from walltime import simulate
from walltime.estimates import Tsafrir05
from walltime.slurm import Draws
from walltime.workload.models.lublin99 import Lublin99
from walltime.workload.resampling import with_users

LOADS = {0.6: 12_000, 0.7: 12_000, 0.8: 12_000, 1.1: 4_000}
"""Jobs of a log by load, of about six weeks. The last one is overloaded: its queue grows, and ten days of it are enough."""


@experiment("start-times", of_what="this job", command="slurm start-times")
def starts(sizes: Sizes) -> list[Trials]:
    """Starts of waiting jobs in the last quarter of a log, as jobs to come are drawn from earlier weeks. Those of one day fail together."""
    return [trials for load in sizes.some(list(LOADS)) for trials in measured(load, LOADS[load], sizes)]


@experiment("start-times:short", of_what="this job", command="slurm start-times")
def starts_after_a_week(sizes: Sizes) -> list[Trials]:
    """The same with a history of about a week, where a caveat says that fewer start within: nothing else differs."""
    found = []
    for load in sizes.some((0.7, 0.8)):
        for trials in measured(load, 2000, sizes):
            trials.case += ", about a week of history"
            trials.meant = False
            found.append(trials)
    return found


def measured(load: float, jobs: int, sizes: Sizes) -> list[Trials]:
    """Return predicted and adjusted starts in logs of this many jobs."""
    as_predicted, adjusted = Trials(f"load {load}"), Trials(f"load {load}, adjusted by earlier outcomes")
    for seed in range(sizes.many(5, 2)):
        log = with_users(Lublin99().generate(jobs, 128, load, seed), 30, seed).with_estimates(Tsafrir05(), seed)
        truth = simulate(log, "easy")
        moments = np.random.default_rng(seed).integers(3 * int(log.submit[-1]) // 4, int(log.submit[-1]), sizes.many(12, 5))
        known = replay_outcomes(truth, np.sort(moments).tolist(), draws=Draws(20, seed=seed))
        for trials, those in ((as_predicted, known), (adjusted, calibrate_outcomes(known))):
            for one in those:
                trials.add(one.early, one.late, one.real, (seed, one.made // DAY))
    return [as_predicted, adjusted]
