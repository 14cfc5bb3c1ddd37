"""A policy and a dialect encoded as the numbers that compiled passes read."""

from __future__ import annotations

from typing import Any

import numpy as np

from walltime.auditor.passes import state as s
from walltime.auditor.passes.events import PASSES
from walltime.auditor.passes.together import BY_PLAN, OBJECTIVES
from walltime.policy import FCFS, Dialect, Order, Policy, Wfp
from walltime.policy.orders import ScoredOrder
from walltime.predictors import Prediction

COINCIDENT = {"batch": s.BATCH, "sequential": s.SEQUENTIAL, "arrivals-first": s.ARRIVALS_FIRST, "one-by-one": s.ONE_BY_ONE}
COMPRESSION = {"once": 0, "fixpoint": 1, "always": 2}
EXTRA = {"all": s.ALL, "literal": s.LITERAL, "none": s.NONE}
SHADOW = {"afresh": s.AFRESH, "kept": s.UNTIL_END, "once": s.ONCE}
INCREMENTS = {"prediction": s.BY_PREDICTION, "elapsed": s.BY_ELAPSED}
CORRECTIONS = {"none": s.NOT_CORRECTED, "estimate": s.TO_ESTIMATE, "double": s.DOUBLED, "half": s.HALVED, "soft": s.EXTENDED}


def encode_policy(
    policy: Policy, dialect: Dialect, prediction: Prediction | None, procs: int, all_reserved: bool, histories: bool = False
) -> s.Records | None:
    """Return the rules of a policy as one record.

    None for a policy without a pass here, such as a user's own, and, without `histories`, for orders that read their log's history.
    """
    passes, orders = policy.passes, orders_of(policy)
    if passes.kind not in PASSES or (any(order.history_of for order in orders) and not histories):
        return None
    wfp_powers = [order.exponent if isinstance(order, Wfp) and order.bounds == (None, None) else None for order in orders]
    powers = [None if prediction is not None else power for power in wfp_powers]
    values: dict[str, Any] = {
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
        "head_runtime_factor": passes.head_runtime_factor,
        "compression": COMPRESSION[passes.compression],
        "ahead": passes.ahead,
        "objective": OBJECTIVES[passes.objective],
        "omega": passes.omega,
        "factor": passes.factor,
        "threshold_of_all": passes.adapts,
        "recent": passes.recent,
        "procs": procs,
        "near": policy.order.threshold if isinstance(policy.order, Wfp) else 0.0,
        "coincident": COINCIDENT[dialect.coincident],
        "silent": dialect.expiry == "silent",
        "dynamic": any(map(changes, orders)) or (prediction is not None and prediction.predictor.again),
        "all_reserved": all_reserved,
        "power": powers[0] or 0,
        "back_power": powers[1] or 0,
        "asks": prediction is not None or any(changes(order) for order, power in zip(orders, powers, strict=True) if power is None),
    }
    if prediction is not None:
        correction = prediction.correction
        kind = INCREMENTS[correction.relative] if correction.kind == "tsafrir07" else CORRECTIONS[correction.kind]
        values["correction"] = kind if prediction.believe.running else s.NOT_CORRECTED
        values |= {"capped": correction.capped, "fitting": not passes.every_arrival}
    rules = np.zeros(1, s.RULES).view(np.recarray)[0]
    for name, value in values.items():
        rules[name] = value
    return rules


def orders_of(policy: Policy) -> tuple[Order, Order]:
    """Return the queue order and the backfill order."""
    return policy.order, getattr(policy, "backfill_order", None) or policy.order


def changes(order: Order) -> bool:
    """Return whether the scores of an order change while jobs wait."""
    return order != FCFS and (order.bounds != (None, None) or (isinstance(order, ScoredOrder) and order.reads_time))
