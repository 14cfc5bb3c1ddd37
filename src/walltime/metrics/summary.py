"""The usual averages of a schedule, in one record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.metrics.jobs import backfill_statistics, bounded_slowdown, mean, slowdown
from walltime.metrics.machine import utilization
from walltime.plugins.files import location_of, user_code
from walltime.plugins.parts import OWN_SPELLING, function_options, own_part
from walltime.tables import Facts, number
from walltime.wording import shown


@dataclass(frozen=True)
class Averages:
    """A record of averages; undefined values are nan."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields in order, ready for JSON; undefined values are None."""
        values = asdict(self)
        return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()}

    def _repr_html_(self) -> str:
        rows = [(name.replace("_", " "), number(value)) for name, value in self.as_dict().items()]
        return Facts(type(self).__name__, rows)._repr_html_()


Array = np.ndarray

TRIMS = ("none", "tsafrir06", "steady")
"""The ways to exclude warm-up and cool-down."""
MOST_TRIMMED = 0.1
"""Maximum share of the jobs that the trim `steady` leaves out."""
LAST = "last:"
"""Prefix of a trim that measures only the last share of the jobs."""


AFTER = "after:"
"""Prefix of a trim that leaves out the jobs submitted in the first days of the log."""
_FORM = "def NAME(submit, end)"


def check_trim(trim: str) -> str:
    """Return the trim; raises PolicyError if it is unknown, or an invalid one of the user's own."""
    if trim not in TRIMS and _share_of(trim) is None and _days_of(trim) is None:
        found = own_part("trims", trim, "trim")
        if found is None:
            valid = f"{', '.join(TRIMS)}, {LAST}SHARE with a share up to 1, {AFTER}DAYS, {OWN_SPELLING}"
            raise PolicyError(f"unknown trim {trim!r}. Valid options: {valid}", "unknown_trim")
        function_options(found[0], ("submit", "end"), "a trim", _FORM)
    return trim


def _own_mask(trim: str, submit: Array, end: Array) -> Array:
    """Return a mask (bool) of the jobs that a user's trim measures; raises PolicyError if the trim does not return a bool for each job."""
    found = own_part("trims", trim, "trim")
    assert found is not None
    with user_code(f"the trim {trim}", found[0], _FORM):
        mask = np.asarray(found[0](submit, end))
    if mask.dtype != bool or mask.shape != end.shape:
        text = f"the trim {trim} must return a bool for each of {len(end)} jobs, not {mask.dtype} of shape {mask.shape}"
        raise PolicyError(f"{location_of(found[0])}{text}", "wrong_length")
    return mask


def measured(end: Array, last_submit: int, trim: str = "none", *, submit: Array | None = None, ignored: Array | None = None) -> Array:
    """Return a mask (bool, shape (jobs,)) of the jobs that are included in the averages.

    `end`: int64 seconds, shape (jobs,), in order of arrival. `last_submit`: s. `trim="none"` includes every job. `trim="tsafrir06"`
    excludes the first floor(1 %) of all simulated jobs in order of termination (ties by arrival; none below 100 jobs) and every job that
    ends after the last arrival. `trim="steady"` does the same unless that excludes over a tenth of the jobs. `trim="last:0.3"` includes the
    last 30 % of the jobs, held out from the training of predictions. `trim="after:7"` excludes the jobs submitted in the first seven days;
    `trim="FILE.py:NAME"` includes the jobs for which a user's function of `submit` and `end` gives True. `ignored` (bool, shape (jobs,))
    marks jobs that are never measured, as the pyss simulator ignores 1-processor jobs with an estimate of 1 s. As in pyss, each ignored job
    that ended earlier reduces the number of jobs from which the 1 % is taken. Raises PolicyError for an unknown trim.
    Source: tsafrir06, section II; that the 1 % refers to all simulated jobs is an interpretation.

    >>> measured(np.array([10, 90, 50]), last_submit=60, trim="tsafrir06").tolist()
    [True, False, True]
    """
    share, days = _share_of(check_trim(trim)), _days_of(trim)
    end = np.asarray(end)
    never = np.zeros(len(end), bool) if ignored is None else np.asarray(ignored, bool)
    if share is not None:
        return ~never & (np.arange(len(end)) >= int((1 - share) * len(end)))
    if trim == "none":
        return ~never
    if trim not in TRIMS:
        submit = np.asarray(end if submit is None else submit)
        first = int(submit.min(initial=np.iinfo(np.int64).max))
        return ~never & (_own_mask(trim, submit, end) if days is None else submit >= first + days * 86_400)
    order = np.argsort(end, kind="stable")
    rank = np.arange(1, len(end) + 1)
    warm_up = rank <= (len(end) - np.cumsum(never[order])) // 100
    mask = (end <= last_submit) & ~never
    mask[order[warm_up]] = False
    return ~never if trim == "steady" and mask.sum() < (1 - MOST_TRIMMED) * len(end) else mask


