"""A walk along a schedule made by OAR: its passes are repeated in the state to which the schedule has led.

The starts of each pass are compared with the schedule's. After a difference the walk goes on as the schedule does.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from heapq import heappop, heappush
from operator import or_

import numpy as np

from walltime.auditor.walk import Difference, MachineSchedule, Walk
from walltime.estimates import effective_times
from walltime.machine.placing import NEVER as NO_TIME
from walltime.policy.oar import STREAM, Oar
from walltime.workload.draws import whole_numbers

Array = np.ndarray
SUBMISSION, END, LAUNCH = 0, 1, 2


def run_pass(every: int, running: Sequence[tuple[int, int]], waiting: Sequence[tuple[int, int, int]], bug: bool) -> Mapping[int, int]:
    """Return the jobs that a pass starts, as indices into `waiting`, with the nodes of each.

    Sets of nodes are bits of integers; `every`: all nodes. `running`: for each job, for how long (s, at least 1) it holds its nodes, and
    these nodes, by start, then number. `waiting`, in order: duration, number of nodes, and allowed nodes. `bug`: as in OAR of 2016.
    """
    until, free, pointer = [NO_TIME], [every], 0  # slot k ends until[k] s from now, when the next one begins

    def take(k: int, length: int, nodes: int) -> None:
        """Take nodes out of slot k, up to `length` s from now."""
        if length < until[k]:
            until.insert(k, length)
            free.insert(k, free[k])
        free[k] &= ~nodes

    for length, nodes in running:
        if bug and pointer and length <= until[pointer]:
            pointer += length < until[0]  # the first slot is divided
            take(0, length, nodes)
            continue
        while length > until[pointer]:
            pointer += 1
        for k in range(pointer + 1 if bug else next(k for k, end in enumerate(until) if end >= length) + 1):
            take(k, length, nodes)
    starting = {}
    for place, (length, need, may) in enumerate(waiting):
        for first in range(len(until)):
            last, common = first, free[first] & may
            begin = until[first - 1] if first else 0
            while common.bit_count() >= need and until[last] < begin + length:
                last += 1
                common &= free[last]
            if common.bit_count() >= need:
                break
        nodes = lowest(common, need)
        for k in range(first, last + 1):
            take(k, begin + length, nodes)
        if first == 0:
            starting[place] = nodes
    return starting


def lowest(nodes: int, count: int) -> int:
    """Return the first `count` of these nodes."""
    rest = nodes
    for _ in range(count):
        rest &= rest - 1
    return nodes & ~rest


class OarWalk(Walk):
    """A walk along a schedule made by OAR; sets of nodes are bits of integers, times of the server ms."""

    def __init__(self, schedule: MachineSchedule, policy: Oar):
        super().__init__(schedule)
        workload, placement, slots = schedule.workload, schedule.placement, schedule.slots
        machine, part = placement.machine, placement.partition
        self.policy, self.takes = policy, policy.durations
        held = effective_times(workload, schedule.overrun)[1] + policy.security_time
        noticed, phase = whole_numbers(policy.seed, workload.job_id, STREAM, self.takes.noticed, self.takes.phase)
        self.held, self.noticed, self.phase = held.tolist(), noticed.tolist(), phase.tolist()
        first = np.concatenate([[0], np.cumsum([pool.nodes for pool in machine.pools])]).tolist()
        pools = {pool.name: (1 << first[k + 1]) - (1 << first[k]) for k, pool in enumerate(machine.pools)}
        own = [sum(pools[name] for name in set(one.pools)) for one in machine.partitions]
        size = [machine.pools[machine.place_of(one.pools[0])].procs for one in machine.partitions]
        self.every, self.may = sum(pools.values()), [own[k] for k in part.tolist()]
        self.need = (workload.procs // np.array(size)[part]).tolist()
        self.recorded: list[int] | None = None
        if slots is not None:
            self.recorded = [0] * len(workload)
            for job, node in zip(slots[0].tolist(), slots[1].tolist(), strict=True):
                self.recorded[job] |= 1 << node
        self.nodes = [0] * len(workload)
        self.running: list[tuple[int, int]] = []  # start and number
        self.events: list[tuple[int, int, int]] = []  # a heap
        self.time, self.again, self.last = -NO_TIME, False, -NO_TIME

    # ------------------------------------------------------------------ from pass to pass

    def _begin_job(self, job: int) -> Iterator[Difference]:
        nodes = lowest(self.may[job] & ~self._used(), self.need[job])
        yield from self._check(job, nodes)
        self._run_job(job, -NO_TIME)

    def _next_event(self) -> int | None:
        self._expect_submissions()
        if not self.again:
            times = [self.events[0][0]] if self.events else []
            if self.takes.period and any(job not in self.late for job in self.waiting):
                times.append(self.time + self.takes.period)
            if not times:
                return None
            self.time = max(self.time, min(times))
        return max((self.time + self.takes.step + self.takes.clock) // 1000, self.last) + self.takes.tick

    def _instant(self) -> Iterator[Difference]:
        now, takes = self.now, self.takes
        self._process_events(0)
        self.time += takes.step
        self.again, self.last = self._process_events(takes.clock), now
        if not self.waiting:
            self.time += takes.idle
            return
        before, queue = self.started, list(self.waiting)
        running = [(max(start + self.held[job] - now, 1), self.nodes[job]) for start, job in self.running]
        waiting = [(self.held[job], self.need[job], self.may[job]) for job in queue]
        starting = {queue[k]: nodes for k, nodes in run_pass(self.every, running, waiting, self.policy.slots == "2016").items()}
        wrong = yield from self._report_late(list(starting))
        begun = [] if wrong else list(starting)
        self.time += takes.busy + takes.start * len(begun)
        for job in begun:
            yield from self._check(job, starting[job])
            self.waiting.remove(job)
            self._run_job(job, self.time + takes.launch)
        if wrong or self.settled == now:
            self._adopt(now)
            self.time += takes.start * (self.started - before - len(begun))

    def _process_events(self, later: int) -> bool:
        """Process the events up to `later` ms from now; return whether there are any."""
        found = False
        while self.events and self.events[0][0] <= self.time + later:
            _, what, job = heappop(self.events)
            found = True
            if what == SUBMISSION and job in self.coming:
                self.coming.remove(job)
                self.arrival[job] = self.arrived
                self.arrived += 1
                insort(self.waiting, job, key=lambda one: (self.submit[one], one))
            elif what == END:
                self.running.remove((self.start[job], job))
                self._release_followers(job, self.end[job])
                self._expect_submissions()
        return found

    def _expect_submissions(self) -> None:
        """Add the events at which OAR notices submissions."""
        while self.arrivals:
            submit, job = heappop(self.arrivals)
            heappush(self.events, (1000 * submit + self.noticed[job], SUBMISSION, job))

    # ------------------------------------------------------------------ what the schedule does

    def _used(self) -> int:
        """Return the nodes in use."""
        return reduce(or_, (self.nodes[job] for _, job in self.running), 0)

    def _run_job(self, job: int, launched: int) -> None:
        self._note_start(job)
        insort(self.running, (self.start[job], job))
        moment = max(1000 * self.end[job] + self.phase[job] + self.takes.end, launched)
        heappush(self.events, (moment, END, job))
        if launched > -NO_TIME:
            heappush(self.events, (launched, LAUNCH, job))

    def _adopt_job(self, job: int) -> None:
        free = self.may[job] & ~self._used()
        self.nodes[job] = lowest(free, min(self.need[job], free.bit_count())) if self.recorded is None else self.recorded[job]
        self._run_job(job, self.time + self.takes.launch)

    def _check(self, job: int, nodes: int) -> Iterator[Difference]:
        """Check that a job has the nodes that OAR chooses; from then on it has the schedule's."""
        self.nodes[job] = nodes if self.recorded is None else self.recorded[job]
        if self.nodes[job] != nodes:
            yield self._difference("node_order", job, "has other nodes than OAR chooses for it", self.start[job])

    # ------------------------------------------------------------------ messages

    def _too_late(self, job: int) -> Difference:
        now, start = self.now, self._actual_start(job)
        if self.waiting[0] == job:
            return self._difference("head_waits", job, f"is first in the queue and has its nodes at {now}, but {start}")
        return self._difference("left_waiting", job, f"is placed at {now} in OAR's plan, but {start}")

    def _too_early(self, job: int) -> Difference:
        if job in self.waiting and self.waiting[0] != job:
            what = f"starts at {self.now}, when OAR's plan has its nodes for other jobs, or no pass is made"
            return self._difference("reservation_delayed", job, what)
        return self._difference("out_of_turn", job, f"starts at {self.now}, when no pass of OAR starts it")
