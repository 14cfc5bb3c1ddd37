"""Judges a found order on final logs, unknown to the search, together with all named orders.

python validation/order_judgement.py ORDER.toml LOG... --out final.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from walltime import read
from walltime.metrics import Interval
from walltime.metrics.series import stratified_interval
from walltime.policy import Easy, parse_order
from walltime.simulation.specification import Scheduler, parse_scheduler
from walltime.simulation.windows import in_percent
from walltime.tuning.formula_search import OBJECTIVES, WAIT_SHARE, LogPart, Parts, by_log, named_schedulers
from walltime.tuning.order_file import read_order_file
from walltime.workload import Workload
from walltime.workload.scaling import shake

Array = np.ndarray
EXACT = ("sjf", "saf", "lxf", "wfp", "unicef")
"""Named orders that are also tried with exact estimates, as they benefit from them."""
PREDICTED = (
    "easy:predictor={}",
    "easy:backfill-order=lxf,predictor={}",
    "easy:backfill-order=saf,predictor={}",
    "easy:order=lxf,predictor={}",
    "easy:order=lxf,backfill-order=saf,predictor={}",
    "easy:backfill-order=sjf,predictor={}",
    f"easy:order=lxf:max-wait-share={WAIT_SHARE},predictor={{}},predictions-for=100",
    "easy:backfill-order=lxf,predictor={},predictions-for=100",
)
"""Schedulers that are tried with predictions; with `predictions_for=100` these decide the order only, and backfilling uses the requests."""
KINDS = (("named",), ("named", "limited"), ("named", "limited", "predicted"))
"""The kinds of schedulers whose best one is compared with the found one."""
TOLERANCE = 0.001
"""Relative excess of a longest wait over EASY's that counts as equal."""


@dataclass(frozen=True)
class FinalRow:
    """A scheduler on all final logs.

    `kind`: named, limited (named, with a limit), found, predicted, exact (with exact estimates, over EASY with exact ones) or knows (with
    exact estimates, over EASY with users'). `overall`: objectives over EASY's, geometric means over the logs; `logs`: the same on each
    log, over its copies.
    """

    scheduler: str
    kind: str
    overall: tuple[float, ...]
    logs: tuple[tuple[float, ...], ...]

    @property
    def is_bounded(self) -> bool:
        """Whether its longest wait is not above EASY's, on average over the logs."""
        return self.overall[3] <= 1 + TOLERANCE

    @property
    def is_everywhere(self) -> bool:
        """Whether it ran on all logs; predictions need logs with users."""
        return not any(np.isnan(one[0]) for one in self.logs)


@dataclass(frozen=True)
class FinalTable:
    """Schedulers on the final logs; `against`: change of mean bounded slowdown by the found order, in %, against others, by label.

    `longest`: change of its longest wait against EASY's, in %; None for one log. The intervals are over the logs.
    """

    logs: tuple[str, ...]
    rows: tuple[FinalRow, ...]
    against: dict[str, Interval]
    copies: int
    shaken: int
    longest: Interval | None = None

    @property
    def found(self) -> FinalRow:
        """The found order, with users' estimates."""
        return next(row for row in self.rows if row.kind == "found")

    def best(self, kinds: Sequence[str], bounded: bool) -> FinalRow | None:
        """Return the row of these kinds with the lowest mean bounded slowdown; `bounded`: with a longest wait not above EASY's."""
        rows = [row for row in self.rows if row.kind in kinds and row.is_everywhere and (row.is_bounded or not bounded)]
        return min(rows, key=lambda row: row.overall[0], default=None)

    def as_dict(self) -> dict[str, Any]:
        """Return the table for JSON."""
        rows = [asdict(row) | {"logs": [[None if np.isnan(v) else v for v in one] for one in row.logs]} for row in self.rows]
        against = {label: asdict(one) for label, one in self.against.items()}
        longest = None if self.longest is None else asdict(self.longest)
        values = {"logs": list(self.logs), "objectives": list(OBJECTIVES), "rows": rows, "against": against}
        return values | {"copies": self.copies, "shaken": self.shaken, "longest": longest}


