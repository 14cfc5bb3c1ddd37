"""Which episodes are worth learning from, by what a formula makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.learn.batch import Batch, as_rules
from walltime.learn.formulas import FORMULAS
from walltime.learn.sources import Episode, as_episodes
from walltime.workload import Workload


def kept(
    episodes: Sequence[Workload | Episode], formula: str = "sjf", least: float = 10.0, most: float = 150.0, **options: Any
) -> tuple[list[Episode], int]:
    """The episodes on which a formula's cost is more than `least` and less than `most`, and how many others have been left out.

    The cost is the mean of the reward's metric, by default of the bounded slowdown; `options` are those of the environment, under whose
    rules the formula decides. The program of zhang20 trains on sequences that SJF brings to between 10 and 150, as one that is too easy
    teaches nothing, and a very hard one drowns the others; what an agent gets on these is no measure of what it gets on the whole log.
    Raises PolicyError for a formula or an option that is none, WorkloadError if no episode is kept.

    >>> import walltime as wt
    >>> easy, hard = (
    ...     wt.Workload.from_arrays(submit=[0, gap], runtime=[100, 10], procs=[2, 2], machine_procs=2) for gap in (100, 1)
    ... )
    >>> found, left_out = kept([easy, hard], least=2.0)  # mean bounded slowdowns of 1 and 5.95
    >>> [one.workload is hard for one in found], left_out
    ([True], 1)
    """
    if formula not in FORMULAS:
        raise PolicyError(f"unknown formula {formula!r}; known are {', '.join(FORMULAS)}")
    given = as_episodes(episodes)
    batch = Batch(given, as_rules(options))
    costs = np.array([batch.baseline(number, formula) for number in range(len(given))])
    inside = (costs > least) & (costs < most)
    if not inside.any():
        told = f"on {len(given)} episodes, from {costs.min():.4g} to {costs.max():.4g}, median {np.median(costs):.4g}"
        raise WorkloadError(f"no episode is left, as {formula} costs more than {least:g} and less than {most:g} on none: {told}")
    return [one for one, is_inside in zip(given, inside, strict=True) if is_inside], int((~inside).sum())
