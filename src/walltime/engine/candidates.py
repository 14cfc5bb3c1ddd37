"""Which jobs may move in a compression; this saves conservative backfilling from trying every job at every early termination.

A job that has found no earlier hole can find one only after processors have been released: everything else (starts, arrivals, the
passing of time) only narrows the holes. An earlier hole either ends at the job's own reservation, which a look at the step before it
reveals, or lies entirely before it, and then it is new. So wherever processors are released, we measure how long the hole there is
now, and mark the jobs for which it is long enough now and was not before.

In a deep queue, a single compression asks dozens of times which jobs can use an opening, and usually there are none. Shelves therefore
tell first whether any waiting job has about the right size and length. Then three coarse numbers per job (Traits in plan.py), of which the
processor compares sixteen at once, narrow the choice, and only the jobs that pass are checked exactly. Coarse numbers preserve the
order of the exact ones, and shelves that of the coarse ones, so they may let too many jobs pass, but never too few.
"""

from __future__ import annotations

import numpy as np

from walltime.engine.jit import called_kernel, kernel
from walltime.engine.memory import NEVER
from walltime.engine.plan import CHUNK, FEW, NONE, SHELVES, SHORTEST


@kernel
def _coarse(number):
    """A number of at least 1 made coarse: its exponent and eleven bits of it as a float."""
    bits = np.int64(np.float32(number).view(np.int32))
    coarse = max((bits >> 12) - np.int64(127 << 11), np.int64(0))
    return np.uint16(min(coarse, np.int64(NONE)))


@kernel
def _coarse_time(slots, time):
    """A time made coarse, from 1 on; 0 is for nobody and NONE is left over."""
    return np.uint16(min((max(time - slots.since, 0) >> slots.shift) + 1, NONE - 1))


@kernel
def _exact_time(slots, coarse):
    """The earliest time that is made into this coarse one."""
    return slots.since + (np.int64(coarse - 1) << slots.shift)


@kernel
def _shelf(coarse, least):
    """Which of 64 shelves a coarse number belongs to, four to each power of two from the shelf `least` on."""
    return min(max((np.int64(coarse) >> 9) - least, np.int64(0)), np.int64(SHELVES - 1))


@called_kernel
def join(slots, waiting, traits, i):
    """Record the coarse traits of a job that has just received its first reservation."""
    traits.procs[i], traits.length[i] = _coarse(waiting[i].procs), _coarse(waiting[i].length)
    note_latest(slots, waiting, traits, i)
    row, column = _shelf(traits.procs[i], 0), _shelf(traits.length[i], SHORTEST)
    traits.shelf_jobs[row, column] += 1
    traits.shelf_lengths[row] |= np.uint64(1) << np.uint64(column)


@called_kernel
def part(traits, i):
    """Forget a job that starts."""
    row, column = _shelf(traits.procs[i], 0), _shelf(traits.length[i], SHORTEST)
    traits.shelf_jobs[row, column] -= 1
    if traits.shelf_jobs[row, column] == 0:
        traits.shelf_lengths[row] &= ~(np.uint64(1) << np.uint64(column))


@kernel
def note_latest(slots, waiting, traits, i):
    """Note how late a hole before the job's reservation may begin."""
    latest = _coarse_time(slots, waiting[i].start - waiting[i].length)
    traits.latest[i] = latest
    chunk = np.uint64(i) // np.uint64(CHUNK)
    traits.chunk_latest[chunk] = max(traits.chunk_latest[chunk], latest)


