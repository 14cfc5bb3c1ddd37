"""The data of the event loop: the jobs, the rules of the policy, the machine and the queue.

Everything is a record array with named fields, modified in place: `jobs[job].procs`. The rules, and the numbers that change at every event,
are single records: `state.free`, `rules.depth`. A compiled function takes only the data it uses, since compile time grows with arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from walltime.compiled.prediction_memory import NOTHING_PREDICTED, PredictionRules, PredictionState, new_predicting
from walltime.compiled.records import record_dtype
from walltime.engine.kernel.profile import NEVER as NEVER

Array = np.ndarray
Records = Any
"""A record array, or one record of it."""
HOLE = np.iinfo(np.int32).max
"""Number of processors of a queue place whose job has started; larger than any machine."""

# How a job started.
IMMEDIATE, RESERVED, BACKFILLED = 0, 1, 2

# Why the loop returned.
DONE, PAUSED, STUCK, REACHED = 0, 1, 2, 3

# The kinds of scheduling passes.
HEAD, FRESH, KEEP = 0, 1, 2
"""HEAD: at most the first blocked job has a reservation (FCFS, EASY). FRESH: reservations are recomputed at every event
(hybrid, conservative from scratch). KEEP: reservations are kept and compressed (conservative)."""
BY_PROCS, BY_SECONDS, BY_PROCSECONDS, BY_SLOWDOWN = 0, 1, 2, 3
OBJECTIVES = {"procs": BY_PROCS, "seconds": BY_SECONDS, "procseconds": BY_PROCSECONDS, "slowdown": BY_SLOWDOWN}
"""The objectives of look-ahead backfilling, numbered in the order of their names in `walltime.policy.PassSpec`."""

BLOCK = 64
"""Number of places of the queue in a block of the index."""
GROUP = BLOCK * BLOCK
"""Number of places of the queue in a group of blocks."""

NO_PLAN = 2
"""Value of `State.broken` before the first pass, which makes the plan, and reservations in order of arrival, as for newcomers."""

RANKED_BLOCK = 16
"""Number of queue places whose ranks share one bound, in an order that changes with time."""

# Queue orders.
BY_ARRIVAL, BY_LENGTH, BY_WFP, BY_USER = 0, 1, 2, 3


JOB = record_dtype("submit runtime planned order_length own_length run_length procs start kind reserved_start arrival")
"""A job; times in s.

* `runtime`: the real runtime; `planned`: the estimate, used wherever no prediction replaces it
* `order_length`, `own_length`, `run_length`: the planned length that decides its place in the queue, its planned length while it waits, and
  once it runs
* `submit`: as far as it is known; `arrival`: its position in the order of arrival
* results: `start`, `kind`, and `reserved_start`, the start of its first reservation; -1 for none"""

RULES = record_dtype(
    "mode procs depth backfill window sequential order order_parameter order_reads_time order_grows order_starvation order_limit "
    "order_history backfill_order backfill_parameter backfill_starvation backfill_limit own_backfill_order "
    "long_queue short_queue predicts predict started observe predict_again correction predict_order predict_own predict_running tick "
    "quiet_expiry quiet_arrivals order_threshold omega ahead objective factor adapts head_runtime_factor overtakes "
    "iterations power random",
    "order_threshold omega factor",
)
"""A policy in numbers; fields described as "whether" are 0 or 1.

Passes:

* `mode`: the kind of passes; `backfill`: whether there is backfilling; `depth`: number of blocked jobs with reservations
* `procs`: number of processors of the machine; `sequential`: whether simultaneous events are handled one by one
* `window`: only this many of the waiting jobs that arrived first are in the queue, 0 for all
* `long_queue`, `short_queue`: the queue gets an index at the first length, and loses it below the second

Orders of the queue and of backfilling:

