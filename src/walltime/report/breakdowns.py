"""Who waits, in numbers: mean waits of groups of jobs under every policy, as tables of the page."""

from __future__ import annotations

from collections.abc import Sequence

from walltime.errors import WorkloadError
from walltime.report.tables import compared, table, text
from walltime.report.text import human_percent, human_time, in_prose
from walltime.schedule.schedule import Schedule

TITLES = {
    "class": "short and long, narrow and wide jobs",
    "user": "heavy, medium and light users",
    "users": "the users with most processor time",
    "queue": "queue",
    "partition": "partition",
}
"""The groupings that are shown, where the log knows the groups; sizes, lengths and hours are in the heat maps."""
MOST_ROWS = 60


def breakdown_tables(names: Sequence[str], schedules: Sequence[Schedule], trim: str) -> list[str]:
    """A collapsed table for each of `TITLES` that has from 2 to 60 groups."""
    parts = []
    for by, title in TITLES.items():
        try:
            found = [{row["group"]: row for row in schedule.breakdown(by, trim=trim).iter_rows(named=True)} for schedule in schedules]
        except WorkloadError:  # the log does not say
            continue
        groups = list(dict.fromkeys(group for rows in found for group in rows))
        if not 2 <= len(groups) <= MOST_ROWS:
            continue
        lines = []
        for group in groups:
            rows = [one.get(group) for one in found]
            first = rows[0]
            cells = [text(group), f"{first['jobs']:,}" if first else "", human_percent(100 * first["share_of_use"]) if first else ""]
            for k, row in enumerate(rows):
                wait = row["mean_wait"] if row else float("nan")
                before = first["mean_wait"] if first else float("nan")
                cells.append(compared(human_time(wait), wait, str(group), k, before))
            lines.append(cells)
        head = ["", "jobs", "of all use", *(f"mean wait, {text(in_prose(name))}" for name in names)]
        inside = table(head, lines, f"Mean wait by {title}", "months", column_policies=[None, None, None, *range(len(names))])
        parts.append(f"<details><summary>Mean wait by {title}</summary>{inside}</details>")
    return parts
