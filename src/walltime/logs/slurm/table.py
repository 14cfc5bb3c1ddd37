"""Logs printed by Slurm's `sacct -P`: any columns in any order, of any version."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from walltime.errors import LogError
from walltime.lazy import LaterModule
from walltime.logs.batch_systems import Counts, Names, nothing_left, unknown
from walltime.logs.clock import Local
from walltime.logs.input import LogFile
from walltime.logs.joblog import BadLines, LogFormat, ReadOptions
from walltime.logs.slurm import fields
from walltime.logs.slurm.jobs import RULES, STEP, TEXT_COLUMNS, SlurmLog, slurm_log
from walltime.logs.slurm.rows import NEEDED, Heading, Rows, heading_of, is_fixed, is_printed, rows_of
from walltime.logs.slurm.rows import RULES as LINE_RULES
from walltime.wording import quoted
from walltime.workload import MISSING

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LaterModule("polars")

Array = np.ndarray
_TESTED_ROWS = 50
"""Number of rows by which output of sacct is recognised."""

TIMES = ("submit", "eligible", "start", "end")
KINDS = {
    **dict.fromkeys(TIMES, "time"),
    **dict.fromkeys(("alloccpus", "ncpus", "reqcpus", "nnodes", "elapsedraw", "priority", "restarts"), "whole"),
    "timelimitraw": "minutes",
    "timelimit": "limit",
    "elapsed": "spent",
    "state": "state",
    **dict.fromkeys(("jobid", "jobidraw", "user", "uid", "account", "qos", "partition", "reason", "reservation", "cluster"), "text"),
    **dict.fromkeys(("flags", "alloctres", "reqtres", "exitcode"), "text"),
}
"""The fields of sacct that are read, and their kinds."""
TEXTS = ("jobname", "submitline")
"""The free texts that are read."""
_HEAD = re.compile(rb"\A\s*+(?=[^\n]*jobid)[a-z]", re.IGNORECASE)
_ID = (
    r"^([0-9]{1,10})(?:_(?:([0-9]{1,7})|(\[[^\]]*\](?:%[0-9]+)?)))?(?:\+([0-9]{1,6}))?"
    r"(?:\.(batch|extern|interactive|TBD|[0-9]{1,10}(?:\+[0-9]{1,6})?))?$"
)
_ALLOWED = {
    "time": "it must be a time such as 2026-11-20T21:33:45",
    "whole": "it must be a whole number",
    "minutes": "it must be a number of minutes",
    "spent": "it must be a time such as 1-02:03:04",
    "limit": "it must be a time such as 1-02:03:04",
    "state": "it must be a state of Slurm",
}


class RecordTable:
    """A block of records: the texts of their fields by sacct's names in lower case; `bad`: fields with masks of invalid texts."""

    def __init__(self, columns: Mapping[str, pl.Series]) -> None:
        self._columns = columns
        self.rows = len(next(iter(columns.values())))
        self.bad: list[tuple[str, Array]] = []

    @classmethod
    def of_rows(cls, heading: Heading, rows: Rows) -> RecordTable:
        """Return the fields that are read, from the rows of a text."""
        split = pl.Series("", rows.texts, pl.String).str.split(heading.delimiter)
        columns: dict[str, pl.Series] = {}
        for place, name in enumerate(heading.fields):
            if (name in KINDS or name in TEXTS) and name not in columns:
                column = split.list.get(place, null_on_oob=True)
                if rows.fields:
                    column = column.scatter([row for row, _ in rows.fields], [values[place] for _, values in rows.fields])
                columns[name] = column
        return cls(columns)

    def has(self, name: str) -> bool:
        """Return whether the records have this field."""
        return name in self._columns

    def texts(self, name: str) -> pl.Series:
        """Return the texts of a field, all empty if it is missing."""
        if name in self._columns:
            return self._columns[name]
        return pl.repeat("", self.rows, dtype=pl.String, eager=True)

    def read(self, name: str, parse: Callable[[pl.Series], tuple[Array, Array]] = fields.wholes) -> Array:
        """Return the values of a field, all unknown if it is missing."""
        if name not in self._columns:
            return unknown(self.rows)
        values, bad = parse(self._columns[name])
        if bad.any():
            self.bad.append((name, bad))
        return values

    def times(self, name: str, zone: str | None) -> tuple[Local, Array]:
        """Return Unix times, and a mask of the times that were local."""
        if name not in self._columns:
            return Local.exact(unknown(self.rows)), np.zeros(self.rows, bool)
        local, bad, was_local = fields.times(self._columns[name], zone)
        if bad.any():
            self.bad.append((name, bad))
        return local, was_local


