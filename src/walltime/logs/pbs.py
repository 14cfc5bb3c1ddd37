"""Read the accounting files of OpenPBS, PBS Professional and Torque, with a line for each event; the line of a job's end describes the job.

Sources: OpenPBS Administrator's Guide, Accounting Log; Torque Administrator's Guide, Accounting Records.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache

from walltime.logs.batch_systems import (
    FIRST_LINES,
    UNREADABLE,
    RecordError,
    Run,
    Skip,
    count_of,
    first_known,
    numbered,
    read_runs,
    seconds_of,
    whole,
)
from walltime.logs.joblog import JobLog
from walltime.logs.reader import LogFormat, ReaderState
from walltime.logs.rules import OTHER_EVENT, Rule
from walltime.logs.slurm.jobs import NEVER_STARTED
from walltime.workload import MISSING

ARRAY_SUMMARY = Rule("array_summary", "drop", "The record describes a job array as a whole, such as 12[]; its jobs have their own records.")
USED_DIFFERS = Rule(
    "walltime_differs", "notice", "The charged wall-clock time differs by more than a minute from the runtime, the time from start to end."
)
LOST_RUN = Rule("lost_run", "notice", "The job started twice, and the log has no end of the first run, which is left out.")
_STAMP = r"(?:[0-9]{2}/){2}[0-9]{4} (?:[0-9]{2}:){2}[0-9]{2}(?:\.[0-9]+)?"
_LINE = re.compile(rf"({_STAMP});([A-Za-z]{{1,2}});([^;]*);(.*)", re.DOTALL)
_HEAD = re.compile(rb"\A" + FIRST_LINES + _STAMP.encode() + rb";[A-Za-z]{1,2};[^;\n]*;")
_ITEM = re.compile(r"""(?:^|\s)([A-Za-z_][\w.]*)=("[^"]*"(?=\s|$)|'[^']*'(?=\s|$)|.*?)(?=\s+[A-Za-z_][\w.]*=|\s*$)""", re.DOTALL)
_KEY = re.compile(r"[A-Za-z_][\w.]*")
_ID = re.compile(r"([0-9]{1,15})(?:\[([0-9]{0,9})\]|-([0-9]{1,9}))?(?:\.\S*)?")
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([kmgtp]?)([bw]?)", re.IGNORECASE)
_UNITS = {"": 1 / 1024, "k": 1, "m": 1024, "g": 1024**2, "t": 1024**3, "p": 1024**4}
_WORD = 8
"""Bytes of a word, the unit of sizes such as 512mw."""
_TEXTS = {"user": ("user",), "group": ("account", "project", "group"), "queue": ("queue",), "executable": ("jobname",)}
"""The items that may give each name; the first known one is used."""
_STATES = {"-20": "NODE_FAIL", "-26": "OUT_OF_MEMORY", "-27": "OUT_OF_MEMORY", "-29": "TIMEOUT"}
"""Slurm's names for the states that OpenPBS's Exit_status means; in Torque, numbers below 20 mean something else."""
_NO_PROJECT = "_pbs_project_default"
_ENDS = ("E", "R", "A")
"""Records of the end of a run: of the job's end (E), because it is queued again (R), or because the server aborted it (A)."""
_REPEATED = frozenset({"user", "ctime", "qtime", "etime", "start", "end", "Exit_status", "Resource_List.walltime", "Resource_List.ncpus"})


def _items(text: str) -> dict[str, str]:
    """Return the items `key=value`; values may contain blanks. Raises RecordError if an important key occurs twice, perhaps in a text."""
    if '"' not in text and "'" not in text:
        parts = [part.split("=", 1) for part in text.split(" ")]
        if all(len(part) == 2 for part in parts):
            plain: dict[str, str] = dict(parts)
            if len(plain) == len(parts) and all(map(_is_key, plain)):
                return plain  # the most frequent case: no value contains a blank
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


def _kilobytes(text: str | None) -> float:
    match = _SIZE.fullmatch(text or "")
    if match is None:
        return UNREADABLE if text else MISSING
    return float(match[1]) * _UNITS[match[2].lower()] * (_WORD if match[3] in ("w", "W") else 1)


