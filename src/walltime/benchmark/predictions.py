"""Judge predictions by the schedules that they produce: accuracy, kills, lost work, waits, and the correlation of accuracy and gain.

Predictors, buffers, schedulers and statistics are frozen with the suite's version. The logs are the user's, identified by checksum.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from walltime import metrics
from walltime.errors import PolicyError, WorkloadError
from walltime.machine import Machine, Partition, Pool
from walltime.metrics.jobs import accuracy, bounded_slowdown
from walltime.metrics.recorded import rank_correlation
from walltime.metrics.weekly_interval import LogWeeks
from walltime.predictors import PlainPredictor, below_remark, parse_predictor
from walltime.schedule import Schedule
from walltime.simulation.replay import held_out, predict
from walltime.simulation.run import simulate
from walltime.simulation.threads import in_threads
from walltime.workload import Array, Workload
from walltime.workload.scaling import shake

VERSION = 2
"""Version of the definitions; version 1 did not include Slurm."""
PREDICTORS = (
    "exact",
    "tsafrir07",
    "last",
    "tsafrir07:k=5",
    "tang13:key=user",
    "tang13:key=user,statistic=p95",
    "similar15",
    "quantile",
    "gaussier15",
)
"""Predictors of the suite: exact runtimes as a bound, and predictors that need only users, requests and sizes."""
BUFFERS = (1.0, 1.5, 3.0)
"""Buffers: factors on predictions, whose product is limited to the request."""
SLURM = "slurm:bf_window=10080,time_min_as_soft_limit=yes"
"""With `time_min_as_soft_limit`, Slurm plans by a job's `time_min`, which has the prediction here. Other settings are Slurm's defaults,
except the window: Slurm's manual recommends the longest limit."""
SCHEDULERS = ("easy", "easy:backfill-order=sjf", "conservative", SLURM)
"""Schedulers without and with predictions. Too short predictions are corrected as in tsafrir07; under Slurm as its soft limits."""
COPIES, SECONDS = 4, 30
"""Number of shaken copies of the log, and largest shift of a submission in them, s."""
MEASURES = {
    "accuracy": "mean of the smaller of runtime and prediction divided by the larger (tang13, eq. 3)",
    "median_accuracy": "median of the smaller of runtime and prediction over the larger",
    "absolute_error": "mean of |prediction - runtime|, s, negated",
    "area_error": "mean of |prediction - runtime| weighted by processors, s, negated",
    "log_error": "mean of |log(prediction / runtime)|, negated",
    "not_under": "share of the jobs whose prediction is not below the runtime",
    "order": "rank correlation of predictions and runtimes over jobs",
}
"""Measures of accuracy, the higher the better."""


@dataclass(frozen=True)
class Gain:
    """The changes of a scheduler's results by predictions, relative to the users' requests, percent; negative values are gains.

    `mean_wait`, with its interval `low`, `high` (sampling of weeks), nan if the log is too short. `copies_low`, `copies_high`: prediction
    interval for one more shaken copy. `slowdown`: change of the mean bounded slowdown.
    """

    scheduler: str
    mean_wait: float
    low: float
    high: float
    copies_low: float
    copies_high: float
    slowdown: float


@dataclass(frozen=True)
class PredictorScore:
    """The results of a predictor with a buffer on a log. `accuracy`: the `MEASURES`.

    `under_percent`: jobs that run longer than predicted. If the prediction were the limit: number of `killed` jobs, their lost node hours
    (or processor hours) `lost_hours`, and the share of all work, `lost_percent`.
    """

    log: str
    predictor: str
    buffer: float
    jobs: int
    accuracy: Mapping[str, float]
    under_percent: float
    killed: int
    lost_hours: float
    lost_percent: float
    gains: tuple[Gain, ...]


