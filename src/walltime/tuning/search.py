"""Tools for fitting and searching orders: optimisers of weights, schedulers with other orders, and stored costs."""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from walltime.errors import OutputError, PolicyError
from walltime.files import json_lines
from walltime.policy import Order, has_option
from walltime.policy.formulas import WeightedOrder, score_order
from walltime.simulation.specification import Scheduler
from walltime.simulation.threads import in_threads

Array = np.ndarray
Optimiser = Literal["cma", "random"]
DIGITS = 3
"""Significant digits of a weight, so that labels are exact."""


def make_order(point: Array, kind: str, features: Sequence[str], scales: Array) -> WeightedOrder:
    """Return the order with the weights `point / scales` (float64, one per feature), scaled so that the largest weight is 1.

    A factor of all weights does not change the order. At the origin, the order is by the first feature alone.
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
    """Return the point with the lowest value, and this value, after `budget` evaluations (rounded up to whole generations).

    `evaluate` returns the values of several points. The same seed and values give the same points.
    """
    random = np.random.Generator(np.random.Philox(seed))
    best: tuple[Array, float] = np.zeros(dimensions), np.inf
    evaluated = 0
    generation: Any = None
    while evaluated < budget:
        if optimiser == "cma":
            if generation is None or generation.stop():
                generation = _evolution(dimensions, random)
            points = [np.asarray(point) for point in generation.ask()]
        else:
            points = list(random.standard_normal((min(_population(dimensions), budget - evaluated), dimensions)))
        values = evaluate(points)
        if generation is not None:
            generation.tell(points, values)
        evaluated += len(points)
        lowest = int(np.argmin(values))
        if values[lowest] < best[1]:
            best = points[lowest], values[lowest]
    return best


def import_cma() -> Any:
    """Return the package cma; raises PolicyError if it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import cma
    except ImportError:
        raise PolicyError("the optimiser cma needs the package cma; run pip install 'walltime[tune]', or use random") from None
    return cma


def _population(dimensions: int) -> int:
    """Return the number of points in a generation, the default of CMA-ES."""
    return 4 + int(3 * np.log(max(dimensions, 2)))


def _evolution(dimensions: int, random: np.random.Generator) -> Any:
    """Return a CMA-ES optimiser of the package `cma`, which starts at the origin with a standard deviation of 1."""
    options = {"popsize": _population(dimensions), "verbose": -9, "seed": np.nan, "randn": lambda *shape: random.standard_normal(shape)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_cma().CMAEvolutionStrategy(np.zeros(dimensions), 1.0, options)


def with_order(base: Scheduler, order: Order, where: str) -> Scheduler:
    """Return the scheduler with another order or backfill-order; raises PolicyError if its policy has no such order."""
    if not has_option(base.policy, where):
        raise PolicyError(f"{base.policy.label} has no {where.replace('-', ' ')} to tune; use easy, for example", "no_backfill_order")
    changes: dict[str, Any] = {where.replace("-", "_"): order}
    return replace(base, policy=replace(base.policy, **changes))


R = TypeVar("R")


def simulate_grid(
    simulate: Callable[[R, Scheduler, Callable[[int], None]], Any],
    schedulers: Sequence[Scheduler],
    runs: Sequence[R],
    workers: int | None,
    progress: Callable[[int], None] | None = None,
) -> Array:
    """Return the values of every scheduler on every run, float64, shape (schedulers, runs, ...).

    `simulate` is called with a run, a scheduler and a function to call regularly; `progress` with the number of finished simulations.
    """

    def one(number: int, check: Callable[[int], None]) -> Any:
        which, place = divmod(number, len(runs))
        return simulate(runs[place], schedulers[which], check)

    values = np.array(in_threads(one, len(schedulers) * len(runs), workers, progress), np.float64)
    return values.reshape(len(schedulers), len(runs), *values.shape[1:])


class CostFolder:
    """Costs by scheduler label, in a folder with `plan.json` (the settings) and `costs.jsonl` (one line per scheduler), or in memory.

    Raises OutputError if the folder contains costs for other settings, or cannot be written.
    """

    def __init__(self, folder: str | Path | None, plan: Mapping[str, Any]):
        self._costs: dict[str, list[float]] = {}
        self._file: Path | None = None
        if folder is None:
            return
        folder = Path(folder)
        text = json.dumps(plan, indent=2, sort_keys=True) + "\n"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            settings, self._file = folder / "plan.json", folder / "costs.jsonl"
            same = not settings.exists() or settings.read_bytes() == text.encode()
            if same:
                settings.write_text(text)
            kept = self._file.read_bytes() if self._file.exists() else b""
        except OSError as error:
            raise OutputError(
                f"{folder}: cannot be used ({(error.strerror or str(error)).lower()}); use another folder", "unusable_folder"
            ) from error
        if not same:
            raise OutputError(f"{folder}: contains results of other settings or another log; use another folder", "other_settings")
        for record in json_lines(kept):
            label, costs = record.get("scheduler"), record.get("costs")
            if isinstance(label, str) and isinstance(costs, list) and all(type(one) in (int, float) for one in costs):
                self._costs[label] = costs
        if kept and not kept.endswith(b"\n"):  # a run was interrupted while writing
            with self._file.open("ab") as file:
                file.write(b"\n")

    def costs(self, schedulers: Sequence[Scheduler], find: Callable[[list[Scheduler]], Array]) -> Array:
        """Return the costs of these schedulers; `find` computes the missing ones, all at once."""
        missing = list({one.label: one for one in schedulers if one.label not in self._costs}.values())
        if missing:
            rows = {one.label: row.tolist() for one, row in zip(missing, find(missing), strict=True)}
            self._costs |= rows
            if self._file is not None:
                with self._file.open("a") as file:
                    file.writelines(json.dumps({"scheduler": label, "costs": costs}) + "\n" for label, costs in rows.items())
        return np.array([self._costs[one.label] for one in schedulers])

    def __len__(self) -> int:
        return len(self._costs)
