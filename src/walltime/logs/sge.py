"""The accounting file of Grid Engine: Sun's, Son of, Univa's, Altair's; and their reporting file, which contains the same records.

Sources: manual pages accounting(5), such as https://gridscheduler.sourceforge.net/htmlman/htmlman5/accounting.html, and reporting(5)
"""

from __future__ import annotations

import re
from typing import ClassVar

from walltime.logs.batch_systems import NO_LIMIT, OTHER_EVENT, UNREADABLE, Counts, JobRows, RecordError, count_of, text_lines
from walltime.logs.cells import NO_LIMITS
from walltime.logs.input import LogFile
from walltime.logs.joblog import BadLines, JobLog, LogFormat, ReadOptions
from walltime.logs.slurm.jobs import NEVER_STARTED, STEP
from walltime.workload import MISSING

_ANY, _NUMBER = "[^:]*", r"-?[0-9][0-9.eE+-]*"
_FIELDS: tuple[tuple[str, str], ...] = (
    *((name, _ANY) for name in ("qname", "hostname", "group", "owner")),
    ("job_name", ".*?"),
    ("job_number", "[0-9]{1,15}"),
    ("account", _ANY),
    ("priority", "-?[0-9]{1,6}"),
    *((name, "[0-9]{1,13}") for name in ("submission_time", "start_time", "end_time")),
    ("failed", "[0-9]{1,4}"),
    ("exit_status", "[0-9]{1,4}"),
    ("ru_wallclock", _NUMBER),
    ("ru_utime", _NUMBER),
    ("ru_stime", _NUMBER),
    *((f"usage{number}", _NUMBER) for number in range(15)),
    *((name, _ANY) for name in ("project", "department", "granted_pe")),
    ("slots", "[0-9]{1,9}"),
    ("task_number", "[0-9]{1,12}"),
    *((name, _NUMBER) for name in ("cpu", "mem", "io")),
)
"""The fields with their patterns, up to the category, according to the manual page; job names may contain colons."""
_LATER = rf"(?::(?P<category>.*?)(?::{_NUMBER}:(?P<pe_taskid>NONE|[0-9]*\.[A-Za-z][^:]*)?:{_NUMBER}[KMGT]?(?::.*)?)?)?"
"""Category, whose requests may contain colons, iow, pe_taskid, maxvmem, and the fields that later versions append."""
_EVENT = r"(?:[0-9]{9,13}:(?P<event>[a-z_]+):)?"
"""Time and kind of a record of the reporting file."""
_RECORD = re.compile(_EVENT + ":".join(f"(?P<{name}>{pattern})" for name, pattern in _FIELDS) + _LATER)
_HEAD = re.compile(
    rb"^(?:[0-9]{9,13}:acct:)?[\w.@-]+:[^:\n]*(?::[^:\n]*){2}:[^\n]*?:[0-9]{1,10}:[^\n]*?:-?[0-9]{1,6}(?::[0-9]{1,13}){3}(?::[0-9]{1,4}){2}"
    rb"(?::[^:\n]*){26,}\r?$",
    re.MULTILINE,
)
_RAN = ("0", "25", "30", "37", "100")
"""Values of `failed` with which a job ran: no failure, rescheduled, failed afterwards, over a limit, killed."""


_UNREADABLE = -3


class SgeLog(JobLog):
    """A log from the accounting file of Grid Engine; its processors are slots."""

    format: ClassVar[str] = "sge"
    endings: ClassVar[tuple[str, ...]] = ()


def _limit(category: str, name: str) -> int:
    """A limit in the category, such as `-l h_rt=24:00:00`, s; NO_LIMIT for none, -1 if it is not given, _UNREADABLE if it is not a time."""
    match = re.search(rf"(?:-l |,)\s*{name}=([^,\s]+)", category)
    if match is None:
        return MISSING
    if match[1].lower() in NO_LIMITS:
        return NO_LIMIT
    parts = [count_of(part or "0") for part in match[1].rstrip("s").split(":")]
    if len(parts) > 3 or MISSING in parts:
        return _UNREADABLE
    return sum(part * 60**place for place, part in enumerate(reversed(parts))) or MISSING


def _job(record: re.Match[str]) -> tuple[dict[str, float], dict[str, str]]:
    """The numbers and texts of a run."""
    submit, start, end = (int(record[name]) for name in ("submission_time", "start_time", "end_time"))
    if max(submit, start, end) >= 10**11:  # Univa's versions write milliseconds
        submit, start, end = submit // 1000, start // 1000, end // 1000
    category, slots = record["category"] or "", int(record["slots"])
    done = record["failed"] == "0" and record["exit_status"] == "0"
    started = start > 0
    numbers = {
        "job_id": int(record["job_number"]) if record["task_number"] == "0" else MISSING,
        "submit": submit or MISSING,
        "start": start if started else MISSING,
        "runtime": end - start if started and end >= start else MISSING,
        "requested": _limit(category, "h_rt"),
        "soft_walltime": max(_limit(category, "s_rt"), MISSING),
        "allocated_procs": slots or MISSING,
        "cpu_time": float(record["cpu"]) / max(slots, 1),
        "status": int(done),
        "array_job": int(record["job_number"]) if record["task_number"] != "0" else MISSING,
        "array_task": int(record["task_number"]) or MISSING,
        "exit_code": int(record["exit_status"]),
        "gpus": count_of((re.search(r"(?:-l |,)\s*n?gpus?=([0-9]{1,6})(?=[,\s]|$)", category) or ["", ""])[1]),
    }
    names = {"user": "owner", "group": "project", "executable": "job_name", "queue": "qname", "parallel_environment": "granted_pe"}
    texts = {name: record[field] for name, field in names.items()}
    return numbers, {name: "" if text == "NONE" else text for name, text in texts.items()}


def _read(file: LogFile, options: ReadOptions) -> SgeLog:
    counts, bad, rows = Counts(), BadLines(file, options), JobRows()
    for number, line in text_lines(file, counts):
        text = line.strip()
        if text.startswith("#"):
            continue
        event = re.match(_EVENT, text)
        if event is not None and event["event"] not in (None, "acct"):
            counts.add(OTHER_EVENT, 1)
            continue
        record = _RECORD.fullmatch(text)
        try:
            if record is None:
                raise RecordError(f"{text.count(':') + 1} fields that are not those of Grid Engine's accounting")
            numbers, texts = _job(record)
        except RecordError as error:
            bad.add(number, str(error), text)
            continue
        counts.add(UNREADABLE, int(numbers["requested"] == _UNREADABLE))
        numbers["requested"] = MISSING if numbers["requested"] == _UNREADABLE else numbers["requested"]
        never = numbers["start"] < 0 or (record["failed"] not in _RAN and numbers["runtime"] <= 0)
        counts.add(STEP, int(record["pe_taskid"] not in (None, "NONE")))
        if record["pe_taskid"] not in (None, "NONE"):
            continue
        counts.add(NEVER_STARTED, int(never))
        if not never:
            rows.add(numbers, texts, (record["job_number"], record["task_number"], numbers["submit"]))
    return rows.log(SgeLog, bad, counts)


SGE = LogFormat("sge", "Grid Engine's accounting", (), _HEAD, _read)
"""The accounting file of Grid Engine."""
