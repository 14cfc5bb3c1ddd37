"""Read a snapshot's jobs from `squeue --json` of Slurm 22.05 to 26.05, or from text where squeue has no --json."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Any

from walltime.durations import seconds_of
from walltime.slurm.snapshot_jobs import LARGEST_COUNT, RUNNING, WAITING, SnapshotJob
from walltime.slurm_values import (
    BLANK,
    NO_LIMITS,
    UNLIMITED,
    OddError,
    gpus_of,
    known,
    number_of,
    resource_of,
    tasks_of,
    text_of,
    time_of,
)
from walltime.wording import sanitize

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
"""The fields of the text; the job's name, which may contain any characters, comes last."""
NAMES = ("user", "account", "partition", "qos", "reason")
SQUEUE_JSON = ("squeue", "--all", "--json")
SQUEUE_TEXT = ("squeue", "--all", "--noheader", f"--format={BETWEEN.join(FIELDS)}")
MOST_JOBS = 200_000
"""The most jobs of a queue that are read, tasks of arrays counted one by one."""
_LONGEST = 4096
"""Longer texts are cut to this many characters."""
_HELD = re.compile(r"JobHeld\w*|\w*requeued_held", re.ASCII)


def read_squeue_json(records: Sequence[Any], counts: Counter[str], notes: list[str]) -> list[SnapshotJob]:
    """Return the jobs of these records; count records that are left out by SNAPSHOT_RULES, and note the first bad ones."""
    return _gather("Record", records, lambda record: _json_jobs(record, counts), counts, notes)


def read_squeue_text(lines: Sequence[str], counts: Counter[str], notes: list[str], zone: tzinfo = UTC) -> list[SnapshotJob]:
    """Return the jobs of lines printed by SQUEUE_TEXT, as `read_squeue_json` does; `zone`: for local times."""
    return _gather("Line", lines, lambda line: _text_jobs(line, counts, zone) if line.strip() else [], counts, notes)


def _gather(
    unit: str, records: Sequence[Any], read: Callable[[Any], list[SnapshotJob]], counts: Counter[str], notes: list[str]
) -> list[SnapshotJob]:
    jobs: list[SnapshotJob] = []
    for place, record in enumerate(records, 1):
        try:
            more = read(record)
        except ValueError as error:
            counts["bad_record"] += 1
            if counts["bad_record"] <= 3:
                notes.append(f"{unit} {place} of squeue: {sanitize(str(error), 200)}.")
            continue
        if len(jobs) + len(more) > MOST_JOBS:
            counts["too_many_tasks"] += len(more) if len(more) <= MOST_JOBS else 1
            continue
        jobs += more
    return jobs


def _is_over(states: set[str], counts: Counter[str]) -> bool:
    """Whether a job neither runs nor waits; counts it."""
    if states & {"SUSPENDED", "STOPPED"}:
        counts["suspended"] += 1
    elif "COMPLETING" in states or not states & {"RUNNING", "PENDING", "CONFIGURING"}:
        counts["ended"] += 1
    else:
        return False
    return True


def _jobs(
    number: int | None, waits: bool, start: int | None, het: bool, tasks: tuple[list[int], int] | None, **values: Any
) -> list[SnapshotJob]:
    """Return the jobs of a record: one, or one for each of an array's remaining tasks.

    `tasks`: their numbers, and how many may run at a time (0 for any number). Slurm's expected start holds for the first task only.
    """
    if not number or (not waits and not start):
        raise OddError(f"the running job {number} has no start" if number else "the job has no number")
    job = SnapshotJob(
        job=number,
        state=WAITING if waits else RUNNING,
        start=None if waits else start,
        expected=(start or None) if waits else None,
        left_out=exclusion_rule(values["reason"], values["dependency"], values["priority"], het) if waits else "",
        **values,
    )
    if tasks is None:
        return [job]
    if len(tasks[0]) > MOST_JOBS:
        return [job] * len(tasks[0])  # they are only counted
    return [replace(job, task=task, array_limit=tasks[1], expected=job.expected if k == 0 else None) for k, task in enumerate(tasks[0])]


def exclusion_rule(reason: str, dependency: str, priority: int | None, het: bool) -> str:
    """Return the rule by which a waiting job is not simulated; empty if it is.

    >>> exclusion_rule("Priority", "", 5, False), exclusion_rule("Dependency", "afterok:3", 5, False)
    ('', 'dependent')
    """
    if het:
        return "het"
    if reason.startswith("Dependency") or known(dependency):
        return "dependent"
    return "held" if priority == 0 or _HELD.fullmatch(reason) else ""