class RecordReader:
    """Reads blocks of records, and joins them; `steps`: arrays of batch steps, as for `slurm_log`."""

    def __init__(self, options: ReadOptions, counts: Counts) -> None:
        self.options, self.counts = options, counts
        self.names = {column: Names() for column in TEXT_COLUMNS.values()}
        self.blocks: list[dict[str, Array]] = []
        self.steps: list[Array] = []

    def add(self, table: RecordTable, report: Callable[[int, str, str], None]) -> None:
        """Add a block of records; `report` is called with the place of a bad row, the field and the reason."""
        main = table.texts("jobidraw" if table.has("jobidraw") else "jobid").str.extract_groups(_ID).struct.unnest()
        shown = table.texts("jobid").str.extract_groups(_ID).struct.unnest()
        job = _numbers(main.to_series(0))
        task, bracket, offset = _numbers(shown.to_series(1)), shown.to_series(2).is_not_null().to_numpy(), _numbers(shown.to_series(3))
        base = _numbers(shown.to_series(0))
        bad_id = job < 0
        is_step = main.to_series(4).is_not_null().to_numpy() & ~bad_id
        self.counts.add(STEP, is_step)
        raw = table.has("jobidraw")
        key = job if raw else (job << 22) + task + 1
        zone = self.options.time_zone
        times, local = {}, np.zeros(table.rows, bool)
        for name in TIMES:
            times[name], was_local = table.times(name, zone)
            local |= was_local
        elapsed = table.read("elapsedraw") if table.has("elapsedraw") else table.read("elapsed", fields.durations)
        batch = (main.to_series(4) == "batch").fill_null(False).to_numpy() & ~bad_id & (times["start"].first >= 0)
        self.steps.append(np.array([key[batch], times["start"].first[batch], elapsed[batch]], np.int64))
        limit = "timelimitraw" if table.has("timelimitraw") else "timelimit"
        requested = table.read(limit, lambda texts: fields.limits(texts, limit == "timelimitraw"))
        values = {
            "KEY": key,
            "ELAPSED": elapsed,
            "requested": requested,
            "LIMIT": _limits_with_time_min(table.texts("submitline")),
            "time_min": _limits_with_time_min(table.texts("submitline"), "--time-min"),
            "exclusive": _exclusive(table.texts("submitline")),
            "allocated_procs": table.read("alloccpus" if table.has("alloccpus") else "ncpus"),
            "requested_procs": table.read("reqcpus"),
            "LOCAL": local,
            "job_id": job if raw else np.where((task >= 0) | bracket | (offset > 0), MISSING, job),
            "array_job": np.where((task >= 0) | bracket, base, MISSING),
            "array_task": task,
            "het_job": np.where(offset >= 0, base, MISSING),
            "nodes": table.read("nnodes"),
            "priority": table.read("priority"),
            "restarts": table.read("restarts"),
            **_resources(table),
        }
        for name, local_times in times.items():
            values |= {f"{name}:first": local_times.first, f"{name}:last": local_times.last, f"{name}:skipped": local_times.skipped}
        status, words, bad_state = fields.states(table.texts("state"))
        if bad_state.any():
            table.bad.append(("state", bad_state))
        values |= {"status": status, "REQUEUED": (words == "REQUEUED").to_numpy()}
        bad = np.logical_or.reduce([bad_id, *(mask & ~is_step for _, mask in table.bad)])
        for row in np.flatnonzero(bad).tolist():  # in the order of the file
            if bad_id[row]:
                name, allowed = "jobidraw" if raw else "jobid", "it must be a job number"
            else:
                name = next(name for name, mask in table.bad if mask[row])
                allowed = _ALLOWED[KINDS[name]]
            report(row, name, f"{quoted(str(table.texts(name)[row]))}; {allowed}")
        good = ~bad & ~is_step
        for name, column in TEXT_COLUMNS.items():
            texts = words if name == "state" else table.texts("uid" if name == "user" and not table.has("user") else name)
            if name in ("reason", "reservation"):
                texts = texts.set(texts.is_in(fields.BLANK), None)
            values[f"{column}"] = self.names[column].numbers(texts, good)
        self.blocks.append({name: array[good] for name, array in values.items()})

    def log(self, bad: BadLines) -> SlurmLog:
        """Return the log of all blocks; raises LogError if they have no job."""
        if not self.blocks:
            raise LogError(nothing_left(bad, self.counts))
        whole = {name: np.concatenate([block[name] for block in self.blocks]) for name in self.blocks[0]}
        self.blocks = []
        local = [Local(*(whole.pop(f"{name}:{part}") for part in ("first", "last", "skipped"))) for name in TIMES]
        names = {column: names.texts for column, names in self.names.items()}
        return slurm_log(whole, local, np.concatenate(self.steps, axis=1), bad, names, self.counts)


