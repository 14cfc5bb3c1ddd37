"""Compares waits with queueing theory where a policy reduces to it: formulas, and short recursions.

Jobs arrive by chance (Poisson) and, unless a queue says otherwise, need one processor. Then FCFS, EASY and conservative
backfilling are the same discipline, for any planned runtimes, and so are all of them where each job needs the whole
machine. Times are whole seconds with a mean service of 10,000 s; what the rounding does to the waits is measured.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

import walltime as wt
from validation import formulas
from validation.common import LIMIT, Array, Line, Numbers, Simulate, Sizes, compare, tell
from validation.formulas import DETERMINISTIC, EXPONENTIAL, HYPER, UNIFORM, Service
from walltime.metrics import queue_length, utilization

MEAN = 10_000
"""Mean service, s."""
WARM = 0.1
"""Share of the jobs that is not measured, at the beginning as well as at the end."""
ESTIMATES = 5.0
"""Maximum ratio of bad estimates to runtimes."""

SAME = (
    wt.NoBackfilling(),
    wt.Easy(),
    wt.Hybrid(depth=3),
    wt.Conservative(),
    wt.Conservative(variant="scratch"),
)
"""Policies that are one discipline where jobs all have the same width."""


@dataclass(frozen=True)
class Queue:
    """A queue with a known theory at one load: service distribution, number of servers, and order."""

    service: Service
    servers: int
    load: float
    shortest_first: bool = False

    @property
    def name(self) -> str:
        """In Kendall's notation, with the order where it is not first come first served."""
        return f"M/{self.service.name}/{self.servers}" + (" shortest first" if self.shortest_first else "")

    @property
    def policy(self) -> wt.policy.Policy:
        """The policy whose waits are compared with theory."""
        return wt.Easy(order=wt.SJF) if self.shortest_first else wt.Easy()

    def times(self, jobs: int, seed: int) -> tuple[Array, Array]:
        """Submission and service of each job in seconds, float64, before they are rounded."""
        random = np.random.default_rng([seed, self.servers, round(1000 * self.load), ord(self.service.name[0])])
        submit = np.cumsum(random.exponential(MEAN / (self.servers * self.load), jobs))
        return submit, self.service.draw(random, jobs) * MEAN

    def workload(self, jobs: int, seed: int, width: int = 1) -> wt.Workload:
        """Jobs of `width` processors on a machine for as many of them as there are servers, with exact estimates."""
        submit, service = (np.rint(times).astype(np.int64) for times in self.times(jobs, seed))
        procs = np.full(jobs, width, np.int64)
        return wt.Workload.from_arrays(submit=submit, runtime=service, procs=procs, machine_procs=width * self.servers)

    def expected(self) -> dict[str, float]:
        """Return the theoretical values by the names of `observe`; waits in mean service times."""
        if self.shortest_first:
            return {
                "mean wait": formulas.shortest_first_wait(self.load, self.service),
                **{f"mean wait, {name}": formulas.shortest_first_wait(self.load, self.service, *ends) for name, ends in CLASSES.items()},
            }
        if self.service is DETERMINISTIC:
            wait, waits = formulas.mdc(self.servers, self.load)
            return {"mean wait": wait, "waiting jobs": waits}
        if self.service is EXPONENTIAL:
            known = {"mean wait": formulas.mmc_wait(self.servers, self.load), "waiting jobs": formulas.erlang_c(self.servers, self.load)}
            return known | {name: formulas.mmc_tail(self.servers, self.load, wait) for name, wait in self.tails().items()}
        assert self.servers == 1, "no formula is known for other services and several servers"
        return {"mean wait": formulas.pollaczek_khinchine(self.load, self.service.scv), "waiting jobs": self.load}

    def tails(self) -> dict[str, float]:
        """Waits, in mean services, beyond which jobs are counted: one and three times the mean wait of those that wait at all."""
        if self.service is not EXPONENTIAL or self.shortest_first:
            return {}
        one = 1 / (self.servers * (1 - self.load))
        return {"wait over t": one, "wait over 3 t": 3 * one}

    def observe(self, wait: Array, runtime: Array) -> dict[str, float]:
        """The same of measured jobs (int64 s); waits in mean services."""
        found = {"mean wait": float(wait.mean()) / MEAN}
        if self.shortest_first:
            classes = {name: (runtime >= low * MEAN) & (runtime < high * MEAN) for name, (low, high) in CLASSES.items()}
            return found | {f"mean wait, {name}": float(wait[of_class].mean()) / MEAN for name, of_class in classes.items()}
        found["waiting jobs"] = float((wait > 0).mean())
        return found | {name: float((wait > limit * MEAN).mean()) for name, limit in self.tails().items()}


