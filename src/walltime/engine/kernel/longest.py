"""The longest wait that there has been, for orders whose limit on waiting follows it, and for those that name it.

What counts at a time are the starts strictly before it, so it does not depend on the order of the events of an instant. As with
history.py, nothing is added to the loop: the log of the starts is read on from where it was left.
"""

from __future__ import annotations

import math

import numpy as np

from walltime.compiled.jit import kernel
from walltime.engine.kernel.memory import JOB, NEVER, NOTE, Records, record
from walltime.engine.kernel.words import records_at, word_at

LONGEST = np.dtype([(name, np.int64) for name in ("jobs", "notes", "started", "seen", "read", "longest")] + [("limit", np.float64)])
"""`jobs`, `notes`: addresses of the loop's records; `started`: that of the number of starts. `seen`: the time up to which the log is read;
`read`: so many starts; `longest`: the longest wait among them, s; `limit`: the share of it that is a limit."""

_longest_of, _job_at, _note_at = (records_at(kind) for kind in (LONGEST, JOB, NOTE))


@kernel
def longest_at(address, now):
    """The longest wait of the jobs that started before now, s; 0 if there are none."""
    own = _longest_of(address, 0)
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
    """After how many seconds of waiting a job comes first: longer than `starvation`, s, and than the limit; `address` is 0 without one."""
    if address == 0:
        return starvation
    allowed = _longest_of(address, 0).limit * longest_at(address, now)
    return max(starvation, np.int64(math.floor(allowed)) if allowed < NEVER else NEVER)


def new_longest(limit: float) -> Records:
    """The record; the addresses of the loop's memory are set by `bind_past` of history.py."""
    return record(LONGEST, seen=np.iinfo(np.int64).min, limit=limit)
