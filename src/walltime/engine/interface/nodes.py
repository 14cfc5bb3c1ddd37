"""The compiled engines for machines of nodes: they make the arrays of the loops, and return which jobs had which nodes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from walltime.distinct import distinct_rows
from walltime.engine.interface.compiled import CompiledEngine, new_jobs
from walltime.engine.interface.orders import lower_orders, point_to_orders
from walltime.engine.interface.pools import fill, lowered_limits, why_waiting
from walltime.engine.kernel.memory import NEVER, record
from walltime.engine.kernel.nodes.easy import EASY_JOB, EASY_RULES, new_easy_memory
from walltime.engine.kernel.nodes.memory import as_set, new_slurm_memory, with_room
from walltime.engine.kernel.nodes.oar import OAR_JOB, OAR_RULES, OarMemory, new_oar_memory
from walltime.engine.kernel.nodes.planned_memory import new_planned_memory, with_room_for_plan
from walltime.engine.kernel.nodes.records import (
    OPENS_MEMORY,
    OPENS_NONE,
    OPENS_SECOND,
    OPENS_WHOLE,
    SLURM_JOB,
    SLURM_RULES,
    Records,
    SlurmMemory,
)
from walltime.engine.kernel.pools.memory import as_lists, followers_of
from walltime.engine.machines import LostRuns, NodeDemands, NodeRanges, Nodes, OarSettings
from walltime.engine.problem import Outcome, Problem, overfull, running_at_first
from walltime.policy.slurm import SlurmSettings

Array = np.ndarray
FORM = ("members", "whole", "task", "least", "most", "most_nodes", "second_row", "each", "per_task", "memory", "task_memory")
"""Fields that define the form of a request. Requests of one form differ only in their numbers of nodes, of processors, and of units of the
second resource on any nodes."""
FEWEST_ROWS = 64
"""Initial number of running jobs for which memory is allocated."""


def _lowered(settings: SlurmSettings, machine: Nodes, kill: bool, starts_only: bool, all_reserve: bool) -> Records:
    """Return Slurm's parameters as a record of SLURM_RULES; `all_reserve`: whether every job may have a reservation."""
    numbers = settings.numbers
    return record(
        SLURM_RULES,
        **numbers | {"longest_age": max(1, numbers["longest_age"])},
        kill=kill,
        starts_only=starts_only,
        preempts=machine.preemption is not None,
        all_count=all_reserve and not settings.restrains,
        multifactor=1 if settings.multifactor else 2 if settings["priority_type"] == "multifactor" else 0,
        timed_limits=bool(machine.run_seconds),
        node_limits=bool(machine.node_limits),
        fair_tree=not settings.flag("NO_FAIR_TREE"),
        decay=settings.decay,
    )


def _processors_together(procs: Array, demands: NodeDemands, machine: Nodes) -> int:
    """Return the unit in which processors can be counted without a change of the schedule: a power of two that divides all their numbers.

    Returns 1 if a job that does not take whole nodes may need several of them, or limits its processors per node.
    """
    common = int(np.gcd.reduce(np.concatenate([machine.procs, procs, demands.asked]), initial=0))
    unit = max(1, common & -common)
    few = (demands.nodes <= 1) | (demands.whole > 0)
    if (machine.procs == unit).all():
        few |= demands.nodes <= procs // unit
    return unit if (few & ~_shaped(machine, demands)).all() else 1


def _lowered_jobs(problem: Problem, dtype: Any) -> Records:
    """Return records of jobs that have not started, with their needs."""
    machine, demands = problem.machine, problem.demands
    assert isinstance(machine, Nodes)
    assert isinstance(demands, NodeDemands)
    jobs = new_jobs(problem, dtype)
    jobs.procs = problem.procs
    for name in set(dtype.names) & set(NodeDemands._fields) - {"after"}:
        jobs[name] = getattr(demands, name)
    jobs.shaped = _shaped(machine, demands)
    jobs.opens = _opens(demands)
    jobs.time_min = np.where(demands.time_min < problem.planned, demands.time_min, 0)
    jobs.tier = np.asarray(machine.tiers, np.int64)[demands.partition]
    return jobs


