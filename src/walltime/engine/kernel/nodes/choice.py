"""Nodes for a job: which ones it can use, whether these suffice, and which of them it gets (loop.py has the rules)."""

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.bits import count_bits, next_member, number_of, ones, total_between, total_of, words_of
from walltime.engine.kernel.heap import drop_first, push
from walltime.engine.kernel.nodes.memory import CAPACITY, CLOSED, FITTING, USABLE

HEAVIER = np.int64(1) << 40
"""More than the processors of any run: what a rank of weight adds in the heap of runs."""


@kernel
def released_by(state, running, time):
    """Return the number of running jobs whose nodes the plan has back by a time."""
    first, end = 0, state.running
    while first < end:
        middle = (first + end) // 2
        if running[middle].release <= time:
            first = middle + 1
        else:
            end = middle
    return first


@kernel
def row_at(state, running, time):
    """Return the row of `Use.free` with what is free at a time, by the releases until then; now, what is really free."""
    released = released_by(state, running, time) if time > state.now else 0
    return 0 if released == 0 else running[released - 1].row


@called_kernel
def procs_missing(state, job, members, outages, sets, running, free, blocks, time, length):
    """Find the nodes that a job can use for a length from a time on, after the first `state.ahead` blocks: the set USABLE.

    `members`: the row of its partition's set of nodes. Returns 0 if they suffice, else a number of processors: at least as many more must
    become free.
    """
    row = row_at(state, running, time)
    words, procs_planes, planes = sets.shape[1], state.procs_planes, state.planes
    for w in range(words):
        sets[USABLE, w] = sets[members, w] if job.whole or procs_planes > 1 else sets[members, w] & free[row, 0, w]
    if job.whole:
        for k in range(procs_planes):
            for w in range(words):
                sets[USABLE, w] &= ~(free[row, k, w] ^ sets[CAPACITY + k, w])
    elif procs_planes > 1:
        for w in range(words):
            some = free[row, 0, w]
            for k in range(1, procs_planes):
                some |= free[row, k, w]
            sets[USABLE, w] &= some
    if job.each > 0:
        _only_with(free[row], procs_planes, planes, sets[USABLE], 0, words, job.each)
    if state.closed:
        _leave_out(sets, CLOSED, 0, words)
    for k in range(len(outages)):
        out = outages[k]
        if out.phase == 1 and out.begin < time + length and out.end > time:
            _leave_out(sets, out.row, 0, words)
    for k in range(state.ahead):
        block = blocks[k]
        if block.valid_from < time + length and block.end > time:
            _leave_out(sets, block.row, block.first_word, block.last_word + 1)
    nodes = 0
    for w in range(words):
        nodes += count_bits(sets[USABLE, w])
    shortfall = max(0, job.nodes - nodes)
    if not job.whole:
        procs = nodes if procs_planes == 1 else total_of(free[row], 0, procs_planes, sets[USABLE])
        shortfall = max(shortfall, job.procs - procs)
        if shortfall == 0 and job.second > 0 and total_of(free[row], procs_planes, planes, sets[USABLE]) < job.second:
            shortfall = 1
    return shortfall


@kernel
def _leave_out(sets, row, first, end):
    """Remove the nodes of a set from the usable ones, in some words."""
    for w in range(first, end):
        sets[USABLE, w] &= ~sets[row, w]


@kernel
def _only_with(planes, first_plane, end_plane, nodes, first, end, least):
    """Remove from the words [first, end) of a set the nodes whose number in these planes is less."""
    for w in range(first, end):
        more, equal = 0, -1  # the nodes that have more, or as much, by the bits looked at so far
        if least >> (end_plane - first_plane) > 0:
            equal = 0
        for k in range(end_plane - 1, first_plane - 1, -1):
            if (least >> (k - first_plane)) & 1:
                equal &= planes[k, w]
            else:
                more |= equal & planes[k, w]
                equal &= ~planes[k, w]
        nodes[w] &= more | equal


@called_kernel
def choose(state, job, site, running, free, choice, time):
    """Choose nodes for a job among the nodes usable at a time (there are enough of them): `state.chosen` ranges.

    The job gets the best run of consecutive usable nodes of one weight, by `_best_run`, and further runs until it has enough; or, where a
    single node of the run is enough, the tightest such node.
    """
    runs, heap, planes = choice.runs, choice.heap, free[row_at(state, running, time)]
    count, entries = _find_runs(state, job, site, planes, runs), -1
    whole, left_nodes, left_procs, left_second = job.whole, job.nodes, 0 if job.whole else job.procs, job.second
    size = site.partitions[job.partition].node_procs
    by_size = whole > 0 or (job.second == 0 and (left_nodes <= 1 or size == 1))  # if a run suffices, the biggest of its weight does
    may_be_alone = whole == 0 and (state.procs_planes > 1 or job.second > 0)  # else all nodes are alike
    state.chosen = 0
    while left_nodes > 0 or left_procs > 0 or (left_second > 0 and not whole):
        best = heap[0].job if entries > 0 else -1
        if best >= 0 and not _suffices(runs[best], whole, left_nodes, left_procs, left_second):
            drop_first(heap, entries)
            entries -= 1
        else:
            best = _best_run(runs, count, whole, left_nodes, left_procs, left_second)
            if by_size and entries < 0 and not _suffices(runs[best], whole, left_nodes, left_procs, left_second):
                entries = 0
                for i in range(count):
                    if i != best:
                        push(heap, entries, runs[i].weight * HEAVIER - runs[i].procs, i, i)
                        entries += 1
        runs[best].nodes = 0  # it is taken
        if may_be_alone and left_nodes <= 1:
            node = _tightest_node(state, site, planes, job.partition, runs[best], left_procs, left_second)
            if node >= 0:
                _take_node(state, choice, node, left_procs, left_second)
                return
        place, end = runs[best].place, runs[best].end
        if size > 0 and job.second == 0 and (whole or size == 1):  # each node gives the same
            end = min(end, place + (left_nodes if whole else left_procs))
            _take(state, site, choice, job.partition, place, end, size)
            left_nodes = max(0, left_nodes - (end - place))
            left_procs -= 0 if whole else end - place
            continue
        for k in range(place, end):
            if whole and left_nodes == 0:
                break
            s = site.partitions[job.partition].last_stretch - 1
            while site.stretches[s].place > k:
                s -= 1
            node = site.stretches[s].node + k - site.stretches[s].place
            procs = number_of(planes, 0, state.procs_planes, node)
            if not whole:
                procs = min(procs, left_procs - max(0, left_nodes - 1))
            second = min(number_of(planes, state.procs_planes, len(planes), node), left_second)
            if procs <= 0 and second == 0:
                continue
            _take_node(state, choice, node, procs, second)
            left_nodes = max(0, left_nodes - 1)
            left_procs -= 0 if whole else procs
            left_second -= second


