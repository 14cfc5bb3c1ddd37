"""From the records of a log to jobs that can be simulated: every rule that drops or changes records has a name and a count."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import NamedTuple, get_args

import numpy as np

from walltime.errors import WorkloadError
from walltime.logs.joblog import JobLog, Partial, Rule, TooWide
from walltime.logs.output import printable
from walltime.workload import MISSING, SWF_BY_NAME, Origin, Workload

Array = np.ndarray

RULES = (
    Rule("bad_line", "drop", "The line is not a valid record of the log's format; only if bad lines are skipped."),
    Rule("partial_execution", "drop", "Part (status 2, 3, 4) of an interrupted job that also has a summary record, which is kept."),
    Rule("partial_execution_without_summary", "drop", "Part (status 2, 3, 4) of an interrupted job that has no summary record."),
    Rule("partial_execution_summary", "drop", "Summary of an interrupted job whose parts are kept instead; only with `parts`."),
    Rule("cancelled_before_start", "drop", "Cancelled (status 5) without having run: no runtime or no processors."),
    Rule("unknown_submit", "drop", "The submit time is unknown."),
    Rule("unknown_runtime", "drop", "The runtime is unknown, and the job is not marked as cancelled."),
    Rule("no_processors", "drop", "Neither allocated nor requested processors are known and positive."),
    Rule("too_wide", "drop", "The job needs more processors than the machine has."),
    Rule("clipped_to_machine", "change", "The job needs more processors than the machine has and gets all of them; only with `clip`."),
    Rule("runtime_as_estimate", "change", "No requested time is known: the runtime serves as estimate, at least 1 s."),
    Rule("rounded_time", "change", "A time is fractional: it is rounded to the nearest second, halves up; an estimate to at least 1 s."),
    Rule("reordered", "change", "The record comes after one with a later submission; jobs are sorted by arrival."),
    Rule("unknown_id", "change", "The job has no number and gets one above the largest of the log."),
    Rule("duplicate_id", "change", "An earlier record has the same job number; this one gets a number above the largest of the log."),
    Rule("zero_runtime", "notice", "The runtime is 0 (less than half a second)."),
    Rule("runtime_over_estimate", "notice", "The job ran longer than requested."),
    Rule("procs_differ", "notice", "Allocated and requested processors are both known and differ."),
)
"""The rules for all logs, whatever their format, those that drop in the order in which they are applied.

