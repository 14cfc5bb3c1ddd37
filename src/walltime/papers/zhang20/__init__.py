"""zhang20: a learning scheduler, and the formulas with which it was compared (2020).

This module computes the slowdown of each formula in ten windows of jobs, and compares the means with Table V, which is in printed.toml.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from walltime.papers.items import item
from walltime.papers.results import Claim, Parts, Rows, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
from walltime.policy import FCFS, SJF, Easy, NoBackfilling, Order, order
from walltime.simulation import simulate
from walltime.workload import Workload

JOBS = 1024
STARTS = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)
"""The first job of each of the ten windows, from 0, among the jobs that have a runtime."""
TINY, EARLIEST = 1e-20, 0.1
"""Two values in seconds: the first is added to numerators and denominators, so that no quotient is 0 / 0; the second replaces a submit time
of 0 in a logarithm."""


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


def f1(planned: int, procs: int, submit: int) -> float:
    """Return the score under F1 (carastan17)."""
    return -(math.log10(planned) * procs + 870 * math.log10(max(submit, EARLIEST)))


def wfp3(planned: int, procs: int, submit: int) -> float:
    """Return the score under WFP3 as in the program, whose waiting time is -1 - submit, as the start of a waiting job is -1."""
    return ((-1 - submit) / planned) ** 3 * procs


def unicep(planned: int, procs: int, submit: int) -> float:
    """Return the score under UNICEP as in the program, with the same waiting time; jobs of one processor come last."""
    return (-1 - submit + TINY) / ((math.log2(procs) + TINY) * planned)


FORMULAS: Mapping[str, Order] = {"fcfs": FCFS, "wfp3": order(wfp3), "unicep": order(unicep), "sjf": SJF, "f1": order(f1)}
"""The formulas of Table V, as the program computes them."""
QUICK_WINDOWS = 2
HALF_DIGIT = 0.005
"""The printed means have two decimals."""
Found = Mapping[str, np.ndarray]
"""The mean bounded slowdown of each window, by formula."""


@item("T5")
def table_5(study: Study) -> Parts:
    """Table V: bounded slowdown of formulas without and with backfilling."""
    rows: Rows = []
    for subject in study.subjects:
        for backfilling in (False, True):
            row = []
            for name, values in run(study, subject, FORMULAS, backfilling).items():
                printed = None
                if not study.quick:
                    printed = study.printed_value(subject, "T5", name, log=subject.name, backfilling=backfilling_word(backfilling))
                row.append(Value(float(values.mean()), printed, None if printed is None else HALF_DIGIT / printed, digits=2))
            rows.append([subject.name, backfilling_word(backfilling), *row])
    for line in study.printed.tables["T5"].rows:
        best = min(FORMULAS, key=lambda name: float(line[name]))
        claim = f"{line['log']}, {line['backfilling']}, as printed: the agent is better than the five formulas"
        yield Claim(claim, line["agent"] < line[best], f"{line['agent']:,.2f}, {best} {line[best]:,.2f}")
    yield Table("t5", "Mean bounded slowdown, mean over the windows", ["log", "backfilling", *FORMULAS], rows, windows_note(study))


def run(
    study: Study, subject: Subject, formulas: Mapping[str, Order], backfilling: bool, kind: str = "printed", dialect: str = "rlscheduler"
) -> Found:
    """Return the mean bounded slowdowns of the windows under each formula; stored simulations of the same `kind` are not repeated."""
    parts = windows(subject.workload)[: QUICK_WINDOWS if study.quick else None]
    policy = Easy if backfilling else NoBackfilling

    def measure(task: Mapping[str, Any], check: Callable[[int], None]) -> Mapping[str, Any]:
        check(0)
        schedule = simulate(parts[task["window"]], policy(order=formulas[task["formula"]]), dialect=dialect, overrun="continue")
        return {"slowdown": schedule.summary().mean_bounded_slowdown}

    task = {"sha256": subject.workload.origin.sha256, "dialect": dialect, "backfilling": backfilling, "as": kind}
    tasks = [task | {"formula": name, "window": number} for name in formulas for number in range(len(parts))]
    results = study.kept(f"{subject.name}: {backfilling_word(backfilling)}, {dialect}", tasks, measure)
    return dict(zip(formulas, np.array([one["slowdown"] for one in results]).reshape(-1, len(parts)), strict=True))


def backfilling_word(backfilling: bool) -> str:
    """Return the name of a row of Table V."""
    return "with" if backfilling else "without"


def windows_note(study: Study) -> str:
    """Return the note of a quick run."""
    return f"{QUICK_WINDOWS} windows of the ten." if study.quick else ""
