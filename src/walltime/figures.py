"""Figures for papers and talks; each function draws on given or new matplotlib axes, and returns them.

The figures are readable in greyscale: lines differ in dashes, and areas in hatching or lightness. `WIDTHS` contains common sizes;
`save` writes PDF, SVG or PNG with reproducible bytes.

>>> import walltime as wt
>>> jobs = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4)
>>> axes = wt.figures.wait_distribution(wt.simulate(jobs, "easy"), wt.simulate(jobs, "fcfs"))
>>> [line.get_label() for line in axes.lines]
['EASY', 'FCFS']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from walltime.accuracy import estimate_figures as of_estimates
from walltime.comparison import CombinationMean, heatmaps as of_groups, sweeps as of_many
from walltime.comparison.combinations import chosen, swept
from walltime.comparison.many_runs_page import SLOWDOWNS, WAITS, compare_replications, draw_bands
from walltime.errors import PolicyError, WorkloadError
from walltime.metrics.intervals import LEVEL
from walltime.report import figures as of_schedules, nodes_figure as of_nodes
from walltime.report.figure_files import SCHEDULE_FIGURES, SINGLE, WIDTHS, figure_bytes, named_file, width_in_inches, write_figure
from walltime.report.stretch import choose_stretch
from walltime.schedule import Schedule
from walltime.schedule.side_by_side import check_schedules
from walltime.simulation import Replications
from walltime.wording import shown
from walltime.workload import Array, Workload

if TYPE_CHECKING:
    from walltime.campaign import Results

__all__ = [
    "OF_SCHEDULES",
    "SINGLE",
    "WIDTHS",
    "Array",
    "accuracy_by_runtime",
    "bands",
    "estimate_distribution",
    "estimate_use",
    "estimates_against_runtimes",
    "gantt",
    "gantts",
    "intervals",
    "named_file",
    "nodes",
    "panels",
    "queue_length",
    "save",
    "slowdown_distribution",
    "sweep",
    "utilization",
    "wait_by_hour",
    "wait_by_size",
    "wait_distribution",
    "width_in_inches",
]

RATIO = 0.68
"""Ratio of the height of a new figure, without its legend, to its width."""
LETTERS, ROW = 14, 0.18  # characters of a legend in an inch, and the height of one of its rows, inches
FEWEST, MOST_ROWS = 32, 4
"""Names in a legend of more rows are cut to fit two columns, unless fewer letters of each would remain."""


def wait_distribution(*schedules: Schedule, ax: Axes | None = None, trim: str = "none", width: str | float = "column") -> Axes:
    """Draw the cumulative distribution of waits, one line per schedule; the left end, at 1 s, is the share of jobs that do not wait.

    `ax`: axes to draw on, by default new ones. `trim`: as in `Schedule.summary`. `width`: width of a new figure, in inches or as a name in
    `WIDTHS`. Raises WorkloadError without schedules.
    """
    check_schedules(schedules)
    return _drawn(lambda axes: of_schedules.WAITS.draw(axes, schedules, _measured(schedules, trim)), ax, width, legend=True)


def slowdown_distribution(*schedules: Schedule, ax: Axes | None = None, trim: str = "none", width: str | float = "column") -> Axes:
    """Draw the cumulative distribution of bounded slowdowns, one line per schedule. The arguments are as in `wait_distribution`."""
    check_schedules(schedules)
    return _drawn(lambda axes: of_schedules.SLOWDOWNS.draw(axes, schedules, _measured(schedules, trim)), ax, width, legend=True)


def queue_length(
    *schedules: Schedule, begin: int | None = None, end: int | None = None, ax: Axes | None = None, width: str | float = "page"
) -> Axes:
    """Draw the number of waiting jobs over time, averaged over equal intervals, one line per schedule.

    `begin`, `end`: seconds from the start of the log, by default from the first submission to the last end. Other arguments as for
    `wait_distribution`.
    """
    check_schedules(schedules)
    return _drawn(lambda axes: of_schedules.draw_queue_length(axes, schedules, begin, end), ax, width, legend=True, ratio=0.4)


def utilization(
    *schedules: Schedule, begin: int | None = None, end: int | None = None, ax: Axes | None = None, width: str | float = "page"
) -> Axes:
    """Draw the share of busy processors over time, averaged over equal intervals. The arguments are as in `queue_length`."""
    check_schedules(schedules)
    return _drawn(lambda axes: of_schedules.draw_utilization(axes, schedules, begin, end), ax, width, legend=True, ratio=0.35)


def gantt(
    schedule: Schedule, begin: int | None = None, end: int | None = None, *, ax: Axes | None = None, width: str | float = "page"
) -> Axes:
    """Draw jobs as rectangles of processors and time, coloured by how they started.

    `begin`, `end`: seconds from the start of the log; by default, a period of about a hundred jobs with backfilling. The
    simulation only counts processors, so the figure chooses positions that keep jobs in one piece where possible.
    """
    check_schedules([schedule])
    if begin is None or end is None:
        begin, end = choose_stretch((schedule,))
    first, last = begin, end
    return _drawn(lambda axes: of_schedules.draw_gantt(axes, schedule, first, last), ax, width, ratio=0.4)


def gantts(schedules: Sequence[Schedule], width: str | float = "page") -> Figure:
    """Draw a Gantt chart of each schedule over the same period, one below the other."""
    check_schedules(schedules)
    begin, end = choose_stretch(tuple(schedules))
    inches, count = width_in_inches(width), len(schedules)
    with of_schedules.style():
        figure = Figure(figsize=(inches, max(0.4 * inches, of_schedules.LEAST) * count), layout="constrained")
        for row, schedule in enumerate(schedules, 1):
            of_schedules.draw_gantt(figure.add_subplot(count, 1, row), schedule, begin, end)
        of_schedules.fit(figure)
    return figure


def nodes(
    schedule: Schedule,
    begin: int | None = None,
    end: int | None = None,
    *,
    of: str | None = None,
    ax: Axes | None = None,
    width: str | float = "page",
) -> Axes:
    """Draw the used share of each node's processors, GPUs and memory over time; nodes are in the order of their pools.

    `begin`, `end`: as in `gantt`. `of`: "processors", the name of the second resource, or "memory"; by default all of them, in one panel
    each, or on given axes the processors. Raises WorkloadError for a schedule without individual nodes.
    """
    check_schedules([schedule])
    if begin is None or end is None:
        begin, end = choose_stretch((schedule,))
    first, last = begin, end
    if of is None and ax is None:
        return of_nodes.nodes_figure(schedule, first, last, width_in_inches(width)).axes[0]
    return _drawn(lambda axes: of_nodes.draw_nodes(axes, schedule, first, last, of or "processors"), ax, width, ratio=of_nodes.HEIGHT)


def wait_by_size(schedule: Schedule, *, ax: Axes | None = None, trim: str = "none", width: str | float = "column") -> Axes:
    """Draw a heat map of the mean wait and the number of jobs by size and request. The arguments are as in `wait_distribution`."""
    check_schedules([schedule])
    grid = of_groups.size_grid(schedule, schedule.measured(trim))
    return _drawn(lambda axes: of_groups.draw_size_map(axes, grid, schedule.title, of_groups.scale_of([grid])), ax, width)


def wait_by_hour(schedule: Schedule, *, trim: str = "none", width: str | float = "page") -> Figure:
    """Draw a heat map of the mean wait by weekday and hour of the submission, local time, with bars for the numbers of jobs.

    The arguments are as in `wait_distribution`. Raises WorkloadError if the log does not record its start time.
    """
    check_schedules([schedule])
    grid = of_groups.week_grid(schedule, schedule.measured(trim))
    if grid is None:
        raise WorkloadError(
            "the log does not record its start time, so the hours of submissions are unknown; add UnixStartTime to its header",
            "unknown_start_time",
        )
    return of_groups.week_map(grid, schedule.title, of_groups.scale_of([grid]), width_in_inches(width))


def estimate_use(workload: Workload, *, ax: Axes | None = None, width: str | float = "column") -> Axes:
    """Draw a histogram of the used fraction of the estimates (mualem01, Fig. 8)."""
    return _drawn(lambda axes: of_estimates.draw_use(axes, *_estimates(workload)), ax, width)


def estimates_against_runtimes(workload: Workload, *, ax: Axes | None = None, width: str | float = "column") -> Axes:
    """Draw estimates against runtimes, a point for each job (mualem01, Fig. 7)."""
    return _drawn(lambda axes: of_estimates.draw_scatter(axes, *_estimates(workload)), ax, width)


def estimate_distribution(workload: Workload, *, ax: Axes | None = None, width: str | float = "column") -> Axes:
    """Draw the cumulative distributions of runtimes and of estimates (tsafrir06, section VII)."""
    return _drawn(lambda axes: of_estimates.draw_distributions(axes, *_estimates(workload)), ax, width)


def accuracy_by_runtime(workload: Workload, *, ax: Axes | None = None, width: str | float = "column") -> Axes:
    """Draw the mean accuracy of estimates, runtime over estimate, from the shortest jobs to the longest (tsafrir06, section VII)."""
    return _drawn(lambda axes: of_estimates.draw_accuracy(axes, *_estimates(workload)), ax, width)


def sweep(
    results: Results | Sequence[CombinationMean],
    metric: str = "mean_wait",
    over: str | None = None,
    *,
    where: Mapping[str, Any] | None = None,
    level: float | None = None,
    ax: Axes | None = None,
    width: str | float = "column",
) -> Axes:
    """Draw a metric over a swept parameter: means over the seeds with bands for their confidence intervals, one line per policy.

    `results`: from `walltime.campaign.read_results` or `compare_cells`. `over`: a numeric parameter, such as `load`, or estimates such as
    f:1, f:4, f:11; by default the first that was swept. `where`: values of parameters to choose, such as one log; a line is drawn for each
    combination of the others. `level`: level of the intervals, such as 0.95. Raises PolicyError if nothing was swept, or for an unknown
    metric.
    """
    lines = chosen(_lines(results, metric, level), metric, where)
    known = swept(lines)
    if not known:
        raise PolicyError("these results do not vary a numeric parameter; draw them with walltime.figures.intervals", "no_sweep")
    axis = known[0] if over is None else over
    if axis not in known:
        raise PolicyError(f"these results do not vary {axis!r}; they vary {', '.join(known)}", "no_sweep")
    return _drawn(lambda axes: of_many.draw_sweep(axes, lines, axis), ax, width, legend=True)


def intervals(
    results: Results | Sequence[CombinationMean] | Sequence[Replications],
    metric: str = "mean_wait",
    *,
    where: Mapping[str, Any] | None = None,
    level: float | None = None,
    ax: Axes | None = None,
    width: str | float = "column",
) -> Axes:
    """Draw a metric of each combination, or of replications: a marker for the mean, and a bar for its confidence interval.

    `results`, `where`, `level`: as in `sweep`; `results` may also be a list of results of `walltime.replicate`. The axis may not begin at
    0.
    """
    lines = chosen(_lines(results, metric, level), metric, where)
    return _drawn(lambda axes: of_many.draw_intervals(axes, lines), ax, width, ratio=0.25 + 0.07 * len(lines))


def bands(results: Sequence[Replications], of: str = "wait", *, ax: Axes | None = None, width: str | float = "column") -> Axes:
    """Draw the cumulative distributions of waits or slowdowns: means over replications, with prediction bands for one more run.

    `results`: from `walltime.replicate` with `keep=walltime.comparison.curves()`. `of`: wait or slowdown. Raises PolicyError otherwise.
    """
    if of not in BANDS:
        raise PolicyError(
            f"bands can be drawn of {', '.join(BANDS)}, not of {shown(of)}; other figures show a single run", "unknown_figure"
        )
    if not results or not all(result.kept for result in results):
        raise PolicyError(
            "these replications kept no curves; make them with replicate(..., keep=walltime.comparison.curves())", "missing_curves"
        )
    k, grid, distribution = BANDS[of]
    kept = {result.scheduler.label: np.array([pair[k] for pair in result.kept]) for result in results}
    return _drawn(lambda axes: draw_bands(axes, kept, grid, distribution), ax, width, legend=True)


def panels(rows: int, columns: int, *, width: str | float = "page", height: float | None = None, **options: Any) -> tuple[Figure, Any]:
    """Return a new figure in the style of this module, and its axes from `Figure.subplots`, to draw several figures on.

    `height`: inches, by default in the usual ratio to the width of a panel. `options`: additional arguments of `Figure.subplots`.
    """
    inches = width_in_inches(width)
    with of_schedules.style():
        figure = Figure(figsize=(inches, height or inches / columns * RATIO * rows), layout="constrained")
        return figure, figure.subplots(rows, columns, **options)


BANDS: Mapping[str, tuple[int, Array, of_schedules.Distribution]] = {
    "wait": (0, WAITS, of_schedules.WAITS),
    "slowdown": (1, SLOWDOWNS, of_schedules.SLOWDOWNS),
}
"""The distributions that `bands` draws: the index among the kept curves, the values on the axis, and the axis."""
OF_SCHEDULES: Mapping[str, Callable[..., Axes]] = dict(
    zip(SCHEDULE_FIGURES, (wait_distribution, slowdown_distribution, queue_length, utilization, gantt, nodes), strict=True)
)
"""The drawing functions for `SCHEDULE_FIGURES`; those in `SINGLE` draw a single schedule."""


def save(drawn: Axes | Figure, path: str | Path) -> Path:
    """Write a figure to .pdf, .svg or .png, atomically and with reproducible bytes; returns the path. Raises OutputError."""
    figure: object = drawn.get_figure() if isinstance(drawn, Axes) else drawn
    if not isinstance(figure, Figure):
        raise PolicyError(f"{shown(drawn)} cannot be saved; pass a figure or its axes", "wrong_type")
    return write_figure(path, figure)


class _ShownAxes(Axes):
    """Axes that a notebook displays as their figure."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return the figure as PNG with twice its display size in pixels, and the display size."""
        figure = self.get_figure(root=True)
        assert figure is not None, "new axes are on a figure"
        width, height = figure.get_size_inches()
        return figure_bytes(figure, "png"), {"width": int(96 * width), "height": int(96 * height)}


