"""Options that several commands share, declared once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Overrun(StrEnum):
    """What becomes of a job that runs longer than it requested."""

    kill = "kill"
    extend = "extend"
    overrun = "overrun"


class Coincident(StrEnum):
    """How events of one instant are handled."""

    batch = "batch"
    sequential = "sequential"


class Trim(StrEnum):
    """Which jobs are measured."""

    none = "none"
    p3 = "p3"


class TooWide(StrEnum):
    """What becomes of a job that is wider than the machine."""

    drop = "drop"
    clip = "clip"
    error = "error"


class Partial(StrEnum):
    """Which records stand for a job that was interrupted."""

    summary = "summary"
    parts = "parts"


class By(StrEnum):
    """The event that says which month a job belongs to."""

    end = "end"
    start = "start"
    submit = "submit"


INPUT, RUN, OUTPUT = "The log", "The scheduler", "The result"

TraceArgument = Annotated[Path, typer.Argument(metavar="TRACE", help="A job log in Standard Workload Format, plain or gzip.")]
ProcsOption = Annotated[
    int | None, typer.Option("--procs", min=1, help="Processors of the machine, instead of the log's MaxProcs.", rich_help_panel=INPUT)
]
SkipBadLinesOption = Annotated[
    bool, typer.Option("--skip-bad-lines", help="Leave out lines that cannot be read, count and list them.", rich_help_panel=INPUT)
]
TooWideOption = Annotated[
    TooWide, typer.Option("--too-wide", help="What to do with jobs that are wider than the machine.", rich_help_panel=INPUT)
]
PartialOption = Annotated[
    Partial, typer.Option("--partial", help="For jobs that were interrupted: their summary record, or their parts.", rich_help_panel=INPUT)
]
PolicyOption = Annotated[
    str,
    typer.Option(
        "--policy",
        help="fcfs, easy, conservative, conservative-scratch, or hybrid:DEPTH with reservations for DEPTH jobs.",
        rich_help_panel=RUN,
    ),
]
PoliciesOption = Annotated[
    list[str] | None,
    typer.Option("--policy", help="As for simulate; repeat it for each policy. Default: fcfs, easy, conservative.", rich_help_panel=RUN),
]
OrderOption = Annotated[
    str, typer.Option("--order", help="Order of the queue: fcfs, sjf, wfp, or FILE.py:NAME for one of your own.", rich_help_panel=RUN)
]
BackfillOrderOption = Annotated[
    str | None,
    typer.Option("--backfill-order", help="Order in which jobs are tried for backfilling; default: --order.", rich_help_panel=RUN),
]
EstimatesOption = Annotated[
    str, typer.Option("--estimates", help="Runtimes that the scheduler believes: user, exact, or double.", rich_help_panel=RUN)
]
OverrunOption = Annotated[
    Overrun,
    typer.Option(
        "--overrun", help="Jobs that run longer than requested: kill them, extend the request, or let them run.", rich_help_panel=RUN
    ),
]
CoincidentOption = Annotated[
    Coincident,
    typer.Option("--coincident", help="Events of one instant: one pass after all of them, or one pass after each.", rich_help_panel=RUN),
]
TrimOption = Annotated[
    Trim,
    typer.Option("--trim", help="p3: leave out the first 1 % to end and those that end after the last arrival.", rich_help_panel=OUTPUT),
]
MonthlyOption = Annotated[
    bool, typer.Option("--monthly", help="A row for each calendar month as well, in the site's time zone.", rich_help_panel=OUTPUT)
]
ByOption = Annotated[By, typer.Option("--month-of", help="The event that says which month a job belongs to.", rich_help_panel=OUTPUT)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.", rich_help_panel=OUTPUT)]
ReportOption = Annotated[Path | None, typer.Option("--report", help="Also write a self-contained HTML page here.", rich_help_panel=OUTPUT)]
