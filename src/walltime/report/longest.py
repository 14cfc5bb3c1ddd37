"""The longest waits under every policy, as a table of the page; with scripts, a job's number leads to its story."""

from __future__ import annotations

from collections.abc import Sequence

from walltime.explanation import longest_waits
from walltime.report.tables import table, text
from walltime.report.text import human_time
from walltime.schedule.schedule import Schedule

MOST = 5
"""Jobs of each policy."""


def longest_section(names: Sequence[str], schedules: Sequence[Schedule]) -> str:
    """The longest waits of each schedule, the worst first; empty if no job waits."""
    rows, policies = [], []
    for k, (name, schedule) in enumerate(zip(names, schedules, strict=True)):
        for one in longest_waits(schedule, MOST):
            job = f'<td><span data-job="{one.job}">{one.job}</span></td>'
            numbers = [f"{one.procs:,}", human_time(one.requested), f"{one.ahead:,}", f"{one.overtaken_by:,}"]
            rows.append([text(name), job, human_time(one.wait), *numbers, one.kind])
            policies.append(k)
    if not rows:
        return ""
    head = ["policy", "job", "wait", "processors", "requested", "jobs ahead of it", "overtaken by", "how it started"]
    inside = table(head, rows, "The longest waits, one row per job", row_policies=policies)
    note = (
        "Jobs ahead of it: those that waited when it was submitted. Overtaken by: jobs that arrived later and started earlier. Why a job "
        "waited: walltime explain."
    )
    return f'<h2>The longest waits</h2>\n{inside}<p class="note">{note}</p>'
