"""Jobs that waited for other reasons than processors, from the columns of a log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from walltime.machine import Placement
from walltime.metrics.summary import Averages
from walltime.policy import Kind
from walltime.schedule.schedule import Schedule
from walltime.whatif.pool_groups import PoolGroup

Array = np.ndarray

AT_ONCE = 60
"""Largest wait, s, that the period of a scheduler explains."""
CAPACITY = "processors, or its turn"
REASONS = {
    r"Assoc|QOS|MaxJobs|MaxCpu|MaxNode|Grp|JobArrayTaskLimit|PartitionNodeLimit|PartitionTimeLimit": "a limit of the user, account or QOS",
    r"Dependency": "another job",
    r"BeginTime": "its requested begin time",
    r"JobHeld|Held": "being released (held)",
    r"Reserv|ReqNodeNotAvail|NodeDown|PartitionDown|PartitionInactive|Maint": "nodes that were down, drained or reserved",
    r"Licenses|BurstBuffer": "licences or other resources that are not modelled",
    r"Resources|Priority|None": CAPACITY,
}
"""Slurm's reasons (manual of squeue), and what the job waited for."""
OF_COLUMNS = {
    "depends_on": "name a job that they depend on",
    "reservation": "ran in a reservation",
    "held": "could not start at first (held, dependency, begin time); that time is not in either wait",
}
"""Columns of the log with positive values for jobs that waited for another reason, and this reason."""
RARE = 0.005
"""Largest share of overcommitted time that inexact times in a log explain."""
SHORT = "so rarely that the times in the log may be inexact."
TOO_LITTLE = "the machine file has too few processors there, or nodes were shared."


@dataclass(frozen=True)
class WaitCause(Averages):
    """Jobs that waited for a cause; waits are sums, h."""

    what: str
    jobs: int
    share: float
    """share of the measured jobs"""
    recorded_hours: float
    simulated_hours: float


@dataclass(frozen=True)
class Evidence:
    """Jobs that waited for other reasons than capacity, hints about the machine file, and percentages of backfilled jobs."""

    rows: Sequence[WaitCause]
    hints: Sequence[str]
    backfilled_recorded: float | None = None
    backfilled_simulated: float | None = None


def find_evidence(schedule: Schedule, placement: Placement, recorded: Array, groups: Sequence[PoolGroup], mask: Array) -> Evidence:
    """Return the evidence in a log; `recorded`: waits, int64 s, -1 if unknown; `mask`: the measured jobs with known waits, bool."""
    workload = schedule.workload
    start = np.where(recorded >= 0, workload.submit + recorded, -1)
    count = max(int(mask.sum()), 1)

    def row(what: str, chosen: Array) -> WaitCause:
        inside = chosen & mask
        hours = (float(waits[inside].sum()) / 3600 for waits in (recorded, schedule.wait))
        return WaitCause(what, int(inside.sum()), float(inside.sum()) / count, *hours)

    rows = [row(f"waited last for {what}", chosen) for what, chosen in _by_reason(schedule)]
    free = np.zeros(len(workload), bool)
    for group in groups:
        long = group.jobs[recorded[group.jobs] > AT_ONCE]
        free[long] = group.least_free(workload.submit[long], start[long]) >= workload.procs[long]
    rows.append(row(f"waited over {AT_ONCE} s while enough processors were free all that time, perhaps reserved for others", free))
    rows.append(row("… and start at once in the simulation, so something else held them", free & (schedule.wait <= AT_ONCE)))
    unknown = np.full(len(workload), -1)
    rows += [row(what, workload.columns.get(column, unknown) > 0) for column, what in OF_COLUMNS.items()]
    known_rows, hints = [one for one in rows if one.jobs], _hints(schedule, placement, start, groups)
    labels = workload.columns.get("sched_backfill", unknown)
    known = mask & (labels >= 0)
    if not known.any():
        return Evidence(known_rows, hints)
    shares = (100 * float(np.mean(backfilled[known])) for backfilled in (labels == 1, schedule.kind == Kind.BACKFILLED))
    return Evidence(known_rows, hints, *shares)


def _by_reason(schedule: Schedule) -> list[tuple[str, Array]]:
    """Return what jobs waited for last, by the log's column `reason`, with these jobs (bool)."""
    numbers, origin = schedule.workload.columns.get("reason"), schedule.workload.origin
    if numbers is None or "reason" not in origin.names:
        return []
    said: dict[str, list[int]] = {}
    for number, name in enumerate(origin.names["reason"], 1):
        what = next((what for pattern, what in REASONS.items() if re.match(pattern, name)), origin.name_of("reason", number))
        said.setdefault(what, []).append(number)
    return [(what, np.isin(numbers, members)) for what, members in said.items() if what != CAPACITY]


def _hints(schedule: Schedule, placement: Placement, start: Array, groups: Sequence[PoolGroup]) -> list[str]:
    """Return hints from the recorded schedule about the machine file."""
    hints = []
    for group in groups:
        if not len(group.jobs):
            continue
        where = f"the pool {group.pools[0]}" if len(group.pools) == 1 else f"the pools {', '.join(group.pools)}"
        over = group.started_overfull(start)
        if len(over):
            hints.append(
                f"{len(over):,} jobs started on {where} although that made more than its {group.procs:,} processors busy "
                f"(up to {group.most:,}, {100 * group.overfull_share():.1f} % of the time): "
                + (SHORT if group.overfull_share() < RARE else TOO_LITTLE)
            )
        elif group.most < 0.9 * group.procs:
            hints.append(
                f"At most {group.most:,} of the {group.procs:,} processors of {where} were busy at once: the machine file may have too "
                "many, or the jobs wait for something else."
            )
    unknown = int((start < 0).sum())
    if unknown:
        hints.append(f"{unknown:,} of {len(start):,} jobs have no recorded start; they are simulated but not compared.")
    if not (schedule.workload.columns.get("partition", np.full(1, -1)) >= 0).any() and len(placement.machine.partitions) > 1:
        hints.append("The log has no partitions: all jobs are submitted to the first one.")
    return hints
