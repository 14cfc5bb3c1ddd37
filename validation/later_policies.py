"""Every policy on the available logs: means with intervals from shaken copies, and gains and losses relative to EASY.

    python validation/later_policies.py [--only PART_OF_A_NAME ...] [--out FILE]

Each log is stored as soon as it is done; logs that are not run keep the numbers stored earlier.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.common import find_log  # noqa: E402
from walltime import Schedule, Workload, metrics, read, simulate  # noqa: E402
from walltime.policy import policy_variants  # noqa: E402
from walltime.schedule.groups import group_jobs  # noqa: E402
from walltime.simulation.spread import COPIES, MEASURES, Spread, shaking_spread  # noqa: E402
from walltime.whatif.effects import differences, pairs  # noqa: E402

OUT = ROOT / "docs" / "generators" / "later-policies.json"
LOGS = ("KTH-SP2-1996-2.swf", "SDSC-SP2-1998-4.x-cln", "CTC-SP2-1996-3.1-cln", "SDSC-BLUE-2000-4.x-cln")
BASELINE = "easy"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the logs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="logs whose names contain one of these")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    for name in LOGS:
        path = find_log(name)
        if path is None or not any(part in name for part in given.only):
            continue
        stored = json.loads(given.out.read_text()) if given.out.exists() else {}
        stored[name.removesuffix(".swf")] = look_at(read(path))
        given.out.write_text(json.dumps(stored, indent=1) + "\n")


def look_at(workload: Workload) -> dict[str, Any]:
    """The numbers of one log."""
    begin = time.perf_counter()
    schedules = [simulate(workload, label) for label in policy_variants()]
    spread = shaking_spread(schedules, copies=COPIES)
    looks = first_look(schedules, policy_variants(), policy_variants().index(BASELINE), spread)
    print(f"{workload.origin.name}: {len(workload):,} jobs, {time.perf_counter() - begin:.0f} s", flush=True)
    classes = group_jobs(workload, "class", schedules[0].submit, schedules[0].end)
    own = dict(zip(policy_variants(), schedules, strict=True))
    return {
        "jobs": len(workload),
        "procs": workload.machine_procs,
        "load": round(workload.offered_load, 4),
        "sha256": workload.origin.sha256,
        "copies": COPIES,
        "classes": {name: int((classes.of == k).sum()) for k, name in enumerate(classes.names)},
        "policies": [
            rounded(look.as_dict())
            | {"weeks": mean_over_weeks(own[BASELINE], own[look.label]), "by_class": by_class(own[look.label], classes)}
            for look in looks
        ],
    }


@dataclass(frozen=True)
class Look:
    """A policy's `MEASURES` over the log and its shaken copies.

    `means`, and `differences` to the baseline, paired by copy: the mean and 90 % prediction interval of each measure; nan ends if there
    is only one run.
    """

    label: str
    means: dict[str, metrics.Interval]
    differences: dict[str, metrics.Interval]

    def verdict(self, name: str) -> str:
        """Return `better` or `worse` than the baseline, or `unclear` if the prediction interval includes 0."""
        difference = self.differences[name]
        if not (difference.low > 0 or difference.high < 0):
            return "unclear"
        return "worse" if difference.low > 0 else "better"

    def as_dict(self) -> dict[str, Any]:
        """Return the values for JSON."""
        values = {
            kind: {name: {"mean": i.mean, "low": i.low, "high": i.high} for name, i in intervals.items()}
            for kind, intervals in (("means", self.means), ("differences", self.differences))
        }
        return {"policy": self.label, **values, "verdicts": {name: self.verdict(name) for name in self.means}}


def first_look(
    schedules: Sequence[Schedule], labels: Sequence[str], baseline: int, spread: Spread | None, trim: str = "none"
) -> list[Look]:
    """Return a `Look` at each schedule, the lowest mean bounded slowdown first.

    `baseline`: the index of the baseline's schedule. `spread`: of these schedules; None for no intervals.
    """
    runs = [[schedule.summary(trim)] for schedule in schedules]
    if spread is not None:
        runs = [[own, *shaken] for own, shaken in zip(spread.own, spread.shaken, strict=True)]
    values = {name: np.array([[getattr(summary, name) for summary in row] for row in runs]) for name in MEASURES}
    looks = [
        Look(
            label,
            {name: _interval(values[name][k]) for name in MEASURES},
            {name: _interval(values[name][k] - values[name][baseline]) for name in MEASURES},
        )
        for k, label in enumerate(labels)
    ]
    return sorted(looks, key=lambda look: look.means["mean_bounded_slowdown"].mean)


def _interval(values: np.ndarray) -> metrics.Interval:
    """Return the mean and prediction interval over the log and its copies."""
    if len(values) < 2:
        return metrics.Interval(float(values.mean()), math.nan, math.nan, "one run")
    return metrics.prediction_interval(values)


def mean_over_weeks(easy: Schedule, changed: Schedule) -> dict[str, Any]:
    """Return the interval of the mean weekly difference to EASY by measure, or why it is withheld."""
    every = np.ones(len(easy), bool)
    found = differences(easy, changed, pairs(easy, changed, every), ())
    return {
        name: {"withheld": found[name].withheld} if found[name].withheld else rounded({"low": found[name].low, "high": found[name].high})
        for name in MEASURES
    }


def by_class(schedule: Schedule, classes: Any) -> dict[str, dict[str, float]]:
    """Mean wait (s) and mean bounded slowdown of each class of jobs."""
    wait = schedule.start - schedule.submit
    slowdown = metrics.bounded_slowdown(wait, schedule.end - schedule.start)
    found = {}
    for k, name in enumerate(classes.names):
        mine = classes.of == k
        if mine.any():
            found[name] = {
                "mean_wait": round(float(np.mean(wait[mine])), 1),
                "mean_bounded_slowdown": round(float(np.mean(slowdown[mine])), 2),
            }
    return found


def rounded(value: Any) -> Any:
    """Six digits are enough to print."""
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    return float(f"{value:.6g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
