"""The machine and its events: the running jobs, their expected and real ends, and the arrivals."""

from walltime.compiled.jit import kernel
from walltime.engine.kernel.arrivals import next_arrival, take_arrival
from walltime.engine.kernel.heap import pop, push
from walltime.engine.kernel.memory import BACKFILLED, IMMEDIATE, KEEP, RESERVED
from walltime.engine.kernel.predictions import note_end
from walltime.engine.kernel.running import leave_running, run_job

SHORTEST = 10
"""Shortest runtime in the bounded slowdown, s; shorter jobs count as running this long."""


@kernel
def start_job(state, rules, jobs, machine, job):
    """Start a job now: it takes its processors, and its end becomes an event. It counts as backfilled if a job ahead of it is blocked."""
    own, now = jobs[job], state.now
    own.start = now
    own.kind = BACKFILLED if state.blocked >= 0 else IMMEDIATE if own.submit == now else RESERVED
    state.free -= own.procs
    if machine.notes.size > 0:
        note = machine.notes[state.started]
        note.job = job
        note.arrived = state.arrivals
        note.head = state.head if state.blocked >= 0 else -1
    if run_job(state, rules, jobs, machine, job) <= state.shadow:
        state.before_shadow += 1
    else:
        state.extra -= own.procs


@kernel
def start_behind(state, rules, jobs, machine, queue, job):
    """Start a job now; it counts as backfilled if a job ahead of it in the queue, which begins at `state.queue_first`, waits."""
    first = state.queue_first
    while jobs[queue[first].job].start >= 0:
        first += 1
    state.blocked = -1 if queue[first].job == job else queue[first].job
    start_job(state, rules, jobs, machine, job)


@kernel
def end_job(state, rules, jobs, machine, job):
    """Free the processors of a running job; with kept reservations, note whether it ended early."""
    own = jobs[job]
    end = own.start + own.run_length
    place = leave_running(machine.running, state.running, end, job)
    state.running -= 1
    if place < state.before_shadow:
        state.before_shadow -= 1
    else:
        state.extra += own.procs
    state.free += own.procs
    state.freed = 1
    if rules.mode == KEEP and end > state.now:
        machine.early[state.early] = job
        state.early += 1


@kernel
def end_expected_now(state, rules, jobs, machine):
    """End the jobs whose expected and real ends are this instant; with `sequential`, they end even before their termination is handled."""
    i, running = 0, machine.running
    while i < state.running and running[i].expected <= state.now:
        job = running[i].job
        if running[i].expected == state.now and jobs[job].start + jobs[job].runtime == state.now:
            end_job(state, rules, jobs, machine, job)
        else:
            i += 1


@kernel
def end_next(state, rules, jobs, machine):
    """Handle the next termination: free the processors, unless already done, and submit the jobs that waited for this end."""
    job, now, waits = pop(machine.events, state.events), state.now, machine.waits
    state.events -= 1
    counted_as_gone = rules.sequential and jobs[job].start + jobs[job].run_length == now
    if not counted_as_gone:
        end_job(state, rules, jobs, machine, job)
    note_end(rules, jobs, machine.predicting, job, now)
    if rules.adapts:
        ran = max(jobs[job].runtime, SHORTEST)
        state.ended += 1
        state.slowdowns += 1000 * max(now - jobs[job].submit, ran) // ran
    if waits.size > 0:
        follower = waits[job].first_follower
        while follower >= 0:
            time = now + waits[follower].think
            jobs[follower].submit = time
            push(machine.later, state.later, time, follower, follower)
            state.later += 1
            state.next_arrival = min(state.next_arrival, time)
            follower = waits[follower].next_follower


@kernel
def enter_queue(state, jobs, machine, queue):
    """Put the next arrival into the queue."""
    job, entry = take_arrival(state, jobs, machine, state.next_arrival), queue[state.queue_last]
    state.next_arrival = next_arrival(state, jobs, machine)
    entry.job, entry.procs, entry.length = job, jobs[job].procs, jobs[job].own_length
    state.queue_last += 1
