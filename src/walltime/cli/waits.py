"""What `simulate` and `compare` print of who waits: breakdowns, and the waits that the log records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from walltime.schedule import Schedule
    from walltime.schedule.groups import Edges
    from walltime.simulation import Fairness


def parse_groupings(texts: Sequence[str] | None) -> dict[str, tuple[str, Edges]]:
    """The groupings that are spelled so, by their spelling; raises PolicyError for what is none."""
    from walltime.schedule.groups import parse_grouping

    return {text: parse_grouping(text) for text in texts or ()}


def breakdown_rows(schedule: Schedule, groupings: Mapping[str, tuple[str, Edges]], trim: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of `Schedule.breakdown` for each grouping, by its spelling."""
    return {text: schedule.breakdown(by, edges, trim).to_dicts() for text, (by, edges) in groupings.items()}


def print_breakdowns(breakdowns: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Print a table for each grouping of one schedule."""
    from walltime.cli.common import percent, print_table
    from walltime.report import human_number, human_time

    columns = ["", "jobs", "of all use", "mean wait", "median", "90 %", "longest", "mean response", "bounded slowdown"]
    for text, rows in breakdowns.items():
        lines = [
            [
                row["group"],
                f"{row['jobs']:,}",
                percent(row["share_of_use"]),
                *(human_time(row[field]) for field in ("mean_wait", "median_wait", "p90_wait", "max_wait", "mean_response")),
                human_number(row["mean_bounded_slowdown"]),
            ]
            for row in rows
        ]
        print_table(f"by {text}", columns, lines)


def print_compared_breakdowns(schedules: Sequence[Schedule], breakdowns: Sequence[Mapping[str, Sequence[Mapping[str, Any]]]]) -> None:
    """Print a table for each grouping: the mean wait under every policy, and how much it differs from the first one's."""
    from walltime.cli.common import percent, print_table
    from walltime.metrics import relative_difference
    from walltime.report import human_time, labels
    from walltime.report.text import human_difference

    names = labels(schedules)
    columns = ["mean wait", "jobs", "of all use", names[0]]
    for name in names[1:]:
        columns += [name, "difference"]
    for text in breakdowns[0]:
        tables = [{row["group"]: row for row in found[text]} for found in breakdowns]
        lines = []
        for group in dict.fromkeys(group for table in tables for group in table):  # months differ between policies
            first = tables[0].get(group)
            waits = [table[group]["mean_wait"] if group in table else float("nan") for table in tables]
            line = [group, f"{first['jobs']:,}" if first else "", percent(first["share_of_use"]) if first else "", human_time(waits[0])]
            for wait in waits[1:]:
                line += [human_time(wait), human_difference(relative_difference(wait, waits[0]))]
            lines.append(line)
        print_table(f"by {text}; jobs and use under {names[0]}, differences to it", columns, lines)


def print_gains(schedules: Sequence[Schedule], trim: str) -> None:
    """Print who gains and who loses, from the first schedule to each other one."""
    from walltime.cli.common import print_table
    from walltime.report import labels
    from walltime.report.gains import CHANGES, SIDES, changes, sides

    names = labels(schedules)
    for name, schedule in zip(names[1:], schedules[1:], strict=True):
        found = schedules[0].gains(schedule, trim)
        print_table(f"who gains, from {names[0]} to {name}", SIDES, sides(found))
        print_table(f"the largest changes, from {names[0]} to {name}", CHANGES, changes(found))


def print_fairness(f: Fairness) -> None:
    """Print how many jobs start late because of jobs that arrived later, and who waits by use."""
    from walltime.cli.common import print_facts
    from walltime.report import human_time

    of = f"all {f.jobs:,} jobs" if f.sample == f.jobs else f"a sample of {f.sample:,} of {f.jobs:,} jobs"
    early = f"{f.early_percent:.1f} % start earlier"
    facts = [
        ("later than the fair start", f"{f.late_percent:.1f} %", f"by {human_time(f.mean_miss_of_late)} on average; {early}"),
        ("mean miss", human_time(f.mean_miss), f"over {of}; the longest {human_time(f.max_miss)}"),
    ]
    if f.users:
        facts.append(
            (
                "use and wait of users",
                f"{f.use_correlation:.2f}",
                f"rank correlation over {f.users:,} users; over 0: who uses more waits longer",
            )
        )
    print_facts("fairness: the fair start of a job is its start if no job had arrived later", facts)


def recorded_object(schedule: Schedule, trim: str) -> dict[str, Any] | None:
    """What `--json` says of recorded waits; None where the log has none."""
    found = schedule.recorded(trim)
    if found is None:
        return None
    return found.as_dict() | {"by": {by: schedule.recorded_by(by, trim) for by in ("class", "month")}}


def print_recorded(schedule: Schedule, trim: str, monthly: bool) -> None:
    """Print recorded waits beside simulated ones, where the log has them: all jobs, by class, and by month if asked for."""
    from walltime.cli.common import print_table, print_text
    from walltime.report import human_time
    from walltime.report.recorded import MEANING

    found = schedule.recorded(trim)
    if found is None:
        return
    rows = [{"group": "all jobs", **found.as_dict()}, *schedule.recorded_by("class", trim)]
    if monthly:
        rows += schedule.recorded_by("month", trim)
    fields = [f"{what}_{which}" for what in ("mean", "median", "p90", "max") for which in ("recorded", "simulated")]
    lines = [[row["group"], f"{row['jobs']:,}", *(human_time(float("nan") if row[f] is None else row[f]) for f in fields)] for row in rows]
    columns = ["wait", "jobs", "mean: log", "here", "median: log", "here", "90 %: log", "here", "longest: log", "here"]
    print_table("recorded waits (log) and simulated ones (here)", columns, lines)
    print_text(f"correlation {found.correlation:.2f}, of ranks {found.rank_correlation:.2f}. {MEANING}")
