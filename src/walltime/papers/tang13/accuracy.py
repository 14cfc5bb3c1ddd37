"""tang13's tables and figures on accuracy: the used share of requests, the gain from adjusting them by history, and the history needed."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from walltime.metrics import adjustment_classes, spread_within_groups, use_of_request
from walltime.metrics.jobs import accuracy
from walltime.papers import drawing
from walltime.papers.items import item
from walltime.papers.results import Chart, Claim, Parts, Rows, Table, Value, by_column
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
from walltime.papers.tang13.schemes import KEYS, METHOD, SCHEMES, keys_of, months_of, replays, simulated_replays
from walltime.predictors.base import alike
from walltime.report.figures import COLOURS
from walltime.simulation.replay import Replay
from walltime.workload import Array, Workload

ByKey = Mapping[tuple[str, str], Array]
"""Values by log and key."""
STATISTICS = ("max", "p95", "p90", "p85", "p80", "p70", "median")
WINDOWS = (1, 2, 3, 6, 12, None)
TITLES = tuple("all" if window is None else f"{window}M" for window in WINDOWS)
THRESHOLD = 0.5
CLASSES = ("NA", "OE", "UE", "BE")
QUARTER = 91 * 86_400


def mean_accuracy(replay: Replay) -> float:
    """Return the mean accuracy of a replay, in which the runtime of a killed job counts as its request."""
    return replay.summary().mean_accuracy


def accuracy_of(workload: Workload, predicted: Array | None = None) -> Array:
    """Return the accuracy of predictions, or of the users' requests; the runtime of a killed job counts as its request."""
    return accuracy(np.minimum(workload.runtime, workload.requested), workload.requested if predicted is None else predicted)


def class_shares(replay: Replay) -> dict[str, float]:
    """Return the percentage of the jobs in each class."""
    w = replay.workload
    kinds = adjustment_classes(w.runtime, w.requested, replay.predicted, replay.basis)
    return {name: 100 * float((kinds == k).mean()) for k, name in enumerate(CLASSES)}


def statistic_axis(axes: Axes) -> Array:
    """Put the statistics on the horizontal axis; return their positions."""
    places = np.arange(len(STATISTICS))
    axes.set_xticks(places, STATISTICS, fontsize=7)
    return places


@item("T1")
def table_1(study: Study) -> Parts:
    """Table 1: the logs."""
    printed = study.printed.tables["T1"]
    rows: Rows = [["tang13: Intrepid, 30 months", *(float(row["value"]) for row in printed.rows)]]
    for subject in study.subjects:
        w = subject.workload
        columns = [w.columns[name] if subject.has_column(name) else None for name in ("group", "user")]
        counts = [None if column is None else Value(len(np.unique(column[column >= 0]))) for column in columns]
        rows.append([subject.label, Value(len(w)), Value(w.machine_procs), float(w.runtime.mean()), float(w.requested.mean()), *counts])
    heads = ["log", "jobs", "nodes or processors", "mean runtime (s)", "mean request (s)", "projects", "users"]
    yield Table("table1", printed.title, heads, rows)


def _use(subject: Subject) -> Array:
    """Return the fraction of its request that each job used; float64, shape (jobs,)."""
    return use_of_request(subject.workload.runtime, subject.workload.requested)


@item("F1")
def figure_1(study: Study) -> Parts:
    """Fig. 1: share of the request that jobs use."""
    printed = study.printed.tables["F1"]
    used = {s.name: _use(s) for s in study.with_users}
    edges = np.linspace(0, 1, 21)

    def draw(axes: Axes, values: Array, _row: str) -> None:
        counts = 100 * np.histogram(values, edges)[0] / len(values)
        axes.bar(edges[:-1], counts, width=0.05, align="edge", color=COLOURS[0], edgecolor="white", linewidth=0.4)

    data = {"from": edges[:-1].tolist()} | {name: np.histogram(r, edges)[0].tolist() for name, r in used.items()}
    caption = "How much of their requests jobs used."
    yield drawing.chart("fig1", caption, data, used, "jobs (%)", draw, x="R = runtime / request", legend=False)
    ranges: dict[str, Callable[[Array], Array]] = {
        "close to 1": lambda r: r >= 0.95,
        "over 0.8": lambda r: r > 0.8,
        "at most 0.5": lambda r: r <= 0.5,
        "under 0.2": lambda r: r < 0.2,
    }
    rows: Rows = [
        [name, Value(printed.value("value", quantity=name) or 0), *(100 * float(inside(r).mean()) for r in used.values())]
        for name, inside in ranges.items()
    ]
    note = "Close to 1: 0.95 and more; tang13 does not define it."
    yield Table("fig1", printed.title, ["R", "tang13: Intrepid", *used], rows, note, digits=1)