@kernel
def _best_run(runs, count, whole, left_nodes, left_procs, left_second):
    """Return the run that Slurm takes next: of the lowest weight the first that suffices, or a tighter one, else the biggest.

    Each run is compared with the best so far, so that a bigger run of too few nodes may come before one that suffices.
    """
    best, best_suffices = -1, False
    for i in range(count):
        run = runs[i]
        if run.nodes == 0 or (best >= 0 and run.weight > runs[best].weight):
            continue
        suffices = _suffices(run, whole, left_nodes, left_procs, left_second)
        if best >= 0 and run.weight == runs[best].weight:
            if suffices and best_suffices and run.procs >= runs[best].procs:
                continue
            if not suffices and run.procs <= runs[best].procs:
                continue
        best, best_suffices = i, suffices
    return best


@called_kernel
def _tightest_node(state, site, planes, partition, run, procs, second):
    """Return the node of a run that has the fewest free processors of those that are enough by themselves; -1 if there is none."""
    part, fitting, first, end = site.partitions[partition], site.sets[FITTING], len(site.sets[FITTING]), 0
    fitting[:] = 0
    for k in range(part.first_stretch, part.last_stretch):
        node, behind = _overlap(site.stretches[k], run)
        if node < behind:
            for w in words_of(node, behind):
                fitting[w] |= ones(w, node, behind)
                first, end = min(first, w), max(end, w + 1)
    _only_with(planes, 0, state.procs_planes, fitting, first, end, max(0, procs))
    if second > 0:
        _only_with(planes, state.procs_planes, len(planes), fitting, first, end, second)
    for k in range(state.procs_planes - 1, -1, -1):  # of the nodes left, those without the highest bits, if there are any
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
    """Return the nodes [first, end) of a stretch that are in a run, empty if there are none."""
    first = stretch.node + max(run.place, stretch.place) - stretch.place
    return first, max(first, min(stretch.end, stretch.node + run.end - stretch.place))


@kernel
def _find_runs(state, job, site, planes, runs):
    """Find the runs of consecutive usable nodes of a job's partition, and what they have; return their number."""
    part, usable, count, behind = site.partitions[job.partition], site.sets[USABLE], 0, -1
    for k in range(part.first_stretch, part.last_stretch):
        stretch = site.stretches[k]
        first = next_member(usable, stretch.node, stretch.end, 1)
        while first < stretch.end:
            end = next_member(usable, first, stretch.end, 0)
            place = stretch.place + first - stretch.node
            if count == 0 or place != behind or runs[count - 1].weight != stretch.weight:  # else it continues from the stretch before
                run = runs[count]
                run.place, run.weight, run.nodes, run.procs, run.second = place, stretch.weight, 0, 0, 0
                count += 1
            run = runs[count - 1]
            behind = run.end = place + end - first
            run.nodes += end - first
            run.procs += end - first if state.procs_planes == 1 else total_between(planes, 0, state.procs_planes, first, end)
            if job.second > 0:
                run.second += total_between(planes, state.procs_planes, len(planes), first, end)
            first = next_member(usable, end, stretch.end, 1)
    return count


@kernel
def _suffices(run, whole, left_nodes, left_procs, left_second):
    """Return whether a run has what is still needed."""
    if run.nodes < left_nodes:
        return False
    return whole > 0 or (run.procs >= left_procs and run.second >= left_second)


@kernel
def _take(state, site, choice, partition, place, end, procs):
    """Choose the nodes at the places [place, end) of a partition, with this many processors of each."""
    part = site.partitions[partition]
    for k in range(part.first_stretch, part.last_stretch):
        stretch = site.stretches[k]
        behind = stretch.place + stretch.end - stretch.node
        if stretch.place < end and behind > place:
            chosen = choice.chosen[state.chosen]
            chosen.node = stretch.node + max(place, stretch.place) - stretch.place
            chosen.count = stretch.node + min(end, behind) - stretch.place - chosen.node
            chosen.procs, chosen.second = procs, 0
            state.chosen += 1


@kernel
def _take_node(state, choice, node, procs, second):
    """Choose an amount of a node."""
    if state.chosen > 0:
        last = choice.chosen[state.chosen - 1]
        if last.node + last.count == node and last.procs == procs and last.second == second:
            last.count += 1
            return
    chosen = choice.chosen[state.chosen]
    chosen.node, chosen.count, chosen.procs, chosen.second = node, 1, procs, second
    state.chosen += 1
