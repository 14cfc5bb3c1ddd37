"""Measures how often each interval that the program prints holds the truth.

    python validation/coverage.py [--only NAME ...] [--quick] [--out FILE]

Stores what it finds in docs/generators/coverage.json, which the table of docs/validation/coverage.md is made from; experiments that are not
run, also those that are not known here, keep what was stored earlier. NAME is an experiment, or else the beginning of the names of several.
With `--quick` sizes are small, and nothing is stored unless `--out` names a file.

An experiment is a function in this module or in a `validation/coverage_*.py` next to it; all are imported:

    from validation.coverage import Sizes, Trials, experiment

    @experiment("replications.mean", of_what="other seeds", command="compare --replications")
    def mean_of_replications(sizes: Sizes) -> list[Trials]:
        trials = Trials("load 0.6, 5 runs")
        for seed in range(sizes.many(1000)):
            interval, truth = ...
            if interval is None:
                trials.withhold("the queue does not empty")
            else:
                trials.add(interval.low, interval.high, truth)
        return [trials]

`name` is that of a kind declared in `walltime.metrics.intervals` (an experiment for part of one has a further `:part`), `of_what` the
declared scope, `command` where the interval is printed. Each case is a `Trials`: it counts how often the truth is held, how often nothing
was given, and why. `sizes.many(n)` is n, or a small part of it with `--quick`, `sizes.some(cases)` all of them or one; seeds are fixed.
Cases whose nominal share is not 90 % state it: `Trials("3 runs", nominal=0.5)`. Cases outside the scope of an interval are `meant=False`.
Where trials share data, the `group` of `add` (a label, such as the seed) makes the error that of the groups.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import ROOT
from walltime.metrics.intervals import KINDS

OUT = ROOT / "docs" / "generators" / "coverage.json"
NOMINAL = 0.90
FEW = 30
"""Trials below which a share is not judged."""


@dataclass(frozen=True)
class Sizes:
    """How much to run."""

    quick: bool = False

    def many(self, count: int, quick: int | None = None) -> int:
        """Return this many trials, or a fifteenth of them (or `quick`) in quick runs."""
        return count if not self.quick else quick or max(count // 15, 20)

    def some(self, cases: Sequence[Any]) -> Sequence[Any]:
        """Return all cases, or the second one with `--quick`."""
        return cases[1:2] if self.quick else cases


@dataclass
class Trials:
    """The trials of one case: how often the interval held the truth, and how often there was none."""

    case: str
    nominal: float = NOMINAL
    meant: bool = True
    """whether the interval claims this; False for what readers might take it for"""
    held: list[bool] = field(default_factory=list)
    groups: list[Hashable] = field(default_factory=list)
    why: Counter[str] = field(default_factory=Counter)

    def add(self, low: float, high: float, truth: float, group: Hashable = None) -> None:
        """Count an interval; `group`: trials with the same label share data."""
        self.held.append(bool(low <= truth <= high))
        self.groups.append(len(self.groups) if group is None else group)

    def withhold(self, why: str) -> None:
        """Count a trial without an interval."""
        self.why[why] += 1

    @property
    def measured(self) -> float:
        """Share of the given intervals that hold the truth; nan without any."""
        return sum(self.held) / len(self.held) if self.held else math.nan

    @property
    def error(self) -> float:
        """Standard error of `measured`, from sums over groups; never below that of a trial that failed once in all."""
        count = len(self.held)
        if not count:
            return math.nan
        share = (sum(self.held) + 0.5) / (count + 1)
        single = share * (1 - share) / count
        labels = list(dict.fromkeys(self.groups))
        if len(labels) in (1, count):
            return math.sqrt(single)
        places = {label: k for k, label in enumerate(labels)}
        left = np.bincount([places[label] for label in self.groups], weights=np.array(self.held) - self.measured)
        return math.sqrt(max(single, float(left @ left) / count**2))

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        trials, withheld = len(self.held), sum(self.why.values())
        value: dict[str, Any] = {"case": self.case, "nominal": self.nominal, "meant": self.meant, "trials": trials, "withheld": withheld}
        value |= {"measured": self.measured, "error": self.error} if trials else {"measured": None, "error": None}
        return value | {"why": [why for why, _ in self.why.most_common(1)]}


@dataclass(frozen=True)
class Experiment:
    """How often one kind of interval holds the truth."""

    name: str
    of_what: str
    command: str
    run: Callable[[Sizes], Sequence[Trials]]
    quick: bool = False
    """whether its quick form is among the tests of every run"""

    @property
    def kind(self) -> str:
        """The declared kind."""
        return self.name.partition(":")[0]


EXPERIMENTS: dict[str, Experiment] = {}


def experiment(name: str, of_what: str, command: str, *, quick: bool = False) -> Callable[[Any], Any]:
    """Register an experiment; `quick`: its quick form takes under a second or two, so that every run of the tests has it."""
    if name.partition(":")[0] not in KINDS:
        raise ValueError(f"{name!r} is not a kind of interval; declare it in walltime.metrics.intervals")
    if name in EXPERIMENTS:
        raise ValueError(f"there are two experiments {name!r}")

    def register(run: Callable[[Sizes], Sequence[Trials]]) -> Callable[[Sizes], Sequence[Trials]]:
        EXPERIMENTS[name] = Experiment(name, of_what, command, run, quick)
        return run

    return register


def load() -> dict[str, Experiment]:
    """All experiments, in the order of the declared kinds."""
    for path in sorted(Path(__file__).parent.glob("coverage_*.py")):
        importlib.import_module(f"validation.{path.stem}")
    order = list(KINDS)
    return dict(sorted(EXPERIMENTS.items(), key=lambda item: order.index(item[1].kind)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run experiments, store and print what they found; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME", help="an experiment, or those whose names begin so")
    parser.add_argument("--quick", action="store_true", help="small sizes, to try it out")
    parser.add_argument("--out", type=Path, help="the file that keeps what is found (docs/generators/coverage.json; with --quick none)")
    given = parser.parse_args(arguments)
    out = given.out or (None if given.quick else OUT)
    known = load()
    begins = tuple(name for name in given.only if name not in known)
    chosen = [one for name, one in known.items() if name in given.only or name.startswith(begins)]
    if not chosen:
        print(f"no experiment begins with {', '.join(given.only)}. Valid names: {', '.join(known)}", file=sys.stderr)
        return 2
    for one in chosen:
        begun = time.perf_counter()
        cases = [trials.as_dict() for trials in one.run(Sizes(given.quick))]
        print(f"{one.name} ({one.of_what}; {one.command}), {time.perf_counter() - begun:.0f} s", flush=True)
        for case in cases:
            print(f"    {in_words(case)}", flush=True)
        if out is not None:
            store(out, one, cases, known, quick=given.quick)
    return 0


def in_words(case: dict[str, Any]) -> str:
    """A case in a line."""
    share = "none given" if case["measured"] is None else f"{100 * case['measured']:.1f} ± {100 * case['error']:.1f} of {case['trials']:,}"
    withheld = f"; withheld {case['withheld']:,} times ({case['why'][0]})" if case["withheld"] else ""
    return f"{case['case']}: nominal {100 * case['nominal']:.0f}, measured {share}{withheld}{'' if case['meant'] else ' (not meant)'}"


def store(file: Path, one: Experiment, cases: Sequence[dict[str, Any]], known: dict[str, Experiment], *, quick: bool) -> None:
    """Put what an experiment found into the file, which keeps the others, those that are not `known` last; whole or not at all."""
    from validation.run import rounded

    stored = json.loads(file.read_text()) if file.exists() else {}
    stored[one.name] = {"of_what": one.of_what, "command": one.command, "quick": quick, "cases": list(cases)}
    temporary = file.with_suffix(".new")
    ordered = {name: stored[name] for name in (*known, *stored) if name in stored}
    temporary.write_text(json.dumps(rounded(ordered), indent=1, allow_nan=False) + "\n")
    temporary.replace(file)


if __name__ == "__main__":
    from validation.coverage import main as run  # the experiments register with the imported module, not with the script

    sys.exit(run())
