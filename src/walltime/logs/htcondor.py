"""HTCondor's history: class ads from `condor_history -long` or its history file, and `condor_history -json`.

Source: HTCondor manual, Job ClassAd Attributes, https://htcondor.readthedocs.io/en/latest/classad-attributes/job-classad-attributes.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from walltime.logs.batch_systems import STILL_PENDING, STILL_RUNNING, Counts, JobRows
from walltime.logs.input import LogFile
from walltime.logs.joblog import BadLines, JobLog, LogFormat, ReadOptions
from walltime.logs.objects import frame_of
from walltime.logs.slurm.jobs import ELAPSED_DIFFERS, NEVER_STARTED
from walltime.workload import MISSING

_HEAD = re.compile(rb'\A(?:\xef\xbb\xbf)?\s*+[\[{A-Z*](?=.*\bClusterId"? ?[=:] ?[0-9])(?=.*\bQDate"? ?[=:] ?[0-9])', re.DOTALL)
_REMOVED, _COMPLETED = 3, 4
_OPEN = {1: STILL_PENDING, 5: STILL_PENDING, 2: STILL_RUNNING, 6: STILL_RUNNING, 7: STILL_RUNNING}
"""Values of JobStatus for jobs that have not ended: idle, held, running, transferring output, suspended."""
_LIMITS = (("maxwalltimemins", 60), ("maxwalltime", 60), ("maxruntime", 1), ("allowedexecuteduration", 1), ("allowedjobduration", 1))
"""Attributes in which sites and users give a time limit, with their unit in s."""
_SIZES = {
    "allocated_procs": ("cpusprovisioned",),
    "requested_procs": ("requestcpus",),
    "gpus": ("gpusprovisioned", "requestgpus"),
    "mem_mb": ("memoryprovisioned", "requestmemory"),
}
_TEXTS = {"user": ("owner", "user"), "group": ("acctgroup", "accountinggroup"), "executable": ("cmd",)}


class HtcondorLog(JobLog):
    """A log from HTCondor's history; each run of an evicted job is a job."""

    format: ClassVar[str] = "htcondor"
    endings: ClassVar[tuple[str, ...]] = (".json", ".log", ".txt")


class _Ad:
    """The attributes of a job, whose names ignore case."""

    def __init__(self, row: Mapping[str, object]) -> None:
        self._values = {name.lower(): str(value) for name, value in row.items() if value is not None}

    def number(self, *names: str, least: float = 0) -> float:
        """Return the first of these attributes that is a number of at least `least`; -1 if there is none."""
        for name in names:
            text = self._values.get(name, "")
            if re.fullmatch(r"[0-9]{1,15}(?:\.[0-9]+)?", text, re.ASCII) and float(text) >= least:
                return float(text)
        return float(MISSING)

    def text(self, *names: str) -> str:
        """Return the first of these attributes that is known, else an empty text."""
        return next((self._values[name] for name in names if self._values.get(name, "undefined") != "undefined"), "")


def _runs(ad: _Ad) -> Iterator[tuple[float, float, bool]]:
    """Yield start, runtime and whether it is the last one, of the runs of a job; the runs before the last one are taken as one."""
    first, start = ad.number("jobstartdate", least=1), ad.number("jobcurrentstartdate", "jobstartdate", least=1)
    end = ad.number("completiondate", "enteredcurrentstatus", least=1)
    total, last = ad.number("remotewallclocktime"), ad.number("lastremotewallclocktime")
    if last < 0:
        last = total if total >= 0 and first in (start, MISSING) else max(end - start, MISSING)
    if start > 0 and ad.number("numjobstarts") != 0:
        earlier = total - last
        if earlier > 1 and first > 0 and first + earlier <= start:
            yield first, earlier, False
        yield start, last, True


def _read(file: LogFile, options: ReadOptions) -> HtcondorLog:
    counts, bad, rows = Counts(), BadLines(file, options, "record"), JobRows()
    for number, row in enumerate(frame_of(file).iter_rows(named=True), 1):
        ad = _Ad(row)
        status = int(ad.number("jobstatus")) if ad.number("jobstatus") >= 0 else _COMPLETED
        cluster, part, submit = (ad.number(name) for name in ("clusterid", "procid", "qdate"))
        if cluster < 0 or submit < 0:
            bad.add(number, "ClusterId or QDate is not a number", str(row)[:200])
            continue
        if status in _OPEN:
            counts.add(_OPEN[status], 1)
            continue
        runs = list(_runs(ad))
        counts.add(NEVER_STARTED, int(not runs))
        code = ad.number("exitcode", "exitstatus")
        done = status == _COMPLETED and code <= 0 and ad.text("exitbysignal").lower() != "true"
        limit = next((unit * ad.number(name, least=1) for name, unit in _LIMITS if ad.number(name, least=1) > 0), float(MISSING))
        sizes = {name: ad.number(*names, least=1) for name, names in _SIZES.items()}
        for start, runtime, is_last in runs:
            numbers = {
                "job_id": cluster if part <= 0 else MISSING,
                "submit": submit,
                "start": start,
                "runtime": runtime,
                "requested": limit,
                **sizes,
                "status": 0 if not is_last else 5 if status == _REMOVED else int(done),
                "array_job": cluster if part > 0 else MISSING,
                "array_task": part if part > 0 else MISSING,
                "exit_code": code if is_last else MISSING,
            }
            rows.add(numbers, {name: ad.text(*names) for name, names in _TEXTS.items()}, (cluster, part))
        end = ad.number("completiondate", least=1)
        if runs and end > 0:
            begin, runtime, _ = runs[-1]
            total = ad.number("remotewallclocktime")
            lost = total >= 0 and abs(total - sum(run[1] for run in runs)) > 1
            counts.add(ELAPSED_DIFFERS, int(lost or abs(end - begin - runtime) > 1))
    return rows.log(HtcondorLog, bad, counts)


HTCONDOR = LogFormat("htcondor", "HTCondor's history", (), _HEAD, _read)
"""HTCondor's history, as class ads or JSON."""
