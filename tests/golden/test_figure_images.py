"""Every figure at four widths, of one schedule and of many with long names, as images that were looked at.

A sheet has one column for each width. It is compared in grey blocks of 8 pixels, so that fonts of other versions make no difference, but a
legend over data, or an axis that has become a sliver, does. `WALLTIME_GOLDEN=update` draws the sheets anew; look at them before a commit.
"""

from __future__ import annotations

import functools
import io
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from PIL import Image

import walltime as wt
from tests.profiles import PROFILE
from walltime import figures
from walltime.accuracy.estimate_figures import estimates_figure
from walltime.campaign import CombinationMean
from walltime.checking.difference_page import difference_figure
from walltime.cli.main import whole_command
from walltime.comparison import curves
from walltime.explanation.page import explanation_figure
from walltime.machine import Machine, Partition, Pool
from walltime.preparation.workload_figures import compare_workloads
from walltime.schedule.elsewhere import OtherProgram
from walltime.simulation.replication import Replications

FOLDER = Path(__file__).with_name("images")
SIZES = ("ieee-column", "slide", "column", "page")
"""The columns of a sheet from the left; the default profile draws the first two."""
DPI, BLOCK, EMPTY = 60, 8, 200
MOST = 28
"""Largest difference of the mean grey of a block, of 255."""
NAME = "/home/ann/a/long/folder/my_orders_with_long_names_{}.py:SHORTEST_FIRST_BUT_STARVATION_PROOF"
ONE_SIZE = ("estimates-page", "generate")
"""Figures of a command that has no width."""


@functools.cache
def jobs() -> wt.Workload:
    """Return a generated workload with requests that are three times the runtimes."""
    generated = wt.workloads.Lublin99().generate(300, 64, 0.9, seed=5)
    return replace(generated, requested=generated.runtime * 3 + 60, planned=generated.runtime * 3 + 60)


@functools.cache
def schedule(name: str) -> wt.Schedule:
    return wt.simulate(jobs(), name)


def schedules(many: bool) -> list[wt.Schedule]:
    """Return one schedule, or 25 with long names."""
    if not many:
        return [schedule("easy")]
    return [replace(schedule(("easy", "fcfs")[k % 2]), policy=replace(OtherProgram(), program=NAME.format(k))) for k in range(25)]


@functools.cache
def replicated(name: str) -> Replications:
    return wt.replicate(lambda seed: wt.workloads.shake(jobs(), 30, seed), name, range(4), keep=curves())


def bands(many: bool) -> list[Replications]:
    """Return the replications of one policy, or of 25 with long names."""
    if not many:
        return [replicated("easy")]
    made = [replicated(("easy", "fcfs")[k % 2]) for k in range(25)]
    return [
        replace(one, scheduler=replace(one.scheduler, policy=replace(OtherProgram(), program=NAME.format(k)))) for k, one in enumerate(made)
    ]


def explained() -> Any:
    return wt.explain(schedule("easy"), int(jobs().job_id[schedule("easy").wait.argmax()]), sooner=False)


def difference(many: bool) -> Any:
    names = (NAME.format(1) + ".csv", NAME.format(2) + ".csv") if many else ("A", "B")
    columns = [schedule(name).columns() for name in ("fcfs", "easy")]
    return wt.diff(*columns, jobs(), names=names, policies=["easy"], dialects=["papers"])


def logs(many: bool) -> list[wt.Workload]:
    return [replace(jobs(), origin=replace(jobs().origin, name=NAME.format(k))) for k in range(8)] if many else [jobs()]


def on_nodes() -> wt.Schedule:
    machine = Machine((Pool("thin", 8, 4), Pool("thick", 4, 8)), (Partition("all", ("thin", "thick")),))
    return wt.simulate(jobs(), "slurm", machine=machine)


def means(many: bool) -> list[CombinationMean]:
    """Return means over a swept load of two policies, or of 25 with long names."""
    names = [NAME.format(k) for k in range(25)] if many else ["easy", "fcfs"]
    found = []
    for k, name in enumerate(names):
        for load in (0.5, 0.7, 0.9):
            mean = 3600.0 * (1 + k % 7) * load
            interval = wt.metrics.Interval(mean, 0.8 * mean, 1.2 * mean, "")
            found.append(CombinationMean({"policy": name, "load": load}, None, "mean_wait", 3, interval, 0.1, None, interval))
    return found


