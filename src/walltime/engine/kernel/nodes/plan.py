"""The plan of Slurm's backfill: the earliest starts of waiting jobs, kept from cycle to cycle, and replaced when they are out of date.

Each of the first jobs of the queue has an *earliest start*, given the plan of the jobs ahead of it. If it is within the window, nodes are
reserved for the job: a *block*. An earliest start depends on two things: the processors that will be free (`Use.free`, if running jobs end
as planned and no job starts), and the blocks of the jobs ahead. It is valid until one of them changes.

Each change is noted with all earliest starts: how many processors the job may have gained, on how many nodes, and when the change ends. If
either number is less than the job lacked, it cannot start earlier; if its block starts after the end of the change, it gets the same nodes.
The first job whose earliest start may have changed gets a new one, and all jobs behind it are planned again. In the same way, a search
passes over times until which too few processors or nodes are released.

Two bounds shorten the searches:

- a time before which a smaller job could not start (BOUND);
- upper bounds on the free amounts over time (`BackfillPlan.timeline`), given the running jobs and the first `timeline_blocks` blocks.
  If it includes other blocks, it is rebuilt, which takes less time than removing them.

Single nodes are considered only at times when these bounds allow a start.
"""

import numpy as np

from walltime.compiled.jit import called_kernel, inlined_kernel, kernel
from walltime.engine.kernel.bits import any_of, count_bits, mark
from walltime.engine.kernel.nodes.choice import choose, released_by, row_at, shortfall
from walltime.engine.kernel.nodes.gains import (
    count_nodes,
    gained_too_little,
    keep_slack,
    most_gained,
    nodes_for,
    note_change,
    note_lack,
    slack_at,
    slack_of_nodes_at,
    take_slack,
)
from walltime.engine.kernel.nodes.limits import exceeds_nodes
from walltime.engine.kernel.nodes.records import CAPACITY, OPENS_SECOND, USABLE
from walltime.engine.kernel.profile import NEVER
from walltime.engine.kernel.search import first_from

FIRST = np.int64(0)
"""First place of the queue."""
NOT_MADE = np.int64(-1)
"""Number of blocks that marks a timeline as out of date."""
PARTS = 24
"""The window is divided into this many parts. A job's shortfall in the first part, an hour by default, is stored separately from its
shortfall later on."""


@inlined_kernel
def look_ahead(state, rules, jobs, index, site, use, plan, traffic, place, latest, fresh):
    """Return the earliest start of the job at a place in the queue; if it is at most `latest`, choose its nodes (`plan.choice.chosen`).

    If it differs from the one found before, the plan of the jobs behind is dropped. For a job that can start now, none is stored. A `fresh`
    search ignores bounds and the last search, because jobs that may be preempted count as ended. Returns NEVER if the chosen nodes would
    exceed a limit.
    """
    job, earliest, has_one = jobs[index], plan.earliest_starts[place], place < state.planned_count
    length = length_of(job)
    holds = has_one and not fresh and gained_too_little(earliest) and earliest.begin > state.now
    if holds and (earliest.promised or earliest.begin > latest):
        least = earliest.begin
        take_slack(state, earliest)
    else:
        least = state.now if fresh else _least_by_bounds(state, site, plan, jobs, job, length, latest)
        holds = False
    begin = least
    if least <= latest and not (holds and shortfall(state, job, site, use, plan, least, length, 1) == 0):
        if fresh or state.timeline_blocks != state.ahead:
            _update_timeline(state, use.running, use.totals, plan.blocks, plan.amounts, plan.timeline)
        begin = _first_enough(state, site, plan.timeline, job, least, latest)
        if (
            has_one
            and not (fresh or rules.node_limits)
            and earliest.promised
            and state.now < begin == earliest.begin <= latest
            and earliest.unsettled <= begin
        ):
            _set_earliest_start(state, job, earliest, begin, True)
            return begin  # and its nodes are the same
        begin = _earliest(state, site, use, plan, job, begin, latest)
        if begin > least and latest > state.now and not fresh:
            _note_bound(state, site, plan, jobs, index, length, begin)
    if begin <= latest:
        choose(state, job, site, use, plan.choice, begin)
        if rules.node_limits and exceeds_nodes(state, jobs, site, use, plan, traffic, index, True):
            begin = NEVER
    promised = state.now < begin <= latest
    if has_one:
        if promised == earliest.promised and begin > state.now and (not promised or begin == earliest.begin):
            if not promised or _are_kept(state, site, plan):
                if promised and state.planes > 1:  # as many whole nodes are free as before
                    _measure_if_other(state, site, use, plan)
                _set_earliest_start(state, job, earliest, begin, promised)
                return begin
        forget(state, plan, place)
    if begin > state.now:
        _set_earliest_start(state, job, earliest, begin, promised)
        state.planned_count += 1
        if promised:
            _keep(state, rules, site, use, plan, begin, length)
    return begin


