"""The tables and pages of a search for orders, and of an order on final logs."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from walltime.metrics import Interval
from walltime.provenance import provenance
from walltime.report.changes import TICKS, changes_figure
from walltime.report.figures import BLUE, legend, panel
from walltime.report.page import Drawing, Page, sections
from walltime.tables import Cell, Table
from walltime.tuning.final_table import KINDS, FinalRow, FinalTable
from walltime.tuning.order_file import OrderFile, Point
from walltime.wording import human_number, listed, shown_change
from walltime.workload import Workload

HEADS = ("mean bounded slowdown", "wait by area", "99th percentile", "longest wait", "mean of the longest 0.1 %")
RATIOS = "over EASY's, geometric means over the logs"
CHOSEN_BY = (
    "These numbers are of the logs that the order was chosen by, so they flatter it. What it is worth elsewhere is told by logs that the "
    "search has not seen: walltime search OTHER-LOGS --final order.toml."
)
SLOWDOWN, LONGEST = 0, 3
"""Places of these objectives."""


def search_tables(found: OrderFile) -> list[Table | str]:
    """What a search found: its steps, the front, and the best of the named orders."""
    return [
        _points(found.step, f"steps of the search on {_logs(found)}, {found.evaluations:,} schedulers; later jobs {RATIOS}"),
        _points(found.front, "front: what nothing that was tried beats in both slowdown and longest wait in training"),
        _points(_named(found), "the best of the orders that have a name"),
        f"found: {found.scheduler}",
    ]


def search_page(found: OrderFile, log: Workload, command: Sequence[str]) -> Page:
    """The page of a search; `log`: the first of its logs."""
    chosen = next((one for one in (*found.step, *found.front) if one.scheduler == found.scheduler and one.choosing), None)
    named = next(iter(_named(found)), None)
    answer = f"Of {found.evaluations:,} schedulers that were tried on {_logs(found)}, {found.scheduler} was chosen"
    numbers = [("schedulers tried", f"{found.evaluations:,}")]
    if chosen is not None:
        answer += (
            f": on the later jobs it has {chosen.choosing[SLOWDOWN]:.2f} times the mean bounded slowdown of EASY, and "
            f"{chosen.choosing[LONGEST]:.2f} times its longest wait"
        )
        numbers = [
            ("mean bounded slowdown, over EASY's", f"{chosen.choosing[SLOWDOWN]:.2f}"),
            ("longest wait, over EASY's", f"{chosen.choosing[LONGEST]:.2f}"),
            *numbers,
        ]
    if named is not None:
        answer += (
            f"; the best order with a name, {named.scheduler}, has {named.choosing[SLOWDOWN]:.2f} and {named.choosing[LONGEST]:.2f} times"
        )
    words = (
        "Mean bounded slowdown and longest wait on the later jobs, both over EASY's: further left and down is better, and the crossing of "
        "the lines is EASY."
    )
    return Page(
        "search for an order",
        f"A queue order for {_logs(found)}",
        [f"{answer}."],
        list(sections(search_tables(found)[:-1])),
        facts=[("logs", _logs(found)), ("later jobs, by which it was chosen", f"{100 * (1 - found.share):.0f} %")],
        caveats=[CHOSEN_BY],
        numbers=numbers,
        picture=Drawing(_cloud(found), "objectives", words, words, wide=False, pixels=620),
        record=provenance(log, command=list(command)),
        data=found.as_dict(),
    )


def _cloud(found: OrderFile) -> Figure:
    with panel(3.6) as (figure, axes):
        groups = (("tried, the best", found.front, "o", "#9DBBD6"), ("with a name", found.named, "x", "#808080"))
        chosen = [one for one in (*found.step, *found.front) if one.scheduler == found.scheduler][:1]
        for label, points, mark, colour in (*groups, ("chosen", chosen, "D", BLUE)):
            shown = [one.choosing for one in points if one.choosing]
            if shown:
                axes.plot([v[LONGEST] for v in shown], [v[SLOWDOWN] for v in shown], mark, color=colour, label=label)
        axes.axhline(1, color="#8A9099", linewidth=0.8)
        axes.axvline(1, color="#8A9099", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            axis.set_major_locator(FixedLocator([tick for tick in TICKS if low <= tick <= high]))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlabel("longest wait, over EASY's")
        axes.set_ylabel("mean bounded slowdown, over EASY's")
        legend(figure, axes, 50)
    return figure


def _logs(found: OrderFile) -> str:
    return listed([one.name for one in found.log]) if found.log else "no log"


def _named(found: OrderFile) -> list[Point]:
    """The best of those that have a name."""
    return sorted(found.named, key=lambda one: one.choosing[SLOWDOWN])[:10]


def _points(points: Sequence[Point], title: str) -> Table:
    rows = [
        [Cell(one.scheduler, look="code"), *_ratios(one.choosing), f"{one.training[0]:.2f}", f"{one.training[3]:.2f}"] for one in points
    ]
    heads: tuple[str, ...] = ("scheduler", *HEADS, "slowdown in training", "longest wait in training")
    if any(one.late >= 0 for one in points):
        rows = [[*row, "" if one.late < 0 else f"{one.late:.1f} %"] for row, one in zip(rows, points, strict=True)]
        heads = (*heads, "jobs later than their fair start")
    return Table(heads, rows, title)


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


def final_page(table: FinalTable, log: Workload, command: Sequence[str]) -> Page:
    """The page of an order on final logs; `log`: the first of them."""
    found, logs = table.found, listed(list(table.logs))
    against = next((one for label, one in table.against.items() if label.lower().startswith("easy")), None)
    sure = "" if against is None else f" ({_change(against)})"
    answer = (
        f"On {logs}, which the search has not seen, {found.scheduler} has {found.overall[SLOWDOWN]:.2f} times the mean "
        f"bounded slowdown of EASY{sure}, and {found.overall[LONGEST]:.2f} times its longest wait."
    )
    change = "change of the mean bounded slowdown by the found order"
    words = f"{change[0].upper()}{change[1:]}, with 90 % intervals over the logs; below 0 is less."
    figure = changes_figure([f"against {name}" for name in table.against], [("found", list(table.against.values()))], change)
    return Page(
        "order on final logs",
        f"{found.scheduler} on logs that the search has not seen",
        [answer],
        list(sections(final_tables(table))),
        caveats=["Each look at final logs uses them up: the file of the order counts how often it has been judged on them."],
        numbers=[
            ("mean bounded slowdown, over EASY's", f"{found.overall[SLOWDOWN]:.2f}"),
            ("longest wait, over EASY's", f"{found.overall[LONGEST]:.2f}"),
            ("logs", human_number(len(table.logs))),
        ],
        picture=Drawing(figure, "changes", words, words) if table.against else None,
        record=provenance(log, command=list(command)),
        data=table.as_dict(),
    )


def _change(change: Interval) -> str:
    mean, low, high = (shown_change(end, change.low, change.high) for end in (change.mean, change.low, change.high))
    return f"{mean}; 90 % interval over the logs {low} to {high}"


def _best(table: FinalTable, kind: str, most: int) -> list[FinalRow]:
    return sorted((row for row in table.rows if row.kind == kind), key=lambda row: row.overall[0])[:most]


def _rows(table: FinalTable, rows: Sequence[FinalRow], title: str) -> Table:
    cells = [
        [
            Cell(row.scheduler, look="code"),
            row.kind,
            *_ratios(row.overall),
            *(f"{one[0]:.2f} / {one[3]:.2f}" for one in row.logs),
        ]
        for row in rows
    ]
    return Table(("scheduler", "kind", *HEADS, *table.logs), cells, title, texts=2)


def _verdict(table: FinalTable) -> list[str]:
    """What the found order is worth, in sentences."""
    lines = []
    for label, change in table.against.items():
        mean, low, high = (shown_change(end, change.low, change.high) for end in (change.mean, change.low, change.high))
        pair = f"{table.found.scheduler} against {label}"
        lines.append(f"{pair}: mean bounded slowdown {mean} (90 % interval over the logs: {low} to {high})")
    longest = table.found.overall[3]
    sure = "" if table.longest is None else f" ({_change(table.longest)})"
    lines.append(f"its longest wait is {longest:.2f} x EASY's, in the mean over the logs{sure}")
    called = ("named order", "named order with a limit or without", "named order with predictions or without")
    for kinds, what in zip(KINDS, called, strict=True):
        for bounded in (False, True):
            best = table.best(kinds, bounded)
            rest = " whose longest wait is not above EASY's" if bounded else ""
            if best is not None:
                lines.append(f"best {what}{rest}: {best.scheduler}, {best.overall[0]:.2f} with a longest wait of {best.overall[3]:.2f}")
    return lines
