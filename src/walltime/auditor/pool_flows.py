"""What can be said of pools where a schedule does not tell which ones the jobs had: whether there is any way to place them.

At every start the jobs that run must fit into the pools of their partitions, wherever they are (Hall's condition on unions of pools). An
outage takes what is in use without ending jobs, so that more may be in use of a pool than it has left, but then nothing starts there.
Where single nodes are planned, the jobs on the nodes that are lost leave the others free: there only what has started since must fit into
what is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np

from walltime.auditor.walk import MachineSchedule
from walltime.machine import Placement
from walltime.machine.placing import NEVER

Array = np.ndarray
MOST_PARTITIONS = 10
"""Of more partitions, not all unions are tried."""
MOST_POOLS_OUT = 8
"""With outages in more pools at once, not all ways are tried in which jobs may outlast their beginnings."""


def used_at_starts(start: Array, end: Array, amounts: Array) -> Array:
    """What jobs use together when each starts, int64, shape (jobs, kinds of amounts).

    All that starts at the instant counts, and nothing that ends then. A job of no length needs its amounts only beside the jobs that
    run before and after the instant: whatever starts then may start after it.
    """
    ran, used = end > start, np.zeros_like(amounts)
    for kind in range(amounts.shape[1]):
        by_start, by_end = np.argsort(start[ran], kind="stable"), np.argsort(end[ran], kind="stable")
        come = np.concatenate([[0], np.cumsum(amounts[ran, kind][by_start])])
        gone = np.concatenate([[0], np.cumsum(amounts[ran, kind][by_end])])
        begun = np.where(
            ran, np.searchsorted(start[ran][by_start], start, side="right"), np.searchsorted(start[ran][by_start], start, side="left")
        )
        used[:, kind] = come[begun] - gone[np.searchsorted(end[ran][by_end], start, side="right")]
    used[~ran] += amounts[~ran]
    return used


def broken_by_unions(schedule: MachineSchedule) -> Iterator[tuple[int, str]]:
    """The jobs with whose start more runs in some pools than they have: the job's index and what is in use."""
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
            yield int(jobs[k]), f"{used[k].tolist()} of {has.tolist()} of {', '.join(sorted(union))}"


def broken_in_outages(schedule: MachineSchedule, by_node: bool) -> Iterator[tuple[int, str]]:
    """The jobs that start in an outage which leaves no way to place them: the job's index and why; `by_node`: nodes are planned singly."""
    placement, machine, start, end = schedule.placement, schedule.placement.machine, schedule.start, schedule.end
    if not placement.outages:
        return
    amounts = np.stack([schedule.workload.procs, placement.second], axis=1)
    at_first = placement.since < NEVER
    for kind in range(2):
        levels = [_Levels(placement, p, kind) for p in range(len(machine.pools))]
        fit = _fit_on_nodes if by_node else _fit
        has = np.stack([np.where(at_first, one.most, one.at(start)) for one in levels], axis=1)
        need = amounts[:, kind]
        out = np.stack([one.at(start) < one.most for one in levels], axis=1).any(axis=1)
        for moment in np.unique(start[out & ~at_first & (need > 0)]).tolist():
            through = np.flatnonzero((start < moment) & (end > moment) & (need > 0))
            starters = np.flatnonzero((start == moment) & ~at_first & (need > 0))
            lasting = starters[end[starters] > moment]
            # Those of no length need not be there at once, nor beside those that start then.
            for together in [lasting, *(np.array([job]) for job in starters[end[starters] <= moment].tolist())]:
                if len(together) and not fit(schedule, np.concatenate([through, together]), moment, need, has, levels):
                    job = int(together[-1])
                    yield job, f"with {len(through)} that run and outages considered, its partition's pools have no room for it"


