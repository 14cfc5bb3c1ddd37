"""Review adjusted jobs, from the side-car's ledger and the job log, and the delays of other jobs, by simulation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from walltime.errors import LogError
from walltime.machine import Machine
from walltime.policy import Policy
from walltime.predictors import Predictor
from walltime.provenance import plain
from walltime.simulation import simulate
from walltime.simulation.specification import Scheduler
from walltime.slurm.sidecar.ledger import Event
from walltime.slurm.sidecar.settings import SidecarSettings
from walltime.slurm.snapshot_jobs import labels_of
from walltime.whatif import WhatIf, what_if
from walltime.whatif.adjustment import planned_by_time_min
from walltime.whatif.setting import Setting
from walltime.whatif.whatif import REPLICATIONS
from walltime.workload import Workload

NEAR = 300
"""Seconds by which a start in the ledger and in the log may differ."""
EARLY = 30
"""Seconds: a job that Slurm ended by more than this before its user's limit was killed early; Slurm itself ends jobs late, never early."""
LATE = 60
"""Seconds: a simulated start counts as delayed if it is later by more than this."""
STARTS = ("started", "started short")


@dataclass(frozen=True)
class Run:
    """A run of an adjusted job. Times are Unix times, lengths are in s, and unknown values are None.

    `time_min`, `limit`: set by the side-car and by the user; `predicted`: the prediction behind TimeMin. `shown`: the limit with which it
    was first seen running, `short`: whether backfill had shortened that limit; `restored`: when the side-car raised it, with `left` to
    go. From the log: `runtime`, `state`, `log_limit` (the last one), `procs`, `nodes`, `backfilled` (by Slurm's Flags), `ahead_of`: the
    number of earlier jobs in its partition, of at least its priority, that still waited when it started.
    """

    key: str
    user: str
    start: int
    time_min: int
    limit: int
    shown: int | None
    short: bool
    predicted: int | None = None
    restored: float | None = None
    left: int | None = None
    runtime: int | None = None
    state: str = ""
    log_limit: int | None = None
    procs: int | None = None
    nodes: int | None = None
    backfilled: bool | None = None
    ahead_of: int = 0

    @property
    def started_by_backfill(self) -> bool:
        """Return whether backfill started it: by Slurm's Flags or, if these are unknown, because it overtook other jobs."""
        return self.backfilled if self.backfilled is not None else self.ahead_of > 0

    @property
    def outlived(self) -> bool:
        """Return whether it ran longer than its TimeMin, for which backfill had found room."""
        return self.runtime is not None and self.runtime > self.time_min

    @property
    def killed_early(self) -> bool:
        """Return whether it reached a time limit that was shorter than its user's limit."""
        return self.state == "TIMEOUT" and self.runtime is not None and self.runtime < self.limit - EARLY

    @property
    def lowered(self) -> bool:
        """Return whether its full limit was lowered while it ran, which Slurm itself never does."""
        return not self.short and self.log_limit is not None and self.log_limit < self.limit

    def as_dict(self) -> dict[str, Any]:
        """Return all values for JSON."""
        return asdict(self) | {name: getattr(self, name) for name in ("started_by_backfill", "outlived", "killed_early", "lowered")}


class Delay(NamedTuple):
    """A job that starts `seconds` later in the simulation than `expected`, because others outlived their TimeMin.

    `expected`, `start`: Unix times.
    """

    key: str
    user: str
    expected: int
    start: int
    seconds: int


