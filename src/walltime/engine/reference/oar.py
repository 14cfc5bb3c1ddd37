"""The reference engine for OAR's scheduling: the rules of kernel/nodes/oar.py in plain Python, slow and independent of it.

A set of nodes is an integer whose bits are the nodes.
"""

import math
from bisect import bisect_left, insort
from dataclasses import dataclass
from functools import reduce
from heapq import heappop, heappush
from operator import or_
from typing import Any

import numpy as np

from walltime.engine.machines import NEVER, NodeDemands, Nodes, OarSettings
from walltime.engine.problem import Problem, overfull
from walltime.engine.reference.plain import BACKFILLED, IMMEDIATE, RESERVED, Job, followers_of, release_followers
from walltime.errors import EngineError

Array = np.ndarray
SUBMISSION, END, LAUNCH = range(3)
"""Events: a submission or an end is noticed, or a job is launched."""


@dataclass(eq=False)
class OarJob(Job):
    """A job that gets `need` of the nodes `may`; `noticed` (delay of its submission) and `phase` (delay of its end) in ms."""

    need: int = 0
    may: int = 0
    noticed: int = 0
    phase: int = 0
    since: int = NEVER
    nodes: int = 0
    arrival: Any = None
    """Its key in the queue, submission and number."""


def lowest(nodes: int, count: int) -> int:
    """Return the first `count` of these nodes."""
    rest = nodes
    for _ in range(count):
        rest &= rest - 1
    return nodes & ~rest


class SlotPlan:
    """The free nodes from now on, slot by slot.

    At first all nodes are free; then `insert` running jobs, and `place` waiting ones, in order. Slot k ends `until[k]` s from now, when the
    next one begins. `bug`: whether running jobs are inserted as in OAR of 2016.
    """

    def __init__(self, nodes: int, bug: bool):
        self.until, self.free, self.bug, self.pointer = [NEVER], [nodes], bug, 0

    def insert(self, length: int, nodes: int) -> None:
        """Insert a running job that holds nodes for a length, at least 1 s. Running jobs come in order of start, then number."""
        if self.bug and self.pointer and length <= self.until[self.pointer]:
            self.pointer += length < self.until[0]  # the first slot is divided
            self._take(0, length, nodes)
            return
        self.pointer = bisect_left(self.until, length)
        for k in range(self.pointer + 1):
            self._take(k, length, nodes)

    def place(self, job: OarJob, length: int) -> tuple[int, int]:
        """Take the first nodes of the earliest slot from which enough of the same nodes stay free; return its start and the nodes."""
        for first, begin in enumerate([0, *self.until]):
            last, common = first, self.free[first] & job.may
            while common.bit_count() >= job.need and self.until[last] < begin + length:
                last += 1
                common &= self.free[last]
            if common.bit_count() >= job.need:
                break
        nodes = lowest(common, job.need)
        for k in range(first, last + 1):
            self._take(k, begin + length, nodes)
        return begin, nodes

    def _take(self, k: int, until: int, nodes: int) -> None:
        """Take nodes out of slot k; if it ends later than `until`, it is divided."""
        if until < self.until[k]:
            self.until.insert(k, until)
            self.free.insert(k, self.free[k])
        self.free[k] &= ~nodes