def judge(
    found: str,
    logs: Sequence[Workload],
    *,
    copies: int = 3,
    shaken: int = 60,
    predictors: Sequence[str] = ("tsafrir07",),
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> FinalTable:
    """Simulate the `found` scheduler and all named ones on final logs.

    Each log is simulated as recorded and `copies` - 1 times shaken, the same for all. The found order and `PREDICTED` also run with these
    `predictors` and the found scheduler's, on logs with users; on other logs their values are nan. The found order and `EXACT` are also
    simulated with exact estimates. `progress` is called with the number of finished simulations.
    """
    chosen = parse_scheduler(found)
    by_kind = [("found", chosen), *named_schedulers()]
    schedulers = [one for _, one in by_kind]
    users = Parts(_copies(logs, copies, shaken), Scheduler(Easy()), workers)
    relative = users.relative(schedulers, progress)
    done = len(schedulers) * len(users.parts)

    def later(count: int) -> None:
        if progress is not None:
            progress(done + count)

    with_users = [number for number, log in enumerate(logs) if "user" in log.columns]  # predictors need them
    predictors = used_predictors(chosen, predictors)
    if predictors and with_users:
        forms = PREDICTED if chosen.prediction else (f"{chosen.label},predictor={{}}", *PREDICTED)
        candidates = (parse_scheduler(one.format(name)) for name in predictors for one in forms)
        predicted = [one for one in candidates if one != chosen]
        some = Parts([one for one in users.parts if one.log in with_users], Scheduler(Easy()), workers)
        values = np.full((len(predicted), *relative.shape[1:]), np.nan)
        values[:, np.isin(users.logs, with_users)] = some.relative(predicted, later)
        relative, done = np.concatenate([relative, values]), done + len(predicted) * len(some.parts)
        by_kind += [("predicted", one) for one in predicted]
        schedulers += predicted
    exact_logs = [log.with_planned(np.maximum(log.runtime, 1)) for log in logs]
    exact = Parts(_copies(exact_logs, copies, shaken), Scheduler(Easy()), workers)
    known = [chosen, *(Scheduler(Easy(order=parse_order(name))) for name in EXACT)]
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


def _copies(logs: Sequence[Workload], copies: int, shaken: int) -> list[LogPart]:
    return [
        LogPart(number, log if copy == 0 else shake(log, shaken, 1000 + copy)) for number, log in enumerate(logs) for copy in range(copies)
    ]


def _row(kind: str, scheduler: Scheduler, relative: Array, logs: Array) -> FinalRow:
    means = by_log(relative, logs)
    overall = tuple(round(float(value), 4) for value in np.exp(np.nanmean(means, axis=0)))
    return FinalRow(scheduler.label, kind, overall, tuple(tuple(round(float(v), 4) for v in np.exp(one)) for one in means))


def _change(difference: Array, logs: Array, objective: int = 0) -> Interval:
    """Return the change of an objective in %, with its interval over the logs, from logarithms by part."""
    values = by_log(difference, logs)[:, objective]
    return in_percent(stratified_interval(values, list(range(len(values)))))


def used_predictors(found: Scheduler, predictors: Sequence[str] = ("tsafrir07",)) -> list[str]:
    """Return these predictors and the found scheduler's."""
    own = [] if found.prediction is None else [found.prediction.predictor.label]
    return list(dict.fromkeys([*predictors, *own]))


def main() -> None:
    """Judge the order of a file on logs, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("order", type=Path)
    parser.add_argument("logs", type=Path, nargs="+")
    parser.add_argument("--copies", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    table = judge(read_order_file(given.order).scheduler, [read(log) for log in given.logs], copies=given.copies)
    given.out.write_text(json.dumps(table.as_dict(), indent=1) + "\n")
    for row in (table.found, *(one for kinds in KINDS for one in [table.best(kinds, bounded=False)] if one is not None)):
        print(f"{row.scheduler}: {row.overall[0]:.2f} times EASY's mean bounded slowdown, {row.overall[3]:.2f} times its longest wait")


if __name__ == "__main__":
    main()
