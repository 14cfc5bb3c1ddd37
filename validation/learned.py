"""Trains agents by several seeds, compares them with formulas on later windows, and stores what came out.

    OPENBLAS_NUM_THREADS=1 python validation/learned.py [--only LOG ...] [--seeds N] [--episodes N] [--store DIR] [--out FILE]

Stores the results in docs/generators/learned.json, which docs/guides/learning.md is made from. Logs are looked for in the folder that
WALLTIME_TRACES names. The agents are kept in a folder, and training goes on from there. Each agent takes two minutes of one core; with
the threads that numpy would use more, as its matrices are small.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import ROOT, cpu_model, find_log
from validation.importances import importances
from validation.run import rounded
from walltime import Workload, read
from walltime.learn import TrainingSettings, evaluate, train
from walltime.workloads import Lublin99

OUT = ROOT / "docs" / "generators" / "learned.json"
LOGS = {"Lublin99": None, "SDSC-SP2": "SDSC-SP2-1998-4.x-cln"}
"""The beginning of each file's name; None: generated."""


def find(name: str) -> Workload | None:
    """The jobs; None where the log is not there."""
    prefix = LOGS[name]
    if prefix is None:
        return Lublin99().generate(jobs=50_000, machine_procs=256, load=0.6, seed=1)
    file = find_log(prefix)
    return None if file is None else read(file)


def measure(name: str, workload: Workload, seeds: int, episodes: int, store: Path) -> dict[str, Any]:
    """The agents' training, and the comparison."""
    settings = TrainingSettings(episodes=episodes)
    agents = []
    for seed in range(1, seeds + 1):
        agents.append(train(workload, store / f"{name}-{seed}", seed=seed, settings=settings))
        print(name, seed, agents[-1].progress[-1], flush=True)
    found = evaluate(agents, workload)
    print(name, *found.verdict, sep="\n  ", flush=True)
    kept = found.as_dict() | {"importances": [asdict(one) for one in importances(agents, workload)]}
    for row, agent in zip(kept["agents"], agents, strict=True):
        last = agent.progress[-1]
        row |= {"seconds": last["seconds"], "cpu_seconds": last["cpu_seconds"], "iterations": agent.done}
        row |= {"decisions": sum(one["decisions"] for one in agent.progress)}
        row |= {"validation": [(one["iteration"], one["validation"]) for one in agent.progress if "validation" in one]}
    return kept | {"processor": cpu_model(), "cores": os.cpu_count()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, store, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=LOGS, metavar="LOG", help=f"of {', '.join(LOGS)}")
    parser.add_argument("--seeds", type=int, default=5, help="agents for each log (5)")
    parser.add_argument(
        "--episodes", type=int, default=TrainingSettings().episodes, help=f"of each training ({TrainingSettings().episodes:,})"
    )
    parser.add_argument("--store", type=Path, default=ROOT / "learned", help="the folder of the agents (learned)")
    parser.add_argument("--out", type=Path, default=OUT, help="the file that keeps what is found (docs/generators/learned.json)")
    given = parser.parse_args(arguments)
    for name in given.only or LOGS:
        workload = find(name)
        if workload is None:
            print(f"{name}: not there")
            continue
        found = rounded(measure(name, workload, given.seeds, given.episodes, given.store))
        stored = json.loads(given.out.read_text()) if given.out.exists() else {}
        stored = {one: found if one == name else stored[one] for one in LOGS if one == name or one in stored}
        given.out.write_text(json.dumps(stored, indent=1, allow_nan=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
