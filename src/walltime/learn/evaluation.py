"""Compares agents with formulas on windows that the agents have not seen, in pairs, and finds out what trained ones look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.learn import ppo
from walltime.learn.batch import Batch, Rules, as_rules
from walltime.learn.features import COMPACT
from walltime.learn.sources import Episode
from walltime.learn.training import Task, TrainedAgent, load, outcome_of, simple_outcomes
from walltime.metrics import Interval, halves_differ, prediction_interval
from walltime.provenance import jobs_sha256, version
from walltime.simulation.windows import change_interval, in_percent, log_cost, percent
from walltime.workload import Workload

if TYPE_CHECKING:
    import polars as pl

Array = np.ndarray
AgentFunction = Callable[[Any, Array], int]
"""An agent of another library: from what the environment shows, and the mask of allowed actions (bool), to an action."""
_ORDERS = {"sjf": "sjf", "saf": "saf", "wfp": "wfp3", "unicef": "unicep", "f1": "f1", "f2": "f2", "f3": "f3", "f4": "f4"}
"""The orders by their names elsewhere, and as formulas of `walltime.learn.FORMULAS`."""
SCHEDULERS: dict[str, tuple[str, str | None]] = {
    "easy": ("fcfs", "fcfs"),
    "easy:backfill-order=sjf": ("fcfs", "sjf"),
    **{f"easy:order={name}": (formula, formula) for name, formula in _ORDERS.items()},
    "fcfs": ("fcfs", None),
    **{f"fcfs:order={name}": (formula, None) for name, formula in _ORDERS.items()},
}
"""The schedulers that an agent is compared with: the formulas for the queue and for backfilling (None: nobody is backfilled)."""
PAIR = ("easy:order=saf", "easy")
"""The schedulers whose difference says whether the halves of a log are alike: the agent has seen too much of the earlier one."""
CAVEATS = (
    "The intervals are of such windows of one log, over five blocks of neighbours; on another machine the agent may be worse.",
    "Each interval holds its 90 % alone. The best of so many schedulers is known only afterwards, and partly luck; the interval against it "
    "does not include that choice.",
    "Users might submit other jobs if the queue were ordered otherwise; the log's jobs stay as they are.",
    "A mean says nothing of single jobs: look at the longest waits, too.",
)
"""The caveats of every evaluation."""
SMALL = 0.1
"""How far a feature is moved to see what it does to scores."""


@dataclass(frozen=True)
class AgainstScheduler:
    """A scheduler on the held-out windows, and the agents against it.

    `mean`: over windows. `longest_wait`: of any job, s. `change`: the agents' cost against it in %, less is better; the interval is over
    five blocks of neighbouring windows, in each of which the agents count as one. `over_seeds`: where the change by one further agent
    would lie with a probability of 90 %; None for a single one.
    """

    scheduler: str
    mean: float
    longest_wait: float
    change: Interval
    over_seeds: Interval | None

    @property
    def is_clear(self) -> bool:
        """Whether neither interval contains 0: not that of the mean over such windows, nor that of one further agent."""
        return all(one is None or one.low > 0 or one.high < 0 for one in (self.change, self.over_seeds))


@dataclass(frozen=True)
class Importance:
    """A feature: by how much the cost grows where its values are shuffled, %, over windows; and what it does to a job's score.

    `slope`: the mean change of the score where the feature is greater by 0.1; None for features of the queue, which all jobs share.
    """

    feature: str
    loss: Interval
    slope: float | None


@dataclass(frozen=True)
class Halves:
    """The change in % from EASY to smallest area first in the halves of a log, and whether these differ beyond chance."""

    early: float
    late: float
    differ: bool


def verdict_of(metric: str, compared: Sequence[AgainstScheduler], windows: int) -> tuple[str, ...]:
    """What came out on so many windows, in sentences: against the best of all schedulers on them, EASY, and EASY in the order F4."""
    by_name = {one.scheduler: one for one in compared}
    hardest = max(compared, key=lambda one: one.change.mean)
    others = f"{len(compared)} other schedulers"
    if not hardest.is_clear:
        said = f"Between the agent and the best of {others} on these windows, {hardest.scheduler}, there is no clear difference."
    elif hardest.change.mean > 0:
        said = f"On these windows the best of {others}, {hardest.scheduler}, is better than the agent."
    else:
        said = f"On these windows the agent is better than each of {others}; {hardest.scheduler} comes nearest."
    chosen = dict.fromkeys((hardest.scheduler, "easy", "easy:order=f4"))
    return (said, *(_sentence(metric, by_name[name], windows) for name in chosen))


def _sentence(metric: str, one: AgainstScheduler, windows: int) -> str:
    name = metric.replace("_", " ")
    span = one.change.as_change("such windows", f"{windows} held out")
    if not one.is_clear:
        return f"Its {name} does not clearly differ from that of {one.scheduler}: {span}."
    return f"Its {name} is {'lower' if one.change.mean < 0 else 'higher'} than that of {one.scheduler}: {span}."


@dataclass(frozen=True)
class Evaluation:
    """Hold the result of `walltime.learn.evaluate`.

    `costs`: of each scheduler and agent, one per window. `agents`: of each the seed, or the name of a function, the mean over windows, and
    the change in % against the first scheduler of `compared`, EASY. `trained_on`: the log; empty for functions.
    """

    log: str
    jobs_sha256: str
    trained_on: str
    metric: str
    jobs: int
    window: int
    agents: tuple[dict[str, Any], ...]
    mean: float
    longest_wait: float
    compared: tuple[AgainstScheduler, ...]
    importances: tuple[Importance, ...]
    halves: Halves
    costs: dict[str, list[float]]

    @property
    def windows(self) -> int:
        """How many windows were held out."""
        return len(self.costs["easy"])

    @property
    def verdict(self) -> tuple[str, ...]:
        """What came out, in sentences."""
        return verdict_of(self.metric, self.compared, self.windows)

    @property
    def caveats(self) -> tuple[str, ...]:
        """The caveats, in sentences."""
        if not self.halves.differ:
            return CAVEATS
        early, late = (f"{change:+.0f} %" for change in (self.halves.early, self.halves.late))
        return (
            f"The halves of this log differ: {PAIR[0]} changes the {self.metric.replace('_', ' ')} of {PAIR[1]} by {early} in the earlier "
            f"one and by {late} in the later one. So the intervals are of these months only: other months of this log lie outside far more "
            "often than one time in ten.",
            *CAVEATS,
        )

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        compared = [asdict(one) | {"is_clear": one.is_clear} for one in self.compared]
        words = {"verdict": list(self.verdict), "caveats": list(self.caveats)}
        return asdict(self) | {"compared": compared, "windows": self.windows, "version": version()} | words

    def table(self) -> pl.DataFrame:
        """A row for each window: its number, and the cost of each scheduler and agent."""
        import polars as pl

        return pl.DataFrame({"window": np.arange(self.windows), **self.costs})


@dataclass(frozen=True)
class _FunctionAgent:
    """A function that decides in environments with these rules."""

    decide: AgentFunction
    task: Task
    rules: Rules

    @property
    def name(self) -> str:
        """The function's name, or its class."""
        return str(getattr(self.decide, "__name__", type(self.decide).__name__))

    def outcomes(self, episodes: list[Episode]) -> Array:
        """Return the cost of each episode, and its longest wait, s; float64, two rows."""
        batch, outcomes = Batch(episodes, self.rules), []
        for number, one in enumerate(episodes):
            batch.step(np.array([-1 - number]))
            while not batch.over[0]:
                batch.step(np.array([self._action(batch)]))
            outcomes.append(outcome_of(batch, 0, one))
        return np.array(outcomes).T

    def _action(self, batch: Batch) -> int:
        given = np.asarray(self.decide(batch.observed(0), batch.mask[0] != 0))
        if given.size != 1 or given.dtype.kind not in "iu" or not 0 <= given.item() < self.rules.actions:
            shown = repr(given.item() if given.size == 1 else given.tolist())
            raise PolicyError(
                f"the agent {self.name} chose {shown}; an action is a whole number from 0 to {self.rules.actions - 1}", "unknown_action"
            )
        return int(given.item())


