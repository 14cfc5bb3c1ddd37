"""The page and the tables of a fitted order, and of orders chosen every week."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from walltime.logs import whole_file
from walltime.metrics import Interval
from walltime.provenance import provenance
from walltime.report.changes import changes_figure
from walltime.report.live import TABLES, scripts
from walltime.report.shell import CSS_OF_RESULTS, care, figure, page
from walltime.report.tables import facts, provenance_table, rules_table, table, text, unbroken
from walltime.report.text import human_number, human_time
from walltime.tuning import Tuning, Weekly
from walltime.tuning.fitting import Tried
from walltime.workload import Workload

Table = tuple[str, Sequence[str], list[list[str]]]
"""A title, the heads of the columns, and rows of text."""
CAUTIONS = {
    Tuning: (
        "The intervals are over the held-out windows of one machine's log; on another machine the weights may gain nothing.",
        "The best of many candidates looks better in training than it is: only the test counts.",
        "Users might submit other jobs if the queue were ordered otherwise; the log's jobs stay as they are.",
    ),
    Weekly: (
        "Weeks that follow each other are alike, so these intervals are somewhat too narrow.",
        "Users might submit other jobs if the queue were ordered otherwise; the log's jobs stay as they are.",
    ),
}


def write_tuning_report(path: str | Path, found: Tuning | Weekly, workload: Workload, *, settings: Mapping[str, Any] | None = None) -> Path:
    """Write the page of a fitted order or of weekly choices; returns its path.

    `settings`: further entries of the provenance, and as `command` the command line. Raises OutputError if it cannot be written.
    """
    record = provenance(workload, **(settings or {}))
    heading = f"{'A queue order fitted to' if isinstance(found, Tuning) else 'A queue order chosen every week on'} {found.log}"
    body = [
        '<p class="eyebrow">walltime: tuning</p>',
        f"<h1>{text(heading)}</h1>",
        f'<p class="answer">{unbroken(text(" ".join(found.verdict)))}</p>',
        facts(workload, record),
        care(CAUTIONS[type(found)]),
        _figure(found),
    ]
    for title, columns, rows in tables(found):
        body.append(f"<h2>{text(title[:1].upper() + title[1:])}</h2>")
        body.append(table(columns, [[text(cell) for cell in row] for row in rows], title))
    body += ["<h2>What was dropped or changed</h2>", rules_table(workload), "<h2>Where this comes from</h2>", provenance_table(record)]
    kept = json.dumps(found.as_dict(), indent=2)
    body.append(f'<details><summary>The same as JSON</summary><pre tabindex="0">{text(kept)}</pre></details>')
    path = Path(path)
    with whole_file(path) as file:
        file.write(page(heading, body, [scripts(TABLES)], CSS_OF_RESULTS).encode())
    return path


def _figure(found: Tuning | Weekly) -> str:
    """The changes, drawn."""
    name = found.metric.replace("_", " ")
    if isinstance(found, Weekly):
        names, against = [f"against {label}" for label in found.against], f"one order all along, {found.weeks} weeks"
        series = [("weekly choices", list(found.against.values()))]
    else:
        rows = _ranked(found)
        names, against = [one.scheduler for one in rows], found.baseline
        series = [("test", [one.test for one in rows]), ("training", [one.training for one in rows])]
    drawn = changes_figure(names, series, f"change in {name} against {against}")
    said = "; ".join(f"{label}: {_change(change)[0]}" for label, change in zip(names, series[0][1], strict=True))
    return figure(drawn, "changes", f"Changes in {name}: {said}.", f"Change in {name} against {against}, with 90 % intervals.")


def tables(found: Tuning | Weekly) -> list[Table]:
    """The numbers as tables of text."""
    name = found.metric.replace("_", " ")
    if isinstance(found, Weekly):
        counts = Counter(found.choices)
        chosen = [[order, f"{counts[order]:,}"] for order in found.orders]
        rows = [[label, *_change(change)] for label, change in found.against.items()]
        title = f"{name} of {found.policy} with weekly choices ({found.strategy}) against one order all along, {found.weeks} weeks"
        return [(title, ("against", "change", "90 % interval"), rows), ("weeks in which each order was chosen", ("order", "weeks"), chosen)]
    title = (
        f"{name} against {found.baseline}: {found.training} windows of training, {found.test} of the test, {found.evaluations} candidates"
    )
    rows = [[one.scheduler, *_change(one.training), *_change(one.test)] for one in _ranked(found)]
    show = human_time if found.metric.endswith(("_wait", "_response")) else human_number
    zero = found.months[0][0]
    months = [[f"{(begin - zero) / 86_400:.0f}", show(before), show(after)] for begin, before, after in found.months]
    return [
        (title, ("scheduler", "training", "90 % interval", "test", "90 % interval"), rows),
        (f"{name} by held-out window", ("day of the test", found.baseline, "fitted"), months),
    ]


def _ranked(found: Tuning) -> list[Tried]:
    """The fitted order, and the others, the best in the test first."""
    return [found.fitted, *sorted(found.others, key=lambda one: one.test.mean)]


def _change(change: Interval) -> list[str]:
    return [f"{change.mean:+.1f} %", f"{change.low:+.1f} to {change.high:+.1f} %"]
