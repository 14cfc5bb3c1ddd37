"""Whether an expression may fall while a job waits: by hand, and by trying."""

import numpy as np
import pytest

from walltime.policy import parse_order
from walltime.policy.expressions import never_falls


@pytest.mark.parametrize(
    "formula",
    [
        "log(wait+60)-log(planned)",
        "-(planned-wait)/procs",
        "wait/planned*procs",
        "max(wait,3600)-min(area,9)",
        "-1*(1000>wait)",
        "log(procs)*log(wait+60)",
        "sqrt(wait)/(procs+1)-(wait<50)",
        "procs",
    ],
)
def test_never_falls__is_so_for_all_waits(formula):
    order = parse_order(f"expr:{formula}")
    assert order.is_monotone
    for planned, procs in ((1, 1), (60, 4), (9_999, 128)):
        scores = [order.score(wait, planned, procs, 0, elapsed=0) for wait in range(0, 20_000, 61)]
        assert (np.diff(scores) > -1e-9).all()


@pytest.mark.parametrize(
    "formula",
    [
        "-wait",
        "wait*(procs-5)",
        "planned/wait",
        "log(procs)*wait",
        "wait+longest",
        "wait+hour",
        "wait/(procs-1)",
        "exp(wait)",
        "log(wait)*area",
        "1e9*log(wait)",
        "min(wait,3600)-wait",
        "(log(wait)>3)",
        "(wait<3)",
    ],
)
def test_never_falls__is_not_claimed_where_it_is_unsure(formula):
    assert not parse_order(f"expr:{formula}").is_monotone


def test_never_falls__has_a_limit_of_factors():
    assert never_falls("*".join(["wait"] * 12), ())
    assert not never_falls("*".join(["wait"] * 14), ())
