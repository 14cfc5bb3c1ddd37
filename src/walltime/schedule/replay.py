"""Predictions beside a log, without scheduling: how good would they have been?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from walltime import metrics
from walltime.errors import PolicyError, WorkloadError
from walltime.estimates.predictors import History, Past, Predictor, log_ends
from walltime.schedule.prediction import Setting, compiled, given_prediction, learning_prediction
from walltime.schedule.schedule import Schedule
from walltime.schedule.simulation import simulate
from walltime.schedule.threads import in_threads
from walltime.workload import Workload

Array = np.ndarray
ENGINES = ("kernel", "reference")


@dataclass(frozen=True, eq=False)
class Replay:
    """What a predictor says of each job of a log when it is submitted; arrays have one entry per job.

    `predicted`: int64 s. `basis`: uint8, a `walltime.estimates.Basis`. `ends`: where the ends of the earlier jobs come from: `log`,
    or a schedule's policy. `unknown_ends`: jobs whose end the log does not tell, and from which nothing is learned.
    """

    workload: Workload
    predictor: Predictor
    predicted: Array
    basis: Array
    ends: str
    unknown_ends: int

    def summary(self) -> metrics.PredictionSummary:
        """Accuracy and classes over all jobs, killed at their requests."""
        w = self.workload
        return metrics.summarize_predictions(np.minimum(w.runtime, w.requested), w.requested, self.predicted, self.basis)


def replay_predictions(
    workload: Workload,
    predictors: Sequence[Predictor],
    ends: str | Schedule = "auto",
    *,
    clip: bool = True,
    engine: str = "kernel",
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Replay]:
    """What each predictor says of every job when it is submitted, learning from the jobs that have ended by then.

    `ends`: when the jobs ended: `log` takes submit + wait + runtime of the log, a `Schedule` of the same jobs its own ends; `easy`
    simulates EASY backfilling with the users' estimates first; `auto` is `log`, or `easy` where the log's waits are unknown or
    all 0, as in reconstructions. `Replay.ends` says which it was. A job that ends at the very instant of a submission counts,
    unless it started only then. `clip`: whether a prediction is at most the user's request. `engine="reference"` uses plain
    Python, as predictors of your own do always; the others are compiled, and run on all cores (`workers`: threads).
    `progress` is called with the number of predictors done.

    Raises PolicyError for an unknown option, WorkloadError where the log lacks waits, or a column that a predictor needs.

    >>> from walltime import LastRun
    >>> jobs = Workload.from_arrays(submit=[0, 10], runtime=[10, 9], requested=[60, 60], procs=[1, 1], machine_procs=1,
    ...                             columns={"user": np.array([7, 7])})
    >>> [replay] = replay_predictions(jobs, [LastRun()], ends="easy")
    >>> replay.predicted.tolist(), replay.ends
    ([60, 10], 'easy')
    """
    if engine not in ENGINES:
        raise PolicyError(f"unknown engine {engine!r}; known are {', '.join(ENGINES)}")
    for predictor in predictors:
        Setting.of(predictor, "regular", "none", "simulation")
        if predictor.again:
            raise PolicyError(f"{predictor.label} predicts waiting jobs again; in a replay nobody waits")
    start, end, known, said = _ends(workload, ends)
    limit = workload.requested if clip else np.full(len(workload), np.iinfo(np.int64).max // 4)

    def make_worker() -> Callable[[int, Callable[[int], None]], Replay]:
        def run(number: int, check: Callable[[int], None]) -> Replay:
            check(number)
            predictor = predictors[number]
            replay = _replay_plainly if engine == "reference" or not _is_compiled(predictor) else _replay
            predicted, basis = replay(predictor, workload, workload.requested, limit, start, end, known)
            return Replay(workload, predictor, predicted, basis, said, int(np.count_nonzero(~known)))

        return run

    if any(_is_compiled(predictor) for predictor in predictors):
        from walltime.engine.load import load

        load("replay")
    return in_threads(make_worker, len(predictors), workers, progress)


def replay_one(predictor: Predictor, workload: Workload, requested: Array, limit: Array, ends: str | Schedule) -> tuple[Array, Array]:
    """Predictions (int64 s) and what each was made from (uint8), with other requests and limits than the workload's."""
    start, end, known, _ = _ends(workload, ends)
    replay = _replay if _is_compiled(predictor) else _replay_plainly
    return replay(predictor, workload, requested, limit, start, end, known)


def _is_compiled(predictor: Predictor) -> bool:
    setting = Setting.of(predictor, "regular", "none", "simulation")
    return setting is not None and compiled(setting)


def _ends(workload: Workload, ends: str | Schedule) -> tuple[Array, Array, Array, str]:
    """Start and end of each job, int64 s, whether they are known, and whose they are."""
    everybody = np.ones(len(workload), bool)
    if isinstance(ends, Schedule):
        if not np.array_equal(ends.workload.job_id, workload.job_id):
            raise WorkloadError("the schedule whose ends are to be taken is not of these jobs")
        return ends.start, ends.end, everybody, ends.policy.label
    if ends not in ("log", "easy", "auto"):
        raise PolicyError(f"unknown ends {ends!r}; known are log, easy, auto, or a schedule")
    if ends != "easy":
        try:
            return *log_ends(workload), "log"
        except WorkloadError:
            if ends == "log":
                raise
    from walltime.policy import Easy

    return _ends(workload, simulate(workload, Easy()))


def _replay(
    predictor: Predictor, w: Workload, requested: Array, limit: Array, start: Array, end: Array, known: Array
) -> tuple[Array, Array]:
    """The compiled replay."""
    from walltime.engine.history import new_predicting
    from walltime.engine.load import load, load_predictor

    runtime = end - start
    given = predictor.given(requested, runtime)
    if given is not None:
        prediction = given_prediction(np.clip(given, 1, limit), np.ones(len(w), np.uint8))
        return prediction.given, prediction.basis
    prediction = learning_prediction(predictor, w, requested, runtime, limit)
    predicting, compiled = new_predicting(len(w), prediction), load_predictor(prediction.kind)
    addresses = [compiled.get(name, 0) for name in ("predict", "started", "observe")]
    jobs = np.flatnonzero(known)
    ending = jobs[np.lexsort((jobs, start[jobs], end[jobs]))]
    starting = jobs[np.lexsort((jobs, start[jobs]))]
    columns = (np.array(column, np.int64) for column in (w.submit, start, end, runtime, ending, starting))
    load("replay")(*addresses, predicting, *columns)
    return predicting.predicted, predicting.learning.jobs.basis.astype(np.uint8)


def _replay_plainly(
    predictor: Predictor, w: Workload, requested: Array, limit: Array, start: Array, end: Array, known: Array
) -> tuple[Array, Array]:
    """The same in plain Python."""
    history = History(predictor, w, requested, limit, end - start)
    past = Past(history, w.submit, start, end, known)
    predicted, basis = np.empty(len(w), np.int64), np.empty(len(w), np.uint8)
    for job, now in enumerate(w.submit.tolist()):
        past.show_until(now)
        predicted[job], basis[job] = history.predict(job, now, now)
    return predicted, basis
