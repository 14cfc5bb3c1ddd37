"""A profile of more steps than one block holds (profile.py): its blocks, and how they are searched, split and merged.

The steps lie in blocks of at most 64, in order of time. Each block knows the least and the most processors that are free in
it, so that a search for a hole passes over a block that is too full, or free all along, with one look. A profile of one
block does not use these two.
"""

from __future__ import annotations

from walltime.engine.jit import called_kernel, kernel
from walltime.engine.memory import BLOCKS, NEVER, SPARE_BLOCKS, STEPS_IN_BLOCK
from walltime.engine.openings import note_opening


@called_kernel
def first_hole_among_blocks(state, profile, start, believed, procs, reservation, latest):
    """As `profile.first_hole`, passing over the blocks that are free enough, or too full, from end to end."""
    end = min(start + believed, reservation)
    in_hole = True
    for place in range(state[BLOCKS]):
        block = profile.order[place]
        first = block * STEPS_IN_BLOCK
        if in_hole and profile.time[first] >= end:
            return start
        if not in_hole and profile.time[first] >= latest:
            return reservation
        if (in_hole and profile.least[block] >= procs) or (not in_hole and profile.most[block] < procs):
            continue
        for i in range(first, first + profile.filled[block]):
            if in_hole:
                if profile.time[i] >= end:
                    return start
                in_hole = profile.free[i] >= procs
            elif profile.free[i] >= procs:
                start = profile.time[i]
                if start >= latest:
                    return reservation
                end = min(start + believed, reservation)
                in_hole = True
    return start


@called_kernel
def occupy_among_blocks(state, profile, openings, begin, end, procs):
    """As `profile.occupy`."""
    place, slot = _step_from(state, profile, begin)
    several = state[BLOCKS] > 1
    before = 0
    while True:
        block = profile.order[place]
        last = block * STEPS_IN_BLOCK + profile.filled[block]
        while slot < last and profile.time[slot] < end:
            before = profile.free[slot]
            profile.free[slot] = before - procs
            if procs < 0:
                note_opening(openings, profile.time[slot], min(end, _next_time(state, profile, place, slot)), before + 1, before - procs)
            slot += 1
        if several:
            summarize(profile, block)
        if slot < last or place + 1 == state[BLOCKS]:
            break
        place += 1
        slot = profile.order[place] * STEPS_IN_BLOCK
        last = slot + profile.filled[profile.order[place]]
        if profile.time[slot] >= end:
            break
    if slot == last or profile.time[slot] != end:
        _insert(state, profile, place, slot, end, before)
    for when in (end, begin):
        _merge(state, profile, when)


@kernel
def _find(state, profile, when):
    """The step that holds at this time: the place of its block in the order of blocks, and its slot."""
    low, high = 0, state[BLOCKS] - 1
    while low < high:
        middle = (low + high + 1) // 2
        if profile.time[profile.order[middle] * STEPS_IN_BLOCK] <= when:
            low = middle
        else:
            high = middle - 1
    block = profile.order[low]
    first = block * STEPS_IN_BLOCK
    place, low, high = low, first, first + profile.filled[block] - 1
    while low < high:
        middle = (low + high + 1) // 2
        if profile.time[middle] <= when:
            low = middle
        else:
            high = middle - 1
    return place, low


@kernel
def _step_from(state, profile, when):
    """The step that begins at this time, after splitting one if need be: the place of its block, and its slot."""
    place, slot = _find(state, profile, when)
    if profile.time[slot] != when:
        _insert(state, profile, place, slot + 1, when, profile.free[slot])
        place, slot = _find(state, profile, when)
    return place, slot


@kernel
def _next_time(state, profile, place, slot):
    """When the step at this slot ends."""
    block = profile.order[place]
    if slot + 1 < block * STEPS_IN_BLOCK + profile.filled[block]:
        return profile.time[slot + 1]
    return profile.time[profile.order[place + 1] * STEPS_IN_BLOCK] if place + 1 < state[BLOCKS] else NEVER


