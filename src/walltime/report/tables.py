"""The tables of a report, as HTML. Every string that comes from outside goes through `text`."""

from __future__ import annotations

import html
import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

import numpy as np

from walltime.metrics import Summary, relative_difference
from walltime.policy import ORDERS
from walltime.report.text import UNDEFINED, human_difference, human_number, human_percent, human_time, in_prose
from walltime.schedule.schedule import Schedule
from walltime.workload import Workload

COLUMNS = (
    ("mean_wait", "mean wait", human_time, "s"),
    ("mean_response", "mean response", human_time, "s"),
    ("mean_slowdown", "mean slowdown", human_number, ""),
    ("mean_bounded_slowdown", "mean bounded slowdown", human_number, ""),
    ("utilization", "utilization", lambda share: human_percent(100 * share), ""),
    ("backfilled_percent", "back\u00adfilled", human_percent, "%"),
    ("max_wait", "longest wait", human_time, "s"),
)
"""Field of a Summary, what the table calls it, how it is written, unit of the raw value."""
LESS_IS_BETTER = {"mean_wait", "mean_response", "mean_slowdown", "mean_bounded_slowdown", "max_wait"}
KINDS = {
    "immediate": "on arrival, nobody ahead of it waiting",
    "reserved": "after a wait, nobody ahead of it waiting",
    "backfilled": "while a job ahead of it in the queue was waiting",
}


def text(value: Any) -> str:
    """A value as text of a page, with what has a meaning in HTML escaped.

    >>> text('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(str(value), quote=True)


def unbroken(sentence: str) -> str:
    """A sentence in which no line breaks between a number and its unit.

    >>> unbroken("60 % in 2 h 05 min")
    '60&nbsp;% in 2&nbsp;h&nbsp;05&nbsp;min'
    """
    joined = re.sub(r"(\d) (%|s\b|min\b|h\b|d\b)", r"\1&nbsp;\2", sentence)
    return re.sub(r"(&nbsp;(?:min|h|d)) (\d)", r"\1&nbsp;\2", joined)


def scroll(inside: str, label: str, name: str = "") -> str:
    """A box that scrolls sideways where the screen is narrower than what it holds, also by keyboard."""
    return f'<div class="scroll {name}" tabindex="0" role="region" aria-label="{text(label)}">{inside}</div>'


def table(head: Sequence[str], rows: Sequence[Sequence[str]], label: str, name: str = "") -> str:
    """A table from ready-made cells; a cell that starts with `<td` stands for itself, the first of a row is its heading."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "\n".join(
        f'<tr><th scope="row">{row[0]}</th>' + "".join(c if c.startswith("<td") else f"<td>{c}</td>" for c in row[1:]) + "</tr>"
        for row in rows
    )
    return scroll(f'<table class="{name}"><thead><tr>{top}</tr></thead>\n<tbody>\n{body}\n</tbody></table>', label)


def facts(workload: Workload, record: Mapping[str, Any]) -> str:
    """The workload in a line: jobs, machine, span, load."""
    span = int(workload.submit[-1] - workload.submit[0]) if len(workload) else 0
    values = [
        ("log", record["log"]),
        ("jobs", f"{len(workload):,}"),
        ("processors", f"{workload.machine_procs:,}"),
        ("submitted over", human_time(span)),
        ("offered load", human_percent(100 * workload.offered_load)),
    ]
    start = workload.origin.unix_start_time
    if start is not None and len(workload):
        try:
            first, last = (datetime.fromtimestamp(start + int(t), workload.origin.tzinfo()) for t in workload.submit[[0, -1]])
            values.append(("from, to", f"{first:%Y-%m-%d}, {last:%Y-%m-%d}"))
        except (OverflowError, ValueError, OSError):
            pass
    return '<dl class="facts">' + "".join(f"<div><dt>{text(a)}</dt><dd>{text(b)}</dd></div>" for a, b in values) + "</dl>"


def summary_table(names: Sequence[str], summaries: Sequence[Summary]) -> str:
    """One row per policy, in units for people; the raw values are in the cells' titles."""
    first = summaries[0]
    best = {
        field: min((getattr(s, field) for s in summaries if not math.isnan(getattr(s, field))), default=None) for field in LESS_IS_BETTER
    }
    rows = []
    for k, (name, summary) in enumerate(zip(names, summaries, strict=True)):
        cells = [text(name), f"{summary.measured_jobs:,}"]
        for field, _, show, unit in COLUMNS:
            value = getattr(summary, field)
            shown = text(show(value))
            alone = sum(getattr(s, field) == value for s in summaries) < len(summaries)
            if value == best.get(field) and alone:
                shown = f'<span class="best">{shown}</span>'
            if k and field in LESS_IS_BETTER:
                shown += f"<small>{human_difference(relative_difference(value, getattr(first, field)))}</small>"
            cells.append(f'<td title="{text(raw(value, unit))}">{shown}</td>')
        rows.append(cells)
    head = ["policy", "jobs measured", *(label for _, label, *_ in COLUMNS)]
    note = ["Point at a value for its exact number."]
    if len(names) > 1:
        note = [f"Small print: difference from {in_prose(names[0])}. Shaded: the lowest of a column.", *note]
    return table(head, rows, "Averages, one row per policy") + f'<p class="note">{text(" ".join(note))}</p>'


