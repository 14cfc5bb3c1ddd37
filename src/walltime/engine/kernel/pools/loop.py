"""The event loop for machines of several pools: partitions, a second resource, outages, limits, dependencies, initially running jobs.

It corresponds to number/loop.py, which is for one pool. The rules, which reference/pools.py implements in plain Python:

* A job takes processors and second resource from the pools of its partition, in their order, as much from each as stays free for its
  planned runtime; it keeps them until it ends.
* Jobs are considered in the order of their partition's tier, then the queue's order, then arrival. A job over one of its limits is passed
  over, as if it were not there. So is a job that a window does not let start, now or because it would run into the window's hours.
* A job that cannot start is blocked. If each pool of its partition has fewer than `depth` reservations, the job gets one, at the earliest
  time at which it fits into the plan. On a machine of one pool this is FCFS, EASY, hybrid or conservative backfilling from scratch.
* Without backfilling, the pools of a blocked job are closed to the jobs behind it; with backfilling, these jobs may start where they do not
  delay a reservation.
* Kept reservations are conservative backfilling with compression (kept.py).
* An outage that is known in advance is part of the plan. If it takes capacity that is in use, the jobs continue to run, and released
  capacity is not allocated again until the outage is covered.
* Runtimes are predicted and corrected as on one pool (predictions.py).
"""

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.arrivals import next_arrival, take_arrival
from walltime.engine.kernel.heap import pop, push
from walltime.engine.kernel.memory import DONE, NEVER, PAUSED, REACHED, STUCK
from walltime.engine.kernel.pools.kept import pass_with_kept_reservations, release_rest
from walltime.engine.kernel.pools.limits import use_limits, wake_next
from walltime.engine.kernel.pools.memory import OPENS, SHUTS, list_of
from walltime.engine.kernel.pools.passes import pass_with_fresh_reservations, use_pools
from walltime.engine.kernel.pools.queue_index import enter_queue
from walltime.engine.kernel.predictions import correct_running, next_expiry, note_end, note_start, predict_waiting
from walltime.engine.kernel.running import enter_running, leave_running, release


def run_cluster(state, rules, jobs, machine, queue_index, plan, kept, budget):
    """Simulate until all jobs have started and ended, or until about `budget` steps have been taken; return the codes of number/loop.py.

    In a simulation that runs only up to a given time, jobs that would never start are not an error: other jobs may be submitted later.
    """
    predicting = machine.predicting
    while budget > 0 and (state.awaited == 0 or jobs[state.awaited - 1].start < 0):
        now = _next_event(state, rules, jobs, machine)
        if now == NEVER and state.started == len(jobs):
            return DONE
        if now > state.until:
            return REACHED
        if now == NEVER:
            return STUCK
        state.now = now
        _begin_predicting(state, rules, jobs, machine.running, predicting)
        while state.events > 0 and machine.events[0].rank == now:
            _end_next(state, rules, jobs, machine, queue_index, plan, kept)
        if correct_running(state, rules, jobs, machine.running, predicting):
            state.broken = state.freed = 1
        while state.next_change < len(machine.changes) and machine.changes[state.next_change].time == now:
            if machine.changes[state.next_change].phase < SHUTS:
                _change_capacity(state, machine)  # if this instant has another round, that keeps the reservations of this one
            else:
                _change_window(state, machine.limits, machine.changes)
            state.freed = 1
            state.next_change += 1
        while next_arrival(state, jobs, machine) == now:
            _arrive(state, rules, jobs, machine, queue_index)
        _predict_again(state, rules, jobs, queue_index.queue, predicting)
        state.again = 1
        while state.again and (state.waiting > 0 or kept is not None):
            state.again = 0
            pass_with_fresh_reservations(state, rules, jobs, machine, queue_index, plan, kept)
            pass_with_kept_reservations(state, rules, jobs, machine, queue_index, plan, kept)
            budget -= state.waiting + state.steps
        budget -= 1
    return PAUSED


