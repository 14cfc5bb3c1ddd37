"""The input of an engine, a `Problem`, and its result, an `Outcome`: the same for all machines, compiled or in plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from walltime.errors import WorkloadError
from walltime.policy import Policy
from walltime.policy.log_view import LogView
from walltime.policy.oar import Latencies
from walltime.ragged import Ragged as Ragged

Array = np.ndarray
NEVER = np.iinfo(np.int64).max
"""A time that never comes, s; an amount that is never reached."""


class ShutHours(Protocol):
    """Hours in which jobs do not start; they recur without end, and are computed as far as a caller needs them."""

    crossing: bool
    """whether jobs may not be planned to run into them either"""
    settled: int
    """from this time on every week is like the one before, or there are no more such hours, s"""

    def until(self, moment: int) -> Any:
        """Return all stretches that begin by a time, s, and the next one, as sorted arrays `begin` and `end` (int64 s)."""


IDLE = 70 * 86_400
"""A job counts as never starting if it has not started this long (s) after the last change other than of these hours.

The hours in which a job may start recur every week, except in the weeks in which the clock changes: fewer than one in four."""


class Pools(NamedTuple):
    """A machine of several pools.

    `capacity`: processors and second resource of each pool, int64, shape (pools, 2). `partitions`: the pools of each, in the order in which
    they are taken. `tiers`: the tier of each partition; higher tiers come first. `outages`: pool, processors, second resource, begin, end
    and the time from which it is known. `limits`: the most jobs, processors and second resource that run. `windows`: the hours in which
    jobs do not start.
    """

    capacity: Array
    partitions: Sequence[Sequence[int]]
    tiers: Sequence[int]
    outages: Sequence[tuple[int, int, int, int, int, int]] = ()
    limits: Sequence[tuple[int, int, int]] = ()
    windows: Sequence[ShutHours] = ()


class Demands(NamedTuple):
    """The needs of jobs on pools besides processors, and their constraints; one entry per job, in order of arrival.

    `second`: units of the second resource; `partition`: the partition's number; `since`: the start of a job that runs at the beginning,
    NEVER for others (all int64). `after`: the jobs that must have ended; `limits`: the limits that the job counts towards; `windows`: its
    windows; by index.
    """

    second: Array
    partition: Array
    since: Array
    after: Ragged
    limits: Ragged
    windows: Ragged


class Shares(NamedTuple):
    """The tree of accounts and users; a parent has a lower number than its children, and the root is number 0, its own parent.

    int64: `parent`, `shares`, and `leaf`: 1 for a user.
    """

    parent: Array
    shares: Array
    leaf: Array


class Preemption(NamedTuple):
    """The preemption of running jobs, by classes of jobs; int64.

    `may`: shape (classes, classes), 1 where jobs of the first class may preempt jobs of the second. The others have an entry for each
    class. `rank`: the lowest are preempted first; `requeue`: 1 if preempted jobs return to the queue, 0 if they are cancelled; `grace`: how
    long they continue to run (s); `exempt`: how long they must have run before (s).
    """

    may: Array
    rank: Array
    requeue: Array
    grace: Array
    exempt: Array


REQUEUE_DELAY = 121
"""Seconds after which a requeued job is eligible again: Slurm waits until the credentials of its last run have expired."""
REQUEUED = 1


class LostRuns(NamedTuple):
    """Runs that ended early, by preemption or with a node, in the order of their ends; int64.

    The job's index, start and end (s), and its kind of start. `requeued`: 1 if the job returned to the queue, 0 if it was cancelled; then
    this is its last run. `failed`: 1 if an outage took a node of the job, 0 if it was preempted.
    """

    job: Array
    start: Array
    end: Array
    requeued: Array
    kind: Array
    failed: Array


class Nodes(NamedTuple):
    """A machine of nodes.

    `pool`, `procs`, `second`, `memory` (0 everywhere if it is not limited), `weight`: of each node, int64. `partitions`: the nodes of each
    partition, in the order in which they are taken among nodes of one weight, the lowest first. `tiers`: the tier of each partition; higher
    tiers come first. `outages`: the nodes, begin, end and the time from which it is known, s, and the number of the reservation whose jobs
    may use them, 0 for none. `limits`: the most jobs, processors and second resource that run. `members`: the sets of nodes that jobs may
    use: the partitions, by number, then parts of them, each with its partition. `least_loaded`: of each partition, whether the nodes with
    the largest share of free processors are taken first. `reservations`: of each partition, the number of the reservation that its jobs are
    in, and whose nodes and times bind them, 0 for none; negative if they are not bound. Empty for 0 everywhere. `run_seconds`: of each
    limit, the most processor-seconds that its running jobs may have until their limits; empty without such limits. `node_limits`: of each
    limit, the most nodes of its running jobs, each counted once; empty without such limits. `preemption`: None if no job may end early, by
    preemption or with its nodes. `losses`: of each outage, the fate of the jobs on its nodes when it begins: 0 if
    they continue, REQUEUED, or 2 if they are cancelled; empty for 0 everywhere.
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

    def given(self, slots: Sequence[Array], jobs: int) -> Array:
        """Return the amounts of this many jobs in each pool, int64, shape (jobs, pools, 2), from their nodes: `Outcome.slots`."""
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


