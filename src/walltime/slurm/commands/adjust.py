"""`walltime slurm adjust`, the side-car that sets TimeMin of waiting jobs, and `what-happened`, a report on its adjustments."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, make_dataclass, replace
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer

from walltime.cli import options as o
from walltime.cli.command_lines import command_line, lasting_words, program
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions
from walltime.cli.output import PageOutput, caveats
from walltime.errors import PolicyError
from walltime.slurm.commands.starts import history_option, unix_time
from walltime.slurm.sidecar.settings import SETTINGS_FILE, SidecarSettings
from walltime.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from walltime.predictors import Tang13
    from walltime.slurm.sidecar.advice import Advice
    from walltime.slurm.sidecar.report import Report
    from walltime.slurm.squeue_fields import QueueJob
    from walltime.workload.drops import Drop

ACTION, LIMITS = "Action", "Safety limits"
INSTALLED = {"print_guard": "job_submit.lua", "print_alerts": "alerts.yml", "print_dashboard": "dashboard.json"}
"""Options that print a file for operators, and the file's name."""
PREDICTOR = "tang13:key=request,statistic=p95,window=3,weight=work,small=0.01"


def _options() -> type:
    """Return a class with an option for each setting of the side-car; all are None by default."""
    options: list[tuple[str, Any, Any]] = []
    hints = get_type_hints(SidecarSettings, include_extras=True)
    for field in fields(SidecarSettings):
        kind, key = get_args(hints[field.name])
        kind = list[str] if get_origin(kind) is tuple else kind
        usual = "" if field.default in ((), False) else f" Default: {field.default:g}."
        option = o.option(f"{key.meaning}{usual}", f"--{field.name.replace('_', '-')}", group=LIMITS, advanced=True)
        options.append((field.name, Annotated[kind | None, option], None))
    return make_dataclass("Options", options, frozen=True)


Options: Any = _options()


@dataclass(frozen=True)
class Places:
    """The inputs and outputs of the side-car."""

    history: Annotated[
        Path | None,
        history_option("Learn from this job log of the cluster, as sacct prints it; the file is read again whenever it changes."),
    ] = None
    ledger: Path | None = o.field(
        None,
        "Record each change before it is made in this folder, the ledger, on a local disk.",
        group=ACTION,
        metavar="FOLDER",
        callback=o.written,
    )
    stop_file: Path | None = o.field(
        None, "Withdraw all changes, and make no new ones, while this file exists.", group=ACTION, metavar="FILE"
    )
    spool: Path | None = o.field(
        None,
        "Write notes for the prolog, which restores limits as well, to this folder; see --print-prolog.",
        group=ACTION,
        advanced=True,
        metavar="FOLDER",
        callback=o.written,
    )
    metrics: Path | None = o.field(None, "Write metrics for Prometheus to this file (.prom).", metavar="FILE.prom", callback=o.written)


@dataclass(frozen=True)
class OutputOptions:
    """The texts for operators that are printed instead of running."""

    print_unit: bool = o.field(False, "Print units for systemd with these options, and exit.", advanced=True)
    print_guard: bool = o.field(False, "Print the guard for job_submit.lua, and exit.", advanced=True)
    print_prolog: bool = o.field(False, "Print the script for PrologSlurmctld with this --spool, and exit.", advanced=True)
    print_alerts: bool = o.field(False, "Print Prometheus alert rules for --metrics, and exit.", advanced=True)
    print_dashboard: bool = o.field(False, "Print a Grafana dashboard for --metrics, and exit.", advanced=True)

    def text(self, places: Places) -> str:
        """Return the text to print; empty without such an option."""
        from walltime.slurm.sidecar import installed_text

        for option, name in INSTALLED.items():
            if getattr(self, option):
                return installed_text(name)
        if self.print_prolog:
            from walltime.slurm.sidecar.prolog import script

            if places.spool is None:
                raise PolicyError("--print-prolog needs the spool folder of the side-car; add --spool FOLDER")
            return script(places.spool)
        if self.print_unit:
            from walltime.slurm.sidecar.host import systemd_units

            written = [places.spool, None if places.metrics is None else places.metrics.parent, places.ledger]
            return systemd_units(_command_line(), "walltime", [str(path.absolute()) for path in written if path is not None])
        return ""


