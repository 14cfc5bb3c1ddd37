"""The machine and its events: the running jobs, their expected and real ends, and the arrivals."""

from __future__ import annotations

from walltime.engine.kernel.callbacks import call_notice
from walltime.engine.kernel.heap import drop_first, push
from walltime.engine.kernel.jit import kernel
from walltime.engine.kernel.memory import BACKFILLED, IMMEDIATE, NEVER, RESERVED
from walltime.engine.kernel.predictions import observe

SHORTEST = 10
"""Jobs count as running for at least 10 s in the bounded slowdown."""


@kernel
def start_job(state, rules, jobs, running, events, notes, predicting, job):
    """Start a job now: it takes its processors, and its end becomes an event. It is backfilled if a job ahead of it is blocked."""
    own = jobs[job]
    now = state.now
    own.start = now
    if state.blocked >= 0:
        own.kind = BACKFILLED
    else:
        own.kind = IMMEDIATE if own.submit == now else RESERVED
    state.free -= own.procs
    if predicting is not None:
        if rules.started:
            call_notice(rules.started, predicting.learning, job, now)
    if notes.size > 0:
        note = notes[state.started]
        note.job = job
        note.arrived = state.arrivals
        note.head = state.head if state.blocked >= 0 else -1
    push(events, state.events, now + own.runtime, state.started, job)
    state.events += 1
    state.started += 1

    # Keep the running set sorted by expected end.
    expected = now + own.run_length
    i = state.running
    while i > 0 and running[i - 1].expected > expected:
        running[i] = running[i - 1]
        i -= 1
    running[i].expected, running[i].job, running[i].procs = expected, job, own.procs
    state.running += 1
    if expected <= state.shadow:
        state.before_shadow += 1
    else:
        state.extra -= own.procs


@kernel
def overdue(state, running):
    """Whether a running job has passed its expected end."""
    return state.running > 0 and running[0].expected <= state.now


@kernel
def end_job(state, jobs, running, kept, job):
    """Free the processors of a running job; with kept reservations, record if it ended early."""
    own = jobs[job]
    end = own.start + own.run_length
    low, high = 0, state.running
    while low < high:
        middle = (low + high) // 2
        if running[middle].expected < end:
            low = middle + 1
        else:
            high = middle
    while running[low].job != job:
        low += 1
    for i in range(low, state.running - 1):
        running[i] = running[i + 1]
    state.running -= 1
    if low < state.before_shadow:
        state.before_shadow -= 1
    else:
        state.extra += own.procs
    state.free += own.procs
    state.freed = 1
    if kept is not None:
        if end > state.now:
            kept.early_job[state.early] = job
            state.early += 1


@kernel
def end_expected_now(state, jobs, running, kept):
    """End the jobs that are expected to end at this instant and do.

    With one pass per event (`sequential`) they count as ended even before their termination is handled.
    """
    i = 0
    while i < state.running and running[i].expected <= state.now:
        job = running[i].job
        if running[i].expected == state.now and jobs[job].start + jobs[job].runtime == state.now:
            end_job(state, jobs, running, kept, job)
        else:
            i += 1


@kernel
def end_next(state, rules, jobs, running, events, later, waits, kept, predicting):
    """Handle the next termination: free the processors, unless already done, and submit the jobs that waited for this end."""
    job = events[0].job
    now = state.now
    drop_first(events, state.events)
    state.events -= 1
    counted_as_gone = rules.sequential and jobs[job].start + jobs[job].run_length == now
    if not counted_as_gone:
        end_job(state, jobs, running, kept, job)
    if predicting is not None:
        if rules.observe:
            observe(rules.observe, predicting.learning, job, jobs[job].runtime, now)
    if rules.adapts:
        ran = max(jobs[job].runtime, SHORTEST)
        state.ended += 1
        state.slowdowns += 1000 * max(now - jobs[job].submit, ran) // ran
    if waits.size > 0:
        follower = waits[job].first_follower
        while follower >= 0:
            time = now + waits[follower].think
            jobs[follower].submit = time
            push(later, state.later, time, follower, follower)
            state.later += 1
            state.next_arrival = min(state.next_arrival, time)
            follower = waits[follower].next_follower


@kernel
def take_arrival(state, jobs, later, waits, queue):
    """Put the next arrival into the queue; simultaneous arrivals come in the order of the jobs."""
    job, following = state.next_job, state.next_job
    planned = job < jobs.size and jobs[job].submit == state.next_arrival
    if state.later > 0 and later[0].rank == state.next_arrival and not (planned and job < later[0].job):
        job = later[0].job
        drop_first(later, state.later)
        state.later -= 1
    else:
        following += 1
        while following < waits.size and waits[following].after >= 0:
            following += 1  # it comes when the job before it has ended
        state.next_job = following
    state.next_arrival = jobs[following].submit if following < jobs.size else NEVER
    if state.later > 0:
        state.next_arrival = min(state.next_arrival, later[0].rank)

    entry = queue[state.queue_last]
    entry.job, entry.procs, entry.length = job, jobs[job].procs, jobs[job].own_length
    state.queue_last += 1
    jobs[job].arrival = state.arrivals
    state.arrivals += 1
