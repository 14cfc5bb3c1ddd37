"""The origin of jobs, and the changes since they were read or generated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from walltime.wording import sanitize
from walltime.workload.drops import Drop, counts_of


@dataclass(frozen=True)
class Origin:
    """The origin of a workload, which all results contain.

    `drops`: the jobs left out at each stage. `changed`: the number of jobs that each rule changed. `noticed`: the number of unusual jobs
    that were not changed, by rule. `header`: the header lines of the log as in the file.
    """

    name: str = "workload"
    sha256: str = ""
    records: int = 0
    drops: tuple[Drop, ...] = ()
    changed: Mapping[str, int] = field(default_factory=dict)
    noticed: Mapping[str, int] = field(default_factory=dict)
    omissions: Mapping[str, float | None] = field(default_factory=dict)
    """Features that the machine does not model, each with the share of the work that requests it, None if unknown; see
    `walltime.machine.omissions`.
    """
    header: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    """Changes made to the jobs after they were read or generated (filters, scaling, shaking), in order."""
    unix_start_time: int | None = None
    time_zone: str = "UTC"
    """A name such as Europe/Stockholm, or an offset from UTC in seconds."""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The names for the numbers in a column, if the log has names: number k is `names[column][k - 1]`."""

    @property
    def dropped(self) -> dict[str, int]:
        """Return the number of jobs that each rule dropped."""
        return counts_of(self.drops)

    def name_of(self, column: str, number: int) -> str:
        """Return the name for a number in a column, such as a user, safe to print; the number itself if the log has no names.

        >>> Origin(names={"user": ("alice",)}).name_of("user", 1), Origin().name_of("user", 1)
        ('alice', '1')
        """
        texts = self.names.get(column, ())
        return sanitize(texts[number - 1]) if 0 < number <= len(texts) else str(number)

    @property
    def site(self) -> str:
        """Return the only cluster that the log names, safe to print, or else the log's name.

        >>> Origin(name="jobs", names={"cluster": ("talos",)}).site, Origin(name="jobs").site
        ('talos', 'jobs')
        """
        return self.name_of("cluster", 1) if len(self.names.get("cluster", ())) == 1 else self.name

    def after(self, step: str) -> Origin:
        """Return the origin with another step at the end of `steps`."""
        return replace(self, steps=(*self.steps, step))

    def number_of(self, column: str, name: str) -> int:
        """Return the number of a name in a column, or of digits if the log has no names; -1 if it is unknown.

        >>> Origin(names={"user": ("alice",)}).number_of("user", "alice"), Origin().number_of("user", "7"), Origin().number_of("user", "x")
        (1, 7, -1)
        """
        texts = self.names.get(column, ())
        if name in texts:
            return texts.index(name) + 1
        return int(name) if name.isascii() and name.isdecimal() and len(name) < 16 and not texts else -1

    def moment(self, seconds: float) -> datetime | None:
        """Return the local date and time at `seconds` of the log; None if the log has no dates, or outside the calendar."""
        try:
            return None if self.unix_start_time is None else datetime.fromtimestamp(self.unix_start_time + int(seconds), self.tzinfo())
        except (OverflowError, ValueError, OSError):
            return None

    def span(self, begin: float, end: float) -> str:
        """Return a span of the log in words.

        >>> Origin(unix_start_time=0).span(-86400, 60), Origin().span(0, 1234)
        ('1969-12-31 00:00 to 1970-01-01 00:01', '0 s to 1,234 s')
        """
        return f"{self.when(begin)} to {self.when(end)}"

    def when(self, seconds: float) -> str:
        """Return a time of the log in words: its local date and time, or seconds if the log has no dates.

        >>> Origin(unix_start_time=0).when(90), Origin().when(1234)
        ('1970-01-01 00:01', '1,234 s')
        """
        moment = self.moment(seconds)
        return f"{int(seconds):,} s" if moment is None else f"{moment:%Y-%m-%d %H:%M}"

    def tzinfo(self) -> tzinfo:
        """Return the site's time zone; UTC if the log has none or an unknown one."""
        try:
            if self.time_zone.lstrip("+-").isdecimal():
                return timezone(timedelta(seconds=int(self.time_zone)))
            return ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError for a folder of zones, such as Europe
            return UTC