SETS = 10_000
"""Sets that are unpacked at a time."""


class NodeRanges(Sequence[Array]):
    """The share of single nodes that jobs had: the job, the node, processors and second resource, int64, in order of job and node.

    Stored as ranges: this many `nodes`, beginning with `first`. The four arrays are made when they are first used, because a million jobs
    may have hundreds of millions of nodes.
    """

    def __init__(self, job: Array, first: Array, nodes: Array, procs: Array, second: Array):
        order = np.lexsort((first, job))
        self.job, self.first, self.nodes = (np.asarray(values[order], np.int64) for values in (job, first, nodes))
        self.procs, self.second = (np.asarray(values[order], np.int64) for values in (procs, second))

    @classmethod
    def of_sets(cls, sets: Array) -> NodeRanges:
        """Return the single processors of jobs from a row of int64 words for each job, as in kernel/bits.py; a processor is a node here."""
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
"""Parts of a processor in which past use is counted: whole numbers, whose sums are exact; as a power of two, it changes no ratio."""


class NodeDemands(NamedTuple):
    """The needs of jobs on nodes besides processors, and their constraints; one entry per job, in order of arrival.

    int64: `second`: units of the second resource, for limits. `nodes`, `most_nodes`: the fewest and the most nodes, 0 for any. `whole`: 1
    if the job gets whole nodes. `spread`: 1 if it takes nodes in order of weight. `sole`: 1 if only jobs of its user may run on its nodes.
    `asked`: the processors that it requests on all of its nodes together. `members`: the set of nodes that it may use. `task`: it gets
    multiples of this many processors on a node, on nodes with at least `least`, and at most `most` of each. It gets `each` units of the
    second resource on every node, or `per_task` for each `task`; or, if `total` is positive, that many units from any nodes with at least
    `each`. `memory`, `task_memory`: memory on every node, and for each `task`. `partition`: its number. `since`: the start of a job that
    runs at the beginning, NEVER for others. `time_min`: the shortest runtime (s) for which it may be started, 0 for none. `user`: a number
    from 0 on. `place`: its place in the order of submissions, -1 if that is the order of arrivals. `unreserved`: 1 if backfill reserves no
    nodes for it. `association`: its leaf of the tree of shares. `charge`: the past use that each second counts as, in parts of CHARGE.
    `preemption`: its class in `Preemption`. float64: `merit`: the constant part of its priority. `after`: the jobs that must have ended;
    `limits`: the limits that it counts towards; both by index.
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

    `bug`: whether running jobs are put into the plan as in 2016. `noticed`, `phase`: for each job, int64 ms, the delay from its second
    until its submission is noticed, and from the second of its end until it really ends.
    """

    security_time: int
    bug: bool
    latencies: Latencies
    noticed: Array
    phase: Array


