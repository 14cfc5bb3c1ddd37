"""A run along a schedule, from event to event, that compares the policy's starts with the schedule's; compiled.

Start here: `run_along`. Ends and arrivals are taken from the schedule, so every decision is made in the state that the schedule has
reached. At a difference, the run returns; the next call continues as the schedule does.
"""

import types

from walltime.auditor.passes import state as s
from walltime.auditor.passes.places import mark_running, note, remove, score_waiting, sort_running, sort_waiting
from walltime.auditor.passes.profile import occupy
from walltime.auditor.passes.singly import BY_HEAD
from walltime.auditor.passes.together import BY_PLAN, together
from walltime.compiled.jit import called_kernel, entry, kernel

PASSES = {**BY_HEAD, **BY_PLAN, "lookahead": together}
"""Passes by the kinds of `walltime.policy.PassSpec`."""


@kernel
def can_be_corrected(rules, jobs, job):
    """Return whether a running job is planned with a prediction that is shorter than its estimate and can be corrected."""
    return rules.correction != s.NOT_CORRECTED and jobs[job].run < jobs[job].estimate


@kernel
def may_arrive(jobs, job):
    """Return whether a job has not arrived yet and does not wait for the end of another job."""
    return jobs[job].phase == s.COMING and (jobs[job].after < 0 or jobs[jobs[job].after].phase == s.ENDED)


@kernel
def next_arrival(state, jobs):
    """Return the job that arrives next, or -1 if it waits for the end of another job, which comes first."""
    for job in range(state.next_arrival, len(jobs)):
        if jobs[job].phase == s.COMING:
            return job if may_arrive(jobs, job) else -1
    return -1


@called_kernel
def next_event(state, rules, jobs, lists):
    """Return the time of the next event, and whether the expiry of predictions is all that happens then."""
    others, expiry = s.NEVER, s.NEVER
    if state.gone > 0:
        others = state.now
    for k in range(state.running):
        job = lists.running[k]
        others = min(others, jobs[job].end)
        if can_be_corrected(rules, jobs, job):
            expiry = min(expiry, jobs[job].start + jobs[job].run)
    arrival = next_arrival(state, jobs)
    if arrival >= 0:
        others = min(others, jobs[arrival].submit)
    if rules.keeps == 1 and state.overdue == 0:
        for k in range(state.waiting):
            if jobs[lists.queue[k]].reservation >= 0:
                others = min(others, jobs[lists.queue[k]].reservation)
    return min(others, expiry), expiry < others


@called_kernel
def end_job(state, rules, jobs, lists, profile, job):
    """End a running job."""
    remove(lists.running, state.running, job)
    state.running -= 1
    state.free += jobs[job].procs
    expected = jobs[job].start + jobs[job].run
    if state.now < expected:
        state.ended_early = 1
        if profile is not None:  # noqa: SIM102 - the compiler leaves it out only if this test stands alone
            if rules.keeps == 1 and state.planned == 1:
                occupy(state, profile, state.now, expected, -jobs[job].procs)
    observe(state, jobs, lists, job)


@kernel
def observe(state, jobs, lists, job):
    """Record that the scheduler has seen the end of a job, and update the slowdowns of ended jobs."""
    jobs[job].phase = s.ENDED
    state.terminated = 1
    ran = max(jobs[job].runtime, 10)
    state.slowdowns += 1000 * max(jobs[job].end - jobs[job].submit, ran) // ran
    state.ended += 1
    note(state, lists, s.OBSERVED, job)


@called_kernel
def arrive(state, jobs, lists, job):
    """Add a submitted job to the waiting ones."""
    jobs[job].phase, jobs[job].arrival = s.WAITING, state.arrived
    for waiting in (lists.queue, lists.line, lists.back):
        waiting[state.waiting] = job
    state.waiting += 1
    state.arrived += 1
    state.unsorted += 1
    note(state, lists, s.ARRIVED, job)


