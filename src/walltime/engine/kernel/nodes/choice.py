"""Nodes for a job: which it can use, whether these suffice, and which of them it gets (loop.py has the rules)."""

from __future__ import annotations

from walltime.engine.kernel.heap import drop_first, push
from walltime.engine.kernel.jit import called_kernel, kernel
from walltime.engine.kernel.nodes.bits import count_between, count_bits, next_node, number_of, total_between, total_of


@kernel
def row_at(state, running, time):
    """The row of `Use.free` with what is free at a time, by the releases until then; now, what is really free."""
    first, end = 0, state.running if time > state.now else 0
    while first < end:
        middle = (first + end) // 2
        if running[middle].release <= time:
            first = middle + 1
        else:
            end = middle
    return 0 if first == 0 else running[first - 1].row


@called_kernel
def missing(state, site, use, plan, job, time, length):
    """Find the nodes that a job can use for a length from a time on, after the first `state.ahead` blocks: the set `plan.usable`.

    Returns 0 if they suffice, else so many processors that at least as many more must become free.
    """
    row, usable, words = row_at(state, use.running, time), plan.usable, len(plan.usable)
    free, procs_planes, planes = use.free, state.procs_planes, len(site.capacity)
    for w in range(words):
        usable[w] = -1 if job.whole else free[row, 0, w]
    for k in range(procs_planes):
        if job.whole:
            for w in range(words):
                usable[w] &= ~(free[row, k, w] ^ site.capacity[k, w])
        elif k > 0:
            for w in range(words):
                usable[w] |= free[row, k, w]
    part = job.partition
    for w in range(words):
        usable[w] &= site.members[part, w]
    if state.closed:
        for w in range(words):
            usable[w] &= ~site.closed[w]
    if job.each > 0:
        _only_with_second(free[row], procs_planes, usable, job.each)
    for k in range(len(site.outages)):
        out = site.outages[k]
        if out.phase == 1 and out.begin < time + length and out.end > time:
            for w in range(words):
                usable[w] &= ~site.out_sets[k, w]
    for k in range(state.ahead):
        block = plan.blocks[k]
        if block.keeps_from < time + length and block.end > time:
            for w in range(block.first_word, block.last_word + 1):
                usable[w] &= ~plan.sets[block.row, w]
    nodes = 0
    for w in range(words):
        nodes += count_bits(usable[w])
    lacks = max(0, job.nodes - nodes)
    if not job.whole:
        procs = nodes if procs_planes == 1 else total_of(free[row], 0, procs_planes, usable)
        lacks = max(lacks, job.procs - procs)
        if lacks == 0 and job.second > 0 and total_of(free[row], procs_planes, planes, usable) < job.second:
            lacks = 1
    return lacks


@kernel
def _only_with_second(free, procs_planes, usable, least):
    """Take from a set the nodes that have less than this of the second resource free."""
    for w in range(len(usable)):
        more, equal = 0, -1  # the nodes that have more, or as much, by the bits looked at so far
        if least >> (len(free) - procs_planes) > 0:
            equal = 0
        for k in range(len(free) - 1, procs_planes - 1, -1):
            if (least >> (k - procs_planes)) & 1:
                equal &= free[k, w]
            else:
                more |= equal & free[k, w]
                equal &= ~free[k, w]
        usable[w] &= more | equal


