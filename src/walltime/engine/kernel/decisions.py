"""The kernel of the learning environment: simulations that stop where somebody else is to decide (`walltime.learn`).

Many environments are rows of plain arrays, since a decision takes less time than to hand records to compiled code. Each runs one episode,
whose jobs are the rows `library[first : first + jobs]`. `decide` applies a decision to each of some environments, goes on to their next
ones, and writes what is observed. It allocates nothing and needs no lock, so threads take parts of the rows.

A scheduling pass goes through phases. HEAD: who comes next. PLACE: it starts if it fits, and the next one is chosen; else its start is
reserved. FILL: others start that do not delay it. EVENT: the next arrivals and terminations, with which a new pass begins. The rules are
those of the reference engine (reference/number.py), which makes the same schedules in other words.
"""

from __future__ import annotations

import math

from walltime.engine.kernel.jit import entry, kernel
from walltime.engine.kernel.memory import NEVER
from walltime.engine.kernel.slots import sort_waiting, take_turns

# Columns of the library, int64: s, processors; `GIVEN`: the start of a job that runs when the episode begins, else -1. Two ranks follow.
SUBMIT, RUNTIME, BELIEVED, PROCS, GIVEN = range(5)
# Columns of the episodes, int64: the first row in the library, numbers of jobs: all, running at first, waiting at first; begin, s.
FIRST, JOBS, RUN_AT_FIRST, WAIT_AT_FIRST, BEGIN = range(5)

# What is decided: who comes next, who is backfilled, which formula orders the queue for a while; who comes next and who is backfilled.
NEXT, BACKFILL, FORMULA, BOTH = range(4)
# The rules, int64; `EXTRA_NODES`: whether there are any; `ORDER`: the formula that finds the head where nobody decides on it;
# `TURNS`: whether the shortest and the smallest jobs have the slots where there are too few.
KIND, COMMITTED, BACKFILLS, ONE_BY_ONE, EXTRA_NODES, ENDS_BEFORE, SHADOW_ONCE, FILL_BY_ARRIVAL, SIZE, PERIOD, ORDER, TURNS, COST = range(13)
RULES = 13

# The state of an environment, int64. `PLAY`: the formula that decides in place of the agent, -1 for none; `FILL`: the one by which it
# backfills, -1 if nobody is backfilled. `SORTED`, `KEPT`: how many jobs had arrived when the waiting ones were sorted last, and how many
# of them waited.
(
    NOW,
    FREE,
    ARRIVED,
    WAITING,
    RUNNING,
    PHASE,
    HEAD,
    SHADOW,
    EXTRA,
    SHADOW_OF,
    CHOSEN,
    CHOOSE_AT,
    STARTED,
    WORK,
    OVER,
    PLAY,
    EPISODE,
    MASKED,
    FILL,
    SORTED,
    KEPT,
) = range(21)
STATE = 21
AT_EVENT, AT_HEAD, AT_PLACE, AT_FILL = range(4)
# Sums, float64: the costs of the jobs that have started; those and the costs of the waiting ones as if they started now.
PAID, OWED = range(2)
SUMS = 2
# Columns of the running jobs, by expected end, and of the terminations to come, the last one first.
EXPECTED, TAKEN = range(2)
END, BELIEVED_END, FREED = range(3)

# Formulas, in the order of `walltime.learn.FORMULAS`; the lowest score comes first, ties by arrival.
FCFS, SJF, SAF, WFP3, UNICEP, F1, F2, F3, F4 = range(9)
# Costs of a job.
WAIT, RESPONSE, SLOWDOWN, BOUNDED = range(4)
BOUND = 10
"""Runtimes below this count as this in bounded slowdowns, s."""

# Features.
COMPACT, PUBLISHED = range(2)
WEEK, MONTH, HALF_DAY, DAY = 604_800.0, 2_592_000.0, 43_200.0, 86_400
NEARLY_ONE = 1.0 - 1e-5
"""The most that is observed of a job in zhang20, so that it is not taken for padding."""


