"""Steps per second of the learning environments, single and vectorized, with random actions, and of the published program."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.common import Options, Result, cores, lublin, show, take_turns
from benchmarks.published import beside_published
from walltime import learn

SIDE_BY_SIDE = 1024
WAYS: dict[str, dict[str, Any]] = {
    "compact": {},
    "128 x 8": {"observation": "published"},
    "128 x 8, rlscheduler": {"observation": "published", "dialect": "rlscheduler"},
    "compact, choosing the job to backfill": {"decision": "backfill"},
    "compact, choosing a formula": {"decision": "formula"},
}
WARM = {"an empty machine": None, "the queue that EASY left": "easy"}


def learning(options: Options) -> Result:
    """Steps per second (a step is one decision), by what is decided and observed, and by how episodes begin."""
    result: Result = {"side_by_side": SIDE_BY_SIDE, "threads": cores(), "rates": {}}
    rows = []
    for begin, warm in WARM.items():
        episodes = learn.windows(lublin(options.size(10_000, 1_000), 0.7), 256, warm=warm)
        for name, rules in WAYS.items():
            works = {"one": _one(episodes, rules, options), "many": _many(episodes, rules, options)}
            seconds = take_turns({way: work for way, (work, _) in works.items()}, options)
            rates = {way: works[way][1] / one["median"] for way, one in seconds.items()}
            result["rates"][f"{name}, {begin}"] = rates
            rows.append((name, begin, f"{rates['one']:,.0f}", f"{rates['many']:,.0f}"))
    show("Steps per second", ("environment", "begins with", "one", f"{SIDE_BY_SIDE:,} on all cores"), rows)
    published = beside_published(options)
    return result if published is None else result | {"published": published}


def _one(episodes: list[learn.Episode], rules: dict[str, Any], options: Options) -> tuple[Any, int]:
    """A function that steps one environment and returns its seconds, and how many steps it makes."""
    import gymnasium

    env, steps = gymnasium.make("walltime/Backfilling-v0", jobs=episodes, **rules), options.size(20_000, 500)
    actions = np.random.default_rng(1).integers(0, env.action_space.n, steps).tolist()  # type: ignore[attr-defined]

    def work() -> float:
        env.reset(seed=1)
        begin = time.perf_counter()
        for action in actions:
            if env.step(action)[2]:
                env.reset()
        return time.perf_counter() - begin

    return work, steps


def _many(episodes: list[learn.Episode], rules: dict[str, Any], options: Options) -> tuple[Any, int]:
    """The same for environments side by side, on all cores."""
    import gymnasium

    env, steps = gymnasium.make_vec("walltime/Backfilling-v0", num_envs=SIDE_BY_SIDE, jobs=episodes, **rules), options.size(300, 3)
    actions = np.random.default_rng(1).integers(0, env.single_action_space.n, (steps, SIDE_BY_SIDE))

    def work() -> float:
        env.reset(seed=1)
        begin = time.perf_counter()
        for row in actions:
            env.step(row)
        return time.perf_counter() - begin

    return work, steps * SIDE_BY_SIDE
