"""Convert Slurm's JSON, from sacct, squeue, scontrol and slurmrestd of Slurm 20.11 to 26.05, to rows with sacct's fields.

It may be a whole document, with or without `meta`, an array of jobs, or jobs one after the other, as `jq` prints them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from walltime.dataframes import pl
from walltime.errors import LogError
from walltime.logs.input import LogFile
from walltime.logs.joblog import JobLog
from walltime.logs.reader import LogFormat, ReaderState
from walltime.logs.slurm.fields import STATES, state_word
from walltime.logs.slurm.records import TIMES, RecordReader, RecordTable
from walltime.slurm_values import BLANK, UNLIMITED, OddError, elements, members, number_of
from walltime.wording import quoted

Json = Mapping[str, Any]
Row = dict[str, str]
_START = re.compile(rb"(?m)^[ \t]*[{\[]")
"""The beginning of the document, which may follow messages of the command."""
_ACCOUNTED = re.compile(rb'"submission"\s*+:\s*+[0-9{n]')
_QUEUED = re.compile(rb'"submit_time"\s*+:\s*+[0-9{n]')
_STATE = re.compile(rb'"job_state"\s*+:\s*+["\[]')
_EMPTY = re.compile(rb'"jobs"\s*+:')
_STARTED = {"STARTED_ON_BACKFILL": "SchedBackfill", "STARTED_ON_SCHEDULE": "SchedMain", "STARTED_ON_SUBMIT": "SchedSubmit"}


def _is_json(head: bytes) -> bool:
    start = _START.search(head[:10_000])
    if start is None or b"{" not in head[start.start() : start.start() + 1000]:
        return False
    is_meant = _EMPTY.search(head) is not None and re.search(b"(?i)slurm", head) is not None
    queued = _QUEUED.search(head) is not None and _STATE.search(head) is not None
    return (b'"job_id"' in head and (_ACCOUNTED.search(head) is not None or queued)) or is_meant


def _number(value: Any, name: str) -> str:
    """Return a number as text; empty if it is unknown or negative."""
    number = number_of(value, name)
    return "" if number is None or number < 0 else str(number)


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value not in BLANK else ""


def _state(value: Any, name: str) -> str:
    """Return the state, or one of several: a run that was put back into the queue is both PENDING and REQUEUED."""
    words = [value] if isinstance(value, str) else list(elements(value, name))
    for word in words:
        if not isinstance(word, str) or state_word(word) is None:
            raise OddError(f"{name} must be a state of Slurm, not {quoted(str(word))}")
    return "REQUEUED" if "REQUEUED" in words else next((word for word in words if word in STATES), "")


def _resources(entries: Any, name: str, processors: str = "", unit: str = "M") -> str:
    """Return a list of trackable resources in sacct's text form. `processors`: used if the list has none; `unit`: for memory."""
    counts = {"cpu": processors} if processors else {}
    for entry in elements(entries, name):
        one = members(entry, name)
        kind, of, count = one.get("type"), one.get("name"), _number(one.get("count"), f"{name}.count")
        if count and isinstance(kind, str):
            counts[f"{kind}/{of}" if of else kind] = count + unit * (kind == "mem")
    return ",".join(f"{name}={count}" for name, count in counts.items())


def _codes(job: Json) -> str:
    whole = job.get("exit_code")
    if isinstance(whole, int):  # squeue up to Slurm 22.05: the status that wait() returns
        return f"{whole >> 8}:{whole & 127}"
    code = members(whole, "exit_code")
    signal = members(code.get("signal"), "exit_code.signal")
    return_code, number = code.get("return_code"), signal.get("id", signal.get("signal_id"))
    return f"{_number(return_code, 'exit_code.return_code')}:{_number(number, 'exit_code.signal.id')}"


def _limit(times: Json, key: str) -> str:
    limit = number_of(times[key], key) if times.get(key) is not None else UNLIMITED if key in times else None
    return "UNLIMITED" if limit == UNLIMITED else "" if limit is None or limit < 0 else str(limit)


