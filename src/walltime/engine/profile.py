"""The profile: free processors over future time, as a step function (P2 section 2.1).

Step i holds from its time until the next one's; the last holds for ever, and all processors are free then. Neighbouring
steps differ, and the first one covers the present.

Mostly there are few steps, and they lie in one array, from slot `first` on. Where there are more than 64, they are cut into
blocks: blocks.py.
"""

from __future__ import annotations

from walltime.engine.blocks import drop_block, first_hole_among_blocks, new_block, occupy_among_blocks, summarize
from walltime.engine.jit import kernel
from walltime.engine.memory import BLOCKS, FREE, NEVER, NOW, RUNNING, SPARE_BLOCKS, STEPS_IN_BLOCK
from walltime.engine.openings import note_opening


@kernel
def first_hole(memory, believed, procs, reservation, latest):
    """The anchor point: earliest time from now on at which so many processors stay free for so long (P2 section 2.1, step 1).

    `reservation` is the job's own, NEVER if it has none: from then on its own processors are enough, and where there is no
    earlier hole, this is the answer. Holes that begin at `latest` or later are not looked for.
    """
    state, profile = memory.state, memory.profile
    start = state[NOW]
    latest = min(latest, reservation)
    if state[BLOCKS] > 1:
        return first_hole_among_blocks(state, profile, start, believed, procs, reservation, latest)
    first = profile.order[0] * STEPS_IN_BLOCK
    last = first + profile.filled[profile.order[0]] - 1
    end = min(start + believed, reservation)
    for i in range(first, last):  # in the last step all processors are free
        if profile.time[i] >= end:
            return start
        if profile.free[i] < procs:
            start = profile.time[i + 1]
            if start >= latest:
                return reservation
            end = min(start + believed, reservation)
    return start


@kernel
def fits_now(memory, believed, procs):
    """Whether so many processors stay free for so long from now on."""
    return first_hole(memory, believed, procs, NEVER, memory.state[NOW] + 1) == memory.state[NOW]


@kernel
def occupy(memory, begin, end, procs):
    """Take processors (give back, if negative) in [begin, end), which does not begin before the first step."""
    state, profile = memory.state, memory.profile
    if begin >= end:
        return
    block = profile.order[0]
    if state[BLOCKS] > 1 or profile.filled[block] + 2 > STEPS_IN_BLOCK:
        occupy_among_blocks(state, profile, memory.openings, begin, end, procs)
        return
    first = _step_at(profile, begin)
    last = _step_at(profile, end)
    for i in range(first, last):
        free = profile.free[i]
        profile.free[i] = free - procs
        if procs < 0:
            note_opening(memory.openings, profile.time[i], profile.time[i + 1], free + 1, free - procs)
    _merge(profile, last)
    _merge(profile, first)


@kernel
def profile_of_running(jobs, memory):
    """Make the profile afresh from the running jobs; one that is overdue is held to end in a second (SPEC Q-28)."""
    state, profile = memory.state, memory.profile
    for place in range(state[BLOCKS]):
        profile.spare[state[SPARE_BLOCKS]] = profile.order[place]
        state[SPARE_BLOCKS] += 1
    state[BLOCKS] = 0
    block = new_block(state, profile, 0)
    time, free = state[NOW], state[FREE]
    for i in range(state[RUNNING] + 1):
        end = max(memory.running_expected[i], state[NOW] + 1) if i < state[RUNNING] else NEVER
        if time < end:
            if profile.filled[block] == STEPS_IN_BLOCK:
                summarize(profile, block)
                block = new_block(state, profile, state[BLOCKS])
            slot = block * STEPS_IN_BLOCK + profile.filled[block]
            profile.time[slot] = time
            profile.free[slot] = free
            profile.filled[block] += 1
            time = end
        if i < state[RUNNING]:
            free += jobs.procs[memory.running_job[i]]
    summarize(profile, block)


@kernel
def forget_past(memory):
    """Drop the steps that ended by now."""
    state, profile = memory.state, memory.profile
    while state[BLOCKS] > 1 and profile.time[profile.order[1] * STEPS_IN_BLOCK] <= state[NOW]:
        drop_block(state, profile, 0)
    block = profile.order[0]
    first = block * STEPS_IN_BLOCK
    past, count = 0, profile.filled[block]
    while past + 1 < count and profile.time[first + past + 1] <= state[NOW]:
        past += 1
    if past > 0:
        for i in range(first, first + count - past):
            profile.time[i] = profile.time[i + past]
            profile.free[i] = profile.free[i + past]
        profile.filled[block] -= past


@kernel
def _step_at(profile, when):
    """Slot of the step that begins at this time, after splitting one if need be."""
    block = profile.order[0]
    slot = block * STEPS_IN_BLOCK
    end = slot + profile.filled[block]
    while slot < end and profile.time[slot] < when:
        slot += 1
    if slot < end and profile.time[slot] == when:
        return slot
    for i in range(end, slot, -1):
        profile.time[i] = profile.time[i - 1]
        profile.free[i] = profile.free[i - 1]
    profile.time[slot] = when
    profile.free[slot] = profile.free[slot - 1]
    profile.filled[block] += 1
    return slot


@kernel
def _merge(profile, slot):
    """Drop a step that does not differ from the one before it."""
    block = profile.order[0]
    first = block * STEPS_IN_BLOCK
    if slot > first and profile.free[slot] == profile.free[slot - 1]:
        for i in range(slot, first + profile.filled[block] - 1):
            profile.time[i] = profile.time[i + 1]
            profile.free[i] = profile.free[i + 1]
        profile.filled[block] -= 1
