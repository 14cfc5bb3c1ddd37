"""The figure of changes of a metric against other schedulers, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from walltime.metrics import Interval
from walltime.report.figures import COLOURS, MARKS, rows_figure

TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0, 10_000.0)
"""Ratios with a tick if there is room."""
MOST_TICKS = 9
NEAREST = 1 / 14
"""Smallest distance of ticks, as a share of the axis."""
APART = 0.2
"""Distance of the marks of one row, in rows."""


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
