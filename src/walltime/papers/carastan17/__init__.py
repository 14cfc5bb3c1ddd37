"""carastan17: queue orders found by simulation and regression (2017).

Sequences of 15 days, the orders, and what each gives in a sequence; medians over the sequences, beside those of the published result
files, which are in printed.toml. A sequence begins with an empty machine, and its first jobs are started in order of arrival and not
measured.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from walltime import metrics
from walltime.estimates import ExactEstimates
from walltime.logs import read
from walltime.papers import drawing
from walltime.papers.items import item
from walltime.papers.results import Chart, Claims, Notes, Part, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import PAPER, Subject
from walltime.policy import Easy, NoBackfilling, Order, order
from walltime.simulation import simulate
from walltime.workload import Workload

__all__ = ["FIRST", "LENGTH", "medians", "sequences"]

LENGTH = 15 * 86_400
"""Of a sequence, s."""
FIRST = 16
"""Jobs of a sequence that are started in order of arrival, and not measured."""
LEAST = 100
"""Jobs of a sequence at least; there are none so short in a log without gaps."""
TINY, EARLIEST = 1e-20, 0.1
AHEAD = 1e300
"""Score of the first jobs."""


def sequences(workload: Workload) -> list[Workload]:
    """The sequences of the log, one after the other; submit times count from the first job of each.

    The column `queue` is 1 for its first jobs and 0 for the others.
    """
    number = workload.submit // LENGTH
    chosen = []
    for each in range(int(number[-1]) + 1 if len(workload) else 0):
        mine = np.flatnonzero(number == each)
        if len(mine) < LEAST:
            continue
        jobs = {name: getattr(workload, name)[mine] for name in ("runtime", "requested", "procs", "job_id")}
        columns = {"queue": (np.arange(len(mine)) < FIRST).astype(np.int64)}
        submit = workload.submit[mine] - workload.submit[mine[0]]
        chosen.append(Workload.from_arrays(submit=submit, **jobs, machine_procs=workload.machine_procs, columns=columns))
    return [replace(one, origin=workload.origin) for one in chosen]


def fcfs(queue: int, submit: int) -> float:
    """First come, first served."""
    return AHEAD if queue == 1 else -float(submit)


def wfp3(queue: int, wait: int, believed: int, procs: int) -> float:
    """WFP3 of Tang et al. 2009."""
    return AHEAD if queue == 1 else (wait / believed) ** 3 * procs


def unicef(queue: int, wait: int, believed: int, procs: int) -> float:
    """UNICEF of Tang et al. 2009; jobs of one processor come first."""
    return AHEAD if queue == 1 else (wait + TINY) / ((math.log2(procs) + TINY) * believed)


def spt(queue: int, believed: int) -> float:
    """Shortest processing time first."""
    return AHEAD if queue == 1 else -float(believed)


def saf(queue: int, believed: int, procs: int) -> float:
    """Smallest area first."""
    return AHEAD if queue == 1 else -float(believed * procs)


def f2(queue: int, believed: int, procs: int, submit: int) -> float:
    """F2, the paper's best."""
    return AHEAD if queue == 1 else -(math.sqrt(believed) * procs + 25_600 * math.log10(max(submit, EARLIEST)))


ORDERS: Mapping[str, Order] = {
    "fcfs": order(fcfs),
    "wfp3": order(wfp3),
    "unicef": order(unicef),
    "spt": order(spt),
    "saf": order(saf),
    "f2": order(f2),
}


def measure(task: Mapping[str, Any], check: Callable[[int], None]) -> Mapping[str, Any]:
    """The mean bounded slowdown (`slowdown`) of one sequence under one scheduler.

    `task`: `file`, its `sha256` and the machine's `procs` (None for the log's own); `sequence`, from 0; `order`; `backfilling`; `exact`,
    whether the runtimes are known; `dialect`.
    """
    jobs = _sequences(str(task["file"]), task["procs"])[int(task["sequence"])]
    if task["exact"]:
        jobs = jobs.with_estimates(ExactEstimates(), 0)
    kind = Easy if task["backfilling"] else NoBackfilling
    rules = {"dialect": str(task["dialect"]), "overrun": "continue"}
    schedule = simulate(jobs, kind(order=ORDERS[str(task["order"])]), progress=check, **rules)  # type: ignore[arg-type]
    slowdown = metrics.bounded_slowdown(schedule.wait, schedule.runtime)
    return {"slowdown": float(slowdown[FIRST:].mean())}


@functools.lru_cache(maxsize=2)
def _sequences(file: str, procs: int | None) -> list[Workload]:
    return sequences(read(file, procs=procs))


QUICK_SEQUENCES = 4
NEAR = 0.2
"""Medians of the published files are of another version of the log, and of sequences that may begin at other times."""
WAYS: Sequence[tuple[str, bool, str]] = (
    ("first 32, no backfilling", False, "sc17"),
    ("whole queue, no backfilling", False, "papers"),
    ("EASY", True, "papers"),
)
"""What is compared; whether there is backfilling, and the dialect."""
RUNTIMES = {"exact": True, "requests": False}


