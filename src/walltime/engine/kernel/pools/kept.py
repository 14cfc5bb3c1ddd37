"""Conservative backfilling on a machine of several pools: every job keeps its reservation, and early ends compress the schedule.

As number/conservative.py on one number of processors (mualem01, section 2.1), and besides:

* A job over one of its limits has no reservation; that it loses the one it had is as if a job had ended early.
* A change of capacity that was not planned breaks all reservations, as an overdue job does: they are made anew in queue order.

The plan is kept from event to event. In a compression only the jobs are tried whose place may change: an earlier hole, or the same one with
other amounts of the pools, needs something that has been given back since they were tried last.
"""

from __future__ import annotations

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.memory import NEVER
from walltime.engine.kernel.pools.limits import may_start
from walltime.engine.kernel.pools.line import drop_started, is_steady, sort_waiting_jobs
from walltime.engine.kernel.pools.passes import next_candidate, push_candidate, share_a_pool, start_in_place
from walltime.engine.kernel.pools.plan import (
    first_hole,
    forget_past,
    occupy,
    occupy_until,
    plan_of_running,
    share,
    step_before,
)
from walltime.engine.kernel.profile import size_class
from walltime.engine.kernel.running import overdue


@kernel
def pass_with_kept_places(state, rules, jobs, machine, line, plan, kept):
    """Compress if capacity came back early, give the newcomers their reservations, and start whoever's time has come."""
    if kept is None:
        return
    is_overdue = overdue(state, machine.running)
    afresh = is_overdue or state.broken > 0
    if afresh or state.steps == 0:
        plan_of_running(state, machine, plan)
    if not afresh:
        forget_past(state, plan)
        _keep_within_limits(state, jobs, machine, line.queue, plan, kept)
    if (afresh or state.early) and not is_steady(rules):
        sort_waiting_jobs(state, rules, jobs, line)
    if afresh:
        _reserve_anew(state, jobs, machine, line.queue, plan, kept)
    else:
        if state.early:
            _compress(state, jobs, machine, line.queue, plan, kept)
        _reserve_newcomers(state, jobs, machine, line, plan, kept)
    state.early = 0
    state.broken = 1 if is_overdue else 0
    _start_due(state, rules, jobs, machine, line, plan, kept)
    state.looked_at = state.waiting
    if is_overdue:
        state.next_due = NEVER


@called_kernel
def give_back_rest(state, jobs, machine, plan, kept, index, expected):
    """Capacity comes back early where a running job ends before its expected end."""
    if expected <= state.now:
        return
    state.early = 1
    if kept is None:
        return
    if state.steps == 0 or state.broken:
        return  # the plan will be made anew
    occupy_until(state, machine.partitions_of, machine.given[index], plan, state.now, expected, -1)
    _note_opening(state, machine.pools_of, plan, kept, machine.given[index], state.now, expected)


@called_kernel
def _note_opening(state, pools_of, plan, kept, amounts, begin, end):
    """So much of each pool has been given back in [begin, end): note for how long so much is free together there, and from when on.

    What is free of several pools together may not be free of one after the other, so this lets too many jobs pass, but never too few.
    """
    state.opened_until = max(state.opened_until, end)
    middle = max(step_before(state, plan, begin + 1), 0)
    for part in range(kept.openings.shape[0]):
        lowest = _lowest_class(kept.openings, part)
        if lowest < kept.openings.shape[1] and _is_any_of(pools_of, amounts, part):
            _measure_stretches(state, plan, kept, part, lowest, middle, end)


@kernel
def _is_any_of(pools_of, amounts, part):
    """Whether any of the amounts is of a pool of a partition."""
    for k in range(pools_of.first[part], pools_of.first[part + 1]):
        if amounts[pools_of.items[k], 0] > 0 or amounts[pools_of.items[k], 1] > 0:
            return True
    return False


