"""The event loop for Slurm's scheduling: a main scheduler at events, and a backfill scheduler in cycles, on individual nodes.

The rules, which reference/slurm.py and reference/nodes.py implement in plain Python:

* The queue is in order of the partition's tier, then priority, then submission. A job over one of its limits is passed over (limits.py).
* The main scheduler runs when a job has arrived or ended, over the first `depth` jobs, and at every multiple of `interval` over all jobs,
  if something has happened. It starts jobs in order; a job that does not fit closes its partition and its nodes to all jobs behind it.
* Backfill runs at every multiple of `cycle` if something has happened since the last cycle: a job arrived, ended, started or outlived its
  planned runtime, capacity changed, or the queue has another order. It tries `most_tested` jobs in order. A job gets the earliest time, at
  most `window` ahead, from which enough nodes are free of running jobs (by their planned ends) and of reservations. If that time is now,
  the job starts; otherwise its nodes are reserved as a whole, from that time (rounded down to `resolution`) to its planned end (rounded
  up). A job must end before a reservation of another one begins, not when it does.
* Backfill plans a job with a `time_min` for this time. When it starts the job, the job's limit is the time that fits, in whole minutes, but
  at least `time_min`; if `time_min` is a soft limit, the job keeps its full limit.
* A job that does not fit may preempt running jobs (preemption.py): these end after their grace time, at least a second later, when the main
  scheduler runs. A requeued job is eligible again after REQUEUE_DELAY, at its old place in the queue. Backfill plans a job as if the jobs
  that it may preempt had ended.
* choice.py chooses nodes. A known outage is treated like a reservation. When an outage begins, the jobs on its nodes continue, are
  requeued, or are cancelled, according to its `loss`.
* The jobs of a user reservation have their own partition, of a higher tier. They use the nodes that the reservation has at that time, and
  after its end all nodes that it had. A job of it that does not fit closes only this partition, not its nodes.

Simplification: passes take no time, so nothing changes during a pass.
"""

from walltime.compiled.jit import called_kernel, inlined_kernel, kernel
from walltime.engine.kernel.heap import pop, push
from walltime.engine.kernel.memory import BACKFILLED, DONE, IMMEDIATE, NEVER, PAUSED, REACHED, RESERVED, STUCK
from walltime.engine.kernel.nodes.choice import choose, shortfall
from walltime.engine.kernel.nodes.events import change_outages, next_event, submit_followers
from walltime.engine.kernel.nodes.gains import refresh_earliest_starts
from walltime.engine.kernel.nodes.limits import exceeds_nodes, is_over_limit, prefer_held
from walltime.engine.kernel.nodes.plan import (
    FIRST,
    first_to_look_at,
    forget,
    holds_as_before,
    least_needed,
    leave_plan,
    length_of,
    look_ahead,
    measure_again,
    never_holds,
    room_until,
)
from walltime.engine.kernel.nodes.preemption import (
    free_candidates,
    is_any_exempt,
    lose_nodes,
    lose_run,
    may_preempt,
    preempt,
    restore_candidates,
)
from walltime.engine.kernel.nodes.priority import count_end, priority_of, rank_users, sum_up_use
from walltime.engine.kernel.nodes.records import CLOSED
from walltime.engine.kernel.nodes.use import end_use, is_any_overdue, move_overdue, start_use
from walltime.engine.kernel.pools.limits import use_limits


