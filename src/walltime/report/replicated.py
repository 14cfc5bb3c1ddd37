"""The page of replications: means with confidence intervals, paired differences, and distributions as bands."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime import metrics
from walltime.campaign.caveats import cell_caveats
from walltime.campaign.comparison import METRICS, Line, compare_cells, replication_cells
from walltime.errors import WorkloadError
from walltime.files import whole_file
from walltime.provenance import provenance
from walltime.report.interactive import TABLES, scripts
from walltime.report.lines import LEVEL, answer, overview_table
from walltime.report.sections import figures_section, tables_section
from walltime.report.shell import CSS_OF_RESULTS, caveats_list, facts, figure, page
from walltime.report.tables import provenance_table, rules_table, text, unbroken
from walltime.report.text import human_percent
from walltime.schedule.schedule import Schedule
from walltime.simulation.replication import Replications
from walltime.workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = np.ndarray
WAITS = np.geomspace(1, 4e7, 260)
"""Waits (s) at which distributions are taken, up to over a year."""
SLOWDOWNS = np.geomspace(1, 4e6, 230)
"""Bounded slowdowns at which distributions are taken."""


def write_replicated_report(
    path: str | Path,
    results: Sequence[Replications],
    workload: Workload,
    *,
    combinations: Sequence[Mapping[str, Any]] | None = None,
    title: str | None = None,
    trim: str = "none",
    names: Sequence[str] = METRICS,
    notes: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """Write a page that compares replications of one workload, all with the same seeds; the first is the baseline. Returns its path.

    `workload`: the one from which the replications were drawn. `combinations`: the parameters of each result, such as its policy, load
    and estimates, if they differ in more than the policy. `trim`: as it was for `replicate`. `names`: fields of the summary. `notes`:
    sentences to add under "Caveats". `settings`: further entries of the provenance, and as `command` the command line.
    Distributions are drawn of results that kept `curves(trim)`. Raises WorkloadError without results or for different seeds,
    OutputError if the page cannot be written.
    """
    path = Path(path)
    content = render(results, workload, combinations, title=title, trim=trim, names=names, notes=notes, settings=settings)
    with whole_file(path) as file:
        file.write(content.encode())
    return path


def render(
    results: Sequence[Replications],
    workload: Workload,
    combinations: Sequence[Mapping[str, Any]] | None = None,
    *,
    title: str | None = None,
    trim: str = "none",
    names: Sequence[str] = METRICS,
    notes: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> str:
    """The page of `write_replicated_report` as a string."""
    if not results or len({tuple(result.seeds) for result in results}) > 1:
        raise WorkloadError("a report of replications needs at least one result, and the same seeds for all of them")
    lines, baseline = compare_replications(results, combinations, names)
    seeds = list(results[0].seeds)
    labels = list(dict.fromkeys(str(line.combination["policy"]) for line in lines))
    log = workload.origin.name
    counted = f"{len(seeds)} replications" if len(seeds) > 1 else "single runs"
    heading = title or f"{labels[0] if len(labels) == 1 else f'{len(labels)} policies'} on {log}, {counted}"
    chosen = {"policies": labels, "trim": trim, "seeds": seeds, **(settings or {})}
    record = provenance(workload, **chosen)
    first = [line for line in lines if line.metric == names[0]]
    about = [("log", log), ("jobs", f"{len(workload):,}"), ("processors", f"{workload.machine_procs:,}")]
    about += [("replications", f"{len(seeds):,}"), ("intervals", f"{LEVEL} confidence")]
    if combinations is None:
        about.insert(3, ("offered load of the log", human_percent(100 * workload.offered_load)))
    command, estimates = (record["settings"].get(name) for name in ("command", "estimates"))
    body = [
        f'<p class="eyebrow">walltime: what every job would have waited, {counted}</p>',
        f"<h1>{text(heading)}</h1>",
        f'<p class="answer">{unbroken(text(answer(first, baseline, log)))}</p>',
        facts(about),
        caveats_list([*caveats_of_cells(results, combinations, trim, estimates), *notes]),
    ]
    if combinations is None:
        body += ["<h2>All measures</h2>", overview_table(lines, baseline)]
    body += [
        *figures_section(lines),
        *_distributions(results, labels),
        *tables_section(lines, baseline),
        "<h2>What was dropped or changed</h2>",
        rules_table(workload),
        "<h2>Where this comes from</h2>",
        provenance_table(record),
        f"<h3>To repeat it</h3>\n<pre>{text(_line(command))}</pre>" if command else "",
        f"<details><summary>The same as JSON</summary><pre>{text(json.dumps(record, indent=2, ensure_ascii=False))}</pre></details>",
    ]
    return page(heading, body, [scripts(TABLES)], CSS_OF_RESULTS)


def compare_replications(
    results: Sequence[Replications], combinations: Sequence[Mapping[str, Any]] | None = None, names: Sequence[str] = METRICS
) -> tuple[list[Line], dict[str, Any] | None]:
    """The lines of `compare_cells` for replications, and the baseline: the first policy, if there are several.

    `combinations`: the parameters of each result; by default its policy.
    """
    cells = replication_cells(results, combinations)
    words = list((combinations or [{"policy": None}])[0])
    orders = {name: cells[name].unique(maintain_order=True).to_list() for name in words if name != "load"}
    baseline = {"policy": orders["policy"][0]} if len(orders["policy"]) > 1 else None
    return compare_cells(cells, words, metrics=names, baseline=baseline, orders=orders), baseline


def caveats_of_cells(
    results: Sequence[Replications], combinations: Sequence[Mapping[str, Any]] | None, trim: str, estimates: str | None = None
) -> list[str]:
    """The caveats of replications, as for a campaign; `estimates`: the model of all of them, if the combinations do not say."""
    import polars as pl

    cells = replication_cells(results, combinations)
    words = list((combinations or [{"policy": None}])[0])
    if "estimates" not in cells.columns and estimates is not None:
        cells = cells.with_columns(estimates=pl.lit(estimates))
    return cell_caveats(cells, words, trim)


def curves(trim: str = "none") -> Callable[[Schedule], tuple[Array, Array]]:
    """For `replicate(..., keep=curves(trim))`: what the page needs to draw distributions.

    The share of measured jobs that wait less than each of `WAITS`, and that have at most each of `SLOWDOWNS`; float64, in percent.
    """

    def shares(schedule: Schedule) -> tuple[Array, Array]:
        mask = metrics.measured(schedule.end, schedule.last_submit, trim)
        wait = np.sort(schedule.wait[mask])
        ratio = np.sort(metrics.bounded_slowdown(schedule.wait[mask], schedule.runtime[mask]))
        count = max(len(wait), 1)
        return 100 * np.searchsorted(wait, WAITS, "left") / count, 100 * np.searchsorted(ratio, SLOWDOWNS, "right") / count

    return shares


def draw_bands(axes: Axes, curves: Mapping[str, Array], grid: Array, xlabel: str) -> None:
    """Mean cumulative distributions, and bands in which a further run would lie.

    `curves`: for each label float64 percent, shape (replications, points). `grid`: where the curves were taken.
    """
    from matplotlib.ticker import MaxNLocator, NullLocator, PercentFormatter

    from walltime.report.figures import COLOURS, DASHES

    reached = [int(np.argmax((values >= 100).all(axis=0))) if (values[:, -1] >= 100).all() else len(grid) - 1 for values in curves.values()]
    end = max(reached) + 1
    lowest = 100.0
    for k, (name, values) in enumerate(curves.items()):
        look: dict[str, Any] = {"color": COLOURS[k % len(COLOURS)], "linestyle": DASHES[k % len(DASHES)]}
        low, high = metrics.ends_of_runs(values)
        axes.fill_between(grid[:end], low[:end], high[:end], color=look["color"], alpha=0.25, linewidth=0)
        axes.plot(grid[:end], values.mean(axis=0)[:end], label=name, marker="o", markevery=[0], markersize=4, clip_on=False, **look)
        lowest = min(lowest, float(low[0]))
    axes.set_xscale("log")
    axes.set_xlim(1, grid[end - 1])
    axes.set_ylim(max(10 * int((lowest - 2) // 10), 0) if lowest > 50 else 0, 100)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_formatter(PercentFormatter(decimals=0, symbol=" %"))
    axes.set_xlabel(xlabel)
    axes.set_ylabel("share of jobs")
    axes.grid()


def _distributions(results: Sequence[Replications], labels: Sequence[str]) -> list[str]:
    """The distributions of waits and slowdowns as bands over the replications."""
    if not all(result.kept for result in results) or len(labels) != len(results):
        return []
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter

    from walltime.report.figures import TIME_TICKS, style

    parts = ["<h2>How the waits are spread</h2>", '<div class="pair">']
    what = f"Lines: means over the replications; bands, at each point: {metrics.range_meaning(len(results[0].kept))}."
    for k, (prefix, said, grid, xlabel) in enumerate(
        (
            ("wait", "wait less than a time", WAITS, "wait less than"),
            ("slowdown", "have at most a bounded slowdown", SLOWDOWNS, "bounded slowdown at most"),
        )
    ):
        kept = {name: np.array([pair[k] for pair in result.kept]) for name, result in zip(labels, results, strict=True)}
        with style():
            drawn = Figure(figsize=(4.9, 3.6), layout="constrained")
            axes = drawn.subplots()
            draw_bands(axes, kept, grid, xlabel)
            if prefix == "wait":
                ticks = [t for t in TIME_TICKS if t <= axes.get_xlim()[1]]
                axes.xaxis.set_major_locator(FixedLocator(ticks))
                axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: TIME_TICKS.get(round(x), "")))
            else:
                axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
            if len(kept) > 1:
                columns = len(kept) if sum(len(name) + 8 for name in kept) <= 52 else 1
                drawn.legend(*axes.get_legend_handles_labels(), loc="outside upper right", ncols=columns, borderaxespad=0)
        at = ", ".join(f"{values[:, 0].mean():.0f} % under {name}" for name, values in kept.items())
        zero = f"Do not wait at all: {at}." if prefix == "wait" else f"Not slowed down: {at}."
        parts.append(
            figure(drawn, prefix, f"Bands of the share of jobs that {said}. {zero}", f"Jobs that {said}. {what} {zero}", wide=False)
        )
    return [*parts, "</div>"]


def _line(command: Any) -> str:
    import shlex

    return command if isinstance(command, str) else shlex.join(map(str, command))
