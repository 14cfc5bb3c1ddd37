"""Worked examples as drawings: a few numbered jobs and their schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, MultipleLocator

from walltime.papers.results import Chart
from walltime.policy import Policy
from walltime.report.figures import KIND_COLOURS, KIND_EDGE, KIND_NAMES, style
from walltime.report.stretch import assign_processors
from walltime.schedule import Schedule
from walltime.simulation import simulate
from walltime.workload import Workload


@dataclass(frozen=True, eq=False)
class Example:
    """Some jobs and a policy; times are drawn in units of `unit` seconds."""

    title: str
    workload: Workload
    policy: Policy
    unit: int = 1
    names: Sequence[str] | None = None

    @property
    def schedule(self) -> Schedule:
        """The schedule of the jobs under the policy."""
        return simulate(self.workload, self.policy)


def example_chart(name: str, examples: Sequence[Example], caption: str) -> Chart:
    """The schedules below each other on one time axis; the unused part of an estimate is dotted."""
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
    rows = [(e.title, j, s) for e, s in zip(examples, schedules, strict=True) for j in range(len(s))]
    data: dict[str, list[object]] = {
        "example": [title for title, _, _ in rows],
        "job": [j + 1 for _, j, _ in rows],
        "start": [int(s.start[j]) for _, j, s in rows],
        "end": [int(s.end[j]) for _, j, s in rows],
        "procs": [int(s.workload.procs[j]) for _, j, s in rows],
    }
    kinds = "grey jobs started at once, orange ones after a wait, blue ones were backfilled"
    return Chart(name, figure, f"{caption} In colour: {kinds}; dotted: the unused part of a request.", data)


def _draw(axes: Axes, example: Example, schedule: Schedule) -> None:
    w, unit = example.workload, example.unit
    job, first, count = assign_processors(schedule.start, schedule.end, w.procs, w.machine_procs)
    for j, low, high in zip(job.tolist(), first.tolist(), (first + count).tolist(), strict=True):
        start, end = schedule.start[j] / unit, schedule.end[j] / unit
        kind = schedule.kind[j]
        colour = next(c for k, c in KIND_COLOURS.items() if k == kind)
        label = next(n for k, n in KIND_NAMES.items() if k == kind)
        axes.add_patch(Rectangle((start, low), end - start, high - low, facecolor=colour, edgecolor=KIND_EDGE, linewidth=0.6, label=label))
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
