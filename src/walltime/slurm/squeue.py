"""Read a snapshot's jobs from `squeue --json` of Slurm 22.05 to 26.05, or from text where squeue lacks --json."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Any

from walltime.slurm.snapshot_jobs import LARGEST_COUNT, RUNNING, WAITING, SnapshotJob
from walltime.slurm_values import BLANK, NO_LIMITS, gpu_types_of, gpus_of, minutes_of, number_of, resource_of, tasks_of, text_of, time_of
from walltime.wording import sanitize

BETWEEN = "\x1f"
FIELDS = {
    "%i": "id", "%A": "job_id", "%F": "array_job_id", "%T": "job_state", "%u": "user_name", "%a": "account", "%P": "partition", "%q": "qos",
    "%V": "submit_time", "%S": "start_time", "%l": "time_limit", "%D": "node_count", "%C": "cpus", "%b": "tres_per_node", "%h": "shared",
    "%Q": "priority", "%E": "dependency", "%r": "state_reason", "%v": "resv_name", "%j": "name",
}  # fmt: skip
"""The fields of the text output, and their names in JSON; the job's name comes last, because it may contain any characters."""
NAMES = ("user_name", "account", "partition", "qos", "state_reason", "name")
NUMBERS = ("job_id", "array_job_id", "node_count", "cpus", "priority")
SQUEUE_JSON = ("squeue", "--all", "--json")
SQUEUE_TEXT = ("squeue", "--all", "--noheader", f"--format={BETWEEN.join(FIELDS)}")
MOST_JOBS = 200_000
"""Maximum number of jobs that are read, with tasks of arrays counted one by one."""
_LONGEST = 4096
"""Number of characters to which texts are cut."""
_CLOSED = re.compile(r"Partition(Down|Inactive)")
_HELD = re.compile(r"JobHeld\w*|\w*requeued_held", re.ASCII)


def read_squeue_json(records: Sequence[Any], counts: Counter[str], notes: list[str]) -> list[SnapshotJob]:
    """Return the jobs of these records; count the records left out by rule (SNAPSHOT_RULES), and note the first unreadable ones."""
    return _gather("Record", records, lambda record: _jobs(record, counts), counts, notes)


def read_squeue_text(lines: Sequence[str], counts: Counter[str], notes: list[str], zone: tzinfo = UTC) -> list[SnapshotJob]:
    """Return the jobs of lines printed by SQUEUE_TEXT, as `read_squeue_json` does; `zone`: the zone of local times."""
    return _gather("Line", lines, lambda line: _jobs(_record_of_line(line, zone), counts) if line.strip() else [], counts, notes)


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


