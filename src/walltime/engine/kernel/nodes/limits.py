"""Limits on running jobs under Slurm's scheduling.

A limit on nodes counts the different nodes of a group's running jobs, which are known once nodes are chosen for another job. The main
scheduler prefers these nodes: in a pool that has some of them, it increases the weight of the others by 1. A job that lacks nodes, and
would exceed the limit with as many unused ones as it requests, closes no partition. No job is held while no other job of the group runs.
"""

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.bits import ones, size_of, words_of
from walltime.engine.kernel.memory import NEVER
from walltime.engine.kernel.nodes.records import FITTING, UNHELD
from walltime.engine.kernel.pools.limits import full_limit
from walltime.engine.kernel.pools.memory import list_of


@kernel
def is_over_limit(state, rules, jobs, use, traffic, index):
    """Return whether a job would exceed one of its limits, other than limits on nodes, by starting now."""
    if rules.timed_limits:
        for number in list_of(traffic.limits_of, index):
            left = jobs[index].procs * jobs[index].planned
            for i in range(state.running):
                job = jobs[use.running[i].job]
                if _counts(traffic, use.running[i].job, number):
                    left += job.procs * max(0, job.start + job.limit - state.now)
            if left > traffic.limits[number].seconds:
                return True
    return full_limit(jobs, traffic.limits, traffic.limits_of, index) >= 0


@kernel
def _counts(traffic, index, number):
    """Return whether a job counts towards a limit."""
    for own in list_of(traffic.limits_of, index):  # noqa: SIM110 (a generator cannot be compiled)
        if own == number:
            return True
    return False


@called_kernel
def exceeds_nodes(state, jobs, site, use, plan, traffic, index, chosen):
    """Return whether a job would exceed a limit on nodes on the `chosen` ones, or else on as many unused ones as it requests."""
    for number in list_of(traffic.limits_of, index):
        if traffic.limits[number].nodes < NEVER:
            held = site.sets[FITTING]
            held[:] = 0
            _add_held(state, jobs, use, traffic, number, held)
            before = nodes = size_of(held)
            if chosen:
                _add_nodes(plan.choice.chosen, 0, state.chosen, held)
                nodes = size_of(held)
            else:
                nodes += max(1, jobs[index].nodes)
            if before > 0 and nodes > traffic.limits[number].nodes:
                return True
    return False


@called_kernel
def prefer_held(state, jobs, site, use, traffic, index):
    """Find the nodes whose weight is increased by 1 for a job, UNHELD."""
    held, unheld, members = site.sets[FITTING], site.sets[UNHELD], site.sets[site.members[jobs[index].members].row]
    held[:] = unheld[:] = 0
    state.prefers = 0
    for number in list_of(traffic.limits_of, index):
        if traffic.limits[number].nodes < NEVER:
            _add_held(state, jobs, use, traffic, number, held)
    for k in range(len(site.pools)):
        pool, has_some = site.pools[k], False
        for w in words_of(pool.node, pool.end):
            has_some |= (ones(w, pool.node, pool.end) & members[w] & held[w]) != 0
        if has_some:
            state.prefers = 1
            for w in words_of(pool.node, pool.end):
                unheld[w] |= ones(w, pool.node, pool.end) & members[w] & ~held[w]


@kernel
def _add_held(state, jobs, use, traffic, number, nodes):
    """Add the nodes of the running jobs of a limit to a set."""
    for i in range(state.running):
        job = jobs[use.running[i].job]
        if _counts(traffic, use.running[i].job, number):
            _add_nodes(use.ranges, job.first, job.first + job.count, nodes)


@kernel
def _add_nodes(ranges, first, end, nodes):
    """Add the nodes of the ranges [first, end) to a set."""
    for r in range(first, end):
        for w in words_of(ranges[r].node, ranges[r].node + ranges[r].count):
            nodes[w] |= ones(w, ranges[r].node, ranges[r].node + ranges[r].count)