* `order`, `backfill_order`: one of BY_...; `order_parameter`, `backfill_parameter`: its exponent, or an address for callbacks.py
* `order_reads_time`: whether scores of waiting jobs change; `order_grows`: whether they never fall
* `order_starvation`, `backfill_starvation`: the wait after which a job comes first, s, unless a limit is larger
* `order_limit`, `backfill_limit`: the address of the record of the longest wait (history.py), 0 for none
* `order_history`: the address of the history if scores change only with it, else 0
* `order_threshold`: the share of the blocked head's score that a job needs to start in its place, 0 for no threshold
* `own_backfill_order`: whether backfilling has its own order (two copies of one order have different addresses)

Predictions:

* `predicts`: whether runtimes are predicted
* `predict`, `started`, `observe`: addresses of the predictor's compiled functions, 0 for none
* `predict_again`: whether waiting jobs are predicted again in every pass; `correction`: how expired predictions are corrected
* `predict_order`, `predict_own`, `predict_running`: whether predictions are used in the queue order, for a waiting job's own length, and
  for running jobs
* `tick`: expected ends are multiples of it, s
* `quiet_expiry`: no pass follows an instant at which only predictions expire
* `quiet_arrivals`: with predictions, no pass follows an instant at which only jobs that do not fit arrive

Later policies:

* `omega`: the allowed delay of relaxed backfilling, as a factor, 0 for none
* `ahead`: number of jobs that are considered together, 0 for one after the other; `objective`: one of OBJECTIVES
* `factor`: the smallest expansion factor of jobs with a reservation, or the factor of slack; `adapts`: whether the mean slowdown of the
  ended jobs replaces it
* `head_runtime_factor`: a job that starts at the head is expected to run this many times as long as planned
* `overtakes`: number of jobs that may start before an earlier one, NEVER for no bound
* for the search for a plan: `iterations`: number of iterations; `power`: the power of the waits whose sum is minimised; `random`: the
  initial state of the random number generator"""

STATE = record_dtype(
    "now next_coming next_arrival later arrivals started free running events "
    "queue_first queue_last looked_at holes freed blocked indexed classes "
    "heads candidates ranked horizon sorted sorted_arrivals "
    "shadow extra head before_shadow earliest earliest_of "
    "early broken next_due ended slowdowns waited waits until awaited"
)
"""Values that change at every event.

Events:

* `now`: time of the current event, s; `arrivals`, `started`: numbers of jobs so far
* `next_coming`: the next index into `MachineState.coming`; `next_arrival`: time of the next arrival, s
* `later`: number of jobs in the heap of arrivals that waited for another job's end
* `free`: number of free processors; `running`, `events`: numbers of jobs in the running set, and in the heap of ends
* `until`: the loop returns before the first event later than this time, s; NEVER for no limit
* `awaited`: the loop returns after the start of the job with this number, from 1; 0 for none

The queue, `queue[queue_first:queue_last]`:

* `holes`: number of these places whose job has started
* `looked_at`: places below this one were considered in an earlier pass; `freed`: 1 if processors have been freed since then
* `blocked`: the first job in that pass that did not fit, -1 for none
* `indexed`: 1 while the queue has an index; `classes`: its number of size classes

Orders (`ScoredQueue`):

* `heads`, `candidates`: numbers of items in the heaps of these names
* `ranked`: the data for ranks are known for places below this one; `horizon`: the time up to which their bounds hold, s
* `sorted`: number of jobs in `ScoredQueue.sorted`, or of planned jobs in `Slack.line`; `sorted_arrivals`: they are among this many first
  arrivals

Policies:

* EASY: `shadow`: the shadow time of the job `head`, s; `extra`: the extra processors; `before_shadow`: number of running jobs that are
  expected to end by then
* relaxed backfilling: `earliest`: the earliest shadow time so far of the head `earliest_of`, s; `shadow` is then its latest allowed start
* conservative: `early`: number of jobs that have ended before their expected end since the last pass; `broken`: 1 if the reservations are
  invalid, NO_PLAN before the first pass; `next_due`: the earliest reserved start, s