@dataclass(frozen=True)
class Review:
    """The review of a period, `since` to `until` (Unix times), from a ledger and a log.

    `adjusted`: the number of jobs that got a TimeMin; `runs`: the adjusted jobs that started; `not_in_log`: how many of them the log lacks.
    `alarms`, `failures`: Unix times and texts. `delays`: simulated delays, None without a simulation; `simulated`: its label.
    """

    since: float
    until: float
    adjusted: int
    removed: int
    runs: Sequence[Run]
    not_in_log: int
    alarms: Sequence[tuple[float, str]]
    failures: Sequence[tuple[float, str]]
    delays: Sequence[Delay] | None = None
    simulated: str = ""
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def killed(self) -> list[Run]:
        """Return the jobs that were ended before their users' limits: there must be none."""
        return [run for run in self.runs if run.killed_early]

    @property
    def started_by_backfill(self) -> list[Run]:
        """Return the runs that backfill started."""
        return [run for run in self.runs if run.started_by_backfill]

    @property
    def broken(self) -> list[Run]:
        """Return the backfilled runs that outlived their TimeMin."""
        return [run for run in self.started_by_backfill if run.outlived]

    @property
    def restored(self) -> list[Run]:
        """Return the runs whose limits the side-car raised, the one with the least time left first."""
        return sorted((run for run in self.runs if run.left is not None), key=lambda run: run.left or 0)

    @property
    def node_hours(self) -> float | None:
        """Return the node-hours of backfilled runs; None if the log has no numbers of nodes."""
        known = [run.nodes * run.runtime for run in self.started_by_backfill if run.nodes is not None and run.runtime is not None]
        return sum(known) / 3600 if known or not self.started_by_backfill else None

    @property
    def processor_hours(self) -> float:
        """Return the processor-hours of backfilled runs."""
        return sum(run.procs * run.runtime for run in self.started_by_backfill if run.procs is not None and run.runtime is not None) / 3600

    def counts(self) -> dict[str, int]:
        """Return the numbers of jobs, alarms and failures by kind."""
        return {
            "adjusted": self.adjusted,
            "removed": self.removed,
            "started": len(self.runs),
            "not_in_log": self.not_in_log,
            "backfilled": len(self.started_by_backfill),
            "shortened": sum(run.short for run in self.runs),
            "restored": len(self.restored),
            "outlived": len(self.broken),
            "killed_early": len(self.killed),
            "alarms": len(self.alarms),
            "failures": len(self.failures),
        }

    def as_dict(self) -> dict[str, Any]:
        """Return all values for JSON."""
        document = {
            "since": self.since,
            "until": self.until,
            "counts": self.counts(),
            "node_hours": self.node_hours,
            "processor_hours": self.processor_hours,
            "least_left": self.restored[0].left if self.restored else None,
            "killed_early": [run.key for run in self.killed],
            "runs": [run.as_dict() for run in self.runs],
            **{name: [{"time": time, "what": what} for time, what in getattr(self, name)] for name in ("alarms", "failures")},
            "simulated": self.simulated or None,
            "delays": None if self.delays is None else [one._asdict() for one in self.delays],
            "notes": list(self.notes),
        }
        value: dict[str, Any] = plain(document)
        return value


def what_happened(events: Sequence[Event], jobs: Workload, since: float | None = None, until: float | None = None) -> Review:
    """Return the review of these events with this log; `since`, `until`: Unix times, by default all events.

    Raises LogError for a log without a start time, or without the starts of jobs.
    """
    # a job may start in the second in which its TimeMin was set, and Slurm's times are whole seconds
    times = [event.time for event in events] + [float(event.start) for event in events if event.start] or [0.0]
    first, last = min(times) if since is None else since, max(times) if until is None else until
    inside = [event for event in events if first <= event.time <= last]
    log = _Log(jobs)
    placed = [(run, log.place(run)) for run in _runs(events) if first <= run.start <= last]
    runs = [run if place is None else log.completed(run, place) for run, place in placed]
    notes = [] if log.has_states else ["The log has no states of jobs, so jobs that Slurm ended at their time limit are unknown."]
    if not log.has_backfill:
        notes.append("The log has no backfill flags: jobs that started ahead of earlier ones count as backfilled.")
    return Review(
        first,
        last,
        len({event.key for event in inside if event.what == "set"}),
        sum(event.what == "taken back" for event in inside),
        runs,
        sum(place is None for _, place in placed),
        [(event.time, event.detail) for event in inside if event.what == "alarm"],
        [(event.time, event.detail) for event in inside if event.what in ("failed", "prolog missed")],
        notes=notes,
    )


def with_delays(review: Review, jobs: Workload, machine: Machine, policy: str | Policy | None = None) -> Review:
    """Return the review with the delays that overruns caused, from two simulations of the log with the ledger's TimeMin.

    In one of them, jobs that outlived their TimeMin end at TimeMin, as planned. Jobs that start later in the other one are delayed.
    """
    log = _Log(jobs)
    places = {place: run for run in review.runs if (place := log.place(run)) is not None}
    least = np.full(len(jobs), -1)
    for place, run in places.items():
        least[place] = run.time_min
    broken = [place for place, run in places.items() if run.started_by_backfill and run.outlived]
    adjusted = replace(jobs, columns={**jobs.columns, "time_min": least})
    as_planned = jobs.runtime.copy()
    as_planned[broken] = np.minimum(as_planned[broken], least[broken])
    scheduler: Scheduler = planned_by_time_min(Setting.of(machine, policy).scheduler(), machine)
    real, kept = (simulate(one, scheduler, machine=machine) for one in (adjusted, replace(adjusted, runtime=as_planned)))
    _, mine, theirs = np.intersect1d(real.workload.job_id, kept.workload.job_id, assume_unique=True, return_indices=True)
    later = real.start[mine] - kept.start[theirs]
    number = {int(job): place for place, job in enumerate(jobs.job_id.tolist())}
    delays = []
    for k in np.flatnonzero(later > LATE).tolist():
        place = number[int(real.workload.job_id[mine[k]])]
        start = log.zero + int(real.start[mine[k]])
        delays.append(Delay(log.labels[place], jobs.name_at(place, "user"), start - int(later[k]), start, int(later[k])))
    delays.sort(key=lambda one: -one.seconds)
    return replace(review, delays=delays, simulated=real.label)


