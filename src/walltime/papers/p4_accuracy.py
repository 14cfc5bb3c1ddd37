"""P4's tables and figures on accuracy: how much of their requests jobs use, and what adjusting them by history gains."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from walltime.estimates import Tang13
from walltime.metrics import adjustment_classes, spread_within_groups, use_of_request
from walltime.metrics.estimates import accuracy
from walltime.metrics.months import month_starts
from walltime.papers import drawing
from walltime.papers.item import Item
from walltime.papers.results import Chart, Claims, Entry, Notes, Part, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
from walltime.report.figures import COLOURS
from walltime.schedule.prediction import dense_keys
from walltime.schedule.replay import Replay, replay_predictions
from walltime.workload import Workload

Array = np.ndarray
Claim = tuple[str, bool | None, str]

STATISTICS = ("max", "p95", "p90", "p85", "p80", "p70", "median")
WINDOWS = (1, 2, 3, 6, 12, None)
THRESHOLD = 0.5
KEYS = ("user", "project", "double", "triple")
CLASSES = ("NA", "OE", "UE", "BE")
QUARTER = 91 * 86_400
METHOD = (
    "History is what had ended, in the log, when a job is submitted; a reconstruction has no ends, so those of EASY with the users' "
    "estimates stand for them. On logs without projects the triple key is user and requested time, and there is no project key."
)


def keys_of(workload: Workload) -> dict[str, str]:
    """P4's keys that the log admits, and what stands for each: without groups, `request` for the triple key."""
    group = workload.columns.get("group")
    if group is None or not (group >= 0).any():
        return {"user": "user", "triple": "request"}
    return {key: key for key in KEYS}


def learnable(study: Study) -> list[Subject]:
    """The subjects that have users and their estimates."""
    found = []
    for subject in study.subjects:
        users = subject.workload.columns.get("user")
        if users is not None and (users >= 0).any() and subject.has_estimates:
            found.append(subject)
    return found


def replays(study: Study, subject: Subject, schemes: Sequence[Tang13]) -> dict[Tang13, Replay]:
    """What each scheme predicts on the log; none is replayed twice."""
    known: dict[Tang13, Replay] = study.memory.setdefault(("replays", subject.name), {})
    missing = [scheme for scheme in dict.fromkeys(schemes) if scheme not in known]

    def show(done: int) -> None:
        if study.progress is not None:
            study.progress(f"{subject.name}: predictions", done, len(missing))

    if missing:
        found = replay_predictions(subject.workload, missing, workers=study.workers, progress=show)
        known.update(zip(missing, found, strict=True))
    return {scheme: known[scheme] for scheme in schemes}


def scheme_of(key: str, statistic: str, window: int | None = None, threshold: float = 0.0) -> Tang13:
    """A scheme by its three dimensions; all history by default, as in P4's Figs. 4 to 7."""
    return Tang13(key=key, statistic=statistic, window=window, threshold=threshold)


def mean_accuracy(replay: Replay) -> float:
    """Mean accuracy of a replay, killed jobs counted at their requests."""
    return replay.summary().mean_accuracy


def own_accuracy(workload: Workload) -> Array:
    """Accuracy of the users' requests."""
    return accuracy(np.minimum(workload.runtime, workload.requested), workload.requested)


def table_1(study: Study) -> list[Part]:
    """The logs."""
    printed = study.printed.tables["T1"]
    rows: list[list[Entry]] = [["P4: Intrepid, 30 months", *(Value(float(row["value"])) for row in printed.rows)]]
    for subject in study.subjects:
        w = subject.workload
        counts: list[Entry] = []
        for name in ("group", "user"):
            column = w.columns.get(name)
            counts.append(None if column is None or not (column >= 0).any() else Value(len(np.unique(column[column >= 0]))))
        means = [Value(float(column.mean())) for column in (w.runtime, w.requested)]
        rows.append([subject.label, Value(len(w)), Value(w.machine_procs), *means, *counts])
    columns = ["log", "jobs", "nodes or processors", "mean runtime (s)", "mean request (s)", "projects", "users"]
    return [Table("table1", printed.title, columns, rows)]


