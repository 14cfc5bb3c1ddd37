"""Trained agents on windows that they have not seen, against formulas on the same windows, in pairs; and what they look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.learn import ppo
from walltime.learn.features import COMPACT
from walltime.learn.sources import Episode
from walltime.learn.training import TrainedAgent, load, simple_outcomes
from walltime.metrics import Interval, halves_differ, prediction_interval
from walltime.provenance import jobs_sha256, version
from walltime.simulation.windows import change_interval, in_percent, log_cost, percent
from walltime.workload import Workload

if TYPE_CHECKING:
    import polars as pl

__all__ = ["SCHEDULERS", "AgainstScheduler", "Evaluation", "Halves", "Importance", "evaluate", "verdict_of", "work"]

Array = np.ndarray
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
    """The result of `walltime.learn.evaluate`. `costs`: of each scheduler and agent, one per window; all else says itself.

    `agents`: of each the seed, the mean over windows, and the change in % against the first scheduler of `compared`, EASY.
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


def evaluate(
    agents: TrainedAgent | str | Path | Sequence[TrainedAgent | str | Path],
    workload: Workload,
    *,
    importances: bool = True,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Compare agents that were trained alike, usually with several seeds, with simple schedulers on the held-out windows of a log.

    `agents`: what `train` returned, or its folders. `workload`: the log they were trained on, or another one. All schedulers get the same
    windows, each with the jobs that the warm start has left. Costs are compared by their logarithms, so that each window counts alike, and
    changes are in %. `importances`: whether each feature is shuffled in turn, with this `seed`; `progress` is called with the number of
    schedulers, agents and features done (see `work`).

    Intervals are over five blocks of neighbouring windows (`walltime.metrics.series_interval`), as neighbours are alike, and `halves` says
    whether the log itself changes.

    Raises PolicyError for agents that were trained differently, WorkloadError for a log with fewer than two windows to test with.
    """
    several = [agents] if isinstance(agents, TrainedAgent | str | Path) else list(agents)
    trained = [one if isinstance(one, TrainedAgent) else load(one) for one in several]
    if not trained:
        raise PolicyError("there is no agent to be evaluated; name the folder of one")
    first = trained[0]
    if any((one.task, one.jobs_sha256) != (first.task, first.jobs_sha256) for one in trained):
        raise PolicyError("the agents were trained on different logs or for different tasks; evaluate them one by one")
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
    for one in trained:
        of_agents.append(one.outcomes(episodes))
        tell()
    own = [one[0] for one in of_agents]
    metric = first.task.reward
    logs = np.array([log_cost(one, metric) for one in own])
    compared = tuple(_compared(name, outcomes[name], logs, metric) for name in SCHEDULERS)
    against_easy = [percent(float((row - log_cost(costs["easy"], metric)).mean())) for row in logs]
    shown = zip(trained, own, against_easy, strict=True)
    return Evaluation(
        log=workload.origin.name,
        jobs_sha256=jobs_sha256(workload),
        trained_on=first.log,
        metric=metric,
        jobs=len(workload),
        window=first.task.window,
        agents=tuple({"seed": one.seed, "mean": float(cost.mean()), "against_easy": change} for one, cost, change in shown),
        mean=float(np.mean(own)),
        longest_wait=max(float(one[1].max()) for one in of_agents),
        compared=compared,
        importances=_importances(trained, episodes, logs, metric, seed, tell) if importances else (),
        halves=_halves(first.task.windows(workload, "all"), first.task.rules, metric),
        costs={name: cost.tolist() for name, cost in costs.items()}
        | {f"agent {number}, seed {one.seed}": cost.tolist() for number, (one, cost) in enumerate(zip(trained, own, strict=True), 1)},
    )


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