@item("F2")
def figure_2(study: Study) -> Parts:
    """Fig. 2: used share of the request by quarter."""
    printed = study.printed.tables["F2"]
    rows: Rows = [["tang13: Intrepid", *(float(row["value"]) for row in printed.rows)]]
    lines: dict[str, Array] = {}
    for subject in study.with_users:
        r, submit = _use(subject), subject.workload.submit
        quarter = (submit - submit[0]) // QUARTER
        means = lines[subject.name] = np.array([float(r[quarter == q].mean()) for q in np.unique(quarter)])
        rows.append([subject.name, *(float(v) for v in (r.mean(), r.std(), means.min(), means.max()))])

    def draw(axes: Axes, means: Array, _row: str) -> None:
        drawing.lines(axes, {"": means}, markers=True)
        axes.set_ylim(0, 1)

    longest = max(map(len, lines.values()), default=0)
    data = {name: [*means.tolist(), *[float("nan")] * (longest - len(means))] for name, means in lines.items()}
    caption = "Quarters of 91 days from the first submission on."
    yield drawing.chart("fig2", caption, data, lines, "mean R", draw, x="quarter of the log", legend=False)
    yield Table("fig2", printed.title, ["log", "mean", "standard deviation", "lowest quarter", "highest quarter"], rows, digits=2)


@item("T2")
def table_2(study: Study) -> Parts:
    """Table 2: variation among similar jobs."""
    printed = study.printed.tables["T2"]
    rows: Rows = [["tang13: Intrepid", str(row["key"]), float(row["spread"]), Value(int(row["groups"]))] for row in printed.rows]
    for subject in study.with_users:
        w, r = subject.workload, _use(subject)
        spread: dict[str, float] = {"all": float(r.std())}
        rows.append([subject.name, "all", spread["all"], Value(1)])
        for name, key in keys_of(subject).items():
            spread[name], groups = spread_within_groups(r, alike(w, w.requested, key))
            rows.append([subject.name, name, spread[name], Value(groups)])
        evidence = ", ".join(f"{name} {value:.3f}" for name, value in spread.items())
        yield Claim(f"{subject.name}: jobs of one triple are the most alike", spread["triple"] == min(spread.values()), evidence)
        claim = f"{subject.name}: every key makes groups that are more alike than all jobs"
        yield Claim(claim, spread["all"] == max(spread.values()), evidence)
    note = "Mean over the groups of at least 10 jobs, not weighted."
    yield Table("table2", printed.title, ["log", "key", "standard deviation of R", "groups"], rows, note, digits=3)
    yield METHOD


@item("F4")
def figure_4(study: Study) -> Parts:
    """Fig. 4: accuracy by key and percentile."""
    by_log: dict[str, dict[str, Array]] = {}
    rows: Rows = []
    for subject in study.with_users:
        log = subject.name
        by_key = {name: list(map(mean_accuracy, replays(study, subject, key, STATISTICS))) for name, key in keys_of(subject).items()}
        base = float(accuracy_of(subject.workload).mean())
        by_log[log] = {name: np.array(values) for name, values in by_key.items()} | {"original": np.array(base)}
        for name, values in by_key.items():
            best = int(np.argmax(values))
            gain = f"{100 * (values[best] / base - 1):+.0f} % ({STATISTICS[best]})"
            rows.append([log, name, base, *values, gain])
        at = {name: values[STATISTICS.index("p85")] for name, values in by_key.items()}
        evidence = ", ".join(f"{name} {value:.3f}" for name, value in at.items())
        yield Claim(f"{log}: at p85 more keys are more accurate", at["triple"] == max(at.values()), evidence)
        triple = by_key["triple"]
        falls = sum(b >= a for a, b in itertools.pairwise(triple))
        yield Claim(f"{log}: lower percentiles are more accurate, down to p70", falls >= 5, ", ".join(f"{v:.3f}" for v in triple))
        yield Claim(f"{log}: every scheme beats the users", min(min(v) for v in by_key.values()) > base, f"users {base:.3f}")

    def draw(axes: Axes, by_key: dict[str, Array], _row: str) -> None:
        places = statistic_axis(axes)
        for name, values in by_key.items():
            if name == "original":
                drawing.level(axes, float(values), name)
            else:
                k = KEYS.index(name)  # a key has the same style in all panels, even if other keys are missing
                drawing.line(axes, places, values, k, name, marker=drawing.MARKERS[k], markersize=3)

    data = {"log": [row[0] for row in rows], "key": [row[1] for row in rows]}
    yield drawing.chart("fig4", "Mean accuracy by key and statistic.", data, by_log, "mean accuracy", draw)
    columns = ["log", "key", "original", *STATISTICS, "best gain"]
    intrepid = ", ".join(f"{row['quantity']} {row['value']}" for row in study.printed.tables["F4"].rows)
    yield Table("fig4", "Mean accuracy, all history", columns, rows, f"tang13 on Intrepid: {intrepid} %.", digits=3)
    yield METHOD


