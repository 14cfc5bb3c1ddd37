"""Read the results of a plan from its store: cells, caveats, comparisons, and additional metrics from the schedules that it keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime.campaign.cell import USER_FILE_SETTINGS, Cell
from walltime.campaign.plan import Plan
from walltime.campaign.run import Failures, failures_of, find_logs, jobs_of, plan_keys
from walltime.campaign.store import KEPT, Store
from walltime.campaign.work import workload_of
from walltime.comparison.cell_caveats import cell_caveats
from walltime.comparison.combination_means import METRICS, CombinationMean, compare_cells
from walltime.errors import OutputError
from walltime.metrics import metric
from walltime.schedule import Schedule
from walltime.schedule.elsewhere import OtherProgram
from walltime.wording import counted, printable

if TYPE_CHECKING:
    import polars as pl

    from walltime.campaign.cell import Cell


@dataclass(frozen=True, eq=False)
class Results:
    """The finished cells of a plan."""

    plan: Plan
    store: Store
    keys: Sequence[str]
    """keys of all cells of the plan, in order"""
    cells: pl.DataFrame
    """one row per finished cell, as in `Store.table`, with user files named as in the plan"""

    @property
    def missing(self) -> list[Cell]:
        """Return the cells that are not in the store, because they have not run yet or failed."""
        finished = set(self.cells["cell"])
        return [cell for key, cell in zip(self.keys, self.plan.cells, strict=True) if key not in finished]

    @cached_property
    def failures(self) -> list[Failures]:
        """Return the cells that ended with an error, by cause."""
        return failures_of(self.plan, self.store, self.keys, set(self.cells["cell"]))

    @cached_property
    def baseline(self) -> dict[str, Any] | None:
        """Return the default baseline: the first policy of the plan that has results, if it compares several."""
        if "policy" not in self.plan.varied:
            return None
        present = set(self.cells["policy"])
        return {"policy": next(policy for policy in _text_values(self.plan)["policy"] if policy in present)}

    @cached_property
    def groups(self) -> pl.DataFrame:
        """Return one row per cell and group of jobs, as in `Store.group_table`."""
        return self.store.group_table(self.keys)

    def means(
        self,
        metrics: Sequence[str] = METRICS,
        *,
        baseline: Mapping[str, Any] | None = None,
        by: str | None = None,
        level: float | None = None,
    ) -> list[CombinationMean]:
        """Return means, intervals and paired differences for each combination, possibly by group of jobs, and metric.

        `baseline`: as in `compare_cells`, by default the first policy. `by`: one of the plan's groupings. `level`: level of the intervals,
        by default the plan's. Metrics that are not columns of the cells are computed from the kept schedules, without simulating. Raises
        PolicyError for an unknown metric or baseline, or a missing grouping, OutputError if such a metric needs schedules that were not
        kept.
        """
        groups, orders = self.groups if by is not None else None, _text_values(self.plan)
        known = set(self.cells.columns)
        further = [name for name in metrics if name not in known] if by is None else []
        cells = with_metrics(self.plan, self.store, self.keys, self.cells, further) if further else self.cells
        chosen = self.baseline if baseline is None else baseline
        words: dict[str, Any] = {"groups": groups, "by": by, "orders": orders, "level": self.plan.level if level is None else level}
        return compare_cells(cells, self.plan.varied, metrics=metrics, baseline=chosen, **words)


def read_results(plan: Plan, store: Store | None = None) -> Results:
    """Return the results of a plan in its store, by default the plan's folder.

    Raises OutputError if there are none, LogError for a missing log.
    """
    store = store or Store(plan.store)
    store.manifest()
    keys = plan_keys(plan)
    cells = store.table(keys)
    if not len(cells):
        if failures := failures_of(plan, store, keys, ()):
            raise OutputError(f"{printable(plan.path)}: no cell has results; {failures[0]}", "no_results")
        others = len(store.done())
        elsewhere = f" (it has {counted(others, 'cell')} from another plan, log or version of walltime)" if others else ""
        remedy = f"run it with: walltime campaign run {printable(plan.path)}"
        raise OutputError(f"{printable(store.folder)}: contains no cell of this plan{elsewhere}; {remedy}", "no_results")
    return Results(plan, store, keys, _in_spelling(plan, keys, cells))


def _in_spelling(plan: Plan, keys: Sequence[str], cells: pl.DataFrame) -> pl.DataFrame:
    """Return the table of cells with user files and varied `jobs` as the plan writes them.

    The store contains paths at the time of the run, because a cell is identified by the content of its file, and the number of simulated
    jobs.
    """
    import polars as pl

    settings = {key: cell.settings for key, cell in zip(keys, plan.cells, strict=True)}
    rows = [settings[key] for key in cells["cell"]]
    columns = {name: [plan.spelled.get(row[name], row[name]) for row in rows] for name in USER_FILE_SETTINGS if plan.spelled}
    columns |= {"jobs": [row["jobs"] for row in rows]} if "jobs" in plan.varied else {}
    return cells.with_columns(pl.Series(name, values, cells.schema[name]) for name, values in columns.items())


def _text_values(plan: Plan) -> dict[str, list[Any]]:
    """Return the values of each varied text parameter, as in the plan."""
    values_of: dict[str, dict[Any, None]] = {}
    for choice in (choice for axis in plan.axes for choice in axis):
        for name, value in choice.items():
            if name in plan.varied and not isinstance(value, int | float):
                values_of.setdefault(name, {})[plan.spelled.get(value, value)] = None
    return {name: list(values) for name, values in values_of.items() if any(isinstance(value, str) for value in values)}


def campaign_caveats(plan: Plan, cells: pl.DataFrame, flurries: dict[str, int] | None = None) -> list[str]:
    """Return the caveats of a plan's cells as sentences, the most important first; see `cell_caveats`."""
    return cell_caveats(cells, plan.varied, plan.trim, flurries)


def count_flurries(plan: Plan) -> dict[str, int]:
    """Return the number of flurries in each log that the plan does not filter; logs without any are omitted.

    Each log is read with the options of its first cell, such as the size of the machine.
    """
    from walltime.logs import read
    from walltime.workload.cleaning import find_flurries

    filtered = {cell.settings["trace"] for cell in plan.cells if cell.settings["remove"]}
    first = {cell.settings["trace"]: cell.settings for cell in reversed(plan.cells)}
    counts = {}
    for trace, (file, _) in find_logs(plan).items():
        if trace not in filtered:
            jobs = read(file, **{name: first[trace][name] for name in ("mapping", "procs", "too_wide", "partial")})
            counts[trace] = len(find_flurries(jobs)) if len(jobs) and "user" in jobs.columns else 0
    return {trace: count for trace, count in counts.items() if count}


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
