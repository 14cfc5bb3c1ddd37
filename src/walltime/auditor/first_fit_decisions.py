"""A walk along a schedule of FCFS, EASY or conservative backfilling on a machine of nodes; the reference engine makes the decisions."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np

from walltime.auditor.slurm_decisions import problem_of
from walltime.auditor.walk import Difference, MachineSchedule, Walk
from walltime.engine.reference.first_fit import NodesReference
from walltime.engine.reference.pools import ClusterJob, Pass, Reservation
from walltime.policy import Policy

Array = np.ndarray
MOST_WORK = 3_000_000
"""Largest sum over all events of waiting jobs times nodes for which all decisions are checked: about half a minute in plain Python."""
STARTS = 20
"""Number of starts in a stretch."""
SEED = 0
NO_STATE = (-1, -1, -1, -1)


class Sample(NamedTuple):
    """Stretches of a schedule at whose events decisions are checked, as pairs of times [begin, end), s, and their `share` of all events.

    A single stretch covers the whole schedule if checking it takes at most MOST_WORK; otherwise stretches are drawn at random with SEED. If
    a policy keeps state from pass to pass, the first stretches are used.
    """

    stretches: list[tuple[int, int]]
    share: float

    @classmethod
    def of(cls, schedule: MachineSchedule, policy: Policy) -> Self:
        """Return the sample of a schedule."""
        start, end, submit = (np.sort(times) for times in (schedule.start, schedule.end, schedule.workload.submit))
        events = np.unique(np.concatenate([start, end, submit]))
        waiting = np.searchsorted(submit, events, side="right") - np.searchsorted(start, events)
        work = (1 + np.maximum(waiting, 0)) * sum(pool.nodes for pool in schedule.placement.machine.pools)
        if work.sum() <= MOST_WORK:
            return cls([(int(events[0]), int(events[-1]) + 1)], 1.0)
        bounds = np.unique(np.concatenate([events[:1], start[::STARTS], events[-1:] + 1]))
        first = np.searchsorted(events, bounds)
        needed = np.add.reduceat(work, first[:-1])
        passes = policy.passes
        keeps = passes.kind not in ("head", "fresh") or passes.committed or passes.shadow != "always" or passes.head_runtime_factor != 1
        order = np.arange(len(needed)) if keeps else np.random.default_rng(SEED).permutation(len(needed))
        count = max(1, int(np.searchsorted(np.cumsum(needed[order]), MOST_WORK, side="right")))
        chosen = np.sort(order[:count])
        stretches = list(zip(bounds[chosen].tolist(), bounds[chosen + 1].tolist(), strict=True))
        return cls(stretches, float((first[chosen + 1] - first[chosen]).sum() / len(events)))

    def __str__(self) -> str:
        """Return a description of the sample."""
        return f"the checked stretches ({len(self.stretches):,} of {STARTS} starts each, drawn by seed {SEED}) represent the whole schedule"

    def has(self, moment: int) -> bool:
        """Return whether a time is in the sample."""
        k = bisect_right(self.stretches, moment, key=lambda one: one[0]) - 1
        return k >= 0 and moment < self.stretches[k][1]


class FirstFitWalk(Walk, NodesReference):  # type: ignore[misc]  # a walk runs along a schedule, an engine makes one
    """A walk along a schedule of a policy with first fit on nodes, without predictions and without orders by history."""

    def __init__(self, schedule: MachineSchedule, policy: Policy):
        NodesReference.__init__(self, problem_of(schedule, policy))
        Walk.__init__(self, schedule)
        self.begun_now: list[ClusterJob] = []
        self.sample = Sample.of(schedule, policy)
        self._state = NO_STATE
        self._levels_now: list[tuple[int, Array]] = []
        self._free: list[list[int]] = []
        self._placed, self._processed = True, 0
        """The last instant whose events have been processed."""

    def _recorded(self, k: int) -> Array | None:
        """Return a job's recorded amounts on each node, if any, as in `capacity`; its memory follows from its processors."""
        if self.schedule.slots is None:
            return None
        mine = slice(*np.searchsorted(self.schedule.slots[0], [k, k + 1]))
        node, procs, second = (values[mine] for values in self.schedule.slots[1:])
        memory, own = np.zeros_like(procs), self.requests[k]
        if not own.whole:
            memory += own.memory or own.task_memory * (procs // own.task)
        recorded = np.zeros_like(self.capacity)
        recorded[node] = self.nodes.allocated(np.full(len(node), own.second_row), procs, second, memory).T
        return recorded

    def _has_started(self, job: int) -> bool:
        return self.jobs[job].ticket >= 0

    def _free_now(self) -> Array:
        """Return the free amounts of each node."""
        return self.capacity - sum((job.given for job in self.running), np.zeros_like(self.capacity))

    def _fits(self, job: ClusterJob, begin: int, so_far: Pass) -> Array | None:
        """Return the result of the reference engine, with a shortcut for most jobs that do not fit now."""
        return None if begin == self.now and not self._may_fit(job) else super()._fits(job, begin, so_far)

    def _levels(self, planned: Sequence[Reservation]) -> list[tuple[int, Array]]:
        """Return the result of the reference engine, computed only once for each state if no jobs are planned."""
        state = self.now, self._started, len(self.running), len(self._planned_now)
        if planned:
            return super()._levels(planned)
        if self._state != state:
            self._state, self._levels_now, self._free = state, super()._levels([]), self._free_now().tolist()
        return self._levels_now

    def _may_fit(self, job: ClusterJob) -> bool:
        """Return whether the nodes have enough processors for a job if reservations, outages and planned ends are ignored."""
        self._levels([])
        request, needed = self.requests[job.index], self.requests[job.index].asked
        for node in request.order:
            needed -= self._usable_procs(request, node, self._free[node])
            if needed <= 0:
                return True
        return False

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
        if not self.sample.has(self.now):
            for job in [one for one in self._queue() if self.start[one.index] == self.now]:  # in the order in which a pass would start them
                self._adopt_job(job.index)
            super()._adopt(self.now)
            return
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
        self.begun_now.append(job)
        return super()._start(job, given, behind)

    def _follow(self, job: ClusterJob) -> Iterator[Difference]:
        """Compare the schedule's nodes of a started job with the policy's; then run the job on them until its end in the schedule."""
        k = job.index
        job.runtime = self.end[k] - self.start[k]
        recorded = self._recorded(k)
        if recorded is not None and (job.given != recorded).any():
            job.given = recorded
            self.reservations_void = True
            yield self._difference("node_order", k, f"has other nodes than {self.policy.name} takes for it", self.start[k])

    def _adopt_job(self, job: int) -> None:
        one, self._state = self.jobs[job], NO_STATE
        self.coming.discard(job)
        if one not in self.waiting:
            one.arrival = self._arrived
            self._arrived += 1
            self.waiting.append(one)
        given = self._recorded(job)
        if given is None:  # assume the first nodes without an outage before its planned end, or else any nodes
            given = super()._fits(one, self.now, Pass())
            given = self._share(one, self._free_now()) if given is None else given
        one.runtime = self.end[job] - self.start[job]
        super()._start(one, np.zeros_like(self.capacity) if given is None else given, False)
        one.start = self.start[job]

    def _adopt(self, moment: int) -> int:
        """Start jobs as the schedule does; all reservations are made again afterwards."""
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
