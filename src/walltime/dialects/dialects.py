"""How much each interpretation, and each dialect, changes the results on a log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime import metrics
from walltime.errors import PolicyError
from walltime.policy import DIALECTS, FCFS, INTERPRETATIONS, PAPERS, Dialect
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
"""Number of shaken copies of the log, and the largest shift of a submission, s; both as in tsafrir06."""
WINDOW = 32
"""Value tried for the interpretation `window`, as in sc17."""


@dataclass(frozen=True)
class DialectRow:
    """The results of one scheduler in one dialect; times in seconds.

    * `alone`: whether the dialect is `papers` with a single interpretation changed
    * `differs`: share of the jobs that start at another time than under `papers`
    * `low`, `high`: the range in which the mean bounded slowdown of one more shaken copy of the log would lie; nan except for `papers`
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
        """Return whether the row has the range `low` to `high`."""
        return self.low == self.low


@dataclass(frozen=True)
class DialectTable:
    """The rows, ordered by dialect and scheduler with `papers` first; pairs in which the dialect makes no difference are left out."""

    workload: Workload
    rows: Sequence[DialectRow]
    copies: int

    def find(self, dialect: str, scheduler: str) -> DialectRow | None:
        """Return the row of a dialect and a scheduler, None without one."""
        return next((row for row in self.rows if (row.dialect, row.scheduler) == (dialect, scheduler)), None)

    def table(self) -> pl.DataFrame:
        """Return a polars table with a row for each dialect and scheduler."""
        import polars as pl

        return pl.DataFrame([asdict(row) for row in self.rows], infer_schema_length=None)

    def as_dict(self) -> dict[str, Any]:
        """Return the table, ready for JSON."""
        return {"copies": self.copies, "rows": self.table().to_dicts()}

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        rows = [(f"{row.dialect}, {row.scheduler}", f"{row.mean_bounded_slowdown:,.1f}") for row in self.rows]
        return Facts(f"Mean bounded slowdown by dialect, {self.workload.origin.name}", rows)._repr_html_()


def interpretations_alone() -> list[Dialect]:
    """Return `papers` with one interpretation changed, for each other value of each interpretation, unless that is a named dialect."""
    options = INTERPRETATIONS.items()
    changes: list[dict[str, Any]] = [{name: value} for name, one in options for value in one.key.known or (WINDOW,) if value != one.default]
    alone = [replace(PAPERS, **change) for change in changes]
    return [dialect for dialect in alone if dialect.label not in DIALECTS]


def matters(dialect: Dialect, scheduler: Scheduler) -> bool:
    """Return whether this scheduler supports a dialect and behaves differently in it than under `papers`."""
    changed, policy = set(dialect.changed), scheduler.policy
    try:
        applied = dialect.apply(policy)
    except PolicyError:  # the policy lacks an option of the dialect
        return False
    if scheduler.prediction is not None and applied.without.get("predictor", "") != policy.without.get("predictor", ""):
        return False
    if policy.order == FCFS or getattr(policy, "backfill_order", None) is not None:
        changed.discard("backfill_order")
    if scheduler.prediction is None:
        changed -= {"arrivals", "expiry"}
    options = {field.name for field in fields(policy)}
    return any(name in options or name in ("coincident", "expiry") for name in changed)


def default_schedulers(workload: Workload) -> list[str]:
    """Return the `SCHEDULERS` whose predictors need no column that the log lacks."""
    needs = {text: one.predictor.columns if (one := Scheduler.of(text).prediction) else () for text in SCHEDULERS}
    return [text for text, columns in needs.items() if set(columns) <= set(workload.columns)]


def compare_dialects(
    workload: Workload,
    schedulers: Sequence[str] | None = None,
    *,
    dialects: Sequence[Dialect | str] | None = None,
    copies: int = COPIES,
    overrun: str = "kill",
    trim: str = "none",
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> DialectTable:
    """Simulate the schedulers under `papers`, under each interpretation alone, and under each dialect.

    `schedulers`: `default_schedulers` of the log unless given. `dialects`: only these, in addition to `papers`. `copies`: number of shaken
    copies of the log, simulated under `papers` to show how much of a difference is chance; 0 for none. `progress` is called with the number
    of simulations done, of `dialect_runs` in total. Some interpretations run only on the reference engine, which takes seconds for 30,000
    jobs. Raises PolicyError for an unknown dialect or scheduler, WorkloadError for an invalid workload.
    """
    schedulers = default_schedulers(workload) if schedulers is None else schedulers
    tasks = _tasks(schedulers, dialects)

    def run(number: int, check: Callable[[int], None]) -> Schedule:
        check(0)
        dialect, _, text = tasks[number]
        return simulate(workload, text, dialect=dialect, overrun=overrun, progress=check)

    schedules = in_threads(run, len(tasks), workers, progress)
    papers = {text: schedule for (dialect, _, text), schedule in zip(tasks, schedules, strict=True) if dialect == PAPERS}
    bands = {}
    for k, text in enumerate(schedulers):
        before = len(tasks) + k * copies
        report = None if progress is None else lambda done, before=before: progress(before + done)
        bands[text] = _band(workload, text, copies, overrun, trim, report)
    rows = []
    for (dialect, alone, text), schedule in zip(tasks, schedules, strict=True):
        summary = schedule.summary(trim)
        differs = float(np.mean(schedule.start != papers[text].start)) if len(schedule) else 0.0
        band = bands[text] if dialect == PAPERS else ()
        means = (summary.mean_wait, summary.mean_bounded_slowdown)
        rows.append(DialectRow(dialect.label, alone, text, *means, differs, schedule.engine, *band))
    return DialectTable(workload, rows, copies)


def dialect_runs(schedulers: Sequence[str] = SCHEDULERS, dialects: Sequence[Dialect | str] | None = None, *, copies: int = COPIES) -> int:
    """Return the number of simulations that `compare_dialects` reports to `progress`."""
    return len(_tasks(schedulers, dialects)) + copies * len(schedulers)


def _tasks(schedulers: Sequence[str], dialects: Sequence[Dialect | str] | None) -> list[tuple[Dialect, bool, str]]:
    """Return the simulations to run: for each, the dialect, whether it changes one interpretation only, and the scheduler's text."""
    parsed = {text: Scheduler.of(text) for text in schedulers}
    if dialects is None:
        named = [dialect for dialect in DIALECTS.values() if dialect != PAPERS]
        several = [(dialect, True) for dialect in interpretations_alone()] + [(dialect, False) for dialect in named]
    else:
        several = [(Dialect.of(one), False) for one in dialects if Dialect.of(one) != PAPERS]
    tasks = [(PAPERS, False, text) for text in parsed]
    return tasks + [(dialect, alone, text) for dialect, alone in several for text in parsed if matters(dialect, parsed[text])]


def _band(workload: Workload, text: str, copies: int, overrun: str, trim: str, progress: Callable[[int], None] | None) -> tuple[float, ...]:
    """Return the range in which the mean bounded slowdown of one more shaken copy would lie; empty without shaken copies."""
    if not copies or not len(workload):
        return ()

    def run(seed: int, check: Callable[[int], None]) -> float:
        shaken = shake(workload, SECONDS, seed)
        return simulate(shaken, text, overrun=overrun, progress=check).summary(trim).mean_bounded_slowdown

    band = metrics.range_of_runs(np.array(in_threads(run, copies, None, progress)))
    return band.low, band.high
