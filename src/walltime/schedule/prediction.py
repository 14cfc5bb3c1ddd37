"""From a prediction to what the engines take, and the predictions that a simulation has made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from walltime.engine import learning as engine
from walltime.engine.reference import Predictions as ReferencePredictions
from walltime.errors import WorkloadError
from walltime.predictors import Correction, History, Jobs, LogHistory, Prediction, check_columns, log_ends
from walltime.schedule.beside import compiled, predict_beside
from walltime.workload import Workload

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class PredictionRecord:
    """What was predicted in a simulation; arrays have one entry per job.

    `predicted`: int64 s, at its submission, before any correction (with a predictor that predicts waiting jobs again: last, before
    its start). `basis`: uint8, a `walltime.predictors.Basis`. `corrections`: int64, how often the prediction was corrected while
    the job ran.
    """

    prediction: Prediction
    predicted: Array
    basis: Array
    corrections: Array


def limits(requested: Array, believed: Array) -> Array:
    """What no prediction is over, int64 s: the user's request, nor what the scheduler would believe without predictions."""
    return np.minimum(requested, believed)


def for_reference(prediction: Prediction, workload: Workload, requested: Array, runtime: Array, believed: Array) -> ReferencePredictions:
    """What the reference engine takes."""
    _check_feedback(prediction, workload)
    make = LogHistory if prediction.history == "log" else History
    history = make(prediction.predictor, workload, requested, limits(requested, believed), runtime)
    return ReferencePredictions(history, prediction.believe, prediction.correction, prediction.predictor.again)


def for_kernel(prediction: Prediction, workload: Workload, requested: Array, runtime: Array, believed: Array) -> engine.Prediction:
    """What the compiled engine takes; with the log's history the predictions are made here and now.

    Raises PolicyError for a predictor in plain Python that learns from the simulation: that one needs the reference engine.
    """
    _check_feedback(prediction, workload)
    predictor, limit, belief = prediction.predictor, limits(requested, believed), prediction.believe
    given = predictor.given(requested, runtime)
    lowered = engine.nothing_predicted()
    if given is not None:
        check_columns(predictor, workload)
        lowered = lowered._replace(predicted=np.clip(given, 1, limit), basis=np.ones(len(workload), np.uint8))
    elif prediction.history == "log":
        start, end, known = log_ends(workload)
        predicted, basis = predict_beside(predictor, Jobs(workload, requested, limit, end - start), (start, end, known))
        lowered = lowered._replace(predicted=predicted, basis=basis)
    else:
        lowered = lowered._replace(compiled=compiled(predictor, Jobs(workload, requested, limit, runtime)))
    return lowered._replace(
        believe=(belief.order, belief.own, belief.running),
        correction=_correction(prediction.correction),
        increments=prediction.correction.increments,
        again=predictor.again,
    )


def _correction(correction: Correction) -> int:
    match correction.kind:
        case "tsafrir07":
            return engine.FROM_ELAPSED if correction.relative == "elapsed" else engine.FROM_PREDICTION
        case "estimate":
            return engine.TO_ESTIMATE
        case "double":
            return engine.DOUBLED
    return engine.NEVER_CORRECTED


def _check_feedback(prediction: Prediction, workload: Workload) -> None:
    if prediction.history == "log" and workload.feedback:
        raise WorkloadError("with feedback jobs are not submitted when they were in the log; learn from the simulation instead")
