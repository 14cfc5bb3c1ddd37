"""mualem01, Figs. 4 to 7: EASY against conservative backfilling on workload models, over the load."""

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
from walltime.papers.results import Chart, Claim, Data, Entry, Parts, Rows, Table, Value, by_column
from walltime.papers.study import Study
from walltime.policy import Kind, NoBackfilling
from walltime.report.figures import INK
from walltime.simulation import simulate
from walltime.workload import Array, Workload
from walltime.workload.models import parse_model

LOADS = (0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
FEW_LOADS = (0.5, 0.7, 0.8, 0.9)
BATCHES, FEW_BATCHES = 100, 20
TRIAL = 12
"""Number of batches of a first run, which shows whether there is a steady state."""
SATURATION = 30_000
"""Mean response, s, above which mualem01 stops, because there is no steady state."""
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
    "Machines of 128 processors for Feitelson's model and its variants, 322 for Jann's; mualem01 does not state the sizes. Many constants "
    "of Feitelson's model are unverified, Jann's is a refit, and Fs, Fl and Fsl are our construction. So only the comparison of the "
    "schedulers is meaningful, not the height of a curve."
)
BATCH_NOTE = (
    "90 % confidence intervals of the mean response by batch means, without the first batch. A run ends after 100 batches, or when the "
    "half-width is under 5 % of the mean. It also ends when the mean is over 30,000 s: such runs have no steady state and are not drawn. "
    "Batches are assumed to be independent, as in the paper; at high loads they are not, and the intervals cover less than 90 %."
)
Curves = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]


def run_model(task: Mapping[str, Any], check: Callable[[int], None]) -> dict[str, Any]:
    """Simulate one model at one load under one scheduler, with perfect estimates; return means with intervals, by batch means."""
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
    used = order[task["batch"] : task["batch"] * (1 + means.batches)]
    slowdown = bounded_slowdown(schedule.wait, schedule.runtime, form="p1")[used]
    by_batch = published_batch_means(slowdown, batch=task["batch"], discard=0, most=means.batches, saturation=np.inf)
    return {
        "response": means.interval.mean,
        "response_half_width": means.interval.half_width,
        "slowdown": float(slowdown.mean()),
        "slowdown_half_width": by_batch.interval.half_width,
        "backfilled_percent": 100 * float((schedule.kind[used] == Kind.BACKFILLED).mean()),
        "batches": means.batches,
        "stopped": means.stopped,
        "saturated": means.stopped == "saturated",
        "utilization": schedule.summary().utilization,
    }


def run_models(study: Study, names: Sequence[str], schedulers: Sequence[str]) -> Curves:
    """Return results by model and scheduler, one per load."""
    loads, batches = (FEW_LOADS, FEW_BATCHES) if study.quick else (LOADS, BATCHES)
    cells = [(name, policy, load) for name in names for policy in schedulers for load in loads]
    tasks = [
        dict(zip(("model", "procs", "batch"), MODELS[name], strict=True)) | {"policy": policy, "load": load, "seed": 0, "batches": batches}
        for name, policy, load in cells
    ]
    curves: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for (name, policy, load), result in zip(cells, study.kept("models over the load", tasks, run_model), strict=True):
        curves.setdefault(name, {}).setdefault(policy, []).append({"load": load, **result})
    return curves


def steady(rows: Sequence[Mapping[str, Any]], column: str) -> tuple[Array, Array]:
    """Return the loads with a steady state, and a column of the results there; float64, shape (loads,)."""
    chosen = [row for row in rows if not row["saturated"]]
    return np.array([row["load"] for row in chosen]), np.array([row[column] for row in chosen])


def curve_chart(name: str, curves: Curves, metrics: Mapping[str, str], caption: str) -> Chart:
    """Draw one column per model, one row per metric, and a curve per scheduler over the load."""

    def draw(axes: Axes, by_policy: Mapping[str, Sequence[Mapping[str, Any]]], metric: str) -> None:
        for k, (policy, rows) in enumerate(by_policy.items()):
            x, y = steady(rows, metric)
            drawing.line(axes, x, y, k, policy, marker=drawing.MARKERS[k], markersize=3)
            if f"{metric}_half_width" in rows[0]:
                _, half = steady(rows, f"{metric}_half_width")
                axes.errorbar(x, y, half, fmt="none", ecolor=INK, elinewidth=0.7, capsize=2)
        if metric == "slowdown":
            drawing.logarithmic(axes)

    flat = [{"model": m, "policy": policy, **row} for m, by_policy in curves.items() for policy, rows in by_policy.items() for row in rows]
    data = by_column(list(flat[0]), [list(row.values()) for row in flat])
    return drawing.chart(name, caption, data, curves, metrics, draw, x="load")


