"""Draws the diagrams of the documentation into docs/images: `python docs/generators/diagrams.py [NAME ...]`.

Schedules are simulated by the program; boxes and arrows are drawn by hand.
"""

import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

import walltime as wt

IMAGES = Path(__file__).parents[1] / "images"
COLORS = ("#4477aa", "#ee8866", "#44aa77", "#aa4499")
GREY = "#777777"
HATCH = {"facecolor": "white", "edgecolor": GREY, "hatch": "///", "linewidth": 0.8}


def workload(runtime: Sequence[int], procs: Sequence[int], requested: Sequence[int] | None = None) -> wt.Workload:
    """Return the four jobs of an example on a machine of four processors, submitted one second after the other."""
    return wt.Workload.from_arrays(submit=[0, 1, 2, 3], runtime=runtime, procs=procs, requested=requested or runtime, machine_procs=4)


def rows_of(start: Sequence[int], end: Sequence[int], procs: Sequence[int]) -> list[list[int]]:
    """Return the processors of each job, so that no two jobs share one at a time; lower ones first."""
    given: list[list[int]] = [[] for _ in start]
    for job in np.argsort(start, kind="stable"):
        used = {row for other, rows in enumerate(given) if rows and start[other] < end[job] and start[job] < end[other] for row in rows}
        given[job] = [row for row in range(4) if row not in used][: procs[job]]
    return given


def draw_jobs(axes: Axes, start: Sequence[int], end: Sequence[int], procs: Sequence[int], planned: Sequence[int] = ()) -> None:
    """Draw a schedule: a rectangle per job and processor, with the job's number; planned jobs are hatched."""
    for job, rows in enumerate(rows_of(start, end, procs)):
        begin, width = start[job], end[job] - start[job]
        runs = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
        for run in runs:
            style = HATCH if job in planned else {"facecolor": COLORS[job], "edgecolor": "white", "linewidth": 1}
            axes.add_patch(Rectangle((begin, run[0]), width, len(run), **style))
            label = f"job {job + 1}" if width > 0.12 * max(end) else str(job + 1)
            color = "black" if job in planned else "white"
            behind = {"facecolor": "white", "edgecolor": "none", "pad": 1} if job in planned else None
            axes.text(begin + width / 2, run[0] + len(run) / 2, label, ha="center", va="center", fontsize=8, color=color, bbox=behind)
    axes.set_xlim(0, max(end) * 1.02)
    axes.set_ylim(0, 4)
    axes.set_yticks(range(5))
    axes.set_ylabel("processors")
    axes.set_xlabel("time, s")


def mark(axes: Axes, time: float, text: str, height: float = 4.15) -> None:
    """Draw a dashed line at a time, with a text above the schedule."""
    axes.axvline(time, color="black", linestyle="--", linewidth=1)
    axes.text(time, height, text, ha="center", va="bottom", fontsize=8)


def schedule_figure(policies: Sequence[str], jobs: wt.Workload) -> tuple[Figure, list[Axes], list[wt.Schedule]]:
    """Return a figure with the schedule of each policy in a panel of its own."""
    figure, panels = wt.figures.panels(1, len(policies), width="page", height=2.1)
    panels = list(np.atleast_1d(panels))
    schedules = [wt.simulate(jobs, policy) for policy in policies]
    for axes, schedule in zip(panels, schedules, strict=True):
        draw_jobs(axes, schedule.start.tolist(), schedule.end.tolist(), jobs.procs.tolist())
    return figure, panels, schedules


def backfilling() -> Figure:
    """Draw the first example under FCFS and under EASY, with the head's shadow time."""
    figure, (fcfs, easy), _ = schedule_figure(["fcfs", "easy"], workload([100, 50, 60, 200], [3, 4, 1, 1]))
    fcfs.set_title("FCFS: a processor is idle until job 2 starts", fontsize=9, pad=18)
    easy.set_title("EASY: job 3 is backfilled", fontsize=9, pad=18)
    mark(easy, 100, "shadow time of job 2")
    return figure


def extra() -> Figure:
    """Draw the second example under EASY: the head's shadow time, and a job on the extra processor."""
    jobs = workload([10, 20, 10, 100], [2, 3, 4, 1])
    figure, (easy, conservative), _ = schedule_figure(["easy", "conservative"], jobs)
    easy.set_title("EASY: job 4 takes the extra processor", fontsize=9, pad=18)
    mark(easy, 10, "shadow time")
    conservative.set_title("conservative: job 4 delays no job", fontsize=9, pad=18)
    mark(conservative, 40, "anchor point of job 4")
    return figure


