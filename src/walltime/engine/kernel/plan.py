"""The plan of conservative backfilling: free processors over future time, and the reservations of the waiting jobs.

The free processors are a step function. A step is valid from its time until the next step's; the first one begins now, and in the last one,
which has no end, all processors are free. The steps are linked in order of time, so that a reservation, which refers to steps, stays valid.
A step is removed only when no reservation begins or ends with it any more (`edges` counts these reservations); neighbouring steps may have
equal values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.profile import NEVER

BORDER = np.uint32(0)
"""The slot before the first and after the last step, without a time and free processors."""
GONE = -1
"""The time of a slot that is not in use."""

SLOTS = np.dtype([(name, np.int64) for name in ("since", "shift", "looks")] + [(name, np.uint32) for name in ("first", "spare", "used")])
"""Counts and settings of the plan.

* `first`: the first step; `spare`: the first unused slot that was used before; `used`: number of slots used so far
* `since`, `shift`: origin and unit of coarse times (candidates.py)
* `looks`: number of searches through the waiting jobs since the bounds of the shelves were lowered (candidates.py)"""
STEP = np.dtype(
    [("time", np.int64), ("free", np.int32), ("edges", np.int32)] + [(name, np.uint32) for name in ("next", "second", "previous", "wall")]
)
"""A step; two of them fill a cache line.

* `time`: when it begins, s; `free`: number of free processors; `edges`: number of reservations that begin or end with it
* `next`, `previous`: the neighbouring steps; `second`: the step after the next one, so that a search can load two steps at a time
* `wall`: while processors are released, the nearest earlier step with fewer free processors"""


WAITING = np.dtype(
    [(name, np.int64) for name in ("procs", "length", "start", "low")]
    + [(name, np.uint32) for name in ("begin", "end", "low_step", "unused")]
)
"""A waiting job, by its place in the queue.

