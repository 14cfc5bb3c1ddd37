"""From a predictor to what the engines take, and the predictions that a simulation has made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from walltime.engine import history as engine
from walltime.engine.reference import Predictions as ReferencePredictions
from walltime.errors import PolicyError, WorkloadError
from walltime.estimates.predictors import KEYS, Gaussier15, History, LastRun, LogHistory, Mualem01History, Predictor, Tang13, Tsafrir07
from walltime.estimates.predictors.gaussier15 import CURVES, WEIGHTS
from walltime.estimates.predictors.history import check_columns
from walltime.estimates.predictors.mualem01 import WEEK
from walltime.estimates.predictors.tang13 import MONTH
from walltime.policy import Belief, Correction, parse_belief, parse_correction
from walltime.workload import Workload

Array = np.ndarray
HISTORIES = ("simulation", "log")
_FORGET = {
    "key": engine.FORGET_STALE_KEY,
    "sliding": engine.FORGET_STALE_RECORDS,
    "global": engine.FORGET_ALL_AT_ONCE,
    "none": engine.FORGET_NEVER,
}


@dataclass(frozen=True)
class Setting:
    """A predictor, where it is believed, how it is corrected, and which jobs it learns from."""

    predictor: Predictor
    belief: Belief
    correction: Correction
    history: str

    @classmethod
    def of(cls, predictor: Predictor | None, believe: str | Belief, correction: str | Correction, history: str) -> Setting | None:
        """The setting, None without a predictor; raises PolicyError for an unknown option."""
        belief, corrected = parse_belief(believe), parse_correction(correction)
        if history not in HISTORIES:
            raise PolicyError(f"unknown history {history!r}; known are {', '.join(HISTORIES)}")
        if predictor is None:
            return None
        if not isinstance(predictor, Predictor):
            raise PolicyError(f"predictor must be one such as walltime.Tang13(), not {predictor!r}")
        if history == "log" and predictor.again:
            raise PolicyError("waiting jobs can be predicted again from what happens in the simulation only, not from the log")
        return cls(predictor, belief, corrected, history)

    @property
    def label(self) -> str:
        """The predictor's label, and what is not the default."""
        parts = [self.predictor.label]
        if self.belief != Belief():
            parts.append(self.belief.bits)
        if self.correction != Correction():
            parts.append(self.correction.kind + (":elapsed" if self.correction.relative == "elapsed" else ""))
        if self.history != "simulation":
            parts.append(self.history)
        return " ".join(parts)


@dataclass(frozen=True, eq=False)
class PredictionRecord:
    """What was predicted in a simulation; arrays have one entry per job.

    `predicted`: int64 s, at its submission, before any correction (with a predictor that predicts waiting jobs again: last, before
    its start). `basis`: uint8, a `walltime.estimates.Basis`. `corrections`: int64, how often the prediction was corrected while
    the job ran.
    """

    setting: Setting
    predicted: Array
    basis: Array
    corrections: Array


def limits(requested: Array, believed: Array) -> Array:
    """What no prediction is over, int64 s: the user's request, nor what the scheduler would believe without predictions."""
    return np.minimum(requested, believed)


def for_reference(setting: Setting, workload: Workload, requested: Array, runtime: Array, believed: Array) -> ReferencePredictions:
    """What the reference engine takes."""
    _check_feedback(setting, workload)
    make = LogHistory if setting.history == "log" else History
    history = make(setting.predictor, workload, requested, limits(requested, believed), runtime)
    return ReferencePredictions(history, setting.belief, setting.correction, setting.predictor.again)


def for_kernel(setting: Setting, workload: Workload, requested: Array, runtime: Array, believed: Array) -> engine.Prediction:
    """What the compiled engine takes; with the log's history the predictions are made here and now.

    Raises PolicyError for a predictor in plain Python that learns from the simulation: that one needs the reference engine.
    """
    _check_feedback(setting, workload)
    predictor, limit = setting.predictor, limits(requested, believed)
    given = predictor.given(requested, runtime)
    if given is not None:
        check_columns(predictor, workload)
        prediction = given_prediction(np.clip(given, 1, limit), np.ones(len(workload), np.uint8))
    elif setting.history == "log":
        from walltime.schedule.replay import replay_one

        prediction = given_prediction(*replay_one(predictor, workload, requested, limit, "log"))
    else:
        prediction = learning_prediction(predictor, workload, requested, runtime, limit)
    belief = setting.belief
    return prediction._replace(
        believe=(belief.order, belief.own, belief.running),
        correction=_correction(setting.correction),
        increments=setting.correction.increments,
        again=predictor.again,
    )


