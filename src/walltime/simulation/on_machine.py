"""Simulation on a machine of pools, partitions, outages and limits, in either engine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from walltime.auditor.scores import known_to
from walltime.engine.reference.pools import ClusterReference, Shortage
from walltime.errors import PolicyError
from walltime.estimates import effective_times
from walltime.machine import Machine, Placement, place
from walltime.machine.placing import NEVER
from walltime.policy import Policy, Slurm
from walltime.schedule.schedule import PredictionRecord
from walltime.simulation.prediction import for_kernel, for_reference
from walltime.simulation.specification import Scheduler
from walltime.workload import Workload

Array = np.ndarray
Found = dict[str, Any]
"""Columns and facts of a schedule, by the names of its fields."""


def placed_under(workload: Workload, machine: Machine, policy: Policy | None) -> tuple[Workload, Placement]:
    """The jobs that can run on this machine under a policy, as they run there, and what they need; see `walltime.machine.place`."""
    if isinstance(policy, Slurm):
        from walltime.simulation.on_slurm import place_on_nodes

        return place_on_nodes(workload, machine, policy.settings(machine.slurm))[:2]
    return place(workload, machine)


def run_on_machine(
    workload: Workload, scheduler: Scheduler, machine: Machine, overrun: str, engine: str, progress: Callable[[int], None] | None
) -> Found:
    """The fields of a schedule on this machine; raises PolicyError for what it does not support."""
    if isinstance(scheduler.policy, Slurm):
        if machine.windows:
            raise PolicyError("Slurm's scheduling knows no windows; leave them out of the machine's file, or take another policy")
        if scheduler.prediction is not None:
            raise PolicyError("Slurm's scheduling knows no predicted runtimes but time_min; leave the predictor out")
        from walltime.simulation.on_slurm import run_on_slurm

        return run_on_slurm(workload, scheduler.policy, machine, overrun, engine, progress)
    passes = scheduler.policy.passes
    if passes is None or passes.kind not in ("head", "fresh", "kept") or passes.window or not passes.every_arrival:
        raise PolicyError(
            f"{scheduler.policy.label} does not run on a machine of several pools; known are fcfs, easy, hybrid and conservative, with the "
            "interpretations that the compiled engine has"
        )
    placed, placement = place(workload, machine)
    runtime, believed = effective_times(placed, overrun)
    known = known_to(scheduler.policy, placed, placed.requested)
    capacity = [(pool.nodes * pool.procs, pool.nodes * pool.second) for pool in machine.pools]
    partitions = [[machine.place_of(name) for name in one.pools] for one in machine.partitions]
    tiers = [one.tier for one in machine.partitions]
    after, think = placed.dependencies() if placed.feedback else (None, None)
    if after is not None:
        after[placement.since < NEVER] = -1  # it has been submitted already
    chosen, record = scheduler.prediction, None
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
            None if chosen is None else for_reference(chosen, placed, placed.requested, runtime, believed),
            None if after is None else after.tolist(),
            None if think is None else think.tolist(),
            [(list(zip(hours.begin.tolist(), hours.end.tolist(), strict=True)), hours.crossing) for hours in placement.windows],
            placement.windows_of,
        )
        reference.run()
        if chosen is not None:
            jobs = reference.jobs
            predicted, corrections = (np.array([getattr(job, name) for job in jobs], np.int64) for name in ("predicted", "corrections"))
            record = PredictionRecord(chosen, predicted, np.array([job.basis for job in jobs], np.uint8), corrections)
        found = _of_reference(reference, len(capacity))
        seconds = {"compile": 0.0, "simulate": time.perf_counter() - begin}
    else:
        from walltime.engine.interface.pools import ClusterSimulation, Demands, Hardware

        demands = Demands(
            placement.second, placement.partition, placement.since, placement.after, placement.limits_of, placement.windows_of
        )
        hardware = Hardware(np.array(capacity, np.int64), partitions, tiers, placement.outages, placement.limits, placement.windows)
        lowered = None if chosen is None else for_kernel(chosen, placed, placed.requested, runtime, believed)
        columns = (placed.submit, runtime, believed, placed.procs)
        simulation = ClusterSimulation(*columns, demands, hardware, scheduler.policy, known, lowered, after, think)
        simulation.compile()
        loaded = time.perf_counter()
        simulation.run(progress)
        if chosen is not None:
            record = PredictionRecord(chosen, simulation.predicted, simulation.basis, simulation.corrections)
        found = {name: getattr(simulation, name) for name in ("start", "submit", "kind", "reserved_start", "given")}
        seconds = {"compile": loaded - begin, "simulate": simulation.seconds}
    submitted = found.pop("submit")
    found["submitted"] = submitted if any(placement.after) or placed.feedback else None
    return found | {
        "workload": placed,
        "placement": placement,
        "end": found["start"] + runtime,
        "runtime": runtime,
        "predictions": record,
        "seconds": seconds,
        "engine": engine,
    }


def _of_reference(reference: ClusterReference, pools: int) -> Found:
    jobs = reference.jobs
    kinds = {"start": np.int64, "submit": np.int64, "kind": np.uint8, "reserved_start": np.int64}
    found: Found = {name: np.array([getattr(job, name) for job in jobs], dtype) for name, dtype in kinds.items()}
    given = [[job.given.get(p, (0, 0)) for p in range(pools)] for job in jobs]
    return found | {"given": np.array(given, np.int64).reshape(len(jobs), pools, 2)}
