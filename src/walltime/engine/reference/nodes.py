"""Single nodes in the reference engine, in plain Python: free and reserved amounts, and the nodes that a job gets by Slurm's rules."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

import numpy as np

from walltime.engine.machines import NEVER, NodeDemands, Nodes, row_of_amounts
from walltime.engine.problem import Problem
from walltime.engine.reference.plain import Job

Array = np.ndarray


class FreeNode(NamedTuple):
    """A node that a job can use: its position in the job's partition, its weight, and the amounts that the job can use."""

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
    """The nodes of a job in the order of their choice, and its amounts on each, in the rows of `Nodes.amounts`."""

    nodes: Array
    amounts: Array


NOTHING = Given(np.zeros(0, np.int64), np.zeros((3, 0), np.int64))


@dataclass(eq=False)
class SlurmJob(Job):
    """A job, with its needs as in `problem.NodeDemands`.

    * `fewest`: the smallest number of nodes
    * `due`: when it is preempted or loses a node, else NEVER; `returns`: whether it is then requeued; `failed`: whether it loses a node
    * `awaits`: the last end of the jobs that it preempts
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
    second_row: int = 0
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
    returns: bool = False
    failed: bool = False
    awaits: int = -NEVER


@dataclass
class Block:
    """Nodes that are reserved in [begin, end) for jobs of a user `reservation`, 0 for none, or for a job that backfill has `planned`."""

    nodes: Array
    begin: int
    end: int
    reservation: int = 0
    by_plan: bool = False


class NodesInUse:
    """The nodes of a machine, the jobs that run on them, and the choice of nodes for a job by Slurm's rules; `now`: the time, s."""

    def __init__(self, problem: Problem):
        machine, demands = problem.machine, problem.demands
        assert isinstance(machine, Nodes)
        assert isinstance(demands, NodeDemands)
        self.machine, self.settings = machine, problem.settings
        self.capacity = machine.amounts
        self.free = self.capacity.copy()
        self.partitions = [np.asarray(own, np.int64) for own in machine.partitions]
        self.jobs: list[SlurmJob] = []
        columns = demands._asdict()
        after, limits, fewest = (columns.pop(name) for name in ("after", "limits", "nodes"))
        needs = [dict(zip(columns, row, strict=True)) for row in zip(*(column.tolist() for column in columns.values()), strict=True)]
        for k, row in enumerate(problem.rows()):
            tier = machine.tiers[needs[k]["partition"]]
            job = SlurmJob(k, *row, fewest=int(fewest[k]), limits=list(limits[k]), tier=tier, **needs[k])
            job.time_min = job.time_min if job.time_min < job.planned else 0
            job.waits_for.update(after[k])
            self.jobs.append(job)
        self.has_sole = any(job.sole for job in self.jobs)
        self.now = 0
        self.heavier: Array | None = None  # nodes whose weight is increased by 1 for the job being considered
        self.running: list[SlurmJob] = []

    def _reservation(self, job: SlurmJob) -> int:
        """Return the number of a job's user reservation, 0 without one; negative if the job is not bound to its nodes and times."""
        return self.machine.reservations[job.partition] if self.machine.reservations else 0

    def usable(self, job: SlurmJob, free: Array, time: int, length: int, blocks: list[Block], gone: Sequence[SlurmJob] = ()) -> Free:
        """Return the nodes that a job can use from `time` on for `length` s, given `free` amounts of each node, as in `Nodes.amounts`.

        `gone`: running jobs that are treated as ended. A job must end before a planned block begins, not when it does. Source: Slurm 24.11,
        _attempt_backfill of backfill.c (begin_time <= end_time).
        """
        own = self.partitions[job.partition]
        is_open = np.zeros(len(self.capacity[0]), bool)
        is_open[self.machine.members[job.members]] = True
        for block in blocks:
            if block.begin < time + length + block.by_plan and block.end > time and not self._admits(block, job):
                is_open[block.nodes] = False
        own_times = [one for one in self.machine.outages if self._reservation(job) == one[4] > 0 and one[2] > time]
        if own_times:
            reserved = [nodes for nodes, begin, *_ in own_times if begin <= time]
            is_open &= np.isin(np.arange(len(is_open)), np.concatenate([*reserved, np.zeros(0, np.int64)]))
        for other in self.running if self.has_sole else ():
            is_there = other not in gone and (time <= self.now or self._release(other) > time)
            if is_there and (job.sole or other.sole) and job.user != other.user:
                is_open[other.given.nodes] = False
        procs, second, memory = free[0, own], free[row_of_amounts(job.second_row), own], free[2, own]
        if job.whole:
            enough = procs == self.capacity[0, own]
        else:
            tasks = procs // job.task
            for amount, each in ((second, job.per_task), (memory, job.task_memory)):
                tasks = np.minimum(tasks, amount // each) if each else tasks
            procs = np.minimum(tasks * job.task, job.most)
            enough = procs >= max(1, job.least)
        places = np.flatnonzero(is_open[own] & enough & (second >= job.each) & (memory >= job.memory))
        weight = self.machine.weight if self.heavier is None else self.machine.weight + self.heavier
        return Free(places, weight[own[places]], procs[places], second[places])

    def _admits(self, block: Block, job: SlurmJob) -> bool:
        """Return whether a block is the job's own user reservation."""
        return block.reservation > 0 and block.reservation == abs(self._reservation(job))

    def is_enough(self, job: SlurmJob, free: Free) -> bool:
        """Return whether these nodes suffice for a job."""
        if len(free.places) < job.fewest or free.procs.sum() < job.asked or free.second.sum() < job.total:
            return False
        return job.most_nodes == 0 or len(self.choose(job, free).nodes) > 0

    def choose(self, job: SlurmJob, free: Free) -> Given:
        """Choose nodes for a job; none if they would exceed its maximum number of nodes.

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
        """Choose nodes for a job: the best run of consecutive nodes, and additional runs until it has enough; return whether it has.

        If a single node of a run suffices, the job gets the sufficient node with the fewest free processors, else the nodes in order. If
        the least loaded nodes come first, all nodes form one run, in order of weight, then of the share of free processors. For a job that
        is spread, they form one run in order of weight. Source: Slurm 24.11, _eval_nodes_consec, _eval_nodes_lln and _eval_nodes_spread.
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
        amounts = self.machine.allocated(np.full(len(table), job.second_row), *table[:, 1:].T)
        return Given(self.partitions[job.partition][table[:, 0]], amounts), max(nodes, procs, total) <= 0

    def first_gap(
        self, job: SlurmJob, length: int, blocks: list[Block], latest: int, gone: Sequence[SlurmJob] = ()
    ) -> tuple[int, Free] | None:
        """Return the earliest time, up to `latest`, when nodes for a job are free for `length` s, and the usable nodes; None if never.

        `gone`: running jobs that are treated as ended.
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
        """Return the time at which a running job is planned to release its nodes."""
        if job.expected_end > self.now:
            return job.expected_end
        left = (job.start + job.limit - self.now) // 2 if self._is_soft(job) else 0
        return self.now + max(1, left)

    def _is_soft(self, job: SlurmJob) -> bool:
        s = self.settings
        return s["time_min_as_soft_limit"] and s["soft_limit_running"] == "half" and job.time_min > 0

    def reservation(self, job: SlurmJob, free: Free, begin: int, length: int) -> Block:
        """Return the reservation of nodes for a job that backfill plans to start at `begin` and to run for `length` s."""
        step = self.settings["bf_resolution"]
        nodes, end = self.choose(job, free).nodes, math.ceil((begin + length) / step) * step
        return Block(nodes, max(begin // step * step, self.now), end, by_plan=True)

    @property
    def slots(self) -> tuple[Array, Array, Array, Array]:
        """Return the jobs' shares of nodes: job, node, processors, second resource; in order of job and node."""
        job = np.repeat(np.arange(len(self.jobs)), [len(job.given.nodes) for job in self.jobs])
        nodes = np.concatenate([job.given.nodes for job in self.jobs])
        amounts = np.concatenate([job.given.amounts for job in self.jobs], axis=1)
        order = np.lexsort((nodes, job))
        return job[order], nodes[order], amounts[0, order], (amounts[1] + amounts[3:].sum(axis=0))[order]


def _best_run(runs: list[list[FreeNode]], nodes: int, procs: int, second: int) -> list[FreeNode]:
    """Return the run of nodes that Slurm takes next, among those of the lowest weight: the smallest sufficient one, or else the largest.

    As in Slurm, each run is compared only with the best one so far, so a large run with too few nodes may be preferred to a sufficient one.
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