def _classes_figure(study: Study, name: str, key: str, threshold: float) -> tuple[Chart, dict[str, list[dict[str, float]]]]:
    """Draw the classes of adjusted requests by statistic; return the chart, and the shares of each log, one mapping per statistic."""
    by_log: dict[str, list[dict[str, float]]] = {}
    for subject in study.with_users:
        if key in keys_of(subject):
            replayed = replays(study, subject, keys_of(subject)[key], STATISTICS, threshold=threshold)
            by_log[subject.name] = list(map(class_shares, replayed))

    def draw(axes: Axes, shares: list[dict[str, float]], _row: str) -> None:
        places, base = statistic_axis(axes), np.zeros(len(STATISTICS))
        for k, kind in enumerate(CLASSES):
            values = np.array([share[kind] for share in shares])
            look: dict[str, Any] = {"color": COLOURS[k], "hatch": drawing.HATCHES[k], "edgecolor": "white", "linewidth": 0.3}
            axes.bar(places, values, 0.8, bottom=base, label=kind, **look)
            base += values

    lines = [(log, s, *share.values()) for log, shares in by_log.items() for s, share in zip(STATISTICS, shares, strict=True)]
    caption = f"{key.capitalize()} key, all history, {'no threshold' if not threshold else f'threshold {threshold:g}'}."
    return drawing.chart(name, caption, by_column(["log", "statistic", *CLASSES], lines), by_log, "jobs (%)", draw), by_log


@item("F5")
def figure_5(study: Study) -> Parts:
    """Fig. 5: over- and under-estimates after adjustment."""
    triple, by_log = _classes_figure(study, "fig5-triple", "triple", 0.0)
    yield triple
    double, with_projects = _classes_figure(study, "fig5-double", "double", 0.0)
    if with_projects:
        yield double
    ranges = {str(row["quantity"]): (float(row["low"]), float(row["high"])) for row in study.printed.tables["F5"].rows}
    for log, shares in by_log.items():
        middle = shares[STATISTICS.index("p90")], shares[STATISTICS.index("p80")]
        for kind in ("OE", "BE"):
            values = [share[kind] for share in middle]
            low, high = ranges[kind]
            inside, evidence = low <= min(values) and max(values) <= high, f"{values[0]:.1f} to {values[1]:.1f} %"
            yield Claim(f"{log}: {kind} at p80 to p90 from {low:g} to {high:g} %", inside, evidence)
        under = [share["UE"] + share["BE"] for share in shares]
        evidence = ", ".join(f"{v:.0f}" for v in under)
        yield Claim(f"{log}: more are under-estimated the lower the percentile", under == sorted(under), evidence)
    yield METHOD
    yield "The shares in print are Intrepid's."


def _threshold_figure(study: Study, name: str, key: str) -> Parts:
    """Yield the figure of the classes with a threshold, and its effect on under-estimates and accuracy."""
    _, before = _classes_figure(study, f"{name}-plain", key, 0.0)
    chart, after = _classes_figure(study, name, key, THRESHOLD)
    yield chart
    rows: Rows = []
    low, high = (float(v) for v in list(study.printed.tables["F6"].rows[0].values())[1:])
    for subject in study.with_users:
        log = subject.name
        if log not in before:
            continue
        exact = [map(mean_accuracy, replays(study, subject, keys_of(subject)[key], STATISTICS, threshold=t)) for t in (0.0, THRESHOLD)]
        falls, lost = [], []
        for statistic, a, b, *means in zip(STATISTICS, before[log], after[log], *exact, strict=True):
            under = [share["UE"] + share["BE"] for share in (a, b)]
            fall = 100 * (1 - under[1] / under[0]) if under[0] else 0.0
            falls.append(fall)
            lost.append(means[0] - means[1])
            rows.append([log, statistic, *(Value(v, digits=1) for v in under), f"{-fall:+.0f} %", *means])
        evidence = f"by {min(falls):.0f} to {max(falls):.0f} % (tang13: {low:g} to {high:g} %)"
        yield Claim(f"{log}: the threshold reduces under-estimates", min(falls[1:]) > 0, evidence)
        yield Claim(f"{log}: and hardly the accuracy", max(lost) < 0.05, f"by at most {max(lost):.3f}")
        same = all(abs(a["NA"] - b["NA"]) < 1e-9 for a, b in zip(before[log], after[log], strict=True))
        yield Claim(f"{log}: as many jobs without adjustment", same, f"{after[log][0]['NA']:.1f} %")
    columns = ["log", "statistic", "UE and BE (%)", "with threshold", "change", "accuracy", "with threshold"]
    yield Table(name, f"A threshold of {THRESHOLD:g}, {key} key", columns, rows, digits=3)
    yield METHOD


