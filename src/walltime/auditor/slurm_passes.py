"""What Slurm's main and backfill schedulers start at an instant, in compiled code: nodes one by one, blocks of nodes that are kept free.

The rules are those of docs/reference/promises.md; nothing is shared with the engines. Times in s.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walltime.auditor.limits import count_start, within_limits
from walltime.compiled.jit import called_kernel, entry, kernel
from walltime.compiled.records import record_dtype

Array = np.ndarray
NEVER = np.iinfo(np.int64).max // 4


SLURM_JOB = record_dtype("procs second nodes whole each partition user believed time_min priority submit reserved limit first count")
"""A job. `nodes`: the fewest that it needs; `each`: what each of them must have of the second resource. `first`, `count`: its slots."""
SLURM_RULES = record_dtype(
    "partition_depth least_priority least_age most_tested most_of_user most_of_partition most_of_user_in_partition most_started "
    "most_reserved window resolution soft half"
)
SLURM_STATE = record_dtype("now waiting running blocks slots chosen started depth last")


class Ground(NamedTuple):
    """The machine.

    `capacity`, `free`: processors and second resource of each node; `own`: the nodes of each partition in their order, -1 after the last;
    `most`, `used`: each limit and what counts towards it; `limits`: of each job, a piece that begins at `first`.
    """

    capacity: Array
    free: Array
    own: Array
    most: Array
    used: Array
    first: Array
    limits: Array


class Slots(NamedTuple):
    """What jobs have of nodes: node, processors, second resource; of each job a piece."""

    node: Array
    amount: Array


class Blocks(NamedTuple):
    """Nodes that are kept free for a time: begin, end, the first of their nodes and how many; in order of begin, and of end."""

    table: Array
    nodes: Array
    by_begin: Array
    by_end: Array


class Lists(NamedTuple):
    """Who waits, by priority; who runs, by the time at which it is planned to be gone (`release`); who has started now.

    `users`, `parts`, `both`: counts by user, by partition, and by both.
    """

    queue: Array
    running: Array
    release: Array
    started: Array
    users: Array
    parts: Array
    both: Array


class Sight(NamedTuple):
    """Scratch: the nodes as a job sees them at some time (processors, second resource, blocks on them), marks, and what is chosen."""

    free: Array
    blocked: Array
    mark: Array
    chosen: Array
    sums: Array


class Parts(NamedTuple):
    """What the schedulers work on."""

    ground: Ground
    slots: Slots
    blocks: Blocks
    lists: Lists
    sight: Sight


@kernel
def is_usable(ground: Any, sight: Any, jobs: Any, job: Any, n: Any) -> Any:
    """Whether a job can use a node as it sees it."""
    if sight.blocked[n] > 0 or sight.free[n, 1] < jobs[job].each:
        return False
    if jobs[job].whole == 1:
        return sight.free[n, 0] == ground.capacity[n, 0]
    return sight.free[n, 0] > 0


@kernel
def count_node(ground: Any, sight: Any, jobs: Any, job: Any, n: Any, sign: Any) -> Any:
    """Count a node among those that a job can use, or no more."""
    if is_usable(ground, sight, jobs, job, n):
        sight.sums[0] += sign
        sight.sums[1] += sign * sight.free[n, 0]
        sight.sums[2] += sign * sight.free[n, 1]


@kernel
def is_enough(sight: Any, jobs: Any, job: Any) -> Any:
    """Whether what a job can use is enough for it."""
    if sight.sums[0] < jobs[job].nodes:
        return False
    return jobs[job].whole == 1 or (sight.sums[1] >= jobs[job].procs and sight.sums[2] >= jobs[job].second)


@called_kernel
def find_place(state: Any, jobs: Any, parts: Any, job: Any, length: Any, latest: Any) -> Any:
    """The first time up to `latest`, now or when something is given back, from which on a job finds nodes for a length, or NEVER.

    `parts`: a Parts. Afterwards the job sees the nodes as they are then.
    """
    ground, slots, blocks, lists, sight = parts
    part, moment = jobs[job].partition, state.now
    sight.sums[0] = sight.sums[1] = sight.sums[2] = 0
    for n in range(len(sight.mark)):
        sight.mark[n] = 0
    for k in range(ground.own.shape[1]):
        n = ground.own[part, k]
        if n >= 0:
            sight.mark[n], sight.blocked[n] = 1, 0
            sight.free[n, 0], sight.free[n, 1] = ground.free[n, 0], ground.free[n, 1]
            count_node(ground, sight, jobs, job, n, 1)
    gone = entered = left = 0
    while True:
        while entered < state.blocks and blocks.table[blocks.by_begin[entered], 0] < moment + length:
            mark_block(ground, blocks, sight, jobs, job, blocks.by_begin[entered], 1)
            entered += 1
        while left < state.blocks and blocks.table[blocks.by_end[left], 1] <= moment:
            mark_block(ground, blocks, sight, jobs, job, blocks.by_end[left], -1)
            left += 1
        if is_enough(sight, jobs, job):
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
                if sight.mark[n] == 1:
                    count_node(ground, sight, jobs, job, n, -1)
                    sight.free[n, 0] += slots.amount[i, 0]
                    sight.free[n, 1] += slots.amount[i, 1]
                    count_node(ground, sight, jobs, job, n, 1)
            gone += 1


@called_kernel
def mark_block(ground: Any, blocks: Any, sight: Any, jobs: Any, job: Any, block: Any, sign: Any) -> Any:
    """A block comes into a job's sight, or is over."""
    for i in range(blocks.table[block, 2], blocks.table[block, 2] + blocks.table[block, 3]):
        n = blocks.nodes[i]
        if sight.mark[n] == 1:
            count_node(ground, sight, jobs, job, n, -1)
            sight.blocked[n] += sign
            count_node(ground, sight, jobs, job, n, 1)


