"""Compiled pieces that several predictors share: the history of a key, and percentiles of it."""

from __future__ import annotations

from walltime.engine.jit import kernel


def observe_by_key(learning, job, now):
    """Append a job that has ended to the history of its key."""
    key = learning.key[job, 0]
    if key >= 0:
        append(learning, key, job)
    return 0


@kernel
def append(learning, key, job):
    """Append a job that has ended to the history of this key."""
    history = learning.keys[key]
    learning.fifo[history.first + history.ended] = job
    history.ended += 1


@kernel
def count(marks, first, size, place, change):
    """Count a place of a key's Fenwick tree in, or out.

    The jobs of a key have places 1, 2, ... in the order of their values, and the tree counts which of these places are taken; so adding
    a job, dropping one, and finding the n-th smallest value take a few steps each.
    """
    while place <= size:
        marks[first + place - 1] += change
        place += place & -place


@kernel
def place_of_rank(marks, first, size, rank):
    """The place, from 0, that has this rank, counted from 1, among the places of a key that are taken."""
    step = 1
    while 2 * step <= size:
        step *= 2
    place = 0
    while step > 0:
        if place + step <= size and marks[first + place + step - 1] < rank:
            place += step
            rank -= marks[first + place - 1]
        step //= 2
    return place
