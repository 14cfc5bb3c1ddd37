"""The tables of a report, as HTML. All external strings are escaped with `text`."""

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

from walltime.errors import PolicyError, WorkloadError
from walltime.metrics import Month, Summary, relative_difference
from walltime.report.text import UNDEFINED, human_difference, human_number, human_percent, human_time, in_prose
from walltime.schedule.schedule import Schedule
from walltime.simulation.specification import Scheduler, parse_scheduler
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
"""Field of a Summary, its heading in the table, its format, unit of the raw value."""
LESS_IS_BETTER = {"mean_wait", "mean_response", "mean_slowdown", "mean_bounded_slowdown", "max_wait"}
MOST_MONTHS = 120
"""A log with more months gets no table by month."""
KINDS = {
    "immediate": "on arrival, with no job ahead of it waiting",
    "reserved": "after a wait, with no job ahead of it waiting",
    "backfilled": "while a job ahead of it in the queue was waiting",
}


def text(value: Any) -> str:
    """A value as text of a page, with HTML special characters escaped.

    >>> text('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(str(value), quote=True)


def unbroken(sentence: str) -> str:
    """A sentence without line breaks between a number and its unit.

    >>> unbroken("60 % in 2 h 05 min")
    '60&nbsp;% in 2&nbsp;h&nbsp;05&nbsp;min'
    """
    joined = re.sub(r"(\d) (%|s\b|min\b|h\b|d\b)", r"\1&nbsp;\2", sentence)
    return re.sub(r"(&nbsp;(?:min|h|d)) (\d)", r"\1&nbsp;\2", joined)


def scroll(inside: str, label: str, name: str = "") -> str:
    """A box that scrolls sideways, also by keyboard, if the screen is narrower than its content."""
    return f'<div class="scroll {name}" tabindex="0" role="region" aria-label="{text(label)}">{inside}</div>'


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    label: str,
    name: str = "",
    *,
    row_policies: Sequence[int] = (),
    column_policies: Sequence[int | None] = (),
) -> str:
    """A table from prepared cells; a cell that starts with `<td` is used unchanged, the first of a row is its heading.

    `row_policies`: the number of the policy of each row; `column_policies`: that of each column, None for none. The reader of a page
    with scripts can hide what belongs to a policy.
    """
    columns = column_policies or [None] * len(head)
    top = "".join(f'<th scope="col"{_of(policy)}>{cell}</th>' for cell, policy in zip(head, columns, strict=True))
    lines = []
    for k, row in enumerate(rows):
        mine = row_policies[k] if row_policies else None
        cells = [f'<th scope="row"{_of(mine)}>{row[0]}</th>']
        for cell, policy in zip(row[1:], columns[1:], strict=True):
            inside = cell.removeprefix("<td") if cell.startswith("<td") else f">{cell}</td>"
            cells.append(f"<td{_of(policy if mine is None else mine)}{inside}")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    body = "\n".join(lines)
    return scroll(f'<table class="{name}"><thead><tr>{top}</tr></thead>\n<tbody>\n{body}\n</tbody></table>', label)


def compared(shown: str, value: float, key: str, policy: int, base: float, title: str = "") -> str:
    """A cell that can be compared with that of another policy: its value, and in small print how it differs from that of the first one.

    `key`: the same for all cells that are compared with each other, in one table.
    """
    small = f"<small>{human_difference(relative_difference(value, base))}</small>" if policy else ""
    number = f' data-v="{value:.10g}"' if math.isfinite(value) else ""
    hint = f' title="{text(title)}"' if title else ""
    return f'<td data-key="{text(key)}" data-of="{policy}"{number}{hint}>{shown}{small}</td>'


def _of(policy: int | None) -> str:
    return "" if policy is None else f' data-p="{policy}"'


def facts(workload: Workload, record: Mapping[str, Any]) -> str:
    """The workload in one line: jobs, machine, period, load."""
    span = int(workload.submit[-1] - workload.submit[0]) if len(workload) else 0
    values = [
        ("log", record["log"]),
        ("jobs", f"{len(workload):,}"),
        ("processors", f"{workload.machine_procs:,}"),
        ("submitted over", human_time(span)),
        ("offered load of the log", human_percent(100 * workload.offered_load)),
    ]
    start = workload.origin.unix_start_time
    if start is not None and len(workload):
        try:
            first, last = (datetime.fromtimestamp(start + int(t), workload.origin.tzinfo()) for t in workload.submit[[0, -1]])
            values.append(("from, to", f"{first:%Y-%m-%d}, {last:%Y-%m-%d}"))
        except (OverflowError, ValueError, OSError):
            pass
    return '<dl class="facts">' + "".join(f"<div><dt>{text(a)}</dt><dd>{text(b)}</dd></div>" for a, b in values) + "</dl>"


def summary_table(names: Sequence[str], summaries: Sequence[Summary], trim: str = "none") -> str:
    """One row per policy, in readable units; the raw values are in the cells' titles."""
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
            exact = raw(value, unit)
            if field in LESS_IS_BETTER:
                cells.append(compared(shown, value, field, k, getattr(first, field), exact))
            else:
                cells.append(f'<td title="{text(exact)}">{shown}</td>')
        rows.append(cells)
    head = ["policy", "jobs measured", *(label for _, label, *_ in COLUMNS)]
    note = ["Point at a value for its exact number."]
    if len(names) > 1:
        note = [
            f'Small print: difference from <span class="base">{text(in_prose(names[0]))}</span>. Shaded: the lowest of a column.',
            *note,
        ]
    if trim != "none":
        note.append("Trimmed as in tsafrir06; utilization, offered load, makespan, months and the queue over time still include all jobs.")
    inside = table(head, rows, "Averages, one row per policy", row_policies=range(len(names)))
    return inside + f'<p class="note">{" ".join(note)}</p>'