def _days_of(trim: str) -> int | None:
    """Return the days of a trim such as `after:7`; None for other trims."""
    days = trim.removeprefix(AFTER)
    return int(days) if trim.startswith(AFTER) and days.isascii() and days.isdigit() and len(days) < 6 else None


def _share_of(trim: str) -> float | None:
    """Return the share of a trim such as `last:0.3`; None for other trims."""
    try:
        share = float(trim.removeprefix(LAST)) if trim.startswith(LAST) else 0.0
    except ValueError:
        return None
    return share if 0 < share <= 1 else None


LESS, MORE = -1, 1


class Average(NamedTuple):
    """How pages, tables and rewards show and compare a field of `Summary`."""

    unit: str = ""
    """`s`, `%`, `share` (of 1, shown in percent), or none"""
    better: int = 0
    """LESS or MORE if schedules are judged by it, else 0"""
    label: str = ""
    """its name in outputs, if it differs from the field's"""
    table: bool = False
    """whether it is a column of the table of policies, and in the JSON record of replications"""
    several: bool = False
    """whether several runs, as in a campaign, are compared by it by default"""


def _average(**options: Any) -> dict[str, Average]:
    return {"average": Average(**options)}


@dataclass(frozen=True)
class Summary(Averages):
    """Averages over the measured jobs of a schedule; undefined values are nan.

    >>> one = summarize(submit=[0], start=[5], runtime=[10], procs=[1], backfilled=[False], machine_procs=1, offered_load=0.5)
    >>> one.mean_wait, one.mean_slowdown, one.as_dict()["mean_procs_backfilled"]
    (5.0, 1.5, None)
    """

    jobs: int
    """number of simulated jobs"""
    measured_jobs: int
    """number of jobs included in the averages"""
    mean_wait: float = field(metadata=_average(unit="s", better=LESS, table=True, several=True))
    """mean time from submission to start, s"""
    mean_response: float = field(metadata=_average(unit="s", better=LESS, table=True, several=True))
    """mean time from submission to end, s"""
    mean_slowdown: float = field(metadata=_average(better=LESS, table=True))
    """mean of response / runtime, over the jobs with a runtime above 0"""
    mean_bounded_slowdown: float = field(metadata=_average(better=LESS, table=True, several=True))
    """mean of max(1, response / max(runtime, 10 s)), as in tsafrir06"""
    utilization: float = field(metadata=_average(unit="share", better=MORE, table=True, several=True))
    """share of the machine's processors in use, from the first submission to the last end, all jobs"""
    offered_load: float = field(metadata=_average(unit="share"))
    """load of the workload, with the simulated runtimes"""
    backfilled_percent: float = field(metadata=_average(unit="%", label="backfilled", table=True, several=True))
    """share of the measured jobs that were backfilled, %"""
    mean_bounded_slowdown_p1: float = field(metadata=_average(better=LESS))
    """bounded slowdown as in feitelson98 and mualem01, which can be below 1"""
    zero_runtime_jobs: int
    """number of measured jobs with a runtime of 0, which mean_slowdown excludes"""
    median_wait: float = field(metadata=_average(unit="s", better=LESS))
    """median wait, s"""
    p90_wait: float = field(metadata=_average(unit="s", better=LESS, label="wait, 90 %"))
    """90th percentile of the wait, with linear interpolation between jobs, s"""
    p99_wait: float = field(metadata=_average(unit="s", better=LESS, label="wait, 99 %"))
    """99th percentile of the wait, with linear interpolation between jobs, s"""
    max_wait: float = field(metadata=_average(unit="s", better=LESS, label="longest wait", table=True))
    """longest wait, s"""
    mean_runtime_backfilled: float = field(metadata=_average(unit="s"))
    """mean runtime of the backfilled jobs, s"""
    mean_procs_backfilled: float
    """mean number of processors of the backfilled jobs"""
    mean_runtime_others: float = field(metadata=_average(unit="s"))
    """mean runtime of the jobs that were not backfilled, s"""
    mean_procs_others: float
    """mean number of processors of the jobs that were not backfilled"""
    makespan: float = field(metadata=_average(unit="s", better=LESS))
    """time from the first submission to the last end, all jobs, s; not meaningful for an open workload"""


