"""The data of the loop for machines of several pools (loop.py): jobs with two resources, pools, partitions, outages, limits.

Everything is a record array with named fields, as in kernel/memory.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from walltime.compiled.jit import inlined_kernel
from walltime.compiled.prediction_memory import NOTHING_PREDICTED, PredictionRules, PredictionState, new_predicting
from walltime.compiled.records import record_dtype
from walltime.engine.kernel.bits import WORD
from walltime.engine.kernel.memory import ITEM, KEEP, RANKED, RUN, record, records
from walltime.engine.kernel.profile import NEVER
from walltime.engine.problem import Ragged

Array = np.ndarray
Records = Any

CLUSTER_JOB = record_dtype(
    "submit runtime believed order_length own_length run_length procs second partition tier start kind reserved_start arrival pending "
    "after think"
)
"""A job: the fields of memory.JOB, and `second`, its need of the second resource; `partition`, by number; `tier` (a higher one comes
first); `pending`, how many jobs must end before it can wait. `submit` becomes the time from which it waits: with feedback it is `think` s
after the end of the job `after` (-1 for none)."""

CLUSTER_RULES = record_dtype(
    "mode depth backfill order order_parameter order_starvation order_limit order_reads_time "
    "backfill_order backfill_parameter backfill_starvation backfill_limit own_backfill_order "
    "predicts predict started observe predict_again correction believe_order believe_own believe_running tick"
)
"""A policy, as in memory.RULES; `backfill`: whether jobs behind a blocked job may use its pools."""

CLUSTER_STATE = record_dtype(
    "now arrivals next_coming later started running events waiting holes looked_at freed most_free settled outages next_change "
    "steps joined resources planned deferred candidates again begun early broken next_due freed_until longest unreserved tightened "
    "windowed away until awaited"
)
"""`arrivals`: jobs that have arrived so far. `next_coming`: the next of `coming`. `later`: jobs in the heap of arrivals that waited for
another's end. `started`, `running`, `events`: numbers of jobs. `waiting`: places of the queue; `holes` of them belong to jobs that have
started or are away. `next_change`: the next change of capacity. `outages`: number of outages that are known or have begun, and are not
over. `steps`: number of steps of the plan, which was `joined` when equal steps were last joined. `resources`: 2 if the machine has a second
one. `candidates`: jobs to be tried for backfilling, or that get a reservation or start. `again`: 1 if the pass must be made again. `begun`:
1 after the first event. `windowed`: 1 if there are windows. `away`: throttled jobs without a place in the queue. `until`, `awaited`: as in
memory.STATE.

Places of the queue below `looked_at` were considered in an earlier pass; `freed`: 1 if anything other than arrivals at the end of the queue
has happened since then. Fresh reservations: `most_free`: the largest number of free processors of a partition; `settled`: a bit for each
settled partition; `planned`: 1 once the reservations have been made; `deferred`: number of jobs whose reservations are made together.

