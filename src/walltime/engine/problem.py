"""The input of an engine, a `Problem`, and its result, an `Outcome`: the same for all machines, compiled or in plain Python."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from walltime.engine.machines import NEVER, Demands, LostRuns, NodeDemands, Nodes, Pools, Shares
from walltime.errors import WorkloadError
from walltime.policy import Policy
from walltime.policy.log_view import LogView
from walltime.ragged import Ragged as Ragged

Array = np.ndarray


class PredictionSource(Protocol):
    """Predicted runtimes, in the form that each engine needs."""

    @property
    def needs_reference(self) -> str:
        """Return a feature that only the reference engine has, as the beginning of a sentence; empty if there is none."""

    @property
    def may_be_overdue(self) -> bool:
        """Return whether running jobs may outlive their expected ends even if they end within their estimates."""

    def compiled(self) -> Any:
        """Return a `compiled.prediction_memory.PredictionRules`."""

    def plain(self) -> Any:
        """Return a `reference.predictions.Predictions`, with nothing learned yet."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Jobs, a machine and a policy: everything that an engine needs.

    * `submit, runtime, planned, procs`: int64, one entry per job, in order of arrival, times in s; `runtime` is the real runtime,
      `planned` the planned one
    * `after`, `think`: with feedback, for each job the index of an earlier one (-1 for none), and how long after its end it is submitted,
      int64 s
    * `known`: the columns and the calendar that custom orders read; missing columns are -1 everywhere, and without it, requests equal
      planned runtimes
    * `machine`: a number of processors, pools or nodes; `demands`: the jobs' needs on pools or nodes
    * `coincident`, `expiry`: how simultaneous events and expired predictions are handled (`walltime.policy.Dialect`)
    * on nodes, `settings`: the settings of Slurm or OAR; `shares`: Slurm's accounts; `kill`: whether a limit shortened by Slurm's backfill
      kills jobs
    * `tick`: interval between the scheduler's checks, s; jobs arrive, end, and are expected to end only at multiples of it
    * `logged`: whether starts are recorded, to compute effects of backfilling; `starts_only`: whether first reservations may be left out
      where that is faster
    """

    submit: Array
    runtime: Array
    planned: Array
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
        columns = (self.submit, self.runtime, self.planned, self.procs, *links)
        return list(zip(*(np.asarray(column).tolist() for column in columns), strict=True))


class State(NamedTuple):
    """The state of a scheduler at one moment of a simulation; arrays are int64, times s. Jobs keep their indices when others are submitted.

    * `now`: the time; `free`: number of processors on which no job runs, including those in an outage
    * `queue`: the indices of the waiting jobs, in order of arrival; `planned`: their planned runtimes; `reserved`: the starts of their
      first reservations, -1 without one
    * `running`: the indices of the running jobs, in order of their `expected_end`
    """

    now: int
    free: int
    queue: Array
    planned: Array
    reserved: Array
    running: Array
    expected_end: Array


class Observation(NamedTuple):
    """The result of a scheduling pass, and the `state` after it.

    * `started`: the jobs that it started, in this order, with their planned runtimes, s; `reserved`: the reserved starts after it, by job,
      s
    * `extra`: under EASY, the number of processors that the head of the queue will not need when it starts
    """

    state: State
    started: dict[int, int]
    reserved: dict[int, int]
    extra: int | None


@dataclass(frozen=True, eq=False)
class Outcome:
    """The schedule of a problem; arrays have one entry per job.

    * `engine`: `kernel` or `reference`; `machine`: the kind of machine that was simulated, `number`, `pools` or `nodes`
    * `start`; `submit`: the start of the wait; `runtime`; `reserved_start`: the start of the first reservation, -1 without one; all int64 s
    * `kind`: uint8, 0 immediate, 1 reserved, 2 backfilled
    * with predictions: `predicted` (int64 s), `basis` (uint8) and `corrections` (int64)
    * on pools and nodes: `given`: processors and second resource in each pool, int64, shape (jobs, pools, 2)
    * on nodes, or if jobs get particular processors (then these are the nodes): `slots`: job, node, processors and second resource, in
      order of job and node
    * under Slurm: `limit`: the time limit under which each job ran, int64 s; `lost`: the runs that ended early; start and runtime are those
      of the last runs
    * where starts are logged: `effects` of backfilling, in the order of `walltime.metrics.Dynamics`; `seconds`: the time that each part
      took
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
    """Return the error that the initially running jobs, from the one with this index on, need more than the machine has."""
    why = f"the running jobs need more than the machine has; add nodes, or leave out job number {job + 1}"
    error = WorkloadError(why, "overfull_machine")
    error.job = job
    return error


def as_number(problem: Problem) -> Problem | None:
    """Return the problem on a single-pool machine, if that gives the same schedule for these jobs; else None.

    The schedule is the same if all jobs use the same single pool, in one tier, and there are no outages and no windows. In addition, no job
    may wait for others; the initially running jobs must be submitted when they started, before all others, so that they start at once; and
    neither the second resource nor a limit may restrict any job. Under EASY, no job may outlive its expected end: on a machine of pools,
    such a job is expected to end in a second; on a single-pool machine, at its expected end, which has passed.
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
    return bool((problem.runtime > problem.planned).any()) or (problem.prediction is not None and problem.prediction.may_be_overdue)


def _limited(problem: Problem, limits: Sequence[tuple[int, int, int]], demands: Demands) -> bool:
    """Return whether a limit would be exceeded if all its jobs ran at once: a job over a limit is passed over, not blocked."""
    if not limits:
        return False
    used, jobs = np.zeros((len(limits), 3), np.int64), demands.limits.places
    np.add.at(used, demands.limits.items, np.stack([np.ones(len(jobs), np.int64), problem.procs[jobs], demands.second[jobs]], axis=1))
    return bool((used > np.array(limits, np.int64).reshape(-1, 3)).any())
