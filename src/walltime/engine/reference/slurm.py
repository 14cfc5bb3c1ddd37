"""The reference engine for Slurm's scheduling: the rules of kernel/nodes/loop.py in plain Python, slow and independent of it."""

import copy
import math
from collections import Counter
from heapq import heappop, heappush

import numpy as np

from walltime.engine.machines import NEVER, REQUEUE_DELAY, REQUEUED, LostRuns
from walltime.engine.problem import Problem, overfull
from walltime.engine.reference.nodes import Block, Free, NodesInUse, SlurmJob
from walltime.engine.reference.plain import BACKFILLED, IMMEDIATE, RESERVED, followers_of, release_followers, within_limits
from walltime.engine.reference.shares import FairShares
from walltime.errors import EngineError

Array = np.ndarray
FIRST_PRIORITY = 4_294_901_760


class SlurmReference(NodesInUse):
    """A simulation of Slurm's scheduling; `step` it to its end, then read `jobs` and `slots`."""

    def __init__(self, problem: Problem):
        super().__init__(problem)
        machine, settings = self.machine, self.settings
        assert problem.shares is not None
        self.kill = problem.kill
        self.lost: list[tuple[int, ...]] = []
        self.waiting: list[SlurmJob] = []
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
        self._ended: list[SlurmJob] = []  # since past usage was last summed

    def _place_first(self) -> None:
        self.begun = True
        for job in sorted((job for job in self.jobs if job.since < NEVER), key=lambda job: (job.since, job.index)):
            free = self.usable(job, self.free, 0, 1, [])
            if not self.is_enough(job, free):
                raise overfull(job.index)
            self._run(job, free, job.since, job.planned)

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
        """Return the times of the next priority calculation and of the next passes for waiting jobs."""
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
        """Process all events of this instant before the schedulers run; return whether a job arrived, and whether one ended."""
        while self.shares is not None and self._next_sum <= self.now:
            self._compute_priorities()
        self._lose_nodes()
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

    def _lose_nodes(self) -> None:
        """End the running jobs on nodes of an outage that begins now and does not let jobs continue."""
        for outage, loss in zip(self.machine.outages, self.machine.losses, strict=False):
            for job in self.running if loss and outage[1] == self.now else ():
                if job.end > self.now and np.isin(job.given.nodes, outage[0]).any():
                    job.runtime, job.due, job.returns, job.failed = self.now - job.start, self.now, loss == REQUEUED, True

    def _lose(self, job: SlurmJob) -> bool:
        """Record the run of a job that ends early; return whether the job returns to the queue."""
        requeued = self._returns(job)
        self.lost.append((job.index, job.start, job.end, int(requeued), job.kind, int(job.failed)))
        if requeued:
            job.submit, job.runtime = self.now + REQUEUE_DELAY, self.runtimes[job.index]
            job.start, job.ticket, job.due, job.failed = -1, -1, NEVER, False
            self.coming.add(job.index)
            heappush(self.arrivals, (job.submit, job.index))
        return requeued

    def _returns(self, job: SlurmJob) -> bool:
        """Return whether a job whose run ended early returns to the queue."""
        return job.returns

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
        """Return whether a job may start under the limits on amounts in use, and on processor-seconds left to running jobs."""
        for k in set(job.limits) if self.machine.run_seconds else ():
            group = [other for other in self.running if k in other.limits]
            left = sum(other.procs * max(0, other.start + other.limit - self.now) for other in group)
            if left + job.procs * job.planned > self.machine.run_seconds[k]:
                return False
        return within_limits(job, self.running, self.machine.limits)

    def _held(self, limit: int) -> Array:
        """Return the nodes of the running jobs of a limit."""
        return np.unique(np.concatenate([np.zeros(0, np.int64), *(job.given.nodes for job in self.running if limit in job.limits)]))

    def _exceeds_nodes(self, job: SlurmJob, nodes: Array | None = None) -> bool:
        """Return whether a job would exceed a limit on nodes by starting on these nodes; by default on as many unused ones as it requests.

        A job is not held while no job of the limit runs. Source: Slurm 24.11, _get_unique_job_node_cnt of acct_policy.c.
        """
        for k in job.limits if self.machine.node_limits else ():
            held = self._held(k)
            after = len(held) + max(1, job.fewest) if nodes is None else len(np.union1d(held, nodes))
            if len(held) and after > self.machine.node_limits[k]:
                return True
        return False

    def _heavier_nodes(self, job: SlurmJob) -> Array | None:
        """Return the nodes whose weight the main scheduler increases by 1, bool; None if there are none.

        They are nodes without jobs of a limit on nodes, in pools where it has nodes. Source: Slurm 24.11, _build_node_list.
        """
        limits = [k for k in job.limits if self.machine.node_limits and self.machine.node_limits[k] < NEVER]
        if not limits:
            return None
        held, own = (np.zeros(len(self.capacity[0]), bool) for _ in range(2))
        held[np.concatenate([self._held(k) for k in limits])] = True
        own[self.machine.members[job.members]] = True
        return own & ~held & np.isin(self.machine.pool, self.machine.pool[own & held])

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
        """Return the nodes and times of the outages that are known and have not ended."""
        known = [one for one in self.machine.outages if min(one[3], one[1]) <= self.now < one[2]]
        return [Block(np.asarray(own, np.int64), begin, end, number) for own, begin, end, _, number in known]

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
            self.heavier = self._heavier_nodes(job)
            free = self.usable(job, self.free, self.now, job.planned, blocks)
            if self.is_enough(job, free):
                if self._exceeds_nodes(job, self.choose(job, free).nodes):
                    continue
                job.kind = IMMEDIATE if job.submit == self.now else RESERVED
                self._run(job, free, self.now, job.planned)
                self._news = True
                continue
            self._preempt(job, self._victims(job, job.planned, blocks, self._candidates(job)))
            if self._may_reserve(job) and not self._exceeds_nodes(job):
                closed_partitions.add(job.partition)
                if self._reservation(job) == 0:
                    blocks.append(Block(self.partitions[job.partition], self.now, NEVER))
        self.heavier = None

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
        """Return the jobs that must be preempted so that a job can start; none if even all candidates do not suffice.

        Candidates are removed one after the other until the job fits. Then the last one moves to the front, followed by the others, those
        with the most chosen nodes first, and the procedure is repeated. Source: Slurm 24.11, _run_now of select/cons_tres.
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
                gone = [] if self._exceeds_nodes(job, nodes) else gone
                return [other for other in gone if np.isin(other.given.nodes, nodes).any()]
            before = gone[:-1]
            if not self.settings["preempt_strict_order"]:
                before.sort(key=lambda other: -int(np.isin(other.given.nodes, nodes).sum()))
            candidates = [gone[-1], *before, *candidates[len(gone) :]]
        return []

    def _preempt(self, job: SlurmJob, victims: list[SlurmJob]) -> None:
        """Preempt running jobs for a job, after their grace time and not before the next second."""
        rules = self.machine.preemption
        for other in victims:
            assert rules is not None
            end = self.now + max(1, int(rules.grace[other.preemption]))
            if other.expected_end > end:
                other.run_length = end - other.start
            if other.end > end:
                other.runtime, other.due, other.returns = end - other.start, end, bool(rules.requeue[other.preemption])
            job.awaits = max(job.awaits, other.end)
            self._news = True

    def _gap(self, job: SlurmJob, length: int, blocks: list[Block], latest: int) -> tuple[int, Free] | None:
        """Return the earliest start of a job if the jobs that it may preempt counted as ended; preempt them if it is now."""
        candidates = self._candidates(job)
        if candidates and not self.is_enough(job, self.usable(job, self.free, self.now, length, blocks)):
            gap = self.first_gap(job, length, blocks, latest, candidates)
            if gap is None or gap[0] > self.now or self._exceeds_nodes(job, self.choose(job, gap[1]).nodes):
                return gap
            others = np.setdiff1d(np.arange(len(self.capacity[0])), self.choose(job, gap[1]).nodes)
            self._preempt(job, self._victims(job, length, [*blocks, Block(others, self.now, NEVER)], candidates))
        return self.first_gap(job, length, blocks, latest)

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
            length = job.time_min or job.planned
            may_reserve = self._may_reserve(job) and not reserved[job.partition] >= s["bf_job_part_count_reserve"] > 0
            may_reserve = may_reserve and not job.unreserved
            gap = self._gap(job, length, blocks, self.now + 60 * s["bf_window"] if may_reserve else self.now)
            if gap is None:
                continue
            begin, free = gap
            if self._exceeds_nodes(job, self.choose(job, free).nodes):
                continue
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

    def _to_backfill(self) -> list[SlurmJob]:
        """Return the jobs that a backfill cycle considers, in the order of the queue."""
        return list(self.waiting)

    def _limit(self, job: SlurmJob, nodes: Array, blocks: list[Block]) -> int:
        """Return the time limit, s, with which backfill starts a job on these nodes."""
        if not job.time_min or self.settings["time_min_as_soft_limit"]:
            return job.planned
        others = [block for block in blocks if not self._admits(block, job)]
        ahead = [block.begin - self.now for block in others if block.begin > self.now and np.isin(nodes, block.nodes).any()]
        if not ahead or min(ahead) >= job.planned:
            return job.planned
        return max(job.time_min, min(ahead) // 60 * 60)

    def _run(self, job: SlurmJob, free: Free, start: int, limit: int) -> None:
        job.given, job.start, job.limit, job.ticket = self.choose(job, free), start, limit, self._started
        self.free[:, job.given.nodes] -= job.given.amounts
        self._started += 1
        if self.kill and limit < job.planned:
            job.runtime = min(job.runtime, limit)
        job.run_length = job.time_min if self._is_soft(job) else limit
        if job in self.waiting:
            self.waiting.remove(job)
        self.running.append(job)

    @property
    def lost_runs(self) -> LostRuns | None:
        """Return the runs that ended early; None on a machine without preemption."""
        if self.machine.preemption is None:
            return None
        return LostRuns(*np.array(self.lost, np.int64).reshape(len(self.lost), len(LostRuns._fields)).T.copy())
