"""`walltime generate`: a log made up by a published workload model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from walltime.cli import options as o
from walltime.errors import OutputError, PolicyError, WorkloadError

if TYPE_CHECKING:
    from walltime.workload import Workload

FIGURE_ENDINGS = (".png", ".svg")


def generate(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="lublin99, lublin99-typeless, feitelson96, feitelson96-fs, -fl or -fsl, jann97, downey97; parameters may follow,"
            " as in downey97:size_rule=half-efficiency-knee.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Write the log here: .swf, or .swf.gz for gzip.")],
    jobs: Annotated[int, typer.Option("--jobs", help="Jobs to make up.")] = 10_000,
    procs: Annotated[int, typer.Option("--procs", help="Processors of the machine.")] = 128,
    load: Annotated[
        float | None, typer.Option("--load", help="Offered load, over 0 and up to 1.5; as the model draws it if left out.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another seed makes up another workload.")] = 0,
    estimates: Annotated[
        str | None, typer.Option("--estimates", help="Requests of the users: a model of estimates such as f:4; else the runtimes.")
    ] = None,
    compare_with: Annotated[
        Path | None, typer.Option("--compare-with", help="A real log to draw beside the made-up one.", rich_help_panel=o.OUTPUT)
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", help="Draw sizes, runtimes, arrivals and the daily cycle: .svg or .png.", rich_help_panel=o.OUTPUT),
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Make up a workload by a published model, and write it as a log in the Standard Workload Format."""
    from walltime.cli import common
    from walltime.estimates import parse_estimates
    from walltime.logs import write_swf
    from walltime.workload.models import parse_model

    _check_files(out, figure, compare_with)
    try:
        chosen = parse_model(model)
    except WorkloadError as error:  # there is no data yet: it is the call that is wrong
        raise PolicyError(str(error)) from error
    believed = parse_estimates(estimates) if estimates is not None else None
    begin = time.perf_counter()
    workload = common.make_up(chosen, jobs, procs, load, seed)
    notes = []
    if believed is not None:
        workload = _with_requests(workload, believed, seed)
        notes.append(f"; Note: requests drawn by the estimates {estimates}, seed {seed}")
    seconds = {"generate": time.perf_counter() - begin}
    begin = time.perf_counter()
    write_swf(out, workload, extra_header=notes)
    seconds["write"] = time.perf_counter() - begin
    if figure is not None:
        others = [] if compare_with is None else [common.load(compare_with)[0]]
        _draw(figure, [*others, workload], [*(other.origin.name for other in others), model])
    record = _record(workload, model=model, load=load, seed=seed, estimates=estimates, out=out, seconds=seconds)
    if figure is not None:
        record["figure"] = str(figure)
    if as_json:
        common.print_json(record)
        return
    _print(record, workload)
    typer.echo(f"log written to {out}" + (f", figure to {figure}" if figure is not None else ""))


def _check_files(out: Path, figure: Path | None, compare_with: Path | None) -> None:
    """Refuse what cannot be written before anything is drawn."""
    from walltime.cli.common import check_output

    check_output(out, (".swf", ".swf.gz"))
    if figure is not None:
        check_output(figure, FIGURE_ENDINGS)
    if compare_with is not None and figure is None:
        raise OutputError("--compare-with draws a figure; say with --figure where to write it")


def _with_requests(workload: Workload, believed: Any, seed: int) -> Workload:
    """The workload whose requests are the drawn estimates, whatever the estimate model says of the kill limit."""
    from dataclasses import replace

    drawn = workload.with_believed(believed.draw(workload, seed))
    return replace(drawn, requested=drawn.believed)


def _draw(path: Path, workloads: list[Workload], names: list[str]) -> None:
    from walltime.logs import whole_file
    from walltime.report.workloads import compare_workloads, figure_bytes

    content = figure_bytes(compare_workloads(workloads, names), path.suffix.lower().lstrip("."))
    with whole_file(path) as file:
        file.write(content)


def _record(
    w: Workload, *, model: str, load: float | None, seed: int, estimates: str | None, out: Path, seconds: dict[str, float]
) -> dict[str, Any]:
    """What `--json` prints."""
    import hashlib

    import numpy as np

    from walltime.provenance import version

    repeats = w.columns.get("preceding_job")
    regular = out.is_file()
    return {
        "model": model,
        "jobs": len(w),
        "procs": w.machine_procs,
        "load": load,
        "offered_load": None if np.isnan(w.offered_load) else w.offered_load,
        "seed": seed,
        "estimates": estimates,
        "span": int(w.submit[-1] - w.submit[0]),
        "mean_runtime": float(w.runtime.mean()),
        "median_runtime": float(np.median(w.runtime)),
        "mean_requested": float(w.requested.mean()),
        "mean_procs": float(w.procs.mean()),
        "serial_percent": float(100 * (w.procs == 1).mean()),
        "power_of_two_percent": float(100 * ((w.procs & (w.procs - 1)) == 0).mean()),
        "repeated_percent": None if repeats is None else float(100 * (repeats > 0).mean()),
        "out": str(out),
        "sha256": hashlib.sha256(out.read_bytes()).hexdigest() if regular else None,
        "seconds": seconds,
        "version": version(),
    }


def _print(record: dict[str, Any], w: Workload) -> None:
    from walltime.cli.common import print_facts
    from walltime.report import human_time

    achieved, asked = record["offered_load"], record["load"]
    facts = [
        ("processors", f"{record['procs']:,}", ""),
        (
            "offered load",
            "n/a" if achieved is None else f"{100 * achieved:.2f} %",
            "as the model draws it" if asked is None else f"{100 * asked:g} % asked for",
        ),
        (
            "span of submits",
            f"{record['span'] / 86_400:,.1f} days",
            f"{human_time(record['span'] / max(len(w) - 1, 1))} between jobs on average",
        ),
        ("mean runtime", human_time(record["mean_runtime"]), f"median {human_time(record['median_runtime'])}"),
        ("mean request", human_time(record["mean_requested"]), record["estimates"] or "the runtimes"),
        (
            "mean processors",
            f"{record['mean_procs']:.1f}",
            f"{record['serial_percent']:.0f} % serial, {record['power_of_two_percent']:.0f} % powers of two",
        ),
    ]
    if record["repeated_percent"] is not None:
        facts.append(("repetitions", f"{record['repeated_percent']:.0f} %", "of the jobs wait for an earlier run"))
    print_facts(f"{record['model']}: {len(w):,} jobs, seed {record['seed']}", facts)
    typer.echo(f"generated in {record['seconds']['generate']:.2f} s, written in {record['seconds']['write']:.2f} s")
