"""Find the nodes that a job can use, and choose the nodes that it gets (loop.py has the rules)."""

import numpy as np

from walltime.compiled.jit import called_kernel, inlined_kernel, kernel
from walltime.engine.kernel.bits import (
    any_of,
    exclude,
    next_member,
    number_of,
    ones,
    size_of,
    total_between,
    total_of,
    words_of,
)
from walltime.engine.kernel.heap import pop, push
from walltime.engine.kernel.nodes.amounts import missing_at_least, only_with, second_planes, shape_nodes
from walltime.engine.kernel.nodes.gains import nodes_for
from walltime.engine.kernel.nodes.records import CAPACITY, CLOSED, FIRST_FIT, FITTING, OTHERS, UNHELD, USABLE
from walltime.engine.kernel.profile import NEVER
from walltime.engine.kernel.search import first_from

HEAVIER = np.int64(1) << 40
"""Step between the ranks of successive weights in the heap of runs: more than the processors of any run."""


@kernel
def released_by(state, running, time):
    """Return the number of running jobs that have released their nodes by a time, according to the plan."""
    return first_from(running.release, 0, state.running, time + 1)


@kernel
def row_at(state, running, time):
    """Return the row of `Use.free` that includes the releases up to a time; for the present, the row of the nodes that are free now."""
    released = released_by(state, running, time) if time > state.now else 0
    return 0 if released == 0 else running[released - 1].row


@inlined_kernel
def shortfall(state, job, site, use, plan, time, length, enough):
    """Find the nodes that a job can use for a length from a time on, given the first `state.ahead` blocks; they become the set USABLE.

    Returns 0 if they suffice, else a lower bound on the number of processors that must still become free: the first that is known to be
    at least `enough`, or the best one. `state.lacking_nodes` becomes a lower bound on the number of nodes where any must become free.
    """
    if job.owner != 0:
        _mark_others(state, job, use, site.sets[OTHERS], time)
    return shortfall_of(state, job, site, use.free[row_at(state, use.running, time)], plan, time, length, enough)


@called_kernel
def shortfall_of(state, job, site, free, plan, time, length, enough):
    """Find the usable nodes as `shortfall` does, given the free amounts of each node (planes).

    The caller has marked OTHERS if the users of nodes matter.
    """
    members, sets, outages, blocks = site.members[job.members], site.sets, site.outages, plan.blocks
    reservation = site.partitions[job.partition].reservation
    words, procs_planes = sets.shape[1], state.procs_planes
    for w in range(words):
        sets[USABLE, w] = sets[members.row, w] if job.whole or procs_planes > 1 else sets[members.row, w] & free[0, w]
    if job.whole:
        for k in range(procs_planes):
            for w in range(words):
                sets[USABLE, w] &= ~(free[k, w] ^ sets[CAPACITY + k, w])
    elif procs_planes > 1:
        for w in range(words):
            sets[USABLE, w] &= any_of(free, procs_planes, w)
    second, second_end = second_planes(state, job)
    if job.each > 0:
        only_with(free, second, second_end, sets[USABLE], 0, words, job.each)
    if job.memory > 0:
        only_with(free, state.second_end, state.planes, sets[USABLE], 0, words, job.memory)
    if state.closed:
        _leave_out(sets, CLOSED, 0, words)
    for k in range(len(outages)):
        out = outages[k]
        if out.phase == 1 and out.begin < time + length and out.end > time and (reservation == 0 or out.reservation != abs(reservation)):
            _leave_out(sets, out.row, 0, words)
    if reservation > 0:
        _only_reserved(sets, outages, reservation, time)
    if job.owner != 0:
        _leave_out(sets, OTHERS, 0, words)
    for k in range(state.ahead):
        block = blocks[k]
        if block.valid_from <= time + length and block.end > time:
            _leave_out(sets, block.row, block.first_word, block.last_word + 1)
    if job.shaped:
        missing = missing_at_least(state, job, free, sets[USABLE])
        if missing >= max(1, enough):
            state.lacking_nodes = max(job.nodes - size_of(sets[USABLE]), nodes_for(state, job, missing))
            return missing
        shape_nodes(state, job, free, site.shaped, sets[USABLE])
    nodes = size_of(sets[USABLE])
    missing = max(0, job.nodes - nodes)
    if not job.whole or members.node_procs == 0:
        amounts = site.shaped if job.shaped else free
        procs = nodes if procs_planes == 1 else total_of(amounts, 0, procs_planes, sets[USABLE])
        missing = max(missing, job.asked - procs)
    if missing == 0 and job.total > 0 and total_of(free, second, second_end, sets[USABLE]) < job.total:
        missing = 1
    if missing == 0 and job.most_nodes > 0 and not _fits_in_most(state, job, site, free, plan.choice):
        missing = 1
    state.lacking_nodes = max(job.nodes - nodes, nodes_for(state, job, missing))
    return missing


