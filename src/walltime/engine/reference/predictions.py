"""The reference engine's predictions: made when a job arrives, learned from when one ends, corrected when a job outlives them."""

from __future__ import annotations

from typing import Any, NamedTuple

from walltime.engine.reference.plain import Job


class Predictions(NamedTuple):
    """How runtimes are predicted, and where that is believed: a `walltime.predictors.Prediction` taken apart.

    `history` has `predict(index, submit, now)`, which gives seconds and what they were made from, `started(index, submit,
    start)` and `observe(index, submit, start, end)`. `again`: waiting jobs are predicted again at every pass.
    """

    history: Any
    belief: Any
    correction: Any
    again: bool = False


def corrected_length(job: Any, correction: Any, elapsed: int) -> int:
    """How long a job that has outlived its prediction is now expected to run, s; `elapsed`: how long it has run."""
    corrected: int = job.estimate
    if correction.kind == "double":
        corrected = 2 * job.run_length
    elif correction.kind == "half":
        corrected = elapsed + max((job.estimate - elapsed) // 2, 1)
    elif correction.kind == "tsafrir07" and job.corrections < len(correction.increments):
        base = job.predicted if correction.relative == "prediction" else elapsed
        corrected = base + correction.increments[job.corrections]
    return min(corrected, job.estimate) if correction.capped else corrected


class Predicting:
    """What the reference engine does with predicted runtimes; its own state is in `Reference`."""

    now: int
    running: list[Job]
    predictions: Predictions | None
    reservations_void: bool
    _kept: tuple[Job | None, int, int]
    _slowdowns: list[int]

    def _predict(self, job: Job) -> None:
        """Predict how long a waiting job will run, and believe it where that is wanted."""
        if self.predictions is None:
            return
        belief, planned = self.predictions.belief, job.believed
        job.predicted, job.basis = self.predictions.history.predict(job.index, job.submit, self.now)
        job.order_length = job.predicted if belief.order else job.estimate
        job.believed = job.predicted if belief.own else job.estimate
        job.run_length = job.predicted if belief.running else job.estimate
        if job.reservation >= 0 and job.believed != planned:
            self.reservations_void = True

    def _observe(self, job: Job) -> None:
        """Learn from a job that has ended."""
        ran = max(job.runtime, 10)
        self._slowdowns.append(1000 * max(job.end - job.submit, ran) // ran)
        if self.predictions is not None:
            self.predictions.history.observe(job.index, job.submit, job.start, job.end)

    def mean_slowdown(self) -> float:
        """Mean bounded slowdown of the jobs that have ended; 1 before the first."""
        return sum(self._slowdowns) / (1000 * len(self._slowdowns)) if self._slowdowns else 1.0

    def _can_be_corrected(self, job: Job) -> bool:
        """A running job whose prediction is believed, and short of the user's estimate."""
        if self.predictions is None or self.predictions.correction.kind == "none":
            return False
        return self.predictions.belief.running and job.run_length < job.estimate

    def _correct_expired(self) -> None:
        """Expect more of the running jobs that have outlived what was expected of them (tsafrir07, section 3)."""
        if self.predictions is None:
            return
        correction = self.predictions.correction
        for job in self.running:
            if not self._can_be_corrected(job) or job.expected_end > self.now:
                continue
            job.run_length = corrected_length(job, correction, self.now - job.start)
            job.corrections += 1
            self.reservations_void = True
            self._kept = (None, 0, 0)
