"""A walk along a schedule on a machine with several pools, with compiled passes of the auditor's own (pool_passes.py)."""

from bisect import insort
from collections import defaultdict
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any

import numpy as np

from walltime.auditor.pool_passes import NEVER, POOL_JOB, POOL_STATE, PoolLists, PoolPlan, Pools, make_new_plan, update_plan
from walltime.auditor.walk import Difference, MachineSchedule, Walk
from walltime.estimates import effective_times
from walltime.machine.placing import NEVER as NO_TIME
from walltime.machine.tables import next_tick
from walltime.policy import FCFS, Order, Policy
from walltime.policy.schedule_scores import Scores
from walltime.predictors import Prediction
from walltime.predictors.history import history_for

Array = np.ndarray


class PoolsWalk(Walk):
    """A walk along a schedule of a policy that plans pools: future jobs, waiting jobs and running jobs.

    `most`, `used`: for each limit, the jobs, processors and units of the second resource that it allows, and that are in use.
    """

    def __init__(self, schedule: MachineSchedule, policy: Policy, prediction: Prediction | None):
        super().__init__(schedule)
        workload, placement = schedule.workload, schedule.placement
        count, pools, begun = len(workload), len(placement.machine.pools), placement.since < NO_TIME
        self.w, self.submit, self.procs = workload, workload.submit.tolist(), workload.procs.tolist()
        self.tier = [placement.machine.partitions[part].tier for part in placement.partition.tolist()]
        self.coming = set(self.to_start)
        after, think = workload.dependencies() if workload.feedback else (np.full(count, -1), np.zeros(count, np.int64))
        self.after, self.think = np.where(begun, -1, after).tolist(), think.tolist()
        self.waits_for = [set(others) | {one} - {-1} for others, one in zip(placement.after, self.after, strict=True)]
        self.followers = defaultdict[int, list[int]](list)
        for job, others in enumerate(self.waits_for):
            for other in others:
                self.followers[other].append(job)
        self.arrivals = sorted((self.submit[job], job) for job in self.coming if not self.waits_for[job])
        """A heap of the jobs that wait for no other job, by submission time."""
        self.waiting: list[int] = []
        self.arrival, self.ticket = [-1] * count, [-1] * count
        self.arrived = self.started = 0
        self.ends: list[tuple[int, int, int]] = []  # a heap: end, ticket and job
        self.most = np.minimum(np.array(placement.limits, np.int64).reshape(-1, 3), NEVER)
        self.used = np.zeros_like(self.most)
        self.policy, self.prediction = policy, prediction
        runtime, planned = effective_times(workload, schedule.overrun)
        self.runtime = runtime.tolist()
        self.recorded = schedule.given
        self.given = np.zeros((count, pools, 2), np.int64)
        self.tiers = len(set(self.tier)) > 1
        # The jobs' lengths as the scheduler plans them.
        self.estimate = planned.tolist()
        self.own, self.run_length, self.order_length = planned.tolist(), planned.tolist(), planned.tolist()
        self.predicted, self.corrections = [-1] * count, [0] * count
        self.history: Any = None
        if prediction is not None:
            limit = np.minimum(workload.requested, planned)
            self.history = history_for(prediction, workload, workload.requested, limit, runtime)
        self.is_running: set[int] = set()
        self.running: list[tuple[int, int, int]] = []  # by expected end
        self.expiries: list[tuple[int, int]] = []
        self.has_begun = False  # whether the initially running jobs have been predicted
        self._out: set[int] = set()
        self.windows = schedule.windows
        self._last_instant: int | None = None
        self.order, other = policy.order, getattr(policy, "backfill_order", None)
        self.kept = policy.passes.kind == "kept"
        self.other_order = None if other == policy.order else other
        start = np.array(self.start)
        times = np.array(self.submit), start, start + runtime, planned
        self.scores = Scores(workload, (self.order, self.other_order or self.order), times, machine=placement.machine.procs)
        self._fill_memory(pools)

    def _fill_memory(self, pools: int) -> None:
        w, placement, machine = self.w, self.placement, self.placement.machine
        count = len(w)
        state = np.zeros(1, POOL_STATE).view(np.recarray)[0]
        depth, backfills = _depth(self.policy)
        state.depth, state.backfills = depth, int(backfills)
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
        limits = (self.most, self.used, placement.limits_of.first, placement.limits_of.items)
        self.pools = Pools(of_partitions, free, outages, *limits, np.zeros((pools, 3), np.int64))
        steps = 3 * count + 2 * len(outages) + 8
        self.plan = PoolPlan(np.zeros(steps, np.int64), np.zeros((steps, pools, 2), np.int64), np.zeros((pools, 2), np.int64))
        self.lists = PoolLists(*(np.zeros(count, np.int64) for _ in range(4)))
        self.state, self.jobs = state, jobs
        changes = {int(t) for *_, begin, until, known in placement.outages for t in (min(known, begin), begin, until)}
        self.changes = sorted((changes | self.windows.changes()) - {NO_TIME})

    # ------------------------------------------------------------------ from event to event

    def _begin_job(self, job: int) -> Iterator[Difference]:
        self._place_in_order(job)
        yield from self._check_given(job)
        self._mark_running(job)

    def _has_started(self, job: int) -> bool:
        return self.ticket[job] >= 0

    def _next_event(self) -> int | None:
        times = [heap[0][0] for heap in (self.ends, self.arrivals) if heap]
        while self.expiries:
            when, job = self.expiries[0]
            if job in self.is_running and self._can_be_corrected(job) and self.start[job] + self.run_length[job] == when:
                times.append(when)
                break
            heappop(self.expiries)
        if self.kept and self.waiting and self.state.due < NEVER:
            times.append(int(self.state.due))
        if times or self.waiting:
            while self.is_under_way and self.changes and self.changes[0] <= self.now:
                self.changes.pop(0)
            if self.changes:
                times.append(self.changes[0])
        return min(times) if times else None

    def _instant(self) -> Iterator[Difference]:
        """Handle ends, changes and arrivals of this instant, then run the policy's passes."""
        now = self.now
        if not self.has_begun and self.history is not None:
            for job in sorted(job for _, _, job in self.ends):
                self._predict(job)
                self.history.started(job, self.submit[job], max(self.start[job], 0))
            running, self.running = self.running, []
            for _, _, job in running:
                self._note_running(job)
        self.has_begun = True
        while self.ends and self.ends[0][0] <= now:
            self._end_job(heappop(self.ends)[2])
        self._correct_expired()
        self._change_capacity()
        self._enter_arrivals()
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
            if (yield from self._report_late(started)):
                for job in started:  # as the schedule does not start all of them
                    self.pools.free[:] += self.given[job]
                    self._count(job, -1)
                self._adopt(now)
                return
            for job in started:
                yield from self._check_given(job)
                self.waiting.remove(job)
                self._mark_running(job, counted=True)
            if not self.state.again:
                return

    # ------------------------------------------------------------------ events

    def _enter_arrivals(self) -> None:
        came = []
        while self.arrivals and self.arrivals[0][0] <= self.now:
            came.append(heappop(self.arrivals)[1])
        for job in sorted(set(came) & self.coming):
            self.coming.remove(job)
            self.arrival[job] = self.jobs[job].arrival = self.arrived
            self.arrived += 1
            self.waiting.append(job)
            self._predict(job)

    def _end_job(self, job: int) -> None:
        self._drop_running(job)
        self.is_running.remove(job)
        if self.now < self.start[job] + self.run_length[job]:
            self.state.early = 1
        self.pools.free[:] += self.given[job]
        self._count(job, -1)
        if self.history is not None:
            until = max(self.now, 0)
            self.history.observe(job, self.submit[job], until - self.runtime[job], until)
        for other in self.followers[job]:
            self.waits_for[other].remove(job)
            follows = self.after[other] == job
            self.submit[other] = max(self.now + self.think[other], 0) if follows else max(self.submit[other], self.now)
            if not self.waits_for[other] and other in self.coming:
                heappush(self.arrivals, (self.submit[other], other))

    def _count(self, job: int, sign: int) -> None:
        """Count a job that starts (1) or has ended (-1) towards its limits."""
        for limit in self.placement.limits_of[job]:
            self.used[limit] += (sign, sign * self.procs[job], sign * int(self.placement.second[job]))

    def _change_capacity(self) -> None:
        """Take out and return the capacity of outages; an outage that becomes known now breaks the reservations.

        This happens once per instant: if a job with runtime 0 ends and the instant continues, the reservations of its first round are kept.
        """
        is_again, self._last_instant = self._last_instant == self.now, self.now
        for number, (pool, procs, second, begin, until, known) in enumerate(self.placement.outages):
            if not is_again and min(known, begin) == self.now:
                self.state.void = 1
            is_out = begin <= self.now < until
            if is_out != (number in self._out):
                sign = -1 if is_out else 1
                self.pools.free[pool] += (sign * procs, sign * second)
                (self._out.add if is_out else self._out.remove)(number)

    def _predict(self, job: int) -> None:
        if self.history is None or self.prediction is None:
            return
        uses, estimate = self.prediction.predictions_for, self.estimate[job]
        predicted = self._until_tick(job, self.history.predict(job, self.submit[job], max(self.now, 0))[0])
        self.predicted[job] = predicted
        self.order_length[job] = predicted if uses.order else estimate
        self.own[job] = predicted if uses.own else estimate
        self.run_length[job] = predicted if uses.running else estimate
        self.jobs[job].own, self.jobs[job].run = self.own[job], self.run_length[job]

    def _can_be_corrected(self, job: int) -> bool:
        if self.prediction is None or self.prediction.correction.kind == "none":
            return False
        return self.prediction.predictions_for.running and self.run_length[job] < self.estimate[job]

    def _correct_expired(self) -> None:
        """Correct the expected runtimes of running jobs that have outlived them (tsafrir07, section 3)."""
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
        """Round an expected runtime up so that the job ends at a tick; waiting jobs arrive, and therefore start, at a tick."""
        begin = self.submit[job] if self.placement.since[job] == NO_TIME and job not in self.is_running else self.start[job]
        return int(next_tick(begin + length, self.placement.machine.overhead.tick) - begin)

    # ------------------------------------------------------------------ decisions

    def _decide(self) -> list[int]:
        """Return the jobs that the policy starts now, in order."""
        state, lists = self.state, self.lists
        if not self.waiting and not self.kept:
            state.again = 0
            return []
        state.now, state.waiting, state.running = self.now, len(self.waiting), len(self.running)
        for job in self.waiting if self.windows.shut_hours else ():
            self.jobs[job].shut = int(self.windows.shut(job, self.now))
        queue = self._sorted(self.order, tiers=True)
        lists.queue[: len(queue)] = queue
        if self.kept:
            lists.other[: len(queue)] = self.waiting
        elif self.other_order is not None:
            lists.other[: len(queue)] = self._sorted(self.other_order, tiers=False)
        lists.running[: len(self.running)] = [job for _, _, job in self.running]
        (update_plan if self.kept else make_new_plan)(state, self.jobs, self.pools, self.plan, lists, self.given)
        return lists.started[: state.started].tolist()

    def _sorted(self, order: Order, tiers: bool) -> list[int]:
        """Sort the waiting jobs by tier (if `tiers`), then by score, the highest first, then by arrival."""
        if order == FCFS:
            return sorted(self.waiting, key=lambda job: -self.tier[job]) if tiers and self.tiers else self.waiting
        score = {job: self._score(job, order) for job in self.waiting}
        return sorted(self.waiting, key=lambda job: (-self.tier[job] if tiers else 0, -score[job]))

    def _score(self, job: int, order: Order) -> float:
        return self.scores.of(job, order, self.now, self.order_length[job], self.submit[job])

    # ------------------------------------------------------------------ what the schedule does

    def _mark_running(self, job: int, counted: bool = False) -> None:
        """Start a job; `counted`: whether its processors and limits are already counted."""
        self.ticket[job] = self.started
        self.started += 1
        heappush(self.ends, (self.end[job], self.ticket[job], job))
        if not counted:
            self.pools.free[:] -= self.given[job]
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

    def _check_given(self, job: int) -> Iterator[Difference]:
        """Check that a job takes from the pools in their order; from then on it has the recorded amounts."""
        if self.recorded is None or (self.recorded[job] == self.given[job]).all():
            return
        names = [pool.name for pool in self.placement.machine.pools]
        has, due = (", ".join(f"{procs} of {name}" for name, procs in zip(names, given[job, :, 0].tolist(), strict=True) if procs)
                    for given in (self.recorded, self.given))  # fmt: skip
        if self.ticket[job] < 0 and self.placement.since[job] == NO_TIME:
            self.pools.free[:] += self.given[job] - self.recorded[job]
        self.given[job] = self.recorded[job]
        what = f"has {has or 'nothing'}; a job takes what stays free in its partition's pools in their order: {due or 'nothing'}"
        yield self._difference("pool_order", job, what, self.start[job])

    def _pools_of(self, job: int) -> list[int]:
        """Return the pools of a job's partition, in their order."""
        return [p for p in self.pools.order[self.placement.partition[job]].tolist() if p >= 0]

    def _place_in_order(self, job: int) -> None:
        """Give a job the free processors of its pools in their order, and any missing processors from the first pool."""
        rest, pools = np.array([self.procs[job], self.placement.second[job]]), self._pools_of(job)
        self.given[job] = 0
        for p in pools:
            self.given[job, p] = np.minimum(rest, np.maximum(self.pools.free[p], 0))
            rest -= self.given[job, p]
        self.given[job, pools[0]] += rest

    def _adopt_job(self, job: int) -> None:
        self.coming.discard(job)
        if job in self.waiting:
            self.waiting.remove(job)
        if self.recorded is not None:
            self.given[job] = self.recorded[job]
        else:
            self._place_in_order(job)
        self.jobs[job].reservation = -1
        self._mark_running(job)

    def _adopt(self, moment: int) -> int:
        self.state.void, self.state.due = 1, NEVER
        return super()._adopt(moment)

    # ------------------------------------------------------------------ messages

    def _too_late(self, job: int) -> Difference:
        now, start = self.now, self._actual_start(job)
        if self.kept and self.submit[job] < now:
            return self._difference("reserved_start_missed", job, f"has a reservation that is due at {now}, but {start}")
        if self._sorted(self.order, tiers=True)[0] == job:
            return self._difference("head_waits", job, f"is the head of the queue and fits at {now}, but {start}")
        return self._difference("left_waiting", job, f"could start at {now} without delaying a reservation, but {start}")

    def _too_early(self, job: int) -> Difference:
        free = np.maximum(self.pools.free[self._pools_of(job)], 0).sum(axis=0)
        fits = job in self.waiting and free[0] >= self.procs[job] and free[1] >= self.placement.second[job]
        if fits and _depth(self.policy)[1] and len(self.waiting) > 1:
            return self._difference("reservation_delayed", job, f"starts at {self.now}, when that would delay a reservation")
        reason = "no job has arrived or ended then" if fits else "there is no room for it, or other jobs come first"
        what = f"starts at {self.now}, although {self.policy.label} would not start it: {reason}"
        return self._difference("out_of_turn", job, what)


def _depth(policy: Policy) -> tuple[int, bool]:
    """Return the number of blocked jobs per pool that have a reservation, and whether other jobs may overtake blocked jobs."""
    passes = policy.passes
    return NEVER if passes.depth is None else passes.depth, passes.backfills