@kernel
def _lowest_class(openings, part):
    """The lowest class of sizes of the jobs of a partition that have a reservation; the number of classes if there is none."""
    lowest = 0
    while lowest < openings.shape[1] and openings[part, lowest].jobs == 0:
        lowest += 1
    return lowest


@called_kernel
def _measure_stretches(state, plan, kept, part, lowest, middle, end):
    """Note, for each class of sizes, the stretches with room for its smallest job that reach into [the time of step `middle`, end).

    The stretches of a class lie within those of the class of smaller jobs, so one walk is enough: back from the step, then on from it.
    No job looks further than its length. No job of a class below the `lowest` waits.
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
        _close_stretches(kept.openings[part], since, sizes, classes, until)
        if until < end:
            for size in range(classes, sizes):
                since[size] = until
            classes = sizes
        else:
            classes = min(classes, sizes)
        step += 1


@kernel
def _open_stretches(state, plan, part, lowest, middle, since):
    """Walk back from a step: note in `since` when the stretch of each class with room there begins; returns how many classes these are."""
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
    """The first step from this one on with room for other classes; behind the `end`, for fewer."""
    time, room, more = plan.time, plan.room, 1 << classes
    least = more >> 1 if classes > lowest else 0
    while step < state.steps and time[step] < end and least <= room[part, step] < more:
        step += 1
    while classes > lowest and step < state.steps and end <= time[step] < end + state.longest and room[part, step] >= least:
        step += 1
    return step


@kernel
def _close_stretches(openings, since, first, last, until):
    """The stretches of the classes from the first to before the last one end."""
    for size in range(first, last):
        openings[size].longest = max(openings[size].longest, until - since[size])
        openings[size].earliest = min(openings[size].earliest, since[size])


@kernel
def classes_with_room(height):
    """How many classes of sizes have a job that needs no more than this."""
    return size_class(height) + 1 if height > 0 else 0


@kernel
def _keep_within_limits(state, jobs, machine, queue, plan, kept):
    """A job that is over one of its limits loses its reservation.

    Many may lose theirs at once, so what they give back is noted once, as if it were one place with all of theirs in it. Equal places
    of consecutive jobs, which `plan.least` sums up, are given back together.
    """
    if state.tightened == 0 and state.windowed == 0:
        return
    state.tightened = 0
    first, last, amounts, given = NEVER, state.now, kept.before, machine.given
    prior_begin, prior_end, together = state.now, state.now, plan.least
    for p in range(given.shape[1]):
        amounts[p, 0] = amounts[p, 1] = together[p, 0] = together[p, 1] = 0
    for i in range(state.waiting):
        index = queue[i].job
        if kept.start[index] >= 0 and not may_start(state, jobs, machine, index):
            state.early, state.next_due = 1, state.now  # who is due first will be looked for anew
            if kept.start[index] == NEVER:
                kept.start[index] = -1
                continue
            begin, end = kept.start[index], kept.start[index] + jobs[index].own_length
            if begin != prior_begin or end != prior_end:
                _give_back_together(state, machine.partitions_of, plan, prior_begin, prior_end)
                prior_begin, prior_end = begin, end
            first, last = min(first, begin), max(last, end)
            for p in range(given.shape[1]):
                amounts[p, 0], amounts[p, 1] = max(amounts[p, 0], given[index, p, 0]), max(amounts[p, 1], given[index, p, 1])
                together[p, 0] += given[index, p, 0]
                together[p, 1] += given[index, p, 1]
            kept.start[index] = -1
            kept.openings[queue[i].partition, kept.size[index]].jobs -= 1
            state.unreserved += 1
    if first < NEVER:
        _give_back_together(state, machine.partitions_of, plan, prior_begin, prior_end)
        _note_opening(state, machine.pools_of, plan, kept, amounts, first, last)


@called_kernel
def _give_back_together(state, partitions_of, plan, begin, end):
    """Give back what `plan.least` has summed up in [begin, end); it has nothing then."""
    if begin < end:
        occupy_until(state, partitions_of, plan.least, plan, begin, end, -1)
    for p in range(plan.least.shape[0]):
        plan.least[p, 0] = plan.least[p, 1] = 0


@kernel
def _reserve_anew(state, jobs, machine, queue, plan, kept):
    """All reservations are made anew, in queue order."""
    state.next_due, state.unreserved = NEVER, state.waiting
    for part in range(kept.openings.shape[0]):
        for size in range(kept.openings.shape[1]):
            kept.openings[part, size].jobs = 0
    prior = np.int64(-1)
    for i in range(state.waiting):
        index = queue[i].job
        kept.start[index] = -1
        if may_start(state, jobs, machine, index):
            prior = _reserve(state, jobs, machine, plan, kept, index, prior)
    _take_together(state, jobs, machine.partitions_of, plan, kept, prior)
    _begin_trying(state, kept.openings)


@kernel
def _begin_trying(state, openings):
    """Everybody is tried with what has been given back so far; what comes back meanwhile is for those behind, and for the next time."""
    until, state.opened_until = state.opened_until, state.now
    for part in range(openings.shape[0]):
        for size in range(openings.shape[1]):
            opening = openings[part, size]
            opening.tried, opening.tried_earliest = opening.longest, opening.earliest
            opening.longest, opening.earliest = 0, NEVER
    return until


@kernel
def _edge(state, plan, job, begin):
    """Since when as much as a job needs is free right before its place, as far as an earlier place may overlap with it."""
    edge, step = begin, step_before(state, plan, begin)
    while step >= 0 and edge > begin - job.own_length and plan.room[job.partition, step] >= job.procs:
        edge = plan.time[step]
        step -= 1
    return edge


@called_kernel
def _earlier_hole(state, plan, job, earliest, begin):
    """When a hole for a job begins before its place, as far as what is free of its pools together tells; the begin of its place if none.

    Where a hole reaches into the job's own place, there is enough.
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
    """Move reservations to the earliest places that they can have now, in queue order.

    A new place that overlaps with the old one begins where enough is free right before that. Any other lies in a stretch in which something
    has been given back since the job was tried last. Where neither is so, the job may get other amounts of the pools at most.
    """
    until = _begin_trying(state, kept.openings)
    for i in range(state.waiting):
        index, length = queue[i].job, kept.length[queue[i].job]
        begin = kept.start[index]
        if begin < 0:
            continue
        opening = kept.openings[queue[i].partition, kept.size[index]]
        chance = begin
        if length <= opening.longest:
            chance = min(chance, opening.earliest)
        if length <= opening.tried:
            chance = min(chance, opening.tried_earliest)
        last = max(until, state.opened_until)
        if begin - length < last:
            chance = min(chance, _edge(state, plan, jobs[index], begin))
        if chance < begin:
            chance = _earlier_hole(state, plan, jobs[index], chance, begin)
        if chance == begin and not (begin < last and _may_shift(state, machine, plan, jobs[index], index, begin)):
            continue
        occupy(state, machine, plan, jobs[index], index, begin, -1)
        _move(state, machine, plan, kept, jobs[index], index, chance)


