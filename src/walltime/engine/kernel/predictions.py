"""Predictions of runtimes: made when a job arrives, updated when another ends, corrected when a running job outlives its prediction.

Without predictions, `rules.predicts` and the other rules of predictions are 0, and the arrays of `predicting` have length 0.
"""

import math

import numpy as np

from walltime.compiled.jit import kernel
from walltime.compiled.prediction_memory import DOUBLED_FREELY, EXTENDED, FROM_ELAPSED, FROM_PREDICTION, HALF_OF_REST, NOTHING, TO_ESTIMATE
from walltime.engine.kernel.callbacks import call_notice, call_predict
from walltime.engine.kernel.memory import HOLE, NEVER


@kernel
def predict(address, predicting, job, now):
    """Predict the runtime of a job from the jobs that have ended by now, between 1 s and its limit."""
    learning = predicting.learning
    seconds = call_predict(address, learning, job, now)
    known = learning.jobs[job]
    if seconds < 0:
        known.basis = NOTHING
    predicting.predicted[job] = max(math.floor(seconds + 0.5), 1) if 0 <= seconds < known.limit else known.limit


@kernel
def note_start(rules, predicting, job, now):
    """Report a start to the predictor, if it has a function for starts."""
    if rules.started:
        call_notice(rules.started, predicting.learning, job, now)


@kernel
def note_end(rules, jobs, predicting, job, now):
    """Report to the predictor that a job has ended now."""
    if rules.observe:
        observe(rules.observe, predicting.learning, job, jobs[job].runtime, now)


@kernel
def observe(address, learning, job, runtime, now):
    """Report to a predictor that a job has ended now, after running for `runtime` seconds."""
    learning.jobs[job].ran = runtime
    learning.jobs[job].ended_at = now
    call_notice(address, learning, job, now)


@kernel
def predict_waiting(rules, jobs, predicting, job, now):
    """Predict a waiting job, unless predictions were made in advance, and use the prediction where the rules require it."""
    if rules.predict:
        predict(rules.predict, predicting, job, now)
    if rules.tick > 1:
        predicting.predicted[job] = _until_tick(rules, jobs[job], predicting.predicted[job])
    predicted = predicting.predicted[job]
    if rules.predict_order:
        jobs[job].order_length = predicted
    if rules.predict_own:
        jobs[job].own_length = predicted
    if rules.predict_running:
        jobs[job].run_length = predicted


@kernel
def _until_tick(rules, job, length):
    """Return the expected runtime if ends are noticed only at multiples of the tick, s; a waiting job starts at such a time, too."""
    begin = job.start if job.start != -1 else job.submit
    return -(-(begin + length) // rules.tick) * rules.tick - begin


@kernel
def predict_arrivals(state, rules, jobs, queue, predicting, first):
    """Predict the queued jobs from this place on, or all of them if predictions are renewed in every pass.

    If the planned length of a waiting job changes, the index is dropped and reservations are recomputed.
    """
    if not rules.predicts:
        return
    for place in range(state.queue_first if rules.predict_again else first, state.queue_last):
        if queue[place].procs == HOLE:
            continue
        job = np.int64(queue[place].job)
        before, planned = predicting.predicted[job], jobs[job].own_length
        predict_waiting(rules, jobs, predicting, job, state.now)
        if rules.predict_own:
            queue[place].length = jobs[job].own_length
        if rules.predict_again:
            if predicting.predicted[job] != before:
                state.freed = 1
                state.ranked = state.horizon = 0
            if place < first and jobs[job].own_length != planned:
                state.broken = 1
                state.indexed = 0


@kernel
def next_expiry(state, rules, jobs, running):
    """Return when the next prediction of a running job expires that can be corrected; NEVER if there is none."""
    if rules.correction:
        for i in range(state.running):
            job = running[i].job
            if jobs[job].run_length < jobs[job].planned:
                return running[i].expected
    return NEVER


@kernel
def correct_expired(state, rules, jobs, running, predicting):
    """Correct the expired predictions; if there are any, reservations may move, so the next pass considers all jobs."""
    if correct_running(state, rules, jobs, running, predicting):
        state.freed = 1
        state.head = -1
        state.broken = 1


@kernel
def correct_running(state, rules, jobs, running, predicting):
    """Correct the predictions that running jobs have reached without ending; return whether there were any.

    A job that has reached the user's estimate is overdue, as without predictions. The corrected end is later than now; if ends are noticed
    only at ticks, this may take several corrections. Source: tsafrir07, section 3.
    """
    corrected = False
    if not rules.correction:
        return corrected
    i = 0
    while i < state.running and running[i].expected <= state.now:
        job = running[i].job
        if jobs[job].run_length >= jobs[job].planned:
            i += 1
            continue
        procs = running[i].procs
        while jobs[job].run_length < jobs[job].planned and jobs[job].start + jobs[job].run_length <= state.now:
            predicting.corrections[job] += 1
            jobs[job].run_length = _until_tick(rules, jobs[job], _corrected(rules, jobs[job], predicting, job))
        end = jobs[job].start + jobs[job].run_length
        k = i
        while k + 1 < state.running and running[k + 1].expected <= end:
            running[k] = running[k + 1]
            k += 1
        running[k].expected, running[k].job, running[k].procs = end, job, procs
        corrected = True
    return corrected


@kernel
def _corrected(rules, running_job, predicting, job):
    """Return the corrected runtime of a running job, s: longer than it has run, and at most its estimate unless doubled freely."""
    estimate, number = running_job.planned, predicting.corrections[job]
    if rules.correction == TO_ESTIMATE:
        return estimate
    if rules.correction == HALF_OF_REST:
        return running_job.run_length + max((estimate - running_job.run_length) // 2, 1)
    if rules.correction == DOUBLED_FREELY:
        return 2 * running_job.run_length
    if rules.correction == EXTENDED:
        return min(running_job.run_length + predicting.predicted[job], estimate)
    if rules.correction != FROM_PREDICTION and rules.correction != FROM_ELAPSED:
        return min(2 * running_job.run_length, estimate)
    if number > predicting.increments.size:
        return estimate
    base = running_job.run_length if rules.correction == FROM_ELAPSED else predicting.predicted[job]
    return min(base + predicting.increments[number - 1], estimate)