F6 = item("F6", title="Fig. 6: a threshold, triple key", name="fig6", key="triple")(_threshold_figure)
F7 = item("F7", title="Fig. 7: a threshold, double key", name="fig7", key="double")(_threshold_figure)


def _windows_figure(study: Study, name: str, label: str, measure: Callable[[Replay], float]) -> tuple[Chart, ByKey]:
    """Draw one measure over the windows, for each statistic; also return arrays of shape (statistics, windows)."""
    means: dict[tuple[str, str], Array] = {}
    for subject in study.with_users:
        for key, real in keys_of(subject).items():
            if key in ("triple", "double"):
                by_window = [list(map(measure, replays(study, subject, real, STATISTICS, window=window))) for window in WINDOWS]
                means[subject.name, key] = np.array(by_window).T

    def draw(axes: Axes, values: Array, _row: str) -> None:
        places = statistic_axis(axes)
        for k, (title, marker) in enumerate(zip(TITLES, (*drawing.MARKERS, "v", "x"), strict=True)):
            drawing.line(axes, places, values[:, k], k, title, marker=marker, markersize=3, linewidth=1)

    lines = [(*key, s, *line) for key, values in means.items() for s, line in zip(STATISTICS, values.tolist(), strict=True)]
    data, by_panel = by_column(["log", "key", "statistic", *TITLES], lines), {", ".join(key): values for key, values in means.items()}
    return drawing.chart(name, "By the months of history that count.", data, by_panel, label, draw), means


@item("F8")
def figure_8(study: Study) -> Parts:
    """Fig. 8: accuracy by window."""
    chart, by_key = _windows_figure(study, "fig8", "mean accuracy", mean_accuracy)
    yield chart
    for (log, key), values in by_key.items():
        if key == "triple":
            gains = values[:, 0] - values[:, -1]
            evidence = ", ".join(f"{s} {g:+.3f}" for s, g in zip(STATISTICS, gains.tolist(), strict=True))
            claim = f"{log}: one month is at least as accurate as all history at max and p95"
            yield Claim(claim, bool((gains[:2] > -0.001).all()), evidence)
    yield METHOD