def compression() -> Figure:
    """Draw the plan of conservative backfilling before and after the early end of job 1."""
    jobs = workload([40, 50, 60, 20], [3, 4, 2, 2], [100, 50, 60, 20])
    schedule = wt.simulate(jobs, "conservative")
    figure, (before, after) = wt.figures.panels(1, 2, width="page", height=2.1)
    reserved = [int(first) if first >= 0 else 0 for first in schedule.reserved_start]
    draw_jobs(
        before,
        reserved,
        [begin + length for begin, length in zip(reserved, jobs.requested.tolist(), strict=True)],
        jobs.procs.tolist(),
        (1, 2, 3),
    )
    before.set_title("plan at 3 s, by requested times", fontsize=9, pad=18)
    draw_jobs(after, schedule.start.tolist(), schedule.end.tolist(), jobs.procs.tolist(), (1, 2, 3))
    after.set_xlim(before.get_xlim())
    after.set_title("plan after compression at 40 s", fontsize=9, pad=18)
    mark(after, 40, "job 1 ends")
    for row, (old, new) in zip((0.4, 0.6, 2.4), zip(reserved[1:], schedule.start.tolist()[1:], strict=True), strict=True):
        after.annotate("", (new, row), (old, row), arrowprops={"arrowstyle": "->", "color": "black", "linewidth": 0.8})
    return figure


def box(axes: Axes, x: float, y: float, text: str, width: float = 1.7, height: float = 0.62, color: str = "#e8eef6") -> None:
    """Draw a box with a text, by its centre."""
    style = {"boxstyle": "round,pad=0.02,rounding_size=0.08", "facecolor": color, "edgecolor": GREY, "linewidth": 0.8}
    axes.add_patch(FancyBboxPatch((x - width / 2, y - height / 2), width, height, **style))
    axes.text(x, y, text, ha="center", va="center", fontsize=8)