@entry
def decide(
    begin,
    end,
    actions,
    rules,
    library,
    terms,
    still,
    episodes,
    state,
    sums,
    start,
    queue,
    running,
    ends,
    orders,
    slots,
    seen,
    summary,
    mask,
    rewards,
):
    """Apply an action to each environment from `begin` to before `end`, and go on to its next decision, or to the end of its episode.

    `actions` (int64): a decision, or -1 - k to begin episode k; others that `mask` (int8, environments x actions) forbids count as the
    first that it allows. `slots` (int64): the places in the queue of the jobs that are shown. `seen` (float32, environments x slots x
    features), `summary` (float32), `mask` and `rewards` (float64; the fall of the costs, divided by the number of jobs) are written;
    `state[:, OVER]` tells whether the episode has ended.
    """
    for e in range(begin, end):
        own, total = state[e], sums[e]
        action = actions[e]
        if action < 0:
            _begin(own, total, rules, library, episodes, start[e], queue[e], running[e], ends[e], -1 - action)
        elif own[OVER] == 0:
            if action >= mask.shape[1] or mask[e, action] == 0:
                own[MASKED] += 1
                action = 0
                while mask[e, action] == 0:
                    action += 1
            jobs = library[episodes[own[EPISODE], FIRST] :]
            _apply(own, total, rules, jobs, start[e], queue[e], running[e], ends[e], slots[e], action)
        jobs = library[episodes[own[EPISODE], FIRST] :]
        count = episodes[own[EPISODE], JOBS]
        of_jobs = terms[episodes[own[EPISODE], FIRST] :]
        _go_on(own, total, rules, jobs, of_jobs, count, start[e], queue[e], running[e], ends[e], orders[e], slots[e])
        rewards[e] = 0.0
        if action >= 0:
            owed = _owed(own, total, rules, jobs, queue[e])
            rewards[e] = (total[OWED] - owed) / max(count - episodes[own[EPISODE], RUN_AT_FIRST], 1)
            total[OWED] = owed
        _fill_slots(own, rules, jobs, start[e], queue[e], orders[e], slots[e])
        _mask(own, rules, jobs, count, queue[e], slots[e], mask[e])
        _observe(own, rules, jobs, still[episodes[own[EPISODE], FIRST] :], queue[e], slots[e], seen[e], summary[e])


@kernel
def _begin(own, total, rules, library, episodes, start, queue, running, ends, episode):
    """Begin an episode: some jobs run already, and some wait."""
    play, masked, fill = own[PLAY], own[MASKED], own[FILL]
    own[:] = 0
    own[FILL] = fill
    own[PLAY], own[MASKED], own[EPISODE], own[NOW], own[FREE] = play, masked, episode, episodes[episode, BEGIN], rules[SIZE]
    own[HEAD] = own[SHADOW_OF] = -1
    own[CHOSEN], own[CHOOSE_AT] = rules[ORDER], own[NOW]
    total[:] = 0.0
    start[:] = -1
    jobs = library[episodes[episode, FIRST] :]
    for job in range(episodes[episode, RUN_AT_FIRST]):
        start[job] = jobs[job, GIVEN]
        _occupy(own, jobs, start, running, ends, job)
    own[ARRIVED] = own[STARTED]
    for _ in range(episodes[episode, WAIT_AT_FIRST]):
        _arrive(own, jobs, queue)
    total[OWED] = _owed(own, total, rules, jobs, queue)


@kernel
def _occupy(own, jobs, start, running, ends, job):
    """A job takes its processors from its start on; both lists stay sorted."""
    procs = jobs[job, PROCS]
    expected, last = start[job] + jobs[job, BELIEVED], start[job] + jobs[job, RUNTIME]
    i = own[RUNNING]
    while i > 0 and running[i - 1, EXPECTED] > expected:
        running[i, EXPECTED], running[i, TAKEN] = running[i - 1, EXPECTED], running[i - 1, TAKEN]
        i -= 1
    running[i, EXPECTED], running[i, TAKEN] = expected, procs
    i = own[RUNNING]
    while i > 0 and ends[i - 1, END] <= last:
        ends[i, END], ends[i, BELIEVED_END], ends[i, FREED] = ends[i - 1, END], ends[i - 1, BELIEVED_END], ends[i - 1, FREED]
        i -= 1
    ends[i, END], ends[i, BELIEVED_END], ends[i, FREED] = last, expected, procs
    own[RUNNING] += 1
    own[FREE] -= procs
    own[STARTED] += 1


