"""What a run along a schedule keeps: the jobs as the schedule records them, who waits and runs, and what the policy has planned.

Everything is a record with named fields or a list of job numbers, so that compiled code takes it; times in s.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walltime.compiled.records import record_dtype

Array = np.ndarray
Records = Any
"""A record array, or one record of it."""
NEVER = np.iinfo(np.int64).max // 4

AFRESH, UNTIL_END, ONCE = range(3)
"""When the shadow time of EASY is found."""
ALL, LITERAL, NONE = range(3)
"""Which extra nodes EASY counts."""
BATCH, SEQUENTIAL, ARRIVALS_FIRST, ONE_BY_ONE = range(4)
"""How simultaneous events are handled."""
NOT_CORRECTED, BY_PREDICTION, BY_ELAPSED, TO_ESTIMATE, DOUBLED, HALVED, EXTENDED = range(7)
"""What is expected of a job that outlives its prediction."""

# How a job started: the numbers of `walltime.policy.Kind`.
IMMEDIATE, RESERVED, BACKFILLED = range(3)
COMING, WAITING, RUNNING, GONE, ENDED = range(5)
"""Where a job is; GONE: its processors are free, its end is still to be handled."""
STARTED, OBSERVED, ARRIVED = range(3)
"""What is logged for predictors."""
DONE, PAUSED, ASKS, LEFT, EARLY = range(5)
"""Why the run returned. LEFT: the policy starts `culprit` now, the schedule does not. EARLY: the other way round."""
QUIET, PASS = 1, 2
"""Where the run goes on after ASKS: without a pass, or with one."""


JOB = record_dtype(
    "submit start end procs runtime after own run estimate predicted corrections reservation reserved kind phase arrival ticket "
    "first_wait latest decided score back_score",
    "score back_score",
)
"""A job. `submit, start, end`: as the schedule has them; `after`: the job after whose end it is submitted, -1 for none. `own`: the length
that is planned while it waits, `run`: what it is expected to run once it runs, `estimate`: without predictions. `reservation`,
`reserved`: its present and its first reservation, -1 for none. `first_wait`: the wait expected at its first reservation as the head.
`latest`: until when slack allows it to be put off. `decided`: 1 if the policy starts it when the schedule does. `score`, `back_score`:
its places in the queue and among the candidates, the highest first."""

RULES = record_dtype(
    "kind plans keeps backfills procs depth shadow extra before fitting window committed threshold_of_all compression ahead objective "
    "recent coincident silent correction capped dynamic asks plain_heads all_reserved head_runtime_factor power back_power near omega "
    "factor",
    "near omega factor",
)
"""The policy and the readings in numbers. `kind`: which pass is made, as its place in `PASSES` (events.py); `plans`: whether on a profile,
`keeps`: whether reservations are kept, and compressed. `depth`: blocked jobs with reservations. `fitting`: no pass at arrivals that do not
fit. `near`: the part of the head's score that others need. `threshold_of_all`: 1 if the threshold of selective reservations is the mean
slowdown. `dynamic`: scores change while jobs wait. `asks`: predictions or scores are needed on the way. `all_reserved`: every job's
first reservation matters, even where it does not decide who starts. `head_runtime_factor`: by what factor a job that starts at the head is
expected to run for longer than it was planned. `power`, `back_power`: the exponent of an order by (wait / length) ** exponent * procs, in
the queue and among the candidates, which is scored here; 0 for another one."""

STATE = record_dtype(
    "now culprit free waiting running gone arrived started next_arrival next_start unsorted logged resume settled "
    "at_head last_in_queue terminated ended_early void overdue planned points head shadow extra committed earliest_of earliest "
    "slowdowns ended line_of_slack waited"
)
"""What changes at every event. `settled`: the instant at which a difference was met, so that nothing more of it is decided.
`planned`: 1 while the profile holds all reservations; `points`: its length."""


class Lists(NamedTuple):
    """Lists of jobs.

    The `queue` by arrival, the `line` by queue order, the candidates `back` by backfill order, the `running` by expected end; `by_start`:
    all by recorded start; `log`: kinds and jobs of what happened since predictors were last told.
    """

    queue: Array
    line: Array
    back: Array
    running: Array
    by_start: Array
    log: Array
    scratch: Array
    other: Array
    recent: Array
    bounds: Array
    increments: Array


class Profile(NamedTuple):
    """Free processors over time: `free[i]` from `time[i]` on."""

    time: Array
    free: Array


class Tables(NamedTuple):
    """What combinations of jobs are worth: of those that end in time, and of the others, by processors."""

    short: Array
    long: Array
    worth: Array
    procs: Array
    in_time: Array


class Memory(NamedTuple):
    """All of it."""

    state: Records
    rules: Records
    jobs: Records
    lists: Lists
    profile: Profile | None
    tables: Tables | None

    @property
    def run(self) -> str:
        """Which of the compiled runs is for this memory."""
        return "combinations" if self.tables is not None else "plans" if self.profile is not None else "heads"


def new_memory(rules: Records, count: int, by_start: Array, bounds: Array, increments: Array) -> Memory:
    """Memory for so many jobs, nobody there yet."""
    state = np.zeros(1, STATE).view(np.recarray)[0]
    jobs = np.zeros(count, JOB).view(np.recarray)
    for name in ("reservation", "reserved", "arrival", "ticket", "first_wait", "after", "latest"):
        jobs[name] = -1
    state.free = rules.procs
    state.head = state.at_head = state.committed = state.earliest_of = -1
    state.settled = -NEVER
    state.now = -NEVER
    queue, line, back, running = (_numbers(count) for _ in range(4))
    lists = Lists(
        queue,
        line,
        back,
        running,
        by_start,
        np.zeros((4 * count + 4, 2), np.int64),
        _numbers(count),
        _numbers(count),
        _numbers(int(rules.recent)),
        bounds,
        increments,
    )
    profile = Profile(_numbers(2 * count + 8), _numbers(2 * count + 8)) if rules.plans else None
    return Memory(state, rules, jobs, lists, profile, _tables(rules) if rules.ahead else None)


def _numbers(size: int) -> Array:
    return np.zeros(size, np.int64)


def _tables(rules: Records) -> Tables:
    ahead, width = int(rules.ahead), int(rules.procs) + 1
    short, long = (np.zeros((ahead + 1, width), np.int64) for _ in range(2))
    return Tables(short, long, *(_numbers(ahead) for _ in range(3)))
