"""The page and the tables of a fitted order, and of orders chosen every week."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from walltime.metrics import Interval
from walltime.report.changes import changes_figure
from walltime.report.result import Table, write_result
from walltime.report.shell import figure
from walltime.report.text import human_number, human_time, shown_change
from walltime.tuning import Tuning, Weekly
from walltime.tuning.fitting import Tried
from walltime.workload import Workload


def write_tuning_report(path: str | Path, found: Tuning | Weekly, workload: Workload, *, settings: Mapping[str, Any] | None = None) -> Path:
    """Write the page of a fitted order or of weekly choices; returns its path.

    `settings`: further entries of the provenance, and as `command` the command line. Raises OutputError if it cannot be written.
    """
    heading = f"{'A queue order fitted to' if isinstance(found, Tuning) else 'A queue order chosen every week on'} {found.log}"
    parts = [_figure(found)]
    return write_result(path, "tuning", heading, found.verdict, found.caveats, parts, tables(found), found.as_dict(), workload, settings)


def _figure(found: Tuning | Weekly) -> str:
    """The changes, drawn."""
    name = found.metric.replace("_", " ")
    span = "weeks" if isinstance(found, Weekly) else "windows"
    if isinstance(found, Weekly):
        names, against = [f"against {label}" for label in found.against], f"one order all along, {found.weeks} weeks"
        series = [("weekly choices", list(found.against.values()))]
    else:
        rows = _ranked(found)
        names, against = [one.scheduler for one in rows], found.baseline
        chosen = [Interval(one.training, one.training, one.training, "") for one in rows]
        series = [("test", [one.test for one in rows]), ("training, where it was chosen", chosen)]
    drawn = changes_figure(names, series, f"change in {name} against {against}")
    said = "; ".join(f"{label}: {_change(change)[0]}" for label, change in zip(names, series[0][1], strict=True))
    return figure(
        drawn, "changes", f"Changes in {name}: {said}.", f"Change in {name} against {against}, with 90 % intervals of such {span}."
    )


def tables(found: Tuning | Weekly) -> list[Table]:
    """The numbers as tables of text."""
    name = found.metric.replace("_", " ")
    if isinstance(found, Weekly):
        counts = Counter(found.choices)
        chosen = [[order, f"{counts[order]:,}"] for order in found.orders]
        rows = [[label, *_change(change)] for label, change in found.against.items()]
        title = f"{name} of {found.policy} with weekly choices ({found.strategy}) against one order all along, {found.weeks} weeks"
        return [
            (title, ("against", "change", "90 % interval of such weeks"), rows),
            ("weeks in which each order was chosen", ("order", "weeks"), chosen),
        ]
    title = (
        f"{name} against {found.baseline}: {found.training} windows of training, {found.test} of the test, {found.evaluations} candidates"
    )
    rows = [[one.scheduler, f"{one.training:+.0f} %", *_change(one.test)] for one in _ranked(found)]
    show = human_time if found.metric.endswith(("_wait", "_response")) else human_number
    zero = found.months[0][0]
    months = [[f"{(begin - zero) / 86_400:.0f}", show(before), show(after)] for begin, before, after in found.months]
    return [
        (title, ("scheduler", "training", "test", "90 % interval of such windows"), rows),
        (f"{name} by held-out window", ("day of the test", found.baseline, "fitted"), months),
    ]


def _ranked(found: Tuning) -> list[Tried]:
    """The fitted order, and the others, the best in the test first."""
    return [found.fitted, *sorted(found.others, key=lambda one: one.test.mean)]


def _change(change: Interval) -> list[str]:
    mean, low, high = (shown_change(value, change.low, change.high) for value in (change.mean, change.low, change.high))
    return [mean, f"{low} to {high}"]
