"""Slurm's main and backfill schedulers at one instant, with single nodes, and blocks of nodes that are kept free; compiled.

docs/reference/promises.md has the rules; the engines share nothing with this module. Times in s.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walltime.auditor.pool_passes import count_start, within_limits
from walltime.compiled.jit import called_kernel, entry, kernel
from walltime.compiled.records import record_dtype

Array = np.ndarray
NEVER = np.iinfo(np.int64).max // 4


SLURM_JOB = record_dtype("procs second nodes whole each partition user believed time_min priority submit reserved limit first count")
"""A job. `nodes`: the fewest that it needs; `each`: the second resource needed on each of them. `first`, `count`: its slots."""
SLURM_RULES = record_dtype(
    "partition_depth least_priority least_age most_tested most_of_user most_of_partition most_of_user_in_partition most_started "
    "most_reserved window resolution soft half"
)
SLURM_STATE = record_dtype("now waiting running blocks slots chosen started depth")


class Cluster(NamedTuple):
    """The machine.

    `capacity`, `free`: processors and second resource of each node; `own`: the nodes of each partition in order, -1 after the last; `most`,
    `used`: each limit and the amounts counted towards it; job k has the limits `limits[first[k] : first[k + 1]]`.
    """

    capacity: Array
    free: Array
    own: Array
    most: Array
    used: Array
    first: Array
    limits: Array


class JobSlots(NamedTuple):
    """The jobs' shares of nodes: node, and amounts of processors and second resource; each job has a contiguous piece."""

    node: Array
    amount: Array


class Blocks(NamedTuple):
    """Nodes that are kept free for a time: begin, end, index of their first node, and their number; sorted by begin, and by end."""

    table: Array
    nodes: Array
    by_begin: Array
    by_end: Array


class SlurmLists(NamedTuple):
    """Waiting jobs by priority; running jobs by planned end (`release`); jobs started now; and counters for a scheduler."""

    queue: Array
    running: Array
    release: Array
    started: Array
    by_user: Array
    by_partition: Array
    by_both: Array


class NodeView(NamedTuple):
    """The nodes as one job sees them at some time (free amounts, number of blocks), marks, chosen nodes, and sums; scratch memory."""

    free: Array
    blocked: Array
    mark: Array
    chosen: Array
    sums: Array


class SlurmMemory(NamedTuple):
    """All memory of the schedulers."""

    cluster: Cluster
    slots: JobSlots
    blocks: Blocks
    lists: SlurmLists
    view: NodeView


@kernel
def is_usable(cluster: Any, view: Any, jobs: Any, job: Any, n: Any) -> Any:
    """Return whether a job can use a node in its view."""
    if view.blocked[n] > 0 or view.free[n, 1] < jobs[job].each:
        return False
    if jobs[job].whole == 1:
        return view.free[n, 0] == cluster.capacity[n, 0]
    return view.free[n, 0] > 0


@kernel
def count_node(cluster: Any, view: Any, jobs: Any, job: Any, n: Any, sign: Any) -> Any:
    """Add a node to the sums of usable nodes, or remove it (-1)."""
    if is_usable(cluster, view, jobs, job, n):
        view.sums[0] += sign
        view.sums[1] += sign * view.free[n, 0]
        view.sums[2] += sign * view.free[n, 1]


@kernel
def is_enough(view: Any, jobs: Any, job: Any) -> Any:
    """Return whether the usable nodes suffice for a job."""
    if view.sums[0] < jobs[job].nodes:
        return False
    return jobs[job].whole == 1 or (view.sums[1] >= jobs[job].procs and view.sums[2] >= jobs[job].second)


@called_kernel
def open_view(cluster: Any, view: Any, jobs: Any, job: Any) -> Any:
    """Show a job the nodes of its partition as they are now, without blocks."""
    view.sums[0] = view.sums[1] = view.sums[2] = 0
    for n in range(len(view.mark)):
        view.mark[n] = 0
    for k in range(cluster.own.shape[1]):
        n = cluster.own[jobs[job].partition, k]
        if n >= 0:
            view.mark[n], view.blocked[n] = 1, 0
            view.free[n, 0], view.free[n, 1] = cluster.free[n, 0], cluster.free[n, 1]
            count_node(cluster, view, jobs, job, n, 1)


