"""`walltime demo`: the main job without any file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from walltime.cli import options as o


def demo(
    out: Annotated[Path, typer.Option("--out", help="Where to write the HTML page.")] = Path("report.html"),
    jobs: Annotated[int, typer.Option("--jobs", min=2, help="Jobs to make up.")] = 10_000,
    procs: Annotated[int, typer.Option("--procs", min=1, help="Processors of the machine.")] = 128,
    load: Annotated[float, typer.Option("--load", help="Offered load, over 0 and up to 1.5.")] = 0.7,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another seed makes up another workload.")] = 1,
    as_json: o.JsonOption = False,
) -> None:
    """Replay a workload made up by the model Lublin'99 under FCFS, EASY and conservative backfilling; no files needed."""
    from walltime.cli import common
    from walltime.cli.compare import DEFAULT, as_object, print_comparison, write_page
    from walltime.report.care import cautions_of
    from walltime.workload.models import MODELS

    common.check_output(out, (".html", ".htm"))
    workload = common.make_up(MODELS["lublin99"], jobs, procs, load, seed)
    schedules = [common.run_policy(workload, name, coincident="batch", overrun="kill") for name in DEFAULT]
    spread = common.find_spread(schedules, "none")
    cautions = cautions_of(schedules, "none", spread=spread)
    write_page(out, schedules, "none", spread, seed=seed)
    if as_json:
        records = [
            common.run_record(s, "none", trace=Path(workload.origin.name), seconds_read=0.0, estimates="user", seed=seed)[0]
            for s in schedules
        ]
        common.print_json(as_object(records, [], out, cautions, spread))
        return
    print_comparison(schedules, "none", cautions, spread)
    typer.echo(f"report written to {out}")
