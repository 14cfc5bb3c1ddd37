"""Jobs that run beyond their TimeMin, which count against their users' next jobs."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from walltime.slurm.configuration import Configuration
from walltime.slurm.sidecar.adjustments import Adjustments
from walltime.slurm.sidecar.host import Clock
from walltime.slurm.sidecar.ledger import Entry
from walltime.slurm.sidecar.settings import SidecarSettings
from walltime.slurm.squeue_fields import QueueJob

MEMORY = 7 * 86_400.0
"""Seconds for which an overrun counts."""
OVERDUE, IN_TIME = "overdue", "in time"


@dataclass(frozen=True)
class Overrun:
    """An adjusted job: the node-seconds that it ran beyond its TimeMin, 0 for none, at a Unix time."""

    time: float
    user: str
    partition: str
    beyond: float


class Overruns:
    """The adjusted jobs of a week, from the ledger, and those that run."""

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
        """Return how long a running job has run, s, even if this machine's clock was set back."""
        monotonic = self._clock.monotonic()
        return max(now - job.start, monotonic - self._first.setdefault((job.key, job.restarts), monotonic), 0.0)

    def watch(self, entry: Entry, job: QueueJob, now: float) -> None:
        """Note a running job with a TimeMin."""
        beyond = job.nodes * max(self.ran(job, now) - entry.time_min * 60, 0.0)
        self._running[job.key] = Overrun(now, job.user, job.partitions[0], beyond)

    def end(self, entry: Entry, job: QueueJob) -> None:
        """Note that a job has ended."""
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
        """Return the factor for the TimeMin of a user's next jobs: 1, plus 1 for each overrun beyond the usual number."""
        runs = self._jobs_of(user)
        missed = sum(ran.beyond > 0 for ran in runs)
        return 1 + max(math.ceil(missed - max(settings.misses, len(runs) / 10)), 0)

    def exclusion_reason(self, job: QueueJob, cluster: Configuration, settings: SidecarSettings) -> str | None:
        """Return why a job may not be adjusted, None if it may: a user's overruns in a partition are limited."""
        for name in job.partitions:
            beyond = sum(ran.beyond for ran in self._jobs_of(job.user) if ran.partition == name)
            if beyond and beyond > settings.overdue * MEMORY * max(len(cluster.partitions[name].nodes), 1):
                return "earlier jobs of its user have outlived their TimeMin for too long"
        return None
