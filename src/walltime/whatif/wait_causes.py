"""Find jobs that waited for something other than processors, and check the recorded schedule against the pools of the machine file."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from walltime import metrics
from walltime.machine import Machine, Placement
from walltime.metrics.summary import Averages
from walltime.policy import Kind
from walltime.schedule.schedule import Schedule
from walltime.wording import counted

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class PoolGroup:
    """Pools connected by shared partitions, directly or through other pools, and the recorded use of them all.

    `times`, `busy`: int64, a step function of busy processors; `jobs`: int64, the indices of the group's jobs with a recorded start.
    """

    pools: tuple[str, ...]
    procs: int
    jobs: Array
    times: Array
    busy: Array

    @property
    def most(self) -> int:
        """Return the largest number of processors that are busy at the same time."""
        return int(self.busy.max(initial=0))

    def overfull_share(self) -> float:
        """Return the share of time, from the first start to the last end, with more busy processors than exist; nan without jobs."""
        if len(self.times) < 2:
            return float("nan")
        length = np.diff(self.times)
        return float(length[self.busy[:-1] > self.procs].sum() / length.sum())

    def started_overfull(self, start: Array) -> Array:
        """Return the indices of jobs that started with too few free processors; `start`: start times of all jobs, s."""
        levels = np.concatenate(([0], self.busy))  # idle before the first time
        return self.jobs[levels[np.searchsorted(self.times, start[self.jobs], "right")] > self.procs]

    def least_free(self, begin: Array, end: Array) -> Array:
        """Return the smallest number of free processors in each interval from `begin` to `end`, s; int64."""
        first = np.searchsorted(self.times, begin, "right") - 1
        last = np.searchsorted(self.times, end, "left") - 1
        levels = np.concatenate(([0], self.busy))  # idle before the first time
        return self.procs - _highest(levels, first + 1, np.maximum(last, first) + 1)


def pool_groups(machine: Machine, partition: Array, procs: Array, start: Array, end: Array) -> list[PoolGroup]:
    """Return the smallest groups of pools such that each partition uses one group only, with the recorded use of each group.

    `partition`: index of each job's partition; `start`, `end`: recorded times, s, -1 if unknown; all int64, shape (jobs,). Logs do not
    record which of several pools a job used, so pools that a partition shares are counted together.
    """
    group = {pool.name: {pool.name} for pool in machine.pools}
    for one in machine.partitions:
        together = set().union(*(group[name] for name in one.pools))
        for name in together:
            group[name] = together
    groups: list[PoolGroup] = []
    for names in dict.fromkeys(tuple(pool.name for pool in machine.pools if pool.name in members) for members in group.values()):
        mine = np.array([one.pools[0] in names for one in machine.partitions])[partition]
        jobs = np.flatnonzero(mine & (start >= 0))
        times, busy = metrics.busy_processors(start[jobs], end[jobs], procs[jobs])
        size = sum(pool.nodes * pool.procs for pool in machine.pools if pool.name in names)
        groups.append(PoolGroup(names, size, jobs, times, busy))
    return groups


def _highest(levels: Array, first: Array, last: Array) -> Array:
    """Return the maximum of the levels from index `first` to `last` inclusive, for each pair, with a sparse table."""
    table = [levels]
    while 2 ** len(table) <= len(levels):
        half = 2 ** (len(table) - 1)
        table.append(np.maximum(table[-1][:-half], table[-1][half:]))
    power = np.log2(last - first + 1).astype(np.int64)
    highest = np.zeros(len(first), np.int64)
    for k, own in enumerate(table):
        mine = power == k
        highest[mine] = np.maximum(own[first[mine]], own[last[mine] + 1 - 2**k])
    return highest


AT_ONCE = 60
"""Jobs with waits up to this, s, count as started at once, because the scheduler runs only periodically."""
CAPACITY = "processors, or its turn"
REASONS = {
    r"Assoc|QOS|MaxJobs|MaxCpu|MaxNode|Grp|JobArrayTaskLimit|PartitionNodeLimit|PartitionTimeLimit": "a limit of the user, account or QOS",
    r"Dependency": "another job",
    r"BeginTime": "its requested begin time",
    r"JobHeld|Held": "being released (held)",
    r"Reserv|ReqNodeNotAvail|NodeDown|PartitionDown|PartitionInactive|Maint": "nodes that were down, drained or reserved",
    r"Licenses|BurstBuffer": "licences or other resources that are not modelled",
    r"Resources|Priority|None": CAPACITY,
}
"""Patterns of Slurm's reasons for pending jobs (manual of squeue), and the cause of the wait."""
OF_COLUMNS = {
    "depends_on": "name a job that they depend on",
    "reservation": "ran in a reservation",
    "held": "could not start at first (hold, dependency or begin time); this time is in neither wait",
}
"""Columns of the log whose positive values mark jobs that waited for another reason, each with this reason."""
RARE = 0.005
"""Largest share of overcommitted time that inexact times in the log may explain."""
SHORT = "This is so rare that the log's times may simply be inexact."
TOO_LITTLE = "The machine file has too few processors, or nodes were shared."


