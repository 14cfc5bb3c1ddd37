"""What a compiled predictor remembers of the jobs that have ended, and what the loop knows of predictions.

`Prediction` says how runtimes are predicted and where the predictions are believed; `walltime.schedule.prediction` makes it from
a predictor. `Predicting` is what the loop works on, and `Learning` in it is the predictor's own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray
FOR_EVER = np.iinfo(np.int64).max
"""A window without a beginning."""

# Predictors. NOBODY: no runtime is predicted. GIVEN: the predictions have been made beforehand.
NOBODY, GIVEN, BY_TANG13, BY_TSAFRIR07, BY_MUALEM01, BY_GAUSSIER15 = 0, 1, 2, 3, 4, 5

# What a prediction was made from: nothing (it is the user's request), jobs of the same key, or the whole workload.
NOTHING, OWN, GENERAL = 0, 1, 2

# How the prediction of a job that outlives it is corrected.
NEVER_CORRECTED, FROM_PREDICTION, FROM_ELAPSED, TO_ESTIMATE, DOUBLED = 0, 1, 2, 3, 4

# Which records the history-based estimate forgets.
FORGET_NEVER, FORGET_STALE_KEY, FORGET_STALE_RECORDS, FORGET_ALL_AT_ONCE = 0, 1, 2, 3

# gaussier15: the curves of the loss, and by what a job counts; in the order of the names in that module.
BY_ABS, BY_SQUARE, BY_EXP = 0, 1, 2
EVENLY, BY_LOG_R_OVER_N, BY_LOG_N_OVER_R, BY_LOG_ONE_OVER_RN, BY_LOG_RN = 0, 1, 2, 3, 4

# Places in the arrays of gaussier15: rows of `model`, and `sums`.
BASE = 19
W, LARGEST, GRADIENTS = 0, 1, 2
NORM, STEPS = 0, 1

# Places in Learning.options and Learning.factors.
LEAST, WINDOW, REFRESH, PERCENT, BY_FRACTION = 0, 1, 2, 3, 4  # tang13
THRESHOLD, FRACTION = 0, 1
RUNS = 1  # tsafrir07
FORGET, PERIOD, SAMPLE = 1, 2, 3  # mualem01, with LEAST
DEVIATIONS = 0
OVER, UNDER, LEARNING_WEIGHT = 0, 1, 2  # gaussier15
OVER_COEFFICIENT, UNDER_COEFFICIENT, SURPLUS, ETA, L2 = 0, 1, 2, 3, 4
WHOLE_WORKLOAD = 7
"""Place in the options of the key that stands for all jobs."""
OPTIONS = 8
FACTORS = 8


def _dtype(fields: str) -> np.dtype[np.void]:
    return np.dtype([(name, np.int64) for name in fields.split()])


KNOWN = _dtype("requested limit key procs started_at ended_at ran place basis")
"""What a predictor knows of a job. When it is submitted: `requested` and `limit` (s; no prediction is over it), `key` (-1 for none)
and `procs`. Later: `started_at`, `ended_at` (s), `ran` (s). `place`: see `Learning`. `basis`: what it was predicted from."""

HISTORY = _dtype(
    "first ended admitted expired total squares "
    "started first_running running running_procs running_since ended_runtime ended_procs last_end"
)
"""The jobs of a key that have ended are `fifo[first : first + ended]`, in the order in which they ended; the first `admitted` of them
have been counted, and the first `expired` are forgotten again. `total` and `squares`: sums of their runtimes (s), and of the squares.

