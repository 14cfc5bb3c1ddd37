"""Print the output of a command as a JSON record, as tables in a file format, or as text; list the written files; and show progress.

Progress goes to standard error: on a terminal as one display with a row for each activity, elsewhere as occasional lines.
"""

from __future__ import annotations

import json
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from walltime.cli import options as o
from walltime.cli.command_lines import command_line
from walltime.compiled.compilation import QUICK, Compilation
from walltime.errors import PolicyError
from walltime.files import whole_file, write_as_parquet
from walltime.tables import FORMATS, Facts, Table, write_tables
from walltime.wording import human_time

if TYPE_CHECKING:
    import polars as pl
    from rich.progress import Progress, TaskID

    from walltime.report.page import Page, Part
    from walltime.workload import Workload

PATIENCE = 1.0
"""Time before the progress of an activity is shown, s."""
EVERY = 10.0
"""Time between two lines of progress if standard error is not a terminal, s."""
SOON, LONG = 3.0, 60.0
"""Time after which the first line is printed, s, if the activity is expected to take longer than the second number, s."""
_lock = threading.RLock()
_display: Progress | None = None
_interrupted = threading.Event()
received = signal.SIGINT
"""The signal that interrupted the command."""


def interrupt(number: int = signal.SIGINT, *_: object) -> None:
    """Handle Ctrl-C or a termination request: raise KeyboardInterrupt now, and again at the next update of progress.

    Python drops the first exception where it cannot propagate (in a finalizer, in a callback of compiled code).
    """
    global received
    received = signal.Signals(number)
    _interrupted.set()
    raise KeyboardInterrupt


def raise_if_interrupted(*_: object) -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed and this is the main thread."""
    if _interrupted.is_set() and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt


class Row:
    """A progress bar of an activity with the remaining time, which appears after `patience` seconds."""

    def __init__(self, label: str, total: int | None = None, unit: str = "", patience: float = PATIENCE):
        self._state: dict[str, Any] = {"description": label, "total": total, "completed": 0, "unit": unit, "note": ""}
        self._appears = time.monotonic() + patience
        self._task: TaskID | None = None
        self._closed = False
        self.update(0)

    def update(self, done: int, **changes: Any) -> None:
        """Show the progress, and new values of `description`, `total` or `note`."""
        raise_if_interrupted()
        with _lock:
            self._state |= {"completed": done, **changes}
            if self._closed or time.monotonic() < self._appears:
                return
            display = _opened()
            if self._task is None:
                # Nothing is drawn before the number of the row is known here: an interrupt would leave it on the terminal.
                self._task = display.add_task(**self._state, start=True, visible=False)
            display.update(self._task, visible=True, **self._state)

    def close(self) -> None:
        """Remove the bar, and the display with the last bar."""
        global _display
        with _lock:
            self._closed = True
            if _display is None:
                return
            if self._task is not None:
                _display.remove_task(self._task)
                self._task = None
            if not _display.task_ids:
                _display.stop()
                _display = None


class Lines:
    """The progress of an activity if standard error is not a terminal: a line every ten seconds with the remaining time."""

    def __init__(self, label: str, total: int | None = None, unit: str = ""):
        self._state: dict[str, Any] = {"description": label, "total": total, "unit": unit, "note": ""}
        self._begin = self._printed = time.monotonic()
        self._quiet = True
        self._first: int | None = None
        """the progress when the activity began, such as the number of cells in the store"""
        self._done = 0

    def update(self, done: int, **changes: Any) -> None:
        """Record the progress and new values of `description`, `total` or `note`; print a line if the last one is old enough."""
        raise_if_interrupted()
        with _lock:
            now = time.monotonic()
            if self._first is None or changes.get("description", self._state["description"]) != self._state["description"]:
                self._first, self._begin = done, now
            self._state |= changes
            self._done = done
            self._print(now, self._quiet and now - self._begin >= SOON and self._left(now) > LONG)

    def again(self) -> None:
        """Print the line again if the last one is old, unless the activity has reported nothing yet."""
        with _lock:
            now = time.monotonic()
            if self._first is not None:
                self._print(now, False)

    def repeat(self, ended: threading.Event) -> None:
        """Print the line again whenever it has not changed for a while, until the activity has ended."""
        while not ended.wait(1.0):
            self.again()

    def _left(self, now: float) -> float:
        """Return the estimated remaining time, s; 0 if it is unknown."""
        total, new = self._state["total"], self._done - (self._first or 0)
        return (now - self._begin) * (total - self._done) / new if total is not None and new > 0 and self._done < total else 0.0

    def _print(self, now: float, soon: bool) -> None:
        """Print a line if the last one is old; with `soon`, in any case."""
        if now - self._printed < EVERY and not soon:
            return
        self._printed, self._quiet = now, False
        total, unit, note = (self._state[name] for name in ("total", "unit", "note"))
        counted = f"{self._done:,}" if total is None else f"{self._done:,} of {total:,}"
        left = self._left(now)
        parts = [f"{counted} {unit}".strip(), note, f"about {human_time(left)} left" if left > 0 else ""]
        typer.echo(f"walltime: {self._state['description']}: {', '.join(filter(None, parts))}", err=True)


def _opened() -> Progress:
    """Return the display; a terminal can have only one."""
    global _display
    if _display is None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        numbers = (MofNCompleteColumn(), TextColumn("{task.fields[unit]}"), TextColumn("{task.fields[note]}"), TimeRemainingColumn())
        columns = (TextColumn("{task.description}"), BarColumn(), *numbers)
        _display = Progress(*columns, console=Console(stderr=True), transient=True)
        _display.start()
    return _display


@contextmanager
def progress_row(label: str, total: int | None = None, unit: str = "", patience: float = PATIENCE) -> Iterator[Row | Lines]:
    """Yield the display of an activity: a bar on a terminal, otherwise lines."""
    if not sys.stderr.isatty():
        lines, ended = Lines(label, total, unit), threading.Event()
        threading.Thread(target=lines.repeat, args=(ended,), daemon=True).start()
        try:
            yield lines
        finally:
            ended.set()
        return
    shown = Row(label, total, unit, patience)
    try:
        yield shown
    finally:
        shown.close()


@contextmanager
def progress_bar(total: int | None, label: str, unit: str = "") -> Iterator[Callable[..., None]]:
    """Yield a callback that shows progress on standard error after a while, and raises KeyboardInterrupt after Ctrl-C."""
    with progress_row(label, total, unit) as shown:
        yield shown.update


class CompilationRow:
    """Listener of the engine: a row during compilation; without a terminal, one line if it takes seconds."""

    def __init__(self) -> None:
        self._row: Row | None = None

    def __call__(self, state: Compilation) -> None:
        """Show the progress."""
        if state.finished:
            if self._row is not None:
                self._row.close()
            self._row = None
            return
        raise_if_interrupted()
        if self._row is not None:
            self._row.update(state.done)
        elif state.done == 0 and sys.stderr.isatty():
            patience = 0.0 if state.seconds >= QUICK else PATIENCE
            self._row = Row(f"compiling for {state.what}, once", state.functions, "functions", patience)
        elif state.done == 0 and state.seconds >= QUICK:
            typer.echo(f"walltime: {state}", err=True)


_logs: dict[str, Workload] = {}
"""The logs of the command's result by name, whose omitted jobs are reported."""


