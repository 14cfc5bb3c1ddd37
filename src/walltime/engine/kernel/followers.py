"""Jobs that wait for the ends of others."""

from __future__ import annotations

from walltime.compiled.jit import kernel


@kernel
def release(follower, index, end):
    """Note that a job has ended for which another one waits, s; return whether the other one waits for no further job.

    It is submitted after its think time if it follows this job, else at once.
    """
    follower.pending -= 1
    if follower.after == index:
        follower.submit = max(end + follower.think, 0)  # jobs that run at first may have ended before the beginning
    else:
        follower.submit = max(follower.submit, end)
    return follower.pending == 0
