"""The auditor: checks a schedule from any simulator against its workload and its policy's guarantees.

It is independent of the engines and uses only starts and ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from walltime import notebook
from walltime.machine import Placement
from walltime.machine.placing import NEVER
from walltime.policy import FCFS, PAPERS, Dialect, Policy, Selective
from walltime.schedule.kind import Kind
from walltime.schedule.machine_rules import MACHINE_CHECKS, broken_rules, skipped_rules
from walltime.schedule.overrun import effective_times
from walltime.workload import Workload, check_workload

Array = np.ndarray

CHECKS = {
    "unknown_job": "every row is a job of the workload",
    "duplicate_job": "no job stands in the schedule twice",
    "missing_job": "every job of the workload stands in the schedule",
    "submit_differs": "submit is that of the workload",
    "procs_differ": "processors are those of the workload",
    "requested_differs": "the request is that of the workload",
    "start_before_submit": "no job starts before it is submitted",
    "end_differs": "each job ends after exactly its effective runtime",
    "over_limit": "no job runs past its kill limit",
    "capacity": "at no instant are more processors in use than the machine has",
    "fcfs_order": "jobs start in order of arrival",
    "head_waits": "the head of the queue starts as soon as it fits",
    "head_delayed": "the head of the queue starts by the reservation that it had when it became head, and what its policy may add",
    "selected_head_waits": "the head of the queue starts as soon as it fits once its expansion factor exceeds the threshold",
    "reserved_start_missed": "no job starts after its first reservation",
    "no_reserved_start": "every job has a first reservation, not before its submission",
    "kind_wrong": "each start is labelled as what it is",
}
"""All rules of the auditor for a machine that is a number of processors, and what they require."""
OF_POLICIES = (
    "fcfs_order",
    "head_waits",
    "head_delayed",
    "selected_head_waits",
    "reserved_start_missed",
    "no_reserved_start",
    "kind_wrong",
)


@dataclass(frozen=True)
class Violation:
    """A violated rule, with its time and jobs."""

    rule: str
    message: str
    jobs: tuple[int, ...]
    time: int


@dataclass(frozen=True)
class AuditReport:
    """The result of an audit; `violations` holds all violations, the earliest first."""

    violations: tuple[Violation, ...]
    checked: tuple[str, ...]
    skipped: Mapping[str, str]
    """Rules that could not be checked, and why."""
    jobs: int

    @property
    def ok(self) -> bool:
        """Whether all checked rules hold."""
        return not self.violations

    @property
    def first(self) -> Violation | None:
        """The earliest violation."""
        return self.violations[0] if self.violations else None

    @property
    def counts(self) -> dict[str, int]:
        """Number of violations of each rule."""
        return dict(Counter(v.rule for v in self.violations))

    def as_dict(self) -> dict[str, Any]:
        """The report, ready for JSON."""
        first = self.first
        return {
            "ok": self.ok,
            "jobs": self.jobs,
            "violations": self.counts,
            "first": None
            if first is None
            else {"rule": first.rule, "time": first.time, "jobs": list(first.jobs), "message": first.message},
            "checked": list(self.checked),
            "skipped": dict(self.skipped),
        }

    def _repr_html_(self) -> str:
        """A table in a notebook."""
        rows = [
            [rule, f"{count:,}", next(v.message for v in self.violations if v.rule == rule)] for rule, count in sorted(self.counts.items())
        ]
        if rows:
            return notebook.table(str(self), ["rule", "broken", "first"], rows)
        return notebook.facts(f"ok: {self}", [("rules checked", f"{len(self.checked)}"), ("not checked", f"{len(self.skipped)}")])

    def __repr__(self) -> str:
        return f"<AuditReport: {self}>"

    def __str__(self) -> str:
        if self.first is None:
            return f"{self.jobs:,} jobs, {len(self.checked)} rules checked, none broken"
        return f"{self.first.rule} at {self.first.time}: {self.first.message}"


def audit(
    workload: Workload,
    schedule: Mapping[str, Array],
    policy: Policy | None = None,
    *,
    overrun: str = "kill",
    coincident: str | None = None,
    dialect: Dialect | str = PAPERS,
    bounded: bool = True,
    placement: Placement | None = None,
    slots: tuple[Array, Array, Array, Array] | None = None,
) -> AuditReport:
    """Audit the columns of a schedule (as returned by `read_schedule`) against the workload.

    `schedule`: int64 columns, at least `job_id, start, end`, one row per job in any order. Without a `policy` only the
    rules for all schedules are checked. `bounded`: whether the runtimes that the scheduler planned with are upper bounds,
    which predictions are not. `placement`: what the jobs need on a machine of several pools, from `walltime.machine.place`, whose
    workload is then given; a column `given` of the schedule, as in `Schedule.given`, tells which pools they had. The rules of policies
    are for one number of processors, and are not checked then. `slots`: as in `Schedule`, the nodes that jobs had. `dialect`,
    `coincident`: as in `simulate`. Raises PolicyError for an unknown overrun rule or dialect.

    >>> from walltime import Easy, Workload, simulate
    >>> jobs = Workload.from_arrays(submit=[0, 1], runtime=[10, 10], procs=[3, 4], machine_procs=4)
    >>> print(simulate(jobs, Easy()).audit())
    2 jobs, 13 rules checked, none broken
    """
    check_workload(workload)
    return _Audit(workload, schedule, policy, overrun, Dialect.of(dialect, coincident), bounded, placement, slots).report()


class _Audit:
    """The columns side by side, in the workload's order of arrival, and one method per group of rules."""

    def __init__(
        self,
        workload: Workload,
        schedule: Mapping[str, Array],
        policy: Policy | None,
        overrun: str,
        dialect: Dialect,
        bounded: bool,
        placement: Placement | None,
        slots: tuple[Array, Array, Array, Array] | None,
    ):
        self.slots = slots
        self.w = workload
        self.bounded = bounded
        self.placement = placement
        self.file = schedule
        self.policy = None if policy is None else dialect.apply(policy)
        self.coincident = dialect.coincident
        self.overrun = overrun
        self.runtime, self.believed = effective_times(workload, overrun)
        self.skipped: dict[str, str] = {}

    def report(self) -> AuditReport:
        """The report."""
        violations = sorted(self.run(), key=lambda v: v.time)
        rules = (*CHECKS, *MACHINE_CHECKS) if self.placement is not None else CHECKS
        checked = tuple(rule for rule in rules if rule not in self.skipped)
        return AuditReport(tuple(violations), checked, self.skipped, len(self.w))

    def run(self) -> Iterator[Violation]:
        """All violations, unordered."""
        yield from self._rows()
        if not len(self.row):
            return
        yield from self._same_as_workload()
        yield from self._times()
        yield from self._capacity()
        if self.placement is None:
            yield from self._policy()
        else:
            yield from self._machine(self.placement)

    def _rows(self) -> Iterator[Violation]:
        """Match the rows of the schedule to the jobs of the workload; all further checks use the matched ones only."""
        ids = self.file["job_id"]
        by_id = np.argsort(self.w.job_id)
        known = self.w.job_id[by_id]
        place = np.searchsorted(known, ids)
        found = (place < len(known)) & (known[np.minimum(place, len(known) - 1)] == ids) if len(known) else np.zeros(len(ids), bool)
        for row in np.flatnonzero(~found):
            job = int(ids[row])
            message = f"job {job} is in the schedule but not in the workload"
            yield Violation("unknown_job", message, (job,), int(self.file["start"][row]))
        rows = np.flatnonzero(found)
        jobs = by_id[place[rows]]
        order = np.lexsort((rows, jobs))
        rows, jobs = rows[order], jobs[order]
        again = np.zeros(len(jobs), bool)
        again[1:] = jobs[1:] == jobs[:-1]
        for row in rows[again]:
            job = int(ids[row])
            yield Violation("duplicate_job", f"job {job} is in the schedule more than once", (job,), int(self.file["start"][row]))
        self.row, self.job = rows[~again], jobs[~again]
        for index in np.setdiff1d(np.arange(len(self.w)), self.job):
            job = int(self.w.job_id[index])
            yield Violation("missing_job", f"job {job} is not in the schedule", (job,), int(self.w.submit[index]))
        self._in_order_of_arrival()

    def _in_order_of_arrival(self) -> None:
        """The columns that the checks use; with feedback a job is submitted after the end of another."""
        submit = self._eligible()[self.job]
        if self.w.feedback:
            # The order of jobs submitted at the same instant is unknown, as they may have arrived in several passes.
            order = np.lexsort((self.job, self.file["start"][self.row], submit))
            self.row, self.job, self.submit = self.row[order], self.job[order], submit[order]
            _, place, count = np.unique(self.submit, return_inverse=True, return_counts=True)
            self.tied = count[place] > 1
        else:
            self.submit = submit
            self.tied = np.zeros(len(self.job), bool)
        self.ids = self.w.job_id[self.job]
        self.procs = self.w.procs[self.job]
        self.limit = self.w.requested[self.job]
        self.ran = self.runtime[self.job]
        if "limit" in self.file and self.overrun == "kill":
            self.limit = self.file["limit"][self.row]
            self.ran = np.minimum(self.ran, self.limit)
        self.start = self.file["start"][self.row]
        self.expected = self.believed[self.job]
        if "believed" in self.file:  # the estimates that the scheduler had may not be the workload's
            self.expected = self.file["believed"][self.row]
            if self.overrun == "extend":
                self.expected = np.maximum(self.expected, self.ran)
        self.upper_bounds = self.bounded and bool((self.expected >= self.ran).all())
        self.end = self.file["end"][self.row]

    def _eligible(self) -> Array:
        """From when on each job waits: its submission, or the end of the last job that it depends on, if that is later."""
        submit, placement = self.w.submit, self.placement
        end = np.full(len(self.w), np.iinfo(np.int64).max // 2)
        end[self.job] = self.file["end"][self.row]
        if self.w.feedback:
            after, think = self.w.dependencies()
            if placement is not None:
                after[placement.since < NEVER] = -1  # they have been submitted before the beginning
            submit = np.where(after >= 0, np.maximum(end[after] + think, 0), submit)
        if placement is not None and any(placement.after):
            submit = submit.copy()
            for job, others in enumerate(placement.after):
                submit[job] = max([submit[job], *(end[other] for other in others)])
        return submit

    def _same_as_workload(self) -> Iterator[Violation]:
        for rule, name in (("submit_differs", "submit"), ("procs_differ", "procs"), ("requested_differs", "requested")):
            if name not in self.file:
                self.skipped[rule] = f"the schedule has no column {name}"
                continue
            said = self.file[name][self.row]
            true = self.submit if name == "submit" else getattr(self.w, name)[self.job]
            for i in np.flatnonzero(said != true):
                message = f"job {self.ids[i]} has {name} {said[i]} in the schedule and {true[i]} in the workload"
                yield self._violation(rule, message, i)

    def _times(self) -> Iterator[Violation]:
        at_first = np.zeros(len(self.job), bool) if self.placement is None else self.placement.since[self.job] < NEVER
        for i in np.flatnonzero((self.start < self.submit) & ~at_first):
            message = f"job {self.ids[i]} starts at {self.start[i]}, before it is submitted at {self.submit[i]}"
            yield self._violation("start_before_submit", message, i)
        due = self.start + self.ran
        limit = self.start + self.limit
        late = (self.end > limit) if self.overrun == "kill" else np.zeros(len(self.end), bool)
        if self.overrun != "kill":
            self.skipped["over_limit"] = f"jobs are not killed at their limit under {self.overrun}"
        for i in np.flatnonzero(late):
            message = f"job {self.ids[i]} starts at {self.start[i]} and ends at {self.end[i]}, past its limit at {limit[i]}"
            yield self._violation("over_limit", message, i)
        for i in np.flatnonzero((self.end != due) & ~late):
            message = f"job {self.ids[i]} starts at {self.start[i]} and ends at {self.end[i]}; it runs {self.ran[i]} s, so until {due[i]}"
            yield self._violation("end_differs", message, i)

    def _capacity(self) -> Iterator[Violation]:
        """Processors in use as a step function of time; jobs occupy theirs from their start until just before their end."""
        times = np.concatenate([self.start, self.end])
        change = np.concatenate([self.procs, -self.procs])
        change[np.concatenate([self.end <= self.start] * 2)] = 0  # of no or of negative length, which _times reports
        moments, place = np.unique(times, return_inverse=True)
        used = np.cumsum(np.bincount(place, weights=change).astype(np.int64))
        self.moments, self.used = moments, used
        over = used > self.w.machine_procs
        begins = np.flatnonzero(over & ~np.concatenate([[False], over[:-1]]))
        for k in begins:
            moment = int(moments[k])
            running = np.flatnonzero((self.start <= moment) & (moment < self.end))
            latest = running[np.argsort(-self.start[running], kind="stable")]
            jobs = tuple(int(self.ids[i]) for i in latest[:5])
            message = (
                f"{used[k]} processors in use of {self.w.machine_procs}, by {len(running)} jobs; the last to start: "
                f"{', '.join(map(str, jobs))}"
            )
            yield Violation("capacity", message, jobs, moment)

    def _machine(self, placement: Placement) -> Iterator[Violation]:
        """Rules of a machine of several pools; they need all jobs."""
        why = "the rules of policies are for one number of processors"
        self.skipped.update(dict.fromkeys(OF_POLICIES, why))
        if len(self.job) < len(self.w):
            self.skipped.update(dict.fromkeys(MACHINE_CHECKS, "some jobs are not in the schedule"))
            return
        start, end, given = np.empty_like(self.start), np.empty_like(self.end), self.file.get("given")
        start[self.job], end[self.job] = self.start, self.end
        slots, limit = self.slots, None
        if "limit" in self.file:
            limit = np.empty_like(self.start)
            limit[self.job] = self.file["limit"][self.row]
        if given is not None:
            by_job = np.empty_like(given)
            by_job[self.job] = given[self.row]
            given = by_job
        self.skipped.update(skipped_rules(placement, given, slots, limit))
        for rule, message, job, moment in broken_rules(self.w, placement, start, end, given, slots, limit):
            yield Violation(rule, message, (int(self.w.job_id[job]),), moment)

    def _policy(self) -> Iterator[Violation]:
        """Rules of the policy; the queue must be in order of arrival."""
        policy = self.policy
        rules = OF_POLICIES
        if policy is None or policy.order != FCFS or not policy.promises:
            why = "no policy was given" if policy is None else f"{policy.label} does not promise it"
            self.skipped.update(dict.fromkeys(rules, why))
            return
        promises = policy.promises
        self.skipped.update({rule: f"{policy.label} does not promise it" for rule in rules[:-1] if rule not in promises})
        if "fcfs_order" in promises:
            yield from self._order()
        if "head_waits" in promises:
            yield from self._head_waits("head_waits", self._became_head())
        if "selected_head_waits" in promises:
            yield from self._head_waits("selected_head_waits", np.maximum(self._became_head(), self._selected(policy)))
        if "head_delayed" in promises:
            if self.upper_bounds:
                yield from self._head_delayed(policy.tolerance)
            else:
                self.skipped["head_delayed"] = "some jobs run longer than the scheduler believes"
        if "no_reserved_start" in promises:
            yield from self._promises("reserved_start_missed" in promises)
        if "kind" in self.file:
            yield from self._kinds(policy.backfills)
        else:
            self.skipped["kind_wrong"] = "the schedule has no column kind"

    def _order(self) -> Iterator[Violation]:
        latest = np.maximum.accumulate(self.start)
        for i in np.flatnonzero(self.start < latest):
            earlier = int(np.argmax(self.start[:i]))
            message = (
                f"job {self.ids[i]} starts at {self.start[i]}, before job {self.ids[earlier]}, which arrived earlier and "
                f"starts at {self.start[earlier]}"
            )
            yield self._violation("fcfs_order", message, i, earlier)

    def _became_head(self) -> Array:
        """When each job became the head of the queue."""
        ahead = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(self.start)[:-1]])
        return np.maximum(self.submit, ahead)

    def _selected(self, policy: Policy) -> Array:
        """When the expansion factor of each job has just come to exceed the threshold of selective reservations.

        Nothing may happen then, so that no pass is made; it is put off to the next time that something starts or ends.
        """
        assert isinstance(policy, Selective)
        threshold = float(policy.threshold)
        wait = np.maximum(np.floor((threshold - 1) * self.expected).astype(np.int64) - 1, 0)
        for _ in range(3):  # rounding may be off by a second or two
            wait += (wait + self.expected) / self.expected <= threshold
        place = np.searchsorted(self.moments, self.submit + wait, side="left")
        late = np.where(wait > 0, self.moments[np.minimum(place, len(self.moments) - 1)], self.submit)
        return np.where(place < len(self.moments), late, self.start)

    def _head_waits(self, rule: str, head_from: Array) -> Iterator[Violation]:
        for i in np.flatnonzero((self.start > head_from) & ~self.tied):
            # Utilization is constant between these times; the last interval may extend beyond the start of the head.
            first = int(np.searchsorted(self.moments, head_from[i], side="right")) - 1
            last = int(np.searchsorted(self.moments, self.start[i], side="left"))
            free = self.w.machine_procs - self.used[max(first, 0) : last]
            fits = np.flatnonzero(free >= self.procs[i])
            if len(fits):
                moment = max(int(self.moments[max(first, 0) + fits[0]]), int(head_from[i]))
                message = (
                    f"job {self.ids[i]} is the head of the queue and needs {self.procs[i]} processors, {free[fits[0]]} are free, "
                    f"but it starts only at {self.start[i]}"
                )
                yield Violation(rule, message, (int(self.ids[i]),), moment)

    def _head_delayed(self, tolerance: float) -> Iterator[Violation]:
        """mualem01, section 2.2, Property 2: the head waits only for jobs that ran when it became head, not for later ones.

        With a tolerance it may wait so many times longer.
        """
        head_from = self._became_head()
        heads = np.flatnonzero((self.start > head_from) & ~self.tied)
        heads = heads[np.argsort(head_from[heads], kind="stable")]
        by_start = np.argsort(self.start, kind="stable")
        empty_at = set(self.start[self.start == self.end].tolist())
        running: set[int] = set()
        entered = 0
        for i in heads:
            moment = int(head_from[i])
            while entered < len(by_start) and self.start[by_start[entered]] <= moment:
                running.add(int(by_start[entered]))
                entered += 1
            running = {k for k in running if self.end[k] > moment}
            jobs = np.fromiter(running, np.int64, len(running))
            if self.coincident == "batch" and moment not in empty_at:
                # Jobs backfilled at this instant started after the reservation was made. With one pass per event, or a
                # second pass because of a job with runtime 0, that is not certain.
                jobs = jobs[(self.start[jobs] < moment) | (jobs < i)]
            ends = self.start[jobs] + self.expected[jobs]
            order = np.argsort(ends, kind="stable")
            free = self.w.machine_procs - int(self.procs[jobs].sum()) + np.cumsum(self.procs[jobs[order]])
            enough = np.flatnonzero(free >= self.procs[i])
            reservation = moment if not len(enough) else max(moment, int(ends[order[enough[0]]]))
            reservation += int(np.floor(tolerance * (reservation - int(self.submit[i]))))
            if self.start[i] > reservation:
                message = (
                    f"job {self.ids[i]} became the head of the queue at {moment} with a reservation at {reservation}, but starts at "
                    f"{self.start[i]}"
                )
                yield Violation("head_delayed", message, (int(self.ids[i]),), reservation)

    def _promises(self, kept: bool) -> Iterator[Violation]:
        if "reserved_start" not in self.file:
            self.skipped["reserved_start_missed"] = self.skipped["no_reserved_start"] = "the schedule has no column reserved_start"
            return
        reserved_start = self.file["reserved_start"][self.row]
        for i in np.flatnonzero(reserved_start < self.submit):
            message = f"job {self.ids[i]}, submitted at {self.submit[i]}, has the first reservation {reserved_start[i]}"
            yield self._violation("no_reserved_start", message, i)
        if not kept:
            return
        if not self.upper_bounds:
            self.skipped["reserved_start_missed"] = "some jobs run longer than the scheduler believes"
            return
        for i in np.flatnonzero((self.start > reserved_start) & (reserved_start >= self.submit)):
            message = f"job {self.ids[i]} had a reserved start at {reserved_start[i]}, but starts at {self.start[i]}"
            yield self._violation("reserved_start_missed", message, i)

    def _kinds(self, backfills: bool) -> Iterator[Violation]:
        kind = self.file["kind"][self.row]
        latest = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(self.start)[:-1]])
        right = np.where(self.start == self.submit, Kind.IMMEDIATE, Kind.RESERVED)
        overtakes = latest > self.start
        wrong = np.where(overtakes, kind != Kind.BACKFILLED, kind != right)
        # A job ahead that starts in the same second may have done so in a later pass of that second.
        wrong &= ~((latest == self.start) & (kind == Kind.BACKFILLED) & backfills)
        wrong &= ~(self.tied & (kind == Kind.BACKFILLED) & backfills)
        names = {int(k): k.name.lower() for k in Kind}
        for i in np.flatnonzero(wrong):
            said = names.get(int(kind[i]), str(kind[i]))
            truth = "backfilled" if overtakes[i] else names[int(right[i])]
            yield self._violation("kind_wrong", f"the start of job {self.ids[i]} is labelled {said}; it is {truth}", i)

    def _violation(self, rule: str, message: str, *places: Any) -> Violation:
        return Violation(rule, message, tuple(int(self.ids[i]) for i in places), int(self.start[places[0]]))