@called_kernel
def survey(slots, waiting, traits, count, now):
    """Bound the times of each chunk. If a time is too late to be distinguished from later ones, choose a new scale for all of them."""
    last = np.uint16(0)
    for first in range(np.uint64(0), np.uint64(count), np.uint64(CHUNK)):
        latest = np.uint16(0)
        for i in range(first, first + np.uint64(CHUNK)):
            latest = max(latest, traits.latest[i])
        traits.chunk_latest[first // np.uint64(CHUNK)] = latest
        last = max(last, latest)
    if last < NONE - 1:
        return
    end = now
    for i in range(count):
        end = max(end, waiting[i].start)
    slots.since, slots.shift = now, 0
    while (end - now) >> slots.shift > NONE // 2:
        slots.shift += 1
    for i in range(count):
        note_latest(slots, waiting, traits, i)
        if waiting[i].low < NEVER:
            low = _coarse_time(slots, waiting[i].low)
            waiting[i].low = _exact_time(slots, low)
            traits.latest[i] = min(traits.latest[i], np.uint16(low - 1))


@called_kernel
def give_back_until(slots, steps, waiting, traits, count, step, last, procs):
    """Release processors from one step up to another, and mark the jobs for which this opens a hole.

    `count`: so many jobs wait. A step that is opened lets the hole grow that it is in: for as many processors as are free there now,
    and for fewer the wider, until there were enough before.
    """
    turn = np.uint32(slots.turn + 1)
    slots.turn = turn
    while step != last:
        old = np.int64(steps[step].free)
        height = old + procs
        steps[step].free = height
        after = steps[step].next
        opened = steps[step].time
        left, right = step, after
        while height > old:
            if steps[left].free >= height:
                left = _wall(steps, turn, left)
            low = steps[left].next
            begin = steps[low].time
            while steps[right].free >= height:
                right = steps[right].next
            below = max(old, np.int64(steps[left].free), np.int64(steps[right].free))
            _mark(slots, waiting, traits, count, below, height, begin, steps[right].time, opened - begin, low)
            height = below
        step = after


@kernel
def _wall(steps, turn, step):
    """The nearest step before this one with fewer free processors."""
    if steps[step].turn == turn:
        return steps[step].wall
    free = steps[step].free
    wall = steps[step].previous
    while steps[wall].free >= free:
        wall = steps[wall].wall if steps[wall].turn == turn else steps[wall].previous
    steps[step].wall, steps[step].turn = wall, turn
    return wall


@kernel
def _mark(slots, waiting, traits, count, below, height, begin, end, before, low):
    """Mark the jobs of more processors than `below` and at most `height` for which there is a hole now, and was none.

    It begins with the step `low`, at `begin`, and lasts until `end`; its part of length `before` was there already, so that for
    a job that is not longer nothing earlier has opened. `low` of a job is set to a coarse time, which may be too early.
    """
    fewest, most = _coarse(below + 1), _coarse(height)
    shortest, longest = _coarse(before + 1), _coarse(end - begin)
    if _nobody_fits(traits, fewest, most, shortest, longest):
        return
    more, longer = np.uint16(most - fewest), np.uint16(longest - shortest)
    earliest = _coarse_time(slots, begin)
    for chunk in range(np.uint64(0), np.uint64(count), np.uint64(CHUNK)):
        if traits.chunk_latest[chunk // np.uint64(CHUNK)] < earliest:
            continue
        if not _somebody_may_fit(traits, chunk, np.uint64(CHUNK), earliest, fewest, more, shortest, longer):
            continue
        for few in range(chunk, chunk + np.uint64(CHUNK), np.uint64(FEW)):
            if _somebody_may_fit(traits, few, np.uint64(FEW), earliest, fewest, more, shortest, longer):
                for i in range(few, few + np.uint64(FEW)):
                    if _may_fit(traits, i, earliest, fewest, more, shortest, longer):
                        own = waiting[i]
                        fits = (below < own.procs) & (own.procs <= height) & (before < own.length)
                        if fits and own.length <= min(end, own.start) - begin:
                            own.low, own.low_step = _exact_time(slots, earliest), low
                            traits.latest[i] = earliest - 1


@kernel
def _nobody_fits(traits, fewest, most, shortest, longest):
    """Whether there is no waiting job on any of the shelves that lie within these bounds."""
    ones = np.uint64(0xFFFFFFFFFFFFFFFF)
    first, last = _shelf(shortest, SHORTEST), _shelf(longest, SHORTEST)
    lengths = (ones << np.uint64(first)) & (ones >> np.uint64(SHELVES - 1 - last))
    row, last_row = _shelf(fewest, 0), _shelf(most, 0)
    while traits.shelf_lengths[row] & lengths == 0:
        if row == last_row:
            return True
        row += 1
    return False


@kernel
def _somebody_may_fit(traits, first, count, earliest, fewest, more, shortest, longer):
    """Whether any of so many jobs may be one to be marked; asked without branches, so that they are compared all at once."""
    found = False
    for i in range(first, first + count):
        found |= _may_fit(traits, i, earliest, fewest, more, shortest, longer)
    return found


@kernel
def _may_fit(traits, i, earliest, fewest, more, shortest, longer):
    """Whether a job may be one to be marked, by its coarse traits; below 0 a difference wraps around and is too large."""
    procs, length = np.int64(traits.procs[i]) - np.int64(fewest), np.int64(traits.length[i]) - np.int64(shortest)
    return (np.uint16(procs) <= more) & (np.uint16(length) <= longer) & (traits.latest[i] >= earliest)
