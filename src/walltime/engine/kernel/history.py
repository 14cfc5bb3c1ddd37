"""History for queue orders: usage, waits and starts of users, groups and queues, the longest wait so far, and the system state.

Usage, waits and starts are totals over a sliding window, or totals that decay. A score uses only events strictly before its time, and the
state of queue and machine at the beginning of that instant, so it does not depend on the order of simultaneous events. The event loop does
no extra work: when a score is computed at a later time, this module reads the new entries of the log of starts (`MachineState.notes`), and
once per instant the loop's memory. It counts only quantities that the order uses, and notes the slots whose totals have changed: with a
sliding window, only their jobs need a new score (number/ranks.py).

Compiled code accesses these records by their addresses, because the functions that score jobs (callbacks.py) receive addresses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.compiled.records import record_dtype
from walltime.engine.kernel.memory import ENTRY, JOB, NEVER, NOTE, RUN, STATE, Memory, Records, record
from walltime.engine.kernel.words import address_of, number_at, records_at, set_number, set_word, word_at

MEASURES = ("waited", "used", "started")
"""Waits of the jobs that started, s; processor-seconds of the jobs that ended; number of jobs that started."""
WAITED, USED, STARTED = 0, 1, 2
OWN = ("totals", "times", "ends", "changed", "marks", "values")
"""The fields of HISTORY with the addresses of arrays that change while a simulation runs, in the order of `new_history`."""
_FIELDS = "jobs notes started slots keys width window half_life seen read dropped ended ended_dropped changes alike"
HISTORY = np.dtype([(name, np.int64) for name in (*_FIELDS.split(), *(f"reads_{measure}" for measure in MEASURES), *OWN)])
"""The history of an order: addresses, sizes, and how far the log of starts has been read.

* `jobs`, `notes`: addresses of the loop's records; `started`: address of the number of starts
* `slots`: for each job, the slot of its user (group, queue) in `totals`, int64, shape (jobs, `keys`)
* `totals`: float64, shape (3, `width`), in the order of MEASURES; `times`: when each total was last changed, int64 s
* `window`, `half_life`: the period or the half-life of the totals, s; one of them is 0
* `ends`: the sorted ends (END) of the `read` jobs that have started; the first `ended` of them have passed
* `seen`: the time up to which the log has been read, s; `dropped`, `ended_dropped`: numbers of starts and ends that have left the window
* `reads_waited`, ...: for each measure, a bit for each column for which the order uses it
* `changed`: the `changes` slots that have changed (CHANGE); `marks`: 1 for each of these slots
* `alike`: whether all jobs of a slot have the same score; `values`: their ranks by slot (float64), NaN while unknown"""
END = np.dtype([(name, np.int64) for name in ("time", "job")])
"""The end of a job, s."""
CHANGE = np.dtype([(name, np.int64) for name in ("slot", "job")])
"""A slot that has changed, and one of its jobs."""
LONGEST = np.dtype([(name, np.int64) for name in ("jobs", "notes", "started", "seen", "read", "longest")] + [("limit", np.float64)])
"""The longest wait. `jobs` to `read`: as in HISTORY; `longest`: the longest wait among the starts read so far, s; `limit`: the multiple of
it after which a waiting job comes first."""

history_of, change_at, longest_of, _end_at, _job_at, _note_at = (records_at(kind) for kind in (HISTORY, CHANGE, LONGEST, END, JOB, NOTE))


@kernel
def history_at(address, key, measure, job, now):
    """Return the measure of the job's user (group, queue), as of now."""
    read_history(address, now)
    own = history_of(address, 0)
    place = measure * own.width + word_at(own.slots, job * own.keys + key)
    total = number_at(own.totals, place)
    if own.half_life > 0:
        return total * math.pow(0.5, (now - word_at(own.times, place)) / own.half_life)
    return total


@kernel
def read_history(address, now):
    """Count the events since the last reading and before now, and drop those that have left the window."""
    if history_of(address, 0).seen != now:
        _read_on(address, now)


