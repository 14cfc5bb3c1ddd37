"""mualem01, Table 2 and Figs. 8 and 9, and the model of section 4.3: what users estimate, and what a system could."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from walltime.accuracy.estimate_figures import draw_scatter, draw_use
from walltime.estimates import Mualem01
from walltime.metrics.estimates import FAILED, OVER, estimate_use_table, use_histogram
from walltime.papers import drawing
from walltime.papers.items import item
from walltime.papers.mualem01.experiment import schedule_of
from walltime.papers.results import Chart, Claims, Entry, Notes, Part, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import PAPER, Subject
from walltime.predictors import KEYS, Basis, Mualem01History
from walltime.report.figures import style
from walltime.schedule import Schedule
from walltime.simulation.replay import predict

Array = np.ndarray
NAMES = {
    "total": "total jobs",
    "killed": "killed jobs",
    "full": "100 % peak",
    "killed_full": "killed in the 100 % peak",
    "zero": "0 % peak",
    "short": "jobs under 90 s",
    "few_hours": "estimates up to 2 h",
}
DAY = 86_400
NEAR = 0.01


def killed_jobs(subject: Subject) -> Array | None:
    """Which jobs were killed, as counted by mualem01: status 0; None if the log has no such job."""
    status = subject.workload.columns.get("status")
    killed = None if status is None else status == FAILED
    return killed if killed is not None and killed.any() else None


@item("T2")
def table_2(study: Study) -> list[Part]:
    """Table 2: the parts of the histograms."""
    printed = study.printed.tables["T2"]
    subjects = [s for s in study.subjects if s.has_estimates]
    uses = {s.name: estimate_use_table(s.workload.runtime, s.workload.requested, killed_jobs(s)) for s in subjects}
    rows: list[list[Entry]] = []
    for name, label in NAMES.items():
        row: list[Entry] = [label]
        for subject in subjects:
            count = getattr(uses[subject.name], name)
            value = printed.value(subject.name, quantity=name) if subject.kind == PAPER else None
            row.append(None if count is None else Value(count, value, NEAR))
        rows.append(row)
    zero_jobs = [printed.value(s.name, quantity="zero_jobs") if s.kind == PAPER else None for s in subjects]
    zero = ["" if value is None else f"printed: {value:,.0f}" for value in zero_jobs]
    table = Table("table2", printed.title, ["", *(s.name for s in subjects)], [*rows, ["zero jobs", *zero]], printed.note)
    notes = [
        "Killed: status 0; 100 % peak: bins 99 and 100 of floor(100 r / e); 0 % peak: bin 0; definitions inferred from KTH.",
        "A reconstruction has no status, and neither jobs of no length nor runtimes over the estimate.",
    ]
    return [table, Notes(notes)]


@item("F8")
def figure_8(study: Study) -> list[Part]:
    """Fig. 8: users' estimates and runtimes."""
    subjects = [s for s in study.subjects if s.has_estimates]
    return [use_chart("fig8", subjects), Notes(["Left: how much of the request was used. Right: jobs that requested up to 2 h."])]


def use_chart(name: str, subjects: Sequence[Subject]) -> Chart:
    """One row per log: the histogram of the used share, and runtime against estimate."""
    with style():
        figure = Figure(figsize=(9.2, 3.1 * len(subjects) + 0.2), layout="constrained", facecolor="white")
        grid = figure.subplots(len(subjects), 2, squeeze=False)
        for (left, right), subject in zip(grid, subjects, strict=True):
            w = subject.workload
            draw_use(left, w.runtime, w.requested, killed_jobs(subject))
            draw_scatter(right, w.runtime, w.requested)
            left.set_title(f"{subject.name}: share of the estimate that was used")
    data: dict[str, list[int]] = {"percent": [*range(OVER), OVER]}
    for subject in subjects:
        data[subject.name] = use_histogram(subject.workload.runtime, subject.workload.requested).tolist()
    return Chart(name, figure, "The last bin holds all jobs that used more than 100 %.", data)


@item("S43")
def section_43(study: Study) -> list[Part]:
    """Section 4.3: a model of users' estimates."""
    subjects = [s for s in study.subjects if s.has_estimates]
    model = Mualem01(cap=DAY)
    drawn = {s.name: model.draw(s.workload, 0) for s in subjects}

    def draw(axes: Axes, _row: int, column: int) -> None:
        w = subjects[column].workload
        for k, (name, runtime, requested) in enumerate(
            (
                ("users", w.runtime, w.requested),
                ("model", np.minimum(w.runtime, drawn[subjects[column].name]), drawn[subjects[column].name]),
            )
        ):
            share = 100 * use_histogram(runtime, requested)[:OVER] / len(w)
            drawing.line(axes, np.arange(OVER), share, k, name)
        axes.set_ylim(0, 4)

    figure = drawing.panels([s.name for s in subjects], ["jobs (%)"], draw, x="share of the estimate that was used (%)")
    claims = Claims()
    data: dict[str, list[float]] = {"percent": list(range(OVER))}
    for subject in subjects:
        estimates = drawn[subject.name]
        w = subject.workload
        cut = np.minimum(w.runtime, estimates)
        longer = w.runtime >= 90
        share = use_histogram(cut[longer], estimates[longer])[10:90] / max(int(longer.sum()), 1)
        flat = float(share.std() / share.mean())
        claims.add(f"{subject.name}: flat from 10 to 90 %, jobs of 90 s and more", flat < 0.25, f"bins vary by {100 * flat:.0f} %")
        data[subject.name] = (100 * use_histogram(cut, estimates)[:OVER] / len(w)).tolist()
    caption = "Share of the estimate that was used: the users', and the model's, made from the runtimes alone. Peaks are cut."
    return [Chart("section43", figure, caption, data), claims]


