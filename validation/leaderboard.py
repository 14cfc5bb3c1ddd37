"""Runs all benchmark suites under the built-in policies and stores the standings for the documentation.

    python validation/leaderboard.py [--only SUITE ...] [--results DIR] [--workers N] [--out FILE]

Stores them in docs/generators/leaderboard.json, which docs/guides/audit.md is made from; the results themselves stay in DIR: an
interrupted run goes on, and results that are there are not run again. The logs of the suite `archive` are looked for as the command does.
One core takes a quarter of an hour.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import ROOT
from validation.run import rounded
from walltime.benchmark import SUITES, leaderboard, read_result, read_suite, run_suite
from walltime.benchmark.result import file_name
from walltime.tuning.fitting import SIMPLE

OUT = ROOT / "docs" / "generators" / "leaderboard.json"
OTHERS = [name for name in SIMPLE if name != "fcfs"]
POLICIES = (
    *("fcfs", "easy", "easy++", "conservative", "hybrid:depth=0", "hybrid:depth=4"),
    *("relaxed", "selective", "los", "multiqueue", "slack"),
    *(f"easy:order={name}" for name in OTHERS),
    *(f"easy:backfill-order={name}" for name in OTHERS),
    *(f"conservative:order={name}" for name in OTHERS),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, store, and print the lowest of each suite."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SUITES, metavar="SUITE", help=f"of {', '.join(SUITES)}")
    parser.add_argument("--results", type=Path, default=Path("benchmark-results"), help="the folder of the results (benchmark-results)")
    parser.add_argument("--workers", type=int, help="threads; by default one per core")
    parser.add_argument("--out", type=Path, default=OUT, help="the file that keeps the standings (docs/generators/leaderboard.json)")
    given = parser.parse_args(arguments)
    stored = json.loads(given.out.read_text()) if given.out.exists() else {}
    for name in given.only or SUITES:
        suite, results = read_suite(name), []
        for policy in POLICIES:
            path = given.results / file_name(suite, policy)
            if not path.exists():
                run_suite(suite, policy, path, workers=given.workers)
                print(name, policy, flush=True)
            results.append(read_result(path))
        rows = [rounded(asdict(one)) for one in leaderboard(results)[name]]
        found = {"version": suite.version, "definition": suite.definition, "title": suite.title, "rows": rows}
        stored = {one: found if one == name else stored[one] for one in SUITES if one == name or one in stored}
        given.out.write_text(json.dumps(stored, indent=1, allow_nan=False) + "\n")
        print(name, f"{rows[0]['remark']}:", rows[0]["scheduler"], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
