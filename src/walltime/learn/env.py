"""The environments of Gymnasium: one, and many side by side."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from walltime.errors import PolicyError
from walltime.learn.batch import Batch, Rules, as_rules
from walltime.learn.features import FEATURES, FORMULAS, QUEUE
from walltime.learn.sources import Episode, as_episodes
from walltime.workload import Workload

Array = np.ndarray
Source = Workload | Episode | Sequence[Workload | Episode]
ID = "walltime/Backfilling-v0"


def _spaces(rules: Rules) -> tuple[gymnasium.Space[Any], Discrete]:
    """What is observed, and the actions."""
    jobs = Box(0.0, 1.0, (rules.shown, len(FEATURES[rules.observation])), np.float32)
    if rules.observation == "published":
        return jobs, Discrete(rules.actions)
    return Dict({"jobs": jobs, "queue": Box(0.0, 1.0, (len(QUEUE),), np.float32)}), Discrete(rules.actions)


class BackfillingEnv(gymnasium.Env[Any, Any]):
    """A machine with a queue, on which an agent decides; `gymnasium.make("walltime/Backfilling-v0", jobs=...)`.

    `jobs`: the episodes, from `walltime.learn.windows`, `overlapping`, `drawn` or `shaken`, or workloads. At each reset one of them is
    drawn with the environment's seed; `options={"episode": k}` takes a certain one. An episode ends when every job has started.

    `decision`: `next` (which waiting job comes next: it starts at once if it fits, else it is the head, for which others wait), `backfill`
    (who starts behind the reservation of the head, which is the first to arrive), `both` (the one and the other; while nobody fits nothing
    is asked), or `formula` (which of `walltime.learn.FORMULAS` orders the queue for the next `period` seconds). `committed`: whether the
    job that comes next does so until it starts, or only in this pass (default: as in the dialect). `skip`: with `next` and `both`, whether
    there is an action that starts nobody until the next event; `backfill` always has it. It is the last action. `backfilling`: whether jobs
    start behind the head's reservation, by EASY's rule where the agent does not decide on that. `dialect`: `papers` or `rlscheduler`.

    `observation`: `compact` or `published` (see `walltime.learn.FEATURES`); `slots`: for how many jobs (default 32 and 128). `selection`:
    for which ones where more wait: the first by `arrival` (default for `compact`), or, as in zhang20, the shortest and the smallest in
    turn (`published`, default for that observation).

    `reward`: the metric `wait`, `response` (s), `slowdown` or `bounded_slowdown`. `dense`: the fall of its sum over the jobs so far
    (waiting ones as if they started now), divided by the number of jobs, so that an episode's rewards add up to minus the mean, plus what
    those that waited at its begin had cost; or, with `dense=False`, minus the mean at the end of the episode. There the metrics of a whole
    schedule can be used too, such as `p90_wait` (s) or `utilization`, which is not negated. `baseline`: a formula, whose mean on the same
    episode is added at the end. `overrun`: see `walltime.simulate`.

    `info` has the `action_mask` (int8), the `time` (s), and the `episode_number`; `action_masks()` gives the mask as bool. An action
    that the mask forbids counts as the first one that it allows. Raises PolicyError for options that are none, WorkloadError for no jobs.

    >>> import walltime as wt, walltime.learn
    >>> jobs = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4)
    >>> env = BackfillingEnv(jobs)
    >>> _, info = env.reset(seed=1)
    >>> over = False
    >>> while not over:
    ...     _, _, over, _, info = env.step(0)
    >>> env.starts().tolist(), env.cost()  # mean bounded slowdown
    ([0, 10, 2], 1.3)
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as Gymnasium declares it)

    def __init__(self, jobs: Source, **options: Any):
        self._batch = Batch(as_episodes(jobs), as_rules(options))
        self.observation_space, self.action_space = _spaces(self._batch.rules)
        self._action = np.zeros(1, np.int64)

    @property
    def episode(self) -> Episode:
        """The present episode."""
        return self._batch.episodes[self._number]

    @property
    def _number(self) -> int:
        return int(self._batch.number[0])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        number = (options or {}).get("episode")
        self._action[0] = -1 - _chosen(number, len(self._batch.episodes), self.np_random)
        self._batch.step(self._action)
        return self._batch.observed(0), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Decide."""
        batch = self._batch
        self._action[0] = max(int(action), 0)
        batch.step(self._action)
        return batch.observed(0), float(batch.rewards[0]), bool(batch.over[0]), False, self._info()

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._batch.mask[0].copy(), "time": int(self._batch.now[0]), "episode_number": self._number}

    def action_masks(self) -> Array:
        """Which actions are allowed, bool."""
        return self._batch.mask[0] != 0

    def starts(self) -> Array:
        """The start of each job of the episode, s, int64; -1 for those that have not started."""
        return self._batch.starts(0)

    def waiting(self) -> Array:
        """The waiting jobs that can be chosen, by slot: indices of the jobs of `episode.workload`."""
        return self._batch.waiting(0)

    def cost(self) -> float:
        """The reward's metric when the episode has ended, for one of jobs their mean; negative where more is better."""
        return self._batch.cost(0)

    def baseline(self, formula: str) -> float:
        """The same as `cost` where this formula decides in the present episode."""
        if formula not in FORMULAS:
            raise PolicyError(f"unknown formula {formula!r}; known are {', '.join(FORMULAS)}")
        return self._batch.baseline(self._number, formula)


