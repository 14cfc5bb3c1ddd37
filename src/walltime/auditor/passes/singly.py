"""The papers' passes over the waiting jobs, one job after the other; compiled.

Every pass returns whether the schedule starts the same jobs as the policy, and ends at the first one that the schedule does not start.
"""

from walltime.auditor.passes.places import expected_end, kind_behind, kind_of_head, start
from walltime.auditor.passes.profile import anchor, build, move_on, occupy, reserve
from walltime.auditor.passes.state import AFRESH, BACKFILLED, LITERAL, NEVER, NONE, UNTIL_END, WAITING
from walltime.compiled.jit import called_kernel, kernel


@kernel
def head_of(state, rules, jobs, lists):
    """Return the head of the queue, or -1, and the last arrival number within its window."""
    if state.waiting == 0:
        return -1, NEVER
    if rules.plain_heads == 1:
        return lists.line[0], NEVER
    if rules.committed == 1 and state.committed >= 0 and jobs[state.committed].phase == WAITING:
        return state.committed, NEVER
    last = NEVER
    if rules.window > 0 and rules.window < state.waiting:
        last = jobs[lists.queue[rules.window - 1]].arrival
    place = 0
    while jobs[lists.line[place]].arrival > last:
        place += 1
    if rules.committed == 1:
        state.committed = lists.line[place]
    return lists.line[place], last


@called_kernel
def start_heads(state, rules, jobs, lists):
    """Start the head of the queue as long as it fits (feitelson98, section 1); afterwards `state.at_head` does not fit, or is -1."""
    state.at_head, state.last_in_queue = head_of(state, rules, jobs, lists)
    while state.at_head >= 0 and jobs[state.at_head].procs <= state.free:
        if rules.head_runtime_factor > 1:
            jobs[state.at_head].run *= rules.head_runtime_factor
        if not start(state, rules, jobs, lists, state.at_head, kind_of_head(state, jobs, state.at_head)):
            return False
        state.at_head, state.last_in_queue = head_of(state, rules, jobs, lists)
    return True


@kernel
def near_enough(rules, jobs, job, head):
    """Return whether a job's score is close enough to the head's for the job to be backfilled."""
    return rules.near == 0.0 or jobs[job].score >= rules.near * jobs[head].score


@called_kernel
def find_shadow(state, rules, jobs, lists, head):
    """Return the shadow time and the extra processors of the head (mualem01, section 2.2)."""
    available, shadow, place = state.free, state.now, 0
    needed = jobs[head].procs
    if rules.extra != LITERAL:
        while place < state.running:
            end = expected_end(state, jobs, lists.running[place], state.now)
            if available >= needed and end > shadow:
                break
            available += jobs[lists.running[place]].procs
            shadow = end
            place += 1
    else:
        # Among jobs with the same expected end (now, for overdue jobs), the one that started last comes first.
        while available < needed:
            end, last = expected_end(state, jobs, lists.running[place], state.now), place
            while last < state.running and expected_end(state, jobs, lists.running[last], state.now) == end:
                lists.scratch[last] = lists.running[last]
                last += 1
            for k in range(place + 1, last):
                job, at = lists.scratch[k], k
                while at > place and jobs[lists.scratch[at - 1]].ticket < jobs[job].ticket:
                    lists.scratch[at] = lists.scratch[at - 1]
                    at -= 1
                lists.scratch[at] = job
            for k in range(place, last):
                available += jobs[lists.scratch[k]].procs
                if available >= needed:
                    break
            place, shadow = last, end
    return shadow, available - needed


@kernel
def note_head(jobs, head, shadow):
    """Note the first reservation of the head."""
    if jobs[head].reserved < 0:
        jobs[head].reserved = shadow


@called_kernel
def find_candidate(state, rules, jobs, lists, head, last, latest, extra):
    """Return the first job in backfill order that may start: it ends by `latest` or fits into the extra processors; -1 for none."""
    if jobs[head].overtaken >= rules.overtakes:
        return -1
    for k in range(state.waiting):
        job = lists.back[k]
        if job == head or jobs[job].arrival > last or jobs[job].procs > state.free:
            continue
        end = state.now + jobs[job].own
        in_time = end < latest or (end == latest and rules.before == 0)
        if (in_time or jobs[job].procs <= extra) and near_enough(rules, jobs, job, head):
            return job
    return -1


@called_kernel
def easy(state, rules, jobs, lists):
    """Run algorithm EASY Backfill (mualem01, section 2.2), from the beginning again after each backfilled job."""
    while True:
        if not start_heads(state, rules, jobs, lists):
            return False
        head, last = state.at_head, state.last_in_queue
        if head < 0:
            return True
        if state.head != head or rules.shadow == AFRESH or (state.terminated == 1 and rules.shadow == UNTIL_END):
            state.shadow, state.extra = find_shadow(state, rules, jobs, lists, head)
            if rules.extra == NONE:
                state.extra = 0
            state.head, state.terminated = head, 0
        note_head(jobs, head, state.shadow)
        found = find_candidate(state, rules, jobs, lists, head, last, state.shadow, state.extra)
        if found < 0:
            return True
        if not start(state, rules, jobs, lists, found, BACKFILLED):
            return False


