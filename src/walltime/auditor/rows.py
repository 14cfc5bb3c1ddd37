"""The rows of a schedule matched with the jobs of its workload, and the rules that hold under every policy."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from walltime.auditor.report import Violation
from walltime.machine import Placement
from walltime.machine.placing import NEVER
from walltime.wording import counted
from walltime.workload import Array, Workload


def used_at_starts(start: Array, end: Array, amounts: Array) -> Array:
    """Return the amounts in use when each job starts, int64, shape (jobs, kinds of amounts).

    At each start, jobs that start at this instant count, and jobs that end at it do not. A job with runtime 0 must fit only next to the
    jobs that run both before and after this instant, because other jobs that start now may start after it.
    """
    ran, used = end > start, np.zeros_like(amounts)
    for kind in range(amounts.shape[1]):
        by_start, by_end = np.argsort(start[ran], kind="stable"), np.argsort(end[ran], kind="stable")
        come = np.concatenate([[0], np.cumsum(amounts[ran, kind][by_start])])
        gone = np.concatenate([[0], np.cumsum(amounts[ran, kind][by_end])])
        begun = np.where(
            ran, np.searchsorted(start[ran][by_start], start, side="right"), np.searchsorted(start[ran][by_start], start, side="left")
        )
        used[:, kind] = come[begun] - gone[np.searchsorted(end[ran][by_end], start, side="right")]
    used[~ran] += amounts[~ran]
    return used


class Rows:
    """The jobs that are in both the schedule and the workload, by order of arrival; times int64 s.

    `job`: indices into the workload. `submit`: computed from the schedule if there is feedback. `ran`: effective runtime. `estimate`: the
    planned runtime without predictions. `unmatched`: violations by rows and jobs without a counterpart. `lost`: job, start and end of the
    runs that were preempted before the last one; `cut`: the jobs whose last run was preempted.
    """

    def __init__(self, workload: Workload, schedule: Mapping[str, Array], runtime: Array, estimate: Array, placement: Placement | None):
        self.workload, self.file, self.placement = workload, schedule, placement
        self.row: Array
        self.job: Array
        self.unmatched = tuple(self._match())
        self.submit = self._eligible()[self.job]
        if workload.feedback:
            order = np.lexsort((self.job, schedule["start"][self.row], self.submit))
            self.row, self.job, self.submit = self.row[order], self.job[order], self.submit[order]
        self.ids = workload.job_id[self.job]
        self.procs = workload.procs[self.job]
        self.ran, self.estimate = runtime[self.job], estimate[self.job]
        self.start, self.end = schedule["start"][self.row], schedule["end"][self.row]
        cut = np.zeros(len(self.job), bool) if "interrupted" not in schedule else schedule["interrupted"][self.row] > 0
        self.cut = frozenset(self.job[cut].tolist())
        self.ran = np.where(cut, np.minimum(np.maximum(self.end - self.start, 0), self.ran), self.ran)

    def column(self, name: str) -> Array | None:
        """Return a column of the schedule, None if it is missing."""
        return self.file[name][self.row] if name in self.file else None

    def _match(self) -> Iterator[Violation]:
        """Match rows of the schedule with jobs of the workload; all other checks use matched jobs only."""
        w, ids = self.workload, self.file["job_id"]
        place = w.places_of(ids)
        for row in np.flatnonzero(place < 0):
            job = int(ids[row])
            message = f"job {job} is in the schedule but not in the workload"
            yield Violation("unknown_job", message, (job,), int(self.file["start"][row]))
        rows = np.flatnonzero(place >= 0)
        jobs = place[rows]
        order = np.lexsort((rows, self.file["start"][rows], jobs)) if "interrupted" in self.file else np.lexsort((rows, jobs))
        rows, jobs = rows[order], jobs[order]
        earlier = np.zeros(len(jobs), bool)
        if "interrupted" in self.file:
            earlier[:-1] = (jobs[1:] == jobs[:-1]) & (self.file["interrupted"][rows[:-1]] > 0)
        runs = (jobs[earlier], *(self.file[name][rows[earlier]] for name in ("start", "end")))
        self.lost = list(zip(*(values.tolist() for values in runs), strict=True))
        rows, jobs = rows[~earlier], jobs[~earlier]
        again = np.zeros(len(jobs), bool)
        again[1:] = jobs[1:] == jobs[:-1]
        for row in rows[again]:
            job = int(ids[row])
            yield Violation("duplicate_job", f"job {job} is in the schedule more than once", (job,), int(self.file["start"][row]))
        self.row, self.job = rows[~again], jobs[~again]
        for index in np.setdiff1d(np.arange(len(w)), self.job):
            job = int(w.job_id[index])
            yield Violation("missing_job", f"job {job} is not in the schedule", (job,), int(w.submit[index]))

    def _eligible(self) -> Array:
        """Return when each job begins to wait, int64 s: at its submission or, if later, at the last end of a job on which it depends."""
        w, placement = self.workload, self.placement
        submit = w.submit
        end = np.full(len(w), np.iinfo(np.int64).max // 2)
        end[self.job] = self.file["end"][self.row]
        if w.feedback:
            after, think = w.dependencies()
            if placement is not None:
                after[placement.since < NEVER] = -1  # submitted before the beginning
            submit = np.where(after >= 0, np.maximum(end[after] + think, 0), submit)
        if placement is not None and placement.after.items.size:
            submit = submit.copy()
            for job, others in enumerate(placement.after):
                submit[job] = max([submit[job], *(end[other] for other in others)])
        return submit

    # ------------------------------------------------- rules for every schedule

    def differing(self, rule: str, name: str, true: Array) -> Iterator[Violation]:
        """Yield the jobs for which the schedule's column `name` differs from the true values."""
        stated = self.file[name][self.row]
        for i in np.flatnonzero(stated != true):
            yield self._violation(rule, f"job {self.ids[i]} has {name} {stated[i]} in the schedule and {true[i]} in the workload", i)

    def wrong_times(self, limit: Array | None) -> Iterator[Violation]:
        """Yield starts before submission, and ends that do not follow from start and runtime; `limit`: kill limits, None without limits."""
        at_first = np.zeros(len(self.job), bool) if self.placement is None else self.placement.since[self.job] < NEVER
        for i in np.flatnonzero((self.start < self.submit) & ~at_first):
            message = f"job {self.ids[i]} starts at {self.start[i]}, before it is submitted at {self.submit[i]}"
            yield self._violation("start_before_submit", message, i)
        due = self.start + self.ran
        late = np.zeros(len(self.end), bool) if limit is None else self.end > self.start + limit
        for i in np.flatnonzero(late):
            assert limit is not None
            until = self.start[i] + limit[i]
            message = f"job {self.ids[i]} starts at {self.start[i]} and ends at {self.end[i]}, past its limit at {until}"
            yield self._violation("over_limit", message, i)
        for i in np.flatnonzero((self.end != due) & ~late):
            message = f"job {self.ids[i]} starts at {self.start[i]} and ends at {self.end[i]}, but runs {self.ran[i]} s, until {due[i]}"
            yield self._violation("end_differs", message, i)

    def over_capacity(self) -> Iterator[Violation]:
        """Yield the instants at which more processors are in use than the machine has; jobs use processors in [start, end).

        A job with runtime 0 needs its processors in addition to the jobs that run before and after the instant: jobs that end then have
        ended, and jobs that start then may start after it.
        """
        if not len(self.job):
            return
        runs = np.array(self.lost, np.int64).reshape(len(self.lost), 3)
        start, end = np.concatenate([self.start, runs[:, 1]]), np.concatenate([self.end, runs[:, 2]])
        procs = np.concatenate([self.procs, self.workload.procs[runs[:, 0]]])
        lasts = end > start  # wrong_times reports negative lengths
        times = np.concatenate([start, end])
        change = np.where(np.concatenate([lasts] * 2), np.concatenate([procs, -procs]), 0)
        moments, place = np.unique(times, return_inverse=True)
        used = np.cumsum(np.bincount(place, weights=change).astype(np.int64))
        over = used > self.workload.machine_procs
        for k in np.flatnonzero(over & ~np.concatenate([[False], over[:-1]])):
            moment = int(moments[k])
            running = np.flatnonzero((self.start <= moment) & (moment < self.end))
            latest = running[np.argsort(-self.start[running], kind="stable")]
            jobs = tuple(int(self.ids[i]) for i in latest[:5])
            message = (
                f"{used[k]:,} of {counted(self.workload.machine_procs, 'processor')} in use, by {counted(len(running), 'job')}; the last "
                f"to start: {', '.join(map(str, jobs))}"
            )
            yield Violation("capacity", message, jobs, moment)
        at_starts = used_at_starts(self.start, self.end, self.procs[:, None])[:, 0]
        for i in np.flatnonzero((self.end == self.start) & (at_starts > self.workload.machine_procs)):
            free, needs = self.workload.machine_procs - at_starts[i] + self.procs[i], counted(int(self.procs[i]), "processor")
            message = f"job {self.ids[i]} runs for 0 s, but needs {needs} at {self.start[i]}, when {free} are free"
            yield self._violation("capacity", message, i)

    def _violation(self, rule: str, message: str, place: Any) -> Violation:
        return Violation(rule, message, (int(self.ids[place]),), int(self.start[place]))
