"""The running jobs, sorted by expected end, those that end at once in the order in which they started; and EASY's reservation.

The shadow time has another form where a loop needs one: number/easy.py draws that of the same head nearer instead of walking anew, and in
pools/ the head's place is by pool, so it is looked for in the plan.
"""

from __future__ import annotations

from walltime.compiled.jit import kernel


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


@kernel
def find_shadow(running, count, now, free, wanted):
    """When so many processors are free if nothing starts, how many more are free then, and how many jobs have ended by then.

    All of the `count` jobs whose expected end is the shadow time count, not only the first sufficient ones, and an overdue job is expected
    to end now; both are interpretations of mualem01, section 2.2.
    """
    shadow, i = now, 0
    while free < wanted or (i < count and running[i].expected <= shadow):
        free += running[i].procs
        shadow = max(shadow, running[i].expected)
        i += 1
    return shadow, free - wanted, i
