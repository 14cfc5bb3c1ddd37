"""Compare predicted start times with recorded ones, at moments of a log, from earlier information only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from walltime.errors import WorkloadError
from walltime.machine import NO_OVERHEAD, Machine, reject_hindsight
from walltime.predictors import Predictor
from walltime.provenance import version
from walltime.slurm.starts.baselines import no_model, qbets
from walltime.slurm.starts.forecast import Draws
from walltime.slurm.starts.learned import FALLBACK_NOTE, SAMPLES, draw_moments, fallback_intervals, learn_intervals, replay
from walltime.slurm.starts.predicted import predict_log_runtimes
from walltime.slurm.starts.replay import Record
from walltime.slurm.starts.scores import CLASSES, distance_class
from walltime.slurm.starts.start_times import OVERHEAD_NOTE
from walltime.wording import counted
from walltime.workload import Array, Workload

METHODS = {
    "prediction": "the result of walltime slurm start-times, learned from earlier predictions and simulations",
    "simulation": "the simulations alone",
    "limits": "from now to the start if every job runs to its limit and none arrives, which is Slurm's estimate",
    "qbets": "quantile bounds from the waits of the queue and size, cut at change points (Brevik, Nurmi, Wolski)",
    "no_model": "quantiles of the last waits of the queue and size",
}
"""The methods and their meanings; the first one is being tested, the others are baselines."""
SIZES = {"under 1 %": 0.01, "1 to 10 %": 0.1, "10 to 50 %": 0.5, "50 % and more": np.inf}
"""Classes of job sizes by the share of the machine's processors, with their upper bounds."""
REPLAYED = 4
"""Number of earlier moments to learn from for each tested moment."""
NOMINAL = 0.9
FEW = Draws(40)
FIRST = 0.25
"""Share of the log, at its beginning, that serves only as history."""


@dataclass(frozen=True)
class StartScore:
    """The scores of a method in a class: the shares of starts inside, before and after the interval; median width and error, s.

    `interval_score`: the mean width, s, plus 20 times the distance of each start outside its 90 % interval; the lower, the better (Gneiting
    and Raftery, JASA 2007, section 6.2). The middle half of the waits are `least_ratio` to `largest_ratio` times the predicted ones.
    """

    inside: float
    before: float
    after: float
    width: float
    error: float
    interval_score: float
    least_ratio: float
    largest_ratio: float

    @classmethod
    def of(cls, ends: Array, real: Array) -> StartScore:
        """Return the scores of intervals, shape (3, predictions), for these real starts."""
        early, median, late = ends
        before, after = real < early, real > late
        with np.errstate(invalid="ignore"):
            width, error = np.median(late - early), np.median(np.abs(median - real))
            outside = np.maximum(early - real, 0) + np.maximum(real - late, 0)
            score = np.mean(late - early + 2 / (1 - NOMINAL) * outside)
        ratios = np.quantile(np.maximum(real, 1) / np.maximum(median, 1), (0.25, 0.75))
        shares = ((~before & ~after).mean(), before.mean(), after.mean())
        return cls(*(float(one) for one in (*shares, width, error, score, *ratios)))


