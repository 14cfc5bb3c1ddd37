"""The waiting jobs, in queue order, and the scores that order them."""

from __future__ import annotations

import math

from walltime.engine.jit import call_score, kernel
from walltime.engine.memory import BY_ARRIVAL, BY_LENGTH, BY_WFP, NOW, QUEUE_FIRST, QUEUE_LAST


@kernel
def enqueue(memory, job):
    """Put an arrival at the end of the queue."""
    memory.queue[memory.state[QUEUE_LAST]] = job
    memory.state[QUEUE_LAST] += 1


@kernel
def drop_started(memory, result):
    """Close the gaps that started jobs left in the queue."""
    state, queue = memory.state, memory.queue
    kept = state[QUEUE_FIRST]
    for i in range(state[QUEUE_FIRST], state[QUEUE_LAST]):
        job = queue[i]
        if result.start[job] < 0:
            queue[kept] = job
            kept += 1
    state[QUEUE_LAST] = kept


@kernel
def score_of(jobs, now, order, parameter, job):
    """Score of a waiting job; the highest goes first. NaN counts as the lowest."""
    wait = now - jobs.submit[job]
    believed = jobs.believed[job]
    procs = jobs.procs[job]
    if order == BY_LENGTH:
        return -float(believed)
    if order == BY_WFP:
        ratio = wait / believed
        power = 1.0
        for _ in range(parameter):
            power *= ratio
        return power * procs
    score = call_score(parameter, wait, believed, procs, jobs.submit[job])
    if math.isnan(score):
        return -math.inf
    return score


@kernel
def sort_jobs(jobs, now, order, parameter, queue, score, first, last):
    """Sort queue[first:last] by score, highest first, ties by arrival.

    Scores change little from one pass to the next, so the jobs are nearly in order and insertion is the right sort.
    """
    if order == BY_ARRIVAL:
        for i in range(first + 1, last):
            job = queue[i]
            k = i
            while k > first and queue[k - 1] > job:
                queue[k] = queue[k - 1]
                k -= 1
            queue[k] = job
        return
    for i in range(first, last):
        job = queue[i]
        value = score_of(jobs, now, order, parameter, job)
        k = i
        while k > first and (score[k - 1] < value or (score[k - 1] == value and queue[k - 1] > job)):
            queue[k] = queue[k - 1]
            score[k] = score[k - 1]
            k -= 1
        queue[k] = job
        score[k] = value


@kernel
def sort_queue(jobs, rules, memory):
    """Bring the queue into the policy's order as of now; under first come, first served it always is."""
    if rules.order != BY_ARRIVAL:
        state = memory.state
        sort_jobs(jobs, state[NOW], rules.order, rules.order_parameter, memory.queue, memory.score, state[QUEUE_FIRST], state[QUEUE_LAST])
