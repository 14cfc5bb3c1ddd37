"""`walltime report`: report on the last week, or on another period of a recorded schedule."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from walltime.cli import options as o
from walltime.cli.command_lines import command_line, lasting_words, program
from walltime.cli.energy_options import EnergyOptions
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, machine_in
from walltime.cli.output import Output, caveats, note, print_json, report_on
from walltime.errors import PolicyError
from walltime.files import whole_file

if TYPE_CHECKING:
    from walltime.weekly_report.period import Period
    from walltime.workload import Workload

FOLDER = "/var/lib/walltime-report"


@dataclass(frozen=True)
class Span:
    """Options for the reported period, its comparison with earlier ones, and its outputs."""

    window: str | None = o.field(
        None,
        "Report on this span: days of the log as in 30d:37d, or dates as in 2026-01-05:2026-01-12. Default: --week.",
        "--window",
        group=o.JOBS,
        metavar="BEGIN:END",
    )
    week: bool = o.field(False, "Report on the last whole week, Monday to Sunday in the site's time zone.", group=o.JOBS)
    store: Path | None = o.field(
        None,
        "Keep the numbers of each week in this folder, so that later reports can compare with weeks before the start of the log.",
        metavar="FOLDER",
        callback=o.written,
    )
    archive: Path | None = o.field(
        None,
        "Keep a page of each week in this folder, with an index of all weeks. This folder is also the default of --store.",
        metavar="FOLDER",
        callback=o.written,
    )
    mail: str | None = o.field(
        None,
        "Send the text of an e-mail about the report to the standard input of this command; needs --report or --archive.",
        "--mail-command",
        metavar="COMMAND",
        advanced=True,
    )
    metrics: o.MetricsOption = None
    verbose: o.VerboseOption = False
    timer: bool = o.field(
        False,
        "Print a systemd timer and a crontab line that write this report every Monday with the other given options, and exit.",
        "--print-timer",
        advanced=True,
    )
    print_dashboard: bool = o.field(False, "Print a Grafana dashboard for --metrics, and exit.", advanced=True)


@manual(
    "guides/waits",
    ("Report on the last whole week of a log.", "report jobs.txt.gz --machine machine.toml --report week.html"),
    ("Report on a span of days of any log with waits.", "report KTH-SP2 --window 100d:107d"),
)
def report(
    trace: Annotated[Path | None, o.argument("A job log that records wait times, plain or compressed.", "LOG")] = None,
    *,
    span: Span,
    machine_file: o.MachineOption = None,
    reading: LogOptions,
    energy: EnergyOptions,
    page: o.ReportOption = None,
    output: Output,
) -> None:
    """Report on a week: waits by group, utilization, causes of waiting, lost hours, and changes since earlier weeks."""
    from walltime.cli.table import PARTS, module_of
    from walltime.provenance import version
    from walltime.report.html import write_page
    from walltime.weekly_report import archive
    from walltime.weekly_report.page import period_page, period_record, period_tables

    if span.print_dashboard:
        typer.echo(archive.dashboard(), nl=False)
        return
    if span.mail is not None and page is None and span.archive is None:
        raise PolicyError("an e-mail needs a page; add --report or --archive", "missing_page")
    span = replace(span, store=span.store or span.archive)
    if span.timer:
        print_timer([*sys.argv[1:], *(["LOG"] if trace is None else [])], {"--report": page, "--store": span.store}, output)
        return
    if trace is None:
        raise PolicyError("a log is missing; give one, such as jobs.txt.gz from walltime slurm sacct-command")
    workload, numbers = read_period(trace, reading, machine_file, span)
    part: Any = module_of(PARTS["report"])
    waste = None
    if part is not None:
        power = part.Power(machine_in(machine_file), energy.kwh_price, energy.carbon_of(workload))
        waste = part.waste_of_period(numbers.workload, numbers.numbers.begin, numbers.numbers.end, power)
    more_sections = [part.waste_section(waste)] if waste is not None and (waste.has_use or waste.shows_energy) else []
    made = period_page(numbers, {"command": command_line()}, more_sections)
    if page is not None:
        write_page(page, made)
    index = None if span.archive is None else archive.write_archive(span.archive, made, numbers)
    if span.metrics is not None:
        with whole_file(span.metrics) as file:
            file.write(archive.period_metrics(numbers).encode())
    if span.mail is not None and (shown := page or index) is not None:
        archive.send_mail(span.mail, made, shown)
    head = {"trace": workload.origin.name, "sha256": workload.origin.sha256, "procs": workload.machine_procs}
    record: dict[str, Any] = {**head, **period_record(numbers), "waste": None if waste is None else waste.as_dict()}
    record |= {"version": version(), "report": page}
    wasted = [block for one in more_sections for block in one.blocks if block is not None][: None if span.verbose else 1]
    more = [] if span.verbose else ["For groups, longest waits and hours by user, add --verbose or --report page.html."]
    output.show(
        record, [*made.answer, *period_tables(numbers, span.verbose), *wasted, *caveats([*made.caveats, *more])], report=page, archive=index
    )


def read_period(trace: Path, reading: LogOptions, machine_file: Path | None, span: Span) -> tuple[Workload, Period]:
    """Return the log and the requested period with the stored earlier periods, after storing new ones; raises PolicyError."""
    from walltime.machine import with_omissions
    from walltime.weekly_report.period import last_week, period, read_trend, write_trend
    from walltime.workload.filters import span_of

    if span.week and span.window is not None:
        raise PolicyError("--week and --window cannot be combined; leave one out")
    machine = machine_in(machine_file)
    workload = with_omissions(reading.load(trace, machine)[0], machine)
    between = last_week(workload) if span.window is None else span_of(workload, span.window)
    if span.window is None and between[1] > workload.submit[-1] and workload.origin.unix_start_time is not None:
        note("the log has no whole week, Monday to Sunday; the report covers the whole log")
    numbers = period(workload, *between, machine)
    report_on(numbers.workload)
    if span.store is not None:
        clock = workload.origin.unix_start_time or 0
        write_trend(span.store, [*numbers.before, numbers.numbers], clock)
        length, begin = numbers.numbers.end - numbers.numbers.begin, numbers.numbers.begin
        kept = [one for one in read_trend(span.store, clock) if one.end <= begin and abs(one.end - one.begin - length) <= 3600]
        numbers = replace(numbers, before=kept)
    return workload, numbers


def print_timer(words: Sequence[str], written: Mapping[str, Path | None], output: Output) -> None:
    """Print the systemd units and the line for cron as text, or as a JSON object with the content of each file.

    `words`: this command line; the command of the timer keeps its options. `written`: its output files, by default in `FOLDER`.
    """
    kept = lasting_words(words, ("--print-timer", "--json", "--week", "--window="), tuple(written))
    usual = [word for name, value in (("--store", "weeks"), ("--report", "week.html")) if written[name] is None for word in (name, value)]
    line = f"cd {FOLDER} && {shlex.join([program(), *kept, '--week', *usual])}"
    folders = {FOLDER: None} | {str(path.absolute().parent): None for path in written.values() if path is not None}
    quoted = line
    for plain, special in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        quoted = quoted.replace(plain, special)
    units = (resources.files("walltime.cli") / "report.units").read_text(encoding="utf-8")
    text = units.format(
        systemd=quoted, cron=line.replace("%", "\\%"), folders=" ".join(f'"{one}"' if " " in one else one for one in folders)
    )
    if not output.as_json:
        typer.echo(text, nl=False)
        return
    service, timer, _, cron = (part.split("\n", 1) for part in ("\n" + text).split("\n# ")[1:])
    print_json({Path(name).name: content.strip() + "\n" for name, content in (service, timer)} | {"cron": cron[0]})
