"""Log columns and the local date at the site, for custom orders and policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

import numpy as np

from walltime.errors import WorkloadError

COLUMNS = ("requested", "user", "group", "executable", "queue", "partition", "job_id")
"""The readable log columns, whole numbers: the user's request (s), and codes that are -1 if unknown."""
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
        """Local date and time at the site; None if the log does not record its start time."""
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
    """The readable part of a log: `COLUMNS` by name (int64, one value per job), and the calendar, or None."""

    columns: Mapping[str, Any]
    calendar: Calendar | None = None

    @classmethod
    def of(cls, names: Iterable[str], workload: Any, requested: Any) -> LogView:
        """Return these columns of a `walltime.Workload`, as far as they exist; `requested`: the users' requests, int64 s, per job."""
        own = {"requested": requested, "job_id": workload.job_id}
        columns = {name: own[name] if name in own else workload.columns.get(name) for name in sorted(names)}
        begin = workload.origin.unix_start_time
        calendar = None if begin is None else Calendar(begin, workload.origin.tzinfo())
        return cls({name: np.asarray(values, np.int64) for name, values in columns.items() if values is not None}, calendar)
