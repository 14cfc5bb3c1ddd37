"""Which jobs may be adjusted, and to what: pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from walltime.adjust.facts import Facts
from walltime.adjust.queue import QueuedJob
from walltime.errors import PolicyError

POLLS_IN_FLOOR = 5
"""A shortened job must live through so many polls, whatever the prediction."""


@dataclass(frozen=True)
class Bounds:
    """How far the side-car may go.

    `every`: seconds between two rounds. `floor`: least TimeMin, minutes. `gain`: a TimeMin above this part of the limit is not worth it.
    `a_minute`: changes a minute. `share`: largest part of the waiting jobs that may have a TimeMin of the side-car. `accounts`,
    `partitions`: only these; empty for all. `tasks`: of an array, at most so many of the next tasks, as each becomes a record of its own.
    """

    every: float = 30.0
    floor: int = 10
    gain: float = 0.9
    a_minute: int = 60
    share: float = 0.5
    accounts: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()
    tasks: int = 10

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
        if self.a_minute < 1 or self.tasks < 1:
            raise PolicyError("the changes a minute and the tasks of an array must be one or more")


@dataclass(frozen=True)
class RunMinutes:
    """Where limits on running minutes hold (GrpTRESRunMins and the like): accounts, with those below them, users and qualities of service.

    `known`: False if they could not be read, so that they may hold anywhere.
    """

    known: bool = True
    accounts: frozenset[str] = frozenset()
    qos: frozenset[str] = frozenset()
    users: frozenset[str] = field(default_factory=frozenset)


def read_run_minutes(associations: str, qos: str) -> RunMinutes:
    """The limits in the answers of sacctmgr, as `Slurm.run_minute_limits` asks for them."""
    parents: dict[str, str] = {}
    limited, users = set[str](), set[str]()
    for line in associations.splitlines():
        account, parent, user, limit = (line.split("|") + ["?"] * 4)[:4]
        if not user:
            parents[account] = parent
        if limit:
            (users if user else limited).add(user or account)
    accounts = set()
    for account in parents:
        above: list[str] = [account]
        while parents.get(above[-1]) and parents[above[-1]] not in above:
            above.append(parents[above[-1]])
        if limited & {*above, *(["root"] if "root" in limited else [])}:
            accounts.add(account)
    named = (line.split("|") for line in qos.splitlines() if line)
    return RunMinutes(True, frozenset(accounts | limited), frozenset(name for name, *limits in named if any(limits)), frozenset(users))


def why_never(job: QueuedJob, facts: Facts, limits: RunMinutes, bounds: Bounds, now: float) -> str | None:
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
    if not all(name in facts.partitions for name in job.partitions):
        return "its partition is unknown"
    if facts.enforces_limits:
        if not limits.known:
            return "the limits on running minutes could not be read"
        if job.account in limits.accounts or job.qos in limits.qos or job.user in limits.users:
            return "limits on running minutes"
    if "runmin" in job.reason.lower():
        return "limits on running minutes"
    if job.begin > now or job.begin == 0 or job.reason.startswith(("Dependency", "BeginTime")):
        return "it cannot start yet"
    reservation = facts.next_reservation(job.partitions, now)
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
