"""The compiled engine for a single-pool machine: it checks the problem and makes the arrays of the loop."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from walltime.engine.interface.choice import check_support, features_of
from walltime.engine.interface.compiled import CompiledEngine, lower_prediction
from walltime.engine.interface.load import PASS_OF, load, loop_name
from walltime.engine.interface.orders import lower_orders, point_to_orders
from walltime.engine.kernel.dynamics import EFFECT
from walltime.engine.kernel.history import bind
from walltime.engine.kernel.memory import FRESH, HOLE, ITEM, JOB, NEVER, OBJECTIVES, RULES, RUN, Memory, new_memory, record, records
from walltime.engine.kernel.number import index
from walltime.engine.kernel.number.conservative import KeptPlan
from walltime.engine.kernel.number.easy import Head
from walltime.engine.kernel.number.particular import Particular, set_sizes
from walltime.engine.machines import NodeRanges
from walltime.engine.problem import Observation, Outcome, Problem
from walltime.errors import WorkloadError
from walltime.policy import Wfp
from walltime.policy.later import first_random

Array = np.ndarray


MOST_BYTES = 4 * 2**30
"""Largest memory for sets of particular processors, bytes."""


def _check_sets(rules: Any, count: int) -> None:
    """Raise WorkloadError if sets of particular processors need too much memory."""
    words, slots = set_sizes(rules, count)
    if (need := 8 * words * (slots + count)) > MOST_BYTES:
        raise WorkloadError(
            f"{count:,} jobs on {int(rules.procs):,} particular processors need {need / 2**30:.1f} GiB; {MOST_BYTES >> 30} are allowed; "
            "simulate fewer jobs, or count processors",
            "machine_too_large",
        )


class NumberEngine(CompiledEngine):
    """A simulation on a single-pool machine that can be run as a whole or in pieces.

    Raises PolicyError for a policy that only the reference engine supports, or an order that cannot be compiled; WorkloadError for a
    machine with too many processors; ValueError if the arrays do not match.
    """

    machine = "number"

    def __init__(self, problem: Problem):
        if not isinstance(problem.machine, int) or problem.machine >= HOLE:
            raise WorkloadError(f"a simulated machine can have {HOLE - 1} processors at most, not {problem.machine}", "machine_too_large")
        for name in ("submit", "runtime", "planned", "procs"):
            if (array := getattr(problem, name)).dtype != np.int64 or array.shape != (len(problem),):
                raise ValueError(f"{name} must be an int64 array with one entry per job ({len(problem)})")
        super().__init__(problem)
        jobs = records(JOB, len(problem))
        rules = self._lower(problem)
        jobs.submit, jobs.runtime, jobs.planned, jobs.procs = problem.submit, problem.runtime, problem.planned, problem.procs
        none = np.zeros(0, np.int64)
        after, think = (none, none) if problem.after is None or problem.think is None else (problem.after, problem.think)
        passes = problem.policy.passes
        self._notes_reservations = bool(rules.mode == FRESH) and not problem.policy.reservations.kept  # in each pass
        if passes.kind == "particular":
            _check_sets(rules, len(jobs))
        logged, reservations = problem.logged or self._histories != [], PASS_OF[passes.kind].new(rules, passes, len(jobs))
        self._memory: Memory = new_memory(jobs, rules, after, think, reservations, logged, self._prediction)
        self.loop_name = loop_name(self._memory)
        self._bind()

    @property
    def _histories(self) -> list[Any]:
        """Return the records of orders that read the history, the longest wait, or the state of queue and machine."""
        return [own for order in self._kept for own in order.read.values()]

    def _bind(self) -> None:
        for own in self._histories:
            bind(own, self._memory)

    def copy(self) -> NumberEngine:
        """Return another simulation that continues from here."""
        other = super().copy()
        if self._histories:
            first, second = self._kept
            own = first.copied()
            other._kept = own, own if second is first else second.copied()
            point_to_orders(other._memory.rules, other._kept)
            other._bind()
        return other

    def compile(self) -> None:
        """Compile the code that this problem needs, or load it from disk."""
        super().compile()
        if self.problem.logged:
            load("dynamics")

    def _queue(self) -> Array:
        state = self._memory.state
        return self._memory.queue["job"][int(state["queue_first"]) : int(state["queue_last"])].astype(np.int64)

    def observe(self) -> Observation | None:
        """Handle the next event and return the result of the pass after it; None if there was none. Starts must be logged."""
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
        """Return the reservations of these waiting jobs, and under EASY the extra processors."""
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
            noted = zip(waiting.tolist(), own.reserved[waiting].tolist(), strict=True)
            return {job: start for job, start in noted if start >= 0}, None
        if self.problem.policy.reservations.of == "head" and state.blocked >= 0:
            return {int(state.blocked): int(state.shadow)}, int(state.extra)
        return {}, None

    @property
    def order_length(self) -> Array:
        """Return the length of each job for the queue's order, s."""
        return self._memory.jobs.order_length

    def outcome(self) -> Outcome:
        """Return the outcome, once the simulation is done."""
        if not self.problem.logged:
            own = self._memory.reservations
            slots = NodeRanges.of_sets(own.held) if isinstance(own, Particular) else None
            return self._outcome(self.problem.runtime, slots=slots, seconds={"simulate": self.seconds})
        jobs, notes = self._memory.jobs, self._memory.machine.notes
        effects, procs = records(EFFECT, len(jobs)), self.problem.machine_procs
        replay, room = load("dynamics"), (records(ITEM, len(jobs)), records(RUN, min(len(jobs), 2 * procs) + 1))
        begin = time.perf_counter()
        replay(np.argsort(jobs.arrival), jobs, procs, notes, *room, effects)
        seconds = {"simulate": self.seconds, "dynamics": time.perf_counter() - begin}
        delay = np.where(effects.suffered > 0, self.start - effects.initial_shadow, 0)
        wild, shortest, alone = (effects[name].astype(bool) for name in ("wild", "shortest", "alone"))
        columns = (wild, np.array(effects.suffered), delay, shortest, alone, np.ascontiguousarray(notes.job))
        return self._outcome(self.problem.runtime, effects=columns, seconds=seconds)

    def _lower(self, problem: Problem) -> Any:
        """Return the policy as a record of numbers."""
        policy, passes = problem.policy, problem.policy.passes
        check_support(policy, "number", features_of(problem), "kernel")
        depth = NEVER if passes.depth is None else min(passes.depth, NEVER)
        rules = record(
            RULES,
            mode=PASS_OF[passes.kind].mode,
            procs=problem.machine_procs,
            depth=depth,
            backfill=int(passes.backfills),
            sequential=int(problem.coincident == "sequential"),
            quiet_expiry=int(problem.expiry == "silent"),
            quiet_arrivals=int(not passes.every_arrival),
            long_queue=index.LONG if passes.backfills else NEVER,  # without backfilling there is nothing to search
            short_queue=index.SHORT,
            order_threshold=float(policy.order.threshold if isinstance(policy.order, Wfp) else 0),
            objective=OBJECTIVES[passes.objective],
            random=first_random(passes) if passes.iterations else 0,
            overtakes=NEVER if passes.overtakes is None else min(passes.overtakes, NEVER),
            **{
                name: getattr(passes, name)
                for name in ("window", "ahead", "omega", "factor", "adapts", "head_runtime_factor", "iterations", "power")
            },
        )
        self._kept = lower_orders(problem)
        point_to_orders(rules, self._kept)
        lower_prediction(rules, self._prediction, problem.tick)
        return rules
