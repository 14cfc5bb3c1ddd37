"""The machine: which jobs run, when each is expected to end, and when it really will."""

from __future__ import annotations

from walltime.engine.jit import kernel
from walltime.engine.memory import BACKFILLED, EARLY, EVENTS, FREE, FREED, IMMEDIATE, KEEP, NOW, RESERVED, RUNNING, STARTED
from walltime.engine.profile import occupy


@kernel
def start_job(jobs, memory, result, job, kind):
    """Start a job now: it takes its processors, and its end becomes an event."""
    state = memory.state
    now = state[NOW]
    result.start[job] = now
    result.kind[job] = kind
    state[FREE] -= jobs.procs[job]
    _push_event(memory, now + jobs.runtime[job], state[STARTED], job)
    state[STARTED] += 1

    # Keep the running set sorted by expected end.
    expected, running = memory.running_expected, memory.running_job
    end = now + jobs.believed[job]
    i = state[RUNNING]
    while i > 0 and expected[i - 1] > end:
        expected[i] = expected[i - 1]
        running[i] = running[i - 1]
        i -= 1
    expected[i] = end
    running[i] = job
    state[RUNNING] += 1


@kernel
def kind_from_head(jobs, memory, job):
    """Kind of a start that overtakes nobody."""
    return IMMEDIATE if jobs.submit[job] == memory.state[NOW] else RESERVED


@kernel
def kind_behind(jobs, memory, job, blocked):
    """Kind of a start when this many jobs ahead in the queue are waiting."""
    return BACKFILLED if blocked > 0 else kind_from_head(jobs, memory, job)


@kernel
def end_job(jobs, rules, memory, result, job):
    """Free the processors of a running job; under kept reservations also the rest of its place in the profile."""
    state = memory.state
    now = state[NOW]
    end = result.start[job] + jobs.believed[job]
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
    state[FREE] += jobs.procs[job]
    state[FREED] = 1
    if rules.mode == KEEP and end > now:
        occupy(memory, now, end, -jobs.procs[job])
        state[EARLY] = 1


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
def _before(end_a, ticket_a, end_b, ticket_b):
    return end_a < end_b or (end_a == end_b and ticket_a < ticket_b)


@kernel
def _push_event(memory, end, ticket, job):
    ends, tickets, heap = memory.event_end, memory.event_ticket, memory.event_job
    i = memory.state[EVENTS]
    memory.state[EVENTS] += 1
    while i > 0:
        parent = (i - 1) // 2
        if not _before(end, ticket, ends[parent], tickets[parent]):
            break
        ends[i], tickets[i], heap[i] = ends[parent], tickets[parent], heap[parent]
        i = parent
    ends[i], tickets[i], heap[i] = end, ticket, job


@kernel
def pop_event(memory):
    """Remove the next end from the events and return its job; ends of one instant come in the order of the starts."""
    ends, tickets, heap = memory.event_end, memory.event_ticket, memory.event_job
    first = heap[0]
    memory.state[EVENTS] -= 1
    size = memory.state[EVENTS]
    end, ticket, job = ends[size], tickets[size], heap[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _before(ends[child + 1], tickets[child + 1], ends[child], tickets[child]):
            child += 1
        if not _before(ends[child], tickets[child], end, ticket):
            break
        ends[i], tickets[i], heap[i] = ends[child], tickets[child], heap[child]
        i = child
    ends[i], tickets[i], heap[i] = end, ticket, job
    return first
