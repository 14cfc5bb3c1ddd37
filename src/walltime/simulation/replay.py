"""Replays of a log with predictions but without scheduling: the accuracy that predictors would have had."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from walltime import metrics
from walltime.errors import PolicyError, WorkloadError
from walltime.policy import Dialect, Easy
from walltime.predictors import Jobs, Predictor, log_ends
from walltime.schedule.schedule import Schedule
from walltime.simulation.job_predictions import Ends, predict_in_log
from walltime.simulation.run import simulate
from walltime.simulation.threads import in_threads
from walltime.workload import Array, Workload


@dataclass(frozen=True, eq=False)
class Replay:
    """The predictions for a log's jobs at their submissions; arrays have one entry per job.

    * `predicted`: int64 s; `basis`: uint8, a `walltime.predictors.Basis`
    * `ends`: where the ends of earlier jobs come from: `log`, or the label of a schedule
    * `unknown_ends`: number of jobs with unknown ends, from which predictors do not learn
    """

    workload: Workload
    predictor: Predictor
    predicted: Array
    basis: Array
    ends: str
    unknown_ends: int

    def summary(self, judged: Array | None = None) -> metrics.PredictionSummary:
        """Return the accuracy over all jobs, or over the `judged` ones (bool, one per job); longer runtimes count up to the requests."""
        w = self.workload
        columns = np.minimum(w.runtime, w.requested), w.requested, self.predicted, self.basis
        return metrics.summarize_predictions(*(columns if judged is None else (column[judged] for column in columns)))


def held_out(workload: Workload, share: float) -> Array:
    """Return a mask (bool) of the jobs in the last `share` of a log by submission, to judge predictors that learned from the others.

    Raises PolicyError for a share outside of (0, 1], WorkloadError for a log without jobs.

    >>> jobs = Workload.from_arrays(submit=[0, 10, 20, 30], runtime=[9] * 4, requested=[9] * 4, procs=[1] * 4, machine_procs=1)
    >>> held_out(jobs, 0.25).tolist()
    [False, False, False, True]
    """
    if not 0 < share <= 1:
        raise PolicyError(f"the held-out share of the log must be above 0 and at most 1, not {share!r}", "number_out_of_range")
    if not len(workload):
        raise WorkloadError(f"{workload.origin.name} has no jobs to predict; use another log")
    since = workload.submit[min(int((1 - share) * len(workload)), len(workload) - 1)]
    return np.asarray(workload.submit >= since)


def predict(
    workload: Workload,
    predictors: Sequence[Predictor],
    ends: str | Schedule = "auto",
    *,
    clip: bool = True,
    dialect: Dialect | str = "papers",
    engine: str = "kernel",
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Replay]:
    """Return each predictor's predictions for all jobs at their submission, learned from the jobs that have ended by then.

    `ends`: the ends of the jobs. `log` is submit + wait + runtime of the log. A `Schedule` of the same jobs provides its own ends. `easy`
    simulates EASY backfilling with user estimates. `auto` is `log`, or `easy` if the log's wait times are unknown or all 0, as in
    reconstructions (see `Replay.ends`). A job that ends at the instant of a submission counts, unless it also started then, or the
    `dialect` handles arrivals before terminations. `clip`: whether predictions are at most the user's request. `engine="reference"` uses
    plain Python, as custom predictors always do; others are compiled and run on all cores (`workers`: threads). `progress` is called with
    the number of finished predictors.

    Raises PolicyError for an unknown option, WorkloadError if the log lacks wait times or a column that a predictor needs.

    >>> from walltime.predictors import LastRun
    >>> jobs = Workload.from_arrays(submit=[0, 10], runtime=[10, 9], requested=[60, 60], procs=[1, 1], machine_procs=1,
    ...                             columns={"user": np.array([7, 7])})
    >>> [replay] = predict(jobs, [LastRun()], ends="easy")
    >>> replay.predicted.tolist(), replay.ends
    ([60, 10], 'easy')
    """
    if engine not in ("kernel", "reference"):
        raise PolicyError(f"unknown engine {engine!r}. Valid engines: kernel, reference", "unknown_engine")
    for predictor in predictors:
        if not isinstance(predictor, Predictor):
            raise PolicyError(f"predictor must be one such as walltime.predictors.Tang13(), not {predictor!r}")
        if predictor.again:
            raise PolicyError(
                f"{predictor.label} updates predictions of waiting jobs, which replays lack; simulate it instead", "unsupported_predictor"
            )
    dialect = Dialect.of(dialect)
    limit = workload.requested if clip else np.full(len(workload), np.iinfo(np.int64).max // 4)
    (start, end, known), source = _ends(workload, ends, dialect)
    jobs = Jobs(workload, workload.requested, limit, end - start)

    def run(number: int, check: Callable[[int], None]) -> Replay:
        check(number)
        predicted, basis = predict_in_log(
            predictors[number], jobs, (start, end, known), engine == "reference", dialect.coincident == "sequential"
        )
        return Replay(workload, predictors[number], predicted, basis, source, int(np.count_nonzero(~known)))

    if any(predictor.is_compiled for predictor in predictors):
        from walltime.engine.interface.load import load

        load("replay")
    return in_threads(run, len(predictors), workers, progress)


def _ends(workload: Workload, ends: str | Schedule, dialect: Dialect) -> tuple[Ends, str]:
    """Return the start and end of each job, and the name of their source."""
    if isinstance(ends, Schedule):
        if not np.array_equal(ends.workload.job_id, workload.job_id):
            raise WorkloadError("the schedule given as ends has other jobs; give a schedule of this workload", "other_jobs")
        return (ends.start, ends.end, np.ones(len(workload), bool)), ends.label
    if ends not in ("log", "easy", "auto"):
        raise PolicyError(f"unknown ends {ends!r}. Valid values: log, easy, auto, or a schedule", "unknown_ends")
    if ends != "easy":
        try:
            return log_ends(workload), "log"
        except WorkloadError:
            if ends == "log":
                raise
    return _ends(workload, simulate(workload, Easy(), dialect=dialect), dialect)
