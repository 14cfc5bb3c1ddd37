"""Simulate the waiting time that users would save by following the advice: each user alone, and all of them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from walltime import metrics
from walltime.accuracy.adjusted import Bars, no_bars, simulated_policy
from walltime.accuracy.advice import UserAdvice, advised_jobs, jobs_of_kind
from walltime.machine import Machine
from walltime.metrics.right_size import needs
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler
from walltime.simulation.spread import SHAKE
from walltime.simulation.threads import in_threads
from walltime.wording import sanitize
from walltime.workload import Array, Workload
from walltime.workload.scaling import shake

COPIES = 5
"""Default number of shaken copies of the log."""
DOUBTED = ("cores", "gpus", "memory", "time")
"""The order in which resources are removed from the advice if they do not clearly help."""
LEAST_GAIN, LEAST_SHARE = 60, 0.02
"""Smallest gain of a user that counts: s per job, and as a share of the wait."""


@dataclass(frozen=True)
class UserGain:
    """A user's mean wait, s, with the user's own requests and with the advised requests."""

    advice: UserAdvice
    before: float
    after: float
    """`before` and `after` are means over the log and its shaken copies, as is `difference`, so that they agree"""
    difference: float
    """mean difference over the log and its shaken copies; negative if the user waits less"""
    scatter: float
    """half-width of the 90 % prediction interval for one more copy, Student's t"""
    lost: float = 0.0
    """running time, s per job of the user, lost if all earlier jobs that needed more than the advice had failed"""
    others: float = 0.0
    """mean difference of the wait of all other jobs, s, if only this user follows the advice"""
    others_scatter: float = 0.0
    """half width of its 90 % prediction interval"""

    @property
    def helps(self) -> bool:
        """Return whether the saved wait minus the cost of failed runs exceeds 1 min, 2 % of the wait, and the scatter."""
        return bool(self.advice.advised) and _is_clear(-self.difference - self.lost, self.scatter, self.before)

    @property
    def saved_hours(self) -> float:
        """Return the saved waiting time, summed over all jobs of the user, h; 0 without a clear gain."""
        return -self.difference * self.advice.jobs / 3600 if self.helps else 0.0


@dataclass(frozen=True)
class AdviceGains:
    """The gain of each user alone, in descending order, and the gain of all jobs if all these users follow the advice."""

    workload: Workload
    policy: str
    """the simulated policy"""
    copies: int
    users: Sequence[UserGain]
    all_jobs: tuple[float, float, float]
    """mean wait of all jobs with their own requests, s, and its difference and scatter if all users who gain follow the advice"""
    site: str
    """name of the machine, or of the log if the machine has none"""

    @property
    def helped(self) -> list[UserGain]:
        """Return the users with a clear gain."""
        return [user for user in self.users if user.helps]


