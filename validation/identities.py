"""Identities that a correct scheduler satisfies exactly, on random workloads and on logs.

Each check takes a workload and a `simulate`, and returns the number of jobs compared and of those that violate the identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import walltime as wt
from validation.common import Array, Numbers, Simulate, Sizes, describe_logs, find_logs, tell
from walltime.engine.interface.number import NumberEngine
from walltime.engine.problem import Problem
from walltime.estimates import effective_times
from walltime.metrics import queue_length

POLICIES: tuple[wt.policy.Policy, ...] = (
    wt.NoBackfilling(),
    wt.Easy(),
    wt.Easy(backfill_order=wt.SJF),
    wt.Easy(order=wt.WFP),
    wt.Hybrid(depth=3),
    wt.Conservative(),
    wt.Conservative(variant="scratch"),
)
"""The policies for identities that hold under every policy."""
FACTOR = 7
"""Factor for all times, to check that the schedule scales."""


@dataclass(frozen=True)
class Finding:
    """Jobs compared, and those that violate the identity."""

    jobs: int
    broken: int

    def __add__(self, other: Finding) -> Finding:
        return Finding(self.jobs + other.jobs, self.broken + other.broken)


Check = Callable[[wt.Workload, Simulate], Finding]


def differing(a: Iterable[Array], b: Iterable[Array]) -> Finding:
    """Jobs that differ in any of the columns."""
    pairs = [np.asarray(x) != np.asarray(y) for x, y in zip(a, b, strict=True)]
    return Finding(len(pairs[0]), int(np.any(pairs, axis=0).sum()))


def whole(schedule: wt.Schedule) -> Sequence[Array]:
    """All per-job columns of a schedule."""
    return schedule.start, schedule.end, schedule.kind, schedule.reserved_start


def total(findings: Iterable[Finding]) -> Finding:
    """All of them together."""
    return sum(findings, Finding(0, 0))


def perfect(workload: wt.Workload) -> wt.Workload:
    """With exact estimates."""
    return workload.with_estimates(wt.estimates.ExactEstimates())


# ---------------------------------------------------------------------------------------------------- policies that coincide


def both_variants(workload: wt.Workload, simulate: Simulate) -> Finding:
    """With perfect estimates there is nothing to compress, so both variants of conservative backfilling are one.

    A job with a runtime of 0 ends before its estimate, which is at least 1 s; so runtimes are raised to 1 s first.
    """
    exact = perfect(lift(workload))
    return differing(whole(simulate(exact, wt.Conservative())), whole(simulate(exact, wt.Conservative(variant="scratch"))))


def depth_one(workload: wt.Workload, simulate: Simulate) -> Finding:
    """EASY is one reservation in a profile rebuilt at every event.

    A hybrid of depth 1 uses EASY's own code path by definition, so the path of deeper hybrids is forced to run with depth 1.
    """
    runtime, planned = effective_times(workload, "kill")
    rebuilt = NumberEngine(Problem(workload.submit, runtime, planned, workload.procs, workload.machine_procs, wt.Hybrid(depth=2)))
    rebuilt._memory.rules.depth = 1
    rebuilt.run()
    easy = simulate(workload, wt.Easy())
    named = simulate(workload, wt.Hybrid(depth=1))
    return differing((easy.start, easy.kind), (rebuilt.start, rebuilt.kind)) + differing(whole(easy), whole(named))


def unlimited_depth(workload: wt.Workload, simulate: Simulate) -> Finding:
    """A hybrid one deeper than the longest queue makes reservations for all jobs, like conservative backfilling from scratch."""
    scratch = simulate(workload, wt.Conservative(variant="scratch"))
    _, levels = queue_length(workload.submit, scratch.start + 1)  # those that start at once are in the queue of their pass
    deep = simulate(workload, wt.Hybrid(depth=int(levels.max(initial=1)) + 1))
    return differing(whole(scratch), whole(deep))


# ------------------------------------------------------------------------------------------------------ what estimates can do


@dataclass(frozen=True)
class Backfills:
    """Why EASY was allowed to backfill jobs, reconstructed from a schedule alone.

    `extra`: they fit the extra processors. `length`: they did not, but were to end by the shadow time. `same_instant`: those of
    `length` for which the shadow time hangs on a job that started at that very instant. `forbidden`: neither.
    """

    extra: int
    length: int
    same_instant: int
    forbidden: int


def classify(schedule: wt.Schedule) -> Backfills:
    """Replay the starts of an EASY schedule (order of arrival, dynamics recorded) and find why each backfill was allowed.

    For each job that started ahead of another one: the head is the first waiting job; at the shadow time enough processors are expected
    to be free for it, and the rest are extra processors.
    Source: mualem01, section 2.2. Runtimes of 0 are not allowed.
    """
    assert schedule.dynamics is not None
    w, start, end = schedule.workload, schedule.start, schedule.end
    planned_end = start + w.planned
    running: list[int] = []
    count = {"extra": 0, "length": 0, "same_instant": 0, "forbidden": 0}
    started = np.zeros(len(w), bool)
    head = 0
    for job in schedule.dynamics.sequence.tolist():
        now = int(start[job])
        running = [other for other in running if end[other] > now]
        while started[head]:
            head += 1
        if head != job:
            free = w.machine_procs - int(w.procs[running].sum())
            needed, width = int(w.procs[head]), int(w.procs[job])
            ends, widths = planned_end[running], w.procs[running]
            in_order = np.argsort(ends, kind="stable")
            reached = free + np.cumsum(widths[in_order])
            blocked = free < needed <= w.machine_procs
            shadow = int(ends[in_order][np.argmax(reached >= needed)]) if blocked else now
            extra = free + int(widths[ends <= shadow].sum()) - needed
            if blocked and width <= min(free, extra):
                count["extra"] += 1
            elif blocked and width <= free and now + w.planned[job] <= shadow:
                count["length"] += 1
                count["same_instant"] += bool((start[running][ends == shadow] == now).any())
            else:
                count["forbidden"] += 1
        started[job] = True
        running.append(job)
    return Backfills(**count)


def one_estimate(workload: wt.Workload, simulate: Simulate) -> Finding:
    """With one estimate for all, jobs are backfilled through extra processors only.

    A candidate would end at now + E, a running job ends at its start + E, which is earlier; so no candidate ends by the
    shadow time, unless that hangs on a job that started at this very instant. Those are counted apart, and allowed.
    """
    schedule = simulate(largest_estimate(workload), wt.Easy(), dynamics=True)
    found = classify(schedule)
    return Finding(found.extra + found.length + found.forbidden, found.length - found.same_instant + found.forbidden)


def largest_estimate(workload: wt.Workload) -> wt.Workload:
    """All jobs, cut at their limits and raised to 1 s, planned to run for as long as the longest limit."""
    lifted = lift(workload)
    return lifted.with_planned(np.full(len(lifted), lifted.requested.max(initial=1)))


def lift(workload: wt.Workload) -> wt.Workload:
    """Runtimes of at least 1 s."""
    return replace(workload, runtime=np.maximum(workload.runtime, 1))


def allowed(workload: wt.Workload, simulate: Simulate) -> Finding:
    """Every job that EASY backfills ends by the shadow time, as planned, or fits the extra processors."""
    found = classify(simulate(lift(workload), wt.Easy(), dynamics=True))
    return Finding(found.extra + found.length + found.forbidden, found.forbidden)


def no_wild_backfills(workload: wt.Workload, simulate: Simulate) -> Finding:
    """With perfect estimates no backfill moves the real shadow of the head back."""
    schedule = simulate(perfect(lift(workload)), wt.Easy(), dynamics=True)
    assert schedule.dynamics is not None
    return Finding(len(schedule), int(schedule.dynamics.wild.sum()))


def fcfs_is_indifferent(workload: wt.Workload, simulate: Simulate) -> Finding:
    """FCFS ignores estimates: multiples of the runtime, one for all, or any numbers."""
    exact = perfect(workload)
    random = np.random.default_rng(len(workload))
    others = (exact.planned * 2, exact.planned * 10, np.full(len(exact), 86_400), random.integers(1, 10**6, len(exact)))
    expected = whole(simulate(exact, wt.NoBackfilling()))
    return total(differing(expected, whole(simulate(exact.with_planned(planned), wt.NoBackfilling()))) for planned in others)


# -------------------------------------------------------------------------------------------------------------- plain sense


def renumbered(workload: wt.Workload, simulate: Simulate) -> Finding:
    """Job ids do not matter where no two jobs are submitted at the same second."""
    distinct = workload.take(np.unique(workload.submit, return_index=True)[1], "distinct submissions")
    ids = np.random.default_rng(len(workload)).permutation(distinct.job_id)
    return _same_for_all(distinct, replace(distinct, job_id=ids), simulate, lambda time: time)


def shifted(workload: wt.Workload, simulate: Simulate) -> Finding:
    """All submissions later by a constant: all starts are."""
    by = 123_456_789
    return _same_for_all(workload, replace(workload, submit=workload.submit + by), simulate, lambda time: time + by)


def scaled(workload: wt.Workload, simulate: Simulate) -> Finding:
    """All times multiplied by a whole number: all starts are."""
    times = {name: getattr(workload, name) * FACTOR for name in ("submit", "runtime", "requested", "planned")}
    return _same_for_all(workload, replace(workload, **times), simulate, lambda time: time * FACTOR)


def doubled(workload: wt.Workload, simulate: Simulate) -> Finding:
    """A machine twice as large for jobs twice as wide."""
    wide = replace(workload, procs=workload.procs * 2, machine_procs=workload.machine_procs * 2)
    return _same_for_all(workload, wide, simulate, lambda time: time)


def _same_for_all(a: wt.Workload, b: wt.Workload, simulate: Simulate, moved: Callable[[Array], Array]) -> Finding:
    """Whether every policy treats b like a, with starts and reserved starts mapped like this."""
    found = Finding(0, 0)
    for policy in POLICIES:
        one, other = simulate(a, policy), simulate(b, policy)
        reserved_start = np.where(one.reserved_start >= 0, moved(one.reserved_start), -1)
        found += differing((moved(one.start), one.kind, reserved_start), (other.start, other.kind, other.reserved_start))
    return found


def one_more(workload: wt.Workload, simulate: Simulate) -> Finding:
    """A job that arrives after all others have ended changes nothing."""
    found = Finding(0, 0)
    for policy in POLICIES:
        before = simulate(workload, policy)
        after = simulate(_with_another(workload, int(before.end.max()) + 1), policy)
        found += differing(whole(before), [column[:-1] for column in whole(after)])
    return found


def _with_another(workload: wt.Workload, submit: int) -> wt.Workload:
    added = {"submit": submit, "runtime": 100, "requested": 200, "planned": 200, "procs": workload.machine_procs}
    columns: dict[str, Any] = {name: np.append(getattr(workload, name), value) for name, value in added.items()}
    job_id = np.append(workload.job_id, workload.job_id.max() + 1)
    return wt.Workload.from_arrays(**columns, job_id=job_id, machine_procs=workload.machine_procs)


def no_foresight(workload: wt.Workload, simulate: Simulate) -> Finding:
    """Without its second half, a workload's schedule is the same up to the time at which that half begins."""
    half = max(len(workload) // 2, 1)
    first = wt.workloads.head(workload, half)
    until = int(workload.submit[half]) if half < len(workload) else int(workload.submit[-1]) + 1
    found = Finding(0, 0)
    for policy in POLICIES:
        all_of_it, part = simulate(workload, policy).start[:half], simulate(first, policy).start
        begun = (all_of_it < until) | (part < until)
        found += differing([all_of_it[begun]], [part[begun]])
    return found


@dataclass(frozen=True)
class Identity:
    """A check, and its statement."""

    check: Check
    says: str


IDENTITIES: dict[str, Identity] = {
    "both variants": Identity(both_variants, "perfect estimates: both variants of conservative backfilling give the same schedule"),
    "depth 1": Identity(depth_one, "a hybrid with one reservation gives EASY's schedule"),
    "unlimited depth": Identity(unlimited_depth, "a hybrid deeper than the queue gives the schedule of `conservative-scratch`"),
    "one estimate": Identity(one_estimate, "one estimate for all jobs: EASY backfills only on extra processors"),
    "allowed": Identity(allowed, "every job that EASY backfills is expected to end by the shadow time, or fits the extra processors"),
    "no wild backfills": Identity(no_wild_backfills, "perfect estimates: no backfilled job delays the head"),
    "FCFS": Identity(fcfs_is_indifferent, "FCFS does not depend on estimates"),
    "renumbered": Identity(renumbered, "if all submissions differ, job numbers do not matter"),
    "shifted": Identity(shifted, "if all times are shifted by a constant, so is the schedule"),
    "scaled": Identity(scaled, f"if all times are multiplied by {FACTOR}, so is the schedule"),
    "doubled": Identity(doubled, "twice the processors, of machine and jobs, give the same schedule"),
    "one more": Identity(one_more, "a job after the end of all others changes nothing"),
    "no foresight": Identity(no_foresight, "starts before the second half of the jobs arrives do not depend on that half"),
}


def random_workload(seed: int, jobs: int = 200) -> wt.Workload:
    """Jobs that come in bursts, on a machine of 1 to 128 processors with a queue most of the time; equal times are frequent."""
    random = np.random.default_rng([seed, 6])
    machine = int(random.choice([1, 2, 5, 16, 100, 128]))
    grain = int(random.choice([1, 1, 10]))
    runtime = (random.lognormal(3, 1.5, jobs)).astype(np.int64) // grain * grain
    procs = np.where(random.random(jobs) < 0.3, random.integers(1, machine + 1, jobs), random.integers(1, max(machine // 4, 1) + 1, jobs))
    load = random.uniform(0.6, 1.2)
    gap = float((runtime * procs).mean()) / machine / load
    submit = np.cumsum(np.where(random.random(jobs) < 0.4, 0, random.exponential(gap / 0.6, jobs))).astype(np.int64) // grain * grain
    requested = np.maximum(runtime * random.choice([1.0, 1.5, 3.0, 10.0], jobs), 1).astype(np.int64)
    requested = np.where(random.random(jobs) < 0.05, np.maximum(runtime // 2, 1), requested)  # these are killed
    return wt.Workload.from_arrays(submit=submit, runtime=runtime, requested=requested, procs=procs, machine_procs=machine)


def changed_by_factors(log: wt.Workload, simulate: Simulate = wt.simulate) -> dict[str, Numbers]:
    """Jobs with another start when perfect estimates are multiplied: under FCFS none, under EASY many (tsafrir06, heel and toe)."""
    factors = {f"{factor}": wt.estimates.FModel(factor, deterministic=True) for factor in (2, 10, 100)}
    moved = {}
    for name, policy in {"fcfs": wt.NoBackfilling(), "easy": wt.Easy()}.items():
        exact = simulate(perfect(log), policy)
        moved[name] = {
            factor: int((simulate(log.with_estimates(model), policy).start != exact.start).sum()) for factor, model in factors.items()
        }
    return moved


def reasons(log: wt.Workload, simulate: Simulate = wt.simulate) -> dict[str, Numbers]:
    """Why backfills were allowed, with the users' estimates and with one for all."""
    found = {"users' estimates": lift(log), "one estimate for all": largest_estimate(log)}
    return {name: vars(classify(simulate(workload, wt.Easy(), dynamics=True))) for name, workload in found.items()}


def wild(log: wt.Workload, simulate: Simulate = wt.simulate) -> dict[str, int]:
    """Wild backfills under EASY, with the users' estimates and with perfect ones."""
    found = {"users' estimates": lift(log), "perfect estimates": perfect(lift(log))}
    schedules = {name: simulate(workload, wt.Easy(), dynamics=True).dynamics for name, workload in found.items()}
    return {name: int(dynamics.wild.sum()) for name, dynamics in schedules.items() if dynamics is not None}


def run(sizes: Sizes) -> Numbers:
    """Everything of this part, ready for JSON."""
    logs = find_logs(sizes)
    random = [random_workload(seed) for seed in range(sizes.workloads)]
    rows = {}
    for name, identity in IDENTITIES.items():
        tell(f"identities: {name}")
        found = {"random": total(identity.check(workload, wt.simulate) for workload in random)}
        found |= {log: identity.check(workload, wt.simulate) for log, workload in logs.items()}
        rows[name] = {"says": identity.says, "found": {where: vars(finding) for where, finding in found.items()}}
    result: Numbers = {"workloads": sizes.workloads, "logs": describe_logs(logs), "identities": rows, "effects": {}}
    for name, log in logs.items():
        tell(f"identities: what estimates change on {name}")
        result["effects"][name] = {"moved": changed_by_factors(log), "reasons": reasons(log), "wild": wild(log)}
    return result


def failures(result: Numbers) -> list[str]:
    """Return the failures in words."""
    bad = [
        f"{name} on {where}: {finding['broken']} of {finding['jobs']} jobs"
        for name, row in result["identities"].items()
        for where, finding in row["found"].items()
        if finding["broken"]
    ]
    for log, effects in result["effects"].items():
        if any(effects["moved"]["fcfs"].values()):
            bad.append(f"multiples of perfect estimates change FCFS on {log}")
        if not all(effects["moved"]["easy"].values()):
            bad.append(f"multiples of perfect estimates leave EASY as it is on {log}")
    return bad
