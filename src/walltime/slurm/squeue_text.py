"""What `squeue --format` says of the jobs, where squeue has no --json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

from walltime.machine.machine import length_of
from walltime.slurm.jobs import RUNNING, WAITING, SnapshotJob, expanded, gather, gpus_of, tasks_of, why_left_out
from walltime.wording import harmless

BETWEEN = "\x1f"
FIELDS = {
    "%i": "id",
    "%A": "job",
    "%F": "array",
    "%T": "state",
    "%u": "user",
    "%a": "account",
    "%P": "partition",
    "%q": "qos",
    "%V": "submit",
    "%S": "start",
    "%l": "limit",
    "%D": "nodes",
    "%C": "cpus",
    "%b": "gres",
    "%h": "shared",
    "%Q": "priority",
    "%E": "dependency",
    "%r": "reason",
    "%j": "name",
}
"""The fields that are asked for; the job's name, which may contain anything, stands last."""
FORMAT = BETWEEN.join(FIELDS)
_NONE = ("", "N/A", "(null)", "n/a", "NONE", "Unknown")


def read_squeue_text(lines: Sequence[str], counts: Counter[str], notes: list[str], zone: tzinfo = UTC) -> list[SnapshotJob]:
    """The jobs of these lines, printed with FORMAT; `zone`: of local times, where they are no Unix times."""
    return gather("Line", lines, lambda line: _job(line, counts, zone) if line.strip() else [], counts, notes)


def _job(line: str, counts: Counter[str], zone: tzinfo) -> list[SnapshotJob]:
    values = line.split(BETWEEN, len(FIELDS) - 1)
    if len(values) < len(FIELDS):
        raise ValueError(f"it has {len(values)} fields, not {len(FIELDS)}")
    of = dict(zip(FIELDS.values(), values, strict=True))
    state = of["state"]
    if state == "SUSPENDED":
        counts["suspended"] += 1
        return []
    if state not in ("PENDING", "RUNNING", "CONFIGURING"):
        counts["ended"] += 1
        return []
    waits = state == "PENDING"
    start = _time(of["start"], zone)
    nodes = _whole(of["nodes"], "nodes")
    array = _whole(of["array"], "array")
    base, _, task = of["id"].partition("_")
    number = _whole(of["job"], "job") or _whole(base, "job")
    if not number or (not waits and start is None):
        raise ValueError("it has no number, or runs and has no start")
    priority = _whole(of["priority"], "priority")
    dependency = _known(of["dependency"])
    gres = gpus_of(of["gres"])
    job = SnapshotJob(
        job=number,
        state=WAITING if waits else RUNNING,
        user=_known(of["user"]),
        account=_known(of["account"]),
        partition=_known(of["partition"]),
        qos=_known(of["qos"]),
        reason=_known(of["reason"]),
        name=of["name"],
        submit=_time(of["submit"], zone),
        eligible=start if waits and of["reason"] == "BeginTime" else _time(of["submit"], zone),
        start=None if waits else start,
        expected=start if waits else None,
        limit=None if of["limit"] in (*_NONE, "UNLIMITED", "INFINITE", "INVALID", "NOT_SET") else length_of(of["limit"]),
        nodes=max(1, nodes or 1),
        cpus=max(1, _whole(of["cpus"], "cpus") or 1),
        gpus=gres * max(1, nodes or 1),
        exclusive=of["shared"].upper() in ("NO", "EXCLUSIVE"),
        priority=priority,
        dependency=dependency,
        left_out=why_left_out(of["reason"], dependency, priority, "+" in of["id"]) if waits else "",
        array=array if task else None,
        task=int(task) if task.isdecimal() and len(task) < 10 else None,
    )
    if not (waits and task.startswith("[")):
        return [job]
    return list(expanded(job, *tasks_of(task)))


def _known(text: str) -> str:
    return "" if text in _NONE else text


def _whole(text: str, name: str) -> int | None:
    if text in _NONE:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 12:
        raise ValueError(f"{name} is {harmless(text)!r}, it must be a whole number")
    return int(text)


def _time(text: str, zone: tzinfo) -> int | None:
    if text in _NONE:
        return None
    if text.isascii() and text.isdecimal() and len(text) < 13:
        return int(text) or None
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp())