@called_kernel
def _read_on(address, now):
    """Read the log of starts up to now."""
    own = history_of(address, 0)
    started = word_at(own.started, 0)
    own.seen = now
    while own.read < started:
        index = np.int64(_note_at(own.notes, own.read).job)
        job = _job_at(own.jobs, index)
        if job.start >= now:
            break
        if own.reads_used:
            _count_ends(own, job.start)
            _insert_end(own, job.start + job.runtime, index)
        if own.reads_waited:
            _add(own, own.reads_waited, index, WAITED, float(job.start - job.submit), job.start)
        if own.reads_started:
            _add(own, own.reads_started, index, STARTED, 1.0, job.start)
        own.read += 1
    if own.reads_used:
        _count_ends(own, now)
    if own.window == 0:
        return
    begin = now - own.window
    while own.dropped < own.read:
        index = np.int64(_note_at(own.notes, own.dropped).job)
        job = _job_at(own.jobs, index)
        if job.start >= begin:
            break
        if own.reads_waited:
            _add(own, own.reads_waited, index, WAITED, -float(job.start - job.submit), now)
        if own.reads_started:
            _add(own, own.reads_started, index, STARTED, -1.0, now)
        own.dropped += 1
    while own.ended_dropped < own.ended:
        end = _end_at(own.ends, own.ended_dropped)
        if end.time >= begin:
            break
        job = _job_at(own.jobs, end.job)
        _add(own, own.reads_used, end.job, USED, -float(job.runtime * job.procs), now)
        own.ended_dropped += 1


@kernel
def _count_ends(own, now):
    while own.ended < own.read and _end_at(own.ends, own.ended).time < now:
        end = _end_at(own.ends, own.ended)
        job = _job_at(own.jobs, end.job)
        _add(own, own.reads_used, end.job, USED, float(job.runtime * job.procs), end.time)
        own.ended += 1


@kernel
def _insert_end(own, time, job):
    """Put the end of a job behind all that are not later."""
    place = own.read
    while place > 0 and _end_at(own.ends, place - 1).time > time:
        before, end = _end_at(own.ends, place - 1), _end_at(own.ends, place)
        end.time, end.job = before.time, before.job
        place -= 1
    end = _end_at(own.ends, place)
    end.time, end.job = time, job


@kernel
def _add(own, columns, job, measure, value, time):
    """Add a value to the totals of a job's user, group and queue that the order uses, as of a time, and note which slots have changed."""
    if value == 0.0 and own.half_life == 0:
        return
    for key in range(own.keys):
        if (columns >> key) & 1 == 0:
            continue
        slot = word_at(own.slots, job * own.keys + key)
        place = measure * own.width + slot
        total = number_at(own.totals, place)
        if own.half_life > 0:
            total *= math.pow(0.5, (time - word_at(own.times, place)) / own.half_life)
            set_word(own.times, place, time)
        set_number(own.totals, place, total + value)
        if word_at(own.marks, slot) == 0:
            set_word(own.marks, slot, 1)
            change = change_at(own.changed, own.changes)
            change.slot, change.job = slot, job
            own.changes += 1


@kernel
def longest_at(address, now):
    """Return the longest wait of the jobs that started before now, s; 0 if there are none."""
    own = longest_of(address, 0)
    if own.seen != now:
        own.seen = now
        started = word_at(own.started, 0)
        while own.read < started:
            job = _job_at(own.jobs, np.int64(_note_at(own.notes, own.read).job))
            if job.start >= now:
                break
            own.longest = max(own.longest, job.start - job.submit)
            own.read += 1
    return own.longest


@kernel
def starving_after(address, starvation, now):
    """Return the wait after which a job comes first, s: `starvation`, or the limit if it is larger; `address` is 0 without a limit."""
    if address == 0:
        return starvation
    allowed = longest_of(address, 0).limit * longest_at(address, now)
    return max(starvation, np.int64(math.floor(allowed)) if allowed < NEVER else NEVER)


