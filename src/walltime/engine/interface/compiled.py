"""What compiled engines have in common, whatever machine they simulate: running in bounded pieces, and the outcome."""

from __future__ import annotations

import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from walltime.engine.interface.load import load, load_predictor
from walltime.engine.kernel.memory import DONE, REACHED, STUCK
from walltime.engine.kernel.prediction_memory import NEVER_CORRECTED, Predicting, Prediction
from walltime.engine.problem import Outcome, Problem, State
from walltime.errors import EngineError, PolicyError

__all__ = ["PIECE", "CompiledEngine", "compiled_prediction", "lower_prediction"]

Array = np.ndarray
PIECE = 10_000_000
"""Steps over the queue or the profile in one call of the kernel: 10 to 50 ms, so that progress and Ctrl-C respond quickly."""


class CompiledEngine(ABC):
    """A simulation on arrays: `_memory`, a tuple with the records `state` and `jobs`, is what the loop works on.

    Columns have one entry per job and may be read at any time. `start`: int64 s, -1 while it waits. `submit`: int64 s, from when it waits;
    where jobs wait for others, it depends on the schedule. `kind`: uint8, 0 immediate, 1 reserved, 2 backfilled. `reserved_start`: int64
    s, that of its first reservation, -1 without one. With predictions, `predicted`: int64 s, at its submission or when it was last
    predicted again; `basis`: uint8, 0 nothing, 1 jobs of its kind, 2 all jobs; `corrections`: int64, while it ran.
    """

    name = "kernel"
    machine: str
    """Kind of the machine: `number`, `pools` or `nodes`."""
    _memory: Any

    def __init__(self, prediction: Prediction | None) -> None:
        self._prediction = prediction
        self._loop: Callable[..., int] | None = None
        self.seconds = 0.0
        """Time spent in the kernel, without compilation."""
        self.reached = False
        """Whether the last piece ended because the next event is later than it was to go."""
        self.done = False
        """Whether every job has started and ended."""

    @abstractmethod
    def _name(self) -> str:
        """Name of the loop in load.py."""

    @abstractmethod
    def _why_stuck(self) -> str:
        """Who waits, and why nothing will start them."""

    def run(self, progress: Callable[[int], None] | None = None) -> None:
        """Run to the end; `progress` is called from time to time with the number of jobs started so far.

        Raises EngineError if jobs are left that nothing will start.
        """
        while not self.advance():
            if progress is not None:
                progress(self.started)

    def compile(self) -> None:
        """Compile the loop for this kind of policy, or load it from disk; otherwise the first call of `advance` does it."""
        if self._loop is None:
            self._loop = load(self._name())

    def advance(self, budget: int = PIECE) -> bool:
        """Run one piece, until about `budget` steps have been taken; returns whether the simulation is done."""
        self.compile()
        assert self._loop is not None
        begin = time.perf_counter()
        reason = self._loop(*self._memory, budget)
        self.seconds += time.perf_counter() - begin
        self.reached = reason == REACHED
        if reason == STUCK:
            raise EngineError(self._why_stuck())
        self.done = reason == DONE
        return self.done

    def step(self) -> bool:
        """Handle the next event and make the pass after it; False if there was none."""
        return not self.advance(1)

    @property
    def now(self) -> int:
        """Time of the last event, s."""
        return int(self._memory.state["now"])

    @property
    def started(self) -> int:
        """Jobs that have started so far."""
        return int(self._memory.state.started)

    def run_until(self, time: int) -> bool:
        """Handle all events up to this time, s; returns whether the simulation is done."""
        raise self._cannot("be stopped at a time")

    def state(self) -> State:
        """What the scheduler knows now."""
        raise self._cannot("be looked at while it runs")

    def _cannot(self, what: str) -> PolicyError:
        return PolicyError(f"a simulation on a machine of {self.machine} cannot {what} yet")

    log: Any = None
    """The jobs and the rules for a `Branch`, where there can be one."""

    def branch(self) -> Any:
        """A simulation that goes on from here, of which copies cost least."""
        return self

    def following(self, _other: Any) -> Any:
        """This simulation, gone on to where another one is, if that costs little; else None."""
        return None

    def with_job(self, place: int, submit: int, runtime: int, believed: int, procs: int) -> Any:
        """A simulation that goes on from here, with a further job, where there is a `log`: see `Branch.with_job`."""
        return self.branch().with_job(place, submit, runtime, believed, procs)

    def copy(self) -> Self:
        """Another simulation that goes on from here, independent of this one; takes as long as copying all arrays."""
        other = copy.copy(self)
        other._memory = copied(self._memory)
        return other

    def _column(self, name: str) -> Array:
        return np.ascontiguousarray(self._memory.jobs[name])

    def start_of(self, job: int) -> int:
        """Start of a job, s; -1 while it waits."""
        return int(self._memory.jobs.start[job])

    @property
    def start(self) -> Array:
        """Start of each job."""
        return self._column("start")

    @property
    def submit(self) -> Array:
        """From when each job waits."""
        return self._column("submit")

    @property
    def reserved_start(self) -> Array:
        """Start of each job's first reservation."""
        return self._column("reserved_start")

    @property
    def kind(self) -> Array:
        """How each job started."""
        return self._column("kind").astype(np.uint8)

    @property
    def _predicting(self) -> Predicting:
        predicting: Predicting | None = self._memory.machine.predicting
        if predicting is None:
            raise ValueError("no runtime was predicted; make the simulation with a prediction")
        return predicting

    @property
    def predicted(self) -> Array:
        """Predicted runtime of each job."""
        return self._predicting.predicted

    @property
    def basis(self) -> Array:
        """Basis of each prediction."""
        if self._prediction is not None and self._prediction.compiled is None:
            return self._prediction.basis
        return self._predicting.learning.jobs.basis.astype(np.uint8)

    @property
    def corrections(self) -> Array:
        """How often the prediction of each job was corrected."""
        return self._predicting.corrections

    def _outcome(self, runtime: Array, **more: Any) -> Outcome:
        """What has become of the jobs, with what only this kind of machine tells."""
        if self._prediction is not None:
            more |= {name: getattr(self, name) for name in ("predicted", "basis", "corrections")}
        columns = {name: getattr(self, name) for name in ("start", "submit", "kind", "reserved_start")}
        return Outcome(engine=self.name, machine=self.machine, runtime=runtime, **columns, **more)


def lower_prediction(rules: Any, prediction: Prediction | None) -> None:
    """How a prediction is used, as numbers in a record of the rules, with the addresses of the compiled predictor."""
    if prediction is None:
        return
    for name, address in load_predictor(prediction.compiled).items():
        rules[name] = address
    rules.believe_order, rules.believe_own, rules.believe_running = prediction.believe
    rules.predict_again = prediction.again
    rules.correction = prediction.correction if prediction.believe[2] else NEVER_CORRECTED


def copied(value: Any) -> Any:
    """A tuple of arrays, records and such tuples, with copies of all arrays and records."""
    if isinstance(value, tuple):
        return type(value)(*map(copied, value))
    return None if value is None else value.copy()


def compiled_prediction(problem: Problem) -> Prediction | None:
    """The problem's prediction as the kernels take it."""
    found: Prediction | None = None if problem.prediction is None else problem.prediction.compiled()
    return found
