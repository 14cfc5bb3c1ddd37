"""mualem01, Figs. 4 to 7: EASY against conservative backfilling on workload models, over the load."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from walltime.errors import WorkloadError
from walltime.metrics import Interval, bounded_slowdown, mean_interval
from walltime.papers import drawing
from walltime.papers.items import item
from walltime.papers.mualem01.experiment import POLICIES, schedule_of
from walltime.papers.results import Chart, Claims, Entry, Notes, Part, Table, Value, by_column
from walltime.papers.study import Study
from walltime.policy import Kind, NoBackfilling
from walltime.report.figures import INK
from walltime.simulation import simulate
from walltime.workload.models import parse_model

Array = np.ndarray

LOADS = (0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
FEW_LOADS = (0.5, 0.7, 0.8, 0.9)
BATCHES, FEW_BATCHES = 100, 20
TRIAL = 12
"""Batches of a first run, which determines whether there is a steady state."""
SATURATION = 30_000
"""Mean response, s, from which on mualem01 stops: there is no steady state."""
MODELS = {
    # name in the figures: model, machine, jobs in a batch
    "F": ("feitelson96", 128, 3333),
    "J": ("jann97", 322, 990),
    "Fs": ("feitelson96-fs", 128, 3333),
    "Fl": ("feitelson96-fl", 128, 3333),
    "Fsl": ("feitelson96-fsl", 128, 3333),
}
SCHEDULERS = {"fcfs": NoBackfilling(), **POLICIES}
CLASSES = {"1": (1, 1), "2-4": (2, 4), "5-16": (5, 16), "17-64": (17, 64), "over 64": (65, 2**40)}
MODEL_NOTE = (
    "Machines of 128 processors for Feitelson's model and its variants, 322 for Jann's: mualem01 does not say. Many constants of "
    "Feitelson's model are unverified, Jann's is a refit, and Fs, Fl and Fsl are our construction; so only the "
    "comparison of the schedulers is to be read, not the height of a curve."
)
BATCH_NOTE = (
    "90 % confidence intervals of the mean response by batch means: the first batch is left out, and a run ends after 100 batches, or "
    "when the half-width is under 5 % of the mean, or when the mean is over 30,000 s: such runs have no steady state and are not drawn. "
    "Batches are taken for independent, as the paper does; at high loads they are not, and the intervals hold less than 90 %."
)
Curves = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]


def run_model(task: Mapping[str, Any], check: Callable[[int], None]) -> dict[str, Any]:
    """One model at one load under one scheduler, with perfect estimates: means with intervals, by batch means."""
    model, policy = parse_model(task["model"]), SCHEDULERS[task["policy"]]
    for batches in dict.fromkeys((min(TRIAL, task["batches"]), task["batches"])):
        jobs = task["batch"] * (batches + 1)
        workload = model.generate(jobs, task["procs"], task["load"], seed=task["seed"])
        workload = workload.with_feedback() if "preceding_job" in workload.columns else workload
        schedule = simulate(workload, policy, progress=check)
        order = np.argsort(schedule.end, kind="stable")
        response = (schedule.end - schedule.submit)[order]
        means = published_batch_means(response, batch=task["batch"], most=task["batches"], saturation=SATURATION)
        if means.stopped != "out of jobs":
            break
    used = slice(task["batch"], task["batch"] * (1 + means.batches))
    slowdown = bounded_slowdown(schedule.wait, schedule.runtime, form="p1")[order][used]
    by_batch = published_batch_means(
        np.concatenate((slowdown[: task["batch"]], slowdown)), batch=task["batch"], most=means.batches, saturation=np.inf
    )
    return {
        "response": means.interval.mean,
        "response_half_width": means.interval.half_width,
        "slowdown": float(slowdown.mean()),
        "slowdown_half_width": by_batch.interval.half_width,
        "backfilled_percent": 100 * float((schedule.kind[order][used] == Kind.BACKFILLED).mean()),
        "batches": means.batches,
        "stopped": means.stopped,
        "saturated": means.stopped == "saturated",
        "utilization": schedule.summary().utilization,
    }


def run_models(study: Study, names: Sequence[str], schedulers: Sequence[str]) -> Curves:
    """Results by model, scheduler and load."""
    loads = FEW_LOADS if study.quick else LOADS
    tasks = []
    for name in names:
        model, procs, batch = MODELS[name]
        for policy in schedulers:
            for load in loads:
                what = {"model": model, "procs": procs, "batch": batch, "policy": policy, "load": load, "seed": 0}
                tasks.append({**what, "batches": FEW_BATCHES if study.quick else BATCHES})
    results = study.kept("models over the load", tasks, run_model)
    curves: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    labels = {MODELS[name][0]: name for name in names}
    for task, result in zip(tasks, results, strict=True):
        curves.setdefault(labels[str(task["model"])], {}).setdefault(str(task["policy"]), []).append({"load": task["load"], **result})
    return curves


def steady(rows: Sequence[Mapping[str, Any]], column: str) -> tuple[Array, Array]:
    """The loads with a steady state, and a column of the results there; float64, shape (loads,)."""
    chosen = [row for row in rows if not row["saturated"]]
    return np.array([row["load"] for row in chosen]), np.array([row[column] for row in chosen])


def curve_chart(name: str, curves: Curves, metrics: Mapping[str, str], caption: str) -> Chart:
    """One column per model, one row per metric, a curve per scheduler over the load."""
    models = list(curves)

    def draw(axes: Axes, row: int, column: int) -> None:
        metric = list(metrics)[row]
        for k, (policy, rows) in enumerate(curves[models[column]].items()):
            x, y = steady(rows, metric)
            drawing.line(axes, x, y, k, policy, marker=drawing.MARKERS[k], markersize=3)
            if f"{metric}_half_width" in rows[0]:
                _, half = steady(rows, f"{metric}_half_width")
                axes.errorbar(x, y, half, fmt="none", ecolor=INK, elinewidth=0.7, capsize=2)
        if metric == "slowdown":
            drawing.logarithmic(axes)

    figure = drawing.panels(models, list(metrics.values()), draw, x="load")
    flat = [{"model": model, "policy": policy, **row} for model, of in curves.items() for policy, rows in of.items() for row in rows]
    return Chart(name, figure, caption, by_column(list(flat[0]), [list(row.values()) for row in flat]))


TWO = {"response": "average response (s)", "slowdown": "average bounded slowdown"}


def differences(by_policy: Mapping[str, Sequence[Mapping[str, Any]]], metric: str) -> list[tuple[float, float, float]]:
    """Load, conservative over EASY less 1, and the half-width of that relative to EASY, where both have a steady state."""
    rows = []
    for easy, conservative in zip(by_policy["easy"], by_policy["conservative"], strict=True):
        if not easy["saturated"] and not conservative["saturated"]:
            width = (easy[f"{metric}_half_width"] ** 2 + conservative[f"{metric}_half_width"] ** 2) ** 0.5 / easy[metric]
            rows.append((float(easy["load"]), float(conservative[metric] / easy[metric] - 1), float(width)))
    return rows


def _beside(name: str, curves: Curves, caption: str) -> list[Part]:
    """Both metrics of EASY and of conservative backfilling over the load: a figure, and a table with the differences."""
    rows: list[list[Entry]] = []
    for model, by_policy in curves.items():
        for easy, conservative in zip(by_policy["easy"], by_policy["conservative"], strict=True):
            row: list[Entry] = [model, f"{easy['load']:g}"]
            for metric, digits in (("response", 0), ("slowdown", 1)):
                both = [Value(r[metric], digits=digits) for r in (easy, conservative)]
                saturated = easy["saturated"] or conservative["saturated"]
                row += [*both, "saturated" if saturated else f"{100 * (conservative[metric] / easy[metric] - 1):+.1f} %"]
            rows.append(row)
    columns = ["model", "load"]
    columns += [head for metric in TWO for head in (f"{metric}, EASY", f"{metric}, conservative", "difference")]
    return [curve_chart(name, curves, TWO, caption), Table(name, "Differences of conservative to EASY", columns, rows)]


def largest(pairs: Sequence[tuple[float, float, float]]) -> float:
    """The largest of these `differences`, up or down; 0 without any."""
    return max((abs(away) for _, away, _ in pairs), default=0.0)


@item("F4", where="workload models")
def figure_4(study: Study) -> list[Part]:
    """Fig. 4: EASY and conservative on two models."""
    curves = run_models(study, ["F", "J"], list(POLICIES))
    f, j = (differences(curves[name], "response") for name in ("F", "J"))
    slow = differences(curves["J"], "slowdown")
    away = largest(f)
    high = [d for load, d, _ in j if load >= 0.7]
    evidence = ", ".join(f"{load:g}: {100 * d:+.1f} %" for load, d, _ in slow) or "no load with a steady state"
    claims = Claims(
        ("F: both schedulers are practically the same", away < 0.1, f"responses differ by at most {100 * away:.0f} %"),
        (
            "J: EASY has the lower response at high load",
            bool(high) and max(high) > 0,
            f"conservative {100 * max(high, default=0):+.1f} % at most",
        ),
        ("J: EASY has a slightly higher slowdown", sum(d < 0 for _, d, _ in slow) > len(slow) / 2, evidence),
    )
    caption = "Perfect estimates, with 90 % confidence intervals."
    return [*_beside("fig4", curves, caption), claims, Notes([BATCH_NOTE, MODEL_NOTE])]


@item("F7", where="workload models")
def figure_7(study: Study) -> list[Part]:
    """Fig. 7: the modified models."""
    curves = run_models(study, ["F", "Fs", "Fl", "Fsl"], list(POLICIES))
    response = {name: differences(curves[name], "response") for name in curves}
    slowdown = {name: differences(curves[name], "slowdown") for name in curves}
    top = {name: largest(pairs) for name, pairs in response.items()}
    size, base = largest(slowdown["Fs"]), largest(slowdown["F"])
    claims = Claims(
        ("both changes together make the largest difference of response", max(top, key=lambda n: top[n]) == "Fsl", _shares(top)),
        ("the change of runtimes alone makes a small one", top["Fl"] < max(top["Fsl"], 0.05), _shares(top)),
        ("the change of sizes alone is enough for the slowdown", size > base, f"Fs {100 * size:.0f} %, F {100 * base:.0f} %"),
    )
    caption = "Perfect estimates, with 90 % confidence intervals. Fs: small jobs emphasized; Fl: long ones; Fsl: both."
    return [*_beside("fig7", curves, caption), claims, Notes([BATCH_NOTE, MODEL_NOTE])]


def _shares(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {100 * value:.0f} %" for name, value in values.items())


@item("F5")
def figure_5(study: Study) -> list[Part]:
    """Fig. 5: how much is backfilled."""
    curves = run_models(study, ["F", "J", "Fs", "Fl", "Fsl"], list(POLICIES))
    shares = {
        subject.name: {policy: schedule_of(subject, policy).summary().backfilled_percent for policy in POLICIES}
        for subject in study.subjects
    }
    logs = list(shares)

    def draw(axes: Axes, _row: int, _column: int) -> None:
        drawing.bars(axes, {policy: [shares[log][policy] for log in logs] for policy in POLICIES}, logs)
        drawing.from_zero(axes)

    figure = drawing.panels([""], ["backfilled jobs (%)"], draw)
    rows: list[list[Entry]] = [[log, *(Value(shares[log][policy], digits=1) for policy in POLICIES)] for log in logs]
    claims = Claims()
    for name in ("F", "J"):
        pairs = [
            c["backfilled_percent"] - e["backfilled_percent"]
            for e, c in zip(curves[name]["easy"], curves[name]["conservative"], strict=True)
            if not e["saturated"] and not c["saturated"]
        ]
        evidence = f"conservative {min(pairs):+.1f} to {max(pairs):+.1f} points"
        same = max(map(abs, pairs)) < 3 if name == "F" else float(np.mean(pairs)) < 0
        claims.add("F: both do the same amount" if name == "F" else "J: EASY does slightly more", same, evidence)
    for log in logs:
        away = shares[log]["conservative"] - shares[log]["easy"]
        what = f"{log}: conservative does more" if log == "SDSC" else f"{log}: similar amounts"
        claims.add(what, away > 0 if log == "SDSC" else abs(away) < 5, f"{away:+.1f} points")
    models = curve_chart("fig5-models", curves, {"backfilled_percent": "backfilled jobs (%)"}, "Models, over the load.")
    logs_chart = Chart(
        "fig5-logs", figure, "Logs, with the original estimates.", {"log": logs} | {p: [shares[log][p] for log in logs] for p in POLICIES}
    )
    return [models, logs_chart, Table("fig5", "Backfilled jobs (%)", ["log", *POLICIES], rows), claims, Notes([MODEL_NOTE])]


@item("F6")
def figure_6(study: Study) -> list[Part]:
    """Fig. 6: runtimes by size."""
    sources: dict[str, tuple[Array, Array]] = {}
    for name, (model, procs, _) in MODELS.items():
        jobs = parse_model(model).generate(20_000, procs, None, seed=0)
        sources[name] = jobs.procs, jobs.runtime
    for subject in study.subjects:
        sources[subject.name] = subject.workload.procs, subject.workload.runtime

    def draw(axes: Axes, _row: int, column: int) -> None:
        procs, runtime = sources[list(sources)[column]]
        for k, (name, (low, high)) in enumerate(CLASSES.items()):
            mine = np.sort(runtime[(procs >= low) & (procs <= high)])
            if len(mine) >= 20:
                drawing.line(axes, np.maximum(mine, 1), 100 * np.arange(1, len(mine) + 1) / len(mine), k, name, linewidth=1.1)
        axes.set_xscale("log")

    figure = drawing.panels(list(sources), ["share of jobs (%)"], draw, x="runtime (s)")
    lines: list[tuple[str, str, int, float, float]] = []
    for workload, (sizes, times) in sources.items():
        for name, (low, high) in CLASSES.items():
            mine = times[(sizes >= low) & (sizes <= high)]
            if len(mine):
                lines.append((workload, name, len(mine), *np.percentile(mine, [50, 90]).tolist()))
    data = by_column(["workload", "processors", "jobs", "median", "p90"], lines)
    rows: list[list[Entry]] = [[workload, name, *map(Value, numbers)] for workload, name, *numbers in lines]
    table = Table("fig6", "Runtimes (s) by processors", ["workload", "processors", "jobs", "median", "90th percentile"], rows)
    return [Chart("fig6", figure, "Runtimes of the jobs of each class of sizes.", data), table, Notes([MODEL_NOTE])]


ALL_BATCHES, PRECISE, SATURATED, OUT_OF_JOBS = "all batches", "precise", "saturated", "out of jobs"


@dataclass(frozen=True)
class PublishedBatchMeans:
    """A mean from batch means: its confidence interval, the number of batches, and the stopping rule that applied."""

    interval: Interval
    batches: int
    stopped: str


def published_batch_means(
    values: Array,
    *,
    batch: int = 3333,
    discard: int = 1,
    most: int = 100,
    least: int = 10,
    precision: float = 0.05,
    saturation: float = 30_000,
    confidence: float = 0.90,
) -> PublishedBatchMeans:
    """Steady-state mean with a confidence interval, from values in order of termination.

    `values`: float64 or int64, one per job, such as response times in seconds. The first `discard` batches are discarded as
    warm-up. After each further batch it stops by the first rule that holds: `all batches` (`most` of them are done), `precise`
    (the half-width is below `precision` of the mean, and `least` batches are done), `saturated` (the mean exceeds `saturation`,
    so there is no steady state; from two batches on); or `out of jobs`. Raises WorkloadError if fewer than two batches remain.

    Batches are taken for independent, whatever they correlate by, so the interval holds less than it says where they do; that is why
    `walltime.metrics.batch_means` has other rules.

    Source: mualem01, section 3.1. Interpretation: "smaller than 5 percent" refers to the half-width. `least` is ours: the width
    of an interval over few batches is itself noisy, and stopping as soon as it happens to be small gives poor coverage.

    >>> result = published_batch_means(np.tile([1.0, 3.0], 10_000), batch=1000)
    >>> result.interval.mean, result.batches, result.stopped
    (2.0, 10, 'precise')
    """
    if batch < 1 or discard < 0 or most < 2 or least < 2:
        given = f"{batch=}, {discard=}, {most=}, {least=}"
        raise WorkloadError(f"batch means need batches of 1 job or more, 2 of them at least, not {given}", "number_out_of_range")
    count = len(values) // batch
    if count < discard + 2:
        raise WorkloadError(
            f"{len(values)} jobs make {count} batches of {batch}; batch means need {discard + 2} with the warm-up", "too_few_jobs"
        )
    means = np.asarray(values[: count * batch], np.float64).reshape(count, batch).mean(axis=1)[discard:]
    stopped = OUT_OF_JOBS
    for k in range(2, min(len(means), most) + 1):
        used = means[:k]
        interval = mean_interval(used, confidence)
        if interval.mean > saturation:
            stopped = SATURATED
        elif k >= least and interval.half_width < precision * interval.mean:
            stopped = PRECISE
        elif k == most:
            stopped = ALL_BATCHES
        else:
            continue
        break
    return PublishedBatchMeans(interval, k, stopped)
