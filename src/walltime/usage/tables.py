"""The tables of `walltime waste`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from walltime.metrics.energy import ENERGY_NOTE, cost_of
from walltime.tables import Cell, Row, Table, energy_cells, hours_cell
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
from walltime.wording import UNDEFINED, human_percent, listed
from walltime.workload import Array, Workload
from walltime.workload.columns import IDLE_GPU

MEANING = (
    "A core-hour is one processor for one hour, a GB-hour 1 GB of memory for one hour. Requested: requested amount times requested time. "
    "Allocated: allocated amount times runtime."
)
MEASURED = " Measured: allocated hours of the jobs whose use is recorded; used and unused hours are parts of them."


def resources_table(total: GroupHours) -> Table:
    """Return a table of the hours of each resource."""
    rows: list[Row] = []
    for name, one in total.hours.items():
        cells = [hours_cell(value) for value in (one.asked, one.allocated, one.measured, one.used, one.unused)]
        rows.append([RESOURCES[name], *cells, share_cell(one.efficiency), Cell(f"{one.unmeasured_jobs:,}", value=one.unmeasured_jobs)])
    head = ["resource", "requested", "allocated", "measured", "used", "unused", "efficiency", "jobs unmeasured"]
    measured = MEASURED if any(one.measured > 0 for one in total.hours.values()) else ""
    return Table(head, rows, "Hours by resource", MEANING + measured)


def lost_table(lost: Sequence[Lost], total: GroupHours) -> Table:
    """Return a table of the lost hours of each cause."""
    rows: list[Row] = []
    cores = total.hours["cores"].allocated if "cores" in total.hours else 0.0
    for one in lost:
        share = one.hours["cores"] / cores if cores > 0 else math.nan
        jobs = Cell(f"{one.jobs:,}", value=one.jobs)
        rows.append([CAUSES[one.cause], jobs, *(hours_cell(value) for value in one.hours.values()), share_cell(share)])
    head = ["cause", "jobs", *(RESOURCES[name] for name in total.hours), "share of core-hours"]
    remark = "Allocated hours of the jobs that ended in this way. Jobs killed at their limit may have saved their state."
    return Table(head, rows, "Lost hours by cause", remark)


def patterns_table(patterns: Sequence[Pattern]) -> Table:
    """Return a table of the patterns of waste."""
    rows: list[Row] = []
    for one in patterns:
        words, _ = PATTERNS[one.name]
        jobs = Cell(f"{one.jobs:,}", value=one.jobs) if one.judged else Cell(UNDEFINED)
        rows.append([words, jobs, Cell(f"{one.judged:,}", value=one.judged), hours_cell(one.unused), RESOURCES[one.resource]])
    meanings = {
        "idle_gpus": f"Idle GPUs: mean use below {IDLE_GPU:g} %.",
        "one_core": f"One busy processor: on average, at most {ONE_CORE:g} processors are busy.",
        "memory_tenfold": f"Tenfold memory: the request is at least {TENFOLD} times the peak.",
        "idle_sessions": f"Idle sessions: below {100 * IDLE_SESSION:g} % of the processor time is used.",
    }
    shown = [text for name, text in meanings.items() if any(one.name == name for one in patterns)]
    remark = " ".join([*shown, "Judged: jobs with enough recorded use to check the pattern. A job can have several patterns."])
    return Table(["pattern", "jobs", "jobs judged", "unused hours", "unit"], rows, "Patterns of waste", remark)


def groups_table(by: str, groups: Sequence[GroupHours], alike: Sequence[str]) -> Table:
    """Return a table of the groups of one grouping; `alike`: all groupings with the same groups."""
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
    measured = {name for group in groups for name, one in group.hours.items() if one.measured > 0}
    note = "Efficiency and unused hours are of jobs with recorded use. " if measured else ""
    note += f"Sorted by {'unused' if 'cores' in measured else 'allocated'} core-hours."
    return Table([*head, "core-hours lost"], rows, f"By {listed([GROUPINGS[one] for one in alike])}", note)


MOST_JOBS = 10
"""Number of jobs in the table of energy."""


def energy_groups_table(by: str, groups: Sequence[GroupHours], price: float | None) -> Table:
    """Return a table of the energy of the groups of one grouping, in descending order."""
    ordered = sorted(groups, key=lambda one: -np.nan_to_num(one.energy))
    head, cells = energy_cells([(one.energy, cost_of(one.energy, price), one.grams) for one in ordered])
    counts = [Cell(f"{one.energy_jobs:,}", value=one.energy_jobs) for one in ordered]
    rows: list[Row] = [[one.group, count, *own] for one, count, own in zip(ordered, counts, cells, strict=True)]
    return Table([GROUPINGS[by], "jobs", *head], rows, f"Energy by {GROUPINGS[by]}", f"Jobs with known energy only. {ENERGY_NOTE}")


def energy_jobs_table(w: Workload, kwh: Array, grams: Array, price: float | None) -> Table:
    """Return a table of the jobs with the most energy; `kwh`, `grams`: the amounts of each job, nan if unknown."""
    users = w.columns.get("user", np.full(len(w), -1))
    jobs = [job for job in np.argsort(-np.nan_to_num(kwh), kind="stable")[:MOST_JOBS].tolist() if kwh[job] > 0]
    head, cells = energy_cells([(float(kwh[job]), cost_of(float(kwh[job]), price), float(grams[job])) for job in jobs])
    names = [w.origin.name_of("user", int(users[job])) if users[job] >= 0 else UNDEFINED for job in jobs]
    rows: list[Row] = [[f"{w.job_id[job]}", name, *own] for job, name, own in zip(jobs, names, cells, strict=True)]
    return Table(["job", "user", *head], rows, "Jobs with the most energy", texts=2)


def share_cell(share: float) -> Cell:
    """Return a cell with a share in percent."""
    return Cell(UNDEFINED) if math.isnan(share) else Cell(human_percent(100 * share), value=share)
