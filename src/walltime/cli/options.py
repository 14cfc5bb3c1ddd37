"""Options that several commands share: an option means the same in every command that has it, and its help says so once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from walltime.cli.completion import completion_of
from walltime.errors import OutputError
from walltime.permission import allow
from walltime.wording import printable

if TYPE_CHECKING:
    from walltime.policy import Dialect

INPUT, VARY, RUN, OUTPUT = "The log", "Varying it", "The scheduler", "The result"
MOST_PROCS = 2**40
"""Upper bound of processors and jobs."""
TABLE = (".csv", ".parquet")
LOGS = (".swf", ".swf.gz", ".swf.zst", ".parquet", ".csv", ".csv.gz", ".csv.zst")
"""What every command that writes a log can write, as `walltime.logs.convert` does."""
PAGE = (".html", ".htm", ".pdf")
MEANINGS = {
    "--backfill-order": "Order in which jobs are tried for backfilling; default: --order.",
    "--believe": "Where predictions are used: regular, selective (not for running jobs), none, or three bits: order, own length, running.",
    "--by": "Tables by groups of jobs: month, class, user (heavy, medium and light ones), users (one by one), size, length, queue, ...",
    "--change": "What to change: SchedulerParameters+=bf_max_job_test=1000, partition.long.MaxTime=24h, pool.gpu.nodes+=4, nodes+=10%, "
    "limit.1.jobs=8, policy=easy++, load*=1.1, ...",
    "--copies": "Copies of the log with shaken submissions.",
    "--correction": "New expected runtime of a job that outlives its prediction: tsafrir07, tsafrir07:elapsed, estimate, double, "
    "double:uncapped, half, soft, none.",
    "--dialect": "How the rules are read: as in the papers, or as a published simulator reads them: pyss, predictsim, ...; "
    "papers:shadow=kept changes one reading.",
    "--estimates": "Estimates for the scheduler: user, exact, double, f:4, badness:3, mualem01, tsafrir05, ... (see the guide on "
    "estimates).",
    "--figure": "Draw a figure: .pdf, .svg or .png.",
    "--history": "The cluster's job log, as sacct prints it.",
    "--job": "The job, by its number.",
    "--jobs": "Number of jobs to generate.",
    "--learn-from": "The predictor learns from the jobs of the simulation, or of the log.",
    "--ledger": "The side-car's ledger, a folder on a local disk.",
    "--load": "Offered load, over 0 and up to 1.5.",
    "--log": "The log.",
    "--machine": "The machine and how it schedules: a file like machine.toml, in place of --procs.",
    "--metric": "A measure: mean_wait, p90_wait, mean_bounded_slowdown, ...",
    "--most": "So many at most.",
    "--order": "Order of the queue: fcfs, sjf, wfp (wfp:exponent=2,threshold=0.75), lcfs, ljf, sqf, lqf, saf, laf, lxf, unicef, f1 to f4, "
    "a score such as power:wait=1,believed=-1, an expression such as expr:log(wait+60)-log(area), or FILE.py:NAME for a custom one; "
    "sjf:starvation=86400 puts jobs first that have waited a day, sjf:limit=0.5 those that have waited half as long as anybody so far.",
    "--own": "Allow data files, such as a machine's file or a plan, to run the code of this Python file. Repeat it for more files.",
    "--policy": "A scheduler, such as fcfs, easy, conservative, hybrid:depth=N, selective, slurm (with --machine), or FILE.py:NAME for a "
    "custom one; with options, as in easy:backfill-order=sjf,predictor=tsafrir07.",
    "--predictor": "Predict runtimes from jobs that have ended: tang13, tsafrir07, last, mualem01-history, gaussier15, ..., with options: "
    "tang13:key=user,statistic=p90,window=all; or made elsewhere: column:NAME, file:predictions.csv, FILE.py:CLASS.",
    "--predictions": "A ledger of predicted start times.",
    "--procs": "Processors of the machine.",
    "--replications": "Repeat the simulations so many times.",
    "--report": "Write a self-contained page here: .html, or .pdf of one or two sides with the text of an e-mail.",
    "--risk": "A risk of being killed, percent.",
    "--seed": "Seed of all random draws.",
    "--shake": "Move each submission at random by up to this time.",
    "--since": "From then on (UTC): 2026-01-31, 2026-01-31T12:00:00.",
    "--store": "Keep what is simulated in this folder, and go on from there.",
    "--test-share": "Share of the log that is held out, the last part.",
    "--time-zone": "Zone of the site, such as Europe/Stockholm.",
    "--trim": "tsafrir06: leave out the first 1 % of the jobs to end, which met an empty machine, and those that end after the last "
    "arrival (tsafrir06, section II).",
    "--until": "Until then.",
    "--window": "A span of the log, s or with m, h, d, w, e.g. 30d:60d.",
    "--workers": "Threads on this machine; default: one per core.",
}
"""What an option means in every command; a command may add a sentence on what it does there, or on its default."""


SECOND_SPELLINGS = {"--machine": "--cluster"}
"""A second spelling of an option: operators say cluster for what studies call a machine."""


def option(name: str, detail: str = "", panel: str | None = RUN, **more: Any) -> Any:
    """The declaration of an option of `MEANINGS`; `detail`: what the command adds."""
    help_text = f"{MEANINGS[name]} {detail}".strip()
    spellings = filter(None, (name, SECOND_SPELLINGS.get(name)))
    if name == "--store":
        more |= {"callback": written}
    return typer.Option(*spellings, help=help_text, rich_help_panel=panel, autocompletion=completion_of(name), **more)


def own(help_text: str, panel: str | None = None, **more: Any) -> Any:
    """The declaration of an option of one command, called as its parameter: `--stop-file` for `stop_file`."""
    return typer.Option(help=help_text, rich_help_panel=panel, **more)


def _allowed(files: list[Path] | None) -> list[Path] | None:
    for file in files or ():
        allow(file)
    return files


def out(what: str, *endings: str, panel: str | None = OUTPUT, **more: Any) -> Any:
    """The declaration of --out: a file with one of these endings, of which it is known before any work is done that it can be written."""
    kinds = " or ".join(filter(None, [", ".join(endings[:-1]), *endings[-1:]]))
    return typer.Option("--out", help=f"Write {what} here: {kinds}.", callback=writable(*endings), rich_help_panel=panel, **more)


def writable(*endings: str) -> Callable[[Path | None], Path | None]:
    """A callback that refuses a file that cannot be written."""

    def check(path: Path | None) -> Path | None:
        if path is not None:
            check_output(path, endings)
        return path

    check.writes = True  # type: ignore[attr-defined]
    return check


def written(path: Path | None) -> Path | None:
    """A callback that marks a folder, or a file that is kept from call to call, as written by the command and not as an input."""
    return path


written.writes = True  # type: ignore[attr-defined]


def check_output(path: Path, endings: tuple[str, ...]) -> None:
    """Raise OutputError, before any work is done, if a file cannot be written."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            return  # a device or a pipe
    except OSError as error:
        raise OutputError(f"{printable(path)}: cannot be written ({(error.strerror or str(error)).lower()}); name another place") from error
    if not path.name.lower().endswith(endings):
        raise OutputError(
            f"{printable(path)}: can be written as {', '.join(endings)}; name a file with one of these extensions", "unknown_file_extension"
        )
    if path.is_dir():
        raise OutputError(f"{printable(path)}: cannot be written (it is a directory); name another place")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise OutputError(f"{printable(path)}: cannot be written (there is no folder {printable(folder)}); name another place")


