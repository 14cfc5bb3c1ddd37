"""The tables and sentences of the page on validation, generated from the numbers stored by `validation/run.py`.

Each function of `PARTS` takes what one part of it stored and returns Markdown.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from performance_tables import table

from walltime.metrics.confidence import student_t

Numbers = dict[str, Any]
FILE = Path(__file__).with_name("validation.json")
MEASURES = {"mean_response": "mean response, s", "mean_bounded_slowdown": "mean bounded slowdown"}
READINGS = ("sequential", "extend", "continue", "trimmed", "from scratch")


def load(file: Path = FILE) -> Numbers:
    """The stored results by part; empty if nothing has been run."""
    numbers: Numbers = json.loads(file.read_text()) if file.exists() else {}
    return numbers


def validation(what: str, file: Path = FILE) -> str:
    """A part of the page as Markdown, such as `theory` or `agreement/easy`, or a note that it was not run."""
    part, *arguments = what.split("/")
    name, function = PARTS[part]
    stored = load(file)
    if name not in stored:
        return f"*Not run: `{name}` is not among the stored results.*"
    text = function(stored[name]["result"], *arguments)
    return f"*Run with small sizes, to try it out.*\n\n{text}" if stored[name]["quick"] else text


# --------------------------------------------------------------------------------------------------------------- theory


def theory(result: Numbers) -> str:
    """The number of values compared with theory, and their deviations."""
    lines = result["lines"]
    off = [abs(line["deviation"]) for line in lines]
    worst = max(lines, key=lambda line: abs(line["deviation"]))
    passed = sum(line["passed"] for line in lines)
    bonferroni = student_t(1 - 0.05 / (2 * len(lines)), result["seeds"] - 1)
    beyond = [f"{100 * sum(value > limit for value in off) / len(off):.0f} %" for limit in (1, 2, 3)]
    return (
        f"{passed} of {len(lines)} values are within {result['limit']} standard errors of theory, each from {result['seeds']} "
        f"independent replications of {result['jobs']:,} jobs. The deviation exceeds 1, 2 and 3 standard errors for {beyond[0]}, "
        f"{beyond[1]} and {beyond[2]} of the values (expected by chance: 32 %, 5 % and 0.5 %). The largest deviation is "
        f"{worst['queue']} at load {worst['load']}, {worst['what']}: {worst['deviation']:+.1f}. "
        f"Among this many values, a correct engine would exceed {bonferroni:.1f} in at most "
        "5 % of such tables (Bonferroni, Student's t); the limit here is stricter. The seeds are fixed, so a repetition gives the same "
        "numbers."
    )


def waits(result: Numbers, family: str) -> str:
    """Mean waits of a family of queues (by the prefix of their names, shortest first separately), and their other values."""
    rows: dict[tuple[str, float], list[Numbers]] = {}
    for line in result["lines"]:
        if FAMILIES[family](line["queue"]):
            rows.setdefault((line["queue"], line["load"]), []).append(line)
    cells = []
    for (queue, load_), lines in rows.items():
        wait, *others = lines
        half = (wait["high95"] - wait["low95"]) / 2
        beside = ", ".join(f"{line['what'].removeprefix('mean wait, ')} {line['deviation']:+.1f}" for line in others)
        cells.append((queue, load_, number(wait["theory"]), f"{number(wait['ours'])} ± {number(half, 2)}", deviation(wait), beside))
    return table(("queue", "load", "mean wait: theory", "simulated, 95 %", "deviation", "deviations of other values"), cells)


FAMILIES: dict[str, Callable[[str], bool]] = {
    "mmc": lambda queue: queue.startswith("M/M/") and "shortest" not in queue,
    "mg1": lambda queue: queue in ("M/D/1", "M/U/1", "M/H2/1"),
    "mdc": lambda queue: queue.startswith("M/D/") and queue != "M/D/1",
    "shortest": lambda queue: "shortest" in queue,
}


def saturated(result: Numbers) -> str:
    """The utilization of two processors under first come, first served."""
    lines = [line for line in result["lines"] if line["queue"].startswith("saturated")]
    rows = [
        (line["what"], number(line["theory"]), f"{number(line['ours'])} ± {(line['high95'] - line['low95']) / 2:.5f}", deviation(line))
        for line in lines
    ]
    return table(("", "theory", "simulated, 95 %", "deviation"), rows)


def same(result: Numbers) -> str:
    """All policies coincide if all jobs have the same width."""
    found = list(result["same"].values())
    compared = [count for queue in found for count in queue["moved"].values()]
    jobs = sum(queue["jobs"] * len(queue["moved"]) for queue in found)
    names = sorted({name.partition(",")[0] for queue in found for name in queue["moved"]})
    return (
        f"{len(compared)} schedules of {len(found)} queues, {jobs:,} starts in all ({', '.join(f'`{name}`' for name in names)}): "
        f"{sum(compared):,} starts differ from the recursion."
    )


def laws(result: Numbers) -> str:
    """Little's law and the utilization law."""
    found = result["laws"]
    return (
        f"In {found['exact']:,} of {found['runs']:,} runs the integral of the queue length equals the sum of the waits, to the "
        "second. In the measured window, the mean queue length equals arrival rate times mean wait within "
        f"{100 * found['little']:.2g} %, and the utilization equals arrival rate times mean work within "
        f"{100 * found['utilization']:.2g} %; the remainder is due to the edges of the window."
    )


