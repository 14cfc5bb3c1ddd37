"""Follow the record of a machine and compute the policy's proposals at each instant, in compiled code.

The entry point is `ask_along`. At each instant, the policy makes a pass as if all its proposals started; then the recorded state is
restored.
"""

from typing import Any, NamedTuple

import numpy as np

from walltime.auditor.passes.events import all_events, decide, follow, give_up_plan, next_event, next_start
from walltime.auditor.passes.places import mark_running, score_waiting, sort_waiting
from walltime.auditor.passes.state import ASKS, COMING, DONE, NEVER, PASS, PAUSED, RUNNING, WAITING
from walltime.compiled.jit import called_kernel, entry, kernel

Array = np.ndarray
FREE_TO_START, BY_CLOCK, BY_LIMIT, BY_HOLD, BY_OUTAGE = range(5)
"""Whether a job may start now (`FREE_TO_START`), or the rule that forbids it."""
WINDOW = np.dtype([(name, np.int64) for name in ["next", "last", "crossing", "kind"]], align=True)
"""A window. `next`: index of its next period in `begins` and `ends`; `last`: index after its last period. `crossing`: whether jobs must not
be planned across its start. `kind`: the rule that forbids starts in it, BY_CLOCK or BY_OUTAGE."""

_ASKED = "eligible user forbidden barred recorded since last episodes asked hit short delay"
ASKED = np.dtype([(name, np.int64) for name in _ASKED.split()], align=True)
"""A job. `eligible`: its earliest start. `user`: the group to whose limit it counts, -1 for none. `forbidden`: the rule that forbade a
start at the last instant. `barred`: 1 if the pass reached the limit of its group. `recorded`: its recorded start. `since`: when the current
proposal began, -1 without one. `last`: when the last proposal was withdrawn. `episodes`: number of proposals. `asked`: 1 once it has
started. `hit`: 1 if it was proposed at its recorded start. `short`: 1 if it then needed more processors than the record leaves free.
`delay`: time from the start of the proposal to the start of the job, s."""


class SiteAnswers(NamedTuple):
    """The site's rules and the recorded proposals; `windows_of`: whether each window (row) applies to each job (column)."""

    jobs: Any
    windows: Any
    windows_of: Array
    begins: Array
    ends: Array
    at_once: Array
    running_of: Array
    queue: Array
    line: Array
    back: Array
    running: Array


@called_kernel
def may_start(state, jobs, asked, job):
    """Return FREE_TO_START if the site's rules allow a job to start at this instant, otherwise the rule that forbids it."""
    if asked.jobs[job].eligible > state.now:
        return BY_HOLD
    for k in range(len(asked.windows)):
        if asked.windows_of[k, job] and is_shut(state, jobs, asked, asked.windows[k], job):
            return asked.windows[k].kind
    user = asked.jobs[job].user
    if asked.jobs[job].barred == 1 or (user >= 0 and asked.at_once[user] > 0 and asked.running_of[user] >= asked.at_once[user]):
        return BY_LIMIT
    return FREE_TO_START


@kernel
def is_shut(state, jobs, asked, window, job):
    """Return whether a window forbids a job to start now, because it is closed or the job would run into its next period."""
    while window.next < window.last and asked.ends[window.next] <= state.now:
        window.next += 1
    if window.next == window.last:
        return False
    begin = asked.begins[window.next]
    return begin <= state.now or (window.crossing == 1 and begin - state.now < jobs[job].estimate)


@kernel
def hide(state, jobs, lists, asked):
    """Remove the jobs that may not start from the lists of waiting jobs; return the number of remaining jobs."""
    count = 0
    for k in range(state.waiting):
        job = asked.queue[k]
        why = may_start(state, jobs, asked, job)
        asked.jobs[job].forbidden = why
        if why == FREE_TO_START:
            lists.queue[count] = job
            count += 1
    for waiting, own in ((lists.line, asked.line), (lists.back, asked.back)):
        place = 0
        for k in range(state.waiting):
            if asked.jobs[own[k]].forbidden == FREE_TO_START:
                waiting[place] = own[k]
                place += 1
    return count


@called_kernel
def bar_beyond(jobs, asked, count):
    """Bar the jobs that the pass started although their group had reached its limit; return their number."""
    barred = 0
    for k in range(count):
        job = asked.queue[k]
        user = asked.jobs[job].user
        if jobs[job].phase != RUNNING or user < 0 or asked.at_once[user] == 0:
            continue
        before = asked.running_of[user]
        for other in range(count):
            mate = asked.queue[other]
            if asked.jobs[mate].user == user and jobs[mate].phase == RUNNING and jobs[mate].ticket < jobs[job].ticket:
                before += 1
        if before >= asked.at_once[user]:
            asked.jobs[job].barred = 1
            barred += 1
    return barred


@called_kernel
def put_back(state, jobs, lists, asked, count):
    """Restore the waiting jobs as they were before the pass."""
    for k in range(count):
        job = asked.queue[k]
        jobs[job].phase, jobs[job].decided = WAITING, 0
        lists.queue[k], lists.line[k], lists.back[k] = job, asked.line[k], asked.back[k]
    state.waiting = count


