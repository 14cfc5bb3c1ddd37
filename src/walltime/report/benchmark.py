"""The page and the tables of a leaderboard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from walltime.benchmark import Standing, leaderboard, read_suite
from walltime.benchmark.result import Result
from walltime.logs import whole_file
from walltime.report.changes import changes_figure
from walltime.report.live import TABLES, scripts
from walltime.report.shell import CSS_OF_RESULTS, care, figure, page
from walltime.report.tables import table, text, unbroken
from walltime.report.text import human_number, human_time

CAUTIONS = (
    "Schedulers are compared on these windows only; another machine's jobs may order them otherwise.",
    "Many comparisons are made: of twenty equal schedulers some would seem clearly behind by chance.",
    "A mean says nothing of single jobs: look at the longest waits, too.",
)


def write_leaderboard(path: str | Path, results: Sequence[Result]) -> Path:
    """Write the page of these results, a table for each suite; returns its path. Raises as `leaderboard` does, and OutputError."""
    boards = leaderboard(results)
    body = ['<p class="eyebrow">walltime: benchmark</p>', "<h1>Leaderboard</h1>"]
    body += [f'<p class="answer">{unbroken(text(answer(rows)))}</p>' for rows in boards.values()]
    body.append(care(CAUTIONS))
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
    behind = {one.scheduler: one.behind for one in rows if one.behind is not None}
    if not behind:
        return ""
    metric = _named(read_suite(name).metrics[0])
    drawn = changes_figure(list(behind), [(metric, list(behind.values()))], f"{metric} against that of {rows[0].scheduler}")
    said = "; ".join(f"{scheduler}: {one.mean:+.1f} %" for scheduler, one in behind.items())
    caption = f"{metric.capitalize()} behind {rows[0].scheduler}, the best, with 90 % intervals."
    return figure(drawn, f"behind-{name}", f"{metric.capitalize()} behind the best: {said}.", caption)


HOW = (
    "Geometric means over the windows, with 90 % intervals; behind the best: paired by windows. Without a clear difference the order of "
    "two rows means nothing."
)


def answer(rows: Sequence[Standing]) -> str:
    """Who is best in a suite, and who is not clearly behind."""
    best, *others = rows
    near = [one.scheduler for one in others if not one.is_clear]
    rest = f"; no clear difference to {', '.join(near)}" if near else "; all others are clearly behind" if others else ""
    return f"{best.suite}: {best.scheduler} is best in {_named(read_suite(best.suite).metrics[0])}{rest}."


def cells(name: str, rows: Sequence[Standing]) -> tuple[str, list[str], list[list[str]]]:
    """The table of a suite as text: title, heads, and a line for each scheduler."""
    suite = read_suite(name)
    first, *others = suite.metrics
    lines = []
    for one in rows:
        behind = "" if one.behind is None else f"{one.behind.mean:+.1f} % ({one.behind.low:+.1f} to {one.behind.high:+.1f})"
        total = [_shown(first, value) for value in (one.total.mean, one.total.low, one.total.high)]
        further = [_shown(metric, one.totals[metric]) for metric in others]
        lines.append([one.scheduler, total[0], f"{total[1]} to {total[2]}", behind, one.remark, str(one.wins), *further])
    head = ["scheduler", _named(first), "90 % interval", "behind the best", "difference", "windows won", *map(_named, others)]
    return f"{name} {suite.version}: {rows[0].windows} windows", head, lines


def _named(metric: str) -> str:
    return metric.replace("_", " ")


def _shown(metric: str, value: float) -> str:
    return human_number(value) if "slowdown" in metric else human_time(value)