@called_kernel
def choose(state: Any, jobs: Any, ground: Any, sight: Any, job: Any) -> Any:
    """Choose nodes among those that a job sees.

    Whole stretches of usable nodes, the largest first, until one is enough for what is left; of these the smallest. Of stretches alike the
    first.
    """
    one, width = jobs[job], ground.own.shape[1]
    left_nodes, left_procs, left_second = one.nodes, one.procs, one.second
    state.chosen = 0
    while left_nodes > 0 or left_procs > 0 or left_second > 0:
        best = largest = last_of_best = last_of_largest = -1
        best_size, largest_size, k = NEVER, -1, 0
        while k < width and ground.own[one.partition, k] >= 0:
            count = size = second = 0
            begin = k
            while k < width and ground.own[one.partition, k] >= 0:
                n = ground.own[one.partition, k]
                if not (is_usable(ground, sight, jobs, job, n) and sight.mark[n] == 1):
                    break
                count, size, second = count + 1, size + sight.free[n, 0], second + sight.free[n, 1]
                k += 1
            if count > 0:
                if size > largest_size:
                    largest, last_of_largest, largest_size = begin, k, size
                suffices = count >= left_nodes and (one.whole == 1 or (size >= left_procs and second >= left_second))
                if suffices and size < best_size:
                    best, last_of_best, best_size = begin, k, size
            else:
                k += 1
        if largest < 0:
            return
        # The largest decides whether one is enough: a smaller one may have more nodes, but is not looked at.
        first, last = largest, last_of_largest
        if best >= 0 and stretch_suffices(ground, sight, one, largest, last_of_largest, left_nodes, left_procs, left_second):
            first, last = best, last_of_best
        for place in range(first, last):
            n = ground.own[one.partition, place]
            sight.mark[n] = 2
            procs = sight.free[n, 0] if one.whole == 1 else min(sight.free[n, 0], left_procs - max(0, left_nodes - 1))
            second = min(sight.free[n, 1], left_second)
            if (one.whole == 1 and left_nodes == 0) or (procs <= 0 and second == 0):
                continue
            sight.chosen[state.chosen, 0], sight.chosen[state.chosen, 1], sight.chosen[state.chosen, 2] = n, procs, second
            state.chosen += 1
            left_nodes = max(0, left_nodes - 1)
            left_procs -= procs
            left_second -= second


@kernel
def stretch_suffices(ground: Any, sight: Any, one: Any, first: Any, last: Any, nodes: Any, procs: Any, second: Any) -> Any:
    """Whether a stretch of usable nodes has what is left to be found."""
    if last - first < nodes:
        return False
    for place in range(first, last):
        n = ground.own[one.partition, place]
        procs -= sight.free[n, 0]
        second -= sight.free[n, 1]
    return one.whole == 1 or (procs <= 0 and second <= 0)


