"""The plan of backfill: what waiting jobs have ahead of them, kept from cycle to cycle and changed where it no longer holds.

The first jobs of the queue have a *prospect* each: when a job could start at the earliest, after the jobs ahead of it. If that is
within the window, nodes are kept for it, a *block*. A job looks at what is free (`Use.free`: running jobs give back, nobody takes) less
the blocks of the jobs ahead of it, so a prospect holds as long as nothing of that changes. When something does, it is noted in the
prospects: how many processors have become free, and until when there is a difference. As long as these are fewer than the job lacked, it
cannot start earlier (changes.py); and if its reservation begins after the difference, it gets the same nodes. The first job whose prospect
turns out to be another gets a new one, and all behind are planned anew.

Searches begin late, by two bounds: what jobs that ask for less could not have (BOUND), and a time line of how much is free at most,
wherever it is (`Plan.line`): after running jobs and the first `in_line` blocks. It is made anew where it has others, which takes less time
than to take blocks out. The nodes themselves are looked at only where that is enough.
"""

from __future__ import annotations

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.bits import count_bits, mark
from walltime.engine.kernel.nodes.changes import gained_too_little, keep_slack, note_change, note_lack, take_slack
from walltime.engine.kernel.nodes.choice import choose, missing, row_at
from walltime.engine.kernel.nodes.memory import CAPACITY, USABLE
from walltime.engine.kernel.profile import NEVER

FIRST = np.int64(0)
"""The first place of the queue."""
NOT_MADE = np.int64(-1)
"""In place of a number of blocks in the time line: it is to be made anew."""
PARTS = 24
"""What a job lacks in the first of so many parts of the window, by default an hour, is kept apart from what it lacks later."""


# ---------------------------------------------------------------------------------------------------- prospects


@kernel
def look_ahead(state, rules, job, site, use, plan, place, latest):
    """Give the job at a place of the queue its prospect, and if it could start until `latest`, nodes: `plan.choice.chosen`; returns when.

    What lies ahead of those behind is forgotten if that is another than before. A job that can start now gets no prospect.
    """
    length, prospect, has_one = length_of(job), plan.prospects[place], place < state.planned
    holds = has_one and gained_too_little(prospect) and prospect.begin > state.now
    if holds and (prospect.promised or prospect.begin > latest):
        least = prospect.begin
        take_slack(state, prospect)
    else:
        least = _least_by_bounds(state, site, plan, job, length, latest)
        holds = False
    begin = least
    if least <= latest and not (holds and lacks(state, job, site, use, plan, least, length) == 0):
        if state.in_line != state.ahead:
            _bring_line(state, use.running, use.totals, plan.blocks, plan.amounts, plan.line)
        begin = _enough_in_line(state, site, plan.line, job, least, latest)
        if has_one and prospect.promised and state.now < begin == prospect.begin <= latest and prospect.unsettled <= begin:
            _set_prospect(state, job, prospect, begin, True)
            return begin  # and its nodes are the same
        begin = _earliest(state, site, use, plan, job, begin, latest)
        if begin > least and latest > state.now:
            _note_bound(state, site, plan, job, length, begin)
    promised = state.now < begin <= latest
    if begin <= latest:
        choose(state, job, site, use.running, use.free, plan.choice, begin)
    if has_one:
        if promised == prospect.promised and begin > state.now and (not promised or begin == prospect.begin):
            if not promised or _are_kept(state, site, plan):
                if promised and state.planes > 1:  # of whole nodes as much is free as before
                    _measure_if_other(state, site, use, plan)
                _set_prospect(state, job, prospect, begin, promised)
                return begin
        forget(state, plan, place)
    if begin > state.now:
        _set_prospect(state, job, prospect, begin, promised)
        state.planned += 1
        if promised:
            _keep(state, rules, site, use, plan, begin, length)
    return begin


@kernel
def length_of(job):
    """The time for which backfill plans a job."""
    return job.time_min if job.time_min > 0 else job.believed


@kernel
def _set_prospect(state, job, prospect, begin, promised):
    prospect.considered, prospect.begin, prospect.promised = 1, begin, promised
    prospect.unsettled, prospect.whole = 0, job.whole > 0 or job.each > 0
    keep_slack(state, prospect)


@kernel
def pass_over(state, plan):
    """The next job of the queue is not considered."""
    plan.prospects[state.planned].considered = plan.prospects[state.planned].promised = 0
    state.planned += 1


