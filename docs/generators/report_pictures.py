"""The report of the demo, and pictures of its parts, for the page that explains them."""

import functools
import tempfile
from pathlib import Path

import numpy as np
import recipes_run
from matplotlib.figure import Figure

import walltime as wt
from walltime.comparison.demo_command import POLICIES
from walltime.comparison.heatmaps import scale_of, size_grid, size_map
from walltime.report.figure_files import figure_bytes
from walltime.report.stretch import choose_stretch
from walltime.schedule import Schedule

NAMES = ("demo-report.html", "report-waits.svg", "report-who.svg", "report-time.svg", "report-stretch.svg")


def content(name: str) -> bytes:
    """One of the files."""
    return pictures()[name]


@functools.cache
def pictures() -> dict[str, bytes]:
    """The page and its pictures by file name."""
    _, kept = recipes_run.results()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "demo.swf.gz"
        log.write_bytes(kept[log.name])
        jobs = wt.read(log)
    schedules = [wt.simulate(jobs, policy) for policy in POLICIES]
    drawn = {"waits": waits(schedules), "who": who(schedules[1]), "time": over_time(schedules), "stretch": stretch(schedules[:2])}
    return {"demo-report.html": kept["report.html"]} | {f"report-{name}.svg": figure_bytes(figure, "svg") for name, figure in drawn.items()}


def waits(schedules: list[Schedule]) -> Figure:
    """How the waits and the slowdowns are spread."""
    figure, (left, right) = wt.figures.panels(1, 2, width="page")
    wt.figures.wait_distribution(*schedules, ax=left)
    wt.figures.slowdown_distribution(*schedules, ax=right)
    return figure


def who(schedule: Schedule) -> Figure:
    """Mean wait by size and requested time."""
    grid = size_grid(schedule, np.ones(len(schedule), bool))
    return size_map(grid, schedule.title, scale_of([grid]))


def over_time(schedules: list[Schedule]) -> Figure:
    """The queue and the machine."""
    figure, (above, below) = wt.figures.panels(2, 1, width="page", height=4.2, sharex=True)
    wt.figures.queue_length(*schedules, ax=above).set_xlabel("")
    wt.figures.utilization(*schedules, ax=below).get_legend().remove()
    return figure


def stretch(schedules: list[Schedule]) -> Figure:
    """The same hours under two policies."""
    begin, end = choose_stretch(schedules, jobs=500)
    figure, axes = wt.figures.panels(len(schedules), 1, width="page", height=5.4, sharex=True)
    for schedule, part in zip(schedules, axes, strict=True):
        wt.figures.gantt(schedule, begin, end, ax=part)
    axes[0].set_xlabel("")
    return figure