@called_kernel
def ask(state, rules, jobs, lists, profile, tables, asked):
    """Record the jobs that the policy would start now, without changing the recorded state."""
    count, running, started, free = state.waiting, state.running, state.started, state.free
    if count == 0:
        return
    score_waiting(state, rules, jobs, lists)
    sort_waiting(jobs, lists.line, 0, count, False)
    sort_waiting(jobs, lists.back, 0, count, True)
    state.unsorted = 0
    for k in range(count):
        asked.queue[k], asked.line[k], asked.back[k] = lists.queue[k], lists.line[k], lists.back[k]
    for k in range(running):
        asked.running[k] = lists.running[k]
    state.waiting = hide(state, jobs, lists, asked)
    for k in range(count):
        job = asked.queue[k]
        asked.jobs[job].recorded = jobs[job].start
        jobs[job].start = state.now
    decide(state, rules, jobs, lists, profile, tables)
    while len(asked.at_once) > 0 and bar_beyond(jobs, asked, count) > 0:  # a limit is reached within the pass
        put_back(state, jobs, lists, asked, count)
        state.running, state.started, state.free = running, started, free
        for k in range(running):
            lists.running[k] = asked.running[k]
        give_up_plan(state, jobs, lists)
        state.waiting = hide(state, jobs, lists, asked)
        decide(state, rules, jobs, lists, profile, tables)
    hidden = 0
    for k in range(count):
        hidden += 1 if asked.jobs[asked.queue[k]].forbidden != FREE_TO_START else 0
        asked.jobs[asked.queue[k]].barred = 0
    same = hidden == 0
    for k in range(count):
        job = asked.queue[k]
        jobs[job].start = asked.jobs[job].recorded
        wished, own = jobs[job].phase == RUNNING, asked.jobs[job]
        if wished and own.since < 0:
            own.since = state.now
            own.episodes += 1
        elif not wished and own.since >= 0:
            own.since, own.last = -1, state.now
        if jobs[job].start == state.now:
            own.asked = 1
            own.short = 1 if jobs[job].procs > free else 0
            own.hit = 1 if wished else 0
            own.delay = state.now - own.since if wished else -1
        same = same and wished == (jobs[job].start == state.now)
    if same:
        return
    state.running, state.started, state.free = running, started, free
    put_back(state, jobs, lists, asked, count)
    for k in range(running):
        lists.running[k] = asked.running[k]
    give_up_plan(state, jobs, lists)


@kernel
def start_agreed(state, rules, jobs, lists, asked):
    """Start the jobs that both the record and the policy start now, if one of them ends at once, which requires another pass."""
    ends = False
    for k in range(state.next_start, len(jobs)):
        job = lists.by_start[k]
        if jobs[job].start > state.now:
            break
        ends = ends or (jobs[job].phase == WAITING and asked.jobs[job].since >= 0 and jobs[job].end <= state.now)
    for k in range(state.next_start, len(jobs) if ends else 0):
        job = lists.by_start[k]
        if jobs[job].start > state.now:
            break
        if jobs[job].phase == WAITING and asked.jobs[job].since >= 0:
            mark_running(state, rules, jobs, lists, job)
    return ends


@kernel
def count_running(state, jobs, lists, asked):
    """Count the running jobs of each group with a limit."""
    for k in range(len(asked.running_of)):
        asked.running_of[k] = 0
    for k in range(state.running):
        user = asked.jobs[lists.running[k]].user
        if user >= 0:
            asked.running_of[user] += 1


@entry
def ask_along(state, rules, jobs, lists, profile, tables, asked, steps):
    """Follow the record for this many instants, or until Python must compute scores; return DONE, PAUSED or ASKS."""
    for _ in range(steps):
        if state.resume == 0:
            time, _ = next_event(state, rules, jobs, lists)
            job = next_start(state, jobs, lists)
            if job >= 0:
                time = min(time, max(jobs[job].start, jobs[job].submit))
            if time == NEVER:
                return DONE
            state.now = max(time, state.now)
            all_events(state, rules, jobs, lists, profile)
            while state.next_arrival < len(jobs) and jobs[state.next_arrival].phase != COMING:
                state.next_arrival += 1
            if rules.asks == 1 and (state.unsorted > 0 or (rules.dynamic == 1 and state.waiting > 0)):
                state.resume = PASS
                return ASKS
        state.resume = 0
        if len(asked.at_once) > 0:
            count_running(state, jobs, lists, asked)
        ask(state, rules, jobs, lists, profile, tables, asked)
        job = next_start(state, jobs, lists)
        if job >= 0 and jobs[job].phase == WAITING and jobs[job].start <= state.now and not start_agreed(state, rules, jobs, lists, asked):
            follow(state, rules, jobs, lists, state.now)
        if rules.asks == 0:
            state.logged = 0
    return PAUSED