@item("medians")
def medians(study: Study) -> list[Part]:
    """Medians over sequences of 15 days, by queue order."""
    rows: list[list[str | int | Value]] = []
    claims = Claims()
    figures: list[Part] = []
    for subject in study.subjects:
        slowdowns = {
            (way, runtimes, name): run(study, subject, name, backfilling, exact, dialect)
            for way, backfilling, dialect in WAYS
            for runtimes, exact in RUNTIMES.items()
            for name in ORDERS
        }
        for way, _, dialect in WAYS:
            for runtimes in RUNTIMES:
                row = [_beside(study, subject, name, runtimes, dialect, slowdowns[way, runtimes, name]) for name in ORDERS]
                rows.append([subject.name, way, runtimes, len(slowdowns[way, runtimes, "fcfs"]), *row])
        windowed, whole = WAYS[0][0], WAYS[1][0]
        for runtimes in RUNTIMES:
            typical = {name: float(np.median(slowdowns[windowed, runtimes, name])) for name in ORDERS}
            best = min(typical, key=lambda name: typical[name])
            evidence = ", ".join(f"{name} {value:,.1f}" for name, value in typical.items())
            claims.add(f"{subject.name}, {runtimes}, {windowed}: F2 is the best order", best == "f2", evidence)
            for name in ("wfp3", "unicef", "spt"):
                inside, outside = (float(np.median(slowdowns[way, runtimes, name])) for way in (windowed, whole))
                said = f"{subject.name}, {runtimes}: {name} is worse in the window than on the whole queue"
                claims.add(said, outside < inside, f"{inside:,.1f} and {outside:,.1f}")
            under_easy = float(np.median(slowdowns["EASY", runtimes, "fcfs"]))
            said = f"{subject.name}, {runtimes}: F2 without backfilling, as published, is better than EASY with FCFS"
            claims.add(said, typical["f2"] < under_easy, f"{typical['f2']:,.1f} and {under_easy:,.1f}")
        figures.append(_figure(subject, slowdowns))
    columns = ["log", "queue", "runtimes known", "sequences", *ORDERS]
    note = f"The first {QUICK_SEQUENCES} sequences." if study.quick else ""
    return [*figures, Table("medians", "Median of the mean bounded slowdown", columns, rows, note), claims, Notes([_ABOUT])]


_ABOUT = (
    "A sequence has the jobs of 15 days and begins with an empty machine; its first 16 jobs start in order of arrival, unmeasured. "
    "Read in the published program, its policies order only the 32 jobs that arrived first of those that wait. Orders that keep some jobs "
    "waiting for long then have their window full of these, so the orders that suffer most are not those that would on the whole queue."
)


def run(study: Study, subject: Subject, name: str, backfilling: bool, exact: bool, dialect: str) -> np.ndarray:
    """The mean bounded slowdown of each sequence; simulations that are stored are not repeated."""
    count = len(sequences(subject.workload)) if subject not in study.memory else study.memory[subject]
    study.memory[subject] = count
    count = min(count, QUICK_SEQUENCES) if study.quick else count
    common = {"file": str(subject.file.resolve()), "sha256": subject.workload.origin.sha256, "procs": subject.procs}
    common |= {"order": name, "backfilling": backfilling, "exact": exact, "dialect": dialect}
    results = study.kept(f"{subject.name}: {name}, {dialect}", [common | {"sequence": number} for number in range(count)], measure)
    return np.array([one["slowdown"] for one in results])


def _beside(study: Study, subject: Subject, name: str, runtimes: str, dialect: str, values: np.ndarray) -> Value:
    printed = None
    if subject.kind == PAPER and dialect == "sc17" and not study.quick:
        printed = study.printed.tables["medians"].value(name, log=subject.name, runtimes=runtimes)
    return Value(float(np.median(values)) if len(values) else float("nan"), printed, None if printed is None else NEAR, digits=1)


def _figure(subject: Subject, slowdowns: dict[tuple[str, str, str], np.ndarray]) -> Chart:
    def draw(axes: Axes, row: int, column: int) -> None:
        runtimes = list(RUNTIMES)[column]
        values = {way: [float(np.median(slowdowns[way, runtimes, name])) for name in ORDERS] for way, _, _ in WAYS}
        drawing.bars(axes, values, list(ORDERS))
        axes.set_yscale("log")
        axes.tick_params(axis="x", rotation=45)

    figure = drawing.panels([f"{word} runtimes" if word == "exact" else word for word in RUNTIMES], ["median slowdown"], draw)
    keys = [(way, runtimes) for way, _, _ in WAYS for runtimes in RUNTIMES]
    data: dict[str, list[object]] = {"queue": [way for way, _ in keys], "runtimes": [runtimes for _, runtimes in keys]}
    data |= {name: [float(np.median(slowdowns[(*key, name)])) for key in keys] for name in ORDERS}
    caption = f"{subject.label}: median over the sequences of the mean bounded slowdown, by queue order."
    return Chart(f"medians-{subject.log}", figure, caption, data)
