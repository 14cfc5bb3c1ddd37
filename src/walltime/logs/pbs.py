"""Accounting files of OpenPBS, PBS Professional and Torque: a line for each event of a job; the line of its end describes the job.

Sources: OpenPBS Administrator's Guide, Accounting Log; Torque Administrator's Guide, Accounting Records.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import ClassVar

from walltime.logs.batch_systems import FIRST_LINES, OTHER_EVENT, Counts, JobRows, RecordError, count_of, first_known, text_lines, whole
from walltime.logs.input import LogFile
from walltime.logs.joblog import BadLines, JobLog, LogFormat, ReadOptions, Rule
from walltime.workload import MISSING

ARRAY_SUMMARY = Rule("array_summary", "drop", "The record is of a job array as a whole, such as 12[]; its jobs have their own.")
USED_DIFFERS = Rule(
    "walltime_differs", "notice", "The charged wall-clock time differs by over a minute from the runtime, the time from start to end."
)
LOST_RUN = Rule("lost_run", "notice", "The job started twice, and the log has no end of the first run, which is left out.")
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


def chunks(text: str, *names: str) -> int:
    """Return the amount of a resource in a selection such as `2:ncpus=4+1:ncpus=1`, or in Torque's nodes, `2:ppn=4+n7`; -1 if none.

    A chunk has one processor (ncpus, ppn) by default. `names`: other names of the same resource.

    >>> chunks("2:ncpus=4+1:ncpus=1:mem=1gb", "ncpus"), chunks("2:ppn=4+n7", "ppn"), chunks("3", "ppn"), chunks("3", "ngpus")
    (9, 9, 3, -1)
    """
    by_default = 1 if names[0] in ("ncpus", "ppn") else 0
    total = 0
    for chunk in text.split("+"):
        first, *rest = chunk.split(":")
        values = dict(part.split("=", 1) for part in [first, *rest] if "=" in part)
        amounts = [amount for name in names if (amount := count_of(values.get(name))) >= 0]
        total += max(count_of(first), 1) * (amounts[0] if amounts else by_default)
    return total or MISSING


def _sum(text: str, *names: str) -> int:
    """The sum of a resource in a text such as exec_vnode; 0 if it has none."""
    return sum(map(int, re.findall(rf"\b(?:{'|'.join(names)})=([0-9]{{1,9}})", text)))


def _slots(text: str) -> int:
    """The number of slots in exec_host or exec_gpus, such as `n1/0*4+n2/0-3+n3/1,2`."""
    total = 0
    for place in text.split("+"):
        _, slash, slots = place.partition("/")
        if match := re.fullmatch(r"[0-9]+\*([0-9]{1,9})", slots):
            total += int(match[1])
            continue
        for span in slots.split(",") if slash else ():
            low, _, high = span.partition("-")
            total += max(count_of(high) - count_of(low) + 1, 1) if high else 1
    return total


_GPUS = ("ngpus", "gpus", "gpu", "naccelerators")
_CHUNKS = ("Resource_List.select", "Resource_List.nodes", "Resource_List.nodect", "Resource_List.neednodes")
ALLOCATED = (("exec_vnode", lambda text: _sum(text, "ncpus")), ("resources_used.ncpus", count_of), ("exec_host", _slots))
REQUESTED = (
    ("Resource_List.ncpus", count_of),
    ("Resource_List.select", lambda text: chunks(text, "ncpus")),
    ("Resource_List.nodes", lambda text: chunks(text, "ppn", "ncpus")),
    ("Resource_List.nodect", lambda text: chunks(text, "ppn", "ncpus") if ":" in text else MISSING),
)
WIDTHS = (("Resource_List.mppwidth", count_of), ("Resource_List.size", count_of), ("Resource_List.procs", count_of))
"""Processors on machines whose jobs start from a login node, on which alone they are recorded (Cray), or anywhere (procs)."""
GPUS = (
    ("exec_gpus", _slots),
    ("exec_vnode", lambda text: _sum(text, *_GPUS)),
    *((f"Resource_List.{name}", count_of) for name in _GPUS),
    *((key, lambda text: chunks(text, *_GPUS)) for key in _CHUNKS),
)
"""The items that give an amount, and how each is read, the most reliable first."""


def _sizes(items: Mapping[str, str]) -> dict[str, int]:
    """The processors, nodes and GPUs of a job."""
    allocated, requested, wide = (first_known(items, readers) for readers in (ALLOCATED, REQUESTED, WIDTHS))
    nodes = count_of(items.get("Resource_List.nodect", "").partition(":")[0])
    if wide > 0:
        per_node = count_of(items.get("Resource_List.mppnppn"))
        if "Resource_List.mppwidth" in items:
            nodes = -(-wide // per_node) if per_node > 0 else MISSING
            wide *= max(count_of(items.get("Resource_List.mppdepth")), 1)
        requested, allocated = wide, allocated if allocated >= wide else MISSING
    return {"allocated_procs": allocated, "requested_procs": requested, "nodes": nodes, "gpus": first_known(items, GPUS)}


def _job(identity: str, items: Mapping[str, str], event: str, cancelled: bool) -> tuple[dict[str, float], dict[str, str], bool]:
    """The numbers and texts of a run that has ended, and whether its charged time differs from its runtime."""
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
    sizes = _sizes(items)
    allocated, requested = sizes["allocated_procs"], sizes["requested_procs"]
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
        **sizes,
        "cpu_time": cpu / processors if cpu >= 0 else MISSING,
        "memory": memory / processors if memory >= 0 else MISSING,
        "requested_memory": requested_memory / max(requested, 1) if requested_memory >= 0 else MISSING,
        "status": 0 if event == "R" else MISSING if not known else 1 if int(code) == 0 else 5 if cancelled else 0,
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
    started: dict[str, tuple[str, str]] = {}
    for number, line in text_lines(file, counts):
        text = line.strip()
        match = _LINE.fullmatch(text)
        if match is None:
            bad.add(number, "not a record such as 03/02/2026 10:00:00;E;12.server;user=...", text)
            continue
        stamp, event, identity, items = match[1], match[2].upper(), match[3], match[4]
        if event not in ("E", "R"):
            counts.add(OTHER_EVENT, 1)
            deleted |= {identity} if event == "D" else set()
            counts.add(LOST_RUN, int(event == "S" and identity in started))
            started |= {identity: (stamp, items)} if event == "S" else {}
            continue
        begun = started.pop(identity, None)
        if "[]" in identity:
            counts.add(ARRAY_SUMMARY, 1)
            continue
        try:
            values = _items(items)
            if event == "R" and "end" not in values:  # Torque's record of a requeued run has only its time
                if begun is None:
                    counts.add(LOST_RUN, 1)
                    continue
                values = _items(begun[1]) | values
                values["end"] = str(whole(values.get("start"), "start") + _time_of(stamp) - _time_of(begun[0]))
            numbers, texts, differs = _job(identity, values, event, identity in deleted)
        except RecordError as error:
            bad.add(number, str(error), text)
            continue
        rows.add(numbers, texts, (identity, numbers["submit"]))
        counts.add(USED_DIFFERS, int(differs))
    return rows.log(PbsLog, bad, counts)


def _time_of(stamp: str) -> int:
    """The time of a record, in s since an unknown beginning."""
    try:
        return int(datetime.strptime(stamp[:19], "%m/%d/%Y %H:%M:%S").replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise RecordError(f"{stamp} is not a time") from None


PBS = LogFormat("pbs", "PBS or Torque accounting", (".acct",), _HEAD, _read, (ARRAY_SUMMARY, USED_DIFFERS, LOST_RUN))
"""Accounting files of PBS and Torque."""
