"""The lists of waiting and running jobs, and how jobs enter and leave them; compiled."""

from walltime.auditor.passes.state import BACKFILLED, IMMEDIATE, NEVER, RESERVED, RUNNING, STARTED, WAITING
from walltime.compiled.jit import called_kernel, kernel


@kernel
def expected_end(state, jobs, job, overdue):
    """Return when a running job is expected to end; `overdue` if that time has passed."""
    end = jobs[job].start + jobs[job].run
    return end if end > state.now else overdue


@kernel
def note(state, lists, kind, job):
    """Log an event for predictors."""
    lists.log[state.logged, 0], lists.log[state.logged, 1] = kind, job
    state.logged += 1


@kernel
def comes_before(jobs, job, other, backfilling):
    """Return whether a waiting job comes before another in queue order or, if `backfilling`, in backfill order."""
    own, its = jobs[job].score, jobs[other].score
    if backfilling:
        own, its = jobs[job].back_score, jobs[other].back_score
    return own > its or (own == its and jobs[job].arrival < jobs[other].arrival)


@called_kernel
def score_waiting(state, rules, jobs, lists):
    """Score the waiting jobs if scores grow with the wait (tang13, eq. 5)."""
    if rules.power == 0 and rules.back_power == 0:
        return
    for k in range(state.waiting):
        job = lists.queue[k]
        ratio = (state.now - jobs[job].submit) / jobs[job].estimate
        if rules.power > 0:
            jobs[job].score = _weighted(ratio, rules.power, jobs[job].procs)
        if rules.back_power > 0:
            jobs[job].back_score = _weighted(ratio, rules.back_power, jobs[job].procs)


@kernel
def _weighted(ratio, power, procs):
    value = 1.0
    for _ in range(power):
        value *= ratio
    return value * procs


@called_kernel
def sort_waiting(jobs, waiting, first, count, backfilling):
    """Insert the waiting jobs from index `first` on into the sorted ones before them."""
    for k in range(max(first, 1), count):
        job, place = waiting[k], k
        while place > 0 and comes_before(jobs, job, waiting[place - 1], backfilling):
            waiting[place] = waiting[place - 1]
            place -= 1
        waiting[place] = job


@called_kernel
def sort_running(jobs, running, count):
    """Sort the running jobs by expected end, then by start."""
    for k in range(1, count):
        job, place = running[k], k
        end = jobs[job].start + jobs[job].run
        while place > 0:
            other = running[place - 1]
            its = jobs[other].start + jobs[other].run
            if its < end or (its == end and jobs[other].ticket < jobs[job].ticket):
                break
            running[place] = other
            place -= 1
        running[place] = job


@called_kernel
def remove(jobs_of, count, job):
    """Remove a job from a list of this length."""
    place = 0
    while jobs_of[place] != job:
        place += 1
    for k in range(place, count - 1):
        jobs_of[k] = jobs_of[k + 1]


@called_kernel
def mark_running(state, rules, jobs, lists, job):
    """Move a waiting job to the running ones."""
    for waiting in (lists.queue, lists.line, lists.back):
        remove(waiting, state.waiting, job)
    state.waiting -= 1
    jobs[job].phase = RUNNING
    if rules.overtakes < NEVER:
        for k in range(state.waiting):
            if jobs[lists.queue[k]].arrival < jobs[job].arrival:
                jobs[lists.queue[k]].overtaken += 1
    jobs[job].ticket = state.started
    if rules.recent > 0:
        lists.recent[state.started % rules.recent] = jobs[job].start - jobs[job].submit
    state.started += 1
    state.free -= jobs[job].procs
    lists.running[state.running] = job
    state.running += 1
    sort_running(jobs, lists.running, state.running)
    note(state, lists, STARTED, job)


@kernel
def start(state, rules, jobs, lists, job, kind):
    """Start a job that the policy starts now if the schedule does, too; return whether it does."""
    if jobs[job].start != state.now:
        state.culprit = job
        return False
    jobs[job].kind, jobs[job].decided = kind, 1
    mark_running(state, rules, jobs, lists, job)
    return True


@kernel
def kind_of_head(state, jobs, job):
    """Return the kind of start of a job that overtakes no other job."""
    return IMMEDIATE if jobs[job].submit == state.now else RESERVED


@called_kernel
def kind_behind(state, jobs, job, ahead, count):
    """Return the kind of start of a job, given the `count` jobs that were `ahead` of it in the queue."""
    for k in range(count):
        if ahead[k] == job:
            break
        if jobs[ahead[k]].phase == WAITING:
            return BACKFILLED
    return kind_of_head(state, jobs, job)