@dataclass(frozen=True)
class Gain:
    """The simulation of the side-car's gain."""

    report: Path | None = o.field(
        None,
        "Simulate the log with and without the side-car, include what --ledger recorded, write a page (.html or .pdf), and exit.",
        "--report",
        metavar="FILE",
        callback=o.writable(*o.PAGE),
    )
    machine: o.MachineOption = None
    procs: o.ProcsOption = None
    policy: str | None = o.field(
        None,
        f"Simulate this policy for --report: {o.POLICIES}. Default: the machine file's policy, else easy.",
        "--policy",
        group=o.SCHEDULER,
        advanced=True,
    )
    replications: int = o.field(
        5,
        "Simulate N copies of the log for --report with submissions shifted by up to 30 s, for the intervals; 0 for none.",
        "--replications",
        group=o.RUNS,
        advanced=True,
        min=0,
    )


@dataclass(frozen=True)
class ActionOptions:
    """Whether jobs are changed, and how often."""

    act: bool = o.field(False, "Change jobs; without this option, the changes are only printed.", group=ACTION)
    once: bool = o.field(False, "Run one round and exit, instead of running rounds continuously.", group=ACTION)


@manual(
    "guides/adjust",
    ("Print what one round would change, and change nothing.", "slurm adjust --history jobs.txt.gz --once"),
    ("Simulate the gain from the side-car.", "slurm adjust --history jobs.txt.gz --machine machine.toml --report gain.html"),
)
def adjust(
    *,
    places: Places,
    predictor: Annotated[
        str, o.option("Predict runtimes with tang13 and these options.", "--predictor", group=o.SCHEDULER, metavar="NAME")
    ] = PREDICTOR,
    acting: ActionOptions,
    settings: Annotated[
        Path | None,
        o.option("Read the safety limits from a TOML file; options of the command line take precedence.", group=LIMITS, metavar="FILE"),
    ] = None,
    options: Options,
    prints: OutputOptions,
    gain: Gain,
    as_json: o.JsonOption = False,
) -> None:
    """Set the TimeMin of waiting jobs from the accuracy of their users' earlier limits, so that backfill plans with realistic walltimes.

    This is the side-car. Without --act it only prints what it would do. No job ends before its user's limit: under time_min_as_soft_limit
    Slurm keeps the limit, and elsewhere the side-car restores the limits that backfill has shortened, unless it or slurmctld is down for
    longer than the smallest TimeMin. Read the guide before you use --act.
    """
    if text := prints.text(places):
        typer.echo(text, nl=False)
        return
    if places.history is None:
        raise PolicyError("the side-car needs a log to learn from; add --history FILE, the output of walltime slurm sacct-command")
    chosen = _settings(settings, options)
    _check(places, acting, chosen, gain, as_json)
    if gain.report is not None:
        _report(gain.report, places, _tang13(predictor), chosen, gain)
    else:
        _run(_tang13(predictor), places, chosen, acting.once, as_json)


def _check(places: Places, acting: ActionOptions, settings: SidecarSettings, gain: Gain, as_json: bool) -> None:
    """Raise PolicyError for the first combination of options that is not allowed."""
    if gain.report is not None:
        if acting.act or acting.once or places.metrics is not None or places.spool is not None or as_json:
            raise PolicyError("--report writes a page and exits; leave out --json and the options of the running side-car")
        return
    metrics, simulated = places.metrics, {gain.machine, gain.procs, gain.policy} != {None}
    for wrong, why in (
        (simulated, "--machine, --procs and --policy apply only to the simulations of --report; add --report or leave them out"),
        (acting.act and places.ledger is None, "--act needs --ledger FOLDER, where each change is recorded before it is made"),
        (not acting.act and places.ledger is not None, "--ledger is used only with --act; without --act, leave it out"),
        (not acting.act and places.spool is not None, "--spool is used only with --act; without --act, leave it out"),
        (settings.need_prolog and places.spool is None, "--need-prolog needs --spool FOLDER, which the prolog reads"),
        (as_json and not acting.once, "--json prints a single round; add --once"),
        (metrics and metrics.suffix != ".prom", f"{metrics and metrics.name}: the file of --metrics must have the extension .prom"),
    ):
        if wrong:
            raise PolicyError(why)
    if metrics is not None and not acting.act:
        o.check_output(metrics, (".prom",))


def _settings(path: Path | None, options: Any) -> SidecarSettings:
    given = {field.name: getattr(options, field.name) for field in fields(options)}
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items() if value is not None}
    if path is None:
        return SidecarSettings(**given)
    content = SETTINGS_FILE.content(SETTINGS_FILE.text(path), str(path))
    return SETTINGS_FILE.value(content | given, str(path))