def _drawn(draw: Callable[[Axes], None], ax: Axes | None, width: str | float, *, legend: bool = False, ratio: float = RATIO) -> Axes:
    inches = width_in_inches(width)
    with of_schedules.style():
        axes = ax
        if axes is None:
            size = inches, max(inches * ratio, of_schedules.LEAST)
            axes = Figure(figsize=size, layout="constrained").add_subplot(axes_class=_ShownAxes)
        draw(axes)
        handles, names = axes.get_legend_handles_labels()
        if legend and len(names) > 1 and ax is not None:
            axes.legend(loc="best", fontsize=8)
        elif legend and len(names) > 1:  # below the axes, in additional space
            figure, half = axes.get_figure(root=True), int(LETTERS * inches / 2) - 8
            assert figure is not None, "new axes are on a figure"
            letters = min(half, of_schedules.LETTERS) if half >= FEWEST and len(names) > MOST_ROWS else of_schedules.LETTERS
            short = [of_schedules.short_name(name, letters) for name in names]
            columns = of_schedules.columns_of(short, LETTERS * inches)
            figure.set_figheight(figure.get_figheight() + ROW * -(-len(names) // columns))
            figure.legend(handles, short, loc="outside lower center", ncols=columns, fontsize=8, borderaxespad=0)
        if ax is None and (own := axes.get_figure(root=True)) is not None:
            of_schedules.fit(own)
    return axes


def _measured(schedules: tuple[Schedule, ...], trim: str) -> list[Array]:
    return [s.measured(trim) for s in schedules]


def _lines(
    results: Results | Sequence[CombinationMean] | Sequence[Replications], metric: str, level: float | None
) -> Sequence[CombinationMean]:
    """Return the results as means of this metric; raises PolicyError for other objects."""
    if hasattr(results, "means"):
        return results.means([metric], level=level)
    listed: Sequence[object] = list(results) if isinstance(results, Sequence) else [results]
    means = [one for one in listed if isinstance(one, CombinationMean)]
    if listed and len(means) == len(listed):
        if level is not None and any(one.level != level for one in means):
            raise PolicyError(f"these means have intervals of {means[0].level:g}; pass level={level:g} to compare_cells", "other_level")
        return means
    of_seeds = [one for one in listed if isinstance(one, Replications)]
    if not listed or len(of_seeds) < len(listed):
        raise PolicyError(
            f"{shown(results)} cannot be drawn; pass a result of walltime.campaign.read_results, compare_cells or walltime.replicate",
            "wrong_type",
        )
    return compare_replications(of_seeds, names=[metric], level=LEVEL if level is None else level)[0]


def _estimates(workload: Workload) -> tuple[Array, Array]:
    if not isinstance(workload, Workload):
        raise WorkloadError(f"{shown(workload)} is not a workload; pass a result of walltime.read", "wrong_type")
    return np.minimum(workload.runtime, workload.requested), workload.requested
