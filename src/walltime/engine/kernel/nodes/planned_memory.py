"""The memory of a simulation that reserves nodes for several waiting jobs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walltime.engine.kernel.nodes.easy import EasyMemory
from walltime.engine.kernel.nodes.records import RANGE
from walltime.engine.kernel.pools.memory import Lists

Array = np.ndarray
Records = Any


class Plan(NamedTuple):
    """The levels of the plan (planned.py).

    * `times`: of each level, int64 s; `rows`: the row of its amounts in `free` and `totals`, which are as in records.Use
    * `sources`: for each row, the row of `Use.free` that holds its free amounts instead, -1 for none; they are copied once a reservation
      takes some
    * `drops`: for each row, whether less may be free than in the level before, because a reservation begins there
    * `least`: scratch
    * `held`: ranges of nodes of the kept reservations, in one half or the other, shape (2, entries)
    * `pools_of`: the pools of each partition
    * `pools`: for each pool, whether a job waits for it and how many reservations this pass has made on it, shape (pools, 2); if
      reservations are kept, the columns FREED and FREED_BY_MOVES of planned.py
    """

    times: Array
    rows: Array
    sources: Array
    drops: Array
    free: Array
    totals: Array
    least: Array
    held: Records
    pools_of: Lists
    pools: Array


class PlannedMemory(NamedTuple):
    """All data of one simulation."""

    state: Records
    rules: Records
    jobs: Records
    site: Any
    use: Any
    plan: Any
    traffic: Any
    line: Any
    levels: Plan


def new_planned_memory(memory: EasyMemory, pools_of: Lists) -> PlannedMemory:
    """Return memory before the first event, from the memory of easy.py."""
    planes, words = memory.use.free.shape[1:]
    columns = int(memory.state.kinds) * (1 + (memory.state.second_end > memory.state.procs_planes))
    pools = np.zeros((int(pools_of.items.max(initial=-1)) + 1, 2), np.int64)
    none = np.zeros(0, np.int64)
    held = np.empty((2, 0), RANGE).view(np.recarray)
    tables = np.empty((0, planes, words), np.int64), np.empty((0, columns), np.int64)
    return PlannedMemory(*memory, Plan(none, none, none, none, *tables, np.zeros((planes, words), np.int64), held, pools_of, pools))


def with_room_for_plan(memory: PlannedMemory) -> PlannedMemory:
    """Return the memory with room for the levels of the next pass and the reservations of its jobs."""
    levels, most, ranges = memory.levels, int(memory.state.levels_needed), int(memory.state.held_needed)
    if len(levels.times) < most:
        count, old = 2 * most, len(levels.times)
        columns = [np.empty((count, *one.shape[1:]), np.int64) for one in levels[:6]]
        for new, one in zip(columns, levels[:6], strict=True):
            new[:old] = one
        levels = Plan(*columns, *levels[6:])  # type: ignore[call-arg, arg-type]  # mypy does not count the list
    if levels.held.shape[1] < ranges:
        held = np.empty((2, 2 * ranges), RANGE).view(np.recarray)
        held[:, : levels.held.shape[1]] = levels.held
        levels = levels._replace(held=held)
    return memory._replace(levels=levels)