@called_kernel
def begin_now(state: Any, jobs: Any, ground: Any, slots: Any, lists: Any, sight: Any, job: Any, limit: Any) -> Any:
    """A job starts on the nodes that have been chosen."""
    jobs[job].first, jobs[job].count, jobs[job].limit = state.slots, state.chosen, limit
    for i in range(state.chosen):
        n = sight.chosen[i, 0]
        slots.node[state.slots] = n
        slots.amount[state.slots, 0], slots.amount[state.slots, 1] = sight.chosen[i, 1], sight.chosen[i, 2]
        state.slots += 1
        ground.free[n, 0] -= sight.chosen[i, 1]
        ground.free[n, 1] -= sight.chosen[i, 2]
    count_start(jobs, ground, job)
    lists.started[state.started] = job
    state.started += 1
    count_free(ground, sight)


@kernel
def has_claim(state: Any, rules: Any, jobs: Any, job: Any) -> Any:
    """Whether a job may block others: its priority is high enough, and it has waited for long enough."""
    return jobs[job].priority >= rules.least_priority and state.now - jobs[job].submit >= rules.least_age


@called_kernel
def count_free(ground: Any, sight: Any) -> Any:
    """Count the nodes on which something is free, those that are free as a whole, and all free processors."""
    sight.sums[3] = sight.sums[4] = sight.sums[5] = 0
    for n in range(len(ground.free)):
        if ground.free[n, 0] > 0:
            sight.sums[3] += 1
            sight.sums[4] += 1 if ground.free[n, 0] == ground.capacity[n, 0] else 0
            sight.sums[5] += ground.free[n, 0]


@kernel
def may_fit(sight: Any, jobs: Any, job: Any) -> Any:
    """Whether enough of all nodes is free now for a job, whichever it may use."""
    if jobs[job].whole == 1:
        return sight.sums[4] >= jobs[job].nodes
    return sight.sums[3] >= jobs[job].nodes and sight.sums[5] >= jobs[job].procs


@entry
def main_pass(state: Any, rules: Any, jobs: Any, parts: Any) -> Any:
    """The main scheduler looks at the first `state.depth` jobs; a job that finds no nodes closes its partition, and its nodes to others.

    The blocks are the outages, in order. `lists.started` has who starts. `lists.parts` counts what is looked at of each partition, and is
    negative for one that is closed.
    """
    ground, slots, blocks, lists, sight = parts
    state.started = 0
    for p in range(len(lists.parts)):
        lists.parts[p] = 0
    outages = state.blocks
    count_free(ground, sight)
    for i in range(min(state.waiting, state.depth)):
        job = lists.queue[i]
        part = jobs[job].partition
        if lists.parts[part] < 0:
            continue
        lists.parts[part] += 1
        if (rules.partition_depth > 0 and lists.parts[part] > rules.partition_depth) or not within_limits(jobs, ground, job):
            continue
        begin = NEVER
        if may_fit(sight, jobs, job):
            begin = find_place(state, jobs, parts, job, jobs[job].believed, state.now)
        if begin == state.now:
            choose(state, jobs, ground, sight, job)
            begin_now(state, jobs, ground, slots, lists, sight, job, jobs[job].believed)
        elif has_claim(state, rules, jobs, job):
            lists.parts[part] = -1
            keep_partition(state, ground, blocks, part)
    state.blocks = outages


@kernel
def keep_partition(state: Any, ground: Any, blocks: Any, part: Any) -> Any:
    """All nodes of a partition are closed from now on."""
    first = end_of_blocks(state, blocks)
    count = 0
    for k in range(ground.own.shape[1]):
        if ground.own[part, k] >= 0:
            blocks.nodes[first + count] = ground.own[part, k]
            count += 1
    add_block(state, blocks, -NEVER, NEVER, first, count)


