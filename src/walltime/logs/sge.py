"""Read Grid Engine's accounting file (Sun, Son of, Univa, Altair), the reporting file with the same records, and `qacct -j`.

Sources: manual pages accounting(5), such as https://gridscheduler.sourceforge.net/htmlman/htmlman5/accounting.html, and reporting(5)
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import tzinfo

from walltime.logs.batch_systems import RecordError, Run, Skip, count_of, numbered, read_runs, seconds_of, unix_time, whole
from walltime.logs.cells import BLANK, NUMBER
from walltime.logs.joblog import JobLog
from walltime.logs.reader import LogFormat, ReaderState
from walltime.logs.rules import OTHER_EVENT, ZONE_UNKNOWN
from walltime.logs.sample import Sample, items_of
from walltime.logs.slurm.jobs import NEVER_STARTED, STEP
from walltime.workload import MISSING, Origin

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
"""The fields up to the category, and their patterns, according to the manual page; job names may contain colons."""
_LATER = rf"(?::(?P<category>.*?)(?::{_NUMBER}:(?P<pe_taskid>NONE|[0-9]*\.[^:]*[A-Za-z-][^:]*)?:(?P<maxvmem>{_NUMBER}[KMGT]?)(?::.*)?)?)?"
"""Category, whose requests may contain colons, iow, pe_taskid, maxvmem, and fields that later versions append."""
_EVENT = r"(?:[0-9]{9,13}:(?P<event>[a-z_]+):)?"
"""The time and the kind of a record in the reporting file."""
_RECORD = re.compile(_EVENT + ":".join(f"(?P<{name}>{pattern})" for name, pattern in _FIELDS) + _LATER)
_HEAD = re.compile(
    rb"^(?:[0-9]{9,13}:acct:)?[\w.@-]+:[^:\n]*(?::[^:\n]*){2}:[^\n]*?:[0-9]{1,10}:[^\n]*?:-?[0-9]{1,6}(?::[0-9]{1,13}){3}(?::[0-9]{1,4}){2}"
    rb"(?::[^:\n]*){26,}\r?$",
    re.MULTILINE,
)
_QACCT = re.compile(rb"\A\s*={20,} *\r?\nqname +\S")
_ITEM = re.compile(r"(\w+) +(\S.*?)\s*")
_QACCT_NAMES = {"job_name": "jobname", "job_number": "jobnumber", "task_number": "taskid", "submission_time": "qsub_time"}
_RAN = ("0", "25", "30", "37", "100")
"""Values of `failed` for jobs that ran: no failure, rescheduled, failed afterwards, over a limit, killed."""

_TEXTS = {"user": "owner", "group": "project", "executable": "job_name", "queue": "qname", "parallel_environment": "granted_pe"}


def _requested(category: str, name: str) -> str:
    """Return the requested amount of a resource in the category, such as `-l h_rt=24:00:00,gpu=2`; empty if there is none."""
    match = re.search(rf"(?:-l |,)\s*(?:{name})=([^,\s]+)", category)
    return match[1].rstrip("s") if match else ""


def _megabytes(text: str) -> float:
    """Parse memory such as 1.5G, 300M or a number of bytes; return MB, or -1 if it is unknown, 0, or INFINITY.

    >>> _megabytes("1.5G"), _megabytes("1048576"), _megabytes("1k"), _megabytes("INFINITY")
    (1536.0, 1.0, 0.00095367431640625, -1.0)
    """
    match = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]+)?)([kKmMgGtT]?)", text, re.ASCII)
    base = 1024 if match is None or match[2].isupper() else 1000  # queue_conf(5): capital letters mean powers of 1024
    amount = MISSING if match is None else float(match[1]) * base ** (" kmgt".index(match[2].lower() or " ")) / 1024**2
    return amount if amount > 0 else float(MISSING)


def _runs(line: str) -> Iterator[Run]:
    text = line.strip()
    event = re.match(_EVENT, text)
    if text.startswith("#"):
        return
    if event is not None and event["event"] not in (None, "acct"):
        raise Skip(OTHER_EVENT)
    record = _RECORD.fullmatch(text)
    if record is None:
        raise RecordError(f"{text.count(':') + 1} fields do not match a record of Grid Engine's accounting")
    yield _run(record.groupdict(""))


def _of_table(row: Mapping[str, object]) -> Iterator[Run]:
    values = {name: str(value).removesuffix(".0") for name, value in row.items() if value is not None and str(value) not in BLANK}
    yield _run({name: values.get(name, "") for name, _ in (*_FIELDS, ("category", ""), ("pe_taskid", ""), ("maxvmem", ""))})


def _of_qacct(zone: tzinfo) -> Callable[[str], Iterator[Run]]:
    """Return a function that yields the run in a block of `qacct -j`; `zone`: the time zone of its times."""

    def runs(block: str) -> Iterator[Run]:
        found = {match[1]: match[2] for line in block.splitlines() if (match := _ITEM.fullmatch(line))}
        names = dict.fromkeys((*(name for name, _ in _FIELDS), "category", "pe_taskid", "maxvmem"))
        record = {name: found.get(_QACCT_NAMES.get(name, name), "") for name in names}
        for name in ("submission_time", "start_time", "end_time"):
            record[name] = "0" if record[name] in ("-/-", "") else unix_time(record[name], zone)
        record["failed"], record["exit_status"] = (record[name].partition(" ")[0] for name in ("failed", "exit_status"))
        record["task_number"] = record["task_number"].replace("undefined", "0")
        record["cpu"] = record["cpu"].removesuffix("s")
        yield _run(record)

    return runs


def _run(record: Mapping[str, str]) -> Run:
    """Return the numbers and the names of a run, and its job."""
    if record["pe_taskid"] not in ("", "NONE"):
        raise Skip(STEP)
    times = {name: record[name] for name in ("submission_time", "start_time", "end_time")}
    # Univa's versions write milliseconds, later ones microseconds; the first ten digits are the seconds
    submit, start, end = (whole(text[:10] if len(text) > 11 else text, name) for name, text in times.items())
    if start <= 0 or (record["failed"] not in _RAN and end <= start):
        raise Skip(NEVER_STARTED)
    category, job, task, slots = record["category"], *(whole(record[name], name) for name in ("job_number", "task_number", "slots"))
    exit_code = count_of(record["exit_status"])
    cpu_time = float(record["cpu"]) if NUMBER.fullmatch(record["cpu"]) else MISSING
    asked = _megabytes(_requested(category, "h_vmem") or _requested(category, "(?:m_)?mem_free"))
    asked = asked * max(slots, 1) if asked > 0 else asked
    numbers = {
        **numbered(job, task if task > 0 else None),
        "submit": submit or MISSING,
        "start": start,
        "runtime": end - start if end >= start else MISSING,
        "requested": seconds_of(_requested(category, "h_rt")),
        "soft_walltime": max(seconds_of(_requested(category, "s_rt")), MISSING),
        "allocated_procs": slots or MISSING,
        "cpu_time": cpu_time / max(slots, 1) if cpu_time >= 0 else MISSING,
        "status": int(record["failed"] in ("0", "") and exit_code <= 0),
        "exit_code": exit_code,
        "mem_mb": asked,
        "requested_mem_mb": asked,
        "used_mem_mb": _megabytes(record["maxvmem"]),
        "gpus": count_of(_requested(category, "n?gpus?")),
    }
    texts = {"state": "TIMEOUT" if record["failed"] == "37" else ""}
    return numbers, texts | {name: "" if record[field] == "NONE" else record[field] for name, field in _TEXTS.items()}, (job, task, submit)


def is_accounting(sample: Sample) -> bool:
    """Return whether a table's titles are the fields of Grid Engine's accounting, with numbers as times."""
    names = ("job_number", "submission_time", "start_time", "end_time", "failed", "slots")
    times = [text for name in names[1:4] for text in sample.columns.get(name, ())]
    return set(names) <= sample.columns.keys() and all(text in BLANK or NUMBER.fullmatch(text) for text in times)


def _read(state: ReaderState) -> JobLog:
    if _HEAD.search(state.file.head):
        return read_runs(state, "sge", state.lines(), _runs)
    if _QACCT.match(state.file.head):
        state.unit, name = "record", state.options.time_zone
        text = state.file.content().decode("utf-8", "replace")
        blocks = [block for block in re.split(r"^={20,} *\r?$", text, flags=re.MULTILINE) if "jobnumber" in block]
        state.count(ZONE_UNKNOWN, len(blocks) if name is None else 0)
        return read_runs(state, "sge", enumerate(blocks, 1), _of_qacct(Origin(time_zone=name or "UTC").tzinfo()))
    return read_runs(state, "sge", items_of(state), _of_table)


SGE = LogFormat("sge", "Grid Engine's accounting", (), re.compile(_HEAD.pattern + b"|" + _QACCT.pattern, re.MULTILINE), _read)
"""The accounting file of Grid Engine; its processors are slots."""
