"""tang13, Fig. 12, the example, and Figs. 14 to 17: adjusted walltimes in the scheduler, month by month."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from matplotlib.axes import Axes

from walltime.metrics import mean_gain, weighted_wait_under
from walltime.papers import drawing
from walltime.papers.drawing import Example, example_chart
from walltime.papers.items import item
from walltime.papers.results import Claim, Parts, Rows, Table, Value, by_column
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
from walltime.papers.tang13.schemes import METHOD, SCHEMES, months_of, simulated_replays
from walltime.policy import FCFS, WFP, Easy, Order
from walltime.predictors import Prediction, Predictor
from walltime.simulation import simulate
from walltime.workload import Array, Workload

ORDERS: Mapping[str, Order] = {"wfp": WFP, "fcfs": FCFS}
MODES = ("regular", "selective")
MEASURES = {"wait": "average wait", "slowdown": "average slowdown", "weighted": "weighted wait"}
BASELINE = {"wait": 100.0, "slowdown": 10.0, "weighted": 100.0}
"""The value of each month without adjustment, as scaled in tang13's figures."""
MONTHS = 12
FEW_MONTHS = 4
LEAST_JOBS = 50
"""A month with fewer jobs than this is left out."""
FIGURES = {"F14": ("wfp", "regular"), "F15": ("wfp", "selective"), "F16": ("fcfs", "regular"), "F17": ("fcfs", "selective")}


@dataclass(frozen=True, eq=False)
class FixedPredictions(Predictor):
    """Predictions made before the simulation: int64, seconds, shape (jobs,)."""

    name: ClassVar[str] = "fixed"
    values: Array

    def predict_all(self, workload: Workload, requested: Array, runtime: Array) -> Array:
        """Return the predictions."""
        return self.values


def simulate_month(workload: Workload, order: Order, mode: str, predicted: Array | None) -> dict[str, float]:
    """Simulate one month on an empty machine until it is empty again; return wait and slowdown, and the wait weighted by priority."""
    options: dict[str, Any] = {} if predicted is None else {"prediction": Prediction(FixedPredictions(predicted), mode)}
    schedule = simulate(workload, Easy(order=order), **options)
    summary = schedule.summary()
    w = schedule.workload
    weighted = weighted_wait_under(order, w.submit, schedule.start, w.requested, w.procs)
    broken = int(((schedule.reserved_start >= 0) & (schedule.start > schedule.reserved_start)).sum())
    values = {"wait": summary.mean_wait, "slowdown": summary.mean_slowdown, "weighted": weighted, "bounded": summary.mean_bounded_slowdown}
    return {**values, "broken": broken, "jobs": len(workload)}


Combination = tuple[str, str, str]
"""An order, a mode and a scheme; the mode and the scheme `none` are the baseline."""


def run_months(study: Study, subject: Subject) -> dict[Combination, list[dict[str, float]]]:
    """Return the results of each combination, one per month."""
    known: dict[Combination, list[dict[str, float]]] | None = study.memory.get(("months", subject.name))
    if known is not None:
        return known
    w = subject.workload
    predicted = {s: replay.predicted for s, replay in simulated_replays(study, subject).items()}
    places = {name: np.flatnonzero((w.submit >= begin) & (w.submit < end)) for name, begin, end in months_of(subject)[1:]}
    names = [name for name, inside in places.items() if len(inside) >= LEAST_JOBS][: FEW_MONTHS if study.quick else MONTHS]
    alone = {name: w.take(places[name], name) for name in names}
    head = {"sha256": w.origin.sha256, "procs": w.machine_procs}
    tasks = [
        head | {"order": order, "mode": mode, "scheme": scheme, "month": name}
        for order in ORDERS
        for mode, scheme in [("none", "none"), *itertools.product(MODES, SCHEMES)]
        for name in names
    ]

    def compute(task: Mapping[str, Any], _check: Callable[[int], None]) -> dict[str, float]:
        month, scheme = task["month"], task["scheme"]
        chosen = None if scheme == "none" else predicted[scheme][places[month]]
        return simulate_month(alone[month], ORDERS[task["order"]], task["mode"], chosen)

    known = study.memory["months", subject.name] = {}
    for task, result in zip(tasks, study.kept(f"{subject.name}: months", tasks, compute), strict=True):
        known.setdefault((str(task["order"]), str(task["mode"]), str(task["scheme"])), []).append(result)
    return known


