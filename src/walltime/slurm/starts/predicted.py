"""Start times with predictions of runtimes that somebody brings: of the jobs that run and wait, and of those that have ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from walltime.errors import PolicyError
from walltime.predictors import Basis, Predictor, below_remark, parse_predictor
from walltime.predictors.hindsight import hindsight_remarks, twins_remark
from walltime.predictors.unlearned import ExactRuntime, External, LogColumn
from walltime.simulation.replay import predict
from walltime.slurm.snapshot import Snapshot
from walltime.slurm.snapshot_jobs import SnapshotJob
from walltime.slurm.starts.initial_state import NAMED, UNLIMITED, common_names
from walltime.workload import Origin, Workload

Array = np.ndarray
OPEN = 2**31
"""What stands for the wait of a job that waits, and for the runtime of one that runs, s."""


@dataclass(frozen=True, eq=False)
class PredictedRuntimes:
    """Predictions of runtimes by number of the job: `job_id` rises, `seconds` is int64. `predictor`: its label; `remarks`: caveats."""

    predictor: str
    job_id: Array
    seconds: Array
    remarks: tuple[str, ...] = ()

    def of(self, numbers: Array | Sequence[int]) -> Array:
        """The predictions of these jobs, s, -1 where there is none."""
        numbers = np.asarray(numbers, np.int64)
        if not len(self.job_id):
            return np.full(len(numbers), -1, np.int64)
        place = np.searchsorted(self.job_id, numbers).clip(max=len(self.job_id) - 1)
        return np.where(self.job_id[place] == numbers, self.seconds[place], -1)

    def only(self, numbers: Array) -> PredictedRuntimes:
        """The predictions of these jobs alone."""
        mine = np.isin(self.job_id, numbers)
        return PredictedRuntimes(self.predictor, self.job_id[mine], self.seconds[mine], self.remarks)


def predicted_of_log(predictor: str | Predictor, log: Workload) -> PredictedRuntimes:
    """The predictions of the jobs of a log, each made at its submission from the jobs that had ended by then, as the log says.

    Raises PolicyError and WorkloadError.
    """
    given = parse_predictor(predictor) if isinstance(predictor, str) else predictor
    made = predict(log, [given], "log")[0]
    known = (made.basis == Basis.OWN) | (made.basis == Basis.GENERAL)
    order = np.argsort(log.job_id[known], kind="stable")
    told = np.where(known, made.predicted, -1)
    remarks = below_remark(given.label, made.basis) + twins_remark(given.label, log, log.requested, log.runtime, told)
    if isinstance(given, External):
        remarks += hindsight_remarks(given.label, log, log.requested, log.runtime, told)
    return PredictedRuntimes(given.label, log.job_id[known][order], made.predicted[known][order], tuple(remarks))


def predicted_of_snapshot(predictor: str | Predictor, snapshot: Snapshot, history: Workload) -> PredictedRuntimes:
    """The predictions of the jobs of a snapshot, and of those of the history that had ended by then.

    Each is made at its submission; a predictor that learns has seen the jobs that had ended by then. Raises PolicyError and WorkloadError.
    """
    given = parse_predictor(predictor) if isinstance(predictor, str) else predictor
    if isinstance(given, LogColumn):
        raise PolicyError(
            f"the jobs of a snapshot have no column {given.column!r}; give their predictions as a file (file:predictions.csv with job_id)",
            "unknown_column",
        )
    if isinstance(given, ExactRuntime):
        raise PolicyError("nobody knows how long the jobs of a snapshot will run; take another predictor than exact", "future_column")
    jobs = [*snapshot.running, *snapshot.waiting]
    both = _together(snapshot, history, list({job.job: job for job in jobs}.values()))
    predicted = predicted_of_log(given, both)
    missing = int((predicted.of([job.job for job in jobs]) < 0).sum())
    said = f"{missing:,} of {len(jobs):,} jobs have no prediction in {given.label}; their runtimes are drawn from those of jobs like them."
    return PredictedRuntimes(predicted.predictor, predicted.job_id, predicted.seconds, (*predicted.remarks, *[said] * bool(missing)))


def _together(snapshot: Snapshot, history: Workload, jobs: Sequence[SnapshotJob]) -> Workload:
    """The jobs that had ended and those of the snapshot as one log; the latter do not end."""
    zero = history.origin.unix_start_time or 0
    wait = np.maximum(history.columns.get("wait", np.zeros(len(history), np.int64)), 0)
    ended = history.submit + wait + history.runtime + zero <= snapshot.time
    history = history.take(ended & ~np.isin(history.job_id, [job.job for job in jobs]), "that had ended")
    names, of_jobs, of_history = common_names(jobs, history)
    submit = np.array([job.submit or job.start or snapshot.time for job in jobs], np.int64) - zero
    start = np.array([OPEN + snapshot.time if job.start is None else job.start for job in jobs], np.int64) - zero
    old = np.maximum(history.columns.get("wait", np.zeros(len(history), np.int64)), 0)
    values = {
        "job_id": (history.job_id, [job.job for job in jobs]),
        "submit": (history.submit, submit),
        "runtime": (history.runtime, np.full(len(jobs), OPEN)),
        "requested": (history.requested, [max(1, UNLIMITED if job.limit is None else job.limit) for job in jobs]),
        "procs": (history.procs, [max(job.cpus, 1) for job in jobs]),
        "wait": (np.maximum(old, 0), np.maximum(start - submit, 1)),
    } | {name: (of_history[name], of_jobs[name]) for name in NAMED}
    first = min(int(submit.min(initial=0)), 0)
    joined = {name: np.concatenate([np.asarray(one, np.int64) for one in pair]) for name, pair in values.items()}
    joined["submit"] -= first
    order = np.argsort(joined["submit"], kind="stable")
    columns = {name: column[order] for name, column in joined.items()}
    return Workload.from_arrays(
        job_id=columns.pop("job_id"),
        submit=columns.pop("submit"),
        runtime=columns.pop("runtime"),
        requested=columns.pop("requested"),
        machine_procs=int(columns["procs"].max()),
        procs=columns.pop("procs"),
        columns=columns,
        origin=Origin(name=snapshot.machine.name, unix_start_time=zero + first, time_zone=snapshot.time_zone, names=names),
    )
