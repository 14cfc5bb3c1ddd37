"""Draw the figures of reports, each a function from schedules to a matplotlib Figure, in a common style."""

import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator, PercentFormatter

from walltime import metrics
from walltime.errors import WorkloadError
from walltime.policy import Kind
from walltime.report.stretch import assign_processors
from walltime.schedule.schedule import Schedule, labels
from walltime.wording import counted, human_time
from walltime.workload.origin import Origin

Array = np.ndarray

INK = "#010305"
"""Colour of text and axes; a page replaces it by `currentColor`, so that it follows light and dark mode."""
BLUE = "#0072B2"
"""The only colour of the palette that is hard to see on black; pages lighten it in dark mode."""
COLOURS = (BLUE, "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""The palette of Okabe and Ito, beginning with the colours that are clear on both white and black."""
DASHES = ("-", (0, (6, 1.5)), (0, (1.5, 1.2)), (0, (7, 1.5, 1.5, 1.5)))
"""Dash patterns, so that lines differ without colour as well."""
MARKS = ("o", "s", "^", "D", "v", "P")
"""Markers of single points."""
KIND_COLOURS = {Kind.IMMEDIATE: "#B8BCC2", Kind.RESERVED: "#E69F00", Kind.BACKFILLED: BLUE}
KIND_EDGE = "#20242A"
EDGES = (0.35, 0.1, 0.0)
"""Edge widths, points, of normal, thin and very thin strips of a Gantt chart."""
KIND_NAMES = {Kind.IMMEDIATE: "immediate", Kind.RESERVED: "reserved", Kind.BACKFILLED: "backfilled"}

LETTERS = 44
"""Longest name next to an axis, characters."""
LETTERS_PER_INCH = 14
"""Characters of a line of text per inch."""
POINTS = 400
"""Number of points of a distribution's curve."""
BINS = 130
"""Largest number of averaging intervals along the time axis."""
NARROW, NARROW_FIGURE, LEAST = 3.0, 5.0, 1.7
"""Inches: narrower axes label every other tick; narrower figures have their legend below; smallest height of a new figure."""
MOST_STRIPS = 5000
"""Largest number of strips in a Gantt chart; the largest strips are drawn."""

TIME_TICKS = {
    1: "1 s",
    10: "10 s",
    60: "1 min",
    600: "10 min",
    3600: "1 h",
    36_000: "10 h",
    345_600: "4 d",
    3_456_000: "40 d",
    34_560_000: "400 d",
}
DATE_STEPS = (300, 900, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600, 2_419_200)
"""Possible distances between ticks with dates, s."""
BIN_LENGTHS = (1, 10, 60, 600, 1800, 3600, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600, 2_592_000, 7_776_000, 31_536_000)
RC: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,  # TrueType: publishers refuse Type 3
    "svg.hashsalt": "walltime",
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.axisbelow": True,
    "grid.alpha": 0.14,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.8,
    "hatch.linewidth": 0.5,
    **dict.fromkeys(("axes.facecolor", "figure.facecolor"), "none"),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width", "grid.linewidth"), 0.6),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon", "path.simplify", "text.parse_math"), False),
    **{f"{part}color": INK for part in ("axes.edge", "axes.label", "axes.title", "text.", "xtick.", "ytick.", "grid.")},
}


@contextmanager
def style() -> Iterator[None]:
    """Apply the style of all figures of reports, independent of the user's matplotlib settings.

    Characters missing in the font are drawn as boxes, without a warning.
    """
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        yield


