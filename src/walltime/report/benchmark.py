"""The page and the tables of a leaderboard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from walltime.benchmark import Standing, leaderboard, read_suite
from walltime.benchmark.result import Result
from walltime.benchmark.standings import BEST, LOWEST
from walltime.files import whole_file
from walltime.report.changes import changes_figure
from walltime.report.interactive import TABLES, scripts
from walltime.report.shell import CSS_OF_RESULTS, caveats_list, figure, page
from walltime.report.tables import table, text, unbroken
from walltime.report.text import human_number, human_time, shown_change

CAVEATS = (
    "The intervals are of such windows of these subjects; on another machine's jobs the order may be another.",
    "How far schedulers are behind the best is bounded for all of them at once, the choice of the best included. So these "
    "intervals are wide; "
    "two schedulers that were named beforehand may differ clearly.",
    "A mean says nothing of single jobs: look at the longest waits, too.",
)


def write_leaderboard(path: str | Path, results: Sequence[Result]) -> Path:
    """Write the page of these results, a table for each suite; returns its path. Raises as `leaderboard` does, and OutputError."""
    boards = leaderboard(results)
    body = ['<p class="eyebrow">walltime: benchmark</p>', "<h1>Leaderboard</h1>"]
    body += [f'<p class="answer">{unbroken(text(answer(rows)))}</p>' for rows in boards.values()]
    body.append(caveats_list(CAVEATS))
    for name, rows in boards.items():
        suite, (title, head, lines) = read_suite(name), cells(name, rows)
        body += [f"<h2>{text(name)} {suite.version}</h2>", f'<p class="note">{text(suite.title)} {text(HOW)}</p>']
        body.append(_figure(name, rows))
        body.append(table(head, [[text(cell) for cell in line] for line in lines], title))
        missing = [one for one in suite.baselines if one not in {row.scheduler for row in rows}]
        body.append(f'<p class="note">Baselines without a result: {text(", ".join(missing))}.</p>' if missing else "")
        body.append(f'<p class="note">Definition: <code>{suite.definition}</code></p>')
    path = Path(path)
    with whole_file(path) as file:
        file.write(page("Leaderboard", body, [scripts(TABLES)], CSS_OF_RESULTS).encode())
    return path


def _figure(name: str, rows: Sequence[Standing]) -> str:
    """How far the others are behind the best, drawn; nothing where there is one scheduler only."""
    behind = {one.scheduler: one.behind for one in rows[1:] if one.behind is not None}
    if not behind:
        return ""
    metric = _named(read_suite(name).metrics[0])
    drawn = changes_figure(list(behind), [(metric, list(behind.values()))], f"{metric} behind the best")
    said = "; ".join(f"{scheduler}: {shown_change(one.mean, one.low, one.high)}" for scheduler, one in behind.items())
    caption = (
        f"{metric.capitalize()}: marks are above {rows[0].scheduler}, the lowest; bars are 90 % intervals behind the best, "
        "whichever that is, "
        "that hold all at once. Where a bar begins at 0, the scheduler may be the best."
    )
    return figure(drawn, f"behind-{name}", f"{metric.capitalize()} behind the best: {said}.", caption)


HOW = (
    "Geometric means over the windows, with 90 % intervals of such windows of these subjects, each alone. Behind the best: "
    "paired by windows; "
    "with 90 % all rows hold at once, whichever scheduler is the best. The order of those that may be the best means nothing."
)


def answer(rows: Sequence[Standing]) -> str:
    """Who is best in a suite, or who is lowest and which others may be the best."""
    lowest, *others = rows
    name = _named(read_suite(lowest.suite).metrics[0])
    if not others:
        return f"{lowest.suite}: {lowest.scheduler} is the only scheduler."
    near = [one.scheduler for one in others if not one.is_clear]
    if not near:
        return f"{lowest.suite}: {lowest.scheduler} is best in {name}; all others are behind."
    rest = "" if len(near) == len(others) else "; all others are behind"
    return f"{lowest.suite}: {lowest.scheduler} is lowest in {name}, but is not shown to be the best: {_listed(near)} may be, too{rest}."


def _listed(names: Sequence[str]) -> str:
    """Up to six names, and how many more."""
    shown = list(names) if len(names) <= 6 else [*names[:5], f"{len(names) - 5} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def cells(name: str, rows: Sequence[Standing]) -> tuple[str, list[str], list[list[str]]]:
    """The table of a suite as text: title, heads, and a line for each scheduler."""
    suite = read_suite(name)
    first, *others = suite.metrics
    lines = []
    for one in rows:
        total = [_shown(first, value) for value in (one.total.mean, one.total.low, one.total.high)]
        further = [_shown(metric, one.totals[metric]) for metric in others]
        lines.append([one.scheduler, total[0], f"{total[1]} to {total[2]}", *behind_cells(one), one.remark, str(one.wins), *further])
    head = [
        "scheduler",
        _named(first),
        "90 % interval",
        "above the lowest",
        "behind the best, 90 %",
        "verdict",
        "windows won",
        *map(_named, others),
    ]
    return f"{name} {suite.version}: {rows[0].windows} windows", head, lines


def behind_cells(one: Standing) -> tuple[str, str]:
    """How far a scheduler is above the lowest, and behind the best."""
    if one.behind is None:
        return "", ""
    mean, low, high = (shown_change(value, one.behind.low, one.behind.high) for value in (one.behind.mean, one.behind.low, one.behind.high))
    within = f"{low} to {high}" if one.is_clear else f"up to {high}" if one.behind.high > 0 else "0"
    return ("" if one.remark in (BEST, LOWEST) else mean), within


def _named(metric: str) -> str:
    return metric.replace("_", " ")


def _shown(metric: str, value: float) -> str:
    return human_number(value) if "slowdown" in metric else human_time(value)
