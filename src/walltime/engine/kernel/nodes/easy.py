"""The event loop for FCFS and EASY on single nodes, with memory, a second resource, sets of nodes for jobs, partitions, outages and limits.

The rules, which reference/first_fit.py and reference/pools.py state in plain Python:

* A job gets the first nodes of its partition's list that it can use. From each it takes as much as it still needs, minus the minimum that
  the remaining nodes of its request must provide. It keeps them until it ends.
* Jobs are considered in the order of their partition's tier, then the queue's order, then arrival. A job over one of its limits is passed
  over. A job that fits now starts; it cannot use nodes of a known outage that begins before its planned end.
* A job that cannot start is blocked. Without backfilling, it closes the nodes of its partition to the jobs behind it.
* With backfilling, it is a head, and gets a reservation, if no other head's partition shares nodes with its own. The shadow time is the
  first planned end at which it fits. A job behind heads starts if each head that it outlasts still fits next to it at that head's shadow
  time.
* A running job that is overdue is expected to end in a second.

A request that fails in a pass is noted by its form (`FAILED`), because no larger request of the same form can succeed later in the pass.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.compiled.records import record_dtype
from walltime.engine.kernel.bits import add_in_planes, ones, words_of
from walltime.engine.kernel.heap import pop, pop_candidate, push, push_candidate
from walltime.engine.kernel.memory import BACKFILLED, DONE, IMMEDIATE, NEVER, PAUSED, RANKED, REACHED, RESERVED, STUCK, record, records
from walltime.engine.kernel.nodes.choice import choose_of, row_at, shortfall_of
from walltime.engine.kernel.nodes.events import change_outages, next_event, submit_followers
from walltime.engine.kernel.nodes.memory import new_slurm_memory
from walltime.engine.kernel.nodes.plan import FIRST, least_needed, next_release
from walltime.engine.kernel.nodes.records import (
    CLOSED,
    FIRST_FIT,
    RANGE,
    SLURM_JOB,
    SLURM_RULES,
    SLURM_STATE,
    BackfillPlan,
    NodeMachine,
    Traffic,
    Use,
)
from walltime.engine.kernel.nodes.use import end_use, is_any_overdue, move_overdue, start_use
from walltime.engine.kernel.pools.limits import full_limit, use_limits
from walltime.engine.kernel.pools.memory import Lists, list_of
from walltime.engine.kernel.pools.queue_index import before
from walltime.engine.kernel.queue import backfill_rank, order_rank
from walltime.engine.machines import Nodes, Shares

Array = np.ndarray
Records = Any

# Its own fields come first: Numba treats a record that begins like another as a subtype, with a warning.
EASY_JOB = record_dtype(" ".join(["held held_count held_from order_length form", *(SLURM_JOB.names or ())]), "merit")
"""A job, with the fields of records.SLURM_JOB; those for Slurm alone are unused.

* `form`: the number of its request's form
* for planned.py: `held_from`: the start of the job's kept reservation, s, -1 without one; `held`, `held_count`: the ranges of its nodes"""

EASY_RULES = record_dtype(
    "keeps order order_parameter order_starvation order_limit order_reads_time own_backfill_order backfill_order backfill_parameter "
    + " ".join(["backfill_starvation backfill_limit", *(SLURM_RULES.names or ())])
)
"""The parameters of a policy; the fields not listed here are Slurm's, and 0.

* `backfill`: whether jobs are backfilled; `depth`: number of reservations; `keeps`: whether reservations are kept from pass to pass
* the orders, as in memory.RULES"""

_PLANNED = "early late void level_count levels_needed half held held_needed"
EASY_STATE = record_dtype(" ".join([_PLANNED, "arranged heads candidates passes versions kept_out", *(SLURM_STATE.names or ())]))
"""The state of a simulation, with the fields of records.SLURM_STATE.

* `arranged`: number of jobs that are sorted in the queue; `heads`, `candidates`: numbers of entries in use
* `passes`: number of passes so far; `versions`: number of passes and starts so far
* `kept_out`: whether some job could start if no head had a reservation

For planned.py:

* `early`: whether a job has ended early; `late`: whether one is overdue; `void`: whether all reservations must be made again
* `level_count`, `held`: numbers of entries in use in the levels, and in the current `half` of `Plan.held`
* `levels_needed`, `held_needed`: numbers of entries that a pass may need"""

HEAD = record_dtype("job begin")
"""A job with a reservation, and its shadow time."""

FAILED = record_dtype("stamp nodes asked total length begin")
"""A request for these amounts that failed; requests for less may still succeed.

* `stamp`: the number of the pass or, next to the heads, the number of passes and starts, in which the request failed
* `begin`: in planned.py, the time before which the request does not fit, s"""


