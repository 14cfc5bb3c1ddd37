"""Whether users' jobs keep to their TimeMin: what outlives it counts against the user's next jobs."""

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
"""Seconds for which it counts that a job has outlived its TimeMin."""
OVERDUE, IN_TIME = "overdue", "in time"


@dataclass(frozen=True)
class Overrun:
    """A job that was adjusted: how many node-seconds it ran beyond its TimeMin, at a Unix time."""

    time: float
    user: str
    partition: str
    beyond: float


class Overruns:
    """What is remembered of the adjusted jobs of a week, from the ledger, and of those that run."""

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
        """How long, s, a running job has run; this machine's clock may have been set back."""
        monotonic = self._clock.monotonic()
        return max(now - job.start, monotonic - self._first.setdefault((job.key, job.restarts), monotonic), 0.0)

    def watch(self, entry: Entry, job: QueueJob, now: float) -> None:
        """A job runs that has a TimeMin."""
        beyond = job.nodes * max(self.ran(job, now) - entry.time_min * 60, 0.0)
        self._running[job.key] = Overrun(now, job.user, job.partitions[0], beyond)

    def end(self, entry: Entry, job: QueueJob) -> None:
        """It has ended."""
        self._first = {key: first for key, first in self._first.items() if key[0] != job.key}
        ran = self._running.pop(job.key, None)
        if ran is None:
            return
        self._ended.append(ran)
        detail = f"{ran.beyond:.0f} {ran.partition}" if ran.beyond else f"0 {ran.partition}"
        self._entries.note(OVERDUE if ran.beyond else IN_TIME, entry, job, detail)

    def _of(self, user: str) -> list[Overrun]:
        begin = self._clock.time() - MEMORY
        while self._ended and self._ended[0].time < begin:
            self._ended.popleft()
        return [ran for ran in (*self._ended, *self._running.values()) if ran.user == user]

    def factor(self, user: str, settings: SidecarSettings) -> int:
        """By what the TimeMin of a user's next jobs is multiplied: 1, and 1 more for each one that was outlived beyond what is usual."""
        runs = self._of(user)
        missed = sum(ran.beyond > 0 for ran in runs)
        return 1 + max(math.ceil(missed - max(settings.misses, len(runs) / 10)), 0)

    def why_not(self, job: QueueJob, cluster: Configuration, settings: SidecarSettings) -> str | None:
        """Why a job may not be adjusted, None if it may: what ran beyond its TimeMin is limited, per user and partition."""
        for name in job.partitions:
            beyond = sum(ran.beyond for ran in self._of(job.user) if ran.partition == name)
            if beyond and beyond > settings.overdue * MEMORY * max(len(cluster.partitions[name].nodes), 1):
                return "earlier jobs of its user have outlived their TimeMin for too long"
        return None
