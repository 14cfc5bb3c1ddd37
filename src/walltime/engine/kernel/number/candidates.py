"""Jobs that may move in a compression, so that conservative backfilling need not try every job at every early termination.

After a failed search, a job can find an earlier gap only once processors have been released: starts, arrivals and the passing of time only
narrow the gaps. An earlier gap either ends at the job's own reservation, which the step before the reservation shows, or it lies entirely
before the reservation, and then it is new. So wherever processors are released, we measure how many are free there and for how long, and
mark the jobs that fit and have a later reservation. A job that already fitted has already been tried.

In a deep queue, a single compression searches dozens of times for jobs that can use a freed gap, and usually finds none. First, *shelves*
show whether any waiting job of about this size and length, or below, has a sufficiently late reservation. Then three coarse numbers per job
(Traits in plan.py), sixteen of them compared at a time, narrow the choice, and only the remaining jobs are checked exactly. Coarse numbers
keep the order of the exact numbers, and shelves keep the order of the coarse numbers, so both tests may let too many jobs pass, but never
too few.
"""

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.memory import NEVER
from walltime.engine.kernel.plan import CHUNK, COLUMNS, FEW, LOOKS, NONE, ROWS, SHORTEST


@kernel
def _coarse(number):
    """Return a coarse form of a number of at least 1: its exponent and the first eleven bits of its mantissa, as in a float."""
    bits = np.int64(np.float32(number).view(np.int32))
    coarse = max((bits >> 12) - np.int64(127 << 11), np.int64(0))
    return np.uint16(min(coarse, np.int64(NONE)))


@kernel
def _coarse_time(slots, time):
    """Return a coarse time, at least 1; 0 stands for no job, and NONE is never used."""
    return np.uint16(min((max(time - slots.since, 0) >> slots.shift) + 1, NONE - 1))


@kernel
def _exact_time(slots, coarse):
    """Return the earliest time that has this coarse form."""
    return slots.since + (np.int64(coarse - 1) << slots.shift)


@kernel
def _row(procs):
    """Return the row of shelves for a coarse number of processors: two rows for each power of two."""
    return np.uint64(min(np.int64(procs) >> 10, np.int64(ROWS - 1)))


@kernel
def _column(length):
    """Return the column of shelves for a coarse length: four columns for each power of two."""
    return np.uint64(min(max((np.int64(length) >> 9) - SHORTEST, np.int64(0)), np.int64(COLUMNS - 1)))


@called_kernel
def join(plan, i):
    """Record the coarse traits of a job that has just received its first reservation."""
    _, _, waiting, traits = plan
    traits.procs[i], traits.length[i] = _coarse(waiting[i].procs), _coarse(waiting[i].length)
    note_latest(plan, i)


@kernel
def note_latest(plan, i):
    """Record how late a gap before the job's reservation may begin."""
    slots, _, waiting, traits = plan
    latest = _coarse_time(slots, waiting[i].start - waiting[i].length)
    traits.latest[i] = latest
    chunk = np.uint64(i) // np.uint64(CHUNK)
    traits.chunk_latest[chunk] = max(traits.chunk_latest[chunk], latest)
    if traits.shelves[_row(traits.procs[i]), _column(traits.length[i])] < latest:
        _shelve(traits.shelves, _row(traits.procs[i]), _column(traits.length[i]), latest)


@called_kernel
def _shelve(shelves, first_row, first_column, latest):
    """Raise the bounds of all shelves to which a job of this size and length belongs; bounds grow with the row and the column."""
    for row in range(first_row, np.uint64(ROWS)):
        if shelves[row, first_column] >= latest:
            break
        for column in range(first_column, np.uint64(COLUMNS)):
            shelves[row, column] = max(shelves[row, column], latest)


