"""The offered load of a log on a machine, by partition, pool and resource."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from walltime.machine import Machine, Placement
from walltime.machine.tables import RESOURCES
from walltime.node_demands import PoolNeeds, pool_needs
from walltime.tables import Cell, Row, Table
from walltime.wording import UNDEFINED, human_percent
from walltime.workload import Array, Workload

KINDS = ("second", "memory", "procs")
"""The resources in the order of `PoolNeeds.amounts`."""
REMARK = (
    "Work of the jobs over the capacity between the first and the last submission; outages are not subtracted. A job that may use several "
    f"pools counts in each in proportion to its size. {UNDEFINED}: the pools have none, or the log does not record requests."
)


def offered_loads(placed: Workload, placement: Placement) -> list[dict[str, Any]]:
    """Return the offered load of placed jobs: on the machine, on the pools of each partition (from its own jobs), and on each pool.

    Each row has `kind, name, jobs` and the loads `procs, second, memory`, shares from 0 up; None where the jobs' requests, or the size of a
    pool, are unknown.
    """
    return list(_rows(placed, placement, pool_needs(placed, placement)))


def _rows(placed: Workload, placement: Placement, needs: PoolNeeds) -> Iterator[dict[str, Any]]:
    machine, everywhere = placement.machine, np.ones(len(placement.machine.pools), bool)
    yield {"kind": "machine", "name": machine.name, **_loads(placed, needs, np.ones(len(placed), bool), everywhere)}
    for k, one in enumerate(machine.partitions):
        mine = placement.partition == k
        pools = np.isin(np.arange(len(everywhere)), [machine.place_of(name) for name in one.pools])
        yield {"kind": "partition", "name": one.name, **_loads(placed, needs, mine, pools)}
    for k, pool in enumerate(machine.pools):
        mine = needs.sets[needs.members, k]
        yield {"kind": "pool", "name": pool.name, **_loads(placed, needs, mine, np.arange(len(everywhere)) == k)}


def _loads(placed: Workload, needs: PoolNeeds, mine: Array, pools: Array) -> dict[str, Any]:
    """Return the number of the jobs in `mine`, and their load on `pools` (both bool)."""
    span = int(placed.submit[-1] - placed.submit[0])
    loads: dict[str, Any] = {"jobs": int(mine.sum())}
    for r, kind in enumerate(KINDS):
        sizes = needs.sizes[pools, r]
        known = span > 0 and needs.amounts[:, r].any() and sizes.any() and (kind != "memory" or sizes.all())
        inside = needs.shares(r)[needs.members[mine]] @ pools
        work = float(np.dot(needs.amounts[mine, r] * inside, placed.runtime[mine]))
        loads[kind] = work / (float(sizes.sum()) * span) if known else None
    return loads


def loads_table(loads: list[dict[str, Any]], machine: Machine) -> Table:
    """Return a table of the loads; resources without any known load have no column."""
    titles = {"procs": "processors", "second": RESOURCES.get(machine.second, machine.second), "memory": "memory"}
    shown = {kind: title for kind, title in titles.items() if any(row[kind] is not None for row in loads)}
    rows: list[Row] = []
    for row in loads:
        values = [row[kind] for kind in shown]
        cells = [Cell(UNDEFINED if value is None else human_percent(100 * value), value=value) for value in values]
        name = "whole machine" if row["kind"] == "machine" else f"{row['kind']} {row['name']}"
        rows.append([name, Cell(f"{row['jobs']:,}", value=row["jobs"]), *cells])
    return Table(["", "jobs", *shown.values()], rows, "Offered load by partition and pool", REMARK)
