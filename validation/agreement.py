"""The effect of interpretations of open points on the averages, compared with the effect of shaking submit times.

Also the agreement of both engines on whole logs, job for job.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import walltime as wt
from validation.common import Array, Numbers, Simulate, Sizes, describe_logs, find_logs, tell
from walltime.metrics import Summary, paired_difference

MEASURES = ("mean_response", "mean_bounded_slowdown")
SHAKE = 30
"""Seconds by which submit times are shaken."""
CONFIDENCE = 0.95
BAND = (5, 95)
"""Percentiles of the shaken runs."""

Reading = Callable[[wt.Workload, Simulate], Summary]


def _reading(policy: wt.policy.Policy, trim: str = "none", **options: str) -> Reading:
    return lambda workload, simulate: simulate(workload, policy, **options).summary(trim)


READINGS: dict[str, dict[str, Reading]] = {
    "easy": {
        "": _reading(wt.Easy()),
        "sequential": _reading(wt.Easy(), coincident="sequential"),
        "extend": _reading(wt.Easy(), overrun="extend"),
        "overrun": _reading(wt.Easy(), overrun="continue"),
        "trimmed": _reading(wt.Easy(), trim="tsafrir06"),
    },
    "conservative": {
        "": _reading(wt.Conservative()),
        "sequential": _reading(wt.Conservative(), coincident="sequential"),
        "extend": _reading(wt.Conservative(), overrun="extend"),
        "overrun": _reading(wt.Conservative(), overrun="continue"),
        "trimmed": _reading(wt.Conservative(), trim="tsafrir06"),
        "from scratch": _reading(wt.Conservative(variant="scratch")),
    },
}
"""By policy; the first of each, without a name, is the default, the baseline for the others."""


def engines(log: wt.Workload, policy: wt.policy.Policy, simulate: Simulate = wt.simulate) -> Numbers:
    """Jobs that the two engines schedule differently: start, kind of start, reserved start."""
    kernel, reference = (simulate(log, policy, engine=engine) for engine in ("kernel", "reference"))
    columns = ("start", "kind", "reserved_start")
    differ = np.any([getattr(kernel, name) != getattr(reference, name) for name in columns], axis=0)
    return {"jobs": len(log), "broken": int(differ.sum())}


def percent(values: Array, baseline: Array) -> Array:
    """Differences in percent of the baseline."""
    return 100 * (values - baseline) / baseline


def readings(log: wt.Workload, policy: str, shakes: int, simulate: Simulate = wt.simulate) -> Numbers:
    """For each metric: the default's value, the band of shaken runs, and the effect of each interpretation, in percent.

    `once` is the difference on the log as it is. `mean` and `half_width` are the mean over shaken logs of the paired differences and the
    half-width of its 95 % confidence interval, in percent of the default's mean on these logs.
    """
    versions = [log, *(wt.workloads.shake(log, SHAKE, seed) for seed in range(1, shakes + 1))]
    runs = {name: [reading(version, simulate) for version in versions] for name, reading in READINGS[policy].items()}
    found: Numbers = {}
    for measure in MEASURES:
        values = {name: np.array([getattr(summary, measure) for summary in summaries]) for name, summaries in runs.items()}
        usual = values.pop("")
        shaken = percent(usual[1:], usual[0])
        row: Numbers = {"value": float(usual[0]), "shaken": [float(value) for value in np.percentile(shaken, BAND)]}
        for name, other in values.items():
            interval = paired_difference(100 * other[1:] / usual[1:].mean(), 100 * usual[1:] / usual[1:].mean(), CONFIDENCE)
            once = float(percent(other[:1], usual[:1])[0])
            row[name] = {"once": once, "mean": interval.mean, "half_width": interval.half_width}
        found[measure] = row
    return found


def run(sizes: Sizes) -> Numbers:
    """Everything of this part, ready for JSON."""
    logs = find_logs(sizes)
    result: Numbers = {"shakes": sizes.shakes, "shake": SHAKE, "logs": describe_logs(logs), "engines": {}, "readings": {}}
    for name, log in logs.items():
        tell(f"agreement: {name}")
        result["logs"][name]["over"] = int((log.runtime > log.requested).sum())
        compared = {"easy": wt.Easy(), **({"conservative": wt.Conservative()} if len(log) <= sizes.reference else {})}
        result["engines"][name] = {label: engines(log, policy) for label, policy in compared.items()}
        result["readings"][name] = {policy: readings(log, policy, sizes.shakes) for policy in READINGS}
    return result


def failures(result: Numbers) -> list[str]:
    """The failures, in words; interpretations may differ, engines may not."""
    return [
        f"the engines differ on {log} under {policy} for {found['broken']} jobs"
        for log, by_policy in result["engines"].items()
        for policy, found in by_policy.items()
        if found["broken"]
    ]
