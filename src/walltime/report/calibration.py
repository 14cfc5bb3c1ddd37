"""The page of a calibration: recorded and simulated waits side by side, and which differences can be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from walltime.files import whole_file
from walltime.provenance import provenance
from walltime.report import shell
from walltime.report.interactive import TABLES, scripts
from walltime.report.recorded import MEANING
from walltime.report.tables import facts, provenance_table, rules_table, table, text, unbroken
from walltime.report.text import UNDEFINED, human_percent, human_time
from walltime.whatif.calibration import Agreement, Calibration
from walltime.whatif.effects import signed
from walltime.workload import Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Table = tuple[str, Sequence[str], list[list[str]]]
"""A title, the heads of the columns, and rows of text."""

COLUMNS = (
    "",
    "jobs",
    "trusted from",
    "mean: log",
    "here",
    "median: log",
    "here",
    "90 %: log",
    "here",
    "start within 1 min",
    "10 min",
    "1 h",
    "rank correlation",
)
TITLES = {
    "all jobs": "",
    "class": "by class",
    "user": "by heavy, medium and light users",
    "size": "by processors",
    "partition": "by partition",
    "queue": "by queue",
}
MOST_LINES = 20
"""A longer table is folded on the page."""


def write_calibration_report(
    path: str | Path, found: Calibration, workload: Workload, *, settings: Mapping[str, Any] | None = None
) -> Path:
    """Write the page; `settings`: further entries of the provenance, and as `command` the command line. Raises OutputError."""
    path = Path(path)
    content = render(found, workload, settings)
    with whole_file(path) as file:
        file.write(content.encode())
    return path


def render(found: Calibration, workload: Workload, settings: Mapping[str, Any] | None = None) -> str:
    """The page of `write_calibration_report` as a string."""
    record = provenance(workload, policy=found.policy, trim=found.trim, machine_digest=found.machine_digest, **(settings or {}))
    heading = f"Does a simulation of {found.machine} resemble it?"
    first, second, *rest = found.verdict
    body = [
        '<p class="eyebrow">walltime: recorded and simulated waits</p>',
        f"<h1>{text(heading)}</h1>",
        f'<p class="answer">{unbroken(text(f"{first} {second}"))}</p>',
        facts(workload, record),
        shell.caveats_list([*rest, *found.evidence.hints, MEANING]),
        shell.CONTENTS,
        "<h2>How far differences can be trusted</h2>",
        RULE,
        shell.figure(
            bias_figure(found),
            "bias",
            "Mean simulated minus mean recorded wait of each group of jobs, with intervals over weeks.",
            "Simulated minus recorded mean wait; bars: 90 % intervals of the mean over such weeks. Grey: cannot be trusted.",
        ),
        *sections(found),
        "<h2>What was dropped or changed</h2>",
        rules_table(workload),
        "<h2>Where this comes from</h2>",
        provenance_table(record),
    ]
    return shell.page(heading, shell.with_contents(body), [scripts(TABLES)], shell.CSS_OF_RESULTS)


RULE = (
    '<p class="note">A difference in mean wait between two simulations of this log is trusted if it is larger than the discrepancy between '
    "the simulation and the log can be: the largest absolute value in the 90 % interval of simulated minus recorded mean wait over such "
    "weeks, or in a fifth of the log where that interval is withheld (under 20 weeks, or a lasting queue). A group cannot be trusted with "
    "under 50 jobs or 4 weeks, where that is more than the recorded mean wait, or where the rank correlation is below 0.2. The rule is a "
    "convention of this program. It is a cautious one: what a simulation leaves out is left out on both sides of a difference, and cancels "
    "in part.</p>"
)


def sections(found: Calibration) -> list[str]:
    """The tables as parts of a page, and the months as a figure."""
    parts = ["<h2>Recorded and simulated waits</h2>"]
    for title, columns, rows in [one for one in tables_of(found) if one[2]]:
        if title.startswith("by month"):
            parts.append(shell.figure(months_figure(found), "months", "Mean recorded and simulated wait by month of submission."))
        if title.startswith("waited"):
            parts.append("<h2>Who waited for other reasons</h2>")
        if title.startswith("utilization"):
            parts.append("<h2>Utilization</h2>")
        inside = table(columns, [[text(cell) for cell in row] for row in rows], title or "All jobs", "months")
        long = len(rows) > MOST_LINES or title.startswith("by month")
        heading = f"<h3>{text(title)}</h3>" if title else ""
        parts.append(f"<details><summary>{text(title)}</summary>{inside}</details>" if long else heading + inside)
    return parts


def tables_of(found: Calibration) -> list[Table]:
    """The numbers of the page as tables of text."""
    tables: list[Table] = []
    for by, title in TITLES.items():
        rows = [agreement(row) for row in found.rows if row.by == by]
        if rows and (len(rows) > 1 or by == "all jobs"):
            tables.append((title, COLUMNS, rows))
    if len(found.months) > 1:
        columns, rows = [name for name in COLUMNS if name != "trusted from"], [agreement(row) for row in found.months]
        tables.append(("by month of submission", columns, [[*row[:2], *row[3:]] for row in rows]))
    return [*tables, utilization_table(found), evidence_table(found)]


def short_tables(found: Calibration) -> list[Table]:
    """The most important of them in narrow tables, for the terminal."""
    rows = [row for row in found.rows if row.by in ("all jobs", "class", "user", "partition")]
    cells = [agreement(row) for row in rows]
    names = [f"{row.group} users" if row.by == "user" else row.group for row in rows]
    waits = [[name, own[1], *own[3:9]] for name, own in zip(names, cells, strict=True)]
    bias = [[name, signed(row.bias), own[2], *own[9:]] for name, row, own in zip(names, rows, cells, strict=True)]
    tables: list[Table] = [("waits in the log and here", ("", "jobs", *COLUMNS[3:9]), waits)]
    tables.append(("how far they agree", ("", "here minus log", "trusted from", *COLUMNS[9:]), bias))
    title, columns, used = utilization_table(found)
    return [*tables, (title, columns, used[:1]), evidence_table(found)]


def utilization_table(found: Calibration) -> Table:
    """Recorded and simulated utilization."""
    rows = [[one.when, percent(one.recorded), percent(one.simulated)] for one in found.utilization]
    return "utilization", ("", "recorded", "simulated"), rows


def evidence_table(found: Calibration) -> Table:
    """Who waited for other reasons than processors, and shares of backfilled jobs."""
    evidence = found.evidence
    rows = [
        [one.what, f"{one.jobs:,}", percent(one.share), f"{one.recorded_hours:,.0f}", f"{one.simulated_hours:,.0f}"]
        for one in evidence.rows
    ]
    if evidence.backfilled_recorded is not None and evidence.backfilled_simulated is not None:
        said = f"{human_percent(evidence.backfilled_recorded)} in the log, {human_percent(evidence.backfilled_simulated)} here"
        rows.append([f"started by backfilling: {said}", "", "", "", ""])
    return "waited for other reasons than processors", ("", "jobs", "of all", "hours waited: log", "here"), rows


def agreement(row: Agreement) -> list[str]:
    """A row of text; the columns are `COLUMNS`."""
    times = (f"{what}_{which}" for what in ("mean", "median", "p90") for which in ("recorded", "simulated"))
    return [
        row.group,
        f"{row.jobs:,}",
        "never" if row.doubt else human_time(row.threshold),
        *(human_time(getattr(row, name)) for name in times),
        *(percent(share) for share in row.within),
        f"{row.rank_correlation:.2f}" if math.isfinite(row.rank_correlation) else UNDEFINED,
    ]


def percent(share: float) -> str:
    """A share in percent."""
    return human_percent(100 * share)


def bias_figure(found: Calibration) -> Figure:
    """Simulated minus recorded mean wait of all jobs and of each class, partition and kind of users, with intervals."""
    from matplotlib.figure import Figure

    from walltime.report.figures import BLUE, style

    rows = [row for row in found.rows if row.by in ("all jobs", "class", "user", "partition")][:24]
    with style():
        figure = Figure(figsize=(9.2, 0.9 + 0.27 * len(rows)), layout="constrained")
        axes = figure.subplots()
        for k, row in enumerate(rows):
            colour = "#808890" if row.doubt else BLUE
            if math.isfinite(row.low):
                axes.plot([row.low / 3600, row.high / 3600], [k, k], color=colour, linewidth=2.5, solid_capstyle="butt")
            axes.plot([row.bias / 3600], [k], marker="o", color=colour, markersize=5)
        axes.axvline(0, color="#808890", linewidth=0.8)
        names = [f"{row.group} users" if row.by == "user" else row.group for row in rows]
        axes.set_yticks(range(len(rows)), names)
        axes.invert_yaxis()
        axes.set_xlabel("simulated minus recorded mean wait, hours")
        axes.grid(axis="x")
    return figure


def months_figure(found: Calibration) -> Figure:
    """Mean recorded and simulated waits by month."""
    from matplotlib.figure import Figure

    from walltime.report.figures import COLOURS, DASHES, style

    with style():
        figure = Figure(figsize=(9.2, 2.8), layout="constrained")
        axes = figure.subplots()
        places = range(len(found.months))
        for k, (field, label) in enumerate((("mean_recorded", "recorded"), ("mean_simulated", "simulated"))):
            values = [getattr(row, field) / 3600 for row in found.months]
            axes.plot(places, values, color=COLOURS[k], linestyle=DASHES[k], marker="o", markersize=3.5, label=label)
        step = max(1, len(found.months) // 12)
        axes.set_xticks(list(places)[::step], [row.group for row in found.months][::step])
        axes.set_ylim(0)
        axes.set_ylabel("mean wait, hours")
        axes.grid()
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper right", ncols=2)
    return figure
