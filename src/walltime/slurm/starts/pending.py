"""The reason why each waiting job of a snapshot is pending, from the snapshot and from a plan in which jobs run for typical times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from walltime.engine.machines import NodeDemands, Nodes
from walltime.errors import EngineError
from walltime.explanation.node_room import free_on_nodes, room_obstacle
from walltime.explanation.pools import limit_words
from walltime.machine.placing import amount_of
from walltime.schedule import Schedule
from walltime.slurm.snapshot import Snapshot
from walltime.slurm.snapshot_jobs import SNAPSHOT_RULES, WAITING, SnapshotJob
from walltime.slurm.starts.forecast import FIRST_NUMBER, SOON, Forecast
from walltime.whatif.wait_causes import CAPACITY, REASONS
from walltime.wording import counted, human_time, sanitize

_USUAL = ("", "None", "Resources", "Priority")
"""Reasons from Slurm that the plan explains in more detail; other reasons are shown as Slurm gives them."""
_OF_THE_PLAN = ("starts", "resources", "priority", "other")
"""Kinds of reasons that are replaced if Slurm gives a reason other than resources or priority."""
_ROOM = {
    "features": "enough is free, but not on nodes with the features or GPUs that it requests",
    "memory": "enough processors are free, but not with its memory on the same nodes",
    "resource": "enough processors are free, but not with its {second} on the same nodes",
    "nodes": "enough is free, but not distributed over the nodes as it requests",
}


@dataclass(frozen=True)
class Pending:
    """The reason why a job waits.

    `kind`: `starts` (in the next pass), `resources`, `priority`, `limit`, `dependency`, `reservation` (or an outage), `hours` (a window of
    the site), `closed` (its partition), `begin` (it is not eligible yet), `held`, `never`, `other`, or `unknown`. `ahead`: the number of
    waiting jobs with a higher priority that use the same pools.
    """

    kind: str
    text: str
    ahead: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return all values for JSON."""
        return asdict(self)


NOT_ASKED = Pending("unknown", "")
"""Placeholder for a reason that was not determined."""


def _why_apart(job: SnapshotJob) -> Pending:
    kind = {"held": "held", "dependent": "dependency", "closed": "closed"}.get(job.left_out, "never" if job.never else "other")
    text = SNAPSHOT_RULES[job.left_out]
    if kind == "dependency" and job.dependency not in ("", "yes"):
        text = f"It waits for other jobs: {sanitize(job.dependency, 80)}."
    return Pending(kind, text)


def apart_reasons(snapshot: Snapshot) -> list[tuple[SnapshotJob, Pending]]:
    """Return the waiting jobs that are not simulated, each with its reason."""
    return [(job, _why_apart(job)) for job in snapshot.apart if job.state == WAITING]


def pending_reasons(forecast: Forecast) -> dict[str, Pending]:
    """Return the reason for each simulated waiting job, by its number in Slurm's form.

    The reason holds at the snapshot's time, after the start of all jobs that the plan starts within a minute.
    """
    state, snapshot = forecast.state, forecast.snapshot
    typical = forecast.runtimes.typical()
    starts = forecast.projection.run(typical)
    stuck = np.flatnonzero(~np.isfinite(starts)).tolist()
    try:
        plan = _Plan(forecast, forecast.projection.schedule(typical, stuck))
    except EngineError:
        plan = None
    waiting = [k for k, job in enumerate(state.jobs) if job.start is None]
    reasons = {}
    for k in waiting:
        job = state.jobs[k]
        foreign = next((what for pattern, what in REASONS.items() if what != CAPACITY and re.match(pattern, job.reason)), "")
        if job.eligible is not None and job.eligible > snapshot.time + SOON:
            reason = Pending("begin", f"it may start in {human_time(job.eligible - snapshot.time)} at the earliest")
        elif plan is None:
            reason = Pending("unknown", "unknown, as the plan has no end")
        elif k in stuck:
            reason = Pending("never", "it never starts on the machine as it is now")
        else:
            reason = plan.reason(k, waiting[: waiting.index(k)])
        if foreign and reason.kind in _OF_THE_PLAN:
            kind = "limit" if foreign.startswith("a limit") else "other"
            reason = Pending(kind, f"it waits for {foreign}, which the plan does not show", reason.ahead)
        if job.reason not in _USUAL:
            reason = Pending(reason.kind, f"{reason.text} (Slurm: {sanitize(job.reason, 40)})", reason.ahead)
        reasons[job.label] = reason
    return reasons


