"""The longest wait that there has been, for orders whose limit on waiting follows it.

What counts at a time are the starts strictly before it, so it does not depend on the order of the events of an instant. As with
kernel/history.py, nothing is added to the loop: the log of the starts is read on from where it was left. The address of the record reaches
the compiled order as one of its numbers, which is exact below 2**53.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from walltime.engine.kernel.memory import JOB, NOTE, Records
from walltime.engine.kernel.words import set_word, word_at

__all__ = ["bind_longest", "longest_words", "with_longest"]

(JOBS, NOTES, COUNT, SIZE, SEEN, READ, LONGEST, WORDS) = range(8)
"""`JOBS`, `NOTES`: addresses of the loop's records, `COUNT` that of the number of starts, of `SIZE` jobs. `SEEN`: the time up to which the
log is read; `READ`: so many starts; `LONGEST`: the longest wait among them, s."""
_JOB, _NOTE = (len(kind.names or ()) for kind in (JOB, NOTE))
_SUBMIT, _START = ((JOB.names or ()).index(name) for name in ("submit", "start"))
MOST = sys.float_info.max


@numba.njit(nogil=True)
def longest_at(address, now):
    """The longest wait of the jobs that started before now, s; 0 if there are none."""
    if word_at(address, SEEN) != now:
        set_word(address, SEEN, now)
        jobs, notes, read = word_at(address, JOBS), word_at(address, NOTES), word_at(address, READ)
        started = word_at(word_at(address, COUNT), 0)
        while read < started:
            job = word_at(notes, read * _NOTE)
            start = word_at(jobs, job * _JOB + _START)
            if start >= now:
                break
            wait = start - word_at(jobs, job * _JOB + _SUBMIT)
            if wait > word_at(address, LONGEST):
                set_word(address, LONGEST, wait)
            read += 1
        set_word(address, READ, read)
    return word_at(address, LONGEST)


@numba.njit(nogil=True)
def limited(score, wait, floor, limit, longest):
    """The score of an order with a limit: infinity for who has waited for longer than `floor` (s) and than this share of `longest` (s)."""
    if wait > floor and wait > limit * longest:
        return math.inf
    return -math.inf if math.isnan(score) else min(score, MOST)


@functools.lru_cache(maxsize=256)
def with_longest(
    scoring: Callable[..., float], asked: tuple[str, ...], numbers: int, has_limit: bool
) -> tuple[Callable[..., float], tuple[str, ...]]:
    """A function of an order that depends on the longest wait, for `compile_score`, and what it asks for.

    It takes the order's numbers, then the two of the limit if it has one, s and as a share of the longest wait, then the record's address.
    """
    names = ("wait", "submit", *(name for name in asked if name not in ("wait", "submit", "longest")))
    own = [f"k{place}" for place in range(numbers)]
    given = ", ".join([*names, *own, *(("floor", "limit") if has_limit else ()), "address"])
    score = f"1.0 * scoring({', '.join([*asked, *own])})"
    result = f"limited({score}, wait, floor, limit, longest)" if has_limit else score
    known: dict[str, Any] = {"scoring": numba.njit(nogil=True, error_model="numpy")(scoring), "limited": limited, "longest_at": longest_at}
    known["int64"] = np.int64
    exec(f"def score({given}):\n    longest = longest_at(int64(address), wait + submit)\n    return {result}", known)
    return known["score"], names


def longest_words(jobs: int) -> np.ndarray:
    """The record for so many jobs; the addresses of the loop's memory are set by `bind_longest`."""
    words = np.zeros(WORDS, np.int64)
    words[SIZE], words[SEEN] = jobs, np.iinfo(np.int64).min
    return words


def bind_longest(words: np.ndarray, jobs: Records, notes: Records, state: Records) -> None:
    """Tell a record where the loop's jobs, its log of starts and their number are."""
    words[JOBS], words[NOTES] = jobs.ctypes.data, notes.ctypes.data
    kind = state.dtype
    words[COUNT] = state.__array_interface__["data"][0] + kind.fields["started"][1]
