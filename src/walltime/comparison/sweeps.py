"""Figures of many runs: a measure over a swept parameter with its confidence intervals, and means with error bars."""

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from walltime.comparison.combination_means import CombinationMean
from walltime.comparison.combinations import chosen, combination_text, panels_of, positions, series_of, swept, varying
from walltime.comparison.measures import Measure, measure
from walltime.report.figures import COLOURS, DASHES, MARKS, shortened, style

MOST_PANELS = 12
MOST_ROWS = 60
NAME_LETTERS = 6
"""Number of letters of a name next to an axis, per inch of the figure."""
NARROWEST = 0.02
"""Axes of means with error bars span at least this share of the values."""
WIDE_RANGE = 30.0
"""Axes are logarithmic if their values differ by more than this factor."""


def draw_sweep(axes: Axes, lines: Sequence[CombinationMean], over: str, styles: Mapping[str, int] | None = None) -> None:
    """Draw one measure over a parameter: a line for each combination of the others, with bands for the confidence intervals of the means.

    Bands end at 0, as no measure is negative. Values without a place on the axis, such as the users' own estimates next to f:1, f:4, ...,
    are horizontal lines. `styles`: the number of each line's style, by its label. No legend is drawn.
    """
    label, places = positions(lines, over)
    words = [name for name in varying(lines) if name != over]
    shown = _measure_of(lines)
    others = list(dict.fromkeys(line.combination[over] for line in lines if line.combination[over] not in places))
    logarithmic = _wide([place for place in places.values() if place > 0])
    for k, (name, mine) in enumerate(panels_of(lines, words).items()):
        at = (styles or {}).get(name, k)
        look: dict[str, Any] = {"color": COLOURS[at % len(COLOURS)], "linestyle": DASHES[at % len(DASHES)]}
        drawn = [line for line in mine if line.combination[over] in places and math.isfinite(line.band.mean)]
        points = sorted((places[line.combination[over]], line) for line in drawn)
        if points:
            x = np.array([place for place, _ in points])
            mean, low, high = _values([line for _, line in points], shown)
            axes.plot(x, mean, marker=MARKS[at % len(MARKS)], markersize=4.5, label=name or None, **(look | {"linewidth": 1.5}))
            axes.fill_between(x, np.maximum(low, 0), high, color=look["color"], alpha=0.18, linewidth=0)
        for other in others:
            of = [line for line in mine if line.combination[over] == other]
            if of:
                axes.axhline(of[0].band.mean / shown.divisor, linewidth=0.9, alpha=0.8, color=look["color"], linestyle=(0, (1, 2)))
    if logarithmic and min(places.values(), default=0) > 0:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.set_xlabel(label)
    axes.set_ylabel(shown.axis)
    _value_axis(axes, lines, shown)
    axes.grid(axis="y")


def draw_intervals(axes: Axes, lines: Sequence[CombinationMean]) -> None:
    """Draw one measure of each combination: its mean as a mark, and a bar for its confidence interval."""
    words = varying(lines)
    first, _ = series_of(lines, None)
    order = {value: k for k, value in enumerate(dict.fromkeys(line.combination[first] for line in lines))} if first else {}
    shown = _measure_of(lines)
    mean, low, high = _values(lines, shown)
    for k, line in enumerate(lines):
        at = order[line.combination[first]] if first else 0
        look: dict[str, Any] = {"color": COLOURS[at % len(COLOURS)], "marker": MARKS[at % len(MARKS)], "markersize": 5, "linestyle": "none"}
        axes.errorbar([mean[k]], [k], xerr=[[mean[k] - low[k]], [high[k] - mean[k]]], capsize=3, elinewidth=1.3, **look)
    figure = axes.get_figure(root=True)
    letters = NAME_LETTERS * round(6.4 if figure is None else figure.get_figwidth())
    names = [re.sub(r"[^ =,]*/", "", combination_text(line.combination, words) or shown.label) for line in lines]
    short = [shortened(name, letters) for name in names]
    if len(set(short)) < len(set(names)):  # the common beginning distinguishes no names
        beginning = next((k for k, letters_of in enumerate(zip(*names, strict=False)) if len(set(letters_of)) > 1), 0)
        short = [shortened(f"…{name[beginning:]}", letters) for name in names]
    axes.set_yticks(range(len(lines)), short)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xlabel(shown.axis)
    _interval_axis(axes, lines, shown)
    axes.grid(axis="x")


