"""Shared by several commands: read a log with its counts, run with a progress bar, print numbers and tables."""

from __future__ import annotations

import json
import math
import re
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from walltime.cli import bars
from walltime.errors import OutputError, PolicyError, WorkloadError

if TYPE_CHECKING:
    from datetime import tzinfo

    import polars as pl
    from rich.console import Console

    from walltime.estimates import EstimateModel
    from walltime.machine import Machine
    from walltime.policy import Dialect
    from walltime.schedule import Schedule
    from walltime.simulation import Fairness, Spread
    from walltime.simulation.specification import Scheduler
    from walltime.workload import Workload
    from walltime.workload.models.model import WorkloadModel


def load(trace: Path, **options: Any) -> tuple[Workload, float]:
    """Read a log; reports dropped records on standard error, and returns the workload and the seconds taken."""
    from walltime.logs import read

    begin = time.perf_counter()
    workload = read(trace, **options)
    dropped = workload.origin.dropped
    if dropped:
        rules = ", ".join(f"{count:,} {rule}" for rule, count in dropped.items())
        note(f"{sum(dropped.values()):,} of {workload.origin.records:,} records dropped: {rules}; see walltime info")
    return workload, time.perf_counter() - begin


def make_up(model: WorkloadModel, jobs: int, procs: int, load: float | None, seed: int, users: int | None = None) -> Workload:
    """Generate a workload, with users if there are to be some; errors are errors of the call, as there is no data yet."""
    from walltime.workload.users import with_users

    try:
        made = model.generate(jobs, procs, load, seed)
        return made if users is None else with_users(made, users, seed)
    except WorkloadError as error:
        raise PolicyError(str(error)) from error


def check_output(path: Path, endings: Sequence[str]) -> None:
    """Raise OutputError, before any work is done, if a file cannot be written."""
    from walltime.files import printable

    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            return  # a device or a pipe
    except OSError as error:
        raise OutputError(f"{printable(path)}: cannot be written ({(error.strerror or str(error)).lower()}); name another place") from error
    if not path.name.lower().endswith(tuple(endings)):
        raise OutputError(f"{printable(path)}: can be written as {', '.join(endings)}; name a file with one of these extensions")
    if path.is_dir():
        raise OutputError(f"{printable(path)}: cannot be written (it is a directory); name another place")
    if not path.absolute().parent.is_dir():
        raise OutputError(
            f"{printable(path)}: cannot be written (there is no folder {printable(path.absolute().parent)}); name another place"
        )


SECRET = "--anonymise"
"""The option whose value may be a key."""


def command_line(words: Sequence[str] | None = None) -> list[str]:
    """The command line as pages show it: a key that stands in it is replaced by KEY; `words`: by default those of this command.

    >>> command_line(["estimates", "log", "--anonymise", "secret"]), command_line(["info", "log", "--anonymise=@key.txt"])
    (['walltime', 'estimates', 'log', '--anonymise', 'KEY'], ['walltime', 'info', 'log', '--anonymise=@key.txt'])
    """
    shown, before = ["walltime"], ""
    for word in sys.argv[1:] if words is None else words:
        option, equals, value = word.partition("=")
        if before == SECRET:
            shown.append(hidden_key(word))
        else:
            shown.append(f"{option}={hidden_key(value)}" if option == SECRET and equals else word)
        before = word
    return shown


def hidden_key(text: str) -> str:
    """The value of --anonymise as it can be shown: where the key is, but not the key."""
    return text if text.startswith(("@", "env:")) else "KEY"


def note_cut_short(workload: Workload, model: EstimateModel) -> None:
    """Report how many jobs an estimate model cuts short, such as those longer than a truncated model's E_max."""
    count = int((workload.runtime > workload.requested).sum())
    if model.limit == "model" and count:
        note(f"{count:,} of {len(workload):,} jobs run longer than their estimates under this model, and end there")


def note_feedback(workload: Workload) -> None:
    """Report if feedback is requested, but no job names a preceding job."""
    if workload.feedback and (workload.dependencies()[0] < 0).all():
        note("no job of this log names a preceding job, so --feedback has no effect")