class Line(NamedTuple):
    """The queue's ranks, the heads, and the failed requests.

    * `ranks`: by place in the queue; `heads`: the jobs with a reservation; `candidates`: a heap of the jobs that may be backfilled
    * `failed`: two records for each form of requests: failures in general, and failures next to the heads
    * `saved`, `beside`: scratch memory for chosen nodes, and for free amounts of each node
    """

    ranks: Array
    heads: Records
    candidates: Records
    failed: Records
    saved: Records
    beside: Array


class EasyMemory(NamedTuple):
    """All data of one simulation."""

    state: Records
    rules: Records
    jobs: Records
    site: NodeMachine
    use: Use
    plan: BackfillPlan
    traffic: Traffic
    line: Line


def new_easy_memory(rules: Records, jobs: Records, machine: Nodes, limits: Records, limits_of: Lists, followers: Lists) -> EasyMemory:
    """Return memory before the first event."""
    no_shares = Shares(np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros(1, np.int64))
    in_order = machine._replace(least_loaded=[FIRST_FIT] * len(machine.partitions))
    memory = new_slurm_memory(record(SLURM_RULES), jobs, in_order, limits, limits_of, followers, no_shares, 0)
    state = record(EASY_STATE, **{name: memory.state[name] for name in SLURM_STATE.names or ()})
    forms = int(jobs.form.max(initial=0)) + 1
    line = Line(
        ranks=np.zeros(len(jobs)),
        heads=records(HEAD, len(machine.partitions)),
        candidates=records(RANKED, len(jobs)),
        failed=records(FAILED, 2 * forms),
        saved=np.zeros(len(machine.procs), RANGE).view(np.recarray),
        beside=np.zeros(memory.use.free.shape[1:], np.int64),
    )
    return EasyMemory(state, rules, jobs, memory.site, memory.use, memory.plan, memory.traffic, line)


def run_easy(state, rules, jobs, site, use, plan, traffic, line, budget):
    """Simulate until all jobs have started and ended, or until about `budget` steps have been taken; return the codes of `run_slurm`."""
    if not state.begun:
        place_first(state, jobs, site, use, plan, traffic)
        state.begun = state.gone = 1
    if state.no_room > 0:
        return STUCK
    while budget > 0 and (state.awaited == 0 or jobs[state.awaited - 1].start < 0):
        if not state.between:
            now = next_event(state, traffic)
            if now == NEVER and state.started == len(jobs):
                return DONE
            if now > state.until:
                return REACHED
            if now == NEVER:
                return STUCK
            state.now = now
            _process_events(state, jobs, site, use, traffic)
            state.between = 1
        if state.spare_rows < state.waiting or len(use.ranges) - state.ranges < state.most_ranges:
            return PAUSED
        state.between = 0
        budget -= 1 + state.waiting
        if state.waiting > 0:
            if is_any_overdue(state, use):
                move_overdue(state, rules, jobs, site, use)
                state.gone = 1
            _pass(state, rules, jobs, site, use, plan, traffic, line)
    return PAUSED


@kernel
def _process_events(state, jobs, site, use, traffic):
    """Process all events of this instant before the pass: terminations, outages, arrivals."""
    while state.events > 0 and traffic.ends[0].rank == state.now:
        end_next(state, jobs, site, use, traffic)
        state.gone = 1
    if change_outages(state, site, traffic)[0] > 0:
        state.gone = 1
    take_arrivals(state, jobs, traffic)


@kernel
def take_arrivals(state, jobs, traffic):
    """Put all jobs that arrive now at the end of the queue, without a reservation."""
    while state.arriving > 0 and traffic.arrivals[0].rank == state.now:
        index = pop(traffic.arrivals, state.arriving)
        state.arriving -= 1
        jobs[index].arrival = state.arrivals
        jobs[index].held_from = -1
        state.arrivals += 1
        traffic.queue[state.waiting] = index
        state.waiting += 1


@kernel
def end_next(state, jobs, site, use, traffic):
    """Handle the next termination: release the nodes of the job, and submit the jobs that wait for no other job."""
    index = pop(traffic.ends, state.events)
    state.events -= 1
    end_use(state, jobs[index], index, site, use)
    use_limits(jobs, traffic.limits, traffic.limits_of, index, -1)
    submit_followers(state, jobs, traffic, index)


@called_kernel
def place_first(state, jobs, site, use, plan, traffic):
    """Give the initially running jobs their nodes, in order of their starts."""
    for k in range(state.at_first):
        index = traffic.at_first[k]
        job = jobs[index]
        if shortfall_of(state, job, site, use.free[0], plan, state.now, job.planned, 1) > 0:
            state.no_room = index + 1
            return
        choose_of(state, job, site, use.free[0], plan.choice)
        _run(state, jobs, site, use, plan, traffic, index)