@kernel
def never_holds(state, plan, place):
    """Make every cycle try a job again, because it may preempt others, or its limits may count other nodes."""
    if place < state.planned_count:
        earliest = plan.earliest_starts[place]
        earliest.slack = earliest.slack_far = earliest.slack_nodes = earliest.slack_nodes_far = 0


@kernel
def length_of(job):
    """Return the time for which backfill plans a job, s."""
    return job.time_min if job.time_min > 0 else job.planned


@kernel
def _set_earliest_start(state, job, earliest, begin, promised):
    """Store the earliest start of a job, and how many processors the job lacks before that."""
    earliest.considered, earliest.begin, earliest.promised = 1, begin, promised
    earliest.unsettled, earliest.opens, earliest.task_memory = 0, job.opens, job.task_memory
    keep_slack(state, earliest)


@kernel
def holds_as_before(state, earliest, latest):
    """Return whether a job's earliest start holds; individual nodes are not considered."""
    if not gained_too_little(earliest) or earliest.begin <= state.now:
        return False
    if earliest.promised:
        return earliest.unsettled <= earliest.begin <= latest
    return earliest.begin > latest


@kernel
def first_to_look_at(state, earliest_starts, place, last, latest):
    """Return the first place in [place, last) whose earliest start may have changed, and add the blocks before it to `state.ahead`."""
    end, ahead = min(last, state.planned_count), state.ahead
    while place < end and holds_as_before(state, earliest_starts[place], latest):
        ahead += earliest_starts[place].promised
        place += 1
    state.ahead = ahead
    return place


@called_kernel
def forget(state, plan, place):
    """Drop the plan of the jobs at this place in the queue and behind it."""
    while state.planned_count > place:
        state.planned_count -= 1
        if plan.earliest_starts[state.planned_count].promised:
            state.blocks -= 1
            if state.timeline_blocks > state.blocks:
                state.timeline_blocks = NOT_MADE
            plan.spare_sets[state.spare_sets] = plan.blocks[state.blocks].row
            state.spare_sets += 1
    left = 0
    for k in range(state.bounds):
        if plan.bounds[k].blocks <= state.blocks:
            plan.bounds[left] = plan.bounds[k]
            left += 1
    state.bounds = left


@called_kernel
def leave_plan(state, site, plan, place):
    """Remove the job at a place in the queue, which starts independently of the plan: its nodes are no longer reserved."""
    if plan.earliest_starts[place].promised:
        mine = 0
        for k in range(place):
            mine += plan.earliest_starts[k].promised
        if state.timeline_blocks > mine:
            state.timeline_blocks = NOT_MADE
        block, row = plan.blocks[mine], plan.blocks[mine].row
        note_change(state, block.whole, 0, block.nodes, block.whole, block.with_second, block.nodes_with_second, block.end)
        plan.spare_sets[state.spare_sets] = row
        state.spare_sets += 1
        state.blocks -= 1
        for k in range(mine, state.blocks):
            plan.blocks[k] = plan.blocks[k + 1]
        for k in range(state.bounds):
            plan.bounds[k].blocks -= plan.bounds[k].blocks > mine
    state.planned_count -= 1
    for k in range(place, state.planned_count):
        plan.earliest_starts[k] = plan.earliest_starts[k + 1]


