"""The profile: free processors over future time, as a step function (mualem01, section 2.1).

A step is valid from its time until the next step's; in the last one, which has no end, all processors are free. Neighbouring steps differ,
and the first one includes the present.

The steps are in blocks of at most 64, in order of time. One block is usually enough. If there are more, each block stores the fewest and
the most free processors among its steps, so that one comparison is enough to skip a block that is too full or entirely free.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.compiled.records import record_dtype
from walltime.engine.kernel.search import first_from

NEVER = np.iinfo(np.int64).max
"""Time of an event that never comes."""
STEPS_IN_BLOCK = 64
"""Largest number of steps in a block."""


COUNTS = record_dtype("blocks spare")
"""Numbers of blocks in use, and not in use."""

STEP = record_dtype("time free")

BLOCK = record_dtype("filled least most")
"""Number of steps in a block, which begin in slot number * STEPS_IN_BLOCK, and the fewest and most free processors among them."""


class Profile(NamedTuple):
    """A profile: a record of COUNTS, records of STEP and BLOCK, the blocks in use in order of time, and the others."""

    counts: Any
    steps: Any
    blocks: Any
    order: Any
    spare: Any


def new_profile(jobs: int) -> Profile:
    """Return memory for a profile with this many jobs; `profile_of_running` fills it."""
    blocks = 8 * (jobs + 2) // STEPS_IN_BLOCK + 4  # blocks are at least a quarter full, except for the first and the last
    profile = Profile(
        counts=np.zeros(1, COUNTS).view(np.recarray)[0],
        steps=np.zeros(blocks * STEPS_IN_BLOCK, STEP).view(np.recarray),
        blocks=np.zeros(blocks, BLOCK).view(np.recarray),
        order=np.zeros(blocks, np.int64),
        spare=np.arange(blocks)[::-1].copy(),
    )
    profile.counts.spare = blocks
    return profile


@kernel
def size_class(procs):
    """Return 0 for 1 processor, 1 for 2 and 3, 2 for 4 to 7, ...: a power of two is the smallest size of its class."""
    found = 0
    while procs > 1:
        procs >>= 1
        found += 1
    return found


@called_kernel
def profile_of_running(profile, running, count, now, free):
    """Rebuild the profile from the running jobs; an overdue job is expected to end in a second."""
    counts, steps, blocks = profile.counts, profile.steps, profile.blocks
    for place in range(counts.blocks):
        profile.spare[counts.spare] = profile.order[place]
        counts.spare += 1
    counts.blocks = 0
    block = new_block(profile, counts.blocks)
    time = now
    for i in range(count + 1):
        end = max(running[i].expected, now + 1) if i < count else NEVER
        if time < end:
            if blocks[block].filled == STEPS_IN_BLOCK:
                summarize(steps, blocks, block)
                block = new_block(profile, counts.blocks)
            step = steps[block * STEPS_IN_BLOCK + blocks[block].filled]
            step.time, step.free = time, free
            blocks[block].filled += 1
            time = end
        if i < count:
            free += running[i].procs
    summarize(steps, blocks, block)


@kernel
def first_gap(profile, now, length, procs, latest):
    """Return the anchor point: the earliest time from now on at which enough processors stay free for long enough.

    NEVER if there is none before `latest`. Source: mualem01, section 2.1.
    """
    if profile.counts.blocks > 1:
        return _first_gap_among_blocks(profile, now, length, procs, latest)
    steps = profile.steps
    first = profile.order[0] * STEPS_IN_BLOCK
    start = now
    end = start + length
    for i in range(first, first + profile.blocks[profile.order[0]].filled - 1):  # in the last step all processors are free
        if steps[i].time >= end:
            return start
        if steps[i].free < procs:
            start = steps[i + 1].time
            if start >= latest:
                return NEVER
            end = start + length
    return start


@called_kernel
def _first_gap_among_blocks(profile, start, length, procs, latest):
    steps, blocks = profile.steps, profile.blocks
    end = start + length
    in_gap = True
    for place in range(profile.counts.blocks):
        block = profile.order[place]
        first = block * STEPS_IN_BLOCK
        if in_gap and steps[first].time >= end:
            return start
        if not in_gap and steps[first].time >= latest:
            return NEVER
        if (in_gap and blocks[block].least >= procs) or (not in_gap and blocks[block].most < procs):
            continue
        for i in range(first, first + blocks[block].filled):
            if in_gap:
                if steps[i].time >= end:
                    return start
                in_gap = steps[i].free >= procs
            elif steps[i].free >= procs:
                start = steps[i].time
                if start >= latest:
                    return NEVER
                end = start + length
                in_gap = True
    return start


@kernel
def occupy(profile, begin, end, procs):
    """Take processors (release them, if negative) in [begin, end), which does not begin before the first step."""
    if begin >= end:
        return
    block = profile.order[0]
    if profile.counts.blocks > 1 or profile.blocks[block].filled + 2 > STEPS_IN_BLOCK:
        _occupy_among_blocks(profile, begin, end, procs)
        return
    steps = profile.steps
    first = _step_in_only_block(profile, begin)
    last = _step_in_only_block(profile, end)
    for i in range(first, last):
        steps[i].free -= procs
    for i in (last, first):
        if i > block * STEPS_IN_BLOCK and steps[i].free == steps[i - 1].free:
            _remove(profile, block, i)


@kernel
def _step_in_only_block(profile, when):
    """Return the slot of the step that begins at this time, splitting a step if necessary."""
    steps, block = profile.steps, profile.order[0]
    end = block * STEPS_IN_BLOCK + profile.blocks[block].filled
    slot = first_from(steps.time, block * STEPS_IN_BLOCK, end, when)
    if slot < end and steps[slot].time == when:
        return slot
    for i in range(end, slot, -1):
        steps[i] = steps[i - 1]
    steps[slot].time = when
    steps[slot].free = steps[slot - 1].free
    profile.blocks[block].filled += 1
    return slot


@called_kernel
def _occupy_among_blocks(profile, begin, end, procs):
    counts, steps, blocks = profile.counts, profile.steps, profile.blocks
    place, slot = _find(profile, begin)
    if steps[slot].time != begin:
        _insert(profile, place, slot + 1, begin, steps[slot].free)
        place, slot = _find(profile, begin)
    before = np.int64(0)
    while True:
        block = profile.order[place]
        last = block * STEPS_IN_BLOCK + blocks[block].filled
        while slot < last and steps[slot].time < end:
            before = steps[slot].free
            steps[slot].free = before - procs
            slot += 1
        summarize(steps, blocks, block)
        if slot < last or place + 1 == counts.blocks:
            break
        place += 1
        slot = profile.order[place] * STEPS_IN_BLOCK
        last = slot + blocks[profile.order[place]].filled
        if steps[slot].time >= end:
            break
    if slot == last or steps[slot].time != end:
        _insert(profile, place, slot, end, before)
    for when in (end, begin):
        _merge(profile, when)


@called_kernel
def _find(profile, when):
    """Return the step that contains this time: the index of its block in the order of blocks, and its slot."""
    steps = profile.steps
    low, high = 0, profile.counts.blocks - 1
    while low < high:
        middle = (low + high + 1) // 2
        if steps[profile.order[middle] * STEPS_IN_BLOCK].time <= when:
            low = middle
        else:
            high = middle - 1
    first = profile.order[low] * STEPS_IN_BLOCK
    return low, first_from(steps.time, first, first + profile.blocks[profile.order[low]].filled, when + 1) - 1


@called_kernel
def _insert(profile, place, slot, when, free):
    """Insert a step before this slot of the block with the index `place` in the order of blocks; a full block is split in two."""
    steps, blocks = profile.steps, profile.blocks
    block = profile.order[place]
    if blocks[block].filled == STEPS_IN_BLOCK:
        half = STEPS_IN_BLOCK // 2
        upper = new_block(profile, place + 1)
        for i in range(half):
            steps[upper * STEPS_IN_BLOCK + i] = steps[block * STEPS_IN_BLOCK + half + i]
        blocks[block].filled = blocks[upper].filled = half
        summarize(steps, blocks, block)
        summarize(steps, blocks, upper)
        if slot > block * STEPS_IN_BLOCK + half:
            slot += (upper - block) * STEPS_IN_BLOCK - half
            block = upper
    for i in range(block * STEPS_IN_BLOCK + blocks[block].filled, slot, -1):
        steps[i] = steps[i - 1]
    steps[slot].time, steps[slot].free = when, free
    blocks[block].filled += 1
    blocks[block].least = min(blocks[block].least, free)
    blocks[block].most = max(blocks[block].most, free)


@kernel
def _remove(profile, block, slot):
    steps = profile.steps
    for i in range(slot, block * STEPS_IN_BLOCK + profile.blocks[block].filled - 1):
        steps[i] = steps[i + 1]
    profile.blocks[block].filled -= 1


@called_kernel
def _merge(profile, when):
    """Remove the step that begins at this time if it does not differ from the one before it."""
    steps, blocks = profile.steps, profile.blocks
    place, slot = _find(profile, when)
    block = profile.order[place]
    before = slot - 1
    if slot == block * STEPS_IN_BLOCK:
        if place == 0:
            return
        previous = profile.order[place - 1]
        before = previous * STEPS_IN_BLOCK + blocks[previous].filled - 1
    if steps[before].free != steps[slot].free:
        return
    _remove(profile, block, slot)
    if blocks[block].filled == 0:
        _drop_block(profile, place)
    else:
        _join(profile, place)
    if place > 0:
        _join(profile, place - 1)


@called_kernel
def _join(profile, place):
    """Join this block with the next one if both are sparsely filled, so that 64 steps take at most four blocks."""
    if place + 1 >= profile.counts.blocks:
        return
    steps, blocks = profile.steps, profile.blocks
    block, other = profile.order[place], profile.order[place + 1]
    count = blocks[block].filled
    if count + blocks[other].filled > STEPS_IN_BLOCK // 2:
        return
    for i in range(blocks[other].filled):
        steps[block * STEPS_IN_BLOCK + count + i] = steps[other * STEPS_IN_BLOCK + i]
    blocks[block].filled += blocks[other].filled
    summarize(steps, blocks, block)
    _drop_block(profile, place + 1)


@called_kernel
def new_block(profile, place):
    """Insert an empty block with the index `place` in the order of blocks, and return it."""
    counts, order = profile.counts, profile.order
    for i in range(counts.blocks, place, -1):
        order[i] = order[i - 1]
    counts.blocks += 1
    counts.spare -= 1
    block = profile.spare[counts.spare]
    order[place] = block
    profile.blocks[block].filled = 0
    return block


@kernel
def _drop_block(profile, place):
    counts, order = profile.counts, profile.order
    profile.spare[counts.spare] = order[place]
    counts.spare += 1
    counts.blocks -= 1
    for i in range(place, counts.blocks):
        order[i] = order[i + 1]


@kernel
def summarize(steps, blocks, block):
    """Find the minimum and maximum number of free processors in a block."""
    least, most = NEVER, -1
    for i in range(block * STEPS_IN_BLOCK, block * STEPS_IN_BLOCK + blocks[block].filled):
        least = min(least, steps[i].free)
        most = max(most, steps[i].free)
    blocks[block].least, blocks[block].most = least, most
