"""Constants around an order's function, which may change between runs, and scores that order nothing."""

from __future__ import annotations

import math

import numba
import pytest

import walltime as wt
from tests.errors import raises

pytestmark = pytest.mark.slow  # compiles functions of its own

WEIGHT = 0
LIST = [1.0]
JOBS = wt.workloads.Lublin99().generate(300, 64, 0.9, 1)


@wt.order
def weighted(planned, procs):
    return -planned if WEIGHT == 0 else WEIGHT * procs


@numba.njit
def helper(planned, procs):
    return -planned if WEIGHT == 0 else WEIGHT * procs


@wt.order
def by_helper(planned, procs):
    return helper(planned, procs)


def starts(order: wt.policy.Order, engine: str = "kernel") -> list[int]:
    return wt.simulate(JOBS, wt.Easy(order=order), engine=engine).start.tolist()


@pytest.mark.parametrize("order", [weighted, by_helper])
def test_changed_constant__changes_the_schedule(order, monkeypatch):
    first = starts(order)
    assert first == starts(order, "reference")
    monkeypatch.setattr(f"{__name__}.WEIGHT", 10)
    second = starts(order)
    assert second == starts(order, "reference") != first
    monkeypatch.undo()
    assert starts(order) == first


def test_changed_variable_of_an_outer_function__changes_the_schedule():
    factor = -1

    @wt.order
    def scaled(procs):
        return factor * procs

    first = starts(scaled)
    factor = 1
    assert starts(scaled) != first


def test_list__is_refused():
    @wt.order
    def listed(procs):
        return LIST[0] * procs

    with raises(wt.PolicyError, "changing_value", "'listed'", "LIST"):
        starts(listed)


@pytest.mark.parametrize("engine", ["kernel", "reference"])
@pytest.mark.parametrize("function", [lambda wait, planned: planned / wait, lambda procs: math.nan, lambda wait: wait / wait])
def test_score_that_is_no_number__is_an_error_that_names_the_job(function, engine):
    with raises(wt.PolicyError, "bad_score", "'<lambda>'", "job number 1"):
        starts(wt.order(function), engine)


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_infinity__may_be_named(engine):
    @wt.order
    def narrow(procs):
        return -math.inf if procs > 8 else -procs

    assert len(starts(narrow, engine)) == 300