def averages() -> dict[str, Average]:
    """Return, by the name of each field of `Summary`, how it is shown and compared; in order of the fields.

    >>> averages()["max_wait"].label, averages()["max_wait"].unit, averages()["mean_slowdown"].label
    ('longest wait', 's', 'mean slowdown')
    """
    return {
        one.name: average if average.label else average._replace(label=one.name.replace("_", " "))
        for one in fields(Summary)
        for average in [one.metadata.get("average", Average())]
    }


def field_values(records: Sequence[Any], name: str, kind: type[Any]) -> Array:
    """Return one field of records of a class such as `Summary`, float64, shape (records,); raise PolicyError for an unknown field.

    >>> field_values([], "mean_wait", Summary).tolist()
    []
    """
    known = [field.name for field in fields(kind)]
    if name not in known:
        raise PolicyError(f"unknown measure {shown(name)}. Valid options: {', '.join(known)}", "unknown_measure")
    return np.array([getattr(record, name) for record in records], np.float64)


def summarize(
    *,
    submit: Array,
    start: Array,
    runtime: Array,
    procs: Array,
    backfilled: Array,
    machine_procs: int,
    offered_load: float,
    trim: str = "none",
) -> Summary:
    """Return averages over the measured jobs; utilization and makespan are over all jobs. Without jobs every average is nan.

    `submit, start, runtime`: int64 seconds, `procs`: int64 processors, `backfilled`: bool; each of shape (jobs,), in order of arrival.
    `runtime` is the simulated runtime. `offered_load`: ratio, passed through. `trim`: see `measured`. Raises PolicyError for an unknown
    trim, WorkloadError if the arrays differ in length or no job is left to measure. Source: feitelson98, mualem01 and tsafrir06, see the
    functions for each metric; percentiles, maximum and makespan are ours.

    >>> jobs = dict(submit=[0, 0], start=[0, 10], runtime=[10, 10], procs=[2, 2], backfilled=[False, False])
    >>> summarize(**jobs, machine_procs=2, offered_load=1.0).mean_wait
    5.0
    """
    submit, start, runtime, procs = (np.asarray(a, np.int64) for a in (submit, start, runtime, procs))
    chosen = np.asarray(backfilled, bool)
    lengths = {len(a) for a in (submit, start, runtime, procs, chosen)}
    if len(lengths) > 1:
        raise WorkloadError(f"submit, start, runtime, procs and backfilled differ in length: {sorted(lengths)}", "different_lengths")
    end, jobs, nan = start + runtime, len(submit), float("nan")
    first, last_submit, last = (int(submit.min()), int(submit.max()), int(end.max())) if jobs else (0, 0, 0)
    mask = measured(end, last_submit, trim, submit=submit)
    if jobs and not mask.any():
        raise no_jobs_error(jobs, trim)
    wait, run = (start - submit)[mask], runtime[mask]
    ratio = slowdown(wait, run)[run > 0]
    backfill = backfill_statistics(run, procs[mask], chosen[mask])
    median, p90, p99, longest = np.percentile(wait, [50, 90, 99, 100]).tolist() if jobs else [nan] * 4
    return Summary(
        jobs=jobs,
        measured_jobs=len(run),
        mean_wait=mean(wait),
        mean_response=mean(wait + run),
        mean_slowdown=mean(ratio),
        mean_bounded_slowdown=mean(bounded_slowdown(wait, run)),
        utilization=utilization(start, end, procs, machine_procs, first, last),
        offered_load=float(offered_load),
        backfilled_percent=backfill.percent,
        mean_bounded_slowdown_p1=mean(bounded_slowdown(wait, run, form="p1")),
        zero_runtime_jobs=len(run) - len(ratio),
        median_wait=median,
        p90_wait=p90,
        p99_wait=p99,
        max_wait=longest,
        mean_runtime_backfilled=backfill.mean_runtime,
        mean_procs_backfilled=backfill.mean_procs,
        mean_runtime_others=backfill.mean_runtime_others,
        mean_procs_others=backfill.mean_procs_others,
        makespan=float(last - first) if jobs else nan,
    )


def no_jobs_error(jobs: int, trim: str) -> WorkloadError:
    """Return the error for a trim that leaves no job to measure."""
    reason = f"trim {trim!r} excludes all {jobs} jobs" if trim != "none" else f"all {jobs} jobs are ignored"
    return WorkloadError(f"no job is left to measure: {reason}; use trim 'none' or a longer workload", "no_measured_jobs")