@kernel
def _next_event(state, rules, jobs, machine):
    """Return the time of the next arrival, termination, due reservation, expiry, or change of capacity if jobs are left."""
    now = min(state.next_due, next_arrival(state, jobs, machine))
    if state.events > 0:
        now = min(now, machine.events[0].rank)
    now = min(now, next_expiry(state, rules, jobs, machine.running))
    if state.next_change < len(machine.changes) and (now < NEVER or state.waiting > 0 or state.away > 0):
        now = min(now, machine.changes[state.next_change].time)
    return now


@kernel
def _end_next(state, rules, jobs, machine, queue_index, plan, kept):
    """Handle the next termination: release the processors of the job, and submit the jobs that wait for no other job."""
    index = pop(machine.events, state.events)
    state.events -= 1
    job = jobs[index]
    expected = job.start + job.run_length
    leave_running(machine.running, state.running, expected, index)
    state.running -= 1
    state.freed = 1
    release_rest(state, machine, plan, kept, index, expected)
    use_pools(machine, job, index, -1)
    use_limits(jobs, machine.limits, machine.limits_of, index, -1)
    for number in list_of(machine.limits_of, index):
        limit = machine.limits[number]
        if limit.throttled > 0 and not limit.waking:
            wake_next(state, rules, jobs, machine.limits, queue_index, number, -1)
    note_end(rules, jobs, machine.predicting, index, max(state.now, 0))
    for follower in list_of(machine.followers, index):
        if release(jobs[follower], index, state.now):
            push(machine.later, state.later, jobs[follower].submit, follower, follower)
            state.later += 1


@kernel
def _change_capacity(state, machine):
    """Apply the next change: an outage becomes known, begins or ends. An unplanned one breaks the reservations."""
    change = machine.changes[state.next_change]
    outage = machine.outages[change.outage]
    pool = machine.pools[outage.pool]
    if change.phase == 3:
        state.outages -= 1
    elif outage.phase == 0:
        state.outages += 1
    outage.phase = change.phase
    if change.phase == 1 or (change.phase == 2 and outage.known >= outage.begin):
        state.broken = 1
    if change.phase == 2:
        pool.free_procs -= outage.procs
        pool.free_second -= outage.second
    elif change.phase == 3:
        pool.free_procs += outage.procs
        pool.free_second += outage.second


@kernel
def _change_window(state, limits, changes):
    change = changes[state.next_change]
    limit = limits[change.outage]
    limit.shut = 1 if change.phase == SHUTS else 0
    if limit.crossing and change.phase == OPENS:
        limit.until = NEVER
        for k in range(state.next_change + 1, len(changes)):
            if changes[k].outage == change.outage and changes[k].phase >= SHUTS:
                limit.until = changes[k].time
                break


@kernel
def _arrive(state, rules, jobs, machine, queue_index):
    index = take_arrival(state, jobs, machine, state.now)
    if rules.predicts:
        predict_waiting(rules, jobs, machine.predicting, index, state.now)
    enter_queue(state, rules, jobs, queue_index, index)


@kernel
def _predict_again(state, rules, jobs, queue, predicting):
    """Predict all waiting jobs again, if the rules require it; a changed length breaks the reservations."""
    if rules.predict_again:
        for i in range(state.waiting):
            if jobs[queue[i].job].start >= 0:
                continue
            planned = jobs[queue[i].job].own_length
            predict_waiting(rules, jobs, predicting, queue[i].job, state.now)
            if jobs[queue[i].job].own_length != planned:
                state.broken = 1


@called_kernel
def _begin_predicting(state, rules, jobs, running, predicting):
    """Predict the initially running jobs in order of index, and sort them by their expected ends; times below 0 count as 0."""
    if not rules.predicts or state.begun:
        return
    state.begun = 1
    for index in range(len(jobs)):
        if jobs[index].start != -1:
            predict_waiting(rules, jobs, predicting, index, max(state.now, 0))
            note_start(rules, predicting, index, max(jobs[index].start, 0))
    for i in range(state.running):
        index, procs = running[i].job, running[i].procs
        enter_running(running, i, jobs[index].start + jobs[index].run_length, index, procs)
