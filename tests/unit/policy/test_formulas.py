"""Queue orders of the later literature: their formulas, spellings, and what starvation does."""

from __future__ import annotations

import math

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from tests.strategies import LATER_ORDERS
from walltime.policy import Formula
from walltime.policy.formulas import FORMULAS, FittedFormula
from walltime.tuning.fitting import SIMPLE

# Three jobs wait for the first, which has all 4 processors until 100: a long narrow one, a short wide one, and one in between.
THREE = {"submit": [5, 6, 7, 8], "runtime": [95, 50, 10, 20], "procs": [4, 1, 4, 2], "machine_procs": 4}


def first_of(order: str, **job: int) -> float:
    return wt.policy.parse_order(order).score(**job)


@pytest.mark.parametrize(
    ("order", "score"),
    [
        ("lcfs", 1000),
        ("ljf", 100),
        ("sqf", -8),
        ("lqf", 8),
        ("saf", -800),
        ("laf", 800),
        ("lxf", 1.5),
        ("unicef", 50 / (3 * 100)),
        ("wfp", (50 / 100) ** 3 * 8),
        ("f1", -(2 * 8 + 870 * 3)),
        ("f2", -(10 * 8 + 25_600 * 3)),
        ("f3", -(100 * 8 + 6.86e6 * 3)),
        ("f4", -(100 * math.sqrt(8) + 5.30e5 * 3)),
        ("f1:submit-weight=10", -(2 * 8 + 10 * 3)),
    ],
)
def test_score__is_the_published_formula(order, score):
    assert first_of(order, wait=50, planned=100, procs=8, submit=1000) == pytest.approx(score, rel=1e-12)


@pytest.mark.slow
def test_fitted__count_from_the_first_submission():
    f1 = wt.policy.parse_order("f1")
    assert f1.score(0, 100, 8, 5_000, elapsed=1000) == pytest.approx(-(16 + 2610))
    assert f1.score(0, 100, 8, 5_000, elapsed=0) == pytest.approx(-(16 - 870))  # 0.1 for a logarithm of 0
    shifted = wt.Workload.from_arrays(**THREE | {"submit": [s + 10**6 for s in THREE["submit"]]})
    for engine in ("kernel", "reference"):
        for order in map(wt.policy.parse_order, FORMULAS):
            if order.name != "lcfs":
                policy = wt.NoBackfilling(order=order)
                near, far = (wt.simulate(w, policy, engine=engine) for w in (wt.Workload.from_arrays(**THREE), shifted))
                assert np.array_equal(near.start + 10**6, far.start), order.label


def test_unicef__puts_serial_jobs_first():
    serial, wide = (first_of("unicef", wait=10**6 * (n - 1), planned=1, procs=n, submit=0) for n in (1, 2))
    assert serial == math.inf > wide


@pytest.mark.parametrize("order", [*map(wt.policy.parse_order, SIMPLE), *LATER_ORDERS], ids=lambda order: order.label)
def test_label__parses_back(order):
    assert wt.policy.parse_order(order.label) == order
    policy = wt.Easy(order=order, backfill_order=wt.policy.parse_order("sjf:starvation=86400"))
    assert wt.policy.parse_policy(policy.label) == policy


def test_equal_orders__share_the_compiled_function():
    assert wt.policy.parse_order("f2:submit-weight=9").scoring is FittedFormula("f2", submit_weight=9.0).scoring
    assert wt.policy.parse_order("f2") == FittedFormula("f2") == FittedFormula("f2", submit_weight=25_600)


@pytest.mark.parametrize(
    "text",
    [
        "fcfs:starvation=3",
        "saf:weight=3",
        "f1:weight=3",
        "f1:submit-weight=-3",
        "f1:submit-weight=x",
        "lxf:starvation=1.5",
        "lxf:starvation=-1",
    ],
)
def test_parse_order__says_what_is_wrong(golden, text):
    with pytest.raises(wt.PolicyError) as caught:
        wt.policy.parse_order(text)
    golden("simulate", str(caught.value))
    with raises(wt.PolicyError, "unknown_formula"):
        Formula("f9")


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_starvation__puts_who_has_waited_too_long_first_by_arrival(engine):
    jobs = wt.Workload.from_arrays(**THREE)

    def starts(order: str) -> list[int]:
        return wt.simulate(jobs, wt.NoBackfilling(order=wt.policy.parse_order(order)), engine=engine).start.tolist()

    assert starts("saf:starvation=1000") == starts("saf") == [5, 110, 100, 110]
    assert starts("saf:starvation=10") == starts("fcfs") == [5, 100, 150, 160]
    assert starts("sjf:starvation=10") == starts("wfp:starvation=10") == starts("unicef:starvation=10") == starts("fcfs")
