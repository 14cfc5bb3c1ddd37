"""`walltime what-if`: what would a change of the machine or its settings do?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from walltime.cli import options as o
from walltime.cli.calibrate import NeededClusterOption, TodaysPolicyOption, WarmTrimOption
from walltime.cli.groups import Reading, Stretch
from walltime.errors import PolicyError

if TYPE_CHECKING:
    from walltime.whatif import WhatIf


def what_if(
    trace: o.TraceArgument,
    *,
    cluster: NeededClusterOption,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--change",
            metavar="CHANGE",
            help="What to change: SchedulerParameters+=bf_max_job_test=1000, partition.long.MaxTime=24h, pool.gpu.nodes+=4, nodes+=10%, "
            "limit.1.jobs=8, policy=easy++, load*=1.1, ...; repeat it for more.",
            rich_help_panel=o.RUN,
        ),
    ] = None,
    policy: TodaysPolicyOption = None,
    replications: Annotated[
        int,
        typer.Option(
            "--replications",
            min=0,
            help="Copies of the log with each submission moved by up to 30 s, which say how far differences scatter; 0 for none.",
            rich_help_panel=o.RUN,
        ),
    ] = 5,
    seed: o.SeedOption = 0,
    overrun: o.OverrunOption = o.Overrun.kill,
    calibration: Annotated[
        Path | None,
        typer.Option("--calibration", metavar="FILE", help="What walltime calibrate wrote; else it is made anew.", rich_help_panel=o.RUN),
    ] = None,
    reading: Reading,
    part: Stretch,
    trim: WarmTrimOption = o.Trim.tsafrir06,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write a row for each change here: .csv or .parquet.", rich_help_panel=o.OUTPUT)
    ] = None,
    report: o.ReportOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Say what changes of the machine or its settings would do: each alone and all together, against today's setting."""
    from walltime.cli import common
    from walltime.machine import read_machine
    from walltime.whatif import parse_change, read_calibration, runs
    from walltime.whatif import what_if as run
    from walltime.whatif.setting import NEEDED
    from walltime.whatif.simulations import settings_of

    if not change:
        raise PolicyError("there is nothing to change; say what with --change, such as --change 'nodes+=10%'")
    for path, endings in ((out, (".csv", ".parquet")), (report, (".html", ".htm"))):
        if path is not None:
            common.check_output(path, endings)
    changes = [parse_change(text) for text in change]
    machine = read_machine(cluster, NEEDED if policy is None else {})
    settings_of(machine, changes, policy)  # so that what is misspelled is told before the log is read
    found = None if calibration is None else read_calibration(calibration)
    workload, _ = reading.load(trace, machine)
    workload = part.of(workload, machine)
    with common.progress_bar(runs(len(changes), replications), "simulations") as progress:
        result = run(
            workload,
            machine,
            changes,
            policy=policy,
            calibration=found,
            replications=replications,
            trim=trim.value,
            overrun=overrun.value,
            seed=seed,
            progress=progress,
        )
    if out is not None:
        common.write_rows(result.table(), out)
    if report is not None:
        from walltime.report.what_if import write_what_if_report

        settings = {"command": ["walltime", *sys.argv[1:]], "overrun": overrun.value, "seed": seed}
        write_what_if_report(report, result, settings=settings)
    if as_json:
        common.print_json(result.as_dict() | {"report": report, "out": out})
        return
    print_what_if(result)
    if report is not None:
        typer.echo(f"report written to {report}")
    if out is not None:
        typer.echo(f"{len(result.effects) + 1} rows written to {out}")


def print_what_if(found: WhatIf) -> None:
    """Print what each change does, how sure that is, who it concerns, and what it costs."""
    from walltime.cli.common import print_caveats, print_table, print_text
    from walltime.report import what_if as rows

    for effect in found.effects[: len(found.changes)]:
        for line in effect.became:
            print_text(f"{effect.label}: {line}")
    for title, columns, lines in rows.tables_of(found):
        print_table(title, columns, lines)
    for line in rows.told(found):
        print_text(line)
    print_caveats(rows.all_caveats(found))
