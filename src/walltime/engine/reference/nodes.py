"""The reference engine for Slurm's scheduling: the rules of kernel/nodes/loop.py in plain Python, slow and independent of it."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from itertools import groupby
from typing import NamedTuple

import numpy as np

from walltime.engine.problem import NEVER, REQUEUE_DELAY, LostRuns, NodeDemands, Nodes, Problem
from walltime.engine.reference.plain import BACKFILLED, IMMEDIATE, RESERVED, Job, followers_of, release_followers, within_limits
from walltime.engine.reference.shares import FairShares
from walltime.errors import EngineError, WorkloadError

Array = np.ndarray
FIRST_PRIORITY = 4_294_901_760


class FreeNode(NamedTuple):
    """A node that a job can use: its place in the job's partition, its weight, and what the job can use of it."""

    place: int
    weight: int
    procs: int
    second: int


class Free(NamedTuple):
    """Nodes that a job can use, with the fields of FreeNode; int64."""

    places: Array
    weights: Array
    procs: Array
    second: Array


class Given(NamedTuple):
    """Nodes of a job, in the order in which they were chosen, and what it has of each: processors, second resource and memory, in rows."""

    nodes: Array
    amounts: Array


NOTHING = Given(np.zeros(0, np.int64), np.zeros((3, 0), np.int64))


@dataclass(eq=False)
class SlurmJob(Job):
    """A job, with its needs as in `problem.NodeDemands`; `fewest`: nodes.

    `due`: when it is preempted, NEVER if it is not; `awaits`: the last end of the jobs that it preempts.
    """

    second: int = 0
    fewest: int = 0
    most_nodes: int = 0
    whole: int = 0
    spread: int = 0
    sole: int = 0
    asked: int = 0
    members: int = 0
    task: int = 1
    least: int = 0
    most: int = 0
    total: int = 0
    each: int = 0
    per_task: int = 0
    memory: int = 0
    task_memory: int = 0
    partition: int = 0
    since: int = NEVER
    time_min: int = 0
    user: int = 0
    place: int = -1
    unreserved: int = 0
    association: int = 0
    charge: int = 0
    merit: float = 0.0
    limits: Sequence[int] = ()
    tier: int = 0
    priority: int = 0
    limit: int = 0
    given: Given = NOTHING
    preemption: int = 0
    due: int = NEVER
    awaits: int = -NEVER


@dataclass
class Block:
    """Nodes that are reserved in [begin, end), for the jobs of a user reservation or for one job or none, 0."""

    nodes: Array
    begin: int
    end: int
    reservation: int = 0