Kept reservations: `early`: 1 if a job ended before its expected end since the last pass. `broken`: 1 if the reservations are invalid.
`next_due`: the earliest one. `freed_until`: the end of the releases, s. `longest`: the length of the longest job that ever had a
reservation, s. `unreserved`: number of jobs that wait without one. `tightened`: 1 if jobs with reservations may exceed a limit since the
last pass."""

PLACE = record_dtype("rank tie job partition procs second length woken", "rank")
"""A place in the queue: an item of a heap, and the data that decide whether the job may fit. `procs` is HOLE once it has started, and while
it is throttled (limits.py). `woken`: one more than the limit that has just woken it, 0 for none."""

BLOCK = record_dtype("least partitions woken old")
"""A block of PLACES_IN_BLOCK places of the queue: the fewest processors that a job there needs, a bit for each of their partitions, and how
many have just been woken. `old`: 1 if jobs have left since this was noted."""
PLACES_IN_BLOCK = 64

PARTITION = record_dtype("free_procs free_second settled until extra")
"""A partition in a pass: the amounts free now in its open pools, and whether it is `settled`: all its pools are blocked, and one has its
reservations, so the jobs behind change nothing for them. A job that may be backfilled ends by `until`, s, or needs at most `extra`
processors."""

FREED_GAP = record_dtype("jobs longest earliest tried tried_earliest")
"""For a partition and a class of sizes, how many waiting `jobs` have a reservation. Then, for the stretches of the plan with released
processors and enough free ones for the smallest job of the class: the length of the longest one, s, and the begin of the first one. Last,
the same two before the current compression."""

POOL = record_dtype("free_procs free_second reservations blocked closed begin left_procs left_second")
"""A pool: its free amounts, negative while lost capacity is still in use. During a pass: how many jobs have a reservation on it, whether a
job ahead waits for it, and whether it is closed to the jobs behind a waiting one. `begin`: when the only reservation on it begins, s, NEVER
for none, and what this leaves free then (plan.py)."""

OUTAGE = record_dtype("pool procs second begin end known phase")
"""Capacity that is missing from `begin` to `end`, which the scheduler knows from `known` on, s; `phase`: 0 unknown, 1 known, 2 begun, 3
ended."""

CHANGE = record_dtype("time outage phase")
"""A change: an outage enters a phase, or the window that is the limit of this number begins (SHUTS) or ends (OPENS)."""
SHUTS, OPENS = 4, 5

LIMIT = record_dtype(
    "jobs procs second seconds nodes used_jobs used_procs used_second shut until crossing throttled first_group waking due"
)
"""A limit on simultaneously running jobs of a group, and their current use. A window is a limit, too: `shut` is 1 while no job of the
group may start, and none is planned to run beyond `until`, the next begin of a window with `crossing`. `throttled`: jobs that wait for the
limit alone, in groups; the first group begins with the job `first_group`. `waking`: 1 while one has been woken. `due`: the jobs that get a
kept reservation in a pass, for a start at once, and have no other limit. Under Slurm's scheduling, `seconds`: the most processor-seconds
until the limits of running jobs; `nodes`: the most nodes of running jobs."""

THROTTLED = record_dtype("next last entered next_group away")
"""A throttled job: the `next` one of its group, which is in queue order; `away`: 1 while it has no place in the queue. For a group's
first job: the `last` one, the one `entered` last, and the first job of the limit's next group, below 0 for none."""


class Lists(NamedTuple):
    """Lists of numbers, one for each item: the list of item k is `items[first[k] : first[k + 1]]`; int64."""

    first: Array
    items: Array


@inlined_kernel
def list_of(lists, k):
    """Return the list of item k."""
    return lists.items[lists.first[k] : lists.first[k + 1]]


class Restraints(NamedTuple):
    """Constraints on jobs: `limits_of` each, `followers`, and the start of an initially running job, NEVER for others (int64).

    `windowed`: whether some of the limits are windows.
    """

    limits_of: Lists
    followers: Lists
    since: Array
    windowed: bool = False


class ClusterPlan(NamedTuple):
    """The free amounts over future time, int64; the last step has no end.

    `time`: of each step, shape (steps,). `free`: of each pool and resource, shape (pools, 2, steps). `room`: the free processors of the
    pools of each partition together, (partitions, steps). `least`: scratch, (pools, 2).
    """

    time: Array
    free: Array
    room: Array
    least: Array


class PoolMachine(NamedTuple):
    """The pools, the limits on their use, the running jobs, and the coming ones.

    `pools_of`: the pools of each partition, in the order in which they are taken. `partitions_of`: the partitions that have each pool.
    `limits_of`: the limits of each job. `changes`: when the outages enter their phases, and windows begin and end, in order of time
    (windows up to `until` of the state, and the next of each). `running`: the running jobs by expected end. `events`: a heap of their ends.
    `coming`: the jobs that wait for no other, by submission (int64); `later`: a heap of the arrivals of the others; `followers`: the jobs
    that wait for the end of each job. `given`: processors and second resource that each job has of each pool, int64, shape (jobs, pools,
    2). `predicting`: with arrays of length 0 without predictions.
    """

    pools: Records
    partitions: Records
    pools_of: Lists
    partitions_of: Lists
    outages: Records
    changes: Records
    limits: Records
    limits_of: Lists
    running: Records
    events: Records
    coming: Array
    later: Records
    followers: Lists
    given: Array
    predicting: PredictionState


class QueueIndex(NamedTuple):
    """The waiting jobs in order, and their blocks; the candidates of a pass.

    `live`: a bit for each block with a waiting job (kernel/bits.py). `deferred`: the jobs whose reservations are made with the plan;
    `throttled`: the links between throttled jobs (limits.py).
    """

    queue: Records
    blocks: Records
    live: Array
    candidates: Records
    deferred: Array
    throttled: Records


class KeptReservations(NamedTuple):
    """Kept reservations, and the gaps that have been freed since all were tried.

    By job, int64: the reserved `start`, -1 for none, NEVER for one that is lost within the instant; the `length` for which it is planned,
    s; and its class of sizes, `size`. `freed_gaps`: by partition and class of sizes. Scratch: `since`, when a stretch with room for each
    class begins (int64 s); `before`, the previous amounts of a job in each pool, (pools, 2).
    """

    start: Array
    length: Array
    size: Array
    freed_gaps: Records
    since: Array
    before: Array


