"""What several commands do: read the log with its counts, run with a progress bar, print numbers and tables."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from walltime.policy import Policy
    from walltime.schedule import Schedule
    from walltime.workload import Workload

PATIENCE = 1.0
"""Seconds that a run may take before a progress bar appears."""


def load(trace: Path, **options: Any) -> tuple[Workload, float]:
    """Read a log; says on standard error what was dropped, and returns the workload and the seconds that it took."""
    from walltime.logs import read
    from walltime.logs.fetch import find_log

    begin = time.perf_counter()
    workload = read(find_log(trace), **options)
    dropped = workload.origin.dropped
    if dropped:
        rules = ", ".join(f"{count:,} {rule}" for rule, count in dropped.items())
        note(f"{sum(dropped.values()):,} of {workload.origin.records:,} records dropped: {rules}; see walltime info")
    return workload, time.perf_counter() - begin


def note(message: str) -> None:
    """Say something on standard error that is no result."""
    typer.echo(f"walltime: {message}", err=True)


def run_policy(workload: Workload, policy: Policy, *, coincident: str, overrun: str) -> Schedule:
    """Simulate, with a word when the engine has to be compiled first and a progress bar when it takes long."""
    from walltime.engine.run import kernel_is_cached
    from walltime.schedule import simulate

    if not kernel_is_cached():
        note("compiling the engine, once on this machine, in some 10 s")
    with _progress(len(workload), policy.label) as progress:
        return simulate(workload, policy, coincident=coincident, overrun=overrun, progress=progress)


@contextmanager
def _progress(jobs: int, label: str) -> Iterator[Any]:
    """A callback that shows a bar on standard error once a run has lasted a second, if somebody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(label, total=jobs)
    begin = time.monotonic()

    def show(started: int) -> None:
        if time.monotonic() - begin > PATIENCE and not bar.live.is_started:
            bar.start()
        bar.update(task, completed=started)

    try:
        yield show
    finally:
        bar.stop()


def print_json(value: Mapping[str, Any]) -> None:
    """Print one object."""
    typer.echo(json.dumps(value, indent=2, allow_nan=False))


def console() -> Console:
    """Standard output; wide enough for the tables where it is no terminal."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 140, highlight=False)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first column is text, the others are numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title, style="bold") if title else None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for k, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if k == 0 else "right")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


def print_text_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose columns are all text, but for those whose cells are numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title, style="bold"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for k, column in enumerate(columns):
        numbers = all(row[k].replace(",", "").isdecimal() for row in rows)
        table.add_column(Text(column), justify="right" if numbers else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


def print_facts(title: str, facts: Sequence[tuple[str, str, str]]) -> None:
    """Print names, values and what else there is to say about them."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title, style="bold"), title_justify="left", box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    for row in facts:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


def run_record(
    schedule: Schedule, trim: str, *, trace: Path, seconds_read: float, estimates: str, seed: int | None = None
) -> tuple[dict[str, Any], Any]:
    """What `--json` prints of one run, and its summary."""
    from walltime.provenance import version

    begin = time.perf_counter()
    summary = schedule.summary(trim)
    measure = time.perf_counter() - begin
    w = schedule.workload
    record = {
        "trace": str(trace),
        "sha256": w.origin.sha256,
        "procs": w.machine_procs,
        "policy": schedule.policy.label,
        **summary.as_dict(),
        "dropped": dict(w.origin.dropped),
        "changed": dict(w.origin.changed),
        "noticed": dict(w.origin.noticed),
        "estimates": estimates,
        "overrun": schedule.overrun,
        "coincident": schedule.coincident,
        "trim": trim,
        "seed": seed,
        "seconds": {"read": seconds_read, **schedule.seconds, "measure": measure},
        "version": version(),
    }
    return record, summary


def months_of(schedule: Schedule, by: str) -> list[Any]:
    """The rows of `metrics.monthly` for this schedule."""
    from walltime import metrics

    w = schedule.workload
    return metrics.monthly(
        submit=schedule.submit,
        start=schedule.start,
        end=schedule.end,
        runtime=schedule.runtime,
        procs=w.procs,
        machine_procs=w.machine_procs,
        unix_start_time=w.origin.unix_start_time,
        tzinfo=w.origin.tzinfo(),
        by=by,
    )
