"""The report page of a calibration: recorded and simulated waits, and the differences that exceed the calibration error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from walltime.comparison.tables import RECORDED
from walltime.metrics.recorded import FEW_JOBS, POOR_RANKS, Agreement
from walltime.metrics.weekly_interval import FEWEST_WEEKS
from walltime.provenance import provenance
from walltime.report.page import Block, Drawing, Fold, Heading, Page, Section, note, workload_facts
from walltime.schedule.groups import LONG, TITLES, WIDE
from walltime.tables import Cell, Row, Table, time_cell
from walltime.whatif.calibration import ALL, ERROR, GROUPED_BY, Calibration, group_name
from walltime.whatif.track_record import class_of
from walltime.wording import UNDEFINED, human_percent, human_time, time_form
from walltime.workload import Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAITS = tuple(f"{what}, {of}" for what in ("mean", "median", "90 %") for of in ("recorded", "simulated"))
COLUMNS = ("", "jobs", ERROR, *WAITS, "start within 1 min", "10 min", "1 h", "rank correlation")
SHORT = (ALL, "class", "user", "partition")
"""The groupings of the figure and of the terminal."""
MOST_GROUPS = 24
MOST_LINES = 20
"""Tables with more rows are collapsed on the page."""


def calibration_page(calibration: Calibration, workload: Workload, settings: Mapping[str, Any] | None = None) -> Page:
    """Return the report page of a calibration; `settings`: additional entries of the provenance record, such as `command`."""
    record = provenance(
        workload, policy=calibration.policy, trim=calibration.trim, machine_digest=calibration.machine_digest, **(settings or {})
    )
    first, second, *rest = calibration.verdict
    weeks = " Bars: 90 % intervals of the mean (sampling of weeks)." if any(math.isfinite(row.low) for row in drawn(calibration)) else ""
    drawing = Drawing(
        bias_figure(calibration),
        "bias",
        "Mean simulated minus mean recorded wait of each group of jobs, with intervals over weeks.",
        f"Simulated minus recorded mean wait.{weeks} Grey: not usable.",
    )
    waits: list[Block] = []
    for table in agreement_tables(calibration):
        by_month = table.title.startswith("By month")
        waits += [months_drawing(calibration)] if by_month else []
        waits += [Fold(table.title, [table])] if by_month or len(table.rows) > MOST_LINES else titled(table)
    others = {"Utilization": utilization_table(calibration), "Other causes of waiting": evidence_table(calibration)}
    return Page(
        "calibration",
        f"Recorded and simulated waits on {calibration.machine}",
        [f"{direction(calibration)}{first} {second}"],
        [
            Section("Calibration error", [note(RULE), drawing]),
            Section("Recorded and simulated waits", waits),
            *(Section(title, titled(table)) for title, table in others.items() if table.rows),
        ],
        workload_facts(workload, record["log"]),
        [*rest, *calibration.evidence.hints, RECORDED],
        numbers=[
            ("recorded mean wait", human_time(calibration.overall.mean_recorded)),
            ("simulated mean wait", human_time(calibration.overall.mean_simulated)),
            (ERROR, "not usable" if calibration.overall.doubt else human_time(calibration.overall.threshold)),
        ],
        workload=workload,
        record=record,
    )


def direction(calibration: Calibration) -> str:
    """Return a sentence on how often the predicted direction of a change is right, followed by a blank; empty if nothing is comparable."""
    comparable = class_of(calibration.overall)
    return f"Predicted directions of changes (shorter or longer waits) are usable: {comparable.right}. " if comparable else ""


def drawn(calibration: Calibration) -> list[Agreement]:
    """Return the groups of the first figure."""
    return [row for row in calibration.rows if row.by in SHORT][:MOST_GROUPS]


RULE = (
    "A difference in mean wait between two simulations of this log is usable if it exceeds the calibration error. This error is the "
    "largest absolute value in the 90 % interval of simulated minus recorded mean wait under sampling of weeks. Without such an interval "
    "(under 20 weeks, or a lasting queue), it is the largest value in a fifth of the log. A group is not usable if it has under 50 jobs or "
    "4 weeks, if the error exceeds the recorded mean wait, or if the rank correlation is below 0.2. This rule is cautious: effects that "
    "the simulation omits are missing on both sides of a difference, and cancel in part."
)


def agreement_tables(calibration: Calibration) -> list[Table]:
    """Return tables of recorded and simulated waits, for all jobs and by group."""
    titles = {ALL: ""} | {by: f"By {TITLES[by]}" for by in GROUPED_BY}
    rows = {by: [agreement(row) for row in calibration.rows if row.by == by] for by in titles}
    tables = [Table(COLUMNS, rows[by], title, look="months") for by, title in titles.items() if by == ALL or len(rows[by]) > 1]
    months = Table(COLUMNS, [agreement(row) for row in calibration.months], "By month of submission", look="months")
    return [*tables, *([months.without(ERROR)] if len(months.rows) > 1 else [])]


def all_tables(calibration: Calibration) -> list[Table]:
    """Return all tables of the page."""
    return [table for table in (*agreement_tables(calibration), utilization_table(calibration), evidence_table(calibration)) if table.rows]


def short_table(calibration: Calibration) -> Table:
    """Return a table of recorded and simulated mean waits with the calibration error, for the terminal."""
    chosen = [row for row in calibration.rows if row.by in SHORT]
    names = ("mean_recorded", "mean_simulated", "threshold")
    show = time_form([getattr(row, name) for row in chosen for name in names], short=True)
    rows: list[Row] = []
    for row in chosen:
        times = [Cell(show(getattr(row, name)), value=getattr(row, name)) for name in names]
        rows.append([group_name(row), f"{row.jobs:,}", *times, agreement(row)[-1], f"no: {doubt_word(row)}" if row.doubt else "yes"])
    head = ("", "jobs", "recorded", "simulated", ERROR, "rank corr.", "usable?")
    words = {doubt_word(row) for row in chosen if row.doubt}
    reasons = "; ".join(f"{word} = {meaning}" for word, meaning in DOUBTS.items() if word in words)
    meanings = [GROUPS] * (len(rows) > 1) + [f"Reasons for no: {reasons}."] * bool(reasons)
    return Table(head, rows, f"Recorded and simulated mean wait (policy {calibration.policy})", " ".join(meanings))


GROUPS = (
    f"Short: ran at most {LONG // 3600} h; narrow: at most {WIDE} processors. Heavy users: those with the largest half of the processor "
    "time; medium users: the next 40 %."
)


DOUBTS = {
    "jobs": f"under {FEW_JOBS} jobs",
    "weeks": f"under {FEWEST_WEEKS} weeks of jobs",
    "error": "error bound above the recorded mean wait",
    "ranks": f"rank correlation below {POOR_RANKS}",
}
"""Reasons why a group is not usable, in one word and in full."""


def doubt_word(row: Agreement) -> str:
    """Return the reason why a group is not usable, as a word of `DOUBTS`."""
    starts = {"only": "jobs", "under": "weeks", "the calibration": "error", "the simulation": "ranks"}
    return next(word for start, word in starts.items() if row.doubt.startswith(start))


def full_tables(calibration: Calibration) -> list[Table]:
    """Return tables of the other statistics, narrow enough for the terminal."""
    rows = [row for row in calibration.rows if row.by in SHORT]
    waits = Table(
        ("", *COLUMNS[5:12]), [[group_name(row), *agreement(row)[5:12]] for row in rows], "Waits in the log and in the simulation"
    )
    used = utilization_table(calibration)
    return [waits, replace(used, rows=used.rows[:1]), evidence_table(calibration)]


def titled(table: Table) -> list[Block]:
    """Return a table with its title as a heading, if it has one."""
    return [Heading(table.title), table] if table.title else [table]


def utilization_table(calibration: Calibration) -> Table:
    """Return recorded and simulated utilization."""
    rows = [[one.when, percent(one.recorded), percent(one.simulated)] for one in calibration.utilization]
    return Table(("", "recorded", "simulated"), rows, "Utilization", look="months")


def evidence_table(calibration: Calibration) -> Table:
    """Return a table of the jobs that waited for something other than processors, and the shares of backfilled jobs."""
    evidence = calibration.evidence
    rows = [
        [one.what, f"{one.jobs:,}", percent(one.share), f"{one.recorded_hours:,.0f}", f"{one.simulated_hours:,.0f}"]
        for one in evidence.rows
    ]
    if evidence.backfilled_recorded is not None and evidence.backfilled_simulated is not None:
        shares = f"{human_percent(evidence.backfilled_recorded)} recorded, {human_percent(evidence.backfilled_simulated)} simulated"
        rows.append([f"backfilled jobs: {shares}", "", "", "", ""])
    head = ("", "jobs", "of all jobs", "recorded hours of waiting", "simulated hours")
    return Table(head, rows, "Causes of waiting other than processors")


def agreement(row: Agreement) -> list[str | Cell]:
    """Return the agreement of a group as a row of the table with the columns `COLUMNS`."""
    times = (f"{what}_{which}" for what in ("mean", "median", "p90") for which in ("recorded", "simulated"))
    return [
        row.group,
        f"{row.jobs:,}",
        "not usable" if row.doubt else time_cell(row.threshold),
        *(time_cell(getattr(row, name)) for name in times),
        *(percent(share) for share in row.within),
        f"{row.rank_correlation:.2f}" if math.isfinite(row.rank_correlation) else UNDEFINED,
    ]


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return human_percent(100 * share)


def bias_figure(calibration: Calibration) -> Figure:
    """Draw simulated minus recorded mean wait for all jobs and for groups, with intervals."""
    from walltime.report.figures import BLUE, rows_figure, unit_of

    rows = drawn(calibration)
    ends = [abs(value) for row in rows for value in (row.bias, row.low, row.high) if math.isfinite(value)]
    divisor, unit = unit_of(max(ends, default=1.0))
    with rows_figure([group_name(row) for row in rows], f"simulated minus recorded mean wait, {unit}", 0.27) as (figure, axes):
        for k, row in enumerate(rows):
            colour = "#808890" if row.doubt else BLUE
            if math.isfinite(row.low):
                axes.plot([row.low / divisor, row.high / divisor], [k, k], color=colour, linewidth=2.5, solid_capstyle="butt")
            axes.plot([row.bias / divisor], [k], marker="o", color=colour, markersize=5)
        axes.axvline(0, color="#808890", linewidth=0.8)
    return figure


def months_drawing(calibration: Calibration) -> Drawing:
    """Draw the mean recorded and simulated wait by month of submission."""
    from walltime.report.figures import months_figure

    months = calibration.months
    lines = {label: [getattr(one, f"mean_{label}") / 3600 for one in months] for label in ("recorded", "simulated")}
    figure = months_figure([one.group for one in months], lines, "mean wait, hours")
    return Drawing(figure, "months", "Mean recorded and simulated wait by month of submission.")
