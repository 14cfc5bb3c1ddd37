"""The figures of the page on performance, drawn at each build from the numbers stored by the benchmarks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator
from performance_tables import FILE, load

from walltime.report.figure_files import figure_bytes
from walltime.report.figures import COLOURS, DASHES, style

Numbers = dict[str, Any]
MARKERS = "os^Dvx"


def figures(file: Path = FILE) -> dict[str, bytes]:
    """SVG of each figure whose section was measured, by the name of its file."""
    numbers = load(file)
    drawn = {}
    for name, (section, draw) in FIGURES.items():
        if section in numbers and "skipped" not in numbers[section]["result"]:
            with style():
                drawn[file_name(name)] = figure_bytes(draw(numbers[section]["result"]), "svg")
    return drawn


def file_name(name: str) -> str:
    """Return the file name of a figure."""
    return f"performance-{name}.svg"


def figure(name: str, file: Path = FILE) -> str:
    """A figure as Markdown; empty if its section was not measured."""
    return f"![{ALTERNATIVE[name]}]({file_name(name)})" if file_name(name) in figures(file) else ""


def policies(result: Numbers) -> Figure:
    """Jobs per second against load, a line for each policy."""
    drawing, axes = _axes()
    by_load = sorted((w for w in result["workloads"].values() if "load" in w), key=lambda w: w["load"])
    for k, policy in enumerate(result["policies"]):
        points = [(w["load"], w["jobs_per_second"][policy] / 1e6) for w in by_load if policy in w["jobs_per_second"]]
        _line(axes, k, points, policy)
    _log_y(axes)
    axes.set_title("million jobs per second")
    axes.set_xlabel("offered load")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return drawing


def growth(result: Numbers) -> Figure:
    """Time per job against the number of jobs, a line for each load."""
    drawing, axes = _axes()
    for k, wanted in enumerate(sorted({p["load"] for p in result["points"]})):
        points = [(p["jobs"], p["seconds_per_job"] * 1e9) for p in result["points"] if p["load"] == wanted]
        _line(axes, k, points, f"load {wanted}")
    _log_x(axes)
    axes.set_ylim(bottom=0)
    axes.set_title("ns per job")
    axes.set_xlabel("jobs")
    axes.legend()
    return drawing


def depth(result: Numbers) -> Figure:
    """Time per job against the number of waiting jobs, a line for each policy."""
    drawing, axes = _axes()
    for k, policy in enumerate(dict.fromkeys(p["policy"] for p in result["points"])):
        points = [(p["depth"], p["seconds_per_job"]["median"] * 1e6) for p in result["points"] if p["policy"] == policy]
        _line(axes, k, points, policy)
    _log_x(axes)
    _log_y(axes)
    axes.set_title("microseconds per job")
    axes.set_xlabel("waiting jobs")
    axes.legend()
    return drawing


def threads(result: Numbers) -> Figure:
    """Speed-up against the number of workers, with the ideal."""
    drawing, axes = _axes()
    workers = [p["workers"] for p in result["points"]]
    _line(axes, 0, [(p["workers"], p["speedup"]) for p in result["points"]], "measured")
    axes.plot(workers, workers, color="#808080", linewidth=0.8, label="ideal")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(bottom=0)
    axes.set_title("speed-up")
    axes.set_xlabel("workers")
    axes.legend()
    return drawing


FIGURES: dict[str, tuple[str, Callable[[Numbers], Figure]]] = {
    "policies": ("throughput", policies),
    "growth": ("growth", growth),
    "depth": ("depth", depth),
    "threads": ("threads", threads),
}
ALTERNATIVE = {
    "policies": "Jobs per second against the offered load, a line for each policy",
    "growth": "Time per job against the number of jobs",
    "depth": "Time per job against the number of waiting jobs, a line for each policy",
    "threads": "Speed-up against the number of workers",
}


def _axes() -> tuple[Figure, Any]:
    drawing = Figure(figsize=(6.6, 3.4), layout="constrained")
    axes = drawing.subplots()
    axes.grid(axis="y")
    return drawing, axes


def _line(axes: Any, k: int, points: list[tuple[float, float]], label: str) -> None:
    """A line distinguished from the others by dashes and markers as well as colour."""
    x, y = zip(*points, strict=True)
    look = {"color": COLOURS[k % len(COLOURS)], "linestyle": DASHES[k % len(DASHES)], "marker": MARKERS[k % len(MARKERS)]}
    axes.plot(x, y, markersize=4, label=label, **look)


def _log_x(axes: Any) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _log_y(axes: Any) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
