"""The running jobs, sorted by expected end, then by start; EASY's reservation; and jobs that are submitted after the ends of others.

Two loops find the shadow time differently: number/easy.py moves the shadow time of an unchanged head instead of searching again, and pools/
finds it in the plan, because the head's reservation consists of shares of pools.
"""

from walltime.compiled.jit import kernel
from walltime.engine.kernel.heap import push
from walltime.engine.kernel.predictions import note_start
from walltime.engine.kernel.search import first_from


@kernel
def enter_running(running, count, expected, job, procs):
    """Insert a job among `count` running jobs."""
    i = count
    while i > 0 and running[i - 1].expected > expected:
        running[i] = running[i - 1]
        i -= 1
    running[i].expected, running[i].job, running[i].procs = expected, job, procs


@kernel
def leave_running(running, count, expected, job):
    """Remove a job from `count` running jobs, and return the index that it had."""
    place = first_from(running.expected, 0, count, expected)
    while running[place].job != job:
        place += 1
    for i in range(place, count - 1):
        running[i] = running[i + 1]
    return place


@kernel
def run_job(state, rules, jobs, machine, job):
    """Start a job now: add its end to the events, insert it into the running jobs, and return its expected end."""
    own = jobs[job]
    note_start(rules, machine.predicting, job, state.now)
    push(machine.events, state.events, state.now + own.runtime, state.started, job)
    expected = state.now + own.run_length
    enter_running(machine.running, state.running, expected, job, own.procs)
    state.events += 1
    state.started += 1
    state.running += 1
    return expected


@kernel
def overdue(state, running):
    """Return whether a running job has passed its expected end."""
    return state.running > 0 and running[0].expected <= state.now


@kernel
def find_shadow(running, count, now, free, wanted):
    """Return the shadow time, the extra processors, and how many running jobs have ended by then.

    All of the `count` jobs whose expected end is the shadow time count, not only as many as the head needs, and an overdue job is expected
    to end now; both are interpretations of mualem01, section 2.2.
    """
    shadow, i = now, 0
    while free < wanted or (i < count and running[i].expected <= shadow):
        free += running[i].procs
        shadow = max(shadow, running[i].expected)
        i += 1
    return shadow, free - wanted, i


@kernel
def release(follower, index, end):
    """Note that a job for which another waits has ended (s); return whether the other job waits for no other job.

    The other job is submitted after its think time if it follows this job, else at once.
    """
    follower.pending -= 1
    if follower.after == index:
        follower.submit = max(end + follower.think, 0)  # initially running jobs may have ended before the beginning
    else:
        follower.submit = max(follower.submit, end)
    return follower.pending == 0
