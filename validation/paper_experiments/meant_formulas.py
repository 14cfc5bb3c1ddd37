"""zhang20: the formulas as they were meant, others, and all of them as queue orders of EASY."""

from __future__ import annotations

import math
from collections.abc import Mapping

from matplotlib.axes import Axes

from walltime.metrics.confidence import mean_interval
from walltime.papers import drawing
from walltime.papers.items import item
from walltime.papers.results import Claim, Parts, Rows, Table, Value, by_column
from walltime.papers.study import Study
from walltime.papers.zhang20 import EARLIEST, FORMULAS, TINY, Found, backfilling_word, run, windows_note
from walltime.policy import Order, order


def f2(planned: int, procs: int, submit: int) -> float:
    """F2 of carastan17."""
    return -(math.sqrt(planned) * procs + 25_600 * math.log10(max(submit, EARLIEST)))


def f3(planned: int, procs: int, submit: int) -> float:
    """F3 of carastan17."""
    return -(planned * procs + 6_860_000 * math.log10(max(submit, EARLIEST)))


def f4(planned: int, procs: int, submit: int) -> float:
    """F4 of carastan17."""
    return -(planned * math.sqrt(procs) + 530_000 * math.log10(max(submit, EARLIEST)))


def saf(planned: int, procs: int) -> float:
    """Smallest area first."""
    return -float(planned * procs)


def wfp3(wait: int, planned: int, procs: int) -> float:
    """WFP3, with the time that the job has waited."""
    return (wait / planned) ** 3 * procs


def unicep(wait: int, planned: int, procs: int) -> float:
    """UNICEP, with the time that the job has waited; jobs of one processor come first."""
    return (wait + TINY) / ((math.log2(procs) + TINY) * planned)


MEANT: Mapping[str, Order] = {"wfp3": order(wfp3), "unicep": order(unicep)}
"""The formulas with the waiting time as it was meant."""
AS_PRINTED: Mapping[str, Order] = {name: FORMULAS[name] for name in MEANT}
OTHERS: Mapping[str, Order] = {"f2": order(f2), "f3": order(f3), "f4": order(f4), "saf": order(saf)}
"""Formulas that the paper does not print."""
AS_MEANT: Mapping[str, Order] = {**FORMULAS, **MEANT, **OTHERS}


@item("meant")
def as_meant(study: Study) -> Parts:
    """The formulas as they were meant, and others."""
    rows: Rows = []
    for subject in study.subjects:
        for backfilling in (False, True):
            place = f"{subject.name}, {backfilling_word(backfilling)}"
            means = means_of(run(study, subject, AS_MEANT, backfilling, "meant"))
            rows.append([subject.name, backfilling_word(backfilling), *(Value(mean, digits=2) for mean in means.values())])
            for name, wrong in means_of(run(study, subject, AS_PRINTED, backfilling)).items():
                claim = f"{place}: {name} is better with its waiting time than as printed"
                yield Claim(claim, means[name] < wrong, f"{means[name]:,.2f} and {wrong:,.2f}")
            agent = study.printed.tables["T5"].value("agent", log=subject.name, backfilling=backfilling_word(backfilling))
            if agent is not None:
                best = min(means, key=lambda name: means[name])
                claim = f"{place}: the agent is better than every formula, also the ones that are not printed"
                yield Claim(claim, agent < means[best], f"{agent:,.2f}, {best} {means[best]:,.2f}")
    title = "Mean bounded slowdown, mean over the windows"
    yield Table("meant", title, ["log", "backfilling", *AS_MEANT], rows, windows_note(study))


@item("easy")
def under_easy(study: Study) -> Parts:
    """The formulas as queue orders of EASY."""
    rows: Rows = []
    means: dict[str, dict[str, list[float]]] = {}
    for subject in study.subjects:
        slowdowns = run(study, subject, AS_MEANT, True, "meant", "papers")
        programs = means_of(run(study, subject, AS_MEANT, True, "meant"))
        means[subject.name] = {"rlscheduler with backfilling": list(programs.values()), "EASY": list(means_of(slowdowns).values())}
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
    yield drawing.chart("easy-orders", caption, data, means, "mean bounded slowdown", draw)
    yield Table("easy", "Mean bounded slowdown under EASY, by queue order", columns, rows, windows_note(study))
    yield (
        "The difference is paired: each window under both orders. The windows overlap in part, and each begins on an empty "
        "machine, so the intervals are narrower than they would be for other jobs."
    )


def means_of(slowdowns: Found) -> dict[str, float]:
    """Return the mean over the windows, by formula."""
    return {name: float(values.mean()) for name, values in slowdowns.items()}