def evaluate(
    agents: TrainedAgent | str | Path | AgentFunction | Sequence[TrainedAgent | str | Path | AgentFunction],
    workload: Workload,
    *,
    task: Task | None = None,
    importances: bool = True,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Evaluation:
    """Compare agents that were trained alike, usually with several seeds, with simple schedulers on the held-out windows of a log.

    `agents`: what `train` returned, or its folders; or functions, each called with what `BackfillingEnv` shows and the mask of allowed
    actions (bool), and returning an action, so that agents of other libraries are judged in the same way. For functions `task` names the
    windows and the metric (default: `Task()`), and `options` are those of the environment in which they were trained, such as `decision`
    and `slots`; a trained agent has both of its own. `workload`: the log they were trained on, or another one. All schedulers get the same
    windows, each with the jobs that the warm start has left. Costs are compared by their logarithms, so that each window counts alike, and
    changes are in %. `importances`: whether each feature of trained agents is shuffled in turn, with this `seed`; functions have no
    importances. `progress` is called with the number of schedulers, agents and features done (see `work`).

    Intervals are over five blocks of neighbouring windows (`walltime.metrics.series_interval`), as neighbours are alike, and `halves` says
    whether the log itself changes.

    Raises PolicyError for agents that were trained differently, unknown options, and an action that is not one; WorkloadError for a log
    with fewer than two windows to test with.

    >>> import walltime as wt
    >>> log = wt.workloads.Lublin99().generate(jobs=1000, machine_procs=32, load=0.8, seed=1)
    >>> def first_come(observation, mask):
    ...     return mask.argmax()
    >>> found = evaluate(first_come, log, task=Task(window=32), decision="next")
    >>> found.compared[0].scheduler, found.compared[0].change.mean  # this agent is EASY
    ('easy', 0.0)
    """
    judged = _agents(agents, task, options)
    first = judged[0]
    trained = [one for one in judged if isinstance(one, TrainedAgent)]
    episodes = first.task.windows(workload, "test")
    if len(episodes) < 2:
        raise WorkloadError("one window to test with is too few for an interval; take a longer log, or train with shorter windows")
    done = 0

    def tell() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done)

    outcomes: dict[str, Array] = {}
    for name, orders in SCHEDULERS.items():
        outcomes[name] = simple_outcomes(episodes, first.task.rules, orders)
        tell()
    costs = {name: one[0] for name, one in outcomes.items()}
    of_agents = []
    for one in judged:
        of_agents.append(one.outcomes(episodes))
        tell()
    own = [one[0] for one in of_agents]
    metric = first.task.reward
    logs = np.array([log_cost(one, metric) for one in own])
    compared = tuple(_compared(name, outcomes[name], logs, metric) for name in SCHEDULERS)
    against_easy = [percent(float((row - log_cost(costs["easy"], metric)).mean())) for row in logs]
    named = [{"seed": one.seed} if isinstance(one, TrainedAgent) else {"name": one.name} for one in judged]
    labels = [f"seed {one.seed}" if isinstance(one, TrainedAgent) else one.name for one in judged]
    return Evaluation(
        log=workload.origin.name,
        jobs_sha256=jobs_sha256(workload),
        trained_on=trained[0].log if trained else "",
        metric=metric,
        jobs=len(workload),
        window=first.task.window,
        agents=tuple(
            name | {"mean": float(cost.mean()), "against_easy": change} for name, cost, change in zip(named, own, against_easy, strict=True)
        ),
        mean=float(np.mean(own)),
        longest_wait=max(float(one[1].max()) for one in of_agents),
        compared=compared,
        importances=_importances(trained, episodes, logs, metric, seed, tell) if importances and trained else (),
        halves=_halves(first.task.windows(workload, "all"), first.task.rules, metric),
        costs={name: cost.tolist() for name, cost in costs.items()}
        | {f"agent {number}, {label}": cost.tolist() for number, (label, cost) in enumerate(zip(labels, own, strict=True), 1)},
    )