def named_figures(texts: list[str] | None) -> list[str] | None:
    """A callback that refuses figures that cannot be drawn or written."""
    if texts:
        from walltime.report.figure_files import named_file

        for _, path in map(named_file, texts):
            check_output(path, (path.suffix.lower(),))
    return texts


named_figures.writes = True  # type: ignore[attr-defined]


def width_of_figures(text: str) -> str:
    """A callback that refuses a width that is unknown."""
    if text:
        from walltime.report.figure_files import width_in_inches

        width_in_inches(text)
    return text


def _log(name: str, help_text: str, **more: Any) -> Any:
    return typer.Option(name, help=help_text, rich_help_panel=INPUT, **more)


def _varied(name: str, help_text: str, **more: Any) -> Any:
    return typer.Option(name, help=help_text, rich_help_panel=VARY, **more)


def _result(name: str, help_text: str, **more: Any) -> Any:
    return typer.Option(name, help=help_text, rich_help_panel=OUTPUT, **more)


TraceArgument = Annotated[Path, typer.Argument(metavar="LOG", help="A job log, plain or gzip, or the name of one in the catalogue.")]

# ---------------------------------------------------------------------- the log

ProcsOption = Annotated[int | None, option("--procs", "Default: the log's MaxProcs.", INPUT, min=1, max=MOST_PROCS)]
SkipBadLinesOption = Annotated[bool, _log("--skip-bad-lines", "Skip lines that cannot be read; count and list them.")]
TimeZoneOption = Annotated[str | None, option("--time-zone", "For a log that does not say it.", INPUT, metavar="ZONE")]
MappingOption = Annotated[
    Path | None,
    _log("--mapping", "For tables: a TOML file that says what the columns mean, or a shipped mapping such as f-data.", metavar="FILE"),
]
AnonymiseOption = Annotated[
    str | None,
    _log(
        "--anonymise",
        "Replace users, accounts and job names by numbers that depend on this key: @FILE, env:NAME, or the key itself.",
        metavar="KEY",
    ),
]
TooWideOption = Annotated[Literal["drop", "clip", "error"], _log("--too-wide", "What to do with jobs that are wider than the machine.")]
PartialOption = Annotated[
    Literal["summary", "parts"], _log("--partial", "For jobs that were interrupted: their summary record, or their parts.")
]

