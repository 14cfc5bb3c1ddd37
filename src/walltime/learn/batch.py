"""Vectorised environments: their rules, and the arrays for the engine's kernel/decisions.py."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np

from walltime.declared import Field
from walltime.engine.interface.load import load_unchecked
from walltime.engine.kernel import decisions as kernel
from walltime.engine.kernel.memory import records
from walltime.errors import PolicyError
from walltime.estimates import effective_times
from walltime.learn.features import FEATURES, FORMULAS, QUEUE, constant_features, formula_terms
from walltime.learn.sources import Episode
from walltime.metrics import offered_load, summarize
from walltime.metrics.summary import averages
from walltime.specification import Specification

Array = np.ndarray
DECISIONS = {"next": kernel.NEXT, "backfill": kernel.BACKFILL, "formula": kernel.FORMULA, "both": kernel.BOTH}
REWARDS = {"wait": kernel.WAIT, "response": kernel.RESPONSE, "slowdown": kernel.SLOWDOWN, "bounded_slowdown": kernel.BOUNDED}
"""Job metrics for rewards, in s or without unit."""
FINAL_REWARDS = {
    name: float(-average.better) for name, average in averages().items() if average.better and name.removeprefix("mean_") not in REWARDS
}
"""Schedule metrics (`walltime.metrics.Summary`) for rewards at the end of an episode, with their sign; -1 if higher is better."""
Selection = Literal["arrival", "published"]
"""How to select waiting jobs if there are more than slots: the first to arrive, or alternately the shortest and the smallest (zhang20)."""
_AS_THE_AGENT = "as the agent"


@dataclass(frozen=True)
class Rules(Specification):
    """The decisions, scheduling rules, observations and rewards of an environment: see `walltime.learn.BackfillingEnv`."""

    decision: Annotated[str, Field(known=tuple(DECISIONS))] = "next"
    dialect: Literal["papers", "rlscheduler"] = "papers"
    committed: bool | None = None
    backfilling: bool = True
    skip: bool = False
    period: Annotated[int, Field(least=1)] = 3600
    observation: Annotated[str, Field(known=tuple(FEATURES))] = "compact"
    slots: Annotated[int | None, Field(least=1)] = None
    selection: Selection | None = None
    reward: Annotated[str, Field(known=(*REWARDS, *FINAL_REWARDS))] = "bounded_slowdown"
    dense: bool = True
    baseline: Annotated[str | None, Field(known=FORMULAS)] = None
    overrun: str = "kill"
    invalid: Literal["raise", "first"] = "raise"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dense and self.reward in FINAL_REWARDS:
            raise PolicyError(
                f"the reward {self.reward} exists only at the end of an episode; use dense=False, or one of {', '.join(REWARDS)}",
                "sparse_reward",
            )
        if self.decision in ("backfill", "both") and not self.backfilling:
            raise PolicyError(f"decision={self.decision} needs backfilling=True; set it, or use decision=next", "conflicting_options")
        if self.dialect == "rlscheduler" and self.committed is False:
            raise PolicyError(
                "the dialect rlscheduler needs committed decisions; leave out committed=False, or use dialect=papers", "conflicting_options"
            )

    @property
    def shown(self) -> int:
        """Return the number of waiting jobs that are observed and can be chosen."""
        return self.slots or (128 if self.observation == "published" else 32)

    @property
    def alternates(self) -> bool:
        """Return whether the shortest and the smallest jobs are selected alternately, instead of the first to arrive."""
        return (self.selection or ("published" if self.observation == "published" else "arrival")) == "published"

    @property
    def skips(self) -> bool:
        """Return whether there is an action that starts no job."""
        return self.decision == "backfill" or (self.decision in ("next", "both") and self.skip)

    @property
    def actions(self) -> int:
        """Return the number of actions: one for each slot, and one to skip; or one for each formula."""
        return len(FORMULAS) if self.decision == "formula" else self.shown + int(self.skips)

    @property
    def fills_by_arrival(self) -> bool:
        """Return whether jobs are backfilled in order of arrival when the agent does not decide."""
        return self.dialect == "rlscheduler" or self.decision == "next"

    def lowered(self, size: int) -> Any:
        """Return the rules for the kernel, an array of one record, for a machine of this size."""
        published = self.dialect == "rlscheduler"
        rules = records(kernel.RULES, 1)
        rule = rules[0]
        rule.kind, rule.procs, rule.period = DECISIONS[self.decision], size, self.period
        rule.committed = published or bool(self.committed)
        rule.backfills, rule.cost = self.backfilling, REWARDS.get(self.reward, kernel.BOUNDED)
        rule.one_by_one = rule.ends_before = rule.shadow_once = published
        rule.extra_nodes, rule.turns = not published, self.alternates
        rule.fill_by_arrival = self.fills_by_arrival
        return rules


def parse_rules(options: dict[str, Any]) -> Rules:
    """Return the rules for these options of an environment."""
    known = [field.name for field in fields(Rules)]
    if unknown := [name for name in options if name not in known]:
        raise PolicyError(f"learning environments have no option {unknown[0]!r}. Valid options: jobs, {', '.join(known)}", "unknown_option")
    return Rules(**options)


class Batch:
    """Independent environments with common episodes.

    After `step`, row `e` of `seen` (float32, slots x features), `summary` (float32), `mask` (int8), `rewards` (float64), `over` (bool),
    `now` (int64 s) and `number` (of the episode, int64) belongs to environment `e`, until the next step.
    """

    def __init__(self, episodes: list[Episode], rules: Rules, environments: int = 1, threads: int = 1):
        self.episodes, self.rules, self.count = episodes, rules, environments
        log = _log(episodes, rules)
        self._table = log.episodes
        size, rows = episodes[0].workload.machine_procs, environments + 1  # the last row plays baselines
        jobs = int(self._table.jobs.max())
        self._environments = kernel.new_environments(rows, jobs, size, rules.shown, rules.alternates)
        self.state, self.start = self._environments.state, self._environments.start
        self._over, self.now, self.number = (self.state[name][:environments] for name in ("over", "now", "episode"))  # for speed
        self.seen = np.zeros((rows, rules.shown, len(FEATURES[rules.observation])), np.float32)
        self.summary = np.zeros((rows, len(QUEUE)), np.float32)
        self.mask = np.ones((rows, rules.actions), np.int8)
        self.rewards = np.zeros(rows)
        self._baselines: dict[tuple[int, str], float] = {}
        self._actions = np.zeros(rows, np.int64)
        observed = kernel.Observations(self.seen, self.summary, self.mask, self.rewards)
        self._arguments = (self._actions, _fixed(rules.lowered(size)), log, self._environments, observed)
        self._decide = load_unchecked("decisions")
        parts = min(threads, environments)
        edges = [round(part * environments / parts) for part in range(parts + 1)]
        self._parts = list(pairwise(edges))
        self._pool = ThreadPoolExecutor(parts - 1) if parts > 1 else None

    def observed(self, which: int | slice) -> Any:
        """Return a copy of the observations of one or several environments, as in their Gymnasium spaces."""
        jobs = self.seen[which].copy()
        return jobs if self.rules.observation == "published" else {"jobs": jobs, "queue": self.summary[which].copy()}

    @property
    def over(self) -> Array:
        """Return whether the episode of each environment has ended, bool."""
        return self._over == 1

    @property
    def left(self) -> Array:
        """Return the number of jobs of each environment's episode that have not started yet, int64."""
        own = self.state[: self.count]
        return np.asarray(self._table.jobs[own.episode] - own.started)

    def step(self, actions: Array) -> None:
        """Apply an action in each environment; the action -1 - k begins episode k instead."""
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
        """Stop the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _reward(self, was_over: Array) -> None:
        """Add the rewards at the end of an episode."""
        rules = self.rules
        if rules.dense and rules.baseline is None:
            return
        if not rules.dense:
            self.rewards[: self.count] = 0.0
        for e in np.flatnonzero(self.over & ~was_over):
            if not rules.dense:
                self.rewards[e] = -self.cost(int(e))
            if rules.baseline is not None:
                self.rewards[e] += self.baseline(int(self.state[e].episode), rules.baseline)

    def cost(self, environment: int) -> float:
        """Return the metric of a finished episode (for job metrics, the mean), negated if higher is better."""
        jobs = self.episodes[self.state[environment].episode].workload
        name = self.rules.reward
        if name in REWARDS:
            return float(self.state[environment].paid) / len(jobs)
        runtime, _ = effective_times(jobs, self.rules.overrun)
        columns = {"submit": jobs.submit, "start": self.starts(environment), "runtime": runtime, "procs": jobs.procs}
        not_backfilled = np.zeros(len(jobs), np.bool_)
        load = offered_load(jobs.submit, runtime, jobs.procs, jobs.machine_procs)
        summary = summarize(**columns, backfilled=not_backfilled, machine_procs=jobs.machine_procs, offered_load=load)
        return FINAL_REWARDS[name] * float(getattr(summary, name))

    def baseline(self, episode: int, formula: str) -> float:
        """Return the `cost` of this episode when a formula decides under the same rules."""
        if (episode, formula) not in self._baselines:
            self.play(episode, formula)
            self._baselines[episode, formula] = self.cost(self.count)
        return self._baselines[episode, formula]

    def play(self, episode: int, formula: str, fill: str | None = _AS_THE_AGENT) -> Array:
        """Return the start of each job (s, int64) when a formula decides in this episode.

        `fill`: the formula for backfilling, None for no backfilling; by default as under an agent that always uses the formula.
        """
        if fill == _AS_THE_AGENT:
            fill = None if not self.rules.backfilling else "fcfs" if self.rules.fills_by_arrival else formula
        self.state[self.count].filler = -1 if fill is None else FORMULAS.index(fill)
        self.state[self.count].play = FORMULAS.index(formula)
        self._actions[self.count] = -1 - episode
        self._decide(self.count, self.count + 1, *self._arguments)
        return self.starts(self.count)

    def checked(self, environment: int, action: Any, whose: str = "") -> int:
        """Return an action as a whole number; raises PolicyError for a forbidden action, unless the first allowed one replaces it.

        `whose`: the agent that chose it, for the error.
        """
        given = np.asarray(action)
        number = int(given.item()) if given.size == 1 and given.dtype.kind in "iu" else -1
        mask = self.mask[environment] != 0
        if 0 <= number < len(mask) and (mask[number] or self.rules.invalid == "first" or self.over[environment]):
            return number
        shown, who = repr(given.item() if given.size == 1 else given.tolist()), f"the agent {whose} chose" if whose else "invalid action"
        if not 0 <= number < len(mask):
            raise PolicyError(f"{who} {shown}; an action is a whole number from 0 to {len(mask) - 1}", "unknown_action")
        allowed = ", ".join([*map(str, np.flatnonzero(mask)[:10].tolist()), *(["..."] if mask.sum() > 10 else [])])
        raise PolicyError(
            f"{who} {shown}, which the action mask forbids now. Allowed: {allowed}; with invalid='first', the first of these replaces it",
            "forbidden_action",
        )

    def starts(self, environment: int) -> Array:
        """Return the start of each job of the episode, s, int64, in order of arrival; -1 before its start."""
        episode = int(self.state[environment].episode)
        ran = int(self._table[episode].run_at_first)
        return self.start[environment, ran : ran + len(self.episodes[episode].workload)].copy()

    def waiting(self, environment: int) -> Array:
        """Return the waiting jobs in the slots, as indices into the episode's workload."""
        own = self.state[environment]
        slots = self._environments.slots[environment, : min(int(own.waiting), self.rules.shown)]
        return np.asarray(self._environments.queue[environment, slots] - int(self._table[int(own.episode)].run_at_first))