@called_kernel
def choose(state, site, use, plan, job, time):
    """Choose nodes for a job among those that it can use at a time, of which there are enough: `plan.chosen`.

    Best fit on consecutive nodes: whole runs of usable nodes, the largest first, until what is left fits into one; of these the smallest.
    """
    runs, heap, free = plan.runs, plan.heap, use.free[row_at(state, use.running, time)]
    count = _find_runs(state, site, plan, job, free)
    whole, left_nodes, left_procs, left_second = job.whole, job.nodes, 0 if job.whole else job.procs, job.second
    size, largest = site.partitions[job.partition].size, 0
    for i in range(1, count):
        if runs[i].procs > runs[largest].procs:
            largest = i
    one = _suffices(runs[largest], whole, left_nodes, left_procs, left_second)  # mostly: no heap is needed
    for i in range(0 if one else count):
        push(heap, i, -runs[i].procs, i, i)
    state.chosen = 0
    while left_nodes > 0 or left_procs > 0 or (left_second > 0 and not whole):
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
        place, end = runs[best].place, runs[best].end
        if size > 0 and job.second == 0 and (whole or size == 1):  # each node gives the same
            end = min(end, place + (left_nodes if whole else left_procs))
            _take(state, site, plan, job.partition, place, end, size, 0)
            left_nodes = max(0, left_nodes - (end - place))
            left_procs -= 0 if whole else end - place
            continue
        for k in range(place, end):
            if whole and left_nodes == 0:
                break
            n = site.nodes_of.items[site.nodes_of.first[job.partition] + k]
            procs = number_of(free, 0, state.procs_planes, n)
            if not whole:
                procs = min(procs, left_procs - max(0, left_nodes - 1))
            second = min(number_of(free, state.procs_planes, len(free), n), left_second)
            if procs <= 0 and second == 0:
                continue
            _take_node(state, plan, n, procs, second)
            left_nodes = max(0, left_nodes - 1)
            left_procs -= 0 if whole else procs
            left_second -= second


@kernel
def _find_runs(state, site, plan, job, free):
    """Note the runs of consecutive usable nodes of a job's partition, and what they have; returns how many there are."""
    part, runs, usable, count, behind = site.partitions[job.partition], plan.runs, plan.usable, 0, -1
    for k in range(part.first_stretch, part.last_stretch):
        stretch = site.stretches[k]
        first = next_node(usable, stretch.node, stretch.end, 1)
        while first < stretch.end:
            end = next_node(usable, first, stretch.end, 0)
            place = stretch.place + first - stretch.node
            if place != behind or count == 0:  # else the run goes on from the stretch before
                runs[count].place, runs[count].nodes, runs[count].procs, runs[count].second = place, 0, 0, 0
                count += 1
            run = runs[count - 1]
            behind = run.end = place + end - first
            run.nodes += end - first
            run.procs += end - first if state.procs_planes == 1 else total_between(free, 0, state.procs_planes, first, end)
            if job.second > 0:
                run.second += total_between(free, state.procs_planes, len(free), first, end)
            first = next_node(usable, end, stretch.end, 1)
    return count


@kernel
def _suffices(run, whole, left_nodes, left_procs, left_second):
    """Whether a run has what is left to be found."""
    if run.nodes < left_nodes:
        return False
    return whole > 0 or (run.procs >= left_procs and run.second >= left_second)


@kernel
def _take(state, site, plan, partition, place, end, procs, second):
    """Choose the nodes at the places [place, end) of a partition, and so much of each."""
    part = site.partitions[partition]
    for k in range(part.first_stretch, part.last_stretch):
        stretch = site.stretches[k]
        behind = stretch.place + stretch.end - stretch.node
        if stretch.place < end and behind > place:
            chosen = plan.chosen[state.chosen]
            chosen.node = stretch.node + max(place, stretch.place) - stretch.place
            chosen.count = stretch.node + min(end, behind) - stretch.place - chosen.node
            chosen.procs, chosen.second = procs, second
            state.chosen += 1


@kernel
def _take_node(state, plan, node, procs, second):
    """Choose so much of a node."""
    if state.chosen > 0:
        last = plan.chosen[state.chosen - 1]
        if last.node + last.count == node and last.procs == procs and last.second == second:
            last.count += 1
            return
    chosen = plan.chosen[state.chosen]
    chosen.node, chosen.count, chosen.procs, chosen.second = node, 1, procs, second
    state.chosen += 1


@kernel
def whole_nodes(state, site, ranges, first, count):
    """The processors of all nodes of some ranges, whatever is used of them."""
    total = 0
    for r in range(first, first + count):
        node, end = ranges[r].node, ranges[r].node + ranges[r].count
        total += state.size * (end - node) if state.size > 0 else total_between(site.capacity, 0, state.procs_planes, node, end)
    return total


@kernel
def members_between(kinds, kind, ranges, r):
    """How many nodes of a range are in the set of a kind of partition."""
    return count_between(kinds[kind], ranges[r].node, ranges[r].node + ranges[r].count)
