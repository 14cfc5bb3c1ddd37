"""The weights of a score fitted on the early months of a log, and tested on the later ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.metrics import Interval, halves_differ
from walltime.policy import FCFS, Policy, parse_order
from walltime.policy.formulas import SCORES, WeightedOrder
from walltime.policy.registry import NAMED_ORDERS
from walltime.provenance import version
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler
from walltime.simulation.windows import DAY, Window, change_interval, check_cost, percent, windows
from walltime.tuning.search import check_optimiser, make_order, search
from walltime.tuning.trials import CostFolder, Trials, with_order
from walltime.workload import Workload, check_workload

Array = np.ndarray
FEATURES = {"linear": ("wait", "believed", "procs", "area", "log-wait", "log-area"), "power": ("wait", "believed", "procs")}
"""The features of each kind of score that are fitted unless others are named."""
SIMPLE = NAMED_ORDERS
"""The orders that a fitted one is compared with."""


@dataclass(frozen=True)
class Candidate:
    """A scheduler, and its cost against the baseline in percent, less is better: on the training windows, and on the later ones.

    What was chosen in training looks better there than it is, so there is no interval.
    """

    scheduler: str
    training: float
    test: Interval


CAVEATS = (
    "The intervals are of such windows of one machine's log, over blocks of neighbours; on another machine the weights may gain nothing.",
    "The fitted order and the best simple one were chosen in training, on other windows than those that they are tested on, so the choice "
    "costs the test nothing. The other orders are listed as they came out in the test: the first of them is partly luck.",
    "Users might submit other jobs if the queue were ordered otherwise; the log's jobs stay as they are.",
)
"""The caveats of every fitting."""
HALVES = "The halves of these windows differ beyond chance, so the log changes: the intervals are of these months only."


@dataclass(frozen=True)
class Tuning:
    """The result of `walltime.tune`.

    `fitted`: the scheduler with the fitted order, and `others`, those with simple orders, each against the `baseline`. `against_simple`:
    the fitted one against `best_simple`, the simple one that was best in training, on the test windows. All intervals hold 90 %, over
    five blocks of neighbouring windows. `evaluations`: candidates simulated. `training`, `test`: windows. `halves_differ`: whether the
    change against the baseline differs between the earlier and the later half of the test.
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
    """of each test window: its begin (s), and the costs of the baseline and of the fitted scheduler"""
    longest_wait: tuple[float, float]
    """of any job measured in the test, s: under the baseline, and under the fitted scheduler"""
    halves_differ: bool
    evaluations: int
    training: int
    test: int
    settings: dict[str, Any]

    @property
    def scheduler(self) -> str:
        """The specification of the fitted scheduler, to be used everywhere."""
        return self.fitted.scheduler

    @property
    def is_clear(self) -> bool:
        """Whether the fitted scheduler is better than the baseline on later windows beyond the interval."""
        return self.fitted.test.high < 0

    @property
    def verdict(self) -> tuple[str, ...]:
        """What came out, in sentences: against the baseline, against the best simple order, and whether some jobs wait longer."""
        name = self.metric.replace("_", " ")
        first = _said(f"the {name} of the fitted order", self.fitted.test, f"that of {self.baseline}", self.test)
        second = _said("it", self.against_simple, f"that of {self.best_simple}, the best simple order in training", self.test)
        said = [sentence[0].upper() + sentence[1:] for sentence in (first, second)]
        before, after = (round(wait / DAY, 1) for wait in self.longest_wait)
        if after > before:
            said.append(
                f"The longest wait in these windows grows from {before:.1f} to {after:.1f} days: what a mean gains, single jobs may lose."
            )
        return tuple(said)

    @property
    def caveats(self) -> tuple[str, ...]:
        """The caveats, in sentences."""
        return (HALVES, *CAVEATS) if self.halves_differ else CAVEATS

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        said = {"verdict": list(self.verdict), "caveats": list(self.caveats)}
        return asdict(self) | {"scheduler": self.scheduler, "is_clear": self.is_clear, **said, "version": version()}


def _said(what: str, change: Interval, other: str, count: int) -> str:
    span = change.as_change("such windows", f"{count} held out")
    if change.high < 0:
        return f"{what} is lower than {other}: {span}."
    if change.low > 0:
        return f"{what} is higher than {other}: {span}."
    return f"there is no clear difference between {what} and {other}: {span}."


