"""Compare schedules of one workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from walltime import metrics
from walltime.dataframes import pl
from walltime.errors import WorkloadError
from walltime.schedule.groups import check_same_jobs
from walltime.schedule.schedule import Schedule
from walltime.tables import Table, number
from walltime.wording import shown


@dataclass(frozen=True)
class Comparison:
    """Summaries of several schedules; the first schedule is the baseline."""

    schedules: Sequence[Schedule]
    summaries: Sequence[metrics.Summary]

    def difference(self, name: str) -> list[float]:
        """Return relative differences of a summary field from the first schedule's, in percent (mualem01, Table 1).

        Raises PolicyError for an unknown field.
        """
        values = metrics.field_values(self.summaries, name, metrics.Summary).tolist()
        return [metrics.relative_difference(value, values[0]) for value in values]

    def gains(self, a: int = 0, b: int = 1, trim: str = "none", most: int = 5) -> metrics.Gains:
        """Return the jobs and users that gain or lose from schedule `a` to schedule `b`, counted from 0; see `Schedule.gains`."""
        return self.schedules[a].gains(self.schedules[b], trim, most)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per schedule: its policy, and the fields of its summary."""
        return [{"policy": schedule.label, **summary.as_dict()} for schedule, summary in zip(self.schedules, self.summaries, strict=True)]

    def table(self) -> pl.DataFrame:
        """Return the rows as a polars table."""
        return pl.DataFrame(self.rows())

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        names = ("mean_wait", "median_wait", "mean_response", "mean_bounded_slowdown", "backfilled_percent", "utilization")
        rows = [
            [schedule.title, *(number(getattr(summary, name)) for name in names), f"{change:+.1f} %"]
            for schedule, summary, change in zip(self.schedules, self.summaries, self.difference("mean_wait"), strict=True)
        ]
        head = ["policy", *(name.replace("_", " ") for name in names), "wait vs the first"]
        return Table(head, rows, self.schedules[0].workload.origin.name)._repr_html_()

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(schedule.label for schedule in self.schedules)}>"

    def __str__(self) -> str:
        return str(self.table().select("policy", "mean_wait", "mean_response", "mean_bounded_slowdown", "backfilled_percent"))


def compare(*schedules: Schedule, trim: str = "none") -> Comparison:
    """Compare schedules of one workload: their averages, and their differences from the first.

    `trim`: as in `Schedule.summary`. The result's `table()` has a row for each schedule, `difference("mean_wait")` the changes in percent,
    and `gains()` the jobs and users that gain or lose. Raises WorkloadError without schedules, for an object that is not a schedule, or if
    the jobs differ.

    >>> from walltime import Easy, NoBackfilling, Workload, simulate
    >>> jobs = Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4)
    >>> compare(simulate(jobs, NoBackfilling()), simulate(jobs, Easy())).table()["mean_wait"].to_list()
    [9.0, 3.0]
    """
    check_schedules(schedules)
    first = schedules[0].workload
    for other in schedules[1:]:
        check_same_jobs(first, other.workload)
    return Comparison(schedules, [schedule.summary(trim) for schedule in schedules])


def check_schedules(given: Sequence[object]) -> None:
    """Raise WorkloadError unless these are schedules, and at least one."""
    if not given:
        raise WorkloadError("no schedule was given; pass at least one result of walltime.simulate", "no_schedule")
    for one in given:
        if not isinstance(one, Schedule):
            remedy = (
                "unpack the list with an asterisk, *schedules" if isinstance(one, list | tuple) else "pass results of walltime.simulate"
            )
            raise WorkloadError(f"{shown(one)} is not a schedule; {remedy}", "wrong_type")