# ---------------------------------------------------------------------- varying it

LoadsOption = Annotated[list[float] | None, option("--load", "Scales the log; repeat it to compare loads.", VARY)]
ScaleByOption = Annotated[
    Literal["interarrival", "runtime", "machine", "size", "thin", "users"], _varied("--scale-by", "How to scale the load.")
]
RemoveOption = Annotated[
    list[str] | None, _varied("--remove", "Remove the jobs that match a filter, e.g. 'user=21 and job<16208'.", metavar="FILTER")
]
HeadOption = Annotated[int | None, _varied("--head", "Only the first jobs.", min=1)]
TailOption = Annotated[int | None, _varied("--tail", "Only the last jobs.", min=1)]
WindowOption = Annotated[
    str | None, option("--window", "Only jobs submitted in it, such as 30d:60d or 1997-05-01:1997-08-01.", VARY, metavar="BEGIN:END")
]
ShakeOption = Annotated[int, option("--shake", panel=VARY, min=0, metavar="SECONDS")]
ReplicationsOption = Annotated[
    int, option("--replications", "With seeds SEED, SEED + 1, ...: shaken, or with other random estimates.", VARY, min=1)
]
FeedbackOption = Annotated[
    bool, _varied("--feedback", "Submit a job that names a preceding job only after that one's end and the think time.")
]

# ---------------------------------------------------------------------- the scheduler

