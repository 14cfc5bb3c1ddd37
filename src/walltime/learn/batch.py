"""Environments side by side: the arrays that the kernel works on (`walltime.engine.decisions`), and what it is told to do with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from walltime.engine import decisions as kernel
from walltime.engine.load import load
from walltime.errors import PolicyError
from walltime.learn.features import FEATURES, QUEUE, greatest, still_features
from walltime.learn.sources import Episode
from walltime.metrics import summarize
from walltime.schedule.overrun import effective_times

Array = np.ndarray
DECISIONS = {"next": kernel.NEXT, "backfill": kernel.BACKFILL, "formula": kernel.FORMULA, "both": kernel.BOTH}
FORMULAS = ("fcfs", "sjf", "saf", "wfp3", "unicep", "f1", "f2", "f3", "f4")
"""The formulas that the decision `formula` chooses from, in this order, and the baselines: those of zhang20 (`walltime.papers.zhang20`)
and F2 to F4 of carastan17; the submission counts from the start of the log."""
REWARDS = {
    "wait": kernel.WAIT,
    "response": kernel.RESPONSE,
    "slowdown": kernel.SLOWDOWN,
    "bounded_slowdown": kernel.BOUNDED,
}
"""Metrics of a job that a reward can be made of: s, or without unit."""
AT_THE_END = {
    name: -1.0 if name == "utilization" else 1.0
    for name in ("median_wait", "p90_wait", "p99_wait", "max_wait", "mean_bounded_slowdown_p1", "utilization", "makespan")
}
"""Metrics of a whole schedule (`walltime.metrics.Summary`) that a reward at the end can be made of; -1 where more is better."""
DIALECTS = ("papers", "rlscheduler")
_LIKE_THE_AGENT = "like the agent"


@dataclass(frozen=True)
class Rules:
    """What an environment asks for, how it schedules, and what it observes and rewards: see `walltime.learn.BackfillingEnv`."""

    decision: str = "next"
    dialect: str = "papers"
    committed: bool | None = None
    backfilling: bool = True
    skip: bool = False
    period: int = 3600
    observation: str = "compact"
    slots: int | None = None
    reward: str = "bounded_slowdown"
    dense: bool = True
    baseline: str | None = None
    overrun: str = "kill"

    def __post_init__(self) -> None:
        known: dict[str, Sequence[str]] = {"decision": tuple(DECISIONS), "dialect": DIALECTS, "observation": tuple(FEATURES)}
        known |= {"reward": (*REWARDS, *AT_THE_END), "baseline": FORMULAS}
        for name, values in known.items():
            value = getattr(self, name)
            if value not in values and not (name == "baseline" and value is None):
                raise PolicyError(f"unknown {name} {value!r} of a learning environment; known are {', '.join(values)}")
        if self.dense and self.reward in AT_THE_END:
            raise PolicyError(f"{self.reward} is known at the end of an episode only; use dense=False, or one of {', '.join(REWARDS)}")
        if self.decision in ("backfill", "both") and not self.backfilling:
            raise PolicyError("without backfilling nobody can be chosen to be backfilled; leave backfilling on, or decide on the next job")
        if self.dialect == "rlscheduler" and self.committed is False:
            raise PolicyError("in the dialect rlscheduler decisions are committed; use the dialect papers for others")
        for name, least in (("period", 1), ("slots", 1)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise PolicyError(f"{name} must be a whole number, {least} or more, not {value!r}")

    @property
    def shown(self) -> int:
        """How many waiting jobs are observed and can be chosen, the first to arrive."""
        return self.slots or (128 if self.observation == "published" else 32)

    @property
    def skips(self) -> bool:
        """Whether there is an action that starts nobody."""
        return self.decision == "backfill" or (self.decision in ("next", "both") and self.skip)

    @property
    def actions(self) -> int:
        """How many actions there are: one for each slot, and one to skip; or one for each formula."""
        return len(FORMULAS) if self.decision == "formula" else self.shown + int(self.skips)

    def lowered(self, size: int) -> Array:
        """The rules as the kernel takes them, for a machine of this size."""
        theirs = self.dialect == "rlscheduler"
        rules = np.zeros(kernel.RULES, np.int64)
        rules[kernel.KIND], rules[kernel.SIZE], rules[kernel.PERIOD] = DECISIONS[self.decision], size, self.period
        rules[kernel.COMMITTED] = theirs or bool(self.committed)
        rules[kernel.BACKFILLS], rules[kernel.COST] = self.backfilling, REWARDS.get(self.reward, kernel.BOUNDED)
        for name in (kernel.ONE_BY_ONE, kernel.ENDS_BEFORE, kernel.SHADOW_ONCE):
            rules[name] = theirs
        rules[kernel.EXTRA_NODES] = not theirs
        rules[kernel.FILL_BY_ARRIVAL] = theirs or self.decision == "next"
        return rules


class Batch:
    """A number of environments that run independently of each other; those of one batch share the episodes.

    After `step`, row `e` of `seen` (float32, slots x features), `summary` (float32), `mask` (int8), `rewards` (float64) and `over`
    (bool) is what environment `e` shows. They are written to again at the next step.
    """

    def __init__(self, episodes: list[Episode], rules: Rules, environments: int = 1, threads: int = 1):
        self.episodes, self.rules, self.count = episodes, rules, environments
        self._library, self._still, self._table = _library(episodes, rules)
        size, rows = episodes[0].workload.machine_procs, environments + 1  # the last one plays baselines
        most = int(self._table[:, kernel.JOBS].max())
        running = min(most, size) + 1
        shown = rules.shown
        self.state = np.zeros((rows, kernel.STATE), np.int64)
        self.state[:, kernel.PLAY] = -1
        self.state[:, kernel.OVER] = 1
        self.start = np.full((rows, most), -1, np.int64)
        self.queue = np.zeros((rows, most), np.int64)
        self.seen = np.zeros((rows, shown, len(FEATURES[rules.observation])), np.float32)
        self.summary = np.zeros((rows, len(QUEUE)), np.float32)
        self.mask = np.ones((rows, rules.actions), np.int8)
        self.rewards = np.zeros(rows)
        self._sums = np.zeros((rows, kernel.SUMS))
        self._baselines: dict[int, float] = {}
        self._actions = np.zeros(rows, np.int64)
        self._arguments: tuple[Any, ...] = (
            *(self._actions, _fixed(rules.lowered(size)), self._library, self._still, self._table, self.state, self._sums),
            *(self.start, self.queue, np.zeros((rows, running, 2), np.int64), np.zeros((rows, running, 3), np.int64)),
            *(self.seen, self.summary, self.mask, self.rewards),
        )
        self._decide: Callable[..., None] = load("decisions")
        parts = min(threads, environments)
        edges = [round(part * environments / parts) for part in range(parts + 1)]
        self._parts = list(pairwise(edges))
        self._pool = ThreadPoolExecutor(parts - 1) if parts > 1 else None

    @property
    def over(self) -> Array:
        """Whether the episode of each environment has ended, bool."""
        return self.state[: self.count, kernel.OVER] == 1

    @property
    def now(self) -> Array:
        """The time of each environment, s, int64."""
        return self.state[: self.count, kernel.NOW]

    @property
    def left(self) -> Array:
        """How many jobs of each environment's episode have not started yet, int64."""
        own = self.state[: self.count]
        return self._table[own[:, kernel.EPISODE], kernel.JOBS] - own[:, kernel.STARTED]

    def step(self, actions: Array) -> None:
        """One decision in each environment; -1 - k begins episode k instead."""
        self._actions[: self.count] = actions
        was_over = self.over
        if self._pool is None:
            self._decide(0, self.count, *self._arguments)
        else:
            others = [self._pool.submit(self._decide, *part, *self._arguments) for part in self._parts[1:]]
            self._decide(*self._parts[0], *self._arguments)
            for other in others:
                other.result()
        self._reward(was_over)

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()

    def _reward(self, was_over: Array) -> None:
        """What is not known before the end of an episode."""
        rules = self.rules
        if rules.dense and rules.baseline is None:
            return
        if not rules.dense:
            self.rewards[: self.count] = 0.0
        for e in np.flatnonzero(self.over & ~was_over):
            if not rules.dense:
                self.rewards[e] = -self.cost(int(e))
            if rules.baseline is not None:
                self.rewards[e] += self.baseline(int(self.state[e, kernel.EPISODE]))

    def cost(self, environment: int) -> float:
        """The metric of a finished episode, or its mean over the jobs; negative where more is better."""
        jobs = self.episodes[self.state[environment, kernel.EPISODE]].workload
        name = self.rules.reward
        if name in REWARDS:
            return float(self._sums[environment, kernel.PAID]) / len(jobs)
        runtime, _ = effective_times(jobs, self.rules.overrun)
        columns = {"submit": jobs.submit, "start": self.starts(environment), "runtime": runtime, "procs": jobs.procs}
        nobody = np.zeros(len(jobs), np.bool_)
        found = summarize(**columns, backfilled=nobody, machine_procs=jobs.machine_procs, offered_load=jobs.offered_load)
        return AT_THE_END[name] * float(getattr(found, name))

    def baseline(self, episode: int, formula: str | None = None) -> float:
        """The same as `cost` where the formula (default: the baseline) decides in the same episode, under the same rules."""
        chosen = formula or self.rules.baseline
        if chosen is None:
            raise PolicyError(f"the environment has no baseline; known are {', '.join(FORMULAS)}")
        if formula is None and episode in self._baselines:
            return self._baselines[episode]
        found = self.cost_of(episode, chosen, _LIKE_THE_AGENT)
        if formula is None:
            self._baselines[episode] = found
        return found

    def cost_of(self, episode: int, formula: str, fill: str | None) -> float:
        """The same as `cost` where a formula decides in this episode and jobs are backfilled by the formula `fill`; None: nobody is."""
        self.play(episode, formula, fill)
        return self.cost(self.count)

    def play(self, episode: int, formula: str, fill: str | None = _LIKE_THE_AGENT) -> Array:
        """The start of each job, s, int64, where a formula decides in this episode.

        `fill`: the formula by which jobs are backfilled, None if nobody is; by default as under an agent that decides by the formula.
        """
        if fill == _LIKE_THE_AGENT:
            by_arrival = bool(self.rules.lowered(1)[kernel.FILL_BY_ARRIVAL])
            fill = None if not self.rules.backfilling else "fcfs" if by_arrival else formula
        self.state[self.count, kernel.FILL] = -1 if fill is None else FORMULAS.index(fill)
        self.state[self.count, kernel.PLAY] = FORMULAS.index(formula)
        self._actions[self.count] = -1 - episode
        self._decide(self.count, self.count + 1, *self._arguments)
        return self.starts(self.count)

    def starts(self, environment: int) -> Array:
        """The start of each job of the episode, s, int64, in order of arrival; -1 for those that have not started."""
        episode = int(self.state[environment, kernel.EPISODE])
        ran = int(self._table[episode, kernel.RUN_AT_FIRST])
        return self.start[environment, ran : ran + len(self.episodes[episode].workload)].copy()

    def waiting(self, environment: int) -> Array:
        """The waiting jobs in the slots, indices of the episode's workload, in order of arrival."""
        own = self.state[environment]
        found = self.queue[environment, : min(int(own[kernel.WAITING]), self.rules.shown)]
        return found - int(self._table[int(own[kernel.EPISODE]), kernel.RUN_AT_FIRST])


def _library(episodes: list[Episode], rules: Rules) -> tuple[Array, Array, Array]:
    """The jobs of all episodes, their features that do not change, and where each episode is."""
    times = [effective_times(one.workload, rules.overrun) for one in episodes]
    most = greatest([one.workload for one in episodes], [planned for _, planned in times])
    rows, features, table, first = [], [], [], 0
    for one, (runtime, planned) in zip(episodes, times, strict=True):
        jobs, ran = one.workload, one.running
        columns = (jobs.submit, runtime, planned, jobs.procs, np.full(len(jobs), -1, np.int64))
        rows += [np.column_stack([ran[:, 0], ran[:, 1], ran[:, 2], ran[:, 3], ran[:, 0]]), np.column_stack(columns)]
        own = still_features(rules.observation, jobs, planned, most)
        features += [np.zeros((len(ran), own.shape[1]), np.float32), own]
        table.append((first, len(ran) + len(jobs), len(ran), one.waiting, one.begin))
        first += len(ran) + len(jobs)
    return _fixed(np.vstack(rows)), _fixed(np.vstack(features)), _fixed(np.array(table, np.int64))


def _fixed(array: Array) -> Array:
    """The array, which is not written to any more."""
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array
