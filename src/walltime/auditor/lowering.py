"""A policy and the readings of a dialect as the numbers that a run along a schedule takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from walltime.auditor.passes import state as s
from walltime.auditor.passes.together import OBJECTIVES
from walltime.policy import (
    FCFS,
    Conservative,
    Dialect,
    Easy,
    Hybrid,
    Lookahead,
    MultiQueue,
    NoBackfilling,
    Order,
    Policy,
    Relaxed,
    Selective,
    Slack,
    Wfp,
)
from walltime.policy.base import Heading
from walltime.policy.orders import ScoredOrder, has_history
from walltime.predictors import Prediction

__all__ = ["COINCIDENT", "OTHER", "changes", "lowered", "orders_of"]

COINCIDENT = {"batch": s.BATCH, "sequential": s.SEQUENTIAL, "arrivals-first": s.ARRIVALS_FIRST, "one-by-one": s.ONE_BY_ONE}
COMPRESSION = {"once": 0, "fixpoint": 1, "always": 2}
EXTRA = {"all": s.ALL, "literal": s.LITERAL, "none": s.NONE}
SHADOW = {"afresh": s.AFRESH, "kept": s.UNTIL_END, "once": s.ONCE}
BY_DISTANCE = {"prediction": s.BY_PREDICTION, "elapsed": s.BY_ELAPSED}
OTHER = {"none": s.NOT_CORRECTED, "estimate": s.TO_ESTIMATE, "double": s.DOUBLED, "half": s.HALVED, "soft": s.EXTENDED}


def lowered(policy: Policy, dialect: Dialect, prediction: Prediction | None, procs: int, all_reserved: bool) -> s.Records | None:
    """The rules of a policy; None for one whose passes or history are not known here, as of a user's own."""
    own = _kind(policy)
    if own is None or has_history(policy):
        return None
    rules = np.zeros(1, s.RULES).view(np.recarray)[0]
    ordered = orders_of(policy)
    common: dict[str, Any] = {
        "procs": procs,
        "plain_heads": not isinstance(policy, Heading) or policy.reads_as_papers,
        "near": policy.order.threshold if isinstance(policy.order, Wfp) else 0.0,
        "coincident": COINCIDENT[dialect.coincident],
        "silent": dialect.expiry == "silent",
        "dynamic": any(map(changes, ordered)) or (prediction is not None and prediction.predictor.again),
        "all_reserved": all_reserved,
    }
    if isinstance(policy, Heading):
        common |= {"window": policy.window, "committed": policy.decisions == "committed"}
    if prediction is not None:
        common |= _correction(prediction)
        in_order = getattr(policy, "backfill_order", None) in (None, policy.order)
        common["fitting"] = isinstance(policy, Easy) and policy.arrivals == "fitting" and in_order
    common["asks"] = prediction is not None or common["dynamic"]
    for name, value in (common | own).items():
        rules[name] = value
    return rules


def _kind(policy: Policy) -> dict[str, Any] | None:
    """What a policy's passes decide on, and their own numbers."""
    match policy:
        case NoBackfilling():
            return {"kind": s.HEADS}
        case Hybrid(fit="greedy"):
            return {"kind": s.TOGETHER, "depth": policy.depth, **_ahead(policy)}
        case Lookahead():
            return {"kind": s.TOGETHER, "depth": 1, **_ahead(policy)}
        case Easy():
            return {
                "kind": s.EASY,
                "extra": EXTRA[policy.extra],
                "shadow": SHADOW[policy.shadow],
                "before": policy.ends == "before",
            }
        case Hybrid(depth=0):
            return {"kind": s.GREEDY}
        case Hybrid(depth=1):
            return {"kind": s.EASY}
        case Hybrid():
            return {"kind": s.FRESH, "depth": policy.depth}
        case Conservative(variant="scratch"):
            return {"kind": s.FRESH, "depth": s.NEVER}
        case Conservative():
            return {"kind": s.KEPT, "compression": COMPRESSION[policy.compression]}
        case Relaxed():
            return {"kind": s.RELAXED, "omega": policy.omega}
        case Selective(threshold="adaptive"):
            return {"kind": s.SELECTED, "threshold_of_all": True}
        case Selective():
            return {"kind": s.SELECTED, "factor": policy.threshold}
        case MultiQueue():
            return {"kind": s.QUEUES}
        case Slack():
            return {"kind": s.SLACK, "factor": policy.factor, "recent": policy.recent}
    return None


def _ahead(policy: Lookahead | Hybrid) -> dict[str, int]:
    passes = policy.passes
    assert passes is not None
    return {"ahead": passes.ahead, "objective": OBJECTIVES[passes.objective]}


def _correction(prediction: Prediction) -> dict[str, Any]:
    correction = prediction.correction
    kind = BY_DISTANCE[correction.relative] if correction.kind == "tsafrir07" else OTHER[correction.kind]
    return {"correction": kind if prediction.believe.running else s.NOT_CORRECTED, "capped": correction.capped}


def orders_of(policy: Policy) -> tuple[Order, Order]:
    """The queue order, and the backfill order."""
    return policy.order, getattr(policy, "backfill_order", None) or policy.order


def changes(order: Order) -> bool:
    """Whether the scores of an order change while jobs wait."""
    if getattr(order, "starvation", None) is not None or isinstance(order, Wfp):
        return True
    return order != FCFS and isinstance(order, ScoredOrder) and order.reads_time
