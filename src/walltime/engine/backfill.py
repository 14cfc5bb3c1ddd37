"""One scheduling pass with a reservation for at most the head of the queue: FCFS and EASY."""

from __future__ import annotations

from walltime.engine.jit import kernel
from walltime.engine.machine import kind_from_head, start_job
from walltime.engine.memory import (
    BACKFILLED,
    BY_ARRIVAL,
    EXTRA,
    FREE,
    FREED,
    NEVER,
    NOW,
    PLANNED,
    QUEUE_FIRST,
    QUEUE_LAST,
    RUNNING,
    SHADOW,
)
from walltime.engine.queue import drop_started, sort_jobs, sort_queue


@kernel
def pass_with_head_reservation(jobs, rules, memory, result):
    """Start the jobs at the head that fit; then let others jump ahead that do not delay the new head.

    Source: P2 section 2.2 (SPEC A-02, A-03). Returns how many steps it took at most.
    """
    state, queue = memory.state, memory.queue
    if state[PLANNED] > state[QUEUE_FIRST] and state[FREED] == 0 and _same_order(rules):
        if not rules.backfill:
            return _done(memory, 0)
        # Nothing was freed, so the head is still blocked, and so is everyone who was blocked behind it: only the
        # newcomers need a look. An overdue running job would move the shadow time; then everybody is looked at.
        if state[SHADOW] > state[NOW]:
            return _done(memory, _backfill(jobs, memory, result, queue, state[PLANNED], state[QUEUE_LAST], state[PLANNED]))

    sort_queue(jobs, rules, memory)
    first = state[QUEUE_FIRST]
    while first < state[QUEUE_LAST] and jobs.procs[queue[first]] <= state[FREE]:
        start_job(jobs, memory, result, queue[first], kind_from_head(memory, queue[first]))
        first += 1
    state[QUEUE_FIRST] = first
    waiting = state[QUEUE_LAST] - first
    if waiting == 0 or not rules.backfill:
        return _done(memory, waiting)

    candidates_from = first
    if rules.depth == 0:
        state[SHADOW], state[EXTRA] = NEVER, 0
    else:
        _reserve_for_head(jobs, memory, result, queue[first])
        candidates_from += 1

    if rules.backfill_order == rules.order and rules.backfill_parameter == rules.order_parameter:
        _backfill(jobs, memory, result, queue, candidates_from, state[QUEUE_LAST], candidates_from)
        return _done(memory, waiting)

    candidates, count = memory.candidates, 0
    for i in range(candidates_from, state[QUEUE_LAST]):
        candidates[count] = queue[i]
        count += 1
    sort_jobs(jobs, memory, rules.backfill_order, rules.backfill_parameter, candidates, memory.candidate_score, 0, count)
    for i in range(count):
        if _may_backfill(jobs, memory, candidates[i]):
            start_job(jobs, memory, result, candidates[i], BACKFILLED)
    drop_started(memory, result)
    return _done(memory, waiting)


@kernel
def _reserve_for_head(jobs, memory, result, head):
    """Find the shadow time and the extra nodes: when the head will fit, and what it will leave over.

    All running jobs whose expected end is the shadow time count, not only the first that suffice (SPEC Q-06). An overdue
    job is expected to end now (SPEC Q-05).
    """
    state, expected, running = memory.state, memory.running_expected, memory.running_job
    available = state[FREE]
    shadow = state[NOW]
    i = 0
    while available < jobs.procs[head] or (i < state[RUNNING] and expected[i] <= shadow):
        available += jobs.procs[running[i]]
        shadow = max(shadow, expected[i])
        i += 1
    state[SHADOW] = shadow
    state[EXTRA] = available - jobs.procs[head]
    if result.promised[head] < 0:
        result.promised[head] = shadow


@kernel
def _may_backfill(jobs, memory, job):
    """Whether a job fits now and does not delay the head: it ends by the shadow time, or uses extra nodes only.

    In the second case it takes them. Source: P2 section 2.2, step 2b.
    """
    state = memory.state
    procs = jobs.procs[job]
    if procs > state[FREE]:
        return False
    if jobs.believed[job] <= state[SHADOW] - state[NOW]:
        return True
    if procs <= state[EXTRA]:
        state[EXTRA] -= procs
        return True
    return False


@kernel
def _backfill(jobs, memory, result, queue, first, last, kept):
    """Start the candidates in queue[first:last] that may, closing the gaps from place `kept` on; returns places seen."""
    for i in range(first, last):
        job = queue[i]
        if _may_backfill(jobs, memory, job):
            start_job(jobs, memory, result, job, BACKFILLED)
        else:
            queue[kept] = job
            kept += 1
    memory.state[QUEUE_LAST] = kept
    return last - first


@kernel
def _same_order(rules):
    return rules.order == BY_ARRIVAL and (not rules.backfill or rules.backfill_order == BY_ARRIVAL)


@kernel
def _done(memory, seen):
    memory.state[PLANNED] = memory.state[QUEUE_LAST]
    memory.state[FREED] = 0
    return seen
