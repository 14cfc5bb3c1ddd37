"""Runtime predictions of running, waiting and ended jobs, for predicting start times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from walltime.errors import PolicyError
from walltime.predictors import Basis, Predictor, below_remark, parse_predictor
from walltime.predictors.hindsight import hindsight_remarks, twins_remark
from walltime.predictors.unlearned import ExactRuntime, External, LogColumn
from walltime.simulation.replay import predict
from walltime.slurm.snapshot import Snapshot
from walltime.slurm.starts.initial_state import NAMED, append_jobs, ends
from walltime.workload import MISSING, Array, Workload


@dataclass(frozen=True, eq=False)
class PredictedRuntimes:
    """Predictions of runtimes by job number: `job_id` ascends, `seconds` is int64.

    `predictor`: its label; `remarks`: caveats, as sentences.
    """

    predictor: str
    job_id: Array
    seconds: Array
    remarks: tuple[str, ...] = ()

    def of(self, numbers: Array | Sequence[int]) -> Array:
        """Return the predictions for these job numbers, int64 s; -1 where there is none."""
        numbers = np.asarray(numbers, np.int64)
        if not len(self.job_id):
            return np.full(len(numbers), -1, np.int64)
        place = np.searchsorted(self.job_id, numbers).clip(max=len(self.job_id) - 1)
        return np.where(self.job_id[place] == numbers, self.seconds[place], -1)


def predict_log_runtimes(predictor: str | Predictor, log: Workload) -> PredictedRuntimes:
    """Predict the runtimes of a log's jobs, each at its submission from the jobs that had ended by then.

    Raises PolicyError and WorkloadError.
    """
    given = parse_predictor(predictor) if isinstance(predictor, str) else predictor
    made = predict(log, [given], "log")[0]
    known = (made.basis == Basis.OWN) | (made.basis == Basis.GENERAL)
    order = np.argsort(log.job_id[known], kind="stable")
    predicted = np.where(known, made.predicted, -1)
    remarks = below_remark(given.label, made.basis) + twins_remark(given.label, log, log.requested, log.runtime, predicted)
    if isinstance(given, External):
        remarks += hindsight_remarks(given.label, log, log.requested, log.runtime, predicted)
    return PredictedRuntimes(given.label, log.job_id[known][order], made.predicted[known][order], tuple(remarks))


def predict_snapshot_runtimes(predictor: str | Predictor, snapshot: Snapshot, history: Workload) -> PredictedRuntimes:
    """Predict the runtimes of a snapshot's jobs, and of the history's jobs that had ended by then.

    Each prediction is made at the job's submission from the jobs that had ended by that time. Raises PolicyError and WorkloadError.
    """
    given = parse_predictor(predictor) if isinstance(predictor, str) else predictor
    if isinstance(given, LogColumn):
        raise PolicyError(
            f"the jobs of a snapshot have no column {given.column!r}; give their predictions as a file (file:predictions.csv with job_id)",
            "unknown_column",
        )
    if isinstance(given, ExactRuntime):
        raise PolicyError("the runtimes of a snapshot's jobs are not known yet; use a predictor other than exact", "future_column")
    jobs = [*snapshot.running, *snapshot.waiting]
    distinct = {job.job: job for job in jobs}
    history = history.take((ends(history) <= snapshot.time) & ~np.isin(history.job_id, list(distinct)), "")
    unknown = np.full(len(history), MISSING)
    columns = {"wait": np.maximum(history.columns.get("wait", unknown), 0), **{name: history.columns.get(name, unknown) for name in NAMED}}
    history = replace(history, columns=columns, origin=replace(history.origin, name=snapshot.machine.name, time_zone=snapshot.time_zone))
    both, _ = append_jobs(history, list(distinct.values()), list(distinct), snapshot.time)
    predicted = predict_log_runtimes(given, both)
    if missing := int((predicted.of([job.job for job in jobs]) < 0).sum()):
        remark = f"{missing:,} of {len(jobs):,} jobs have no prediction in {given.label}; their runtimes are drawn from similar jobs."
        return replace(predicted, remarks=(*predicted.remarks, remark))
    return predicted
