"""Draw the figures of papers: grids of panels, lines with bands, bars and worked examples, all legible in greyscale."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, MultipleLocator, NullLocator

from walltime.papers.results import Chart, Data, by_column
from walltime.policy import Kind, Policy
from walltime.report.figures import COLOURS, DASHES, INK, KIND_COLOURS, KIND_EDGE, KIND_NAMES, style
from walltime.report.stretch import assign_processors
from walltime.schedule import Schedule
from walltime.simulation import simulate
from walltime.workload import Array, Workload

T = TypeVar("T")
Labels = Mapping[str, str] | str
Draw = Callable[[Axes, T, str], None]
HATCHES = ("", "////", "....", "xxxx")
MARKERS = ("o", "s", "^", "D")
PLAIN = FuncFormatter(lambda y, _: f"{y:,.10g}")
ACROSS = 4
"""Largest number of panels in a row."""
WIDTH, HEIGHT = 3.0, 2.3
"""Size of one panel in inches."""


def panels(columns: Mapping[str, T], rows: Labels, draw: Draw[T], *, x: str = "", legend: bool = True) -> Figure:
    """Return a grid of panels with titles on top, labels of the vertical axes at the left, and one label of the horizontal axis.

    `columns`: the data of each column by title. `rows`: the label of each row by key, or one label. `draw` fills a panel, given its axes,
    the column's data and the row's key. Without any column, because no log has the needed data, one empty panel reports this.
    """
    if not columns:
        return panels({"no log has the data for this figure": None}, rows, lambda _axes, _data, _row: None, x=x, legend=False)
    labels = {"": rows} if isinstance(rows, str) else rows
    lines = -(-len(columns) // ACROSS)
    across = -(-len(columns) // lines)
    with style():
        wide = max(across * WIDTH, 4.6) + 0.4
        figure = Figure(figsize=(wide, lines * len(labels) * HEIGHT + 0.5), layout="constrained", facecolor="white")
        grid = figure.subplots(lines * len(labels), across, squeeze=False)
        for place, (title, data) in enumerate(columns.items()):
            line_, column = divmod(place, across)
            for row, (name, label) in enumerate(labels.items()):
                axes = grid[line_ * len(labels) + row, column]
                draw(axes, data, name)
                axes.grid()
                axes.yaxis.set_major_formatter(PLAIN)
                if row == 0 and title:
                    axes.set_title(title, loc="center")
                if column == 0:
                    axes.set_ylabel(label)
                if row == len(labels) - 1:
                    axes.set_xlabel(x)
        for axes in grid[-len(labels) :, len(columns) - (lines - 1) * across :].flat:
            axes.set_visible(False)
        if legend:
            key(figure, list(grid.flat))
    return figure


def chart(name: str, caption: str, data: Data, columns: Mapping[str, T], rows: Labels, draw: Draw[T], **look: Any) -> Chart:
    """Return the chart of `panels` with the `data` behind it; `look`: additional arguments of `panels`."""
    return Chart(name, panels(columns, rows, draw, **look), caption, data)


def key(figure: Figure, axes: Sequence[Axes]) -> None:
    """Draw one legend for all panels, above them."""
    handles: dict[str, Any] = {}
    for one in axes:
        for handle, name in zip(*one.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    if handles:
        width = float(figure.get_size_inches()[0]) * 11
        columns = max(1, min(len(handles), int(width / (max(map(len, handles)) + 7))))
        figure.legend(list(handles.values()), list(handles), loc="outside upper center", ncols=columns, borderaxespad=0.1)


def line(axes: Axes, x: Array, y: Array, k: int, name: str, **more: Any) -> None:
    """Draw a line of the k-th kind."""
    axes.plot(x, y, label=name, **({"color": COLOURS[k % len(COLOURS)], "linestyle": DASHES[k % len(DASHES)], "linewidth": 1.5} | more))


def lines(axes: Axes, by_name: Mapping[str, Array], *, first: int = 1, markers: bool = False) -> None:
    """Draw a line for each array that is not empty, over whole numbers from `first` on."""
    for k, (name, values) in enumerate(by_name.items()):
        look: dict[str, Any] = {"marker": MARKERS[k], "markersize": 3} if markers else {}
        if len(values):
            line(axes, np.arange(first, first + len(values)), values, k, name, **look)


def shares(axes: Axes, values: Array, k: int, name: str, **more: Any) -> None:
    """Draw the percentage of the values, which ascend, up to each value: a line of the k-th kind."""
    line(axes, values, 100 * np.arange(1, len(values) + 1) / len(values), k, name, **more)


def level(axes: Axes, y: float, name: str) -> None:
    """Draw a horizontal line."""
    axes.axhline(y, color=INK, linestyle=DASHES[3], linewidth=1.1, label=name)


def bars(axes: Axes, groups: Mapping[str, Sequence[float]], names: Sequence[str]) -> None:
    """Draw grouped bars: for each of the `names` one bar of each group; groups also differ in hatching."""
    width = 0.8 / len(groups)
    places = np.arange(len(names))
    for k, (group, values) in enumerate(groups.items()):
        axes.bar(
            places + (k - (len(groups) - 1) / 2) * width,
            values,
            width,
            label=group,
            color=COLOURS[k % len(COLOURS)],
            hatch=HATCHES[k % len(HATCHES)],
            edgecolor="white",
            linewidth=0.4,
        )
    axes.set_xticks(places, list(names))


def from_zero(axes: Axes) -> None:
    """Start the vertical axis at 0."""
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(5))


def logarithmic(axes: Axes) -> None:
    """Make the vertical axis logarithmic, with round numbers."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())


