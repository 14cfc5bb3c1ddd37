"""The event loop for Slurm's scheduling: a main scheduler at events, and a backfill scheduler in cycles, on single nodes.

The rules, which reference/nodes.py states again in plain Python:

* The queue is in order of the partition's tier, then priority, then arrival. A job over one of its limits is passed over.
* The main scheduler runs when a job has come or ended, over the first `depth` jobs, and at every multiple of `interval` over all, if
  something has happened. It starts jobs in order; one that does not fit closes its partition, and the nodes of it, to all behind it.
* Backfill runs at every multiple of `cycle` if something has happened since the last time: a job came, ended, started or outlived what it
  was planned for, capacity changed, or the queue has another order. It tries `most_tested` jobs in order. A job gets the earliest time, at
  most `window` ahead, at which enough nodes are free of running jobs (by their planned ends) and stay free of reservations; if that is
  now it starts, else its nodes are kept for it as a whole, from then (rounded down to `resolution`) until it would end (rounded up).
* A job with a `time_min` is planned by it in backfill, and when it starts it gets what fits, in minutes, at least that; or, if that is a
  soft limit, its whole limit.
* Nodes are taken as choice.py says. An outage that is known is like a reservation. What runs when an outage begins runs on.

Simplified: passes take no time, so nothing changes while they are made.
"""

from __future__ import annotations

from walltime.engine.kernel.heap import drop_first, push
from walltime.engine.kernel.jit import called_kernel, kernel
from walltime.engine.kernel.memory import BACKFILLED, DONE, IMMEDIATE, NEVER, PAUSED, RESERVED, STUCK
from walltime.engine.kernel.nodes.choice import (
    add_block,
    add_step,
    choose,
    could_start,
    earliest,
    keep,
    least_by_bounds,
    least_by_sum,
    note_bound,
    room_until,
)
from walltime.engine.kernel.nodes.priority import count_end, priority_of, rank_users, sum_up_use
from walltime.engine.kernel.pools.passes import count_towards_limits, within_limits


def run_slurm(
    state, rules, jobs, nodes, partitions, nodes_of, member, outs, out_nodes, changes, limits, limits_of, followers, first, arrivals,
    events, running, queue, slots, plan, tree, of_user, of_user_in_partition, budget,
):  # fmt: skip
    """Simulate until all jobs have started and ended, or until about `budget` steps have been taken; returns as `run` of loop.py does."""
    if not state.begun:
        rank_users(rules, tree)
        _place_first(state, rules, jobs, nodes, nodes_of, member, limits, limits_of, events, running, slots, plan, first)
        state.begun = 1
    if state.no_room > 0:
        return STUCK
    while budget > 0:
        now = _next_event(state, rules, changes, arrivals, events, running)
        if now == NEVER:
            return DONE if state.started == len(jobs) else STUCK
        state.now = now
        while rules.multifactor == 1 and state.next_sum <= now:
            _compute_priorities(state, rules, jobs, running, queue, tree)
        came = gone = False
        while state.events > 0 and events[0].rank == now:
            _end_next(state, rules, jobs, nodes, limits, limits_of, followers, arrivals, events, running, slots, tree)
            gone = True
        while state.next_change < len(changes) and changes[state.next_change].time == now:
            outs[changes[state.next_change].outage].phase = changes[state.next_change].phase
            state.next_change += 1
            gone = True
        while state.arriving > 0 and arrivals[0].rank == now:
            _arrive(state, rules, jobs, arrivals, queue, tree)
            came = True
        if came or gone:
            state.news = state.news_for_all = 1
        if gone:
            state.holds = 0
        if state.waiting > 0:
            full = rules.interval > 0 and now % rules.interval == 0 and state.news_for_all > 0
            if full or gone or (came and not rules.defer):
                _main_pass(
                    state, rules, jobs, nodes, partitions, nodes_of, member, outs, out_nodes, limits, limits_of, events, running, queue,
                    slots, plan, NEVER if full else rules.depth,
                )  # fmt: skip
                if full:
                    state.news_for_all = 0
            if running[0].expected <= now and state.running > 0:
                state.news, state.holds = 1, 0
            if rules.backfill and state.news > 0 and now % rules.cycle == 0:
                state.news = 0
                budget -= _cycle(
                    state, rules, jobs, nodes, partitions, nodes_of, member, outs, out_nodes, limits, limits_of, events, running, queue,
                    slots, plan, of_user, of_user_in_partition,
                )  # fmt: skip
            _wait_for_age(state, rules, jobs, queue)
        budget -= 1 + state.waiting
    return PAUSED


