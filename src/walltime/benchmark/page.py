"""The page of leaderboards of benchmark suites."""

from __future__ import annotations

from collections.abc import Sequence

from walltime.benchmark.result import Result
from walltime.benchmark.standings import BEST, LOWEST, Standing, leaderboard
from walltime.benchmark.suite import read_suite
from walltime.report.changes import changes_figure, metric_name, metric_value
from walltime.report.page import Block, Drawing, Page, Section, note
from walltime.tables import Cell, Row, Table
from walltime.wording import listed, shown_change

LEADERBOARD_CAVEATS = (
    "The intervals cover the sampling of windows of these subjects; on other machines the order may differ.",
    "The intervals behind the best hold for all schedulers at once, including the selection of the best. They are therefore wide; two "
    "schedulers chosen beforehand may differ clearly.",
    "A mean hides single jobs: check the longest waits as well.",
)
METHOD = (
    "Geometric means over the windows, with separate 90 % intervals (sampling of windows). Behind the best: simultaneous 90 % intervals, "
    "paired by windows. The order of schedulers that may be the best has no meaning."
)


def leaderboard_page(results: Sequence[Result]) -> Page:
    """Return the page of these results, a table for each suite; raises the errors of `leaderboard`."""
    boards = leaderboard(results)
    sections = [_board(name, rows) for name, rows in boards.items()]
    answers = [leaderboard_answer(rows) for rows in boards.values()]
    numbers = []
    for name, rows in list(boards.items())[:1]:
        numbers = [(f"lowest on {name}", rows[0].scheduler), ("schedulers", f"{len(rows):,}"), ("windows", f"{rows[0].windows:,}")]
    return Page("benchmark", "Leaderboard", answers, sections, caveats=LEADERBOARD_CAVEATS, numbers=numbers)


def _board(name: str, rows: Sequence[Standing]) -> Section:
    suite = read_suite(name)
    missing = [one for one in suite.baselines if one not in {row.scheduler for row in rows}]
    blocks: list[Block | None] = [note(f"{suite.title} {METHOD}"), _board_drawing(name, rows), leaderboard_table(name, rows)]
    blocks.append(note(f"Baselines without a result: {', '.join(missing)}.") if missing else None)
    return Section(f"{name} {suite.version}", [*blocks, note(f"Definition: {suite.definition}")])


def _board_drawing(name: str, rows: Sequence[Standing]) -> Drawing | None:
    """Return the figure of the schedulers behind the best; None for a single scheduler."""
    behind = {one.scheduler: one.behind for one in rows[1:] if one.behind is not None}
    if not behind:
        return None
    metric = metric_name(read_suite(name).metrics[0])
    drawn = changes_figure(list(behind), [(metric, list(behind.values()))], f"{metric} behind the best")
    values = "; ".join(f"{scheduler}: {shown_change(one.mean, one.low, one.high)}" for scheduler, one in behind.items())
    caption = (
        f"{metric.capitalize()}: marks are differences to {rows[0].scheduler}, the lowest; bars are simultaneous 90 % intervals behind the "
        "best. A scheduler whose bar begins at 0 may be the best."
    )
    return Drawing(drawn, f"behind-{name}", f"{metric.capitalize()} behind the best: {values}.", caption)


def leaderboard_answer(rows: Sequence[Standing]) -> str:
    """Return a sentence on the best scheduler of a suite, or on the lowest and the others that may be the best."""
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
    return Table([*head, *map(metric_name, others)], lines, f"{name} {suite.version}: {rows[0].windows} windows")


def behind_cells(one: Standing) -> tuple[str, str]:
    """Return the cells of a scheduler's differences to the lowest and to the best."""
    if one.behind is None:
        return "", ""
    mean, low, high = (shown_change(value, one.behind.low, one.behind.high) for value in (one.behind.mean, one.behind.low, one.behind.high))
    within = f"{low} to {high}" if one.is_clear else f"up to {high}" if one.behind.high > 0 else "0"
    return ("" if one.remark in (BEST, LOWEST) else mean), within
