"""Orders, and schedules made with them, go through a pickle, as process pools send them."""

from __future__ import annotations

import copy
import pickle

import pytest

import walltime as wt
from walltime.policy import parse_order

JOBS = wt.workloads.Lublin99().generate(100, 64, 0.8, 1)


@wt.order
def wide(procs, hours=2):
    return procs * hours


def narrow(procs):
    return -procs


def through_pickle(thing):
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.slow
@pytest.mark.parametrize("order", [wide, wide.but(hours=4, starvation=3600), wt.order(narrow)])
def test_order_and_schedule__are_pickled(order):
    assert through_pickle(order) == order
    schedule = wt.simulate(JOBS, wt.Easy(order=order))
    other = through_pickle(schedule)
    assert (other.start.tolist(), other.policy) == (schedule.start.tolist(), schedule.policy)


def test_order_of_a_file__is_pickled(tmp_path):
    file = tmp_path / "orders_of_mine.py"
    file.write_text("def mine(procs):\n    return procs\n")
    order = parse_order(f"{file}:mine")
    assert through_pickle(order) == order


def test_order_inside_a_function__is_copied_but_not_pickled():
    @wt.order
    def inner(procs):
        return procs

    assert copy.deepcopy(inner) is inner
    with pytest.raises(pickle.PicklingError, match="top of a module"):
        pickle.dumps(inner)
