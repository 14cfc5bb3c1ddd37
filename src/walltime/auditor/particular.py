"""A walk along a schedule of Batsim's batsched, whose jobs and reservations have particular processors.

It follows the schedule from event to event, makes the policy's pass in the state that the schedule has reached, and compares the starts.
Reservations are found in a table of occupied processors with three columns: beginning, end, and a row of processors. It uses no code of the
engines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from walltime.auditor.report import Violation
from walltime.policy import FCFS, Kind, Policy
from walltime.policy.schedule_scores import Scores
from walltime.wording import counted
from walltime.workload import Array, Workload

if TYPE_CHECKING:
    from walltime.auditor.decisions import RecordedJobs

MOST_PLACEMENTS = 300_000
"""Number of searches for reservations after which decisions are no longer checked: about a minute."""


class ParticularWalk:
    """A walk along a schedule; jobs are positions in `recorded`, sorted by arrival, and times are in s.

    `decided`: the share of the events at which decisions were checked; valid once the violations have been found.
    """

    def __init__(self, workload: Workload, recorded: RecordedJobs, policy: Policy):
        order = np.lexsort((recorded.job, recorded.submit))
        self.place, self.submit, self.start, self.end = (
            one[order] for one in (recorded.job, recorded.submit, recorded.start, recorded.end)
        )
        self.length = recorded.estimate[order]
        self.kind, self.reserved_start = (None if one is None else one[order] for one in (recorded.kind, recorded.reserved_start))
        self.ids, self.procs, self.policy, self.decided = workload.job_id[self.place], workload.procs[self.place], policy, 1.0
        self.from_scratch, self.only_head = policy.passes.compression == "scratch", policy.passes.depth == 1
        times = self.submit, self.start, self.end, self.length
        self.scores = None if policy.order == FCFS else Scores(workload, [policy.order], times, self.place)
        count, machine = len(self.ids), workload.machine_procs
        self.sets = np.zeros((count, machine), bool)  # the processors of each job that runs or has a reservation
        self.reserved, self.first = np.full(count, -1), np.full(count, -1)  # starts of the current and of the first reservation
        self.label = np.zeros(count, np.uint8)
        self.running, self.waiting, self.begun = list[int](), list[int](), set[int]()
        self.now, self.ended, self.searches = 0, False, 0

    def violations(self, progress: Callable[[int], None] | None = None) -> Iterator[Violation]:
        """Yield the differences between schedule and policy, one per job; if there are none, also wrong labels and reservations."""
        events = np.unique(np.concatenate([self.submit, self.end])).tolist()
        by_start, arriving, reported = np.argsort(self.start, kind="stable").tolist()[::-1], 0, set[int]()
        for number, self.now in enumerate(events):
            while by_start and (by_start[-1] in self.begun or self.start[by_start[-1]] < self.now):
                job = by_start.pop()
                if job not in self.begun:
                    reported.add(job)
                    yield self._violation("out_of_turn", f"starts at {self.start[job]}, when no event causes a pass", job, self.start[job])
                    self._adopt(job)
            late: list[int] = []
            while not late:
                ends = [job for job in self.running if self.end[job] <= self.now]
                self.running = [job for job in self.running if job not in ends]
                before = arriving
                while arriving < len(self.ids) and self.submit[arriving] <= self.now:
                    arriving += 1
                new = [job for job in range(before, arriving) if job not in self.begun]
                self.waiting += new
                if not ends and not new:
                    break
                self.ended = self.ended or bool(ends)
                line = self._in_order()
                started = self._pass(line, new)
                late = [job for job in started if self.start[job] != self.now]
                if late:
                    self._take_back(started)
                if late and late[0] not in reported:
                    reported.add(late[0])
                    yield self._left(late[0], line[0])
            early = [job for job in self.waiting if self.start[job] == self.now]
            if early and not late and early[0] not in reported:
                reported.add(early[0])
                yield self._early(early[0])
            for job in early:
                self._adopt(job)
            if self.searches > MOST_PLACEMENTS:
                self.decided = (number + 1) / len(events)
                return
            if progress is not None:
                progress(len(self.begun))
        if not reported:
            yield from self._compare("kind_wrong", self.kind, self.label, "start is labelled")
            yield from self._compare("reserved_start_differs", self.reserved_start, self.first, "first reservation is")

    def _take_back(self, started: list[int]) -> None:
        """Undo a pass that started jobs that the schedule does not start; all reservations are then made again."""
        self.begun.difference_update(started)
        self.running = [job for job in self.running if job not in started]
        self.waiting = sorted([*self.waiting, *started])
        self.reserved[:], self.ended = -1, True

    def _adopt(self, job: int) -> None:
        """Start a job as the schedule does, on the first free processors; all reservations are then made again."""
        free = ~self.sets[self.running].any(axis=0)
        self.sets[job] = free & (np.cumsum(free) <= self.procs[job])
        self.waiting = [other for other in self.waiting if other != job]
        self.running.append(job)
        self.begun.add(job)
        self.reserved[:], self.ended = -1, True

    def _in_order(self) -> list[int]:
        if self.scores is None:
            return list(self.waiting)
        own, now = self.policy.order, self.now
        rank = {k: -self.scores.of(int(self.place[k]), own, now, int(self.length[k]), int(self.submit[k])) for k in self.waiting}
        return sorted(self.waiting, key=lambda job: (rank[job], job))

    def _pass(self, line: list[int], new: list[int]) -> list[int]:
        """Make the policy's pass; return the jobs that it starts."""
        ended, self.ended, started = self.ended, False, list[int]()
        overdue = any(self.start[job] + self.length[job] <= self.now for job in self.running)
        if ended and (self.from_scratch or overdue or any(0 <= self.reserved[job] < self.now for job in line)):
            self.reserved[line] = -1
        if self.only_head:
            self.reserved[line[1:]] = -1
            for job in line:
                if self.reserved[job] >= 0 or not self._place(job, line):
                    break
                started.append(job)
        for job in line if ended else new:
            if job not in started and not (self.only_head and self.reserved[job] >= 0):
                self.reserved[job] = -1
                if self._place(job, line, now_only=self.only_head):
                    started.append(job)
        return started

    def _place(self, job: int, line: list[int], now_only: bool = False) -> bool:
        """Make a job's earliest reservation, or with `now_only` none later than now; if it begins now, start the job and return True."""
        others = [*self.running, *(one for one in self.waiting if one != job and self.reserved[one] >= 0)]
        rows = np.array(others, np.int64)
        begin, expected = self.reserved[rows], np.maximum(self.start[rows] + self.length[rows], self.now + 1)
        end = np.where(begin >= 0, begin + self.length[rows], expected)
        self.searches += 1
        for moment in [self.now] if now_only else [self.now, *np.unique(end[end > self.now]).tolist()]:
            free = ~self.sets[rows[(begin < moment + self.length[job]) & (end > moment)]].any(axis=0)
            if free.sum() >= self.procs[job]:
                break
        else:
            return False
        self.sets[job] = free & (np.cumsum(free) <= self.procs[job])
        if self.first[job] < 0 and (moment > self.now or not self.only_head):
            self.first[job] = moment
        self.reserved[job] = -1 if moment == self.now else moment
        if moment > self.now:
            return False
        behind = any(other in self.waiting for other in line[: line.index(job)])
        self.label[job] = Kind.BACKFILLED if behind else Kind.IMMEDIATE if self.submit[job] == self.now else Kind.RESERVED
        self.waiting.remove(job)
        self.running.append(job)
        self.begun.add(job)
        return True

    def _compare(self, rule: str, recorded: Array | None, true: Array, what: str) -> Iterator[Violation]:
        for job in np.flatnonzero(recorded != true).tolist() if recorded is not None else ():
            message = f"{what} {recorded[job]}; it is {true[job]}"  # type: ignore[index]
            yield self._violation(rule, message, job, self.start[job], "'s ")

    def _left(self, job: int, head: int) -> Violation:
        """Describe a job that the policy starts now but the schedule does not."""
        needs = f"needs {counted(int(self.procs[job]), 'processor')}"
        message = f"{needs}, and {self.policy.label} starts it at {self.now}, but it starts at {self.start[job]}"
        return self._violation("head_waits" if job == head else "left_waiting", message, job)

    def _early(self, job: int) -> Violation:
        """Describe a job that the schedule starts now but the policy does not."""
        free = self.sets.shape[1] - int(self.procs[self.running].sum())
        rule = "out_of_turn" if self.procs[job] > free else "reservation_delayed"
        return self._violation(rule, f"starts at {self.now}, although {self.policy.label} would not start it", job)

    def _violation(self, rule: str, message: str, job: int, moment: Array | None = None, joint: str = " ") -> Violation:
        own = int(self.ids[job])
        return Violation(rule, f"job {own}{joint}{message}", (own,), self.now if moment is None else int(moment))