def figure_1(study: Study) -> list[Part]:
    """How much of its request a job uses."""
    printed = study.printed.tables["F1"]
    subjects = learnable(study)
    used = {s.name: use_of_request(s.workload.runtime, s.workload.requested) for s in subjects}
    edges = np.linspace(0, 1, 21)

    def draw(axes: Axes, _row: int, column: int) -> None:
        values = used[subjects[column].name]
        counts = 100 * np.histogram(values, edges)[0] / len(values)
        axes.bar(edges[:-1], counts, width=0.05, align="edge", color=COLOURS[0], edgecolor="white", linewidth=0.4)

    rows: list[list[Entry]] = []
    for name, share in (
        ("close to 1", lambda r: r >= 0.95),
        ("over 0.8", lambda r: r > 0.8),
        ("at most 0.5", lambda r: r <= 0.5),
        ("under 0.2", lambda r: r < 0.2),
    ):
        rows.append(
            [
                name,
                Value(printed.value("value", quantity=name) or 0),
                *(Value(100 * float(share(r).mean()), digits=1) for r in used.values()),
            ]
        )
    figure = drawing.panels([s.name for s in subjects], ["jobs (%)"], draw, x="R = runtime / request", legend=False)
    data = {"from": edges[:-1].tolist()} | {name: np.histogram(r, edges)[0].tolist() for name, r in used.items()}
    table = Table("fig1", printed.title, ["R", "P4: Intrepid", *used], rows, "Close to 1: 0.95 and more; P4 does not say what it is.")
    return [Chart("fig1", figure, "How much of their requests jobs used.", data), table]


def figure_2(study: Study) -> list[Part]:
    """Mean R by quarter."""
    printed = study.printed.tables["F2"]
    subjects = learnable(study)
    rows: list[list[Entry]] = [["P4: Intrepid", *(Value(float(row["value"]), digits=2) for row in printed.rows)]]
    lines: dict[str, Array] = {}
    for subject in subjects:
        w = subject.workload
        r = use_of_request(w.runtime, w.requested)
        quarter = (w.submit - w.submit[0]) // QUARTER
        means = np.array([float(r[quarter == q].mean()) for q in np.unique(quarter)])
        lines[subject.name] = means
        rows.append([subject.name, *(Value(float(v), digits=2) for v in (r.mean(), r.std(), means.min(), means.max()))])

    def draw(axes: Axes, _row: int, column: int) -> None:
        means = lines[subjects[column].name]
        drawing.line(axes, np.arange(1, len(means) + 1), means, 0, "", marker="o", markersize=3)
        axes.set_ylim(0, 1)

    figure = drawing.panels([s.name for s in subjects], ["mean R"], draw, x="quarter of the log", legend=False)
    longest = max(map(len, lines.values()), default=0)
    data = {name: [*means.tolist(), *[float("nan")] * (longest - len(means))] for name, means in lines.items()}
    table = Table("fig2", printed.title, ["log", "mean", "standard deviation", "lowest quarter", "highest quarter"], rows)
    return [Chart("fig2", figure, "Quarters of 91 days from the first submission on.", data), table]


