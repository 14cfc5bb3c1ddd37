"""What a found order is worth on logs that the search has not seen, beside all orders that have a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from walltime.metrics import Interval
from walltime.metrics.series import stratified_interval
from walltime.policy import Easy, parse_order
from walltime.policy.registry import NAMED_ORDERS
from walltime.simulation.specification import Scheduler, parse_scheduler
from walltime.simulation.windows import in_percent
from walltime.tuning.objectives import OBJECTIVES, LogPart, Parts, by_log
from walltime.workload import Workload
from walltime.workload.scaling import shake

Array = np.ndarray
LIMIT = 0.4
"""The limit with which the orders that have a name are tried, too."""
EXACT = ("sjf", "saf", "lxf", "wfp", "unicef")
"""Named orders that are tried with exact estimates, too: those that gain by knowing them."""
PREDICTED = (
    "easy:predictor={}",
    "easy:backfill-order=lxf,predictor={}",
    "easy:backfill-order=saf,predictor={}",
    "easy:order=lxf,predictor={}",
    "easy:order=lxf,backfill-order=saf,predictor={}",
    "easy:backfill-order=sjf,predictor={}",
    f"easy:order=lxf:limit={LIMIT},predictor={{}},believe=100",
    "easy:backfill-order=lxf,predictor={},believe=100",
)
"""Schedulers that are tried with predictions; with `believe=100` these decide the order only, and backfilling keeps to the requests."""
KINDS = (("named",), ("named", "limited"), ("named", "limited", "predicted"))
"""The kinds of schedulers of whose best the found one is compared with."""
TOLERANCE = 0.001
"""By which share a longest wait may be above EASY's and count as equal."""


@dataclass(frozen=True)
class FinalRow:
    """A scheduler on all final logs.

    `kind`: named, limited (named, with a limit), found, front, predicted, exact (with exact estimates, over EASY with exact ones) or knows
    (with exact estimates, over EASY with users').
    `overall`: its objectives over EASY's, geometric means over the logs; `logs`: the same on each log, over its copies.
    """

    scheduler: str
    kind: str
    overall: tuple[float, ...]
    logs: tuple[tuple[float, ...], ...]

    @property
    def is_bounded(self) -> bool:
        """Whether its longest wait is not above EASY's, in the mean over the logs."""
        return self.overall[3] <= 1 + TOLERANCE

    @property
    def is_everywhere(self) -> bool:
        """Whether it ran on all logs: predictions need logs that say who submitted."""
        return not any(np.isnan(one[0]) for one in self.logs)


@dataclass(frozen=True)
class FinalTable:
    """Schedulers by final logs; `against`: the change of mean bounded slowdown by the found order, in %, against others, by label.

    `longest`: the change of its longest wait against EASY's, in %; None for one log. The intervals are over the logs, as if they were drawn
    from many such logs. `rows` are `FinalRow`.
    """

    logs: tuple[str, ...]
    rows: tuple[FinalRow, ...]
    against: dict[str, Interval]
    copies: int
    shaken: int
    longest: Interval | None = None

    @property
    def found(self) -> FinalRow:
        """The order that was found, with users' estimates."""
        return next(row for row in self.rows if row.kind == "found")

    def best(self, kinds: Sequence[str], bounded: bool) -> FinalRow | None:
        """The row of these kinds with the lowest mean bounded slowdown; `bounded`: of those whose longest wait is not above EASY's."""
        able = [row for row in self.rows if row.kind in kinds and row.is_everywhere and (row.is_bounded or not bounded)]
        return min(able, key=lambda row: row.overall[0], default=None)

    def as_dict(self) -> dict[str, Any]:
        """The table as JSON has it."""
        rows = [asdict(row) | {"logs": [[None if np.isnan(v) else v for v in one] for one in row.logs]} for row in self.rows]
        against = {label: asdict(one) for label, one in self.against.items()}
        return {"logs": list(self.logs), "objectives": list(OBJECTIVES), "rows": rows, "against": against} | {
            "copies": self.copies,
            "shaken": self.shaken,
            "longest": None if self.longest is None else asdict(self.longest),
        }


def named_schedulers() -> list[tuple[str, Scheduler]]:
    """EASY by each order that has a name, of the queue or of backfilling, and with limits; and what each is called in the table."""
    plain = [name for name in NAMED_ORDERS if name != "fcfs"]
    schedulers = [("named", Easy(order=parse_order(name))) for name in plain]
    schedulers += [("named", Easy(backfill_order=parse_order(name))) for name in ("sjf", "saf", "lxf")]
    schedulers += [("limited", Easy(order=parse_order(f"{name}:limit={LIMIT}"))) for name in plain]
    return [(kind, Scheduler(policy)) for kind, policy in schedulers]


