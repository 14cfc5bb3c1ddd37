"""Conservative backfilling on a machine of several pools: every job keeps its reservation, and early ends compress the schedule.

The rules are those of number/conservative.py for a single pool (mualem01, section 2.1), and also:

* A job over one of its limits has no reservation; when a job loses its reservation, this counts as an early end of a job.
* An unplanned change of capacity breaks all reservations, as an overdue job does: they are made again in queue order.

The plan is kept from event to event. A compression tries only jobs whose reservation may change: an earlier gap, or the same gap with other
amounts of the pools, requires that something has been released since the job was last tried.
"""

from __future__ import annotations

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.heap import pop_candidate, push_candidate
from walltime.engine.kernel.memory import NEVER
from walltime.engine.kernel.pools.limits import may_start
from walltime.engine.kernel.pools.memory import list_of
from walltime.engine.kernel.pools.passes import share_a_pool, start_reserved
from walltime.engine.kernel.pools.plan import first_gap, forget_past, occupy, occupy_until, plan_of_running, share, step_before
from walltime.engine.kernel.pools.queue_index import drop_started, is_steady, sort_waiting_jobs
from walltime.engine.kernel.profile import size_class
from walltime.engine.kernel.running import overdue


@kernel
def pass_with_kept_reservations(state, rules, jobs, machine, queue_index, plan, kept):
    """Compress if capacity came back early, reserve for newcomers, and start the jobs that are due."""
    if kept is None:
        return
    is_overdue = overdue(state, machine.running)
    rebuilt = is_overdue or state.broken > 0
    if rebuilt or state.steps == 0:
        plan_of_running(state, machine, plan)
    if not rebuilt:
        forget_past(state, plan)
        _keep_within_limits(state, jobs, machine, queue_index.queue, plan, kept)
    if (rebuilt or state.early) and not is_steady(rules):
        sort_waiting_jobs(state, rules, jobs, queue_index)
    if rebuilt:
        _reserve_all(state, jobs, machine, queue_index.queue, plan, kept)
    else:
        if state.early:
            _compress(state, jobs, machine, queue_index.queue, plan, kept)
        _reserve_newcomers(state, jobs, machine, queue_index, plan, kept)
    state.early = 0
    state.broken = 1 if is_overdue else 0
    _start_due(state, rules, jobs, machine, queue_index, plan, kept)
    state.looked_at = state.waiting
    if is_overdue:
        state.next_due = NEVER


@called_kernel
def release_rest(state, machine, plan, kept, index, expected):
    """Release the rest of the time for which a job that ends early was expected to run."""
    if expected <= state.now:
        return
    state.early = 1
    if kept is None:
        return
    if state.steps > 0 and not state.broken:  # else the whole plan will be made again
        occupy_until(state, machine.partitions_of, machine.given[index], plan, state.now, expected, -1)
        _note_freed_gap(state, machine.pools_of, plan, kept, machine.given[index], state.now, expected)


@called_kernel
def _note_freed_gap(state, pools_of, plan, kept, amounts, begin, end):
    """Note the longest stretch in which these amounts of the pools, released in [begin, end), are free together, and its start.

    Processors that are free in several pools together may not stay free in each pool, so too many jobs may pass this test, but never too
    few.
    """
    state.freed_until = max(state.freed_until, end)
    middle = max(step_before(state, plan, begin + 1), 0)
    for part in range(kept.freed_gaps.shape[0]):
        lowest = 0  # the lowest class of sizes of the jobs that have a reservation here
        while lowest < kept.freed_gaps.shape[1] and kept.freed_gaps[part, lowest].jobs == 0:
            lowest += 1
        if lowest < kept.freed_gaps.shape[1] and _is_any_of(pools_of, amounts, part):
            _measure_stretches(state, plan, kept, part, lowest, middle, end)


@kernel
def _is_any_of(pools_of, amounts, part):
    """Return whether a partition has a pool with a positive amount."""
    found = False
    for p in list_of(pools_of, part):
        found |= amounts[p, 0] > 0 or amounts[p, 1] > 0
    return found