def rounding(result: Numbers) -> str:
    """The effect of whole seconds on the waits."""
    worst = max(abs(row["rounded"] / row["exact"] - 1) for row in result["rounding"])
    largest = max(row["largest"] for row in result["rounding"])
    return (
        f"Rounding to whole seconds changes the mean wait by at most {1e6 * worst:.1f} millionths ({len(result['rounding'])} queues with "
        f"one server, the recursion with and without fractions), and no job's wait by more than {largest:.0f} s."
    )


# ----------------------------------------------------------------------------------------------------------- identities


def identities(result: Numbers) -> str:
    """Each identity, and the number of jobs compared on each log."""
    places = ["random", *result["logs"]]
    rows = [(row["says"], *(_of(row["found"].get(place)) for place in places)) for row in result["identities"].values()]
    broken = sum(finding["broken"] for row in result["identities"].values() for finding in row["found"].values())
    jobs = sum(finding["jobs"] for row in result["identities"].values() for finding in row["found"].values())
    return (
        f"{result['workloads']} random workloads and {len(result['logs'])} logs; {jobs:,} jobs were compared, **{broken}** violate an "
        f"identity. Jobs compared, violations in bold:\n\n{table(('identity', *places), rows)}"
    )


def _of(finding: Numbers | None) -> str:
    if finding is None:
        return ""
    return f"{finding['jobs']:,}" if not finding["broken"] else f"**{finding['broken']:,}** of {finding['jobs']:,}"


def effects(result: Numbers) -> str:
    """The effect of estimates where no identity holds."""
    factors = list(next(iter(result["effects"].values()))["moved"]["easy"]) if result["effects"] else []
    head = ("log", "jobs", *(f"EASY, exact times {factor}" for factor in factors), "FCFS, any factor")
    rows = [
        (
            name,
            f"{result['logs'][name]['jobs']:,}",
            *(f"{count:,}" for count in e["moved"]["easy"].values()),
            sum(e["moved"]["fcfs"].values()),
        )
        for name, e in result["effects"].items()
    ]
    return table(head, rows)


def reasons(result: Numbers) -> str:
    """The conditions under which jobs were backfilled, and the number of wild backfills."""
    ways = ("backfilled on extra processors", "only because they end in time")
    head = ("log", *(f"{estimates}: {way}" for estimates in ("user estimates", "one estimate") for way in ways))
    rows = []
    for name, found in result["effects"].items():
        cells = [
            f"{found['reasons'][which][why]:,}" for which in ("users' estimates", "one estimate for all") for why in ("extra", "length")
        ]
        rows.append((name, *cells, *(f"{found['wild'][which]:,}" for which in ("users' estimates", "perfect estimates"))))
    return table((*head, "wild backfills: user estimates", "wild backfills: perfect estimates"), rows)


# ------------------------------------------------------------------------------------------------------------ agreement


def engines(result: Numbers) -> str:
    """The kernel compared with the reference engine on each log."""
    rows = []
    for name, found in result["engines"].items():
        about = result["logs"][name]
        cells = [_of(found.get(policy)) for policy in ("easy", "conservative")]
        rows.append((name, f"{about['procs']:,}", f"{about['jobs']:,}", f"{about['over']:,}", *cells))
    broken = sum(finding["broken"] for found in result["engines"].values() for finding in found.values())
    head = ("log", "processors", "jobs", "longer than requested", "compared under EASY", "compared under conservative")
    return f"Jobs that the two engines schedule differently: **{broken}**.\n\n{table(head, rows)}"


def agreement(result: Numbers, policy: str) -> str:
    """The effect of interpretations under a policy, in percent."""
    parts = []
    for measure, title in MEASURES.items():
        rows = []
        for name, by_policy in result["readings"].items():
            found = by_policy[policy][measure]
            low, high = found["shaken"]
            cells = [_difference(found[reading]) for reading in READINGS if reading in found]
            rows.append((name, number(found["value"]), f"{low:+.1f} to {high:+.1f}", *cells))
        given = [reading for reading in READINGS if any(reading in p[policy][measure] for p in result["readings"].values())]
        parts.append(table(("log", title, "shaken, %", *(f"{reading}, %" for reading in given)), rows))
    return "\n\n".join(parts)


def _difference(found: Numbers) -> str:
    """The difference over shaken logs with its interval, bold if significant and large enough, and that on the unshaken log."""
    if found["once"] == found["mean"] == found["half_width"] == 0:
        return "0"
    text = f"{found['mean']:+.1f} ± {found['half_width']:.1f}"
    if abs(found["mean"]) > max(found["half_width"], 1.0):
        text = f"**{text}**"
    return f"{text}<br><small>{found['once']:+.1f}</small>"


def number(value: float, digits: int = 4) -> str:
    """A number with `digits` significant digits, without an exponent where that is readable."""
    if value and abs(value) < 1e-3:
        return f"{value:.{digits - 1}g}"
    if abs(value) >= 10**digits:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def deviation(line: Numbers) -> str:
    """Standard errors, bold if over the limit."""
    text = f"{line['deviation']:+.1f}"
    return text if line["passed"] else f"**{text}**"


PARTS: dict[str, tuple[str, Callable[..., str]]] = {
    "theory": ("theory", theory),
    "waits": ("theory", waits),
    "saturated": ("theory", saturated),
    "same": ("theory", same),
    "laws": ("theory", laws),
    "rounding": ("theory", rounding),
    "identities": ("identities", identities),
    "effects": ("identities", effects),
    "reasons": ("identities", reasons),
    "engines": ("agreement", engines),
    "agreement": ("agreement", agreement),
}
