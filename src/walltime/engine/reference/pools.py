"""The reference engine for machines of several pools: the rules of kernel/pools/loop.py in plain Python, slow and independent of it."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from walltime.engine.machines import IDLE, NEVER, Demands, Pools
from walltime.engine.problem import Problem, overfull
from walltime.engine.reference.engine import Engine
from walltime.engine.reference.plain import Job, followers_of, release_followers, within_limits
from walltime.errors import EngineError
from walltime.policy import Order

Array = np.ndarray


@dataclass(eq=False)
class ClusterJob(Job):
    """A job; `pools`: the pools of its partition, in the order in which it takes them; `since`: its start if it runs initially."""

    second: int = 0
    pools: Sequence[int] = ()
    tier: int = 0
    limits: Sequence[int] = ()
    since: int = NEVER
    given: Any = None
    """Processors and second resource that it takes of each pool, int64, shape (pools, 2)."""


Reservation = tuple[ClusterJob, int, Array]
"""A job, its planned start (s), and its amounts of each pool."""


@dataclass
class Pass:
    """The decisions of a pass over the queue so far.

    * `selected`: the jobs that may have a reservation; None if that depends on `reservations`, their number by pool and class of lengths
    * `blocked`: the pools that a job waits for; `closed`: those of them that no job behind may use
    """

    selected: set[int] | None = None
    reserved: list[Reservation] = field(default_factory=list)
    reservations: Counter[tuple[int, int]] = field(default_factory=Counter)
    blocked: set[int] = field(default_factory=set)
    closed: set[int] = field(default_factory=set)

    def blocks(self, job: ClusterJob) -> bool:
        """Return whether a job ahead waits for a pool of the job."""
        return bool(self.blocked & set(job.pools))


class Shortage(NamedTuple):
    """Capacity that is missing in [begin, end), s.

    * `known`: the time from which it is known, s
    * `missing`: the amounts in each pool, int64, shape (pools, 2)
    """

    begin: int
    end: int
    known: int
    missing: Array


class ClusterReference(Engine):
    """A simulation on a machine of several pools; `run` it, then read `jobs`."""

    def __init__(self, problem: Problem):
        machine, demands = problem.machine, problem.demands
        assert isinstance(machine, Pools)
        assert isinstance(demands, Demands)
        super().__init__(problem, int(machine.capacity[:, 0].sum()))
        self.jobs = []
        for k, row in enumerate(problem.rows()):
            partition = int(demands.partition[k])
            job = ClusterJob(
                k,
                *row,
                second=int(demands.second[k]),
                pools=machine.partitions[partition],
                tier=machine.tiers[partition],
                limits=demands.limits[k],
                since=int(demands.since[k]),
                given=np.zeros_like(machine.capacity),
            )
            job.waits_for.update(demands.after[k])
            self.jobs.append(job)
        self.followers = followers_of(self.jobs)
        self.capacity = machine.capacity
        self.shortages = list[Shortage]()
        for pool, *amounts, begin, end, known in machine.outages:
            self.shortages.append(Shortage(begin, end, known, np.zeros_like(self.capacity)))
            self.shortages[-1].missing[pool] = amounts
        self.limits, self.windows = machine.limits, machine.windows
        self._quiet_from: int | None = None  # from this time on, nothing was to come but windows that are the same each week
        self.windows_of = demands.windows
        self.waiting: list[ClusterJob] = []
        self._planned_now: list[ClusterJob] = []  # started in this pass
        self.running: list[ClusterJob] = []
        self.coming = {job.index for job in self.jobs if job.since == NEVER}
        self.arrivals = [(job.submit, job.index) for job in self.jobs if job.since == NEVER and not job.waits_for]
        heapify(self.arrivals)
        self.depth: float = math.inf if self.passes.depth is None else self.passes.depth
        self.backfills = self.passes.backfills
        self._earliest: dict[int, int] = {}  # relaxed: by job, its earliest reservation since it has had one in every pass

    def _place_first(self) -> None:
        self._placed = True
        free = self.capacity.copy()
        for job in sorted((job for job in self.jobs if job.since < NEVER), key=lambda job: (job.since, job.index)):
            given = self._share(job, free)
            if given is None:
                raise overfull(job.index)
            free -= given
            job.given, job.start, job.ticket = given, job.since, self._started
            self._started += 1
            self.running.append(job)

    def step(self, until: float = math.inf) -> bool:
        """Handle the next event and make the pass after it; return False if there is none, or it is later than `until`, s."""
        if not self._placed:
            self._place_first()
        times, woken = self._event_times()
        self.done = not times and not self.waiting and not self.coming
        if not times and not self.done and until == math.inf:
            raise self._stuck()
        if not times or min(times) > until:
            return False
        self._woken = woken
        self._process_events(min(times))
        self._decide()
        return True

    def _process_events(self, now: int) -> None:
        first, another_round = not self._seen, self._seen and now <= self.now
        self.now, self._seen = now, True
        self._wake_ups.discard(self.now)
        for job in self.jobs if first else ():  # initially running jobs are predicted, and have started
            if job.since < NEVER:
                self._introduce(job)
                self._note_start(job)
        for job in sorted((job for job in self.running if job.end == self.now), key=lambda job: job.ticket):
            self.running.remove(job)
            self.ended_early = self.ended_early or self.now < job.expected_end
            self._note_end(job)
            for other in release_followers(self.followers, job.index, self.now):
                heappush(self.arrivals, (other.submit, other.index))
        self._correct_expired()
        # Another round of this instant, after the end of a job with runtime 0, keeps the reservations of the first round.
        if not another_round and any(min(s.known, s.begin) == self.now for s in self.shortages):
            self.reservations_void = True
        while self.arrivals and self.arrivals[0][0] <= self.now:
            job = self.jobs[heappop(self.arrivals)[1]]
            if job.index in self.coming:
                self.coming.remove(job.index)
                self._enter(job)
        for job in self.waiting if self.predictions is not None and self.predictions.again else ():
            planned = job.planned
            self._predict(job)
            self.reservations_void = self.reservations_void or job.planned != planned

    _placed = _seen = False

    def _event_times(self) -> tuple[list[int], int]:
        """Return the times of the next events, and the number of consecutive events that only called a policy in plain Python."""
        times = [job.end for job in self.running]
        while self.arrivals and self.arrivals[0][1] not in self.coming:
            heappop(self.arrivals)  # an audited schedule has started it
        times += [submit for submit, _ in self.arrivals[:1]]
        times += [job.expected_end for job in self.running if self._can_be_corrected(job)]
        times += [job.reservation for job in self.waiting if job.reservation >= 0] if not self.overdue else []
        changes = self._change_times(bool(times))
        if times or self.waiting:
            times += [time for time in changes if time > self.now or (not self._seen and time >= min([*times, *changes]))]
        wake_up, woken = self._wake_up(times)
        return [*times, *wake_up], woken

    def _change_times(self, jobs_ahead: bool) -> list[int]:
        """Return when outages become known, begin and end, and when windows do; windows only for `IDLE` if nothing else will happen."""
        changes = [time for s in self.shortages for time in (min(s.known, s.begin), s.begin, s.end) if time < NEVER]
        if jobs_ahead or any(time > self.now for time in changes):
            self._quiet_from = None
        elif self._quiet_from is None:
            self._quiet_from = max([self.now, *(hours.settled for hours in self.windows)])
        for hours in self.windows:
            stretches = hours.until(self.now)
            moments = [*stretches.begin.tolist(), *stretches.end.tolist()]
            changes += [time for time in moments if self._quiet_from is None or time <= self._quiet_from + IDLE]
        return changes

    def _stuck(self) -> EngineError:
        if self.waiting and self._own is not None:
            return self._starts_nothing()
        return EngineError(f"{len(self.waiting) + len(self.coming)} jobs never start", "endless_wait")

    def _decide(self) -> None:
        """Make the pass of this instant, and repeat it as long as its starts change its plan."""
        if self.passes.kind == "kept":
            while self._keep_reservations():
                pass
        elif self._own is not None:
            self._ask()
        else:
            selected = None
            if self.passes.kind == "selective":
                least = self.mean_slowdown() if self.passes.adapts else self.passes.factor
                selected = {job.index for job in self.waiting if (self.now - job.submit + job.planned) / job.planned > least}
            while self._pass(Pass(selected)):
                pass

    def _planned_end(self, job: ClusterJob) -> int:
        """Return the planned end of a running job: in a second if it is overdue; as planned while it waited, if it started in this pass."""
        length = job.planned if job in self._planned_now else job.run_length
        return max(job.start + length, self.now + 1)

    def _levels(self, planned: Sequence[Reservation]) -> list[tuple[int, Array]]:
        """Return the amounts of each pool that are expected to be free from each moment on; the first moment is now.

        An amount is negative where capacity that is in use has been lost.
        """
        taken = [(self.now, self._planned_end(job), job.given) for job in self.running]
        taken += [(begin, begin + job.planned, given) for job, begin, given in planned]
        taken += [(s.begin, s.end, s.missing) for s in self.shortages if min(s.known, s.begin) <= self.now < s.end]
        changes = {self.now: self.capacity}
        for begin, end, amounts in taken:
            for time, change in ((max(begin, self.now), -amounts), (max(end, self.now), amounts)):
                changes[time] = changes.get(time, 0) + change
        moments = sorted(changes)
        return list(zip(moments, np.cumsum([changes[time] for time in moments], axis=0), strict=True))

    def _share(self, job: ClusterJob, free: Array) -> Array | None:
        """Return a job's share of each of its pools, in their order; None if there is not enough."""
        needed, given = np.array([job.procs, job.second]), np.zeros_like(free)
        for pool in job.pools:
            given[pool] = np.minimum(needed, np.maximum(free[pool], 0))
            needed -= given[pool]
        return None if needed.any() else given

    def _fits(self, job: ClusterJob, begin: int, so_far: Pass) -> Array | None:
        """Return the shares of its pools that a job would take if it began then; None if it does not fit for its planned length."""
        levels = [*self._levels(so_far.reserved), (math.inf, self.capacity)]
        during = [free for (time, free), (until, _) in pairwise(levels) if time < begin + max(job.planned, 1) and until > begin]
        least = np.min(during, axis=0)
        least[self._closed(so_far)] = 0
        return self._share(job, least)

    def _closed(self, so_far: Pass) -> list[int]:
        """Return the rows of free amounts that no job behind may use."""
        return list(so_far.closed)

    def _reserves(self, job: ClusterJob, so_far: Pass) -> bool:
        """Return whether a job gets a reservation if blocked: it is selected, or each of its pools has fewer than `depth`."""
        if so_far.selected is not None:
            return job.index in so_far.selected
        own = self._class_of(job)
        return all(so_far.reservations[pool, own] < (1 if self.passes.bounds else self.depth) for pool in job.pools)

    def _ask(self) -> None:
        """Start the jobs that a policy in plain Python chooses, if pools and limits allow it; it sees the free processors of all pools."""
        self._planned_now = []
        free = int(np.maximum(self._levels([])[0][1][:, 0], 0).sum())
        for job in self._chosen(free):
            given = self._fits(job, self.now, Pass()) if self._within_limits(job) else None
            if given is None:
                continue
            ahead = [other for other in self.waiting if other.arrival < job.arrival]
            self._start(job, given, any(set(other.pools) & set(job.pools) for other in ahead))

    def _pass(self, so_far: Pass) -> bool:
        """Consider the waiting jobs in order, by the rules in kernel/pools/loop.py; return whether the pass must be repeated."""
        self._planned_now = []
        order = getattr(self.policy, "backfill_order", None) or self.policy.order
        considered: list[ClusterJob] = []
        later: list[ClusterJob] = []
        for job in self._queue():
            if not self._within_limits(job):
                continue
            considered.append(job)
            reserves = self._reserves(job, so_far)
            if self._is_left(job, order, reserves, so_far):
                later.append(job)
            elif (given := self._fits(job, self.now, so_far)) is not None:
                if self._start_in_turn(job, given, reserves, so_far):
                    return True
                continue
            if reserves:
                self._plan(job, so_far)
            self._block(job, reserves, so_far)
        blocked = {job.index for job, _, _ in so_far.reserved}
        self._earliest = {job: time for job, time in self._earliest.items() if job in blocked}
        return self._backfill(later if order == self.policy.order else self._in_order(later, order), considered, so_far)

    def _is_left(self, job: ClusterJob, order: Order, reserves: bool, so_far: Pass) -> bool:
        """Return whether a job is considered only later, in backfill order, after all reservations have been made."""
        if reserves or not self.backfills:
            return False
        if so_far.selected is None and not so_far.blocks(job):
            return False
        return order != self.policy.order or self.passes.kind in ("selective", "multiqueue")

    def _start_in_turn(self, job: ClusterJob, given: Array, reserves: bool, so_far: Pass) -> bool:
        """Start a job when its turn comes; return whether the pass must be repeated."""
        if reserves and self.depth > 1:
            job.note_reservation(self.now)
        if not so_far.blocks(job):
            job.run_length *= self.passes.head_runtime_factor
        return self._start(job, given, so_far.blocks(job))

    def _plan(self, job: ClusterJob, so_far: Pass) -> None:
        """Make the earliest reservation for a blocked job; under relaxed backfilling, the earliest from its latest start on."""
        moments = [time for time, _ in self._levels(so_far.reserved)[1:]]
        place = self._first_fit(job, moments, so_far)
        if place is None:
            return
        job.note_reservation(place[1])
        if self.passes.kind == "relaxed":
            self._earliest[job.index] = earliest = min(self._earliest.get(job.index, place[1]), place[1])
            latest = max(place[1], earliest + math.floor(self.passes.omega * (job.reserved_start - job.submit)))
            place = self._first_fit(job, [latest, *(time for time in moments if time > latest)], so_far) or place
        so_far.reserved.append(place)

    def _block(self, job: ClusterJob, reserves: bool, so_far: Pass) -> None:
        """Block a waiting job's pools for the jobs behind it; without backfilling, close them."""
        so_far.blocked.update(job.pools)
        if not self.backfills:
            so_far.closed.update(job.pools)
        for pool in job.pools if reserves else ():
            so_far.reservations[pool, self._class_of(job)] += 1

    def _backfill(self, jobs: Sequence[ClusterJob], considered: Sequence[ClusterJob], so_far: Pass) -> bool:
        """Start the jobs that fit without delaying a reservation; return whether the pass must be repeated."""
        for job in jobs:
            given = self._fits(job, self.now, so_far) if self._within_limits(job) else None
            if given is not None:
                ahead = [other for other in considered[: considered.index(job)] if other.start < 0]
                ahead = [other for other in ahead if self.depth or self._within_limits(other)]
                if self._start(job, given, any(set(other.pools) & set(job.pools) for other in ahead)):
                    return True
        return False

    def _first_fit(self, job: ClusterJob, begins: Sequence[int], so_far: Pass) -> Reservation | None:
        """Return the first reservation of a job that fits at one of these times."""
        for begin in begins:
            given = self._fits(job, begin, so_far)
            if given is not None:
                return job, begin, given
        return None

    def _start(self, job: ClusterJob, given: Array, behind: bool) -> bool:
        """Start a job; return whether, with at most one reservation, the plan no longer holds."""
        job.given, job.reservation = given, -1
        self._planned_now.append(job)
        self._begin(job, behind)
        return self.depth <= 1 and job.run_length != job.planned

    def _keep_reservations(self) -> bool:
        """Make a pass of conservative backfilling (mualem01, section 2.1); return whether it must be repeated."""
        self._planned_now = []
        overdue = any(job.expected_end <= self.now for job in self.running)
        from_scratch = overdue or self.reservations_void
        queue = self._queue()
        self._give_up_reservations(queue, from_scratch)
        planned = {job.index: (job, job.reservation, job.given) for job in queue if job.reservation >= 0}
        if self.ended_early and not from_scratch:
            self._compress([job for job in queue if job.reservation >= 0], planned)
        newcomers = [job for job in queue if job.reservation < 0 and self._within_limits(job)]
        for job in newcomers if from_scratch else sorted(newcomers, key=lambda job: job.arrival):
            self._reserve(job, planned)
        self.ended_early = False
        self.overdue = self.reservations_void = overdue
        return self._start_due(queue)

    def _give_up_reservations(self, queue: Sequence[ClusterJob], every: bool) -> None:
        """Drop the reservation of every job, or of the jobs over a limit; this counts as an early end of a job."""
        for job in queue:
            if job.reservation >= 0 and (every or not self._within_limits(job)):
                job.reservation = -1
                self.ended_early = True

    def _compress(self, queue: Sequence[ClusterJob], planned: dict[int, Reservation]) -> None:
        """Give each job in turn the earliest reservation that the others allow, which is never later than its old one."""
        for job in queue:
            old = planned.pop(job.index)[1]
            self._reserve(job, planned)
            assert 0 <= job.reservation <= old, "compression never delays a job"

    def _reserve(self, job: ClusterJob, planned: dict[int, Reservation]) -> None:
        """Give a job the earliest reservation that fits into the plan, if any does."""
        so_far = Pass(reserved=list(planned.values()))
        place = self._first_fit(job, [time for time, _ in self._levels(so_far.reserved)], so_far)
        if place is not None:
            planned[job.index] = place
            _, job.reservation, job.given = place
            job.note_reservation(job.reservation)

    def _start_due(self, queue: Sequence[ClusterJob]) -> bool:
        """Start the jobs that are due, in order of arrival; return whether a job that may not start now must give up its reservation."""
        again = False
        for job in sorted((job for job in queue if job.reservation == self.now), key=lambda job: job.arrival):
            if not self._within_limits(job):
                again = True
                continue
            ahead = [other for other in self.waiting if other.reservation >= 0 and other.arrival < job.arrival]
            self._start(job, job.given, any(set(other.pools) & set(job.pools) for other in ahead))
            self.reservations_void = self.reservations_void or job.run_length > job.planned
        return again

    def _within_limits(self, job: ClusterJob) -> bool:
        """Return whether windows and limits let a job start now."""
        now = np.array([self.now])
        if any(self.windows[k].until(self.now).shut(now, job.estimate)[0] for k in (self.windows_of[job.index] if self.windows else ())):
            return False
        return within_limits(job, self.running, self.limits)

    def _queue(self) -> list[ClusterJob]:
        """Return the waiting jobs by tier, then in the policy's order."""
        order = self.policy.order
        return sorted(self._in_order(self.waiting, order), key=lambda job: -job.tier)
