"""Search for queue orders that perform well on many logs: stepwise selection of a formula's terms, with weights from CMA-ES."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from walltime.errors import WorkloadError
from walltime.metrics import bounded_slowdown
from walltime.metrics.confidence import student_t
from walltime.policy import FCFS, Easy, Order, parse_order
from walltime.policy.expressions import Expression
from walltime.policy.orders import HISTORY
from walltime.policy.registry import NAMED_ORDERS
from walltime.provenance import version
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler, parse_scheduler
from walltime.tuning.order_file import PREDICTIONS_FOR, LogIdentity, OrderFile, Point, SearchSettings
from walltime.tuning.search import CostFolder, import_cma, search as minimise, simulate_grid
from walltime.wording import counted
from walltime.workload import Array, Workload
from walltime.workload.scaling import head, shake

OBJECTIVES = ("bounded_slowdown", "wait_by_area", "p99_wait", "longest_wait", "longest_waits")
"""Mean bounded slowdown; mean wait of a processor second, s; 99th percentile and maximum of the waits, s; and the mean of the longest
thousandth of the waits, s, which is less noisy than the single longest one."""


def objectives(submit: Array, start: Array, runtime: Array, procs: Array) -> Array:
    """Return the `OBJECTIVES` of these jobs (int64, times in s), float64; 1 s is added to waits, because they may be 0.

    >>> objectives(*map(np.array, ([0, 0], [0, 90], [10, 10], [1, 3]))).tolist()
    [5.5, 68.5, 90.1, 91.0, 91.0]
    """
    wait = (start - submit).astype(np.float64)
    slowdown = bounded_slowdown(start - submit, runtime)
    area = runtime.astype(np.float64) * procs
    by_area = float((wait * area).sum() / area.sum()) if area.any() else float(wait.mean())
    most = -(-len(wait) // 1000)
    longest = np.partition(wait, len(wait) - most)[-most:]
    return np.array([slowdown.mean(), by_area + 1.0, float(np.percentile(wait, 99)) + 1.0, wait.max() + 1.0, float(longest.mean()) + 1.0])


@dataclass(frozen=True, eq=False)
class LogPart:
    """Simulated jobs of a log; the jobs from index `first` on are measured.

    `log`: the index of the log.
    """

    log: int
    jobs: Workload
    first: int = 0


def parts_of(logs: Sequence[Workload], share: float, copies: int, shaken: int, seed: int) -> tuple[list[LogPart], list[LogPart]]:
    """Return the parts for training, with the first `share` of each log's jobs, and the parts for choosing, with its later jobs.

    There are `copies` of each: as recorded, and shaken by up to `shaken` s. Parts for choosing include the earlier jobs, unmeasured.
    """
    early, late = [], []
    for number, log in enumerate(logs):
        cut = max(1, int(len(log) * share))
        for copy in range(copies):
            jobs = log if copy == 0 else shake(log, shaken, seed + copy)
            early.append(LogPart(number, head(jobs, cut)))
            if cut < len(log):
                late.append(LogPart(number, jobs, cut))
    return early, late


class Parts:
    """Simulate schedulers on all parts, with common random numbers."""

    def __init__(self, parts: Sequence[LogPart], baseline: Scheduler, workers: int | None = None):
        self.parts, self.workers = list(parts), workers
        self.logs = np.array([one.log for one in parts])
        self.baseline = np.log(self._values([baseline])[0])

    def relative(self, schedulers: Sequence[Scheduler], progress: Callable[[int], None] | None = None) -> Array:
        """Return logarithms of the objectives over the baseline's: float64 of shape (schedulers, parts, objectives)."""
        result: Array = np.log(self._values(schedulers, progress)) - self.baseline
        return result

    def _values(self, schedulers: Sequence[Scheduler], progress: Callable[[int], None] | None = None) -> Array:
        def run(part: LogPart, scheduler: Scheduler, check: Callable[[int], None]) -> Array:
            schedule, behind = simulate(part.jobs, scheduler, progress=check), slice(part.first, None)
            return objectives(*(column[behind] for column in (schedule.submit, schedule.start, schedule.runtime, part.jobs.procs)))

        return simulate_grid(run, schedulers, self.parts, self.workers, progress)


