"""Train an agent (ppo.py) on a log; a folder stores the state, from which training can be resumed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from walltime.declared import Field
from walltime.errors import OutputError, PolicyError, WorkloadError
from walltime.files import whole_file
from walltime.learn import ppo
from walltime.learn.batch import REWARDS, Batch, Rules
from walltime.learn.sources import Episode, as_episodes, windows
from walltime.permission import NotRunError, check_data
from walltime.provenance import jobs_sha256, version
from walltime.simulation.windows import log_cost
from walltime.specification import Specification
from walltime.wording import counted, printable
from walltime.workload import Array, Workload, check_workload

SIMPLE = ("saf", "saf")
"""Queue and backfill order of the simple scheduler by whose cost rewards are divided: smallest area first."""
VALIDATION = 0.2
"""Share of the training windows, at their end, that are used to choose the best state of the agent."""
VALIDATION_INTERVAL = 5
"""Number of iterations between two validations."""
SETTINGS, STATE, PROGRESS = "settings.json", "agent.npz", "progress.json"
FIXED: dict[str, Any] = {"decision": "both", "slots": 128}
"""Rules of every agent (see `walltime.learn.BackfillingEnv`), stored in its settings."""


@dataclass(frozen=True)
class Task(Specification):
    """The goal of an agent, and the windows of a log.

    The agent decides which of the first 128 waiting jobs comes next, and which of them are backfilled. `skip`, `reward`, `overrun`: see
    `walltime.learn.BackfillingEnv`; `window` (jobs), `warm`, `test_share`: see `walltime.learn.windows`. Raises PolicyError for a reward
    that exists only at the end, and for an invalid share.
    """

    reward: Annotated[str, Field(known=tuple(REWARDS))] = "bounded_slowdown"
    skip: bool = False
    window: int = 256
    warm: Annotated[str | None, Field(literals={"none": None})] = "easy"
    test_share: Annotated[float, Field(above=0, below=1)] = 0.3
    overrun: str = "kill"

    @property
    def rules(self) -> Rules:
        """Return the rules of the environments."""
        return Rules(**FIXED, reward=self.reward, overrun=self.overrun, skip=self.skip)

    def windows(self, workload: Workload, part: str) -> list[Episode]:
        """Return the windows of a log to `train` or to `test`."""
        return windows(workload, self.window, part=part, test_share=self.test_share, warm=self.warm, overrun=self.overrun)


_DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError)
"""Errors of an agent's damaged files."""