def _report(path: Path, places: Places, predictor: Tang13, settings: SidecarSettings, gain: Gain) -> None:
    """Write the page: the recorded effects of the ledger, and the simulated gain."""
    from walltime.cli import output
    from walltime.machine import read_machine
    from walltime.report.html import write_page
    from walltime.slurm.sidecar.ledger import read_events
    from walltime.slurm.sidecar.page import adjust_page, calibration_sentence, gain_sentence, review_sentences
    from walltime.slurm.sidecar.review import simulate_gain, what_happened, with_delays
    from walltime.whatif import runs

    assert places.history is not None
    events = None if places.ledger is None else read_events(places.ledger)
    machine = None if gain.machine is None else read_machine(gain.machine)
    jobs, _ = LogOptions(procs=gain.procs).load(places.history, machine)
    with output.progress_bar(runs(1, gain.replications), "simulations") as progress:
        world = simulate_gain(jobs, predictor, settings, machine, gain.policy, gain.replications, progress)
    review = None if events is None else with_delays(what_happened(events, jobs), jobs, world.machine, gain.policy)
    write_page(path, adjust_page(review, world, jobs, {"command": command_line()}))
    output.report_on(world.today.workload)
    sentences = [*([] if review is None else review_sentences(review)), gain_sentence(world), calibration_sentence(world)]
    output.Output().show({}, sentences, report=path)


def _tang13(text: str) -> Tang13:
    from walltime.predictors import Tang13
    from walltime.predictors.registry import parse_predictor

    predictor = parse_predictor(text)
    if not isinstance(predictor, Tang13):
        raise PolicyError(f"{text} is not a variant of tang13, the predictor of the side-car; use one such as {PREDICTOR}")
    return predictor


def _run(predictor: Tang13, places: Places, settings: SidecarSettings, once: bool, as_json: bool) -> None:
    import os
    from pwd import getpwuid

    from walltime.errors import OutputError
    from walltime.slurm.client import Client
    from walltime.slurm.records import SlurmError
    from walltime.slurm.sidecar.advice import NOT_READ, LogAdvice
    from walltime.slurm.sidecar.host import Host, Signals, SystemClock, Systemd
    from walltime.slurm.sidecar.ledger import open_ledger
    from walltime.slurm.sidecar.loop import run_rounds
    from walltime.slurm.sidecar.metrics import Metrics
    from walltime.slurm.sidecar.prolog import Spool
    from walltime.slurm.sidecar.round import Sidecar

    say = partial(_say, as_json)
    # the ledger comes first: short limits must be restored even if other files are missing
    assert places.history is not None
    ledger = None if places.ledger is None else open_ledger(places.ledger, say)
    history = LogAdvice(predictor, places.history)
    if ledger is None:
        learned = history.read().jobs
        for sentence in history.left_out():
            say(sentence)
        say(f"read {counted(learned, 'job')}")
    else:
        history.refresh()
    systemd = Systemd(os.environ.get("NOTIFY_SOCKET"))
    signals = None if once else Signals()
    metrics = None if places.metrics is None else Metrics(places.metrics, say)
    spool, spool_wrong = None, ""
    try:
        spool = None if places.spool is None else Spool(places.spool)
    except OutputError as error:
        spool_wrong = str(error)

    def stopped() -> bool:
        try:
            there = places.stop_file is not None and places.stop_file.exists()
        except OSError:  # unknown: stopping is safe
            there = True
        return there or (signals is not None and signals.stop_requested())

    def blocked() -> str:
        return spool_wrong or ("" if metrics is None else metrics.wrong) or ("" if history.missing == NOT_READ else history.missing)

    last: list[str] = []

    def after_round(report: Report) -> None:
        """Print the jobs left out of the log and the lines that changed since the last round; write the metrics and read the log."""
        nonlocal last
        for sentence in history.left_out():
            say(sentence)
        lines, now = [report.line()], sidecar.clock.time()
        if ledger is None:
            lines += _dry_sentences(report, sidecar.waiting(), history.advice, predictor, settings, now)
        if lines != last:
            for line in lines:
                say(line)
        last = lines
        if metrics is not None:
            metrics.write(report, sidecar)
        if wrong := history.refresh():
            say(f"the job log could not be read: {wrong}")

    try:
        host = Host(SystemClock(), getpwuid(os.geteuid()).pw_name, say, stopped, blocked, stays=not once)
        sidecar = Sidecar(
            Client(timeout=settings.timeout, alive=partial(systemd.notify, "WATCHDOG=1")), history.predict, settings, host, ledger, spool
        )
        if signals is None:
            report = sidecar.once()
            if not report.answered:
                raise SlurmError(report.why)
            after_round(report)
            _show(report, as_json, say, [] if history.advice is None else history.advice.learned.origin.drops)
        else:
            run_rounds(sidecar, settings.every, signals.stop_requested, signals.wait, after_round, systemd.notify)
    finally:
        if signals is not None:
            signals.restore()
        if ledger is not None:
            ledger.close()


