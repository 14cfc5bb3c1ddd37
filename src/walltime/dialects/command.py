"""`walltime dialects`: interpretations of published simulators, and their effect on a log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, RecordedWindow
from walltime.cli.output import Output, caveats, note, progress_bar, write_rows
from walltime.wording import counted

if TYPE_CHECKING:
    from walltime.dialects.dialects import DialectRow, DialectTable
    from walltime.report.page import Part
    from walltime.tables import Cell, Facts


@dataclass(frozen=True)
class SchedulerOptions:
    """The schedulers and dialects to compare."""

    policy: list[str] | None = o.field(
        None, "Simulate this policy; walltime list policies shows all. Default: EASY, EASY-SJBF and EASY++.", "--policy", group=o.SCHEDULER
    )
    dialect: list[str] | None = o.field(
        None, "Compare only this dialect with papers. Default: all dialects.", "--dialect", group=o.SCHEDULER, metavar="NAME"
    )
    copies: o.CopiesOption = 20
    overrun: o.OverrunOption = "kill"
    trim: o.TrimOption = "none"


@manual(
    "background/dialects",
    ("List the dialects, with the interpretations of each.", "dialects"),
    ("Show the effect of each interpretation on the first jobs of a log.", "dialects KTH-SP2 --head 300 --policy easy --copies 0"),
)
def dialects(
    trace: Annotated[
        Path | None,
        o.argument(
            "A job log, or the name of a log that walltime fetch has downloaded; without it, list the dialects and their sources.", "LOG"
        ),
    ] = None,
    *,
    tried: SchedulerOptions,
    stretch: RecordedWindow,
    reading: LogOptions,
    out: Annotated[Path | None, o.out("a row for each run", *o.TABLE)] = None,
    output: Output,
) -> None:
    """Show how much the results on a log depend on scheduling details that papers leave unspecified.

    Each interpretation of such a detail is tried separately. So is each dialect, the set of interpretations of a published simulator.
    """
    if trace is None:
        output.show(_known(), _list())
        return
    from walltime.dialects.dialects import SCHEDULERS, compare_dialects, default_schedulers, dialect_runs

    workload = stretch.alone(reading.load(trace)[0])
    schedulers = tried.policy or default_schedulers(workload)
    if not tried.policy and len(schedulers) < len(SCHEDULERS):
        note("EASY++ is left out: it predicts runtimes by user, and the log records no users")
    count = dialect_runs(schedulers, tried.dialect, copies=tried.copies)
    note(f"{counted(count, 'simulation')} of {counted(len(workload), 'job')}")
    how: dict[str, Any] = {"overrun": tried.overrun, "trim": tried.trim}
    with progress_bar(count, "interpretations", "simulations") as progress:
        comparison = compare_dialects(workload, schedulers, dialects=tried.dialect, copies=tried.copies, progress=progress, **how)
    if out is not None:
        write_rows(out, comparison.table())
    about = {"trace": str(trace), "sha256": workload.origin.sha256, "procs": workload.machine_procs, "jobs": len(workload)}
    output.show(about | how | comparison.as_dict(), _blocks(comparison), table=out)


def _known() -> dict[str, Any]:
    """Return the dialects with their interpretations, and the interpretations."""
    from walltime.declared import meaning_of
    from walltime.policy.dialect import DIALECTS, INTERPRETATIONS, VALIDATION, Dialect

    named = {
        name: {"interpretations": one.changed, "source": DIALECTS.variants[name].meaning, "checked": VALIDATION.get(name, "")}
        for name, one in DIALECTS.items()
    }
    interpretations = {
        name: {"values": list(one.key.known), "default": one.default, "about": meaning_of(Dialect, one)}
        for name, one in INTERPRETATIONS.items()
    }
    return {"dialects": named, "interpretations": interpretations}


def _list() -> Iterator[Facts | str]:
    from walltime.tables import Facts

    known = _known()
    rows: list[tuple[str, ...]] = []
    for name, one in known["dialects"].items():
        changed = [f"{interpretation}={value}" for interpretation, value in one["interpretations"].items()]
        rows += [(name, ", ".join(changed) or "the default of every interpretation"), ("", f"Source: {one['source']}.")]
        rows += [("", f"Checked: {one['checked']}.")] if one["checked"] else []
    yield Facts("Dialects and their interpretations", rows)
    single = known["interpretations"]
    values = {name: ", ".join(one["values"] or [str(one["default"]), "N"]) for name, one in single.items()}
    yield Facts("Interpretations and their values", [(name, f"{values[name]}: {one['about']}") for name, one in single.items()])
    yield "To see their effect on a log: walltime dialects LOG"


def _blocks(comparison: DialectTable) -> Iterator[Part]:
    from walltime.metrics import range_meaning
    from walltime.tables import Table

    columns = ["dialect", "mean bounded slowdown", "mean wait", "jobs moved"]
    ranges = []
    for name in dict.fromkeys(row.scheduler for row in comparison.rows):
        rows = [_cells(row) for row in comparison.rows if row.scheduler == name]
        yield Table(columns, rows, f"{name} on {comparison.workload.origin.name}, by interpretation")
        row = comparison.find("papers", name)
        if row is not None and row.has_band:
            ranges.append(f"{name} {row.low:,.1f} to {row.high:,.1f}")
    notes = [
        "Jobs moved: jobs that start at a different time than under papers. Interpretations that do not affect a policy are not listed."
    ]
    if ranges:
        meaning = range_meaning(comparison.copies).replace("runs", "copies of the log with slightly shifted submissions")
        notes.append(f"Mean bounded slowdown under papers: {'; '.join(ranges)}. Range: {meaning}.")
    yield from caveats(notes)


def _cells(row: DialectRow) -> list[str | Cell]:
    from walltime.tables import time_cell

    return [row.dialect, f"{row.mean_bounded_slowdown:,.1f}", time_cell(row.mean_wait), f"{100 * row.differs:.0f} %"]
