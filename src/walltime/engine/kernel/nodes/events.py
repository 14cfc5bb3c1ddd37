"""Events that are handled in the same way by Slurm's loop (loop.py) and by the loops with first fit (easy.py, planned.py)."""

from walltime.compiled.jit import kernel
from walltime.engine.kernel.heap import push
from walltime.engine.kernel.memory import NEVER
from walltime.engine.kernel.pools.memory import list_of
from walltime.engine.kernel.running import release


@kernel
def next_event(state, traffic):
    """Return the time, s, of the next arrival, termination or, if jobs are left, change of an outage."""
    now = NEVER
    if state.arriving > 0:
        now = traffic.arrivals[0].rank
    if state.events > 0:
        now = min(now, traffic.ends[0].rank)
    if state.next_change < len(traffic.changes) and (now < NEVER or state.waiting > 0):
        now = min(now, traffic.changes[state.next_change].time)
    return now


@kernel
def change_outages(state, site, traffic):
    """Update the outages that become known, begin or end now; return the number of changes, and how many of them were not known before."""
    changes, news = 0, 0
    while state.next_change < len(traffic.changes) and traffic.changes[state.next_change].time == state.now:
        change = traffic.changes[state.next_change]
        news += change.phase > site.outages[change.outage].phase
        site.outages[change.outage].phase = change.phase
        state.next_change += 1
        changes += 1
    return changes, news


@kernel
def submit_followers(state, jobs, traffic, index):
    """Submit the jobs that wait for the end of this job and of no other."""
    followers = traffic.followers
    for follower in list_of(followers, index):
        if release(jobs[follower], index, state.now):
            push(traffic.arrivals, state.arriving, jobs[follower].submit, follower, follower)
            state.arriving += 1