@kernel
def holds_as_before(state, prospect, latest):
    """Whether a job has the same prospect as before, without a look at the nodes."""
    if not gained_too_little(prospect) or prospect.begin <= state.now:
        return False
    if prospect.promised:
        return prospect.unsettled <= prospect.begin <= latest
    return prospect.begin > latest


@kernel
def first_to_look_at(state, prospects, place, last, latest):
    """The first place from `place` on, before `last`, whose job may have another prospect; the blocks before it are ahead."""
    end, ahead = min(last, state.planned), state.ahead
    while place < end and holds_as_before(state, prospects[place], latest):
        ahead += prospects[place].promised
        place += 1
    state.ahead = ahead
    return place


@called_kernel
def forget(state, plan, place):
    """Forget what the jobs from a place of the queue on have ahead of them."""
    while state.planned > place:
        state.planned -= 1
        if plan.prospects[state.planned].promised:
            _drop_last_block(state, plan)
    left = 0
    for k in range(state.bounds):
        if plan.bounds[k].blocks <= state.blocks:
            plan.bounds[left] = plan.bounds[k]
            left += 1
    state.bounds = left


@kernel
def _drop_last_block(state, plan):
    state.blocks -= 1
    if state.in_line > state.blocks:
        state.in_line = NOT_MADE
    plan.spare_sets[state.spare_sets] = plan.blocks[state.blocks].row
    state.spare_sets += 1


@called_kernel
def leave_plan(state, site, plan, place):
    """The job at a place of the queue starts outside of the plan: its nodes are no longer kept, and it has no prospect."""
    if plan.prospects[place].promised:
        mine = 0
        for k in range(place):
            mine += plan.prospects[k].promised
        if state.in_line > mine:
            state.in_line = NOT_MADE
        block, row = plan.blocks[mine], plan.blocks[mine].row
        freed = 0
        for k in range(state.procs_planes):
            for w in range(site.sets.shape[1]):
                freed += count_bits(site.sets[CAPACITY + k, w] & site.sets[row, w]) << k
        note_change(state, freed, freed, block.end)
        plan.spare_sets[state.spare_sets] = row
        state.spare_sets += 1
        state.blocks -= 1
        for k in range(mine, state.blocks):
            plan.blocks[k] = plan.blocks[k + 1]
        for k in range(state.bounds):
            plan.bounds[k].blocks -= plan.bounds[k].blocks > mine
    state.planned -= 1
    for k in range(place, state.planned):
        plan.prospects[k] = plan.prospects[k + 1]


# ---------------------------------------------------------------------------------------------------- the earliest time


@kernel
def _earliest(state, site, use, plan, job, least, latest):
    """The earliest time from `least` on, when the time line says that there may be enough, at which nobody ahead has nodes for a job.

    If that is after `latest`, a time before which it is not. Notes what the job lacks until then.
    """
    time, length = least, length_of(job)
    while time <= latest:
        lack = lacks(state, job, site, use, plan, time, length)
        if lack == 0:
            return time
        note_lack(state, time, lack)
        time = _next_opening(state, site, use, plan, time)
        if time <= latest:
            time = _enough_in_line(state, site, plan.line, job, time, latest)
    return time


@kernel
def lacks(state, job, site, use, plan, time, length):
    """What `missing` says of a job: 0 if nodes are free for it for a length from a time on."""
    members = site.partitions[job.partition].members
    return missing(state, job, members, site.outages, site.sets, use.running, use.free, plan.blocks, time, length)


@kernel
def _next_opening(state, site, use, plan, time):
    """The next time at which nodes are given back, or are no longer kept; NEVER if there is none."""
    following, i, end = NEVER, 0, state.running
    while i < end:
        middle = (i + end) // 2
        if use.running[middle].release <= time:
            i = middle + 1
        else:
            end = middle
    if i < state.running:
        following = use.running[i].release
    for k in range(state.ahead):
        if plan.blocks[k].end > time:
            following = min(following, plan.blocks[k].end)
    for k in range(len(site.outages)):
        if site.outages[k].phase == 1 and site.outages[k].end > time:
            following = min(following, site.outages[k].end)
    return following


@kernel
def least_needed(job, part):
    """So many processors at least must be free in a job's partition."""
    return job.nodes * max(1, part.node_procs) if job.whole else max(job.nodes, job.procs)


