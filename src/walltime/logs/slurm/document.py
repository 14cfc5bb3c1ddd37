"""Logs printed by Slurm's `sacct --json`, in the versions of Slurm 22.05 to 26.05; their jobs become rows of the table of `sacct -P`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime.errors import LogError
from walltime.lazy import LaterModule
from walltime.logs.batch_systems import Counts
from walltime.logs.input import LogFile
from walltime.logs.joblog import BadLines, LogFormat, ReadOptions
from walltime.logs.slurm.fields import STATES, state_word
from walltime.logs.slurm.jobs import SlurmLog
from walltime.logs.slurm.table import RecordReader, RecordTable
from walltime.slurm_values import BLANK, UNLIMITED, OddError, elements, members, number_of
from walltime.wording import quoted

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LaterModule("polars")

_HEAD = re.compile(rb'\A\s*+\{(?=.*"jobs")(?=(?i:.*slurm))', re.DOTALL)
TIMES = {"submit": "submission", "eligible": "eligible", "start": "start", "end": "end"}
STARTED = {"STARTED_ON_BACKFILL": "SchedBackfill", "STARTED_ON_SCHEDULE": "SchedMain", "STARTED_ON_SUBMIT": "SchedSubmit"}


def _number(value: Any, name: str) -> str:
    """A number from 0 up, as text; empty if unknown."""
    number = number_of(value, name)
    return "" if number is None or number < 0 else str(number)


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value not in BLANK else ""


def _state(job: Mapping[str, Any]) -> str:
    """The state, or one of several: a run that was put back into the queue is PENDING and REQUEUED."""
    current = members(job.get("state"), "state").get("current")
    words = [current] if isinstance(current, str) else list(elements(current, "state.current"))
    for word in words:
        if not isinstance(word, str) or state_word(word) is None:
            raise OddError(f"state.current is {quoted(str(word))}; it must be a state of Slurm")
    return "REQUEUED" if "REQUEUED" in words else next((word for word in words if word in STATES), "")


def _resources(entries: Any, name: str, processors: str) -> str:
    """Processors, memory and GPUs in a list of trackable resources, as in sacct's text; `processors`: the default if the list has none."""
    counts = {"cpu": processors} if processors else {}
    gpus = 0
    for entry in elements(entries, name):
        one = members(entry, name)
        kind, of, count = one.get("type"), str(one.get("name")), _number(one.get("count"), f"{name}.count")
        if not count:
            continue
        if kind in ("cpu", "mem"):
            counts[str(kind)] = count + "M" * (kind == "mem")
        elif kind == "gres" and of == "gpu":
            counts["gres/gpu"] = count
        elif kind == "gres" and of.startswith("gpu:"):
            gpus += int(count)
    if gpus and "gres/gpu" not in counts:
        counts["gres/gpu"] = str(gpus)
    return ",".join(f"{name}={count}" for name, count in counts.items())


