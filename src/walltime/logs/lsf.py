"""LSF's `lsb.acct`: a line for each finished job, with fields in a fixed order.

Source: IBM Spectrum LSF, reference of `lsb.acct`, the record JOB_FINISH. Fields that only some
versions have are read where they are certain.
"""

from __future__ import annotations

import re
from typing import ClassVar

from walltime.logs.batch_systems import FIRST_LINES, OTHER_EVENT, Counts, JobRows, RecordError, text_lines, whole
from walltime.logs.input import LogFile
from walltime.logs.joblog import BadLines, JobLog, LogFormat, ReadOptions
from walltime.workload import MISSING

_TOKEN = re.compile(r'\s*(?:"((?:[^"]|"")*)"(?=\s|$)|([^\s"]+)(?=\s|$))')
_EVENT = re.compile(r'"[A-Z_]+" "[0-9]+(?:\.[0-9]+)*" [0-9]{9,11} ')
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_DONE, _EXIT = 64, 32
_KILLED = (8, 9, 14, 15)
"""exitInfo: killed by the owner or an administrator."""
_USAGE_FIELDS = 19
_GPUS, _LIMITS = 1042, 1086
"""Keys of submission extensions: the requested GPUs, such as `num=2:mode=shared`, and the limits; the run limit has the index `_RUN`."""
_RUN = 9


class LsfLog(JobLog):
    """A log from lsb.acct."""

    format: ClassVar[str] = "lsf"
    endings: ClassVar[tuple[str, ...]] = (".acct", ".log", ".txt")


class _Fields:
    """The fields of a record, read one by one; a field of the wrong kind raises RecordError, so that fields are not confused."""

    def __init__(self, line: str) -> None:
        self.tokens: list[tuple[str, bool]] = []
        place = 0
        while place < len(line):
            match = _TOKEN.match(line, place)
            if match is None:
                if not line[place:].strip():
                    break
                raise RecordError(f"field {len(self.tokens) + 1} must be a number or a text in quotes")
            self.tokens.append((match[1].replace('""', '"'), True) if match[1] is not None else (match[2], False))
            place = match.end()
        self.next = 0

    def more(self) -> bool:
        return self.next < len(self.tokens)

    def _take(self, name: str, is_text: bool) -> str:
        if not self.more():
            raise RecordError(f"the record ends before {name}")
        text, quoted = self.tokens[self.next]
        self.next += 1
        if quoted != is_text:
            raise RecordError(f"field {self.next} ({name}) is {text[:30]!r}; it must be {'a text in quotes' if is_text else 'a number'}")
        return text

    def skip(self, *names: str) -> None:
        for name in names:
            self.text(name)

    def text(self, name: str) -> str:
        return self._take(name, True)

    def whole(self, name: str) -> int:
        text = self._take(name, False)
        return MISSING if text == "-1" else whole(text, name)

    def number(self, name: str) -> float:
        text = self._take(name, False)
        if not _NUMBER.fullmatch(text) or len(text) > 24:
            raise RecordError(f"field {self.next} ({name}) is {text[:30]!r}; it must be a number")
        return float(text)


def _job(f: _Fields) -> tuple[dict[str, float], dict[str, str]]:
    """The numbers and texts of a record JOB_FINISH, from its third field on."""
    end, job = f.whole("event time"), f.whole("jobId")
    f.number("userId")
    f.number("options")
    processors, submit, begin = f.whole("numProcessors"), f.whole("submitTime"), f.whole("beginTime")
    f.whole("termTime")
    start = f.whole("startTime")
    user, queue = f.text("userName"), f.text("queue")
    f.skip("resReq", "dependCond", "preExecCmd", "fromHost", "cwd", "inFile", "outFile", "errFile", "jobFile")
    for _ in range(f.whole("numAskedHosts")):
        f.text("askedHosts")
    hosts = [f.text("execHosts") for _ in range(f.whole("numExHosts"))]
    status = f.whole("jStatus")
    f.number("hostFactor")
    jobname = f.text("jobName")
    f.text("command")
    usage = [f.number("resource usage") for _ in range(_USAGE_FIELDS)]
    f.text("mailUser")
    project = f.text("projectName")
    code = f.whole("exitStatus")
    if status not in (_DONE, _EXIT):
        raise RecordError(f"jStatus is {status}; it must be {_DONE} (done) or {_EXIT} (exit)")
    if not (0 < submit <= end) or (start and start > end):
        raise RecordError(f"submission, start and end must be in this order; they are {submit}, {start} and {end}")
    index, info, estimate = _optional_fields(f)
    limit, per_host, per_task = _later_fields(f)
    names = {re.sub(r"^[0-9]+\*", "", host) for host in hosts}
    slots = sum(int(match[1]) if (match := re.match(r"([0-9]{1,9})\*", host)) else 1 for host in hosts)
    used = usage[0] + usage[1] if min(usage[:2]) >= 0 else float(MISSING)
    ran = start > 0
    killed = status == _EXIT and (info in _KILLED or not ran)
    numbers = {
        "job_id": MISSING if index > 0 else job,
        "submit": submit,
        "eligible": max(begin, MISSING) or MISSING,
        "start": start if ran else MISSING,
        "runtime": end - start if ran else 0,
        "requested": limit if limit > 0 else estimate if estimate > 0 else MISSING,
        "allocated_procs": slots if ran and slots else MISSING,
        "requested_procs": processors or MISSING,
        "cpu_time": used / max(slots, 1) if used >= 0 and ran else MISSING,
        "status": 1 if status == _DONE else 5 if killed else 0,
        "array_job": job if index > 0 else MISSING,
        "array_task": index if index > 0 else MISSING,
        "exit_code": code >> 8 if ran and code >= 0 else MISSING,  # exitStatus is the value from wait()
        "exit_signal": code & 0x7F if ran and code >= 0 else MISSING,
        "nodes": len(names) if ran and hosts else MISSING,
        "gpus": per_host * max(len(names), 1) + per_task * max(slots, processors) or MISSING,
    }
    return numbers, {"user": user, "group": project, "queue": queue, "executable": jobname}


