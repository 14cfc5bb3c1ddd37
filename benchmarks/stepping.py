"""Looking ahead with `walltime.Simulation`: copies, steps, states and submissions in the middle of a log."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from benchmarks.common import Numbers, Options, Result, lublin, paper_logs, show
from walltime import Simulation
from walltime.workload import Workload

POLICIES = ("easy", "easy:order=sjf", "conservative", "slack", "easy:predictor=tsafrir07")


def stepping(options: Options) -> Result:
    """Microseconds of each call, median; the first copy of a simulation has to make it small."""
    logs = paper_logs(options) or {"lublin99": lublin(options.size(30_000, 1_000), 0.7)}
    found = {f"{name}, {policy}": _calls(log, policy, options.size(200, 5)) for name, log in logs.items() for policy in POLICIES}
    names = ("first copy", "copy", "step", "state", "copy and submit")
    rows = [(what, one["waiting"], *(f"{one[name]:,.0f}" for name in names)) for what, one in found.items()]
    show("Looking ahead: µs of a call", ("log and policy", "waiting", *names), rows)
    return {"calls": found}


def _calls(log: Workload, policy: str, runs: int) -> Numbers:
    """Microseconds of calls in the middle of a log, and how many jobs wait then."""
    simulation = Simulation(log, policy)
    simulation.run_until(int(log.submit[len(log) // 2]))
    first = _median(simulation.copy, 1)
    ahead = simulation.copy()

    def submit() -> None:
        simulation.copy().submit({"submit": simulation.now + 1, "runtime": 3600, "procs": 1})

    calls: dict[str, Callable[[], object]] = {
        "copy": simulation.copy,
        "step": ahead.step,
        "state": simulation.state,
        "copy and submit": submit,
    }
    waiting = len(simulation.state().queue)
    return {"waiting": waiting, "first copy": first} | {name: _median(call, runs) for name, call in calls.items()}


def _median(call: Callable[[], object], runs: int) -> float:
    """Median of some calls, µs."""
    taken = []
    for _ in range(runs):
        begin = time.perf_counter()
        call()
        taken.append(1e6 * (time.perf_counter() - begin))
    return statistics.median(taken)
