"""Speed of every policy on KTH-SP2, relative to EASY."""

from __future__ import annotations

from functools import partial

from benchmarks.common import Options, Result, find_log, kernel_seconds, read_log, show, take_turns
from walltime.policy import parse_policy, policy_variants


def later(options: Options) -> Result:
    """Seconds of each policy on the KTH log, and how often EASY's; the policies take turns."""
    path = find_log("KTH-SP2-1996-2")
    if path is None:
        return {}
    workload = read_log(path)
    seconds = take_turns({label: partial(kernel_seconds, workload, parse_policy(label)) for label in policy_variants()}, options)
    easy = seconds["easy"]["median"]
    rows = [(label, f"{1e3 * s['median']:.1f}", f"{s['median'] / easy:.2f}") for label, s in seconds.items()]
    show(f"KTH-SP2-1996-2, {len(workload):,} jobs", ("policy", "ms", "EASYs"), rows)
    return {"jobs": len(workload), "policies": {label: {**s, "ratio": s["median"] / easy} for label, s in seconds.items()}}
