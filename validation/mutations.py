"""The auditor on trial: valid schedules of every policy, and what becomes of them when one thing is made wrong.

Whether a schedule is valid is decided by brute force. A policy determines all starts from the workload and the dialect. So, by induction
over the events, a schedule keeps all that its policy promises if and only if it is, job for
job, the one of the reference engine, with ends and labels as they follow from the starts. A miss is a schedule that is not, and passes; a
false alarm is one that is, and does not.

python -m validation.mutations [--count 200000] [--seed 1] [--out docs/generators/mutations.json]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import walltime as wt
from validation.perturb import Columns, perturb
from walltime.auditor.passes.state import Array
from walltime.policy import policy_variants

OPTIONS = (
    "fcfs",
    "fcfs:order=sjf",
    "fcfs:order=wfp",
    "fcfs:window=3,order=sjf",
    "fcfs:decisions=committed,order=sjf",
    "easy",
    "easy:order=wfp",
    "easy:order=saf",
    "easy:order=unicef",
    "easy:order=f1",
    "easy:order=sjf:starvation=30",
    "easy:order=wfp:threshold=0.75",
    "easy:backfill-order=sjf",
    "easy:backfill-order=lxf",
    "easy:extra=literal",
    "easy:extra=none",
    "easy:shadow=kept",
    "easy:shadow=once",
    "easy:ends=before",
    "easy:window=4",
    "easy:overtakes=1",
    "hybrid:0,overtakes=2,backfill-order=sjf",
    "hybrid:0",
    "hybrid:1",
    "hybrid:2",
    "hybrid:3,order=sjf",
    "hybrid:1,fit=best",
    "hybrid:2,fit=best,metric=procseconds",
    "hybrid:1,fit=greedy",
    "hybrid:0,fit=greedy,metric=seconds",
    "conservative",
    "conservative:order=sjf",
    "conservative:order=wfp",
    "conservative:compression=always",
    "conservative:compression=fixpoint",
    "conservative-scratch",
    "conservative-scratch:order=saf",
    "relaxed",
    "relaxed:omega=0",
    "relaxed:omega=2,backfill-order=sjf",
    "selective",
    "selective:threshold=adaptive",
    "selective:threshold=1.2,order=sjf",
    "multiqueue",
    "multiqueue:bounds=5/15",
    "los",
    "los:ties=slowdown",
    "los:lookahead=3,objective=procseconds",
    "plan:iterations=9,lookahead=4",
    "plan:objective=sum,iterations=12",
    "slack",
    "slack:factor=0.2,recent=3",
)
"""Policies with options that matter to the auditor."""
POLICIES = (*OPTIONS, *(one for one in policy_variants() if one.partition(":")[0] not in {text.partition(":")[0] for text in OPTIONS}))
"""Every policy that runs on a number of processors."""
EVERY = "every schedule, no policy given"
"""The row of those that are judged without their policy."""
PREDICTORS = ("last", "tsafrir07", "tsafrir07:k=1", "user", "exact")
CORRECTIONS = ("tsafrir07", "estimate", "double", "half", "none", "tsafrir07:elapsed")
PREDICTION_USES = ("regular", "selective", "001", "101")
DIALECTS = (
    "papers",
    "pyss",
    "predictsim",
    "papers:coincident=arrivals-first",
    "papers:coincident=one-by-one",
    "mualem01-measured",
    "papers:expiry=silent",
)


@dataclass(frozen=True)
class Case:
    """A workload, and a scheduler with its readings."""

    workload: wt.Workload
    policy: str
    prediction: wt.Prediction | None
    dialect: str
    overrun: str

    @property
    def group(self) -> str:
        """The row of the table that it counts for."""
        return self.policy.partition(":")[0] + (" with predictions" if self.prediction is not None else "")


def random_case(rng: np.random.Generator, number: int, policies: Sequence[str] = POLICIES) -> Case:
    """A small workload on which times collide and queues grow, and a scheduler; the policies in turn."""
    jobs, procs = int(rng.integers(2, 22)), int(rng.choice((1, 3, 4, 8, 16)))
    long = int(rng.choice((4, 12, 40, 300)))
    submit = np.sort(rng.integers(0, int(rng.choice((1, 10, 60, 400))), jobs))
    runtime = rng.integers(0 if rng.random() < 0.5 else 1, long + 1, jobs)
    requested = np.maximum(1, runtime + rng.integers(-3, long + 1, jobs))
    if rng.random() < 0.5:  # round numbers, as users give them: expected ends coincide
        unit = int(rng.choice((5, 10, 50)))
        submit, requested = submit // unit * unit, -(-requested // unit) * unit
    users = rng.integers(1, 4, jobs)
    sizes = np.where(rng.random(jobs) < 0.2, procs, rng.integers(1, procs + 1, jobs))
    columns: dict[str, Array] = {"user": users}
    feedback = rng.random() < 0.15
    if feedback:
        ids = np.arange(1, jobs + 1)
        columns["preceding_job"] = np.where(rng.random(jobs) < 0.4, ids - rng.integers(1, 4, jobs), -1)
        columns["preceding_job"][columns["preceding_job"] < 1] = -1
        columns["think_time"] = rng.integers(0, 5, jobs)
    workload = wt.Workload.from_arrays(
        submit=submit, runtime=runtime, requested=requested, procs=sizes, machine_procs=procs, columns=columns
    ).with_feedback(feedback)
    if rng.random() < 0.2:
        workload = workload.with_planned(workload.requested * int(rng.integers(1, 4)))
    prediction = None
    if rng.random() < 0.35:
        prediction = wt.Prediction(str(rng.choice(PREDICTORS)), str(rng.choice(PREDICTION_USES)), str(rng.choice(CORRECTIONS)))
    policy, dialect = policies[number % len(policies)], str(rng.choice(DIALECTS)) if rng.random() < 0.5 else "papers"
    return Case(workload, policy, prediction, dialect, str(rng.choice(("kill", "kill", "extend", "continue"))))


def columns_of(schedule: wt.Schedule) -> Columns:
    """The columns of a schedule that an auditor is shown."""
    columns = {name: values.astype(np.int64) for name, values in schedule.columns().items()}
    if schedule.submitted is not None:
        columns["submit"] = schedule.submit.astype(np.int64)
    return columns


def relabel(columns: Columns, rng: np.random.Generator) -> tuple[str, Columns]:
    """A further perturbation: a label of a job other than its times is wrong."""
    name = str(rng.choice(("kind", "reserved_start", "submit", "procs", "requested", "planned")))
    changed = {key: values.copy() for key, values in columns.items()}
    row = int(rng.integers(len(changed[name])))
    changed[name][row] = int(rng.integers(0, 3)) if name == "kind" else changed[name][row] + int(rng.choice((-1, 1, 100)))
    return f"another {name}", changed


def same(columns: Columns, right: Columns) -> bool:
    """Whether a schedule is the valid one, its rows in any order."""
    if len(columns["job_id"]) != len(right["job_id"]):
        return False
    order, its = np.argsort(columns["job_id"], kind="stable"), np.argsort(right["job_id"], kind="stable")
    return all(bool((columns[name][order] == right[name][its]).all()) for name in right if name in columns and name != "runtime")


@dataclass
class Score:
    """How an auditor did on the schedules of a group."""

    valid: int = 0
    broken: int = 0
    false_alarms: int = 0
    misses: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)


def possible(case: Case, columns: Columns) -> bool:
    """Whether a schedule is one that some scheduler could have made: what holds for every schedule, job by job."""
    w = case.workload
    rows = {job: row for row, job in enumerate(columns["job_id"].tolist())}
    if len(rows) < len(columns["job_id"]) or sorted(rows) != sorted(w.job_id.tolist()):
        return False
    at = [rows[job] for job in w.job_id.tolist()]
    start, end = ([int(columns[name][row]) for row in at] for name in ("start", "end"))
    submit = w.submit.tolist()
    if w.feedback:
        after, think = w.dependencies()
        submit = [s if a < 0 else max(end[a] + t, 0) for s, a, t in zip(submit, after.tolist(), think.tolist(), strict=True)]
    runtime, procs = w.runtime.tolist(), w.procs.tolist()
    if case.overrun == "kill":
        runtime = [min(pair) for pair in zip(runtime, w.requested.tolist(), strict=True)]
    said = {"submit": submit, "procs": procs, "requested": w.requested.tolist(), "planned": w.planned.tolist()}
    for name, true in said.items():
        if name in columns and [int(columns[name][row]) for row in at] != true:
            return False
    for j in range(len(w)):
        if start[j] < submit[j] or end[j] != start[j] + runtime[j]:
            return False
        begun = [k for k in range(len(w)) if start[k] < end[k] and (start[k] <= start[j] if runtime[j] else start[k] < start[j])]
        if sum(procs[k] for k in begun if end[k] > start[j]) + (0 if runtime[j] else procs[j]) > w.machine_procs:
            return False
    return True


def judged(case: Case, columns: Columns, by_policy: bool = True) -> wt.AuditReport:
    """Return the auditor's report on columns, with or without the policy."""
    if not by_policy:
        return wt.audit(case.workload, columns, overrun=case.overrun, dialect=case.dialect)
    policy = wt.policy.parse_policy(case.policy)
    return wt.audit(case.workload, columns, policy, overrun=case.overrun, dialect=case.dialect, prediction=case.prediction)


