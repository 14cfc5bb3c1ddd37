"""Update `Use`: the nodes of running jobs, and the amounts that are free over time if these end as planned and no other job starts."""

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.bits import add_in_planes, any_of, count_between, count_bits, ones, words_of
from walltime.engine.kernel.nodes.amounts import units_of
from walltime.engine.kernel.nodes.gains import note_change
from walltime.engine.kernel.nodes.plan import NOT_MADE, take_from_timeline
from walltime.engine.kernel.nodes.records import CAPACITY, SECOND

MORE, LESS = np.int64(1), np.int64(-1)
"""Signs of amounts that become free, or stop being free, as int64: literals of another type would cause additional compilations."""
NOW = np.int64(-1)
"""Stands for the present where a running job's number is expected."""


@called_kernel
def start_use(state, job, index, site, use, plan, expected):
    """Give a job the nodes chosen for it, until its expected end."""
    running, place = use.running, state.running
    job.first, job.count = state.ranges, state.chosen
    for k in range(state.chosen):
        use.ranges[state.ranges + k] = plan.choice.chosen[k]
    state.ranges += state.chosen
    state.spare_rows -= 1
    row = use.spare[state.spare_rows]
    while place > 0 and running[place - 1].release > expected:
        running[place] = running[place - 1]
        place -= 1
    one = running[place]
    one.release = one.expected = expected
    one.job, one.row, one.owner, one.first, one.count = index, row, job.owner, job.first, job.count
    state.running += 1
    _copy_row(use, 0 if place == 0 else running[place - 1].row, row)
    _count_gives(state, site, use, job, row)
    change_rows(state, site, use, job, row, NOW, place, LESS)
    if state.timeline_blocks >= 0:
        take_from_timeline(state, plan.timeline, use.gives[row], plan.timeline.times[0], expected)
    note_change(state, 0, 0, 0, 0, 0, 0, expected)


@called_kernel
def end_use(state, job, index, site, use):
    """Release the nodes of a job, which may end earlier than planned."""
    running, place = use.running, 0
    while running[place].job != index:
        place += 1
    row, release = running[place].row, running[place].release
    state.overdue -= release > running[place].expected
    change_rows(state, site, use, job, row, NOW, place, MORE)
    state.running -= 1
    for k in range(place, state.running):
        running[k] = running[k + 1]
    use.spare[state.spare_rows] = row
    state.spare_rows += 1
    if release > state.now:
        state.timeline_blocks = NOT_MADE
        _note_release(state, use, row, release)


@kernel
def is_any_overdue(state, use):
    """Return whether a running job has passed its planned end."""
    return state.overdue > 0 or (state.running > 0 and use.running[0].expected <= state.now)


@called_kernel
def move_overdue(state, rules, jobs, site, use):
    """Expect overdue running jobs to end in a second, or after half of the time that is left until their limit."""
    running, place = use.running, 0
    while place < (state.running if is_any_overdue(state, use) else 0):
        one = running[place]
        job = jobs[one.job]
        left = (job.start + job.limit - state.now) // 2 if rules.soft and rules.half and job.time_min > 0 else 0
        release = state.now + max(1, left)
        if one.expected > state.now or one.release >= release:
            place += 1
            continue
        state.overdue += one.release == one.expected
        expected, index, row = one.expected, one.job, one.row
        to = place
        while to + 1 < state.running and running[to + 1].release <= release:
            running[to] = running[to + 1]
            to += 1
        moved = running[to]
        moved.release, moved.expected, moved.job, moved.row = release, expected, index, row
        moved.owner, moved.first, moved.count = job.owner, job.first, job.count
        if to > place:
            _copy_row(use, running[to - 1].row, row)
        change_rows(state, site, use, job, row, place, to, LESS)
        state.timeline_blocks = NOT_MADE
        note_change(state, 0, 0, 0, 0, 0, 0, release)


@called_kernel
def shorten_use(state, jobs, index, site, use, expected):
    """Expect a running job to end at an earlier time."""
    running, place = use.running, 0
    while running[place].job != index:
        place += 1
    release, row = running[place].release, running[place].row
    if running[place].expected <= expected:
        return
    to = place
    while to > 0 and running[to - 1].release > expected:
        running[to] = running[to - 1]
        to -= 1
    one, job = running[to], jobs[index]
    one.release = one.expected = expected
    one.job, one.row, one.owner, one.first, one.count = index, row, job.owner, job.first, job.count
    _copy_row(use, 0 if to == 0 else running[to - 1].row, row)
    change_rows(state, site, use, job, row, to, place + 1, MORE)
    state.timeline_blocks = NOT_MADE
    _note_release(state, use, row, release)


