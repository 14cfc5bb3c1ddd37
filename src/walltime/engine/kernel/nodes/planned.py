"""The event loop for policies that reserve nodes for several waiting jobs: conservative backfilling, and hybrids of several reservations.

The rules, which reference/first_fit.py and reference/pools.py implement in plain Python. Jobs, nodes and limits are as in easy.py, and:

* A *reservation* is a time and nodes. It begins at the earliest time from which enough nodes stay free, for the job's planned length, of
  running jobs and of other jobs' reservations. The job takes the first of these nodes.
* If reservations are made again in each pass, jobs get them in queue order, and jobs whose reservation begins now start. If `depth` jobs
  already have a reservation on a job's pools, the job gets none: it starts only if it can start now.
* If reservations are kept, each job gets one on arrival. When a job ends early, reservations move to earlier times where possible, in queue
  order. When an outage becomes known or a job is overdue, all reservations are made again. A job over a limit has none.
  A reservation can move only into capacity that has become free on its partition's pools since the last pass of moves. For each pool,
  `levels.pools` has the latest end of such capacity. Moves free capacity too: for jobs behind in the queue now, for all at the next pass.
  Jobs with a maximum number of nodes, or a minimum of usable processors on each, are always tried: their nodes may also change because
  others take what they do not hold.

The plan is the free amounts of each node over time: a list of *levels*, each valid from its time to the next one's. It is kept from pass to
pass as long as nothing becomes free. As long as reservations are only added, the earliest time found for a request is a lower bound for
larger requests of the same form.
"""

from __future__ import annotations

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.bits import add_in_planes, count_between, ones, take_less, total_of, words_of
from walltime.engine.kernel.memory import DONE, NEVER, PAUSED, REACHED, STUCK
from walltime.engine.kernel.nodes.amounts import units_of
from walltime.engine.kernel.nodes.choice import choose_of, shortfall_of
from walltime.engine.kernel.nodes.easy import (
    arrange,
    end_next,
    has_failed,
    leave_queue,
    length_of,
    note_failed,
    place_first,
    start,
    take_arrivals,
)
from walltime.engine.kernel.nodes.events import change_outages, next_event
from walltime.engine.kernel.nodes.plan import FIRST, least_needed
from walltime.engine.kernel.nodes.records import CAPACITY
from walltime.engine.kernel.nodes.use import is_any_overdue, move_overdue
from walltime.engine.kernel.pools.limits import full_limit
from walltime.engine.kernel.pools.memory import list_of
from walltime.engine.kernel.pools.passes import share_a_pool
from walltime.engine.kernel.search import first_from

TAKE, RELEASE = np.int64(1), np.int64(-1)
"""Signs of amounts that a reservation takes out of the plan, or releases to it."""
FREED, FREED_BY_MOVES = np.int64(0), np.int64(1)
"""Columns of `levels.pools` if reservations are kept: the latest end of what has become free since the last moves, and by these moves."""


def run_planned(state, rules, jobs, site, use, plan, traffic, line, levels, budget):
    """Simulate until all jobs have started and ended, or until about `budget` steps have been taken; return the codes of `run_slurm`."""
    if not state.begun:
        place_first(state, jobs, site, use, plan, traffic)
        state.begun = state.gone = 1
    if state.no_room > 0:
        return STUCK
    while budget > 0 and (state.awaited == 0 or jobs[state.awaited - 1].start < 0):
        if not state.between:
            now = _next_time(state, rules, jobs, traffic)
            if now == NEVER and state.started == len(jobs):
                return DONE
            if now > state.until:
                return REACHED
            if now == NEVER:
                return STUCK
            state.now = now
            _process_events(state, jobs, site, use, traffic, levels)
            state.between = 1
        if state.spare_rows < state.waiting or len(use.ranges) - state.ranges < state.most_ranges:
            return PAUSED
        if not _has_room(state, rules, jobs, site, plan, traffic, levels):
            return PAUSED
        state.between = 0
        budget -= 1 + state.waiting * (1 + state.gone * state.level_count)
        state.late = is_any_overdue(state, use)
        if state.late:
            move_overdue(state, rules, jobs, site, use)
            state.gone = 1
        if state.waiting == 0:
            state.early = state.void = state.level_count = 0
        elif not rules.keeps:
            _pass(state, rules, jobs, site, use, plan, traffic, line, levels)
        else:
            again = True
            while again:
                again = _keep_reservations(state, rules, jobs, site, use, plan, traffic, line, levels)
    return PAUSED


