"""What users, groups and queues have had so far, for orders that ask for it: waits, use and starts, in a sliding window or with decay.

What counts at a time is what happened strictly before it; so scores do not depend on the order of the events of an instant. Nothing is
added to the loop: the log of the starts (`Machine.notes`) is read on from where it was left when a score is asked for at a later time.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from walltime.engine.kernel.memory import ITEM, JOB, NOTE, Records

__all__ = ["MEASURES", "WORDS", "bind_history", "history_at", "history_words"]

MEASURES = ("waited", "used", "started")
"""Seconds that jobs waited which started, processor seconds of jobs that ended, and the number of jobs that started."""
WAITED, USED, STARTED = 0, 1, 2
WORDS = 17
"""Length of the record: addresses, sizes, and where the reading of the log has come to."""
(JOBS, NOTES, COUNT, SLOTS, TOTALS, TIMES, ENDS, GONE, SIZE, KEYS, WIDTH, WINDOW, HALF_LIFE, SEEN, READ, DROPPED, RUNNING) = range(17)
"""`JOBS`, `NOTES`: addresses of the loop's records, `COUNT` that of the number of starts. `SLOTS`: of the place of each job's user (group,
queue) in `TOTALS`, int64, shape (jobs, `KEYS`); `TOTALS`: float64, shape (3, `WIDTH`), and when each was last changed in `TIMES` (int64).
`ENDS`: a heap of the ends of jobs that have started, `RUNNING` of them; `GONE`: those that have ended, in this order. `SIZE`: jobs.
`WINDOW`, `HALF_LIFE`: s, one of them 0. `SEEN`: the time up to which the log is read; `READ`: so many starts, `DROPPED` of which the window
has left; the counts of ends stand before the first entry of `GONE`."""
_JOB, _NOTE, _ITEM = (len(kind.names or ()) for kind in (JOB, NOTE, ITEM))
_SUBMIT, _RUNTIME, _PROCS, _START = ((JOB.names or ()).index(name) for name in ("submit", "runtime", "procs", "start"))


@intrinsic
def _as_pointer(typingctx, address):
    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), codegen


_pointer: Any = _as_pointer
_carray: Any = numba.carray  # type: ignore[attr-defined]


@numba.njit(nogil=True)
def _words(address, rows, columns):
    return _carray(_pointer(address), (rows, columns), np.int64)


@numba.njit(nogil=True)
def _numbers(address, rows, columns):
    return _carray(_pointer(address), (rows, columns), np.float64)


@numba.njit(nogil=True, error_model="numpy")
def history_at(address, key, measure, job, now):
    """The measure of the job's user (group, queue), as of now."""
    words = _words(address, 1, WORDS)[0]
    if words[SEEN] != now:
        _read_on(words, now)
    slot = _words(words[SLOTS], words[SIZE], words[KEYS])[job, key]
    total = _numbers(words[TOTALS], 3, words[WIDTH])[measure, slot]
    if words[HALF_LIFE] > 0:
        return total * math.pow(0.5, (now - _words(words[TIMES], 3, words[WIDTH])[measure, slot]) / words[HALF_LIFE])
    return total


@numba.njit(nogil=True, error_model="numpy")
def _read_on(words, now):
    """Count what has happened since the last time and before now, and drop what has left the window."""
    jobs, notes = _words(words[JOBS], words[SIZE], _JOB), _words(words[NOTES], words[SIZE], _NOTE)
    ends, gone = _words(words[ENDS], words[SIZE] + 1, 3), _words(words[GONE], words[SIZE] + 2, 1)
    started = _words(words[COUNT], 1, 1)[0, 0]
    words[SEEN] = now
    while words[READ] < started and jobs[notes[words[READ], 0], _START] < now:
        job = notes[words[READ], 0]
        start = jobs[job, _START]
        _ended_before(words, jobs, ends, gone, start)
        _add(words, job, WAITED, float(start - jobs[job, _SUBMIT]), start)
        _add(words, job, STARTED, 1.0, start)
        _push(ends, words[RUNNING], start + jobs[job, _RUNTIME], words[READ], job)
        words[RUNNING] += 1
        words[READ] += 1
    _ended_before(words, jobs, ends, gone, now)
    if words[WINDOW] > 0:
        begin = now - words[WINDOW]
        while words[DROPPED] < words[READ] and jobs[notes[words[DROPPED], 0], _START] < begin:
            job = notes[words[DROPPED], 0]
            _add(words, job, WAITED, -float(jobs[job, _START] - jobs[job, _SUBMIT]), now)
            _add(words, job, STARTED, -1.0, now)
            words[DROPPED] += 1
        while gone[1, 0] < gone[0, 0]:
            job = gone[2 + gone[1, 0], 0]
            if jobs[job, _START] + jobs[job, _RUNTIME] >= begin:
                break
            _add(words, job, USED, -float(jobs[job, _RUNTIME] * jobs[job, _PROCS]), now)
            gone[1, 0] += 1


