"""An index over a long waiting queue: where the next job could be that may be backfilled.

The queue is cut into blocks of 64 places, and these into groups of 64 blocks. Each block and each group knows the shortest
believed runtime among its waiting jobs of at most each size class, so that one look tells whether a search may skip it: a
queue of 100,000 jobs then costs a few times what a queue of 10 does. A started job leaves a hole (-1) in the queue.
"""

from __future__ import annotations

from walltime.engine.jit import kernel
from walltime.engine.memory import CLASSES, EXTRA, FREE, INDEXED, NEVER, NOW, QUEUE_FIRST, QUEUE_LAST, SHADOW
from walltime.engine.sizes import size_class

BLOCK = 64
GROUP = BLOCK * BLOCK
LONG = 1024
"""A queue of more places than this is indexed. A shorter one is searched place by place in less time."""
SHORT = 256
"""A queue of fewer places than this is indexed no more."""


@kernel
def index_arrivals(jobs, memory, first):
    """Enter the jobs in the queue from this place on."""
    classes = memory.state[CLASSES]
    for place in range(first, memory.state[QUEUE_LAST]):
        block, group = place // BLOCK, place // GROUP
        if place % BLOCK == 0:
            memory.block_shortest[block * classes : (block + 1) * classes] = NEVER
        if place % GROUP == 0:
            memory.group_shortest[group * classes : (group + 1) * classes] = NEVER
        _enter(jobs, memory, place, memory.block_shortest, block)
        _enter(jobs, memory, place, memory.group_shortest, group)


@kernel
def build_index(jobs, memory, result):
    """Index the whole queue, its holes closed first."""
    state, queue = memory.state, memory.queue
    kept = 0
    for place in range(state[QUEUE_FIRST], state[QUEUE_LAST]):
        job = queue[place]
        if job >= 0 and result.start[job] < 0:
            queue[kept] = job
            kept += 1
    state[QUEUE_FIRST] = 0
    state[QUEUE_LAST] = kept
    index_arrivals(jobs, memory, 0)
    state[INDEXED] = 1


@kernel
def drop_index(memory):
    """Close the holes of the queue, and search it place by place again."""
    state, queue = memory.state, memory.queue
    kept = state[QUEUE_FIRST]
    for place in range(state[QUEUE_FIRST], state[QUEUE_LAST]):
        if queue[place] >= 0:
            queue[kept] = queue[place]
            kept += 1
    state[QUEUE_LAST] = kept
    state[INDEXED] = 0


@kernel
def take_out(jobs, memory, place):
    """Leave a hole where a started job was."""
    job = memory.queue[place]
    memory.queue[place] = -1
    block, group = place // BLOCK, place // GROUP
    classes = memory.state[CLASSES]
    own = size_class(jobs.procs[job])
    believed = jobs.own_length[job]
    if _was_shortest(memory.block_shortest, block * classes + own, (block + 1) * classes, believed):
        _look_through_block(jobs, memory, block)
        if _was_shortest(memory.group_shortest, group * classes + own, (group + 1) * classes, believed):
            last = min((group + 1) * BLOCK, (memory.state[QUEUE_LAST] - 1) // BLOCK + 1)
            for number in range(own, classes):
                least = NEVER
                for member in range(group * BLOCK, last):
                    least = min(least, memory.block_shortest[member * classes + number])
                memory.group_shortest[group * classes + number] = least


@kernel
def _was_shortest(shortest, first, last, believed):
    """Whether one of these entries may stand for a job that believed to run so long."""
    found = False
    for i in range(first, last):
        found |= shortest[i] == believed
    return found


@kernel
def _look_through_block(jobs, memory, block):
    """Find the shortest jobs of a block afresh: of each size class by itself, then of at most each."""
    classes = memory.state[CLASSES]
    first = block * classes
    shortest = memory.block_shortest
    shortest[first : first + classes] = NEVER
    for place in range(block * BLOCK, min((block + 1) * BLOCK, memory.state[QUEUE_LAST])):
        job = memory.queue[place]
        if job >= 0:
            at = first + size_class(jobs.procs[job])
            shortest[at] = min(shortest[at], jobs.own_length[job])
    for i in range(first + 1, first + classes):
        shortest[i] = min(shortest[i], shortest[i - 1])


@kernel
def next_candidate(jobs, memory, place):
    """The first place from this one on whose job may be backfilled now as far as the index can tell; QUEUE_LAST for none."""
    state = memory.state
    last = state[QUEUE_LAST]
    room = state[SHADOW] - state[NOW]
    fitting = size_class(state[FREE])
    beside = min(state[FREE], state[EXTRA])
    extra = size_class(beside) if beside > 0 else -1
    if state[FREE] == 0:
        return last
    while place < last:
        if place % GROUP == 0 and not _promising(memory.group_shortest, place // GROUP, state[CLASSES], fitting, room, extra):
            place += GROUP
        elif place % BLOCK == 0 and not _promising(memory.block_shortest, place // BLOCK, state[CLASSES], fitting, room, extra):
            place += BLOCK
        else:
            job = memory.queue[place]
            if job >= 0 and jobs.procs[job] <= state[FREE] and (jobs.own_length[job] <= room or jobs.procs[job] <= beside):
                return place
            place += 1
    return last


@kernel
def _promising(shortest, node, classes, fitting, room, extra):
    """Whether a job that may be backfilled could be below this node."""
    if shortest[node * classes + fitting] <= room:
        return True
    return extra >= 0 and shortest[node * classes + extra] < NEVER


@kernel
def _enter(jobs, memory, place, shortest, node):
    job = memory.queue[place]
    if job < 0:
        return
    believed = jobs.own_length[job]
    classes = memory.state[CLASSES]
    for number in range(size_class(jobs.procs[job]), classes):
        at = node * classes + number
        shortest[at] = min(shortest[at], believed)