@kernel
def _next_time(state, rules, jobs, traffic):
    """Return the time of the next event or of the next reserved start, s.

    Policies that make all reservations again at each event keep none.
    """
    now = next_event(state, traffic)
    for i in range(state.waiting if rules.keeps and not state.late else 0):
        if jobs[traffic.queue[i]].held_from >= 0:
            now = min(now, jobs[traffic.queue[i]].held_from)
    return now


@kernel
def _process_events(state, jobs, site, use, traffic, levels):
    """Process all events of this instant before the pass: terminations, outages, arrivals; note those that change the plan."""
    while state.events > 0 and traffic.ends[0].rank == state.now:
        job = jobs[traffic.ends[0].job]
        state.early |= state.now < job.start + job.planned
        for k in range(state.running):
            if use.running[k].job == traffic.ends[0].job:
                _note_freed(levels, job, use.running[k].release, FREED)
        end_next(state, jobs, site, use, traffic)
        state.gone, state.level_count = 1, 0
    changes, news = change_outages(state, site, traffic)
    state.gone |= changes > 0
    state.void |= news > 0
    if changes > 0:
        levels.pools[:, FREED] = NEVER
    take_arrivals(state, jobs, traffic)


@called_kernel
def _has_room(state, rules, jobs, site, plan, traffic, levels):
    """Return whether there is enough memory for a pass; if not, drop the plan, and note how much memory a pass may need."""
    state.levels_needed = 4 + state.running + 4 * state.waiting + 2 * len(site.outages)
    if state.level_count + 4 * state.waiting + 4 > len(levels.times):
        state.level_count = 0
    state.held_needed = 0
    for i in range(state.waiting if rules.keeps else 0):
        job = jobs[traffic.queue[i]]
        state.held_needed += 2 * min(len(plan.choice.chosen), job.asked + job.nodes + job.second)
    if state.held + state.held_needed > levels.held.shape[1]:
        state.level_count = 0  # so that the reservations are entered again without the gaps that jobs have left
    state.held_needed *= 2  # otherwise every pass would have gaps to close
    return state.levels_needed <= len(levels.times) and state.held_needed <= levels.held.shape[1]


# ---------------------------------------------------------------------- reservations that are made again


@called_kernel
def _pass(state, rules, jobs, site, use, plan, traffic, line, levels):
    """Consider the waiting jobs in order, or only the newcomers if they are last in the queue and nothing else has happened."""
    queue, first, pools = traffic.queue, state.arranged, levels.pools
    if arrange(state, rules, jobs, queue, line.ranks) < first or state.gone or state.level_count == 0:
        first, state.gone = FIRST, FIRST
        pools[:] = 0
        _make_levels(state, site, use, levels)
    for i in range(first, state.waiting):
        index = queue[i]
        job = jobs[index]
        if full_limit(jobs, traffic.limits, traffic.limits_of, index) >= 0:
            continue
        behind, reserves = False, True
        for pool in list_of(levels.pools_of, job.partition):
            behind |= pools[pool, 0] > 0
            reserves &= pools[pool, 1] < rules.depth
        begin = _find_start(state, job, site, use, plan, line, levels, NEVER if reserves else state.now, True)
        if begin < NEVER:
            end = begin + (length_of(job) if begin == state.now else job.planned)
            _occupy(state, site, use, levels, plan.choice.chosen, FIRST, state.chosen, begin, end, TAKE)
            if reserves and job.reserved_start < 0:
                job.reserved_start = begin
        if begin == state.now:
            start(state, jobs, site, use, plan, traffic, index, behind)
            continue
        for pool in list_of(levels.pools_of, job.partition):
            pools[pool, 0] = 1
            pools[pool, 1] += reserves
    leave_queue(state, jobs, traffic.queue, line.ranks, first)


# ---------------------------------------------------------------------- reservations that are kept


