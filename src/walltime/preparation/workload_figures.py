"""The page of a log, and a figure that compares workloads: sizes, runtimes, interarrival times, and daily cycles."""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from walltime.errors import WorkloadError
from walltime.provenance import provenance
from walltime.report.figures import POINTS, legend, look, percent_ticks, share_axes, short_name, style, time_ticks
from walltime.report.page import Block, Drawing, Page, sections
from walltime.tables import Facts
from walltime.wording import UNDEFINED, counted, human_percent, human_time
from walltime.workload import Array, Workload

DAY = 86_400
CYCLE_SECONDS = 1800
CYCLE = DAY // CYCLE_SECONDS


def compare_workloads(workloads: Sequence[Workload], names: Sequence[str] | None = None, height: float = 6.4) -> Figure:
    """Draw distributions of job size, runtime and interarrival time, and arrivals by time of day, with a line for each workload.

    `names`: names in the legend, shortened, by default `origin.name`; `height`: inches. Hours are in the site's local time if a log records
    its start and time zone; otherwise they count from its start, and the label of the axis is different. Raises WorkloadError without
    workloads, or for one with fewer than two jobs.
    """
    if not workloads:
        raise WorkloadError("no workload to draw; pass at least one", "no_workload")
    for workload in workloads:
        if len(workload) < 2:
            raise WorkloadError(
                f"{workload.origin.name} has {counted(len(workload), 'job')}, too few to draw distributions; use a longer log",
                "too_few_jobs",
            )
    labels = [short_name(name) for name in names or [w.origin.name for w in workloads]]
    with style():
        figure = Figure(figsize=(9.2, height), layout="constrained")
        (size, runtime), (gap, day) = figure.subplots(2, 2)
        _shares(size, [w.procs for w in workloads], labels, steps=True)
        size.set_title("processors of a job at most")
        powers = [2**k for k in range(max(int(w.procs.max()) for w in workloads).bit_length())]
        size.xaxis.set_major_locator(FixedLocator(powers[:: -(-len(powers) // 9)]))  # at most nine ticks
        size.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
        _shares(runtime, [w.runtime for w in workloads], labels)
        runtime.set_title("runtime at most")
        _shares(gap, [np.diff(w.submit) for w in workloads], labels)
        gap.set_title("time between arrivals at most")
        for axes in (runtime, gap):
            time_ticks(axes)
        unknown = [name for name, w in zip(labels, workloads, strict=True) if w.origin.unix_start_time is None]
        for k, w in enumerate(workloads):
            day.stairs(100 * daily_cycle(w), np.arange(CYCLE + 1) * 24 / CYCLE, baseline=None, **(look(k) | {"linewidth": 1.6}))
        day.set_title("arrivals by hour of the day")
        day.set_xlim(0, 24)
        day.set_ylim(bottom=0)
        day.xaxis.set_major_locator(FixedLocator([0, 4, 8, 12, 16, 20, 24]))
        day.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:02.0f}:00"))
        percent_ticks(day.yaxis)
        day.set_ylabel("share of jobs, per half hour")
        if unknown:
            day.set_xlabel(f"hours since the start of {', '.join(unknown)}", loc="right")
        day.axhline(100 / CYCLE, color="#808080", linewidth=0.8, zorder=0)
        day.grid(axis="y")
        legend(figure, size, 120)
    return figure


def daily_cycle(workload: Workload) -> Array:
    """Return the share of the jobs that arrive in each half hour of the day, local time if known; float64, shape (48,)."""
    start = workload.origin.unix_start_time
    seconds = workload.submit
    if start is not None:
        days, index = np.unique((seconds + start) // DAY, return_inverse=True)
        zone = workload.origin.tzinfo()
        offsets = np.zeros(len(days), np.int64)  # from UTC, s
        for k, day in enumerate(days.tolist()):
            with suppress(OverflowError, ValueError, OSError):
                offset = datetime.fromtimestamp(day * DAY + DAY // 2, UTC).astimezone(zone).utcoffset()
                offsets[k] = offset.total_seconds() if offset is not None else 0
        seconds = seconds + start + offsets[index]
    return np.bincount(seconds % DAY // CYCLE_SECONDS, minlength=CYCLE) / len(workload)


def _shares(axes: Axes, values: Sequence[Array], names: Sequence[str], steps: bool = False) -> None:
    """Draw distribution functions over a logarithmic axis from 1; the left end is the share below 1."""
    end = max(2.0, *(float(v.max()) for v in values))
    grid = np.unique(np.concatenate([np.unique(v) for v in values])) if steps else np.geomspace(1, end, POINTS)
    draw: Callable[..., object] = axes.step if steps else axes.plot
    for k, (name, v) in enumerate(zip(names, values, strict=True)):
        share = np.searchsorted(np.sort(v), grid, side="right") / len(v)
        kind = {"where": "post"} if steps else {}
        draw(grid, 100 * share, label=name, clip_on=False, **kind, **look(k))
    share_axes(axes, end)


FIRST_SCREEN = 4.2
"""Height, in inches, of a picture of four panels that fits on the first screen and stays legible."""


def log_page(w: Workload, blocks: Iterable[Block | Facts | str], command: Sequence[str], use: float) -> Page:
    """Return the page of `walltime info`; `use`: the mean share of requests that was used, NaN if unknown."""
    load = human_percent(100 * w.offered_load)
    span = int(w.submit[-1] - w.submit[0]) if len(w) else 0
    used = UNDEFINED if math.isnan(use) else human_percent(100 * use)
    requests = "" if math.isnan(use) else f", and jobs use {used} of their requested time on average"
    dropped = sum(w.origin.dropped.values())
    lost = f"; {counted(dropped, 'record')} cannot be simulated" if dropped else ""
    answer = (
        f"{w.origin.site} has {counted(len(w), 'job')} over {human_time(span)}, on a machine of {counted(w.machine_procs, 'processor')}. "
        f"The offered load is {load}{requests}{lost}."
    )
    numbers = [("jobs", f"{len(w):,}"), ("offered load", load), ("mean use of the request", used)]
    picture = None
    if len(w) > 1:
        words = "Distributions of job sizes, runtimes and interarrival times, and arrivals by hour of the day."
        picture = Drawing(compare_workloads([w], None, FIRST_SCREEN), "jobs", words, words)
    record, kind = provenance(w, command=command), "contents of a log"
    return Page(kind, w.origin.site, [answer], list(sections(blocks)), numbers=numbers, picture=picture, workload=w, record=record)
