"""When the waiting jobs of a snapshot will start: quantiles over many simulations of what may come."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from walltime.errors import PolicyError
from walltime.explanation import MachineExplanation, Obstacles, explain
from walltime.policy import Policy, Slurm
from walltime.simulation.specification import Scheduler
from walltime.simulation.threads import in_threads
from walltime.slurm.jobs import SNAPSHOT_RULES, SnapshotJob
from walltime.slurm.snapshot import Snapshot
from walltime.slurm.starts.initial_state import InitialState, initial_state_of
from walltime.slurm.starts.projection import FIRST_NUMBER, Projection, misfit
from walltime.slurm.starts.sampling import DAY, LEVELS, WEEK, Arrivals, Jobs, Runtimes
from walltime.slurm.starts.scores import Factors, adjusted
from walltime.wording import harmless
from walltime.workload import Workload
from walltime.workload.draws import seed_fault

Array = np.ndarray

QUANTILES = (0.05, 0.5, 0.95)
LONGEST = 14 * 86400
"""Jobs to come are drawn for so long at most, s."""
MOST_MISFITS = 100


@dataclass(frozen=True)
class StartTime:
    """When a waiting job will start. Unix times; None for never.

    `early, median, late`: quantiles over the simulations, 5, 50 and 95 %. `slurm`: Slurm's own estimate, where it has one. `by_limits`: if
    every job ran to its limit and none came. `alike`: the columns in which the jobs agree from whose runtimes its own was drawn, None if
    there were too few, so that it runs to its limit.
    """

    job: SnapshotJob
    early: int | None
    median: int | None
    late: int | None
    slurm: int | None
    by_limits: int | None
    alike: tuple[str, ...] | None

    def as_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        own = {name: getattr(self.job, name) for name in ("user", "account", "partition", "qos", "name", "cpus", "nodes", "gpus", "limit")}
        times = {name: getattr(self, name) for name in ("early", "median", "late", "slurm", "by_limits")}
        return {"job": self.job.label, **own, **times, "alike": None if self.alike is None else list(self.alike)}


@dataclass(frozen=True, eq=False)
class StartTimes:
    """The start times of all waiting jobs of a snapshot, those that start first being first.

    `starts`: s after the snapshot, float64, shape (samples, jobs), inf for never; `simulated`: their quantiles, shape
    (3, jobs). `factors`: with which the intervals were widened, by
    classes of CLASSES; empty for none. `caveats`: what is to be known, in sentences.
    """

    snapshot: Snapshot
    policy: str
    samples: int
    seed: int
    arrivals: bool
    jobs: Sequence[StartTime]
    starts: Array = field(repr=False)
    simulated: Array = field(repr=False)
    factors: Factors
    caveats: Sequence[str]

    def of(self, label: str) -> StartTime:
        """That of a job, by its number as Slurm writes it, `27_3`; raises PolicyError."""
        for one in self.jobs:
            if one.job.label == label:
                return one
        raise PolicyError(why_not(self.snapshot, label))

    def as_dict(self) -> dict[str, Any]:
        """All of it but the single simulations, ready for JSON."""
        return {
            "machine": self.snapshot.machine.name,
            "time": self.snapshot.time,
            "policy": self.policy,
            "samples": self.samples,
            "seed": self.seed,
            "arrivals": self.arrivals,
            "factors": {name: list(pair) for name, pair in self.factors.items()},
            "totals": self.snapshot.totals(),
            "jobs": [one.as_dict() for one in self.jobs],
            "caveats": list(self.caveats),
        }


def why_not(snapshot: Snapshot, label: str) -> str:
    """Why there is no start time of a job, as the message of an error."""
    for job in snapshot.jobs:
        if job.label == label and job.left_out:
            return f"job {harmless(label)} is not predicted: {SNAPSHOT_RULES[job.left_out]}"
        if job.label == label:
            return f"job {harmless(label)} {'runs already' if job.start is not None else 'does not fit the machine'}"
    return f"no job {harmless(label)!r} waits in the snapshot; tasks of arrays are written 27_3"


def start_times(
    snapshot: Snapshot,
    history: Workload,
    *,
    policy: str | Policy | Scheduler | None = None,
    samples: int = 200,
    arrivals: bool = True,
    seed: int = 0,
    factors: Factors | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> StartTimes:
    """Simulate what follows a snapshot many times, under the site's own policy, until all its waiting jobs have started.

    Runtimes are drawn from those of jobs alike (`sampling.py`), of running jobs from those that ran longer than they have by
    now; jobs to come from the recent past (`sampling.py`), unless `arrivals` is False. `history`: a log; of it counts what had
    ended at the time of the snapshot. `policy`: instead of that of the snapshot's machine. `factors`: of a calibration, with which
    intervals are widened or narrowed. `workers`: threads; `progress` is called with the number of simulations done. Equal arguments give
    equal results, whatever the number of threads. Raises PolicyError and WorkloadError.
    """
    if samples < 1:
        raise PolicyError(f"the number of samples must be 1 or more, not {samples}")
    if fault := seed_fault(seed):
        raise PolicyError(fault)
    scheduler = scheduler_of(snapshot, policy)
    state, projection, gone = fitting(snapshot, history, scheduler)
    waits = np.flatnonzero(~state.running)
    runtimes = Runtimes(state.history, state.ended, wanted(state))
    limits = state.workload.requested[: len(state.jobs)]
    to_limits = projection.run(np.maximum(limits, runtimes.elapsed + 1))
    coming = Arrivals(state.recent, state.now, horizon_of(state, to_limits[waits]) if arrivals else 0)

    def sample(number: int, check: Callable[[int], None]) -> Array:
        random = np.random.Generator(np.random.Philox(key=[seed, number]))
        drawn = runtimes.draw(random)
        places, times = coming.draw(random)
        return projection.run(drawn, places, times, check)[waits] - state.now

    starts = np.array(in_threads(lambda: sample, samples, workers, progress))
    simulated = quantiles_of(starts)
    quantiles = adjusted(simulated, factors or {})
    order = np.argsort(quantiles[1], kind="stable")
    found = []
    for k in order.tolist():
        job, level = state.jobs[waits[k]], int(runtimes.level[waits[k]])
        early, median, late = (unix(float(time), snapshot.time) for time in quantiles[:, k])
        by_limits = unix(float(to_limits[waits[k]]) - state.now, snapshot.time)
        found.append(StartTime(job, early, median, late, job.expected, by_limits, LEVELS[level] if level < len(LEVELS) else None))
    caveats = caveats_of(snapshot, state, runtimes, coming if arrivals else None, gone)
    if isinstance(scheduler.policy, Slurm) and (notes := scheduler.policy.settings(snapshot.machine.slurm).notes):
        caveats.append(f"Settings of the scheduler that are not modelled: {harmless(', '.join(notes), 500)}.")
    factors = dict(factors or {})
    return StartTimes(snapshot, scheduler.label, samples, seed, arrivals, found, starts[:, order], simulated[:, order], factors, caveats)


def quantiles_of(starts: Array) -> Array:
    """The quantiles of each column: shape (3, jobs).

    The outer ones are so far out that one more simulation would lie within them with a probability of 90 % or more: of n, the
    0.05 (n + 1)-th, rounded down, and the 0.95 (n + 1)-th, rounded up.
    """
    ranked, count = np.sort(starts, axis=0), len(starts)
    low, high = int(QUANTILES[0] * (count + 1)), int(np.ceil(QUANTILES[2] * (count + 1)))
    return np.stack([ranked[max(low, 1) - 1], ranked[int(np.ceil(QUANTILES[1] * count)) - 1], ranked[min(high, count) - 1]])


@dataclass(frozen=True)
class Reasons:
    """What a waiting job waits for: sentences, and for how long (s from the snapshot on) what held it back.

    It is the job's story where all jobs run as long as the median of those like them, and none come.
    """

    job: str
    held_back: Obstacles
    sentences: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return asdict(self)


def why(snapshot: Snapshot, history: Workload, label: str, *, policy: str | Policy | Scheduler | None = None) -> Reasons:
    """What a waiting job waits for; `label`: its number as Slurm writes it, `27_3`. Raises PolicyError."""
    scheduler = scheduler_of(snapshot, policy)
    state, projection, _ = fitting(snapshot, history, scheduler)
    places = [k for k, job in enumerate(state.jobs) if job.label == label and job.start is None]
    if not places:
        raise PolicyError(why_not(snapshot, label))
    schedule = projection.schedule(Runtimes(state.history, state.ended, wanted(state)).typical())
    story = explain(schedule, FIRST_NUMBER + places[0], sooner=False)
    assert isinstance(story, MachineExplanation), "it has a placement"

    def named(sentence: str) -> str:
        return re.sub(r"\b1\d{12}\b", lambda number: state.jobs[int(number[0]) - FIRST_NUMBER].label, sentence)

    told = "This is if jobs run for the median of those like them, and none come; waits count from the snapshot on."
    return Reasons(label, story.held_back, (*map(named, story.sentences), told))


def scheduler_of(snapshot: Snapshot, policy: str | Policy | Scheduler | None) -> Scheduler:
    """The policy that is given, or that of the snapshot's machine."""
    chosen = snapshot.machine.policy if policy is None else policy
    if chosen is None:
        raise PolicyError("the snapshot does not say how the site schedules; give a policy")
    return Scheduler.of(chosen, None)


