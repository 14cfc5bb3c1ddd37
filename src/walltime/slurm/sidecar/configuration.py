"""What matters of a cluster's settings, partitions and reservations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache

from walltime.errors import WalltimeError
from walltime.slurm.records import ClusterRecords, expand, read_text

Minutes = int | None
"""A time limit; None is no limit."""
SOFT_LIMIT = "time_min_as_soft_limit"
_SPAN = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")


class SlurmError(WalltimeError):
    """Slurm did not answer, or not what was expected."""


class Mode(StrEnum):
    """What the cluster makes of TimeMin, and so what the side-car may do."""

    SOFT_LIMIT = "soft limit"
    """a started job keeps its limit: SchedulerParameters has time_min_as_soft_limit"""
    GIVE_BACK = "give-back"
    """backfill shortens a job that it starts, and the side-car must raise its limit again"""
    ADVICE = "advice only"
    """nothing may be changed"""


@dataclass(frozen=True)
class Reservation:
    """Nodes set aside, `start` to `end` (Unix times); no nodes means all."""

    name: str
    start: int
    end: int
    nodes: frozenset[str]


@dataclass(frozen=True)
class Partition:
    """A partition: its nodes, its longest time limit, minutes, and the quality of service that holds for all of its jobs."""

    nodes: frozenset[str]
    limit: Minutes
    qos: str = ""


@dataclass(frozen=True)
class Configuration:
    """`settings`: of `scontrol show config`, by name. `soft_limit`: whether time_min_as_soft_limit is set."""

    settings: dict[str, str]
    partitions: dict[str, Partition] = field(default_factory=dict)
    reservations: tuple[Reservation, ...] = ()

    @property
    def soft_limit(self) -> bool:
        """Whether TimeMin leaves the limit of a started job alone."""
        words = self.settings.get("SchedulerParameters", "").lower().split(",")
        return any(word.strip() == SOFT_LIMIT for word in words) and self.version >= (23, 11)

    @property
    def version(self) -> tuple[int, ...]:
        """Slurm's version, such as (24, 11); (0,) if it is unknown."""
        parts = self.settings.get("SLURM_VERSION", "").split(".")[:2]
        return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else (0,)

    @property
    def has_backfill(self) -> bool:
        """Whether anything reads TimeMin."""
        return self.settings.get("SchedulerType") == "sched/backfill"

    @property
    def enforces_limits(self) -> bool:
        """Whether limits of associations hold."""
        return any(word in self._enforced for word in ("limits", "safe", "qos", "all"))

    @property
    def enforces_safely(self) -> bool:
        """Whether a job starts only if what is left of a limit on used minutes is enough for its own limit."""
        return any(word in self._enforced for word in ("safe", "all"))

    @property
    def _enforced(self) -> str:
        return self.settings.get("AccountingStorageEnforce", "none").lower()

    @property
    def controller(self) -> str:
        """What changes when another slurmctld, or the same one anew, answers."""
        names = ("ClusterName", "SLURM_VERSION", "BOOT_TIME", "JobSubmitPlugins", "SlurmUser")
        return " ".join(self.settings.get(name, "") for name in names)

    def longest(self, partitions: Sequence[str]) -> Minutes:
        """The longest limit that a job in one of these partitions can have."""
        limits = [self.partitions[name].limit if name in self.partitions else None for name in partitions]
        return max((limit for limit in limits if limit is not None), default=None) if None not in limits else None

    def next_reservation(self, partitions: Sequence[str], now: float) -> Reservation | None:
        """The first reservation that has not ended, on nodes of one of these partitions."""
        nodes = frozenset[str]().union(*(self.partitions[name].nodes for name in partitions if name in self.partitions))
        met = [r for r in self.reservations if r.end > now and (not r.nodes or not nodes or nodes & r.nodes)]
        return min(met, key=lambda reservation: reservation.start, default=None)


def read_configuration(texts: Sequence[str]) -> Configuration:
    """The cluster in the outputs of `scontrol show config`, `partition` and `reservation`; raises SlurmError."""
    told = ClusterRecords()
    for text in texts:
        read_text(text, "scontrol", told)
    if "SchedulerType" not in told.settings or not told.partitions or "reservations" not in told.known:
        raise SlurmError("scontrol show: the settings, partitions or reservations are missing from its answer")
    try:
        partitions = {
            name: Partition(frozenset(expand(record.get("Nodes", ""))), minutes_of(record["MaxTime"]), _named(record.get("QoS", "")))
            for name, record in told.partitions.items()
        }
        reservations = tuple(
            Reservation(name, time_of(record["StartTime"]), time_of(record["EndTime"]), frozenset(expand(record.get("Nodes", ""))))
            for name, record in told.reservations.items()
        )
    except (KeyError, ValueError) as error:
        raise SlurmError(f"scontrol show: cannot be understood ({type(error).__name__}: {str(error)[:80]})") from error
    return Configuration(told.settings, partitions, reservations)


@lru_cache(maxsize=10_000)
def minutes_of(text: str) -> Minutes:
    """A limit as Slurm's commands print it.

    >>> minutes_of("1-02:30:00"), minutes_of("5:01"), minutes_of("UNLIMITED")
    (1590, 6, None)
    """
    if text.upper() in ("UNLIMITED", "INFINITE", "NOT_SET", "N/A", ""):
        return None
    match = _SPAN.fullmatch(text)
    if match is None:
        raise ValueError(text)
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return days * 1440 + hours * 60 + minutes + (seconds > 0)


@lru_cache(maxsize=100_000)
def time_of(text: str) -> int:
    """A time in UTC as Slurm's commands print it, 0 for one that is not known."""
    if text in ("N/A", "Unknown", "NONE", "None", ""):
        return 0
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def _named(text: str) -> str:
    """A name, empty where Slurm says that there is none."""
    return "" if text in ("N/A", "(null)") else text