class _Levels:
    """How much a pool has, of processors or of the second resource, over time."""

    def __init__(self, placement: Placement, pool: int, kind: int):
        one = placement.machine.pools[pool]
        self.most = one.nodes * (one.procs, one.second)[kind]
        mine = [(begin, until, (procs, second)[kind]) for p, procs, second, begin, until, _ in placement.outages if p == pool]
        self.times = np.array(sorted({time for begin, until, _ in mine for time in (begin, until)}), np.int64)
        left = [self.most - sum(gone for begin, until, gone in mine if begin <= time < until) for time in self.times.tolist()]
        self.left = np.maximum(np.array([self.most, *left], np.int64), 0)

    def at(self, time: Array) -> Array:
        return np.asarray(self.left[np.searchsorted(self.times, time, side="right")])

    def since(self, time: int) -> int:
        """When it came to have what it has."""
        place = int(np.searchsorted(self.times, time, side="right"))
        return int(self.times[place - 1]) if place else int(np.iinfo(np.int64).min)


def _fit(schedule: MachineSchedule, jobs: Array, moment: int, need: Array, has: Array, levels: list[_Levels]) -> bool:
    """Whether these jobs can be in the pools of their partitions at once.

    Of a pool that has lost some of it, either no more is in use than is left, or nobody is there who has started since the loss.
    """
    placement, machine = schedule.placement, schedule.placement.machine
    places = [[machine.place_of(name) for name in one.pools] for one in machine.partitions]
    left = [int(one.at(np.array(moment))) for one in levels]
    most = [one.most for one in levels]
    lost = [p for p in range(len(levels)) if left[p] < most[p]][:MOST_POOLS_OUT]
    since = [levels[p].since(moment) for p in range(len(levels))]
    kinds: dict[tuple[frozenset[int], frozenset[int]], int] = {}
    for job in jobs.tolist():
        open_to = frozenset(p for p in places[placement.partition[job]] if has[job, p] > 0)
        recent = frozenset(p for p in lost if p in open_to and schedule.start[job] >= since[p] and placement.since[job] == NEVER)
        kinds[open_to, recent] = kinds.get((open_to, recent), 0) + int(need[job])
    for count in range(len(lost) + 1):
        for kept in combinations(lost, count):
            room = {p: left[p] if p in kept else most[p] for p in range(len(levels))}
            supply: dict[frozenset[int], int] = {}
            for (open_to, recent), amount in kinds.items():
                mine = open_to - (recent - frozenset(kept))
                supply[mine] = supply.get(mine, 0) + amount
            if _is_enough(supply, room):
                return True
    return False


def _fit_on_nodes(schedule: MachineSchedule, jobs: Array, moment: int, need: Array, has: Array, levels: list[_Levels]) -> bool:
    """Whether all jobs fit into the pools without losses, and those that have started since all losses into what is left."""
    placement, machine = schedule.placement, schedule.placement.machine
    places = [[machine.place_of(name) for name in one.pools] for one in machine.partitions]
    begun = max(one.since(moment) for one in levels)
    everyone: dict[frozenset[int], int] = {}
    recent: dict[frozenset[int], int] = {}
    for job in jobs.tolist():
        open_to = frozenset(p for p in places[placement.partition[job]] if has[job, p] > 0)
        everyone[open_to] = everyone.get(open_to, 0) + int(need[job])
        if schedule.start[job] >= begun and placement.since[job] == NEVER:
            recent[open_to] = recent.get(open_to, 0) + int(need[job])
    left = {p: int(one.at(np.array(moment))) for p, one in enumerate(levels)}
    return _is_enough(everyone, {p: one.most for p, one in enumerate(levels)}) and _is_enough(recent, left)


def _is_enough(supply: Mapping[frozenset[int], int], room: Mapping[int, int]) -> bool:
    """Hall's condition: what can only be in some pools is no more than these have, for all unions of what is asked for."""
    unions: set[frozenset[int]] = set()
    for own in supply:
        unions |= {own | other for other in unions} | {own}
    return all(sum(amount for own, amount in supply.items() if own <= union) <= sum(room[p] for p in union) for union in unions)
