"""mualem01, Table 2 and Figs. 8 and 9, and the model of section 4.3: estimates by users and by the system."""

from collections.abc import Mapping, Sequence
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
from walltime.papers.results import Chart, Claim, Entry, Parts, Rows, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
from walltime.predictors import KEYS, Basis, Mualem01History
from walltime.report.figures import style
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
    """Return a mask (bool) of the killed jobs, as mualem01 counts them (status 0); None if the log has no such job."""
    status = subject.workload.columns.get("status")
    killed = None if status is None else status == FAILED
    return killed if killed is not None and killed.any() else None


@item("T2")
def table_2(study: Study) -> Parts:
    """Table 2: jobs in each part of the histograms of used shares."""
    printed, subjects = study.printed.tables["T2"], study.with_estimates
    uses = {s.name: estimate_use_table(s.workload.runtime, s.workload.requested, killed_jobs(s)) for s in subjects}
    rows: Rows = []
    for name, label in NAMES.items():
        row: list[Entry] = [label]
        for subject in subjects:
            count = getattr(uses[subject.name], name)
            row.append(None if count is None else Value(count, study.printed_value(subject, "T2", subject.name, quantity=name), NEAR))
        rows.append(row)
    zeros = [study.printed_value(subject, "T2", subject.name, quantity="zero_jobs") for subject in subjects]
    rows.append(["zero jobs", *("" if value is None else f"printed: {value:,.0f}" for value in zeros)])
    yield Table("table2", printed.title, ["", *(s.name for s in subjects)], rows, printed.note)
    yield "Killed: status 0; 100 % peak: bins 99 and 100 of floor(100 r / e); 0 % peak: bin 0; definitions inferred from KTH."
    yield "A reconstructed log has no status, no jobs with a runtime of 0, and no runtimes over the estimate."


@item("F8")
def figure_8(study: Study) -> Parts:
    """Fig. 8: users' estimates and runtimes."""
    yield use_chart("fig8", study.with_estimates)
    yield "Left: share of the request that was used. Right: jobs that requested up to 2 h."


def use_chart(name: str, subjects: Sequence[Subject]) -> Chart:
    """Return the chart of the share of the request that each job used, one row per log."""
    jobs = {s.name: (s.workload.runtime, s.workload.requested, killed_jobs(s)) for s in subjects}
    return _histograms(name, jobs, "share of the estimate that was used", "The last bin holds all jobs that used more than 100 %.")


def _histograms(name: str, jobs: Mapping[str, tuple[Array, Array, Array | None]], title: str, caption: str) -> Chart:
    """Draw a row per log: a histogram of the used share, and runtime against estimate; `jobs`: runtimes, estimates, killed jobs."""
    with style():
        figure = Figure(figsize=(9.2, 3.1 * len(jobs) + 0.2), layout="constrained", facecolor="white")
        grid = figure.subplots(len(jobs), 2, squeeze=False)
        for (left, right), (log, (runtime, requested, killed)) in zip(grid, jobs.items(), strict=True):
            draw_use(left, runtime, requested, killed)
            draw_scatter(right, runtime, requested)
            left.set_title(f"{log}: {title}")
    data = {"percent": [*range(OVER), OVER]}
    data |= {log: use_histogram(runtime, requested).tolist() for log, (runtime, requested, _) in jobs.items()}
    return Chart(name, figure, caption, data)


