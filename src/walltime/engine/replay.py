"""Predictions beside a log or a finished schedule, without scheduling anything."""

from __future__ import annotations

from walltime.engine.jit import kernel
from walltime.engine.predict import observe, predict


@kernel
def replay(kind, learning, submit, start, end, runtime, ending):
    """Predict each job when it is submitted, from the jobs that have ended by then.

    `submit, start, end, runtime`: int64 s, in order of arrival. `ending`: the jobs whose ends are known, in the order of their
    ends. Terminations come before arrivals; a job that starts only at this instant comes after them, even if it ends at once.
    """
    following = 0
    for job in range(submit.size):
        now = submit[job]
        while following < ending.size:
            ended = ending[following]
            if end[ended] > now or start[ended] >= now:
                break
            observe(kind, learning, ended, runtime[ended], end[ended])
            following += 1
        predict(kind, learning, job, now)
