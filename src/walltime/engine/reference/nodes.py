"""The reference engine for Slurm's scheduling: the rules of kernel/nodes/loop.py in plain Python, slow and independent of it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from walltime.engine.problem import NEVER, NodeDemands, Nodes, Problem
from walltime.engine.reference.plain import BACKFILLED, IMMEDIATE, RESERVED, release_followers, within_limits
from walltime.engine.reference.shares import FairShares
from walltime.errors import EngineError, WorkloadError

Array = np.ndarray
FIRST_PRIORITY = 4_294_901_760
Free = dict[int, tuple[int, int]]
"""Processors and second resource by node."""


@dataclass(eq=False)
class SlurmJob:
    """A job that needs `fewest` nodes with `each` units of the second resource; `whole`: it gets whole nodes."""

    index: int
    submit: int
    runtime: int
    believed: int
    procs: int
    after: int
    think: int
    second: int
    fewest: int
    whole: int
    each: int
    partition: int
    time_min: int
    user: int
    association: int
    merit: float
    since: int
    tier: int
    waits_for: set[int]
    limits: list[int]
    arrival: int = -1
    priority: int = 0
    start: int = -1
    ticket: int = -1
    limit: int = 0
    kind: int = IMMEDIATE
    reserved_start: int = -1
    planned: int = 0
    given: Free = field(default_factory=dict)

    @property
    def end(self) -> int:
        """Return when it ends, once it has started."""
        return self.start + self.runtime

    @property
    def expected_end(self) -> int:
        """Return when it was planned to end when it started."""
        return self.planned


@dataclass
class Block:
    """Nodes that are reserved in [begin, end)."""

    nodes: set[int]
    begin: int
    end: int


class SlurmReference:
    """A simulation of Slurm's scheduling; `step` it to its end, then read `jobs` and `slots`."""

    def __init__(self, problem: Problem):
        machine, demands, settings = problem.machine, problem.demands, problem.settings
        assert isinstance(machine, Nodes)
        assert isinstance(demands, NodeDemands)
        assert problem.shares is not None
        self.machine, self.settings, self.kill = machine, settings, problem.kill
        self.capacity = list(zip(machine.procs.tolist(), machine.second.tolist(), strict=True))
        self.partitions = [own.tolist() for own in machine.partitions]
        self.jobs: list[SlurmJob] = []
        new: Any = SlurmJob
        names = ("second", "nodes", "whole", "each", "partition", "time_min", "user", "association", "merit", "since")
        columns = zip(*(getattr(demands, name).tolist() for name in names), strict=True)
        for k, (row, needs) in enumerate(zip(problem.rows(), columns, strict=True)):
            tier, waits_for = machine.tiers[demands.partition[k]], set(demands.after[k]) | {row[4]} - {-1}
            job = new(k, *row, *needs, tier=tier, waits_for=waits_for, limits=list(demands.limits[k]))
            job.time_min = job.time_min if job.time_min < job.believed else 0
            self.jobs.append(job)
        self.now = 0
        self.waiting: list[SlurmJob] = []
        self.running: list[SlurmJob] = []
        self.coming: set[int] | None = None  # before the first event
        self.done = False
        self.shares = FairShares(problem.shares, settings) if settings.multifactor else None
        self.changes = sorted({t for _, begin, end, known in machine.outages for t in (min(known, begin), begin, end) if t < NEVER})
        self._arrived = self._started = 0
        self._news = self._news_for_all = False
        self._next_sum = settings["priority_calc_period"]

    def _place_first(self) -> None:
        """Give the jobs that run at first their nodes, in order of their starts."""
        for job in sorted((job for job in self.jobs if job.since < NEVER), key=lambda job: (job.since, job.index)):
            free = self._usable(job, 0, 1, [], set())
            if not self._enough(job, free):
                raise WorkloadError(f"there is no room for job number {job.index + 1}, which runs at first", "overfull_machine")
            self._run(job, free, job.since, job.believed)

    def step(self, until: float = math.inf) -> bool:
        """Handle the next event and make the passes after it; return False if there is none, or it is later than `until`, s."""
        if self.coming is None:
            self.coming = {job.index for job in self.jobs if job.since == NEVER}
            self._place_first()
        coming = self.coming
        when = self._next_event(coming)
        self.done = when is None and not self.waiting and not coming
        if when is None and not self.done and until == math.inf:
            raise EngineError(f"{len(self.waiting) + len(coming)} jobs never start")
        if when is None or when > until:
            return False
        self.now = when
        while self.shares is not None and self._next_sum <= self.now:
            self._compute_priorities()
        ending = sorted((job for job in self.running if job.end == self.now), key=lambda job: job.ticket)
        for job in ending:
            self.running.remove(job)
            release_followers(self.jobs, job.index, self.now)
        gone, came = bool(ending), False
        while self.changes and self.changes[0] == self.now:
            self.changes.pop(0)
            gone = True
        for job in [self.jobs[k] for k in sorted(coming)]:
            if not job.waits_for and job.submit == self.now:
                coming.remove(job.index)
                came = True
                job.arrival = self._arrived
                self._arrived += 1
                job.priority = self._priority(job, self.now)
                self.waiting.append(job)
        self._sort()
        if came or gone:
            self._news = self._news_for_all = True
        if self.waiting:
            self._schedule(came, gone)
        return True

    def _next_event(self, coming: set[int]) -> int | None:
        s = self.settings
        times = [job.end for job in self.running]
        times += [self.jobs[k].submit for k in coming if not self.jobs[k].waits_for]
        if self.changes and (times or self.waiting):
            times.append(self.changes[0])
        if self.waiting:
            if self.shares is not None and times:
                times.append(self._next_sum)
            news = self._news or any(job.planned <= self.now for job in self.running)
            if not any(job.planned <= self.now for job in self.running):
                times += [job.planned for job in self.running]
            if news and s["scheduler_type"] == "backfill":
                times.append((self.now // s["bf_interval"] + 1) * s["bf_interval"])
            if self._news_for_all and s["sched_interval"] > 0:
                times.append((self.now // s["sched_interval"] + 1) * s["sched_interval"])
        return min(times) if times else None

    def _schedule(self, came: bool, gone: bool) -> None:
        s = self.settings
        full = s["sched_interval"] > 0 and self.now % s["sched_interval"] == 0 and self._news_for_all
        if full or gone or (came and not s["defer"]):
            self._main_pass(len(self.waiting) if full else s["default_queue_depth"])
            if full:
                self._news_for_all = False
        if any(job.planned <= self.now for job in self.running):
            self._news = True
        if s["scheduler_type"] == "backfill" and self._news and self.now % s["bf_interval"] == 0:
            self._news = False
            self._cycle()
        if any(self.now - job.submit < s["bf_min_age_reserve"] for job in self.waiting):
            self._news = True

    def _priority(self, job: SlurmJob, when: int) -> int:
        s = self.settings
        if s["priority_type"] == "basic":
            return FIRST_PRIORITY - job.arrival
        if self.shares is None:
            return 1
        age = min(1.0, (when - job.submit) / max(1, s["priority_max_age"]))
        share = self.shares.factor[job.association]
        return max(1, int(s["priority_weight_age"] * age + s["priority_weight_fairshare"] * share + job.merit))

    def _compute_priorities(self) -> None:
        assert self.shares is not None
        begin, until = self._next_sum - self.settings["priority_calc_period"], self._next_sum
        used: Counter[int] = Counter()
        for job in self.jobs:
            if job.start >= 0 or job in self.running or job.since < NEVER:
                used[job.association] += job.procs * max(0, min(until, job.end) - max(begin, job.start))
        self.shares.add(used)
        before = list(self.waiting)
        for job in self.waiting:
            old, job.priority = job.priority, self._priority(job, until)
            if self.settings["bf_min_prio_reserve"] > 0 and job.priority != old:
                self._news = self._news_for_all = True
        self._sort()
        if self.waiting != before:
            self._news = self._news_for_all = True
        self._next_sum += self.settings["priority_calc_period"]

    def _sort(self) -> None:
        self.waiting.sort(key=lambda job: (-job.tier, -job.priority, job.arrival))

    def _outages(self) -> list[Block]:
        """Return the outages that are known and not over."""
        return [Block(set(own), begin, end) for own, begin, end, known in self.machine.outages if min(known, begin) <= self.now < end]

    def _main_pass(self, depth: int) -> None:
        closed_partitions: set[int] = set()
        closed: set[int] = set()
        tested: Counter[int] = Counter()
        most = self.settings["partition_job_depth"]
        for job in list(self.waiting)[:depth]:
            if job.partition in closed_partitions:
                continue
            tested[job.partition] += 1
            if (most and tested[job.partition] > most) or not within_limits(job, self.running, self.machine.limits):
                continue
            free = self._usable(job, self.now, job.believed, self._outages(), closed)
            if self._enough(job, free):
                job.kind = IMMEDIATE if job.submit == self.now else RESERVED
                self._run(job, free, self.now, job.believed)
                self._news = True
            elif self._may_reserve(job):
                closed_partitions.add(job.partition)
                closed |= set(self.partitions[job.partition])

    def _may_reserve(self, job: SlurmJob) -> bool:
        s = self.settings
        return job.priority >= s["bf_min_prio_reserve"] and self.now - job.submit >= s["bf_min_age_reserve"]

    def _cycle(self) -> None:
        s = self.settings
        blocks = self._outages()
        tested = started = 0
        users: Counter[int] = Counter()
        parts: Counter[int] = Counter()
        both: Counter[tuple[int, int]] = Counter()
        reserved: Counter[int] = Counter()
        for job in list(self.waiting):
            if not within_limits(job, self.running, self.machine.limits):
                continue
            if tested == s["bf_max_job_test"]:
                break
            tested += 1
            counts = (users[job.user], parts[job.partition], both[job.user, job.partition])
            most = (s["bf_max_job_user"], s["bf_max_job_part"], s["bf_max_job_user_part"])
            if any(a >= b > 0 for a, b in zip(counts, most, strict=True)):
                continue
            users[job.user] += 1
            parts[job.partition] += 1
            both[job.user, job.partition] += 1
            length = job.time_min or job.believed
            may_reserve = self._may_reserve(job) and not reserved[job.partition] >= s["bf_job_part_count_reserve"] > 0
            begin, free = self._first_hole(job, length, blocks, self.now + 60 * s["bf_window"] if may_reserve else self.now)
            if begin is None:
                continue
            if begin > self.now:
                reserved[job.partition] += 1
                job.reserved_start = begin if job.reserved_start < 0 else job.reserved_start
                step = s["bf_resolution"]
                nodes = set(self._choose(job, free))
                blocks.append(Block(nodes, max(begin // step * step, self.now), math.ceil((begin + length) / step) * step))
                continue
            job.kind = BACKFILLED
            self._run(job, free, self.now, self._limit(job, set(self._choose(job, free)), blocks))
            self._news = True
            started += 1
            if started == s["bf_max_job_start"]:
                break

    def _limit(self, job: SlurmJob, nodes: set[int], blocks: list[Block]) -> int:
        """Return the limit under which backfill starts a job."""
        if not job.time_min or self.settings["time_min_as_soft_limit"]:
            return job.believed
        ahead = [block.begin - self.now for block in blocks if nodes & block.nodes and block.begin > self.now]
        if not ahead or min(ahead) >= job.believed:
            return job.believed
        return max(job.time_min, min(ahead) // 60 * 60)

    def _first_hole(self, job: SlurmJob, length: int, blocks: list[Block], latest: int) -> tuple[int | None, Free]:
        moments = {self.now} | {self._release(other) for other in self.running} | {block.end for block in blocks}
        for moment in sorted(time for time in moments if self.now <= time <= latest and time < NEVER):
            free = self._usable(job, moment, length, blocks, set())
            if self._enough(job, free):
                return moment, free
        return None, {}

    def _release(self, job: SlurmJob) -> int:
        """Return when a running job is planned to release its nodes."""
        if job.planned > self.now:
            return job.planned
        left = (job.start + job.limit - self.now) // 2 if self._is_soft(job) else 0
        return self.now + max(1, left)

    def _is_soft(self, job: SlurmJob) -> bool:
        s = self.settings
        return s["time_min_as_soft_limit"] and s["soft_limit_running"] == "half" and job.time_min > 0

    def _usable(self, job: SlurmJob, time: int, length: int, blocks: list[Block], closed: set[int]) -> Free:
        """Return what is free of the nodes of its partition that a job can use from a time on for a length."""
        taken = closed | {n for block in blocks if block.begin < time + length and block.end > time for n in block.nodes}
        usable: Free = {}
        for n in self.partitions[job.partition]:
            if n in taken:
                continue
            procs, second = self.capacity[n]
            for other in self.running:
                if time <= self.now or self._release(other) > time:
                    used = other.given.get(n, (0, 0))
                    procs, second = procs - used[0], second - used[1]
            if second >= job.each and (procs == self.capacity[n][0] if job.whole else procs > 0):
                usable[n] = procs, second
        return usable

    def _enough(self, job: SlurmJob, free: Free) -> bool:
        if len(free) < job.fewest:
            return False
        return bool(job.whole) or (sum(a for a, _ in free.values()) >= job.procs and sum(b for _, b in free.values()) >= job.second)

    def _choose(self, job: SlurmJob, free: Free) -> Free:
        """Choose nodes: best fit on consecutive ones."""
        places = enumerate(self.partitions[job.partition])
        usable = [(place, n) for place, n in places if n in free]
        runs = [[n for _, (_, n) in run] for _, run in groupby(enumerate(usable), key=lambda item: item[1][0] - item[0])]
        left = (job.fewest, job.procs, job.second)
        given: Free = {}

        def size(run: list[int]) -> int:
            return sum(free[n][0] for n in run)

        def suffices(run: list[int]) -> bool:
            if len(run) < left[0]:
                return False
            return bool(job.whole) or (size(run) >= left[1] and sum(free[n][1] for n in run) >= left[2])

        while max(left) > 0:
            best = max(runs, key=size)
            if suffices(best):
                best = min((run for run in runs if suffices(run)), key=size)
            runs.remove(best)
            for n in best:
                procs, second = free[n][0] if job.whole else min(free[n][0], left[1] - max(0, left[0] - 1)), min(free[n][1], left[2])
                if (job.whole and left[0] == 0) or (procs <= 0 and second == 0):
                    continue
                given[n] = procs, second
                left = max(0, left[0] - 1), left[1] - procs, left[2] - second
        return given

    def _run(self, job: SlurmJob, free: Free, start: int, limit: int) -> None:
        job.given, job.start, job.limit, job.ticket = self._choose(job, free), start, limit, self._started
        self._started += 1
        if self.kill and limit < job.believed:
            job.runtime = min(job.runtime, limit)
        job.planned = start + (job.time_min if self._is_soft(job) else limit)
        if job in self.waiting:
            self.waiting.remove(job)
        self.running.append(job)

    @property
    def slots(self) -> tuple[Array, Array, Array, Array]:
        """Return what jobs had of nodes: job, node, processors, second resource; in order of job and node."""
        rows = sorted((job.index, n, procs, second) for job in self.jobs for n, (procs, second) in job.given.items())
        table = np.array(rows, np.int64).reshape(len(rows), 4)
        return table[:, 0], table[:, 1], table[:, 2], table[:, 3]
