"""Environments side by side: the arrays that the kernel works on (kernel/decisions.py of the engine), and what it is told to do."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np

from walltime.engine.interface.load import load_unchecked
from walltime.engine.kernel import decisions as kernel
from walltime.engine.kernel.memory import records
from walltime.errors import PolicyError
from walltime.estimates import effective_times
from walltime.learn.features import FEATURES, FORMULAS, QUEUE, formula_terms, still_features
from walltime.learn.sources import Episode
from walltime.metrics import offered_load, summarize
from walltime.metrics.summary import averages

Array = np.ndarray
DECISIONS = {"next": kernel.NEXT, "backfill": kernel.BACKFILL, "formula": kernel.FORMULA, "both": kernel.BOTH}
REWARDS = {
    "wait": kernel.WAIT,
    "response": kernel.RESPONSE,
    "slowdown": kernel.SLOWDOWN,
    "bounded_slowdown": kernel.BOUNDED,
}
"""Metrics of a job that a reward can be made of: s, or without unit."""
AT_THE_END = {
    name: float(-average.better) for name, average in averages().items() if average.better and name.removeprefix("mean_") not in REWARDS
}
"""Metrics of a whole schedule (`walltime.metrics.Summary`) that a reward at the end can be made of; -1 where more is better."""
DIALECTS = ("papers", "rlscheduler")
SELECTIONS = ("arrival", "published")
"""Which waiting jobs have the slots where there are too few: the first to arrive; or the shortest and the smallest in turn (zhang20)."""
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
    selection: str | None = None
    reward: str = "bounded_slowdown"
    dense: bool = True
    baseline: str | None = None
    overrun: str = "kill"

    def __post_init__(self) -> None:
        known: dict[str, Sequence[str]] = {"decision": tuple(DECISIONS), "dialect": DIALECTS, "observation": tuple(FEATURES)}
        known |= {"reward": (*REWARDS, *AT_THE_END), "baseline": FORMULAS, "selection": SELECTIONS}
        for name, values in known.items():
            value = getattr(self, name)
            if value not in values and not (name in ("baseline", "selection") and value is None):
                raise PolicyError(f"unknown {name} {value!r} of a learning environment; known are {', '.join(values)}", "unknown_value")
        if self.dense and self.reward in AT_THE_END:
            raise PolicyError(
                f"{self.reward} is known at the end of an episode only; use dense=False, or one of {', '.join(REWARDS)}", "sparse_reward"
            )
        if self.decision in ("backfill", "both") and not self.backfilling:
            raise PolicyError(
                "without backfilling nobody can be chosen to be backfilled; leave backfilling on, or decide on the next job",
                "conflicting_options",
            )
        if self.dialect == "rlscheduler" and self.committed is False:
            raise PolicyError(
                "in the dialect rlscheduler decisions are committed; use the dialect papers for others", "conflicting_options"
            )
        for name, least in (("period", 1), ("slots", 1)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise PolicyError(f"{name} must be a whole number, {least} or more, not {value!r}", "number_out_of_range")

    @property
    def shown(self) -> int:
        """How many waiting jobs are observed and can be chosen."""
        return self.slots or (128 if self.observation == "published" else 32)

    @property
    def in_turns(self) -> bool:
        """Whether the shortest and the smallest jobs have the slots where there are too few; else the first to arrive."""
        return (self.selection or ("published" if self.observation == "published" else "arrival")) == "published"

    @property
    def skips(self) -> bool:
        """Whether there is an action that starts nobody."""
        return self.decision == "backfill" or (self.decision in ("next", "both") and self.skip)

    @property
    def actions(self) -> int:
        """How many actions there are: one for each slot, and one to skip; or one for each formula."""
        return len(FORMULAS) if self.decision == "formula" else self.shown + int(self.skips)

    def lowered(self, size: int) -> Any:
        """The rules as the kernel takes them, an array of one record, for a machine of this size."""
        theirs = self.dialect == "rlscheduler"
        rules = records(kernel.RULES, 1)
        rule = rules[0]
        rule.kind, rule.procs, rule.period = DECISIONS[self.decision], size, self.period
        rule.committed = theirs or bool(self.committed)
        rule.backfills, rule.cost = self.backfilling, REWARDS.get(self.reward, kernel.BOUNDED)
        rule.one_by_one = rule.ends_before = rule.shadow_once = theirs
        rule.extra_nodes, rule.turns = not theirs, self.in_turns
        rule.fill_by_arrival = theirs or self.decision == "next"
        return rules


def as_rules(options: dict[str, Any]) -> Rules:
    """The rules that these options of an environment ask for."""
    known = [field.name for field in fields(Rules)]
    if unknown := [name for name in options if name not in known]:
        raise PolicyError(f"learning environments have no option {unknown[0]!r}; known are jobs, {', '.join(known)}", "unknown_option")
    return Rules(**options)


class Batch:
    """A number of environments that run independently of each other; those of one batch share the episodes.

    After `step`, row `e` of `seen` (float32, slots x features), `summary` (float32), `mask` (int8), `rewards` (float64) and `over`
    (bool) is what environment `e` shows. They are written to again at the next step.
    """

    def __init__(self, episodes: list[Episode], rules: Rules, environments: int = 1, threads: int = 1):
        self.episodes, self.rules, self.count = episodes, rules, environments
        log = _log(episodes, rules)
        self._table = log.episodes
        size, rows = episodes[0].workload.machine_procs, environments + 1  # the last one plays baselines
        jobs = int(self._table.jobs.max())
        self._environments = kernel.new_environments(rows, jobs, size, rules.shown, rules.in_turns)
        self.state, self.start = self._environments.state, self._environments.start
        self._over, self._now, self._number = (self.state[name][:environments] for name in ("over", "now", "episode"))  # fast to reach
        self.seen = np.zeros((rows, rules.shown, len(FEATURES[rules.observation])), np.float32)
        self.summary = np.zeros((rows, len(QUEUE)), np.float32)
        self.mask = np.ones((rows, rules.actions), np.int8)
        self.rewards = np.zeros(rows)
        self._baselines: dict[int, float] = {}
        self._actions = np.zeros(rows, np.int64)
        observed = kernel.Observations(self.seen, self.summary, self.mask, self.rewards)
        self._arguments = (self._actions, _fixed(rules.lowered(size)), log, self._environments, observed)
        self._decide = load_unchecked("decisions")
        parts = min(threads, environments)
        edges = [round(part * environments / parts) for part in range(parts + 1)]
        self._parts = list(pairwise(edges))
        self._pool = ThreadPoolExecutor(parts - 1) if parts > 1 else None

    def observed(self, which: int | slice) -> Any:
        """Return what one or several environments show, as their spaces of Gymnasium have it; a copy."""
        jobs = self.seen[which].copy()
        return jobs if self.rules.observation == "published" else {"jobs": jobs, "queue": self.summary[which].copy()}

    @property
    def over(self) -> Array:
        """Whether the episode of each environment has ended, bool."""
        return self._over == 1

    @property
    def now(self) -> Array:
        """The time of each environment, s, int64."""
        return self._now

    @property
    def number(self) -> Array:
        """The episode of each environment, int64."""
        return self._number

    @property
    def left(self) -> Array:
        """How many jobs of each environment's episode have not started yet, int64."""
        own = self.state[: self.count]
        return np.asarray(self._table.jobs[own.episode] - own.started)

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
                self.rewards[e] += self.baseline(int(self.state[e].episode))

    def cost(self, environment: int) -> float:
        """The metric of a finished episode, or its mean over the jobs; negative where more is better."""
        jobs = self.episodes[self.state[environment].episode].workload
        name = self.rules.reward
        if name in REWARDS:
            return float(self.state[environment].paid) / len(jobs)
        runtime, _ = effective_times(jobs, self.rules.overrun)
        columns = {"submit": jobs.submit, "start": self.starts(environment), "runtime": runtime, "procs": jobs.procs}
        nobody = np.zeros(len(jobs), np.bool_)
        load = offered_load(jobs.submit, runtime, jobs.procs, jobs.machine_procs)
        summary = summarize(**columns, backfilled=nobody, machine_procs=jobs.machine_procs, offered_load=load)
        return AT_THE_END[name] * float(getattr(summary, name))

    def baseline(self, episode: int, formula: str | None = None) -> float:
        """The same as `cost` where the formula (default: the baseline) decides in the same episode, under the same rules."""
        chosen = formula or self.rules.baseline
        if chosen is None:
            raise PolicyError(f"the environment has no baseline; known are {', '.join(FORMULAS)}")
        if formula is None and episode in self._baselines:
            return self._baselines[episode]
        cost = self.cost_of(episode, chosen, _LIKE_THE_AGENT)
        if formula is None:
            self._baselines[episode] = cost
        return cost

    def cost_of(self, episode: int, formula: str, fill: str | None) -> float:
        """The same as `cost` where a formula decides in this episode and jobs are backfilled by the formula `fill`; None: nobody is."""
        self.play(episode, formula, fill)
        return self.cost(self.count)

    def play(self, episode: int, formula: str, fill: str | None = _LIKE_THE_AGENT) -> Array:
        """The start of each job, s, int64, where a formula decides in this episode.

        `fill`: the formula by which jobs are backfilled, None if nobody is; by default as under an agent that decides by the formula.
        """
        if fill == _LIKE_THE_AGENT:
            by_arrival = bool(self.rules.lowered(1)[0].fill_by_arrival)
            fill = None if not self.rules.backfilling else "fcfs" if by_arrival else formula
        self.state[self.count].filler = -1 if fill is None else FORMULAS.index(fill)
        self.state[self.count].play = FORMULAS.index(formula)
        self._actions[self.count] = -1 - episode
        self._decide(self.count, self.count + 1, *self._arguments)
        return self.starts(self.count)

    def starts(self, environment: int) -> Array:
        """The start of each job of the episode, s, int64, in order of arrival; -1 for those that have not started."""
        episode = int(self.state[environment].episode)
        ran = int(self._table[episode].run_at_first)
        return self.start[environment, ran : ran + len(self.episodes[episode].workload)].copy()

    def waiting(self, environment: int) -> Array:
        """The waiting jobs in the slots, indices of the episode's workload."""
        own = self.state[environment]
        slots = self._environments.slots[environment, : min(int(own.waiting), self.rules.shown)]
        return np.asarray(self._environments.queue[environment, slots] - int(self._table[int(own.episode)].run_at_first))


