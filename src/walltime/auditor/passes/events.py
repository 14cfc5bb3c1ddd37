"""A run along a schedule, in compiled code: from event to event, the policy decides what starts, and the schedule says what does.

Start here: `run_along`. What has ended and arrived by an instant is taken from the schedule, so every decision is made in the state that
the schedule has led to. Where it differs, the run stops, and goes on as the schedule says.
"""

from __future__ import annotations

import types

from walltime.auditor.passes.places import note, put_to_work, score_waiting, sort_running, sort_waiting
from walltime.auditor.passes.profile import occupy
from walltime.auditor.passes.singly import BY_HEAD
from walltime.auditor.passes.state import (
    ARRIVALS_FIRST,
    ARRIVED,
    ASKS,
    BATCH,
    BY_ELAPSED,
    BY_PREDICTION,
    COMING,
    DONE,
    DOUBLED,
    EARLY,
    ENDED,
    EXTENDED,
    GONE,
    HALVED,
    LEFT,
    NEVER,
    NOT_CORRECTED,
    OBSERVED,
    ONE_BY_ONE,
    PASS,
    PAUSED,
    QUIET,
    SEQUENTIAL,
    WAITING,
)
from walltime.auditor.passes.together import BY_PLAN, together
from walltime.compiled.jit import called_kernel, entry, kernel

PASSES = {**BY_HEAD, **BY_PLAN, "lookahead": together}
"""The passes by the kinds of `walltime.policy.PassSpec`."""


@kernel
def can_be_corrected(rules, jobs, job):
    """Whether a running job's prediction is believed, and short of its estimate."""
    return rules.correction != NOT_CORRECTED and jobs[job].run < jobs[job].estimate


@kernel
def may_arrive(jobs, job):
    """Whether a job to come waits for nobody's end."""
    return jobs[job].phase == COMING and (jobs[job].after < 0 or jobs[jobs[job].after].phase == ENDED)


@kernel
def next_arrival(state, jobs):
    """The job that arrives next, or -1 if it waits for the end of another, which comes first."""
    for job in range(state.next_arrival, len(jobs)):
        if jobs[job].phase == COMING:
            return job if may_arrive(jobs, job) else -1
    return -1


@called_kernel
def next_event(state, rules, jobs, lists):
    """The time of the next event, and whether it is the expiry of predictions alone."""
    others, expiry = NEVER, NEVER
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
    """A running job ends."""
    place = 0
    while lists.running[place] != job:
        place += 1
    for k in range(place, state.running - 1):
        lists.running[k] = lists.running[k + 1]
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
    """The scheduler is told that a job has ended."""
    jobs[job].phase = ENDED
    state.terminated = 1
    ran = max(jobs[job].runtime, 10)
    state.slowdowns += 1000 * max(jobs[job].end - jobs[job].submit, ran) // ran
    state.ended += 1
    note(state, lists, OBSERVED, job)


@called_kernel
def arrive(state, jobs, lists, job):
    """A job is submitted."""
    jobs[job].phase, jobs[job].arrival = WAITING, state.arrived
    for waiting in (lists.queue, lists.line, lists.back):
        waiting[state.waiting] = job
    state.waiting += 1
    state.arrived += 1
    state.unsorted += 1
    note(state, lists, ARRIVED, job)


