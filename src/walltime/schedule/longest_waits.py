"""The longest waits of a schedule."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from walltime.policy import Kind
from walltime.schedule.schedule import Schedule
from walltime.wording import human_time


@dataclass(frozen=True)
class LongWait:
    """One of the longest waits.

    `job`: its number; `submit`, `wait`, `requested`: s; `ahead`: how many jobs waited when it was submitted that had arrived before it;
    `overtaken_by`: how many arrived later and started earlier.
    """

    job: int
    submit: int
    wait: int
    procs: int
    requested: int
    ahead: int
    overtaken_by: int
    kind: str

    def as_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        size = f"{self.procs:,} processor{'' if self.procs == 1 else 's'} for {human_time(self.requested)}"
        return (
            f"job {self.job} waited {human_time(self.wait)} for {size}: {self.ahead:,} waited before it, "
            f"{self.overtaken_by:,} overtook it, {'backfilled' if self.kind == 'backfilled' else 'started in its turn'}"
        )


def longest_waits(schedule: Schedule, count: int = 10) -> list[LongWait]:
    """The longest waits, the worst first, each printed as one line; of equal ones that of the job that arrived first.

    Jobs that did not wait are left out.
    """
    w, submit, start = schedule.workload, schedule.submit, schedule.start
    worst = np.argsort(submit - start, kind="stable")[: max(count, 0)]
    place = np.arange(len(w))
    waits = []
    for job in worst[start[worst] > submit[worst]].tolist():
        earlier = (submit < submit[job]) | ((submit == submit[job]) & (place < job))
        ahead = int((earlier & (start > submit[job])).sum())
        overtook = int((~earlier & (start < start[job])).sum())
        numbers = (int(w.job_id[job]), int(submit[job]), int(start[job] - submit[job]), int(w.procs[job]), int(w.requested[job]))
        waits.append(LongWait(*numbers, ahead, overtook, Kind(schedule.kind[job]).name.lower()))
    return waits
