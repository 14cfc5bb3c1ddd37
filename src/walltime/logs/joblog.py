"""Job logs as they are read from files, and the conversion to workloads of jobs that can be simulated."""

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Self, get_args

import numpy as np

from walltime.dataframes import pl
from walltime.errors import LogError, WorkloadError
from walltime.logs.header import Header
from walltime.logs.input import unpacked_name
from walltime.logs.rules import IDLE, MEANINGS
from walltime.wording import counted, printable
from walltime.workload import MISSING, PLANNED, PROCS, SWF_BY_NAME, Array, Column, Origin, Workload
from walltime.workload.drops import NOT_JOBS, Drop, counts_of, drop_jobs

Partial = Literal["summary", "parts"]
TooWide = Literal["drop", "clip", "error"]
ENDINGS = (".csv", ".tsv", ".txt", ".log", ".json", ".jsonl", ".ndjson", ".parquet", ".sacct", ".acct")
"""File extensions of logs, except those of the Standard Workload Format."""
RESERVED_NAMES = frozenset({*SWF_BY_NAME, PROCS.name, PLANNED.name, "job", "and", "or", "not"})
"""Names that additional columns must not have, because workloads and filters use them for something else."""
_PARTS = (2, 3, 4)
_FIRST = 4096
_CANCELLED = 5
_WORKLOAD_FIELDS = ("job_id", "submit", "runtime", "requested")
WHOLE_NODES = 0.9
"""If at least this share of jobs has the same number of processors per node, jobs take whole nodes."""
LIMIT = 2.0**53
"""Whole numbers below it are exact in float64, so one parser serves all fields."""
_NOT_NEGATIVE = ("submit", "runtime", "requested")
_NUMBERED = frozenset({"swf", "slurm"})
"""Formats in which repeated records of a job differ in some column; elsewhere, tasks of an array may have equal records."""


@dataclass(frozen=True)
class BadLine:
    """A skipped line: its number from 1, the reason, and its text."""

    line: int
    reason: str
    text: str


