"""Simulations from a snapshot into the future, as far as all jobs that wait have started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from walltime.auditor.scores import known_to
from walltime.errors import EngineError, WorkloadError
from walltime.machine.placing import NEVER
from walltime.policy import Slurm
from walltime.schedule import Schedule
from walltime.simulation.specification import Scheduler
from walltime.slurm.starts.initial_state import InitialState
from walltime.workload import Workload

Array = np.ndarray
FIRST_NUMBER = 10**12
"""The number of the first job in a schedule."""
PIECE = 1_000_000
"""Steps of the simulation between two looks whether all jobs have started."""


class Projection:
    """Runs the snapshot's jobs, with jobs to come, under the site's policy."""

    def __init__(self, state: InitialState, scheduler: Scheduler):
        self.state, self.scheduler = state, scheduler
        self._slurm = isinstance(scheduler.policy, Slurm)
        self._limited = bool(state.placement.limits)
        if self._slurm:
            self._prepare_slurm()
        else:
            machine = state.placement.machine
            self._capacity = np.array([(pool.nodes * pool.procs, pool.nodes * pool.second) for pool in machine.pools], np.int64)
            self._partitions = [[machine.place_of(name) for name in one.pools] for one in machine.partitions]
            self._tiers = [one.tier for one in machine.partitions]

    def run(
        self,
        runtime: Array,
        coming: Array | None = None,
        times: Array | None = None,
        check: Callable[[int], None] | None = None,
        *,
        only: int | None = None,
        without: Sequence[int] = (),
    ) -> Array:
        """The start of each of the snapshot's jobs, s from the state's zero, float64: inf for those that never start.

        `runtime`: of the snapshot's jobs (int64 s). `coming`: places of recent jobs in the history, which come `times` after now (s).
        `only`: the place of the one whose start matters; others may be inf. `without`: places of jobs that are left out.
        """
        state = self.state
        count = len(state.jobs)
        if coming is None or times is None:
            coming, times = np.zeros(0, np.int64), np.zeros(0, np.int64)
        there = np.delete(np.arange(count), list(without))
        chosen = np.concatenate([there, count + coming])
        submit = np.concatenate([state.submit[there], state.now + times])
        order = np.argsort(submit, kind="stable")
        chosen = chosen[order]
        of_coming = np.minimum(state.workload.runtime, state.workload.requested)[count + coming]
        all_runtimes = np.concatenate([runtime[there], of_coming])[order]
        simulation = self._simulation(chosen, submit[order], all_runtimes, starts_only=True)
        mine = np.flatnonzero(chosen < count)
        awaited = mine if only is None else np.flatnonzero(chosen == only)
        try:
            while not simulation.advance(PIECE):
                if check is not None:
                    check(0)
                if (simulation._memory.jobs.start[awaited] >= 0).all():
                    break
        except EngineError:
            pass  # some jobs never start
        found = simulation._memory.jobs.start[mine]
        start = np.full(count, np.inf)
        start[chosen[mine]] = np.where(found < 0, np.inf, found)
        return start

    def schedule(self, runtime: Array) -> Schedule:
        """The schedule of the snapshot's jobs alone, with these runtimes (int64 s), for stories. Raises EngineError if some never start.

        Jobs are numbered from FIRST_NUMBER on, in their order here: an array and its tasks may share a number, and are queued otherwise.
        """
        state = self.state
        chosen = np.argsort(state.submit, kind="stable")
        submit, runtime = state.submit[chosen], runtime[chosen]
        simulation = self._simulation(chosen, submit, runtime)
        simulation.run()
        placement = state.placement
        jobs = replace(self._jobs(chosen, submit, runtime), job_id=FIRST_NUMBER + chosen)
        slots = None
        if self._slurm:
            slots = simulation.slots
            given = np.zeros((len(chosen), len(placement.machine.pools), 2), np.int64)
            np.add.at(given, (slots[0], self._nodes.pool[slots[1]]), np.stack([slots[2], slots[3]], axis=1))
        else:
            given = simulation.given
        return Schedule(
            workload=jobs,
            policy=self.scheduler.policy,
            start=simulation.start,
            end=simulation.start + simulation.runtime if self._slurm else simulation.start + runtime,
            runtime=simulation.runtime if self._slurm else runtime,
            kind=simulation.kind,
            reserved_start=simulation.reserved_start,
            overrun="kill",
            placement=replace(
                placement,
                partition=placement.partition[chosen],
                second=placement.second[chosen],
                since=placement.since[chosen],
                after=[[] for _ in chosen],
                limits_of=[placement.limits_of[k] for k in chosen.tolist()],
            ),
            given=given,
            slots=slots,
        )

    def _simulation(self, chosen: Array, submit: Array, runtime: Array, starts_only: bool = False) -> Any:
        placed, placement = self.state.workload, self.state.placement
        after: list[list[int]] = [[]] * len(chosen)
        limits = [placement.limits_of[k] for k in chosen.tolist()] if self._limited else after
        requested, procs = placed.requested[chosen], placed.procs[chosen]
        if self._slurm:
            from walltime.engine.interface.nodes import SlurmSimulation

            wants = self._wants._replace(
                **{name: getattr(self._wants, name)[chosen] for name in self._wants._fields if name not in ("after", "limits")},
                after=after,
                limits=limits,
            )
            return SlurmSimulation(submit, runtime, requested, procs, wants, self._nodes, self._shares, self._settings, True, starts_only)
        from walltime.engine.interface.pools import ClusterSimulation, Demands, Hardware

        known = known_to(self.scheduler.policy, self._jobs(chosen, submit, runtime), requested)
        windows = [placement.windows_of[k] for k in chosen.tolist()] if placement.windows else ()
        demands = Demands(placement.second[chosen], placement.partition[chosen], placement.since[chosen], after, limits, windows)
        hardware = Hardware(self._capacity, self._partitions, self._tiers, placement.outages, placement.limits, placement.windows)
        return ClusterSimulation(submit, runtime, requested, procs, demands, hardware, self.scheduler.policy, known)

    def _jobs(self, chosen: Array, submit: Array, runtime: Array) -> Workload:
        placed = self.state.workload
        return replace(
            placed,
            job_id=np.arange(1, len(chosen) + 1),
            submit=submit,
            runtime=runtime,
            requested=placed.requested[chosen],
            believed=placed.requested[chosen],
            procs=placed.procs[chosen],
            columns={name: values[chosen] for name, values in placed.columns.items()},
            order=None,
        )

    def _prepare_slurm(self) -> None:
        """Nodes, settings, and priorities: waiting jobs have Slurm's own, and shares stay as they are at the snapshot."""
        from walltime.engine.inputs import Shares
        from walltime.policy.slurm import Settings
        from walltime.simulation.on_slurm import nodes_of, with_priorities

        state, policy = self.state, self.scheduler.policy
        assert isinstance(policy, Slurm)
        machine = state.placement.machine
        settings = policy.settings(machine.slurm)
        self._nodes = nodes_of(machine, state.placement)
        wants: Any = state.wants
        self._shares = Shares(np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros(1, np.int64))
        self._settings = settings
        if settings.multifactor:
            wants = with_priorities(state.workload, machine, settings, wants, self._nodes)[0]
            wants = wants._replace(merit=self._merits(wants.merit, settings), association=np.zeros_like(wants.association))
            self._settings = Settings({**settings.values, "priority_weight_fairshare": 0}, settings.notes)
            if not self._settings.multifactor:  # else all would have the same
                self._settings = Settings({**self._settings.values, "priority_weight_qos": 1}, settings.notes)
        self._wants = wants

    def _merits(self, static: Array, settings: Any) -> Array:
        """What does not change of each priority: of a waiting job what Slurm says; of others what can be known, and the user's share.

        The share is what the priorities of the user's waiting jobs have beyond what is known, or those of all.
        """
        state = self.state
        count, merit = len(state.jobs), static.copy()
        user = state.workload.columns["user"]
        age_weight, longest = settings["priority_weight_age"], max(1, settings["priority_max_age"])
        share: dict[int, list[float]] = {}
        for k, job in enumerate(state.jobs):
            if job.start is None and job.priority is not None:
                waited = max(0, state.now + state.zero - (job.eligible or job.submit or state.now + state.zero))
                rest = job.priority - static[k] - age_weight * min(1.0, waited / longest)
                share.setdefault(int(user[k]), []).append(rest)
                merit[k] = job.priority
        everybody = [rest for values in share.values() for rest in values]
        usual = float(np.median(everybody)) if everybody else settings["priority_weight_fairshare"] / 2
        of_user = {one: float(np.median(values)) for one, values in share.items()}
        unsaid = np.arange(len(static)) >= count
        unsaid[:count] = [job.start is None and job.priority is None for job in state.jobs]
        merit[unsaid] += [of_user.get(one, usual) for one in user[unsaid].tolist()]
        return merit


def misfit(projection: Projection) -> int | None:
    """The place of a running job for which the machine, as it is described, has no room; None if all fit. Raises WorkloadError."""
    state = projection.state
    everybody = np.arange(len(state.jobs))
    try:
        simulation = projection._simulation(
            everybody, np.full(len(everybody), state.now), np.maximum(state.workload.requested[everybody], 1)
        )
        simulation.compile()
        if projection._slurm:
            simulation.advance(1)
    except (WorkloadError, EngineError) as error:
        number = str(error).rpartition(" ")[2]
        if not number.isdecimal() or not 0 < int(number) <= len(everybody) or state.placement.since[int(number) - 1] == NEVER:
            raise
        return int(number) - 1
    return None
