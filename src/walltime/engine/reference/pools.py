"""The reference engine for machines of several pools: the rules of kernel/pools/loop.py again, in plain Python, slow and independent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from walltime.engine.problem import IDLE, NEVER, Demands, Pools, Problem
from walltime.engine.reference.engine import Engine
from walltime.engine.reference.number import PATIENCE
from walltime.engine.reference.plain import BACKFILLED, IMMEDIATE, RESERVED, Job
from walltime.errors import EngineError, PolicyError, WorkloadError
from walltime.policy.plain import PlainRun, why_stuck

Amount = tuple[int, int]
"""Processors, and the second resource."""


@dataclass(eq=False)
class ClusterJob(Job):
    """A job; `pools` are those of its partition, in the order in which they are taken. `since`: the start of one that runs at first."""

    second: int = 0
    pools: Sequence[int] = ()
    tier: int = 0
    limits: Sequence[int] = ()
    waits_for: set[int] = field(default_factory=set)
    since: int | None = None
    given: dict[int, Amount] = field(default_factory=dict)


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


class ClusterReference(Engine):
    """One simulation on a machine of several pools; `run` it, then read `jobs`."""

    def __init__(self, problem: Problem):
        machine, demands = problem.machine, problem.demands
        assert isinstance(machine, Pools)
        assert isinstance(demands, Demands)
        super().__init__(problem)
        self.jobs = []
        for k, row in enumerate(problem.rows()):
            partition, since = int(demands.partition[k]), int(demands.since[k])
            job = ClusterJob(
                k,
                *row,
                second=int(demands.second[k]),
                pools=machine.partitions[partition],
                tier=machine.tiers[partition],
                limits=demands.limits[k],
                waits_for=set(demands.after[k]) | {row[4]} - {-1},
                since=None if since == NEVER else since,
            )
            self.jobs.append(job)
        self.capacity = [(procs, second) for procs, second in machine.capacity.tolist()]
        self.machine_procs = sum(procs for procs, _ in self.capacity)
        self.shortages, self.limits = [Shortage(*outage) for outage in machine.outages], machine.limits
        self.windows = machine.windows
        self._quiet_from: int | None = None  # since then nothing has been ahead but windows that are the same each week
        self.windows_of = demands.windows
        self.policy = policy = problem.policy
        self.waiting: list[ClusterJob] = []
        self._planned_now: list[ClusterJob] = []  # started in this pass
        self.running: list[ClusterJob] = []
        self.coming: set[int] | None = None  # before the first event
        self.done = False
        self.passes = passes = policy.passes
        self.depth: float = math.inf if passes.depth is None else passes.depth
        self.backfills = passes.backfills
        self._earliest: dict[int, int] = {}  # relaxed: the earliest reservation of each job that has had one in every pass since
        self._own = None if passes.kind != "own" else PlainRun(policy, self.known, self.machine_procs)
        self._wake_ups: set[int] = set()  # times at which a policy in plain Python wants to be asked
        self._woken = 0  # times in a row that nothing but a wake-up happened, and nothing else was ahead

    # ------------------------------------------------------------------ events

    def _place_first(self) -> None:
        """The jobs that run at first get their places, in order of their starts."""
        for since, job in sorted(((job.since, job) for job in self.jobs if job.since is not None), key=lambda one: (one[0], one[1].index)):
            free = {p: self._free_now(p, before_first=True) for p in job.pools}
            given = self._share(job, free)
            if given is None:
                raise WorkloadError(f"there is no room for job number {job.index + 1}, which runs at first")
            job.given, job.start, job.ticket = given, since, self._started
            self._started += 1
            self.running.append(job)

    def run(self) -> None:
        """Simulate until every job has started and ended."""
        while self.step():
            pass

    def step(self, until: float = math.inf) -> bool:
        """Handle the next event and make the pass after it; False if there is none, or it is later than `until`, s."""
        if self.coming is None:
            self.coming = {job.index for job in self.jobs if job.since is None}
            self._place_first()
        coming = self.coming
        times = [job.end for job in self.running]
        times += [self.jobs[k].submit for k in coming if not self.jobs[k].waits_for]
        times += [job.expected_end for job in self.running if self._can_be_corrected(job)]
        times += [job.reservation for job in self.waiting if job.reservation >= 0] if not self.overdue else []
        changes = [time for s in self.shortages for time in (min(s.known, s.begin), s.begin, s.end) if time < NEVER]
        if times or any(time > self.now for time in changes):
            self._quiet_from = None
        elif self._quiet_from is None:
            self._quiet_from = max([self.now, *(hours.settled for hours in self.windows)])
        for hours in self.windows:
            stretches = hours.until(self.now)
            moments = [*stretches.begin.tolist(), *stretches.end.tolist()]
            changes += [time for time in moments if self._quiet_from is None or time <= self._quiet_from + IDLE]
        if times or self.waiting:
            times += [time for time in changes if time > self.now or (not self._seen and time >= min([*times, *changes]))]
        woken = 0 if times else self._woken + 1
        if self._wake_ups and (times or self.waiting) and woken <= PATIENCE:
            times.append(min(self._wake_ups))
        self.done = not times and not self.waiting and not coming
        if not times and self.waiting and self._own is not None and until == math.inf:
            ids = self.known.columns.get("job_id", range(1, len(self.jobs) + 1))
            raise EngineError(
                why_stuck(self.policy, self.now, [ids[job.index] for job in self.waiting], PATIENCE if self._wake_ups else 0),
                "endless_wait",
            )
        if not times and not self.done and until == math.inf:
            raise EngineError(f"{len(self.waiting) + len(coming)} jobs wait for ever", "endless_wait")
        if not times or min(times) > until:
            return False
        first, first_round = not self._seen, not self._seen or min(times) > self.now
        self.now, self._seen, self._woken = min(times), True, woken
        self._wake_ups.discard(self.now)
        if first:
            for job in [job for job in self.jobs if job.since is not None]:
                self._predict(job)
                self._note_start(job)
                if self._own is not None:
                    self._own.submitted(job, self.now)
                    self._own.started(job, self.now)
        for job in sorted((job for job in self.running if job.end == self.now), key=lambda job: job.ticket):
            self.running.remove(job)
            self.ended_early = self.ended_early or self.now < job.expected_end
            self._note_end(job)
            if self._own is not None:
                self._own.ended(job, self.now)
            for other in self.jobs:
                if job.index in other.waits_for:
                    other.waits_for.remove(job.index)
                    following = other.after == job.index
                    other.submit = max(self.now + other.think, 0) if following else max(other.submit, self.now)
        self._correct_expired()
        # Another round of the instant, in which a job of no length has ended, keeps the reservations that the first one has made.
        self.reservations_void = self.reservations_void or (first_round and any(min(s.known, s.begin) == self.now for s in self.shortages))
        for k in sorted(coming):
            if not self.jobs[k].waits_for and self.jobs[k].submit == self.now:
                coming.remove(k)
                self.jobs[k].arrival = self._arrived
                self._arrived += 1
                self.waiting.append(self.jobs[k])
                self._predict(self.jobs[k])
                if self._own is not None:
                    self._own.submitted(self.jobs[k], self.now)
        if self.predictions is not None and self.predictions.again:
            for job in self.waiting:
                planned = job.believed
                self._predict(job)
                self.reservations_void = self.reservations_void or job.believed != planned
        if self.passes.kind == "kept":
            while self._keep_reservations():
                pass
        elif self._own is not None:
            self._ask(self._own)
        else:
            selected = self._selected()
            while self._pass(selected):
                pass
        return True

    _seen = False

    def _planned_end(self, job: ClusterJob) -> int:
        """One that is overdue is expected to end in a second; one that starts in this pass, when it was planned to."""
        length = job.believed if job in self._planned_now else job.run_length
        return max(job.start + length, self.now + 1)

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
                if self._planned_end(job) <= time:
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
        procs, second = job.procs, job.second
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
        times = {self._planned_end(job) for job in self.running}
        times |= {time for s in self.shortages if s.known <= self.now or s.begin <= self.now for time in (s.begin, s.end)}
        times |= {time for job, begin, _ in planned for time in (begin, begin + job.believed)}
        return sorted(time for time in times if time > self.now)

    # ---------------------------------------------------------------- policies

    def _selected(self) -> set[int] | None:
        """Selective reservations: the jobs that have one in this pass; None for other policies."""
        if self.passes.kind != "selective":
            return None
        least = self.mean_slowdown() if self.passes.adapts else self.passes.factor
        return {job.index for job in self.waiting if (self.now - job.submit + job.believed) / job.believed > least}

    def _reserves(self, job: ClusterJob, selected: set[int] | None, counts: dict[tuple[int, int], int]) -> bool:
        """Whether a job gets a reservation if it is blocked; `counts`: how many there are by pool, and by class of lengths."""
        if selected is not None:
            return job.index in selected
        own = self._class_of(job)
        return all(counts.get((pool, own), 0) < (1 if self.passes.bounds else self.depth) for pool in job.pools)

    def _class_of(self, job: ClusterJob) -> int:
        """The number of the queue of a job where there are several, by its length."""
        return sum(job.believed >= bound for bound in self.passes.bounds)

    def _latest(self, job: ClusterJob, begin: int) -> int:
        """Relaxed backfilling: how late a job that could begin then may begin; its first reservation has been noted."""
        self._earliest[job.index] = earliest = min(self._earliest.get(job.index, begin), begin)
        return max(begin, earliest + math.floor(self.passes.omega * (job.reserved_start - job.submit)))

    def _ask(self, own: PlainRun) -> None:
        """Start what a policy in plain Python chooses, and what its pools and limits let start; free is what all pools have together."""
        self._planned_now = []
        free = sum(max(self._free_now(pool)[0], 0) for pool in range(len(self.capacity)))
        chosen, wake_at = own.choose(self.now, self.waiting, self.running, free)
        for job in [self.jobs[index] for index in chosen]:
            if job not in self.waiting:
                raise PolicyError(f"{self.policy.name} chose job number {job.index + 1}, which is not waiting")
            given = self._fits(job, self.now, [], set()) if self._within_limits(job) else None
            if given is None:
                continue
            ahead = [other for other in self.waiting if other.arrival < job.arrival]
            self._start(job, given, any(set(other.pools) & set(job.pools) for other in ahead))
            own.started(job, self.now)
        if wake_at is not None:
            self._wake_ups.add(self._next_tick(wake_at))

    def _pass(self, selected: set[int] | None) -> bool:
        """Consider the waiting jobs in order; see the rules in kernel/pools/loop.py. Returns whether it must be made again."""
        self._planned_now = []
        queue = self._queue()
        own = getattr(self.policy, "backfill_order", None)
        same_order = own is None or own == self.policy.order
        in_order = same_order and self.passes.kind not in ("selective", "multiqueue")
        planned: list[Place] = []
        reservations: dict[tuple[int, int], int] = {}
        heads = set()
        blocked: set[int] = set()
        closed: set[int] = set()
        later: list[ClusterJob] = []
        seen: list[ClusterJob] = []
        for job in queue:
            if not self._within_limits(job):
                continue
            seen.append(job)
            reserves = self._reserves(job, selected, reservations)
            given = None
            if reserves or not self.backfills or in_order or (selected is None and not blocked & set(job.pools)):
                given = self._fits(job, self.now, planned, closed)
            else:
                later.append(job)
            if given is not None:
                if reserves and self.depth > 1 and job.reserved_start < 0:
                    job.reserved_start = self.now
                if not blocked & set(job.pools):
                    job.run_length *= self.passes.heads_run
                if self._start(job, given, bool(blocked & set(job.pools))):
                    return True
                continue
            if reserves:
                for begin in self._moments(planned):
                    given = self._fits(job, begin, planned, closed)
                    if given is not None and self.passes.kind == "relaxed" and job.index not in heads:
                        heads.add(job.index)
                        job.reserved_start = begin if job.reserved_start < 0 else job.reserved_start
                        latest = self._latest(job, begin)
                        begin, given = self._first_fit(job, latest, planned, closed) or (begin, given)
                    if given is not None:
                        planned.append((job, begin, given))
                        if job.reserved_start < 0:
                            job.reserved_start = begin
                        break
            for pool in job.pools:
                blocked.add(pool)
                if reserves:
                    key = (pool, self._class_of(job))
                    reservations[key] = reservations.get(key, 0) + 1
                if not self.backfills:
                    closed.add(pool)
        self._earliest = {job: time for job, time in self._earliest.items() if job in heads}
        for job in later if same_order else self._in_order(later, own or self.policy.order):
            given = self._fits(job, self.now, planned, closed) if self._within_limits(job) else None
            if given is not None:
                ahead = [other for other in seen[: seen.index(job)] if other.start < 0 and (self.depth or self._within_limits(other))]
                if self._start(job, given, any(set(other.pools) & set(job.pools) for other in ahead)):
                    return True
        return False

    def _first_fit(
        self, job: ClusterJob, earliest: int, planned: Sequence[Place], closed: set[int]
    ) -> tuple[int, dict[int, Amount]] | None:
        """The first place of a job from a time on."""
        for begin in [earliest, *(time for time in self._moments(planned) if time > earliest)]:
            given = self._fits(job, begin, planned, closed)
            if given is not None:
                return begin, given
        return None

    def _start(self, job: ClusterJob, given: dict[int, Amount], behind: bool) -> bool:
        """Start a job; returns whether, with at most one reservation, what it leaves is not what was planned."""
        job.start, job.given, job.ticket, job.reservation = self.now, given, self._started, -1
        self._started += 1
        job.kind = BACKFILLED if behind else IMMEDIATE if job.submit == self.now else RESERVED
        self.waiting.remove(job)
        self.running.append(job)
        self._planned_now.append(job)
        self._note_start(job)
        return self.depth <= 1 and job.run_length != job.believed

    def _keep_reservations(self) -> bool:
        """Conservative backfilling with compression (mualem01, section 2.1); returns whether the pass must be made again."""
        self._planned_now = []
        overdue = any(job.expected_end <= self.now for job in self.running)
        afresh = overdue or self.reservations_void
        queue = self._queue()
        for job in queue:
            if job.reservation >= 0 and (afresh or not self._within_limits(job)):
                job.reservation = -1
                self.ended_early = True
        planned = {job.index: (job, job.reservation, job.given) for job in queue if job.reservation >= 0}
        if self.ended_early and not afresh:
            for job in [job for job in queue if job.reservation >= 0]:
                old = planned.pop(job.index)[1]
                self._reserve(job, planned)
                assert 0 <= job.reservation <= old, "compression never moves a job back"
        newcomers = [job for job in queue if job.reservation < 0 and self._within_limits(job)]
        for job in newcomers if afresh else sorted(newcomers, key=lambda job: job.arrival):
            self._reserve(job, planned)
        self.ended_early = False
        self.overdue = self.reservations_void = overdue
        again = False
        for job in sorted((job for job in queue if job.reservation == self.now), key=lambda job: job.arrival):
            if not self._within_limits(job):
                again = True
                continue
            ahead = [other for other in self.waiting if other.reservation >= 0 and other.arrival < job.arrival]
            self._start(job, job.given, any(set(other.pools) & set(job.pools) for other in ahead))
            self.reservations_void = self.reservations_void or job.run_length > job.believed
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
        for k in self.windows_of[job.index] if self.windows else ():
            stretches = self.windows[k].until(self.now)
            following = int(np.searchsorted(stretches.begin, self.now, "right"))
            if following > 0 and self.now < stretches.end[following - 1]:
                return False
            if self.windows[k].crossing and following < len(stretches.begin) and stretches.begin[following] < self.now + job.estimate:
                return False
        for k in job.limits:
            group = [other for other in self.running if k in other.limits] + [job]
            used = len(group), sum(other.procs for other in group), sum(other.second for other in group)
            if any(a > b for a, b in zip(used, self.limits[k], strict=True)):
                return False
        return True

    def _queue(self) -> list[ClusterJob]:
        """The waiting jobs by tier, then in the policy's order."""
        order = self.policy.order
        return sorted(self._in_order(self.waiting, order), key=lambda job: -job.tier)