def judge(
    found: Sequence[str],
    logs: Sequence[Workload],
    *,
    copies: int = 3,
    shaken: int = 60,
    seed: int = 1000,
    predictors: Sequence[str] = ("tsafrir07",),
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> FinalTable:
    """Simulate the schedulers that were `found`, of which the first is judged, and all named ones on final logs.

    Each log is there as recorded and `copies` - 1 times shaken, the same for all. `predictors`: the found order and `PREDICTED` also
    run with these, and with that of the found one if it has one, on the logs that say who submitted; on the others their values are nan.
    The found order and those of `EXACT` are
    also simulated with exact estimates. `progress` is called with the number of simulations that are done.
    """
    chosen = [parse_scheduler(label) for label in found]
    by_kind = [("found" if k == 0 else "front", one) for k, one in enumerate(chosen)] + named_schedulers()
    schedulers = [one for _, one in by_kind]
    users = Parts(_copies(logs, copies, shaken, seed), Scheduler(Easy()), workers)
    relative = users.relative(schedulers, progress)
    done = len(schedulers) * len(users.parts)

    def later(count: int) -> None:
        if progress is not None:
            progress(done + count)

    able = [number for number, log in enumerate(logs) if "user" in log.columns]  # which predictors learn from
    predictors = used_predictors(chosen[0], predictors)
    if predictors and able:
        forms = PREDICTED if chosen[0].prediction else (f"{chosen[0].label},predictor={{}}", *PREDICTED)
        made = (parse_scheduler(one.format(name)) for name in predictors for one in forms)
        predicted = [one for one in made if one != chosen[0]]
        some = Parts([one for one in users.parts if one.log in able], Scheduler(Easy()), workers)
        values = np.full((len(predicted), *relative.shape[1:]), np.nan)
        values[:, np.isin(users.logs, able)] = some.relative(predicted, later)
        relative, done = np.concatenate([relative, values]), done + len(predicted) * len(some.parts)
        by_kind += [("predicted", one) for one in predicted]
        schedulers += predicted
    exact_logs = [log.with_believed(np.maximum(log.runtime, 1)) for log in logs]
    exact = Parts(_copies(exact_logs, copies, shaken, seed), Scheduler(Easy()), workers)
    known = [chosen[0], *(Scheduler(Easy(order=parse_order(name))) for name in EXACT)]
    exactly = exact.relative(known, later)
    rows = [_row(kind, one, value, users.logs) for (kind, one), value in zip(by_kind, relative, strict=True)]
    rows += [_row("exact", one, value, exact.logs) for one, value in zip(known, exactly, strict=True)]
    known, exactly = [Scheduler(Easy()), *known], np.concatenate([np.zeros_like(exactly[:1]), exactly]) + exact.baseline - users.baseline
    rows += [_row("knows", one, value, exact.logs) for one, value in zip(known, exactly, strict=True)]
    table = FinalTable(tuple(log.origin.name for log in logs), tuple(rows), {}, copies, shaken)
    others = [table.best(kinds, bounded) for kinds in KINDS for bounded in (False, True)]
    against = {"easy": _change(relative[0], users.logs)} if len(logs) > 1 else {}
    places = {one.label: place for place, one in enumerate(schedulers)}
    for row in others:
        if row is not None and len(logs) > 1:
            against[row.scheduler] = _change(relative[0] - relative[places[row.scheduler]], users.logs)
    return replace(table, against=against, longest=_change(relative[0], users.logs, 3) if len(logs) > 1 else None)


def _copies(logs: Sequence[Workload], copies: int, shaken: int, seed: int) -> list[LogPart]:
    return [
        LogPart(number, log.origin.name, log if copy == 0 else shake(log, shaken, seed + copy), 0, copy)
        for number, log in enumerate(logs)
        for copy in range(copies)
    ]


def _row(kind: str, scheduler: Scheduler, relative: Array, logs: Array) -> FinalRow:
    means = by_log(relative, logs)
    overall = tuple(round(float(value), 4) for value in np.exp(np.nanmean(means, axis=0)))
    return FinalRow(scheduler.label, kind, overall, tuple(tuple(round(float(v), 4) for v in np.exp(one)) for one in means))


def _change(difference: Array, logs: Array, objective: int = 0) -> Interval:
    """The change of an objective, mean bounded slowdown if no other, in %, of logarithms by part, over the logs."""
    values = by_log(difference, logs)[:, objective]
    return in_percent(stratified_interval(values, list(range(len(values)))))


def used_predictors(found: Scheduler, predictors: Sequence[str] = ("tsafrir07",)) -> list[str]:
    """These predictors, and that of the found scheduler."""
    own = [] if found.prediction is None else [found.prediction.predictor.label]
    return list(dict.fromkeys([*predictors, *own]))


def simulations(parts: int, found: Scheduler, predictors: Sequence[str] = ("tsafrir07",)) -> int:
    """How many simulations `judge` makes of so many parts, for one scheduler."""
    forms = len(PREDICTED) + (found.prediction is None)
    return parts * (1 + len(named_schedulers()) + forms * len(used_predictors(found, predictors)) + 1 + len(EXACT))
