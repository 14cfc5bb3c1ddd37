"""Fits queue orders to logs and tests them on later months; stores what that gains.

    python validation/tuning.py [--only LOG ...] [--budget N] [--out FILE]

Stores the results in docs/generators/tuning.json, which docs/guides/orders.md is made from. Logs are looked for in the folder that
WALLTIME_TRACES names. One core takes a minute for KTH and five for BLUE.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import ROOT, find_log
from validation.run import rounded
from walltime import read
from walltime.tuning import tune

OUT = ROOT / "docs" / "generators" / "tuning.json"
LOGS = {"KTH-SP2": "KTH-SP2-1996-2.1-cln", "SDSC-BLUE": "SDSC-BLUE-2000-4.x-cln"}
"""The beginning of each file's name."""
KINDS: tuple[dict[str, Any], ...] = (
    {"score": "power", "where": "order"},
    {"score": "linear", "where": "order"},
    {"score": "power", "where": "backfill-order"},
)


def measure(prefix: str, budget: int, workers: int | None) -> dict[str, Any] | None:
    """The results on a log; None where it is not there."""
    file = find_log(prefix)
    if file is None:
        return None
    workload = read(file)
    found: dict[str, Any] = {"budget": budget, "fitted": []}
    for kind in KINDS:
        begin = time.perf_counter()
        one = tune(workload, budget=budget, workers=workers, **kind)
        found["fitted"].append(one.as_dict() | {"seconds": time.perf_counter() - begin})
        print(prefix, one.scheduler, *one.verdict, sep="\n  ", flush=True)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, store, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=LOGS, metavar="LOG", help=f"of {', '.join(LOGS)}")
    parser.add_argument("--budget", type=int, default=150, help="candidates of each search (150)")
    parser.add_argument("--workers", type=int, help="threads; by default one per core")
    parser.add_argument("--out", type=Path, default=OUT, help="the file that keeps what is found (docs/generators/tuning.json)")
    given = parser.parse_args(arguments)
    stored = json.loads(given.out.read_text()) if given.out.exists() else {}
    for name in given.only or LOGS:
        found = measure(LOGS[name], given.budget, given.workers)
        if found is None:
            print(f"{name}: not there")
            continue
        stored = {one: rounded(found) if one == name else stored[one] for one in LOGS if one == name or one in stored}
        given.out.write_text(json.dumps(stored, indent=1, allow_nan=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
