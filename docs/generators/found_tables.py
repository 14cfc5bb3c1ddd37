"""The tables and the figure of the page on the order that was found, from what `validation/order_search.py` stored."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from performance_tables import table

from walltime.report.figure_files import figure_bytes
from walltime.report.figures import COLOURS, style

FILE = Path(__file__).with_name("search.json")
PICTURE = "found-order.svg"
SHOWN = 8
BESIDE = (
    "easy:backfill-order=lxf,predictor=tsafrir07,predictions-for=100",
    "easy:order=lxf:max-wait-share=0.4",
    "easy:order=saf:max-wait-share=0.4",
    "easy:backfill-order=lxf",
    "easy:order=f3",
)
"""The schedulers that are shown on each generated log."""
BESIDE_THIRD = (
    "easy:predictor=quantile:percent=100",
    "easy:backfill-order=sjf,predictor=tsafrir07",
    "easy:order=f2:max-wait-share=0.4",
    "easy:backfill-order=lxf",
    "easy:order=f3",
)
"""Those that are shown on each log of the third judgement."""


OBJECTIVES = ("bounded slowdown", "wait weighted by area", "99th percentile of waits", "longest wait", "mean of the longest 0.1 %")
"""The objectives of the search, as heads of tables."""
ORIGINS = {"limited": "named, with a limit on waiting", "predicted": "named, with predictions", "front": "found"}
"""The origins of schedulers, where their code is not clear."""


def named(row: dict[str, Any]) -> str:
    """The scheduler of a row, as short as tables have it."""
    return f"`{row['scheduler']}`"


def stored(file: Path = FILE) -> dict[str, Any]:
    """Return the stored results, or an empty dictionary."""
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found


def found_order(what: str, file: Path = FILE) -> str:
    """A part of the page as Markdown, such as `final` or `ablation`, or a note that it was not run."""
    try:
        return PARTS[what](stored(file))
    except KeyError as missing:
        if what not in PARTS or missing.args[0] in stored(file):
            raise
        return f"*Not run: there are no stored results for `{what}`.*"


def pictures(file: Path = FILE) -> dict[str, bytes]:
    """The figure, by the name of its file; none if nothing was stored."""
    kept = stored(file)
    if not kept:
        return {}
    with style():
        return {PICTURE: figure_bytes(front(kept), "svg")}


def front(kept: dict[str, Any]) -> Figure:
    """Mean bounded slowdown against longest wait on the later jobs of the logs of the search."""
    search = kept["search"]
    figure = Figure(figsize=(6.4, 4.2))
    axes = figure.subplots()
    named = [one for one in search["named"] if one["choosing"][3] < 4]
    plain = [one for one in named if "limit=" not in one["scheduler"]]
    limited = [one for one in named if "limit=" in one["scheduler"]]
    for k, (points, label, mark) in enumerate(
        ((search["front"], "found by the search", "o"), (plain, "named", "s"), (limited, "named, with a limit", "^"))
    ):
        axes.plot(
            [one["choosing"][3] for one in points], [one["choosing"][0] for one in points], mark, color=COLOURS[k], label=label, alpha=0.8
        )
    chosen = next(one for one in search["step"] if one["scheduler"] == search["scheduler"])
    axes.plot(chosen["choosing"][3], chosen["choosing"][0], "*", color="black", markersize=13, label="chosen")
    axes.axvline(1.0, color="grey", linewidth=0.8)
    axes.set_ylim(0.5, 1.1)  # orders that are worse than EASY are left out
    axes.set_xscale("log")
    ticks = [0.8, 1, 1.25, 1.5, 2, 3, 4]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("longest wait / EASY's")
    axes.set_ylabel("mean bounded slowdown / EASY's")
    axes.legend()
    return figure


def picture(kept: dict[str, Any]) -> str:
    """The figure as Markdown."""
    return f"![Mean bounded slowdown against longest wait: the front of the search, and the orders that have a name]({PICTURE})"


def chosen(kept: dict[str, Any]) -> str:
    """The scheduler that was chosen, as code."""
    return f"```text\n{kept['search']['scheduler']}\n```"


def steps(kept: dict[str, Any]) -> str:
    """The steps of the search."""
    head = ("step", "scheduler", "training: slowdown", "longest wait", "later jobs: slowdown", "longest wait")
    rows = [
        (k, f"`{one['scheduler']}`", *(f"{one[part][place]:.2f}" for part in ("training", "choosing") for place in (0, 3)))
        for k, one in enumerate(kept["search"]["step"])
    ]
    return table(head, rows)


def final(kept: dict[str, Any]) -> str:
    """The found order and the others on the final logs."""
    return _final(kept["final"], _rows_of(kept["final"]))


def fresh(kept: dict[str, Any]) -> str:
    """Return the orders on unseen generated logs."""
    return judged(kept["fresh"])


def second(kept: dict[str, Any]) -> str:
    """Orders on the generated logs of the second judgement."""
    return judged(kept["second"])


def third(kept: dict[str, Any]) -> str:
    """Orders on the generated logs of the third judgement."""
    return judged(kept["third"])


def longer(kept: dict[str, Any]) -> str:
    """The steps of the longer search for a formula."""
    head = ("scheduler", "training: slowdown", "longest wait", "later jobs: slowdown", "longest wait")
    rows = [
        (named(one), *(f"{one[part][place]:.2f}" for part in ("training", "choosing") for place in (0, 3)))
        for one in kept["longer"]["step"]
    ]
    return table(head, rows)


def _rows_of(one: dict[str, Any], most: int = SHOWN) -> list[dict[str, Any]]:
    rows = [row for row in one["rows"] if row["kind"] in ("found", "front")]
    for kind in ("named", "limited", "predicted"):
        rows += sorted((row for row in one["rows"] if row["kind"] == kind), key=lambda row: row["overall"][0])[:most]
    return rows


def everywhere(kept: dict[str, Any]) -> str:
    """Orders by all logs: mean bounded slowdown with its interval, and longest wait."""
    one = kept["everywhere"]
    rows = []
    for number, row in enumerate(one["rows"]):
        cells = [
            f"{log['mean'][0]:.2f} ({log['mean'][0] * math.exp(-log['half'][0]):.2f} to {log['mean'][0] * math.exp(log['half'][0]):.2f}) / "
            f"{log['mean'][3]:.2f}"
            for log in row["logs"]
        ]
        means = [math.exp(sum(math.log(log["mean"][place]) for log in row["logs"]) / len(cells)) for place in (0, 3)]
        rows.append((named(row), "found" if 1 <= number <= one["found"] else "", f"{means[0]:.2f} / {means[1]:.2f}", *cells))
    return table(("scheduler", "origin", "all logs", *one["logs"]), rows)


def everywhere_rest(kept: dict[str, Any]) -> str:
    """The other objectives of the same: geometric means over the logs, and how many jobs are late against their fair starts."""
    one = kept["everywhere"]
    rows = []
    for row in one["rows"]:
        means = [math.exp(sum(math.log(log["mean"][k]) for log in row["logs"]) / len(row["logs"])) for k in (1, 2, 3, 4)]
        late = [log["late"] for log in row["logs"] if "late" in log]
        rows.append((named(row), *(f"{mean:.2f}" for mean in means), f"{sum(late) / len(late):.0f} %"))
    return table(("scheduler", "wait by area", "99th percentile", "longest wait", "longest 0.1 %", "jobs late"), rows)


def judged(one: dict[str, Any]) -> str:
    """Orders on generated logs."""
    rows = [row for row in one["rows"] if row["kind"] in ("found", "front")]
    for kind, shown in (("named", 2 * SHOWN), ("limited", SHOWN), ("predicted", SHOWN)):
        rows += sorted((row for row in one["rows"] if row["kind"] == kind), key=lambda row: row["overall"][0])[:shown]
    cells = [(named(row), ORIGINS.get(row["kind"], row["kind"]), *(f"{value:.2f}" for value in row["overall"])) for row in rows]
    return table(("scheduler", "origin", *OBJECTIVES), cells)


def fresh_logs(kept: dict[str, Any], part: str = "fresh", beside: Sequence[str] = BESIDE) -> str:
    """Return the judged order and the best others on each generated log."""
    found = next(row for row in kept[part]["rows"] if row["kind"] == "found")
    shown = [found, *(row for row in kept[part]["rows"] if row["scheduler"] in beside and row["kind"] not in ("exact", "knows"))]
    rows = [(name, *(f"{row['logs'][k][0]:.2f} / {row['logs'][k][3]:.2f}" for row in shown)) for k, name in enumerate(kept[part]["logs"])]
    return table(("log", *(f"`{row['scheduler'].removeprefix('easy:')}`" for row in shown)), rows)


def fresh_against(kept: dict[str, Any]) -> str:
    """The order against EASY and the best others on these logs."""
    return against(kept, "fresh")


def second_against(kept: dict[str, Any]) -> str:
    """The order of the second judgement against EASY and the best others."""
    return against(kept, "second")


def third_against(kept: dict[str, Any]) -> str:
    """The order of the third judgement against EASY and the best others, and its longest wait."""
    one = kept["third"]["longest"]
    by = f"{one['mean']:+.0f} % ({one['low']:+.0f} to {one['high']:+.0f} %)"
    return f"{against(kept, 'third')}\n\nIts longest wait differs from EASY's by {by}."


def third_logs(kept: dict[str, Any]) -> str:
    """The order of the third judgement on each log."""
    return fresh_logs(kept, "third", BESIDE_THIRD)


def exact(kept: dict[str, Any]) -> str:
    """The same with exact estimates, over EASY with exact estimates."""
    rows = sorted((row for row in kept["final"]["rows"] if row["kind"] == "exact"), key=lambda row: row["overall"][0])[:SHOWN]
    return _final(kept["final"], rows)


def knows(kept: dict[str, Any]) -> str:
    """With exact estimates, over EASY with users' estimates."""
    rows = sorted((row for row in kept["final"]["rows"] if row["kind"] == "knows"), key=lambda row: row["overall"][0])[:SHOWN]
    return _final(kept["final"], rows)


