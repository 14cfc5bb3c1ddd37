"""What users, groups and queues have had so far, for orders that ask for it: waits, use and starts, in a sliding window or with decay.

What counts at a time is what happened strictly before it; so scores do not depend on the order of the events of an instant. Nothing is
added to the loop: the log of the starts (`Machine.notes`) is read on from where it was left when a score is asked for at a later time.
Only what the order asks for is counted, and it is noted whose totals have changed: in a sliding window only their jobs need another
score (number/ranks.py).

All is known by its address, as the score of a job is (callbacks.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.memory import JOB, NOTE, Records, record
from walltime.engine.kernel.words import address_of, number_at, records_at, set_number, set_word, word_at

MEASURES = ("waited", "used", "started")
"""Seconds that jobs waited which started, processor seconds of jobs that ended, and the number of jobs that started."""
WAITED, USED, STARTED = 0, 1, 2
OWN = ("totals", "times", "ends", "gone", "changed", "marks", "values")
"""The fields of HISTORY with the addresses of arrays that change while a simulation runs, in the order of `new_history`."""
_FIELDS = "jobs notes started slots keys width window half_life seen read dropped running ended ended_dropped changes alike"
HISTORY = np.dtype([(name, np.int64) for name in (*_FIELDS.split(), *(f"asks_{measure}" for measure in MEASURES), *OWN)])
"""Addresses, sizes, and where the reading of the log has come to.

`jobs`, `notes`: addresses of the loop's records; `started`: that of the number of starts. `slots`: of the place of each job's user (group,
queue) in `totals`, int64, shape (jobs, `keys`); `totals`: float64, shape (3, `width`), and when each was last changed in `times` (int64).
`ends`: a heap of the ends of jobs that have started (END), `running` of them; `gone`: the jobs that have ended, `ended` of them, in this
order. `window`, `half_life`: s, one of them 0. `seen`: the time up to which the log is read; `read`: so many starts, `dropped` of which
the window has left, as it has left `ended_dropped` of the ends.

`asks_waited`, ...: for each of `MEASURES` the bits of the columns of which the order asks it. `changed`: the slots that have changed
(CHANGE), `changes` of them; `marks`, by slot, 1 for these. `alike`: whether all jobs of a slot have the same score; then `values` has their
ranks by slot (float64), NaN as long as unknown."""
END = np.dtype([(name, np.int64) for name in ("time", "tie", "job")])
"""The end of a job, s; ties go to the one that was noted first."""
CHANGE = np.dtype([(name, np.int64) for name in ("slot", "job")])
"""A slot that has changed, and a job of it."""

history_of, change_at, _end_at, _job_at, _note_at = (records_at(kind) for kind in (HISTORY, CHANGE, END, JOB, NOTE))


@kernel
def history_at(address, key, measure, job, now):
    """The measure of the job's user (group, queue), as of now."""
    read_history(address, now)
    own = history_of(address, 0)
    place = measure * own.width + word_at(own.slots, job * own.keys + key)
    total = number_at(own.totals, place)
    if own.half_life > 0:
        return total * math.pow(0.5, (now - word_at(own.times, place)) / own.half_life)
    return total


@kernel
def read_history(address, now):
    """Count what has happened since the last time and before now, and drop what has left the window."""
    if history_of(address, 0).seen != now:
        _read_on(address, now)


@called_kernel
def _read_on(address, now):
    own = history_of(address, 0)
    started = word_at(own.started, 0)
    own.seen = now
    while own.read < started:
        index = np.int64(_note_at(own.notes, own.read).job)
        job = _job_at(own.jobs, index)
        if job.start >= now:
            break
        if own.asks_used:
            _end_before(own, job.start)
        if own.asks_waited:
            _add(own, own.asks_waited, index, WAITED, float(job.start - job.submit), job.start)
        if own.asks_started:
            _add(own, own.asks_started, index, STARTED, 1.0, job.start)
        if own.asks_used:
            _push_end(own, job.start + job.runtime, own.read, index)
        own.read += 1
    if own.asks_used:
        _end_before(own, now)
    if own.window > 0:
        _leave(own, now)


