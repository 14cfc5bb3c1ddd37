"""The public interface of the loop for Slurm's scheduling: lowering, running in pieces, and results."""

from __future__ import annotations

import numpy as np

from walltime.engine.inputs import Nodes, Shares, Wants
from walltime.engine.interface.pieces import PIECE, Pieces
from walltime.engine.interface.pools import _fill
from walltime.engine.kernel.memory import NEVER, record, records
from walltime.engine.kernel.nodes.memory import SLURM_JOB, SLURM_RULES, Records, SlurmMemory, new_slurm_memory, with_room
from walltime.engine.kernel.pools.memory import LIMIT, as_lists, followers_of
from walltime.errors import WorkloadError
from walltime.policy.slurm import Settings

Array = np.ndarray
FEWEST_ROWS = 64
"""Running jobs for which there is room at first."""


def lowered(settings: Settings, kill: bool, starts_only: bool = False) -> Records:
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


def processors_together(procs: Array, wants: Wants, machine: Nodes) -> int:
    """A power of two, of so many processors everything is a multiple; counted in such units the schedule is the same.

    It is 1 where jobs may want more nodes than units, since these get single processors of some.
    """
    common = int(np.gcd.reduce(np.concatenate([machine.procs, procs]), initial=0))
    unit = max(1, common & -common)
    few = (wants.nodes <= 1) | (wants.whole > 0)
    if (machine.procs == unit).all():
        few |= wants.nodes <= procs // unit
    return unit if few.all() else 1


class SlurmSimulation(Pieces):
    """A simulation of Slurm's scheduling on a machine of nodes, run as a whole or in pieces.

    `submit, runtime, believed, procs`: int64, one entry per job, in order of arrival; times in s. `kill`: whether a job is killed at a
    limit that backfill has shortened. `starts_only`: leave `reserved_start` out, which is faster. After `run` the results are `start`,
    `submit` (the time from which the job waited), `runtime` and `limit` (for which and under which it ran), `reserved_start` (int64 s),
    `kind` (uint8), and `slots`.

    Raises WorkloadError while it runs if the jobs that run at first do not fit.
    """

    def __init__(
        self,
        submit: Array,
        runtime: Array,
        believed: Array,
        procs: Array,
        wants: Wants,
        machine: Nodes,
        shares: Shares,
        settings: Settings,
        kill: bool = True,
        starts_only: bool = False,
    ):
        super().__init__(None)
        count = len(submit)
        self._unit = unit = processors_together(procs, wants, machine)
        machine = machine._replace(
            procs=machine.procs // unit, limits=[(most, limit // unit, other) for most, limit, other in machine.limits]
        )
        procs = procs // unit
        jobs = records(SLURM_JOB, count)
        jobs.submit, jobs.runtime, jobs.believed, jobs.procs = submit, runtime, believed, procs
        for name in ("second", "nodes", "whole", "each", "partition", "time_min", "user", "association", "merit", "follows", "think"):
            jobs[name] = getattr(wants, name)
        jobs.time_min = np.where(wants.time_min < believed, wants.time_min, 0)
        jobs.tier = np.asarray(machine.tiers, np.int64)[wants.partition]
        jobs.start = jobs.reserved_start = -1
        followers = followers_of(wants.after, wants.follows, jobs.pending)
        limits = records(LIMIT, len(machine.limits))
        for k, limit in enumerate(machine.limits):
            limits[k].jobs, limits[k].procs, limits[k].second = limit
        self._memory: SlurmMemory = new_slurm_memory(
            lowered(settings, kill, starts_only),
            jobs,
            machine,
            limits,
            as_lists(wants.limits),
            followers,
            shares,
            int(wants.user.max()) + 1 if count else 0,
        )
        m = self._memory
        at_first = np.flatnonzero(wants.since < NEVER)
        at_first = at_first[np.argsort(wants.since[at_first], kind="stable")]
        jobs.start[at_first] = wants.since[at_first]
        m.state.at_first = len(at_first)
        m.traffic.at_first[: len(at_first)] = at_first
        to_come = np.flatnonzero((wants.since == NEVER) & (jobs.pending == 0))
        m.state.arriving = len(to_come)
        _fill(m.traffic.arrivals, jobs.submit[to_come], to_come, to_come)

    def advance(self, budget: int = PIECE) -> bool:
        """Run one piece, as other simulations do; makes room for what could start in it."""
        state = self._memory.state
        rows = int(state.waiting if state.begun else state.at_first)
        self._memory = with_room(self._memory, max(rows, FEWEST_ROWS), int(state.most_ranges))
        return super().advance(budget)

    def _name(self) -> str:
        return "slurm"

    def _why_stuck(self) -> str:
        state, jobs = self._memory.state, self._memory.jobs
        if state.no_room:
            raise WorkloadError(
                f"the jobs that run at first need more than the machine has: there is no room for job number {state.no_room}"
            )
        waits = jobs.start < 0
        on_others = (jobs.pending[waits] > 0).any()
        why = "they depend on jobs that do not end, or on each other" if on_others else "limits, or an outage without an end, leave no room"
        return f"{len(waits) - self.started} jobs wait for ever: {why}"

    @property
    def runtime(self) -> Array:
        """For how long each job runs, int64 s."""
        return self._column("runtime")

    @property
    def limit(self) -> Array:
        """The limit under which each job runs, int64 s."""
        return self._column("limit")

    @property
    def slots(self) -> tuple[Array, Array, Array, Array]:
        """What jobs had of nodes, int64: the job, the node, processors and units of the second resource; in order of job and node."""
        jobs, ranges = self._memory.jobs, self._memory.use.ranges
        in_order = np.argsort(jobs.first, kind="stable")
        owner = np.repeat(in_order, jobs["count"][in_order])
        own = ranges[: len(owner)]
        order = np.lexsort((own.node, owner))
        owner, own = owner[order], own[order]
        job, first, procs, second = (
            np.repeat(values, own["count"]).astype(np.int64) for values in (owner, own.node, own.procs, own.second)
        )
        begin = np.cumsum(own["count"]) - own["count"]
        return job, first + np.arange(len(job)) - np.repeat(begin, own["count"]), procs * self._unit, second
