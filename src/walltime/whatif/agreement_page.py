"""The page of a calibration: recorded and simulated waits, and which differences can be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from walltime.comparison.tables import RECORDED
from walltime.metrics.recorded import Agreement
from walltime.provenance import provenance
from walltime.report.page import Block, Drawing, Fold, Heading, Page, Section, note, workload_facts
from walltime.schedule.groups import TITLES
from walltime.tables import Cell, Row, Table, time_cell
from walltime.whatif.calibration import ALL, GROUPED_BY, Calibration
from walltime.wording import UNDEFINED, human_percent, human_time, time_form
from walltime.workload import Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
SHORT = (ALL, "class", "user", "partition")
"""The groupings of the figure and of the terminal."""
MOST_GROUPS = 24
MOST_LINES = 20
"""Longer tables are folded on the page."""


def calibration_page(calibration: Calibration, workload: Workload, settings: Mapping[str, Any] | None = None) -> Page:
    """The page of a calibration; `settings`: further entries of the provenance, and as `command` the command line."""
    record = provenance(
        workload, policy=calibration.policy, trim=calibration.trim, machine_digest=calibration.machine_digest, **(settings or {})
    )
    first, second, *rest = calibration.verdict
    drawing = Drawing(
        bias_figure(calibration),
        "bias",
        "Mean simulated minus mean recorded wait of each group of jobs, with intervals over weeks.",
        "Simulated minus recorded mean wait; bars: 90 % intervals of the mean, sampling of weeks. Grey: cannot be trusted.",
    )
    waits: list[Block] = []
    for table in agreement_tables(calibration):
        if table.title.startswith("by month"):
            months = "Mean recorded and simulated wait by month of submission."
            waits.append(Drawing(months_figure(calibration), "months", months))
        folded = len(table.rows) > MOST_LINES or table.title.startswith("by month")
        waits += [Fold(table.title, [table])] if folded else [*([Heading(table.title)] if table.title else []), table]
    utilization, evidence = utilization_table(calibration), evidence_table(calibration)
    return Page(
        "recorded and simulated waits",
        f"Does a simulation of {calibration.machine} resemble it?",
        [f"{first} {second}"],
        [
            Section("Trust in differences", [note(RULE), drawing]),
            Section("Recorded and simulated waits", waits),
            *([Section("Utilization", [Heading(utilization.title), utilization])] if utilization.rows else []),
            *([Section("Waits for other reasons", [Heading(evidence.title), evidence])] if evidence.rows else []),
        ],
        workload_facts(workload, record["log"]),
        [*rest, *calibration.evidence.hints, RECORDED],
        numbers=[
            ("mean wait, recorded", human_time(calibration.overall.mean_recorded)),
            ("simulated", human_time(calibration.overall.mean_simulated)),
            ("differences can be trusted from", "never" if calibration.overall.doubt else human_time(calibration.overall.threshold)),
        ],
        workload=workload,
        record=record,
    )


RULE = (
    "A difference in mean wait between two simulations of this log is trusted if it exceeds the calibration error. This is the largest "
    "absolute value in the 90 % interval of simulated minus recorded mean wait under sampling of weeks. If that is withheld (under 20 "
    "weeks, or a lasting queue), it is the largest value in a fifth of the log. A group cannot be trusted with under 50 jobs or 4 weeks, "
    "if the error exceeds the recorded mean wait, or if the rank correlation is below 0.2. The rule is a cautious convention of this "
    "program: effects that a simulation omits are missing on both sides of a difference, and cancel in part."
)


def agreement_tables(calibration: Calibration) -> list[Table]:
    """Return recorded and simulated waits, of all jobs and of groups."""
    tables = []
    for by in (ALL, *GROUPED_BY):
        rows = [agreement(row) for row in calibration.rows if row.by == by]
        if rows and (len(rows) > 1 or by == ALL):
            tables.append(Table(COLUMNS, rows, "" if by == ALL else f"by {TITLES[by]}", look="months"))
    if len(calibration.months) > 1:
        columns, rows = [name for name in COLUMNS if name != "trusted from"], [agreement(row) for row in calibration.months]
        tables.append(Table(columns, [[*row[:2], *row[3:]] for row in rows], "by month of submission", look="months"))
    return tables


def tables_of(calibration: Calibration) -> list[Table]:
    """Return all tables of the page."""
    return [table for table in (*agreement_tables(calibration), utilization_table(calibration), evidence_table(calibration)) if table.rows]


def short_table(calibration: Calibration) -> Table:
    """Return recorded and simulated mean waits and the calibration error, for the terminal."""
    chosen = [row for row in calibration.rows if row.by in SHORT]
    rows: list[Row] = [[_group(row), f"{row.jobs:,}"] for row in chosen]
    for name in ("mean_recorded", "mean_simulated", "threshold"):
        values = [getattr(row, name) for row in chosen]
        show = time_form(values, short=True)
        rows = [[*row, Cell(show(value), value=value)] for row, value in zip(rows, values, strict=True)]
    rows = [[*cells, agreement(row)[-1], "no" if row.doubt else "yes"] for cells, row in zip(rows, chosen, strict=True)]
    head = ("", "jobs", "recorded", "simulated", "error bound", "rank corr.", "usable?")
    return Table(head, rows, f"mean wait, recorded and simulated under {calibration.policy}")


def full_tables(calibration: Calibration) -> list[Table]:
    """Return the other numbers in narrow tables, for the terminal."""
    rows = [row for row in calibration.rows if row.by in SHORT]
    waits: list[Row] = [[_group(row), *agreement(row)[5:9], *agreement(row)[9:12]] for row in rows]
    used = utilization_table(calibration)
    return [
        Table(("", *COLUMNS[5:12]), waits, "waits in the log and here"),
        replace(used, rows=used.rows[:1]),
        evidence_table(calibration),
    ]


def utilization_table(calibration: Calibration) -> Table:
    """Return recorded and simulated utilization."""
    rows = [[one.when, percent(one.recorded), percent(one.simulated)] for one in calibration.utilization]
    return Table(("", "recorded", "simulated"), rows, "utilization", look="months")


def evidence_table(calibration: Calibration) -> Table:
    """Return the jobs that waited for other reasons than processors, and shares of backfilled jobs."""
    evidence = calibration.evidence
    rows = [
        [one.what, f"{one.jobs:,}", percent(one.share), f"{one.recorded_hours:,.0f}", f"{one.simulated_hours:,.0f}"]
        for one in evidence.rows
    ]
    if evidence.backfilled_recorded is not None and evidence.backfilled_simulated is not None:
        said = f"{human_percent(evidence.backfilled_recorded)} in the log, {human_percent(evidence.backfilled_simulated)} here"
        rows.append([f"started by backfilling: {said}", "", "", "", ""])
    head = ("", "jobs", "of all", "hours waited: log", "here")
    return Table(head, rows, "waited for other reasons than processors", look="months")


def agreement(row: Agreement) -> list[str | Cell]:
    """Return a row with the columns `COLUMNS`."""
    times = (f"{what}_{which}" for what in ("mean", "median", "p90") for which in ("recorded", "simulated"))
    return [
        row.group,
        f"{row.jobs:,}",
        "never" if row.doubt else time_cell(row.threshold),
        *(time_cell(getattr(row, name)) for name in times),
        *(percent(share) for share in row.within),
        f"{row.rank_correlation:.2f}" if math.isfinite(row.rank_correlation) else UNDEFINED,
    ]


def _group(row: Agreement) -> str:
    return f"{row.group} users" if row.by == "user" else row.group


def percent(share: float) -> str:
    """Return a share in percent."""
    return human_percent(100 * share)


def bias_figure(calibration: Calibration) -> Figure:
    """Draw simulated minus recorded mean wait of all jobs, classes, partitions and kinds of users, with intervals."""
    from walltime.report.figures import BLUE, rows_figure, unit_of

    rows = [row for row in calibration.rows if row.by in SHORT][:MOST_GROUPS]
    ends = [abs(value) for row in rows for value in (row.bias, row.low, row.high) if math.isfinite(value)]
    divisor, unit = unit_of(max(ends, default=1.0))
    with rows_figure([_group(row) for row in rows], f"simulated minus recorded mean wait, {unit}", 0.27) as (figure, axes):
        for k, row in enumerate(rows):
            colour = "#808890" if row.doubt else BLUE
            if math.isfinite(row.low):
                axes.plot([row.low / divisor, row.high / divisor], [k, k], color=colour, linewidth=2.5, solid_capstyle="butt")
            axes.plot([row.bias / divisor], [k], marker="o", color=colour, markersize=5)
        axes.axvline(0, color="#808890", linewidth=0.8)
    return figure


def months_figure(calibration: Calibration) -> Figure:
    """Draw mean recorded and simulated waits by month."""
    from matplotlib.figure import Figure

    from walltime.report.figures import look, style

    with style():
        figure = Figure(figsize=(9.2, 2.8), layout="constrained")
        axes = figure.subplots()
        places = range(len(calibration.months))
        for k, (field, label) in enumerate((("mean_recorded", "recorded"), ("mean_simulated", "simulated"))):
            values = [getattr(row, field) / 3600 for row in calibration.months]
            axes.plot(places, values, marker="o", markersize=3.5, label=label, **look(k))
        step = max(1, len(calibration.months) // 12)
        axes.set_xticks(list(places)[::step], [row.group for row in calibration.months][::step])
        axes.set_ylim(0)
        axes.set_ylabel("mean wait, hours")
        axes.grid()
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper right", ncols=2)
    return figure
