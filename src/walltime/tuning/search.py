"""The search for weights: CMA-ES (the package `cma`), or random draws, in coordinates in which all features vary alike."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from walltime.errors import PolicyError
from walltime.policy.formulas import WeightedOrder, score_order

Array = np.ndarray
OPTIMISERS = ("cma", "random")
DIGITS = 3
"""Significant digits of a weight: a label is what was measured."""


def make_order(point: Array, kind: str, features: Sequence[str], scales: Array) -> WeightedOrder:
    """The order at a point: its coordinates (float64, one per feature) over the features' scales, the largest weight as 1.

    Scores are the same order whatever they are multiplied with, so only the direction of a point matters. At 0 it is the first feature's.
    """
    weights = np.asarray(point, np.float64) / scales
    largest = float(np.abs(weights).max())
    if not largest > 0:
        weights, largest = np.eye(len(features))[0], 1.0
    rounded = {name: float(f"{weight / largest:.{DIGITS}g}") for name, weight in zip(features, weights, strict=True)}
    return score_order(kind, rounded)


def search(
    evaluate: Callable[[list[Array]], list[float]], dimensions: int, budget: int, optimiser: str = "cma", seed: int = 0
) -> tuple[Array, float]:
    """The best point found with `budget` evaluations or the few more that fill a generation, and its value; less is better.

    `evaluate` gives the values of several points. The same seed asks for the same points as long as the values are the same.
    """
    random = np.random.Generator(np.random.Philox(seed))
    best: tuple[Array, float] = np.zeros(dimensions), np.inf
    asked = 0
    generation: Any = None
    while asked < budget:
        if optimiser == "cma":
            if generation is None or generation.stop():
                generation = _evolution(dimensions, random)
            points = [np.asarray(point) for point in generation.ask()]
        else:
            points = list(random.standard_normal((min(_population(dimensions), budget - asked), dimensions)))
        values = evaluate(points)
        if generation is not None:
            generation.tell(points, values)
        asked += len(points)
        lowest = int(np.argmin(values))
        if values[lowest] < best[1]:
            best = points[lowest], values[lowest]
    return best


def check_optimiser(name: str) -> None:
    """Raise PolicyError for an unknown optimiser, or one whose package is missing."""
    if name not in OPTIMISERS:
        raise PolicyError(f"unknown optimiser {name!r}; known are {', '.join(OPTIMISERS)}", "unknown_optimiser")
    if name == "cma":
        _package()


def _package() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import cma
    except ImportError:
        raise PolicyError("the optimiser cma needs the package cma (pip install walltime[tune]); or take random") from None
    return cma


def _population(dimensions: int) -> int:
    """How many points there are in a generation."""
    return 4 + int(3 * np.log(max(dimensions, 2)))


def _evolution(dimensions: int, random: np.random.Generator) -> Any:
    """CMA-ES from the origin with steps of 1, an object of the package `cma` to ask for points and to tell their values."""
    options = {"popsize": _population(dimensions), "verbose": -9, "seed": np.nan, "randn": lambda *shape: random.standard_normal(shape)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _package().CMAEvolutionStrategy(np.zeros(dimensions), 1.0, options)