def _at(job: Json, path: str) -> Any:
    """Return the value at a path of keys, such as `time.submission`."""
    *outer, last = path.split(".")
    for name in outer:
        job = members(job.get(name), name)
    return job.get(last)


_TEXTS = {name: name for name in ("account", "qos", "partition", "cluster", "licenses")}
_TEXTS |= {"jobname": "name", "submitline": "submit_line", "nodelist": "nodes"}
_NUMBERS = {"priority": "priority", "restarts": "restart_cnt"}
_ACCOUNTED_AT = (
    _TEXTS | {"constraints": "constraints", "reason": "state.reason", "reservation": "reservation.name", "user": "user"}
    | {"admincomment": "comment.administrator"},
    _NUMBERS | {"submit": "time.submission", "nnodes": "allocation_nodes", "reqcpus": "required.CPUs", "elapsedraw": "time.elapsed"}
    | {name: f"time.{name}" for name in TIMES[1:]} | {"totalcpu": "time.total.seconds", "usercpu": "time.user.seconds"},
)  # fmt: skip
"""The paths of texts and of numbers in jobs of sacct or of slurmrestd's accounting, by sacct's fields."""
_QUEUED_AT = (
    _TEXTS | {"alloctres": "tres_alloc_str", "reqtres": "tres_req_str", "constraints": "features", "reason": "state_reason"}
    | {"reservation": "resv_name", "user": "user_name"},
    _NUMBERS | {name: f"{name}_time" for name in TIMES} | {"alloccpus": "cpus", "nnodes": "node_count"},
)  # fmt: skip
"""The paths in jobs of squeue, scontrol or slurmrestd's controller, which keeps ended jobs for some minutes."""


def _fields(job: Json, paths: tuple[Mapping[str, str], Mapping[str, str]], array: str, task: str, het: str) -> Row:
    """Return the fields at these paths, the job's number and its exit code. `array, task, het`: paths of additional numbers."""
    number, base, het_job = (_number(_at(job, path), path) for path in ("job_id", array, het))
    if not number:
        raise OddError("job_id is unknown")
    index = _number(_at(job, task), task) or "[]" if int(base or 0) else ""
    return {
        "jobidraw": number,
        "jobid": f"{base}_{index}" if int(base or 0) else f"{het_job}+0" if int(het_job or 0) else number,
        "exitcode": _codes(job),
        "flags": ",".join(_STARTED[flag] for flag in elements(job.get("flags"), "flags") if isinstance(flag, str) and flag in _STARTED),
        **{name: _text(_at(job, path)) for name, path in paths[0].items()},
        **{name: _number(_at(job, path), path) for name, path in paths[1].items()},
    }


def _accounted(job: Json) -> Row:
    """Return the fields of a job of sacct or of slurmrestd's accounting."""
    row = _fields(job, _ACCOUNTED_AT, "array.job_id", "array.task_id", "het.job_id")
    row["state"] = _state(_at(job, "state.current"), "state.current")
    row["timelimitraw"] = _limit(members(job["time"], "time"), "limit")
    row["user"] = row["user"] or _text(_at(job, "association.user"))
    if part := int(_number(_at(job, "time.total.microseconds"), "time.total.microseconds") or 0):
        row["totalcpu"] = f"{row['totalcpu'] or 0}.{part:06d}"
    row["alloctres"] = _resources(_at(job, "tres.allocated"), "tres.allocated")
    row["reqtres"] = _resources(_at(job, "tres.requested"), "tres.requested", row["reqcpus"])
    if row["state"] == "FAILED" and row["exitcode"] in ("0:", "0:0"):
        row["exitcode"] = row["exitcode"][1:]  # Slurm 22.05 writes 0 for every job
    return row


def _queued(job: Json) -> Row:
    """Return the fields of a job of squeue, scontrol or slurmrestd's controller."""
    row = _fields(job, _QUEUED_AT, "array_job_id", "array_task_id", "het_job_id")
    row["state"] = _state(job["job_state"], "job_state")
    row["timelimitraw"] = _limit(job, "time_limit")
    row["user"] = row["user"] or _number(job.get("user_id"), "user_id")
    if not row["nodelist"] and int(row["end"] or 0) <= int(row["start"] or 0):
        row["start"] = ""  # ended before its start: the controller sets both to this time
    return row


