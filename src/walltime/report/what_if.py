"""The page of a what-if: what each change does, how sure that is, whom it concerns, what it costs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime.files import whole_file
from walltime.metrics import range_meaning
from walltime.metrics.intervals import KINDS, SCOPES, SHOWN_LEVEL
from walltime.provenance import provenance
from walltime.report import calibration as calibrated
from walltime.report import shell
from walltime.report.caveats import caveats, longest_queue, queue_keeps_growing
from walltime.report.gains import CHANGES, SIDES, changes, sides
from walltime.report.interactive import TABLES, scripts
from walltime.report.tables import facts, provenance_table, rules_table, table, text, unbroken
from walltime.report.text import UNDEFINED, human_number, human_percent, human_time
from walltime.whatif.cost import Cost
from walltime.whatif.effects import Difference, Effect, GroupEffect, signed
from walltime.whatif.simulations import TODAY
from walltime.whatif.whatif import WhatIf
from walltime.wording import harmless

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Table = calibrated.Table
SHOWN = {"mean_wait": "mean wait", "median_wait": "median wait", "p90_wait": "wait, 90 %", "mean_bounded_slowdown": "bounded slowdown"}
GROUPED = {
    "user": "heavy, medium and light users",
    "class": "classes: over 1 h is long, over 8 processors is wide",
    "size": "processors",
    "partition": "partitions",
    "queue": "queues",
}
UNTRUSTED = "†"
"""Marks a difference below what the calibration trusts."""
MOST_CURVES = 6
LONG_QUEUE = 0.3
CSS = """
.change { overflow-wrap: break-word; }
tbody th .change { display: inline-block; min-width: 8.5rem; }
.sure th:last-child { text-align: left; }
.sure td.wrap { min-width: 14rem; }
@media print { .sure td { white-space: normal; } .sure td.wrap { min-width: 8rem; } }
"""


def write_what_if_report(path: str | Path, found: WhatIf, *, settings: Mapping[str, Any] | None = None) -> Path:
    """Write the page; `settings`: further entries of the provenance, and as `command` the command line. Raises OutputError."""
    path = Path(path)
    content = render(found, settings)
    with whole_file(path) as file:
        file.write(content.encode())
    return path


def render(found: WhatIf, settings: Mapping[str, Any] | None = None) -> str:
    """The page of `write_what_if_report` as a string."""
    jobs = found.today.workload
    shared = {"policy": found.today.label, "changes": [effect.label for effect in found.effects[: len(found.changes)]], "trim": found.trim}
    record = provenance(jobs, **shared, replications=found.replications, **(settings or {}))
    several = f"{len(found.changes)} changes" if len(found.changes) > 1 else found.effects[0].label
    heading = f"What if: {several} on {harmless(found.machine.name)}"
    command = record["settings"].get("command")
    body = [
        '<p class="eyebrow">walltime: what a change would do</p>',
        f'<h1 class="change">{text(heading)}</h1>',
        f'<p class="answer">{unbroken(text(found.answer()))}</p>',
        facts(jobs, record),
        shell.caveats_list(all_caveats(found)),
        shell.CONTENTS,
        "<h2>What each change does</h2>",
        effects_table(found),
        became_list(found),
        *_figures(found),
        "<h2>How sure that is</h2>",
        sure_table(found),
        "<h2>Whose waits change</h2>",
        *groups_tables(found),
        "<h2>Who gains, who loses</h2>",
        *gains_parts(found),
        "<h2>What it costs, what it saves</h2>",
        cost_table(found),
        *calibration_parts(found),
        "<h2>What was dropped or changed</h2>",
        rules_table(jobs),
        "<h2>Where this comes from</h2>",
        provenance_table(record),
        f"<h3>To repeat it</h3>\n<pre>{text(_line(command))}</pre>" if command else "",
        f"<details><summary>The same as JSON</summary><pre>{text(json.dumps(record, indent=2, ensure_ascii=False))}</pre></details>",
    ]
    return shell.page(heading, shell.with_contents(filter(None, body)), [scripts(TABLES)], shell.CSS_OF_RESULTS + CSS)


# ---------------------------------------------------------------------- for the terminal


def tables_of(found: WhatIf) -> list[Table]:
    """The numbers as tables of text; changes are numbered where they are columns."""
    names = [f"({k}) {effect.label}" for k, effect in enumerate(found.effects, 1)]
    numbers = [f"({k})" for k in range(1, len(names) + 1)]
    measured = int(found.measured.sum())
    title = f"{found.today.workload.origin.name}: {measured:,} jobs measured, {found.today.label} on {harmless(found.machine.name)}"
    rows = [[TODAY, *(_shown(name, found.measures[name]) for name in SHOWN), "", human_percent(100 * found.utilization)]]
    for name, effect in zip(names, found.effects, strict=True):
        mean = effect.differences["mean_wait"]
        cells = [_shown(field, effect.differences[field].changed) for field in SHOWN]
        rows.append([name, *cells, signed(mean.difference) + _mark(found, effect), human_percent(100 * effect.utilization)])
    tables: list[Table] = [(title, ("change", *SHOWN.values(), "in mean wait", "utilization"), rows)]
    sure = [[name, *cells] for name, cells in zip(names, sure_rows(found), strict=True)]
    tables.append(("how sure the difference in mean wait is", ("change", *SURE), sure))
    for by, said in GROUPED.items():
        rows = _by(found, by)
        if rows:
            tables.append((f"mean wait by {said}", ("", "jobs", TODAY, *numbers), rows))
    tables.append(("what it costs, what it saves, in node-hours while jobs arrive", ("change", *COSTS), cost_rows(found, names)))
    for name, effect in zip(names, found.effects, strict=True):
        if not effect.nothing:
            tables.append((f"who gains: {name}", SIDES, sides(effect.gains)))
    return tables


def told(found: WhatIf) -> list[str]:
    """Whose jobs are cut or left out."""
    said = []
    for effect in found.effects:
        if effect.cost.cut_jobs:
            said.append(f"{effect.label}: killed earlier than today are jobs of {'; '.join(effect.cost.cut)}.")
        if effect.cost.lost_jobs:
            said.append(f"{effect.label}: left out are jobs of {'; '.join(effect.cost.lost)}.")
    if any(_mark(found, effect) for effect in found.effects) or any(not row.trusted for effect in found.effects for row in effect.groups):
        said.append(f"{UNTRUSTED} below what the calibration trusts, or not calibrated")
    return said


def all_caveats(found: WhatIf) -> list[str]:
    """What to know before believing any of it: of the changes, of the simulations, of today's schedule."""
    said = list(found.caveats)
    settings = [(TODAY, found.today), *((effect.label, effect.schedule) for effect in found.effects)]
    queues = [(label, *longest_queue(schedule)) for label, schedule in settings]
    saturated = [(label, queued, share) for label, queued, share in queues if share >= LONG_QUEUE]
    if saturated:
        names = ", ".join(label for label, _, _ in saturated)
        longest, share = max(queued for _, queued, _ in saturated), max(share for _, _, share in saturated)
        said.append(
            f"Saturated ({names}): the queue does not empty for up to {human_time(longest)}, {human_percent(100 * share)} of the time in "
            "which jobs arrive. The waits depend more on how long that lasts than on anything else."
        )
    growing = [label for label, schedule in settings if queue_keeps_growing(schedule)]
    if growing:
        said.append(f"Not a steady state ({', '.join(growing)}): the queue is longer in every quarter of the log than in the one before.")
    known = ("Saturated under", "Under ", "No trimming")
    general = caveats([TODAY], [found.today], [found.today.summary(found.trim)], [found.measured], found.trim)
    return said + [one for one in general if not one.startswith(known)]


