"""Predict runtimes of waiting jobs from a job log: the user's limit times the accuracy of earlier limits."""

import gzip
import re
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from walltime.errors import LogError, WalltimeError, WorkloadError
from walltime.predictors import Tang13
from walltime.predictors.base import check_columns
from walltime.predictors.history import log_ends
from walltime.slurm.squeue_fields import QueueJob
from walltime.wording import printable
from walltime.workload import Workload
from walltime.workload.drops import jobs_only

NAME_COLUMNS = ("user", "group", "queue", "partition", "executable")
ANY_SIZE = 1_000_000_000
"""Processors assumed for the machine: Slurm's logs do not contain the number, and the predictions do not depend on it."""
KEPT = 600
"""Seconds for which a prediction is reused."""
FREE_TEXTS = frozenset(
    {"jobname", "submitline", "workdir", "comment", "admincomment", "systemcomment", "extra", "stdin", "stdout", "stderr"}
)
"""Fields of sacct with free text. sacct escapes nothing, so users could write lines there that look like other users' jobs."""
LEFT_OUT = {
    "unknown_wait": "The log does not record the job's start.",
    "nothing_to_learn": "The runtime or the limit is 0 s, so the job does not show how accurate the limit is.",
}
"""The rules by which jobs of the log are left out of the learning, and their meanings."""
NOT_READ = "the job log has not been read yet"


class Advice:
    """A predictor that has learned from a cluster's job log.

    Raises WorkloadError if it uses names of programs, or if the log lacks one of its columns or a start in Unix time.
    """

    def __init__(self, predictor: Tang13, jobs: Workload):
        check_columns(predictor, jobs)
        if "executable" in predictor.columns:
            raise WorkloadError(
                f"{predictor.label} needs the names of programs, which users choose freely; the side-car does not use them",
                "unsupported_predictor",
            )
        if jobs.origin.unix_start_time is None:
            raise WorkloadError(f"{jobs.origin.name}: the log has no start time; use a log printed by sacct")
        self._begin = jobs.origin.unix_start_time
        self._origin = jobs.origin
        self._learner = predictor.begin()
        _, end, known = log_ends(jobs)
        columns = {name: jobs.columns.get(name, np.full(len(jobs), -1)) for name in NAME_COLUMNS}
        columns |= {"requested": jobs.requested, "procs": jobs.procs, "runtime": jobs.runtime, "end": end}
        usable = known & (jobs.runtime > 0) & (jobs.requested > 0)
        for row in zip(*(values[usable].tolist() for values in columns.values()), strict=True):
            self._learner.observe(SimpleNamespace(**dict(zip(columns, row, strict=True))))
        self.jobs = int(known.sum())
        self.learned = jobs.without({"unknown_wait": ~known, "nothing_to_learn": ~usable}, LEFT_OUT)
        self._kept: dict[tuple[int, ...], float | None] = {}
        self._kept_since = -1

    def predict(self, job: QueueJob, now: float) -> float | None:
        """Return the predicted runtime, s, of a waiting job at Unix time `now`; None without a limit or with too few similar jobs."""
        if job.limit is None:
            return None
        names = {"user": job.user, "group": job.account, "queue": job.qos, "partition": job.partitions[0]}
        numbers = {column: self._origin.number_of(column, name) for column, name in names.items()}
        known = {**numbers, "requested": job.limit * 60, "procs": job.procs}
        as_of = int(now) // KEPT * KEPT
        if as_of != self._kept_since:  # a prediction reads all earlier jobs of its kind, and many waiting jobs are similar
            self._kept, self._kept_since = {}, as_of
        kind = tuple(known.values())
        if kind not in self._kept:
            guess = self._learner.predict(SimpleNamespace(now=as_of - self._begin, **known))
            self._kept[kind] = None if guess is None else float(guess.seconds)
        return self._kept[kind]


class LogAdvice:
    """Predictions from a log file, which is read again when it changes; while it is unreadable, the earlier predictions remain.

    A thread reads the file, because rounds must not wait for it. `missing`: why there are no predictions, empty if there are.
    """

    def __init__(self, predictor: Tang13, path: Path):
        self._predictor, self._path = predictor, path
        self._stamp: tuple[int, int] | None = None
        self._reading: threading.Thread | None = None
        self._wrong = ""
        self.advice: Advice | None = None
        self.missing = NOT_READ
        self._told: list[str] = []

    def refresh(self) -> str | None:
        """Start to read the file if it has changed, and return the error of an earlier attempt that has not been reported yet."""
        wrong, self._wrong = self._wrong, ""
        stamp = self._file_stamp()
        if stamp != self._stamp and (self._reading is None or not self._reading.is_alive()):
            self._stamp = stamp
            self._reading = threading.Thread(target=self._try, name="job log", daemon=True)
            self._reading.start()
        return wrong or None

    def read(self) -> Advice:
        """Read the file now, and return what was learned; raises LogError or WorkloadError."""
        from walltime.logs import read_log

        self._stamp = self._file_stamp()
        check_texts(self._path)
        advice = Advice(self._predictor, read_log(self._path, time_zone="UTC").to_workload(procs=ANY_SIZE))
        self.advice, self.missing = advice, ""
        return advice

    def left_out(self) -> list[str]:
        """Return sentences on the jobs of the log that are left out; none if these rules are the same as in the previous call."""
        if self.advice is None:
            return []
        learned = self.advice.learned
        drops, warnings = jobs_only(learned.origin.drops), learned.warnings
        before, self._told = self._told, [*("warned" for _ in warnings), *(drop.rule for drop in drops)]
        return [] if self._told == before else [*warnings, *map(str, drops)]

    def predict(self, job: QueueJob, now: float) -> float | None:
        """Predict as `Advice.predict` does; return None as long as there is nothing to learn from."""
        return None if self.advice is None else self.advice.predict(job, now)

    def _try(self) -> None:
        try:
            self.read()
        except (WalltimeError, OSError, MemoryError) as error:
            self._wrong = str(error)
            if self.advice is None:
                self.missing = f"no job log to learn from: {error}"

    def _file_stamp(self) -> tuple[int, int]:
        try:
            status = self._path.stat()
        except OSError:
            return (0, 0)
        return (status.st_mtime_ns, status.st_size)


def check_texts(path: Path) -> None:
    """Raise LogError if a table of sacct has fields of free text, in which users can forge jobs of other users."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            heading = file.readline(10_000).decode(errors="replace")
    except (OSError, EOFError):
        return  # the reader of the log reports it
    words = [word.strip().lower() for word in re.split(r"[|\x1f]", heading)]
    forgeable = [word for word in words if word in FREE_TEXTS] if any(word.startswith("jobid") for word in words) else []
    if forgeable:
        raise LogError(
            f"{printable(path)}: has the field {forgeable[0]}, in which users can forge other jobs; export the log without submit lines "
            "and job names, as walltime slurm sacct-command can",
            "forgeable_texts",
        )