For gaussier15 the `fifo` has the jobs that have `started` instead: `first_running` is the first of these that may still run; how many
are `running`, on how many processors, the sum of their starts; sums of the runtimes and the processors of the jobs that have
ended, and the last end."""


class Prediction(NamedTuple):
    """How runtimes are predicted, and where that is believed; arrays have one entry per job, in order of arrival.

    `believe`: for the order of the queue, for a waiting job's own length, for the expected end of running jobs. `again`: whether
    waiting jobs are predicted again at every pass. `limit` (int64 s): no prediction is over this. `requested` (int64 s) and
    `key` (int64, -1 for none): what the predictor knows of a job when it is submitted. `ranked` (float64): the values that a
    percentile is taken of. `procs` (int64): for the regression. `given` (int64 s) and `basis` (uint8): the predictions and what
    they were made from, where they have been made beforehand.
    """

    kind: int
    believe: tuple[bool, bool, bool]
    correction: int
    increments: tuple[int, ...]
    again: bool
    requested: Array
    limit: Array
    key: Array
    ranked: Array
    given: Array
    basis: Array
    options: tuple[int, ...] = ()
    factors: tuple[float, ...] = ()
    procs: Array | None = None


class Learning(NamedTuple):
    """The history that predictions are made from; arrays that a predictor does not need have length 0.

    `jobs`: records of KNOWN. `keys`: records of HISTORY; the one after the last key stands for the whole workload. `fifo`: int64.

    For percentiles the jobs of key k have places 1, 2, ... in the order of their values, `value[first + place - 1]` (float64), and
    `tree[first:]` (int64) is a Fenwick tree that counts which of these places are taken: so adding a job to a history, dropping
    one, and finding the n-th smallest value take a few steps each. A value is looked at only when its place is taken, which is
    after its job has ended.

    For gaussier15, float64: `base` has a row of features for each job, as they were when it was submitted, all 0 before that; `model` the
    coefficients, the largest value of each feature so far, and the sum of its squared gradients; `sums` N and how many steps.
    """

    options: Array
    factors: Array
    jobs: Any
    keys: Any
    fifo: Array
    value: Array
    tree: Array
    base: Array
    model: Array
    sums: Array


class Predicting(NamedTuple):
    """What the loop knows of predictions.

    Of each job the prediction (s) and how often it was corrected while the job ran; the increments (s) by which it is; all int64; and
    the predictor's own memory.
    """

    predicted: Array
    corrections: Array
    increments: Array
    learning: Learning


def nothing_predicted() -> Prediction:
    """Predictions for no job."""
    none, nowhere = np.zeros(0, np.int64), (False, False, False)
    return Prediction(GIVEN, nowhere, NEVER_CORRECTED, (), False, none, none, none, np.zeros(0), none, np.zeros(0, np.uint8))


def new_predicting(jobs: int, prediction: Prediction) -> Predicting:
    """Room for so many jobs, nothing learned."""
    kind = prediction.kind
    history = jobs if kind > GIVEN else 0
    ranked = history if kind == BY_TANG13 else 0
    regression = history if kind == BY_GAUSSIER15 else 0
    learning = Learning(
        options=np.zeros(OPTIONS, np.int64),
        factors=np.zeros(FACTORS, np.float64),
        jobs=np.zeros(history, KNOWN).view(np.recarray),
        keys=np.zeros(history + 2 if history else 0, HISTORY).view(np.recarray),
        fifo=np.empty(2 * history, np.int64),
        value=np.empty(ranked, np.float64),
        tree=np.empty(ranked, np.int64),
        base=np.empty((regression, BASE)),
        model=np.empty((3, BASE * (BASE + 1) // 2 if regression else 0)),
        sums=np.empty(2),
    )
    predicting = Predicting(
        predicted=np.empty(jobs, np.int64),
        corrections=np.zeros(jobs, np.int64),
        increments=np.array(prediction.increments, np.int64),
        learning=learning,
    )
    restore_predicting(predicting, prediction)
    return predicting


def restore_predicting(predicting: Predicting, prediction: Prediction) -> None:
    """Forget everything, and begin with this prediction, which must be of the same kind."""
    predicting.corrections.fill(0)
    if prediction.kind == GIVEN:
        predicting.predicted[:] = prediction.given
        return
    predicting.predicted[:] = prediction.limit
    learning = predicting.learning
    learning.options[: len(prediction.options)] = prediction.options
    learning.factors[: len(prediction.factors)] = prediction.factors
    known, keys = learning.jobs, learning.keys
    for name in ("requested", "limit", "key"):
        known[name] = getattr(prediction, name)
    known.procs = 0 if prediction.procs is None else prediction.procs
    known.started_at = known.ran = -1
    known.basis = NOTHING
    keys.fill(0)
    for array in (learning.base, learning.model, learning.sums, learning.tree):
        array.fill(0)
    if not len(prediction.key):
        return
    with_key = np.flatnonzero(prediction.key >= 0)
    size = np.bincount(prediction.key[with_key])
    keys.first[: len(size) + 1] = np.concatenate([[0], np.cumsum(size)])
    keys.first[len(size)] = len(prediction.key)  # the whole workload
    learning.options[WHOLE_WORKLOAD] = len(size)
    if prediction.kind == BY_TANG13:
        in_order = with_key[np.lexsort((prediction.ranked[with_key], prediction.key[with_key]))]
        key = prediction.key[in_order]
        learning.value[: len(in_order)] = prediction.ranked[in_order]
        known.place[in_order] = np.arange(1, len(in_order) + 1) - keys.first[key]
