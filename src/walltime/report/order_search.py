"""The tables of a search for orders, and of an order on final logs."""

from __future__ import annotations

from collections.abc import Sequence

from walltime.tables import Cell, Table
from walltime.tuning.final_table import FinalRow, FinalTable
from walltime.tuning.order_file import OrderFile, Point
from walltime.wording import shown_change

__all__ = ["final_tables", "search_tables"]

HEADS = ("mean bounded slowdown", "wait by area", "99th percentile", "longest wait", "mean of the longest 0.1 %")
RATIOS = "over EASY's, geometric means over the logs"


def search_tables(found: OrderFile) -> list[Table | str]:
    """What a search found: its steps, the front, and the best of the named orders."""
    named = sorted(found.named, key=lambda one: one.choosing[0])[:10]
    logs = ", ".join(one.name for one in found.log)
    return [
        _points(found.step, f"steps of the search on {logs}, {found.evaluations:,} schedulers; later jobs {RATIOS}"),
        _points(found.front, "front: what nothing that was tried beats in both slowdown and longest wait in training"),
        _points(named, "the best of the orders that have a name"),
        f"found: {found.scheduler}",
    ]


def _points(points: Sequence[Point], title: str) -> Table:
    rows = [
        [Cell(one.scheduler, look="code"), *_ratios(one.choosing), f"{one.training[0]:.2f}", f"{one.training[3]:.2f}"] for one in points
    ]
    return Table(("scheduler", *HEADS, "slowdown in training", "longest wait in training"), rows, title)


def _ratios(values: Sequence[float]) -> list[str]:
    return [f"{value:.2f}" for value in values]


def final_tables(table: FinalTable, most: int = 12) -> list[Table | str]:
    """An order on final logs, beside the best of the others of each kind."""
    shown = [table.found, *_best(table, "front", most)]
    for kind in ("named", "limited", "predicted"):
        shown += _best(table, kind, most)
    exact, knows = _best(table, "exact", most), _best(table, "knows", most)
    title = f"mean bounded slowdown / longest wait {RATIOS}; copies of each: {table.copies}"
    return [
        _rows(table, shown, title),
        _rows(table, exact, f"{title}; all with exact estimates"),
        _rows(table, knows, f"{title}; with exact estimates, over EASY with users'"),
        *_verdict(table),
    ]


def _best(table: FinalTable, kind: str, most: int) -> list[FinalRow]:
    return sorted((row for row in table.rows if row.kind == kind), key=lambda row: row.overall[0])[:most]


def _rows(table: FinalTable, rows: Sequence[FinalRow], title: str) -> Table:
    cells = [
        [Cell(row.scheduler, look="code"), row.kind, *_ratios(row.overall), *(f"{one[0]:.2f} / {one[3]:.2f}" for one in row.logs)]
        for row in rows
    ]
    return Table(("scheduler", "kind", *HEADS, *table.logs), cells, title, texts=2)


def _verdict(table: FinalTable) -> list[str]:
    """What the found order is worth, in sentences."""
    lines = []
    for label, change in table.against.items():
        mean, low, high = (shown_change(end, change.low, change.high) for end in (change.mean, change.low, change.high))
        lines.append(
            f"{table.found.scheduler} against {label}: mean bounded slowdown {mean} (90 % interval over the logs: {low} to {high})"
        )
    longest = table.found.overall[3]
    lines.append(f"its longest wait is {longest:.2f} x EASY's, in the mean over the logs")
    for kinds, what in ((("named",), "named order"), (("named", "limited"), "named order with a limit or without")):
        for bounded in (False, True):
            best = table.best(kinds, bounded)
            rest = " whose longest wait is not above EASY's" if bounded else ""
            if best is not None:
                lines.append(f"best {what}{rest}: {best.scheduler}, {best.overall[0]:.2f} with a longest wait of {best.overall[3]:.2f}")
    return lines
