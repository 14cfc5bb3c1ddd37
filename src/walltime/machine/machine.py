"""Machines with pools of equal nodes, partitions of pools, outages and limits, and their files (machine.toml)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from walltime.declared import LARGEST_INTEGER, Field, wrong_field
from walltime.durations import seconds_of
from walltime.errors import LogError, WorkloadError
from walltime.toml_file import NOTHING, TomlFile, to_toml
from walltime.wording import printable

LIMIT_COLUMNS = ("user", "group", "queue", "partition", "array_job", "procs", "requested")
"""The columns by which a limit may be counted."""
Name = Annotated[str, Field(least=1)]
Time = Annotated[int | datetime, Field(label="a date and time, or seconds from the start of the log")]
"""A date and time without a zone is local time of the site."""
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY = 86_400
Count = Annotated[int, Field(least=0)]
YEAR = 31_536_000
Delay = Annotated[int, Field(least=0, most=YEAR)]


def length_of(value: int | str) -> int:
    """Return the seconds of a length, given as seconds or in Slurm's form days-hours:minutes:seconds; raises WorkloadError.

    >>> length_of("1-12:00:00"), length_of("30:00"), length_of(90), length_of("45")
    (129600, 1800, 90, 2700)
    """
    try:
        return value if isinstance(value, int) else seconds_of(value)
    except ValueError:
        raise WorkloadError(f"a length of time must be seconds, or a text such as '1-12:00:00', not {value!r}") from None


Length = Annotated[int, Field(accepts=int | str, read=length_of, label="seconds, or as in '1-12:00:00'")]


PREEMPT_MODES = ("off", "cancel", "requeue")
PreemptMode = Annotated[str, Field(known=PREEMPT_MODES)]


def _days(days: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of days, given as a tuple, a name or a span; raises WorkloadError."""
    names = days.split("-", 1) if isinstance(days, str) else days
    for name in names:
        if name not in DAYS:
            raise WorkloadError(f"a day must be one of {', '.join(DAYS)}, or a span such as 'mon-fri', not {name!r}", "wrong_day")
    if not isinstance(days, str) or len(names) == 1:
        return tuple(names)
    begin, end = map(DAYS.index, names)
    return tuple(DAYS[k % 7] for k in range(begin, end + 1 if end >= begin else end + 8))


def _settings(given: Mapping[str, Any]) -> dict[str, str]:
    return {name: {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value) for name, value in given.items()}


def _names(by: str | tuple[str, ...]) -> tuple[str, ...]:
    return (by,) if isinstance(by, str) else by


def _column(name: str) -> str:
    if not name.isidentifier() or name in ("name", "nodes", "procs", "by", "partition", "jobs"):
        raise WorkloadError(f"must be the name of a column, such as gpus, not {name!r}", "wrong_day")
    return name


@dataclass(frozen=True)
class Pool:
    """Equal nodes."""

    name: Name
    nodes: Annotated[int, Field(least=1)]
    """number of nodes"""
    procs: Annotated[int, Field(least=1)]
    """processors of each node"""
    second: Annotated[int, Field("{second}", least=0)] = 0
    """units of the second resource on each node, under the name of the resource"""
    memory: Count = 0
    """memory of each node (MB) where the second resource is another one; 0 for no limit"""
    weight: Count = 1
    """as Slurm's Weight: under Slurm's scheduling, nodes of a lower weight are taken first"""
    features: tuple[str, ...] = ()
    """the features of each node, which jobs request as constraints (column `constraints`)"""
    gpu_type: str = ""
    """the type of each node's GPUs, which jobs request (column `requested_gpu_type`)"""

    def __post_init__(self) -> None:
        _check(self, f"pool {self.name!r}")