@called_kernel
def greedy(state, rules, jobs, lists):
    """Start the heads that fit, then every job that fits."""
    if not start_heads(state, rules, jobs, lists):
        return False
    if state.waiting == 0:
        return True
    head, count = lists.line[0], 0
    for k in range(state.waiting):
        if near_enough(rules, jobs, lists.back[k], head):
            lists.scratch[count] = lists.back[k]
            count += 1
    for k in range(count):
        job = lists.scratch[k]
        if jobs[job].procs > state.free or jobs[head].overtaken >= rules.overtakes:
            continue
        if not start(state, rules, jobs, lists, job, BACKFILLED):
            return False
    return True


@called_kernel
def head(state, rules, jobs, lists, _profile):
    """Start the heads that fit, then backfill with at most one reservation."""
    if rules.depth > 0:
        return easy(state, rules, jobs, lists)
    return greedy(state, rules, jobs, lists) if rules.backfills == 1 else start_heads(state, rules, jobs, lists)


@called_kernel
def relaxed(state, rules, jobs, lists, _profile):
    """Run EASY with the head's reservation postponed to its latest allowed start (Ward, Mahood and West 2002)."""
    while True:
        if not start_heads(state, rules, jobs, lists):
            return False
        if state.waiting == 0:
            return True
        head = lists.line[0]
        shadow, _ = find_shadow(state, rules, jobs, lists, head)
        note_head(jobs, head, shadow)
        if state.earliest_of == head:
            state.earliest = min(state.earliest, shadow)
        else:
            state.earliest_of, state.earliest = head, shadow
        if jobs[head].first_wait < 0:
            jobs[head].first_wait = shadow - jobs[head].submit
        latest = max(shadow, state.earliest + int(rules.omega * jobs[head].first_wait))
        extra = state.free - jobs[head].procs
        for k in range(state.running):
            if expected_end(state, jobs, lists.running[k], state.now) <= latest:
                extra += jobs[lists.running[k]].procs
        found = find_candidate(state, rules, jobs, lists, head, NEVER, latest, extra)
        if found < 0:
            return True
        if not start(state, rules, jobs, lists, found, BACKFILLED):
            return False


@kernel
def least_procs(state, jobs, lists):
    """Return the fewest processors that a waiting job needs, and the number of jobs that have no reservation yet."""
    least, new = NEVER, 0
    for k in range(state.waiting):
        least = min(least, jobs[lists.queue[k]].procs)
        new += 1 if jobs[lists.queue[k]].reserved < 0 else 0
    return least, new


@kernel
def begin_pass(state, jobs, lists):
    """Copy the queue order into `lists.scratch`, and clear the jobs' `latest`; return the number of waiting jobs."""
    for k in range(state.waiting):
        lists.scratch[k] = lists.line[k]
        jobs[lists.line[k]].latest = 0
    return state.waiting


@called_kernel
def reserve_or_start(state, rules, jobs, lists, profile, job, kind):
    """Reserve the earliest start for a job, and start it if that is now: return 1 if it starts, 0 if not, -1 if not in the schedule."""
    begin = reserve(state, jobs, profile, job)
    if jobs[job].reserved < 0:
        jobs[job].reserved = begin
    if begin > state.now:
        return 0
    return 1 if start(state, rules, jobs, lists, job, kind) else -1


@called_kernel
def backfill(state, rules, jobs, lists, profile, ahead):
    """Start the jobs whose `latest` is 0 and that delay no reservation, in backfill order.

    `ahead`: number of jobs in `lists.scratch`; a job counts as backfilled if one before it there still waits. With 0, all count as
    backfilled.
    """
    count = 0
    for k in range(state.waiting):
        if jobs[lists.back[k]].latest == 0:
            lists.other[count] = lists.back[k]
            count += 1
    for k in range(count):
        job = lists.other[k]
        if jobs[job].procs > profile.free[0] or anchor(state, profile, jobs[job].procs, jobs[job].own) > state.now:
            continue
        reserve(state, jobs, profile, job)
        kind = BACKFILLED if ahead == 0 else kind_behind(state, jobs, job, lists.scratch, ahead)
        if not start(state, rules, jobs, lists, job, kind):
            return False
    return True


@called_kernel
def fresh(state, rules, jobs, lists, profile):
    """Run conservative backfill from scratch (feitelson98, Fig. 1), with reservations for `depth` blocked jobs only."""
    build(state, jobs, lists, profile)
    count, blocked, taken = begin_pass(state, jobs, lists), 0, 0
    least, new = least_procs(state, jobs, lists)
    while taken < count and blocked < rules.depth:
        if profile.free[0] < least and (rules.all_reserved == 0 or new == 0):
            return True
        job = lists.scratch[taken]
        jobs[job].latest = 1
        new -= 1 if jobs[job].reserved < 0 else 0
        kind = BACKFILLED if blocked > 0 else kind_of_head(state, jobs, job)
        done = reserve_or_start(state, rules, jobs, lists, profile, job, kind)
        if done < 0:
            return False
        blocked += 1 - done
        taken += 1
    return backfill(state, rules, jobs, lists, profile, 0)