@called_kernel
def _measure_stretches(state, plan, kept, part, lowest, middle, end):
    """Note, for each size class, the stretches with room for its smallest job that overlap [the time of step `middle`, end).

    The stretches of a class lie within those of the class of smaller jobs, so one walk is enough: backward from the step, then forward. It
    goes no further than the longest job. No job of a class below `lowest` waits.
    """
    time, room, since = plan.time, plan.room, kept.since
    classes = _open_stretches(state, plan, part, lowest, middle, since)
    step = middle + 1
    while classes > lowest or (step < state.steps and time[step] < end):
        step = _next_change(state, plan, part, lowest, classes, step, end)
        until, sizes = NEVER, lowest
        if step < state.steps:
            until = time[step]
            if until < end + state.longest:
                sizes = max(classes_with_room(room[part, step]), lowest)
        for size in range(sizes, classes):  # their stretches end
            gap = kept.freed_gaps[part, size]
            gap.longest, gap.earliest = max(gap.longest, until - since[size]), min(gap.earliest, since[size])
        if until < end:
            for size in range(classes, sizes):
                since[size] = until
            classes = sizes
        else:
            classes = min(classes, sizes)
        step += 1


@kernel
def _open_stretches(state, plan, part, lowest, middle, since):
    """Walk backward from a step, store in `since` when the stretch of each size class begins, and return how many classes have room."""
    time, room, longest = plan.time, plan.room, plan.time[middle] - state.longest
    step, sizes = middle, classes_with_room(room[part, middle])
    classes = sizes = max(sizes, lowest)
    while sizes > lowest:
        least = (1 << sizes) >> 1
        while step > 0 and time[step] > longest and room[part, step - 1] >= least:
            step -= 1
        fewer = lowest
        if step > 0 and time[step] > longest:
            fewer = max(min(sizes, classes_with_room(room[part, step - 1])), lowest)
        for size in range(fewer, sizes):
            since[size] = time[step]
        sizes = fewer
        step -= 1
    return classes


@kernel
def _next_change(state, plan, part, lowest, classes, step, end):
    """Return the first step from this one on with room for other size classes; from `end` on, with room for fewer."""
    time, room, more = plan.time, plan.room, 1 << classes
    least = more >> 1 if classes > lowest else 0
    while step < state.steps and time[step] < end and least <= room[part, step] < more:
        step += 1
    while classes > lowest and step < state.steps and end <= time[step] < end + state.longest and room[part, step] >= least:
        step += 1
    return step


@kernel
def classes_with_room(height):
    """Return the number of size classes whose smallest job fits into this many processors."""
    return size_class(height) + 1 if height > 0 else 0


@kernel
def _keep_within_limits(state, jobs, machine, queue, plan, kept):
    """Drop the reservations of jobs that are over one of their limits.

    Many jobs may lose theirs at once, so one gap that covers all their reservations is noted. Equal reservations of consecutive jobs, which
    `plan.least` adds up, are released together.
    """
    if state.tightened == 0 and state.windowed == 0:
        return
    state.tightened = 0
    first, last, amounts, given = NEVER, state.now, kept.before, machine.given
    prior_begin, prior_end, together = state.now, state.now, plan.least
    amounts[:] = 0
    together[:] = 0
    for i in range(state.waiting):
        index = queue[i].job
        if kept.start[index] >= 0 and not may_start(state, jobs, machine, index):
            state.early, state.next_due = 1, state.now  # the next job that will be due must be found again
            if kept.start[index] == NEVER:
                kept.start[index] = -1
                continue
            begin, end = kept.start[index], kept.start[index] + jobs[index].own_length
            if begin != prior_begin or end != prior_end:
                _release_together(state, machine.partitions_of, plan, prior_begin, prior_end)
                prior_begin, prior_end = begin, end
            first, last = min(first, begin), max(last, end)
            for p in range(given.shape[1]):
                amounts[p, 0], amounts[p, 1] = max(amounts[p, 0], given[index, p, 0]), max(amounts[p, 1], given[index, p, 1])
                together[p, 0] += given[index, p, 0]
                together[p, 1] += given[index, p, 1]
            kept.start[index] = -1
            kept.freed_gaps[queue[i].partition, kept.size[index]].jobs -= 1
            state.unreserved += 1
    if first < NEVER:
        _release_together(state, machine.partitions_of, plan, prior_begin, prior_end)
        _note_freed_gap(state, machine.pools_of, plan, kept, amounts, first, last)


