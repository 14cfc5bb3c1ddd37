"""The loop's data about predictions, and the memory of any compiled predictor.

The engine calls a predictor's functions by their addresses with a `PredictorMemory`, whose content only the predictor defines.
`PredictionRules` defines what is predicted and where predictions are used; `walltime.simulation.job_predictions` makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from walltime.compiled.records import record_dtype

Array = np.ndarray
FOR_EVER = np.iinfo(np.int64).max
"""An unlimited window."""

# The basis of a prediction: nothing (it is the user's request), jobs of the same kind, or all jobs.
NOTHING, OWN, GENERAL = 0, 1, 2

# How the prediction of a job that outlives it is corrected.
NEVER_CORRECTED, FROM_PREDICTION, FROM_ELAPSED, TO_ESTIMATE, DOUBLED, HALF_OF_REST, DOUBLED_FREELY, EXTENDED = range(8)


KNOWN = record_dtype("requested limit procs started_at ended_at ran place basis")
"""A predictor's record of a job. Set at submission: `requested` and `limit` (s; upper bound of the prediction), and `procs`. Later:
`ran` (s; -1 before its end) and `ended_at` (s), set by the engine; `started_at` (s; -1 before), set by the predictor if needed.
`basis`: the basis of the prediction. `place` is for the predictor."""

HISTORY = record_dtype("first room ended admitted expired total squares")
"""The jobs of a key that have ended, in the order of their ends, are `fifo[first : first + ended]`; there is `room` for all of its
jobs. The first `admitted` of them have been counted, and the first `expired` dropped again. `total`, `squares`: sums of runtimes (s),
and of their squares."""


class PredictorMemory(NamedTuple):
    """The memory of a compiled predictor; an array that it does not need has length 0. The engine reads and writes only `jobs`.

    `options` (int64), `factors` (float64): its parameters. `jobs`: records of KNOWN. `key` (int64, one row per job): the rows of `keys`
    to which the job belongs, -1 for none. `keys`: records of HISTORY; the last one is for all jobs. `counts` (int64): a row per key.
    `fifo` (int64), `marks` (int64), `values` (float64): as long as all histories together. `features` (float64): a row per job.
    `model` (float64): rows of coefficients and sums.
    """

    options: Array = np.zeros(0, np.int64)
    factors: Array = np.zeros(0)
    jobs: Any = np.zeros(0, KNOWN).view(np.recarray)
    key: Array = np.zeros((0, 0), np.int64)
    keys: Any = np.zeros(0, HISTORY).view(np.recarray)
    counts: Array = np.zeros((0, 0), np.int64)
    fifo: Array = np.zeros(0, np.int64)
    marks: Array = np.zeros(0, np.int64)
    values: Array = np.zeros(0)
    features: Array = np.zeros((0, 0))
    model: Array = np.zeros((0, 0))


class CompiledPredictor(NamedTuple):
    """A predictor compiled for the loop: its functions of (learning, job, now), and its initial memory.

    `predict` returns seconds, -1 for none; `observe` records an end, `started` (None if not needed) a start, and both return 0.
    The arrays of `learning` are not written to.
    """

    predict: Callable[..., float]
    observe: Callable[..., int]
    started: Callable[..., int] | None
    learning: PredictorMemory


class PredictionRules(NamedTuple):
    """Predictions and their uses; arrays have one entry per job, in order of arrival.

    `believe`: for the queue order, for a waiting job's own length, for the expected end of running jobs. `again`: whether
    waiting jobs are predicted again in every pass. `predicted` (int64 s) and `basis` (uint8): predictions made in advance;
    `compiled` is None then.
    """

    believe: tuple[bool, bool, bool] = (False, False, False)
    correction: int = NEVER_CORRECTED
    increments: tuple[int, ...] = ()
    again: bool = False
    predicted: Array = np.zeros(0, np.int64)
    basis: Array = np.zeros(0, np.uint8)
    compiled: CompiledPredictor | None = None


class PredictionState(NamedTuple):
    """The data about predictions in a loop.

    For each job the prediction (s) and the number of its corrections while the job ran; the increments (s) of corrections; all int64;
    and the predictor's memory.
    """

    predicted: Array
    corrections: Array
    increments: Array
    learning: PredictorMemory


def new_predicting(jobs: int, prediction: PredictionRules) -> PredictionState:
    """Return memory for this many jobs, with nothing learned."""
    learning = PredictorMemory() if prediction.compiled is None else prediction.compiled.learning
    predicted = prediction.predicted if prediction.compiled is None else learning.jobs.limit
    return PredictionState(
        predicted=np.array(predicted, np.int64),
        corrections=np.zeros(jobs, np.int64),
        increments=np.array(prediction.increments, np.int64),
        learning=PredictorMemory(*(array.copy() for array in learning)),
    )


NOTHING_PREDICTED = new_predicting(0, PredictionRules())
"""The data of a loop without predictions, which nothing is written to."""