def _final(final: dict[str, Any], rows: Sequence[dict[str, Any]]) -> str:
    head = ("scheduler", "origin", "slowdown", "wait by area", "99th percentile", "longest wait", "longest 0.1 %", *final["logs"])
    cells = [
        (
            named(row),
            row["kind"],
            *(f"{value:.2f}" for value in row["overall"]),
            *("-" if one[0] is None else f"{one[0]:.2f} / {one[3]:.2f}" for one in row["logs"]),
        )
        for row in rows
    ]
    return table(head, cells)


def against(kept: dict[str, Any], part: str = "final") -> str:
    """The found order against EASY and the best others."""
    rows = [
        (f"`{label}`", f"{one['mean']:+.0f} %", f"{one['low']:+.0f} to {one['high']:+.0f} %")
        for label, one in kept[part]["against"].items()
    ]
    return table(("compared with", "mean bounded slowdown", "90 % interval over the logs"), rows)


def ablation(kept: dict[str, Any], part: str = "ablation") -> str:
    """Return the table of the order without each of its parts, by log."""
    found = kept[part]
    rows = []
    for row in found["rows"]:
        cells = (f"{a:.2f} / {b:.2f}" for a, b in zip(row["slowdown"], row["longest"], strict=True))
        rows.append((row["without"] or "nothing", *cells))
    return table(("left out", *found["logs"]), rows)