@dataclass(frozen=True, eq=False)
class Judgement:
    """The result of `judge_predictions`; `skipped`: unsupported predictors with reasons; `logs`: their checksums by name."""

    rows: tuple[PredictorScore, ...]
    skipped: tuple[str, ...]
    logs: Mapping[str, str]
    waits: Mapping[tuple[str, str], float]
    """mean wait with the users' requests, s, by log and scheduler"""
    caveats: tuple[str, ...] = ()
    """caveats on external predictions: missing ones, and use of information from after the submission"""

    def as_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary for JSON."""
        definition = {"predictors": PREDICTORS, "buffers": BUFFERS, "schedulers": SCHEDULERS, "copies": COPIES, "seconds": SECONDS}
        return {
            "suite": "predictions",
            "version": VERSION,
            "definition": hashlib.sha256(json.dumps(definition).encode()).hexdigest(),
            "logs": dict(self.logs),
            "waits": [{"log": log, "scheduler": scheduler, "mean_wait": wait} for (log, scheduler), wait in self.waits.items()],
            "rows": [asdict(row) for row in self.rows],
            "tells": [asdict(one) for one in gain_correlations(self.rows)],
            "skipped": list(self.skipped),
            "caveats": list(self.caveats),
        }


def judge_predictions(
    logs: Mapping[str, Workload],
    predictors: Sequence[str] = (),
    *,
    buffers: Sequence[float] = BUFFERS,
    copies: int = COPIES,
    only: bool = False,
    test_share: float = 1.0,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Judgement:
    """Judge predictors on logs (by name), together with the predictors of the suite unless `only` is set.

    `predictors`: additional ones, such as `file:preds.csv`, `column:NAME`, `mine.py:Class`. Each job is predicted once, at its submission,
    from the jobs that have ended by then under EASY with requests; all schedulers use the same predictions. `test_share`: all jobs run,
    but only jobs submitted in this last share of the log are measured, for models trained on earlier jobs. `progress` is called with
    the number of finished predictors. Raises PolicyError for an unknown predictor or a buffer below 1. Predictors of the suite that need
    missing columns are `skipped`.
    """
    if any(not 1 <= buffer < 100 for buffer in buffers) or not buffers:
        raise PolicyError("buffers must be one or more factors of at least 1 and below 100, such as 1 and 1.5")
    texts = list(dict.fromkeys([*([] if only else PREDICTORS), *predictors]))
    for text in texts:
        parse_predictor(text)
    tasks = [(name, text) for name in logs for text in texts]
    bases = {name: _Base(workload, copies, test_share) for name, workload in logs.items()}

    def run(number: int, check: Callable[[int], None]) -> list[PredictorScore] | str:
        name, text = tasks[number]
        try:
            return bases[name].judge(name, text, buffers, check)
        except WorkloadError as error:
            if text in predictors:
                raise
            return f"{name}: {text} is left out: {error}"

    done = in_threads(run, len(tasks), workers, progress)
    rows = [row for one in done if not isinstance(one, str) for row in one]
    waits = {
        (name, scheduler): float(base.requests[0][k].wait[base.measured[0]].mean())
        for name, base in bases.items()
        for k, scheduler in enumerate(SCHEDULERS)
    }
    checksums = {name: workload.origin.sha256 or "" for name, workload in logs.items()}
    caveats = [f"{name}: {line}" for name, base in bases.items() for text in predictors for line in base.remarks(text)]
    return Judgement(tuple(rows), tuple(one for one in done if isinstance(one, str)), checksums, waits, tuple(caveats))


class _Base:
    """The schedules of a log and its shaken copies with the users' requests, the baseline for predictors."""

    def __init__(self, workload: Workload, copies: int, test_share: float):
        judged = held_out(workload, test_share)
        self._logs = [workload, *(shake(workload, SECONDS, seed) for seed in range(copies))]
        since = int(workload.submit[judged][0])
        self.measured = [np.flatnonzero(log.submit >= since) if test_share < 1 else np.arange(len(log)) for log in self._logs]
        self.requests = [[_simulate(log, scheduler) for scheduler in SCHEDULERS] for log in self._logs]
        self._below: dict[str, list[str]] = {}

    def judge(self, name: str, text: str, buffers: Sequence[float], check: Callable[[int], None]) -> list[PredictorScore]:
        """Return the rows of one predictor."""
        predictor = parse_predictor(text)
        predicted = []
        for log, schedules in zip(self._logs, self.requests, strict=True):
            check(0)
            replay = predict(log, [predictor], schedules[0], workers=1)[0]
            predicted.append(replay.predicted)
            if isinstance(predictor, PlainPredictor):  # the first log is not shaken
                self._below.setdefault(text, below_remark(predictor.label, replay.basis))
        return [self._score(name, text, buffer, predicted, check) for buffer in buffers]

    def remarks(self, text: str) -> list[str]:
        """Return the caveats of a judged predictor."""
        w = self._logs[0]
        return self._below.get(text, []) + parse_predictor(text).remarks(w, w.requested, w.runtime)

    def _score(self, name: str, text: str, buffer: float, predicted: Sequence[Array], check: Callable[[int], None]) -> PredictorScore:
        w, chosen = self._logs[0], self.measured[0]
        buffered = [
            np.minimum(np.ceil(values * buffer).astype(np.int64), log.requested) for values, log in zip(predicted, self._logs, strict=True)
        ]
        ran, limit, procs = np.minimum(w.runtime, w.requested)[chosen], buffered[0][chosen], w.procs[chosen]
        over = ran > limit
        lost = float((limit * procs)[over].sum())
        work = float((ran * procs).sum())
        return PredictorScore(
            log=name,
            predictor=text,
            buffer=buffer,
            jobs=len(chosen),
            accuracy=_accuracy(ran, limit, procs),
            under_percent=100 * float(over.mean()),
            killed=int(over.sum()),
            lost_hours=lost / 3600,
            lost_percent=100 * lost / work if work else math.nan,
            gains=tuple(self._gain(place, buffered, check) for place in range(len(SCHEDULERS))),
        )

    def _gain(self, place: int, predicted: Sequence[Array], check: Callable[[int], None]) -> Gain:
        """Return the gain of the scheduler with this index."""
        changes, slowdowns = [], []
        low = high = math.nan
        for k, (log, before, values, chosen) in enumerate(zip(self._logs, self.requests, predicted, self.measured, strict=True)):
            check(0)
            old, new = before[place], _simulate(log, SCHEDULERS[place], values)
            mean = float(old.wait[chosen].mean())
            percent = 100 / mean if mean else math.nan
            difference = (new.wait - old.wait)[chosen]
            changes.append(float(difference.mean()) * percent)
            one, other = (float(bounded_slowdown(s.wait[chosen], s.runtime[chosen]).mean()) for s in (old, new))
            slowdowns.append(100 * (other - one) / one)
            if k == 0:
                weeks = LogWeeks.of(log.submit[chosen], *((one.submit, one.start) for one in (old, new)))
                low, high = (end * percent for end in weeks.ends(difference, np.arange(len(chosen))))
        interval = metrics.prediction_interval(np.array(changes)) if len(changes) > 1 else None
        ends = (math.nan, math.nan) if interval is None else (interval.low, interval.high)
        return Gain(SCHEDULERS[place], changes[0], low, high, *ends, slowdowns[0])


