"""Compare agents with formulas on held-out windows, in pairs, and show the results as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.estimates.base import effective_times
from walltime.learn.batch import Batch, Rules, parse_rules
from walltime.learn.sources import Episode
from walltime.learn.training import Outcomes, Task, TrainedAgent, formula_outcomes, load, outcome_of
from walltime.metrics import Interval, halves_differ, prediction_interval
from walltime.provenance import jobs_sha256, version
from walltime.report.changes import change_ends, metric_name
from walltime.simulation.windows import change_interval, in_percent, log_cost, percent
from walltime.tables import Row, Table
from walltime.wording import human_number
from walltime.workload import Array, Workload

if TYPE_CHECKING:
    import polars as pl

    from walltime.schedule import Schedule

AgentFunction = Callable[[Any, Array], int]
"""An agent of another library: a function from the observation and the mask of allowed actions (bool) to an action."""
_ORDERS = {"sjf": "sjf", "saf": "saf", "wfp": "wfp3", "unicef": "unicep", "f1": "f1", "f2": "f2", "f3": "f3", "f4": "f4"}
"""Formulas of `walltime.learn.FORMULAS`, by the name of the order."""
SCHEDULERS: dict[str, tuple[str, str | None]] = {
    "easy": ("fcfs", "fcfs"),
    "easy:backfill-order=sjf": ("fcfs", "sjf"),
    **{f"easy:order={name}": (formula, formula) for name, formula in _ORDERS.items()},
    "fcfs": ("fcfs", None),
    **{f"fcfs:order={name}": (formula, None) for name, formula in _ORDERS.items()},
}
"""The schedulers with which agents are compared: formulas for the queue and for backfilling (None for no backfilling)."""
PAIR = ("easy:order=saf", "easy")
"""The schedulers whose difference shows whether the halves of a log are similar; agents saw too much of the earlier half in training."""
CAVEATS = (
    "The intervals cover the sampling of windows of one log, in five blocks of neighbours; the agent may be worse on other machines.",
    "Each interval has a coverage of 90 % on its own. The best of many schedulers is partly lucky (selection bias), which its interval "
    "ignores.",
    "Users might submit different jobs under another order; the simulated jobs are the log's.",
    "A mean hides individual jobs: check the longest waits as well.",
)
"""Caveats of every evaluation."""


@dataclass(frozen=True)
class AgainstScheduler:
    """The result of a scheduler on the held-out windows, and the change from it to the agents.

    `mean`: mean cost over windows. `longest_wait`: longest wait of any job, s. `change`: change of the agents' cost in %, lower is better;
    the interval is over five blocks of neighbouring windows, with the agents averaged. `over_seeds`: 90 % prediction interval for one
    additional agent; None for a single one.
    """

    scheduler: str
    mean: float
    longest_wait: float
    change: Interval
    over_seeds: Interval | None

    @property
    def is_clear(self) -> bool:
        """Return whether neither interval, over windows and for one more agent, contains 0."""
        return all(one is None or one.low > 0 or one.high < 0 for one in (self.change, self.over_seeds))


@dataclass(frozen=True)
class Halves:
    """The change in % from EASY to smallest area first in each half of a log, and whether the two differ beyond chance."""

    early: float
    late: float
    differ: bool


def verdict_of(metric: str, compared: Sequence[AgainstScheduler], windows: int) -> tuple[str, ...]:
    """Return sentences that compare the agents with the best scheduler on these windows, EASY, and EASY with order F4."""
    by_name = {one.scheduler: one for one in compared}
    best = max(compared, key=lambda one: one.change.mean)
    others = f"{len(compared)} other schedulers"
    if not best.is_clear:
        answer = f"On these windows, the agent does not clearly differ from the best of {others}, {best.scheduler}."
    elif best.change.mean > 0:
        answer = f"On these windows, the best of {others}, {best.scheduler}, is better than the agent."
    else:
        answer = f"On these windows, the agent is better than each of {others}; {best.scheduler} comes closest."
    chosen = dict.fromkeys((best.scheduler, "easy", "easy:order=f4"))
    return (answer, *(_sentence(metric, by_name[name], windows) for name in chosen))


def _sentence(metric: str, one: AgainstScheduler, windows: int) -> str:
    name = metric.replace("_", " ")
    span = one.change.as_change("sampling of windows", f"{windows} held out")
    if not one.is_clear:
        return f"The agent's {name} does not clearly differ from {one.scheduler}: {span}."
    return f"The agent's {name} is {'lower' if one.change.mean < 0 else 'higher'} than under {one.scheduler}: {span}."


@dataclass(frozen=True)
class Evaluation:
    """The result of `walltime.learn.evaluate`.

    `costs`: the costs of each scheduler and agent, one per window. `agents`: the seed of each (for functions, the name), its mean cost over
    windows, and its change in % against the first scheduler of `compared`, EASY. `trained_on`: the log; empty for functions. `episodes`,
    `starts`: the windows, and the starts of their jobs (s, int64) by scheduler and agent, for `schedules`.
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
    halves: Halves
    costs: dict[str, list[float]]
    episodes: tuple[Episode, ...] = field(repr=False, compare=False)
    starts: dict[str, list[Array]] = field(repr=False, compare=False)
    overrun: str = "kill"

    def schedules(self, name: str) -> list[Schedule]:
        """Return the schedules of a scheduler or an agent, by its name in `costs`, one per window, for metrics, figures and the auditor.

        A schedule has the jobs that wait at the beginning of the window or arrive in it; jobs that run at its beginning are missing.
        """
        from walltime.schedule import Schedule

        if name not in self.starts:
            raise PolicyError(f"unknown scheduler {name!r}. Valid names: {', '.join(self.starts)}", "unknown_scheduler")
        found = []
        for one, start in zip(self.episodes, self.starts[name], strict=True):
            columns = {"job_id": one.workload.job_id, "start": start, "end": start + effective_times(one.workload, self.overrun)[0]}
            found.append(Schedule.from_table(columns, one.workload, name))
        return found

    @property
    def windows(self) -> int:
        """Return the number of held-out windows."""
        return len(self.costs["easy"])

    @property
    def verdict(self) -> tuple[str, ...]:
        """Return sentences on the result."""
        return verdict_of(self.metric, self.compared, self.windows)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Return the caveats, in sentences."""
        if not self.halves.differ:
            return CAVEATS
        early, late = (f"{change:+.0f} %" for change in (self.halves.early, self.halves.late))
        return (
            f"The halves of this log differ: {PAIR[0]} changes the {self.metric.replace('_', ' ')} of {PAIR[1]} by {early} in the earlier "
            f"half and by {late} in the later half. The intervals therefore hold for these months only; other months of this log lie "
            "outside them far more often than one time in ten.",
            *CAVEATS,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary of plain values."""
        compared = [asdict(one) | {"is_clear": one.is_clear} for one in self.compared]
        words = {"verdict": list(self.verdict), "caveats": list(self.caveats)}
        hidden = ("episodes", "starts", "overrun", "compared")
        plain = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in hidden}
        return plain | {"halves": asdict(self.halves), "compared": compared, "windows": self.windows, "version": version()} | words

    def table(self) -> pl.DataFrame:
        """Return a polars DataFrame with a row per window: its number, and the cost of each scheduler and agent."""
        import polars as pl

        return pl.DataFrame({"window": np.arange(self.windows), **self.costs})