def _row(job: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a job, as in sacct's text."""
    times, tres = members(job["time"], "time"), members(job.get("tres"), "tres")
    array, het = members(job.get("array"), "array"), members(job.get("het"), "het")
    number, needed = _number(job.get("job_id"), "job_id"), _number(members(job.get("required"), "required").get("CPUs"), "required.CPUs")
    if not number:
        raise OddError("job_id is unknown")
    array_job, het_job = int(_number(array.get("job_id"), "array.job_id") or 0), int(_number(het.get("job_id"), "het.job_id") or 0)
    task = _number(array.get("task_id"), "array.task_id") if array_job else ""
    code = members(job.get("exit_code"), "exit_code")
    signal = members(code.get("signal"), "exit_code.signal")
    exit_code = _number(code.get("return_code"), "exit_code.return_code")
    exit_signal = _number(signal.get("id", signal.get("signal_id")), "exit_code.signal.id")
    state = _state(job)
    if state == "FAILED" and exit_code == "0" and exit_signal in ("", "0"):
        exit_code = ""  # Slurm 22.05 writes 0 for every job
    limit = number_of(times["limit"], "time.limit") if times.get("limit") is not None else UNLIMITED if "limit" in times else None
    allocated = _resources(tres.get("allocated"), "tres.allocated", "")
    return {
        "jobidraw": number,
        "jobid": f"{array_job}_{task or '[]'}" if array_job else f"{het_job}+0" if het_job else number,
        **{name: _number(times.get(there), f"time.{there}") for name, there in TIMES.items()},
        "elapsedraw": _number(times.get("elapsed"), "time.elapsed"),
        "timelimitraw": "UNLIMITED" if limit == UNLIMITED else "" if limit is None or limit < 0 else str(limit),
        "state": state,
        "alloccpus": next((part[4:] for part in allocated.split(",") if part.startswith("cpu=")), ""),
        "reqcpus": needed,
        "nnodes": _number(job.get("allocation_nodes"), "allocation_nodes"),
        "priority": _number(job.get("priority"), "priority"),
        "restarts": _number(job.get("restart_cnt"), "restart_cnt"),
        "alloctres": allocated,
        "reqtres": _resources(tres.get("requested"), "tres.requested", needed),
        "exitcode": f"{exit_code}:{exit_signal}",
        "flags": ",".join(STARTED[flag] for flag in elements(job.get("flags"), "flags") if isinstance(flag, str) and flag in STARTED),
        **{name: _text(job.get(name)) for name in ("account", "qos", "partition", "cluster")},
        "user": _text(job.get("user")) or _text(members(job.get("association"), "association").get("user")),
        "jobname": _text(job.get("name")),
        "submitline": _text(job.get("submit_line")),
        "reason": _text(members(job.get("state"), "state").get("reason")),
        "reservation": _text(members(job.get("reservation"), "reservation").get("name")),
    }


def _batch_steps(job: Mapping[str, Any]) -> list[tuple[int, int, int]]:
    """The job's number, the start and the elapsed time of its batch steps that have started."""
    steps = []
    for entry in elements(job.get("steps"), "steps"):
        step = members(entry, "steps")
        times = members(step.get("time"), "steps.time")
        start, elapsed = _number(times.get("start"), "steps.time.start"), _number(times.get("elapsed"), "steps.time.elapsed")
        if str(members(step.get("step"), "step").get("id")).rpartition(".")[2] == "batch" and int(start or 0):
            steps.append((int(job["job_id"]), int(start), int(elapsed or -1)))
    return steps


def _jobs(file: LogFile) -> list[Any]:
    content = b"".join(file.chunks())
    try:
        document = json.loads(content)
    except json.JSONDecodeError as error:
        raise LogError(f"{file.where}:{error.lineno}: not valid JSON ({error.msg}); print the log again", "not_json") from error
    except (ValueError, RecursionError) as error:  # such as bytes that are not text, or a number of thousands of digits
        raise LogError(f"{file.where}: not valid JSON ({type(error).__name__}); print the log again", "not_json") from error
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list):
        raise LogError(f"{file.where}: the list of jobs is missing; print the log with sacct --json", "no_jobs")
    if jobs and all(isinstance(job, dict) and "time" not in job and "submit_time" in job for job in jobs):
        raise LogError(
            f"{file.where}: this is the output of squeue --json, whose jobs have not ended; print the log with sacct --json", "waiting_jobs"
        )
    return jobs


def _read(file: LogFile, options: ReadOptions) -> SlurmLog:
    bad = BadLines(file, options, "record")
    reader = RecordReader(options, Counts())
    rows: list[dict[str, str]] = []
    steps: list[tuple[int, int, int]] = []
    for place, job in enumerate(_jobs(file), 1):
        try:
            if not isinstance(job, Mapping) or "time" not in job:
                raise OddError("not a job of sacct --json")
            row, batch = _row(job), _batch_steps(job)
        except OddError as error:
            bad.add(place, str(error), json.dumps(job)[:200])
            continue
        rows.append(row)
        steps += batch
    if rows:
        table = RecordTable({name: pl.Series("", [row[name] for row in rows], pl.String) for name in rows[0]})
        reader.add(table, lambda row, name, what: bad.add(row, f"{name} is {what}", str(rows[row])))
        reader.steps.append(np.array(steps, np.int64).reshape(-1, 3).T)
    return reader.log(bad)


SLURM_JSON = LogFormat("slurm-json", "Slurm's sacct --json", (".json",), _HEAD, _read)
"""The output of `sacct --json`; its rules are in `walltime.logs.slurm.table.SLURM`."""
