"""How often the bootstrap over users holds the mean over many more such users, and what it is not about."""

from __future__ import annotations

import numpy as np

from validation.coverage import Sizes, Trials, experiment
from walltime import simulate
from walltime.estimates import Tsafrir05
from walltime.estimates.suggestion import wilson_upper
from walltime.metrics import bootstrap
from walltime.workload.models.lublin99 import Lublin99
from walltime.workload.users import with_users


@experiment("bootstrap:formula", of_what="such users", command="metrics.bootstrap", quick=True)
def of_formula(sizes: Sizes) -> list[Trials]:
    """Users whose jobs share a value of their own, so that the mean over all such users is known: 0."""
    found = []
    for users in sizes.some((20, 50, 200)):
        trials = Trials(f"{users} users with 1 to 40 jobs each")
        random = np.random.default_rng(users)
        for _ in range(sizes.many(300, 60)):
            jobs = random.integers(1, 41, users)
            user = np.repeat(np.arange(users), jobs)
            values = np.repeat(random.normal(size=users), jobs) + random.normal(size=len(user))
            interval = bootstrap(values, user, samples=300)
            trials.add(interval.low, interval.high, 0.0)
        found.append(trials)
    return found


@experiment("suggestion.risk", of_what="this job", command="suggest", quick=True)
def risk(sizes: Sizes) -> list[Trials]:
    """The risk of being killed, of which some earlier jobs show how often they would have been."""
    found = []
    for jobs in sizes.some((20, 50, 200)):
        trials = Trials(f"{jobs} earlier jobs, risks from 2 to 50 %", nominal=0.95)
        random = np.random.default_rng(jobs)
        for _ in range(sizes.many(5000)):
            share = random.uniform(0.02, 0.5)
            trials.add(0.0, wilson_upper(int(random.binomial(jobs, share)), jobs), share)
        found.append(trials)
    return found


@experiment("bootstrap:logs", of_what="such users", command="metrics.bootstrap")
def of_logs(sizes: Sizes) -> list[Trials]:
    """The mean wait of a schedule: other logs of the model have other queues, which the users of one do not show."""
    found = []
    for load in sizes.some((0.6, 0.7, 0.8)):
        trials = Trials(f"load {load}, the mean of the model", meant=False)
        runs = []
        for seed in range(sizes.many(60, 20)):
            log = with_users(Lublin99().generate(2000, 128, load, seed), 50, seed).with_estimates(Tsafrir05(), seed)
            schedule = simulate(log, "easy")
            runs.append((schedule.wait.astype(np.float64), log.columns["user"]))
        means = np.array([wait.mean() for wait, _ in runs])
        for seed, (wait, user) in enumerate(runs):
            interval = bootstrap(wait, user, samples=300)
            trials.add(interval.low, interval.high, float(np.delete(means, seed).mean()))
        found.append(trials)
    return found
