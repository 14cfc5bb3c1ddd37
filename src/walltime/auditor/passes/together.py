"""The passes that compare combinations or positions of jobs: lookahead, slack-based backfilling, and plan-based scheduling; compiled."""

import math

import numpy as np

from walltime.auditor.passes.places import kind_behind, start
from walltime.auditor.passes.profile import build, reserve
from walltime.auditor.passes.singly import BY_PLAN as SINGLY_BY_PLAN, find_shadow, near_enough, note_head, start_heads
from walltime.auditor.passes.state import BACKFILLED, NEVER, WAITING
from walltime.compiled.jit import called_kernel, kernel

BY_PROCS, BY_SECONDS, BY_PROCSECONDS, BY_SLOWDOWN = range(4)
OBJECTIVES = {"procs": BY_PROCS, "seconds": BY_SECONDS, "procseconds": BY_PROCSECONDS, "slowdown": BY_SLOWDOWN}
MORE_THAN_SLOWDOWNS = 2**40


@kernel
def worth(state, rules, jobs, job):
    """Return the value of a job in a combination, by the policy's objective."""
    if rules.objective == BY_SECONDS:
        return jobs[job].own
    if rules.objective == BY_PROCSECONDS:
        return jobs[job].procs * jobs[job].own
    if rules.objective == BY_SLOWDOWN:
        slowdown = 1000 * (state.now - jobs[job].submit + jobs[job].own) // jobs[job].own
        return jobs[job].procs * MORE_THAN_SLOWDOWNS + min(slowdown, np.int64(2**34))
    return jobs[job].procs


@called_kernel
def fill(tables, table, in_time, count, most):
    """Fill one table with the highest value of the jobs from each index on, for up to `most` processors: jobs in time, or others."""
    for room in range(most + 1):
        table[count, room] = 0
    for k in range(count - 1, -1, -1):
        procs = tables.procs[k]
        for room in range(most + 1):
            table[k, room] = table[k + 1, room]
            if tables.in_time[k] == in_time and room >= procs:
                table[k, room] = max(table[k, room], tables.worth[k] + table[k + 1, room - procs])


@kernel
def best(tables, first, free, extra):
    """Return the highest value of a combination of the jobs from this one on; jobs that do not end in time share the extra processors."""
    most = np.int64(0)
    for room in range(min(free, extra) + 1):
        most = max(most, tables.long[first, room] + tables.short[first, free - room])
    return most


@called_kernel
def together(state, rules, jobs, lists, tables):
    """Run EASY, or a pass without a reservation, that backfills the best combination (Shmueli and Feitelson 2005)."""
    while True:
        if not start_heads(state, rules, jobs, lists):
            return False
        if state.waiting == 0:
            return True
        head, shadow, extra = lists.line[0], NEVER, np.int64(0)
        if rules.depth > 0:
            shadow, extra = find_shadow(state, rules, jobs, lists, head)
            note_head(jobs, head, shadow)
        count, place = 0, 0
        while place < state.waiting and count < rules.ahead:
            job = lists.back[place]
            place += 1
            if job == head or jobs[job].procs > state.free or not near_enough(rules, jobs, job, head):
                continue
            in_time = state.now + jobs[job].own <= shadow
            if in_time or jobs[job].procs <= extra:
                lists.other[count] = job
                tables.procs[count], tables.in_time[count] = jobs[job].procs, 1 if in_time else 0
                tables.worth[count] = worth(state, rules, jobs, job)
                count += 1
        if count == 0:
            return True
        free, extra = state.free, min(extra, state.free)
        fill(tables, tables.short, 1, count, free)
        fill(tables, tables.long, 0, count, extra)
        for k in range(count):
            procs, in_time = tables.procs[k], tables.in_time[k] == 1
            if procs > free or (not in_time and procs > extra):
                continue
            left = extra if in_time else extra - procs
            if tables.worth[k] + best(tables, k + 1, free - procs, left) == best(tables, k, free, extra):
                free, extra = free - procs, left
                if not start(state, rules, jobs, lists, lists.other[k], BACKFILLED):
                    return False


@called_kernel
def reserve_in_order(state, jobs, lists, profile, count):
    """Make new reservations for the first `count` jobs of `lists.other`."""
    build(state, jobs, lists, profile)
    for k in range(count):
        jobs[lists.other[k]].reservation = reserve(state, jobs, profile, lists.other[k])


