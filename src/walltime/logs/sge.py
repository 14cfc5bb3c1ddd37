"""The accounting file of Grid Engine: Sun's, Son of, Univa's, Altair's.

Source: manual page accounting(5), such as https://gridscheduler.sourceforge.net/htmlman/htmlman5/accounting.html
"""

from __future__ import annotations

import re
from typing import ClassVar

from walltime.logs.input import LogFile
from walltime.logs.joblog import JobLog, LogFormat, ReadOptions
from walltime.logs.mapped import read_table
from walltime.logs.mapping import Source, Status, TableMapping

FIELDS = (
    "qname hostname group owner job_name job_number account priority submission_time start_time end_time failed exit_status ru_wallclock"
    " ru_utime ru_stime ru_maxrss ru_ixrss ru_ismrss ru_idrss ru_isrss ru_minflt ru_majflt ru_nswap ru_inblock ru_oublock ru_msgsnd"
    " ru_msgrcv ru_nsignals ru_nvcsw ru_nivcsw project department granted_pe slots task_number cpu mem io category iow pe_taskid maxvmem"
    " arid ar_submission_time"
)
"""The fields according to the manual page; later versions append fields, earlier ones have fewer."""
_RECORD = re.compile(
    rb"^[\w.@-]+:[^:\n]*(?::[^:\n]*){3}:[0-9]{1,10}:[^:\n]*:-?[0-9]{1,6}(?::[0-9]{1,13}){3}(?::[0-9]{1,4}){2}(?::[^:\n]*){26,}\r?$",
    re.MULTILINE,
)


class SgeLog(JobLog):
    """A log from the accounting file of Grid Engine; its processors are slots."""

    format: ClassVar[str] = "sge"
    endings: ClassVar[tuple[str, ...]] = ()


def _read(file: LogFile, options: ReadOptions) -> JobLog:
    record = _RECORD.search(file.head)
    fields = [] if record is None else record[0].decode("utf-8", "replace").split(":")
    names = FIELDS.split()
    titles = (*names[: len(fields)], *(f"field{number}" for number in range(len(names) + 1, len(fields) + 1)))
    unit = "ms" if any(len(text) > 11 for text in fields[8:11]) else "s"
    columns = {
        "job_id": Source("job_number", text=False),
        "array": Source("task_number", text=False),
        "submit": Source("submission_time", unit=unit, text=False),
        "start": Source("start_time", unit=unit, text=False),
        "end": Source("end_time", unit=unit, text=False),
        "requested": Source("category", pattern=r"\bh_rt=([0-9:]+)", text=False),
        "allocated_procs": Source("slots", text=False),
        "user": Source("owner", text=True),
        "group": Source("project", text=True),
        "executable": Source("job_name", text=True),
        "queue": Source("qname", text=True),
        "parallel_environment": Source("granted_pe", text=True),
    }
    mapping = TableMapping(columns, Status("exit_status", completed=("0",), other="failed"), delimiter=":", titles=titles, comment="#")
    return read_table(SgeLog, file, options, mapping, "the accounting file of Grid Engine")


SGE = LogFormat("sge", "Grid Engine's accounting", (), _RECORD, _read)
"""The accounting file of Grid Engine."""
