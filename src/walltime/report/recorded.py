"""The waits that the log records beside the simulated ones: a section of the page, and what to make of them."""

from __future__ import annotations

from collections.abc import Sequence

from walltime.report.tables import table, text
from walltime.report.text import UNDEFINED, human_time, in_prose
from walltime.schedule.schedule import Schedule

MEANING = (
    "The recorded waits come from the real machine: its scheduler had queues, priorities, limits and reservations that are not modelled, "
    "it was down at times, and jobs may have been held by their users. So a difference is not what this policy would have saved, and "
    "similar means do not validate the simulation. The correlation says whether the same jobs wait long in both."
)
"""What a comparison with recorded waits means and does not mean."""
MOST_MONTHS = 120


def recorded_section(names: Sequence[str], schedules: Sequence[Schedule]) -> str:
    """Recorded and simulated waits of all jobs, by class and by month; empty if the log records no waits."""
    found = [record for record in (schedule.recorded() for schedule in schedules) if record is not None]
    if not found:
        return ""
    first = found[0]
    rows = []
    for said, field in (("mean", "mean"), ("median", "median"), ("90 %", "p90"), ("longest", "max")):
        values = [getattr(first, f"{field}_recorded"), *(getattr(record, f"{field}_simulated") for record in found)]
        rows.append([f"{said} wait", *(text(human_time(value)) for value in values)])
    for said, field in (("correlation with the recorded waits", "correlation"), ("rank correlation", "rank_correlation")):
        rows.append([said, "", *(_ratio(getattr(record, field)) for record in found)])
    head = ["", "recorded", *map(text, names)]
    policies = [*range(len(names))]
    steps = schedules[0].workload.origin.steps
    changed = (
        f" The log was changed before the simulation ({'; '.join(steps)}); the recorded waits are those of its unchanged jobs."
        if steps
        else ""
    )
    known = f"{first.jobs:,} of {len(schedules[0]):,} jobs, those whose waits the log records. " if first.jobs < len(schedules[0]) else ""
    parts = [
        "<h2>Recorded waits</h2>",
        f'<p class="note">{text(known + MEANING + changed)}</p>',
        table(head, rows, "Recorded and simulated waits", column_policies=[None, None, *policies]),
    ]
    for by, title in (("class", "by class"), ("month", "by month of submission")):
        by_schedule = [schedule.recorded_by(by) for schedule in schedules]
        if not 2 <= len(by_schedule[0]) <= MOST_MONTHS:
            continue
        lines = [
            [
                text(group["group"]),
                f"{group['jobs']:,}",
                human_time(group["mean_recorded"]),
                *(human_time(rows[k]["mean_simulated"]) for rows in by_schedule),
            ]
            for k, group in enumerate(by_schedule[0])
        ]
        columns = ["", "jobs", "mean recorded", *(f"mean, {text(in_prose(name))}" for name in names)]
        inside = table(columns, lines, f"Waits {title}", "months", column_policies=[None, None, None, *policies])
        parts.append(f"<details><summary>Recorded waits {title}</summary>{inside}</details>")
    return "\n".join(parts)


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value == value else UNDEFINED
