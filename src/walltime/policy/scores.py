"""Queue orders by a weighted score of a job's features: `linear:wait=1.2,area=-0.3` and `power:wait=3,believed=-3,procs=1`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from walltime.errors import PolicyError
from walltime.policy.orders import UserOrder

HOUR = 3600.0


def _linear(wait, believed, procs, of_wait, of_believed, of_procs, of_area, of_log_wait, of_log_believed, of_log_procs, of_log_area):
    """The sum of the features, each times its weight; a feature without a weight costs nothing."""
    score = of_wait * (wait / HOUR) + of_believed * (believed / HOUR) + of_procs * procs
    if of_area != 0.0:
        score += of_area * (float(believed) * float(procs) / HOUR)
    if of_log_wait != 0.0:
        score += of_log_wait * math.log(wait + 1.0)
    if of_log_believed != 0.0:
        score += of_log_believed * math.log(float(believed))
    if of_log_procs != 0.0:
        score += of_log_procs * math.log(float(procs))
    if of_log_area != 0.0:
        score += of_log_area * math.log(float(believed) * float(procs))
    return score


def _power(wait, believed, procs, of_wait, of_believed, of_procs, of_area):
    """The logarithm of the product of the features' powers, which orders jobs as the product does, and cannot overflow."""
    score = 0.0
    if of_wait != 0.0:
        score += of_wait * math.log(wait + 1.0)
    if of_believed != 0.0:
        score += of_believed * math.log(float(believed))
    if of_procs != 0.0:
        score += of_procs * math.log(float(procs))
    if of_area != 0.0:
        score += of_area * math.log(float(believed) * float(procs))
    return score


SCORES: Mapping[str, tuple[Any, tuple[str, ...]]] = {
    "linear": (_linear, ("wait", "believed", "procs", "area", "log-wait", "log-believed", "log-procs", "log-area")),
    "power": (_power, ("wait", "believed", "procs", "area")),
}
"""The kinds of scores: the function, and the features in the order of its weights."""


@dataclass(frozen=True)
class Score(UserOrder):
    """A queue order by a score with these weights (finite numbers, one per feature of its kind); made by `score_order`.

    The weights are data of the compiled function, so other weights compile nothing.
    """

    weights: tuple[float, ...] = ()

    @property
    def features(self) -> dict[str, float]:
        """The features that have a weight."""
        return {name: weight for name, weight in zip(SCORES[self.name][1], self.weights, strict=True) if weight != 0}

    @property
    def label(self) -> str:
        """`linear:wait=1.2,area=-0.3`."""
        return f"{self.name}:" + ",".join(f"{name}={repr(weight).removesuffix('.0')}" for name, weight in self.features.items())

    @property
    def parameters(self) -> tuple[float, ...]:
        """The weights."""
        return self.weights

    def asks(self) -> tuple[str, ...]:
        """What the features are made of."""
        return ("wait", "believed", "procs")

    @property
    def reads_time(self) -> bool:
        """Whether the wait has a weight."""
        return any(name.endswith("wait") for name in self.features)

    def score(self, wait: int, believed: int, procs: int, submit: int, **others: int) -> float:
        """The weighted score, as in compiled code."""
        return float(self.function(wait, believed, procs, *self.weights))


def score_order(kind: str, weights: Mapping[str, float]) -> Score:
    """The order by a `linear` or `power` score with these weights, by feature; features left out have none.

    `linear` adds the weighted features: `wait` and `believed` (the runtime that the scheduler plans with) in hours, `procs`, `area`
    (processor hours), and the natural logarithms `log-wait` (of the wait + 1 s), `log-believed` (s), `log-procs`, `log-area` (processor
    seconds). `power` multiplies powers of the wait + 1 s, `believed`, `procs` and `area`; the weights are the exponents. Raises PolicyError
    for an unknown kind or feature, a weight that is not a finite number, and if no feature has a weight.

    >>> score_order("power", {"wait": 3, "believed": -3, "procs": 1}).label
    'power:wait=3,believed=-3,procs=1'
    """
    if kind not in SCORES:
        raise PolicyError(f"unknown kind of score {kind!r}; known are {', '.join(SCORES)}")
    function, features = SCORES[kind]
    unknown = [name for name in weights if name not in features]
    if unknown:
        raise PolicyError(f"{unknown[0]!r} is no feature of the order {kind}; its features are {', '.join(features)}")
    values = tuple(float(weights.get(name, 0.0)) + 0.0 for name in features)
    if not all(map(math.isfinite, values)):
        raise PolicyError(f"the weights of the order {kind} must be finite numbers")
    if not any(values):
        raise PolicyError(f"the order {kind} needs a weight that is not 0, such as {kind}:wait=1; its features are {', '.join(features)}")
    return Score(kind, function, values)


def parse_score(text: str) -> Score:
    """The order with this specification, such as `linear:wait=1.2,area=-0.3`; raises PolicyError as `score_order` does.

    >>> parse_score("linear:wait=1.2,area=-0.3").features
    {'wait': 1.2, 'area': -0.3}
    """
    kind, _, options = text.strip().lower().partition(":")
    weights: dict[str, float] = {}
    for option in filter(None, (part.strip() for part in options.split(","))):
        name, _, value = (part.strip() for part in option.partition("="))
        if name in weights:
            raise PolicyError(f"{name} of the order {text!r} is said twice")
        try:
            weights[name] = float(value)
        except ValueError:
            raise PolicyError(f"{name} of the order {text!r} must be a number, as in wait=1.2, not {value!r}") from None
    return score_order(kind, weights)
