"""The leaderboards of benchmark suites, as a page."""

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
    "The intervals are of such windows of these subjects; on another machine's jobs the order may be another.",
    "How far schedulers are behind the best is bounded for all of them at once, the choice of the best included. So these "
    "intervals are wide; two schedulers that were named beforehand may differ clearly.",
    "A mean says nothing of single jobs: look at the longest waits, too.",
)
HOW = (
    "Geometric means over the windows, with 90 % intervals of such windows of these subjects, each alone. Behind the best: paired by "
    "windows; with 90 % all rows hold at once, whichever scheduler is the best. The order of those that may be the best means nothing."
)


def leaderboard_page(results: Sequence[Result]) -> Page:
    """The page of these results, a table for each suite; raises as `leaderboard` does."""
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
    blocks: list[Block | None] = [note(f"{suite.title} {HOW}"), _board_drawing(name, rows), leaderboard_table(name, rows)]
    blocks.append(note(f"Baselines without a result: {', '.join(missing)}.") if missing else None)
    return Section(f"{name} {suite.version}", [*blocks, note(f"Definition: {suite.definition}")])


def _board_drawing(name: str, rows: Sequence[Standing]) -> Drawing | None:
    """How far the others are behind the best; nothing where there is one scheduler only."""
    behind = {one.scheduler: one.behind for one in rows[1:] if one.behind is not None}
    if not behind:
        return None
    metric = metric_name(read_suite(name).metrics[0])
    drawn = changes_figure(list(behind), [(metric, list(behind.values()))], f"{metric} behind the best")
    values = "; ".join(f"{scheduler}: {shown_change(one.mean, one.low, one.high)}" for scheduler, one in behind.items())
    caption = (
        f"{metric.capitalize()}: marks are above {rows[0].scheduler}, the lowest; bars are 90 % intervals behind the best, whichever that "
        "is, that hold all at once. Where a bar begins at 0, the scheduler may be the best."
    )
    return Drawing(drawn, f"behind-{name}", f"{metric.capitalize()} behind the best: {values}.", caption)


def leaderboard_answer(rows: Sequence[Standing]) -> str:
    """Who is best in a suite, or who is lowest and which others may be the best."""
    lowest, *others = rows
    name = metric_name(read_suite(lowest.suite).metrics[0])
    if not others:
        return f"{lowest.suite}: {lowest.scheduler} is the only scheduler."
    near = [one.scheduler for one in others if not one.is_clear]
    if not near:
        return f"{lowest.suite}: {lowest.scheduler} is best in {name}; all others are behind."
    rest = "" if len(near) == len(others) else "; all others are behind"
    return f"{lowest.suite}: {lowest.scheduler} is lowest in {name}, but is not shown to be the best: {_some(near)} may be, too{rest}."


def _some(names: Sequence[str]) -> str:
    """Up to six names, and how many more."""
    return listed(names if len(names) <= 6 else [*names[:5], f"{len(names) - 5} more"])


def leaderboard_table(name: str, rows: Sequence[Standing]) -> Table:
    """A line for each scheduler of a suite."""
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
    """How far a scheduler is above the lowest, and behind the best."""
    if one.behind is None:
        return "", ""
    mean, low, high = (shown_change(value, one.behind.low, one.behind.high) for value in (one.behind.mean, one.behind.low, one.behind.high))
    within = f"{low} to {high}" if one.is_clear else f"up to {high}" if one.behind.high > 0 else "0"
    return ("" if one.remark in (BEST, LOWEST) else mean), within