@kernel
def _end_next(own, running, ends):
    """The next termination: any running job of this size and expected end will do."""
    own[RUNNING] -= 1
    count = own[RUNNING]
    expected, procs = ends[count, BELIEVED_END], ends[count, FREED]
    i = 0
    while running[i, EXPECTED] != expected or running[i, TAKEN] != procs:
        i += 1
    while i < count:
        running[i, EXPECTED], running[i, TAKEN] = running[i + 1, EXPECTED], running[i + 1, TAKEN]
        i += 1
    own[FREE] += procs


@kernel
def _arrive(own, jobs, queue):
    job = own[ARRIVED]
    queue[own[WAITING]] = job
    own[WAITING] += 1
    own[ARRIVED] += 1
    own[WORK] += jobs[job, BELIEVED] * jobs[job, PROCS]


@kernel
def _start(own, total, rules, jobs, start, queue, running, ends, place):
    """Start the job at this place of the queue now."""
    job = queue[place]
    own[WAITING] -= 1
    for i in range(place, own[WAITING]):
        queue[i] = queue[i + 1]
    own[WORK] -= jobs[job, BELIEVED] * jobs[job, PROCS]
    start[job] = own[NOW]
    total[PAID] += _cost(rules[COST], own[NOW] - jobs[job, SUBMIT], jobs[job, RUNTIME])
    _occupy(own, jobs, start, running, ends, job)
    if own[SHADOW_OF] >= 0 and own[NOW] + jobs[job, BELIEVED] > own[SHADOW]:
        own[EXTRA] -= jobs[job, PROCS]


@kernel
def _owed(own, total, rules, jobs, queue):
    """The costs of the jobs so far: those that have started, and the waiting ones as if they started now."""
    owed = total[PAID]
    for i in range(own[WAITING]):
        owed += _cost(rules[COST], own[NOW] - jobs[queue[i], SUBMIT], jobs[queue[i], RUNTIME])
    return owed


@kernel
def _cost(kind, wait, runtime):
    """What a job costs that has waited so long, s."""
    if kind == WAIT:
        return float(wait)
    if kind == RESPONSE:
        return float(wait + runtime)
    if kind == SLOWDOWN:
        return (wait + runtime) / max(runtime, 1)
    return max(1.0, (wait + runtime) / max(runtime, BOUND))


@kernel
def _score(formula, now, jobs, terms, job):
    """A formula of zhang20, with the waiting time as defined, or of carastan17; the lowest comes first.

    `terms`: see `walltime.learn.formulas`.
    """
    if formula == WFP3:
        ratio = (now - jobs[job, SUBMIT]) / jobs[job, BELIEVED]
        return -(ratio * ratio * ratio * jobs[job, PROCS])
    if formula == UNICEP:
        return -(now - jobs[job, SUBMIT] + 1e-20) / terms[job, formula]
    return terms[job, formula]


@kernel
def _apply(own, total, rules, jobs, start, queue, running, ends, slots, action):
    """A decision; the last action, behind the slots of the queue, skips."""
    if rules[KIND] == FORMULA:
        own[CHOSEN], own[CHOOSE_AT] = action, own[NOW] + rules[PERIOD]
    elif action >= slots.size:
        own[PHASE] = AT_EVENT
        own[HEAD] = own[HEAD] if rules[COMMITTED] else -1
    elif rules[KIND] == NEXT or (rules[KIND] == BOTH and own[PHASE] == AT_HEAD):
        own[HEAD], own[PHASE] = queue[slots[action]], AT_PLACE
    else:
        _start(own, total, rules, jobs, start, queue, running, ends, slots[action])


@kernel
def _first(own, formula, jobs, terms, queue, first, only_candidates, rules):
    """The place of the waiting job with the lowest score, from a place on, of all or of those that may be backfilled now; -1 for none."""
    best, lowest = -1, 0.0
    for i in range(first, own[WAITING]):
        if only_candidates and not _may_fill(own, rules, jobs, queue[i]):
            continue
        score = _score(formula, own[NOW], jobs, terms, queue[i])
        if best < 0 or score < lowest:
            best, lowest = i, score
            if formula == FCFS:
                break
    return best


@kernel
def _anyone_fits(own, jobs, queue):
    """Whether any waiting job could start now."""
    for i in range(own[WAITING]):  # noqa: SIM110 (a generator cannot be compiled)
        if jobs[queue[i], PROCS] <= own[FREE]:
            return True
    return False