@dataclass(frozen=True)
class Distribution:
    """A figure of cumulative distributions over the measured jobs of each schedule, with a logarithmic axis that begins at 1."""

    xlabel: str
    values: Callable[[Schedule], Array]
    """return a value for each job"""
    side: Literal["left", "right"]
    """left: share of jobs below a point of the axis; right: share of jobs at or below it"""
    end: Callable[[float], float]
    """return the end of the axis, given the largest value"""
    ticks: Callable[[Axes], None]

    def curves(self, schedules: Sequence[Schedule], masks: Sequence[Array] | None = None) -> tuple[Array, list[Array]]:
        """Return the points of the axis, and for each schedule the percentages of jobs at these points.

        `masks`: bool, shape (jobs,), the measured jobs of each schedule; by default all.
        """
        every = [self.values(schedule) for schedule in schedules]
        chosen = every if masks is None else [values[mask] for values, mask in zip(every, masks, strict=True)]
        grid = np.geomspace(1, self.end(max((float(v.max()) for v in chosen if len(v)), default=1.0)), POINTS)
        return grid, [100 * (np.searchsorted(np.sort(own), grid, side=self.side) / max(len(own), 1)) for own in chosen]

    def draw(self, axes: Axes, schedules: Sequence[Schedule], masks: Sequence[Array] | None = None) -> None:
        """Draw a curve for each schedule on existing axes, without a legend."""
        grid, shares = self.curves(schedules, masks)
        for k, (name, own) in enumerate(zip(labels(schedules), shares, strict=True)):
            axes.plot(grid, own, label=name, clip_on=False, marker="o", markevery=[0], markersize=4, **look(k))
        share_axes(axes, grid[-1], self.xlabel, min(float(own[0]) for own in shares))
        self.ticks(axes)

    def figure(self, schedules: Sequence[Schedule], masks: Sequence[Array] | None = None) -> Figure:
        """Draw a curve for each schedule, with a legend."""
        with panel() as (figure, axes):
            self.draw(axes, schedules, masks)
            legend(figure, axes, 52)
        return figure


def queue_and_utilization(schedules: Sequence[Schedule]) -> Figure:
    """Draw the number of waiting jobs and the utilization over time, averaged over equal intervals."""
    with style():
        figure = Figure(figsize=(9.2, 4.2), layout="constrained")
        queue, busy = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        draw_queue_length(queue, schedules)
        draw_utilization(busy, schedules)
        queue.set_xlabel("")
        queue.tick_params(labelbottom=False)
        legend(figure, queue, 110)
    return figure


