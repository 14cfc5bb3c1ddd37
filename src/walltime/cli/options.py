"""The options that several commands share, with their complete descriptions; an option has the same meaning in every command."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from walltime.cli.completion import completion_of
from walltime.cli.help import INPUT as INPUT, JOBS as JOBS, OUTPUT as OUTPUT, RUNS as RUNS, SCHEDULER as SCHEDULER
from walltime.errors import OutputError, PolicyError
from walltime.metrics.intervals import check_level
from walltime.permission import allow
from walltime.wording import printable

if TYPE_CHECKING:
    from walltime.policy import Dialect

MOST_PROCS = 2**40
"""Upper bound on processors and jobs."""
TABLE = (".csv", ".parquet")
LOGS = (".swf", ".swf.gz", ".swf.zst", ".parquet", ".csv", ".csv.gz", ".csv.zst")
"""Formats in which commands write logs, as `walltime.logs.convert` does."""
PAGE = (".html", ".htm", ".pdf")
POLICIES = (
    "fcfs, easy, conservative, slurm (with --machine), ..., with options as in easy:backfill-order=sjf (shortest jobs "
    "first), or FILE.py:NAME for your own; walltime list policies shows all"
)
"""The valid policies, for the descriptions of options."""
ESTIMATES = "user, exact, double, f:4 (up to 4 times the runtime), mualem01, tsafrir05, ...; walltime list estimates shows all"
"""The valid estimate models, for the descriptions of options."""


def option(text: str, *names: str, group: str = OUTPUT, advanced: bool = False, **more: Any) -> Any:
    """Return the declaration of an option; its name is by default the parameter's. `advanced`: whether only --help-all shows it."""
    declared = typer.Option(*names, help=text, rich_help_panel=group, **more)
    declared.advanced = advanced
    return declared


def field(default: Any, text: str, *names: str, **more: Any) -> Any:
    """Return a dataclass field that declares an option of a group; the other arguments are as in `option`."""
    return dataclasses.field(default=default, metadata={"option": option(text, *names, **more)})


_input, _jobs, _scheduler, _runs = (partial(option, group=group) for group in (INPUT, JOBS, SCHEDULER, RUNS))


def argument(text: str, metavar: str, **more: Any) -> Any:
    """Return the declaration of an argument."""
    return typer.Argument(metavar=metavar, help=text, show_default=False, **more)


def _allow(files: list[Path] | None) -> list[Path] | None:
    for file in files or ():
        if not file.is_file():
            raise PolicyError(f"--own {printable(file)}: no such file; check its name", "missing_file")
        allow(file)
    return files


def out(what: str, *endings: str, **more: Any) -> Any:
    """Return the declaration of --out: a file with one of these extensions, which is checked before any work is done."""
    kinds = " or ".join(filter(None, [", ".join(endings[:-1]), *endings[-1:]]))
    return option(f"Write {what} to this file ({kinds}).", "--out", callback=writable(*endings), **more)


def writable(*endings: str) -> Callable[[Path | None], Path | None]:
    """Return a callback that rejects a file that cannot be written."""

    def check(path: Path | None) -> Path | None:
        if path is not None:
            check_output(path, endings)
        return path

    check.writes = True  # type: ignore[attr-defined]
    return check


def written(path: Path | None) -> Path | None:
    """Mark a folder, or a file that persists between calls, as an output and not an input of the command (callback)."""
    return path


written.writes = True  # type: ignore[attr-defined]