@called_kernel
def selective(state, rules, jobs, lists, profile):
    """Make reservations for the jobs whose expansion factor exceeds the threshold (Srinivasan et al. 2002), then backfill."""
    threshold = rules.factor
    if rules.threshold_of_all == 1:
        threshold = 1.0
        if state.ended > 0:
            threshold = state.slowdowns / (1000 * state.ended)
    build(state, jobs, lists, profile)
    count = begin_pass(state, jobs, lists)
    for k in range(count):
        job = lists.scratch[k]
        if (state.now - jobs[job].submit + jobs[job].own) / jobs[job].own > threshold:
            jobs[job].latest = 1
            kind = kind_behind(state, jobs, job, lists.scratch, count)
            if reserve_or_start(state, rules, jobs, lists, profile, job, kind) < 0:
                return False
    return backfill(state, rules, jobs, lists, profile, count)


@kernel
def queue_of(lists, length):
    """Return the number of the queue for jobs of this length."""
    own = 0
    while own < len(lists.bounds) and length >= lists.bounds[own]:
        own += 1
    return own


@called_kernel
def several_queues(state, rules, jobs, lists, profile):
    """Make a reservation for the first job of each queue, and for the next one if it starts (Lawson and Smirni 2002), then backfill."""
    build(state, jobs, lists, profile)
    count, closed = begin_pass(state, jobs, lists), 0
    # The first job of a queue remains first until it starts, so one walk in queue order finds each of them.
    for k in range(count):
        job = lists.scratch[k]
        own = 1 << queue_of(lists, jobs[job].own)
        if closed & own:
            continue
        jobs[job].latest = 1
        done = reserve_or_start(state, rules, jobs, lists, profile, job, kind_behind(state, jobs, job, lists.scratch, count))
        if done < 0:
            return False
        if done == 0:
            closed |= own
    return backfill(state, rules, jobs, lists, profile, count)


@called_kernel
def kept(state, rules, jobs, lists, profile):
    """Run algorithm Conservative Backfill (mualem01, section 2.1), with compression when a job has ended early.

    All reservations are made again while a running job is overdue, and once after a correction, a changed prediction, or the start of a job
    that is expected to run longer than its reservation.
    """
    overdue = 1 if state.running > 0 and expected_end(state, jobs, lists.running[0], state.now) == state.now else 0
    if overdue == 1 or state.void == 1:
        build(state, jobs, lists, profile)
        for k in range(state.waiting):
            jobs[lists.line[k]].reservation = reserve(state, jobs, profile, lists.line[k])
    else:
        if state.planned == 1:
            move_on(state, profile)
        else:
            build(state, jobs, lists, profile)
            for k in range(state.waiting):
                job = lists.line[k]
                if jobs[job].reservation >= 0:
                    begin = jobs[job].reservation
                    occupy(state, profile, begin, begin + jobs[job].own, jobs[job].procs)
        moves = state.ended_early == 1 or rules.compression == 2
        while moves:
            moved = False
            for k in range(state.waiting):
                job = lists.line[k]
                old = jobs[job].reservation
                if old >= 0:
                    occupy(state, profile, old, old + jobs[job].own, -jobs[job].procs)
                    jobs[job].reservation = reserve(state, jobs, profile, job)
                    moved = moved or jobs[job].reservation != old
            moves = rules.compression == 1 and moved
        for k in range(state.waiting):
            job = lists.queue[k]
            if jobs[job].reservation < 0:
                jobs[job].reservation = reserve(state, jobs, profile, job)
    state.ended_early, state.planned = 0, 1 - overdue
    state.overdue = state.void = overdue
    count = state.waiting
    for k in range(count):
        lists.scratch[k] = lists.queue[k]
    for k in range(count):
        job = lists.scratch[k]
        if jobs[job].reserved < 0:
            jobs[job].reserved = jobs[job].reservation
        if jobs[job].reservation == state.now:
            kind = kind_of_head(state, jobs, job) if lists.queue[0] == job else BACKFILLED
            if not start(state, rules, jobs, lists, job, kind):
                return False
            if jobs[job].run > jobs[job].own:
                state.void = 1
            elif jobs[job].run < jobs[job].own:
                state.planned = 0
    return True


BY_HEAD = {"head": head, "relaxed": relaxed}
BY_PLAN = {"fresh": fresh, "kept": kept, "selective": selective, "multiqueue": several_queues}
"""Passes by the kinds of `walltime.policy.PassSpec`: with a reservation for at most the head, and on a profile."""
