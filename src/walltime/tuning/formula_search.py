"""A search for queue orders that are good on many logs: which terms a formula has by steps, their weights by CMA-ES."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.metrics.confidence import student_t
from walltime.policy import FCFS, Easy, Order, parse_order
from walltime.policy.expressions import Expression
from walltime.policy.orders import HISTORY
from walltime.provenance import version
from walltime.simulation.specification import Scheduler, parse_scheduler
from walltime.tuning.final_table import named_schedulers
from walltime.tuning.objectives import OBJECTIVES, Parts, by_log, late_percents, merit, parts_of
from walltime.tuning.order_file import LogIdentity, OrderFile, Point
from walltime.tuning.search import check_optimiser
from walltime.tuning.search import search as minimise
from walltime.tuning.trials import BELIEF, CostFolder, with_predictions
from walltime.workload import Workload

Array = np.ndarray
TERMS = (
    "log(wait+60)",
    "log(believed+60)",
    "log(procs)",
    "log((user_used+36000)/(user_started+1))",
    "log((user_waited+600)/(user_started+1))",
    "log(user_started+1)",
    "wait/(longest+3600)",
    "wait/86400",
    "(procs<2)",
    "log(procs)*log(wait+60)",
    "log(procs)*log(believed+60)",
    "log(wait+60)*log(believed+60)",
    "procs/machine",
    "(procs>free)",
    "log(procs)*log(waiting+1)",
    "log(believed+60)*tanh(queued/machine/(longest+3600))",
    "log(procs)*tanh(queued/machine/(longest+3600))",
    "log(believed+60)*(hour>17)",
    "log(procs)*(hour>17)",
)
"""What a formula is a weighted sum of. Numbers in them are s, processor seconds and processors; they keep logarithms finite. The hour is
left out where a log does not say when it starts."""
BACKFILL = ("", "saf", "sjf", "lxf")
"""Orders of backfilling that are tried; the first is that of the queue."""
QUEUES = ("fcfs", "sqf:limit=0.4", "f2:limit=0.4")
"""Orders of the queue that are tried where the formula is that of backfilling."""
HALF_LIVES = (604_800, 86_400, 2_592_000)
"""Half-lives, s, of what users have had: a week, a day, a month."""
LIMITS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.9)
"""Limits with which each step is tried in the end."""
CHOOSING = "choosing by the later jobs"
"""What a search says of its end, in place of a formula."""
STEP = 0.35
"""Standard deviation of the first changes of a weight, and of the logarithm of the limit."""
DIGITS = 3
EASY = Scheduler(Easy())
FEWEST = 50
"""Of fewer jobs of a log it cannot be said which order is good."""


@dataclass(frozen=True)
class Formula:
    """A form of order and its numbers: a weighted sum of `TERMS`, a limit on waiting, and another order.

    Without a `queue` it is the order of the queue, and of backfilling unless there is a `backfill`; with one, that of backfilling only.
    """

    terms: tuple[str, ...]
    weights: tuple[float, ...]
    limit: float = 0.6
    backfill: str = ""
    queue: str = ""
    predictor: str = ""
    believe: str = BELIEF
    half_life: int = HALF_LIVES[0]
    choices: tuple[str, ...] = TERMS
    """the terms that it may get"""
    is_plain: bool = False
    """whether it is as short as it can be said; while searching all weights are there with a sign, so that a form is compiled once"""

    @property
    def order(self) -> Order:
        """As a queue order, its largest weight 1."""
        largest = max(map(abs, self.weights)) or 1.0
        rounded = [float(f"{weight / largest:.{DIGITS}g}") for weight in self.weights]
        parts = [f"{weight}*{term}" for term, weight in zip(self.terms, rounded, strict=True) if weight]
        text = "+".join(parts) or self.terms[0]
        if self.is_plain:
            text = re.sub(r"(?<![\w.)])1\.0\*", "", text).replace("+-", "-")
        history = any(name in text for name in HISTORY)
        return Expression(formula=text, half_life=self.half_life if history else None, limit=float(f"{self.limit:.2g}"))

    @property
    def plain(self) -> Formula:
        """The same, as short as it can be said."""
        return replace(self, is_plain=True)

    @property
    def scheduler(self) -> Scheduler:
        """EASY with this order, and with predictions if there is a predictor."""
        if self.queue:
            policy = Easy(order=parse_order(self.queue), backfill_order=self.order)
        else:
            policy = Easy(order=self.order, backfill_order=parse_order(self.backfill) if self.backfill else None)
        return with_predictions(policy, self.predictor, self.believe)

    @property
    def parts(self) -> int:
        """How many parts it has that have to pay: the terms, and an order of its own of the queue or of backfilling."""
        return len(self.terms) + bool(self.backfill) + (self.queue not in ("", FCFS.label))

    def at(self, point: Array) -> Formula:
        """The formula that is this far from it: of each weight and of the logarithm of the limit, float64."""
        weights = tuple(float(weight + STEP * step) for weight, step in zip(self.weights, point, strict=False))
        return replace(self, weights=weights, limit=float(np.clip(self.limit * np.exp(STEP * point[-1]), 0.05, 3.0)))

    def neighbours(self) -> list[Formula]:
        """The forms that are one step away: with another term, without one, with another order beside it, or half-life."""
        largest = max(map(abs, self.weights))
        scaled = replace(self, weights=tuple(weight / largest for weight in self.weights))
        more = [replace(scaled, terms=(*self.terms, one), weights=(*scaled.weights, 0.0)) for one in self.choices if one not in self.terms]
        less = [
            replace(scaled, terms=self.terms[:k] + self.terms[k + 1 :], weights=scaled.weights[:k] + scaled.weights[k + 1 :])
            for k in range(len(self.terms))
            if len(self.terms) > 1
        ]
        if self.queue:
            other = [replace(scaled, queue=one) for one in QUEUES if one != self.queue]
        else:
            other = [replace(scaled, backfill=one) for one in BACKFILL if one != self.backfill]
        if any(name in term for term in self.terms for name in HISTORY):
            other += [replace(scaled, half_life=one) for one in HALF_LIVES if one != self.half_life]
        return [one for one in less + other + more if any(one.weights) or len(one.terms) > 1]


STARTS = (
    Formula(("log(wait+60)", "log(believed+60)"), (1.0, -1.0)),
    Formula(("log(wait+60)", "log(believed+60)", "log(procs)"), (1.0, -0.6, -0.4), limit=1.0, queue="fcfs"),
    Formula(("log(wait+60)", "log(procs)"), (0.3, -1.0), limit=0.4),
    Formula(("wait/(longest+3600)", "log(believed+60)"), (1.0, -0.3)),
)
"""Where it starts: slowdown first; the same in backfilling only, with the size; narrow jobs first; the longest waits first."""


class _Costs:
    """Relative objectives of schedulers by label, kept in a folder, on one set of parts."""

    def __init__(self, parts: Parts, folder: CostFolder):
        self.parts, self.folder = parts, folder
        self.tried: dict[str, Array] = {}

    def of(self, schedulers: Sequence[Scheduler]) -> Array:
        """Of shape (schedulers, parts, objectives)."""
        flat = self.folder.costs(schedulers, lambda some: self.parts.relative(some).reshape(len(some), -1))
        values = flat.reshape(len(schedulers), len(self.parts.parts), len(OBJECTIVES))
        self.tried |= {one.label: value for one, value in zip(schedulers, values, strict=True)}
        return values

    def mean(self, label: str) -> tuple[float, ...]:
        """Geometric means over the logs."""
        return tuple(round(float(value), 4) for value in np.exp(by_log(self.tried[label], self.parts.logs).mean(axis=0)))


@dataclass(frozen=True)
class SearchSettings:
    """How `search_orders` searches; raises PolicyError for impossible settings.

    It ends after `budget` evaluations, or the few more of the last step. The first `share` of each log's jobs is for training, the rest for
    choosing among the steps. Each is simulated `copies` times, as recorded and shaken by up to `shaken` s, always the same copies.
    `penalty`: as in `objectives.merit`. `predictor`: one whose predictions decide the order, and with another `believe` also what jobs are
    planned by. `fair`: of how many earlier jobs of each log it is found whether they start later than their fair start.
    """

    budget: int = 1500
    share: float = 0.6
    copies: int = 2
    shaken: int = 60
    penalty: float = 3.0
    optimiser: str = "cma"
    seed: int = 0
    predictor: str = ""
    believe: str = BELIEF
    fair: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.share < 1 or self.copies < 1 or self.budget < 1 or self.penalty < 0 or self.fair < 0:
            raise PolicyError("a search needs a share between 0 and 1, at least one copy and one evaluation, and nothing negative")
        check_optimiser(self.optimiser)

    def plan(self, logs: Sequence[Workload]) -> dict[str, Any]:
        """Return what costs depend on, for their folder."""
        plan = {name: getattr(self, name) for name in ("share", "copies", "shaken", "penalty", "seed")} | {"version": version()}
        plan |= {"predictor": self.predictor} if self.predictor else {}
        plan |= {"believe": self.believe} if self.believe != BELIEF else {}
        return plan | {"logs": [log.origin.name for log in logs], "checksums": [log.origin.sha256 for log in logs]}

    def starts(self, logs: Sequence[Workload]) -> list[Formula]:
        """Return `STARTS` with these predictions, and the terms that all logs have."""
        clocks = all(log.origin.unix_start_time is not None for log in logs)
        terms = tuple(one for one in TERMS if clocks or "hour" not in one)
        return [replace(one, predictor=self.predictor, believe=self.believe, choices=terms) for one in STARTS]


def search_orders(
    logs: Sequence[Workload],
    *,
    store: str | Path | None = None,
    workers: int | None = None,
    progress: Callable[[int, str], None] | None = None,
    **options: Any,
) -> OrderFile:
    """Search for a queue order that is good on all of these logs, without a longer longest wait than EASY's.

    `options`: the fields of `SearchSettings`. What is minimised is `objectives.merit`, the mean over the logs. It climbs from all of
    `STARTS` at once: each step tries all forms that are one term, other order or half-life away, with weights by CMA-ES. A larger form must
    gain on the one before it by more than the 90 % interval over the parts, or this climb ends; a smaller form is taken if it loses
    nothing. Chosen is the step, with a limit, that has the lowest mean bounded slowdown on the later jobs without a longer longest wait
    than EASY's. `store`: a folder in which evaluations are kept, so that a search that was interrupted goes on. `progress` is called with
    the evaluations so far and the best formula, or `CHOOSING`. Raises PolicyError for impossible settings, and WorkloadError without a log,
    or for one of under `FEWEST` jobs.
    """
    settings = SearchSettings(**options)
    if not logs:
        raise WorkloadError("a search needs a log or more")
    for log in logs:
        if len(log) < FEWEST:
            raise WorkloadError(
                f"{log.origin.name} has {len(log)} jobs, too few for a search; give logs of at least {FEWEST}", "too_few_jobs"
            )
    early, late = parts_of(logs, settings.share, settings.copies, settings.shaken, settings.seed)
    training, choosing = (
        _Costs(Parts(jobs, EASY, workers), CostFolder(None if store is None else Path(store) / part, settings.plan(logs)))
        for part, jobs in (("training", early), ("choosing", late))
    )
    climb = _Climb(training, settings, progress)
    steps = [one.plain for one in climb.formulas(settings.starts(logs))]
    limited = [*steps, *(replace(one, limit=limit) for one in steps for limit in LIMITS)]
    named, front = [one for _, one in named_schedulers()], _front(training)
    if progress is not None:
        progress(climb.done, CHOOSING)
    front += [EASY] if settings.fair else []
    for costs in (training, choosing):
        costs.of([*(one.scheduler for one in limited), *named, *front])
    chosen = _chosen(limited, training, choosing)
    lateness: dict[str, float] = {}
    if settings.fair:
        shown = list(dict.fromkeys([*front, chosen.scheduler]))
        percents = late_percents(shown, early, settings.fair, settings.seed, workers).tolist()
        lateness = {one.label: round(value, 2) for one, value in zip(shown, percents, strict=True)}

    def points(schedulers: Sequence[Scheduler]) -> tuple[Point, ...]:
        labels = [one.label for one in schedulers]
        return tuple(Point(label, training.mean(label), choosing.mean(label), lateness.get(label, -1.0)) for label in labels)

    return OrderFile(
        scheduler=chosen.scheduler.label,
        evaluations=climb.done,
        version=version(),
        log=tuple(map(LogIdentity.of, logs)),
        step=points([one.scheduler for one in (*steps, chosen)]),
        front=points(front),
        named=points(named),
        **{name: getattr(settings, name) for name in ("seed", "budget", "share", "copies", "shaken", "penalty", "optimiser", "predictor")},
    )


def _chosen(formulas: Sequence[Formula], training: _Costs, choosing: _Costs) -> Formula:
    """The formula with the lowest mean bounded slowdown on the later jobs, of those whose longest wait is not above EASY's.

    That holds in the mean over the logs, on the earlier and on the later jobs. Without such a one it is the one with the shortest.
    """

    def judged(one: Formula) -> tuple[float, float]:
        early, late = (costs.mean(one.scheduler.label) for costs in (training, choosing))
        excess = max(early[3], late[3], 1.0)
        return excess, late[0]

    return min(formulas, key=judged)


class _Climb:
    """Steps to better formulas; `done`: evaluations so far."""

    def __init__(self, costs: _Costs, settings: SearchSettings, progress: Callable[[int, str], None] | None):
        self.costs, self.settings, self.progress = costs, settings, progress
        self.done = 0
        self._best = ""

    def formulas(self, starts: Sequence[Formula]) -> list[Formula]:
        """Return the formulas after each step from each start."""
        self._best = starts[0].scheduler.label
        paths = [[self._tuned(one, 4)] for one in starts]
        climbing = list(paths)
        while climbing and self.done < self.settings.budget:
            for path in list(climbing):
                self._best = min((one[-1] for one in paths), key=lambda one: one[0])[1].scheduler.label
                step = self._following(*path[-1]) if self.done < self.settings.budget else None
                if step is None:
                    climbing.remove(path)
                else:
                    path.append(step)
        return [formula for path in paths for _, formula in path]

    def _tuned(self, formula: Formula, generations: int) -> tuple[float, Formula]:
        """The lowest merit near a formula, and where it is; a generation is a first look at a form."""
        dimensions = len(formula.terms) + 1

        def evaluate(points: list[Array]) -> list[float]:
            some = [formula.at(point).scheduler for point in points]
            self.done += len(points)
            values = merit(self.costs.of(some), self.costs.parts.logs, self.settings.penalty).mean(axis=1)
            if self.progress is not None:
                self.progress(self.done, self._best)
            return [float(value) for value in values]

        point, value = minimise(evaluate, dimensions, generations * (4 + len(formula.terms)), self.settings.optimiser, self.settings.seed)
        start = evaluate([np.zeros(dimensions)])[0]
        return (start, formula) if start <= value else (value, formula.at(point))

    def _following(self, merit_before: float, before: Formula) -> tuple[float, Formula] | None:
        """The next step; None at the top."""
        tries = sorted((self._tuned(one, 1) for one in before.neighbours()), key=lambda one: one[0])
        tries = sorted((self._tuned(one, 4) for _, one in tries[:3]), key=lambda one: one[0])
        found = next((one for one in tries if _gain_is_significant(self.costs, before, one[1], self.settings.penalty)), None)
        if found is not None:
            return found
        found = self._tuned(before, 4)
        return found if found[0] < merit_before - 1e-4 else None


def _gain_is_significant(costs: _Costs, before: Formula, after: Formula, penalty: float) -> bool:
    """Whether a step is worth it: a larger form must gain by more than the interval over the logs' copies, a smaller one must not lose."""
    pair = costs.of([before.scheduler, after.scheduler])
    single = np.arange(pair.shape[1])  # each part by itself
    gains = -np.diff(merit(pair, single, penalty), axis=0)[0]
    if after.parts < before.parts:
        return bool(gains.mean() > -0.002)
    error = float(gains.std(ddof=1)) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return bool(gains.mean() > error * student_t(0.95, max(len(gains) - 1, 1)))


def _front(costs: _Costs) -> list[Scheduler]:
    """What nobody beats in both mean bounded slowdown and longest wait, by longest wait; at most 20 of them, evenly."""
    points = sorted((costs.mean(label)[3], costs.mean(label)[0], label) for label in costs.tried)
    kept: list[str] = []
    least = np.inf
    for _, slowdown, label in points:
        if slowdown < least:
            kept.append(label)
            least = slowdown
    places = np.unique(np.linspace(0, len(kept) - 1, min(20, len(kept))).round().astype(int))
    return [parse_scheduler(kept[place]) for place in places]
