"""Machines as an engine sees them, and the needs of jobs on them: one pool, several pools, or nodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from walltime.policy.oar import Latencies
from walltime.ragged import Ragged as Ragged

Array = np.ndarray
NEVER = np.iinfo(np.int64).max
"""A time that never comes, s; an amount that is never reached."""


class ShutHours(Protocol):
    """Hours in which jobs do not start; they recur forever, and are computed as far as a caller needs them."""

    crossing: bool
    """whether jobs may not be planned to run into these hours either"""
    settled: int
    """the time, s, after which all weeks are alike, or no more such hours come"""

    def until(self, moment: int) -> Any:
        """Return all periods that start at or before a time (s), and the next one, as sorted arrays `begin` and `end` (int64 s)."""


IDLE = 70 * 86_400
"""How long to wait for a start after the last change, except changes of such hours, s; a job that has not started by then never will.

Hours in which a job may start recur every week, except when the clock changes: in fewer than one week in four."""


class Pools(NamedTuple):
    """A machine of several pools.

    * `capacity`: processors and second resource of each pool, int64, shape (pools, 2)
    * `partitions`: the pools of each partition, in the order in which jobs take them; `tiers`: its tier, a higher one comes first
    * `outages`: for each outage, its pool, processors, second resource, start, end, and the time from which it is known, s
    * `limits`: for each limit, the maximum number of jobs, of processors, and of units of the second resource that a group may have in use
    * `windows`: hours in which jobs do not start
    """

    capacity: Array
    partitions: Sequence[Sequence[int]]
    tiers: Sequence[int]
    outages: Sequence[tuple[int, int, int, int, int, int]] = ()
    limits: Sequence[tuple[int, int, int]] = ()
    windows: Sequence[ShutHours] = ()


class Demands(NamedTuple):
    """The needs of jobs on pools, other than processors, and their constraints; one entry per job, in order of arrival.

    * `second`: units of the second resource; `partition`: the partition's number (both int64)
    * `since`: the start of an initially running job, int64 s; NEVER for other jobs
    * `after`: the jobs that must have ended; `limits`: the limits towards which the job counts; `windows`: its windows; all by index
    """

    second: Array
    partition: Array
    since: Array
    after: Ragged
    limits: Ragged
    windows: Ragged


class Shares(NamedTuple):
    """The tree of accounts and users: `parent`, `shares`, and `leaf` (1 for a user, 0 for an account), int64.

    A parent has a lower number than its children; the root is number 0, its own parent.
    """

    parent: Array
    shares: Array
    leaf: Array


class Preemption(NamedTuple):
    """The preemption of running jobs, by classes of jobs; int64.

    * `may`: shape (classes, classes), 1 where jobs of the first class may preempt jobs of the second; the others have an entry per class
    * `rank`: classes with the lowest rank are preempted first
    * `requeue`: 1 if preempted jobs return to the queue, 0 if they are cancelled
    * `grace`: how long preempted jobs continue to run, s; `exempt`: how long a job must have run before it may be preempted, s
    """

    may: Array
    rank: Array
    requeue: Array
    grace: Array
    exempt: Array


REQUEUE_DELAY = 121
"""Time after which a requeued job is eligible again, s: Slurm waits until the credentials of its last run have expired."""
REQUEUED = 1


class LostRuns(NamedTuple):
    """Runs that ended early, by preemption or because a node was lost, in the order of their ends; int64.

    The job's index, its start and end (s), and its `kind` of start, as in `Outcome`. `requeued`: 1 if the job returned to the queue, 0 if
    it was cancelled, so that this is its last run. `failed`: 1 if an outage took a node of the job, 0 if it was preempted.
    """

    job: Array
    start: Array
    end: Array
    requeued: Array
    kind: Array
    failed: Array


class Nodes(NamedTuple):
    """A machine of nodes.

    * `pool`, `procs`, `second`, `memory`, `weight`: one int64 entry per node; memory is 0 everywhere if it is not limited
    * `partitions`: the nodes of each partition; jobs take nodes of the lowest weight first, and in this order among nodes of one weight
    * `members`: the sets of nodes that jobs may use: the partitions, by number, then parts of them, with `partition_of_members`
    * `least_loaded`: for each partition, whether the nodes with the largest share of free processors are taken first
    * `tiers`: the tier of each partition; partitions with higher tiers come first
    * `outages`: for each outage, its nodes, start, end, the time from which it is known, s, and the user reservation whose jobs may use its
      nodes, or 0
    * `losses`: for each outage, 0 if jobs on its nodes continue when it begins, REQUEUED, or 2 if they are cancelled; empty for 0
      everywhere
    * `limits`: for each limit, the maximum number of jobs, of processors, and of units of the second resource that a group may have in use
    * `run_seconds`: for each limit, the maximum of the processor-seconds that its running jobs have left until their time limits; or empty
    * `node_limits`: for each limit, the maximum of the nodes of its running jobs, each counted once; or empty
    * `reservations`: for each partition, the user reservation of its jobs, negative if its nodes and times do not bind them, or 0; may be
      empty
    * `types`: None, or if nodes have several types of the second resource, its units by row and node, int64, shape (rows, nodes); a job
      uses the units of one row
    * `preemption`: None if no job may end early, by preemption or because it loses a node
    """

    pool: Array
    procs: Array
    second: Array
    memory: Array
    weight: Array
    partitions: Sequence[Array]
    members: Sequence[Array]
    partition_of_members: Sequence[int]
    least_loaded: Sequence[int]
    tiers: Sequence[int]
    outages: Sequence[tuple[Sequence[int], int, int, int, int]] = ()
    limits: Sequence[tuple[int, int, int]] = ()
    reservations: Sequence[int] = ()
    preemption: Preemption | None = None
    run_seconds: Sequence[int] = ()
    node_limits: Sequence[int] = ()
    losses: Sequence[int] = ()
    types: Array | None = None

    @property
    def rows_of_second(self) -> Array:
        """Return the units of the second resource that each node has in each row of `types`, int64, shape (rows, nodes)."""
        return self.second[None] if self.types is None else self.types

    @property
    def amounts(self) -> Array:
        """Return each node's processors, second resource (its first row), memory, and the other rows of the second resource.

        int64, shape (2 + rows, nodes).
        """
        first, *others = self.rows_of_second
        return np.stack([self.procs, first, self.memory, *others])

    def allocated(self, second_row: Array, procs: Array, second: Array, memory: Array) -> Array:
        """Return amounts that jobs have on nodes in the rows of `amounts`; `second_row`: the row in `types` of each `second`."""
        found = np.zeros((2 + len(self.rows_of_second), len(procs)), np.int64)
        found[0], found[2] = procs, memory
        found[row_of_amounts(second_row), np.arange(len(procs))] = second
        return found

    def given(self, slots: Sequence[Array], jobs: int) -> Array:
        """Return the processors and second resource of these jobs in each pool, int64, shape (jobs, pools, 2); `slots`: see `Outcome`."""
        given = np.zeros((jobs, int(self.pool.max()) + 1, 2), np.int64)
        if isinstance(slots, NodeRanges):
            for p in range(given.shape[1]):
                before = np.concatenate([[0], np.cumsum(self.pool == p)])  # nodes of the pool before each node
                nodes = before[slots.first + slots.nodes] - before[slots.first]
                for k, own in enumerate((slots.procs, slots.second)):
                    np.add.at(given[:, p, k], slots.job, nodes * own)
            return given
        job, node, procs, second = slots
        np.add.at(given, (job, self.pool[node]), np.stack([procs, second], axis=1))
        return given


def row_of_amounts(second_row: Any) -> Array:
    """Return the row of `Nodes.amounts` that has a row of `Nodes.types`."""
    return np.where(np.asarray(second_row) == 0, 1, np.asarray(second_row) + 2)


SETS = 10_000
"""Number of sets that are unpacked at a time."""


class NodeRanges(Sequence[Array]):
    """The jobs' shares of individual nodes: job, node, processors and second resource, int64, in order of job and node.

    They are stored as ranges of `nodes` consecutive nodes from `first` on. The arrays are made when they are first used, because a million
    jobs may have hundreds of millions of nodes.
    """

    def __init__(self, job: Array, first: Array, nodes: Array, procs: Array, second: Array):
        order = np.lexsort((first, job))
        self.job, self.first, self.nodes = (np.asarray(values[order], np.int64) for values in (job, first, nodes))
        self.procs, self.second = (np.asarray(values[order], np.int64) for values in (procs, second))

    @classmethod
    def of_sets(cls, sets: Array) -> NodeRanges:
        """Return jobs' shares of single processors, which are nodes here, from a row of int64 words for each job, as in kernel/bits.py."""
        firsts, counts, jobs = [], [], []
        for begin in range(0, len(sets), SETS):
            bits = np.unpackbits(np.ascontiguousarray(sets[begin : begin + SETS]).view(np.uint8), axis=1, bitorder="little")
            edges = np.diff(np.pad(bits.astype(np.int8), ((0, 0), (1, 1))), axis=1)
            job, first = np.nonzero(edges == 1)
            jobs.append(job + begin)
            firsts.append(first)
            counts.append(np.nonzero(edges == -1)[1] - first)
        job, first, count = (np.concatenate([np.zeros(0, np.int64), *parts]) for parts in (jobs, firsts, counts))
        return cls(job, first, count, np.ones_like(job), np.zeros_like(job))

    @cached_property
    def _arrays(self) -> tuple[Array, Array, Array, Array]:
        job, first, procs, second = (np.repeat(values, self.nodes) for values in (self.job, self.first, self.procs, self.second))
        begin = np.cumsum(self.nodes) - self.nodes
        return job, first + np.arange(len(job)) - np.repeat(begin, self.nodes), procs, second

    def __getitem__(self, which: Any) -> Any:
        return self._arrays[which]

    def __len__(self) -> int:
        return 4


