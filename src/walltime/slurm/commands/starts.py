"""`walltime slurm snapshot` and `walltime slurm start-times`: the present state of a cluster, and the starts of its waiting jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from walltime.cli import options as o
from walltime.cli.command_lines import command_line
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions
from walltime.cli.output import Output, PageOutput, caveats, progress_bar
from walltime.errors import PolicyError
from walltime.wording import counted, printable

if TYPE_CHECKING:
    from walltime.slurm import Draws, Snapshot, SnapshotJob
    from walltime.workload import Workload

PATIENCE = 5.0
"""If the simulations take more seconds than this, their answer is printed before learning from the history."""
MOST_ROWS = 40
"""Maximum number of jobs that are printed, those that start first."""


def history_option(text: str) -> Any:
    """Return the declaration of an option for a job log of the cluster."""
    return o.option(text, "--history", group=o.INPUT, metavar="LOG")


@manual(
    "guides/start-times",
    ("Take a snapshot of the cluster.", "slurm snapshot --out now.json"),
    ("Show the commands that it runs.", "slurm snapshot --show-commands"),
)
def snapshot(
    *,
    out: Annotated[Path | None, o.out("the snapshot", ".json", metavar="FILE")] = None,
    source: Annotated[
        list[Path] | None,
        o.option("Read Slurm's outputs from this file or folder; run no commands.", "--from", group=o.INPUT, metavar="PATH"),
    ] = None,
    time: Annotated[
        str | None,
        o.option(
            "Set the time at which the files of --from were saved, as in 2026-01-31T12:00:00 or in seconds since 1970. Default: "
            "the time in the files.",
            group=o.INPUT,
            metavar="TIME",
        ),
    ] = None,
    time_zone: Annotated[
        str, o.option("Set the time zone of the local times in the files of --from.", "--time-zone", group=o.INPUT, metavar="ZONE")
    ] = "UTC",
    show_commands: Annotated[bool, o.option("Print the commands that would run (they only read), and exit.")] = False,
    anonymise: o.AnonymiseOption = None,
    output: Output,
) -> None:
    """Take a snapshot of a cluster: its machine, and the running and waiting jobs, in one file.

    The command runs squeue, scontrol show and sacctmgr show, which only read, without a shell. With --from, it reads their saved outputs.
    Only the owner can read the snapshot; --anonymise replaces user names with numbers, as in a log converted with the same key.
    """
    from walltime.provenance import version
    from walltime.report.page import Items
    from walltime.slurm import snapshot_from_files, take_snapshot
    from walltime.slurm.snapshot import shown_commands

    if show_commands:
        if output.as_json:
            output.show({"commands": shown_commands(), "version": version()}, [])
        else:
            typer.echo("\n".join(shown_commands()))
        return
    if source is None and time is not None:
        raise PolicyError("--time needs the files of --from; add --from FILE, or leave out --time")
    zone = _zone(time_zone)
    queue = take_snapshot() if source is None else snapshot_from_files(source, None if time is None else unix_time(time, zone), zone)
    if anonymise is not None:
        from walltime.logs.anonymous import read_key

        queue = queue.anonymised(read_key(anonymise))
    if out is not None:
        queue.write(out)
    about = {"time": queue.time, "slurm": queue.slurm, "machine": queue.machine.name, "policy": queue.machine.policy}
    record = {**about, "totals": queue.totals(), "notes": list(queue.notes), "out": out, "version": version()}
    totals = ", ".join(f"{name} {count:,}" for name, count in queue.totals().items())
    place = "not written to a file; add --out FILE" if out is None else f"written to {printable(out)}"
    output.show(record, [f"{queue.machine.name} at {clock(queue.time)}: {totals}", *(Items([note]) for note in queue.notes), place])


def clock(time: float) -> str:
    """Return a Unix time as UTC, to the second."""
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S} UTC"


def unix_time(text: str, zone: tzinfo) -> int:
    """Parse the time in an option, and return it as Unix time; raises PolicyError. `zone`: for times without one."""
    if text.isascii() and text.isdecimal() and len(text) < 13:
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise PolicyError(f"{text!r} is not a time; write one as 2026-01-31T12:00:00, or seconds since 1970") from None
    return int((time if time.tzinfo is not None else time.replace(tzinfo=zone)).timestamp())


def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise PolicyError(f"unknown time zone {name!r}; write one such as Europe/Stockholm") from None


@dataclass(frozen=True)
class SimulationOptions:
    """The options of the simulations."""

    predictor: o.RuntimePredictorOption = None
    samples: int = o.field(200, "Simulate N possible futures.", group=o.RUNS, min=1)
    arrivals: bool = o.field(
        True, "Simulate future submissions as well, drawn from the last weeks.", "--arrivals/--no-arrivals", group=o.RUNS, advanced=True
    )
    seed: o.SeedOption = 0
    replayed: int = o.field(
        150,
        "Correct the predictions with the outcomes of predictions for N past times of the history; 0 for no correction.",
        group=o.RUNS,
        advanced=True,
        min=0,
    )


@dataclass(frozen=True)
class JobOptions:
    """Options that choose the jobs, and the folder in which predictions are kept."""

    job: str | None = o.field(
        None,
        "Show only this job, with the reason why it waits; its number is written as in 1234, or as in 27_3 for a task of an array.",
        "--job",
        group=o.JOBS,
        metavar="JOB",
    )
    user: str | None = o.field(None, "Show only the jobs of this user.", "--user", group=o.JOBS, metavar="USER")
    tries: list[str] | None = o.field(
        None, "Predict the start of a job that would be submitted now, as in procs=64,limit=4h.", "--try", group=o.JOBS, metavar="JOB"
    )
    predictions: Path | None = o.field(
        None, "Record the predictions in this folder, for walltime slurm score.", metavar="FOLDER", callback=o.written
    )

    def shows(self, job: SnapshotJob) -> bool:
        """Return whether a job is shown."""
        return self.job in (None, job.label) and self.user in (None, job.user)


@manual(
    "guides/start-times",
    ("Predict the starts of all waiting jobs.", "slurm start-times now.json --history jobs.txt.gz"),
    (
        "Compare two sizes of a job that is not submitted yet.",
        "slurm start-times now.json --history jobs.txt.gz --try partition=main,procs=16,limit=2h --try partition=main,procs=64,limit=1h",
    ),
)
def start_times(
    snapshot: Annotated[Path, o.argument("The file that walltime slurm snapshot --out wrote.", "SNAPSHOT")],
    *,
    history: Annotated[Path, history_option("Learn from this job log of the cluster in sacct's format, preferably of at least two weeks.")],
    policy: o.SitePolicyOption = None,
    own: o.OwnOption = None,
    drawn: SimulationOptions,
    asked: JobOptions,
    reading: LogOptions,
    metrics: o.MetricsOption = None,
    output: PageOutput,
) -> None:
    """Predict when the waiting jobs of a snapshot will start, next to Slurm's own estimates, and explain why each job is pending.

    Each simulation draws runtimes from similar past jobs and future submissions from past weeks, and applies the site's rules until all
    jobs of the snapshot have started. The errors of such predictions for past times in the history correct the new predictions.

    With --predictor, runtimes are drawn around its predictions, but the scheduler still plans with the limits. A file of predictions must
    name the running and waiting jobs by their numbers; a class of your own first learns from the history.
    """
    from walltime.files import whole_file
    from walltime.provenance import version
    from walltime.slurm import Draws, PredictionLedger, explain_wait, learn_from_history, read_snapshot, start_times as run
    from walltime.slurm.starts import page as pages
    from walltime.slurm.starts.pending import apart_reasons
    from walltime.slurm.starts.start_times import missing_reason

    queue, draws = read_snapshot(snapshot), Draws(drawn.samples, drawn.arrivals, drawn.seed)
    if asked.tries:
        others = {"job": asked.job, "user": asked.user, "predictions": asked.predictions, "report": output.report, "metrics": metrics}
        if named := [name for name, value in others.items() if value is not None]:
            raise PolicyError(f"--try predicts jobs that are not submitted yet; leave --{named[0]} out")
        log, _ = reading.load(history, queue.machine)
        _try(queue, log, asked.tries, (policy, drawn.predictor), draws, output)
        return
    apart = [(one, why) for one, why in apart_reasons(queue) if asked.shows(one)]
    mine = [one for one in queue.waiting if asked.shows(one)]
    if apart and not mine:
        head = {"machine": queue.machine.name, "time": queue.time, "totals": queue.totals(), "jobs": []}
        output.show(head | {**pages.apart_record(apart), "version": version()}, [pages.apart_table(apart[:MOST_ROWS])])
        return
    if not mine and asked.job is not None:
        raise PolicyError(missing_reason(queue, asked.job), "unknown_job")
    if not mine and asked.user is not None:
        raise PolicyError(
            f"no job of the user {printable(asked.user)} waits in the snapshot; --user takes the name in squeue", "unknown_user"
        )
    kept = None if asked.predictions is None else PredictionLedger(asked.predictions, create=True)
    log, _ = reading.load(history, queue.machine)
    begin = monotonic()
    with progress_bar(drawn.samples, "simulations") as progress:
        result = run(queue, log, policy=policy, predictor=drawn.predictor, draws=draws, progress=progress)
    if drawn.replayed:
        if monotonic() - begin > PATIENCE:
            first = pages.answer(result, [one for one in result.jobs if asked.shows(one.job)])
            typer.echo(f"walltime: first answer, from the simulations alone: {first}", err=True)
        with progress_bar(drawn.replayed, "moments of the history") as progress:
            result = learn_from_history(result, log, policy=policy, moments=drawn.replayed, progress=progress)
    if kept is not None:
        kept.add(result)
    reasons = None if asked.job is None else explain_wait(queue, log, asked.job, policy=policy, predictor=result.predicted)
    if output.report is not None:
        output.write(pages.start_times_page(result, log, {"command": command_line()}))
    if metrics is not None:
        with whole_file(metrics) as file:
            file.write(pages.prometheus(result).encode())
    chosen = [one for one in result.jobs if asked.shows(one.job)]
    record = result.as_dict() | pages.apart_record(apart) | {"report": output.report, "metrics": metrics}
    record |= {"jobs": [one.as_dict() for one in chosen]}
    record |= {} if reasons is None else {"reasons": reasons.as_dict()}
    blocks: list[Any] = [
        f"{result.snapshot.machine.name} at {clock(queue.time)}, {counted(drawn.samples, 'simulation')} under {result.policy}"
    ]
    blocks += [pages.answer(result)] if asked.job is None and asked.user is None else []
    blocks += [pages.start_times_table(chosen[:MOST_ROWS], queue.time)]
    blocks += [pages.apart_table(apart[:MOST_ROWS])] if apart else []
    if len(chosen) > MOST_ROWS:
        blocks.append(f"and {len(chosen) - MOST_ROWS:,} more, which start later; --json and --report have all")
    blocks += [*(reasons.sentences if reasons is not None else ()), *caveats(result.caveats)]
    output.show(record | {"version": version()}, blocks, metrics=metrics)


def _try(queue: Snapshot, log: Workload, texts: list[str], rules: tuple[str | None, str | None], draws: Draws, output: Output) -> None:
    """Print when jobs would start that are not submitted yet; `rules`: the policy and the runtime predictor."""
    from dataclasses import asdict

    from walltime.provenance import version
    from walltime.slurm import try_jobs
    from walltime.slurm.starts.page import trials_table

    policy, predictor = rules
    with progress_bar(draws.samples, "simulations") as progress:
        result = try_jobs(queue, log, texts, policy=policy, predictor=predictor, draws=draws, progress=progress)
    about = {"machine": queue.machine.name, "time": queue.time} | asdict(draws) | {"policy": result.policy, "predictor": predictor}
    tried = {"trials": [one.as_dict() for one in result.trials], "caveats": list(result.caveats)}
    head = f"{queue.machine.name} at {clock(queue.time)}, {counted(draws.samples, 'simulation')} under {result.policy}"
    output.show(about | tried | {"version": version()}, [head, trials_table(result.trials, queue.time), *caveats(result.caveats)])


@manual(
    "guides/start-times",
    ("Add the outcomes of predictions, and report their quality.", "slurm score predictions --history jobs.txt.gz"),
    ("Print the report as JSON.", "slurm score predictions --json"),
)
def score(
    ledger: Annotated[Path, o.argument("The folder given to walltime slurm start-times --predictions.", "LEDGER")],
    *,
    history: Annotated[
        Path | None, history_option("First add the outcomes in this job log of the cluster, in sacct's format, to the ledger.")
    ] = None,
    reading: LogOptions,
    output: Output,
) -> None:
    """Report how good predicted start times were: the share of jobs within their intervals, and errors next to Slurm's own estimates."""
    from dataclasses import asdict

    from walltime.provenance import version
    from walltime.slurm import PredictionLedger
    from walltime.slurm.sidecar.advice import ANY_SIZE
    from walltime.slurm.starts.page import scores_table

    kept = PredictionLedger(ledger)
    if reading.procs is None:
        reading = replace(reading, procs=ANY_SIZE)  # the scores do not depend on the size of the machine
    card = kept.score(None if history is None else reading.load(history)[0])
    blocks: list[Any] = [f"{counted(card.predictions, 'prediction')}, {card.known:,} with a known start ({card.completed:,} new)"]
    blocks += [scores_table(card.scores)] if card.scores else []
    output.show(asdict(card) | {"version": version()}, blocks)
