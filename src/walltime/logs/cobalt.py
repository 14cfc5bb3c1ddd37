"""The job tables that the Argonne Leadership Computing Facility publishes (DIM_JOB_COMPOSITE), of Cobalt and of PBS.

Their columns are described at https://reports.alcf.anl.gov/data/ .
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from walltime.logs.input import LogFile
from walltime.logs.joblog import JobLog, LogFormat, ReadOptions
from walltime.logs.mapped import heading_of, read_table
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
_NEEDED = ("QUEUED_TIMESTAMP", "RUNTIME_SECONDS")


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
            columns["job_id"] = Source(spelled[title], pattern=r"^(\d{1,15})(?:[.\[].*)?$")
            break
    status = next((spelled[title] for title in ("EXIT_STATUS", "EXIT_CODE") if title in spelled), None)
    return TableMapping(columns, None if status is None else Status(status, completed=("0", "0.0"), other="failed"))


def _recognises(head: bytes) -> bool:
    line = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode(errors="replace").upper()
    titles = [title.strip().strip('"') for title in line.split(",")]
    return all(title in titles for title in _NEEDED) and bool({"NODES_USED", "NODES_REQUESTED"} & set(titles))


def _read(file: LogFile, options: ReadOptions) -> JobLog:
    return read_table(CobaltLog, file, options, cobalt_mapping(heading_of(file)), "a job table of ALCF")


COBALT = LogFormat("cobalt", "ALCF job table", (), _recognises, _read)
"""Job tables of ALCF, recognised by their heading."""
