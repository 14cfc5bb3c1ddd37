"""The setting of a simulation in a what-if: the machine, its policy, and changes to the submitted jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from walltime.errors import PolicyError
from walltime.estimates import parse_estimates
from walltime.machine import Machine
from walltime.metrics.right_size import right_sized
from walltime.policy import Policy
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler
from walltime.whatif.adjustment import Adjustment, planned_by_time_min
from walltime.workload import Workload
from walltime.workload.scaling import scale_load, shake

SHAKE = 30
"""Largest random shift of a submission in a shaken copy, s (Tsafrir, Ouaknine, Feitelson, MASCOTS 2007)."""
NEEDED = {"policy": 'how the site schedules, such as policy = "easy"; or give one with --policy'}
"""A key that the machine file must have unless a policy is given."""


@dataclass(frozen=True)
class Setting:
    """A machine, its policy, and changes to the submitted jobs.

    `load`, `requested`: factors of the offered load and of the requested times. `estimates`: the estimate model with which the scheduler
    plans, as text. `adjustment`: a side-car that sets TimeMin, or None. `requests`: resources
    with changed requests, each with the way it changes and the risk in percent (`walltime.metrics.right_size.right_sized`).
    """

    machine: Machine
    policy: str | Policy | Scheduler
    load: float = 1.0
    requested: float = 1.0
    estimates: str = "user"
    adjustment: Adjustment | None = None
    requests: tuple[tuple[str, str | float, float], ...] = ()

    @classmethod
    def of(cls, machine: Machine, policy: str | Policy | Scheduler | None = None) -> Setting:
        """Return today's setting, with the given policy or the policy of the machine file; raises PolicyError if both are missing."""
        chosen = machine.policy if policy is None else policy
        if chosen is None:
            raise PolicyError('the machine file has no policy; add one, such as policy = "easy"', "missing_policy")
        setting = cls(machine, chosen)
        setting.scheduler()
        return setting

    def scheduler(self) -> Scheduler:
        """Return the scheduler; raises PolicyError for an unknown policy or invalid Slurm parameters."""
        scheduler = Scheduler.of(self.policy)
        scheduler.policy.settings(self.machine.slurm)
        return scheduler if self.adjustment is None else planned_by_time_min(scheduler, self.machine)

    def jobs(self, workload: Workload, seed: int = 0, shaken: int = 0) -> Workload:
        """Return the workload as submitted under this setting; `shaken`: largest random shift of a submission, s."""
        if self.adjustment is not None:  # first, because it learns from the recorded times
            workload = self.adjustment.apply(workload)
        for resource, how, risk in self.requests:
            workload = right_sized(workload, resource, how, risk)
        if self.load != 1:
            workload = scale_load(workload, workload.offered_load * self.load)
        if shaken:
            workload = shake(workload, shaken, seed)
        if self.requested != 1:
            same = workload.planned is workload.requested
            requested = np.maximum(np.ceil(workload.requested * self.requested), 1).astype(np.int64)
            workload = replace(workload, requested=requested, planned=requested if same else np.minimum(workload.planned, requested))
        return workload if self.estimates == "user" else workload.with_estimates(parse_estimates(self.estimates), seed)

    def run(
        self,
        workload: Workload,
        *,
        overrun: str = "kill",
        seed: int = 0,
        shaken: int = 0,
        progress: Callable[[int], None] | None = None,
    ) -> Schedule:
        """Simulate the setting; the arguments are as in `simulate` and `jobs`."""
        jobs = self.jobs(workload, seed, shaken)
        return simulate(jobs, self.scheduler(), overrun=overrun, machine=self.machine, progress=progress)


def machine_of(workload: Workload, machine: Machine | None) -> Machine:
    """Return the given machine or, if it is None, one pool of the log's processors under EASY."""
    return Machine.one_pool(workload.machine_procs, workload.origin.site, "easy") if machine is None else machine