# ---------------------------------------------------------------------- tables


def effects_table(found: WhatIf) -> str:
    """One row per setting: each measure, and in small print its difference from today."""
    rows = [[TODAY, f"{int(found.measured.sum()):,}", *(_shown(name, found.measures[name]) for name in SHOWN)]]
    rows[0].append(human_percent(100 * found.utilization))
    for effect in found.effects:
        row = [f'<span class="change">{breakable(effect.label)}</span>', f"{effect.jobs:,}"]
        for name in SHOWN:
            one = effect.differences[name]
            mark = _mark(found, effect) if name == "mean_wait" else ""
            row.append(f"{_shown(name, one.changed)}<small>{_signed(name, one.difference)}{mark}</small>")
        points = 100 * (effect.utilization - found.utilization)
        rows.append([*row, f"{human_percent(100 * effect.utilization)}<small>{points:+.1f} points</small>"])
    head = ["change", "jobs", *SHOWN.values(), "utilization"]
    note = "Small print: difference from today, over the measured jobs that run in both. Utilization: while jobs arrive."
    if any(_mark(found, effect) for effect in found.effects):
        note += f" {UNTRUSTED} Below what the calibration trusts."
    return table(head, rows, "What each change does, one row per change") + f'<p class="note">{text(note)}</p>'


