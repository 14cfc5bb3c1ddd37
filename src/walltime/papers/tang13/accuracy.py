"""Tables and figures of tang13 on accuracy: the fraction of requests used, and the gain from adjusting them by history."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from walltime.metrics import spread_within_groups, use_of_request
from walltime.papers import drawing
from walltime.papers.items import item
from walltime.papers.results import Chart, Claims, Notes, Part, Rows, Table, Value, by_column
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
from walltime.papers.tang13.schemes import (
    CLASSES,
    KEYS,
    METHOD,
    QUARTER,
    STATISTICS,
    THRESHOLD,
    accuracy_of,
    class_shares,
    keys_of,
    mean_accuracy,
    replays,
    scheme_of,
    statistic_axis,
)
from walltime.predictors.base import alike
from walltime.report.figures import COLOURS

Array = np.ndarray


@item("T1")
def table_1(study: Study) -> list[Part]:
    """Table 1: the logs."""
    printed = study.printed.tables["T1"]
    rows: Rows = [["tang13: Intrepid, 30 months", *(Value(float(row["value"])) for row in printed.rows)]]
    for subject in study.subjects:
        w = subject.workload
        columns = [w.columns[name] if subject.has_column(name) else None for name in ("group", "user")]
        counts = [None if column is None else Value(len(np.unique(column[column >= 0]))) for column in columns]
        means = [Value(float(column.mean())) for column in (w.runtime, w.requested)]
        rows.append([subject.label, Value(len(w)), Value(w.machine_procs), *means, *counts])
    heads = ["log", "jobs", "nodes or processors", "mean runtime (s)", "mean request (s)", "projects", "users"]
    return [Table("table1", printed.title, heads, rows)]


def _use(subject: Subject) -> Array:
    """Return the fraction of its request that each job used; float64, shape (jobs,)."""
    return use_of_request(subject.workload.runtime, subject.workload.requested)


@item("F1")
def figure_1(study: Study) -> list[Part]:
    """Fig. 1: how much of their requests jobs use."""
    printed = study.printed.tables["F1"]
    used = {s.name: _use(s) for s in study.with_users}
    edges = np.linspace(0, 1, 21)

    def draw(axes: Axes, values: Array, _row: str) -> None:
        counts = 100 * np.histogram(values, edges)[0] / len(values)
        axes.bar(edges[:-1], counts, width=0.05, align="edge", color=COLOURS[0], edgecolor="white", linewidth=0.4)

    rows: Rows = []
    for name, share in (
        ("close to 1", lambda r: r >= 0.95),
        ("over 0.8", lambda r: r > 0.8),
        ("at most 0.5", lambda r: r <= 0.5),
        ("under 0.2", lambda r: r < 0.2),
    ):
        ours = [Value(100 * float(share(r).mean()), digits=1) for r in used.values()]
        rows.append([name, Value(printed.value("value", quantity=name) or 0), *ours])
    figure = drawing.panels(used, "jobs (%)", draw, x="R = runtime / request", legend=False)
    data = {"from": edges[:-1].tolist()} | {name: np.histogram(r, edges)[0].tolist() for name, r in used.items()}
    note = "Close to 1: 0.95 and more; tang13 does not define it."
    table = Table("fig1", printed.title, ["R", "tang13: Intrepid", *used], rows, note)
    return [Chart("fig1", figure, "How much of their requests jobs used.", data), table]


@item("F2")
def figure_2(study: Study) -> list[Part]:
    """Fig. 2: the same by quarter."""
    printed = study.printed.tables["F2"]
    rows: Rows = [["tang13: Intrepid", *(Value(float(row["value"]), digits=2) for row in printed.rows)]]
    lines: dict[str, Array] = {}
    for subject in study.with_users:
        r, submit = _use(subject), subject.workload.submit
        quarter = (submit - submit[0]) // QUARTER
        means = lines[subject.name] = np.array([float(r[quarter == q].mean()) for q in np.unique(quarter)])
        rows.append([subject.name, *(Value(float(v), digits=2) for v in (r.mean(), r.std(), means.min(), means.max()))])

    def draw(axes: Axes, means: Array, _row: str) -> None:
        drawing.numbered(axes, {"": means}, markers=True)
        axes.set_ylim(0, 1)

    figure = drawing.panels(lines, "mean R", draw, x="quarter of the log", legend=False)
    longest = max(map(len, lines.values()), default=0)
    data = {name: [*means.tolist(), *[float("nan")] * (longest - len(means))] for name, means in lines.items()}
    table = Table("fig2", printed.title, ["log", "mean", "standard deviation", "lowest quarter", "highest quarter"], rows)
    return [Chart("fig2", figure, "Quarters of 91 days from the first submission on.", data), table]


@item("T2")
def table_2(study: Study) -> list[Part]:
    """Table 2: how alike similar jobs are."""
    printed = study.printed.tables["T2"]
    rows: Rows = [
        ["tang13: Intrepid", str(row["key"]), Value(float(row["spread"]), digits=3), Value(int(row["groups"]))] for row in printed.rows
    ]
    claims = Claims()
    for subject in study.with_users:
        w, r = subject.workload, _use(subject)
        spread: dict[str, float] = {"all": float(r.std())}
        rows.append([subject.name, "all", Value(spread["all"], digits=3), Value(1)])
        for name, key in keys_of(subject).items():
            spread[name], groups = spread_within_groups(r, alike(w, w.requested, key))
            rows.append([subject.name, name, Value(spread[name], digits=3), Value(groups)])
        evidence = ", ".join(f"{name} {value:.3f}" for name, value in spread.items())
        claims.add(f"{subject.name}: jobs of one triple are the most alike", min(spread, key=lambda k: spread[k]) == "triple", evidence)
        claims.add(
            f"{subject.name}: every key makes groups that are more alike than all jobs", max(spread.values()) == spread["all"], evidence
        )
    note = "Mean over the groups of at least 10 jobs, not weighted."
    return [Table("table2", printed.title, ["log", "key", "standard deviation of R", "groups"], rows, note), claims, Notes(METHOD)]


@item("F4")
def figure_4(study: Study) -> list[Part]:
    """Fig. 4: accuracy by key and percentile."""
    by_log: dict[str, dict[str, Array]] = {}
    rows: Rows = []
    claims = Claims()
    for subject in study.with_users:
        log, keys = subject.name, keys_of(subject)
        replayed = replays(study, subject, [scheme_of(key, s) for key in keys.values() for s in STATISTICS])
        by_key = {name: [mean_accuracy(replayed[scheme_of(key, s)]) for s in STATISTICS] for name, key in keys.items()}
        base = float(accuracy_of(subject.workload).mean())
        by_log[log] = {name: np.array(values) for name, values in by_key.items()} | {"original": np.array(base)}
        for name, values in by_key.items():
            best = int(np.argmax(values))
            gain = f"{100 * (values[best] / base - 1):+.0f} % ({STATISTICS[best]})"
            rows.append([log, name, Value(base, digits=3), *(Value(v, digits=3) for v in values), gain])
        at = {name: values[STATISTICS.index("p85")] for name, values in by_key.items()}
        evidence = ", ".join(f"{name} {value:.3f}" for name, value in at.items())
        claims.add(f"{log}: at p85 more keys are more accurate", at["triple"] == max(at.values()), evidence)
        triple = by_key["triple"]
        falls = sum(b >= a for a, b in itertools.pairwise(triple))
        claims.add(f"{log}: lower percentiles are more accurate, down to p70", falls >= 5, ", ".join(f"{v:.3f}" for v in triple))
        claims.add(f"{log}: every scheme beats the users", min(min(v) for v in by_key.values()) > base, f"users {base:.3f}")

    def draw(axes: Axes, by_key: dict[str, Array], _row: str) -> None:
        places = statistic_axis(axes)
        for name, values in by_key.items():
            if name == "original":
                drawing.level(axes, float(values), name)
            else:
                k = KEYS.index(name)  # a key looks the same in all panels, also where others are missing
                drawing.line(axes, places, values, k, name, marker=drawing.MARKERS[k], markersize=3)

    figure = drawing.panels(by_log, "mean accuracy", draw)
    columns = ["log", "key", "original", *STATISTICS, "best gain"]
    intrepid = ", ".join(f"{row['quantity']} {row['value']}" for row in study.printed.tables["F4"].rows)
    data = {"log": [row[0] for row in rows], "key": [row[1] for row in rows]}
    table = Table("fig4", "Mean accuracy, all history", columns, rows, f"tang13 on Intrepid: {intrepid} %.")
    return [Chart("fig4", figure, "Mean accuracy by key and statistic.", data), table, claims, Notes(METHOD)]


def _classes_figure(study: Study, name: str, key: str, threshold: float) -> tuple[Chart, dict[str, list[dict[str, float]]]]:
    """Draw the classes of adjusted requests by statistic; return the chart, and the shares of each log, one mapping per statistic."""
    by_log: dict[str, list[dict[str, float]]] = {}
    for subject in study.with_users:
        if key in keys_of(subject):
            schemes = [scheme_of(keys_of(subject)[key], s, threshold=threshold) for s in STATISTICS]
            by_log[subject.name] = [class_shares(replay) for replay in replays(study, subject, schemes).values()]

    def draw(axes: Axes, shares: list[dict[str, float]], _row: str) -> None:
        places, base = statistic_axis(axes), np.zeros(len(STATISTICS))
        for k, kind in enumerate(CLASSES):
            values = np.array([share[kind] for share in shares])
            look: dict[str, Any] = {"color": COLOURS[k], "hatch": drawing.HATCHES[k], "edgecolor": "white", "linewidth": 0.3}
            axes.bar(places, values, 0.8, bottom=base, label=kind, **look)
            base += values

    figure = drawing.panels(by_log, "jobs (%)", draw)
    lines = [(log, s, *share.values()) for log, shares in by_log.items() for s, share in zip(STATISTICS, shares, strict=True)]
    caption = f"{key.capitalize()} key, all history, {'no threshold' if not threshold else f'threshold {threshold:g}'}."
    return Chart(name, figure, caption, by_column(["log", "statistic", *CLASSES], lines)), by_log


@item("F5")
def figure_5(study: Study) -> list[Part]:
    """Fig. 5: over- and under-estimates."""
    triple, by_log = _classes_figure(study, "fig5-triple", "triple", 0.0)
    double, _ = _classes_figure(study, "fig5-double", "double", 0.0)
    claims = Claims()
    ranges = {str(row["quantity"]): (float(row["low"]), float(row["high"])) for row in study.printed.tables["F5"].rows}
    for log, shares in by_log.items():
        middle = shares[STATISTICS.index("p90")], shares[STATISTICS.index("p80")]
        for kind in ("OE", "BE"):
            values = [share[kind] for share in middle]
            low, high = ranges[kind]
            inside, evidence = low <= min(values) and max(values) <= high, f"{values[0]:.1f} to {values[1]:.1f} %"
            claims.add(f"{log}: {kind} at p80 to p90 from {low:g} to {high:g} %", inside, evidence)
        under = [share["UE"] + share["BE"] for share in shares]
        evidence = ", ".join(f"{v:.0f}" for v in under)
        claims.add(f"{log}: more are under-estimated the lower the percentile", under == sorted(under), evidence)
    parts: list[Part] = [triple, *([double] if double.data["log"] else [])]
    return [*parts, claims, Notes(METHOD, "The shares in print are Intrepid's.")]


def _threshold_figure(study: Study, name: str, key: str) -> list[Part]:
    _, before = _classes_figure(study, f"{name}-plain", key, 0.0)
    chart, after = _classes_figure(study, name, key, THRESHOLD)
    rows: Rows = []
    claims = Claims()
    low, high = (float(v) for v in list(study.printed.tables["F6"].rows[0].values())[1:])
    for subject in study.with_users:
        log = subject.name
        if log not in before:
            continue
        falls, lost = [], []
        for statistic, *shares in zip(STATISTICS, before[log], after[log], strict=True):
            under = [share["UE"] + share["BE"] for share in shares]
            schemes = [scheme_of(keys_of(subject)[key], statistic, threshold=t) for t in (0.0, THRESHOLD)]
            exact = [mean_accuracy(replay) for replay in replays(study, subject, schemes).values()]
            fall = 100 * (1 - under[1] / under[0]) if under[0] else 0.0
            falls.append(fall)
            lost.append(exact[0] - exact[1])
            wrong = [Value(v, digits=1) for v in under]
            rows.append([log, statistic, *wrong, f"{-fall:+.0f} %", *(Value(v, digits=3) for v in exact)])
        evidence = f"by {min(falls):.0f} to {max(falls):.0f} % (tang13: {low:g} to {high:g} %)"
        claims.add(f"{log}: the threshold reduces under-estimates", min(falls[1:]) > 0, evidence)
        claims.add(f"{log}: and hardly the accuracy", max(lost) < 0.05, f"by at most {max(lost):.3f}")
        same = all(abs(a["NA"] - b["NA"]) < 1e-9 for a, b in zip(before[log], after[log], strict=True))
        claims.add(f"{log}: as many jobs without adjustment", same, f"{after[log][0]['NA']:.1f} %")
    columns = ["log", "statistic", "UE and BE (%)", "with threshold", "change", "accuracy", "with threshold"]
    return [chart, Table(name, f"A threshold of {THRESHOLD:g}, {key} key", columns, rows), claims, Notes(METHOD)]


@item("F6")
def figure_6(study: Study) -> list[Part]:
    """Fig. 6: a threshold, triple key."""
    return _threshold_figure(study, "fig6", "triple")


@item("F7")
def figure_7(study: Study) -> list[Part]:
    """Fig. 7: a threshold, double key."""
    return _threshold_figure(study, "fig7", "double")


@item("T3", where="no simulation: a summary")
def table_3(study: Study) -> list[Part]:
    """Table 3: what adjustment does."""
    rows: Rows = [
        ["waiting job", "over-estimate made smaller", "more jobs fit the backfill window; with an order by length, a fairer place", "-"],
        ["waiting job", "under-estimate", "backfilled too", "may hold its processors beyond the reservation it was to respect"],
        ["running job", "over-estimate made smaller", "reservation nearer to the truth", "smaller backfill window"],
        ["running job", "under-estimate", "-", "smaller backfill window, and a reservation that is missed"],
    ]
    head = ["adjusted", "what it becomes", "gain", "loss"]
    title = "Effect of adjustment in the scheduler, in our words"
    return [Table("table3", title, head, rows, "tang13, Table 3 and section 5.1.", words=True)]
