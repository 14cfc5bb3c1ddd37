"""Heat maps of the mean wait: by size and requested time, by hour and day of the week."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure

from walltime.errors import WorkloadError
from walltime.report.figures import NARROW, fit, panel, style
from walltime.report.page import Block, Drawing, Fold, Group, note
from walltime.schedule.groups import DAYS, UNKNOWN, Groups, group_jobs
from walltime.schedule.schedule import Schedule, labels
from walltime.tables import Cell, Row, Table
from walltime.wording import counted, human_time, lower_first

Array = np.ndarray

SHADES = LinearSegmentedColormap.from_list("walltime", ["#eef3f7", "#a9cbe2", "#5096c4", "#1d5f93", "#0b2e4f"])
"""Shades from light to dark, which can also be read without colour."""
ON_LIGHT, ON_DARK = "#10161d", "#ffffff"
Scale = tuple[float, float]
SHORTEST = 60.0
"""Mean waits up to this, s, always have the lightest shade."""
MOST_POLICIES = 4
"""Heat maps are drawn for the first policies only, at most this many."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Mean wait (float64 s, nan without jobs) and number of jobs of each row and column, shape (rows, columns)."""

    rows: Sequence[str]
    columns: Sequence[str]
    wait: Array
    jobs: Array


def size_grid(schedule: Schedule, mask: Array) -> Grid:
    """Return the waits of the measured jobs (bool, shape (jobs,)) by size and requested time."""
    sizes, lengths = (group_jobs(schedule.workload, by, schedule.submit, schedule.end) for by in ("size", "length"))
    return _grid(sizes, lengths, schedule.wait, mask)


def week_grid(schedule: Schedule, mask: Array) -> Grid | None:
    """Return the waits by day of the week and hour of the submission, local time; None if the log does not record when it begins."""
    try:
        days, hours = (group_jobs(schedule.workload, by, schedule.submit, schedule.end) for by in ("weekday", "hour"))
    except WorkloadError:  # the times of the log are beyond the calendar's range
        return None
    if list(days.names) == [UNKNOWN]:
        return None
    every_day, every_hour = DAYS, [f"{hour:02d}" for hour in range(24)]
    return _grid(_among(every_day, days), _among(every_hour, hours), schedule.wait, mask)


def size_map(grid: Grid, title: str, scale: Scale) -> Figure:
    """Draw the mean wait by size and requested time in its own figure."""
    with panel(0.9 + 0.36 * len(grid.rows)) as (figure, axes):
        draw_size_map(axes, grid, title, scale)
    return figure


def draw_size_map(axes: Axes, grid: Grid, title: str, scale: Scale) -> None:
    """Draw the mean wait by size (upwards) and requested time; each cell has its mean and, where there is room, its jobs."""
    _cells(axes, grid, scale)
    figure = axes.get_figure(root=True)
    low = figure is not None and figure.get_figheight() < 0.3 * len(grid.rows) + 0.9  # rows have no room for the jobs
    for k, j in np.argwhere(grid.jobs > 0):
        colour = _ink(grid.wait[k, j], scale)
        axes.text(j, k if low else k + 0.13, short_time(grid.wait[k, j]), ha="center", va="center", fontsize=7.5 - low, color=colour)
        if not low:
            axes.text(j, k - 0.26, f"{grid.jobs[k, j]:,}", ha="center", va="center", fontsize=5.8, color=colour)
    axes.set_xticks(range(len(grid.columns)), [_two_lines(name) for name in grid.columns])
    axes.tick_params(axis="x", labelsize=7.5)
    axes.set_ylabel("processors")
    axes.set_xlabel("requested time")
    axes.set_title(title)


def week_map(grid: Grid, title: str, scale: Scale, inches: float = 9.2) -> Figure:
    """Draw the mean wait by day of the week (downwards) and hour, in hours, with bars for the numbers of jobs."""
    with style():
        figure = Figure(figsize=(inches, 2.9), layout="constrained")
        (above, nothing), (axes, right) = figure.subplots(2, 2, height_ratios=(1, 5), width_ratios=(14, 1), sharex="col", sharey="row")
        nothing.set_axis_off()
        _cells(axes, grid, scale)
        narrow = inches < NARROW
        for k, j in np.argwhere(grid.jobs > 0) if not narrow else ():
            hours = grid.wait[k, j] / 3600
            said = f"{hours:.1f}" if hours < 9.95 else f"{hours:.0f}"
            axes.text(j, k, said, ha="center", va="center", fontsize=6.8, color=_ink(grid.wait[k, j], scale))
        above.bar(range(24), grid.jobs.sum(axis=0), width=0.9, color="#808890")
        right.barh(range(7), grid.jobs.sum(axis=1), height=0.9, color="#808890")
        above.set_title(title)
        above.set_ylabel("jobs", rotation=0, ha="right", va="center")
        right.set_xlabel("jobs")
        for side in (above, right):
            for spine in side.spines.values():
                spine.set_visible(False)
            side.tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)
        axes.set_xticks(range(0, 24, 4 if narrow else 1), grid.columns[:: 4 if narrow else 1])
        axes.set_yticks(range(7), grid.rows)
        axes.invert_yaxis()
        axes.set_xlabel("hour of submission, local time; cells: mean wait in hours")
        fit(figure)
    return figure


