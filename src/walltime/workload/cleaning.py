"""Cleaning of logs: filters that remove jobs, such as those published by the archive, and the detection of flurries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.wording import counted
from walltime.workload import Workload
from walltime.workload.filters import select

Array = np.ndarray
WEEK = 7 * 86_400
TIMES, SHARE = 2.0, 0.5
"""A flurry has more than this many times the jobs of a median week, and more than this share of its week's jobs.

The Parallel Workloads Archive describes flurries without thresholds; these are an interpretation (docs/background/dialects.md).
"""

PUBLISHED: Mapping[str, tuple[str, ...]] = {
    "SDSC-SP2-1998": (
        "user=21 and 13716<job<16208",
        "user=374 and 14968<job<28553",
        "user=197 and 31766<job<33203",
        "user=328 and 66552<job<68107",
        "job<=10",
    ),
    "OSC-Clust-2000": ("user=174",),
    "KTH-SP2-1996": ("job<=14",),
    "LANL-CM5-1994": ("user=50 and 24439<=job<=64542", "user=31 and 64587<=job<=115040", "user=38 and 178585<=job<=192710"),
}
"""The filters of the archive's cleaned logs, with the job numbers of the uncleaned logs. Source: the Parallel Workloads Archive, and the
headers of its cleaned logs.
"""


@dataclass(frozen=True)
class Flurry:
    """A burst of activity by one user: whole weeks in which the user submitted most of the jobs."""

    user: int
    first_job: int
    last_job: int
    begin: int
    """Submission of the first job, s."""
    end: int
    """Submission of the last job, s."""
    jobs: int
    share: float
    """Share of the jobs that were submitted in these weeks."""

    @property
    def filter(self) -> str:
        """Return a filter that selects the jobs of this flurry."""
        return f"user={self.user} and {self.begin}<=submit<={self.end}"


@dataclass(frozen=True)
class CleaningReport:
    """The result of cleaning: the number of jobs removed by each filter, and the workload before and after."""

    removed: Mapping[str, int]
    before: Workload
    after: Workload

    def rows(self) -> list[tuple[str, float, float]]:
        """Return the properties in `FACTS` of the workload before and after."""
        return [(name, measure(self.before), measure(self.after)) for name, measure in FACTS.items()]


def clean(workload: Workload, filters: Sequence[str]) -> CleaningReport:
    """Remove the jobs that any of the filters selects; the remaining jobs keep their numbers.

    `origin.dropped` counts each job under the first filter that selects it; there, and in the report, a filter of several lines is on
    one line. Raises PolicyError for invalid filters, WorkloadError if no job would remain.

    >>> jobs = Workload.from_arrays(submit=[0, 5, 9], runtime=[60, 7200, 10], procs=[1, 2, 4], machine_procs=4)
    >>> clean(jobs, ["job<=1", "procs=4"]).after.job_id.tolist()
    [2]
    """
    masks: dict[str, Array] = {}
    removed: dict[str, int] = {}
    keep = np.ones(len(workload), bool)
    for text in dict.fromkeys(" ".join(given.split()) for given in filters):
        masks[f"filter {text}"] = picked = select(workload, text) & keep
        removed[text] = int(picked.sum())
        keep &= ~picked
    if not keep.any():
        raise WorkloadError(f"the filters remove all {counted(len(workload), 'job')} of {workload.origin.name}; use others", "no_jobs_left")
    step = "cleaned: " + "; ".join(f"{counted(count, 'job')} removed by {text}" for text, count in removed.items())
    return CleaningReport(removed, workload, workload.without(masks, dict.fromkeys(masks, "The filter selects the job."), step))


def published_filters(name: str) -> tuple[str, ...]:
    """Return the archive's filters for a log such as `SDSC-SP2-1998-4`; raises PolicyError, which lists the valid names."""
    for log, filters in PUBLISHED.items():
        if name.lower().startswith(log.lower()):
            return filters
    raise PolicyError(f"no published filters for {name!r}; logs with filters: {', '.join(PUBLISHED)}", "unknown_log")


def find_flurries(workload: Workload, *, times: float = TIMES, share: float = SHARE) -> list[Flurry]:
    """Return flurries, by time: weeks in which one user submits over `times` the jobs of a median week, and over `share` of the week's.

    Weeks are counted from the first submission; consecutive ones are merged. Raises WorkloadError for a log without users.

    Source: the Parallel Workloads Archive describes flurries; the thresholds are an interpretation.
    """
    if "user" not in workload.columns:
        raise WorkloadError(f"{workload.origin.name} does not record users, so it cannot show flurries; use another log", "missing_column")
    weekly, pairs, index, count = _weekly_counts(workload)
    hot = np.flatnonzero((pairs[0] >= 0) & (count > times * np.median(weekly[weekly > 0])) & (count > share * weekly[pairs[1]]))
    continues = (np.diff(pairs[0][hot]) == 0) & (np.diff(pairs[1][hot]) == 1)  # the next week of the same user
    flurries = []
    for group in np.split(hot, np.flatnonzero(~continues) + 1) if len(hot) else ():
        mine = np.flatnonzero(np.isin(index, group))
        flurries.append(
            Flurry(
                user=int(pairs[0][group[0]]),
                first_job=int(workload.job_id[mine].min()),
                last_job=int(workload.job_id[mine].max()),
                begin=int(workload.submit[mine[0]]),
                end=int(workload.submit[mine[-1]]),
                jobs=len(mine),
                share=len(mine) / float(weekly[pairs[1][group]].sum()),
            )
        )
    return sorted(flurries, key=lambda flurry: flurry.begin)


def _weekly_counts(workload: Workload) -> tuple[Array, Array, Array, Array]:
    """Return the jobs in each week; pairs of a user and a week; the index of each job's pair; the jobs of each pair. All are int64."""
    week = (workload.submit - workload.submit[0]) // WEEK
    pairs, index, count = np.unique(np.stack([workload.columns["user"], week]), axis=1, return_inverse=True, return_counts=True)
    return np.bincount(week), pairs, index.ravel(), count


def _largest_weekly_share(workload: Workload) -> float:
    if "user" not in workload.columns or not (workload.columns["user"] >= 0).any():
        return float("nan")
    weekly, pairs, _, count = _weekly_counts(workload)
    return float(count[pairs[0] >= 0].max() / np.median(weekly[weekly > 0]))


FACTS = {
    "jobs": len,
    "users": lambda w: len(np.unique(w.columns["user"])) if "user" in w.columns else float("nan"),
    "offered load": lambda w: w.offered_load,
    "mean runtime (s)": lambda w: float(w.runtime.mean()),
    "mean processors": lambda w: float(w.procs.mean()),
    "busiest week of one user, in median weeks": _largest_weekly_share,
}
"""The properties of a workload that a report of cleaning compares."""
