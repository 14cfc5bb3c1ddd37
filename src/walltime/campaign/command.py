"""`walltime campaign`: run many simulations that a plan describes, and report their results."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from walltime.cli import options as o
from walltime.cli.command_lines import command_line
from walltime.cli.help import manual
from walltime.cli.option_groups import CommandGroup
from walltime.cli.output import Output, caveats, note, progress_row, write_rows
from walltime.errors import PolicyError
from walltime.wording import counted, human_number, printable

if TYPE_CHECKING:
    from walltime.campaign import Plan, Progress, Store

app = CommandGroup("campaign", "Run a plan of many simulations on all cores or a Dask cluster, and keep the results in Parquet files.")

PlanArgument = Annotated[Path, o.argument("The plan, a TOML file; walltime schema plan prints its keys.", "PLAN.toml")]
StoreOption = Annotated[
    Path | None,
    o.option(
        "Keep the results in this folder. Default: the plan's store, or PLAN.results.", "--store", metavar="FOLDER", callback=o.written
    ),
]


@app.command()
@manual(
    "guides/campaigns",
    ("Run a plan; the same command continues after an interruption.", "campaign run plan.toml"),
    ("Run it on four processes, with the results in another folder.", "campaign run plan.toml --dask local:workers=4 --store results"),
)
def run(
    plan: PlanArgument,
    *,
    store: StoreOption = None,
    own: o.OwnOption = None,
    workers: o.WorkersOption = None,
    retry_failed: Annotated[bool, o.option("Rerun the cells that failed in an earlier run.", "--retry-failed", group=o.RUNS)] = False,
    dask: Annotated[
        str | None,
        o.option(
            "Run on a Dask scheduler (tcp://host:8786), on processes of this machine (local:workers=4), or on workers submitted as "
            "batch jobs (slurm:jobs=10,cores=16; other settings are memory, walltime, partition and account).",
            group=o.RUNS,
            metavar="ADDRESS",
        ),
    ] = None,
    output: Output,
) -> None:
    """Run the missing simulations of a plan; after an interruption, the same command continues.

    A cell that ends with an error does not stop the others; the exit status is then 1.
    """
    from walltime.campaign import Dask, Threads, plan_keys, run_campaign, status as find_status
    from walltime.campaign.results import kept_bytes
    from walltime.comparison.cell_caveats import left_out_cells, left_out_rules, rule_sentences

    if workers is not None and dask is not None:
        raise PolicyError("--workers (threads on this machine) and --dask cannot be combined; leave one out")
    chosen, folder = _open(plan, store, run_files=True)
    for file in chosen.python_files:
        note(f"the plan runs the Python file {printable(file)}")
    if chosen.keep:
        size = human_number(kept_bytes(chosen, chosen.cells) / 1e6)
        note(f"the schedules of {counted(len(chosen.cells), 'cell')} will take about {size} MB in {folder.schedules}")
    executor = Dask(dask, folder.folder / "workers") if dask is not None else Threads(workers)
    if dask is not None:
        logging.disable(logging.CRITICAL)  # errors are reported in one line; Dask would add its tracebacks
    try:
        with progress_row(chosen.name, unit="cells", patience=0) as row:

            def show(state: Progress) -> None:
                row.update(state.done, total=state.cells, note=f"{state.jobs_per_second / 1e6:.1f} million jobs/s" if state.run else "")

            done = run_campaign(chosen, folder, executor, show, retry_failed)
    finally:
        if isinstance(executor, Dask):
            executor.close()
    state = find_status(chosen, folder) if done.failed or chosen.python_files else None
    failures, unkept = (state.failures, state.unkept) if state else ((), ())
    found = done.done - done.run
    record = {"plan": str(plan), "store": str(folder.folder), "cells": done.cells, "run": done.run, "found": found}
    record |= {"jobs_simulated": done.jobs, "failed": list(map(asdict, failures)), "seconds": {"processor": done.seconds}}
    before = f"{found:,} already done; {counted(done.jobs, 'job')} simulated"
    where = f"results in {folder.folder}; show them with: walltime campaign report {plan}"
    cells = folder.table(plan_keys(chosen))
    rules = left_out_rules(cells)
    record["left_out"] = {name: [drop.as_dict() for drop in drops] for name, drops in rules.items()}
    told = f"{chosen.name}: {counted(done.run, 'cell')} run, {before}"
    output.show(record, [*left_out_cells(cells), told, *map(str, failures), *unkept, *rule_sentences(rules), where])
    if failures:
        note(f"{counted(done.failed, 'cell')} failed; to run them again, correct the cause and add --retry-failed")
        raise typer.Exit(1)


@app.command()
@manual(
    "guides/campaigns",
    ("Show how many simulations of a plan are done.", "campaign status plan.toml"),
    ("Print the same as JSON.", "campaign status plan.toml --json"),
)
def status(plan: PlanArgument, *, store: StoreOption = None, output: Output) -> None:
    """Show how many simulations of a plan are done and missing."""
    from walltime.campaign import status as find_status

    chosen, folder = _open(plan, store)
    state = find_status(chosen, folder)
    counts = {"cells": state.cells, "done": state.done, "others": state.others, "files": state.files}
    failed = list(map(asdict, state.failures))
    missing = state.cells - state.done
    lines = [f"{chosen.name}: {state.done:,} of {state.cells:,} cells are done, {missing:,} are missing; {counted(state.files, 'file')}"]
    lines += [*map(str, state.failures), *state.unkept]
    lines += [f"campaign run runs the Python file {file}, which --own must allow" for file in map(printable, chosen.python_files)]
    if state.others:
        lines.append(f"the store also has {counted(state.others, 'cell')} from another plan, log or version of walltime")
    output.show({"plan": str(plan), "store": str(folder.folder), **counts, "failed": failed, "python_files": chosen.python_files}, lines)


def _open(plan: Path, store: Path | None, run_files: bool = False) -> tuple[Plan, Store]:
    from walltime.campaign import Store, read_plan

    chosen = read_plan(plan, run_files=run_files)
    return chosen, Store(store or chosen.store)


@app.command()
@manual(
    "guides/campaigns",
    ("Compare all schedulers of a plan with EASY, seed by seed.", "campaign report plan.toml --baseline policy=easy"),
    ("Write a page, and a table with a row for each simulation.", "campaign report plan.toml --report page.html --out cells.csv"),
)
def report(
    plan: PlanArgument,
    *,
    store: StoreOption = None,
    metric: Annotated[
        list[str] | None,
        o.option("Show this metric: mean_wait, p90_wait, ...; walltime list metrics shows all. Default: the usual metrics."),
    ] = None,
    baseline: Annotated[
        str | None,
        o.option(
            "Compare with these simulations, seed by seed, as in policy=easy or policy=easy,load=0.9. Default: the plan's first policy.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    by: Annotated[str | None, o.option("Show the results by groups of jobs, using a grouping of the plan.", metavar="GROUPS")] = None,
    pivot: Annotated[
        str | None, o.option("Show one table per metric, with a column for each value of this parameter, as in policy.", metavar="KEY")
    ] = None,
    level: o.PlanLevelOption = None,
    own: o.OwnOption = None,
    page: o.ReportOption = None,
    out: Annotated[Path | None, o.out("the table of all cells", *o.TABLE)] = None,
    output: Output,
) -> None:
    """Show the results of a plan: means with intervals over the seeds, paired differences, and caveats."""
    from walltime.campaign import read_results
    from walltime.campaign.page import failures_table
    from walltime.campaign.results import campaign_caveats, count_flurries
    from walltime.comparison.cell_caveats import left_out_cells
    from walltime.comparison.combination_means import METRICS
    from walltime.comparison.many_runs_command import line_records, line_tables
    from walltime.comparison.runs import combinations_table, pivot_tables, short_remarks

    chosen, folder = _open(plan, store)
    results = read_results(chosen, folder)
    cells, missing = results.cells, len(results.keys) - len(results.cells)
    if (left := missing - sum(one.cells for one in results.failures)) > 0:
        note(f"{left:,} of {len(results.keys):,} cells are missing; run the plan again to add them")
    base = _baseline(baseline) if baseline is not None else results.baseline
    lines = results.means(metric or METRICS, baseline=base, by=by, level=level)
    wide = pivot_tables(lines, pivot, base, by) if pivot is not None and lines else []
    flurries = count_flurries(chosen)
    sentences = campaign_caveats(chosen, cells, flurries)
    if page is not None:
        from walltime.campaign.page import campaign_page
        from walltime.report.html import write_page

        write_page(page, campaign_page(results, metric or METRICS, base, command_line(), flurries, level))
    if out is not None:
        write_rows(out, cells)
    record = {"plan": str(plan), "cells": len(cells), "missing": missing, "failed": list(map(asdict, results.failures))}
    record |= {"baseline": base, "report": page}
    record |= {"lines": line_records(lines), "caveats": sentences}
    blocks: list[Any] = [*left_out_cells(cells), *(wide or ([combinations_table(lines, base, by)] if lines else []))]
    blocks += short_remarks(lines, base) if lines and not wide else []
    blocks += [table] if (table := failures_table(results.failures)) else []
    output.show(
        record, [*blocks, *caveats(sentences)], wide or line_tables(lines, base, by), report=page, **{counted(len(cells), "cell"): out}
    )


def _baseline(text: str) -> dict[str, Any]:
    from walltime.campaign import DIMENSIONS
    from walltime.declared import DeclaredField, Field
    from walltime.specification import Variant, read_options

    words = {name: DeclaredField(name, one.kind, Field(), None) for name, one in DIMENSIONS.items()}
    return read_options(Variant(object, declared=words), text, f"the baseline {text!r}")[0]