@dataclass(frozen=True, eq=False, repr=False)
class JobLog:
    """A log whose columns a reader has mapped to the common names.

    `columns`: by name, one entry per record in the order of the file (int64 or float64, -1 if unknown): the columns of
    `walltime.workload.SWF_COLUMNS`, in their units, and others under the format's own names. They are stored as read-only int64, or float64
    if a value has a fraction; columns that are -1 everywhere are left out. `format`: the name of the format. `header_lines`: its
    description, as header lines of the Standard Workload Format. `names`: for columns of names, the texts for which the numbers
    1, 2, ... stand. `dropped, changed, noticed`: how many records the reader dropped, changed or flagged, by rule; `dropped_work`:
    processor-seconds of the dropped records, by rule, where known. `reading`: notes on how the columns of a table were recognised.
    `endings`: file extensions that are not part of the log's name, in addition to those of packed files. Raises LogError if the columns
    differ in length or contain invalid values.

    >>> log = JobLog(2, {"job_id": [1, 2], "submit": [0, 5], "runtime": [9, 9], "allocated_procs": [4, 2], "nodes": [1, 1]})
    >>> log.column("user").tolist(), log.to_workload(procs=4).columns["nodes"].tolist()
    ([-1, -1], [1, 1])
    """

    records: int
    columns: Mapping[str, Array]
    format: str = field(default="table", kw_only=True)
    header_lines: tuple[str, ...] = field(default=(), kw_only=True)
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict, kw_only=True)
    bad_lines: tuple[BadLine, ...] = field(default=(), kw_only=True)
    path: str = field(default="log", kw_only=True)
    sha256: str = field(default="", kw_only=True)
    dropped: Mapping[str, int] = field(default_factory=dict, kw_only=True)
    dropped_work: Mapping[str, float] = field(default_factory=dict, kw_only=True)
    changed: Mapping[str, int] = field(default_factory=dict, kw_only=True)
    noticed: Mapping[str, int] = field(default_factory=dict, kw_only=True)
    reading: tuple[str, ...] = field(default=(), kw_only=True)
    endings: tuple[str, ...] = field(default=ENDINGS, kw_only=True)

    def __post_init__(self) -> None:
        given = {name: self._checked(name, values) for name, values in self.columns.items()}
        names = [*(name for name in SWF_BY_NAME if name in given), *(name for name in given if name not in SWF_BY_NAME)]
        object.__setattr__(self, "columns", MappingProxyType({n: given[n] for n in names if _is_known(given[n])}))
        for name, texts in self.names.items():
            if name in self.columns and self.columns[name].max() > len(texts):
                raise LogError(f"column {name} has the number {self.columns[name].max()}, but only {len(texts)} names")

    def __len__(self) -> int:
        return self.records

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {counted(self.records, 'record')}>"

    @property
    def name(self) -> str:
        """Return the file name without its directory and the extensions of compression and format."""
        file = Path(self.path).name
        short = unpacked_name(file)
        ending = next((one for one in self.endings if short.lower().endswith(one)), "")
        return short.removesuffix(short[len(short) - len(ending) :]) or file

    @cached_property
    def header(self) -> Header:
        """Return the standard keys of the header with their values; the case of a key does not matter."""
        return Header.parse(self.header_lines)

    def with_header(self, lines: Sequence[str]) -> Self:
        """Return the log with these lines as its header."""
        return replace(self, header_lines=tuple(lines))

    def all_dropped(self) -> dict[str, int]:
        """Return how many records the reader left out, by rule, including bad lines."""
        return dict(self.dropped) | ({"bad_line": len(self.bad_lines)} if self.bad_lines else {})

    @property
    def further_columns(self) -> tuple[str, ...]:
        """Return the names of the columns that the Standard Workload Format does not have."""
        return tuple(name for name in self.columns if name not in SWF_BY_NAME)

    def column(self, name: str) -> Array:
        """Return a column, one entry per record, all -1 if it is unknown. Raises KeyError for a name that logs do not have."""
        if name in self.columns:
            return self.columns[name]
        known = dict.fromkeys([*SWF_BY_NAME, *self.further_columns])
        if name not in known:
            raise KeyError(f"the log has no column {name!r}. Valid names: {', '.join(known)}")
        return np.broadcast_to(np.int64(MISSING), self.records)

    def to_workload(
        self, *, procs: int | None = None, partial: Partial = "summary", too_wide: TooWide = "drop", requested_first: bool = False
    ) -> Workload:
        """Return the jobs of the log that can be simulated, in order of arrival; `origin` counts all changes.

        `procs`: processors of the machine, by default MaxProcs or MaxNodes of the header. `partial`: keep the `summary` or the `parts` of
        an interrupted job. `too_wide`: `drop` jobs wider than the machine, `clip` them to it, or raise an `error`. A job has the allocated
        number of processors or, if that is unknown, the requested one; `requested_first` reverses this choice, which the papers leave open.
        The rules are listed in `walltime.logs.RULES`; if none dropped or moved a record, the workload shares its arrays with the log.

        Raises WorkloadError if the size of the machine is unknown, or no job is left.
        """
        for option, value, allowed in (("partial", partial, get_args(Partial)), ("too_wide", too_wide, get_args(TooWide))):
            if value not in allowed:
                raise WorkloadError(f"{option} must be one of {', '.join(map(repr, allowed))}, not {value!r}", "unknown_rule")
        machine = _machine_procs(self, procs)
        times, rounded = _whole_times(self)
        submit, runtime, requested = times["submit"], times["runtime"], times["requested"]
        width = _width(self, requested_first)
        masks = _reasons_to_drop(self, submit, runtime, width, partial)
        kept, drops = _left_out(self, masks | ({"too_wide": width > machine} if too_wide == "drop" else {}), runtime, width)
        records = self.records + sum(self.all_dropped().values())
        wide = kept & (width > machine)
        if too_wide == "error" and wide.any():
            first = int(np.argmax(wide))
            what = f"job {self.column('job_id')[first]} needs {width[first]} processors, but the machine has {machine}"
            raise WorkloadError(f"{printable(self.path)}: {what}; set a larger machine with procs=N", "job_too_wide")
        if wide.any():
            width = np.minimum(width, machine)
        if not kept.any():
            counts = ", ".join(f"{count} {name}" for name, count in counts_of(drops).items())
            raise WorkloadError(
                f"{printable(self.path)}: none of the {records} records can be simulated ({counts}); give another log", "no_jobs_left"
            )

        ids, new_ids = _distinct_ids(self.column("job_id"), kept)
        behind = np.zeros(self.records, bool)
        behind[kept] = submit[kept] < np.maximum.accumulate(submit[kept])
        estimated = requested > 0
        if not estimated[kept].all():
            requested = np.where(estimated, requested, np.maximum(runtime, 1))
        allocated, wanted = self.column("allocated_procs"), self.column("requested_procs")
        changed = {"clipped_to_machine": wide, "runtime_as_estimate": ~estimated, "rounded_time": rounded, "reordered": behind, **new_ids}
        noticed = {
            "zero_runtime": runtime == 0,
            "runtime_over_estimate": runtime > requested,
            "procs_differ": (allocated > 0) & (wanted > 0) & (allocated != wanted),
        }
        order = _order_of_arrival(kept, submit, ids)

        def pick(values: Array) -> Array:
            return values if order is None else values[order]

        others = {name: pick(times.get(name, values)) for name, values in self.columns.items() if name not in _WORKLOAD_FIELDS}
        requested = pick(requested)
        return Workload(
            job_id=pick(ids),
            submit=pick(submit),
            runtime=pick(runtime),
            requested=requested,
            procs=pick(width),
            machine_procs=machine,
            planned=requested,
            columns={
                name: values.astype(SWF_BY_NAME[name].dtype, copy=False) if name in SWF_BY_NAME else values
                for name, values in others.items()
                if _is_known(values)
            },
            origin=Origin(
                name=self.name,
                sha256=self.sha256,
                records=records,
                drops=tuple(drops),
                changed=dict(self.changed) | _counts(changed, kept),
                noticed=dict(self.noticed) | _counts(noticed, kept),
                header=self.header_lines,
                unix_start_time=self.header.unix_start_time,
                time_zone=self.header.time_zone,
                names={name: texts for name, texts in self.names.items() if name in self.columns},
            ),
            order=order if order is not None and (np.diff(order) < 0).any() else None,
        )

    def may_have(self, name: str) -> bool:
        """Return whether a column may have this name."""
        return name in SWF_BY_NAME or is_further_name(name)

    def _checked(self, name: str, values: Array) -> Array:
        if not self.may_have(name):
            raise LogError(f"a log cannot have a column {name!r}. Valid names: {', '.join(SWF_BY_NAME)}", "unknown_column")
        array = np.asarray(values)
        if array.shape != (self.records,):
            raise LogError(f"{name} must have one entry per record ({self.records}), not the shape {array.shape}", "wrong_length")
        if array.dtype.kind not in "iuf":
            raise LogError(f"{name} must contain numbers, not {array.dtype}", "wrong_type")
        for mask, what in faults(SWF_BY_NAME.get(name) or Column(name, "float64", "", ""), array):
            if mask.any():
                row = int(np.argmax(mask))
                raise LogError(f"{name} of record {row + 1} must be {what}, not {array[row]}", "wrong_field")
        if array.dtype != np.int64:
            array = narrowed(array)
        array = array.view()
        array.flags.writeable = False
        return array


