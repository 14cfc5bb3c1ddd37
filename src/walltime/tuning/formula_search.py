"""A search for queue orders that are good on many logs: which terms a formula has by steps, their weights by CMA-ES."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.metrics.confidence import student_t
from walltime.policy import FCFS, Easy, Order, parse_order
from walltime.policy.expressions import Expression
from walltime.policy.orders import HISTORY
from walltime.provenance import version
from walltime.simulation.specification import Scheduler, parse_scheduler
from walltime.tuning.final_table import named_schedulers
from walltime.tuning.objectives import OBJECTIVES, Part, Parts, by_log, late_percents, merit, parts_of
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


def search_orders(
    logs: Sequence[Workload],
    *,
    budget: int = 1500,
    share: float = 0.6,
    copies: int = 2,
    shaken: int = 60,
    penalty: float = 3.0,
    optimiser: str = "cma",
    seed: int = 0,
    predictor: str = "",
    believe: str = BELIEF,
    fair: int = 0,
    store: str | Path | None = None,
    workers: int | None = None,
    progress: Callable[[int, str], None] | None = None,
) -> OrderFile:
    """Search for a queue order that is good on all of these logs, without a longer longest wait than EASY's.

    The first `share` of each log's jobs is for training, the rest for choosing among the steps. Each is simulated `copies` times, as
    recorded and shaken by up to `shaken` s, always the same copies. What is minimised is `objectives.merit` with this `penalty`, the mean
    over the logs. It climbs from all of `STARTS` at once: each step tries all forms that are one term, other order or half-life
    away, with weights by CMA-ES. A larger form must gain on the one before it by more than the 90 % interval over the parts, or this climb
    ends; a smaller form is taken if it loses nothing. All end after `budget` evaluations, or the few more of the last step. Chosen is
    the step, with a limit, that has the lowest mean bounded slowdown on the later jobs without a longer longest wait than EASY's.
    `predictor`: one whose predictions decide the order, and with another `believe` also what jobs are planned by. `fair`: of so many
    earlier jobs of each log it is found whether they start later than their fair start, under what is on the front, what was chosen, and
    EASY; 0 for none. `store`: a folder in which evaluations are kept, so that a search that was interrupted goes on. `progress` is called
    with the evaluations so far and the best formula, or `CHOOSING`. Raises PolicyError for impossible settings, and WorkloadError without
    a log, or for one of under `FEWEST` jobs.
    """
    if not logs:
        raise WorkloadError("a search needs a log or more")
    for log in logs:
        if len(log) < FEWEST:
            raise WorkloadError(
                f"{log.origin.name} has {len(log)} jobs, too few for a search; give logs of at least {FEWEST}", "too_few_jobs"
            )
    if not 0 < share < 1 or copies < 1 or budget < 1 or penalty < 0 or fair < 0:
        raise PolicyError("a search needs a share between 0 and 1, at least one copy and one evaluation, and nothing negative")
    check_optimiser(optimiser)
    early, late = parts_of(logs, share, copies, shaken, seed)
    settings = {"share": share, "copies": copies, "shaken": shaken, "penalty": penalty, "seed": seed, "version": version()}
    settings |= {"predictor": predictor} if predictor else {}
    settings |= {"believe": believe} if believe != BELIEF else {}
    settings |= {"logs": [log.origin.name for log in logs], "checksums": [log.origin.sha256 for log in logs]}
    easy = Scheduler(Easy())

    def costs_of(part: str, jobs: list[Part]) -> _Costs:
        return _Costs(Parts(jobs, easy, workers), CostFolder(None if store is None else Path(store) / part, settings))

    training = costs_of("training", early)
    clocks = all(log.origin.unix_start_time is not None for log in logs)
    terms = tuple(one for one in TERMS if clocks or "hour" not in one)
    starts = [replace(one, predictor=predictor, believe=believe, choices=terms) for one in STARTS]
    climbed, done = _climb(training, starts, budget, penalty, optimiser, seed, progress)
    steps = [one.plain for one in climbed]
    choosing = costs_of("choosing", late)
    named = [one for _, one in named_schedulers()]
    limited = [replace(one, limit=limit) for one in steps for limit in LIMITS]
    front = _front(training)
    if progress is not None:
        progress(done, CHOOSING)
    for costs in (training, choosing):
        costs.of([one.scheduler for one in (*steps, *limited)] + named + front)
    chosen = _chosen([*steps, *limited], training, choosing)
    shown = list(dict.fromkeys([*front, chosen.scheduler, easy] if fair else []))
    percents = late_percents(shown, early, fair, seed, workers)
    lateness = {one.label: round(float(value), 2) for one, value in zip(shown, percents, strict=True)}
    if fair:
        front.append(easy)
        for costs in (training, choosing):
            costs.of([easy])

    def point(label: str) -> Point:
        return Point(label, training.mean(label), choosing.mean(label), lateness.get(label, -1.0))

    return OrderFile(
        scheduler=chosen.scheduler.label,
        seed=seed,
        evaluations=done,
        budget=budget,
        share=share,
        copies=copies,
        shaken=shaken,
        penalty=penalty,
        optimiser=optimiser,
        predictor=predictor,
        version=version(),
        log=tuple(map(LogIdentity.of, logs)),
        step=tuple(point(one.scheduler.label) for one in (*steps, chosen)),
        front=tuple(point(one.label) for one in front),
        named=tuple(point(one.label) for one in named),
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


def _climb(
    costs: _Costs,
    starts: Sequence[Formula],
    budget: int,
    penalty: float,
    optimiser: str,
    seed: int,
    progress: Callable[[int, str], None] | None,
) -> tuple[list[Formula], int]:
    """The formulas after each step from each start, and the number of evaluations."""
    done = 0
    best = (np.inf, starts[0])

    def tuned(formula: Formula, evaluations: int) -> tuple[float, Formula]:
        nonlocal done
        dimensions = len(formula.terms) + 1

        def evaluate(points: list[Array]) -> list[float]:
            nonlocal done
            some = [formula.at(point).scheduler for point in points]
            done += len(points)
            values = merit(costs.of(some), costs.parts.logs, penalty).mean(axis=1)
            if progress is not None:
                progress(done, best[1].scheduler.label)
            return [float(value) for value in values]

        point, value = minimise(evaluate, dimensions, evaluations, optimiser, seed)
        start = evaluate([np.zeros(dimensions)])[0]
        return (start, formula) if start <= value else (value, formula.at(point))

    def following(before: tuple[float, Formula]) -> tuple[float, Formula] | None:
        """The next step; None at the top."""
        tries = sorted((tuned(one, _few(len(one.terms))) for one in before[1].neighbours()), key=lambda one: one[0])
        tries = sorted((tuned(one, 4 * _few(len(one.terms))) for _, one in tries[:3]), key=lambda one: one[0])
        found = next((one for one in tries if _pays(costs, before[1], one[1], penalty)), None)
        if found is None:
            found = tuned(before[1], 4 * _few(len(before[1].terms)))
            return found if found[0] < before[0] - 1e-4 else None
        return found

    paths = [[tuned(one, 4 * _few(len(one.terms)))] for one in starts]
    climbing = list(paths)
    while climbing and done < budget:
        for path in list(climbing):
            best = min((one[-1] for one in paths), key=lambda one: one[0])
            step = following(path[-1]) if done < budget else None
            if step is None:
                climbing.remove(path)
            else:
                path.append(step)
    return [formula for path in paths for _, formula in path], done


def _few(terms: int) -> int:
    """Evaluations of a first look at a form: one generation."""
    return 4 + terms


def _pays(costs: _Costs, before: Formula, after: Formula, penalty: float) -> bool:
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