@dataclass(frozen=True)
class FitSettings:
    """What `tune` fits and on what; raises PolicyError for what cannot be tuned.

    `score`: `linear` or `power` (see `walltime.policy.score_order`), with these `features`, by default `FEATURES`. `where`: whether it is
    the `order` of the queue or the `backfill-order`. Windows are `days` long; the jobs of `warm` days before and after each are simulated,
    too, but not measured. The first `share` of the log is for training, with `most` windows spread over it; the windows after it are for
    the test, and no job is measured in both. Each window is simulated `copies` times: as it is, and shaken by up to `shake` s, always in
    the same ways, so that all candidates meet the same jobs. `budget`: candidates. `optimiser`: `cma` or `random`. `metric`: a field of the
    summary of which less is better; the cost is the mean over windows of its logarithm.
    """

    score: str = "power"
    features: Sequence[str] | None = None
    where: str = "order"
    days: int = 30
    warm: int = 7
    share: float = 0.5
    most: int = 6
    copies: int = 2
    shake: int = 60
    budget: int = 150
    optimiser: str = "cma"
    seed: int = 0
    overrun: str = "kill"
    metric: str = "mean_bounded_slowdown"

    def __post_init__(self) -> None:
        check_cost(self.metric)
        check_optimiser(self.optimiser)
        if self.score not in SCORES:
            raise PolicyError(f"unknown kind of score {self.score!r}; known are {', '.join(SCORES)}", "unknown_score")
        if isinstance(self.features, str) or not self.chosen:
            raise PolicyError(
                f"a score needs at least one feature, in a list: {', '.join(SCORES[self.score].known_features())}", "no_features"
            )
        self.order(np.ones(len(self.chosen)), np.ones(len(self.chosen)))
        for name in ("days", "copies", "budget", "most"):
            if not isinstance(value := getattr(self, name), int) or value < 1:
                raise PolicyError(f"{name} must be a whole number of at least 1, not {value!r}", "number_out_of_range")
        if not 0 < self.share < 1:
            raise PolicyError(f"the share of the log for training must be between 0 and 1, not {self.share!r}", "number_out_of_range")

    @property
    def chosen(self) -> list[str]:
        """The features."""
        return list(FEATURES[self.score] if self.features is None else self.features)

    def order(self, point: Array, scales: Array) -> WeightedOrder:
        """Return the order at a point, as in `make_order`."""
        return make_order(point, self.score, self.chosen, scales)


