"""One scheduling pass with a reservation for at most the head of the queue: FCFS and EASY."""

from __future__ import annotations

from walltime.engine.index import build_index, drop_index, index_arrivals, next_candidate, take_out
from walltime.engine.jit import called_kernel, kernel
from walltime.engine.machine import kind_from_head, start_job
from walltime.engine.memory import (
    BACKFILLED,
    BEFORE_SHADOW,
    BY_ARRIVAL,
    EXTRA,
    FREE,
    FREED,
    HEAD_JOB,
    INDEXED,
    NEVER,
    NOW,
    PLANNED,
    QUEUE_FIRST,
    QUEUE_LAST,
    RUNNING,
    SHADOW,
)
from walltime.engine.queue import drop_started, score_of, sort_jobs, sort_queue


@kernel
def pass_with_head_reservation(jobs, rules, memory, result):
    """Start the jobs at the head that fit; then let others jump ahead that do not delay the new head.

    Source: P2 section 2.2 (SPEC A-02, A-03). Returns how many steps it took at most.

    A job that is backfilled by its own length and then expected to run for longer may move the shadow time back (SPEC A-11).
    Extra nodes below zero tell that; then the shadow time is found again, and all candidates get another look.
    """
    state, queue = memory.state, memory.queue
    by_arrival = _by_arrival(rules)
    if by_arrival and state[PLANNED] > state[QUEUE_FIRST] and state[FREED] == 0:
        # Nothing was freed, so the head is still blocked, and so is everyone who was blocked behind it: only the
        # newcomers need a look. An overdue running job would move the shadow time; then everybody is looked at.
        if not rules.backfill:
            return _done(memory, 0)
        if state[SHADOW] > state[NOW]:
            looked_at = _backfill_newcomers(jobs, rules, memory, result)
            if not _shadow_has_moved(rules.predicting, memory):
                return _done(memory, looked_at)

    sort_queue(jobs, rules, memory)
    if by_arrival and rules.backfill:
        _keep_index(jobs, rules, memory, result)
    _start_heads(jobs, memory, result)
    first = state[QUEUE_FIRST]
    waiting = state[QUEUE_LAST] - first
    if waiting == 0 or not rules.backfill:
        return _done(memory, waiting)

    candidates_from = first + 1 if rules.depth > 0 else first
    in_queue_order = rules.backfill_order == rules.order and rules.backfill_parameter == rules.order_parameter
    in_queue_order &= rules.order_threshold == 0.0
    count = 0
    if not in_queue_order:
        candidates = memory.candidates
        for i in range(candidates_from, state[QUEUE_LAST]):
            candidates[count] = queue[i]
            count += 1
        sort_jobs(jobs, memory, rules.backfill_order, rules.backfill_parameter, candidates, memory.candidate_score, 0, count)
        if rules.order_threshold > 0.0:
            _drop_low_scores(jobs, rules, memory, queue[first], count)

    steps = 0
    while True:
        if rules.depth == 0:
            state[SHADOW], state[EXTRA] = NEVER, 0  # nobody is to be delayed
        else:
            _reserve_for_head(jobs, memory, result, queue[first])
        if state[INDEXED]:
            steps += _backfill_by_index(jobs, rules, memory, result, candidates_from)
        elif not in_queue_order:
            steps += _backfill_candidates(jobs, rules, memory, result, count)
        else:
            steps += _backfill(jobs, rules, memory, result, candidates_from, candidates_from)
        if not _shadow_has_moved(rules.predicting, memory):
            break
    if not in_queue_order:
        drop_started(memory, result)
    return _done(memory, steps)


@kernel
def _start_heads(jobs, memory, result):
    """Start jobs from the head of the queue while they fit."""
    state, queue = memory.state, memory.queue
    while state[QUEUE_FIRST] < state[QUEUE_LAST]:
        job = queue[state[QUEUE_FIRST]]
        if job >= 0:
            if jobs.procs[job] > state[FREE]:
                return
            if state[INDEXED]:
                take_out(jobs, memory, state[QUEUE_FIRST])
            start_job(jobs, memory, result, job, kind_from_head(memory, job))
        state[QUEUE_FIRST] += 1


@kernel
def _reserve_for_head(jobs, memory, result, head):
    """Find the shadow time and the extra nodes: when the head will fit, and what it will leave over."""
    state = memory.state
    if state[HEAD_JOB] == head and state[SHADOW] > state[NOW] and state[EXTRA] >= 0:
        _draw_shadow_nearer(jobs, memory, head)
    else:
        _find_shadow(jobs, memory, head)
    if result.promised[head] < 0:
        result.promised[head] = state[SHADOW]