def _steps(job: Json) -> Iterator[Row]:
    for entry in elements(job.get("steps"), "steps"):
        step = members(entry, "steps")
        identity = _at(step, "step.id")
        name = str(identity.get("step_id") if isinstance(identity, Mapping) else identity).rpartition(".")[2]
        used = [_resources(_at(step, f"tres.requested.{what}"), f"steps.tres.{what}", unit="") for what in ("max", "total", "average")]
        part = name if name in ("batch", "extern", "interactive") else "1"  # not 0, because numbers such as 12.0 would be read as fractions
        yield {
            "jobidraw": f"{_number(job.get('job_id'), 'job_id')}.{part}",
            "start": _number(_at(step, "time.start"), "steps.time.start"),
            "elapsedraw": _number(_at(step, "time.elapsed"), "steps.time.elapsed"),
            "maxrss": next((amount[4:] for amount in used[0].split(",") if amount.startswith("mem=")), ""),
            "tresusageintot": used[1],
            "tresusageinave": used[2],
        }


def _values(file: LogFile) -> Iterator[Any]:
    content = b"".join(file.chunks()).removeprefix(b"\xef\xbb\xbf")
    start = _START.search(content)
    content = content[start.start() :] if start else content
    try:
        text = content.decode()
        decoder, place = json.JSONDecoder(), 0
        while place < len(text):
            value, place = decoder.raw_decode(text, place)
            yield value
            while text[place : place + 1] in (" ", "\t", "\r", "\n", ",") and place < len(text):
                place += 1
    except json.JSONDecodeError as error:
        raise LogError(f"{file.where}:{error.lineno}: not valid JSON ({error.msg}); print the log again", "not_json") from error
    except (ValueError, RecursionError) as error:  # such as bytes that are not text, or a number of thousands of digits
        raise LogError(f"{file.where}: not valid JSON; print the log again", "not_json") from error


def _jobs(file: LogFile) -> Iterator[Any]:
    """Yield the jobs of a file, from its documents, its arrays, or one after the other."""
    for value in _values(file):
        jobs = value.get("jobs") if isinstance(value, dict) and "job_id" not in value else value if isinstance(value, list) else [value]
        if not isinstance(jobs, list):
            raise LogError(f"{file.where}: the list of jobs is missing; print the log with sacct --json", "no_jobs")
        yield from jobs


def _read(state: ReaderState) -> JobLog:
    state.unit = "record"
    reader = RecordReader(state)
    rows: list[Row] = []
    places: list[int] = []
    steps: list[Row] = []
    queued = 0
    for place, job in enumerate(_jobs(state.file), 1):
        try:
            if isinstance(job, Mapping) and "time" in job:
                row, of_job = _accounted(job), list(_steps(job))
            elif isinstance(job, Mapping) and "job_state" in job and "submit_time" in job:
                row, of_job = _queued(job), []
                queued += 1
            else:
                raise OddError("not a job of sacct --json")
        except OddError as error:
            state.add_bad(place, str(error), json.dumps(job)[:200])
            continue
        rows.append(row)
        places.append(place)
        steps += of_job
    if queued == len(rows) > 0 and all(STATES.get(row["state"]) not in range(6) for row in rows):
        raise LogError(
            f"{state.file.where}: this is the output of squeue --json, whose jobs have not ended; print the log with sacct --json",
            "waiting_jobs",
        )
    for some, counted in ((rows, True), (steps, False)):
        if some:
            names = dict.fromkeys(name for row in some for name in row)
            table = RecordTable({name: pl.Series("", [row.get(name, "") for row in some], pl.String) for name in names})
            reader.add(table, places, some.__getitem__, count_steps=counted)
    return reader.log()


SLURM_JSON = LogFormat("slurm-json", "Slurm's sacct --json", (".json",), re.compile(b""), _read, (), _is_json)
"""The output of `sacct --json`; its rules are those of `walltime.logs.slurm.text.SLURM`."""
