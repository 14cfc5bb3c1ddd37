"""What `squeue --json` says of the jobs, in the forms of Slurm 22.05 (plain numbers) to 26.05 (objects and lists)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from walltime.slurm.jobs import MOST, RUNNING, WAITING, SnapshotJob, expanded, gather, gpus_of, memory_of, tasks_of, why_left_out
from walltime.wording import harmless

_LONGEST = 4096
"""A text of more characters is cut."""


class _OddError(ValueError):
    """A value that cannot be what it should be."""


def read_squeue_json(records: Sequence[Any], counts: Counter[str], notes: list[str]) -> list[SnapshotJob]:
    """The jobs of these records; what is left out is counted by SNAPSHOT_RULES, and the first bad records are noted."""
    return gather("Record", records, lambda record: _job(record, counts), counts, notes)


def _job(record: Any, counts: Counter[str]) -> list[SnapshotJob]:
    """The jobs of a record: none if it has ended, several if it is the rest of an array."""
    if not isinstance(record, Mapping):
        raise _OddError("it is no job")
    states = record.get("job_state")
    words = {states} if isinstance(states, str) else {str(one) for one in states} if isinstance(states, list) else set()
    number = _whole(record, "job_id")
    if not number or not words:
        raise _OddError("it has no job_id or no job_state")
    if "SUSPENDED" in words or "STOPPED" in words:
        counts["suspended"] += 1
        return []
    if "COMPLETING" in words or not words & {"RUNNING", "PENDING", "CONFIGURING"}:
        counts["ended"] += 1
        return []
    waits = "PENDING" in words
    array, task = _whole(record, "array_job_id") or None, _whole(record, "array_task_id")
    asked, given = _text(record, "tres_req_str"), _text(record, "tres_alloc_str")
    resources = asked if waits or not given else given
    limit = _whole(record, "time_limit")
    start = _whole(record, "start_time") or None
    shared = record.get("shared")
    reason = _text(record, "state_reason")
    priority = _whole(record, "priority")
    minutes = _whole(record, "time_minimum")
    if not waits and start is None:
        raise _OddError(f"job {number} runs, and has no start_time")
    job = SnapshotJob(
        job=number,
        state=WAITING if waits else RUNNING,
        user=_text(record, "user_name") or _user_id(record),
        account=_text(record, "account"),
        partition=_text(record, "partition"),
        qos=_text(record, "qos"),
        name=_text(record, "name"),
        submit=_whole(record, "submit_time") or None,
        eligible=_whole(record, "eligible_time") or None,
        start=None if waits else start,
        expected=start if waits else None,
        limit=None if limit is None or limit >= MOST // 60 else 60 * limit,
        time_min=60 * (minutes or 0) if (minutes or 0) < MOST // 60 else 0,
        nodes=max(1, _whole(record, "node_count") or 1),
        cpus=max(1, _whole(record, "cpus") or 1),
        gpus=gpus_of(resources),
        memory_mb=memory_of(resources),
        exclusive="none" in (shared if isinstance(shared, list) else [shared]) or _asks_for_nodes(record),
        priority=priority,
        dependency=_text(record, "dependency"),
        reason=reason,
        array=array,
        task=task if array is not None else None,
        left_out=why_left_out(reason, _text(record, "dependency"), priority, bool(_whole(record, "het_job_id"))) if waits else "",
    )
    text = _text(record, "array_task_string")
    if not (waits and array is not None and task is None and text):
        return [job]
    tasks, most = tasks_of(text)
    return list(expanded(job, tasks, most or _whole(record, "array_max_tasks") or 0))


def _whole(record: Mapping[str, Any], name: str) -> int | None:
    """A number, given as itself or as an object with `set`, `infinite` and `number`; None if it is not set."""
    value = record.get(name)
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST:
        raise _OddError(f"{name} is {harmless(str(value))!r}, it must be a whole number")
    return value


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _OddError(f"{name} is {harmless(str(value))!r}, it must be a text")
    return "" if value in ("(null)", "N/A") else value[:_LONGEST]


def _asks_for_nodes(record: Mapping[str, Any]) -> bool:
    """Whether the command line asks for whole nodes: from 26.05 on, squeue says so nowhere else."""
    words = _text(record, "submit_line").partition(" --wrap")[0].split()
    return "--exclusive" in words or "--exclusive=exclusive" in words


def _user_id(record: Mapping[str, Any]) -> str:
    number = _whole(record, "user_id")
    return "" if number is None else str(number)