@called_kernel
def find_place(state: Any, jobs: Any, memory: Any, job: Any, length: Any, latest: Any) -> Any:
    """Return the earliest time up to `latest`, now or at a release, from which a job has nodes for `length` s, or NEVER.

    Afterwards the view shows the nodes at that time.
    """
    cluster, slots, blocks, lists, view = memory
    open_view(cluster, view, jobs, job)
    moment = state.now
    gone = entered = left = 0
    while True:
        while entered < state.blocks and blocks.table[blocks.by_begin[entered], 0] < moment + length:
            mark_block(cluster, blocks, view, jobs, job, blocks.by_begin[entered], 1)
            entered += 1
        while left < state.blocks and blocks.table[blocks.by_end[left], 1] <= moment:
            mark_block(cluster, blocks, view, jobs, job, blocks.by_end[left], -1)
            left += 1
        if is_enough(view, jobs, job):
            return moment
        moment = NEVER
        if gone < state.running:
            moment = lists.release[gone]
        if left < state.blocks:
            moment = min(moment, blocks.table[blocks.by_end[left], 1])
        if moment > latest or moment >= NEVER:
            return NEVER
        while gone < state.running and lists.release[gone] <= moment:
            other = lists.running[gone]
            for i in range(jobs[other].first, jobs[other].first + jobs[other].count):
                n = slots.node[i]
                if view.mark[n] == 1:
                    count_node(cluster, view, jobs, job, n, -1)
                    view.free[n, 0] += slots.amount[i, 0]
                    view.free[n, 1] += slots.amount[i, 1]
                    count_node(cluster, view, jobs, job, n, 1)
            gone += 1


@called_kernel
def mark_block(cluster: Any, blocks: Any, view: Any, jobs: Any, job: Any, block: Any, sign: Any) -> Any:
    """Add a block to a job's view, or remove it (-1)."""
    for i in range(blocks.table[block, 2], blocks.table[block, 2] + blocks.table[block, 3]):
        n = blocks.nodes[i]
        if view.mark[n] == 1:
            count_node(cluster, view, jobs, job, n, -1)
            view.blocked[n] += sign
            count_node(cluster, view, jobs, job, n, 1)


@called_kernel
def choose(state: Any, jobs: Any, cluster: Any, view: Any, job: Any) -> Any:
    """Choose nodes from a job's view.

    Take whole stretches of usable nodes, the largest first, until one suffices for the rest; then take the smallest that suffices. Among
    equal stretches, take the first.
    """
    one, width = jobs[job], cluster.own.shape[1]
    left_nodes, left_procs, left_second = one.nodes, one.procs, one.second
    state.chosen = 0
    while left_nodes > 0 or left_procs > 0 or left_second > 0:
        best = largest = last_of_best = last_of_largest = -1
        best_size, largest_size, largest_suffices, k = NEVER, -1, False, 0
        while k < width and cluster.own[one.partition, k] >= 0:
            count = size = second = 0
            begin = k
            while k < width and cluster.own[one.partition, k] >= 0:
                n = cluster.own[one.partition, k]
                if not (is_usable(cluster, view, jobs, job, n) and view.mark[n] == 1):
                    break
                count, size, second = count + 1, size + view.free[n, 0], second + view.free[n, 1]
                k += 1
            if count > 0:
                suffices = count >= left_nodes and (one.whole == 1 or (size >= left_procs and second >= left_second))
                if size > largest_size:
                    largest, last_of_largest, largest_size, largest_suffices = begin, k, size, suffices
                if suffices and size < best_size:
                    best, last_of_best, best_size = begin, k, size
            else:
                k += 1
        if largest < 0:
            return
        # Only if the largest suffices is a single stretch taken, although a smaller one may have more nodes.
        first, last = largest, last_of_largest
        if largest_suffices:
            first, last = best, last_of_best
        for place in range(first, last):
            n = cluster.own[one.partition, place]
            view.mark[n] = 2
            procs = view.free[n, 0] if one.whole == 1 else min(view.free[n, 0], left_procs - max(0, left_nodes - 1))
            second = min(view.free[n, 1], left_second)
            if (one.whole == 1 and left_nodes == 0) or (procs <= 0 and second == 0):
                continue
            view.chosen[state.chosen, 0], view.chosen[state.chosen, 1], view.chosen[state.chosen, 2] = n, procs, second
            state.chosen += 1
            left_nodes = max(0, left_nodes - 1)
            left_procs -= procs
            left_second -= second


