"""The interface of the compiled engine: checks the arguments, makes the arrays, runs the loop in bounded pieces."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from walltime.engine import index
from walltime.engine.learning import NEVER_CORRECTED, Predicting, Prediction
from walltime.engine.load import load, load_predictor, loop_name
from walltime.engine.memory import (
    DONE,
    FRESH,
    HEAD,
    HOLE,
    JOB,
    KEEP,
    NEVER,
    RULES,
    STUCK,
    Found,
    Memory,
    new_found,
    new_memory,
    new_scratch,
    record,
    records,
    restored,
)
from walltime.engine.ordering import lower_order
from walltime.errors import EngineError, PolicyError, WorkloadError
from walltime.policy import Policy, Wfp
from walltime.policy.known import Known

Array = np.ndarray
COINCIDENT = ("batch", "sequential")
MODES = {"head": HEAD, "fresh": FRESH, "kept": KEEP}
"""The kinds of `walltime.policy.Passes` in the loop."""
PIECE = 10_000_000
"""Steps over the queue or the profile in one call of the kernel: 10 to 50 ms, so that progress and Ctrl-C respond quickly."""


class Simulation:
    """A simulation that can be run as a whole or in pieces.

    `submit, runtime, believed, procs`: int64, one entry per job, in order of arrival; times in seconds. `runtime` is the real
    runtime, `believed` the one that the scheduler plans with. `coincident`: how simultaneous events are handled, `batch`
    or `sequential` (see `walltime.simulate`). With feedback, `after` and `think` (int64) give for each job the index of an earlier
    job (-1 for none) and the seconds after its end at which this job is submitted. After `run` the results are
    `start` and `submit` (int64 s), `kind` (uint8) and `reserved_start` (int64 s, -1 for none). With `log`, the starts are recorded,
    and `dynamics` computes the effects of backfilling. With a `prediction`, the runtimes are predicted, and the results include
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
        known: Known | None = None,
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
        self._policy, self._known, self._prediction = policy, known or Known({"requested": believed}), prediction
        self._thinking = 0 if think is None else int(np.maximum(think, 0).sum())
        self._working = int(np.maximum(runtime, believed).sum())
        rules = self._lower(policy, machine_procs, coincident)
        jobs = records(JOB, len(submit))
        jobs.submit, jobs.runtime, jobs.believed, jobs.procs = submit, runtime, believed, procs
        nobody = np.zeros(0, np.int64)
        self._memory = new_memory(jobs, rules, arrays.get("after", nobody), arrays.get("think", nobody), log, prediction)
        self._loop: Callable[..., int] | None = None
        self.seconds = 0.0
        """Time spent in the kernel, without compilation."""
        self.seconds_dynamics = 0.0
        """Time spent on the log of the starts by `dynamics`, without compilation."""

    @staticmethod
    def _check(name: str, array: Array, jobs: int) -> None:
        if array.dtype != np.int64 or array.shape != (jobs,):
            raise ValueError(f"{name} must be an int64 array with one entry per job ({jobs})")

    def run(self, progress: Callable[[int], None] | None = None) -> None:
        """Run to the end; `progress` is called from time to time with the number of jobs started so far.

        Raises EngineError if jobs are left that nothing will start.
        """
        while not self.advance():
            if progress is not None:
                progress(self.started)

    def restart(self, runtime: Array, believed: Array, prediction: Prediction | None = None, known: Known | None = None) -> None:
        """Restart with other runtimes and estimates (int64 s, one entry per job), in the same memory.

        The prediction must be like the previous one, except for the arrays; None for the same, which must not depend on the
        runtimes. `known`: if the orders read other data than before.
        """
        self._check("runtime", runtime, len(self._submit))
        self._check("believed", believed, len(self._submit))
        self._prediction = prediction or self._prediction
        jobs = self._memory.jobs
        jobs.submit, jobs.runtime, jobs.believed = self._submit, runtime, believed
        self._known = known or self._known
        self._working = int(np.maximum(runtime, believed).sum())
        self._lower_orders(self._memory.rules)
        self._memory = restored(self._memory, self._prediction)
        self.seconds = 0.0

    def compile(self) -> None:
        """Compile the loop for this kind of policy, or load it from disk; otherwise the first call of `advance` does it."""
        if self._loop is None:
            self._loop = load(loop_name(self._memory))

    def advance(self, budget: int = PIECE) -> bool:
        """Run one piece, until about `budget` steps have been taken; returns whether the simulation is done."""
        self.compile()
        assert self._loop is not None
        begin = time.perf_counter()
        reason = self._loop(*self._memory, budget)
        self.seconds += time.perf_counter() - begin
        if reason == STUCK:
            raise EngineError(f"{len(self._submit) - self.started} jobs wait for processors that nobody will free")
        return bool(reason == DONE)

    @property
    def started(self) -> int:
        """Jobs that have started so far."""
        return int(self._memory.state.started)

    @property
    def memory(self) -> Memory:
        """What the loop works on, to be looked at between two pieces."""
        return self._memory

    @property
    def rules(self) -> Any:
        """The policy, lowered to numbers: a record of `memory.RULES`."""
        return self._memory.rules

    def _column(self, name: str) -> Array:
        return np.ascontiguousarray(self._memory.jobs[name])

    @property
    def start(self) -> Array:
        """Start of each job in seconds, int64; -1 while it waits."""
        return self._column("start")

    @property
    def submit(self) -> Array:
        """Submit time of each job in seconds, int64; with feedback it depends on the schedule."""
        return self._column("submit")

    @property
    def kind(self) -> Array:
        """How each job started, uint8: 0 immediate, 1 reserved, 2 backfilled."""
        return self._memory.jobs.kind.astype(np.uint8)

    @property
    def reserved_start(self) -> Array:
        """Reserved start of each job's first reservation in seconds, int64; -1 if there was none."""
        return self._column("reserved_start")

    @property
    def _predicting(self) -> Predicting:
        if self._memory.predicting is None:
            raise ValueError("no runtime was predicted; make the simulation with a prediction")
        return self._memory.predicting

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

    def dynamics(self) -> Found:
        """The effects of backfilling on each job, from the log of a finished simulation.

        Arrays with one entry per job: `shortest`, `alone`, `wild` (bool), `suffered`, `initial_shadow` (int64; s, -1 for
        none); see `walltime.metrics.Dynamics` for their meaning. Raises ValueError if nothing was logged.
        """
        jobs, notes = self._memory.jobs, self._memory.notes
        if len(notes) != len(jobs):
            raise ValueError("there is no log of the starts; make the simulation with log=True")
        found = new_found(len(jobs))
        in_order = np.empty(len(jobs), np.int64)
        in_order[jobs.arrival] = np.arange(len(jobs))
        procs = int(self._memory.rules.procs)
        scratch = new_scratch(len(jobs), procs)
        replay = load("dynamics")
        begin = time.perf_counter()
        replay(in_order, jobs, procs, notes, scratch, found)
        self.seconds_dynamics = time.perf_counter() - begin
        return found

    @property
    def sequence(self) -> Array:
        """The jobs in the order in which they started, int64; empty if nothing was logged."""
        return np.ascontiguousarray(self._memory.notes.job)

    def _lower(self, policy: Policy, machine_procs: int, coincident: str) -> Any:
        """The policy as a record of numbers."""
        passes = policy.passes
        if passes is None:
            raise PolicyError(f"{policy.label} runs on the reference engine only")
        mode = MODES[passes.kind]
        depth = NEVER if passes.depth is None else min(passes.depth, NEVER)
        rules = record(
            RULES,
            mode=mode,
            procs=int(machine_procs),
            depth=depth,
            backfill=int(passes.backfills),
            sequential=int(coincident == "sequential"),
            long_queue=index.LONG if passes.backfills else NEVER,  # who lets nobody overtake need not search
            short_queue=index.SHORT,
            order_threshold=_threshold(policy, mode),
        )
        self._lower_orders(rules)
        prediction = self._prediction
        if prediction is not None:
            for name, address in load_predictor(prediction.compiled).items():
                rules[name] = address
            rules.believe_order, rules.believe_own, rules.believe_running = prediction.believe
            rules.predict_again = prediction.again
            rules.correction = prediction.correction if prediction.believe[2] else NEVER_CORRECTED
        return rules

    def _lower_orders(self, rules: Any) -> None:
        """The orders of the queue and of backfilling, for these jobs."""
        longest = self._working + self._thinking  # until the last end at most: one job at a time, as long as it runs or is planned
        order, own = self._policy.order, getattr(self._policy, "backfill_order", None)
        first = second = lower_order(order, self._known, self._submit, longest)
        if own is not None and own != order:
            second = lower_order(own, self._known, self._submit, longest)
        self._kept = (first, second)  # the kernel has no more than their addresses
        rules.order, rules.order_parameter, rules.order_reads_time = first.kind, first.parameter, first.reads_time
        rules.backfill_order, rules.backfill_parameter = second.kind, second.parameter


def _threshold(policy: Policy, mode: int) -> float:
    """The threshold of the queue order."""
    threshold = policy.order.threshold if isinstance(policy.order, Wfp) else 0.0
    if threshold and mode != HEAD:
        raise PolicyError(f"the threshold of {policy.order.name} is for policies with at most one reservation, not for {policy.name}")
    return float(threshold)