@kernel
def end_of_blocks(state: Any, blocks: Any) -> Any:
    """Where the nodes of the next block are noted."""
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
def backfill_cycle(state: Any, rules: Any, jobs: Any, parts: Any) -> Any:
    """One cycle of the backfill scheduler; jobs behind the last one for which there is room now are not planned, as they change nothing."""
    ground, slots, blocks, lists, sight = parts
    state.started = 0
    for p in range(len(lists.parts)):
        lists.parts[p] = 0
    for k in range(len(lists.both)):
        lists.both[k] = 0
    for k in range(len(lists.users)):
        lists.users[k] = 0
    partitions = len(lists.parts) // 2
    count_free(ground, sight)
    last = state.waiting - 1
    while last >= 0 and not may_fit(sight, jobs, lists.queue[last]):
        last -= 1
    tested = 0
    for i in range(last + 1):
        job = lists.queue[i]
        if not within_limits(jobs, ground, job):
            continue
        if tested == rules.most_tested:
            break
        tested += 1
        part, both = jobs[job].partition, jobs[job].user * partitions + jobs[job].partition
        if (
            (0 < rules.most_of_user <= lists.users[jobs[job].user])
            or (0 < rules.most_of_partition <= lists.parts[part])
            or (0 < rules.most_of_user_in_partition <= lists.both[both])
        ):
            continue
        lists.users[jobs[job].user] += 1
        lists.parts[part] += 1
        lists.both[both] += 1
        length = jobs[job].time_min if jobs[job].time_min > 0 else jobs[job].believed
        reserves = has_claim(state, rules, jobs, job) and not 0 < rules.most_reserved <= lists.parts[partitions + part]
        latest = state.now + rules.window if reserves else state.now
        begin = find_place(state, jobs, parts, job, length, latest)
        if begin >= NEVER:
            continue
        choose(state, jobs, ground, sight, job)
        if begin > state.now:
            lists.parts[partitions + part] += 1
            if jobs[job].reserved < 0:
                jobs[job].reserved = begin
            step, first = rules.resolution, end_of_blocks(state, blocks)
            for k in range(state.chosen):
                blocks.nodes[first + k] = sight.chosen[k, 0]
            add_block(state, blocks, max(begin // step * step, state.now), -(-(begin + length) // step) * step, first, state.chosen)
            continue
        limit = shortened(state, rules, jobs, blocks, sight, job)
        begin_now(state, jobs, ground, slots, lists, sight, job, limit)
        add_running(state, rules, jobs, lists, job)
        if state.started == rules.most_started:
            break


@called_kernel
def shortened(state: Any, rules: Any, jobs: Any, blocks: Any, sight: Any, job: Any) -> Any:
    """The limit under which a job is backfilled: its own, or what is left before one of its nodes is kept for another, in whole minutes."""
    if jobs[job].time_min == 0 or rules.soft == 1:
        return jobs[job].believed
    for k in range(state.chosen):
        sight.mark[sight.chosen[k, 0]] = 3
    room = NEVER
    for b in range(state.blocks):
        if blocks.table[b, 0] > state.now:
            for i in range(blocks.table[b, 2], blocks.table[b, 2] + blocks.table[b, 3]):
                if sight.mark[blocks.nodes[i]] == 3:
                    room = min(room, blocks.table[b, 0] - state.now)
    if room >= jobs[job].believed:
        return jobs[job].believed
    return max(jobs[job].time_min, room // 60 * 60)


@kernel
def add_running(state: Any, rules: Any, jobs: Any, lists: Any, job: Any) -> Any:
    """A job that has just been backfilled counts among those that run."""
    is_soft = rules.soft == 1 and rules.half == 1 and jobs[job].time_min > 0
    release = state.now + (jobs[job].time_min if is_soft else jobs[job].limit)
    i = state.running
    while i > 0 and lists.release[i - 1] > release:
        lists.release[i], lists.running[i] = lists.release[i - 1], lists.running[i - 1]
        i -= 1
    lists.release[i], lists.running[i] = release, job
    state.running += 1


@entry
def place_job(state: Any, jobs: Any, ground: Any, sight: Any, job: Any) -> Any:
    """Choose nodes for a job among what is free, whatever is kept: `state.chosen`, `sight.chosen`; with too little, what there is."""
    for n in range(len(sight.mark)):
        sight.mark[n] = 0
    sight.sums[0] = sight.sums[1] = sight.sums[2] = 0
    for k in range(ground.own.shape[1]):
        n = ground.own[jobs[job].partition, k]
        if n >= 0:
            sight.mark[n], sight.blocked[n] = 1, 0
            sight.free[n, 0], sight.free[n, 1] = ground.free[n, 0], ground.free[n, 1]
    choose(state, jobs, ground, sight, job)
