"""Nodes for a job: when there are enough of them, and which ones it gets (loop.py has the rules).

A job looks at the nodes of its partition as they are at some time: what is free, and whether they are kept for others. As that time goes
on, `Plan.seen` and sums over it are changed where something changes, not made anew.
"""

from __future__ import annotations

from walltime.engine.kernel.heap import drop_first, push
from walltime.engine.kernel.jit import called_kernel, kernel
from walltime.engine.kernel.profile import NEVER


@called_kernel
def earliest(jobs, nodes, member, slots, plan, release_count, block_count, index, length, least, latest):
    """The earliest time from `least` to `latest` at which there are nodes for a job that nobody else has for `length`; else NEVER.

    Counted are so many releases and blocks of the plan. Afterwards `plan.seen` shows the nodes at that time.
    """
    job, seen, blocks, by_begin, by_end, releases = jobs[index], plan.seen, plan.blocks, plan.by_begin, plan.by_end, plan.releases
    # The loops below are where a simulation spends its time: what they need is in local variables, not in the records.
    part, whole, each, need_nodes, need_procs, need_second = job.partition, job.whole, job.each, job.nodes, job.procs, job.second
    size, time = len(nodes.procs), least
    if least > latest:
        return NEVER
    for n in range(size):
        seen.procs[n], seen.second[n] = nodes.free_procs[n], nodes.free_second[n]
        seen.blocked[n] = nodes.closed[n] + 1 - member[part, n]  # those of other partitions are kept for others, too
    release = begun = ended = 0
    while release < release_count and releases[release].time <= least:
        first = jobs[releases[release].job].first
        for k in range(first, first + jobs[releases[release].job].count):
            seen.procs[slots[k].node] += slots[k].procs
            seen.second[slots[k].node] += slots[k].second
        release += 1
    while begun < block_count and blocks[by_begin[begun]].begin < least + length:
        block = by_begin[begun]
        if blocks[block].end > least:
            for k in range(blocks[block].first, blocks[block].first + blocks[block].count):
                seen.blocked[plan.nodes[k]] += 1
        begun += 1
    fit_nodes = fit_procs = fit_second = 0
    for n in range(size):  # without branches, so that the compiler takes several at once
        usable = (seen.blocked[n] == 0) & (seen.second[n] >= each) & (seen.procs[n] >= (nodes.procs[n] if whole > 0 else 1))
        fit_nodes += 1 if usable else 0
        fit_procs += seen.procs[n] if usable else 0
        fit_second += seen.second[n] if usable else 0
    while True:
        while ended < block_count and blocks[by_end[ended]].end <= time:
            block = by_end[ended]
            if blocks[block].end > least:
                for k in range(blocks[block].first, blocks[block].first + blocks[block].count):
                    n = plan.nodes[k]
                    seen.blocked[n] -= 1
                    if _usable(seen, nodes, n, whole, each):
                        fit_nodes += 1
                        fit_procs += seen.procs[n]
                        fit_second += seen.second[n]
            ended += 1
        if fit_nodes >= need_nodes and (whole > 0 or (fit_procs >= need_procs and fit_second >= need_second)):
            return time
        time = NEVER
        if release < release_count:
            time = releases[release].time
        if ended < block_count:
            time = min(time, blocks[by_end[ended]].end)
        if time > latest:
            return NEVER
        while release < release_count and releases[release].time <= time:
            first = jobs[releases[release].job].first
            for k in range(first, first + jobs[releases[release].job].count):
                n = slots[k].node
                before = _usable(seen, nodes, n, whole, each)
                seen.procs[n] += slots[k].procs
                seen.second[n] += slots[k].second
                if _usable(seen, nodes, n, whole, each):
                    fit_nodes += 0 if before else 1
                    fit_procs += slots[k].procs if before else seen.procs[n]
                    fit_second += slots[k].second if before else seen.second[n]
            release += 1
        while begun < block_count and blocks[by_begin[begun]].begin < time + length:
            block = by_begin[begun]
            if blocks[block].end > least:
                for k in range(blocks[block].first, blocks[block].first + blocks[block].count):
                    n = plan.nodes[k]
                    if _usable(seen, nodes, n, whole, each):
                        fit_nodes -= 1
                        fit_procs -= seen.procs[n]
                        fit_second -= seen.second[n]
                    seen.blocked[n] += 1
            begun += 1


@called_kernel
def least_by_bounds(state, jobs, plan, index, length, latest):
    """A time before which a job cannot start, by what jobs that ask for less have found in this cycle; NEVER if that is after `latest`."""
    job, least = jobs[index], state.now
    procs, need_nodes = job.procs, job.nodes
    for k in range(state.bounds):
        bound = plan.bounds[k]
        if bound.time > least and bound.length <= length and bound.procs <= procs and bound.nodes <= need_nodes:
            same = bound.partition == job.partition and bound.whole == job.whole
            if same and bound.second <= job.second and bound.each <= job.each:
                least = bound.time
                if least > latest:
                    return NEVER
    return least


