"""What custom orders and policies may know besides the queue: columns of the log, and the local date at the site."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

import numpy as np

from walltime.errors import WorkloadError

COLUMNS = ("requested", "user", "group", "executable", "queue", "partition", "job_id")
"""The columns of the log that may be read, whole numbers: the user's request (s), and numbers that are -1 if unknown."""
NO_START = (
    "the log does not record its start time; add '; UnixStartTime: SECONDS' and '; TimeZoneString: NAME' to its header, "
    "or give the workload walltime.workload.Origin(unix_start_time=SECONDS, time_zone=NAME)"
)
"""What is missing without a calendar, and how to supply it."""


class Calendar(NamedTuple):
    """Start of the log, s since 1970 UTC, and the site's time zone.

    >>> from zoneinfo import ZoneInfo
    >>> Calendar(1_700_000_000, ZoneInfo("Europe/Stockholm")).local(60).isoformat()
    '2023-11-14T23:14:20+01:00'
    """

    begin: int
    zone: tzinfo

    def local(self, time: int) -> datetime:
        """Local date and time at the site for a simulation time (s); raises WorkloadError if beyond the calendar's range."""
        try:
            return datetime.fromtimestamp(self.begin + int(time), self.zone)
        except (OverflowError, ValueError, OSError) as error:
            raise WorkloadError(
                f"the log begins {self.begin} s after 1970, and {time} s later is beyond the calendar's range", "date_out_of_range"
            ) from error


class Moment(int):
    """A simulation time: whole seconds from the start of the log, which also knows the local date at the site.

    >>> from datetime import UTC
    >>> now = Moment(3600, Calendar(0, UTC))
    >>> now + 1, now.local.hour, now.at(now.local.replace(hour=22))
    (3601, 1, 79200)
    """

    _calendar: Calendar | None

    def __new__(cls, seconds: int, calendar: Calendar | None = None) -> Moment:
        """The time, and the calendar for its local date."""
        moment = super().__new__(cls, seconds)
        moment._calendar = calendar
        return moment

    @property
    def local(self) -> datetime | None:
        """Local date and time at the site; None if the log does not record its start time."""
        return None if self._calendar is None else self._calendar.local(self)

    def at(self, local: datetime) -> int:
        """The simulation time (s) of a local date and time at the site, such as `now.local.replace(hour=22)`.

        Prefer this to the difference of two dates, which is an hour off if the clocks change in between. Raises
        WorkloadError if the log does not record its start time.
        """
        if self._calendar is None:
            raise WorkloadError(f"the time of {local} is not known: {NO_START}", "unknown_start_time")
        begin, zone = self._calendar
        return round((local if local.tzinfo else local.replace(tzinfo=zone)).timestamp()) - begin


class LogView(NamedTuple):
    """What orders and policies may read of the log: columns of `COLUMNS` by name (integers, one per job), and the calendar, or None."""

    columns: Mapping[str, Any]
    calendar: Calendar | None = None

    @classmethod
    def of(cls, names: Iterable[str], workload: Any, requested: Any) -> LogView:
        """These columns of a `walltime.Workload`, as far as it has them; `requested`: the users' requests, int64 s, one entry per job."""
        own = {"requested": requested, "job_id": workload.job_id}
        columns = {name: own[name] if name in own else workload.columns.get(name) for name in sorted(names)}
        begin = workload.origin.unix_start_time
        calendar = None if begin is None else Calendar(begin, workload.origin.tzinfo())
        return cls({name: np.asarray(values, np.int64) for name, values in columns.items() if values is not None}, calendar)
