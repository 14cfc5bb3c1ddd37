"""Predictions for a log or a finished schedule, without scheduling."""

from __future__ import annotations

from walltime.engine.kernel.callbacks import call_notice
from walltime.engine.kernel.jit import entry, kernel
from walltime.engine.kernel.predictions import observe, predict


@entry
def replay(address, started, observed, predicting, submit, start, end, runtime, ending, starting, arrivals_first):
    """Predict each job at its submission, from the jobs that have ended by then.

    `address, started, observed`: of the compiled predictor. `submit, start, end, runtime`: int64 s, in order of arrival. `ending`:
    the jobs with known ends, in order of their ends, `starting` in order of their starts. Terminations come before arrivals; a job
    that starts only at this instant comes after them, even if it ends at once. With `arrivals_first` (0 or 1) arrivals come before
    terminations.
    """
    learning = predicting.learning
    following = 0
    next_start = 0
    for job in range(submit.size):
        now = submit[job]
        while following < ending.size:
            ended = ending[following]
            if end[ended] > now - arrivals_first or start[ended] >= now:
                break
            next_start = _note_starts(started, learning, start, starting, next_start, max(end[ended] - 1, start[ended]))
            observe(observed, learning, ended, runtime[ended], end[ended])
            following += 1
        next_start = _note_starts(started, learning, start, starting, next_start, now - 1)
        predict(address, predicting, job, now)


@kernel
def _note_starts(address, learning, start, starting, following, until):
    """Report the starts up to this time, if the predictor needs them; returns the index of the next one."""
    while following < starting.size and start[starting[following]] <= until:
        if address:
            call_notice(address, learning, starting[following], start[starting[following]])
        following += 1
    return following
