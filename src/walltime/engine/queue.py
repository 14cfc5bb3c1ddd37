"""The waiting jobs, in queue order, and the scores that order them."""

from __future__ import annotations

import math

from walltime.engine.heap import drop_first, push
from walltime.engine.jit import call_score, kernel
from walltime.engine.memory import (
    ARRIVALS,
    BY_ARRIVAL,
    BY_LENGTH,
    BY_WFP,
    LATER,
    NEVER,
    NEXT_ARRIVAL,
    NEXT_JOB,
    NOW,
    QUEUE_FIRST,
    QUEUE_LAST,
)


@kernel
def enqueue(memory, job):
    """Put an arrival at the end of the queue."""
    state = memory.state
    memory.arrival[job] = state[ARRIVALS]
    state[ARRIVALS] += 1
    memory.queue[state[QUEUE_LAST]] = job
    state[QUEUE_LAST] += 1


@kernel
def take_arrival(jobs, memory):
    """Put the next arrival into the queue; arrivals of one instant come in the order of the jobs (SPEC Q-24)."""
    state = memory.state
    time = state[NEXT_ARRIVAL]
    job = state[NEXT_JOB]
    planned = job < memory.submit.size and memory.submit[job] == time
    if state[LATER] > 0 and memory.later_time[0] == time and not (planned and job < memory.later_job[0]):
        enqueue(memory, memory.later_job[0])
        drop_first(memory.later_time, memory.later_job, memory.later_job, state[LATER])
        state[LATER] -= 1
    else:
        enqueue(memory, job)
        job += 1
        while job < jobs.after.size and jobs.after[job] >= 0:
            job += 1  # it comes when the job before it has ended
        state[NEXT_JOB] = job
    state[NEXT_ARRIVAL] = memory.submit[job] if job < memory.submit.size else NEVER
    if state[LATER] > 0:
        state[NEXT_ARRIVAL] = min(state[NEXT_ARRIVAL], memory.later_time[0])


@kernel
def submit_later(memory, time, job):
    """Let a job that waited for another one's end arrive at this time."""
    memory.submit[job] = time
    push(memory.later_time, memory.later_job, memory.later_job, memory.state[LATER], time, job, job)
    memory.state[LATER] += 1
    memory.state[NEXT_ARRIVAL] = min(memory.state[NEXT_ARRIVAL], time)


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
def score_of(jobs, memory, order, parameter, job):
    """Score of a waiting job; the highest goes first. NaN counts as the lowest."""
    wait = memory.state[NOW] - memory.submit[job]
    believed = jobs.order_length[job]
    procs = jobs.procs[job]
    if order == BY_LENGTH:
        return -float(believed)
    if order == BY_WFP:
        ratio = wait / believed
        power = 1.0
        for _ in range(parameter):
            power *= ratio
        return power * procs
    score = call_score(parameter, wait, believed, procs, memory.submit[job])
    if math.isnan(score):
        return -math.inf
    return score


@kernel
def sort_jobs(jobs, memory, order, parameter, queue, score, first, last):
    """Sort queue[first:last] by score, highest first, ties by arrival.

    Scores change little from one pass to the next, so the jobs are nearly in order and insertion is the right sort.
    """
    arrival = memory.arrival
    if order == BY_ARRIVAL:
        for i in range(first + 1, last):
            job = queue[i]
            k = i
            while k > first and arrival[queue[k - 1]] > arrival[job]:
                queue[k] = queue[k - 1]
                k -= 1
            queue[k] = job
        return
    for i in range(first, last):
        job = queue[i]
        value = score_of(jobs, memory, order, parameter, job)
        k = i
        while k > first and (score[k - 1] < value or (score[k - 1] == value and arrival[queue[k - 1]] > arrival[job])):
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
        sort_jobs(jobs, memory, rules.order, rules.order_parameter, memory.queue, memory.score, state[QUEUE_FIRST], state[QUEUE_LAST])
