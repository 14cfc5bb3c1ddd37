"""The memory of a run along a schedule: the recorded jobs, the lists of waiting and running jobs, and the policy's plan.

For compiled code, everything is a record with named fields or an array of job numbers; times in s.
"""

from typing import Any, NamedTuple

import numpy as np

from walltime.compiled.records import record_dtype

Array = np.ndarray
Records = Any
"""A record array, or one record of it."""
NEVER = np.iinfo(np.int64).max // 4

AFRESH, UNTIL_END, ONCE = range(3)
"""When EASY's shadow time is computed."""
ALL, LITERAL, NONE = range(3)
"""Which extra processors EASY counts."""
BATCH, SEQUENTIAL, ARRIVALS_FIRST, ONE_BY_ONE = range(4)
"""How simultaneous events are handled."""
NOT_CORRECTED, BY_PREDICTION, BY_ELAPSED, TO_ESTIMATE, DOUBLED, HALVED, EXTENDED = range(7)
"""How the expected runtime of a job is corrected when it outlives its prediction."""

# How a job started: the numbers of `walltime.policy.Kind`.
IMMEDIATE, RESERVED, BACKFILLED = range(3)
COMING, WAITING, RUNNING, GONE, ENDED = range(5)
"""The phase of a job; GONE: its processors are free, but its end has not been handled yet."""
STARTED, OBSERVED, ARRIVED = range(3)
"""Events logged for predictors."""
DONE, PAUSED, ASKS, LEFT, EARLY = range(5)
"""Why the run returned. ASKS: it needs predictions or scores. LEFT: the policy starts `culprit` now, but the schedule does not. EARLY: the
schedule starts it, but the policy does not."""
QUIET, PASS = 1, 2
"""Where the run resumes after ASKS: without a pass, or with one."""


JOB = record_dtype(
    "submit start end procs runtime after own run estimate predicted corrections reservation reserved kind phase arrival ticket "
    "first_wait latest decided overtaken score back_score",
    "score back_score",
)
"""A job; times in s.

* `submit, start, end`: as in the schedule; `after`: the job after whose end it is submitted, -1 for none
* `own`: its planned length while it waits; `run`: its expected runtime once it runs; `estimate`: the value of both without predictions
* `reservation`, `reserved`: the starts of its current and its first reservation, -1 for none
* `first_wait`: the expected wait at its first reservation as the head
* `latest`: the latest start that its slack allows; in other passes, 1 once the job has been considered
* `decided`: 1 if the policy starts it when the schedule does; `overtaken`: number of jobs that arrived later and started while it waited
* `score`, `back_score`: its scores in queue order and in backfill order; the highest comes first"""

RULES = record_dtype(
    "kind plans keeps backfills procs depth shadow extra before fitting window committed threshold_of_all compression ahead objective "
    "recent overtakes coincident silent correction capped dynamic asks plain_heads all_reserved head_runtime_factor "
    "iterations cost_power "
    "power back_power near omega factor",
    "near omega factor",
)
"""The policy and the dialect in numbers.

* `kind`: the pass, an index into `PASSES` (events.py); `plans`: it uses a profile; `keeps`: it keeps and compresses reservations
* `depth`: number of blocked jobs with reservations; `all_reserved`: 1 if first reservations are checked even where no start depends on them
* `near`: the fraction of the head's score that a job needs to overtake it; `overtakes`: how many jobs may overtake a job, NEVER for no
  limit
* `threshold_of_all`: 1 if the threshold of selective reservations is the mean slowdown
* `fitting`: 1 if arrivals that do not fit cause no pass; `head_runtime_factor`: the factor on the expected runtime of a job that starts at
  the head
* `dynamic`: scores change while jobs wait; `asks`: the run needs predictions or scores from Python
* `power`, `back_power`: exponents of the orders of queue and backfilling by (wait / length) ** exponent * procs, 0 for other orders
* `iterations`, `cost_power`: number of swaps in the search for a plan, and the power of the waits that it minimises"""

STATE = record_dtype(
    "now culprit free waiting running gone arrived started next_arrival next_start unsorted logged resume settled "
    "at_head last_in_queue terminated ended_early void overdue planned points head shadow extra committed earliest_of earliest "
    "slowdowns ended slack_count waited random"
)
"""The state that changes at every event. `settled`: the instant at which a difference was found; no other pass runs then. `planned`: 1
while the profile holds all reservations; `points`: its length. `random`: the state of the random number generator of a search."""


class Lists(NamedTuple):
    """Lists of jobs: waiting jobs by arrival (`queue`), queue order (`line`) and backfill order (`back`); running jobs by expected end.

    `by_start`: all jobs by recorded start; `log`: kind and job of the events since the predictor was last updated.
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
    """Free processors over future time: `free[i]` from `time[i]` on (s)."""

    time: Array
    free: Array


class Tables(NamedTuple):
    """The highest value of a combination of jobs by number of processors, for jobs that end in time (`short`) and for others (`long`)."""

    short: Array
    long: Array
    worth: Array
    procs: Array
    in_time: Array


class Memory(NamedTuple):
    """The memory of a run: its state, the policy's rules, jobs and lists, and the profile or the tables that the policy needs."""

    state: Records
    rules: Records
    jobs: Records
    lists: Lists
    profile: Profile | None
    tables: Tables | None

    @property
    def run(self) -> str:
        """Return the name of the compiled run for this memory."""
        return "combinations" if self.tables is not None else "plans" if self.profile is not None else "heads"


def new_memory(rules: Records, count: int, by_start: Array, bounds: Array, increments: Array) -> Memory:
    """Return memory for a number of jobs, before the first event."""
    state = np.zeros(1, STATE).view(np.recarray)[0]
    jobs = np.zeros(count, JOB).view(np.recarray)
    for name in ("reservation", "reserved", "arrival", "ticket", "first_wait", "after", "latest"):
        jobs[name] = -1
    state.free = rules.procs
    state.head = state.at_head = state.committed = state.earliest_of = -1
    state.settled = state.now = -NEVER

    def zeros(*shape: int) -> Array:
        return np.zeros(shape, np.int64)

    queue, line, back, running, scratch, other = (zeros(count) for _ in range(6))
    log, recent = zeros(4 * count + 4, 2), zeros(int(rules.recent))
    lists = Lists(queue, line, back, running, by_start, log, scratch, other, recent, bounds, increments)
    profile = Profile(zeros(2 * count + 8), zeros(2 * count + 8)) if rules.plans else None
    ahead, width = int(rules.ahead), int(rules.procs) + 1
    tables = (
        Tables(zeros(ahead + 1, width), zeros(ahead + 1, width), zeros(ahead), zeros(ahead), zeros(ahead))
        if ahead and profile is None
        else None
    )
    return Memory(state, rules, jobs, lists, profile, tables)