def table_2(study: Study) -> list[Part]:
    """How alike similar jobs are."""
    printed = study.printed.tables["T2"]
    rows: list[list[Entry]] = [
        ["P4: Intrepid", str(row["key"]), Value(float(row["spread"]), digits=3), Value(int(row["groups"]))] for row in printed.rows
    ]
    claims: list[Claim] = []
    for subject in learnable(study):
        w = subject.workload
        r = use_of_request(w.runtime, w.requested)
        spread: dict[str, float] = {"all": float(r.std())}
        rows.append([subject.name, "all", Value(spread["all"], digits=3), Value(1)])
        for name, key in keys_of(w).items():
            value, groups = spread_within_groups(r, dense_keys(w, w.requested, key))
            spread[name] = value
            rows.append([subject.name, name, Value(value, digits=3), Value(groups)])
        told = ", ".join(f"{name} {value:.3f}" for name, value in spread.items())
        claims.append((f"{subject.name}: jobs of one triple are the most alike", min(spread, key=lambda k: spread[k]) == "triple", told))
        claims.append(
            (f"{subject.name}: every key makes groups that are more alike than all jobs", max(spread.values()) == spread["all"], told)
        )
    note = "Mean over the groups of at least 10 jobs, not weighted."
    return [
        Table("table2", printed.title, ["log", "key", "standard deviation of R", "groups"], rows, note),
        Claims(claims),
        Notes([METHOD]),
    ]


def figure_4(study: Study) -> list[Part]:
    """Mean accuracy by key and statistic, all history."""
    subjects = learnable(study)
    found: dict[str, dict[str, list[float]]] = {}
    for subject in subjects:
        keys = keys_of(subject.workload)
        schemes = [scheme_of(key, s) for key in keys.values() for s in STATISTICS]
        made = replays(study, subject, schemes)
        found[subject.name] = {name: [mean_accuracy(made[scheme_of(key, s)]) for s in STATISTICS] for name, key in keys.items()}

    def draw(axes: Axes, _row: int, column: int) -> None:
        subject = subjects[column]
        for name, values in found[subject.name].items():
            k = KEYS.index(name)  # a key looks the same in all panels, also where others are missing
            drawing.line(axes, np.arange(len(STATISTICS)), np.array(values), k, name, marker=drawing.MARKERS[k], markersize=3)
        drawing.level(axes, float(own_accuracy(subject.workload).mean()), "original")
        axes.set_xticks(np.arange(len(STATISTICS)), STATISTICS, fontsize=7)

    figure = drawing.panels([s.name for s in subjects], ["mean accuracy"], draw)
    rows: list[list[Entry]] = []
    claims: list[Claim] = []
    for subject in subjects:
        base = float(own_accuracy(subject.workload).mean())
        by_key = found[subject.name]
        for name, values in by_key.items():
            best = int(np.argmax(values))
            gain = f"{100 * (values[best] / base - 1):+.0f} % ({STATISTICS[best]})"
            rows.append([subject.name, name, Value(base, digits=3), *(Value(v, digits=3) for v in values), gain])
        at = {name: values[STATISTICS.index("p85")] for name, values in by_key.items()}
        told = ", ".join(f"{name} {value:.3f}" for name, value in at.items())
        claims.append((f"{subject.name}: at p85 more keys are more accurate", at["triple"] == max(at.values()), told))
        triple = by_key["triple"]
        falls = sum(b >= a for a, b in itertools.pairwise(triple))
        claims.append(
            (f"{subject.name}: lower percentiles are more accurate, down to p70", falls >= 5, ", ".join(f"{v:.3f}" for v in triple))
        )
        claims.append((f"{subject.name}: every scheme beats the users", min(min(v) for v in by_key.values()) > base, f"users {base:.3f}"))
    columns = ["log", "key", "original", *STATISTICS, "best gain"]
    intrepid = ", ".join(f"{row['quantity']} {row['value']}" for row in study.printed.tables["F4"].rows)
    data = {"log": [row[0] for row in rows], "key": [row[1] for row in rows]}
    table = Table("fig4", "Mean accuracy, all history", columns, rows, f"P4 on Intrepid: {intrepid} %.")
    return [Chart("fig4", figure, "Mean accuracy by key and statistic.", data), table, Claims(claims), Notes([METHOD])]


