"""A run along a schedule on a machine of pools: at every instant the policy is put into the state that the schedule has led to.

What it would start then is compared with what the schedule starts. After a difference the run goes on as the schedule does.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any

import numpy as np

from walltime.auditor.pool_passes import NEVER, POOL_JOB, POOL_STATE, Lines, Plan, Site, decide_afresh, decide_kept
from walltime.auditor.walk import Difference, MachineSchedule, Walk
from walltime.estimates import effective_times
from walltime.machine import Overhead
from walltime.machine.overheads import release_times
from walltime.machine.placing import NEVER as NO_TIME
from walltime.policy import FCFS, Order, Policy
from walltime.policy.schedule_scores import Scores
from walltime.predictors import Prediction
from walltime.predictors.history import history_for

Array = np.ndarray


def keeps_reservations(policy: Policy) -> bool:
    """Whether a policy keeps the reservations that it has made."""
    return policy.passes.kind == "kept"


def differences(schedule: MachineSchedule, policy: Policy, prediction: Prediction | None = None) -> Iterator[Difference]:
    """Where a schedule starts other jobs than its policy does in the state that the schedule has led to; one entry per instant at most."""
    yield from _PoolsWalk(schedule, policy, prediction).run()


class _PoolsWalk(Walk):
    """The state that the schedule has led to."""

    def __init__(self, schedule: MachineSchedule, policy: Policy, prediction: Prediction | None):
        super().__init__(schedule)
        workload, placement = schedule.workload, schedule.placement
        count, pools = len(workload), len(placement.machine.pools)
        self.policy, self.prediction = policy, prediction
        runtime, believed = effective_times(workload, schedule.overrun)
        self.runtime = runtime.tolist()
        self.recorded = schedule.given
        self.given = np.zeros((count, pools, 2), np.int64)
        self.tiers = len(set(self.tier)) > 1
        # What the scheduler knows of the jobs.
        self.estimate = believed.tolist()
        self.own, self.run_length, self.order_length = believed.tolist(), believed.tolist(), believed.tolist()
        self.predicted, self.corrections = [-1] * count, [0] * count
        self.history: Any = None
        if prediction is not None:
            limit = np.minimum(workload.requested, believed)
            self.history = history_for(prediction, workload, workload.requested, limit, runtime)
        self.is_running: set[int] = set()
        self.running: list[tuple[int, int, int]] = []  # by expected end
        self.expiries: list[tuple[int, int]] = []
        self.has_begun = False  # the jobs that run at first have been predicted
        self._out: set[int] = set()
        self.windows = schedule.windows
        self._looked_at: int | None = None  # the time of the last instant
        self._orders()
        self._memory(pools)

    def _orders(self) -> None:
        policy = self.policy
        self.order = policy.order
        own = getattr(policy, "backfill_order", None)
        self.kept = keeps_reservations(policy)
        self.other_order = None if own is None or own == policy.order else own
        submit, start = np.array(self.submit), np.array(self.start)
        times = submit, start, start + np.array(self.runtime), np.array(self.estimate)
        self.scores = Scores(self.w, (self.order, self.other_order or self.order), times, machine=self.placement.machine.procs)

    def _memory(self, pools: int) -> None:
        w, placement, machine = self.w, self.placement, self.placement.machine
        count = len(w)
        state = np.zeros(1, POOL_STATE).view(np.recarray)[0]
        depth, backfills = _depth(self.policy)
        state.depth, state.backfills = min(depth, NEVER), int(backfills)
        state.in_order, state.due = int(self.other_order is None), NEVER
        jobs = np.zeros(count, POOL_JOB).view(np.recarray)
        jobs.procs, jobs.second, jobs["partition"] = w.procs, placement.second, placement.partition
        jobs.own = jobs.run = self.own
        jobs.reservation = jobs.reserved = -1
        jobs.arrival = -1
        places = [[machine.place_of(name) for name in one.pools] for one in machine.partitions]
        width = max(len(one) for one in places)
        of_partitions = np.array([one + [-1] * (width - len(one)) for one in places], np.int64)
        free = np.array([(pool.nodes * pool.procs, pool.nodes * pool.second) for pool in machine.pools], np.int64)
        outages = np.array(placement.outages, np.int64).reshape(-1, 6)
        limits = (self.most, self.used, self.first_limit, self.limits)
        self.site = Site(of_partitions, free, outages, *limits, np.zeros((pools, 3), np.int64))
        steps = 3 * count + 2 * len(outages) + 8
        self.plan = Plan(np.zeros(steps, np.int64), np.zeros((steps, pools, 2), np.int64), np.zeros((pools, 2), np.int64))
        self.lines = Lines(*(np.zeros(count, np.int64) for _ in range(4)))
        self.state, self.jobs = state, jobs
        self.changes = sorted(
            {int(t) for *_, begin, until, known in placement.outages for t in (min(known, begin), begin, until)}.union(
                self.windows.changes()
            ).difference({NO_TIME})
        )

    # ------------------------------------------------------------------ from event to event

    def _begin_job(self, job: int) -> Iterator[Difference]:
        self._place_by_hand(job)
        yield from self._check_given(job)
        self._put_to_work(job)

    def _next_event(self) -> int | None:
        times = []
        if self.ends:
            times.append(self.ends[0][0])
        if self.arrivals:
            times.append(self.arrivals[0][0])
        while self.expiries:
            when, job = self.expiries[0]
            if job in self.is_running and self._can_be_corrected(job) and self.start[job] + self.run_length[job] == when:
                times.append(when)
                break
            heappop(self.expiries)
        if self.kept and self.waiting and self.state.due < NEVER:
            times.append(int(self.state.due))
        if times or self.waiting:
            while self.begun and self.changes and self.changes[0] <= self.now:
                self.changes.pop(0)
            if self.changes:
                times.append(self.changes[0])
        return min(times) if times else None

    def _instant(self) -> Iterator[Difference]:
        """What ends, changes and comes now, and then the policy's passes."""
        now = self.now
        if not self.has_begun and self.history is not None:
            for job in sorted(job for _, _, job in self.ends):
                self._predict(job)
                self.history.started(job, self.submit[job], max(self.start[job], 0))
            self._sort_running()
        self.has_begun = True
        while self.ends and self.ends[0][0] <= now:
            self._end_job(heappop(self.ends)[2])
        self._correct_expired()
        self._change_capacity()
        for job in self._arrivals_now():
            self.jobs[job].arrival = self.arrival[job]
            self._predict(job)
        if self.history is not None and self.prediction is not None and self.prediction.predictor.again:
            for job in self.waiting:
                planned = self.own[job]
                self._predict(job)
                if self.own[job] != planned:
                    self.state.void = 1
        if self.settled == now:
            self._adopt(now)
            return
        while True:
            started = self._decide()
            wrong = [job for job in started if self.start[job] != now]
            if wrong:
                if wrong[0] not in self.late:
                    yield self._too_late(wrong[0])
                self.late.add(wrong[0])
                self._give_up(started, now)
                return
            for job in started:
                yield from self._check_given(job)
                self.waiting.remove(job)
                self._put_to_work(job, counted=True)
            if not self.state.again:
                return

    # ------------------------------------------------------------------ events

    def _end_job(self, job: int) -> None:
        self._drop_running(job)
        self.is_running.remove(job)
        if self.now < self.start[job] + self.run_length[job]:
            self.state.early = 1
        self.site.free[:] += self.given[job]
        self._count(job, -1)
        if self.history is not None:
            until = max(self.now, 0)
            self.history.observe(job, self.submit[job], until - self.runtime[job], until)
        self._release_followers(job)

    def _change_capacity(self) -> None:
        """Outages that are not planned, or are only now known, break the reservations; what is free follows from who runs.

        They do so once: where a job of no length has ended, the instant goes on, and what its first round has reserved is kept.
        """
        goes_on, self._looked_at = self._looked_at == self.now, self.now
        for number, (pool, procs, second, begin, until, known) in enumerate(self.placement.outages):
            if not goes_on and min(known, begin) == self.now:
                self.state.void = 1
            is_out = begin <= self.now < until
            if is_out != (number in self._out):
                sign = -1 if is_out else 1
                self.site.free[pool] += (sign * procs, sign * second)
                (self._out.add if is_out else self._out.remove)(number)

    def _predict(self, job: int) -> None:
        if self.history is None or self.prediction is None:
            return
        belief, estimate = self.prediction.believe, self.estimate[job]
        predicted = self._until_tick(job, self.history.predict(job, self.submit[job], max(self.now, 0))[0])
        self.predicted[job] = predicted
        self.order_length[job] = predicted if belief.order else estimate
        self.own[job] = predicted if belief.own else estimate
        self.run_length[job] = predicted if belief.running else estimate
        self.jobs[job].own, self.jobs[job].run = self.own[job], self.run_length[job]

    def _can_be_corrected(self, job: int) -> bool:
        if self.prediction is None or self.prediction.correction.kind == "none":
            return False
        return self.prediction.believe.running and self.run_length[job] < self.estimate[job]

    def _correct_expired(self) -> None:
        """Expect more of those that run and have outlived what was expected of them (tsafrir07, section 3)."""
        if self.prediction is None or self.prediction.correction.kind == "none":
            return
        expired = [job for when, _, job in self.running if when <= self.now and self._can_be_corrected(job)]
        for job in expired:
            self._drop_running(job)
            while self._can_be_corrected(job) and self.start[job] + self.run_length[job] <= self.now:
                self.run_length[job] = self._until_tick(job, self._corrected(job))
                self.corrections[job] += 1
            self._note_running(job)
            self.state.void = 1

    def _corrected(self, job: int) -> int:
        assert self.prediction is not None
        correction, elapsed, estimate = self.prediction.correction, self.now - self.start[job], self.estimate[job]
        length = estimate
        if correction.kind == "double":
            length = 2 * self.run_length[job]
        elif correction.kind == "soft":
            length = self.run_length[job] + self.predicted[job]
        elif correction.kind == "half":
            length = elapsed + max((estimate - elapsed) // 2, 1)
        elif correction.kind == "tsafrir07" and self.corrections[job] < len(correction.increments):
            base = self.predicted[job] if correction.relative == "prediction" else elapsed
            length = base + correction.increments[self.corrections[job]]
        return min(length, estimate) if correction.capped else length

    def _until_tick(self, job: int, length: int) -> int:
        """How long a job is expected to run by a scheduler that sees its end at a tick; jobs that wait start on one, as they arrive."""
        begin = self.submit[job] if self.placement.since[job] == NO_TIME and job not in self.is_running else self.start[job]
        return release_times(Overhead(tick=self.placement.machine.overhead.tick), begin + length) - begin

    # ------------------------------------------------------------------ decisions

    def _decide(self) -> list[int]:
        """Who the policy starts now, in order."""
        state, lines = self.state, self.lines
        if not self.waiting and not self.kept:
            state.again = 0
            return []
        state.now, state.waiting, state.running = self.now, len(self.waiting), len(self.running)
        for job in self.waiting if self.windows.held else ():
            self.jobs[job].shut = int(self.windows.shut(job, self.now))
        queue = self._sorted(self.order, tiers=True)
        lines.queue[: len(queue)] = queue
        if self.kept:
            lines.other[: len(queue)] = self.waiting
        elif self.other_order is not None:
            lines.other[: len(queue)] = self._sorted(self.other_order, tiers=False)
        lines.running[: len(self.running)] = [job for _, _, job in self.running]
        (decide_kept if self.kept else decide_afresh)(state, self.jobs, self.site, self.plan, lines, self.given)
        return lines.started[: state.started].tolist()

    def _sorted(self, order: Order, tiers: bool) -> list[int]:
        """By tier, if wanted; then the highest score first, ties by arrival, in which those that wait are kept."""
        if order == FCFS:
            return sorted(self.waiting, key=lambda job: -self.tier[job]) if tiers and self.tiers else self.waiting
        score = {job: self._score(job, order) for job in self.waiting}
        return sorted(self.waiting, key=lambda job: (-self.tier[job] if tiers else 0, -score[job]))

    def _score(self, job: int, order: Order) -> float:
        return self.scores.of(job, order, self.now, self.order_length[job], self.submit[job])

    # ------------------------------------------------------------------ what the schedule does

    def _put_to_work(self, job: int, counted: bool = False) -> None:
        """A job runs; `counted`: its place and its limits have been taken already."""
        self._note_start(job)
        if not counted:
            self.site.free[:] -= self.given[job]
            self._count(job, 1)
        if self.history is not None and self.placement.since[job] == NO_TIME:
            self.history.started(job, self.submit[job], self.start[job])
        self._note_running(job)
        self.is_running.add(job)

    def _note_running(self, job: int) -> None:
        expected = self.start[job] + self.run_length[job]
        self.jobs[job].expected, self.jobs[job].run = expected, self.run_length[job]
        insort(self.running, (expected, self.ticket[job], job))
        if self._can_be_corrected(job):
            heappush(self.expiries, (expected, job))

    def _drop_running(self, job: int) -> None:
        self.running.remove((int(self.jobs[job].expected), self.ticket[job], job))

    def _sort_running(self) -> None:
        jobs = [job for _, _, job in self.running]
        self.running.clear()
        for job in jobs:
            self._note_running(job)

    def _check_given(self, job: int) -> Iterator[Difference]:
        """Whether a job has of each pool what the rule says; from then on it has what the schedule says."""
        if self.recorded is None or (self.recorded[job] == self.given[job]).all():
            return
        names = [pool.name for pool in self.placement.machine.pools]
        said, due = (", ".join(f"{a} of {name}" for name, (a, _) in zip(names, one.tolist(), strict=True) if a) or "nothing"
                     for one in (self.recorded[job], self.given[job]))  # fmt: skip
        message = f"job {self.w.job_id[job]} has {said}; a job takes what stays free of its partition's pools in their order: {due}"
        if self.ticket[job] < 0 and self.placement.since[job] == NO_TIME:
            self.site.free[:] += self.given[job] - self.recorded[job]
        self.given[job] = self.recorded[job]
        yield "pool_order", message, job, self.start[job]

    def _place_by_hand(self, job: int) -> None:
        """What a job has of the pools that the policy has not given a place: as the schedule says, else of its pools in their order."""
        procs, second = self.procs[job], int(self.placement.second[job])
        pools = [p for p in self.site.pools[self.placement.partition[job]].tolist() if p >= 0]
        self.given[job] = 0
        for p in pools:
            mine = min(procs, max(int(self.site.free[p, 0]), 0)), min(second, max(int(self.site.free[p, 1]), 0))
            self.given[job, p] = mine
            procs, second = procs - mine[0], second - mine[1]
        self.given[job, pools[0]] += (procs, second)

    def _adopt_job(self, job: int) -> None:
        if self.recorded is not None:
            self.given[job] = self.recorded[job]
        else:
            self._place_by_hand(job)
        self.jobs[job].reservation = -1
        self._put_to_work(job)

    def _adopt(self, moment: int) -> bool:
        self.state.void, self.state.due = 1, NEVER
        return super()._adopt(moment)

    def _give_up(self, started: list[int], moment: int) -> None:
        """What the policy has started, the schedule may not have; what it has planned no longer holds."""
        for job in started:
            self.site.free[:] += self.given[job]
            self._count(job, -1)
        self._adopt(moment)

    # ------------------------------------------------------------------ words

    def _too_late(self, job: int) -> Difference:
        """The policy starts a job that the schedule leaves waiting."""
        number, now = int(self.w.job_id[job]), self.now
        rest = self._what_it_does(job)
        queue = self._sorted(self.order, tiers=True)
        if self.kept and self.submit[job] < now:
            return "reserved_start_missed", f"job {number} has a reservation that is due at {now}, but {rest}", job, now
        if queue[0] == job:
            return "head_waits", f"job {number} is the head of the queue and fits at {now}, but {rest}", job, now
        return "left_waiting", f"job {number} could start at {now} without delaying a reservation, but {rest}", job, now

    def _too_early(self, job: int) -> Difference:
        number, now = int(self.w.job_id[job]), self.now
        pools = [p for p in self.site.pools[self.placement.partition[job]].tolist() if p >= 0]
        free = np.maximum(self.site.free[pools], 0).sum(axis=0)
        fits = free[0] >= self.procs[job] and free[1] >= self.placement.second[job]
        if job in self.waiting and fits and _depth(self.policy)[1] and len(self.waiting) > 1:
            return "reservation_delayed", f"job {number} starts at {now}, when that would delay a reservation", job, now
        why = "nothing has come or ended then" if job in self.waiting and fits else "there is no room for it, or others come first"
        return "out_of_turn", f"job {number} starts at {now}, when {self.policy.label} does not start it: {why}", job, now


def _depth(policy: Policy) -> tuple[int, bool]:
    """How many blocked jobs of a pool have a reservation, and whether others may overtake them."""
    passes = policy.passes
    return NEVER if passes.depth is None else passes.depth, passes.backfills
