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

from walltime.engine.kernel.jit import called_kernel, kernel
from walltime.engine.kernel.memory import JOB, NOTE, Records
from walltime.engine.kernel.words import number_at, set_number, set_word, word_at

__all__ = [
    "ALIKE",
    "CHANGED",
    "KEYS",
    "MARKS",
    "MEASURES",
    "OWN",
    "SEEN",
    "SLOTS",
    "VALUES",
    "bind_history",
    "history_at",
    "history_words",
    "read_history",
]

MEASURES = ("waited", "used", "started")
"""Seconds that jobs waited which started, processor seconds of jobs that ended, and the number of jobs that started."""
WAITED, USED, STARTED = 0, 1, 2
(JOBS, NOTES, COUNT, SLOTS, TOTALS, TIMES, ENDS, GONE, SIZE, KEYS, WIDTH, WINDOW, HALF_LIFE, SEEN, READ, DROPPED, RUNNING) = range(17)
ASKED, ALIKE, CHANGED, MARKS, VALUES = 17, 20, 21, 22, 23
OWN = (TOTALS, TIMES, ENDS, GONE, CHANGED, MARKS, VALUES)
"""The arrays that change while a simulation runs, in the order of `history_words`, after that of `SLOTS`."""
WORDS = 24
"""The record: addresses, sizes, and where the reading of the log has come to.

`JOBS`, `NOTES`: addresses of the loop's records, `COUNT` that of the number of starts. `SLOTS`: of the place of each job's user (group,
queue) in `TOTALS`, int64, shape (jobs, `KEYS`); `TOTALS`: float64, shape (3, `WIDTH`), and when each was last changed in `TIMES` (int64).
`ENDS`: a heap of the ends of jobs that have started, `RUNNING` of them; `GONE`: those that have ended, in this order. `SIZE`: jobs.
`WINDOW`, `HALF_LIFE`: s, one of them 0. `SEEN`: the time up to which the log is read; `READ`: so many starts, `DROPPED` of which the window
has left; the counts of ends stand before the first entry of `GONE`.

`ASKED`: for each of `MEASURES` the bits of the columns of which the order asks it. `CHANGED`: how many slots have changed, and from the
second word on of each its place and a job of it; `MARKS`, by slot, 1 for these. `ALIKE`: whether all jobs of a slot have the same score;
then `VALUES` has their ranks by slot (float64), NaN as long as unknown."""
_JOB, _NOTE = (len(kind.names or ()) for kind in (JOB, NOTE))
_SUBMIT, _RUNTIME, _PROCS, _START = ((JOB.names or ()).index(name) for name in ("submit", "runtime", "procs", "start"))


@kernel
def history_at(words, key, measure, job, now):
    """The measure of the job's user (group, queue), as of now."""
    read_history(words, now)
    place = measure * word_at(words, WIDTH) + word_at(word_at(words, SLOTS), job * word_at(words, KEYS) + key)
    total, half_life = number_at(word_at(words, TOTALS), place), word_at(words, HALF_LIFE)
    if half_life > 0:
        return total * math.pow(0.5, (now - word_at(word_at(words, TIMES), place)) / half_life)
    return total


@kernel
def read_history(words, now):
    """Count what has happened since the last time and before now, and drop what has left the window."""
    if word_at(words, SEEN) != now:
        _read_on(words, now)


@called_kernel
def _read_on(words, now):
    jobs, notes, gone = word_at(words, JOBS), word_at(words, NOTES), word_at(words, GONE)
    started = word_at(word_at(words, COUNT), 0)
    asks_wait, asks_use, asks_number = word_at(words, ASKED), word_at(words, ASKED + 1), word_at(words, ASKED + 2)
    set_word(words, SEEN, now)
    read = word_at(words, READ)
    while read < started:
        job = word_at(notes, read * _NOTE)
        start = word_at(jobs, job * _JOB + _START)
        if start >= now:
            break
        if asks_use:
            _end_before(words, start)
        if asks_wait:
            _add(words, job, WAITED, float(start - word_at(jobs, job * _JOB + _SUBMIT)), start)
        if asks_number:
            _add(words, job, STARTED, 1.0, start)
        if asks_use:
            _push_end(words, start + word_at(jobs, job * _JOB + _RUNTIME), read, job)
        read += 1
    set_word(words, READ, read)
    if asks_use:
        _end_before(words, now)
    window = word_at(words, WINDOW)
    if window == 0:
        return
    dropped = word_at(words, DROPPED)
    while dropped < read:
        job = word_at(notes, dropped * _NOTE)
        start = word_at(jobs, job * _JOB + _START)
        if start >= now - window:
            break
        if asks_wait:
            _add(words, job, WAITED, -float(start - word_at(jobs, job * _JOB + _SUBMIT)), now)
        if asks_number:
            _add(words, job, STARTED, -1.0, now)
        dropped += 1
    set_word(words, DROPPED, dropped)
    dropped = word_at(gone, 1)
    while dropped < word_at(gone, 0):
        job = word_at(gone, 2 + dropped)
        if word_at(jobs, job * _JOB + _START) + word_at(jobs, job * _JOB + _RUNTIME) >= now - window:
            break
        _add(words, job, USED, -float(_use(jobs, job)), now)
        dropped += 1
    set_word(gone, 1, dropped)