@called_kernel
def _move(state, machine, plan, kept, job, index, chance):
    """Give a job the earliest place from a time on; if that is another than it had, note what it has left."""
    begin, given = kept.start[index], machine.given
    for p in range(given.shape[1]):
        kept.before[p, 0], kept.before[p, 1] = given[index, p, 0], given[index, p, 1]
    kept.start[index] = first_hole(state, machine.pools, machine.pools_of, plan, job, chance)
    share(machine.pools, machine.pools_of, given, job, index, plan.least)
    state.next_due = min(state.next_due, kept.start[index])
    alike = True
    for p in range(given.shape[1]):
        alike = alike and kept.before[p, 0] == given[index, p, 0] and kept.before[p, 1] == given[index, p, 1]
    occupy(state, machine, plan, job, index, kept.start[index], 1)
    end = kept.start[index] + job.own_length
    if not alike:
        _note_opening(state, machine.pools_of, plan, kept, kept.before, begin, begin + job.own_length)
    elif kept.start[index] < begin:  # where the places overlap, nothing has been given back
        _note_opening(state, machine.pools_of, plan, kept, kept.before, max(begin, end), begin + job.own_length)


@kernel
def _may_shift(state, machine, plan, job, index, begin):
    """Whether a job would have more of a pool than it has, and less of one behind, if it got the same place again."""
    procs, second = job.procs, job.second
    first = step_before(state, plan, begin + 1)
    for k in range(machine.pools_of.first[job.partition], machine.pools_of.first[job.partition + 1]):
        p = machine.pools_of.items[k]
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
def _reserve_newcomers(state, jobs, machine, line, plan, kept):
    """Reservations for the jobs that have none, in order of arrival.

    Where a limit has got room, all who have waited for it come at once, and most lose their places again: when the first of them start, the
    limit is full. If one of those was to start now, too, the pass is made again at this instant. From then on those get no place that would
    lose it then, as far as nobody who keeps his own comes behind them; NEVER stands for when they start.
    """
    if state.unreserved == 0:
        return
    state.candidates = 0
    for i in range(state.waiting):
        index = line.queue[i].job
        if kept.start[index] < 0 and may_start(state, jobs, machine, index):
            push_candidate(state, line.candidates, 0.0, jobs[index].arrival, index)
            number = _only_limit(state, machine.limits, machine.limits_of, index)
            if number >= 0:
                machine.limits[number].due = 0
    prior, last = np.int64(-1), NEVER
    while state.candidates > 0 and line.candidates[0].tie <= last:
        index = next_candidate(state, line.candidates)
        prior = _reserve(state, jobs, machine, plan, kept, index, prior)
        number = _only_limit(state, machine.limits, machine.limits_of, index)
        if kept.start[index] == state.now and number >= 0:
            limit = machine.limits[number]
            limit.due += 1
            if limit.used_jobs + limit.due == limit.jobs + 1:
                last = _last_to_keep_its_place(state, jobs, machine, line.candidates, plan)
    _take_together(state, jobs, machine.partitions_of, plan, kept, prior)
    for k in range(state.candidates):
        kept.start[line.candidates[k].job] = NEVER