CLASSES = {"jobs under half the mean": (0.0, 0.5), "jobs over 1.5 means": (1.5, math.inf)}
"""Lengths, in mean services, that shortest first is also looked at separately."""


def queues(quick: bool = False) -> Iterator[Queue]:
    """All queues; few of them for a quick look."""
    loads: tuple[float, ...] = (0.5, 0.8) if quick else (0.5, 0.8, 0.9, 0.95)
    for servers in (1, 4) if quick else (1, 4, 32):
        yield from (Queue(EXPONENTIAL, servers, load) for load in loads)
    loads = (0.5,) if quick else (0.5, 0.8, 0.9)
    for service in (DETERMINISTIC, UNIFORM, HYPER):
        yield from (Queue(service, 1, load) for load in loads)
    for servers in (2,) if quick else (2, 4, 32):
        yield from (Queue(DETERMINISTIC, servers, load) for load in loads)
    for service in (EXPONENTIAL, UNIFORM, HYPER):
        yield from (Queue(service, 1, load, shortest_first=True) for load in loads)


# ------------------------------------------------------------------------------------------------ recursions, job for job


def lindley(submit: Array, service: Array) -> Array:
    """Wait of each job at one server, first come first served, in the unit of the arguments.

    Source: Lindley 1952: `W' = max(0, W + S - A)`, here as a running minimum of sums.

    >>> lindley(np.array([0, 1, 20]), np.array([5, 6, 7])).tolist()
    [0, 4, 0]
    """
    work = np.concatenate((service[:1] * 0, np.cumsum(service)[:-1])) - submit
    return work - np.minimum.accumulate(work)


def several_servers(submit: Array, service: Array, servers: int) -> Array:
    """Wait of each job at several servers, first come first served: each takes the server that is free first.

    Source: Kiefer and Wolfowitz 1955.

    >>> several_servers(np.array([0, 0, 0]), np.array([5, 3, 1]), 2).tolist()
    [0, 0, 3]
    """
    free = [0] * servers
    waits = []
    for now, length in zip(submit.tolist(), service.tolist(), strict=True):
        begin = max(now, heapq.heappop(free))
        heapq.heappush(free, begin + length)
        waits.append(begin - now)
    return np.array(waits)


# ---------------------------------------------------------------------------------------------------------- running them


def moved_by_policy(queue: Queue, jobs: int, simulate: Simulate = wt.simulate, seed: int = 0) -> dict[str, int]:
    """Jobs that another policy, estimate or width starts at another second than the recursion says; by what it was."""
    narrow = queue.workload(jobs, seed)
    wait = lindley(narrow.submit, narrow.runtime) if queue.servers == 1 else several_servers(narrow.submit, narrow.runtime, queue.servers)
    random = np.random.default_rng(seed)
    wrong = np.maximum(np.rint(narrow.runtime * random.uniform(1, ESTIMATES, jobs)), 1).astype(np.int64)
    moved = {}
    for policy in SAME:
        label = "conservative-scratch" if policy == wt.Conservative(variant="scratch") else policy.label
        cases = {"": narrow, ", bad estimates": narrow.with_planned(wrong)}
        if queue.servers == 1:
            cases[", jobs as wide as the machine"] = queue.workload(jobs, seed, width=64)
        for name, workload in cases.items():
            moved[label + name] = int((simulate(workload, policy).wait != wait).sum())
    return moved


def rounding(queue: Queue, jobs: int, seed: int = 0) -> dict[str, float]:
    """Mean wait of one server with whole seconds and with fractions, s, and the largest difference that a job sees."""
    submit, service = queue.times(jobs, seed)
    exact, whole = lindley(submit, service), lindley(np.rint(submit), np.rint(service))
    return {"exact": float(exact.mean()), "rounded": float(whole.mean()), "largest": float(np.abs(exact - whole).max())}


def laws(schedule: wt.Schedule, first: int, last: int) -> dict[str, float]:
    """Little's law and the utilization law in one run.

    `exact`: whether the integral of the queue's length over the whole run is the sum of the waits, to the second. `little`, `utilization`:
    relative deviations between the submissions of the jobs `first` and `last`. `little` compares the mean queue length with arrival rate
    times mean wait, `utilization` the busy processors with arrival rate times mean work. The remaining deviation is an effect of the edges.
    `busy`: share of busy processors in that window. Source: Little 1961.
    """
    w = schedule.workload
    times, levels = queue_length(w.submit, schedule.start)
    exact = int(np.dot(levels[:-1], np.diff(times))) == int(schedule.wait.sum())
    begin, end = int(w.submit[first]), int(w.submit[last])
    length, measured = end - begin, slice(first, last)
    inside = np.maximum(np.minimum(schedule.start, end) - np.maximum(w.submit, begin), 0)
    queue = float(inside.sum()) / length
    busy = utilization(schedule.start, schedule.end, w.procs, w.machine_procs, begin, end)
    waits = float(schedule.wait[measured].sum()) / length
    work = float(np.dot(w.procs[measured], schedule.runtime[measured])) / (length * w.machine_procs)
    return {"exact": float(exact), "little": queue / waits - 1, "utilization": busy / work - 1, "busy": busy}


