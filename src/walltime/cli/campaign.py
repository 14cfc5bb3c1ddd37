"""`walltime campaign`: many runs, described by a plan."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from walltime.cli import options as o

if TYPE_CHECKING:
    from walltime.campaign import Plan, Progress, Results, Store

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
        str | None,
        typer.Option(
            "--dask",
            metavar="ADDRESS",
            help="Run on the workers of this Dask scheduler, e.g. tcp://host:8786; or submit workers: slurm:jobs=10,cores=16, with memory, "
            "walltime, partition, account.",
        ),
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
    executor = Dask(dask, folder.folder / "workers") if dask is not None else Threads(workers)
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

    chosen, folder = _open(plan, store, run_files=False)
    found = find_status(chosen, folder)
    if as_json:
        fields = {"cells": found.cells, "done": found.done, "others": found.others, "files": found.files}
        common.print_json({"plan": str(plan), "store": str(folder.folder), **fields})
        return
    missing = found.cells - found.done
    typer.echo(f"{chosen.name}: {found.done:,} of {found.cells:,} cells are done, {missing:,} are missing; {found.files:,} files")
    if found.others:
        typer.echo(f"{found.others:,} cells of the store are not in this plan: from another plan, log or version of walltime")


def _open(plan: Path, store: Path | None, run_files: bool = True) -> tuple[Plan, Store]:
    from walltime.campaign import Store, read_plan

    chosen = read_plan(plan, run_files=run_files)
    return chosen, Store(store or chosen.store)


@contextmanager
def _bar(name: str) -> Iterator[Callable[[Progress], None]]:
    """The cells done, the jobs per second and the time left, on standard error."""
    from walltime.cli import bars

    with bars.row(name, unit="cells", patience=0) as row:

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
    page: Annotated[
        Path | None,
        typer.Option("--report", help="Write a self-contained HTML page with tables and figures here.", rich_help_panel=o.OUTPUT),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the table of all cells here: .csv or .parquet.", rich_help_panel=o.OUTPUT)
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Show the results: means with bands over the seeds, paired differences, and caveats."""
    from walltime.campaign import read_results
    from walltime.campaign.caveats import campaign_caveats, count_flurries
    from walltime.campaign.comparison import METRICS
    from walltime.cli import common
    from walltime.cli.lines import line_records, print_lines

    if out is not None:
        common.check_output(out, (".csv", ".parquet"))
    if page is not None:
        common.check_output(page, (".html", ".htm"))
    chosen, folder = _open(plan, store)
    results = read_results(chosen, folder)
    cells = results.cells
    if len(cells) < len(results.keys):
        missing = len(results.keys) - len(cells)
        common.note(f"{missing:,} of {len(results.keys):,} cells are missing; run the plan again to add them")
    base = _baseline(baseline) if baseline is not None else results.baseline
    lines = results.lines(metric or METRICS, baseline=base, by=by)
    flurries = count_flurries(chosen)
    caveats = campaign_caveats(chosen, cells, flurries)
    if page is not None:
        _write_page(page, results, metric or METRICS, base, flurries)
    if out is not None:
        common.write_rows(cells, out)
    if as_json:
        record = {"plan": str(plan), "cells": len(cells), "missing": len(results.keys) - len(cells), "baseline": base}
        common.print_json(record | {"report": page, "lines": line_records(lines), "caveats": caveats})
        return
    print_lines(chosen.varied, lines, base, by)
    for caveat in caveats:
        typer.echo(f"- {caveat}")
    if page is not None:
        typer.echo(f"report written to {page}")
    if out is not None:
        typer.echo(f"{len(cells):,} cells written to {out}")


def _write_page(path: Path, results: Results, metrics: Sequence[str], base: dict[str, Any] | None, flurries: dict[str, int]) -> None:
    """Write the HTML page, with the command line in its provenance."""
    from walltime.cli import common
    from walltime.files import whole_file
    from walltime.report.campaign import render

    content = render(results, metrics, base, common.command_line(), flurries)
    with whole_file(path) as file:
        file.write(content.encode())


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