@kernel
def _only_limit(state, limits, limits_of, index):
    """The limit of a job that has no other, if it counts nothing but jobs, by number; else -1."""
    first = limits_of.first[index]
    if state.windowed or limits_of.first[index + 1] != first + 1:
        return -1
    limit = limits[limits_of.items[first]]
    return limits_of.items[first] if limit.procs == NEVER and limit.second == NEVER else -1


@called_kernel
def _last_to_keep_its_place(state, jobs, machine, candidates, plan):
    """Of the candidates, the last arrival of one that may keep the place that it gets, or gets none, or the first one that is recorded."""
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
    """Give a job the earliest place that the plan has, if there is one; returns the job if so, else `prior`.

    Since `prior`, which is -1 for none, got its place nothing has been given back: no job that needs at least as much for at least as long
    finds an earlier one. Of many like jobs each begins its search where the last has ended; and as long as enough is left there, which
    `plan.least` tells, they get equal places, which are taken out of the plan together, when another one is needed (`_take_together`).
    """
    job, given, least, taken = jobs[index], machine.given, plan.least, kept.before
    state.longest = max(state.longest, job.own_length)
    if prior >= 0 and _is_like(job, jobs[prior]) and _is_enough(machine.pools_of, least, job):
        begin = kept.start[prior]
    else:
        _take_together(state, jobs, machine.partitions_of, plan, kept, prior)
        earliest = kept.start[prior] if prior >= 0 and _needs_no_less(job, jobs[prior]) else state.now
        begin = first_hole(state, machine.pools, machine.pools_of, plan, job, earliest)
    if begin == NEVER:
        for p in range(least.shape[0]):
            least[p, 0] = least[p, 1] = 0
        return prior
    share(machine.pools, machine.pools_of, given, job, index, least)
    for k in range(machine.pools_of.first[job.partition], machine.pools_of.first[job.partition + 1]):
        p = machine.pools_of.items[k]
        for resource in range(2):
            least[p, resource] -= given[index, p, resource]
            taken[p, resource] += given[index, p, resource]
    kept.start[index] = begin
    kept.length[index], kept.size[index] = job.own_length, size_class(job.procs)
    kept.openings[job.partition, kept.size[index]].jobs += 1
    state.next_due = min(state.next_due, begin)
    state.unreserved -= 1
    if job.reserved_start < 0:
        job.reserved_start = begin
    return index


