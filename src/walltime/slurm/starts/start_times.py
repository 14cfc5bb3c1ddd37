"""When the waiting jobs of a snapshot will start: quantiles over many simulations of what may come."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from walltime.errors import PolicyError
from walltime.explanation import MachineExplanation, Obstacles, explain
from walltime.machine import NO_OVERHEAD, refuse_hindsight
from walltime.policy import Policy
from walltime.predictors import Predictor
from walltime.simulation.specification import Scheduler
from walltime.slurm.snapshot import Snapshot
from walltime.slurm.snapshot_jobs import SNAPSHOT_RULES, SnapshotJob
from walltime.slurm.starts.forecast import USUAL, Draws, Forecast
from walltime.slurm.starts.predicted import PredictedRuntimes
from walltime.slurm.starts.projection import FIRST_NUMBER
from walltime.slurm.starts.sampling import LEVELS
from walltime.slurm.starts.scores import Factors, adjusted
from walltime.wording import sanitize
from walltime.workload import Workload

Array = np.ndarray
LEFT_OUT = "The overheads of the machine's file are left out: starts may be later by what the scheduler takes."
"""What is said of a machine with overheads."""

QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class StartTime:
    """When a waiting job will start. Unix times; None for never.

    `early, median, late`: quantiles over the simulations, 5, 50 and 95 %. `slurm`: Slurm's own estimate, where it has one. `by_limits`: if
    every job ran to its limit and none came. `alike`: the columns in which the jobs agree from whose runtimes its own was drawn, None if
    there were too few, so that it runs to its limit; `prediction` alone if it was drawn around a prediction.
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
    classes of CLASSES; empty for none. `caveats`: what is to be known, in sentences. `learned_from`: how many outcomes of predictions at
    moments of the history the intervals learned from (`learn_from_history`), None for intervals of the simulation.
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
    learned_from: int | None = None
    predicted: PredictedRuntimes | None = field(default=None, repr=False)
    """the predictions of runtimes that somebody brought"""

    def of(self, label: str) -> StartTime:
        """That of a job, by its number as Slurm writes it, `27_3`; raises PolicyError."""
        for one in self.jobs:
            if one.job.label == label:
                return one
        raise PolicyError(why_not(self.snapshot, label), "unknown_job")

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
            "learned_from": self.learned_from,
            "predictor": None if self.predicted is None else self.predicted.predictor,
            "totals": self.snapshot.totals(),
            "jobs": [one.as_dict() for one in self.jobs],
            "caveats": list(self.caveats),
        }


def why_not(snapshot: Snapshot, label: str) -> str:
    """Why there is no start time of a job, as the message of an error."""
    for job in snapshot.jobs:
        if job.label == label and job.left_out:
            return f"job {sanitize(label)} is not predicted: {SNAPSHOT_RULES[job.left_out]}"
        if job.label == label:
            return f"job {sanitize(label)} {'runs already' if job.start is not None else 'does not fit the machine'}"
    return f"no job {sanitize(label)!r} waits in the snapshot; tasks of arrays are written 27_3"


def start_times(
    snapshot: Snapshot,
    history: Workload,
    *,
    policy: str | Policy | Scheduler | None = None,
    predictor: str | Predictor | PredictedRuntimes | None = None,
    draws: Draws = USUAL,
    factors: Factors | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> StartTimes:
    """Simulate what follows a snapshot many times, under the site's own policy, until all its waiting jobs have started.

    Runtimes are drawn from those of jobs alike (`sampling.py`), of running jobs from those that ran longer than they have by
    now; jobs to come from the recent past (`sampling.py`). `history`: a log; of it counts what had ended at the time of the snapshot.
    `draws`: how many simulations, the seed, and whether jobs come. `policy`: instead of that of the snapshot's machine. `predictor`: of
    runtimes, as in a simulation, such as `file:predictions.csv`: runtimes are drawn around its predictions, as those of earlier jobs lay
    around theirs; the scheduler still plans with the limits. `factors`: of a calibration, with which intervals are widened or narrowed.
    `workers`: threads; `progress` is called with the number of simulations done. Equal arguments give equal results, whatever the number
    of threads. Raises PolicyError and WorkloadError.
    """
    refuse_hindsight(snapshot.machine, "a prediction of starts")
    forecast = Forecast(snapshot, history, policy, predictor)
    state, runtimes = forecast.state, forecast.runtimes
    waits = np.flatnonzero(~state.running)

    def run(*drawn: Any) -> Array:
        return forecast.projection.run(*drawn)[waits]

    to_limits, starts = forecast.simulate(run, draws, workers, progress)
    simulated = quantiles_of(starts)
    quantiles = adjusted(simulated, factors or {})
    order = np.argsort(quantiles[1], kind="stable")
    jobs = []
    for k in order.tolist():
        job, level = state.jobs[waits[k]], int(runtimes.level[waits[k]])
        early, median, late = (unix(float(time), snapshot.time) for time in quantiles[:, k])
        by_limits = unix(float(to_limits[k]), snapshot.time)
        alike = ("prediction",) if runtimes.told[waits[k]] else LEVELS[level] if level < len(LEVELS) else None
        jobs.append(StartTime(job, early, median, late, job.expected, by_limits, alike))
    scheduler, caveats = forecast.scheduler, forecast.caveats()
    settings = scheduler.policy.settings(snapshot.machine.slurm)
    if settings is not None and settings.notes:
        caveats.append(f"Settings of the scheduler that are not modelled: {sanitize(', '.join(settings.notes), 500)}.")
    factors = dict(factors or {})
    if snapshot.machine.overhead != NO_OVERHEAD:
        caveats.append(LEFT_OUT)
    made = scheduler.label, draws.samples, draws.seed, draws.arrivals
    return StartTimes(snapshot, *made, jobs, starts[:, order], simulated[:, order], factors, caveats, predicted=forecast.predicted)


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

    It explains the job's wait if all jobs run as long as the median of those like them, and none come.
    """

    job: str
    held_back: Obstacles
    sentences: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return asdict(self)


def why(
    snapshot: Snapshot,
    history: Workload,
    label: str,
    *,
    policy: str | Policy | Scheduler | None = None,
    predictor: str | Predictor | PredictedRuntimes | None = None,
) -> Reasons:
    """What a waiting job waits for; `label`: its number as Slurm writes it, `27_3`. Raises PolicyError."""
    forecast = Forecast(snapshot, history, policy, predictor)
    state = forecast.state
    places = [k for k, job in enumerate(state.jobs) if job.label == label and job.start is None]
    if not places:
        raise PolicyError(why_not(snapshot, label), "job_not_waiting")
    schedule = forecast.projection.schedule(forecast.runtimes.typical())
    explanation = explain(schedule, FIRST_NUMBER + places[0], sooner=False)
    assert isinstance(explanation, MachineExplanation), "it has a placement"

    def named(sentence: str) -> str:
        return re.sub(r"\b1[0-9]{12}\b", lambda number: state.jobs[int(number[0]) - FIRST_NUMBER].label, sentence)

    condition = "This is if jobs run for the median of those like them, and none come; waits count from the snapshot on."
    return Reasons(label, explanation.held_back, (*map(named, explanation.sentences), condition))


def unix(ahead: float, time: int) -> int | None:
    """The Unix time so many s after another one; None for never."""
    return time + round(ahead) if np.isfinite(ahead) else None