@kernel
def _only_reserved(sets, outages, reservation, time):
    """Keep only the nodes that a reservation holds at a time; after the end of the reservation, keep all nodes."""
    reserved, is_over = sets[FITTING], True
    reserved[:] = 0
    for k in range(len(outages)):
        out = outages[k]
        if out.reservation == reservation and out.end > time:
            is_over = False
            for w in range(len(reserved) if out.begin <= time else 0):
                reserved[w] |= sets[out.row, w]
    if not is_over:
        for w in range(len(reserved)):
            sets[USABLE, w] &= reserved[w]


@kernel
def _mark_others(state, job, use, others, time):
    """Find the nodes on which jobs of other users run at a time, if either job requests nodes for its user alone."""
    others[:] = 0
    for k in range(released_by(state, use.running, time) if time > state.now else 0, state.running):
        other = use.running[k]
        if (job.owner < 0 or other.owner < 0) and abs(job.owner) != abs(other.owner):
            for r in range(other.first, other.first + other.count):
                node, end = use.ranges[r].node, use.ranges[r].node + use.ranges[r].count
                for w in words_of(node, end):
                    others[w] |= ones(w, node, end)


@called_kernel
def _fits_in_most(state, job, site, free, choice):
    """Return whether the usable nodes suffice for a job within its maximum number of nodes.

    Otherwise leave out the nodes that give it the least, and try again.
    """
    if choose_of(state, job, site, free, choice):
        return True
    usable = site.sets[USABLE]
    for least in range(2, 1 << state.procs_planes):
        before = size_of(usable)
        only_with(site.shaped, 0, state.procs_planes, usable, 0, len(usable), least)
        nodes = size_of(usable)
        if nodes < job.nodes:
            return False
        if nodes < before and choose_of(state, job, site, free, choice):
            return True
    return False


@kernel
def _leave_out(sets, row, first, end):
    """Remove the nodes of a set from the usable ones, in some words."""
    for w in range(first, end):
        sets[USABLE, w] &= ~sets[row, w]


@kernel
def choose(state, job, site, use, choice, time):
    """Choose nodes for a job among those usable at a time, as `state.chosen` ranges; return whether they suffice."""
    return choose_of(state, job, site, use.free[row_at(state, use.running, time)], choice)


