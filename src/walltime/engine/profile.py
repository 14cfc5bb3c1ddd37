"""The profile: free processors over future time, as a step function (P2 section 2.1).

A step holds from its time until the next one's; the first one begins now, the last holds for ever with all processors free.
The steps are linked in order of time, so that a place in the profile, once found, stays where it is: a step goes only when no
place begins or ends with it any more (`edges` counts these), and neighbours need not differ.

The links are cut into blocks of at most 32 steps, linked as well. Each block knows bounds of the least and the most processors
that are free in it, so that a search passes over a block that is too full, or free all along, with one look. Bounds that
changes have made loose (`loose`) are made exact when a search cannot pass over the block.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walltime.engine.jit import called_kernel, kernel

NEVER = np.iinfo(np.int64).max
STEPS_IN_BLOCK = 32
"""The most steps that a block holds."""

def _dtype(fields: str) -> np.dtype[np.void]:
    return np.dtype([(name, np.int64) for name in fields.split()])


HEAD = _dtype("first spare used spare_block blocks_used")
"""The first step; the first unused one that has been used before, and how many have been used; the same of blocks."""
STEP = _dtype("time free next previous edges block")
BLOCK = _dtype("time least most first next previous count loose")


BORDER = 0
"""The slot before the first and behind the last step, and block: at no time, and with no processor free."""


class Profile(NamedTuple):
    """A profile: one record of HEAD, and records of STEP and of BLOCK."""

    head: Any
    steps: Any
    blocks: Any


def new_profile(jobs: int) -> Profile:
    """Room for the places of so many jobs; nothing is in it before `profile_of_running`."""
    size = 2 * jobs + 4
    return Profile(np.zeros(1, HEAD).view(np.recarray)[0], np.zeros(size, STEP).view(np.recarray), np.zeros(size, BLOCK).view(np.recarray))


@called_kernel
def profile_of_running(profile, steps, blocks, running, count, now, free):
    """Make the profile afresh from the running jobs; one that is overdue is held to end in a second (SPEC Q-28)."""
    profile.used, profile.blocks_used = 1, 1
    profile.spare, profile.spare_block = BORDER, BORDER
    steps[BORDER].time = NEVER
    steps[BORDER].free = -1
    steps[BORDER].next = BORDER
    steps[BORDER].previous = BORDER
    steps[BORDER].block = BORDER
    blocks[BORDER].time = NEVER
    blocks[BORDER].first = BORDER
    blocks[BORDER].next = BORDER
    blocks[BORDER].previous = BORDER
    block = new_block(profile, blocks, blocks[BORDER].next)
    blocks[block].first = block
    blocks[block].time = now
    last = insert(profile, steps, blocks, steps[BORDER].next, block, now, free)
    profile.first = last
    for i in range(count):
        end = max(running[i].expected, now + 1)
        free += running[i].procs
        if end > steps[last].time:
            last = insert(profile, steps, blocks, last, steps[last].block, end, free)
        else:
            steps[last].free = free
            blocks[steps[last].block].most = max(blocks[steps[last].block].most, free)
            blocks[steps[last].block].loose = 1
        steps[last].edges += 1


@called_kernel
def hole_from(steps, blocks, block, procs, length, reserved, latest):
    """The step with which the earliest hole begins that goes on in this block or begins later: for so many processors, for so long.

    From `reserved` on the job's own processors are enough. Returns -1 if there is none that begins before `latest`.
    """
    begin = blocks[block].first
    in_hole = steps[begin].free >= procs
    while in_hole and steps[steps[begin].previous].free >= procs:
        begin = steps[begin].previous
    end = min(steps[begin].time + length, reserved)
    while block != BORDER:
        of = blocks[block]
        after = blocks[of.next]
        if in_hole and of.time >= end:
            return begin
        if not in_hole and of.time >= latest:
            return -1
        if of.loose and (of.most >= procs and of.least < procs):
            tighten(steps, of, after.first)
        if (in_hole and of.least < procs) or (not in_hole and of.most >= procs):
            step = of.first
            while step != after.first:
                if in_hole:
                    if steps[step].time >= end:
                        return begin
                    in_hole = steps[step].free >= procs
                elif steps[step].free >= procs:
                    begin = step
                    if steps[step].time >= latest:
                        return -1
                    end = min(steps[step].time + length, reserved)
                    in_hole = True
                step = steps[step].next
        block = of.next
    return begin if in_hole else -1


@kernel
def fits_now(profile, steps, length, procs):
    """Whether so many processors stay free for so long from now on."""
    step = profile.first
    end = steps[step].time + length
    while steps[step].free >= procs and steps[step].time < end:
        step = steps[step].next
    return steps[step].time >= end


@called_kernel
def reserve(profile, steps, blocks, begin, length, procs):
    """Take processors from the beginning of a step on for so long; returns the step with which the place ends."""
    end = take_until(profile, steps, blocks, begin, steps[begin].time + length, procs)
    steps[begin].edges += 1
    steps[end].edges += 1
    return end


@called_kernel
def take_until(profile, steps, blocks, step, end, procs):
    """Take processors from this step on until a time; returns the step that begins then, which is a new one if need be."""
    while steps[step].time < end:
        free = steps[step].free - procs
        steps[step].free = free
        block = blocks[steps[step].block]
        block.least = min(block.least, free)
        block.loose = 1
        step = steps[step].next
    if steps[step].time > end:
        before = steps[step].previous
        step = insert(profile, steps, blocks, before, steps[before].block, end, steps[before].free + procs)
    return step


@called_kernel
def step_at(profile, steps, blocks, step, time):
    """The step that begins at a time, made if need be, at or behind a step that begins before."""
    while steps[step].time < time:
        step = steps[step].next
    if steps[step].time > time:
        before = steps[step].previous
        step = insert(profile, steps, blocks, before, steps[before].block, time, steps[before].free)
    return step


@kernel
def leave(profile, steps, blocks, step):
    """A place no longer begins or ends with this step, which goes if no other one does."""
    steps[step].edges -= 1
    if steps[step].edges == 0 and step != profile.first:
        remove(profile, steps, blocks, step)


@called_kernel
def forget_past(profile, steps, blocks, now):
    """Drop the steps that ended by now; the first one begins now."""
    first = profile.first
    after = steps[first].next
    while steps[after].time <= now:
        remove(profile, steps, blocks, first)
        first = after
        after = steps[first].next
    profile.first = first
    steps[first].time = now
    blocks[steps[first].block].time = now


@called_kernel
def insert(profile, steps, blocks, before, number, time, free):
    """Put a step behind another one, into this block, which is cut in two if it is full; returns its slot."""
    slot = profile.spare
    if slot != BORDER:
        profile.spare = steps[slot].next
    else:
        slot = profile.used
        profile.used += 1
    after = steps[before].next
    steps[slot].time = time
    steps[slot].free = free
    steps[slot].next = after
    steps[slot].previous = before
    steps[slot].edges = 0
    steps[slot].block = number
    steps[before].next = slot
    steps[after].previous = slot
    block = blocks[number]
    block.count += 1
    block.least = min(block.least, free)
    block.most = max(block.most, free)
    if block.count == STEPS_IN_BLOCK:
        half = block.first
        for _ in range(STEPS_IN_BLOCK // 2):
            half = steps[half].next
        upper = new_block(profile, blocks, number)
        other = blocks[upper]
        other.first = half
        other.time = steps[half].time
        other.count = STEPS_IN_BLOCK - STEPS_IN_BLOCK // 2
        other.least = block.least
        other.most = block.most
        other.loose = 1
        block.count = STEPS_IN_BLOCK // 2
        block.loose = 1
        stop = blocks[other.next].first
        while half != stop:
            steps[half].block = upper
            half = steps[half].next
    return slot


@called_kernel
def remove(profile, steps, blocks, slot):
    """Take a step out; its block goes with its last step, and takes in the next one's steps when both have few."""
    before, after = steps[slot].previous, steps[slot].next
    number = steps[slot].block
    block = blocks[number]
    steps[before].next = after
    steps[after].previous = before
    steps[slot].next = profile.spare
    profile.spare = slot
    block.count -= 1
    block.loose = 1
    if block.count == 0:
        drop_block(profile, blocks, number)
    elif block.first == slot:
        block.first = after
        block.time = steps[after].time
    follower = block.next
    if 0 < block.count and follower != BORDER and block.count + blocks[follower].count <= STEPS_IN_BLOCK // 2:
        other = blocks[follower]
        step, stop = other.first, blocks[other.next].first
        while step != stop:
            steps[step].block = number
            step = steps[step].next
        block.count += other.count
        block.least = min(block.least, other.least)
        block.most = max(block.most, other.most)
        drop_block(profile, blocks, follower)


@kernel
def new_block(profile, blocks, before):
    """Put an empty block behind another one; returns its number."""
    number = profile.spare_block
    if number != BORDER:
        profile.spare_block = blocks[number].next
    else:
        number = profile.blocks_used
        profile.blocks_used += 1
    after = blocks[before].next
    blocks[number].next = after
    blocks[number].previous = before
    blocks[number].count = 0
    blocks[number].least = NEVER
    blocks[number].most = -1
    blocks[number].loose = 0
    blocks[before].next = number
    blocks[after].previous = number
    return number


@kernel
def drop_block(profile, blocks, number):
    """Take a block out."""
    before, after = blocks[number].previous, blocks[number].next
    blocks[before].next = after
    blocks[after].previous = before
    blocks[number].next = profile.spare_block
    profile.spare_block = number


@kernel
def tighten(steps, block, stop):
    """Find the least and the most processors that are free in a block whose steps end before `stop`."""
    least, most = NEVER, -1
    step = block.first
    while step != stop:
        least = min(least, steps[step].free)
        most = max(most, steps[step].free)
        step = steps[step].next
    block.least = least
    block.most = most
    block.loose = 0
