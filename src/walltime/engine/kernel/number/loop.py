"""START HERE: the event loop. Everything that happens to a simulated machine happens in `run`.

The events are arrivals and terminations (mualem01, section 3.1), the expiry of a running job's prediction, and, with kept reservations,
their reserved starts. After the events of an instant the policy makes a scheduling pass:

    fcfs, easy, relaxed              easy.py          at most the head of the queue has a reservation
      los, greedy hybrids            lookahead.py     ... and jobs are backfilled together
    hybrid, conservative-scratch     scratch.py       reservations are recomputed at every event
    selective, multiqueue            scratch.py       ... for some of the jobs
    slack                            slack.py         ... in their own order
    conservative                     conservative.py  every job keeps its reservation; early ends compress the schedule

Also in this folder: the running jobs (machine.py), an index of a long queue (index.py), and the jobs that may move in a compression
(candidates.py). In kernel/, for all kinds of machines: the data of the loop (memory.py), the queue (queue.py), the free processors over
future time (profile.py, which is recomputed; plan.py, which is kept), and predicted runtimes (predictions.py). Outside the loop: the
effects of backfilling (dynamics.py), and predictions without scheduling (replay.py). The public interface, with validation, is
interface/number.py; reference/number.py does the same in plain Python. Machines of several pools, and Slurm's nodes, have loops of their
own (pools/, nodes/).
"""

from walltime.compiled.jit import kernel
from walltime.engine.kernel.memory import DONE, NEVER, PAUSED, REACHED, STUCK
from walltime.engine.kernel.number.machine import end_expected_now, end_next, enter_queue
from walltime.engine.kernel.predictions import correct_expired, next_expiry, predict_arrivals


def make_pass(state, rules, jobs, machine, queue, ordered, reservations):
    """Stand in for the policy's pass, which replaces this function when the loop is compiled; returns about how many steps were taken."""
    raise NotImplementedError


def run(state, rules, jobs, machine, queue, ordered, reservations, budget):
    """Simulate until every job has started and ended, or until about `budget` steps over the queue or the profile have been taken.

    Returns DONE; PAUSED if the budget is used up or the awaited job has started (another call continues from there). Or REACHED if the next
    event is later than `state.until`; or STUCK if waiting jobs will never start, which only a faulty policy can cause. The loop is compiled
    separately for each kind of pass, on first use (load.py).
    """
    predicting = machine.predicting
    while budget > 0 and (state.awaited == 0 or jobs[state.awaited - 1].start < 0):
        now = _next_event(state, rules, jobs, machine)
        if now == NEVER:
            return DONE if state.started == jobs.size else STUCK
        if now > state.until:
            return REACHED
        state.now = now
        if _expires_quietly(state, rules, machine):
            correct_expired(state, rules, jobs, machine.running, predicting)
            budget -= 1
            continue
        arrived = state.queue_last
        quiet = _nothing_but_arrivals(state, rules, jobs, machine)
        if rules.sequential:
            _take_one_event(state, rules, jobs, machine, queue, predicting)
        else:
            _take_all_events(state, rules, jobs, machine, queue, predicting)
        predict_arrivals(state, rules, jobs, queue, predicting, arrived)
        while quiet and arrived < state.queue_last and queue[arrived].procs > state.free:
            arrived += 1
        if quiet and arrived == state.queue_last:  # none of the newcomers fits
            budget -= 1
            continue
        budget -= 1 + make_pass(state, rules, jobs, machine, queue, ordered, reservations)
    return PAUSED


@kernel
def _next_event(state, rules, jobs, machine):
    """Return the time of the next arrival, termination, due reservation, or expiry of a prediction."""
    now = min(state.next_due, state.next_arrival)
    if state.events > 0:
        now = min(now, machine.events[0].rank)
    return min(now, next_expiry(state, rules, jobs, machine.running))


@kernel
def _expires_quietly(state, rules, machine):
    """Return whether only predictions of running jobs expire now, and the rules make no pass for that."""
    if rules.quiet_expiry == 0 or state.next_due == state.now or state.next_arrival == state.now:
        return False
    return state.events == 0 or machine.events[0].rank > state.now


@kernel
def _nothing_but_arrivals(state, rules, jobs, machine):
    """Return whether only jobs arrive now, and the rules make no pass for those that do not fit."""
    if not rules.predicts or not rules.quiet_arrivals or state.next_arrival != state.now:
        return False
    if not rules.quiet_expiry and next_expiry(state, rules, jobs, machine.running) == state.now:
        return False
    return rules.sequential == 1 or state.events == 0 or machine.events[0].rank > state.now


@kernel
def _take_all_events(state, rules, jobs, machine, queue, predicting):
    """Handle all terminations, then expired predictions, then all arrivals (mualem01, section 3.1, does not define the order)."""
    while state.events > 0 and machine.events[0].rank == state.now:
        end_next(state, rules, jobs, machine)
    correct_expired(state, rules, jobs, machine.running, predicting)
    while state.next_arrival == state.now:
        enter_queue(state, jobs, machine, queue)


@kernel
def _take_one_event(state, rules, jobs, machine, queue, predicting):
    """Handle one of several simultaneous events, arrivals first; expired predictions are corrected before, or are the event themselves."""
    end_expected_now(state, rules, jobs, machine)
    correct_expired(state, rules, jobs, machine.running, predicting)
    if state.next_arrival == state.now:
        enter_queue(state, jobs, machine, queue)
    elif state.events > 0 and machine.events[0].rank == state.now:
        end_next(state, rules, jobs, machine)
