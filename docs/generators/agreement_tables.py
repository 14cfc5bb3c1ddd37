"""The tables of agreement with recorded waits, and with planted rules, from the results of programs in validation/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from performance_tables import table

FILE = Path(__file__).with_name("site-agreement.json")
PLANTED = Path(__file__).with_name("planted-rules.json")
"""The agreement on held-out weeks without rules and with inferred ones, as `python validation/planted_rules.py` prints it."""
REASONS = {
    "no_waits": "the log records no waits",
    "too_few_processors": "{misfits:.0%} of the recorded starts need more processors than were free (of {procs:,}), so the log or the "
    "machine's size is incomplete, and `infer` rejects it",
    "no_rule": "the starts follow no rule that `infer` models, so it rejects the log",
}
"""Why a log was not compared, by the code in the results."""


def site_agreement(file: Path = FILE) -> str:
    """Return a row for each log that records waits, and the reasons for leaving out others, as Markdown; a note if there are none."""
    rows: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
    if not rows:
        return "*Not measured.*"
    head = (
        "log",
        "one-step agreement (however late)",
        "proposals that started, %",
        "that started promptly, %",
        "mean wait, h (recorded)",
        "rank correlation (ceiling)",
        "starts within 10 min",
        "eligible times known: agreement, mean wait, rank correlation",
        "calibration error, h; usable?",
    )
    compared = [
        (
            row["log"],
            f"{_change(row, 'one_step', 2)} ({_change(row, 'however_late', 2)})",
            f"{_change(row, 'followed', 0, 0.01)} %",
            f"{_change(row, 'followed_promptly', 0, 0.01)} % within {row['prompt_within']} s",
            f"{_change(row, 'mean_wait', 2, 3600)} ({row['mean_recorded'] / 3600:.2f})",
            f"{_change(row, 'rank_correlation', 2)} ({row['ceiling']['rank_correlation']:.2f})",
            f"{_change(row, 'within_600', 0, 0.01)} %",
            "{one_step:.2f}, {hours:.2f}, {rank_correlation:.2f}".format(
                **row["by_hindsight"], hours=row["by_hindsight"]["mean_wait"] / 3600
            ),
            f"{_change(row, 'threshold', 2, 3600)}; {'yes' if row['after']['trusted_from'] is not None else 'no'}",
        )
        for row in rows
        if "before" in row
    ]
    others: dict[str, list[str]] = {}
    for row in rows:
        if "why_not" in row:
            why = REASONS[row["why_not"]].format_map(row).replace("%", " %")
            others.setdefault(why, []).append(row["log"])
    left_out = "\n".join(f"* {', '.join(names)}: {why}" for why, names in others.items())
    return f"{table(head, compared)}\n\nLogs that were not compared:\n\n{left_out}"


def _change(row: dict[str, Any], name: str, digits: int, unit: float = 1) -> str:
    """Return a number before and after."""
    return " → ".join(f"{row[which][name] / unit:.{digits}f}" for which in ("before", "after"))


def planted_rules(file: Path = PLANTED) -> str:
    """Return a row for each planted rule, as Markdown."""
    rows: list[dict[str, Any]] = json.loads(file.read_text())
    cells = [(row["rule"], row["result"], f"{row['before']:.3f}", f"{row['after']:.3f}") for row in rows]
    return table(("planted rule", "result", "agreement without rules", "with inferred rules"), cells)