def by_log(relative: Array, logs: Array) -> Array:
    """Return the means over the copies of each log, float64, shape (..., logs, objectives)."""
    return np.stack([relative[..., logs == log, :].mean(axis=-2) for log in np.unique(logs)], axis=-2)


def merit(relative: Array, logs: Array, penalty: float) -> Array:
    """Return the minimised value for each log: float64 of shape (..., logs) from `relative` of shape (..., parts, objectives).

    It sums logarithms of ratios to the baseline: for mean bounded slowdown with weight 1, for wait by area and for the 99th percentile with
    weight 1/20 each, and for the longest waits, if above 0, with weight `penalty`.
    """
    means = by_log(relative, logs)
    result: Array = means[..., 0] + 0.05 * (means[..., 1] + means[..., 2]) + penalty * np.maximum(means[..., 4], 0.0)
    return result


TERMS = (
    "log(wait+60)",
    "log(planned+60)",
    "log(procs)",
    "log((user_used+36000)/(user_started+1))",
    "log((user_waited+600)/(user_started+1))",
    "log(user_started+1)",
    "wait/(longest+3600)",
    "wait/86400",
    "(procs<2)",
    "log(procs)*log(wait+60)",
    "log(procs)*log(planned+60)",
    "log(wait+60)*log(planned+60)",
    "procs/machine",
    "(procs>free)",
    "log(procs)*log(waiting+1)",
    "log(planned+60)*tanh(queued/machine/(longest+3600))",
    "log(procs)*tanh(queued/machine/(longest+3600))",
    "log(planned+60)*(hour>17)",
    "log(procs)*(hour>17)",
)
"""Terms of a formula, which is a weighted sum. Their constants (s, processor-seconds, processors) keep logarithms finite. Terms with the
hour are omitted if a log has no start date."""
BACKFILL = ("", "saf", "sjf", "lxf")
"""Backfill orders to try; the first is the queue order."""
QUEUES = ("fcfs", "sqf:max-wait-share=0.4", "f2:max-wait-share=0.4")
"""Queue orders to try if the formula is the backfill order."""
HALF_LIVES = (604_800, 86_400, 2_592_000)
"""Half-lives of past use, s: a week, a day, a month."""
WAIT_SHARES = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.9)
"""Bounds on waits to try with each step at the end of the search."""
WAIT_SHARE = 0.4
"""The bound on waits with which named orders are also tried."""
CHOOSING = "choosing by the later jobs"
"""The progress text at the end of a search, when the order is chosen."""
STEP = 0.35
"""Initial standard deviation of the changes to a weight, and to the logarithm of the bound on waits."""
DIGITS = 3
EASY = Scheduler(Easy())
MIN_JOBS = 50
"""Smallest number of jobs of a log."""


