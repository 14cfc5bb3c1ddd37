"""tang13's figures on how much history is needed, how accuracy spreads, and how it changes by month: 8 to 11 and 13."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from walltime.metrics.jobs import accuracy
from walltime.papers import drawing
from walltime.papers.items import item
from walltime.papers.results import Chart, Claims, Entry, Notes, Part, Table, Value, by_column
from walltime.papers.study import Study
from walltime.papers.tang13.schemes import (
    METHOD,
    SCHEMES,
    STATISTICS,
    THRESHOLD,
    WINDOWS,
    class_shares,
    keys_of,
    learnable,
    mean_accuracy,
    months_of,
    own_accuracy,
    replays,
    scheme_of,
    simulated_scheme,
)

Array = np.ndarray


def _window(window: int | None) -> str:
    return "all" if window is None else f"{window}M"


def _windows_figure(study: Study, name: str, measure: str, label: str) -> tuple[Chart, dict[tuple[str, str], Array]]:
    """One measure over the windows, for each statistic: arrays of shape (statistics, windows) by log and key."""
    subjects = learnable(study)
    means: dict[tuple[str, str], Array] = {}
    for subject in subjects:
        for key, real in keys_of(subject.workload).items():
            if key not in ("triple", "double"):
                continue
            schemes = [[scheme_of(real, s, window) for window in WINDOWS] for s in STATISTICS]
            made = replays(study, subject, [scheme for line in schemes for scheme in line])
            values = [
                [mean_accuracy(made[x]) if measure == "accuracy" else class_shares(made[x])[measure] for x in line] for line in schemes
            ]
            means[subject.name, key] = np.array(values)
    names = list(means)

    def draw(axes: Axes, _row: int, column: int) -> None:
        for k, (window, marker) in enumerate(zip(WINDOWS, (*drawing.MARKERS, "v", "x"), strict=True)):
            values = means[names[column]][:, k]
            drawing.line(axes, np.arange(len(STATISTICS)), values, k, _window(window), marker=marker, markersize=3, linewidth=1)
        axes.set_xticks(np.arange(len(STATISTICS)), STATISTICS, fontsize=7)

    figure = drawing.panels([f"{log}, {key}" for log, key in names], [label], draw)
    lines = [(log, key, s, *line) for (log, key), of in means.items() for s, line in zip(STATISTICS, of.tolist(), strict=True)]
    data = by_column(["log", "key", "statistic", *map(_window, WINDOWS)], lines)
    return Chart(name, figure, "By the months of history that count.", data), means


@item("F8")
def figure_8(study: Study) -> list[Part]:
    """Fig. 8: accuracy by window."""
    chart, by_key = _windows_figure(study, "fig8", "accuracy", "mean accuracy")
    claims = Claims()
    for (log, key), values in by_key.items():
        if key == "triple":
            gains = values[:, 0] - values[:, -1]
            evidence = ", ".join(f"{s} {g:+.3f}" for s, g in zip(STATISTICS, gains.tolist(), strict=True))
            claims.add(
                f"{log}: one month is at least as accurate as all history at max and p95", bool((gains[:2] > -0.001).all()), evidence
            )
    return [chart, claims, Notes([METHOD])]


@item("F9")
def figure_9(study: Study) -> list[Part]:
    """Fig. 9: bad estimates by window."""
    chart, by_key = _windows_figure(study, "fig9", "BE", "BE jobs (%)")
    return [chart, _fewer(by_key, "bad estimates"), Notes([METHOD])]


@item("F10")
def figure_10(study: Study) -> list[Part]:
    """Fig. 10: under-estimates by window."""
    chart, by_key = _windows_figure(study, "fig10", "UE", "UE jobs (%)")
    return [chart, _fewer(by_key, "under-estimates"), Notes([METHOD, "tang13: 10 to 15 % fewer with one month, triple key, under p90."])]


def _fewer(by_key: Mapping[tuple[str, str], Array], what: str) -> Claims:
    claims = Claims()
    for (log, key), values in by_key.items():
        low = values[2:, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            change = 100 * (low[:, 0] / low[:, -1] - 1)
        evidence = ", ".join(f"{s} {c:+.0f} %" for s, c in zip(STATISTICS[2:], change.tolist(), strict=True))
        claims.add(
            f"{log}, {key}: fewer {what} with one month than with all history", bool((low[:, 0] < low[:, -1]).mean() > 0.5), evidence
        )
    return claims


def _median(printed: object) -> Entry:
    return Value(float(printed), digits=2) if isinstance(printed, int | float) else None


@item("F11")
def figure_11(study: Study) -> list[Part]:
    """Fig. 11: the distribution of accuracy."""
    printed = study.printed.tables["F11"]
    chosen = ("max", "p85", "median")
    subjects = learnable(study)
    lines: dict[tuple[str, str], dict[str, Array]] = {}
    for subject in subjects:
        w = subject.workload
        for key, real in keys_of(w).items():
            if key in ("triple", "double"):
                schemes = {s: scheme_of(real, s, threshold=THRESHOLD) for s in chosen}
                made = replays(study, subject, list(schemes.values()))
                ran = np.minimum(w.runtime, w.requested)
                after = {s: np.sort(accuracy(ran, made[scheme].predicted)) for s, scheme in schemes.items()}
                lines[subject.name, key] = {"original": np.sort(own_accuracy(w)), **after}
    names = list(lines)

    def draw(axes: Axes, _row: int, column: int) -> None:
        for k, (name, values) in enumerate(lines[names[column]].items()):
            drawing.line(axes, values, 100 * np.arange(1, len(values) + 1) / len(values), k, name)

    figure = drawing.panels([f"{log}, {key}" for log, key in names], ["share of jobs (%)"], draw, x="accuracy")
    rows: list[list[Entry]] = [
        ["tang13: Intrepid, triple", str(row["scheme"]), Value(float(row["at60"]), digits=2), _median(row["median"])]
        for row in printed.rows
    ]
    claims = Claims()
    for (log, key), by_name in lines.items():
        medians = {name: float(np.median(values)) for name, values in by_name.items()}
        for name, values in by_name.items():
            rows.append([f"{log}, {key}", name, Value(float(np.percentile(values, 60)), digits=2), Value(medians[name], digits=2)])
        if key == "triple":
            gain = 100 * (medians["p85"] / medians["original"] - 1)
            claims.add(f"{log}: p85 raises the median accuracy", gain > 0, f"{gain:+.0f} % (tang13: +42 %)")
    quantiles = list(range(0, 101, 5))
    data: dict[str, list[float]] = {"percent": [float(q) for q in quantiles]}
    for (log, key), by_name in lines.items():
        data |= {f"{log} {key} {name}": np.percentile(values, quantiles).tolist() for name, values in by_name.items()}
    table = Table("fig11", printed.title, ["log", "scheme", "accuracy at 60 % of the jobs", "median accuracy"], rows)
    return [Chart("fig11", figure, f"All history, threshold {THRESHOLD:g}.", data), table, claims, Notes([METHOD])]


@item("F13")
def figure_13(study: Study) -> list[Part]:
    """Fig. 13: accuracy by month."""
    subjects = learnable(study)
    lines: dict[str, dict[str, Array]] = {}
    claims = Claims()
    for subject in subjects:
        w = subject.workload
        months = [(begin, end) for _, begin, end in months_of(subject)][1:13]
        ran = np.minimum(w.runtime, w.requested)
        schemes = {s: simulated_scheme(w, s) for s in SCHEMES}
        made = replays(study, subject, list(schemes.values()))
        exact = {"original": own_accuracy(w)} | {s: accuracy(ran, made[scheme].predicted) for s, scheme in schemes.items()}
        masks = [(w.submit >= begin) & (w.submit < end) for begin, end in months]
        masks = [mask for mask in masks if mask.any()]
        lines[subject.name] = {name: np.array([float(values[mask].mean()) for mask in masks]) for name, values in exact.items()}
        if masks:
            mine = lines[subject.name]
            best = float(np.mean([max(SCHEMES, key=lambda s: mine[s][k]) == "p70" for k in range(len(masks))]))
            claims.add(f"{subject.name}: p70 is the most accurate scheme in most months", best > 0.5, f"{100 * best:.0f} % of {len(masks)}")
            over = float((mine["p85"] > mine["original"]).mean())
            claims.add(f"{subject.name}: p85 beats the users in every month", over == 1, f"{100 * over:.0f} % of {len(masks)}")

    def draw(axes: Axes, _row: int, column: int) -> None:
        for k, (name, values) in enumerate(lines[subjects[column].name].items()):
            drawing.line(axes, np.arange(1, len(values) + 1), values, k, name, marker=drawing.MARKERS[k], markersize=3)
        axes.set_ylim(0, 1)

    figure = drawing.panels([s.name for s in subjects], ["mean accuracy"], draw, x="month")
    months = [(log, k + 1, *values) for log, of in lines.items() for k, values in enumerate(np.array(list(of.values())).T.tolist())]
    data = by_column(["log", "month", "original", *SCHEMES], months)
    caption = "Triple key, one month of history; the first month of each log is left out."
    return [Chart("fig13", figure, caption, data), claims, Notes([METHOD])]