def _log(episodes: list[Episode], rules: Rules) -> kernel.Log:
    """The jobs of all episodes, what formulas take from them, their features that do not change, and where each episode is."""
    scales = {name: max(one.scales[name] for one in episodes) for name in episodes[0].scales}
    jobs = records(kernel.JOB, sum(len(one.running) + len(one.workload) for one in episodes))
    features, table, first = [], records(kernel.EPISODE, len(episodes)), 0
    for number, one in enumerate(episodes):
        workload, ran = one.workload, one.running
        runtime, planned = effective_times(workload, rules.overrun)
        count = len(ran) + len(workload)
        own = jobs[first : first + count]
        for k, column in enumerate((workload.submit, runtime, planned, workload.procs)):
            own[("submit", "runtime", "believed", "procs")[k]] = np.concatenate([ran[:, k], column])
        own.given = -1
        own.given[: len(ran)] = ran[:, 0]
        own.by_length, own.by_size = _ranks(own)
        seen = still_features(rules.observation, workload, planned, scales)
        features += [np.zeros((len(ran), seen.shape[1]), np.float32), seen]
        table[number] = (first, count, len(ran), one.waiting, one.begin)
        first += count
    terms = formula_terms(jobs.submit, jobs.believed, jobs.procs)
    return kernel.Log(_fixed(jobs), _fixed(terms), _fixed(np.vstack(features)), _fixed(table))


def _ranks(jobs: Any) -> tuple[Array, Array]:
    """The place of each job by planned runtime, and by processors, int64; ties as in zhang20, by arrival first."""
    orders = (np.lexsort((jobs.procs, jobs.submit, jobs.believed)), np.lexsort((jobs.believed, jobs.submit, jobs.procs)))
    return np.argsort(orders[0]), np.argsort(orders[1])


def _fixed(array: Any) -> Any:
    """The array, which is not written to any more."""
    array.flags.writeable = False
    return array
