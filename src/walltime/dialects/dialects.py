"""What each reading of the rules, and each dialect, changes on a log."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime import metrics
from walltime.policy import DIALECTS, FCFS, PAPERS, READINGS, Dialect
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler
from walltime.simulation.threads import in_threads
from walltime.tables import Facts
from walltime.workload import Workload
from walltime.workload.scaling import shake

if TYPE_CHECKING:
    import polars as pl

SCHEDULERS = ("easy", "easy:backfill-order=sjf", "easy++")
COPIES, SECONDS = 20, 30
"""Shaken copies of the log, and by how many seconds submissions are moved in them at most, as in tsafrir06."""
WINDOW = 32
"""Of the reading `window`, as in sc17."""


@dataclass(frozen=True)
class DialectRow:
    """One scheduler in one dialect.

    `alone`: whether the dialect is `papers` with one reading changed. `differs`: the share of the jobs that start at other times than under
    `papers`. `low`, `high`: of `papers` only, the range in which the mean bounded slowdown of a further shaken copy of the log would lie,
    nan for others. Times in seconds.
    """

    dialect: str
    alone: bool
    scheduler: str
    mean_wait: float
    mean_bounded_slowdown: float
    differs: float
    engine: str
    low: float = float("nan")
    high: float = float("nan")

    @property
    def has_band(self) -> bool:
        """Whether the log was shaken for it."""
        return self.low == self.low


@dataclass(frozen=True)
class DialectTable:
    """The rows, scheduler by scheduler within each dialect, `papers` first; without those to which a reading makes no difference."""

    workload: Workload
    rows: Sequence[DialectRow]
    copies: int

    def find(self, dialect: str, scheduler: str) -> DialectRow | None:
        """The row of a dialect and a scheduler, None if there is none."""
        return next((row for row in self.rows if (row.dialect, row.scheduler) == (dialect, scheduler)), None)

    def table(self) -> pl.DataFrame:
        """A row for each dialect and scheduler."""
        import polars as pl

        return pl.DataFrame(
            [{field.name: getattr(row, field.name) for field in fields(row)} for row in self.rows], infer_schema_length=None
        )

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"copies": self.copies, "rows": self.table().to_dicts()}

    def _repr_html_(self) -> str:
        """A table in a notebook."""
        rows = [(f"{row.dialect}, {row.scheduler}", f"{row.mean_bounded_slowdown:,.1f}") for row in self.rows]
        return Facts(f"Mean bounded slowdown by dialect, {self.workload.origin.name}", rows)._repr_html_()


def readings_alone() -> list[Dialect]:
    """`papers` with one reading changed, for each value of each reading; without those that are a dialect with a name."""
    values = [(name, value) for name, one in READINGS.items() for value in one.key.known or (WINDOW,) if value != one.default]
    alone = [PAPERS.but(**{name: value}) for name, value in values]
    return [dialect for dialect in alone if dialect.label not in DIALECTS]


def matters(dialect: Dialect, scheduler: Scheduler) -> bool:
    """Whether a dialect differs from `papers` for this scheduler."""
    changed = set(dialect.changed)
    policy = scheduler.policy
    if policy.order == FCFS or getattr(policy, "backfill_order", None) is not None:
        changed.discard("backfill_order")
    if scheduler.prediction is None:
        changed -= {"arrivals", "expiry"}
    options = {field.name for field in fields(policy)}
    return any(name in options or name in ("coincident", "expiry") for name in changed)


def compare_dialects(
    workload: Workload,
    schedulers: Sequence[str] = SCHEDULERS,
    *,
    dialects: Sequence[Dialect | str] | None = None,
    copies: int = COPIES,
    overrun: str = "kill",
    trim: str = "none",
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> DialectTable:
    """Simulate the schedulers under `papers`, under each reading alone, and under each dialect.

    `dialects`: only these, besides `papers`. `copies`: shaken copies of the log, simulated under `papers` to see how much of a
    difference is chance; 0 for none. Readings that the compiled engine lacks run on the reference engine, some seconds for 30,000
    jobs. `progress` is called with the number of simulations done; `dialect_runs` tells how many there are.

    Raises PolicyError for an unknown dialect or scheduler, WorkloadError for an invalid workload.
    """
    tasks = _tasks(schedulers, dialects)

    def make_worker() -> Callable[[int, Callable[[int], None]], Schedule]:
        def run(number: int, check: Callable[[int], None]) -> Schedule:
            check(0)
            dialect, _, spelled = tasks[number]
            return simulate(workload, spelled, dialect=dialect, overrun=overrun, progress=check)

        return run

    schedules = in_threads(make_worker, len(tasks), workers, progress)
    papers = {spelled: schedule for (dialect, _, spelled), schedule in zip(tasks, schedules, strict=True) if dialect == PAPERS}
    bands = {}
    for k, spelled in enumerate(schedulers):
        begun = len(tasks) + k * copies
        tell = None if progress is None else functools.partial(_tell_further, progress, begun)
        bands[spelled] = _band(workload, spelled, copies, overrun, trim, tell)
    rows = []
    for (dialect, alone, spelled), schedule in zip(tasks, schedules, strict=True):
        summary = schedule.summary(trim)
        differs = float(np.mean(schedule.start != papers[spelled].start)) if len(schedule) else 0.0
        low, high = bands[spelled] if dialect == PAPERS else (float("nan"), float("nan"))
        means = (summary.mean_wait, summary.mean_bounded_slowdown)
        rows.append(DialectRow(dialect.label, alone, spelled, *means, differs, schedule.engine, low, high))
    return DialectTable(workload, rows, copies)


def _tell_further(progress: Callable[[int], None], begun: int, done: int) -> None:
    progress(begun + done)


def dialect_runs(schedulers: Sequence[str] = SCHEDULERS, dialects: Sequence[Dialect | str] | None = None, *, copies: int = COPIES) -> int:
    """The number of simulations that `compare_dialects` reports to `progress`."""
    return len(_tasks(schedulers, dialects)) + copies * len(schedulers)


def _tasks(schedulers: Sequence[str], dialects: Sequence[Dialect | str] | None) -> list[tuple[Dialect, bool, str]]:
    """Each simulation: its dialect, whether that is one reading alone, and the scheduler as it was spelled."""
    parsed = {text: Scheduler.of(text) for text in schedulers}
    if dialects is None:
        named = [dialect for dialect in DIALECTS.values() if dialect != PAPERS]
        several = [(dialect, True) for dialect in readings_alone()] + [(dialect, False) for dialect in named]
    else:
        several = [(Dialect.of(one), False) for one in dialects if Dialect.of(one) != PAPERS]
    tasks = [(PAPERS, False, text) for text in parsed]
    return tasks + [(dialect, alone, text) for dialect, alone in several for text in parsed if matters(dialect, parsed[text])]


def _band(
    workload: Workload, spelled: str, copies: int, overrun: str, trim: str, progress: Callable[[int], None] | None
) -> tuple[float, float]:
    """The range of the mean bounded slowdown in which a further shaken copy would lie."""
    if not copies or not len(workload):
        return float("nan"), float("nan")

    def make_worker() -> Callable[[int, Callable[[int], None]], float]:
        def run(seed: int, check: Callable[[int], None]) -> float:
            shaken = shake(workload, SECONDS, seed)
            return simulate(shaken, spelled, overrun=overrun, progress=check).summary(trim).mean_bounded_slowdown

        return run

    band = metrics.range_of_runs(np.array(in_threads(make_worker, copies, None, progress)))
    return band.low, band.high
