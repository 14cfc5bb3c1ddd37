"""tsafrir06, Tables I and II, the worked examples of Figs. 1 and 6, the formula of Fig. 10, and the estimates of Figs. 11 and 12."""

from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from walltime.accuracy.estimate_figures import draw_accuracy, draw_distributions
from walltime.estimates.fmodel import wrong_order_probability
from walltime.metrics.estimates import accuracy_by_runtime, rank_of, top_share
from walltime.papers import drawing
from walltime.papers.drawing import Example, example_chart
from walltime.papers.items import item
from walltime.papers.results import Claim, Parts, Rows, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
from walltime.policy import Easy
from walltime.simulation import simulate
from walltime.workload import Workload

SCALE = 3
"""Unit of time of the worked examples, s, so that thirds are whole."""
RUNTIMES = {"J1": 6, "J2": 4, "J3": 3, "J4": 4, "J5": 3, "J6": 2}
"""Runtimes of Fig. 6, by Table II; J3's is not in the paper."""
RATIOS = (1.5, 2.0, 4.0, 10.0)
SAMPLES = 200_000


@item("T1")
def table_1(study: Study) -> Parts:
    """Table I: the logs."""
    rows: Rows = []
    for subject in study.subjects:
        w = subject.workload
        procs, jobs, load = (study.printed_value(subject, "T1", name, log=subject.name) for name in ("procs", "jobs", "utilization"))
        days = f"{(int(w.submit[-1]) - int(w.submit[0])) / 86_400:,.0f} days"
        size = [Value(w.machine_procs, procs, within=0), Value(len(w), jobs, within=0.01)]
        rows.append([subject.name, subject.log, subject.about, *size, days, Value(w.offered_load, load, within=0.02, digits=3)])
    columns = ["log", "file", "origin", "processors", "jobs", "submitted over", "offered load"]
    yield Table("table1", "The logs", columns, rows)


def figure_6_jobs(factor: Fraction) -> Workload:
    """Return the jobs of Fig. 6 with estimates of `factor` times the runtimes; J3 needs both processors, the others one."""
    runtime = np.array([SCALE * r for r in RUNTIMES.values()])
    requested = np.array([int(SCALE * r * factor) for r in RUNTIMES.values()])
    procs = np.array([2 if name == "J3" else 1 for name in RUNTIMES])
    return Workload.from_arrays(submit=np.arange(len(runtime)) * 0, runtime=runtime, requested=requested, procs=procs, machine_procs=2)


@item("T2", where="a worked example")
def table_2(study: Study) -> Parts:
    """Table II: the hole in the schedule of Fig. 6."""
    printed = study.printed.tables["T2"]
    rows: Rows = []
    for text in (str(row["F"]) for row in printed.rows):
        factor = Fraction(text)
        jobs = figure_6_jobs(factor)
        schedule = simulate(jobs, Easy())
        hole = int(schedule.reserved_start[list(RUNTIMES).index("J3")]) / SCALE - RUNTIMES["J2"]
        started = next(name for name, start in zip(RUNTIMES, schedule.start.tolist(), strict=True) if start == SCALE * RUNTIMES["J2"])
        mine = [Value(float(RUNTIMES[j] * factor), printed.value(j, F=text), within=0.001, digits=2) for j in ("J1", "J4", "J5", "J6")]
        rows.append([text, *mine, Value(hole, printed.value("hole", F=text), within=0.001, digits=2), started])
    columns = ["F", "J1", "J4", "J5", "J6", "hole at T4", "the first that fits"]
    yield Table("table2", printed.title, columns, rows)
    yield printed.note


@item("F1", where="a worked example")
def figure_1(_study: Study) -> Parts:
    """Fig. 1: EASY backfilling."""

    def jobs(length: int) -> Workload:
        return Workload.from_arrays(submit=[0] * 4, procs=[2, 2, 4, 2], runtime=[4, 2, 3, length], machine_procs=4)

    fits, too_long = (Example(f"job 4 is {length} long", jobs(length), Easy()) for length in (2, 3))
    caption = "Job 4 is backfilled into the hole if it is no longer than 2; else it would delay job 3, which has a reservation at 4."
    yield example_chart("fig1", [fits, too_long], caption)


@item("F6", where="a worked example")
def figure_6(_study: Study) -> Parts:
    """Fig. 6: heel and toe."""
    examples = [Example(f"estimates {f} x runtime", figure_6_jobs(f), Easy(), SCALE) for f in (Fraction(1), Fraction(2))]
    caption = (
        "Two processors, all jobs submitted at T0; J3 needs both. With doubled estimates J4, J5 and J6 are backfilled one after the other."
    )
    yield example_chart("fig6", examples, caption)
    exact, double = (simulate(example.workload, Easy(), dynamics=True) for example in examples)
    assert double.dynamics is not None
    perfect, doubled, reserved = (int(at) / SCALE for at in (exact.start[2], double.start[2], double.reserved_start[2]))
    yield Claim("F = 2: J3 has its reservation at T12", reserved == 12, f"T{reserved:g}")
    wild = double.dynamics.wild[3] and double.start[3] == 4 * SCALE
    yield Claim("F = 2: J4 is backfilled at T4, a wild backfill", wild, "J4 starts at T4")
    yield Claim("J3 starts later than with perfect estimates", doubled > perfect, f"T{doubled:g} against T{perfect:g}")