@inlined_kernel
def _earliest(state, site, use, plan, job, least, latest):
    """Return the earliest time from `least` on at which a job has nodes, or only a lower bound if that is after `latest`.

    Note how many processors the job lacks before that time.
    """
    time, length = least, length_of(job)
    while time <= latest:
        lack = shortfall(state, job, site, use, plan, time, length, slack_at(state, time))
        if lack == 0:
            return time
        nodes = state.lacking_nodes
        half, half_of_nodes = lack // 2, nodes // 2
        note_lack(state, time, lack, nodes)
        while True:
            time = next_release(state, site, use, plan, job, time)
            lack, nodes = max(0, lack) - state.freed, max(0, nodes) - state.freed_nodes
            if time > latest:
                break
            lacks_many = lack >= max(1, min(half, slack_at(state, time)))
            if not lacks_many and nodes < max(1, min(half_of_nodes, slack_of_nodes_at(state, time))):
                break
            note_lack(state, time, max(lack, nodes), max(nodes, nodes_for(state, job, lack)))
        if time <= latest:
            time = _first_enough(state, site, plan.timeline, job, time, latest)
    return time


@kernel
def next_release(state, site, use, plan, job, time):
    """Return the next time at which a job may find more nodes, because nodes are released, or a reservation begins or ends; else NEVER.

    `state.freed` and `state.freed_nodes` become upper bounds on the processors that the job gains then, and on the nodes that give them.
    """
    reservation = site.partitions[job.partition].reservation
    following, freed, nodes, i, columns = NEVER, 0, 0, released_by(state, use.running, time), use.totals.shape[1]
    only_second = job.opens == OPENS_SECOND
    if i < state.running:
        following = use.running[i].release
    while i < state.running and use.running[i].release == following:
        own = use.gives[use.running[i].row]
        freed += most_gained(job, own[columns], own[columns + 1], own[columns + 2], own[columns + 3], own[columns + 4])
        nodes += own[columns + 5] if only_second else own[columns + 2]
        i += 1
    for k in range(state.ahead):
        block = plan.blocks[k]
        if time < block.end <= following:
            if block.end < following:
                freed = nodes = 0
            freed += block.with_second if only_second else block.whole
            nodes += block.nodes_with_second if only_second else block.nodes
            following = block.end
    for k in range(len(site.outages)):
        out = site.outages[k]
        is_own = out.reservation == reservation and reservation > 0
        if (out.phase == 1 or is_own) and out.end > time:
            change = out.begin if is_own and out.begin > time else out.end
            if change <= following:
                following, freed, nodes = change, NEVER, NEVER
    state.freed, state.freed_nodes = freed, nodes
    return following


@kernel
def least_needed(job, members):
    """Return the fewest processors that must be free in a job's partition."""
    return max(job.nodes * max(1, members.node_procs) if job.whole else job.nodes, job.asked)


