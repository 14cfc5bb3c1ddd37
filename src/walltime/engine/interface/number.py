"""The compiled engine for a machine that is a number of processors: checks the problem and makes the arrays of the loop."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from walltime.engine.interface.choice import check_support, features_of
from walltime.engine.interface.compiled import (
    CompiledEngine,
    compiled_prediction,
    lower_prediction,
)
from walltime.engine.interface.load import PASS_OF, load, loop_name
from walltime.engine.interface.orders import lower_orders, point_to_orders
from walltime.engine.kernel.dynamics import new_effects, new_scratch
from walltime.engine.kernel.history import bind_past
from walltime.engine.kernel.memory import (
    FRESH,
    HOLE,
    JOB,
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
from walltime.engine.kernel.number.conservative import KeptPlan
from walltime.engine.kernel.number.easy import Head
from walltime.engine.kernel.standing import bind_standing
from walltime.engine.problem import Observation, Outcome, Problem
from walltime.errors import PolicyError, WorkloadError
from walltime.policy import Wfp

Array = np.ndarray
COINCIDENT = ("batch", "sequential")


class NumberEngine(CompiledEngine):
    """A simulation on a number of processors that can be run as a whole or in pieces.

    Raises PolicyError for a policy that only the reference engine supports, an order that cannot be compiled, or an unknown way to handle
    simultaneous events; ValueError if the arrays do not match.
    """

    machine = "number"

    def __init__(self, problem: Problem):
        _check(problem)
        super().__init__(compiled_prediction(problem))
        self.problem = problem
        self._columns = (np.asarray(problem.submit), problem.runtime, problem.believed, problem.procs)
        jobs = records(JOB, len(problem))
        rules = self._lower(problem)
        jobs.submit, jobs.runtime, jobs.believed, jobs.procs = self._columns
        nobody = np.zeros(0, np.int64)
        after, think = (nobody, nobody) if problem.after is None or problem.think is None else (problem.after, problem.think)
        passes = problem.policy.passes
        self._notes_reservations = bool(rules.mode == FRESH) and not problem.policy.reservations.kept  # in each pass
        logged, reservations = problem.logged or self._histories != [], PASS_OF[passes.kind].new(rules, passes, len(jobs))
        self._memory: Memory = new_memory(jobs, rules, after, think, reservations, logged, self._prediction)
        self._bind()
        self.seconds_dynamics = 0.0
        """Time spent on the log of the starts, without compilation."""

    def restart(self, problem: Problem) -> None:
        """Restart in the same memory, with other runtimes and estimates, and what else orders and predictors read.

        All else must be as before; a prediction, too, but for its arrays.
        """
        _check(problem)
        self.problem, self._prediction = problem, compiled_prediction(problem)
        jobs = self._memory.jobs
        self._columns = (self._columns[0], problem.runtime, problem.believed, jobs.procs)
        jobs.submit, jobs.runtime, jobs.believed, _ = self._columns
        self._kept = lower_orders(problem)
        point_to_orders(self._memory.rules, self._kept)
        self._memory = restored(self._memory, self._prediction)
        self._bind()
        self.seconds, self.done = 0.0, False

    @property
    def _histories(self) -> list[Any]:
        """The records of orders that ask what users, groups and queues have had, the longest wait, or how queue and machine stand."""
        return [own for order in self._kept for own in (order.history, order.longest, order.standing) if own is not None]

    def _bind(self) -> None:
        for order in self._kept:
            for own in (order.history, order.longest):
                if own is not None:
                    bind_past(own, self._memory.jobs, self._memory.machine.notes, self._memory.state)
            if order.standing is not None:
                bind_standing(order.standing, self._memory)

    def copy(self) -> NumberEngine:
        """Another simulation that goes on from here."""
        other = super().copy()
        if self._histories:
            first, second = self._kept
            own = first.copied()
            other._kept = own, own if second is first else second.copied()
            point_to_orders(other._memory.rules, other._kept)
            other._bind()
        return other

    def compile(self) -> None:
        """Compile what this problem needs, or load it from disk."""
        super().compile()
        if self.problem.logged:
            load("dynamics")

    def _loop_name(self) -> str:
        return loop_name(self._memory)

    def _why_stuck(self) -> str:
        return f"{len(self.problem) - self.started} jobs wait for processors that no running job will free"

    def _waiting(self) -> Array:
        jobs, state = self._memory.jobs, self._memory.state
        queue = self._memory.queue["job"][int(state["queue_first"]) : int(state["queue_last"])].astype(np.int64)
        waiting = queue[jobs["start"][queue] < 0]
        return np.asarray(waiting[np.argsort(jobs["arrival"][waiting])])

    def _running(self) -> tuple[Array, Array]:
        running = self._memory.machine.running[: int(self._memory.state["running"])]
        return running["job"], running["expected"]

    def observe(self) -> Observation | None:
        """Handle the next event and say what the pass after it has left behind; None if there was none. Starts must be logged."""
        state, jobs = self._memory.state, self._memory.jobs
        if self._notes_reservations:
            jobs.reserved_start[self._memory.queue.job[int(state.queue_first) : int(state.queue_last)]] = -1
        before = int(state.started)
        if not self.step():
            return None
        begun = self._memory.machine.notes.job[before : int(state.started)].tolist()
        started = dict(zip(begun, jobs.own_length[begun].tolist(), strict=True)) if begun else {}
        after = self.state()
        return Observation(after, started, *self._reserved(after.queue))

    def _reserved(self, waiting: Array) -> tuple[dict[int, int], int | None]:
        """The reservations of these waiting jobs, and under EASY the extra processors."""
        memory, state = self._memory, self._memory.state
        own: Any = memory.reservations
        if isinstance(own, KeptPlan):
            places = slice(int(state.queue_first), int(state.queue_last))
            reserved = dict(zip(memory.queue.job[places].tolist(), own.plan.waiting[places].start.tolist(), strict=True))
            return reserved, None
        if self._notes_reservations:
            noted = zip(waiting.tolist(), memory.jobs.reserved_start[waiting].tolist(), strict=True)
            return {job: start for job, start in noted if start >= 0}, None
        if not isinstance(own, Head):
            return dict(zip(waiting.tolist(), own.reserved[waiting].tolist(), strict=True)), None
        if self.problem.policy.reservations.of == "head" and state.blocked >= 0:
            return {int(state.blocked): int(state.shadow)}, int(state.extra)
        return {}, None

    @property
    def order_length(self) -> Array:
        """How long the queue's order takes each job to be, s."""
        return self._memory.jobs.order_length

    def outcome(self) -> Outcome:
        """What has become of the jobs, once the simulation is done."""
        effects = self._effects() if self.problem.logged else None
        seconds = {"simulate": self.seconds} | ({} if effects is None else {"dynamics": self.seconds_dynamics})
        return self._outcome(self.problem.runtime, effects=effects, seconds=seconds)

    def _effects(self) -> tuple[Array, ...]:
        """The effects of backfilling on each job, from the log of the starts; see `walltime.metrics.Dynamics`."""
        jobs, notes = self._memory.jobs, self._memory.machine.notes
        effects = new_effects(len(jobs))
        in_order = np.empty(len(jobs), np.int64)
        in_order[jobs.arrival] = np.arange(len(jobs))
        procs = int(self._memory.rules.procs)
        scratch = new_scratch(len(jobs), procs)
        replay = load("dynamics")
        begin = time.perf_counter()
        replay(in_order, jobs, procs, notes, scratch, effects)
        self.seconds_dynamics = time.perf_counter() - begin
        delay = np.where(effects.suffered > 0, self.start - effects.initial_shadow, 0)
        return effects.wild, effects.suffered, delay, effects.shortest, effects.alone, np.ascontiguousarray(notes.job)

    def _lower(self, problem: Problem) -> Any:
        """The policy as a record of numbers."""
        policy, passes, procs = problem.policy, problem.policy.passes, problem.machine
        assert isinstance(procs, int)
        check_support(policy, "number", features_of(problem), "kernel")
        depth = NEVER if passes.depth is None else min(passes.depth, NEVER)
        rules = record(
            RULES,
            mode=PASS_OF[passes.kind].mode,
            procs=procs,
            depth=depth,
            backfill=int(passes.backfills),
            window=passes.window,
            sequential=int(problem.coincident == "sequential"),
            quiet_expiry=int(problem.expiry == "silent"),
            quiet_arrivals=int(not passes.every_arrival),
            long_queue=index.LONG if passes.backfills else NEVER,  # who lets nobody overtake need not search
            short_queue=index.SHORT,
            order_threshold=float(policy.order.threshold if isinstance(policy.order, Wfp) else 0),
            ahead=passes.ahead,
            objective=OBJECTIVES[passes.objective],
            omega=passes.omega,
            factor=passes.factor,
            adapts=int(passes.adapts),
            heads_run=passes.head_runtime_factor,
        )
        self._kept = lower_orders(problem)
        point_to_orders(rules, self._kept)
        lower_prediction(rules, self._prediction, problem.tick)
        return rules


def _check(problem: Problem) -> None:
    """Raise for what the loop cannot take."""
    columns = ("submit", "runtime", "believed", "procs", *(("after", "think") if problem.after is not None else ()))
    for name in columns:
        array = getattr(problem, name)
        if array.dtype != np.int64 or array.shape != (len(problem),):
            raise ValueError(f"{name} must be an int64 array with one entry per job ({len(problem)})")
    if problem.coincident not in COINCIDENT:
        raise PolicyError(
            f"unknown way to handle simultaneous events {problem.coincident!r}; known are {', '.join(COINCIDENT)}",
            "unknown_rule_of_coincidence",
        )
    if problem.after is not None and (problem.after >= np.arange(len(problem))).any():
        raise ValueError("a job can only be submitted after an earlier one")
    if not isinstance(problem.machine, int) or problem.machine >= HOLE:
        raise WorkloadError(f"a simulated machine can have {HOLE - 1} processors at most, not {problem.machine}", "machine_too_large")