def trial(
    count: int, seed: int, mutants: int = 20, policies: Sequence[str] = POLICIES
) -> Iterator[tuple[str, Case, str, bool, wt.AuditReport]]:
    """Yield schedules with their row of the table, case, fault, validity, and the auditor's report.

    Some are judged without the policy, by what holds for every schedule.
    """
    number = made = 0
    while made < count:
        rng = np.random.default_rng([seed, number])
        case = random_case(rng, number, policies)
        number += 1
        rules = {"overrun": case.overrun, "dialect": case.dialect, "prediction": case.prediction}
        right = columns_of(wt.simulate(case.workload, case.policy, engine="reference", **rules))
        yield case.group, case, "nothing", True, judged(case, right)
        for _ in range(min(mutants, count - made)):
            what, columns = relabel(right, rng) if rng.random() < 0.12 else perturb(right, rng)
            for name in ("kind", "reserved_start", "submit", "procs", "requested", "planned"):
                if rng.random() < 0.3 and not what.startswith("another"):
                    columns.pop(name, None)
            made += 1
            if rng.random() < 0.15:
                yield EVERY, case, what, possible(case, columns), judged(case, columns, by_policy=False)
            else:
                yield case.group, case, what, same(columns, right), judged(case, columns)


def scores(count: int, seed: int, progress: bool = False) -> dict[str, Score]:
    """The scores by group."""
    found: dict[str, Score] = {}
    last = time.monotonic()
    for number, (group, case, what, valid, report) in enumerate(trial(count, seed)):
        score = found.setdefault(group, Score())
        score.valid += valid
        score.broken += not valid
        if valid != (kept := not report.violations):
            score.misses += kept
            score.false_alarms += valid
            if len(score.examples) < 3:
                score.examples.append({"case": repr(case), "what": what, "report": str(report)})
        if progress and time.monotonic() > last + 10:
            last = time.monotonic()
            print(f"mutations: {number:,} of about {count:,}", file=sys.stderr, flush=True)
    return dict(sorted(found.items()))


def main() -> None:
    """Print the table; exit status 1 if the auditor was wrong once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = scores(options.count, options.seed, progress=True)
    print(f"{'policy':40} {'valid':>8} {'broken':>8} {'misses':>7} {'false alarms':>13}")
    for name, score in found.items():
        print(f"{name:40} {score.valid:8,} {score.broken:8,} {score.misses:7,} {score.false_alarms:13,}")
        for example in score.examples:
            print("   ", json.dumps(example))
    if options.out:
        rows = {
            name: {"valid": s.valid, "broken": s.broken, "misses": s.misses, "false_alarms": s.false_alarms} for name, s in found.items()
        }
        options.out.write_text(json.dumps({"seed": options.seed, "policies": rows}, indent=2) + "\n")
    sys.exit(any(score.misses or score.false_alarms for score in found.values()))


if __name__ == "__main__":
    main()
