"""The page of replications: means with confidence intervals, paired differences, and distributions as bands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime import metrics
from walltime.comparison.cell_caveats import cell_caveats
from walltime.comparison.combination_means import METRICS, CombinationMean, compare_cells, replication_cells
from walltime.comparison.runs import answer, figures_sections, numbers_section, overview_table, three_numbers
from walltime.errors import WorkloadError
from walltime.metrics.intervals import LEVEL, shown_level
from walltime.provenance import provenance
from walltime.report.page import Drawing, Group, Page, Section
from walltime.schedule.schedule import Schedule
from walltime.simulation.replication import Replications
from walltime.wording import human_percent
from walltime.workload import Array, Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from walltime.report.figures import Distribution

WAITS = np.geomspace(1, 4e7, 260)
"""Waits (s) at which distributions are taken, up to over a year."""
SLOWDOWNS = np.geomspace(1, 4e6, 230)
"""Bounded slowdowns at which distributions are taken."""


def replicated_page(
    results: Sequence[Replications],
    workload: Workload,
    combinations: Sequence[Mapping[str, Any]] | None = None,
    *,
    trim: str = "none",
    notes: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    level: float = LEVEL,
) -> Page:
    """Return the page that compares replications of one workload, all with the same seeds; the first is the baseline.

    `workload`: the source of the replications. `combinations`: the parameters of each result, such as its policy, load and
    estimates, if they differ in more than the policy. `trim`: the same as for `replicate`. `notes`: sentences to add under "Caveats".
    `level`: the level of the intervals. `settings`: other entries of the provenance, and as `command` the command line. Distributions are
    drawn for results that kept `curves(trim)`. Raises WorkloadError without results or for different seeds.
    """
    if not results or len({tuple(result.seeds) for result in results}) > 1:
        raise WorkloadError("a report of replications needs at least one result, and the same seeds for all of them", "different_seeds")
    lines, baseline = compare_replications(results, combinations, level=level)
    seeds = list(results[0].seeds)
    labels = list(dict.fromkeys(str(line.combination["policy"]) for line in lines))
    log = workload.origin.site
    counted = f"{len(seeds)} replications" if len(seeds) > 1 else "single runs"
    record = provenance(workload, **{"policies": labels, "trim": trim, "seeds": seeds, **(settings or {})})
    about = [("log", log), ("jobs", f"{len(workload):,}"), ("processors", f"{workload.machine_procs:,}")]
    if combinations is None:
        about.append(("offered load of the log", human_percent(100 * workload.offered_load)))
    about += [("replications", f"{len(seeds):,}"), ("intervals", f"{shown_level(level)} confidence")]
    overview = [Section("All measures", [overview_table(lines, baseline)])] if combinations is None else []
    return Page(
        f"simulated waits, {counted}",
        f"{labels[0] if len(labels) == 1 else f'{len(labels)} policies'} on {log}, {counted}",
        [answer([line for line in lines if line.metric == METRICS[0]], baseline, log)],
        [*overview, *figures_sections(lines), *_distributions(results, labels), numbers_section(lines, baseline)],
        about,
        [*caveats_of_cells(results, combinations, trim, record["settings"].get("estimates")), *notes],
        three_numbers(lines, baseline),
        workload=workload,
        record=record,
    )


def compare_replications(
    results: Sequence[Replications],
    combinations: Sequence[Mapping[str, Any]] | None = None,
    names: Sequence[str] = METRICS,
    level: float = LEVEL,
) -> tuple[list[CombinationMean], dict[str, Any] | None]:
    """Return the lines of `compare_cells` for replications, and the baseline: the first policy, if there are several.

    `combinations`: the parameters of each result; by default its policy. `level`: the level of the intervals.
    """
    cells = replication_cells(results, combinations)
    words = list((combinations or [{"policy": None}])[0])
    orders = {name: cells[name].unique(maintain_order=True).to_list() for name in words if name != "load"}
    baseline = {"policy": orders["policy"][0]} if len(orders["policy"]) > 1 else None
    return compare_cells(cells, words, metrics=names, baseline=baseline, orders=orders, level=level), baseline


def caveats_of_cells(
    results: Sequence[Replications], combinations: Sequence[Mapping[str, Any]] | None, trim: str, estimates: str | None = None
) -> list[str]:
    """Return the caveats of replications, as for a campaign; `estimates`: the estimate model of all, if the combinations do not name it."""
    import polars as pl

    cells = replication_cells(results, combinations)
    words = list((combinations or [{"policy": None}])[0])
    if "estimates" not in cells.columns and estimates is not None:
        cells = cells.with_columns(estimates=pl.lit(estimates))
    return cell_caveats(cells, words, trim)


def curves(trim: str = "none") -> Callable[[Schedule], tuple[Array, Array]]:
    """Return a function for `replicate(..., keep=curves(trim))` that keeps the data of the page's distributions.

    These are the shares of measured jobs with a wait below each of `WAITS`, and with at most each of `SLOWDOWNS`; float64, percent.
    """

    def shares(schedule: Schedule) -> tuple[Array, Array]:
        mask = schedule.measured(trim)
        wait = np.sort(schedule.wait[mask])
        ratio = np.sort(metrics.bounded_slowdown(schedule.wait[mask], schedule.runtime[mask]))
        count = max(len(wait), 1)
        return 100 * np.searchsorted(wait, WAITS, "left") / count, 100 * np.searchsorted(ratio, SLOWDOWNS, "right") / count

    return shares


def draw_bands(axes: Axes, curves: Mapping[str, Array], grid: Array, of: Distribution) -> None:
    """Draw mean cumulative distributions, and the bands in which another run would lie.

    `curves`: by label, float64 percent, shape (replications, points). `grid`: the values on the horizontal axis. `of`: their name.
    """
    from walltime.report.figures import look, share_axes

    reached = [int(np.argmax((values >= 100).all(axis=0))) if (values[:, -1] >= 100).all() else len(grid) - 1 for values in curves.values()]
    end = max(reached) + 1
    lowest = 100.0
    for k, (name, values) in enumerate(curves.items()):
        low, high = metrics.ends_of_runs(values)
        axes.fill_between(grid[:end], low[:end], high[:end], color=look(k)["color"], alpha=0.25, linewidth=0)
        axes.plot(grid[:end], values.mean(axis=0)[:end], label=name, marker="o", markevery=[0], markersize=4, clip_on=False, **look(k))
        lowest = min(lowest, float(low[0]))
    share_axes(axes, grid[end - 1], of.xlabel, lowest)
    of.ticks(axes)


def _distributions(results: Sequence[Replications], labels: Sequence[str]) -> list[Section]:
    """Return the distributions of waits and slowdowns as bands over the replications."""
    if not all(result.kept for result in results) or len(labels) != len(results):
        return []
    from walltime.report import figures

    what = f"Lines: means over the replications. Bands, at each point: {metrics.range_meaning(len(results[0].kept))}."
    drawings = []
    shown = (
        ("wait", "wait less than a time", "Do not wait at all", WAITS, figures.WAITS),
        ("slowdown", "have at most a bounded slowdown", "Not slowed down", SLOWDOWNS, figures.SLOWDOWNS),
    )
    for k, (name, counted, at_left, grid, of) in enumerate(shown):
        kept = {label: np.array([pair[k] for pair in result.kept]) for label, result in zip(labels, results, strict=True)}
        with figures.panel(3.6) as (figure, axes):
            draw_bands(axes, kept, grid, of)
            if len(kept) > 1:
                figures.legend(figure, axes, 52)
        zero = ", ".join(f"{values[:, 0].mean():.0f} % under {label}" for label, values in kept.items())
        alternative = f"Bands of the share of jobs that {counted}. {at_left}: {zero}."
        drawings.append(Drawing(figure, name, alternative, f"Jobs that {counted}. {what} {at_left}: {zero}.", wide=False))
    return [Section("Distribution of waits", [Group(drawings, "pair")])]
