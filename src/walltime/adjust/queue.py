"""Jobs as `squeue --json` shows them, of Slurm 22.05 and later."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from walltime.adjust.facts import Minutes, SlurmError

RUNNING = frozenset({"RUNNING", "CONFIGURING", "SUSPENDED", "SIGNALING", "STAGE_OUT", "STOPPED", "RESIZING"})
KEY = re.compile(r"[1-9][0-9]{0,11}(_[0-9]{1,9})?")
_PART = re.compile(r"([0-9]+)(?:-([0-9]+)(?::([0-9]+))?)?")


@dataclass(frozen=True)
class QueuedJob:
    """A job of the queue.

    `key`: its number, or `N_M` for a task of an array. `state`: `PENDING`, `RUNNING` or another word. `limit`: minutes, None if it has
    none. `time_min`: minutes, 0 if none is set. `submit`, `begin`, `start`: Unix times, 0 while unknown. `restarts`: how often it was
    put back into the queue. `partitions`: one or several.
    """

    key: str
    state: str
    user: str
    account: str
    partitions: tuple[str, ...]
    qos: str
    name: str
    reason: str
    limit: Minutes
    time_min: int
    submit: int
    begin: int
    start: int
    restarts: int
    procs: int
    held: bool = False
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


def check_key(key: str) -> str:
    """The key of a job; raises SlurmError if it is none, so that nothing else gets onto a command line."""
    if not KEY.fullmatch(key):
        raise SlurmError(f"{key[:40]!r} is no number of a job")
    return key


def array_of(key: str) -> str:
    """The number of the array that a task belongs to; empty for other jobs.

    >>> array_of("7_3"), array_of("7")
    ('7', '')
    """
    return key.partition("_")[0] if "_" in key else ""


def read_queue(text: str, tasks: int) -> list[QueuedJob]:
    """The jobs; raises SlurmError if it is no output of squeue."""
    try:
        document = json.loads(text)
        return [job for record in document["jobs"] for job in _jobs(record, tasks)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SlurmError(f"squeue --json: cannot be understood ({type(error).__name__}: {str(error)[:80]})") from error


def _jobs(record: Mapping[str, Any], tasks: int) -> Iterator[QueuedJob]:
    """The jobs of a record, which may stand for the waiting tasks of an array."""
    number, array, task = str(int(record["job_id"])), _number(record["array_job_id"]), _number(record["array_task_id"])
    if array and task is not None:
        keys = [f"{array}_{task}"]
    elif array and record.get("array_task_string"):
        keys = [f"{array}_{each}" for each in _first_tasks(str(record["array_task_string"]), tasks)]
    else:
        keys = [number]
    states = record["job_state"]
    state = str(states[0] if isinstance(states, list) else states)
    if isinstance(states, list) and state == "RUNNING" and "CONFIGURING" in states:
        state = "CONFIGURING"  # its prolog has not ended
    if isinstance(states, list) and "COMPLETING" in states:
        state = "COMPLETING"
    priority = _number(record["priority"])
    for key in keys:
        yield QueuedJob(
            key=check_key(key),
            state=state,
            user=str(record["user_name"]),
            account=str(record["account"] or ""),
            partitions=tuple(str(record["partition"]).split(",")),
            qos=str(record["qos"] or ""),
            name=str(record["name"] or ""),
            reason=str(record["state_reason"] or ""),
            limit=_number(record["time_limit"]),
            time_min=_number(record["time_minimum"]) or 0,
            submit=_number(record["submit_time"]) or 0,
            begin=_number(record["eligible_time"]) or 0,
            start=_number(record["start_time"]) or 0,
            restarts=_number(record["restart_cnt"]) or 0,
            procs=_number(record["cpus"]) or 1,
            held=priority == 0 or bool(record.get("hold")) or "Held" in str(record["state_reason"] or ""),
            deadline=bool(_number(record["deadline"])),
            licences=bool(record["licenses"]),
            het=bool(_number(record["het_job_id"])),
            reservation=str(record["resv_name"] or ""),
        )


def _number(value: Any) -> int | None:
    """A number as 22.05 writes it, or as an object since; None if it is not set or infinite."""
    if isinstance(value, Mapping):
        return int(value["number"]) if value["set"] and not value["infinite"] else None
    return None if value is None else int(value)


def _first_tasks(text: str, most: int) -> Iterator[int]:
    """The first numbers of a list such as `1-9:2,20%3`; of one that is cut off, those that are surely whole."""
    count = 0
    for part in text.partition("%")[0].strip("[]").split(","):
        match = _PART.fullmatch(part)
        if match is None:
            return
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        for task in range(first, last + 1, max(step, 1)):
            if count == most:
                return
            count += 1
            yield task
