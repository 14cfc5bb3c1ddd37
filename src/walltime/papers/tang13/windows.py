"""tang13's figures on how much history is needed, how accuracy spreads, and how it changes by month: 8 to 11 and 13."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from matplotlib.axes import Axes

from walltime.papers import drawing
from walltime.papers.items import item
from walltime.papers.results import Chart, Claims, Notes, Part, Rows, Table, Value, by_column
from walltime.papers.study import Study
from walltime.papers.tang13.schemes import (
    METHOD,
    SCHEMES,
    STATISTICS,
    THRESHOLD,
    WINDOWS,
    accuracy_of,
    class_shares,
    keys_of,
    mean_accuracy,
    months_of,
    replays,
    scheme_of,
    simulated_scheme,
    statistic_axis,
)
from walltime.simulation.replay import Replay

Array = np.ndarray
ByKey = Mapping[tuple[str, str], Array]
"""Values by log and key."""
TITLES = tuple("all" if window is None else f"{window}M" for window in WINDOWS)


def _windows_figure(study: Study, name: str, label: str, measure: Callable[[Replay], float]) -> tuple[Chart, ByKey]:
    """Draw one measure over the windows, for each statistic; also return arrays of shape (statistics, windows)."""
    means: dict[tuple[str, str], Array] = {}
    for subject in study.with_users:
        for key, real in keys_of(subject).items():
            if key in ("triple", "double"):
                replayed = replays(study, subject, [scheme_of(real, s, window) for s in STATISTICS for window in WINDOWS])
                means[subject.name, key] = np.reshape([measure(replay) for replay in replayed.values()], (len(STATISTICS), len(WINDOWS)))

    def draw(axes: Axes, values: Array, _row: str) -> None:
        places = statistic_axis(axes)
        for k, (title, marker) in enumerate(zip(TITLES, (*drawing.MARKERS, "v", "x"), strict=True)):
            drawing.line(axes, places, values[:, k], k, title, marker=marker, markersize=3, linewidth=1)

    figure = drawing.panels({f"{log}, {key}": values for (log, key), values in means.items()}, label, draw)
    lines = [(*key, s, *line) for key, values in means.items() for s, line in zip(STATISTICS, values.tolist(), strict=True)]
    return Chart(name, figure, "By the months of history that count.", by_column(["log", "key", "statistic", *TITLES], lines)), means


@item("F8")
def figure_8(study: Study) -> list[Part]:
    """Fig. 8: accuracy by window."""
    chart, by_key = _windows_figure(study, "fig8", "mean accuracy", mean_accuracy)
    claims = Claims()
    for (log, key), values in by_key.items():
        if key == "triple":
            gains = values[:, 0] - values[:, -1]
            evidence = ", ".join(f"{s} {g:+.3f}" for s, g in zip(STATISTICS, gains.tolist(), strict=True))
            claims.add(
                f"{log}: one month is at least as accurate as all history at max and p95", bool((gains[:2] > -0.001).all()), evidence
            )
    return [chart, claims, Notes(METHOD)]


@item("F9")
def figure_9(study: Study) -> list[Part]:
    """Fig. 9: bad estimates by window."""
    return _class_by_window(study, "fig9", "BE", "bad estimates", [METHOD])


@item("F10")
def figure_10(study: Study) -> list[Part]:
    """Fig. 10: under-estimates by window."""
    notes = [METHOD, "tang13: 10 to 15 % fewer with one month, triple key, under p90."]
    return _class_by_window(study, "fig10", "UE", "under-estimates", notes)


def _class_by_window(study: Study, name: str, kind: str, title: str, notes: list[str]) -> list[Part]:
    """Return the figure of the share of one class of jobs, and whether one month of history gives fewer of them."""
    chart, by_key = _windows_figure(study, name, f"{kind} jobs (%)", lambda replay: class_shares(replay)[kind])
    claims = Claims()
    for (log, key), values in by_key.items():
        low = values[2:, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            change = 100 * (low[:, 0] / low[:, -1] - 1)
        evidence = ", ".join(f"{s} {c:+.0f} %" for s, c in zip(STATISTICS[2:], change.tolist(), strict=True))
        claims.add(
            f"{log}, {key}: fewer {title} with one month than with all history", bool((low[:, 0] < low[:, -1]).mean() > 0.5), evidence
        )
    return [chart, claims, Notes(*notes)]


@item("F11")
def figure_11(study: Study) -> list[Part]:
    """Fig. 11: the distribution of accuracy."""
    printed = study.printed.tables["F11"]
    by_panel: dict[str, dict[str, Array]] = {}
    quantiles = list(range(0, 101, 5))
    data: dict[str, list[float]] = {"percent": [float(q) for q in quantiles]}
    rows: Rows = [
        [
            "tang13: Intrepid, triple",
            str(row["scheme"]),
            Value(float(row["at60"]), digits=2),
            Value(float(row["median"]), digits=2) if isinstance(row["median"], int | float) else None,
        ]
        for row in printed.rows
    ]
    claims = Claims()
    for subject in study.with_users:
        log, w = subject.name, subject.workload
        for key, real in keys_of(subject).items():
            if key not in ("triple", "double"):
                continue
            schemes = {s: scheme_of(real, s, threshold=THRESHOLD) for s in ("max", "p85", "median")}
            replayed = replays(study, subject, list(schemes.values()))
            after = {s: np.sort(accuracy_of(w, replayed[scheme].predicted)) for s, scheme in schemes.items()}
            by_name = by_panel[f"{log}, {key}"] = {"original": np.sort(accuracy_of(w)), **after}
            data |= {f"{log} {key} {name}": np.percentile(values, quantiles).tolist() for name, values in by_name.items()}
            medians = {name: float(np.median(values)) for name, values in by_name.items()}
            for name, values in by_name.items():
                at_60 = Value(float(np.percentile(values, 60)), digits=2)
                rows.append([f"{log}, {key}", name, at_60, Value(medians[name], digits=2)])
            if key == "triple":
                gain = 100 * (medians["p85"] / medians["original"] - 1)
                claims.add(f"{log}: p85 raises the median accuracy", gain > 0, f"{gain:+.0f} % (tang13: +42 %)")

    def draw(axes: Axes, by_name: dict[str, Array], _row: str) -> None:
        for k, (name, values) in enumerate(by_name.items()):
            drawing.shares(axes, values, k, name)

    figure = drawing.panels(by_panel, "share of jobs (%)", draw, x="accuracy")
    table = Table("fig11", printed.title, ["log", "scheme", "accuracy at 60 % of the jobs", "median accuracy"], rows)
    return [Chart("fig11", figure, f"All history, threshold {THRESHOLD:g}.", data), table, claims, Notes(METHOD)]


@item("F13")
def figure_13(study: Study) -> list[Part]:
    """Fig. 13: accuracy by month."""
    by_log: dict[str, dict[str, Array]] = {}
    claims = Claims()
    for subject in study.with_users:
        log, w = subject.name, subject.workload
        schemes = {s: simulated_scheme(subject, s) for s in SCHEMES}
        replayed = replays(study, subject, list(schemes.values()))
        exact = {"original": accuracy_of(w)} | {s: accuracy_of(w, replayed[scheme].predicted) for s, scheme in schemes.items()}
        masks = [(w.submit >= begin) & (w.submit < end) for _, begin, end in months_of(subject)[1:13]]
        masks = [mask for mask in masks if mask.any()]
        mine = by_log[log] = {name: np.array([float(values[mask].mean()) for mask in masks]) for name, values in exact.items()}
        if masks:
            best = float(np.mean([max(SCHEMES, key=lambda s: mine[s][k]) == "p70" for k in range(len(masks))]))
            claims.add(f"{log}: p70 is the most accurate scheme in most months", best > 0.5, f"{100 * best:.0f} % of {len(masks)}")
            over = float((mine["p85"] > mine["original"]).mean())
            claims.add(f"{log}: p85 beats the users in every month", over == 1, f"{100 * over:.0f} % of {len(masks)}")

    def draw(axes: Axes, by_name: dict[str, Array], _row: str) -> None:
        drawing.numbered(axes, by_name, markers=True)
        axes.set_ylim(0, 1)

    figure = drawing.panels(by_log, "mean accuracy", draw, x="month")
    months = [(log, k, *row) for log, mine in by_log.items() for k, row in enumerate(np.array(list(mine.values())).T.tolist(), 1)]
    data = by_column(["log", "month", "original", *SCHEMES], months)
    caption = "Triple key, one month of history; the first month of each log is left out."
    return [Chart("fig13", figure, caption, data), claims, Notes(METHOD)]
