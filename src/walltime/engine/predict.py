"""Predictors compiled into the kernel: a runtime is predicted when a job arrives, and something is learned when one ends.

The definitions are those of `walltime.estimates.predictors`, whose plain Python the tests hold these to. What is remembered is
declared in history.py; the regression is in regression.py.
"""

from __future__ import annotations

import math

from walltime.engine.history import (
    BY_FRACTION,
    BY_GAUSSIER15,
    BY_MUALEM01,
    BY_TANG13,
    BY_TSAFRIR07,
    DEVIATIONS,
    FORGET,
    FORGET_ALL_AT_ONCE,
    FORGET_STALE_KEY,
    FORGET_STALE_RECORDS,
    FRACTION,
    GENERAL,
    GIVEN,
    LEAST,
    NOTHING,
    OPTIONS,
    OWN,
    PERCENT,
    PERIOD,
    REFRESH,
    RUNS,
    SAMPLE,
    THRESHOLD,
    WINDOW,
)
from walltime.engine.jit import called_kernel, kernel
from walltime.engine.memory import NOW
from walltime.engine.regression import learn_runtime, learned_runtime


@kernel
def predict_waiting(rules, memory, job):
    """Predict the runtime of a waiting job; it is also what the job will be expected to run for once it starts."""
    if rules.predictor > GIVEN:
        predict(rules.predictor, memory.learning, job, memory.state[NOW])
    if memory.learning.running_length.size > 0:
        memory.learning.running_length[job] = memory.learning.predicted[job]


@kernel
def learn(predicting, jobs, rules, memory, job):
    """Learn from a job that ends now."""
    if predicting is None:
        return
    if rules.predictor > GIVEN:
        observe(rules.predictor, memory.learning, job, jobs.runtime[job], memory.state[NOW])


@called_kernel
def predict(kind, learning, job, now):
    """Predict the runtime of a job from what has ended by now; within 1 s and its limit."""
    seconds = -1.0
    if kind == BY_TANG13:
        seconds = _adjusted_request(learning, job, now)
    elif kind == BY_TSAFRIR07:
        seconds = _mean_of_last_runs(learning, job)
    elif kind == BY_MUALEM01:
        seconds = _mean_and_deviations(learning, job, now)
    elif kind == BY_GAUSSIER15:
        seconds = learned_runtime(learning, job, now)
    if seconds < 0:
        learning.basis[job] = NOTHING
        learning.predicted[job] = learning.limit[job]
    elif seconds >= learning.limit[job]:
        learning.predicted[job] = learning.limit[job]
    else:
        learning.predicted[job] = max(math.floor(seconds + 0.5), 1)


@called_kernel
def observe(kind, learning, job, runtime, now):
    """Learn that a job has ended now, after so many seconds."""
    learning.ran[job] = runtime
    learning.ended_at[job] = now
    if kind == BY_GAUSSIER15:
        learn_runtime(learning, job, now)
        return
    key = learning.key[job]
    if key >= 0:
        _remember(kind, learning, key, job, now)
    if kind == BY_MUALEM01:
        _remember(kind, learning, _whole_workload(learning), job, now)


@kernel
def _whole_workload(learning):
    """The key that stands for all jobs."""
    return learning.options[OPTIONS - 1]


@kernel
def _remember(kind, learning, key, job, now):
    """Append a job to the history of a key."""
    if kind == BY_MUALEM01:
        _forget_old(learning, key, now, False)
        learning.total[key] += learning.ran[job]
        learning.squares[key] += learning.ran[job] * learning.ran[job]
    learning.fifo[learning.first[key] + learning.ended[key]] = job
    learning.ended[key] += 1


# ------------------------------------------------------------------------------------------------------------------ tang13


