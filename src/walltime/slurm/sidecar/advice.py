"""Predicted runtimes of waiting jobs, from a job log: the user's limit times the accuracy of earlier ones."""

from __future__ import annotations

import gzip
import re
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from walltime.errors import LogError, WalltimeError, WorkloadError
from walltime.predictors import Tang13
from walltime.predictors.base import check_columns
from walltime.predictors.history import log_ends
from walltime.slurm.squeue_fields import QueueJob
from walltime.wording import printable
from walltime.workload import Workload

TEXTS = {"user": "user", "group": "account", "queue": "qos"}
"""Which text of a waiting job stands in which column of the log; the partition is there as well."""

ANY_SIZE = 1_000_000_000
"""Processors of the machine, which the advice does not depend on, and which Slurm's logs do not say."""
KEPT = 600
"""Seconds for which a prediction holds."""
FREE_TEXTS = frozenset(
    {"jobname", "submitline", "workdir", "comment", "admincomment", "systemcomment", "extra", "stdin", "stdout", "stderr"}
)
"""Fields of sacct in which users can write lines that look like other jobs: sacct escapes nothing."""
NOT_READ = "the job log has not been read yet"


class Advice:
    """The predictor, having learned from the log of a cluster.

    Raises WorkloadError if the log does not say what the predictor needs, or when it began, in Unix time.
    """

    def __init__(self, predictor: Tang13, jobs: Workload):
        check_columns(predictor, jobs)
        if "executable" in predictor.columns:
            raise WorkloadError(
                f"{predictor.label} needs the names of programs, which users choose, and which the side-car does not ask for",
                "unsupported_predictor",
            )
        if jobs.origin.unix_start_time is None:
            raise WorkloadError(f"{jobs.origin.name}: does not say when it began; take a log that sacct has printed")
        self._begin = jobs.origin.unix_start_time
        self._origin = jobs.origin
        self._learner = predictor.begin()
        _, end, known = log_ends(jobs)
        columns = ("user", "group", "executable", "queue", "partition")
        values: dict[str, Any] = {name: jobs.columns[name].tolist() for name in columns if name in jobs.columns}
        values |= {
            "requested": jobs.requested.tolist(),
            "procs": jobs.procs.tolist(),
            "runtime": jobs.runtime.tolist(),
            "end": end.tolist(),
        }
        for k in range(len(jobs)):
            if known[k] and values["runtime"][k] > 0 and values["requested"][k] > 0:
                of_job = dict.fromkeys(columns, -1) | {name: values[k] for name, values in values.items()}
                self._learner.observe(SimpleNamespace(**of_job))
        self.jobs = int(known.sum())
        self._kept: dict[tuple[int, ...], float | None] = {}
        self._kept_for = -1

    def predict(self, job: QueueJob, now: float) -> float | None:
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


class AdviceOfLog:
    """The advice of a log file, read again when the file has changed; a file that has become unreadable leaves the old advice.

    It is read beside the rounds, which must not wait for it. `missing`: why there is no advice, empty if there is one.
    """

    def __init__(self, predictor: Tang13, path: Path):
        self._predictor, self._path = predictor, path
        self._stamp: tuple[int, int] | None = None
        self._reading: threading.Thread | None = None
        self._wrong = ""
        self.advice: Advice | None = None
        self.missing = NOT_READ

    def refresh(self) -> str | None:
        """Begin to read the file if it has changed; returns what went wrong since the last call."""
        wrong, self._wrong = self._wrong, ""
        stamp = self._now()
        if stamp != self._stamp and (self._reading is None or not self._reading.is_alive()):
            self._stamp = stamp
            self._reading = threading.Thread(target=self._try, daemon=True)
            self._reading.start()
        return wrong or None

    def read(self) -> Advice:
        """Read the file now; raises LogError or WorkloadError."""
        self._stamp = self._now()
        self.advice, self.missing = self._read(), ""
        return self.advice

    def predict(self, job: QueueJob, now: float) -> float | None:
        """As `Advice.predict`; None without advice."""
        return None if self.advice is None else self.advice.predict(job, now)

    def _try(self) -> None:
        try:
            self.advice, self.missing = self._read(), ""
        except (WalltimeError, OSError, MemoryError) as error:
            self._wrong = str(error)
            if self.advice is None:
                self.missing = f"there is nothing to learn from: {error}"

    def _read(self) -> Advice:
        from walltime.logs import read_log

        check_texts(self._path)
        return Advice(self._predictor, read_log(self._path, time_zone="UTC").to_workload(procs=ANY_SIZE))

    def _now(self) -> tuple[int, int]:
        try:
            status = self._path.stat()
        except OSError:
            return (0, 0)
        return (status.st_mtime_ns, status.st_size)


def check_texts(path: Path) -> None:
    """Raise LogError for a table of sacct that has free texts, in which a user may have forged the jobs of others."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            heading = file.readline(10_000).decode(errors="replace")
    except (OSError, EOFError):
        return  # whoever reads the log will say so
    words = [word.strip().lower() for word in re.split(r"[|\x1f]", heading)]
    forgeable = [word for word in words if word in FREE_TEXTS] if any(word.startswith("jobid") for word in words) else []
    if forgeable:
        raise LogError(
            f"{printable(path)}: has {forgeable[0]}, in which users can forge other jobs; print it without "
            "submit lines and names, by walltime slurm sacct-command (--no-submit-line as well as no job names)",
            "forgeable_texts",
        )