class ClusterMemory(NamedTuple):
    """All data of one simulation; `kept`: if reservations are kept, else None."""

    state: Records
    rules: Records
    jobs: Records
    machine: PoolMachine
    queue_index: QueueIndex
    plan: ClusterPlan
    kept: KeptReservations | None


def as_lists(groups: Sequence[Sequence[int]]) -> Lists:
    """Return lists of numbers stored in two arrays."""
    lists = Ragged.of(groups)
    return Lists(lists.first, lists.items)


def followers_of(after: Ragged, follows: Array, pending: Array) -> Lists:
    """Return for each job those that wait for its end: all of `after`, and the one of `follows` (-1 for none); count them in `pending`."""
    pending += after.counts
    following = np.flatnonzero(follows >= 0)
    alone = following[[follows[job] not in after[job] for job in following]] if after.items.size else following
    pending[alone] += 1
    return as_lists(Ragged.of_pairs(len(pending), np.concatenate([after.items, follows[alone]]), np.concatenate([after.places, alone])))


def new_cluster_memory(
    rules: Records,
    jobs: Records,
    capacity: Array,
    pools_of: Lists,
    outages: Records,
    limits: Records,
    waiting: Restraints,
    prediction: PredictionRules | None = None,
) -> ClusterMemory:
    """Return memory before the first event, without the coming changes; `capacity`: int64, shape (pools, 2)."""
    count, pools = len(jobs), records(POOL, len(capacity))
    pools.free_procs, pools.free_second = capacity[:, 0], capacity[:, 1]
    pools.begin = NEVER
    most_reserved = 2 * count if rules.mode == KEEP else min(count, int(min(rules.depth, count)) * max(len(capacity), 1))
    steps = 2 * (count + most_reserved + 2 * len(outages)) + 16
    coming = np.flatnonzero((jobs.pending == 0) & (waiting.since == NEVER))
    parts = [pools_of.items[first:last].tolist() for first, last in itertools.pairwise(pools_of.first)]
    machine = PoolMachine(
        pools=pools,
        partitions=records(PARTITION, len(pools_of.first) - 1),
        pools_of=pools_of,
        partitions_of=as_lists([[k for k, part in enumerate(parts) if pool in part] for pool in range(len(capacity))]),
        outages=outages,
        changes=records(CHANGE, 0),
        limits=limits,
        limits_of=waiting.limits_of,
        running=records(RUN, count),
        events=records(ITEM, count),
        coming=coming[np.argsort(jobs.submit[coming], kind="stable")],
        later=records(ITEM, count),
        followers=waiting.followers,
        given=np.zeros((count, len(capacity), 2), np.int64),
        predicting=NOTHING_PREDICTED if prediction is None else new_predicting(count, prediction),
    )
    resources = 1 + int(capacity[:, 1].any())
    return ClusterMemory(
        state=record(CLUSTER_STATE, next_due=NEVER, until=NEVER, freed=1, resources=resources, windowed=int(waiting.windowed)),
        rules=rules,
        jobs=jobs,
        machine=machine,
        queue_index=QueueIndex(
            records(PLACE, count),
            records(BLOCK, count // PLACES_IN_BLOCK + 1),
            np.zeros(count // (PLACES_IN_BLOCK * WORD) + 1, np.int64),
            records(RANKED, count),
            np.zeros(0 if rules.mode == KEEP else count, np.int64),
            records(THROTTLED, 0 if rules.mode == KEEP else count),
        ),
        plan=ClusterPlan(
            time=np.zeros(steps, np.int64),
            free=np.zeros((len(capacity), 2, steps), np.int64),
            room=np.zeros((len(pools_of.first) - 1, steps), np.int64),
            least=np.zeros((len(capacity), 2), np.int64),
        ),
        kept=_new_kept(count, capacity, len(pools_of.first) - 1) if rules.mode == KEEP else None,
    )


def _new_kept(count: int, capacity: Array, partitions: int) -> KeptReservations:
    """Return memory for reservations, with none made."""
    classes = int(capacity[:, 0].sum()).bit_length() + 1
    freed_gaps = records(FREED_GAP, partitions * classes).reshape(partitions, classes)
    freed_gaps.earliest = NEVER
    start, length, size = np.full(count, -1, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    return KeptReservations(start, length, size, freed_gaps, np.zeros(classes, np.int64), np.zeros((len(capacity), 2), np.int64))