def run_slurm(state, rules, jobs, site, use, plan, traffic, budget):
    """Simulate until all jobs have started and ended, or until about `budget` steps have been taken; return the codes of `run_cluster`.

    It also pauses if there may be too little memory for the jobs that could start; `with_room` of memory.py adds more.
    """
    if not state.begun:
        rank_users(rules, traffic.tree)
        _place_first(state, rules, jobs, site, use, plan, traffic)
        state.begun = 1
    if state.no_room > 0:
        return STUCK
    while budget > 0 and (state.awaited == 0 or jobs[state.awaited - 1].start < 0):
        if not state.between:
            now = _next_time(state, rules, use, traffic)
            if now == NEVER and state.started - state.again == len(jobs):
                return DONE
            if now > state.until:
                return REACHED
            if now == NEVER:
                return STUCK
            state.now = now
            _process_events(state, rules, jobs, site, use, plan, traffic)
            state.between = 1
        if state.spare_rows < state.waiting or len(use.ranges) - state.ranges < state.most_ranges:
            return PAUSED
        if rules.preempts > 0 and len(use.lost) - state.lost < state.running + state.waiting:
            return PAUSED
        state.between = 0
        if state.waiting > 0:
            full = rules.interval > 0 and state.now % rules.interval == 0 and state.news_for_all > 0
            if (full or state.gone or (state.came and not rules.defer)) and not _is_blocked(state, rules, jobs, site, use, traffic):
                _main_pass(state, rules, jobs, site, use, plan, traffic, NEVER if full else rules.depth)
            if full:
                state.news_for_all = 0
            if is_any_overdue(state, use):
                state.news = 1
            if rules.backfill and state.news > 0 and state.now % rules.cycle == 0:
                state.news = 0
                budget -= _cycle(state, rules, jobs, site, use, plan, traffic)
            for i in range(state.waiting if rules.least_age > 0 else 0):
                if state.now - jobs[traffic.queue[i]].submit < rules.least_age:
                    state.news = 1  # while jobs wait to reach the age for reservations, the passing of time counts as news
            if rules.timed_limits and state.running > 0:
                state.news = state.news_for_all = 1
            if state.waiting > 0 and rules.preempts > 0 and is_any_exempt(state, jobs, site, use.running):
                state.news = state.news_for_all = 1
        budget -= 1 + state.waiting
    return PAUSED


