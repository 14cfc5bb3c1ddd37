"""A walk along a schedule made by Slurm: at every event and backfill cycle, its schedulers decide in the state of the schedule.

Their starts are compared with the schedule's. After a difference the walk goes on as the schedule does.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from heapq import heappop

import numpy as np

from walltime.auditor.slurm_inputs import AccountTree, constant_priority, hardware, needs, new_blocks, rules_of
from walltime.auditor.slurm_passes import (
    NEVER,
    SLURM_JOB,
    SLURM_STATE,
    Cluster,
    JobSlots,
    NodeView,
    SlurmLists,
    SlurmMemory,
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


class SlurmWalk(Walk):
    """A walk along a schedule made by Slurm."""

    def __init__(self, schedule: MachineSchedule, policy: Slurm):
        super().__init__(schedule)
        workload, placement, count = schedule.workload, schedule.placement, len(schedule.workload)
        self.settings = settings = policy.settings(placement.machine.slurm)
        self.limit, self.overrun = schedule.limit, schedule.overrun
        runtime, believed = effective_times(workload, schedule.overrun)
        self.runtime, self.believed = runtime.tolist(), believed.tolist()
        self.priority = [0] * count
        self.planned: list[tuple[int, int]] = []  # running jobs, by planned end
        self.planned_at = [0] * count
        self.news = self.news_for_all = False
        self._fill_memory(believed)
        self.tree = AccountTree(workload, placement.machine, settings) if settings.multifactor else None
        self.next_sum = settings["priority_calc_period"]
        self.gone: list[int] = []  # ended since the last sum
        self.constant = constant_priority(workload, placement, settings, self.jobs.nodes, self.nodes).tolist() if self.tree else []
        self.recorded = None if schedule.slots is None else _by_job(schedule.slots, count)

    def _fill_memory(self, believed: Array) -> None:
        """Put the machine and the jobs into memory for compiled code."""
        w, placement, s = self.w, self.placement, self.settings
        self.nodes = nodes = hardware(placement)
        count, every, parts = len(w), len(nodes.capacity), len(nodes.partitions)
        jobs = np.zeros(count, SLURM_JOB).view(np.recarray)
        least = np.maximum(w.columns.get("time_min", np.zeros(count, np.int64)), 0)
        least = np.where(least < believed, least, 0)
        _, user = np.unique(w.columns.get("user", np.zeros(count, np.int64)), return_inverse=True)
        values = {"procs": w.procs, "second": placement.second, **needs(w, placement, nodes)._asdict()}
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
        self.cluster = Cluster(nodes.capacity, nodes.capacity.copy(), own, self.most, self.used, self.first_limit, self.limits)
        self.most_slots = int(nodes.capacity.sum())
        self.slots = _new_slots(2 * self.most_slots)
        users = int(user.max(initial=0)) + 1
        self.lists = SlurmLists(*(np.zeros(size, np.int64) for size in (count, count, count, count, users, 2 * parts, users * parts)))
        self.view = NodeView(*(np.zeros(shape, np.int64) for shape in ((every, 2), every, every, (every, 3), 6)))
        self.blocks = new_blocks(nodes, 0)
        times = {time for _, begin, end, known in nodes.outages for time in (min(known, begin), begin, end)}
        self.changes = sorted(time for time in times if time < NO_TIME)

    # ------------------------------------------------------------------ from event to event

    def _begin_job(self, job: int) -> Iterator[Difference]:
        self._choose_nodes(job)
        self._mark_running(job, self.believed[job])
        yield from self._check(job, self.believed[job])

    def _next_event(self) -> int | None:
        s, now = self.settings, self.now
        times = self._known_events()
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
        """Let a scheduler start jobs; return whether the schedule differs."""
        if not self.waiting:
            return False
        state, lists, now = self.state, self.lists, self.now
        self._prepare(blocks)
        scheduler(state, self.rules, self.jobs, SlurmMemory(self.cluster, self.slots, self.blocks, lists, self.view))
        started = lists.started[: state.started].tolist()
        if (yield from self._report_late(started)):
            for job in started:
                self._take(job, -1)
            self._adopt(now)
            return True
        for job in started:
            self.waiting.remove(job)
            self._mark_running(job, int(self.jobs[job].limit), counted=True)
        for job in started:
            yield from self._check(job, int(self.jobs[job].limit))
        self.news = self.news or bool(started)
        return False

    def _prepare(self, blocks: int) -> None:
        """Fill the schedulers' memory: the queue, running jobs with their planned ends, and outages."""
        state, lists, now = self.state, self.lists, self.now
        state.now, state.waiting, state.running = now, len(self.waiting), len(self.planned)
        lists.queue[: len(self.waiting)] = self.waiting
        releases = self.planned
        if releases and releases[0][0] <= now:
            releases = sorted((self._release(when, job), job) for when, job in releases)
        if releases:
            both = np.array(releases, np.int64)
            lists.release[: len(both)], lists.running[: len(both)] = both[:, 0], both[:, 1]
        self._make_room(self.most_slots)
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

    def _make_room(self, room: int) -> None:
        """Move the slots of running jobs together unless there is room for `room` more slots."""
        if self.state.slots + room <= len(self.slots.node):
            return
        old = {job: self._slots_of(job) for _, job in self.planned}
        used = sum(len(node) for node, _ in old.values())
        self.slots = _new_slots(len(self.slots.node) if used + room <= len(self.slots.node) else 2 * (used + room))
        self.state.slots = 0
        for job, slots in old.items():
            self._note_slots(job, *slots)

    def _slots_of(self, job: int) -> tuple[Array, Array]:
        """Return the nodes of a job and what it has of each."""
        own = slice(int(self.jobs[job].first), int(self.jobs[job].first + self.jobs[job].count))
        return self.slots.node[own], self.slots.amount[own]

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
        """Return when a running job is planned to release its nodes."""
        if when > self.now:
            return when
        left = (self.start[job] + int(self.jobs[job].limit) - self.now) // 2 if self._is_soft(job) else 0
        return self.now + max(1, left)

    def _end_job(self, job: int) -> None:
        self.planned.remove((self.planned_at[job], job))
        self._take(job, -1)
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
        return max(1, int(s["priority_weight_age"] * age + s["priority_weight_fairshare"] * share + self.constant[job]))

    def _sort(self) -> None:
        """Sort the waiting jobs by tier, then by priority, then by arrival."""
        self.waiting.sort(key=lambda job: (-self.tier[job], -self.priority[job], self.arrival[job]))

    def _sum_up(self) -> None:
        """Update usage and priorities at the end of a period."""
        assert self.tree is not None
        s = self.settings
        period, until = s["priority_calc_period"], self.next_sum
        ran = [*(job for _, job in self.planned), *self.gone]
        begun = min((self.start[job] for job in ran), default=self.now)
        if until <= begun and self.tree.is_unused and (self.late or not self.waiting):
            self.next_sum += ((min(begun, self.now) - until) // period + 1) * period  # nothing changes until then
            return
        used = Counter[int]()
        for job in ran:
            time = max(0, min(until, self.end[job]) - max(until - period, self.start[job]))
            used[self.tree.association[job]] += self.procs[job] * time
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

    def _mark_running(self, job: int, limit: int, counted: bool = False) -> None:
        """Start a job on the nodes noted for it; `counted`: its nodes and limits are already counted."""
        self._note_start(job)
        self.jobs[job].limit = limit
        if not counted:
            self._take(job, 1)
        self.planned_at[job] = self.start[job] + (self.time_min[job] if self._is_soft(job) else limit)
        insort(self.planned, (self.planned_at[job], job))

    def _take(self, job: int, sign: int) -> None:
        node, amount = self._slots_of(job)
        np.add.at(self.cluster.free, node, -sign * amount)
        self._count(job, sign)

    def _choose_nodes(self, job: int) -> None:
        """Note the nodes that Slurm would choose for a job among the free ones."""
        self._make_room(self.most_slots)
        place_job(self.state, self.jobs, self.cluster, self.view, job)
        chosen = self.view.chosen[: self.state.chosen]
        self._note_slots(job, chosen[:, 0], chosen[:, 1:])

    def _check(self, job: int, limit: int) -> Iterator[Difference]:
        """Check the nodes, limit and end of a job that starts when it should; from then on it has the schedule's nodes."""
        now, requested = self.start[job], int(self.w.requested[job])
        shorter = limit < self.believed[job]
        runs = min(self.runtime[job], limit) if shorter and self.overrun == "kill" else self.runtime[job]
        recorded = requested if self.limit is None else int(self.limit[job])
        due = min(limit, requested) if shorter else requested
        if self.limit is not None and recorded != due:
            yield self._difference("limit_shortened", job, f"starts under a limit of {recorded} s; Slurm gives it {due} s", now)
        elif (shorter or self.time_min[job] > 0) and self.end[job] != now + runs:
            what = f"ends at {self.end[job]}; under its limit of {due} s it ends at {now + runs}"
            yield self._difference("end_differs", job, what, now)
        if self.recorded is None:
            return
        chosen, amounts = self._slots_of(job)
        order = np.argsort(chosen, kind="stable")
        node, amount = self.recorded[job]
        if np.array_equal(chosen[order], node) and np.array_equal(amounts[order], amount):
            return
        yield self._difference("node_order", job, "has other nodes than Slurm chooses for it", now)
        self._take(job, -1)
        self._make_room(len(node))
        self._note_slots(job, node, amount)
        self._take(job, 1)

    def _adopt_job(self, job: int) -> None:
        if self.recorded is None:
            self._choose_nodes(job)
        else:
            self._make_room(len(self.recorded[job][0]))
            self._note_slots(job, *self.recorded[job])
        self._mark_running(job, self.believed[job] if self.limit is None else min(int(self.limit[job]), self.believed[job]))

    def _adopt(self, moment: int) -> bool:
        """Adopt the schedule's starts; if it only leaves jobs waiting, the schedulers have nothing new to try before the next event."""
        self.news = self.news_for_all = super()._adopt(moment)
        return self.news

    # ------------------------------------------------------------------ messages

    def _too_late(self, job: int) -> Difference:
        now, start = self.now, self._actual_start(job)
        if self.waiting[0] == job:
            return self._difference("head_waits", job, f"has the highest priority and finds its nodes at {now}, but {start}")
        return self._difference("left_waiting", job, f"finds its nodes at {now} and delays no job planned before it, but {start}")

    def _too_early(self, job: int) -> Difference:
        self._choose_nodes(job)
        fits = self._slots_of(job)[1][:, 0].sum() >= self.procs[job]
        if job in self.waiting and fits and self.waiting[0] != job:
            what = f"starts at {self.now}, ahead of jobs of a higher priority that it may delay"
            return self._difference("reservation_delayed", job, what)
        return self._difference("out_of_turn", job, f"starts at {self.now}, when neither of Slurm's schedulers starts it")


def _new_slots(size: int) -> JobSlots:
    return JobSlots(np.zeros(size, np.int64), np.zeros((size, 2), np.int64))


def _by_job(slots: Sequence[Array], count: int) -> list[tuple[Array, Array]]:
    """Return the nodes of each job, in order, and what it has of each."""
    job, node, procs, second = slots
    order = np.lexsort((node, job))
    first = np.searchsorted(job[order], np.arange(count + 1))
    amount = np.stack([procs, second], axis=1)[order]
    return [(node[order][first[k] : first[k + 1]], amount[first[k] : first[k + 1]]) for k in range(count)]