def class_shares(replay: Replay) -> dict[str, float]:
    """Percent of the jobs in each class."""
    w = replay.workload
    kinds = adjustment_classes(w.runtime, w.requested, replay.predicted, replay.basis)
    return {name: 100 * float((kinds == k).mean()) for k, name in enumerate(CLASSES)}


def _classes_figure(study: Study, name: str, key: str, threshold: float) -> tuple[Chart, dict[str, list[dict[str, float]]]]:
    subjects = [s for s in learnable(study) if key in keys_of(s.workload)]
    found: dict[str, list[dict[str, float]]] = {}
    for subject in subjects:
        schemes = [scheme_of(keys_of(subject.workload)[key], s, threshold=threshold) for s in STATISTICS]
        made = replays(study, subject, schemes)
        found[subject.name] = [class_shares(made[scheme]) for scheme in schemes]

    def draw(axes: Axes, _row: int, column: int) -> None:
        shares = found[subjects[column].name]
        base = np.zeros(len(STATISTICS))
        for k, kind in enumerate(CLASSES):
            values = np.array([share[kind] for share in shares])
            colour, hatch = COLOURS[k], drawing.HATCHES[k]
            axes.bar(
                np.arange(len(STATISTICS)),
                values,
                0.8,
                bottom=base,
                label=kind,
                color=colour,
                hatch=hatch,
                edgecolor="white",
                linewidth=0.3,
            )
            base += values
        axes.set_xticks(np.arange(len(STATISTICS)), STATISTICS, fontsize=7)

    figure = drawing.panels([s.name for s in subjects], ["jobs (%)"], draw)
    data: dict[str, list[object]] = {"log": [], "statistic": [], **{kind: [] for kind in CLASSES}}
    for log, shares in found.items():
        for statistic, share in zip(STATISTICS, shares, strict=True):
            for column, value in zip(data, (log, statistic, *share.values()), strict=True):
                data[column].append(value)
    caption = f"{key.capitalize()} key, all history, {'no threshold' if not threshold else f'threshold {threshold:g}'}."
    return Chart(name, figure, caption, data), found


def figure_5(study: Study) -> list[Part]:
    """Shares of jobs by what adjustment did to them."""
    triple, found = _classes_figure(study, "fig5-triple", "triple", 0.0)
    double, _ = _classes_figure(study, "fig5-double", "double", 0.0)
    claims: list[Claim] = []
    ranges = {str(row["quantity"]): (float(row["low"]), float(row["high"])) for row in study.printed.tables["F5"].rows}
    for log, shares in found.items():
        middle = shares[STATISTICS.index("p90")], shares[STATISTICS.index("p80")]
        for kind in ("OE", "BE"):
            values = [share[kind] for share in middle]
            low, high = ranges[kind]
            claims.append(
                (
                    f"{log}: {kind} at p80 to p90 from {low:g} to {high:g} %",
                    low <= min(values) and max(values) <= high,
                    f"{values[0]:.1f} to {values[1]:.1f} %",
                )
            )
        under = [share["UE"] + share["BE"] for share in shares]
        claims.append(
            (f"{log}: more are under-estimated the lower the percentile", under == sorted(under), ", ".join(f"{v:.0f}" for v in under))
        )
    parts: list[Part] = [triple, *([double] if double.data["log"] else [])]
    return [*parts, Claims(claims), Notes([METHOD, "The shares in print are Intrepid's."])]