def _is_known(values: Array) -> bool:
    """Return whether a column holds any value but -1; the first values, which usually decide, are checked first."""
    return bool((values[:_FIRST] != MISSING).any() or (values[_FIRST:] != MISSING).any())


def is_further_name(name: str) -> bool:
    """Return whether an additional column may have this name: lower case, and usable in a filter."""
    return name.isidentifier() and name == name.lower() and name not in RESERVED_NAMES


def faults(column: Column, values: Array) -> Iterator[tuple[Array, str]]:
    """Yield masks of the invalid values (float64 or int64) in a column, each with the reason; nothing if all whole numbers are valid."""
    if values.dtype == np.int64 and values.min(initial=0) >= MISSING and values.max(initial=0) < LIMIT:
        return
    yield ~((values > -LIMIT) & (values < LIMIT)), "a number below 2^53"
    if column.dtype == "int64" and column.unit != "s":
        yield values != np.floor(values), "a whole number"
    if column.name in _NOT_NEGATIVE:
        yield (values < 0) & (values != MISSING), "0 or more, or -1 if unknown"


def narrowed(values: Array) -> Array:
    """Return the values as int64 if all are whole, else as float64 (a copy)."""
    whole = values.astype(np.int64)
    if values.dtype == np.int64:
        return whole
    return whole if (whole == values).all() else values.astype(np.float64)


