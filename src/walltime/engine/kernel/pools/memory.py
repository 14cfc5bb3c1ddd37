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
    "submit runtime planned order_length own_length run_length procs second partition tier start kind reserved_start arrival pending "
    "after think"
)
"""A job, with the fields of memory.JOB, and these:

* `second`: units of the second resource; `partition`: the partition's number; `tier`: the partition's tier, a higher one comes first
* `pending`: number of jobs that must end before it can wait
* `submit`: becomes the time from which it waits, s: with feedback, `think` s after the end of the job `after` (-1 for none)"""

CLUSTER_RULES = record_dtype(
    "mode depth backfill order order_parameter order_starvation order_limit order_reads_time "
    "backfill_order backfill_parameter backfill_starvation backfill_limit own_backfill_order "
    "predicts predict started observe predict_again correction predict_order predict_own predict_running tick"
)
"""A policy, as in memory.RULES; `backfill`: whether jobs behind a blocked job may use its pools."""

CLUSTER_STATE = record_dtype(
    "now arrivals next_coming later started running events waiting holes looked_at freed most_free settled outages next_change "
    "steps joined resources planned deferred candidates again begun early broken next_due freed_until longest unreserved tightened "
    "windowed away until awaited"
)
"""Values that change at every event.

Events:

* `arrivals`, `started`, `running`: numbers of jobs; `begun`: 1 after the first event
* `events`, `later`: numbers of items in the heap of ends, and in that of arrivals that waited for another job's end
* `next_coming`: the next index into `PoolMachine.coming`; `until`, `awaited`: as in memory.STATE

Machine:

* `next_change`: index of the next change; `outages`: number of outages that are known or have begun, and are not over
* `resources`: 2 if the machine has a second resource, else 1; `windowed`: 1 if there are windows

Queue:

* `waiting`: number of places; `holes`: number of places without a job, because it has started or is throttled outside the queue
* `away`: number of jobs throttled outside the queue
* `looked_at`: places below this one were considered in an earlier pass; `freed`: 1 if anything has happened since then, other than arrivals
  at the end of the queue
* `candidates`: number of jobs to be tried for backfilling, to get a reservation, or to start
* `again`: 1 if the pass must be repeated

Plan:

* `steps`: number of steps; `joined`: this number when equal steps were last joined

Fresh reservations:

* `most_free`: the largest number of free processors of a partition; `settled`: a bit for each settled partition
* `planned`: 1 once the reservations have been made
* `deferred`: number of jobs whose reservations are made together with the plan

Kept reservations:

* `early`: 1 if a job has ended before its expected end since the last pass; `broken`: 1 if the reservations are invalid
* `next_due`: the earliest reserved start, s; `freed_until`: the latest end of a freed gap, s
* `longest`: the length of the longest job that ever had a reservation, s
* `unreserved`: number of jobs that wait without a reservation
* `tightened`: 1 if jobs with reservations may have come to exceed a limit since the last pass"""

PLACE = record_dtype("rank tie job partition procs second length woken", "rank")
"""A place in the queue: an item of a heap, and the data that show whether its job may fit.

* `procs`: HOLE once the job has started, and while it is throttled (limits.py)
* `woken`: the number, from 1, of the limit that has just woken the job, 0 for none"""

BLOCK = record_dtype("least partitions woken old")
"""A block of PLACES_IN_BLOCK places of the queue.

* `least`: the smallest number of processors that one of its jobs needs; `partitions`: a bit for each of its jobs' partitions
* `woken`: number of its jobs that have just been woken; `old`: 1 if jobs have left since these values were computed"""
PLACES_IN_BLOCK = 64

PARTITION = record_dtype("free_procs free_second settled until extra")
"""A partition in a pass.

* `free_procs`, `free_second`: the amounts that are free now in its open pools
* `settled`: 1 if all its pools are blocked and one of them has `depth` reservations, so that other waiting jobs cannot change these pools
* `until`, `extra`: a job that may be backfilled ends by `until`, s, or needs at most `extra` processors"""

FREED_GAP = record_dtype("jobs longest earliest tried tried_earliest")
"""Data on the jobs of one partition and one size class, and on the gaps in the plan that have been freed for them.

* `jobs`: number of waiting jobs with a reservation
* `longest`, `earliest`: the length of the longest stretch of the plan that contains freed processors and has room for the smallest job of
  the class, and the start of the first such stretch, s
* `tried`, `tried_earliest`: the same two values when the current compression began"""

POOL = record_dtype("free_procs free_second reservations blocked closed begin left_procs left_second")
"""A pool in a pass.

* `free_procs`, `free_second`: its free amounts, negative while capacity that was lost is still in use
* `reservations`: number of jobs with a reservation on it; `blocked`: whether a job ahead waits for it
* `closed`: whether the jobs behind a waiting job may not use it
* `begin`: the start of the only reservation on it, s, NEVER for none; `left_procs`, `left_second`: amounts that this reservation leaves
  free (plan.py)"""

OUTAGE = record_dtype("pool procs second begin end known phase")
"""An outage, in which capacity is missing.

* `procs`, `second`: the amounts that are missing in the pool; `begin`, `end`: its start and end, s
* `known`: the time from which the scheduler knows about it, s; `phase`: 0 unknown, 1 known, 2 begun, 3 over"""