def became_list(found: WhatIf) -> str:
    """What became of what, where it is not plain from the change."""
    items = [
        f"<li>{text(effect.label)}: {text('; '.join(effect.became))}</li>"
        for effect in found.effects[: len(found.changes)]
        if effect.became
    ]
    return f'<ul class="note change">{"".join(items)}</ul>' if items else ""


SURE = (
    "difference",
    f"{KINDS['shaken.copy'].of}, {SHOWN_LEVEL}",
    f"{KINDS['weeks'].of}, {SHOWN_LEVEL}",
    "weeks that agree",
    KINDS["weeks.logs"].of,
    "trusted from",
)


def sure_rows(found: WhatIf) -> list[list[str]]:
    """A row for each effect; the columns are `SURE`."""
    rows = []
    threshold = UNDEFINED
    if found.calibration is not None:
        threshold = "never" if found.calibration.overall.doubt else human_time(found.calibration.overall.threshold)
    for effect in found.effects:
        one = effect.differences["mean_wait"]
        weeks = f"{signed(one.low)} to {signed(one.high)}" if math.isfinite(one.low) else f"withheld: {one.withheld}"
        agree = human_percent(100 * one.agree) if math.isfinite(one.agree) else UNDEFINED
        scatter = f"±{human_time(one.scatter)}" if math.isfinite(one.scatter) else UNDEFINED
        others = f"{signed(one.other_low)} to {signed(one.other_high)}" if math.isfinite(one.other_low) else UNDEFINED
        rows.append([signed(one.difference), scatter, weeks, agree, others, threshold])
    return rows


def sure_table(found: WhatIf) -> str:
    """How sure each difference in mean wait is, and what speaks against it."""
    rows = []
    for effect, cells in zip(found.effects, sure_rows(found), strict=True):
        why = "; ".join(effect.doubts) or "nothing speaks against it"
        rows.append(
            [
                f'<span class="change">{breakable(effect.label)}</span>',
                *(_sure_cell(cell) for cell in cells),
                f'<td class="wrap">{text(why)}</td>',
            ]
        )
    kinds = [KINDS[name].of for name in ("shaken.copy", "weeks", "weeks.logs")]
    details = (
        f"a further copy lies within, judged by {found.replications} copies that are the same for every setting",
        "by how five parts of the log differ, the schedules taken as they are",
        f"{effect_others(found)} logs, simulated under each setting"
        f"{'' if found.feedback else '; a job that followed another one of its user within 20 min waits for its end'}"
        f"{_of_others(found)}",
    )
    said = [f"{of[0].upper()}{of[1:]}: {SCOPES[of]} ({how})." for of, how in zip(kinds, details, strict=True)]
    note = f"Of the mean wait. {' '.join(said)} Weeks that agree: with the sign of the difference. Trusted from: by the calibration, below."
    head = ["change", *(unbroken(text(name)) for name in SURE), "what speaks against it"]
    return table(head, rows, "How sure each difference is", "sure") + f'<p class="note">{text(note)}</p>'


