"""Draw a schedule by node: the shares of processors, of the second resource and of memory in use over time."""

import itertools
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from walltime.errors import WorkloadError
from walltime.node_demands import demands_on, nodes_of
from walltime.report.figures import INK, LEAST, moment, style, unit_of
from walltime.schedule.schedule import Schedule
from walltime.workload import Array

COLUMNS, ROWS = 300, 400
"""Largest numbers of intervals and of rows; several nodes share a row if there are more nodes."""
HEIGHT = 0.3
"""Ratio of a panel's height to its width."""
_SHADES = ListedColormap([[1 - (1 - part) * (0.06 + 0.94 * k / 255) for part in (0.0, 0.447, 0.698)] for k in range(256)])


def resources(schedule: Schedule) -> Mapping[str, tuple[Array, Array]]:
    """Return, for each resource, the amount on each node, and the use by each entry of `schedule.slots`; int64.

    Raises WorkloadError for a schedule without individual nodes.
    """
    if schedule.slots is None or schedule.placement is None:
        raise WorkloadError(
            f"{schedule.title} assigned no nodes to jobs, which this figure draws; use a machine file with by_node = true, or slurm",
            "no_nodes",
        )
    jobs, placement = schedule.workload, schedule.placement
    nodes = nodes_of(placement.machine, placement, jobs)
    needs = demands_on(nodes, jobs, placement)
    job, node, procs, second = schedule.slots
    memory = needs.memory[job] + needs.task_memory[job] * (procs // np.maximum(needs.task[job], 1))
    limited = np.array([pool.memory for pool in placement.machine.pools])[nodes.pool]
    found = {"processors": (nodes.procs, procs), placement.machine.second: (nodes.second, second), "memory": (limited, memory)}
    return {name: (has, np.where(has[node] > 0, uses, 0)) for name, (has, uses) in found.items() if has.any()}


def nodes_figure(schedule: Schedule, begin: int, end: int, width: float = 9.2) -> Figure:
    """Draw a panel for each resource; `width`: inches. Raises the errors of `resources`."""
    names = list(resources(schedule))
    with style():
        figure = Figure(figsize=(width, max(HEIGHT * width, LEAST) * len(names)), layout="constrained")
        for axes, name in zip(np.atleast_1d(figure.subplots(len(names), 1, sharex=True)), names, strict=True):
            draw_nodes(axes, schedule, begin, end, name)
            axes.label_outer()
    return figure


def draw_nodes(axes: Axes, schedule: Schedule, begin: int, end: int, of: str = "processors") -> None:
    """Draw the use of a resource by node from `begin` to `end`, s; darker means a larger share. Raises the errors of `resources`."""
    known = resources(schedule)
    if of not in known:
        raise WorkloadError(f"the nodes have no {of!r}; draw {' or '.join(known)}", "unknown_resource")
    (has, uses), (job, node), machine = known[of], schedule.slots[:2], schedule.placement.machine  # type: ignore[index, union-attr]
    edges = np.linspace(begin, end, min(COLUMNS, max(end - begin, 1)) + 1)
    firsts = np.cumsum([0, *(pool.nodes for pool in machine.pools)])
    pools = [pool for pool, first in zip(machine.pools, firsts, strict=False) if has[first]]
    count = int((has > 0).sum())
    row = np.maximum(np.cumsum(has > 0) - 1, 0) * min(ROWS, count) // count  # nodes without the resource have no row
    total = np.bincount(row, weights=has)
    start, stop = schedule.start[job], schedule.end[job]
    inside = np.flatnonzero((start < end) & (stop > begin) & (uses > 0))
    start, stop, amount, place = start[inside], stop[inside], uses[inside], row[node[inside]]
    used = np.empty((len(total), len(edges) - 1))
    for k, (low, high) in enumerate(itertools.pairwise(edges)):
        length = np.maximum(np.minimum(stop, high) - np.maximum(start, low), 0)
        used[:, k] = np.bincount(place, weights=amount * length, minlength=len(total)) / (high - low)
    divisor, unit = unit_of(end - begin)
    image = axes.pcolormesh(
        (edges - begin) / divisor, np.arange(len(total) + 1), used / total[:, None], cmap=_SHADES, vmin=0, vmax=1, rasterized=True
    )
    bounds = np.cumsum([0, *(pool.nodes for pool in pools)]) * len(total) / count
    for bound in bounds[1:-1]:
        axes.axhline(bound, color=INK, linewidth=0.6)
    axes.set_yticks((bounds[:-1] + bounds[1:]) / 2, [f"{pool.name} ({pool.nodes:,})" for pool in pools])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(total), 0)
    axes.set_xlabel(f"{unit} since {moment(schedule, begin)}")
    axes.set_title(f"{'GPUs' if of == 'gpus' else of} in use on each node")
    bar = axes.figure.colorbar(image, ax=axes, pad=0.01, aspect=12, ticks=[0, 0.5, 1])
    bar.ax.set_yticklabels(["0", "50 %", "100 %"])
    bar.outline.set_visible(False)
