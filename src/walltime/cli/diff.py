"""`walltime diff`: the first difference between two schedules, and the rule behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from walltime.cli import options as o
from walltime.cli.groups import Reading
from walltime.cli.output import Output, command_line, progress_bar

__all__ = ["PANEL", "diff"]

PANEL = "Simulations"
SCHEDULE = ".csv or .parquet with at least job_id, start, end, or .swf with wait times."


def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help=f"A schedule of any simulator: {SCHEDULE}", show_default=False)],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another schedule of the same jobs.", show_default=False)],
    *,
    log: Annotated[Path, o.option("--log", "Both schedule its jobs.", o.INPUT, metavar="LOG")],
    policy: Annotated[list[str] | None, o.option("--policy", "Only these are tried as an explanation; default: the usual ones.")] = None,
    dialect: Annotated[
        list[str] | None, o.option("--dialect", "Only these are tried; default: each, and each reading.", metavar="NAME")
    ] = None,
    overrun: o.OverrunOption = o.Overrun.kill,
    reading: Reading,
    figure: o.OneFigureOption = None,
    size: o.SizeOption = "",
    report: o.ReportOption = None,
    output: Output,
) -> None:
    """Find the first job on which two schedules differ, what the machine and the queue were then, and which rule explains it."""
    from walltime.schedule import read_schedule
    from walltime.simulation import diff as find

    workload, _ = reading.load(log)
    one, other = read_schedule(a), read_schedule(b)
    names = (a.name, b.name) if a.name != b.name else (str(a), str(b))
    names = names if names[0] != names[1] else ("A", "B")
    with progress_bar(None, "schedulers that may explain it", "tried") as progress:
        difference = find(one, other, workload, names=names, policies=policy, dialects=dialect, overrun=overrun.value, progress=progress)
    if figure is not None:
        from walltime.report.difference import difference_figure
        from walltime.report.figure_files import width_of, write_figure

        write_figure(difference_figure(difference, **width_of(size)), figure)
    if report is not None:
        from walltime.report.difference import difference_page
        from walltime.report.html import write_page

        write_page(difference_page(difference, command_line()), report)
    record = {"log": str(log), "sha256": workload.origin.sha256, "overrun": overrun.value} | difference.as_dict()
    output.show(record, difference.sentences(), figure=figure, report=report)
