"""Metrics of predicted runtimes: accuracy, classes, spread within groups, missed reservations, gains."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.metrics.jobs import accuracy, mean, relative_difference, weighted_wait
from walltime.metrics.summary import Averages
from walltime.policy import FCFS, LogView, Order, Wfp

Array = np.ndarray

BAD = 30 * 60
"""Underestimates of at least this many seconds count as bad."""


class AdjustmentClass(IntEnum):
    """The outcome of adjusting a job's request (tang13, section 4.2.2)."""

    NA = 0
    """no adjustment, for lack of history"""
    OE = 1
    """overestimate: between the runtime and the request"""
    UE = 2
    """underestimate, by less than 30 min"""
    BE = 3
    """bad underestimate, by 30 min or more"""


def adjustment_classes(runtime: Array, requested: Array, predicted: Array, basis: Array) -> Array:
    """Return the class of each job's adjustment, an `AdjustmentClass`, uint8, shape (jobs,).

    `runtime`, `requested`, `predicted`: int64 s; `basis`: uint8, 0 without history, 3 for an invalid prediction; shape (jobs,). The runtime
    of a job that ran longer than requested counts as its request. Source: tang13, section 4.2.2; an underestimate of exactly 30 min counts
    as bad, an interpretation.

    >>> runtime, requested = np.array([600, 600, 600, 2400, 2399]), np.array([3600] * 5)
    >>> adjustment_classes(runtime, requested, np.array([3600, 600, 599, 600, 600]), np.array([0, 1, 1, 1, 1])).tolist()
    [0, 1, 2, 3, 2]
    """
    ran = np.minimum(runtime, requested)
    gap = ran - np.asarray(predicted)
    kind = np.where(gap <= 0, AdjustmentClass.OE, np.where(gap < BAD, AdjustmentClass.UE, AdjustmentClass.BE))
    return np.where(np.isin(basis, (0, 3)), AdjustmentClass.NA, kind).astype(np.uint8)


def use_of_request(runtime: Array, requested: Array) -> Array:
    """Return R = runtime / request, at most 1; float64, shape (jobs,).

    `runtime`, `requested`: int64 s, shape (jobs,), requests at least 1. Source: tang13, eq. 1.

    >>> use_of_request(np.array([30, 61]), np.array([60, 60])).tolist()
    [0.5, 1.0]
    """
    return np.minimum(np.asarray(runtime) / np.asarray(requested), 1.0)


def spread_within_groups(values: Array, group: Array, least: int = 10) -> tuple[float, int]:
    """Return the unweighted mean of the groups' standard deviations, and the number of groups.

    `values`: float64, `group`: int64, -1 for jobs without a group; shape (jobs,). Groups with fewer than `least` jobs are ignored; nan if
    none is left. Source: tang13, Table 2.

    >>> spread_within_groups(np.array([0.0, 1.0, 5.0, 5.0, 9.0]), np.array([0, 0, 1, 1, 2]), least=2)
    (0.25, 2)
    """
    values, group = np.asarray(values, np.float64), np.asarray(group)
    values, group = values[group >= 0], group[group >= 0]
    size = np.bincount(group)
    present = np.maximum(size, 1)
    center = np.bincount(group, weights=values) / present
    variance = np.bincount(group, weights=(values - center[group]) ** 2) / present
    chosen = size >= least
    return mean(np.sqrt(variance[chosen])), int(chosen.sum())


def priority_at_start(order: Order, submit: Array, start: Array, requested: Array, procs: Array, known: LogView | None = None) -> Array:
    """Return each job's score by the queue order at its start, with the user's request; float64, shape (jobs,).

    `submit, start, requested`: int64 s, `procs`: int64; shape (jobs,). `known`: columns and calendar for orders that read them. Under first
    come, first served the score is the wait. Raises PolicyError if an order needs a missing calendar.
    Source: tang13, eqs. 4 and 5; using the user's request, not the adjusted one, is an interpretation.
    """
    submit, start, requested, procs = (np.asarray(a, np.int64) for a in (submit, start, requested, procs))
    wait = start - submit
    if order == FCFS:
        return wait.astype(np.float64)
    if isinstance(order, Wfp):
        return (wait / requested) ** order.exponent * procs
    columns, calendar = known or LogView({})
    read = {"wait": wait, "planned": requested, "procs": procs, "submit": submit, "requested": requested}
    read["elapsed"] = submit - submit.min(initial=np.iinfo(np.int64).max)
    read |= {name: np.asarray(columns[name]) for name in order.columns if name in columns}
    if order.reads_calendar:
        if calendar is None:
            raise order.without_calendar()
        local = [calendar.local(time) for time in start.tolist()]
        read |= {"hour": np.array([date.hour for date in local]), "weekday": np.array([date.weekday() for date in local])}
    values = zip(*(column.tolist() for column in read.values()), strict=True)
    return np.array([order.score(**dict(zip(read, row, strict=True))) for row in values], np.float64)


def weighted_wait_under(order: Order, submit: Array, start: Array, requested: Array, procs: Array, known: LogView | None = None) -> float:
    """Return the wait weighted by the jobs' priorities at their starts, s; 0 if these sum to 0. Arguments as for `priority_at_start`.

    Source: tang13, eq. 4.

    >>> weighted_wait_under(FCFS, np.array([0, 0]), np.array([10, 30]), np.array([1, 1]), np.array([1, 1]))
    25.0
    """
    priority = priority_at_start(order, submit, start, requested, procs, known)
    return weighted_wait(np.asarray(start) - np.asarray(submit), priority)


