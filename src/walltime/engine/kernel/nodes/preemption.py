"""Running jobs that end early, by preemption or because a node fails, and their lost runs; reference/slurm.py has the rules."""

import numpy as np

from walltime.compiled.jit import called_kernel, kernel
from walltime.engine.kernel.bits import count_between, mark
from walltime.engine.kernel.heap import hasten, pop, push
from walltime.engine.kernel.memory import NEVER
from walltime.engine.kernel.nodes.choice import choose, shortfall
from walltime.engine.kernel.nodes.limits import exceeds_nodes
from walltime.engine.kernel.nodes.plan import FIRST, NOT_MADE
from walltime.engine.kernel.nodes.records import CLOSED, USABLE
from walltime.engine.kernel.nodes.use import LESS, MORE, NOW, change_rows, shorten_use
from walltime.engine.machines import REQUEUE_DELAY, REQUEUED

LAST = np.int64(1) << 40
"""More than the nodes of any job: the key of the last victim that was needed, which comes first; the others are sorted by their nodes."""


@kernel
def may_preempt(state, job, site):
    """Return whether a job may preempt others now; it may not as long as jobs that it has preempted still run."""
    return state.preemptable > 0 and site.classes[job.preemption].preempts > 0 and job.awaits <= state.now


@kernel
def is_any_exempt(state, jobs, site, running):
    """Return whether a running job has not run for long enough to be preempted."""
    for i in range(state.running if state.preemptable > 0 else 0):
        own = site.classes[jobs[running[i].job].preemption]
        if own.preempted > 0 and state.now - jobs[running[i].job].start < own.exempt:
            return True
    return False


@called_kernel
def preempt(state, rules, jobs, index, site, use, plan, traffic, length, only_chosen):
    """End as few running jobs as possible so that a job can start, on nodes that are not closed or only on chosen ones.

    Candidates end one after the other until the job fits. Then the last of them moves to the front, the others are sorted by their numbers
    of chosen nodes, and the procedure is repeated. The jobs on nodes that the job would get are preempted.
    """
    job, victims, tries, fits, sets = jobs[index], use.victims, 0, False, site.sets
    if only_chosen:
        mark(sets[CLOSED], plan.choice.chosen, state.chosen)
        for w in range(sets.shape[1]):
            sets[CLOSED, w] = ~sets[CLOSED, w]
        state.closed = 1
    candidates, count = _find_candidates(state, rules, jobs, index, site, use), 0
    while candidates > 0:
        count, fits = 0, False
        while count < candidates and not fits:
            _free_candidate(state, jobs, site, use, victims.order[count], FIRST, MORE)
            count += 1
            fits = shortfall(state, job, site, use, plan, state.now, length, 1) == 0
        if fits:
            choose(state, job, site, use, plan.choice, state.now)
            mark(sets[USABLE], plan.choice.chosen, state.chosen)
        for k in range(count):
            _free_candidate(state, jobs, site, use, victims.order[k], FIRST, LESS)
        tries += 1
        if not fits or tries > rules.reorders + 1 or candidates <= tries:
            break
        for k in range(count):
            rank = 0 if rules.strict else -_nodes_in(sets[USABLE], use.ranges, jobs[use.running[victims.order[k]].job])
            push(victims.heap, k, -LAST if k == count - 1 else rank, k, victims.order[k])
        _take_in_order(victims, count)
    if fits and not (rules.node_limits and exceeds_nodes(state, jobs, site, use, plan, traffic, index, True)):
        _end_victims(state, jobs, index, site, use, traffic, count)
    if only_chosen:
        sets[CLOSED] = 0
        state.closed = 0


@kernel
def _end_victims(state, jobs, index, site, use, traffic, count):
    """End the first `count` candidates that have nodes in USABLE, after their grace time; the job at `index` then waits for their ends."""
    victims = use.victims.order
    for k in range(count):
        victims[k] = use.running[victims[k]].job  # the positions of running jobs change
    for k in range(count):
        other = jobs[victims[k]]
        if _nodes_in(site.sets[USABLE], use.ranges, other) > 0:
            end = state.now + max(1, site.classes[other.preemption].grace)
            shorten_use(state, jobs, victims[k], site, use, end)
            if other.start + other.runtime > end:
                other.runtime, other.due, other.returns = end - other.start, end, site.classes[other.preemption].requeue
                hasten(traffic.ends, victims[k], end)
            jobs[index].awaits = max(jobs[index].awaits, other.start + other.runtime)
            state.news = 1


