"""The auditor: checks a schedule from any simulator against its workload and the guarantees of its policy.

It reads the columns of the schedule, the workload, and the declarations of policies, orders and predictors. It uses no engine, except that
slurm_decisions.py, oar_decisions.py and first_fit_decisions.py step the reference engine. rows.py has the rules for all schedules,
decisions.py the rules of policies, and pools.py the rules for machines with several pools. The last two load the compiler, so they are
imported where needed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from walltime.auditor.report import ALWAYS, POLICY_RULES, AuditReport, Violation
from walltime.auditor.rows import Rows
from walltime.errors import PolicyError, WorkloadError
from walltime.estimates import effective_times
from walltime.machine import NO_OVERHEAD, Placement
from walltime.policy import Dialect, Policy
from walltime.policy.randomness import seeded
from walltime.predictors import Prediction
from walltime.workload import Array, Workload, check_workload


def audit(
    workload: Workload,
    schedule: Mapping[str, Array],
    policy: Policy | None = None,
    *,
    overrun: str = "kill",
    coincident: str | None = None,
    dialect: Dialect | str = "papers",
    prediction: Prediction | str | None = None,
    planned_from_file: bool = False,
    placement: Placement | None = None,
    slots: Sequence[Array] | None = None,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> AuditReport:
    """Audit the columns of a schedule (as returned by `read_schedule`) against the workload.

    `schedule`: int64 columns, at least `job_id, start, end`, one row per job in any order. Without a `policy`, only the rules for all
    schedules are checked. `overrun, dialect, coincident, prediction`: as in `simulate`; the predictor learns from the given schedule.
    Planned runtimes follow from the workload and the prediction. With `planned_from_file`, the schedule's column `planned` is used; the
    report notes this, and lists differences from the computed values.

    `placement`: the needs of the jobs on a machine with several pools, from `walltime.machine.place`, which also returns the workload to be
    passed. A column `given` of the schedule, as in `Schedule.given`, has the processors that jobs had in each pool. `slots`: the jobs'
    nodes, as in `Schedule`. `seed`: for orders that read random numbers. `progress` is called from time to time with the number of jobs
    checked so far.

    Raises PolicyError for an unknown overrun rule, dialect or prediction, and for `planned_from_file` on a machine with several pools.

    >>> from walltime import Easy, Workload, simulate
    >>> jobs = Workload.from_arrays(submit=[0, 1], runtime=[10, 10], procs=[3, 4], machine_procs=4)
    >>> print(simulate(jobs, Easy()).audit())
    2 jobs, 16 rules checked, none broken
    """
    check_workload(workload)
    chosen = Prediction.of(prediction)
    if planned_from_file and placement is not None:
        raise PolicyError(
            "planned runtimes can be read from a schedule only for a machine with a single pool; leave the option out",
            "unsupported_machine",
        )
    rules = Dialect.of(dialect, coincident)
    with seeded(seed):
        return _Audit(workload, schedule, policy, overrun, rules, chosen, planned_from_file, placement, slots).report(progress)


@dataclass
class _Audit:
    """An audit: its input, the rules that it checks and skips, and its assumptions."""

    w: Workload
    file: Mapping[str, Array]
    policy: Policy | None
    overrun: str
    dialect: Dialect
    prediction: Prediction | None
    planned_from_file: bool
    placement: Placement | None
    slots: Sequence[Array] | None

    def __post_init__(self) -> None:
        self.policy = None if self.policy is None else self.dialect.apply(self.policy)
        self.skipped: dict[str, str] = {}
        self.assumed: list[str] = []
        self.rows = Rows(self.w, self.file, *effective_times(self.w, self.overrun), self.placement)
        self.planned_from_file = self.planned_from_file and "planned" in self.file
        self.checked = list(ALWAYS)
        self.decided: float | None = None if self.policy is None else 0.0

    def report(self, progress: Callable[[int], None] | None) -> AuditReport:
        """Run all checks and return the report."""
        violations = [*self.rows.unmatched, *self._compare_columns(), *self._check_times(), *self.rows.over_capacity()]
        violations += self._check_policy(progress) if self.placement is None else self._check_machine(self.placement)
        checked = tuple(rule for rule in self.checked if rule not in self.skipped)
        ordered = tuple(sorted(violations, key=lambda v: v.time))
        return AuditReport(ordered, checked, self.skipped, len(self.w), tuple(self.assumed), self.decided)

    def _compare_columns(self) -> Iterator[Violation]:
        for rule, name in (("submit_differs", "submit"), ("procs_differ", "procs"), ("requested_differs", "requested")):
            if name not in self.file:
                self.skipped[rule] = f"the schedule has no column {name}"
                continue
            true = self.rows.submit if name == "submit" else getattr(self.w, name)[self.rows.job]
            yield from self.rows.differing(rule, name, true)
        if "planned" not in self.file:
            self.skipped["planned_differs"] = "the schedule has no column planned"
        elif not self.planned_from_file:
            yield from self.rows.differing("planned_differs", "planned", self.w.planned[self.rows.job])

    def _check_times(self) -> Iterator[Violation]:
        rows = self.rows
        limit = self.w.requested[rows.job]
        if self.overrun != "kill":
            self.skipped["over_limit"] = f"jobs are not killed at their limit under {self.overrun}"
        elif self.placement is not None:
            from walltime.auditor.pools import shortened_limits

            lasted = rows.end - rows.start
            limit = shortened_limits(self.w, self.policy, rows.job, limit, rows.column("limit"), lasted)
            rows.ran = np.minimum(rows.ran, limit)
        yield from rows.wrong_times(limit if self.overrun == "kill" else None)

    def _check_machine(self, placement: Placement) -> Iterator[Violation]:
        """Check the rules for a machine with several pools; if jobs are missing in the schedule, check all rules but those on decisions."""
        from walltime.auditor.pools import DECISIONS, MACHINE_CHECKS, broken_rules, decided_share, skipped_rules
        from walltime.auditor.walk import MachineSchedule
        from walltime.auditor.windows import SiteWindows
        from walltime.machine import place
        from walltime.machine.overheads import decision_times, release_times, scheduler_view

        preempts = placement.machine.preempts or placement.machine.loses_jobs or self.rows.lost
        self.checked += [*POLICY_RULES, *(rule for rule in MACHINE_CHECKS if rule != "preemption" or preempts)]
        reason = "on a machine with several pools, decisions are checked, but not their labels"
        self.skipped.update(dict.fromkeys([rule for rule in POLICY_RULES if rule not in DECISIONS], reason))
        rows, w, policy, slots = self.rows, self.w, self.policy, self.slots
        order = np.argsort(rows.job, kind="stable")
        if missing := len(w) - len(rows.job):
            self.skipped.update(dict.fromkeys(DECISIONS, "some jobs are not in the schedule"))
            self.assumed.append(f"the {missing:,} jobs that are not in the schedule used nothing")
            policy, slots, placed = None, None, 0
            with suppress(WorkloadError):  # raised if none of the remaining jobs can run
                w, placement = place(w.take(np.isin(np.arange(len(w)), rows.job), ""), placement.machine)
                placed = len(w)
            if placed < len(order) or placed == 0:
                reason = "jobs depend on jobs that are not in the schedule" if len(order) else "no job is in the schedule"
                self.skipped.update(dict.fromkeys(MACHINE_CHECKS, reason))
                return
        start, end = rows.start[order], rows.end[order]
        columns = {name: self.file[name][rows.row][order] for name in ("given", "limit") if name in self.file}
        own = placement.machine.overhead
        jobs, seen = scheduler_view(w, placement)
        if own != NO_OVERHEAD:
            self.assumed.append(f"times of decisions are {own.start} s before starts, and processors are free {own.end} s after ends")
            start, end = decision_times(start, placement), release_times(own, end)
        windows = SiteWindows(w, placement, effective_times(jobs, self.overrun)[1], int(start.max()))
        runs: dict[str, Any] = {} if missing else {"lost": rows.lost, "cut": rows.cut}
        schedule = MachineSchedule(jobs, seen, start, end, windows, self.overrun, slots=slots, **runs, **columns)
        self.skipped.update(skipped_rules(schedule, policy, self.prediction))
        self.decided, notes = decided_share(schedule, policy, self.prediction)
        self.decided = 0.0 if missing and self.policy is not None else self.decided
        self.assumed += notes
        for rule, message, job, moment in broken_rules(schedule, policy, self.prediction):
            yield Violation(rule, message, (int(w.job_id[job]),), moment)

    def _check_policy(self, progress: Callable[[int], None] | None) -> Iterator[Violation]:
        """Check the guarantees of the policy: the jobs that it starts at each event, and their labels."""
        if self.policy is None:
            self.skipped.update(dict.fromkeys(POLICY_RULES, "no policy was given"))
            return
        from walltime.auditor.decisions import Decisions, RecordedJobs, encode_policy
        from walltime.auditor.particular import ParticularWalk

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
        decisions: Decisions | ParticularWalk
        if self.policy.passes.kind == "particular":
            decisions = ParticularWalk(self.w, recorded, self.policy)
        else:
            rules = encode_policy(self.policy, self.dialect, self.prediction, self.w.machine_procs, recorded.reserved_start is not None)
            if rules is None:
                self.skipped.update(dict.fromkeys(POLICY_RULES, f"the auditor has no rules for {self.policy.label}"))
                self.decided = None
                return
            decisions = Decisions(self.w, recorded, self.policy, self.prediction, rules)
        for rule, column in (("kind_wrong", "kind"), ("reserved_start_differs", "reserved_start")):
            if rule in self.policy.promises and column not in self.file:
                self.skipped[rule] = f"the schedule has no column {column}"
        yield from decisions.violations(progress)
        self.decided = decisions.decided
        if self.decided < 1:
            self.assumed.append("decisions were checked from the beginning, until that had taken about a minute")
        if self.planned_from_file:
            true = decisions.predicted if isinstance(decisions, Decisions) and self.prediction is not None else self.w.planned
            yield from self.rows.differing("planned_differs", "planned", true[rows.job])

    def _estimate(self) -> Array:
        """Return the planned runtimes without predictions, or those in the schedule, int64 s."""
        rows = self.rows
        if not self.planned_from_file:
            return rows.estimate
        self.assumed.append("judged by the schedule's own planned runtimes")
        planned = self.file["planned"][rows.row]
        return np.maximum(planned, rows.ran) if self.overrun == "extend" else planned