@called_kernel
def _release_together(state, partitions_of, plan, begin, end):
    """Release the amounts that `plan.least` has added up in [begin, end), and clear it."""
    if begin < end:
        occupy_until(state, partitions_of, plan.least, plan, begin, end, -1)
    plan.least[:] = 0


@kernel
def _reserve_all(state, jobs, machine, queue, plan, kept):
    """Make all reservations again, in queue order."""
    state.next_due, state.unreserved = NEVER, state.waiting
    kept.freed_gaps.jobs[:] = 0
    prior = np.int64(-1)
    for i in range(state.waiting):
        index = queue[i].job
        kept.start[index] = -1
        if may_start(state, jobs, machine, index):
            prior = _reserve(state, jobs, machine, plan, kept, index, prior)
    _take_together(state, jobs, machine.partitions_of, plan, kept, prior)
    _begin_trying(state, kept.freed_gaps)


@kernel
def _begin_trying(state, freed_gaps):
    """Let a compression use the gaps freed so far; gaps freed from now on serve the jobs behind, and the next compression."""
    until, state.freed_until = state.freed_until, state.now
    for part in range(freed_gaps.shape[0]):
        for size in range(freed_gaps.shape[1]):
            gap = freed_gaps[part, size]
            gap.tried, gap.tried_earliest, gap.longest, gap.earliest = gap.longest, gap.earliest, 0, NEVER
    return until


@called_kernel
def _earlier_gap(state, plan, job, earliest, begin):
    """Return when a gap for a job begins before its reservation, by the total of its pools; the reserved start if there is none.

    A gap that reaches into the job's own reservation always suffices.
    """
    time, room, part, procs = plan.time, plan.room, job.partition, job.procs
    first = max(step_before(state, plan, earliest + 1), 0)
    while True:
        while first < state.steps and time[first] < begin and room[part, first] < procs:
            first += 1
        if first == state.steps or time[first] >= begin:
            return begin
        end, step = min(time[first] + job.own_length, begin), first + 1
        while step < state.steps and time[step] < end and room[part, step] >= procs:
            step += 1
        if step == state.steps or time[step] >= end:
            return time[first]
        first = step


@kernel
def _compress(state, jobs, machine, queue, plan, kept):
    """Move reservations to their earliest possible starts, in queue order.

    A new reservation that overlaps the old one begins where enough is free right before the old one. Any other new reservation lies in a
    stretch that was freed since the job was last tried. Otherwise, the job may at most get other amounts of the pools.
    """
    until = _begin_trying(state, kept.freed_gaps)
    for i in range(state.waiting):
        index, length = queue[i].job, kept.length[queue[i].job]
        begin = kept.start[index]
        if begin < 0:
            continue
        gap, chance = kept.freed_gaps[queue[i].partition, kept.size[index]], begin
        if length <= gap.longest:
            chance = min(chance, gap.earliest)
        if length <= gap.tried:
            chance = min(chance, gap.tried_earliest)
        last = max(until, state.freed_until)
        if begin - length < last:
            # since when as much as the job needs is free right before its reservation
            edge, step, job = begin, step_before(state, plan, begin), jobs[index]
            while step >= 0 and edge > begin - job.own_length and plan.room[job.partition, step] >= job.procs:
                edge = plan.time[step]
                step -= 1
            chance = min(chance, edge)
        if chance < begin:
            chance = _earlier_gap(state, plan, jobs[index], chance, begin)
        if chance == begin and not (begin < last and _may_shift(state, machine, plan, jobs[index], index, begin)):
            continue
        occupy(state, machine, plan, jobs[index], index, begin, -1)
        _move(state, machine, plan, kept, jobs[index], index, chance)


@called_kernel
def _move(state, machine, plan, kept, job, index, chance):
    """Give a job the earliest reservation from a time on, and note the gap that it leaves if its reservation changes."""
    begin, given = kept.start[index], machine.given
    for p in range(given.shape[1]):
        kept.before[p, 0], kept.before[p, 1] = given[index, p, 0], given[index, p, 1]
    kept.start[index] = first_gap(state, machine.pools, machine.pools_of, plan, job, chance)
    share(machine.pools, machine.pools_of, given, job, index, plan.least)
    state.next_due = min(state.next_due, kept.start[index])
    alike = True
    for p in range(given.shape[1]):
        alike = alike and kept.before[p, 0] == given[index, p, 0] and kept.before[p, 1] == given[index, p, 1]
    occupy(state, machine, plan, job, index, kept.start[index], 1)
    if not alike or kept.start[index] < begin:
        freed = max(begin, kept.start[index] + job.own_length) if alike else begin  # equal reservations that overlap free no more
        _note_freed_gap(state, machine.pools_of, plan, kept, kept.before, freed, begin + job.own_length)


