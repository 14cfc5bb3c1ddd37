"""What orders and policies of your own may know beside the queue: columns of the log, and the date at the site."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

from walltime.errors import WorkloadError

COLUMNS = ("requested", "user", "group", "executable", "queue", "partition", "job_id")
"""The columns of the log that may be known, whole numbers: the user's request (s), and numbers that are -1 where the log does not say."""
NO_START = (
    "the log does not say when it begins; add '; UnixStartTime: SECONDS' and '; TimeZoneString: NAME' to its header, "
    "or give the workload walltime.Origin(unix_start_time=SECONDS, time_zone=NAME)"
)
"""What is missing where there is no calendar, and what to do about it."""


class Calendar(NamedTuple):
    """When the log begins, s since 1970 UTC, and the site's time zone.

    >>> from zoneinfo import ZoneInfo
    >>> Calendar(1_700_000_000, ZoneInfo("Europe/Stockholm")).local(60).isoformat()
    '2023-11-14T23:14:20+01:00'
    """

    begin: int
    zone: tzinfo

    def local(self, time: int) -> datetime:
        """Local date and time at the site for a time (s) of the simulation; raises WorkloadError where no calendar has it."""
        try:
            return datetime.fromtimestamp(self.begin + int(time), self.zone)
        except (OverflowError, ValueError, OSError) as error:
            raise WorkloadError(f"the log begins {self.begin} s after 1970, and {time} s later is a time that no calendar has") from error


class Moment(int):
    """A time of the simulation: seconds from the start of the log as a whole number, which also knows the date at the site.

    >>> from datetime import UTC
    >>> now = Moment(3600, Calendar(0, UTC))
    >>> now + 1, now.local.hour, now.at(now.local.replace(hour=22))
    (3601, 1, 79200)
    """

    _calendar: Calendar | None

    def __new__(cls, seconds: int, calendar: Calendar | None = None) -> Moment:
        """The time, and the calendar to look it up in."""
        moment = super().__new__(cls, seconds)
        moment._calendar = calendar
        return moment

    @property
    def local(self) -> datetime | None:
        """Local date and time at the site; None where the log does not say when it begins."""
        return None if self._calendar is None else self._calendar.local(self)

    def at(self, local: datetime) -> int:
        """The time (s) of the simulation at a local date and time of the site, such as `now.local.replace(hour=22)`.

        Use this rather than differences of two dates, which are an hour off where the clocks change in between. Raises
        WorkloadError where the log does not say when it begins.
        """
        if self._calendar is None:
            raise WorkloadError(f"the time of {local} is not known: {NO_START}")
        begin, zone = self._calendar
        return round((local if local.tzinfo else local.replace(tzinfo=zone)).timestamp()) - begin


class Known(NamedTuple):
    """What is known of the log: columns by name (of `COLUMNS`; integers, one entry per job), and the calendar, None without dates."""

    columns: Mapping[str, Any]
    calendar: Calendar | None = None


NOTHING_KNOWN = Known({})
