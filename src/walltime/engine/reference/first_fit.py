"""The reference engine for first fit on individual nodes: the rules of kernel/nodes/easy.py, written independently in plain Python."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from walltime.engine.machines import NEVER, Demands, NodeDemands, Nodes, Pools, row_of_amounts
from walltime.engine.problem import Problem, Ragged
from walltime.engine.reference.pools import ClusterJob, ClusterReference, Pass, Reservation, Shortage

Array = np.ndarray


class Request(NamedTuple):
    """The needs of a job: the nodes that it may use, in `order`; the other fields are those of `problem.NodeDemands`."""

    order: list[int]
    nodes: int
    most_nodes: int
    whole: int
    asked: int
    task: int
    least: int
    most: int
    total: int
    each: int
    per_task: int
    second_row: int
    memory: int
    task_memory: int


class NodesReference(ClusterReference):
    """A simulation on individual nodes: like the one on pools, but jobs take nodes by first fit.

    `capacity`, `given` and the levels of the plan have a row for each node, with the columns of `Nodes.amounts`.
    """

    def __init__(self, problem: Problem):
        nodes, demands = problem.machine, problem.demands
        assert isinstance(nodes, Nodes)
        assert isinstance(demands, NodeDemands)
        none = Ragged.empty(len(problem))
        of_pools = Demands(demands.second, demands.partition, demands.since, demands.after, demands.limits, none)
        super().__init__(replace(problem, machine=_pools_of(nodes), demands=of_pools))
        self.nodes, self.demands = nodes, demands
        self.capacity = nodes.amounts.T.copy()
        for own, begin, end, known, _ in nodes.outages:
            self.shortages.append(Shortage(begin, end, known, np.zeros_like(self.capacity)))
            self.shortages[-1].missing[list(own)] = self.capacity[list(own)]
        nothing = np.zeros_like(self.capacity)
        for job in self.jobs:
            job.given = nothing
        self.requests = [self._request(k) for k in range(len(problem))]

    def _request(self, k: int) -> Request:
        """Return the needs of a job on the nodes that it may use, in the order of its partition."""
        own = set(self.nodes.members[self.demands.members[k]].tolist())
        order = [node for node in self.nodes.partitions[self.demands.partition[k]].tolist() if node in own]
        return Request(order, *(int(getattr(self.demands, name)[k]) for name in Request._fields[1:]))

    def _closed(self, so_far: Pass) -> list[int]:
        return np.flatnonzero(np.isin(self.nodes.pool, list(so_far.closed))).tolist()

    def _share(self, job: ClusterJob, free: Array) -> Array | None:
        """Return a job's share of each node; None if there is not enough."""
        request, usable = self.requests[job.index], []
        units = int(row_of_amounts(request.second_row))  # the column of its second resource
        for node in request.order:
            procs = self._usable_procs(request, node, free[node].tolist())
            if procs > 0:
                usable.append((node, procs, int(free[node, units])))
        for fewest in [0, *sorted({procs + 1 for _, procs, _ in usable})] if request.most_nodes else [0]:
            taken = _first_fit(request, [one for one in usable if one[1] >= fewest])
            if taken is not None:
                given = np.zeros_like(free)
                for node, *amounts in taken:
                    given[node, [0, units, 2]] = amounts
                return given
        return None

    def _usable_procs(self, request: Request, node: int, free: Sequence[int]) -> int:
        """Return how many processors of a node a job can use, given the node's free amounts; 0 if the node is not usable."""
        procs, second, memory = free[0], free[int(row_of_amounts(request.second_row))], free[2]
        if second < request.each or memory < request.memory:
            return 0
        if request.whole:
            return procs if procs == self.capacity[node, 0] else 0
        tasks = procs // request.task
        for amount, each in ((second, request.per_task), (memory, request.task_memory)):
            tasks = min(tasks, amount // each) if each else tasks
        procs = min(tasks * request.task, request.most)
        return procs if procs >= max(1, request.least) else 0

    def _fits(self, job: ClusterJob, begin: int, so_far: Pass) -> Array | None:
        """Return the shares of nodes that a job would take if it began then; None if it does not fit for its planned length.

        If only heads have reservations, a reservation is a time without particular nodes. The job then takes the first nodes that fit, and
        each head whose reservation begins before the job's planned end must still fit at that time.
        """
        if self.passes.kind not in ("head", "relaxed"):
            return super()._fits(job, begin, so_far)
        given = super()._fits(job, begin, replace(so_far, reserved=[]))
        if given is None:
            return None
        for head, shadow, _ in so_far.reserved:
            if begin + max(job.planned, 1) > shadow and super()._fits(head, shadow, Pass(reserved=[(job, begin, given)])) is None:
                return None
        return given

    def _compress(self, queue: Sequence[ClusterJob], planned: dict[int, Reservation]) -> None:
        """Move the reservation of each job, in turn, to its earliest possible start.

        If a node on which a job has only GPUs has no free processor left, its old reservation cannot be found again; the job then keeps it.
        """
        for job in queue:
            old = planned.pop(job.index)
            job.reservation = NEVER
            self._reserve(job, planned)
            if job.reservation > old[1]:
                planned[job.index] = old
                _, job.reservation, job.given = old

    @property
    def slots(self) -> tuple[Array, Array, Array, Array]:
        """Return the jobs' shares of nodes: job, node, processors, second resource; in order of job and node."""
        nodes = [np.flatnonzero(np.delete(job.given, 2, axis=1).any(axis=1)) for job in self.jobs]
        amounts = np.concatenate([job.given[own] for job, own in zip(self.jobs, nodes, strict=True)])
        second = np.delete(amounts, [0, 2], axis=1).sum(axis=1)
        return np.repeat(np.arange(len(nodes)), [len(own) for own in nodes]), np.concatenate(nodes), amounts[:, 0], second


def _first_fit(request: Request, usable: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int, int]] | None:
    """Return a job's nodes, each with the processors, second resource and memory that it takes there; None if they are not enough.

    The job takes from each node as much as it still needs.
    """
    taken: list[tuple[int, int, int, int]] = []
    nodes, procs, total = request.nodes, request.asked, request.total  # still needed
    for node, free, units in usable:
        left = request.most_nodes - len(taken)
        if max(nodes, procs, total) <= 0 or (request.most_nodes and left == 0):
            break
        if left == 1 and free < procs:
            continue
        own = free if request.whole else min(free, procs - max(0, nodes - 1) * request.task)
        second = min(units, total) if request.total else request.each or request.per_task * (own // request.task)
        if own <= 0 and (request.total == 0 or second == 0):
            continue
        memory = 0 if request.whole else request.memory or request.task_memory * (own // request.task)
        taken.append((node, own, second, memory))
        nodes, procs, total = max(0, nodes - 1), procs - own, total - (second if request.total else 0)
    return taken if max(nodes, procs, total) <= 0 else None


def _pools_of(nodes: Nodes) -> Pools:
    """Return the pools of a machine of nodes, without outages, which belong to nodes."""
    capacity = np.zeros((int(nodes.pool.max()) + 1, 2), np.int64)
    np.add.at(capacity, nodes.pool, np.stack([nodes.procs, nodes.second], axis=1))
    partitions = [list(dict.fromkeys(nodes.pool[own].tolist())) for own in nodes.partitions]
    return Pools(capacity, partitions, nodes.tiers, (), nodes.limits)