@kernel
def _may_shift(state, machine, plan, job, index, begin):
    """Return whether a job would get more from one of its pools, and less from later ones, if it were given the same time again."""
    procs, second = job.procs, job.second
    first = step_before(state, plan, begin + 1)
    for p in list_of(machine.pools_of, job.partition):
        procs -= machine.given[index, p, 0]
        second -= machine.given[index, p, 1]
        if procs == 0 and second == 0:
            return False
        step, more_procs, more_second = first, procs > 0, second > 0
        while step < state.steps and plan.time[step] < begin + job.own_length and (more_procs or more_second):
            more_procs = more_procs and plan.free[p, 0, step] > 0
            more_second = more_second and plan.free[p, 1, step] > 0
            step += 1
        if more_procs or more_second:
            return True
    return False


@kernel
def _reserve_newcomers(state, jobs, machine, queue_index, plan, kept):
    """Make reservations for the jobs that have none, in order of arrival.

    When a limit has room again, all jobs that waited for it are candidates at once. The first of them to start fill the limit again, and
    most others then lose their reservations. If more of them are planned to start now than the limit allows, the pass is repeated at this
    instant. From then on, a job that would lose its reservation gets none (its start is NEVER), unless a job that keeps its reservation
    comes after it.
    """
    if state.unreserved == 0:
        return
    state.candidates = 0
    for i in range(state.waiting):
        index = queue_index.queue[i].job
        if kept.start[index] < 0 and may_start(state, jobs, machine, index):
            push_candidate(state, queue_index.candidates, 0.0, jobs[index].arrival, index)
            number = _only_limit(state, machine.limits, machine.limits_of, index)
            if number >= 0:
                machine.limits[number].due = 0
    prior, last = np.int64(-1), NEVER
    while state.candidates > 0 and queue_index.candidates[0].tie <= last:
        index = pop_candidate(state, queue_index.candidates)
        prior = _reserve(state, jobs, machine, plan, kept, index, prior)
        number = _only_limit(state, machine.limits, machine.limits_of, index)
        if kept.start[index] == state.now and number >= 0:
            limit = machine.limits[number]
            limit.due += 1
            if limit.used_jobs + limit.due == limit.jobs + 1:
                last = _last_to_keep_reservation(state, jobs, machine, queue_index.candidates, plan)
    _take_together(state, jobs, machine.partitions_of, plan, kept, prior)
    for k in range(state.candidates):
        kept.start[queue_index.candidates[k].job] = NEVER


@kernel
def _only_limit(state, limits, limits_of, index):
    """Return the number of a job's limit if the job has no other, and the limit is only on the number of jobs; else -1."""
    first = limits_of.first[index]
    if state.windowed or limits_of.first[index + 1] != first + 1:
        return -1
    limit = limits[limits_of.items[first]]
    return limits_of.items[first] if limit.procs == NEVER and limit.second == NEVER else -1


@called_kernel
def _last_to_keep_reservation(state, jobs, machine, candidates, plan):
    """Return the arrival number of the last candidate that may keep its new reservation, gets none, or never had one before."""
    last = np.int64(-1)
    for k in range(state.candidates):
        index = candidates[k].job
        job, number = jobs[index], _only_limit(state, machine.limits, machine.limits_of, index)
        loses = number >= 0 and machine.limits[number].used_jobs + machine.limits[number].due >= machine.limits[number].jobs
        has_place = job.second == 0 and plan.room[job.partition, state.steps - 1] >= job.procs
        if not (loses and has_place and job.reserved_start >= 0):
            last = max(last, candidates[k].tie)
    return last