@kernel
def _anyone_may_fill(own, rules, jobs, queue, slots):
    """Whether any job in a slot may start behind the head's reservation."""
    for i in range(min(own[WAITING], slots.size)):  # noqa: SIM110 (a generator cannot be compiled)
        if _may_fill(own, rules, jobs, queue[slots[i]]):
            return True
    return False


@kernel
def _filling(own, rules):
    """The formula by which jobs are backfilled, -1 if nobody is."""
    if own[PLAY] >= 0:
        return own[FILL]
    if rules[BACKFILLS] == 0:
        return -1
    return FCFS if rules[FILL_BY_ARRIVAL] else own[CHOSEN]


@kernel
def _may_fill(own, rules, jobs, job):
    """Whether a job may start behind the head's reservation: it fits, and ends in time or needs no more than the extra nodes."""
    if job == own[HEAD] or jobs[job, PROCS] > own[FREE]:
        return False
    ends = own[NOW] + jobs[job, BELIEVED]
    if ends < own[SHADOW] or (ends == own[SHADOW] and rules[ENDS_BEFORE] == 0):
        return True
    return rules[EXTRA_NODES] > 0 and jobs[job, PROCS] <= own[EXTRA]


@kernel
def _reserve(own, rules, jobs, running):
    """The shadow time and the extra nodes of the blocked head (mualem01, section 2.2)."""
    head = own[HEAD]
    if rules[SHADOW_ONCE] and own[SHADOW_OF] == head:
        return
    available, shadow, i = own[FREE], own[NOW], 0
    while available < jobs[head, PROCS] or (i < own[RUNNING] and running[i, EXPECTED] <= shadow):
        available += running[i, TAKEN]
        shadow = max(shadow, running[i, EXPECTED])
        i += 1
    own[SHADOW], own[EXTRA], own[SHADOW_OF] = shadow, available - jobs[head, PROCS], head


@kernel
def _go_on(own, total, rules, jobs, terms, count, start, queue, running, ends, orders, slots):
    """Go on to the next decision; or to the end of the episode, when every job has started."""
    tried = 0
    while True:
        if own[STARTED] == count:
            own[OVER] = 1
            return
        if own[PHASE] == AT_EVENT:
            _take_events(own, rules, jobs, count, queue, running, ends)
            own[PHASE] = AT_HEAD
        if own[PHASE] == AT_HEAD:
            if own[WAITING] == 0:
                own[PHASE] = AT_EVENT
                continue
            if own[HEAD] < 0:
                if rules[KIND] == BOTH and own[PLAY] < 0 and rules[COMMITTED] == 0 and not _anyone_fits(own, jobs, queue):
                    own[PHASE] = AT_EVENT  # whoever came next, nothing would happen
                    continue
                if (rules[KIND] == NEXT or rules[KIND] == BOTH) and own[PLAY] < 0:
                    return
                if rules[KIND] == FORMULA and own[NOW] >= own[CHOOSE_AT] and own[PLAY] < 0:
                    return
                order = own[CHOSEN] if own[PLAY] < 0 else own[PLAY]
                own[HEAD] = queue[_first(own, order, jobs, terms, queue, 0, False, rules)]
            own[PHASE] = AT_PLACE
        if own[PHASE] == AT_PLACE:
            if jobs[own[HEAD], PROCS] <= own[FREE]:
                place = 0
                while queue[place] != own[HEAD]:
                    place += 1
                own[SHADOW_OF] = own[HEAD] = -1
                _start(own, total, rules, jobs, start, queue, running, ends, place)
                own[PHASE] = AT_HEAD
                continue
            if _filling(own, rules) >= 0:
                _reserve(own, rules, jobs, running)
            own[PHASE], tried = AT_FILL, 0
        order = _filling(own, rules)
        if order >= 0 and own[FREE] > 0:
            candidate = _first(own, order, jobs, terms, queue, tried, True, rules)
            if candidate >= 0 and rules[KIND] == BOTH and own[PLAY] < 0:
                _fill_slots(own, rules, jobs, start, queue, orders, slots)
                if not _anyone_may_fill(own, rules, jobs, queue, slots):
                    candidate = -1
            if candidate >= 0:
                tried = candidate if order == FCFS else 0  # a start makes nobody a candidate who was none
                if (rules[KIND] == BACKFILL or rules[KIND] == BOTH) and own[PLAY] < 0:
                    return
                _start(own, total, rules, jobs, start, queue, running, ends, candidate)
                continue
        own[PHASE] = AT_EVENT
        if not rules[COMMITTED]:
            own[HEAD] = -1


