"""The recorded schedule on the machine file: overcommitted times, and jobs that waited while processors were free."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from walltime import metrics
from walltime.machine import Machine

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class PoolGroup:
    """Pools that partitions share, directly or through others, and their recorded use together.

    `times, busy`: int64, a step function of busy processors; `jobs`: int64, the places of its jobs with a recorded start.
    """

    pools: tuple[str, ...]
    procs: int
    jobs: Array
    times: Array
    busy: Array

    @property
    def most(self) -> int:
        """Largest number of busy processors."""
        return int(self.busy.max(initial=0))

    def overfull_share(self) -> float:
        """Return the share of the time from the first start to the last end with more busy than existing processors; nan without jobs."""
        if len(self.times) < 2:
            return float("nan")
        length = np.diff(self.times)
        return float(length[self.busy[:-1] > self.procs].sum() / length.sum())

    def started_overfull(self, start: Array) -> Array:
        """Return its jobs that started although too few processors were free; `start`: of all jobs, s."""
        levels = np.concatenate(([0], self.busy))  # idle before the first time
        return self.jobs[levels[np.searchsorted(self.times, start[self.jobs], "right")] > self.procs]

    def least_free(self, begin: Array, end: Array) -> Array:
        """Return the smallest number of free processors between these times, int64; all processors in empty times."""
        first = np.searchsorted(self.times, begin, "right") - 1
        last = np.searchsorted(self.times, end, "left") - 1
        levels = np.concatenate(([0], self.busy))  # idle before the first time
        return self.procs - _highest(levels, first + 1, np.maximum(last, first) + 1)


def pool_groups(machine: Machine, partition: Array, procs: Array, start: Array, end: Array) -> list[PoolGroup]:
    """Return groups of the machine's pools that no partition crosses, with the recorded schedule of each.

    `partition`, `procs`: of each job; `start, end`: recorded, s, -1 if unknown; int64, shape (jobs,). Logs do not record which of several
    pools a job used, so these are counted together.
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
    """Return the maximum of the levels from `first` to `last` inclusive, for each pair of places (sparse table)."""
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
