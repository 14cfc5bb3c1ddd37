"""The plan of a machine of several pools: the free amounts of each pool over future time, as a step function.

A job takes its processors from the pools of its partition, in their order, as many from each as stay free for all of its planned length. So
a reservation is defined by its start and its share of each pool. The second resource works in the same way. Each pool and each partition
has a row with its free amounts, step by step; searches go along these rows.
"""

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.memory import NEVER
from walltime.engine.kernel.pools.memory import list_of
from walltime.engine.kernel.search import first_from

SLACK = 8
"""Number of steps that may equal their predecessors before joining them is worthwhile."""


@kernel
def plan_of_running(state, machine, plan):
    """Make the plan again from the amounts that are free now, the expected ends of the running jobs, and the known outages."""
    time, free, running, given = plan.time, plan.free, machine.running, machine.given
    count = len(machine.pools)
    time[0] = state.now
    for p in range(count):
        free[p, 0, 0], free[p, 1, 0] = machine.pools[p].free_procs, machine.pools[p].free_second
    last = 0
    for i in range(state.running):
        end = max(running[i].expected, state.now + 1)
        if end > time[last]:
            last += 1
            time[last] = end
            for p in range(count):
                free[p, 0, last], free[p, 1, last] = free[p, 0, last - 1], free[p, 1, last - 1]
        for p in range(count):
            free[p, 0, last] += given[running[i].job, p, 0]
            free[p, 1, last] += given[running[i].job, p, 1]
    state.steps = state.joined = last + 1
    for part in range(plan.room.shape[0]):
        _sum_up(machine.pools_of, plan, part, 0, state.steps)
    for i in range(len(machine.outages)):
        outage = machine.outages[i]
        if outage.phase == 1:
            _change(state, machine.pools_of, plan, outage.begin, outage.end, outage.pool, -outage.procs, -outage.second)
        elif outage.phase == 2:
            _change(state, machine.pools_of, plan, outage.end, NEVER, outage.pool, outage.procs, outage.second)


@called_kernel
def _sum_up(pools_of, plan, part, first, last):
    """Add up the free processors of a partition from one step up to another."""
    free, room = plan.free, plan.room
    for i in range(first, last):
        room[part, i] = 0
    for p in list_of(pools_of, part):
        for i in range(first, last):
            room[part, i] += max(free[p, 0, i], 0)  # below 0 while an outage takes what is in use


@called_kernel
def forget_past(state, plan):
    """Remove the past from the plan, and join equal steps if the plan has grown much."""
    time, free, room = plan.time, plan.free, plan.room
    first = 0
    while first + 1 < state.steps and time[first + 1] <= state.now:
        first += 1
    if first > 0:
        state.steps -= first
        for i in range(state.steps):
            time[i] = time[i + first]
        for p in range(free.shape[0]):
            for resource in range(state.resources):
                for i in range(state.steps):
                    free[p, resource, i] = free[p, resource, i + first]
        for part in range(room.shape[0]):
            for i in range(state.steps):
                room[part, i] = room[part, i + first]
    time[0] = state.now
    if 4 * (state.steps - SLACK) > 5 * state.joined:
        kept = 0
        for i in range(state.steps):
            if i == 0 or _differ(state, free, i, kept - 1):
                if i > kept:
                    time[kept] = time[i]
                    for p in range(free.shape[0]):
                        for resource in range(state.resources):
                            free[p, resource, kept] = free[p, resource, i]
                    for part in range(room.shape[0]):
                        room[part, kept] = room[part, i]
                kept += 1
        state.steps = state.joined = kept


@kernel
def _differ(state, free, one, other):
    for p in range(free.shape[0]):
        for resource in range(state.resources):
            if free[p, resource, one] != free[p, resource, other]:
                return True
    return False


@kernel
def step_before(state, plan, time):
    """Return the last step that begins before a time; -1 for none."""
    return first_from(plan.time, 0, state.steps, time) - 1


@called_kernel
def _step_at(state, plan, moment):
    """Return the step that begins at a time, creating it if necessary; the number of steps if the time is NEVER."""
    time, free, room = plan.time, plan.free, plan.room
    low = first_from(time, 0, state.steps, moment)
    if moment == NEVER or (low < state.steps and time[low] == moment):
        return low
    for i in range(state.steps, low, -1):
        time[i] = time[i - 1]
    time[low] = moment
    for p in range(free.shape[0]):
        for resource in range(state.resources):
            for i in range(state.steps, low - 1, -1):
                free[p, resource, i] = free[p, resource, i - 1]
    for part in range(room.shape[0]):
        for i in range(state.steps, low - 1, -1):
            room[part, i] = room[part, i - 1]
    state.steps += 1
    return low


