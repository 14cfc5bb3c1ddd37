"""Convert logs of any format into another one."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from walltime.errors import OutputError
from walltime.logs.header import Header, with_max_procs
from walltime.logs.joblog import JobLog, is_further_name
from walltime.logs.swf import SwfLog, swf_of
from walltime.logs.swf_text import DERIVED, FIELDS, MOST_FIELDS, Comment
from walltime.logs.table_file import write_csv, write_parquet
from walltime.wording import printable
from walltime.workload import SWF_BY_NAME, Workload

ENDINGS = (".swf", ".swf.gz", ".swf.zst", ".parquet", ".csv", ".csv.gz", ".csv.zst")
"""File extensions of the formats in which logs can be written."""


def write_log(path: str | os.PathLike[str], log: JobLog) -> None:
    """Write all records of a log, in the format of the file's extension.

    SWF, which is also written to devices and pipes, has other columns as fields 19, 20, ..., declared in the header, and numbers in place
    of names. Parquet has names and counts; CSV has names, but no header. Raises OutputError for another extension, and if writing fails.
    """
    name = Path(path).name.lower()
    if _is_swf(path):
        as_swf(log).write(path)
    elif name.endswith(".parquet"):
        write_parquet(path, log)
    elif name.endswith((".csv", ".csv.gz", ".csv.zst")):
        write_csv(path, log)
    else:
        raise OutputError(f"{printable(path)}: unknown extension of a log. Valid extensions: {', '.join(ENDINGS)}")


def write_workload(path: str | os.PathLike[str], workload: Workload, *, extra_header: Sequence[str] = ()) -> None:
    """Write a workload as a log, in the format of the file's extension (`write_log`); `extra_header` lines follow its header.

    All additional columns of the workload are kept; in SWF as fields beyond the 18th, except those that its descriptors contain.
    """
    derived = DERIVED if "descriptor" in workload.columns else ()
    others = [name for name in workload.columns if is_further_name(name) and name not in derived]
    log = swf_of(workload, extra_header=extra_header, others=others)
    known = {name: texts for name, texts in workload.origin.names.items() if name in workload.columns}
    if _is_swf(path):
        write_log(path, replace(log, names={name: known[name] for name in log.further if _are_words(known.get(name))}))
        return
    order = np.lexsort((workload.job_id, workload.submit))  # as in the log
    columns = dict(log.columns) | {name: workload.columns[name][order] for name in derived if name in workload.columns}
    names = {name: texts for name, texts in known.items() if name in columns}
    write_log(path, JobLog(log.records, columns, format="walltime", header_lines=log.header_lines, names=names, path=log.path))


def _are_words(texts: Sequence[str] | None) -> bool:
    """Return whether texts can be fields of a line: there are some, none contains a blank, and not all look like numbers."""
    return texts is not None and all(len(text.split()) == 1 for text in texts) and not all(text.isdecimal() for text in texts)


def _is_swf(path: str | os.PathLike[str]) -> bool:
    file = Path(path)
    is_special = file.exists() and not (file.is_file() or file.is_dir())
    return is_special or file.name.lower().endswith((".swf", ".swf.gz", ".swf.zst"))


def as_swf(log: JobLog) -> SwfLog:
    """Return the log in the Standard Workload Format; notes in its header list the reader's counts."""
    if isinstance(log, SwfLog):
        return log
    further = tuple(name for name in log.columns if name not in SWF_BY_NAME)[: MOST_FIELDS - FIELDS]
    counts = {"dropped": log.all_dropped(), "changed": log.changed, "noticed": log.noticed}
    notes = [f"; Note: {did}: {', '.join(f'{count} {rule}' for rule, count in of.items())}" for did, of in counts.items() if of]
    lines = [*log.header_lines, *notes, *(f"; Field {number}: {name}" for number, name in enumerate(further, FIELDS + 1))]
    columns = {name: values for name, values in log.columns.items() if name in SWF_BY_NAME or name in further}
    return SwfLog(log.records, columns, tuple(Comment(0, line) for line in lines), further, path=log.path)


def with_procs(log: JobLog, procs: int) -> JobLog:
    """Return the log with this number of processors in its header."""
    if isinstance(log, SwfLog):
        return log.with_header(with_max_procs(log.header_lines, procs))
    return log.with_header([*(line for line in log.header_lines if "MaxProcs" not in Header.parse([line])), f"; MaxProcs: {procs}"])