COLUMN = "judged_prediction"
"""The temporary column that contains the predictions."""


def _simulate(log: Workload, scheduler: str, predicted: Array | None = None) -> Schedule:
    """Return the schedule with predictions (int64 s, one per job), or with the users' requests.

    The processors of Slurm's nodes are the greatest common divisor of the machine and all jobs, usually 1. The prediction is a job's
    `time_min`, in whole minutes, if it is below the request.
    """
    columns = {name: values for name, values in log.columns.items() if name != "time_min"}
    if scheduler != SLURM:
        added, use = ({}, None) if predicted is None else ({COLUMN: predicted}, f"column:{COLUMN}")
        return simulate(replace(log, columns=columns | added), scheduler, prediction=use)
    each = int(np.gcd.reduce(np.append(log.procs, log.machine_procs)))
    machine = Machine((Pool("all", log.machine_procs // each, each),), (Partition("all", ("all",)),))
    if predicted is not None:
        minutes = -(-predicted // 60) * 60
        columns["time_min"] = np.where(minutes < log.requested, minutes, -1)
    return simulate(replace(log, columns=columns), scheduler, machine=machine)


def _accuracy(ran: Array, given: Array, procs: Array) -> dict[str, float]:
    """Return the values of `MEASURES`."""
    exact = accuracy(ran, given)
    error = np.abs(given - ran).astype(np.float64)
    some = np.maximum(ran, 1)
    return {
        "accuracy": float(exact.mean()),
        "median_accuracy": float(np.median(exact)),
        "absolute_error": -float(error.mean()),
        "area_error": -float((error * procs).sum() / procs.sum()),
        "log_error": -float(np.abs(np.log(np.maximum(given, 1) / some)).mean()),
        "not_under": float((ran <= given).mean()),
        "order": rank_correlation(given.astype(np.float64), ran.astype(np.float64)),
    }


@dataclass(frozen=True)
class GainCorrelation:
    """The rank correlation between a measure of accuracy and a scheduler's gain on a log, over predictors with the same buffer."""

    log: str
    scheduler: str
    buffer: float
    measure: str
    correlation: float
    predictors: int


def gain_correlations(rows: Sequence[PredictorScore]) -> list[GainCorrelation]:
    """Return the rank correlation of accuracy and gain over at least 4 predictors, for each log, scheduler, buffer and measure.

    Exact runtimes are excluded, because they are the best by every measure.
    """
    groups: dict[tuple[str, float], list[PredictorScore]] = {}
    for row in rows:
        if row.predictor != "exact":
            groups.setdefault((row.log, row.buffer), []).append(row)

    def correlation(several: Sequence[PredictorScore], k: int, measure: str) -> float:
        return rank_correlation(*np.array([(row.accuracy[measure], -row.gains[k].mean_wait) for row in several]).T)

    return [
        GainCorrelation(log, scheduler, buffer, measure, correlation(several, k, measure), len(several))
        for (log, buffer), several in groups.items()
        if len(several) >= 4
        for k, scheduler in enumerate(SCHEDULERS)
        for measure in MEASURES
    ]
