"""Waste of a log: requested, allocated and used hours by group, lost hours by cause, and patterns such as idle GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from walltime.dataframes import pl
from walltime.errors import WorkloadError
from walltime.metrics.energy import cost_of, energy_of
from walltime.metrics.right_size import memory_of
from walltime.schedule.groups import alike_columns
from walltime.tables import Table
from walltime.usage import tables
from walltime.usage.hours import JobHours, job_hours, lost_by
from walltime.usage.records import (
    CAUSES,
    GROUPINGS,
    IDLE_SESSION,
    KINDS,
    LISTED,
    ONE_CORE,
    OTHERS,
    PATTERNS,
    SESSIONS,
    TENFOLD,
    UNKNOWN,
    By,
    GroupHours,
    Hours,
    Lost,
    Pattern,
    Power,
    check_groupings,
    defined,
)
from walltime.wording import shown
from walltime.workload import Array, Workload
from walltime.workload.columns import IDLE_GPU
from walltime.workload.workload import check_workload


@dataclass(frozen=True, eq=False)
class Waste:
    """The waste of a log; the glossary defines each number."""

    workload: Workload
    total: GroupHours
    groups: Mapping[str, Sequence[GroupHours]]
    """groups by grouping (`GROUPINGS`), those with the most unused core-hours first; groupings that the log does not record are left out"""
    lost: Sequence[Lost]
    patterns: Sequence[Pattern]
    energy_jobs: int
    """jobs with a recorded energy"""
    known_energy: Array
    """energy of each job, kWh, recorded or from the power of the machine; nan if unknown"""
    grams: Array
    """grams of CO2 of each job; nan if unknown"""
    power: Power

    @property
    def energy(self) -> float:
        """Return the energy of the jobs whose energy is known, kWh; nan if none is."""
        return self.total.energy

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers ready for JSON; unknown ones are None."""
        return {
            "total": self.total.as_dict(),
            "lost": [{"cause": one.cause, "jobs": one.jobs, **one.hours} for one in self.lost],
            "patterns": [defined(asdict(one)) for one in self.patterns],
            "groups": {by: [one.as_dict() for one in rows] for by, rows in self.groups.items()},
            "energy_kwh": defined(self.energy),
            "energy_jobs": self.energy_jobs,
            "energy_cost": defined(cost_of(self.energy, self.power.price)),
            "grams": defined(self.total.grams),
        }

    @cached_property
    def alike(self) -> dict[str, list[str]]:
        """Return, for each grouping, the groupings that group the jobs equally, including itself."""
        return {by: names for names in alike_columns(self.workload, self.groups) for by in names}

    @property
    def distinct(self) -> list[str]:
        """Return the groupings, without those that group the jobs as an earlier one does."""
        return [by for by, names in self.alike.items() if by == names[0]]

    def table(self, by: str = "user") -> Table:
        """Return the table of one grouping; raises WorkloadError if the log does not record it."""
        if by not in self.groups:
            raise WorkloadError(
                f"{self.workload.origin.name} has no groups by {shown(by)}. Valid groupings: {', '.join(self.groups) or 'none'}",
                "unknown_grouping",
            )
        return tables.groups_table(by, self.groups[by], self.alike[by])

    @property
    def has_use(self) -> bool:
        """Return whether the use of any resource, or the energy, is known for any job."""
        return not math.isnan(self.energy) or any(one.measured > 0 for one in self.total.hours.values())

    @property
    def shows_energy(self) -> bool:
        """Return whether the energy is known, or a price or a carbon intensity is given."""
        return not math.isnan(self.energy) or self.power.price is not None or self.power.carbon is not None

    def tables(self, groups: Sequence[str] | None = None) -> Iterator[Table]:
        """Yield the tables: resources, lost hours, patterns, and the groupings, by default all distinct ones."""
        yield tables.resources_table(self.total)
        if self.lost:
            yield tables.lost_table(self.lost, self.total)
        if any(one.judged for one in self.patterns):
            yield tables.patterns_table(self.patterns)
        yield from map(self.table, self.distinct if groups is None else groups)
        yield from self.energy_tables()

    def energy_tables(self) -> Iterator[Table]:
        """Yield the tables of energy by user, account and job; none if the energy is unknown."""
        if not math.isnan(self.energy):
            price = self.power.price
            yield from (tables.energy_groups_table(by, self.groups[by], price) for by in ("user", "group") if by in self.distinct)
            yield tables.energy_jobs_table(self.workload, self.known_energy, self.grams, price)

    def _repr_html_(self) -> str:
        return tables.resources_table(self.total)._repr_html_()