def raw(value: float, unit: str) -> str:
    """A value with all digits that a reader could want.

    >>> raw(7412.25, "s"), raw(float("nan"), "s"), raw(3, "")
    ('7,412.25 s', 'n/a', '3')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return UNDEFINED
    number = f"{value:,.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"
    return f"{number} {unit}".rstrip()


def details_table(names: Sequence[str], summaries: Sequence[Summary]) -> str:
    """Every field of the summaries, unrounded, folded away."""
    rows = [[text(f.name), *(text(raw(getattr(s, f.name), "")) for s in summaries)] for f in fields(Summary)]
    inside = table(["seconds, processors, ratios", *map(text, names)], rows, "All values of the summaries")
    return f"<details><summary>All numbers, unrounded</summary>{inside}</details>"


def kinds_table(names: Sequence[str], shares: Sequence[Mapping[str, float]]) -> str:
    """How the measured jobs started, as numbers and as a bar for each policy."""
    rows = []
    for name, share in zip(names, shares, strict=True):
        bar = "".join(f'<i class="{kind}" style="width:{share[kind]:.3f}%"></i>' for kind in KINDS)
        cells = [text(human_percent(share[kind])) for kind in KINDS]
        rows.append([text(name), *cells, f'<td aria-hidden="true"><div class="bar">{bar}</div></td>'])
    head = ["policy", *(f'<span class="key {kind}"></span>{kind}' for kind in KINDS), ""]
    meaning = "; ".join(f"{kind}: {said}" for kind, said in KINDS.items())
    return table(head, rows, "How the jobs started, one row per policy") + f'<p class="note">{text(meaning)}.</p>'


def rules_table(workload: Workload) -> str:
    """The rules that dropped, changed or noticed jobs, with their counts."""
    origin = workload.origin
    total = max(origin.records, len(workload), 1)
    rows = [
        [text(rule), did, f"{count:,}", human_percent(100 * count / total)]
        for did, counts in (("dropped", origin.dropped), ("changed", origin.changed), ("noticed, left as it is", origin.noticed))
        for rule, count in counts.items()
    ]
    said = f"Records read: {origin.records:,}; jobs simulated: {len(workload):,}."
    if not rows:
        return f"<p>No rule dropped or changed a job. {said}</p>"
    return f"<p>{said}</p>" + table(
        ["rule", "what it did", "jobs", "of the records"], rows, "Rules and how many jobs each touched", "words"
    )


def provenance_table(record: Mapping[str, Any]) -> str:
    """The provenance, settings in rows of their own."""
    flat = {name: value for name, value in record.items() if name not in ("settings", "dropped", "changed", "noticed")}
    rows = []
    for name, value in (flat | dict(record["settings"])).items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else json.dumps(value) if isinstance(value, dict) else value
        rows.append([text(name), f'<td class="wrap">{text(shown) if shown != "" else UNDEFINED}</td>'])
    return table(["what", "value"], rows, "Provenance", "words")


def repeat(schedules: Sequence[Schedule], record: Mapping[str, Any], trim: str) -> str:
    """How to compute the page again: the command line where there is one, and the record for a program."""
    command = record["settings"].get("command") or repeat_command(schedules, trim)
    how = ""
    if command:
        line = command if isinstance(command, str) else shlex.join(map(str, command))
        how = f"<h3>To repeat it</h3>\n<pre>{text(line)}</pre>"
    whole = text(json.dumps(record, indent=2, ensure_ascii=False))
    return f"{how}\n<details><summary>The same as JSON</summary><pre>{whole}</pre></details>"


def repeat_command(schedules: Sequence[Schedule], trim: str) -> str | None:
    """The command line that makes these schedules, or None where one line cannot say it."""
    workload = schedules[0].workload
    orders = {s.policy.order for s in schedules}
    runs = {(s.overrun, s.coincident) for s in schedules}
    own = any(
        s.policy.order not in ORDERS.values() or getattr(s.policy, "backfill_order", None) not in (None, s.policy.order) for s in schedules
    )
    replaced = any(not np.array_equal(s.workload.believed, s.workload.requested) for s in schedules)
    if len(orders) > 1 or len(runs) > 1 or own or replaced or not workload.origin.sha256:
        return None
    (order,), ((overrun, coincident),) = orders, runs
    words = ["walltime", "compare", workload.origin.name, "--procs", str(workload.machine_procs)]
    for s in schedules:
        words += ["--policy", s.policy.name]
    words += ["--order", order.name, "--overrun", overrun, "--coincident", coincident, "--trim", trim, "--report", "report.html"]
    return shlex.join(words)
