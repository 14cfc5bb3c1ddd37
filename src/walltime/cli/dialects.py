"""`walltime dialects`: the readings of published simulators, and what they change on a log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from walltime.cli import options as o
from walltime.cli.groups import Reading

if TYPE_CHECKING:
    from walltime.simulation.dialects import DialectRow, DialectTable


def dialects(
    trace: Annotated[
        Path | None, typer.Argument(metavar="[TRACE]", help="The log; without one, only what there is is listed.", show_default=False)
    ] = None,
    *,
    policy: o.PoliciesOption = None,
    dialect: Annotated[
        list[str] | None,
        typer.Option(
            "--dialect", metavar="NAME", help="Only this dialect beside papers, or single readings: papers:shadow=kept; repeat it."
        ),
    ] = None,
    copies: Annotated[
        int, typer.Option("--copies", min=0, help="Copies of the log, shaken by 30 s, that show how much is chance; 0 for none.")
    ] = 20,
    overrun: o.OverrunOption = o.Overrun.kill,
    trim: o.TrimOption = o.Trim.none,
    reading: Reading,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write a row for each run here: .csv or .parquet.", rich_help_panel=o.OUTPUT)
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Show what each published reading of the rules changes: on its own, and as a dialect, for EASY, EASY-SJBF and EASY++."""
    from walltime.cli import common

    if trace is None:
        _list(as_json)
        return
    from walltime.simulation.dialects import SCHEDULERS, compare_dialects, dialect_runs

    if out is not None:
        common.check_output(out, (".csv", ".parquet"))
    schedulers = policy or list(SCHEDULERS)
    count = dialect_runs(schedulers, dialect)
    workload, _ = reading.load(trace)
    with common.progress_bar(count, "readings") as progress:
        found = compare_dialects(
            workload, schedulers, dialects=dialect, copies=copies, overrun=overrun.value, trim=trim.value, progress=progress
        )
    if out is not None:
        common.write_rows(found.table(), out)
    if as_json:
        about = {"trace": str(trace), "sha256": workload.origin.sha256, "procs": workload.machine_procs, "jobs": len(workload)}
        common.print_json(about | {"overrun": overrun.value, "trim": trim.value} | found.as_dict())
        return
    _print(found)
    if out is not None:
        typer.echo(f"table written to {out}")


def _list(as_json: bool) -> None:
    """The dialects with their readings, and the readings."""
    from walltime.cli import common
    from walltime.policy import DIALECTS, READINGS

    if as_json:
        named = {name: {"readings": one.readings(), "source": one.source, "checked": one.checked} for name, one in DIALECTS.items()}
        readings = {name: {"values": list(one.values), "number": one.number, "about": one.about} for name, one in READINGS.items()}
        common.print_json({"dialects": named, "readings": readings})
        return
    for name, one in DIALECTS.items():
        changed = [f"{reading}={value}" for reading, value in one.readings().items() if value != READINGS[reading].values[0]]
        common.print_text(f"{name}: {', '.join(changed) or 'the default of every reading'}")
        common.print_text(f"  read in {one.source}" + (f"; checked: {one.checked}" if one.checked else ""))
    rows = [[name, *(", ".join((*one.values, *(["N"] if one.number else []))), one.about)] for name, one in READINGS.items()]
    typer.echo("")
    for name, values, about in rows:
        common.print_text(f"{name} = {values}: {about}")
    typer.echo("")
    common.print_text("What they change on a log: walltime dialects LOG")


def _print(found: DialectTable) -> None:
    from walltime.cli import common
    from walltime.metrics import range_meaning

    schedulers = list(dict.fromkeys(row.scheduler for row in found.rows))
    labels = list(dict.fromkeys((row.dialect, row.alone) for row in found.rows))
    rows = []
    for label, alone in labels:
        of = {row.scheduler: row for row in found.rows if (row.dialect, row.alone) == (label, alone)}
        rows.append([label, *(cell for name in schedulers for cell in _cells(of.get(name)))])
    columns = ["dialect", *(f"{name} {what}" for name in schedulers for what in ("slowdown", "wait, s", "jobs moved"))]
    common.print_table(f"{found.workload.origin.name}: mean bounded slowdown and mean wait by reading", columns, rows)
    for name in schedulers:
        row = found.find("papers", name)
        if row is not None and row.has_band:
            meaning = range_meaning(found.copies).replace("runs", "shaken copies of the log")
            common.print_text(f"{name}, papers: slowdown {row.low:,.1f} to {row.high:,.1f}, {meaning}")
    common.print_text("Jobs moved: start at another time than under papers. An empty cell: this reading makes no difference there.")


def _cells(row: DialectRow | None) -> list[str]:
    if row is None:
        return ["", "", ""]
    return [f"{row.mean_bounded_slowdown:,.1f}", f"{row.mean_wait:,.0f}", f"{100 * row.differs:.0f} %"]
