"""mualem01, Figs. 4 to 7: EASY against conservative backfilling on workload models, over the load."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from walltime.metrics import bounded_slowdown
from walltime.papers import drawing
from walltime.papers.item import Item
from walltime.papers.mualem01.batches import published_batch_means
from walltime.papers.mualem01.experiment import POLICIES, schedule_of
from walltime.papers.results import Chart, Claim, Claims, Entry, Notes, Part, Table, Value
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
    data: dict[str, list[Any]] = {"model": [], "policy": []}
    for model, by_policy in curves.items():
        for policy, rows in by_policy.items():
            for row in rows:
                data["model"].append(model)
                data["policy"].append(policy)
                for key, value in row.items():
                    data.setdefault(key, []).append(value)
    return Chart(name, figure, caption, data)


TWO = {"response": "average response (s)", "slowdown": "average bounded slowdown"}


def differences(by_policy: Mapping[str, Sequence[Mapping[str, Any]]], metric: str) -> list[tuple[float, float, float]]:
    """Load, conservative over EASY less 1, and the half-width of that relative to EASY, where both have a steady state."""
    found = []
    for easy, conservative in zip(by_policy["easy"], by_policy["conservative"], strict=True):
        if not easy["saturated"] and not conservative["saturated"]:
            width = (easy[f"{metric}_half_width"] ** 2 + conservative[f"{metric}_half_width"] ** 2) ** 0.5 / easy[metric]
            found.append((float(easy["load"]), float(conservative[metric] / easy[metric] - 1), float(width)))
    return found


def _difference_table(name: str, curves: Curves) -> Table:
    rows: list[list[Entry]] = []
    for model, by_policy in curves.items():
        for easy, conservative in zip(by_policy["easy"], by_policy["conservative"], strict=True):
            row: list[Entry] = [model, f"{easy['load']:g}"]
            for metric, digits in (("response", 0), ("slowdown", 1)):
                both = [Value(r[metric], digits=digits) for r in (easy, conservative)]
                saturated = easy["saturated"] or conservative["saturated"]
                row += [*both, "saturated" if saturated else f"{100 * (conservative[metric] / easy[metric] - 1):+.1f} %"]
            rows.append(row)
    columns = [
        "model",
        "load",
        "response, EASY",
        "response, conservative",
        "difference",
        "slowdown, EASY",
        "slowdown, conservative",
        "difference",
    ]
    return Table(name, "Differences of conservative to EASY", columns, rows)


def largest(pairs: Sequence[tuple[float, float, float]]) -> float:
    """The largest of these `differences`, up or down; 0 without any."""
    return max((abs(away) for _, away, _ in pairs), default=0.0)


def figure_4(study: Study) -> list[Part]:
    """mualem01: the two models."""
    curves = run_models(study, ["F", "J"], list(POLICIES))
    f, j = (differences(curves[name], "response") for name in ("F", "J"))
    slow = differences(curves["J"], "slowdown")
    away = largest(f)
    high = [d for load, d, _ in j if load >= 0.7]
    claims: list[Claim] = [
        ("F: both schedulers are practically the same", away < 0.1, f"responses differ by at most {100 * away:.0f} %"),
        (
            "J: EASY has the lower response at high load",
            bool(high) and max(high) > 0,
            f"conservative {100 * max(high, default=0):+.1f} % at most",
        ),
        ("J: EASY has a slightly higher slowdown", sum(d < 0 for _, d, _ in slow) > len(slow) / 2, _told(slow)),
    ]
    caption = "Perfect estimates, with 90 % confidence intervals."
    return [curve_chart("fig4", curves, TWO, caption), _difference_table("fig4", curves), Claims(claims), Notes([BATCH_NOTE, MODEL_NOTE])]


def _told(pairs: Sequence[tuple[float, float, float]]) -> str:
    return ", ".join(f"{load:g}: {100 * away:+.1f} %" for load, away, _ in pairs) or "no load with a steady state"


def figure_7(study: Study) -> list[Part]:
    """mualem01: Feitelson's model with other sizes, other runtimes, and both."""
    curves = run_models(study, ["F", "Fs", "Fl", "Fsl"], list(POLICIES))
    response = {name: differences(curves[name], "response") for name in curves}
    slowdown = {name: differences(curves[name], "slowdown") for name in curves}
    top = {name: largest(pairs) for name, pairs in response.items()}
    size = largest(slowdown["Fs"])
    base = largest(slowdown["F"])
    claims: list[Claim] = [
        ("both changes together make the largest difference of response", max(top, key=lambda n: top[n]) == "Fsl", _shares(top)),
        ("the change of runtimes alone makes a small one", top["Fl"] < max(top["Fsl"], 0.05), _shares(top)),
        ("the change of sizes alone is enough for the slowdown", size > base, f"Fs {100 * size:.0f} %, F {100 * base:.0f} %"),
    ]
    caption = "Perfect estimates, with 90 % confidence intervals. Fs: small jobs emphasized; Fl: long ones; Fsl: both."
    return [curve_chart("fig7", curves, TWO, caption), _difference_table("fig7", curves), Claims(claims), Notes([BATCH_NOTE, MODEL_NOTE])]