def _agents(given: Any, task: Task | None, options: dict[str, Any]) -> list[TrainedAgent] | list[_FunctionAgent]:
    """Return the agents to compare, at least one, all trained or all functions; raises PolicyError as `evaluate` does."""
    kept = TrainedAgent | str | Path
    several = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    if not several:
        raise PolicyError("there is no agent to be evaluated; name the folder of one", "no_agent")
    functions = [one for one in several if not isinstance(one, kept)]
    if wrong := [one for one in functions if not callable(one)]:
        raise PolicyError(f"an agent is what train returned, its folder, or a function, not {wrong[0]!r}", "wrong_type")
    if functions:
        if len(functions) < len(several):
            raise PolicyError("trained agents and functions cannot be evaluated together; evaluate them one by one", "mixed_agents")
        task = task or Task()
        own = {name: getattr(task, name) for name in ("reward", "skip", "overrun")}
        if twice := next((name for name in options if name in own), None):
            raise PolicyError(f"the option {twice} belongs to the task; use task=Task({twice}={options[twice]!r})", "conflicting_options")
        rules = as_rules(own | options)
        return [_FunctionAgent(one, task, rules) for one in functions]
    if task is not None or options:
        raise PolicyError(
            "a trained agent has its own task and options; leave out task and the options of the environment", "conflicting_options"
        )
    trained = [one if isinstance(one, TrainedAgent) else load(one) for one in several]
    if any((one.task, one.jobs_sha256) != (trained[0].task, trained[0].jobs_sha256) for one in trained):
        raise PolicyError("the agents were trained on different logs or for different tasks; evaluate them one by one", "mixed_agents")
    return trained


