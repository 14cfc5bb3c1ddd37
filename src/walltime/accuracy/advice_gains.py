"""The waiting time that users would save by following the advice, simulated: each user alone, and all of them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from walltime import metrics
from walltime.accuracy.adjusted import Bars, no_bars, simulated_policy
from walltime.accuracy.advice import UserAdvice, advised_requests, jobs_of_kind
from walltime.machine import Machine
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler
from walltime.simulation.spread import SHAKE
from walltime.simulation.threads import in_threads
from walltime.workload import Array, Workload
from walltime.workload.scaling import shake

COPIES = 5
"""Shaken copies of the log."""
LEAST_GAIN, LEAST_SHARE = 60, 0.02
"""Smallest gain of a user: s per job, and share of the wait."""


@dataclass(frozen=True)
class UserGain:
    """A user's mean wait with the user's requests and with the advised ones, s."""

    advice: UserAdvice
    before: float
    after: float
    """`before` and `after` are from the simulation of the log itself"""
    difference: float
    """mean over the log and its shaken copies; negative: the user waits less"""
    scatter: float
    """half-width of the 90 % prediction interval for one more copy, Student's t"""
    lost: float = 0.0
    """running time per job of the user that would be lost if the advice had killed all earlier jobs that ran longer"""

    @property
    def helps(self) -> bool:
        """Return whether the saved wait, less the cost of killed runs, exceeds 1 min, 2 % of the wait, and chance (in shaken copies)."""
        return bool(self.advice.advised) and -self.difference - self.lost > max(self.scatter, LEAST_GAIN, LEAST_SHARE * self.before)

    @property
    def saved_hours(self) -> float:
        """Return the hours of waiting saved, over all jobs of the user; 0 if there is no clear gain."""
        return -self.difference * self.advice.jobs / 3600 if self.helps else 0.0


@dataclass(frozen=True)
class AdviceGains:
    """The gain of each user alone, largest first, and of all jobs if all these users follow the advice."""

    workload: Workload
    policy: str
    """the simulated policy"""
    copies: int
    users: Sequence[UserGain]
    all_jobs: tuple[float, float, float]
    """mean wait of all jobs before, s; difference and scatter if all users who gain follow the advice"""

    @property
    def helped(self) -> list[UserGain]:
        """Return the users who gain clearly."""
        return [user for user in self.users if user.helps]


def simulate_advice(
    workload: Workload, advice: Sequence[UserAdvice], *, machine: Machine | None = None, copies: int = COPIES, progress: Bars = no_bars
) -> AdviceGains:
    """Simulate the log with the users' requests, with the requests of each advised user replaced, and with all of them replaced.

    The policy is EASY, or the machine's if it backfills and takes predictions. The simulations use the log and `copies` whose submissions
    are shaken by up to 30 s, the same copies for all. Each user's wait is the mean over the user's jobs.
    """
    policy, _ = simulated_policy(machine)
    scheduler = Scheduler(policy)
    advised = [one for one in advice if one.advised]
    requests = [workload.requested, *(advised_requests(workload, one) for one in advised)]
    alone = _means(workload, scheduler, machine, requests, [None, *(one.number for one in advised)], copies, progress)
    base, users = alone[0], []
    for k, one in enumerate(advised, 1):
        before, after = base[:, k], alone[k][:, k]
        interval = metrics.prediction_interval(after - before)
        users.append(UserGain(one, float(before[0]), float(after[0]), interval.mean, interval.half_width, _lost(workload, one)))
    users.sort(key=lambda user: (-user.saved_hours, user.difference))
    helped = [requests[k] for k, one in enumerate(advised, 1) if any(user.advice is one and user.helps for user in users)]
    all_jobs = (float(base[0, 0]), 0.0, 0.0)
    if helped:
        together = _means(workload, scheduler, machine, [np.minimum.reduce(helped)], [None], copies, progress)[0]
        interval = metrics.prediction_interval(together[:, 0] - base[:, 0])
        all_jobs = (float(base[0, 0]), interval.mean, interval.half_width)
    return AdviceGains(workload, policy.label, copies, users, all_jobs)


def _lost(workload: Workload, advice: UserAdvice) -> float:
    """Return the running time, s per job of the user, of jobs that the advice would have killed after the advised time."""
    mine = workload.columns["user"] == advice.number
    lost = 0
    for kind in advice.advised:
        assert kind.walltime is not None, "an advised kind has a walltime"
        killed = jobs_of_kind(workload, advice, kind) & (workload.requested > kind.walltime) & (workload.runtime > kind.walltime)
        lost += int(killed.sum()) * kind.walltime
    return lost / max(int(mine.sum()), 1)


def _means(
    workload: Workload,
    scheduler: Scheduler,
    machine: Machine | None,
    requests: Sequence[Array],
    users: Sequence[int | None],
    copies: int,
    progress: Bars,
) -> list[Array]:
    """Return mean waits, s: for each array of requests a row for the log and each copy, a column for each user (None: all)."""
    seeds = 1 + copies
    total = len(requests) * seeds

    def run(number: int, check: Callable[[int], None]) -> list[float]:
        which, seed = divmod(number, seeds)
        changed = replace(workload, requested=requests[which], believed=requests[which])
        jobs = changed if seed == 0 else shake(changed, SHAKE, seed - 1)
        schedule = simulate(jobs, scheduler, progress=check, machine=machine)
        owner, wait = schedule.workload.columns["user"], schedule.wait
        members = [np.ones(len(wait), bool) if user is None else owner == user for user in users]
        return [float(wait[mine].mean()) if mine.any() else 0.0 for mine in members]

    with progress(total, "simulations of advice") as show:
        means = np.array(in_threads(run, total, None, show))
    return list(means.reshape(len(requests), seeds, len(users)))
