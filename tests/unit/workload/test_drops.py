"""Jobs that are left out: counts, shares of jobs and of work, and the sentence on much work."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.profiles import examples
from walltime.workload.cleaning import clean
from walltime.workload.drops import Drop, drop_jobs, left_out, shares_of, warning_of

RULES = {"a": "A.", "b": "B."}


def test_drop_jobs__counts_a_job_under_the_first_rule():
    masks = {"a": np.array([True, True, False, False]), "b": np.array([False, True, True, False])}
    kept, drops = drop_jobs(masks, RULES, np.array([1.0, 2.0, np.nan, 4.0]), (6, 7.0))
    assert kept.tolist() == [False, False, False, True]
    assert [(one.rule, one.reason, one.jobs, one.of_jobs, one.of_work) for one in drops] == [("a", "A.", 2, 6, 7.0), ("b", "B.", 1, 6, 7.0)]
    assert drops[0].work == 3
    assert math.isnan(drops[1].share_of_work)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 50)), min_size=1, max_size=20))
@examples(100)
def test_without__shares_of_stages_are_those_of_all_together(rows):
    first, second, runtime = (np.array(column) for column in zip(*rows, strict=True))
    jobs = wt.Workload.from_arrays(submit=np.arange(len(rows)), runtime=runtime, procs=[2] * len(rows), machine_procs=2)
    left = jobs.without({"a": first}, RULES)
    left = left.without({"b": second[~first]}, RULES)
    gone = first | second
    assert len(left) == int((~gone).sum())
    assert sum(left.origin.dropped.values()) == int(gone.sum())
    share, work = shares_of(left.origin.drops)
    assert share == pytest.approx(gone.mean())
    assert work == pytest.approx((2 * runtime)[gone].sum() / max((2 * runtime).sum(), 1))


def test_warning__only_of_much_work():
    assert warning_of([Drop("a", "A.", 50, 0.0, 100, 100.0)]) == [], "jobs that never ran are no loss"
    assert warning_of([Drop("a", "A.", 1, 5.0, 100, 100.0)]) == []
    assert len(warning_of([Drop("a", "A.", 1, 6.0, 100, 100.0)])) == 1
    assert len(warning_of([Drop("a", "A.", 6, math.nan, 100, 100.0)])) == 1
    assert warning_of([Drop("a", "A.", 5, math.nan, 100, 100.0)]) == []


def test_records_of_steps_and_events__are_no_jobs_left_out():
    assert left_out([Drop("other_event", "A.", 3, math.nan, 4, 8.0), Drop("step", "B.", 9, 0.0, 4, 8.0)])["rules"] == []
    assert warning_of([Drop("other_event", "A.", 3, math.nan, 4, 8.0)]) == []
    assert warning_of([Drop("earlier_run", "A.", 3, 4.0, 4, 8.0)]) == [], "their jobs stay"


def test_left_out__is_ready_for_json():
    found = left_out([Drop("a", "A.", 1, math.nan, 4, 8.0), Drop("b", "B.", 1, 2.0, 4, 8.0)])
    assert (found["share_of_jobs"], found["share_of_work"]) == (0.5, 0.25)
    assert [(one["rule"], one["core_seconds"], one["share_of_work"]) for one in found["rules"]] == [("a", None, None), ("b", 2.0, 0.25)]


def test_results__carry_what_was_left_out():
    jobs = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 80], procs=[1, 1, 1], machine_procs=2)
    jobs = clean(jobs, ["runtime>50"]).after
    assert wt.simulate(jobs, "easy").workload.warnings == warning_of(jobs.origin.drops)
    assert "80 % of the work" in jobs.warnings[0]


def test_warnings__name_the_clusters_of_a_log():
    origin = wt.workloads.Origin("two", names={"cluster": ("north", "south")})
    jobs = wt.Workload.from_arrays(
        submit=[0, 1, 2], runtime=[9] * 3, procs=[1] * 3, machine_procs=2, columns={"cluster": np.array([1, 2, 1])}, origin=origin
    )
    assert "north 2, south 1" in jobs.warnings[0]
    assert clean(jobs, ["cluster != 'north'"]).after.warnings[1:] == []
