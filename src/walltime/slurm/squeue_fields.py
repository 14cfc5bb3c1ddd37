"""Read jobs from `squeue --Format` of Slurm 22.05 and later, only with fields into which users cannot write text.

A job's name, command line and comment may contain anything, even lines that look like other jobs, so they are not requested.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from walltime.slurm.records import SlurmError, parsing
from walltime.slurm_values import Minutes, known, minutes_of, tasks_of, time_of

RUNNING = frozenset({"RUNNING", "CONFIGURING", "SUSPENDED", "SIGNALING", "STAGE_OUT", "STOPPED", "RESIZING"})
ENDED = frozenset(
    {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"}
)
KEY = re.compile(r"[1-9][0-9]{0,11}(_[0-9]{1,9})?")
FIELDS = (
    *("JobArrayID", "State", "UserName", "Account", "Partition", "QOS", "Reason", "TimeLimit", "MinTime"),
    *("SubmitTime", "EligibleTime", "StartTime", "RestartCnt", "NumCPUs", "NumNodes", "PriorityLong", "Deadline", "HetJobID"),
    *("Reservation", "Licenses"),
)
"""The requested fields. Licences come last, because their list may contain the separator."""
FORMAT = ",".join(f"{name}:0|" for name in FIELDS)
"""The value of `squeue --Format`; a width of 0 neither pads nor cuts the values."""
_KEYS = re.compile(r"([0-9]+)(?:\+[0-9]+)?(?:_(?:([0-9]+)|\[([^|]*)\]|.*))?")


@dataclass(slots=True)
class QueueJob:
    """A job of the queue.

    `key`: its number, or `N_M` for a task of an array. `state`: `PENDING`, `RUNNING` or another of Slurm's words. `limit`: minutes, None
    for no limit. `time_min`: minutes, 0 for none. `submit`, `begin` (when it became eligible), `start`: Unix times, 0 while unknown;
    `start` of a waiting job is Slurm's planned start. `restarts`: how often it was put back into the queue.
    """

    key: str
    state: str
    user: str
    account: str
    partitions: tuple[str, ...]
    qos: str
    reason: str
    limit: Minutes
    time_min: int
    submit: int
    begin: int
    start: int
    restarts: int
    procs: int
    nodes: int
    priority: int
    deadline: bool = False
    licences: bool = False
    het: bool = False
    reservation: str = ""

    @property
    def waits(self) -> bool:
        """Return whether the job has not started yet."""
        return self.state == "PENDING"

    @property
    def runs(self) -> bool:
        """Return whether the job holds nodes and its time limit is running."""
        return self.state in RUNNING

    @property
    def ended(self) -> bool:
        """Return whether the job has ended."""
        return self.state in ENDED

    @property
    def held(self) -> bool:
        """Return whether the job is held."""
        return self.priority == 0 or "Held" in self.reason


def check_key(key: str) -> str:
    """Return the key of a job; raises SlurmError for other texts, so that they cannot get onto a command line."""
    if not KEY.fullmatch(key):
        raise SlurmError(f"{key[:40]!r} is not a job number", "wrong_job_number")
    return key


def array_of(key: str) -> str:
    """Return the number of a task's array; empty if the job is not a task."""
    return key.partition("_")[0] if "_" in key else ""


def read_queue(text: str, tasks: int) -> list[QueueJob]:
    """Return the jobs in the output of squeue with FORMAT, the first `tasks` tasks of an array; raises SlurmError."""
    with parsing("squeue"):
        return [job for line in text.splitlines() if line for job in _jobs(line, tasks)]


def _jobs(line: str, tasks: int) -> Iterator[QueueJob]:
    """Yield the jobs of a line, which may describe several waiting tasks of an array."""
    values = line.split("|", len(FIELDS) - 1)
    if len(values) != len(FIELDS) or not line.endswith("|"):
        raise ValueError(line)
    field = dict(zip(FIELDS, values, strict=True))
    for key in _keys(field["JobArrayID"], tasks):
        yield QueueJob(
            key=check_key(key),
            state=field["State"],
            user=field["UserName"],
            account=known(field["Account"]),
            partitions=tuple(field["Partition"].split(",")),
            qos=known(field["QOS"]),
            reason=known(field["Reason"]),
            limit=minutes_of(field["TimeLimit"]),
            time_min=minutes_of(field["MinTime"]) or 0,
            submit=time_of(field["SubmitTime"]),
            begin=time_of(field["EligibleTime"]),
            start=time_of(field["StartTime"]),
            restarts=int(field["RestartCnt"]),
            procs=_count(field["NumCPUs"]),
            nodes=_count(field["NumNodes"]),
            priority=int(field["PriorityLong"]),
            deadline=time_of(field["Deadline"]) > 0,
            licences=bool(known(field["Licenses"].removesuffix("|"))),
            het=known(field["HetJobID"]) not in ("", "0") or "+" in field["JobArrayID"],
            reservation=known(field["Reservation"]),
        )


def _keys(text: str, tasks: int) -> Sequence[str]:
    """Return the keys in texts such as `7`, `7+1` (a heterogeneous job), `7_3`, or `7_[1-9:2,20%3]` (its first `tasks` tasks)."""
    match = _KEYS.fullmatch(text)
    if match is None:
        raise ValueError(text)
    number, task, several = match.groups()
    if task is not None:
        return [f"{number}_{task}"]
    if several is not None:
        return [f"{number}_{each}" for each in tasks_of(several, tasks, cut=True)[0]]
    return [number]


def _count(text: str) -> int:
    """Return a number of nodes or processors; the first number of a range such as `2-4`."""
    match = re.match(r"[0-9]{1,9}(?![0-9])", text)
    return max(int(match[0]), 1) if match else 1
