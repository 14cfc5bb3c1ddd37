"""Read the items of PBS's accounting records from `qstat -f`, as text or JSON, and from tables with the items as titles."""

import json
import re
from collections.abc import Iterator, Mapping

from walltime.errors import LogError
from walltime.logs.batch_systems import Run, Skip, read_runs, seconds_of, unix_time
from walltime.logs.cells import BLANK
from walltime.logs.joblog import JobLog
from walltime.logs.pbs import PbsRecords
from walltime.logs.reader import LogFormat, ReaderState
from walltime.logs.rules import STILL_PENDING, STILL_RUNNING, ZONE_UNKNOWN
from walltime.logs.sample import Sample, items_of
from walltime.workload import Origin

_HEAD = re.compile(
    rb'\A(?:\xef\xbb\xbf)?\s*+(?:Job Id: *\S+\r?\n\s+Job_Name = |\{(?=.*"Jobs"\s*:\s*\{)(?=.*"job_state"\s*:)(?=.*"ctime"\s*:))', re.DOTALL
)
_ITEM = re.compile(r"\s+([A-Za-z_][\w.]*) = (.*)")
_NAMES = {
    "start": ("stime", "start_time"),
    "end": ("obittime", "comp_time"),
    "jobname": ("Job_Name",),
    "user": ("Job_Owner",),
    "account": ("Account_Name",),
    "group": ("egroup",),
    "Exit_status": ("exit_status",),
}
"""The items of accounting records, and their names in `qstat`."""
_IDS = ("id", "job_id", "jobid", "Job_Id", "JobID", "job")
_TIMES = ("ctime", "qtime", "etime", "start", "end")
_OPEN = {**dict.fromkeys("QHWTMB", STILL_PENDING), **dict.fromkeys("RESU", STILL_RUNNING)}
"""Values of job_state for jobs that have not ended."""


def _jobs(state: ReaderState) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield the number and the items of each job; the item `id` is its identifier."""
    state.unit = "record"
    content = state.file.content().removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    if not content.lstrip().startswith("{"):
        for number, block in enumerate(re.split(r"^Job Id: *", content, flags=re.MULTILINE)[1:], 1):
            first, *lines = re.sub(r"\r?\n\t", "", block).splitlines()
            yield number, {"id": first.strip(), **{match[1]: match[2].strip() for line in lines if (match := _ITEM.fullmatch(line))}}
        return
    try:
        jobs = json.loads(content)["Jobs"]
    except (ValueError, RecursionError) as error:
        raise LogError(f"{state.file.where}: not valid JSON; check that the file is complete", "not_json") from error
    for number, (name, job) in enumerate(jobs.items(), 1):
        items = {"id": name}
        for key, value in job.items() if isinstance(job, Mapping) else ():
            parts = value if isinstance(value, Mapping) else {"": value}
            items |= {f"{key}.{part}" if part else key: str(one) for part, one in parts.items()}
        yield number, items


def is_pbs(sample: Sample) -> bool:
    """Return whether a table's titles are items of PBS's accounting: times, and resources in PBS's notation."""
    titles = set(sample.columns)
    times = ({"ctime", "qtime"}, {"start", *_NAMES["start"]}, {"end", *_NAMES["end"]})
    return bool(titles & {"exec_vnode", "exec_host", "Resource_List.select", "Resource_List.nodes"}) and all(titles & one for one in times)


def _items(row: Mapping[str, object]) -> dict[str, str]:
    texts = {name: str(value).removesuffix(".0") for name, value in row.items() if value is not None and str(value) not in BLANK}
    return {"id": next((texts[name] for name in _IDS if name in texts), "")} | texts


def _read(state: ReaderState) -> JobLog:
    of_accounting, name = PbsRecords(state), state.options.time_zone
    zone = Origin(time_zone=name or "UTC").tzinfo()
    rows = _jobs(state) if _HEAD.match(state.file.head) else items_of(state)

    def runs(row: Mapping[str, object]) -> Iterator[Run]:
        job = _items(row)
        items = {**job, **{item: job[one] for item, names in _NAMES.items() for one in names if job.get(one)}}
        if items.get("job_state") in _OPEN and "[]" not in items["id"]:
            raise Skip(_OPEN[items["job_state"]])
        items |= {item: unix_time(items[item], zone) for item in _TIMES if items.get(item)}
        items["user"] = items.get("user", "").partition("@")[0]
        start = items.get("start") or "0"
        end = items.get("end") or str(int(start) + max(seconds_of(items.get("resources_used.walltime")), 0))
        run = of_accounting.run(items["id"], items | {"start": start, "end": end}, "E")
        state.count(ZONE_UNKNOWN, int(name is None and not job.get("ctime", "0").isdecimal()))
        yield run

    return read_runs(state, "pbs", rows, runs)


QSTAT = LogFormat("pbs-qstat", "qstat -f of PBS or Torque", (), _HEAD, _read)
"""The output of `qstat -x -f`, as text or JSON; its rules are those of `walltime.logs.pbs.PBS`."""