PolicyOption = Annotated[str | None, option("--policy", "Default: that of the machine's file, else easy.")]
SitePolicyOption = Annotated[str | None, option("--policy", "How the site schedules, instead of the policy of the machine's file.")]
OrderOption = Annotated[str, option("--order")]
BackfillOrderOption = Annotated[str | None, option("--backfill-order")]
EstimatesListOption = Annotated[list[str] | None, option("--estimates", "Default: user; repeat it to compare them.")]
SeedOption = Annotated[int, option("--seed", min=0, max=2**63)]
PredictorOption = Annotated[str | None, option("--predictor", metavar="NAME")]
BelieveOption = Annotated[str, option("--believe")]
CorrectionOption = Annotated[str, option("--correction")]
LearnFromOption = Annotated[Literal["simulation", "log"], option("--learn-from")]
MachineOption = Annotated[Path | None, option("--machine", metavar="FILE")]
OwnOption = Annotated[list[Path] | None, option("--own", metavar="FILE.py", callback=_allowed)]
OverrunOption = Annotated[
    Literal["kill", "extend", "overrun"],
    typer.Option(
        "--overrun", help="Jobs that run longer than requested: kill them, extend the request, or let them run.", rich_help_panel=RUN
    ),
]
CoincidentOption = Annotated[
    Literal["batch", "sequential"] | None,
    typer.Option(
        "--coincident",
        help="Simultaneous events: one pass after all of them, or one pass after each. Default: that of the dialect, batch for papers.",
        rich_help_panel=RUN,
    ),
]
DialectOption = Annotated[str, option("--dialect", metavar="NAME")]
WorkersOption = Annotated[int | None, option("--workers", min=1)]

# ---------------------------------------------------------------------- the result

TrimOption = Annotated[Literal["none", "tsafrir06"], option("--trim", panel=OUTPUT)]
TestShareOption = Annotated[
    float, option("--test-share", "All jobs run, and only its jobs are measured; default: all.", OUTPUT, min=0, max=1)
]
MonthlyOption = Annotated[bool, _result("--monthly", "Also print a row for each calendar month, in the site's time zone.")]
ByOption = Annotated[Literal["end", "start", "submit"], _result("--month-of", "The event that determines a job's month.")]
BreakdownOption = Annotated[
    list[str] | None,
    option(
        "--by",
        "Also hour, weekday, hour-of-week, size-length, partition; with edges of your own: size:8/64, length:1h/1d, users:20. Repeat it "
        "for more.",
        OUTPUT,
        metavar="GROUPS",
    ),
]
JsonOption = Annotated[bool, _result("--json", "Print one JSON object for programs.")]
VerboseOption = Annotated[bool, _result("--verbose", "Print all tables and caveats.")]
FormatOption = Annotated[
    Literal["text", "csv", "markdown", "latex", "json"], _result("--format", "Print the tables only, for a spreadsheet or a paper.")
]
TablesOption = Annotated[
    Path | None,
    _result(
        "--tables",
        "Write the printed tables here: .tex (booktabs), .md, .csv or .json.",
        callback=writable(".tex", ".md", ".csv", ".json"),
    ),
]
FigureOption = Annotated[
    list[str] | None,
    option(
        "--figure",
        "Of wait, slowdown, queue, utilization or gantt; a file called as its figure, as wait.pdf, needs no NAME. Repeat it.",
        OUTPUT,
        metavar="NAME=FILE",
        callback=named_figures,
    ),
]
SizeOption = Annotated[
    str,
    _result(
        "--size",
        "Width of the figures: column, page, slide, ieee-column, ieee-page, acm-column, ..., or inches.",
        metavar="NAME",
        callback=width_of_figures,
    ),
]
OneFigureOption = Annotated[Path | None, option("--figure", panel=OUTPUT, callback=writable(".pdf", ".svg", ".png"))]
ReportOption = Annotated[Path | None, option("--report", panel=OUTPUT, callback=writable(*PAGE))]


MetricsOption = Annotated[
    Path | None,
    _result("--metrics", "Write metrics for Prometheus here: .prom.", metavar="FILE.prom", callback=writable(".prom")),
]


def read_dialect(name: str, coincident: str | None) -> Dialect:
    """The dialect of these two options; raises PolicyError if it is unknown."""
    from walltime.policy import Dialect

    return Dialect.of(name, coincident)
