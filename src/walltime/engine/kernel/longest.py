"""The longest wait that there has been, for orders whose limit on waiting follows it, and for those that name it.

What counts at a time are the starts strictly before it, so it does not depend on the order of the events of an instant. As with
history.py, nothing is added to the loop: the log of the starts is read on from where it was left.
"""

from __future__ import annotations

import math

import numpy as np

from walltime.engine.kernel.jit import kernel
from walltime.engine.kernel.memory import JOB, NEVER, NOTE, Records
from walltime.engine.kernel.words import number_at, set_word, word_at

__all__ = ["bind_longest", "longest_at", "longest_words", "starving_after"]

(JOBS, NOTES, COUNT, SIZE, SEEN, READ, LONGEST, LIMIT, WORDS) = range(9)
"""`JOBS`, `NOTES`: addresses of the loop's records, `COUNT` that of the number of starts, of `SIZE` jobs. `SEEN`: the time up to which the
log is read; `READ`: so many starts; `LONGEST`: the longest wait among them, s; `LIMIT`: the share of it that is a limit (float64)."""
_JOB, _NOTE = (len(kind.names or ()) for kind in (JOB, NOTE))
_SUBMIT, _START = ((JOB.names or ()).index(name) for name in ("submit", "start"))


@kernel
def longest_at(words, now):
    """The longest wait of the jobs that started before now, s; 0 if there are none."""
    if word_at(words, SEEN) != now:
        set_word(words, SEEN, now)
        jobs, notes, read = word_at(words, JOBS), word_at(words, NOTES), word_at(words, READ)
        started = word_at(word_at(words, COUNT), 0)
        while read < started:
            job = word_at(notes, read * _NOTE)
            start = word_at(jobs, job * _JOB + _START)
            if start >= now:
                break
            wait = start - word_at(jobs, job * _JOB + _SUBMIT)
            if wait > word_at(words, LONGEST):
                set_word(words, LONGEST, wait)
            read += 1
        set_word(words, READ, read)
    return word_at(words, LONGEST)


@kernel
def starving_after(words, starvation, now):
    """After how many seconds of waiting a job comes first: longer than `starvation`, s, and than the limit; `words` is 0 without one."""
    if words == 0:
        return starvation
    allowed = number_at(words, LIMIT) * longest_at(words, now)
    return max(starvation, np.int64(math.floor(allowed)) if allowed < NEVER else NEVER)


def longest_words(jobs: int, limit: float) -> np.ndarray:
    """The record for so many jobs; the addresses of the loop's memory are set by `bind_longest`."""
    words = np.zeros(WORDS, np.int64)
    words[SIZE], words[SEEN] = jobs, np.iinfo(np.int64).min
    words[LIMIT : LIMIT + 1].view(np.float64)[0] = limit
    return words


def bind_longest(words: np.ndarray, jobs: Records, notes: Records, state: Records) -> None:
    """Tell a record where the loop's jobs, its log of starts and their number are."""
    words[JOBS], words[NOTES] = jobs.ctypes.data, notes.ctypes.data
    kind = state.dtype
    words[COUNT] = state.__array_interface__["data"][0] + kind.fields["started"][1]
