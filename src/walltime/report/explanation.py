"""The picture to a job's explanation: who had the processors while it waited, against what it needed, and who overtook it."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, PathPatch
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from walltime.explanation.pools import MachineExplanation
from walltime.explanation.records import NumberExplanation
from walltime.explanation.sentences import count
from walltime.explanation.waits import index_of
from walltime.report.figures import BLUE, COLOURS, KIND_EDGE, LETTERS_PER_INCH, columns_of, moment, rectangles, style, unit_of
from walltime.schedule.schedule import Schedule

__all__ = ["USERS", "Array", "explanation_figure"]

Array = np.ndarray
AnyExplanation = NumberExplanation | MachineExplanation

ITSELF, DELAYED, OTHER_HEADS = COLOURS[2], COLOURS[1], COLOURS[4]
USERS = {
    "ran when it was submitted": "#8A9099",
    "had arrived before it": "#C9CDD3",
    "arrived later": BLUE,
    "the job itself": ITSELF,
}
"""Who has the processors, by colour."""
MOST_ROWS = 40
"""Rows of bars of overtaking jobs; what does not fit is not drawn."""


def explanation_figure(explanation: AnyExplanation, width: float = 9.2) -> Figure:
    """The processors in use around the wait, stacked by who has them, and below it the jobs that overtook.

    The job fits where the stack stays below the dashed line. Triangles at the top are its reservations, hollow for the first; one that
    points to the right is later than what is shown. `width`: inches.
    """
    schedule = explanation.schedule
    assert isinstance(schedule, Schedule), "explanations are told of schedules"
    rows = _rows(explanation)
    begin, end = _window(explanation)
    divisor, unit = unit_of(end - begin)
    with style():
        heights = [3.0, max(0.6, 0.35 + 0.075 * (max(rows) + 1))] if rows else [3.0]
        figure = Figure(figsize=(width, 1.2 + sum(heights)), layout="constrained")
        panels = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        _machine(figure, panels[0], explanation, schedule, begin, end, divisor)
        if rows:
            _overtakers(panels[1], explanation, rows, divisor, LETTERS_PER_INCH * width)
        since = f"{unit} since job {explanation.job} was submitted ({moment(schedule, explanation.submit)})"
        panels[-1].set_xlabel(fill(since, int(LETTERS_PER_INCH * width)))
        panels[-1].set_xlim((begin - explanation.submit) / divisor, (end - explanation.submit) / divisor)
        most = 12 if width > 5 else 5
        ticks = MaxNLocator(min(most, 8), steps=[1, 2, 5, 10]) if unit == "days" else MaxNLocator(most, steps=[1, 2, 4, 5, 6, 10])
        panels[-1].xaxis.set_major_locator(ticks)
    return figure


def _window(explanation: AnyExplanation) -> tuple[int, int]:
    """From somewhat before its submission until it has run for a while, s."""
    wait = max(explanation.wait, 1)
    ran = min(max(explanation.end, explanation.start + 1), explanation.start + wait // 5)
    reserved = max((change.start for change in explanation.reservations), default=explanation.start) + wait // 40
    return explanation.submit - wait // 12, max(ran, min(reserved, explanation.start + wait // 2)) + 1


def _machine(figure: Figure, axes: Axes, explanation: AnyExplanation, schedule: Schedule, begin: int, end: int, divisor: int) -> None:
    """Who has the processors, and what the job needs."""
    w = schedule.workload
    job, index = index_of(schedule, explanation.job), np.arange(len(w))
    start, stop, submit = schedule.start, schedule.end, schedule.submit
    later = (submit > explanation.submit) | ((submit == explanation.submit) & (index > job))
    ran = (start < explanation.submit) | ((start == explanation.submit) & ~later & (index != job))
    masks = [ran, ~ran & ~later & (index != job), ~ran & later, index == job]
    inside = (start < end) & (stop > begin)
    times = np.unique(np.concatenate([[begin, end], start[inside], stop[inside]]).clip(begin, end))
    whole, had = _machine_of(explanation, schedule)
    levels = [_in_use(start, stop, had, mask & inside, times) for mask in masks]
    x = (times - explanation.submit) / divisor
    tops = np.cumsum([np.zeros(len(times), np.int64), *levels], axis=0)
    for low, high, colour in zip(tops, tops[1:], USERS.values(), strict=False):
        drawn = (np.diff(low, prepend=-1) != 0) | (np.diff(high, prepend=-1) != 0)
        drawn[-1] = True  # the other points change nothing, and would make the file large
        axes.fill_between(x[drawn], low[drawn], high[drawn], step="post", color=colour, linewidth=0)
    need = whole - explanation.procs
    axes.axhline(need, color=KIND_EDGE, linestyle=(0, (5, 2)), linewidth=1)
    told = f"needs\nthe {explanation.procs:,}\nabove"
    low = need < whole / 2
    axes.annotate(told, (1, need), (5, 0), axes.get_yaxis_transform(), "offset points", fontsize=8, va="bottom" if low else "top")
    for time, label in ((explanation.submit, "submitted"), (explanation.start, "started")):
        axes.axvline((time - explanation.submit) / divisor, color=KIND_EDGE, linewidth=1)
        axes.annotate(label, ((time - explanation.submit) / divisor, whole), (-3, 9), textcoords="offset points", ha="right", fontsize=8)
    promised = [change.start for change in explanation.reservations if change.start >= 0]
    triangle: dict[str, Any] = {"marker": "v", "linestyle": "none", "color": DELAYED, "markersize": 6, "clip_on": False}
    for k, time in reversed(list(enumerate(promised))):
        place = (min(time, end) - explanation.submit) / divisor, whole * 1.03
        looks = triangle | {"marker": ">" if time > end else "v", "markerfacecolor": "white" if k == 0 else DELAYED}
        axes.plot(*place, zorder=6 if k == 0 else 5, **looks)
    axes.set_ylim(0, whole)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    axes.set_ylabel("processors in use")
    axes.set_title(f"job {explanation.job} under {schedule.title}", pad=22)
    key = [Patch(facecolor=colour, edgecolor=KIND_EDGE, linewidth=0.35, label=name) for name, colour in USERS.items()]
    mark: list[Patch | Line2D] = [Line2D([], [], label="reservations", **triangle)] if promised else []
    layout: dict[str, Any] = {"columnspacing": 1.2, "handlelength": 1.2, "borderaxespad": 0}
    handles = [*key, *mark]
    columns = columns_of([str(one.get_label()) for one in handles], LETTERS_PER_INCH * figure.get_figwidth())
    figure.legend(handles=handles, loc="outside upper right", ncols=columns, **layout)


def _machine_of(explanation: AnyExplanation, schedule: Schedule) -> tuple[int, Array]:
    """The processors of the machine and of each job; of a machine of several pools, those of the pools that the job can have."""
    if isinstance(explanation, NumberExplanation) or schedule.given is None or schedule.placement is None:
        return schedule.workload.machine_procs, schedule.workload.procs
    places = [schedule.placement.machine.place_of(name) for name in explanation.pools]
    return explanation.capacity[0], schedule.given[:, places, 0].sum(axis=1)


def _in_use(start: Array, end: Array, procs: Array, mask: Array, times: Array) -> Array:
    """Processors that these jobs have from each of these times on."""
    change = np.zeros(len(times) + 1, np.int64)
    np.add.at(change, np.searchsorted(times, start[mask].clip(times[0], times[-1])), procs[mask])
    np.add.at(change, np.searchsorted(times, end[mask].clip(times[0], times[-1])), -procs[mask])
    return np.cumsum(change)[:-1]


def _least(explanation: AnyExplanation) -> int:
    """The shortest bar that can be seen, s."""
    return max(explanation.wait // 400, 1)


def _rows(explanation: AnyExplanation) -> list[int]:
    """A row for each overtaking job, such that bars of one row do not overlap."""
    free_from: list[int] = []
    rows = []
    for one in explanation.overtaken_by:
        row = next((k for k, time in enumerate(free_from) if time <= one.start), len(free_from))
        if row == len(free_from):
            free_from.append(0)
        free_from[row] = one.start + max(one.runtime, _least(explanation))
        rows.append(min(row, MOST_ROWS))
    return rows


def _overtakers(axes: Axes, explanation: AnyExplanation, rows: list[int], divisor: int, letters: float) -> None:
    """A bar for each job that arrived later and started earlier; the colour says whom it put off."""
    names = {BLUE: "put nobody off", OTHER_HEADS: "put off another job at the head of the queue", DELAYED: f"put off job {explanation.job}"}
    colours = [BLUE if one.delay <= 0 else DELAYED if one.head == explanation.job else OTHER_HEADS for one in explanation.overtaken_by]
    left = np.array([one.start for one in explanation.overtaken_by]) - explanation.submit
    right = left + np.maximum([one.runtime for one in explanation.overtaken_by], _least(explanation))
    row = np.array(rows, float)
    if isinstance(explanation, MachineExplanation):  # who put off whom is not known there
        names = {BLUE: "arrived later"}
    for colour in names:
        mine = (np.array(colours) == colour) & (row < MOST_ROWS)
        if mine.any():
            outline = rectangles(left[mine] / divisor, right[mine] / divisor, row[mine] - 0.4, row[mine] + 0.4)
            axes.add_patch(PathPatch(outline, facecolor=colour, edgecolor="white", linewidth=0.15))
    axes.set_ylim(min(max(rows), MOST_ROWS) + 0.7, -0.7)
    axes.yaxis.set_major_locator(NullLocator())
    axes.spines["left"].set_visible(False)
    key = [Patch(facecolor=colour, label=f"{name} ({colours.count(colour):,})") for colour, name in names.items() if colour in colours]
    columns = columns_of([str(one.get_label()) for one in key], letters)
    axes.set_title(f"{count(len(rows), 'job')} that overtook it", pad=8 + 12 * -(-len(key) // columns))  # the key stands between
    axes.legend(handles=key, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2, ncols=columns, columnspacing=1.2, handlelength=1.2)
