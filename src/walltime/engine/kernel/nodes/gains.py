"""How many processors waiting jobs lack, and how many they have gained since this was found (plan.py explains it)."""

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.bits import count_bits
from walltime.engine.kernel.nodes.memory import CAPACITY, OPENS_MEMORY, OPENS_NONE, OPENS_SECOND, SECOND


@kernel
def note_lack(state, time, lack):
    """Note that a job cannot start by this time, because it lacks this many processors until then."""
    if time < state.far:
        state.slack = min(state.slack, lack)
    else:
        state.slack_far = min(state.slack_far, lack)


@kernel
def slack_at(state, time):
    """Return the fewest processors that the job has lacked in the search so far, before `state.far` or from then on."""
    return state.slack if time < state.far else state.slack_far


@kernel
def gained_too_little(known):
    """Return whether fewer processors have become free since an earliest start or bound was found than a job lacks."""
    return known.gained < known.slack and known.gained_far < known.slack_far


@kernel
def take_slack(state, known):
    """Take over the number of processors that are still lacking according to an earliest start or bound."""
    state.slack, state.slack_far, state.far = known.slack - known.gained, known.slack_far - known.gained_far, known.far


@kernel
def keep_slack(state, known):
    """Store, in an earliest start or a bound, the number of processors that the last search lacked."""
    known.slack, known.slack_far, known.far, known.gained, known.gained_far = state.slack, state.slack_far, state.far, 0, 0


@kernel
def note_change(state, procs, memory, nodes, whole, with_second, until):
    """Note that these amounts have become free, as in RELEASED, and that nothing has changed after `until`."""
    state.gain += procs
    state.gain_memory += memory
    state.gain_nodes += nodes
    state.gain_of_whole += whole
    state.gain_of_second += with_second
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
def procs_of_nodes(state, site, members):
    """Return the number of all processors of a set of nodes, and of those of its nodes that have units of the second resource."""
    whole = with_second = 0
    for k in range(state.procs_planes):
        for w in range(len(members)):
            of_plane = members[w] & site.sets[CAPACITY + k, w]
            whole += count_bits(of_plane) << k
            with_second += count_bits(of_plane & site.sets[SECOND, w]) << k
    return whole, with_second


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
    state.gain = state.gain_memory = state.gain_nodes = state.gain_of_whole = state.gain_of_second = state.changed_until = 0


@kernel
def _gain(state, known, until):
    """Note in an earliest start or bound the gains since the last cycle, and that nothing has changed after `until`."""
    own = most_gained(known, state.gain, state.gain_memory, state.gain_nodes, state.gain_of_whole, state.gain_of_second)
    known.gained += own
    known.gained_far += own * (until > known.far)
