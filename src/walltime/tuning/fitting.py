"""Fit the weights of a queue order on the early part of a log, and test the order on the later part."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from walltime.declared import Field
from walltime.errors import PolicyError, WorkloadError
from walltime.metrics import Interval, halves_differ
from walltime.policy import FCFS, Policy, parse_order
from walltime.policy.formulas import SCORES, WeightedOrder
from walltime.policy.registry import NAMED_ORDERS
from walltime.provenance import version
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler
from walltime.simulation.windows import DAY, LogWindow, change_interval, check_cost, log_cost, percent, windows
from walltime.specification import Specification
from walltime.tuning.search import CostFolder, Optimiser, import_cma, make_order, search, simulate_grid, with_order
from walltime.workload import Array, Workload, check_workload

Where = Literal["order", "backfill-order"]
"""The order that is fitted."""
FEATURES = {"linear": ("wait", "planned", "procs", "area", "log-wait", "log-area"), "power": ("wait", "planned", "procs")}
"""The default features of each kind of score."""
SIMPLE = NAMED_ORDERS
"""The simple orders with which a fitted order is compared."""


@dataclass(frozen=True)
class Candidate:
    """A scheduler's change of cost relative to the baseline, percent, on the training and test windows; lower is better.

    The training value has no interval, because selection biases it.
    """

    scheduler: str
    training: float
    test: Interval


CAVEATS = (
    "The intervals cover the sampling of windows of one machine's log, in blocks of neighbouring windows; other machines may not benefit.",
    "The fitted order and the best simple one were chosen on the training windows, so the test is fair to them. The other orders are "
    "sorted by the test itself: the first of them is partly lucky (selection bias).",
    "Users might submit different jobs under another order; the simulated jobs are the log's.",
)
"""Caveats of every fitted order."""
HALVES = "The two halves of the test differ beyond chance, so the log changes over time: the intervals hold for these months only."


@dataclass(frozen=True)
class Tuning:
    """The result of `walltime.tune`.

    `fitted`: the scheduler with the fitted order, and `others`: schedulers with simple orders, each relative to the `baseline`.
    `against_simple`: the change from `best_simple`, the simple order that was best in training, to the fitted order on the test windows.
    All intervals are 90 %, over five blocks of neighbouring windows. `evaluations`: number of simulated candidates. `training`, `test`:
    numbers of windows. `halves_differ`: whether the change against the baseline differs between the two halves of the test.
    """

    log: str
    sha256: str
    metric: str
    baseline: str
    fitted: Candidate
    others: tuple[Candidate, ...]
    best_simple: str
    against_simple: Interval
    months: tuple[tuple[int, float, float], ...]
    """begin (s) of each test window, and the costs of the baseline and of the fitted scheduler"""
    longest_wait: tuple[float, float]
    """longest wait of the jobs measured in the test, s: under the baseline, and under the fitted scheduler"""
    halves_differ: bool
    evaluations: int
    training: int
    test: int
    settings: dict[str, Any]

    @property
    def scheduler(self) -> str:
        """Return the specification of the fitted scheduler."""
        return self.fitted.scheduler

    @property
    def is_clear(self) -> bool:
        """Return whether the fitted scheduler is better than the baseline in the test, beyond the interval."""
        return self.fitted.test.high < 0

    @property
    def verdict(self) -> tuple[str, ...]:
        """Return sentences that compare the fitted order with the baseline and the best simple order, and one on the longest wait."""
        name = self.metric.replace("_", " ")
        sentences = [
            _compare(name, self.fitted.test, self.baseline, self.test),
            _compare(name, self.against_simple, f"{self.best_simple}, the best simple order in training", self.test),
        ]
        before, after = (round(wait / DAY, 1) for wait in self.longest_wait)
        if after > before:
            sentences.append(f"The longest wait in these windows grows from {before:.1f} to {after:.1f} days: individual jobs may lose.")
        return tuple(sentences)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Return the caveats, in sentences."""
        return (HALVES, *CAVEATS) if self.halves_differ else CAVEATS

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        sentences = {"verdict": list(self.verdict), "caveats": list(self.caveats)}
        return asdict(self) | {"scheduler": self.scheduler, "is_clear": self.is_clear, **sentences, "version": version()}


def _compare(name: str, change: Interval, other: str, count: int) -> str:
    span = change.as_change("sampling of windows", f"{count} held out")
    if not (change.high < 0 or change.low > 0):
        return f"No clear difference in {name} from {other}: {span}."
    return f"{'Lower' if change.high < 0 else 'Higher'} {name} than under {other}: {span}."


