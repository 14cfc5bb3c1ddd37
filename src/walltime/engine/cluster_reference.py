"""The reference engine for machines of several pools: the rules of cluster.py again, in plain Python, slow and independent of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from walltime.engine.plain import BACKFILLED, IMMEDIATE, RESERVED
from walltime.errors import EngineError, PolicyError, WorkloadError
from walltime.policy import FCFS, Backfilling, Conservative, Easy, Hybrid, NoBackfilling, Order, Policy, Wfp
from walltime.policy.known import Known

Amount = tuple[int, int]
"""Processors, and the second resource."""


@dataclass(eq=False)
class ClusterJob:
    """A job; `pools` are those of its partition, in the order in which they are taken."""

    index: int
    submit: int
    runtime: int
    believed: int
    need: Amount
    pools: Sequence[int]
    tier: int
    limits: Sequence[int]
    waits_for: set[int]
    since: int | None
    arrival: int = -1
    start: int | None = None
    ticket: int = -1
    kind: int = IMMEDIATE
    reserved_start: int = -1
    given: dict[int, Amount] = field(default_factory=dict)


@dataclass
class Shortage:
    """Capacity of a pool that is missing in [begin, end), and known from `known` on."""

    pool: int
    procs: int
    second: int
    begin: int
    end: int
    known: int


class ClusterReference:
    """One simulation on a machine of several pools; `run` it, then read `jobs`. Arguments as those of ClusterSimulation, as lists."""

    def __init__(
        self,
        submit: Sequence[int],
        runtime: Sequence[int],
        believed: Sequence[int],
        procs: Sequence[int],
        second: Sequence[int],
        partition: Sequence[int],
        since: Sequence[int | None],
        after: Sequence[Sequence[int]],
        limits_of: Sequence[Sequence[int]],
        capacity: Sequence[Amount],
        partitions: Sequence[Sequence[int]],
        tiers: Sequence[int],
        shortages: Sequence[Shortage],
        limits: Sequence[tuple[int, int, int]],
        policy: Policy,
        known: Known | None = None,
    ):
        self.jobs = [
            ClusterJob(
                k,
                submit[k],
                runtime[k],
                believed[k],
                (procs[k], second[k]),
                partitions[partition[k]],
                tiers[partition[k]],
                limits_of[k],
                set(after[k]),
                since[k],
            )
            for k in range(len(submit))
        ]
        self.capacity, self.shortages, self.limits = capacity, shortages, limits
        self.policy, self.known = policy, known or Known({})
        self.now = 0
        self.waiting: list[ClusterJob] = []
        self.running: list[ClusterJob] = []
        self._arrived = self._started = 0
        match policy:
            case NoBackfilling():
                self.depth: float = 0
                self.backfills = False
            case Easy():
                self.depth, self.backfills = 1, True
            case Hybrid(depth=depth):
                self.depth, self.backfills = depth, True
            case Conservative(variant="scratch"):
                self.depth, self.backfills = math.inf, True
            case _:
                raise PolicyError(f"{policy.label} does not run on a machine of several pools")

    # ------------------------------------------------------------------ events

    def run(self) -> None:
        """Simulate until every job has started and ended."""
        for job in sorted((job for job in self.jobs if job.since is not None), key=lambda job: (job.since, job.index)):
            free = {p: self._free_now(p, before_first=True) for p in job.pools}
            given = self._share(job, free)
            if given is None:
                raise WorkloadError(f"there is no room for job number {job.index + 1}, which runs at first")
            job.given, job.start, job.ticket = given, job.since, self._started
            self._started += 1
            self.running.append(job)
        coming = {job.index for job in self.jobs if job.since is None}
        while True:
            times = [self._end(job) for job in self.running]
            times += [self.jobs[k].submit for k in coming if not self.jobs[k].waits_for]
            changes = [time for s in self.shortages for time in (min(s.known, s.begin), s.begin, s.end)]
            if times or self.waiting:
                times += [time for time in changes if time > self.now or (not self._seen and time >= min([*times, *changes]))]
            if not times:
                break
            self.now, self._seen = min(times), True
            for job in sorted((job for job in self.running if self._end(job) == self.now), key=lambda job: job.ticket):
                self.running.remove(job)
                for other in self.jobs:
                    if job.index in other.waits_for:
                        other.waits_for.remove(job.index)
                        if not other.waits_for:
                            other.submit = max(other.submit, self.now)
            for k in sorted(coming):
                if not self.jobs[k].waits_for and self.jobs[k].submit == self.now:
                    coming.remove(k)
                    self.jobs[k].arrival = self._arrived
                    self._arrived += 1
                    self.waiting.append(self.jobs[k])
            self._pass()
        if self.waiting or coming:
            raise EngineError(f"{len(self.waiting) + len(coming)} jobs wait for ever")

    _seen = False

    def _end(self, job: ClusterJob) -> int:
        assert job.start is not None
        return job.start + job.runtime

    def _expected_end(self, job: ClusterJob) -> int:
        """One that is overdue is expected to end in a second."""
        assert job.start is not None
        return max(job.start + job.believed, self.now + 1)

    # ------------------------------------------------------------------ capacity

    def _free_now(self, pool: int, before_first: bool = False) -> Amount:
        """What is free of a pool; below 0 where capacity has gone that is in use."""
        procs, second = self.capacity[pool]
        for s in self.shortages:
            if s.pool == pool and not before_first and s.begin <= self.now < s.end:
                procs, second = procs - s.procs, second - s.second
        for job in self.running:
            used = job.given.get(pool, (0, 0))
            procs, second = procs - used[0], second - used[1]
        return procs, second

    def _free_at(self, pool: int, time: int, planned: Sequence[tuple[ClusterJob, int, dict[int, Amount]]]) -> Amount:
        """What is expected to be free of a pool at a time from now on."""
        procs, second = self._free_now(pool)
        if time > self.now:
            for job in self.running:
                if self._expected_end(job) <= time:
                    used = job.given.get(pool, (0, 0))
                    procs, second = procs + used[0], second + used[1]
            for s in self.shortages:
                if s.pool != pool:
                    continue
                if s.begin <= self.now < s.end <= time:
                    procs, second = procs + s.procs, second + s.second
                elif s.known <= self.now < s.begin <= time < s.end:
                    procs, second = procs - s.procs, second - s.second
        for job, begin, given in planned:
            if begin <= time < begin + job.believed:
                used = given.get(pool, (0, 0))
                procs, second = procs - used[0], second - used[1]
        return procs, second

    def _share(self, job: ClusterJob, free: dict[int, Amount]) -> dict[int, Amount] | None:
        """What a job takes of each of its pools, in their order; None if there is not enough."""
        procs, second = job.need
        given = {}
        for pool in job.pools:
            if pool in free:
                given[pool] = min(procs, max(free[pool][0], 0)), min(second, max(free[pool][1], 0))
                procs, second = procs - given[pool][0], second - given[pool][1]
        return given if procs == 0 and second == 0 else None

    def _fits(
        self, job: ClusterJob, begin: int, planned: Sequence[tuple[ClusterJob, int, dict[int, Amount]]], closed: set[int]
    ) -> dict[int, Amount] | None:
        """What a job would take of its pools if it began then; None if it does not fit for all the time that it is planned for."""
        moments = [begin, *(time for time in self._moments(planned) if begin < time < begin + job.believed)]
        least = {}
        for pool in job.pools:
            if pool not in closed:
                amounts = [self._free_at(pool, time, planned) for time in moments]
                least[pool] = min(max(a, 0) for a, _ in amounts), min(max(b, 0) for _, b in amounts)
        return self._share(job, least)

    def _moments(self, planned: Sequence[tuple[ClusterJob, int, dict[int, Amount]]]) -> list[int]:
        """When what is expected to be free changes."""
        times = {self._expected_end(job) for job in self.running}
        times |= {time for s in self.shortages if s.known <= self.now or s.begin <= self.now for time in (s.begin, s.end)}
        times |= {time for job, begin, _ in planned for time in (begin, begin + job.believed)}
        return sorted(time for time in times if time > self.now)

    # ---------------------------------------------------------------- policies

    def _pass(self) -> None:
        """Consider the waiting jobs in order; see the rules in cluster.py."""
        queue = self._in_order(self.waiting, self.policy.order, tiers=True)
        own = self.policy.backfill_order if isinstance(self.policy, Backfilling) else None
        in_order = own is None or own == self.policy.order
        planned: list[tuple[ClusterJob, int, dict[int, Amount]]] = []
        reservations = dict.fromkeys(range(len(self.capacity)), 0)
        blocked: set[int] = set()
        closed: set[int] = set()
        later: list[ClusterJob] = []
        for job in queue:
            if not self._within_limits(job):
                continue
            reserves = all(reservations[pool] < self.depth for pool in job.pools)
            given = None
            if reserves or not self.backfills or in_order or not blocked & set(job.pools):
                given = self._fits(job, self.now, planned, closed)
            else:
                later.append(job)
            if given is not None:
                if reserves and self.depth > 1 and job.reserved_start < 0:
                    job.reserved_start = self.now
                self._start(job, given, planned, blocked)
                continue
            if reserves:
                for begin in self._moments(planned):
                    given = self._fits(job, begin, planned, closed)
                    if given is not None:
                        planned.append((job, begin, given))
                        if job.reserved_start < 0:
                            job.reserved_start = begin
                        break
            for pool in job.pools:
                blocked.add(pool)
                if reserves:
                    reservations[pool] += 1
                if not self.backfills:
                    closed.add(pool)
        for job in self._in_order(later, own or self.policy.order):
            given = self._fits(job, self.now, planned, closed) if self._within_limits(job) else None
            if given is not None:
                self._start(job, given, planned, blocked)

    def _start(
        self, job: ClusterJob, given: dict[int, Amount], planned: list[tuple[ClusterJob, int, dict[int, Amount]]], blocked: set[int]
    ) -> None:
        job.start, job.given, job.ticket = self.now, given, self._started
        self._started += 1
        job.kind = BACKFILLED if blocked & set(job.pools) else IMMEDIATE if job.submit == self.now else RESERVED
        self.waiting.remove(job)
        self.running.append(job)

    def _within_limits(self, job: ClusterJob) -> bool:
        for k in job.limits:
            group = [other for other in self.running if k in other.limits] + [job]
            used = len(group), sum(other.need[0] for other in group), sum(other.need[1] for other in group)
            if any(a > b for a, b in zip(used, self.limits[k], strict=True)):
                return False
        return True

    def _in_order(self, jobs: Sequence[ClusterJob], order: Order, tiers: bool = False) -> list[ClusterJob]:
        """By tier, if wanted; then the highest score first, ties by arrival."""
        return sorted(jobs, key=lambda job: (-job.tier if tiers else 0, 0 if order == FCFS else -self._score(job, order), job.arrival))

    def _score(self, job: ClusterJob, order: Order) -> float:
        if isinstance(order, Wfp) and order.threshold:
            raise PolicyError("a threshold is not known on a machine of several pools")
        others = {name: self.known.columns[name][job.index] for name in order.columns if name in self.known.columns}
        if order.reads_calendar:
            if self.known.calendar is None:
                raise order.without_calendar()
            local = self.known.calendar.local(self.now)
            others |= {"hour": local.hour, "weekday": local.weekday()}
        value = order.score(self.now - job.submit, job.believed, job.need[0], job.submit, **others)
        return -math.inf if math.isnan(value) else value
