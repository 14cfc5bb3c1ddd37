"""The running jobs, sorted by expected end; those that are expected to end at once are in the order in which they started."""

from __future__ import annotations

from walltime.engine.kernel.jit import kernel

__all__ = ["enter_running", "leave_running", "overdue"]


@kernel
def enter_running(running, count, expected, job, procs):
    """Put a job among `count` that run."""
    i = count
    while i > 0 and running[i - 1].expected > expected:
        running[i] = running[i - 1]
        i -= 1
    running[i].expected, running[i].job, running[i].procs = expected, job, procs


@kernel
def leave_running(running, count, expected, job):
    """Take a job out of `count` that run; returns the place that it had."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if running[middle].expected < expected:
            low = middle + 1
        else:
            high = middle
    while running[low].job != job:
        low += 1
    for i in range(low, count - 1):
        running[i] = running[i + 1]
    return low


@kernel
def overdue(state, running):
    """Whether a running job has passed its expected end."""
    return state.running > 0 and running[0].expected <= state.now
