"""Tests whether the auditor finds all faults of schedules on machines of pools and of Slurm's nodes, and only faults.

    python validation/mutations_machines.py [--mutants 100000] [--seed 0] [--out FILE]

Schedules of the reference engines, small ones of every policy, are perturbed, and audited. Every policy decides only by the state of the
machine, of the queue and of its reservations. So a schedule is valid if and only if its jobs start when those of the reference engine do:
up to the first difference the state is the same, and there the policy decides otherwise.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.oracle import test_machines, test_slurm  # noqa: E402
from validation.perturb import Columns, perturb  # noqa: E402
from walltime import Schedule, simulate  # noqa: E402
from walltime.auditor import AuditReport, audit  # noqa: E402
from walltime.errors import EngineError, WorkloadError  # noqa: E402

NAMES = ("job_id", "submit", "start", "end", "procs", "requested")
MUTANTS_OF_EACH = 20
"""Mutants of one schedule."""
Audit = Callable[[Schedule, Columns], AuditReport]


@dataclass
class Counts:
    """Results for the mutants of one policy on one kind of machine."""

    mutants: int = 0
    valid: int = 0
    misses: int = 0
    false_alarms: int = 0
    not_decided: int = 0
    """wrong only by a rule that the report names as not checked"""


@dataclass
class Trial:
    """All counts, by policy and machine, and the first schedules that were misjudged, to be tried again."""

    table: dict[tuple[str, str], Counts] = field(default_factory=dict)
    misjudged: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def total(self, name: str) -> int:
        """The sum of a column."""
        return sum(getattr(one, name) for one in self.table.values())

    def as_dict(self) -> dict[str, Any]:
        """The table, ready for JSON."""
        rows = [{"policy": policy, "machine": machine, **vars(one)} for (policy, machine), one in sorted(self.table.items())]
        sums = {name: self.total(name) for name in vars(Counts())}
        return {**sums, "seconds": round(self.seconds, 1), "rows": rows, "misjudged": self.misjudged}


def schedules_on_pools(seed: int) -> Iterator[tuple[str, str, Schedule]]:
    """A schedule of each policy on machines of pools: with outages, limits, dependencies, feedback, predictions, overruns."""
    for policy in test_machines.POLICIES:
        draw = random.Random(f"mutants of {policy} {seed}")
        machine = test_machines.machine_of(draw)
        workload = test_machines.workload_of(draw, machine).with_feedback(draw.random() < 0.2)
        predicted = draw.random() < 0.3
        scheduler = policy + (",", ":")[":" not in policy] + draw.choice(test_machines.PREDICTIONS) if predicted else policy
        options = {"overrun": draw.choice(("kill", "extend", "continue")), "engine": "reference"}
        try:
            schedule = simulate(workload, scheduler, machine=machine, **options)
        except (EngineError, WorkloadError):
            continue
        yield policy, "pools" + (" with outages" if machine.outages else ""), schedule


def schedules_on_nodes(seed: int) -> Iterator[tuple[str, str, Schedule]]:
    """Schedules of Slurm with parameters of all kinds."""
    for kind in test_slurm.KINDS:
        draw = random.Random(f"mutants of {kind} {seed}")
        machine, workload = test_slurm.site_of(draw, kind)
        policy = test_slurm.policy_of(draw, kind)
        try:
            schedule = simulate(workload, policy, machine=machine, overrun=draw.choice(("kill", "extend", "continue")), engine="reference")
        except (EngineError, WorkloadError):
            continue
        yield f"slurm, {kind}", "nodes" + (" with outages" if machine.outages else ""), schedule


SOURCES = {"pools": schedules_on_pools, "nodes": schedules_on_nodes}


def audited(schedule: Schedule, columns: Columns) -> AuditReport:
    """The auditor's report on these columns, given all that it takes to judge them."""
    record = schedule.predictions
    return audit(
        schedule.workload,
        {name: values for name, values in columns.items() if name != "slots"},
        schedule.policy,
        overrun=schedule.overrun,
        dialect=schedule.dialect,
        prediction=None if record is None else record.prediction,
        placement=schedule.placement,
        slots=schedule.slots if "slots" in columns else None,
    )


