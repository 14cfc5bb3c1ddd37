"""Variations of a log before a simulation, and what each seed changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from walltime.errors import PolicyError
from walltime.estimates import EstimateModel
from walltime.logs.cleaning import clean
from walltime.logs.filters import parse_span
from walltime.workload import Workload, scaling

__all__ = ["Variation"]


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
