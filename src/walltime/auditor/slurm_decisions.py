"""A run along a schedule of Slurm's: at every event and every backfill cycle its schedulers are put into the state of the schedule.

What they would start then is compared with what the schedule starts. After a difference the run goes on as the schedule does.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Generator, Iterator, Sequence
from heapq import heappop

import numpy as np

from walltime.auditor.slurm_inputs import Tree, hardware, lasting_merit, needs, new_blocks, rules_of
from walltime.auditor.slurm_passes import (
    NEVER,
    SLURM_JOB,
    SLURM_STATE,
    Ground,
    Lists,
    Parts,
    Sight,
    Slots,
    backfill_cycle,
    main_pass,
    place_job,
)
from walltime.auditor.walk import Difference, MachineSchedule, Walk
from walltime.estimates import effective_times
from walltime.machine.placing import NEVER as NO_TIME
from walltime.policy import Slurm

Array = np.ndarray
FIRST_PRIORITY = 4_294_901_760


def slurm_differences(schedule: MachineSchedule, policy: Slurm) -> Iterator[Difference]:
    """Where a schedule starts other jobs than Slurm does in the state that the schedule has led to; one entry per instant at most."""
    yield from _SlurmWalk(schedule, policy).run()


class _SlurmWalk(Walk):
    """The state that the schedule has led to."""

    def __init__(self, schedule: MachineSchedule, policy: Slurm):
        super().__init__(schedule)
        workload, placement, count = schedule.workload, schedule.placement, len(schedule.workload)
        self.settings = settings = policy.settings(placement.machine.slurm)
        self.limit, self.overrun = schedule.limit, schedule.overrun
        runtime, believed = effective_times(workload, schedule.overrun)
        self.runtime, self.believed = runtime.tolist(), believed.tolist()
        self.priority = [0] * count
        self.planned: list[tuple[int, int]] = []  # those that run, by the time at which they are planned to be gone
        self.planned_at = [0] * count
        self.news = self.news_for_all = False
        self._memory(believed)
        self.tree = Tree(workload, placement.machine, settings) if settings.multifactor else None
        self.next_sum = settings["priority_calc_period"]
        self.gone: list[int] = []  # ended since the last sum
        self.merit = lasting_merit(workload, placement, settings, self.jobs.nodes, self.nodes).tolist() if self.tree else []
        self.recorded = None if schedule.slots is None else _by_job(schedule.slots, count)

    def _memory(self, believed: Array) -> None:
        w, placement, s = self.w, self.placement, self.settings
        self.nodes = nodes = hardware(placement)
        count, every, parts = len(w), len(nodes.capacity), len(nodes.partitions)
        wants = needs(w, placement, nodes)
        jobs = np.zeros(count, SLURM_JOB).view(np.recarray)
        least = np.maximum(w.columns.get("time_min", np.zeros(count, np.int64)), 0)
        least = np.where(least < believed, least, 0)
        _, user = np.unique(w.columns.get("user", np.zeros(count, np.int64)), return_inverse=True)
        values = {"procs": w.procs, "second": placement.second, "nodes": wants.nodes, "whole": wants.whole, "each": wants.each}
        values |= {"partition": placement.partition, "user": user, "believed": believed, "time_min": least}
        for name, column in values.items():
            jobs[name] = column
        jobs["reserved"] = -1
        self.jobs, self.time_min = jobs, least.tolist()
        self.rules, self.state = rules_of(s), np.zeros(1, SLURM_STATE).view(np.recarray)[0]
        width = max(len(own) for own in nodes.partitions)
        own = np.full((parts, width), -1, np.int64)
        for part, members in enumerate(nodes.partitions):
            own[part, : len(members)] = members
        self.ground = Ground(nodes.capacity, nodes.capacity.copy(), own, self.most, self.used, self.first_limit, self.limits)
        self.most_slots = int(nodes.capacity.sum())
        self.slots = Slots(np.zeros(2 * self.most_slots, np.int64), np.zeros((2 * self.most_slots, 2), np.int64))
        self.lists = Lists(
            np.zeros(count, np.int64),
            np.zeros(count, np.int64),
            np.zeros(count, np.int64),
            np.zeros(count, np.int64),
            np.zeros(int(user.max(initial=0)) + 1, np.int64),
            np.zeros(2 * parts, np.int64),
            np.zeros((int(user.max(initial=0)) + 1) * parts, np.int64),
        )
        self.sight = Sight(*(np.zeros(shape, np.int64) for shape in ((every, 2), every, every, (every, 3), 6)))
        self.blocks = new_blocks(nodes, 0)
        times = {time for _, begin, end, known in nodes.outages for time in (min(known, begin), begin, end)}
        self.changes = sorted(time for time in times if time < NO_TIME)

    # ------------------------------------------------------------------ from event to event

    def _begin_job(self, job: int) -> Iterator[Difference]:
        self._place_by_hand(job, keep=False)
        self._put_to_work(job, self.believed[job])
        yield from self._check(job, self.believed[job])

    def _next_event(self) -> int | None:
        s, now = self.settings, self.now
        times = []
        if self.ends:
            times.append(self.ends[0][0])
        if self.arrivals:
            times.append(self.arrivals[0][0])
        if self.changes and (times or self.waiting):
            times.append(self.changes[0])
        if any(job not in self.late for job in self.waiting):
            if self.tree is not None and times:
                times.append(self.next_sum)
            overdue = bool(self.planned) and self.planned[0][0] <= now
            if not overdue and self.planned:
                times.append(self.planned[0][0])
            if (self.news or overdue) and s["scheduler_type"] == "backfill":
                times.append((now // s["bf_interval"] + 1) * s["bf_interval"])
            if self.news_for_all and s["sched_interval"] > 0:
                times.append((now // s["sched_interval"] + 1) * s["sched_interval"])
        return min(times) if times else None

    def _instant(self) -> Iterator[Difference]:
        now, s = self.now, self.settings
        while self.tree is not None and self.next_sum <= now:
            self._sum_up()
        gone = came = False
        while self.ends and self.ends[0][0] <= now:
            self._end_job(heappop(self.ends)[2])
            gone = True
        while self.changes and self.changes[0] <= now:
            self.changes.pop(0)
            gone = True
        for job in self._arrivals_now():
            self.jobs[job].submit = self.submit[job]
            self.priority[job] = self.jobs[job].priority = self._priority(job, now)
            came = True
        self._sort()
        if came or gone:
            self.news = self.news_for_all = True
        if not self.waiting:
            return
        if self.settled == now:
            self._adopt(now)
            return
        full = s["sched_interval"] > 0 and now % s["sched_interval"] == 0 and self.news_for_all
        if full or gone or (came and not s["defer"]):
            self.state.depth = len(self.waiting) if full else s["default_queue_depth"]
            if (yield from self._follow(main_pass, 0)):
                return
            self.news_for_all = self.news_for_all and not full
        if self.planned and self.planned[0][0] <= now:
            self.news = True
        if s["scheduler_type"] == "backfill" and self.news and now % s["bf_interval"] == 0:
            self.news = False
            if (yield from self._follow(backfill_cycle, min(len(self.waiting), s["bf_max_job_test"]))):
                return
        if any(now - self.submit[job] < self.rules.least_age for job in self.waiting):
            self.news = True

    def _follow(self, scheduler: Callable[..., None], blocks: int) -> Generator[Difference, None, bool]:
        """Let a scheduler start what it wants; returns whether the schedule differs."""
        if not self.waiting:
            return False
        state, lists, now = self.state, self.lists, self.now
        self._prepare(blocks)
        scheduler(state, self.rules, self.jobs, Parts(self.ground, self.slots, self.blocks, lists, self.sight))
        started = lists.started[: state.started].tolist()
        wrong = [job for job in started if self.start[job] != now]
        if wrong:
            if wrong[0] not in self.late:
                yield self._too_late(wrong[0])
            self.late.add(wrong[0])
            for job in started:
                self._give_back(job)
            self._adopt(now)
            return True
        for job in started:
            self.waiting.remove(job)
            self._put_to_work(job, int(self.jobs[job].limit), counted=True)
            yield from self._check(job, int(self.jobs[job].limit))
        self.news = self.news or bool(started)
        return False

    def _prepare(self, blocks: int) -> None:
        """What the schedulers see: the queue, who runs until when, outages; and memory for them."""
        state, lists, now = self.state, self.lists, self.now
        state.now, state.waiting, state.running = now, len(self.waiting), len(self.planned)
        lists.queue[: len(self.waiting)] = self.waiting
        releases = self.planned
        if releases and releases[0][0] <= now:
            releases = sorted((self._release(when, job), job) for when, job in releases)
        if releases:
            both = np.array(releases, np.int64)
            lists.release[: len(both)], lists.running[: len(both)] = both[:, 0], both[:, 1]
        if state.slots + self.most_slots > len(self.slots.node):
            self._compact()
        if len(self.blocks.table) < len(self.nodes.outages) + len(self.nodes.partitions) + blocks:
            self.blocks = new_blocks(self.nodes, 2 * blocks)
        table, count, filled = self.blocks, 0, 0
        for own, begin, end, known in self.nodes.outages:
            if min(known, begin) <= now < end:
                table.nodes[filled : filled + len(own)] = own
                table.table[count] = begin, min(end, NEVER), filled, len(own)
                count, filled = count + 1, filled + len(own)
        table.by_begin[:count] = np.argsort(table.table[:count, 0], kind="stable")
        table.by_end[:count] = np.argsort(table.table[:count, 1], kind="stable")
        state.blocks = count

    def _compact(self) -> None:
        """Move the slots of those that run together."""
        pieces, jobs = [], [job for _, job in self.planned]
        for job in jobs:
            first, count = int(self.jobs[job].first), int(self.jobs[job].count)
            pieces.append((self.slots.node[first : first + count].copy(), self.slots.amount[first : first + count].copy()))
        used = sum(len(own) for own, _ in pieces)
        if used + self.most_slots > len(self.slots.node):
            size = 2 * (used + self.most_slots)
            self.slots = Slots(np.zeros(size, np.int64), np.zeros((size, 2), np.int64))
        self.state.slots = 0
        for job, (node, amount) in zip(jobs, pieces, strict=True):
            self._note_slots(job, node, amount)

    def _note_slots(self, job: int, node: Array, amount: Array) -> None:
        first = int(self.state.slots)
        self.jobs[job].first, self.jobs[job].count = first, len(node)
        self.slots.node[first : first + len(node)], self.slots.amount[first : first + len(node)] = node, amount
        self.state.slots = first + len(node)

    # ------------------------------------------------------------------ events

    def _is_soft(self, job: int) -> bool:
        s = self.settings
        return bool(s["time_min_as_soft_limit"] and s["soft_limit_running"] == "half" and self.time_min[job] > 0)

    def _release(self, when: int, job: int) -> int:
        """When a job that runs is planned to give its nodes back."""
        if when > self.now:
            return when
        left = (self.start[job] + int(self.jobs[job].limit) - self.now) // 2 if self._is_soft(job) else 0
        return self.now + max(1, left)

    def _end_job(self, job: int) -> None:
        self.planned.remove((self.planned_at[job], job))
        self._give_back(job)
        if self.tree is not None:
            self.gone.append(job)
        self._release_followers(job)

    def _priority(self, job: int, when: int) -> int:
        s = self.settings
        if s["priority_type"] == "basic":
            return FIRST_PRIORITY - self.arrival[job]
        if self.tree is None:
            return 1
        age = min(1.0, (when - self.submit[job]) / max(1, s["priority_max_age"]))
        share = self.tree.factor(self.tree.association[job])
        return max(1, int(s["priority_weight_age"] * age + s["priority_weight_fairshare"] * share + self.merit[job]))

    def _sort(self) -> None:
        """By tier, then by priority, then by arrival."""
        self.waiting.sort(key=lambda job: (-self.tier[job], -self.priority[job], self.arrival[job]))

    def _sum_up(self) -> None:
        """Use and priorities at the end of a period."""
        assert self.tree is not None
        s = self.settings
        period, until = s["priority_calc_period"], self.next_sum
        begun = min((self.start[job] for job in [*(job for _, job in self.planned), *self.gone]), default=self.now)
        if until <= begun and self.tree.is_unused and (self.late or not self.waiting):
            self.next_sum += ((min(begun, self.now) - until) // period + 1) * period  # nothing changes until then
            return
        used: dict[int, int] = {}
        for job in [*(job for _, job in self.planned), *self.gone]:
            time = max(0, min(until, self.end[job]) - max(until - period, self.start[job]))
            one = self.tree.association[job]
            used[one] = used.get(one, 0) + self.procs[job] * time
        self.gone = [job for job in self.gone if self.end[job] > until]
        self.tree.add(used)
        before = list(self.waiting)
        for job in self.waiting:
            old, new = self.priority[job], self._priority(job, until)
            self.priority[job] = self.jobs[job].priority = new
            if s["bf_min_prio_reserve"] > 0 and old != new:
                self.news = self.news_for_all = True
        self._sort()
        if self.waiting != before:
            self.news = self.news_for_all = True
        self.next_sum += period

    # ------------------------------------------------------------------ what the schedule does

    def _put_to_work(self, job: int, limit: int, counted: bool = False) -> None:
        """A job runs on the nodes that have been noted for it; `counted`: these and its limits are taken already."""
        self._note_start(job)
        self.jobs[job].limit = limit
        if not counted:
            self._take(job, 1)
        self.planned_at[job] = self.start[job] + (self.time_min[job] if self._is_soft(job) else limit)
        insort(self.planned, (self.planned_at[job], job))

    def _take(self, job: int, sign: int) -> None:
        first, count = int(self.jobs[job].first), int(self.jobs[job].count)
        np.add.at(self.ground.free, self.slots.node[first : first + count], -sign * self.slots.amount[first : first + count])
        self._count(job, sign)

    def _give_back(self, job: int) -> None:
        self._take(job, -1)

    def _place_by_hand(self, job: int, keep: bool = True) -> None:
        """The nodes of a job that Slurm has not started: as the schedule says, else those that it would choose of what is free."""
        if self.state.slots + self.most_slots > len(self.slots.node):
            self._compact()
        if keep and self.recorded is not None:
            self._note_slots(job, *self.recorded[job])
            return
        place_job(self.state, self.jobs, self.ground, self.sight, job)
        chosen = self.sight.chosen[: self.state.chosen]
        self._note_slots(job, chosen[:, 0], chosen[:, 1:])

    def _check(self, job: int, limit: int) -> Iterator[Difference]:
        """Whether a job that starts as it should has the nodes, limit and end that it should; then it has what the schedule says."""
        number, now = int(self.w.job_id[job]), self.start[job]
        shorter = limit < self.believed[job]
        runs = min(self.runtime[job], limit) if shorter and self.overrun == "kill" else self.runtime[job]
        said = int(self.w.requested[job] if self.limit is None else self.limit[job])
        due = min(limit, int(self.w.requested[job])) if shorter else int(self.w.requested[job])
        if self.limit is not None and said != due:
            yield "limit_shortened", f"job {number} starts under a limit of {said} s; Slurm gives it {due} s", job, now
        elif (shorter or self.time_min[job] > 0) and self.end[job] != now + runs:
            yield "end_differs", f"job {number} ends at {self.end[job]}; under its limit of {due} s it ends at {now + runs}", job, now
        if self.recorded is None:
            return
        first, count = int(self.jobs[job].first), int(self.jobs[job].count)
        order = np.argsort(self.slots.node[first : first + count], kind="stable")
        node, amount = self.recorded[job]
        if np.array_equal(self.slots.node[first : first + count][order], node) and np.array_equal(
            self.slots.amount[first : first + count][order], amount
        ):
            return
        yield "node_order", f"job {number} has other nodes than those that Slurm chooses for it", job, now
        self._take(job, -1)
        if self.state.slots + len(node) > len(self.slots.node):
            self._compact()
        self._note_slots(job, node, amount)
        self._take(job, 1)

    def _adopt_job(self, job: int) -> None:
        self._place_by_hand(job)
        self._put_to_work(job, self.believed[job] if self.limit is None else min(int(self.limit[job]), self.believed[job]))

    def _adopt(self, moment: int) -> bool:
        """Where the schedule only leaves jobs waiting, there is nothing new to try before something happens."""
        self.news = self.news_for_all = super()._adopt(moment)
        return self.news

    # ------------------------------------------------------------------ words

    def _too_late(self, job: int) -> Difference:
        number, now = int(self.w.job_id[job]), self.now
        rest = self._what_it_does(job)
        if self.waiting[0] == job:
            return "head_waits", f"job {number} has the highest priority and finds its nodes at {now}, but {rest}", job, now
        return "left_waiting", f"job {number} finds its nodes at {now} and delays nobody who is planned before it, but {rest}", job, now

    def _too_early(self, job: int) -> Difference:
        number, now = int(self.w.job_id[job]), self.now
        queue = set(self.waiting)
        self._place_by_hand(job, keep=False)
        fits = int(self.slots.amount[int(self.jobs[job].first) : int(self.jobs[job].first + self.jobs[job].count), 0].sum())
        if job in queue and fits >= self.procs[job] and self.waiting[0] != job:
            return "reservation_delayed", f"job {number} starts at {now}, ahead of jobs of a higher priority that it may delay", job, now
        return "out_of_turn", f"job {number} starts at {now}, when neither of Slurm's schedulers starts it", job, now


def _by_job(slots: Sequence[Array], count: int) -> list[tuple[Array, Array]]:
    """The nodes of each job, in their order, and what it has of them."""
    job, node, procs, second = slots
    order = np.lexsort((node, job))
    first = np.searchsorted(job[order], np.arange(count + 1))
    amount = np.stack([procs, second], axis=1)[order]
    return [(node[order][first[k] : first[k + 1]], amount[first[k] : first[k + 1]]) for k in range(count)]