def _whole_times(log: JobLog) -> tuple[dict[str, Array], Array]:
    """Return the times of a log by column, rounded to whole seconds, int64, and which records had fractional ones."""
    rounded = np.zeros(log.records, bool)
    times = {}
    for name in ("submit", "runtime", "requested", "wait", "think_time"):
        values = times[name] = log.column(name)
        if values.dtype == np.float64:
            low = np.floor(values)
            rounded |= values != low
            times[name] = (low + (values - low >= 0.5)).astype(np.int64)
            if name == "requested":
                times[name][(values > 0) & (values < 1)] = 1
    return times, rounded


def _machine_procs(log: JobLog, procs: int | None) -> int:
    if procs is None:
        size = log.header.machine_procs
        if size is None:
            busiest = _highest_use(log, _width(log, requested_first=False))
            hint = "" if busiest is None else f"; at most {counted(busiest[0], 'processor')} were busy at once in this log"
            raise WorkloadError(
                f"{printable(log.path)}: the header does not give the size of the machine (MaxProcs, MaxNodes); pass it with procs=N{hint}",
                "unknown_machine_size",
            )
        return size
    try:
        size = operator.index(procs)
    except TypeError:
        raise WorkloadError(
            f"the number of processors must be a whole number, not {procs!r}; pass another with procs=N", "wrong_type"
        ) from None
    if size < 1:
        raise WorkloadError(f"the machine must have at least 1 processor, not {size}; pass another with procs=N", "number_out_of_range")
    return size


@dataclass(frozen=True)
class SizeEstimate:
    """A lower bound on the size of a machine.

    `procs`: the largest number of processors busy at the same time, for `seconds` in total. If the log does not record when jobs ran,
    `seconds` is None, and `procs` is the width of the widest job. `nodes`, `nodes_seconds`: the same for nodes; None if the log has no
    nodes, or if jobs may share nodes because they do not take whole nodes of one size.
    """

    procs: int
    seconds: int | None
    nodes: int | None = None
    nodes_seconds: int | None = None
    unshared: bool = False
    """whether the log's lists of nodes show that no two jobs shared a node"""


def estimated_size(log: JobLog) -> SizeEstimate | None:
    """Return the smallest machine on which the jobs of a log can have run; None if no job has a size.

    >>> log = JobLog(2, {"submit": [0, 5], "wait": [0, 0], "runtime": [9, 9], "allocated_procs": [4, 2], "nodes": [2, 1]})
    >>> estimated_size(log)
    SizeEstimate(procs=6, seconds=4, nodes=3, nodes_seconds=4, unshared=False)
    """
    width = _width(log, requested_first=False)
    procs = _highest_use(log, width)
    if procs is None:
        widest = int(width.max(initial=0))
        return SizeEstimate(widest, None) if widest > 0 else None
    nodes = log.column("nodes") if "nodes" in log.columns else np.zeros(log.records, np.int64)
    has_both = (width > 0) & (nodes > 0)
    usual = np.unique(width[has_both] / nodes[has_both], return_counts=True)[1].max(initial=0)
    takes_whole_nodes = usual >= WHOLE_NODES * np.count_nonzero(has_both) > 0  # otherwise jobs may share nodes, which would count twice
    shared = _overlap_on_nodes(log)
    used = _highest_use(log, nodes) if takes_whole_nodes and not shared else None
    busy, seconds = used or (None, None)
    return SizeEstimate(*procs, busy, seconds, shared is False and busy is not None)


def _overlap_on_nodes(log: JobLog) -> bool | None:
    """Return whether jobs with the same list of nodes ran at the same time; None if the log has no lists of nodes."""
    if "node_list" not in log.columns:
        return None
    submit, wait, runtime, lists = (np.asarray(log.column(name), np.float64) for name in ("submit", "wait", "runtime", "node_list"))
    known = (submit >= 0) & (wait >= 0) & (runtime > 0) & (lists > 0)
    lists, start, end = lists[known], (submit + wait)[known], (submit + wait + runtime)[known]
    order = np.lexsort((start, lists))
    return bool(((np.diff(lists[order]) == 0) & (start[order][1:] < end[order][:-1])).any())


def _highest_use(log: JobLog, size: Array) -> tuple[int, int] | None:
    """Return the highest total of `size` over jobs that ran at the same time, and the total time at this height, s.

    None if no job has a start, a runtime and a size.
    """
    submit, wait, runtime = (np.asarray(log.column(name), np.float64) for name in ("submit", "wait", "runtime"))
    ran = (submit >= 0) & (wait >= 0) & (runtime > 0) & (size > 0)
    if not ran.any():
        return None
    start, used = (submit + wait)[ran], size[ran].astype(np.int64)
    times = np.concatenate([start + runtime[ran], start])  # of equal times, ends come first
    order = np.argsort(times, kind="stable")
    busy = np.cumsum(np.concatenate([-used, used])[order])
    lasting = np.diff(times[order], append=times[order][-1])
    return int(busy.max()), int(lasting[busy == busy.max()].sum())


