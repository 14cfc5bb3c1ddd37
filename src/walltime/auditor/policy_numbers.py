"""A policy and the readings of a dialect as the numbers that a run along a schedule takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from walltime.auditor.passes import state as s
from walltime.auditor.passes.events import PASSES
from walltime.auditor.passes.together import BY_PLAN, OBJECTIVES
from walltime.policy import FCFS, Dialect, Order, PassSpec, Policy, Wfp
from walltime.policy.orders import ScoredOrder
from walltime.predictors import Prediction

COINCIDENT = {"batch": s.BATCH, "sequential": s.SEQUENTIAL, "arrivals-first": s.ARRIVALS_FIRST, "one-by-one": s.ONE_BY_ONE}
COMPRESSION = {"once": 0, "fixpoint": 1, "always": 2}
EXTRA = {"all": s.ALL, "literal": s.LITERAL, "none": s.NONE}
SHADOW = {"afresh": s.AFRESH, "kept": s.UNTIL_END, "once": s.ONCE}
BY_DISTANCE = {"prediction": s.BY_PREDICTION, "elapsed": s.BY_ELAPSED}
OTHER = {"none": s.NOT_CORRECTED, "estimate": s.TO_ESTIMATE, "double": s.DOUBLED, "half": s.HALVED, "soft": s.EXTENDED}


def lowered(
    policy: Policy, dialect: Dialect, prediction: Prediction | None, procs: int, all_reserved: bool, histories: bool = False
) -> s.Records | None:
    """The rules of a policy; None for one whose passes are not known here, as of a user's own, or, without `histories`, its history."""
    own = _kind(policy.passes)
    if own is None or (any(order.history_of for order in orders_of(policy)) and not histories):
        return None
    rules = np.zeros(1, s.RULES).view(np.recarray)[0]
    ordered = orders_of(policy)
    common: dict[str, Any] = {
        "procs": procs,
        "near": policy.order.threshold if isinstance(policy.order, Wfp) else 0.0,
        "coincident": COINCIDENT[dialect.coincident],
        "silent": dialect.expiry == "silent",
        "dynamic": any(map(changes, ordered)) or (prediction is not None and prediction.predictor.again),
        "all_reserved": all_reserved,
    }
    if prediction is not None:
        common |= _correction(prediction)
        common["fitting"] = not policy.passes.every_arrival
    powers = [None if prediction is not None else _power(order) for order in ordered]
    common["power"], common["back_power"] = (power or 0 for power in powers)
    common["asks"] = prediction is not None or any(changes(order) for order, power in zip(ordered, powers, strict=True) if power is None)
    for name, value in (common | own).items():
        rules[name] = value
    return rules


def _power(order: Order) -> int | None:
    """The exponent of an order that compiled code scores; None for another one."""
    return order.exponent if isinstance(order, Wfp) and order.bounds == (None, None) else None


def _kind(passes: PassSpec) -> dict[str, Any] | None:
    """What a policy's passes decide on, and their own numbers."""
    if passes.kind not in PASSES:
        return None
    return {
        "kind": list(PASSES).index(passes.kind),
        "plans": passes.kind in BY_PLAN,
        "keeps": passes.kind == "kept",
        "backfills": passes.backfills,
        "depth": s.NEVER if passes.depth is None else passes.depth,
        "window": passes.window,
        "committed": passes.committed,
        "plain_heads": not passes.window and not passes.committed,
        "extra": EXTRA[passes.extra],
        "shadow": SHADOW[passes.shadow],
        "before": passes.ends == "before",
        "heads_run": passes.head_runtime_factor,
        "compression": COMPRESSION[passes.compression],
        "ahead": passes.ahead,
        "objective": OBJECTIVES[passes.objective],
        "omega": passes.omega,
        "factor": passes.factor,
        "threshold_of_all": passes.adapts,
        "recent": passes.recent,
    }


def _correction(prediction: Prediction) -> dict[str, Any]:
    correction = prediction.correction
    kind = BY_DISTANCE[correction.relative] if correction.kind == "tsafrir07" else OTHER[correction.kind]
    return {"correction": kind if prediction.believe.running else s.NOT_CORRECTED, "capped": correction.capped}


def orders_of(policy: Policy) -> tuple[Order, Order]:
    """The queue order, and the backfill order."""
    return policy.order, getattr(policy, "backfill_order", None) or policy.order


def changes(order: Order) -> bool:
    """Whether the scores of an order change while jobs wait."""
    return order != FCFS and (order.bounds != (None, None) or (isinstance(order, ScoredOrder) and order.reads_time))