@kernel
def _first_enough(state, site, timeline, job, begin, latest):
    """Return a lower bound, at least `begin`, of a job's start: before it, too little of its partition is free."""
    part, i, length = site.partitions[job.partition], _step_at(state, timeline, begin), length_of(job)
    need, procs = least_needed(job, site.members[job.members]), timeline.sums[part.kind]
    need_second = max(job.total, job.nodes * job.each) if not job.whole else 0
    second = timeline.sums[part.kind + state.kinds] if need_second > 0 else procs
    need_nodes = job.nodes if state.of_nodes > 0 and not job.whole else 0
    nodes = timeline.sums[part.kind + state.of_nodes]
    need_memory = 0
    if state.of_memory > 0 and not job.whole:
        need_memory = max(job.nodes * job.memory, -(-job.asked // max(1, job.task)) * job.task_memory)
    memory = timeline.sums[part.kind + state.of_memory]
    while True:
        while procs[i] < need or nodes[i] < need_nodes or second[i] < need_second or memory[i] < need_memory:
            lack, lack_of_nodes = max(1, need - procs[i], need_nodes - nodes[i]), need_nodes - nodes[i]
            note_lack(state, timeline.times[i], lack, max(lack_of_nodes, nodes_for(state, job, lack)))
            i += 1
            if i == state.steps:
                return NEVER
            begin = timeline.times[i]
            if begin > latest:
                return begin
        while procs[i] >= need and nodes[i] >= need_nodes and second[i] >= need_second and memory[i] >= need_memory:
            i += 1
            if i == state.steps or timeline.times[i] >= begin + length:
                return begin


@kernel
def _least_by_bounds(state, site, plan, jobs, job, length, latest):
    """Return a time before which a job cannot start, because smaller jobs ahead cannot, and adopt the number of processors they lack."""
    kind, least = site.partitions[job.partition].kind, state.now
    state.slack = state.slack_far = state.slack_nodes = state.slack_nodes_far = NEVER
    state.far = state.now + (latest - state.now) // PARTS
    for k in range(state.bounds - 1, -1, -1):  # the latest bound is usually from a job just ahead
        bound = plan.bounds[k]
        if bound.time > least and bound.length <= length and bound.asked <= job.asked and bound.nodes <= job.nodes:
            if bound.kind == kind and bound.blocks <= state.ahead and _includes(jobs[bound.job], bound.every, job):
                least = bound.time
                take_slack(state, bound)
                if least > latest:
                    break
    return least


@kernel
def _includes(one, one_every, other):
    """Return whether a request can use all the nodes that another request can use, and as much of each."""
    if one.whole != other.whole or one.total > other.total or one.each > other.each or one.memory > other.memory:
        return False
    if (not one_every and one.members != other.members) or one.owner != other.owner:
        return False
    if not one.shaped:
        return True
    same = one.per_task == other.per_task and one.task_memory == other.task_memory and one.most_nodes == other.most_nodes
    return same and one.task == other.task and one.least == other.least and one.most == other.most


@kernel
def _note_bound(state, site, plan, jobs, index, length, time):
    """Record a time before which a job cannot start, as a bound for the jobs behind it, and drop the bounds that it implies."""
    bounds, left, job = plan.bounds, 0, jobs[index]
    kind, every = site.partitions[job.partition].kind, site.members[job.members].every
    for k in range(state.bounds):
        old = bounds[k]
        if old.time <= time and old.length >= length and old.asked >= job.asked and old.nodes >= job.nodes:
            if old.kind == kind and _includes(job, every, jobs[old.job]):
                continue
        if left < k:
            bounds[left] = old
        left += 1
    bound = bounds[min(left, len(bounds) - 1)]
    bound.kind, bound.every, bound.asked, bound.nodes, bound.length = kind, every, job.asked, job.nodes, length
    bound.job, bound.time, bound.blocks, bound.opens, bound.task_memory = index, time, state.ahead, job.opens, job.task_memory
    keep_slack(state, bound)
    state.bounds = min(left + 1, len(bounds))


@kernel
def _keep(state, rules, site, use, plan, begin, length):
    """Reserve the chosen nodes from `begin` for `length` s, extended to multiples of the resolution."""
    state.spare_sets -= 1
    block = plan.blocks[state.blocks]
    block.row = plan.spare_sets[state.spare_sets]
    mark(site.sets[block.row], plan.choice.chosen, state.chosen)
    block.begin, block.valid_from = begin, begin // rules.resolution * rules.resolution
    block.end = -(-(begin + length) // rules.resolution) * rules.resolution
    count_nodes(state, site, block, site.sets[block.row])
    _measure(state, site, use, plan, block)
    state.blocks += 1


@kernel
def _measure(state, site, use, plan, block):
    """Record which words contain a block's nodes, and the amounts that are free on these nodes when the block begins."""
    kinds, first, last, row = CAPACITY + state.planes, site.sets.shape[1], -1, row_at(state, use.running, block.begin)
    for w in range(site.sets.shape[1]):
        if site.sets[block.row, w] != 0:
            first, last = min(first, w), w
    block.first_word, block.last_word = first, last
    for c in range(plan.amounts.shape[1]):
        kind, amount = kinds + c % state.kinds, 0
        if state.of_nodes > 0 and c >= state.of_nodes:
            for w in range(first, last + 1):
                some = any_of(use.free[row], state.procs_planes, w)
                amount += count_bits(some & site.sets[block.row, w] & site.sets[kind, w])
            plan.amounts[block.row, c] = amount
            continue
        from_plane, to_plane, bits = FIRST, state.procs_planes, state.procs_planes
        if state.of_memory > 0 and c >= state.of_memory:
            from_plane, to_plane, bits = state.second_end, state.planes, state.planes
        elif c >= state.kinds:
            from_plane, to_plane, bits = state.procs_planes, state.second_end, state.second_bits
        for k in range(from_plane, to_plane):
            count = 0
            for w in range(first, last + 1):
                count += count_bits(use.free[row, k, w] & site.sets[block.row, w] & site.sets[kind, w])
            amount += count << (k - from_plane) % bits
        plan.amounts[block.row, c] = amount


@called_kernel
def _measure_if_other(state, site, use, plan):
    """Measure the next block, whose nodes stay the same.

    If their free amounts have changed, remove it and the blocks behind it from the timeline.
    """
    block, own = plan.blocks[state.ahead], plan.blocks[state.ahead].row
    block.row = plan.spare_sets[state.spare_sets - 1]  # where `_are_kept` has marked the same nodes
    _measure(state, site, use, plan, block)
    measured, same = plan.amounts[block.row], True
    block.row = own
    for c in range(len(measured)):
        same &= measured[c] == plan.amounts[own, c]
    if not same:
        if state.timeline_blocks > state.ahead:
            state.timeline_blocks = NOT_MADE
        for c in range(len(measured)):
            plan.amounts[own, c] = measured[c]


@called_kernel
def measure_again(state, site, use, plan):
    """Measure the blocks ahead again: a job has started with a longer limit than planned, or jobs that counted as ended run again."""
    state.timeline_blocks = NOT_MADE
    for k in range(state.ahead):
        _measure(state, site, use, plan, plan.blocks[k])


@kernel
def _are_kept(state, site, plan):
    """Return whether the chosen nodes are those of the next block."""
    other = plan.spare_sets[state.spare_sets - 1]
    mark(site.sets[other], plan.choice.chosen, state.chosen)
    row, same = plan.blocks[state.ahead].row, True
    for w in range(site.sets.shape[1]):
        same &= site.sets[other, w] == site.sets[row, w]
    return same


@called_kernel
def room_until(state, site, plan, reservation, latest):
    """Return the first time before `latest` at which one of the chosen nodes is reserved for another job; `latest` if there is none."""
    mark(site.sets[USABLE], plan.choice.chosen, state.chosen)
    until = latest
    for k in range(state.ahead):
        block = plan.blocks[k]
        if state.now < block.valid_from < until:
            for w in range(block.first_word, block.last_word + 1):
                if site.sets[block.row, w] & site.sets[USABLE, w]:
                    until = block.valid_from
                    break
    for k in range(len(site.outages)):
        out = site.outages[k]
        if out.phase == 1 and state.now < out.begin < until and (reservation == 0 or out.reservation != reservation):
            for w in range(site.sets.shape[1]):
                if site.sets[out.row, w] & site.sets[USABLE, w]:
                    until = out.begin
                    break
    return until


@called_kernel
def _update_timeline(state, running, totals, blocks, amounts, timeline):
    """Make the timeline contain the blocks of the jobs ahead, and no others."""
    if state.timeline_blocks < 0 or state.timeline_blocks > state.ahead:  # begin with the running jobs alone
        state.steps, state.timeline_blocks = 1, 0
        for c in range(len(timeline.sums)):
            timeline.sums[c, 0] = totals[0, c]
        for k in range(state.running):
            state.steps += running[k].release > timeline.times[state.steps - 1]
            timeline.times[state.steps - 1] = running[k].release
            for c in range(len(timeline.sums)):
                timeline.sums[c, state.steps - 1] = totals[running[k].row, c]
    while state.timeline_blocks < state.ahead:
        block = blocks[state.timeline_blocks]
        take_from_timeline(state, timeline, amounts[block.row], block.begin, block.end)
        state.timeline_blocks += 1


@called_kernel
def take_from_timeline(state, timeline, amounts, begin, end):
    """Subtract amounts from the free ones in [begin, end)."""
    first = _make_step(state, timeline, begin)
    last = _make_step(state, timeline, end)
    for c in range(len(timeline.sums)):
        for i in range(first, last):
            timeline.sums[c, i] -= amounts[c]


@kernel
def _step_at(state, timeline, time):
    """Return the last step that is not after a time; the first one is always before."""
    return first_from(timeline.times, 1, state.steps, time + 1) - 1


@kernel
def _make_step(state, timeline, time):
    """Return the step at a time, creating it if necessary; the first step stands for any time before it."""
    i = _step_at(state, timeline, time)
    if timeline.times[i] == time:
        return i
    for j in range(state.steps, i + 1, -1):
        timeline.times[j] = timeline.times[j - 1]
    timeline.times[i + 1] = time
    for c in range(len(timeline.sums)):
        for j in range(state.steps, i, -1):
            timeline.sums[c, j] = timeline.sums[c, j - 1]
    state.steps += 1
    return i + 1