def _jobs(record: Any, counts: Counter[str]) -> list[SnapshotJob]:
    """Return the jobs of a JSON record: one, or one for each remaining task of an array; none if the job has ended."""
    if not isinstance(record, Mapping):
        raise ValueError("not a job")

    def whole(name: str) -> int | None:
        value = number_of(record.get(name), name, 0, LARGEST_COUNT - 1)
        return None if value is None or value < 0 else value  # negative: infinite

    def text(name: str) -> str:
        return text_of(record.get(name), name)[:_LONGEST]

    states = record.get("job_state")
    words = {states} if isinstance(states, str) else {str(one) for one in states} if isinstance(states, list) else set()
    number = whole("job_id")
    if not number or not words:
        raise ValueError("job_id or job_state is missing")
    suspended = bool(words & {"SUSPENDED", "STOPPED"})
    if suspended or "COMPLETING" in words or not words & {"RUNNING", "PENDING", "CONFIGURING"}:
        counts["suspended" if suspended else "ended"] += 1
        return []
    waits, start = "PENDING" in words, whole("start_time")
    if not waits and not start:
        raise ValueError(f"the running job {number} has no start")
    array, task, remaining = whole("array_job_id") or None, whole("array_task_id"), text("array_task_string")
    resources = text("tres_req_str") if waits or not text("tres_alloc_str") else text("tres_alloc_str")
    per_node, per_cpu, nodes = text("tres_per_node"), whole("memory_per_cpu") or 0, max(1, whole("node_count") or 1)
    gpus, memory = gpus_of(resources), min(resource_of(resources, "mem") or 0, LARGEST_COUNT - 1)
    spread = any(gpus_of(text(name)) for name in ("tres_per_job", "tres_per_task", "tres_per_socket"))
    limit, least, user, shared = whole("time_limit"), whole("time_minimum") or 0, whole("user_id"), record.get("shared")
    reason, dependency, priority = text("state_reason"), text("dependency"), whole("priority")
    rules = {
        "het": whole("het_job_id"),
        "dependent": dependency or reason.startswith("Dependency"),
        "held": priority == 0 or _HELD.fullmatch(reason),
        "closed": _CLOSED.fullmatch(reason),
    }
    names: dict[str, Any] = {name: text(name) for name in ("account", "partition", "qos", "name")}
    job = SnapshotJob(
        job=number,
        state=WAITING if waits else RUNNING,
        start=None if waits else start,
        expected=(start or None) if waits else None,
        left_out=next((rule for rule, holds in rules.items() if holds and waits), ""),
        user=text("user_name") or ("" if user is None else str(user)),
        **names,
        reservation=text("resv_name"),
        submit=whole("submit_time") or None,
        eligible=whole("eligible_time") or None,
        limit=None if limit is None or limit >= LARGEST_COUNT // 60 else 60 * limit,
        time_min=60 * least if least < LARGEST_COUNT // 60 else 0,
        nodes=nodes,
        cpus=max(1, whole("cpus") or 1),
        gpus=gpus,
        memory_mb=memory,
        node_gpus=0 if not waits else gpus_of(per_node) or (0 if spread else -(-gpus // nodes)),
        node_memory_mb=0 if not waits else whole("memory_per_node") or (0 if per_cpu else -(-memory // nodes)),
        cpu_memory_mb=per_cpu if waits else 0,
        gpu_type=gpu_types_of(resources) or gpu_types_of(per_node),
        constraints=text("features"),
        licences=text("licenses"),
        # since Slurm 26.05, only the command line shows a request for whole nodes
        exclusive="none" in (shared if isinstance(shared, list) else [shared])
        or not {"--exclusive", "--exclusive=exclusive"}.isdisjoint(text("submit_line").partition(" --wrap")[0].split()),
        priority=priority,
        dependency=dependency,
        reason=reason,
        array=array,
        task=task if array is not None else None,
    )
    if not waits or array is None or task is not None or not remaining:
        return [job]
    tasks, most = tasks_of(remaining, MOST_JOBS + 1)
    if len(tasks) > MOST_JOBS:
        return [job] * len(tasks)  # the caller only counts them
    job = replace(job, array_limit=most or whole("array_max_tasks") or 0)
    return [
        replace(job, task=task, expected=None if k else job.expected) for k, task in enumerate(tasks)
    ]  # Slurm prints the expected start of the first task


def _record_of_line(line: str, zone: tzinfo) -> dict[str, Any]:
    values = line.split(BETWEEN, len(FIELDS) - 1)
    if len(values) < len(FIELDS):
        raise ValueError(f"{len(values)} fields, not {len(FIELDS)}")
    field = dict(zip(FIELDS.values(), values, strict=True))
    field |= {name: "" for name, value in field.items() if value in BLANK and name not in NAMES}
    base, _, task = field["id"].partition("_")
    numbers = {name: int(text) if re.fullmatch("[0-9]{1,12}", text := field[name]) else text for name in NUMBERS}
    submit, start = (time_of(field[name], zone) for name in ("submit_time", "start_time"))
    waits, gpus = field["job_state"] == "PENDING", gpus_of(field["tres_per_node"])
    return {
        **field,
        **numbers,
        "job_id": numbers["job_id"] or (int(base) if base.isdecimal() else None),
        "het_job_id": int("+" in field["id"]),
        "array_job_id": numbers["array_job_id"] if task else None,
        "array_task_id": int(task) if task.isdecimal() and len(task) < 10 else None,
        "array_task_string": task if task.startswith("[") else "",
        "submit_time": submit,
        "start_time": start,
        "eligible_time": start if waits and field["state_reason"] == "BeginTime" else submit,
        "time_limit": None if field["time_limit"] in NO_LIMITS else minutes_of(field["time_limit"]),
        "tres_req_str": f"gres/gpu={gpus * max(1, number_of(numbers['node_count'], 'node_count') or 1)}",
        "shared": "none" if field["shared"].upper() in ("NO", "EXCLUSIVE") else "",
    }