def _sure_cell(cell: str) -> str:
    """An interval in two lines, a reason in several."""
    if cell.startswith("withheld"):
        return f'<td class="wrap">{text(cell)}</td>'
    return text(cell).replace(" to ", " to<br>")


def effect_others(found: WhatIf) -> str:
    """How many logs of its weeks were simulated."""
    return str(max((effect.differences["mean_wait"].others for effect in found.effects), default=0) or "no")


def _of_others(found: WhatIf) -> str:
    """What the range over the other logs holds."""
    counts = {effect.differences["mean_wait"].others for effect in found.effects} - {0}
    return f": {range_meaning(max(counts)).replace('runs', 'logs')}" if counts else ""


def groups_tables(found: WhatIf) -> list[str]:
    """The mean wait of each group, a table for each grouping."""
    parts = []
    for by, said in GROUPED.items():
        rows = _by(found, by, small=True)
        if rows:
            head = ["", "jobs", TODAY, *(breakable(effect.label) for effect in found.effects)]
            parts.append(f"<h3>{text(said[0].upper() + said[1:])}</h3>" + table(head, rows, f"Mean wait by {said}", "months"))
    note = f"Mean waits; small print: difference from today. {UNTRUSTED} Below what the calibration trusts for the group."
    return [*parts, f'<p class="note">{text(note)}</p>']


def gains_parts(found: WhatIf) -> list[str]:
    """Who gains and who loses by each change."""
    parts = []
    for effect in found.effects:
        parts.append(f'<h3 class="change">{breakable(effect.label)}</h3>')
        if effect.nothing:
            parts.append("<p>No job starts earlier or later.</p>")
            continue
        parts.append(table(list(SIDES), [[text(cell) for cell in row] for row in sides(effect.gains)], f"{effect.label}: who gains"))
        rows = [[text(cell) for cell in row] for row in changes(effect.gains)]
        if rows:
            inside = table(list(CHANGES), rows, f"{effect.label}: the largest changes", "months")
            parts.append(f"<details><summary>The largest changes</summary>{inside}</details>")
    return parts


COSTS = ("nodes", "there", "used", "idle", "jobs cut", "lost with them", "jobs left out", "used by them")


def cost_rows(found: WhatIf, names: Sequence[str]) -> list[list[str]]:
    """A row for today and each effect; the columns are the change and `COSTS`."""
    every: list[tuple[str, Cost]] = [(TODAY, found.cost), *((name, effect.cost) for name, effect in zip(names, found.effects, strict=True))]
    return [
        [
            name,
            f"{one.nodes:,}",
            *(f"{hours:,.0f}" for hours in (one.capacity, one.used, one.idle)),
            f"{one.cut_jobs:,}",
            f"{one.cut_hours:,.0f}",
            f"{one.lost_jobs:,}",
            f"{one.lost_hours:,.0f}",
        ]
        for name, one in every
    ]


def cost_table(found: WhatIf) -> str:
    """Node-hours that are there, used, idle and lost, and whose."""
    names = [f'<span class="change">{breakable(effect.label)}</span>' for effect in found.effects]
    rows = [[row[0], *map(text, row[1:])] for row in cost_rows(found, names)]
    who = "".join(f"<li>{text(line)}</li>" for line in told(found) if not line.startswith(UNTRUSTED))
    note = (
        "Node-hours from the first submission to the last. Jobs cut: killed earlier than today, at a shorter limit; the node-hours that "
        "they use until then are lost unless they keep checkpoints. Jobs left out no longer fit the machine or their partition."
    )
    listed = f'<ul class="change">{who}</ul>' if who else ""
    return table(["change", *COSTS], rows, "Node-hours, one row per change") + f'<p class="note">{text(note)}</p>' + listed


