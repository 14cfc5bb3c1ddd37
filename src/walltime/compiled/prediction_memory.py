"""The loop's data about predictions, and the memory of any compiled predictor.

The engine calls a predictor's functions by their addresses with a `PredictorMemory`, whose content only the predictor interprets.
`PredictionRules` defines how predictions are made and used; `walltime.simulation.job_predictions` creates it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from walltime.compiled.records import record_dtype

Array = np.ndarray
FOR_EVER = np.iinfo(np.int64).max
"""The length of an unlimited window of history, s."""

# The basis of a prediction: nothing (it is the user's request), jobs of the same kind, or all jobs.
NOTHING, OWN, GENERAL = 0, 1, 2

# How the prediction of a job that outlives it is corrected.
NEVER_CORRECTED, FROM_PREDICTION, FROM_ELAPSED, TO_ESTIMATE, DOUBLED, HALF_OF_REST, DOUBLED_FREELY, EXTENDED = range(8)


KNOWN = record_dtype("requested limit procs started_at ended_at ran place basis")
"""The fields of a predictor's record of a job.

* `requested`, `limit`: set at submission; the user's request, and the upper bound on the prediction (s)
* `procs`: set at submission; number of processors
* `ran`, `ended_at`: set by the engine at the end; the runtime (s; -1 before), and the time (s)
* `started_at`: set by the predictor at the start, if it needs it; the time (s; -1 before)
* `basis`: the basis of the prediction, one of the constants above
* `place`: for the predictor's own use"""

HISTORY = record_dtype("first room ended admitted expired total squares")
"""The fields of the record of a key, that is, of jobs of the same kind.

* `first`, `room`: `fifo[first : first + room]` has space for all jobs of the key
* `ended`: number of jobs that have ended; `fifo[first : first + ended]` lists them in order of their ends
* `admitted`: number of these, from the first on, that have been added to the sums
* `expired`: number of these, from the first on, that have been subtracted again
* `total`, `squares`: sum of the runtimes (s), and of their squares"""


class PredictorMemory(NamedTuple):
    """The memory of a compiled predictor; an array that it does not need has length 0.

    The engine reads and writes only `jobs`.

    * `options` (int64), `factors` (float64): the predictor's parameters
    * `jobs`: one record of KNOWN per job
    * `key` (int64, one row per job): the rows of `keys` to which the job belongs, -1 for none
    * `keys`: one record of HISTORY per key; the last one is for all jobs
    * `counts` (int64): one row per key
    * `fifo` (int64), `marks` (int64), `values` (float64): one entry for each job of each key
    * `features` (float64): one row per job
    * `model` (float64): rows of coefficients and sums
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

    * `predict`: returns the prediction in seconds, -1 for none
    * `observe`: records the end of a job and returns 0
    * `started`: records the start of a job and returns 0; None if not needed
    * `learning`: the initial memory, which is copied before use
    """

    predict: Callable[..., float]
    observe: Callable[..., int]
    started: Callable[..., int] | None
    learning: PredictorMemory


class PredictionRules(NamedTuple):
    """Predictions and the rules for using them; arrays have one entry per job, in order of arrival.

    * `predictions_for`: whether predictions replace estimates in the queue order, in a waiting job's own length, and in the expected
      ends of running jobs
    * `correction`: how to correct the prediction of a job that outlives it; `increments`: the steps of such corrections, s
    * `again`: whether waiting jobs are predicted again in every pass
    * `compiled`: the predictor that the loop calls; None if the predictions were made in advance
    * `predicted` (int64 s), `basis` (uint8): predictions made in advance
    """

    predictions_for: tuple[bool, bool, bool] = (False, False, False)
    correction: int = NEVER_CORRECTED
    increments: tuple[int, ...] = ()
    again: bool = False
    predicted: Array = np.zeros(0, np.int64)
    basis: Array = np.zeros(0, np.uint8)
    compiled: CompiledPredictor | None = None


class PredictionState(NamedTuple):
    """The data about predictions in a loop.

    * for each job, its prediction (s) and the number of corrections while it ran, int64
    * the increments of corrections, int64 s
    * the predictor's memory
    """

    predicted: Array
    corrections: Array
    increments: Array
    learning: PredictorMemory


def new_predicting(jobs: int, prediction: PredictionRules) -> PredictionState:
    """Return the data for this many jobs, with nothing learned."""
    learning = PredictorMemory() if prediction.compiled is None else prediction.compiled.learning
    predicted = prediction.predicted if prediction.compiled is None else learning.jobs.limit
    return PredictionState(
        predicted=np.array(predicted, np.int64),
        corrections=np.zeros(jobs, np.int64),
        increments=np.array(prediction.increments, np.int64),
        learning=PredictorMemory(*(array.copy() for array in learning)),
    )


NOTHING_PREDICTED = new_predicting(0, PredictionRules())
"""The data of a loop without predictions; the loop never writes to it."""
