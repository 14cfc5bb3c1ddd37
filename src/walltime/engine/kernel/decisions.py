"""The kernel of the learning environment: simulations that stop where an agent must decide (`walltime.learn`).

Many environments are rows of the same arrays. Each runs one episode, whose jobs are `log.jobs[first : first + jobs]`. `decide` applies one
decision to each of several environments, continues to their next decisions, and writes the observations. It allocates nothing and needs no
lock, so each thread can take some of the rows.

A scheduling pass goes through phases. HEAD: choose the next job. PLACE: start it if it fits, and choose again; else reserve its start.
FILL: start others that do not delay it. EVENT: handle the next arrivals and terminations, which begin a new pass. The rules are those of
the reference engine (reference/number.py), which makes the same schedules by independent code.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from walltime.compiled.jit import entry, kernel
from walltime.compiled.records import record_dtype
from walltime.engine.kernel.heap import pop, push
from walltime.engine.kernel.memory import ITEM, NEVER, RUN, records
from walltime.engine.kernel.running import enter_running, find_shadow, leave_running
from walltime.engine.kernel.search import first_from

JOB = record_dtype("submit runtime planned procs given by_length by_size")
"""A job; times in s. `given`: its start if it runs when the episode begins, else -1. `by_length`, `by_size`: its rank among all jobs by
planned runtime, and by processors."""
EPISODE = record_dtype("first jobs run_at_first wait_at_first begin")
"""An episode: its first job; the numbers of all its jobs, of the initially running ones and of the initially waiting ones; its start, s."""
RULES = record_dtype(
    "kind committed backfills one_by_one extra_nodes ends_before shadow_once fill_by_arrival procs period order turns cost",
)
"""The rules of an environment. Jobs start behind the head if it `backfills`, in order of arrival if it has `fill_by_arrival`.

* `kind`: the kind of decision, one of NEXT and the others below; `cost`: one of WAIT and the others below
* `committed`: whether the chosen head remains the head until it starts; `one_by_one`: whether simultaneous events are handled one by one
* `extra_nodes`: whether jobs may use the extra processors; `ends_before`: whether backfilled jobs must end before the shadow time
* `shadow_once`: whether a head's shadow time is computed only once; `turns`: whether slots go to the shortest and the smallest jobs in turn
* `order`: the formula that chooses the head where the agent does not; `period`: how long a chosen formula orders the queue, s"""
STATE = record_dtype(
    "now free arrived waiting running phase head shadow extra shadow_of chosen choose_at started work over play episode masked filler "
    "sorted kept paid owed",
    "paid owed",
)
"""The state of an environment: numbers of free processors and of jobs, and these; times in s.

