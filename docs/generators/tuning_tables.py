"""The tables of the guide on tuning, made from what `validation/tuning.py` stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from performance_tables import table

from walltime.wording import shown_change

FILE = Path(__file__).with_name("tuning.json")


def tuning(file: Path = FILE) -> str:
    """Return the table as Markdown, one row for each search, or a note that it was not measured."""
    stored: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if not stored:
        return "*Not measured.*"
    head = (
        "log",
        "scheduler",
        "training + test windows",
        "against EASY",
        "against the best named order",
        "longest wait, days: EASY",
        "fitted",
    )
    rows = []
    for log, found in stored.items():
        for one in found["fitted"]:
            simple = f"{change(one['against_simple'])} (`{one['best_simple'].partition(':')[2]}`)"
            longest = [f"{wait / 86_400:.1f}" for wait in one["longest_wait"]]
            label = f"`{one['fitted']['scheduler']}`"
            rows.append((log, label, f"{one['training']} + {one['test']}", change(one["fitted"]["test"]), simple, *longest))
    return table(head, rows)


def change(interval: dict[str, Any]) -> str:
    """A change in percent with its interval."""
    mark = "" if interval["low"] <= 0 <= interval["high"] else "**"
    mean, low, high = (shown_change(interval[end], interval["low"], interval["high"]) for end in ("mean", "low", "high"))
    return f"{mark}{mean}{mark} ({low} to {high})"
