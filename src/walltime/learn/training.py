"""Training of an agent (ppo.py) on a log, in a folder: it can be stopped and resumed at any time; and which episodes are worth it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from walltime.errors import OutputError, PolicyError, WorkloadError
from walltime.files import whole_file
from walltime.learn import ppo
from walltime.learn.batch import REWARDS, Batch, Rules, as_rules
from walltime.learn.features import FORMULAS
from walltime.learn.sources import Episode, as_episodes, windows
from walltime.permission import NotRunError, check_data
from walltime.provenance import jobs_sha256, version
from walltime.simulation.windows import log_cost
from walltime.wording import printable
from walltime.workload import Workload, check_workload

Array = np.ndarray
SIMPLE = ("saf", "saf")
"""The order of the queue and of backfilling of the simple scheduler that costs are divided by: smallest area first."""
VALIDATION = 0.2
"""The share of the training windows, the last ones, that choose which state of the agent is kept."""
EVERY = 5
"""Iterations between two looks at these."""
SETTINGS, STATE, PROGRESS = "settings.json", "agent.npz", "progress.json"
FIXED: dict[str, Any] = {"decision": "both", "slots": 128}
"""What every agent decides, and of how many waiting jobs it chooses (see `walltime.learn.BackfillingEnv`); its settings name it."""


@dataclass(frozen=True)
class Task:
    """Describe what is to be learned, on which windows of a log.

    The agent decides which of the first 128 waiting jobs comes next, and which of them are backfilled. `skip`, `reward`, `overrun`: see
    `walltime.learn.BackfillingEnv`; `window` (jobs), `warm`, `test_share`: see `walltime.learn.windows`. Raises PolicyError for a reward
    that is known only at the end, and for an impossible share.
    """

    reward: str = "bounded_slowdown"
    skip: bool = False
    window: int = 256
    warm: str | None = "easy"
    test_share: float = 0.3
    overrun: str = "kill"

    def __post_init__(self) -> None:
        if self.reward not in REWARDS:
            raise PolicyError(
                f"this agent cannot be trained with the reward {self.reward}; it learns with {', '.join(REWARDS)}", "unknown_reward"
            )
        if not 0 < self.test_share < 1:
            raise PolicyError(f"the share of the log for the test must be between 0 and 1, not {self.test_share!r}", "number_out_of_range")

    @property
    def rules(self) -> Rules:
        """Return the rules of the environments."""
        return Rules(**FIXED, reward=self.reward, overrun=self.overrun, skip=self.skip)

    def windows(self, workload: Workload, part: str) -> list[Episode]:
        """The windows of a log to `train` or to `test` with."""
        return windows(workload, self.window, part=part, test_share=self.test_share, warm=self.warm, overrun=self.overrun)


_DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError)
"""What a file of an agent raises that is not as it was written."""


@dataclass(frozen=True)
class TrainedAgent:
    """An agent as it was kept: the state that was best on the validation windows.

    `log`, `jobs_sha256`: what it was trained on. `done`: iterations, of those that `settings` ask for. `source`: how the command line read
    the log. `progress`: a row for each iteration.
    """

    agent: ppo.Agent
    task: Task
    settings: ppo.TrainingSettings
    seed: int
    log: str
    jobs_sha256: str
    done: int
    source: Mapping[str, Any]
    progress: tuple[dict[str, Any], ...]

    @property
    def is_finished(self) -> bool:
        """Whether all of its training is done."""
        return self.done >= self.settings.iterations

    def costs(self, episodes: list[Episode], change: Callable[[Array, Array], None] | None = None) -> Array:
        """What its schedules of these episodes cost, each a mean over jobs; float64. `change`: see `walltime.learn.ppo.play`."""
        return self.outcomes(episodes, change)[0]

    def outcomes(self, episodes: list[Episode], change: Callable[[Array, Array], None] | None = None) -> Array:
        """The same, and the longest wait in each episode, s; float64, two rows."""
        batch = Batch(episodes, self.task.rules, len(episodes))
        ppo.play(batch, np.arange(len(episodes)), self.agent, change=change)
        return np.array([outcome_of(batch, number, one) for number, one in enumerate(episodes)]).T

    def starts(self, jobs: Workload | Episode) -> Array:
        """The start of each job under this agent, s, int64, in order of arrival; the log of an episode, or a whole one."""
        batch = Batch(as_episodes(jobs), self.task.rules)
        ppo.play(batch, np.zeros(1, np.int64), self.agent)
        return batch.starts(0)


def simple_costs(episodes: list[Episode], rules: Rules, orders: tuple[str, str | None] = SIMPLE) -> Array:
    """What a formula for the queue and one for backfilling (None: nobody is backfilled) cost in each episode, float64."""
    return simple_outcomes(episodes, rules, orders)[0]


def simple_outcomes(episodes: list[Episode], rules: Rules, orders: tuple[str, str | None]) -> Array:
    """The same, and the longest wait in each episode, s; float64, two rows."""
    batch, outcomes = Batch(episodes, rules), []
    for number, one in enumerate(episodes):
        batch.play(number, *orders)
        outcomes.append(outcome_of(batch, batch.count, one))
    return np.array(outcomes).T


def outcome_of(batch: Batch, environment: int, episode: Episode) -> tuple[float, float]:
    """Return the cost of a finished episode, and its longest wait, s."""
    return batch.cost(environment), float((batch.starts(environment) - episode.workload.submit).max())


@dataclass(frozen=True)
class _Lesson:
    """A log to learn from: the early windows and what a simple scheduler costs there, and later ones that choose among the states."""

    batch: Batch
    scales: Array
    late: list[Episode]
    simple: Array

    @classmethod
    def of(cls, workload: Workload, task: Task, settings: ppo.TrainingSettings) -> _Lesson:
        check_workload(workload)
        early = task.windows(workload, "train")
        kept = max(1, round(len(early) * VALIDATION))
        if len(early) < 4:
            raise WorkloadError(
                f"{len(early)} windows of {task.window} jobs are too few to train with; take shorter windows or a longer log",
                "too_few_windows",
            )
        early, late = early[: -kept - 1], early[-kept:]  # one between the two is left out
        scales = np.maximum(simple_costs(early, task.rules), 1.0)
        return cls(Batch(early, task.rules, settings.together), scales, late, simple_costs(late, task.rules))

    def judged(self, now: TrainedAgent) -> float:
        """What an agent's schedules of the later windows cost, over the simple scheduler's."""
        return against(now.costs(self.late), self.simple, now.task.reward)


def train(
    workload: Workload | Sequence[Workload],
    out: str | Path,
    *,
    seed: int = 0,
    task: Task | None = None,
    settings: ppo.TrainingSettings | None = None,
    minutes: float | None = None,
    source: Mapping[str, Any] | None = None,
    progress: Callable[[int], None] | None = None,
) -> TrainedAgent:
    """Train an agent on the early windows of a log, or of several in turn; the later ones stay unseen for `evaluate`.

    `workload`: each iteration plays one of them; the state that is kept is the best in the mean over all. `out`: the folder that
    keeps the agent, after every iteration; the same call goes on from there, and gives the same bytes as one that
    was never stopped. `task`: what is to be learned. `settings`: how. `minutes`: stop after so many, to be resumed. `source` is kept with
    the agent. `progress` is called with the number of episodes played.

    Raises PolicyError for impossible settings, WorkloadError for a log too short for four training windows, OutputError for a folder that
    has an agent of other settings or another log, or cannot be written.
    """
    logs = [workload] if isinstance(workload, Workload) else list(workload)
    task, settings = task or Task(), settings or ppo.TrainingSettings()
    lessons = [_Lesson.of(one, task, settings) for one in logs]
    if not lessons:
        raise WorkloadError("an agent needs a log to learn from")
    plan: dict[str, Any] = {
        "log": ", ".join(one.origin.name for one in logs),
        "jobs_sha256": ", ".join(map(jobs_sha256, logs)),
        "version": version(),
    }
    plan |= {"seed": seed, "task": FIXED | asdict(task), "settings": json.loads(json.dumps(asdict(settings))), "source": dict(source or {})}
    folder = _Folder(Path(out), plan)
    agent = ppo.Agent(settings, np.random.default_rng([seed]))
    best = _Best(agent, settings)
    done, rows = folder.restore(agent, best)
    begin, cpu = time.perf_counter(), time.process_time()
    before = (rows[-1]["seconds"], rows[-1]["cpu_seconds"]) if rows else (0.0, 0.0)
    while done < settings.iterations:
        lesson = lessons[done % len(lessons)]
        row = ppo.iterate(lesson.batch, agent, settings, done, seed, lesson.scales)
        done += 1
        rows.append({"iteration": done, **row})
        if done % EVERY == 0 or done == settings.iterations:
            now = _trained(agent, task, settings, plan, done, rows)
            rows[-1]["validation"] = float(np.exp(np.mean([np.log(one.judged(now)) for one in lessons])))
            best.take(agent, rows[-1]["validation"])
        seconds = time.perf_counter() - begin
        rows[-1] |= {"seconds": before[0] + seconds, "cpu_seconds": before[1] + time.process_time() - cpu}
        folder.keep(agent, best, done, rows)
        if progress is not None:
            progress(done * settings.together)
        if minutes is not None and seconds >= 60 * minutes:
            break
    return _trained(best.shown(agent), task, settings, plan, done, rows)


def against(costs: Array, others: Array, metric: str) -> float:
    """The geometric mean over windows of the ratio of two costs."""
    return float(np.exp(np.mean(log_cost(costs, metric) - log_cost(others, metric))))


def load(folder: str | Path) -> TrainedAgent:
    """Return the agent that `train` kept in a folder; raises PolicyError for none, a damaged one, or one with another decision or slots."""
    folder = Path(folder)
    try:
        plan = json.loads((folder / SETTINGS).read_text())
        check_data(plan["task"], printable(folder / SETTINGS))
        task, settings = Task(**_like(Task(), plan["task"])), _settings(plan["settings"])
        agent = ppo.Agent(settings, np.random.default_rng(0))
        best = _Best(agent, settings)
        done, rows = _Folder(folder, None).restore(agent, best)
        trained = _trained(best.shown(agent), task, settings, plan, done, rows)
        given = {name: plan["task"][name] for name in FIXED}
    except NotRunError:
        raise
    except _DAMAGE as error:  # also that it is damaged
        raise PolicyError(f"{printable(folder)}: has no trained agent; walltime learn train makes one", "no_agent") from error
    for name, value in given.items():
        if value != FIXED[name]:
            raise PolicyError(
                f"{printable(folder)}: its agent has the {name} {value!r}, not {FIXED[name]!r} as all have now; train another one",
                "other_agent",
            )
    if not done:
        raise PolicyError(f"{printable(folder)}: the training has not kept an agent yet; let it go on for a while")
    return trained


OWN = {"seed": int, "log": str, "jobs_sha256": str, "source": dict}
"""What else the settings of an agent have, and of which kind it is."""


def _of_kind(plan: Mapping[str, Any], name: str, kind: type) -> Any:
    if type(plan[name]) is not kind:
        raise TypeError(f"{name} is of another kind")
    return plan[name]


def _settings(plain: Mapping[str, Any]) -> ppo.TrainingSettings:
    """From JSON, which has lists for tuples."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()}
    return ppo.TrainingSettings(**_like(ppo.TrainingSettings(), values))


