"""Limit the harm to other jobs: the first job of a queue must not start too late, and jobs that outlive TimeMin count against their users.

The first job of a queue, its head, has a reserved start, until which other jobs are backfilled. If a predicted runtime is too short, a
backfilled job may outlast the reserved start. Once the head is later than that by more than a share of its wait, no job in its partitions
is adjusted until the head has started.
"""

import json
import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from walltime.slurm.configuration import Configuration
from walltime.slurm.sidecar.host import Clock
from walltime.slurm.sidecar.ledger import Adjustments, Entry
from walltime.slurm.sidecar.settings import SidecarSettings
from walltime.slurm.squeue_fields import QueueJob

LATE_HEAD = "a job at the head of its queue has waited too long after its reserved start"
_WAITS_FOR_NODES = ("Resources", "Priority", "None", "ReqNodeNotAvail", "Nodes_required")
MEMORY = 7 * 86_400.0
"""Seconds for which an overrun counts against its user."""
OVERDUE, IN_TIME = "overdue", "in time"


@dataclass
class QueueHead:
    """The first job of a queue: when it became eligible (`begin`), and the earliest start that Slurm has planned for it, Unix times."""

    begin: int
    start: int
    partitions: tuple[str, ...]

    def latest(self, settings: SidecarSettings) -> float:
        """Return the Unix time after which this head is late, so that nothing is adjusted in its partitions."""
        return self.start + max(settings.slip * (self.start - self.begin), settings.floor * 60)


class QueueHeads:
    """The known heads, by the keys of their jobs; `noted` is a text from `note`, from which they are restored."""

    def __init__(self, noted: str = ""):
        self.jobs: dict[str, QueueHead] = {}
        try:
            for key, begin, start, partitions in json.loads(noted or "[]"):
                self.jobs[str(key)] = QueueHead(int(begin), int(start), tuple(map(str, partitions)))
        except (ValueError, TypeError):
            self.jobs = {}

    def note(self) -> str:
        """Return the heads as a text, from which a later process can restore them."""
        return json.dumps([[key, head.begin, head.start, list(head.partitions)] for key, head in self.jobs.items()])

    def look(self, waiting: Iterable[QueueJob], now: float) -> bool:
        """Update the heads from the waiting jobs, and return whether anything has changed."""
        waiting = list(waiting)
        before = self.note()
        here = {job.key for job in waiting}
        self.jobs = {key: head for key, head in self.jobs.items() if key in here}
        for job in _first_jobs(waiting, now):
            if not job.start:
                continue  # Slurm has not planned it yet
            head = self.jobs.setdefault(job.key, QueueHead(min(job.begin or job.submit, job.start), job.start, job.partitions))
            head.start = min(head.start, max(job.start, head.begin))
            head.partitions = job.partitions
        return self.note() != before

    def late(self, now: float, settings: SidecarSettings) -> dict[str, str]:
        """Return the partitions in which no job may be adjusted, each with the key of its late head."""
        return {name: key for key, head in self.jobs.items() if now > head.latest(settings) for name in head.partitions}


def _first_jobs(waiting: Sequence[QueueJob], now: float) -> list[QueueJob]:
    """Return the first job of each partition among the jobs that wait only for nodes."""
    heads: dict[str, QueueJob] = {}
    for job in waiting:
        if job.held or not 0 < job.begin <= now or not job.reason.startswith(_WAITS_FOR_NODES):
            continue
        for name in job.partitions:
            first = heads.get(name)
            if first is None or (-job.priority, job.submit) < (-first.priority, first.submit):
                heads[name] = job
    return list({job.key: job for job in heads.values()}.values())


class Overrun(NamedTuple):
    """The node-seconds that an adjusted job has run beyond its TimeMin (`beyond`, 0 for none) at Unix time `time`."""

    time: float
    user: str
    partition: str
    beyond: float


class Overruns:
    """The adjusted jobs of the last week: ended ones from the ledger, and those that still run."""

    def __init__(self, entries: Adjustments, clock: Clock):
        self._entries, self._clock = entries, clock
        self._running: dict[str, Overrun] = {}
        self._first: dict[tuple[str, int], float] = {}
        self._ended: deque[Overrun] = deque()
        if entries.ledger is not None:
            for event in entries.ledger.events_since(clock.time() - MEMORY, OVERDUE, IN_TIME):
                beyond, _, partition = event.detail.partition(" ")
                self._ended.append(Overrun(event.time, event.user, partition, float(beyond or 0)))

    def ran(self, job: QueueJob, now: float) -> float:
        """Return how long a running job has run, s; the result never falls, even if the system clock is set back."""
        monotonic = self._clock.monotonic()
        return max(now - job.start, monotonic - self._first.setdefault((job.key, job.restarts), monotonic), 0.0)

    def watch(self, entry: Entry, job: QueueJob, now: float) -> None:
        """Note how far a running job is beyond its TimeMin."""
        beyond = job.nodes * max(self.ran(job, now) - entry.time_min * 60, 0.0)
        self._running[job.key] = Overrun(now, job.user, job.partitions[0], beyond)

    def end(self, entry: Entry, job: QueueJob) -> None:
        """Record in the ledger whether a job that has ended outlived its TimeMin."""
        self._first = {key: first for key, first in self._first.items() if key[0] != job.key}
        ran = self._running.pop(job.key, None)
        if ran is None:
            return
        self._ended.append(ran)
        self._entries.record(OVERDUE if ran.beyond else IN_TIME, entry, job, f"{ran.beyond:.0f} {ran.partition}")

    def _jobs_of(self, user: str) -> list[Overrun]:
        begin = self._clock.time() - MEMORY
        while self._ended and self._ended[0].time < begin:
            self._ended.popleft()
        return [ran for ran in (*self._ended, *self._running.values()) if ran.user == user]

    def factor(self, user: str, settings: SidecarSettings) -> int:
        """Return the factor for TimeMin of a user's next jobs: 1, plus 1 for each overrun beyond the number that is allowed."""
        runs = self._jobs_of(user)
        missed = sum(ran.beyond > 0 for ran in runs)
        return 1 + max(math.ceil(missed - max(settings.misses, len(runs) / 10)), 0)

    def exclusion_reason(self, job: QueueJob, cluster: Configuration, settings: SidecarSettings) -> str | None:
        """Return why a job may not be adjusted: its user's overruns in a partition were too long. None if it may."""
        for name in job.partitions:
            beyond = sum(ran.beyond for ran in self._jobs_of(job.user) if ran.partition == name)
            if beyond and beyond > settings.overdue * MEMORY * max(len(cluster.partitions[name].nodes), 1):
                return "earlier jobs of its user have run too long beyond their TimeMin"
        return None
