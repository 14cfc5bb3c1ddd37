"""Readers of logs that users add: `FILE.py:NAME`, or an entry point in `walltime.formats` of an installed package."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from walltime.errors import LogError
from walltime.logs.header import with_max_procs
from walltime.logs.joblog import JobLog
from walltime.logs.reader import ReaderState
from walltime.plugins.dependencies import passed
from walltime.plugins.files import location_of, user_code
from walltime.plugins.parts import function_options, own_part
from walltime.wording import shown
from walltime.workload import Workload

FORM = "def NAME(path)"


def own_reader(text: str) -> Callable[..., Any] | None:
    """Return the user's reader that a text names; None if it names none. Raises PolicyError if the reader cannot be used."""
    found = own_part("formats", text, "reader of logs")
    if found is None:
        return None
    if not callable(found[0]) or not function_options(found[0], ("path",), "a reader of logs", FORM) or found[2]:
        raise LogError(f"{location_of(found[0])}{text}: not a reader of logs; write it as {FORM}, and give no options", "not_a_part")
    reader: Callable[..., Any] = found[0]
    return reader


def read_own(state: ReaderState, reader: Callable[..., Any], name: str) -> JobLog:
    """Return the log from a user's reader, which returns a `Workload` or a `JobLog`.

    The reader itself decides which lines it skips. Raises LogError for another result, and if a time zone is given; PolicyError if the
    reader fails.
    """
    file, options = state.file, state.options
    if options.time_zone is not None:
        raise LogError(f"the reader {name} takes no time zone; leave the option out", "conflicting_options")
    passed(Path(file.path))
    with user_code(f"the reader {name}", reader, FORM):
        result = reader(file.path)
    log = _log_of(result, name) if isinstance(result, Workload) else result
    if not isinstance(log, JobLog):
        text = f"the reader {name} must return a walltime.Workload or a walltime.logs.JobLog, not {shown(result)}"
        raise LogError(f"{location_of(reader)}{text}", "wrong_type")
    for _ in file.chunks():  # for the checksum
        pass
    return replace(log, path=file.path, sha256=file.sha256)


def _log_of(workload: Workload, name: str) -> JobLog:
    """Convert a workload to a log; raises LogError if it has planned runtimes, which logs do not have."""
    if not np.array_equal(workload.planned, workload.requested):
        raise LogError(f"the reader {name} returns a workload with planned runtimes; give only the requests", "wrong_values")
    origin = workload.origin
    columns = {field: getattr(workload, field) for field in ("job_id", "submit", "runtime", "requested")}
    columns |= {"allocated_procs": workload.procs, **workload.columns}
    lines = [*origin.header, f"; TimeZoneString: {origin.time_zone}"]
    lines += [] if origin.unix_start_time is None else [f"; UnixStartTime: {origin.unix_start_time}"]
    return JobLog(
        len(workload),
        columns,
        format=name,
        header_lines=tuple(with_max_procs(lines, workload.machine_procs)),
        names={field: texts for field, texts in origin.names.items() if field in columns},
        changed=origin.changed,
        noticed=origin.noticed,
    )
