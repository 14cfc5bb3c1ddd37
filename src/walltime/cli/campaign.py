"""`walltime campaign`: many runs, described by a plan."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from walltime.cli import options as o

if TYPE_CHECKING:
    from walltime.campaign import Plan, Progress, Store

app = typer.Typer(
    help="Many runs: a plan in TOML, run on all cores or a Dask cluster, into a folder of Parquet files.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

PlanArgument = Annotated[Path, typer.Argument(metavar="PLAN.toml", help="The plan.")]
StoreOption = Annotated[
    Path | None, typer.Option("--store", metavar="DIR", help="The folder of the results, instead of the plan's: PLAN.results.")
]


@app.command()
def run(
    plan: PlanArgument,
    store: StoreOption = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Threads on this machine; default: one per core.")] = None,
    dask: Annotated[
        str | None, typer.Option("--dask", metavar="ADDRESS", help="Run on the workers of this Dask scheduler, e.g. tcp://host:8786.")
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Run the missing cells; it can be stopped and resumed at any time."""
    from walltime.campaign import Dask, Threads, run_campaign
    from walltime.cli import common
    from walltime.errors import PolicyError

    if workers is not None and dask is not None:
        raise PolicyError("--workers is for threads on this machine; a Dask cluster has its own. Give one of them")
    chosen, folder = _open(plan, store)
    executor = Dask(dask) if dask is not None else Threads(workers)
    if dask is not None:
        logging.disable(logging.CRITICAL)  # errors are reported in one line; Dask would add its tracebacks
    try:
        with _bar(chosen.name) as show:
            done = run_campaign(chosen, folder, executor, show)
    finally:
        if isinstance(executor, Dask):
            executor.close()
    record = {
        "plan": str(plan),
        "store": str(folder.folder),
        "cells": done.cells,
        "run": done.run,
        "found": done.cells - done.run,
        "jobs_simulated": done.jobs,
        "seconds": {"kernel": done.kernel_seconds, "processor": done.seconds},
    }
    if as_json:
        common.print_json(record)
        return
    share = f", {100 * done.kernel_seconds / done.seconds:.0f} % of their processor time in kernels" if done.run else ""
    typer.echo(f"{chosen.name}: {done.run:,} cells run, {done.cells - done.run:,} were done before; {done.jobs:,} jobs simulated{share}")
    typer.echo(f"results in {folder.folder}; show them with: walltime campaign report {plan}")


@app.command()
def status(plan: PlanArgument, store: StoreOption = None, as_json: o.JsonOption = False) -> None:
    """Show how much of the plan has been run."""
    from walltime.campaign import status as find_status
    from walltime.cli import common

    chosen, folder = _open(plan, store)
    found = find_status(chosen, folder)
    if as_json:
        fields = {"cells": found.cells, "done": found.done, "others": found.others, "files": found.files}
        common.print_json({"plan": str(plan), "store": str(folder.folder), **fields})
        return
    missing = found.cells - found.done
    typer.echo(f"{chosen.name}: {found.done:,} of {found.cells:,} cells are done, {missing:,} are missing; {found.files:,} files")
    if found.others:
        typer.echo(f"{found.others:,} cells of the store are not in this plan: from another plan, log or version of walltime")


def _open(plan: Path, store: Path | None) -> tuple[Plan, Store]:
    from walltime.campaign import Store, read_plan

    chosen = read_plan(plan)
    return chosen, Store(store or chosen.store)


@contextmanager
def _bar(name: str) -> Iterator[Callable[[Progress], None] | None]:
    """A bar on standard error with the cells done, the jobs per second and the time left; nothing without a terminal."""
    from walltime.cli import bars

    with bars.row(name, unit="cells", patience=0) as row:
        if row is None:
            yield None
            return

        def show(state: Progress) -> None:
            row.update(state.done, total=state.cells, note=f"{state.jobs_per_second / 1e6:.1f} million jobs/s" if state.run else "")

        yield show


