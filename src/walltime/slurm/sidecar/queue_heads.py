"""The heads of the queues: a job that waits for nodes while other jobs are backfilled must not wait without a bound.

If a prediction is too short, backfill starts jobs that outlast the head's reserved start. When that start has passed by more than a part
of the head's wait, nothing is adjusted in its partitions until it has started.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from walltime.slurm.sidecar.settings import SidecarSettings
from walltime.slurm.squeue_fields import QueueJob

LATE_HEAD = "a job at the head of its queue has waited too long after its reserved start"
_WAITS_FOR_NODES = ("Resources", "Priority", "None", "ReqNodeNotAvail", "Nodes_required")


@dataclass
class QueueHead:
    """A head: when it became eligible, the earliest start that Slurm has planned for it (Unix times), and its partitions."""

    begin: int
    start: int
    partitions: tuple[str, ...]

    def latest(self, settings: SidecarSettings) -> float:
        """Return the latest time up to which predictions may plan jobs ahead of this head."""
        return self.start + max(settings.slip * (self.start - self.begin), settings.floor * 60)


class QueueHeads:
    """The known heads, by key; `noted`: the text of an earlier `note`."""

    def __init__(self, noted: str = ""):
        self.jobs: dict[str, QueueHead] = {}
        try:
            for key, begin, start, partitions in json.loads(noted or "[]"):
                self.jobs[str(key)] = QueueHead(int(begin), int(start), tuple(map(str, partitions)))
        except (ValueError, TypeError):
            self.jobs = {}

    def note(self) -> str:
        """Return the heads as a text for a later process."""
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
        """Return the partitions in which nothing is adjusted, each with the head that is late."""
        return {name: key for key, head in self.jobs.items() if now > head.latest(settings) for name in head.partitions}


def _first_jobs(waiting: Sequence[QueueJob], now: float) -> list[QueueJob]:
    """Return the first job of each partition that waits only for nodes."""
    heads: dict[str, QueueJob] = {}
    for job in waiting:
        if job.held or not 0 < job.begin <= now or not job.reason.startswith(_WAITS_FOR_NODES):
            continue
        for name in job.partitions:
            first = heads.get(name)
            if first is None or (-job.priority, job.submit) < (-first.priority, first.submit):
                heads[name] = job
    return list({job.key: job for job in heads.values()}.values())