def _json_jobs(record: Any, counts: Counter[str]) -> list[SnapshotJob]:
    """Return the jobs of a record of JSON; none if it has ended."""
    if not isinstance(record, Mapping):
        raise OddError("not a job")

    def whole(name: str) -> int | None:
        value = number_of(record.get(name), name, 0, LARGEST_COUNT - 1)
        return None if value == UNLIMITED else value

    def text(name: str) -> str:
        return text_of(record.get(name), name)[:_LONGEST]

    states = record.get("job_state")
    words = {states} if isinstance(states, str) else {str(one) for one in states} if isinstance(states, list) else set()
    number = whole("job_id")
    if not number or not words:
        raise OddError("job_id or job_state is missing")
    if _is_over(words, counts):
        return []
    waits = "PENDING" in words
    array, task, remaining = whole("array_job_id") or None, whole("array_task_id"), text("array_task_string")
    tasks = None
    if waits and array is not None and task is None and remaining:
        numbers, most = tasks_of(remaining, MOST_JOBS + 1)
        tasks = numbers, most or whole("array_max_tasks") or 0
    resources = text("tres_req_str") if waits or not text("tres_alloc_str") else text("tres_alloc_str")
    nodes, memory = max(1, whole("node_count") or 1), min(resource_of(resources, "mem") or 0, LARGEST_COUNT - 1)
    spread = any(gpus_of(text(name)) for name in ("tres_per_job", "tres_per_task", "tres_per_socket"))
    limit, least, user = whole("time_limit"), whole("time_minimum") or 0, whole("user_id")
    shared = record.get("shared")
    return _jobs(
        number,
        waits,
        whole("start_time"),
        bool(whole("het_job_id")),
        tasks,
        user=text("user_name") or ("" if user is None else str(user)),
        account=text("account"),
        partition=text("partition"),
        qos=text("qos"),
        name=text("name"),
        submit=whole("submit_time") or None,
        eligible=whole("eligible_time") or None,
        limit=None if limit is None or limit >= LARGEST_COUNT // 60 else 60 * limit,
        time_min=60 * least if least < LARGEST_COUNT // 60 else 0,
        nodes=nodes,
        cpus=max(1, whole("cpus") or 1),
        gpus=gpus_of(resources),
        memory_mb=memory,
        node_gpus=0 if not waits else gpus_of(text("tres_per_node")) or (0 if spread else -(-gpus_of(resources) // nodes)),
        node_memory_mb=0 if not waits else whole("memory_per_node") or (0 if whole("memory_per_cpu") else -(-memory // nodes)),
        # from 26.05 on, only the command line shows a request for whole nodes
        exclusive="none" in (shared if isinstance(shared, list) else [shared])
        or not {"--exclusive", "--exclusive=exclusive"}.isdisjoint(text("submit_line").partition(" --wrap")[0].split()),
        priority=whole("priority"),
        dependency=text("dependency"),
        reason=text("state_reason"),
        array=array,
        task=task if array is not None else None,
    )


def _text_jobs(line: str, counts: Counter[str], zone: tzinfo) -> list[SnapshotJob]:
    """Return the jobs of a line of text; none if it has ended."""
    values = line.split(BETWEEN, len(FIELDS) - 1)
    if len(values) < len(FIELDS):
        raise OddError(f"{len(values)} fields, not {len(FIELDS)}")
    field = dict(zip(FIELDS.values(), values, strict=True))
    field |= {name: known(value) if name in NAMES else "" if value in BLANK else value for name, value in field.items() if name != "name"}
    if _is_over({field["state"]}, counts):
        return []

    def whole(name: str) -> int | None:
        if field[name] and not (field[name].isascii() and field[name].isdecimal() and len(field[name]) <= 12):
            raise OddError(f"{name} must be a whole number, not {sanitize(field[name])!r}")
        return int(field[name]) if field[name] else None

    waits = field["state"] == "PENDING"
    base, _, task = field["id"].partition("_")
    start, submit, nodes = time_of(field["start"], zone) or None, time_of(field["submit"], zone) or None, max(1, whole("nodes") or 1)
    return _jobs(
        whole("job") or (int(base) if base.isdecimal() else None),
        waits,
        start,
        "+" in field["id"],
        tasks_of(task, MOST_JOBS + 1) if waits and task.startswith("[") else None,
        user=field["user"],
        account=field["account"],
        partition=field["partition"],
        qos=field["qos"],
        name=field["name"],
        submit=submit,
        eligible=start if waits and field["reason"] == "BeginTime" else submit,
        limit=None if field["limit"] in ("", *NO_LIMITS, "NOT_SET") else seconds_of(field["limit"]),
        nodes=nodes,
        cpus=max(1, whole("cpus") or 1),
        gpus=gpus_of(field["gres"]) * nodes,
        node_gpus=gpus_of(field["gres"]) if waits else 0,
        exclusive=field["shared"].upper() in ("NO", "EXCLUSIVE"),
        priority=whole("priority"),
        dependency=field["dependency"],
        reason=field["reason"],
        array=whole("array") if task else None,
        task=int(task) if task.isdecimal() and len(task) < 10 else None,
    )
