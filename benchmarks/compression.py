"""Conservative backfilling: how many reservations a compression really moves, and what finding them costs the kernel.

    python benchmarks/run.py --only compression

A simulation is stopped after every event, and the reservations before and after are compared. An oracle that knew all moves would still
have to change the steps of the plan that only the old or only the new place covers, which is a lower bound. The kernel's work is counted
in the same code without the compiler, on fewer jobs.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from benchmarks.common import MODEL_PROCS, Options, Result, child, find_log, kernel_seconds, lublin, read_log, show, spread
from walltime.engine.interface.number import NumberEngine
from walltime.engine.problem import Problem
from walltime.estimates import FModel, effective_times
from walltime.policy import Conservative, Easy
from walltime.workload import Workload

LOGS = {"KTH": "KTH-SP2-1996-2.swf", "Mira": "ALCF-Mira", "BLUE": "SDSC-BLUE"}
DEEP = "Lublin'99, deep"
LARGE = "Lublin'99, of Curie's size"
"""As many jobs, processors and as much load as CEA-Curie-2011-2.1-cln."""
GENERATED = {DEEP: (30_000, 1.2, MODEL_PROCS), LARGE: (295_540, 0.62, 93_312)}
"""Jobs, load and processors; estimates are up to 4 times the runtime."""
COUNTED = 1_500
"""Number of jobs simulated without the compiler, to count the kernel's work."""


def compression(options: Options) -> Result:
    """Return moves and steps by log, and the seconds of conservative backfilling and EASY."""
    result: Result = {}
    rows = []
    for name in [*LOGS, *GENERATED][: options.size(len(LOGS) + len(GENERATED), 1)]:
        workload = workload_of(name)
        if workload is None:
            continue
        print(f"  {name}: {len(workload):,} jobs, stopped after every event", file=sys.stderr, flush=True)
        found = moves(workload)
        taken = {
            policy.name: spread([kernel_seconds(workload, policy) for _ in range(options.long_runs)]) for policy in (Easy(), Conservative())
        }
        print(f"  {name}: the kernel's own steps, on {COUNTED:,} jobs", file=sys.stderr, flush=True)
        part = child("compression_work", name, COUNTED, variables={"NUMBA_DISABLE_JIT": "1"})
        result[name] = found | {"jobs": len(workload), "seconds": taken, "part": part}
        ratio = taken["conservative"]["median"] / taken["easy"]["median"]
        rows.append((name, *(f"{found[key]:,}" for key in ("compressions", "waiting", "moves", "steps")), f"{ratio:.0f}"))
    show("conservative backfilling", ("log", "compressions", "waiting there", "moves", "steps of an oracle", "of EASY's time"), rows)
    return result


def workload_of(name: str) -> Workload | None:
    """A log, or a generated workload; None if the log is missing."""
    if name in GENERATED:
        return lublin(*GENERATED[name]).with_estimates(FModel(4), seed=1)
    file = find_log(LOGS[name])
    return None if file is None else read_log(file)


def engine_of(workload: Workload) -> NumberEngine:
    """Conservative backfilling before the first event."""
    runtime, planned = effective_times(workload, "kill")
    return NumberEngine(Problem(workload.submit, runtime, planned, workload.procs, workload.machine_procs, Conservative()))


def moves(workload: Workload) -> Result:
    """Compressions, the jobs that wait when they begin, the reservations that move, and the steps that an oracle would change for them."""
    engine, length = engine_of(workload), effective_times(workload, "kill")[1]
    memory = engine._memory
    reserved, counts = np.full(len(workload), -1), dict.fromkeys(("compressions", "waiting", "moves", "steps"), 0)
    before, ran = np.zeros(0, np.int64), _running(memory)
    more = True
    while more:
        more = engine.step()
        runs, waiting = _running(memory), memory.queue.job[int(memory.state.queue_first) : int(memory.state.queue_last)].astype(np.int64)
        starts, old = memory.reservations.plan.waiting[: len(waiting)].start.copy(), reserved[before]
        reserved[waiting] = starts
        started = memory.jobs.start[before]
        new = np.where(started >= 0, started, reserved[before])
        if (ran[1][~np.isin(ran[0], runs[0])] > engine.now).any():  # a job has ended early
            moved = np.flatnonzero(new != old)
            counts["compressions"] += 1
            counts["waiting"] += len(before)
            counts["moves"] += len(moved)
            if len(moved):
                times = np.unique(np.concatenate([[engine.now], runs[1], starts, starts + length[waiting]]))
                counts["steps"] += _steps(times, old[moved], new[moved], length[before[moved]])
        before, ran = waiting, runs
    return counts


def _running(memory: Any) -> tuple[np.ndarray, np.ndarray]:
    """The running jobs and their expected ends."""
    running = memory.machine.running[: int(memory.state.running)]
    return running.job.copy(), running.expected.copy()


def _steps(times: np.ndarray, old: np.ndarray, new: np.ndarray, length: np.ndarray) -> int:
    """Steps, which begin at these times, that only the old or only the new places cover; and the begin and end of the new ones."""
    first, second = np.minimum(new + length, old), np.maximum(new + length, old)
    place = np.searchsorted(times, np.stack([new, first, second, old + length]))
    return int((place[1] - place[0] + place[3] - place[2] + 2).sum())


def work(name: str, count: int) -> dict[str, int]:
    """Count the kernel's work on the first jobs of a workload, with Numba switched off."""
    from walltime.engine.kernel.number import candidates, conservative
    from walltime.engine.kernel.plan import CHUNK

    workload = workload_of(name)
    assert workload is not None
    counts = dict.fromkeys(("tried", "search steps", "openings looked up", "chunks of 128 compared"), 0)
    first_gap, compress, may_fit = conservative.first_gap, conservative._compress, candidates._any_may_fit
    mark = candidates._mark

    def gap(steps: Any, step: Any, procs: Any, length: Any, reserved: Any) -> Any:
        found = first_gap(steps, step, procs, length, reserved)
        until = reserved if found == 0 else min(steps[found].time + length, reserved)
        while steps[step].time < until:
            counts["search steps"] += 1
            step = steps[step].next
        return found

    def tried(*arguments: Any) -> None:
        counts["tried"] += 1
        compress(*arguments)

    def marked(*arguments: Any) -> None:
        counts["openings looked up"] += 1
        mark(*arguments)

    def compared(traits: Any, first: Any, size: Any, *others: Any) -> Any:
        counts["chunks of 128 compared"] += int(size == CHUNK)
        return may_fit(traits, first, size, *others)

    conservative.first_gap, conservative._compress = gap, tried
    candidates._mark, candidates._any_may_fit = marked, compared
    part = workload.take(np.arange(min(count, len(workload))), "the first jobs")
    return {"jobs": len(part)} | moves(part) | counts
