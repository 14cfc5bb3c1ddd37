"""The settings, partitions, reservations and limits of a cluster that affect the side-car."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from walltime.slurm.records import ClusterRecords, SlurmError, expand, parsing, with_parents
from walltime.slurm.squeue_fields import QueueJob
from walltime.slurm_values import Minutes, known, minutes_of, time_of

SOFT_LIMIT = "time_min_as_soft_limit"
NO_PARTITION_LIMIT = "partitiontimelimit"
"""The flag of a QOS whose jobs may have longer limits than their partition allows."""


class Mode(StrEnum):
    """The cluster's treatment of TimeMin, which decides what the side-car may do."""

    SOFT_LIMIT = "soft limit"
    """a job that starts keeps its limit: SchedulerParameters has time_min_as_soft_limit"""
    GIVE_BACK = "give-back"
    """backfill shortens the limit of a job that it starts, and the side-car must raise it again"""
    ADVICE = "advice only"
    """the side-car must not change anything"""


@dataclass(frozen=True)
class Reservation:
    """Nodes set aside from `start` to `end` (Unix times); no nodes means all nodes."""

    name: str
    start: int
    end: int
    nodes: frozenset[str]


@dataclass(frozen=True)
class Partition:
    """A partition: its nodes, its longest time limit (minutes, None for none), and the QOS that applies to all its jobs."""

    nodes: frozenset[str]
    limit: Minutes
    qos: str = ""


@dataclass(frozen=True)
class Configuration:
    """A cluster's configuration; `settings` are from `scontrol show config`, by name."""

    settings: dict[str, str]
    partitions: dict[str, Partition] = field(default_factory=dict)
    reservations: tuple[Reservation, ...] = ()

    @property
    def soft_limit(self) -> bool:
        """Return whether a job that starts keeps its limit in spite of TimeMin: time_min_as_soft_limit is set."""
        words = self.settings.get("SchedulerParameters", "").lower().split(",")
        return any(word.strip() == SOFT_LIMIT for word in words) and self.version >= (23, 11)

    @property
    def version(self) -> tuple[int, ...]:
        """Return Slurm's version, such as (24, 11); (0,) if it is unknown."""
        parts = self.settings.get("SLURM_VERSION", "").split(".")[:2]
        return tuple(int(part) for part in parts) if all(part.isdecimal() and len(part) < 5 for part in parts) else (0,)

    @property
    def has_backfill(self) -> bool:
        """Return whether the scheduler uses TimeMin, as only the backfill scheduler does."""
        return self.settings.get("SchedulerType") == "sched/backfill"

    @property
    def enforces_limits(self) -> bool:
        """Return whether Slurm enforces the limits of associations."""
        return self._enforces("limits", "safe", "qos", "all")

    @property
    def enforces_safely(self) -> bool:
        """Return whether a job starts only if the remaining minutes of a limit on use cover its time limit."""
        return self._enforces("safe", "all")

    def _enforces(self, *words: str) -> bool:
        return any(word in self.settings.get("AccountingStorageEnforce", "none").lower() for word in words)

    @property
    def controller(self) -> str:
        """Return a text that changes when slurmctld is restarted, or another one answers."""
        names = ("ClusterName", "SLURM_VERSION", "BOOT_TIME", "JobSubmitPlugins", "SlurmUser")
        return " ".join(self.settings.get(name, "") for name in names)

    def longest(self, partitions: Sequence[str]) -> Minutes:
        """Return the longest limit, minutes, that a job in these partitions can have."""
        return _largest([self.partitions[name].limit if name in self.partitions else None for name in partitions])

    def next_reservation(self, partitions: Sequence[str], now: float) -> Reservation | None:
        """Return the first reservation that has not ended, on nodes of one of these partitions."""
        nodes = frozenset[str]().union(*(self.partitions[name].nodes for name in partitions if name in self.partitions))
        found = [r for r in self.reservations if r.end > now and (not r.nodes or not nodes or nodes & r.nodes)]
        return min(found, key=lambda reservation: reservation.start, default=None)


def _largest(limits: Sequence[Minutes]) -> Minutes:
    """Return the largest limit; None (unlimited) if one of them is None or there are none."""
    return None if None in limits else max((limit for limit in limits if limit is not None), default=None)


@parsing("scontrol show")
def read_configuration(records: ClusterRecords) -> Configuration:
    """Parse the outputs of `scontrol show config`, `partition` and `reservation`; raises SlurmError."""
    if "SchedulerType" not in records.settings or not records.partitions or "reservations" not in records.known:
        raise SlurmError("scontrol show: its output lacks settings, partitions or reservations; check the command", "unknown_output")
    partitions = {
        name: Partition(frozenset(expand(record.get("Nodes", ""))), minutes_of(record["MaxTime"]), known(record.get("QoS", "")))
        for name, record in records.partitions.items()
    }
    reservations = tuple(
        Reservation(name, time_of(record["StartTime"]), time_of(record["EndTime"]), frozenset(expand(record.get("Nodes", ""))))
        for name, record in records.reservations.items()
    )
    return Configuration(records.settings, partitions, reservations)


