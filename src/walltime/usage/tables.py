"""The tables of `walltime waste`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from walltime.tables import Cell, Row, Table, hours_cell
from walltime.usage.records import (
    CAUSES,
    GROUPINGS,
    IDLE_SESSION,
    ONE_CORE,
    PATTERNS,
    RESOURCES,
    TENFOLD,
    GroupHours,
    Lost,
    Pattern,
)
from walltime.wording import UNDEFINED, human_percent
from walltime.workload.columns import IDLE_GPU

MEANING = (
    "Requested: amount requested x time requested. Allocated: amount allocated x runtime. Measured: allocated hours of the jobs whose use "
    "is recorded; used and unused are parts of them."
)


def resources_table(total: GroupHours) -> Table:
    """Return a table of the hours of each resource."""
    rows: list[Row] = []
    for name, one in total.hours.items():
        cells = [hours_cell(value) for value in (one.asked, one.allocated, one.measured, one.used, one.unused)]
        rows.append([RESOURCES[name], *cells, share_cell(one.efficiency), Cell(f"{one.unmeasured_jobs:,}", value=one.unmeasured_jobs)])
    head = ["", "requested", "allocated", "measured", "used", "unused", "efficiency", "jobs unmeasured"]
    return Table(head, rows, "Hours by resource", MEANING)


def lost_table(lost: Sequence[Lost], total: GroupHours) -> Table:
    """Return a table of the lost hours of each cause."""
    rows: list[Row] = []
    for one in lost:
        share = one.hours["cores"] / total.hours["cores"].allocated if total.hours["cores"].allocated > 0 else math.nan
        rows.append([CAUSES[one.cause], f"{one.jobs:,}", *(hours_cell(value) for value in one.hours.values()), share_cell(share)])
    head = ["cause", "jobs", *(RESOURCES[name] for name in total.hours), "share of core-hours"]
    remark = "Allocated hours of jobs that ended in this way. Jobs at their limit may have saved their state."
    return Table(head, rows, "Lost hours by cause", remark)


def patterns_table(patterns: Sequence[Pattern]) -> Table:
    """Return a table of the patterns of waste."""
    rows: list[Row] = []
    for one in patterns:
        words, _ = PATTERNS[one.name]
        jobs = Cell(f"{one.jobs:,}", value=one.jobs) if one.judged else Cell(UNDEFINED)
        rows.append([words, jobs, Cell(f"{one.judged:,}", value=one.judged), hours_cell(one.unused), RESOURCES[one.resource]])
    remark = (
        f"Idle GPUs: mean use below {IDLE_GPU:g} %. One busy processor: at most {ONE_CORE:g} processors busy on average. Tenfold memory: "
        f"at least {TENFOLD} times the peak. Idle sessions: below {100 * IDLE_SESSION:g} % of the processors. Judged: jobs for which the "
        "log records enough."
    )
    return Table(["pattern", "jobs", "jobs judged", "unused hours", "unit"], rows, "Patterns of waste", remark)


def groups_table(by: str, groups: Sequence[GroupHours]) -> Table:
    """Return a table of the groups of one grouping."""
    names = [name for name in groups[0].hours if name != "nodes"]
    rows: list[Row] = []
    for group in groups:
        cells: list[Cell] = []
        for name in names:
            one = group.hours[name]
            cells += [hours_cell(one.allocated), share_cell(one.efficiency), hours_cell(one.unused)]
        rows.append([group.group, Cell(f"{group.jobs:,}", value=group.jobs), *cells, hours_cell(group.lost)])
    head = [GROUPINGS[by], "jobs"]
    for name in names:
        head += [f"{RESOURCES[name]} allocated", "efficiency", "unused"]
    return Table([*head, "core-hours lost"], rows, f"By {GROUPINGS[by]}", "Those with the most unused core-hours first.")


def share_cell(share: float) -> Cell:
    """Return a cell with a share in percent."""
    return Cell(UNDEFINED) if math.isnan(share) else Cell(human_percent(100 * share), value=share)
