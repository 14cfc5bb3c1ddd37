"""The tables and sentences of the page on the comparison with a real Slurm.

Made from what `validation/real_slurm.py` and, of latencies, `validation/slurm_noise.py` stored.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from performance_tables import table

Numbers = dict[str, Any]
FILE = Path(__file__).with_name("slurm.json")
NOISE = Path(__file__).with_name("slurm-noise.json")


def real_slurm(what: str, file: Path = FILE) -> str:
    """A part of the page as Markdown, such as `waits/whole`, or a note that it was not run."""
    part, name = what.split("/")
    stored: Numbers = json.loads(file.read_text()) if file.exists() else {}
    return PARTS[part](stored[name]) if name in stored else f"*Not run: `{name}` is not among the stored results.*"


def facts(result: Numbers) -> str:
    """How much was run."""
    started = span([100 * part for part in result["backfilled"]])
    return (
        f"Slurm {result['version']} ran {result['jobs']} jobs of {result['runtime']:.0f} s on average {result['repetitions']} times, on "
        f"{result['nodes']} nodes. On average {span(result['queue'])} jobs were waiting, and backfill started {started} % of the jobs. "
        f"`SchedulerParameters={result['parameters']}`"
    )


def waits(result: Numbers) -> str:
    """Mean waits by class, real and simulated."""
    ways = [way for way in next(iter(result["classes"].values()))["simulated"] if way != "fcfs"]
    rows = [
        (name, part["jobs"], f"**{mean(part['real']):.1f}**", span(part["real"]), *(f"{mean(part['simulated'][way]):.1f}" for way in ways))
        for name, part in result["classes"].items()
    ]
    head = ("class of jobs", "jobs", "real Slurm: mean wait, s", "range over real runs, s", *(f"simulated: {way}, s" for way in ways))
    return table(head, rows)


def starts(result: Numbers) -> str:
    """How far simulated starts are from real ones."""
    rows = []
    for what, found in result["starts"].items():
        if found:
            near, nearer, median = (mean(values) for values in zip(*found, strict=True))
            rows.append((what, f"{100 * near:.0f} %", f"{100 * nearer:.0f} %", f"{median:.0f} s"))
    head = ("compared with a real run", "starts within 10 s", "starts within 60 s", "median difference")
    return table(head, rows)


def mean(values: Sequence[float]) -> float:
    """The mean."""
    return sum(values) / len(values)


def span(values: Sequence[float]) -> str:
    """The smallest and the largest value."""
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low} to {high}"


def slurm_noise(what: str, file: Path = NOISE) -> str:
    """`latencies` or `starts` of all scenarios as Markdown, or a note that they were not measured."""
    stored: Numbers = json.loads(file.read_text()) if file.exists() else {}
    if not stored:
        return "*Not measured.*"
    return latencies(stored) if what == "latencies" else noise(stored)


def latencies(stored: Numbers) -> str:
    """Return the durations of passes and launches: medians and 95th percentiles."""
    whats = next(iter(stored.values()))["seconds"]
    rows = []
    for what in whats:
        found = [result["seconds"][what] for result in stored.values()]
        rows.append((what, *(f"{milliseconds(median)} ({milliseconds(high)})" for median, _, high in found)))
    means = (f"{milliseconds(mean)} ({milliseconds(most)})" for mean, most in (result["main"] for result in stored.values()))
    rows.append(("a pass of the main scheduler: mean (longest)", *means))
    return table(("duration in ms: median (95th percentile)", *(f"scenario {name}" for name in stored)), rows)


def milliseconds(seconds: float) -> str:
    """With two digits where it is short."""
    return f"{1000 * seconds:.2g}" if seconds < 0.01 else f"{1000 * seconds:,.0f}"


def noise(stored: Numbers) -> str:
    """How far starts are from each other, and from the simulated ones, in s and relative to two real runs."""
    rows = []
    for name, result in stored.items():
        real = result["apart"]["two real runs"]
        for what, (median, whole) in result["apart"].items():
            units = f"{median / real[0]:.1f}" if real[0] else "", f"{whole / real[1]:.1f}" if real[1] else ""
            rows.append((f"{name}, {result['runs']} runs", what, f"{median:.1f} s", f"{whole:.1f} s", *units))
    heads = ("median difference", "mean difference")
    return table(("scenario", "starts compared", *heads, *(f"{one}, relative to two real runs'" for one in heads)), rows)


PARTS = {"facts": facts, "waits": waits, "starts": starts}
