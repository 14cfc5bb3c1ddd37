"""Logs printed by Slurm's `sacct --json`, in the forms of Slurm 22.05 to 26.05."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from walltime.errors import LogError
from walltime.logs.accounting import NO_LIMIT, BadLines, Counts, Names, nothing_left, quoted
from walltime.logs.clock import Local
from walltime.logs.input import LogFile
from walltime.logs.joblog import LogFormat, ReadOptions
from walltime.logs.slurm.fields import BLANK, MOST, STATES, asked_limit, asked_option, state_word
from walltime.logs.slurm.jobs import TEXT_COLUMNS, SlurmJobs, SlurmLog, Steps, slurm_log
from walltime.workload import MISSING

Array = np.ndarray


class _OddError(Exception):
    """A value that cannot be what it should be; the message says which."""


def _number(value: Any, name: str) -> int:
    """A number, given as itself or as an object with `set`, `infinite` and `number`; -1 if unknown, NO_LIMIT if infinite."""
    if isinstance(value, Mapping):
        if value.get("infinite"):
            return NO_LIMIT
        value = value.get("number") if value.get("set") else None
    if value is None or value == "":
        return MISSING
    if isinstance(value, bool) or not isinstance(value, int) or not -MOST < value < MOST:
        raise _OddError(f"{name} is {quoted(str(value))}, it must be a whole number")
    return MISSING if value < 0 else value


def _object(value: Any, name: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _OddError(f"{name} is {quoted(str(value))}, it must be an object")
    return value


def _list(value: Any, name: str) -> Sequence[Any]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise _OddError(f"{name} is {quoted(str(value))}, it must be a list")
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value not in BLANK else ""


def _time(times: Mapping[str, Any], name: str) -> int:
    return _number(times.get(name), f"time.{name}") or MISSING


def _state(job: Mapping[str, Any]) -> str:
    """The word of the state; one of several: a run that was put back into the queue is PENDING and REQUEUED."""
    current = _object(job.get("state"), "state").get("current")
    words = [current] if isinstance(current, str) else list(_list(current, "state.current"))
    for word in words:
        if not isinstance(word, str) or state_word(word) is None:
            raise _OddError(f"state.current is {quoted(str(word))}, it must be a state of Slurm")
    return "REQUEUED" if "REQUEUED" in words else next((word for word in words if word in STATES), "")


def _resources(entries: Any, name: str) -> dict[str, int]:
    """Processors, memory (MB) and GPUs of a list of trackable resources."""
    found: dict[str, int] = {}
    gpus = 0
    for entry in _list(entries, name):
        one = _object(entry, name)
        count = _number(one.get("count"), f"{name}.count")
        if one.get("type") in ("cpu", "mem"):
            found[str(one["type"])] = count
        elif one.get("type") == "gres" and one.get("name") == "gpu":
            found["gpu"] = count
        elif one.get("type") == "gres" and str(one.get("name")).startswith("gpu:") and count > 0:
            gpus += count
    return found | ({"gpu": gpus} if gpus and "gpu" not in found else {})


def _record(job: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str], list[tuple[int, int]]]:
    """The numbers of a job, its texts, and start and time elapsed of its batch steps."""
    times = _object(job["time"], "time")
    got = _resources(_object(job.get("tres"), "tres").get("allocated"), "tres.allocated")
    asked = _resources(_object(job.get("tres"), "tres").get("requested"), "tres.requested")
    needed = _number(_object(job.get("required"), "required").get("CPUs"), "required.CPUs")
    array, het = _object(job.get("array"), "array"), _object(job.get("het"), "het")
    array_job, het_job = (_number(one.get("job_id"), f"{name}.job_id") for one, name in ((array, "array"), (het, "het")))
    code = _object(job.get("exit_code"), "exit_code")
    signal = _object(code.get("signal"), "exit_code.signal")
    exit_code = _number(code.get("return_code"), "exit_code.return_code")
    exit_signal = _number(signal.get("id", signal.get("signal_id")), "exit_code.signal.id")
    flags = _list(job.get("flags"), "flags")
    word = _state(job)
    number = _number(job.get("job_id"), "job_id")
    limit = NO_LIMIT if "limit" in times and times["limit"] is None else _number(times.get("limit"), "time.limit")
    processors = asked.get("cpu", needed)
    memory = asked.get("mem", MISSING)
    line = _text(job.get("submit_line"))
    started = {"STARTED_ON_BACKFILL": 1, "STARTED_ON_SCHEDULE": 0, "STARTED_ON_SUBMIT": 0}
    numbers = {
        "key": number,
        **{name: _time(times, spelled) for name, spelled in _TIMES.items()},
        "elapsed": _number(times.get("elapsed"), "time.elapsed"),
        "requested": limit if limit == NO_LIMIT else limit * 60 if limit > 0 else MISSING,
        "asked": (asked_limit(line) or MISSING) if "--time-min" in line else MISSING,
        "status": STATES.get(word, MISSING),
        "requeued": int(word == "REQUEUED"),
        "allocated": got.get("cpu", MISSING),
        "needed": needed,
        "c:job_id": number,
        "c:array_job": array_job or MISSING,
        "c:array_task": _number(array.get("task_id"), "array.task_id") if array_job > 0 else MISSING,
        "c:het_job": het_job or MISSING,
        "c:nodes": _number(job.get("allocation_nodes"), "allocation_nodes"),
        "c:priority": _number(job.get("priority"), "priority"),
        "c:time_min": (asked_limit(line, "--time-min") or MISSING) if "--time-min" in line else MISSING,
        "c:exclusive": 1 if "--exclusive" in line and asked_option(line, "--exclusive") == "" else MISSING,
        "c:restarts": _number(job.get("restart_cnt"), "restart_cnt"),
        "c:requested_memory": memory * 1024 / processors if memory > 0 and processors > 0 else MISSING,
        "c:mem_mb": got["mem"] if got.get("mem", 0) > 0 else memory,
        "c:gpus": got.get("gpu", asked.get("gpu", MISSING)),
        # Slurm 22.05 says 0 of every job
        "c:exit_code": MISSING if word == "FAILED" and exit_code == 0 and exit_signal <= 0 else exit_code,
        "c:exit_signal": exit_signal,
        "c:sched_backfill": next((started[flag] for flag in flags if isinstance(flag, str) and flag in started), MISSING),
    }
    texts = {name: _text(job.get(name)) for name in ("account", "qos", "partition", "cluster")}
    texts["user"] = _text(job.get("user")) or _text(_object(job.get("association"), "association").get("user"))
    texts["jobname"], texts["state"] = _text(job.get("name")), word
    texts["reason"] = _text(_object(job.get("state"), "state").get("reason"))
    texts["reservation"] = _text(_object(job.get("reservation"), "reservation").get("name"))
    return numbers, texts, _batch_steps(job)


_HEAD = re.compile(rb'\A\s*+\{(?=.*"jobs")(?=(?i:.*slurm))', re.DOTALL)
_TIMES = {"submit": "submission", "eligible": "eligible", "start": "start", "end": "end"}


def _batch_steps(job: Mapping[str, Any]) -> list[tuple[int, int]]:
    found = []
    for entry in _list(job.get("steps"), "steps"):
        step = _object(entry, "steps")
        if str(_object(step.get("step"), "step").get("id")).rpartition(".")[2] == "batch":
            times = _object(step.get("time"), "steps.time")
            found.append((_time(times, "start"), _number(times.get("elapsed"), "steps.time.elapsed")))
    return found


def _jobs(file: LogFile) -> list[Any]:
    content = b"".join(file.chunks())
    try:
        document = json.loads(content)
    except json.JSONDecodeError as error:
        raise LogError(f"{file.where}:{error.lineno}: is no JSON ({error.msg}); print the log again") from error
    except (ValueError, RecursionError) as error:  # such as bytes that are no text, or a number of thousands of digits
        raise LogError(f"{file.where}: is no JSON ({type(error).__name__}); print the log again") from error
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list):
        raise LogError(f"{file.where}: has no list of jobs; print it with sacct --json")
    if jobs and all(isinstance(job, dict) and "time" not in job and "submit_time" in job for job in jobs):
        raise LogError(f"{file.where}: these are the jobs of squeue --json, which have not ended; print the log with sacct --json")
    return jobs


def _read(file: LogFile, options: ReadOptions) -> SlurmLog:
    counts, bad = Counts(), BadLines(file, options, "record")
    rows: list[dict[str, Any]] = []
    texts: list[dict[str, str]] = []
    steps: list[tuple[int, int, int]] = []
    for place, job in enumerate(_jobs(file), 1):
        try:
            if not isinstance(job, Mapping) or "time" not in job:
                raise _OddError("it is no job of sacct --json")
            numbers, words, batch = _record(job)
            if numbers["key"] < 0:
                raise _OddError("job_id is unknown")
        except _OddError as error:
            bad.add(place, str(error), json.dumps(job)[:200])
            continue
        rows.append(numbers)
        texts.append(words)
        steps.extend((numbers["key"], *step) for step in batch if step[0] >= 0)
    if not rows:
        raise LogError(nothing_left(file, counts, bad.lines))
    whole = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    names = {column: Names() for column in TEXT_COLUMNS.values()}
    for name, column in TEXT_COLUMNS.items():
        whole[f"c:{column}"] = names[column].numbers([row[name] for row in texts])
    times = {name: Local.exact(whole[name]) for name in _TIMES}
    parts = np.array(steps, np.int64).reshape(-1, 3).T
    local = np.zeros(len(rows), bool)
    used = {column: known.texts for column, known in names.items()}
    return slurm_log(SlurmJobs.of(times, whole), Steps(*parts), file, options, used, counts, bad.lines, local)


SLURM_JSON = LogFormat("slurm-json", "Slurm's sacct --json", (".json",), _HEAD, _read)
"""What `sacct --json` prints; its rules are those of `walltime.logs.slurm.table.SLURM`."""