* `now`: the time; `phase`: the phase of the pass; `episode`: the number of the episode; `over`: whether it has ended
* `shadow`, `extra`: the shadow time of the job `shadow_of`, and the extra processors; `head`: the head of the queue, -1 for none
* `chosen`: the formula that the agent chose last; `choose_at`: when it chooses the next one; `play`: the one that decides instead, or -1
* `filler`: the formula for backfilling, or -1; `paid`: the costs of started jobs; `owed`: these plus the costs of waiting jobs so far
* `sorted`, `kept`: how many jobs had arrived, and how many were waiting, when the waiting jobs were last sorted"""


class Log(NamedTuple):
    """The jobs of all episodes (JOB), `terms` of their formulas (float64), their constant features `still` (float32), and the EPISODEs."""

    jobs: Any
    terms: Any
    still: Any
    episodes: Any


class Environments(NamedTuple):
    """Arrays with a row for each environment: its STATE; and the start of each job of its episode (s, -1 before), int64.

    They also hold the waiting jobs in order of arrival (int64), by length and by size, and the running jobs by expected end (RUN), with a
    heap of their ends. For each job that the agent sees, they hold its position in the queue (int64).
    """

    state: Any
    start: Any
    queue: Any
    running: Any
    ends: Any
    orders: Any
    slots: Any


class Observations(NamedTuple):
    """A row for each environment: features of the slots and of the queue (both float32), allowed actions (int8), reward (float64)."""

    seen: Any
    summary: Any
    mask: Any
    rewards: Any


def new_environments(count: int, jobs: int, size: int, shown: int, sorts: bool) -> Environments:
    """Return environments without a running episode, for this many jobs on a machine of this size."""
    running = min(jobs, size) + 1
    state = records(STATE, count)
    state.play, state.over = -1, 1
    return Environments(
        state=state,
        start=np.full((count, jobs), -1, np.int64),
        queue=np.zeros((count, jobs), np.int64),
        running=records(RUN, count * running).reshape(count, running),
        ends=records(ITEM, count * running).reshape(count, running),
        orders=np.zeros((count, 2, jobs if sorts else 0), np.int64),
        slots=np.zeros((count, shown), np.int64),
    )


# Formulas, in the order of `walltime.learn.FORMULAS`; the lowest score comes first, ties by arrival.
FCFS, SJF, SAF, WFP3, UNICEP, F1, F2, F3, F4 = range(9)
# Costs of a job.
WAIT, RESPONSE, SLOWDOWN, BOUNDED = range(4)
BOUND = 10
"""Shortest runtime in bounded slowdowns, s: shorter ones are raised to it."""

# Decisions: the next job, the job to backfill, the formula of the queue for a while, or both the next job and the one to backfill.
NEXT, BACKFILL, FORMULA, BOTH = range(4)
AT_EVENT, AT_HEAD, AT_PLACE, AT_FILL = range(4)

# Features.
WEEK, MONTH, HALF_DAY, DAY = 604_800.0, 2_592_000.0, 43_200.0, 86_400
NEARLY_ONE = 1.0 - 1e-5
"""Upper bound on the observed features of a job in zhang20, so that a job is not mistaken for padding."""


@entry
def decide(begin, end, actions, rules, log, environments, observed):
    """Apply an action to each of the environments [begin, end), and continue to its next decision or the end of its episode.

    `actions` (int64): a decision, or -1 - k to begin episode k; an action that the mask forbids counts as the first allowed one. `rules`:
    an array of one record. `observed` is written; the reward is the decrease of the costs, divided by the number of jobs.
    """
    rule, (state, start, queue, running, ends, orders, slots) = rules[0], environments
    for e in range(begin, end):
        own = state[e]
        env = Environments(own, start[e], queue[e], running[e], ends[e], orders[e], slots[e])
        action, mask = actions[e], observed.mask[e]
        if action < 0:
            own.episode = -1 - action
        episode = log.episodes[own.episode]
        jobs, terms = log.jobs[episode.first :], log.terms[episode.first :]
        if action < 0:
            _begin(env, rule, jobs, episode)
        elif own.over == 0:
            if action >= mask.size or mask[action] == 0:
                own.masked += 1
                action = 0
                while mask[action] == 0:
                    action += 1
            _apply(env, rule, jobs, action)
        _go_on(env, rule, jobs, terms, episode.jobs)
        observed.rewards[e] = 0.0
        if action >= 0:
            owed = _owed(env, rule, jobs)
            observed.rewards[e] = (own.owed - owed) / max(episode.jobs - episode.run_at_first, 1)
            own.owed = owed
        _fill_slots(env, rule, jobs)
        _mask(env, rule, jobs, episode.jobs, mask)
        _observe(env, rule, jobs, log.still[episode.first :], observed.seen[e], observed.summary[e])


@kernel
def _begin(env, rules, jobs, episode):
    own = env.state
    own.now = own.choose_at = episode.begin
    own.free, own.chosen = rules.procs, rules.order
    own.head = own.shadow_of = -1
    own.arrived = own.waiting = own.running = own.phase = own.shadow = own.extra = own.started = own.work = own.over = 0
    own.sorted = own.kept = 0
    own.paid = own.owed = 0.0
    env.start[:] = -1
    for job in range(episode.run_at_first):
        env.start[job] = jobs[job].given
        _occupy(env, jobs, job)
    own.arrived = own.started
    for _ in range(episode.wait_at_first):
        _arrive(env, jobs)
    own.owed = _owed(env, rules, jobs)


@kernel
def _occupy(env, jobs, job):
    own = env.state
    enter_running(env.running, own.running, env.start[job] + jobs[job].planned, job, jobs[job].procs)
    push(env.ends, own.running, env.start[job] + jobs[job].runtime, own.started, job)
    own.running += 1
    own.free -= jobs[job].procs
    own.started += 1


@kernel
def _end_next(env, jobs):
    own = env.state
    job = pop(env.ends, own.running)
    leave_running(env.running, own.running, env.start[job] + jobs[job].planned, job)
    own.running -= 1
    own.free += jobs[job].procs


@kernel
def _arrive(env, jobs):
    own = env.state
    env.queue[own.waiting] = own.arrived
    own.work += jobs[own.arrived].planned * jobs[own.arrived].procs
    own.waiting += 1
    own.arrived += 1


@kernel
def _start(env, rules, jobs, place):
    own, queue = env.state, env.queue
    job = queue[place]
    own.waiting -= 1
    for i in range(place, own.waiting):
        queue[i] = queue[i + 1]
    own.work -= jobs[job].planned * jobs[job].procs
    env.start[job] = own.now
    own.paid += cost_of(rules.cost, own.now - jobs[job].submit, jobs[job].runtime)
    _occupy(env, jobs, job)
    if own.shadow_of >= 0 and own.now + jobs[job].planned > own.shadow:
        own.extra -= jobs[job].procs


@kernel
def _owed(env, rules, jobs):
    """Return the costs of the jobs so far: the costs of started jobs, and of waiting jobs as if they started now."""
    own, owed = env.state, env.state.paid
    for i in range(own.waiting):
        job = env.queue[i]
        owed += cost_of(rules.cost, own.now - jobs[job].submit, jobs[job].runtime)
    return owed


@kernel
def _apply(env, rules, jobs, action):
    """Apply a decision; the last action, whose number follows those of the slots, starts no job and waits for the next event."""
    own, queue, slots = env.state, env.queue, env.slots
    if rules.kind == FORMULA:
        own.chosen, own.choose_at = action, own.now + rules.period
    elif action >= slots.size:
        own.phase = AT_EVENT
        own.head = own.head if rules.committed else -1
    elif rules.kind == NEXT or (rules.kind == BOTH and own.phase == AT_HEAD):
        own.head, own.phase = queue[slots[action]], AT_PLACE
    else:
        _start(env, rules, jobs, slots[action])


@kernel
def _first(env, rules, jobs, terms, formula, first, only_candidates):
    """Return the place of the job with the lowest score, from `first` on; `only_candidates`: of jobs that may be backfilled now; or -1."""
    own, queue = env.state, env.queue
    best, lowest = -1, 0.0
    for i in range(first, own.waiting):
        if only_candidates and not _may_fill(own, rules, jobs, queue[i]):
            continue
        score = score_of(formula, own.now, jobs, terms, queue[i])
        if best < 0 or score < lowest:
            best, lowest = i, score
            if formula == FCFS:
                break
    return best


@kernel
def _filling(own, rules):
    if own.play >= 0:
        return own.filler
    if rules.backfills == 0:
        return -1
    return FCFS if rules.fill_by_arrival else own.chosen


@kernel
def _may_fill(own, rules, jobs, job):
    """Return whether a job may be backfilled: it fits, and ends before the head's reservation or needs only extra processors."""
    if job == own.head or jobs[job].procs > own.free:
        return False
    ends = own.now + jobs[job].planned
    if ends < own.shadow or (ends == own.shadow and rules.ends_before == 0):
        return True
    return rules.extra_nodes > 0 and jobs[job].procs <= own.extra