@dataclass(frozen=True, eq=False)
class RecordedStarts:
    """The scores of predicted start times on a log.

    `moments`, `days`: the numbers of moments and days with predictions. `classes` and `sizes`: the number of predictions and the scores by
    method, for `all` and for each class with predictions. Classes are by distance of the predicted start, sizes by the share of the machine
    that the job needs. `predictor`: the label of the runtime predictor.

    The arrays have one entry for each waiting job and moment, in order of time. `made`: time of the prediction, s from the start of the
    log. `job`: its index in the record. `real`: the start, s after `made`. `ends`: the early end, the median and the late end by method, s
    after `made` (inf for never), shape (3, predictions).
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
    made: Array
    job: Array
    real: Array
    ends: Mapping[str, Array]
    predictor: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return all values except the single predictions for JSON."""

        def row(jobs: int, scores: Mapping[str, StartScore]) -> dict[str, Any]:
            baselines = {name: asdict(score) for name, score in scores.items()}
            return {"jobs": jobs, **baselines.pop("prediction"), "baselines": baselines}

        names = ("log", "machine", "policy", "predictor", "samples", "seed", "moments", "days")
        return {
            **{name: getattr(self, name) for name in names},
            "predictions": len(self.real),
            "starts": {name: row(*scores) for name, scores in self.classes.items()},
            "sizes": {name: row(*scores) for name, scores in self.sizes.items()},
            "caveats": list(self.caveats),
            "version": version(),
        }


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
    """Predict starts at moments of a log, from earlier information only, and compare them with the recorded starts.

    At each moment the recorded state is simulated (`start_times`), and at four times as many past moments, from whose outcomes the
    predictions learn (`learn_intervals`). `moments`: their number, or the moments themselves (s from the start of the log). `draws`: the
    simulations of each moment. `machine`: by default the log's processors as one pool; `policy`: by default the machine's, else EASY.
    `predictor`: predicts runtimes, as in `start_times`. `progress` is called with the number of moments simulated, past ones included, and
    `learning` with the number of moments predicted by forests. Raises WorkloadError for a log without waits.
    """
    reject_hindsight(machine, "a prediction of starts")
    record, samples, seed = Record.of(workload, machine, policy), draws.samples, draws.seed
    begin, end = int(record.submit[0]), int(record.submit[-1])
    first = int(begin + FIRST * (end - begin))
    chosen = draw_moments(record, first, end, moments, seed) if isinstance(moments, int) else sorted(moments)
    before = draw_moments(record, begin, max(chosen, default=0), REPLAYED * len(chosen), [seed, 1])
    counts = dict.fromkeys(before, min(SAMPLES, samples)) | dict.fromkeys(chosen, samples)
    runtimes = None if predictor is None else predict_log_runtimes(predictor, record.workload)
    past = replay(record, counts, predicted=runtimes, seed=seed, workers=workers, progress=progress)
    tested = np.isin(past.made, chosen)
    if not tested.any():
        raise WorkloadError(f"no job of {workload.origin.name} waits at any of the chosen times; use another log", "no_waiting_jobs")
    when, which, real, by_limits = past.made[tested], past.job[tested], past.real[tested], past.by_limits[tested]
    simulated, adjusted = past.simulated[:, tested], learn_intervals(past, learning)[:, tested]
    unknown = np.isnan(adjusted[1])
    waited = when - record.submit[which]
    adjusted = np.where(unknown, fallback_intervals(simulated, by_limits, past.earliest[tested], waited), adjusted)
    caveats = (
        [f"For {counted(int(unknown.sum()), 'prediction')} too few starts were known to learn from: {FALLBACK_NOTE}"]
        if unknown.any()
        else []
    )
    caveats += [] if runtimes is None else runtimes.remarks
    caveats += [OVERHEAD_NOTE] if record.machine.overhead != NO_OVERHEAD else []
    ends = {
        "prediction": adjusted,
        "simulation": simulated,
        "limits": np.stack([np.zeros(len(real)), by_limits, by_limits]),
        "qbets": qbets(record, when, which),
        "no_model": no_model(record, when, which),
    }
    names = np.array([distance_class(median) for median in adjusted[1]])
    part = record.workload.procs[which] / record.machine.procs
    size = np.array(list(SIZES))[np.searchsorted(list(SIZES.values()), part, side="right")]
    return RecordedStarts(
        log=workload.origin.site,
        machine=record.machine.name,
        policy=past.policy,
        samples=samples,
        seed=seed,
        moments=len(set(when.tolist())),
        days=len(set((when // 86400).tolist())),
        classes=_by_class(ends, real, names, CLASSES),
        sizes=_by_class(ends, real, size, SIZES),
        caveats=caveats,
        made=when,
        job=which,
        real=real,
        ends=ends,
        predictor=None if runtimes is None else runtimes.predictor,
    )


def _by_class(ends: Mapping[str, Array], real: Array, names: Array, order: Mapping[str, Any]) -> dict[str, Any]:
    """Return the number of predictions and the scores, for all and for each class."""
    rows = {}
    for name in ("all", *order):
        mine = names == name if name != "all" else np.ones(len(names), bool)
        if mine.any():
            scores = {method: StartScore.of(own[:, mine], real[mine]) for method, own in ends.items()}
            rows[name] = (int(mine.sum()), scores)
    return rows