@kernel
def _change(state, pools_of, plan, begin, end, pool, procs, second):
    """Add to the free amounts of a pool in [begin, end)."""
    if begin >= end:
        return
    first = _step_at(state, plan, begin)
    last = _step_at(state, plan, end)
    for i in range(first, last):
        plan.free[pool, 0, i] += procs
        plan.free[pool, 1, i] += second
    for part in range(plan.room.shape[0]):
        _sum_up(pools_of, plan, part, first, last)


@called_kernel
def first_gap(state, pools, pools_of, plan, job, earliest):
    """Return the earliest time from the step at `earliest` on at which a job fits for its planned length; NEVER if there is none.

    `plan.least` then has each pool's free amounts there. A gap must exist in the total of all pools of the partition; only such gaps are
    checked pool by pool, since amounts that are free in several pools together may not stay free in each of them.
    """
    time, room, part, procs = plan.time, plan.room, job.partition, job.procs
    begin = last = max(step_before(state, plan, earliest + 1), 0)
    while True:
        while begin < state.steps and room[part, begin] < procs:
            begin += 1
        if begin == state.steps:
            return NEVER
        end = _end_of_job(time, job, begin)
        last = max(last, begin + 1)
        while last < state.steps and time[last] < end and room[part, last] >= procs:
            last += 1
        if last < state.steps and time[last] < end:
            begin = last + 1
        elif _is_enough_left(state, pools, pools_of, plan, job, begin, last):
            return time[begin]
        else:
            begin = _next_begin(pools, pools_of, plan, job, end_of_gap(state, pools, pools_of, plan, job, begin))


@kernel
def _end_of_job(time, job, begin):
    """Return the planned end of a job that begins at a step, s."""
    return time[begin] + job.own_length if time[begin] < NEVER - job.own_length else NEVER


@kernel
def _is_enough_left(state, pools, pools_of, plan, job, begin, last):
    """Return whether enough for a job stays free from one step up to another; `plan.least` then has each pool's free amounts."""
    free, least, procs, second = plan.free, plan.least, job.procs, job.second
    for p in list_of(pools_of, job.partition):
        for resource in range(state.resources):
            own = free[p, resource, begin]
            for i in range(begin + 1, last):
                own = min(own, free[p, resource, i])
            least[p, resource] = max(own, 0)
        if not pools[p].closed:
            procs -= least[p, 0]
            second -= least[p, 1]
    return procs <= 0 and second <= 0


@called_kernel
def end_of_gap(state, pools, pools_of, plan, job, begin):
    """Return the first step at which a job that begins at step `begin` no longer fits; -1 if it fits for its planned length.

    Afterwards `plan.least` has the amounts of each pool that stay free.
    """
    for p in list_of(pools_of, job.partition):
        plan.least[p, 0] = plan.least[p, 1] = NEVER
    end = _end_of_job(plan.time, job, begin)
    step = begin
    while step < state.steps and plan.time[step] < end:
        if not _is_enough_with(pools, pools_of, plan, job, step):
            return step
        step += 1
    return -1


@kernel
def _is_enough_with(pools, pools_of, plan, job, step):
    """Lower `plan.least` to the free amounts of a step, and return whether enough for a job is left."""
    free, least, procs, second = plan.free, plan.least, job.procs, job.second
    for p in list_of(pools_of, job.partition):
        least[p, 0] = min(least[p, 0], max(free[p, 0, step], 0))
        least[p, 1] = min(least[p, 1], max(free[p, 1, step], 0))
        if not pools[p].closed:
            procs -= least[p, 0]
            second -= least[p, 1]
    return procs <= 0 and second <= 0


@kernel
def _next_begin(pools, pools_of, plan, job, step):
    """Return the first step from which enough stays free until the step in which a job's gap ended; else the step after that."""
    for p in list_of(pools_of, job.partition):
        plan.least[p, 0] = plan.least[p, 1] = NEVER
    while _is_enough_with(pools, pools_of, plan, job, step):  # the start of the gap itself ends this
        step -= 1
    return step + 1


