"""Logs printed by Slurm's `sacct -P`: any columns in any order, of any version."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime.errors import LogError
from walltime.lazy import LaterModule
from walltime.logs.batch_systems import Counts, Names, nothing_left, unknown
from walltime.logs.clock import Local
from walltime.logs.input import LogFile
from walltime.logs.joblog import BadLines, LogFormat, ReadOptions
from walltime.logs.slurm import fields
from walltime.logs.slurm.jobs import RULES, STEP, TEXT_COLUMNS, SlurmJobs, SlurmLog, Steps, slurm_log
from walltime.logs.slurm.rows import NEEDED, Heading, Rows, heading_of, is_fixed, is_printed, rows_of
from walltime.logs.slurm.rows import RULES as LINE_RULES
from walltime.wording import quoted
from walltime.workload import MISSING

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LaterModule("polars")

Array = np.ndarray
_LOOKED_AT = 50
"""So many rows are looked at whether sacct has printed them."""

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
"""The fields of sacct that are read, and of what kind they are."""
TEXTS = ("jobname", "submitline")
"""Free texts that are read."""
_HEAD = re.compile(rb"\A\s*+(?=[^\n]*jobid)[a-z]", re.IGNORECASE)
_ID = (
    r"^([0-9]{1,10})(?:_(?:([0-9]{1,7})|(\[[^\]]*\](?:%[0-9]+)?)))?(?:\+([0-9]{1,6}))?"
    r"(?:\.(batch|extern|interactive|TBD|[0-9]{1,10}(?:\+[0-9]{1,6})?))?$"
)
_WHAT = {
    "time": "it must be a time such as 2026-11-20T21:33:45",
    "whole": "it must be a whole number",
    "minutes": "it must be a number of minutes",
    "spent": "it must be a time such as 1-02:03:04",
    "limit": "it must be a time such as 1-02:03:04",
    "state": "it must be a state of Slurm",
}


class RecordTable:
    """A block of records: the texts of their fields by sacct's names in lower case, and what of them is bad."""

    def __init__(self, columns: Mapping[str, pl.Series]) -> None:
        self._columns = columns
        self.rows = len(next(iter(columns.values())))
        self.bad: list[tuple[str, Array]] = []

    @classmethod
    def of_rows(cls, heading: Heading, rows: Rows) -> RecordTable:
        """The fields that are read of the rows of a text."""
        split = pl.Series("", rows.texts, pl.String).str.split(heading.delimiter)
        columns: dict[str, pl.Series] = {}
        for place, name in enumerate(heading.fields):
            if (name in KINDS or name in TEXTS) and name not in columns:
                column = split.list.get(place, null_on_oob=True)
                if rows.odd:
                    column = column.scatter([row for row, _ in rows.odd], [values[place] for _, values in rows.odd])
                columns[name] = column
        return cls(columns)

    def has(self, name: str) -> bool:
        """Whether there is this field."""
        return name in self._columns

    def texts(self, name: str) -> pl.Series:
        """The texts of a field, all empty if there is none."""
        if name in self._columns:
            return self._columns[name]
        return pl.repeat("", self.rows, dtype=pl.String, eager=True)

    def read(self, name: str, parse: Callable[[pl.Series], tuple[Array, Array]]) -> Array:
        """The values of a field, all unknown if there is none."""
        if name not in self._columns:
            return unknown(self.rows)
        values, bad = parse(self._columns[name])
        if bad.any():
            self.bad.append((name, bad))
        return values

    def wholes(self, name: str) -> Array:
        """The values of a field of whole numbers."""
        return self.read(name, fields.wholes)

    def times(self, name: str, zone: str | None) -> tuple[Local, Array]:
        """Unix times, and which of them came as local ones."""
        if name not in self._columns:
            return Local.exact(unknown(self.rows)), np.zeros(self.rows, bool)
        local, bad, was_local = fields.times(self._columns[name], zone)
        if bad.any():
            self.bad.append((name, bad))
        return local, was_local