def _shares(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {100 * value:.0f} %" for name, value in values.items())


def figure_5(study: Study) -> list[Part]:
    """mualem01: how much backfilling the two schedulers do."""
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
    claims: list[Claim] = []
    for name in ("F", "J"):
        pairs = [
            c["backfilled_percent"] - e["backfilled_percent"]
            for e, c in zip(curves[name]["easy"], curves[name]["conservative"], strict=True)
            if not e["saturated"] and not c["saturated"]
        ]
        told = f"conservative {min(pairs):+.1f} to {max(pairs):+.1f} points"
        if name == "F":
            claims.append(("F: both do the same amount", max(map(abs, pairs)) < 3, told))
        else:
            claims.append(("J: EASY does slightly more", float(np.mean(pairs)) < 0, told))
    for log in logs:
        away = shares[log]["conservative"] - shares[log]["easy"]
        what = f"{log}: conservative does more" if log == "SDSC" else f"{log}: similar amounts"
        claims.append((what, away > 0 if log == "SDSC" else abs(away) < 5, f"{away:+.1f} points"))
    models = curve_chart("fig5-models", curves, {"backfilled_percent": "backfilled jobs (%)"}, "Models, over the load.")
    logs_chart = Chart(
        "fig5-logs", figure, "Logs, with the original estimates.", {"log": logs} | {p: [shares[log][p] for log in logs] for p in POLICIES}
    )
    return [models, logs_chart, Table("fig5", "Backfilled jobs (%)", ["log", *POLICIES], rows), Claims(claims), Notes([MODEL_NOTE])]


def figure_6(study: Study) -> list[Part]:
    """mualem01: distributions of runtimes by size, in models and logs."""
    sources: dict[str, tuple[Array, Array]] = {}
    for name, (model, procs, _) in MODELS.items():
        jobs = parse_model(model).generate(20_000, procs, None, seed=0)
        sources[name] = jobs.procs, jobs.runtime
    for subject in study.subjects:
        sources[subject.name] = subject.workload.procs, subject.workload.runtime
    data: dict[str, list[Any]] = {"workload": [], "processors": [], "jobs": [], "median": [], "p90": []}

    def draw(axes: Axes, _row: int, column: int) -> None:
        procs, runtime = sources[list(sources)[column]]
        for k, (name, (low, high)) in enumerate(CLASSES.items()):
            mine = np.sort(runtime[(procs >= low) & (procs <= high)])
            if len(mine) >= 20:
                drawing.line(axes, np.maximum(mine, 1), 100 * np.arange(1, len(mine) + 1) / len(mine), k, name, linewidth=1.1)
        axes.set_xscale("log")

    figure = drawing.panels(list(sources), ["share of jobs (%)"], draw, x="runtime (s)")
    rows: list[list[Entry]] = []
    for workload, (sizes, times) in sources.items():
        for name, (low, high) in CLASSES.items():
            mine = times[(sizes >= low) & (sizes <= high)]
            if len(mine):
                median, p90 = (float(v) for v in np.percentile(mine, [50, 90]))
                for key, value in zip(data, (workload, name, len(mine), median, p90), strict=True):
                    data[key].append(value)
                rows.append([workload, name, Value(len(mine)), Value(median), Value(p90)])
    table = Table("fig6", "Runtimes (s) by processors", ["workload", "processors", "jobs", "median", "90th percentile"], rows)
    return [Chart("fig6", figure, "Runtimes of the jobs of each class of sizes.", data), table, Notes([MODEL_NOTE])]


ITEMS = (
    Item("mualem01", "F4", "Fig. 4: EASY and conservative on two models", figure_4, where="workload models"),
    Item("mualem01", "F5", "Fig. 5: how much is backfilled", figure_5),
    Item("mualem01", "F6", "Fig. 6: runtimes by size", figure_6),
    Item("mualem01", "F7", "Fig. 7: the modified models", figure_7, where="workload models"),
)
