"""One scheduling pass that makes reservations afresh: hybrid backfilling, and conservative from scratch."""

from __future__ import annotations

from walltime.engine.jit import kernel
from walltime.engine.machine import kind_behind, start_job
from walltime.engine.memory import BACKFILLED, BLOCKS, NEVER, NOW, QUEUE_FIRST, QUEUE_LAST, STEPS_IN_BLOCK
from walltime.engine.profile import first_hole, fits_now, occupy, profile_of_running
from walltime.engine.queue import drop_started, sort_jobs, sort_queue


@kernel
def pass_with_fresh_reservations(jobs, rules, memory, result):
    """Give the first `depth` blocked jobs reservations, in queue order, and start every job that these leave room for.

    Source: P1 Fig. 1 (unlimited depth), SPEC L-13. Returns how many steps it took at most.
    """
    state, queue = memory.state, memory.queue
    now = state[NOW]
    sort_queue(jobs, rules, memory)
    profile_of_running(jobs, memory)
    waiting = state[QUEUE_LAST] - state[QUEUE_FIRST]
    blocked = 0
    i = state[QUEUE_FIRST]
    while i < state[QUEUE_LAST] and blocked < rules.depth:
        job = queue[i]
        anchor = first_hole(memory, jobs.own_length[job], jobs.procs[job], NEVER, NEVER)
        occupy(memory, anchor, anchor + jobs.own_length[job], jobs.procs[job])
        if result.promised[job] < 0:
            result.promised[job] = anchor
        if anchor == now:
            start_job(jobs, memory, result, job, kind_behind(memory, job, blocked))
        else:
            blocked += 1
        i += 1

    same_order = rules.backfill_order == rules.order and rules.backfill_parameter == rules.order_parameter
    candidates = queue
    first, last = i, state[QUEUE_LAST]
    if not same_order:
        candidates = memory.candidates
        for k in range(first, last):
            candidates[k - first] = queue[k]
        first, last = 0, last - first
        sort_jobs(jobs, memory, rules.backfill_order, rules.backfill_parameter, candidates, memory.candidate_score, first, last)
    for k in range(first, last):
        job = candidates[k]
        if fits_now(memory, jobs.own_length[job], jobs.procs[job]):
            occupy(memory, now, now + jobs.own_length[job], jobs.procs[job])
            start_job(jobs, memory, result, job, BACKFILLED)
    drop_started(memory, result)
    return waiting * state[BLOCKS] * STEPS_IN_BLOCK