class BackfillingVectorEnv(VectorEnv[Any, Any, Any]):
    """Many environments side by side, stepped in compiled code; `gymnasium.make_vec("walltime/Backfilling-v0", num_envs=..., jobs=...)`.

    `threads`: how many share the work, by default one for each core. All else is as in `BackfillingEnv`: environment i, seeded with
    `seed + i`, gives the same with any number of threads as one that is alone. An environment whose episode has ended begins another one in
    the next step, whatever the action, with no reward (`AutoresetMode.NEXT_STEP`). Observations and masks have a row for each environment.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012 (as Gymnasium declares it)

    def __init__(self, jobs: Source, num_envs: int = 1, threads: int | None = None, **options: Any):
        self.num_envs = num_envs
        self._batch = Batch(as_episodes(jobs), as_rules(options), num_envs, threads or os.cpu_count() or 1)
        self.single_observation_space, self.single_action_space = _spaces(self._batch.rules)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._generators = [np.random.default_rng() for _ in range(num_envs)]

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every environment."""
        seeds: Sequence[int | None] = [None if seed is None else seed + i for i in range(self.num_envs)] if _is_one(seed) else seed  # type: ignore
        for i, own in enumerate(seeds):
            if own is not None:
                self._generators[i], _ = gymnasium.utils.seeding.np_random(own)
        number = (options or {}).get("episode")
        self._batch.step(np.array([-1 - _chosen(number, len(self._batch.episodes), own) for own in self._generators]))
        return self._observed(), self._info()

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Decide in every environment."""
        batch = self._batch
        given = np.maximum(np.asarray(actions, np.int64), 0)
        for e in np.flatnonzero(batch.over):
            given[e] = -1 - _chosen(None, len(batch.episodes), self._generators[e])
        batch.step(given)
        return self._observed(), batch.rewards[: self.num_envs].copy(), batch.over, np.zeros(self.num_envs, np.bool_), self._info()

    def _observed(self) -> Any:
        return self._batch.observed(slice(self.num_envs))

    def _info(self) -> dict[str, Any]:
        everywhere = np.ones(self.num_envs, np.bool_)
        info: dict[str, Any] = {"action_mask": self._batch.mask[: self.num_envs].copy(), "time": self._batch.now.copy()}
        info["episode_number"] = self._batch.number.copy()
        return info | {f"_{name}": everywhere for name in list(info)}

    def action_masks(self) -> Array:
        """Which actions are allowed in each environment, bool."""
        return self._batch.mask[: self.num_envs] != 0

    def starts(self, environment: int) -> Array:
        """The start of each job of an environment's episode, s, int64; -1 for those that have not started."""
        return self._batch.starts(environment)

    def close_extras(self, **kwargs: Any) -> None:
        """Let the threads go."""
        self._batch.close()


def _is_one(seed: object) -> bool:
    return seed is None or isinstance(seed, int | np.integer)


def _chosen(number: int | None, episodes: int, generator: np.random.Generator) -> int:
    """The episode that was asked for, or one that is drawn."""
    if number is None:
        return int(generator.integers(episodes))
    if not 0 <= number < episodes:
        raise PolicyError(f"there are {episodes} episodes, from 0; there is no episode {number!r}", "unknown_episode")
    return int(number)


def register() -> None:
    """Make the environments known to Gymnasium; importing `walltime.learn` does it."""
    if ID not in gymnasium.registry:
        here = "walltime.learn.env"
        gymnasium.register(ID, entry_point=f"{here}:BackfillingEnv", vector_entry_point=f"{here}:BackfillingVectorEnv")