@called_kernel
def free_candidates(state, rules, jobs, index, site, use):
    """Count the running jobs that a job may preempt as ended; return their number. They come first in `victims.order`."""
    count = _find_candidates(state, rules, jobs, index, site, use)
    for k in range(count):
        _free_candidate(state, jobs, site, use, use.victims.order[k], use.victims.order[k], MORE)
    state.timeline_blocks = NOT_MADE
    return count


@called_kernel
def restore_candidates(state, jobs, site, use, count):
    """Count these jobs as running again."""
    for k in range(count):
        _free_candidate(state, jobs, site, use, use.victims.order[k], use.victims.order[k], LESS)
    state.timeline_blocks = NOT_MADE


@called_kernel
def _nodes_in(members, ranges, job):
    nodes = 0
    for r in range(job.first, job.first + job.count):
        nodes += count_between(members, ranges[r].node, ranges[r].node + ranges[r].count)
    return nodes


@called_kernel
def _find_candidates(state, rules, jobs, index, site, use):
    """List the running jobs that a job may preempt in `victims.order`, the first to be preempted first; return their number."""
    job, victims, count = jobs[index], use.victims, 0
    members = site.sets[site.members[job.members].row]
    for i in range(state.running):
        number = use.running[i].job
        other = jobs[number]
        own = site.classes[other.preemption]
        if site.may[job.preemption, other.preemption] == 0 or state.now - other.start < own.exempt:
            continue
        if _nodes_in(members, use.ranges, other) == 0:
            continue
        nodes = 0
        for r in range(other.first, other.first + other.count):
            nodes += use.ranges[r].count
        push(victims.heap, count, -other.start if rules.youngest else own.rank * LAST + nodes, number, i)
        count += 1
    _take_in_order(victims, count)
    return count


@kernel
def _take_in_order(victims, count):
    for k in range(count):
        victims.order[k] = pop(victims.heap, count - k)


@kernel
def _free_candidate(state, jobs, site, use, place, end, sign):
    """Count a running job as ended (sign 1) or as running again (-1), now and at the releases of the jobs before the index `end`.

    A job that counts as ended keeps no node for its user alone.
    """
    one = use.running[place]
    one.count = jobs[one.job].count if sign < 0 else 0
    change_rows(state, site, use, jobs[one.job], one.row, NOW, end, sign)


@called_kernel
def lose_nodes(state, jobs, site, use, traffic):
    """End the running jobs on nodes of an outage that begins now and does not let jobs continue."""
    place = state.next_change
    while place < len(traffic.changes) and traffic.changes[place].time == state.now:
        out = site.outages[traffic.changes[place].outage]
        place += 1
        for i in range(state.running if out.loss > 0 and out.begin == state.now else 0):
            index = use.running[i].job
            job = jobs[index]
            if job.start + job.runtime > state.now and _nodes_in(site.sets[out.row], use.ranges, job) > 0:
                job.runtime, job.due, job.returns, job.failed = state.now - job.start, state.now, out.loss == REQUEUED, 1
                hasten(traffic.ends, index, state.now)


@kernel
def lose_run(state, jobs, site, use, traffic, index):
    """Record the run of a job that has ended, if it ended early; return whether the job returns to the queue."""
    job, own = jobs[index], site.classes[jobs[index].preemption]
    state.preemptable -= own.preempted
    if job.due != state.now:
        return False
    run = use.lost[state.lost]
    run.job, run.start, run.end, run.requeued = index, job.start, state.now, job.returns
    run.kind, run.failed = job.kind, job.failed
    state.lost += 1
    if job.returns > 0:
        job.submit, job.runtime, job.start, job.due = state.now + REQUEUE_DELAY, job.whole_runtime, -1, NEVER
        job.failed = 0
        push(traffic.arrivals, state.arriving, job.submit, index, index)
        state.arriving += 1
        state.again += 1
    return job.returns > 0