@called_kernel
def begin_now(state: Any, jobs: Any, cluster: Any, slots: Any, lists: Any, view: Any, job: Any, limit: Any) -> Any:
    """Start a job on the chosen nodes."""
    jobs[job].first, jobs[job].count, jobs[job].limit = state.slots, state.chosen, limit
    for i in range(state.chosen):
        n = view.chosen[i, 0]
        slots.node[state.slots] = n
        slots.amount[state.slots, 0], slots.amount[state.slots, 1] = view.chosen[i, 1], view.chosen[i, 2]
        state.slots += 1
        cluster.free[n, 0] -= view.chosen[i, 1]
        cluster.free[n, 1] -= view.chosen[i, 2]
    count_start(jobs, cluster, job)
    lists.started[state.started] = job
    state.started += 1
    count_free(cluster, view)


@kernel
def has_claim(state: Any, rules: Any, jobs: Any, job: Any) -> Any:
    """Return whether a job may block others: its priority is high enough, and it has waited long enough."""
    return jobs[job].priority >= rules.least_priority and state.now - jobs[job].submit >= rules.least_age


@called_kernel
def count_free(cluster: Any, view: Any) -> Any:
    """Count the nodes with free processors, the nodes that are entirely free, and all free processors."""
    view.sums[3] = view.sums[4] = view.sums[5] = 0
    for n in range(len(cluster.free)):
        if cluster.free[n, 0] > 0:
            view.sums[3] += 1
            view.sums[4] += 1 if cluster.free[n, 0] == cluster.capacity[n, 0] else 0
            view.sums[5] += cluster.free[n, 0]


@kernel
def may_fit(view: Any, jobs: Any, job: Any) -> Any:
    """Return whether enough nodes and processors are free now for a job, in all partitions together."""
    if jobs[job].whole == 1:
        return view.sums[4] >= jobs[job].nodes
    return view.sums[3] >= jobs[job].nodes and view.sums[5] >= jobs[job].procs


@entry
def main_pass(state: Any, rules: Any, jobs: Any, memory: Any) -> Any:
    """Run the main scheduler over the first `state.depth` jobs; a job without nodes closes its partition, with the nodes in it.

    The blocks are the outages, in order. `lists.started` gets the jobs that start. `lists.by_partition` counts the jobs tried in each
    partition, and is negative for a closed one.
    """
    cluster, slots, blocks, lists, view = memory
    state.started = 0
    for p in range(len(lists.by_partition)):
        lists.by_partition[p] = 0
    outages = state.blocks
    count_free(cluster, view)
    for i in range(min(state.waiting, state.depth)):
        job = lists.queue[i]
        part = jobs[job].partition
        if lists.by_partition[part] < 0:
            continue
        lists.by_partition[part] += 1
        if (rules.partition_depth > 0 and lists.by_partition[part] > rules.partition_depth) or not within_limits(jobs, cluster, job):
            continue
        begin = NEVER
        if may_fit(view, jobs, job):
            begin = find_place(state, jobs, memory, job, jobs[job].believed, state.now)
        if begin == state.now:
            choose(state, jobs, cluster, view, job)
            begin_now(state, jobs, cluster, slots, lists, view, job, jobs[job].believed)
        elif has_claim(state, rules, jobs, job):
            lists.by_partition[part] = -1
            first, count = end_of_blocks(state, blocks), 0
            for k in range(cluster.own.shape[1]):
                if cluster.own[part, k] >= 0:
                    blocks.nodes[first + count] = cluster.own[part, k]
                    count += 1
            add_block(state, blocks, -NEVER, NEVER, first, count)
    state.blocks = outages


@kernel
def end_of_blocks(state: Any, blocks: Any) -> Any:
    """Return the index for the first node of the next block."""
    if state.blocks == 0:
        return 0
    return blocks.table[state.blocks - 1, 2] + blocks.table[state.blocks - 1, 3]


@called_kernel
def add_block(state: Any, blocks: Any, begin: Any, end: Any, first: Any, count: Any) -> Any:
    """Keep nodes free in [begin, end)."""
    block = state.blocks
    table = blocks.table
    table[block, 0], table[block, 1], table[block, 2], table[block, 3] = begin, end, first, count
    i = block
    while i > 0 and table[blocks.by_begin[i - 1], 0] > begin:
        blocks.by_begin[i] = blocks.by_begin[i - 1]
        i -= 1
    blocks.by_begin[i] = block
    i = block
    while i > 0 and table[blocks.by_end[i - 1], 1] > end:
        blocks.by_end[i] = blocks.by_end[i - 1]
        i -= 1
    blocks.by_end[i] = block
    state.blocks += 1