@numba.njit(nogil=True, error_model="numpy")
def _ended_before(words, jobs, ends, gone, now):
    """Count the jobs that have ended before now."""
    while words[RUNNING] > 0 and ends[0, 0] < now:
        end, job = ends[0, 0], ends[0, 2]
        _drop(ends, words[RUNNING])
        words[RUNNING] -= 1
        _add(words, job, USED, float(jobs[job, _RUNTIME] * jobs[job, _PROCS]), end)
        gone[2 + gone[0, 0], 0] = job
        gone[0, 0] += 1


@numba.njit(nogil=True, error_model="numpy")
def _add(words, job, measure, value, time):
    """Add to the totals of a job's user, group and queue, as of a time."""
    slots, totals = _words(words[SLOTS], words[SIZE], words[KEYS]), _numbers(words[TOTALS], 3, words[WIDTH])
    times = _words(words[TIMES], 3, words[WIDTH])
    for key in range(words[KEYS]):
        slot = slots[job, key]
        if words[HALF_LIFE] > 0:
            totals[measure, slot] *= math.pow(0.5, (time - times[measure, slot]) / words[HALF_LIFE])
            times[measure, slot] = time
        totals[measure, slot] += value


@numba.njit(nogil=True)
def _before(heap, i, k):
    return heap[i, 0] < heap[k, 0] or (heap[i, 0] == heap[k, 0] and heap[i, 1] < heap[k, 1])


@numba.njit(nogil=True)
def _swap(heap, i, k):
    for column in range(3):
        heap[i, column], heap[k, column] = heap[k, column], heap[i, column]


@numba.njit(nogil=True)
def _push(heap, size, rank, tie, job):
    heap[size, 0], heap[size, 1], heap[size, 2] = rank, tie, job
    i = size
    while i > 0 and _before(heap, i, (i - 1) // 2):
        _swap(heap, i, (i - 1) // 2)
        i = (i - 1) // 2


@numba.njit(nogil=True)
def _drop(heap, size):
    last = size - 1
    _swap(heap, 0, last)
    i = 0
    while True:
        least = i
        for child in (2 * i + 1, 2 * i + 2):
            if child < last and _before(heap, child, least):
                least = child
        if least == i:
            return
        _swap(heap, i, least)
        i = least


def history_words(slots: np.ndarray, width: int, window: int, half_life: int) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """The record for jobs with these places (int64, shape (jobs, keys)), and the arrays that it points to, to be kept alive.

    The addresses of the loop's memory are set by `bind_history`.
    """
    size = len(slots)
    arrays = (slots, np.zeros((3, width)), np.zeros((3, width), np.int64), np.zeros((size + 1, 3), np.int64), np.zeros(size + 2, np.int64))
    words = np.zeros(WORDS, np.int64)
    for place, array in zip((SLOTS, TOTALS, TIMES, ENDS, GONE), arrays, strict=True):
        words[place] = array.ctypes.data
    words[SIZE], words[KEYS], words[WIDTH] = size, slots.shape[1], width
    words[WINDOW], words[HALF_LIFE], words[SEEN] = window, half_life, np.iinfo(np.int64).min
    return words, arrays


def bind_history(words: np.ndarray, jobs: Records, notes: Records, state: Records) -> None:
    """Tell a record where the loop's jobs, its log of starts and their number are."""
    words[JOBS], words[NOTES] = jobs.ctypes.data, notes.ctypes.data
    kind = state.dtype
    words[COUNT] = state.__array_interface__["data"][0] + kind.fields["started"][1]