@dataclass(frozen=True)
class FitSettings(Specification):
    """Settings of `tune`; raises PolicyError for invalid ones.

    `score`: `linear` or `power` (see `walltime.policy.score_order`), with these `features`, by default `FEATURES`. `where`: whether it is
    the `order` or the `backfill-order`. Windows are `days` long; jobs of `warm` days before and after each are simulated but not measured.
    The first `share` of the log is for training, with `most` windows spread over it; later windows are for the test, without common
    measured jobs. Each window is simulated `copies` times: as recorded, and shaken by up to `shake` s, with the same random numbers for all
    candidates. `budget`: number of candidates. `optimiser`: `cma` or `random`. `metric`: a field of the summary to minimise; the cost is
    the mean over windows of its logarithm.
    """

    score: Annotated[str, Field(known=tuple(SCORES))] = "power"
    features: Sequence[str] | None = None
    where: Where = "order"
    days: Annotated[int, Field(least=1)] = 30
    warm: Annotated[int, Field(least=0)] = 7
    share: Annotated[float, Field(above=0, below=1)] = 0.5
    most: Annotated[int, Field(least=1)] = 6
    copies: Annotated[int, Field(least=1)] = 2
    shake: Annotated[int, Field(least=0)] = 60
    budget: Annotated[int, Field(least=1)] = 150
    optimiser: Optimiser = "cma"
    seed: int = 0
    overrun: str = "kill"
    metric: str = "mean_bounded_slowdown"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cost(self.metric)
        if self.optimiser == "cma":
            import_cma()
        if isinstance(self.features, str) or not self.chosen:
            valid = ", ".join(SCORES[self.score].feature_names())
            raise PolicyError(f"features must be a list of at least one feature. Valid features: {valid}", "no_features")
        self.order(np.ones(len(self.chosen)), np.ones(len(self.chosen)))

    @property
    def chosen(self) -> list[str]:
        """Return the features."""
        return list(FEATURES[self.score] if self.features is None else self.features)

    def order(self, point: Array, scales: Array) -> WeightedOrder:
        """Return the order whose weights are a point of the search, as in `make_order`."""
        return make_order(point, self.score, self.chosen, scales)