def simulate_gain(
    jobs: Workload,
    predictor: Predictor,
    settings: SidecarSettings,
    machine: Machine | None = None,
    policy: str | Policy | None = None,
    replications: int = REPLICATIONS,
    progress: Callable[[int], None] | None = None,
) -> WhatIf:
    """Simulate these jobs with and without a side-car with this predictor and these settings, as a what-if.

    Without a machine they run on the processors of their log, under EASY unless there is a policy. `progress`: called with the number of
    simulations done.
    """
    options = f"{predictor.label}{',' if ':' in predictor.label else ':'}floor={settings.floor},gain={settings.gain:g}"
    return what_if(jobs, machine, [f"adjust={options}"], policy=policy, replications=replications, progress=progress)


def _runs(events: Sequence[Event]) -> list[Run]:
    """Return the runs in a ledger, in order; the ledger may list a run twice if the side-car was killed while it wrote."""
    runs: dict[tuple[str, int], Run] = {}
    predicted: Mapping[str, int] = {event.key: int(event.detail) for event in events if event.what == "set" and event.detail.isdecimal()}
    for event in events:
        place = (event.key, event.start)
        shown = None if event.shown is None else 60 * event.shown
        if event.what in STARTS:
            run = Run(event.key, event.user, event.start, 60 * event.time_min, 60 * event.limit, shown, event.what != "started")
            runs.setdefault(place, replace(run, predicted=predicted.get(event.key)))
        elif event.what == "given back" and place in runs and runs[place].restored is None:
            runs[place] = replace(runs[place], restored=event.time, left=int(event.detail or 0))
    return list(runs.values())


class _Log:
    """A job log, with the indices of its jobs by key."""

    def __init__(self, jobs: Workload):
        wait = jobs.columns.get("wait")
        if wait is None or jobs.origin.unix_start_time is None:
            raise LogError(f"{jobs.origin.name}: the log has no start times of jobs; use a log printed by sacct")
        unknown = np.full(len(jobs), -1)
        self.jobs, self.zero = jobs, jobs.origin.unix_start_time
        self.start = np.where(wait >= 0, jobs.submit + wait, -1)
        self.labels = labels_of(jobs)
        self._places: dict[str, list[int]] = {}
        for place, label in enumerate(self.labels):
            self._places.setdefault(label, []).append(place)
        self._backfill = jobs.columns.get("sched_backfill", unknown)
        self._priority, self._partition = (jobs.columns.get(name, unknown) for name in ("priority", "partition"))
        self.has_states, self.has_backfill = (bool((jobs.columns.get(name, unknown) >= 0).any()) for name in ("state", "sched_backfill"))

    def place(self, run: Run) -> int | None:
        """Return the index of this run in the log; None if the log lacks it."""
        near = [(abs(self.zero + int(self.start[place]) - run.start), place) for place in self._places.get(run.key, ())]
        distance, place = min(near, default=(NEAR + 1, 0))
        return place if distance <= NEAR else None

    def completed(self, run: Run, place: int) -> Run:
        """Return the run with its values in the log."""
        jobs, start = self.jobs, int(self.start[place])
        same = (jobs.submit == jobs.submit[place]) & (jobs.job_id < jobs.job_id[place])  # submitted in the same second: by number
        before = (same | (jobs.submit < jobs.submit[place])) & (self.start > start) & (self._partition == self._partition[place])
        if self._priority[place] >= 0:
            before &= (self._priority >= self._priority[place]) | (self._priority < 0)
        nodes = int(jobs.columns["nodes"][place]) if "nodes" in jobs.columns else -1
        backfill = int(self._backfill[place])
        return replace(
            run,
            runtime=int(jobs.runtime[place]),
            state=jobs.name_at(place, "state"),
            log_limit=int(jobs.requested[place]),
            procs=int(jobs.procs[place]),
            nodes=nodes if nodes > 0 else None,
            backfilled=None if backfill < 0 else bool(backfill),
            ahead_of=int(before.sum()),
        )
