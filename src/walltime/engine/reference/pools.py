"""The reference engine for machines of several pools: the rules of kernel/pools/loop.py again, in plain Python, slow and independent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from walltime.engine.reference.plain import BACKFILLED, IMMEDIATE, RESERVED
from walltime.engine.reference.predictions import Predictions, corrected_length
from walltime.errors import EngineError, PolicyError, WorkloadError
from walltime.policy import FCFS, Backfilling, Conservative, Easy, Hybrid, NoBackfilling, Order, Policy, Wfp
from walltime.policy.log_view import LogView

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
    after: int = -1
    think: int = 0
    arrival: int = -1
    start: int | None = None
    ticket: int = -1
    kind: int = IMMEDIATE
    reserved_start: int = -1
    reservation: int | None = None
    given: dict[int, Amount] = field(default_factory=dict)
    predicted: int = -1
    basis: int = 0
    corrections: int = 0

    def __post_init__(self) -> None:
        self.estimate = self.order_length = self.run_length = self.believed


Place = tuple[ClusterJob, int, dict[int, Amount]]
"""A job, when it is planned to begin, and what it takes of each pool."""


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
        waits_for: Sequence[Sequence[int]],
        limits_of: Sequence[Sequence[int]],
        capacity: Sequence[Amount],
        partitions: Sequence[Sequence[int]],
        tiers: Sequence[int],
        shortages: Sequence[Shortage],
        limits: Sequence[tuple[int, int, int]],
        policy: Policy,
        known: LogView | None = None,
        predictions: Predictions | None = None,
        after: Sequence[int] | None = None,
        think: Sequence[int] | None = None,
    ):
        self._first = submit[0] if len(submit) else 0
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
                set(waits_for[k]),
                since[k],
            )
            for k in range(len(submit))
        ]
        if after is not None and think is not None:
            for job in self.jobs:
                job.after, job.think = after[job.index], think[job.index]
                job.waits_for |= {job.after} - {-1}
        self.capacity, self.shortages, self.limits = capacity, shortages, limits
        self.policy, self.known = policy, known or LogView({})
        self.predictions = predictions
        self.now = 0
        self.ended_early = self.void = self.overdue = False
        self.waiting: list[ClusterJob] = []
        self._planned_now: list[ClusterJob] = []  # started in this pass
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
            case Conservative(compression="once"):
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
            times += [job.start + job.run_length for job in self.running if job.start is not None and self._can_be_corrected(job)]
            times += [job.reservation for job in self.waiting if job.reservation is not None] if not self.overdue else []
            changes = [time for s in self.shortages for time in (min(s.known, s.begin), s.begin, s.end)]
            if times or self.waiting:
                times += [time for time in changes if time > self.now or (not self._seen and time >= min([*times, *changes]))]
            if not times:
                break
            first, self.now, self._seen = not self._seen, min(times), True
            if first:
                for job in [job for job in self.jobs if job.start is not None]:
                    self._predict(job)
                    if self.predictions is not None:
                        self.predictions.history.started(job.index, job.submit, max(job.start or 0, 0))
            for job in sorted((job for job in self.running if self._end(job) == self.now), key=lambda job: job.ticket):
                self.running.remove(job)
                assert job.start is not None
                self.ended_early = self.ended_early or self.now < job.start + job.run_length
                if self.predictions is not None:
                    end = max(self.now, 0)
                    self.predictions.history.observe(job.index, job.submit, end - job.runtime, end)
                for other in self.jobs:
                    if job.index in other.waits_for:
                        other.waits_for.remove(job.index)
                        following = other.after == job.index
                        other.submit = max(self.now + other.think, 0) if following else max(other.submit, self.now)
            self._correct_expired()
            self.void = self.void or any(
                (s.known < s.begin and s.known == self.now) or (s.known >= s.begin and s.begin == self.now) for s in self.shortages
            )
            for k in sorted(coming):
                if not self.jobs[k].waits_for and self.jobs[k].submit == self.now:
                    coming.remove(k)
                    self.jobs[k].arrival = self._arrived
                    self._arrived += 1
                    self.waiting.append(self.jobs[k])
                    self._predict(self.jobs[k])
            if self.predictions is not None and self.predictions.again:
                for job in self.waiting:
                    planned = job.believed
                    self._predict(job)
                    self.void = self.void or job.believed != planned
            if isinstance(self.policy, Conservative) and self.policy.variant == "compress":
                while self._keep_reservations():
                    pass
            else:
                while self._pass():
                    pass
        if self.waiting or coming:
            raise EngineError(f"{len(self.waiting) + len(coming)} jobs wait for ever")

    _seen = False

    def _end(self, job: ClusterJob) -> int:
        assert job.start is not None
        return job.start + job.runtime

    def _expected_end(self, job: ClusterJob) -> int:
        """One that is overdue is expected to end in a second; one that starts in this pass, when it was planned to."""
        assert job.start is not None
        length = job.believed if job in self._planned_now else job.run_length
        return max(job.start + length, self.now + 1)

    # ------------------------------------------------------------- predictions

    def _predict(self, job: ClusterJob) -> None:
        """Predict how long a job will run, and believe it where that is wanted."""
        if self.predictions is None:
            return
        belief = self.predictions.belief
        job.predicted, job.basis = self.predictions.history.predict(job.index, job.submit, max(self.now, 0))
        job.order_length = job.predicted if belief.order else job.estimate
        job.believed = job.predicted if belief.own else job.estimate
        job.run_length = job.predicted if belief.running else job.estimate

    def _can_be_corrected(self, job: ClusterJob) -> bool:
        if self.predictions is None or self.predictions.correction.kind == "none":
            return False
        return self.predictions.belief.running and job.run_length < job.estimate

    def _correct_expired(self) -> None:
        """Expect more of the running jobs that have outlived what was expected of them."""
        for job in self.running:
            assert job.start is not None
            while self._can_be_corrected(job) and job.start + job.run_length <= self.now:
                assert self.predictions is not None
                job.run_length = corrected_length(job, self.predictions.correction, self.now - job.start)
                job.corrections += 1
                self.void = True

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

    def _free_at(self, pool: int, time: int, planned: Sequence[Place]) -> Amount:
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

    def _fits(self, job: ClusterJob, begin: int, planned: Sequence[Place], closed: set[int]) -> dict[int, Amount] | None:
        """What a job would take of its pools if it began then; None if it does not fit for all the time that it is planned for."""
        moments = [begin, *(time for time in self._moments(planned) if begin < time < begin + job.believed)]
        least = {}
        for pool in job.pools:
            if pool not in closed:
                amounts = [self._free_at(pool, time, planned) for time in moments]
                least[pool] = min(max(a, 0) for a, _ in amounts), min(max(b, 0) for _, b in amounts)
        return self._share(job, least)

    def _moments(self, planned: Sequence[Place]) -> list[int]:
        """When what is expected to be free changes."""
        times = {self._expected_end(job) for job in self.running}
        times |= {time for s in self.shortages if s.known <= self.now or s.begin <= self.now for time in (s.begin, s.end)}
        times |= {time for job, begin, _ in planned for time in (begin, begin + job.believed)}
        return sorted(time for time in times if time > self.now)

    # ---------------------------------------------------------------- policies

    def _pass(self) -> bool:
        """Consider the waiting jobs in order; see the rules in kernel/pools/loop.py. Returns whether it must be made again."""
        self._planned_now = []
        queue = self._in_order(self.waiting, self.policy.order, tiers=True)
        own = self.policy.backfill_order if isinstance(self.policy, Backfilling) else None
        in_order = own is None or own == self.policy.order
        planned: list[Place] = []
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
                if self._start(job, given, bool(blocked & set(job.pools))):
                    return True
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
                if self._start(job, given, bool(blocked & set(job.pools))):
                    return True
        return False

    def _start(self, job: ClusterJob, given: dict[int, Amount], behind: bool) -> bool:
        """Start a job; returns whether, with at most one reservation, what it leaves is not what was planned."""
        job.start, job.given, job.ticket, job.reservation = self.now, given, self._started, None
        self._started += 1
        job.kind = BACKFILLED if behind else IMMEDIATE if job.submit == self.now else RESERVED
        self.waiting.remove(job)
        self.running.append(job)
        self._planned_now.append(job)
        if self.predictions is not None:
            self.predictions.history.started(job.index, job.submit, job.start)
        return self.depth <= 1 and job.run_length != job.believed

    def _keep_reservations(self) -> bool:
        """Conservative backfilling with compression (mualem01, section 2.1); returns whether the pass must be made again."""
        self._planned_now = []
        overdue = any(job.start is not None and job.start + job.run_length <= self.now for job in self.running)
        afresh = overdue or self.void
        queue = self._in_order(self.waiting, self.policy.order, tiers=True)
        for job in queue:
            if job.reservation is not None and (afresh or not self._within_limits(job)):
                job.reservation = None
                self.ended_early = True
        planned = {job.index: (job, job.reservation, job.given) for job in queue if job.reservation is not None}
        if self.ended_early and not afresh:
            for job in [job for job in queue if job.reservation is not None]:
                old = planned.pop(job.index)[1]
                self._reserve(job, planned)
                assert job.reservation is not None
                assert job.reservation <= old, "compression never moves a job back"
        newcomers = [job for job in queue if job.reservation is None and self._within_limits(job)]
        for job in newcomers if afresh else sorted(newcomers, key=lambda job: job.arrival):
            self._reserve(job, planned)
        self.ended_early = False
        self.overdue = self.void = overdue
        again = False
        for job in sorted((job for job in queue if job.reservation == self.now), key=lambda job: job.arrival):
            if not self._within_limits(job):
                again = True
                continue
            ahead = [other for other in self.waiting if other.reservation is not None and other.arrival < job.arrival]
            self._start(job, job.given, any(set(other.pools) & set(job.pools) for other in ahead))
            self.void = self.void or job.run_length > job.believed
        return again

    def _reserve(self, job: ClusterJob, planned: dict[int, Place]) -> None:
        """Give a job the earliest place that the plan has, if there is one."""
        places = list(planned.values())
        for begin in [self.now, *self._moments(places)]:
            given = self._fits(job, begin, places, set())
            if given is not None:
                job.reservation, job.given = begin, given
                planned[job.index] = (job, begin, given)
                if job.reserved_start < 0:
                    job.reserved_start = begin
                return

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
        others["elapsed"] = job.submit - self._first
        if order.reads_calendar:
            if self.known.calendar is None:
                raise order.without_calendar()
            local = self.known.calendar.local(self.now)
            others |= {"hour": local.hour, "weekday": local.weekday()}
        wait = self.now - job.submit
        return order.standing(order.score(wait, job.order_length, job.need[0], job.submit, **others), wait)
