"""The auditor: seconds for all rules of a policy, on a real log and on many generated jobs."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.common import Options, Result, lublin, paper_logs, show, take_turns, wall_seconds
from benchmarks.predicting import with_users
from walltime.simulation import simulate
from walltime.workload import Workload

POLICIES = ("fcfs", "easy", "easy:order=wfp", "easy++", "conservative", "conservative-scratch", "relaxed", "los", "selective")
MANY = ("easy", "conservative")
"""The policies of the schedules of many jobs."""


def audits(options: Options) -> Result:
    """Seconds for the audit of schedules, all columns given, once the checks are compiled."""
    logs = {name: log for name, log in paper_logs(options).items() if name.startswith("KTH")}
    logs = logs or {"Lublin'99 at load 0.8": with_users(lublin(options.size(28_000, 2_000), 0.8))}
    many = {"Lublin'99 at load 0.7": with_users(lublin(options.size(300_000, 5_000), 0.7))}
    result: Result = {"workloads": {}}
    rows = []
    for name, workload, policies in [*((n, w, POLICIES) for n, w in logs.items()), *((n, w, MANY) for n, w in many.items())]:
        works = {policy: _work(workload, policy) for policy in policies}
        for work in works.values():
            work()  # compiles
        taken = take_turns(works, options)
        result["workloads"][name] = {"jobs": len(workload), "seconds": taken}
        rows += [(name, f"{len(workload):,}", policy, f"{taken[policy]['median']:.2f}") for policy in policies]
    show("audits, seconds", ("workload", "jobs", "policy", "seconds"), rows)
    return result


def _work(workload: Workload, policy: str) -> Callable[[], float]:
    schedule = simulate(workload, policy)

    def audited() -> None:
        report = schedule.audit()
        if not report.ok:
            raise RuntimeError(f"{policy}: {report}")

    return lambda: wall_seconds(audited)