@dataclass(frozen=True)
class Limits:
    """Limits on jobs, by name; `known` is False if they could not be read, so that every job may have one.

    `minutes`, `used`: pairs of `account` (including sub-accounts), `user` or `qos`, and a name, that have limits on minutes, and on minutes
    used so far; the latter only matter if AccountingStorageEnforce has `safe`. `wall`: MaxWall (minutes) of an account, or of an account
    and a user; `qos_wall`: MaxWall of a QOS; `no_partition_limit`: the QOS with the flag NO_PARTITION_LIMIT.
    """

    known: bool = True
    minutes: frozenset[tuple[str, str]] = frozenset()
    used: frozenset[tuple[str, str]] = frozenset()
    wall: Mapping[tuple[str, str], Minutes] = field(default_factory=dict)
    qos_wall: Mapping[str, Minutes] = field(default_factory=dict)
    no_partition_limit: frozenset[str] = frozenset()

    def apply_to(self, job: QueueJob, cluster: Configuration) -> bool:
        """Return whether Slurm compares the job's TimeMin, instead of its limit, with a limit on minutes."""
        qos = {job.qos, *(cluster.partitions[name].qos for name in job.partitions if name in cluster.partitions)}
        names = {("account", job.account), ("user", job.user), *(("qos", name) for name in qos)}
        return bool(names & self.minutes) or (cluster.enforces_safely and bool(names & self.used))

    def longest(self, job: QueueJob, cluster: Configuration) -> Minutes:
        """Return the longest limit, minutes, that a job's user can have chosen for it; at least its present limit."""
        caps = [] if job.qos in self.no_partition_limit else [cluster.longest(job.partitions)]
        if cluster.enforces_limits:
            caps += [self.qos_wall.get(job.qos), self.wall.get((job.account, job.user), self.wall.get((job.account, "")))]
            caps += [_largest([self.qos_wall.get(cluster.partitions[name].qos) for name in job.partitions if name in cluster.partitions])]
        known = [cap for cap in caps if cap is not None]
        return None if not known or job.limit is None else max(min(known), job.limit)


MINUTES = ("GrpTRESRunMins", "MaxTRESMins")
"""Limits on minutes that jobs may use. Slurm compares them with a job's TimeMin, not with its limit."""
MINUTES_OF_QOS = (*MINUTES, "MaxTRESRunMinsPA", "MaxTRESRunMinsPU")
USED = ("GrpTRESMins", "GrpWall")
"""Limits on minutes used so far, which matter only if AccountingStorageEnforce has `safe`."""


@parsing("sacctmgr show")
def read_limits(records: ClusterRecords) -> Limits:
    """Parse the tables of sacctmgr; raises SlurmError if they are incomplete or unreadable."""
    if not {"associations", "qos"} <= records.known:
        raise SlurmError("sacctmgr show: its output lacks associations or qualities of service; check the command")
    associations, qos = records.associations, records.qos
    accounts, users = [row for row in associations if not row["User"]], [row for row in associations if row["User"]]
    parents = {row["Account"]: row["ParentName"] for row in accounts}
    above = {account: with_parents(account, parents) for account in parents}

    def limited(limits: Sequence[str], qos_limits: Sequence[str]) -> frozenset[tuple[str, str]]:
        own = {row["Account"] for row in accounts if any(row[limit] for limit in limits)}
        inherited = {account for account, chain in above.items() if own & {*chain, "root"}}
        user_names = {row["User"] for row in users if any(row[limit] for limit in limits)}
        qos_names = {row["Name"] for row in qos if any(row[limit] for limit in qos_limits)}
        kinds = {"account": own | inherited, "user": user_names, "qos": qos_names}
        return frozenset((kind, name) for kind, names in kinds.items() for name in names)

    wall = {(row["Account"], row["User"]): minutes_of(row["MaxWall"]) for row in associations if row["MaxWall"]}
    for account, chain in above.items():
        nearest = next((wall[name, ""] for name in chain if (name, "") in wall), None)
        if nearest is not None:
            wall.setdefault((account, ""), nearest)
    return Limits(
        minutes=limited(MINUTES, MINUTES_OF_QOS),
        used=limited(USED, USED),
        wall=wall,
        qos_wall={row["Name"]: minutes_of(row["MaxWall"]) for row in qos if row["MaxWall"]},
        no_partition_limit=frozenset(row["Name"] for row in qos if NO_PARTITION_LIMIT in row["Flags"].lower()),
    )
