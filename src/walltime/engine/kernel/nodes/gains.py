"""How many processors and nodes waiting jobs lack, and how many they have gained since this was found (plan.py explains it)."""

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.bits import count_bits
from walltime.engine.kernel.nodes.records import CAPACITY, OPENS_MEMORY, OPENS_NONE, OPENS_SECOND, SECOND


@kernel
def note_lack(state, time, lack, nodes):
    """Note that a job cannot start by this time, because it lacks this many processors until then, on at least this many nodes."""
    if time < state.far:
        state.slack, state.slack_nodes = min(state.slack, lack), min(state.slack_nodes, nodes)
    else:
        state.slack_far, state.slack_nodes_far = min(state.slack_far, lack), min(state.slack_nodes_far, nodes)


@kernel
def nodes_for(state, job, procs):
    """Return the number of nodes on which more must become free if a job lacks this many processors."""
    most = min(state.most_of_node, job.most) if job.shaped else state.most_of_node
    return procs if most <= 1 else (procs + most - 1) // most


@kernel
def slack_at(state, time):
    """Return the fewest processors that the job has lacked in the search so far, before `state.far` or from then on."""
    return state.slack if time < state.far else state.slack_far


@kernel
def slack_of_nodes_at(state, time):
    """Return the same as `slack_at`, for nodes."""
    return state.slack_nodes if time < state.far else state.slack_nodes_far


@kernel
def gained_too_little(known):
    """Return whether less has become free since an earliest start or bound was found than a job lacks: processors, or nodes."""
    near = known.gained < known.slack or known.gained_nodes < known.slack_nodes
    return near and (known.gained_far < known.slack_far or known.gained_nodes_far < known.slack_nodes_far)


@kernel
def take_slack(state, known):
    """Take over what is still lacking according to an earliest start or bound."""
    state.slack, state.slack_far, state.far = known.slack - known.gained, known.slack_far - known.gained_far, known.far
    state.slack_nodes, state.slack_nodes_far = known.slack_nodes - known.gained_nodes, known.slack_nodes_far - known.gained_nodes_far


@kernel
def keep_slack(state, known):
    """Store, in an earliest start or a bound, what the last search lacked."""
    known.slack, known.slack_far, known.far, known.gained, known.gained_far = state.slack, state.slack_far, state.far, 0, 0
    known.slack_nodes, known.slack_nodes_far, known.gained_nodes, known.gained_nodes_far = state.slack_nodes, state.slack_nodes_far, 0, 0


@kernel
def note_change(state, procs, memory, nodes, whole, with_second, nodes_with_second, until):
    """Note that these amounts have become free, as in RELEASED, and that nothing has changed after `until`."""
    state.gain += procs
    state.gain_memory += memory
    state.gain_nodes += nodes
    state.gain_of_whole += whole
    state.gain_of_second += with_second
    state.gain_nodes_of_second += nodes_with_second
    state.changed_until = max(state.changed_until, until)


@kernel
def most_gained(job, procs, memory, nodes, whole, with_second):
    """Return an upper bound on the processors that a job can use in addition where these amounts, as in RELEASED, become free."""
    if job.opens == OPENS_NONE:
        return procs
    if job.opens == OPENS_SECOND:
        return with_second
    if job.opens == OPENS_MEMORY:  # on each node, the smaller of two numbers grows by no more than either of them does
        return min(whole, procs + memory // job.task_memory + nodes)
    return whole


@kernel
def count_nodes(state, site, block, members):
    """Count the nodes of a block, those of them that have units of the second resource, and all processors of both."""
    block.whole = block.with_second = block.nodes = block.nodes_with_second = 0
    for w in range(len(members)):
        if members[w] == 0:
            continue
        second = members[w] & site.sets[SECOND, w]
        block.nodes += count_bits(members[w])
        block.nodes_with_second += count_bits(second)
        for k in range(state.procs_planes):
            block.whole += count_bits(members[w] & site.sets[CAPACITY + k, w]) << k
            block.with_second += count_bits(second & site.sets[CAPACITY + k, w]) << k


@called_kernel
def refresh_earliest_starts(state, plan):
    """Note the latest changes in all earliest starts and bounds."""
    until = state.changed_until
    if until == 0:
        return
    for k in range(state.planned_count):
        earliest = plan.earliest_starts[k]
        _gain(state, earliest, until)
        earliest.unsettled = max(earliest.unsettled, until)
    left = 0
    for k in range(state.bounds):
        bound = plan.bounds[k]
        _gain(state, bound, until)
        if gained_too_little(bound) and bound.time > state.now:
            plan.bounds[left] = bound
            left += 1
    state.bounds = left
    state.gain = state.gain_memory = state.gain_nodes = state.gain_of_whole = state.gain_of_second = 0
    state.gain_nodes_of_second = state.changed_until = 0


@kernel
def _gain(state, known, until):
    """Note in an earliest start or bound the gains since the last cycle, and that nothing has changed after `until`."""
    own = most_gained(known, state.gain, state.gain_memory, state.gain_nodes, state.gain_of_whole, state.gain_of_second)
    known.gained += own
    known.gained_far += own * (until > known.far)
    nodes = state.gain_nodes_of_second if known.opens == OPENS_SECOND else state.gain_nodes
    known.gained_nodes += nodes
    known.gained_nodes_far += nodes * (until > known.far)