class _Costs:
    """Costs of schedulers on windows, kept in a folder."""

    def __init__(self, windows: Sequence[Window], settings: FitSettings, folder: Path | None, workers: int | None):
        self.trials = Trials(windows, settings.metric, settings.copies, settings.shake, settings.seed, settings.overrun, workers)
        plan = {name: getattr(settings, name) for name in ("metric", "copies", "shake", "seed", "overrun")}
        self.folder = CostFolder(folder, plan | {"windows": [one.checksum for one in windows], "version": version()})

    def of(self, schedulers: Sequence[Scheduler], progress: Callable[[int], None] | None = None) -> Array:
        """As `Trials.costs`; `progress` is called with the number of schedulers done."""
        tell = None if progress is None else lambda runs: progress(runs // len(self.trials.runs))
        return self.folder.costs(schedulers, lambda some: self.trials.costs(some, tell))


def tune(
    workload: Workload,
    policy: Policy | Scheduler | str = "easy",
    *,
    store: str | Path | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Tuning:
    """Fit the weights of a score as queue order on the early windows of a log, and test it on all later ones.

    `policy`: the scheduler that gets the order, and the baseline. `options`: the fields of `FitSettings`. `store`: a folder that keeps what
    was simulated; the same call goes on from there. `workers`: threads, by default one per core. `progress` is called with the number of
    candidates done.

    Raises PolicyError for what cannot be tuned, WorkloadError for a log too short for two training and two test windows, OutputError for a
    folder that has the results of another search.
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
    everyone = [base, fitted, *simple]
    in_training, in_test = training.of(everyone), test.of(everyone)
    rows = [
        Candidate(one.label, percent(float((a - in_training[0]).mean())), change_interval(b - in_test[0]))
        for one, a, b in zip(everyone, in_training, in_test, strict=True)
    ]
    best = 2 + int(np.argmin(in_training[2:].mean(axis=1)))
    costs = np.exp(in_test) - (0.0 if "slowdown" in settings.metric else 1.0)
    said = asdict(settings) | {"features": settings.chosen}
    return Tuning(
        log=workload.origin.name,
        sha256=workload.origin.sha256,
        metric=said.pop("metric"),
        baseline=base.label,
        fitted=rows[1],
        others=tuple(rows[2:]),
        best_simple=rows[best].scheduler,
        against_simple=change_interval(in_test[1] - in_test[best]),
        months=tuple((one.begin, float(a), float(b)) for one, a, b in zip(late, costs[0], costs[1], strict=True)),
        longest_wait=_longest(late, (base, fitted), settings.overrun),
        halves_differ=halves_differ(in_test[1] - in_test[0]),
        evaluations=done,
        training=len(early),
        test=len(late),
        settings=said,
    )


def _fit(base: Scheduler, training: _Costs, settings: FitSettings, progress: Callable[[int], None] | None) -> tuple[Scheduler, int]:
    """Return the scheduler with the best order found, and the number of candidates."""
    scales = _scales(base, training.trials.windows, settings)
    of_base = training.of([base])[0]
    done = 0

    def evaluate(points: list[Array]) -> list[float]:
        nonlocal done
        candidates = [with_order(base, settings.order(point, scales), settings.where) for point in points]
        costs = training.of(candidates, None if progress is None else lambda more: progress(done + more))
        done += len(points)
        return [float(value) for value in (costs - of_base).mean(axis=1)]

    point, _ = search(evaluate, len(settings.chosen), settings.budget, settings.optimiser, settings.seed)
    return with_order(base, settings.order(point, scales), settings.where), done


def split(workload: Workload, days: int, warm: int, share: float, most: int) -> tuple[list[Window], list[Window]]:
    """The windows for training, at most `most` of them spread evenly, and those for the test, which begin `warm` days later.

    No job after the training's part of the log is in a training window. Raises WorkloadError if there are not two of each.
    """
    span = int(workload.submit[-1] - workload.submit[0]) if len(workload) else 0
    cut = int(span * share)
    early = windows(workload, days * DAY, warm * DAY, warm * DAY, cut)
    late = windows(workload, days * DAY, warm * DAY, cut + warm * DAY)
    if len(early) < 2 or len(late) < 2:
        got = f"{len(early)} for training and {len(late)} for the test"
        raise WorkloadError(
            f"{workload.origin.name} has windows of {days} days with 20 jobs or more: {got}; take 2 of each, by fewer days",
            "too_few_windows",
        )
    chosen = np.unique(np.linspace(0, len(early) - 1, min(most, len(early))).round().astype(int))
    return [early[k] for k in chosen], late


def _scales(base: Scheduler, early: Sequence[Window], settings: FitSettings) -> Array:
    """How much each feature varies over the jobs of the training windows, as they start under the baseline; float64, all above 0."""
    columns = []
    for window in early:
        schedule = simulate(window.jobs, base, overrun=settings.overrun)
        parts = schedule.wait, schedule.workload.believed, schedule.workload.procs
        columns.append([part.astype(np.float64) for part in parts])
    wait, believed, procs = (np.concatenate(part) for part in zip(*columns, strict=True))
    logarithms = {"wait": np.log(wait + 1), "believed": np.log(believed), "procs": np.log(procs), "area": np.log(believed * procs)}
    values = {"wait": wait / 3600, "believed": believed / 3600, "procs": procs, "area": believed * procs / 3600}
    values |= {f"log-{name}": column for name, column in logarithms.items()}
    spread = [float(np.std((logarithms if settings.score == "power" else values)[name])) for name in settings.chosen]
    return np.array([one if one > 0 else 1.0 for one in spread])


def _longest(late: Sequence[Window], pair: tuple[Scheduler, Scheduler], overrun: str) -> tuple[float, float]:
    before, after = (max(one.run(scheduler, overrun=overrun).max_wait for one in late) for scheduler in pair)
    return before, after
