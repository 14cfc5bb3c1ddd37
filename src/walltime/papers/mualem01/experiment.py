"""The experiment of both papers on backfilling: EASY and conservative backfilling on one log; mualem01, Tables 3 and 4."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from walltime.estimates import parse_estimates
from walltime.papers.items import item
from walltime.papers.results import Claim, Parts, Rows, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
from walltime.policy import Conservative, Easy
from walltime.schedule import Schedule
from walltime.simulation import simulate

Array = np.ndarray

POLICIES = {"easy": Easy(), "conservative": Conservative()}
METRICS = {"response": "mean_response", "slowdown": "mean_bounded_slowdown_p1"}
DIGITS = {"response": 0, "slowdown": 1}
SEEDS, FEW_SEEDS = 10, 3
SHAKES, FEW_SHAKES = 20, 5
SHAKE = 30
"""A shaken submission is moved by at most this many seconds, earlier or later."""
NOTICEABLE = 0.05
"""A printed difference larger than this must have the same sign in our results."""
CHAOS_NOTE = (
    f"Where a number is beyond the accepted deviation, the small print gives the spread of our number. For one run it is the 5th to the "
    f"95th percentile of runs whose submissions are shaken by up to {SHAKE} s. For a mean over seeds, it contains another such mean with a "
    "probability of 90 %. A printed number inside the spread is marked ~, a number outside it !."
)


Measured = Mapping[tuple[str, str, str], Value]
"""Means over the seeds by metric, policy and estimates, with the printed numbers."""


def measure(study: Study, subject: Subject, estimates: Sequence[str], print_of: Callable[[str, str, str], float | None]) -> Measured:
    """Run both policies with these estimates; if these are not random, also with shaken submissions, for the bands.

    `print_of`: returns the printed number by metric, policy and estimates.
    """
    import polars as pl

    policies = [{"policy": policy} for policy in POLICIES]
    random, fixed = ([{"estimates": name} for name in estimates if chance or not parse_estimates(name).random] for chance in (True, False))
    seeds, shakes = (FEW_SEEDS, FEW_SHAKES) if study.quick else (SEEDS, SHAKES)
    runs = study.cells(f"{subject.name}: EASY and conservative", subject, policies, random, seeds=seeds)
    shaken = study.cells(f"{subject.name}: shaken", subject, policies, fixed, [{"shake": SHAKE}], seeds=shakes)
    values = {}
    for metric, policy, name in itertools.product(METRICS, POLICIES, estimates):
        chosen = (pl.col("policy") == policy) & (pl.col("estimates") == name)
        cells, others = (table.filter(chosen)[METRICS[metric]].to_numpy() for table in (runs, shaken))
        printed = print_of(metric, policy, name)
        values[metric, policy, name] = Value(
            float(cells.mean()), printed, study.printed.criteria[metric], DIGITS[metric], chaos(cells, others)
        )
    return values


def chaos(cells: Array, shaken: Array | None) -> tuple[float, float] | None:
    """Return the range in which a printed number may differ from ours by chance: see `CHAOS_NOTE`."""
    if len(cells) > 1:
        half = 1.645 * float(np.std(cells, ddof=1)) * float(np.sqrt(2 / len(cells)))
        return float(cells.mean()) - half, float(cells.mean()) + half
    if shaken is None or len(shaken) < 2:
        return None
    low, high = np.percentile(shaken, [5, 95])
    return float(low), float(high)


def label(estimates: str) -> str:
    """Return the name of estimates in the papers' tables."""
    return {"user": "original", "double": "x2"}.get(estimates, estimates.replace("f:", "f = "))


def compared(name: str, first: Value, second: Value) -> Iterator[Claim]:
    """Yield the claim that a difference has the same sign as in print, if it is printed and larger than `NOTICEABLE`."""
    if first.printed is not None and second.printed is not None:
        theirs, mine = second.printed / first.printed - 1, second.ours / first.ours - 1
        if abs(theirs) > NOTICEABLE:
            yield Claim(f"{name}: {100 * theirs:+.0f} % in print", (theirs > 0) == (mine > 0), f"{100 * mine:+.1f} %")


def schedule_of(subject: Subject, policy: str, overrun: str = "kill") -> Schedule:
    """Simulate the log under a policy, with the paper's original estimates."""
    return simulate(subject.workload.with_estimates(parse_estimates(subject.estimates)), POLICIES[policy], overrun=overrun)


def _quality(study: Study, table: str, models: Sequence[str]) -> Parts:
    """Yield a table of mualem01 with one row per log, policy and metric, and one column per kind of estimates."""
    names = ["user", *models]
    rows: Rows = []
    for subject in study.with_estimates:

        def print_of(metric: str, policy: str, model: str, of: Subject = subject) -> float | None:
            where: dict[str, Any] = {"log": of.name, "policy": policy, "estimates": model, "metric": metric}
            return study.printed_value(of, table, "value", **where)

        values = measure(study, subject, names, print_of)
        for metric, policy in itertools.product(METRICS, POLICIES):
            rows.append([subject.name, metric, policy, *(values[metric, policy, model] for model in names)])
        yield from _orders(subject.name, values, names)
    yield Table(f"table{table[1:]}", study.printed.tables[table].title, ["log", "metric", "policy", *map(label, names)], rows)
    seeds = FEW_SEEDS if study.quick else SEEDS
    yield f"Means over {seeds} seeds, the same for all; response in seconds, bounded slowdown in the form of mualem01."
    yield CHAOS_NOTE


def _orders(log: str, values: Measured, names: list[str]) -> Iterator[Claim]:
    """Yield every comparison whose printed difference is noticeable.

    Policies are compared under the same estimates. Each kind of estimates is compared with the original ones and with the next kind.
    """
    pairs = dict.fromkeys([*(("user", other) for other in names[1:]), *itertools.pairwise(names[1:])])
    for metric in METRICS:
        for model in names:
            easy, conservative = (values[metric, policy, model] for policy in POLICIES)
            yield from compared(f"{log}, {metric}, {label(model)}: conservative against EASY", easy, conservative)
        for policy, (first, second) in itertools.product(POLICIES, pairs):
            name = f"{log}, {metric}, {policy}: {label(second)} against {label(first)}"
            yield from compared(name, values[metric, policy, first], values[metric, policy, second])


FACTORS = (1, 2, 4, 11, 31, 101, 301)
T3 = item("T3", title="Table 3: the quality of the estimates", table="T3", models=[f"f:{factor}" for factor in FACTORS])(_quality)
T4 = item("T4", title="Table 4: doubled estimates", table="T4", models=["double"])(_quality)
