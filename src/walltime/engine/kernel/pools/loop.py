"""The event loop for machines of several pools: partitions, a second resource, outages, limits, dependencies, jobs that run at first.

It is to such machines what number/loop.py is to one number of processors, and is not used for these. The rules, which reference/pools.py
states again in plain Python:

* A job takes processors and second resource from the pools of its partition, in their order, as much from each as stays free for as
  long as it is planned to run; it keeps them until it ends.
* Jobs are considered in the order of their partition's tier, then the queue's order, then arrival. A job over one of its limits is
  passed over, as if it were not there.
* A job that cannot start is blocked. If each pool of its partition has fewer than `depth` reservations it gets one, at the earliest
  time at which it fits into the plan. On a machine of one pool this is FCFS, EASY, hybrid or conservative backfilling from scratch.
* Without backfilling, the pools of a blocked job are closed to the jobs behind it; with it, these may start where they do not delay a
  reservation.
* Kept reservations are conservative backfilling with compression (kept.py).
* An outage that is known in advance is part of the plan. Where capacity goes that is in use, the jobs run on, and what ends is not
  given out again until the outage is covered.
* Runtimes are predicted and corrected as on one number of processors (predictions.py).
"""

from __future__ import annotations

from walltime.engine.kernel.callbacks import call_notice
from walltime.engine.kernel.heap import drop_first, push
from walltime.engine.kernel.jit import called_kernel, kernel
from walltime.engine.kernel.memory import DONE, NEVER, PAUSED, STUCK
from walltime.engine.kernel.pools.kept import pass_with_kept_places
from walltime.engine.kernel.pools.passes import count_towards_limits, pass_with_fresh_places, sort_waiting_jobs
from walltime.engine.kernel.pools.plan import plan_of_running
from walltime.engine.kernel.predictions import correct_running, next_expiry, observe, predict_waiting


def run_cluster(
    state, rules, jobs, pools, pools_of, outages, changes, limits, limits_of, followers, arrivals, events, running, queue, candidates,
    given, plan, kept, predicting, budget,
):  # fmt: skip
    """Simulate until all jobs have started and ended, or until about `budget` steps have been taken; returns as `run` of loop.py does."""
    while budget > 0:
        now = _next_event(state, rules, jobs, changes, arrivals, events, running, predicting)
        if now == NEVER:
            return DONE if state.started == len(jobs) else STUCK
        state.now = now
        if predicting is not None:
            if not state.begun:
                _predict_those_that_run(state, rules, jobs, running, predicting)
                state.begun = 1
        while state.events > 0 and events[0].rank == now:
            _end_next(state, rules, jobs, pools, limits, limits_of, followers, arrivals, events, running, given, predicting)
        if predicting is not None:
            if correct_running(state, rules, jobs, running, predicting):
                state.broken = 1
        while state.next_change < len(changes) and changes[state.next_change].time == now:
            _change_capacity(state, pools, outages, changes)
        while state.arriving > 0 and arrivals[0].rank == now:
            _arrive(state, rules, jobs, arrivals, queue, predicting)
        if predicting is not None:
            if rules.predict_again:
                _predict_again(state, rules, jobs, queue, predicting)
        state.again = 1
        while state.again and (state.waiting > 0 or kept is not None):
            state.again = 0
            sort_waiting_jobs(state, rules, jobs, queue)
            plan_of_running(state, jobs, pools, outages, running, given, plan)
            budget -= state.waiting * (1 + state.steps)
            if kept is None:
                pass_with_fresh_places(
                    state, rules, jobs, pools, pools_of, limits, limits_of, events, running, queue, candidates, given, plan, predicting
                )
            else:
                pass_with_kept_places(
                    state,
                    rules,
                    jobs,
                    pools,
                    pools_of,
                    limits,
                    limits_of,
                    events,
                    running,
                    queue,
                    candidates,
                    given,
                    plan,
                    kept,
                    predicting,
                )
        budget -= 1
    return PAUSED


