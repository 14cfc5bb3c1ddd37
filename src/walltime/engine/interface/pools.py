"""The compiled engine for a machine of several pools: checks the problem and makes the arrays of the loop."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from walltime.engine.interface.agenda import Agenda
from walltime.engine.interface.compiled import CompiledEngine, lower_prediction, new_jobs
from walltime.engine.interface.load import PASS_OF
from walltime.engine.interface.orders import lower_orders, point_to_orders
from walltime.engine.kernel.memory import NEVER, record, records
from walltime.engine.kernel.pools import memory as of_pools
from walltime.engine.machines import IDLE, Demands, Pools
from walltime.engine.problem import Outcome, Problem, overfull, running_at_first

Array = np.ndarray


class PoolsEngine(CompiledEngine):
    """A simulation on a machine of several pools, run as a whole or in pieces.

    Raises PolicyError for a policy that it does not support, WorkloadError if the initially running jobs do not fit.
    """

    machine = "pools"
    agenda: Agenda

    def __init__(self, problem: Problem):
        super().__init__(problem)
        hardware, demands, passes = problem.machine, problem.demands, problem.policy.passes
        assert isinstance(hardware, Pools)
        assert isinstance(demands, Demands)
        submit = problem.submit
        waits = sum(max(0, end) for *_, end, _ in hardware.outages if end < NEVER)
        if hardware.windows:  # the machine may be idle before each start
            waits += max(hours.settled for hours in hardware.windows) + len(problem) * IDLE
        self._kept = lower_orders(problem, waits)
        depth = 0 if not passes.backfills else NEVER if passes.depth is None else passes.depth
        rules = record(of_pools.CLUSTER_RULES, mode=PASS_OF[passes.kind].mode, depth=depth, backfill=int(passes.backfills))
        point_to_orders(rules, self._kept)
        lower_prediction(rules, self._prediction, problem.tick)
        jobs = new_jobs(problem, of_pools.CLUSTER_JOB)
        jobs.procs, jobs.order_length, jobs.own_length, jobs.run_length = problem.procs, jobs.planned, jobs.planned, jobs.planned
        jobs.second, jobs.partition = demands.second, demands.partition
        jobs.tier = np.asarray(hardware.tiers, np.int64)[demands.partition]
        followers = of_pools.followers_of(demands.after, jobs.after, jobs.pending)
        outages = records(of_pools.OUTAGE, [(*outage, 0) for outage in hardware.outages])
        limits_of = demands.limits.concat(demands.windows, len(hardware.limits)) if hardware.windows else demands.limits
        limits = lowered_limits([*hardware.limits, *[(NEVER, NEVER, NEVER)] * len(hardware.windows)])
        self._memory: of_pools.ClusterMemory = of_pools.new_cluster_memory(
            rules,
            jobs,
            np.asarray(hardware.capacity, np.int64),
            of_pools.as_lists([list(pools) for pools in hardware.partitions]),
            outages,
            limits,
            of_pools.Restraints(of_pools.as_lists(limits_of), followers, demands.since, bool(hardware.windows)),
            self._prediction,
        )
        self.loop_name = "cluster" if self._memory.kept is None else "cluster-kept"
        first, last = (int(pick(submit, initial=0)) for pick in (np.min, np.max))
        for k, hours in enumerate(hardware.windows, len(hardware.limits)):
            begin = hours.until(first).begin
            limits[k].crossing, limits[k].until = int(hours.crossing), begin[0] if hours.crossing and len(begin) else NEVER
        self.agenda = Agenda(outages, hardware.windows, len(hardware.limits), first, last)
        self._begin(demands.since)

    def _begin(self, since: Array) -> None:
        """Give the initially running jobs their processors, in order of their starts; the others are future arrivals."""
        m, machine = self._memory, self._memory.machine
        order = running_at_first(since)
        for job in order.tolist():
            own, wanted = m.jobs[job], [int(m.jobs[job].procs), int(m.jobs[job].second)]
            for p in machine.pools_of.items[machine.pools_of.first[own.partition] : machine.pools_of.first[own.partition + 1]]:
                taken = min(wanted[0], int(machine.pools[p].free_procs)), min(wanted[1], int(machine.pools[p].free_second))
                machine.given[job, p] = taken
                machine.pools[p].free_procs -= taken[0]
                machine.pools[p].free_second -= taken[1]
                wanted = [wanted[0] - taken[0], wanted[1] - taken[1]]
            if any(wanted):
                raise overfull(job)
            own.start = since[job]
            for k in machine.limits_of.items[machine.limits_of.first[job] : machine.limits_of.first[job + 1]]:
                machine.limits[k].used_jobs += 1
                machine.limits[k].used_procs += own.procs
                machine.limits[k].used_second += own.second
        m.state.started = m.state.running = m.state.events = len(order)
        tickets = np.arange(len(order))
        fill(machine.events, (since + m.jobs.runtime)[order], tickets, order)
        expected = (since + m.jobs.run_length)[order]
        by_end = np.lexsort((tickets, expected))
        machine.running.expected[: len(order)], machine.running.job[: len(order)] = expected[by_end], order[by_end]

    def _why_stuck(self) -> str:
        return why_waiting(self._memory.jobs, len(self.problem) - self.started)

    def _queue(self) -> Array:
        state, index = self._memory.state, self._memory.queue_index
        away = np.flatnonzero(index.throttled["away"]) if state["away"] else np.zeros(0, np.int64)
        return np.concatenate([index.queue["job"][: int(state["waiting"])], away])

    def outcome(self) -> Outcome:
        """Return the outcome, once the simulation is done."""
        return self._outcome(self.problem.runtime, given=self._memory.machine.given, seconds={"simulate": self.seconds})


def why_waiting(jobs: Any, count: int) -> str:
    """Return how many jobs never start, and why."""
    on_others = (jobs["pending"][jobs["start"] < 0] > 0).any()
    why = "they depend on jobs that do not end, or on each other" if on_others else "limits, or an outage without an end, leave no room"
    return f"{count} jobs never start: {why}"


def lowered_limits(limits: Sequence[tuple[int, int, int]], seconds: Sequence[int] = (), nodes: Sequence[int] = ()) -> Any:
    """Return the limits in the loops' form, with no job counted yet.

    `seconds`, `nodes`: for each limit, the most processor-seconds that its running jobs may have left until their time limits, and the
    most nodes of these jobs.
    """
    lowered = records(of_pools.LIMIT, len(limits))
    lowered.until, lowered.seconds, lowered.nodes = NEVER, seconds or NEVER, nodes or NEVER
    lowered.jobs, lowered.procs, lowered.second = np.array(limits, np.int64).reshape(-1, 3).T
    return lowered


def fill(heap: Any, rank: Array, tie: Array, job: Array) -> None:
    """Fill an empty heap with these items, sorted by rank: a sorted list is a heap."""
    order = np.lexsort((tie, rank))
    heap.rank[: len(order)], heap.tie[: len(order)], heap.job[: len(order)] = rank[order], tie[order], job[order]