def _threshold_figure(study: Study, name: str, key: str) -> list[Part]:
    _, before = _classes_figure(study, f"{name}-plain", key, 0.0)
    chart, after = _classes_figure(study, name, key, THRESHOLD)
    rows: list[list[Entry]] = []
    claims: list[Claim] = []
    low, high = (float(v) for v in list(study.printed.tables["F6"].rows[0].values())[1:])
    for subject in learnable(study):
        if subject.name not in before:
            continue
        falls, lost = [], []
        for k, statistic in enumerate(STATISTICS):
            old, new = before[subject.name][k], after[subject.name][k]
            under = [share["UE"] + share["BE"] for share in (old, new)]
            schemes = [scheme_of(keys_of(subject.workload)[key], statistic, threshold=t) for t in (0.0, THRESHOLD)]
            exact = [mean_accuracy(replay) for replay in replays(study, subject, schemes).values()]
            fall = 100 * (1 - under[1] / under[0]) if under[0] else 0.0
            falls.append(fall)
            lost.append(exact[0] - exact[1])
            rows.append(
                [
                    subject.name,
                    statistic,
                    Value(under[0], digits=1),
                    Value(under[1], digits=1),
                    f"{-fall:+.0f} %",
                    *(Value(v, digits=3) for v in exact),
                ]
            )
        log = subject.name
        claims.append(
            (
                f"{log}: the threshold reduces under-estimates",
                min(falls[1:]) > 0,
                f"by {min(falls):.0f} to {max(falls):.0f} % (P4: {low:g} to {high:g} %)",
            )
        )
        claims.append((f"{log}: and hardly the accuracy", max(lost) < 0.05, f"by at most {max(lost):.3f}"))
        same = all(abs(a["NA"] - b["NA"]) < 1e-9 for a, b in zip(before[log], after[log], strict=True))
        claims.append((f"{log}: as many jobs without adjustment", same, f"{after[log][0]['NA']:.1f} %"))
    columns = ["log", "statistic", "UE and BE (%)", "with threshold", "change", "accuracy", "with threshold"]
    return [chart, Table(name, f"A threshold of {THRESHOLD:g}, {key} key", columns, rows), Claims(claims), Notes([METHOD])]


def figure_6(study: Study) -> list[Part]:
    """The threshold, triple key."""
    return _threshold_figure(study, "fig6", "triple")


def figure_7(study: Study) -> list[Part]:
    """The threshold, double key."""
    return _threshold_figure(study, "fig7", "double")


def _window(window: int | None) -> str:
    return "all" if window is None else f"{window}M"


def _windows_figure(study: Study, name: str, measure: str, label: str) -> tuple[Chart, dict[tuple[str, str], Array]]:
    """One measure over the windows, for each statistic: arrays of shape (statistics, windows) by log and key."""
    subjects = learnable(study)
    found: dict[tuple[str, str], Array] = {}
    for subject in subjects:
        for key, real in keys_of(subject.workload).items():
            if key not in ("triple", "double"):
                continue
            schemes = [[scheme_of(real, s, window) for window in WINDOWS] for s in STATISTICS]
            made = replays(study, subject, [scheme for line in schemes for scheme in line])
            values = [
                [mean_accuracy(made[x]) if measure == "accuracy" else class_shares(made[x])[measure] for x in line] for line in schemes
            ]
            found[subject.name, key] = np.array(values)
    names = list(found)

    def draw(axes: Axes, _row: int, column: int) -> None:
        for k, window in enumerate(WINDOWS):
            marker = (*drawing.MARKERS, "v", "x")[k]
            drawing.line(
                axes, np.arange(len(STATISTICS)), found[names[column]][:, k], k, _window(window), marker=marker, markersize=3, linewidth=1
            )
        axes.set_xticks(np.arange(len(STATISTICS)), STATISTICS, fontsize=7)

    figure = drawing.panels([f"{log}, {key}" for log, key in names], [label], draw)
    data: dict[str, list[object]] = {"log": [], "key": [], "statistic": [], **{_window(w): [] for w in WINDOWS}}
    for (log, key), measured in found.items():
        for statistic, line in zip(STATISTICS, measured, strict=True):
            for column, value in zip(data, (log, key, statistic, *line.tolist()), strict=True):
                data[column].append(value)
    return Chart(name, figure, "By the months of history that count.", data), found