def raw(value: float, unit: str) -> str:
    """A value with all useful digits.

    >>> raw(7412.25, "s"), raw(float("nan"), "s"), raw(3, "")
    ('7,412.25 s', 'n/a', '3')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return UNDEFINED
    number = f"{value:,.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"
    return f"{number} {unit}".rstrip()


def details_table(names: Sequence[str], summaries: Sequence[Summary]) -> str:
    """All fields of the summaries, unrounded, collapsed."""
    rows = [[text(f.name), *(text(raw(getattr(s, f.name), "")) for s in summaries)] for f in fields(Summary)]
    head = ["seconds, processors, ratios", *map(text, names)]
    inside = table(head, rows, "All values of the summaries", column_policies=[None, *range(len(names))])
    return f"<details><summary>All numbers, unrounded</summary>{inside}</details>"


def months_table(names: Sequence[str], schedules: Sequence[Schedule]) -> str:
    """The months as in mualem01, Table 1, collapsed; empty if the log has no calendar, or not 2 to 120 months."""
    workload = schedules[0].workload
    spans = [int(s.end.max() - s.submit.min()) for s in schedules if len(s)]
    if workload.origin.unix_start_time is None or not spans or max(spans) > 31 * 86_400 * MOST_MONTHS:
        return ""
    try:
        by_month: list[dict[tuple[int, int], Month]] = [{(m.year, m.month): m for m in s.monthly()} for s in schedules]
    except WorkloadError:  # its times are outside the calendar
        return ""
    keys = sorted({key for months in by_month for key in months})
    if not 2 <= len(keys) <= MOST_MONTHS:
        return ""
    two = len(names) == 2
    head = ["month", "load", "jobs"]
    for what in ("response (s)", "bounded slowdown"):
        head += [f"{what}, {text(in_prose(name))}" for name in names] + (["difference"] if two else [])
    rows = []
    for key in keys:
        mine = [months.get(key) for months in by_month]
        first = mine[0]
        cells = [f"{key[0]}-{key[1]:02d}", f"{first.load:.3f}" if first else "", f"{first.jobs:,}" if first else ""]
        for field, digits in (("mean_response", 0), ("mean_bounded_slowdown", 1)):
            values = [getattr(m, field) if m else math.nan for m in mine]
            cells += [f"{value:,.{digits}f}" if math.isfinite(value) else UNDEFINED for value in values]
            if two:
                cells.append(human_difference(relative_difference(values[1], values[0])))
        rows.append(cells)
    note = f"All jobs, each in the month in which it ends, local time of the site. Load and jobs: under {in_prose(names[0])}."
    if two:
        note += f" Difference: of {in_prose(names[1])} from {in_prose(names[0])}."
    columns = [None, None, None, *([*range(len(names)), *([None] if two else [])] * 2)]
    inside = table(head, rows, "Averages by month", "months", column_policies=columns) + f'<p class="note">{text(note)}</p>'
    title = f"{len(keys)} months, {rows[0][0]} to {rows[-1][0]}"
    return f"<h2>By month</h2>\n<details><summary>{title}</summary>{inside}</details>"


def kinds_table(names: Sequence[str], shares: Sequence[Mapping[str, float]]) -> str:
    """Kinds of start of the measured jobs, as numbers and as a bar for each policy."""
    rows = []
    for name, share in zip(names, shares, strict=True):
        bar = "".join(f'<i class="{kind}" style="width:{share[kind]:.3f}%"></i>' for kind in KINDS)
        cells = [text(human_percent(share[kind])) for kind in KINDS]
        rows.append([text(name), *cells, f'<td aria-hidden="true"><div class="bar">{bar}</div></td>'])
    head = ["policy", *(f'<span class="key {kind}"></span>{kind}' for kind in KINDS), ""]
    meaning = "; ".join(f"{kind}: {said}" for kind, said in KINDS.items())
    inside = table(head, rows, "How the jobs started, one row per policy", row_policies=range(len(names)))
    return inside + f'<p class="note">{text(meaning)}.</p>'


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
    """The provenance, with one row for each setting."""
    flat = {name: value for name, value in record.items() if name not in ("settings", "dropped", "changed", "noticed")}
    rows = []
    for name, value in (flat | dict(record["settings"])).items():
        rows.append([text(name), f'<td class="wrap">{text(_shown(name, value)) or UNDEFINED}</td>'])
    return table(["what", "value"], rows, "Provenance", "words")


def _shown(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return _line(value) if name == "command" else "; ".join(map(str, value)) or "none"
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _line(command: str | Sequence[Any]) -> str:
    """A command line quoted for a shell; a string is used unchanged."""
    return command if isinstance(command, str) else shlex.join(map(str, command))


def repeat(schedules: Sequence[Schedule], record: Mapping[str, Any], trim: str) -> str:
    """How to recompute the page: the command line, if any, and the machine-readable record."""
    settings = record["settings"]
    users = settings.get("estimates", "user") == "user"
    command = settings.get("command") or (repeat_command(schedules, trim) if users else None)
    how = f'<h3>To repeat it</h3>\n<pre tabindex="0">{text(_line(command))}</pre>' if command else ""
    whole = text(json.dumps(record, indent=2, ensure_ascii=False))
    return f'{how}\n<details><summary>The same as JSON</summary><pre tabindex="0">{whole}</pre></details>'


def repeat_command(schedules: Sequence[Schedule], trim: str) -> str | None:
    """The command line that produces these schedules, or None if no single command can."""
    options = spelled_options(schedules)
    if options is None:
        return None
    return shlex.join(["walltime", "compare", schedules[0].workload.origin.name, *options, "--trim", trim, "--report", "report.html"])


def spelled_options(schedules: Sequence[Schedule]) -> list[str] | None:
    """The options of a command on the log with which these schedules come about, or None if they cannot be spelled."""
    workload = schedules[0].workload
    runs = {(s.overrun, s.dialect) for s in schedules}
    replaced = any(not np.array_equal(s.workload.believed, s.workload.requested) for s in schedules)
    varied = bool(workload.origin.steps) or any(s.workload.feedback for s in schedules)
    on_pools = any(s.placement is not None for s in schedules)
    if on_pools or len(runs) > 1 or replaced or varied or not workload.origin.sha256 or not all(_can_be_spelled(s) for s in schedules):
        return None
    ((overrun, dialect),) = runs
    rules = ["--coincident", dialect.coincident] if dialect.name in ("papers", "pyss") else ["--dialect", dialect.label]
    policies = [word for s in schedules for word in ("--policy", s.label)]
    return ["--procs", str(workload.machine_procs), *policies, "--overrun", overrun, *rules]


def _can_be_spelled(schedule: Schedule) -> bool:
    """Whether the command line knows this scheduler by its name; a policy, an order or a predictor of a file is not known by its own."""
    prediction = None if schedule.predictions is None else schedule.predictions.prediction
    try:
        return parse_scheduler(schedule.label).label == Scheduler(schedule.policy, prediction).label
    except PolicyError:
        return False
