"""The machine: which jobs run, when each is expected to end, and when it really will."""

from __future__ import annotations

from walltime.engine.heap import drop_first, push
from walltime.engine.jit import kernel
from walltime.engine.memory import (
    ARRIVALS,
    BACKFILLED,
    BEFORE_SHADOW,
    EARLY,
    EVENTS,
    EXTRA,
    FREE,
    FREED,
    HEAD_JOB,
    IMMEDIATE,
    KEEP,
    NOW,
    RESERVED,
    RUNNING,
    SHADOW,
    STARTED,
)
from walltime.engine.predict import learn
from walltime.engine.queue import submit_later
from walltime.engine.regression import note_start


@kernel
def start_job(jobs, memory, result, job, kind):
    """Start a job now: it takes its processors, and its end becomes an event."""
    state = memory.state
    now = state[NOW]
    result.start[job] = now
    result.kind[job] = kind
    note_start(memory.learning, job, now)
    state[FREE] -= jobs.procs[job]
    if result.log.job.size > 0:
        result.log.job[state[STARTED]] = job
        result.log.arrived[state[STARTED]] = state[ARRIVALS]
        result.log.head[state[STARTED]] = state[HEAD_JOB] if kind == BACKFILLED else -1
    end = now + jobs.runtime[job]
    push(memory.event_end, memory.event_ticket, memory.event_job, state[EVENTS], end, state[STARTED], job)
    state[EVENTS] += 1
    state[STARTED] += 1

    # Keep the running set sorted by expected end.
    expected, running = memory.running_expected, memory.running_job
    expected_end = now + jobs.run_length[job]
    i = state[RUNNING]
    while i > 0 and expected[i - 1] > expected_end:
        expected[i] = expected[i - 1]
        running[i] = running[i - 1]
        i -= 1
    expected[i] = expected_end
    running[i] = job
    state[RUNNING] += 1
    if expected_end <= state[SHADOW]:
        state[BEFORE_SHADOW] += 1
    else:
        state[EXTRA] -= jobs.procs[job]


@kernel
def kind_from_head(memory, job):
    """Kind of a start that overtakes nobody."""
    return IMMEDIATE if memory.submit[job] == memory.state[NOW] else RESERVED


@kernel
def kind_behind(memory, job, blocked):
    """Kind of a start when this many jobs ahead in the queue are waiting."""
    return BACKFILLED if blocked > 0 else kind_from_head(memory, job)


@kernel
def end_job(jobs, rules, memory, result, job):
    """Free the processors of a running job; under kept reservations note that it left its place in the profile early."""
    state = memory.state
    now = state[NOW]
    end = result.start[job] + jobs.run_length[job]
    expected, running = memory.running_expected, memory.running_job

    low, high = 0, state[RUNNING]
    while low < high:
        middle = (low + high) // 2
        if expected[middle] < end:
            low = middle + 1
        else:
            high = middle
    while running[low] != job:
        low += 1
    for i in range(low, state[RUNNING] - 1):
        expected[i] = expected[i + 1]
        running[i] = running[i + 1]
    state[RUNNING] -= 1
    if low < state[BEFORE_SHADOW]:
        state[BEFORE_SHADOW] -= 1
    else:
        state[EXTRA] += jobs.procs[job]
    state[FREE] += jobs.procs[job]
    state[FREED] = 1
    if rules.mode == KEEP and end > now:
        memory.early_job[state[EARLY]] = job
        state[EARLY] += 1


@kernel
def end_expected_now(jobs, rules, memory, result):
    """End the jobs that are expected to end at this instant and do.

    With one pass per event (`sequential`) they count as gone even before their termination is handled.
    """
    state = memory.state
    now = state[NOW]
    i = 0
    while i < state[RUNNING] and memory.running_expected[i] <= now:
        job = memory.running_job[i]
        if memory.running_expected[i] == now and result.start[job] + jobs.runtime[job] == now:
            end_job(jobs, rules, memory, result, job)
        else:
            i += 1


@kernel
def overdue(memory):
    """Whether a running job has passed its expected end."""
    return memory.state[RUNNING] > 0 and memory.running_expected[0] <= memory.state[NOW]


@kernel
def end_next(jobs, rules, memory, result):
    """Handle the next termination: free the processors, unless that is done, and submit whatever waited for this end."""
    state = memory.state
    job = memory.event_job[0]
    drop_first(memory.event_end, memory.event_ticket, memory.event_job, state[EVENTS])
    state[EVENTS] -= 1
    now = state[NOW]
    counted_as_gone = rules.sequential and result.start[job] + jobs.run_length[job] == now
    if not counted_as_gone:
        end_job(jobs, rules, memory, result, job)
    learn(rules.predicting, jobs, rules, memory, job)
    if rules.feedback:
        follower = memory.first_follower[job]
        while follower >= 0:
            submit_later(memory, now + jobs.think[follower], follower)
            follower = memory.next_follower[follower]