def gains(results: Mapping[Combination, Sequence[Mapping[str, float]]], order: str, mode: str, scheme: str) -> dict[str, float]:
    """Return the mean of the monthly gains over no adjustment, percent, by measure."""
    base, mine = results.get((order, "none", "none"), []), results.get((order, mode, scheme), [])
    result = {}
    for measure in MEASURES:
        pairs = [(m[measure], b[measure]) for m, b in zip(mine, base, strict=True) if b[measure] > 0 and math.isfinite(m[measure])]
        result[measure] = mean_gain(*np.array(pairs).T) if pairs else math.nan
    return result


def _figure(study: Study, name: str) -> Parts:
    """Yield the output of one of the `FIGURES`."""
    order, mode = FIGURES[name]
    by_log = {s.name: run_months(study, s) for s in study.with_users}

    def draw(axes: Axes, results: dict[Combination, list[dict[str, float]]], measure: str) -> None:
        base = np.array([m[measure] for m in results.get((order, "none", "none"), [])], np.float64)
        if not len(base):
            return
        x = np.arange(1, len(base) + 1)
        drawing.line(axes, x, np.full(len(base), BASELINE[measure]), 3, "no adjustment", linewidth=1)
        values = {scheme: np.array([m[measure] for m in results[order, mode, scheme]], np.float64) for scheme in SCHEMES}
        with np.errstate(divide="ignore", invalid="ignore"):
            drawing.lines(axes, {s: BASELINE[measure] * v / base for s, v in values.items()}, markers=True)

    rows: Rows = []
    for printed in study.printed.tables["gains"].rows:
        if (printed["order"], printed["mode"]) == (order, mode):
            given = [v if isinstance(v, str) else Value(float(v)) for v in (printed[m] for m in MEASURES)]
            rows.append(["tang13: Intrepid", str(printed["scheme"]), *given, None])
    lines: list[tuple[object, ...]] = []
    for log, results in by_log.items():
        by_scheme = {s: gains(results, order, mode, s) for s in SCHEMES}
        for scheme, values in by_scheme.items():
            broken = sum(int(m["broken"]) for m in results.get((order, mode, scheme), []))
            rows.append([log, scheme, *values.values(), Value(broken)])
        evidence = ", ".join(f"{s} {v['wait']:+.1f} %" for s, v in by_scheme.items())
        mine = by_scheme["p85"]["wait"]
        yield Claim(f"{log}: p85 shortens the average wait", mine > 0, evidence)
        if mode == "selective":
            regular = gains(results, order, "regular", "p85")["wait"]
            evidence = f"{mine:+.1f} % against {regular:+.1f} %"
            yield Claim(f"{log}: selective beats regular on the wait (p85)", mine > regular, evidence)
        for scheme in ("none", *SCHEMES):
            for k, month in enumerate(results.get((order, "none" if scheme == "none" else mode, scheme), []), 1):
                lines.append((log, scheme, k, *(month[m] for m in MEASURES)))
    columns = ["log", "scheme", "wait", "slowdown", "weighted wait", "reserved starts missed"]
    title = f"Average improvement, {order.upper()}, {mode} adjustment (%)"
    note = "Mean of the monthly gains; positive is better. Reserved starts missed: jobs that started after their first reservation."
    data = by_column(["log", "scheme", "month", *MEASURES], lines)
    caption = "Each month's unadjusted value is set to 100 (slowdown: 10)."
    yield drawing.chart(name.lower(), caption, data, by_log, MEASURES, draw, x="month")
    yield Table(name.lower(), title, columns, rows, note, digits=1)
    yield METHOD
    yield MONTH_NOTE


