"""Sets of free nodes, or of free processors, over future time: a list of slots, each with a set, which every pass makes again.

Slot 0 is the first; row k of `free` is the set of slot k. `counts.slots` is the number of slots in use.
"""

from walltime.compiled.jit import kernel
from walltime.compiled.records import record_dtype
from walltime.engine.kernel.bits import count_bits

SLOT = record_dtype("begin end next")
"""Seconds [begin, end], and the slot after it, -1 for none."""


@kernel
def first_slot(slots, free, found, among, needed, length):
    """Return the first slot from which enough of the same members of `among` stay free for a length, and write them to `found`."""
    slot = 0
    while not fits_from(slots, free, found, among, slot, needed, length):
        slot = slots[slot].next
    return slot


@kernel
def fits_from(slots, free, found, among, slot, needed, length):
    """Return whether enough of the same members of `among` are free for a length from the beginning of a slot; write them to `found`."""
    last = slots[slot].begin + length - 1
    copy_set(found, among)
    while True:
        enough = 0
        for w in range(len(found)):
            found[w] &= free[slot, w]
            enough += count_bits(found[w])
        if enough < needed or slots[slot].end >= last:
            return enough >= needed
        slot = slots[slot].next


@kernel
def take_from(counts, slots, free, slot, last, members):
    """Take a set out of a slot and the following slots, until a time."""
    while slot >= 0 and slots[slot].begin <= last:
        take(counts, slots, free, slot, last, members)
        slot = slots[slot].next


@kernel
def take(counts, slots, free, slot, last, members):
    """Take a set out of a slot until a time; a slot that ends later is divided."""
    if last < slots[slot].end:
        divide(counts, slots, free, slot, last + 1)
    for w in range(len(members)):
        free[slot, w] &= ~members[w]


@kernel
def divide(counts, slots, free, slot, begin):
    """Divide a slot: its second part begins at a time."""
    new = counts.slots
    counts.slots += 1
    slots[new].begin, slots[new].end, slots[new].next = begin, slots[slot].end, slots[slot].next
    copy_set(free[new], free[slot])
    slots[slot].end, slots[slot].next = begin - 1, new


@kernel
def copy_set(members, source):
    """Make a set equal to another."""
    for w in range(len(source)):
        members[w] = source[w]


@kernel
def keep_first(members, count):
    """Leave only the first `count` members in a set."""
    for w in range(len(members)):
        if count_bits(members[w]) <= count:
            count -= count_bits(members[w])
            continue
        kept = 0
        while count > 0:
            lowest = members[w] & -members[w]
            kept |= lowest
            members[w] ^= lowest
            count -= 1
        members[w] = kept