* `procs`: number of processors; `length`: its planned length, s; `start`: the start of its reservation, s
* `begin`, `end`: the steps at which its reservation begins and ends
* `low`: the earliest time at which a gap for it may have opened since it was last tried, s; NEVER for none
* `low_step`: the step that began then (candidates.py)"""


NONE = np.iinfo(np.uint16).max
"""Later than any coarse time."""
CHUNK, FEW = 128, 8
"""Numbers of queue places that are compared together: first CHUNK, and if any of these may fit, FEW."""
ROWS, COLUMNS = 32, 64
"""Numbers of classes of processors, and of lengths."""
SHORTEST = 16
"""Number of the first class of lengths in use, which contains all lengths under 16 s."""
LOOKS = 8192
"""Number of searches through the queue after which the bounds of the shelves are lowered."""
LINE = 64
"""Bytes in a cache line."""


class Traits(NamedTuple):
    """Coarse data of waiting jobs that show which of them a freed gap may help, uint16, so that many are compared at once.

    * `procs`, `length`: coarse numbers, by place in the queue
    * `latest`: by place in the queue, the latest start of a useful gap; 0 if no job waits there
    * `chunk_latest`: an upper bound on `latest` for each chunk of places
    * `shelves`: the same for each class of processors and each class of lengths, over all jobs of these classes and lower ones

    A useful gap ends before the job's own reservation begins or, if a gap for the job is known (`low` in WAITING), begins before that gap.
    """

    procs: Any
    length: Any
    latest: Any
    chunk_latest: Any
    shelves: Any


class ReservationPlan(NamedTuple):
    """The reservations of all waiting jobs: a record of SLOTS, records of STEP and of WAITING, and traits."""

    slots: Any
    steps: Any
    waiting: Any
    traits: Traits


def new_plan(jobs: int) -> ReservationPlan:
    """Return memory for the reservations of this many jobs; `plan_of_running` fills it."""
    return ReservationPlan(
        np.zeros(1, SLOTS).view(np.recarray)[0],
        aligned(2 * jobs + 4, STEP).view(np.recarray),
        aligned(jobs, WAITING).view(np.recarray),
        Traits(
            procs=aligned(jobs + CHUNK, np.uint16),
            length=aligned(jobs + CHUNK, np.uint16),
            latest=aligned(jobs + CHUNK, np.uint16),
            chunk_latest=np.zeros(jobs // CHUNK + 2, np.uint16),
            shelves=aligned(ROWS * COLUMNS, np.uint16).reshape(ROWS, COLUMNS),
        ),
    )


def aligned(count: int, dtype: Any) -> Any:
    """Return an array of zeros that begins at a cache line."""
    size = count * np.dtype(dtype).itemsize
    room = np.zeros(size + LINE, np.uint8)
    begin = -room.ctypes.data % LINE
    return room[begin : begin + size].view(dtype)


@kernel
def plan_of_running(slots, steps, running, count, now, free):
    """Rebuild the plan from the running jobs; an overdue job is expected to end in a second."""
    slots.used, slots.spare = 1, BORDER
    slots.since, slots.shift = now, 0
    steps[BORDER].time = NEVER
    steps[BORDER].free = -1
    _link(steps, BORDER, BORDER)
    last = insert(slots, steps, BORDER, now, free)
    slots.first = last
    for i in range(count):
        end = max(running[i].expected, now + 1)
        free += running[i].procs
        if end > steps[last].time:
            last = insert(slots, steps, last, end, free)
        else:
            steps[last].free = free
        steps[last].edges += 1


@called_kernel
def first_gap(steps, step, procs, length, reserved):
    """Return the earliest step from this one on at which enough processors are free for long enough; BORDER if none before `reserved`.

    From `reserved` on, the start of the job's own reservation, its own processors suffice. Steps with too few free processors move the
    start without a branch, because the processor could not predict it.
    """
    begin, end = step, steps[step].time + length
    while True:
        fits, following, step = steps[step].free >= procs, steps[step].next, steps[step].second
        time = steps[following].time
        begin, end = begin if fits else following, end if fits else time + length
        if time >= end or time >= reserved:
            break
        fits, time = steps[following].free >= procs, steps[step].time
        begin, end = begin if fits else step, end if fits else time + length
        if time >= end or time >= reserved:
            break
    return begin if end - length < reserved else BORDER


@called_kernel
def take_until(slots, steps, step, end, procs):
    """Take processors (possibly 0) from this step on until a time; return the step that begins at that time, creating it if necessary."""
    while steps[step].time < end:
        steps[step].free -= procs
        step = steps[step].next
    if steps[step].time > end:
        before = steps[step].previous
        step = insert(slots, steps, before, end, steps[before].free + procs)
    return step


@kernel
def step_back_at(slots, steps, step, time):
    """Return the step that begins at a time, searching backward and creating it if necessary."""
    while steps[step].time > time:
        step = steps[step].previous
    if steps[step].time < time:
        step = insert(slots, steps, step, time, np.int64(steps[step].free))
    return step


@called_kernel
def leave(slots, steps, step):
    """Note that a reservation no longer begins or ends with this step; remove the step if no other one does."""
    steps[step].edges -= 1
    if steps[step].edges == 0 and step != slots.first:
        _remove(slots, steps, step)


@kernel
def forget_past(slots, steps, now):
    """Remove the steps that have ended; the first step then begins now."""
    first = slots.first
    after = steps[first].next
    while steps[after].time <= now:
        _remove(slots, steps, first)
        first = after
        after = steps[first].next
    slots.first = first
    steps[first].time = now


@called_kernel
def insert(slots, steps, before, time, free):
    """Insert a step behind another, and return its slot."""
    slot = slots.spare
    if slot != BORDER:
        slots.spare = steps[slot].next
    else:
        slot = slots.used
        slots.used = np.uint32(slot + 1)
    after = steps[before].next
    steps[slot].time = time
    steps[slot].free = free
    steps[slot].edges = 0
    _link(steps, before, slot)
    _link(steps, slot, after)
    return slot


@kernel
def _link(steps, before, after):
    steps[before].next, steps[before].second = after, steps[after].next
    steps[after].previous = before
    steps[steps[before].previous].second = after


@kernel
def _remove(slots, steps, slot):
    _link(steps, steps[slot].previous, steps[slot].next)
    steps[slot].time = GONE
    steps[slot].next = slots.spare
    slots.spare = slot