@item("S43")
def section_43(study: Study) -> Parts:
    """Section 4.3: a model of users' estimates."""
    model = Mualem01(cap=DAY)
    by_log: dict[str, dict[str, Array]] = {}
    for subject in study.with_estimates:
        w = subject.workload
        drawn = model.draw(w, 0)
        cut = np.minimum(w.runtime, drawn)
        uses = {"users": use_histogram(w.runtime, w.requested), "model": use_histogram(cut, drawn)}
        by_log[subject.name] = {name: 100 * counts[:OVER] / len(w) for name, counts in uses.items()}
        longer = w.runtime >= 90
        share = use_histogram(cut[longer], drawn[longer])[10:90] / max(int(longer.sum()), 1)
        flat = float(share.std() / share.mean())
        yield Claim(f"{subject.name}: flat from 10 to 90 %, jobs of 90 s and more", flat < 0.25, f"bins vary by {100 * flat:.0f} %")

    def draw(axes: Axes, by_name: dict[str, Array], _row: str) -> None:
        drawing.lines(axes, by_name, first=0)
        axes.set_ylim(0, 4)

    data: dict[str, list[float]] = {"percent": list(range(OVER))} | {log: shares["model"].tolist() for log, shares in by_log.items()}
    caption = "Share of the estimate that was used: the users', and the model's, made from the runtimes alone. Peaks are cut."
    yield drawing.chart("section43", caption, data, by_log, "jobs (%)", draw, x="share of the estimate that was used (%)")


USUAL = "mean + 1.5 sd"
VARIANTS: dict[str, dict[str, Any]] = {
    USUAL: {},
    "mean + 3 sd": {"deviations": 3.0},
    "sliding week": {"week": "sliding"},
    "never forgotten": {"week": "none"},
    "at least 2 runs": {"min_jobs": 2},
}


@item("F9")
def figure_9(study: Study) -> Parts:
    """Fig. 9: the system's estimates from history."""
    rows: Rows = []
    made: dict[str, tuple[Array, Array, None]] = {}
    keys: list[str] = []
    for subject in study.with_estimates:
        w, schedule = subject.workload, schedule_of(subject, "easy")
        killed = killed_jobs(subject)
        kept = np.flatnonzero(~killed if killed is not None else w.runtime < w.requested)
        key = "program" if subject.has_column("executable") else "size"
        keys.append(f"{subject.name}: {' and '.join(KEYS[key])}")
        arrays = {name: getattr(schedule, name)[kept] for name in ("start", "end", "runtime", "kind", "reserved_start")}
        judged = replace(schedule, workload=schedule.workload.take(kept, "not killed"), **arrays)
        predictors = [Mualem01History(key=key, **options) for options in VARIANTS.values()]
        replays = predict(judged.workload, predictors, judged, clip=False, workers=study.workers)
        shares: dict[str, float] = {}
        for name, replay in zip(VARIANTS, replays, strict=True):
            under, known = judged.runtime > replay.predicted, replay.basis == Basis.OWN
            shares[name] = float(under.mean())
            if name == USUAL:
                made[subject.name] = judged.runtime, replay.predicted, None
            row: list[Entry] = [subject.name, name]
            counts = {"jobs": len(under), "jobs with history": int(known.sum()), "under-estimated": int(under.sum())}
            for quantity, count in (counts | {"under-estimated with history": int((under & known).sum())}).items():
                printed = study.printed_value(subject, "F9", subject.name, quantity=quantity) if name == USUAL else None
                row.append(Value(count, printed, 0.12))
            rows.append([*row, ", ".join(f"{100 * float(part.mean()):.1f} %" for part in (known, under, under & known))])
        fewer = shares["mean + 3 sd"] < shares[USUAL]
        yield Claim(f"{subject.name}: 3 standard deviations give fewer under-estimates", fewer, f"{100 * shares['mean + 3 sd']:.1f} %")
    yield _histograms("fig9", made, "share of the system's estimate", "As Fig. 8, for the system's estimates.")
    columns = ["log", "variant", "jobs", "with history", "under-estimated", "of these with history", "shares"]
    yield Table("fig9", study.printed.tables["F9"].title, columns, rows)
    yield f"mualem01's key is executable, user and number of nodes. Logs without executables have other keys: {'; '.join(keys)}."
    yield (
        "A job's history is the jobs that had ended before it was submitted, in the schedule of EASY with the users' estimates, as "
        "reconstructions have no real ends. Killed jobs are left out, as in mualem01; where a log does not mark them, these are the jobs "
        "that used all of their request."
    )
