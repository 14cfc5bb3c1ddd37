"""Who gains and who loses from one policy to another, as rows of text, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence

from walltime.metrics import ChangedJob, ChangedUser, Gains
from walltime.report.tables import table, text
from walltime.report.text import UNDEFINED, human_percent, human_time, in_prose
from walltime.schedule.schedule import Schedule

SIDES = ("wait", "jobs", "of all", "users", "processor-hours", "mean change")
CHANGES = ("", "jobs", "processors", "runtime", "wait before", "after")


def sides(gains: Gains) -> list[list[str]]:
    """A row for the jobs that wait shorter, equally long, and longer; the columns are `SIDES`."""
    total = max(gains.shorter.jobs + gains.equal.jobs + gains.longer.jobs, 1)
    return [
        [
            name,
            f"{side.jobs:,}",
            human_percent(100 * side.jobs / total),
            UNDEFINED if side.users is None else f"{side.users:,}",
            f"{side.processor_hours:,.0f}",
            _signed(side.mean_change),
        ]
        for name, side in (("shorter", gains.shorter), ("equal", gains.equal), ("longer", gains.longer))
    ]


def changes(gains: Gains) -> list[list[str]]:
    """The largest winners and losers among users (mean waits), then among jobs; the columns are `CHANGES`."""
    users = [("gains", gains.winning_users), ("loses", gains.losing_users)]
    jobs = [("gains", gains.winning_jobs), ("loses", gains.losing_jobs)]
    return [_user(said, one) for said, found in users for one in found] + [_job(said, one) for said, found in jobs for one in found]


def gains_section(names: Sequence[str], schedules: Sequence[Schedule], trim: str) -> str:
    """Who gains and who loses from the first policy to each other one; empty for one policy."""
    if len(schedules) < 2 or not len(schedules[0]):
        return ""
    parts = ["<h2>Who gains, who loses</h2>"]
    for k, (name, schedule) in enumerate(zip(names[1:], schedules[1:], strict=True), 1):
        found = schedules[0].gains(schedule, trim)
        said = f"From {in_prose(names[0])} to {in_prose(name)}"
        parts.append(f'<div data-p="0 {k}">\n<h3>{text(said)}</h3>')
        parts.append(table(list(SIDES), [[text(cell) for cell in row] for row in sides(found)], f"{said}: who gains"))
        rows = [[text(cell) for cell in row] for row in changes(found)]
        if rows:
            inside = table(list(CHANGES), rows, f"{said}: the largest changes", "months")
            parts.append(f"<details><summary>The largest changes</summary>{inside}</details>")
        parts.append("</div>")
    parts.append(
        '<p class="note">A user is counted where the sum of the waits is shorter, equal or longer. The largest changes of users are in '
        "that sum; shown are their mean waits.</p>"
    )
    return "\n".join(parts)


def _user(said: str, one: ChangedUser) -> list[str]:
    return [f"user {one.user} {said}", f"{one.jobs:,}", "", "", human_time(one.mean_before), human_time(one.mean_after)]


def _job(said: str, one: ChangedJob) -> list[str]:
    who = "" if one.user is None else f" of user {one.user}"
    return [f"job {one.job_id}{who} {said}", "1", f"{one.procs:,}", human_time(one.runtime), human_time(one.before), human_time(one.after)]


def _signed(seconds: float) -> str:
    return f"+{human_time(seconds)}" if seconds > 0 else human_time(seconds)
