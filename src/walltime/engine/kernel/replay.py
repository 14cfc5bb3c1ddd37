"""Predictions for a log or a finished schedule, without scheduling."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walltime.compiled.jit import entry, kernel
from walltime.engine.kernel.predictions import note_start, observe, predict

ADDRESSES = np.dtype([(name, np.int64) for name in ("predict", "started", "observe")])
"""Addresses of the functions of a compiled predictor; 0 for none."""


class LogColumns(NamedTuple):
    """Recorded jobs in order of arrival: `submit, start, end, runtime` (int64 s).

    `ending`: the jobs with known ends, in order of their ends; `starting`: the jobs with known starts, in order of their starts.
    """

    submit: Any
    start: Any
    end: Any
    runtime: Any
    ending: Any
    starting: Any


@entry
def replay(addresses, predicting, past, arrivals_first):
    """Predict each job at its submission, from the jobs that have ended by then.

    Terminations come before arrivals, except that a job which starts only at this instant comes after them, even if it ends at once. With
    `arrivals_first` (0 or 1), arrivals come before terminations.
    """
    start, end, ending = past.start, past.end, past.ending
    following = 0
    next_start = 0
    for job in range(past.submit.size):
        now = past.submit[job]
        while following < ending.size:
            ended = ending[following]
            if end[ended] > now - arrivals_first or start[ended] >= now:
                break
            next_start = _note_starts(addresses, predicting, past, next_start, max(end[ended] - 1, start[ended]))
            observe(addresses.observe, predicting.learning, ended, past.runtime[ended], end[ended])
            following += 1
        next_start = _note_starts(addresses, predicting, past, next_start, now - 1)
        predict(addresses.predict, predicting, job, now)


@kernel
def _note_starts(addresses, predicting, past, following, until):
    """Report the starts up to this time, and return the index of the next one."""
    start, starting = past.start, past.starting
    while following < starting.size and start[starting[following]] <= until:
        note_start(addresses, predicting, starting[following], start[starting[following]])
        following += 1
    return following
