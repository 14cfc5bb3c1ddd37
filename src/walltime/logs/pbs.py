"""Accounting files of OpenPBS, PBS Professional and Torque: a line for each event of a job; the line of its end describes the job.

Sources: OpenPBS Administrator's Guide, Accounting Log; Torque Administrator's Guide, Accounting Records.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar

from walltime.logs.batch_systems import FIRST_LINES, OTHER_EVENT, Counts, JobRows, RecordError, text_lines, whole
from walltime.logs.input import LogFile
from walltime.logs.joblog import BadLines, JobLog, LogFormat, ReadOptions, Rule
from walltime.workload import MISSING

ARRAY_SUMMARY = Rule("array_summary", "drop", "The record is of a job array as a whole, such as 12[]; its jobs have their own.")
USED_DIFFERS = Rule(
    "walltime_differs", "notice", "The charged wall-clock time differs by over a minute from the runtime, the time from start to end."
)
_LINE = re.compile(r"((?:[0-9]{2}/){2}[0-9]{4} (?:[0-9]{2}:){2}[0-9]{2}(?:\.[0-9]+)?);([A-Za-z]{1,2});([^;]*);(.*)", re.DOTALL)
_HEAD = re.compile(rb"\A" + FIRST_LINES + rb"(?:[0-9]{2}/){2}[0-9]{4} (?:[0-9]{2}:){2}[0-9]{2}(?:\.[0-9]+)?;[A-Za-z]{1,2};[^;\n]*;")
_ITEM = re.compile(r"""(?:^|\s)([A-Za-z_][\w.]*)=("[^"]*"(?=\s|$)|'[^']*'(?=\s|$)|.*?)(?=\s+[A-Za-z_][\w.]*=|\s*$)""", re.DOTALL)
_KEY = re.compile(r"[A-Za-z_][\w.]*")
_ID = re.compile(r"([0-9]{1,15})(?:\[([0-9]{0,9})\])?(?:\.\S*)?")
_SPENT = re.compile(r"(?:(?:([0-9]{1,6}):)?([0-9]{1,9}):)?([0-9]{1,9}):([0-9]{1,2})(?:\.[0-9]+)?")
_SIZE = re.compile(r"([0-9]{1,18})([kmgtp]?)[bw]?", re.IGNORECASE)
_UNITS = {"": 1 / 1024, "k": 1, "m": 1024, "g": 1024**2, "t": 1024**3, "p": 1024**4}
_NO_PROJECT = "_pbs_project_default"
_REPEATED = frozenset({"user", "ctime", "qtime", "etime", "start", "end", "Exit_status", "Resource_List.walltime", "Resource_List.ncpus"})


class PbsLog(JobLog):
    """A log from accounting files of PBS."""

    format: ClassVar[str] = "pbs"
    endings: ClassVar[tuple[str, ...]] = (".acct", ".log", ".txt")


def _items(text: str) -> dict[str, str]:
    """The items `key=value`; a value may contain blanks. Raises RecordError if an essential one occurs twice: it may be part of a text."""
    if '"' not in text and "'" not in text:
        parts = [part.split("=", 1) for part in text.split(" ")]
        if all(len(part) == 2 for part in parts):
            plain: dict[str, str] = dict(parts)
            if len(plain) == len(parts) and all(map(_is_key, plain)):
                return plain  # the most frequent case: no value has a blank in it
    items: dict[str, str] = {}
    for match in _ITEM.finditer(text):
        key, value = match[1], match[2]
        if key in items and key in _REPEATED:
            raise RecordError(f"{key} occurs twice")
        items[key] = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
    return items


@lru_cache(1000)
def _is_key(text: str) -> bool:
    return _KEY.fullmatch(text) is not None


def _spent(text: str | None, name: str) -> int:
    """A duration such as 26:00:00 or 90, in s; -1 if missing."""
    match = _SPENT.fullmatch(text or "")
    if match is None:
        return whole(text, name)
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return days * 86_400 + hours * 3600 + minutes * 60 + seconds


def _kilobytes(text: str | None) -> float:
    match = _SIZE.fullmatch(text or "")
    return float(MISSING) if match is None else int(match[1]) * _UNITS[match[2].lower()]


def chunks(text: str, resource: str) -> int:
    """Return the amount of a resource in a selection such as `2:ncpus=4+1:ncpus=1`, or in Torque's nodes, `2:ppn=4+n7`; -1 if none.

    >>> chunks("2:ncpus=4+1:ncpus=1:mem=1gb", "ncpus"), chunks("2:ppn=4+n7", "ppn"), chunks("3", "ppn"), chunks("3", "ngpus")
    (9, 9, 3, -1)
    """
    total, named = 0, False
    for chunk in text.split("+"):
        first, *rest = chunk.split(":")
        count = int(first) if first.isascii() and first.isdecimal() and len(first) < 10 else 1
        values = dict(part.partition("=")[::2] for part in [first, *rest])
        value = values.get(resource, "")
        if value.isascii() and value.isdecimal() and len(value) < 10:
            total, named = total + count * int(value), True
        elif resource in ("ncpus", "ppn"):
            total += count  # one each by default
    return total if named or (total and resource in ("ncpus", "ppn")) else MISSING