def new_history(
    slots: np.ndarray, width: int, window: int, half_life: int, columns: Sequence[int], alike: bool
) -> tuple[Records, tuple[np.ndarray, ...]]:
    """Return the record for jobs with these slots (int64, shape (jobs, keys)), and the arrays that it points to, which must stay alive.

    `columns`: for each of `MEASURES`, a bit for each column for which the order uses it; `alike`: whether all jobs of a slot have the same
    score. `bind` sets the addresses of the loop's memory.
    """
    totals, changed = (np.zeros((3, width)), np.zeros((3, width), np.int64)), (np.zeros(width, CHANGE), np.zeros(width, np.int64))
    arrays = (slots, *totals, np.zeros(len(slots) + 1, END), *changed, np.full(width, np.nan))
    places = {name: array.ctypes.data for name, array in zip(("slots", *OWN), arrays, strict=True)}
    reads = {f"reads_{measure}": bits for measure, bits in zip(MEASURES, columns, strict=True)}
    seen = np.iinfo(np.int64).min
    own = record(HISTORY, keys=slots.shape[1], width=width, window=window, half_life=half_life, seen=seen, alike=alike, **places, **reads)
    return own, arrays


def new_longest(limit: float) -> Records:
    """Return the record of the longest wait; `bind` sets the addresses of the loop's memory."""
    return record(LONGEST, seen=np.iinfo(np.int64).min, limit=limit)


SYSTEM = record_dtype("state jobs queue running notes now arrivals ended waiting queued free machine")
"""The state of the queue and the machine.

* `state`, `jobs`, `queue`, `running`, `notes`: addresses of the loop's records
* `now`: the time of the last reading, s; `arrivals`, `ended`: numbers of jobs that had arrived, and ended, by then
* results: `waiting`: number of waiting jobs; `queued`: their work by their estimates, processor-seconds; `free`, `machine`: numbers of free
  processors, and of all processors"""

SYSTEM_STATE = ("waiting", "queued", "free", "machine")
"""The values that `system_at` returns, by their numbers."""

_system_at, _state_at, _entry_at, _run_at = (records_at(kind) for kind in (SYSTEM, STATE, ENTRY, RUN))


@kernel
def system_at(address, place, now):
    """Return the number of waiting jobs (0), their work (1), the free processors (2) or all processors (3), as of now."""
    own = _system_at(address, 0)
    state = _state_at(own.state, 0)
    if own.now != now or own.arrivals != state.arrivals or own.ended != state.started - state.running:
        _read_system(own, state, now)
    if place == 0:
        return own.waiting
    if place == 1:
        return own.queued
    return own.free if place == 2 else own.machine


@kernel
def _read_system(own, state, now):
    """Read the queue, the running jobs, and the jobs that have started now."""
    own.now, own.arrivals, own.ended = now, state.arrivals, state.started - state.running
    own.waiting, own.queued, own.free = 0, 0, own.machine
    for place in range(state.queue_first, state.queue_last):
        job = _job_at(own.jobs, np.int64(_entry_at(own.queue, place).job))
        if job.start < 0:
            own.waiting += 1
            own.queued += job.procs * job.planned
    for place in range(state.running):
        job = _job_at(own.jobs, _run_at(own.running, place).job)
        if job.start < now:
            own.free -= job.procs
    place = state.started - 1
    while place >= 0:
        job = _job_at(own.jobs, _note_at(own.notes, place).job)
        if job.start < now:
            break
        own.waiting += 1
        own.queued += job.procs * job.planned
        place -= 1


def new_system() -> Records:
    """Return the record of queue and machine; `bind` sets its addresses."""
    return record(SYSTEM, now=np.iinfo(np.int64).min)


def bind(own: Records, memory: Memory) -> None:
    """Set the addresses of the loop's memory, and the size of the machine, in a record that has fields for them."""
    tables = {"jobs": memory.jobs, "queue": memory.queue, "running": memory.machine.running, "notes": memory.machine.notes}
    values = {name: table.ctypes.data for name, table in tables.items()} | {"machine": memory.rules.procs}
    values |= {"state": address_of(memory.state), "started": address_of(memory.state, "started")}
    for name in set(values) & set(own.dtype.names):
        own[name] = values[name]
