"""The public interface of the loop for machines of several pools: checks, lowering, and running in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from walltime.engine.interface.load import cluster_loop_name
from walltime.engine.interface.ordering import lower_order
from walltime.engine.interface.pieces import Pieces, lower_prediction
from walltime.engine.kernel.memory import EVERYWHERE, MODES, NEVER, record, records
from walltime.engine.kernel.pools.memory import (
    CLUSTER_JOB,
    CLUSTER_RULES,
    LIMIT,
    OUTAGE,
    ClusterMemory,
    Waiting,
    as_lists,
    followers_of,
    new_cluster_memory,
)
from walltime.engine.kernel.prediction_memory import Prediction
from walltime.errors import PolicyError, WorkloadError
from walltime.policy import Policy, Wfp
from walltime.policy.log_view import LogView

Array = np.ndarray


class Demands(NamedTuple):
    """What jobs need besides processors, and what holds them back; one entry per job, in order of arrival.

    `second`: of the second resource; `partition`: its number; `since`: the start of a job that runs at the beginning, NEVER for others
    (all int64). `after`: the jobs that must have ended; `limits`: the limits that the job counts towards; `windows`: those that hold
    for it; by index.
    """

    second: Array
    partition: Array
    since: Array
    after: Sequence[Sequence[int]]
    limits: Sequence[Sequence[int]]
    windows: Sequence[Sequence[int]] = ()


class Hardware(NamedTuple):
    """A machine of several pools.

    `capacity`: processors and second resource of each pool, int64, shape (pools, 2); `partitions`: the pools of each, in the order in
    which they are taken; `tiers`: of each partition, the higher comes first; `outages`: pool, processors, second resource, begin, end and
    the time from which it is known; `limits`: the most jobs, processors and second resource that run; `windows`: begins and
    ends of the hours in which jobs do not start, int64 s, and whether they are not planned across the begins either.
    """

    capacity: Array
    partitions: Sequence[Sequence[int]]
    tiers: Sequence[int]
    outages: Sequence[tuple[int, int, int, int, int, int]] = ()
    limits: Sequence[tuple[int, int, int]] = ()
    windows: Sequence[tuple[Array, Array, bool]] = ()


class ClusterSimulation(Pieces):
    """A simulation on a machine of several pools, run as a whole or in pieces.

    `submit, runtime, believed, procs`: int64, one entry per job, in order of arrival; times in s. After `run` the results are `start`,
    `submit` (the time from which the job waited, for those that waited for others), `reserved_start` (int64 s), `kind` (uint8), and
    `given` (int64, shape (jobs, pools, 2)); `after`, `think` and `prediction` are as those of `run.Simulation`.

    Raises PolicyError for a policy that it does not know, WorkloadError if the jobs that run at first do not fit.
    """

    def __init__(
        self,
        submit: Array,
        runtime: Array,
        believed: Array,
        procs: Array,
        demands: Demands,
        hardware: Hardware,
        policy: Policy,
        known: LogView | None = None,
        prediction: Prediction | None = None,
        after: Array | None = None,
        think: Array | None = None,
    ):
        passes = policy.passes
        elsewhere = passes is None or passes.kind not in EVERYWHERE or passes.window > 0 or not passes.every_arrival
        if passes is None or elsewhere or (isinstance(policy.order, Wfp) and policy.order.threshold):
            raise PolicyError(f"{policy.label} does not run on a machine of several pools; known are fcfs, easy, hybrid and conservative")
        count = len(submit)
        longest = int(np.maximum(runtime, believed).sum()) + sum(max(0, end) for *_, end, _ in hardware.outages if end < NEVER)
        longest += 0 if think is None else int(np.maximum(think, 0).sum())
        known = known or LogView({"requested": believed})
        first = lower_order(policy.order, known, submit, longest)
        backfill_order = getattr(policy, "backfill_order", None) or policy.order
        second = first if backfill_order == policy.order else lower_order(backfill_order, known, submit, longest)
        self._kept = (first, second)  # the kernel has no more than their addresses
        depth = NEVER if passes.depth is None else passes.depth
        rules = record(
            CLUSTER_RULES,
            mode=MODES[passes.kind],
            depth=depth if passes.backfills else 0,
            backfill=int(passes.backfills),
            order=first.kind,
            order_parameter=first.parameter,
            order_starvation=first.starvation,
            order_reads_time=first.reads_time,
            backfill_order=second.kind,
            backfill_parameter=second.parameter,
            backfill_starvation=second.starvation,
        )
        lower_prediction(rules, prediction)
        jobs = records(CLUSTER_JOB, count)
        jobs.submit, jobs.runtime, jobs.procs = submit, runtime, procs
        jobs.believed = jobs.order_length = jobs.own_length = jobs.run_length = believed
        jobs.second, jobs.partition = demands.second, demands.partition
        jobs.tier = np.asarray(hardware.tiers, np.int64)[demands.partition]
        jobs.start = jobs.reserved_start = jobs.after = -1
        if after is not None and think is not None:
            jobs.after, jobs.think = after, think
        followers = followers_of(demands.after, jobs.after, jobs.pending)
        outages = records(OUTAGE, len(hardware.outages))
        for k, outage in enumerate(hardware.outages):
            for name, value in zip(("pool", "procs", "second", "begin", "end", "known"), outage, strict=True):
                outages[k][name] = value
        limits = records(LIMIT, len(hardware.limits) + len(hardware.windows))
        limits.jobs = limits.procs = limits.second = NEVER
        for k, limit in enumerate(hardware.limits):
            limits[k].jobs, limits[k].procs, limits[k].second = limit
        windows_of = demands.windows or [()] * count
        limits_of = [[*own, *(len(hardware.limits) + k for k in windows)] for own, windows in zip(demands.limits, windows_of, strict=True)]
        super().__init__(prediction)
        self._memory: ClusterMemory = new_cluster_memory(
            rules,
            jobs,
            np.asarray(hardware.capacity, np.int64),
            as_lists([list(pools) for pools in hardware.partitions]),
            outages,
            limits,
            Waiting(as_lists(limits_of), followers, demands.since, hardware.windows),
            prediction,
        )
        self._begin(demands.since)

    def _begin(self, since: Array) -> None:
        """The jobs that run at first get their places, in order of their starts; the others are arrivals to come."""
        m, machine = self._memory, self._memory.machine
        at_first = np.flatnonzero(since < NEVER)
        for job in at_first[np.argsort(since[at_first], kind="stable")].tolist():
            own, wanted = m.jobs[job], [int(m.jobs[job].procs), int(m.jobs[job].second)]
            for p in machine.pools_of.items[machine.pools_of.first[own.partition] : machine.pools_of.first[own.partition + 1]]:
                taken = min(wanted[0], int(machine.pools[p].free_procs)), min(wanted[1], int(machine.pools[p].free_second))
                machine.given[job, p] = taken
                machine.pools[p].free_procs -= taken[0]
                machine.pools[p].free_second -= taken[1]
                wanted = [wanted[0] - taken[0], wanted[1] - taken[1]]
            if any(wanted):
                raise WorkloadError(f"the jobs that run at first need more than the machine has: there is no room for job number {job + 1}")
            own.start = since[job]
            for k in machine.limits_of.items[machine.limits_of.first[job] : machine.limits_of.first[job + 1]]:
                machine.limits[k].used_jobs += 1
                machine.limits[k].used_procs += own.procs
                machine.limits[k].used_second += own.second
        order = at_first[np.argsort(since[at_first], kind="stable")]
        m.state.started = m.state.running = m.state.events = len(order)
        tickets = np.arange(len(order))
        _fill(machine.events, (since + m.jobs.runtime)[order], tickets, order)
        expected = (since + m.jobs.run_length)[order]
        by_end = np.lexsort((tickets, expected))
        machine.running.expected[: len(order)], machine.running.job[: len(order)] = expected[by_end], order[by_end]

    def _name(self) -> str:
        return cluster_loop_name(self._memory)

    def _why_stuck(self) -> str:
        waits = self._memory.jobs.start < 0
        on_others = (self._memory.jobs.pending[waits] > 0).any()
        why = "they depend on jobs that do not end, or on each other" if on_others else "limits, or an outage without an end, leave no room"
        return f"{len(waits) - self.started} jobs wait for ever: {why}"

    @property
    def given(self) -> Array:
        """What each job had of each pool, int64, shape (jobs, pools, 2)."""
        return self._memory.machine.given


def _fill(heap: Any, rank: Array, tie: Array, job: Array) -> None:
    """Put these items into an empty heap: in order of rank they are one."""
    order = np.lexsort((tie, rank))
    heap.rank[: len(order)], heap.tie[: len(order)], heap.job[: len(order)] = rank[order], tie[order], job[order]