def note(message: str) -> None:
    """Print a message on standard error."""
    typer.echo(f"walltime: {message}", err=True)


def schedulers(
    texts: Sequence[str],
    order: str,
    backfill_order: str | None,
    predictor: str | None = None,
    believe: str = "regular",
    correction: str = "tsafrir07",
    history: str = "simulation",
) -> list[Scheduler]:
    """The schedulers with these specifications; the options are defaults for all of them.

    Raises PolicyError for an invalid specification, and for an option that none of them can use.
    """
    from walltime.policy import takes
    from walltime.simulation.specification import parse_scheduler, split_scheduler

    defaults = {"order": order, "backfill-order": backfill_order, "predictor": predictor}
    used = {"believe": (believe, "regular"), "correction": (correction, "tsafrir07"), "history": (history, "simulation")}
    defaults |= {name: value for name, (value, usual) in used.items() if value != usual}
    found = [parse_scheduler(text, defaults) for text in texts]
    if backfill_order is not None and not any(takes(split_scheduler(text)[0], "backfill-order") for text in texts):
        raise PolicyError(f"none of {', '.join(texts)} has a backfill order of its own; leave it out, or take easy or hybrid:depth=N")
    if len(defaults) > 3 and not any(scheduler.prediction for scheduler in found):
        raise PolicyError("--believe, --correction and --history need predictions; name a --predictor too")
    return found


def read_cluster(path: Path | None) -> Machine | None:
    """The machine of a file like cluster.toml; None without one."""
    from walltime.machine import read_machine

    return None if path is None else read_machine(path)


def run_policy(
    workload: Workload,
    policy: Scheduler | str,
    *,
    dialect: Dialect | str = "papers",
    overrun: str,
    dynamics: bool = False,
    machine: Machine | None = None,
) -> Schedule:
    """Simulate, with a progress bar if it takes long."""
    from walltime.simulation import simulate
    from walltime.simulation.specification import Scheduler

    scheduler = Scheduler.of(policy)
    with progress_bar(len(workload), scheduler.label) as progress:
        return simulate(workload, scheduler, dialect=dialect, overrun=overrun, dynamics=dynamics, machine=machine, progress=progress)


def find_fairness(schedule: Schedule, sample: int | None, seed: int) -> Fairness:
    """Fair starts of a sample of jobs, with a progress bar if it takes long."""
    from walltime.simulation.fair_start import SAMPLE, fairness

    jobs = min(sample or SAMPLE, len(schedule))
    with progress_bar(jobs, f"{schedule.label}, fair starts") as progress:
        return fairness(schedule, jobs or 1, seed, progress=progress)


def find_spread(schedules: Sequence[Schedule], trim: str) -> Spread | None:
    """How far the averages move when the log is shaken, with a progress bar if it takes long; None where it would take too long."""
    from walltime.simulation.spread import COPIES, shaking_spread

    if len(schedules) < 2:
        return None
    with progress_bar(COPIES, "shaken copies of the log") as progress:
        return shaking_spread(schedules, trim, progress)


_HARD_SPACE = "\N{NO-BREAK SPACE}"
_WITHIN = re.compile(r"(?<=\d) (?=(?:d|h|min|s|%)(?!\w))|(?<=\d [dh]) (?=\d)|(?<=\d min) (?=\d)")
"""Spaces within a quantity, such as 4 h 53 min, at which no line ends."""


def print_text(text: str, begin: str = "") -> None:
    """Print a paragraph: in lines of the terminal's width that end between words, or in one line if it is no terminal.

    `begin`: what it begins with, such as `* `; further lines are indented as far.
    """
    if sys.stdout.isatty():
        width = max(console().width, len(begin) + 20)
        fill = textwrap.TextWrapper(
            width, initial_indent=begin, subsequent_indent=" " * len(begin), break_long_words=False, break_on_hyphens=False
        )
        typer.echo(fill.fill(_WITHIN.sub(_HARD_SPACE, text)).replace(_HARD_SPACE, " "))
    else:
        typer.echo(begin + text)


def print_paragraphs(paragraphs: Sequence[str]) -> None:
    """Print paragraphs with empty lines between them."""
    for k, paragraph in enumerate(paragraphs):
        if k:
            typer.echo("")
        print_text(paragraph)