def _optional_fields(f: _Fields) -> tuple[int, int, int]:
    """The index in a job array, the reason of the exit, and the estimated runtime, s, of versions that log them; else 0, 0, -1."""
    index, info, estimate = 0, 0, MISSING
    try:
        f.whole("maxNumProcessors")
        f.skip("loginShell", "timeEvent")
        index = max(f.whole("idx"), 0)
        f.number("maxRMem")
        f.number("maxRSwap")
        f.skip("inFileSpool", "commandSpool", "rsvId", "sla")
        f.number("exceptMask")
        f.skip("additionalInfo")
        info = f.whole("exitInfo")
        f.skip("warningAction")
        f.number("warningTimePeriod")
        f.skip("chargedSAAP", "licenseProject", "app", "postExecCmd")
        estimate = f.whole("runtimeEstimation")
    except RecordError:
        if f.more():  # a damaged record, not a shorter one of an older version
            raise
    return index, info, estimate


def _later_fields(f: _Fields) -> tuple[int, int, int]:
    """The run limit, s, and the GPUs of a host and of a task, of LSF 10.1; -1, 0 and 0 where they are not logged or not certain."""
    try:
        f.skip("jobGroupName", "requeueEvalues")
        f.number("options2")
        f.skip("resizeNotifyCmd")
        f.number("lastResizeTime")
        f.skip("rsvId", "jobDescription")
        extensions = {f.whole("submitEXT key"): f.text("submitEXT value") for _ in range(f.whole("submitEXT Num"))}
        for _ in range(f.whole("numHostRusage")):
            f.skip("hostname")
            for name in ("mem", "swap", "utime", "stime"):
                f.number(name)
        limit = f.whole("runLimit")
        f.number("maxMem")
        f.number("avgMem")
        requirement = f.text("effectiveResReq")
    except RecordError:
        return MISSING, 0, 0
    limits = extensions.get(_LIMITS, "").split()
    limit = int(limits[_RUN]) if len(limits) > _RUN and limits[_RUN].isdecimal() else limit if limit % 60 == 0 else MISSING
    asked = re.search(r"\bnum=([0-9]{1,4})(/task)?", extensions.get(_GPUS, ""))
    used = re.search(r"\bngpus(?:_physical|_excl_p|_excl_t|_shared)?=([0-9]{1,4})", requirement)
    gpus = int(asked[1] if asked else used[1] if used else 0)
    return limit, *((0, gpus) if asked and asked[2] else (gpus, 0))


def _read(file: LogFile, options: ReadOptions) -> LsfLog:
    counts, bad, rows = Counts(), BadLines(file, options), JobRows()
    for number, text in text_lines(file, counts):
        try:
            if _EVENT.match(text) is None:
                raise RecordError('not a record such as "JOB_FINISH" "10.1" 1772445600 ...')
            if not text.startswith('"JOB_FINISH"'):
                counts.add(OTHER_EVENT, 1)
                continue
            fields = _Fields(text)
            fields.next = 2
            numbers, texts = _job(fields)
        except RecordError as error:
            bad.add(number, str(error), text)
            continue
        rows.add(numbers, texts)
    return rows.log(LsfLog, bad, counts)


LSF = LogFormat("lsf", "LSF's lsb.acct", (), re.compile(rb"\A" + FIRST_LINES + _EVENT.pattern.encode()), _read)
"""LSF's lsb.acct."""
