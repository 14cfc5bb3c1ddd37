"""What going along a schedule needs on any machine of nodes: who waits for whose end, and which start of the schedule comes next."""

from __future__ import annotations

from heapq import heappush

import numpy as np

from walltime.machine import Placement
from walltime.machine.placing import NEVER as NO_TIME
from walltime.workload import Workload

Array = np.ndarray


class Walk:
    """Jobs by their places in the workload: those to come, those that wait, and how far the schedule's starts have been followed; s."""

    def __init__(self, workload: Workload, placement: Placement, start: Array, end: Array):
        count, begun = len(workload), placement.since < NO_TIME
        after, think = workload.dependencies() if workload.feedback else (np.full(count, -1), np.zeros(count, np.int64))
        self.w, self.placement = workload, placement
        self.start, self.end = start.tolist(), np.maximum(start, end).tolist()
        self.submit, self.procs = workload.submit.tolist(), workload.procs.tolist()
        self.tier = [placement.machine.partitions[part].tier for part in placement.partition.tolist()]
        self.now = 0
        self.coming = set(np.flatnonzero(~begun).tolist())
        self.arrivals: list[tuple[int, int]] = []  # a heap: when a job that waits for no other comes
        self.after, self.think = np.where(begun, -1, after).tolist(), think.tolist()
        self.waits_for = [set(others) | {one} - {-1} for others, one in zip(placement.after, self.after, strict=True)]
        self.followers: dict[int, list[int]] = {}
        for job, others in enumerate(self.waits_for):
            for other in others:
                self.followers.setdefault(other, []).append(job)
        self.waiting: list[int] = []
        self.arrival, self.ticket = [-1] * count, [-1] * count
        self.arrived = self.started = 0
        self.ends: list[tuple[int, int, int]] = []
        self.by_start = sorted(self.coming, key=lambda job: (self.start[job], job))
        self.next_start = 0
        self.settled: int | None = None
        self.late: set[int] = set()  # said to have been left waiting

    def announce(self) -> None:
        """The jobs that wait for no other one are to come."""
        for job in self.coming:
            if not self.waits_for[job]:
                heappush(self.arrivals, (self.submit[job], job))

    def release_followers(self, job: int) -> None:
        """A job has ended: those that waited only for it are to come, at once or after their users' think times."""
        for other in self.followers.get(job, ()):
            waits = self.waits_for[other]
            if job not in waits:
                continue
            waits.remove(job)
            if self.after[other] == job:
                self.submit[other] = max(self.now + self.think[other], 0)
            else:
                self.submit[other] = max(self.submit[other], self.now)
            if not waits and other in self.coming:
                heappush(self.arrivals, (self.submit[other], other))

    def next_recorded(self) -> int | None:
        """When the schedule starts the next job that has not started here; None if there is none."""
        while self.next_start < len(self.by_start) and self.ticket[self.by_start[self.next_start]] >= 0:
            self.next_start += 1
        return self.start[self.by_start[self.next_start]] if self.next_start < len(self.by_start) else None
