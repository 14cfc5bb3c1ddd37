"""The job tables that the Argonne Leadership Computing Facility publishes (DIM_JOB_COMPOSITE), of Cobalt and of PBS.

Their columns are described at https://reports.alcf.anl.gov/data/ .
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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
    """A log from a job table of ALCF; its processors are nodes, as these machines give away whole ones."""

    format: ClassVar[str] = "cobalt"
    endings: ClassVar[tuple[str, ...]] = (".csv",)


def cobalt_mapping(titles: Sequence[str]) -> TableMapping:
    """What the columns of such a table mean, for those that it has."""
    spelled = {title.upper(): title for title in titles}
    columns = {name: Source(spelled[title], text=name in _TEXTS) for name, title in _COLUMNS.items() if title in spelled}
    for title in ("COBALT_JOBID", "JOB_NAME"):  # the latter is as 123456.theta
        if title in spelled:
            columns["job_id"] = Source(spelled[title], pattern=r"^([0-9]{1,15})(?:[.\[].*)?$")
            break
    status = next((spelled[title] for title in ("EXIT_STATUS", "EXIT_CODE") if title in spelled), None)
    return TableMapping(columns, None if status is None else Status(status, completed=("0", "0.0"), other="failed"))


def _read(file: LogFile, options: ReadOptions) -> JobLog:
    return read_table(CobaltLog, file, options, cobalt_mapping(heading_of(file)), "a job table of ALCF")


COBALT = LogFormat("cobalt", "ALCF job table", (), _HEAD, _read)
"""Job tables of ALCF, recognised by their heading."""
