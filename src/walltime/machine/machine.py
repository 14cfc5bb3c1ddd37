"""A machine that is more than a number of processors: pools of equal nodes, partitions of pools, outages, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from walltime.errors import WorkloadError

MOST = 2**53
"""The most processors or units of the second resource of a machine: as of a log's numbers."""
MEMBERS = ("user", "group", "queue", "partition", "array_job")
"""The columns by which a limit may be counted."""


@dataclass(frozen=True)
class Pool:
    """Equal nodes. `procs`, `second`: processors and units of the second resource of each node."""

    name: str
    nodes: int
    procs: int
    second: int = 0

    def __post_init__(self) -> None:
        for name, least in (("nodes", 1), ("procs", 1), ("second", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise WorkloadError(f"pool {self.name!r}: {name} must be a whole number of {least} or more, not {value!r}")


@dataclass(frozen=True)
class Partition:
    """What jobs are submitted to: pools, in the order in which they are taken.

    `exclusive`: a job gets whole nodes. `tier`: jobs of a partition of a higher tier are considered first. `max_time`: the longest
    request, s; a longer one is cut to it, None for no limit. `job_factor`: the partition's part of a job's priority, as Slurm's
    PriorityJobFactor.
    """

    name: str
    pools: tuple[str, ...]
    exclusive: bool = False
    tier: int = 0
    max_time: int | None = None
    job_factor: int = 1


@dataclass(frozen=True)
class Share:
    """An account, or a user of one, and its part in the machine beside its brothers, as in Slurm's fair share.

    `parent`: the account that it belongs to, None for the top. `user`: None for an account itself.
    """

    account: str
    user: str | None = None
    parent: str | None = None
    shares: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.shares, int) or isinstance(self.shares, bool) or self.shares < 0:
            raise WorkloadError(f"shares of {self.user or self.account!r} must be a whole number of 0 or more, not {self.shares!r}")


@dataclass(frozen=True)
class Qos:
    """A quality of service: its name, and its part of a job's priority."""

    name: str
    priority: int = 0


@dataclass(frozen=True)
class Outage:
    """Nodes of a pool that are missing from `begin` until `end`: maintenance, a reservation for others, a failure.

    `nodes`: how many, None for all. Times are seconds from the start of the log, or dates, local times of the site if they have no zone.
    `announced`: from when on the scheduler knows of it; by default only when it begins. `end`: None for ever.
    """

    pool: str
    begin: int | datetime
    end: int | datetime | None = None
    nodes: int | None = None
    announced: int | datetime | None = None


@dataclass(frozen=True)
class Limit:
    """The most that may run at the same time for each user, group, queue, partition or job array, or for each combination of these.

    `by`: columns whose values are counted apart; none for one count of all jobs. `partition`: only jobs of this one. `jobs`, `procs`,
    `second`: the most that run, None for no limit.
    """

    by: tuple[str, ...] = ("user",)
    partition: str | None = None
    jobs: int | None = None
    procs: int | None = None
    second: int | None = None

    def __post_init__(self) -> None:
        for name in self.by:
            if name not in MEMBERS:
                raise WorkloadError(f"a limit cannot be counted by {name!r}; known are {', '.join(MEMBERS)}")
        if self.jobs is None and self.procs is None and self.second is None:
            raise WorkloadError("a limit must limit jobs, procs or the second resource")


@dataclass(frozen=True)
class Machine:
    """Pools of nodes and the partitions that share or split them.

    `second`: the name of the second resource, such as `gpus`, and of the column of the log that has the jobs' needs of it. Jobs of no
    known partition go to the first one. `policy`: how the site schedules, as on the command line, None if that is not known; `slurm`:
    settings of its Slurm by their names in `scontrol show config`, such as SchedulerParameters; `shares`, `qos`: what they say of
    accounts, users and qualities of service.

    Raises WorkloadError for names that are unknown or used twice.

    >>> pools = Pool("cpu", 64, 32), Pool("gpu", 8, 64, 4)
    >>> machine = Machine(pools, (Partition("main", ("cpu",)), Partition("gpu", ("gpu",))))
    >>> machine.procs, machine.second_total
    (2560, 32)
    """

    pools: tuple[Pool, ...]
    partitions: tuple[Partition, ...]
    outages: tuple[Outage, ...] = ()
    limits: tuple[Limit, ...] = ()
    second: str = "gpus"
    name: str = "machine"
    policy: str | None = None
    slurm: Mapping[str, str] = field(default_factory=dict, hash=False)
    shares: tuple[Share, ...] = ()
    qos: tuple[Qos, ...] = ()
    _places: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _distinct("pool", [pool.name for pool in self.pools])
        _distinct("partition", [partition.name for partition in self.partitions])
        if self.qos:
            _distinct("qos", [one.name for one in self.qos])
        self._places.update({pool.name: k for k, pool in enumerate(self.pools)})
        for partition in self.partitions:
            if not partition.pools:
                raise WorkloadError(f"partition {partition.name!r} has no pools")
            for name in partition.pools:
                self._known(name, f"partition {partition.name!r}")
            _distinct(f"partition {partition.name!r}: pool", partition.pools)
            sizes = {self.pools[self._places[name]].procs for name in partition.pools}
            if partition.exclusive and len(sizes) > 1:
                raise WorkloadError(
                    f"partition {partition.name!r} gives whole nodes, so its pools must have nodes of one size, not of "
                    f"{', '.join(map(str, sorted(sizes)))} processors; make a partition of each"
                )
        for what, total in (("processors", self.procs), (self.second, self.second_total)):
            if total > MOST:
                raise WorkloadError(f"the pools have {total:,} {what} together, more than the {MOST:,} that can be counted")
        for outage in self.outages:
            self._known(outage.pool, "an outage")
        for limit in self.limits:
            if limit.partition is not None and limit.partition not in [partition.name for partition in self.partitions]:
                raise WorkloadError(f"a limit is for the partition {limit.partition!r}, which there is not")

    @property
    def procs(self) -> int:
        """All processors."""
        return sum(pool.nodes * pool.procs for pool in self.pools)

    @property
    def second_total(self) -> int:
        """All units of the second resource."""
        return sum(pool.nodes * pool.second for pool in self.pools)

    def place_of(self, pool: str) -> int:
        """The number of a pool."""
        return self._places[pool]

    def _known(self, name: str, where: str) -> None:
        if name not in self._places:
            raise WorkloadError(f"{where} names the pool {name!r}; known are {', '.join(self._places)}")


def _distinct(what: str, names: Sequence[str]) -> None:
    if not names:
        raise WorkloadError(f"a machine needs at least one {what}")
    for name in names:
        if list(names).count(name) > 1:
            raise WorkloadError(f"{what} {name!r} is there twice")