class OarReference:
    """A simulation of OAR's scheduling; `step` it to its end, then read `jobs` and `slots`."""

    def __init__(self, problem: Problem):
        machine, demands, settings = problem.machine, problem.demands, problem.settings
        assert isinstance(machine, Nodes)
        assert isinstance(demands, NodeDemands)
        assert isinstance(settings, OarSettings)
        self.machine, self.settings, self.takes = machine, settings, settings.latencies
        partitions = [sum(1 << node for node in own.tolist()) for own in machine.partitions]
        columns = (demands.nodes, [partitions[k] for k in demands.partition], settings.noticed, settings.phase, demands.since)
        self.jobs = []
        for k, row in enumerate(problem.rows()):
            need, may, noticed, phase, since = (int(column[k]) for column in columns)
            self.jobs.append(OarJob(k, *row, need=need, may=may, noticed=noticed, phase=phase, since=since))
            self.jobs[-1].waits_for.update(demands.after[k])
        self.followers = followers_of(self.jobs)
        self.waiting: list[OarJob] = []  # in order of submission, then number
        self.running: list[OarJob] = []
        self.events: list[tuple[int, int, int]] = []
        """A heap of coming events: when (ms), SUBMISSION, END or LAUNCH, and the job."""
        for job in self.jobs:
            if job.since == NEVER and not job.waits_for:
                heappush(self.events, (1000 * job.submit + job.noticed, SUBMISSION, job.index))
        self.time, self.now, self.last_pass = -NEVER, -NEVER, -NEVER  # ms; s; the second that the last pass has read
        self._started = 0
        self.begun = self.done = False
        self.again = False
        """Whether something has happened since the node states were updated."""

    def used(self) -> int:
        """Return the nodes in use."""
        return reduce(or_, (job.nodes for job in self.running), 0)

    def _place_first(self) -> None:
        self.begun = True
        for job in sorted((job for job in self.jobs if job.since < NEVER), key=lambda job: (job.since, job.index)):
            free = job.may & ~self.used()
            if free.bit_count() < job.need:
                raise overfull(job.index)
            self._start(job, job.since, lowest(free, job.need))

    def step(self, until: float = math.inf) -> bool:
        """Make the next step and the pass after it; return False if there is none, or it reads a second later than `until`."""
        if not self.begun:
            self._place_first()
        begin = self._next_step()
        left = sum(job.ticket < 0 for job in self.jobs) if begin is None else 0
        self.done = begin is None and not left
        if left and until == math.inf:
            raise EngineError(f"{left} jobs never start")
        if begin is None or self._second_read(begin) > until:
            return False
        self.now = self._second_read(begin)
        self._bring_up_to_date(begin)
        if self.waiting:
            self._start_jobs(self._pass())
        return True

    def _next_step(self) -> int | None:
        """Return when the next step begins, ms; None if there is none."""
        if self.again:
            return self.time
        times = [self.events[0][0]] if self.events else []
        if self.takes.period and self._is_waited_for():
            times.append(self.time + self.takes.period)
        return max(self.time, min(times)) if times else None

    def _is_waited_for(self) -> bool:
        """Return whether jobs wait for a periodic pass."""
        return bool(self.waiting)

    def _second_read(self, begin: int) -> int:
        """Return the second that the pass of a step beginning at a time (ms) reads; jobs start in this second."""
        return int(max((begin + self.takes.step + self.takes.clock) // 1000, self.last_pass) + self.takes.tick)

    def _bring_up_to_date(self, begin: int) -> None:
        """Process the events up to the pass of a step that begins at a time (ms)."""
        self.time = begin
        self._process_events(0)
        self.time += self.takes.step
        self.again, self.last_pass = self._process_events(self.takes.clock), self.now
        if not self.waiting:
            self.time += self.takes.idle

    def _process_events(self, later: int) -> bool:
        """Process the events until `later` ms from now; return whether there were any."""
        happened = False
        while self.events and self.events[0][0] <= self.time + later:
            happened = True
            _, what, k = heappop(self.events)
            job = self.jobs[k]
            if what == SUBMISSION and job.ticket < 0:
                job.arrival = job.submit, k
                insort(self.waiting, job, key=lambda job: job.arrival)
            elif what == END:
                self.running.remove(job)
                for other in release_followers(self.followers, k, job.end):
                    heappush(self.events, (1000 * other.submit + other.noticed, SUBMISSION, other.index))
        return happened

    def _pass(self) -> list[tuple[OarJob, int]]:
        """Plan all jobs from scratch; return those that start now, with their nodes."""
        plan, security = SlotPlan((1 << len(self.machine.procs)) - 1, self.settings.bug), self.settings.security_time
        for job in sorted(self.running, key=lambda job: (job.start, job.index)):
            plan.insert(max(job.expected_end + security - self.now, 1), job.nodes)  # an overdue job counts as if it ended now
        starting, ahead = [], False
        for job in self.waiting:
            begin, nodes = plan.place(job, job.planned + security)
            if begin == 0:
                job.kind = BACKFILLED if ahead else IMMEDIATE if job.reserved_start < 0 else RESERVED
                starting.append((job, nodes))
                continue
            ahead = True
            job.note_reservation(self.now + begin)
        return starting

    def _start_jobs(self, starting: list[tuple[OarJob, int]]) -> None:
        """Start jobs on their nodes; they are launched after the pass."""
        self.time += self.takes.busy + self.takes.start * len(starting)
        for job, nodes in starting:
            self.waiting.remove(job)
            self._start(job, self.now, nodes, self.time + self.takes.launch)

    def _start(self, job: OarJob, start: int, nodes: int, launched: int = -NEVER) -> None:
        """Run a job; its end is noticed at `launched` (ms) at the earliest, when its launch is complete."""
        job.start, job.nodes, job.ticket = start, nodes, self._started
        self._started += 1
        self.running.append(job)
        heappush(self.events, (max(1000 * job.end + job.phase + self.takes.end, launched), END, job.index))
        if launched > -NEVER:
            heappush(self.events, (launched, LAUNCH, job.index))

    @property
    def slots(self) -> tuple[Array, Array, Array, Array]:
        """Return the jobs' shares of nodes: job, node, processors, second resource; in order of job and node."""
        pairs = [(job.index, n) for job in self.jobs for n in range(job.nodes.bit_length()) if job.nodes >> n & 1]
        number, node = np.array(pairs, np.int64).reshape(-1, 2).T
        return number, node, self.machine.procs[node], np.zeros(len(node), np.int64)