@dataclass(frozen=True)
class Formula:
    """The formula of an order: a weighted sum of `TERMS`, a limit on waiting, and another order.

    Without a `queue`, it is the queue order, and also the backfill order unless `backfill` is another one; with a `queue`, it is only the
    backfill order.
    """

    terms: tuple[str, ...]
    weights: tuple[float, ...]
    max_wait_share: float = 0.6
    backfill: str = ""
    queue: str = ""
    predictor: str = ""
    predictions_for: str = PREDICTIONS_FOR
    half_life: int = HALF_LIVES[0]
    choices: tuple[str, ...] = TERMS
    """the terms that may be added"""
    is_plain: bool = False
    """whether its text is shortened; during a search, the text contains all weights, so that each template is compiled only once"""

    @property
    def order(self) -> Order:
        """Return the order, with weights scaled so that the largest is 1."""
        largest = max(map(abs, self.weights)) or 1.0
        rounded = [float(f"{weight / largest:.{DIGITS}g}") for weight in self.weights]
        parts = [f"{weight}*{term}" for term, weight in zip(self.terms, rounded, strict=True) if weight]
        text = "+".join(parts) or self.terms[0]
        if self.is_plain:
            text = re.sub(r"(?<![\w.)])1\.0\*", "", text).replace("+-", "-")
        history = any(name in text for name in HISTORY)
        return Expression(formula=text, half_life=self.half_life if history else None, max_wait_share=float(f"{self.max_wait_share:.2g}"))

    @property
    def scheduler(self) -> Scheduler:
        """Return EASY with this order, and with predictions if there is a predictor."""
        if self.queue:
            policy = Easy(order=parse_order(self.queue), backfill_order=self.order)
        else:
            policy = Easy(order=self.order, backfill_order=parse_order(self.backfill) if self.backfill else None)
        if self.predictor:
            return parse_scheduler(f"{policy.label},predictor={self.predictor},predictions-for={self.predictions_for}")
        return Scheduler(policy)

    @property
    def size(self) -> int:
        """Return the number of terms, plus one for a separate queue or backfill order."""
        return len(self.terms) + bool(self.backfill) + (self.queue not in ("", FCFS.label))

    def at(self, point: Array) -> Formula:
        """Return the formula after changing each weight and the logarithm of the bound on waits by STEP times a point's coordinates."""
        weights = tuple(float(weight + STEP * step) for weight, step in zip(self.weights, point, strict=False))
        return replace(self, weights=weights, max_wait_share=float(np.clip(self.max_wait_share * np.exp(STEP * point[-1]), 0.05, 3.0)))

    def neighbours(self) -> list[Formula]:
        """Return the formulas that are one step away: one term more or less, another queue or backfill order, or another half-life."""
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
    Formula(("log(wait+60)", "log(planned+60)"), (1.0, -1.0)),
    Formula(("log(wait+60)", "log(planned+60)", "log(procs)"), (1.0, -0.6, -0.4), max_wait_share=1.0, queue="fcfs"),
    Formula(("log(wait+60)", "log(procs)"), (0.3, -1.0), max_wait_share=0.4),
    Formula(("wait/(longest+3600)", "log(planned+60)"), (1.0, -0.3)),
)
"""Starting points: largest slowdown first; the same with the size, for backfilling only; narrow jobs first; longest waits first."""


def named_schedulers() -> list[tuple[str, Scheduler]]:
    """Return EASY with named orders for the queue (with and without a limit) or for backfilling; each has a kind, `named` or `limited`."""
    plain = [name for name in NAMED_ORDERS if name != "fcfs"]
    schedulers = [("named", Easy(order=parse_order(name))) for name in plain]
    schedulers += [("named", Easy(backfill_order=parse_order(name))) for name in ("sjf", "saf", "lxf")]
    schedulers += [("limited", Easy(order=parse_order(f"{name}:max-wait-share={WAIT_SHARE}"))) for name in plain]
    return [(kind, Scheduler(policy)) for kind, policy in schedulers]


class _Costs:
    """Compute the objectives of schedulers relative to EASY on a set of log parts, and store them in a folder."""

    def __init__(self, parts: Parts, folder: CostFolder):
        self.parts, self.folder = parts, folder
        self.tried: dict[str, Array] = {}

    def of(self, schedulers: Sequence[Scheduler]) -> Array:
        """Return relative objectives, float64 of shape (schedulers, parts, objectives)."""
        flat = self.folder.costs(schedulers, lambda some: self.parts.relative(some).reshape(len(some), -1))
        values = flat.reshape(len(schedulers), len(self.parts.parts), len(OBJECTIVES))
        self.tried |= {one.label: value for one, value in zip(schedulers, values, strict=True)}
        return values

    def mean(self, label: str) -> tuple[float, ...]:
        """Return the geometric mean of each objective over the logs."""
        return tuple(round(float(value), 4) for value in np.exp(by_log(self.tried[label], self.parts.logs).mean(axis=0)))