@dataclass(frozen=True)
class TrainedAgent:
    """A stored agent: its best state on the validation windows.

    `log`, `jobs_sha256`: of the training. `done`: number of finished iterations. `source`: how the command line read the log. `progress`:
    a row for each iteration.
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
        """Return whether the training is finished."""
        return self.done >= self.settings.iterations

    def outcomes(self, episodes: list[Episode], change: Callable[[Array, Array], None] | None = None) -> Outcomes:
        """Return the outcomes of all episodes; `change`: see `walltime.learn.ppo.play`."""
        batch = Batch(episodes, self.task.rules, len(episodes))
        ppo.play(batch, np.arange(len(episodes)), self.agent, change=change)
        return Outcomes.of([outcome_of(batch, number, one) for number, one in enumerate(episodes)])

    def starts(self, jobs: Workload | Episode) -> Array:
        """Return the start of each job of a workload or an episode under this agent, s, int64, in order of arrival."""
        batch = Batch(as_episodes(jobs), self.task.rules)
        ppo.play(batch, np.zeros(1, np.int64), self.agent)
        return batch.starts(0)


def formula_outcomes(episodes: list[Episode], rules: Rules, orders: tuple[str, str | None] = SIMPLE) -> Outcomes:
    """Return the outcomes of all episodes, with formulas for queue and backfilling (None: without)."""
    batch, outcomes = Batch(episodes, rules), []
    for number, one in enumerate(episodes):
        batch.play(number, *orders)
        outcomes.append(outcome_of(batch, batch.count, one))
    return Outcomes.of(outcomes)


class Outcomes(NamedTuple):
    """The cost (a mean over jobs) and the longest wait (s) of each episode, float64, and the starts of its jobs (s, int64)."""

    costs: Array
    longest: Array
    starts: list[Array]

    @classmethod
    def of(cls, outcomes: list[tuple[float, float, Array]]) -> Outcomes:
        """Return the joined outcomes of single episodes, given as tuples of cost, longest wait and starts."""
        costs, longest, starts = zip(*outcomes, strict=True)
        return cls(np.array(costs), np.array(longest), list(starts))


def outcome_of(batch: Batch, environment: int, episode: Episode) -> tuple[float, float, Array]:
    """Return cost, longest wait (s) and starts (s) of a finished episode."""
    starts = batch.starts(environment)
    return batch.cost(environment), float((starts - episode.workload.submit).max()), starts


class _Lesson:
    """A log for training: early windows with the costs of a simple scheduler, and later windows for validation."""

    def __init__(self, workload: Workload, task: Task, settings: ppo.TrainingSettings):
        check_workload(workload)
        early = task.windows(workload, "train")
        if len(early) < 4:
            raise WorkloadError(
                f"training needs more than {counted(len(early), 'window')} of {task.window} jobs; use shorter windows or a longer log",
                "too_few_windows",
            )
        count = max(1, round(len(early) * VALIDATION))
        early, self.late = early[: -count - 1], early[-count:]  # the window between the two parts is left out
        self.scales = np.maximum(formula_outcomes(early, task.rules)[0], 1.0)
        self.batch = Batch(early, task.rules, settings.together)
        self.simple = formula_outcomes(self.late, task.rules)[0]

    def cost_ratio(self, agent: TrainedAgent) -> float:
        """Return the geometric mean, over the later windows, of the ratio of an agent's cost to the simple scheduler's cost."""
        metric = agent.task.reward
        return float(np.exp(np.mean(log_cost(agent.outcomes(self.late)[0], metric) - log_cost(self.simple, metric))))


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
    """Train an agent on the early windows of a log, or of several in turn; the later ones are held out for `evaluate`.

    `workload`: one log or several; each iteration plays one, and the state that is best on average is stored. `out`: the folder of the
    agent, written after every iteration; the same call resumes from there, and gives the same bytes as without interruption. `task`: the
    goal. `settings`: the settings of the learning algorithm. `minutes`: the time after which to stop. `source` is stored with the agent.
    `progress` is called with the number of played episodes.

    Raises PolicyError for invalid settings, WorkloadError for a log too short for four training windows, OutputError for a folder that
    has an agent of other settings or another log, or cannot be written.
    """
    logs = [workload] if isinstance(workload, Workload) else list(workload)
    task, settings = task or Task(), settings or ppo.TrainingSettings()
    lessons = [_Lesson(one, task, settings) for one in logs]
    if not lessons:
        raise WorkloadError("an agent needs at least one log to learn from; pass one")
    names = {"log": ", ".join(one.origin.name for one in logs), "jobs_sha256": ", ".join(map(jobs_sha256, logs)), "version": version()}
    own = {"seed": seed, "task": FIXED | asdict(task), "settings": json.loads(json.dumps(asdict(settings))), "source": dict(source or {})}
    plan: dict[str, Any] = names | own
    _write_plan(Path(out), plan)
    state = _State(Path(out), settings, seed)
    state.restore()
    begin, cpu = time.perf_counter(), time.process_time()
    before = (state.rows[-1]["seconds"], state.rows[-1]["cpu_seconds"]) if state.rows else (0.0, 0.0)
    while state.done < settings.iterations:
        lesson = lessons[state.done % len(lessons)]
        row = ppo.iterate(lesson.batch, state.agent, settings, state.done, seed, lesson.scales)
        state.rows.append({"iteration": state.done + 1, **row})
        if state.done % VALIDATION_INTERVAL == 0 or state.done == settings.iterations:
            now = _trained(state.agent, task, settings, plan, state)
            state.rows[-1]["validation"] = float(np.exp(np.mean([np.log(one.cost_ratio(now)) for one in lessons])))
            state.keep_best(state.rows[-1]["validation"])
        seconds = time.perf_counter() - begin
        state.rows[-1] |= {"seconds": before[0] + seconds, "cpu_seconds": before[1] + time.process_time() - cpu}
        state.save()
        if progress is not None:
            progress(state.done * settings.together)
        if minutes is not None and seconds >= 60 * minutes:
            break
    return _trained(state.best_agent, task, settings, plan, state)


def load(folder: str | Path) -> TrainedAgent:
    """Return the agent that `train` stored in a folder; raises PolicyError if it is missing, damaged or from another version."""
    folder = Path(folder)
    try:
        plan = json.loads((folder / SETTINGS).read_text())
        check_data(plan["task"], printable(folder / SETTINGS))
        given = {name: plan["task"].pop(name) for name in FIXED}
        tuples: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in plan["settings"].items()}
        task, settings = Task(**plan["task"]), ppo.TrainingSettings(**tuples)
        state = _State(folder, settings, 0)
        state.restore()
        trained = _trained(state.best_agent, task, settings, plan, state)
    except NotRunError:
        raise
    except _DAMAGE as error:  # includes the error of damaged files
        raise PolicyError(f"{printable(folder)}: has no trained agent; make one with walltime learn train", "no_agent") from error
    for name, value in given.items():
        if value != FIXED[name]:
            raise PolicyError(
                f"{printable(folder)}: the agent has the {name} {value!r}, but this version needs {FIXED[name]!r}; train another one",
                "other_agent",
            )
    if not trained.done:
        raise PolicyError(f"{printable(folder)}: the training has not stored an agent yet; continue it with walltime learn train")
    return trained


def _trained(agent: ppo.Agent, task: Task, settings: ppo.TrainingSettings, plan: Mapping[str, Any], state: _State) -> TrainedAgent:
    """Return the trained agent in this state; raises KeyError or TypeError for a plan without seed, log or source."""
    own = {name: plan[name] for name in ("seed", "log", "jobs_sha256", "source")}
    if [type(value) for value in own.values()] != [int, str, str, dict]:
        raise TypeError("a value of the plan has another type")
    return TrainedAgent(agent, task, settings, done=state.done, progress=tuple(state.rows), **own)


def _write_plan(folder: Path, plan: Mapping[str, Any]) -> None:
    """Write the settings into the agent's folder; raises OutputError if it has an agent of other settings or another log."""
    file = folder / SETTINGS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stored = json.loads(file.read_text()) if file.exists() else None
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or "its settings cannot be read"
        raise OutputError(f"{printable(folder)}: cannot be used ({reason.lower()}); use another folder") from error
    if stored is None:
        with whole_file(file) as sink:
            sink.write((json.dumps(plan, indent=2) + "\n").encode())
    elif not isinstance(stored, dict) or any(stored.get(name) != plan[name] for name in plan if name != "source"):
        raise OutputError(f"{printable(folder)}: has an agent of other settings or another log; use another folder", "other_agent")


