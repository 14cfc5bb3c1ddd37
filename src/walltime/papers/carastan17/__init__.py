"""carastan17: queue orders found by simulation and regression (2017).

This module computes the slowdown of each order in sequences of 15 days, and compares the medians over the sequences with the medians of the
published result files, which are in printed.toml. A sequence begins with an empty machine; its first jobs start in order of arrival and are
not measured.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from walltime import metrics
from walltime.estimates import ExactEstimates
from walltime.papers import drawing
from walltime.papers.items import item
from walltime.papers.results import Chart, Claim, Parts, Rows, Table, Value, by_column
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
from walltime.policy import Easy, NoBackfilling, Order, order
from walltime.simulation import simulate
from walltime.workload import Workload

LENGTH = 15 * 86_400
"""Length of a sequence, in seconds."""
FIRST = 16
"""Number of jobs at the beginning of a sequence that start in order of arrival and are not measured."""
LEAST = 100
"""Smallest number of jobs in a sequence; no log without gaps has a shorter one."""
TINY, EARLIEST = 1e-20, 0.1
AHEAD = 1e300
"""Score of the first jobs of a sequence, higher than every other score, so that they start first."""


def sequences(workload: Workload) -> list[Workload]:
    """Return the sequences of the log in order; submit times count from the first job of each.

    The column `queue` is 1 for its first jobs and 0 for the others.
    """
    number = workload.submit // LENGTH
    chosen = []
    for each in np.unique(number):
        mine = np.flatnonzero(number == each)
        if len(mine) < LEAST:
            continue
        jobs = {name: getattr(workload, name)[mine] for name in ("runtime", "requested", "procs", "job_id")}
        columns = {"queue": (np.arange(len(mine)) < FIRST).astype(np.int64)}
        submit, machine = workload.submit[mine] - workload.submit[mine[0]], workload.machine_procs
        chosen.append(Workload.from_arrays(submit=submit, **jobs, machine_procs=machine, columns=columns, origin=workload.origin))
    return chosen


def fcfs(queue: int, submit: int) -> float:
    """Return the score under first come, first served."""
    return AHEAD if queue == 1 else -float(submit)


def wfp3(queue: int, wait: int, planned: int, procs: int) -> float:
    """Return the score under WFP3 (Tang et al. 2009)."""
    return AHEAD if queue == 1 else (wait / planned) ** 3 * procs


def unicef(queue: int, wait: int, planned: int, procs: int) -> float:
    """Return the score under UNICEF (Tang et al. 2009); jobs of one processor come first."""
    return AHEAD if queue == 1 else (wait + TINY) / ((math.log2(procs) + TINY) * planned)


def spt(queue: int, planned: int) -> float:
    """Return the score under shortest processing time first."""
    return AHEAD if queue == 1 else -float(planned)


def saf(queue: int, planned: int, procs: int) -> float:
    """Return the score under smallest area first."""
    return AHEAD if queue == 1 else -float(planned * procs)


def f2(queue: int, planned: int, procs: int, submit: int) -> float:
    """Return the score under F2, the paper's best order."""
    return AHEAD if queue == 1 else -(math.sqrt(planned) * procs + 25_600 * math.log10(max(submit, EARLIEST)))


ORDERS: Mapping[str, Order] = {score.__name__: order(score) for score in (fcfs, wfp3, unicef, spt, saf, f2)}
QUICK_SEQUENCES = 4
NEAR = 0.2
"""Accepted relative deviation: the published files use another version of the log, and their sequences may begin at other jobs."""
WAYS: Sequence[tuple[str, bool, str]] = (
    ("first 32, no backfilling", False, "sc17"),
    ("whole queue, no backfilling", False, "papers"),
    ("EASY", True, "papers"),
)
"""Name, backfilling, and dialect of each compared scheduler."""
RUNTIMES = {"exact": True, "requests": False}


Medians = Mapping[tuple[str, str], Mapping[str, float]]
"""The median slowdown over the sequences, by name of the comparison, whether runtimes are known, and queue order."""