def draw_queue_length(axes: Axes, schedules: Sequence[Schedule], begin: int | None = None, end: int | None = None) -> None:
    """Draw the number of waiting jobs over time, averaged over equal intervals, on a symmetric log axis; without a legend."""
    edges, length = _intervals(schedules, begin, end)
    waiting = [metrics.means_between(*metrics.queue_length(s.submit, s.start), edges) for s in schedules]
    _steps(axes, schedules, waiting, edges)
    most = max(2.0, max(float(values.max()) for values in waiting) * 1.3)
    axes.set_yscale("symlog", linthresh=1, linscale=0.5)
    axes.set_ylim(0, most)
    axes.yaxis.set_major_locator(FixedLocator([0, *(t for t in 10.0 ** np.arange(9) if t <= most)]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    axes.set_title(f"waiting jobs (average over {_round_time(length)}, logarithmic above 1)")


def draw_utilization(axes: Axes, schedules: Sequence[Schedule], begin: int | None = None, end: int | None = None) -> None:
    """Draw the share of busy processors over time, averaged over equal intervals; without a legend."""
    workload = schedules[0].workload
    edges, _ = _intervals(schedules, begin, end)
    used = [metrics.means_between(*metrics.busy_processors(s.start, s.end, workload.procs), edges) for s in schedules]
    _steps(axes, schedules, [100 * values / workload.machine_procs for values in used], edges)
    axes.set_title("busy processors")
    axes.set_ylim(0, 100)
    axes.yaxis.set_major_locator(FixedLocator([0, 50, 100]))
    axes.yaxis.set_major_formatter(PercentFormatter(decimals=0, symbol=" %"))


def _intervals(schedules: Sequence[Schedule], begin: int | None, end: int | None) -> tuple[Array, int]:
    """Return the edges of equal intervals, s, and their length; by default from the first submission to the last end."""
    workload = schedules[0].workload
    if begin is None:
        begin = int(workload.submit[0]) if len(workload) else 0
    if end is None:
        end = max([begin + 1, *(int(s.end.max()) for s in schedules if len(s))])
    if end <= begin:
        raise WorkloadError(f"the end of a figure must be after its start, {begin} s, not {end} s", "empty_period")
    length = next((b for b in BIN_LENGTHS if (end - begin) / b <= BINS), BIN_LENGTHS[-1])
    return np.append(np.arange(begin, max(end - length // 4, begin + 1), length, dtype=np.int64), end), length


def _steps(axes: Axes, schedules: Sequence[Schedule], values: Sequence[Array], edges: Array) -> None:
    for k, (name, levels) in enumerate(zip(labels(schedules), values, strict=True)):
        axes.stairs(levels, edges, baseline=None, label=name, **(look(k) | {"linewidth": 1.4}))
    axes.grid(axis="y")
    axes.set_xlim(int(edges[0]), int(edges[-1]))
    _time_axis(axes, schedules[0], int(edges[0]), int(edges[-1]))


def gantt(schedule: Schedule, begin: int, end: int, title: str | None = None) -> Figure:
    """Draw the jobs running between `begin` and `end` (s), as rectangles of processors and time, coloured by kind of start.

    The simulation only counts processors; `assign_processors` chooses the positions, so a job may be split into several strips.
    """
    with panel(3.1, 9.2) as (figure, axes):
        draw_gantt(axes, schedule, begin, end, title)
    return figure


def draw_gantt(axes: Axes, schedule: Schedule, begin: int, end: int, title: str | None = None) -> None:
    """Draw a Gantt chart as `gantt` does, on existing axes."""
    w = schedule.workload
    inside = np.flatnonzero((schedule.start < end) & (schedule.end > begin) & (schedule.end > schedule.start))
    start, stop = schedule.start[inside], schedule.end[inside]
    job, first, count = assign_processors(start, stop, w.procs[inside], w.machine_procs)
    left, right = np.maximum(start[job], begin) - begin, np.minimum(stop[job], end) - begin
    largest = np.sort(np.argsort(-(right - left) * count, kind="stable")[:MOST_STRIPS])
    # edges of the normal width would cover strips that are hardly higher or longer than this
    thin = (count * 120 < w.machine_procs) | ((right - left) * 400 < end - begin)
    width = np.where(count * 500 < w.machine_procs, EDGES[2], np.where(thin, EDGES[1], EDGES[0]))
    divisor, unit = unit_of(end - begin)
    for kind, colour in KIND_COLOURS.items():
        mine = largest[schedule.kind[inside][job[largest]] == kind]
        for part, edge in ((mine[width[mine] == e], e) for e in EDGES):
            if len(part):
                outline = rectangles(left[part] / divisor, right[part] / divisor, first[part], first[part] + count[part])
                axes.add_patch(PathPatch(outline, facecolor=colour, edgecolor=KIND_EDGE, linewidth=edge))
    axes.set_xlim(0, (end - begin) / divisor)
    axes.set_ylim(0, w.machine_procs)
    axes.xaxis.set_major_locator(MaxNLocator(10, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    axes.set_ylabel("processors")
    axes.set_xlabel(f"{unit} since {moment(schedule, begin)}")
    axes.set_title(title or short_name(schedule.title, 60))
    key = [Patch(facecolor=c, edgecolor=KIND_EDGE, linewidth=0.35, label=KIND_NAMES[kind]) for kind, c in KIND_COLOURS.items()]
    axes.legend(handles=key, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.3, ncols=3)


TITLE_LETTERS, KEY_LETTERS, LINE = 11, 6, 0.16
"""Characters of a title per inch; width of a marker in a legend, characters; height of an additional line of a title, inches."""


def fit(figure: Figure) -> None:
    """Wrap titles and labels that are wider than the figure, and move a legend that does not fit next to the title below the figure."""
    most = int(TITLE_LETTERS * figure.get_figwidth())
    for axes in figure.axes:
        axes.set_title("\n".join(textwrap.wrap(axes.get_title(loc="left"), most)))
        axes.set_xlabel("\n".join(textwrap.wrap(axes.get_xlabel(), most)))
        lines = axes.get_title(loc="left").count("\n") + axes.get_xlabel().count("\n")
        figure.set_figheight(figure.get_figheight() + LINE * lines)
    keys = [key for axes in figure.axes if (key := axes.get_legend()) is not None]
    if not keys:
        return
    handles, names = keys[0].legend_handles, [text.get_text() for text in keys[0].get_texts()]
    title = max(len(axes.get_title(loc="left")) for axes in figure.axes)
    if figure.get_figwidth() < NARROW_FIGURE or title + sum(KEY_LETTERS + len(name) for name in names) > most:
        for key in keys:
            key.remove()
        figure.legend([one for one in handles if one is not None], names, loc="outside lower center", ncols=3, fontsize=8)


def moment(schedule: Schedule, seconds: int) -> str:
    """Return a log time as local date and time or, if the log has no start date, as time since the first submission."""
    if (date := schedule.workload.origin.moment(seconds)) is not None:
        return f"{date:%Y-%m-%d %H:%M}"
    first = int(schedule.workload.submit[0]) if len(schedule) else 0
    return "the first submission" if seconds <= first else f"{human_time(seconds - first)} after the first submission"


def legend(figure: Figure, axes: Axes, letters: int) -> None:
    """Add a legend above the axes, with as many columns as fit into a line of `letters` characters."""
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper right", ncols=columns_of(names, letters), borderaxespad=0)


def columns_of(names: Sequence[str], letters: float) -> int:
    """Return the number of legend columns with these names that fit into a line of `letters` characters."""
    widths = [len(name) + 8 for name in names]
    return len(names) if sum(widths) <= letters else max(1, int(letters // max(widths)))


@contextmanager
def panel(height: float = 3.4, width: float = 4.9) -> Iterator[tuple[Figure, Axes]]:
    """Yield a figure with one panel, by default half as wide as a page; `height`, `width`: inches."""
    with style():
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.subplots()


@contextmanager
def rows_figure(names: Sequence[str], xlabel: str, row: float = 0.3, top: float = 0.9, width: float = 9.2) -> Iterator[tuple[Figure, Axes]]:
    """Yield a figure with a row for each name, from top to bottom, for markers and intervals; `row`, `top`, `width`: inches."""
    with panel(top + row * max(len(names), 1), width) as (figure, axes):
        yield figure, axes
        axes.set_yticks(range(len(names)), [shortened(name) for name in names])
        axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
        axes.set_xlabel(xlabel)
        axes.grid(axis="x")


def months_figure(months: Sequence[str], lines: Mapping[str, Sequence[float]], ylabel: str, most: float | None = None) -> Figure:
    """Draw a line for each label over months; `most`: upper end of the axis, by default above the largest value."""
    with panel(2.8, 9.2) as (figure, axes):
        for k, (label, values) in enumerate(lines.items()):
            axes.plot(values, marker="o", markersize=4, label=label, **look(k))
        step = max(1, len(months) // 12)
        axes.set_xticks(range(0, len(months), step), months[::step])
        axes.set_ylim(0, most)
        axes.set_ylabel(ylabel)
        axes.grid()
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper right", ncols=2)
    return figure


def means_figure(names: Sequence[str], waits: Sequence[float], halves: Sequence[float] | None = None) -> Figure:
    """Draw a bar of the mean wait, s, for each name; `halves`: half widths of their intervals, s."""
    largest = max(waits, default=1.0)
    divisor, unit = round_unit(largest)
    with panel(0.9 + 0.36 * len(names), 7.2) as (figure, axes):
        places = np.arange(len(names))
        axes.barh(places, np.array(waits) / divisor, color=[BLUE if k == 0 else "#9DBBD6" for k in range(len(names))], height=0.66)
        if halves is not None:
            axes.errorbar(np.array(waits) / divisor, places, xerr=np.array(halves) / divisor, fmt="none", ecolor=INK, capsize=3)
        axes.set_yticks(places, [shortened(name) for name in names])
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.set_xlabel(f"mean wait, {unit}")
    return figure


def shortened(name: str, letters: int = LETTERS) -> str:
    """Shorten a name to fit next to an axis, but keep the last value of a list or an option if it is short.

    >>> shortened("easy:backfill-order=sjf", 16), shortened("easy:backfill-order=sjf, exact", 16), shortened("a long name", 8)
    ('easy:backfi…=sjf', 'easy:bac…, exact', 'a long …')
    """
    if len(name) <= letters:
        return name
    sign = next((sign for sign in (", ", "=") if sign in name), "")
    first, _, last = name.rpartition(sign) if sign else (name, "", "")
    end = f"{sign}{last}" if sign and len(last) <= 2 * letters // 3 else ""
    return f"{(first if end else name)[: letters - 1 - len(end)]}…{end}"


def short_name(name: str, letters: int = LETTERS) -> str:
    """Return a name without the folders in its paths, shortened.

    >>> short_name("easy:order=/home/ann/own.py:sjf"), short_name("logs/KTH.swf", 6)
    ('easy:order=own.py:sjf', 'KTH.s…')
    """
    return shortened(re.sub(r"[^ =,]*/", "", name), letters)


def look(k: int) -> dict[str, Any]:
    """Return the colour and dashes of line number `k`."""
    return {"color": COLOURS[k % len(COLOURS)], "linestyle": DASHES[k % len(DASHES)]}


def time_ticks(axes: Axes) -> None:
    """Set ticks at round times on a logarithmic axis of seconds; on narrow axes, only every other one."""
    axes.xaxis.set_major_locator(FixedLocator([t for t in TIME_TICKS if t <= axes.get_xlim()[1]][:: 1 if _inches(axes) > NARROW else 2]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: TIME_TICKS.get(round(x), "")))


def ratio_ticks(axes: Axes) -> None:
    """Set ticks at powers of ten."""
    axes.xaxis.set_major_locator(FixedLocator([t for t in 10.0 ** np.arange(12) if t <= axes.get_xlim()[1]]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))


def percent_ticks(axis: Any) -> None:
    """Set ticks at whole percentages."""
    axis.set_major_locator(MaxNLocator(5, integer=True))
    axis.set_major_formatter(PercentFormatter(decimals=0, symbol=" %"))


def share_axes(axes: Axes, end: float, xlabel: str = "", lowest: float = 0.0) -> None:
    """Set up the axes of a cumulative distribution over values from 1 to `end`, with a logarithmic horizontal axis.

    The vertical axis begins at 0 or, if all shares exceed one half, slightly below the lowest share, which its label then states.
    """
    bottom = min(max(10 * int((lowest - 2) // 10), 0) if lowest > 50 else 0, 90)
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(1, end)
    axes.set_ylim(bottom, 100)
    percent_ticks(axes.yaxis)
    axes.set_xlabel(xlabel)
    axes.set_ylabel("share of jobs" if bottom == 0 else f"share of jobs (from {bottom} %)")
    axes.grid()


def _inches(axes: Axes) -> float:
    """Return the approximate width of the axes, inches."""
    figure = axes.get_figure()
    return axes.get_position().width * (figure.get_figwidth() if isinstance(figure, Figure) else NARROW)


def rectangles(left: Array, right: Array, low: Array, high: Array) -> Path:
    """Return all rectangles as a single path, which keeps the page small."""
    corners = np.stack([np.stack(pair, axis=1) for pair in ((left, low), (right, low), (right, high), (left, high), (left, low))], axis=1)
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    return Path(corners.reshape(-1, 2), np.tile(np.array(codes, np.uint8), len(left)))


def unit_of(length: float) -> tuple[int, str]:
    """Return the unit for the axis of a period, s: its length in seconds and its name."""
    if length <= 180:
        return 1, "seconds"
    if length <= 3 * 3600:
        return 60, "minutes"
    return (3600, "hours") if length <= 4 * 86_400 else (86_400, "days")


def round_unit(largest: float) -> tuple[int, str]:
    """Return the largest unit that is at most two thirds of a time, s: its length in seconds and its name."""
    return next(((d, u) for d, u in ((86_400, "days"), (3600, "hours"), (60, "minutes")) if largest >= 1.5 * d), (1, "s"))


def _round_time(seconds: int) -> str:
    for unit, name in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= unit:
            return f"{seconds // unit} {name}{'' if seconds == unit else 's'}"
    return f"{counted(seconds, 'second')}"


def _time_axis(axes: Axes, schedule: Schedule, begin: int, end: int) -> None:
    """Set ticks at the first of each month if the log has dates and is long enough, otherwise at round times since the start."""
    origin = schedule.workload.origin
    epoch, firsts = origin.unix_start_time or 0, []
    if origin.unix_start_time is not None and 75 * 86_400 <= end - begin <= 60 * 366 * 86_400:
        with suppress(WorkloadError):  # if the times are outside the calendar
            firsts = metrics.month_starts(epoch + begin, epoch + end, origin.tzinfo())[1:-1]
    if firsts:
        every = next(k for k in (1, 2, 3, 6, 12, 24, 60, 120) if len(firsts) / k <= 13)
        shown = [(y, m, t) for y, m, t in firsts if (12 * y + m - 1) % every == 0]
        axes.set_xticks([t - epoch for *_, t in shown], [f"{datetime(y, m, 1, tzinfo=UTC):%b}\n{y}" for y, m, _ in shown])
        return
    divisor, unit = unit_of(end - begin)
    span = (end - begin) / divisor
    if unit == "hours":  # parts of a day
        ticks = np.arange(0, span + 1e-9, next(step for step in (1, 2, 3, 6, 12) if span <= 9 * step))
    else:
        ticks = np.asarray(MaxNLocator(10, steps=[1, 2, 5, 10]).tick_values(0, span))
        ticks = ticks[(ticks >= 0) & (ticks <= span)]
    axes.set_xticks(begin + ticks * divisor, [f"{t:g}" for t in ticks])
    axes.set_xlabel(f"{unit} since {moment(schedule, begin)}")


def date_ticks(origin: Origin, begin: int, end: int, most: int = 8) -> dict[int, str]:
    """Return about `most` round local times between two log times, s, with their labels; empty without dates."""
    if (first := origin.moment(begin)) is None:
        return {}
    step = next((one for one in DATE_STEPS if end - begin <= most * one), DATE_STEPS[-1] * -(-(end - begin) // (most * DATE_STEPS[-1])))
    shift = (origin.unix_start_time or 0) + int((first.utcoffset() or timedelta()).total_seconds())
    form = "%d %b" if step % 86_400 == 0 else "%d %b\n%H:%M"
    ticks = range(-(-(begin + shift) // step) * step - shift, end + 1, step)
    return {tick: f"{moment:{form}}" for tick in ticks if (moment := origin.moment(tick)) is not None}


WAITS = Distribution("wait less than", lambda s: s.wait, "left", lambda longest: max(longest + 1, 60), time_ticks)
"""Distribution of waits; its left end, at 1 s, is the share of jobs that do not wait."""
SLOWDOWNS = Distribution(
    "bounded slowdown at most",
    lambda s: metrics.bounded_slowdown(s.wait, s.runtime),
    "right",
    lambda highest: max(highest * 1.001, 10),
    ratio_ticks,
)
"""Distribution of bounded slowdowns; its left end, at 1, is the share of jobs without slowdown."""
