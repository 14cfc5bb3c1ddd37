"""Find how much of each node a job can use, for 64 nodes at a time."""

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.bits import add_in_planes, size_of, take_less, total_of


@kernel
def second_planes(state, job):
    """Return the range [first, end) of the planes of the units of the second resource that a job can use."""
    first = state.procs_planes + job.second_row * state.second_bits
    return first, first + state.second_bits


@kernel
def units_of(state, second):
    """Return the units of the second resource that the bits of its planes stand for, of all rows of `Nodes.types` together."""
    if state.procs_planes + state.second_bits == state.second_end:
        return second
    units = 0
    for k in range(state.second_end - state.procs_planes):
        units += ((second >> k) & 1) << (k % state.second_bits)
    return units


@kernel
def missing_at_least(state, job, free, usable):
    """Return a lower bound on the number of processors that a job lacks, without looking at single nodes.

    The usable nodes together give it at most their free processors, and as many tasks as their free memory suffices for.
    """
    procs = total_of(free, 0, state.procs_planes, usable)
    missing = max(0, job.nodes - size_of(usable), job.asked - procs)
    if missing == 0 and job.task_memory > 0:
        tasks = total_of(free, state.second_end, state.planes, usable) // job.task_memory
        missing = max(0, job.asked - tasks * max(1, job.task))
    return missing


@called_kernel
def shape_nodes(state, job, free, shaped, usable):
    """Find how many processors of each usable node a job can use (`shaped`, planes), and keep only the nodes with enough of them."""
    procs_planes, planes = state.procs_planes, state.planes
    quotient, rest, (second, second_end) = planes, planes + procs_planes, second_planes(state, job)
    for w in range(len(usable)):
        if usable[w] == 0:
            continue
        for k in range(state.second_end):
            shaped[k, w] = free[k, w]
        if job.task > 1:  # the tasks for which there are processors
            _divide(free, 0, procs_planes, shaped, quotient, rest, procs_planes, w, usable[w], job.task)
            for k in range(procs_planes):
                shaped[k, w] = shaped[quotient + k, w]
        if job.per_task > 0:
            _divide(free, second, second_end, shaped, quotient, rest, procs_planes, w, usable[w], job.per_task)
            take_less(shaped, 0, procs_planes, shaped, quotient, w)
        if job.task_memory > 0:
            _divide(free, state.second_end, planes, shaped, quotient, rest, procs_planes, w, usable[w], job.task_memory)
            take_less(shaped, 0, procs_planes, shaped, quotient, w)
        if job.task > 1:
            for k in range(procs_planes):
                shaped[quotient + k, w] = shaped[k, w]
                shaped[k, w] = 0
            for k in range(procs_planes):
                add_in_planes(shaped, 0, procs_planes, w, shaped[quotient + k, w], job.task << k, 1)
        more = _at_least(shaped, 0, procs_planes, w, usable[w], job.most + 1)
        for k in range(procs_planes):
            shaped[k, w] = (shaped[k, w] & ~more) | (more if (job.most >> k) & 1 else 0)
        usable[w] = _at_least(shaped, 0, procs_planes, w, usable[w], max(1, job.least))


@kernel
def _divide(free, first_plane, end_plane, shaped, quotient, rest, planes, word, nodes, divisor):
    """Divide the numbers of some nodes of a word in these planes by a divisor.

    The quotient has `planes` planes; a larger quotient becomes the largest number that fits there.
    """
    shift, end = 0, rest + end_plane - first_plane
    while divisor >> shift > 1:
        shift += 1
    if divisor == 1 << shift:
        more = 0
        for k in range(first_plane + shift + planes, end_plane):
            more |= free[k, word]
        for k in range(planes):
            shaped[quotient + k, word] = more | (free[first_plane + shift + k, word] if first_plane + shift + k < end_plane else 0)
        return
    more = _at_least(free, first_plane, end_plane, word, nodes, divisor << planes)
    for k in range(first_plane, end_plane):
        shaped[rest + k - first_plane, word] = free[k, word]
    for k in range(planes - 1, -1, -1):  # long division: the remainder is less than the divisor times 2 ** (k + 1)
        bits, top = 0, min(end, rest + k + shift + 2)
        if rest + k + shift < end:
            bits = _at_least(shaped, rest + k, top, word, nodes & ~more, divisor)
            add_in_planes(shaped, rest + k, top, word, bits, divisor, -1)
        shaped[quotient + k, word] = bits | more


@kernel
def _at_least(planes, first_plane, end_plane, word, nodes, least):
    """Return the nodes of a word whose number in these planes is at least this."""
    if least >> (end_plane - first_plane) > 0:
        return 0
    more, equal = 0, -1  # the nodes with a larger or an equal number by the bits compared so far
    for k in range(end_plane - 1, first_plane - 1, -1):
        if (least >> (k - first_plane)) & 1:
            equal &= planes[k, word]
        else:
            more |= equal & planes[k, word]
            equal &= ~planes[k, word]
    return nodes & (more | equal)


@kernel
def only_with(planes, first_plane, end_plane, nodes, first, end, least):
    """Remove from the words [first, end) of a set the nodes whose number in these planes is less."""
    for w in range(first, end):
        nodes[w] = _at_least(planes, first_plane, end_plane, w, nodes[w], least)