@dataclass(frozen=True)
class Reservations:
    """Missed first reservations, their delays, and the error of all; nan without such jobs."""

    reserved: int
    """jobs that had a reservation"""
    missed: int
    """jobs that started after their first reservation"""
    mean_delay: float
    """mean delay of these jobs, s"""
    mean_error: float
    """mean of |reservation - start| over the jobs with a reservation, s: predictability"""


def reservations(start: Array, reserved_start: Array) -> Reservations:
    """Return how well first reservations were kept. `start`, `reserved_start`: int64 s, -1 for none; shape (jobs,).

    Without predictions, and with estimates that are upper bounds, EASY and conservative backfilling keep every reservation made for the
    head of the queue. With predictions, a reservation is broken when a running job exceeds its prediction. Source: tsafrir07.

    >>> reservations(np.array([5, 9, 4]), np.array([5, 7, -1]))
    Reservations(reserved=2, missed=1, mean_delay=2.0, mean_error=1.0)
    """
    start, reserved_start = np.asarray(start), np.asarray(reserved_start)
    late = (start - reserved_start)[reserved_start >= 0]
    return Reservations(len(late), int(np.count_nonzero(late > 0)), mean(late[late > 0]), mean(np.abs(late)))


@dataclass(frozen=True)
class PredictionSummary(Averages):
    """Quality of predictions over the measured jobs; undefined values are nan."""

    jobs: int
    mean_accuracy: float
    """of the predictions, 0 to 1"""
    median_accuracy: float
    mean_accuracy_of_requests: float
    """of the user estimates, for comparison"""
    na_percent: float
    """jobs without adjustment"""
    oe_percent: float
    """overestimates"""
    ue_percent: float
    """underestimates by less than 30 min"""
    be_percent: float
    """underestimates by 30 min or more"""
    general_percent: float
    """jobs predicted from the whole workload, as too little was known about similar jobs"""
    corrections: int
    """number of times a prediction was corrected while its job ran"""
    reserved_jobs: int
    """jobs that had a reservation"""
    reserved_starts_missed: int
    """jobs that started after their first reservation"""
    mean_miss: float
    """mean delay of these jobs, s"""
    mean_reservation_error: float
    """mean of |reservation - start|, s"""
    below_zero: int
    """jobs whose prediction was below 0 s, and therefore not used"""


def summarize_predictions(
    runtime: Array,
    requested: Array,
    predicted: Array,
    basis: Array,
    start: Array | None = None,
    reserved_start: Array | None = None,
    corrections: Array | None = None,
) -> PredictionSummary:
    """Return averages over these jobs; fields that need a schedule are nan or 0 without `start` and `reserved_start`.

    `runtime, requested, predicted, start, reserved_start`: int64 s, `basis`: uint8, `corrections`: int64; shape (jobs,).
    Source: tang13, section 4.2.
    """
    exact = accuracy(runtime, predicted)
    classes = adjustment_classes(runtime, requested, predicted, basis)
    shares: dict[str, Any] = {f"{kind.name.lower()}_percent": 100.0 * mean(classes == kind) for kind in AdjustmentClass}
    none = np.zeros(0, np.int64)
    kept = reservations(none if start is None else start, none if reserved_start is None else reserved_start)
    return PredictionSummary(
        jobs=len(exact),
        mean_accuracy=mean(exact),
        median_accuracy=float(np.median(exact)) if len(exact) else float("nan"),
        mean_accuracy_of_requests=mean(accuracy(runtime, requested)),
        **shares,
        general_percent=100.0 * mean(np.asarray(basis) == 2),
        corrections=0 if corrections is None else int(corrections.sum()),
        reserved_jobs=kept.reserved,
        reserved_starts_missed=kept.missed,
        mean_miss=kept.mean_delay,
        mean_reservation_error=kept.mean_error,
        below_zero=int((np.asarray(basis) == 3).sum()),
    )


def mean_gain(values: Array, baselines: Array, of: str = "months") -> float:
    """Return the mean reduction from the baselines to the values, in percent, one pair per month; positive is better.

    `of="months"`: the mean of the monthly gains; `of="means"`: the gain of the means. `values`, `baselines`: float64, shape (months,).
    Raises PolicyError for another `of`, WorkloadError if the numbers of months differ. Source: tang13, Figs. 14 to 17, panel d;
    `of="months"` is an interpretation.

    >>> mean_gain(np.array([50.0, 300.0]), np.array([100.0, 300.0])), mean_gain(np.array([50, 300]), np.array([100, 300]), "means")
    (25.0, 12.5)
    """
    values, baselines = np.asarray(values, np.float64), np.asarray(baselines, np.float64)
    if values.shape != baselines.shape:
        raise WorkloadError(f"a mean gain needs equal numbers of months, not {len(values)} and {len(baselines)}", "different_lengths")
    if of == "means":
        return -relative_difference(mean(values), mean(baselines))
    if of != "months":
        raise PolicyError(f"unknown way to average gains {of!r}. Valid options: months, means", "unknown_average")
    return mean(np.array([-relative_difference(v, b) for v, b in zip(values.tolist(), baselines.tolist(), strict=True)]))