def _plan(settings: SearchSettings, logs: Sequence[Workload]) -> dict[str, Any]:
    """Return the settings on which the stored costs depend."""
    plan = {name: value for name, value in asdict(settings).items() if name not in ("budget", "optimiser")}
    return plan | {"version": version(), "logs": [log.origin.name for log in logs], "checksums": [log.origin.sha256 for log in logs]}


def _starts(settings: SearchSettings, logs: Sequence[Workload]) -> list[Formula]:
    """Return `STARTS` with the predictions of the settings and the terms that all logs support."""
    clocks = all(log.origin.unix_start_time is not None for log in logs)
    terms = tuple(one for one in TERMS if clocks or "hour" not in one)
    return [replace(one, predictor=settings.predictor, predictions_for=settings.predictions_for, choices=terms) for one in STARTS]


def search_orders(
    logs: Sequence[Workload],
    *,
    store: str | Path | None = None,
    workers: int | None = None,
    progress: Callable[[int, str], None] | None = None,
    **options: Any,
) -> OrderFile:
    """Search for a queue order that performs well on all of these logs, without a longer maximum wait than under EASY.

    The search minimises `objectives.merit`, the mean over the logs, from all `STARTS` at once: each step tries all `neighbours` of a
    formula, with weights by CMA-ES. A larger formula must gain more than the 90 % interval over the parts, or the search
    from this start ends; a smaller one is accepted without a loss. The result is the step with a limit that has the lowest mean bounded
    slowdown on the later jobs, without a longer maximum wait than EASY's. `options`: the fields of `SearchSettings`. `store`: a folder for
    evaluations, from which an interrupted search resumes. `progress` is called with the number of evaluations and the best formula, or
    `CHOOSING`. Raises PolicyError for invalid settings, and WorkloadError without a log, or for one of under 50 jobs.
    """
    settings = SearchSettings(**options)
    if settings.optimiser == "cma":
        import_cma()
    if not logs:
        raise WorkloadError("a search needs at least one log")
    for log in logs:
        if len(log) < MIN_JOBS:
            raise WorkloadError(
                f"{log.origin.name} has {counted(len(log), 'job')}, too few for a search; give logs of at least {MIN_JOBS}", "too_few_jobs"
            )
    early, late = parts_of(logs, settings.share, settings.copies, settings.shaken, settings.seed)
    training, choosing = (
        _Costs(Parts(jobs, EASY, workers), CostFolder(None if store is None else Path(store) / part, _plan(settings, logs)))
        for part, jobs in (("training", early), ("choosing", late))
    )
    climb = _Climb(training, settings, progress)
    steps = [replace(one, is_plain=True) for one in climb.formulas(_starts(settings, logs))]
    limited = [*steps, *(replace(one, max_wait_share=share) for one in steps for share in WAIT_SHARES)]
    named, front = [one for _, one in named_schedulers()], _front(training)
    if progress is not None:
        progress(climb.done, CHOOSING)
    for costs in (training, choosing):
        costs.of([*(one.scheduler for one in limited), *named, *front])
    chosen = _choose(limited, training, choosing)

    def points(schedulers: Sequence[Scheduler]) -> tuple[Point, ...]:
        return tuple(Point(label, training.mean(label), choosing.mean(label)) for label in (one.label for one in schedulers))

    return OrderFile(
        scheduler=chosen.scheduler.label,
        evaluations=climb.done,
        version=version(),
        log=tuple(map(LogIdentity.of, logs)),
        step=points([one.scheduler for one in (*steps, chosen)]),
        front=points(front),
        named=points(named),
        **asdict(settings),
    )


