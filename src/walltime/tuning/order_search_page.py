"""Tables and page of a search for orders."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from walltime.provenance import provenance
from walltime.report.changes import TICKS
from walltime.report.figures import BLUE, legend, panel
from walltime.report.page import Drawing, Page, sections
from walltime.tables import Cell, Table
from walltime.tuning.order_file import OrderFile, Point
from walltime.wording import listed
from walltime.workload import Workload

HEADS = ("mean bounded slowdown", "wait by area", "99th percentile", "longest wait", "mean of the longest 0.1 %")
RATIOS = "over EASY's, geometric means over the logs"
SELECTION_CAVEAT = (
    "The order was chosen on these logs, so these numbers are too favourable (selection bias). To test it on another log: "
    "walltime compare LOG --policy easy --policy ORDER."
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