@kernel
def _next_event(state, rules, jobs, changes, arrivals, events, running, predicting):
    """Time of the next arrival, termination, due reservation, expiry of a prediction, or change of capacity.

    Changes alone are no reason to go on.
    """
    now = state.next_due
    if state.arriving > 0:
        now = min(now, arrivals[0].rank)
    if state.events > 0:
        now = min(now, events[0].rank)
    now = min(now, next_expiry(state, rules, jobs, running, predicting))
    if state.next_change < len(changes) and (now < NEVER or state.waiting > 0):
        now = min(now, changes[state.next_change].time)
    return now


@called_kernel
def _end_next(state, rules, jobs, pools, limits, limits_of, followers, arrivals, events, running, given, predicting):
    """The next termination: give back what the job had, and let those arrive that have waited for its end alone."""
    index = events[0].job
    drop_first(events, state.events)
    state.events -= 1
    place = 0
    while running[place].job != index:
        place += 1
    if running[place].expected > state.now:
        state.early = 1
    for i in range(place, state.running - 1):
        running[i] = running[i + 1]
    state.running -= 1
    for p in range(len(pools)):
        pools[p].free_procs += given[index, p, 0]
        pools[p].free_second += given[index, p, 1]
    count_towards_limits(jobs, limits, limits_of, index, -1)
    if predicting is not None:
        if rules.observe:
            observe(rules.observe, predicting.learning, index, jobs[index].runtime, max(state.now, 0))
    for k in range(followers.first[index], followers.first[index + 1]):
        follower = jobs[followers.items[k]]
        follower.pending -= 1
        if follower.after == index:
            follower.submit = max(state.now + follower.think, 0)  # jobs that run at first may have ended before the beginning
        else:
            follower.submit = max(follower.submit, state.now)
        if follower.pending == 0:
            follower.submit = max(follower.submit, state.now)
            push(arrivals, state.arriving, follower.submit, followers.items[k], followers.items[k])
            state.arriving += 1


@kernel
def _change_capacity(state, pools, outages, changes):
    """The next change: an outage becomes known, begins or ends. What is not as planned breaks the reservations."""
    change = changes[state.next_change]
    outage = outages[change.outage]
    outage.phase = change.phase
    if change.phase == 2:
        pools[outage.pool].free_procs -= outage.procs
        pools[outage.pool].free_second -= outage.second
    elif change.phase == 3:
        pools[outage.pool].free_procs += outage.procs
        pools[outage.pool].free_second += outage.second
    if change.phase == 1 or (change.phase == 2 and outage.known >= outage.begin):
        state.broken = 1
    state.next_change += 1


@kernel
def _arrive(state, rules, jobs, arrivals, queue, predicting):
    """The next arrival."""
    index = arrivals[0].job
    drop_first(arrivals, state.arriving)
    state.arriving -= 1
    jobs[index].arrival = state.arrivals
    state.arrivals += 1
    queue[state.waiting].job = index
    state.waiting += 1
    if predicting is not None:
        predict_waiting(rules, jobs, predicting, index, state.now)


@kernel
def _predict_again(state, rules, jobs, queue, predicting):
    """Predict all waiting jobs again; another length breaks the reservations."""
    for i in range(state.waiting):
        planned = jobs[queue[i].job].own_length
        predict_waiting(rules, jobs, predicting, queue[i].job, state.now)
        if jobs[queue[i].job].own_length != planned:
            state.broken = 1


@kernel
def _predict_those_that_run(state, rules, jobs, running, predicting):
    """Predict the jobs that run at first, in the order of their numbers, and sort them by their expected ends.

    To a predictor nothing happens before the beginning of the log: times below 0 are 0.
    """
    for index in range(len(jobs)):
        if jobs[index].start != -1:
            predict_waiting(rules, jobs, predicting, index, max(state.now, 0))
            if rules.started:
                call_notice(rules.started, predicting.learning, index, max(jobs[index].start, 0))
    for i in range(state.running):
        index, procs = running[i].job, running[i].procs
        expected = jobs[index].start + jobs[index].run_length
        k = i
        while k > 0 and running[k - 1].expected > expected:
            running[k] = running[k - 1]
            k -= 1
        running[k].expected, running[k].job, running[k].procs = expected, index, procs
