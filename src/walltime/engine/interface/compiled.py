"""The common part of the compiled engines for all kinds of machines: running a loop in pieces, and returning its outcome."""

import copy
import time
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from walltime.compiled.prediction_memory import NEVER_CORRECTED, PredictionRules
from walltime.engine.interface.agenda import Agenda
from walltime.engine.interface.load import load, load_predictor
from walltime.engine.interface.orders import LoweredOrder
from walltime.engine.kernel.memory import DONE, NEVER, REACHED, STUCK, records
from walltime.engine.problem import Outcome, Problem, State
from walltime.errors import EngineError

Array = np.ndarray
PIECE = 10_000_000
"""Steps over the queue or the profile in one call of the kernel: 10 to 50 ms, so that progress and Ctrl-C respond quickly."""


class CompiledEngine:
    """A simulation on arrays: the loop works on `_memory`, a tuple with the records `state` and `jobs`.

    These columns have one entry per job and may be read at any time:

    * `start`: int64 s, -1 while the job waits
    * `submit`: the beginning of its wait, int64 s; it depends on the schedule if the job waits for others
    * `kind`: uint8, 0 immediate, 1 reserved, 2 backfilled
    * `reserved_start`: the start of its first reservation, int64 s, -1 without one
    """

    name = "kernel"
    machine: str
    """Kind of the machine: `number`, `pools` or `nodes`."""
    loop_name: str
    """Name of the loop in load.py."""
    agenda: Agenda | None = None
    """Coming changes of outages and windows; only on a machine of several pools."""
    _idle: tuple[int, int] | None = None
    """Number of jobs that had arrived and started when the changes were last extended with nothing but windows ahead."""
    _memory: Any
    _kept: tuple[LoweredOrder, ...] = ()
    """Orders of the queue and of backfilling; empty for Slurm and OAR, which have orders of their own."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._prediction: PredictionRules | None = None if problem.prediction is None else problem.prediction.compiled()
        self._loop: Callable[..., int] | None = None
        self.seconds = 0.0
        """Time spent in the kernel, s, without compilation."""
        self.reached = False
        """Whether the last piece ended because the next event is later than the requested time."""
        self.done = False
        """Whether every job has started and ended."""

    def run(self, progress: Callable[[int], None] | None = None) -> None:
        """Run to the end, calling `progress` with the number of started jobs; raise EngineError if nothing will start some jobs."""
        while not self.advance():
            if progress is not None:
                progress(self.started)

    def compile(self) -> None:
        """Compile the loop for this kind of policy, or load it from disk; otherwise the first call of `advance` does it."""
        if self._loop is None:
            self._loop = load(self.loop_name)

    def _why_stuck(self) -> str:
        return f"{len(self.problem) - self.started} jobs wait for processors that no running job will free"

    def _flag(self, name: str, absent: bool) -> bool:
        """Return a flag of a loop on nodes, or `absent` for other loops.

        `begun`: whether the initially running jobs have been placed; `between`: whether the events of this instant still lack their pass.
        """
        state = self._memory.state
        return bool(state[name]) if self.machine == "nodes" and name in state.dtype.names else absent

    def _queue(self) -> Array:
        """Return the jobs in the queue, including jobs that have started but not yet been removed from it."""
        raise NotImplementedError

    def _waiting(self) -> Array:
        """Return the waiting jobs in order of arrival."""
        jobs, queue = self._memory.jobs, self._queue()
        waiting = queue[jobs["start"][queue] < 0]
        return np.asarray(waiting[np.argsort(jobs["arrival"][waiting])])

    def _running(self) -> tuple[Array, Array]:
        """Return the running jobs and their expected ends, s."""
        memory = self._memory
        running = (memory.use if self.machine == "nodes" else memory.machine).running[: int(memory.state["running"])]
        return running["job"], running["expected"]

    def advance(self, budget: int = PIECE) -> bool:
        """Run one piece, until about `budget` steps have been taken; return whether the simulation is done."""
        if self.agenda is None:
            return self._piece(budget)
        wanted = int(self._memory.state["until"])
        try:
            while True:
                changes, known_until = self.agenda.known  # a copy of this simulation may have extended them
                if self._memory.machine.changes is not changes:
                    self._memory = self._memory._replace(machine=self._memory.machine._replace(changes=changes))
                until = self._memory.state["until"] = min(wanted, known_until)
                done = self._piece(budget)
                if done or not self.reached or until == wanted or self._waits_for_ever(self.agenda.quiet_from < known_until, wanted):
                    return done
                self.agenda.extend(known_until)
        finally:
            self._memory.state["until"] = wanted

    def _waits_for_ever(self, settled: bool, wanted: int) -> bool:
        """Return whether no job can start before others arrive, because none has started although all windows were open.

        Raises EngineError if no job will arrive.
        """
        state, before = self._memory.state, self._idle
        coming = state["next_coming"] < len(self._memory.machine.coming) or state["later"] > 0
        quiet = not coming and state["events"] == 0 and settled
        self._idle = (int(state["arrivals"]), int(state["started"])) if quiet else None
        stuck = quiet and self._idle == before
        if stuck and wanted == NEVER:
            raise EngineError(self._why_stuck(), "endless_wait")
        return stuck

    def _piece(self, budget: int) -> bool:
        self.compile()
        assert self._loop is not None
        begin = time.perf_counter()
        reason = self._loop(*self._memory, budget)
        self.seconds += time.perf_counter() - begin
        for order in self._kept:
            order.check()
        self.reached = reason == REACHED
        if reason == STUCK:
            raise EngineError(self._why_stuck(), "endless_wait")
        self.done = reason == DONE
        return self.done

    def await_start(self, job: int) -> None:
        """End the current piece as soon as this job has started."""
        self._memory.state["awaited"] = job + 1

    def step(self) -> bool:
        """Handle the next event and make the pass after it; return False if there was none."""
        went = not self.advance(1)
        while self._flag("between", False):
            self.advance(1)
        return went

    @property
    def now(self) -> int:
        """Return the time of the last event, s."""
        return int(self._memory.state["now"])

    @property
    def started(self) -> int:
        """Return the number of jobs that have started so far."""
        return int(self._memory.state.started)

    def run_until(self, time: int) -> bool:
        """Handle all events up to this time, s; return whether the simulation is done."""
        self._memory.state["until"] = time
        try:
            while not (done := self.advance()):
                if self.reached:
                    break
        finally:
            self._memory.state["until"] = NEVER
        return done

    def state(self) -> State:
        """Return the state of the scheduler: its queue and machine."""
        if not self._flag("begun", True):
            self.advance(0)  # initially running jobs get their processors
        queue, (job, expected) = self._waiting(), self._running()
        jobs, by_end = self._memory.jobs, np.argsort(expected, kind="stable")
        job = job[by_end]
        planned = jobs["own_length" if "own_length" in jobs.dtype.names else "planned"][queue]
        free = self.problem.machine_procs - int(self.problem.procs[job].sum())
        return State(self.now, free, queue, planned, jobs["reserved_start"][queue], job, expected[by_end])

    def copy(self) -> Self:
        """Return another simulation that continues from here, independent of this one, with copies of all arrays."""
        if not self._flag("begun", True):
            self.advance(0)
        other = copy.copy(self)
        other._memory = copied(self._memory)
        return other

    def _column(self, name: str, kind: Any = np.int64) -> Array:
        return np.ascontiguousarray(self._memory.jobs[name], kind)

    def start_of(self, job: int) -> int:
        """Return the start of a job, s; -1 while it waits."""
        return int(self._memory.jobs.start[job])

    start = property(lambda self: self._column("start"))
    submit = property(lambda self: self._column("submit"))
    reserved_start = property(lambda self: self._column("reserved_start"))
    kind = property(lambda self: self._column("kind", np.uint8))

    def _outcome(self, runtime: Array, **more: Any) -> Outcome:
        """Return the outcome, with the columns that only this kind of machine has."""
        if (prediction := self._prediction) is not None:
            found = self._memory.machine.predicting
            basis = prediction.basis if prediction.compiled is None else found.learning.jobs.basis.astype(np.uint8)
            more |= {"predicted": found.predicted, "basis": basis, "corrections": found.corrections}
        columns = {name: getattr(self, name) for name in ("start", "submit", "kind", "reserved_start")}
        return Outcome(engine=self.name, machine=self.machine, runtime=runtime, **columns, **more)


def new_jobs(problem: Problem, dtype: Any) -> Any:
    """Return records of jobs that have not started; `after`: the job that each one follows, -1 for none; `think`: its think time, s."""
    jobs = records(dtype, len(problem))
    for name in ("submit", "runtime", "planned"):
        jobs[name] = getattr(problem, name)
    jobs.after = -1 if problem.after is None else problem.after
    jobs.think = 0 if problem.think is None else problem.think
    jobs.start = jobs.reserved_start = -1
    return jobs


def lower_prediction(rules: Any, prediction: PredictionRules | None, tick: int) -> None:
    """Store in a record of rules how predictions are used, and the addresses of the predictor's compiled functions."""
    rules.tick = tick
    if prediction is None:
        return
    rules.predicts = 1
    for name, address in load_predictor(prediction.compiled).items():
        rules[name] = address
    rules.predict_order, rules.predict_own, rules.predict_running = prediction.predictions_for
    rules.predict_again = prediction.again
    rules.correction = prediction.correction if prediction.predictions_for[2] else NEVER_CORRECTED


def copied(value: Any) -> Any:
    """Return a deep copy of a tuple of arrays, records and additional such tuples."""
    if isinstance(value, tuple):
        return type(value)(*map(copied, value))
    if value is None or value.ndim == 0:
        return None if value is None else value.copy()
    other, raw = np.empty(value.shape, value.dtype), np.dtype((np.void, value.dtype.itemsize))
    other.view(raw)[...] = value.view(np.ndarray).view(raw)  # NumPy copies records field by field, which takes far longer
    return other.view(type(value))
