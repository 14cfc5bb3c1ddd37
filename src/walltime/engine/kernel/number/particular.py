"""A scheduling pass of Batsim's batsched: reservations are of particular processors, the lowest-numbered free ones.

The rules, which `on_particular_processors` of reference/later.py implements in plain Python:

* A job is planned at the earliest time from which enough of the same processors stay free for its length; it takes the lowest-numbered.
* If a job has ended since the last pass, all waiting jobs are planned again in queue order. With `scratch`, all reservations are dropped
  first; otherwise each job's own is dropped just before the job is planned. All are dropped, too, if a running job is or was overdue, which
  batsched does not allow. If no job has ended, only the new jobs are planned, in order of arrival.
* With `depth` 1 (EASY), only the head keeps a reservation. A new head is planned before all other jobs.
"""

from typing import NamedTuple

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.compiled.records import record_dtype
from walltime.engine.kernel.bits import WORD
from walltime.engine.kernel.memory import BY_ARRIVAL, NEVER, Array, Loop, Pass, Records, record, records
from walltime.engine.kernel.number.machine import start_behind
from walltime.engine.kernel.queue import drop_started, sort_queue
from walltime.engine.kernel.running import overdue
from walltime.engine.kernel.slots import SLOT, copy_set, divide, first_slot, fits_from, keep_first, take_from

COUNTS = record_dtype("slots scratch")
ALL, FOUND = 0, 1


class Particular(NamedTuple):
    """The slots of the plan, and the processors of jobs; sets of processors are int64 words.

    * `slots`: records of SLOT; `free`: the free processors in each slot, shape (slots, words)
    * `sets`: all processors, and those found for a job, shape (2, words)
    * `reserved`: the start of each job's reservation, int64 s, -1 for none
    * `held`: the processors that each job has, had or reserves, shape (jobs, words)
    * `line`: the jobs that a pass plans, int64
    """

    counts: Records
    slots: Records
    free: Array
    sets: Array
    reserved: Array
    held: Array
    line: Array


