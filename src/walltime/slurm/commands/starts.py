"""`walltime slurm snapshot` and `walltime slurm start-times`: a cluster as it is now, and when the waiting jobs will start."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from walltime.cli import options as o
from walltime.cli.option_groups import LogOptions
from walltime.cli.output import command_line
from walltime.errors import PolicyError
from walltime.wording import printable

if TYPE_CHECKING:
    from walltime.slurm import Draws, Snapshot
    from walltime.workload import Workload

MOMENTS = 150
"""At so many moments of the history predictions are replayed."""
MOST_ROWS = 40
"""So many jobs are printed, those that start first."""


def snapshot(
    *,
    out: Annotated[Path | None, o.out("the snapshot", ".json", panel=None, metavar="FILE")] = None,
    source: Annotated[
        list[Path] | None,
        typer.Option("--from", metavar="PATH", help="Outputs of Slurm, a folder or a file, instead of running commands; repeat for more."),
    ] = None,
    time: Annotated[str | None, o.own("When the files were printed: 2026-01-31T12:00:00 or seconds since 1970.", metavar="TIME")] = None,
    time_zone: Annotated[str, o.option("--time-zone", "Of the local times in the files.", None, metavar="ZONE")] = "UTC",
    show_commands: Annotated[bool, o.own("Print the commands that would be run, all of which only read, and run nothing.")] = False,
    anonymise: o.AnonymiseOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Take a snapshot of a cluster: its machine, and the jobs that run and wait, in one file.

    Runs squeue, scontrol show and sacctmgr show, which only read, and no shell; or reads their outputs with --from. The file names people,
    so that only its owner may read it; --anonymise puts numbers in their place, the same as in a log that was converted with this key.
    """
    from walltime.cli import output
    from walltime.provenance import version
    from walltime.slurm import snapshot_from_files, take_snapshot
    from walltime.slurm.snapshot import shown_commands

    if show_commands:
        if as_json:
            output.print_json({"commands": shown_commands(), "version": version()})
        else:
            typer.echo("\n".join(shown_commands()))
        return
    if out is not None:
        o.check_output(out, (".json",))
    if source is None and time is not None:
        raise PolicyError("--time says when files were printed; name them with --from, or leave it out")
    zone = _zone(time_zone)
    queue = take_snapshot() if source is None else snapshot_from_files(source, None if time is None else unix_time(time, zone), zone)
    if anonymise is not None:
        from walltime.logs.anonymous import read_key

        queue = queue.anonymised(read_key(anonymise))
    if out is not None:
        queue.write(out)
    _show(queue, out, as_json)


def _show(queue: Snapshot, out: Path | None, as_json: bool) -> None:
    from walltime.cli import output
    from walltime.provenance import version
    from walltime.report.page import Items

    if as_json:
        about = {"time": queue.time, "slurm": queue.slurm, "machine": queue.machine.name, "policy": queue.machine.policy}
        output.print_json({**about, "totals": queue.totals(), "notes": list(queue.notes), "out": out, "version": version()})
        return
    when = clock(queue.time)
    output.print_blocks([f"{queue.machine.name} at {when}: " + ", ".join(f"{name} {count:,}" for name, count in queue.totals().items())])
    for note in queue.notes:
        output.print_blocks([Items([note])])
    typer.echo("not written anywhere; name a file with --out" if out is None else f"written to {printable(out)}")


def clock(time: float) -> str:
    """A Unix time, in UTC."""
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S} UTC"


def unix_time(text: str, zone: tzinfo) -> int:
    """The Unix time of an option's value; raises PolicyError."""
    from datetime import datetime

    if text.isascii() and text.isdecimal() and len(text) < 13:
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise PolicyError(f"{text!r} is no time; write one as 2026-01-31T12:00:00, or seconds since 1970") from None
    return int((time if time.tzinfo is not None else time.replace(tzinfo=zone)).timestamp())


def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise PolicyError(f"unknown time zone {name!r}; write one such as Europe/Stockholm") from None