def figure_8(study: Study) -> list[Part]:
    """Accuracy by window."""
    chart, found = _windows_figure(study, "fig8", "accuracy", "mean accuracy")
    claims: list[Claim] = []
    for (log, key), values in found.items():
        if key == "triple":
            gains = values[:, 0] - values[:, -1]
            told = ", ".join(f"{s} {g:+.3f}" for s, g in zip(STATISTICS, gains.tolist(), strict=True))
            claims.append(
                (f"{log}: one month is at least as accurate as all history at max and p95", bool((gains[:2] > -0.001).all()), told)
            )
    return [chart, Claims(claims), Notes([METHOD])]


def figure_9(study: Study) -> list[Part]:
    """Bad estimates by window."""
    chart, found = _windows_figure(study, "fig9", "BE", "BE jobs (%)")
    return [chart, Claims(_fewer(found, "bad estimates")), Notes([METHOD])]


def figure_10(study: Study) -> list[Part]:
    """Under-estimates by window."""
    chart, found = _windows_figure(study, "fig10", "UE", "UE jobs (%)")
    return [chart, Claims(_fewer(found, "under-estimates")), Notes([METHOD, "P4: 10 to 15 % fewer with one month, triple key, under p90."])]


def _fewer(found: Mapping[tuple[str, str], Array], what: str) -> list[Claim]:
    claims: list[Claim] = []
    for (log, key), values in found.items():
        low = values[2:, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            change = 100 * (low[:, 0] / low[:, -1] - 1)
        told = ", ".join(f"{s} {c:+.0f} %" for s, c in zip(STATISTICS[2:], change.tolist(), strict=True))
        claims.append(
            (f"{log}, {key}: fewer {what} with one month than with all history", bool((low[:, 0] < low[:, -1]).mean() > 0.5), told)
        )
    return claims


def _median(printed: object) -> Entry:
    return Value(float(printed), digits=2) if isinstance(printed, int | float) else None


def figure_11(study: Study) -> list[Part]:
    """Distribution of the accuracy before and after adjustment, with the threshold."""
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
        ["P4: Intrepid, triple", str(row["scheme"]), Value(float(row["at60"]), digits=2), _median(row["median"])] for row in printed.rows
    ]
    claims: list[Claim] = []
    for (log, key), by_name in lines.items():
        medians = {name: float(np.median(values)) for name, values in by_name.items()}
        for name, values in by_name.items():
            rows.append([f"{log}, {key}", name, Value(float(np.percentile(values, 60)), digits=2), Value(medians[name], digits=2)])
        if key == "triple":
            gain = 100 * (medians["p85"] / medians["original"] - 1)
            claims.append((f"{log}: p85 raises the median accuracy", gain > 0, f"{gain:+.0f} % (P4: +42 %)"))
    quantiles = list(range(0, 101, 5))
    data: dict[str, list[float]] = {"percent": [float(q) for q in quantiles]}
    for (log, key), by_name in lines.items():
        data |= {f"{log} {key} {name}": np.percentile(values, quantiles).tolist() for name, values in by_name.items()}
    table = Table("fig11", printed.title, ["log", "scheme", "accuracy at 60 % of the jobs", "median accuracy"], rows)
    return [Chart("fig11", figure, f"All history, threshold {THRESHOLD:g}.", data), table, Claims(claims), Notes([METHOD])]