@kernel
def _leave(own, now):
    """Drop the starts and ends that the window has left."""
    begin = now - own.window
    while own.dropped < own.read:
        index = np.int64(_note_at(own.notes, own.dropped).job)
        job = _job_at(own.jobs, index)
        if job.start >= begin:
            break
        if own.asks_waited:
            _add(own, own.asks_waited, index, WAITED, -float(job.start - job.submit), now)
        if own.asks_started:
            _add(own, own.asks_started, index, STARTED, -1.0, now)
        own.dropped += 1
    while own.ended_dropped < own.ended:
        index = word_at(own.gone, own.ended_dropped)
        job = _job_at(own.jobs, index)
        if job.start + job.runtime >= begin:
            break
        _add(own, own.asks_used, index, USED, -float(job.runtime * job.procs), now)
        own.ended_dropped += 1


@kernel
def _end_before(own, now):
    """Count the jobs that have ended before now."""
    while own.running > 0 and _end_at(own.ends, 0).time < now:
        first = _end_at(own.ends, 0)
        end, index = first.time, first.job
        _drop_end(own)
        job = _job_at(own.jobs, index)
        _add(own, own.asks_used, index, USED, float(job.runtime * job.procs), end)
        set_word(own.gone, own.ended, index)
        own.ended += 1


@kernel
def _add(own, asked, job, measure, value, time):
    """Add to the totals of a job's user, group and queue that are asked for, as of a time, and note that they have changed."""
    if value == 0.0 and own.half_life == 0:
        return
    for key in range(own.keys):
        if (asked >> key) & 1 == 0:
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
def _push_end(own, time, tie, job):
    """Put the end of a job into the heap of ends."""
    place = own.running
    own.running += 1
    while place > 0:
        above = _end_at(own.ends, (place - 1) // 2)
        if above.time < time or (above.time == time and above.tie <= tie):
            break
        _place_end(own.ends, place, above.time, above.tie, above.job)
        place = (place - 1) // 2
    _place_end(own.ends, place, time, tie, job)


@kernel
def _drop_end(own):
    """Remove the first end from the heap."""
    own.running -= 1
    last = _end_at(own.ends, own.running)
    time, tie, job = last.time, last.tie, last.job
    place, child = 0, 1
    while child < own.running:
        if child + 1 < own.running and _is_earlier(own.ends, child + 1, _end_at(own.ends, child).time, _end_at(own.ends, child).tie):
            child += 1
        if not _is_earlier(own.ends, child, time, tie):
            break
        below = _end_at(own.ends, child)
        _place_end(own.ends, place, below.time, below.tie, below.job)
        place, child = child, 2 * child + 1
    _place_end(own.ends, place, time, tie, job)


@kernel
def _is_earlier(ends, place, time, tie):
    """Whether an entry of the heap comes before this time."""
    own = _end_at(ends, place)
    return own.time < time or (own.time == time and own.tie < tie)


@kernel
def _place_end(ends, place, time, tie, job):
    end = _end_at(ends, place)
    end.time, end.tie, end.job = time, tie, job


def new_history(
    slots: np.ndarray, width: int, window: int, half_life: int, asked: Sequence[int], alike: bool
) -> tuple[Records, tuple[np.ndarray, ...]]:
    """The record for jobs with these places (int64, shape (jobs, keys)), and the arrays that it points to, to be kept alive.

    `asked`: for each of `MEASURES` the bits of the columns of which it is asked; `alike`: whether all jobs of a slot have the same score.
    The addresses of the loop's memory are set by `bind_past`.
    """
    size = len(slots)
    totals, ends = (np.zeros((3, width)), np.zeros((3, width), np.int64)), (np.zeros(size + 1, END), np.zeros(size, np.int64))
    arrays = (slots, *totals, *ends, np.zeros(width, CHANGE), np.zeros(width, np.int64), np.full(width, np.nan))
    places = {name: array.ctypes.data for name, array in zip(("slots", *OWN), arrays, strict=True)}
    asks = {f"asks_{measure}": bits for measure, bits in zip(MEASURES, asked, strict=True)}
    seen = np.iinfo(np.int64).min
    own = record(HISTORY, keys=slots.shape[1], width=width, window=window, half_life=half_life, seen=seen, alike=alike, **places, **asks)
    return own, arrays


def bind_past(own: Records, jobs: Records, notes: Records, state: Records) -> None:
    """Tell a record of the past where the loop's jobs, its log of starts and their number are."""
    own.jobs, own.notes, own.started = jobs.ctypes.data, notes.ctypes.data, address_of(state, "started")
