"""A scheduling pass of slack-like backfilling: arriving jobs are inserted among the planned ones as early as the slacks allow."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.memory import NEVER, Array, Loop, Pass
from walltime.engine.kernel.number.machine import start_behind
from walltime.engine.kernel.profile import STEPS_IN_BLOCK, Profile, first_gap, new_profile, occupy, profile_of_running
from walltime.engine.kernel.queue import drop_started


class Slack(NamedTuple):
    """The plan of slack-like backfilling; arrays are int64, times in s.

    * `profile`: the free processors over future time
    * `line`: the waiting jobs in planned order; `trial`: the start of each of them in the plan that is being tried
    * `reserved`: by job, its reserved start; `latest`: by job, the latest start that its slack allows
    * `wait`: the waits of the jobs that started last
    """

    profile: Profile
    line: Array
    trial: Array
    reserved: Array
    latest: Array
    wait: Array


@kernel
def pass_within_slack(state, rules, jobs, machine, queue, _ordered, slack):
    """Plan the jobs in `line` again, insert the newcomers, and start the jobs that are due; return an upper bound on the steps.

    Source: the idea of Talby and Feitelson 1999; see `walltime.policy.Slack`.
    """
    profile_of_running(slack.profile, machine.running, state.running, state.now, state.free)
    tries = np.int64(1)
    for i in range(state.sorted):
        _plan(state, jobs, slack, i)
        slack.reserved[slack.line[i]] = slack.trial[i]
    for place in range(state.queue_first, state.queue_last):
        job = np.int64(queue[place].job)
        if jobs[job].arrival >= state.sorted_arrivals:
            tries += _enter(state, rules, jobs, machine, slack, job)
            state.sorted_arrivals = jobs[job].arrival + 1
    steps = (state.sorted + tries) * slack.profile.counts.blocks * STEPS_IN_BLOCK
    left = 0
    for i in range(state.sorted):
        job = slack.line[i]
        if slack.reserved[job] == state.now:
            start_behind(state, rules, jobs, machine, queue, job)
            at = state.started % slack.wait.size
            if state.waits < slack.wait.size:
                state.waits += 1
            else:
                state.waited -= slack.wait[at]
            slack.wait[at] = state.now - jobs[job].submit
            state.waited += slack.wait[at]
        else:
            slack.line[left] = job
            left += 1
    state.sorted = left
    drop_started(state, jobs, queue)
    return steps


@kernel
def _plan(state, jobs, slack, i):
    """Plan the i-th job of the line after the jobs that are already planned.

    Return whether its start is within its slack, or no later than before.
    """
    job = slack.line[i]
    own = jobs[job]
    slack.trial[i] = first_gap(slack.profile, state.now, own.own_length, own.procs, np.int64(NEVER))
    occupy(slack.profile, slack.trial[i], slack.trial[i] + own.own_length, own.procs)
    return slack.trial[i] <= max(slack.latest[job], slack.reserved[job])


@called_kernel
def _enter(state, rules, jobs, machine, slack, job):
    """Insert a newcomer at the first position that the slacks allow; return how many jobs had to be planned for this."""
    own, tries, profile = jobs[job], np.int64(0), slack.profile
    profile_of_running(profile, machine.running, state.running, state.now, state.free)
    place = 0
    while True:
        begin = first_gap(profile, state.now, own.own_length, own.procs, np.int64(NEVER))
        occupy(profile, begin, begin + own.own_length, own.procs)
        i, allowed = place, True
        while allowed and i < state.sorted:
            allowed = _plan(state, jobs, slack, i)
            i += 1
        tries += i - place + 1
        if allowed:
            break
        for k in range(place, i):  # the trial failed: take these jobs out of the plan
            other = jobs[slack.line[k]]
            occupy(profile, slack.trial[k], slack.trial[k] + other.own_length, -other.procs)
        occupy(profile, begin, begin + own.own_length, -own.procs)
        ahead = slack.line[place]
        occupy(profile, slack.reserved[ahead], slack.reserved[ahead] + jobs[ahead].own_length, jobs[ahead].procs)
        place += 1
    for k in range(state.sorted - 1, place - 1, -1):
        slack.reserved[slack.line[k]] = slack.trial[k]
        slack.line[k + 1] = slack.line[k]
    slack.line[place] = job
    state.sorted += 1
    slack.reserved[job] = own.reserved_start = begin
    mean_wait = max(state.waited / state.waits, 1.0) if state.waits > 0 else 1.0
    slack.latest[job] = begin + np.int64(math.floor(rules.factor * mean_wait))
    return tries


PASS = Pass(
    ("slack",),
    pass_within_slack,
    Slack,
    lambda rules, passes, count: Slack(new_profile(count), *(np.zeros(most, np.int64) for most in (*[count + 1] * 4, passes.recent))),
    (Loop("slack", "slack-like backfilling", 47, 6),),
)
