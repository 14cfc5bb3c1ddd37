"""Every figure at four widths, of one schedule and of many with long names, as images that were looked at.

A sheet shows one figure at all widths. It is compared in grey blocks of 8 pixels, so that fonts of other versions make no difference, but a
legend over data, or an axis that has become a sliver, does. `WALLTIME_GOLDEN=update` draws the sheets anew; look at them before a commit.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from PIL import Image

import walltime as wt
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

FOLDER = Path(__file__).with_name("images")
SIZES = ("ieee-column", "column", "page", "slide")
DPI, BLOCK = 60, 8
MOST = 28
"""Largest difference of the mean grey of a block, of 255."""
NAME = "/home/ann/a/long/folder/my_orders_with_long_names_{}.py:SHORTEST_FIRST_BUT_STARVATION_PROOF"
ONE_SIZE = ("estimates-page", "generate")
"""Figures of a command that has no width."""
GENERATED = wt.workloads.Lublin99().generate(300, 64, 0.9, seed=5)
JOBS = replace(GENERATED, requested=GENERATED.runtime * 3 + 60, believed=GENERATED.runtime * 3 + 60)
EASY, FCFS = (wt.simulate(JOBS, name) for name in ("easy", "fcfs"))
MANY = [replace((EASY, FCFS)[k % 2], policy=replace(OtherProgram(), program=NAME.format(k))) for k in range(25)]
BANDS = [wt.replicate(lambda seed: wt.workloads.shake(JOBS, 30, seed), name, range(4), keep=curves()) for name in ("easy", "fcfs")]
MANY_BANDS = [
    replace(BANDS[k % 2], scheduler=replace(BANDS[k % 2].scheduler, policy=replace(OtherProgram(), program=NAME.format(k))))
    for k in range(25)
]
EXPLAINED = wt.explain(EASY, int(JOBS.job_id[EASY.wait.argmax()]), sooner=False)
DIFFERENCES = [
    wt.diff(FCFS.columns(), EASY.columns(), JOBS, names=names, policies=["easy"], dialects=["papers"])
    for names in (("A", "B"), (NAME.format(1) + ".csv", NAME.format(2) + ".csv"))
]
LOGS = [replace(JOBS, origin=replace(JOBS.origin, name=NAME.format(k))) for k in range(8)]
NODES = wt.simulate(JOBS, "slurm", machine=Machine((Pool("thin", 8, 4), Pool("thick", 4, 8)), (Partition("all", ("thin", "thick")),)))


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
    "wait": lambda width, many: figures.wait_distribution(*(MANY if many else [EASY]), width=width),
    "slowdown": lambda width, many: figures.slowdown_distribution(*(MANY if many else [EASY]), width=width),
    "queue": lambda width, many: figures.queue_length(*(MANY if many else [EASY]), width=width),
    "utilization": lambda width, many: figures.utilization(*(MANY if many else [EASY]), width=width),
    "gantt": lambda width, many: figures.gantts(MANY[:4], width) if many else figures.gantt(EASY, width=width),
    "nodes": lambda width, many: figures.nodes(NODES, width=width),
    "wait-by-size": lambda width, many: figures.wait_by_size(FCFS, width=width),
    "wait-by-hour": lambda width, many: figures.wait_by_hour(FCFS, width=width),
    "estimate-use": lambda width, many: figures.estimate_use(JOBS, width=width),
    "estimates": lambda width, many: figures.estimates_against_runtimes(JOBS, width=width),
    "estimate-distribution": lambda width, many: figures.estimate_distribution(JOBS, width=width),
    "sweep": lambda width, many: figures.sweep(means(many), width=width),
    "intervals": lambda width, many: figures.intervals(means(many)[::3], width=width),
    "bands-wait": lambda width, many: figures.bands(MANY_BANDS if many else BANDS[:1], "wait", width=width),
    "bands-slowdown": lambda width, many: figures.bands(MANY_BANDS if many else BANDS[:1], "slowdown", width=width),
    "explain": lambda width, many: explanation_figure(EXPLAINED, figures.width_in_inches(width)),
    "diff": lambda width, many: difference_figure(DIFFERENCES[many], figures.width_in_inches(width)),
    "estimates-page": lambda _, many: estimates_figure(JOBS.runtime, JOBS.requested, title=NAME.format(1) if many else "KTH"),
    "generate": lambda _, many: compare_workloads(LOGS if many else [JOBS]),
    "accuracy": lambda width, many: figures.accuracy_by_runtime(JOBS, width=width),
}


def sheet(name: str) -> Image.Image:
    """Return the figure at each width, of one schedule above that of many, in grey."""
    drawn, sizes = [], SIZES[:1] if name in ONE_SIZE else SIZES
    for many in (False, True):
        for width in sizes:
            made = DRAWN[name](width, many)
            buffer = io.BytesIO()
            (made.get_figure() if isinstance(made, Axes) else made).savefig(buffer, dpi=DPI, format="png", facecolor="white")
            drawn.append(Image.open(buffer).convert("L"))
    rows = [drawn[: len(sizes)], drawn[len(sizes) :]]
    whole = Image.new("L", (max(sum(one.width for one in row) for row in rows), sum(max(one.height for one in row) for row in rows)), 200)
    top = 0
    for row in rows:
        left = 0
        for one in row:
            whole.paste(one, (left, top))
            left += one.width
        top += max(one.height for one in row)
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
    found, path = sheet(name), FOLDER / f"{name}.png"
    if os.environ.get("WALLTIME_GOLDEN") == "update":
        FOLDER.mkdir(exist_ok=True)
        found.save(path, optimize=True)
    expected = Image.open(path).convert("L")
    assert abs(found.width - expected.width) < 4
    assert abs(found.height - expected.height) < 4
    one, other = blocks(found), blocks(expected)
    shape = tuple(map(min, one.shape, other.shape))
    difference = np.abs(one[: shape[0], : shape[1]] - other[: shape[0], : shape[1]])
    assert difference.max() < MOST, f"{name}: block {np.unravel_index(difference.argmax(), shape)} differs by {difference.max():.0f}"