MONTH_NOTE = (
    "Each month is simulated alone, on an empty machine, until it is empty again; predictions are fixed at submission and learn from the "
    "log, also from the months before. The first month is history only. Jobs are killed at their users' requests in any case."
)


ADJUSTED = {1: 60, 2: 100, 3: 90, 4: 90, 5: 50}
"""Adjusted walltimes of Fig. 12; the figure has no numbers, so these follow its proportions."""
ESTIMATED, RAN = {3: 150, 4: 150, 5: 50}, {3: 80, 4: 130, 5: 40}


def figure_12_jobs(waiting: int) -> Workload:
    """Return the running job 1, job 2 at the head of the queue, and one of the jobs behind it."""
    return Workload.from_arrays(
        submit=[0, 1, 2], runtime=[80, 50, RAN[waiting]], requested=[100, 100, ESTIMATED[waiting]], procs=[6, 8, 4], machine_procs=10
    )


@item("F12", where="a worked example")
def figure_12(_study: Study) -> Parts:
    """Fig. 12: over- and under-estimates in backfilling."""
    starts: dict[tuple[int, str], list[int]] = {}
    reserved_start: dict[tuple[int, str], int] = {}
    for waiting in (3, 4, 5):
        jobs = figure_12_jobs(waiting)
        predicted = np.array([ADJUSTED[1], ADJUSTED[2], ADJUSTED[waiting]])
        for mode in ("none", "selective", "regular"):
            done = simulate(jobs, Easy(), prediction=Prediction(FixedPredictions(predicted), mode, "estimate"))
            starts[waiting, mode], reserved_start[waiting, mode] = done.start.tolist(), int(done.reserved_start[1])
    second = {key: start[1] for key, start in starts.items()}
    at_once = {key for key, start in starts.items() if start[2] == 2}
    late = {key for key, start in second.items() if start > reserved_start[key]}
    at = {key: f"2 starts at {start}" for key, start in second.items()}
    claims = (
        ("not adjusted: only job 5 is backfilled", [(j, "none") in at_once for j in (3, 4, 5)] == [False, False, True], "3 and 4 wait"),
        ("waiting jobs adjusted: 3 and 4 are backfilled too", {(j, "selective") for j in (3, 4, 5)} <= at_once, "all start at 2"),
        ("job 3, over-estimated, keeps job 2's reservation", (3, "selective") not in late, at[3, "selective"]),
        ("job 4, under-estimated, delays job 2", (4, "selective") in late, at[4, "selective"]),
        ("running jobs adjusted too: neither 3 nor 4 fits", not {(3, "regular"), (4, "regular")} & at_once, "the window ends at 60"),
        ("and job 2 misses its reservation", (3, "regular") in late, f"at {second[3, 'regular']} instead of 60"),
    )
    yield from map(Claim._make, claims)
    rows: Rows = [[str(key[0]), key[1], Value(start[1]), Value(reserved_start[key]), Value(start[2])] for key, start in starts.items()]
    drawn = []
    for waiting in (3, 4):
        jobs, names = figure_12_jobs(waiting), ["1", "2", str(waiting)]
        adjusted = replace(jobs, planned=np.array([100, 100, ADJUSTED[waiting]]))
        drawn.append(Example(f"job {waiting}, as estimated by its user", jobs, Easy(), names=names))
        drawn.append(Example(f"job {waiting}, adjusted while it waits", adjusted, Easy(), names=names))
    yield example_chart("fig12", drawn, "A machine of 10; job 1 runs, job 2 has a reservation at 100.")
    yield Table("fig12", "Starts", ["job behind", "adjustment", "2 starts at", "reserved at", "it starts at"], rows)


F14, F15, F16, F17 = (
    item(name, title=f"Fig. {name[1:]}: {order.upper()}, {mode} adjustment", name=name)(_figure) for name, (order, mode) in FIGURES.items()
)