@kernel
def _go_on(env, rules, jobs, terms, count):
    """Continue to the next decision, or to the end of the episode, when every job has started."""
    own, queue = env.state, env.queue
    tried = 0
    while True:
        if own.started == count:
            own.over = 1
            return
        if own.phase == AT_EVENT:
            _take_events(env, rules, jobs, count)
            own.phase = AT_HEAD
        if own.phase == AT_HEAD:
            if own.waiting == 0:
                own.phase = AT_EVENT
                continue
            if own.head < 0:
                if rules.kind == BOTH and own.play < 0 and rules.committed == 0:
                    i = 0
                    while i < own.waiting and jobs[queue[i]].procs > own.free:
                        i += 1
                    if i == own.waiting:
                        own.phase = AT_EVENT  # no choice would change anything
                        continue
                if (rules.kind == NEXT or rules.kind == BOTH) and own.play < 0:
                    return
                if rules.kind == FORMULA and own.now >= own.choose_at and own.play < 0:
                    return
                order = own.chosen if own.play < 0 else own.play
                own.head = queue[_first(env, rules, jobs, terms, order, 0, False)]
            own.phase = AT_PLACE
        if own.phase == AT_PLACE:
            if jobs[own.head].procs <= own.free:
                place = 0
                while queue[place] != own.head:
                    place += 1
                own.shadow_of = own.head = -1
                _start(env, rules, jobs, place)
                own.phase = AT_HEAD
                continue
            if _filling(own, rules) >= 0 and not (rules.shadow_once and own.shadow_of == own.head):
                own.shadow, own.extra, _ = find_shadow(env.running, own.running, own.now, own.free, jobs[own.head].procs)
                own.shadow_of = own.head
            own.phase, tried = AT_FILL, 0
        order = _filling(own, rules)
        if order >= 0 and own.free > 0:
            candidate = _first(env, rules, jobs, terms, order, tried, True)
            if candidate >= 0 and rules.kind == BOTH and own.play < 0:
                _fill_slots(env, rules, jobs)
                i, shown = 0, min(own.waiting, env.slots.size)
                while i < shown and not _may_fill(own, rules, jobs, queue[env.slots[i]]):
                    i += 1
                candidate = candidate if i < shown else -1
            if candidate >= 0:
                tried = candidate if order == FCFS else 0  # a start never turns another job into a candidate
                if (rules.kind == BACKFILL or rules.kind == BOTH) and own.play < 0:
                    return
                _start(env, rules, jobs, candidate)
                continue
        own.phase = AT_EVENT
        if not rules.committed:
            own.head = -1


