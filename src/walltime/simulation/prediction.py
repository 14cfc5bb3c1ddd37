"""Predictions in the form that the engines take, and predictions for given starts and ends, where nothing is scheduled."""

from __future__ import annotations

import numpy as np

from walltime.engine.kernel import prediction_memory as engine
from walltime.engine.reference.engine import Predictions as ReferencePredictions
from walltime.errors import PolicyError, WorkloadError
from walltime.predictors import Correction, History, Jobs, LogHistory, Past, Prediction, Predictor, check_columns, log_ends
from walltime.workload import Workload

Array = np.ndarray
Ends = tuple[Array, Array, Array]
"""Start and end of each job, int64 s, and where they are known, bool."""


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


def compiled(predictor: Predictor, jobs: Jobs) -> engine.Compiled:
    """The compiled predictor, with nothing learned yet; raises PolicyError if it has only a plain form."""
    check_columns(predictor, jobs.workload)
    found = predictor.compiled(jobs)
    if found is None:
        raise PolicyError(f"the predictor {predictor.label} is plain Python, which runs on the reference engine only")
    return found


def predict_beside(predictor: Predictor, jobs: Jobs, ends: Ends, plain: bool = False, arrivals_first: bool = False) -> tuple[Array, Array]:
    """The prediction for each job at its submission (int64 s), and its basis (uint8); `plain`: always in plain Python.

    `arrivals_first`: of simultaneous events, arrivals come before terminations.
    """
    return (_predict if predictor.is_compiled and not plain else _predict_plainly)(predictor, jobs, ends, arrivals_first)


def _predict(predictor: Predictor, jobs: Jobs, ends: Ends, arrivals_first: bool) -> tuple[Array, Array]:
    from walltime.engine.interface.load import load, load_predictor
    from walltime.engine.kernel.memory import record
    from walltime.engine.kernel.replay import ADDRESSES, LogColumns

    start, end, known = ends
    count, runtime = len(start), end - start
    given = predictor.made_in_advance(jobs.workload, jobs.requested, runtime, jobs.limit)
    if given is not None:
        return given, np.ones(count, np.uint8)
    prediction = engine.nothing_predicted()._replace(compiled=compiled(predictor, jobs))
    predicting, addresses = engine.new_predicting(count, prediction), record(ADDRESSES, **load_predictor(prediction.compiled))
    shown = np.flatnonzero(known)
    ending = shown[np.lexsort((shown, start[shown], end[shown]))]
    starting = shown[np.lexsort((shown, start[shown]))]
    columns = (np.array(column, np.int64) for column in (jobs.workload.submit, start, end, runtime, ending, starting))
    load("replay")(addresses, predicting, LogColumns(*columns), int(arrivals_first))
    return predicting.predicted, predicting.learning.jobs.basis.astype(np.uint8)


def _predict_plainly(predictor: Predictor, jobs: Jobs, ends: Ends, arrivals_first: bool) -> tuple[Array, Array]:
    submit = jobs.workload.submit
    start, end, known = ends
    history = History(predictor, jobs.workload, jobs.requested, jobs.limit, end - start)
    past = Past(history, submit, start, end, known, arrivals_first)
    predicted, basis = np.empty(len(submit), np.int64), np.empty(len(submit), np.uint8)
    for job, now in enumerate(submit.tolist()):
        past.show_until(now)
        predicted[job], basis[job] = history.predict(job, now, now)
    return predicted, basis