@kernel
def _reserve(state, jobs, machine, plan, kept, index, prior):
    """Give a job the earliest reservation that fits into the plan. Return the job, or `prior` if none fits.

    Nothing has been released since `prior` (-1 for none) got its reservation, so a job that needs at least as much for at least as long
    finds no earlier start. Each of many equal jobs begins its search at the last one's reserved start. As long as enough is left there
    (`plan.least`), they get equal reservations, which `_take_together` takes out of the plan when another start is needed.
    """
    job, given, least, taken = jobs[index], machine.given, plan.least, kept.before
    state.longest = max(state.longest, job.own_length)
    alike = prior >= 0 and _needs_no_less(job, jobs[prior]) and _needs_no_less(jobs[prior], job)
    if alike and _is_enough(machine.pools_of, least, job):
        begin = kept.start[prior]
    else:
        _take_together(state, jobs, machine.partitions_of, plan, kept, prior)
        earliest = kept.start[prior] if prior >= 0 and _needs_no_less(job, jobs[prior]) else state.now
        begin = first_gap(state, machine.pools, machine.pools_of, plan, job, earliest)
    if begin == NEVER:
        least[:] = 0
        return prior
    share(machine.pools, machine.pools_of, given, job, index, least)
    for p in list_of(machine.pools_of, job.partition):
        for resource in range(2):
            least[p, resource] -= given[index, p, resource]
            taken[p, resource] += given[index, p, resource]
    kept.start[index] = begin
    kept.length[index], kept.size[index] = job.own_length, size_class(job.procs)
    kept.freed_gaps[job.partition, kept.size[index]].jobs += 1
    state.next_due = min(state.next_due, begin)
    state.unreserved -= 1
    if job.reserved_start < 0:
        job.reserved_start = begin
    return index


@called_kernel
def _take_together(state, jobs, partitions_of, plan, kept, prior):
    """Take the amounts that `kept.before` adds up, in the reservation of `prior` (-1 for none), out of the plan, and clear it."""
    if prior >= 0:
        begin = kept.start[prior]
        occupy_until(state, partitions_of, kept.before, plan, begin, begin + jobs[prior].own_length, 1)
    kept.before[:] = 0


@kernel
def _is_enough(pools_of, least, job):
    """Return whether enough for a job has stayed free in its pools throughout the last reservation."""
    procs, second = job.procs, job.second
    for p in list_of(pools_of, job.partition):
        procs -= least[p, 0]
        second -= least[p, 1]
    return procs <= 0 and second <= 0


@kernel
def _needs_no_less(job, other):
    """Return whether a job needs at least as much as another job of the same partition, for at least as long."""
    return (
        job.partition == other.partition and job.procs >= other.procs and job.second >= other.second and job.own_length >= other.own_length
    )


@kernel
def _start_due(state, rules, jobs, machine, queue_index, plan, kept):
    """Start the jobs whose reservation is now, in order of arrival.

    A job that meanwhile exceeds a limit loses its reservation in another pass. If a job is expected to run for less time than planned, the
    rest of its reservation is released.
    """
    queue, candidates = queue_index.queue, queue_index.candidates
    if state.next_due > state.now:
        return
    state.candidates, state.next_due = 0, NEVER
    for i in range(state.waiting):
        index = queue[i].job
        if kept.start[index] == state.now:
            push_candidate(state, candidates, 0.0, jobs[index].arrival, index)
        elif kept.start[index] >= 0:
            state.next_due = min(state.next_due, kept.start[index])
    if state.candidates == 0:
        return
    while state.candidates > 0:
        index = pop_candidate(state, candidates)
        if may_start(state, jobs, machine, index):
            start_reserved(state, rules, jobs, machine, index, _waits_ahead(state, jobs, machine.pools_of, queue, kept, index))
            kept.freed_gaps[jobs[index].partition, kept.size[index]].jobs -= 1
            expected, planned = state.now + jobs[index].run_length, state.now + jobs[index].own_length
            if expected < planned:
                occupy_until(state, machine.partitions_of, machine.given[index], plan, expected, planned, -1)
                _note_freed_gap(state, machine.pools_of, plan, kept, machine.given[index], expected, planned)
        else:
            state.again = state.tightened = 1
            state.next_due = state.now
    drop_started(state, rules, jobs, queue_index)


@kernel
def _waits_ahead(state, jobs, pools_of, queue, kept, index):
    """Return whether a job that arrived before this one waits with a reservation, and shares a pool with it."""
    for i in range(state.waiting):
        other = queue[i].job
        if kept.start[other] >= 0 and jobs[other].start < 0 and jobs[other].arrival < jobs[index].arrival:
            if share_a_pool(pools_of, jobs[other].partition, jobs[index].partition):
                return True
    return False
