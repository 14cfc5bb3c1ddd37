"""Return the tables and sentences of leaderboards."""

from __future__ import annotations

from collections.abc import Sequence

from walltime.benchmark.standings import BEST, LOWEST, Standing
from walltime.benchmark.suite import read_suite
from walltime.report.changes import metric_name, metric_value
from walltime.tables import Cell, Row, Table
from walltime.wording import counted, listed, shown_change

LEADERBOARD_CAVEATS = (
    "The intervals cover the sampling of windows of these subjects; on other machines the order may differ.",
    "The intervals behind the best hold for all schedulers at once, including the selection of the best. They are therefore wide; two "
    "schedulers chosen beforehand may differ clearly.",
    "A mean hides individual jobs: check the longest waits as well.",
)


def leaderboard_answer(rows: Sequence[Standing]) -> str:
    """Return a sentence on the best scheduler of a suite or, if it is not clear, on all that may be the best."""
    lowest, *others = rows
    name = metric_name(read_suite(lowest.suite).metrics[0])
    if not others:
        return f"{lowest.suite}: {lowest.scheduler} is the only scheduler."
    near = [one.scheduler for one in others if not one.is_clear]
    if not near:
        return f"{lowest.suite}: {lowest.scheduler} is best in {name}; all others are behind."
    rest = "" if len(near) == len(others) else "; all others are behind"
    names = listed(near if len(near) <= 6 else [*near[:5], f"{len(near) - 5} more"])
    return f"{lowest.suite}: {lowest.scheduler} is lowest in {name}, but {names} may also be the best{rest}."


def leaderboard_table(name: str, rows: Sequence[Standing]) -> Table:
    """Return a table with a row for each scheduler of a suite."""
    suite = read_suite(name)
    first, *others = suite.metrics
    lines: list[Row] = []
    for one in rows:
        mean, low, high = (metric_value(first, value) for value in (one.total.mean, one.total.low, one.total.high))
        further = [Cell(metric_value(metric, one.totals[metric]), value=one.totals[metric]) for metric in others]
        total = Cell(mean, value=one.total.mean)
        lines.append([one.scheduler, total, f"{low} to {high}", *behind_cells(one), one.remark, str(one.wins), *further])
    head = ["scheduler", metric_name(first), "90 % interval", "above the lowest", "behind the best, 90 %", "verdict", "windows won"]
    return Table([*head, *map(metric_name, others)], lines, f"{name} {suite.version}: {counted(rows[0].windows, 'window')}")


def behind_cells(one: Standing) -> tuple[str, str]:
    """Return cells with a scheduler's difference from the lowest result and the interval of its distance from the best."""
    if one.behind is None:
        return "", ""
    mean, low, high = (shown_change(value, one.behind.low, one.behind.high) for value in (one.behind.mean, one.behind.low, one.behind.high))
    within = f"{low} to {high}" if one.is_clear else f"up to {high}" if one.behind.high > 0 else "0"
    return ("" if one.remark in (BEST, LOWEST) else mean), within
