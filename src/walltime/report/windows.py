"""Pages of schedulers that are compared on windows of logs: fitted orders, trained agents, and leaderboards."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from walltime.benchmark import Standing, leaderboard, read_suite
from walltime.benchmark.standings import BEST, LOWEST
from walltime.metrics import Interval
from walltime.provenance import provenance
from walltime.report.figures import COLOURS, MARKS, rows_figure
from walltime.report.page import Block, Drawing, Page, Paragraph, Section, note, workload_facts
from walltime.tables import Cell, Row, Table
from walltime.tuning import Tuning
from walltime.tuning.fitting import Candidate
from walltime.wording import human_number, human_time, listed, shown_change
from walltime.workload import Workload

if TYPE_CHECKING:
    from walltime.benchmark.result import Result
    from walltime.learn.evaluation import Evaluation

TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0, 10_000.0)
"""Ratios that have a tick where there is room."""
INTERVAL = re.compile(r" \(90 % interval of [^()]*\)")
"""Left out of the first sentences of a page, as its numbers have them."""
MOST_TICKS = 9
NEAREST = 1 / 14
"""Ticks that are nearer, as a part of the axis, would write over each other."""
MOST_DRAWN = 9
"""So many rows of a first picture have letters that can be read; all are in the table."""
APART = 0.2
"""Distance of the marks of one row, in rows."""


def tuning_page(tuning: Tuning, workload: Workload, settings: Mapping[str, Any] | None = None) -> Page:
    """The page of a fitted order; `settings`: further entries of the provenance, and as `command` the command line."""
    return _page(
        "tuning", f"A queue order fitted to {tuning.log}", tuning, [_tuning_drawing(tuning)], tuning_tables(tuning), workload, settings
    )


def learned_page(evaluation: Evaluation, workload: Workload, settings: Mapping[str, Any] | None = None) -> Page:
    """The page of an evaluation of trained agents.

    `workload`: the log of the windows. `settings`: further entries of the provenance, and as `command` the command line.
    """
    title = f"{'A trained agent' if evaluation.trained_on else 'An agent'} on {evaluation.log}"
    return _page("learning", title, evaluation, _learned_drawings(evaluation), learned_tables(evaluation), workload, settings)


def _page(
    kind: str,
    title: str,
    result: Tuning | Evaluation,
    drawings: Sequence[Drawing],
    tables: Sequence[Table],
    workload: Workload,
    settings: Mapping[str, Any] | None,
) -> Page:
    record = provenance(workload, **(settings or {}))
    said = Section("In words", [Paragraph(sentence) for sentence in result.verdict])
    sections = [Section("", drawings), said, *(Section(table.title[:1].upper() + table.title[1:], [table]) for table in tables)]
    answer, about = [INTERVAL.sub("", " ".join(result.verdict))], workload_facts(workload, record["log"])
    numbers = _numbers(result)
    return Page(kind, title, answer, sections, about, result.caveats, numbers, workload=workload, record=record, data=result.as_dict())


def _numbers(result: Tuning | Evaluation) -> list[tuple[str, str]]:
    """The change with its interval, against whom, and over how much it was tested."""
    name = _named(result.metric)
    if isinstance(result, Tuning):
        changes, tested = (
            {result.baseline: result.fitted.test, result.best_simple: result.against_simple},
            ("windows of the test", result.test),
        )
    else:
        hardest = max(result.compared, key=lambda one: one.change.mean)
        changes = {one.scheduler: one.change for one in (hardest, *result.compared)}
        tested = ("windows of the test", result.windows)
    shown = [(f"{name} against {against}", " (".join(_change(change)) + ")") for against, change in list(changes.items())[:2]]
    return [*shown, (tested[0], f"{tested[1]:,}")]


# ---------------------------------------------------------------------- fitted orders


def _tuning_drawing(tuning: Tuning) -> Drawing:
    """The changes, drawn."""
    name, against = _named(tuning.metric), tuning.baseline
    ranked = _ranked(tuning)
    rows = ranked[: MOST_DRAWN - 1]
    rows += [one for one in ranked if one.scheduler == tuning.best_simple and one not in rows]
    names = [one.scheduler for one in rows]
    chosen = [Interval(one.training, one.training, one.training, "") for one in rows]
    series = [("test", [one.test for one in rows]), ("training, where it was chosen", chosen)]
    drawn = changes_figure(names, series, f"change in {name} against {against}")
    values = "; ".join(f"{label}: {_change(change)[0]}" for label, change in zip(names, series[0][1], strict=True))
    caption = f"Change in {name} against {against}, with 90 % intervals of such windows.{_further(len(ranked) - len(rows))}"
    return Drawing(drawn, "changes", f"Changes in {name}: {values}.", caption)


def _further(left_out: int) -> str:
    """That the table has more rows than the picture."""
    return f" {left_out} more {'is' if left_out == 1 else 'are'} in the table." if left_out > 0 else ""


def tuning_tables(tuning: Tuning) -> list[Table]:
    """The numbers of a fitted order."""
    name = _named(tuning.metric)
    windows = f"{tuning.training} windows of training, {tuning.test} of the test, {tuning.evaluations} candidates"
    rows = [[one.scheduler, f"{one.training:+.0f} %", *_change(one.test)] for one in _ranked(tuning)]
    zero = tuning.months[0][0]
    months = [[f"{(begin - zero) / 86_400:.0f}", _measure(tuning.metric, a), _measure(tuning.metric, b)] for begin, a, b in tuning.months]
    return [
        Table(("scheduler", "training", "test", "90 % interval of such windows"), rows, f"{name} against {tuning.baseline}: {windows}"),
        Table(("day of the test", tuning.baseline, "fitted"), months, f"{name} by held-out window"),
    ]


def _ranked(tuning: Tuning) -> list[Candidate]:
    """The fitted order, and the others, the best in the test first."""
    return [tuning.fitted, *sorted(tuning.others, key=lambda one: one.test.mean)]


def _change(change: Interval) -> list[str]:
    mean, low, high = _ends(change)
    return [mean, f"{low} to {high}"]


def _ends(one: Interval) -> list[str]:
    return [shown_change(value, one.low, one.high) for value in (one.mean, one.low, one.high)]


# ---------------------------------------------------------------------- trained agents


def _learned_drawings(evaluation: Evaluation) -> list[Drawing]:
    """The agent against each scheduler, and what shuffled features cost."""
    name = _named(evaluation.metric)
    better = f"The agent's {name} against each scheduler's, with 90 % intervals of such windows: to the left the agent is better."
    matters = (
        "What it costs to shuffle a feature among all jobs or queues, with 90 % intervals of such windows: what matters is to the right."
    )
    lowest = sorted(evaluation.compared, key=lambda one: one.mean)[: MOST_DRAWN - 1]
    compared = [(one.scheduler, one.change) for one in evaluation.compared if one in lowest or one is evaluation.compared[0]]
    better += _further(len(evaluation.compared) - len(compared))
    features = [(one.feature, one.loss) for one in evaluation.importances]
    drawings = []
    for key, pairs, axis, what, caption in (
        (
            "against",
            compared,
            f"{name} of the agent against that of each scheduler",
            f"The agent's {name} against each scheduler's",
            better,
        ),
        (
            "importances",
            features,
            f"{name} with the feature shuffled, against that without",
            "What it costs to shuffle each feature",
            matters,
        ),
    ):
        if pairs:
            drawn = changes_figure([label for label, _ in pairs], [("", [change for _, change in pairs])], axis)
            values = "; ".join(f"{label}: {change.mean:+.1f} %" for label, change in pairs)
            drawings.append(Drawing(drawn, key, f"{what}: {values}.", caption))
    return drawings


def learned_tables(evaluation: Evaluation) -> list[Table]:
    """The comparison of trained agents with schedulers, and what the agents look at."""
    rows: list[Row] = [["agent", human_number(evaluation.mean), _days(evaluation.longest_wait), "", "", "", ""]]
    for one in evaluation.compared:
        verdict = "no clear difference" if not one.is_clear else "the agent is better" if one.change.mean < 0 else "the agent is worse"
        rows.append([one.scheduler, human_number(one.mean), _days(one.longest_wait), *_ends(one.change), verdict])
    seeds = f"{len(evaluation.agents)} agent{'s' * (len(evaluation.agents) > 1)}"
    trained = f" trained on {evaluation.trained_on}" if evaluation.trained_on else ""
    title = f"{evaluation.log}: {evaluation.windows} held-out windows of {evaluation.window} jobs, {seeds}{trained}"
    head = ("scheduler", f"mean {_named(evaluation.metric)}", "longest wait", "agent against it", "90 %: from", "to", "verdict")
    tables = [Table(head, rows, title)]
    if evaluation.importances:
        rows = [[one.feature, *_ends(one.loss), "" if one.slope is None else f"{one.slope:+.2f}"] for one in evaluation.importances]
        tables.append(Table(("feature", "cost", "90 %: from", "to", "score for 0.1 more"), rows, "what it costs to shuffle a feature"))
    return tables


def _days(seconds: float) -> str:
    return f"{seconds / 86_400:.1f} d"


# ---------------------------------------------------------------------- leaderboards

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
    metric = _named(read_suite(name).metrics[0])
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
    name = _named(read_suite(lowest.suite).metrics[0])
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
        mean, low, high = (_measure(first, value) for value in (one.total.mean, one.total.low, one.total.high))
        further = [Cell(_measure(metric, one.totals[metric]), value=one.totals[metric]) for metric in others]
        total = Cell(mean, value=one.total.mean)
        lines.append([one.scheduler, total, f"{low} to {high}", *behind_cells(one), one.remark, str(one.wins), *further])
    head = ["scheduler", _named(first), "90 % interval", "above the lowest", "behind the best, 90 %", "verdict", "windows won"]
    return Table([*head, *map(_named, others)], lines, f"{name} {suite.version}: {rows[0].windows} windows")


def behind_cells(one: Standing) -> tuple[str, str]:
    """How far a scheduler is above the lowest, and behind the best."""
    if one.behind is None:
        return "", ""
    mean, low, high = (shown_change(value, one.behind.low, one.behind.high) for value in (one.behind.mean, one.behind.low, one.behind.high))
    within = f"{low} to {high}" if one.is_clear else f"up to {high}" if one.behind.high > 0 else "0"
    return ("" if one.remark in (BEST, LOWEST) else mean), within


def _named(metric: str) -> str:
    return metric.replace("_", " ")


def _measure(metric: str, value: float) -> str:
    return human_time(value) if metric.endswith(("_wait", "_response")) else human_number(value)


# ---------------------------------------------------------------------- the figure


def changes_figure(names: Sequence[str], series: Sequence[tuple[str, Sequence[Interval]]], axis: str, *, bars: bool = True) -> Figure:
    """Changes in %, a row for each name, on an axis of ratios, where half and twice are equally far from no change.

    `series`: a label, and the change of each name, with its interval. `axis`: what changes, and against what. `bars`: whether intervals
    are drawn, one below the other; without them the marks of a row share a line.
    """
    with rows_figure(names, axis, 0.17 + 0.11 * (len(series) if bars else 1)) as (figure, axes):
        for k, (label, changes) in enumerate(series):
            low, mean, high = (_ratios([getattr(one, end) for one in changes]) for end in ("low", "mean", "high"))
            rows = np.arange(len(names)) + (APART * (k - (len(series) - 1) / 2) if bars else 0)
            look: dict[str, Any] = {"color": COLOURS[k % len(COLOURS)], "marker": MARKS[k % len(MARKS)], "linestyle": "none"}
            ends = [mean - low, high - mean] if bars else None
            axes.errorbar(mean, rows, xerr=ends, markersize=5, capsize=2.5, elinewidth=1.3, label=label, **look)
        axes.axvline(1, color="#808890", linewidth=0.8)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(_ticks(*axes.get_xlim())))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: "0" if ratio == 1 else f"{100 * (ratio - 1):+,.0f} %"))
        if not bars:
            axes.grid(axis="y")
        if len(series) > 1:
            figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=len(series), borderaxespad=0)
    return figure


def _ratios(changes: Sequence[float]) -> np.ndarray:
    """Ratios from changes in %; those below a hundredth are drawn there."""
    return np.maximum(1 + np.asarray(changes) / 100, TICKS[0])


def _ticks(first: float, last: float) -> list[float]:
    """The ticks between two ratios, every second one of them, and so on, where they are too many; no change is always one of them."""
    here = [k for k, tick in enumerate(TICKS) if first <= tick <= last]
    step = -(-len(here) // MOST_TICKS) or 1
    kept = [TICKS[k] for k in here if (k - TICKS.index(1.0)) % step == 0]
    near = (last / first) ** NEAREST
    apart: list[float] = []
    for tick in kept:
        if not apart or tick >= near * apart[-1]:
            apart.append(tick)
        elif tick == 1.0:
            apart[-1] = tick
    return apart
