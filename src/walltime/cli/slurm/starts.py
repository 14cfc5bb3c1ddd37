"""`walltime slurm snapshot` and `walltime slurm start-times`: a cluster as it is now, and when the waiting jobs will start."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from walltime.cli import options as o
from walltime.cli.calibrate import TodaysPolicyOption
from walltime.cli.groups import Reading
from walltime.errors import PolicyError

if TYPE_CHECKING:
    from walltime.slurm import Snapshot
    from walltime.workload import Workload

__all__ = ["clock", "score", "snapshot", "start_times"]

MOST_ROWS = 40
"""So many jobs are printed, those that start first."""


def snapshot(
    *,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the snapshot here: .json.")] = None,
    source: Annotated[
        list[Path] | None,
        typer.Option("--from", metavar="PATH", help="Outputs of Slurm, a folder or a file, instead of running commands; repeat for more."),
    ] = None,
    time: Annotated[
        str | None, typer.Option("--time", metavar="TIME", help="When the files were printed: 2026-01-31T12:00:00 or seconds since 1970.")
    ] = None,
    time_zone: Annotated[
        str, typer.Option("--time-zone", metavar="ZONE", help="Zone of the local times in the files, such as Europe/Stockholm.")
    ] = "UTC",
    show_commands: Annotated[
        bool, typer.Option("--show-commands", help="Print the commands that would be run, all of which only read, and run nothing.")
    ] = False,
    anonymise: o.AnonymiseOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Take a snapshot of a cluster: its machine, and the jobs that run and wait, in one file.

    Runs squeue, scontrol show and sacctmgr show, which only read, and no shell; or reads their outputs with --from. The file names people,
    so that only its owner may read it; --anonymise puts numbers in their place, the same as in a log that was converted with this key.
    """
    from walltime.cli import common
    from walltime.provenance import version
    from walltime.slurm import snapshot_of, take_snapshot
    from walltime.slurm.snapshot import shown_commands

    if show_commands:
        if as_json:
            common.print_json({"commands": shown_commands(), "version": version()})
        else:
            typer.echo("\n".join(shown_commands()))
        return
    if out is not None:
        common.check_output(out, (".json",))
    if source is None and time is not None:
        raise PolicyError("--time says when files were printed; name them with --from, or leave it out")
    zone = _zone(time_zone)
    queue = take_snapshot() if source is None else snapshot_of(source, None if time is None else common.unix_time(time, zone), zone)
    if anonymise is not None:
        from walltime.logs.anonymous import read_key

        queue = queue.anonymised(read_key(anonymise))
    if out is not None:
        queue.write(out)
    _show(queue, out, as_json)


def _show(queue: Snapshot, out: Path | None, as_json: bool) -> None:
    from walltime.cli import common
    from walltime.files import printable
    from walltime.provenance import version

    if as_json:
        about = {"time": queue.time, "slurm": queue.slurm, "machine": queue.machine.name, "policy": queue.machine.policy}
        common.print_json({**about, "totals": queue.totals(), "notes": list(queue.notes), "out": out, "version": version()})
        return
    when = clock(queue.time)
    common.print_text(f"{queue.machine.name} at {when}: " + ", ".join(f"{name} {count:,}" for name, count in queue.totals().items()))
    for note in queue.notes:
        common.print_text(note, "* ")
    typer.echo("not written anywhere; name a file with --out" if out is None else f"written to {printable(out)}")


def clock(time: float) -> str:
    """A Unix time, in UTC."""
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise PolicyError(f"unknown time zone {name!r}; write one such as Europe/Stockholm") from None


