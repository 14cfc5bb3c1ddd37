"""Read Slurm's records from tables with titles: Parquet, JSON, `scontrol show job`, and Slurm's files of completed jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from walltime.dataframes import pl
from walltime.logs.cells import BLANK, plain_texts
from walltime.logs.joblog import JobLog
from walltime.logs.objects import frame_of
from walltime.logs.reader import LogFormat, ReaderState
from walltime.logs.sample import Sample, sample_of_frame
from walltime.logs.slurm.adapted import adapted
from walltime.logs.slurm.records import KINDS, TEXTS, RecordReader, RecordTable, suffice
from walltime.logs.slurm.rows import Heading, is_printed

SHOWN: Mapping[str, str] = {
    "jobid": "jobidraw", "arrayjobid": "array", "arraytaskid": "task", "userid": "user", "jobname": "jobname", "name": "jobname",
    "jobstate": "state", "submittime": "submit", "eligibletime": "eligible", "starttime": "start", "endtime": "end", "runtime": "elapsed",
    "timelimit": "timelimit", "numcpus": "alloccpus", "proccnt": "alloccpus", "numnodes": "nnodes", "nodecnt": "nnodes",
    "tres": "alloctres",
    "alloctres": "alloctres", "reqtres": "reqtres", "features": "constraints", "licenses": "licenses", "reservation": "reservation",
    "reservationname": "reservation", "nodelist": "nodelist", "exitcode": "exitcode", "restarts": "restarts", "priority": "priority",
    "account": "account", "qos": "qos", "partition": "partition", "reason": "reason", "cluster": "cluster",
}  # fmt: skip
"""The keys of `scontrol show job` and of jobcomp/filetxt, in lower case, and the corresponding fields of sacct."""
_TESTED_ROWS = 50
_ROWS_AT_ONCE = 200_000


def _names(titles: Iterable[str]) -> dict[str, str]:
    """Return the fields of sacct among these titles, each with its title."""
    plain = {title.strip().lower().split("%")[0]: title for title in reversed(list(titles))}
    if {"jobid", "jobstate", "submittime"} <= plain.keys():
        return {SHOWN[name]: title for name, title in plain.items() if name in SHOWN}
    return {name: title for name, title in plain.items() if name in KINDS or name in TEXTS}


def is_slurm(sample: Sample) -> bool:
    """Return whether a table has sacct's fields as titles, with values in sacct's form in its first rows."""
    names = _names(sample.columns)
    if not suffice(set(names)):
        return False
    columns = [[_plain(text, name) for text in sample.columns[title][:_TESTED_ROWS]] for name, title in names.items()]
    heading = Heading(tuple(names), tuple(names), "\0", False)
    return is_printed(heading, ["\0".join(row) for row in zip(*columns, strict=True)])


def _plain(text: str, name: str) -> str:
    """Return a value without the user's number, and whole numbers without a decimal point."""
    return "" if text in BLANK else text.split("(")[0] if name == "user" else re.sub(r"^([0-9]+)\.0+$", r"\1", text)


def _texts(column: pl.Series) -> pl.Series:
    if column.dtype.is_float():
        column = column.fill_nan(None)
        known = column.drop_nulls()
        column = column.cast(pl.Int64) if ((known == known.floor()) & (known.abs() < 2**53)).all() else column
    elif isinstance(column.dtype, pl.Duration):
        seconds = column.dt.total_seconds()
        column = (seconds // 60).cast(pl.String) + ":" + (seconds % 60).cast(pl.String)
    texts = plain_texts(column)
    return texts.set(texts.is_in(BLANK), "")


def _read(state: ReaderState) -> JobLog:
    state.unit = "record"
    frame = frame_of(state.file)
    meaning = adapted(_names(frame.columns), sample_of_frame(frame), state.file.where)
    names = meaning.titles
    reader = RecordReader(state, meaning.forms)
    for first in range(0, len(frame), _ROWS_AT_ONCE):
        columns = {name: _texts(frame[title].slice(first, _ROWS_AT_ONCE)) for name, title in names.items()}
        if {"array", "task"} <= columns.keys():
            task = columns["array"] + "_" + columns["task"]
            columns["jobid"] = columns["jobidraw"].zip_with(columns["array"].is_in(("", "0")) | (columns["task"] == ""), task)
        if "user" in columns:
            columns["user"] = columns["user"].str.replace(r"\([0-9]+\)$", "")
        reader.add(RecordTable(columns), range(first + 1, len(frame) + 1), titles=names)
    return replace(reader.log(), reading=meaning.reading)


SLURM_TABLE = LogFormat("slurm-table", "a table with the fields of Slurm's sacct", (), re.compile(b"(?!)"), _read)
"""A table that `is_slurm` recognises; its rules are those of `walltime.logs.slurm.text.SLURM`."""