@dataclass(frozen=True)
class SimulationOptions:
    """What is simulated."""

    predictor: o.PredictorOption = None
    samples: Annotated[int, o.own("Simulations of what may come.", o.RUN, min=1)] = 200
    arrivals: Annotated[
        bool, typer.Option("--arrivals/--no-arrivals", help="With jobs to come, drawn from the last weeks.", rich_help_panel=o.RUN)
    ] = True
    seed: o.SeedOption = 0
    replayed: Annotated[
        int,
        o.own(
            "At so many moments of the history predictions are made too, from whose outcomes these learn; 0: the simulations alone.",
            o.RUN,
            min=0,
        ),
    ] = MOMENTS


@dataclass(frozen=True)
class JobOptions:
    """Of which jobs, and where predictions are kept."""

    job: Annotated[
        str | None, o.option("--job", "1234, or 27_3 for a task of an array; only it, and what it waits for.", None, metavar="JOB")
    ] = None
    tries: Annotated[
        list[str] | None,
        typer.Option(
            "--try",
            metavar="JOB",
            help="When would this job start if it were submitted now, such as procs=64,limit=4h? Repeat it to compare sizes and limits.",
        ),
    ] = None
    predictions: Annotated[
        Path | None,
        o.option(
            "--predictions",
            "Enter these into it; with --replayed 0, adjust them by what became of earlier ones.",
            o.RUN,
            metavar="FOLDER",
            callback=o.written,
        ),
    ] = None


@dataclass(frozen=True)
class OutputOptions:
    """What is written and printed."""

    report: o.ReportOption = None
    metrics: o.MetricsOption = None
    as_json: o.JsonOption = False


def start_times(
    snapshot: Annotated[Path, typer.Argument(metavar="SNAPSHOT", help="What walltime slurm snapshot wrote.")],
    *,
    history: Annotated[Path, o.option("--history", "Of the jobs that ran lately, weeks if possible.", None, metavar="LOG")],
    policy: o.SitePolicyOption = None,
    own: o.OwnOption = None,
    drawn: SimulationOptions,
    asked: JobOptions,
    reading: LogOptions,
    printed: OutputOptions,
) -> None:
    """Say when the waiting jobs of a snapshot will start: quantiles over simulations of what may come, beside Slurm's own estimates.

    Each simulation draws how long jobs run from how long jobs like them ran, and the jobs to come from the past weeks, and schedules them
    as the site does, until all jobs of the snapshot have started. The same is done at moments of the history, and what became of those
    jobs moves the likely times and intervals.

    With --predictor, runtimes are drawn around its predictions, by what became of earlier ones; the scheduler plans with the limits all the
    same. A file needs the numbers of the jobs that run and wait; a class of one's own sees the history first.
    """
    from walltime.cli import output
    from walltime.provenance import version
    from walltime.report.html import write_page
    from walltime.slurm import Draws, PredictionLedger, explain_wait, learn_from_history, read_snapshot
    from walltime.slurm import start_times as run
    from walltime.slurm.starts import page as pages
    from walltime.slurm.starts.start_times import missing_reason

    for path, endings in ((printed.report, o.PAGE), (printed.metrics, (".prom",))):
        if path is not None:
            o.check_output(path, endings)
    queue, draws = read_snapshot(snapshot), Draws(drawn.samples, drawn.arrivals, drawn.seed)
    if asked.tries:
        if named := [
            name
            for name, value in (
                ("job", asked.job),
                ("predictions", asked.predictions),
                ("report", printed.report),
                ("metrics", printed.metrics),
            )
            if value is not None
        ]:
            raise PolicyError(f"--try is about jobs that are not there yet; leave --{named[0]} out")
        log, _ = reading.load(history, queue.machine)
        _try(queue, log, asked.tries, (policy, drawn.predictor), draws, printed.as_json)
        return
    if asked.job is not None and asked.job not in [one.label for one in queue.waiting]:
        raise PolicyError(missing_reason(queue, asked.job))
    kept = None if asked.predictions is None else PredictionLedger(asked.predictions, create=True)
    log, _ = reading.load(history, queue.machine)
    factors = None if kept is None else kept.factors()
    with output.progress_bar(drawn.samples, "simulations") as progress:
        result = run(queue, log, policy=policy, predictor=drawn.predictor, draws=draws, factors=factors, progress=progress)
    if drawn.replayed:
        with output.progress_bar(drawn.replayed, "moments of the history") as progress:
            result = learn_from_history(result, log, policy=policy, moments=drawn.replayed, progress=progress)
    if kept is not None:
        kept.add(result)
    reasons = None if asked.job is None else explain_wait(queue, log, asked.job, policy=policy, predictor=result.predicted)
    if printed.report is not None:
        write_page(pages.start_times_page(result, log, {"command": command_line()}), printed.report)
    if printed.metrics is not None:
        pages.write_prometheus(printed.metrics, result)
    chosen = result.jobs if asked.job is None else [result.of(asked.job)]
    if printed.as_json:
        events = result.as_dict() | {"jobs": [one.as_dict() for one in chosen], "report": printed.report, "metrics": printed.metrics}
        events |= {} if reasons is None else {"reasons": reasons.as_dict()}
        output.print_json(events | {"version": version()})
        return
    output.print_blocks([f"{result.snapshot.machine.name} at {clock(queue.time)}, {drawn.samples:,} simulations under {result.policy}"])
    if asked.job is None:
        output.print_blocks([pages.answer(result)])
    output.print_blocks([pages.start_times_table(chosen[:MOST_ROWS], queue.time)])
    if len(chosen) > MOST_ROWS:
        typer.echo(f"and {len(chosen) - MOST_ROWS:,} more, which start later; --json and --report have all")
    for sentence in () if reasons is None else reasons.sentences:
        output.print_blocks([sentence])
    output.print_blocks(output.caveats(result.caveats))
    for path, what in ((printed.report, "report"), (printed.metrics, "metrics")):
        if path is not None:
            typer.echo(f"{what} written to {path}")


