"""Who may move in a compression: what keeps conservative backfilling from trying every job at every early end.

A job that has found no earlier place can only find one later if processors have been given back since: all else that happens,
starts and arrivals and the passing of time, only narrows the holes. An earlier place either reaches the job's own place, which
a look at the step before it tells; or it is a whole hole before it, and then one that was not there before. So where processors are
given back, we look how far the hole there extends, and mark the jobs for which it is long enough now and was not before.

In a deep queue this asks tens of times in a compression for whom an opening is of use, and the answer is mostly: for nobody. So
what tells is kept for each job in four coarse numbers (Traits in plan.py), which the processor compares for sixteen jobs at once;
who passes is looked at closely. Coarse numbers keep the order of exact ones, so that they let too many jobs pass, but never too few.
"""

from __future__ import annotations

import numpy as np

from walltime.engine.jit import called_kernel, kernel
from walltime.engine.plan import CHUNK, NEVER, NONE


@kernel
def _coarse(number):
    """A number made coarse: its exponent and eleven bits of it as a float."""
    bits = np.int64(np.float32(number).view(np.int32))
    coarse = max((bits >> 12) - np.int64(127 << 11), np.int64(0))
    return np.uint16(min(coarse, np.int64(NONE)))


@kernel
def _coarse_time(slots, time):
    """A time made coarse; NONE is left over."""
    return np.uint16(min(max(time - slots.since, 0) >> slots.shift, NONE - 1))


@called_kernel
def set_traits(slots, waiting, traits, i):
    """Note what tells for whom an opening may be of use."""
    own = waiting[i]
    latest = own.start - own.length
    traits.procs[i], traits.length[i] = _coarse(own.procs), _coarse(own.length)
    traits.latest[i], traits.low[i] = _coarse_time(slots, latest), NONE
    chunk = np.uint64(i) // np.uint64(CHUNK)
    traits.chunk_latest[chunk] = max(traits.chunk_latest[chunk], traits.latest[i])


@called_kernel
def survey(slots, waiting, traits, count, now):
    """Bound the times of each chunk. If one is too late to be told from later ones, make all of them coarse anew."""
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
        traits.latest[i] = _coarse_time(slots, waiting[i].start - waiting[i].length)
        chunk = np.uint64(i) // np.uint64(CHUNK)
        traits.chunk_latest[chunk] = max(traits.chunk_latest[chunk] if i % CHUNK > 0 else np.uint16(0), traits.latest[i])
        if waiting[i].low < NEVER:
            traits.low[i] = _coarse_time(slots, waiting[i].low)
            waiting[i].low = now + (np.int64(traits.low[i]) << slots.shift)


@called_kernel
def give_back_until(slots, steps, waiting, traits, count, step, last, procs):
    """Give processors back from one step up to another, and mark for whom they open a hole.

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


@called_kernel
def _mark(slots, waiting, traits, count, below, height, begin, end, before, low):
    """Mark the jobs of more processors than `below` and at most `height` for which there is a hole now, and was none.

    It begins with the step `low`, at `begin`, and lasts until `end`; its part of length `before` was there already, so that for
    a job that is not longer nothing earlier has opened. `low` of a job is put down to a coarse time, which may be too early.
    """
    earliest, fewest, most = _coarse_time(slots, begin), _coarse(below + 1), _coarse(height)
    shortest, longest = _coarse(before + 1), _coarse(end - begin)
    for first in range(np.uint64(0), np.uint64(count), np.uint64(CHUNK)):
        if traits.chunk_latest[first // np.uint64(CHUNK)] < earliest:
            continue
        found = False
        for i in range(first, first + np.uint64(CHUNK)):
            found |= _may_fit(traits, i, earliest, fewest, most, shortest, longest)
        if found:
            for i in range(first, min(first + np.uint64(CHUNK), np.uint64(count))):
                if _may_fit(traits, i, earliest, fewest, most, shortest, longest):
                    own = waiting[i]
                    fits = (below < own.procs) & (own.procs <= height) & (before < own.length)
                    if fits and own.length <= min(end, own.start) - begin:
                        own.low, own.low_step = slots.since + (np.int64(earliest) << slots.shift), low
                        traits.low[i] = earliest


@kernel
def _may_fit(traits, i, earliest, fewest, most, shortest, longest):
    """Whether a job may be one to be marked, by its coarse traits."""
    procs, length = traits.procs[i], traits.length[i]
    fits = (procs >= fewest) & (procs <= most) & (length >= shortest) & (length <= longest)
    return fits & (traits.latest[i] >= earliest) & (traits.low[i] > earliest)
