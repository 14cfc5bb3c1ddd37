"""A walk along a schedule on a machine with several pools; subclasses add the decisions of a policy."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from walltime.auditor.windows import SiteWindows
from walltime.machine import Placement
from walltime.machine.placing import NEVER as NO_TIME
from walltime.workload import Array, Workload

Difference = tuple[str, str, int, int]
"""A broken rule: its name, a message, the job's index and the time, s."""


@dataclass(frozen=True)
class MachineSchedule:
    """A schedule on a machine with several pools, and its jobs' placement; times int64 s, one entry per job of the workload.

    `given`, `slots`, `limit`: as in `Schedule`; if the schedule lacks one of them (None), jobs get the policy's choice. `windows`: the
    site's windows, which forbid starts. `lost`: job, start and end of the runs that were preempted and requeued before the last one; `cut`:
    the jobs whose last run was preempted.
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
    lost: Sequence[tuple[int, int, int]] = ()
    cut: frozenset[int] = frozenset()

    def broken(self, rule: str, job: int, what: str) -> Difference:
        """Return the violation of a rule by a job at its start."""
        return rule, f"job {self.workload.job_id[job]} {what}", int(job), int(self.start[job])


class Walk(ABC):
    """A walk from event to event of a schedule: the policy decides in the state that the schedule has reached.

    Its starts are compared with the schedule's. After a difference, the walk continues as the schedule does. Jobs are indices into the
    workload, times are in s.
    """

    def __init__(self, schedule: MachineSchedule):
        self.schedule, self.placement = schedule, schedule.placement
        self.start, self.end = schedule.start.tolist(), np.maximum(schedule.start, schedule.end).tolist()
        self.later: dict[int, list[tuple[int, int]]] = {}  # by job, its later runs, the next one last
        for job, start, end in sorted(schedule.lost, key=lambda run: run[1], reverse=True):
            self.later.setdefault(job, []).append((self.start[job], self.end[job]))
            self.start[job], self.end[job] = start, end
        jobs = np.flatnonzero(self.placement.since == NO_TIME).tolist()
        self.to_start = sorted(jobs, key=lambda job: (self.start[job], job), reverse=True)  # the next one is the last
        self.now, self.is_under_way = 0, False
        self.settled: int | None = None  # the instant of the last difference; the policy makes no more decisions then
        self.late: set[int] = set()  # jobs reported as left waiting

    # ------------------------------------------------------------------ what differs by policy

    @abstractmethod
    def _begin_job(self, job: int) -> Iterator[Difference]:
        """Start an initially running job."""

    @abstractmethod
    def _has_started(self, job: int) -> bool:
        """Return whether a job has started in this walk."""

    @abstractmethod
    def _next_event(self) -> int | None:
        """Return the next time, s, at which the policy may start a job; None if there is none."""

    @abstractmethod
    def _instant(self) -> Iterator[Difference]:
        """Handle the events of this instant and compare the policy's decisions."""

    @abstractmethod
    def _adopt_job(self, job: int) -> None:
        """Start a job as the schedule does."""

    @abstractmethod
    def _too_late(self, job: int) -> Difference:
        """Describe a job that the policy starts now but the schedule leaves waiting."""

    @abstractmethod
    def _too_early(self, job: int) -> Difference:
        """Describe a job that the schedule starts now but the policy leaves waiting."""

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
        while True:
            moment, recorded = self._next_event(), self._next_recorded()
            if recorded is not None and (moment is None or recorded < moment):
                self._go_to(recorded)
                job = self.to_start[-1]
                if self.settled != recorded and job not in self.late:
                    yield self._too_early(job)
                self._adopt(recorded)
            elif moment is not None:
                self._go_to(moment)
                yield from self._instant()
            else:
                return

    def _go_to(self, moment: int) -> None:
        """Move the clock; the first time may be negative, because initially running jobs may have ended before the beginning."""
        self.now, self.is_under_way = max(self.now, moment) if self.is_under_way else moment, True

    def _is_cut(self, job: int) -> bool:
        """Return whether this run of a job ends by preemption in the schedule."""
        return bool(self.later.get(job)) or job in self.schedule.cut

    def _go_to_next_run(self, job: int) -> None:
        """Continue with the next run of a job that returns to the queue."""
        self.start[job], self.end[job] = self.later[job].pop()
        self.to_start = sorted([*self.to_start, job], key=lambda job: (self.start[job], job), reverse=True)

    def _next_recorded(self) -> int | None:
        """Return the time, s, at which the schedule starts the next job that has not started in this walk; None if there is none."""
        while self.to_start and self._has_started(self.to_start[-1]):
            self.to_start.pop()
        return self.start[self.to_start[-1]] if self.to_start else None

    def _adopt(self, moment: int) -> int:
        """Start the jobs that the schedule has started by now but the policy has not; return their number."""
        self.settled, count = moment, 0
        while (recorded := self._next_recorded()) is not None and recorded <= moment:
            self._adopt_job(self.to_start.pop())
            count += 1
        return count

    # ------------------------------------------------------------------ messages

    def _report_late(self, started: Sequence[int]) -> Generator[Difference, None, bool]:
        """Report, once, the first job that the policy starts now but the schedule does not; return whether there is one."""
        late = next((job for job in started if self.start[job] != self.now), None)
        if late is not None and late not in self.late:
            yield self._too_late(late)
            self.late.add(late)
        return late is not None

    def _difference(self, rule: str, job: int, what: str, moment: int | None = None) -> Difference:
        return rule, f"job {self.schedule.workload.job_id[job]} {what}", job, self.now if moment is None else moment

    def _actual_start(self, job: int) -> str:
        """Describe when the schedule starts a job that should start now."""
        return f"starts only at {self.start[job]}" if self.start[job] > self.now else f"has started at {self.start[job]}"
