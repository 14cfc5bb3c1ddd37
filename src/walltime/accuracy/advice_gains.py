"""Simulate the waiting time that users would save by following the advice: each user alone, and all of them together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from walltime import metrics
from walltime.accuracy.adjusted import Bars, no_bars, simulated_policy
from walltime.accuracy.advice import ENOUGH, UserAdvice, advised_jobs, jobs_of_kind
from walltime.machine import Machine
from walltime.machine.warm_start import carried_over, stretch
from walltime.metrics.right_size import needs
from walltime.node_demands import runs_on_nodes
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler
from walltime.simulation.spread import SHAKE
from walltime.simulation.threads import in_threads
from walltime.wording import sanitize
from walltime.workload import Array, Workload
from walltime.workload.scaling import shake

WEEK = 7 * 86_400
COPIES = 5
"""Default number of shaken copies of the log."""
DOUBTED = ("cores", "gpus", "memory", "time")
"""The order in which resources are removed from the advice if they do not clearly help."""
MOST_ON_NODES = 6000
"""Largest number of jobs simulated on a machine of nodes, where simulations take seconds: the jobs of the last weeks."""
LEAST_GAIN, LEAST_SHARE = 60, 0.02
"""Smallest gain of a user that counts as clear: s per job, and as a share of the wait."""


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
    copies: int = COPIES
    """number of shaken copies; fewer if no more of them could make the gain clear"""

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
    """the simulated jobs"""
    log_jobs: int
    """the number of jobs in the whole log"""
    policy: str
    """the simulated policy"""
    copies: int
    """largest number of shaken copies for a user"""
    users: Sequence[UserGain]
    all_jobs: tuple[float, float, float]
    """mean wait of all jobs with their own requests, s, and its difference and scatter if all users who gain follow the advice"""
    site: str
    """name of the machine, or of the log if the machine has none"""
    few: int = 0
    """number of users who are not simulated, because they have fewer than `ENOUGH` of the simulated jobs"""

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
    removed. Copies that cannot make a gain clear are not simulated, so users without a clear gain may have fewer of them. On single nodes,
    only the last weeks with at most `MOST_ON_NODES` jobs are simulated, beginning with the jobs that were recorded as running and waiting.
    """
    policy, _ = simulated_policy(machine, predicts=False)
    jobs = workload if machine is None or not runs_on_nodes(policy, machine) else last_weeks(workload, machine, MOST_ON_NODES)
    worth = [one for one in advice if one.advised]
    advised = [one for one in worth if jobs is workload or (jobs.columns[one.by] == one.number).sum() >= ENOUGH]
    simulated = _Simulations(workload, jobs, Scheduler(policy), machine, 1 + copies, progress)
    base = simulated.all_copies(jobs, advised)
    with progress(len(advised), "users simulated") as show:
        users = in_threads(lambda k, check: simulated.gain(advised[k], base[:, [1 + 2 * k, 2 + 2 * k]], check), len(advised), None, show)
    users.sort(key=lambda user: (-user.saved_hours, user.difference))
    together = [user.advice for user in users if user.helps]
    all_jobs = (float(base[:, 0].mean()), 0.0, 0.0)
    if together:
        means = simulated.all_copies(reduce(advised_jobs, together, jobs), [])
        interval = metrics.prediction_interval(means[:, 0] - base[:, 0])
        all_jobs = (all_jobs[0], interval.mean, interval.half_width)
    site = workload.origin.site if machine is None or machine.name == Machine.name else sanitize(machine.name)
    return AdviceGains(jobs, len(workload), policy.label, copies, users, all_jobs, site, len(worth) - len(advised))


