"""The auditor: checks a schedule from any simulator against its workload and what its policy promises.

It uses no engine: only the columns of the schedule, the workload, and the declarations of policies, orders and predictors. Rules for
every schedule are in rows.py, those of policies in decisions.py, those of machines of several pools in pools.py; the last two load the
compiler, so they are imported where they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from walltime.auditor.report import ALWAYS, OF_POLICIES, AuditReport, Violation
from walltime.auditor.rows import Rows
from walltime.errors import PolicyError
from walltime.estimates import effective_times
from walltime.machine import NO_OVERHEAD, Placement
from walltime.policy import Dialect, Policy
from walltime.predictors import Prediction
from walltime.workload import Workload, check_workload

Array = np.ndarray


def audit(
    workload: Workload,
    schedule: Mapping[str, Array],
    policy: Policy | None = None,
    *,
    overrun: str = "kill",
    coincident: str | None = None,
    dialect: Dialect | str = "papers",
    prediction: Prediction | str | None = None,
    own_beliefs: bool = False,
    placement: Placement | None = None,
    slots: Sequence[Array] | None = None,
    progress: Callable[[int], None] | None = None,
) -> AuditReport:
    """Audit the columns of a schedule (as returned by `read_schedule`) against the workload.

    `schedule`: int64 columns, at least `job_id, start, end`, one row per job in any order. Without a `policy` only the
    rules for all schedules are checked. `overrun, dialect, coincident`: as in `simulate`. `prediction`: as there; the predictor is told
    what happens in the schedule. What the scheduler believed follows from the workload and the prediction; with `own_beliefs` the
    schedule's column `believed` is taken instead, the report says so, and the column is held against what it should be. `placement`: what
    the jobs need on a machine of several pools, from `walltime.machine.place`, whose workload is then given; a column `given` of the
    schedule, as in `Schedule.given`, tells which pools they had. `slots`: as in `Schedule`, the nodes that jobs had. `progress` is called
    from time to time with the number of jobs that have been checked. Raises PolicyError for an unknown overrun rule, dialect or
    prediction, and for own beliefs on a machine of several pools.

    >>> from walltime import Easy, Workload, simulate
    >>> jobs = Workload.from_arrays(submit=[0, 1], runtime=[10, 10], procs=[3, 4], machine_procs=4)
    >>> print(simulate(jobs, Easy()).audit())
    2 jobs, 16 rules checked, none broken
    """
    check_workload(workload)
    chosen = Prediction.of(prediction)
    if own_beliefs and placement is not None:
        raise PolicyError(
            "a schedule is judged by its own beliefs on a machine that is a number of processors only; leave them out",
            "unsupported_machine",
        )
    rules = Dialect.of(dialect, coincident)
    return _Audit(workload, schedule, policy, overrun, rules, chosen, own_beliefs, placement, slots).report(progress)


@dataclass
class _Audit:
    """One audit: what is checked, what cannot be, and what was assumed."""

    w: Workload
    file: Mapping[str, Array]
    policy: Policy | None
    overrun: str
    dialect: Dialect
    prediction: Prediction | None
    own_beliefs: bool
    placement: Placement | None
    slots: Sequence[Array] | None

    def __post_init__(self) -> None:
        self.policy = None if self.policy is None else self.dialect.apply(self.policy)
        self.skipped: dict[str, str] = {}
        self.assumed: list[str] = []
        self.rows = Rows(self.w, self.file, *effective_times(self.w, self.overrun), self.placement)
        self.own_beliefs = self.own_beliefs and "believed" in self.file
        self.checked = list(ALWAYS)

    def report(self, progress: Callable[[int], None] | None) -> AuditReport:
        """The report."""
        violations = sorted(self._run(progress), key=lambda v: v.time)
        checked = tuple(rule for rule in self.checked if rule not in self.skipped)
        return AuditReport(tuple(violations), checked, self.skipped, len(self.w), tuple(self.assumed))

    def _run(self, progress: Callable[[int], None] | None) -> Iterator[Violation]:
        """All violations, unordered."""
        rows = self.rows
        yield from rows.unmatched
        yield from self._same_as_workload()
        yield from self._times()
        yield from rows.over_capacity()
        if self.placement is not None:
            yield from self._machine(self.placement)
        else:
            yield from self._policy(progress)

    def _same_as_workload(self) -> Iterator[Violation]:
        for rule, name in (("submit_differs", "submit"), ("procs_differ", "procs"), ("requested_differs", "requested")):
            if name not in self.file:
                self.skipped[rule] = f"the schedule has no column {name}"
                continue
            true = self.rows.submit if name == "submit" else getattr(self.w, name)[self.rows.job]
            yield from self.rows.differing(rule, name, true)
        if "believed" not in self.file:
            self.skipped["believed_differs"] = "the schedule has no column believed"
        elif not self.own_beliefs:
            yield from self.rows.differing("believed_differs", "believed", self.w.believed[self.rows.job])

    def _times(self) -> Iterator[Violation]:
        rows = self.rows
        limit = self.w.requested[rows.job]
        if self.overrun != "kill":
            self.skipped["over_limit"] = f"jobs are not killed at their limit under {self.overrun}"
        elif self.placement is not None:
            from walltime.auditor.pools import believable_limits

            lasted = rows.end - rows.start
            limit = believable_limits(self.w, self.policy, rows.job, limit, self.file.get("limit"), rows.row, lasted)
            rows.ran = np.minimum(rows.ran, limit)
        yield from rows.wrong_times(limit if self.overrun == "kill" else None)

    def _machine(self, placement: Placement) -> Iterator[Violation]:
        """Rules of a machine of several pools; they need all jobs."""
        from walltime.auditor.pools import DECISIONS, MACHINE_CHECKS, broken_rules, skipped_rules
        from walltime.auditor.walk import MachineSchedule
        from walltime.auditor.windows import SiteWindows
        from walltime.machine.overheads import decision_times, release_times, scheduler_view

        self.checked += [*dict.fromkeys([*OF_POLICIES, *MACHINE_CHECKS])]
        why = "on a machine of several pools what is decided is checked, not its labels"
        self.skipped.update(dict.fromkeys([rule for rule in OF_POLICIES if rule not in DECISIONS], why))
        rows = self.rows
        if len(rows.job) < len(self.w):
            self.skipped.update(dict.fromkeys((*MACHINE_CHECKS, *DECISIONS), "some jobs are not in the schedule"))
            return
        start, end = self._by_job(rows.start), self._by_job(rows.end)
        columns = {name: self._by_job(self.file[name][rows.row]) for name in ("given", "limit") if name in self.file}
        own = placement.machine.overhead
        jobs, seen = scheduler_view(self.w, placement)
        if own != NO_OVERHEAD:
            self.assumed.append(f"times of decisions are {own.start} s before starts, and processors are free {own.end} s after ends")
            start, end = decision_times(start, placement), release_times(own, end)
        windows = SiteWindows(self.w, placement, effective_times(jobs, self.overrun)[1], int(start.max()))
        schedule = MachineSchedule(jobs, seen, start, end, windows, self.overrun, slots=self.slots, **columns)
        self.skipped.update(skipped_rules(schedule, self.policy))
        for rule, message, job, moment in broken_rules(schedule, self.policy, self.prediction):
            yield Violation(rule, message, (int(self.w.job_id[job]),), moment)

    def _by_job(self, values: Array) -> Array:
        """A column in the workload's order."""
        ordered = np.empty_like(values)
        ordered[self.rows.job] = values
        return ordered

    def _policy(self, progress: Callable[[int], None] | None) -> Iterator[Violation]:
        """What the policy promises: what it starts at each event, and the labels of that."""
        if self.policy is None:
            self.skipped.update(dict.fromkeys(OF_POLICIES, "no policy was given"))
            return
        from walltime.auditor.decisions import Decisions, RecordedJobs
        from walltime.auditor.policy_numbers import lowered

        self.checked += self.policy.promises
        rows = self.rows
        recorded = RecordedJobs(
            job=rows.job,
            submit=rows.submit,
            start=rows.start,
            end=rows.end,
            runtime=rows.ran,
            estimate=self._estimate(),
            kind=rows.column("kind"),
            reserved_start=rows.column("reserved_start"),
        )
        rules = lowered(self.policy, self.dialect, self.prediction, self.w.machine_procs, recorded.reserved_start is not None)
        if rules is None:
            why = f"{self.policy.label} decides in ways of its own, which only its author knows"
            self.skipped.update(dict.fromkeys(OF_POLICIES, why))
            return
        along = Decisions(self.w, recorded, self.policy, self.dialect, self.prediction, rules)
        for rule, column in (("kind_wrong", "kind"), ("reserved_start_differs", "reserved_start")):
            if rule in self.policy.promises and column not in self.file:
                self.skipped[rule] = f"the schedule has no column {column}"
        yield from along.violations(progress)
        if self.own_beliefs:
            true = along.predicted if self.prediction is not None else self.w.believed
            yield from self.rows.differing("believed_differs", "believed", true[rows.job])

    def _estimate(self) -> Array:
        """What the scheduler believes without predictions, or what the schedule says of it."""
        rows = self.rows
        if not self.own_beliefs:
            return rows.estimate
        self.assumed.append("judged by the schedule's own beliefs")
        believed = self.file["believed"][rows.row]
        return np.maximum(believed, rows.ran) if self.overrun == "extend" else believed
