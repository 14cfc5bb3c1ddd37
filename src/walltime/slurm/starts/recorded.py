"""Predicted start times against what a log recorded: at moments of the log, with nothing but what was known then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from walltime.errors import WorkloadError
from walltime.machine import NO_OVERHEAD, Machine, refuse_hindsight
from walltime.predictors import Predictor
from walltime.provenance import version
from walltime.slurm.starts.baselines import no_model, qbets
from walltime.slurm.starts.forecast import Draws
from walltime.slurm.starts.learned import FALLBACK_NOTE, SAMPLES, draw_between, draw_past, learned, little_known, replay
from walltime.slurm.starts.predicted import predicted_of_log
from walltime.slurm.starts.replay import Record
from walltime.slurm.starts.scores import CLASSES, class_of
from walltime.slurm.starts.start_times import LEFT_OUT
from walltime.workload import Workload

Array = np.ndarray

METHODS = {
    "prediction": "what walltime slurm start-times says: learned from what became of such predictions before, the simulation's among them",
    "simulation": "the simulations alone",
    "limits": "every job runs to its limit, and none comes: what Slurm knows; from now until then",
    "qbets": "quantile bounds from the waits of the queue and size, cut at change points (Brevik, Nurmi, Wolski)",
    "no_model": "quantiles of the last waits of the queue and size",
}
"""What predicts, the one that is judged first, and what it says."""
SIZES = {"under 1 %": 0.01, "1 to 10 %": 0.1, "10 to 50 %": 0.5, "50 % and more": np.inf}
"""Classes of the part of the machine that a job needs, by their upper bounds."""
REPLAYED = 4
"""For each moment that is judged so many of the past teach."""
FEW = Draws(40)
FIRST = 0.25
"""The first moment is so far into the log: what comes before is history."""


@dataclass(frozen=True, eq=False)
class StartPredictions:
    """Predictions of waiting jobs, one entry per job and moment, in order of time.

    `made`: when, s from the start of the log; `job`: its place in the record; `real`: when it started, s after `made`; `ends`: by method
    the early end, the median and the late end, s after `made` (inf for never), shape (3, predictions).
    """

    made: Array
    job: Array
    real: Array
    ends: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.made)


@dataclass(frozen=True)
class StartScore:
    """How good the predictions of a method were in a class: the part that started within the interval, s of median width and error.

    `before`, `after`: the parts that started outside of it.
    """

    inside: float
    before: float
    after: float
    width: float
    error: float

    @classmethod
    def of(cls, ends: Array, real: Array) -> StartScore:
        """Those of intervals, shape (3, predictions), and of what happened."""
        early, median, late = ends
        before, after = real < early, real > late
        with np.errstate(invalid="ignore"):
            width, error = np.median(late - early), np.median(np.abs(median - real))
        return cls(float((~before & ~after).mean()), float(before.mean()), float(after.mean()), float(width), float(error))


@dataclass(frozen=True, eq=False)
class RecordedStarts:
    """How good start times were on a log.

    `moments`: at how many they were predicted, `days`: on how many days; `classes`: by how far ahead the predicted start lay, `sizes`: by
    the part of the machine that the job needs: for `all` and each class that has any predictions their number, and the scores by method.
    """

    log: str
    machine: str
    policy: str
    samples: int
    seed: int
    moments: int
    days: int
    classes: Mapping[str, tuple[int, Mapping[str, StartScore]]]
    sizes: Mapping[str, tuple[int, Mapping[str, StartScore]]]
    caveats: Sequence[str]
    predictions: StartPredictions
    predictor: str | None = None
    """of runtimes, that somebody brought"""

    def as_dict(self) -> dict[str, Any]:
        """All of it but the single predictions, ready for JSON."""

        def row(jobs: int, scores: Mapping[str, StartScore]) -> dict[str, Any]:
            first, *others = ({name: asdict(score)} for name, score in scores.items())
            baselines = {name: values for other in others for name, values in other.items()}
            return {"jobs": jobs, **first["prediction"], "baselines": baselines}

        return {
            "log": self.log,
            "machine": self.machine,
            "policy": self.policy,
            "predictor": self.predictor,
            "samples": self.samples,
            "seed": self.seed,
            "moments": self.moments,
            "days": self.days,
            "predictions": len(self.predictions),
            "starts": {name: row(*scores) for name, scores in self.classes.items()},
            "sizes": {name: row(*scores) for name, scores in self.sizes.items()},
            "caveats": list(self.caveats),
            "version": version(),
        }


def draw_moments(record: Record, count: int, seed: int) -> list[int]:
    """So many moments at random in the last three quarters of the log at which jobs wait, ascending; s from its start."""
    first, last = (int(x) for x in (record.submit[0] + FIRST * (record.submit[-1] - record.submit[0]), record.submit[-1]))
    return draw_between(record, first, last, count, np.random.default_rng(seed))


def calibrate_starts(
    workload: Workload,
    machine: Machine | None = None,
    policy: str | None = None,
    *,
    predictor: str | Predictor | None = None,
    moments: int | Sequence[int] = 150,
    draws: Draws = FEW,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
    learning: Callable[[int], None] | None = None,
) -> RecordedStarts:
    """Predict the starts of the jobs that waited at moments of a log, with what was known then, and compare with those that were recorded.

    At each moment the recorded state is simulated (`start_times`), and at four times as many of the past, from whose outcomes the
    predictions learn (`learned`). `moments`: how many, or which (s from the start of the log). `draws`: of each moment, with jobs to come.
    `machine`: by default the log's processors as one pool; `policy`: by default the machine's, else EASY. `predictor`: of runtimes, around
    whose predictions they are drawn (`start_times`).
    `progress` is called with the number of moments simulated, those of the past among them, and `learning` with the number of those that
    forests have predicted. Raises WorkloadError for a log without waits.
    """
    refuse_hindsight(machine, "a prediction of starts")
    record, samples, seed = Record.of(workload, machine, policy), draws.samples, draws.seed
    chosen = draw_moments(record, moments, seed) if isinstance(moments, int) else sorted(moments)
    before = draw_past(record, max(chosen, default=0), REPLAYED * len(chosen), seed)
    counts = dict.fromkeys(before, min(SAMPLES, samples)) | dict.fromkeys(chosen, samples)
    told = None if predictor is None else predicted_of_log(predictor, record.workload)
    past = replay(record, counts, predicted=told, seed=seed, workers=workers, progress=progress)
    judged = np.isin(past.made, chosen)
    if not judged.any():
        raise WorkloadError(f"no job of {workload.origin.name} waits at any of the moments", "no_waiting_jobs")
    when, which, real, by_limits = past.made[judged], past.job[judged], past.real[judged], past.by_limits[judged]
    simulated, adjusted = past.simulated[:, judged], learned(past, learning)[:, judged]
    unknown = np.isnan(adjusted[1])
    adjusted = np.where(unknown, little_known(simulated, by_limits), adjusted)
    caveats = [f"For {int(unknown.sum()):,} predictions too few starts were known to learn from: {FALLBACK_NOTE}"] if unknown.any() else []
    caveats += [] if told is None else told.remarks
    caveats += [LEFT_OUT] if record.machine.overhead != NO_OVERHEAD else []
    all_ends = {
        "prediction": adjusted,
        "simulation": simulated,
        "limits": np.stack([np.zeros(len(real)), by_limits, by_limits]),
        "qbets": qbets(record, when, which),
        "no_model": no_model(record, when, which),
    }
    predictions = StartPredictions(when, which, real, all_ends)
    names = np.array([class_of(median) for median in adjusted[1]])
    part = record.workload.procs[which] / record.machine.procs
    size = np.array(list(SIZES))[np.searchsorted(list(SIZES.values()), part, side="right")]
    return RecordedStarts(
        log=workload.origin.name,
        machine=record.machine.name,
        policy=past.policy,
        samples=samples,
        seed=seed,
        moments=len(set(when.tolist())),
        days=len(set((when // 86400).tolist())),
        classes=_by_class(predictions, names, CLASSES),
        sizes=_by_class(predictions, size, SIZES),
        caveats=caveats,
        predictions=predictions,
        predictor=None if told is None else told.predictor,
    )


def _by_class(predictions: StartPredictions, names: Array, order: Sequence[str] | Mapping[str, Any]) -> dict[str, Any]:
    """The number of predictions and the scores, of all and by class."""
    rows = {}
    for name in ("all", *order):
        mine = names == name if name != "all" else np.ones(len(names), bool)
        if mine.any():
            scores = {method: StartScore.of(ends[:, mine], predictions.real[mine]) for method, ends in predictions.ends.items()}
            rows[name] = (int(mine.sum()), scores)
    return rows