class PredictionSource(Protocol):
    """Predicted runtimes, in the form that each engine takes."""

    @property
    def needs_reference(self) -> str:
        """Return the feature that only the reference engine has, as the beginning of a sentence; empty if there is none."""

    @property
    def may_be_overdue(self) -> bool:
        """Return whether running jobs may outlive their expected ends, even those that end within their estimates."""

    def compiled(self) -> Any:
        """Return a `compiled.prediction_memory.PredictionRules`."""

    def plain(self) -> Any:
        """Return a `reference.predictions.Predictions`, with nothing learned yet."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Jobs, a machine and a policy: everything that an engine needs.

    `submit, runtime, believed, procs`: int64, one entry per job, in order of arrival; times in s. `runtime` is the real runtime, `believed`
    the one that the scheduler plans with. `machine`: a number of processors, pools or nodes, with the `demands` of the jobs on them.
    `known`: the columns and the calendar that custom orders read; missing columns are -1 everywhere, and without it requests equal the
    planned runtimes. With feedback, `after` and `think` (int64) give for each job the index of an earlier job (-1 for none) and the
    seconds after its end at which this job is submitted. `coincident`, `expiry`: how simultaneous events and expired predictions are
    handled (`walltime.policy.Dialect`).

    On nodes, `settings` are Slurm's or OAR's, `shares` are Slurm's, and `kill`: whether a job is killed at a limit that Slurm's backfill
    has shortened. `tick`: seconds between the scheduler's checks; jobs arrive, end, and are expected to end only at such times. `logged`:
    whether starts are recorded, to compute the effects of backfilling. `starts_only`: whether first reservations may be left out, where
    that is faster.
    """

    submit: Array
    runtime: Array
    believed: Array
    procs: Array
    machine: int | Pools | Nodes
    policy: Policy
    demands: Demands | NodeDemands | None = None
    known: LogView | None = None
    after: Array | None = None
    think: Array | None = None
    prediction: PredictionSource | None = None
    coincident: str = "batch"
    expiry: str = "pass"
    settings: Any = None
    shares: Shares | None = None
    kill: bool = True
    tick: int = 1
    logged: bool = False
    starts_only: bool = False

    def __len__(self) -> int:
        return len(self.submit)

    @property
    def machine_procs(self) -> int:
        """Return the processors of the machine."""
        if isinstance(self.machine, int):
            return self.machine
        return int((self.machine.capacity[:, 0] if isinstance(self.machine, Pools) else self.machine.procs).sum())

    def rows(self) -> list[tuple[int, int, int, int, int, int]]:
        """Return submit time, runtime, planned runtime, processors, `after` and `think` of each job, as Python integers."""
        none = np.full(len(self), -1), np.zeros(len(self), np.int64)
        links = none if self.after is None or self.think is None else (self.after, self.think)
        columns = (self.submit, self.runtime, self.believed, self.procs, *links)
        return list(zip(*(np.asarray(column).tolist() for column in columns), strict=True))

    def known_as_lists(self) -> LogView:
        """Return the data that orders read, with lists of Python integers."""
        known = self.known or LogView({})
        return known._replace(columns={name: np.asarray(values).tolist() for name, values in known.columns.items()})


class State(NamedTuple):
    """The state of a scheduler at one moment of a simulation; arrays are int64, times s.

    `now`: the time; `free`: processors on which no job runs, including those in an outage. `queue`: the indices of the waiting jobs in the
    workload, in order of arrival; for each of them `planned`, the planned runtime, and `reserved`, the start of its first reservation, -1
    without one. `running`: the indices of the running jobs, in order of their `expected_end`. Jobs that have arrived or started keep their
    indices when others are submitted.
    """

    now: int
    free: int
    queue: Array
    planned: Array
    reserved: Array
    running: Array
    expected_end: Array


class Observation(NamedTuple):
    """The result of a scheduling pass.

    `started`: the jobs that it started, in this order, and the expected runtime of each while it waited, s. `reserved`: the reservations
    after it, by job, s. `extra`: under EASY, the processors that the head of the queue will not need when it starts.
    """

    state: State
    started: dict[int, int]
    reserved: dict[int, int]
    extra: int | None