@called_kernel
def least_by_sum(state, jobs, plan, index, length, least, latest):
    """A time before which a job cannot start: as many processors as it needs must be free for its length, on whichever nodes.

    The search begins at `least`; NEVER if the time is after `latest`.
    """
    job = jobs[index]
    steps, count = plan.steps, state.steps
    need = (job.nodes if job.whole else max(job.nodes, job.procs)) - state.free_procs
    i, end = 0, count  # the first step after `least`
    while i < end:
        middle = (i + end) // 2
        if steps[middle].time <= least:
            i = middle + 1
        else:
            end = middle
    begin, free = least, steps[i - 1].sum if i > 0 else 0
    while True:
        while free < need:  # until enough is free
            if i == count or steps[i].time > latest:
                return NEVER
            begin = steps[i].time
            while i < count and steps[i].time == begin:
                i += 1
            free = steps[i - 1].sum
        while free >= need:  # as long as it stays so
            if i == count or steps[i].time >= begin + length:
                return begin
            time = steps[i].time
            while i < count and steps[i].time == time:
                i += 1
            free = steps[i - 1].sum


@kernel
def note_bound(state, jobs, plan, index, length, time):
    """Note what a job has found, for those behind it, and forget what follows from it."""
    job, bounds, left = jobs[index], plan.bounds, 0
    for k in range(state.bounds):
        old = bounds[k]
        if old.time <= time and old.length >= length and old.procs >= job.procs and old.nodes >= job.nodes:
            same = old.partition == job.partition and old.whole == job.whole
            if same and old.second >= job.second and old.each >= job.each:
                continue
        if left < k:
            bounds[left] = old
        left += 1
    bound = bounds[min(left, len(bounds) - 1)]
    bound.partition, bound.procs, bound.nodes, bound.second = job.partition, job.procs, job.nodes, job.second
    bound.each, bound.whole, bound.length, bound.time = job.each, job.whole, length, time
    state.bounds = min(left + 1, len(bounds))


@kernel
def _usable(seen, nodes, n, whole, each):
    """Whether a job can use a node as it is seen: one that wants whole nodes, and `each` of the second resource or more on them."""
    if seen.blocked[n] > 0 or seen.second[n] < each:
        return False
    return seen.procs[n] >= (nodes.procs[n] if whole > 0 else 1)


@kernel
def could_start(state, nodes, member, plan, job):
    """Whether there is room for a job now, among the nodes of `plan.free`, by the plan so far."""
    part, whole, each, need_nodes, need_procs = job.partition, job.whole, job.each, job.nodes, job.procs
    if need_nodes > state.free or (whole == 0 and need_procs > state.free_procs):
        return False
    until = state.now + (job.time_min if job.time_min > 0 else job.believed)
    fit_nodes = fit_procs = fit_second = 0
    for k in range(state.free):
        n = plan.free[k]
        if plan.kept_from[n] < until or nodes.free_second[n] < each or not member[part, n]:
            continue
        if nodes.free_procs[n] >= (nodes.procs[n] if whole > 0 else 1):
            fit_nodes += 1
            fit_procs += nodes.free_procs[n]
            fit_second += nodes.free_second[n]
    if fit_nodes < need_nodes:
        return False
    return whole > 0 or (fit_procs >= need_procs and fit_second >= job.second)


