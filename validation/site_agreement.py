"""Measures how well a simulation agrees with recorded logs, before and after `walltime infer`, on parts of the logs that were not used.

    python validation/site_agreement.py [LOG ...] [--json] [--out FILE]

The results for each log are one-step agreement (F1 of prompt starts, and of all starts), and the shares of the policy's proposals that were
followed and followed promptly. For a free simulation: mean wait, rank correlation of waits, starts within 10 min, and the calibration
error. Both are measured under plain EASY and with the inferred rules. The recorded mean wait is printed too, and the ceiling: the
simulation with the rules against itself, with submissions shaken by 30 s. The last line uses, in hindsight, the time at which each job
seems to have become eligible. Without LOG all logs of the folder that WALLTIME_TRACES names are read; logs without waits are named.
`--out docs/generators/site-agreement.json` stores the numbers of the table in docs/validation/site-inference.md.
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

import walltime as wt
from tests.traces import trace_folder
from walltime.inference import infer
from walltime.inference.inference import FreeRun
from walltime.inference.one_step import Score
from walltime.inference.rule_search import MOST_MISFITS


def measured(path: Path) -> dict[str, Any]:
    """Return the results for a log: its name, CPU seconds, and the code `why_not` if it could not be compared."""
    name = path.name.removesuffix(".swf.gz")
    workload = wt.read(path)
    wait = workload.recorded_wait
    if wait is None or not (wait > 0).any():
        return {"log": name, "why_not": "no_waits"}
    begin = time.process_time()
    inference = infer(workload)
    row: dict[str, Any] = {"log": name, "jobs": len(workload), "seconds": round(time.process_time() - begin, 1)}
    if inference.refused:
        if inference.misfits > MOST_MISFITS:
            return row | {"why_not": "too_few_processors", "misfits": round(inference.misfits, 3), "procs": workload.machine_procs}
        return row | {"why_not": "no_rule"}
    plain, ruled, ceiling, late = inference.free
    return row | {
        "judged": plain.jobs,
        "mean_recorded": round(plain.mean_recorded),
        "prompt_within": inference.after.within,
        "before": {**shares(inference.before), **free(plain)},
        "after": {**shares(inference.after), **free(ruled)},
        "ceiling": {"rank_correlation": round(ceiling.rank_correlation, 3), "within_600": round(ceiling.within, 3)},
        "by_hindsight": {**shares(inference.hindsight), **free(late)},
        "rules": [rule.text for rule in inference.rules],
    }


def shares(score: Score) -> dict[str, float]:
    """Return the one-step agreement (F1 of prompt starts, and of all starts), and the shares of proposals that were followed."""
    names = {"one_step": "prompt_f1", "however_late": "f1", "followed": "followed", "followed_promptly": "followed_promptly"}
    return {own: round(getattr(score, name), 3) for own, name in names.items()}


def free(run: FreeRun) -> dict[str, Any]:
    """Return the numbers of a free run; `trusted_from` is None if the calibration supports no difference."""
    return {
        "mean_wait": round(run.mean_simulated),
        "rank_correlation": round(run.rank_correlation, 3),
        "within_600": round(run.within, 3),
        "trusted_from": None if run.doubt else round(run.trusted_from),
        "threshold": round(run.trusted_from),
    }


def shown(row: dict[str, Any]) -> str:
    """Return a row as text."""
    if "why_not" in row:
        return f"{row['log']:32} {row['why_not']}"

    def both(name: str, form: str = "{:.3f}", unit: float = 1) -> str:
        return " -> ".join(form.format(row[which][name] / unit) for which in ("before", "after"))

    parts = [
        f"one-step {both('one_step')} (however late {both('however_late')})",
        f"proposals followed {both('followed')}, promptly (within {row['prompt_within']} s) {both('followed_promptly')}",
        f"mean wait {both('mean_wait', '{:.2f}', 3600)} h (recorded {row['mean_recorded'] / 3600:.2f})",
        f"rank {both('rank_correlation')} (ceiling {row['ceiling']['rank_correlation']:.3f})",
        f"within 10 min {both('within_600', '{:.0%}')}",
        f"with eligible times in hindsight: one-step {row['by_hindsight']['one_step']:.3f}, mean wait "
        f"{row['by_hindsight']['mean_wait'] / 3600:.2f} h, rank {row['by_hindsight']['rank_correlation']:.3f}",
        f"off by up to {both('threshold', '{:.2f}', 3600)} h",
        f"{row['seconds']:.0f} s",
    ]
    return f"{row['log']:32} {', '.join(parts)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each log; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", nargs="*", type=Path, help="logs; by default all of the folder that WALLTIME_TRACES names")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    parser.add_argument("--out", type=Path, help="keep the numbers in this file, those of other logs stay")
    given = parser.parse_args(arguments)
    logs = given.log or sorted(trace_folder().glob("*.swf.gz"))
    if not logs:
        print(f"there are no logs in {trace_folder()}; name some, or set WALLTIME_TRACES", file=sys.stderr)
        return 2
    rows = []
    for path in logs:
        rows.append(measured(path))
        if not given.json:
            print(shown(rows[-1]), flush=True)
        if given.out is not None:
            kept = {row["log"]: row for row in json.loads(given.out.read_text())} if given.out.exists() else {}
            kept |= {row["log"]: row for row in rows}
            given.out.write_text(json.dumps([kept[name] for name in sorted(kept)], indent=1) + "\n")
    if given.json:
        print(json.dumps(rows, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
