"""The interface of the compiled engine: checks the arguments, makes the arrays, runs the loop in bounded pieces."""

from __future__ import annotations

import copy
import time
from typing import Any

import numpy as np

from walltime.engine.interface.branch import Branch, Log
from walltime.engine.interface.load import load, loop_name
from walltime.engine.interface.ordering import lower_order
from walltime.engine.interface.pieces import Pieces, lower_prediction
from walltime.engine.kernel.dynamics import Effects, new_effects, new_scratch
from walltime.engine.kernel.memory import (
    BY_FACTOR,
    BY_QUEUE,
    HEAD,
    HOLE,
    JOB,
    MODES,
    NEVER,
    OBJECTIVES,
    RULES,
    Memory,
    new_memory,
    record,
    records,
    restored,
)
from walltime.engine.kernel.number import index
from walltime.engine.kernel.prediction_memory import Prediction
from walltime.errors import PolicyError, WorkloadError
from walltime.policy import MultiQueue, Policy, Relaxed, Selective, Slack, Wfp
from walltime.policy.base import needs_nodes
from walltime.policy.log_view import LogView

Array = np.ndarray
COINCIDENT = ("batch", "sequential")


class Simulation(Pieces):
    """A simulation that can be run as a whole or in pieces.

    `submit, runtime, believed, procs`: int64, one entry per job, in order of arrival; times in seconds. `runtime` is the real
    runtime, `believed` the one that the scheduler plans with. `coincident`: how simultaneous events are handled, `batch`
    or `sequential` (see `walltime.simulate`). `expiry`: whether the expiry of a prediction brings a `pass` or is `silent`. With
    feedback, `after` and `think` (int64) give for each job the index of an earlier job (-1 for none) and the seconds after its end at
    which this job is submitted. After `run` the results are `start` and `submit` (int64 s), `kind` (uint8) and `reserved_start` (int64
    s, -1 for none). With `log`, the starts are recorded, and `dynamics` computes the effects of backfilling. With a `prediction`, the
    runtimes are predicted, and the results include
    `predicted` (int64 s), `basis` (uint8) and `corrections` (int64). `known`: the columns and the calendar that custom orders
    read; missing columns are -1 everywhere. Without it, requests equal the believed runtimes.

    Raises PolicyError for a policy that only the reference engine supports, an order that cannot be compiled, or an unknown
    `coincident`; ValueError if the arrays do not match.
    """

    def __init__(
        self,
        submit: Array,
        runtime: Array,
        believed: Array,
        procs: Array,
        machine_procs: int,
        policy: Policy,
        coincident: str = "batch",
        after: Array | None = None,
        think: Array | None = None,
        log: bool = False,
        prediction: Prediction | None = None,
        known: LogView | None = None,
        expiry: str = "pass",
    ):
        arrays = {"submit": submit, "runtime": runtime, "believed": believed, "procs": procs}
        if after is not None and think is not None:
            arrays |= {"after": after, "think": think}
        for name, array in arrays.items():
            self._check(name, array, len(submit))
        if coincident not in COINCIDENT:
            raise PolicyError(f"unknown way to handle simultaneous events {coincident!r}; known are {', '.join(COINCIDENT)}")
        if after is not None and (after >= np.arange(len(after))).any():
            raise ValueError("a job can only be submitted after an earlier one")
        if machine_procs >= HOLE:
            raise WorkloadError(f"a simulated machine can have {HOLE - 1} processors at most, not {machine_procs}")
        self._submit = np.asarray(submit)
        self._columns = (self._submit, runtime, believed, procs)
        self._policy, self._known, self._prediction = policy, known or LogView({"requested": believed}), prediction
        self._thinking = 0 if think is None else int(np.maximum(think, 0).sum())
        self._working = int(np.maximum(runtime, believed).sum())
        rules = self._lower(policy, machine_procs, coincident, expiry)
        jobs = records(JOB, len(submit))
        jobs.submit, jobs.runtime, jobs.believed, jobs.procs = submit, runtime, believed, procs
        nobody = np.zeros(0, np.int64)
        super().__init__(prediction)
        self._sizes = policy.limits if isinstance(policy, MultiQueue) else (), policy.recent if isinstance(policy, Slack) else 0
        links = arrays.get("after", nobody), arrays.get("think", nobody)
        self._memory: Memory = new_memory(jobs, rules, *links, log, prediction, *self._sizes)
        self.seconds_dynamics = 0.0
        """Time spent on the log of the starts by `dynamics`, without compilation."""

    @staticmethod
    def _check(name: str, array: Array, jobs: int) -> None:
        if array.dtype != np.int64 or array.shape != (jobs,):
            raise ValueError(f"{name} must be an int64 array with one entry per job ({jobs})")

    def restart(self, runtime: Array, believed: Array, prediction: Prediction | None = None, known: LogView | None = None) -> None:
        """Restart with other runtimes and estimates (int64 s, one entry per job), in the same memory.

        The prediction must be like the previous one, except for the arrays; None for the same, which must not depend on the
        runtimes. `known`: if the orders read other data than before.
        """
        self._check("runtime", runtime, len(self._submit))
        self._check("believed", believed, len(self._submit))
        self._prediction = prediction or self._prediction
        jobs = self._memory.jobs
        jobs.submit, jobs.runtime, jobs.believed = self._submit, runtime, believed
        self._columns = (self._submit, runtime, believed, jobs.procs)
        self._known = known or self._known
        self._working = int(np.maximum(runtime, believed).sum())
        self._lower_orders(self._memory.rules)
        self._memory = restored(self._memory, self._prediction)
        self.seconds = 0.0

    def _name(self) -> str:
        return loop_name(self._memory)

    def _why_stuck(self) -> str:
        return f"{len(self._submit) - self.started} jobs wait for processors that nobody will free"

    def run_until(self, time: int) -> bool:
        """Handle all events up to this time, s; returns whether the simulation is done."""
        state = self._memory.state
        state.until = time
        try:
            while not (done := self.advance()):
                if self.reached:
                    break
        finally:
            state.until = NEVER
        return done

    def branch(self) -> Simulation | Branch:
        """A simulation that goes on from here, and is copied in microseconds; this one itself where there is no `log`."""
        log = self.log
        return self if log is None else Branch(log, self)

    def with_job(self, place: int, submit: int, runtime: int, believed: int, procs: int) -> Branch:
        """A branch with a further job: see `Branch.with_job`."""
        branch = self.branch()
        assert isinstance(branch, Branch), "there is a log"
        return branch.with_job(place, submit, runtime, believed, procs)

    def copy(self) -> Simulation:
        """Another simulation that goes on from here, independent of this one; takes as long as copying all arrays."""
        other = copy.copy(self)
        other._memory = _copied(self._memory)
        return other

    @property
    def log(self) -> Log | None:
        """The jobs and the rules for a `Branch`; None with predictions, whose memory is of all jobs, and with feedback."""
        if self._memory.machine.predicting is not None or len(self._memory.machine.waits):
            return None
        return Log(*self._columns, self._memory.rules, self._kept, *self._sizes, {})

    first: int = 0
    """The first job that the loop knows: all of them, other than in a `Branch`."""
    past: tuple[Array, ...] = ()
    """The records of those before it."""

    @property
    def memory(self) -> Memory:
        """What the loop works on, to be looked at between two pieces."""
        return self._memory

    @property
    def rules(self) -> Any:
        """The policy, lowered to numbers: a record of `memory.RULES`."""
        return self._memory.rules

    def dynamics(self) -> Effects:
        """The effects of backfilling on each job, from the log of a finished simulation.

        Arrays with one entry per job: `shortest`, `alone`, `wild` (bool), `suffered`, `initial_shadow` (int64; s, -1 for
        none); see `walltime.metrics.Dynamics` for their meaning. Raises ValueError if nothing was logged.
        """
        jobs, notes = self._memory.jobs, self._memory.machine.notes
        if len(notes) != len(jobs):
            raise ValueError("there is no log of the starts; make the simulation with log=True")
        effects = new_effects(len(jobs))
        in_order = np.empty(len(jobs), np.int64)
        in_order[jobs.arrival] = np.arange(len(jobs))
        procs = int(self._memory.rules.procs)
        scratch = new_scratch(len(jobs), procs)
        replay = load("dynamics")
        begin = time.perf_counter()
        replay(in_order, jobs, procs, notes, scratch, effects)
        self.seconds_dynamics = time.perf_counter() - begin
        return effects

    @property
    def sequence(self) -> Array:
        """The jobs in the order in which they started, int64; empty if nothing was logged."""
        return np.ascontiguousarray(self._memory.machine.notes.job)

    def _lower(self, policy: Policy, machine_procs: int, coincident: str, expiry: str) -> Any:
        """The policy as a record of numbers."""
        passes = policy.passes
        if passes is None:
            raise PolicyError(f"{policy.label} runs on the reference engine only")
        if passes.kind not in MODES:
            raise needs_nodes(policy)
        mode = MODES[passes.kind]
        depth = NEVER if passes.depth is None else min(passes.depth, NEVER)
        rules = record(
            RULES,
            mode=mode,
            procs=int(machine_procs),
            depth=depth,
            backfill=int(passes.backfills),
            window=passes.window,
            sequential=int(coincident == "sequential"),
            quiet_expiry=int(expiry == "silent"),
            quiet_arrivals=int(not passes.every_arrival),
            long_queue=index.LONG if passes.backfills else NEVER,  # who lets nobody overtake need not search
            short_queue=index.SHORT,
            order_threshold=_threshold(policy, mode),
            ahead=passes.ahead,
            objective=OBJECTIVES[passes.objective],
        )
        self._lower_orders(rules)
        lower_prediction(rules, self._prediction)
        match policy:
            case Relaxed():
                rules.omega = policy.omega
            case Selective(threshold="adaptive"):
                rules.selects, rules.adapts = BY_FACTOR, 1
            case Selective():
                rules.selects, rules.factor = BY_FACTOR, policy.threshold
            case Slack():
                rules.factor = policy.factor
            case MultiQueue():
                rules.selects = BY_QUEUE
        return rules

    def _lower_orders(self, rules: Any) -> None:
        """The orders of the queue and of backfilling, for these jobs."""
        longest = self._working + self._thinking  # until the last end at most: one job at a time, as long as it runs or is planned
        order, own = self._policy.order, getattr(self._policy, "backfill_order", None)
        first = second = lower_order(order, self._known, self._submit, longest)
        if own is not None and own != order:
            second = lower_order(own, self._known, self._submit, longest)
        self._kept = (first, second)  # the kernel has no more than their addresses
        rules.order, rules.order_parameter, rules.order_starvation = first.kind, first.parameter, first.starvation
        rules.order_reads_time, rules.order_grows = first.reads_time, first.grows
        rules.backfill_order, rules.backfill_parameter, rules.backfill_starvation = second.kind, second.parameter, second.starvation


def _copied(value: Any) -> Any:
    """A tuple of arrays, records and such tuples, with copies of all arrays and records."""
    if isinstance(value, tuple):
        return type(value)(*map(_copied, value))
    return None if value is None else value.copy()


def _threshold(policy: Policy, mode: int) -> float:
    """The threshold of the queue order."""
    threshold = policy.order.threshold if isinstance(policy.order, Wfp) else 0.0
    if threshold and mode != HEAD:
        raise PolicyError(f"the threshold of {policy.order.name} is for policies with at most one reservation, not for {policy.name}")
    return float(threshold)