class Reader:
    """Reads blocks of records, and joins them. `report`: is told of a bad row, its place in the block, the field and what is wrong."""

    def __init__(self, options: ReadOptions, counts: Counts) -> None:
        self.options, self.counts = options, counts
        self.names = {column: Names() for column in TEXT_COLUMNS.values()}
        self.blocks: list[dict[str, Array]] = []
        self.steps: list[tuple[Array, Array, Array]] = []

    def add(self, table: RecordTable, report: Callable[[int, str, str], None]) -> None:
        """Add a block of records."""
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
        elapsed = table.wholes("elapsedraw") if table.has("elapsedraw") else table.read("elapsed", fields.durations)
        self._keep_steps((main.to_series(4) == "batch").fill_null(False).to_numpy() & ~bad_id, key, times["start"], elapsed)
        limit = "timelimitraw" if table.has("timelimitraw") else "timelimit"
        requested = table.read(limit, lambda texts: fields.limits(texts, limit == "timelimitraw"))
        values = {
            "key": key,
            "elapsed": elapsed,
            "requested": requested,
            "asked": _asked(table.texts("submitline")),
            "c:time_min": _asked(table.texts("submitline"), "--time-min"),
            "c:exclusive": _exclusive(table.texts("submitline")),
            "allocated": table.wholes("alloccpus" if table.has("alloccpus") else "ncpus"),
            "needed": table.wholes("reqcpus"),
            "local": local,
            "c:job_id": job if raw else np.where((task >= 0) | bracket | (offset > 0), MISSING, job),
            "c:array_job": np.where((task >= 0) | bracket, base, MISSING),
            "c:array_task": task,
            "c:het_job": np.where(offset >= 0, base, MISSING),
            "c:nodes": table.wholes("nnodes"),
            "c:priority": table.wholes("priority"),
            "c:restarts": table.wholes("restarts"),
            **_resources(table),
        }
        for name, local_times in times.items():
            values |= {f"{name}:first": local_times.first, f"{name}:last": local_times.last, f"{name}:skipped": local_times.skipped}
        status, words, bad_state = fields.states(table.texts("state"))
        if bad_state.any():
            table.bad.append(("state", bad_state))
        values |= {"status": status, "requeued": (words == "REQUEUED").to_numpy()}
        good = self._report_bad(table, report, bad_id, is_step)
        for name, column in TEXT_COLUMNS.items():
            texts = words if name == "state" else table.texts("uid" if name == "user" and not table.has("user") else name)
            if name in ("reason", "reservation"):
                texts = texts.set(texts.is_in(fields.BLANK), None)
            values[f"c:{column}"] = self.names[column].numbers(texts, good)
        self.blocks.append({name: array[good] for name, array in values.items()})

    def _keep_steps(self, batch: Array, key: Array, start: Local, elapsed: Array) -> None:
        kept = batch & (start.first >= 0)
        self.steps.append((key[kept], start.first[kept], elapsed[kept]))

    def _report_bad(self, table: RecordTable, report: Callable[[int, str, str], None], bad_id: Array, is_step: Array) -> Array:
        """The rows that become records; bad ones are reported in the order of the file."""
        bad = bad_id.copy()
        for _, mask in table.bad:
            bad |= mask & ~is_step
        name_of_id = "jobidraw" if table.has("jobidraw") else "jobid"
        for row in np.flatnonzero(bad).tolist():
            name = name_of_id if bad_id[row] else next(name for name, mask in table.bad if mask[row])
            what = "it must be the number of a job" if bad_id[row] else _WHAT[KINDS[name]]
            report(row, name, f"{quoted(str(table.texts(name)[row]))}, {what}")
        return ~bad & ~is_step

    def log(self, bad: BadLines) -> SlurmLog:
        """The log of all blocks together; raises LogError if there is no job in them."""
        if not self.blocks:
            raise LogError(nothing_left(bad, self.counts))
        whole = {name: np.concatenate([block[name] for block in self.blocks]) for name in self.blocks[0]}
        self.blocks = []
        values: dict[str, Any] = {name: Local(whole[f"{name}:first"], whole[f"{name}:last"], whole[f"{name}:skipped"]) for name in TIMES}
        values |= {name: array for name, array in whole.items() if ":" not in name}
        jobs = SlurmJobs(**values, columns={name[2:]: array for name, array in whole.items() if name.startswith("c:")})
        steps = Steps(*(np.concatenate(arrays) for arrays in zip(*self.steps, strict=True)))
        names = {column: names.texts for column, names in self.names.items()}
        return slurm_log(jobs, steps, bad, names, self.counts)


