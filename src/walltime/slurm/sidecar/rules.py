"""Which jobs may be adjusted, and to what: pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from walltime.errors import PolicyError
from walltime.slurm.configuration import Configuration, Limits
from walltime.slurm.queue import QueueJob

POLLS_IN_FLOOR = 5
"""A shortened job must live through so many polls, whatever the prediction."""


@dataclass(frozen=True)
class Bounds:
    """How far the side-car may go.

    `every`: seconds between two rounds. `floor`: least TimeMin, minutes. `gain`: a TimeMin above this part of the limit is not worth it.
    `a_minute`: changes a minute. `share`: largest part of the waiting jobs that may have a TimeMin of the side-car. `accounts`,
    `partitions`: only these; empty for all. `tasks`: of an array, at most so many of the next tasks, as each becomes a record of its own.
    `slip`: by which part of its wait the reserved start of a queue's head may pass before nothing is adjusted in its partition. `overdue`:
    which part of a partition a user's jobs may hold beyond their TimeMin, over a week. `misses`: so many outlived ones a week are free.
    """

    every: float = 30.0
    floor: int = 10
    gain: float = 0.9
    a_minute: int = 60
    share: float = 0.5
    accounts: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()
    tasks: int = 10
    slip: float = 0.5
    overdue: float = 0.01
    misses: int = 3

    def __post_init__(self) -> None:
        if not 1 <= self.every <= 3600:
            raise PolicyError(f"the time between two rounds must be 1 to 3600 s, not {self.every:g}")
        if self.floor < 1:
            raise PolicyError(f"the least TimeMin must be one minute or more, not {self.floor}")
        if self.floor * 60 < POLLS_IN_FLOOR * self.every:
            raise PolicyError(
                f"a least TimeMin of {self.floor} minutes is less than {POLLS_IN_FLOOR} rounds of {self.every:g} s; "
                "raise it, or let less time pass between two rounds"
            )
        if not 0 < self.share <= 1 or not 0 < self.gain <= 1:
            raise PolicyError("the share and the gain are above 0 and at most 1")
        if not self.slip >= 0 or not self.overdue >= 0 or self.misses < 0:
            raise PolicyError("the slip of heads, the share of overdue jobs and the number of misses are 0 or more")
        if self.a_minute < 1 or self.tasks < 1:
            raise PolicyError("the changes a minute and the tasks of an array must be one or more")


def why_never(job: QueueJob, cluster: Configuration, limits: Limits, bounds: Bounds, now: float) -> str | None:
    """Why this waiting job must not have a TimeMin of the side-car's, None if it may; `now`: Unix time."""
    if job.limit is None:
        return "it has no time limit"
    if job.held:
        return "it is held"
    for wrong, why in (
        (job.het, "heterogeneous"),
        (job.deadline, "Deadline"),
        (job.licences, "licences"),
        (job.reservation, "reservation"),
    ):
        if wrong:
            return why
    if bounds.accounts and job.account not in bounds.accounts:
        return "account not chosen"
    if bounds.partitions and not bounds.partitions.issuperset(job.partitions):
        return "partition not chosen"
    if not all(name in cluster.partitions for name in job.partitions):
        return "its partition is unknown"
    if cluster.enforces_limits:
        if not limits.known:
            return "the limits on minutes could not be read"
        if limits.meet(job, cluster):
            return "limits on minutes"
    if any(word in job.reason.lower() for word in ("runmin", "minutes", "grpwall")):
        return "limits on minutes"
    if job.begin > now or job.begin == 0 or job.reason.startswith(("Dependency", "BeginTime")):
        return "it cannot start yet"
    reservation = cluster.next_reservation(job.partitions, now)
    # it may start at any time before the next round but one, and would then have its whole limit
    if reservation is not None and now + job.limit * 60 + 4 * bounds.every + 120 > reservation.start:
        return "a reservation within its limit"
    return None


def time_min_of(seconds: float | None, limit: int, bounds: Bounds) -> int | None:
    """The TimeMin, minutes, of a job with this limit (minutes) and prediction (s); None if none is worth setting.

    >>> time_min_of(1201, 60, Bounds()), time_min_of(5, 60, Bounds()), time_min_of(59 * 60, 60, Bounds()), time_min_of(None, 60, Bounds())
    (21, 10, None, None)
    """
    if seconds is None or not math.isfinite(seconds):
        return None
    minutes = max(math.ceil(seconds / 60), bounds.floor)
    return minutes if minutes < limit and minutes <= bounds.gain * limit else None


def counts(reasons: Mapping[str, str]) -> dict[str, int]:
    """How many jobs there are for each reason."""
    found: dict[str, int] = {}
    for reason in reasons.values():
        found[reason] = found.get(reason, 0) + 1
    return dict(sorted(found.items()))
