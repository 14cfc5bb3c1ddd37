"""The regression that is learned on line (SPEC L-11), compiled.

The definition is that of `walltime.estimates.predictors.gaussier15`. Each sum is taken here in the same order as there, so that
both give the same numbers to the last bit.
"""

from __future__ import annotations

import math

from walltime.engine.history import (
    BASE,
    BY_ABS,
    BY_LOG_N_OVER_R,
    BY_LOG_R_OVER_N,
    BY_LOG_RN,
    BY_SQUARE,
    ENDED_PROCS,
    ENDED_RUNTIME,
    ETA,
    EVENLY,
    FIRST_RUNNING,
    GENERAL,
    GRADIENTS,
    L2,
    LARGEST,
    LAST_END,
    LEARNING_WEIGHT,
    NORM,
    OVER,
    OVER_COEFFICIENT,
    OWN,
    RUNNING_JOBS,
    RUNNING_PROCS,
    RUNNING_SINCE,
    STARTED_JOBS,
    STEPS,
    SURPLUS,
    UNDER,
    UNDER_COEFFICIENT,
    W,
)
from walltime.engine.jit import called_kernel, kernel

DAY, WEEK = 86400, 7 * 86400
LARGEST_EXPONENT = 50.0


@kernel
def note_start(learning, job, now):
    """Note that a job starts now, where the predictor wants to know that; `learning` is None where no runtime is predicted."""
    if learning is None:
        return
    if learning.regression.started_at.size > 0:
        _note_start(learning, job, now)


@called_kernel
def _note_start(learning, job, now):
    regression = learning.regression
    regression.started_at[job] = now
    key = learning.key[job]
    if key >= 0:
        user = regression.users[key]
        learning.fifo[learning.first[key] + user[STARTED_JOBS]] = job
        user[STARTED_JOBS] += 1
        user[RUNNING_JOBS] += 1
        user[RUNNING_PROCS] += regression.procs[job]
        user[RUNNING_SINCE] += now


@called_kernel
def learned_runtime(learning, job, now):
    """The absolute value of w.x at the submission of a job; -1 as long as nothing has been learned."""
    regression = learning.regression
    base, w = regression.base[job], regression.model[W]
    _find_features(learning, job, now, base)
    total = 0.0
    place = 0
    for i in range(BASE):
        for j in range(i, BASE):
            total += w[place] * (base[i] * base[j])
            place += 1
    seconds = abs(total)
    if regression.sums[STEPS] == 0.0 or not math.isfinite(seconds):
        return -1.0
    key = learning.key[job]
    learning.basis[job] = OWN if key >= 0 and learning.ended[key] > 0 else GENERAL
    return seconds


@kernel
def _find_features(learning, job, now, base):
    """What is known of a job and its user now, in the order of `gaussier15.features`."""
    regression = learning.regression
    for i in range(BASE):
        base[i] = 0.0
    base[0] = 1.0
    ask = float(learning.requested[job])
    procs = regression.procs[job]
    for i in range(1, 7):
        base[i] = ask
    key = learning.key[job]
    if key >= 0:
        user, first = regression.users[key], learning.first[key]
        started = user[STARTED_JOBS]
        for i in range(min(started, 3)):
            last = learning.fifo[first + started - 1 - i]
            ran = learning.ran[last] if learning.ran[last] >= 0 else now - regression.started_at[last]
            base[1 + i] = min(float(ran), ask)
        base[5] = (base[1] + base[2]) / 2.0 if started >= 2 else base[1]
        base[6] = (base[1] + base[2] + base[3]) / 3.0 if started >= 3 else base[5]
        ended = learning.ended[key]
        if ended > 0:
            base[7] = user[ENDED_RUNTIME] / ended
            base[8] = float(now - user[LAST_END])
            base[9] = procs / (user[ENDED_PROCS] / ended)
        if user[RUNNING_JOBS] > 0:
            while learning.ran[learning.fifo[first + user[FIRST_RUNNING]]] >= 0:
                user[FIRST_RUNNING] += 1
            longest = learning.fifo[first + user[FIRST_RUNNING]]
            base[10] = float(user[RUNNING_PROCS])
            base[11] = float(user[RUNNING_JOBS] * now - user[RUNNING_SINCE])
            base[12] = float(now - regression.started_at[longest])
            base[13] = float(user[RUNNING_JOBS])
    day, week = 2.0 * math.pi * (now % DAY) / DAY, 2.0 * math.pi * (now % WEEK) / WEEK
    base[14] = math.cos(day)
    base[15] = math.sin(day)
    base[16] = math.cos(week)
    base[17] = math.sin(week)
    base[18] = float(procs)


