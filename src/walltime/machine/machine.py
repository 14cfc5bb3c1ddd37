"""Machines with pools of equal nodes, partitions of pools, outages and limits, and their files (machine.toml)."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Self

from walltime.declared import LARGEST_INTEGER, Field
from walltime.errors import LogError, WorkloadError
from walltime.machine.tables import (
    NO_OVERHEAD,
    Failure,
    Limit,
    Note,
    Outage,
    Overhead,
    Partition,
    Pool,
    Qos,
    Reservation,
    Share,
    Window,
    column_of,
    settings_of,
)
from walltime.toml_file import NOTHING, TomlFile, to_toml
from walltime.wording import printable


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
    second: Annotated[str, Field(read=column_of)] = "gpus"
    """the name of the second resource, and of the log column with the jobs' requests for it"""
    policy: str | None = None
    """the site's policy, as on the command line"""
    slurm: Annotated[Mapping[str, str], Field(accepts=Mapping[str, str | int | float | bool], read=settings_of)] = field(
        default_factory=dict, hash=False
    )
    """settings of the site's Slurm by their names in `scontrol show config`, such as SchedulerParameters"""
    shares: Annotated[tuple[Share, ...], Field("share")] = ()
    """shares of accounts and users, for fair share"""
    qos: tuple[Qos, ...] = ()
    """qualities of service"""
    reservations: Annotated[tuple[Reservation, ...], Field("reservation")] = ()
    """nodes that are kept for some jobs"""
    failures: Annotated[tuple[Failure, ...], Field("failure")] = ()
    """nodes that fail at random"""
    licences: Annotated[Mapping[str, int], Field(accepts=Mapping[str, int])] = field(default_factory=dict, hash=False)
    """licences of the whole machine by their names, such as `{ matlab = 10 }`, for Slurm's scheduling (column `licences`)"""
    windows: Annotated[tuple[Window, ...], Field("window")] = ()
    """hours of the week in which jobs of a kind do not start"""
    clock: int | None = None
    """the offset of the windows' clock from UTC (s), without summer time; without it, they are in the log's time zone"""
    overhead: Overhead = NO_OVERHEAD
    """delays of the scheduler"""
    by_node: bool | None = None
    """whether jobs are placed on single nodes; by default, if a pool has memory, features or a GPU type, and there are no windows"""
    eligible: str | None = None
    """a table next to this file with the columns job_id and held: the time from a job's submission until it became eligible (s), known
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
                raise WorkloadError(f"partition {partition.name!r} has no pools; add pools")
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
                raise WorkloadError(f"the pools have {total:,} {unit} in total, but at most {LARGEST_INTEGER:,} are possible; correct them")
        for outage in self.outages:
            self._check_pool(outage.pool, "an outage")
        for failure in self.failures:
            self._check_pool(failure.pool, "a failure")
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
    def one_pool(cls, procs: int, name: str = "machine", policy: str | None = None) -> Self:
        """Return a machine of this many equal processors, the pool `all`, in one partition of that name.

        >>> Machine.one_pool(128).procs
        128
        """
        return cls((Pool("all", procs, 1),), (Partition("all", ("all",)),), name=name, policy=policy)

    @property
    def procs(self) -> int:
        """Return the total number of processors."""
        return sum(pool.nodes * pool.procs for pool in self.pools)

    @property
    def second_total(self) -> int:
        """Return the total number of units of the second resource."""
        return sum(pool.nodes * pool.second for pool in self.pools)

    @property
    def has_nodes(self) -> bool:
        """Return whether jobs are placed on individual nodes by every policy that supports it."""
        if self.by_node is not None:
            return self.by_node
        return not self.windows and any(pool.memory or pool.features or pool.by_type for pool in self.pools)

    @property
    def type_rows(self) -> Mapping[str, int]:
        """Return the row of `engine.machines.Nodes.types` of each GPU type, different for the types of a pool.

        Empty if no pool has several types.
        """
        rows: dict[str, int] = {}
        for name in dict.fromkeys(name for pool in self.pools for name in pool.by_type):
            used = {rows.get(other) for pool in self.pools if name in pool.by_type for other in pool.by_type}
            rows[name] = next(row for row in range(len(used) + 1) if row not in used)
        return rows if any(rows.values()) else {}

    def place_of(self, pool: str) -> int:
        """Return the index of a pool, by its name."""
        return self._places[pool]

    @property
    def preempts(self) -> bool:
        """Return whether jobs may preempt others."""
        return any(one.preempt != "off" for one in self.partitions) or any(one.preempts for one in self.qos)

    @property
    def loses_jobs(self) -> bool:
        """Return whether a failing or missing node may end jobs early."""
        return any(one.jobs != "continue" for one in self.outages) or any(one.jobs != "continue" for one in self.failures)

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
        raise WorkloadError(f"a machine needs at least one {kind}; add one")
    for name in names:
        if list(names).count(name) > 1:
            raise WorkloadError(f"{kind} {name!r} is listed twice; rename or remove one")


def _second_name(content: Mapping[str, Any]) -> dict[str, str]:
    second = content.get("second")
    return {"second": second if isinstance(second, str) else "gpus"}


MACHINE_FILE = TomlFile(Machine, "a machine file", "docs/guides/machines.md", LogError, _second_name)


def read_machine(path: str | os.PathLike[str], needed: Mapping[str, str] = NOTHING) -> Machine:
    """Return the machine that a machine file describes; raises LogError for a file that cannot be read or used.

    `needed`: additional required keys, with their purposes.
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

    `checked`: whether the text may name only Python files that are allowed to run, as in `TomlFile.value`.
    """
    return MACHINE_FILE.value(MACHINE_FILE.content(text, where), where, checked=checked)


def write_machine(machine: Machine) -> str:
    """Return the text of a file that describes this machine."""
    return to_toml(machine, {"second": machine.second})
