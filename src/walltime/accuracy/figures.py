"""Draw the figures of the page on users' walltimes: requested hours by user and over time, and the tested schemes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from walltime.report.figures import BLUE, COLOURS, DASHES, INK, panel, percent_ticks, shortened, style
from walltime.wording import human_percent

Rows = Sequence[Mapping[str, Any]]
UNUSED = "#E69F00"
LONGEST = 22
"""Largest number of characters of a name next to a bar."""
MOST_TICKS = 9


def hours_figure(rows: Rows) -> Figure:
    """Draw a bar of used and unused processor-hours for each group, labelled with the used share."""
    names = [shortened(str(row["group"]), LONGEST) for row in rows]
    used = np.array([row["asked_hours"] - row["unused_hours"] for row in rows])
    unused = np.array([row["unused_hours"] for row in rows])
    places = np.arange(len(rows))[::-1]
    most = max((row["asked_hours"] for row in rows), default=0)
    divisor, unit = next((each for each in ((1e6, "million "), (1e3, "thousand ")) if most >= each[0]), (1, ""))
    with panel(1.1 + 0.27 * len(rows), 7.6) as (figure, axes):
        axes.barh(places, used, color=BLUE, label="used", height=0.72)
        axes.barh(places, unused, left=used, color=UNUSED, label="unused", height=0.72)
        for place, row in zip(places.tolist(), rows, strict=True):
            share = "" if row["used_share"] is None else human_percent(100 * row["used_share"])
            axes.annotate(share, (row["asked_hours"], place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
        axes.set_yticks(places, names)
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.margins(x=0.08)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / divisor:,g}"))
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.set_xlabel(f"{unit}processor-hours")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper right", ncols=2, borderaxespad=0)
    return figure


def time_figure(rows: Rows) -> Figure:
    """Draw used and unused processor-hours over time, and below them the used share and the mean accuracy of the requests."""
    names = [str(row["group"]) for row in rows]
    x = np.arange(len(rows))
    used = np.array([row["asked_hours"] - row["unused_hours"] for row in rows])
    with style():
        figure = Figure(figsize=(9.6, 4.6), layout="constrained")
        hours, shares = figure.subplots(2, 1, sharex=True)
        hours.bar(x, used, color=BLUE, label="used", width=0.8)
        hours.bar(x, [row["unused_hours"] for row in rows], bottom=used, color=UNUSED, label="unused", width=0.8)
        hours.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
        hours.yaxis.set_major_locator(MaxNLocator(4))
        hours.set_title("processor-hours, by submission")
        lines = (("used share of the hours", "used_share", BLUE), ("mean accuracy of the requests", "mean_accuracy", COLOURS[1]))
        for k, (label, field, colour) in enumerate(lines):
            values = [np.nan if row[field] is None else 100 * row[field] for row in rows]
            shares.plot(x, values, color=colour, linestyle=DASHES[k], marker="o", markersize=3, label=label)
        shares.set_ylim(0, 100)
        shares.yaxis.set_major_formatter(PercentFormatter(decimals=0, symbol=" %"))
        shares.grid(axis="y")
        step = -(-len(names) // MOST_TICKS)
        shares.set_xticks(x[::step], names[::step])
        for axes in (hours, shares):
            axes.legend(loc="upper left", bbox_to_anchor=(0.35, 1.16), ncols=2)
    return figure


def schemes_figure(rows: Rows, own: float, chosen: Sequence[str]) -> Figure:
    """Draw a dot for each scheme: accuracy over the share of jobs underestimated, with rings around the simulated schemes.

    `own`: accuracy of the users' requests, drawn as a dotted line. `chosen`: labels of the simulated predictors.
    """
    with panel(3.6) as (figure, axes):
        for bounded, colour, mark, label in ((False, BLUE, "o", "no threshold"), (True, COLOURS[1], "^", "adjusted to half at least")):
            mine = [row for row in rows if ("threshold" in row["predictor"]) == bounded]
            axes.plot(*_points(mine), linestyle="", marker=mark, markersize=4, color=colour, alpha=0.7, markeredgewidth=0, label=label)
        rings = _points([row for row in rows if row["predictor"] in chosen])
        axes.plot(*rings, linestyle="", marker="o", markersize=10, markerfacecolor="none", markeredgecolor=INK, label="simulated")
        axes.axhline(100 * own, color=INK, linewidth=0.8, linestyle=":")
        axes.annotate("users' requests", (0.99, 100 * own), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8)
        axes.set_xlim(left=0)
        for axis in (axes.xaxis, axes.yaxis):
            percent_ticks(axis)
        axes.set_xlabel("jobs underestimated")
        axes.set_ylabel("mean accuracy")
        axes.grid()
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper right", ncols=2, borderaxespad=0)
    return figure


def _points(rows: Rows) -> tuple[list[float], list[float]]:
    return [row["under"] for row in rows], [100 * row["accuracy"] for row in rows]
