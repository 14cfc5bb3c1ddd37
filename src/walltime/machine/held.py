"""Held jobs: how long after its submission each job became eligible, which only a site's record contains.

The key `eligible` of a machine's file names a table with the columns `job_id` and `held`. Jobs wait from their eligible times on, which are
known only after the fact: predicted start times reject them, and a what-if or a calibration uses them only on request, with a caveat.
"""

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

TITLES = ("job_id", "held")
HINDSIGHT = "held_in_hindsight"
"""The column with the seconds by which a job's submission was moved to its eligible time."""


def apply_eligible_times(workload: Workload, machine: Machine) -> Workload:
    """Return the jobs, submitted at the eligible times in the machine's file; jobs that are not in it are unchanged.

    The column HINDSIGHT keeps the added seconds, so a second call does not add them again. Raises LogError for an unreadable table,
    WorkloadError for jobs that are submitted when others end.
    """
    if machine.eligible is None:
        return workload
    if workload.feedback:
        raise WorkloadError(
            "the machine's file has eligible times of jobs, which jobs with feedback cannot have; leave out feedback, or the "
            "key `eligible`",
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


def reject_hindsight(machine: Machine | None, what: str) -> None:
    """Raise PolicyError if a machine's file has eligible times; `what`: the name of the result that cannot use them."""
    if machine is not None and machine.eligible is not None:
        raise PolicyError(
            f"{what} cannot use the eligible times in {printable(machine.eligible)}, which are known only afterwards; leave out the key "
            "`eligible` of the machine's file",
            "hindsight",
        )


def with_hindsight(workload: Workload, machine: Machine | None, requested: bool, what: str) -> tuple[Workload, Machine | None]:
    """Return the jobs, submitted at their eligible times, and the machine without the key `eligible` if `requested`; else both unchanged.

    Raises PolicyError if the machine's file has eligible times that are not requested, or lacks requested ones, and errors of
    `apply_eligible_times`.
    """
    if not requested and machine is not None and machine.eligible is not None:
        raise PolicyError(
            f"{what} would use the eligible times in {printable(machine.eligible)}, which are known only after the fact; request that with "
            "hindsight=True (--hindsight), or leave out the key `eligible` of the machine's file",
            "hindsight",
        )
    if not requested:
        return workload, machine
    if machine is None or machine.eligible is None:
        raise PolicyError(
            "the machine's file has no eligible times; infer writes them with eligible=True (--eligible), or leave out hindsight",
            "no_hindsight",
        )
    return apply_eligible_times(workload, machine), replace(machine, eligible=None)


def hindsight_note(workload: Workload) -> str:
    """Return a sentence on the jobs that wait only from their eligible times; empty if there are none."""
    held = workload.columns.get(HINDSIGHT, np.zeros(0, np.int64))
    if not held.any():
        return ""
    return (
        f"In hindsight, {np.count_nonzero(held):,} of {len(held):,} jobs became eligible after submission, on average "
        f"{human_time(float(held[held > 0].mean()))} later (times in the machine file); their waits count from then."
    )


def write_held(path: str | os.PathLike[str], held: Mapping[int, int]) -> Path:
    """Write a table of the seconds for which jobs were held, by job number, without zeros. Raises OutputError."""
    rows = "".join(f"{job},{seconds}\n" for job, seconds in held.items() if seconds > 0)
    with whole_file(path) as file:
        file.write(f"{','.join(TITLES)}\n{rows}".encode())
    return Path(path)


@functools.lru_cache(maxsize=4)
def _table(path: Path, stamp: int) -> Mapping[int, int]:
    """Return how long each job was held, s, by job number; `stamp`: the file's modification time, used only as a key of the cache."""
    where = printable(path)
    held: dict[int, int] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            note_input(file.fileno(), where)
            rows = csv.reader(file)
            titles = tuple(title.strip() for title in next(rows, []))
            if titles != TITLES:
                # the message must not quote the file, which may be a private one of another kind
                raise LogError(f"{where}: line 1 must be {','.join(TITLES)}, the columns of such a table", "wrong_columns")
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
        raise LogError(
            f"{where}: not a table in UTF-8 with the columns {','.join(TITLES)}; walltime infer writes such a table", "not_a_table"
        ) from fault
    return held


def _is_number(cell: str) -> bool:
    return len(cell) < 20 and cell.strip().isascii() and cell.strip().isdigit() and int(cell) <= MAX_TIME
