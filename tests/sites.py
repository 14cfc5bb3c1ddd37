"""A small site: a machine of two pools, its log with users and recorded waits, as a scheduler would have made them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import walltime as wt
from walltime.machine import Machine, Partition, Pool, write_machine
from walltime.workload import Workload
from walltime.workload.resampling import with_users

MACHINE = Machine(
    pools=(Pool("thin", 12, 8), Pool("fat", 2, 16)),
    partitions=(Partition("main", ("thin",)), Partition("big", ("thin", "fat"))),
    name="two kinds",
    policy="easy",
)
SLOWER = 4
ONE_POOL = Machine((Pool("nodes", 16, 8),), (Partition("main", ("nodes",)),), name="one kind", policy="easy")


def jobs_of(machine: Machine, jobs: int = 800, seed: int = 3, load: float = 0.8) -> Workload:
    """Jobs with users, in partitions by turns, all of which fit the first."""
    made = with_users(wt.workloads.Lublin99().generate(jobs=jobs, machine_procs=96, load=load, seed=seed), 12, seed)
    requested = SLOWER * made.requested  # so that few jobs are some weeks
    made = replace(made, submit=SLOWER * made.submit, runtime=SLOWER * made.runtime, requested=requested, planned=requested)
    rng = np.random.default_rng(seed)
    columns = dict(made.columns) | {"partition": rng.integers(1, 1 + len(machine.partitions), jobs)}
    names = {"partition": tuple(one.name for one in machine.partitions)}
    origin = replace(made.origin, names=names, unix_start_time=1_767_225_600, sha256="0" * 64, header=())
    return replace(made, columns=columns, origin=origin, machine_procs=machine.procs)


def recorded_as(workload: Workload, machine: Machine, policy: str, late: int = 0) -> Workload:
    """The same with the waits that this policy makes, each longer by this time, s."""
    schedule = wt.simulate(workload, policy, machine=machine)
    assert len(schedule) == len(workload)
    return replace(workload, columns=dict(workload.columns) | {"wait": schedule.wait + late})


def write_site(folder, workload: Workload, machine: Machine) -> tuple[str, str]:
    """The log and the machine as files; returns their paths."""
    log, cluster = folder / "log.swf", folder / "machine.toml"
    lines = [f"; MaxProcs: {machine.procs}", f"; UnixStartTime: {workload.origin.unix_start_time}"]
    value = workload.columns
    lines += [
        f"{workload.job_id[k]} {workload.submit[k]} {value['wait'][k]} {workload.runtime[k]} {workload.procs[k]} -1 -1 "
        f"{workload.procs[k]} {workload.requested[k]} -1 1 {value['user'][k]} -1 -1 -1 {value['partition'][k]} -1 -1"
        for k in range(len(workload))
    ]
    log.write_text("\n".join(lines) + "\n")
    numbered = tuple(replace(one, name=str(k)) for k, one in enumerate(machine.partitions, 1))
    cluster.write_text(write_machine(replace(machine, partitions=numbered)))
    return str(log), str(cluster)