* selective reservations: `ended`: number of ended jobs; `slowdowns`: the sum of their bounded slowdowns, in thousandths
* slack: `waited`: the sum of the last `waits` stored waits, s"""

ENTRY = np.dtype([("job", np.int32), ("procs", np.int32), ("length", np.int64)], align=True)
"""A place in the queue: a job, and the data for searches. `procs` is HOLE once the job has started."""

RUN = record_dtype("expected job procs")
"""A running job and its expected end."""

ITEM = record_dtype("rank tie job")
"""An item of a heap: the lowest `rank` comes first, ties by the lowest `tie`."""

RANKED = record_dtype("rank tie job", "rank")
"""An item of a heap in queue order or backfill order; `rank` is the negative score, `tie` the position in the order of arrival."""

WAIT = record_dtype("after think first_follower next_follower")
"""Feedback: a job with `after` >= 0 is submitted only `think` s after the end of that job; jobs that wait for an end are a linked list."""

NOTE = record_dtype("job arrived head")
"""A start, for dynamics.py: the job, the number of jobs that had arrived, and the head over which it was backfilled (-1 for none)."""


class Index(NamedTuple):
    """The shortest jobs of each size class per block and group of places in a long queue (index.py), int64 s."""

    block: Array
    group: Array


class ScoredQueue(NamedTuple):
    """The queue in orders other than first come, first served.

    * `heads`: a heap of the waiting jobs in queue order, if scores do not change; items of started jobs are skipped
    * `rank`: the rank of each queue place, float64, valid during a pass; kept from pass to pass where scores change only with a history
    * `since`, `length`, `size`: submit times, lengths and processors from which ranks are computed, float64; NaN for a hole
    * `bound`: by block of places, the lowest rank before the `horizon`, float64
    * `candidates`: a heap of the jobs that may be backfilled, or of their places, during a pass
    * `sorted`: the waiting jobs in queue order (int64), for passes that visit all of them while the queue stays in order of arrival
    """

    heads: Records
    rank: Array
    since: Array
    length: Array
    size: Array
    bound: Array
    candidates: Records
    sorted: Array


class MachineState(NamedTuple):
    """The machine and its coming events.

    * `running`: the running jobs by expected end; `events`: a heap of their ends
    * `coming`: the jobs that depend on no other, in order of submission (int64); `later`: a heap of the arrivals of the others
    * `waits`: which job waits for which; `notes`: a log of the starts
    * `early`: the jobs that have ended early since the last pass (int64; for kept reservations only)
    * `predicting`: the state of predictions; its arrays have length 0 without predictions
    """

    running: Records
    events: Records
    coming: Array
    later: Records
    waits: Records
    notes: Records
    early: Array
    predicting: PredictionState


class Loop(NamedTuple):
    """An event loop with one kind of pass: the arguments of an `Entry` of interface/load.py, and the values of RULES in its example."""

    name: str
    what: str
    functions: int
    seconds: float
    rules: tuple[tuple[str, int], ...] = ()


class Pass(NamedTuple):
    """A declaration of some kinds of passes: each module of `number/` with a pass has one, named `PASS`, which load.py finds.

    * `kinds`: kinds of `walltime.policy.PassSpec`
    * `make`: the compiled pass, with the arguments of `make_pass` in number/loop.py
    * `reservations`: the class of the pass's data; `new` makes the data from the rules, the `PassSpec`, and the number of jobs
    * `loop_of`: returns which of the `loops` a memory needs
    """

    kinds: tuple[str, ...]
    make: Any
    reservations: type
    new: Callable[[Records, Any, int], Any]
    loops: tuple[Loop, ...]
    mode: int = FRESH
    loop_of: Callable[[Memory], int] = lambda memory: 0


class Memory(NamedTuple):
    """All data of a simulation; parts that a run does not need are None or empty, and no code is compiled for parts that are None."""

    state: Records
    rules: Records
    jobs: Records
    machine: MachineState
    queue: Records
    ordered: ScoredQueue | None
    reservations: Any


def records(dtype: np.dtype[np.void], rows: int | Sequence[tuple[Any, ...]]) -> Records:
    """Return a record array with these rows, or with this many records whose fields are all 0."""
    return (np.zeros(rows, dtype) if isinstance(rows, int | np.integer) else np.array(rows, dtype)).view(np.recarray)


def record(dtype: np.dtype[np.void], **values: float) -> Records:
    """Return one record; fields not given are 0."""
    one = records(dtype, 1)
    for name, value in values.items():
        one[0][name] = value
    return one[0]


def new_memory(
    jobs: Records,
    rules: Records,
    after: Array,
    think: Array,
    reservations: Any,
    logged: bool = False,
    prediction: PredictionRules | None = None,
) -> Memory:
    """Return memory for these jobs under these rules, the machine empty and nothing learned.

    The jobs' `submit`, `runtime`, `planned` and `procs` must be set. `reservations`: the data of the passes. `after`, `think` (int64): the
    job for whose end each job waits, and its think time; of length 0 without feedback.
    """
    count, procs = len(jobs), int(rules.procs)
    waits = records(WAIT, len(after))
    waits.after, waits.think = after, think
    waits.first_follower = waits.next_follower = -1
    for job in np.flatnonzero(after >= 0)[::-1]:
        waits.next_follower[job] = waits.first_follower[after[job]]
        waits.first_follower[after[job]] = job
    in_order = rules.order == BY_ARRIVAL and (not rules.backfill or rules.backfill_order == BY_ARRIVAL)
    memory = Memory(
        state=record(STATE, classes=procs.bit_length()),
        rules=rules,
        jobs=jobs,
        machine=MachineState(
            running=records(RUN, min(count, procs) + 1),
            # With one pass per event, the termination of a job that counts as gone may still be ahead while another job runs in its place.
            events=records(ITEM, min(count, 2 * procs) + 1),
            coming=np.flatnonzero(after < 0) if len(after) else np.arange(count),
            later=records(ITEM, len(after)),
            waits=waits,
            notes=records(NOTE, count if logged else 0),
            early=np.zeros(min(count, procs) + 1 if rules.mode == KEEP else 0, np.int64),
            predicting=NOTHING_PREDICTED if prediction is None else new_predicting(count, prediction),
        ),
        queue=records(ENTRY, count),
        ordered=None if in_order and rules.mode == HEAD and not rules.omega and not rules.ahead else _new_ordered(count, rules),
        reservations=reservations,
    )
    state, notes = memory.state, memory.machine.notes
    state.free, state.next_due, state.until, state.broken = procs, NEVER, NEVER, NO_PLAN
    state.head = state.blocked = state.earliest_of = -1
    state.next_arrival = jobs.submit[memory.machine.coming].min(initial=NEVER)
    jobs.start = jobs.reserved_start = -1
    jobs.order_length = jobs.own_length = jobs.run_length = jobs.planned
    notes.job = notes.arrived = notes.head = -1
    return memory


def _new_ordered(count: int, rules: Records) -> ScoredQueue:
    """Return the memory that these rules need for an ordered queue."""
    heads = count if rules.mode == HEAD and not rules.order_reads_time and rules.order != BY_ARRIVAL else 0
    ranks = count if rules.order_reads_time or rules.mode != HEAD else 0
    made_from = ranks if rules.mode == HEAD else 0
    return ScoredQueue(
        heads=records(RANKED, heads),
        rank=np.empty(ranks),
        since=np.empty(made_from),
        length=np.empty(made_from),
        size=np.empty(made_from),
        bound=np.empty(made_from // RANKED_BLOCK + 1),
        candidates=records(RANKED, count if rules.backfill else 0),
        sorted=np.empty(count if rules.mode == KEEP and rules.order != BY_ARRIVAL else 0, np.int64),
    )
