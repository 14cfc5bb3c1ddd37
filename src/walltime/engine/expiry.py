"""Predictions that turn out to be wrong: those of running jobs, which outlive them, and of waiting ones, which are made again."""

from __future__ import annotations

from walltime.engine.history import FROM_ELAPSED, FROM_PREDICTION, TO_ESTIMATE
from walltime.engine.index import drop_index
from walltime.engine.jit import called_kernel, kernel
from walltime.engine.memory import BROKEN, FREED, HEAD_JOB, INDEXED, NEVER, NOW, QUEUE_FIRST, QUEUE_LAST, RUNNING
from walltime.engine.predict import predict_waiting


@kernel
def predict_arrivals(predicting, jobs, rules, memory, first):
    """Predict the jobs in the queue from this place on; with predictions made again at every pass, all of them."""
    if predicting is None:
        return
    state = memory.state
    if rules.predict_again:
        if _predict_queue(jobs, rules, memory, first) and state[INDEXED]:
            drop_index(memory)
    else:
        for place in range(first, state[QUEUE_LAST]):
            predict_waiting(rules, memory, memory.queue[place])


@kernel
def next_expiry(predicting, jobs, rules, memory):
    """When the next prediction of a running job expires that can be corrected, NEVER if there is none."""
    if predicting is None:
        return NEVER
    if rules.correction:
        for i in range(memory.state[RUNNING]):
            job = memory.running_job[i]
            if memory.learning.running_length[job] < jobs.believed[job]:
                return memory.running_expected[i]
    return NEVER


@kernel
def correct_expired(predicting, jobs, rules, memory, result):
    """Correct the predictions of the running jobs that have reached them and not ended (SPEC L-10)."""
    if predicting is None:
        return
    if rules.correction and memory.state[RUNNING] > 0 and memory.running_expected[0] <= memory.state[NOW]:
        _correct(jobs, rules, memory, result)


@called_kernel
def _correct(jobs, rules, memory, result):
    """Move the expected ends of the jobs that have reached them.

    A job that has reached the user's estimate is overdue, as without predictions. The corrected end is later than now, and it
    may move the reservations; so everything is looked at in the next pass.
    """
    state = memory.state
    now = state[NOW]
    expected, running = memory.running_expected, memory.running_job
    i = 0
    while i < state[RUNNING] and expected[i] <= now:
        job = running[i]
        if memory.learning.running_length[job] >= jobs.believed[job]:
            i += 1
            continue
        memory.learning.corrections[job] += 1
        memory.learning.running_length[job] = _corrected(jobs, rules, memory, job)
        end = result.start[job] + memory.learning.running_length[job]
        k = i
        while k + 1 < state[RUNNING] and expected[k + 1] <= end:
            expected[k] = expected[k + 1]
            running[k] = running[k + 1]
            k += 1
        expected[k] = end
        running[k] = job
        state[FREED] = 1
        state[HEAD_JOB] = -1
        state[BROKEN] = 1


@kernel
def _corrected(jobs, rules, memory, job):
    """The corrected length of a job, longer than it has run and at most the user's estimate."""
    estimate, number = jobs.believed[job], memory.learning.corrections[job]
    if rules.correction == TO_ESTIMATE:
        return estimate
    if rules.correction != FROM_PREDICTION and rules.correction != FROM_ELAPSED:
        return min(2 * memory.learning.running_length[job], estimate)
    if number > memory.learning.increments.size:
        return estimate
    increment = memory.learning.increments[number - 1]
    base = memory.learning.running_length[job] if rules.correction == FROM_ELAPSED else memory.learning.predicted[job]
    return min(base + increment, estimate)


@called_kernel
def _predict_queue(jobs, rules, memory, first):
    """Predict all waiting jobs, from what has ended by now; returns whether the length has changed with which one was planned.

    Those from the place `first` on have just arrived, and none of them has been planned yet.
    """
    state = memory.state
    planned_otherwise = False
    for place in range(state[QUEUE_FIRST], state[QUEUE_LAST]):
        job = memory.queue[place]
        if job >= 0:
            before, planned = memory.learning.predicted[job], jobs.own_length[job]
            predict_waiting(rules, memory, job)
            if memory.learning.predicted[job] != before:
                state[FREED] = 1
            planned_otherwise |= place < first and jobs.own_length[job] != planned
    if planned_otherwise:
        state[BROKEN] = 1
    return planned_otherwise