@dataclass(frozen=True)
class Partition:
    """A partition, to which jobs are submitted."""

    name: Name
    pools: tuple[str, ...]
    """its pools, in the order in which jobs take them"""
    exclusive: bool = False
    """whether a job gets whole nodes"""
    tier: int = 0
    """jobs of partitions with a higher tier are considered first"""
    max_time: Annotated[int | None, Field(accepts=int | str, read=length_of, label="seconds, or as in '1-12:00:00'")] = None
    """the longest request (s); a longer one is cut to it"""
    job_factor: int = 1
    """the partition's part of a job's priority, as Slurm's PriorityJobFactor"""
    widest: Annotated[int | None, Field(least=1)] = None
    """maximum number of processors of jobs without a partition in the log; such jobs go to the first partition that accepts them"""
    longest: Annotated[int | None, Field(accepts=int | str, read=length_of, label="seconds, or as in '1-12:00:00'")] = None
    """the longest request of jobs without a partition (s)"""
    least_loaded: bool = False
    """whether Slurm's scheduling takes the nodes with the largest share of free processors first, as with LLN=YES"""
    since: Time | None = None
    """the earliest submission of jobs without a partition"""
    until: Time | None = None
    """the latest submission of jobs without a partition"""
    preempt: PreemptMode = "off"
    """under Slurm's scheduling, whether jobs of partitions with a higher tier may preempt its jobs: `off`, `cancel` or `requeue`"""
    grace: Length = 0
    """how long its jobs run on when they are preempted (s)"""


@dataclass(frozen=True)
class Share:
    """An account, or a user of an account, and its share of the machine relative to its siblings, as in Slurm's fair share."""

    account: Name
    user: Name | None = None
    """a user of the account; without it, the account itself"""
    parent: Name | None = None
    """the account to which this account belongs; without it, the top"""
    shares: Count = 1
    priority: Count | None = None
    """its part of a job's priority, as Slurm's Priority of associations; without it, the priority of the account, or of the parent"""

    def __post_init__(self) -> None:
        _check(self, f"share of {self.user or self.account!r}")


@dataclass(frozen=True)
class Qos:
    """A quality of service."""

    name: Name
    priority: int = 0
    """its part of a job's priority"""
    usage_factor: Annotated[float, Field(least=0)] = 1.0
    """factor by which its jobs count in the past use of their users and accounts, as Slurm's UsageFactor"""
    no_reserve: bool = False
    """whether Slurm's backfill reserves no nodes for its jobs, as with the flag NoReserve"""
    preempts: tuple[str, ...] = ()
    """the qualities of service whose jobs its jobs may preempt"""
    preempt: PreemptMode = "off"
    """whether its jobs may be preempted: `off`, `cancel` or `requeue`"""
    grace: Length = 0
    """how long its jobs run on when they are preempted (s)"""
    exempt: Length | None = None
    """how long its jobs must have run before they may be preempted (s); without it, PreemptExemptTime"""


NodeNumbers = Annotated[int | str | None, Field(label='a number of nodes, or the numbers of some, as in "1-4,7"')]


def numbers_of(nodes: int | str | None, pool: Pool) -> list[int]:
    """Return the nodes of a pool, by number from 0 on, that are given as their number (the last ones), or by numbers from 1 on.

    >>> numbers_of("1-2,5", Pool("cpu", 6, 8)), numbers_of(2, Pool("cpu", 6, 8)), numbers_of(None, Pool("cpu", 2, 8))
    ([0, 1, 4], [5, 4], [1, 0])
    """
    if not isinstance(nodes, str):
        count = pool.nodes if nodes is None else nodes
        found = list(range(pool.nodes - 1, pool.nodes - 1 - count, -1))
    else:
        are_numbers = re.fullmatch(r"[0-9]{1,9}(-[0-9]{1,9})?(,[0-9]{1,9}(-[0-9]{1,9})?)*", nodes)
        spans = [(int(one.split("-")[0]), int(one.split("-")[-1])) for one in nodes.split(",")] if are_numbers else []
        is_valid = all(1 <= first <= last <= pool.nodes for first, last in spans)
        found = sorted({k - 1 for first, last in spans for k in range(first, last + 1)}) if is_valid else []
    if not found or min(found) < 0:
        there = f"a number of nodes from 1 to {pool.nodes}, or their numbers, such as '1-4,7'"
        raise WorkloadError(
            f"the nodes of an outage or reservation of the pool {pool.name!r} must be {there}, not {nodes!r}", "wrong_outage"
        )
    return found