@called_kernel
def correct_expired(state, rules, jobs, lists):
    """Correct the expected runtimes of running jobs that have outlived them (tsafrir07, section 3)."""
    changed = False
    for k in range(state.running):
        job = lists.running[k]
        if not can_be_corrected(rules, jobs, job) or jobs[job].start + jobs[job].run > state.now:
            continue
        elapsed, estimate, steps = state.now - jobs[job].start, jobs[job].estimate, jobs[job].corrections
        length = estimate
        if rules.correction == s.DOUBLED:
            length = 2 * jobs[job].run
        elif rules.correction == s.EXTENDED:
            length = jobs[job].run + jobs[job].predicted
        elif rules.correction == s.HALVED:
            length = elapsed + max((estimate - elapsed) // 2, 1)
        elif rules.correction == s.BY_PREDICTION and steps < len(lists.increments):
            length = jobs[job].predicted + lists.increments[steps]
        elif rules.correction == s.BY_ELAPSED and steps < len(lists.increments):
            length = elapsed + lists.increments[steps]
        jobs[job].run = min(length, estimate) if rules.capped == 1 else length
        jobs[job].corrections += 1
        changed = True
    if changed:
        state.void, state.head = 1, -1
        sort_running(jobs, lists.running, state.running)


@called_kernel
def nothing_but_arrivals(state, rules, jobs, lists):
    """Return whether only arrivals happen now, and the policy makes no pass for arrivals that do not fit."""
    if rules.fitting == 0:
        return False
    ends, expires, arrival = state.gone > 0, False, next_arrival(state, jobs)
    for k in range(state.running):
        job = lists.running[k]
        ends = ends or jobs[job].end == state.now
        expires = expires or (can_be_corrected(rules, jobs, job) and jobs[job].start + jobs[job].run == state.now)
    arrives = arrival >= 0 and jobs[arrival].submit == state.now
    if not arrives or (ends and rules.coincident != s.SEQUENTIAL):
        return False
    return rules.silent == 1 or not expires


@kernel
def first_arrival(state, jobs):
    """Return the next job that arrives now, or -1."""
    for job in range(state.next_arrival, len(jobs)):
        if jobs[job].submit > state.now:
            return -1
        if may_arrive(jobs, job):
            return job
    return -1


@called_kernel
def first_ending(state, jobs, lists):
    """Return the job that started first among those that end now or are already gone; -1 for none."""
    first = -1
    for k in range(state.running):
        job = lists.running[k]
        if jobs[job].end <= state.now and (first < 0 or jobs[job].ticket < jobs[first].ticket):
            first = job
    for k in range(state.gone):
        job = lists.other[len(lists.other) - 1 - k]
        if first < 0 or jobs[job].ticket < jobs[first].ticket:
            first = job
    return first


@called_kernel
def all_events(state, rules, jobs, lists, profile):
    """Handle all terminations of this instant, in the order of starts, then corrections, then all arrivals."""
    ending = first_ending(state, jobs, lists)
    while ending >= 0:
        end_job(state, rules, jobs, lists, profile, ending)
        ending = first_ending(state, jobs, lists)
    correct_expired(state, rules, jobs, lists)
    job = first_arrival(state, jobs)
    while job >= 0:
        arrive(state, jobs, lists, job)
        job = first_arrival(state, jobs)


@called_kernel
def one_event(state, rules, jobs, lists, profile):
    """Handle one event: an arrival, else the termination of the job that started first; with ONE_BY_ONE, the termination comes first.

    Jobs that end when expected are gone (their processors are free) before their termination is handled, unless arrivals come first. They
    are listed at the end of `lists.other`.
    """
    size = len(lists.other)
    if rules.coincident != s.ARRIVALS_FIRST:
        k = 0
        while k < state.running:
            job = lists.running[k]
            if jobs[job].end == state.now and jobs[job].start + jobs[job].run == state.now:
                remove(lists.running, state.running, job)
                state.running -= 1
                state.free += jobs[job].procs
                jobs[job].phase = s.GONE
                state.gone += 1
                lists.other[size - state.gone] = job
            else:
                k += 1
    correct_expired(state, rules, jobs, lists)
    arrival = first_arrival(state, jobs)
    if arrival >= 0 and rules.coincident != s.ONE_BY_ONE:
        arrive(state, jobs, lists, arrival)
        return
    ending = first_ending(state, jobs, lists)
    if ending < 0:
        if arrival >= 0:
            arrive(state, jobs, lists, arrival)
    elif jobs[ending].phase == s.GONE:
        place = size - state.gone
        while lists.other[place] != ending:
            place += 1
        while place > size - state.gone:
            lists.other[place] = lists.other[place - 1]
            place -= 1
        state.gone -= 1
        observe(state, jobs, lists, ending)
    else:
        end_job(state, rules, jobs, lists, profile, ending)


def _one_of(kinds):
    """Return a compiled function that runs the pass for `rules.kind`, which must be one of `kinds`."""
    number, make = list(PASSES).index(kinds[0]), PASSES[kinds[0]]
    other = _one_of(kinds[1:]) if len(kinds) > 1 else make

    @called_kernel
    def make_pass(state, rules, jobs, lists, profile):
        return make(state, rules, jobs, lists, profile) if rules.kind == number else other(state, rules, jobs, lists, profile)

    return make_pass


decide_by_head, decide_by_plan = _one_of(list(BY_HEAD)), _one_of(list(BY_PLAN))


@called_kernel
def decide(state, rules, jobs, lists, profile, tables):
    """Run the policy's pass."""
    score_waiting(state, rules, jobs, lists)
    first = 0 if rules.dynamic == 1 else state.waiting - state.unsorted
    sort_waiting(jobs, lists.line, first, state.waiting, False)
    sort_waiting(jobs, lists.back, first, state.waiting, True)
    state.unsorted = 0
    if tables is not None:
        return together(state, rules, jobs, lists, tables)
    if profile is not None:
        return decide_by_plan(state, rules, jobs, lists, profile)
    return decide_by_head(state, rules, jobs, lists, None)


@called_kernel
def follow(state, rules, jobs, lists, until):
    """Start the jobs that the schedule starts up to `until` but the policy has not started; drop the policy's plan."""
    while state.next_start < len(jobs):
        job = lists.by_start[state.next_start]
        if jobs[job].start > until or jobs[job].phase == s.COMING:  # a job that has not arrived waits for an end at this instant
            break
        if jobs[job].phase == s.WAITING:
            mark_running(state, rules, jobs, lists, job)
        state.next_start += 1
    give_up_plan(state, jobs, lists)


@kernel
def give_up_plan(state, jobs, lists):
    """Drop the policy's plan, because the schedule does something else."""
    for k in range(state.waiting):
        jobs[lists.queue[k]].reservation = -1
    state.void, state.planned, state.head = 1, 0, -1


@kernel
def next_start(state, jobs, lists):
    """Return the job that the schedule starts next among those that the policy has not started; -1 for none."""
    while state.next_start < len(jobs):
        job = lists.by_start[state.next_start]
        if jobs[job].phase == s.COMING or jobs[job].phase == s.WAITING:
            return job
        state.next_start += 1
    return -1


def run_along(state, rules, jobs, lists, profile, tables, steps):
    """Continue along the schedule for at most `steps` events; return DONE, PAUSED, ASKS, LEFT or EARLY.

    `profile`, `tables`: None if the policy does not need them. After ASKS, the caller updates the predictor from the log of events and
    scores the waiting jobs before it calls again.
    """
    for _ in range(steps):
        if state.resume == 0:
            time, expiry_alone = next_event(state, rules, jobs, lists)
            job = next_start(state, jobs, lists)
            if job >= 0 and jobs[job].phase == s.WAITING and jobs[job].start < time:
                # The schedule starts the job between two events, but policies start jobs only at events.
                moment = max(jobs[job].start, state.now)
                if state.settled != moment:
                    state.now, state.settled, state.culprit = moment, moment, job
                    return s.EARLY
                follow(state, rules, jobs, lists, moment)
                continue
            if time == s.NEVER:
                return s.DONE
            state.now = max(time, state.now)
            if rules.silent == 1 and expiry_alone:
                correct_expired(state, rules, jobs, lists)
                continue
            quiet, waited = nothing_but_arrivals(state, rules, jobs, lists), state.waiting
            if rules.coincident == s.BATCH:
                all_events(state, rules, jobs, lists, profile)
            else:
                one_event(state, rules, jobs, lists, profile)
            while state.next_arrival < len(jobs) and jobs[state.next_arrival].phase != s.COMING:
                state.next_arrival += 1
            if quiet:
                for k in range(waited, state.waiting):
                    quiet = quiet and jobs[lists.queue[k]].procs > state.free
            if rules.asks == 1 and (state.unsorted > 0 or (rules.dynamic == 1 and state.waiting > 0)):
                state.resume = s.QUIET if quiet else s.PASS
                return s.ASKS
        else:
            quiet = state.resume == s.QUIET
            state.resume = 0
        if not quiet and state.settled != state.now and not decide(state, rules, jobs, lists, profile, tables):
            state.settled = state.now
            give_up_plan(state, jobs, lists)
            return s.LEFT
        if rules.asks == 0:
            state.logged = 0
    return s.PAUSED


def _named(name):
    """Return the run as a function with this name; it is compiled separately, without the branches for the memory that it lacks."""
    own = types.FunctionType(run_along.__code__, run_along.__globals__, name)
    own.__qualname__, own.__module__ = name, run_along.__module__
    return entry(own)


RUNS = {name: _named(f"run_{name}") for name in ("heads", "plans", "combinations")}
"""The runs for policies that reserve at most for the head, that plan on a profile, and that compare combinations of jobs."""
