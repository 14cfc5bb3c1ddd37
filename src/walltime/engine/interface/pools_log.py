"""The jobs and the memory of a simulation on a machine of several pools, for a `Branch`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from walltime.engine.interface.agenda import Agenda
from walltime.engine.interface.branch import Layout, Log, are_the_same, fill_from, take_state, without
from walltime.engine.interface.load import cluster_loop_name
from walltime.engine.interface.orders import LoweredOrder
from walltime.engine.kernel.memory import ITEM, records
from walltime.engine.kernel.pools.memory import (
    CLUSTER_JOB,
    PLACES_IN_BLOCK,
    ClusterMemory,
    Lists,
    Restraints,
    new_cluster_memory,
)
from walltime.engine.problem import NEVER, Demands, Problem
from walltime.errors import WorkloadError

Array = np.ndarray
NOBODY = np.zeros(0, np.int64)
NO_LISTS = Lists(np.zeros(1, np.int64), NOBODY)
NOBODY_LATER = records(ITEM, 0)


class PoolsLog(Log):
    """`memory`: of all jobs, of which those that have not arrived are as they were given."""

    machine = "pools"
    agenda: Agenda

    def __init__(self, problem: Problem, memory: ClusterMemory, orders: tuple[LoweredOrder, ...], agenda: Agenda):
        super().__init__()
        self.agenda = agenda
        self.submit, self.procs, self.machine_procs, self.orders = problem.submit, problem.procs, problem.machine_procs, orders
        self.jobs, self.rules, machine = memory.jobs.copy(), memory.rules, memory.machine
        self.limits_of, self.followers = machine.limits_of, machine.followers
        self.pools_of, self.partitions_of = machine.pools_of, machine.partitions_of
        self.outages, self.limits = machine.outages, machine.limits
        self.predicted = bool(memory.rules.predicts)
        self.coming = np.arange(len(problem))
        machine_of: Any = problem.machine
        self.capacity = np.asarray(machine_of.capacity, np.int64)

    @staticmethod
    def of(problem: Problem, memory: ClusterMemory, orders: tuple[LoweredOrder, ...], agenda: Agenda) -> PoolsLog | None:
        """The log of a simulation; None where jobs wait for others, or run at first after ones that do not."""
        demands = problem.demands
        assert isinstance(demands, Demands)
        waits = len(memory.machine.followers.items) > 0
        return None if waits or not come_first(demands.since) else PoolsLog(problem, memory, orders, agenda)

    def continues(self, memory: ClusterMemory, first: int) -> bool:
        """Whether the jobs that have arrived in a simulation with this memory are under the same limits there."""
        if not isinstance(memory, ClusterMemory) or self.predicted:  # other jobs have other numbers of keys
            return False
        arrived = self.span(memory)[1]
        if first + arrived == 0:  # windows are looked at from the first arrival on, which may be another one now
            return False
        same = have_the_same(self.limits_of, self.limits, memory.machine, first, arrived)
        return same and are_the_same(self.jobs[first : first + arrived], memory.jobs[:arrived], ("submit", "procs", "second", "partition"))

    @staticmethod
    def live(memory: ClusterMemory) -> tuple[int, tuple[Array, ...]]:
        """The next job that comes, and those that have a place in the queue, are deferred, run, and whose ends are still to come."""
        state, machine, line = memory.state, memory.machine, memory.line
        arrived = int(machine.coming[state.next_coming]) if state["next_coming"] < len(machine.coming) else len(memory.jobs)
        running, events = machine.running["job"][: int(state["running"])], machine.events["job"][: int(state["events"])]
        return arrived, (in_line(memory), line.deferred[: int(state["deferred"])], running, events)

    def layout(self, _memory: ClusterMemory, jobs: int) -> Layout:
        """Of the memory for so many jobs."""
        if jobs not in self.layouts:
            waiting = Restraints(NO_LISTS, NO_LISTS, np.full(jobs, NEVER))
            memory = new_cluster_memory(
                self.rules, records(CLUSTER_JOB, jobs), self.capacity, self.pools_of, self.outages.copy(), self.limits.copy(), waiting
            )
            shared = "pools_of", "partitions_of", "changes", "limits_of", "followers", "coming", "later"
            memory = memory._replace(machine=without(memory.machine, *shared))
            scratch = (memory.line.candidates, memory.plan.least, *(() if memory.kept is None else (memory.kept.since, memory.kept.before)))
            self.layouts[jobs] = Layout(memory, scratch)
        return self.layouts[jobs]

    def completed(self, memory: ClusterMemory, first: int, jobs: int) -> ClusterMemory:
        """The memory for so many jobs from the first one on."""
        machine = memory.machine._replace(
            pools_of=self.pools_of,
            partitions_of=self.partitions_of,
            changes=self.agenda.changes,
            limits_of=part_of(self.limits_of, first, jobs),
            followers=part_of(self.followers, first, jobs),
            coming=self.coming[:jobs],
            later=NOBODY_LATER,
        )
        return memory._replace(jobs=memory.jobs[:jobs], machine=machine)

    def take_over(self, memory: ClusterMemory, source: ClusterMemory, gone: int, arrived: int) -> None:
        """Take over what another memory knows."""
        old, machine, former = source.state, memory.machine, source.machine
        take_state(memory, source, gone, arrived)
        machine.given[: arrived - gone] = former.given[gone:arrived]
        for name in ("pools", "partitions", "outages", "limits"):
            getattr(machine, name)[:] = getattr(former, name)
        fill_from(machine.running, former.running[: int(old["running"])], gone, "job")
        fill_from(machine.events, former.events[: int(old["events"])], gone, "job", "tie")  # ties are numbers of starts
        line, places = memory.line, int(old["waiting"])
        fill_from(line.queue, source.line.queue[:places], gone, "job")
        blocks = -(-places // PLACES_IN_BLOCK)
        line.blocks[:blocks] = source.line.blocks[:blocks]
        words = min(len(line.live), len(source.line.live))
        line.live[:words] = source.line.live[:words]
        fill_from(line.deferred, source.line.deferred[: int(old["deferred"])], gone)
        if len(line.parked):
            fill_from(line.parked, source.line.parked[gone:arrived], gone, "next", "last", "entered", "next_group")
        machine.limits["first_group"] -= gone
        steps = max(int(old["steps"]), 1)  # the first has the time of the last pass
        memory.plan.time[:steps] = source.plan.time[:steps]
        memory.plan.free[..., :steps], memory.plan.room[:, :steps] = source.plan.free[..., :steps], source.plan.room[:, :steps]
        if memory.kept is not None and source.kept is not None:
            for own, theirs in zip(memory.kept[:3], source.kept[:3], strict=True):
                own[: arrived - gone] = theirs[gone:arrived]
            memory.kept.openings[:] = source.kept.openings

    def enter(self, memory: ClusterMemory, arrived: int, first: int, last: int) -> None:
        """Make the records of the jobs that are still to come."""
        memory.jobs[arrived:] = self.jobs[first:last]
        memory.state["next_coming"] = arrived

    def steps(self, memory: ClusterMemory) -> int:
        """Those of the plan."""
        return int(memory.state["steps"])

    def more(self, parts: list[Any], memory: ClusterMemory) -> dict[str, Any]:
        """What the jobs had of each pool."""
        return {"given": np.concatenate([*(given for _, given in parts), memory.machine.given[: len(memory.jobs)]])}

    @staticmethod
    def ended(memory: ClusterMemory, gone: int) -> tuple[Any, Array]:
        """The records of the first jobs, and what they had of each pool."""
        return memory.jobs[:gone].copy(), memory.machine.given[:gone].copy()

    @staticmethod
    def waiting(memory: ClusterMemory) -> Array:
        """The waiting jobs in order of arrival."""
        queue = in_line(memory)
        waiting = queue[memory.jobs["start"][queue] < 0]
        return np.asarray(waiting[np.argsort(memory.jobs["arrival"][waiting])])

    @staticmethod
    def running(memory: ClusterMemory) -> tuple[Array, Array]:
        """The running jobs and their expected ends."""
        running = memory.machine.running[: int(memory.state["running"])]
        return running["job"], running["expected"]

    @staticmethod
    def loop(memory: ClusterMemory) -> str:
        """Name of the loop in load.py."""
        return cluster_loop_name(memory)

    @staticmethod
    def why_stuck(memory: ClusterMemory) -> str:
        """Who waits for ever, and why."""
        return why_waiting(memory.jobs, int(memory.state["started"]))


class NodesLog(Log):
    """What the logs of Slurm's and OAR's scheduling, which plan single nodes, have in common."""

    machine = "nodes"
    loop_name: str

    def __init__(self, problem: Problem):
        super().__init__()
        self.submit, self.procs, self.machine_procs, self.problem = problem.submit, problem.procs, problem.machine_procs, problem

    @classmethod
    def of(cls, problem: Problem, memory: Any, *more: Any) -> Self | None:
        """The log of a simulation; None where jobs wait for others, or run at first after ones that do not."""
        since, waits = problem.demands.since, len(memory.traffic.followers.items) > 0  # type: ignore[union-attr]
        made: Any = cls
        return None if waits or not come_first(since) else made(problem, memory, *more)

    @staticmethod
    def has_begun(memory: Any) -> bool:
        """Whether the jobs that run at first have their nodes."""
        return bool(memory.state["begun"])

    @classmethod
    def loop(cls, _memory: Any) -> str:
        """Name of the loop in load.py."""
        return cls.loop_name

    @staticmethod
    def why_stuck(memory: Any) -> str:
        """Who waits for ever, and why; raises WorkloadError if the jobs that run at first do not fit on the nodes."""
        if (job := int(memory.state["no_room"])) > 0:
            raise WorkloadError(f"the jobs that run at first need more than the machine has: there is no room for job number {job}")
        return why_waiting(memory.jobs, int(memory.state["started"]))


def in_line(memory: ClusterMemory) -> Array:
    """The jobs with a place in the queue, some of which may have started, and those that are parked without one."""
    queue, line = memory.line.queue["job"][: int(memory.state["waiting"])], memory.line
    return np.concatenate([queue, np.flatnonzero(line.parked["away"])]) if memory.state["away"] else np.asarray(queue)


def part_of(lists: Lists, first: int, jobs: int) -> Lists:
    """The lists of so many jobs from the first one on."""
    return Lists(lists.first[first : first + jobs + 1], lists.items)


def have_the_same(limits_of: Lists, limits: Any, other: Any, first: int, jobs: int) -> bool:
    """Whether so many jobs, from the first one on, are under these limits as they are in another simulation."""
    mine, theirs = limits_of.first[first : first + jobs + 1], other.limits_of.first[: jobs + 1]
    if not are_the_same(limits, other.limits, ("jobs", "procs", "second")) or not np.array_equal(np.diff(mine), np.diff(theirs)):
        return False
    return np.array_equal(limits_of.items[mine[0] : mine[-1]], other.limits_of.items[theirs[0] : theirs[-1]])


def come_first(since: Array) -> bool:
    """Whether the jobs that run at first (`since`, s; NEVER for others) come before all others."""
    return not (since[np.count_nonzero(since < NEVER) :] < NEVER).any()


def why_waiting(jobs: Any, started: int) -> str:
    """Who waits for ever, and why."""
    waits = jobs["start"] < 0
    on_others = (jobs["pending"][waits] > 0).any()
    why = "they depend on jobs that do not end, or on each other" if on_others else "limits, or an outage without an end, leave no room"
    return f"{len(waits) - started} jobs wait for ever: {why}"