DRAWN: dict[str, Callable[[str, bool], Any]] = {
    "wait": lambda width, many: figures.wait_distribution(*schedules(many), width=width),
    "slowdown": lambda width, many: figures.slowdown_distribution(*schedules(many), width=width),
    "queue": lambda width, many: figures.queue_length(*schedules(many), width=width),
    "utilization": lambda width, many: figures.utilization(*schedules(many), width=width),
    "gantt": lambda width, many: figures.gantts(schedules(many)[:4], width) if many else figures.gantt(schedule("easy"), width=width),
    "nodes": lambda width, many: figures.nodes(on_nodes(), width=width),
    "wait-by-size": lambda width, many: figures.wait_by_size(schedule("fcfs"), width=width),
    "wait-by-hour": lambda width, many: figures.wait_by_hour(schedule("fcfs"), width=width),
    "estimate-use": lambda width, many: figures.estimate_use(jobs(), width=width),
    "estimates": lambda width, many: figures.estimates_against_runtimes(jobs(), width=width),
    "estimate-distribution": lambda width, many: figures.estimate_distribution(jobs(), width=width),
    "sweep": lambda width, many: figures.sweep(means(many), width=width),
    "intervals": lambda width, many: figures.intervals(means(many)[::3], width=width),
    "bands-wait": lambda width, many: figures.bands(bands(many), "wait", width=width),
    "bands-slowdown": lambda width, many: figures.bands(bands(many), "slowdown", width=width),
    "explain": lambda width, many: explanation_figure(explained(), figures.width_in_inches(width)),
    "diff": lambda width, many: difference_figure(difference(many), figures.width_in_inches(width)),
    "estimates-page": lambda _, many: estimates_figure(jobs().runtime, jobs().requested, title=NAME.format(1) if many else "KTH"),
    "generate": lambda _, many: compare_workloads(logs(many)),
    "accuracy": lambda width, many: figures.accuracy_by_runtime(jobs(), width=width),
}


def column(name: str, width: str) -> Image.Image:
    """Return the figure at a width, of one schedule above that of many, in grey."""
    drawn = []
    for many in (False, True):
        made = DRAWN[name](width, many)
        figure = made.get_figure() if isinstance(made, Axes) else made
        buffer = io.BytesIO()
        figure.savefig(buffer, dpi=DPI, format="png", facecolor="white")
        drawn.append(Image.open(buffer).convert("L"))
    whole = Image.new("L", (max(one.width for one in drawn), sum(one.height for one in drawn)), EMPTY)
    whole.paste(drawn[0], (0, 0))
    whole.paste(drawn[1], (0, drawn[0].height))
    return whole


def sheet(name: str, widths: Sequence[str]) -> Image.Image:
    """Return the columns of these widths side by side."""
    columns = [column(name, width) for width in widths]
    whole = Image.new("L", (sum(one.width for one in columns), max(one.height for one in columns)), EMPTY)
    left = 0
    for one in columns:
        whole.paste(one, (left, 0))
        left += one.width
    return whole


def blocks(image: Image.Image) -> np.ndarray:
    """Return the mean grey of each block."""
    grey = np.asarray(image, float)
    height, width = (length // BLOCK * BLOCK for length in grey.shape)
    return grey[:height, :width].reshape(height // BLOCK, BLOCK, width // BLOCK, BLOCK).mean(axis=(1, 3))


def test_figures__all_have_an_image():
    drawing = {
        name for name in figures.__all__ if getattr(getattr(figures, name), "__annotations__", {}).get("return") in ("Axes", "Figure")
    }
    names = {name for draw in DRAWN.values() for name in draw.__code__.co_names}
    assert len(drawing) > 14
    assert drawing <= names
    assert set(figures.OF_SCHEDULES) <= set(DRAWN)
    assert {f"bands-{name}" for name in figures.BANDS} <= set(DRAWN)
    assert set(ONE_SIZE) <= set(DRAWN)
    files = {file.stem for file in FOLDER.iterdir()}
    assert files == set(DRAWN)


def test_commands__draw_figures_with_an_image():
    of_commands = {"diff": "diff", "estimates": "estimates-page", "explain": "explain", "generate": "generate"}
    takes = {
        name: parameter.metavar
        for name, command in whole_command().commands.items()
        for parameter in command.params
        if "--figure" in parameter.opts
    }
    assert {name for name, value in takes.items() if value != "NAME=FILE"} == set(of_commands)
    assert set(of_commands.values()) <= set(DRAWN)


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_figure__looks_as_it_did(name):
    path, update = FOLDER / f"{name}.png", os.environ.get("WALLTIME_GOLDEN") == "update"
    widths = SIZES[:1] if name in ONE_SIZE else SIZES if update or PROFILE == "nightly" else SIZES[:1]
    found = sheet(name, widths)
    if update:
        FOLDER.mkdir(exist_ok=True)
        found.save(path, optimize=True)
    expected = Image.open(path).convert("L")
    if widths != SIZES and name not in ONE_SIZE:
        expected = expected.crop((0, 0, found.width, expected.height))
    assert abs(found.width - expected.width) < 4
    assert found.height < expected.height + 4
    whole = Image.new("L", expected.size, EMPTY)
    whole.paste(found)
    difference = np.abs(blocks(whole) - blocks(expected))
    assert difference.max() < MOST, (
        f"{name}: block {np.unravel_index(difference.argmax(), difference.shape)} differs by {difference.max():.0f}"
    )