@dataclass(frozen=True)
class WaitCause(Averages):
    """A cause of waiting, its jobs, and their total recorded and simulated waits, h."""

    what: str
    jobs: int
    share: float
    """share of the measured jobs"""
    recorded_hours: float
    simulated_hours: float


@dataclass(frozen=True)
class Evidence:
    """Jobs that waited for something other than processors, hints about the machine file, and percentages of backfilled jobs."""

    rows: Sequence[WaitCause]
    hints: Sequence[str]
    backfilled_recorded: float | None = None
    backfilled_simulated: float | None = None


def find_evidence(schedule: Schedule, placement: Placement, recorded: Array, groups: Sequence[PoolGroup], mask: Array) -> Evidence:
    """Return the evidence; `recorded`: recorded waits, int64 s, -1 if unknown; `mask`: the measured jobs with known waits, bool."""
    workload = schedule.workload
    start = np.where(recorded >= 0, workload.submit + recorded, -1)
    count = max(int(mask.sum()), 1)

    def row(what: str, chosen: Array) -> WaitCause:
        inside = chosen & mask
        hours = (float(waits[inside].sum()) / 3600 for waits in (recorded, schedule.wait))
        return WaitCause(what, int(inside.sum()), float(inside.sum()) / count, *hours)

    rows = [row(f"waited last for {what}", chosen) for what, chosen in _by_reason(schedule)]
    free = np.zeros(len(workload), bool)
    for group in groups:
        long = group.jobs[recorded[group.jobs] > AT_ONCE]
        free[long] = group.least_free(workload.submit[long], start[long]) >= workload.procs[long]
    rows.append(row(f"waited more than {AT_ONCE} s with enough free processors throughout, perhaps reserved for other jobs", free))
    rows.append(row("… and start at once in the simulation, so they waited for something else", free & (schedule.wait <= AT_ONCE)))
    unknown = np.full(len(workload), -1)
    rows += [row(what, workload.columns.get(column, unknown) > 0) for column, what in OF_COLUMNS.items()]
    known_rows, hints = [one for one in rows if one.jobs], _hints(schedule, placement, start, groups)
    labels = workload.columns.get("sched_backfill", unknown)
    known = mask & (labels >= 0)
    if not known.any():
        return Evidence(known_rows, hints)
    shares = (100 * float(np.mean(backfilled[known])) for backfilled in (labels == 1, schedule.kind == Kind.BACKFILLED))
    return Evidence(known_rows, hints, *shares)


def _by_reason(schedule: Schedule) -> list[tuple[str, Array]]:
    """Return the causes in the log's column `reason`, which is the last reason for which a job waited, with masks of the jobs."""
    numbers, origin = schedule.workload.columns.get("reason"), schedule.workload.origin
    if numbers is None or "reason" not in origin.names:
        return []
    said: dict[str, list[int]] = {}
    for number, name in enumerate(origin.names["reason"], 1):
        what = next((what for pattern, what in REASONS.items() if re.match(pattern, name)), origin.name_of("reason", number))
        said.setdefault(what, []).append(number)
    return [(what, np.isin(numbers, members)) for what, members in said.items() if what != CAPACITY]


def _hints(schedule: Schedule, placement: Placement, start: Array, groups: Sequence[PoolGroup]) -> list[str]:
    """Return hints about errors in the machine file, from the recorded schedule."""
    hints = []
    for group in groups:
        if not len(group.jobs):
            continue
        where = f"the pool {group.pools[0]}" if len(group.pools) == 1 else f"the pools {', '.join(group.pools)}"
        over = group.started_overfull(start)
        if len(over):
            hints.append(
                f"After {counted(len(over), 'recorded start')}, more processors of {where} were busy than its {group.procs:,} (up to "
                f"{group.most:,}; {100 * group.overfull_share():.1f} % of the time). "
                + (SHORT if group.overfull_share() < RARE else TOO_LITTLE)
            )
        elif group.most < 0.9 * group.procs:
            hints.append(
                f"At most {group.most:,} of the {group.procs:,} processors of {where} were busy at once: the machine file may have too "
                "many processors, or jobs waited for something else."
            )
    unknown = int((start < 0).sum())
    if unknown:
        hints.append(f"Jobs without a recorded start are simulated but not compared: {unknown:,} of {len(start):,}.")
    if not (schedule.workload.columns.get("partition", np.full(1, -1)) >= 0).any() and len(placement.machine.partitions) > 1:
        hints.append("The log has no partitions: all jobs are submitted to the first one.")
    return hints
