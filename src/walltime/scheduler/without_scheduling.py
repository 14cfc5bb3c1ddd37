"""Predictions for given starts and ends, compiled or in plain Python; nothing is scheduled."""

from __future__ import annotations

import numpy as np

from walltime.engine.kernel.prediction_memory import Compiled, nothing_predicted
from walltime.errors import PolicyError
from walltime.predictors import History, Jobs, Past, Predictor, check_columns

Array = np.ndarray
Ends = tuple[Array, Array, Array]
"""Start and end of each job, int64 s, and where they are known, bool."""


def compiled(predictor: Predictor, jobs: Jobs) -> Compiled:
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
    from walltime.engine.kernel.prediction_memory import new_predicting

    start, end, known = ends
    count, runtime = len(start), end - start
    given = predictor.made_in_advance(jobs.workload, jobs.requested, runtime, jobs.limit)
    if given is not None:
        return given, np.ones(count, np.uint8)
    prediction = nothing_predicted()._replace(compiled=compiled(predictor, jobs))
    predicting, addresses = new_predicting(count, prediction), load_predictor(prediction.compiled)
    shown = np.flatnonzero(known)
    ending = shown[np.lexsort((shown, start[shown], end[shown]))]
    starting = shown[np.lexsort((shown, start[shown]))]
    columns = (np.array(column, np.int64) for column in (jobs.workload.submit, start, end, runtime, ending, starting))
    load("replay")(*(addresses.get(name, 0) for name in ("predict", "started", "observe")), predicting, *columns, int(arrivals_first))
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
