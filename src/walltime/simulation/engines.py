"""From a workload and a scheduler to an engine that is ready to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from walltime.auditor.scores import known_to
from walltime.engine.kernel.prediction_memory import Prediction as LoweredPrediction
from walltime.engine.reference.number import Reference
from walltime.errors import PolicyError
from walltime.estimates import effective_times
from walltime.policy import Dialect, Policy
from walltime.predictors import Prediction
from walltime.simulation.prediction import for_kernel, for_reference
from walltime.simulation.specification import Scheduler
from walltime.workload import Workload

if TYPE_CHECKING:
    from walltime.engine.interface.number import Simulation

R = TypeVar("R", bound=Reference)
LATER = ("lookahead", "multiqueue", "relaxed", "selective", "slack")
"""Kinds of passes of the policies of the later literature."""


def needs_reference(policy: Policy, dialect: Dialect, prediction: Prediction | None) -> str:
    """What only the reference engine can do, as the beginning of a sentence; empty if the kernel can do all of it."""
    if policy.passes is None:
        return f"{policy.label} runs"
    if dialect.coincident in ("arrivals-first", "one-by-one"):
        return f"simultaneous events {'one by one' if dialect.coincident == 'one-by-one' else 'with arrivals first'} run"
    if prediction is not None and not prediction.runs_compiled:
        return f"the predictor {prediction.predictor.label} is plain Python and runs"
    return ""


def check_dynamics(policy: Policy) -> None:
    """Raise PolicyError for a policy under which the effects of backfilling are not recorded: they are effects on one head of the queue."""
    if policy.passes is not None and policy.passes.kind in LATER:
        raise PolicyError(
            f"the effects of backfilling are not recorded under {policy.label}, only under fcfs, easy, hybrid and conservative"
        )


def lowered_prediction(workload: Workload, scheduler: Scheduler, overrun: str) -> LoweredPrediction | None:
    """The scheduler's prediction as the compiled engine takes it; None where nothing is predicted."""
    if scheduler.prediction is None:
        return None
    return for_kernel(scheduler.prediction, workload, workload.requested, *effective_times(workload, overrun))


def new_kernel(
    workload: Workload, scheduler: Scheduler, dialect: Dialect, overrun: str, lowered: LoweredPrediction | None, log: bool = False
) -> Simulation:
    """The compiled engine before the first event; `lowered` as `lowered_prediction` gives it, `log`: whether starts are noted."""
    from walltime.engine.interface.number import Simulation

    runtime, believed = effective_times(workload, overrun)
    after, think = workload.dependencies() if workload.feedback else (None, None)
    known = known_to(scheduler.policy, workload, workload.requested)
    columns = (workload.submit, runtime, believed, workload.procs)
    rules = (workload.machine_procs, scheduler.policy, dialect.coincident)
    return Simulation(*columns, *rules, after, think, log, lowered, known, dialect.expiry)


def new_reference(kind: type[R], workload: Workload, scheduler: Scheduler, dialect: Dialect, overrun: str, dynamics: bool = False) -> R:
    """The reference engine, or one derived from it, before the first event."""
    runtime, believed = effective_times(workload, overrun)
    submit, length, planned, procs = (column.tolist() for column in (workload.submit, runtime, believed, workload.procs))
    after, think = (column.tolist() for column in workload.dependencies()) if workload.feedback else (None, None)
    chosen = scheduler.prediction
    predictions = None if chosen is None else for_reference(chosen, workload, workload.requested, runtime, believed)
    known = known_to(scheduler.policy, workload, workload.requested)
    lists = known._replace(columns={name: values.tolist() for name, values in known.columns.items()})
    rules = (workload.machine_procs, scheduler.policy, dialect.coincident, after, think, dynamics, predictions, lists)
    return kind(submit, length, planned, procs, *rules, expiry=dialect.expiry)
