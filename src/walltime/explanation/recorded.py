"""Explain a recorded wait from the log, without a simulation: free resources over time, running jobs, and jobs that overtook."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from walltime.errors import WorkloadError
from walltime.explanation.pools import limit_words
from walltime.explanation.records import plain
from walltime.machine import Machine, Placement
from walltime.machine.placing import amount_of
from walltime.machine.tables import RESOURCES
from walltime.tables import Cell, Facts, Table, time_cell
from walltime.weekly_report.causes import CAUSES, RecordedSpan, cause_names, one_pool
from walltime.wording import UNDEFINED, counted, human_time, listed
from walltime.workload import Workload

MOST_LISTED = 3
MOST_ROWS = 12
_UNKNOWN = "the log does not show the cause (a dependency, another limit or reservation, or the scheduler's own delay)"


@dataclass(frozen=True)
class Instant:
    """Free processors, second resource and memory, MB, from a time on; `after`: s after the job's submission. None means unlimited."""

    after: int
    procs: int
    second: int | None
    memory: int | None


@dataclass(frozen=True)
class RecordedJob:
    """Another job with its processors and second resource; `after`: its recorded start, s after the submission of the explained job."""

    job: int
    procs: int
    second: int
    after: int


@dataclass(frozen=True, kw_only=True)
class RecordedExplanation:
    """The explanation of a job's recorded wait.

    `causes`: parts of the wait, s, for each cause of `walltime.weekly_report.causes.CAUSES`. `ahead`: number of earlier jobs for the same
    pools that were waiting when it was submitted. `overtaken_by`: jobs for the same pools that were submitted later and started earlier.
    `running`: jobs in these pools that ran at its submission, the largest first. `instants`: the free resources while it waited.
    `partition`: empty if the machine has only one. `pools`: the pools that it may use, if not all. `limits`: descriptions of the limits on
    running jobs that apply to it. `memory`: requested, MB.
    """

    job: int
    wait: int
    procs: int
    second: int
    memory: int
    partition: str
    pools: tuple[str, ...]
    limits: tuple[str, ...]
    causes: dict[str, int]
    ahead: int
    running: tuple[RecordedJob, ...]
    overtaken_by: tuple[RecordedJob, ...]
    instants: tuple[Instant, ...]
    resource: str = field(default="", repr=False)
    """column name of the second resource"""
    when: str = field(default="", repr=False)

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks."""
        return self.facts._repr_html_()

    @property
    def facts(self) -> Facts:
        """Return the explanation in words for the terminal."""
        size = self._amounts(self.procs, self.second, self.memory)
        waited = f"waited {human_time(self.wait)}" if self.wait else "started at once"
        texts = [("reason", self.reason)] if self.wait else []
        first = self.instants[0]
        free = self._amounts(first.procs, first.second, first.memory)
        texts.append(("at submission", f"{free} free{self._where}; {counted(self.ahead, 'job')} ahead of it"))
        for label, jobs, after in (("running then", self.running, False), ("overtaken by", self.overtaken_by, True)):
            if jobs:
                texts.append((label, f"{counted(len(jobs), 'job')}: {self._listed(jobs, after)}"))
        where = f" in the partition {self.partition}" if self.partition else ""
        return Facts(f"Job {self.job}: {size}{where}; {waited} in the log ({self.when})", texts)

    @property
    def _lacked_memory(self) -> bool:
        return self.causes["memory"] > 0

    def _amounts(self, procs: int, second: int | None, memory: int | None) -> str:
        """Describe the amounts of processors, of the second resource if the job requests it, and of memory if the job lacked memory."""
        own = [amount_of(second, self.resource)] if self.second and second is not None else []
        own += [amount_of(memory, "mem_mb")] if self._lacked_memory and memory is not None else []
        return listed([counted(procs, "processor"), *own])

    @property
    def _where(self) -> str:
        if self.pools:
            return f" in the {'pool' if len(self.pools) == 1 else 'pools'} {listed([*self.pools])}"
        return " in its partition" if self.partition else ""

    @property
    def reason(self) -> str:
        """Return the causes of the wait in words, the longest first."""
        words = {
            "limit": f"a limit of the machine file held it back (at most {', or '.join(self.limits)} at a time)",
            "second": f"too few {'GPUs' if self.resource == 'gpus' else self.resource} were free",
            "memory": "too little memory was free",
            "processors": "too few processors were free",
            "behind": "enough was free, but an earlier job for the same nodes lacked resources",
            "priority": "enough was free, but a later job of higher priority for the same nodes lacked resources",
            "reservation": "enough was free, but it was kept for a reservation or an announced outage",
            "window": "the site was closed to such jobs",
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
        """Return a table of the free resources at the first instants of the wait."""
        shown = {"procs": "processors free"}
        shown |= {"second": f"{'GPUs' if self.resource == 'gpus' else self.resource} free"} if self.second else {}
        shown |= {"memory": "memory free, MB"} if self._lacked_memory else {}
        rows = [
            [time_cell(one.after), *(UNDEFINED if (value := getattr(one, name)) is None else f"{value:,}" for name in shown)]
            for one in self.instants[:MOST_ROWS]
        ]
        columns = ["after", *shown.values()]
        rest = len(self.instants) - MOST_ROWS
        return Table(columns, rows, f"Free{self._where}, as recorded", f"{rest:,} more rows are not shown." if rest > 0 else "")

    def as_dict(self) -> dict[str, Any]:
        """Return the explanation as a dictionary for JSON."""
        return plain(self) | {"causes": dict(self.causes), "reason": self.reason}


def explain_recorded(workload: Workload, job: int, machine: Machine | None = None) -> RecordedExplanation:
    """Explain the recorded wait of a job from the log alone; `machine`: by default (None) one pool of the log's processors.

    Logs do not record pools: the use of a job that may run in several is divided in proportion to their sizes. Raises WorkloadError for an
    unknown job, a log without waits, or a job that has no recorded start or does not fit the machine.
    """
    span = _recorded_span(workload, machine)
    found = np.flatnonzero(span.jobs.job_id == job)
    if not len(found):
        fault = f"{workload.origin.name} has no job {job} with a recorded start that fits the machine; choose another job"
        raise WorkloadError(fault, "unknown_job")
    return _explained(span.jobs, span.placement, int(found[0]))


def longest_recorded(workload: Workload, count: int, machine: Machine | None = None) -> list[RecordedExplanation]:
    """Return the explanations of the `count` longest recorded waits, in descending order."""
    span = _recorded_span(workload, machine)
    waits = span.jobs.columns["wait"]
    return [_explained(span.jobs, span.placement, int(k)) for k in np.argsort(-waits, kind="stable")[:count] if waits[k] > 0]


def recorded_table(found: Sequence[RecordedExplanation], title: str) -> Table:
    """Return a table with a row for each of these waits, with its longest cause."""
    resource = next((one.resource for one in found if one.second), "")
    names = cause_names(RESOURCES.get(resource, resource))
    rows = [
        [
            Cell(str(one.job), value=one.job),
            time_cell(one.wait),
            f"{one.procs:,}",
            *([f"{one.second:,}"] if resource else []),
            f"{one.ahead:,}",
            f"{len(one.overtaken_by):,}",
            names[max(one.causes, key=lambda cause: one.causes[cause])],
        ]
        for one in found
    ]
    size = ["processors", *([RESOURCES.get(resource, resource)] if resource else [])]
    return Table(["job", "recorded wait", *size, "jobs ahead", "overtaken by", "longest cause"], rows, title)


def _recorded_span(workload: Workload, machine: Machine | None) -> RecordedSpan:
    """Return the jobs with recorded starts, placed on the machine."""
    recorded = workload.recorded_wait
    if recorded is None:
        raise WorkloadError(f"{workload.origin.name} records no waits; explain the simulated wait instead", "no_waits")
    workload = workload.take(recorded >= 0, "no_start")
    return RecordedSpan.of(workload, machine or one_pool(workload), 0, 1)


def _explained(placed: Workload, placement: Placement, k: int) -> RecordedExplanation:
    """Return the explanation of the job with index `k`."""
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

    def amount(resource: int, interval: int) -> int | None:
        value = float(free[resource, interval])
        return None if np.isinf(value) else max(round(value), 0)

    pools = [pool.name for pool, may in zip(placement.machine.pools, span.sets[member], strict=True) if may]
    changes = [i for i in range(free.shape[1]) if i == 0 or (free[:, i] != free[:, i - 1]).any()]
    partitions = placement.machine.partitions
    own = partitions[int(placement.partition[k])]
    return RecordedExplanation(
        job=int(placed.job_id[k]),
        wait=wait,
        procs=int(placed.procs[k]),
        second=int(placement.second[k]),
        memory=int(span.amounts[k, 1]),
        partition=own.name if len(partitions) > 1 else "",
        pools=() if set(pools) == set(own.pools) else tuple(pools),
        limits=tuple(dict.fromkeys(limit_words(placement, limit) for limit in placement.limits_of[k])),
        causes={cause: round(value) for cause, value in zip(CAUSES, seconds.tolist(), strict=True)},
        ahead=int((sharing & earlier & (start > begin)).sum()),
        running=others(ran[np.argsort(-placement.second[ran] * 10**9 - placed.procs[ran], kind="stable")]),
        overtaken_by=others(overtook[np.argsort(start[overtook], kind="stable")]),
        instants=tuple(Instant(int(span.edges[i]) - begin, amount(2, i) or 0, amount(0, i), amount(1, i)) for i in changes),
        resource=second,
        when=f"{placed.origin.when(begin)} to {placed.origin.when(begin + wait)}",
    )
