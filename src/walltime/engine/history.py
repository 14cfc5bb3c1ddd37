"""What a compiled predictor remembers of the jobs that have ended, as flat arrays.

`Prediction` says how runtimes are predicted and where the predictions are believed; `walltime.schedule.prediction` makes it from
a predictor. `Learning` is what the kernel works on.
"""

from __future__ import annotations

from typing import NamedTuple

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

# Places in the arrays of Regression.
BASE = 19
W, LARGEST, GRADIENTS = 0, 1, 2
NORM, STEPS = 0, 1
STARTED_JOBS, FIRST_RUNNING, RUNNING_JOBS, RUNNING_PROCS, RUNNING_SINCE, ENDED_RUNTIME, ENDED_PROCS, LAST_END = range(8)

# Places in Learning.options and Learning.factors.
LEAST, WINDOW, REFRESH, PERCENT, BY_FRACTION = 0, 1, 2, 3, 4  # tang13
THRESHOLD, FRACTION = 0, 1
RUNS = 1  # tsafrir07
FORGET, PERIOD, SAMPLE = 1, 2, 3  # mualem01, with LEAST
DEVIATIONS = 0
OVER, UNDER, LEARNING_WEIGHT = 0, 1, 2  # gaussier15
OVER_COEFFICIENT, UNDER_COEFFICIENT, SURPLUS, ETA, L2 = 0, 1, 2, 3, 4
OPTIONS = 8
FACTORS = 8


