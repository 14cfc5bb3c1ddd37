"""Queue orders by short formulas from the literature, or by weighted sums and products of features."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from walltime.declared import DeclaredField, Field
from walltime.errors import PolicyError
from walltime.policy.orders import Name, ScoredOrder, Starvation, WaitShare
from walltime.specification import options_of

ScoreFunction = Callable[..., float]


@dataclass(frozen=True)
class Formula(ScoredOrder):
    """An order of `FORMULAS`, by name.

    `planned` is the planned runtime. UNICEF puts serial jobs first, since their score is infinite. Sources: Lelong, Reis and Trystram 2017
    for `lcfs`, `ljf`, `sqf`, `lqf`, `saf`, `laf` and `lxf`; tang09 for UNICEF, with the guards of carastan17's code.

    >>> Formula("saf").score(wait=0, planned=60, procs=8, submit=0)
    -480.0
    """

    is_monotone = True  # no score falls while a job waits
    starvation: Starvation = None
    max_wait_share: WaitShare = None

    def __post_init__(self) -> None:
        super().__post_init__()
        valid = [name for name, (kind, _) in FORMULAS.items() if kind is type(self)]
        if self.name not in valid:
            raise PolicyError(f"unknown formula {self.name!r}. Valid formulas: {', '.join(valid)}", "unknown_formula")

    @property
    def scoring(self) -> ScoreFunction:
        """Return the formula."""
        return _BY_FORMULA[self.name][0]


@dataclass(frozen=True)
class FittedFormula(Formula):
    """F1 to F4, fitted to simulations of small sets of jobs: the lowest value comes first.

    With r the planned runtime, n the processors and s the seconds since the workload's first submission (0.1 in place of 0), the scores
    are: `log10(r) n + w log10(s)`, `sqrt(r) n + w log10(s)`, `r n + w log10(s)`, and `r sqrt(n) + w log10(s)`.

    Source: carastan17 (Carastan-Santos and de Camargo, SC'17).

    >>> FittedFormula("f3").label, FittedFormula("f1", submit_weight=500.0).label
    ('f3', 'f1:submit-weight=500')
    """

    submit_weight: Annotated[float | None, Field(least=0)] = None
    """weight w of the submission time; by default the published one: 870 for f1, 25,600 for f2, 6.86e6 for f3, 5.30e5 for f4"""

    def __post_init__(self) -> None:
        super().__post_init__()
        weight = self._published if self.submit_weight is None else self.submit_weight
        object.__setattr__(self, "submit_weight", float(weight))

    @property
    def scoring(self) -> ScoreFunction:
        """Return the formula."""
        return _CARASTAN17[self.name]

    @property
    def parameters(self) -> Sequence[float]:
        """Return the weight, an argument of the compiled formula."""
        assert self.submit_weight is not None
        return (self.submit_weight,)

    @property
    def _published(self) -> float:
        return float(inspect.signature(self.scoring).parameters["weight"].default)

    def is_written(self, option: DeclaredField) -> bool:
        """Leave out the published weight."""
        return super().is_written(option) and (option.field != "submit_weight" or self.submit_weight != self._published)


_BY_FORMULA: dict[str, tuple[ScoreFunction, str]] = {
    "lcfs": (lambda submit: submit, "Latest arrival first"),
    "ljf": (lambda planned: planned, "Longest planned runtime first"),
    "sqf": (lambda procs: -procs, "Fewest processors first"),
    "lqf": (lambda procs: procs, "Most processors first"),
    "saf": (lambda planned, procs: -planned * procs, "Smallest area first: planned runtime x processors"),
    "laf": (lambda planned, procs: planned * procs, "Largest area first"),
    "lxf": (lambda wait, planned: (wait + planned) / planned, "Largest expansion factor first: 1 + wait / planned runtime"),
    "unicef": (
        lambda wait, planned, procs: (wait + 1e-20) / (math.log2(procs + 1e-20) * planned),
        "Highest wait / (log2(processors) x planned runtime) first; serial jobs come before all others",
    ),
}
_CARASTAN17: dict[str, ScoreFunction] = {
    "f1": lambda planned, procs, elapsed, weight=870.0: -(math.log10(planned) * procs + weight * math.log10(max(elapsed, 0.1))),
    "f2": lambda planned, procs, elapsed, weight=25_600.0: -(math.sqrt(planned) * procs + weight * math.log10(max(elapsed, 0.1))),
    "f3": lambda planned, procs, elapsed, weight=6.86e6: -(planned * procs + weight * math.log10(max(elapsed, 0.1))),
    "f4": lambda planned, procs, elapsed, weight=5.30e5: -(planned * math.sqrt(procs) + weight * math.log10(max(elapsed, 0.1))),
}
FORMULAS: Mapping[str, tuple[type[Formula], str]] = {name: (Formula, f"{what}.") for name, (_, what) in _BY_FORMULA.items()} | {
    name: (FittedFormula, f"{name.upper()} of carastan17, fitted to simulations of small sets of jobs.") for name in _CARASTAN17
}
"""The orders of this module by name: class and description."""

HOUR = 3600.0


def _weighted_sum(wait, planned, procs, *weights):
    """Return the weighted sum of the features and of their logarithms; logarithms without a weight are not computed."""
    of_wait, of_planned, of_procs, of_area, of_log_wait, of_log_planned, of_log_procs, of_log_area = weights
    score = of_wait * (wait / HOUR) + of_planned * (planned / HOUR) + of_procs * procs
    if of_area != 0.0:
        score += of_area * (float(planned) * float(procs) / HOUR)
    if of_log_wait != 0.0:
        score += of_log_wait * math.log(wait + 1.0)
    if of_log_planned != 0.0:
        score += of_log_planned * math.log(float(planned))
    if of_log_procs != 0.0:
        score += of_log_procs * math.log(float(procs))
    if of_log_area != 0.0:
        score += of_log_area * math.log(float(planned) * float(procs))
    return score


@dataclass(frozen=True)
class WeightedOrder(ScoredOrder):
    """A queue order by a score whose options are the weights of its features.

    The weights are arguments of the compiled function, so new weights need no compilation. Raises PolicyError if no feature has a weight.
    """

    scoring = staticmethod(_weighted_sum)
    arguments = ("wait", "planned", "procs")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any(self.weights):
            names = ", ".join(self.feature_names())
            raise PolicyError(f"it needs a weight other than 0, such as {self.name}:wait=1. Valid features: {names}", "no_features")

    @classmethod
    def feature_names(cls) -> tuple[str, ...]:
        """Return the names of the features, in the order of the function's weights."""
        return tuple(name for name in options_of(cls) if name not in ("starvation", "max-wait-share"))

    @property
    def weights(self) -> tuple[float, ...]:
        """Return the weights, one per feature."""
        return tuple(float(getattr(self, name.replace("-", "_"))) + 0.0 for name in self.feature_names())

    @property
    def features(self) -> dict[str, float]:
        """Return the features with a weight, and their weights."""
        return {name: weight for name, weight in zip(self.feature_names(), self.weights, strict=True) if weight != 0}

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the weights of the four features and of their logarithms."""
        return self.weights

    @property
    def is_monotone(self) -> bool:
        """Return whether no weight of the wait is negative, or so large that rounded logarithms matter."""
        return all(0 <= weight <= 1e6 for name, weight in self.features.items() if name.endswith("wait"))

    @property
    def changes(self) -> bool:
        """Return whether the wait has a weight."""
        return any(name.endswith("wait") for name in self.features)


@dataclass(frozen=True)
class Linear(WeightedOrder):
    """The sum of features, each times its weight."""

    name: Name = "linear"
    wait: float = 0.0
    """weight of the wait, h"""
    planned: Annotated[float, Field(former=("believed",))] = 0.0
    """weight of the planned runtime, h"""
    procs: float = 0.0
    """weight of the processors"""
    area: float = 0.0
    """weight of processors x planned runtime, processor hours"""
    log_wait: float = 0.0
    """weight of the natural logarithm of the wait + 1 s"""
    log_planned: Annotated[float, Field(former=("log-believed",))] = 0.0
    """weight of the logarithm of the planned runtime, s"""
    log_procs: float = 0.0
    """weight of the logarithm of the processors"""
    log_area: float = 0.0
    """weight of the logarithm of the processor seconds"""
    starvation: Starvation = None
    max_wait_share: WaitShare = None


@dataclass(frozen=True)
class Power(WeightedOrder):
    """The product of powers of features; the weights are the exponents."""

    name: Name = "power"
    wait: float = 0.0
    """exponent of the wait + 1 s"""
    planned: Annotated[float, Field(former=("believed",))] = 0.0
    """exponent of the planned runtime"""
    procs: float = 0.0
    """exponent of the processors"""
    area: float = 0.0
    """exponent of processors x planned runtime"""
    starvation: Starvation = None
    max_wait_share: WaitShare = None

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the weights of the logarithms: their sum has the order of the product, without overflow."""
        return (0.0, 0.0, 0.0, 0.0, *self.weights)


SCORES: Mapping[str, type[WeightedOrder]] = {"linear": Linear, "power": Power}
"""The kinds of weighted scores."""


def score_order(kind: str, weights: Mapping[str, float]) -> WeightedOrder:
    """Return the order by a `linear` or `power` score with these weights by feature (see `Linear` and `Power`); others are 0.

    Raises PolicyError for an unknown kind or feature, a weight that is not a finite number, and if all weights are 0.

    >>> score_order("power", {"wait": 3, "planned": -3, "procs": 1}).label
    'power:wait=3,planned=-3,procs=1'
    """
    if kind not in SCORES:
        raise PolicyError(f"unknown kind of score {kind!r}. Valid kinds: {', '.join(SCORES)}")
    features = SCORES[kind].feature_names()
    unknown = [name for name in weights if name not in features]
    if unknown:
        raise PolicyError(f"{unknown[0]!r} is not a feature of the order {kind}. Valid features: {', '.join(features)}", "unknown_feature")
    make: Callable[..., WeightedOrder] = SCORES[kind]
    return make(**{name.replace("-", "_"): float(weight) for name, weight in weights.items()})