@called_kernel
def _keep_reservations(state, rules, jobs, site, use, plan, traffic, line, levels):
    """Make a pass that keeps reservations; return whether it must be repeated because a job that was due to start exceeds a limit."""
    queue, from_scratch = traffic.queue, state.late or state.void
    arrange(state, rules, jobs, queue, line.ranks)
    for i in range(state.waiting):
        job = jobs[queue[i]]
        if job.held_from >= 0 and (from_scratch or full_limit(jobs, traffic.limits, traffic.limits_of, queue[i]) >= 0):
            _note_freed(levels, job, job.held_from + job.planned, FREED)
            job.held_from, state.early = -1, 1
    if state.early or from_scratch or state.level_count == 0:
        _make_levels(state, site, use, levels)
        _hold_again(state, jobs, site, use, queue, levels)
    if state.early and not from_scratch:
        for pool in range(len(levels.pools)):
            levels.pools[pool, FREED] = max(levels.pools[pool, FREED], levels.pools[pool, FREED_BY_MOVES])
            levels.pools[pool, FREED_BY_MOVES] = 0
        for i in range(state.waiting):
            if jobs[queue[i]].held_from >= 0:
                _move(state, jobs[queue[i]], site, use, plan, line, levels)
    if from_scratch:
        levels.pools[:] = 0
    elif state.early:
        levels.pools[:, FREED] = 0
    state.passes += 1  # earlier search results may not hold after moves
    last = -1
    while last < NEVER:
        index = -1
        for i in range(state.waiting):  # find the next newcomer, in queue order or in order of arrival
            job = jobs[queue[i]]
            rank = i if from_scratch else job.arrival
            is_next = job.held_from < 0 and rank > last and (index < 0 or (not from_scratch and job.arrival < jobs[index].arrival))
            if is_next and full_limit(jobs, traffic.limits, traffic.limits_of, queue[i]) < 0:
                index, following = queue[i], rank
                if from_scratch:
                    break
        if index < 0:
            break
        last = following
        _place(state, jobs[index], site, use, plan, line, levels)
    state.early = state.gone = FIRST
    state.void = state.late
    return _start_due(state, jobs, site, use, plan, traffic, line, levels)


@called_kernel
def _place(state, job, site, use, plan, line, levels):
    begin = _find_start(state, job, site, use, plan, line, levels, NEVER, True)
    if begin < NEVER:
        _hold(state, job, site, use, plan.choice.chosen, levels, begin)
        if job.reserved_start < 0:
            job.reserved_start = begin


@kernel
def _hold(state, job, site, use, chosen, levels, begin):
    """Keep the chosen nodes for a job from a time on."""
    job.held_from, job.held, job.held_count = begin, state.held, state.chosen
    for k in range(state.chosen):
        levels.held[state.half, state.held + k] = chosen[k]
    state.held += state.chosen
    _occupy(state, site, use, levels, chosen, FIRST, state.chosen, begin, begin + job.planned, TAKE)


@called_kernel
def _move(state, job, site, use, plan, line, levels):
    """Move a job's reservation to an earlier time, or to lower-numbered nodes at the same time, where other reservations allow it."""
    old, held, freed = job.held_from, levels.held[state.half], FIRST
    for pool in list_of(levels.pools_of, job.partition):
        freed = max(freed, levels.pools[pool, FREED])
    latest = old if job.most_nodes > 0 or job.least > 0 else min(old, freed - 1)
    if not _may_move(state, job, site, levels, held, latest):
        return
    _occupy(state, site, use, levels, held, job.held, job.held_count, old, old + job.planned, RELEASE)
    begin = _find_start(state, job, site, use, plan, line, levels, latest, False)
    if begin < NEVER:
        _hold(state, job, site, use, plan.choice.chosen, levels, begin)
        for column in (FREED, FREED_BY_MOVES):
            _note_freed(levels, job, old + job.planned, column)
    else:
        _occupy(state, site, use, levels, held, job.held, job.held_count, old, old + job.planned, TAKE)


@kernel
def _note_freed(levels, job, until, column):
    """Note that something has become free, until this time, on the pools of a job's partition."""
    for pool in list_of(levels.pools_of, job.partition):
        levels.pools[pool, column] = max(levels.pools[pool, column], until)


@called_kernel
def _may_move(state, job, site, levels, held, latest):
    """Return whether a job could begin at `latest` or earlier by the sums over its partition's nodes, if its reservation is left out."""
    if latest < state.now:
        return False
    kind, procs, second = site.partitions[job.partition].kind, FIRST, FIRST
    capacity = site.sets[CAPACITY + state.planes + kind]
    for r in range(job.held, job.held + job.held_count):
        nodes = count_between(capacity, held[r].node, held[r].node + held[r].count)
        procs, second = procs + nodes * held[r].procs, second + nodes * units_of(state, held[r].second)
    begin, k = state.now, FIRST
    while begin <= latest:
        short = _first_short(state, job, site, levels, k, begin + length_of(job), procs, second)
        if short < 0:
            return True
        k = max(short, k + 1)
        begin = levels.times[k] if k < state.level_count else NEVER
    return False


