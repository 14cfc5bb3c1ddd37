"""HTCondor's history: class ads from `condor_history -long`, `-json` or `-xml`, or its history file, and tables of ads.

Source: HTCondor manual, Job ClassAd Attributes, https://htcondor.readthedocs.io/en/latest/classad-attributes/job-classad-attributes.html
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial

from walltime.logs.batch_systems import RecordError, Run, Skip, numbered, read_runs
from walltime.logs.joblog import JobLog
from walltime.logs.reader import LogFormat, ReaderState
from walltime.logs.rules import STILL_PENDING, STILL_RUNNING, Rule
from walltime.logs.sample import Sample, items_of
from walltime.logs.slurm.jobs import ELAPSED_DIFFERS, NEVER_STARTED
from walltime.workload import MISSING

SUBMIT_HOST = Rule(
    "submit_host", "drop", "HTCondor ran the job on the submit host (scheduler or local universe, such as DAGMan): it has no slot."
)
_NUMBER = rb'"?(?: ?[=:] ?"?|><i>)[0-9]'
_HEAD = re.compile(rb"(?is)\A(?:\xef\xbb\xbf)?\s*+(?=[\[{<A-Z*])(?=.*\bClusterId" + _NUMBER + rb")(?=.*\bQDate" + _NUMBER + rb")")
_REMOVED, _COMPLETED = 3, 4
_PARALLEL, _AT_SUBMIT_HOST = 11, (7, 12)
"""Values of JobUniverse."""
_OPEN = {1: STILL_PENDING, 5: STILL_PENDING, 2: STILL_RUNNING, 6: STILL_RUNNING, 7: STILL_RUNNING}
"""Values of JobStatus for jobs that have not ended: idle, held, running, transferring output, suspended."""
_LIMITS = (("maxwalltimemins", 60), ("maxwalltime", 60), ("maxruntime", 1), ("allowedexecuteduration", 1), ("allowedjobduration", 1))
"""Attributes in which sites and users set a time limit, and the s in their unit."""
_SIZES = {
    "allocated_procs": ("cpusprovisioned",),
    "requested_procs": ("requestcpus",),
    "gpus": ("gpusprovisioned", "requestgpus"),
    "requested_gpus": ("requestgpus",),
    "mem_mb": ("memoryprovisioned", "requestmemory"),
    "requested_mem_mb": ("requestmemory",),
}
USE = ("cpu_time", "used_mem_mb", "gpu_use")
"""The measures of a run, from RemoteUserCpu and RemoteSysCpu, MemoryUsage (or ResidentSetSize), and GPUsAverageUsage (in GPUs)."""
_TEXTS = {"user": ("owner", "user"), "group": ("acctgroup", "accountinggroup"), "executable": ("cmd",)}


class _Ad:
    """The attributes of a job; the case of their names does not matter."""

    def __init__(self, row: Mapping[str, object]) -> None:
        self._values = {name.lower(): str(value) for name, value in row.items() if value is not None}

    def number(self, *names: str, least: float = 0) -> float:
        """Return the first of these attributes that is a number of at least `least`; -1 if there is none."""
        for name in names:
            text = self._values.get(name, "")
            if re.fullmatch(r"[0-9]{1,15}(?:\.[0-9]+)?(?:E[+-]?[0-9]{1,2})?", text, re.ASCII) and float(text) >= least:
                return float(text)
        return float(MISSING)

    def text(self, *names: str) -> str:
        """Return the first of these attributes that is known, else an empty text."""
        return next((self._values[name] for name in names if self._values.get(name, "undefined") not in ("undefined", "")), "")


def _starts(ad: _Ad) -> list[tuple[float, float]]:
    """Return the start and runtime of each run of a job; the runs before the last one count as one."""
    first, start = ad.number("jobstartdate", least=1), ad.number("jobcurrentstartdate", "jobstartdate", least=1)
    end = ad.number("completiondate", "enteredcurrentstatus", least=1)
    total, last = ad.number("remotewallclocktime"), ad.number("lastremotewallclocktime")
    if last < 0:
        last = total if total >= 0 and first in (start, MISSING) else max(end - start, MISSING)
    if start <= 0 or ad.number("numjobstarts") == 0:
        return []
    earlier = total - last
    return [*([(first, earlier)] if earlier > 1 and 0 < first <= start - earlier else []), (start, last)]


def _runs(state: ReaderState, row: Mapping[str, object]) -> Iterator[Run]:
    ad = _Ad(row)
    status = int(ad.number("jobstatus")) if ad.number("jobstatus") >= 0 else _COMPLETED
    cluster, part, submit = (ad.number(name) for name in ("clusterid", "procid", "qdate"))
    if cluster < 0 or submit < 0:
        raise RecordError("ClusterId or QDate is not a number")
    if ad.number("jobuniverse") in _AT_SUBMIT_HOST:
        raise Skip(SUBMIT_HOST)
    if status in _OPEN:
        raise Skip(_OPEN[status])
    runs = _starts(ad)
    if not runs:
        raise Skip(NEVER_STARTED)
    end, total = ad.number("completiondate", least=1), ad.number("remotewallclocktime")
    lost = (total >= 0 and abs(total - sum(run[1] for run in runs)) > 1) or abs(end - sum(runs[-1])) > 1
    state.count(ELAPSED_DIFFERS, int(end > 0 and lost))
    code = ad.number("exitcode", "exitstatus")
    killed = ad.text("exitbysignal").lower()
    signal = ad.number("exitsignal") if killed == "true" else 0 if killed == "false" else MISSING
    done = status == _COMPLETED and code <= 0 and killed != "true"
    hosts = max(ad.number("currenthosts", "maxhosts"), 1) if ad.number("jobuniverse") == _PARALLEL else 1
    numbers = {
        **numbered(cluster, part if part > 0 else None),
        "submit": submit,
        "requested": next((unit * ad.number(name, least=1) for name, unit in _LIMITS if ad.number(name, least=1) > 0), MISSING),
        **{name: hosts * amount if (amount := ad.number(*names, least=1)) > 0 else MISSING for name, names in _SIZES.items()},
    }
    texts = {name: ad.text(*names) for name, names in _TEXTS.items()}
    for start, runtime in runs:
        is_last = start == runs[-1][0]
        ended = {"status": 0 if not is_last else 5 if status == _REMOVED else int(done)}
        codes = {"exit_code": code if is_last else MISSING, "exit_signal": signal if is_last else MISSING}
        use = _use(ad, numbers) if len(runs) == 1 else dict.fromkeys(USE, float(MISSING))
        yield numbers | {"start": start, "runtime": runtime} | ended | codes | use, texts, (cluster, part, submit)


def _use(ad: _Ad, numbers: Mapping[str, float]) -> dict[str, float]:
    """Return the measures (`USE`) of a job with a single run, -1 if unknown; HTCondor's attributes are sums over all runs."""
    user, system, gpus = ad.number("remoteusercpu"), ad.number("remotesyscpu"), numbers["gpus"]
    resident, average = ad.number("residentsetsize_raw", "residentsetsize", least=1e-9), ad.number("gpusaverageusage")
    procs = max(numbers["allocated_procs"], numbers["requested_procs"], 1)
    memory = ad.number("memoryusage", least=1e-9)
    values = (
        (user + system) / procs if min(user, system) >= 0 and user + system > 0 else MISSING,
        memory if memory > 0 else resident / 1024 if resident > 0 else MISSING,
        100 * average / gpus if average >= 0 and gpus > 0 else MISSING,
    )
    return dict(zip(USE, map(float, values), strict=True))


def is_history(sample: Sample) -> bool:
    """Return whether a table has a row for each class ad, with the attributes as titles."""
    return {"clusterid", "qdate", "jobstatus"} <= {title.lower() for title in sample.columns}


def _read(state: ReaderState) -> JobLog:
    return read_runs(state, "htcondor", items_of(state), partial(_runs, state))


HTCONDOR = LogFormat("htcondor", "HTCondor's history", (), _HEAD, _read, (SUBMIT_HOST,))
"""HTCondor's history, as class ads, JSON or XML; each run of an evicted job is a job."""
