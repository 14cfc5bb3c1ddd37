"""How often the bootstrap over users holds the mean over many more such users, and what it is not about."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from validation.coverage import Sizes, Trials, experiment
from walltime import Workload, simulate
from walltime.accuracy.advice import advise_users
from walltime.estimates import Tsafrir05
from walltime.estimates.suggestion import suggest
from walltime.metrics import bootstrap
from walltime.workload.models.lublin99 import Lublin99
from walltime.workload.resampling import with_users


@experiment("bootstrap:formula", of_what="sampling of users", command="metrics.bootstrap", quick=True)
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
    """The risk that a job like the earlier ones runs longer than the walltime that is suggested from these: their distribution is known."""
    found = []
    for jobs, risk, spread in sizes.some([(jobs, risk, spread) for jobs in (20, 50, 200) for risk in (1, 5, 25) for spread in (0.05, 2.0)]):
        trials = Trials(f"{jobs} earlier jobs, risk {risk} %, log-normal runtimes, sigma {spread:g}", nominal=0.95)
        random = np.random.default_rng([jobs, risk])
        for _ in range(sizes.many(20_000 if spread > 1 else 2000)):
            logs = random.normal(size=jobs) * spread
            runtime = np.ceil(3600 * np.exp(logs)).astype(np.int64)
            log = Workload.from_arrays(
                submit=np.arange(jobs),
                runtime=runtime,
                requested=runtime * 1000,
                procs=np.ones(jobs, np.int64),
                machine_procs=1,
                columns={"user": np.ones(jobs, np.int64)},
            )
            [found_now] = suggest(log, user=1, risks=[risk]).suggestions
            longer = NormalDist(0, spread).cdf(-math.log(found_now.walltime / 3600))
            trials.add(0.0, found_now.upper / 100, longer)
        found.append(trials)
    return found


@experiment("suggestion.risk:advice", of_what="this job", command="estimates", quick=True)
def advised(sizes: Sizes) -> list[Trials]:
    """The same of the request that a letter advises: the one of several that earlier jobs, advised in turn, would have kept."""
    found = []
    for jobs, spread in sizes.some([(jobs, spread) for jobs in (20, 50, 200) for spread in (0.3, 1.0)]):
        trials = Trials(f"{jobs} earlier jobs, log-normal runtimes, sigma {spread:g}", nominal=0.95)
        random = np.random.default_rng(jobs)
        for _ in range(sizes.many(2000)):
            runtime = np.ceil(3600 * np.exp(random.normal(size=jobs) * spread)).astype(np.int64)
            log = Workload.from_arrays(
                submit=np.arange(jobs),
                runtime=runtime,
                requested=np.full(jobs, 1000 * 3600),
                procs=np.ones(jobs, np.int64),
                machine_procs=1,
                columns={"user": np.ones(jobs, np.int64)},
            )
            [kind] = advise_users(log)[0].kinds
            if kind.walltime is None:
                trials.withhold("no request is advised")
            else:
                trials.add(0.0, kind.risk_at_most / 100, NormalDist(0, spread).cdf(-math.log(kind.walltime / 3600)))
        found.append(trials)
    return found


@experiment("bootstrap:logs", of_what="sampling of users", command="metrics.bootstrap")
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
