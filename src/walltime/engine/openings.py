"""Where a compression may find new holes: what keeps conservative backfilling from trying every job at every early end.

A job that could not move in the last compression can only move now if processors that were too few for it have been enough
since then, somewhere before its reservation: all else that happens, starts and arrivals and the passing of time, only
narrows the holes. So for each size class of jobs we note between which times that has been so.
"""

from __future__ import annotations

from walltime.engine.jit import kernel
from walltime.engine.memory import NEVER
from walltime.engine.sizes import size_class


@kernel
def begin_compression(openings):
    """What has been given back since the last compression began is what this one can use.

    What it gives back itself counts for it too, and for the next one, since jobs that it has already looked at may use it
    then.
    """
    for number in range(openings.begin.size):
        openings.begin[number] = openings.next_begin[number]
        openings.end[number] = openings.next_end[number]
    nothing_opened(openings)


@kernel
def nothing_opened(openings):
    """Nothing has been given back that the next compression could use."""
    for number in range(openings.begin.size):
        openings.next_begin[number] = NEVER
        openings.next_end[number] = -1


@kernel
def note_opening(openings, begin, end, smallest, largest):
    """Note that from `begin` until `end` jobs of these sizes find enough processors now, and did not before."""
    for number in range(size_class(smallest), size_class(largest) + 1):
        openings.begin[number] = min(openings.begin[number], begin)
        openings.end[number] = max(openings.end[number], end)
        openings.next_begin[number] = min(openings.next_begin[number], begin)
        openings.next_end[number] = max(openings.next_end[number], end)