def work(agents: int, importances: bool = True) -> int:
    """What there is to be done, as `progress` counts it."""
    return len(SCHEDULERS) + agents * (1 + importances * len(_shuffled()))


def _compared(name: str, outcome: Array, agents: Array, metric: str) -> AgainstScheduler:
    """The agents (logarithms, agents x windows) against a scheduler."""
    costs, longest = outcome
    differences = agents - log_cost(costs, metric)
    over_seeds = in_percent(prediction_interval(differences.mean(axis=1))) if len(agents) > 1 else None
    return AgainstScheduler(name, float(costs.mean()), float(longest.max()), change_interval(differences.mean(axis=0)), over_seeds)


def _halves(episodes: list[Episode], rules: Any, metric: str) -> Halves:
    """Whether the halves of the whole log differ in what one scheduler gains over another."""
    one, other = (log_cost(simple_outcomes(episodes, rules, SCHEDULERS[name])[0], metric) for name in PAIR)
    gain = one - other
    middle = len(gain) // 2
    return Halves(percent(float(gain[:middle].mean())), percent(float(gain[middle:].mean())), halves_differ(gain))


def _shuffled() -> list[int]:
    """The inputs that mean something: all but whether a job waits."""
    return [number for number, name in enumerate(ppo.INPUTS) if name != "waits"]


def _importances(
    trained: list[TrainedAgent], episodes: list[Episode], logs: Array, metric: str, seed: int, tell: Callable[[], None]
) -> tuple[Importance, ...]:
    """Each feature shuffled among all that is seen at the same step of all windows, in turn; the most important one first."""
    slopes = np.mean([_slopes(one, episodes, seed) for one in trained], axis=0)
    importances = []
    for column in _shuffled():
        losses = []
        for own, before in zip(trained, logs, strict=True):
            draw = np.random.default_rng([seed, column])
            losses.append(log_cost(own.costs(episodes, _shuffler(column, draw)), metric) - before)
            tell()
        slope = float(slopes[column]) if column < len(COMPACT) else None
        importances.append(Importance(ppo.INPUTS[column], change_interval(np.mean(losses, axis=0)), slope))
    return tuple(sorted(importances, key=lambda one: -one.loss.mean))


def _shuffler(column: int, draw: np.random.Generator) -> Callable[[Array, Array], None]:
    """Shuffles a feature of the jobs among the jobs, one of the queue among the decisions."""

    def shuffle(seen: Array, first: Array) -> None:
        if column < len(COMPACT):
            seen[:, column] = draw.permutation(seen[:, column])
        else:
            seen[:, column] = np.repeat(draw.permutation(seen[first, column]), np.diff(first, append=len(seen)))

    return shuffle


def _slopes(trained: TrainedAgent, episodes: list[Episode], seed: int) -> Array:
    """The mean change of the score of a job where a feature is greater by a little, over what the agent meets."""
    met: list[Array] = []
    draw = np.random.default_rng(seed)

    def keep(seen: Array, first: Array) -> None:
        met.append(seen[draw.random(len(seen)) < 0.1].copy())

    trained.costs(episodes, keep)
    seen = np.concatenate(met)
    slopes = np.zeros(len(ppo.INPUTS))
    before = trained.agent.scores(seen)
    for column in range(len(COMPACT)):
        more = seen.copy()
        more[:, column] += np.float32(SMALL)
        slopes[column] = float((trained.agent.scores(more) - before).mean())
    return slopes