def last_weeks(workload: Workload, machine: Machine, most: int) -> Workload:
    """Return the jobs submitted in the last weeks, at most `most` but at least one week, with those recorded as running or waiting before.

    A log with no more jobs is returned unchanged.
    """
    end = int(workload.submit[-1]) + 1
    weeks = np.bincount((end - 1 - workload.submit) // WEEK)
    count = max(int((np.cumsum(weeks) <= most).sum()), 1)
    return workload if count == len(weeks) else stretch(workload, machine, end - count * WEEK, end)


def _is_clear(gain: float, scatter: float, before: float) -> bool:
    """Return whether a gain, s per job, exceeds a minute, 2 % of the wait, and the scatter."""
    return gain > max(scatter, LEAST_GAIN, LEAST_SHARE * before)


def may_be_clear(known: Sequence[float], count: int, before: float) -> bool:
    """Return whether the mean of `count` gains, s per job, can be clear if these are the first ones; with all known, whether it is.

    The scatter is smallest if all unknown gains are equal; their excess over the mean of the known ones solves a quadratic inequality.
    """
    values = np.array(known)
    mean, others = float(values.mean()), count - len(values)
    if not others:
        interval = metrics.prediction_interval(values)
        return _is_clear(interval.mean, interval.half_width, before)
    share, least = others / count, max(LEAST_GAIN, LEAST_SHARE * before)
    unit = metrics.prediction_interval(np.array([1.0, *[0.0] * (count - 1)])).half_width ** 2 * count / (count - 1)  # of a sum of squares
    spread, cost = float(((values - mean) ** 2).sum()), unit * len(values) * share - share**2
    if cost <= 0:
        return True
    excess = max(mean * share / cost, (least - mean) / share)
    return bool((mean + share * excess) ** 2 >= unit * (spread + len(values) * share * excess**2))


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
class _Variant:
    """The log with one user's advised requests; `waits`: mean waits, s, of this user's jobs and of all other jobs in the first copies."""

    advice: UserAdvice
    jobs: Workload
    lost: float
    waits: list[Array] = field(default_factory=list)


@dataclass(frozen=True)
class _Simulations:
    """Simulate variants of the jobs and their shaken copies; `log`: the whole log; `count`: the number of copies, with the jobs."""

    log: Workload
    workload: Workload
    scheduler: Scheduler
    machine: Machine | None
    count: int
    progress: Bars

    def all_copies(self, jobs: Workload, users: Sequence[UserAdvice]) -> Array:
        """Return mean waits, s, with a row for each copy: of all jobs and, for each user, of the user's jobs and of all others."""
        with self.progress(self.count, "simulations of all jobs") as show:
            return np.array(in_threads(lambda copy, check: self._waits(jobs, copy, users, check), self.count, None, show))

    def gain(self, advice: UserAdvice, base: Array, check: Callable[[int], None]) -> UserGain:
        """Return the gain of a user; `base`: mean waits with the users' requests, s, of the user's jobs and of all others by copy."""
        before = float(base[:, 0].mean())

        def variant(advice: UserAdvice) -> _Variant:
            return _Variant(advice, advised_jobs(self.workload, advice), _lost(self.log, advice))

        def wait(one: _Variant, copy: int) -> float:
            if len(one.waits) == copy:
                one.waits.append(self._waits(one.jobs, copy, [one.advice], check)[1:])
            return float(one.waits[copy][0])

        def is_clear(gain_of: Callable[[int], float]) -> bool:
            gains = list[float]()
            while len(gains) < self.count:
                gains.append(gain_of(len(gains)))
                if not may_be_clear(gains, self.count, before):
                    return False
            return True

        def worth(fewer: _Variant, more: _Variant) -> bool:
            return is_clear(lambda copy: wait(fewer, copy) - wait(more, copy) - (more.lost - fewer.lost))

        best = variant(advice)
        for resource in DOUBTED:
            names = best.advice.resources
            if resource in names and len(names) > 1:
                fewer = variant(best.advice.only([name for name in names if name != resource]))
                best = best if worth(fewer, best) else fewer
        if not is_clear(lambda copy: float(base[copy, 0]) - wait(best, copy) - best.lost):
            wait(best, min(len(best.waits), 1))  # an interval requires two
        waits, base = np.array(best.waits), base[: len(best.waits)]
        own, others = (metrics.prediction_interval(waits[:, k] - base[:, k]) for k in (0, 1))
        before, after = float(base[:, 0].mean()), float(waits[:, 0].mean())
        return UserGain(best.advice, before, after, own.mean, own.half_width, best.lost, others.mean, others.half_width, len(waits) - 1)

    def _waits(self, jobs: Workload, copy: int, users: Sequence[UserAdvice], check: Callable[[int], None]) -> Array:
        """Return the mean wait of all jobs and, for each user, of the user's jobs and of all others, s."""
        shaken = jobs if copy == 0 else shake(jobs, SHAKE, copy - 1)
        schedule = simulate(shaken, self.scheduler, progress=check, machine=self.machine)
        measured = ~carried_over(schedule.workload)
        own = [schedule.workload.columns[one.by] == one.number for one in users]
        groups = [measured, *(measured & group for mine in own for group in (mine, ~mine))]
        return np.array([float(schedule.wait[group].mean()) if group.any() else 0.0 for group in groups])