def replicate(queue: Queue, sizes: Sizes, simulate: Simulate = wt.simulate) -> tuple[list[Line], Numbers]:
    """A queue run with every seed: its lines, and how far the two laws were off at most."""
    first = round(WARM * sizes.jobs)
    last = sizes.jobs - first
    seen: dict[str, list[float]] = {}
    law = []
    for seed in range(sizes.seeds):
        schedule = simulate(queue.workload(sizes.jobs, seed), queue.policy)
        measured = slice(first, last)
        for name, value in queue.observe(schedule.wait[measured], schedule.runtime[measured]).items():
            seen.setdefault(name, []).append(value)
        law.append(laws(schedule, first, last))
    seen["busy processors"] = [found["busy"] for found in law]
    expected = queue.expected() | {"busy processors": queue.load}
    lines = [compare(queue.name, queue.load, name, theory, np.array(seen[name])) for name, theory in expected.items()]
    worst = {name: max(abs(found[name]) for found in law) for name in ("little", "utilization")}
    return lines, {"runs": len(law), "exact": int(sum(found["exact"] for found in law)), **worst}


def saturated(narrow: float, sizes: Sizes, simulate: Simulate = wt.simulate) -> Line:
    """Two processors, all jobs there from the beginning, a share of them narrow: what FCFS keeps busy."""
    values = []
    for seed in range(sizes.seeds):
        random = np.random.default_rng([seed, round(100 * narrow)])
        runtime = np.rint(random.exponential(MEAN, sizes.jobs)).astype(np.int64)
        procs = np.where(random.random(sizes.jobs) < narrow, 1, 2)
        workload = wt.Workload.from_arrays(submit=np.zeros(sizes.jobs, np.int64), runtime=runtime, procs=procs, machine_procs=2)
        schedule = simulate(workload, wt.NoBackfilling())
        values.append(utilization(schedule.start, schedule.end, procs, 2, 0, int(schedule.start[-1])))
    what = f"busy processors, {100 * narrow:g} % narrow jobs"
    return compare("saturated, 1 or 2 of 2 processors", 1.0, what, formulas.saturated_utilization(narrow), np.array(values))


def run(sizes: Sizes) -> Numbers:
    """Everything of this part, ready for JSON."""
    lines: list[Line] = []
    law: list[Numbers] = []
    moved: dict[str, Numbers] = {}
    rounded = []
    for queue in queues(sizes.quick):
        tell(f"theory: {queue.name} at load {queue.load}")
        found, laws_found = replicate(queue, sizes)
        lines += found
        law.append(laws_found)
        if not queue.shortest_first:
            jobs = sizes.jobs // 4  # the profile of a conservative scheduler from scratch takes its time
            moved[f"{queue.name} at {queue.load}"] = {"jobs": jobs, "moved": moved_by_policy(queue, jobs)}
            if queue.servers == 1:
                rounded.append({"queue": queue.name, "load": queue.load, **rounding(queue, sizes.jobs)})
    for narrow in (0.5,) if sizes.quick else (0.25, 0.5, 0.75):
        tell(f"theory: two saturated processors, {100 * narrow:g} % narrow jobs")
        lines.append(saturated(narrow, sizes))
    return {
        "jobs": sizes.jobs,
        "seeds": sizes.seeds,
        "limit": LIMIT,
        "lines": [asdict(line) for line in lines],
        "laws": {
            "runs": sum(found["runs"] for found in law),
            "exact": sum(found["exact"] for found in law),
            "little": max(found["little"] for found in law),
            "utilization": max(found["utilization"] for found in law),
        },
        "same": moved,
        "rounding": rounded,
    }


def failures(result: Numbers) -> list[str]:
    """Return the failures in words."""
    bad = [
        f"{line['queue']} at {line['load']}, {line['what']}: {line['deviation']:+.1f} standard errors"
        for line in result["lines"]
        if not line["passed"]
    ]
    if result["laws"]["exact"] < result["laws"]["runs"]:
        bad.append("Little's law does not hold to the second")
    bad += [
        f"{queue}: {count} jobs moved by {what}"
        for queue, found in result["same"].items()
        for what, count in found["moved"].items()
        if count
    ]
    return bad