@kernel
def share(pools, pools_of, given, job, index, amounts):
    """Give a job the amounts that it needs from the amounts of its partition's pools, in their order."""
    procs, second = job.procs, job.second
    for p in list_of(pools_of, job.partition):
        given[index, p, 0] = given[index, p, 1] = 0
        if not pools[p].closed:
            given[index, p, 0], given[index, p, 1] = min(procs, amounts[p, 0]), min(second, amounts[p, 1])
            procs -= given[index, p, 0]
            second -= given[index, p, 1]


@kernel
def take(state, machine, plan, job, index, begin):
    """Give a job its reservation from `begin` on, in the gap that `first_gap` has just found."""
    share(machine.pools, machine.pools_of, machine.given, job, index, plan.least)
    occupy(state, machine, plan, job, index, begin, 1)


@kernel
def occupy(state, machine, plan, job, index, begin, sign):
    """Take a job's reservation out of the plan (1), or release it (-1)."""
    occupy_until(state, machine.partitions_of, machine.given[index], plan, begin, begin + job.own_length, sign)


@called_kernel
def occupy_until(state, partitions_of, amounts, plan, begin, end, sign):
    """Take amounts of the pools, shape (pools, 2), in [begin, end), or release them (`sign` -1): part of a reservation, or several."""
    free, room = plan.free, plan.room
    first = _step_at(state, plan, begin)
    last = _step_at(state, plan, end)
    for p in range(free.shape[0]):
        procs, second = sign * amounts[p, 0], sign * amounts[p, 1]
        if procs != 0:
            for i in range(first, last):
                free[p, 0, i] -= procs
            for part in list_of(partitions_of, p):
                for i in range(first, last):
                    room[part, i] += max(free[p, 0, i], 0) - max(free[p, 0, i] + procs, 0)
        if second != 0:
            for i in range(first, last):
                free[p, 1, i] -= second


@kernel
def is_short(rules):
    """Return whether reservations share no pool, so that the plan can stop at them; each other reservation then makes the plan again."""
    return rules.depth == 1 and rules.predict_own == rules.predict_running


@kernel
def are_shadows_enough(state, rules):
    """Return whether reservations need no plan, only the shadow times and what they leave in each pool."""
    return is_short(rules) and state.outages == 0


@kernel
def reserve_shadow(state, jobs, machine, index):
    """Give a blocked job the earliest possible reservation, without a plan."""
    running, given, pools, job = machine.running, machine.given, machine.pools, jobs[index]
    own, procs, second = list_of(machine.pools_of, job.partition), job.procs, job.second
    for p in own:
        pool = pools[p]
        pool.left_procs, pool.left_second = pool.free_procs, pool.free_second
        procs -= pool.free_procs
        second -= pool.free_second
    begin, i = state.now, 0
    while i < state.running:
        expected = max(running[i].expected, state.now + 1)  # an overdue job is expected to end in a second
        if procs <= 0 and second <= 0 and expected > begin:
            break
        begin = expected
        for p in own:
            pools[p].left_procs += given[running[i].job, p, 0]
            pools[p].left_second += given[running[i].job, p, 1]
            procs -= given[running[i].job, p, 0]
            second -= given[running[i].job, p, 1]
        i += 1
    if procs > 0 or second > 0:
        begin = NEVER
    procs, second = job.procs, job.second
    for p in own:
        pool = pools[p]
        pool.begin = begin
        own_procs, own_second = min(procs, pool.left_procs), min(second, pool.left_second)
        pool.left_procs -= own_procs
        pool.left_second -= own_second
        procs -= own_procs
        second -= own_second
    if job.reserved_start < 0 and state.now < begin < NEVER:
        job.reserved_start = begin


@kernel
def fits_beside(state, pools, pools_of, least, job):
    """Return whether a job that fits now delays none of the reservations; `least` then has each pool's free amounts."""
    procs, second, end = job.procs, job.second, state.now + job.own_length
    for p in list_of(pools_of, job.partition):
        pool = pools[p]
        least[p, 0], least[p, 1] = pool.free_procs, pool.free_second
        if pool.begin < end:
            least[p, 0], least[p, 1] = min(pool.free_procs, pool.left_procs), min(pool.free_second, pool.left_second)
        procs -= least[p, 0]
        second -= least[p, 1]
    return procs <= 0 and second <= 0


@kernel
def take_from_shadows(state, pools, pools_of, given, job, index):
    """Reduce what is left at the reservations that begin while a starting job still runs."""
    for p in list_of(pools_of, job.partition):
        pool = pools[p]
        if pool.begin < state.now + job.own_length:
            pool.left_procs -= given[index, p, 0]
            pool.left_second -= given[index, p, 1]
