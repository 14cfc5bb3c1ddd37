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
    ETA,
    EVENLY,
    GENERAL,
    GRADIENTS,
    L2,
    LARGEST,
    LEARNING_WEIGHT,
    NORM,
    OVER,
    OVER_COEFFICIENT,
    OWN,
    STEPS,
    SURPLUS,
    UNDER,
    UNDER_COEFFICIENT,
    W,
)
from walltime.engine.jit import kernel

DAY, WEEK = 86400, 7 * 86400
LARGEST_EXPONENT = 50.0


def note_start_by_gaussier15(learning, job, now):
    """Note that a job starts now."""
    known = learning.jobs[job]
    known.started_at = now
    if known.key >= 0:
        user = learning.keys[known.key]
        learning.fifo[user.first + user.started] = job
        user.started += 1
        user.running += 1
        user.running_procs += known.procs
        user.running_since += now
    return 0


def predict_by_gaussier15(learning, job, now):
    """The absolute value of w.x at the submission of a job; -1 as long as nothing has been learned."""
    base, w = learning.base[job], learning.model[W]
    _find_features(learning, learning.jobs[job], now, base)
    total = 0.0
    place = 0
    for i in range(BASE):
        for j in range(i, BASE):
            total += w[place] * (base[i] * base[j])
            place += 1
    seconds = abs(total)
    if learning.sums[STEPS] == 0.0 or not math.isfinite(seconds):
        return -1.0
    key = learning.jobs[job].key
    learning.jobs[job].basis = OWN if key >= 0 and learning.keys[key].ended > 0 else GENERAL
    return seconds


@kernel
def _find_features(learning, known, now, base):
    """What is known of a job and its user now, in the order of `gaussier15.features`."""
    for i in range(BASE):
        base[i] = 0.0
    base[0] = 1.0
    ask = float(known.requested)
    procs = known.procs
    for i in range(1, 7):
        base[i] = ask
    if known.key >= 0:
        user = learning.keys[known.key]
        for i in range(min(user.started, 3)):
            last = learning.jobs[learning.fifo[user.first + user.started - 1 - i]]
            ran = last.ran if last.ran >= 0 else now - last.started_at
            base[1 + i] = min(float(ran), ask)
        base[5] = (base[1] + base[2]) / 2.0 if user.started >= 2 else base[1]
        base[6] = (base[1] + base[2] + base[3]) / 3.0 if user.started >= 3 else base[5]
        if user.ended > 0:
            base[7] = user.ended_runtime / user.ended
            base[8] = float(now - user.last_end)
            base[9] = procs / (user.ended_procs / user.ended)
        if user.running > 0:
            while learning.jobs[learning.fifo[user.first + user.first_running]].ran >= 0:
                user.first_running += 1
            longest = learning.jobs[learning.fifo[user.first + user.first_running]]
            base[10] = float(user.running_procs)
            base[11] = float(user.running * now - user.running_since)
            base[12] = float(now - longest.started_at)
            base[13] = float(user.running)
    day, week = 2.0 * math.pi * (now % DAY) / DAY, 2.0 * math.pi * (now % WEEK) / WEEK
    base[14] = math.cos(day)
    base[15] = math.sin(day)
    base[16] = math.cos(week)
    base[17] = math.sin(week)
    base[18] = float(procs)


def observe_by_gaussier15(learning, job, now):
    """Learn from a job that ends now, whose runtime has been noted, with the features that it had when it was submitted."""
    known = learning.jobs[job]
    if known.key >= 0:
        user = learning.keys[known.key]
        if known.started_at >= 0:
            user.running -= 1
            user.running_procs -= known.procs
            user.running_since -= known.started_at
        user.ended += 1
        user.ended_runtime += known.ran
        user.ended_procs += known.procs
        user.last_end = now
    if learning.base[job, 0] > 0:
        _step(learning, known, learning.base[job])
    return 0


@kernel
def _step(learning, known, base):
    """One step of the normalized gradient."""
    options, factors, sums = learning.options, learning.factors, learning.sums
    w, largest, gradients = learning.model[W], learning.model[LARGEST], learning.model[GRADIENTS]
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
    weight = _weight(options[LEARNING_WEIGHT], known.ran, known.procs)
    by_prediction = weight * _loss_slope(options, factors, predicted - float(known.ran))
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
