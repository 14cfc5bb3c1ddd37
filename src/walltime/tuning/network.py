"""A network that orders the queue: it scores each waiting job by what the best formulas are made of, and learns from whole logs by CMA-ES.

It is written as an expression, so what is learned runs wherever an order does. No gradient is needed: what is minimised is what the search
for formulas minimises, the outcome of a whole log, as in evolution strategies (Salimans, Ho, Chen, Sidor and Sutskever 2017).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from walltime.policy import Easy, Order
from walltime.policy.expressions import Expression
from walltime.simulation.specification import Scheduler
from walltime.tuning.search import evolution
from walltime.tuning.trials import BELIEF, with_predictions

__all__ = ["INPUTS", "MOST_UNITS", "STAGES", "Network", "train_network"]

Array = np.ndarray
INPUTS = (
    ("log(wait+60)", 8.0, 2.5),
    ("log(believed+60)", 8.0, 2.0),
    ("log(procs)", 3.0, 2.0),
    ("wait/(longest+3600)", 0.3, 0.3),
    ("min(queued/machine/(longest+3600),1)", 0.5, 0.4),
    ("(procs>free)", 0.5, 0.5),
)
"""What a network sees of a job, and about its mean and its scatter: weights are of what is shifted and scaled by these."""
START = (2.5, -2.0)
"""The first weights of the first inputs, those of `lxf`, the wait over the runtime; those of the others are 0."""
STAGES = ((0.25, 0.1), (0.5, 0.3), (1.0, 1.0))
"""The curriculum: the share of each log's jobs for training that it learns from, until so much of the budget is used."""
MOST_UNITS = 64
"""A network of more is too long an expression."""
STEP = 0.3
"""Standard deviation of the first changes of a number, and of the logarithm of the limit."""
DIGITS = 4
"""Significant digits of a number: a label is what was simulated."""


@dataclass(frozen=True)
class Network:
    """A score of a job: a weighted sum of its inputs and of rectified units, each the part above 0 of such a sum.

    `numbers`: the weight of each input; then for each unit its weight, its bias and its weights of the inputs. `limit`, `predictor` and
    `believe` are those of `Formula`.
    """

    numbers: tuple[float, ...]
    limit: float = 0.6
    predictor: str = ""
    believe: str = BELIEF
    inputs: tuple[tuple[str, float, float], ...] = INPUTS

    @classmethod
    def of(cls, units: int, seed: int, inputs: tuple[tuple[str, float, float], ...] = INPUTS) -> Network:
        """One to begin with: `lxf`, and units that see inputs at random and whose weight is 0."""
        draw = np.random.Generator(np.random.Philox([seed, units]))
        inside = draw.standard_normal((units, len(inputs) + 1))
        rest = [0.0] * (len(inputs) - len(START))
        return cls((*START, *rest, *np.hstack([np.zeros((units, 1)), inside]).ravel().tolist()), inputs=inputs)

    @property
    def dimensions(self) -> int:
        """How many numbers there are to learn, with the limit."""
        return len(self.numbers) + 1

    @property
    def order(self) -> Order:
        """As a queue order: the inputs as they are, with their shifts in the bias of each unit."""
        names = [name for name, _, _ in self.inputs]
        means, scatters = (np.array(column) for column in list(zip(*self.inputs, strict=True))[1:])
        own, rest = np.split(np.array(self.numbers), [len(names)])

        def weighted(weights: Array) -> str:
            return "+".join(f"{_rounded(one)}*{name}" for one, name in zip(weights / scatters, names, strict=True))

        parts = [weighted(own)]
        for outside, bias, *inside in rest.reshape(-1, len(names) + 2):
            shifted = bias - float(np.dot(inside, means / scatters))
            parts.append(f"{_rounded(outside)}*max({_rounded(shifted)}+{weighted(np.array(inside))},0)")
        return Expression(formula="+".join(parts), limit=float(f"{self.limit:.2g}"))

    @cached_property
    def scheduler(self) -> Scheduler:
        """EASY with this order, and with predictions if there is a predictor."""
        return with_predictions(Easy(order=self.order), self.predictor, self.believe)

    @property
    def plain(self) -> Network:
        """The same: it has no shorter spelling."""
        return self

    def at(self, point: Array) -> Network:
        """The network that is this many `STEP`s from it: of each number and of the logarithm of the limit, float64."""
        numbers = np.array(self.numbers) + STEP * point[:-1]
        return replace(self, numbers=tuple(numbers.tolist()), limit=float(np.clip(self.limit * np.exp(STEP * point[-1]), 0.05, 3.0)))


def train_network(
    start: Network, stages: Sequence[Callable[[list[Scheduler]], Array]], budget: int, seed: int, progress: Callable[[int], None]
) -> tuple[list[Network], list[int]]:
    """Train a network through the stages of the curriculum; the best one and the mean one after each, and the evaluations of each.

    `stages`: gives the values of schedulers on the part of the logs of a stage of `STAGES`, float64 of shape (schedulers,); less is better.
    `budget`: evaluations, or the few more that fill a generation. `progress` is called with the evaluations so far. The same seed asks for
    the same networks as long as the values are the same.
    """
    random = np.random.Generator(np.random.Philox(seed))
    centre, generation = start, evolution(start.dimensions, random)
    kept: list[Network] = []
    done: list[int] = []
    for (_, share), values_of in zip(STAGES, stages, strict=True):
        best, lowest = centre, np.inf
        done.append(0)
        while sum(done) < share * budget:
            if generation.stop():
                centre, generation = best, evolution(start.dimensions, random)
            points = [np.asarray(point) for point in generation.ask()]
            tried = [centre.at(point) for point in points]
            values = values_of([one.scheduler for one in tried])
            generation.tell(points, [float(value) for value in values])
            done[-1] += len(points)
            if values.min() < lowest:
                best, lowest = tried[int(values.argmin())], float(values.min())
            progress(sum(done))
        kept += [best, centre.at(np.asarray(generation.mean))]
    return kept, done


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
