"""Jobs that are left out before a simulation, counted by rule, with their shares of the jobs and of the work."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from walltime.wording import human_percent, sanitize

Array = np.ndarray
MUCH = 0.05
"""Results mention the jobs left out if these have more than this share of the work or, if their work is unknown, of the jobs."""
UNKNOWN_WORK = "unknown share"
STEP = "step"
NOT_JOBS = (STEP, "other_event")
"""The rules for records of steps, and of events other than ends: these are not jobs, so they do not count as jobs left out."""
EARLIER_RUN = "earlier_run"
"""The rule for earlier runs of jobs whose last runs are kept, so that no job is missing."""
TOO_WIDE = {"too_wide": "The job needs more processors than the machine has."}
"""The rule for jobs that are wider than their machine, and its meaning."""


@dataclass(frozen=True)
class Drop:
    """Jobs or records that a rule leaves out at one stage: reading, a filter, or placing on a machine.

    `reason`: a sentence on one such job. `work`: their processor-seconds, NaN if unknown. `of_jobs`, `of_work`: the totals of all jobs
    before this stage.
    """

    rule: str
    reason: str
    jobs: int
    work: float
    of_jobs: int
    of_work: float

    @property
    def share_of_jobs(self) -> float:
        """Return the share of all jobs that the rule leaves out, from 0 to 1."""
        return self.jobs / max(self.of_jobs, 1)

    @property
    def share_of_work(self) -> float:
        """Return the share of all work that the rule leaves out, from 0 to 1; NaN if unknown."""
        return self.work / self.of_work if self.of_work > 0 else 0.0 if self.work == 0 else math.nan

    @property
    def words(self) -> str:
        """Return the rule in words, or the filter as written."""
        return sanitize(self.rule.replace("_", " ") if self.rule.isidentifier() else self.rule)

    def __str__(self) -> str:
        work = UNKNOWN_WORK if math.isnan(self.share_of_work) else human_percent(100 * self.share_of_work)
        jobs = f"{self.jobs:,} of {self.of_jobs:,} jobs ({human_percent(100 * self.share_of_jobs)}, {work} of the work)"
        return f"Left out: {jobs}: {self.words}"

    def as_dict(self) -> dict[str, Any]:
        """Return the counts and shares for JSON; None for unknown ones."""
        work, share = (None if math.isnan(value) else value for value in (self.work, self.share_of_work))
        counts = {"jobs": self.jobs, "of_jobs": self.of_jobs, "share_of_jobs": self.share_of_jobs}
        return {"rule": self.rule, "reason": self.reason, **counts, "core_seconds": work, "share_of_work": share}


def drop_jobs(
    masks: Mapping[str, Array], reasons: Mapping[str, str], work: Array, total: tuple[int, float] | None = None
) -> tuple[Array, list[Drop]]:
    """Return a mask (bool) of the jobs that stay, and the drops; a job counts under the first rule whose mask includes it.

    `work`: processor-seconds of each job, float64, NaN if unknown. `total`: number and work of all jobs or records at this stage, by
    default of the given jobs.
    """
    kept, drops = np.ones(len(work), bool), []
    total = total or (len(work), float(np.nansum(work)))
    for rule, mask in masks.items():
        mine = mask & kept
        if jobs := int(np.count_nonzero(mine)):
            drops.append(Drop(rule, reasons[rule], jobs, float(work[mine].sum()), *total))
            kept &= ~mine
    return kept, drops


def counts_of(drops: Iterable[Drop]) -> dict[str, int]:
    """Return the number of jobs that each rule left out."""
    counts: dict[str, int] = {}
    for drop in drops:
        counts[drop.rule] = counts.get(drop.rule, 0) + drop.jobs
    return counts


def jobs_only(drops: Iterable[Drop]) -> list[Drop]:
    """Return the drops of jobs, without those in `NOT_JOBS`."""
    return [drop for drop in drops if drop.rule not in NOT_JOBS]


def shares_of(drops: Iterable[Drop]) -> tuple[float, float]:
    """Return the shares of the jobs and of the known work that all drops together leave out, from 0 to 1.

    >>> shares_of([Drop("a", "", 1, 5.0, 2, 10.0), Drop("b", "", 1, 5.0, 2, 10.0), Drop("c", "", 1, math.nan, 2, 10.0)])
    (1.0, 1.0)
    """
    stages: dict[tuple[int, float], list[Drop]] = {}
    for drop in jobs_only(drops):
        stages.setdefault((drop.of_jobs, drop.of_work), []).append(drop)
    left = np.ones(2)
    for stage in stages.values():
        known = (0.0 if math.isnan(drop.share_of_work) else drop.share_of_work for drop in stage)
        left *= 1 - np.minimum([sum(drop.share_of_jobs for drop in stage), sum(known)], 1)
    jobs, work = (1 - left).tolist()
    return jobs, work


def warning_of(drops: Iterable[Drop]) -> list[str]:
    """Return a sentence if left-out jobs have more than 5 % of the work, or those of unknown work are more than 5 % of the jobs.

    Earlier runs of jobs that stay do not count.

    >>> warning_of([Drop("too_wide", "The job needs more processors than the machine has.", 1, 50.0, 10, 100.0)])
    ['10 % of the jobs with 50 % of the work are left out, so the results cover only the others. Left out: too wide.']
    """
    listed = [drop for drop in jobs_only(drops) if drop.share_of_work != 0 and drop.rule != EARLIER_RUN]
    jobs, work = shares_of(listed)
    unknown = shares_of(drop for drop in listed if math.isnan(drop.share_of_work))[0]
    if max(work, unknown) <= MUCH + 1e-9:  # sums of shares are rounded
        return []
    known = f"{'at least ' if unknown else ''}{human_percent(100 * work)}" if work else f"an {UNKNOWN_WORK}"
    return [
        f"{human_percent(100 * jobs)} of the jobs with {known} of the work are left out, so the results cover only the others. "
        f"Left out: {', '.join(dict.fromkeys(drop.words for drop in listed))}."
    ]


def left_out(drops: Iterable[Drop]) -> dict[str, Any]:
    """Return the shares and the rules for JSON."""
    listed = jobs_only(drops)
    jobs, work = shares_of(listed)
    return {"share_of_jobs": jobs, "share_of_work": work, "rules": [drop.as_dict() for drop in listed]}
