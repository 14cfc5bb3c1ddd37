"""The compiled engine for Slurm's scheduling on nodes: makes the arrays of the loop, and says who had which node."""

from __future__ import annotations

import numpy as np

from walltime.engine.interface.compiled import CompiledEngine
from walltime.engine.interface.pools import fill, lowered_limits, why_waiting
from walltime.engine.kernel.memory import NEVER, record, records
from walltime.engine.kernel.nodes.memory import SLURM_JOB, SLURM_RULES, Records, SlurmMemory, new_slurm_memory, with_room
from walltime.engine.kernel.pools.memory import as_lists, followers_of
from walltime.engine.problem import NodeDemands, NodeRanges, Nodes, Outcome, Problem, running_at_first
from walltime.errors import WorkloadError
from walltime.policy.slurm import SlurmSettings

Array = np.ndarray
FEWEST_ROWS = 64
"""Running jobs for which there is room at first."""


def _lowered(settings: SlurmSettings, kill: bool, starts_only: bool) -> Records:
    """The parameters as the loop takes them."""
    numbers = settings.numbers
    return record(
        SLURM_RULES,
        **numbers | {"longest_age": max(1, numbers["longest_age"])},
        kill=kill,
        starts_only=starts_only,
        all_count=not settings.restrains,
        multifactor=1 if settings.multifactor else 2 if settings["priority_type"] == "multifactor" else 0,
        fair_tree=not settings.flag("NO_FAIR_TREE"),
        decay=settings.decay,
    )


def _processors_together(procs: Array, demands: NodeDemands, machine: Nodes) -> int:
    """A power of two, of so many processors everything is a multiple; counted in such units the schedule is the same.

    It is 1 where jobs may want more nodes than units, since these get single processors of some.
    """
    common = int(np.gcd.reduce(np.concatenate([machine.procs, procs]), initial=0))
    unit = max(1, common & -common)
    few = (demands.nodes <= 1) | (demands.whole > 0)
    if (machine.procs == unit).all():
        few |= demands.nodes <= procs // unit
    return unit if few.all() else 1


class PlannedNodes(CompiledEngine):
    """What the engines of Slurm's and OAR's scheduling, which plan single nodes, have in common."""

    machine = "nodes"

    def _has_begun(self) -> bool:
        return bool(self._memory.state["begun"])

    def _why_stuck(self) -> str:
        """Return how many jobs wait for ever, and why; raises WorkloadError if the jobs that run at first do not fit on the nodes."""
        if (job := int(self._memory.state["no_room"])) > 0:
            raise WorkloadError(
                f"the jobs that run at first need more than the machine has: there is no room for job number {job}", "overfull_machine"
            )
        return why_waiting(self._memory.jobs, len(self.problem) - self.started)


class NodesEngine(PlannedNodes):
    """A simulation of Slurm's scheduling on a machine of nodes, run as a whole or in pieces.

    Raises WorkloadError while it runs if the jobs that run at first do not fit.
    """

    def __init__(self, problem: Problem):
        super().__init__(None)
        self.problem = problem
        machine, demands, shares = problem.machine, problem.demands, problem.shares
        assert isinstance(machine, Nodes)
        assert isinstance(demands, NodeDemands)
        assert shares is not None
        count, nobody = len(problem), np.full(len(problem), -1)
        self._unit = unit = _processors_together(problem.procs, demands, machine)
        machine = machine._replace(
            procs=machine.procs // unit, limits=[(most, limit // unit, other) for most, limit, other in machine.limits]
        )
        self._nodes = machine
        jobs = records(SLURM_JOB, count)
        for name in ("submit", "runtime", "believed"):
            jobs[name] = getattr(problem, name)
        jobs.procs = problem.procs // unit
        for name in ("second", "nodes", "whole", "each", "partition", "time_min", "user", "association", "merit"):
            jobs[name] = getattr(demands, name)
        jobs.after = nobody if problem.after is None else problem.after
        jobs.think = 0 if problem.think is None else problem.think
        jobs.time_min = np.where(demands.time_min < problem.believed, demands.time_min, 0)
        jobs.tier = np.asarray(machine.tiers, np.int64)[demands.partition]
        jobs.start = jobs.reserved_start = -1
        followers = followers_of(demands.after, jobs.after, jobs.pending)
        self._memory: SlurmMemory = new_slurm_memory(
            _lowered(problem.settings, problem.kill, problem.starts_only),
            jobs,
            machine,
            lowered_limits(machine.limits),
            as_lists(demands.limits),
            followers,
            shares,
            int(demands.user.max()) + 1 if count else 0,
        )
        m = self._memory
        at_first = running_at_first(demands.since)
        jobs.start[at_first] = demands.since[at_first]
        m.state.at_first = len(at_first)
        m.traffic.at_first[: len(at_first)] = at_first
        to_come = np.flatnonzero((demands.since == NEVER) & (jobs.pending == 0))
        m.state.arriving = len(to_come)
        fill(m.traffic.arrivals, jobs.submit[to_come], to_come, to_come)

    def _loop_name(self) -> str:
        return "slurm"

    def _piece(self, budget: int) -> bool:
        """Run one piece, after making room for the jobs that could start in it."""
        state = self._memory.state
        rows = int(state["waiting"] if state["begun"] else state["at_first"])
        self._memory = with_room(self._memory, max(rows, FEWEST_ROWS), int(state["most_ranges"]))
        return super()._piece(budget)

    def _is_between(self) -> bool:
        return bool(self._memory.state["between"])

    def _waiting(self) -> Array:
        waiting = self._memory.traffic.queue[: int(self._memory.state["waiting"])]
        return np.asarray(waiting[np.argsort(self._memory.jobs["arrival"][waiting])])

    def _running(self) -> tuple[Array, Array]:
        running = self._memory.use.running[: int(self._memory.state["running"])]
        return running["job"], running["expected"]

    def outcome(self) -> Outcome:
        """What has become of the jobs, once the simulation is done."""
        slots, nodes = self.slots, self.problem.machine
        assert isinstance(nodes, Nodes)
        more = {"slots": slots, "given": nodes.given(slots, len(self.problem)), "limit": self._column("limit")}
        return self._outcome(self._column("runtime"), **more, seconds={"simulate": self.seconds})

    @property
    def slots(self) -> NodeRanges:
        """What jobs had of nodes: the job, the node, processors and units of the second resource; in order of job and node."""
        jobs, every = self._memory.jobs, self._memory.use.ranges
        counts = jobs["count"]
        places = np.repeat(jobs["first"] - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
        ranges = every[places] if len(places) else every[:0]
        owner = np.repeat(np.arange(len(jobs)), counts)
        return NodeRanges(owner, ranges["node"], ranges["count"], ranges["procs"].astype(np.int64) * self._unit, ranges["second"])