@kernel
def _note_release(state, use, row, until):
    """Note that the amounts of the job of a row have become free, until the time to which it was expected to have them."""
    own, columns = use.gives[row], use.totals.shape[1]
    note_change(state, own[columns], own[columns + 1], own[columns + 2], own[columns + 3], own[columns + 4], own[columns + 5], until)


@kernel
def _copy_row(use, source, target):
    for k in range(use.free.shape[1]):
        for w in range(use.free.shape[2]):
            use.free[target, k, w] = use.free[source, k, w]
    for c in range(use.totals.shape[1]):
        use.totals[target, c] = use.totals[source, c]


@called_kernel
def change_rows(state, site, use, job, row, first, end, sign):
    """Count the job of a row as ended (sign 1) or as running (-1) at the releases of `running[first:end]`; NOW stands for the present."""
    for k in range(first, end):
        other = 0 if k < 0 else use.running[k].row
        for c in range(state.of_nodes if state.of_nodes > 0 else use.totals.shape[1]):
            use.totals[other, c] += sign * use.gives[row, c]
        for r in range(job.first, job.first + job.count):
            node, node_end = use.ranges[r].node, use.ranges[r].node + use.ranges[r].count
            for w in words_of(node, node_end):
                bits = ones(w, node, node_end)
                if state.planes == 1:
                    use.free[other, 0, w] ^= bits
                else:
                    before = any_of(use.free[other], state.procs_planes, w)
                    add_in_planes(use.free[other], 0, state.procs_planes, w, bits, use.ranges[r].procs, sign)
                    changed = before ^ any_of(use.free[other], state.procs_planes, w)
                    for c in range(state.of_nodes, use.totals.shape[1] if changed != 0 and state.of_nodes > 0 else 0):
                        kind = site.sets[CAPACITY + state.planes + c - state.of_nodes, w]
                        use.totals[other, c] += sign * count_bits(changed & kind)
                    add_in_planes(use.free[other], state.procs_planes, state.second_end, w, bits, use.ranges[r].second, sign)
                    add_in_planes(use.free[other], state.second_end, state.planes, w, bits, use.ranges[r].memory, sign)


@kernel
def _count_gives(state, site, use, job, row):
    """Sum up the amounts that a job has, by the columns of `Use.totals`, and those of RELEASED."""
    kinds, first, columns = state.kinds, CAPACITY + state.planes, use.totals.shape[1]
    for c in range(use.gives.shape[1]):
        use.gives[row, c] = 0
    for r in range(job.first, job.first + job.count):
        for k in range(kinds):
            count = count_between(site.sets[first + k], use.ranges[r].node, use.ranges[r].node + use.ranges[r].count)
            use.gives[row, k] += count * use.ranges[r].procs
            if state.second_end > state.procs_planes:
                use.gives[row, kinds + k] += count * units_of(state, use.ranges[r].second)
            if state.of_memory > 0:
                use.gives[row, state.of_memory + k] += count * use.ranges[r].memory
            if state.of_nodes > 0:
                use.gives[row, state.of_nodes + k] += _count_whole(state, site, use.ranges[r], first + k)
        own, gives = use.ranges[r], use.gives[row]
        gives[columns] += own.count * own.procs
        gives[columns + 1] += own.count * own.memory
        gives[columns + 2] += own.count
        for k in range(state.procs_planes):
            for w in words_of(own.node, own.node + own.count):
                of_plane = ones(w, own.node, own.node + own.count) & site.sets[CAPACITY + k, w]
                gives[columns + 3] += count_bits(of_plane) << k
                gives[columns + 4] += count_bits(of_plane & site.sets[SECOND, w]) << k
        gives[columns + 5] += count_between(site.sets[SECOND], own.node, own.node + own.count)


@kernel
def _count_whole(state, site, own, kind):
    """Return how many nodes of a range are in this row of `NodeMachine.sets`, and entirely the job's."""
    count = 0
    for w in words_of(own.node, own.node + own.count) if own.procs > 0 else range(0):
        whole = ones(w, own.node, own.node + own.count) & site.sets[kind, w]
        for k in range(state.procs_planes):
            of_plane = site.sets[CAPACITY + k, w]
            whole &= of_plane if (own.procs >> k) & 1 else ~of_plane
        count += count_bits(whole)
    return count
