"""Slurm's multifactor priority: decayed usage of accounts and users, their fair-share factors, and the priorities of waiting jobs."""

import math

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.pools.memory import list_of

LN2 = 0.6931471805599453
BASIC = 4_294_901_760
"""The priority of the first submitted job under priority/basic; each later one has one less."""


@kernel
def priority_of(rules, jobs, tree, index, when):
    """Return a job's priority at a time, an integer."""
    job = jobs[index]
    if rules.multifactor == 0:
        return BASIC - job.place
    if rules.multifactor == 2:  # all weights are 0
        return 1
    age = min(1.0, (when - job.submit) / rules.longest_age)
    value = rules.weight_age * age + rules.weight_share * tree.leaves[job.association].rank + job.merit
    return max(1, int(value))


@called_kernel
def sum_up_use(state, rules, jobs, running, tree):
    """Account for the period that ends at `state.next_sum`: decay past usage, add the new usage, and rank the users."""
    leaves = tree.leaves
    begin = state.next_sum - rules.period
    for i in range(state.running):
        job = jobs[running[i].job]
        leaves[job.association].new += job.charge * max(0, state.next_sum - max(job.start, begin))
    for k in range(len(leaves)):
        leaves[k].used = leaves[k].used * rules.decay + leaves[k].new if leaves[k].leaf else 0.0
        leaves[k].new = 0
    for k in range(len(leaves) - 1, 0, -1):
        leaves[leaves[k].parent].used += leaves[k].used
    rank_users(rules, tree)
    state.next_sum += rules.period


@kernel
def rank_users(rules, tree):
    """Compute the fair-share factors."""
    if rules.weight_share > 0:
        if rules.fair_tree:
            _rank_by_tree(tree)
        else:
            _rank_by_share(rules, tree)


@kernel
def count_end(state, rules, jobs, tree, index):
    """Count the usage, since the last sum, of a job that ends now."""
    job = jobs[index]
    tree.leaves[job.association].new += job.charge * max(0, state.now - max(job.start, state.next_sum - rules.period))


@called_kernel
def _rank_by_tree(tree):
    """Rank users by Fair Tree: the sibling with the highest ratio of shares to usage comes first, with all users below it.

    The factor of the last of n users is 1 / n.
    """
    leaves, children, order, stack = tree.leaves, tree.children, tree.order, tree.stack
    users = 0
    for k in range(len(leaves)):
        users += leaves[k].leaf
    for k in range(len(leaves)):
        for i in range(children.first[k] + 1, children.first[k + 1]):
            moved = order[i]
            j = i
            while j > children.first[k] and _comes_before(leaves, moved, order[j - 1]):
                order[j] = order[j - 1]
                j -= 1
            order[j] = moved
    left, rank, depth = users, users, 0
    stack[0, 0], stack[0, 1] = 0, children.first[0]
    while depth >= 0:
        at, place = stack[depth, 0], stack[depth, 1]
        if place == children.first[at + 1]:
            depth -= 1
            continue
        stack[depth, 1] = place + 1
        k = order[place]
        if leaves[k].leaf:
            tied = place > children.first[at] and leaves[order[place - 1]].leaf and _level(leaves, k) == _level(leaves, order[place - 1])
            rank = rank if tied else left
            leaves[k].rank = rank / users
            left -= 1
        else:
            depth += 1
            stack[depth, 0], stack[depth, 1] = k, children.first[k]


@kernel
def _level(leaves, k):
    """Return shares divided by usage; the sibling with the highest value is served first."""
    if leaves[k].shares == 0:
        return 0.0
    return leaves[k].shares / leaves[k].used if leaves[k].used > 0 else math.inf


@kernel
def _comes_before(leaves, k, other):
    """Return whether one of two siblings is served first: by level, then users before accounts, then by number."""
    mine, others = _level(leaves, k), _level(leaves, other)
    if mine != others:
        return mine > others
    if leaves[k].leaf != leaves[other].leaf:
        return leaves[k].leaf > leaves[other].leaf
    return k < other


@called_kernel
def _rank_by_share(rules, tree):
    """Compute the classic factor, 2 ** -(effective usage / share / dampening).

    Effective usage is the user's own, increased by a share of the account's.
    """
    leaves, children, sums = tree.leaves, tree.children, tree.sums
    sums[0] = 1.0  # the normalised share of each; `rank` temporarily holds the effective use
    leaves[0].rank = 1.0 if leaves[0].used > 0 else 0.0
    for k in range(len(leaves)):
        total = 0
        for child in list_of(children, k):
            total += leaves[child].shares
        for child in list_of(children, k):
            part = leaves[child].shares / total if total > 0 else 0.0
            own = leaves[child].used / leaves[0].used if leaves[0].used > 0 else 0.0
            sums[child] = sums[k] * part
            leaves[child].rank = own + (leaves[k].rank - own) * part if k > 0 else own
    for k in range(len(leaves)):
        if leaves[k].leaf:
            leaves[k].rank = math.exp(-leaves[k].rank / (rules.dampening * sums[k]) * LN2) if sums[k] > 0 else 0.0
