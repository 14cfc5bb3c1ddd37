"""Find changes that let a job start sooner, by simulating the whole workload with each of them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from walltime.explanation.records import Alternative
from walltime.node_demands import runs_on_nodes
from walltime.policy import parse_policy
from walltime.schedule.schedule import Schedule
from walltime.simulation.run import run_of
from walltime.simulation.specification import Scheduler
from walltime.simulation.threads import in_threads
from walltime.workload import Array, Workload

MINUTE, HOUR, DAY = 60, 3600, 86_400
ROUND = (*(n * MINUTE for n in (1, 2, 5, 10, 15, 30)), *(n * HOUR for n in (1, 2, 3, 4, 6, 8, 12, 18)), *(n * DAY for n in (1, 2, 3, 4, 7)))
"""Round values that users often request, s."""
PIECE = 1_000_000
"""Number of simulation steps between two checks whether the job has started; a few ms."""
POLICIES = ("fcfs", "easy", "easy:backfill-order=sjf", "conservative")
POLICIES_ON_POOLS = ("fcfs", "easy", "conservative")


def alternatives(schedule: Schedule, job: int, progress: Callable[[int], None] | None = None) -> list[Alternative]:
    """Return shorter requests, fewer processors, other partitions and other policies, each with the resulting start of the job.

    A request is one of `ROUND` or the job's runtime, and never so short that the job would be killed. If the scheduler plans with a time
    other than the request, it then plans with the shorter of this time and the new request. With fewer processors, the runtime is
    unchanged. `progress` is called repeatedly with the number of completed simulations. `job`: index of the job.
    """
    before, number, changes = int(schedule.start[job]), schedule.workload.job_id[job], list(_changes(schedule, job))

    def simulate(k: int, check: Callable[[int], None]) -> int | None:
        _, _, changed, scheduler = changes[-1 - k]  # other policies first, which take longest
        return _start(schedule, changed(), scheduler, number, partial(check, 0))

    starts = in_threads(simulate, len(changes), progress=progress)[::-1]
    found = zip(changes, starts, strict=True)
    return [Alternative(what, value, start, before - start) for (what, value, *_), start in found if start is not None]


def with_request(workload: Workload, job: int, seconds: int) -> Workload:
    """Return a copy of the workload in which the job with this index requests `seconds`."""
    planned = changed_at(workload.planned, job, min(seconds, int(workload.planned[job])))
    return replace(workload, requested=changed_at(workload.requested, job, seconds), planned=planned)


def changed_at(column: Array, job: int, value: int) -> Array:
    """Return a copy of a column with another value for the job with this index."""
    changed = column.copy()
    changed[job] = value
    return changed


def _with_column(workload: Workload, name: str, job: int, value: int) -> Workload:
    """Return a copy of the workload in which the job with this index has another number of processors or partition."""
    if name == "procs":
        return replace(workload, procs=changed_at(workload.procs, job, value))
    return replace(workload, columns={**workload.columns, name: changed_at(workload.columns[name], job, value)})


def requests(requested: int, runtime: int) -> list[int]:
    """Return shorter requests, s, that would not kill the job, in descending order."""
    shortest = max(runtime, 1)
    return sorted({seconds for seconds in (shortest, *ROUND) if shortest <= seconds < requested}, reverse=True)


def sizes(procs: int) -> list[int]:
    """Return, in descending order, the powers of two below this number of processors, and the numbers from halving it repeatedly."""
    halves = {procs >> k for k in range(1, procs.bit_length())}
    powers = {1 << k for k in range(procs.bit_length()) if 1 << k < procs}
    return sorted(halves | powers, reverse=True)


def _changes(schedule: Schedule, job: int) -> Iterator[tuple[str, int | str, Callable[[], Workload], Scheduler]]:
    """Yield the kind of each change, the new value, a function that returns the changed workload, and the scheduler."""
    w, scheduler, placement = schedule.workload, Scheduler.of_schedule(schedule), schedule.placement
    for seconds in requests(int(w.requested[job]), int(schedule.runtime[job])):
        yield "request", seconds, partial(with_request, w, job, seconds), scheduler
    for procs in sizes(int(w.procs[job])):
        yield "procs", procs, partial(_with_column, w, "procs", job, procs), scheduler
    if placement is not None and "partition" in w.columns:
        for k, partition in enumerate(placement.machine.partitions):
            number = w.origin.number_of("partition", partition.name)
            if k != placement.partition[job] and number >= 0:
                yield "partition", partition.name, partial(_with_column, w, "partition", job, number), scheduler
    for text in POLICIES if placement is None else POLICIES_ON_POOLS:
        policy = parse_policy(text)
        on_nodes = placement is not None and runs_on_nodes(policy, placement.machine)
        if policy != scheduler.policy and not (on_nodes and schedule.engine == "kernel" != policy.on_nodes.engine):
            yield "policy", text, lambda: w, Scheduler(policy, scheduler.prediction)


def _start(schedule: Schedule, workload: Workload, scheduler: Scheduler, number: int, check: Callable[[], None]) -> int | None:
    """Return the start of the job with this number in this workload, s; None if its partition is too small for it."""
    machine = None if schedule.placement is None else schedule.placement.machine
    run = run_of(workload, scheduler, dialect=schedule.dialect, overrun=schedule.overrun, machine=machine)
    engine = run.engine("auto" if machine is None else schedule.engine)
    places = np.flatnonzero(run.workload.job_id == number).tolist()
    while places and engine.start_of(places[0]) < 0:
        check()
        if engine.advance(PIECE):
            break
    return engine.start_of(places[0]) + (0 if machine is None else machine.overhead.start) if places else None
