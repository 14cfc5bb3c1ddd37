"""The reference engine for OAR's scheduling: the rules of kernel/nodes/oar.py in plain Python, slow and independent of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from walltime.engine.problem import NEVER, NodeDemands, Nodes, OarSettings, Problem
from walltime.engine.reference.plain import BACKFILLED, IMMEDIATE, RESERVED, release_followers
from walltime.errors import EngineError, WorkloadError

Array = np.ndarray


@dataclass(eq=False)
class OarJob:
    """A job that gets `need` of the nodes `may`; times in s, but `noticed` (its submission, after `submit`) and `phase` (its end) in ms."""

    index: int
    submit: int
    runtime: int
    believed: int
    procs: int
    need: int = 0
    may: frozenset[int] = frozenset()
    noticed: int = 0
    phase: int = 0
    waits_for: set[int] = field(default_factory=set)
    after: int = -1
    think: int = 0
    start: int = -1
    kind: int = IMMEDIATE
    reserved_start: int = -1
    nodes: list[int] = field(default_factory=list)

    @property
    def arrival(self) -> tuple[int, int]:
        """Return the sort key of the queue."""
        return self.submit, self.index

    @property
    def expected_end(self) -> int:
        """Return the end after the requested time."""
        return self.start + self.believed


@dataclass
class Slot:
    """Nodes that are free from `begin` to `end`, both included."""

    begin: int
    end: int
    free: set[int]


class SlotPlan:
    """The free nodes from now on, slot by slot: at first all nodes; then `insert` running jobs, and `place` waiting ones, in order."""

    def __init__(self, now: int, nodes: Iterable[int], security: int, bug: bool):
        self.now, self.security, self.bug = now, security, bug
        self.slots = [Slot(now, NEVER, set(nodes))]
        self.pointer = self.slots[0]

    def insert(self, start: int, believed: int, nodes: Sequence[int]) -> None:
        """Insert a running job; an overdue one counts as if it ended now. These come in order of start, then number."""
        last = max(start + believed + self.security - 1, self.now)
        if self.bug and last <= self.pointer.end and self.pointer is not self.slots[0]:
            self._take(self.slots[0], last, nodes)
            return
        while last > self.pointer.end:
            self.pointer = self.slots[self.slots.index(self.pointer) + 1]
        for slot in [slot for slot in self.slots if slot.begin <= last]:
            self._take(slot, last, nodes)

    def place(self, job: OarJob) -> tuple[int, list[int]]:
        """Take the first nodes of the earliest slot from which on enough of the same ones are free; return its begin and the nodes."""
        length = job.believed + self.security
        for slot in self.slots:
            last = slot.begin + length - 1
            during = [other for other in self.slots if slot.begin <= other.begin <= last]
            free = job.may.intersection(*(other.free for other in during))
            if len(free) >= job.need:
                break
        nodes = sorted(free)[: job.need]
        for other in during:
            self._take(other, last, nodes)
        return slot.begin, nodes

    def _take(self, slot: Slot, last: int, nodes: Sequence[int]) -> None:
        """Take nodes out of a slot until `last`; one that ends later is divided."""
        if last < slot.end:
            self.slots.insert(self.slots.index(slot) + 1, Slot(last + 1, slot.end, set(slot.free)))
            slot.end = last
        slot.free.difference_update(nodes)


class OarReference:
    """A simulation of OAR's scheduling; `step` it to its end, then read `jobs` and `slots`."""

    def __init__(self, problem: Problem):
        machine, demands, settings = problem.machine, problem.demands, problem.settings
        assert isinstance(machine, Nodes)
        assert isinstance(demands, NodeDemands)
        assert isinstance(settings, OarSettings)
        self.machine, self.settings, self.takes = machine, settings, settings.latencies
        self.jobs = []
        for k, (submit, runtime, believed, procs, after, think) in enumerate(problem.rows()):
            job = OarJob(k, submit, runtime, believed, procs, int(demands.nodes[k]))
            job.may = frozenset(machine.partitions[int(demands.partition[k])].tolist())
            job.noticed, job.phase = int(settings.noticed[k]), int(settings.phase[k])
            job.waits_for, job.after, job.think = set(demands.after[k]) | {after} - {-1}, after, think
            self.jobs.append(job)
        self.since = demands.since.tolist()
        self.waiting: list[OarJob] = []
        self.running: list[OarJob] = []
        self.events: list[tuple[int, int, int]] = []
        """When (ms) what happens: 0 a submission is noticed, 1 an end, 2 a launch; and the job."""
        self.time, self.now = 0, -NEVER
        self.begun = self.done = False
        self.again = False
        """Something happened after the states of nodes were brought up to date."""

    def _begin(self) -> None:
        """Give the jobs that run at first their nodes, in order of their starts; the others are submissions to come."""
        for job in sorted((job for job in self.jobs if self.since[job.index] < NEVER), key=lambda job: (self.since[job.index], job.index)):
            free = sorted(job.may - {n for other in self.running for n in other.nodes})
            if len(free) < job.need:
                raise WorkloadError(f"there is no room for job number {job.index + 1}, which runs at first")
            self._start(job, self.since[job.index], free[: job.need], -NEVER)
        for job in self.jobs:
            if self.since[job.index] == NEVER and not job.waits_for:
                self.events.append((1000 * job.submit + job.noticed, 0, job.index))
        self.time = min((time for time, _, _ in self.events), default=0)

    def step(self, until: float = math.inf) -> bool:
        """Make the next step and the pass after it; return False if there is none, or it reads a second later than `until`."""
        if not self.begun:
            self._begin()
            self.begun = True
        begin = self.time
        if not self.again:
            times = [time for time, _, _ in self.events]
            if self.waiting and self.takes.period:
                times.append(self.time + self.takes.period)
            left = 0 if times else sum(not job.nodes for job in self.jobs)
            self.done = not times and not left
            if left and until == math.inf:
                raise EngineError(f"{left} jobs never start")
            if not times:
                return False
            begin = max(self.time, min(times))
        if self._second_read(begin + self.takes.step) > until:
            return False
        self.time = begin
        self._process_events()
        self.time += self.takes.step
        self.again = self._process_events(self.takes.clock)
        self._pass()
        return True

    def _second_read(self, time: int) -> int:
        """Return the second that a pass reads which begins then (ms): in it jobs start."""
        return int(max((time + self.takes.clock) // 1000, self.now) + self.takes.tick)

    def _process_events(self, later: int = 0) -> bool:
        """Process the events until `later` ms from now; return whether there were any."""
        happened = False
        while due := [event for event in self.events if event[0] <= self.time + later]:
            happened = True
            self.events.remove(min(due))
            _, what, k = min(due)
            if what == 0:
                self.waiting.append(self.jobs[k])
            elif what == 1:
                self.running.remove(self.jobs[k])
                self._release(self.jobs[k])
        return happened

    def _release(self, job: OarJob) -> None:
        """End a job, and submit the jobs that waited for it alone."""
        end = job.start + job.runtime
        for other in release_followers(self.jobs, job.index, end):
            self.events.append((1000 * other.submit + other.noticed, 0, other.index))

    def _pass(self) -> None:
        self.now = self._second_read(self.time)
        if not self.waiting:
            self.time += self.takes.idle
            return
        plan = SlotPlan(self.now, range(len(self.machine.procs)), self.settings.security_time, self.settings.bug)
        for job in sorted(self.running, key=lambda job: (job.start, job.index)):
            plan.insert(job.start, job.believed, job.nodes)
        starting, ahead = [], False
        for job in sorted(self.waiting, key=lambda job: (job.submit, job.index)):
            begin, nodes = plan.place(job)
            if begin == self.now:
                job.kind = BACKFILLED if ahead else IMMEDIATE if job.reserved_start < 0 else RESERVED
                starting.append((job, nodes))
                continue
            ahead = True
            if job.reserved_start < 0:
                job.reserved_start = begin
        self.time += self.takes.busy + self.takes.start * len(starting)
        for job, nodes in starting:
            self.waiting.remove(job)
            self._start(job, self.now, nodes, self.time + self.takes.launch)
            self.events.append((self.time + self.takes.launch, 2, job.index))

    def _start(self, job: OarJob, start: int, nodes: list[int], launched: int) -> None:
        """Run a job; its end is noticed once it is launched."""
        job.start, job.nodes = start, nodes
        self.running.append(job)
        end = 1000 * (start + job.runtime) + job.phase + self.takes.end
        self.events.append((max(end, launched), 1, job.index))

    @property
    def slots(self) -> tuple[Array, Array, Array, Array]:
        """Return what jobs had of nodes: job, node, processors, second resource; in order of job and node."""
        rows = sorted((job.index, n, int(self.machine.procs[n]), 0) for job in self.jobs for n in job.nodes)
        job, node, procs, second = np.array(rows, np.int64).reshape(len(rows), 4).T
        return job, node, procs, second
