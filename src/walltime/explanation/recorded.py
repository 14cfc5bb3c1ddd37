"""Why a job waited, from the log without a simulation: free amounts at each instant, jobs that ran, and jobs that overtook it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from walltime.errors import WorkloadError
from walltime.explanation.records import plain
from walltime.machine import Machine
from walltime.machine.placing import amount_of
from walltime.tables import Facts, Table, time_cell
from walltime.weekly_report.causes import CAUSES, RecordedSpan, one_pool
from walltime.wording import counted, human_time, listed
from walltime.workload import Workload

MOST_LISTED = 3
MOST_ROWS = 12
_UNKNOWN = "the log does not show the cause (a dependency, another limit or reservation, or the scheduler's own delay)"


@dataclass(frozen=True)
class Instant:
    """The free processors and units of the second resource (None if unlimited) from a time on, s after a job's submission."""

    after: int
    procs: int
    second: int | None


@dataclass(frozen=True)
class RecordedJob:
    """Another job: its processors, units of the second resource, and its recorded start, s after the explained job's submission."""

    job: int
    procs: int
    second: int
    after: int


@dataclass(frozen=True, kw_only=True)
class RecordedExplanation:
    """The recorded wait of a job. `causes`: parts of the wait, s, by `walltime.weekly_report.causes.CAUSES`.

    `ahead`: jobs for the same pools that had been submitted earlier and waited when it was submitted. `overtaken_by`: jobs for the same
    pools that were submitted later and started earlier. `running`: jobs there that ran at its submission, the largest first. `instants`:
    the free amounts while it waited. `partition`: empty if the machine has only one.
    """

    job: int
    wait: int
    procs: int
    second: int
    partition: str
    causes: dict[str, int]
    ahead: int
    running: tuple[RecordedJob, ...]
    overtaken_by: tuple[RecordedJob, ...]
    instants: tuple[Instant, ...]
    resource: str = field(default="", repr=False)
    """the name of the second resource"""
    when: str = field(default="", repr=False)

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        return self.facts._repr_html_()

    @property
    def facts(self) -> Facts:
        """Return the explanation in words for the terminal."""
        size = counted(self.procs, "processor") + (f" and {amount_of(self.second, self.resource)}" if self.second else "")
        waited = f"waited {human_time(self.wait)}" if self.wait else "started at once"
        texts = [("reason", self.reason)] if self.wait else []
        first = self.instants[0]
        free = counted(first.procs, "processor") + (
            f" and {amount_of(first.second, self.resource)}" if self.second and first.second is not None else ""
        )
        texts.append(("at submission", f"{free} free{self._where}; {counted(self.ahead, 'job')} ahead of it"))
        for label, jobs, after in (("running then", self.running, False), ("overtaken by", self.overtaken_by, True)):
            if jobs:
                texts.append((label, f"{counted(len(jobs), 'job')}: {self._listed(jobs, after)}"))
        where = f" in the partition {self.partition}" if self.partition else ""
        return Facts(f"Job {self.job}: {size}{where}; {waited} in the log ({self.when})", texts)

    @property
    def _where(self) -> str:
        return " in its partition" if self.partition else ""

    @property
    def reason(self) -> str:
        """Return the causes of the wait in words, the longest first."""
        words = {
            "limit": "a limit of the machine file held it back",
            "second": f"too few {'GPUs' if self.resource == 'gpus' else self.resource} were free",
            "memory": "too little memory was free",
            "processors": "too few processors were free",
            "behind": "enough was free, but an earlier job for the same nodes lacked resources",
            "priority": "enough was free, but a later job of higher priority for the same nodes lacked resources",
            "reservation": "enough was free, but it was kept for a reservation",
            "window": "the site's windows did not allow it to start",
            "unknown": f"enough was free, but {_UNKNOWN}",
        }
        spans = sorted(((seconds, words[name]) for name, seconds in self.causes.items() if seconds), key=lambda one: -one[0])
        return "; ".join(text if len(spans) == 1 else f"for {human_time(seconds)}, {text}" for seconds, text in spans)

    def _listed(self, jobs: tuple[RecordedJob, ...], after: bool) -> str:
        each = []
        for one in jobs[:MOST_LISTED]:
            second = f", {amount_of(one.second, self.resource)}" if one.second else ""
            each.append(f"job {one.job} ({counted(one.procs, 'processor')}{second}{f', after {human_time(one.after)}' if after else ''})")
        return listed([*each, *([f"{len(jobs) - MOST_LISTED:,} more"] if len(jobs) > MOST_LISTED else [])])

    def table(self) -> Table:
        """Return the free amounts at the first instants of the wait."""
        second = self.second > 0
        rows = [
            [time_cell(one.after), f"{one.procs:,}", *([f"{one.second:,}" if one.second is not None else "n/a"] if second else [])]
            for one in self.instants[:MOST_ROWS]
        ]
        columns = ["after", "processors free", *([f"{'GPUs' if self.resource == 'gpus' else self.resource} free"] if second else [])]
        rest = len(self.instants) - MOST_ROWS
        return Table(columns, rows, f"Free{self._where}, as recorded", f"{rest:,} more rows: add --json." if rest > 0 else "")

    def as_dict(self) -> dict[str, Any]:
        """Return the explanation, ready for JSON."""
        return plain(self) | {"causes": dict(self.causes), "reason": self.reason}