@kernel
def _enough_in_line(state, site, line, job, begin, latest):
    """A time from `begin` on before which a job cannot start: its partition must have enough free for its length, on whichever nodes."""
    part, i, length = site.partitions[job.partition], _step_at(state, line, begin), length_of(job)
    need, procs = least_needed(job, part), line.sums[part.kind]
    need_second = job.second if not job.whole else 0
    second = line.sums[part.kind + state.kinds] if need_second > 0 else procs
    while True:
        while procs[i] < need or second[i] < need_second:  # until there is enough
            note_lack(state, line.times[i], max(1, need - procs[i]))
            i += 1
            if i == state.steps:
                return NEVER
            begin = line.times[i]
            if begin > latest:
                return begin
        while procs[i] >= need and second[i] >= need_second:  # as long as it stays so
            i += 1
            if i == state.steps or line.times[i] >= begin + length:
                return begin


@kernel
def _least_by_bounds(state, site, plan, job, length, latest):
    """A time before which a job cannot start, by what those ahead that ask for less cannot have; takes over what it lacks until then."""
    kind, least = site.partitions[job.partition].kind, state.now
    state.slack, state.slack_far, state.far = NEVER, NEVER, state.now + (latest - state.now) // PARTS
    for k in range(state.bounds - 1, -1, -1):  # the latest is mostly of a job just before
        bound = plan.bounds[k]
        if bound.time > least and bound.length <= length and bound.procs <= job.procs and bound.nodes <= job.nodes:
            same = bound.kind == kind and bound.whole == job.whole and bound.blocks <= state.ahead
            if same and bound.second <= job.second and bound.each <= job.each:
                least = bound.time
                take_slack(state, bound)
                if least > latest:
                    break
    return least


@kernel
def _note_bound(state, site, plan, job, length, time):
    """Note what a job cannot have before a time, for those behind it, and forget what follows from it."""
    bounds, left, kind = plan.bounds, 0, site.partitions[job.partition].kind
    for k in range(state.bounds):
        old = bounds[k]
        if old.time <= time and old.length >= length and old.procs >= job.procs and old.nodes >= job.nodes:
            same = old.kind == kind and old.whole == job.whole
            if same and old.second >= job.second and old.each >= job.each:
                continue
        if left < k:
            bounds[left] = old
        left += 1
    bound = bounds[min(left, len(bounds) - 1)]
    bound.kind, bound.procs, bound.nodes, bound.second, bound.each = kind, job.procs, job.nodes, job.second, job.each
    bound.whole, bound.length, bound.time, bound.blocks = job.whole, length, time, state.ahead
    keep_slack(state, bound)
    state.bounds = min(left + 1, len(bounds))


# ---------------------------------------------------------------------------------------------------- blocks