@dataclass(frozen=True)
class Outage:
    """Nodes of a pool that are missing from `begin` until `end`: maintenance, a reservation for others, a failure."""

    pool: Name
    begin: Time
    end: Time | None = None
    """without it, the end of the log"""
    nodes: NodeNumbers = None
    """number of missing nodes, or their numbers in the pool, such as "1-4,7", which count under Slurm's scheduling; without it, all"""
    announced: Time | None = None
    """when the scheduler learns of it; without it, when it begins"""


PERIODS = {"HOURLY": 3600, "DAILY": DAY, "WEEKLY": 7 * DAY}
"""The flags of repeated reservations, and their periods, s."""


@dataclass(frozen=True)
class Reservation:
    """Nodes of a pool that Slurm's scheduling keeps for the jobs that request the reservation (column `reservation`).

    Tables with the same name are one reservation, of several pools or times.
    """

    name: Name
    pool: Name
    begin: Time
    end: Time
    nodes: NodeNumbers = None
    """number of nodes, or their numbers in the pool, such as "1-4,7"; without it, all"""
    announced: Time | None = None
    """when the scheduler learns of it; without it, when it begins"""
    users: tuple[str, ...] = ()
    """only jobs of these users, or of `accounts`, may use it; without both, all that request it"""
    accounts: tuple[str, ...] = ()
    flags: tuple[Literal["FLEX", "HOURLY", "DAILY", "WEEKLY"], ...] = ()
    """FLEX: its jobs may also use other nodes and times; HOURLY, DAILY or WEEKLY: repeated until four weeks after the last submission"""


@dataclass(frozen=True)
class Limit:
    """A maximum of running jobs or resources for each user, group, queue, partition, job array, size, request or combination of these."""

    by: Annotated[tuple[str, ...], Field(accepts=str | tuple[str, ...], read=_names)] = ("user",)
    """the columns whose values are counted separately: user, group, queue, partition, array_job, procs, requested, or none, `[]`"""
    partition: Name | None = None
    """only jobs of this partition"""
    jobs: int | None = None
    """maximum number of running jobs"""
    procs: int | None = None
    """maximum number of processors of running jobs"""
    second: Annotated[int | None, Field("{second}")] = None
    """maximum number of units of the second resource, under the name of the resource"""
    only: tuple[str, ...] = ()
    """only these values of the first column in `by`, such as some users, by their names or numbers in the log; without it, all"""
    among: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """only jobs with one of these values in each of these columns, counted together: `{ queue = ["long"], partition = ["cpu", "gpu"] }`"""
    since: Time | None = None
    """only jobs that are submitted from then on"""
    until: Time | None = None
    """only jobs that are submitted before"""
    run_minutes: Count | None = None
    """maximum of processor-minutes that running jobs have until their limits, for Slurm's scheduling (GrpTRESRunMins)"""

    def __post_init__(self) -> None:
        for name in (*self.by, *self.among):
            if name not in LIMIT_COLUMNS:
                raise WorkloadError(f"a limit cannot be counted by {name!r}. Valid columns: {', '.join(LIMIT_COLUMNS)}")
        if self.jobs is None and self.procs is None and self.second is None and self.run_minutes is None:
            raise WorkloadError("a limit must limit jobs, procs, the second resource or run_minutes")
        if self.only and not self.by:
            raise WorkloadError("a limit with `only` needs `by`, the column of these values")

    @property
    def partitions(self) -> tuple[str, ...]:
        """Return the partitions that the limit names."""
        return (() if self.partition is None else (self.partition,)) + tuple(self.among.get("partition", ()))

    @property
    def selected(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return the columns and values that select the jobs of the limit."""
        by_first = [(self.by[0], self.only)] if self.only else []
        return [*by_first, *self.among.items(), *([] if self.partition is None else [("partition", (self.partition,))])]


@dataclass(frozen=True)
class Note:
    """A feature that this file leaves out or approximates."""

    text: Name
    """a sentence, or what shows the feature"""
    feature: str = ""
    """a feature of the site's scheduler that is not modelled; answers name it, with the share of the work that requests it"""
    above: Mapping[str, int] = field(default_factory=dict, hash=False)
    """by partition, the memory per processor (MB, or 0) above which a job requests the feature; without it, all jobs request it"""

    def __str__(self) -> str:
        """Return the note as a sentence."""
        return f"Not modelled: {self.feature} ({self.text})." if self.feature else self.text


@dataclass(frozen=True)
class Window:
    """Hours of the week, by the site's clock, in which jobs of a kind, by default all jobs, do not start."""

    begin: str
    """a time of day, such as "08:00\""""
    end: str | None = None
    """a time of day, on the next day if it is before the begin; without it, the begin is an instant that no job is planned to run across"""
    days: Annotated[tuple[str, ...], Field(accepts=str | tuple[str, ...], read=_days)] = DAYS
    """the days on which it begins: a list such as `["mon", "wed"]`, or `"mon-fri"`"""
    drain: bool = False
    """whether jobs are not planned to run into these hours either"""
    longer_than: Length | None = None
    """only jobs with longer requests (s)"""
    up_to: Length | None = None
    """only jobs with requests up to this (s)"""
    wider_than: int | None = None
    """only jobs of more processors"""
    narrower_than: int | None = None
    """only jobs of fewer processors"""
    partition: Name | None = None
    """only jobs of this partition"""
    since: Time | None = None
    """start of its validity"""
    until: Time | None = None
    """end of its validity"""

    def __post_init__(self) -> None:
        for name in ("begin", "end"):
            value = getattr(self, name)
            if value is not None and not re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]|24:00", value):
                raise WorkloadError(f"the {name} of a window must be a time of day such as '08:00', not {value!r}", "wrong_time")

    @property
    def crossing(self) -> bool:
        """Return whether jobs may not be planned to run into the window either."""
        return self.drain or self.end is None

    @property
    def second(self) -> int:
        """Return the begin of the window, s after midnight."""
        return _second(self.begin)

    @property
    def length(self) -> int:
        """Return the length of the window, s; 0 for an instant."""
        return 0 if self.end is None else (_second(self.end) - self.second) % DAY or DAY


