"""Compiled functions shared by several predictors: the history of a key, and its percentiles."""

from __future__ import annotations

from walltime.compiled.jit import kernel


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
    """Add a place to the counts of a key's Fenwick tree, or remove it.

    The jobs of a key have places 1, 2, ... in order of their values, and the tree counts the occupied places; so adding a job,
    dropping one, and finding the n-th smallest value take logarithmic time.
    """
    while place <= size:
        marks[first + place - 1] += change
        place += place & -place


@kernel
def place_of_rank(marks, first, size, rank):
    """Return the place (from 0) of the given rank (from 1) among the occupied places of a key."""
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