def _dry_sentences(
    report: Report, jobs: Mapping[str, QueueJob], advice: Advice | None, predictor: Tang13, settings: SidecarSettings, now: float
) -> Iterator[str]:
    """Yield sentences on the jobs that would and would not be adjusted, by partition, and on options that would change this."""
    from walltime.slurm.sidecar.measures import class_sentences, measures, measures_sentence

    yield from class_sentences(report, jobs, predictor.min_jobs)
    if advice is not None and report.unadjusted:
        found = measures([jobs[key] for key in report.unadjusted], advice, predictor, settings, now)
        yield measures_sentence(found, len(report.unadjusted))


def _say(as_json: bool, text: str) -> None:
    with suppress(OSError, ValueError):  # a closed or limited terminal must not end the side-car
        typer.echo(" ".join("".join(c if c.isprintable() else " " for c in text).split()), err=as_json)
        sys.stdout.flush()


def _show(report: Report, as_json: bool, say: Callable[[str], None], drops: Iterable[Drop]) -> None:
    """Print a single round with the jobs that would be adjusted; `drops`: the jobs of the log that were left out."""
    if as_json:
        from walltime.cli import output
        from walltime.provenance import version
        from walltime.workload.drops import left_out

        output.print_json({**asdict(report), "left_out": left_out(drops), "version": version()})
        return
    for key, minutes in report.wanted.items():
        say(f"job {key}: TimeMin {minutes} min")
    for reason, count in report.reasons.items():
        say(f"left alone: {count} ({reason})")


def _command_line() -> list[str]:
    paths = ("--settings", *(f"--{field.name.replace('_', '-')}" for field in fields(Places)))
    return [program(), *lasting_words(sys.argv[1:], ("--print-unit",), paths)]


TIMES = "(UTC), as in 2026-01-31T12:00:00 or in seconds since 1970. Default: the whole ledger."


@dataclass(frozen=True)
class Span:
    """The period of the report."""

    since: str | None = o.field(None, f"Report from this time on {TIMES}", group=o.JOBS, metavar="TIME")
    until: str | None = o.field(None, f"Report until this time {TIMES}", group=o.JOBS, metavar="TIME")


@manual(
    "guides/adjust-operate",
    ("Report on the adjusted jobs of a ledger.", "slurm what-happened jobs.txt.gz --ledger ledger"),
    ("Simulate as well which jobs were delayed.", "slurm what-happened jobs.txt.gz --ledger ledger --machine machine.toml"),
)
def what_happened(
    trace: Annotated[Path, o.argument("The cluster's job log from sacct, up to the end of the adjusted jobs.", "LOG")],
    *,
    ledger: Annotated[Path, o.option("Read the side-car's ledger from this folder.", group=o.INPUT, metavar="FOLDER")],
    span: Span,
    machine_file: o.MachineOption = None,
    policy: o.SitePolicyOption = None,
    reading: LogOptions,
    output: PageOutput,
) -> None:
    """Report the outcome of each job that walltime slurm adjust has adjusted, from its ledger and the job log.

    The report shows first whether any job ended before its user's limit; then the jobs that backfill started and the jobs they overtook,
    the runtimes against TimeMin, prediction and limit, and how late limits were restored. With --machine it also shows which jobs were
    delayed by adjusted jobs that ran longer than their TimeMin; this part is simulated.
    """
    from walltime.machine import read_machine
    from walltime.provenance import version
    from walltime.slurm.sidecar import page as pages
    from walltime.slurm.sidecar.advice import ANY_SIZE
    from walltime.slurm.sidecar.ledger import read_events
    from walltime.slurm.sidecar.review import what_happened as find, with_delays

    machine = None if machine_file is None else read_machine(machine_file)
    first, last = (None if time is None else float(unix_time(time, UTC)) for time in (span.since, span.until))
    events = read_events(ledger)
    if machine is None and reading.procs is None:
        reading = replace(reading, procs=ANY_SIZE)  # no recorded value depends on it
    jobs, _ = reading.load(trace, machine)
    review = find(events, jobs, first, last)
    if machine is not None:
        review = with_delays(review, jobs, machine, policy)
    if output.report is not None:
        output.write(pages.adjust_page(review, None, jobs, {"command": command_line()}))
    record = review.as_dict() | {"report": output.report, "version": version()}
    output.show(record, [*pages.review_sentences(review), *pages.review_tables(review), *caveats(list(review.notes))])