def _pairs(by_policy: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Return the results of EASY and of conservative backfilling at each load."""
    return list(zip(by_policy["easy"], by_policy["conservative"], strict=True))


TWO = {"response": "average response (s)", "slowdown": "average bounded slowdown"}


def differences(by_policy: Mapping[str, Sequence[Mapping[str, Any]]], metric: str) -> list[tuple[float, float]]:
    """Return pairs of load and relative difference (conservative / EASY - 1), for the loads at which both have a steady state."""
    return [(float(e["load"]), float(c[metric] / e[metric] - 1)) for e, c in _pairs(by_policy) if not e["saturated"] | c["saturated"]]


def _comparison(name: str, curves: Curves, caption: str) -> Parts:
    """Yield a figure of both metrics of EASY and of conservative backfilling over the load, and a table with the differences."""
    rows: Rows = []
    for model, by_policy in curves.items():
        for easy, conservative in _pairs(by_policy):
            row: list[Entry] = [model, f"{easy['load']:g}"]
            for metric, digits in (("response", 0), ("slowdown", 1)):
                both = [Value(r[metric], digits=digits) for r in (easy, conservative)]
                saturated = easy["saturated"] or conservative["saturated"]
                row += [*both, "saturated" if saturated else f"{100 * (conservative[metric] / easy[metric] - 1):+.1f} %"]
            rows.append(row)
    columns = ["model", "load"]
    columns += [head for metric in TWO for head in (f"{metric}, EASY", f"{metric}, conservative", "difference")]
    yield curve_chart(name, curves, TWO, caption)
    yield Table(name, "Differences of conservative to EASY", columns, rows)
    yield BATCH_NOTE
    yield MODEL_NOTE


def largest(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the largest of these `differences` in absolute value; 0 if there are none."""
    return max((abs(away) for _, away in pairs), default=0.0)


@item("F4", where="workload models")
def figure_4(study: Study) -> Parts:
    """Fig. 4: EASY and conservative on two models."""
    curves = run_models(study, ["F", "J"], list(POLICIES))
    f, j = (differences(curves[name], "response") for name in ("F", "J"))
    slow = differences(curves["J"], "slowdown")
    away = largest(f)
    high = max((d for load, d in j if load >= 0.7), default=0.0)
    evidence = ", ".join(f"{load:g}: {100 * d:+.1f} %" for load, d in slow) or "no load with a steady state"
    yield from _comparison("fig4", curves, "Perfect estimates, with 90 % confidence intervals.")
    yield Claim("F: both schedulers are practically the same", away < 0.1, f"responses differ by at most {100 * away:.0f} %")
    yield Claim("J: EASY has the lower response at high load", high > 0, f"conservative {100 * high:+.1f} % at most")
    yield Claim("J: EASY has a slightly higher slowdown", sum(d < 0 for _, d in slow) > len(slow) / 2, evidence)


@item("F7", where="workload models")
def figure_7(study: Study) -> Parts:
    """Fig. 7: the modified models."""
    curves = run_models(study, ["F", "Fs", "Fl", "Fsl"], list(POLICIES))
    caption = "Perfect estimates, with 90 % confidence intervals. Fs: small jobs emphasised; Fl: long ones; Fsl: both."
    yield from _comparison("fig7", curves, caption)
    top = {name: largest(differences(by_policy, "response")) for name, by_policy in curves.items()}
    size, base = (largest(differences(curves[name], "slowdown")) for name in ("Fs", "F"))
    evidence = ", ".join(f"{name} {100 * value:.0f} %" for name, value in top.items())
    yield Claim("both changes together cause the largest difference in response", max(top, key=lambda n: top[n]) == "Fsl", evidence)
    yield Claim("the change of runtimes alone makes a small one", top["Fl"] < max(top["Fsl"], 0.05), evidence)
    yield Claim("the change of sizes alone is enough for the slowdown", size > base, f"Fs {100 * size:.0f} %, F {100 * base:.0f} %")


@item("F5")
def figure_5(study: Study) -> Parts:
    """Fig. 5: amount of backfilling."""
    curves = run_models(study, ["F", "J", "Fs", "Fl", "Fsl"], list(POLICIES))
    shares = {
        subject.name: {policy: schedule_of(subject, policy).summary().backfilled_percent for policy in POLICIES}
        for subject in study.subjects
    }
    by_policy = {policy: [by_log[policy] for by_log in shares.values()] for policy in POLICIES}

    def draw(axes: Axes, _data: None, _row: str) -> None:
        drawing.bars(axes, by_policy, list(shares))
        drawing.from_zero(axes)

    yield curve_chart("fig5-models", curves, {"backfilled_percent": "backfilled jobs (%)"}, "Models, over the load.")
    data: Data = {"log": list(shares), **by_policy}
    yield drawing.chart("fig5-logs", "Logs, with the original estimates.", data, {"": None}, "backfilled jobs (%)", draw)
    yield Table("fig5", "Backfilled jobs (%)", ["log", *POLICIES], [[log, *by_log.values()] for log, by_log in shares.items()], digits=1)
    for name in ("F", "J"):
        pairs = [c["backfilled_percent"] - e["backfilled_percent"] for e, c in _pairs(curves[name]) if not e["saturated"] | c["saturated"]]
        evidence = f"conservative {min(pairs):+.1f} to {max(pairs):+.1f} points"
        same = max(map(abs, pairs)) < 3 if name == "F" else float(np.mean(pairs)) < 0
        yield Claim("F: both do the same amount" if name == "F" else "J: EASY does slightly more", same, evidence)
    for log, by_log in shares.items():
        away = by_log["conservative"] - by_log["easy"]
        claim = f"{log}: conservative does more" if log == "SDSC" else f"{log}: similar amounts"
        yield Claim(claim, away > 0 if log == "SDSC" else abs(away) < 5, f"{away:+.1f} points")
    yield MODEL_NOTE


@item("F6")
def figure_6(study: Study) -> Parts:
    """Fig. 6: runtimes by size."""
    sources: dict[str, Workload] = {name: parse_model(m).generate(20_000, procs, None, seed=0) for name, (m, procs, _) in MODELS.items()}
    sources |= {subject.name: subject.workload for subject in study.subjects}
    runtimes = {
        workload: {name: np.sort(w.runtime[(w.procs >= low) & (w.procs <= high)]) for name, (low, high) in CLASSES.items()}
        for workload, w in sources.items()
    }

    def draw(axes: Axes, by_class: dict[str, Array], _row: str) -> None:
        for k, (name, values) in enumerate(by_class.items()):
            if len(values) >= 20:
                drawing.shares(axes, np.maximum(values, 1), k, name, linewidth=1.1)
        axes.set_xscale("log")

    lines = [
        (workload, name, len(values), *np.percentile(values, [50, 90]).tolist())
        for workload, by_class in runtimes.items()
        for name, values in by_class.items()
        if len(values)
    ]
    data = by_column(["workload", "processors", "jobs", "median", "p90"], lines)
    yield drawing.chart("fig6", "Runtimes of the jobs of each class of sizes.", data, runtimes, "share of jobs (%)", draw, x="runtime (s)")
    rows: Rows = [[workload, name, *map(Value, numbers)] for workload, name, *numbers in lines]
    yield Table("fig6", "Runtimes (s) by processors", ["workload", "processors", "jobs", "median", "90th percentile"], rows)
    yield MODEL_NOTE


ALL_BATCHES, PRECISE, SATURATED, OUT_OF_JOBS = "all batches", "precise", "saturated", "out of jobs"


@dataclass(frozen=True)
class PublishedBatchMeans:
    """A mean computed by batch means, with its confidence interval, the number of batches, and the stopping rule that applied."""

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
) -> PublishedBatchMeans:
    """Return a steady-state mean with its 90 % confidence interval, from values in order of termination.

    `values`: float64 or int64, one per job, such as response times in seconds. The first `discard` batches are discarded as warm-up. After
    each additional batch, the first of these rules that holds ends the computation. `all batches`: `most` of them are done. `precise`: the
    half-width is below `precision` of the mean, and `least` batches are done. `saturated`: the mean exceeds `saturation`, so there is no
    steady state; from two batches on. `out of jobs`: none are left. Raises WorkloadError if fewer than two batches remain.

    Batches are assumed to be independent; where they are not, the interval covers less than 90 %. Therefore
    `walltime.metrics.batch_means` has other rules.

    Source: mualem01, section 3.1. Interpretation: "smaller than 5 percent" refers to the half-width. `least` is ours: the width
    of an interval over few batches is itself noisy, and stopping as soon as it happens to be small gives poor coverage.

    >>> result = published_batch_means(np.tile([1.0, 3.0], 10_000), batch=1000)
    >>> result.interval.mean, result.batches, result.stopped
    (2.0, 10, 'precise')
    """
    if batch < 1 or discard < 0 or most < 2 or least < 2:
        given = f"{batch=}, {discard=}, {most=}, {least=}"
        raise WorkloadError(f"batch means need at least 2 batches of at least 1 job, not {given}", "number_out_of_range")
    count = len(values) // batch
    if count < discard + 2:
        raise WorkloadError(
            f"{len(values)} jobs make {count} batches of {batch}; batch means need {discard + 2} with the warm-up", "too_few_jobs"
        )
    means = np.asarray(values[: count * batch], np.float64).reshape(count, batch).mean(axis=1)[discard:]
    for k in range(2, min(len(means), most) + 1):
        interval = mean_interval(means[:k])
        if interval.mean > saturation:
            return PublishedBatchMeans(interval, k, SATURATED)
        if k >= least and interval.half_width < precision * interval.mean:
            return PublishedBatchMeans(interval, k, PRECISE)
    return PublishedBatchMeans(interval, k, ALL_BATCHES if k == most else OUT_OF_JOBS)
