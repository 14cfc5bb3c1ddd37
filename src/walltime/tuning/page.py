"""The page of a queue order fitted to a log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from walltime.metrics import Interval
from walltime.report.changes import (
    MOST_DRAWN,
    change_cells,
    change_numbers,
    changes_figure,
    metric_name,
    metric_value,
    rows_left_out,
    windows_page,
)
from walltime.report.page import Drawing, Page
from walltime.tables import Table
from walltime.tuning.fitting import Candidate, Tuning
from walltime.workload import Workload


def tuning_page(tuning: Tuning, workload: Workload, settings: Mapping[str, Any] | None = None) -> Page:
    """Return the page of a fitted order; `settings`: further entries of the provenance, and as `command` the command line."""
    title = f"A queue order fitted to {tuning.log}"
    numbers = change_numbers(tuning.metric, {tuning.baseline: tuning.fitted.test, tuning.best_simple: tuning.against_simple})
    numbers.append(("windows of the test", f"{tuning.test:,}"))
    return windows_page("tuning", title, tuning, [_tuning_drawing(tuning)], tuning_tables(tuning), numbers, workload, settings)


def _tuning_drawing(tuning: Tuning) -> Drawing:
    """Return the figure of the changes."""
    name, against = metric_name(tuning.metric), tuning.baseline
    ranked = _ranked(tuning)
    rows = ranked[: MOST_DRAWN - 1]
    rows += [one for one in ranked if one.scheduler == tuning.best_simple and one not in rows]
    names = [one.scheduler for one in rows]
    chosen = [Interval(one.training, one.training, one.training, "") for one in rows]
    series = [("test", [one.test for one in rows]), ("training, where it was chosen", chosen)]
    drawn = changes_figure(names, series, f"change in {name} against {against}")
    values = "; ".join(f"{label}: {change_cells(change)[0]}" for label, change in zip(names, series[0][1], strict=True))
    caption = f"Change in {name} against {against}, with 90 % intervals (sampling of windows).{rows_left_out(len(ranked) - len(rows))}"
    return Drawing(drawn, "changes", f"Changes in {name}: {values}.", caption)


def tuning_tables(tuning: Tuning) -> list[Table]:
    """Return the tables of a fitted order."""
    name = metric_name(tuning.metric)
    windows = f"{tuning.training} training windows, {tuning.test} test windows, {tuning.evaluations} candidates"
    rows = [[one.scheduler, f"{one.training:+.0f} %", *change_cells(one.test)] for one in _ranked(tuning)]
    zero = tuning.months[0][0]
    months = [
        [f"{(begin - zero) / 86_400:.0f}", metric_value(tuning.metric, a), metric_value(tuning.metric, b)] for begin, a, b in tuning.months
    ]
    return [
        Table(("scheduler", "training", "test", "90 % interval (windows)"), rows, f"{name} against {tuning.baseline}: {windows}"),
        Table(("day of the test", tuning.baseline, "fitted"), months, f"{name} by held-out window"),
    ]


def _ranked(tuning: Tuning) -> list[Candidate]:
    """Return the fitted order, then the others, the best in the test first."""
    return [tuning.fitted, *sorted(tuning.others, key=lambda one: one.test.mean)]