@called_kernel
def choose(state, jobs, nodes, nodes_of, plan, index):
    """Choose nodes for a job among those that it sees, of which there are enough: `plan.chosen`.

    Best fit on consecutive nodes: whole runs of usable nodes, the largest first, until what is left fits into one; of these the smallest.
    """
    runs, heap, seen, usable, items, part = plan.runs, plan.heap, plan.seen, plan.usable, nodes_of.items, jobs[index].partition
    need, count, whole, each = jobs[index], 0, jobs[index].whole, jobs[index].each
    for n in range(len(nodes.procs)):  # without branches, so that the compiler takes several at once
        usable[n] = (seen.blocked[n] == 0) & (seen.second[n] >= each) & (seen.procs[n] >= (nodes.procs[n] if whole > 0 else 1))
    first, procs, second, largest = -1, 0, 0, 0
    for k in range(nodes_of.first[part], nodes_of.first[part + 1]):
        n = items[k]
        if usable[n]:
            if first < 0:
                first, procs, second = k, 0, 0
            procs += seen.procs[n]
            second += seen.second[n]
        elif first >= 0:
            _note_run(runs[count], first, k, procs, second)
            largest = count if runs[count].procs > runs[largest].procs else largest
            count, first = count + 1, -1
    if first >= 0:
        _note_run(runs[count], first, nodes_of.first[part + 1], procs, second)
        largest = count if runs[count].procs > runs[largest].procs else largest
        count += 1
    left_nodes, left_procs, left_second = need.nodes, need.procs, need.second
    one = _suffices(runs[largest], whole, left_nodes, left_procs, left_second)  # mostly: no heap is needed
    for i in range(0 if one else count):
        push(heap, i, -runs[i].procs, i, i)
    state.chosen = 0
    while left_nodes > 0 or left_procs > 0 or left_second > 0:
        best = largest if one else heap[0].job
        if _suffices(runs[best], whole, left_nodes, left_procs, left_second):
            for i in range(count):
                other = i if one else heap[i].job
                if _suffices(runs[other], whole, left_nodes, left_procs, left_second):
                    if runs[other].procs < runs[best].procs or (runs[other].procs == runs[best].procs and other < best):
                        best = other
        else:
            drop_first(heap, count)
            count -= 1
        for k in range(runs[best].first, runs[best].last + 1):
            n = nodes_of.items[k]
            procs = seen.procs[n] if whole else min(seen.procs[n], left_procs - max(0, left_nodes - 1))
            second = min(seen.second[n], left_second)
            if (whole and left_nodes == 0) or (procs <= 0 and second == 0):
                continue
            chosen = plan.chosen[state.chosen]
            chosen.node, chosen.procs, chosen.second = n, procs, second
            state.chosen += 1
            left_nodes = max(0, left_nodes - 1)
            left_procs -= procs
            left_second -= second


@kernel
def _note_run(run, first, end, procs, second):
    """Note consecutive usable nodes, those at the places [first, end) of the partition."""
    run.first, run.last, run.nodes, run.procs, run.second = first, end - 1, end - first, procs, second


@kernel
def _suffices(run, whole, left_nodes, left_procs, left_second):
    """Whether a run has what is left to be found."""
    if run.nodes < left_nodes:
        return False
    return whole > 0 or (run.procs >= left_procs and run.second >= left_second)


@called_kernel
def keep(state, plan, begin, length, resolution):
    """Keep the nodes that have been chosen free for `length` from `begin` on, and at least to multiples of the resolution."""
    first, free = state.planned, 0
    for k in range(state.chosen):
        plan.nodes[state.planned] = plan.chosen[k].node
        free += plan.seen.procs[plan.chosen[k].node]
        state.planned += 1
    until = -(-(begin + length) // resolution) * resolution
    add_block(state, plan, max(begin // resolution * resolution, state.now), until, first, state.chosen)
    # Not to the multiples, between which blocks may overlap: a sum must not count a node twice.
    add_step(state, plan, begin, -free)
    add_step(state, plan, begin + length, free)


@kernel
def add_step(state, plan, time, change):
    """Add a change of the processors that are free to the sum over the machine."""
    steps, i = plan.steps, state.steps
    while i > 0 and steps[i - 1].time > time:
        steps[i].time, steps[i].sum = steps[i - 1].time, steps[i - 1].sum + change
        i -= 1
    steps[i].time, steps[i].sum = time, change + (steps[i - 1].sum if i > 0 else 0)
    state.steps += 1


@kernel
def add_block(state, plan, begin, end, first, count):
    """Add a block of nodes that are in `plan.nodes`, in order of begin and of end."""
    blocks, block = plan.blocks, state.blocks
    blocks[block].begin, blocks[block].end, blocks[block].first, blocks[block].count = begin, end, first, count
    if end > state.now:
        for k in range(first, first + count):
            plan.kept_from[plan.nodes[k]] = min(plan.kept_from[plan.nodes[k]], begin)
    i = block
    while i > 0 and blocks[plan.by_begin[i - 1]].begin > begin:
        plan.by_begin[i] = plan.by_begin[i - 1]
        i -= 1
    plan.by_begin[i] = block
    i = block
    while i > 0 and blocks[plan.by_end[i - 1]].end > end:
        plan.by_end[i] = plan.by_end[i - 1]
        i -= 1
    plan.by_end[i] = block
    state.blocks += 1


@called_kernel
def room_until(state, plan, latest):
    """The first time before `latest` at which one of the chosen nodes is kept for another; `latest` if there is none."""
    state.stamp += 1
    for k in range(state.chosen):
        plan.mine[plan.chosen[k].node] = state.stamp
    for i in range(state.blocks):
        block = plan.blocks[plan.by_begin[i]]
        if block.begin >= latest:
            break
        for k in range(block.first, block.first + block.count):
            if plan.mine[plan.nodes[k]] == state.stamp and block.begin > state.now:
                return block.begin
    return latest
