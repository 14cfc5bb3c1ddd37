"""The tables of a machine file: pools, partitions, limits, outages, reservations, windows and others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal

from walltime.declared import Field, wrong_field
from walltime.errors import WorkloadError
from walltime.slurm_values import seconds_of

COUNTED_RESOURCE = re.compile("cpu|mem|node|gres/gpu(:.+)?|license/.+")
"""Pattern of Slurm's resource names that a limit may have."""
NUMBERS = 2**53
"""Upper bound on amounts of resources."""
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
        raise WorkloadError(f"a time must be a number of seconds, or a string such as '1-12:00:00', not {value!r}") from None


Length = Annotated[int, Field(accepts=int | str, read=length_of, label="seconds, or as in '1-12:00:00'")]


Span = Annotated[int, Field(least=1, accepts=int | str, read=length_of, label="1 s or more, or as in '1-12:00:00'")]
PREEMPT_MODES = ("off", "cancel", "requeue")
PreemptMode = Annotated[str, Field(known=PREEMPT_MODES)]
RESOURCES = {"mem_mb": "memory", "gpus": "GPUs"}
"""The words for resources, by the names of their columns."""
LOSSES = ("continue", "requeue", "cancel")
"""The ways to treat jobs on nodes that an outage takes."""
Loss = Annotated[str, Field(known=LOSSES)]