@called_kernel
def within_slack(state, rules, jobs, lists, profile):
    """Insert each new job as early in the order as the slacks of the other jobs allow (the idea of Talby and Feitelson 1999).

    The order is `lists.other[:slack_count]`.
    """
    line, count = lists.other, 0
    for k in range(state.slack_count):
        if jobs[line[k]].phase == WAITING:
            line[count] = line[k]
            count += 1
    reserve_in_order(state, jobs, lists, profile, count)
    for k in range(state.waiting):
        job = lists.queue[k]
        if jobs[job].latest >= 0:
            continue  # it already has a position
        place = first_place(state, jobs, lists, profile, job, count)
        for k_of in range(count, place, -1):
            line[k_of] = line[k_of - 1]
        line[place] = job
        count += 1
        reserve_in_order(state, jobs, lists, profile, count)
        jobs[job].reserved = jobs[job].reservation
        recent = min(state.started, rules.recent)
        waited = 0
        for k_of in range(recent):
            waited += lists.recent[k_of]
        mean = waited / recent if recent > 0 else 0.0
        jobs[job].latest = jobs[job].reservation + int(rules.factor * max(mean, 1.0))
    state.slack_count = count
    for k in range(count):
        lists.scratch[k] = line[k]
    for k in range(count):
        job = lists.scratch[k]
        if jobs[job].reservation == state.now:
            kind = kind_behind(state, jobs, job, lists.queue, state.waiting)
            if not start(state, rules, jobs, lists, job, kind):
                return False
    return True


@called_kernel
def first_place(state, jobs, lists, profile, job, count):
    """Return the first position at which a new job moves no other job beyond its slack."""
    for place in range(count):
        build(state, jobs, lists, profile)
        for k in range(place):
            reserve(state, jobs, profile, lists.other[k])
        reserve(state, jobs, profile, job)
        fits = True
        for k in range(place, count):
            other = lists.other[k]
            if reserve(state, jobs, profile, other) > max(jobs[other].latest, jobs[other].reservation):
                fits = False
                break
        if fits:
            return place
    return count


@kernel
def draw(state):
    """Return the next random number between 0 and 1 (the minimal standard generator of Park and Miller)."""
    state.random = state.random * 48271 % 2147483647
    return state.random / 2147483647


@kernel
def copy_from(source, target, first, last):
    """Copy jobs of one list to the same indices of another."""
    for k in range(first, last):
        target[k] = source[k]


@called_kernel
def cost_of_plan(state, rules, jobs, lists, profile, count):
    """Plan the jobs `lists.other[:count]` in turn; return the sum of the powers of their planned waits."""
    reserve_in_order(state, jobs, lists, profile, count)
    cost = 0.0
    for k in range(count):
        wait = float(jobs[lists.other[k]].reservation - jobs[lists.other[k]].submit)
        cost += wait if rules.cost_power == 1 else wait * wait
    return cost


@called_kernel
def sort_first(jobs, line, count, by):
    """Sort jobs by rising (1) or falling (2) processors, or by rising (3) or falling (4) planned runtime; ties by arrival."""
    sign = 1 if by % 2 == 1 else -1
    for k in range(1, count):
        job, place = line[k], k
        own = sign * (jobs[job].own if by > 2 else jobs[job].procs)
        while place > 0 and own < sign * (jobs[line[place - 1]].own if by > 2 else jobs[line[place - 1]].procs):
            line[place] = line[place - 1]
            place -= 1
        line[place] = job


@called_kernel
def annealed(state, rules, jobs, lists, profile):
    """Search for the plan with the lowest waits by simulated annealing, and start its jobs that are due (Kopanski and Rzadca 2021)."""
    count = min(state.waiting, rules.ahead)
    least = most = before = 0.0
    for by in range(5):
        copy_from(lists.queue, lists.other, 0, count)
        if by > 0:
            sort_first(jobs, lists.other, count, by)
        cost = cost_of_plan(state, rules, jobs, lists, profile, count)
        most = max(most, cost)
        if by == 0 or cost < least:
            least = before = cost
            copy_from(lists.other, lists.scratch, 0, count)
    copy_from(lists.scratch, lists.other, 0, count)
    temperature = most - least
    if temperature == 0.0:
        temperature = 0.1 * least
    for swap in range(rules.iterations):
        if temperature == 0.0:
            break
        one = int(draw(state) * count)
        two = int(draw(state) * count)
        lists.other[one], lists.other[two] = lists.other[two], lists.other[one]
        cost = cost_of_plan(state, rules, jobs, lists, profile, count)
        if cost >= before and draw(state) >= math.exp((before - cost) / temperature):
            lists.other[one], lists.other[two] = lists.other[two], lists.other[one]
        else:
            before = cost
        if before < least:
            least = before
            copy_from(lists.other, lists.scratch, 0, count)
        if swap % 6 == 5:
            temperature *= 0.9
    copy_from(lists.scratch, lists.other, 0, count)
    copy_from(lists.queue, lists.other, count, state.waiting)
    reserve_in_order(state, jobs, lists, profile, state.waiting)
    waiting = state.waiting
    copy_from(lists.queue, lists.scratch, 0, waiting)
    for k in range(waiting):
        job = lists.scratch[k]
        if jobs[job].reserved < 0:
            jobs[job].reserved = jobs[job].reservation
        if jobs[job].reservation == state.now and not start(
            state, rules, jobs, lists, job, kind_behind(state, jobs, job, lists.queue, state.waiting)
        ):
            return False
    return True


BY_PLAN = {**SINGLY_BY_PLAN, "slack": within_slack, "plan": annealed}
