"""`walltime diff`: the first difference between two schedules, and the rule behind it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from walltime.cli import options as o
from walltime.cli.option_groups import LogOptions
from walltime.cli.output import PageOutput, command_line, progress_bar

SCHEDULE = ".csv or .parquet with at least job_id, start, end, or .swf with wait times."


@dataclass(frozen=True)
class FigureOptions:
    """The figure."""

    figure: o.OneFigureOption = None
    size: o.SizeOption = ""


@dataclass(frozen=True)
class TrialOptions:
    """What is tried as an explanation."""

    policy: Annotated[list[str] | None, o.option("--policy", "Only these are tried as an explanation; default: the usual ones.")] = None
    dialect: Annotated[
        list[str] | None, o.option("--dialect", "Only these are tried; default: each, and each reading.", metavar="NAME")
    ] = None


def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help=f"A schedule of any simulator: {SCHEDULE}", show_default=False)],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another schedule of the same jobs.", show_default=False)],
    *,
    log: Annotated[Path, o.option("--log", "Both schedule its jobs.", o.INPUT, metavar="LOG")],
    tried: TrialOptions,
    overrun: o.OverrunOption = "kill",
    reading: LogOptions,
    drawn: FigureOptions,
    output: PageOutput,
) -> None:
    """Find the first job on which two schedules differ, what the machine and the queue were then, and which rule explains it."""
    from walltime.checking import diff as find
    from walltime.schedule import read_schedule

    workload, _ = reading.load(log)
    one, other = read_schedule(a), read_schedule(b)
    names = (a.name, b.name) if a.name != b.name else (str(a), str(b))
    names = names if names[0] != names[1] else ("A", "B")
    with progress_bar(None, "schedulers that may explain it", "tried") as progress:
        difference = find(
            one, other, workload, names=names, policies=tried.policy, dialects=tried.dialect, overrun=overrun, progress=progress
        )
    if drawn.figure is not None:
        from walltime.checking.difference_page import difference_figure
        from walltime.report.figure_files import width_of, write_figure

        write_figure(difference_figure(difference, **width_of(drawn.size)), drawn.figure)
    if output.report is not None:
        from walltime.checking.difference_page import difference_page

        output.write(difference_page(difference, command_line()))
    record = {"log": str(log), "sha256": workload.origin.sha256, "overrun": overrun} | difference.as_dict()
    output.show(record, difference.sentences(), figure=drawn.figure)