def check_output(path: Path, endings: tuple[str, ...]) -> None:
    """Raise OutputError, before any work is done, if a file cannot be written."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            return  # a device or a pipe
    except OSError as error:
        raise OutputError(
            f"{printable(path)}: cannot be written ({(error.strerror or str(error)).lower()}); choose another path"
        ) from error
    if not path.name.lower().endswith(endings):
        raise OutputError(f"{printable(path)}: unsupported file extension; use {', '.join(endings)}", "unknown_file_extension")
    if path.is_dir():
        raise OutputError(f"{printable(path)}: cannot be written (it is a directory); choose another path")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise OutputError(f"{printable(path)}: cannot be written (there is no folder {printable(folder)}); choose another path")


def named_figures(texts: list[str] | None) -> list[str] | None:
    """Reject figures that cannot be drawn or written (callback)."""
    if texts:
        from walltime.report.figure_files import named_file

        for _, path in map(named_file, texts):
            check_output(path, (path.suffix.lower(),))
    return texts


named_figures.writes = True  # type: ignore[attr-defined]


def known_trim(text: str) -> str:
    """Reject an unknown trim (callback)."""
    from walltime.metrics import check_trim

    return check_trim(text)


def known_width(text: str) -> str:
    """Reject an unknown width of figures (callback)."""
    if text:
        from walltime.report.figure_files import width_in_inches

        width_in_inches(text)
    return text


# ---------------------------------------------------------------------- Input

TraceArgument = Annotated[Path, argument("A job log, plain or compressed, or the name of a log that walltime fetch has downloaded.", "LOG")]
ProcsOption = Annotated[
    int | None, _input("Set the number of processors. Default: MaxProcs, else MaxNodes, of the log's header.", min=1, max=MOST_PROCS)
]
MachineOption = Annotated[
    Path | None,
    _input(
        "Read the machine and its scheduling rules from a TOML file, instead of --procs; walltime slurm cluster makes such a file.",
        "--machine",
        "--cluster",
        metavar="FILE",
    ),
]
OwnOption = Annotated[
    list[Path] | None,
    _input(
        "Allow data files, such as a machine file or a plan, to run this Python file.",
        "--own",
        advanced=True,
        metavar="FILE.py",
        callback=_allow,
    ),
]
SkipBadLinesOption = Annotated[bool, _input("Skip lines that cannot be read, count them, and list them.", advanced=True)]
JoinRunsOption = Annotated[
    bool,
    _input(
        "Join the runs of a requeued job into one job with the first submission and the last run. Default: on if the machine may "
        "preempt or lose jobs.",
        "--join-runs/--no-join-runs",
        advanced=True,
    ),
]
TimeZoneOption = Annotated[
    str | None, _input("Set the time zone of a log that does not name it, such as Europe/Stockholm.", advanced=True, metavar="ZONE")
]
MappingOption = Annotated[
    Path | None,
    _input(
        "Read a table with this mapping of its columns: a TOML file from walltime mapping, or the name of a known data set such as f-data. "
        "Or read any file with a reader: FILE.py:NAME, or a name from walltime list formats.",
        advanced=True,
        metavar="FILE",
    ),
]
ScheduleMappingOption = Annotated[
    Path | None,
    _input(
        "Read schedules without the columns job_id, start and end with this mapping: a TOML file from walltime mapping.",
        "--schedule-mapping",
        advanced=True,
        metavar="FILE",
    ),
]
AnonymiseOption = Annotated[
    str | None,
    _input(
        "Replace users, accounts, job names and reservations with numbers derived from a secret key, given as @FILE, env:NAME, or the key "
        "itself.",
        advanced=True,
        metavar="KEY",
    ),
]
TooWideOption = Annotated[
    Literal["drop", "clip", "error"],
    _input("Drop jobs wider than the machine, clip them to its size, or stop with an error.", advanced=True),
]
PartialOption = Annotated[
    Literal["summary", "parts"], _input("Read interrupted jobs from their summary record, or as separate parts.", advanced=True)
]

# ---------------------------------------------------------------------- Select and modify jobs

WindowOption = Annotated[
    str | None,
    _jobs(
        "Keep the jobs submitted in this span: days of the log as in 30d:60d, or dates as in 1997-05-01:1997-08-01.", metavar="BEGIN:END"
    ),
]
RemoveOption = Annotated[
    list[str] | None, _jobs("Remove the jobs that match a filter, such as 'user=21 and job<16208'.", advanced=True, metavar="FILTER")
]
HeadOption = Annotated[int | None, _jobs("Keep only the first N jobs.", advanced=True, min=1)]
TailOption = Annotated[int | None, _jobs("Keep only the last N jobs.", advanced=True, min=1)]
LoadOption = Annotated[float | None, _jobs("Scale the log to this offered load, above 0 and up to 1.5.")]
LoadsOption = Annotated[list[float] | None, _jobs("Scale the log to this offered load, above 0 and up to 1.5.")]
ScaleByOption = Annotated[
    Literal["interarrival", "runtime", "machine", "size", "thin", "users"],
    _jobs(
        "Reach --load by changing the times between submissions (interarrival), runtimes and requests (runtime), the machine's size "
        "(machine) or the jobs' sizes (size), by removing or repeating random jobs (thin), or by resampling users (users).",
        advanced=True,
    ),
]
ShakeOption = Annotated[int, _jobs("Shift each submission at random by up to this many seconds.", advanced=True, min=0, metavar="SECONDS")]
FeedbackOption = Annotated[
    bool, _jobs("If a job names a preceding job, submit it when that job has ended and the think time has passed.", advanced=True)
]

# ---------------------------------------------------------------------- Scheduler

PolicyOption = Annotated[str | None, _scheduler(f"Schedule by this policy: {POLICIES}. Default: the machine file's policy, else easy.")]
SitePolicyOption = Annotated[str | None, _scheduler(f"Replace the scheduling policy of the machine file: {POLICIES}.")]
ORDERS = (
    "fcfs, sjf, saf, wfp, f1, ..., with options as in wfp:exponent=2, an expression as in expr:log(wait+60)-log(area), or FILE.py:NAME "
    "for your own; walltime list orders shows all"
)
"""The valid orders, for the descriptions of options."""
OrderOption = Annotated[str, _scheduler(f"Sort the queue by this order: {ORDERS}.")]
BackfillOrderOption = Annotated[
    str | None, _scheduler("Try jobs for backfilling in this order; walltime list orders shows all. Default: --order.", advanced=True)
]
EstimateOption = Annotated[str, _scheduler(f"Give the scheduler these runtime estimates: {ESTIMATES}.", "--estimates")]
EstimatesListOption = Annotated[
    list[str] | None, _scheduler(f"Give the scheduler these runtime estimates: {ESTIMATES}. Default: user.", "--estimates")
]
PREDICTORS = (
    "tang13, tsafrir07, last, gaussier15, ..., with options as in tang13:key=user,window=all (the user's history), column:NAME "
    "or file:FILE.csv for given predictions, or FILE.py:CLASS for your own; walltime list predictors shows all"
)
"""The valid predictors, for the descriptions of options."""
PredictorOption = Annotated[
    str | None,
    _scheduler(
        f"Plan with runtimes predicted from jobs that have ended: {PREDICTORS}. Default: plan with the estimates.",
        advanced=True,
        metavar="NAME",
    ),
]
PredictionsForOption = Annotated[
    str,
    _scheduler(
        "Use predictions for all jobs (regular), only for waiting jobs (selective), or for none (none). Or give three digits, as in 110, "
        "for the queue order, the lengths of waiting jobs, and the ends of running jobs: 1 uses predictions, 0 requests.",
        advanced=True,
    ),
]
RuntimePredictorOption = Annotated[
    str | None,
    _scheduler(
        f"Draw runtimes around the predictions of this predictor: {PREDICTORS}. Default: draw them from the runtimes of similar jobs.",
        advanced=True,
        metavar="NAME",
    ),
]
CorrectionOption = Annotated[
    str,
    _scheduler(
        "Use this rule to correct the planned runtime of a job that runs longer than predicted: tsafrir07, tsafrir07:elapsed, estimate, "
        "double, double:uncapped, half, soft or none.",
        advanced=True,
    ),
]
LearnFromOption = Annotated[
    Literal["simulation", "log"],
    _scheduler("Let the predictor learn from the ends of jobs in the simulation, or in the log.", advanced=True),
]
OverrunOption = Annotated[
    Literal["kill", "extend", "continue"],
    _scheduler("Kill jobs that run longer than requested, extend their requests, or let them run on.", advanced=True),
]
SimultaneousOption = Annotated[
    Literal["batch", "sequential"] | None,
    _scheduler(
        "Run one scheduling pass after all events of the same second (batch), or one after each event (sequential). Default: the "
        "rule of the dialect, which is batch for papers.",
        "--simultaneous",
        "--coincident",
        advanced=True,
    ),
]
DialectOption = Annotated[
    str,
    _scheduler(
        "Interpret unspecified scheduling details as in the papers (papers) or as another simulator does: pyss, predictsim, ...; "
        "papers:shadow=kept changes one interpretation; walltime list dialects shows all.",
        advanced=True,
        metavar="NAME",
    ),
]

# ---------------------------------------------------------------------- Runs and randomness

SeedOption = Annotated[int, _runs("Set the seed of all random draws.", min=0, max=2**63)]
ReplicationsOption = Annotated[
    int, _runs("Repeat the simulations N times with the seeds SEED, SEED + 1, ..., which vary --shake and random estimates.", min=1)
]


def _level(percent: float | None) -> float | None:
    return None if percent is None else check_level(percent / 100)


def _level_option(default: str) -> Any:
    text = f"Set the confidence level of the intervals, in percent. Default: {default}."
    return _runs(text, "--level", min=50, max=99.999, metavar="PERCENT", callback=_level, advanced=True)


LevelOption = Annotated[float | None, _level_option("90")]
PlanLevelOption = Annotated[float | None, _level_option("the level of the plan")]
CopiesOption = Annotated[
    int, _runs("Simulate N copies of the log with submissions shifted by up to 30 s, to measure the effect of chance; 0 for none.", min=0)
]
CopyShakeOption = Annotated[
    int, _runs("Shift the submissions of the copies at random by up to this many seconds.", advanced=True, min=1, metavar="SECONDS")
]
BudgetOption = Annotated[int, _runs("Simulate N candidates.", min=1)]
OptimiserOption = Annotated[str, _runs("Find candidates with cma (requires pip install 'walltime[tune]') or at random (random).")]
StoreOption = Annotated[
    Path | None,
    option("Store the simulations in this folder, and continue from it after an interruption.", metavar="FOLDER", callback=written),
]
WorkersOption = Annotated[int | None, _runs("Use this many threads. Default: one for each core.", advanced=True, min=1)]
TrimOption = Annotated[
    str,
    _runs(
        "Measure all jobs (none), or leave some out: the first 1 % to end and all that end after the last submission (tsafrir06), or "
        "those of the first 7 days (after:7). With steady, tsafrir06 applies unless it would leave out more than a tenth of the jobs. "
        "FILE.py:NAME is a function of your own.",
        advanced=True,
        callback=known_trim,
    ),
]
TestShareOption = Annotated[
    float,
    _runs(
        "Simulate all jobs, but measure only this final share of the log, above 0 and up to 1. Default: 1, all jobs.",
        advanced=True,
        min=0,
        max=1,
    ),
]

# ---------------------------------------------------------------------- Output

MonthlyOption = Annotated[bool, option("Print a row for each calendar month as well, in the site's time zone.", advanced=True)]
MonthOfOption = Annotated[
    Literal["end", "start", "submit"], option("Count each job of --monthly in the month of this event.", advanced=True)
]
BreakdownOption = Annotated[
    list[str] | None,
    option(
        "Print a table by groups of jobs: month, class, user, users, size, length, size-length, queue, partition, hour, weekday or "
        "hour-of-week; some groupings accept your own bounds, as in size:8/64, length:1h/1d or users:20.",
        "--by",
        metavar="GROUPS",
    ),
]
JsonOption = Annotated[bool, option("Print one JSON object instead of text.", "--json")]
VerboseOption = Annotated[bool, option("Print all tables and notes.")]
FormatOption = Annotated[
    Literal["text", "csv", "markdown", "latex", "json"],
    option("Print text, or print only the tables in one of the other formats, for spreadsheets and papers.", "--format", advanced=True),
]
TablesOption = Annotated[
    Path | None,
    option(
        "Write the printed tables to this file: .tex (booktabs), .md, .csv or .json.",
        advanced=True,
        callback=writable(".tex", ".md", ".csv", ".json"),
    ),
]
FigureOption = Annotated[
    list[str] | None,
    option(
        "Draw wait, slowdown, queue, utilization, gantt or nodes to a .pdf, .svg or .png file; NAME= can be left out if the file is named "
        "after the figure, as in wait.pdf.",
        metavar="NAME=FILE",
        callback=named_figures,
        autocompletion=completion_of("NAME=FILE"),
    ),
]
OneFigureOption = Annotated[
    Path | None, option("Draw a figure of the result to this file (.pdf, .svg or .png).", callback=writable(".pdf", ".svg", ".png"))
]
SizeOption = Annotated[
    str,
    option(
        "Set the width of figures: column, page, slide, ieee-column, ieee-page, acm-column, ..., or inches. Default: column.",
        advanced=True,
        metavar="NAME",
        callback=known_width,
    ),
]
ReportOption = Annotated[
    Path | None,
    option(
        "Write a report to this file: a self-contained .html page, or a .pdf of one or two pages with the text of a covering "
        "e-mail in a .txt file next to it.",
        "--report",
        callback=writable(*PAGE),
    ),
]
UseOption = Annotated[
    Path | None,
    _input(
        "Add the measured use of each job from a CSV table, such as an export of Prometheus or XDMoD, with the columns job_id and any of "
        "cpu_seconds, max_memory_bytes, gpu_utilization and energy_joules.",
        "--use",
        advanced=True,
        metavar="FILE",
    ),
]
MetricsOption = Annotated[
    Path | None,
    option("Write metrics for Prometheus to this file (.prom).", advanced=True, metavar="FILE.prom", callback=writable(".prom")),
]


def read_dialect(name: str, simultaneous: str | None) -> Dialect:
    """Return the dialect of these two options; raises PolicyError if it is unknown."""
    from walltime.policy import Dialect

    return Dialect.of(name, simultaneous)
