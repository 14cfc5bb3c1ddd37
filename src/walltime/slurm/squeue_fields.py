"""Jobs as `squeue --Format` shows them, of Slurm 22.05 and later, in fields that no user can write text into.

A job's name, its command line and its comment may contain anything, also lines that look like other jobs; so they are not asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from walltime.slurm.records import SlurmError
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
"""What is asked for. Licences stand last, as their list may have the separator in it."""
FORMAT = ",".join(f"{name}:0|" for name in FIELDS)
"""A width of 0 neither fills up nor cuts off."""
_KEYS = re.compile(r"([0-9]+)(?:\+[0-9]+)?(?:_(?:([0-9]+)|\[([^|]*)\]|.*))?")


@dataclass(slots=True)
class QueueJob:
    """A job of the queue.

    `key`: its number, or `N_M` for a task of an array. `state`: `PENDING`, `RUNNING` or another word. `limit`: minutes, None if it has
    none. `time_min`: minutes, 0 if none is set. `submit`, `begin`, `start`: Unix times, 0 while unknown; `start` of a waiting job is when
    Slurm means to start it. `restarts`: how often it was put back into the queue. `partitions`: one or several.
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
        """Whether it has not started."""
        return self.state == "PENDING"

    @property
    def runs(self) -> bool:
        """Whether it holds nodes and its limit counts."""
        return self.state in RUNNING

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self.state in ENDED

    @property
    def held(self) -> bool:
        """Whether it waits for somebody to release it."""
        return self.priority == 0 or "Held" in self.reason


def check_key(key: str) -> str:
    """The key of a job; raises SlurmError if it is none, so that nothing else gets onto a command line."""
    if not KEY.fullmatch(key):
        raise SlurmError(f"{key[:40]!r} is no number of a job", "wrong_job_number")
    return key


def array_of(key: str) -> str:
    """The number of the array that a task belongs to; empty for other jobs.

    >>> array_of("7_3"), array_of("7")
    ('7', '')
    """
    return key.partition("_")[0] if "_" in key else ""


def read_queue(text: str, tasks: int) -> list[QueueJob]:
    """The jobs; raises SlurmError if it is no output of squeue with FORMAT."""
    try:
        return [job for line in text.splitlines() if line for job in _jobs(line, tasks)]
    except (ValueError, KeyError) as error:
        raise SlurmError(f"squeue: cannot be understood ({type(error).__name__}: {str(error)[:80]})", "unknown_output") from error


def _jobs(line: str, tasks: int) -> Iterator[QueueJob]:
    """The jobs of a line, which may stand for the waiting tasks of an array."""
    values = line.split("|", len(FIELDS) - 1)
    if len(values) != len(FIELDS) or not line.endswith("|"):
        raise ValueError(line)
    of = dict(zip(FIELDS, values, strict=True))
    for key in _keys(of["JobArrayID"], tasks):
        yield QueueJob(
            key=check_key(key),
            state=of["State"],
            user=of["UserName"],
            account=known(of["Account"]),
            partitions=tuple(of["Partition"].split(",")),
            qos=known(of["QOS"]),
            reason=known(of["Reason"]),
            limit=minutes_of(of["TimeLimit"]),
            time_min=minutes_of(of["MinTime"]) or 0,
            submit=time_of(of["SubmitTime"]),
            begin=time_of(of["EligibleTime"]),
            start=time_of(of["StartTime"]),
            restarts=int(of["RestartCnt"]),
            procs=_count(of["NumCPUs"]),
            nodes=_count(of["NumNodes"]),
            priority=int(of["PriorityLong"]),
            deadline=time_of(of["Deadline"]) > 0,
            licences=bool(known(of["Licenses"].removesuffix("|"))),
            het=known(of["HetJobID"]) not in ("", "0") or "+" in of["JobArrayID"],
            reservation=known(of["Reservation"]),
        )


def _keys(text: str, tasks: int) -> Sequence[str]:
    """The keys of a line, such as `7`, `7+1` of a heterogeneous job, `7_3`, or `7_[1-9:2,20%3]` of which the first ones are taken."""
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
    """A number of nodes or processors; of a range such as `2-4` the first one.

    >>> _count("16"), _count("2-4"), _count("1K")
    (16, 2, 1)
    """
    match = re.match(r"[0-9]+", text)
    return max(int(match[0]), 1) if match else 1
