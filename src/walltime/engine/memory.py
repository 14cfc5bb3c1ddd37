"""What the event loop works on: the jobs, the rules of the policy, the machine and the queue, as flat arrays.

The arrays of `Memory` and `Result` are modified in place. The numbers that change at every event live in the int64 array
`Memory.state`; the names of its places are the constants below.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walltime.engine.history import Learning, Prediction, new_learning, restore_learning

Array = np.ndarray
NEVER = np.iinfo(np.int64).max
"""The time of an event that does not come."""

# How a job started (SPEC A-07).
IMMEDIATE, RESERVED, BACKFILLED = 0, 1, 2

# Why a kernel returned.
DONE, PAUSED, STUCK = 0, 1, 2

# How a policy decides at each event.
HEAD, PLAN, KEEP = 0, 1, 2
"""HEAD: at most the first blocked job has a reservation (FCFS, EASY). PLAN: reservations are made afresh at every event
(hybrid, conservative from scratch). KEEP: reservations are kept and compressed (conservative)."""

# Queue orders.
BY_ARRIVAL, BY_LENGTH, BY_WFP, BY_USER = 0, 1, 2, 3

# Places in Memory.state.
NOW = 0  # time of the event in hand
NEXT_JOB = 1  # the next job in order of submission that waits for no other one
STARTED = 2  # jobs that have started so far
FREE = 3  # free processors
RUNNING = 4  # jobs in the running set
EVENTS = 5  # jobs in the heap of ends
QUEUE_FIRST = 6  # the queue is Memory.queue[QUEUE_FIRST:QUEUE_LAST]
QUEUE_LAST = 7
PLANNED = 8  # queue places below this one have been looked at in an earlier pass
FREED = 9  # 1 if processors were freed since the last pass
SHADOW = 10  # EASY: the shadow time, at which the head will fit
EXTRA = 11  # EASY: processors beyond the head's that are free at the shadow time
BLOCKS = 12  # blocks of the profile in use
SPARE_BLOCKS = 13  # blocks of the profile not in use
EARLY = 14  # jobs that ended before their expected end since the last pass
BROKEN = 15  # 1 if the kept reservations cannot be relied on, and have to be made afresh
NEXT_DUE = 16  # the earliest kept reservation
ARRIVALS = 17  # jobs that have arrived so far
LATER = 18  # jobs in the heap of arrivals that waited for another job's end
NEXT_ARRIVAL = 19  # time of the next arrival, NEVER if there is none
INDEXED = 20  # 1 while the queue is so long that an index over it is kept
CLASSES = 21  # size classes of that index
HEAD_JOB = 22  # EASY: the head that the shadow time is for, -1 for none
BEFORE_SHADOW = 23  # EASY: running jobs that are expected to end by the shadow time
STATE_SIZE = 24

STEPS_IN_BLOCK = 64
"""The most steps of the profile that one of its blocks holds."""


class Jobs(NamedTuple):
    """The jobs in order of submission, int64, read-only.

    `runtime` is what a job really runs, `believed` what the scheduler believes if nobody predicts. Where a prediction is believed
    instead, the length for its place in the queue, its own length while it waits, and its length once it runs are views of
    what `Memory` holds of predictions; elsewhere they are `believed` itself (SPEC A-11). With feedback, a job with `after` >= 0
    is submitted only `think` seconds after the end of that job.
    """

    runtime: Array
    believed: Array
    order_length: Array
    own_length: Array
    run_length: Array
    procs: Array
    after: Array
    think: Array


class Rules(NamedTuple):
    """A policy, lowered to numbers; and from which length on a queue is indexed, and under which no more (index.py).

    `predicting` is True, or None where no runtime is predicted. Functions that have to do with predictions take it first and do
    nothing for None; since None has a type of its own, the kernel without predictions is compiled without all of that.
    """

    machine_procs: int
    mode: int
    depth: int
    backfill: int
    sequential: int
    feedback: int
    order: int
    order_parameter: int
    backfill_order: int
    backfill_parameter: int
    long_queue: int
    short_queue: int
    predicting: bool | None = None
    predictor: int = 0
    predict_again: int = 0
    correction: int = 0
    order_threshold: float = 0.0


class Profile(NamedTuple):
    """Free processors over future time (profile.py), int64.

    Block b has its steps in the slots b * STEPS_IN_BLOCK and up of `time` and `free`, `filled[b]` of them; `least[b]` and
    `most[b]` bound what is free in it. `order[:BLOCKS]` are the blocks in use, in order of time, `spare[:SPARE_BLOCKS]` the
    others.
    """

    time: Array
    free: Array
    order: Array
    spare: Array
    filled: Array
    least: Array
    most: Array


class Openings(NamedTuple):
    """Between which times a compression may find new holes, per size class of jobs, int64: this one, and the next."""

    begin: Array
    end: Array
    next_begin: Array
    next_end: Array


class Memory(NamedTuple):
    """Working arrays, int64 but for the scores; those that a policy does not need have length 0.

    `submit`: when each job is submitted, as far as that is known; `arrival`: its place in the order of arrival. `later_*`:
    heap of the arrivals of jobs that waited for another one's end; `first_follower`, `next_follower`: which ones wait for
    whose, as linked lists.
    """

    state: Array
    submit: Array
    arrival: Array
    later_time: Array
    later_job: Array
    first_follower: Array
    next_follower: Array
    queue: Array
    score: Array
    candidates: Array
    candidate_score: Array
    running_expected: Array
    running_job: Array
    early_job: Array
    event_end: Array
    event_ticket: Array
    event_job: Array
    profile: Profile
    openings: Openings
    reservation: Array
    block_shortest: Array
    group_shortest: Array
    learning: Learning | None


class Log(NamedTuple):
    """What is noted at each start, in the order of the starts, int64; of length 0 if nothing is: see dynamics.py.

    `job`: which one it was. `arrived`: how many jobs had arrived. `head`: over which head it was backfilled, -1 for none.
    """

    job: Array
    arrived: Array
    head: Array


class Result(NamedTuple):
    """One entry per job: start (int64, -1 while waiting), kind (uint8), first reservation (int64, -1 for none); and the log."""

    start: Array
    kind: Array
    promised: Array
    log: Log


class Scratch(NamedTuple):
    """Working arrays of dynamics.py: a heap of the waiting jobs by runtime, those that started, the running ones by end."""

    length: Array
    rank: Array
    waiting: Array
    started: Array
    end: Array
    running: Array


class Found(NamedTuple):
    """What dynamics.py finds, one entry per job: see `replay_starts`."""

    shortest: Array
    alone: Array
    wild: Array
    suffered: Array
    initial_shadow: Array


def new_memory(submit: Array, after: Array, rules: Rules, prediction: Prediction | None = None) -> Memory:
    """Working arrays for these jobs under these rules, the machine empty and nothing learned."""
    jobs = len(submit)
    ordered = rules.order != BY_ARRIVAL
    other = rules.backfill and (
        rules.backfill_order != rules.order or rules.backfill_parameter != rules.order_parameter or rules.order_threshold > 0
    )
    candidates = jobs if other or (rules.mode == KEEP and ordered) else 0
    at_once = min(jobs, rules.machine_procs) + 1
    # With one pass per event, jobs that count as gone still have their termination ahead while others run in their place.
    events = min(jobs, 2 * rules.machine_procs) + 1
    state = np.zeros(STATE_SIZE, np.int64)
    state[FREE] = rules.machine_procs
    state[NEXT_DUE] = NEVER
    state[HEAD_JOB] = -1
    on_their_own = np.flatnonzero(after < 0) if rules.feedback else np.arange(min(jobs, 1))
    state[NEXT_JOB] = on_their_own[0] if len(on_their_own) else jobs
    state[NEXT_ARRIVAL] = submit[state[NEXT_JOB]] if len(on_their_own) else NEVER
    followers = jobs if rules.feedback else 0
    first_follower, next_follower = np.full(followers, -1, np.int64), np.full(followers, -1, np.int64)
    if rules.feedback:
        for job in np.flatnonzero(after >= 0)[::-1]:
            next_follower[job] = first_follower[after[job]]
            first_follower[after[job]] = job
    state[CLASSES] = int(rules.machine_procs).bit_length()
    indexed = (jobs + 4096) * state[CLASSES] if rules.mode == HEAD and rules.backfill and not ordered and not other else 0
    openings = state[CLASSES] if rules.mode == KEEP else 0
    return Memory(
        state=state,
        submit=submit.copy(),
        arrival=np.empty(jobs, np.int64),
        later_time=np.empty(followers, np.int64),
        later_job=np.empty(followers, np.int64),
        first_follower=first_follower,
        next_follower=next_follower,
        queue=np.empty(jobs, np.int64),
        score=np.empty(jobs if ordered and rules.mode != KEEP else 0, np.float64),
        candidates=np.empty(candidates, np.int64),
        candidate_score=np.empty(candidates if other or ordered else 0, np.float64),
        running_expected=np.empty(at_once, np.int64),
        running_job=np.empty(at_once, np.int64),
        early_job=np.empty(at_once if rules.mode == KEEP else 0, np.int64),
        event_end=np.empty(events, np.int64),
        event_ticket=np.empty(events, np.int64),
        event_job=np.empty(events, np.int64),
        profile=_new_profile(2 * jobs + 4 if rules.mode != HEAD else 0, rules.machine_procs, state),
        openings=Openings(
            begin=np.full(openings, NEVER, np.int64),
            end=np.full(openings, -1, np.int64),
            next_begin=np.full(openings, NEVER, np.int64),
            next_end=np.full(openings, -1, np.int64),
        ),
        reservation=np.empty(jobs if rules.mode == KEEP else 0, np.int64),
        block_shortest=np.empty(indexed // 64, np.int64),
        group_shortest=np.empty(indexed // 4096 + state[CLASSES], np.int64),
        learning=None if prediction is None else new_learning(jobs, prediction),
    )


def restore_memory(memory: Memory, state: Array, submit: Array, rules: Rules, prediction: Prediction | None = None) -> None:
    """Make the memory as it was when it was new, and its state was this one; the prediction may be another one of the same shape."""
    if memory.learning is not None and prediction is not None:
        restore_learning(memory.learning, prediction)
    memory.state[:] = state
    memory.submit[:] = submit
    for array, value in zip(memory.openings, (NEVER, -1, NEVER, -1), strict=True):
        array.fill(value)
    _empty_profile(memory.profile, rules.machine_procs)


def _new_profile(steps: int, machine_procs: int, state: Array) -> Profile:
    """Room for so many steps, the machine empty. Blocks are at least a quarter full, but for the first and the last."""
    blocks = 4 * steps // STEPS_IN_BLOCK + 4 if steps else 0
    profile = Profile(
        time=np.empty(blocks * STEPS_IN_BLOCK, np.int64),
        free=np.empty(blocks * STEPS_IN_BLOCK, np.int64),
        order=np.zeros(blocks, np.int64),
        spare=np.empty(blocks, np.int64),
        filled=np.zeros(blocks, np.int64),
        least=np.zeros(blocks, np.int64),
        most=np.zeros(blocks, np.int64),
    )
    if steps:
        _empty_profile(profile, machine_procs)
        state[BLOCKS], state[SPARE_BLOCKS] = 1, blocks - 1
    return profile


def _empty_profile(profile: Profile, machine_procs: int) -> None:
    """One step: the whole machine is free for ever."""
    if len(profile.order):
        profile.spare[:] = np.arange(len(profile.spare))[::-1]
        profile.order[0], profile.filled[0] = 0, 1
        profile.time[0], profile.free[0] = 0, machine_procs


def new_result(jobs: int, logged: bool = False) -> Result:
    """Nobody has started."""
    log = Log(*(np.full(jobs if logged else 0, -1, np.int64) for _ in Log._fields))
    return Result(start=np.full(jobs, -1, np.int64), kind=np.zeros(jobs, np.uint8), promised=np.full(jobs, -1, np.int64), log=log)


def new_scratch(jobs: int, machine_procs: int) -> Scratch:
    """Nobody waits or runs."""
    at_once = min(jobs, 2 * machine_procs) + 1
    return Scratch(
        length=np.empty(jobs, np.int64),
        rank=np.empty(jobs, np.int64),
        waiting=np.empty(jobs, np.int64),
        started=np.zeros(jobs, np.bool_),
        end=np.empty(at_once, np.int64),
        running=np.empty(at_once, np.int64),
    )


def new_found(jobs: int) -> Found:
    """Nothing has been found."""
    return Found(
        shortest=np.zeros(jobs, np.bool_),
        alone=np.zeros(jobs, np.bool_),
        wild=np.zeros(jobs, np.bool_),
        suffered=np.zeros(jobs, np.int64),
        initial_shadow=np.full(jobs, -1, np.int64),
    )
