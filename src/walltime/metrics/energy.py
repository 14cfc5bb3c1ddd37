"""Energy of jobs, recorded or computed from the power of nodes, with cost and carbon; idle nodes and cooling are excluded."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from walltime.errors import WorkloadError
from walltime.machine import Machine
from walltime.workload import Array, Workload

KWH = 3.6e6
"""Joules of a kilowatt-hour."""
ENERGY_NOTE = "Recorded energy, or runtime times power of the allocated share of nodes, excluding idle nodes and cooling."
NO_ENERGY = "The energy is unknown: the log does not record it, and no machine file with the watts of its pools is given."


@dataclass(frozen=True, eq=False)
class Carbon:
    """Carbon intensity of electricity: grams of CO2 per kWh, each valid from its time until the next one.

    `times`: int64 s since 1970, ascending; empty for a single value at all times.
    """

    grams: Array
    times: Array

    @classmethod
    def constant(cls, grams: float) -> Self:
        """Return an intensity that is constant over time."""
        return cls(np.array([grams], np.float64), np.zeros(0, np.int64))

    def of(self, workload: Workload, kwh: Array, start: Array | None = None, runtime: Array | None = None) -> Array:
        """Return the grams of each job, whose energy is spread evenly over its run; NaN for runs that the times do not cover.

        `start`, `runtime`: the columns of a schedule, s; by default the recorded ones. The last value is valid for as long as the
        second last. Raises WorkloadError for a series of values if the log lacks dates or starts.
        """
        if not len(self.times):
            return kwh * float(self.grams[0])
        if start is None and (wait := workload.recorded_wait) is not None:
            start = workload.submit + wait
        if workload.origin.unix_start_time is None or start is None:
            raise WorkloadError(
                f"{workload.origin.name} does not record dates and starts of jobs, which a time series of carbon needs; use one number",
                "starts_unknown",
            )
        edges = np.append(self.times, 2 * self.times[-1] - self.times[-2]).astype(np.float64)
        sums = np.concatenate([[0.0], np.cumsum(self.grams * np.diff(edges))])
        begin = (workload.origin.unix_start_time + start).astype(np.float64)
        length = np.maximum(workload.runtime if runtime is None else runtime, 1)
        inside = (begin >= edges[0]) & (begin + length <= edges[-1])
        mean = (np.interp(begin + length, edges, sums) - np.interp(begin, edges, sums)) / length
        return np.where(inside, kwh * mean, np.nan)


def cost_of(kwh: float, price: float | None) -> float:
    """Return the cost of energy at a price per kWh; NaN without a price."""
    return math.nan if price is None else price * kwh


def energy_of(workload: Workload, machine: Machine | None = None) -> tuple[Array, Array]:
    """Return the energy of each job (kWh, float64, NaN if unknown) and a mask (bool) of the jobs with a recorded energy.

    Unrecorded energy is runtime times power, from the pools of the job's partition, averaged over their nodes: `watts` x processors /
    processors of a node + `proc_watts` x processors + `gpu_watts` x GPUs.
    """
    w = workload
    joules = np.asarray(w.columns.get("energy", np.full(len(w), -1.0)), np.float64)
    recorded = joules > 0
    kwh = np.where(recorded, joules / KWH, np.nan)
    if machine is None or not any(pool.watts or pool.proc_watts or pool.gpu_watts for pool in machine.pools):
        return kwh, recorded
    gpus = np.maximum(w.columns.get("gpus", np.zeros(len(w))), 0)
    partition, texts = w.columns.get("partition", np.full(len(w), -1)), w.origin.names.get("partition", ())
    own = {one.name: one.pools for one in machine.partitions}
    watts = np.zeros(len(w))
    for number in np.unique(partition).tolist():
        names = own.get(texts[number - 1] if 0 < number <= len(texts) else "", [pool.name for pool in machine.pools])
        pools, mine = [pool for pool in machine.pools if pool.name in names], partition == number
        nodes = np.array([pool.nodes for pool in pools], np.float64)
        of_proc = float(np.average([pool.watts / pool.procs + pool.proc_watts for pool in pools], weights=nodes))
        of_gpu = float(np.average([pool.gpu_watts for pool in pools], weights=nodes))
        watts[mine] = w.procs[mine] * of_proc + gpus[mine] * of_gpu
    return np.where(recorded, kwh, watts * w.runtime / KWH), recorded