def _width(log: JobLog, requested_first: bool) -> Array:
    """Return the processors of each record: allocated or requested ones, whichever is positive first; 0 or less if neither is."""
    first, second = log.column("allocated_procs"), log.column("requested_procs")
    if requested_first:
        first, second = second, first
    return first if (first > 0).all() else np.where(first > 0, first, second)


def _reasons_to_drop(log: JobLog, submit: Array, runtime: Array, width: Array, partial: Partial) -> dict[str, Array]:
    """Return, for each rule in order, which records it drops (bool)."""
    status, ids = log.column("status"), log.column("job_id")
    part = (status >= min(_PARTS)) & (status <= max(_PARTS))
    reasons = (
        {"repeated_record": repeated(log.columns.values()) & (ids >= 0)} if log.format in _NUMBERED and (ids[1:] <= ids[:-1]).any() else {}
    )
    if part.any() and partial == "summary":
        summarised = part & np.isin(ids, ids[~part])
        reasons |= {"partial_execution": summarised, "partial_execution_without_summary": part & ~summarised}
    elif part.any():
        reasons |= {"partial_execution_summary": ~part & np.isin(ids, ids[part])}
    return reasons | {
        "cancelled_before_start": (status == _CANCELLED) & ((runtime <= 0) | (width <= 0)),
        "unknown_submit": submit < 0,
        "unknown_runtime": runtime < 0,
        "no_processors": width <= 0,
    }


def repeated(columns: Iterable[Array]) -> Array:
    """Return a mask (bool) of the rows that have the same values in all of these columns as an earlier row."""
    table = pl.DataFrame({str(k): values for k, values in enumerate(columns)})
    first: Array = table.select(pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
    return ~first


def _left_out(log: JobLog, masks: dict[str, Array], runtime: Array, width: Array) -> tuple[Array, list[Drop]]:
    """Return a mask (bool) of the records that become jobs, and the records that the reader and the masks' rules leave out."""
    work = np.where((runtime >= 0) & (width > 0), runtime * width.astype(np.float64), np.nan)
    for name in IDLE & masks.keys():
        work[masks[name]] = 0.0
    of_reader = log.all_dropped()
    known = {**dict.fromkeys(IDLE, 0.0), **log.dropped_work}
    count = log.records + sum(jobs for name, jobs in of_reader.items() if name not in NOT_JOBS)
    total = float(np.nansum(work)) + sum(known.values())
    kept, drops = drop_jobs(masks, MEANINGS, work, (count, total))
    return kept, [
        *(
            Drop(name, MEANINGS.get(name, "The reader leaves the record out."), jobs, known.get(name, np.nan), count, total)
            for name, jobs in of_reader.items()
        ),
        *drops,
    ]


def _distinct_ids(ids: Array, kept: Array) -> tuple[Array, dict[str, Array]]:
    """Return job numbers that are distinct among the kept records, and which of them are new."""
    unknown = kept & (ids < 0)
    if not unknown.any() and (ids[1:] > ids[:-1]).all():
        return ids, {}
    rows = np.flatnonzero(kept & ~unknown)
    again = kept & ~unknown
    again[rows[np.unique(ids[rows], return_index=True)[1]]] = False
    if len(new := np.flatnonzero(unknown | again)):
        ids = ids.copy()
        ids[new] = max(int(ids.max()), 0) + 1 + np.arange(len(new))
    return ids, {"unknown_id": unknown, "duplicate_id": again}


def _order_of_arrival(kept: Array, submit: Array, ids: Array) -> Array | None:
    """Return the rows of kept records by submission and job number; None if that is all records in the order of the file."""
    rows = np.flatnonzero(kept)
    order = rows[np.lexsort((ids[rows], submit[rows]))]
    return None if len(order) == len(kept) and (order[1:] > order[:-1]).all() else order


def _counts(masks: Mapping[str, Array], kept: Array) -> dict[str, int]:
    counts = {name: int(np.count_nonzero(mask & kept)) for name, mask in masks.items()}
    return {name: count for name, count in counts.items() if count}
