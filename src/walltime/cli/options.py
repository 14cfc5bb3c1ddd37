"""Options shared by several commands."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from walltime.policy import Dialect


class Overrun(StrEnum):
    """Rule for jobs that run longer than requested."""

    kill = "kill"
    extend = "extend"
    overrun = "overrun"


class Coincident(StrEnum):
    """How simultaneous events are handled."""

    batch = "batch"
    sequential = "sequential"


class Trim(StrEnum):
    """Which jobs are measured."""

    none = "none"
    tsafrir06 = "tsafrir06"


class TooWide(StrEnum):
    """Rule for jobs wider than the machine."""

    drop = "drop"
    clip = "clip"
    error = "error"


class Partial(StrEnum):
    """Which records represent an interrupted job."""

    summary = "summary"
    parts = "parts"


class By(StrEnum):
    """The event that determines a job's month."""

    end = "end"
    start = "start"
    submit = "submit"


class ScaleBy(StrEnum):
    """How the load is scaled."""

    interarrival = "interarrival"
    runtime = "runtime"
    machine = "machine"
    size = "size"
    thin = "thin"
    users = "users"


INPUT, VARY, RUN, OUTPUT = "The log", "Varying it", "The scheduler", "The result"

MOST = 2**40
"""Upper bound of processors and jobs."""

