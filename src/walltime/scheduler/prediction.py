"""Predictions in the form that the engines take, and the predictions made in a simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from walltime.engine.kernel import prediction_memory as engine
from walltime.engine.reference.predictions import Predictions as ReferencePredictions
from walltime.errors import WorkloadError
from walltime.predictors import Correction, History, Jobs, LogHistory, Prediction, check_columns, log_ends
from walltime.scheduler.without_scheduling import compiled, predict_beside
from walltime.workload import Workload

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class PredictionRecord:
    """The predictions of a simulation; arrays have one entry per job.

    `predicted`: int64 s, at submission, before any correction (the last one before the start, if the predictor predicts waiting
    jobs again). `basis`: uint8, a `walltime.predictors.Basis`. `corrections`: int64, number of corrections while the job ran.
    """

    prediction: Prediction
    predicted: Array
    basis: Array
    corrections: Array


def limits(requested: Array, believed: Array) -> Array:
    """Upper bounds of the predictions, int64 s: the smaller of the user's request and the estimate used without predictions."""
    return np.minimum(requested, believed)


def for_reference(prediction: Prediction, workload: Workload, requested: Array, runtime: Array, believed: Array) -> ReferencePredictions:
    """The prediction in the form that the reference engine takes."""
    _check_feedback(prediction, workload)
    make = LogHistory if prediction.history == "log" else History
    history = make(prediction.predictor, workload, requested, limits(requested, believed), runtime)
    return ReferencePredictions(history, prediction.believe, prediction.correction, prediction.predictor.again)


def for_kernel(prediction: Prediction, workload: Workload, requested: Array, runtime: Array, believed: Array) -> engine.Prediction:
    """The prediction in the form that the compiled engine takes; with the log's history the predictions are made here.

    Raises PolicyError for a predictor in plain Python that learns from the simulation, as it needs the reference engine.
    """
    _check_feedback(prediction, workload)
    predictor, limit, belief = prediction.predictor, limits(requested, believed), prediction.believe
    given = predictor.made_in_advance(workload, requested, runtime, limit)
    lowered = engine.nothing_predicted()
    if given is not None:
        check_columns(predictor, workload)
        lowered = lowered._replace(predicted=given, basis=np.ones(len(workload), np.uint8))
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
            return engine.DOUBLED if correction.capped else engine.DOUBLED_FREELY
        case "half":
            return engine.HALF_OF_REST
    return engine.NEVER_CORRECTED


def _check_feedback(prediction: Prediction, workload: Workload) -> None:
    if prediction.history == "log" and workload.feedback:
        raise WorkloadError("with feedback jobs are not submitted when they were in the log; learn from the simulation instead")
