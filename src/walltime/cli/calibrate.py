"""`walltime calibrate`: does the simulation resemble the machine?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from walltime.cli import options as o
from walltime.cli.groups import Reading, Stretch

if TYPE_CHECKING:
    from walltime.whatif import Calibration

NeededClusterOption = Annotated[
    Path,
    typer.Option("--cluster", metavar="FILE", help="The machine and how it schedules: a file like cluster.toml.", rich_help_panel=o.RUN),
]
TodaysPolicyOption = Annotated[
    str | None,
    typer.Option("--policy", help="How the site schedules, instead of the policy of the cluster's file.", rich_help_panel=o.RUN),
]
WarmTrimOption = Annotated[
    o.Trim,
    typer.Option(
        "--trim",
        help="tsafrir06: leave out the first 1 % of the jobs to end, which met an empty machine, and those ending after the last arrival.",
        rich_help_panel=o.OUTPUT,
    ),
]


def calibrate(
    trace: o.TraceArgument,
    *,
    cluster: NeededClusterOption,
    policy: TodaysPolicyOption = None,
    overrun: o.OverrunOption = o.Overrun.kill,
    reading: Reading,
    part: Stretch,
    trim: WarmTrimOption = o.Trim.tsafrir06,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the calibration here, for walltime what-if: .json.", rich_help_panel=o.OUTPUT)
    ] = None,
    report: o.ReportOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Simulate the site's own policy, compare with the recorded waits, and say which differences can be trusted."""
    from walltime.cli import common
    from walltime.machine import read_machine
    from walltime.simulation.specification import Scheduler
    from walltime.whatif import Setting
    from walltime.whatif import calibrate as run
    from walltime.whatif.setting import NEEDED

    for path, ending in ((out, (".json",)), (report, (".html", ".htm"))):
        if path is not None:
            common.check_output(path, ending)
    machine = read_machine(cluster, NEEDED if policy is None else {})
    scheduler: Scheduler = Setting.of(machine, policy).scheduler()
    workload, _ = reading.load(trace, machine)
    workload = part.of(workload, machine)
    with common.progress_bar(len(workload), scheduler.label) as progress:
        found = run(workload, machine, policy, trim=trim.value, overrun=overrun.value, progress=progress)
    if out is not None:
        found.write(out)
    if report is not None:
        from walltime.report.calibration import write_calibration_report

        write_calibration_report(report, found, workload, settings={"command": ["walltime", *sys.argv[1:]], "overrun": overrun.value})
    if as_json:
        common.print_json(found.as_dict())
        return
    print_calibration(found)
    for what, path in (("calibration", out), ("report", report)):
        if path is not None:
            typer.echo(f"{what} written to {path}")


def print_calibration(found: Calibration) -> None:
    """Print the verdict, then the numbers behind it."""
    from walltime.cli.common import print_paragraphs, print_table, print_text
    from walltime.report import calibration as rows

    print_paragraphs(found.verdict)
    typer.echo("")
    for title, columns, lines in rows.short_tables(found):
        if lines:
            print_table(title, columns, lines)
    for hint in found.evidence.hints:
        print_text(hint, "* ")
