"""The metrics that gaussier15's authors published with their program: one row for each triple."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Mapping
from pathlib import Path

from walltime.papers.gaussier15.triples import MEASURES
from walltime.papers.subjects import PAPER, Subject

NAMES = ("scheduler", "corrector", "predictor", "prightside", "prightparam", "pleftside", "pleftparam", "pthreshold", "pweight")
"""Columns that name a triple; right is a prediction that is too long."""


def published_metrics(subject: Subject) -> dict[tuple[str, ...], Mapping[str, float]]:
    """The published values by triple (`Triple.key`); without those that are missing, or measured on other jobs than the subject's.

    The file is looked for beside the log, and in the folder `WALLTIME_PUBLISHED`, if set, or `sc15` in it. Empty without one.
    """
    file = _find(subject)
    if file is None:
        return {}
    found: dict[tuple[str, ...], Mapping[str, float]] = {}
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["length"] == str(len(subject.workload)):
                values = {name: float(row[name]) for name in MEASURES if row[name] != "NA"}
                if values:
                    found[tuple(row[name] for name in NAMES)] = values
    return found


def _find(subject: Subject) -> Path | None:
    name = subject.facts.get("metrics")
    if name is None or subject.kind != PAPER:
        return None
    folder = os.environ.get("WALLTIME_PUBLISHED")
    places = [subject.file.parent, *([Path(folder), Path(folder) / "sc15"] if folder else [])]
    return next((place / name for place in places if (place / name).is_file()), None)