def _log(episodes: list[Episode], rules: Rules) -> kernel.Log:
    """Return the jobs of all episodes, their terms of formulas, their constant features, and the table of episodes."""
    scales = {name: max(one.scales[name] for one in episodes) for name in episodes[0].scales}
    jobs = records(kernel.JOB, sum(len(one.running) + len(one.workload) for one in episodes))
    features, table, first = [], records(kernel.EPISODE, len(episodes)), 0
    for number, one in enumerate(episodes):
        workload, ran = one.workload, one.running
        runtime, planned = effective_times(workload, rules.overrun)
        count = len(ran) + len(workload)
        own = jobs[first : first + count]
        columns = {"submit": workload.submit, "runtime": runtime, "planned": planned, "procs": workload.procs}
        for k, (name, column) in enumerate(columns.items()):
            own[name] = np.concatenate([ran[:, k], column])
        own.given = -1
        own.given[: len(ran)] = ran[:, 0]
        for name, keys in {"by_length": (own.procs, own.submit, own.planned), "by_size": (own.planned, own.submit, own.procs)}.items():
            own[name] = np.argsort(np.lexsort(keys))  # ties as in zhang20, by arrival first
        seen = constant_features(rules.observation, workload, planned, scales)
        features += [np.zeros((len(ran), seen.shape[1]), np.float32), seen]
        table[number] = (first, count, len(ran), one.waiting, one.begin)
        first += count
    terms = formula_terms(jobs.submit, jobs.planned, jobs.procs)
    return kernel.Log(_fixed(jobs), _fixed(terms), _fixed(np.vstack(features)), _fixed(table))


def _fixed(array: Any) -> Any:
    """Make an array read-only, which the compiled functions expect."""
    array.flags.writeable = False
    return array