@kernel
def _use(jobs, job):
    """Processor seconds of a job."""
    return word_at(jobs, job * _JOB + _RUNTIME) * word_at(jobs, job * _JOB + _PROCS)


@kernel
def _end_before(words, now):
    """Count the jobs that have ended before now."""
    jobs, ends, gone = word_at(words, JOBS), word_at(words, ENDS), word_at(words, GONE)
    while word_at(words, RUNNING) > 0 and word_at(ends, 0) < now:
        end, job = word_at(ends, 0), word_at(ends, 2)
        _drop_end(words)
        _add(words, job, USED, float(_use(jobs, job)), end)
        set_word(gone, 2 + word_at(gone, 0), job)
        set_word(gone, 0, word_at(gone, 0) + 1)


@kernel
def _add(words, job, measure, value, time):
    """Add to the totals of a job's user, group and queue, as of a time, and note that they have changed."""
    asked, keys, half_life = word_at(words, ASKED + measure), word_at(words, KEYS), word_at(words, HALF_LIFE)
    if value == 0.0 and half_life == 0:
        return
    totals, times = word_at(words, TOTALS), word_at(words, TIMES)
    changed, marks = word_at(words, CHANGED), word_at(words, MARKS)
    for key in range(keys):
        if (asked >> key) & 1 == 0:
            continue
        slot = word_at(word_at(words, SLOTS), job * keys + key)
        place = measure * word_at(words, WIDTH) + slot
        total = number_at(totals, place)
        if half_life > 0:
            total *= math.pow(0.5, (time - word_at(times, place)) / half_life)
            set_word(times, place, time)
        set_number(totals, place, total + value)
        if word_at(marks, slot) == 0:
            set_word(marks, slot, 1)
            count = word_at(changed, 0)
            set_word(changed, 0, count + 1)
            set_word(changed, 1 + 2 * count, slot)
            set_word(changed, 2 + 2 * count, job)


@kernel
def _push_end(words, rank, tie, job):
    """Put the end of a job into the heap of ends."""
    heap, i = word_at(words, ENDS), word_at(words, RUNNING)
    set_word(words, RUNNING, i + 1)
    while i > 0:
        parent = 3 * ((i - 1) // 2)
        if word_at(heap, parent) < rank or (word_at(heap, parent) == rank and word_at(heap, parent + 1) <= tie):
            break
        _place_end(heap, i, word_at(heap, parent), word_at(heap, parent + 1), word_at(heap, parent + 2))
        i = (i - 1) // 2
    _place_end(heap, i, rank, tie, job)


@kernel
def _drop_end(words):
    """Remove the first end from the heap."""
    heap, size = word_at(words, ENDS), word_at(words, RUNNING) - 1
    set_word(words, RUNNING, size)
    rank, tie, job = word_at(heap, 3 * size), word_at(heap, 3 * size + 1), word_at(heap, 3 * size + 2)
    i, child = 0, 1
    while child < size:
        if child + 1 < size and _earlier(heap, child + 1, word_at(heap, 3 * child), word_at(heap, 3 * child + 1)):
            child += 1
        if not _earlier(heap, child, rank, tie):
            break
        _place_end(heap, i, word_at(heap, 3 * child), word_at(heap, 3 * child + 1), word_at(heap, 3 * child + 2))
        i, child = child, 2 * child + 1
    _place_end(heap, i, rank, tie, job)


@kernel
def _earlier(heap, i, rank, tie):
    """Whether an entry of the heap comes before this rank."""
    own = word_at(heap, 3 * i)
    return own < rank or (own == rank and word_at(heap, 3 * i + 1) < tie)


@kernel
def _place_end(heap, i, rank, tie, job):
    set_word(heap, 3 * i, rank)
    set_word(heap, 3 * i + 1, tie)
    set_word(heap, 3 * i + 2, job)


def history_words(
    slots: np.ndarray, width: int, window: int, half_life: int, asked: Sequence[int], alike: bool
) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """The record for jobs with these places (int64, shape (jobs, keys)), and the arrays that it points to, to be kept alive.

    `asked`: for each of `MEASURES` the bits of the columns of which it is asked; `alike`: whether all jobs of a slot have the same score.
    The addresses of the loop's memory are set by `bind_history`.
    """
    size = len(slots)
    totals, ends = (np.zeros((3, width)), np.zeros((3, width), np.int64)), (np.zeros((size + 1, 3), np.int64), np.zeros(size + 2, np.int64))
    changes = np.zeros(2 * width + 1, np.int64), np.zeros(width, np.int64), np.full(width, np.nan)
    arrays = (slots, *totals, *ends, *changes)
    words = np.zeros(WORDS, np.int64)
    for place, array in zip((SLOTS, *OWN), arrays, strict=True):
        words[place] = array.ctypes.data
    words[SIZE], words[KEYS], words[WIDTH], words[ALIKE] = size, slots.shape[1], width, alike
    words[WINDOW], words[HALF_LIFE], words[SEEN] = window, half_life, np.iinfo(np.int64).min
    words[ASKED : ASKED + len(MEASURES)] = asked
    return words, arrays


def bind_history(words: np.ndarray, jobs: Records, notes: Records, state: Records) -> None:
    """Tell a record where the loop's jobs, its log of starts and their number are."""
    words[JOBS], words[NOTES] = jobs.ctypes.data, notes.ctypes.data
    kind = state.dtype
    words[COUNT] = state.__array_interface__["data"][0] + kind.fields["started"][1]
