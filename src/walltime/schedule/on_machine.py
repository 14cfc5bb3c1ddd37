"""Simulation on a machine of pools, partitions, outages and limits, in either engine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from walltime.engine.cluster_reference import ClusterReference, Shortage
from walltime.errors import PolicyError
from walltime.machine import Machine, Placement, place
from walltime.machine.placing import NEVER
from walltime.policy import Policy, Slurm
from walltime.schedule.known import known_to
from walltime.schedule.overrun import effective_times
from walltime.schedule.scheduler import Scheduler
from walltime.workload import Workload

Array = np.ndarray
Found = dict[str, Any]
"""Columns and facts of a schedule, by the names of its fields."""


def placed_under(workload: Workload, machine: Machine, policy: Policy | None) -> tuple[Workload, Placement]:
    """The jobs that can run on this machine under a policy, as they run there, and what they need; see `walltime.machine.place`."""
    if isinstance(policy, Slurm):
        from walltime.schedule.on_slurm import place_on_nodes

        return place_on_nodes(workload, machine, policy.settings(machine.slurm))[:2]
    return place(workload, machine)


def run_on_machine(
    workload: Workload, scheduler: Scheduler, machine: Machine, overrun: str, engine: str, progress: Callable[[int], None] | None
) -> Found:
    """The fields of a schedule on this machine; raises PolicyError for what it does not support."""
    if scheduler.prediction is not None:
        raise PolicyError("predicted runtimes are not supported on a machine of several pools yet; leave the predictor out")
    if workload.feedback:
        raise PolicyError("feedback is not supported on a machine of several pools; use dependencies, or leave it out")
    if isinstance(scheduler.policy, Slurm):
        from walltime.schedule.on_slurm import run_on_slurm

        return run_on_slurm(workload, scheduler.policy, machine, overrun, engine, progress)
    placed, placement = place(workload, machine)
    runtime, believed = effective_times(placed, overrun)
    known = known_to(scheduler.policy, placed, placed.requested)
    capacity = [(pool.nodes * pool.procs, pool.nodes * pool.second) for pool in machine.pools]
    partitions = [[machine.place_of(name) for name in one.pools] for one in machine.partitions]
    tiers = [one.tier for one in machine.partitions]
    begin = time.perf_counter()
    if engine == "reference":
        lists = known._replace(columns={name: values.tolist() for name, values in known.columns.items()})
        submit, length, planned, procs = (column.tolist() for column in (placed.submit, runtime, believed, placed.procs))
        since = [None if start == NEVER else start for start in placement.since.tolist()]
        reference = ClusterReference(
            submit,
            length,
            planned,
            procs,
            placement.second.tolist(),
            placement.partition.tolist(),
            since,
            placement.after,
            placement.limits_of,
            capacity,
            partitions,
            tiers,
            [Shortage(*outage) for outage in placement.outages],
            placement.limits,
            scheduler.policy,
            lists,
        )
        reference.run()
        found = _of_reference(reference, len(capacity))
        seconds = {"compile": 0.0, "simulate": time.perf_counter() - begin}
    else:
        from walltime.engine.cluster_run import ClusterSimulation, Demands, Hardware

        demands = Demands(placement.second, placement.partition, placement.since, placement.after, placement.limits_of)
        hardware = Hardware(np.array(capacity, np.int64), partitions, tiers, placement.outages, placement.limits)
        simulation = ClusterSimulation(placed.submit, runtime, believed, placed.procs, demands, hardware, scheduler.policy, known)
        simulation.compile()
        loaded = time.perf_counter()
        simulation.run(progress)
        found = {name: getattr(simulation, name) for name in ("start", "submit", "kind", "reserved_start", "given")}
        seconds = {"compile": loaded - begin, "simulate": simulation.seconds}
    submitted = found.pop("submit")
    found["submitted"] = submitted if any(placement.after) else None
    return found | {
        "workload": placed,
        "placement": placement,
        "end": found["start"] + runtime,
        "runtime": runtime,
        "seconds": seconds,
        "engine": engine,
    }


def _of_reference(reference: ClusterReference, pools: int) -> Found:
    jobs = reference.jobs
    kinds = {"start": np.int64, "submit": np.int64, "kind": np.uint8, "reserved_start": np.int64}
    found: Found = {name: np.array([getattr(job, name) for job in jobs], dtype) for name, dtype in kinds.items()}
    given = [[job.given.get(p, (0, 0)) for p in range(pools)] for job in jobs]
    return found | {"given": np.array(given, np.int64).reshape(len(jobs), pools, 2)}