@app.command()
def report(
    plan: PlanArgument,
    store: StoreOption = None,
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help="A measure to show, such as p90_wait; repeat it. Default: the usual ones.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="WORD=VALUE", help="Compare with this, seed by seed, e.g. policy=easy; several with commas."),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="GROUPING", help="By groups of jobs that the plan asks for: month, class or user.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the table of all cells here: .csv or .parquet.", rich_help_panel=o.OUTPUT)
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Show the results: means with bands over the seeds, paired differences, and caveats."""
    from walltime.campaign import plan_keys
    from walltime.campaign.cautions import campaign_cautions, count_flurries
    from walltime.campaign.comparison import METRICS, compare_cells
    from walltime.cli import common
    from walltime.errors import OutputError

    if out is not None:
        common.check_output(out, (".csv", ".parquet"))
    chosen, folder = _open(plan, store)
    folder.manifest()
    keys = plan_keys(chosen)
    cells = folder.table(keys)
    if not len(cells):
        raise OutputError(f"{folder.folder}: has no cell of this plan; run it with: walltime campaign run {plan}")
    if len(cells) < len(keys):
        common.note(f"{len(keys) - len(cells):,} of {len(keys):,} cells are missing; run the plan again to add them")
    groups = folder.group_table(keys) if by is not None else None
    base = _baseline(baseline) if baseline is not None else _first(chosen)
    lines = compare_cells(cells, chosen.varied, metrics=metric or METRICS, baseline=base, groups=groups, by=by)
    cautions = campaign_cautions(chosen, cells, count_flurries(chosen))
    if out is not None:
        _write(cells, out)
    if as_json:
        common.print_json({"plan": str(plan), "cells": len(cells), "baseline": base, "lines": _records(lines), "cautions": cautions})
        return
    _print_lines(chosen, lines, base, by)
    for caution in cautions:
        typer.echo(f"- {caution}")
    if out is not None:
        typer.echo(f"{len(cells):,} cells written to {out}")


def _baseline(text: str) -> dict[str, Any]:
    from walltime.campaign import DIMENSIONS
    from walltime.errors import PolicyError

    found: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        name = name.strip()
        if not equals or name not in DIMENSIONS:
            raise PolicyError(f"the baseline {part!r} is not of the form WORD=VALUE; words are {', '.join(DIMENSIONS)}")
        kind = DIMENSIONS[name].kind
        try:
            found[name] = value.strip() == "true" if kind is bool else kind(value.strip())
        except ValueError:
            raise PolicyError(f"the baseline's {name} cannot be {value!r}") from None
    return found


def _first(plan: Plan) -> dict[str, Any] | None:
    """The first policy of the plan, if it compares several."""
    policies = [choice["policy"] for axis in plan.axes for choice in axis if "policy" in choice]
    return {"policy": policies[0]} if "policy" in plan.varied else None


def _records(lines: list[Any]) -> list[dict[str, Any]]:
    records = []
    for line in lines:
        record = {**line.combination, "group": line.group, "metric": line.metric, "runs": line.runs}
        record |= {"mean": line.band.mean, "p5": line.band.low, "p95": line.band.high, "relative_spread": line.spread}
        if line.difference is not None:
            d = line.difference
            record["difference"] = {"mean": d.mean, "low": d.low, "high": d.high, "what": d.what}
        records.append(record)
    return records


def _print_lines(plan: Plan, lines: list[Any], base: dict[str, Any] | None, by: str | None) -> None:
    import math

    from walltime.cli.common import print_table
    from walltime.report import human_number

    words = [name for name in plan.varied if any(name in line.combination for line in lines)]
    columns = [*words, *([by] if by is not None else []), "runs", "mean", "5th percentile", "95th percentile", "spread"]
    if base is not None:
        columns.append(f"difference to {', '.join(str(value) for value in base.values())}")
    for metric in dict.fromkeys(line.metric for line in lines):
        rows = []
        for line in (line for line in lines if line.metric == metric):
            row = ["-" if line.combination[name] is None else str(line.combination[name]) for name in words]
            row += [line.group] if by is not None else []
            row += [str(line.runs), human_number(line.band.mean)]
            row += [human_number(line.band.low), human_number(line.band.high)] if line.runs > 1 else ["-", "-"]
            row.append(f"{100 * line.spread:.1f} %" if math.isfinite(line.spread) else "-")
            if base is not None:
                d = line.difference
                width = f" +- {human_number(d.half_width)}" if d is not None and math.isfinite(d.half_width) else ""
                row.append("" if d is None else f"{'+' if d.mean >= 0 else '-'}{human_number(abs(d.mean))}{width}")
            rows.append(row)
        print_table(metric.replace("_", " "), columns, rows)
    typer.echo("Percentiles are of single runs. A difference is the mean over pairs with the same seed, +- the half-width of its 90 %")
    typer.echo("confidence interval. The spread is the standard deviation of the runs over their mean.")


def _write(cells: Any, out: Path) -> None:
    from walltime.logs.output import whole_file

    with whole_file(out) as sink:
        if out.name.lower().endswith(".csv"):
            cells.write_csv(sink)
        else:
            cells.write_parquet(sink)
