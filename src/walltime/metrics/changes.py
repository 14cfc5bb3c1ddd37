"""Jobs and users that gain or lose between two schedules of the same jobs."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

import numpy as np

from walltime.metrics.jobs import mean
from walltime.metrics.summary import Averages

Array = np.ndarray


@dataclass(frozen=True)
class Side(Averages):
    """The jobs whose wait is shorter, equal or longer under the second schedule."""

    jobs: int
    users: int | None
    """users whose mean wait changed in this way; None if the log does not name users"""
    processor_hours: float
    """processor-hours of these jobs"""
    mean_change: float
    """mean change of the wait over these jobs, s; NaN without jobs"""


@dataclass(frozen=True)
class ChangedUser(Averages):
    """A user whose mean wait, s, has changed."""

    user: int | str
    """number, or name if the log has names"""
    jobs: int
    mean_before: float
    mean_after: float


@dataclass(frozen=True)
class ChangedJob(Averages):
    """A job whose wait has changed; times in s."""

    job_id: int
    user: int | str | None
    """number, or name if the log has names; None if unknown"""
    procs: int
    runtime: int
    before: int
    after: int


@dataclass(frozen=True)
class Gains:
    """The jobs with shorter, equal and longer waits, and the users and jobs with the largest changes, in descending order."""

    shorter: Side
    equal: Side
    longer: Side
    winning_users: Sequence[ChangedUser]
    losing_users: Sequence[ChangedUser]
    winning_jobs: Sequence[ChangedJob]
    losing_jobs: Sequence[ChangedJob]

    def as_dict(self) -> dict[str, Any]:
        """Return the gains for JSON."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: one.as_dict() if isinstance(one, Side) else list(map(asdict, one)) for name, one in values.items()}

    def with_names(self, name_of: Callable[[int], str]) -> Self:
        """Return the gains with names in place of the users' numbers."""
        changed: dict[str, Any] = {
            name: [one if one.user is None else replace(one, user=name_of(int(one.user))) for one in getattr(self, name)]
            for name in ("winning_users", "losing_users", "winning_jobs", "losing_jobs")
        }
        return replace(self, **changed)


def gains(*, before: Array, after: Array, procs: Array, runtime: Array, job_id: Array, user: Array | None = None, most: int = 5) -> Gains:
    """Compare the waits of the same jobs under two schedules.

    `before, after`: waits, int64 s; `procs`: int64 processors; `runtime`: int64 s under the second schedule; `job_id`: int64; `user`:
    int64, -1 where unknown, or None; each of shape (jobs,). `most`: maximum number of winners and losers to name. A user with the same
    total wait as before counts as equal.

    >>> a = np.array([1, 1, 1])
    >>> found = gains(before=np.array([9, 5, 0]), after=np.array([2, 5, 4]), procs=a, runtime=a * 3600, job_id=np.array([7, 8, 9]))
    >>> found.shorter.jobs, found.longer.processor_hours, found.winning_jobs[0].job_id
    (1, 1.0, 7)
    """
    change = after - before
    known = np.zeros(len(change), bool) if user is None else user >= 0
    users, place = np.unique(user[known] if user is not None else np.zeros(0, np.int64), return_inverse=True)
    by_user = np.zeros(len(users), np.int64)
    np.add.at(by_user, place, change[known])
    hours = procs * runtime / 3600

    def side(sign: int) -> Side:
        inside = np.sign(change) == sign
        count = int((np.sign(by_user) == sign).sum()) if len(users) else None
        return Side(int(inside.sum()), count, float(hours[inside].sum()), mean(change[inside]))

    def largest_users(change: Array) -> list[ChangedUser]:
        own = [(k, np.flatnonzero(known)[place == k]) for k in _lowest(change, most)]
        return [ChangedUser(int(users[k]), len(jobs), mean(before[jobs]), mean(after[jobs])) for k, jobs in own]

    def largest_jobs(change: Array) -> list[ChangedJob]:
        rows = ((k, tuple(int(column[k]) for column in (procs, runtime, before, after))) for k in _lowest(change, most))
        return [ChangedJob(int(job_id[k]), int(user[k]) if user is not None and known[k] else None, *row) for k, row in rows]

    shorter, equal, longer = (side(sign) for sign in (-1, 0, 1))
    winners, losers = largest_users(by_user), largest_users(-by_user)
    return Gains(shorter, equal, longer, winners, losers, largest_jobs(change), largest_jobs(-change))


def _lowest(change: Array, most: int) -> list[int]:
    """Return the indices of the lowest negative values, in ascending order of the values."""
    order = np.argsort(change, kind="stable")[:most]
    return [k for k in order.tolist() if change[k] < 0]