def fitting(snapshot: Snapshot, history: Workload, scheduler: Scheduler) -> tuple[InitialState, Projection, list[str]]:
    """The jobs and their simulation, without the running jobs for which the machine has no room; the labels of these."""
    gone: list[str] = []
    while True:
        state = initial_state_of(snapshot, history, scheduler, gone)
        projection = Projection(state, scheduler)
        place = misfit(projection)
        if place is None:
            return state, projection, gone
        gone.append(state.jobs[place].label)
        if len(gone) > MOST_MISFITS:
            raise PolicyError(f"over {MOST_MISFITS} running jobs have no room on {snapshot.machine.name}; compare it with the cluster")


def horizon_of(state: InitialState, starts: Array) -> int:
    """For how long jobs come in simulations of jobs that start then by their limits (s from the state's zero), s."""
    finite = starts[np.isfinite(starts)]
    return min(LONGEST, int(finite.max(initial=state.now)) - state.now + 3600)


def wanted(state: InitialState) -> Jobs:
    """The snapshot's jobs, as runtimes are drawn for them."""
    count = len(state.jobs)
    placed = state.workload
    columns = {name: values[:count] for name, values in placed.columns.items()}
    columns |= {"requested": placed.requested[:count], "procs": placed.procs[:count]}
    nobody = np.full(count, -1, np.int64)
    named = {name: columns.get(name, nobody) for level in LEVELS for name in level}
    elapsed = [0 if job.start is None else max(1, state.now + state.zero - job.start) for job in state.jobs]
    return Jobs(named, placed.requested[:count], np.array(elapsed, np.int64))


