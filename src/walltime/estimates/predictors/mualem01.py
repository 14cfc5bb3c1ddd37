"""Estimates from the history of the same program: mean and standard deviations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from walltime.errors import PolicyError
from walltime.estimates.predictors.base import Basis, FinishedJob, Guess, Predictor, SubmittedJob, check_key, check_whole, key_of

WEEK = 7 * 86400
FORGET = ("key", "sliding", "global", "none")


@dataclass(frozen=True)
class Mualem01History(Predictor):
    """Mean runtime plus so many standard deviations, over earlier jobs like this one, else over all jobs so far.

    `key`: which jobs are alike, of `walltime.estimates.KEYS`; P2's is `program`: executable, user and processors. `deviations`:
    how many standard deviations are added, 1.5 or, more cautiously, 3. `week`: what is forgotten after 7 days: `key` forgets all
    of a key when its last job has ended more than 7 days before a submission; `sliding` each record that is older than that;
    `global` everything at each multiple of a week from the start of the log; `none` nothing. The whole workload, on which one
    falls back, is a key like any other. `least`: with fewer records a key is not used. `sample`: the sample's standard deviation
    instead of the population's; that of a single record is 0.

    Source: P2 section 4.4 (SPEC T-06, Q-10).
    """

    name: ClassVar[str] = "mualem01-history"
    key: str = "program"
    deviations: float = 1.5
    week: Literal["key", "sliding", "global", "none"] = "key"
    least: int = 1
    sample: bool = False

    def __post_init__(self) -> None:
        check_key(self.name, self.key)
        if not 0 <= self.deviations <= 100:
            raise PolicyError(f"the number of standard deviations of {self.name} must be from 0 to 100, not {self.deviations!r}")
        if self.week not in FORGET:
            raise PolicyError(f"unknown week rule {self.week!r} of {self.name}; known are {', '.join(FORGET)}")
        check_whole(self.name, "the least number of records", self.least, 1)

    def begin(self) -> Records:
        """A learner that has seen no job."""
        return Records(self)


class Records:
    """Remembers end and runtime of the jobs of each key, and of all jobs under the key None."""

    def __init__(self, rule: Mualem01History):
        self.rule = rule
        self.records: dict[tuple[int, ...] | None, list[tuple[int, int]]] = {}

    def observe(self, job: FinishedJob) -> None:
        """Note end and runtime."""
        for key in {key_of(job, self.rule.key), None}:
            self.records.setdefault(key, []).append((job.end, job.runtime))

    def predict(self, job: SubmittedJob) -> Guess | None:
        """From the job's key, else from the whole workload."""
        key = key_of(job, self.rule.key)
        for which, basis in ((key, Basis.OWN), (None, Basis.GENERAL)):
            seconds = self._estimate(which, job.now) if which is not None or basis == Basis.GENERAL else None
            if seconds is not None:
                return Guess(seconds, basis)
        return None

    def _estimate(self, key: tuple[int, ...] | None, now: int) -> float | None:
        records = self.records.get(key, [])
        if self.rule.week == "key" and records and now - records[-1][0] > WEEK:
            records.clear()
        elif self.rule.week == "sliding":
            records[:] = [record for record in records if now - record[0] <= WEEK]
        elif self.rule.week == "global":
            records[:] = [record for record in records if record[0] // WEEK == now // WEEK]
        count = len(records)
        if count < self.rule.least:
            return None
        mean = sum(runtime for _, runtime in records) / count
        variance = max(float(sum(runtime * runtime for _, runtime in records)) / count - mean * mean, 0.0)
        if self.rule.sample:
            variance = variance * count / (count - 1) if count > 1 else 0.0
        return mean + self.rule.deviations * math.sqrt(variance)