def _numbers(texts: pl.Series) -> Array:
    return texts.cast(pl.Int64, strict=False).fill_null(MISSING).to_numpy()


def _asked(lines: pl.Series, *options: str) -> Array:
    """The limits of command lines with `--time-min`, s; -1 for all others. `options`: as of `asked_limit`."""
    asked = unknown(len(lines))
    for row in lines.str.contains("--time-min", literal=True).fill_null(False).arg_true().to_list():
        asked[row] = fields.asked_limit(lines[row], *options) or MISSING
    return asked


def _exclusive(lines: pl.Series) -> Array:
    """1 for command lines that ask for whole nodes; -1 for all others."""
    asked = unknown(len(lines))
    for row in lines.str.contains("--exclusive", literal=True).fill_null(False).arg_true().to_list():
        asked[row] = 1 if fields.asked_option(lines[row], "--exclusive") == "" else MISSING
    return asked


def _resources(table: RecordTable) -> dict[str, Array]:
    """Memory, GPUs, the exit code, and who started the job, as columns."""
    got, asked = table.texts("alloctres"), table.texts("reqtres")
    memory = [fields.memory(texts) for texts in (got, asked)]
    gpus = [fields.resource(texts, "gres/gpu") for texts in (got, asked)]
    processors = fields.resource(asked, "cpu")
    codes = table.texts("exitcode").str.extract_groups(r"^([0-9]{0,6}):([0-9]{0,6})$").struct.unnest()
    flags = table.texts("flags")
    main = flags.str.contains("SchedMain|SchedSubmit").to_numpy()
    return {
        "c:requested_memory": np.where((memory[1] > 0) & (processors > 0), memory[1] * 1024 / np.maximum(processors, 1), float(MISSING)),
        "c:mem_mb": np.where(memory[0] > 0, memory[0], memory[1]),
        "c:gpus": np.where(gpus[0] >= 0, gpus[0], gpus[1]),
        "c:exit_code": _numbers(codes.to_series(0)),
        "c:exit_signal": _numbers(codes.to_series(1)),
        "c:sched_backfill": np.where(flags.str.contains("SchedBackfill").to_numpy(), 1, np.where(main, 0, MISSING)),
    }


def _is_table(head: bytes) -> bool:
    line = head.lstrip().split(b"\n", 1)[0]
    if is_fixed(head[:10_000].decode(errors="replace").lstrip().split("\n", 2)[:2]):
        return True
    heading = heading_of(line.decode(errors="replace")) if len(line) < 10_000 else None
    if heading is not None and not _suffices(heading):
        return heading.delimiter == "|"
    return heading is not None and is_printed(heading, head.lstrip().split(b"\n", _LOOKED_AT + 1)[1 : _LOOKED_AT + 1])


def _read(file: LogFile, options: ReadOptions) -> SlurmLog:
    counts, bad = Counts(), BadLines(file, options)
    reader = Reader(options, counts)
    for heading, rows in rows_of(file, KINDS, bad, counts):
        _check_fields(file, heading)

        def report(row: int, name: str, what: str, heading: Heading = heading, rows: Rows = rows) -> None:
            bad.add(rows.lines[row], f"{heading.titles[heading.fields.index(name)]} is {what}", rows.texts[row])

        if rows.texts:
            reader.add(RecordTable.of_rows(heading, rows), report)
    return reader.log(bad)


def _suffices(heading: Heading) -> bool:
    has = set(heading.fields)
    runs = {"elapsed", "elapsedraw"} & has or {"start", "end"} <= has
    return bool(runs and "submit" in has and {"alloccpus", "ncpus", "reqcpus"} & has)


def _check_fields(file: LogFile, heading: Heading) -> None:
    if not _suffices(heading):
        raise LogError(f"{file.where}:1: the columns do not suffice for a job log, which needs {NEEDED}; see walltime slurm sacct-command")


SLURM = LogFormat("slurm", "Slurm's sacct -P", (".sacct",), _HEAD, _read, (*RULES, *LINE_RULES), _is_table)
"""What `sacct -P` prints."""