def report_on(*logs: Workload) -> None:
    """Register these logs, whose omitted jobs are reported with the result; of several stages of a log, the one that omits the most."""
    from walltime.workload.drops import shares_of

    for log in logs:
        before = _logs.get(log.origin.name)
        if before is None or shares_of(log.origin.drops) >= shares_of(before.origin.drops):
            _logs[log.origin.name] = log


def reported(log: Workload) -> Workload:
    """Return the registered stage of this log that omits the most jobs."""
    return _logs.get(log.origin.name, log)


_running = ""
"""The name of the running command, such as `slurm score`."""


def begin(command: str) -> None:
    """Note the name of the command that runs from now on."""
    global _running
    _running = command


def forget_logs() -> None:
    """Forget the logs of an earlier command."""
    _logs.clear()


def _left_out_records() -> dict[str, Any]:
    """Return keys of a record on the omitted jobs, by log if there are several, and on features that are not modelled."""
    from walltime.workload.drops import left_out

    found = {name: left_out(one.origin.drops) for name, one in _logs.items()}
    omitted = {name: share for one in _logs.values() for name, share in one.origin.omissions.items()}
    return ({"left_out": found if len(found) > 1 else next(iter(found.values()))} if found else {}) | (
        {"not_modelled": omitted} if omitted else {}
    )


def _left_out_sentences(blocks: Sequence[Part]) -> tuple[list[str], list[str]]:
    """Return the sentences on omitted jobs, which begin the answer, and on rules and unmodelled features, if the blocks lack them."""
    from walltime.workload.drops import jobs_only

    first = next((block for block in blocks[:1] if isinstance(block, str)), "")
    warnings = [sentence for one in _logs.values() for sentence in one.warnings if sentence not in first]
    rules = [f"{f'{name}: ' if len(_logs) > 1 else ''}{drop}" for name, one in _logs.items() for drop in jobs_only(one.origin.drops)]
    if any(one.origin.omissions for one in _logs.values()):
        from walltime.machine import omission_sentences

        rules += [sentence for sentence in omission_sentences(_logs.values()) if not any(sentence in str(block) for block in blocks)]
    return warnings, rules


