"""Jobs that were held: how long after its submission each was free to start, which only the record of a site knows.

The key `eligible` of a machine's file names a table with the columns `job_id` and `held`. Jobs wait from then on, and what a simulation
says of them holds by hindsight alone: no start time may use it, and a what-if or a calibration only where that is asked for, and said.
"""

from __future__ import annotations

import csv
import functools
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from walltime.errors import LogError, PolicyError, WorkloadError
from walltime.files import note_input, whole_file
from walltime.machine.machine import Machine
from walltime.wording import human_time, printable
from walltime.workload import MAX_TIME, Workload
from walltime.workload.scaling import held_until

Array = np.ndarray
TITLES = ("job_id", "held")
HINDSIGHT = "held_by_hindsight"
"""The column with the seconds that have been added to a job's submission."""


def held_back(workload: Workload, machine: Machine) -> Workload:
    """The jobs from the times on at which the machine's file says that they were free to start; jobs that it does not name as they are.

    The column HINDSIGHT keeps what has been added, so that it is added once. Raises LogError for a table that cannot be read, WorkloadError
    for jobs that are submitted when others end, of which no table can know.
    """
    if machine.eligible is None:
        return workload
    if workload.feedback:
        raise WorkloadError(
            "the machine's file says when jobs were free to start, which is not known of jobs that follow the ends of others; leave out "
            "feedback, or the key `eligible`",
            "feedback",
        )
    path = Path(machine.eligible)
    try:
        stamp = path.stat().st_mtime_ns
    except OSError as fault:
        reason = (fault.strerror or str(fault)).lower()
        raise LogError(
            f"{printable(path)}: cannot be read ({reason}); the machine's file names it as `eligible`", "unreadable_file"
        ) from fault
    table = _table(path, stamp)
    held = np.array([table.get(job, 0) for job in workload.job_id.tolist()], np.int64)
    before = workload.columns.get(HINDSIGHT)
    if before is not None:
        held = np.maximum(held - before, 0)
    if not held.any():
        return workload
    marked = replace(workload, columns={**workload.columns, HINDSIGHT: held if before is None else held + before})
    return held_until(marked, marked.submit + held)


def refuse_hindsight(machine: Machine | None, what: str) -> None:
    """Raise PolicyError if a machine's file knows when jobs were free to start: `what` is not about the past."""
    if machine is not None and machine.eligible is not None:
        raise PolicyError(
            f"{what} may not know by hindsight when jobs were free to start, as {printable(machine.eligible)} says; leave out the key "
            "`eligible` of the machine's file",
            "hindsight",
        )


def with_hindsight(workload: Workload, machine: Machine | None, asked: bool, what: str) -> tuple[Workload, Machine | None]:
    """The jobs from when they were free to start, and the machine without that key, where it is `asked` for; else as they are.

    Raises PolicyError where the machine's file knows it and nobody asked, or the other way round, and what `held_back` raises.
    """
    if not asked:
        if machine is not None and machine.eligible is not None:
            raise PolicyError(
                f"{what} knows only by hindsight when jobs were free to start, as {printable(machine.eligible)} says; ask for that with "
                "hindsight=True (--hindsight), or leave out the key `eligible` of the machine's file",
                "hindsight",
            )
        return workload, machine
    if machine is None or machine.eligible is None:
        raise PolicyError(
            "the machine's file does not say when jobs were free to start; infer writes that with eligible=True (--eligible), or leave out "
            "hindsight",
            "no_hindsight",
        )
    return held_back(workload, machine), replace(machine, eligible=None)


def hindsight_note(workload: Workload) -> str:
    """What is known of these jobs by hindsight, in a sentence; empty if nothing is."""
    held = workload.columns.get(HINDSIGHT, np.zeros(0, np.int64))
    if not held.any():
        return ""
    return (
        f"By hindsight: {np.count_nonzero(held):,} of {len(held):,} jobs wait only from when the machine's file says that they were free "
        f"to start, on average {human_time(float(held[held > 0].mean()))} after their submission; waits count from then."
    )


def write_held(path: str | os.PathLike[str], held: Mapping[int, int]) -> Path:
    """Write such a table: by job number the seconds, of those that were held at all. Raises OutputError."""
    rows = "".join(f"{job},{seconds}\n" for job, seconds in held.items() if seconds > 0)
    with whole_file(path) as file:
        file.write(f"{','.join(TITLES)}\n{rows}".encode())
    return Path(path)


@functools.lru_cache(maxsize=4)
def _table(path: Path, stamp: int) -> Mapping[int, int]:
    """By job number how long it was held, s; `stamp`: when the file was changed, which makes another entry of the cache."""
    where = printable(path)
    held: dict[int, int] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            note_input(file.fileno(), where)
            rows = csv.reader(file)
            titles = tuple(title.strip() for title in next(rows, []))
            if titles != TITLES:
                raise LogError(
                    f"{where}: line 1 must be {','.join(TITLES)}, the columns of such a table", "wrong_columns"
                )  # never what another file holds
            for row in rows:
                if len(row) != len(TITLES) or not all(_is_number(cell) for cell in row):
                    raise LogError(
                        f"{where}: line {rows.line_num} must be a job number and the seconds that it was held, such as 17,3600",
                        "wrong_field",
                    )
                job, seconds = map(int, row)
                if job in held:
                    raise LogError(f"{where}: line {rows.line_num} names job {job} a second time; leave out one of them", "repeated_job")
                held[job] = seconds
    except (UnicodeDecodeError, csv.Error) as fault:
        raise LogError(f"{where}: is no table in UTF-8 with the columns {','.join(TITLES)}", "not_a_table") from fault
    return held


def _is_number(cell: str) -> bool:
    """Whether a cell is a whole number of seconds, or of a job."""
    return cell.strip().isascii() and cell.strip().isdigit() and int(cell) <= MAX_TIME if len(cell) < 20 else False
