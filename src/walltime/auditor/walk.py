"""What going along a schedule needs on any machine of nodes, and the way along it; what is decided differs by machine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from walltime.auditor.windows import SiteWindows
from walltime.machine import Placement
from walltime.machine.placing import NEVER as NO_TIME
from walltime.workload import Workload

Array = np.ndarray
Difference = tuple[str, str, int, int]
"""The rule that is broken, a message, the job's index and the time, s."""
NO_LIMIT = np.iinfo(np.int64).max // 4
"""More than any limit."""


@dataclass(frozen=True)
class MachineSchedule:
    """A schedule on a machine of pools, with what its jobs need there; times int64 s, one entry per job of the workload.

    `given`, `slots`, `limit`: as in `Schedule`, None where the schedule does not say; then jobs have what the policy gives them. `windows`:
    when those of the site let each job start.
    """

    workload: Workload
    placement: Placement
    start: Array
    end: Array
    windows: SiteWindows
    overrun: str = "kill"
    given: Array | None = None
    slots: Sequence[Array] | None = None
    limit: Array | None = None

    def broken(self, rule: str, job: int, what: str) -> Difference:
        """A rule that a job breaks when it starts."""
        return rule, f"job {self.workload.job_id[job]} {what}", int(job), int(self.start[job])


class Walk(ABC):
    """The state that the schedule has led to. Jobs are places in the workload: those to come, those that wait and run; times in s.

    `most`, `used`: of each limit the most jobs, processors and second resource that run, and what runs; `limits`: those of all jobs, of
    which job k has `limits[first_limit[k] : first_limit[k + 1]]`.
    """

    def __init__(self, schedule: MachineSchedule):
        workload, placement, start, end = schedule.workload, schedule.placement, schedule.start, schedule.end
        count, begun = len(workload), placement.since < NO_TIME
        after, think = workload.dependencies() if workload.feedback else (np.full(count, -1), np.zeros(count, np.int64))
        self.w, self.placement = workload, placement
        self.start, self.end = start.tolist(), np.maximum(start, end).tolist()
        self.submit, self.procs = workload.submit.tolist(), workload.procs.tolist()
        self.tier = [placement.machine.partitions[part].tier for part in placement.partition.tolist()]
        self.now, self.begun = 0, False
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
        self.most = np.minimum(np.array(placement.limits, np.int64).reshape(-1, 3), NO_LIMIT)
        self.used = np.zeros_like(self.most)
        self.first_limit, self.limits = placement.limits_of.first, placement.limits_of.items

    # ------------------------------------------------------------------ what differs by machine

    @abstractmethod
    def _begin_job(self, job: int) -> Iterator[Difference]:
        """A job that runs at first."""

    @abstractmethod
    def _next_event(self) -> int | None:
        """When the policy may next start somebody; None for never."""

    @abstractmethod
    def _instant(self) -> Iterator[Difference]:
        """What happens now, and what the policy would do."""

    @abstractmethod
    def _adopt_job(self, job: int) -> None:
        """Start a job as the schedule does."""

    @abstractmethod
    def _too_early(self, job: int) -> Difference:
        """The schedule starts a job that the policy leaves waiting."""

    # ------------------------------------------------------------------ from event to event

    def run(self) -> Iterator[Difference]:
        """Go along the schedule: where it starts other jobs than the policy does, at most one entry per instant."""
        since = self.placement.since
        for job in sorted(np.flatnonzero(since < NO_TIME).tolist(), key=lambda job: (int(since[job]), job)):
            if self.start[job] != since[job]:
                message = f"job {self.w.job_id[job]} runs since {since[job]}, the schedule starts it at {self.start[job]}"
                yield "out_of_turn", message, job, self.start[job]
                self.start[job], self.end[job] = int(since[job]), int(since[job]) + self.end[job] - self.start[job]
            yield from self._begin_job(job)
        for job in self.coming:
            if not self.waits_for[job]:
                heappush(self.arrivals, (self.submit[job], job))
        while True:
            moment, record = self._next_event(), self._next_recorded()
            if record is not None and (moment is None or record < moment):
                self._go_to(record)
                job = self.by_start[self.next_start]
                if self.settled != record and job not in self.late:
                    yield self._too_early(job)
                self._adopt(record)
                continue
            if moment is None:
                return
            self._go_to(moment)
            yield from self._instant()

    def _go_to(self, moment: int) -> None:
        """The jobs that run at first may end before 0."""
        self.now, self.begun = max(self.now, moment) if self.begun else moment, True

    def _next_recorded(self) -> int | None:
        """When the schedule starts the next job that has not started here; None if there is none."""
        while self.next_start < len(self.by_start) and self.ticket[self.by_start[self.next_start]] >= 0:
            self.next_start += 1
        return self.start[self.by_start[self.next_start]] if self.next_start < len(self.by_start) else None

    def _adopt(self, moment: int) -> bool:
        """Start what the schedule has started by now and the policy has not; returns whether there was anything."""
        self.settled, before = moment, self.started
        while self.next_start < len(self.by_start) and self.start[self.by_start[self.next_start]] <= moment:
            job = self.by_start[self.next_start]
            self.next_start += 1
            if self.ticket[job] < 0:
                if job in self.coming:
                    self.coming.remove(job)
                elif self.arrival[job] >= 0:
                    self.waiting.remove(job)
                self._adopt_job(job)
        return self.started > before

    def _arrivals_now(self) -> list[int]:
        """The jobs that come now, in order; they wait from now on."""
        came = []
        while self.arrivals and self.arrivals[0][0] <= self.now:
            came.append(heappop(self.arrivals)[1])
        came = [job for job in sorted(came) if job in self.coming]
        for job in came:
            self.coming.remove(job)
            self.arrival[job] = self.arrived
            self.arrived += 1
            self.waiting.append(job)
        return came

    def _note_start(self, job: int) -> None:
        """A job runs."""
        self.ticket[job] = self.started
        self.started += 1
        heappush(self.ends, (self.end[job], self.ticket[job], job))

    def _count(self, job: int, sign: int) -> None:
        """Count a job that starts (1) or has ended (-1) towards its limits."""
        for limit in self.placement.limits_of[job]:
            self.used[limit] += (sign, sign * self.procs[job], sign * int(self.placement.second[job]))

    def _release_followers(self, job: int, moment: int | None = None) -> None:
        """A job has ended, now or at another moment: those that waited only for it come at once or after their users' think times."""
        now = self.now if moment is None else moment
        for other in self.followers.get(job, ()):
            waits = self.waits_for[other]
            if job not in waits:
                continue
            waits.remove(job)
            if self.after[other] == job:
                self.submit[other] = max(now + self.think[other], 0)
            else:
                self.submit[other] = max(self.submit[other], now)
            if not waits and other in self.coming:
                heappush(self.arrivals, (self.submit[other], other))

    def _what_it_does(self, job: int) -> str:
        """What the schedule does with a job that should start now."""
        return f"starts only at {self.start[job]}" if self.start[job] > self.now else f"has started at {self.start[job]}"