@kernel
def _take_events(env, rules, jobs, count):
    """Handle all events of the next instant, terminations first; with `one_by_one`, only one event, arrivals first."""
    own, ends = env.state, env.ends
    arrival = jobs[own.arrived].submit if own.arrived < count else NEVER
    termination = ends[0].rank if own.running > 0 else NEVER
    own.now = max(own.now, min(arrival, termination))
    if rules.one_by_one:
        if arrival <= termination:
            _arrive(env, jobs)
        else:
            _end_next(env, jobs)
        return
    while own.running > 0 and ends[0].rank <= own.now:
        _end_next(env, jobs)
    while own.arrived < count and jobs[own.arrived].submit <= own.now:
        _arrive(env, jobs)


@kernel
def _fill_slots(env, rules, jobs):
    """Fill the slots with the jobs that arrived first, or with the shortest and the smallest jobs in turn."""
    own, slots = env.state, env.slots
    if rules.turns and own.waiting > slots.size:
        own.kept = sort_waiting(env.orders, own.kept, own.sorted, own.arrived, jobs, env.start)
        own.sorted = own.arrived
        take_turns(env.orders, jobs, env.queue, own.waiting, slots)
        return
    for i in range(min(own.waiting, slots.size)):
        slots[i] = i


@kernel
def _mask(env, rules, jobs, count, mask):
    """Allow each action whose slot has a job that may be chosen, and the action that skips if another event follows."""
    own, queue, slots = env.state, env.queue, env.slots
    if rules.kind == FORMULA and not own.over:
        mask[:] = 1
        return
    mask[:] = 0
    if own.over:
        mask[0] = 1
        return
    for i in range(min(own.waiting, slots.size)):
        mask[i] = 1 if own.phase != AT_FILL or _may_fill(own, rules, jobs, queue[slots[i]]) else 0
    if mask.size > slots.size:
        mask[slots.size] = 1 if rules.kind == BACKFILL or own.running > 0 or own.arrived < count else 0


@kernel
def _share(value, scale):
    """Return a value on a logarithmic scale from 0 to 1; `scale` and larger values become 1."""
    return min(math.log1p(value) / math.log1p(scale), 1.0)