@dataclass(frozen=True, eq=False)
class Example:
    """A worked example: some jobs and a policy; times are drawn in units of `unit` seconds."""

    title: str
    workload: Workload
    policy: Policy
    unit: int = 1
    names: Sequence[str] | None = None

    @property
    def schedule(self) -> Schedule:
        """Return the schedule of the jobs under the policy."""
        return simulate(self.workload, self.policy)


def example_chart(name: str, examples: Sequence[Example], caption: str) -> Chart:
    """Draw the schedules one below the other on one time axis; the unused part of an estimate is dotted."""
    schedules = [example.schedule for example in examples]
    longest = max(float((s.start + s.workload.requested).max()) / e.unit for s, e in zip(schedules, examples, strict=True))
    with style():
        figure = Figure(figsize=(7.2, 1.9 * len(examples) + 0.4), layout="constrained", facecolor="white")
        grid = figure.subplots(len(examples), 1, squeeze=False)
        for axes, example, schedule in zip(grid[:, 0], examples, schedules, strict=True):
            _draw(axes, example, schedule)
            axes.set_xlim(0, longest)
            axes.set_title(example.title)
        grid[-1, 0].set_xlabel("time")
    rows = [
        (example.title, j + 1, int(s.start[j]), int(s.end[j]), int(s.workload.procs[j]))
        for example, s in zip(examples, schedules, strict=True)
        for j in range(len(s))
    ]
    data = by_column(["example", "job", "start", "end", "procs"], rows)
    kinds = "grey jobs started at once, orange ones after a wait, blue ones were backfilled"
    return Chart(name, figure, f"{caption} In colour: {kinds}; dotted: the unused part of a request.", data)


def _draw(axes: Axes, example: Example, schedule: Schedule) -> None:
    w, unit = example.workload, example.unit
    job, first, count = assign_processors(schedule.start, schedule.end, w.procs, w.machine_procs)
    for j, low, high in zip(job.tolist(), first.tolist(), (first + count).tolist(), strict=True):
        start, end = schedule.start[j] / unit, schedule.end[j] / unit
        kind = Kind(schedule.kind[j])
        look: dict[str, Any] = {"facecolor": KIND_COLOURS[kind], "edgecolor": KIND_EDGE, "linewidth": 0.6, "label": KIND_NAMES[kind]}
        axes.add_patch(Rectangle((start, low), end - start, high - low, **look))
        over = (schedule.start[j] + w.requested[j]) / unit
        if over > end:
            axes.add_patch(Rectangle((end, low), over - end, high - low, fill=False, edgecolor=KIND_EDGE, linewidth=0.5, linestyle=":"))
    for j in np.unique(job).tolist():
        mine = job == j
        widest = int(np.argmax(np.where(mine, count, -1)))
        middle = (schedule.start[j] + schedule.end[j]) / 2 / unit
        name = example.names[j] if example.names is not None else str(j + 1)
        bold: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9, "fontweight": "bold"}
        axes.text(middle, first[widest] + count[widest] / 2, name, color="white" if schedule.kind[j] == 2 else "black", **bold)
    axes.set_ylim(0, w.machine_procs)
    axes.set_ylabel("processors")
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.xaxis.set_major_locator(MultipleLocator(2) if schedule.end.max() / unit < 40 else MaxNLocator(10))