def _like(usual: Task | ppo.TrainingSettings, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of these fields; raises KeyError or TypeError unless each is of the kind that it usually has."""
    kept_values = {}
    for field in fields(usual):
        value, kind = values[field.name], type(getattr(usual, field.name))
        if type(value) is not kind and not (kind is float and type(value) is int) and not (field.name == "warm" and value is None):
            raise TypeError(f"{field.name} is of another kind")
        kept_values[field.name] = value
    return kept_values


def _trained(
    agent: ppo.Agent, task: Task, settings: ppo.TrainingSettings, plan: Mapping[str, Any], done: int, rows: list[dict[str, Any]]
) -> TrainedAgent:
    own = {name: _of_kind(plan, name, kind) for name, kind in OWN.items()}
    return TrainedAgent(agent, task, settings, done=done, progress=tuple(rows), **own)


class _Best:
    """The policy that was best on the validation windows so far."""

    def __init__(self, agent: ppo.Agent, settings: ppo.TrainingSettings):
        self.agent = ppo.Agent(settings, np.random.default_rng(0))
        self.agent.policy.parameters = [one.copy() for one in agent.policy.parameters]
        self.cost = np.inf

    def shown(self, agent: ppo.Agent) -> ppo.Agent:
        """This policy, or the present one as long as none has been looked at."""
        return self.agent if np.isfinite(self.cost) else agent

    def take(self, agent: ppo.Agent, cost: float) -> None:
        """Take this one if it is better."""
        if cost < self.cost:
            self.cost = cost
            self.agent.policy.parameters = [one.copy() for one in agent.policy.parameters]
            self.agent.scale = agent.scale


class _Folder:
    """The files of an agent; `plan`: what must be the same for it to be resumed, None to read only."""

    def __init__(self, folder: Path, plan: Mapping[str, Any] | None):
        self.folder = folder
        if plan is None:
            return
        text = json.dumps(plan, indent=2) + "\n"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / SETTINGS
            there = json.loads(file.read_text()) if file.exists() else None
        except (OSError, ValueError, RecursionError) as error:
            reason = getattr(error, "strerror", None) or "its settings cannot be read"
            raise OutputError(f"{printable(folder)}: cannot be used ({reason.lower()}); name another place") from error
        if there is not None and (not isinstance(there, dict) or any(there.get(name) != plan[name] for name in plan if name != "source")):
            raise OutputError(f"{printable(folder)}: has an agent of other settings or another log; name another folder", "other_agent")
        if there is None:
            with whole_file(file) as sink:
                sink.write(text.encode())

    def keep(self, agent: ppo.Agent, best: _Best, done: int, rows: list[dict[str, Any]]) -> None:
        """Write the state, whole or not at all."""
        assert agent.scale is not None
        arrays: dict[str, Array] = {"done": np.array(done), "scale": agent.scale, "best_cost": np.array(best.cost)}
        arrays |= {f"best_{number}": one for number, one in enumerate(best.agent.policy.parameters)}
        for name, network in (("policy", agent.policy), ("value", agent.value)):
            arrays |= {f"{name}_{number}": one for number, one in enumerate(network.parameters)}
            arrays |= {f"{name}_moment_{number}": one for number, one in enumerate(network.moments)}
            arrays[f"{name}_steps"] = np.array(network.steps)
        with whole_file(self.folder / PROGRESS) as sink:
            sink.write((json.dumps(rows, indent=1) + "\n").encode())
        with whole_file(self.folder / STATE) as sink:
            np.savez(sink, **arrays)  # type: ignore[arg-type]

    def restore(self, agent: ppo.Agent, best: _Best) -> tuple[int, list[dict[str, Any]]]:
        """Bring the agents to the state that was kept; the number of iterations done, and their rows. Raises OutputError for damage."""
        if not (self.folder / STATE).exists():
            return 0, []
        try:
            return self._restore(agent, best)
        except (*_DAMAGE, EOFError, BadZipFile) as error:
            raise OutputError(
                f"{printable(self.folder)}: the agent in it is damaged; train another one in another folder", "damaged_agent"
            ) from error

    def _restore(self, agent: ppo.Agent, best: _Best) -> tuple[int, list[dict[str, Any]]]:
        rows = json.loads((self.folder / PROGRESS).read_text())
        numbers = [value for row in rows for value in row.values()]
        if any(type(value) not in (int, float) for value in numbers):
            raise ValueError("a row of the progress has something else than numbers")
        with (self.folder / STATE).open("rb") as file, np.load(file) as arrays:
            done = int(arrays["done"])
            agent.scale, best.cost = arrays["scale"], float(arrays["best_cost"])
            best.agent.scale = agent.scale
            shapes = {name: _shapes(network) for name, network in (("policy", agent.policy), ("value", agent.value))}
            for name, network in (("policy", agent.policy), ("value", agent.value)):
                network.parameters = [arrays[f"{name}_{number}"] for number in range(len(network.parameters))]
                network.moments = [arrays[f"{name}_moment_{number}"] for number in range(len(network.moments))]
                network.steps = int(arrays[f"{name}_steps"])
                _check_shapes(network, shapes[name])
            best.agent.policy.parameters = [arrays[f"best_{number}"] for number in range(len(best.agent.policy.parameters))]
            _check_shapes(best.agent.policy, shapes["policy"])
        return done, rows[:done]


def _shapes(network: ppo.Network) -> list[tuple[Any, ...]]:
    return [(one.shape, one.dtype) for one in network.parameters]


def _check_shapes(network: ppo.Network, usual: list[tuple[Any, ...]]) -> None:
    """Raise ValueError for weights of another network than the settings say; compiled code would not notice."""
    if _shapes(network) != usual or not all(np.isfinite(one).all() for one in network.parameters):
        raise ValueError("the weights are not those of this network")


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
        raise PolicyError(f"unknown formula {formula!r}; known are {', '.join(FORMULAS)}", "unknown_formula")
    given = as_episodes(episodes)
    batch = Batch(given, as_rules(options))
    costs = np.array([batch.baseline(number, formula) for number in range(len(given))])
    inside = (costs > least) & (costs < most)
    if not inside.any():
        told = f"on {len(given)} episodes, from {costs.min():.4g} to {costs.max():.4g}, median {np.median(costs):.4g}"
        raise WorkloadError(
            f"no episode is left, as {formula} costs more than {least:g} and less than {most:g} on none: {told}", "no_episode"
        )
    return [one for one, is_inside in zip(given, inside, strict=True) if is_inside], int((~inside).sum())