@kernel
def _observe(env, rules, jobs, still, seen, summary):
    """Write the features of the jobs in the slots, and of the queue: `walltime.learn.FEATURES`."""
    own, queue, slots = env.state, env.queue, env.slots
    shown, published = min(own.waiting, seen.shape[0]), seen.shape[1] == 8
    now, free, size = own.now, own.free, float(rules.procs)
    reserved = own.phase == AT_FILL
    for i in range(shown):
        job, row = queue[slots[i]], seen[i]
        wait = float(now - jobs[job].submit)
        fits = 1.0 if jobs[job].procs <= free else 0.0
        if published:
            row[0] = min(wait / HALF_DAY, NEARLY_ONE)
            for k in range(6):
                row[1 + k] = still[job, k]
            row[7] = min(max(fits, 1.0 - NEARLY_ONE), NEARLY_ONE)
        else:
            row[0] = 1.0
            row[1] = _share(wait, WEEK)
            row[2], row[3] = still[job, 0], still[job, 1]
            row[4] = fits
            row[5] = _share(wait / jobs[job].planned, 1000.0)
            row[6] = 1.0 if reserved and _may_fill(own, rules, jobs, job) else 0.0
    seen[shown:] = 0.0
    if published:
        seen[shown:, 1:7] = 1.0
    summary[0] = free / size
    summary[1] = _share(own.waiting, 1024.0)
    summary[2] = _share(own.work / size, MONTH)
    summary[3] = _share(max(own.shadow - now, 0), WEEK) if reserved else 0.0
    summary[4] = max(own.extra, 0) / size if reserved and rules.extra_nodes else 0.0
    summary[5] = now % DAY / DAY


@kernel
def cost_of(kind, wait, runtime):
    """Return the cost of a job that has waited for this long, s."""
    if kind == WAIT:
        return float(wait)
    if kind == RESPONSE:
        return float(wait + runtime)
    if kind == SLOWDOWN:
        return (wait + runtime) / max(runtime, 1)
    return max(1.0, (wait + runtime) / max(runtime, BOUND))


@kernel
def score_of(formula, now, jobs, terms, job):
    """Return the score of a job: a formula of zhang20, with the waiting time as defined, or of carastan17; the lowest comes first.

    `terms`: see `walltime.learn.features`.
    """
    if formula == WFP3:
        ratio = (now - jobs[job].submit) / jobs[job].planned
        return -(ratio * ratio * ratio * jobs[job].procs)
    if formula == UNICEP:
        return -(now - jobs[job].submit + 1e-20) / terms[job, formula]
    return terms[job, formula]


@kernel
def sort_waiting(orders, kept, sorted_before, arrived, jobs, start):
    """Update both sorted lists of waiting jobs, and return their length.

    `orders` (int64, 2 x jobs): waiting jobs by length, and by size. `kept`: their number; `sorted_before` and `arrived`: how many jobs had
    arrived at the last update, and have now. Environments whose slots are not shown need no sorting.
    """
    count = 0
    for k in range(2):
        order, count, places = orders[k], 0, jobs.by_length if k == 0 else jobs.by_size
        for i in range(kept):
            if start[order[i]] == -1:
                order[count] = order[i]
                count += 1
        for job in range(sorted_before, arrived):
            if start[job] != -1:
                continue
            i = count
            while i > 0 and places[order[i - 1]] > places[job]:
                order[i] = order[i - 1]
                i -= 1
            order[i] = job
            count += 1
    return count


@kernel
def take_turns(orders, jobs, queue, waiting, slots):
    """Fill the slots with the shortest job, the smallest one, the next shortest, the next smallest, and so on, each job once (zhang20).

    `slots` (int64): places in the queue, which is in order of arrival. There are more jobs than slots.
    """
    shortest, smallest, shown, i = orders[0], orders[1], 0, 0
    while shown < slots.size:
        if jobs[shortest[i]].by_size >= jobs[smallest[i]].by_size:  # otherwise it already has a slot, as one of the smallest
            slots[shown] = first_from(queue, 0, waiting, shortest[i])
            shown += 1
        if shown < slots.size and jobs[smallest[i]].by_length > jobs[shortest[i]].by_length:
            slots[shown] = first_from(queue, 0, waiting, smallest[i])
            shown += 1
        i += 1
