"""`walltime slurm adjust`: the side-car that sets TimeMin of waiting jobs."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from walltime.cli import options as o
from walltime.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from walltime.slurm.sidecar.advice import History
    from walltime.slurm.sidecar.loop import Metrics
    from walltime.slurm.sidecar.report import Report
    from walltime.slurm.sidecar.round import Sidecar

ACT, BOUNDS, SEEN, GAIN = "Whether to act", "How far it may go", "What is seen of it", "What it gains"
PREDICTOR = "tang13:key=request,statistic=p95,window=3,weight=work,small=0.01"


def adjust(
    *,
    history: Annotated[
        Path | None, typer.Option("--history", metavar="LOG", help="The cluster's job log, to learn from; read again when it changes.")
    ] = None,
    predictor: Annotated[
        str, typer.Option("--predictor", help="tang13 with its options: key, statistic, window, threshold, least, weight, small.")
    ] = PREDICTOR,
    act: Annotated[bool, typer.Option("--act", help="Change jobs; without it nothing is changed.", rich_help_panel=ACT)] = False,
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", metavar="FOLDER", help="Where it notes what it changes, before; on a local disk.", rich_help_panel=ACT),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="One round, not one after the other.", rich_help_panel=ACT)] = False,
    every: Annotated[float, typer.Option("--every", metavar="SECONDS", help="From one round to the next.", rich_help_panel=ACT)] = 30.0,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="After which a command of Slurm is given up.", rich_help_panel=ACT)
    ] = 20.0,
    stop_file: Annotated[
        Path | None,
        typer.Option("--stop-file", metavar="FILE", help="As long as it exists, everything is taken back.", rich_help_panel=ACT),
    ] = None,
    self_test: Annotated[
        list[str] | None,
        typer.Option("--self-test", metavar="OPTION", help="A word for sbatch of the self-test, as --partition=x.", rich_help_panel=ACT),
    ] = None,
    spool: Annotated[
        Path | None,
        typer.Option(
            "--spool", metavar="FOLDER", help="Notes for the prolog, the second give-back; see --print-prolog.", rich_help_panel=ACT
        ),
    ] = None,
    need_prolog: Annotated[
        bool, typer.Option("--need-prolog", help="Do not adjust while the prolog does not work.", rich_help_panel=ACT)
    ] = False,
    floor: Annotated[int, typer.Option("--floor", metavar="MINUTES", help="Least TimeMin.", rich_help_panel=BOUNDS)] = 10,
    gain: Annotated[float, typer.Option("--gain", help="Largest TimeMin, as a part of the limit.", rich_help_panel=BOUNDS)] = 0.9,
    changes: Annotated[int, typer.Option("--changes", help="Most adjustments a minute.", rich_help_panel=BOUNDS)] = 60,
    share: Annotated[float, typer.Option("--share", help="Largest part of the waiting jobs.", rich_help_panel=BOUNDS)] = 0.5,
    account: Annotated[
        list[str] | None, typer.Option("--account", help="Only this account; repeat it for more.", rich_help_panel=BOUNDS)
    ] = None,
    partition: Annotated[
        list[str] | None, typer.Option("--partition", help="Only this partition; repeat it for more.", rich_help_panel=BOUNDS)
    ] = None,
    slip: Annotated[
        float,
        typer.Option(
            "--slip",
            metavar="PART",
            help="Part of its wait by which the reserved start of a queue's head may pass; then nothing is adjusted until it has started.",
            rich_help_panel=BOUNDS,
        ),
    ] = 0.5,
    overdue: Annotated[
        float,
        typer.Option(
            "--overdue",
            metavar="PART",
            help="Part of a partition that a user's jobs may hold beyond their TimeMin, over a week.",
            rich_help_panel=BOUNDS,
        ),
    ] = 0.01,
    misses: Annotated[
        int,
        typer.Option(
            "--misses",
            help="Jobs of a user that may outlive their TimeMin in a week before the next ones get a longer one.",
            rich_help_panel=BOUNDS,
        ),
    ] = 3,
    metrics: Annotated[
        Path | None,
        typer.Option("--metrics", metavar="FILE.prom", help="A file for node_exporter's textfile collector.", rich_help_panel=SEEN),
    ] = None,
    print_unit: Annotated[bool, typer.Option("--print-unit", help="Print units for systemd, and end.", rich_help_panel=SEEN)] = False,
    print_guard: Annotated[
        bool, typer.Option("--print-guard", help="Print the guard for job_submit.lua, and end.", rich_help_panel=SEEN)
    ] = False,
    print_prolog: Annotated[
        bool,
        typer.Option("--print-prolog", help="Print the script for PrologSlurmctld, for this --spool, and end.", rich_help_panel=SEEN),
    ] = False,
    print_alerts: Annotated[
        bool, typer.Option("--print-alerts", help="Print rules for Prometheus on the --metrics, and end.", rich_help_panel=SEEN)
    ] = False,
    print_dashboard: Annotated[
        bool, typer.Option("--print-dashboard", help="Print a dashboard for Grafana, and end.", rich_help_panel=SEEN)
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE.html",
            help="Simulate the log with and without the side-car, write a page of it and of the --ledger, and end.",
            rich_help_panel=GAIN,
        ),
    ] = None,
    cluster: Annotated[
        Path | None, typer.Option("--cluster", metavar="FILE", help="The machine and how it schedules.", rich_help_panel=GAIN)
    ] = None,
    policy: Annotated[
        str | None, typer.Option("--policy", help="Instead of the file's; easy where there is no file.", rich_help_panel=GAIN)
    ] = None,
    replications: Annotated[int, typer.Option("--replications", min=0, help="As of walltime what-if.", rich_help_panel=GAIN)] = 5,
    as_json: o.JsonOption = False,
) -> None:
    """Give waiting jobs a TimeMin from the accuracy of their users' earlier limits, so that backfill plans with realistic walltimes.

    Without --act it only says what it would do. No job ends before its user's limit: under time_min_as_soft_limit Slurm keeps the limit,
    and elsewhere the side-car raises the limit of what backfill has shortened. Read the guide before using --act.
    """
    if print_guard:
        from walltime.slurm.sidecar.selftest import GUARD

        typer.echo(GUARD, nl=False)
        return
    if print_alerts or print_dashboard:
        from importlib.resources import files

        typer.echo((files("walltime.slurm.sidecar") / ("alerts.yml" if print_alerts else "dashboard.json")).read_text(), nl=False)
        return
    if print_prolog:
        from walltime.slurm.sidecar.prolog import script

        if spool is None:
            raise PolicyError("the prolog reads a folder that the side-car writes; name it with --spool")
        typer.echo(script(spool), nl=False)
        return
    if print_unit:
        from walltime.slurm.sidecar.systemd import service

        written = [spool, None if metrics is None else metrics.parent, ledger]
        typer.echo(service(_words(), "walltime", [str(path.absolute()) for path in written if path is not None]), nl=False)
        return
    from walltime.cli import common
    from walltime.slurm.sidecar.rules import Bounds

    bounds = Bounds(
        every, floor, gain, changes, share, frozenset(account or ()), frozenset(partition or ()), slip=slip, overdue=overdue, misses=misses
    )
    if history is None:
        raise PolicyError(
            "there is nothing to learn from; name the cluster's job log with --history, as walltime slurm sacct-command gets it"
        )
    if report is not None:
        if act or once or metrics is not None or spool is not None or as_json:
            raise PolicyError("--report writes a page and ends; leave out what is for a side-car that runs, and --json")
        _report(report, history, _tang13(predictor), bounds, ledger, cluster, policy, replications)
        return
    if cluster is not None or policy is not None:
        raise PolicyError("--cluster and --policy are for the simulations of --report")
    if act and ledger is None:
        raise PolicyError("--act needs a --ledger, in which it is noted what is changed, before it is changed")
    if not act and ledger is not None:
        raise PolicyError("a --ledger is for --act; leave it out to see what would be done")
    if spool is not None and not act:
        raise PolicyError("a --spool is for --act; leave it out to see what would be done")
    if need_prolog and spool is None:
        raise PolicyError("--need-prolog needs a --spool, from which the prolog reads")
    if as_json and not once:
        raise PolicyError("--json is for one round; add --once")
    if not 1 <= timeout <= 60:
        raise PolicyError(f"a command of Slurm may take 1 to 60 s, not {timeout:g}")
    if metrics is not None and metrics.suffix != ".prom":
        raise PolicyError(f"the metrics go into a file whose name ends in .prom, not {metrics.name}")
    if metrics is not None and not act:
        common.check_output(metrics, (".prom",))
    _run(
        _tang13(predictor), history, bounds, ledger, once, timeout, stop_file, tuple(self_test or ()), metrics, as_json, spool, need_prolog
    )


def _report(
    path: Path, log: Path, predictor: Any, bounds: Any, ledger: Path | None, cluster: Path | None, policy: str | None, replications: int
) -> None:
    """Write the page: what happened by the ledger, and what is gained by simulation."""
    from walltime.cli import common
    from walltime.cli.groups import Reading
    from walltime.machine import read_machine
    from walltime.report.adjust import answer, recorded, sentences, write_adjust_report
    from walltime.slurm.sidecar.ledger import read_events
    from walltime.slurm.sidecar.review import gain, what_happened, with_delays
    from walltime.whatif import runs

    common.check_output(path, (".html", ".htm"))
    events = None if ledger is None else read_events(ledger)
    machine = None if cluster is None else read_machine(cluster)
    jobs, _ = Reading().load(log, machine)
    with common.progress_bar(runs(1, replications), "simulations") as progress:
        world = gain(jobs, predictor, bounds.floor, bounds.gain, machine, policy, replications, progress)
    found = None if events is None else with_delays(what_happened(events, jobs), jobs, world.machine, policy)
    write_adjust_report(path, found, world, jobs, settings={"command": ["walltime", *sys.argv[1:]]})
    for sentence in [*([] if found is None else sentences(found)), answer(world), recorded(world)]:
        common.print_text(sentence)
    typer.echo(f"report written to {path}")


def _tang13(text: str) -> Any:
    from walltime.predictors import Tang13
    from walltime.predictors.registry import parse_predictor

    found = parse_predictor(text)
    if not isinstance(found, Tang13):
        raise PolicyError(f"{text} is no form of tang13, which is what the side-car uses; write {PREDICTOR}, say")
    return found


def _run(
    predictor: Any,
    log: Path,
    bounds: Any,
    ledger: Path | None,
    once: bool,
    timeout: float,
    stop_file: Path | None,
    self_test: tuple[str, ...],
    metrics: Path | None,
    as_json: bool,
    spool: Path | None,
    need_prolog: bool,
) -> None:
    import os
    from pwd import getpwuid

    from walltime.errors import OutputError
    from walltime.slurm.client import Client
    from walltime.slurm.records import SlurmError
    from walltime.slurm.sidecar.advice import NOT_READ, History
    from walltime.slurm.sidecar.ledger import open_ledger
    from walltime.slurm.sidecar.loop import Metrics, Signals, SystemClock, Systemd, keep_on
    from walltime.slurm.sidecar.prolog import Spool
    from walltime.slurm.sidecar.round import Sidecar

    def say(text: str) -> None:
        with suppress(OSError, ValueError):  # nobody who listens, or not in this alphabet, must not end it
            typer.echo(" ".join("".join(c if c.isprintable() else " " for c in text).split()), err=as_json)
            sys.stdout.flush()

    # The ledger first: what may be short is looked after whatever else is missing.
    book = None if ledger is None else open_ledger(ledger, say)
    history = History(predictor, log)
    if book is None:
        say(f"learned from {history.read().jobs:,} jobs")
    else:
        history.refresh()
    systemd = Systemd(os.environ.get("NOTIFY_SOCKET"))
    signals = None if once else Signals()
    shown = None if metrics is None else Metrics(metrics, say)
    folder, spool_wrong = None, ""
    try:
        folder = None if spool is None else Spool(spool)
    except OutputError as error:
        spool_wrong = str(error)
    try:

        def stopped() -> bool:
            try:
                there = stop_file is not None and stop_file.exists()
            except OSError:  # nobody can tell
                there = True
            return there or (signals is not None and signals.asked())

        def blocked() -> str:
            return spool_wrong or ("" if shown is None else shown.wrong) or ("" if history.missing == NOT_READ else history.missing)

        sidecar = Sidecar(
            Client(timeout=timeout, alive=systemd.alive),
            history.predict,
            bounds,
            SystemClock(),
            getpwuid(os.geteuid()).pw_name,
            say,
            book,
            stopped=stopped,
            test_options=self_test,
            stays=not once,
            spool=folder,
            needs_prolog=need_prolog,
            blocked=blocked,
        )
        done = _teller(sidecar, history, shown, say)
        if signals is None:
            report = sidecar.once()
            if not report.answered:
                raise SlurmError(report.why)
            _tell_once(report, as_json, done, say)
        else:
            keep_on(sidecar, bounds.every, signals.asked, signals.wait, done, systemd.tell)
    finally:
        if signals is not None:
            signals.restore()
        if book is not None:
            book.close()


def _teller(sidecar: Sidecar, history: History, metrics: Metrics | None, say: Callable[[str], None]) -> Callable[[Report], None]:
    """What is done after each round: one line if it differs from the last one, the metrics, and a look at the log."""
    from walltime.slurm.sidecar.loop import describe

    last = ""

    def done(report: Report) -> None:
        nonlocal last
        line = describe(report)
        if line != last:
            say(line)
        last = line
        if metrics is not None:
            metrics.write(report, sidecar)
        wrong = history.refresh()
        if wrong:
            say(f"the job log could not be read: {wrong}")

    return done


def _tell_once(report: Report, as_json: bool, done: Callable[[Report], None], say: Callable[[str], None]) -> None:
    """Print a single round, with the jobs that would be adjusted."""
    done(report)
    if as_json:
        from dataclasses import asdict

        from walltime.cli import common
        from walltime.provenance import version

        common.print_json({**asdict(report), "version": version()})
        return
    for key, minutes in report.wanted.items():
        say(f"job {key}: TimeMin {minutes} minutes")
    for reason, count in report.reasons.items():
        say(f"left alone: {count} ({reason})")


def _words() -> list[str]:
    """The command line, without --print-unit, with whole paths."""
    import shutil

    program = shutil.which(sys.argv[0]) or "/usr/local/bin/walltime"
    words = [program, *(word for word in sys.argv[1:] if word != "--print-unit")]
    paths = ("--history", "--ledger", "--stop-file", "--metrics", "--spool")
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in paths and equals:
            words[place] = f"{name}={Path(value).absolute()}"
        elif words[place - 1] in paths:
            words[place] = str(Path(word).absolute())
    return words
