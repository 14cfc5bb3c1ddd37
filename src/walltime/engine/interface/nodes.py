"""The compiled engine for Slurm's scheduling on nodes: makes the arrays of the loop, and says who had which node."""

from __future__ import annotations

import numpy as np

from walltime.engine.interface.compiled import CompiledEngine
from walltime.engine.interface.pools import fill, lowered_limits, why_waiting
from walltime.engine.kernel.memory import NEVER, record, records
from walltime.engine.kernel.nodes.memory import SLURM_JOB, SLURM_RULES, Records, SlurmMemory, new_slurm_memory
from walltime.engine.kernel.pools.memory import as_lists, followers_of
from walltime.engine.problem import NodeDemands, Nodes, Outcome, Problem
from walltime.errors import WorkloadError
from walltime.policy.slurm import Settings

__all__ = ["NodesEngine"]

Array = np.ndarray


def _lowered(settings: Settings, kill: bool, starts_only: bool) -> Records:
    """The parameters as the loop takes them."""
    s = settings
    return record(
        SLURM_RULES,
        depth=s["default_queue_depth"],
        partition_depth=s["partition_job_depth"],
        interval=s["sched_interval"],
        defer=s["defer"],
        backfill=s["scheduler_type"] == "backfill",
        cycle=s["bf_interval"],
        window=60 * s["bf_window"],
        resolution=s["bf_resolution"],
        most_tested=s["bf_max_job_test"],
        most_of_user=s["bf_max_job_user"],
        most_of_partition=s["bf_max_job_part"],
        most_of_user_in_partition=s["bf_max_job_user_part"],
        most_started=s["bf_max_job_start"],
        least_age=s["bf_min_age_reserve"],
        least_priority=s["bf_min_prio_reserve"],
        most_reserved=s["bf_job_part_count_reserve"],
        soft=s["time_min_as_soft_limit"],
        half=s["soft_limit_running"] == "half",
        kill=kill,
        starts_only=starts_only,
        multifactor=1 if s.multifactor else 2 if s["priority_type"] == "multifactor" else 0,
        fair_tree=not s.flag("NO_FAIR_TREE"),
        period=s["priority_calc_period"],
        weight_age=s["priority_weight_age"],
        weight_share=s["priority_weight_fairshare"],
        longest_age=max(1, s["priority_max_age"]),
        decay=s.decay,
    )


class NodesEngine(CompiledEngine):
    """A simulation of Slurm's scheduling on a machine of nodes, run as a whole or in pieces.

    Raises WorkloadError while it runs if the jobs that run at first do not fit.
    """

    machine = "nodes"

    def __init__(self, problem: Problem):
        super().__init__(None)
        self.problem = problem
        machine, demands, shares = problem.machine, problem.demands, problem.shares
        assert isinstance(machine, Nodes)
        assert isinstance(demands, NodeDemands)
        assert shares is not None
        count, nobody = len(problem), np.full(len(problem), -1)
        jobs = records(SLURM_JOB, count)
        for name in ("submit", "runtime", "believed", "procs"):
            jobs[name] = getattr(problem, name)
        for name in ("second", "nodes", "whole", "each", "partition", "time_min", "user", "association", "merit"):
            jobs[name] = getattr(demands, name)
        jobs.follows = nobody if problem.after is None else problem.after
        jobs.think = 0 if problem.think is None else problem.think
        jobs.time_min = np.where(demands.time_min < problem.believed, demands.time_min, 0)
        jobs.tier = np.asarray(machine.tiers, np.int64)[demands.partition]
        jobs.start = jobs.reserved_start = -1
        followers = followers_of(demands.after, jobs.follows, jobs.pending)
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
        at_first = np.flatnonzero(demands.since < NEVER)
        at_first = at_first[np.argsort(demands.since[at_first], kind="stable")]
        jobs.start[at_first] = demands.since[at_first]
        m.state.at_first = len(at_first)
        m.first[: len(at_first)] = at_first
        to_come = np.flatnonzero((demands.since == NEVER) & (jobs.pending == 0))
        m.state.arriving = len(to_come)
        fill(m.arrivals, jobs.submit[to_come], to_come, to_come)

    def _name(self) -> str:
        return "slurm"

    def _why_stuck(self) -> str:
        state, jobs = self._memory.state, self._memory.jobs
        if state.no_room:
            raise WorkloadError(
                f"the jobs that run at first need more than the machine has: there is no room for job number {state.no_room}"
            )
        return why_waiting(jobs, self.started)

    def outcome(self) -> Outcome:
        """What has become of the jobs, once the simulation is done."""
        slots, nodes = self.slots, self.problem.machine
        assert isinstance(nodes, Nodes)
        more = {"slots": slots, "given": nodes.given(slots, len(self.problem)), "limit": self._column("limit")}
        return self._outcome(self._column("runtime"), **more, seconds={"simulate": self.seconds})

    @property
    def slots(self) -> tuple[Array, Array, Array, Array]:
        """What jobs had of nodes, int64: the job, the node, processors and units of the second resource; in order of job and node."""
        m = self._memory
        by_start = np.argsort(m.jobs.first, kind="stable")
        by_start = by_start[m.jobs["count"][by_start] > 0]
        job = np.repeat(by_start, m.jobs["count"][by_start])
        used = m.slots[: len(job)]
        order = np.lexsort((used.node, job))
        return tuple(np.asarray(values, np.int64)[order] for values in (job, used.node, used.procs, used.second))  # type: ignore[return-value]
