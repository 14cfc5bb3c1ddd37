"""Gymnasium environments, single and vectorised."""

import os
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from walltime.errors import PolicyError
from walltime.learn.batch import Batch, Rules, parse_rules
from walltime.learn.features import FEATURES, FORMULAS, QUEUE
from walltime.learn.sources import Episode, as_episodes
from walltime.workload import Array, Workload

Source = Workload | Episode | Sequence[Workload | Episode]
ID = "walltime/Backfilling-v0"


def _spaces(rules: Rules) -> tuple[gymnasium.Space[Any], Discrete]:
    """Return the spaces of observations and actions."""
    jobs = Box(0.0, 1.0, (rules.shown, len(FEATURES[rules.observation])), np.float32)
    if rules.observation == "published":
        return jobs, Discrete(rules.actions)
    return Dict({"jobs": jobs, "queue": Box(0.0, 1.0, (len(QUEUE),), np.float32)}), Discrete(rules.actions)


class BackfillingEnv(gymnasium.Env[Any, Any]):
    """A machine with a queue on which an agent decides; `gymnasium.make("walltime/Backfilling-v0", jobs=...)`.

    `jobs`: episodes from `walltime.learn.windows` or `overlapping`, or workloads. Each reset draws one with the
    environment's seed, or uses `options={"episode": k}`. An episode ends when every job has started.

    `decision`: `next`, `backfill`, `both` or `formula`. With `next`, the agent chooses the next job from the waiting jobs; the job starts
    at once if it fits, and becomes the head of the queue otherwise. With `backfill`, the head is the first job to arrive, and the agent
    chooses jobs that start behind its reservation. With `both`, it does both, but makes no decision while no job fits. With `formula`, it
    chooses which of `walltime.learn.FORMULAS` orders the queue for the next `period` seconds. `committed`: whether the next job remains the
    head until it starts, or only in this pass (default: as in the dialect). `skip`: with `next` and `both`, whether the last action starts
    no job until the next event; `backfill` always has this action. `backfilling`: whether jobs start behind the head's reservation, by
    EASY's rule unless the agent chooses them. `dialect`: `papers` or `rlscheduler`.

    `observation`: `compact` or `published` (see `walltime.learn.FEATURES`); `slots`: number of observed jobs (by default 32 and 128).
    `selection`: the jobs observed if more are waiting: the first by `arrival` (default for `compact`), or the shortest and the smallest in
    turn, as in zhang20 (`published`, default for that observation).

    `reward`: the metric to minimise: `wait`, `response` (s), `slowdown` or `bounded_slowdown`. `dense`: each reward is the decrease of the
    metric's sum over the jobs so far (waiting jobs count as if they started now), divided by the number of jobs. The rewards of an episode
    thus add up to minus the mean, plus the initial cost of jobs that were already waiting. With `dense=False`, the only reward is minus the
    mean, at the end of the episode; this also allows metrics of a whole schedule, such as `p90_wait` (s) or `utilization`, which is not
    negated. `baseline`: a formula whose mean on the same episode is added at the end. `overrun`: see `walltime.simulate`.

    `info` has the `action_mask` (int8), the `time` (s), and the `episode_number`; `action_masks()` returns the mask as bool. `invalid`: for
    a forbidden action, `raise` PolicyError, or take the `first` allowed action instead. A copy of an environment (`copy.deepcopy`)
    continues independently, for tree search. Raises PolicyError for invalid options, WorkloadError for no jobs.

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
        self._batch = Batch(as_episodes(jobs), parse_rules(options))
        self.observation_space, self.action_space = _spaces(self._batch.rules)
        self._action = np.zeros(1, np.int64)
        self._jobs, self._options, self._actions = jobs, options, list[int]()

    def __getstate__(self) -> dict[str, Any]:
        """Return the jobs, the options and the actions since the last reset, which a pickled or copied environment repeats."""
        random = (self._np_random, self._np_random_seed)
        return {"jobs": self._jobs, "options": self._options, "actions": list(self._actions), "random": random}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Create the environment, and repeat the actions."""
        self.__init__(state["jobs"], **state["options"])  # type: ignore[misc]
        self._np_random, self._np_random_seed = state["random"]
        for action in state["actions"]:
            self._take(action)

    def _take(self, action: int) -> None:
        self._actions.append(action)
        self._action[0] = action
        self._batch.step(self._action)

    @property
    def episode(self) -> Episode:
        """Return the current episode."""
        return self._batch.episodes[self._number]

    @property
    def _number(self) -> int:
        return int(self._batch.number[0])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; return its first observation, and `info`."""
        super().reset(seed=seed)
        number = (options or {}).get("episode")
        self._actions.clear()
        self._take(-1 - _choose(number, len(self._batch.episodes), self.np_random))
        return self._batch.observed(0), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Apply an action, and advance to the next decision."""
        batch = self._batch
        self._take(batch.checked(0, action))
        return batch.observed(0), float(batch.rewards[0]), bool(batch.over[0]), False, self._info()

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._batch.mask[0].copy(), "time": int(self._batch.now[0]), "episode_number": self._number}

    def action_masks(self) -> Array:
        """Return a mask (bool, shape (actions,)) of the allowed actions."""
        return self._batch.mask[0] != 0

    def starts(self) -> Array:
        """Return the start of each job of the episode, s, int64; -1 before its start."""
        return self._batch.starts(0)

    def waiting(self) -> Array:
        """Return the waiting jobs that can be chosen, by slot: indices into `episode.workload`."""
        return self._batch.waiting(0)

    def cost(self) -> float:
        """Return the reward's metric of a finished episode (for job metrics, the mean), negated if higher is better."""
        return self._batch.cost(0)

    def baseline(self, formula: str) -> float:
        """Return the `cost` of the current episode under this formula."""
        if formula not in FORMULAS:
            raise PolicyError(f"unknown formula {formula!r}. Valid formulas: {', '.join(FORMULAS)}")
        return self._batch.baseline(self._number, formula)


