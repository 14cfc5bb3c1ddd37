"""Tables of simulated schedules, for pages and the terminal."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from walltime.comparison.measures import measure
from walltime.errors import WorkloadError
from walltime.metrics import Gains, Month, Summary, relative_difference
from walltime.metrics.intervals import KINDS as INTERVALS, shown_level
from walltime.metrics.summary import LESS, averages
from walltime.policy import Kind
from walltime.report.page import Block, Fold
from walltime.schedule.groups import TITLES
from walltime.schedule.schedule import Schedule, longest_waits
from walltime.simulation.spread import Spread
from walltime.tables import Cell, Column, Row, Table, time_cell
from walltime.wording import UNDEFINED, human_difference, human_number, human_percent, human_time, lower_first, time_form
from walltime.workload.columns import GROUPED_COLUMNS

COLUMNS = {name: average for name, average in averages().items() if average.table}
"""The fields of a Summary that the table of policies shows."""
MOST_MONTHS = 120
"""Largest number of months in a table on a page."""
MOST_GROUPS = 60
"""Largest number of groups in a table on a page."""
LONGEST_WAITS = 5
"""Number of jobs of each policy in the table of longest waits."""
KINDS = {
    "immediate": "started on arrival, when no job was ahead of it in the queue",
    "reserved": "started after a wait, when no job was ahead of it in the queue",
    "backfilled": "started while a job ahead of it in the queue was waiting",
}
SCATTER = {"mean_wait": "wait", "mean_bounded_slowdown": "slowdown"}
"""Fields that have a prediction interval next to them, and their names in its heading."""
GROUPINGS = ("class", "user", "users", *GROUPED_COLUMNS)
"""Groupings that a page shows if the log has them; heat maps show sizes, lengths and hours."""
RECORDED = (
    "The recorded waits come from the real machine, with outages, held jobs, and queues, priorities, limits and reservations that are not "
    "modelled. So a difference is not the time that this policy would have saved, and similar means do not validate the simulation. The "
    "correlation shows whether the same jobs wait long in both."
)
"""The note on comparisons with recorded waits."""
RECORDED_SHORT = "Recorded waits include the effects of limits and outages that are not simulated: docs/guides/waits.md."
"""The note in the terminal."""

Rows = Sequence[Mapping[str, Any]]


def raw(value: float, unit: str) -> str:
    """Return a value as text with all useful digits."""
    if isinstance(value, float) and not math.isfinite(value):
        return UNDEFINED
    number = f"{value:,.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"
    return f"{number} {unit}".rstrip()


def summary_table(
    names: Sequence[str], summaries: Sequence[Summary], trim: str = "none", title: str = "", spread: Spread | None = None
) -> Table:
    """Return a table with a row per policy, in readable units and with the unrounded values; a spread adds prediction intervals."""
    columns = {field: [getattr(summary, field) for summary in summaries] for field in COLUMNS}
    rows: list[Row] = []
    for k, (name, summary) in enumerate(zip(names, summaries, strict=True)):
        row: list[str | Cell] = [name, f"{summary.measured_jobs:,}"]
        for field, average in COLUMNS.items():
            value, every, show = columns[field][k], columns[field], measure(field).show
            less, unit = average.better == LESS, average.unit.removesuffix("share")
            lowest = less and len(set(every)) > 1 and value == min((v for v in every if not math.isnan(v)), default=None)
            of = (field, k) if less else None
            row.append(Cell(show(value), exact=raw(value, unit), value=value, look="best" if lowest else "", of=of))
            if spread is not None and field in SCATTER:
                row.append(Cell(f"±{show(half := spread.scatter(field, k))}", exact=raw(half, unit), value=half))
        rows.append(row)
    remarks = ["Hover over a value to see all its digits."]
    if len(names) > 1:
        remarks.insert(0, f"Small print: difference from {{{lower_first(names[0])}}}. Shaded: lowest value of the column.")
    if trim != "none":
        every_job = "utilization, offered load, makespan, months and the queue over time still include all jobs"
        remarks.append(f"Trimmed as in tsafrir06; {every_job}.")
    head: list[str | Column] = ["policy", "jobs measured"]
    sure = "" if spread is None else f"± ({shown_level(spread.level)}, {INTERVALS['shaken.copy'].of})"
    for field, average in COLUMNS.items():
        label = average.label.replace("backfilled", "back\u00adfilled")
        head += [label, *([f"{SCATTER[field]} {sure}"] if spread is not None and field in SCATTER else [])]
    return Table(head, rows, title or "Averages, one row per policy", " ".join(remarks), row_policies=range(len(names)))


def policies_table(names: Sequence[str], summaries: Sequence[Summary], title: str, spread: Spread | None = None) -> Table:
    """Return a table of the averages that fit a narrow terminal, one row per policy; a spread adds the intervals of the mean waits."""
    halves = [None if spread is None else spread.scatter("mean_wait", k) for k in range(len(names))]
    waits = [summary.mean_wait for summary in summaries]
    show = time_form([*waits, *filter(None, halves)], short=True)
    longest = time_form([summary.max_wait for summary in summaries], short=True)
    rows: list[Row] = []
    for k, (name, wait, half, summary) in enumerate(zip(names, waits, halves, summaries, strict=True)):
        spans = "" if half is None else " ± < 0:01 h" if half and show(half) == "0:00 h" else f" ± {show(half)}"
        row: list[str | Cell] = [name, f"{show(wait)}{spans}"]
        if len(names) > 1:
            row.append(human_difference(relative_difference(wait, waits[0])) if k else "-")
        row += [human_number(summary.mean_bounded_slowdown), longest(summary.max_wait), human_percent(summary.backfilled_percent)]
        rows.append(row)
    head = ["policy", "mean wait", *([f"vs {lower_first(names[0])}"] if len(names) > 1 else [])]
    return Table([*head, "bounded slowdown", "longest wait", "backfilled"], rows, title)


def details_table(names: Sequence[str], summaries: Sequence[Summary]) -> Table:
    """Return a table of all fields of the summaries, unrounded."""
    rows = [[f.name, *(raw(getattr(s, f.name), "") for s in summaries)] for f in fields(Summary)]
    return Table(["seconds, processors, ratios", *_policies(names)], rows, "All values of the summaries")


def kinds_table(names: Sequence[str], schedules: Sequence[Schedule], masks: Sequence[Any]) -> Table:
    """Return a table of the numbers of measured jobs by kind of start, with a bar of the shares for each policy."""
    rows: list[Row] = []
    for name, schedule, mask in zip(names, schedules, masks, strict=True):
        kinds = schedule.kind[mask]
        shares = {kind.name.lower(): 100 * float((kinds == kind).mean()) if len(kinds) else 0.0 for kind in Kind}
        rows.append([name, *(human_percent(shares[kind]) for kind in KINDS), Cell("", shares={kind: shares[kind] for kind in KINDS})])
    head: list[str | Column] = ["policy", *(Column(kind, swatch=kind) for kind in KINDS), ""]
    meaning = "; ".join(f"{kind}: {words}" for kind, words in KINDS.items())
    return Table(head, rows, "Kinds of starts, one row per policy", f"{meaning}.", row_policies=range(len(names)))


def months_table(names: Sequence[str], months: Sequence[Sequence[Month]]) -> Table:
    """Return a table of the months under each policy, over all jobs, as in mualem01, Table 1; two policies are also compared."""
    by_month = [{(month.year, month.month): month for month in of_policy} for of_policy in months]
    two = len(names) == 2
    measures = [("mean_response", "response"), ("mean_bounded_slowdown", "bounded slowdown")]
    if len(names) == 1:
        measures.insert(0, ("mean_wait", "wait"))
    head: list[str | Column] = ["month", "load", "jobs"]
    for _, what in measures:
        head += [Column(f"{what}, {lower_first(name)}", k) for k, name in enumerate(names)] + (["difference"] if two else [])
    rows: list[Row] = []
    for key in sorted({key for of_policy in by_month for key in of_policy}):
        mine = [of_policy.get(key) for of_policy in by_month]
        first = mine[0]
        row: list[str | Cell] = [f"{key[0]}-{key[1]:02d}", f"{first.load:.3f}" if first else "", f"{first.jobs:,}" if first else ""]
        for field, what in measures:
            values = [getattr(month, field) if month else math.nan for month in mine]
            row += [Cell(human_number(value), value=value) if "slowdown" in what else time_cell(value) for value in values]
            row += [human_difference(relative_difference(values[1], values[0]))] if two else []
        rows.append(row)
    remark = f"Each job counts in the month in which it ends, in the site's local time. Load and jobs: under {lower_first(names[0])}."
    if two:
        remark += f" Difference: {lower_first(names[1])} compared with {lower_first(names[0])}."
    return Table(head, rows, "Averages by month, all jobs", remark, look="months")


def breakdown_table(names: Sequence[str], rows: Sequence[Rows], by: str) -> Table:
    """Return a table of the mean wait of each group under every policy; `rows`: the breakdown under each policy."""
    by_group = [{row["group"]: row for row in mine} for mine in rows]
    lines: list[Row] = []
    for group in dict.fromkeys(group for mine in by_group for group in mine):  # months differ between policies
        first = by_group[0].get(group)
        line: list[str | Cell] = [str(group), *([f"{first['jobs']:,}", human_percent(100 * first["share_of_use"])] if first else ["", ""])]
        for k, mine in enumerate(by_group):
            wait = mine[group]["mean_wait"] if group in mine else math.nan
            line.append(Cell(human_time(wait), value=wait, of=(str(group), k)))
        lines.append(line)
    head: list[str | Column] = ["", "jobs", "of all work", *_policies(names, "mean wait, ")]
    return Table(head, lines, f"Mean wait by {by}", look="months")


def groups_table(rows: Rows, by: str) -> Table:
    """Return a table of all measures of the groups under one policy."""
    lines = []
    for row in rows:
        times = (time_cell(row[field]) for field in ("mean_wait", "median_wait", "p90_wait", "max_wait", "mean_response"))
        slowdown = Cell(human_number(row["mean_bounded_slowdown"]), value=row["mean_bounded_slowdown"])
        lines.append([str(row["group"]), f"{row['jobs']:,}", human_percent(100 * row["share_of_use"]), *times, slowdown])
    head = ["", "jobs", "of all work", "mean wait", "median", "90 %", "longest", "mean response", "bounded slowdown"]
    return Table(head, lines, f"By {by}")


def breakdowns(names: Sequence[str], schedules: Sequence[Schedule], trim: str) -> list[Block]:
    """Return a folded table for each of `GROUPINGS` with 2 to 60 groups in the log."""
    parts: list[Block] = []
    for by in GROUPINGS:
        try:
            table = breakdown_table(names, [schedule.breakdown(by, trim=trim).to_dicts() for schedule in schedules], TITLES[by])
        except WorkloadError:  # the log has no such column
            continue
        if 2 <= len(table.rows) <= MOST_GROUPS:
            parts.append(Fold(table.title, [table]))
    return parts


def sides_table(gains: Gains, title: str) -> Table:
    """Return a table of the jobs with shorter, equal and longer waits."""
    sides = (("shorter", gains.shorter), ("equal", gains.equal), ("longer", gains.longer))
    total = max(sum(side.jobs for _, side in sides), 1)
    show = time_form([side.mean_change for _, side in sides])
    rows = []
    for name, side in sides:
        users = UNDEFINED if side.users is None else f"{side.users:,}"
        change = f"{'+' if side.mean_change > 0 else ''}{show(side.mean_change)}"
        rows.append([name, f"{side.jobs:,}", human_percent(100 * side.jobs / total), users, f"{side.processor_hours:,.0f}", change])
    return Table(["wait", "jobs", "of all", "users", "processor-hours", "mean change"], rows, title)


def changes_table(gains: Gains, title: str) -> Table:
    """Return a table of the largest winners and losers, first among users (by mean wait), then among jobs."""
    rows: list[Row] = [
        [f"user {one.user} {verb}", f"{one.jobs:,}", "", "", time_cell(one.mean_before), time_cell(one.mean_after)]
        for verb, users in (("gains", gains.winning_users), ("loses", gains.losing_users))
        for one in users
    ]
    for verb, jobs in (("gains", gains.winning_jobs), ("loses", gains.losing_jobs)):
        for one in jobs:
            owner = "" if one.user is None else f" of user {one.user}"
            times = map(time_cell, (one.runtime, one.before, one.after))
            rows.append([f"job {one.job_id}{owner} {verb}", "1", f"{one.procs:,}", *times])
    return Table(["", "jobs", "processors", "runtime", "wait before", "after"], rows, title, look="months")


def gains_blocks(gains: Gains, title: str) -> list[Block]:
    """Return the tables of sides and, folded, of changes; `title`: the two policies."""
    changes = changes_table(gains, f"{title}: largest changes")
    return [sides_table(gains, f"{title}: winners and losers"), *([Fold("Largest changes", [changes])] if changes.rows else [])]


def longest_waits_table(names: Sequence[str], schedules: Sequence[Schedule]) -> Table:
    """Return a table of the longest waits of each schedule, in descending order."""
    rows: list[Row] = []
    policies = []
    for k, (name, schedule) in enumerate(zip(names, schedules, strict=True)):
        for one in longest_waits(schedule, LONGEST_WAITS):
            numbers = [f"{one.procs:,}", time_cell(one.requested), f"{one.ahead:,}", f"{one.overtaken_by:,}"]
            rows.append([name, Cell(str(one.job), job=one.job), time_cell(one.wait), *numbers, one.kind])
            policies.append(k)
    head = ["policy", "job", "wait", "processors", "requested", "jobs ahead", "overtaken by", "kind of start"]
    remark = (
        "Jobs ahead: jobs in the queue when it was submitted. Overtaken by: later jobs that started earlier. To see the reasons, use "
        "walltime explain."
    )
    return Table(head, rows, "Longest waits, one row per job", remark, row_policies=policies)


def recorded_tables(names: Sequence[str], schedules: Sequence[Schedule], trim: str = "none") -> list[Table]:
    """Return tables of recorded and simulated waits: of all jobs, by class, and by month; an empty list if the log records no waits."""
    records = [record for record in (schedule.recorded(trim) for schedule in schedules) if record is not None]
    if not records:
        return []
    first = records[0]
    rows: list[Row] = []
    for what, field in (("mean", "mean"), ("median", "median"), ("90 %", "p90"), ("longest", "max")):
        values = [getattr(first, f"{field}_recorded"), *(getattr(record, f"{field}_simulated") for record in records)]
        rows.append([f"{what} wait", *map(time_cell, values)])
    for what, field in (("correlation with the recorded waits", "correlation"), ("rank correlation", "rank_correlation")):
        values = [getattr(record, field) for record in records]
        rows.append([what, "", *(Cell(f"{value:.2f}" if math.isfinite(value) else UNDEFINED, value=value) for value in values)])
    tables = [Table(["", "recorded", *_policies(names)], rows, "Recorded and simulated waits")]
    for by, words in (("class", "class"), ("month", "month of submission")):
        groups = [schedule.recorded_by(by, trim) for schedule in schedules]
        lines: list[Row] = []
        for k, group in enumerate(groups[0]):
            means = (group["mean_recorded"], *(mine[k]["mean_simulated"] for mine in groups))
            lines.append([str(group["group"]), f"{group['jobs']:,}", *map(time_cell, means)])
        head: list[str | Column] = ["", "jobs", "mean recorded", *_policies(names, "mean, ")]
        tables.append(Table(head, lines, f"Recorded waits by {words}", look="months"))
    return tables


def _policies(names: Sequence[str], before: str = "") -> list[Column]:
    return [Column(f"{before}{lower_first(name) if before else name}", k) for k, name in enumerate(names)]