def calibration_parts(found: WhatIf) -> list[str]:
    """Whether the simulation resembles the machine, as parts of a page."""
    parts = ["<h2>Does the simulation resemble the machine?</h2>"]
    if found.calibration is None:
        return [*parts, "<p>The log records no waits, so nobody knows.</p>"]
    parts += [f"<p>{unbroken(text(sentence))}</p>" for sentence in (*found.calibration.verdict, *found.calibration.evidence.hints)]
    inside = ""
    for title, columns, rows in calibrated.tables_of(found.calibration):
        if rows:
            inside += f"<h3>{text(title)}</h3>" if title else ""
            inside += table(columns, [[text(cell) for cell in row] for row in rows], title or "All jobs", "months")
    return [*parts, f"<details><summary>Recorded and simulated waits</summary>{calibrated.RULE}{inside}</details>"]


def _by(found: WhatIf, by: str, small: bool = False) -> list[list[str]]:
    """Rows of a grouping: its jobs, today's mean wait, and under each change; as HTML with the differences in small print, or text."""
    first = [row for row in found.effects[0].groups if row.by == by]
    columns: list[dict[str, GroupEffect]] = [{row.group: row for row in effect.groups if row.by == by} for effect in found.effects]
    if len(first) < 2:
        return []
    rows = []
    for row in first:
        cells = [text(row.group) if small else row.group, f"{row.jobs:,}", human_time(row.today)]
        for column in columns:
            one = column.get(row.group)
            if one is None:
                cells.append(UNDEFINED)
                continue
            mark = "" if one.trusted or found.calibration is None or not one.difference else UNTRUSTED
            shown = signed(one.difference) + mark
            cells.append(f"{human_time(one.changed)}<small>{shown}</small>" if small else shown)
        rows.append(cells)
    return rows


def _mark(found: WhatIf, effect: Effect) -> str:
    calibration = found.calibration
    mean = effect.differences["mean_wait"].difference
    return UNTRUSTED if calibration is not None and mean and not calibration.trusts("all jobs", "all jobs", mean) else ""


def _shown(measure: str, value: float) -> str:
    return human_time(value) if measure.endswith("wait") else human_number(value)


def _signed(measure: str, value: float) -> str:
    if measure.endswith("wait"):
        return signed(value)
    return f"{'+' if value > 0 else '-' if value < 0 else '±'}{human_number(abs(value))}"


def breakable(label: str) -> str:
    """A change as text of a page that may break after its signs.

    >>> breakable("a.b+=<c>")
    'a.<wbr>b+=<wbr>&lt;c&gt;'
    """
    return "<wbr>".join(text(part) for part in re.split(r"(?<=[.,:=_])(?=[^.,:=_])", label))


# ---------------------------------------------------------------------- figures


def _figures(found: WhatIf) -> list[str]:
    labels = [effect.label for effect in found.effects]
    mean = [signed(effect.differences["mean_wait"].difference) for effect in found.effects]
    said = "; ".join(f"{label}: {change}" for label, change in zip(labels, mean, strict=True))
    caption = f"Difference in mean wait from today. Thick: of such weeks; thin: of this log, shaken; both {SHOWN_LEVEL}."
    if found.calibration is not None and not found.calibration.overall.doubt:
        caption += " Grey: below what the calibration trusts."
    parts = [shell.figure(differences_figure(found), "differences", f"Differences in mean wait from today: {said}.", caption)]
    first = f", of today and the first {MOST_CURVES - 1} changes" if len(labels) >= MOST_CURVES else ""
    curves = f"Share of jobs that wait less than a time{first}."
    parts.append(shell.figure(waits_figure(found), "waits", f"Curves of the share of jobs that wait less than a time: {said}.", curves))
    return parts