@kernel
def _next_time(state, rules, use, traffic):
    """Return the time of the next event, or of the next pass that has something to consider."""
    now = next_event(state, traffic)
    if state.waiting == 0:
        return now
    if rules.multifactor == 1 and now < NEVER:
        now = min(now, state.next_sum)
    news = state.news > 0
    if is_any_overdue(state, use):
        news = True
    elif state.running > 0:
        now = min(now, use.running[0].expected)
    if rules.backfill and news:
        now = min(now, (state.now // rules.cycle + 1) * rules.cycle)
    if rules.interval > 0 and state.news_for_all > 0:
        now = min(now, (state.now // rules.interval + 1) * rules.interval)
    return now


@kernel
def _process_events(state, rules, jobs, site, use, plan, traffic):
    """Process all events of this instant before the schedulers run: priorities, terminations, outages, arrivals."""
    now, state.came, state.gone = state.now, 0, 0
    while rules.multifactor == 1 and state.next_sum <= now:
        _compute_priorities(state, rules, jobs, use, plan, traffic)
    if rules.preempts > 0:
        lose_nodes(state, jobs, site, use, traffic)
    while state.events > 0 and traffic.ends[0].rank == now:
        _end_next(state, rules, jobs, site, use, traffic)
        state.gone = 1
    if change_outages(state, site, traffic)[0] > 0:
        state.gone, state.bounds = 1, 0
        forget(state, plan, FIRST)
    while state.arriving > 0 and traffic.arrivals[0].rank == now:
        _arrive(state, rules, jobs, site, plan, traffic)
        state.came = 1
    if state.came or state.gone:
        state.news = state.news_for_all = 1


@inlined_kernel
def _place_first(state, rules, jobs, site, use, plan, traffic):
    """Give the jobs that run at the beginning their nodes, in order of their starts."""
    for k in range(state.at_first):
        index = traffic.at_first[k]
        if shortfall(state, jobs[index], site, use, plan, state.now, jobs[index].planned, 1) > 0:
            state.no_room = index + 1
            return
        choose(state, jobs[index], site, use, plan.choice, state.now)
        _run(state, rules, jobs, site, use, plan, traffic, index, jobs[index].start, jobs[index].planned)


@kernel
def _end_next(state, rules, jobs, site, use, traffic):
    """Handle the next termination: release the nodes of the job, and submit the jobs that wait for no other job."""
    index = pop(traffic.ends, state.events)
    state.events -= 1
    end_use(state, jobs[index], index, site, use)
    use_limits(jobs, traffic.limits, traffic.limits_of, index, -1)
    if rules.multifactor == 1:
        count_end(state, rules, jobs, traffic.tree, index)
    if rules.preempts == 0 or not lose_run(state, jobs, site, use, traffic, index):
        submit_followers(state, jobs, traffic, index)


@kernel
def _arrive(state, rules, jobs, site, plan, traffic):
    index = pop(traffic.arrivals, state.arriving)
    state.arriving -= 1
    jobs[index].arrival = state.arrivals
    if jobs[index].place < 0:
        jobs[index].place = state.arrivals
    state.arrivals += 1
    jobs[index].priority = priority_of(rules, jobs, traffic.tree, index, state.now)
    traffic.queue[state.waiting] = index
    traffic.needs[state.waiting] = least_needed(jobs[index], site.members[jobs[index].members])
    place = _put_in_order(jobs, traffic.queue, traffic.needs, state.waiting)
    if place < state.planned_count:
        forget(state, plan, place)
    state.waiting += 1


@kernel
def _put_in_order(jobs, queue, needs, place):
    """Insert the job at a place of the queue among the sorted jobs before it; return its new place."""
    if place == 0 or not _comes_before(jobs[queue[place]], jobs[queue[place - 1]]):
        return place
    index, need, first, end = queue[place], needs[place], 0, place - 1
    while first < end:
        middle = (first + end) // 2
        if _comes_before(jobs[index], jobs[queue[middle]]):
            end = middle
        else:
            first = middle + 1
    for k in range(place, end, -1):
        queue[k], needs[k] = queue[k - 1], needs[k - 1]
    queue[end], needs[end] = index, need
    return end


@kernel
def _comes_before(job, other):
    if job.tier != other.tier:
        return job.tier > other.tier
    if job.priority != other.priority:
        return job.priority > other.priority
    return job.place < other.place


@called_kernel
def _compute_priorities(state, rules, jobs, use, plan, traffic):
    """Add up the use of the last period and sort the queue by the new priorities; a changed order counts as news."""
    when, queue = state.next_sum, traffic.queue
    sum_up_use(state, rules, jobs, use.running, traffic.tree)
    for i in range(state.waiting):
        before = jobs[queue[i]].priority
        jobs[queue[i]].priority = priority_of(rules, jobs, traffic.tree, queue[i], when)
        place = _put_in_order(jobs, queue, traffic.needs, i)
        if place < min(i, state.planned_count):
            forget(state, plan, place)
        if place < i or (rules.least_priority > 0 and before != jobs[queue[i]].priority):
            state.news = state.news_for_all = 1


@kernel
def _is_blocked(state, rules, jobs, site, use, traffic):
    """Return whether the first job blocks all others because it lacks processors; the main scheduler then starts no job."""
    if len(site.partitions) > 1 or len(traffic.limits) > 0 or rules.preempts > 0 or traffic.needs[0] <= use.totals[0, 0]:
        return False
    return not _cannot_reserve(state, rules, jobs[traffic.queue[0]])


@inlined_kernel
def _main_pass(state, rules, jobs, site, use, plan, traffic, depth):
    """Start the jobs that fit, in queue order; the first job that does not fit closes its partition."""
    for p in range(len(site.partitions)):
        site.partitions[p].closed = site.partitions[p].tried = 0
    state.ahead = closed = 0
    before, place = state.started, state.ahead
    while place < state.waiting and place + state.started - before < depth:
        index = traffic.queue[place]
        job = jobs[index]
        part = site.partitions[job.partition]
        place += 1
        if part.closed > 0:
            continue
        part.tried += 1
        if rules.partition_depth > 0 and part.tried > rules.partition_depth:
            continue
        if is_over_limit(state, rules, jobs, use, traffic, index):
            continue
        if rules.node_limits:
            prefer_held(state, jobs, site, use, traffic, index)
        if _could_start(state, site, use, plan, job, job.planned):
            choose(state, job, site, use, plan.choice, state.now)
            if rules.node_limits and exceeds_nodes(state, jobs, site, use, plan, traffic, index, True):
                continue
            place -= 1
            job.kind = IMMEDIATE if job.submit == state.now else RESERVED
            if place < state.planned_count:
                leave_plan(state, site, plan, place)
            _run(state, rules, jobs, site, use, plan, traffic, index, state.now, job.planned)
            _leave_queue(state, traffic, place)
            continue
        if rules.preempts > 0 and may_preempt(state, job, site):
            preempt(state, rules, jobs, index, site, use, plan, traffic, job.planned, False)
        exceeds = rules.node_limits and exceeds_nodes(state, jobs, site, use, plan, traffic, index, False)
        if not (exceeds or _cannot_reserve(state, rules, job)):
            part.closed = 1
            closed += 1
            for w in range(site.sets.shape[1] if part.reservation == 0 else 0):
                state.closed = 1
                site.sets[CLOSED, w] |= site.sets[site.members[job.partition].row, w]
            if closed == len(site.partitions):
                break
    state.prefers = 0
    if state.closed:
        site.sets[CLOSED] = 0
        state.closed = 0
    if state.started > before:
        state.news = 1


@inlined_kernel
def _could_start(state, site, use, plan, job, length):
    """Return whether there is room for a job now, after the blocks ahead."""
    part = site.partitions[job.partition]
    if use.totals[0, part.kind] < least_needed(job, site.members[job.members]):
        return False
    return shortfall(state, job, site, use, plan, state.now, length, 1) == 0


@kernel
def _cannot_reserve(state, rules, job):
    """Return whether a job is too young, or of too low a priority, to have a reservation."""
    return job.priority < rules.least_priority or state.now - job.submit < rules.least_age


@kernel
def _leave_queue(state, traffic, place):
    state.waiting -= 1
    for i in range(place, state.waiting):
        traffic.queue[i], traffic.needs[i] = traffic.queue[i + 1], traffic.needs[i + 1]


@called_kernel
def _cycle(state, rules, jobs, site, use, plan, traffic):
    """Make a backfill cycle, up to the last job that could start or needs its first reservation; return about how many steps it took."""
    _begin_cycle(state, rules, jobs, site, use, plan)
    before, place, searches = state.started, state.ahead, 1
    counts_all = len(traffic.limits) == 0  # otherwise some jobs are passed over and do not count
    last = min(state.waiting, rules.most_tested) if counts_all else state.waiting
    last = _last_that_matters(state, rules, jobs, site, use, plan, place, last, traffic)
    while place < last:
        if counts_all and rules.all_count > 0:
            skipped, place = place, first_to_look_at(state, plan.earliest_starts, place, last, state.now + rules.window)
            state.tested += place - skipped
            if place == last:
                break
        index = traffic.queue[place]
        job = jobs[index]
        part = site.partitions[job.partition]
        within = counts_all or not is_over_limit(state, rules, jobs, use, traffic, index)
        if within and state.tested == rules.most_tested:
            break
        if not _is_considered(state, rules, plan, traffic, job, place, within):
            place += 1
            continue
        reserves = not (_cannot_reserve(state, rules, job) or (rules.most_reserved > 0 and part.reserved >= rules.most_reserved))
        reserves = reserves and job.unreserved == 0
        latest, planned = state.now + (rules.window if reserves else 0), state.planned_count
        holds = place < planned and holds_as_before(state, plan.earliest_starts[place], latest)
        searches += 0 if holds else 1
        freed, begin = 0, plan.earliest_starts[place].begin
        if rules.preempts > 0 and may_preempt(state, job, site) and not _could_start(state, site, use, plan, job, length_of(job)):
            freed = free_candidates(state, rules, jobs, index, site, use)
        while freed > 0 or not holds:
            begin = look_ahead(state, rules, jobs, index, site, use, plan, traffic, place, latest, freed > 0)
            if freed == 0:
                break
            restore_candidates(state, jobs, site, use, freed)
            if begin > state.now:
                break
            preempt(state, rules, jobs, index, site, use, plan, traffic, length_of(job), True)
            refresh_earliest_starts(state, plan)
            freed, holds = 0, False
        if rules.node_limits or (rules.preempts > 0 and site.classes[job.preemption].preempts > 0):
            never_holds(state, plan, place)
        if begin > state.now:
            place += 1
            if begin <= latest:
                part.reserved += 1
                state.ahead += 1
                if freed > 0:
                    measure_again(state, site, use, plan)  # with the jobs that counted as ended
                if job.reserved_start < 0:
                    job.reserved_start = begin
        else:
            _start_ahead(state, rules, jobs, site, use, plan, traffic, place)
            last -= 1
            if rules.most_started > 0 and state.started - before >= rules.most_started:
                break
        if begin <= latest and state.planned_count != planned:
            last = _last_that_matters(state, rules, jobs, site, use, plan, place, last, traffic)
    if state.started > before:
        state.news = 1
    return searches * (8 + site.sets.shape[1] + state.blocks)


@kernel
def _begin_cycle(state, rules, jobs, site, use, plan):
    """Begin a cycle: no job has been tested or has a reservation, and the plan has the changes since the last cycle."""
    state.users_counted += 1
    for p in range(len(site.partitions)):
        site.partitions[p].reserved = 0
    if is_any_overdue(state, use):
        move_overdue(state, rules, jobs, site, use)
    if state.changed_until > 0:
        refresh_earliest_starts(state, plan)
    state.tested = state.ahead = 0


@kernel
def _is_considered(state, rules, plan, traffic, job, place, within):
    """Return whether a cycle considers the job at a place, `within` its limits or not; drop the plan from there on if this has changed."""
    considered = within
    if within:
        state.tested += 1
        considered = not _over_test_limit(state, rules, traffic.counted, job)
    if place < state.planned_count and considered != plan.earliest_starts[place].considered:
        forget(state, plan, place)
    if not considered and place == state.planned_count:
        plan.earliest_starts[place].considered = plan.earliest_starts[place].promised = 0
        state.planned_count += 1
    return considered


@kernel
def _start_ahead(state, rules, jobs, site, use, plan, traffic, place):
    """Backfill the job at a place of the queue on the nodes that have been chosen."""
    index = traffic.queue[place]
    job = jobs[index]
    job.kind = BACKFILLED
    limit = _limit(state, rules, site, plan, job)
    _run(state, rules, jobs, site, use, plan, traffic, index, state.now, limit)
    _leave_queue(state, traffic, place)
    refresh_earliest_starts(state, plan)
    if job.time_min > 0 and rules.soft:
        measure_again(state, site, use, plan)


@kernel
def _limit(state, rules, site, plan, job):
    """Return the limit under which backfill starts a job on the nodes that have been chosen."""
    if job.time_min <= 0 or rules.soft:
        return job.planned
    reservation = abs(site.partitions[job.partition].reservation)
    room = room_until(state, site, plan, reservation, state.now + job.planned) - state.now
    return max(job.time_min, room // 60 * 60) if room < job.planned else job.planned


@inlined_kernel
def _last_that_matters(state, rules, jobs, site, use, plan, place, last, traffic):
    """Return the place after the last job before `last` that could start now, given the plan, or that needs its first reservation."""
    if rules.preempts > 0 and state.preemptable > 0:
        return last
    most = 0
    for k in range(state.kinds):
        most = max(most, use.totals[0, k])
    while last > place:
        if rules.starts_only and traffic.needs[last - 1] > most:
            last -= 1
            continue
        job = jobs[traffic.queue[last - 1]]
        if (job.reserved_start < 0 and not rules.starts_only) or _could_start(state, site, use, plan, job, length_of(job)):
            break
        last -= 1
    return last


@kernel
def _over_test_limit(state, rules, counted, job):
    """Return whether a cycle has already tested enough jobs of this job's partition or user; if not, count the job."""
    limits = rules.most_of_partition, rules.most_of_user, rules.most_of_user_in_partition
    if max(limits) <= 0:
        return False
    row, column = job.user + 1, job.partition + 1
    counts = counted[0, column], counted[row, 0], counted[row, column]
    for k in range(3):
        own = counts[k]
        if own.stamp != state.users_counted:
            own.stamp, own.count = state.users_counted, 0
        if 0 < limits[k] <= own.count:
            return True
    for own in counts:
        own.count += 1
    return False


@called_kernel
def _run(state, rules, jobs, site, use, plan, traffic, index, start, limit):
    job = jobs[index]
    job.start, job.limit = start, limit
    if rules.kill and limit < job.planned:
        job.runtime = min(job.runtime, limit)
    expected = start + (job.time_min if rules.soft and rules.half and job.time_min > 0 else limit)
    start_use(state, job, index, site, use, plan, expected)
    use_limits(jobs, traffic.limits, traffic.limits_of, index, 1)
    if rules.preempts > 0:
        state.preemptable += site.classes[job.preemption].preempted
    push(traffic.ends, state.events, start + job.runtime, state.started, index)
    state.events += 1
    state.started += 1
