"""Tables and pages of a search for orders, and of an order on final logs."""

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
SELECTION_CAVEAT = (
    "The order was chosen on these logs, so these numbers are too favourable (selection bias). To test it on other logs: "
    "walltime search OTHER-LOGS --final order.toml."
)
SLOWDOWN, LONGEST = 0, 3
"""Indices of these objectives."""


def search_tables(found: OrderFile) -> list[Table | str]:
    """Return tables of a search: its steps, the front, and the best named orders."""
    return [
        _points(found.step, f"steps of the search on {_logs(found)}, {found.evaluations:,} schedulers; later jobs {RATIOS}"),
        _points(found.front, "Pareto front of slowdown and longest wait in training"),
        _points(_best_named(found), "the best named orders"),
        f"found: {found.scheduler}",
    ]


def search_page(found: OrderFile, log: Workload, command: Sequence[str]) -> Page:
    """Return the page of a search; `log`: the first of its logs."""
    chosen = next((one for one in (*found.step, *found.front) if one.scheduler == found.scheduler and one.choosing), None)
    named = next(iter(_best_named(found)), None)
    answer = f"{found.scheduler} was chosen from {found.evaluations:,} schedulers tried on {_logs(found)}"
    numbers = [("schedulers tried", f"{found.evaluations:,}")]
    if chosen is not None:
        numbers = [*_ratios_to_easy(chosen.choosing), *numbers]
        answer += f": on the later jobs it has {chosen.choosing[SLOWDOWN]:.2f} times EASY's mean bounded slowdown, and "
        answer += f"{chosen.choosing[LONGEST]:.2f} times its longest wait"
    if named is not None:
        answer += f"; the best named order, {named.scheduler}, has {named.choosing[SLOWDOWN]:.2f} and {named.choosing[LONGEST]:.2f} times"
    words = (
        "Mean bounded slowdown and longest wait on the later jobs, both over EASY's: further left and down is better; EASY is where the "
        "lines cross."
    )
    return Page(
        "search for an order",
        f"A queue order for {_logs(found)}",
        [f"{answer}."],
        list(sections(search_tables(found)[:-1])),
        facts=[("logs", _logs(found)), ("later jobs, for choosing", f"{100 * (1 - found.share):.0f} %")],
        caveats=[SELECTION_CAVEAT],
        numbers=numbers,
        picture=Drawing(_cloud(found), "objectives", words, words, wide=False, pixels=620),
        record=provenance(log, command=list(command)),
        data=found.as_dict(),
    )


def _cloud(found: OrderFile) -> Figure:
    with panel(3.6) as (figure, axes):
        groups = (("front", found.front, "o", "#9DBBD6"), ("named", found.named, "x", "#808080"))
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


def _best_named(found: OrderFile) -> list[Point]:
    return sorted(found.named, key=lambda one: one.choosing[SLOWDOWN])[:10]


def _ratios_to_easy(values: Sequence[float]) -> list[tuple[str, str]]:
    """Return the headline numbers of a scheduler."""
    return [
        ("mean bounded slowdown, over EASY's", f"{values[SLOWDOWN]:.2f}"),
        ("longest wait, over EASY's", f"{values[LONGEST]:.2f}"),
    ]


def _points(points: Sequence[Point], title: str) -> Table:
    rows = [
        [Cell(one.scheduler, look="code"), *_ratios(one.choosing), f"{one.training[0]:.2f}", f"{one.training[3]:.2f}"] for one in points
    ]
    return Table(("scheduler", *HEADS, "slowdown in training", "longest wait in training"), rows, title)


def _ratios(values: Sequence[float]) -> list[str]:
    return [f"{value:.2f}" for value in values]


def final_tables(table: FinalTable) -> list[Table | str]:
    """Return tables of an order on final logs, with the best others of each kind."""
    rows = [table.found, *(row for kind in ("named", "limited", "predicted") for row in _best(table, kind))]
    title = f"mean bounded slowdown / longest wait {RATIOS}; copies of each: {table.copies}"
    return [
        _rows(table, rows, title),
        _rows(table, _best(table, "exact"), f"{title}; all with exact estimates"),
        _rows(table, _best(table, "knows"), f"{title}; with exact estimates, over EASY with users'"),
        *_verdict(table),
    ]


def final_page(table: FinalTable, log: Workload, command: Sequence[str]) -> Page:
    """Return the page of an order on final logs; `log`: the first of them."""
    found, logs = table.found, listed(list(table.logs))
    against = next((one for label, one in table.against.items() if label.lower().startswith("easy")), None)
    interval = "" if against is None else f" ({_change(against)})"
    answer = (
        f"On {logs}, unknown to the search, {found.scheduler} has {found.overall[SLOWDOWN]:.2f} times EASY's mean "
        f"bounded slowdown{interval}, and {found.overall[LONGEST]:.2f} times its longest wait."
    )
    change = "change of the mean bounded slowdown by the found order"
    words = f"{change[0].upper()}{change[1:]}, with 90 % intervals over the logs; below 0 is less."
    figure = changes_figure([f"against {name}" for name in table.against], [("found", list(table.against.values()))], change)
    return Page(
        "order on final logs",
        f"{found.scheduler} on logs unknown to the search",
        [answer],
        list(sections(final_tables(table))),
        caveats=["A test log is unbiased only once: the order's file counts how often the order has been judged on each log."],
        numbers=[*_ratios_to_easy(found.overall), ("logs", human_number(len(table.logs)))],
        picture=Drawing(figure, "changes", words, words) if table.against else None,
        record=provenance(log, command=list(command)),
        data=table.as_dict(),
    )


def _change(change: Interval) -> str:
    mean, low, high = (shown_change(end, change.low, change.high) for end in (change.mean, change.low, change.high))
    return f"{mean}; 90 % interval over the logs {low} to {high}"


def _best(table: FinalTable, kind: str) -> list[FinalRow]:
    return sorted((row for row in table.rows if row.kind == kind), key=lambda row: row.overall[0])[:12]


def _rows(table: FinalTable, rows: Sequence[FinalRow], title: str) -> Table:
    cells = [
        [Cell(row.scheduler, look="code"), row.kind, *_ratios(row.overall), *(f"{one[0]:.2f} / {one[3]:.2f}" for one in row.logs)]
        for row in rows
    ]
    return Table(("scheduler", "kind", *HEADS, *table.logs), cells, title, texts=2)


def _verdict(table: FinalTable) -> list[str]:
    """Return sentences on the found order against EASY and the best others."""
    lines = [f"{table.found.scheduler} against {label}: mean bounded slowdown {_change(change)}" for label, change in table.against.items()]
    interval = "" if table.longest is None else f" ({_change(table.longest)})"
    lines.append(f"its longest wait is {table.found.overall[3]:.2f} x EASY's on average over the logs{interval}")
    titles = ("named order", "named order with or without a limit", "named order with or without predictions")
    for kinds, title in zip(KINDS, titles, strict=True):
        for bounded in (False, True):
            best = table.best(kinds, bounded)
            condition = " with a longest wait not above EASY's" if bounded else ""
            if best is not None:
                lines.append(
                    f"best {title}{condition}: {best.scheduler}, {best.overall[0]:.2f} with a longest wait of {best.overall[3]:.2f}"
                )
    return lines
