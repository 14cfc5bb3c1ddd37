"""Log columns and the local date at the site, for custom orders and policies."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.policy.randomness import numbers_of_jobs

COLUMNS = ("requested", "user", "group", "executable", "queue", "partition", "job_id")
"""The readable log columns, integers: the user's request (s), and codes, which are -1 if unknown."""
LATER = frozenset(
    (
        *("wait", "runtime", "allocated_procs", "cpu_time", "memory", "status", "held", "held_in_hindsight", "nodes", "node_list", "gpus"),
        *("gpu_type", "gpu_use", "gpu_mem_mb", "mem_mb", "used_mem_mb", "max_rss_mb", "ave_rss_mb", "user_cpu_time", "energy", "billing"),
        *("earlier_runtime", "priority", "restarts", "run_count", "exit_code", "exit_signal", "sched_backfill", "state", "reason"),
        *("gpus_idle", "machine", "cores", "eligible_wait", "start", "end", "kind", "reserved_start", "limit", "interrupted"),
    )
)
"""The columns of logs and schedules that are known only after submission; policies, orders and predictors cannot read them."""
ALL = "*"
"""In place of a name: all columns that are known at submission."""
RANDOM = "random"
"""A column drawn from the run's seed and the job's number, from 0 to 1; no log has it."""
NO_START = (
    "the log does not record its start time; add '; UnixStartTime: SECONDS' and '; TimeZoneString: NAME' to its header, "
    "or give the workload walltime.workload.Origin(unix_start_time=SECONDS, time_zone=NAME)"
)
"""The message for a log without a start time, with the remedy."""


class Calendar(NamedTuple):
    """Start of the log, s since 1970 UTC, and the site's time zone.

    >>> from zoneinfo import ZoneInfo
    >>> Calendar(1_700_000_000, ZoneInfo("Europe/Stockholm")).local(60).isoformat()
    '2023-11-14T23:14:20+01:00'
    """

    begin: int
    zone: tzinfo

    def local(self, time: int) -> datetime:
        """Return the local date and time for a simulation time (s); raises WorkloadError beyond the calendar's range."""
        try:
            return datetime.fromtimestamp(self.begin + int(time), self.zone)
        except (OverflowError, ValueError, OSError) as error:
            raise WorkloadError(
                f"the log begins {self.begin} s after 1970, and {time} s later is beyond the calendar's range", "date_out_of_range"
            ) from error


class Moment(int):
    """A simulation time: whole seconds since the start of the log, with the local date at the site.

    >>> from datetime import UTC
    >>> now = Moment(3600, Calendar(0, UTC))
    >>> now + 1, now.local.hour, now.at(now.local.replace(hour=22))
    (3601, 1, 79200)
    """

    _calendar: Calendar | None

    def __new__(cls, seconds: int, calendar: Calendar | None = None) -> Moment:
        """Return the time with this calendar for its local date."""
        moment = super().__new__(cls, seconds)
        moment._calendar = calendar
        return moment

    @property
    def local(self) -> datetime | None:
        """Return the local date and time at the site; None if the log does not record its start time."""
        return None if self._calendar is None else self._calendar.local(self)

    def at(self, local: datetime) -> int:
        """Return the simulation time (s) of a local date and time, such as `now.local.replace(hour=22)`.

        The difference of two dates would be an hour off across a clock change. Raises WorkloadError without a recorded start of the log.
        """
        if self._calendar is None:
            raise WorkloadError(f"the time of {local} is unknown: {NO_START}", "unknown_start_time")
        begin, zone = self._calendar
        return round((local if local.tzinfo else local.replace(tzinfo=zone)).timestamp()) - begin


class LogView(NamedTuple):
    """The readable part of a log: its calendar or None, and columns by name, int64 (additional ones may be float64), one value per job."""

    columns: Mapping[str, Any]
    calendar: Calendar | None = None

    @classmethod
    def of(cls, names: Mapping[str, str], workload: Any, requested: Any) -> LogView:
        """Return these columns of a `walltime.Workload`; columns of `COLUMNS` that it lacks are left out.

        `names`: for each column, its reader in error messages. `requested`: the users' requests, int64 s, one per job. Raises PolicyError
        for another missing column.
        """
        wanted, own = set(names), {"requested": requested, "job_id": workload.job_id}
        if ALL in wanted:
            wanted = (wanted - {ALL}) | set(COLUMNS) | (set(workload.columns) - LATER)
        if RANDOM in wanted:
            own[RANDOM] = numbers_of_jobs(workload.job_id)
        if missing := sorted(wanted - own.keys() - set(COLUMNS) - set(workload.columns)):
            further = sorted(set(workload.columns) - LATER - set(COLUMNS)) or ["none"]
            raise PolicyError(
                f"{names[missing[0]]} has unknown parameters: {', '.join(missing)}; {workload.origin.name} has no such column, but has: "
                f"{', '.join(further)}",
                "missing_column",
            )
        columns = {name: own[name] if name in own else workload.columns.get(name) for name in sorted(wanted)}
        begin = workload.origin.unix_start_time
        calendar = None if begin is None else Calendar(begin, workload.origin.tzinfo())
        known = {name: np.asarray(values) for name, values in columns.items() if values is not None}
        return cls({name: one.astype(np.float64 if one.dtype.kind == "f" else np.int64) for name, one in known.items()}, calendar)