def _try(queue: Snapshot, log: Workload, texts: list[str], rules: tuple[str | None, str | None], draws: Draws, as_json: bool) -> None:
    """When jobs would start that are not submitted yet; `rules`: the policy, and the predictor of runtimes."""
    from dataclasses import asdict

    from walltime.cli import output
    from walltime.provenance import version
    from walltime.slurm import try_jobs
    from walltime.slurm.starts.page import trials_table

    policy, predictor = rules
    with output.progress_bar(draws.samples, "simulations") as progress:
        result = try_jobs(queue, log, texts, policy=policy, predictor=predictor, draws=draws, progress=progress)
    if as_json:
        about = {"machine": queue.machine.name, "time": queue.time} | asdict(draws) | {"policy": result.policy, "predictor": predictor}
        tried = {"trials": [one.as_dict() for one in result.trials], "caveats": list(result.caveats)}
        output.print_json(about | tried | {"version": version()})
        return
    output.print_blocks([f"{queue.machine.name} at {clock(queue.time)}, {draws.samples:,} simulations under {result.policy}"])
    output.print_blocks([trials_table(result.trials, queue.time)])
    output.print_blocks(output.caveats(result.caveats))


def score(
    ledger: Annotated[Path, typer.Argument(metavar="LEDGER", help="What walltime slurm start-times --predictions wrote.")],
    *,
    history: Annotated[
        Path | None,
        o.option("--history", "Of the jobs that have ended since, with which the ledger is completed.", None, metavar="LOG"),
    ] = None,
    reading: LogOptions,
    as_json: o.JsonOption = False,
) -> None:
    """Say how good predicted start times were: how many jobs started within their intervals, and the errors beside Slurm's own.

    With --history, what has become of the predictions is entered first. The factors are those with which the next walltime slurm
    start-times with this ledger widens or narrows its intervals, so that 90 % of the jobs start within them.
    """
    from walltime.cli import output
    from walltime.provenance import version
    from walltime.slurm import PredictionLedger
    from walltime.slurm.starts.page import scores_table

    kept = PredictionLedger(ledger)
    card = kept.score(None if history is None else reading.load(history)[0])
    if as_json:
        output.print_json(card.as_dict() | {"version": version()})
        return
    output.print_blocks([f"{card.predictions:,} predictions, {card.known:,} of jobs that have started, {card.completed:,} of these new"])
    adjusted = {one.name: one.inside for one in card.calibrated}
    if card.scores:
        output.print_blocks([scores_table(card.scores, adjusted)])
    for name, (early, late) in card.factors.items():
        output.print_blocks([f"{name}: the next intervals reach {early:.2f} times as far before the median, and {late:.2f} times after it"])
    if not card.factors:
        typer.echo("no prediction is completed, so the next intervals are as simulated")
