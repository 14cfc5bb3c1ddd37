"""The waits that a log records, beside those of a simulation."""

from __future__ import annotations

from typing import Any

import numpy as np

from walltime.errors import WorkloadError
from walltime.metrics import recorded_waits
from walltime.schedule.groups import UNKNOWN, Groups, group_jobs
from walltime.workload import Workload

Array = np.ndarray


def recorded_wait(workload: Workload) -> Array | None:
    """The wait of each job in the real schedule, int64 s, -1 where unknown; None where the log has none, or only zeros."""
    wait = workload.columns.get("wait")
    return wait if wait is not None and (wait > 0).any() else None


def recorded_groups(workload: Workload, by: str, runtime: Array) -> Groups:
    """Groups of jobs; months are those of submission, so that they are the same for the recorded and all simulated waits.

    `runtime`: as simulated, int64 s, shape (jobs,).
    """
    try:
        return group_jobs(workload, by, workload.submit, workload.submit, runtime=runtime)
    except WorkloadError:  # its times are outside the calendar
        return Groups([UNKNOWN], np.zeros(len(workload), np.int64))


def recorded_rows(groups: Groups, recorded: Array, simulated: Array, measured: Array) -> list[dict[str, Any]]:
    """One row for each group with measured jobs whose waits are known: its name as `group`, then what `recorded_waits` says.

    `recorded, simulated`: int64 s, `measured`: bool; each of shape (jobs,).
    """
    parts = groups.members(measured & (recorded >= 0))
    return [{"group": name, **recorded_waits(recorded[inside], simulated[inside]).as_dict()} for name, inside in parts]
