"""Schedules of other programs: starts and ends by job number, matched with the jobs of a workload."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from walltime.dataframes import pl
from walltime.declared import Field
from walltime.errors import LogError, WorkloadError
from walltime.policy.base import Kind, Policy
from walltime.schedule.files import columns_of_table, read_schedule
from walltime.wording import counted
from walltime.workload import Array, Workload, check_workload

ENGINE = "elsewhere"


@dataclass(frozen=True)
class OtherProgram(Policy):
    """The policy of a schedule that another program made; it cannot be simulated. `program`: its name."""

    program: Annotated[str, Field(inside=True)] = "another program"

    @property
    def label(self) -> str:
        """Return the name of the program."""
        return self.program

    @property
    def title(self) -> str:
        """Return the name of the program."""
        return self.program


def fields_of(table: Any, workload: Workload, name: str) -> dict[str, Any]:
    """Return the fields of a `Schedule` from a file or table of another program; `Schedule.from_table` describes the arguments."""
    check_workload(workload)
    where = str(table) if isinstance(table, str | Path) else "the table"
    if isinstance(table, str | Path):
        columns: Mapping[str, Array] = read_schedule(table, jobs=workload)
    else:
        try:
            frame = pl.DataFrame(
                {str(title): np.asarray(table[title]) for title in (table.columns if hasattr(table, "columns") else table)}
            )
        except (TypeError, ValueError, KeyError, AttributeError, pl.exceptions.PolarsError) as error:
            remedy = "give a file, a data frame or a dictionary of columns"
            raise WorkloadError(f"{where} is not a table ({error}); {remedy}", "wrong_type") from error
        columns = columns_of_table(where, frame, workload)
    place = workload.places_of(columns["job_id"])
    counts = np.bincount(place[place >= 0], minlength=len(workload))
    for wrong, what in ((place < 0, "is not in the log"), (counts[place] > 1, "has several rows")):
        if wrong.any():
            raise LogError(f"{where}: job {columns['job_id'][wrong.argmax()]} {what}; give one row for each job", "wrong_jobs")
    if (missing := counts == 0).any():
        first = int(workload.job_id[missing.argmax()])
        remedy = "give the workload without them"
        raise LogError(
            f"{where}: {counted(int(missing.sum()), 'job')} of the log are missing, such as job {first}; {remedy}", "missing_jobs"
        )
    start, end = np.empty((2, len(workload)), np.int64)
    start[place], end[place] = columns["start"], columns["end"]
    for wrong, what in ((start < workload.submit, "starts before its submission"), (end < start, "ends before its start")):
        if wrong.any():
            raise LogError(f"{where}: job {int(workload.job_id[wrong.argmax()])} {what}; check the clock of the table", "impossible_times")
    latest = np.maximum.accumulate(np.concatenate([[np.iinfo(np.int64).min], start[:-1]])) if len(start) else start
    kind = np.where(start < latest, Kind.BACKFILLED, np.where(start > workload.submit, Kind.RESERVED, Kind.IMMEDIATE))
    if "kind" in columns:
        kind[place] = columns["kind"]
    runtime = end - start
    return {
        "workload": workload,
        "policy": OtherProgram(program=name),
        **{"start": start, "end": end, "runtime": runtime, "kind": kind.astype(np.uint8)},
        "reserved_start": np.full(len(workload), -1, np.int64),
        "overrun": "continue" if (runtime > workload.requested).any() else "kill",
        "engine": ENGINE,
    }
