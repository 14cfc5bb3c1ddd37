"""The table of the guide on start times, made from what `validation/start_times.py` stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from performance_tables import table

FILE = Path(__file__).with_name("start-times.json")
HEAD = (
    *("log", "predicted start in", "predictions", "days", "effective days", "within", "mean of days", "adjusted: within", "mean of days"),
    *("median error", "by limits alone", "median width"),
)


def start_times(file: Path = FILE) -> str:
    """The table as Markdown, or a note that it was not measured."""
    stored: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if not stored:
        return "*Not measured.*"
    rows = []
    for log, found in stored.items():
        adjusted = {row["name"]: row for row in found["calibrated"]}
        for row in found["raw"]:
            times = (length(row[name]) for name in ("error", "error_limits", "width"))
            within = [f"{100 * one[name]:.0f} %" for one in (row, adjusted[row["name"]]) for name in ("inside", "inside_by_day")]
            rows.append((log, row["name"], f"{row['jobs']:,}", row["days"], f"{row['even_days']:.0f}", *within, *times))
    return table(HEAD, rows)


def length(seconds: float) -> str:
    """A time in minutes or hours."""
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