def unix(ahead: float, time: int) -> int | None:
    """The Unix time so many s after another one; None for never."""
    return time + round(ahead) if np.isfinite(ahead) else None


def caveats_of(snapshot: Snapshot, state: InitialState, runtimes: Runtimes, coming: Arrivals | None, gone: Sequence[str]) -> list[str]:
    """What is to be known of the simulations, in sentences."""
    told = []
    unknown = int((runtimes.level == len(LEVELS)).sum())
    if unknown:
        told.append(f"{unknown:,} jobs are taken to run to their limits: too few jobs like them have ended.")
    if coming is not None and not coming.period:
        told.append("The history is shorter than a day before the snapshot: no jobs come in the simulations.")
    elif coming is not None and coming.reach < 2 * WEEK:
        days = coming.reach // DAY
        told.append(
            f"The history has {days} day{'s' * (days > 1)} before the snapshot, and the jobs to come are drawn from these: with under two "
            "weeks fewer than 90 % may start within their intervals."
        )
    if state.lost:
        told.append(f"{len(state.lost):,} jobs do not fit the machine and are left out, such as {state.lost[0].label}.")
    if gone:
        told.append(f"For {len(gone):,} running jobs the machine, as it is described, has no room: they are left out, such as {gone[0]}.")
    apart = len(snapshot.apart)
    if apart:
        told.append(f"{apart:,} jobs of the snapshot are not simulated: held, dependent on others, or of a kind that is not modelled.")
    return told
