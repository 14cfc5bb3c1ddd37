"""Read LSF's `lsb.acct`: a line for each finished job, with fields in a fixed order.

Source: IBM Spectrum LSF, reference of `lsb.acct`, the record JOB_FINISH. Fields that only some versions have are read only if they are
certain.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from walltime.logs.batch_systems import FIRST_LINES, RecordError, Run, Skip, numbered, read_runs, whole
from walltime.logs.joblog import JobLog
from walltime.logs.reader import LogFormat, ReaderState
from walltime.logs.rules import OTHER_EVENT
from walltime.workload import MISSING

_TOKEN = re.compile(r'\s*(?:"((?:[^"]|"")*)"(?=\s|$)|([^\s"]+)(?=\s|$))')
_EVENT = re.compile(r'"[A-Z_]+" "[0-9]+(?:\.[0-9]+)*" [0-9]{9,11} ')
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_USAGE = "ru_utime. ru_stime. " + " ".join(f"usage{number}." for number in range(17))
_FINISH = (
    "event version endTime# jobId# userId. options. numProcessors# submitTime# beginTime# termTime# startTime# userName queue resReq"
    " dependCond preExecCmd fromHost cwd inFile outFile errFile jobFile askedHosts* execHosts* jStatus# hostFactor. jobName command"
    f" {_USAGE} mailUser projectName exitStatus#"
)
"""The fields of JOB_FINISH in every version: whole numbers (#), numbers (.), lists preceded by their length (*), and texts."""
_OPTIONAL = (
    "maxNumProcessors# loginShell timeEvent idx# maxRMem. maxRSwap. inFileSpool commandSpool rsvId sla exceptMask. additionalInfo exitInfo#"
    " warningAction warningTimePeriod. chargedSAAP licenseProject app postExecCmd runtimeEstimation#"
)
"""The fields that follow; older versions have some of them."""
_LATER = (
    "jobGroupName requeueEvalues options2. resizeNotifyCmd lastResizeTime. rsvId2 jobDescription submitEXT% hostRusage@ runLimit# maxMem."
    " avgMem. effectiveResReq"
)
"""The fields that follow since LSF 10.1; (%) marks a list of keys and texts, and (@) a list of hosts with four numbers each."""
_HOST_USAGE = "hostname mem. swap. utime. stime."
_DONE, _EXIT = 64, 32
_KILLED = (8, 9, 14, 15)
"""Values of exitInfo for jobs killed by the owner or an administrator."""
_STATES = {1: "PREEMPTED", 5: "TIMEOUT", 6: "DEADLINE", 16: "OUT_OF_MEMORY"}
"""Slurm's names for the states that exitInfo means."""
_GPUS, _LIMITS = 1042, 1086
"""Keys of submission extensions: the requested GPUs, such as `num=2:mode=shared`, and the limits; the run limit has the index `_RUN`."""
_RUN = 9
_GPUS_USED = re.compile(r"\bngpus(?:_physical|_excl_p|_excl_t|_shared)?=([0-9]{1,4})(?:\.0*)?(/task)?")


@cache
def _parts(layout: str) -> list[tuple[str, str]]:
    """Return the names and kinds of the fields in a layout."""
    return re.findall(r"(\w+)([#.*%@]?)", layout)


class _Fields:
    """The fields of a record, read one by one. A field of the wrong kind raises RecordError, so that fields are not mixed up."""

    def __init__(self, line: str) -> None:
        self.tokens: list[tuple[str, bool]] = []
        self.values: dict[str, Any] = {}
        self.next = place = 0
        while place < len(line):
            match = _TOKEN.match(line, place)
            if match is None:
                if not line[place:].strip():
                    break
                raise RecordError(f"field {len(self.tokens) + 1} must be a number or a quoted string")
            self.tokens.append((match[1].replace('""', '"'), True) if match[1] is not None else (match[2], False))
            place = match.end()

    def read(self, layout: str) -> dict[str, Any]:
        """Add the fields of a layout to `values`, and return them; stops with an error at one that is missing or of the wrong kind."""
        for name, kind in _parts(layout):
            self.values[name] = self._value(name, kind)
        return self.values

    def _value(self, name: str, kind: str) -> Any:
        if kind in ("*", "%", "@"):
            count = range(self._value(f"number of {name}", "#"))
            if kind == "%":
                return {self._value(name, "#"): self._value(name, "") for _ in count}
            if kind == "*":
                return [self._value(name, "") for _ in count]
            return [self.read(_HOST_USAGE) for _ in count]
        if self.next >= len(self.tokens):
            raise RecordError(f"the record ends before {name}")
        text, quoted = self.tokens[self.next]
        self.next += 1
        if quoted != (kind == ""):
            must = "a number" if kind else "a quoted string"
            raise RecordError(f"field {self.next} ({name}) must be {must}, not {text[:30]!r}")
        if kind == "." and (not _NUMBER.fullmatch(text) or len(text) > 24):
            raise RecordError(f"field {self.next} ({name}) must be a number, not {text[:30]!r}")
        return text if not kind else float(text) if kind == "." else MISSING if text == "-1" else whole(text, name)


def _fields(line: str) -> dict[str, Any]:
    """Return the fields of a record, by name; those that older versions lack may be missing."""
    fields = _Fields(line)
    fields.read(_FINISH)
    try:
        fields.read(_OPTIONAL)
    except RecordError:
        if fields.next < len(fields.tokens):  # damaged, and not a shorter record of an older version
            raise
        return fields.values
    try:
        fields.read(_LATER)
    except RecordError:  # these fields are not certain
        for name in ("runLimit", "submitEXT", "effectiveResReq"):
            fields.values.pop(name, None)
    return fields.values


def _limit(fields: dict[str, Any]) -> int:
    """Return the run limit, else the estimated runtime, s; -1 if the log lacks them or they are not certain."""
    limits, limit = fields.get("submitEXT", {}).get(_LIMITS, "").split(), fields.get("runLimit", MISSING)
    is_written = len(limits) > _RUN and re.fullmatch("[0-9]{1,15}", limits[_RUN])
    limit = int(limits[_RUN]) if is_written else limit if limit % 60 == 0 else MISSING
    return next((one for one in (limit, fields.get("runtimeEstimation", MISSING)) if one > 0), MISSING)


def _gpus(fields: dict[str, Any], hosts: int, tasks: int) -> int:
    """Return the GPUs of a job from a request for each host or each task; -1 if there is none."""
    asked = re.search(r"\bnum=([0-9]{1,4})(/task)?", fields.get("submitEXT", {}).get(_GPUS, ""))
    asked = asked or _GPUS_USED.search(fields.get("effectiveResReq", "")) or _GPUS_USED.search(fields["resReq"])
    return int(asked[1]) * (tasks if asked[2] else hosts) or MISSING if asked else MISSING


def _runs(line: str) -> Iterator[Run]:
    if line.startswith("#"):
        return
    if _EVENT.match(line) is None:
        raise RecordError('not a record such as "JOB_FINISH" "10.1" 1772445600 ...')
    if not line.startswith('"JOB_FINISH"'):
        raise Skip(OTHER_EVENT)
    f = _fields(line)
    end, submit, start, status = f["endTime"], f["submitTime"], f["startTime"], f["jStatus"]
    if status not in (_DONE, _EXIT):
        raise RecordError(f"jStatus must be {_DONE} (done) or {_EXIT} (exit), not {status}")
    if not (0 < submit <= end) or (start and start > end):
        raise RecordError(f"submission, start and end must be in this order, not {submit}, {start} and {end}")
    hosts = [re.fullmatch(r"(?:([0-9]{1,9})\*)?(.*)", host) for host in f["execHosts"]]
    names, slots = {host[2] for host in hosts if host}, sum(int(host[1] or 1) for host in hosts if host)
    ran, job, index, code = start > 0, f["jobId"], max(f.get("idx", 0), 0), f["exitStatus"]
    used = f["ru_utime"] + f["ru_stime"] if min(f["ru_utime"], f["ru_stime"]) >= 0 else MISSING
    killed = status == _EXIT and (f.get("exitInfo", 0) in _KILLED or not ran)
    numbers = {
        **numbered(job, index if index > 0 else None),
        "submit": submit,
        "eligible": max(f["beginTime"], MISSING) or MISSING,
        "start": start if ran else MISSING,
        "runtime": end - start if ran else 0,
        "requested": _limit(f),
        "allocated_procs": slots if ran and slots else MISSING,
        "requested_procs": f["numProcessors"] or MISSING,
        "cpu_time": used / max(slots, 1) if used >= 0 and ran else MISSING,
        "used_mem_mb": f["maxRMem"] / 1024 if ran and f.get("maxRMem", 0) > 0 else MISSING,
        "status": 1 if status == _DONE else 5 if killed else 0,
        "exit_code": code >> 8 if ran and code >= 0 else MISSING,  # exitStatus is the value from wait()
        "exit_signal": code & 0x7F if ran and code >= 0 else MISSING,
        "nodes": len(names) if ran and hosts else MISSING,
        "gpus": _gpus(f, max(len(names), 1), max(slots, f["numProcessors"])),
    }
    texts = {"user": f["userName"], "group": f["projectName"], "queue": f["queue"], "executable": f["jobName"]}
    texts["state"] = _STATES.get(f.get("exitInfo", 0), "") if status == _EXIT else ""
    yield numbers, texts, (job, index, submit)


def _read(state: ReaderState) -> JobLog:
    return read_runs(state, "lsf", state.lines(), _runs)


LSF = LogFormat("lsf", "LSF's lsb.acct", (), re.compile(rb"\A" + FIRST_LINES + _EVENT.pattern.encode()), _read)
"""LSF's lsb.acct."""