def sweep_figure(lines: Sequence[CombinationMean], over: str) -> tuple[Figure, int]:
    """Return the figure of one measure over a parameter, a panel per combination of others, and the number of panels left out."""
    series, further = series_of(lines, over)
    panels = panels_of(lines, further)
    usable = {title: mine for title, mine in panels.items() if over in swept(mine)}
    titles = list(usable)[:MOST_PANELS]
    across = min(3, len(titles))
    down = -(-len(titles) // across)
    names = list(panels_of(lines, [series] if series else []))
    styles = {name: k for k, name in enumerate(names)}
    with style():
        width = 5.6 if across == 1 else 9.2
        figure = Figure(figsize=(width, 0.5 + (3.2 if across == 1 else 2.7) * down), layout="constrained")
        grid = np.atleast_1d(figure.subplots(down, across, squeeze=False)).ravel()
        for axes, title in zip(grid, titles, strict=False):
            draw_sweep(axes, usable[title], over, styles)
            axes.set_title("\n".join(textwrap.wrap(title, 64 if across == 1 else 34)))
        for axes in grid[len(titles) :]:
            axes.set_visible(False)
        if len(names) > 1:
            handles = {name: handle for axes in grid for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)}
            letters = int(width * 11)
            columns = max(1, min(len(handles), letters // (max(map(len, handles)) + 7)))
            figure.legend(list(handles.values()), list(handles), loc="outside upper left", ncols=columns, borderaxespad=0)
    return figure, len(panels) - len(titles)


def intervals_figure(lines: Sequence[CombinationMean]) -> Figure:
    """Return the figure of means with error bars, one panel for each measure, the combinations below each other."""
    measures = list(dict.fromkeys(line.metric for line in lines))
    rows = max(sum(line.metric == name for line in lines) for name in measures)
    across = min(2 if rows > 3 else 3, len(measures))
    down = -(-len(measures) // across)
    with style():
        figure = Figure(figsize=(9.2, (0.75 + 0.24 * min(rows, MOST_ROWS)) * down + 0.2), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False)
        for k, (axes, name) in enumerate(zip(grid.ravel(), measures, strict=False)):
            draw_intervals(axes, chosen(lines, name)[:MOST_ROWS])
            if k % across:
                axes.tick_params(labelleft=False)
        for axes in grid.ravel()[len(measures) :]:
            axes.set_visible(False)
    return figure


def _measure_of(lines: Sequence[CombinationMean]) -> Measure:
    """Return the measure, in a unit that fits its largest value or, on a logarithmic axis, a value in the middle."""
    means = [line.band.mean for line in lines if math.isfinite(line.band.mean)]
    highest = max(means, default=1.0)
    return measure(lines[0].metric, math.sqrt(highest * min(means)) if _wide(means) and min(means) > 0 else highest)


def _values(lines: Sequence[CombinationMean], shown: Measure) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean and the confidence limits of each line, in the axis's unit; single runs have limits equal to their value."""
    rows = [
        (line.band.mean, line.interval.low, line.interval.high) if line.interval is not None else (line.band.mean,) * 3 for line in lines
    ]
    mean, low, high = np.array(rows, np.float64).T / shown.divisor
    return mean, low, high


def _wide(values: Sequence[float]) -> bool:
    return bool(values) and max(values) > WIDE_RANGE * min(values)


def _value_axis(axes: Axes, lines: Sequence[CombinationMean], shown: Measure) -> None:
    """Set the vertical axis of the measure: logarithmic for a wide range of values, else from 0 where that makes sense."""
    _, low, _ = _values(lines, shown)
    from_zero = not shown.points  # shares differ too little for that
    if from_zero and _wide([line.band.mean for line in lines]) and min(low) > 0:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.yaxis.set_major_locator(MaxNLocator(5))
        if from_zero and min(low) >= 0:
            axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


def _interval_axis(axes: Axes, lines: Sequence[CombinationMean], shown: Measure) -> None:
    """Set the horizontal axis of the measure: logarithmic for a wide range of values, else around them, with a span of at least 2 %."""
    _, low, high = _values(lines, shown)
    first, last = float(np.nanmin(low)), float(np.nanmax(high))
    if not shown.points and _wide([line.band.mean for line in lines]) and first > 0:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        room = max(0.08 * (last - first), (NARROWEST * max(abs(first), abs(last)) - (last - first)) / 2, 1e-9)
        axes.set_xlim(first - room, last + room)
        axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
