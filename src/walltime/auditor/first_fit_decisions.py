"""A walk along a schedule of FCFS, EASY or conservative backfilling on single nodes: the reference engine decides in the recorded state."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from walltime.auditor.slurm_decisions import problem_of
from walltime.auditor.walk import Difference, MachineSchedule, Walk
from walltime.engine.reference.first_fit import NodesReference
from walltime.engine.reference.pools import ClusterJob
from walltime.policy import Policy

Array = np.ndarray


class FirstFitWalk(Walk, NodesReference):  # type: ignore[misc]  # a walk runs along a schedule, an engine makes one
    """A walk along a schedule of a policy that takes nodes by first fit, without predictions and orders by history."""

    def __init__(self, schedule: MachineSchedule, policy: Policy):
        NodesReference.__init__(self, problem_of(schedule, policy))
        Walk.__init__(self, schedule)
        self.begun_now: list[ClusterJob] = []
        self._placed, self._processed = True, 0
        """The last instant whose events have been processed."""

    def _recorded(self, k: int) -> Array | None:
        """Return what a job has of each node in the schedule, if that is recorded; its memory follows from its processors."""
        if self.schedule.slots is None:
            return None
        mine = slice(*np.searchsorted(self.schedule.slots[0], [k, k + 1]))
        node, procs, second = (values[mine] for values in self.schedule.slots[1:])
        memory, own = np.zeros_like(procs), self.requests[k]
        if not own.whole:
            memory += own.memory or own.task_memory * (procs // own.task)
        recorded = np.zeros_like(self.capacity)
        recorded[node] = np.stack([procs, second, memory], axis=1)
        return recorded

    def _has_started(self, job: int) -> bool:
        return self.jobs[job].ticket >= 0

    def _free_now(self) -> Array:
        """Return what no running job has of each node."""
        return self.capacity - sum((job.given for job in self.running), np.zeros_like(self.capacity))

    def _begin_job(self, job: int) -> Iterator[Difference]:
        one = self.jobs[job]
        given = self._share(one, self._free_now())
        one.given = np.zeros_like(self.capacity) if given is None else given
        one.start, one.ticket = one.since, self._started
        self._started += 1
        self.running.append(one)
        yield from self._follow(one)

    def _next_event(self) -> int | None:
        return min(self._event_times()[0], default=None)

    def _instant(self) -> Iterator[Difference]:
        now, self.now = self.now, self._processed
        self._process_events(now)
        self._processed = now
        if self.settled == self.now:
            self._adopt(self.now)
            return
        self.begun_now.clear()
        self._decide()
        begun = list(self.begun_now)
        if any(self.start[job.index] != self.now for job in begun):
            for job in begun:
                self.running.remove(job)
                self._started -= 1
                job.start = job.ticket = job.reservation = -1
                self.waiting.append(job)
            self.waiting.sort(key=lambda job: job.arrival)
            yield from self._report_late([job.index for job in begun])
            self._adopt(self.now)
            return
        for job in begun:
            yield from self._follow(job)

    def _start(self, job: ClusterJob, given: Array, behind: bool) -> bool:
        """Start a job, for comparison with the schedule."""
        self.begun_now.append(job)
        return super()._start(job, given, behind)

    def _follow(self, job: ClusterJob) -> Iterator[Difference]:
        """Let a job that starts run until the schedule's end, on the schedule's nodes, after comparing these with its own."""
        k = job.index
        job.runtime = self.end[k] - self.start[k]
        recorded = self._recorded(k)
        if recorded is not None and (job.given != recorded).any():
            job.given = recorded
            self.reservations_void = True
            yield self._difference("node_order", k, f"has other nodes than {self.policy.name} takes for it", self.start[k])

    def _adopt_job(self, job: int) -> None:
        one = self.jobs[job]
        self.coming.discard(job)
        if one not in self.waiting:
            one.arrival = self._arrived
            self._arrived += 1
            self.waiting.append(one)
        recorded = self._recorded(job)
        given = self._share(one, self._free_now()) if recorded is None else recorded
        one.runtime = self.end[job] - self.start[job]
        super()._start(one, np.zeros_like(self.capacity) if given is None else given, False)
        one.start = self.start[job]

    def _adopt(self, moment: int) -> int:
        """Start jobs as the schedule does; then all reservations are made again."""
        self.reservations_void = True
        return super()._adopt(moment)

    # ------------------------------------------------------------------ differences

    def _too_late(self, job: int) -> Difference:
        start = self._actual_start(job)
        if self.passes.kind == "kept" and self.jobs[job].submit < self.now:
            return self._difference("reserved_start_missed", job, f"has a reservation that is due at {self.now}, but {start}")
        if self._queue()[0].index == job:
            return self._difference("head_waits", job, f"is the head of the queue and fits at {self.now}, but {start}")
        return self._difference("left_waiting", job, f"could start at {self.now} without delaying a reservation, but {start}")

    def _too_early(self, job: int) -> Difference:
        one = self.jobs[job]
        if one in self.waiting and len(self.waiting) > 1 and self.backfills and self._share(one, self._free_now()) is not None:
            return self._difference("reservation_delayed", job, f"starts at {self.now}, when that would delay a reservation")
        return self._difference("out_of_turn", job, f"starts at {self.now}, although {self.policy.label} would not start it")