def waste(workload: Workload, by: Iterable[By] | None = None, listed: int = LISTED, power: Power | None = None) -> Waste:
    """Return the requested, allocated and used hours of the jobs by group, the lost hours by cause, and patterns of waste.

    `by`: groupings, by default all that the log records. `listed`: the number of groups of each that are listed. `power`: for energy that
    the log does not record, its cost and carbon. Raises WorkloadError for an unknown grouping, or a number of groups below 1.
    """
    check_workload(workload)
    chosen = list(GROUPINGS if by is None else by)
    check_groupings(chosen)
    if listed < 1:
        raise WorkloadError(f"the number of listed groups must be at least 1, not {listed}", "number_out_of_range")
    hours, cause = job_hours(workload), lost_by(workload)
    power = power or Power()
    kwh, recorded = energy_of(workload, power.machine)
    grams = np.full(len(workload), np.nan) if power.carbon is None else power.carbon.of(workload, kwh)
    table = _table(hours, cause).with_columns(KWH=pl.Series(kwh).fill_nan(None), GRAMS=pl.Series(grams).fill_nan(None))
    known = {one: workload.columns[one] for one in chosen if one in workload.columns and (workload.columns[one] >= 0).any()}
    return Waste(
        workload=workload,
        total=_groups(table.with_columns(KEY=pl.lit(0, pl.Int64)), hours)[0][1],
        groups={one: _named(workload, one, numbers, table, hours, listed) for one, numbers in known.items()},
        lost=_lost(workload, hours, cause),
        patterns=_patterns(workload, hours),
        energy_jobs=int(recorded.sum()),
        known_energy=kwh,
        grams=grams,
        power=power,
    )


def _table(hours: JobHours, cause: Array) -> pl.DataFrame:
    """Return the hours in columns such as `cores:used`, null where unknown, and `LOST`: the core-hours of jobs that lost them."""
    columns: dict[str, Array] = {}
    for name, allocated in hours.allocated.items():
        used = hours.used[name]
        columns |= {f"{name}:asked": hours.asked[name], f"{name}:allocated": allocated, f"{name}:used": used}
        columns[f"{name}:measured"] = np.where(np.isnan(used), np.nan, allocated)
        columns[f"{name}:used"] = np.where(np.isnan(allocated), np.nan, used)
        columns[f"{name}:unmeasured"] = np.isnan(used) & (allocated > 0)
    if "cores" in hours.allocated:
        columns["LOST"] = np.where(cause >= 0, hours.allocated["cores"], 0.0)
    else:
        columns["LOST"] = np.zeros(len(cause))
    return pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None))


def _groups(table: pl.DataFrame, hours: JobHours) -> list[tuple[int, GroupHours]]:
    """Return the numbers for each `KEY` of the table, sorted by unused core-hours, the most first."""
    kinds = [f"{name}:{kind}" for name in hours.allocated for kind in KINDS] + ["KWH", "GRAMS"]
    sums = [pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name) for name in kinds]
    counts = [pl.col(f"{name}:unmeasured").sum() for name in hours.allocated]
    found = []
    counts.append(pl.col("KWH").count().alias("MEASURED"))
    for row in table.group_by("KEY", maintain_order=True).agg(pl.len().alias("JOBS"), pl.col("LOST").sum(), *sums, *counts).to_dicts():
        values = {name: math.nan if value is None else value for name, value in row.items()}
        of = {
            name: Hours(**{kind: values[f"{name}:{kind}"] for kind in KINDS}, unmeasured_jobs=row[f"{name}:unmeasured"])
            for name in hours.allocated
        }
        found.append((row["KEY"], GroupHours("", row["JOBS"], of, row["LOST"], values["KWH"], values["GRAMS"], row["MEASURED"])))
    return sorted(found, key=lambda one: _rank(one[1]))


def _rank(group: GroupHours) -> tuple[float, float]:
    cores = group.hours.get("cores")
    return (0.0, 0.0) if cores is None else (-np.nan_to_num(cores.unused), -np.nan_to_num(cores.allocated))


def _named(w: Workload, by: str, numbers: Array, table: pl.DataFrame, hours: JobHours, listed: int) -> list[GroupHours]:
    """Return the groups of a column with their names; groups after the first `listed` are one group."""
    keyed = table.with_columns(KEY=pl.Series(numbers, dtype=pl.Int64))
    if by == "gpu_type":
        keyed = keyed.filter(pl.col("KEY") >= 0)
    ordered = _groups(keyed, hours)
    listed += len(ordered) == listed + 1  # a single remaining group keeps its own name
    rows = [(w.origin.name_of(by, key) if key >= 0 else UNKNOWN, group) for key, group in ordered[:listed]]
    if len(ordered) > listed:
        rest = [key for key, _ in ordered[listed:]]
        rows.append(
            (f"{len(rest):,} {OTHERS}", _groups(keyed.filter(pl.col("KEY").is_in(rest)).with_columns(KEY=pl.lit(0, pl.Int64)), hours)[0][1])
        )
    return [replace(group, group=name) for name, group in rows]


