"""Where a compression may find new holes: what keeps conservative backfilling from trying every job at every early end.

A job that could not move in the last compression can only move now if processors that were too few for it have been enough
since then, somewhere before its reservation: all else that happens, starts and arrivals and the passing of time, only
narrows the holes. So for each size class of jobs we note between which times that has been so.
"""

from __future__ import annotations

from walltime.engine.index import size_class
from walltime.engine.jit import called_kernel, kernel
from walltime.engine.profile import NEVER


@kernel
def begin_compression(openings):
    """What has been given back since the last compression began is what this one can use.

    What it gives back itself counts for it too, and for the next one, since jobs that it has already looked at may use it
    then.
    """
    for number in range(openings.size):
        openings[number].begin = openings[number].next_begin
        openings[number].end = openings[number].next_end
    nothing_opened(openings)


@kernel
def nothing_opened(openings):
    """Nothing has been given back that the next compression could use."""
    for number in range(openings.size):
        openings[number].next_begin = NEVER
        openings[number].next_end = -1


@called_kernel
def give_back_until(steps, blocks, openings, step, last, procs):
    """Give processors back from one step up to another, and note for whom they are enough now and were not before."""
    while step != last:
        free, begin, after = steps[step].free, steps[step].time, steps[step].next
        end = steps[after].time
        steps[step].free = free + procs
        block = blocks[steps[step].block]
        block.most = max(block.most, free + procs)
        block.loose = 1
        for number in range(size_class(free + 1), size_class(free + procs) + 1):
            opening = openings[number]
            opening.begin = min(opening.begin, begin)
            opening.end = max(opening.end, end)
            opening.next_begin = min(opening.next_begin, begin)
            opening.next_end = max(opening.next_end, end)
        step = after