USUAL = "mean + 1.5 sd"


def _part_of(schedule: Schedule, kept: Array) -> Schedule:
    """The same schedule with some of its jobs."""
    places = np.flatnonzero(kept)
    arrays = {name: getattr(schedule, name)[places] for name in ("start", "end", "runtime", "kind", "reserved_start")}
    return replace(schedule, workload=schedule.workload.take(places, "not killed"), **arrays)


@item("F9")
def figure_9(study: Study) -> list[Part]:
    """Fig. 9: the system's estimates from history."""
    printed = study.printed.tables["F9"]
    subjects = [s for s in study.subjects if s.has_estimates]
    variants: dict[str, dict[str, Any]] = {
        USUAL: {},
        "mean + 3 sd": {"deviations": 3.0},
        "sliding week": {"week": "sliding"},
        "never forgotten": {"week": "none"},
        "at least 2 runs": {"min_jobs": 2},
    }
    rows: list[list[Entry]] = []
    made: dict[str, tuple[Array, Array]] = {}
    claims = Claims()
    keys: list[str] = []
    for subject in subjects:
        w, schedule = subject.workload, schedule_of(subject, "easy")
        killed = killed_jobs(subject)
        kept = ~killed if killed is not None else w.runtime < w.requested
        programs = w.columns.get("executable")
        key = "program" if programs is not None and (programs >= 0).any() else "size"
        keys.append(f"{subject.name}: {' and '.join(KEYS[key])}")
        shares: dict[str, float] = {}
        predictors = [Mualem01History(key=key, **options) for options in variants.values()]
        judged = _part_of(schedule, kept)
        runtime = judged.runtime
        replays = predict(judged.workload, predictors, judged, clip=False, workers=study.workers)
        for name, replay in zip(variants, replays, strict=True):
            estimate = replay.predicted
            under, known = runtime > estimate, replay.basis == Basis.OWN
            jobs = len(runtime)
            shares[name] = float(under.mean())
            if name == USUAL:
                made[subject.name] = runtime, estimate
            row: list[Entry] = [subject.name, name]
            for quantity, count in (
                ("jobs", jobs),
                ("jobs with history", int(known.sum())),
                ("under-estimated", int(under.sum())),
                ("under-estimated with history", int((under & known).sum())),
            ):
                first = name == USUAL and subject.kind == PAPER
                value = printed.value(subject.name, quantity=quantity) if first else None
                row.append(Value(count, value, 0.12))
            percent = [100 * float(known.mean()), 100 * float(under.mean()), 100 * float((under & known).mean())]
            rows.append([*row, ", ".join(f"{p:.1f} %" for p in percent)])
        fewer = shares["mean + 3 sd"] < shares[USUAL]
        claims.add(f"{subject.name}: 3 standard deviations give fewer under-estimates", fewer, f"{100 * shares['mean + 3 sd']:.1f} %")

    with style():
        figure = Figure(figsize=(9.2, 3.1 * len(subjects) + 0.2), layout="constrained", facecolor="white")
        grid = figure.subplots(len(subjects), 2, squeeze=False)
        for (left, right), (log, (runtime, estimate)) in zip(grid, made.items(), strict=True):
            draw_use(left, runtime, estimate)
            draw_scatter(right, runtime, estimate)
            left.set_title(f"{log}: share of the system's estimate")
    columns = ["log", "variant", "jobs", "with history", "under-estimated", "of these with history", "shares"]
    data = {"percent": [*range(OVER), OVER]} | {log: use_histogram(*pair).tolist() for log, pair in made.items()}
    notes = [
        "mualem01's key is executable, user and number of nodes. A log that has no executables is keyed by what it has: "
        + "; ".join(keys)
        + ".",
        "History is what had ended before a job is submitted, in the schedule of EASY with the users' estimates: reconstructions have no "
        "real ends. Killed jobs are left out, as in mualem01; where a log does not tell them, those that used all of their request.",
    ]
    return [
        Chart("fig9", figure, "As Fig. 8, for the system's estimates.", data),
        Table("fig9", printed.title, columns, rows),
        claims,
        Notes(notes),
    ]