def chunks(text: str, *names: str) -> int:
    """Return the amount of a resource in a selection such as `2:ncpus=4+1:ncpus=1`, or in Torque's nodes, `2:ppn=4+n7`; -1 if none.

    A chunk has one processor (ncpus, ppn) by default. `names`: the resource's names.

    >>> chunks("2:ncpus=4+1:ncpus=1:mem=1gb", "ncpus"), chunks("2:ppn=4+n7", "ppn"), chunks("3", "ppn"), chunks("3", "ngpus")
    (9, 9, 3, -1)
    """
    total = 0
    for chunk in text.split("+"):
        amount = re.search(rf"(?:^|:)(?:{'|'.join(names)})=([0-9]{{1,9}})(?::|$)", chunk)
        total += max(count_of(chunk.split(":")[0]), 1) * (int(amount[1]) if amount else int(names[0] in ("ncpus", "ppn")))
    return total or MISSING


def _sum(text: str, *names: str) -> int:
    """Return the total of a resource in a text such as exec_vnode; 0 if it has none."""
    return sum(map(int, re.findall(rf"\b(?:{'|'.join(names)})=([0-9]{{1,9}})", text)))


def _memory(text: str) -> float:
    """Return the memory in a selection such as `2:ncpus=4:mem=8gb`, or in exec_vnode, KB; 0 if it has none."""
    chunks = ((chunk, re.search(r":mem=([^:)]+)", chunk)) for chunk in text.split("+"))
    return sum(max(count_of(chunk.split(":")[0]), 1) * max(_kilobytes(amount[1]), 0) for chunk, amount in chunks if amount)