@kernel
def _adjusted_request(learning, job, now):
    """The request times a percentile of the accuracies of earlier requests; -1 where there are too few (SPEC T-07)."""
    key = learning.key[job]
    if key < 0:
        return -1.0
    options = learning.options
    as_of = now - now % options[REFRESH]
    first = learning.first[key]
    while learning.admitted[key] < learning.ended[key]:
        newest = learning.fifo[first + learning.admitted[key]]
        if learning.ended_at[newest] > as_of:
            break
        _count(learning, key, learning.place[newest], 1)
        learning.admitted[key] += 1
    while learning.expired[key] < learning.admitted[key]:
        oldest = learning.fifo[first + learning.expired[key]]
        if learning.ended_at[oldest] > as_of - options[WINDOW]:
            break
        _count(learning, key, learning.place[oldest], -1)
        learning.expired[key] += 1
    eligible = learning.admitted[key] - learning.expired[key]
    if eligible < options[LEAST]:
        return -1.0
    if options[BY_FRACTION]:
        rank = min(int(learning.factors[FRACTION] * eligible), eligible - 1) + 1
    else:
        rank = (options[PERCENT] * eligible + 99) // 100
    learning.basis[job] = OWN
    return learning.requested[job] * min(max(_smallest(learning, key, rank), learning.factors[THRESHOLD]), 1.0)


@kernel
def _count(learning, key, place, change):
    """Count a place of a key's Fenwick tree in, or out."""
    first = learning.first[key]
    size = learning.first[key + 1] - first
    while place <= size:
        learning.tree[first + place - 1] += change
        place += place & -place


@kernel
def _smallest(learning, key, rank):
    """The value of this rank, counted from 1, among the places of a key that are taken."""
    first = learning.first[key]
    size = learning.first[key + 1] - first
    step = 1
    while 2 * step <= size:
        step *= 2
    place = 0
    while step > 0:
        if place + step <= size and learning.tree[first + place + step - 1] < rank:
            place += step
            rank -= learning.tree[first + place - 1]
        step //= 2
    return learning.value[first + place]


# ---------------------------------------------------------------------------------------------------------------- tsafrir07


@kernel
def _mean_of_last_runs(learning, job):
    """The mean of the key's last runs, its fraction cut off; -1 where there are fewer (SPEC L-10)."""
    key = learning.key[job]
    runs = learning.options[RUNS]
    if key < 0 or learning.ended[key] < runs:
        return -1.0
    last = learning.first[key] + learning.ended[key]
    total = 0
    for i in range(last - runs, last):
        total += learning.ran[learning.fifo[i]]
    learning.basis[job] = OWN
    return float(total // runs)


# ----------------------------------------------------------------------------------------------------------------- mualem01


@kernel
def _mean_and_deviations(learning, job, now):
    """Mean and so many standard deviations of the key's runs, else of all runs; -1 where there are too few (SPEC T-06)."""
    key = learning.key[job]
    if key >= 0:
        seconds = _mean_and_deviations_of(learning, key, now)
        if seconds >= 0:
            learning.basis[job] = OWN
            return seconds
    learning.basis[job] = GENERAL
    return _mean_and_deviations_of(learning, _whole_workload(learning), now)


@kernel
def _mean_and_deviations_of(learning, key, now):
    _forget_old(learning, key, now, True)
    count = learning.ended[key] - learning.expired[key]
    if count < learning.options[LEAST]:
        return -1.0
    mean = learning.total[key] / count
    variance = max(learning.squares[key] / count - mean * mean, 0.0)
    if learning.options[SAMPLE]:
        variance = variance * count / (count - 1) if count > 1 else 0.0
    return mean + learning.factors[DEVIATIONS] * math.sqrt(variance)


@kernel
def _forget_old(learning, key, now, predicting):
    """Forget what the rule says is old; a stale key is found only when it is asked (SPEC Q-10)."""
    rule, period = learning.options[FORGET], learning.options[PERIOD]
    first = learning.first[key]
    while learning.expired[key] < learning.ended[key]:
        last = learning.ended[key] - 1 if rule == FORGET_STALE_KEY else learning.expired[key]
        ended_at = learning.ended_at[learning.fifo[first + last]]
        if rule == FORGET_STALE_KEY:
            old = predicting and now - ended_at > period
        elif rule == FORGET_STALE_RECORDS:
            old = now - ended_at > period
        else:
            old = rule == FORGET_ALL_AT_ONCE and ended_at // period < now // period
        if not old:
            return
        oldest = learning.fifo[first + learning.expired[key]]
        learning.total[key] -= learning.ran[oldest]
        learning.squares[key] -= learning.ran[oldest] * learning.ran[oldest]
        learning.expired[key] += 1
