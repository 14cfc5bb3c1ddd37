"""Pass jobs to a predictor when they are submitted, start and end, in a simulation or a replay of a log."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.plugins.files import location_of, user_code
from walltime.policy.log_view import LATER
from walltime.predictors.base import Basis, FinishedJob, Guess, Predictor, StartedJob, SubmittedJob, check_columns
from walltime.workload import Array, Workload

if TYPE_CHECKING:
    from walltime.predictors.prediction import Prediction


class History:
    """A learner, and the data on jobs that it receives; it receives a job's runtime only after the job has ended.

    `requested` (int64 s): the user requests; `limit` (int64 s): upper bounds on the predictions. Raises WorkloadError for a missing column.
    """

    def __init__(self, predictor: Predictor, workload: Workload, requested: Array, limit: Array, runtime: Array):
        check_columns(predictor, workload)
        given = predictor.made_in_advance(workload, requested, runtime, limit)
        self.predictor = predictor
        self._given = None if given is None else [Guess(*one) for one in zip(given[0].tolist(), map(Basis, given[1]), strict=True)]
        self._learner: Any = None if given is not None else predictor.begin()
        self._learner_started: Any = getattr(self._learner, "started", None)
        self.wants_starts = self._learner_started is not None
        self._named = {method: f"{method} of {predictor.label}" for method in ("predict", "started", "observe")}
        self._limit = [int(value) for value in limit]
        unknown = np.full(len(workload), -1)
        named = dict.fromkeys((*SubmittedJob.COLUMNS, *sorted(workload.columns.keys() - LATER)))
        self._known: dict[str, list[Any]] = {name: workload.columns.get(name, unknown).tolist() for name in named}
        self._known |= {"job_id": workload.job_id.tolist(), "requested": requested.tolist(), "procs": workload.procs.tolist()}

    def predict(self, index: int, submit: int, now: int) -> Guess:
        """Return the prediction for the job with this index, a whole number of seconds from 1 to its limit."""
        if self._given is not None:
            return self._given[index]
        limit = self._limit[index]
        job = SubmittedJob(self._known, index, submit, now)
        with user_code(self._named["predict"], self._learner.predict, "predict(self, job)"):
            guess = self._learner.predict(job)
        if guess is None:
            return Guess(limit, Basis.NOTHING)
        seconds, basis = guess if isinstance(guess, Guess) else (guess, Basis.OWN)
        try:
            if math.isnan(seconds):
                raise ValueError
            if seconds < 0:
                return Guess(limit, Basis.BELOW)
            whole = limit if seconds >= limit else max(math.floor(seconds + 0.5), 1)
        except (TypeError, ValueError):
            prediction = f"{self.predictor.label} predicts {seconds!r} for job {job.job_id}"
            raise PolicyError(
                f"{location_of(self._learner.predict)}{prediction}, which is not a number of seconds", "wrong_prediction"
            ) from None
        return Guess(whole, Basis(basis))

    def started(self, index: int, submit: int, start: int) -> None:
        """Pass a job that has just started to a learner with a method `started`."""
        if self._learner_started is not None:
            with user_code(self._named["started"], self._learner_started, "started(self, job)"):
                self._learner_started(StartedJob(self._known, index, submit, start))

    def observe(self, index: int, submit: int, start: int, end: int) -> None:
        """Pass a job that has just ended to the learner."""
        if self._learner is not None:
            with user_code(self._named["observe"], self._learner.observe, "observe(self, job)"):
                self._learner.observe(FinishedJob(self._known, index, submit, start, end))


class LogHistory:
    """A history in which jobs start and end as in the log, regardless of the simulation."""

    def __init__(self, predictor: Predictor, workload: Workload, requested: Array, limit: Array, runtime: Array):
        self._history = History(predictor, workload, requested, limit, runtime)
        self._past = Past(self._history, workload.submit, *log_ends(workload))

    def predict(self, index: int, submit: int, now: int) -> Guess:
        """Return the prediction, after passing all events of the log up to now to the learner."""
        self._past.show_until(now)
        return self._history.predict(index, submit, now)

    def started(self, index: int, submit: int, start: int) -> None:
        """Ignore the event of the simulation."""

    def observe(self, index: int, submit: int, start: int, end: int) -> None:
        """Ignore the event of the simulation."""


def history_for(prediction: Prediction, workload: Workload, requested: Array, limit: Array, runtime: Array) -> History | LogHistory:
    """Return a new history for a prediction, from the simulation or the log; the other arguments are as in `History`."""
    make = LogHistory if prediction.learn_from == "log" else History
    return make(prediction.predictor, workload, requested, limit, runtime)


class Past:
    """Pass known starts and ends of jobs to a history as time passes; times are int64 s, one per job, used where `known` (bool).

    `arrivals_first`: whether arrivals precede terminations at the same instant.
    """

    def __init__(self, history: History, submit: Array, start: Array, end: Array, known: Array, arrivals_first: bool = False):
        self._history = history
        self._arrivals_first = arrivals_first
        self._submit, self._start, self._end = submit.tolist(), start.tolist(), end.tolist()
        jobs = np.flatnonzero(known).tolist()
        self._starting = sorted(jobs, key=lambda job: (self._start[job], job), reverse=True)
        self._ending = sorted(jobs, key=lambda job: (self._end[job], self._start[job], job), reverse=True)

    def show_until(self, now: int) -> None:
        """Pass all events up to now in chronological order; a job that starts now has neither started nor ended yet.

        At the same instant, ends precede starts, but a job with runtime 0 starts before it ends. With `arrivals_first`, no job ending now
        has ended.
        """
        last = now - 1 if self._arrivals_first else now
        while self._ending and self._end[self._ending[-1]] <= last and self._start[self._ending[-1]] < now:
            job = self._ending.pop()
            start, end = self._start[job], self._end[job]
            self._show_starts(max(end - 1, start))
            self._history.observe(job, self._submit[job], start, end)
        self._show_starts(now - 1)

    def _show_starts(self, until: int) -> None:
        while self._starting and self._start[self._starting[-1]] <= until:
            job = self._starting.pop()
            self._history.started(job, self._submit[job], self._start[job])


def log_ends(workload: Workload) -> tuple[Array, Array, Array]:
    """Return the recorded start and end of each job (int64 s), and where they are known (bool).

    Raises WorkloadError if the log has no wait times.
    """
    wait = workload.columns.get("wait")
    if wait is None or not (wait >= 0).any():
        raise WorkloadError("the log has no wait times, so the ends of its jobs are unknown; use the ends of a simulation", "missing_waits")
    if not (wait > 0).any():
        raise WorkloadError("all waits of the log are 0, so its recorded ends are not real; use the ends of a simulation", "missing_waits")
    start = workload.submit + np.maximum(wait, 0)
    return start, start + workload.runtime, wait >= 0