def explain_recorded(workload: Workload, job: int, machine: Machine | None = None) -> RecordedExplanation:
    """Explain a job's recorded wait from the log alone; `machine`: None for one pool of the log's processors.

    Logs do not record pools: where a job may use several, its use counts in proportion to their sizes. Raises WorkloadError for an unknown
    job, a log without waits, or a job without a recorded start or that the machine cannot run.
    """
    recorded, name = workload.recorded_wait, workload.origin.name
    if recorded is None:
        raise WorkloadError(f"{name} records no waits; explain the simulated wait instead", "no_waits")
    workload = workload.take(recorded >= 0, "no_start")
    span_of = RecordedSpan.of(workload, machine or one_pool(workload), 0, 1)
    placed, placement = span_of.jobs, span_of.placement
    found = np.flatnonzero(placed.job_id == job)
    if not len(found):
        raise WorkloadError(f"{name} has no job {job} with a recorded start that fits the machine; choose another job", "unknown_job")
    k = int(found[0])
    begin, wait = int(placed.submit[k]), int(placed.columns["wait"][k])
    span = RecordedSpan(placed, placement, begin, begin + max(wait, 1))
    seconds = span.seconds()[k] if wait else np.zeros(len(CAUSES))
    free, member, start = span.free()[span.members[k]], span.members[k], placed.submit + placed.columns["wait"]
    sharing = ((span.sets[span.members] & span.sets[member]).any(axis=1)) & (np.arange(len(placed)) != k)
    place = np.arange(len(placed))
    earlier = (placed.submit < begin) | ((placed.submit == begin) & (place < k))
    overtook = np.flatnonzero(sharing & ~earlier & (start < begin + wait))
    ran = np.flatnonzero(sharing & (start <= begin) & (start + placed.runtime > begin) & earlier)
    second = placement.machine.second

    def others(jobs: Any) -> tuple[RecordedJob, ...]:
        values = zip(placed.job_id[jobs], placed.procs[jobs], placement.second[jobs], start[jobs] - begin, strict=True)
        return tuple(RecordedJob(*map(int, value)) for value in values)

    changes = [i for i in range(free.shape[1]) if i == 0 or (free[:, i] != free[:, i - 1]).any()]
    partitions = placement.machine.partitions
    return RecordedExplanation(
        job=job,
        wait=wait,
        procs=int(placed.procs[k]),
        second=int(placement.second[k]),
        partition=partitions[int(placement.partition[k])].name if len(partitions) > 1 else "",
        causes={cause: round(value) for cause, value in zip(CAUSES, seconds.tolist(), strict=True)},
        ahead=int((sharing & earlier & (start > begin)).sum()),
        running=others(ran[np.argsort(-placement.second[ran] * 10**9 - placed.procs[ran], kind="stable")]),
        overtaken_by=others(overtook[np.argsort(start[overtook], kind="stable")]),
        instants=tuple(
            Instant(
                int(span.edges[i]) - begin,
                max(round(float(free[2, i])), 0),
                None if np.isinf(free[0, i]) else max(round(float(free[0, i])), 0),
            )
            for i in changes
        ),
        resource=second,
        when=f"{workload.origin.when(begin)} to {workload.origin.when(begin + wait)}",
    )
