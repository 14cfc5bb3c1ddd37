"""The base of predictors from earlier similar jobs: their records by key in plain form, and functions of their compiled forms."""

from __future__ import annotations

from typing import Any

from walltime.compiled.jit import kernel
from walltime.predictors.base import Basis, FinishedJob, Guess, Predictor, SubmittedJob, key_of


class KeyPredictor(Predictor):
    """Base of the predictors that estimate a runtime from records of finished jobs with the same key.

    The first of `keys` that gives an estimate decides; the basis is `OWN` for the first key and `GENERAL` for the others.
    """

    def record(self, job: FinishedJob) -> Any:
        """Return the value to keep for a job that has ended, by default its runtime, s."""
        return job.runtime

    def estimate(self, job: SubmittedJob, ended: list[Any]) -> float | None:
        """Return the runtime of a job, s, from the records of similar jobs in order of their ends; None if there are too few.

        The method may remove records that will never be needed again.
        """
        raise NotImplementedError

    def begin(self) -> KeyLearner:
        """Return a learner that has seen no job."""
        return KeyLearner(self)


class KeyLearner:
    """The records of a predictor, by key."""

    def __init__(self, predictor: KeyPredictor):
        self._predictor = predictor
        self._records: dict[tuple[str, tuple[int, ...]], list[Any]] = {}

    def observe(self, job: FinishedJob) -> None:
        """Keep the record of a job that has ended, under each of the keys."""
        for key in dict.fromkeys(self._predictor.keys):
            if (own := key_of(job, key)) is not None:
                self._records.setdefault((key, own), []).append(self._predictor.record(job))

    def predict(self, job: SubmittedJob) -> Guess | None:
        """Return the estimate from the first key with enough similar jobs."""
        for place, key in enumerate(self._predictor.keys):
            own = key_of(job, key)
            seconds = None if own is None else self._predictor.estimate(job, self._records.get((key, own), []))
            if seconds is not None:
                return Guess(seconds, Basis.GENERAL if place else Basis.OWN)
        return None


# ------------------------------------------------------------------------------------------------------------ compiled form


def observe_by_key(learning, job, now):
    """Append a job that has ended to the history of its key."""
    key = learning.key[job, 0]
    if key >= 0:
        append(learning, key, job)
    return 0


@kernel
def append(learning, key, job):
    """Append a job that has ended to the history of this key."""
    history = learning.keys[key]
    learning.fifo[history.first + history.ended] = job
    history.ended += 1


@kernel
def count(marks, first, size, place, change):
    """Add a place to the Fenwick tree of a key (`change` 1), or remove it (-1).

    The jobs of a key have places 1, 2, ... in order of their values, and the tree counts the occupied places; so adding a job,
    removing a job, and finding the n-th smallest value take logarithmic time.
    """
    while place <= size:
        marks[first + place - 1] += change
        place += place & -place


@kernel
def place_of_rank(marks, first, size, rank):
    """Return the place (from 0) of the given rank (from 1) among the occupied places of a key."""
    step = 1
    while 2 * step <= size:
        step *= 2
    place = 0
    while step > 0:
        if place + step <= size and marks[first + place + step - 1] < rank:
            place += step
            rank -= marks[first + place - 1]
        step //= 2
    return place