@dataclass(frozen=True, eq=False)
class Outcome:
    """The schedule of a problem; arrays have one entry per job.

    `engine`: `kernel` or `reference`; `machine`: `number`, `pools` or `nodes`, the kind of machine that was simulated. `start`,
    `reserved_start` (the start of the first reservation; -1 without one), `submit` (the begin of each job's wait) and `runtime`: int64 s.
    `kind`: uint8, 0 immediate, 1 reserved, 2 backfilled. With predictions, `predicted` (int64 s), `basis` (uint8) and `corrections`
    (int64). On pools and nodes, `given`: processors and second resource of each pool, int64, shape (jobs, pools, 2). On nodes, `slots`: the
    job, the node, processors and second resource, in order of job and node; and `limit`, under which each job ran, int64 s. `lost`: the
    preempted runs; start and runtime are those of the last runs. If jobs get particular processors, these are nodes in `slots`. `effects`:
    those of backfilling, where starts were recorded, in the order of `walltime.metrics.Dynamics`. `seconds`: the time that each part took.
    """

    engine: str
    machine: str
    start: Array
    submit: Array
    runtime: Array
    kind: Array
    reserved_start: Array
    predicted: Array | None = None
    basis: Array | None = None
    corrections: Array | None = None
    given: Array | None = None
    slots: Sequence[Array] | None = None
    limit: Array | None = None
    lost: LostRuns | None = None
    effects: tuple[Array, ...] | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)


def running_at_first(since: Array) -> Array:
    """Return the initially running jobs, in order of their starts (`since`, s; NEVER for others)."""
    jobs = np.flatnonzero(since < NEVER)
    return np.asarray(jobs[np.argsort(since[jobs], kind="stable")])


def overfull(job: int) -> WorkloadError:
    """Return the error that the jobs running at the start need more than the machine has, from the job of this index on."""
    why = f"the running jobs need more than the machine has; add nodes, or leave out job number {job + 1}"
    error = WorkloadError(why, "overfull_machine")
    error.job = job
    return error


def as_number(problem: Problem) -> Problem | None:
    """Return the problem on one pool of processors, if that gives the same schedule for these jobs; else None.

    The schedule is the same if all jobs use the same single pool, in one tier, and there are no outages and no windows. In addition, no job
    may wait for others; the initially running jobs must be submitted when they started, before all others, so that they start at once. And
    neither the second resource nor a limit may restrain any job. Under EASY, no job may outlive its expected end: pools expect such a job
    to end in a second, EASY on one pool at its expected end, which has passed.
    """
    machine, demands = problem.machine, problem.demands
    if not isinstance(machine, Pools) or not isinstance(demands, Demands) or not len(problem):
        return None
    used = np.unique(demands.partition).tolist()
    pools = {pool for number in used for pool in machine.partitions[number]}
    if len(pools) > 1 or len({machine.tiers[number] for number in used}) > 1:
        return None
    [pool] = pools
    procs, second = machine.capacity[pool].tolist()
    if machine.outages or machine.windows or demands.after.items.size:  # an outage anywhere causes passes
        return None
    if not _starts_at_once(problem, demands.since, procs):
        return None
    passes = problem.policy.passes
    if passes.kind in ("head", "relaxed") and passes.backfills and problem.policy.on_pools.engine and _may_be_overdue(problem):
        return None
    if int(demands.second.sum()) > second or _limited(problem, machine.limits, demands):
        return None
    return replace(problem, machine=procs, demands=None)


def _starts_at_once(problem: Problem, since: Array, capacity: int) -> bool:
    """Return whether the initially running jobs would start at `since` (s; NEVER for others) on an empty machine of this capacity."""
    running = since < NEVER
    if not running.any():
        return True
    last = int(since[running].max())
    first_of_others = int(problem.submit[~running].min(initial=NEVER))
    comes = (problem.submit[running] == since[running]).all()
    return bool(comes) and last < first_of_others and int(problem.procs[running].sum()) <= capacity


def _may_be_overdue(problem: Problem) -> bool:
    """Return whether a running job may outlive its expected end."""
    return bool((problem.runtime > problem.believed).any()) or (problem.prediction is not None and problem.prediction.may_be_overdue)


def _limited(problem: Problem, limits: Sequence[tuple[int, int, int]], demands: Demands) -> bool:
    """Return whether a limit would be exceeded if all its jobs ran at once: a job over a limit is passed over, not blocked."""
    if not limits:
        return False
    used, jobs = np.zeros((len(limits), 3), np.int64), demands.limits.places
    np.add.at(used, demands.limits.items, np.stack([np.ones(len(jobs), np.int64), problem.procs[jobs], demands.second[jobs]], axis=1))
    return bool((used > np.array(limits, np.int64).reshape(-1, 3)).any())