@called_kernel
def _run(state, jobs, site, use, plan, traffic, index):
    """Run a job, from its start on, on the nodes that have been chosen for it."""
    job = jobs[index]
    start_use(state, job, index, site, use, plan, job.start + length_of(job))
    use_limits(jobs, traffic.limits, traffic.limits_of, index, 1)
    push(traffic.ends, state.events, job.start + job.runtime, state.started, index)
    state.events += 1
    state.started += 1


@kernel
def length_of(job):
    """Return a job's planned length, s."""
    return max(job.planned, 1)


@called_kernel
def _pass(state, rules, jobs, site, use, plan, traffic, line):
    """Consider the waiting jobs in order, then, if backfilling has its own order, the candidates in that order.

    Only the newcomers are considered if nothing but arrivals has happened, they are last in the queue, and the last pass started no job
    that counts towards a limit. A job that only a head keeps from starting is considered again after each start, because the start may take
    the first nodes that the job would have got.
    """
    queue, parts, at_once, first = traffic.queue, site.partitions, rules.own_backfill_order == 0, state.arranged
    if arrange(state, rules, jobs, queue, line.ranks) < first or state.gone or (state.kept_out and not at_once):
        first = _begin_pass(state, site)
    for i in range(first, state.waiting):
        index = queue[i]
        part = parts[jobs[index].partition]
        if (part.tried and not rules.backfill) or full_limit(jobs, traffic.limits, traffic.limits_of, index) >= 0:
            continue
        reserves, is_behind = rules.depth > 0 and not part.reserved, part.closed
        if rules.backfill and is_behind and not (reserves or at_once):
            if _may_fit(state, jobs[index], site, use, line):
                push_candidate(state, line.candidates, backfill_rank(rules, state.now, jobs, index), jobs[index].arrival, index)
        elif _fits(state, jobs, site, use, plan, line, index):
            start(state, jobs, site, use, plan, traffic, index, is_behind)
            continue
        elif reserves:
            _reserve(state, jobs, site, use, plan, line, index)
        _block(state, rules, site, jobs[index].partition, reserves)
    while state.candidates > 0:
        index = pop_candidate(state, line.candidates)
        if full_limit(jobs, traffic.limits, traffic.limits_of, index) < 0 and _fits(state, jobs, site, use, plan, line, index):
            start(state, jobs, site, use, plan, traffic, index, 1)
    leave_queue(state, jobs, queue, line.ranks, first)


@kernel
def leave_queue(state, jobs, queue, ranks, first):
    """Remove the jobs that have started from the queue, from this place on."""
    left = first
    for i in range(first, state.waiting):
        if jobs[queue[i]].start < 0:
            queue[left], ranks[left] = queue[i], ranks[i]
            left += 1
    state.waiting = state.arranged = left


@kernel
def _begin_pass(state, site):
    """Begin a pass over all waiting jobs; return its first place."""
    state.passes += 1
    state.versions += 1
    state.heads = state.gone = state.closed = state.kept_out = FIRST
    site.sets[CLOSED] = 0
    for p in range(len(site.partitions)):
        site.partitions[p].closed = site.partitions[p].tried = site.partitions[p].reserved = 0
    return FIRST


@called_kernel
def arrange(state, rules, jobs, queue, ranks):
    """Sort the queue by tier, rank and arrival, with insertion sort: only the newcomers if ranks do not change with time.

    Returns the first place that has changed.
    """
    is_steady, lowest = not rules.order_reads_time and rules.order_starvation == NEVER, state.waiting
    for i in range(state.arranged if is_steady else FIRST, state.waiting):
        index, k = queue[i], i
        job, own = jobs[index], order_rank(rules, state.now, jobs, index)
        while k > 0 and before(job.tier, own, job.arrival, jobs[queue[k - 1]].tier, ranks[k - 1], jobs[queue[k - 1]].arrival):
            queue[k], ranks[k] = queue[k - 1], ranks[k - 1]
            k -= 1
        queue[k], ranks[k] = index, own
        lowest = min(lowest, k)
    return lowest if is_steady else FIRST - 1


@kernel
def _may_fit(state, job, site, use, line):
    """Return whether enough processors are free for a job, and no smaller request of its form has failed."""
    if use.totals[0, site.partitions[job.partition].kind] < least_needed(job, site.members[job.members]):
        return False
    return not has_failed(line.failed[2 * job.form], state.passes, job)


@kernel
def has_failed(failed, stamp, job):
    """Return whether a request of the job's form that needs no more than the job has failed."""
    is_less = failed.nodes <= job.nodes and failed.asked <= job.asked and failed.total <= job.total
    return failed.stamp == stamp and is_less and failed.length <= length_of(job)