class Prediction(NamedTuple):
    """How runtimes are predicted, and where that is believed; arrays have one entry per job, in order of arrival.

    `believe`: for the order of the queue, for a waiting job's own length, for the expected end of running jobs (SPEC A-11).
    `again`: whether waiting jobs are predicted again at every pass. `limit` (int64 s): no prediction is over this.
    `requested` (int64 s) and `key` (int64, -1 for none): what the predictor knows of a job when it is submitted. `ranked`
    (float64): the values that a percentile is taken of. `procs` (int64): for the regression. `given` (int64 s) and `basis`
    (uint8): the predictions and what they were made from, where they have been made beforehand.
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


class Regression(NamedTuple):
    """What the regression needs besides (SPEC L-11); all of length 0 for other predictors.

    `procs` and `started_at` (int64 s, -1 before): of each job. `users`: a row of int64 for each key: how many jobs have started,
    the first of these that may still run, how many run, on how many processors, the sum of their starts; sums of the runtimes
    and the processors of the jobs that have ended, and the last end. The jobs of key k that have started are `Learning.fifo
    [first[k]:]`, in that order; `ran` is -1 until a job has ended. `base`: a row of float64 features for each job, as they were
    when it was submitted; all 0 before that. `model`: the coefficients, the largest value of each feature so far, and the sum of
    its squared gradients. `sums`: N, and how many steps have been taken.
    """

    procs: Array
    started_at: Array
    users: Array
    base: Array
    model: Array
    sums: Array


class Learning(NamedTuple):
    """The predictions, and the history they are made from; all int64 but `basis` (uint8), `factors` and `value` (float64).

    `running_length`: what a job is expected to run once it does, with all corrections, and `corrections` how many there were;
    of length 0 unless predictions are believed of running jobs. `increments`: s, by which they are corrected.

    The jobs of key k that have ended are `fifo[first[k] : first[k] + ended[k]]`, in the order in which they ended; the first
    `admitted[k]` of them have been counted, and the first `expired[k]` are forgotten again. The key after the last stands for
    the whole workload. `ended_at` and `ran` tell when a job ended and how long it ran.

    For percentiles the jobs of key k have places 1, 2, ... in the order of their values, `value[first[k] + place - 1]`, and
    `tree[first[k]:]` is a Fenwick tree that counts which of these places are taken: so adding a job to a history, dropping one,
    and finding the n-th smallest value take a few steps each. A value is looked at only when its place is taken, which is after
    its job has ended. `total` and `squares`: sums of runtimes, and of their squares.
    """

    options: Array
    factors: Array
    requested: Array
    limit: Array
    key: Array
    predicted: Array
    basis: Array
    running_length: Array
    corrections: Array
    increments: Array
    first: Array
    fifo: Array
    expired: Array
    admitted: Array
    ended: Array
    ended_at: Array
    ran: Array
    place: Array
    value: Array
    tree: Array
    total: Array
    squares: Array
    regression: Regression


def nothing_predicted() -> Prediction:
    """Predictions for no job."""
    none, nowhere = np.zeros(0, np.int64), (False, False, False)
    return Prediction(GIVEN, nowhere, NEVER_CORRECTED, (), False, none, none, none, np.zeros(0), none, np.zeros(0, np.uint8))


def new_learning(jobs: int, prediction: Prediction) -> Learning:
    """Room for so many jobs, nothing learned; arrays that a predictor does not need have length 0."""
    kind = prediction.kind
    history = jobs if kind > GIVEN else 0
    running = jobs if prediction.believe[2] else 0
    ranked = history if kind == BY_TANG13 else 0
    sums = history + 2 if kind == BY_MUALEM01 else 0
    whole = np.empty
    learning = Learning(
        options=np.zeros(OPTIONS, np.int64),
        factors=np.zeros(FACTORS, np.float64),
        requested=whole(history, np.int64),
        limit=whole(history, np.int64),
        key=whole(history, np.int64),
        predicted=whole(jobs, np.int64),
        basis=whole(jobs, np.uint8),
        running_length=whole(running, np.int64),
        corrections=whole(running, np.int64),
        increments=np.array(prediction.increments, np.int64),
        first=whole(history + 2 if history else 0, np.int64),
        fifo=whole(2 * history, np.int64),
        expired=whole(history + 2 if history else 0, np.int64),
        admitted=whole(history + 2 if history else 0, np.int64),
        ended=whole(history + 2 if history else 0, np.int64),
        ended_at=whole(history, np.int64),
        ran=whole(history, np.int64),
        place=whole(ranked, np.int64),
        value=whole(ranked, np.float64),
        tree=whole(ranked, np.int64),
        total=whole(sums, np.int64),
        squares=whole(sums, np.int64),
        regression=_new_regression(history if kind == BY_GAUSSIER15 else 0),
    )
    restore_learning(learning, prediction)
    return learning


def _new_regression(jobs: int) -> Regression:
    return Regression(
        procs=np.empty(jobs, np.int64),
        started_at=np.empty(jobs, np.int64),
        users=np.empty((jobs, 8), np.int64),
        base=np.empty((jobs, BASE)),
        model=np.empty((3, BASE * (BASE + 1) // 2)),
        sums=np.empty(2),
    )


def restore_learning(learning: Learning, prediction: Prediction) -> None:
    """Forget everything, and begin with this prediction, which must be of the same kind."""
    learning.corrections.fill(0)
    learning.running_length.fill(1)
    if prediction.kind == GIVEN:
        learning.predicted[:] = prediction.given
        learning.basis[:] = prediction.basis
        return
    learning.options[: len(prediction.options)] = prediction.options
    learning.factors[: len(prediction.factors)] = prediction.factors
    learning.requested[:] = prediction.requested
    learning.limit[:] = prediction.limit
    learning.key[:] = prediction.key
    learning.predicted[:] = prediction.limit
    learning.basis.fill(NOTHING)
    for counter in (learning.expired, learning.admitted, learning.ended, learning.total, learning.squares):
        counter.fill(0)
    if not len(prediction.key):
        return
    if prediction.procs is not None:
        regression = learning.regression
        regression.procs[:] = prediction.procs
        for array, value in zip((learning.ran, *regression[1:]), (-1, -1, 0, 0, 0, 0), strict=True):
            array.fill(value)
    known = np.flatnonzero(prediction.key >= 0)
    size = np.bincount(prediction.key[known])
    learning.first[: len(size) + 1] = np.concatenate([[0], np.cumsum(size)])
    learning.first[len(size)] = len(prediction.key)  # the whole workload
    learning.options[OPTIONS - 1] = len(size)
    if prediction.kind == BY_TANG13:
        in_order = known[np.lexsort((prediction.ranked[known], prediction.key[known]))]
        key = prediction.key[in_order]
        learning.value[: len(in_order)] = prediction.ranked[in_order]
        learning.place[in_order] = np.arange(1, len(in_order) + 1) - learning.first[key]
        learning.tree.fill(0)
