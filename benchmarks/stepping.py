"""Looking ahead with `walltime.Simulation`: copies, steps, states and submissions in the middle of a log."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from benchmarks.common import Numbers, Options, Result, lublin, paper_logs, show
from walltime import Simulation
from walltime.machine import Machine, Partition, Pool
from walltime.workload import Workload

POLICIES = ("easy", "easy:order=sjf", "conservative", "slack", "easy:predictor=tsafrir07", "easy:predictor=quantile")
MOST_NODES = 512
ON_POOLS, ON_NODES = ("easy", "conservative", "easy:predictor=tsafrir07"), ("slurm", "oar")


def stepping(options: Options) -> Result:
    """Microseconds of each call, median; the first copy of a simulation has to make it small."""
    logs = paper_logs(options) or {"lublin99": lublin(options.size(30_000, 1_000), 0.7)}
    runs, found = options.size(200, 5), dict[str, Numbers]()
    for name, log in logs.items():
        found |= {f"{name}, {policy}": _calls(log, policy, runs) for policy in POLICIES}
        if log.machine_procs <= MOST_NODES:
            found |= {f"{name}, two pools, {policy}": _calls(log, policy, runs, _machine(log, 2)) for policy in ON_POOLS}
            found |= {f"{name}, nodes, {policy}": _calls(log, policy, runs, _machine(log, 1)) for policy in ON_NODES}
    names = ("first copy", "copy", "step", "state", "copy and submit")
    rows = [(what, one["waiting"], *(f"{one[name]:,.0f}" for name in names)) for what, one in found.items()]
    show("Looking ahead: µs of a call", ("log and policy", "waiting", *names), rows)
    return {"calls": found}


def _machine(log: Workload, pools: int) -> Machine:
    """Return nodes of one processor in this many pools, which all jobs may use."""
    names = tuple(f"p{k}" for k in range(pools))
    sizes = [log.machine_procs // pools + (k < log.machine_procs % pools) for k in range(pools)]
    return Machine(tuple(map(Pool, names, sizes, [1] * pools)), (Partition("all", names),))


def _calls(log: Workload, policy: str, runs: int, machine: Machine | None = None) -> Numbers:
    """Microseconds of calls in the middle of a log, and how many jobs wait then."""
    simulation = Simulation(log, policy, machine=machine)
    simulation.run_until(int(log.submit[len(log) // 2]))
    first = _median(simulation.copy, 1)
    ahead = simulation.copy()

    def submit() -> None:
        other = simulation.copy()
        other.submit({"submit": simulation.now + 1, "runtime": 3600, "procs": 1})
        other.state()  # goes on with the job

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
