"""Who gains and who loses between two schedules of the same jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from walltime.metrics.jobs import mean
from walltime.metrics.summary import Averages

Array = np.ndarray


@dataclass(frozen=True)
class Side(Averages):
    """The jobs whose wait is shorter, equal or longer under the second schedule."""

    jobs: int
    users: int | None
    """whose mean wait is; None where the log does not name users"""
    processor_hours: float
    """used by the jobs"""
    mean_change: float
    """of the wait, s, over the jobs; nan without any"""


@dataclass(frozen=True)
class ChangedUser(Averages):
    """A user whose waits have changed."""

    user: int | str
    """number, or name where the log has names"""
    jobs: int
    mean_before: float
    """mean wait, s"""
    mean_after: float
    """mean wait, s"""


@dataclass(frozen=True)
class ChangedJob(Averages):
    """A job whose wait has changed."""

    job_id: int
    user: int | str | None
    """number, or name where the log has names; None where the log does not say"""
    procs: int
    runtime: int
    """s"""
    before: int
    """wait, s"""
    after: int
    """wait, s"""


@dataclass(frozen=True)
class Gains:
    """Who waits shorter, equally long and longer; the largest changes first, of users in the sum of their waits."""

    shorter: Side
    equal: Side
    longer: Side
    winning_users: Sequence[ChangedUser]
    losing_users: Sequence[ChangedUser]
    winning_jobs: Sequence[ChangedJob]
    losing_jobs: Sequence[ChangedJob]

    def as_dict(self) -> dict[str, Any]:
        """The same ready for JSON."""
        sides = {name: getattr(self, name).as_dict() for name in ("shorter", "equal", "longer")}
        lists = ("winning_users", "losing_users", "winning_jobs", "losing_jobs")
        return sides | {name: [asdict(one) for one in getattr(self, name)] for name in lists}

    def with_names(self, name_of: Callable[[int], str]) -> Gains:
        """The same with names in place of the users' numbers."""

        def users(changed: Sequence[ChangedUser]) -> list[ChangedUser]:
            return [replace(one, user=name_of(int(one.user))) for one in changed]

        def jobs(changed: Sequence[ChangedJob]) -> list[ChangedJob]:
            return [one if one.user is None else replace(one, user=name_of(int(one.user))) for one in changed]

        return replace(
            self,
            winning_users=users(self.winning_users),
            losing_users=users(self.losing_users),
            winning_jobs=jobs(self.winning_jobs),
            losing_jobs=jobs(self.losing_jobs),
        )


def gains(*, before: Array, after: Array, procs: Array, runtime: Array, job_id: Array, user: Array | None = None, most: int = 5) -> Gains:
    """Compare the waits of the same jobs under two schedules.

    `before, after`: waits, int64 s, `procs`: int64 processors, `runtime`: int64 s under the second one, `job_id`: int64, `user`:
    int64, -1 where unknown, or None; each of shape (jobs,). `most`: how many winners and losers are named at most. A user with as
    much waiting in all as before counts as equal.

    >>> a = np.array([1, 1, 1])
    >>> found = gains(before=np.array([9, 5, 0]), after=np.array([2, 5, 4]), procs=a, runtime=a * 3600, job_id=np.array([7, 8, 9]))
    >>> found.shorter.jobs, found.longer.processor_hours, found.winning_jobs[0].job_id
    (1, 1.0, 7)
    """
    change = after - before
    known = np.zeros(len(change), bool) if user is None else user >= 0
    users, place = np.unique(user[known] if user is not None else np.zeros(0, np.int64), return_inverse=True)
    of_user = np.zeros(len(users), np.int64)
    np.add.at(of_user, place, change[known])
    hours = procs * runtime / 3600

    def side(sign: int) -> Side:
        inside = np.sign(change) == sign
        count = int((np.sign(of_user) == sign).sum()) if len(users) else None
        return Side(int(inside.sum()), count, float(hours[inside].sum()), mean(change[inside]))

    def changed_user(k: int) -> ChangedUser:
        mine = np.flatnonzero(known)[place == k]
        return ChangedUser(int(users[k]), len(mine), mean(before[mine]), mean(after[mine]))

    def changed_job(k: int) -> ChangedJob:
        who = int(user[k]) if user is not None and known[k] else None
        return ChangedJob(int(job_id[k]), who, int(procs[k]), int(runtime[k]), int(before[k]), int(after[k]))

    return Gains(
        shorter=side(-1),
        equal=side(0),
        longer=side(1),
        winning_users=[changed_user(k) for k in _lowest(of_user, most)],
        losing_users=[changed_user(k) for k in _lowest(-of_user, most)],
        winning_jobs=[changed_job(k) for k in _lowest(change, most)],
        losing_jobs=[changed_job(k) for k in _lowest(-change, most)],
    )


def _lowest(change: Array, most: int) -> list[int]:
    """The places of the lowest values below 0, the lowest first, equal ones in their order."""
    order = np.argsort(change, kind="stable")[:most]
    return [k for k in order.tolist() if change[k] < 0]