def print_caveats(caveats: Sequence[str]) -> None:
    """Print what a reader of the results should know, item by item."""
    if caveats:
        typer.echo("caveats:")
    for caveat in caveats:
        print_text(caveat, "* ")


@contextmanager
def progress_bar(total: int, label: str) -> Iterator[Any]:
    """A callback that takes what is done, shows it on standard error once a run has lasted a while (see `bars`), and raises Ctrl-C."""
    with bars.row(label, total) as row:
        yield row.update


def check_figures(texts: Sequence[str] | None) -> list[tuple[str, Path]]:
    """The figures that are wanted, and their files; raises PolicyError or OutputError for what cannot be drawn or written."""
    if not texts:
        return []
    from walltime.figures import named_file

    wanted = [named_file(text) for text in texts]
    for _, path in wanted:
        check_output(path, (path.suffix.lower(),))
    return wanted


def draw_figures(wanted: Sequence[tuple[str, Path]], schedules: Sequence[Schedule], trim: str) -> None:
    """Draw them, of these schedules."""
    if not wanted:
        return
    from walltime import figures

    for name, path in wanted:
        draw = figures.OF_SCHEDULES[name]
        trimmed = {"trim": trim} if name in ("wait", "slowdown") else {}
        figures.save(draw(schedules[0]) if name == "gantt" else draw(*schedules, **trimmed), path)


def write_rows(table: pl.DataFrame, path: Path) -> None:
    """Write a table as .csv or .parquet, whole or not at all."""
    from walltime.files import whole_file, write_as_parquet

    with whole_file(path) as sink:
        if path.name.lower().endswith(".csv"):
            table.write_csv(sink)
        else:
            write_as_parquet(table, sink)


def print_json(value: Mapping[str, Any]) -> None:
    """Print one object; undefined values (NaN) become null."""
    typer.echo(json.dumps(_defined(value), indent=2, allow_nan=False))


def write_json(value: Mapping[str, Any], path: Path) -> None:
    """Write one object as a file, whole or not at all; undefined values (NaN) become null."""
    from walltime.files import whole_file

    with whole_file(path) as sink:
        sink.write((json.dumps(_defined(value), indent=2, allow_nan=False) + "\n").encode())