def set_sizes(rules: Records, count: int) -> tuple[int, int]:
    """Return the words of a set of processors, and the largest number of slots for this many jobs."""
    procs = int(rules.procs)
    return max(1, -(-procs // WORD)), 2 * min(count, procs) + 3 * min(count, int(rules.depth)) + 4


def new_particular(rules: Records, compression: str, count: int) -> Particular:
    """Return memory for this many jobs; without a depth, all of them may have reservations at the same time."""
    words, most = set_sizes(rules, count)
    sets = np.zeros((2, words), np.int64)
    bits = np.zeros(words * WORD, np.uint8)
    bits[: int(rules.procs)] = 1
    sets[ALL] = np.packbits(bits, bitorder="little").view(np.int64)
    counts, slots, free = record(COUNTS, scratch=int(compression == "scratch")), records(SLOT, most), np.zeros((most, words), np.int64)
    return Particular(counts, slots, free, sets, np.full(count, -1), np.zeros((count, words), np.int64), np.zeros(count, np.int64))


@kernel
def pass_on_particular_processors(state, rules, jobs, machine, queue, ordered, own):
    """Plan jobs on particular processors, and start those planned for now; return an upper bound on the steps."""
    first, last, line = state.queue_first, state.queue_last, own.line
    place = last
    while place > first and jobs[queue[place - 1].job].arrival >= state.sorted_arrivals:
        place -= 1
    count = last - place
    for k in range(count):
        line[k] = queue[place + k].job
    state.sorted_arrivals = state.arrivals
    if rules.order != BY_ARRIVAL:
        sort_queue(state, rules, jobs, queue, ordered.rank)
    if state.freed:
        count, stale = last - first, overdue(state, machine.running)
        for k in range(count):
            line[k] = queue[first + k].job
            stale |= 0 <= own.reserved[line[k]] < state.now
        if own.counts.scratch or stale:
            for k in range(count):
                own.reserved[line[k]] = -1
    if rules.depth == 1 and state.head >= 0 and first < last and queue[first].job != state.head:
        own.reserved[state.head] = -1
    _lay_out(state, jobs, machine, queue, own)
    if rules.depth == 1:
        while first < last and own.reserved[queue[first].job] < 0:
            if _place(state, rules, jobs, machine, queue, own, np.int64(queue[first].job)):
                first += 1
        state.head = queue[first].job if first < last else -1
    for k in range(count):
        job = line[k]
        if jobs[job].start >= 0 or (rules.depth == 1 and (job == state.head or jobs[job].procs > state.free)):
            continue
        if rules.depth > 1:
            if own.reserved[job] >= 0:
                _release(own, job, jobs[job].own_length)
            _place(state, rules, jobs, machine, queue, own, job)
        elif fits_from(own.slots, own.free, own.sets[FOUND], own.sets[ALL], 0, jobs[job].procs, jobs[job].own_length):
            _take_found(state, rules, jobs, machine, queue, own, job, 0)
    drop_started(state, jobs, queue)
    state.freed = 0
    return count * own.counts.slots + own.slots.size


@called_kernel
def _lay_out(state, jobs, machine, queue, own):
    """Make the slots from the running jobs and the reservations; an overdue job is expected to end in a second."""
    slots, free, running, last = own.slots, own.free, machine.running, 0
    slots[0].begin, slots[0].end, slots[0].next = state.now, NEVER, -1
    own.counts.slots = 1
    copy_set(free[0], own.sets[ALL])
    for k in range(state.running):
        for w in range(free.shape[1]):
            free[0, w] &= ~own.held[running[k].job, w]
    for k in range(state.running):
        end = max(running[k].expected, state.now + 1)
        if end > slots[last].begin:
            divide(own.counts, slots, free, last, end)
            last = slots[last].next
        for w in range(free.shape[1]):
            free[last, w] |= own.held[running[k].job, w]
    for place in range(state.queue_first, state.queue_last):
        job = queue[place].job
        if own.reserved[job] >= 0:
            begin, slot = max(own.reserved[job], state.now), 0
            while slots[slot].end < begin:
                slot = slots[slot].next
            if slots[slot].begin < begin:
                divide(own.counts, slots, free, slot, begin)
                slot = slots[slot].next
            take_from(own.counts, slots, free, slot, own.reserved[job] + jobs[job].own_length - 1, own.held[job])


@kernel
def _release(own, job, length):
    """Drop the reservation of a job."""
    slots, slot, begin = own.slots, 0, own.reserved[job]
    while slot >= 0 and slots[slot].begin < begin + length:
        if slots[slot].begin >= begin:
            for w in range(own.free.shape[1]):
                own.free[slot, w] |= own.held[job, w]
        slot = slots[slot].next
    own.reserved[job] = -1


@kernel
def _place(state, rules, jobs, machine, queue, own, job):
    """Plan a job at the earliest time at which it fits; start it if that is now, and return whether it is."""
    slot = first_slot(own.slots, own.free, own.sets[FOUND], own.sets[ALL], jobs[job].procs, jobs[job].own_length)
    begin = own.slots[slot].begin
    if jobs[job].reserved_start < 0 and (rules.depth > 1 or begin > state.now):
        jobs[job].reserved_start = begin
    _take_found(state, rules, jobs, machine, queue, own, job, slot)
    return begin == state.now


@called_kernel
def _take_found(state, rules, jobs, machine, queue, own, job, slot):
    """Give a job the first of the processors found for it, from the beginning of a slot on: start it now, or make a reservation."""
    begin = own.slots[slot].begin
    keep_first(own.sets[FOUND], jobs[job].procs)
    copy_set(own.held[job], own.sets[FOUND])
    take_from(own.counts, own.slots, own.free, slot, begin + jobs[job].own_length - 1, own.held[job])
    own.reserved[job] = -1
    if begin == state.now:
        start_behind(state, rules, jobs, machine, queue, job)
    else:
        own.reserved[job] = begin


PASS = Pass(
    ("particular",),
    pass_on_particular_processors,
    Particular,
    lambda rules, passes, count: new_particular(rules, passes.compression, count),
    (Loop("particular", "reservations of particular processors", 50, 8),),
)
