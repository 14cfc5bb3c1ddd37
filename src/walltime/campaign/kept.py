"""Compute further metrics from the schedules that a campaign keeps, without simulating again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime.campaign.plan import Plan
from walltime.campaign.run import find_logs, jobs_of
from walltime.campaign.store import KEPT, Store
from walltime.campaign.work import workload_of
from walltime.errors import OutputError
from walltime.metrics import metric
from walltime.schedule import Schedule
from walltime.schedule.elsewhere import OtherProgram
from walltime.wording import printable

if TYPE_CHECKING:
    import polars as pl

    from walltime.campaign.cell import Cell

BYTES, HEAD = 10, 3000
"""Size of a job in a kept schedule, and of an empty schedule, bytes, measured on generated workloads."""


def kept_bytes(plan: Plan, cells: Sequence[Cell]) -> int:
    """Return the approximate size of the schedules of these cells, bytes."""
    jobs = jobs_of(find_logs(plan))
    return sum(HEAD + BYTES * jobs(cell) for cell in cells)


def with_metrics(plan: Plan, store: Store, keys: Sequence[str], cells: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return the table of cells with a column for each of these metrics (`Schedule.metric`), computed from the kept schedules.

    `keys`: the keys of all cells of the plan, in order. Raises PolicyError for an unknown metric, OutputError if the campaign kept no
    schedules, and LogError for a missing log.
    """
    import polars as pl

    for name in names:
        metric(name)
    found, logs, have = dict.fromkeys(cells["cell"], [math.nan] * len(names)), find_logs(plan), store.kept()
    for key, cell in zip(keys, plan.cells, strict=True):
        if key not in found:
            continue
        if key not in have:
            remedy = 'write keep = "schedules" below [campaign], and run the plan again'
            raise OutputError(
                f"{printable(store.folder)}: has no schedules from which {names[0]} could be computed; {remedy}", "no_schedules"
            )
        schedule = _schedule(cell, logs, store, key)
        found[key] = [schedule.metric(name, cell.trim) for name in names]
    columns = zip(names, zip(*(found[key] for key in cells["cell"]), strict=True), strict=True)
    return cells.with_columns(pl.Series(name, [x if math.isfinite(x) else None for x in one], pl.Float64) for name, one in columns)


def _schedule(cell: Cell, logs: dict[str, tuple[str, str]], store: Store, key: str) -> Schedule:
    """Return the kept schedule of a cell on its workload, which is read or generated again."""
    columns: dict[str, Any] = store.schedule(key)
    workload = workload_of(cell, logs)
    if len(workload) > len(columns["job_id"]):  # jobs that the machine cannot run
        workload = workload.take(np.isin(workload.job_id, columns["job_id"]), "kept schedule")
    if not np.array_equal(workload.job_id, columns["job_id"]):
        raise OutputError(f"{printable(store.schedules / key)}.parquet: has other jobs than the log; delete it and run again", "wrong_jobs")
    submitted = columns["submit"] if cell.settings["feedback"] else None
    times = {name: columns[name] for name in KEPT if name not in ("job_id", "submit")}
    policy = OtherProgram(program=cell.settings["policy"])
    return Schedule(workload, policy, **times, overrun=cell.settings["overrun"], submitted=submitted, seed=cell.seed or 0)