@kernel
def _take_events(own, rules, jobs, count, queue, running, ends):
    """The next events: all of an instant, terminations first; or one, arrivals first."""
    arrival = jobs[own[ARRIVED], SUBMIT] if own[ARRIVED] < count else NEVER
    termination = ends[own[RUNNING] - 1, END] if own[RUNNING] > 0 else NEVER
    own[NOW] = max(own[NOW], min(arrival, termination))
    if rules[ONE_BY_ONE]:
        if arrival <= termination:
            _arrive(own, jobs, queue)
        else:
            _end_next(own, running, ends)
        return
    while own[RUNNING] > 0 and ends[own[RUNNING] - 1, END] <= own[NOW]:
        _end_next(own, running, ends)
    while own[ARRIVED] < count and jobs[own[ARRIVED], SUBMIT] <= own[NOW]:
        _arrive(own, jobs, queue)


@kernel
def _fill_slots(own, rules, jobs, start, queue, orders, slots):
    """The places in the queue of the jobs in the slots: the first to arrive, or the shortest and the smallest in turn."""
    if rules[TURNS] and own[WAITING] > slots.size:
        own[KEPT] = sort_waiting(orders, own[KEPT], own[SORTED], own[ARRIVED], jobs, start)
        own[SORTED] = own[ARRIVED]
        take_turns(orders, jobs, queue, own[WAITING], slots)
        return
    for i in range(min(own[WAITING], slots.size)):
        slots[i] = i


@kernel
def _mask(own, rules, jobs, count, queue, slots, mask):
    """Which actions are allowed: slots with a job that may be chosen; to skip where something else is still to happen."""
    if rules[KIND] == FORMULA and not own[OVER]:
        mask[:] = 1
        return
    mask[:] = 0
    if own[OVER]:
        mask[0] = 1
        return
    for i in range(min(own[WAITING], slots.size)):
        mask[i] = 1 if own[PHASE] != AT_FILL or _may_fill(own, rules, jobs, queue[slots[i]]) else 0
    if mask.size > slots.size:
        mask[slots.size] = 1 if rules[KIND] == BACKFILL or own[RUNNING] > 0 or own[ARRIVED] < count else 0


@kernel
def _share(value, scale):
    """A logarithmic scale from 0 to 1, where `scale` becomes 1."""
    return min(math.log1p(value) / math.log1p(scale), 1.0)


@kernel
def _observe(own, rules, jobs, still, queue, slots, seen, summary):
    """The features of the jobs in the slots, and of the queue: `walltime.learn.FEATURES`."""
    shown = min(own[WAITING], seen.shape[0])
    now, free, size = own[NOW], own[FREE], float(rules[SIZE])
    reserved = own[PHASE] == AT_FILL
    for i in range(shown):
        job, row = queue[slots[i]], seen[i]
        wait = float(now - jobs[job, SUBMIT])
        fits = 1.0 if jobs[job, PROCS] <= free else 0.0
        if row.size == 8:
            row[0] = min(wait / HALF_DAY, NEARLY_ONE)
            for k in range(6):
                row[1 + k] = still[job, k]
            row[7] = min(max(fits, 1.0 - NEARLY_ONE), NEARLY_ONE)
        else:
            row[0] = 1.0
            row[1] = _share(wait, WEEK)
            row[2], row[3] = still[job, 0], still[job, 1]
            row[4] = fits
            row[5] = _share(wait / jobs[job, BELIEVED], 1000.0)
            row[6] = 1.0 if reserved and _may_fill(own, rules, jobs, job) else 0.0
    if seen.shape[1] == 8:
        seen[shown:, 0] = 0.0
        seen[shown:, 1:7] = 1.0
        seen[shown:, 7] = 0.0
    else:
        seen[shown:] = 0.0
    summary[0] = free / size
    summary[1] = _share(own[WAITING], 1024.0)
    summary[2] = _share(own[WORK] / size, MONTH)
    summary[3] = _share(max(own[SHADOW] - now, 0), WEEK) if reserved else 0.0
    summary[4] = max(own[EXTRA], 0) / size if reserved and rules[EXTRA_NODES] else 0.0
    summary[5] = now % DAY / DAY