def _defined(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _defined(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_defined(item) for item in value]
    return str(value) if isinstance(value, Path) else value


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


def console() -> Console:
    """Standard output; wide enough for the tables if it is not a terminal."""
    from rich.console import Console

    class Output(Console):
        """A console that leaves the handling of a closed pipe to the command."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Output(width=None if sys.stdout.isatty() else 140, highlight=False)


def percent(share: float) -> str:
    """A share as a percentage; n/a if undefined."""
    return f"{100 * share:.1f} %" if math.isfinite(share) else "n/a"


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first column is text, the others are numbers.

    No number is ever cut: columns for which a line has no room go into further blocks below, which begin with the first column too.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    out = console()
    cells = [max((len(row[k]) for row in rows), default=1) for k in range(len(columns))]
    widths = [max(len(column), longest) for column, longest in zip(columns, cells, strict=True)]
    if len(blocks(widths, out.width - 2)) > 1:  # headings take several lines
        widths[1:] = [max(longest, *map(len, column.split())) for column, longest in zip(columns[1:], cells[1:], strict=True)]
    for number, block in enumerate(blocks(widths, out.width - 2)):
        heading = Text(_visible(title), style="bold") if title and not number else None
        table = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for k in block:
            if k == 0:
                table.add_column(Text(columns[0]), justify="left", overflow="fold", width=min(widths[0], (out.width - 2) // 2))
            else:
                table.add_column(Text(columns[k]), justify="right", width=widths[k])
        for row in rows:
            shown = {k: _visible(row[k]) for k in block}
            table.add_row(*(Text(at_commas(cell, (out.width - 2) // 2) if k == 0 else cell) for k, cell in shown.items()))
        out.print(table)


def at_commas(name: str, width: int) -> str:
    """A name in lines of at most this width that end after commas and colons, as far as it has any.

    >>> at_commas("tang13:key=user,statistic=p70,window=2", 20).splitlines()
    ['tang13:key=user,', 'statistic=p70,', 'window=2']
    """
    lines = [""]
    for part in re.split(r"(?<=[,:])", name):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > width:
            lines.append("")
            part = part.lstrip()
        lines[-1] += part
    return "\n".join(lines)


def blocks(widths: Sequence[int], room: int, between: int = 3) -> list[list[int]]:
    """The columns of each block of a table: the first column, and as many others as fit the room, one at least.

    >>> blocks([10, 8, 8, 8], 43), blocks([10, 8, 8, 8], 33), blocks([10, 50], 30)
    ([[0, 1, 2, 3]], [[0, 1, 2], [0, 3]], [[0, 1]])
    """
    first = min(widths[0], room // 2)
    found, left = [[0]], room - first
    for k, width in enumerate(widths[1:], start=1):
        if width + between > left and len(found[-1]) > 1:
            found.append([0])
            left = room - first
        found[-1].append(k)
        left -= width + between
    return found


def _visible(text: str) -> str:
    """The text with escapes in place of characters that a terminal would obey; a log's header or name may hold any."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def print_text_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose columns are text, except those whose cells are numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(_visible(title), style="bold"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for k, column in enumerate(columns):
        numbers = all(row[k].replace(",", "").isdecimal() for row in rows)
        table.add_column(Text(column), justify="right" if numbers else "left", overflow="fold", no_wrap=k < len(columns) - 1)
    for row in rows:
        table.add_row(*(Text(_visible(cell)) for cell in row))
    console().print(table)


def print_facts(title: str, facts: Sequence[tuple[str, str, str]]) -> None:
    """Print names, values and remarks."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(_visible(title), style="bold"), title_justify="left", box=None, show_header=False, pad_edge=False)
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for row in facts:
        table.add_row(*(Text(_visible(cell)) for cell in row))
    console().print(table)


def run_record(
    schedule: Schedule, trim: str, *, trace: Path, seconds_read: float, estimates: str, seed: int | None = None
) -> tuple[dict[str, Any], Any]:
    """The `--json` record of one run, and its summary."""
    from walltime.provenance import version

    begin = time.perf_counter()
    summary = schedule.summary(trim)
    measure = time.perf_counter() - begin
    w = schedule.workload
    record = {
        "trace": str(trace),
        "sha256": w.origin.sha256,
        "procs": w.machine_procs,
        "policy": schedule.label,
        "engine": schedule.engine,
        "simulated_on": schedule.simulated_on,
        **summary.as_dict(),
        "dropped": dict(w.origin.dropped),
        "changed": dict(w.origin.changed),
        "noticed": dict(w.origin.noticed),
        "steps": list(w.origin.steps),
        "killed": int((w.runtime > w.requested).sum()) if schedule.overrun == "kill" else 0,
        "estimates": estimates,
        "feedback": w.feedback,
        "overrun": schedule.overrun,
        "coincident": schedule.coincident,
        "dialect": schedule.dialect.label,
        "trim": trim,
        "seed": seed,
        "seconds": {"read": seconds_read, **schedule.seconds, "measure": measure},
        "version": version(),
    }
    if schedule.predictions is not None:
        made = schedule.predictions.prediction
        said = {"predictor": made.predictor.label, "believe": made.believe.label, "correction": made.correction.label}
        record["predictions"] = said | {"history": made.history} | schedule.prediction_summary(trim).as_dict()
    return record, summary


def replication_object(workload: Workload, runs: Sequence[Mapping[str, Any]], *, trace: Path, **settings: Any) -> dict[str, Any]:
    """The `--json` record of replications."""
    from walltime.provenance import version

    origin = workload.origin
    return {
        "trace": str(trace),
        "sha256": origin.sha256,
        "procs": workload.machine_procs,
        "jobs": len(workload),
        "offered_load_of_log": workload.offered_load,
        "steps": list(origin.steps),
        "dropped": dict(origin.dropped),
        "changed": dict(origin.changed),
        "noticed": dict(origin.noticed),
        "feedback": workload.feedback,
        **settings,
        "replications": list(runs),
        "version": version(),
    }
