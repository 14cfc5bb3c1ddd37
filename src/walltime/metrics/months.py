"""Results for each calendar month, as in feitelson98 and mualem01."""

from dataclasses import dataclass
from datetime import datetime, tzinfo

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.metrics.jobs import bounded_slowdown, mean
from walltime.metrics.machine import utilization
from walltime.metrics.summary import Averages

Array = np.ndarray

SPLITS = ("end", "start", "submit")
"""The events that can assign a job to a month."""


@dataclass(frozen=True)
class Month(Averages):
    """One calendar month of a schedule, times in s; the averages are nan for a month without jobs."""

    year: int
    month: int
    jobs: int
    """jobs assigned to the month"""
    days: float
    """days of the month between the first submit and the last end of the schedule"""
    load: float
    """utilization in the whole calendar month, by all running jobs"""
    mean_wait: float
    mean_response: float
    mean_bounded_slowdown: float
    """as in tsafrir06, with max(1, .)"""
    mean_bounded_slowdown_p1: float
    """as in feitelson98 and mualem01"""


def monthly(
    *,
    submit: Array,
    start: Array,
    runtime: Array,
    procs: Array,
    machine_procs: int,
    unix_start_time: int | None,
    tzinfo: tzinfo,
    by: str = "end",
) -> list[Month]:
    """Return averages for each calendar month in the site's local time, including months without jobs.

    `submit, start, runtime`: int64 seconds from the start of the log, `procs`: int64 processors; each of shape (jobs,).
    `unix_start_time`: seconds since 1970 UTC at which the log starts. `by`: the event that assigns a job to a month. Raises PolicyError for
    another event, WorkloadError if the start of the log is not known or its times are outside the calendar.
    Source: mualem01, Table 1; that jobs belong to the month of their end, and that "load" is the utilization, is an interpretation.

    >>> from datetime import UTC
    >>> a = np.array([86400 * 30])
    >>> rows = monthly(submit=a, start=a, runtime=a * 0 + 86400 * 2, procs=a * 0 + 1, machine_procs=1, unix_start_time=0, tzinfo=UTC)
    >>> [(m.year, m.month, m.jobs, m.days) for m in rows]
    [(1970, 1, 0, 1.0), (1970, 2, 1, 1.0)]
    """
    if by not in SPLITS:
        raise PolicyError(f"jobs cannot be split into months by {by!r}. Valid options: {', '.join(SPLITS)}", "unknown_column")
    if unix_start_time is None:
        raise WorkloadError(
            "the log does not record its start, so it has no calendar months; add UnixStartTime to its header", "unknown_start_time"
        )
    submit, start, runtime, procs = (np.asarray(a, np.int64) for a in (submit, start, runtime, procs))
    if not len(submit):
        return []
    end = start + runtime
    first, last = int(submit.min()), int(end.max())
    calendar = month_starts(unix_start_time + first, unix_start_time + last, tzinfo)
    bounds = np.array([moment - unix_start_time for _, _, moment in calendar], np.int64)
    event = {"end": end, "start": start, "submit": submit}[by]
    number = np.searchsorted(bounds, event, side="right") - 1
    wait = start - submit
    columns = wait, wait + runtime, bounded_slowdown(wait, runtime), bounded_slowdown(wait, runtime, form="p1")
    rows = []
    for k, (year, month, _) in enumerate(calendar[:-1]):
        begin, finish, mine = int(bounds[k]), int(bounds[k + 1]), number == k
        days, load = (min(finish, last) - max(begin, first)) / 86400, utilization(start, end, procs, machine_procs, begin, finish)
        rows.append(Month(year, month, int(mine.sum()), days, load, *(mean(column[mine]) for column in columns)))
    return rows


def month_starts(first: int, last: int, tzinfo: tzinfo) -> list[tuple[int, int, int]]:
    """Return year, month and start (s since 1970 UTC) of each month, from the month of `first` to the one after `last` (s since 1970 UTC).

    Months begin at midnight local time, with daylight saving time. Raises WorkloadError for times outside the calendar.

    >>> from datetime import UTC
    >>> month_starts(0, 86400, UTC)
    [(1970, 1, 0), (1970, 2, 2678400)]
    """
    try:
        a, b = datetime.fromtimestamp(first, tzinfo), datetime.fromtimestamp(last, tzinfo)
        count = (b.year - a.year) * 12 + b.month - a.month + 1
        names = [divmod(a.year * 12 + a.month - 1 + k, 12) for k in range(count + 1)]
        return [(year, month + 1, round(datetime(year, month + 1, 1, tzinfo=tzinfo).timestamp())) for year, month in names]
    except (OverflowError, ValueError, OSError) as error:
        raise WorkloadError(
            f"the times {first} to {last} s since 1970 are outside the calendar; check UnixStartTime", "date_out_of_range"
        ) from error