class _State:
    """The state of a training in a folder: the agent, its best policy on the validation windows so far, and a row for each iteration."""

    def __init__(self, folder: Path, settings: ppo.TrainingSettings, seed: int):
        self.folder = folder
        self.agent = ppo.Agent(settings, np.random.default_rng([seed]))
        self.best = ppo.Agent(settings, np.random.default_rng([seed]))
        self.cost = np.inf
        self.rows: list[dict[str, Any]] = []

    @property
    def done(self) -> int:
        """Return the number of finished iterations."""
        return len(self.rows)

    @property
    def best_agent(self) -> ppo.Agent:
        """Return the agent with the best policy, or the current one before the first validation."""
        return self.best if np.isfinite(self.cost) else self.agent

    def keep_best(self, cost: float) -> None:
        """Store the current policy as the best one if it has a lower cost."""
        if cost < self.cost:
            self.cost = cost
            self.best.policy.parameters = [one.copy() for one in self.agent.policy.parameters]
            self.best.scale = self.agent.scale

    def save(self) -> None:
        """Write the state atomically."""
        assert self.agent.scale is not None
        arrays: dict[str, Array] = {"done": np.array(self.done), "scale": self.agent.scale, "best_cost": np.array(self.cost)}
        arrays |= {f"best_{number}": one for number, one in enumerate(self.best.policy.parameters)}
        for name, network in (("policy", self.agent.policy), ("value", self.agent.value)):
            arrays |= {f"{name}_{number}": one for number, one in enumerate(network.parameters)}
            arrays |= {f"{name}_moment_{number}": one for number, one in enumerate(network.moments)}
            arrays[f"{name}_steps"] = np.array(network.steps)
        with whole_file(self.folder / PROGRESS) as sink:
            sink.write((json.dumps(self.rows, indent=1) + "\n").encode())
        with whole_file(self.folder / STATE) as sink:
            np.savez(sink, **arrays)  # type: ignore[arg-type]

    def restore(self) -> None:
        """Load the stored state, if any; raises OutputError for damage."""
        if not (self.folder / STATE).exists():
            return
        try:
            rows = json.loads((self.folder / PROGRESS).read_text())
            if any(type(value) not in (int, float) for row in rows for value in row.values()):
                raise ValueError("the progress must contain numbers only")
            with (self.folder / STATE).open("rb") as file, np.load(file) as arrays:
                self.agent.scale, self.cost = arrays["scale"], float(arrays["best_cost"])
                self.best.scale = self.agent.scale
                for name, network in (("policy", self.agent.policy), ("value", self.agent.value), ("best", self.best.policy)):
                    stored = [arrays[f"{name}_{number}"] for number in range(len(network.parameters))]
                    if not all(_fits(new, old) for new, old in zip(stored, network.parameters, strict=True)):
                        raise ValueError("the weights do not fit the network of the settings")
                    network.parameters = stored
                    if name != "best":
                        network.moments = [arrays[f"{name}_moment_{number}"] for number in range(len(network.moments))]
                        network.steps = int(arrays[f"{name}_steps"])
                self.rows = rows[: int(arrays["done"])]
        except (*_DAMAGE, EOFError, BadZipFile) as error:
            raise OutputError(
                f"{printable(self.folder)}: the agent in it is damaged; train another one in another folder", "damaged_agent"
            ) from error


def _fits(new: Array, old: Array) -> bool:
    """Return whether weights are finite and have this shape, which compiled code would not check."""
    return new.shape == old.shape and new.dtype == old.dtype and bool(np.isfinite(new).all())