@kernel
def _hold_again(state, jobs, site, use, queue, levels):
    """Enter the kept reservations in the plan, and copy their ranges to the other half, without gaps."""
    before, state.half, state.held = state.half, 1 - state.half, 0
    for i in range(state.waiting):
        job = jobs[queue[i]]
        if job.held_from >= 0:
            for k in range(job.held_count):
                levels.held[state.half, state.held + k] = levels.held[before, job.held + k]
            job.held = state.held
            state.held += job.held_count
            begin = job.held_from
            _occupy(state, site, use, levels, levels.held[state.half], job.held, job.held_count, begin, begin + job.planned, TAKE)


@called_kernel
def _start_due(state, jobs, site, use, plan, traffic, line, levels):
    """Start the jobs whose reservations begin now, in order of arrival; return whether one of them is over a limit."""
    queue, again, last = traffic.queue, False, -1
    while last < NEVER:
        index = -1
        for i in range(state.waiting):
            job = jobs[queue[i]]
            if job.held_from == state.now and job.start < 0 and job.arrival > last and (index < 0 or job.arrival < jobs[index].arrival):
                index = queue[i]
        if index < 0:
            break
        job = jobs[index]
        last = job.arrival
        if full_limit(jobs, traffic.limits, traffic.limits_of, index) >= 0:
            again = True
            continue
        behind = False
        for i in range(state.waiting):
            other = jobs[queue[i]]
            if other.held_from >= 0 and other.start < 0 and other.arrival < job.arrival:
                behind |= share_a_pool(levels.pools_of, other.partition, job.partition)
        for k in range(job.held_count):
            plan.choice.chosen[k] = levels.held[state.half, job.held + k]
        state.chosen = job.held_count
        if job.planned == 0:
            state.level_count = 0
        start(state, jobs, site, use, plan, traffic, index, behind)
    leave_queue(state, jobs, queue, line.ranks, FIRST)
    return again


# ---------------------------------------------------------------------- the plan


@called_kernel
def _make_levels(state, site, use, levels):
    """Make the plan again from the free amounts, the planned ends of the running jobs, and the ends of known outages."""
    times, running, last = levels.times, use.running, FIRST
    times[0] = state.now
    state.passes += 1
    _refer(levels, last, use, FIRST)
    for k in range(state.running):
        if running[k].release > times[last]:
            last += 1
            times[last] = running[k].release
        _refer(levels, last, use, running[k].row)
    state.level_count = last + 1
    for k in range(len(site.outages)):
        if site.outages[k].phase == 1 and site.outages[k].end < NEVER:
            _level_at(state, use, levels, site.outages[k].end)


@kernel
def _refer(levels, k, use, row):
    """Make a level refer to the amounts in a row of `Use.free`."""
    levels.rows[k], levels.sources[k], levels.drops[k] = k, row, 0
    for c in range(levels.totals.shape[1]):
        levels.totals[k, c] = use.totals[row, c]


@kernel
def _copy_free(levels, use, k, planes):
    row = levels.rows[k]
    source = levels.sources[row]
    free = levels.free[row] if source < 0 else use.free[source]
    for i in range(planes.shape[0]):
        for w in range(planes.shape[1]):
            planes[i, w] = free[i, w]


@called_kernel
def _level_at(state, use, levels, time):
    """Return the level that begins at a time, creating it if necessary; the first level for any earlier time."""
    times, rows, i = levels.times, levels.rows, first_from(levels.times, 1, state.level_count, time + 1) - 1
    if times[i] >= time:
        return i
    for k in range(state.level_count, i + 1, -1):
        times[k], rows[k] = times[k - 1], rows[k - 1]
    new, old = state.level_count, rows[i]
    _copy_free(levels, use, i, levels.free[new])
    times[i + 1], rows[i + 1], levels.sources[new], levels.drops[new] = time, new, -1, 0
    for c in range(levels.totals.shape[1]):
        levels.totals[new, c] = levels.totals[old, c]
    state.level_count += 1
    return i + 1