A record counts under the first rule that drops it. `all_rules` of `formats.py` adds those of single formats.
"""

_PARTS = (2, 3, 4)
_CANCELLED = 5
_OWN_ARRAY = ("job_id", "submit", "runtime", "requested")


def apply_rules(log: JobLog, *, procs: int | None, partial: Partial, too_wide: TooWide, requested_first: bool) -> Workload:
    """Build a workload from a log; see `walltime.logs.table.TableLog.to_workload`."""
    if partial not in get_args(Partial):
        raise WorkloadError(f"partial is {partial!r}; it must be 'summary' or 'parts'")
    if too_wide not in get_args(TooWide):
        raise WorkloadError(f"too_wide is {too_wide!r}; it must be 'drop', 'clip' or 'error'")
    machine = _machine_procs(log, procs)
    times = _Times.of(log)
    width = _width(log, requested_first)
    dropped = dict(log.dropped) | ({"bad_line": len(log.bad_lines)} if log.bad_lines else {})
    records = log.records + sum(dropped.values())
    kept = np.ones(log.records, bool)
    for name, mask in _reasons_to_drop(log, times, width, partial):
        _drop(name, mask, kept, dropped)
    wide = kept & (width > machine)
    if too_wide == "drop":
        _drop("too_wide", wide, kept, dropped)
    elif too_wide == "error" and wide.any():
        first = int(np.argmax(wide))
        what = f"job {log.column('job_id')[first]} needs {width[first]} processors, the machine has {machine}"
        raise WorkloadError(f"{printable(log.path)}: {what}; give it more with procs=N")
    elif wide.any():
        width = np.minimum(width, machine)
    if not kept.any():
        counts = ", ".join(f"{count} {name}" for name, count in dropped.items())
        raise WorkloadError(
            f"{printable(log.path)}: none of the {records} records is a job that can be simulated ({counts}); give another log"
        )

    ids, new_ids = _distinct_ids(log.column("job_id"), kept)
    behind = np.zeros(log.records, bool)
    behind[kept] = times.submit[kept] < np.maximum.accumulate(times.submit[kept])
    estimated = times.requested > 0
    requested = np.where(estimated, times.requested, np.maximum(times.runtime, 1)) if not estimated[kept].all() else times.requested
    allocated, asked = log.column("allocated_procs"), log.column("requested_procs")
    changed = {
        "clipped_to_machine": wide & kept,
        "runtime_as_estimate": ~estimated,
        "rounded_time": times.rounded,
        "reordered": behind,
        **new_ids,
    }
    noticed = {
        "zero_runtime": times.runtime == 0,
        "runtime_over_estimate": times.runtime > requested,
        "procs_differ": (allocated > 0) & (asked > 0) & (allocated != asked),
    }
    chosen = _order_of_arrival(kept, times.submit, ids)
    pick = _Pick(chosen)
    requested = pick(requested)
    return Workload(
        job_id=pick(ids),
        submit=pick(times.submit),
        runtime=pick(times.runtime),
        requested=requested,
        procs=pick(width),
        machine_procs=machine,
        believed=requested,
        columns=_other_columns(log, times, pick),
        origin=Origin(
            name=log.name,
            sha256=log.sha256,
            records=records,
            dropped=dropped,
            changed=dict(log.changed) | _counts(changed, kept),
            noticed=dict(log.noticed) | _counts(noticed, kept),
            header=log.header_lines,
            unix_start_time=log.header.unix_start_time,
            time_zone=log.header.time_zone,
            names={name: texts for name, texts in log.names.items() if name in log.columns},
        ),
        order=chosen if chosen is not None and (np.diff(chosen) < 0).any() else None,
    )


class _Times(NamedTuple):
    """The times of a log in whole seconds, int64, and which records had fractional ones."""

    submit: Array
    runtime: Array
    requested: Array
    others: Mapping[str, Array]
    rounded: Array

    @classmethod
    def of(cls, log: JobLog) -> _Times:
        rounded = np.zeros(log.records, bool)
        whole = {}
        for name in ("submit", "runtime", "requested", "wait", "think_time"):
            values = log.column(name)
            if values.dtype == np.float64:
                low = np.floor(values)
                rounded |= values != low
                whole[name] = (low + (values - low >= 0.5)).astype(np.int64)
                if name == "requested":
                    whole[name][(values > 0) & (values < 1)] = 1
            else:
                whole[name] = values
        return cls(whole.pop("submit"), whole.pop("runtime"), whole.pop("requested"), whole, rounded)


class _Pick:
    """Takes the chosen entries of an array, or the array itself if all are chosen in order."""

    def __init__(self, chosen: Array | None) -> None:
        self.chosen = chosen

    def __call__(self, values: Array) -> Array:
        return values if self.chosen is None else values[self.chosen]


def _machine_procs(log: JobLog, procs: int | None) -> int:
    if procs is None:
        size = log.header.machine_procs
        if size is None:
            busy = _most_busy(log)
            hint = f"; at most {busy:,} processors were busy at once in this log" if busy else ""
            raise WorkloadError(
                f"{printable(log.path)}: the header does not give the size of the machine (MaxProcs, MaxNodes); pass it with procs=N{hint}"
            )
        return size
    try:
        size = operator.index(procs)
    except TypeError:
        raise WorkloadError(f"the number of processors must be a whole number, not {procs!r}; pass another with procs=N") from None
    if size < 1:
        raise WorkloadError(f"the machine must have at least 1 processor, not {size}; pass another with procs=N")
    return size


def _most_busy(log: JobLog) -> int:
    """The largest number of processors that were busy at once in the real schedule; 0 if the log does not say."""
    submit, wait, runtime = (np.asarray(log.column(name), np.float64) for name in ("submit", "wait", "runtime"))
    procs = _width(log, requested_first=False)
    ran = (submit >= 0) & (wait >= 0) & (runtime > 0) & (procs > 0)
    start = (submit + wait)[ran]
    times = np.concatenate([start + runtime[ran], start])  # at the same time ends come first
    change = np.concatenate([-procs[ran], procs[ran]])
    return int(np.cumsum(change[np.argsort(times, kind="stable")]).max(initial=0))


def _width(log: JobLog, requested_first: bool) -> Array:
    """Processors of each record: the first of the two numbers that is positive; 0 or less if neither is."""
    first, second = log.column("allocated_procs"), log.column("requested_procs")
    if requested_first:
        first, second = second, first
    return first if (first > 0).all() else np.where(first > 0, first, second)


def _reasons_to_drop(log: JobLog, times: _Times, width: Array, partial: Partial) -> list[tuple[str, Array]]:
    status, ids = log.column("status"), log.column("job_id")
    part = np.isin(status, _PARTS)
    cancelled = status == _CANCELLED
    reasons = []
    if part.any() and partial == "summary":
        summarised = part & np.isin(ids, ids[~part])
        reasons += [("partial_execution", summarised), ("partial_execution_without_summary", part & ~summarised)]
    elif part.any():
        reasons += [("partial_execution_summary", ~part & np.isin(ids, ids[part]))]
    return [
        *reasons,
        ("cancelled_before_start", cancelled & ((times.runtime <= 0) | (width <= 0))),
        ("unknown_submit", times.submit < 0),
        ("unknown_runtime", times.runtime < 0),
        ("no_processors", width <= 0),
    ]


def _drop(name: str, mask: Array, kept: Array, dropped: dict[str, int]) -> None:
    hit = mask & kept
    count = int(np.count_nonzero(hit))
    if count:
        dropped[name] = count
        kept &= ~hit


def _distinct_ids(ids: Array, kept: Array) -> tuple[Array, dict[str, Array]]:
    """Job numbers without repetition among the kept records, and which of them are new."""
    unknown = kept & (ids < 0)
    rows = np.flatnonzero(kept & ~unknown)
    repeated = np.zeros(len(ids), bool)
    if (ids[rows][1:] <= ids[rows][:-1]).any():
        repeated[rows] = True
        repeated[rows[np.unique(ids[rows], return_index=True)[1]]] = False
    new = np.flatnonzero(unknown | repeated)
    if len(new):
        ids = ids.copy()
        ids[new] = max(int(ids.max()), 0) + 1 + np.arange(len(new))
    return ids, {"unknown_id": unknown, "duplicate_id": repeated}


def _order_of_arrival(kept: Array, submit: Array, ids: Array) -> Array | None:
    """Rows of the kept records by submission, then job number; None if that is every record in file order."""
    rows = np.flatnonzero(kept)
    step, id_step = np.diff(submit[rows]), np.diff(ids[rows])
    if not ((step > 0) | ((step == 0) & (id_step > 0))).all():
        return rows[np.lexsort((ids[rows], submit[rows]))]
    return None if len(rows) == len(kept) else rows


def _other_columns(log: JobLog, times: _Times, pick: _Pick) -> dict[str, Array]:
    columns = {}
    for name, stored in log.columns.items():
        if name in _OWN_ARRAY:
            continue
        values = pick(times.others.get(name, stored))
        if (values != MISSING).any():
            columns[name] = values.astype(SWF_BY_NAME[name].dtype, copy=False) if name in SWF_BY_NAME else values
    return columns


def _counts(masks: Mapping[str, Array], kept: Array) -> dict[str, int]:
    counts = {name: int(np.count_nonzero(mask & kept)) for name, mask in masks.items()}
    return {name: count for name, count in counts.items() if count}