class _Costs:
    """Compute costs of schedulers on the same windows and shaken copies, and store them in a folder."""

    def __init__(self, windows: Sequence[LogWindow], settings: FitSettings, folder: Path | None, workers: int | None):
        self.windows, self.settings, self.workers = windows, settings, workers
        self.runs = [
            window if copy == 0 else window.shaken(settings.shake, settings.seed + copy)
            for window in windows
            for copy in range(settings.copies)
        ]
        plan = {name: getattr(settings, name) for name in ("metric", "copies", "shake", "seed", "overrun")}
        self.folder = CostFolder(folder, plan | {"windows": [one.checksum for one in windows], "version": version()})

    def of(self, schedulers: Sequence[Scheduler], progress: Callable[[int], None] | None = None) -> Array:
        """Return the mean logarithm of the costs over the copies, float64, shape (schedulers, windows).

        `progress` is called with the number of finished schedulers.
        """
        return self.folder.costs(schedulers, lambda missing: self._simulate(missing, progress))

    def _simulate(self, schedulers: Sequence[Scheduler], progress: Callable[[int], None] | None) -> Array:
        settings = self.settings

        def run(window: LogWindow, scheduler: Scheduler, check: Callable[[int], None]) -> float:
            return float(getattr(window.run(scheduler, check, overrun=settings.overrun), settings.metric))

        report = None if progress is None else lambda runs: progress(runs // len(self.runs))
        values = log_cost(simulate_grid(run, schedulers, self.runs, self.workers, report), settings.metric)
        return values.reshape(len(schedulers), len(self.windows), settings.copies).mean(axis=2)


def tune(
    workload: Workload,
    policy: Policy | Scheduler | str = "easy",
    *,
    store: str | Path | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Tuning:
    """Fit the weights of a score, used as queue order, on early windows of a log, and test the order on all later windows.

    `policy`: the scheduler that gets the order, and the baseline. `options`: the fields of `FitSettings`. `store`: a folder for results;
    the same call resumes from there. `workers`: threads, by default one per core. `progress` is called with the number of finished
    candidates.

    Raises PolicyError for invalid options, WorkloadError for a log too short for two training and two test windows, OutputError for a
    folder with the results of another search.
    """
    check_workload(workload)
    base = Scheduler.of(policy)
    settings = FitSettings(**options)
    with_order(base, FCFS, settings.where)
    early, late = split(workload, settings.days, settings.warm, settings.share, settings.most)
    training, test = (
        _Costs(some, settings, None if store is None else Path(store) / part, workers)
        for part, some in (("training", early), ("test", late))
    )
    fitted, done = _fit(base, training, settings, progress)
    simple = [one for one in (with_order(base, parse_order(name), settings.where) for name in SIMPLE) if one.label != base.label]
    schedulers = [base, fitted, *simple]
    in_training, in_test = training.of(schedulers), test.of(schedulers)
    rows = [
        Candidate(one.label, percent(float((a - in_training[0]).mean())), change_interval(b - in_test[0]))
        for one, a, b in zip(schedulers, in_training, in_test, strict=True)
    ]
    best = 2 + int(np.argmin(in_training[2:].mean(axis=1)))
    costs = np.exp(in_test) - (0.0 if "slowdown" in settings.metric else 1.0)
    before, after = (max(one.run(scheduler, overrun=settings.overrun).max_wait for one in late) for scheduler in (base, fitted))
    fields = asdict(settings) | {"features": settings.chosen}
    return Tuning(
        log=workload.origin.name,
        sha256=workload.origin.sha256,
        metric=fields.pop("metric"),
        baseline=base.label,
        fitted=rows[1],
        others=tuple(rows[2:]),
        best_simple=rows[best].scheduler,
        against_simple=change_interval(in_test[1] - in_test[best]),
        months=tuple((one.begin, float(a), float(b)) for one, a, b in zip(late, costs[0], costs[1], strict=True)),
        longest_wait=(before, after),
        halves_differ=halves_differ(in_test[1] - in_test[0]),
        evaluations=done,
        training=len(early),
        test=len(late),
        settings=fields,
    )


def _fit(base: Scheduler, training: _Costs, settings: FitSettings, progress: Callable[[int], None] | None) -> tuple[Scheduler, int]:
    """Return the scheduler with the best order, and the number of candidates."""
    scales = _scales(base, training.windows, settings)
    baseline = training.of([base])[0]
    done = 0

    def evaluate(points: list[Array]) -> list[float]:
        nonlocal done
        candidates = [with_order(base, settings.order(point, scales), settings.where) for point in points]
        costs = training.of(candidates, None if progress is None else lambda more: progress(done + more))
        done += len(points)
        return [float(value) for value in (costs - baseline).mean(axis=1)]

    point, _ = search(evaluate, len(settings.chosen), settings.budget, settings.optimiser, settings.seed)
    return with_order(base, settings.order(point, scales), settings.where), done


def split(workload: Workload, days: int, warm: int, share: float, most: int) -> tuple[list[LogWindow], list[LogWindow]]:
    """Return at most `most` evenly spread training windows, and the test windows, which begin `warm` days after the training part.

    Training windows have no job of the test's part of the log. Raises WorkloadError for fewer than two of each.
    """
    span = int(workload.submit[-1] - workload.submit[0]) if len(workload) else 0
    cut = int(span * share)
    early = windows(workload, days * DAY, warm * DAY, warm * DAY, cut)
    late = windows(workload, days * DAY, warm * DAY, cut + warm * DAY)
    if len(early) < 2 or len(late) < 2:
        counts = f"{len(early)} training and {len(late)} test windows of {days} days with at least 20 jobs"
        raise WorkloadError(f"{workload.origin.name} has {counts}; use shorter windows to get 2 of each", "too_few_windows")
    chosen = np.unique(np.linspace(0, len(early) - 1, min(most, len(early))).round().astype(int))
    return [early[k] for k in chosen], late


def _scales(base: Scheduler, early: Sequence[LogWindow], settings: FitSettings) -> Array:
    """Return each feature's standard deviation over the jobs of the training windows under the baseline; float64, above 0."""
    columns = []
    for window in early:
        schedule = simulate(window.jobs, base, overrun=settings.overrun)
        parts = schedule.wait, schedule.workload.planned, schedule.workload.procs
        columns.append([part.astype(np.float64) for part in parts])
    wait, planned, procs = (np.concatenate(part) for part in zip(*columns, strict=True))
    logarithms = {"wait": np.log(wait + 1), "planned": np.log(planned), "procs": np.log(procs), "area": np.log(planned * procs)}
    values = {"wait": wait / 3600, "planned": planned / 3600, "procs": procs, "area": planned * procs / 3600}
    values |= {f"log-{name}": column for name, column in logarithms.items()}
    spread = [float(np.std((logarithms if settings.score == "power" else values)[name])) for name in settings.chosen]
    return np.array([one if one > 0 else 1.0 for one in spread])
