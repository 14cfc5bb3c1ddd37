"""zhang20: a scheduler that learns, and the formulas that it was compared with (2020).

The ten windows of jobs, the formulas, and what each gives in a window; Table V, which is in printed.toml; the formulas as they were meant;
all of them under EASY.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from walltime.logs import read
from walltime.metrics.confidence import mean_interval
from walltime.papers import drawing
from walltime.papers.items import item
from walltime.papers.results import Chart, Claims, Notes, Part, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
from walltime.policy import FCFS, SJF, Easy, NoBackfilling, Order, order
from walltime.simulation import simulate
from walltime.workload import Workload

__all__ = ["FORMULAS", "STARTS", "as_meant", "table_5", "under_easy", "windows"]

JOBS = 1024
STARTS = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)
"""The jobs that the ten windows begin with, from 0, of those that have a runtime."""
TINY = 1e-20
EARLIEST = 0.1
"""Stands for a submit time of 0 in logarithms, s."""


def windows(workload: Workload) -> list[Workload]:
    """The ten windows; of a log with fewer jobs than theirs, windows at equal distances; of one with less than a window, all jobs."""
    used = np.flatnonzero(workload.runtime > 0)
    last = max(len(used) - JOBS, 0)
    starts = STARTS if max(STARTS) <= last else np.linspace(0, last, min(len(STARTS), 1 + last)).astype(int).tolist()
    requested = workload.columns.get("requested_procs", workload.procs)
    procs = np.maximum(workload.procs, requested)
    chosen = []
    for start in starts:
        mine = used[start : start + JOBS]
        columns = {name: values[mine] for name, values in workload.columns.items() if name != "preceding_job"}
        jobs = {name: getattr(workload, name)[mine] for name in ("submit", "runtime", "requested", "job_id")}
        machine = workload.machine_procs
        chosen.append(Workload.from_arrays(**jobs, procs=procs[mine], machine_procs=machine, columns=columns, origin=workload.origin))
    return chosen


def f1(believed: int, procs: int, submit: int) -> float:
    """F1 of carastan17."""
    return -(math.log10(believed) * procs + 870 * math.log10(max(submit, EARLIEST)))


def f2(believed: int, procs: int, submit: int) -> float:
    """F2 of carastan17."""
    return -(math.sqrt(believed) * procs + 25_600 * math.log10(max(submit, EARLIEST)))


def f3(believed: int, procs: int, submit: int) -> float:
    """F3 of carastan17."""
    return -(believed * procs + 6_860_000 * math.log10(max(submit, EARLIEST)))


def f4(believed: int, procs: int, submit: int) -> float:
    """F4 of carastan17."""
    return -(believed * math.sqrt(procs) + 530_000 * math.log10(max(submit, EARLIEST)))


def saf(believed: int, procs: int) -> float:
    """Smallest area first."""
    return -float(believed * procs)


def wfp3(wait: int, believed: int, procs: int) -> float:
    """WFP3, with the time that the job has waited."""
    return (wait / believed) ** 3 * procs


def unicep(wait: int, believed: int, procs: int) -> float:
    """UNICEP, with the time that the job has waited; jobs of one processor come first."""
    return (wait + TINY) / ((math.log2(procs) + TINY) * believed)


def wfp3_in_print(believed: int, procs: int, submit: int) -> float:
    """WFP3 as in the program, whose waiting time is -1 - submit, as the start of a waiting job is -1."""
    return ((-1 - submit) / believed) ** 3 * procs


def unicep_in_print(believed: int, procs: int, submit: int) -> float:
    """UNICEP as in the program, with the same waiting time; jobs of one processor come last."""
    return (-1 - submit + TINY) / ((math.log2(procs) + TINY) * believed)


FORMULAS: Mapping[str, Order] = {
    "fcfs": FCFS,
    "wfp3": order(wfp3_in_print),
    "unicep": order(unicep_in_print),
    "sjf": SJF,
    "f1": order(f1),
}
"""What Table V compares, as the program computes it."""
MEANT: Mapping[str, Order] = {"wfp3": order(wfp3), "unicep": order(unicep)}
"""With the waiting time as it was meant."""
OTHERS: Mapping[str, Order] = {"f2": order(f2), "f3": order(f3), "f4": order(f4), "saf": order(saf)}
"""What the paper does not print."""
AS_MEANT: Mapping[str, Order] = {**FORMULAS, **MEANT, **OTHERS}
ORDERS: Mapping[str, Mapping[str, Order]] = {"printed": FORMULAS, "meant": AS_MEANT}


def measure(task: Mapping[str, Any], check: Callable[[int], None]) -> Mapping[str, Any]:
    """The mean bounded slowdown (`slowdown`) of one window under one scheduler.

    `task`: `file` and its `sha256`; `window`, from 0; `backfilling`; `formula`, and `as`, whether it is the one `printed` or as `meant`;
    `dialect`.
    """
    check(0)
    jobs = _windows(str(task["file"]))[int(task["window"])]
    kind = Easy if task["backfilling"] else NoBackfilling
    chosen = ORDERS[str(task["as"])][str(task["formula"])]
    schedule = simulate(jobs, kind(order=chosen), dialect=str(task["dialect"]), overrun="continue")
    return {"slowdown": schedule.summary().mean_bounded_slowdown}


@functools.lru_cache(maxsize=4)
def _windows(file: str) -> list[Workload]:
    return windows(read(file))


QUICK_WINDOWS = 2
HALF_DIGIT = 0.005
"""The printed means have two decimals."""
Found = Mapping[str, np.ndarray]
"""The mean bounded slowdown of each window, by formula."""


@item("T5")
def table_5(study: Study) -> list[Part]:
    """Table V: formulas without and with backfilling."""
    rows: list[list[str | Value]] = []
    for subject in study.subjects:
        for backfilling in (False, True):
            slowdowns = run(study, subject, FORMULAS, backfilling, "printed", "rlscheduler")
            rows.append([subject.name, _word(backfilling), *(_beside(study, subject, backfilling, f, v) for f, v in slowdowns.items())])
    return [
        Table("t5", "Mean bounded slowdown, mean over the windows", ["log", "backfilling", *FORMULAS], rows, _note(study)),
        _claims_of_print(study),
    ]


@item("meant")
def as_meant(study: Study) -> list[Part]:
    """The formulas as they were meant, and others."""
    rows: list[list[str | Value]] = []
    claims = Claims()
    for subject in study.subjects:
        for backfilling in (False, True):
            slowdowns = run(study, subject, AS_MEANT, backfilling, "meant", "rlscheduler")
            rows.append([subject.name, _word(backfilling), *(Value(float(v.mean()), digits=2) for v in slowdowns.values())])
            wrong = run(study, subject, {name: FORMULAS[name] for name in MEANT}, backfilling, "printed", "rlscheduler")
            for name, values in wrong.items():
                said = f"{subject.name}, {_word(backfilling)}: {name} is better with its waiting time than as printed"
                better = float(slowdowns[name].mean()) < float(values.mean())
                claims.add(said, better, f"{slowdowns[name].mean():,.2f} and {values.mean():,.2f}")
            agent = study.printed.tables["T5"].value("agent", log=subject.name, backfilling=_word(backfilling))
            if agent is not None:
                best = min(slowdowns, key=lambda name: float(slowdowns[name].mean()))
                said = f"{subject.name}, {_word(backfilling)}: the agent is better than every formula, the ones that are not printed too"
                claims.add(said, agent < float(slowdowns[best].mean()), f"{agent:,.2f}, {best} {slowdowns[best].mean():,.2f}")
    return [
        Table("meant", "Mean bounded slowdown, mean over the windows", ["log", "backfilling", *AS_MEANT], rows, _note(study)),
        claims,
    ]


@item("easy")
def under_easy(study: Study) -> list[Part]:
    """The formulas as queue orders of EASY."""
    rows: list[list[str | Value]] = []
    means: dict[str, dict[str, list[float]]] = {}
    for subject in study.subjects:
        slowdowns = run(study, subject, AS_MEANT, True, "meant", "papers")
        programs = run(study, subject, AS_MEANT, True, "meant", "rlscheduler")
        means[subject.name] = {"rlscheduler with backfilling": _means(programs), "EASY": _means(slowdowns)}
        for name, values in slowdowns.items():
            gain = mean_interval(values - slowdowns["fcfs"]) if len(values) > 1 and name != "fcfs" else None
            interval = "" if gain is None else f"{gain.low:+,.1f} to {gain.high:+,.1f}"
            rows.append(
                [subject.name, name, Value(float(values.mean()), digits=2), interval, Value(float(programs[name].mean()), digits=2)]
            )
    columns = ["log", "order", "EASY", "minus EASY with FCFS (90 %)", "rlscheduler with backfilling"]

    def draw(axes: Axes, row: int, column: int) -> None:
        drawing.bars(axes, list(means.values())[column], list(AS_MEANT))
        drawing.from_zero(axes)
        axes.tick_params(axis="x", rotation=45)

    data: dict[str, list[str | float]] = {
        "log": [name for name, ways in means.items() for _ in ways],
        "backfilling": [way for ways in means.values() for way in ways],
    }
    data |= {name: [values[place] for ways in means.values() for values in ways.values()] for place, name in enumerate(AS_MEANT)}
    caption = "Mean bounded slowdown, mean over the windows, by queue order: as the program backfills, and under EASY."
    return [
        Chart("easy-orders", drawing.panels(list(means), ["mean bounded slowdown"], draw), caption, data),
        Table("easy", "Mean bounded slowdown under EASY, by queue order", columns, rows, _note(study)),
        Notes(
            [
                "The difference is paired: of the same window under both orders. The windows overlap in part, and each begins on an empty "
                "machine, so the intervals are narrower than they would be for other jobs."
            ]
        ),
    ]


def run(
    study: Study, subject: Subject, formulas: Sequence[str] | Mapping[str, object], backfilling: bool, kind: str, dialect: str
) -> Found:
    """The mean bounded slowdowns of the windows under each formula; simulations that are stored are not repeated."""
    count = len(windows(subject.workload))
    count = min(count, QUICK_WINDOWS) if study.quick else count
    common = {"file": str(subject.file.resolve()), "sha256": subject.workload.origin.sha256, "dialect": dialect, "backfilling": backfilling}
    tasks = [common | {"as": kind, "formula": name, "window": number} for name in formulas for number in range(count)]
    results = study.kept(f"{subject.name}: {_word(backfilling)}, {dialect}", tasks, measure)
    values = np.array([one["slowdown"] for one in results]).reshape(-1, count)
    return dict(zip(formulas, values, strict=True))


def _means(slowdowns: Found) -> list[float]:
    return [float(values.mean()) for values in slowdowns.values()]


def _beside(study: Study, subject: Subject, backfilling: bool, formula: str, values: np.ndarray) -> Value:
    printed = None
    if subject.kind == "paper" and not study.quick:
        printed = study.printed.tables["T5"].value(formula, log=subject.name, backfilling=_word(backfilling))
    within = None if printed is None else HALF_DIGIT / printed
    return Value(float(values.mean()), printed, within, digits=2)


def _claims_of_print(study: Study) -> Claims:
    claims = Claims()
    for row in study.printed.tables["T5"].rows:
        best = min(FORMULAS, key=lambda name: float(row[name]))
        said = f"{row['log']}, {row['backfilling']}, as printed: the agent is better than the five formulas"
        claims.add(said, row["agent"] < row[best], f"{row['agent']:,.2f}, {best} {row[best]:,.2f}")
    return claims


def _word(backfilling: bool) -> str:
    return "with" if backfilling else "without"


def _note(study: Study) -> str:
    return f"{QUICK_WINDOWS} windows of the ten." if study.quick else ""
