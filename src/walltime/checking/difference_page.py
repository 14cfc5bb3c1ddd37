"""The figure and the page of two schedules that differ: the use of the processors around the first difference."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from walltime.checking.difference import Difference, FirstDifference
from walltime.checking.scheduler_trials import WHAT_DIFFERS
from walltime.provenance import provenance
from walltime.report.figures import BLUE, COLOURS, KIND_EDGE, LETTERS_PER_INCH, columns_of, fit, rectangles, style, unit_of
from walltime.report.page import Drawing, Items, Page, Section, note, workload_facts
from walltime.report.stretch import assign_processors
from walltime.tables import Cell, Table
from walltime.wording import UNDEFINED, counted, human_percent

Array = np.ndarray
ITSELF = COLOURS[4]
MOST_STRIPS = 2000
SHOWN_AFTER = (600, 172_800)
"""Shortest and longest period that is shown after the difference, s."""
KEY = {"same start in both": "#C9CDD3", "another start": BLUE, "the first job that differs": ITSELF}


def difference_figure(difference: Difference, width: float = 9.2) -> Figure:
    """Draw the usage of processors in both schedules around their first difference; `width`: inches.

    The processors of a job are not part of a schedule, so the positions of jobs on the vertical axis are chosen for the drawing.
    """
    first = difference.first
    with style():
        figure = Figure(figsize=(width, 5.4), layout="constrained")
        panels = figure.subplots(2, 1, sharex=True)
        if first is not None:
            span = abs(first.starts[0] - first.starts[1]) if first.what == "start" else abs(first.ends[0] - first.ends[1])
            after = min(max(span + span // 3, SHOWN_AFTER[0]), SHOWN_AFTER[1])
            for axes, name, start, end in zip(panels, difference.names, difference.starts, difference.ends, strict=True):
                _machine(axes, difference, first, start, end, after)
                axes.set_title(name)
            divisor, unit = unit_of(after + after // 4)
            panels[1].set_xlabel(f"{unit} since the first difference, at {first.time:,} s; job {first.job} differs")
            panels[1].set_xlim(-(after // 4) / divisor, after / divisor)
            key = [Patch(facecolor=colour, edgecolor=KIND_EDGE, linewidth=0.35, label=name) for name, colour in KEY.items()]
            figure.legend(handles=key, loc="outside upper right", ncols=columns_of(list(KEY), LETTERS_PER_INCH * width))
            fit(figure)
    return figure


def _machine(axes: Axes, difference: Difference, first: FirstDifference, start: Array, end: Array, after: int) -> None:
    w, low, high = difference.workload, first.time - after // 4, first.time + after
    inside = np.flatnonzero((start < high) & (end > low) & (end > start))
    job, place, count = assign_processors(start[inside], end[inside], w.procs[inside], w.machine_procs)
    divisor, _ = unit_of(after + after // 4)
    left = (np.maximum(start[inside][job], low) - first.time) / divisor
    right = (np.minimum(end[inside][job], high) - first.time) / divisor
    moved = (difference.starts[0] != difference.starts[1])[inside][job]
    itself = (w.job_id[inside] == first.job)[job]
    shown = np.zeros(len(job), bool)
    shown[np.argsort(-(right - left) * count, kind="stable")[:MOST_STRIPS]] = True
    for mask, colour in zip((~moved & ~itself, moved & ~itself, itself), KEY.values(), strict=True):
        mine = mask & (shown | itself)
        if mine.any():
            outline = rectangles(left[mine], right[mine], place[mine], (place + count)[mine])
            axes.add_patch(PathPatch(outline, facecolor=colour, edgecolor=KIND_EDGE, linewidth=0.35))
    axes.axvline(0, color=KIND_EDGE, linewidth=1)
    axes.set_ylim(0, w.machine_procs)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    axes.set_ylabel("processors")


def difference_page(difference: Difference, command: Sequence[Any]) -> Page:
    """Return the page of `walltime diff`: the answer, the figure, the state at that instant, and the schedulers tried."""
    first = difference.first
    sentences, (rule, readings, _) = difference.sentences(), difference.rule.partition(WHAT_DIFFERS)
    share = human_percent(100 * difference.moved / max(difference.jobs, 1))
    if not rule.startswith(difference.names):  # a file keeps its name
        rule = rule[:1].upper() + rule[1:]
    rule += "; the interpretations that differ are listed below" if readings else ""
    sections = []
    picture = None
    if first is not None:
        names = f"{difference.names[0]} and {difference.names[1]}"
        alternative = f"Two panels of processors over time, {names}, which differ from {first.time:,} s on."
        picture = Drawing(difference_figure(difference), "difference", alternative)
        sections.append(
            Section("State at the first difference", [_queue(difference, first), note("The queue is in order of arrival; times in s.")])
        )
    if difference.trials:
        rows = [[one.scheduler, one.dialect, *(_fit(one.follows[k], one.jobs[k], one.whole) for k in (0, 1))] for one in difference.trials]
        columns = ["scheduler", "dialect", *(f"follows {name}" for name in difference.names)]
        words = "yes: the same schedule up to and including the first difference; in brackets, the number of jobs with the same start."
        sections.append(Section("Schedulers tried", [Table(columns, rows, texts=-1), note(words)]))
    if len(sentences) > 2 or readings:
        sections.insert(0, Section("Summary", [Items(sentences)]))
    return Page(
        kind="difference",
        title=f"{difference.names[0]} and {difference.names[1]}",
        answer=[f"{sentences[0]}.", f"{rule}."] if rule else [f"{sentences[0]}."],
        sections=sections,
        facts=workload_facts(difference.workload, difference.workload.origin.name),
        numbers=[
            ("start at another time", f"{counted(difference.moved, 'job')}, {share}"),
            ("first at", UNDEFINED if first is None else f"{first.time:,} s"),
            ("first job that differs", UNDEFINED if first is None else f"{first.job}"),
        ],
        picture=picture,
        workload=difference.workload,
        record=provenance(difference.workload, command=list(command)),
        data=difference.as_dict(),
    )


def _queue(difference: Difference, first: FirstDifference) -> Table:
    w = difference.workload
    rows = []
    numbers = first.waiting[:40]
    for number, k in zip(numbers, w.places_of(np.array(numbers, np.int64)), strict=True):
        starts = [Cell(f"{int(start[k]):,}", value=int(start[k])) for start in difference.starts]
        rows.append([str(number), f"{int(w.submit[k]):,}", f"{int(w.procs[k]):,}", f"{int(w.requested[k]):,}", *starts])
    title = f"At {first.time:,} s: {counted(first.free, 'processor')} free, {counted(len(first.running), 'job')} running; waiting jobs"
    return Table(["job", "submitted", "processors", "requested", *(f"start in {name}" for name in difference.names)], rows, title)


def _fit(follows: bool, jobs: int, whole: bool) -> str:
    return f"{'yes' if follows else 'no'} ({jobs:,}{' of all' if whole else ''})"
