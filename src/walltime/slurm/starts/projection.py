"""Simulate a snapshot's jobs into the future, until all waiting jobs have started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from walltime.engine.problem import Demands, Problem, Shares
from walltime.errors import EngineError, WorkloadError
from walltime.machine.placing import NEVER
from walltime.policy import PAPERS
from walltime.policy.log_view import LogView
from walltime.ragged import Ragged
from walltime.schedule import Schedule
from walltime.simulation.run import Run, new_engine, pools_of
from walltime.simulation.specification import Scheduler
from walltime.slurm.starts.initial_state import InitialState
from walltime.workload import Workload

Array = np.ndarray
FIRST_NUMBER = 10**12
"""The number of the first job in a schedule."""


class Projection:
    """Runs the snapshot's jobs, with arriving jobs, under the site's policy."""

    def __init__(self, state: InitialState, scheduler: Scheduler):
        self.state, self.scheduler = state, scheduler
        self._slurm = scheduler.policy.settings() is not None
        if self._slurm:
            self._prepare_slurm()
        else:
            self._pools = pools_of(state.placement)

    def run(
        self,
        runtime: Array,
        arriving: Array | None = None,
        times: Array | None = None,
        check: Callable[[int], None] | None = None,
        *,
        only: int | None = None,
        without: Sequence[int] = (),
    ) -> Array:
        """Return the start of each of the snapshot's jobs, s from the state's zero, float64; inf for jobs that never start.

        `runtime`: of the snapshot's jobs (int64 s). `arriving`: places of recent jobs in the history, which arrive `times` after now (s).
        `only`: the place of the only job whose start is needed; others may be inf. `without`: places of jobs that are left out.
        """
        state = self.state
        count = len(state.jobs)
        if arriving is None or times is None:
            arriving, times = np.zeros(0, np.int64), np.zeros(0, np.int64)
        kept = np.delete(np.arange(count), list(without))
        chosen = np.concatenate([kept, count + arriving])
        submit = np.concatenate([state.submit[kept], state.now + times])
        order = np.argsort(submit, kind="stable")
        chosen = chosen[order]
        arriving_runtimes = np.minimum(state.workload.runtime, state.workload.requested)[count + arriving]
        runtimes = np.concatenate([runtime[kept], arriving_runtimes])[order]
        engine = new_engine(self.problem(chosen, submit[order], runtimes, starts_only=True), "kernel")
        mine = np.flatnonzero(chosen < count)
        awaited = mine if only is None else np.flatnonzero(chosen == only)
        try:
            while len(awaited):  # the last one in the queue is usually one of the last to start
                engine.await_start(awaited[-1])
                done = engine.advance()
                awaited = awaited[engine.start[awaited] < 0]
                if done:
                    break
                if check is not None:
                    check(0)
        except EngineError:
            pass  # some jobs never start
        started = engine.start[mine]
        start = np.full(count, np.inf)
        start[chosen[mine]] = np.where(started < 0, np.inf, started)
        return start

    def schedule(self, runtime: Array) -> Schedule:
        """Return the schedule of the snapshot's jobs alone, with these runtimes (int64 s). Raises EngineError if some never start.

        Jobs are numbered from FIRST_NUMBER, in their order here, because an array and its tasks may share a number.
        """
        state = self.state
        chosen = np.argsort(state.submit, kind="stable")
        submit, runtime = state.submit[chosen], runtime[chosen]
        problem, placement = self.problem(chosen, submit, runtime), state.placement
        engine = new_engine(problem, "kernel")
        engine.run()
        jobs = replace(self._jobs(chosen, submit, runtime), job_id=FIRST_NUMBER + chosen)
        placement = replace(
            placement,
            partition=placement.partition[chosen],
            second=placement.second[chosen],
            since=placement.since[chosen],
            after=Ragged.empty(len(chosen)),
            limits_of=placement.limits_of.take(chosen),
            windows_of=placement.windows_of.take(chosen),
        )
        return Run(jobs, self.scheduler, PAPERS, "kill", placement, problem).schedule(engine.outcome())

    def problem(self, chosen: Array, submit: Array, runtime: Array, starts_only: bool = False) -> Problem:
        """Return these jobs, by their places, with these submit times and runtimes (int64 s), on the snapshot's machine."""
        placed, placement = self.state.workload, self.state.placement
        lists: dict[str, Any] = {"after": Ragged.empty(len(chosen))}
        lists["limits"] = placement.limits_of.take(chosen) if placement.limits else lists["after"]
        common: dict[str, Any] = {"submit": submit, "runtime": runtime, "policy": self.scheduler.policy, "starts_only": starts_only}
        common |= {"believed": placed.requested[chosen], "procs": placed.procs[chosen]}
        if self._slurm:
            columns = [name for name in self._demands._fields if name not in lists]
            demands = self._demands._replace(**{name: getattr(self._demands, name)[chosen] for name in columns}, **lists)
            return Problem(machine=self._nodes, demands=demands, shares=self._shares, settings=self._settings, **common)
        known = LogView.of(self.scheduler.policy.reads, self._jobs(chosen, submit, runtime), placed.requested[chosen])
        lists["windows"] = placement.windows_of.take(chosen)
        own = Demands(placement.second[chosen], placement.partition[chosen], placement.since[chosen], **lists)
        return Problem(machine=self._pools, demands=own, known=known, **common)

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
        """Prepare nodes, settings and priorities: waiting jobs have Slurm's own priorities, and shares stay as in the snapshot."""
        from walltime.node_demands import nodes_of, with_priorities
        from walltime.policy.slurm import SlurmSettings

        state, machine = self.state, self.state.placement.machine
        settings = self.scheduler.policy.settings(machine.slurm)
        self._nodes = nodes_of(machine, state.placement, state.workload)
        demands = state.demands
        self._shares = Shares(np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros(1, np.int64))
        self._settings = settings
        if settings.multifactor:
            demands = with_priorities(state.workload, machine, settings, demands, self._nodes)[0]
            demands = demands._replace(merit=self._merits(demands.merit, settings), association=np.zeros_like(demands.association))
            self._settings = SlurmSettings({**settings.values, "priority_weight_fairshare": 0}, settings.notes)
            if not self._settings.multifactor:  # else all priorities would be equal
                self._settings = SlurmSettings({**self._settings.values, "priority_weight_qos": 1}, settings.notes)
        self._demands = demands

    def _merits(self, static: Array, settings: Any) -> Array:
        """Return the constant part of each priority: Slurm's own for waiting jobs, for others the known part plus the user's share.

        The share is the median excess of the priorities of the user's waiting jobs over their known part, or that of all users' jobs.
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
        all_shares = [rest for values in share.values() for rest in values]
        usual = float(np.median(all_shares)) if all_shares else settings["priority_weight_fairshare"] / 2
        user_share = {one: float(np.median(values)) for one, values in share.items()}
        unknown = np.arange(len(static)) >= count
        unknown[:count] = [job.start is None and job.priority is None for job in state.jobs]
        merit[unknown] += [user_share.get(one, usual) for one in user[unknown].tolist()]
        return merit


def misfit(projection: Projection) -> int | None:
    """Return the place of a running job that has no room on the machine as described; None if all fit. Raises WorkloadError."""
    state = projection.state
    places = np.arange(len(state.jobs))
    try:
        now = np.full(len(places), state.now)
        engine = new_engine(projection.problem(places, now, np.maximum(state.workload.requested[places], 1)), "kernel")
        if engine.machine == "nodes":
            engine.advance(1)
    except (WorkloadError, EngineError) as error:
        number = str(error).rpartition(" ")[2]
        if not number.isdecimal() or not 0 < int(number) <= len(places) or state.placement.since[int(number) - 1] == NEVER:
            raise
        return int(number) - 1
    return None
