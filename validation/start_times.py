"""Predicts start times at many moments of simulated schedules, with what was known then, and measures how good that was.

    python validation/start_times.py [--moments N] [--samples N] [--out FILE]

The truth is a log's schedule under EASY; a prediction knows the jobs that run and wait at its moment, and of the log those that had ended.
Calibrated are intervals by what had become of the predictions before, as far as it was known then. Stores what it finds in
docs/start-times.json, which docs/guides/start-times.md is made from. Logs are looked for in the folder that WALLTIME_TRACES names.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import ROOT, find_log
from validation.run import rounded
from walltime.live import outcomes, scores_of
from walltime.live.scores import Outcome, calibrated
from walltime.logs import read
from walltime.schedule import simulate

OUT = ROOT / "docs" / "start-times.json"
LOGS = {"KTH-SP2": "KTH-SP2-1996-2.1-cln", "CTC-SP2": "CTC-SP2-1996-3.1-cln"}
"""By the beginning of their file names."""
SEED = 20


def measure(prefix: str, moments: int, samples: int) -> dict[str, Any] | None:
    """The scores on a log; None where it is not there."""
    file = find_log(prefix)
    if file is None:
        return None
    workload = read(file)
    truth = simulate(workload, "easy")
    first, last = int(workload.submit[-1]) // 4, int(workload.submit[-1])
    chosen = np.sort(np.random.default_rng(SEED).integers(first, last, moments)).tolist()
    begin = time.perf_counter()
    found = outcomes(truth, chosen, samples=samples, seed=SEED)
    seconds = time.perf_counter() - begin
    return {
        "moments": moments,
        "samples": samples,
        "snapshots": len({one.made for one in found}),
        "predictions": len(found),
        "seconds": seconds,
        "raw": _rows(found),
        "calibrated": _rows(calibrated(found)),
    }


def _rows(found: Sequence[Outcome]) -> list[dict[str, Any]]:
    return [{name: value for name, value in one.as_dict().items() if value == value} for one in scores_of(found)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, store, and print one line for each log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=600, help="snapshots of each log (600)")
    parser.add_argument("--samples", type=int, default=100, help="simulations from each (100)")
    parser.add_argument("--out", type=Path, default=OUT, help="the file that keeps what is found (docs/start-times.json)")
    given = parser.parse_args(arguments)
    stored = json.loads(given.out.read_text()) if given.out.exists() else {}
    for name, prefix in LOGS.items():
        found = measure(prefix, given.moments, given.samples)
        if found is None:
            print(f"{name}: not there")
            continue
        stored[name] = rounded(found)
        given.out.write_text(json.dumps(stored, indent=1, allow_nan=False) + "\n")
        for kind in ("raw", "calibrated"):
            shown = [(row["name"], row["jobs"], f"{row['inside']:.1%}", f"{row['error'] / 60:.0f} min") for row in found[kind]]
            print(name, kind, shown, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