@kernel
def _next_event(state, rules, changes, arrivals, events, running):
    """Time of the next event, or of the next pass that has something to look at."""
    now = NEVER
    if state.arriving > 0:
        now = arrivals[0].rank
    if state.events > 0:
        now = min(now, events[0].rank)
    if state.next_change < len(changes) and (now < NEVER or state.waiting > 0):
        now = min(now, changes[state.next_change].time)
    if state.waiting == 0:
        return now
    if rules.multifactor == 1 and now < NEVER:
        now = min(now, state.next_sum)
    news = state.news > 0
    if state.running > 0:
        if running[0].expected <= state.now:
            news = True
        else:
            now = min(now, running[0].expected)
    if rules.backfill and news:
        now = min(now, (state.now // rules.cycle + 1) * rules.cycle)
    if rules.interval > 0 and state.news_for_all > 0:
        now = min(now, (state.now // rules.interval + 1) * rules.interval)
    return now


@called_kernel
def _place_first(state, rules, jobs, nodes, nodes_of, member, limits, limits_of, events, running, slots, plan, first):
    """The jobs that run at the beginning get their nodes, in order of their starts."""
    for k in range(state.at_first):
        index = first[k]
        if earliest(jobs, nodes, member, slots, plan, 0, 0, index, 1, state.now, state.now) == NEVER:
            state.no_room = index + 1
            return
        choose(state, jobs, nodes, nodes_of, plan, index)
        _run(state, rules, jobs, nodes, limits, limits_of, events, running, slots, plan, index, jobs[index].start, jobs[index].believed)


@called_kernel
def _end_next(state, rules, jobs, nodes, limits, limits_of, followers, arrivals, events, running, slots, tree):
    """The next termination: give back what the job had, and let those arrive that have waited for its end alone."""
    index = events[0].job
    drop_first(events, state.events)
    state.events -= 1
    place = 0
    while running[place].job != index:
        place += 1
    for i in range(place, state.running - 1):
        running[i] = running[i + 1]
    state.running -= 1
    job = jobs[index]
    for k in range(job.first, job.first + job.count):
        nodes.free_procs[slots[k].node] += slots[k].procs
        nodes.free_second[slots[k].node] += slots[k].second
    count_towards_limits(jobs, limits, limits_of, index, -1)
    if rules.multifactor == 1:
        count_end(state, rules, jobs, tree, index)
    for k in range(followers.first[index], followers.first[index + 1]):
        follower = jobs[followers.items[k]]
        follower.pending -= 1
        if follower.follows == index:
            follower.submit = max(state.now + follower.think, 0)
        else:
            follower.submit = max(follower.submit, state.now)
        if follower.pending == 0:
            follower.submit = max(follower.submit, state.now)
            push(arrivals, state.arriving, follower.submit, followers.items[k], followers.items[k])
            state.arriving += 1


@called_kernel
def _arrive(state, rules, jobs, arrivals, queue, tree):
    """The next arrival takes its place in the queue."""
    index = arrivals[0].job
    drop_first(arrivals, state.arriving)
    state.arriving -= 1
    jobs[index].arrival = state.arrivals
    state.arrivals += 1
    jobs[index].priority = priority_of(state, rules, jobs, tree, index, state.now)
    queue[state.waiting] = index
    if _put_in_order(jobs, queue, state.waiting) < state.seen_to:
        state.holds = 0
    state.waiting += 1


@kernel
def _put_in_order(jobs, queue, place):
    """Move the job at a place of the queue before all that come after it, where those before it are in order; returns its place."""
    index = queue[place]
    while place > 0 and _comes_before(jobs[index], jobs[queue[place - 1]]):
        queue[place] = queue[place - 1]
        place -= 1
    queue[place] = index
    return place


@kernel
def _comes_before(job, other):
    """Whether a job is considered before another one."""
    if job.tier != other.tier:
        return job.tier > other.tier
    if job.priority != other.priority:
        return job.priority > other.priority
    return job.arrival < other.arrival


@called_kernel
def _compute_priorities(state, rules, jobs, running, queue, tree):
    """Sum up the use of the last period and put the queue in order of its new priorities; another order is news."""
    when = state.next_sum
    sum_up_use(state, rules, jobs, running, tree)
    for i in range(state.waiting):
        before = jobs[queue[i]].priority
        jobs[queue[i]].priority = priority_of(state, rules, jobs, tree, queue[i], when)
        moved = _put_in_order(jobs, queue, i) < i
        if moved or (rules.least_priority > 0 and before != jobs[queue[i]].priority):
            state.news = state.news_for_all = 1
            state.holds = 0


@kernel
def _wait_for_age(state, rules, jobs, queue):
    """While jobs wait for the age from which on they have reservations, time itself is news."""
    for i in range(state.waiting if rules.least_age > 0 else 0):
        if state.now - jobs[queue[i]].submit < rules.least_age:
            state.news = 1


@kernel
def _see_outages(state, outs, out_nodes, plan):
    """Begin a plan with the outages that are known."""
    state.blocks = state.planned = 0
    for k in range(len(outs)):
        if outs[k].phase == 1:
            begin = state.planned
            for i in range(outs[k].first, outs[k].first + outs[k].count):
                plan.nodes[state.planned] = out_nodes[i]
                state.planned += 1
            add_block(state, plan, outs[k].begin, outs[k].end, begin, outs[k].count)


@called_kernel
def _main_pass(
    state, rules, jobs, nodes, partitions, nodes_of, member, outs, out_nodes, limits, limits_of, events, running, queue, slots, plan, depth
):  # fmt: skip
    """Start the jobs that fit in order of the queue; a partition is closed with the first that does not."""
    for p in range(len(partitions)):
        partitions[p].closed = partitions[p].tried = 0
    held = state.blocks, state.planned, state.releases  # the plan of the last cycle
    _see_outages(state, outs, out_nodes, plan)
    if state.blocks > 0:
        state.holds = 0
    state.releases = closed = 0
    bounds, state.bounds = state.bounds, 0
    before = state.started
    for i in range(min(state.waiting, depth)):
        index = queue[i]
        job = jobs[index]
        part = partitions[job.partition]
        if part.closed > 0:
            continue
        part.tried += 1
        if rules.partition_depth > 0 and part.tried > rules.partition_depth:
            continue
        if not within_limits(jobs, limits, limits_of, index):
            continue
        if earliest(jobs, nodes, member, slots, plan, 0, state.blocks, index, job.believed, state.now, state.now) == state.now:
            choose(state, jobs, nodes, nodes_of, plan, index)
            job.kind = IMMEDIATE if job.submit == state.now else RESERVED
            _run(state, rules, jobs, nodes, limits, limits_of, events, running, slots, plan, index, state.now, job.believed)
        elif not _has_no_claim(state, rules, job):
            part.closed = 1
            closed += 1
            for k in range(nodes_of.first[job.partition], nodes_of.first[job.partition + 1]):
                nodes.closed[nodes_of.items[k]] = 1
            if closed == len(partitions):
                break
    for n in range(len(nodes.procs) if closed > 0 else 0):
        nodes.closed[n] = 0
    if state.holds:
        state.blocks, state.planned, state.releases = held
        state.bounds = bounds
    if state.started > before:
        state.news, state.holds = 1, 0
        _drop_started(state, jobs, queue)


@kernel
def _has_no_claim(state, rules, job):
    """Whether a job is too young, or of too low a priority, to hold others up."""
    return job.priority < rules.least_priority or state.now - job.submit < rules.least_age


@kernel
def _drop_started(state, jobs, queue):
    left = 0
    for i in range(state.waiting):
        if jobs[queue[i]].start < 0:
            queue[left] = queue[i]
            left += 1
    state.waiting = left


@called_kernel
def _cycle(
    state, rules, jobs, nodes, partitions, nodes_of, member, outs, out_nodes, limits, limits_of, events, running, queue, slots, plan,
    of_user, of_user_in_partition,
):  # fmt: skip
    """One cycle of backfill; returns about how many steps it took.

    Where only jobs behind those of the last cycle have come since, its plan holds and is continued. It goes as far as the last job that
    could start now, or that has had no reservation yet: those behind it change nothing.
    """
    if not state.holds:
        state.users_counted += 1
        state.tested = state.seen_to = state.bounds = 0
        for p in range(len(partitions)):
            partitions[p].tested = partitions[p].reserved = 0
        for n in range(len(nodes.procs)):
            plan.kept_from[n] = NEVER
        _see_outages(state, outs, out_nodes, plan)
    before, begun_at = state.started, state.tested
    _see_what_is_free(state, nodes, plan)
    last = state.waiting
    if len(limits) == 0:  # else some jobs are passed over, and do not count
        last = min(last, state.seen_to + rules.most_tested - state.tested)
    last = _last_that_matters(state, rules, jobs, nodes, partitions, member, queue, plan, last)
    if not state.holds:
        if last == 0:  # nobody needs a plan
            return len(nodes.procs) // 8
        _plan_running(state, rules, jobs, running, slots, plan)
    state.holds = 1 if rules.least_age == 0 else 0
    while state.seen_to < last:
        index = queue[state.seen_to]
        job = jobs[index]
        part = partitions[job.partition]
        if len(limits) > 0 and not within_limits(jobs, limits, limits_of, index):
            state.seen_to += 1
            continue
        if state.tested == rules.most_tested:
            break
        state.seen_to += 1
        state.tested += 1
        if _is_one_too_many(state, rules, part, of_user, of_user_in_partition, len(partitions), job):
            continue
        length = job.time_min if job.time_min > 0 else job.believed
        no_claim = _has_no_claim(state, rules, job) or (rules.most_reserved > 0 and part.reserved >= rules.most_reserved)
        latest = state.now if no_claim else state.now + rules.window
        begin = bound = least_by_bounds(state, jobs, plan, index, length, latest)
        if bound <= latest:
            least = least_by_sum(state, jobs, plan, index, length, bound, latest)
            begin = earliest(jobs, nodes, member, slots, plan, state.releases, state.blocks, index, length, least, latest)
        if begin > bound and not no_claim:
            note_bound(state, jobs, plan, index, length, begin)
        if begin == NEVER:
            if not no_claim:  # it may come within the window
                state.holds = 0
            continue
        choose(state, jobs, nodes, nodes_of, plan, index)
        if begin > state.now:
            part.reserved += 1
            if job.reserved_start < 0:
                job.reserved_start = begin
            keep(state, plan, begin, length, rules.resolution)
        else:
            job.kind = BACKFILLED
            limit = job.believed
            if job.time_min > 0 and not rules.soft:
                room = room_until(state, plan, state.now + job.believed) - state.now
                if room < job.believed:
                    limit = max(job.time_min, room // 60 * 60)
            place = _run(state, rules, jobs, nodes, limits, limits_of, events, running, slots, plan, index, state.now, limit)
            _see_what_is_free(state, nodes, plan)
            _plan_started(state, jobs, slots, running[place].expected, plan, index)
            if rules.most_started > 0 and state.started - before >= rules.most_started:
                break
        last = _last_that_matters(state, rules, jobs, nodes, partitions, member, queue, plan, last)
    if state.started > before:
        state.news, state.holds = 1, 0
        _drop_started(state, jobs, queue)
    return (state.tested - begun_at) * (8 + len(nodes.procs) // 8 + state.blocks)


@kernel
def _see_what_is_free(state, nodes, plan):
    """Note the nodes of which something is free, and how many processors are."""
    state.free = state.free_procs = 0
    for n in range(len(nodes.procs)):
        state.free_procs += nodes.free_procs[n]
        if nodes.free_procs[n] > 0:
            plan.free[state.free] = n
            state.free += 1


@called_kernel
def _last_that_matters(state, rules, jobs, nodes, partitions, member, queue, plan, last):
    """The place behind the last job, before the place `last`, that could start now by the plan so far, or needs its first reservation."""
    while last > state.seen_to:
        job = jobs[queue[last - 1]]
        if (job.reserved_start < 0 and not rules.starts_only) or could_start(state, nodes, member, plan, job):
            break
        last -= 1
    return last


@kernel
def _is_one_too_many(state, rules, part, of_user, of_user_in_partition, parts, job):
    """Whether a cycle has tried enough jobs of this one's user or partition."""
    if rules.most_of_user <= 0 and rules.most_of_partition <= 0 and rules.most_of_user_in_partition <= 0:
        return False
    user, both = of_user[job.user], of_user_in_partition[job.user * parts + job.partition]
    if user.stamp != state.users_counted:
        user.stamp, user.count = state.users_counted, 0
    if both.stamp != state.users_counted:
        both.stamp, both.count = state.users_counted, 0
    if rules.most_of_user > 0 and user.count >= rules.most_of_user:
        return True
    if rules.most_of_partition > 0 and part.tested >= rules.most_of_partition:
        return True
    if rules.most_of_user_in_partition > 0 and both.count >= rules.most_of_user_in_partition:
        return True
    user.count += 1
    both.count += 1
    part.tested += 1
    return False


@kernel
def _plan_running(state, rules, jobs, running, slots, plan):
    """When the running jobs give their nodes back; one that is overdue in a second, or after half of what its limit leaves it."""
    state.releases = state.steps = 0
    for i in range(state.running):
        time = running[i].expected
        if time <= state.now:
            job = jobs[running[i].job]
            left = (job.start + job.limit - state.now) // 2 if rules.soft and rules.half and job.time_min > 0 else 0
            time = state.now + max(1, left)
        _plan_started(state, jobs, slots, time, plan, running[i].job)


@kernel
def _plan_started(state, jobs, slots, time, plan, index):
    """Add a job to those that will give their nodes back."""
    procs = 0
    for k in range(jobs[index].first, jobs[index].first + jobs[index].count):
        procs += slots[k].procs
    add_step(state, plan, time, procs)
    i = state.releases
    while i > 0 and plan.releases[i - 1].time > time:
        plan.releases[i].time, plan.releases[i].job = plan.releases[i - 1].time, plan.releases[i - 1].job
        i -= 1
    plan.releases[i].time, plan.releases[i].job = time, index
    state.releases += 1


@called_kernel
def _run(state, rules, jobs, nodes, limits, limits_of, events, running, slots, plan, index, start, limit):
    """Start a job on the nodes that have been chosen for it; returns its place among the running ones."""
    job = jobs[index]
    job.start, job.limit, job.first, job.count = start, limit, state.slots, state.chosen
    if rules.kill and limit < job.believed:
        job.runtime = min(job.runtime, limit)
    for k in range(state.chosen):
        chosen, slot = plan.chosen[k], slots[state.slots]
        slot.node, slot.procs, slot.second = chosen.node, chosen.procs, chosen.second
        nodes.free_procs[chosen.node] -= chosen.procs
        nodes.free_second[chosen.node] -= chosen.second
        state.slots += 1
    count_towards_limits(jobs, limits, limits_of, index, 1)
    push(events, state.events, start + job.runtime, state.started, index)
    state.events += 1
    state.started += 1
    expected = start + (job.time_min if rules.soft and rules.half and job.time_min > 0 else limit)
    i = state.running
    while i > 0 and running[i - 1].expected > expected:
        running[i] = running[i - 1]
        i -= 1
    running[i].expected, running[i].job = expected, index
    state.running += 1
    return i
