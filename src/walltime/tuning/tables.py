"""The tables on a fitted order, and on a search for orders."""

from collections.abc import Sequence

from walltime.report.changes import change_cells, metric_name, metric_value
from walltime.tables import Cell, Table
from walltime.tuning.fitting import Tuning
from walltime.tuning.order_file import OrderFile, Point
from walltime.wording import counted

HEADS = ("mean bounded slowdown", "wait by area", "99th percentile", "longest wait", "mean of the longest 0.1 %")
RATIOS = "over EASY's, geometric means over the logs"
SELECTION_CAVEAT = (
    "The order was chosen on these logs, so these numbers are too favourable (selection bias). To test it on another log: "
    "walltime compare LOG --policy easy --policy ORDER."
)


def tuning_tables(tuning: Tuning) -> list[Table]:
    """Return the tables on a fitted order: the fitted order, then simple orders in ascending order of their test result."""
    name = metric_name(tuning.metric)
    windows = f"{tuning.training} training windows, {tuning.test} test windows, {tuning.evaluations} candidates"
    ranked = [tuning.fitted, *sorted(tuning.others, key=lambda one: one.test.mean)]
    rows = [[one.scheduler, f"{one.training:+.0f} %", *change_cells(one.test)] for one in ranked]
    zero = tuning.months[0][0]
    months = [
        [f"{(begin - zero) / 86_400:.0f}", metric_value(tuning.metric, a), metric_value(tuning.metric, b)] for begin, a, b in tuning.months
    ]
    return [
        Table(
            ("scheduler", "training", "test", "90 % interval (windows)"),
            rows,
            f"{name.capitalize()} compared with {tuning.baseline}: {windows}",
        ),
        Table(("day of the test", tuning.baseline, "fitted"), months, f"{name.capitalize()} by held-out window"),
    ]


def search_tables(found: OrderFile) -> list[Table | str]:
    """Return tables on a search: its steps, the Pareto front, and the best named orders."""
    best_named = sorted(found.named, key=lambda one: one.choosing[0])[:10]
    return [
        _points(found.step, f"steps of the search on {found.logs}, {counted(found.evaluations, 'scheduler')}; later jobs {RATIOS}"),
        _points(found.front, "Pareto front of slowdown and longest wait in training"),
        _points(best_named, "the best named orders"),
        f"found: {found.scheduler}",
    ]


def search_answer(found: OrderFile) -> list[str]:
    """Return the result of a search as sentences, the last one a caveat."""
    return [f"{found.scheduler} was chosen from {counted(found.evaluations, 'scheduler')} tried on {found.logs}.", SELECTION_CAVEAT]


def _points(points: Sequence[Point], title: str) -> Table:
    rows = [
        [Cell(one.scheduler, look="code"), *(f"{value:.2f}" for value in (*one.choosing, one.training[0], one.training[3]))]
        for one in points
    ]
    return Table(("scheduler", *HEADS, "slowdown in training", "longest wait in training"), rows, title)