CHANGE = record_dtype("time outage phase")
"""A change: the outage of this number enters a phase, or the window that is the limit of this number begins (SHUTS) or ends (OPENS)."""
SHUTS, OPENS = 4, 5

LIMIT = record_dtype(
    "jobs procs second seconds nodes used_jobs used_procs used_second shut until crossing throttled first_group waking due"
)
"""A limit on the simultaneously running jobs of a group, and their current usage.

* `jobs`, `procs`, `second`: maximum number of jobs, processors and units of the second resource; `used_jobs`, `used_procs`, `used_second`:
  in use
* `seconds`: under Slurm's scheduling, the maximum of the processor-seconds that running jobs have left until their time limits;
  `nodes`: the maximum of the nodes of running jobs
* for a window, which is a kind of limit: `shut`: 1 while no job of the group may start; `until`: the start of the next window into which no
  job may be planned to run, s
* `throttled`: number of jobs that wait only for the limit, in groups; `first_group`: the first job of the first group; `waking`: 1 while
  one of these jobs has been woken
* `due`: number of jobs with no other limit to which the current pass has given a kept reservation that starts now"""

THROTTLED = record_dtype("next last entered next_group away")
"""A throttled job, as an element of linked lists.

* `next`: the next job of its group, which is in queue order; `away`: 1 while the job has no place in the queue
* for the first job of a group: `last`: the group's last job; `entered`: the job that joined last; `next_group`: the first job of the
  limit's next group, negative for none"""


class Lists(NamedTuple):
    """Lists of numbers, one for each item: the list of item k is `items[first[k] : first[k + 1]]`; int64."""

    first: Array
    items: Array


@inlined_kernel
def list_of(lists, k):
    """Return the list of item k."""
    return lists.items[lists.first[k] : lists.first[k + 1]]


class Restraints(NamedTuple):
    """Constraints on jobs.

    * `limits_of`: the limits of each job; `followers`: the jobs that wait for its end
    * `since`: the start of an initially running job, int64 s, else NEVER
    * `windowed`: whether some of the limits are windows
    """

    limits_of: Lists
    followers: Lists
    since: Array
    windowed: bool = False


class ClusterPlan(NamedTuple):
    """The free amounts over future time, int64, step by step; the last step has no end.

    * `time`: when each step begins, s, shape (steps,)
    * `free`: the free amounts of each pool and resource, shape (pools, 2, steps)
    * `room`: the free processors of all pools of each partition, shape (partitions, steps)
    * `least`: scratch, shape (pools, 2)
    """

    time: Array
    free: Array
    room: Array
    least: Array


class PoolMachine(NamedTuple):
    """The pools, the limits on their use, the running jobs, and the coming ones.

    * `pools_of`: the pools of each partition, in the order in which jobs take them; `partitions_of`: the partitions that have each pool
    * `changes`: when outages enter their phases, and windows begin and end, in order of time (for windows, up to `until` of the state, and
      one change more); `limits_of`: the limits of each job
    * `running`: the running jobs by expected end; `events`: a heap of their ends
    * `coming`: the jobs that depend on no other, by submission (int64); `later`: a heap of the arrivals of the others; `followers`: the
      jobs that wait for the end of each job
    * `given`: processors and second resource that each job has in each pool, int64, shape (jobs, pools, 2)
    * `predicting`: the state of predictions; its arrays have length 0 without predictions
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
    """The waiting jobs in order, in blocks, and the candidates of a pass.

    * `queue`: records of PLACE; `blocks`: records of BLOCK; `live`: a bit for each block with a waiting job (kernel/bits.py)
    * `candidates`: a heap of places; `deferred`: the jobs whose reservations are made together with the plan
    * `throttled`: the links between throttled jobs (limits.py)
    """

    queue: Records
    blocks: Records
    live: Array
    candidates: Records
    deferred: Array
    throttled: Records


class KeptReservations(NamedTuple):
    """Kept reservations, and the gaps that have been freed since all jobs were tried.

    * `start`: by job, its reserved start, int64 s; -1 for none, NEVER for one that is lost within the instant
    * `length`: by job, its planned length, int64 s; `size`: by job, its size class, int64
    * `freed_gaps`: by partition and size class, records of FREED_GAP
    * `since`: scratch: when a stretch with room for each class begins, int64 s
    * `before`: scratch: the previous amounts of a job in each pool, int64, shape (pools, 2)
    """

    start: Array
    length: Array
    size: Array
    freed_gaps: Records
    since: Array
    before: Array


class ClusterMemory(NamedTuple):
    """All data of a simulation; `kept` is None if reservations are not kept."""

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
    """Return for each job the jobs that wait for its end, and count in `pending` the jobs that each one waits for.

    A job waits for all jobs of `after`, and for the one of `follows` (-1 for none).
    """
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
    """Return memory before the first event, without coming changes; `capacity`: processors and second resource, int64, shape (pools, 2)."""
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
    classes = int(capacity[:, 0].sum()).bit_length() + 1
    freed_gaps = records(FREED_GAP, partitions * classes).reshape(partitions, classes)
    freed_gaps.earliest = NEVER
    start, length, size = np.full(count, -1, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    return KeptReservations(start, length, size, freed_gaps, np.zeros(classes, np.int64), np.zeros((len(capacity), 2), np.int64))
