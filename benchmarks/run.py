"""Measures speed and memory. `make bench` calls it; ARGS passes these arguments on.

    python benchmarks/run.py [--only NAME ...] [--quick] [--full] [--out FILE]

Each section prints a table and stores its numbers in the file, with the machine, the versions and the load before it began.
Sections that are not run keep the numbers stored earlier, so that a long measurement can be continued. Run it while nothing
else runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import (
    audits,
    batches,
    campaigns,
    compression,
    costs,
    later,
    learning,
    limit,
    nodes,
    pages,
    predicting,
    reading,
    speed,
    starts,
    stepping,
)
from benchmarks.common import ROOT, Numbers, Options, Result, environment

OUT = ROOT / "docs" / "generators" / "performance.json"
SECTIONS: dict[str, Callable[[Options], Result]] = {
    "throughput": speed.throughput,
    "limit": limit.limit,
    "later": later.later,
    "growth": speed.growth,
    "depth": speed.depth,
    "batch": batches.batch,
    "threads": batches.threads,
    "dynamics": batches.dynamics,
    "predictions": predicting.predictions,
    "starts": starts.starts,
    "nodes": nodes.nodes,
    "compression": compression.compression,
    "audits": audits.audits,
    "stepping": stepping.stepping,
    "learning": learning.learning,
    "campaign": campaigns.campaign,
    "memory": costs.memory,
    "making": costs.making,
    "reading": reading.reading,
    "start": costs.start,
    "pages": pages.pages,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, metavar="NAME", help=f"sections to run: {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="small sizes, to try the measurements out")
    parser.add_argument("--full", action="store_true", help="also the measurements that take many minutes")
    parser.add_argument("--runs", type=int, default=None, help="runs of the short measurements (10; 3 with --quick)")
    parser.add_argument("--long-runs", type=int, default=None, help="runs of what takes over some seconds (3; 1 with --quick)")
    parser.add_argument("--out", type=Path, help="the file that keeps the numbers (docs/generators/performance.json; with --quick none)")
    given = parser.parse_args(arguments)
    options = Options(
        runs=given.runs or (3 if given.quick else 10),
        long_runs=given.long_runs or (1 if given.quick else 3),
        quick=given.quick,
        full=given.full,
    )
    out = given.out or (None if given.quick else OUT)
    for name in given.only or SECTIONS:
        about = environment() | {"quick": options.quick}
        print(f"\n== {name} (load before: {about['load_before']:.2f} on {about['cores']} cores; {about['cpu']})", flush=True)
        section = {"environment": about, "result": SECTIONS[name](options)}
        if out is not None:
            store(out, name, section)


def store(file: Path, name: str, section: Numbers) -> None:
    """Put a section's numbers into the file, which keeps the others; completely or not at all."""
    numbers = json.loads(file.read_text()) if file.exists() else {}
    numbers[name] = section
    ordered = {known: numbers[known] for known in (*SECTIONS, "against") if known in numbers}
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps(ordered, indent=1, allow_nan=False) + "\n")
    temporary.replace(file)


if __name__ == "__main__":
    main()
