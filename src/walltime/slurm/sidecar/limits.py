"""What associations and qualities of service say about the limits of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from walltime.slurm.sidecar.configuration import Configuration, Minutes, minutes_of
from walltime.slurm.sidecar.queue import QueueJob

FREE = "partitiontimelimit"
"""The flag of a quality of service whose jobs may be longer than their partition allows."""


@dataclass(frozen=True)
class Limits:
    """Limits on jobs, by name; `known` is False if they could not be read, so that they may be anywhere.

    `minutes` and `used`: accounts, with those below them, that have limits on minutes (GrpTRESRunMins, MaxTRESMins), and on minutes used
    so far (GrpTRESMins, GrpWall), which count where limits are safe; `user_...` and `qos_...` the same of users and qualities of service.
    `wall`: MaxWall, minutes, of an account, or of an account and a user; `qos_wall` of a quality of service; `free`: those with FREE.
    """

    known: bool = True
    minutes: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()
    user_minutes: frozenset[str] = frozenset()
    user_used: frozenset[str] = frozenset()
    qos_minutes: frozenset[str] = frozenset()
    qos_used: frozenset[str] = frozenset()
    wall: Mapping[tuple[str, str], Minutes] = field(default_factory=dict)
    qos_wall: Mapping[str, Minutes] = field(default_factory=dict)
    free: frozenset[str] = frozenset()

    def meet(self, job: QueueJob, cluster: Configuration) -> bool:
        """Whether Slurm would compare the job's TimeMin, not its limit, with a limit on minutes."""
        qos = {job.qos, *(cluster.partitions[name].qos for name in job.partitions if name in cluster.partitions)}
        found = job.account in self.minutes or job.user in self.user_minutes or bool(qos & self.qos_minutes)
        if cluster.enforces_safely:
            found |= job.account in self.used or job.user in self.user_used or bool(qos & self.qos_used)
        return found

    def longest(self, job: QueueJob, cluster: Configuration) -> Minutes:
        """The longest limit that the user of a job can have chosen for it; never less than the one that it has."""
        caps = [] if job.qos in self.free else [cluster.longest(job.partitions)]
        if cluster.enforces_limits:
            caps += [self.qos_wall.get(job.qos), self.wall.get((job.account, job.user), self.wall.get((job.account, "")))]
            of_partitions = [self.qos_wall.get(cluster.partitions[name].qos) for name in job.partitions if name in cluster.partitions]
            caps += [None if None in of_partitions else max((cap for cap in of_partitions if cap is not None), default=None)]
        known = [cap for cap in caps if cap is not None]
        return None if not known or job.limit is None else max(min(known), job.limit)


def read_limits(associations: str, qos: str) -> Limits:
    """The limits in the answers of sacctmgr, as `Slurm.limits` asks for them; raises ValueError for a time that is none."""
    parents: dict[str, str] = {}
    minutes, used = set[str](), set[str]()
    user_minutes, user_used = set[str](), set[str]()
    wall: dict[tuple[str, str], Minutes] = {}
    for line in associations.splitlines():
        account, parent, user, longest, *limits = (line.split("|") + [""] * 8)[:8]
        if not user:
            parents[account] = parent
        if longest:
            wall[account, user] = minutes_of(longest)
        if any(limits[:2]):
            (user_minutes if user else minutes).add(user or account)
        if any(limits[2:]):
            (user_used if user else used).add(user or account)
    for account in parents:
        above = _above(account, parents)
        minutes |= {account} if minutes & above else set()
        used |= {account} if used & above else set()
        nearest = next((wall[name, ""] for name in _chain(account, parents) if (name, "") in wall), None)
        if nearest is not None:
            wall.setdefault((account, ""), nearest)
    rows = [(line.split("|") + [""] * 9)[:9] for line in qos.splitlines() if line]
    return Limits(
        True,
        frozenset(minutes),
        frozenset(used),
        frozenset(user_minutes),
        frozenset(user_used),
        frozenset(row[0] for row in rows if any(row[3:7])),
        frozenset(row[0] for row in rows if any(row[7:])),
        wall,
        {row[0]: minutes_of(row[1]) for row in rows if row[1]},
        frozenset(row[0] for row in rows if FREE in row[2].lower()),
    )


def _chain(account: str, parents: Mapping[str, str]) -> list[str]:
    """The account and those above it, the nearest first."""
    found = [account]
    while parents.get(found[-1]) and parents[found[-1]] not in found:
        found.append(parents[found[-1]])
    return found


def _above(account: str, parents: Mapping[str, str]) -> set[str]:
    return {*_chain(account, parents), "root"}