@kernel
def _insert(state, profile, place, slot, when, free):
    """Put a step before this slot of the block at this place, which is cut in two if it is full."""
    block = profile.order[place]
    first = block * STEPS_IN_BLOCK
    if profile.filled[block] == STEPS_IN_BLOCK:
        _cut_in_two(state, profile, place)
        half = first + STEPS_IN_BLOCK // 2
        if slot > half:
            block = profile.order[place + 1]
            first = block * STEPS_IN_BLOCK
            slot += first - half
    for i in range(first + profile.filled[block], slot, -1):
        profile.time[i] = profile.time[i - 1]
        profile.free[i] = profile.free[i - 1]
    profile.time[slot] = when
    profile.free[slot] = free
    profile.filled[block] += 1
    profile.least[block] = min(profile.least[block], free)
    profile.most[block] = max(profile.most[block], free)


@called_kernel
def _cut_in_two(state, profile, place):
    """Move the later half of a full block into a new one behind it."""
    block, upper = profile.order[place], new_block(state, profile, place + 1)
    half = STEPS_IN_BLOCK // 2
    for i in range(half):
        profile.time[upper * STEPS_IN_BLOCK + i] = profile.time[block * STEPS_IN_BLOCK + half + i]
        profile.free[upper * STEPS_IN_BLOCK + i] = profile.free[block * STEPS_IN_BLOCK + half + i]
    profile.filled[block] = half
    profile.filled[upper] = half
    summarize(profile, block)
    summarize(profile, upper)


@kernel
def _merge(state, profile, when):
    """Drop the step that begins at this time if it does not differ from the one before it."""
    place, slot = _find(state, profile, when)
    block = profile.order[place]
    first = block * STEPS_IN_BLOCK
    if slot > first:
        before = slot - 1
    elif place > 0:
        previous = profile.order[place - 1]
        before = previous * STEPS_IN_BLOCK + profile.filled[previous] - 1
    else:
        return
    if profile.free[before] != profile.free[slot]:
        return
    for i in range(slot, first + profile.filled[block] - 1):
        profile.time[i] = profile.time[i + 1]
        profile.free[i] = profile.free[i + 1]
    profile.filled[block] -= 1
    if profile.filled[block] == 0:
        drop_block(state, profile, place)
    else:
        _join(state, profile, place)
    if place > 0:
        _join(state, profile, place - 1)


@called_kernel
def _join(state, profile, place):
    """Make one block of this one and the next if they are rather empty, so that no more than four blocks hold 64 steps."""
    if place + 1 >= state[BLOCKS]:
        return
    block, other = profile.order[place], profile.order[place + 1]
    count = profile.filled[block]
    if count + profile.filled[other] > STEPS_IN_BLOCK // 2:
        return
    for i in range(profile.filled[other]):
        profile.time[block * STEPS_IN_BLOCK + count + i] = profile.time[other * STEPS_IN_BLOCK + i]
        profile.free[block * STEPS_IN_BLOCK + count + i] = profile.free[other * STEPS_IN_BLOCK + i]
    profile.filled[block] += profile.filled[other]
    summarize(profile, block)
    drop_block(state, profile, place + 1)


@called_kernel
def new_block(state, profile, place):
    """Put an empty block at this place in the order of blocks, and return it."""
    for i in range(state[BLOCKS], place, -1):
        profile.order[i] = profile.order[i - 1]
    state[BLOCKS] += 1
    state[SPARE_BLOCKS] -= 1
    block = profile.spare[state[SPARE_BLOCKS]]
    profile.order[place] = block
    profile.filled[block] = 0
    return block


@kernel
def drop_block(state, profile, place):
    """Take the block at this place out of the order of blocks."""
    profile.spare[state[SPARE_BLOCKS]] = profile.order[place]
    state[SPARE_BLOCKS] += 1
    state[BLOCKS] -= 1
    for i in range(place, state[BLOCKS]):
        profile.order[i] = profile.order[i + 1]


@kernel
def summarize(profile, block):
    """Find the least and the most processors that are free in a block."""
    least = NEVER
    most = -1
    for i in range(block * STEPS_IN_BLOCK, block * STEPS_IN_BLOCK + profile.filled[block]):
        least = min(least, profile.free[i])
        most = max(most, profile.free[i])
    profile.least[block] = least
    profile.most[block] = most