def months_of(subject: Subject) -> list[tuple[str, int, int]]:
    """Name, begin and end (s of the log) of each month: calendar months, or stretches of 30 days where the log has no dates."""
    w = subject.workload
    begin, first, last = subject.unix_start_time, int(w.submit[0]), int(w.submit[-1])
    if begin is None:
        month = 30 * 86_400
        return [(f"month {k + 1}", first + k * month, first + (k + 1) * month) for k in range((last - first) // month + 1)]
    calendar = month_starts(begin + first, begin + last, w.origin.tzinfo())
    ends = [moment - begin for _, _, moment in calendar[1:]]
    return [(f"{year}-{month:02d}", moment - begin, end) for (year, month, moment), end in zip(calendar[:-1], ends, strict=True)]


SCHEMES = ("p95", "p85", "p70")


def simulated_scheme(workload: Workload, statistic: str) -> Tang13:
    """A scheme of P4's simulations: triple key, one month of history."""
    return Tang13(key=keys_of(workload)["triple"], statistic=statistic, window=1)


def figure_13(study: Study) -> list[Part]:
    """Mean accuracy of each month."""
    subjects = learnable(study)
    lines: dict[str, dict[str, Array]] = {}
    claims: list[Claim] = []
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
            claims.append(
                (f"{subject.name}: p70 is the most accurate scheme in most months", best > 0.5, f"{100 * best:.0f} % of {len(masks)}")
            )
            over = float((mine["p85"] > mine["original"]).mean())
            claims.append((f"{subject.name}: p85 beats the users in every month", over == 1, f"{100 * over:.0f} % of {len(masks)}"))

    def draw(axes: Axes, _row: int, column: int) -> None:
        for k, (name, values) in enumerate(lines[subjects[column].name].items()):
            drawing.line(axes, np.arange(1, len(values) + 1), values, k, name, marker=drawing.MARKERS[k], markersize=3)
        axes.set_ylim(0, 1)

    figure = drawing.panels([s.name for s in subjects], ["mean accuracy"], draw, x="month")
    data: dict[str, list[object]] = {"log": [], "month": [], "original": [], **{s: [] for s in SCHEMES}}
    for log, by_name in lines.items():
        for k in range(len(by_name["original"])):
            for column, value in zip(data, (log, k + 1, *(float(v[k]) for v in by_name.values())), strict=True):
                data[column].append(value)
    return [
        Chart("fig13", figure, "Triple key, one month of history; the first month of each log is left out.", data),
        Claims(claims),
        Notes([METHOD]),
    ]


def table_3(study: Study) -> list[Part]:
    """Qualitative: what over- and under-estimates of waiting and running jobs do; see Fig. 12."""
    rows: list[list[Entry]] = [
        ["waiting job", "over-estimate made smaller", "more jobs fit the backfill window; with an order by length, a fairer place", "-"],
        ["waiting job", "under-estimate", "backfilled too", "may hold its processors beyond the reservation it was to respect"],
        ["running job", "over-estimate made smaller", "reservation nearer to the truth", "smaller backfill window"],
        ["running job", "under-estimate", "-", "smaller backfill window, and a reservation that is missed"],
    ]
    head = ["adjusted", "what it becomes", "gain", "loss"]
    return [Table("table3", "What adjustment does in the scheduler, in our words", head, rows, "P4 Table 3 and section 5.1.", words=True)]


ITEMS: Sequence[Item] = (
    Item("P4", "T1", "Table 1: the logs", table_1),
    Item("P4", "T2", "Table 2: how alike similar jobs are", table_2),
    Item("P4", "T3", "Table 3: what adjustment does", table_3, where="no simulation: a summary"),
    Item("P4", "F1", "Fig. 1: how much of their requests jobs use", figure_1),
    Item("P4", "F2", "Fig. 2: the same by quarter", figure_2),
    Item("P4", "F4", "Fig. 4: accuracy by key and percentile", figure_4),
    Item("P4", "F5", "Fig. 5: over- and under-estimates", figure_5),
    Item("P4", "F6", "Fig. 6: a threshold, triple key", figure_6),
    Item("P4", "F7", "Fig. 7: a threshold, double key", figure_7),
    Item("P4", "F8", "Fig. 8: accuracy by window", figure_8),
    Item("P4", "F9", "Fig. 9: bad estimates by window", figure_9),
    Item("P4", "F10", "Fig. 10: under-estimates by window", figure_10),
    Item("P4", "F11", "Fig. 11: the distribution of accuracy", figure_11),
    Item("P4", "F13", "Fig. 13: accuracy by month", figure_13),
)