@called_kernel
def _take_together(state, jobs, partitions_of, plan, kept, prior):
    """Take out of the plan what `kept.before` sums up of the last places, equal to that of `prior`, -1 for none; it has nothing then."""
    if prior >= 0:
        begin = kept.start[prior]
        occupy_until(state, partitions_of, kept.before, plan, begin, begin + jobs[prior].own_length, 1)
    for p in range(kept.before.shape[0]):
        kept.before[p, 0] = kept.before[p, 1] = 0


@kernel
def _is_like(job, other):
    """Whether a job needs the same as another one, of the same partition and for as long."""
    return (
        job.partition == other.partition and job.procs == other.procs and job.second == other.second and job.own_length == other.own_length
    )


@kernel
def _is_enough(pools_of, least, job):
    """Whether enough for a job is left of what has stayed free of its pools for all of the last place."""
    procs, second = job.procs, job.second
    for k in range(pools_of.first[job.partition], pools_of.first[job.partition + 1]):
        procs -= least[pools_of.items[k], 0]
        second -= least[pools_of.items[k], 1]
    return procs <= 0 and second <= 0


@kernel
def _needs_no_less(job, other):
    """Whether a job needs at least as much as another one, of the same partition and for at least as long."""
    return (
        job.partition == other.partition and job.procs >= other.procs and job.second >= other.second and job.own_length >= other.own_length
    )


@kernel
def _start_due(state, rules, jobs, machine, line, plan, kept):
    """Start the jobs whose reservation is now, in order of arrival; those that a limit stops meanwhile lose it in another pass."""
    queue, candidates = line.queue, line.candidates
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
        index = next_candidate(state, candidates)
        if may_start(state, jobs, machine, index):
            start_in_place(state, rules, jobs, machine, index, _waits_ahead(state, jobs, machine.pools_of, queue, kept, index))
            kept.openings[jobs[index].partition, kept.size[index]].jobs -= 1
            _hold(state, jobs, machine, plan, kept, index)
        else:
            state.again = state.tightened = 1
            state.next_due = state.now
    drop_started(state, rules, jobs, line)


@kernel
def _hold(state, jobs, machine, plan, kept, index):
    """Give back the end of the place of a job that is expected to run for less than it was planned."""
    expected, planned = state.now + jobs[index].run_length, state.now + jobs[index].own_length
    if expected < planned:
        occupy_until(state, machine.partitions_of, machine.given[index], plan, expected, planned, -1)
        _note_opening(state, machine.pools_of, plan, kept, machine.given[index], expected, planned)


@kernel
def _waits_ahead(state, jobs, pools_of, queue, kept, index):
    """Whether a job that arrived before this one waits with a reservation, and shares a pool with it."""
    for i in range(state.waiting):
        other = queue[i].job
        if kept.start[other] >= 0 and jobs[other].start < 0 and jobs[other].arrival < jobs[index].arrival:
            if share_a_pool(pools_of, jobs[other].partition, jobs[index].partition):
                return True
    return False