def _days(days: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the days in a tuple, a name or a span; raises WorkloadError."""
    names = days.split("-", 1) if isinstance(days, str) else days
    for name in names:
        if name not in DAYS:
            raise WorkloadError(f"a day must be one of {', '.join(DAYS)}, or a span such as 'mon-fri', not {name!r}", "wrong_day")
    if not isinstance(days, str) or len(names) == 1:
        return tuple(names)
    begin, end = map(DAYS.index, names)
    return tuple(DAYS[k % 7] for k in range(begin, end + 1 if end >= begin else end + 8))


def settings_of(given: Mapping[str, Any]) -> dict[str, str]:
    """Return Slurm's settings as texts; TOML's true and false become yes and no."""
    return {name: {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value) for name, value in given.items()}


def column_of(name: str) -> str:
    """Return the name of the second resource's column; raises WorkloadError for a name that is not allowed."""
    if not name.isidentifier() or name in ("name", "nodes", "procs", "by", "partition", "jobs"):
        raise WorkloadError(f"must be the name of a column, such as gpus, not {name!r}", "wrong_value")
    return name


@dataclass(frozen=True)
class Pool:
    """Equal nodes."""

    name: Name
    nodes: Annotated[int, Field(least=1)]
    """number of nodes"""
    procs: Annotated[int, Field(least=1)]
    """processors of each node"""
    second: Annotated[int, Field("{second}", least=0, accepts=Count | Mapping[str, Count], label="a number, or a table of types")] = 0
    """units of the second resource on each node, under the name of the resource; or a table of their types, as in `gpus.a100 = 4`"""
    memory: Count = 0
    """memory of each node (MB), unless it is the second resource; 0 for no limit"""
    weight: Count = 1
    """as Slurm's Weight: under Slurm's scheduling, nodes of a lower weight are taken first"""
    features: tuple[str, ...] = ()
    """the features of each node, which jobs request as constraints (column `constraints`)"""
    gpu_type: str = ""
    """the type of each node's GPUs, which jobs request (column `requested_gpu_type`)"""
    gpu_types: Annotated[Mapping[str, int], Field(accepts=Mapping[str, Count])] = field(default_factory=dict, hash=False)
    """the GPUs of each node by type, such as `{ a100 = 2, "1g.10gb" = 14 }`, if it has several types"""
    watts: Annotated[float, Field(least=0)] = 0.0
    """power of each node (W), for the energy of jobs that the log does not record; a job on part of a node counts with its share"""
    proc_watts: Annotated[float, Field(least=0)] = 0.0
    """power of each allocated processor (W), in addition"""
    gpu_watts: Annotated[float, Field(least=0)] = 0.0
    """power of each allocated GPU (W), in addition"""

    def __post_init__(self) -> None:
        types = dict(self.second) if isinstance(self.second, Mapping) else dict(self.gpu_types)
        if types:
            if self.gpu_type or (not isinstance(self.second, Mapping) and self.second not in (0, sum(types.values()))):
                raise WorkloadError("gpu_types contradicts gpu_type or the number of GPUs; omit the latter two", "wrong_value")
            object.__setattr__(self, "second", sum(types.values()))
            object.__setattr__(self, "gpu_type", next(iter(types)) if len(types) == 1 else "")
            object.__setattr__(self, "gpu_types", types if len(types) > 1 else {})
        check_fields(self, f"pool {self.name!r}")

    @property
    def by_type(self) -> Mapping[str, int]:
        """Return the units of the second resource on each node by type; empty if they have none."""
        return self.gpu_types or ({self.gpu_type: self.second} if self.gpu_type else {})


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
    """how long its jobs continue after they are preempted (s)"""


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
    """contribution to a job's priority, as Slurm's Priority of associations; without it, the priority of the account, or of the parent"""

    def __post_init__(self) -> None:
        check_fields(self, f"share of {self.user or self.account!r}")


@dataclass(frozen=True)
class Qos:
    """A quality of service."""

    name: Name
    priority: int = 0
    """contribution to a job's priority"""
    usage_factor: Annotated[float, Field(least=0)] = 1.0
    """factor by which its jobs count in the past use of their users and accounts, as Slurm's UsageFactor"""
    no_reserve: bool = False
    """whether Slurm's backfill reserves no nodes for its jobs, as with the flag NoReserve"""
    preempts: tuple[str, ...] = ()
    """the qualities of service whose jobs its jobs may preempt"""
    preempt: PreemptMode = "off"
    """whether its jobs may be preempted: `off`, `cancel` or `requeue`"""
    grace: Length = 0
    """how long its jobs continue after they are preempted (s)"""
    exempt: Length | None = None
    """how long its jobs must have run before they may be preempted (s); without it, PreemptExemptTime"""


NodeNumbers = Annotated[int | str | None, Field(label='a number of nodes, or the numbers of some, as in "1-4,7"')]


def numbers_of(nodes: int | str | None, pool: Pool) -> list[int]:
    """Return the nodes of a pool, numbered from 0: the last ones for a number of nodes, else those in a text of numbers from 1 on."""
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
    """number of missing nodes, or, for Slurm's scheduling, their numbers in the pool, such as "1-4,7"; without it, all"""
    announced: Time | None = None
    """when the scheduler learns of it; without it, when it begins"""
    jobs: Loss = "continue"
    """under Slurm's scheduling, whether jobs on these nodes `continue`, `requeue` or `cancel`"""


@dataclass(frozen=True)
class Failure:
    """Nodes of a pool that fail at random under Slurm's scheduling, each independently, until four weeks after the last submission."""

    pool: Name
    mtbf: Span
    """mean time from the repair of a node to its next failure, exponentially distributed (s)"""
    repair: Span = 14_400
    """mean time until a failed node is back, exponentially distributed (s)"""
    jobs: Loss = "requeue"
    """whether the jobs of a failed node `requeue` or `cancel`; with `continue`, only free nodes are missing"""
    nodes: NodeNumbers = None
    """number of nodes that may fail, or their numbers, such as "1-4,7"; without it, all"""
    seed: Count = 1
    """seed of the random times"""

    def __post_init__(self) -> None:
        check_fields(self, f"failures of the pool {self.pool!r}")


PERIODS = {"HOURLY": 3600, "DAILY": DAY, "WEEKLY": 7 * DAY}
"""The flags of repeated reservations, and the periods of repetition, s."""
REPEATED_FOR = 4 * PERIODS["WEEKLY"]
"""Seconds after the last submission for which reservations are repeated and nodes fail."""


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
    """only jobs of these users, or of `accounts`, may use it; without both, all jobs that request it"""
    accounts: tuple[str, ...] = ()
    flags: tuple[Literal["FLEX", "HOURLY", "DAILY", "WEEKLY"], ...] = ()
    """FLEX: its jobs may also use other nodes and times; HOURLY, DAILY or WEEKLY: repeated until four weeks after the last submission"""


@dataclass(frozen=True)
class Limit:
    """A maximum of running jobs or resources for each user, group, queue, partition, job array, size, request or combination of these."""

    by: Annotated[tuple[str, ...], Field(accepts=str | tuple[str, ...], read=lambda by: (by,) if isinstance(by, str) else by)] = ("user",)
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
    """only jobs submitted from this time on"""
    until: Time | None = None
    """only jobs submitted before this time"""
    run_minutes: Count | None = None
    """maximum of processor-minutes that running jobs have until their limits, for Slurm's scheduling (GrpTRESRunMins)"""
    resources: Annotated[Mapping[str, int], Field(accepts=Mapping[str, int])] = field(default_factory=dict, hash=False)
    """maximum of other resources of running jobs by Slurm's names, for its scheduling: `{ node = 4, mem = 64000, "gres/gpu:a100" = 2 }`"""

    def __post_init__(self) -> None:
        for name in (*self.by, *self.among):
            if name not in LIMIT_COLUMNS:
                raise WorkloadError(f"a limit cannot be counted by {name!r}. Valid columns: {', '.join(LIMIT_COLUMNS)}")
        for name, most in self.resources.items():
            if not COUNTED_RESOURCE.fullmatch(name) or not 0 <= most < NUMBERS:
                raise WorkloadError(
                    f"a limit cannot have {most} of {name!r}. Valid resources: node, mem (MB), gres/gpu, gres/gpu:TYPE, license/NAME",
                    "wrong_limit",
                )
        if (self.jobs, self.procs, self.second, self.run_minutes) == (None,) * 4 and not self.resources:
            raise WorkloadError("a limit needs at least one of jobs, procs, the second resource, run_minutes and resources; add one")
        if self.only and not self.by:
            raise WorkloadError("a limit with `only` also needs `by`, the column of these values; add it")

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
    """a sentence, or the setting that shows the feature"""
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
    """a time of day, on the next day if it is before `begin`; without it, no job is planned to run across the instant `begin`"""
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
        object.__setattr__(self, "days", _days(self.days))
        for name in ("begin", "end"):
            value = getattr(self, name)
            if value is not None and not re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]|24:00", value):
                raise WorkloadError(f"the {name} of a window must be a time of day such as '08:00', not {value!r}", "wrong_time")

    @property
    def crossing(self) -> bool:
        """Return whether the window also forbids planning jobs to run into it."""
        return self.drain or self.end is None

    @property
    def second(self) -> int:
        """Return the start of the window, s after midnight."""
        return _second(self.begin)

    @property
    def length(self) -> int:
        """Return the length of the window, s; 0 for an instant."""
        return 0 if self.end is None else (_second(self.end) - self.second) % DAY or DAY


@dataclass(frozen=True)
class Overhead:
    """Delays of a site's scheduler, s: between two cycles, from a decision to the start, and from the end until processors are free."""

    start: Delay = 0
    """from the decision to the start of a job (s), which holds its processors during that time"""
    end: Delay = 0
    """from the end of a job until its processors are free (s)"""
    tick: Annotated[int, Field(least=1, most=YEAR)] = 1
    """the time between two cycles of the scheduler (s), which sees events only then"""

    def occupied(self, length: Any) -> Any:
        """Return how long a job of this runtime (s) that starts on a tick occupies its processors, s."""
        return next_tick(self.start + length + self.end, self.tick)


NO_OVERHEAD = Overhead()


def next_tick(time: Any, tick: int) -> Any:
    """Return the first multiple of `tick` at or after a time, s."""
    return -(-time // tick) * tick


def _second(time: str) -> int:
    return 3600 * int(time[:2]) + 60 * int(time[3:])


def check_fields(value: Any, where: str) -> None:
    """Raise WorkloadError if a field of a table has a value that is not allowed."""
    if fault := wrong_field(value):
        raise WorkloadError(f"{where}: {fault}")