@kernel
def note_failed(failed, stamp, job):
    """Note that the request of a job has failed."""
    failed.stamp, failed.nodes, failed.asked, failed.total, failed.length = stamp, job.nodes, job.asked, job.total, length_of(job)


@kernel
def _gets_the_same(failed, job, has_outages):
    """Return whether a job would get the same nodes as a failed request of its form.

    A longer job cannot use nodes that an outage takes.
    """
    if has_outages and failed.length != length_of(job):
        return False
    return failed.nodes == job.nodes and failed.asked == job.asked and failed.total == job.total


@called_kernel
def _fits(state, jobs, site, use, plan, line, index):
    """Choose nodes on which a job may start now; return whether there are enough."""
    job = jobs[index]
    if not _may_fit(state, job, site, use, line):
        return False
    beside = line.failed[2 * job.form + 1]
    if has_failed(beside, state.versions, job) and _gets_the_same(beside, job, len(site.outages) > 0):
        return False
    if shortfall_of(state, job, site, use.free[0], plan, state.now, length_of(job), 1) > 0:
        note_failed(line.failed[2 * job.form], state.passes, job)
        return False
    choose_of(state, job, site, use.free[0], plan.choice)
    for k in range(state.heads):
        if state.now + length_of(job) > line.heads[k].begin and not _leaves_room(state, jobs, site, use, plan, line, line.heads[k]):
            note_failed(beside, state.versions, job)
            state.kept_out = 1
            return False
    return True


@called_kernel
def _leaves_room(state, jobs, site, use, plan, line, head):
    """Return whether a head still fits at its shadow time if a job runs on the nodes that have been chosen for that job."""
    job, row, chosen, count, beside = jobs[head.job], row_at(state, use.running, head.begin), plan.choice.chosen, state.chosen, line.beside
    for k in range(beside.shape[0]):
        for w in range(beside.shape[1]):
            beside[k, w] = use.free[row, k, w]
    for r in range(count):
        line.saved[r] = chosen[r]
        own = line.saved[r]
        for w in words_of(own.node, own.node + own.count):
            bits = ones(w, own.node, own.node + own.count)
            add_in_planes(beside, 0, state.procs_planes, w, bits, own.procs, -1)
            add_in_planes(beside, state.procs_planes, state.second_end, w, bits, own.second, -1)
            add_in_planes(beside, state.second_end, state.planes, w, bits, own.memory, -1)
    lack = shortfall_of(state, job, site, beside, plan, head.begin, length_of(job), 1)
    for r in range(count):  # the search may have chosen nodes for the head
        chosen[r] = line.saved[r]
    state.chosen = count
    return lack == 0


@called_kernel
def _reserve(state, jobs, site, use, plan, line, index):
    """Give a job the reservation of a head: the first planned end at which it fits, if there is one."""
    job, time, head = jobs[index], state.now, line.heads[state.heads]
    kind, need = site.partitions[job.partition].kind, least_needed(job, site.members[job.members])
    while True:
        time = next_release(state, site, use, plan, job, time)
        if time == NEVER:
            return
        row = row_at(state, use.running, time)
        if use.totals[row, kind] >= need and shortfall_of(state, job, site, use.free[row], plan, time, length_of(job), 1) == 0:
            break
    head.job, head.begin = index, time
    state.heads += 1
    if job.reserved_start < 0:
        job.reserved_start = time


@called_kernel
def _block(state, rules, site, partition, reserves):
    """Close a job's partition, and all partitions that share nodes with it, to the jobs behind."""
    parts, sets, row = site.partitions, site.sets, site.members[partition].row
    if parts[partition].tried and not reserves:
        return
    parts[partition].tried = 1
    for p in range(len(parts)):
        shares_nodes = False
        for w in range(sets.shape[1]):
            shares_nodes |= (sets[row, w] & sets[site.members[p].row, w]) != 0
        if shares_nodes:
            parts[p].closed = 1
            parts[p].reserved |= 1 if reserves else 0
    if not rules.backfill:
        state.closed = 1
        for w in range(sets.shape[1]):
            sets[CLOSED, w] |= sets[row, w]


@called_kernel
def start(state, jobs, site, use, plan, traffic, index, is_behind):
    """Start a job on the nodes that have been chosen for it; it counts as backfilled if it `is_behind` a waiting job."""
    job = jobs[index]
    job.start = state.now
    job.kind = BACKFILLED if is_behind else IMMEDIATE if job.submit == state.now else RESERVED
    _run(state, jobs, site, use, plan, traffic, index)
    state.versions += 1
    if state.kept_out or len(list_of(traffic.limits_of, index)) > 0:  # jobs ahead may now get other nodes, or exceed a limit
        state.gone = 1
