"""A walk along a schedule on a machine with several pools; subclasses add the decisions of a policy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from walltime.auditor.windows import SiteWindows
from walltime.machine import Placement
from walltime.machine.placing import NEVER as NO_TIME
from walltime.workload import Workload

Array = np.ndarray
Difference = tuple[str, str, int, int]
"""A broken rule: its name, a message, the job's index and the time, s."""
NO_LIMIT = np.iinfo(np.int64).max // 4
"""More than any limit."""


@dataclass(frozen=True)
class MachineSchedule:
    """A schedule on a machine with several pools, and its jobs' placement; times int64 s, one entry per job of the workload.

    `given`, `slots`, `limit`: as in `Schedule`; None where the schedule lacks them: jobs then get what the policy gives them. `windows`:
    the site's windows, which forbid starts.
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
        """Return the violation of a rule by a job at its start."""
        return rule, f"job {self.workload.job_id[job]} {what}", int(job), int(self.start[job])


class Walk(ABC):
    """The state to which a schedule has led: jobs to come, waiting and running, as indices into the workload; times in s.

    `most`, `used`: jobs, processors and second resource that each limit allows, and that run; job k has the limits
    `limits[first_limit[k] : first_limit[k + 1]]`.
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
        self.late: set[int] = set()  # reported as left waiting
        self.most = np.minimum(np.array(placement.limits, np.int64).reshape(-1, 3), NO_LIMIT)
        self.used = np.zeros_like(self.most)
        self.first_limit, self.limits = placement.limits_of.first, placement.limits_of.items

    # ------------------------------------------------------------------ what differs by policy

    @abstractmethod
    def _begin_job(self, job: int) -> Iterator[Difference]:
        """Start a job that runs at the beginning."""

    @abstractmethod
    def _next_event(self) -> int | None:
        """Return when the policy may next start a job; None for never."""

    @abstractmethod
    def _instant(self) -> Iterator[Difference]:
        """Handle the events of this instant and compare the policy's decisions."""

    @abstractmethod
    def _adopt_job(self, job: int) -> None:
        """Start a job as the schedule does."""

    @abstractmethod
    def _too_late(self, job: int) -> Difference:
        """Describe a job that the policy starts now and the schedule leaves waiting."""

    @abstractmethod
    def _too_early(self, job: int) -> Difference:
        """Describe a job that the schedule starts now and the policy leaves waiting."""

    # ------------------------------------------------------------------ from event to event

    def run(self) -> Iterator[Difference]:
        """Walk along the schedule and yield its differences from the policy's starts, at most one per instant."""
        since = self.placement.since
        for job in sorted(np.flatnonzero(since < NO_TIME).tolist(), key=lambda job: (int(since[job]), job)):
            if self.start[job] != since[job]:
                what = f"runs since {since[job]}, but the schedule starts it at {self.start[job]}"
                yield self._difference("out_of_turn", job, what, self.start[job])
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
        """Move the clock; the first moment may be before 0, as jobs that run at the beginning may end before."""
        self.now, self.begun = max(self.now, moment) if self.begun else moment, True

    def _known_events(self) -> list[int]:
        """Return the times of the next end and the next arrival."""
        return [heap[0][0] for heap in (self.ends, self.arrivals) if heap]

    def _next_recorded(self) -> int | None:
        """Return when the schedule starts the next job that has not started here; None without one."""
        while self.next_start < len(self.by_start) and self.ticket[self.by_start[self.next_start]] >= 0:
            self.next_start += 1
        return self.start[self.by_start[self.next_start]] if self.next_start < len(self.by_start) else None

    def _adopt(self, moment: int) -> bool:
        """Start the jobs that the schedule has started by now and the policy has not; return whether there are any."""
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
        """Add the jobs that arrive now to the waiting ones, and return them in order."""
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
        """Note the start of a job and its end to come."""
        self.ticket[job] = self.started
        self.started += 1
        heappush(self.ends, (self.end[job], self.ticket[job], job))

    def _count(self, job: int, sign: int) -> None:
        """Count a job that starts (1) or has ended (-1) towards its limits."""
        for limit in self.placement.limits_of[job]:
            self.used[limit] += (sign, sign * self.procs[job], sign * int(self.placement.second[job]))

    def _release_followers(self, job: int, moment: int | None = None) -> None:
        """Let the jobs that waited only for the end of this one arrive, at once or after their users' think times."""
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

    # ------------------------------------------------------------------ messages

    def _report_late(self, started: Sequence[int]) -> Generator[Difference, None, bool]:
        """Report, once, the first job that the policy starts now and the schedule does not; return whether there is one."""
        late = next((job for job in started if self.start[job] != self.now), None)
        if late is not None and late not in self.late:
            yield self._too_late(late)
            self.late.add(late)
        return late is not None

    def _difference(self, rule: str, job: int, what: str, moment: int | None = None) -> Difference:
        """Return the violation of a rule by a job, now or at another moment."""
        return rule, f"job {self.w.job_id[job]} {what}", job, self.now if moment is None else moment

    def _actual_start(self, job: int) -> str:
        """Describe when the schedule starts a job that should start now."""
        return f"starts only at {self.start[job]}" if self.start[job] > self.now else f"has started at {self.start[job]}"