CHARGE = 2**16
"""Parts into which a processor is divided to count past usage in integers, whose sums are exact; a power of two, which changes no ratio."""


class NodeDemands(NamedTuple):
    """The needs of jobs on nodes, other than processors, and their constraints; one entry per job, in order of arrival.

    All are int64, except `merit` (float64), `after` and `limits`. Nodes and processors:

    * `nodes`, `most_nodes`: the fewest and the most nodes, 0 for any; `members`: the nodes that the job may use, an index of
      `Nodes.members`
    * `asked`: processors requested on all of its nodes together; `whole`: 1 if the job gets whole nodes
    * `task`: the job gets multiples of this many processors on a node; `least`, `most`: the fewest processors of a node that it uses, and
      the most that it takes there
    * `spread`: 1 if the job takes nodes in order of weight; `sole`: 1 if only jobs of its user may run on its nodes

    Other resources:

    * `second_row`: the row of `Nodes.types` whose units it uses
    * `each`, `per_task`: units of the second resource on every node, or for each `task`; `total`: if positive, that many units from any
      nodes with at least `each`; `second`: units that count towards limits
    * `memory`, `task_memory`: memory on every node, and for each `task`

    Time, priority and constraints:

    * `partition`: the partition's number; `since`: the start of an initially running job, s, NEVER for others
    * `time_min`: the shortest time limit with which the job may be started, s, 0 for none
    * `user`: the user's number, from 0; `place`: position in the order of submissions, -1 if that is the order of arrivals
    * `association`: the job's leaf in the tree of shares; `charge`: the usage counted for each second, in parts of CHARGE
    * `merit`: the constant part of the priority; `unreserved`: 1 if backfill reserves no nodes for it; `preemption`: its class in
      `Preemption`
    * `after`: the jobs that must have ended; `limits`: the limits that the job counts towards; both by index
    """

    second: Array
    nodes: Array
    most_nodes: Array
    whole: Array
    spread: Array
    sole: Array
    asked: Array
    members: Array
    task: Array
    least: Array
    most: Array
    total: Array
    each: Array
    per_task: Array
    second_row: Array
    memory: Array
    task_memory: Array
    partition: Array
    since: Array
    time_min: Array
    user: Array
    place: Array
    unreserved: Array
    association: Array
    charge: Array
    preemption: Array
    merit: Array
    after: Ragged
    limits: Ragged


class OarSettings(NamedTuple):
    """Settings of OAR's scheduling, from the options of `walltime.policy.Oar`.

    * `security_time`: time that the plan adds to each request, s; `latencies`: the durations of the server's steps
    * `bug`: whether running jobs are put into the plan in the faulty way of OAR in 2016
    * `noticed`, `phase`: for each job, int64 ms, the delay until its submission is noticed, and the time of its real end within its second
    """

    security_time: int
    bug: bool
    latencies: Latencies
    noticed: Array
    phase: Array