@called_kernel
def _occupy(state, site, use, levels, ranges, first, count, begin, end, sign):
    """Take ranges of nodes out of the plan in [begin, end), or release them (`sign` -1)."""
    if begin >= end:
        return
    from_level = (
        _level_at(state, use, levels, begin) if begin > state.now else first_from(levels.times, 1, state.level_count, begin + 1) - 1
    )
    to_level = _level_at(state, use, levels, end)
    levels.drops[levels.rows[from_level]] = 1
    for i in range(from_level, to_level + 1):  # at `end`, too: that level may refer to a row of `Use.free` that the job's start changes
        row = levels.rows[i]
        if levels.sources[row] >= 0:
            _copy_free(levels, use, i, levels.free[row])
            levels.sources[row] = -1
    for r in range(first, first + count):
        own = ranges[r]
        for column in range(levels.totals.shape[1]):
            procs = own.procs if column < state.kinds else units_of(state, own.second)
            kind = CAPACITY + state.planes + column % state.kinds
            amount = sign * procs * count_between(site.sets[kind], own.node, own.node + own.count)
            for i in range(from_level, to_level):
                levels.totals[levels.rows[i], column] -= amount
        for i in range(from_level, to_level):
            free = levels.free[levels.rows[i]]
            for w in words_of(own.node, own.node + own.count):
                bits = ones(w, own.node, own.node + own.count)
                add_in_planes(free, 0, state.procs_planes, w, bits, own.procs, -sign)
                add_in_planes(free, state.procs_planes, state.second_end, w, bits, own.second, -sign)
                add_in_planes(free, state.second_end, state.planes, w, bits, own.memory, -sign)


@called_kernel
def _find_start(state, job, site, use, plan, line, levels, latest, by_form):
    """Choose nodes for a job at the earliest time, at most `latest`, at which it fits; return that time, NEVER if there is none.

    `by_form`: whether the time found for a smaller request of the same form is a lower bound.
    """
    times, begin, length, found = levels.times, state.now, length_of(job), line.failed[2 * job.form]
    if by_form and has_failed(found, state.passes, job):
        begin = max(begin, found.begin)
    need = least_needed(job, site.members[job.members])
    members, k = site.sets[site.members[job.members].row], first_from(times, 1, state.level_count, begin + 1) - 1
    while begin <= latest and begin < NEVER:
        short = _first_short(state, job, site, levels, k, begin + length, FIRST, FIRST)
        if short < 0:
            short = _least_between(state, use, levels, members, need, k, begin + length)
            if short < 0 and shortfall_of(state, job, site, levels.least, plan, begin, length, 1) == 0:
                choose_of(state, job, site, levels.least, plan.choice)
                break
        k = max(short, k + 1)
        begin = times[k] if k < state.level_count else NEVER
    if by_form:
        note_failed(found, state.passes, job)
        found.begin = begin
    return begin if begin <= latest else NEVER


@kernel
def _first_short(state, job, site, levels, k, end, procs, second):
    """Return the level after the last one with too little in total, between level `k` and the time `end`; -1 if all have enough.

    `procs` and `second` are added while the job's own reservation is in the plan.
    """
    short, kind, need = -1, site.partitions[job.partition].kind, least_needed(job, site.members[job.members])
    need_second = 0 if job.whole or levels.totals.shape[1] == state.kinds else max(job.total, job.nodes * job.each)
    while k < state.level_count and levels.times[k] < end:
        row, own = levels.rows[k], job.held_from <= levels.times[k] < job.held_from + job.planned
        lacks = levels.totals[row, kind] + own * procs < need
        if need_second > 0 and not lacks:
            lacks = levels.totals[row, kind + state.kinds] + own * second < need_second
        k += 1
        if lacks:
            short = k
    return short


@called_kernel
def _least_between(state, use, levels, members, need, k, end):
    """Compute `levels.least`, the amounts of each node that stay free from level `k` until `end`.

    Returns -1 if they may be enough for a job; otherwise the first level from which enough may stay free.
    """
    least, i = levels.least, k
    _copy_free(levels, use, k, least)
    while i + 1 < state.level_count and levels.times[i + 1] < end:
        i += 1
        if not levels.drops[levels.rows[i]]:
            continue
        _take_less(state, levels, use, i, least)
        if total_of(least, 0, state.procs_planes, members) < need:
            _copy_free(levels, use, i, least)
            while total_of(least, 0, state.procs_planes, members) >= need:
                i -= 1
                _take_less(state, levels, use, i, least)
            return i + 1
    return -1


@kernel
def _take_less(state, levels, use, k, least):
    """Lower the amounts of each node to those at a level, where these are less."""
    row = levels.rows[k]
    source = levels.sources[row]
    other = levels.free[row] if source < 0 else use.free[source]
    for w in range(least.shape[1]):
        take_less(least, 0, state.procs_planes, other, 0, w)
        for first in range(state.procs_planes, state.second_end, max(1, state.second_bits)):
            take_less(least, first, first + state.second_bits, other, first, w)
        take_less(least, state.second_end, state.planes, other, state.second_end, w)