def _allocated(items: Mapping[str, str]) -> int:
    """Allocated processors: from exec_vnode, else from resources_used.ncpus, else the slots in exec_host."""
    vnodes = re.findall(r"ncpus=([0-9]{1,9})", items.get("exec_vnode", ""))
    if vnodes:
        return sum(map(int, vnodes))
    used = whole(items.get("resources_used.ncpus"), "resources_used.ncpus")
    if used > 0:
        return used
    total = 0
    for place in items.get("exec_host", "").split("+"):
        _, slash, slots = place.partition("/")
        if not slash:
            continue
        if match := re.fullmatch(r"[0-9]+\*([0-9]{1,9})", slots):
            total += int(match[1])
            continue
        for span in slots.split(","):
            low, _, high = span.partition("-")
            both = low.isdecimal() and high.isdecimal() and len(low) < 10 > len(high)
            total += max(int(high) - int(low) + 1, 1) if both else 1
    return total or MISSING


def _requested(items: Mapping[str, str]) -> int:
    if "Resource_List.ncpus" in items:
        return whole(items["Resource_List.ncpus"], "Resource_List.ncpus")
    for key, resource in (("Resource_List.select", "ncpus"), ("Resource_List.nodes", "ppn")):
        if key in items:
            return chunks(items[key], resource)
    return MISSING


def _job(identity: str, items: Mapping[str, str], cancelled: bool) -> tuple[dict[str, float], dict[str, str], bool]:
    """The numbers and texts of a job that has ended, and whether its charged time differs from its runtime."""
    match = _ID.fullmatch(identity)
    if match is None:
        raise RecordError(f"{identity[:30]!r} is not a job number")
    base, index = int(match[1]), match[2]
    times = {name: whole(items.get(name), name) for name in ("ctime", "qtime", "etime", "start", "end")}
    start, end = times["start"], times["end"]
    if start < 0 or end < 0:
        raise RecordError(f"{'start' if start < 0 else 'end'} is missing")
    if end < start:
        raise RecordError(f"end is {end}; it must not be before the start, {start}")
    allocated, requested = _allocated(items), _requested(items)
    processors = max(allocated if allocated > 0 else requested, 1)
    used = _spent(items.get("resources_used.walltime"), "resources_used.walltime")
    cpu = _spent(items.get("resources_used.cput"), "resources_used.cput")
    memory, requested_memory = _kilobytes(items.get("resources_used.mem")), _kilobytes(items.get("Resource_List.mem"))
    code = items.get("Exit_status", "")
    known = re.fullmatch(r"-?[0-9]{1,6}", code) is not None
    if code and not known:
        raise RecordError(f"Exit_status is {code[:30]!r}; it must be a whole number")
    numbers = {
        "job_id": base if index is None else MISSING,
        "submit": times["ctime"] if times["ctime"] >= 0 else times["qtime"],
        "eligible": times["etime"],
        "start": start,
        "runtime": end - start,
        "requested": _spent(items.get("Resource_List.walltime"), "Resource_List.walltime") or MISSING,
        "allocated_procs": allocated,
        "requested_procs": requested,
        "cpu_time": cpu / processors if cpu >= 0 else MISSING,
        "memory": memory / processors if memory >= 0 else MISSING,
        "requested_memory": requested_memory / max(requested, 1) if requested_memory >= 0 else MISSING,
        "status": MISSING if not known else 1 if int(code) == 0 else 5 if cancelled else 0,
        "nodes": whole(items.get("Resource_List.nodect"), "Resource_List.nodect"),
        "gpus": whole(items["Resource_List.ngpus"], "Resource_List.ngpus")
        if "Resource_List.ngpus" in items
        else chunks(items.get("Resource_List.select", ""), "ngpus"),
        "array_job": base if index is not None else MISSING,
        "array_task": int(index) if index else MISSING,
        "exit_code": int(code) if known and int(code) >= 0 else MISSING,
        "run_count": whole(items.get("run_count"), "run_count"),
    }
    project = items.get("project", "")
    texts = {
        "user": items.get("user", ""),
        "group": items.get("account") or (project if project != _NO_PROJECT else "") or items.get("group", ""),
        "queue": items.get("queue", ""),
        "executable": items.get("jobname", ""),
    }
    return numbers, texts, used >= 0 and abs(used - (end - start)) > 60


def _read(file: LogFile, options: ReadOptions) -> PbsLog:
    counts, bad, rows = Counts(), BadLines(file, options), JobRows()
    deleted: set[str] = set()
    for number, line in text_lines(file, counts):
        text = line.strip()
        match = _LINE.fullmatch(text)
        if match is None:
            bad.add(number, "not a record such as 03/02/2026 10:00:00;E;12.server;user=...", text)
            continue
        event, identity = match[2].upper(), match[3]
        if event != "E":
            counts.add(OTHER_EVENT, 1)
            deleted |= {identity} if event == "D" else set()
            continue
        if "[]" in identity:
            counts.add(ARRAY_SUMMARY, 1)
            continue
        try:
            numbers, texts, differs = _job(identity, _items(match[4]), identity in deleted)
        except RecordError as error:
            bad.add(number, str(error), text)
            continue
        rows.add(numbers, texts)
        counts.add(USED_DIFFERS, int(differs))
    return rows.log(PbsLog, bad, counts)


PBS = LogFormat("pbs", "PBS or Torque accounting", (".acct",), _HEAD, _read, (ARRAY_SUMMARY, USED_DIFFERS))
"""Accounting files of PBS and Torque."""