def compiled(setting: Setting) -> bool:
    """Whether the compiled engine can do this: all but a predictor in plain Python that learns from the simulation."""
    known = isinstance(setting.predictor, Tang13 | Tsafrir07 | LastRun | Mualem01History | Gaussier15)
    return known or setting.history == "log" or type(setting.predictor).given is not Predictor.given


def given_prediction(predicted: Array, basis: Array) -> engine.Prediction:
    """Predictions that have been made beforehand."""
    return engine.nothing_predicted()._replace(given=predicted, basis=basis)


def learning_prediction(predictor: Predictor, workload: Workload, requested: Array, runtime: Array, limit: Array) -> engine.Prediction:
    """A built-in predictor lowered to numbers: its options, the key of each job, and for percentiles the values to rank.

    The values are of all jobs, the future ones included; the kernel looks at each only after its job has ended.
    """
    check_columns(predictor, workload)
    ranked = np.zeros(0)
    factors: tuple[float, ...] = ()
    procs: Array | None = None
    match predictor:
        case Tang13():
            kind, key = engine.BY_TANG13, predictor.key
            window = engine.FOR_EVER if predictor.window is None else predictor.window * MONTH
            options: tuple[int, ...] = (predictor.least, window, predictor.refresh, predictor.percent, int(predictor.rank == "cobalt"))
            factors = (predictor.threshold, predictor.percent / 100)
            ranked = np.minimum(runtime / requested, 1.0)
        case Tsafrir07() | LastRun():
            kind, key = engine.BY_TSAFRIR07, predictor.key
            options = (1, predictor.k if isinstance(predictor, Tsafrir07) else 1)
        case Mualem01History():
            kind, key = engine.BY_MUALEM01, predictor.key
            options = (predictor.least, _FORGET[predictor.week], WEEK, int(predictor.sample))
            factors = (predictor.deviations,)
            if len(runtime) and float(runtime.max()) ** 2 * len(runtime) >= 2.0**62:
                raise WorkloadError(f"the squares of the runtimes add up to more than {predictor.name} can hold")
        case Gaussier15():
            kind, key, procs = engine.BY_GAUSSIER15, predictor.key, workload.procs
            options = (CURVES.index(predictor.over), CURVES.index(predictor.under), WEIGHTS.index(predictor.weight))
            coefficients = (predictor.over_coefficient, predictor.under_coefficient)
            factors = (*coefficients, predictor.threshold, predictor.eta, predictor.l2)
        case _:
            raise PolicyError(f"the predictor {predictor.label} is plain Python, which runs on the reference engine only")
    return engine.nothing_predicted()._replace(
        kind=kind,
        requested=requested,
        limit=limit,
        key=dense_keys(workload, requested, key),
        ranked=ranked,
        options=options,
        factors=factors,
        procs=procs,
    )


def dense_keys(workload: Workload, requested: Array, key: str) -> Array:
    """Which jobs are alike: int64, equal numbers from 0 on for equal keys, -1 where something of the key is unknown."""
    number = np.zeros(len(workload), np.int64)
    known = np.ones(len(workload), bool)
    for name in KEYS[key]:
        own = {"requested": requested, "procs": workload.procs}
        column = own[name] if name in own else workload.columns[name]
        known &= column >= 0
        values, place = np.unique(column, return_inverse=True)
        number = np.unique(number * len(values) + place, return_inverse=True)[1]
    number[known] = np.unique(number[known], return_inverse=True)[1]
    return np.where(known, number, -1).astype(np.int64)


def _correction(correction: Correction) -> int:
    match correction.kind:
        case "tsafrir07":
            return engine.FROM_ELAPSED if correction.relative == "elapsed" else engine.FROM_PREDICTION
        case "estimate":
            return engine.TO_ESTIMATE
        case "double":
            return engine.DOUBLED
    return engine.NEVER_CORRECTED


def _check_feedback(setting: Setting, workload: Workload) -> None:
    if setting.history == "log" and workload.feedback:
        raise WorkloadError("with feedback jobs are not submitted when they were in the log; learn from the simulation instead")