def _class_by_window(study: Study, name: str, kind: str, what: str) -> Parts:
    """Yield the figure of the share of one class of jobs, and the claim that one month of history reduces this share."""
    chart, by_key = _windows_figure(study, name, f"{kind} jobs (%)", lambda replay: class_shares(replay)[kind])
    yield chart
    for (log, key), values in by_key.items():
        low = values[2:, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            change = 100 * (low[:, 0] / low[:, -1] - 1)
        evidence = ", ".join(f"{s} {c:+.0f} %" for s, c in zip(STATISTICS[2:], change.tolist(), strict=True))
        claim = f"{log}, {key}: fewer {what} with one month than with all history"
        yield Claim(claim, (low[:, 0] < low[:, -1]).mean() > 0.5, evidence)
    yield METHOD
    if kind == "UE":
        yield "tang13: 10 to 15 % fewer with one month, triple key, under p90."


F9 = item("F9", title="Fig. 9: bad estimates by window", name="fig9", kind="BE", what="bad estimates")(_class_by_window)
F10 = item("F10", title="Fig. 10: under-estimates by window", name="fig10", kind="UE", what="under-estimates")(_class_by_window)


@item("F11")
def figure_11(study: Study) -> Parts:
    """Fig. 11: the distribution of accuracy."""
    printed = study.printed.tables["F11"]
    by_panel: dict[str, dict[str, Array]] = {}
    quantiles = list(range(0, 101, 5))
    data: dict[str, list[float]] = {"percent": [float(q) for q in quantiles]}
    rows: Rows = [
        ["tang13: Intrepid, triple", str(row["scheme"]), *(float(row[name]) if row[name] != "" else None for name in ("at60", "median"))]
        for row in printed.rows
    ]
    for subject in study.with_users:
        log, w = subject.name, subject.workload
        for key, real in keys_of(subject).items():
            if key not in ("triple", "double"):
                continue
            statistics = ("max", "p85", "median")
            replayed = replays(study, subject, real, statistics, threshold=THRESHOLD)
            after = {s: np.sort(accuracy_of(w, replay.predicted)) for s, replay in zip(statistics, replayed, strict=True)}
            by_name = by_panel[f"{log}, {key}"] = {"original": np.sort(accuracy_of(w)), **after}
            data |= {f"{log} {key} {name}": np.percentile(values, quantiles).tolist() for name, values in by_name.items()}
            medians = {name: float(np.median(values)) for name, values in by_name.items()}
            for name, values in by_name.items():
                rows.append([f"{log}, {key}", name, float(np.percentile(values, 60)), medians[name]])
            if key == "triple":
                gain = 100 * (medians["p85"] / medians["original"] - 1)
                yield Claim(f"{log}: p85 raises the median accuracy", gain > 0, f"{gain:+.0f} % (tang13: +42 %)")

    def draw(axes: Axes, by_name: dict[str, Array], _row: str) -> None:
        for k, (name, values) in enumerate(by_name.items()):
            drawing.shares(axes, values, k, name)

    yield drawing.chart("fig11", f"All history, threshold {THRESHOLD:g}.", data, by_panel, "share of jobs (%)", draw, x="accuracy")
    yield Table("fig11", printed.title, ["log", "scheme", "accuracy at 60 % of the jobs", "median accuracy"], rows, digits=2)
    yield METHOD


@item("F13")
def figure_13(study: Study) -> Parts:
    """Fig. 13: accuracy by month."""
    by_log: dict[str, dict[str, Array]] = {}
    for subject in study.with_users:
        log, w = subject.name, subject.workload
        adjusted = {s: accuracy_of(w, replay.predicted) for s, replay in simulated_replays(study, subject).items()}
        exact = {"original": accuracy_of(w)} | adjusted
        masks = [(w.submit >= begin) & (w.submit < end) for _, begin, end in months_of(subject)[1:13]]
        masks = [mask for mask in masks if mask.any()]
        mine = by_log[log] = {name: np.array([float(values[mask].mean()) for mask in masks]) for name, values in exact.items()}
        if masks:
            best = float(np.mean([max(adjusted, key=lambda s: mine[s][k]) == "p70" for k in range(len(masks))]))
            yield Claim(f"{log}: p70 is the most accurate scheme in most months", best > 0.5, f"{100 * best:.0f} % of {len(masks)}")
            over = float((mine["p85"] > mine["original"]).mean())
            yield Claim(f"{log}: p85 beats the users in every month", over == 1, f"{100 * over:.0f} % of {len(masks)}")

    def draw(axes: Axes, by_name: dict[str, Array], _row: str) -> None:
        drawing.lines(axes, by_name, markers=True)
        axes.set_ylim(0, 1)

    months = [(log, k, *row) for log, mine in by_log.items() for k, row in enumerate(np.array(list(mine.values())).T.tolist(), 1)]
    data = by_column(["log", "month", "original", *SCHEMES], months)
    caption = "Triple key, one month of history; the first month of each log is left out."
    yield drawing.chart("fig13", caption, data, by_log, "mean accuracy", draw, x="month")
    yield METHOD


@item("T3", where="no simulation: a summary")
def table_3(study: Study) -> Parts:
    """Table 3: effect of adjusted estimates."""
    rows: Rows = [
        ["waiting job", "over-estimate made smaller", "more jobs fit the backfill window; with an order by length, a fairer place", "-"],
        ["waiting job", "under-estimate", "backfilled too", "may hold its processors beyond the reservation it was to respect"],
        ["running job", "over-estimate made smaller", "reservation nearer to the truth", "smaller backfill window"],
        ["running job", "under-estimate", "-", "smaller backfill window, and a reservation that is missed"],
    ]
    head = ["adjusted", "what it becomes", "gain", "loss"]
    title = "Effect of adjustment in the scheduler, in our words"
    yield Table("table3", title, head, rows, "tang13, Table 3 and section 5.1.", words=True)