@dataclass(frozen=True)
class Overhead:
    """Delays of a site's scheduler, s: between two cycles, from a decision to the start, and from the end until processors are free."""

    start: Delay = 0
    """from the decision to the start of a job (s); it has its processors all that time"""
    end: Delay = 0
    """from the end of a job until its processors are free (s)"""
    tick: Annotated[int, Field(least=1, most=YEAR)] = 1
    """the time between two cycles of the scheduler (s), which sees events only then"""

    def occupied(self, length: Any) -> Any:
        """Return how long a job of this length that starts on a tick occupies its processors, s."""
        return next_tick(self.start + length + self.end, self.tick)


NO_OVERHEAD = Overhead()


def next_tick(time: Any, tick: int) -> Any:
    """Return the first multiple of `tick` from a time on, s."""
    return -(-time // tick) * tick


def _second(time: str) -> int:
    return 3600 * int(time[:2]) + 60 * int(time[3:])


@dataclass(frozen=True)
class Machine:
    """Pools of nodes and the partitions that share them. Jobs without a known partition go to the first one that accepts them.

    Raises WorkloadError for unknown or repeated names.

    >>> pools = Pool("cpu", 64, 32), Pool("gpu", 8, 64, 4)
    >>> machine = Machine(pools, (Partition("main", ("cpu",)), Partition("gpu", ("gpu",))))
    >>> machine.procs, machine.second_total
    (2560, 32)
    """

    pools: Annotated[tuple[Pool, ...], Field("pool")]
    """equal nodes"""
    partitions: Annotated[tuple[Partition, ...], Field("partition")]
    """the partitions, to which jobs are submitted"""
    outages: Annotated[tuple[Outage, ...], Field("outage")] = ()
    """nodes that are missing for a time"""
    limits: Annotated[tuple[Limit, ...], Field("limit")] = ()
    """limits on jobs that run at the same time"""
    name: str = "machine"
    second: Annotated[str, Field(read=_column)] = "gpus"
    """the name of the second resource, and of the log column with the jobs' requests for it"""
    policy: str | None = None
    """the site's policy, as on the command line"""
    slurm: Annotated[Mapping[str, str], Field(accepts=Mapping[str, str | int | float | bool], read=_settings)] = field(
        default_factory=dict, hash=False
    )
    """settings of the site's Slurm by their names in `scontrol show config`, such as SchedulerParameters"""
    shares: Annotated[tuple[Share, ...], Field("share")] = ()
    """shares of accounts and users, for fair share"""
    qos: tuple[Qos, ...] = ()
    """qualities of service"""
    reservations: Annotated[tuple[Reservation, ...], Field("reservation")] = ()
    """nodes that are kept for some jobs"""
    licences: Annotated[Mapping[str, int], Field(accepts=Mapping[str, int])] = field(default_factory=dict, hash=False)
    """licences of the whole machine by their names, such as `{ matlab = 10 }`, for Slurm's scheduling (column `licences`)"""
    windows: Annotated[tuple[Window, ...], Field("window")] = ()
    """hours of the week in which jobs of a kind do not start"""
    clock: int | None = None
    """the offset of the windows' clock from UTC (s), without summer time; without it, they are in the log's time zone"""
    overhead: Overhead = NO_OVERHEAD
    """delays of the scheduler"""
    by_node: bool | None = None
    """whether jobs are placed on single nodes; without it, if a pool has memory, features or a type of GPUs, and there are no windows"""
    eligible: str | None = None
    """a table next to this file with the columns job_id and held, how long after its submission a job became eligible (s), which is known
    only after the fact"""
    notes: Annotated[tuple[Note, ...], Field("note")] = field(default=(), compare=False)
    """features that this file leaves out or approximates"""
    _places: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _distinct("pool", [pool.name for pool in self.pools])
        _distinct("partition", [partition.name for partition in self.partitions])
        if self.qos:
            _distinct("qos", [one.name for one in self.qos])
        self._check_preemption()
        self._places.update({pool.name: k for k, pool in enumerate(self.pools)})
        for partition in self.partitions:
            if not partition.pools:
                raise WorkloadError(f"partition {partition.name!r} has no pools")
            for name in partition.pools:
                self._check_pool(name, f"partition {partition.name!r}")
            _distinct(f"partition {partition.name!r}: pool", partition.pools)
            sizes = {self.pools[self._places[name]].procs for name in partition.pools}
            if partition.exclusive and len(sizes) > 1:
                raise WorkloadError(
                    f"partition {partition.name!r} allocates whole nodes, so its pools must have nodes of one size, not of "
                    f"{', '.join(map(str, sorted(sizes)))} processors; make a partition of each",
                    "mixed_nodes",
                )
        for unit, total in (("processors", self.procs), (self.second, self.second_total)):
            if total > LARGEST_INTEGER:
                raise WorkloadError(f"the pools have {total:,} {unit} in total, more than the largest number, {LARGEST_INTEGER:,}")
        for outage in self.outages:
            self._check_pool(outage.pool, "an outage")
        for reservation in self.reservations:
            self._check_pool(reservation.pool, f"reservation {reservation.name!r}")
        partitions = [partition.name for partition in self.partitions]
        named = [("a limit", one) for limit in self.limits for one in limit.partitions]
        named += [("a window", window.partition) for window in self.windows if window.partition is not None]
        for kind, name in named:
            if name not in partitions:
                raise WorkloadError(
                    f"{kind} names the unknown partition {name!r}. Valid partitions: {', '.join(partitions)}", "unknown_partition"
                )

    @classmethod
    def one_pool(cls, procs: int, name: str = "machine", policy: str | None = None) -> Machine:
        """Return a machine of this many equal processors, the pool `all`, in one partition of that name.

        >>> Machine.one_pool(128).procs
        128
        """
        return cls((Pool("all", procs, 1),), (Partition("all", ("all",)),), name=name, policy=policy)

    @property
    def procs(self) -> int:
        """Return the number of processors."""
        return sum(pool.nodes * pool.procs for pool in self.pools)

    @property
    def second_total(self) -> int:
        """Return the number of units of the second resource."""
        return sum(pool.nodes * pool.second for pool in self.pools)

    @property
    def has_nodes(self) -> bool:
        """Return whether jobs are placed on single nodes by every policy that supports it."""
        if self.by_node is not None:
            return self.by_node
        return not self.windows and any(pool.memory or pool.features or pool.gpu_type for pool in self.pools)

    def place_of(self, pool: str) -> int:
        """Return the number of a pool."""
        return self._places[pool]

    @property
    def preempts(self) -> bool:
        """Return whether jobs may preempt others."""
        return any(one.preempt != "off" for one in self.partitions) or any(one.preempts for one in self.qos)

    def _check_preemption(self) -> None:
        known = [one.name for one in self.qos]
        for qos, name in ((one.name, name) for one in self.qos for name in one.preempts if name not in known):
            raise WorkloadError(f"qos {qos!r} preempts the unknown qos {name!r}. Valid names: {', '.join(known)}", "unknown_name")
        lists = {one.name: set(one.preempts) for one in self.qos}
        for name, below in lists.items():
            while more := set().union(*(lists[other] for other in below)) - below:
                below |= more
            if name in below:
                what = f"qos {name!r} preempts itself, or one that preempts it, so jobs could preempt each other forever; as in Slurm"
                raise WorkloadError(f"{what}, shorten `preempts`", "preemption_loop")
        if any(one.preempts for one in self.qos) and any(one.preempt != "off" for one in self.partitions):
            what = "jobs are preempted by partition or by quality of service; remove `preempt` of the partitions, or `preempts` of the qos"
            raise WorkloadError(what, "two_preemptions")

    def _check_pool(self, name: str, where: str) -> None:
        if name not in self._places:
            raise WorkloadError(f"{where} names the unknown pool {name!r}. Valid pools: {', '.join(self._places)}")


def _distinct(kind: str, names: Sequence[str]) -> None:
    if not names:
        raise WorkloadError(f"a machine needs at least one {kind}")
    for name in names:
        if list(names).count(name) > 1:
            raise WorkloadError(f"{kind} {name!r} is listed twice")


def _check(value: Any, where: str) -> None:
    if fault := wrong_field(value):
        raise WorkloadError(f"{where}: {fault}")


def _second_name(content: Mapping[str, Any]) -> dict[str, str]:
    second = content.get("second")
    return {"second": second if isinstance(second, str) else "gpus"}


MACHINE_FILE = TomlFile(Machine, "a file like machine.toml", "docs/guides/machines.md", LogError, _second_name)


def read_machine(path: str | os.PathLike[str], needed: Mapping[str, str] = NOTHING) -> Machine:
    """Return the machine that a file like machine.toml describes; raises LogError for a file that cannot be read or used.

    `needed`: further required keys, with their purposes.
    """
    machine = MACHINE_FILE.read(path, needed)
    if machine.eligible is None:
        return machine
    if Path(machine.eligible).is_absolute() or ".." in Path(machine.eligible).parts or "\0" in machine.eligible:
        raise LogError(
            f"{printable(path)}: eligible must be a table in the folder of this file or below it, without '..' or a leading '/'",
            "file_outside_folder",
        )
    return replace(machine, eligible=os.fspath(Path(path).parent / machine.eligible))


def parse_machine(text: str, where: str, checked: bool = True) -> Machine:
    """Return the machine of a file with this text, named `where` in errors; raises LogError.

    `checked`: whether its texts may name only Python files that may run, as in `TomlFile.value`.
    """
    return MACHINE_FILE.value(MACHINE_FILE.content(text, where), where, checked=checked)


def write_machine(machine: Machine) -> str:
    """Return the text of a file that describes this machine."""
    return to_toml(machine, {"second": machine.second})
