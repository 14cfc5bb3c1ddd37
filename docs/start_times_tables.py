"""The table of the guide on start times, made from what `validation/start_times.py` stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from performance_tables import table

FILE = Path(__file__).with_name("start-times.json")
HEAD = ("log", "start predicted", "predictions", "within", "adjusted: within", "median error", "by limits alone", "median width")


def start_times(file: Path = FILE) -> str:
    """The table as Markdown, or a note that it was not measured."""
    stored: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if not stored:
        return "*Not measured.*"
    rows = []
    for log, found in stored.items():
        adjusted = {row["name"]: row["inside"] for row in found["calibrated"]}
        for row in found["raw"]:
            times = (length(row[name]) for name in ("error", "error_limits", "width"))
            within = f"{100 * row['inside']:.0f} %"
            later = f"{100 * adjusted[row['name']]:.0f} %" if row["name"] in adjusted else ""
            rows.append((log, row["name"], f"{row['jobs']:,}", within, later, *times))
    return table(HEAD, rows)


def length(seconds: float) -> str:
    """A time in minutes or hours."""
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