class _Plan:
    """The state of the machine and of the jobs, at the snapshot's time, in a plan of future starts."""

    def __init__(self, forecast: Forecast, schedule: Schedule):
        placement, given = schedule.placement, schedule.given
        assert placement is not None, "a snapshot has a machine"
        assert given is not None, "both engines record the jobs' pools"
        self.schedule, self.placement, self.given = schedule, placement, given
        self.now, self.machine = forecast.state.now, placement.machine
        self.index = {int(number) - FIRST_NUMBER: k for k, number in enumerate(schedule.workload.job_id)}
        self.runs = (schedule.start <= self.now + SOON) & (schedule.end > self.now)
        self.capacity = np.array([[pool.nodes * pool.procs, pool.nodes * pool.second] for pool in self.machine.pools], np.int64)
        self.used = given[self.runs].astype(np.int64).sum(axis=0)
        self.shares = np.array([[self.machine.place_of(name) for name in one.pools] for one in self.machine.partitions], object)
        self.nodes: Nodes | None = None
        if schedule.simulated_on == "nodes":
            order = np.argsort(forecast.state.submit, kind="stable")
            chosen = order[np.isin(order, list(self.index))]
            problem = forecast.projection.problem(chosen, schedule.submit, schedule.workload.runtime)
            assert isinstance(problem.machine, Nodes), "it was simulated on nodes"
            assert isinstance(problem.demands, NodeDemands), "it was simulated on nodes"
            self.nodes, self.demands = problem.machine, problem.demands
            self.free_nodes, self.idle_nodes = (
                free_on_nodes(schedule, self.nodes, self.demands, k) for k in (self.runs, self.runs & False)
            )

    def reason(self, place: int, before: Sequence[int]) -> Pending:
        """Return the reason for the job with an index in the snapshot; `before`: the indices of waiting jobs with a higher priority."""
        job = self.index[place]
        pools = set(self._pools(job))
        others = [self.index[k] for k in before if k in self.index]
        ahead = sum(bool(pools & set(self._pools(k))) and not self.runs[k] for k in others)
        kind, text = self._obstacle(job, ahead)
        queue = f"{counted(ahead, 'job')} ahead of it"
        return Pending(kind, f"{text}; {queue}" if kind == "resources" and ahead else text, ahead)

    def _pools(self, job: int) -> list[int]:
        return list(self.shares[int(self.placement.partition[job])])

    def _obstacle(self, job: int, ahead: int) -> tuple[str, str]:
        if self.runs[job]:
            return "starts", "nothing: it starts in the scheduler's next pass"
        if limit := self._limit(job):
            return "limit", f"a limit holds it back: {limit}"
        request = int(self.schedule.workload.requested[job])
        if self.placement.shut(job, request, np.array([self.now]))[0]:
            return "hours", "the site's hours do not allow it to start now"
        for idle in (True, False):  # first ignore the running jobs, because a reservation alone may keep the job waiting
            if not idle and (lacking := self._lacking(job, gone=False)):
                return "resources", lacking
            if self._lacking(job, gone=True, idle=idle):
                return "reservation", "an outage or a reservation holds the resources that it needs"
            if begin := self._overlapping(job, request, idle):
                ahead_of = f"begins in {human_time(begin - self.now)}, before its limit of {human_time(request)} ends"
                return "reservation", f"a reservation or maintenance {ahead_of}"
        if ahead:
            return "priority", f"enough is free, but kept for jobs with a higher priority: {counted(ahead, 'job')} ahead of it"
        return "other", "enough is free, but the scheduler has not started it yet"

    def _limit(self, job: int) -> str:
        """Return the first limit that the job would exceed and the amount in use, in words; empty for none."""
        need = np.array([self.schedule.workload.procs[job], self.placement.second[job]])
        mine = self.placement.limits_of[job]
        for limit in dict.fromkeys(mine):
            runs = [k for k in np.flatnonzero(self.runs).tolist() if limit in self.placement.limits_of[k]]
            times = [self.placement.limits_of[k].count(limit) for k in runs]
            used = [sum(times), int(self.schedule.workload.procs[runs].sum()), int(self.placement.second[runs].sum())]
            over = np.add(used, [mine.count(limit), *need]) > np.array(self.placement.limits[limit], np.float64)
            if over.any():
                return limit_words(self.placement, limit, used)
        return ""

    def _outages(self, job: int, begin: int, end: int) -> list[tuple[int, int, int, int]]:
        """Return pool, processors, second resource and start of the known outages of the job's pools between two times."""
        pools = self._pools(job)
        return [(p, a, b, since) for p, a, b, since, until, _ in self.placement.outages if p in pools and since < end and until > begin]

    def _lacking(self, job: int, gone: bool, extra: Sequence[tuple[int, int, int, int]] = (), idle: bool = False) -> str:
        """Return, in words, the resource that is too scarce for a job now.

        `gone`: whether present outages count; `idle`: whether to assume that no job is running.
        """
        pools, second = self._pools(job), self.machine.second
        need = int(self.schedule.workload.procs[job]), int(self.placement.second[job])
        free = self.capacity[pools] - (0 if idle else self.used[pools])
        for p, procs, units, _ in [*(self._outages(job, self.now, self.now + 1) if gone else ()), *extra]:
            free[pools.index(p)] -= procs, units
        totals = np.maximum(free, 0).sum(axis=0).tolist()
        names = (lambda number: counted(number, "processor"), lambda number: amount_of(number, second))
        short = [f"{name(n)} needed, {have:,} free" for name, n, have in zip(names, need, totals, strict=True) if n > have]
        if short:
            return (
                f"{' and '.join(short)} in the partition {sanitize(self.machine.partitions[int(self.placement.partition[job])].name, 40)}"
            )
        if self.nodes is None:
            return ""
        horizon = self.now + int(self.schedule.workload.requested[job]) if extra else self.now + 1
        obstacle = room_obstacle(
            self.nodes, self.demands, job, self.idle_nodes if idle else self.free_nodes, (self.now, horizon) if gone else None
        )
        return _ROOM[obstacle].format(second="GPUs" if second == "gpus" else "memory" if second == "mem_mb" else second) if obstacle else ""

    def _overlapping(self, job: int, request: int, idle: bool) -> int:
        """Return the start of the first outage that leaves a job no room for its whole request; 0 for none."""
        coming = [one for one in self._outages(job, self.now + 1, self.now + request) if one[3] > self.now]
        return min(one[3] for one in coming) if coming and self._lacking(job, True, coming, idle) else 0