@called_kernel
def survey(plan, count, now):
    """Update the latest times of each chunk, and from time to time lower the bounds of the shelves as far as possible.

    If a time is too late to be distinguished from later ones, choose a new scale for all times.
    """
    slots, _, waiting, traits = plan
    last = np.uint16(0)
    for first in range(np.uint64(0), np.uint64(count), np.uint64(CHUNK)):
        latest = np.uint16(0)
        for i in range(first, first + np.uint64(CHUNK)):
            latest = max(latest, traits.latest[i])
        traits.chunk_latest[first // np.uint64(CHUNK)] = latest
        last = max(last, latest)
    if last == NONE - 1:  # half of the coarse times cover the span up to the last reservation
        end = now
        for i in range(count):
            end = max(end, waiting[i].start)
        slots.since, slots.shift = now, 0
        while (end - now) >> slots.shift > NONE // 2:
            slots.shift += 1
    elif slots.looks < LOOKS:
        return
    slots.looks = 0
    traits.shelves[:] = 0
    for i in range(count):
        note_latest(plan, i)
        if waiting[i].low < NEVER:
            low = _coarse_time(slots, waiting[i].low)
            waiting[i].low = _exact_time(slots, low)
            traits.latest[i] = min(traits.latest[i], np.uint16(low - 1))


@called_kernel
def release_until(plan, count, step, last, procs):
    """Release processors from one step up to another, and mark the jobs among the first `count` for which this opens a gap.

    Releasing a step enlarges the gaps that contain it: the gap for as many processors as are free there now, and longer gaps for fewer
    processors, down to the number that was free before. A gap that continues to grow in the next step is handled there.
    """
    _, steps, _, _ = plan
    since = steps[step].time
    while step != last:
        old = np.int64(steps[step].free)
        height = old + procs
        after = steps[step].next
        steps[step].free = height
        steps[step].wall = left = _wall(steps, since, steps[step].previous, height)
        right = after
        while height > old:
            left = _wall(steps, since, left, height)
            while steps[right].free >= height:
                right = steps[right].next
            grows_on = right == after and after != last and steps[after].free + procs >= height
            if not grows_on:
                _mark(plan, count, height, steps[left].next, steps[right].time)
            height = max(old, np.int64(steps[left].free), np.int64(steps[right].free))
        step = after


@kernel
def _wall(steps, since, step, height):
    """Return the nearest step, from this one backward, with fewer free processors; steps from `since` on have stored their own walls."""
    while steps[step].free >= height:
        step = steps[step].wall if steps[step].time >= since else steps[step].previous
    return step


@kernel
def _mark(plan, count, height, low, end):
    """Mark the jobs that fit into a gap from the step `low` until `end` and start later; the `low` of a job may become too early."""
    slots, steps, waiting, traits = plan
    begin = steps[low].time
    most, longest, earliest = _coarse(height), _coarse(end - begin), _coarse_time(slots, begin)
    if traits.shelves[_row(most), _column(longest)] < earliest:
        return
    slots.looks += 1
    for chunk in range(np.uint64(0), np.uint64(count), np.uint64(CHUNK)):
        if traits.chunk_latest[chunk // np.uint64(CHUNK)] < earliest:
            continue
        if not _any_may_fit(traits, chunk, np.uint64(CHUNK), earliest, most, longest):
            continue
        for few in range(chunk, chunk + np.uint64(CHUNK), np.uint64(FEW)):
            if _any_may_fit(traits, few, np.uint64(FEW), earliest, most, longest):
                for i in range(few, few + np.uint64(FEW)):
                    if _may_fit(traits, i, earliest, most, longest):
                        own = waiting[i]
                        if own.procs <= height and own.length <= min(end, own.start) - begin:
                            own.low, own.low_step = _exact_time(slots, earliest), low
                            traits.latest[i] = earliest - 1


@kernel
def _any_may_fit(traits, first, count, earliest, most, longest):
    """Return whether any of `count` jobs may have to be marked; without branches, so that the processor compares them at once."""
    found = False
    for i in range(first, first + count):
        found |= _may_fit(traits, i, earliest, most, longest)
    return found


@kernel
def _may_fit(traits, i, earliest, most, longest):
    """Return whether a job may have to be marked, judging by its coarse traits."""
    return (traits.procs[i] <= most) & (traits.length[i] <= longest) & (traits.latest[i] >= earliest)
