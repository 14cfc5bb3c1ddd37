"""Predict when the waiting jobs of a snapshot will start, as quantiles over many simulations."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from walltime.errors import PolicyError
from walltime.explanation import MachineExplanation, Obstacles, explain
from walltime.machine import NO_OVERHEAD, reject_hindsight
from walltime.policy import Policy
from walltime.predictors import Predictor
from walltime.simulation.specification import Scheduler
from walltime.slurm.snapshot import Snapshot
from walltime.slurm.snapshot_jobs import SNAPSHOT_RULES, SnapshotJob
from walltime.slurm.starts.forecast import FIRST_NUMBER, USUAL, Draws, Forecast
from walltime.slurm.starts.pending import NOT_ASKED, Pending, apart_reasons, pending_reasons
from walltime.slurm.starts.predicted import PredictedRuntimes
from walltime.slurm.starts.sampling import LEVELS
from walltime.wording import sanitize
from walltime.workload import Array, Workload

OVERHEAD_NOTE = "The overheads of the machine's file are left out: starts may be later by the scheduler's delays."

QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class StartTime:
    """The predicted start of a waiting job. Times are Unix times; None for never.

    `early, median, late`: quantiles over the simulations, 5, 50 and 95 %. `slurm`: Slurm's own estimate, if there is one. `by_limits`: the
    start if every job runs to its limit and none arrives. `alike`: the columns in which the job agrees with the past jobs from which its
    runtime is drawn; None if there are too few, so that it runs to its limit. It is `prediction` alone if the runtime is drawn around a
    prediction. `pending`: why it waits, if this was computed.
    """

    job: SnapshotJob
    early: int | None
    median: int | None
    late: int | None
    slurm: int | None
    by_limits: int | None
    alike: tuple[str, ...] | None
    pending: Pending

    def as_dict(self) -> dict[str, Any]:
        """Return all values for JSON."""
        own = {name: getattr(self.job, name) for name in ("user", "account", "partition", "qos", "name", "cpus", "nodes", "gpus", "limit")}
        times = {name: getattr(self, name) for name in ("early", "median", "late", "slurm", "by_limits")}
        return {
            "job": self.job.label,
            **own,
            **times,
            "alike": None if self.alike is None else list(self.alike),
            "pending": self.pending.as_dict(),
        }


@dataclass(frozen=True, eq=False)
class StartTimes:
    """The start times of all waiting jobs of a snapshot, in order of their starts.

    `starts`: s after the snapshot, float64, shape (samples, jobs), inf for never; `simulated`: their quantiles, shape (3, jobs);
    `earliest`: the starts without other jobs, shape (jobs,). `caveats`: sentences. `learned_from`: the number of outcomes of past
    predictions from which the intervals were learned (`learn_from_history`), None for intervals of the simulation. `predicted`: the runtime
    predictions that were used.
    """

    snapshot: Snapshot
    policy: str
    samples: int
    seed: int
    arrivals: bool
    jobs: Sequence[StartTime]
    starts: Array = field(repr=False)
    simulated: Array = field(repr=False)
    earliest: Array = field(repr=False)
    caveats: Sequence[str]
    learned_from: int | None = None
    predicted: PredictedRuntimes | None = field(default=None, repr=False)

    @property
    def apart(self) -> list[tuple[SnapshotJob, Pending]]:
        """Return the waiting jobs that are not simulated, each with the reason why it waits."""
        return apart_reasons(self.snapshot)

    def of(self, label: str) -> StartTime:
        """Return the start time of a job, by its number in Slurm's form such as `27_3`; raises PolicyError."""
        for one in self.jobs:
            if one.job.label == label:
                return one
        raise PolicyError(missing_reason(self.snapshot, label), "unknown_job")

    def as_dict(self) -> dict[str, Any]:
        """Return all values except the single simulations for JSON."""
        return {
            "machine": self.snapshot.machine.name,
            "time": self.snapshot.time,
            **{name: getattr(self, name) for name in ("policy", "samples", "seed", "arrivals")},
            "learned_from": self.learned_from,
            "predictor": None if self.predicted is None else self.predicted.predictor,
            "totals": self.snapshot.totals(),
            "jobs": [one.as_dict() for one in self.jobs],
            "never": [one.as_dict() | {"job": one.label, "rule": one.left_out, "reason": one.never} for one in self.snapshot.never],
            "apart": [one.as_dict() | {"job": one.label, "pending": why.as_dict()} for one, why in self.apart],
            "caveats": list(self.caveats),
        }


def missing_reason(snapshot: Snapshot, label: str) -> str:
    """Return why a job has no start time, as the message of an error."""
    job = next((job for job in snapshot.jobs if job.label == label), None)
    if job is None:
        return f"no job {sanitize(label)!r} waits in the snapshot; write tasks of arrays as in 27_3"
    if job.left_out:
        return f"job {sanitize(label)} is not predicted: {SNAPSHOT_RULES[job.left_out]}"
    return f"job {sanitize(label)} {'runs already' if job.start is not None else 'does not fit the machine'}"


