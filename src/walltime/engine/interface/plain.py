"""The reference engines with the interface of the compiled ones: in plain Python, slow, and independent of the kernels."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from walltime.engine.interface.choice import kind_of
from walltime.engine.machines import NodeRanges, Nodes, OarSettings, Pools
from walltime.engine.problem import Observation, Outcome, Problem, State
from walltime.engine.reference.first_fit import NodesReference
from walltime.engine.reference.number import Reference
from walltime.engine.reference.oar import OarReference
from walltime.engine.reference.pools import ClusterReference
from walltime.engine.reference.slurm import SlurmReference

Array = np.ndarray


class ReferenceEngine:
    """A simulation by the reference for the problem's machine."""

    name = "reference"

    def __init__(self, problem: Problem):
        self.problem, self.done, self.seconds, self.machine = problem, False, 0.0, kind_of(problem)
        on_nodes: Any = OarReference if isinstance(problem.settings, OarSettings) else SlurmReference
        on_nodes = on_nodes if problem.policy.plans_nodes else NodesReference
        kinds: dict[str, Any] = {"number": Reference, "pools": ClusterReference, "nodes": on_nodes}
        self.reference = kinds[self.machine](problem)

    def compile(self) -> None:
        """Do nothing, as there is nothing to compile."""

    def run(self, progress: Callable[[int], None] | None = None) -> None:
        """Run to the end; `progress` is not called. Raises EngineError if jobs would wait forever."""
        begin = time.perf_counter()
        while self.reference.step():
            pass
        self.done = True
        self.seconds += time.perf_counter() - begin

    def step(self) -> bool:
        """Handle the next event and make the pass after it; return False if there was none."""
        went: bool = self.reference.step()
        self.done = self.reference.done
        return went

    def run_until(self, time: int) -> bool:
        """Handle all events up to this time, s; return whether the simulation is done."""
        while self.reference.step(time):
            pass
        self.done = self.reference.done
        return self.done

    @property
    def now(self) -> int:
        """Return the time of the last event, s."""
        return int(self.reference.now)

    @property
    def start(self) -> Array:
        """Return the start of each job, s; -1 while it waits."""
        return self._column("start")

    def start_of(self, job: int) -> int:
        """Return the start of a job, s; -1 while it waits."""
        return int(self.reference.jobs[job].start)

    def advance(self, _budget: int = 0) -> bool:
        """Run to the end; return True, as the simulation is done."""
        self.run()
        return True

    def await_start(self, job: int) -> None:
        """Do nothing: a piece runs to the end."""

    def state(self) -> State:
        """Return the state of the scheduler: its queue and machine."""
        engine = self.reference
        waiting = sorted(engine.waiting, key=lambda job: job.arrival)
        running = sorted(engine.running, key=lambda job: job.expected_end)
        columns = [[getattr(job, name) for job in waiting] for name in ("index", "planned", "reserved_start")]
        columns += [[job.index for job in running], [job.expected_end for job in running]]
        free = self.problem.machine_procs - sum(job.procs for job in running)
        return State(self.now, free, *(np.array(column, np.int64) for column in columns))

    def observe(self) -> Observation | None:
        """Handle the next event and return the result of the pass after it, on one pool; None if there was none."""
        engine = self.reference
        for job in engine.waiting:
            job.reserved_start = -1  # each pass notes the reservations that it makes
        before = set(engine.running)
        if not self.step():
            return None
        begun = sorted((job for job in engine.running if job not in before), key=lambda job: job.ticket)
        return Observation(self.state(), {job.index: job.planned for job in begun}, *engine.reserved())

    @property
    def order_length(self) -> Array:
        """Return the length of each job for the queue's order, s."""
        return self._column("order_length")

    def copy(self) -> ReferenceEngine:
        """Return another simulation that continues from here; it shares the orders and the workload."""
        other, policy = copy.copy(self), self.problem.policy
        shared = [self.problem, getattr(self.reference, "known", None), policy.order, getattr(policy, "backfill_order", None)]
        other.reference = copy.deepcopy(self.reference, {id(one): one for one in shared if one is not None})
        return other

    def outcome(self) -> Outcome:
        """Return the outcome, once the simulation is done."""
        problem, runtime, more = self.problem, self.problem.runtime, dict[str, Any]()
        if problem.prediction is not None:
            more |= {name: self._column(name) for name in ("predicted", "corrections")} | {"basis": self._column("basis", np.uint8)}
        if problem.logged:
            kinds = {"wild": bool, "suffered": np.int64, "delay": np.int64, "shortest": bool, "alone": bool}
            sequence = np.argsort(self._column("ticket"), kind="stable")
            more["effects"] = (*(self._column(name, kind) for name, kind in kinds.items()), sequence)
        if sets := getattr(self.reference, "processors", None):
            job, processor = (np.array(column, np.int64) for column in zip(*((k, one) for k in sets for one in sets[k]), strict=True))
            more["slots"] = NodeRanges(job, processor, np.ones_like(job), np.ones_like(job), np.zeros_like(job))
        if isinstance(problem.machine, Pools):
            given = [job.given for job in self.reference.jobs]
            more["given"] = np.array(given, np.int64).reshape(len(problem), *problem.machine.capacity.shape)
        if isinstance(problem.machine, Nodes):
            runtime, more["slots"] = self._column("runtime"), self.reference.slots
            more["given"] = problem.machine.given(more["slots"], len(problem))
            if problem.shares is not None:
                more |= {"limit": self._column("limit"), "lost": self.reference.lost_runs}
        more |= {name: self._column(name) for name in ("start", "submit", "reserved_start")} | {"kind": self._column("kind", np.uint8)}
        return Outcome(engine=self.name, machine=self.machine, runtime=runtime, **more, seconds={"simulate": self.seconds})

    def _column(self, name: str, kind: Any = np.int64) -> Array:
        return np.array([getattr(job, name) for job in self.reference.jobs], kind)
