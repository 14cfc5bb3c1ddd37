"""Variations of a log before a simulation, and what each seed changes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from walltime.errors import PolicyError
from walltime.estimates import EstimateModel
from walltime.logs.cleaning import clean
from walltime.logs.filters import UNITS
from walltime.workload import Workload, scaling


@dataclass(frozen=True)
class Variation:
    """How a log is varied: what is common to all replications, and what each seed changes."""

    load: float | None = None
    scale_by: str = "interarrival"
    remove: Sequence[str] = ()
    head: int | None = None
    tail: int | None = None
    window: str | None = None
    shake: int = 0
    feedback: bool = False

    def apply(self, workload: Workload, seed: int) -> Workload:
        """Everything except shaking and estimates: first filters, then the part of the log, then the load."""
        if self.scale_by != "interarrival" and self.load is None:
            raise PolicyError("scale_by says how to reach a load; give both")

        if self.remove:
            workload = clean(workload, self.remove).after
        if self.window is not None:
            workload = scaling.window(workload, *parse_span(self.window))
        if self.head is not None:
            workload = scaling.head(workload, self.head)
        if self.tail is not None:
            workload = scaling.tail(workload, self.tail)
        if self.load is not None:
            workload = scaling.scale_load(workload, self.load, self.scale_by, seed)
        if self.feedback:
            workload = workload.with_feedback()
        return workload

    def replica(self, workload: Workload, model: EstimateModel, seed: int) -> Workload:
        """The workload of one seed: shaken, with estimates drawn."""
        return self.shaken(workload, seed).with_estimates(model, seed)

    def shaken(self, workload: Workload, seed: int) -> Workload:
        """The workload, shaken with this seed."""
        return scaling.shake(workload, self.shake, seed) if self.shake else workload

    def check_replications(self, model: EstimateModel) -> None:
        """Raise PolicyError if all replications would be the same."""
        if not self.shake and not model.random:
            raise PolicyError("replications would all be the same; shake the log (shake=30) or draw estimates (estimates=f:4)")


def parse_seconds(text: str) -> int:
    """Seconds of a time such as 3600, 90m or 1h, at least 1; raises PolicyError.

    >>> parse_seconds("90m")
    5400
    """
    match = re.fullmatch(r"(\d{1,12})([smhdw]?)", text.strip())
    seconds = int(match[1]) * UNITS[match[2]] if match else 0
    if seconds < 1:
        raise PolicyError(f"{text!r} is no length of time; write seconds, or a number with m, h, d or w, such as 1h")
    return seconds


def parse_span(text: str) -> tuple[int, int]:
    """Begin and end in seconds of a span such as 30d:60d; raises PolicyError.

    >>> parse_span("30d:60d")
    (2592000, 5184000)
    """
    match = re.fullmatch(r"(\d+)([smhdw]?):(\d+)([smhdw]?)", text.strip())
    if match is None:
        raise PolicyError(f"the window {text!r} is not of the form BEGIN:END, such as 86400:172800 or 30d:60d")
    return int(match[1]) * UNITS[match[2]], int(match[3]) * UNITS[match[4]]