def _numbers(texts: pl.Series) -> Array:
    return texts.cast(pl.Int64, strict=False).fill_null(MISSING).to_numpy()


def _limits_with_time_min(lines: pl.Series, *options: str) -> Array:
    """The limits in command lines with `--time-min`, s; -1 for all others. `options`: as in `command_limit`."""
    limits = unknown(len(lines))
    for row in lines.str.contains("--time-min", literal=True).fill_null(False).arg_true().to_list():
        limits[row] = fields.command_limit(lines[row], *options) or MISSING
    return limits


def _exclusive(lines: pl.Series) -> Array:
    """1 for command lines that request whole nodes; -1 for all others."""
    exclusive = unknown(len(lines))
    for row in lines.str.contains("--exclusive", literal=True).fill_null(False).arg_true().to_list():
        exclusive[row] = 1 if fields.option_value(lines[row], "--exclusive") == "" else MISSING
    return exclusive


def _resources(table: RecordTable) -> dict[str, Array]:
    """Memory, GPUs, the exit code, and the scheduler that started the job, as columns."""
    allocated, requested = table.texts("alloctres"), table.texts("reqtres")
    memory = [fields.memory(texts) for texts in (allocated, requested)]
    gpus = [fields.resource(texts, "gres/gpu") for texts in (allocated, requested)]
    processors = fields.resource(requested, "cpu")
    codes = table.texts("exitcode").str.extract_groups(r"^([0-9]{0,6}):([0-9]{0,6})$").struct.unnest()
    flags = table.texts("flags")
    main = flags.str.contains("SchedMain|SchedSubmit").to_numpy()
    return {
        "requested_memory": np.where((memory[1] > 0) & (processors > 0), memory[1] * 1024 / np.maximum(processors, 1), float(MISSING)),
        "mem_mb": np.where(memory[0] > 0, memory[0], memory[1]),
        "gpus": np.where(gpus[0] >= 0, gpus[0], gpus[1]),
        "exit_code": _numbers(codes.to_series(0)),
        "exit_signal": _numbers(codes.to_series(1)),
        "sched_backfill": np.where(flags.str.contains("SchedBackfill").to_numpy(), 1, np.where(main, 0, MISSING)),
    }


def _is_table(head: bytes) -> bool:
    line = head.lstrip().split(b"\n", 1)[0]
    if is_fixed(head[:10_000].decode(errors="replace").lstrip().split("\n", 2)[:2]):
        return True
    heading = heading_of(line.decode(errors="replace")) if len(line) < 10_000 else None
    if heading is not None and not _suffices(heading):
        return heading.delimiter == "|"
    return heading is not None and is_printed(heading, head.lstrip().split(b"\n", _TESTED_ROWS + 1)[1 : _TESTED_ROWS + 1])


def _read(file: LogFile, options: ReadOptions) -> SlurmLog:
    counts, bad = Counts(), BadLines(file, options)
    reader = RecordReader(options, counts)
    for heading, rows in rows_of(file, KINDS, bad, counts):
        if not _suffices(heading):
            raise LogError(f"{file.where}:1: a job log needs the columns {NEEDED}; see walltime slurm sacct-command")

        def report(row: int, name: str, what: str, heading: Heading = heading, rows: Rows = rows) -> None:
            bad.add(rows.lines[row], f"{heading.titles[heading.fields.index(name)]} is {what}", rows.texts[row])

        if rows.texts:
            reader.add(RecordTable.of_rows(heading, rows), report)
    return reader.log(bad)


def _suffices(heading: Heading) -> bool:
    has = set(heading.fields)
    runs = {"elapsed", "elapsedraw"} & has or {"start", "end"} <= has
    return bool(runs and "submit" in has and {"alloccpus", "ncpus", "reqcpus"} & has)


SLURM = LogFormat("slurm", "Slurm's sacct -P", (".sacct",), _HEAD, _read, (*RULES, *LINE_RULES), _is_table)
"""The output of `sacct -P`."""