@called_kernel
def choose_of(state, job, site, free, choice):
    """Choose nodes for a job among the usable ones, given the free amounts of each (planes); return whether they suffice.

    The job gets the best run of consecutive usable nodes of one weight (`_best_run`), and additional runs until it has enough. If a single
    node of the run suffices, the job gets the node with the fewest free processors that does.
    """
    runs, heap, members = choice.runs, choice.heap, site.members[job.members]
    planes = site.shaped if job.shaped else free
    state.chosen, state.left_nodes, state.left_procs, state.left_second = 0, job.nodes, job.asked, job.total
    state.left_most = job.most_nodes if job.most_nodes > 0 else NEVER
    if site.partitions[job.partition].least_loaded == FIRST_FIT:
        return _choose_first(state, job, site, planes, choice)
    if job.spread or site.partitions[job.partition].least_loaded:
        return _choose_one_by_one(state, job, site, planes, choice)
    count, entries = _find_runs(state, job, site, planes, runs), -1
    size, per_node = members.node_procs, job.shaped > 0 or job.each > 0 or (job.memory > 0 and not job.whole)
    alike = size > 0 and job.total == 0 and not per_node and (job.whole > 0 or size == 1)  # the job gets the same amount on every node
    # if any run suffices, the biggest one does
    by_size = job.most_nodes == 0 and job.total == 0 and (job.nodes <= 1 or size == 1 or (job.whole > 0 and size > 0))
    may_be_alone = state.procs_planes > 1 or job.total > 0
    while state.left_most > 0 and not _has_enough(state):
        best = heap[0].job if entries > 0 else -1
        if best >= 0 and not _suffices(state, runs[best]):
            pop(heap, entries)
            entries -= 1
        else:
            best = _best_run(state, runs, count)
            if best < 0:
                return False
            if by_size and entries < 0 and not _suffices(state, runs[best]):
                entries = 0
                for i in range(count):
                    if i != best:
                        push(heap, entries, runs[i].weight * HEAVIER - runs[i].procs, i, i)
                        entries += 1
        runs[best].nodes = 0  # it is taken
        place, end = runs[best].place, runs[best].end
        if alike:
            end = min(end, place + max(state.left_nodes, -(-state.left_procs // size)))
            _take(state, site, choice, job.members, place, end, size)
            state.left_nodes = max(0, state.left_nodes - (end - place))
            state.left_procs -= size * (end - place)
            continue
        if may_be_alone and state.left_nodes <= 1:
            node = _tightest_node(state, job, site, planes, runs[best])
            if node >= 0:
                procs = number_of(planes, 0, state.procs_planes, node) if job.whole else max(0, state.left_procs)
                _take_node(state, job, choice, node, procs, _second_of(state, job, planes, node, procs))
                return True
        for k in range(place, end):
            if state.left_most == 0 or _has_enough(state):
                break
            s = members.last_stretch - 1
            while site.stretches[s].place > k:
                s -= 1
            _take_part(state, job, choice, planes, site.stretches[s].node + k - site.stretches[s].place)
    return _has_enough(state)


@called_kernel
def _choose_first(state, job, site, planes, choice):
    """Choose the usable nodes in the order of the partition; return whether they suffice."""
    part = site.members[job.members]
    for s in range(part.first_stretch, part.last_stretch):
        stretch = site.stretches[s]
        node = next_member(site.sets[USABLE], stretch.node, stretch.end, 1)
        while node < stretch.end:
            if state.left_most == 0 or _has_enough(state):
                return _has_enough(state)
            _take_part(state, job, choice, planes, node)
            node = next_member(site.sets[USABLE], node + 1, stretch.end, 1)
    return _has_enough(state)


@called_kernel
def _choose_one_by_one(state, job, site, planes, choice):
    """Choose usable nodes of the lowest weight, in order or by the largest share of free processors; return whether they suffice."""
    part, left = site.members[job.members], site.sets[FITTING]
    for w in range(len(left)):
        left[w] = site.sets[USABLE, w]
    while state.left_most > 0 and not _has_enough(state):
        best, weight, free, whole = -1, 0, 0, 1
        for s in range(part.first_stretch, part.last_stretch):
            stretch = site.stretches[s]
            node = next_member(left, stretch.node, stretch.end, 1)
            while node < stretch.end and (best < 0 or stretch.weight <= weight):
                procs = number_of(planes, 0, state.procs_planes, node)
                capacity = number_of(site.sets, CAPACITY, CAPACITY + state.procs_planes, node)
                own = _weight_of(state, site, stretch, node)
                if best < 0 or own < weight or (own == weight and not job.spread and procs * whole > free * capacity):
                    best, weight, free, whole = node, own, procs, capacity
                node = next_member(left, node + 1, stretch.end, 1)
        if best < 0:
            return False
        exclude(left, best)
        _take_part(state, job, choice, planes, best)
    return _has_enough(state)


@kernel
def _has_enough(state):
    return state.left_nodes <= 0 and state.left_procs <= 0 and state.left_second <= 0


@kernel
def _take_part(state, job, choice, planes, node):
    """Choose as much of a node as a job still needs.

    Skip the node if it gives nothing, or if it is the last one that the job may have and gives too little.
    """
    procs = number_of(planes, 0, state.procs_planes, node)
    if state.left_most == 1 and procs < state.left_procs:
        return
    if not job.whole:
        procs = min(procs, state.left_procs - max(0, state.left_nodes - 1) * job.task)
    if procs <= 0 and job.total == 0:
        return
    second = _second_of(state, job, planes, node, procs)
    if procs <= 0 and second == 0:
        return
    _take_node(state, job, choice, node, procs, second)
    state.left_nodes = max(0, state.left_nodes - 1)
    state.left_procs -= procs
    state.left_second -= second if job.total > 0 else 0
    state.left_most -= 1


@kernel
def _second_of(state, job, planes, node, procs):
    """Return the units of the second resource that a job gets on a node with this many processors."""
    if job.total > 0:
        first, end = second_planes(state, job)
        return min(number_of(planes, first, end, node), state.left_second)
    return job.each if job.each > 0 else job.per_task * (procs // job.task)


@kernel
def _best_run(state, runs, count):
    """Return the run that Slurm takes next, among those of the lowest weight: the smallest sufficient one, or else the largest.

    Each run is compared only with the best one so far, so a large run with too few nodes may be preferred to a sufficient one.
    """
    best, best_suffices = -1, False
    for i in range(count):
        run = runs[i]
        if run.nodes == 0 or (best >= 0 and run.weight > runs[best].weight):
            continue
        suffices = _suffices(state, run)
        if best >= 0 and run.weight == runs[best].weight:
            if suffices and best_suffices and run.procs >= runs[best].procs:
                continue
            if not suffices and run.procs <= runs[best].procs:
                continue
        best, best_suffices = i, suffices
    return best


@called_kernel
def _tightest_node(state, job, site, planes, run):
    """Return the node of a run with the fewest free processors among those that suffice by themselves; -1 if there is none."""
    part, fitting, first, end = site.members[job.members], site.sets[FITTING], len(site.sets[FITTING]), 0
    fitting[:] = 0
    for k in range(part.first_stretch, part.last_stretch):
        node, behind = _overlap(site.stretches[k], run)
        if node < behind:
            for w in words_of(node, behind):
                fitting[w] |= ones(w, node, behind)
                first, end = min(first, w), max(end, w + 1)
    only_with(planes, 0, state.procs_planes, fitting, first, end, max(0, state.left_procs))
    if state.left_second > 0:
        second, second_end = second_planes(state, job)
        only_with(planes, second, second_end, fitting, first, end, state.left_second)
    for k in range(state.procs_planes - 1, -1, -1):  # keep the nodes without the highest bit, if there are any
        has_less = False
        for w in range(first, end):
            has_less |= (fitting[w] & ~planes[k, w]) != 0
        for w in range(first, end if has_less else first):
            fitting[w] &= ~planes[k, w]
    for k in range(part.first_stretch, part.last_stretch):
        node, behind = _overlap(site.stretches[k], run)
        node = next_member(fitting, node, behind, 1)
        if node < behind:
            return node
    return -1


@kernel
def _overlap(stretch, run):
    """Return the range [first, end) of a stretch's nodes that are in a run; empty if there are none."""
    first = stretch.node + max(run.place, stretch.place) - stretch.place
    return first, max(first, min(stretch.end, stretch.node + run.end - stretch.place))


@kernel
def _find_runs(state, job, site, planes, runs):
    """Find the runs of consecutive usable nodes for a job, and their amounts; return their number."""
    part, usable, count, behind = site.members[job.members], site.sets[USABLE], 0, -1
    second, second_end = second_planes(state, job)
    for k in range(part.first_stretch, part.last_stretch):
        stretch = site.stretches[k]
        first = next_member(usable, stretch.node, stretch.end, 1)
        while first < stretch.end:
            end, weight = next_member(usable, first, stretch.end, 0), _weight_of(state, site, stretch, first)
            if state.prefers:
                end = next_member(site.sets[UNHELD], first, end, 1 if weight == stretch.weight else 0)
            place = stretch.place + first - stretch.node
            if count == 0 or place != behind or runs[count - 1].weight != weight:  # else it continues from the stretch before
                run = runs[count]
                run.place, run.weight, run.nodes, run.procs, run.second = place, weight, 0, 0, 0
                count += 1
            run = runs[count - 1]
            behind = run.end = place + end - first
            run.nodes += end - first
            run.procs += end - first if state.procs_planes == 1 else total_between(planes, 0, state.procs_planes, first, end)
            if job.total > 0:
                run.second += total_between(planes, second, second_end, first, end)
            first = next_member(usable, end, stretch.end, 1)
    return count


@kernel
def _weight_of(state, site, stretch, node):
    """Return the rank of the weight of a node of a stretch."""
    return stretch.heavier if state.prefers and next_member(site.sets[UNHELD], node, node + 1, 1) == node else stretch.weight


@kernel
def _suffices(state, run):
    return run.nodes >= state.left_nodes and run.procs >= state.left_procs and run.second >= state.left_second


@kernel
def _take(state, site, choice, members, place, end, procs):
    """Choose the nodes at the positions [place, end) of a partition, with this many processors of each."""
    part = site.members[members]
    for k in range(part.first_stretch, part.last_stretch):
        stretch = site.stretches[k]
        behind = stretch.place + stretch.end - stretch.node
        if stretch.place < end and behind > place:
            chosen = choice.chosen[state.chosen]
            chosen.node = stretch.node + max(place, stretch.place) - stretch.place
            chosen.count = stretch.node + min(end, behind) - stretch.place - chosen.node
            chosen.procs, chosen.second, chosen.memory = procs, 0, 0
            state.chosen += 1


@kernel
def _take_node(state, job, choice, node, procs, second):
    memory = 0 if job.whole else job.memory if job.memory > 0 else job.task_memory * (procs // job.task)
    second <<= job.second_row * state.second_bits
    if state.chosen > 0:
        last = choice.chosen[state.chosen - 1]
        if last.node + last.count == node and last.procs == procs and last.second == second and last.memory == memory:
            last.count += 1
            return
    chosen = choice.chosen[state.chosen]
    chosen.node, chosen.count, chosen.procs, chosen.second, chosen.memory = node, 1, procs, second, memory
    state.chosen += 1
