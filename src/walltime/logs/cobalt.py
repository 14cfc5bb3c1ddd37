"""The job tables that the Argonne Leadership Computing Facility publishes (DIM_JOB_COMPOSITE), from Cobalt and PBS.

Source: description of the columns at https://reports.alcf.anl.gov/data/ .
"""

from __future__ import annotations

import re
from typing import ClassVar

from walltime.logs.csv_rows import heading_of
from walltime.logs.input import LogFile
from walltime.logs.joblog import JobLog, LogFormat, ReadOptions
from walltime.logs.mapped import read_table
from walltime.logs.mapping import Source, Status, TableMapping

_COLUMNS = {
    "submit": "QUEUED_TIMESTAMP",
    "start": "START_TIMESTAMP",
    "end": "END_TIMESTAMP",
    "runtime": "RUNTIME_SECONDS",
    "requested": "WALLTIME_SECONDS",
    "allocated_procs": "NODES_USED",
    "requested_procs": "NODES_REQUESTED",
    "cores": "CORES_USED",
    "eligible_wait": "ELIGIBLE_WAIT_SECONDS",
    "user": "USERNAME_GENID",
    "group": "PROJECT_NAME_GENID",
    "queue": "QUEUE_NAME",
    "machine": "MACHINE_NAME",
}
_TEXTS = ("user", "group", "queue", "machine")
_HEAD = re.compile(
    rb"\A(?=[^\n]*\bQUEUED_TIMESTAMP\b)(?=[^\n]*\bRUNTIME_SECONDS\b)(?=[^\n]*\bNODES_(?:USED|REQUESTED)\b)[\"\w]+,", re.IGNORECASE
)


class CobaltLog(JobLog):
    """A log from a job table of ALCF; its processors are nodes, because these machines allocate whole nodes."""

    format: ClassVar[str] = "cobalt"
    endings: ClassVar[tuple[str, ...]] = (".csv",)


def _read(file: LogFile, options: ReadOptions) -> JobLog:
    titles = {title.upper(): title for title in heading_of(file)}
    columns = {name: Source(titles[title], text=name in _TEXTS) for name, title in _COLUMNS.items() if title in titles}
    job_id = next((titles[title] for title in ("COBALT_JOBID", "JOB_NAME") if title in titles), None)  # the latter is such as 123456.theta
    if job_id is not None:
        columns["job_id"] = Source(job_id, pattern=r"^([0-9]{1,15})(?:[.\[].*)?$")
    status = next((titles[title] for title in ("EXIT_STATUS", "EXIT_CODE") if title in titles), None)
    mapping = TableMapping(columns, None if status is None else Status(status, completed=("0", "0.0"), other="failed"))
    return read_table(CobaltLog, file, options, mapping, "a job table of ALCF")


COBALT = LogFormat("cobalt", "ALCF job table", (), _HEAD, _read)
"""Job tables of ALCF, recognised by their heading."""