def _lost(w: Workload, hours: JobHours, cause: Array) -> list[Lost]:
    """Return the lost hours for each cause, in the order of `CAUSES`; earlier runs are assumed to have had the last run's size."""
    rows = []
    for k, name in enumerate(CAUSES):
        mine = cause == k
        sums = {resource: float(np.nansum(values[mine])) for resource, values in hours.allocated.items()}
        jobs = int(mine.sum())
        if name == "earlier_runs" and "earlier_runtime" in w.columns:
            again = np.maximum(w.columns["earlier_runtime"], 0)
            jobs += int((again > 0).sum())
            share = np.where(w.runtime > 0, again / np.maximum(w.runtime, 1), 0.0)
            sums = {resource: total + float(np.nansum(hours.allocated[resource] * share)) for resource, total in sums.items()}
        if jobs:
            rows.append(Lost(name, jobs, sums))
    return rows


def _patterns(w: Workload, hours: JobHours) -> list[Pattern]:
    """Return the patterns of waste in the resources that the log records."""
    columns = {name: np.asarray(w.columns.get(name, np.full(len(w), -1.0)), np.float64) for name in ("gpu_use", "gpus_idle")}
    requested, used = (memory_of(w, name) for name in ("requested_mem_mb", "used_mem_mb"))
    gpus, busy = w.columns.get("gpus", np.zeros(len(w))), np.full(len(w), np.nan)
    ran = w.runtime > 0
    if "cores" in hours.used:
        busy[ran] = hours.used["cores"][ran] / (w.runtime[ran] / 3600)
    whole = _whole_nodes(w)
    session = _sessions(w)
    judged = {
        "idle_gpus": (gpus > 0) & (columns["gpu_use"] >= 0) & ran,
        "some_idle_gpus": (gpus > 0) & (columns["gpus_idle"] >= 0) & ran,
        "one_core": ~np.isnan(busy) & ~np.isnan(whole) & (w.procs > 1),
        "memory_tenfold": ~np.isnan(requested) & ~np.isnan(used) & ran,
        "idle_sessions": session & ~np.isnan(busy),
    }
    with np.errstate(invalid="ignore", divide="ignore"):
        met = {
            "idle_gpus": columns["gpu_use"] < IDLE_GPU,
            "some_idle_gpus": (columns["gpus_idle"] > 0) & (columns["gpus_idle"] < gpus),
            "one_core": (whole > 0) & (busy <= ONE_CORE),
            "memory_tenfold": requested >= TENFOLD * used,
            "idle_sessions": busy < IDLE_SESSION * w.procs,
        }
    rows = []
    for name, (_, resource) in PATTERNS.items():
        if resource in hours.allocated and (name != "idle_sessions" or session.any()) and (name != "some_idle_gpus" or judged[name].any()):
            mine = judged[name] & met[name]
            wasted = (
                columns["gpus_idle"] * (w.runtime / 3600) if name == "some_idle_gpus" else hours.allocated[resource] - hours.used[resource]
            )
            unused = float(np.nansum(wasted[mine])) if judged[name].any() else math.nan
            rows.append(Pattern(name, int(mine.sum()), int(judged[name].sum()), resource, unused))
    return rows


def _whole_nodes(w: Workload) -> Array:
    """Return 1 for jobs on whole nodes, 0 for other jobs, and nan if the number of nodes is unknown; float64, shape (jobs,).

    A job has whole nodes if it requested them (`--exclusive`), or at least two processors per node and as many as any job of its partition.
    """
    nodes = np.asarray(w.columns.get("nodes", np.full(len(w), -1)), np.float64)
    each = np.where(nodes > 0, w.procs / np.maximum(nodes, 1), np.nan)
    partition = w.columns.get("partition", np.zeros(len(w), np.int64))
    places = np.unique(partition, return_inverse=True)[1].reshape(-1)
    most = np.zeros(int(places.max(initial=-1)) + 1)
    np.maximum.at(most, places, np.nan_to_num(each))
    whole = (each >= 2) & (each >= most[places])
    exclusive = w.columns.get("exclusive", np.full(len(w), -1)) == 1
    return np.where(np.isnan(each) & ~exclusive, np.nan, (whole | exclusive).astype(np.float64))


def _sessions(w: Workload) -> Array:
    texts = w.origin.names.get("executable", ())
    if not texts or "executable" not in w.columns:
        return np.zeros(len(w), bool)
    named = np.array([False, *pl.Series(texts, dtype=pl.String).str.contains(SESSIONS).to_list()])
    numbers = np.clip(w.columns["executable"], 0, len(texts))
    return named[numbers] & (w.columns["executable"] > 0)