@kernel
def _keep(state, rules, site, use, plan, begin, length):
    """Keep the nodes that have been chosen free for `length` from `begin` on, and at least to multiples of the resolution."""
    state.spare_sets -= 1
    block = plan.blocks[state.blocks]
    block.row = plan.spare_sets[state.spare_sets]
    mark(site.sets[block.row], plan.choice.chosen, state.chosen)
    block.begin, block.keeps_from = begin, begin // rules.resolution * rules.resolution
    block.end = -(-(begin + length) // rules.resolution) * rules.resolution
    _measure(state, site, use, plan, block)
    state.blocks += 1


@kernel
def _measure(state, site, use, plan, block):
    """Note the words in which a block has nodes, and what is free of them when it begins."""
    kinds, first, last, row = CAPACITY + state.planes, site.sets.shape[1], -1, row_at(state, use.running, block.begin)
    for w in range(site.sets.shape[1]):
        if site.sets[block.row, w] != 0:
            first, last = min(first, w), w
    block.first_word, block.last_word = first, last
    for c in range(plan.amounts.shape[1]):
        kind, from_plane, to_plane = c, 0, state.procs_planes
        if c >= state.kinds:
            kind, from_plane, to_plane = c - state.kinds, state.procs_planes, state.planes
        amount = 0
        for k in range(from_plane, to_plane):
            count = 0
            for w in range(first, last + 1):
                count += count_bits(use.free[row, k, w] & site.sets[block.row, w] & site.sets[kinds + kind, w])
            amount += count << (k - from_plane)
        plan.amounts[block.row, c] = amount


@called_kernel
def _measure_if_other(state, site, use, plan):
    """Measure the next block, which keeps its nodes; if other amounts of them are free, it and those behind it leave the time line."""
    block, own = plan.blocks[state.ahead], plan.blocks[state.ahead].row
    block.row = plan.spare_sets[state.spare_sets - 1]  # where `_are_kept` has marked the same nodes
    _measure(state, site, use, plan, block)
    measured, same = plan.amounts[block.row], True
    block.row = own
    for c in range(len(measured)):
        same &= measured[c] == plan.amounts[own, c]
    if not same:
        if state.in_line > state.ahead:
            state.in_line = NOT_MADE
        for c in range(len(measured)):
            plan.amounts[own, c] = measured[c]


@called_kernel
def measure_again(state, site, use, plan):
    """A job has started for longer than it was planned, maybe on nodes that are kept for those ahead of it."""
    state.in_line = NOT_MADE
    for k in range(state.ahead):
        _measure(state, site, use, plan, plan.blocks[k])


@kernel
def _are_kept(state, site, plan):
    """Whether the nodes that have been chosen are those of the next block."""
    other = plan.spare_sets[state.spare_sets - 1]
    mark(site.sets[other], plan.choice.chosen, state.chosen)
    row, same = plan.blocks[state.ahead].row, True
    for w in range(site.sets.shape[1]):
        same &= site.sets[other, w] == site.sets[row, w]
    return same


@called_kernel
def room_until(state, site, plan, latest):
    """The first time before `latest` at which one of the chosen nodes is kept for another; `latest` if there is none."""
    mark(site.sets[USABLE], plan.choice.chosen, state.chosen)
    until = latest
    for k in range(state.ahead):
        block = plan.blocks[k]
        if state.now < block.keeps_from < until:
            for w in range(block.first_word, block.last_word + 1):
                if site.sets[block.row, w] & site.sets[USABLE, w]:
                    until = block.keeps_from
                    break
    for k in range(len(site.outages)):
        out = site.outages[k]
        if out.phase == 1 and state.now < out.begin < until:
            for w in range(site.sets.shape[1]):
                if site.sets[out.row, w] & site.sets[USABLE, w]:
                    until = out.begin
                    break
    return until


# ---------------------------------------------------------------------------------------------------- the time line


@called_kernel
def _bring_line(state, running, totals, blocks, amounts, line):
    """Let the time line have the blocks of the jobs ahead, and no others."""
    if state.in_line < 0 or state.in_line > state.ahead:
        _make_line(state, running, totals, line)
    while state.in_line < state.ahead:
        block = blocks[state.in_line]
        take_from_line(state, line, amounts[block.row], block.begin, block.end)
        state.in_line += 1


@kernel
def _make_line(state, running, totals, line):
    """Make the time line of the running jobs alone."""
    state.steps = 1
    for c in range(len(line.sums)):
        line.sums[c, 0] = totals[0, c]
    for k in range(state.running):
        state.steps += running[k].release > line.times[state.steps - 1]
        line.times[state.steps - 1] = running[k].release
        for c in range(len(line.sums)):
            line.sums[c, state.steps - 1] = totals[running[k].row, c]
    state.in_line = 0


@called_kernel
def take_from_line(state, line, amounts, begin, end):
    """Let so much less be free in [begin, end)."""
    first = _make_step(state, line, begin)
    last = _make_step(state, line, end)
    for c in range(len(amounts)):
        for i in range(first, last):
            line.sums[c, i] -= amounts[c]


@kernel
def _step_at(state, line, time):
    """The last step that is not after a time; the first one is always before."""
    i, end = 1, state.steps
    while i < end:
        middle = (i + end) // 2
        if line.times[middle] <= time:
            i = middle + 1
        else:
            end = middle
    return i - 1


@kernel
def _make_step(state, line, time):
    """The step at a time, made if there is none; one for the time before the first step is the first."""
    i = _step_at(state, line, time)
    if line.times[i] == time:
        return i
    for j in range(state.steps, i + 1, -1):
        line.times[j] = line.times[j - 1]
    line.times[i + 1] = time
    for c in range(len(line.sums)):
        for j in range(state.steps, i, -1):
            line.sums[c, j] = line.sums[c, j - 1]
    state.steps += 1
    return i + 1