def _count_memory_in_units(jobs: Records, machine: Nodes) -> Nodes:
    """Count the jobs' memory in the largest unit that divides all requests, and return the machine in this unit: the schedule is the same.

    The loops store a node's memory in as many words as its number has bits.
    """
    unit = int(np.gcd.reduce(np.concatenate([jobs.memory, jobs.task_memory]), initial=0))
    if unit == 0:
        return machine._replace(memory=np.zeros_like(machine.memory))
    jobs.memory, jobs.task_memory = jobs.memory // unit, jobs.task_memory // unit
    return machine._replace(memory=machine.memory // unit)


def _shaped(machine: Nodes, demands: NodeDemands) -> Array:
    """Return which jobs cannot use all free processors of a node, bool, shape (jobs,)."""
    largest = np.array([machine.procs[own].max() for own in machine.members])[demands.members]
    partly = (demands.task > 1) | (demands.least > 1) | (demands.most < largest)
    partly |= (demands.per_task > 0) | (demands.task_memory > 0) | (demands.most_nodes > 0)
    return np.asarray((demands.whole == 0) & partly)


def _opens(demands: NodeDemands) -> Array:
    """Return how much each job may gain where a running job ends, int64, shape (jobs,): OPENS_NONE to OPENS_MEMORY."""
    by_node = (demands.whole > 0) | (demands.memory > 0) | (demands.task > 1) | (demands.least > 1)
    by_node |= (demands.most_nodes > 0) | (demands.total > 0)
    others = np.where(demands.task_memory > 0, OPENS_MEMORY, OPENS_NONE)
    return np.where((demands.each > 0) | (demands.per_task > 0), OPENS_SECOND, np.where(by_node, OPENS_WHOLE, others))


class PlannedNodes(CompiledEngine):
    """The common part of the engines for machines of nodes."""

    machine = "nodes"

    @property
    def slots(self) -> Any:
        """Return the jobs' shares of nodes, int64: job, node, processors, units of the second resource; in order of job and node."""
        raise NotImplementedError

    @property
    def lost_runs(self) -> LostRuns | None:
        """Return the runs that ended early; None if no run can."""
        return None

    def outcome(self) -> Outcome:
        """Return the outcome, once the simulation is done."""
        slots, nodes = self.slots, self.problem.machine
        assert isinstance(nodes, Nodes)
        given, limit = nodes.given(slots, len(self.problem)), self._column("limit") if self.loop_name == "slurm" else None
        more: dict[str, Any] = {"slots": slots, "given": given, "limit": limit, "lost": self.lost_runs}
        return self._outcome(self._column("runtime"), **more, seconds={"simulate": self.seconds})

    def _begin(self, since: Array) -> Array:
        """Enter the initially running jobs, and return the jobs that arrive later and wait for no other job."""
        jobs, at_first = self._memory.jobs, running_at_first(since)
        jobs.start[at_first] = since[at_first]
        self._memory.state.at_first = len(at_first)
        self._memory.traffic.at_first[: len(at_first)] = at_first
        return np.flatnonzero((since == NEVER) & (jobs.pending == 0))

    def _why_stuck(self) -> str:
        """Return how many jobs never start, and why; raises WorkloadError if the initially running jobs do not fit on the nodes."""
        if (number := int(self._memory.state["no_room"])) > 0:
            raise overfull(number - 1)
        return why_waiting(self._memory.jobs, len(self.problem) - self.started)


class NodesEngine(PlannedNodes):
    """A simulation of Slurm's scheduling on a machine of nodes, run as a whole or in pieces.

    Raises WorkloadError while it runs if the initially running jobs do not fit.
    """

    loop_name = "slurm"

    def __init__(self, problem: Problem):
        super().__init__(problem)
        machine, demands, shares = problem.machine, problem.demands, problem.shares
        assert isinstance(machine, Nodes)
        assert isinstance(demands, NodeDemands)
        assert shares is not None
        self._unit = unit = _processors_together(problem.procs, demands, machine)
        machine = machine._replace(
            procs=machine.procs // unit,
            limits=[(most, limit // unit, other) for most, limit, other in machine.limits],
            run_seconds=[NEVER if most == NEVER else most // unit for most in machine.run_seconds],
        )
        jobs = _lowered_jobs(problem, SLURM_JOB)
        jobs.procs, jobs.asked = problem.procs // unit, demands.asked // unit
        machine = _count_memory_in_units(jobs, machine)
        if demands.sole.any():
            jobs.opens = OPENS_WHOLE
        jobs.owner = np.where(demands.sole > 0, -1, 1) * (demands.user + 1) * demands.sole.any()
        jobs.whole_runtime, jobs.due, jobs.awaits = problem.runtime, NEVER, -NEVER
        followers = followers_of(demands.after, jobs.after, jobs.pending)
        self._memory: SlurmMemory = new_slurm_memory(
            _lowered(problem.settings, machine, problem.kill, problem.starts_only, not demands.unreserved.any()),
            jobs,
            machine,
            lowered_limits(machine.limits, machine.run_seconds, machine.node_limits),
            as_lists(demands.limits),
            followers,
            shares,
            int(demands.user.max(initial=-1)) + 1,
        )
        self._await_arrivals(demands.since)

    def _await_arrivals(self, since: Array) -> None:
        """Enter the initially running jobs and the future arrivals."""
        to_come = self._begin(since)
        self._memory.state.arriving = len(to_come)
        fill(self._memory.traffic.arrivals, self._memory.jobs.submit[to_come], to_come, to_come)

    def _piece(self, budget: int) -> bool:
        """Run one piece, after making room for the jobs that could start in it."""
        state = self._memory.state
        rows = int(state["waiting"] if state["begun"] else state["at_first"])
        self._memory = with_room(self._memory, max(rows, FEWEST_ROWS), int(state["most_ranges"]))
        return super()._piece(budget)

    def _queue(self) -> Array:
        return self._memory.traffic.queue[: int(self._memory.state["waiting"])]

    @property
    def started(self) -> int:
        """Return the number of jobs that have started so far, without lost runs of requeued jobs."""
        return int(self._memory.state.started - self._memory.state.again)

    @property
    def lost_runs(self) -> LostRuns | None:
        """Return the runs that ended early; None if no run can."""
        runs = self._memory.use.lost[: int(self._memory.state.lost)]
        return LostRuns(*(runs[name] for name in LostRuns._fields)) if self._memory.rules.preempts else None

    @property
    def slots(self) -> NodeRanges:
        """Return the jobs' shares of nodes: job, node, processors, units of the second resource; in order of job and node."""
        jobs, every = self._memory.jobs, self._memory.use.ranges
        counts = jobs["count"]
        places = np.repeat(jobs["first"] - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
        ranges = every[places] if len(places) else every[:0]
        owner = np.repeat(np.arange(len(jobs)), counts)
        state, bits = self._memory.state, ranges["second"].astype(np.int64)  # of the units of each row in turn
        rows = range(0, int(state.second_end - state.procs_planes), max(1, int(state.second_bits)))
        second = sum(((bits >> row) & ((1 << int(state.second_bits)) - 1) for row in rows), np.zeros_like(bits))
        return NodeRanges(owner, ranges["node"], ranges["count"], ranges["procs"].astype(np.int64) * self._unit, second)


class FirstFitEngine(NodesEngine):
    """A simulation of FCFS or EASY on a machine of nodes, with nodes chosen by first fit; it raises the errors of `NodesEngine`."""

    loop_name = "easy-nodes"
    _unit = 1

    def __init__(self, problem: Problem):
        PlannedNodes.__init__(self, problem)
        machine, demands, passes = problem.machine, problem.demands, problem.policy.passes
        assert isinstance(machine, Nodes)
        assert isinstance(demands, NodeDemands)
        self._kept = lower_orders(problem, sum(max(0, end) for _, _, end, *_ in machine.outages if end < NEVER))
        depth = len(problem) if passes.depth is None else passes.depth
        rules = record(EASY_RULES, backfill=int(passes.backfills), depth=depth, keeps=passes.kind == "kept")
        point_to_orders(rules, self._kept)
        jobs = _lowered_jobs(problem, EASY_JOB)
        machine = _count_memory_in_units(jobs, machine)
        jobs.order_length = jobs.planned
        jobs.form = distinct_rows([jobs[name] for name in FORM])[1]
        followers, limits_of = followers_of(demands.after, jobs.after, jobs.pending), as_lists(demands.limits)
        self._memory: Any = new_easy_memory(rules, jobs, machine, lowered_limits(machine.limits), limits_of, followers)
        self._await_arrivals(demands.since)


class PlannedEngine(FirstFitEngine):
    """A simulation of a policy that reserves nodes for several jobs; it raises the errors of `NodesEngine`."""

    loop_name = "planned-nodes"

    def __init__(self, problem: Problem):
        super().__init__(problem)
        machine = problem.machine
        assert isinstance(machine, Nodes)
        pools_of = as_lists([list(dict.fromkeys(machine.pool[own].tolist())) for own in machine.partitions])
        self._memory = new_planned_memory(self._memory, pools_of)

    def _piece(self, budget: int) -> bool:
        """Run one piece, after making room for its plan as well."""
        self._memory = with_room_for_plan(self._memory)
        return super()._piece(budget)


class OarEngine(PlannedNodes):
    """A simulation of OAR's scheduling on a machine of nodes, run as a whole or in pieces.

    Raises WorkloadError while it runs if the initially running jobs do not fit.
    """

    loop_name = "oar"

    def __init__(self, problem: Problem):
        super().__init__(problem)
        machine, demands, settings = problem.machine, problem.demands, problem.settings
        assert isinstance(machine, Nodes)
        assert isinstance(demands, NodeDemands)
        assert isinstance(settings, OarSettings)
        self._procs, takes = machine.procs, settings.latencies
        jobs = new_jobs(problem, OAR_JOB)
        jobs.nodes, jobs.partition = demands.nodes, demands.partition
        jobs.noticed, jobs.phase = settings.noticed, settings.phase
        times = {name: getattr(takes, name) for name in OAR_RULES.names or () if hasattr(takes, name)}
        rules = record(OAR_RULES, security=settings.security_time, bug=settings.bug, **times)
        every = [np.zeros(0, np.int64), np.arange(len(machine.procs)), *machine.partitions]
        words = max(1, -(-len(machine.procs) // 64))
        sets = np.stack([as_set(np.asarray(own, np.int64), words) for own in every])
        followers = followers_of(demands.after, jobs.after, jobs.pending)
        self._memory: OarMemory = new_oar_memory(rules, jobs, sets, followers)
        to_come = self._begin(demands.since)
        self._memory.state.events = len(to_come)
        fill(self._memory.traffic.events, 1000 * jobs.submit[to_come] + jobs.noticed[to_come], np.zeros(len(to_come), np.int64), to_come)

    def hold(self, nodes: Mapping[int, Array]) -> None:
        """Place initially running jobs, by index, on these nodes (int64) instead of the first free ones; call it before the first event."""
        self.advance(0)
        for job, own in nodes.items():
            self._memory.had[job] = as_set(own, self._memory.had.shape[1])

    def _waiting(self) -> Array:
        return self._memory.traffic.queue[: int(self._memory.state["waiting"])].copy()

    def _running(self) -> tuple[Array, Array]:
        running, jobs = self._memory.traffic.running[: int(self._memory.state["running"])].copy(), self._memory.jobs
        return running, jobs["start"][running] + jobs["planned"][running]

    @property
    def slots(self) -> tuple[Array, Array, Array, Array]:
        """Return the jobs' shares of nodes, int64: job, node, processors, units of the second resource; in order of job and node."""
        bits = np.unpackbits(np.ascontiguousarray(self._memory.had).view(np.uint8), axis=1, bitorder="little")
        job, node = (values.astype(np.int64) for values in np.nonzero(bits))
        return job, node, self._procs[node], np.zeros(len(job), np.int64)