def apart(kept: dict[str, Any]) -> str:
    """Return the table of the judged plan without each of its parts."""
    return ablation(kept, "apart")


def losers(kept: dict[str, Any]) -> str:
    """Mean waits and bounded slowdowns by size and length under EASY and under the order."""
    return _losers(kept["losers"])


def apart_losers(kept: dict[str, Any]) -> str:
    """The same for the order of the third judgement."""
    return _losers(kept["apart"]["losers"])


def _losers(logs: Sequence[dict[str, Any]]) -> str:
    rows = []
    for log in logs:
        for row in log["rows"]:
            waits = f"{row['easy'][0] / 3600:.1f} h -> {row['found'][0] / 3600:.1f} h"
            slowdowns = f"{row['easy'][1]:.1f} -> {row['found'][1]:.1f}"
            above = "" if row["high"] > 10**8 else f"{row['high']:g}"
            rows.append((log["log"], row["kind"], f"{row['low']:g} to {above}", f"{row['jobs']:,}", waits, slowdowns))
    return table(("log", "property", "range", "jobs", "mean wait: EASY -> found", "mean bounded slowdown: EASY -> found"), rows)


def apart_users(kept: dict[str, Any]) -> str:
    """How many users wait longer under the order of the third judgement."""
    return _users(kept["apart"]["losers"])


def fair(kept: dict[str, Any]) -> str:
    """Return the share of jobs that start later than their fair start, by scheduler and log."""
    one = kept["fair"]
    rows = [
        (named(row), *(f"{late:.0f} % / {mean / 60:.0f} min" for late, mean in zip(row["late"], row["mean"], strict=True)))
        for row in one["rows"]
    ]
    return table(("scheduler", *one["logs"]), rows)


def users(kept: dict[str, Any]) -> str:
    """How many users wait longer."""
    return _users(kept["losers"])


def _users(logs: Sequence[dict[str, Any]]) -> str:
    rows = [(log["log"], log["users"][0], log["users"][1]) for log in logs if log["users"]]
    return table(("log", "users with 20 jobs or more", "whose mean wait is over 10 % and 1 min longer"), rows)


PARTS = {
    "picture": picture,
    "chosen": chosen,
    "steps": steps,
    "final": final,
    "exact": exact,
    "knows": knows,
    "against": against,
    "fresh": fresh,
    "fresh-logs": fresh_logs,
    "fresh-against": fresh_against,
    "second": second,
    "second-against": second_against,
    "third": third,
    "third-against": third_against,
    "third-logs": third_logs,
    "apart": apart,
    "apart-losers": apart_losers,
    "apart-users": apart_users,
    "fair": fair,
    "longer": longer,
    "longer-real": lambda kept: against(kept, "longer-real"),
    "longer-generated": lambda kept: against(kept, "longer-generated"),
    "everywhere": everywhere,
    "everywhere-rest": everywhere_rest,
    "ablation": ablation,
    "losers": losers,
    "users": users,
}
