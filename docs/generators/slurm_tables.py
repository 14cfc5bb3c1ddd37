"""The tables and sentences of the page on the comparison with a real Slurm, made from what `validation/real_slurm.py` stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from performance_tables import table

Numbers = dict[str, Any]
FILE = Path(__file__).with_name("slurm.json")


def real_slurm(what: str, file: Path = FILE) -> str:
    """A part of the page as Markdown, such as `waits/whole`, or a note that it was not run."""
    part, name = what.split("/")
    stored: Numbers = json.loads(file.read_text()) if file.exists() else {}
    return PARTS[part](stored[name]) if name in stored else f"*Not run: `{name}` is not among the stored results.*"


def facts(result: Numbers) -> str:
    """How much was run."""
    started = span([100 * part for part in result["backfilled"]])
    return (
        f"{result['repetitions']} repetitions on Slurm {result['version']}, with {result['nodes']} nodes: {result['jobs']} jobs of "
        f"{result['runtime']:.0f} s on average, of which {span(result['queue'])} were waiting on average, and {started} % were started by "
        f"backfill. `SchedulerParameters={result['parameters']}`"
    )


def waits(result: Numbers) -> str:
    """Mean waits by class, real and simulated."""
    ways = [way for way in next(iter(result["classes"].values()))["simulated"] if way != "fcfs"]
    rows = [
        (name, part["jobs"], f"**{mean(part['real']):.1f}**", span(part["real"]), *(f"{mean(part['simulated'][way]):.1f}" for way in ways))
        for name, part in result["classes"].items()
    ]
    return table(("class", "jobs", "real Slurm, s", "its repetitions", *(f"{way}, s" for way in ways)), rows)


def starts(result: Numbers) -> str:
    """How far simulated starts are from real ones."""
    rows = []
    for what, found in result["starts"].items():
        if found:
            near, nearer, median = (mean(values) for values in zip(*found, strict=True))
            rows.append((what, f"{100 * near:.0f} %", f"{100 * nearer:.0f} %", f"{median:.0f} s"))
    return table(("starts of the same job", "within 10 s", "within 60 s", "median difference"), rows)


def mean(values: Sequence[float]) -> float:
    """The mean."""
    return sum(values) / len(values)


def span(values: Sequence[float]) -> str:
    """The smallest and the largest value."""
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low} to {high}"


PARTS = {"facts": facts, "waits": waits, "starts": starts}
