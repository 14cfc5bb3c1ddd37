"""Sets of nodes, or of other numbered items, and small numbers for each node, as bits: 64 nodes per word.

A set is an array of int64 words; node n is bit n % 64 of word n // 64. Small numbers by node, such as its free processors, are *planes*: an
array of shape (planes, words), whose plane k has bit k of every node's number. A sum over a set thus counts the bits of each plane, and a
number is added to many nodes at once as on paper, with carries. The nodes of a job are stored as *ranges*: records with the fields `node`,
`count`, `procs` and `second`, for consecutive nodes with the same amounts.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import types
from numba.extending import intrinsic

from walltime.compiled.jit import kernel

WORD = 64
"""Number of nodes per word."""
_config: Any = numba.config

if _config.DISABLE_JIT:

    def count_bits(word: Any) -> int:
        """Return the number of bits that are set."""
        return (int(word) & (2**WORD - 1)).bit_count()

    def lowest_bit(word: Any) -> int:
        """Return the position of the lowest bit that is set in a word, which is not 0."""
        return (int(word) & -int(word)).bit_length() - 1

else:

    @intrinsic
    def count_bits(context: Any, word: Any) -> Any:
        """Return how many bits are set."""
        return types.int64(types.int64), lambda context, builder, signature, arguments: builder.ctpop(arguments[0])

    @intrinsic
    def lowest_bit(context: Any, word: Any) -> Any:
        """Return the position of the lowest bit that is set in a word, which is not 0."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

        return types.int64(types.int64), generate


@kernel
def ones(word, first, end):
    """Return the bits of a word of a set that belong to the nodes [first, end)."""
    above = max(first - word * WORD, 0)
    below = end - word * WORD
    bits = -1 << above
    return bits if below >= WORD else bits & ~(-1 << below)


@kernel
def words_of(first, end):
    """Return the words of the nodes [first, end)."""
    return range(first // WORD, (end - 1) // WORD + 1)


@kernel
def next_member(members, node, end, inside):
    """Return the first node in [node, end) that is in a set, or with `inside` 0 is not in it; `end` if there is none."""
    flip = 0 if inside else -1
    while node < end:
        word = node // WORD
        rest = (members[word] ^ flip) & (-1 << (node - word * WORD))
        if rest != 0:
            return min(word * WORD + lowest_bit(rest), end)
        node = (word + 1) * WORD
    return end


@kernel
def include(members, node):
    """Add a node to a set."""
    members[node // WORD] |= 1 << (node % WORD)


@kernel
def exclude(members, node):
    """Remove a node from a set."""
    members[node // WORD] &= ~(1 << (node % WORD))


@kernel
def number_of(planes, first_plane, last_plane, node):
    """Return the number stored for a node in the planes [first_plane, last_plane)."""
    number = 0
    for k in range(first_plane, last_plane):
        number += ((planes[k, node // WORD] >> (node % WORD)) & 1) << (k - first_plane)
    return number


@kernel
def any_of(planes, last_plane, word):
    """Return the nodes of a word whose number in the planes before `last_plane` is not 0."""
    some = planes[0, word]
    for k in range(1, last_plane):
        some |= planes[k, word]
    return some


@kernel
def total_of(planes, first_plane, last_plane, members):
    """Return the sum of the numbers stored for the nodes of a set."""
    total = 0
    for k in range(first_plane, last_plane):
        count = 0
        for w in range(len(members)):
            count += count_bits(planes[k, w] & members[w])
        total += count << (k - first_plane)
    return total


@kernel
def total_between(planes, first_plane, last_plane, first, end):
    """Return the sum of the numbers stored for the nodes [first, end)."""
    total = 0
    for k in range(first_plane, last_plane):
        count = 0
        for w in words_of(first, end):
            count += count_bits(planes[k, w] & ones(w, first, end))
        total += count << (k - first_plane)
    return total


@kernel
def count_between(members, first, end):
    """Return how many of the nodes [first, end) are in a set."""
    count = 0
    for w in words_of(first, end):
        count += count_bits(members[w] & ones(w, first, end))
    return count


@kernel
def add_in_planes(planes, first_plane, last_plane, word, bits, number, sign):
    """Add a number to the numbers of some nodes of a word (sign 1), or subtract it (sign -1)."""
    carry = 0
    for k in range(first_plane, last_plane):
        old, other = planes[k, word], bits if (number >> (k - first_plane)) & 1 else 0
        planes[k, word] = old ^ other ^ carry
        if sign < 0:
            old = ~old
        carry = (old & (other | carry)) | (other & carry)


@kernel
def take_less(planes, first_plane, end_plane, other, other_plane, word):
    """Replace the numbers of the nodes of a word by those in other planes, from `other_plane` on, where the latter are smaller."""
    less, equal = 0, -1
    for k in range(end_plane - 1, first_plane - 1, -1):
        theirs = other[other_plane + k - first_plane, word]
        less |= equal & ~theirs & planes[k, word]
        equal &= ~(theirs ^ planes[k, word])
    for k in range(first_plane, end_plane):
        planes[k, word] = (other[other_plane + k - first_plane, word] & less) | (planes[k, word] & ~less)


@kernel
def size_of(members):
    """Return the number of nodes in a set."""
    count = 0
    for w in range(len(members)):
        count += count_bits(members[w])
    return count


@kernel
def mark(members, ranges, count):
    """Make a set of the nodes of the first `count` ranges."""
    for w in range(len(members)):
        members[w] = 0
    for r in range(count):
        for w in words_of(ranges[r].node, ranges[r].node + ranges[r].count):
            members[w] |= ones(w, ranges[r].node, ranges[r].node + ranges[r].count)
