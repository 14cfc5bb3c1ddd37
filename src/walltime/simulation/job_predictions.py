"""Predicted runtimes in the form that each engine needs, and predictions for a log without a simulation."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from walltime.compiled import prediction_memory as memory
from walltime.compiled.prediction_memory import CompiledPredictor, PredictionRules
from walltime.engine.reference.engine import Predictions as PlainPredictions
from walltime.errors import PolicyError, WorkloadError
from walltime.predictors.base import Jobs, Predictor, check_columns
from walltime.predictors.history import History, Past, history_for, log_ends
from walltime.predictors.prediction import Correction, Prediction
from walltime.workload import Workload

if TYPE_CHECKING:
    from walltime.predictors.called import Calls

Array = np.ndarray
CORRECTIONS = {"none": memory.NEVER_CORRECTED, "estimate": memory.TO_ESTIMATE, "half": memory.HALF_OF_REST, "soft": memory.EXTENDED}
Ends = tuple[Array, Array, Array]
"""Start and end of each job, int64 s, and whether they are known, bool."""


@dataclass(frozen=True, eq=False)
class JobPredictions:
    """The predicted runtimes of a workload's jobs, in the form that each engine needs.

    `requested, runtime, planned`: the requests, runtimes and scheduler's estimates, int64 s, one entry per job. No prediction exceeds the
    user's request or the scheduler's estimate. Raises WorkloadError for the log's history with feedback.
    """

    prediction: Prediction
    workload: Workload
    requested: Array
    runtime: Array
    planned: Array

    def __post_init__(self) -> None:
        if self.prediction.learn_from == "log" and self.workload.feedback:
            raise WorkloadError("with feedback, jobs are not submitted as in the log; use the history of the simulation", "feedback")

    @property
    def needs_reference(self) -> str:
        """Return the reason why only the reference engine can run the predictor; empty if the compiled engine can."""
        return "" if self.prediction.runs_compiled else f"the predictor {self.prediction.predictor.label} is plain Python and runs"

    @property
    def can_be_called(self) -> bool:
        """Return whether the compiled loop can call a plain Python predictor: it predicts once, and learns from the simulation."""
        return bool(self.needs_reference) and not self.prediction.predictor.again

    def called(self) -> CalledPredictions:
        """Return the predictions in the form for a compiled loop that calls the Python predictor."""
        return CalledPredictions(self.prediction, self.workload, self.requested, self.runtime, self.planned)

    @property
    def may_be_overdue(self) -> bool:
        """Return whether running jobs may exceed their expected end although they end within their estimate."""
        return self.prediction.predictions_for.running and self.prediction.correction.kind == "none"

    def plain(self) -> PlainPredictions:
        """Return the predictions in the form for the reference engine, with an untrained predictor."""
        prediction = self.prediction
        history = history_for(prediction, self.workload, self.requested, self._limit, self.runtime)
        return PlainPredictions(history, prediction.predictions_for, prediction.correction, prediction.predictor.again)

    def compiled(self) -> PredictionRules:
        """Return the predictions in the form for the compiled engine; with the log's history they are computed here, once.

        Raises PolicyError for a predictor in plain Python that learns from the simulation, as it needs the reference engine.
        """
        return self._compiled

    @cached_property
    def _compiled(self) -> PredictionRules:
        predictor, workload = self.prediction.predictor, self.workload
        given = predictor.made_in_advance(workload, self.requested, self.runtime, self._limit)
        if given is not None:
            check_columns(predictor, workload)
        elif self.prediction.learn_from == "log":
            start, end, known = log_ends(workload)
            given = predict_in_log(predictor, Jobs(workload, self.requested, self._limit, end - start), (start, end, known))
        else:
            return self._uses._replace(compiled=compiled(predictor, Jobs(workload, self.requested, self._limit, self.runtime)))
        return self._uses._replace(predicted=given[0], basis=given[1])

    @property
    def _uses(self) -> PredictionRules:
        """Return the rules for using and correcting predictions, without the predictions themselves."""
        uses, correction = self.prediction.predictions_for, self.prediction.correction
        again = self.prediction.predictor.again
        return PredictionRules((uses.order, uses.own, uses.running), _correction(correction), correction.increments, again)

    @property
    def _limit(self) -> Array:
        return np.minimum(self.requested, self.planned)


@dataclass(frozen=True, eq=False)
class CalledPredictions(JobPredictions):
    """Predictions of a plain Python predictor that the compiled loop calls; each engine has an untrained predictor of its own."""

    needs_reference = ""
    _calls: list[Calls] = field(default_factory=list)

    def compiled(self) -> PredictionRules:
        """Return the predictions in the form for the compiled engine, with an untrained predictor."""
        from walltime.predictors.called import Calls, called

        jobs = Jobs(self.workload, self.requested, self._limit, self.runtime)
        history = History(self.prediction.predictor, self.workload, self.requested, self._limit, self.runtime)
        self._calls.append(Calls(history))
        return self._uses._replace(compiled=called(self._calls[-1], jobs))

    def check(self) -> None:
        """Raise the error of the predictor's last call, if there was one."""
        for calls in self._calls:
            calls.check()


def _correction(correction: Correction) -> int:
    if correction.kind == "tsafrir07":
        return memory.FROM_ELAPSED if correction.relative == "elapsed" else memory.FROM_PREDICTION
    if correction.kind == "double":
        return memory.DOUBLED if correction.capped else memory.DOUBLED_FREELY
    return CORRECTIONS[correction.kind]


def compiled(predictor: Predictor, jobs: Jobs) -> CompiledPredictor:
    """Return the compiled, untrained predictor; raises PolicyError if it is plain Python only."""
    check_columns(predictor, jobs.workload)
    lowered = predictor.compiled(jobs)
    if lowered is None:
        raise PolicyError(f"the predictor {predictor.label} is plain Python, which only the reference engine supports; use engine='auto'")
    return lowered


def predict_in_log(predictor: Predictor, jobs: Jobs, ends: Ends, plain: bool = False, arrivals_first: bool = False) -> tuple[Array, Array]:
    """Return the prediction for each job at its submission (int64 s), and its basis (uint8).

    `plain`: whether to compute them in plain Python. `arrivals_first`: whether arrivals are handled before simultaneous ends of jobs.
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
        return given
    prediction = PredictionRules(compiled=compiled(predictor, jobs))
    predicting, addresses = memory.new_predicting(count, prediction), record(ADDRESSES, **load_predictor(prediction.compiled))
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