def _choose(formulas: Sequence[Formula], training: _Costs, choosing: _Costs) -> Formula:
    """Return the formula with the lowest mean bounded slowdown on the later jobs among those with no longer maximum wait than EASY.

    Maximum waits are means over the logs, for earlier and later jobs. If all are longer than under EASY, the shortest one decides.
    """

    def rank(one: Formula) -> tuple[float, float]:
        early, late = (costs.mean(one.scheduler.label) for costs in (training, choosing))
        return max(early[3], late[3], 1.0), late[0]

    return min(formulas, key=rank)


class _Climb:
    """Climb from formula to better formula; `done`: number of evaluations so far."""

    def __init__(self, costs: _Costs, settings: SearchSettings, progress: Callable[[int, str], None] | None):
        self.costs, self.settings, self.progress = costs, settings, progress
        self.done = 0
        self._best = ""

    def formulas(self, starts: Sequence[Formula]) -> list[Formula]:
        """Return the formulas after each step from each start."""
        self._best = starts[0].scheduler.label
        paths = [[self._tune(one, 4)] for one in starts]
        climbing = list(paths)
        while climbing and self.done < self.settings.budget:
            for path in list(climbing):
                self._best = min((one[-1] for one in paths), key=lambda one: one[0])[1].scheduler.label
                step = self._next_step(*path[-1]) if self.done < self.settings.budget else None
                if step is None:
                    climbing.remove(path)
                else:
                    path.append(step)
        return [formula for path in paths for _, formula in path]

    def _tune(self, formula: Formula, generations: int) -> tuple[float, Formula]:
        """Return the lowest merit near a formula, and the formula that has it; `generations` of CMA-ES, where 1 gives a rough estimate."""
        dimensions = len(formula.terms) + 1

        def evaluate(points: list[Array]) -> list[float]:
            candidates = [formula.at(point).scheduler for point in points]
            self.done += len(points)
            values = merit(self.costs.of(candidates), self.costs.parts.logs, self.settings.penalty).mean(axis=1)
            if self.progress is not None:
                self.progress(self.done, self._best)
            return [float(value) for value in values]

        point, value = minimise(evaluate, dimensions, generations * (4 + len(formula.terms)), self.settings.optimiser, self.settings.seed)
        start = evaluate([np.zeros(dimensions)])[0]
        return (start, formula) if start <= value else (value, formula.at(point))

    def _next_step(self, merit_before: float, before: Formula) -> tuple[float, Formula] | None:
        """Return the merit and formula of the next step; None if no step improves the merit."""
        tries = sorted((self._tune(one, 1) for one in before.neighbours()), key=lambda one: one[0])
        tries = sorted((self._tune(one, 4) for _, one in tries[:3]), key=lambda one: one[0])
        found = next((one for one in tries if _gain_is_significant(self.costs, before, one[1], self.settings.penalty)), None)
        if found is not None:
            return found
        found = self._tune(before, 4)
        return found if found[0] < merit_before - 1e-4 else None


def _gain_is_significant(costs: _Costs, before: Formula, after: Formula, penalty: float) -> bool:
    """Return whether a larger formula gains more than the interval over the logs' copies, or a smaller one does not lose."""
    pair = costs.of([before.scheduler, after.scheduler])
    single = np.arange(pair.shape[1])  # the parts one by one
    gains = -np.diff(merit(pair, single, penalty), axis=0)[0]
    if after.size < before.size:
        return bool(gains.mean() > -0.002)
    error = float(gains.std(ddof=1)) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return bool(gains.mean() > error * student_t(0.95, max(len(gains) - 1, 1)))


def _front(costs: _Costs) -> list[Scheduler]:
    """Return the Pareto front of mean bounded slowdown and longest wait: at most 20 schedulers, in order of the longest wait."""
    points = sorted((costs.mean(label)[3], costs.mean(label)[0], label) for label in costs.tried)
    kept: list[str] = []
    least = np.inf
    for _, slowdown, label in points:
        if slowdown < least:
            kept.append(label)
            least = slowdown
    places = np.unique(np.linspace(0, len(kept) - 1, min(20, len(kept))).round().astype(int))
    return [parse_scheduler(kept[place]) for place in places]
