"""A small made-up workload for first looks; it follows no published model."""

from __future__ import annotations

import numpy as np

from walltime.errors import WorkloadError
from walltime.workload.workload import Origin, Workload

DAY = 86_400
POPULAR = np.array([5, 10, 15, 30, 60, 120, 240, 480, 720, 1080]) * 60
"""Requests that users like to make, in seconds."""


def demo_workload(jobs: int = 5000, procs: int = 128, load: float = 0.85, seed: int = 1) -> Workload:
    """Jobs with the rough features of real logs: a daily cycle, many short and narrow jobs, powers of two, round requests.

    `jobs` jobs on a machine of `procs` processors at this offered load (of the machine, per second). The same seed gives
    the same workload. Raises WorkloadError for impossible parameters.

    >>> demo_workload(jobs=100, seed=7).submit[0]
    np.int64(0)
    """
    if jobs < 2 or procs < 1 or not 0 < load <= 1.5:
        raise WorkloadError(f"a demo needs at least 2 jobs, 1 processor and a load over 0 and up to 1.5, not {jobs}, {procs}, {load}")
    random = np.random.Generator(np.random.Philox(seed))
    widest = int(np.log2(procs))
    power = random.integers(0, widest + 1, jobs) * random.integers(0, 2, jobs)
    power = np.maximum(power, random.binomial(widest, 0.25, jobs))
    size = np.minimum(2**power, procs)
    runtime = np.floor(np.exp(random.normal(6.8, 2.2, jobs))).astype(np.int64)
    runtime = np.minimum(runtime, POPULAR[-1])
    wish = np.minimum(runtime * random.uniform(1.0, 6.0, jobs), POPULAR[-1])
    requested = POPULAR[np.searchsorted(POPULAR, wish)]

    # Interarrival times grow with the hour's quietness, then all shrink together until the load is as asked.
    gap = random.exponential(1.0, jobs)
    gap[0] = 0
    work = float(np.dot(size, runtime))
    span = work / (procs * load)
    steady = np.cumsum(gap) * span / gap.sum()
    busy_by_day = steady + 0.12 * DAY * np.sin(2 * np.pi * steady / DAY)
    submit = np.floor(np.maximum.accumulate(busy_by_day - busy_by_day[0])).astype(np.int64)
    return Workload.from_arrays(
        submit=submit,
        runtime=runtime,
        requested=requested,
        procs=size,
        machine_procs=procs,
        origin=Origin(
            name=f"synthetic-demo-{seed}", records=jobs, unix_start_time=0, header=("; Note: synthetic workload of walltime demo",)
        ),
    )