def arrow(axes: Axes, begin: tuple[float, float], end: tuple[float, float], text: str = "", above: float = 0.12) -> None:
    """Draw an arrow with a text at its middle."""
    axes.annotate("", end, begin, arrowprops={"arrowstyle": "->", "color": GREY, "linewidth": 1})
    axes.text((begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2 + above, text, ha="center", va="bottom", fontsize=7, color="#333333")


def canvas(width: float, height: float, inches: float) -> tuple[Figure, Axes]:
    """Return a figure without axes, with coordinates from 0 to width and height."""
    figure, axes = wt.figures.panels(1, 1, width="page", height=inches)
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    return figure, axes


def job() -> Figure:
    """Draw the life of a job, from its submission to its end."""
    figure, axes = canvas(11, 2.6, 1.9)
    names = ("submitted", "eligible", "head of queue", "running", "ended")
    for number, name in enumerate(names):
        box(axes, 1 + 2.25 * number, 1.5, name)
    texts = ("hold, dependency,\nbegin time", "jobs ahead start", "reserved start", "runtime, or\nkill at limit")
    for number, text in enumerate(texts):
        arrow(axes, (1.87 + 2.25 * number, 1.5), (2.38 + 2.25 * number, 1.5))
        axes.text(2.12 + 2.25 * number, 1.95, text, ha="center", va="bottom", fontsize=7)
    axes.annotate("", (7.75, 1.15), (3.25, 1.15), arrowprops={"arrowstyle": "->", "color": COLORS[2], "connectionstyle": "arc3,rad=0.12"})
    axes.text(5.5, 0.72, "backfilled: starts ahead of the head", ha="center", va="top", fontsize=7, color=COLORS[2])
    for begin, end, height, text in ((3.25, 7.75, 0.12, "wait"), (3.25, 10, -0.12, "response")):
        axes.annotate("", (end, height), (begin, height), arrowprops={"arrowstyle": "<->", "color": GREY, "linewidth": 0.8})
        axes.text(begin - 0.1, height, text, ha="right", va="center", fontsize=7)
    axes.set_ylim(-0.35, 2.6)
    return figure


def flow() -> Figure:
    """Draw the flow of data through the packages."""
    figure, axes = canvas(11, 4, 2.6)
    top = (("log file", 1), ("logs\nJobLog", 3.2), ("workload\nWorkload", 5.4), ("engine\nOutcome", 7.6), ("schedule\nSchedule", 9.8))
    for name, x in top:
        box(axes, x, 3.1, name, 1.6, 0.7, "#f4f4f4" if x == 1 else "#e8eef6")
    for (_, x), (_, after) in itertools.pairwise(top):
        arrow(axes, (x + 0.82, 3.1), (after - 0.82, 3.1))
    below = (("policy\norders", 4.3), ("estimates\npredictors", 6.1), ("machine", 7.8))
    for name, x in below:
        box(axes, x, 1.7, name, 1.5, 0.7, "#f6efe4")
        arrow(axes, (x, 2.07), (7.2 if x < 7 else 7.6, 2.72))
    for number, name in enumerate(("metrics", "report, cli", "auditor")):
        box(axes, 9.8, 1.9 - 0.75 * number, name, 1.6, 0.55, "#e6f2e8")
    arrow(axes, (9.8, 2.72), (9.8, 2.2))
    axes.text(0.2, 1.7, "features (comparison, whatif,\nslurm, ...) use all of these", ha="left", va="center", fontsize=7)
    return figure


def sidecar() -> Figure:
    """Draw the sequence of messages in a round of the side-car."""
    figure, axes = canvas(11, 6.5, 3.9)
    lanes = {"ledger": 1.5, "side-car": 5.0, "Slurm": 9.0}
    for name, x in lanes.items():
        box(axes, x, 6.0, name)
        axes.plot([x, x], [0.1, 5.65], color=GREY, linewidth=0.8)
    steps = (
        ("ledger", "side-car", "jobs that may be short"),
        ("Slurm", "side-car", "squeue: their limits"),
        ("side-car", "Slurm", "1. restore short limits (scontrol update)"),
        ("Slurm", "side-car", "configuration, queue, reservations"),
        ("side-car", "Slurm", "2. withdraw adjustments that no longer apply"),
        ("side-car", "ledger", "3. write the intent, with the user's limit"),
        ("side-car", "Slurm", "4. set TimeMin of a waiting job"),
        ("side-car", "ledger", "5. record the effect"),
    )
    for number, (sender, receiver, text) in enumerate(steps):
        height = 5.2 - 0.66 * number
        arrow(axes, (lanes[sender], height), (lanes[receiver], height), text, 0.04)
    return figure


def uncertainty() -> Figure:
    """Draw three sources of variation of a mean wait: shaking, weeks and seeds."""
    figure, panels = wt.figures.panels(1, 3, width="page", height=2.0)

    def log(seed: int) -> wt.Workload:
        return wt.workloads.Lublin99().generate(jobs=20_000, machine_procs=128, load=0.75, seed=seed)

    jobs = log(3)
    easy = wt.simulate(jobs, "easy")
    week = jobs.submit // (7 * 86_400)
    weeks = [easy.wait[week == number].mean() / 3600 for number in np.unique(week)]
    shaken = [wt.simulate(wt.workloads.shake(jobs, 30, seed), "easy").wait.mean() / 3600 for seed in range(12)]
    seeds = [wt.simulate(log(seed), "easy").wait.mean() / 3600 for seed in range(12)]
    titles = ("12 shaken copies\nof one log", "weeks of this log", "12 other seeds\nof the model")
    for axes, values, title in zip(panels, (shaken, weeks, seeds), titles, strict=True):
        axes.plot(range(len(values)), values, "o", color=COLORS[0], markersize=4, clip_on=False)
        axes.axhline(easy.wait.mean() / 3600, color="black", linewidth=0.8, linestyle="--")
        axes.set_title(title, fontsize=9)
        axes.set_xticks([])
        axes.set_ylim(0, max([*weeks, *seeds]) * 1.05)
    panels[0].set_ylabel("mean wait, h")
    return figure


DIAGRAMS: dict[str, Callable[[], Figure]] = {
    "backfilling": backfilling,
    "extra-processors": extra,
    "compression": compression,
    "job": job,
    "data-flow": flow,
    "side-car": sidecar,
    "uncertainty": uncertainty,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or DIAGRAMS:
        wt.figures.save(DIAGRAMS[name](), IMAGES / f"{name}.svg")
