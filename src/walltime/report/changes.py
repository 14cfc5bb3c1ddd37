"""Changes of a metric against other schedulers: their figure, their cells, and the page of a comparison on windows of a log."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from walltime.metrics import Interval
from walltime.provenance import provenance
from walltime.report.figures import COLOURS, MARKS, rows_figure
from walltime.report.page import Drawing, Page, Paragraph, Section, workload_facts
from walltime.tables import Table
from walltime.wording import human_number, human_time, shown_change
from walltime.workload import Workload

TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0, 10_000.0)
"""Ratios with a tick if there is room."""
INTERVAL = re.compile(r" \(90 % interval of [^()]*\)")
"""Intervals are omitted from the first sentences of a page, because its numbers have them."""
MOST_TICKS = 9
NEAREST = 1 / 14
"""Smallest distance of ticks, as a share of the axis."""
MOST_DRAWN = 9
"""Largest number of rows in a first picture, for legible text; the table has all."""
APART = 0.2
"""Distance of the marks of one row, in rows."""


class WindowsResult(Protocol):
    """A comparison of schedulers on windows of a log."""

    @property
    def verdict(self) -> Sequence[str]:
        """The result, as sentences."""

    @property
    def caveats(self) -> Sequence[str]:
        """The limitations of the result, as sentences."""

    def as_dict(self) -> dict[str, Any]:
        """Return the result, ready for JSON."""


def windows_page(
    kind: str,
    title: str,
    result: WindowsResult,
    drawings: Sequence[Drawing],
    tables: Sequence[Table],
    numbers: Sequence[tuple[str, str]],
    workload: Workload,
    settings: Mapping[str, Any] | None,
) -> Page:
    """Return the page of a comparison on windows of `workload`; `settings`: further entries of its provenance."""
    record = provenance(workload, **(settings or {}))
    said = Section("In words", [Paragraph(sentence) for sentence in result.verdict])
    sections = [Section("", drawings), said, *(Section(table.title[:1].upper() + table.title[1:], [table]) for table in tables)]
    answer, about = [INTERVAL.sub("", " ".join(result.verdict))], workload_facts(workload, record["log"])
    return Page(kind, title, answer, sections, about, result.caveats, numbers, workload=workload, record=record, data=result.as_dict())


def change_numbers(metric: str, changes: Mapping[str, Interval]) -> list[tuple[str, str]]:
    """Return the first two changes against other schedulers, with their intervals, as labels and texts."""
    name = metric_name(metric)
    return [(f"{name} against {other}", " (".join(change_cells(change)) + ")") for other, change in list(changes.items())[:2]]


def rows_left_out(left_out: int) -> str:
    """Return a sentence on the rows that only the table has; empty if there are none."""
    return f" {left_out} more {'is' if left_out == 1 else 'are'} in the table." if left_out > 0 else ""


def change_cells(change: Interval) -> list[str]:
    """Return the mean change and its interval, as two cells."""
    mean, low, high = change_ends(change)
    return [mean, f"{low} to {high}"]


def change_ends(one: Interval) -> list[str]:
    """Return the mean change and the ends of its interval, as three cells."""
    return [shown_change(value, one.low, one.high) for value in (one.mean, one.low, one.high)]


def metric_name(metric: str) -> str:
    """Return the name of a metric as a reader sees it."""
    return metric.replace("_", " ")


def metric_value(metric: str, value: float) -> str:
    """Return the value of a metric as text: a duration for waits and responses, else a number."""
    return human_time(value) if metric.endswith(("_wait", "_response")) else human_number(value)


def changes_figure(names: Sequence[str], series: Sequence[tuple[str, Sequence[Interval]]], axis: str, *, bars: bool = True) -> Figure:
    """Draw changes in %, a row for each name, on an axis of ratios, where half and twice are equally far from no change.

    `series`: a label, and the change of each name, with its interval. `axis`: the label of the axis. `bars`: whether intervals
    are drawn, one below the other; without them the marks of a row share a line.
    """
    with rows_figure(names, axis, 0.17 + 0.11 * (len(series) if bars else 1)) as (figure, axes):
        for k, (label, changes) in enumerate(series):
            low, mean, high = (_ratios([getattr(one, end) for one in changes]) for end in ("low", "mean", "high"))
            rows = np.arange(len(names)) + (APART * (k - (len(series) - 1) / 2) if bars else 0)
            look: dict[str, Any] = {"color": COLOURS[k % len(COLOURS)], "marker": MARKS[k % len(MARKS)], "linestyle": "none"}
            ends = [mean - low, high - mean] if bars else None
            axes.errorbar(mean, rows, xerr=ends, markersize=5, capsize=2.5, elinewidth=1.3, label=label, **look)
        axes.axvline(1, color="#808890", linewidth=0.8)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(_ticks(*axes.get_xlim())))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: "0" if ratio == 1 else f"{100 * (ratio - 1):+,.0f} %"))
        if not bars:
            axes.grid(axis="y")
        if len(series) > 1:
            figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=len(series), borderaxespad=0)
    return figure


def _ratios(changes: Sequence[float]) -> np.ndarray:
    """Return ratios from changes in %, at least a hundredth."""
    return np.maximum(1 + np.asarray(changes) / 100, TICKS[0])


def _ticks(first: float, last: float) -> list[float]:
    """Return the ticks between two ratios, thinned out if there are too many; no change always has one."""
    here = [k for k, tick in enumerate(TICKS) if first <= tick <= last]
    step = -(-len(here) // MOST_TICKS) or 1
    kept = [TICKS[k] for k in here if (k - TICKS.index(1.0)) % step == 0]
    near = (last / first) ** NEAREST
    apart: list[float] = []
    for tick in kept:
        if not apart or tick >= near * apart[-1]:
            apart.append(tick)
        elif tick == 1.0:
            apart[-1] = tick
    return apart