TraceArgument = Annotated[Path, typer.Argument(metavar="TRACE", help="A job log, plain or gzip, or the name of one in the catalogue.")]
ProcsOption = Annotated[
    int | None,
    typer.Option("--procs", min=1, max=MOST, help="Processors of the machine, instead of the log's MaxProcs.", rich_help_panel=INPUT),
]
SkipBadLinesOption = Annotated[
    bool, typer.Option("--skip-bad-lines", help="Skip lines that cannot be read; count and list them.", rich_help_panel=INPUT)
]
TimeZoneOption = Annotated[
    str | None,
    typer.Option(
        "--time-zone",
        metavar="ZONE",
        help="Zone of the site, such as Europe/Stockholm, for a log that does not say it.",
        rich_help_panel=INPUT,
    ),
]
MappingOption = Annotated[
    Path | None,
    typer.Option(
        "--mapping", metavar="FILE", help="For CSV and Parquet: a TOML file that says what the columns mean.", rich_help_panel=INPUT
    ),
]
AnonymiseOption = Annotated[
    str | None,
    typer.Option(
        "--anonymise",
        metavar="KEY",
        help="Replace users, accounts and job names by numbers that depend on this key: @FILE, env:NAME, or the key itself.",
        rich_help_panel=INPUT,
    ),
]
TooWideOption = Annotated[
    TooWide, typer.Option("--too-wide", help="What to do with jobs that are wider than the machine.", rich_help_panel=INPUT)
]
PartialOption = Annotated[
    Partial, typer.Option("--partial", help="For jobs that were interrupted: their summary record, or their parts.", rich_help_panel=INPUT)
]
LoadsOption = Annotated[
    list[float] | None,
    typer.Option(
        "--load", help="Scale the log to this offered load, over 0 and up to 1.5; repeat it to compare loads.", rich_help_panel=VARY
    ),
]
ScaleByOption = Annotated[ScaleBy, typer.Option("--scale-by", help="How to scale the load.", rich_help_panel=VARY)]
RemoveOption = Annotated[
    list[str] | None,
    typer.Option(
        "--remove", metavar="FILTER", help="Remove the jobs that match a filter, e.g. 'user=21 and job<16208'.", rich_help_panel=VARY
    ),
]
HeadOption = Annotated[int | None, typer.Option("--head", min=1, help="Only the first jobs.", rich_help_panel=VARY)]
TailOption = Annotated[int | None, typer.Option("--tail", min=1, help="Only the last jobs.", rich_help_panel=VARY)]
WindowOption = Annotated[
    str | None,
    typer.Option(
        "--window", metavar="BEGIN:END", help="Only jobs submitted in this span, s or with m, h, d, w, e.g. 30d:60d.", rich_help_panel=VARY
    ),
]
ShakeOption = Annotated[
    int, typer.Option("--shake", min=0, metavar="SECONDS", help="Move each submission at random by up to this time.", rich_help_panel=VARY)
]
ReplicationsOption = Annotated[
    int,
    typer.Option(
        "--replications", min=1, help="Repeat with seeds SEED, SEED + 1, ...: shaken, or with other random estimates.", rich_help_panel=VARY
    ),
]
FeedbackOption = Annotated[
    bool,
    typer.Option(
        "--feedback",
        help="Submit a job that names a preceding job only after that one's end and the think time.",
        rich_help_panel=VARY,
    ),
]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        help="fcfs, easy, conservative, conservative-scratch, hybrid:depth=N, relaxed, selective, los, multiqueue, slack, slurm (with "
        "--cluster), or FILE.py:NAME for a custom one; "
        "with options, as in easy:backfill-order=sjf,predictor=tsafrir07. Default: that of the cluster's file, else easy.",
        rich_help_panel=RUN,
    ),
]
PoliciesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        help="A policy, spelled as for simulate: easy, hybrid:depth=N, easy:backfill-order=sjf, FILE.py:NAME; repeat it for each; 'all' "
        "for a first look at every policy, sorted by bounded slowdown. Default: "
        "fcfs, easy, conservative; with a cluster's file that has a policy, that one, fcfs, easy.",
        rich_help_panel=RUN,
    ),
]
OrderOption = Annotated[
    str,
    typer.Option(
        "--order",
        help="Order of the queue: fcfs, sjf, wfp (wfp:exponent=2,threshold=0.75), lcfs, ljf, sqf, lqf, saf, laf, lxf, unicef, f1 to f4, "
        "a score such as power:wait=1,believed=-1, or FILE.py:NAME for a custom one; sjf:starvation=86400 puts jobs first that "
        "have waited a day.",
        rich_help_panel=RUN,
    ),
]
BackfillOrderOption = Annotated[
    str | None,
    typer.Option("--backfill-order", help="Order in which jobs are tried for backfilling; default: --order.", rich_help_panel=RUN),
]
EstimatesOption = Annotated[
    str,
    typer.Option(
        "--estimates",
        help="Estimates for the scheduler: user, exact, double, f:4, badness:3, mualem01, tsafrir05, ... (see the guide on estimates).",
        rich_help_panel=RUN,
    ),
]
EstimatesListOption = Annotated[
    list[str] | None,
    typer.Option(
        "--estimates",
        help="Estimates for the scheduler: user (the default), exact, double, f:4, badness:3, mualem01, tsafrir05, ... (see the guide on "
        "estimates); repeat it to compare them.",
        rich_help_panel=RUN,
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, max=2**63, help="Seed of all random draws.", rich_help_panel=RUN)]
PredictorOption = Annotated[
    str | None,
    typer.Option(
        "--predictor",
        metavar="NAME",
        help="Predict runtimes from jobs that have ended: tang13, tsafrir07, last, ..., with options as in walltime predict.",
        rich_help_panel=RUN,
    ),
]
BelieveOption = Annotated[
    str,
    typer.Option(
        "--believe",
        help="Where predictions are used: regular, selective (not for running jobs), none, or three bits: order, own length, running.",
        rich_help_panel=RUN,
    ),
]
CorrectionOption = Annotated[
    str,
    typer.Option(
        "--correction",
        help="New expected runtime of a job that outlives its prediction: tsafrir07, tsafrir07:elapsed, estimate, double, "
        "double:uncapped, half, none.",
        rich_help_panel=RUN,
    ),
]
HistoryOption = Annotated[
    str, typer.Option("--history", help="The predictor learns from the jobs of the simulation, or of the log.", rich_help_panel=RUN)
]
ClusterOption = Annotated[
    Path | None,
    typer.Option(
        "--cluster",
        metavar="FILE",
        help="The machine as pools, partitions, outages and limits: a file like cluster.toml, in place of --procs.",
        rich_help_panel=RUN,
    ),
]
OverrunOption = Annotated[
    Overrun,
    typer.Option(
        "--overrun", help="Jobs that run longer than requested: kill them, extend the request, or let them run.", rich_help_panel=RUN
    ),
]
CoincidentOption = Annotated[
    Coincident | None,
    typer.Option(
        "--coincident",
        help="Simultaneous events: one pass after all of them, or one pass after each. Default: that of the dialect, batch for papers.",
        rich_help_panel=RUN,
    ),
]
DialectOption = Annotated[
    str,
    typer.Option(
        "--dialect",
        metavar="NAME",
        help="How the rules are read: as in the papers, or as a published simulator reads them: pyss, predictsim, ...; "
        "papers:shadow=kept changes one reading.",
        rich_help_panel=RUN,
    ),
]
TrimOption = Annotated[
    Trim,
    typer.Option(
        "--trim",
        help="tsafrir06: exclude the first 1 % of the jobs to end, and those that end after the last arrival (tsafrir06, section II).",
        rich_help_panel=OUTPUT,
    ),
]
BatchMeansOption = Annotated[
    int | None,
    typer.Option(
        "--batch-means",
        min=1,
        metavar="JOBS",
        help="For steady-state workloads: mean response by batches of this many jobs or more, with its interval (mualem01: 3333).",
        rich_help_panel=OUTPUT,
    ),
]
MonthlyOption = Annotated[
    bool, typer.Option("--monthly", help="Also print a row for each calendar month, in the site's time zone.", rich_help_panel=OUTPUT)
]
ByOption = Annotated[By, typer.Option("--month-of", help="The event that determines a job's month.", rich_help_panel=OUTPUT)]
BreakdownOption = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="GROUPS",
        help="Who waits: a table by month, class, user (heavy, medium and light ones), users (one by one), size, length, size-length, "
        "hour, weekday, hour-of-week, queue or partition; repeat it for more. With edges of your own: size:8,64, length:1h,1d, users:20.",
        rich_help_panel=OUTPUT,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.", rich_help_panel=OUTPUT)]
FigureOption = Annotated[
    list[str] | None,
    typer.Option(
        "--figure",
        metavar="NAME=FILE",
        help="Also draw wait, slowdown, queue, utilization or gantt: .pdf, .svg or .png; a file called as its figure, as wait.pdf, "
        "needs no NAME. Repeat it.",
        rich_help_panel=OUTPUT,
    ),
]
MetricsOption = Annotated[
    Path | None, typer.Option("--metrics", metavar="FILE.prom", help="Write metrics for Prometheus here: .prom.", rich_help_panel=OUTPUT)
]
ReportOption = Annotated[Path | None, typer.Option("--report", help="Also write a self-contained HTML page here.", rich_help_panel=OUTPUT)]


def read_dialect(name: str, coincident: Coincident | None) -> Dialect:
    """The dialect of these two options; raises PolicyError if it is unknown."""
    from walltime.policy import Dialect

    return Dialect.of(name, None if coincident is None else coincident.value)
