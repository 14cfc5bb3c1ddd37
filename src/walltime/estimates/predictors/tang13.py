"""Walltime adjustment: the user's request times the accuracy of earlier requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from walltime.errors import PolicyError
from walltime.estimates.predictors.base import FinishedJob, Predictor, SubmittedJob, check_key, check_whole, key_of

STATISTICS = ("max", "p95", "p90", "p85", "p80", "p70", "median")
"""P4's levels of aggressiveness."""
WINDOWS = (1, 2, 3, 6, 12, None)
"""P4's windows, in months; None for all of the history."""
MONTH = 30 * 86400


@dataclass(frozen=True)
class Tang13(Predictor):
    """The request times a percentile of R = runtime / request, at most 1, over earlier jobs like this one.

    `key`: which jobs are alike, of `walltime.estimates.KEYS`. `statistic`: `max`, `median` or a percentile such as `p85`, by
    nearest rank: of k values the ceil(p k)-th smallest. `window`: how many months of 30 days before the submission t a job must
    have ended in to count, in (t - window, t]; None for all. `threshold`: R is taken to be at least this. `least`: with fewer
    such jobs the request stands. `rank="cobalt"` takes the value at place int(p k), counted from 0, and `refresh` says that
    history is looked at only every so many seconds, at multiples of it from the start of the log: see `cobalt`.

    Source: P4 section 4 (SPEC T-07, Q-11, Q-12, Q-13).

    >>> Tang13(statistic="p90", window=None, threshold=0.5).label
    'tang13:statistic=p90,window=all,threshold=0.5'
    """

    name: ClassVar[str] = "tang13"
    key: str = "triple"
    statistic: str = "p85"
    window: int | None = 1
    threshold: float = 0.0
    least: int = 10
    rank: Literal["nearest", "cobalt"] = "nearest"
    refresh: int = 1

    def __post_init__(self) -> None:
        check_key(self.name, self.key)
        _ = self.percent
        if self.window is not None:
            check_whole(self.name, "the window", self.window, 1)
        if not 0 <= self.threshold <= 1:
            raise PolicyError(f"the threshold of tang13 must be from 0 to 1, not {self.threshold!r}")
        check_whole(self.name, "the least number of jobs", self.least, 1)
        if self.rank not in ("nearest", "cobalt"):
            raise PolicyError(f"the rank of tang13 is nearest or cobalt, not {self.rank!r}")
        check_whole(self.name, "the time between two refreshes", self.refresh, 1)

    @classmethod
    def cobalt(cls, **options: Any) -> Tang13:
        """As in Cobalt's own program: p80 by int(p k), more than 10 jobs of the last 60 days, R from 0.5 to 1, every 30 minutes.

        Source: Cobalt's histm (SPEC T-07, Q-12); that the half hours are counted from the start of the log is ours.
        """
        defaults: dict[str, Any] = {"statistic": "p80", "window": 2, "threshold": 0.5, "least": 11, "rank": "cobalt", "refresh": 1800}
        return cls(**(defaults | options))

    @property
    def percent(self) -> int:
        """The percentile, 1 to 100."""
        named = {"max": 100, "median": 50}.get(self.statistic)
        if named is not None:
            return named
        number = self.statistic[1:]
        if not self.statistic.startswith("p") or not number.isdecimal() or not 1 <= int(number) <= 100:
            raise PolicyError(f"unknown statistic {self.statistic!r} of tang13; known are max, median, and p1 to p100")
        return int(number)

    def begin(self) -> Adjustment:
        """A learner that has seen no job."""
        return Adjustment(self)


class Adjustment:
    """Remembers when each job ended and its R, and looks all of them through for each prediction."""

    def __init__(self, scheme: Tang13):
        self.scheme = scheme
        self.finished: dict[tuple[int, ...], list[tuple[int, float]]] = {}

    def observe(self, job: FinishedJob) -> None:
        """Note R."""
        key = key_of(job, self.scheme.key)
        if key is not None:
            self.finished.setdefault(key, []).append((job.end, min(job.runtime / job.requested, 1.0)))

    def predict(self, job: SubmittedJob) -> float | None:
        """P4 eq. 2: t_sched = t_req A."""
        scheme = self.scheme
        key = key_of(job, scheme.key)
        if key is None:
            return None
        as_of = job.now - job.now % scheme.refresh
        oldest = -1 if scheme.window is None else as_of - scheme.window * MONTH
        eligible = sorted(r for end, r in self.finished.get(key, ()) if oldest < end <= as_of)
        count = len(eligible)
        if count < scheme.least:
            return None
        place = -(-scheme.percent * count // 100) - 1
        if scheme.rank == "cobalt":
            place = min(int(scheme.percent / 100 * count), count - 1)
        return job.requested * min(max(eligible[place], scheme.threshold), 1.0)
