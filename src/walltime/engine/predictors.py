"""Predictors compiled for the loop, which calls them by their address; only the one that a run uses is compiled.

A runtime is predicted when a job arrives, and something is learned when one ends.

The definitions are those of `walltime.estimates.predictors`, whose plain Python the tests hold these to. What is remembered is
declared in history.py; the regression is in regression.py. A function predict_by_... gives seconds, -1 for none; one that
notices a start or an end returns 0.
"""

from __future__ import annotations

import math

from walltime.engine.history import (
    BY_FRACTION,
    DEVIATIONS,
    FORGET,
    FORGET_ALL_AT_ONCE,
    FORGET_STALE_KEY,
    FORGET_STALE_RECORDS,
    FRACTION,
    GENERAL,
    LEAST,
    OWN,
    PERCENT,
    PERIOD,
    REFRESH,
    RUNS,
    SAMPLE,
    THRESHOLD,
    WHOLE_WORKLOAD,
    WINDOW,
)
from walltime.engine.jit import kernel


def observe_by_key(learning, job, now):
    """Append a job that has ended to the history of its key."""
    key = learning.jobs[job].key
    if key >= 0:
        history = learning.keys[key]
        learning.fifo[history.first + history.ended] = job
        history.ended += 1
    return 0


# ------------------------------------------------------------------------------------------------------------------ tang13


def predict_by_tang13(learning, job, now):
    """The request times a percentile of the accuracies of earlier requests; -1 where there are too few (SPEC T-07)."""
    known, options = learning.jobs, learning.options
    key = known[job].key
    if key < 0:
        return -1.0
    history = learning.keys[key]
    first, places = history.first, learning.keys[key + 1].first - history.first
    as_of = now - now % options[REFRESH]
    while history.admitted < history.ended:
        newest = known[learning.fifo[first + history.admitted]]
        if newest.ended_at > as_of:
            break
        _count(learning.tree, first, places, newest.place, 1)
        history.admitted += 1
    while history.expired < history.admitted:
        oldest = known[learning.fifo[first + history.expired]]
        if oldest.ended_at > as_of - options[WINDOW]:
            break
        _count(learning.tree, first, places, oldest.place, -1)
        history.expired += 1
    eligible = history.admitted - history.expired
    if eligible < options[LEAST]:
        return -1.0
    if options[BY_FRACTION]:
        rank = min(int(learning.factors[FRACTION] * eligible), eligible - 1) + 1
    else:
        rank = (options[PERCENT] * eligible + 99) // 100
    known[job].basis = OWN
    percentile = learning.value[first + _smallest(learning.tree, first, places, rank)]
    return known[job].requested * min(max(percentile, learning.factors[THRESHOLD]), 1.0)


@kernel
def _count(tree, first, size, place, change):
    """Count a place of a key's Fenwick tree in, or out."""
    while place <= size:
        tree[first + place - 1] += change
        place += place & -place


@kernel
def _smallest(tree, first, size, rank):
    """The place, from 0, that has this rank, counted from 1, among the places of a key that are taken."""
    step = 1
    while 2 * step <= size:
        step *= 2
    place = 0
    while step > 0:
        if place + step <= size and tree[first + place + step - 1] < rank:
            place += step
            rank -= tree[first + place - 1]
        step //= 2
    return place


# ---------------------------------------------------------------------------------------------------------------- tsafrir07


def predict_by_tsafrir07(learning, job, now):
    """The mean of the key's last runs, its fraction cut off; -1 where there are fewer (SPEC L-10)."""
    key = learning.jobs[job].key
    runs = learning.options[RUNS]
    if key < 0 or learning.keys[key].ended < runs:
        return -1.0
    last = learning.keys[key].first + learning.keys[key].ended
    total = 0
    for i in range(last - runs, last):
        total += learning.jobs[learning.fifo[i]].ran
    learning.jobs[job].basis = OWN
    return float(total // runs)


# ----------------------------------------------------------------------------------------------------------------- mualem01


def predict_by_mualem01(learning, job, now):
    """Mean and so many standard deviations of the key's runs, else of all runs; -1 where there are too few (SPEC T-06)."""
    key = learning.jobs[job].key
    if key >= 0:
        seconds = _mean_and_deviations(learning, learning.keys[key], now)
        if seconds >= 0:
            learning.jobs[job].basis = OWN
            return seconds
    learning.jobs[job].basis = GENERAL
    return _mean_and_deviations(learning, learning.keys[learning.options[WHOLE_WORKLOAD]], now)


def observe_by_mualem01(learning, job, now):
    """Append a job that has ended to the history of its key, and to that of the whole workload."""
    key = learning.jobs[job].key
    if key >= 0:
        _remember(learning, learning.keys[key], job, now)
    _remember(learning, learning.keys[learning.options[WHOLE_WORKLOAD]], job, now)
    return 0


@kernel
def _remember(learning, history, job, now):
    """Append a job to a history."""
    _forget_old(learning, history, now, False)
    ran = learning.jobs[job].ran
    history.total += ran
    history.squares += ran * ran
    learning.fifo[history.first + history.ended] = job
    history.ended += 1


@kernel
def _mean_and_deviations(learning, history, now):
    """Of the runs of a history, in seconds; -1 where there are too few."""
    _forget_old(learning, history, now, True)
    count = history.ended - history.expired
    if count < learning.options[LEAST]:
        return -1.0
    mean = history.total / count
    variance = max(history.squares / count - mean * mean, 0.0)
    if learning.options[SAMPLE]:
        variance = variance * count / (count - 1) if count > 1 else 0.0
    return mean + learning.factors[DEVIATIONS] * math.sqrt(variance)


@kernel
def _forget_old(learning, history, now, predicting):
    """Forget what the rule says is old; a stale key is found only when it is asked (SPEC Q-10)."""
    rule, period = learning.options[FORGET], learning.options[PERIOD]
    while history.expired < history.ended:
        last = history.ended - 1 if rule == FORGET_STALE_KEY else history.expired
        ended_at = learning.jobs[learning.fifo[history.first + last]].ended_at
        if rule == FORGET_STALE_KEY:
            old = predicting and now - ended_at > period
        elif rule == FORGET_STALE_RECORDS:
            old = now - ended_at > period
        else:
            old = rule == FORGET_ALL_AT_ONCE and ended_at // period < now // period
        if not old:
            return
        ran = learning.jobs[learning.fifo[history.first + history.expired]].ran
        history.total -= ran
        history.squares -= ran * ran
        history.expired += 1