def start_times(
    snapshot: Snapshot,
    history: Workload,
    *,
    policy: str | Policy | Scheduler | None = None,
    predictor: str | Predictor | PredictedRuntimes | None = None,
    draws: Draws = USUAL,
    reasons: bool = True,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> StartTimes:
    """Simulate the future of a snapshot many times, under the site's policy, until all its waiting jobs have started.

    Runtimes are drawn from similar jobs (for running jobs, from those that ran longer), and arrivals from the recent past (`sampling.py`).
    `history`: a log; only jobs that had ended at the snapshot's time count. `policy`: by default the one of the snapshot's machine.
    `predictor`: a runtime predictor such as `file:predictions.csv`: runtimes are drawn around its predictions, by the errors of earlier
    ones; the scheduler still plans with the limits. `draws`: the number of simulations, the seed, and whether jobs arrive. `reasons`:
    whether to find why each job waits, which takes another simulation. `workers`: threads, which do not affect the results; `progress` is
    called with the number of simulations done. Raises PolicyError and WorkloadError.
    """
    reject_hindsight(snapshot.machine, "a prediction of starts")
    snapshot = snapshot.checked()
    forecast = Forecast(snapshot, history, policy, predictor)
    state, runtimes = forecast.state, forecast.runtimes
    waits = np.array([k for k, job in enumerate(state.jobs) if job.start is None], np.int64)

    def run(*drawn: Any) -> Array:
        return forecast.projection.run(*drawn)[waits]

    to_limits, starts = forecast.simulate(run, draws, workers, progress)
    simulated = start_quantiles(starts)
    order = np.argsort(simulated[1], kind="stable")
    jobs, pending = [], pending_reasons(forecast) if reasons else {}
    for k in order.tolist():
        job, level = state.jobs[waits[k]], int(runtimes.level[waits[k]])
        early, median, late = (to_unix(float(time), snapshot.time) for time in simulated[:, k])
        by_limits = to_unix(float(to_limits[k]), snapshot.time)
        alike = ("prediction",) if runtimes.predicted[waits[k]] else LEVELS[level] if level < len(LEVELS) else None
        jobs.append(StartTime(job, early, median, late, job.expected, by_limits, alike, pending.get(job.label, NOT_ASKED)))
    scheduler, caveats = forecast.scheduler, forecast.caveats()
    if snapshot.machine.overhead != NO_OVERHEAD:
        caveats.append(OVERHEAD_NOTE)
    drawn = scheduler.label, draws.samples, draws.seed, draws.arrivals
    return StartTimes(
        snapshot,
        *drawn,
        jobs,
        starts[:, order],
        simulated[:, order],
        forecast.earliest(waits)[order],
        caveats,
        predicted=forecast.predicted,
    )


def start_quantiles(starts: Array) -> Array:
    """Return the 5 % quantile, the median and the 95 % quantile of each column: shape (3, jobs).

    Another simulation would lie between the outer ones with a probability of at least 90 %: with n simulations, they are the
    0.05 (n + 1)-th lowest start, rounded down, and the 0.95 (n + 1)-th, rounded up.
    """
    ranked, count = np.sort(starts, axis=0), len(starts)
    low, high = int(QUANTILES[0] * (count + 1)), int(np.ceil(QUANTILES[2] * (count + 1)))
    return np.stack([ranked[max(low, 1) - 1], ranked[int(np.ceil(QUANTILES[1] * count)) - 1], ranked[min(high, count) - 1]])


@dataclass(frozen=True)
class Reasons:
    """The reasons of a job's wait: sentences, and for how long (s from the snapshot on) each obstacle holds it back.

    The reasons assume that every job runs for the median runtime of similar jobs, and that no job arrives.
    """

    job: str
    held_back: Obstacles
    sentences: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return all values for JSON."""
        return asdict(self)


def explain_wait(
    snapshot: Snapshot,
    history: Workload,
    label: str,
    *,
    policy: str | Policy | Scheduler | None = None,
    predictor: str | Predictor | PredictedRuntimes | None = None,
) -> Reasons:
    """Explain the wait of a job; `label`: its number in Slurm's form such as `27_3`. Raises PolicyError."""
    snapshot = snapshot.checked()
    forecast = Forecast(snapshot, history, policy, predictor)
    state = forecast.state
    places = [k for k, job in enumerate(state.jobs) if job.label == label and job.start is None]
    if not places:
        raise PolicyError(missing_reason(snapshot, label), "job_not_waiting")
    schedule = forecast.projection.schedule(forecast.runtimes.typical())
    explanation = explain(schedule, FIRST_NUMBER + places[0], sooner=False)
    assert isinstance(explanation, MachineExplanation), "it has a placement"

    def named(sentence: str) -> str:
        return re.sub(r"\b1[0-9]{12}\b", lambda number: state.jobs[int(number[0]) - FIRST_NUMBER].label, sentence)

    condition = "This assumes that jobs run for the median runtime of similar jobs, and that none arrive; waits count from the snapshot."
    told = [
        one for one in explanation.sentences if not one.startswith("Simulated wait")
    ]  # it still waits, so the log has no wait to compare with
    return Reasons(label, explanation.held_back, (*map(named, told), condition))


def to_unix(ahead: float, time: int) -> int | None:
    """Return the Unix time `ahead` s after `time`; None for never."""
    return time + round(ahead) if np.isfinite(ahead) else None