@dataclass(frozen=True)
class Output:
    """Options for printing the result of a command."""

    as_json: o.JsonOption = False
    form: o.FormatOption = "text"
    tables: o.TablesOption = None

    def show(self, record: Mapping[str, Any], blocks: Iterable[Part], tables: Sequence[Table] = (), /, **written: Path | None) -> None:
        """Print the record as a JSON object, or the blocks and the written files by their contents; write the file of `--tables`.

        `tables`: the tables for files and `--format`, if they have more columns than the tables in the blocks.
        """
        blocks = list(blocks)
        full = list(tables or _tables_of(blocks))
        if self.tables is not None:
            write_tables(self.tables, full)
            written["tables"] = self.tables
        if self.as_json:
            if self.form != "text":
                raise PolicyError("--json and --format cannot be combined; leave one out")
            print_json({**record, **_left_out_records()})
            return
        warnings, rules = _left_out_sentences(blocks)
        files = [f"{what.replace('_', ' ')} written to {path}" for what, path in written.items() if path is not None]
        if self.form == "text":
            print_blocks(_once([*warnings, *_with_notes(blocks, rules), *files]))
            return
        typer.echo("\n".join(FORMATS[self.form](table) for table in full), nl=False)
        for sentence in [*warnings, *rules]:
            note(sentence)
        for line in files:
            typer.echo(line, err=True)


def _with_notes(blocks: Sequence[Part], sentences: Sequence[str]) -> list[Part]:
    """Return the blocks with the sentences added to the notes at their end."""
    from walltime.report.page import Items

    if blocks and isinstance(blocks[-1], Items):
        return [*blocks[:-1], Items([*blocks[-1].items, *sentences])]
    return [*blocks, *caveats(sentences)]


def _once(blocks: Iterable[Part]) -> list[Part]:
    """Return the blocks without notes that repeat an earlier block, and without a heading that is then empty."""
    from walltime.report.page import Items

    kept: list[Part] = []
    for block in blocks:
        if isinstance(block, Items):
            said = [one for one in kept if isinstance(one, str)]
            block = replace(block, items=[item for item in block.items if item not in said])
            if not block.items:
                kept = kept[:-1] if kept[-1:] == ["Notes:"] else kept
                continue
        kept.append(block)
    return kept


@dataclass(frozen=True)
class PageOutput(Output):
    """Options for printing the result of a command and for writing its report page."""

    report: o.ReportOption = None

    def write(self, page: Page) -> None:
        """Write the page to the file of --report, if there is one."""
        from walltime.report.html import write_page

        if self.report is not None:
            write_page(self.report, page)

    def write_blocks(self, kind: str, title: str, answer: Sequence[str], blocks: Iterable[Part], log: Workload | None = None) -> None:
        """Write a page of the printed blocks to the file of --report, if there is one; `log`: the log of its provenance."""
        if self.report is not None:
            from walltime.provenance import provenance
            from walltime.report.page import Page, sections

            record = {} if log is None else provenance(log, command=command_line())
            command = command_line() if log is None else None
            self.write(Page(kind, title, answer, list(sections(blocks)), workload=log, record=record, command=command))

    def show(self, record: Mapping[str, Any], blocks: Iterable[Part], tables: Sequence[Table] = (), /, **written: Path | None) -> None:
        """Print as `Output.show`, with the page among the written files."""
        super().show(record, blocks, tables, report=self.report, **written)


def _tables_of(blocks: Iterable[Part]) -> Iterator[Table]:
    """Yield the tables among the blocks, including nested blocks."""
    from walltime.report.page import Fold, Group

    for block in blocks:
        if isinstance(block, Fold | Group):
            yield from _tables_of(block.blocks)
        elif isinstance(block, Table | Facts):
            yield block if isinstance(block, Table) else block.table()


def print_json(record: Mapping[str, Any]) -> None:
    """Print one object, with the name of its schema; undefined values (NaN) become null."""
    from walltime.cli.records import schema_name

    typer.echo(json_text({"schema": schema_name(_running)} | _defined(record)))


def json_text(record: Mapping[str, Any]) -> str:
    """Return the text of an object without undefined values."""
    return json.dumps(record, indent=2, allow_nan=False)


def print_blocks(blocks: Iterable[Part]) -> None:
    """Print parts of pages as text."""
    from walltime.report import terminal

    terminal.print_blocks(blocks)


def caveats(sentences: Sequence[str]) -> list[Part]:
    """Return the caveats as notes with their heading; nothing without caveats."""
    from walltime.report.page import Items

    return ["Notes:", Items(sentences)] if sentences else []


def note(message: str) -> None:
    """Print a message on standard error."""
    typer.echo(f"walltime: {message}", err=True)


def write_rows(path: Path, table: pl.DataFrame) -> None:
    """Write a table as .csv or .parquet, atomically."""
    with whole_file(path) as sink:
        if path.name.lower().endswith(".csv"):
            table.write_csv(sink)
        else:
            write_as_parquet(table, sink)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write an object as a JSON file, atomically; undefined values (NaN) become null."""
    with whole_file(path) as sink:
        sink.write((json_text(_defined(value)) + "\n").encode())


def _defined(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _defined(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_defined(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def paragraphs(sentences: Sequence[str]) -> list[str]:
    """Return the paragraphs separated by empty lines."""
    return [words for sentence in sentences for words in ("", sentence)][1:]