@item("F10", where="a formula")
def figure_10(_study: Study) -> Parts:
    """Fig. 10: probability that the f-model puts two jobs in the wrong order."""
    factors = np.linspace(1, 30, 59)
    few = factors[::6]
    first, second = np.random.Generator(np.random.Philox(10)).random((2, SAMPLES))
    curves = {ratio: np.array([wrong_order_probability(1.0, ratio, float(f)) if f > 1 else 0.0 for f in factors]) for ratio in RATIOS}
    sampled = {ratio: np.array([(1 + (f - 1) * first > ratio * (1 + (f - 1) * second)).mean() for f in few]) for ratio in RATIOS}

    def draw(axes: Axes, _data: None, _row: str) -> None:
        for k, ratio in enumerate(RATIOS):
            drawing.line(axes, factors, curves[ratio], k, f"r2 = {ratio:g} r1")
            look: dict[str, Any] = {"linestyle": "", "markersize": 3.5, "color": "black", "markerfacecolor": "none"}
            axes.plot(few, sampled[ratio], marker=drawing.MARKERS[k], **look)

    data = {"F": factors.tolist()} | {f"ratio_{r:g}": curves[r].tolist() for r in RATIOS}
    caption = "The curves are the formula, the marks shares of random samples."
    yield drawing.chart("fig10", caption, data, {"": None}, "Pr(e1 > e2)", draw, x="F")
    worst = max(float(np.abs(curves[ratio][::6] - sampled[ratio]).max()) for ratio in RATIOS)
    error = 4 * 0.5 / SAMPLES**0.5
    yield Claim("formula and samples agree", worst < error, f"largest difference {worst:.5f}, four standard errors are {error:.5f}")
    yield Claim("never over r1 / (2 r2)", all(float(curves[r].max()) <= 1 / (2 * r) for r in RATIOS), "at every F drawn")
    rows: Rows = [[f"{r:g}", float(curves[r][-1]), float(sampled[r][-1]), 1 / (2 * r)] for r in RATIOS]
    columns = ["r2 / r1", f"formula, F = {factors[-1]:g}", f"{SAMPLES:,} samples", "limit r1 / (2 r2)"]
    yield Table("fig10", "At the right end", columns, rows, digits=4)


@item("F11")
def figure_11(study: Study) -> Parts:
    """Fig. 11: runtimes and estimates."""

    def draw(axes: Axes, subject: Subject, _row: str) -> None:
        w = subject.workload
        draw_distributions(axes, np.minimum(w.runtime, w.requested), w.requested, subject.emax)
        legend = axes.get_legend()
        if legend is not None:
            legend.remove()
        axes.set_xticks(axes.get_xticks()[::2])

    rows: Rows = []
    for subject in study.subjects:
        requested = subject.workload.requested
        effective = int(subject.facts.get("effective_emax", subject.emax))
        share, (rank, percent) = top_share(requested), rank_of(effective, requested)
        rows.append([subject.name, share, f"{effective / 3600:g} h", rank, percent])
        if subject.has_estimates:
            yield Claim(f"{subject.name}: 20 values are the estimates of about 90 % of the jobs", abs(share - 90) <= 5, f"{share:.1f} %")
            evidence = f"{percent:.1f} %, rank {rank}"
            yield Claim(f"{subject.name}: 10 to 27 % of the jobs use the largest estimate", 10 <= percent <= 27, evidence)
    columns = ["log", "the 20 most used values (%)", "effective largest estimate", "its rank", "its jobs (%)"]
    caption = "Runtimes dashed, estimates full; the steps are values that many users choose."
    by_log = {s.name: s for s in study.subjects}
    yield drawing.chart("fig11", caption, {"log": list(by_log)}, by_log, "share of jobs (%)", draw)
    yield Table("fig11", "How modal the estimates are", columns, rows, digits=1)
    yield "The effective largest estimate is 4 h for KTH, 2 h for BLUE (tsafrir06, section VII), and else the site's limit."


@item("F12")
def figure_12(study: Study) -> Parts:
    """Fig. 12: accuracy and runtime."""

    def draw(axes: Axes, w: Workload, _row: str) -> None:
        draw_accuracy(axes, w.runtime, w.requested)
        axes.set_xlabel("")

    data: dict[str, list[float]] = {}
    for subject in study.subjects:
        w = subject.workload
        _, ratio = accuracy_by_runtime(w.runtime, w.requested)
        data[subject.name] = [*ratio.tolist(), *[float("nan")] * (100 - len(ratio))]
        short, long = float(ratio[:20].mean()), float(ratio[-20:].mean())
        if subject.has_estimates:
            evidence = f"shortest fifth {100 * short:.0f} %, longest fifth {100 * long:.0f} %"
            yield Claim(f"{subject.name}: long jobs are estimated better", long > short, evidence)
    caption, by_log = "Jobs from the shortest to the longest, in hundredths.", {s.name: s.workload for s in study.subjects}
    yield drawing.chart("fig12", caption, data, by_log, "mean accuracy (%)", draw, x="jobs by runtime", legend=False)
