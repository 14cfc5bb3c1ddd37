"""zhang20: a scheduler that learns, and the formulas that it was compared with (2020).

The ten windows of jobs, the formulas, and the slowdown of each formula in a window; Table V, which is in printed.toml; the formulas as
they were meant; all of them under EASY.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from walltime.metrics.confidence import mean_interval
from walltime.papers import drawing
from walltime.papers.items import item
from walltime.papers.results import Chart, Claims, Notes, Part, Rows, Table, Value, by_column
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
from walltime.policy import FCFS, SJF, Easy, NoBackfilling, Order, order
from walltime.simulation import simulate
from walltime.workload import Workload

__all__ = ["FORMULAS", "STARTS", "as_meant", "table_5", "under_easy", "windows"]

JOBS = 1024
STARTS = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)
"""The first job of each of the ten windows, from 0, among the jobs that have a runtime."""
TINY = 1e-20
EARLIEST = 0.1
"""Stands for a submit time of 0 in logarithms, s."""


def windows(workload: Workload) -> list[Workload]:
    """Return the ten windows; for logs with too few jobs, windows at equal distances, or all jobs."""
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
"""The formulas of Table V, as the program computes them."""
MEANT: Mapping[str, Order] = {"wfp3": order(wfp3), "unicep": order(unicep)}
"""The formulas with the waiting time as it was meant."""
OTHERS: Mapping[str, Order] = {"f2": order(f2), "f3": order(f3), "f4": order(f4), "saf": order(saf)}
"""Formulas that the paper does not print."""
AS_MEANT: Mapping[str, Order] = {**FORMULAS, **MEANT, **OTHERS}
ORDERS: Mapping[str, Mapping[str, Order]] = {"printed": FORMULAS, "meant": AS_MEANT}


QUICK_WINDOWS = 2
HALF_DIGIT = 0.005
"""The printed means have two decimals."""
Found = Mapping[str, np.ndarray]
"""The mean bounded slowdown of each window, by formula."""


@item("T5")
def table_5(study: Study) -> list[Part]:
    """Table V: formulas without and with backfilling."""
    rows: Rows = []
    for subject in study.subjects:
        for backfilling in (False, True):
            row = []
            for name, values in run(study, subject, FORMULAS, backfilling, "printed", "rlscheduler").items():
                printed = None
                if not study.quick:
                    printed = study.printed_value(subject, "T5", name, log=subject.name, backfilling=_word(backfilling))
                row.append(Value(float(values.mean()), printed, None if printed is None else HALF_DIGIT / printed, digits=2))
            rows.append([subject.name, _word(backfilling), *row])
    claims = Claims()
    for line in study.printed.tables["T5"].rows:
        best = min(FORMULAS, key=lambda name: float(line[name]))
        claim = f"{line['log']}, {line['backfilling']}, as printed: the agent is better than the five formulas"
        claims.add(claim, line["agent"] < line[best], f"{line['agent']:,.2f}, {best} {line[best]:,.2f}")
    return [Table("t5", "Mean bounded slowdown, mean over the windows", ["log", "backfilling", *FORMULAS], rows, _note(study)), claims]


@item("meant")
def as_meant(study: Study) -> list[Part]:
    """The formulas as they were meant, and others."""
    rows: Rows = []
    claims = Claims()
    for subject in study.subjects:
        for backfilling in (False, True):
            place = f"{subject.name}, {_word(backfilling)}"
            means = _means(run(study, subject, AS_MEANT, backfilling, "meant", "rlscheduler"))
            rows.append([subject.name, _word(backfilling), *(Value(mean, digits=2) for mean in means.values())])
            for name, wrong in _means(run(study, subject, MEANT, backfilling, "printed", "rlscheduler")).items():
                claim = f"{place}: {name} is better with its waiting time than as printed"
                claims.add(claim, means[name] < wrong, f"{means[name]:,.2f} and {wrong:,.2f}")
            agent = study.printed.tables["T5"].value("agent", log=subject.name, backfilling=_word(backfilling))
            if agent is not None:
                best = min(means, key=lambda name: means[name])
                claim = f"{place}: the agent is better than every formula, also the ones that are not printed"
                claims.add(claim, agent < means[best], f"{agent:,.2f}, {best} {means[best]:,.2f}")
    title = "Mean bounded slowdown, mean over the windows"
    return [Table("meant", title, ["log", "backfilling", *AS_MEANT], rows, _note(study)), claims]


@item("easy")
def under_easy(study: Study) -> list[Part]:
    """The formulas as queue orders of EASY."""
    rows: Rows = []
    means: dict[str, dict[str, list[float]]] = {}
    for subject in study.subjects:
        slowdowns = run(study, subject, AS_MEANT, True, "meant", "papers")
        programs = _means(run(study, subject, AS_MEANT, True, "meant", "rlscheduler"))
        means[subject.name] = {"rlscheduler with backfilling": list(programs.values()), "EASY": list(_means(slowdowns).values())}
        for name, values in slowdowns.items():
            gain = mean_interval(values - slowdowns["fcfs"]) if len(values) > 1 and name != "fcfs" else None
            interval = "" if gain is None else f"{gain.low:+,.1f} to {gain.high:+,.1f}"
            rows.append([subject.name, name, Value(float(values.mean()), digits=2), interval, Value(programs[name], digits=2)])
    columns = ["log", "order", "EASY", "minus EASY with FCFS (90 %)", "rlscheduler with backfilling"]

    def draw(axes: Axes, ways: dict[str, list[float]], _row: str) -> None:
        drawing.bars(axes, ways, list(AS_MEANT))
        drawing.from_zero(axes)
        axes.tick_params(axis="x", rotation=45)

    lines = [(log, way, *values) for log, ways in means.items() for way, values in ways.items()]
    data = by_column(["log", "backfilling", *AS_MEANT], lines)
    caption = "Mean bounded slowdown, mean over the windows, by queue order: as the program backfills, and under EASY."
    return [
        Chart("easy-orders", drawing.panels(means, "mean bounded slowdown", draw), caption, data),
        Table("easy", "Mean bounded slowdown under EASY, by queue order", columns, rows, _note(study)),
        Notes(
            [
                "The difference is paired: each window under both orders. The windows overlap in part, and each begins on an empty "
                "machine, so the intervals are narrower than they would be for other jobs."
            ]
        ),
    ]


def run(study: Study, subject: Subject, formulas: Iterable[str], backfilling: bool, kind: str, dialect: str) -> Found:
    """Return the mean bounded slowdowns of the windows under each formula, a key of `ORDERS[kind]`; stored simulations are not repeated."""
    parts = windows(subject.workload)[: QUICK_WINDOWS if study.quick else None]
    policy = Easy if backfilling else NoBackfilling

    def measure(task: Mapping[str, Any], check: Callable[[int], None]) -> Mapping[str, Any]:
        check(0)
        schedule = simulate(parts[task["window"]], policy(order=ORDERS[kind][task["formula"]]), dialect=dialect, overrun="overrun")
        return {"slowdown": schedule.summary().mean_bounded_slowdown}

    task = {"sha256": subject.workload.origin.sha256, "dialect": dialect, "backfilling": backfilling, "as": kind}
    tasks = [task | {"formula": name, "window": number} for name in formulas for number in range(len(parts))]
    results = study.kept(f"{subject.name}: {_word(backfilling)}, {dialect}", tasks, measure)
    return dict(zip(formulas, np.array([one["slowdown"] for one in results]).reshape(-1, len(parts)), strict=True))


def _means(slowdowns: Found) -> dict[str, float]:
    return {name: float(values.mean()) for name, values in slowdowns.items()}


def _word(backfilling: bool) -> str:
    return "with" if backfilling else "without"


def _note(study: Study) -> str:
    return f"{QUICK_WINDOWS} windows of the ten." if study.quick else ""
