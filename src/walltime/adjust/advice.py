"""Predicted runtimes of waiting jobs, from a job log: the user's limit times the accuracy of earlier ones."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from walltime.adjust.queue import QueuedJob
from walltime.errors import WalltimeError, WorkloadError
from walltime.predictors import Tang13
from walltime.predictors.history import check_columns, log_ends
from walltime.workload import Workload

TEXTS = {"user": "user", "group": "account", "executable": "name", "queue": "qos"}
"""Which text of a waiting job stands in which column of the log; the partition is there as well."""

ANY_SIZE = 1_000_000_000
"""Processors of the machine, which the advice does not depend on, and which Slurm's logs do not say."""
KEPT = 600
"""Seconds for which a prediction holds."""


class Advice:
    """The predictor, having learned from the log of a cluster.

    Raises WorkloadError if the log does not say what the predictor needs, or when it began, in Unix time.
    """

    def __init__(self, predictor: Tang13, jobs: Workload):
        check_columns(predictor, jobs)
        if jobs.origin.unix_start_time is None:
            raise WorkloadError(f"{jobs.origin.name}: does not say when it began; take a log that sacct has printed")
        self._begin = jobs.origin.unix_start_time
        self._origin = jobs.origin
        self._learner = predictor.begin()
        _, end, known = log_ends(jobs)
        columns = ("user", "group", "executable", "queue", "partition")
        found: dict[str, Any] = {name: jobs.columns[name].tolist() for name in columns if name in jobs.columns}
        found |= {"requested": jobs.requested.tolist(), "procs": jobs.procs.tolist(), "runtime": jobs.runtime.tolist(), "end": end.tolist()}
        for k in range(len(jobs)):
            if known[k] and found["runtime"][k] > 0 and found["requested"][k] > 0:
                of_job = dict.fromkeys(columns, -1) | {name: values[k] for name, values in found.items()}
                self._learner.observe(SimpleNamespace(**of_job))
        self.jobs = int(known.sum())
        self._kept: dict[tuple[int, ...], float | None] = {}
        self._kept_for = -1

    def predict(self, job: QueuedJob, now: float) -> float | None:
        """The runtime, s, of a waiting job at a Unix time; None if too little is known of jobs like it."""
        if job.limit is None:
            return None
        number = {column: self._origin.number_of(column, getattr(job, text)) for column, text in TEXTS.items()}
        number["partition"] = self._origin.number_of("partition", job.partitions[0])
        known = {**number, "requested": job.limit * 60, "procs": job.procs}
        as_of = int(now) // KEPT * KEPT
        if as_of != self._kept_for:  # a prediction looks at all earlier jobs of its kind, and many waiting jobs are alike
            self._kept, self._kept_for = {}, as_of
        kind = tuple(known.values())
        if kind not in self._kept:
            guess = self._learner.predict(SimpleNamespace(now=as_of - self._begin, **known))
            self._kept[kind] = None if guess is None else float(guess)
        return self._kept[kind]


class History:
    """The advice of a log file, read again when the file has changed; a file that has become unreadable leaves the old advice."""

    def __init__(self, predictor: Tang13, path: Path):
        self._predictor, self._path = predictor, path
        self._stamp = self._now()
        self.advice = self._read()

    def refresh(self) -> str | None:
        """Read the file again if it has changed; returns what went wrong."""
        stamp = self._now()
        if stamp == self._stamp:
            return None
        self._stamp = stamp
        try:
            self.advice = self._read()
        except WalltimeError as error:
            return str(error)
        return None

    def predict(self, job: QueuedJob, now: float) -> float | None:
        """As `Advice.predict`."""
        return self.advice.predict(job, now)

    def _read(self) -> Advice:
        from walltime.logs import read_log

        return Advice(self._predictor, read_log(self._path, time_zone="UTC").to_workload(procs=ANY_SIZE))

    def _now(self) -> tuple[int, int]:
        try:
            found = self._path.stat()
        except OSError:
            return (0, 0)
        return (found.st_mtime_ns, found.st_size)