def differences_figure(found: WhatIf) -> Figure:
    """The difference in mean wait of each change, with its intervals, and the band that the calibration does not trust."""
    from matplotlib.figure import Figure

    from walltime.report.figures import BLUE, INK, style

    ones: list[Difference] = [effect.differences["mean_wait"] for effect in found.effects]
    widest = max((abs(value) for one in ones for value in (one.difference, one.low, one.high) if math.isfinite(value)), default=1.0)
    divisor, unit = next(((d, u) for d, u in ((86_400, "days"), (3600, "hours"), (60, "minutes")) if widest >= 1.5 * d), (1, "s"))
    with style():
        figure = Figure(figsize=(9.2, 1.0 + 0.42 * len(ones)), layout="constrained")
        axes = figure.subplots()
        for k, one in enumerate(ones):
            if math.isfinite(one.scatter):
                ends = [(one.difference - one.scatter) / divisor, (one.difference + one.scatter) / divisor]
                axes.plot(ends, [k, k], color=INK, linewidth=1)
            if math.isfinite(one.low):
                axes.plot([one.low / divisor, one.high / divisor], [k, k], color=BLUE, linewidth=4, alpha=0.6, solid_capstyle="butt")
            axes.plot([one.difference / divisor], [k], marker="o", color=BLUE, markersize=6)
        limits = axes.get_xlim()
        if found.calibration is not None and not found.calibration.overall.doubt:
            reach = found.calibration.overall.threshold / divisor
            axes.axvspan(-reach, reach, color="#808890", alpha=0.18, linewidth=0)
            limits = (min(limits[0], -min(reach, 2 * widest / divisor)), max(limits[1], min(reach, 2 * widest / divisor)))
        axes.set_xlim(limits)
        axes.axvline(0, color="#808890", linewidth=0.8)
        axes.set_yticks(range(len(ones)), [_short(effect.label) for effect in found.effects])
        axes.set_ylim(len(ones) - 0.5, -0.5)
        axes.set_xlabel(f"difference in mean wait from today, {unit}")
        axes.grid(axis="x")
    return figure


def waits_figure(found: WhatIf) -> Figure:
    """Cumulative distributions of the wait under today's setting and the first changes, over the measured jobs."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter

    from walltime.report.figures import COLOURS, DASHES, TIME_TICKS, style

    ids = found.today.workload.job_id[found.measured]
    waits = [(TODAY, found.today.wait[found.measured])]
    waits += [(effect.label, effect.schedule.wait[np.isin(effect.schedule.workload.job_id, ids)]) for effect in found.effects]
    waits = waits[:MOST_CURVES]
    longest = max(int(wait.max(initial=1)) for _, wait in waits)
    grid = np.geomspace(1, max(longest + 1, 60), 300)
    with style():
        figure = Figure(figsize=(9.2, 3.9), layout="constrained")
        axes = figure.subplots()
        for k, (label, wait) in enumerate(waits):
            share = 100 * np.searchsorted(np.sort(wait), grid, "left") / max(len(wait), 1)
            axes.plot(grid, share, label=_short(label), color=COLOURS[k % len(COLOURS)], linestyle=DASHES[k % len(DASHES)])
        axes.set_xscale("log")
        axes.set_xlim(1, grid[-1])
        axes.set_ylim(0, 100)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_locator(FixedLocator([t for t in TIME_TICKS if t <= grid[-1]]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: TIME_TICKS.get(round(x), "")))
        axes.yaxis.set_major_formatter(PercentFormatter(decimals=0, symbol=" %"))
        axes.set_xlabel("wait less than")
        axes.set_ylabel("share of jobs")
        axes.grid()
        figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    return figure


def _short(label: str) -> str:
    return label if len(label) <= 44 else f"{label[:43]}…"


def _line(command: Any) -> str:
    import shlex

    return command if isinstance(command, str) else shlex.join(map(str, command))