def simulate_advice(
    workload: Workload, advice: Sequence[UserAdvice], *, machine: Machine | None = None, copies: int = COPIES, progress: Bars = no_bars
) -> AdviceGains:
    """Simulate the log with the users' requests, with the requests of each advised user replaced, and with all of them replaced.

    The policy is EASY, or the policy of the machine if it backfills. The simulations use the log and `copies` shaken copies of it, with
    submissions shifted by up to 30 s; all variants use the same copies. Each user's wait is the mean over the user's jobs. Advice on
    several resources is also simulated without each of them in the order `DOUBTED`, and a resource without a clear gain of its own is
    removed.
    """
    policy, _ = simulated_policy(machine, predicts=False)
    advised = [one for one in advice if one.advised]
    simulated = _Simulations(workload, Scheduler(policy), machine, advised, copies, progress)
    base, *alone = simulated.means([workload, *(advised_jobs(workload, one) for one in advised)])
    lost = [_lost(workload, one) for one in advised]
    for resource in DOUBTED:
        several = [k for k, one in enumerate(advised) if resource in one.resources and len(one.resources) > 1]
        fewer = {k: advised[k].only([name for name in advised[k].resources if name != resource]) for k in several}
        without = simulated.means([advised_jobs(workload, one) for one in fewer.values()])
        for (k, one), means in zip(fewer.items(), without, strict=True):
            gain, cost = metrics.prediction_interval(means[:, 1 + k] - alone[k][:, 1 + k]), _lost(workload, one)
            if not _is_clear(gain.mean - (lost[k] - cost), gain.half_width, float(base[:, 1 + k].mean())):
                advised[k], alone[k], lost[k] = one, means, cost
    users = []
    for k, one in enumerate(advised):
        before, after = base[:, 1 + k], alone[k][:, 1 + k]
        own, others = (metrics.prediction_interval(alone[k][:, column] - base[:, column]) for column in (1 + k, 1 + len(advised) + k))
        users.append(
            UserGain(one, float(before.mean()), float(after.mean()), own.mean, own.half_width, lost[k], others.mean, others.half_width)
        )
    users.sort(key=lambda user: (-user.saved_hours, user.difference))
    together = [user.advice for user in users if user.helps]
    all_jobs = (float(base[:, 0].mean()), 0.0, 0.0)
    if together:
        [means] = simulated.means([reduce(advised_jobs, together, workload)])
        interval = metrics.prediction_interval(means[:, 0] - base[:, 0])
        all_jobs = (all_jobs[0], interval.mean, interval.half_width)
    site = workload.origin.site if machine is None or machine.name == Machine.name else sanitize(machine.name)
    return AdviceGains(workload, policy.label, copies, users, all_jobs, site)


def _is_clear(gain: float, scatter: float, before: float) -> bool:
    """Return whether a gain, s per job, exceeds a minute, 2 % of the wait, and the scatter."""
    return gain > max(scatter, LEAST_GAIN, LEAST_SHARE * before)


def _lost(workload: Workload, advice: UserAdvice) -> float:
    """Return the running time, s per job of the user, that jobs lose if they needed more than the advice.

    A job is killed after the advised time, or fails at its end without enough memory or GPUs; with fewer processors it runs longer.
    """
    mine, needed = workload.columns[advice.by] == advice.number, needs(workload)
    lost = 0.0
    for kind in advice.advised:
        alike, times = jobs_of_kind(workload, advice, kind), np.zeros(len(workload))
        if kind.walltime is not None:
            times = np.where((workload.requested > kind.walltime) & (workload.runtime > kind.walltime), kind.walltime, 0)
        for one in kind.requests:
            used, cut, asked = needed[one.resource]
            more = (np.ceil(used) > one.amount) & (asked > one.amount) & ~cut
            longer = np.nan_to_num(used) / max(one.amount, 1) - 1 if one.resource == "cores" else 1.0
            times = np.maximum(times, np.where(more, workload.runtime * longer, 0))
        lost += float(times[alike].sum())
    return lost / max(int(mine.sum()), 1)


@dataclass(frozen=True)
class _Simulations:
    """Simulate variants of the log and their shaken copies."""

    workload: Workload
    scheduler: Scheduler
    machine: Machine | None
    users: Sequence[UserAdvice]
    copies: int
    progress: Bars

    def means(self, variants: Sequence[Workload]) -> list[Array]:
        """Return mean waits, s, for each variant of the log: an array with a row for the log and each copy.

        The columns are all jobs, the jobs of each user, and, for each user, the jobs of all other users.
        """
        seeds, members = 1 + self.copies, 1 + 2 * len(self.users)
        total = len(variants) * seeds

        def run(number: int, check: Callable[[int], None]) -> list[float]:
            which, seed = divmod(number, seeds)
            jobs = variants[which] if seed == 0 else shake(variants[which], SHAKE, seed - 1)
            schedule = simulate(jobs, self.scheduler, progress=check, machine=self.machine)
            own = [schedule.workload.columns[one.by] == one.number for one in self.users]
            groups = [np.ones(len(schedule.wait), bool), *own, *(~mine for mine in own)]
            return [float(schedule.wait[mine].mean()) if mine.any() else 0.0 for mine in groups]

        if not total:
            return []
        with self.progress(total, "simulations of advice") as show:
            means = np.array(in_threads(run, total, None, show))
        return list(means.reshape(len(variants), seeds, members))
