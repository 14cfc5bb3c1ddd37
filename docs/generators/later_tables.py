"""The tables and the picture of the page on later policies, from what `validation/later_policies.py` and `benchmarks/later.py` stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from changes_figure import changes_figure
from matplotlib.figure import Figure
from performance_tables import load as load_performance, table

from walltime.metrics import Interval
from walltime.report.figure_files import figure_bytes
from walltime.wording import to_error

Numbers = dict[str, Any]
FILE = Path(__file__).with_name("later-policies.json")
BASELINE = "easy"
PICTURE = "later-policies.svg"
DIGITS = {"mean_bounded_slowdown": 1, "mean_wait": 0}


def later(what: str, file: Path = FILE) -> str:
    """A part of the page as Markdown, such as `logs` or `means/mean_wait`, or a note that it was not run."""
    part, *arguments = what.split("/")
    stored: Numbers = json.loads(file.read_text()) if file.exists() else {}
    return PARTS[part](stored, *arguments) if stored else f"*Not run: there are no stored results for `{what}`.*"


def logs(stored: Numbers) -> str:
    """The logs that were run."""
    rows = [(name, f"{log['jobs']:,}", f"{log['procs']:,}", f"{100 * log['load']:.1f} %") for name, log in stored.items()]
    return table(("log", "jobs", "processors", "offered load"), rows)


def means(stored: Numbers, measure: str) -> str:
    """A measure of every policy on every log: bold where clearly better than EASY, in italics where clearly worse."""
    by_log = {name: {entry["policy"]: entry for entry in log["policies"]} for name, log in stored.items()}
    rows = []
    for label in in_order(stored):
        cells = [_cell(entries.get(label), measure) for entries in by_log.values()]
        rows.append((f"`{label}`", *cells))
    return table(("policy", *(short(name) for name in stored)), rows)


def _cell(entry: Numbers | None, measure: str) -> str:
    if entry is None:
        return ""
    found, digits = entry["means"][measure], DIGITS[measure]
    half = (found["high"] - found["low"]) / 2
    text = " ± ".join(to_error(value, max(half, 10 ** (1 - digits))) for value in (found["mean"], half))
    mark = {"better": "**", "worse": "*"}.get(entry["verdicts"][measure], "") if entry["policy"] != BASELINE else ""
    return f"{mark}{text}{mark}"


def verdicts(stored: Numbers) -> str:
    """On how many logs each policy is better and worse than EASY."""
    rows = []
    for label in in_order(stored):
        if label == BASELINE:
            continue
        entries = [entry for log in stored.values() for entry in log["policies"] if entry["policy"] == label]
        counts = [sum(entry["verdicts"][measure] == verdict for entry in entries) for measure in DIGITS for verdict in ("better", "worse")]
        rows.append((f"`{label}`", *(count or "" for count in counts)))
    return table(("policy", "bounded slowdown: better", "worse", "mean wait: better", "worse"), rows)


def weeks(stored: Numbers) -> str:
    """Return the logs on which the mean over sampled weeks is lower and higher than EASY's; policies without any are omitted."""
    rows = []
    for label in in_order(stored):
        found = {short(log): entry["weeks"] for log, entries in stored.items() for entry in entries["policies"] if entry["policy"] == label}
        cells = []
        for measure in ("mean_wait", "mean_bounded_slowdown"):
            known = {log: own[measure] for log, own in found.items() if "withheld" not in own[measure]}
            cells.append(", ".join(log for log, own in known.items() if own["high"] < 0))
            cells.append(", ".join(log for log, own in known.items() if own["low"] > 0))
        if any(cells):
            rows.append((f"`{label}`", *cells))
    return table(("policy", "mean wait lower on", "higher on", "bounded slowdown lower on", "higher on"), rows)


def picture(stored: Numbers) -> Figure:
    """How the mean bounded slowdown differs from EASY's, a row for each policy, a mark for each log."""
    names = [label for label in in_order(stored) if label not in (BASELINE, "fcfs")]
    series = []
    for name, log in stored.items():
        found = {entry["policy"]: entry["means"]["mean_bounded_slowdown"] for entry in log["policies"]}
        easy = found[BASELINE]["mean"]
        changes = {label: [100 * (found[label][end] / easy - 1) for end in ("mean", "low", "high")] for label in names}
        series.append((short(name), [Interval(*changes[label], "") for label in names]))
    return changes_figure(names, series, "mean bounded slowdown against EASY's", bars=False)


def drawn(file: Path = FILE) -> dict[str, bytes]:
    """Return the figure as SVG by its file name, or nothing without stored results."""
    return {PICTURE: figure_bytes(picture(json.loads(file.read_text())), "svg")} if file.exists() else {}


def classes(stored: Numbers, measure: str, name: str) -> str:
    """How a measure of each class of jobs differs from that under EASY, in percent."""
    log = next((log for full, log in stored.items() if full.startswith(name)), None)
    if log is None:
        return f"*Not run: {name}.*"
    entries = {entry["policy"]: entry["by_class"] for entry in log["policies"]}
    easy = entries[BASELINE]
    rows = []
    for label in in_order(stored):
        if label not in (BASELINE, "fcfs"):
            changes = [100 * (entries[label][kind][measure] / easy[kind][measure] - 1) for kind in log["classes"]]
            rows.append((f"`{label}`", *(f"{change:+.0f} %" for change in changes)))
    unit = " s" if measure == "mean_wait" else ""
    first = ("EASY itself", *(f"{easy[kind][measure]:,.{DIGITS[measure]}f}{unit}" for kind in log["classes"]))
    head = ("policy", *(f"{kind}, {count:,} jobs" for kind, count in log["classes"].items()))
    return table(head, [first, *rows])


def speed(stored: Numbers) -> str:
    """Time of each policy on the KTH log, as a multiple of EASY's."""
    section = load_performance().get("later")
    if section is None:
        return "*Not run: `later` is not among the stored results.*"
    rows = [
        (f"`{label}`", f"{1e3 * found['median']:.0f} ms", f"{found['ratio']:.1f}")
        for label, found in section["result"]["policies"].items()
        if label.partition(":")[0] not in ("fcfs", "conservative", "conservative-scratch")
    ]
    return table(("policy", "median time", "relative to EASY"), rows)


def in_order(stored: Numbers) -> list[str]:
    """The policies, the lowest mean bounded slowdown relative to EASY's first, on average over the logs (geometric mean)."""
    ratios: dict[str, list[float]] = {}
    for log in stored.values():
        found = {entry["policy"]: entry["means"]["mean_bounded_slowdown"]["mean"] for entry in log["policies"]}
        for label, value in found.items():
            ratios.setdefault(label, []).append(value / found[BASELINE])

    def typical(label: str) -> float:
        product = 1.0
        for ratio in ratios[label]:
            product *= ratio
        return product ** (1 / len(ratios[label]))

    return sorted(ratios, key=typical)


def short(name: str) -> str:
    """A log's usual name."""
    return "-".join(name.split("-")[:2])


PARTS = {"logs": logs, "means": means, "verdicts": verdicts, "weeks": weeks, "classes": classes, "speed": speed}