def is_valid(schedule: Schedule, columns: Columns) -> bool:
    """Whether the columns are those of the reference engine, in any order."""
    if len(columns["job_id"]) != len(schedule.workload):
        return False
    right = schedule.columns() | {"given": schedule.given, "limit": _limits(schedule)}
    order, by_id = np.argsort(columns["job_id"], kind="stable"), np.argsort(right["job_id"], kind="stable")
    return all((values[order] == right[name][by_id]).all() for name, values in columns.items() if name != "slots")


def _limits(schedule: Schedule) -> np.ndarray:
    return schedule.workload.requested if schedule.limit is None else schedule.limit


def perturbed(schedule: Schedule, rng: np.random.Generator) -> Iterator[tuple[str, Columns]]:
    """Return mutants of one schedule; every other one contains pools or nodes of the jobs, and under Slurm their limits."""
    assert schedule.placement is not None
    moments = sorted({time for *_, begin, until, _ in schedule.placement.outages for time in (begin, begin + 1, until) if time < 2**40})
    columns = {name: values for name, values in schedule.columns().items() if name in NAMES}
    for k in range(MUTANTS_OF_EACH):
        if k % 2 == 0:
            yield perturb(columns, rng, moments)
        elif schedule.slots is None and rng.random() < 0.1:
            given, row = schedule.given.copy(), int(rng.integers(len(schedule.workload)))
            given[row] = given[row, ::-1]
            yield "other pools", columns | {"given": given}
        elif schedule.slots is None:
            yield perturb(columns | {"given": schedule.given}, rng, moments)
        else:
            name, found = perturb(columns | {"limit": _limits(schedule)}, rng, moments)
            yield name, found | {"slots": schedule.slots[0]}


def trial(mutants: int, seed: int = 0, kinds: Sequence[str] = tuple(SOURCES), judge: Audit = audited) -> Trial:
    """Run mutants of schedules of these kinds from a seed; `judge` is the auditor, possibly with a planted fault."""
    found, done, begin = Trial(), 0, time.perf_counter()
    while done < mutants:
        for policy, machine, schedule in (one for kind in kinds for one in SOURCES[kind](seed)):
            counts = found.table.setdefault((policy, machine), Counts())
            for name, columns in perturbed(schedule, np.random.default_rng([seed, done])):
                if done == mutants:
                    break
                done += 1
                counts.mutants += 1
                valid, report = is_valid(schedule, columns), judge(schedule, columns)
                counts.valid += valid
                if valid == (not report.violations):
                    continue
                if not report.violations and not _decides(report):
                    counts.not_decided += 1
                    continue
                counts.false_alarms += valid
                counts.misses += not valid
                if len(found.misjudged) < 10:
                    found.misjudged.append(f"{'false alarm' if valid else 'miss'}: {schedule.label}, seed {seed}, {name}: {report}")
        seed += 1
    found.seconds = time.perf_counter() - begin
    return found


def _decides(report: AuditReport) -> bool:
    """Return whether all rules on starts were checked."""
    return not {"head_waits", "left_waiting", "reservation_delayed", "out_of_turn"} & set(report.skipped)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trial, print its table, and store it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", default=list(SOURCES), choices=SOURCES)
    parser.add_argument("--out", type=Path, help="a JSON file for the table")
    given = parser.parse_args(arguments)
    found = trial(given.mutants, given.seed, given.kinds)
    print(f"{'policy':36} {'machine':20} {'mutants':>8} {'valid':>6} {'misses':>7} {'false':>6} {'not decided':>12}")
    rows = [(policy, machine, one) for (policy, machine), one in sorted(found.table.items())]
    rows.append(("all", "", Counts(**{name: found.total(name) for name in vars(Counts())})))
    for policy, machine, one in rows:
        print(f"{policy:36} {machine:20} {one.mutants:8,} {one.valid:6,} {one.misses:7,} {one.false_alarms:6,} {one.not_decided:12,}")
    print(*found.misjudged, sep="\n")
    if given.out is not None:
        given.out.write_text(json.dumps(found.as_dict(), indent=1) + "\n")
    return int(found.total("misses") + found.total("false_alarms") > 0)


if __name__ == "__main__":
    sys.exit(main())
