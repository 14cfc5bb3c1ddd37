"""The importance of the features of trained agents: the cost of shuffling each, and the slopes of scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from walltime.learn import TrainedAgent, ppo
from walltime.learn.features import COMPACT
from walltime.learn.sources import Episode
from walltime.metrics import Interval
from walltime.simulation.windows import change_interval, log_cost
from walltime.workload import Workload

Array = np.ndarray
SLOPE_STEP = 0.1
"""The change of a feature for the slope of scores."""


@dataclass(frozen=True)
class Importance:
    """The importance of a feature.

    `loss`: increase of the cost if its values are shuffled, %, over windows. `slope`: mean change of a job's score if the feature
    increases by 0.1; None for features of the queue, which all jobs share.
    """

    feature: str
    loss: Interval
    slope: float | None


def _shuffled() -> list[int]:
    """Return the indices of the informative inputs: all except whether a job waits."""
    return [number for number, name in enumerate(ppo.INPUTS) if name != "waits"]


def importances(trained: list[TrainedAgent], workload: Workload, seed: int = 0) -> tuple[Importance, ...]:
    """Shuffle each feature in turn, within the same step of all held-out windows; return the importances, the largest first."""
    metric, episodes = trained[0].task.reward, trained[0].task.windows(workload, "test")
    logs = np.array([log_cost(one.outcomes(episodes)[0], metric) for one in trained])
    slopes = np.mean([_slopes(one, episodes, seed) for one in trained], axis=0)
    found = []
    for column in _shuffled():
        losses = []
        for own, before in zip(trained, logs, strict=True):
            draw = np.random.default_rng([seed, column])
            losses.append(log_cost(own.outcomes(episodes, _shuffler(column, draw))[0], metric) - before)
        slope = float(slopes[column]) if column < len(COMPACT) else None
        found.append(Importance(ppo.INPUTS[column], change_interval(np.mean(losses, axis=0)), slope))
    return tuple(sorted(found, key=lambda one: -one.loss.mean))


def _shuffler(column: int, draw: np.random.Generator) -> Callable[[Array, Array], None]:
    """Return a function that shuffles a feature of jobs among the jobs, or one of the queue among the decisions."""

    def shuffle(seen: Array, first: Array) -> None:
        if column < len(COMPACT):
            seen[:, column] = draw.permutation(seen[:, column])
        else:
            seen[:, column] = np.repeat(draw.permutation(seen[first, column]), np.diff(first, append=len(seen)))

    return shuffle


def _slopes(trained: TrainedAgent, episodes: list[Episode], seed: int) -> Array:
    """Return the mean change of a job's score if a feature increases a little, over a sample of the agent's observations."""
    samples: list[Array] = []
    draw = np.random.default_rng(seed)

    def keep(seen: Array, first: Array) -> None:
        samples.append(seen[draw.random(len(seen)) < 0.1].copy())

    trained.outcomes(episodes, keep)
    seen = np.concatenate(samples)
    slopes = np.zeros(len(ppo.INPUTS))
    before = trained.agent.scores(seen)
    for column in range(len(COMPACT)):
        more = seen.copy()
        more[:, column] += np.float32(SLOPE_STEP)
        slopes[column] = float((trained.agent.scores(more) - before).mean())
    return slopes