@called_kernel
def learn_runtime(learning, job, now):
    """Learn from a job that ends now, whose runtime has been noted, with the features that it had when it was submitted."""
    regression = learning.regression
    key = learning.key[job]
    if key >= 0:
        user = regression.users[key]
        if regression.started_at[job] >= 0:
            user[RUNNING_JOBS] -= 1
            user[RUNNING_PROCS] -= regression.procs[job]
            user[RUNNING_SINCE] -= regression.started_at[job]
        learning.ended[key] += 1
        user[ENDED_RUNTIME] += learning.ran[job]
        user[ENDED_PROCS] += regression.procs[job]
        user[LAST_END] = now
    if regression.base[job, 0] > 0:
        _step(learning, job)


@kernel
def _step(learning, job):
    """One step of the normalized gradient."""
    regression, options, factors = learning.regression, learning.options, learning.factors
    base, sums = regression.base[job], regression.sums
    w, largest, gradients = regression.model[W], regression.model[LARGEST], regression.model[GRADIENTS]
    norm = sums[NORM]
    predicted = 0.0
    place = 0
    for i in range(BASE):
        for j in range(i, BASE):
            value = base[i] * base[j]
            if abs(value) > largest[place]:
                w[place] *= largest[place] / abs(value)
                largest[place] = abs(value)
            if largest[place] > 0:
                norm += (value / largest[place]) * (value / largest[place])
            predicted += w[place] * value
            place += 1
    sums[NORM] = norm
    sums[STEPS] += 1.0
    weight = _weight(options[LEARNING_WEIGHT], learning.ran[job], regression.procs[job])
    by_prediction = weight * _loss_slope(options, factors, predicted - float(learning.ran[job]))
    place = 0
    for i in range(BASE):
        for j in range(i, BASE):
            gradient = by_prediction * (base[i] * base[j]) + factors[L2] * w[place]
            gradients[place] += gradient * gradient
            scale = math.sqrt(norm * gradients[place] / sums[STEPS]) * largest[place]
            if scale > 0:
                w[place] -= factors[ETA] * gradient / scale
            place += 1


@kernel
def _weight(kind, runtime, procs):
    """How much a job counts."""
    r, n = float(max(runtime, 1)), float(procs)
    if kind == EVENLY:
        return 1.0
    if kind == BY_LOG_RN:
        return max(1.0 + math.log(r * n), 0.0)
    if kind == BY_LOG_R_OVER_N:
        return max(5.0 + math.log(r / n), 0.0)
    if kind == BY_LOG_N_OVER_R:
        return max(5.0 + math.log(n / r), 0.0)
    return max(11.0 + math.log(1.0 / (r * n)), 0.0)


@kernel
def _loss_slope(options, factors, error):
    """The derivative of the loss by the prediction."""
    beyond = error - factors[SURPLUS]
    if beyond > 0:
        return _slope(options[OVER], factors[OVER_COEFFICIENT], beyond)
    if beyond < 0:
        return -_slope(options[UNDER], factors[UNDER_COEFFICIENT], -beyond)
    return 0.0


@kernel
def _slope(curve, coefficient, error):
    if curve == BY_ABS:
        return coefficient
    if curve == BY_SQUARE:
        return coefficient * 2.0 * error
    return coefficient * math.exp(min(coefficient * error, LARGEST_EXPONENT))