class SlurmReference:
    """A simulation of Slurm's scheduling; `step` it to its end, then read `jobs` and `slots`."""

    def __init__(self, problem: Problem):
        machine, demands, settings = problem.machine, problem.demands, problem.settings
        assert isinstance(machine, Nodes)
        assert isinstance(demands, NodeDemands)
        assert problem.shares is not None
        self.machine, self.settings, self.kill = machine, settings, problem.kill
        self.capacity = np.stack([machine.procs, machine.second, machine.memory])
        self.free = self.capacity.copy()
        self.partitions = [np.asarray(own, np.int64) for own in machine.partitions]
        self.jobs: list[SlurmJob] = []
        columns = demands._asdict()
        after, limits, fewest = (columns.pop(name) for name in ("after", "limits", "nodes"))
        needs = [dict(zip(columns, row, strict=True)) for row in zip(*(column.tolist() for column in columns.values()), strict=True)]
        for k, row in enumerate(problem.rows()):
            tier = machine.tiers[needs[k]["partition"]]
            job = SlurmJob(k, *row, fewest=int(fewest[k]), limits=list(limits[k]), tier=tier, **needs[k])
            job.time_min = job.time_min if job.time_min < job.believed else 0
            job.waits_for.update(after[k])
            self.jobs.append(job)
        self.has_sole = any(job.sole for job in self.jobs)
        self.lost: list[tuple[int, ...]] = []
        self.now = 0
        self.waiting: list[SlurmJob] = []
        self.running: list[SlurmJob] = []
        self.runtimes = [job.runtime for job in self.jobs]
        self.coming = {job.index for job in self.jobs if job.since == NEVER}
        self.arrivals = [(job.submit, job.index) for job in self.jobs if job.since == NEVER and not job.waits_for]
        self.arrivals.sort()
        self.followers = followers_of(self.jobs)
        self.begun = self.done = False
        self.shares = FairShares(problem.shares, settings) if settings.multifactor else None
        self.changes = sorted({t for _, begin, end, known, _ in machine.outages for t in (min(known, begin), begin, end) if t < NEVER})
        self._arrived = self._started = 0
        self._news = self._news_for_all = False
        self._next_sum = settings["priority_calc_period"]
        self._ended: list[SlurmJob] = []  # since the last sum

    def _place_first(self) -> None:
        """Give the jobs that run at first their nodes, in order of their starts."""
        self.begun = True
        for job in sorted((job for job in self.jobs if job.since < NEVER), key=lambda job: (job.since, job.index)):
            free = self.usable(job, self.free, 0, 1, [])
            if not self.is_enough(job, free):
                raise WorkloadError(f"there is no room for job number {job.index + 1}, which runs at first", "overfull_machine")
            self._run(job, free, job.since, job.believed)

    def step(self, until: float = math.inf) -> bool:
        """Handle the next event and make the passes after it; return False if there is none, or it is later than `until`, s."""
        if not self.begun:
            self._place_first()
        when = self._next_event()
        self.done = when is None and not self.waiting and not self.coming
        if when is None and not self.done and until == math.inf:
            raise EngineError(f"{len(self.waiting) + len(self.coming)} jobs never start")
        if when is None or when > until:
            return False
        self.now = when
        came, gone = self._process_events()
        if self.waiting:
            self._schedule(came, gone)
        return True

    def _next_event(self) -> int | None:
        """Return the time of the next event, or of the next pass that has something to consider; None if there is none."""
        times = [job.end for job in self.running]
        times += [submit for submit, _ in self.arrivals[:1]]
        if self.changes and (times or self.waiting):
            times.append(self.changes[0])
        return min(times + self._next_passes(bool(times)), default=None)

    def _next_passes(self, is_more_to_come: bool) -> list[int]:
        """Return the times of the next priority update and passes for waiting jobs."""
        s = self.settings
        if not self.waiting:
            return []
        overdue = any(job.expected_end <= self.now for job in self.running)
        times = [] if overdue else [job.expected_end for job in self.running]
        if self.shares is not None and (times or is_more_to_come):
            times.append(self._next_sum)
        if (self._news or overdue) and s["scheduler_type"] == "backfill":
            times.append((self.now // s["bf_interval"] + 1) * s["bf_interval"])
        if self._news_for_all and s["sched_interval"] > 0:
            times.append((self.now // s["sched_interval"] + 1) * s["sched_interval"])
        return times

    def _process_events(self) -> tuple[bool, bool]:
        """Process all events of this instant before the schedulers run; return whether a job came, and whether one ended."""
        while self.shares is not None and self._next_sum <= self.now:
            self._compute_priorities()
        ending = sorted((job for job in self.running if job.end <= self.now), key=lambda job: (job.end, job.ticket))
        for job in ending:
            self._release_nodes(job)
            self._ended.append(copy.copy(job))
            if job.due == job.end and self._lose(job):
                continue
            for other in release_followers(self.followers, job.index, self.now):
                if other.index in self.coming:
                    heappush(self.arrivals, (other.submit, other.index))
        gone, came = bool(ending), False
        while self.changes and self.changes[0] <= self.now:
            self.changes.pop(0)
            gone = True
        while self.arrivals and self.arrivals[0][0] <= self.now:
            job = self.jobs[heappop(self.arrivals)[1]]
            if job.index in self.coming:
                self.coming.remove(job.index)
                came = True
                job.arrival = self._arrived
                job.place = job.arrival if job.place < 0 else job.place
                self._arrived += 1
                job.priority = self.priority(job, self.now)
                self.waiting.append(job)
        self._sort()
        if came or gone:
            self._news = self._news_for_all = True
        return came, gone

    def _lose(self, job: SlurmJob) -> bool:
        """Record the run of a job that ends by preemption; return whether the job goes back to the queue."""
        requeued = self._returns(job)
        self.lost.append((job.index, job.start, job.end, int(requeued), job.kind))
        if requeued:
            job.submit, job.runtime = self.now + REQUEUE_DELAY, self.runtimes[job.index]
            job.start, job.ticket, job.due = -1, -1, NEVER
            self.coming.add(job.index)
            heappush(self.arrivals, (job.submit, job.index))
        return requeued

    def _returns(self, job: SlurmJob) -> bool:
        """Return whether a preempted job goes back to the queue."""
        assert self.machine.preemption is not None
        return bool(self.machine.preemption.requeue[job.preemption])

    def _release_nodes(self, job: SlurmJob) -> None:
        self.running.remove(job)
        self.free[:, job.given.nodes] += job.given.amounts

    def _schedule(self, came: bool, gone: bool) -> None:
        s = self.settings
        full = s["sched_interval"] > 0 and self.now % s["sched_interval"] == 0 and self._news_for_all
        if full or gone or (came and not s["defer"]):
            self._main_pass(len(self.waiting) if full else s["default_queue_depth"])
            if full:
                self._news_for_all = False
        if any(job.expected_end <= self.now for job in self.running):
            self._news = True
        if s["scheduler_type"] == "backfill" and self._news and self.now % s["bf_interval"] == 0:
            self._news = False
            self._cycle()
        if any(self.now - job.submit < s["bf_min_age_reserve"] for job in self.waiting):
            self._news = True
        if self.machine.run_seconds and self.running:
            self._news = self._news_for_all = True
        if self.waiting and any(self._is_exempt(job) for job in self.running):
            self._news = self._news_for_all = True

    def _is_within_limits(self, job: SlurmJob) -> bool:
        """Return whether a job may start next to the running ones, by numbers and by what they have until their limits."""
        for k in set(job.limits) if self.machine.run_seconds else ():
            group = [other for other in self.running if k in other.limits]
            left = sum(other.procs * max(0, other.start + other.limit - self.now) for other in group)
            if left + job.procs * job.believed > self.machine.run_seconds[k]:
                return False
        return within_limits(job, self.running, self.machine.limits)

    def priority(self, job: SlurmJob, when: int) -> int:
        """Return the priority of a job at a time, s."""
        s = self.settings
        if s["priority_type"] == "basic":
            return FIRST_PRIORITY - job.place
        if self.shares is None:
            return 1
        age = min(1.0, (when - job.submit) / max(1, s["priority_max_age"]))
        share = self.shares.factor(job.association)
        return max(1, int(s["priority_weight_age"] * age + s["priority_weight_fairshare"] * share + job.merit))

    def _compute_priorities(self) -> None:
        assert self.shares is not None
        begin, until = self._next_sum - self.settings["priority_calc_period"], self._next_sum
        used: Counter[int] = Counter()
        for job in self.running + self._ended:
            used[job.association] += job.charge * max(0, min(until, job.end) - max(begin, job.start))
        self._ended = [job for job in self._ended if job.end > until]
        self.shares.add(used)
        before = list(self.waiting)
        for job in self.waiting:
            old, job.priority = job.priority, self.priority(job, until)
            if self.settings["bf_min_prio_reserve"] > 0 and job.priority != old:
                self._news = self._news_for_all = True
        self._sort()
        if self.waiting != before:
            self._news = self._news_for_all = True
        self._next_sum += self.settings["priority_calc_period"]

    def _sort(self) -> None:
        self.waiting.sort(key=lambda job: (-job.tier, -job.priority, job.place))

    def _outages(self) -> list[Block]:
        """Return the outages that are known and not over."""
        known = [one for one in self.machine.outages if min(one[3], one[1]) <= self.now < one[2]]
        return [Block(np.asarray(own, np.int64), begin, end, number) for own, begin, end, _, number in known]

    def _reservation(self, job: SlurmJob) -> int:
        """Return the number of a job's reservation, negative if its nodes and times do not bind the job; 0 for none."""
        return self.machine.reservations[job.partition] if self.machine.reservations else 0

    def _main_pass(self, depth: int) -> None:
        closed_partitions: set[int] = set()
        blocks = self._outages()
        tested: Counter[int] = Counter()
        most = self.settings["partition_job_depth"]
        for job in list(self.waiting)[:depth]:
            if job.partition in closed_partitions:
                continue
            tested[job.partition] += 1
            if (most and tested[job.partition] > most) or not self._is_within_limits(job):
                continue
            free = self.usable(job, self.free, self.now, job.believed, blocks)
            if self.is_enough(job, free):
                job.kind = IMMEDIATE if job.submit == self.now else RESERVED
                self._run(job, free, self.now, job.believed)
                self._news = True
                continue
            self._preempt(job, self._victims(job, job.believed, blocks, self._candidates(job)))
            if self._may_reserve(job):
                closed_partitions.add(job.partition)
                if self._reservation(job) == 0:
                    blocks.append(Block(self.partitions[job.partition], self.now, NEVER))

    # ------------------------------------------------------------------ preemption

    def _candidates(self, job: SlurmJob) -> list[SlurmJob]:
        """Return the running jobs that a job may preempt, the first to be preempted first."""
        rules = self.machine.preemption
        if rules is None or self.now < job.awaits:
            return []
        own = self.machine.members[job.members]
        found = [other for other in self.running if rules.may[job.preemption, other.preemption] and not self._is_exempt(other)]
        found = [other for other in found if np.isin(other.given.nodes, own).any()]
        if self.settings["preempt_youngest_first"]:
            return sorted(found, key=lambda other: (-other.start, other.index))
        return sorted(found, key=lambda other: (rules.rank[other.preemption], len(other.given.nodes), other.index))

    def _is_exempt(self, job: SlurmJob) -> bool:
        """Return whether a job of a class that may be preempted has not run for long enough."""
        rules = self.machine.preemption
        if rules is None or not rules.may[:, job.preemption].any():
            return False
        return bool(self.now - job.start < rules.exempt[job.preemption])

    def _victims(self, job: SlurmJob, length: int, blocks: list[Block], candidates: list[SlurmJob]) -> list[SlurmJob]:
        """Return the jobs that must be preempted so that a job can start; none if that is not enough.

        Candidates are removed one after the other until the job fits. Then the last one, and those that have most of the chosen nodes, come
        first, and all is repeated. Source: Slurm 24.11, _run_now of select/cons_tres.
        """
        tries = 0
        while candidates:
            free = self.free.copy()
            gone: list[SlurmJob] = []
            for other in candidates:
                gone.append(other)
                free[:, other.given.nodes] += other.given.amounts
                usable = self.usable(job, free, self.now, length, blocks, gone)
                if self.is_enough(job, usable):
                    break
            else:
                return []
            nodes, tries = self.choose(job, usable).nodes, tries + 1
            if tries > self.settings["preempt_reorder_count"] + 1 or len(candidates) <= tries:
                return [other for other in gone if np.isin(other.given.nodes, nodes).any()]
            before = gone[:-1]
            if not self.settings["preempt_strict_order"]:
                before.sort(key=lambda other: -int(np.isin(other.given.nodes, nodes).sum()))
            candidates = [gone[-1], *before, *candidates[len(gone) :]]
        return []

    def _preempt(self, job: SlurmJob, victims: list[SlurmJob]) -> None:
        """Let running jobs end for a job, after their grace time and not before the next second."""
        rules = self.machine.preemption
        for other in victims:
            assert rules is not None
            end = self.now + max(1, int(rules.grace[other.preemption]))
            if other.expected_end > end:
                other.run_length = end - other.start
            if other.end > end:
                other.runtime, other.due = end - other.start, end
            job.awaits = max(job.awaits, other.end)
            self._news = True

    def _hole(self, job: SlurmJob, length: int, blocks: list[Block], latest: int) -> tuple[int, Free] | None:
        """Return the earliest start of a job as `first_hole`, as if the jobs that it may preempt had ended; preempt them if that is now."""
        candidates = self._candidates(job)
        if candidates and not self.is_enough(job, self.usable(job, self.free, self.now, length, blocks)):
            hole = self.first_hole(job, length, blocks, latest, candidates)
            if hole is None or hole[0] > self.now:
                return hole
            others = np.setdiff1d(np.arange(len(self.capacity[0])), self.choose(job, hole[1]).nodes)
            self._preempt(job, self._victims(job, length, [*blocks, Block(others, self.now, NEVER)], candidates))
        return self.first_hole(job, length, blocks, latest)

    def _may_reserve(self, job: SlurmJob) -> bool:
        s = self.settings
        return job.priority >= s["bf_min_prio_reserve"] and self.now - job.submit >= s["bf_min_age_reserve"]

    def _cycle(self) -> None:
        s = self.settings
        blocks = self._outages()
        tested = started = 0
        tests: Counter[tuple[object, int]] = Counter()  # of a user, of a partition, and of a user in a partition
        reserved: Counter[int] = Counter()
        for job in self._to_backfill():
            if not self._is_within_limits(job):
                continue
            if tested == s["bf_max_job_test"]:
                break
            tested += 1
            counts = (("user", job.user), ("partition", job.partition), (job.user, job.partition))
            most = (s["bf_max_job_user"], s["bf_max_job_part"], s["bf_max_job_user_part"])
            if any(tests[count] >= limit > 0 for count, limit in zip(counts, most, strict=True)):
                continue
            tests.update(counts)
            length = job.time_min or job.believed
            may_reserve = self._may_reserve(job) and not reserved[job.partition] >= s["bf_job_part_count_reserve"] > 0
            may_reserve = may_reserve and not job.unreserved
            hole = self._hole(job, length, blocks, self.now + 60 * s["bf_window"] if may_reserve else self.now)
            if hole is None:
                continue
            begin, free = hole
            if begin > self.now:
                reserved[job.partition] += 1
                job.note_reservation(begin)
                blocks.append(self.reservation(job, free, begin, length))
                continue
            job.kind = BACKFILLED
            self._run(job, free, self.now, self._limit(job, self.choose(job, free).nodes, blocks))
            self._news = True
            started += 1
            if started == s["bf_max_job_start"]:
                break

    def reservation(self, job: SlurmJob, free: Free, begin: int, length: int) -> Block:
        """Return the reservation of nodes for a job that backfill plans to start at `begin` for a length."""
        step = self.settings["bf_resolution"]
        return Block(self.choose(job, free).nodes, max(begin // step * step, self.now), math.ceil((begin + length) / step) * step)

    def _to_backfill(self) -> list[SlurmJob]:
        """Return the jobs that a cycle considers, in order."""
        return list(self.waiting)

    def _limit(self, job: SlurmJob, nodes: Array, blocks: list[Block]) -> int:
        """Return the limit under which backfill starts a job."""
        if not job.time_min or self.settings["time_min_as_soft_limit"]:
            return job.believed
        others = [block for block in blocks if not self._admits(block, job)]
        ahead = [block.begin - self.now for block in others if block.begin > self.now and np.isin(nodes, block.nodes).any()]
        if not ahead or min(ahead) >= job.believed:
            return job.believed
        return max(job.time_min, min(ahead) // 60 * 60)

    def first_hole(
        self, job: SlurmJob, length: int, blocks: list[Block], latest: int, gone: Sequence[SlurmJob] = ()
    ) -> tuple[int, Free] | None:
        """Return the earliest time at which a job has nodes for a length, and these nodes; None if that is after `latest`.

        `gone`: running jobs that count as ended.
        """
        running = [other for other in self.running if other not in gone]
        releases = sorted(((self._release(other), other) for other in running), key=lambda item: item[0], reverse=True)
        moments = {self.now, *(release for release, _ in releases), *(block.end for block in blocks)}
        moments |= {time for one in self.machine.outages if one[4] == self._reservation(job) > 0 for time in one[1:3]}
        free = self.free.copy()
        for other in gone:
            free[:, other.given.nodes] += other.given.amounts
        for moment in sorted(time for time in moments if self.now <= time <= latest and time < NEVER):
            while releases and releases[-1][0] <= moment:
                given = releases.pop()[1].given
                free[:, given.nodes] += given.amounts
            usable = self.usable(job, free, moment, length, blocks, gone)
            if self.is_enough(job, usable):
                return moment, usable
        return None

    def _release(self, job: SlurmJob) -> int:
        """Return when a running job is planned to release its nodes."""
        if job.expected_end > self.now:
            return job.expected_end
        left = (job.start + job.limit - self.now) // 2 if self._is_soft(job) else 0
        return self.now + max(1, left)

    def _is_soft(self, job: SlurmJob) -> bool:
        s = self.settings
        return s["time_min_as_soft_limit"] and s["soft_limit_running"] == "half" and job.time_min > 0

    def usable(self, job: SlurmJob, free: Array, time: int, length: int, blocks: list[Block], gone: Sequence[SlurmJob] = ()) -> Free:
        """Return the nodes of a job's partition that it can use from `time` for `length` s, given `free` on each node.

        `gone`: as in `first_hole`.
        """
        own = self.partitions[job.partition]
        is_open = np.zeros(len(self.capacity[0]), bool)
        is_open[self.machine.members[job.members]] = True
        for block in blocks:
            if block.begin < time + length and block.end > time and not self._admits(block, job):
                is_open[block.nodes] = False
        own_times = [one for one in self.machine.outages if self._reservation(job) == one[4] > 0 and one[2] > time]
        if own_times:
            reserved = [nodes for nodes, begin, *_ in own_times if begin <= time]
            is_open &= np.isin(np.arange(len(is_open)), np.concatenate([*reserved, np.zeros(0, np.int64)]))
        for other in self.running if self.has_sole else ():
            is_there = other not in gone and (time <= self.now or self._release(other) > time)
            if is_there and (job.sole or other.sole) and job.user != other.user:
                is_open[other.given.nodes] = False
        procs, second, memory = free[:, own]
        if job.whole:
            enough = procs == self.capacity[0, own]
        else:
            tasks = procs // job.task
            for amount, each in ((second, job.per_task), (memory, job.task_memory)):
                tasks = np.minimum(tasks, amount // each) if each else tasks
            procs = np.minimum(tasks * job.task, job.most)
            enough = procs >= max(1, job.least)
        places = np.flatnonzero(is_open[own] & enough & (second >= job.each) & (memory >= job.memory))
        return Free(places, self.machine.weight[own[places]], procs[places], second[places])

    def _admits(self, block: Block, job: SlurmJob) -> bool:
        """Return whether a block is the job's own user reservation."""
        return block.reservation > 0 and block.reservation == abs(self._reservation(job))

    def is_enough(self, job: SlurmJob, free: Free) -> bool:
        """Return whether these nodes are enough for a job."""
        if len(free.places) < job.fewest or free.procs.sum() < job.asked or free.second.sum() < job.total:
            return False
        return job.most_nodes == 0 or len(self.choose(job, free).nodes) > 0

    def choose(self, job: SlurmJob, free: Free) -> Given:
        """Choose nodes for a job; none if its maximum number of nodes is not enough.

        In that case, Slurm leaves out the nodes with the fewest free processors, and tries again (_select_nodes).
        """
        for least in [0, *np.unique(free.procs + 1).tolist()] if job.most_nodes else [0]:
            large = free.procs >= least
            part = Free(*(values[large] for values in free))
            given, is_complete = self._collect(job, part) if large.sum() >= job.fewest else (NOTHING, False)
            if is_complete or job.most_nodes == 0:
                return given
        return NOTHING

    def _collect(self, job: SlurmJob, free: Free) -> tuple[Given, bool]:
        """Choose nodes for a job, the best run of consecutive nodes and further ones until it has enough; return whether it has.

        Where a single node of the run is enough, the job gets the one with the fewest free processors of these, else nodes in order. Where
        the least loaded nodes come first, these are one run, in order of weight, then of the share of free processors. The nodes of a job
        that is spread are one run in order of weight. Source: Slurm 24.11, _eval_nodes_consec, _eval_nodes_lln and _eval_nodes_spread.
        """
        usable = [FreeNode(*values) for values in zip(*(values.tolist() for values in free), strict=True)]
        by_run = groupby(enumerate(usable), key=lambda item: (item[1].weight, item[1].place - item[0]))
        runs = [[node for _, node in run] for _, run in by_run]
        one_by_one = bool(job.spread or self.machine.least_loaded[job.partition])
        if job.spread:
            runs = [sorted(usable, key=lambda node: (node.weight, node.place))]
        elif one_by_one:
            whole = self.capacity[0, self.partitions[job.partition]].tolist()
            runs = [sorted(usable, key=lambda node: (node.weight, -Fraction(node.procs, whole[node.place])))]
        given: list[tuple[int, int, int, int]] = []
        nodes, procs, total = job.fewest, job.asked, job.total  # still needed
        most = job.most_nodes or len(usable)

        while max(nodes, procs, total) > 0 and runs and len(given) < most:
            best = _best_run(runs, nodes, procs, total)
            runs.remove(best)
            if nodes <= 1 and not one_by_one:
                enough = [node for node in best if node.procs >= procs and node.second >= total]
                best = [min(enough, key=lambda node: node.procs)] if enough else best
            for node in best:
                if max(nodes, procs, total) <= 0 or len(given) == most:
                    break
                if job.most_nodes - len(given) == 1 and node.procs < procs:
                    continue
                taken = node.procs if job.whole else min(node.procs, procs - max(0, nodes - 1) * job.task)
                second = min(node.second, total) if job.total else job.each or job.per_task * (taken // job.task)
                if taken <= 0 and (job.total == 0 or second == 0):
                    continue
                memory = 0 if job.whole else job.memory or job.task_memory * (taken // job.task)
                given.append((node.place, taken, second, memory))
                nodes, procs, total = max(0, nodes - 1), procs - taken, total - (second if job.total else 0)
        table = np.array(given, np.int64).reshape(len(given), 4)
        return Given(self.partitions[job.partition][table[:, 0]], table[:, 1:].T), max(nodes, procs, total) <= 0

    def _run(self, job: SlurmJob, free: Free, start: int, limit: int) -> None:
        job.given, job.start, job.limit, job.ticket = self.choose(job, free), start, limit, self._started
        self.free[:, job.given.nodes] -= job.given.amounts
        self._started += 1
        if self.kill and limit < job.believed:
            job.runtime = min(job.runtime, limit)
        job.run_length = job.time_min if self._is_soft(job) else limit
        if job in self.waiting:
            self.waiting.remove(job)
        self.running.append(job)

    @property
    def lost_runs(self) -> LostRuns | None:
        """Return the preempted runs; None on machines without preemption."""
        if self.machine.preemption is None:
            return None
        return LostRuns(*np.array(self.lost, np.int64).reshape(len(self.lost), len(LostRuns._fields)).T.copy())

    @property
    def slots(self) -> tuple[Array, Array, Array, Array]:
        """Return the jobs' shares of nodes: job, node, processors, second resource; in order of job and node."""
        job = np.repeat(np.arange(len(self.jobs)), [len(job.given.nodes) for job in self.jobs])
        nodes = np.concatenate([job.given.nodes for job in self.jobs])
        procs, second, _ = np.concatenate([job.given.amounts for job in self.jobs], axis=1)
        order = np.lexsort((nodes, job))
        return job[order], nodes[order], procs[order], second[order]


def _best_run(runs: list[list[FreeNode]], nodes: int, procs: int, second: int) -> list[FreeNode]:
    """Return the run of nodes that Slurm takes next: the tightest sufficient run of the lowest weight, else the biggest run.

    As in Slurm, each run is compared with the best so far, so that a bigger run of too few nodes may come before one that suffices.
    """
    lowest = min(run[0].weight for run in runs)
    best, best_size, best_suffices = runs[0], -1, False
    for run in runs:
        if run[0].weight > lowest:
            continue
        size = sum(node.procs for node in run)
        suffices = len(run) >= nodes and size >= procs and sum(node.second for node in run) >= second
        if best_size < 0 or ((not best_suffices or size < best_size) if suffices else size > best_size):
            best, best_size, best_suffices = run, size, suffices
    return best