@item("medians")
def medians(study: Study) -> Parts:
    """Medians over sequences of 15 days, by queue order."""
    rows: Rows = []
    for subject in study.subjects:
        found: dict[tuple[str, str], dict[str, float]] = {}
        for (way, backfilling, dialect), (runtimes, exact) in itertools.product(WAYS, RUNTIMES.items()):
            slowdowns = {name: run(study, subject, name, backfilling, exact, dialect) for name in ORDERS}
            found[way, runtimes] = {name: float(np.median(values)) if len(values) else math.nan for name, values in slowdowns.items()}
            row = []
            for name, median in found[way, runtimes].items():
                compared = dialect == "sc17" and not study.quick
                printed = study.printed_value(subject, "medians", name, log=subject.name, runtimes=runtimes) if compared else None
                row.append(Value(median, printed, None if printed is None else NEAR, digits=1))
            rows.append([subject.name, way, runtimes, len(slowdowns["fcfs"]), *row])
        yield _chart(subject, found)
        yield from _claims(subject.name, found)
    columns = ["log", "queue", "runtimes known", "sequences", *ORDERS]
    note = f"The first {QUICK_SEQUENCES} sequences." if study.quick else ""
    yield Table("medians", "Median of the mean bounded slowdown", columns, rows, note)
    yield (
        "A sequence has the jobs of 15 days and begins with an empty machine; its first 16 jobs start in order of arrival, unmeasured. "
        "In the published program, a policy orders only the 32 waiting jobs that arrived first. The window of an order that keeps some "
        "jobs waiting for long is then full of these jobs, so other orders suffer most than would on the whole queue."
    )


def _claims(log: str, found: Medians) -> Iterator[Claim]:
    """Yield the claims on one log: the best order, the effect of the window, and F2 against EASY."""
    windowed, whole = WAYS[0][0], WAYS[1][0]
    for runtimes in RUNTIMES:
        typical = found[windowed, runtimes]
        evidence = ", ".join(f"{name} {value:,.1f}" for name, value in typical.items())
        yield Claim(f"{log}, {runtimes}, {windowed}: F2 is the best order", min(typical, key=lambda name: typical[name]) == "f2", evidence)
        for name in ("wfp3", "unicef", "spt"):
            inside, outside = typical[name], found[whole, runtimes][name]
            claim = f"{log}, {runtimes}: {name} is worse in the window than on the whole queue"
            yield Claim(claim, outside < inside, f"{inside:,.1f} and {outside:,.1f}")
        under_easy = found["EASY", runtimes]["fcfs"]
        claim = f"{log}, {runtimes}: F2 without backfilling, as published, is better than EASY with FCFS"
        yield Claim(claim, typical["f2"] < under_easy, f"{typical['f2']:,.1f} and {under_easy:,.1f}")


def run(study: Study, subject: Subject, name: str, backfilling: bool, exact: bool, dialect: str) -> np.ndarray:
    """Return the mean bounded slowdown of each sequence, with exact estimates if `exact`; stored simulations are not repeated."""
    parts = sequences(subject.workload)[: QUICK_SEQUENCES if study.quick else None]
    policy = (Easy if backfilling else NoBackfilling)(order=ORDERS[name])

    def measure(task: Mapping[str, Any], check: Callable[[int], None]) -> Mapping[str, Any]:
        jobs = parts[task["sequence"]]
        jobs = jobs.with_estimates(ExactEstimates(), 0) if exact else jobs
        schedule = simulate(jobs, policy, progress=check, dialect=dialect, overrun="continue")
        return {"slowdown": float(metrics.bounded_slowdown(schedule.wait, schedule.runtime)[FIRST:].mean())}

    task = {"sha256": subject.workload.origin.sha256, "procs": subject.procs}
    task |= {"order": name, "backfilling": backfilling, "exact": exact, "dialect": dialect}
    results = study.kept(f"{subject.name}: {name}, {dialect}", [task | {"sequence": number} for number in range(len(parts))], measure)
    return np.array([one["slowdown"] for one in results])


def _chart(subject: Subject, found: Medians) -> Chart:
    def draw(axes: Axes, runtimes: str, _row: str) -> None:
        drawing.bars(axes, {way: list(found[way, runtimes].values()) for way, _, _ in WAYS}, list(ORDERS))
        axes.set_yscale("log")
        axes.tick_params(axis="x", rotation=45)

    data = by_column(["queue", "runtimes", *ORDERS], [(*key, *by_order.values()) for key, by_order in found.items()])
    caption = f"{subject.label}: median over the sequences of the mean bounded slowdown, by queue order."
    columns = {"exact runtimes": "exact", "requests": "requests"}
    return drawing.chart(f"medians-{subject.log}", caption, data, columns, "median slowdown", draw)
