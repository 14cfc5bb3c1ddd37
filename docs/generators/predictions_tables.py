"""The tables of the page on predictions, from what `walltime benchmark predictions LOG... --json` printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from performance_tables import table

FILE = Path(__file__).with_name("predictions.json")


def judged(what: str, file: Path = FILE) -> str:
    """`log NAME`, `tells` or `tells slurm`: the table as Markdown, or a note that it was not measured."""
    stored: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if not stored:
        return "*Not measured.*"
    return tells(stored, what.removeprefix("tells").strip()) if what.startswith("tells") else of_log(stored, what.removeprefix("log "))


def of_log(stored: dict[str, Any], log: str) -> str:
    """One row for each predictor and buffer, but for the largest."""
    head = ("predictor", "buffer", "accuracy", "underestimated", "killed", "work lost", "EASY", "EASY-SJBF", "conservative", "Slurm")
    rows = [
        (
            f"`{row['predictor']}`",
            f"{row['buffer']:g}",
            f"{row['accuracy']['accuracy']:.2f}",
            f"{row['under_percent']:.0f} %",
            f"{row['killed']:,}",
            f"{row['lost_percent']:.0f} %",
            *map(change, row["gains"]),
        )
        for row in stored["rows"]
        if row["log"].startswith(log) and row["buffer"] < 2
    ]
    return table(head[: len(rows[0])] if rows else head, rows)


def change(gain: dict[str, Any]) -> str:
    """The change of the mean wait with its interval over weeks, or over copies where there is none."""
    ends = (gain["low"], gain["high"]) if gain["low"] is not None else (gain["copies_low"], gain["copies_high"])
    clear = None not in ends and (ends[0] > 0 or ends[1] < 0)
    mark = "**" if clear else ""
    return (
        f"{mark}{gain['mean_wait']:+.1f} %{mark} ({ends[0]:+.0f} to {ends[1]:+.0f})" if None not in ends else f"{gain['mean_wait']:+.1f} %"
    )


def tells(stored: dict[str, Any], of: str = "") -> str:
    """The rank correlation of accuracy and gain by measure, a column for each log, without a buffer.

    `of`: only of this policy; else the mean over all but Slurm, which predicts nothing itself.
    """
    chosen = [one for one in stored["tells"] if one["scheduler"].startswith("slurm") == (of == "slurm")]
    least = min(one["buffer"] for one in chosen)
    logs = list(dict.fromkeys(one["log"] for one in chosen))
    measures = list(dict.fromkeys(one["measure"] for one in chosen))
    rows = []
    for measure in measures:
        values = [
            [one["correlation"] for one in chosen if (one["measure"], one["log"], one["buffer"]) == (measure, log, least)] for log in logs
        ]
        means = [sum(some) / len(some) for some in values]
        rows.append((measure.replace("_", " "), *(f"{value:+.2f}" for value in means), f"{sum(means) / len(means):+.2f}"))
    names = [next(name for name in ("KTH", "SDSC-SP2", "SDSC-BLUE", "CTC", log) if log.startswith(name)) for log in logs]
    return table(("measure", *names, "mean"), rows)
