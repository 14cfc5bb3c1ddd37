"""What simulations have in common, whatever loop they run: running in bounded pieces, and the results by job."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from walltime.engine.interface.load import load, load_predictor
from walltime.engine.kernel.memory import DONE, REACHED, STUCK
from walltime.engine.kernel.prediction_memory import NEVER_CORRECTED, Predicting, Prediction
from walltime.errors import EngineError

Array = np.ndarray
PIECE = 10_000_000
"""Steps over the queue or the profile in one call of the kernel: 10 to 50 ms, so that progress and Ctrl-C respond quickly."""


class Pieces(ABC):
    """A simulation on arrays: `_memory`, a tuple with the records `state` and `jobs`, is what the loop works on."""

    _memory: Any

    def __init__(self, prediction: Prediction | None) -> None:
        self._prediction = prediction
        self._loop: Callable[..., int] | None = None
        self.seconds = 0.0
        """Time spent in the kernel, without compilation."""
        self.reached = False
        """Whether the last piece ended because the next event is later than it was to go."""

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
        return bool(reason == DONE)

    @property
    def started(self) -> int:
        """Jobs that have started so far."""
        return int(self._memory.state.started)

    def _column(self, name: str) -> Array:
        return np.ascontiguousarray(self._memory.jobs[name])

    @property
    def start(self) -> Array:
        """Start of each job in seconds, int64; -1 while it waits."""
        return self._column("start")

    @property
    def submit(self) -> Array:
        """The time from which each job waits, s, int64; where jobs wait for others, it depends on the schedule."""
        return self._column("submit")

    @property
    def kind(self) -> Array:
        """How each job started, uint8: 0 immediate, 1 reserved, 2 backfilled."""
        return self._column("kind").astype(np.uint8)

    @property
    def reserved_start(self) -> Array:
        """Reserved start of each job's first reservation in seconds, int64; -1 if there was none."""
        return self._column("reserved_start")

    @property
    def _predicting(self) -> Predicting:
        predicting: Predicting | None = self._memory.machine.predicting
        if predicting is None:
            raise ValueError("no runtime was predicted; make the simulation with a prediction")
        return predicting

    @property
    def predicted(self) -> Array:
        """Predicted runtime of each job at its submission, or when last predicted again, in seconds, int64."""
        return self._predicting.predicted

    @property
    def basis(self) -> Array:
        """Basis of each prediction, uint8: 0 nothing, 1 jobs of its kind, 2 all jobs."""
        if self._prediction is not None and self._prediction.compiled is None:
            return self._prediction.basis
        return self._predicting.learning.jobs.basis.astype(np.uint8)

    @property
    def corrections(self) -> Array:
        """How often the prediction of each job was corrected while it ran, int64."""
        return self._predicting.corrections


def lower_prediction(rules: Any, prediction: Prediction | None) -> None:
    """How a prediction is used, as numbers in a record of the rules, with the addresses of the compiled predictor."""
    if prediction is None:
        return
    for name, address in load_predictor(prediction.compiled).items():
        rules[name] = address
    rules.believe_order, rules.believe_own, rules.believe_running = prediction.believe
    rules.predict_again = prediction.again
    rules.correction = prediction.correction if prediction.believe[2] else NEVER_CORRECTED