def _slots(text: str) -> int:
    """Return the number of slots in exec_host or exec_gpus, such as `n1/0*4+n2/0-3+n3/1,2`."""
    total = 0
    for times, spans in re.findall(r"/(?:[0-9]+\*([0-9]{1,9})|([0-9,-]+))", text):
        pairs = re.findall(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", spans)
        total += int(times) if times else sum(max(int(high or low) - int(low) + 1, 1) for low, high in pairs)
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
"""Items for jobs that start on a login node, which alone is recorded (Cray), or anywhere (procs)."""
GPUS = (
    ("exec_gpus", _slots),
    ("exec_vnode", lambda text: _sum(text, *_GPUS)),
    *((f"Resource_List.{name}", count_of) for name in _GPUS),
    *((key, lambda text: chunks(text, *_GPUS)) for key in _CHUNKS),
    ("Resource_List.gres", lambda text: int((re.search(r"\bgpus?[:=+]([0-9]{1,6})", text) or ["", "0"])[1])),
)
"""The items that may give an amount, and how each is parsed; the most reliable come first."""


def _sizes(items: Mapping[str, str]) -> dict[str, float]:
    """Return the processors, nodes and GPUs of a job."""
    allocated, requested, wide = (first_known(items, readers) for readers in (ALLOCATED, REQUESTED, WIDTHS))
    nodes: float = count_of(items.get("Resource_List.nodect", "").partition(":")[0])
    if wide > 0:
        per_node = count_of(items.get("Resource_List.mppnppn"))
        if "Resource_List.mppwidth" in items:
            nodes = -(-wide // per_node) if per_node > 0 else MISSING
            wide *= max(count_of(items.get("Resource_List.mppdepth")), 1)
        requested = wide
    if 0 < allocated < requested:  # exec_host lists only a login node, or is truncated
        allocated = MISSING
    return {"allocated_procs": allocated, "requested_procs": requested, "nodes": nodes, "gpus": first_known(items, GPUS)} | {
        "requested_gpus": first_known(items, GPUS[2:])
    }


class PbsRecords:
    """Reads records one by one. `deleted`: the jobs that were deleted; `started`: the start records of jobs that have not ended."""

    def __init__(self, state: ReaderState) -> None:
        self.state = state
        self.deleted: set[str] = set()
        self.started: dict[str, tuple[str, str]] = {}

    def __call__(self, line: str) -> Iterator[Run]:
        """Yield the run whose end the record describes, if it does."""
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise RecordError("not a record such as 03/02/2026 10:00:00;E;12.server;user=...")
        stamp, event, identity, items = match.groups()
        begun = self.started.pop(identity, None) if event in ("S", *_ENDS) else None
        if event == "S":
            self.state.count(LOST_RUN, int(begun is not None))
            self.started[identity] = stamp, items
        elif event == "D":
            self.deleted.add(identity)
        if event not in _ENDS or (event == "A" and begun is None):
            raise Skip(OTHER_EVENT)
        values = _items(items)
        if (
            event != "E" and "end" not in values and "[]" not in identity
        ):  # in Torque, the record of a requeued or aborted run has only a time
            if begun is None:
                raise Skip(OTHER_EVENT)
            values = _items(begun[1]) | values
            values["end"] = str(whole(values.get("start"), "start") + _time_of(stamp) - _time_of(begun[0]))
        yield self.run(identity, values, event)

    def run(self, identity: str, items: Mapping[str, str], event: str) -> Run:
        """Return the numbers and the names of a run that has ended, and its job."""
        if "[]" in identity:
            raise Skip(ARRAY_SUMMARY)
        match = _ID.fullmatch(identity)
        if match is None:
            raise RecordError(f"{identity[:30]!r} is not a job number")
        task = match[2] or match[3]
        times = {name: whole(items.get(name), name) for name in ("ctime", "qtime", "etime", "start", "end")}
        start, end = times["start"], times["end"]
        if start == 0:
            raise Skip(NEVER_STARTED)
        if start < 0 or end < 0:
            raise RecordError(f"{'start' if start < 0 else 'end'} is missing")
        if end < start:
            raise RecordError(f"end must not be before start ({start}), but is {end}")
        sizes = _sizes(items)
        processors = max(sizes["allocated_procs"] if sizes["allocated_procs"] > 0 else sizes["requested_procs"], 1)
        asked = _kilobytes(items.get("Resource_List.mem"))
        if asked == MISSING:
            of_all = ("Resource_List.pmem", lambda text: _kilobytes(text) * max(sizes["requested_procs"], 1))
            asked = first_known(items, (("Resource_List.select", _memory), of_all))
        code = items.get("Exit_status", "")
        known = re.fullmatch(r"-?[0-9]{1,6}", code) is not None
        numbers = {
            **numbered(int(match[1]), int(task) if task else None),
            "submit": times["ctime"] if times["ctime"] >= 0 else times["qtime"],
            "eligible": times["etime"],
            "start": start,
            "runtime": end - start,
            "requested": seconds_of(items.get("Resource_List.walltime")),
            "soft_walltime": max(seconds_of(items.get("Resource_List.soft_walltime")), MISSING),
            **sizes,
            "cpu_time": _shared(seconds_of(items.get("resources_used.cput")), processors),
            "mem_mb": _shared(first_known(items, (("exec_vnode", _memory),)) if asked == MISSING else asked, 1024),
            "requested_mem_mb": _shared(asked, 1024),
            "used_mem_mb": _shared(_kilobytes(items.get("resources_used.mem")), 1024),
            "status": 0 if event != "E" else MISSING if not known else 1 if int(code) == 0 else 5 if identity in self.deleted else 0,
            "exit_code": max(int(code), MISSING) if known else UNREADABLE if code else MISSING,
            "run_count": count_of(items.get("run_count")),
        }
        used = seconds_of(items.get("resources_used.walltime"))
        self.state.count(USED_DIFFERS, int(used >= 0 and abs(used - (end - start)) > 60))
        texts = {
            name: next((items[key] for key in keys if items.get(key, _NO_PROJECT) not in ("", _NO_PROJECT)), "")
            for name, keys in _TEXTS.items()
        }
        texts["state"] = _STATES.get(code, "")
        return numbers, texts, (identity, numbers["submit"])


def _shared(amount: float, processors: float) -> float:
    """Divide an amount among processors; values below 0, which have other meanings, do not change."""
    return amount / processors if amount >= 0 else amount


def _time_of(stamp: str) -> int:
    """Parse the time of a record; return s since a fixed but arbitrary time."""
    try:
        return int(datetime.strptime(stamp[:19], "%m/%d/%Y %H:%M:%S").replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise RecordError(f"{stamp} is not a time") from None


def _read(state: ReaderState) -> JobLog:
    return read_runs(state, "pbs", state.lines(), PbsRecords(state))


PBS = LogFormat("pbs", "PBS or Torque accounting", (".acct",), _HEAD, _read, (ARRAY_SUMMARY, USED_DIFFERS, LOST_RUN))
"""Accounting files of PBS and Torque."""
