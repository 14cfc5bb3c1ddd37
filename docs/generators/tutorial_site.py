"""A synthetic cluster's sacct file for the tutorial, from a simulation with a rule that the machine file omits."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

import walltime as wt
from walltime.machine import Limit, Machine, Partition, Pool
from walltime.workload import Workload

BEGIN = 1_767_589_200  # a Monday, 5:00 UTC
JOBS, PROCS, SLOWER = 6000, 416, 3
MACHINE = Machine(
    pools=(Pool("thin", 11, 32), Pool("fat", 1, 64)),
    partitions=(
        Partition("short", ("thin", "fat"), max_time=12 * 3600, tier=1),
        Partition("long", ("thin",), max_time=3 * 86_400),
    ),
    limits=(Limit(("user",), jobs=10),),
    policy="slurm",
    slurm={"SchedulerParameters": "bf_interval=60,bf_max_job_test=20,bf_window=4320", "PriorityWeightAge": "1000", "PriorityMaxAge": "7-0"},
)
"""As it really is; the tutorial's file does not know of the limit."""
FIELDS = (
    "JobIDRaw",
    "User",
    "Account",
    "Partition",
    "QOS",
    "State",
    "Submit",
    "Eligible",
    "Start",
    "End",
    "ElapsedRaw",
    "TimelimitRaw",
    "ReqCPUS",
    "AllocCPUS",
    "NNodes",
    "Reason",
    "Flags",
    "JobName",
)


def jobs() -> Workload:
    """The jobs as they were submitted."""
    made = wt.workloads.Lublin99().generate(jobs=JOBS, machine_procs=256, load=0.92, seed=2)
    made = wt.workloads.with_users(made, 24, 2).with_estimates(wt.estimates.Tsafrir05(), seed=2)
    requested = np.maximum(-(-SLOWER * made.requested // 60) * 60, 60)
    long = requested > 12 * 3600
    columns = {"user": made.columns["user"], "partition": np.where(long, 2, 1)}
    origin = replace(made.origin, names={"partition": ("short", "long")}, unix_start_time=BEGIN)
    runtime = np.minimum(SLOWER * made.runtime, np.minimum(requested, 3 * 86_400))
    shared = {"columns": columns, "origin": origin, "machine_procs": PROCS}
    return Workload.from_arrays(submit=SLOWER * made.submit, runtime=runtime, requested=requested, procs=made.procs, **shared)


@functools.cache
def sacct() -> bytes:
    """Return the sacct records of the jobs."""
    workload = jobs()
    schedule = wt.simulate(workload, "slurm", machine=MACHINE)
    ran = schedule.workload
    draw = np.random.default_rng(5).random(len(ran))
    held = np.where(draw < 0.04, (draw * 100_000).astype(np.int64), 0)  # submitted earlier, and waited for other jobs first
    lines = ["|".join(FIELDS)]
    for k in range(len(ran)):
        submit, start, end = (int(BEGIN + column[k]) for column in (schedule.submit, schedule.start, schedule.end))
        user = int(ran.columns["user"][k])
        over = int(ran.runtime[k]) > int(ran.requested[k])
        values = [
            ran.job_id[k],
            f"u{user:02d}",
            "physics" if user % 3 else "biology",
            "long" if ran.columns["partition"][k] == 2 else "short",
            "normal",
            "TIMEOUT" if over else "COMPLETED",
            submit - int(held[k]),
            submit,
            start,
            end,
            end - start,
            int(ran.requested[k]) // 60,
            ran.procs[k],
            ran.procs[k],
            -(-int(ran.procs[k]) // 32),
            "Dependency" if held[k] else "None",
            "SchedBackfill" if schedule.kind[k] == wt.policy.Kind.BACKFILLED else "SchedMain",
            "job",
        ]
        lines.append("|".join(map(str, values)))
    return ("\n".join(lines) + "\n").encode()


def files() -> dict[str, bytes]:
    """The files that the tutorial begins with."""
    return {"cluster-2026.txt": sacct()}
