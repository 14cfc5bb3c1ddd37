"""The entrance to the compiled engine: checks the arguments, makes the arrays, runs the loop in bounded pieces."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from walltime.engine import index, jit
from walltime.engine.history import NEVER_CORRECTED, NOBODY, Learning, Prediction
from walltime.engine.load import kernel_is_cached as kernel_is_cached
from walltime.engine.load import load_all as load_all
from walltime.engine.load import load_draw as load_draw
from walltime.engine.load import load_kernel as load_kernel
from walltime.engine.load import load_measure as load_measure
from walltime.engine.load import load_predicting_kernel as load_predicting_kernel
from walltime.engine.load import load_prediction_replay as load_prediction_replay
from walltime.engine.load import load_replay as load_replay
from walltime.engine.memory import (
    BY_ARRIVAL,
    BY_LENGTH,
    BY_USER,
    BY_WFP,
    DONE,
    HEAD,
    KEEP,
    NEVER,
    PLAN,
    STARTED,
    STUCK,
    Found,
    Jobs,
    Rules,
    new_found,
    new_memory,
    new_result,
    new_scratch,
    restore_memory,
)
from walltime.errors import EngineError, PolicyError
from walltime.policy import FCFS, SJF, Conservative, Easy, Fcfs, Hybrid, Order, Policy, UserOrder, Wfp

Array = np.ndarray
COINCIDENT = ("batch", "sequential")
PIECE = 10_000_000
"""Steps over the queue or the profile in one call of the kernel: some 10 to 50 ms, so that progress and Ctrl-C are prompt."""


class Simulation:
    """A simulation that can be run whole or piece by piece.

    `submit, runtime, believed, procs`: int64, one entry per job, in order of arrival; times in seconds. `runtime` is what a
    job really runs, `believed` what the scheduler plans with. `coincident`: how events of one instant are handled, `batch`
    or `sequential` (see `walltime.simulate`). With feedback, `after` and `think` (int64) say for each job after whose end
    (the index of an earlier job, -1 for nobody's) and how many seconds later it is submitted. After `run` the results are
    `start` and `submit` (int64 s), `kind` (uint8) and `promised` (int64 s, -1 for none). With `log`, the starts are noted as
    they happen, and `dynamics` tells what backfilling did. With a `prediction`, the runtimes are predicted, and the results are
    `predicted` (int64 s), `basis` (uint8) and `corrections` (int64) too.

    Raises PolicyError for a policy that only the reference engine knows, an order that cannot be compiled, or an unknown
    `coincident`; ValueError where the arrays do not match.
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
    ):
        arrays = {"submit": submit, "runtime": runtime, "believed": believed, "procs": procs}
        if after is not None and think is not None:
            arrays |= {"after": after, "think": think}
        for name, array in arrays.items():
            if array.dtype != np.int64 or array.ndim != 1 or len(array) != len(submit):
                raise ValueError(f"{name} must be an int64 array with one entry per job ({len(submit)})")
        if coincident not in COINCIDENT:
            raise PolicyError(f"unknown way to handle coincident events {coincident!r}; known are {', '.join(COINCIDENT)}")
        if after is not None and (after >= np.arange(len(after))).any():
            raise ValueError("a job can only be submitted after an earlier one")
        nothing = np.zeros(0, np.int64)
        lengths = dict.fromkeys(("order_length", "own_length", "run_length"), believed)
        given = {name: _read_only((arrays | lengths).get(name, nothing)) for name in Jobs._fields}
        self._compiled_orders: list[Any] = []
        self._prediction = prediction
        self._rules = self._lower(policy, machine_procs, coincident, feedback="after" in arrays)
        self._submit = np.asarray(submit)
        self._memory = new_memory(self._submit, given["after"], self._rules, prediction)
        self._jobs = self._believing(Jobs(**given))
        self._at_first = self._memory.state.copy()
        self._result = new_result(len(submit), log)
        self.seconds = 0.0
        """Time spent in the kernel, without compilation."""
        self.seconds_dynamics = 0.0
        """Time spent on the log of the starts by `dynamics`, without compilation."""

    def run(self, progress: Callable[[int], None] | None = None) -> None:
        """Run to the end; `progress` is called from time to time with the number of jobs started so far.

        Raises EngineError if jobs are left that nothing will start.
        """
        while not self.advance():
            if progress is not None:
                progress(self.started)

    def restart(self, runtime: Array, believed: Array, prediction: Prediction | None = None) -> None:
        """Begin anew with other runtimes and beliefs (int64 s, one entry per job), in the same memory.

        The prediction must be like the one before, but for the arrays; None for the same, which must not depend on the runtimes.
        """
        prediction = prediction or self._prediction
        given = {"runtime": runtime, "believed": believed}
        for name, array in given.items():
            if array.dtype != np.int64 or array.shape != self._submit.shape:
                raise ValueError(f"{name} must be an int64 array with one entry per job ({len(self._submit)})")
        given |= dict.fromkeys(("order_length", "own_length", "run_length"), believed)
        self._jobs = self._believing(self._jobs._replace(**{name: _read_only(array) for name, array in given.items()}))
        restore_memory(self._memory, self._at_first, self._submit, self._rules, prediction)
        for array, value in zip((*self._result[:3], *self._result.log), (-1, 0, -1, -1, -1, -1), strict=True):
            array.fill(value)
        self.seconds = 0.0

    def advance(self, budget: int = PIECE) -> bool:
        """Run one piece, until about `budget` steps have been taken; returns whether the simulation is done."""
        kernel = load_kernel() if self._prediction is None else load_predicting_kernel()
        begin = time.perf_counter()
        reason = kernel(self._jobs, self._rules, self._memory, self._result, budget)
        self.seconds += time.perf_counter() - begin
        if reason == STUCK:
            raise EngineError(f"{len(self.start) - self.started} jobs wait for processors that nobody will free")
        return reason == DONE

    @property
    def started(self) -> int:
        """Jobs that have started so far."""
        return int(self._memory.state[STARTED])

    @property
    def start(self) -> Array:
        """Start of each job in seconds, int64; -1 while it waits."""
        return self._result.start

    @property
    def submit(self) -> Array:
        """When each job was submitted in seconds, int64; with feedback this depends on the schedule."""
        return self._memory.submit

    @property
    def kind(self) -> Array:
        """How each job started, uint8: 0 immediate, 1 reserved, 2 backfilled."""
        return self._result.kind

    @property
    def promised(self) -> Array:
        """First reservation made for each job in seconds, int64; -1 where there was none."""
        return self._result.promised

    @property
    def _learning(self) -> Learning:
        if self._memory.learning is None:
            raise ValueError("no runtime was predicted; make the simulation with a prediction")
        return self._memory.learning

    @property
    def predicted(self) -> Array:
        """What each job was predicted to run when it was submitted, or last predicted again, in seconds, int64."""
        return self._learning.predicted

    @property
    def basis(self) -> Array:
        """What each prediction was made from, uint8: 0 nothing, 1 jobs of its kind, 2 all jobs."""
        return self._learning.basis

    @property
    def corrections(self) -> Array:
        """How often the prediction of each job was corrected while it ran, int64."""
        return self._learning.corrections if len(self._learning.corrections) else np.zeros(len(self.start), np.int64)

    def dynamics(self) -> Found:
        """What backfilling did to each job, from the log of a finished simulation.

        Arrays with one entry per job: `shortest`, `alone`, `wild` (bool), `suffered`, `initial_shadow` (int64; s, -1 for
        none); see `walltime.metrics.Dynamics` for what they mean. Raises ValueError if nothing was logged.
        """
        log = self._result.log
        if len(log.job) != len(self.start):
            raise ValueError("there is no log of the starts; make the simulation with log=True")
        found = new_found(len(self.start))
        in_order = np.empty(len(self.start), np.int64)
        in_order[self._memory.arrival] = np.arange(len(self.start))
        scratch = new_scratch(len(self.start), self._rules.machine_procs)
        replay = load_replay()
        begin = time.perf_counter()
        replay(in_order, self.start, self._jobs.runtime, self._jobs.procs, self._rules.machine_procs, log, scratch, found)
        self.seconds_dynamics = time.perf_counter() - begin
        return found

    @property
    def sequence(self) -> Array:
        """The jobs in the order in which they started, int64; empty if nothing was logged."""
        return self._result.log.job

    def _believing(self, jobs: Jobs) -> Jobs:
        """The jobs, the predictions standing for the beliefs where they are to."""
        if self._prediction is None:
            return jobs
        predicted = _read_only(self._learning.predicted)
        views = zip(Jobs._fields[2:5], (predicted, predicted, _read_only(self._learning.running_length)), strict=True)
        believed = {name: view for (name, view), on in zip(views, self._prediction.believe, strict=True) if on}
        return jobs._replace(**believed)

    def _lower(self, policy: Policy, machine_procs: int, coincident: str, feedback: bool) -> Rules:
        prediction = self._prediction
        order, parameter = self._lower_order(policy.order)
        backfill_order, backfill_parameter = order, parameter
        own = getattr(policy, "backfill_order", None)
        if own is not None and own != policy.order:
            backfill_order, backfill_parameter = self._lower_order(own)
        match policy:
            case Fcfs():
                mode, depth = HEAD, 0
            case Easy():
                mode, depth = HEAD, 1
            case Hybrid():
                mode, depth = (HEAD if policy.depth <= 1 else PLAN), min(policy.depth, NEVER)
            case Conservative(variant="scratch"):
                mode, depth = PLAN, NEVER
            case Conservative():
                mode, depth = KEEP, NEVER
            case _:
                raise PolicyError(f"the compiled engine does not know the policy {policy!r}")
        if policy.readings:
            raise PolicyError(f"{policy.label} runs on the reference engine only")
        return Rules(
            machine_procs=int(machine_procs),
            mode=mode,
            depth=depth,
            backfill=int(not isinstance(policy, Fcfs)),
            sequential=int(coincident == "sequential"),
            feedback=int(feedback),
            order=order,
            order_parameter=parameter,
            backfill_order=backfill_order,
            backfill_parameter=backfill_parameter,
            long_queue=index.LONG,
            short_queue=index.SHORT,
            predicting=None if prediction is None else True,
            predictor=NOBODY if prediction is None else prediction.kind,
            predict_again=0 if prediction is None else int(prediction.again),
            correction=prediction.correction if prediction is not None and prediction.believe[2] else NEVER_CORRECTED,
            order_threshold=_threshold(policy, mode),
        )

    def _lower_order(self, order: Order) -> tuple[int, int]:
        if order == FCFS:
            return BY_ARRIVAL, 0
        if order == SJF:
            return BY_LENGTH, 0
        if isinstance(order, Wfp):
            return BY_WFP, order.exponent
        if isinstance(order, UserOrder):
            try:
                compiled = jit.compile_score(order.arguments(), order.function)
            except Exception as error:  # Numba has no class of its own for all that it cannot compile
                reason = _numba_reason(error)
                raise PolicyError(f"the order {order.name!r} cannot be compiled: {reason}") from error
            self._compiled_orders.append(compiled)
            return BY_USER, compiled.address
        raise PolicyError(f"the compiled engine does not know the order {order!r}")


def _threshold(policy: Policy, mode: int) -> float:
    """The threshold of the queue order."""
    threshold = policy.order.threshold if isinstance(policy.order, Wfp) else 0.0
    if threshold and mode != HEAD:
        raise PolicyError(f"the threshold of {policy.order.name} is for policies with at most one reservation, not for {policy.name}")
    return float(threshold)


def _read_only(array: Array) -> Array:
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def _numba_reason(error: Exception) -> str:
    """The line of Numba's message that says what it does not like."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in plain.splitlines() if line.strip() and not line.startswith("Failed in nopython")]
    return next((line for line in lines if not line.startswith(("During:", "File ", "<"))), type(error).__name__)
