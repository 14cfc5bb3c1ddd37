"""What `simulate` and `compare` print of who waits: breakdowns, and the waits that the log records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from walltime.schedule import Schedule


def recorded_object(schedule: Schedule, trim: str) -> dict[str, Any] | None:
    """What `--json` says of recorded waits; None where the log has none."""
    found = schedule.recorded(trim)
    if found is None:
        return None
    return found.as_dict() | {"by": {by: schedule.recorded_by(by, trim) for by in ("class", "month")}}


def print_recorded(schedule: Schedule, trim: str, monthly: bool) -> None:
    """Print recorded waits beside simulated ones, where the log has them: all jobs, by class, and by month if asked for."""
    from walltime.cli.common import print_table
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
    typer.echo(f"correlation {found.correlation:.2f}, of ranks {found.rank_correlation:.2f}. {MEANING}")