class BackfillingVectorEnv(VectorEnv[Any, Any, Any]):
    """Vectorised environments, stepped in compiled code; `gymnasium.make_vec("walltime/Backfilling-v0", num_envs=..., jobs=...)`.

    `threads`: number of threads, by default one per core. Environment i, seeded with `seed + i`, equals a single `BackfillingEnv`, for any
    number of threads. If its episode has ended, it begins another in the next step, regardless of the action and without reward
    (`AutoresetMode.NEXT_STEP`). Observations and masks have a row for each environment.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012 (as Gymnasium declares it)

    def __init__(self, jobs: Source, num_envs: int = 1, threads: int | None = None, **options: Any):
        self.num_envs = num_envs
        self._batch = Batch(as_episodes(jobs), parse_rules(options), num_envs, threads or os.cpu_count() or 1)
        self.single_observation_space, self.single_action_space = _spaces(self._batch.rules)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._generators = [np.random.default_rng() for _ in range(num_envs)]

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every environment; return the first observations, and `info`."""
        if seed is None or isinstance(seed, int | np.integer):
            seed = [None if seed is None else int(seed) + i for i in range(self.num_envs)]
        for i, own in enumerate(seed):
            if own is not None:
                self._generators[i], _ = gymnasium.utils.seeding.np_random(own)
        number = (options or {}).get("episode")
        self._batch.step(np.array([-1 - _choose(number, len(self._batch.episodes), own) for own in self._generators]))
        return self._observed(), self._info()

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Apply an action in every environment, and advance each to its next decision."""
        batch = self._batch
        given = np.zeros(self.num_envs, np.int64)
        for e, (action, is_over) in enumerate(zip(np.asarray(actions), batch.over, strict=True)):
            given[e] = -1 - _choose(None, len(batch.episodes), self._generators[e]) if is_over else batch.checked(e, action)
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
        """Return a mask (bool, shape (environments, actions)) of the allowed actions."""
        return self._batch.mask[: self.num_envs] != 0

    def starts(self, environment: int) -> Array:
        """Return the start of each job of an environment's episode, s, int64; -1 before its start."""
        return self._batch.starts(environment)

    def close_extras(self, **kwargs: Any) -> None:
        """Stop the threads."""
        self._batch.close()


def _choose(number: int | None, episodes: int, generator: np.random.Generator) -> int:
    """Return the requested episode, or a random one."""
    if number is None:
        return int(generator.integers(episodes))
    if not 0 <= number < episodes:
        raise PolicyError(f"unknown episode {number!r}. Valid episodes: 0 to {episodes - 1}", "unknown_episode")
    return int(number)


def register() -> None:
    """Register the environments with Gymnasium, when `walltime.learn` is imported."""
    if ID not in gymnasium.registry:
        gymnasium.register(ID, entry_point=f"{__name__}:BackfillingEnv", vector_entry_point=f"{__name__}:BackfillingVectorEnv")