@called_kernel
def correct_expired(state, rules, jobs, lists):
    """Expect more of the running jobs that have outlived what was expected of them (tsafrir07, section 3)."""
    changed = False
    for k in range(state.running):
        job = lists.running[k]
        if not can_be_corrected(rules, jobs, job) or jobs[job].start + jobs[job].run > state.now:
            continue
        elapsed, estimate, steps = state.now - jobs[job].start, jobs[job].estimate, jobs[job].corrections
        length = estimate
        if rules.correction == DOUBLED:
            length = 2 * jobs[job].run
        elif rules.correction == EXTENDED:
            length = jobs[job].run + jobs[job].predicted
        elif rules.correction == HALVED:
            length = elapsed + max((estimate - elapsed) // 2, 1)
        elif rules.correction == BY_PREDICTION and steps < len(lists.increments):
            length = jobs[job].predicted + lists.increments[steps]
        elif rules.correction == BY_ELAPSED and steps < len(lists.increments):
            length = elapsed + lists.increments[steps]
        jobs[job].run = min(length, estimate) if rules.capped == 1 else length
        jobs[job].corrections += 1
        changed = True
    if changed:
        state.void, state.head = 1, -1
        sort_running(jobs, lists.running, state.running)


@called_kernel
def nothing_but_arrivals(state, rules, jobs, lists):
    """Whether only jobs arrive now, and the policy makes no pass for those that do not fit."""
    if rules.fitting == 0:
        return False
    ends, expires, arrival = state.gone > 0, False, next_arrival(state, jobs)
    for k in range(state.running):
        job = lists.running[k]
        ends = ends or jobs[job].end == state.now
        expires = expires or (can_be_corrected(rules, jobs, job) and jobs[job].start + jobs[job].run == state.now)
    arrives = arrival >= 0 and jobs[arrival].submit == state.now
    if not arrives or (ends and rules.coincident != SEQUENTIAL):
        return False
    return rules.silent == 1 or not expires


@kernel
def first_arrival(state, jobs):
    """The next job that arrives now, or -1."""
    for job in range(state.next_arrival, len(jobs)):
        if jobs[job].submit > state.now:
            return -1
        if may_arrive(jobs, job):
            return job
    return -1


@called_kernel
def first_ending(state, jobs, lists, count):
    """Of the running jobs that end now, and of those already gone, the one that started first; -1 for none."""
    first = -1
    for k in range(state.running):
        job = lists.running[k]
        if jobs[job].end <= state.now and (first < 0 or jobs[job].ticket < jobs[first].ticket):
            first = job
    for k in range(state.gone):
        job = lists.other[count - 1 - k]
        if first < 0 or jobs[job].ticket < jobs[first].ticket:
            first = job
    return first


@called_kernel
def all_events(state, rules, jobs, lists, profile):
    """All terminations of this instant, in the order of starts, then corrections, then all arrivals."""
    ending = first_ending(state, jobs, lists, 0)
    while ending >= 0:
        end_job(state, rules, jobs, lists, profile, ending)
        ending = first_ending(state, jobs, lists, 0)
    correct_expired(state, rules, jobs, lists)
    job = first_arrival(state, jobs)
    while job >= 0:
        arrive(state, jobs, lists, job)
        job = first_arrival(state, jobs)


@called_kernel
def one_event(state, rules, jobs, lists, profile):
    """An arrival, else the termination of the job that started first; or the other way round.

    Jobs that end when they are expected to count as gone before their termination, but not where arrivals come first. They are kept at the
    end of `lists.other`.
    """
    size = len(lists.other)
    if rules.coincident != ARRIVALS_FIRST:
        k = 0
        while k < state.running:
            job = lists.running[k]
            if jobs[job].end == state.now and jobs[job].start + jobs[job].run == state.now:
                for at in range(k, state.running - 1):
                    lists.running[at] = lists.running[at + 1]
                state.running -= 1
                state.free += jobs[job].procs
                jobs[job].phase = GONE
                state.gone += 1
                lists.other[size - state.gone] = job
            else:
                k += 1
    correct_expired(state, rules, jobs, lists)
    arrival = first_arrival(state, jobs)
    if arrival >= 0 and rules.coincident != ONE_BY_ONE:
        arrive(state, jobs, lists, arrival)
        return
    ending = first_ending(state, jobs, lists, size)
    if ending < 0:
        if arrival >= 0:
            arrive(state, jobs, lists, arrival)
    elif jobs[ending].phase == GONE:
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
    """Return a compiled function that makes the pass of `rules.kind`, which is one of these kinds."""
    number, make = list(PASSES).index(kinds[0]), PASSES[kinds[0]]
    other = _one_of(kinds[1:]) if len(kinds) > 1 else make

    @called_kernel
    def make_pass(state, rules, jobs, lists, profile):
        return make(state, rules, jobs, lists, profile) if rules.kind == number else other(state, rules, jobs, lists, profile)

    return make_pass


decide_by_head, decide_by_plan = _one_of(list(BY_HEAD)), _one_of(list(BY_PLAN))


@called_kernel
def decide(state, rules, jobs, lists, profile, tables):
    """The policy's pass."""
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
    """Start what the schedule has started by then and the policy has not; what the policy has planned no longer holds."""
    while state.next_start < len(jobs):
        job = lists.by_start[state.next_start]
        if jobs[job].phase == COMING and jobs[job].start <= until:
            break  # it waits for the end of another job at this instant
        if jobs[job].start > until:
            break
        if jobs[job].phase == WAITING:
            put_to_work(state, rules, jobs, lists, job)
        state.next_start += 1
    give_up_plan(state, jobs, lists)


@kernel
def give_up_plan(state, jobs, lists):
    """What the policy has planned no longer holds, since the schedule does something else."""
    for k in range(state.waiting):
        jobs[lists.queue[k]].reservation = -1
    state.void, state.planned, state.head = 1, 0, -1


@kernel
def next_start(state, jobs, lists):
    """The job that the schedule starts next, of those that the policy has not started; -1 for none."""
    while state.next_start < len(jobs):
        job = lists.by_start[state.next_start]
        if jobs[job].phase == COMING or jobs[job].phase == WAITING:
            return job
        state.next_start += 1
    return -1


def run_along(state, rules, jobs, lists, profile, tables, steps):
    """Go on along the schedule for so many events, or until something is asked for or differs; see DONE and the others.

    `profile`, `tables`: None where the policy needs none. After ASKS, the caller has told
    the predictor what is in the log, and scored who waits.
    """
    for _ in range(steps):
        if state.resume == 0:
            time, expiry_alone = next_event(state, rules, jobs, lists)
            job = next_start(state, jobs, lists)
            if job >= 0 and jobs[job].phase == WAITING and jobs[job].start < time:
                # The policy would have started it at an event, if at all.
                moment = max(jobs[job].start, state.now)
                if state.settled != moment:
                    state.now, state.settled, state.culprit = moment, moment, job
                    return EARLY
                follow(state, rules, jobs, lists, moment)
                continue
            if time == NEVER:
                return DONE
            state.now = max(time, state.now)
            if rules.silent == 1 and expiry_alone:
                correct_expired(state, rules, jobs, lists)
                continue
            quiet, waited = nothing_but_arrivals(state, rules, jobs, lists), state.waiting
            if rules.coincident == BATCH:
                all_events(state, rules, jobs, lists, profile)
            else:
                one_event(state, rules, jobs, lists, profile)
            while state.next_arrival < len(jobs) and jobs[state.next_arrival].phase != COMING:
                state.next_arrival += 1
            if quiet:
                for k in range(waited, state.waiting):
                    quiet = quiet and jobs[lists.queue[k]].procs > state.free
            if rules.asks == 1 and (state.unsorted > 0 or (rules.dynamic == 1 and state.waiting > 0)):
                state.resume = QUIET if quiet else PASS
                return ASKS
        else:
            quiet = state.resume == QUIET
            state.resume = 0
        if not quiet and state.settled != state.now and not decide(state, rules, jobs, lists, profile, tables):
            state.settled = state.now
            give_up_plan(state, jobs, lists)
            return LEFT
        if rules.asks == 0:
            state.logged = 0
    return PAUSED


def _named(name):
    """The run as a function with this name, to be compiled separately: what it has no memory for is left out."""
    own = types.FunctionType(run_along.__code__, run_along.__globals__, name)
    own.__qualname__, own.__module__ = name, run_along.__module__
    return entry(own)


RUNS = {name: _named(f"run_{name}") for name in ("heads", "plans", "combinations")}
"""The run for policies that look at the head's reservation at most, that plan on a profile, and that weigh combinations of jobs."""