def heat_maps(schedules: Sequence[Schedule], masks: Sequence[Array]) -> list[Block]:
    """Return the heat maps as parts of a page, with the same shades for all policies, and tables of the numbers behind them."""
    names = labels(schedules)[:MOST_POLICIES]
    chosen = list(zip(schedules, masks, strict=True))[:MOST_POLICIES]
    shades = "Darker cells have longer waits, on the same logarithmic scale for all policies."
    more = f" The maps show the first {MOST_POLICIES} of {len(schedules)} policies." if len(schedules) > MOST_POLICIES else ""

    def maps(grids: Sequence[Grid], draw: Callable[[Grid, str, Scale], Figure], kind: str, corner: str, what: str) -> list[Block]:
        """Return the heat maps, in pairs unless they are wide, and tables of their numbers."""
        drawings, tables, wide = [], [], draw is week_map
        for k, (name, grid) in enumerate(zip(names, grids, strict=True)):
            alternative = f"{_worst(grid, name)}; all numbers are in a table below the figures."
            drawings.append(Drawing(draw(grid, name, scale_of(grids)), f"{kind}{k + 1}", alternative, wide=wide, policy=k))
            tables.append(_behind(grid, name, corner, what, k))
        return [*(drawings if wide else [Group(drawings, "pair")]), *tables]

    parts: list[Block] = [note(f"Mean wait by processors and requested time; the numbers of jobs are in small print. {shades}{more}")]
    sizes = [size_grid(*one) for one in chosen]
    parts += maps(sizes, size_map, "size", "processors, by requested time", "size and requested time")
    weeks = [grid for grid in (week_grid(*one) for one in chosen) if grid is not None]
    if weeks:
        parts.append(note(f"Mean wait by hour and weekday of submission. {shades}"))
        parts += maps(weeks, week_map, "week", "weekday, by hour", "weekday and hour of submission")
    return parts


def short_time(seconds: float) -> str:
    """Return a time as text for a narrow cell."""
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    if seconds < 99.5 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86_400:.1f} d"


def _two_lines(name: str) -> str:
    first, _, last = name.partition(" to ")
    return f"{first} to\n{last}" if first == "up" else f"{first}\nto {last}" if last else name.replace(" ", "\n", 1)


def _grid(rows: Groups, columns: Groups, wait: Array, mask: Array) -> Grid:
    shape = len(rows.names), len(columns.names)
    cell = (rows.of * shape[1] + columns.of)[mask]
    jobs = np.bincount(cell, minlength=shape[0] * shape[1])
    total = np.bincount(cell, weights=wait[mask].astype(np.float64), minlength=shape[0] * shape[1])
    mean = np.where(jobs > 0, total / np.maximum(jobs, 1), np.nan)
    return Grid(rows.names, columns.names, mean.reshape(shape), jobs.reshape(shape))


def _among(names: Sequence[str], groups: Groups) -> Groups:
    """Return the groups with these names, including groups without jobs."""
    place = np.array([list(names).index(name) for name in groups.names])
    return Groups(names, place[groups.of])


def scale_of(grids: Sequence[Grid]) -> Scale:
    """Return the waits (s) of the lightest and the darkest shade, between which most cells of all grids lie."""
    waits = np.concatenate([grid.wait[grid.jobs > 0] for grid in grids])
    low = max(SHORTEST, float(np.percentile(waits, 5))) if len(waits) else SHORTEST
    return low, max(2.0 * low, float(waits.max()) if len(waits) else 0.0)


def _ink(seconds: float, scale: Scale) -> str:
    return ON_DARK if LogNorm(*scale)(max(seconds, scale[0])) > 0.55 else ON_LIGHT


def _cells(axes: Axes, grid: Grid, scale: Scale) -> None:
    edges = np.arange(len(grid.columns) + 1) - 0.5, np.arange(len(grid.rows) + 1) - 0.5
    values = np.ma.masked_invalid(np.maximum(grid.wait, scale[0]))
    axes.pcolormesh(*edges, values, cmap=SHADES, norm=LogNorm(*scale), edgecolors="face", linewidth=0.2)
    axes.set_yticks(range(len(grid.rows)), grid.rows)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _worst(grid: Grid, name: str) -> str:
    """Describe the cell with the longest waits, to begin the description of a figure."""
    if not grid.jobs.any():
        return f"Heat map of the mean wait under {lower_first(name)}, without jobs:"
    k, j = divmod(int(np.nanargmax(grid.wait)), len(grid.columns))
    where = f"{grid.rows[k]}, {grid.columns[j]}"
    return f"Heat map of the mean wait under {lower_first(name)}; the longest, {human_time(float(grid.wait[k, j]))}, is at {where}"


def _behind(grid: Grid, name: str, corner: str, what: str, policy: int) -> Fold:
    """Return the numbers of a heat map as a table, folded."""
    rows: list[Row] = []
    for k, row in enumerate(grid.rows):
        cells = [
            Cell(human_time(float(wait)), [counted(count, "job")], value=float(wait)) if count else ""
            for wait, count in zip(grid.wait[k], grid.jobs[k], strict=True)
        ]
        rows.append([row, *cells])
    title = f"Mean wait under {lower_first(name)} by {what}"
    return Fold(title, [Table([corner, *grid.columns], rows, title, look="months")], policy)
