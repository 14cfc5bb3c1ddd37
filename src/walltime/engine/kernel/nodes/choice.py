"""Nodes for a job: which ones it can use, whether these suffice, and which of them it gets (loop.py has the rules)."""

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.bits import count_bits, next_member, number_of, total_between, total_of
from walltime.engine.kernel.heap import drop_first, push
from walltime.engine.kernel.nodes.memory import CAPACITY, CLOSED, USABLE


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
        _only_with_second(free[row], procs_planes, sets[USABLE], job.each)
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
def _only_with_second(free, procs_planes, usable, least):
    """Remove from a set the nodes that have less than this of the second resource free."""
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
def choose(state, job, site, running, free, choice, time):
    """Choose nodes for a job among the nodes usable at a time (there are enough of them): `state.chosen` ranges.

    Best fit on consecutive nodes: whole runs of usable nodes, the largest first, until the rest fits into one; then the smallest such run.
    """
    runs, heap, planes = choice.runs, choice.heap, free[row_at(state, running, time)]
    count = _find_runs(state, job, site, planes, runs)
    whole, left_nodes, left_procs, left_second = job.whole, job.nodes, 0 if job.whole else job.procs, job.second
    size, largest = site.partitions[job.partition].node_procs, 0
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
def _find_runs(state, job, site, planes, runs):
    """Find the runs of consecutive usable nodes of a job's partition, and what they have; return their number."""
    part, usable, count, behind = site.partitions[job.partition], site.sets[USABLE], 0, -1
    for k in range(part.first_stretch, part.last_stretch):
        stretch = site.stretches[k]
        first = next_member(usable, stretch.node, stretch.end, 1)
        while first < stretch.end:
            end = next_member(usable, first, stretch.end, 0)
            place = stretch.place + first - stretch.node
            if place != behind or count == 0:  # else the run goes on from the stretch before
                runs[count].place, runs[count].nodes, runs[count].procs, runs[count].second = place, 0, 0, 0
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