@entry
def backfill_cycle(state: Any, rules: Any, jobs: Any, memory: Any) -> Any:
    """Run one cycle of the backfill scheduler, up to the last job for which there is room now: plans of later jobs change nothing."""
    cluster, slots, blocks, lists, view = memory
    state.started = 0
    for p in range(len(lists.by_partition)):
        lists.by_partition[p] = 0
    for k in range(len(lists.by_both)):
        lists.by_both[k] = 0
    for k in range(len(lists.by_user)):
        lists.by_user[k] = 0
    partitions = len(lists.by_partition) // 2
    count_free(cluster, view)
    last = state.waiting - 1
    while last >= 0 and not may_fit(view, jobs, lists.queue[last]):
        last -= 1
    tested = 0
    for i in range(last + 1):
        job = lists.queue[i]
        if not within_limits(jobs, cluster, job):
            continue
        if tested == rules.most_tested:
            break
        tested += 1
        part, both = jobs[job].partition, jobs[job].user * partitions + jobs[job].partition
        if (
            (0 < rules.most_of_user <= lists.by_user[jobs[job].user])
            or (0 < rules.most_of_partition <= lists.by_partition[part])
            or (0 < rules.most_of_user_in_partition <= lists.by_both[both])
        ):
            continue
        lists.by_user[jobs[job].user] += 1
        lists.by_partition[part] += 1
        lists.by_both[both] += 1
        length = jobs[job].time_min if jobs[job].time_min > 0 else jobs[job].believed
        reserves = has_claim(state, rules, jobs, job) and not 0 < rules.most_reserved <= lists.by_partition[partitions + part]
        latest = state.now + rules.window if reserves else state.now
        begin = find_place(state, jobs, memory, job, length, latest)
        if begin >= NEVER:
            continue
        choose(state, jobs, cluster, view, job)
        if begin > state.now:
            lists.by_partition[partitions + part] += 1
            if jobs[job].reserved < 0:
                jobs[job].reserved = begin
            step, first = rules.resolution, end_of_blocks(state, blocks)
            for k in range(state.chosen):
                blocks.nodes[first + k] = view.chosen[k, 0]
            add_block(state, blocks, max(begin // step * step, state.now), -(-(begin + length) // step) * step, first, state.chosen)
            continue
        limit = shortened(state, rules, jobs, blocks, view, job)
        begin_now(state, jobs, cluster, slots, lists, view, job, limit)
        add_running(state, rules, jobs, lists, job)
        if state.started == rules.most_started:
            break


@called_kernel
def shortened(state: Any, rules: Any, jobs: Any, blocks: Any, view: Any, job: Any) -> Any:
    """Return the limit of a backfilled job: its own, or the whole minutes left before one of its nodes is kept for another job."""
    if jobs[job].time_min == 0 or rules.soft == 1:
        return jobs[job].believed
    for k in range(state.chosen):
        view.mark[view.chosen[k, 0]] = 3
    room = NEVER
    for b in range(state.blocks):
        if blocks.table[b, 0] > state.now:
            for i in range(blocks.table[b, 2], blocks.table[b, 2] + blocks.table[b, 3]):
                if view.mark[blocks.nodes[i]] == 3:
                    room = min(room, blocks.table[b, 0] - state.now)
    if room >= jobs[job].believed:
        return jobs[job].believed
    return max(jobs[job].time_min, room // 60 * 60)


@kernel
def add_running(state: Any, rules: Any, jobs: Any, lists: Any, job: Any) -> Any:
    """Add a job that has just been backfilled to the running ones."""
    is_soft = rules.soft == 1 and rules.half == 1 and jobs[job].time_min > 0
    release = state.now + (jobs[job].time_min if is_soft else jobs[job].limit)
    i = state.running
    while i > 0 and lists.release[i - 1] > release:
        lists.release[i], lists.running[i] = lists.release[i - 1], lists.running[i - 1]
        i -= 1
    lists.release[i], lists.running[i] = release, job
    state.running += 1


@entry
def place_job(state: Any, jobs: Any, cluster: Any, view: Any, job: Any) -> Any:
    """Choose free nodes for a job, ignoring reservations; if they do not suffice, all usable ones."""
    open_view(cluster, view, jobs, job)
    choose(state, jobs, cluster, view, job)
