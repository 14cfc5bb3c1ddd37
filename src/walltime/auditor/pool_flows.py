"""Rules for schedules that do not record the jobs' pools: at every start, the running jobs must fit into the pools in some way.

The jobs of some partitions together must fit into all pools that these partitions can use (Hall's condition on unions of pools). An outage
takes processors that are in use without ending jobs, so more of a pool may be in use than is left, but then no job may start there. On
single nodes, jobs that run on lost nodes leave the other nodes free, so only the jobs that have started since the outage must fit into the
rest.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from walltime.auditor.rows import used_at_starts
from walltime.auditor.walk import MachineSchedule
from walltime.machine import Placement
from walltime.machine.placing import NEVER

Array = np.ndarray
MOST_PARTITIONS = 10
"""Largest number of partitions whose unions are checked."""
MOST_POOLS_OUT = 8
"""Largest number of pools with an outage for which jobs that outlast the beginning of the outage are considered."""


def broken_by_unions(schedule: MachineSchedule) -> Iterator[tuple[int, str]]:
    """Yield index and message of each job at whose start the use of some pools together exceeds their capacity."""
    placement, machine = schedule.placement, schedule.placement.machine
    sets = [frozenset(one.pools) for one in machine.partitions]
    capacity = {pool.name: np.array([pool.nodes * pool.procs, pool.nodes * pool.second]) for pool in machine.pools}
    unions = {frozenset().union(*chosen) for k in range(1, min(len(sets), MOST_PARTITIONS) + 1) for chosen in combinations(sets, k)}
    amounts = np.stack([schedule.workload.procs, placement.second], axis=1)
    for union in sorted(unions, key=sorted):
        inside = np.isin(placement.partition, [k for k, own in enumerate(sets) if own <= union])
        jobs = np.flatnonzero(inside)
        used = used_at_starts(schedule.start[jobs], schedule.end[jobs], amounts[jobs])
        has = sum((capacity[name] for name in union), np.zeros(2, np.int64))
        for k in np.flatnonzero((used > has).any(axis=1)):
            yield int(jobs[k]), f"starts, and then {used[k].tolist()} of {has.tolist()} of {', '.join(sorted(union))} is in use"


def broken_in_outages(schedule: MachineSchedule, nodes: Any) -> Iterator[tuple[int, str]]:
    """Yield index and message of each job that starts in an outage and cannot be placed; `nodes`: None unless the policy plans nodes."""
    placement, machine, start, end = schedule.placement, schedule.placement.machine, schedule.start, schedule.end
    if not placement.outages:
        return
    amounts = np.stack([schedule.workload.procs, placement.second], axis=1)
    at_first = placement.since < NEVER
    for kind in range(2):
        levels = [PoolLevels(placement, p, kind, nodes) for p in range(len(machine.pools))]
        has = np.stack([np.where(at_first, one.most, one.at(start)) for one in levels], axis=1)
        need = amounts[:, kind]
        out = np.stack([one.at(start) < one.most for one in levels], axis=1).any(axis=1)
        for moment in np.unique(start[out & ~at_first & (need > 0)]).tolist():
            through = np.flatnonzero((start < moment) & (end > moment) & (need > 0))
            starters = np.flatnonzero((start == moment) & ~at_first & (need > 0))
            lasting = starters[end[starters] > moment]
            # Jobs with runtime 0 need not run at the same time, nor together with the other jobs that start then.
            for together in [lasting, *(np.array([job]) for job in starters[end[starters] <= moment].tolist())]:
                if len(together) and not _fit(schedule, np.concatenate([through, together]), moment, need, has, levels, nodes is not None):
                    had = f"with {len(through)} running jobs and outages considered, its partition's pools have no room for it"
                    yield int(together[-1]), f"starts at {moment}, but {had}"


class PoolLevels:
    """The capacity of a pool over time: processors (`kind` 0) or second resource (1); with `nodes`, a node in two outages counts once."""

    def __init__(self, placement: Placement, pool: int, kind: int, nodes: Any = None):
        one = placement.machine.pools[pool]
        each = (one.procs, one.second)[kind]
        self.most = one.nodes * each
        mine: list[tuple[int, int, Sequence[int]]]
        if nodes is None:
            mine = [(begin, until, range(procs // one.procs)) for p, procs, _, begin, until, _ in placement.outages if p == pool]
        else:
            mine = [(begin, until, own) for own, begin, until, _, reservation in nodes.outages if reservation == 0]
            mine = [(begin, until, own) for begin, until, own in mine if nodes.pool[own[0]] == pool]
        self.times = np.array(sorted({time for begin, until, _ in mine for time in (begin, until)}), np.int64)
        out = [[own for begin, until, own in mine if begin <= time < until] for time in self.times.tolist()]
        left = [self.most - each * (sum(map(len, sets)) if nodes is None else len(set().union(*sets))) for sets in out]
        self.left = np.maximum(np.array([self.most, *left], np.int64), 0)

    def at(self, time: Array | int) -> Array:
        """Return the capacity at each of these times (s), int64."""
        return np.asarray(self.left[np.searchsorted(self.times, time, side="right")])

    def since(self, time: int) -> int:
        """Return the time of the last change of capacity up to a time, s."""
        place = int(np.searchsorted(self.times, time, side="right"))
        return int(self.times[place - 1]) if place else -NEVER


def _fit(schedule: MachineSchedule, jobs: Array, moment: int, need: Array, has: Array, levels: list[PoolLevels], by_node: bool) -> bool:
    """Return whether these jobs fit into the pools of their partitions together.

    If a pool has lost processors, either its use is at most the rest, or no job in it has started since the loss. On individual nodes
    (`by_node`), all jobs must fit into the pools as if there were no losses, and the jobs that started since the last change into what is
    left.
    """
    placement, machine = schedule.placement, schedule.placement.machine
    places = [[machine.place_of(name) for name in one.pools] for one in machine.partitions]
    left, most, since = [int(one.at(moment)) for one in levels], [one.most for one in levels], [one.since(moment) for one in levels]
    lost = [p for p in range(len(levels)) if left[p] < most[p]][:MOST_POOLS_OUT]
    kinds = Counter[tuple[frozenset[int], frozenset[int]]]()
    for job in jobs.tolist():
        open_to = frozenset(p for p in places[placement.partition[job]] if has[job, p] > 0)
        start = schedule.start[job] if placement.since[job] == NEVER else -NEVER
        recent = (open_to if start >= max(since) else ()) if by_node else (p for p in lost if p in open_to and start >= since[p])
        kinds[open_to, frozenset(recent)] += int(need[job])
    if by_node:
        everyone, latest = ([(pools, amount) for (pools, recent), amount in kinds.items() if recent or not new] for new in (False, True))
        return _is_enough(everyone, most) and _is_enough(latest, left)
    for count in range(len(lost) + 1):
        for kept in combinations(lost, count):
            supply = [(open_to - (recent - frozenset(kept)), amount) for (open_to, recent), amount in kinds.items()]
            if _is_enough(supply, [left[p] if p in kept else most[p] for p in range(len(levels))]):
                return True
    return False


def _is_enough(supply: Iterable[tuple[frozenset[int], int]], room: Sequence[int]) -> bool:
    """Return whether amounts fit into pools by Hall's condition: no union of pools has less room than the amounts bound to it."""
    needs = Counter[frozenset[int]]()
    for own, amount in supply:
        needs[own] += amount
    unions: set[frozenset[int]] = set()
    for own in needs:
        unions |= {own | other for other in unions} | {own}
    return all(sum(amount for own, amount in needs.items() if own <= union) <= sum(room[p] for p in union) for union in unions)