@kernel
def _find_shadow(jobs, memory, head):
    """Walk the running jobs by expected end until the head fits.

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
    state[HEAD_JOB] = head
    state[SHADOW] = shadow
    state[EXTRA] = available - jobs.procs[head]
    state[BEFORE_SHADOW] = i


@kernel
def _draw_shadow_nearer(jobs, memory, head):
    """Bring the shadow time of the same head up to date: backfilled jobs have not moved it, jobs that ended early may have.

    Starts and ends keep the extra nodes and `BEFORE_SHADOW` true (machine.py); extra nodes below zero tell that a job has started
    which the queue order put before this head, or which is expected to run past the shadow time. So it is enough to walk back
    from the shadow time for as long as the head fits without the jobs that end there; mostly that is no step at all.
    """
    state, expected, running = memory.state, memory.running_expected, memory.running_job
    while state[SHADOW] > state[NOW]:
        earlier = state[BEFORE_SHADOW]
        at_shadow = 0
        while earlier > 0 and expected[earlier - 1] == state[SHADOW]:
            earlier -= 1
            at_shadow += jobs.procs[running[earlier]]
        if at_shadow > state[EXTRA]:
            return
        state[SHADOW] = max(state[NOW], expected[earlier - 1])  # the head does not fit now, so somebody runs until then
        state[EXTRA] -= at_shadow
        state[BEFORE_SHADOW] = earlier


@kernel
def _shadow_has_moved(predicting, memory):
    """Whether the head does not fit at the shadow time any more, since a job that has just started is expected to run past it."""
    if predicting is None:
        return False
    return memory.state[EXTRA] < 0


@kernel
def _may_backfill(jobs, rules, memory, job):
    """Whether a job fits now and does not delay the head: it ends by the shadow time, or uses extra nodes only.

    In the second case it will take them when it starts. Nobody may once the shadow time has moved. Source: P2 section 2.2, step 2b.
    """
    state = memory.state
    procs = jobs.procs[job]
    if procs > state[FREE] or _shadow_has_moved(rules.predicting, memory):
        return False
    return jobs.own_length[job] <= state[SHADOW] - state[NOW] or procs <= state[EXTRA]


@kernel
def _backfill(jobs, rules, memory, result, first, kept):
    """Start the candidates from queue place `first` on that may, closing the gaps from place `kept` on; returns how many it saw."""
    state, queue = memory.state, memory.queue
    last = state[QUEUE_LAST]
    for i in range(first, last):
        job = queue[i]
        if _may_backfill(jobs, rules, memory, job):
            start_job(jobs, memory, result, job, BACKFILLED)
        else:
            queue[kept] = job
            kept += 1
    state[QUEUE_LAST] = kept
    return last - first + 1


@called_kernel
def _drop_low_scores(jobs, rules, memory, head, count):
    """Leave a -1 for each candidate whose score is too low for it to start in the place of the blocked head (SPEC A-12)."""
    candidates = memory.candidates
    least = rules.order_threshold * score_of(jobs, memory, rules.order, rules.order_parameter, head)
    for i in range(count):
        if score_of(jobs, memory, rules.order, rules.order_parameter, candidates[i]) < least:
            candidates[i] = -1


@kernel
def _backfill_candidates(jobs, rules, memory, result, count):
    """As `_backfill`, for candidates in an order of their own; those that have started leave a -1."""
    candidates = memory.candidates
    for i in range(count):
        job = candidates[i]
        if job >= 0 and _may_backfill(jobs, rules, memory, job):
            start_job(jobs, memory, result, job, BACKFILLED)
            candidates[i] = -1
    return count + 1


@kernel
def _backfill_newcomers(jobs, rules, memory, result):
    """Look at the jobs that have come since the last pass; returns how many."""
    state = memory.state
    first = state[PLANNED]
    count = _backfill(jobs, rules, memory, result, first, first)
    if state[INDEXED]:
        index_arrivals(jobs, memory, first)
        state[PLANNED] = state[QUEUE_LAST]
    return count


@kernel
def _backfill_by_index(jobs, rules, memory, result, place):
    """Start the candidates from this place on that may, as the index finds them; returns the steps that took."""
    state = memory.state
    steps = (state[QUEUE_LAST] - place) // 64
    place = next_candidate(jobs, memory, place)
    while place < state[QUEUE_LAST]:
        job = memory.queue[place]
        if _may_backfill(jobs, rules, memory, job):
            take_out(jobs, memory, place)
            start_job(jobs, memory, result, job, BACKFILLED)
            steps += 64
        place = next_candidate(jobs, memory, place + 1)
    return steps


@kernel
def _keep_index(jobs, rules, memory, result):
    """Index the queue when it has become long, enter the newcomers, or go without when it has become short."""
    state = memory.state
    places = state[QUEUE_LAST] - state[QUEUE_FIRST]
    if not state[INDEXED]:
        if places > rules.long_queue:
            build_index(jobs, memory, result)
    elif places < rules.short_queue:
        drop_index(memory)
    else:
        index_arrivals(jobs, memory, state[PLANNED])


@kernel
def _by_arrival(rules):
    return rules.order == BY_ARRIVAL and (not rules.backfill or rules.backfill_order == BY_ARRIVAL)


@kernel
def _done(memory, seen):
    memory.state[PLANNED] = memory.state[QUEUE_LAST]
    memory.state[FREED] = 0
    return seen