@dataclass(frozen=True)
class _FunctionAgent:
    """A function that acts as an agent in environments with these rules."""

    decide: AgentFunction
    task: Task
    rules: Rules

    @property
    def name(self) -> str:
        """Return the function's name, or its class."""
        return str(getattr(self.decide, "__name__", type(self.decide).__name__))

    def outcomes(self, episodes: list[Episode]) -> Outcomes:
        """Return the outcomes of all episodes."""
        batch, outcomes = Batch(episodes, self.rules), []
        for number, one in enumerate(episodes):
            batch.step(np.array([-1 - number]))
            while not batch.over[0]:
                batch.step(np.array([batch.checked(0, self.decide(batch.observed(0), batch.mask[0] != 0), self.name)]))
            outcomes.append(outcome_of(batch, 0, one))
        return Outcomes.of(outcomes)


def evaluate(
    agents: TrainedAgent | str | Path | AgentFunction | Sequence[TrainedAgent | str | Path | AgentFunction],
    workload: Workload,
    *,
    task: Task | None = None,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Evaluation:
    """Compare agents of one kind, usually with several seeds, with simple schedulers on the held-out windows of a log.

    `agents`: results of `train`, or their folders; or functions from an observation of `BackfillingEnv` and the mask of allowed actions
    (bool) to an action, for agents of other libraries. For functions, `task` names the windows and the metric (default: `Task()`), and
    `options` are those of the training environment, such as `decision` and `slots`; trained agents store theirs. `workload`: the log of the
    training, or another. All schedulers get the same windows with the jobs of the warm start. Costs are compared by their logarithms,
    so that windows count equally, and changes are in %.
    `progress` is called with the number of finished schedulers and agents (see `count_steps`).

    Intervals are over five blocks of neighbouring windows (`walltime.metrics.series_interval`), as neighbours are alike; `halves` shows
    whether the log itself changes.

    Raises PolicyError for agents with different training, unknown options, and an invalid action; WorkloadError for a log with fewer than
    two test windows.

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
        raise WorkloadError("an interval needs at least two test windows; use a longer log, or train with shorter windows")
    names: list[dict[str, Any]] = [{"seed": one.seed} if isinstance(one, TrainedAgent) else {"name": one.name} for one in judged]
    texts = [f"seed {one.seed}" if isinstance(one, TrainedAgent) else one.name for one in judged]
    labels = [f"agent {number}, {text}" for number, text in enumerate(texts, 1)]
    players = {name: partial(formula_outcomes, episodes, first.task.rules, orders) for name, orders in SCHEDULERS.items()}
    players |= dict(zip(labels, [partial(one.outcomes, episodes) for one in judged], strict=True))
    outcomes: dict[str, Outcomes] = {}
    for number, (name, play) in enumerate(players.items(), 1):
        outcomes[name] = play()
        if progress is not None:
            progress(number)
    metric = first.task.reward
    costs = {name: outcome[0] for name, outcome in outcomes.items()}
    logs = np.array([log_cost(costs[label], metric) for label in labels])
    against_easy = [percent(float((row - log_cost(costs["easy"], metric)).mean())) for row in logs]
    means = [float(costs[label].mean()) for label in labels]
    return Evaluation(
        log=workload.origin.name,
        jobs_sha256=jobs_sha256(workload),
        trained_on=trained[0].log if trained else "",
        metric=metric,
        jobs=len(workload),
        window=first.task.window,
        agents=tuple(name | {"mean": mean, "against_easy": to} for name, mean, to in zip(names, means, against_easy, strict=True)),
        mean=float(np.mean([costs[label] for label in labels])),
        longest_wait=max(float(outcomes[label][1].max()) for label in labels),
        compared=tuple(_compare(name, outcomes[name], logs, metric) for name in SCHEDULERS),
        halves=_halves(first.task.windows(workload, "all"), first.task.rules, metric),
        costs={name: cost.tolist() for name, cost in costs.items()},
        episodes=tuple(episodes),
        starts={name: outcome[2] for name, outcome in outcomes.items()},
        overrun=first.task.rules.overrun,
    )


def _agents(given: Any, task: Task | None, options: dict[str, Any]) -> list[TrainedAgent] | list[_FunctionAgent]:
    """Return the agents to compare, which are all trained agents or all functions; raises the errors of `evaluate`."""
    several = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    if not several:
        raise PolicyError("evaluate needs at least one agent, such as a folder of train", "no_agent")
    functions = [one for one in several if not isinstance(one, TrainedAgent | str | Path)]
    if wrong := [one for one in functions if not callable(one)]:
        raise PolicyError(f"an agent must be a result of train, its folder, or a function, not {wrong[0]!r}", "wrong_type")
    if functions:
        if len(functions) < len(several):
            raise PolicyError("trained agents and functions cannot be evaluated together; evaluate them separately", "mixed_agents")
        task = task or Task()
        own = {name: getattr(task, name) for name in ("reward", "skip", "overrun")}
        if twice := next((name for name in options if name in own), None):
            raise PolicyError(f"the option {twice} belongs to the task; use task=Task({twice}={options[twice]!r})", "conflicting_options")
        rules = parse_rules(own | options)
        return [_FunctionAgent(one, task, rules) for one in functions]
    if task is not None or options:
        raise PolicyError("a trained agent has its own task and options; leave out task and options", "conflicting_options")
    trained = [one if isinstance(one, TrainedAgent) else load(one) for one in several]
    if any((one.task, one.jobs_sha256) != (trained[0].task, trained[0].jobs_sha256) for one in trained):
        raise PolicyError("the agents were trained on different logs or for different tasks; evaluate them separately", "mixed_agents")
    return trained


def count_steps(agents: int) -> int:
    """Return the number of steps that `progress` counts."""
    return len(SCHEDULERS) + agents


def _compare(name: str, outcome: Outcomes, agents: Array, metric: str) -> AgainstScheduler:
    """Return the comparison of agents (logarithms of costs, shape (agents, windows)) with a scheduler."""
    costs, longest, _ = outcome
    differences = agents - log_cost(costs, metric)
    over_seeds = in_percent(prediction_interval(differences.mean(axis=1))) if len(agents) > 1 else None
    return AgainstScheduler(name, float(costs.mean()), float(longest.max()), change_interval(differences.mean(axis=0)), over_seeds)


def _halves(episodes: list[Episode], rules: Any, metric: str) -> Halves:
    """Return the change from EASY to smallest area first in each half of the whole log."""
    one, other = (log_cost(formula_outcomes(episodes, rules, SCHEDULERS[name])[0], metric) for name in PAIR)
    gain = one - other
    middle = len(gain) // 2
    return Halves(percent(float(gain[:middle].mean())), percent(float(gain[middle:].mean())), halves_differ(gain))


def learned_tables(evaluation: Evaluation) -> list[Table]:
    """Return the tables of agents and schedulers."""
    rows: list[Row] = [["agent", human_number(evaluation.mean), _days(evaluation.longest_wait), "", "", "", ""]]
    for one in evaluation.compared:
        verdict = "no clear difference" if not one.is_clear else "the agent is better" if one.change.mean < 0 else "the agent is worse"
        rows.append([one.scheduler, human_number(one.mean), _days(one.longest_wait), *change_ends(one.change), verdict])
    seeds = f"{len(evaluation.agents)} agent{'s' * (len(evaluation.agents) > 1)}"
    trained = f" trained on {evaluation.trained_on}" if evaluation.trained_on else ""
    title = f"{evaluation.log}: {evaluation.windows} held-out windows of {evaluation.window} jobs, {seeds}{trained}"
    head = (
        "scheduler",
        f"mean {metric_name(evaluation.metric)}",
        "longest wait",
        "agent compared with it",
        "90 % interval from",
        "to",
        "verdict",
    )
    return [Table(head, rows, title)]


def _days(seconds: float) -> str:
    return f"{seconds / 86_400:.1f} d"