def start_times(
    snapshot: Annotated[Path, typer.Argument(metavar="SNAPSHOT", help="What walltime slurm snapshot wrote.")],
    *,
    history: Annotated[
        Path, typer.Option("--history", metavar="LOG", help="The log of the jobs that ran lately, weeks if possible; sacct's, say.")
    ],
    policy: TodaysPolicyOption = None,
    samples: Annotated[int, typer.Option("--samples", min=1, help="Simulations of what may come.", rich_help_panel=o.RUN)] = 200,
    arrivals: Annotated[
        bool, typer.Option("--arrivals/--no-arrivals", help="With jobs to come, drawn from the last weeks.", rich_help_panel=o.RUN)
    ] = True,
    seed: o.SeedOption = 0,
    job: Annotated[
        str | None, typer.Option("--job", metavar="JOB", help="Only this one, and what it waits for: 1234, or 27_3 for a task of an array.")
    ] = None,
    tries: Annotated[
        list[str] | None,
        typer.Option(
            "--try",
            metavar="JOB",
            help="When would this job start if it were submitted now, such as procs=64,limit=4h? Repeat it to compare sizes and limits.",
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            "--ledger",
            metavar="FOLDER",
            help="Enter the predictions into this ledger, and adjust the intervals by what became of earlier ones.",
            rich_help_panel=o.RUN,
        ),
    ] = None,
    reading: Reading,
    report: o.ReportOption = None,
    metrics: o.MetricsOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Say when the waiting jobs of a snapshot will start: quantiles over simulations of what may come, beside Slurm's own estimates.

    Each simulation draws how long jobs run from how long jobs like them ran, and the jobs to come from the past weeks, and schedules them
    as the site does, until all jobs of the snapshot have started.
    """
    from walltime.cli import common
    from walltime.provenance import version
    from walltime.report import start_times as pages
    from walltime.slurm import PredictionLedger, read_snapshot, why
    from walltime.slurm import start_times as run
    from walltime.slurm.starts.start_times import why_not

    for path, endings in ((report, (".html", ".htm")), (metrics, (".prom",))):
        if path is not None:
            common.check_output(path, endings)
    queue = read_snapshot(snapshot)
    if tries:
        if named := [
            name for name, value in (("job", job), ("ledger", ledger), ("report", report), ("metrics", metrics)) if value is not None
        ]:
            raise PolicyError(f"--try is about jobs that are not there yet; leave --{named[0]} out")
        log, _ = reading.load(history, queue.machine)
        _try(queue, log, tries, {"policy": policy, "samples": samples, "arrivals": arrivals, "seed": seed}, as_json)
        return
    if job is not None and job not in [one.label for one in queue.waiting]:
        raise PolicyError(why_not(queue, job))
    kept = None if ledger is None else PredictionLedger(ledger, create=True)
    log, _ = reading.load(history, queue.machine)
    factors = None if kept is None else kept.factors()
    with common.progress_bar(samples, "simulations") as progress:
        result = run(queue, log, policy=policy, samples=samples, arrivals=arrivals, seed=seed, factors=factors, progress=progress)
    if kept is not None:
        kept.add(result)
    reasons = None if job is None else why(queue, log, job, policy=policy)
    if report is not None:
        pages.write_start_times_report(report, result, log, settings={"command": ["walltime", *sys.argv[1:]]})
    if metrics is not None:
        pages.write_prometheus(metrics, result)
    chosen = result.jobs if job is None else [result.of(job)]
    if as_json:
        events = result.as_dict() | {"jobs": [one.as_dict() for one in chosen], "report": report, "metrics": metrics}
        events |= {} if reasons is None else {"reasons": reasons.as_dict()}
        common.print_json(events | {"version": version()})
        return
    common.print_text(f"{result.snapshot.machine.name} at {clock(queue.time)}, {samples:,} simulations under {result.policy}")
    common.print_table("", pages.COLUMNS, [pages.row(one, queue.time) for one in chosen[:MOST_ROWS]])
    if len(chosen) > MOST_ROWS:
        typer.echo(f"and {len(chosen) - MOST_ROWS:,} more, which start later; --json and --report have all")
    for sentence in () if reasons is None else reasons.sentences:
        common.print_text(sentence)
    common.print_caveats(result.caveats)
    for path, what in ((report, "report"), (metrics, "metrics")):
        if path is not None:
            typer.echo(f"{what} written to {path}")


def _try(queue: Snapshot, log: Workload, texts: list[str], rules: dict[str, Any], as_json: bool) -> None:
    """When jobs would start that are not submitted yet."""
    from walltime.cli import common
    from walltime.provenance import version
    from walltime.report.start_times import TRY_COLUMNS, try_row
    from walltime.slurm import try_jobs

    with common.progress_bar(rules["samples"], "simulations") as progress:
        result = try_jobs(queue, log, texts, progress=progress, **rules)
    if as_json:
        about = {"machine": queue.machine.name, "time": queue.time} | rules | {"policy": result.policy}
        tried = {"trials": [one.as_dict() for one in result.trials], "caveats": list(result.caveats)}
        common.print_json(about | tried | {"version": version()})
        return
    common.print_text(f"{queue.machine.name} at {clock(queue.time)}, {rules['samples']:,} simulations under {result.policy}")
    common.print_table("", TRY_COLUMNS, [try_row(one, queue.time) for one in result.trials])
    common.print_caveats(result.caveats)


def score(
    ledger: Annotated[Path, typer.Argument(metavar="LEDGER", help="What walltime slurm start-times --ledger wrote.")],
    *,
    history: Annotated[
        Path | None,
        typer.Option("--history", metavar="LOG", help="A log of the jobs that have ended since, with which the ledger is completed."),
    ] = None,
    reading: Reading,
    as_json: o.JsonOption = False,
) -> None:
    """Say how good predicted start times were: how many jobs started within their intervals, and the errors beside Slurm's own.

    With --history, what has become of the predictions is entered first. The factors are those with which the next walltime slurm
    start-times with this ledger widens or narrows its intervals, so that 90 % of the jobs start within them.
    """
    from walltime.cli import common
    from walltime.provenance import version
    from walltime.report.start_times import SCORE_COLUMNS, score_row
    from walltime.slurm import PredictionLedger

    kept = PredictionLedger(ledger)
    card = kept.score(None if history is None else reading.load(history)[0])
    if as_json:
        common.print_json(card.as_dict() | {"version": version()})
        return
    common.print_text(f"{card.predictions:,} predictions, {card.known:,} of jobs that have started, {card.completed:,} of these new")
    adjusted = {one.name: one.inside for one in card.calibrated}
    if card.scores:
        common.print_table("", SCORE_COLUMNS, [score_row(one, adjusted.get(one.name)) for one in card.scores])
    for name, (early, late) in card.factors.items():
        common.print_text(f"{name}: the next intervals reach {early:.2f} times as far before the median, and {late:.2f} times after it")
    if not card.factors:
        typer.echo("no prediction is completed, so the next intervals are as simulated")
