"""Many simulations of one workload: their averages are those of the simulations one by one."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.errors import raises
from tests.strategies import examples, workloads
from walltime.simulation.threads import in_threads
from walltime.workload.models import MODELS

JOBS = MODELS["lublin99"].generate(600, 64, 0.9, seed=3).with_estimates(wt.estimates.FModel(3), seed=8)
CASES = [
    wt.simulation.Case(),
    wt.simulation.Case(wt.NoBackfilling()),
    wt.simulation.Case(wt.Conservative()),
    wt.simulation.Case(wt.Conservative(), wt.estimates.FModel(4), seed=2),
    wt.simulation.Case(wt.Hybrid(depth=3), wt.estimates.FModel(4), seed=3),
    wt.simulation.Case(estimates=wt.estimates.FModel(4), seed=2),
    wt.simulation.Case(estimates=wt.estimates.FModel(4), seed=3),
    wt.simulation.Case(estimates=wt.estimates.FModel(11, truncated=3600), seed=3),
    wt.simulation.Case(estimates=wt.estimates.FModel(4, limit="user"), seed=3),
    wt.simulation.Case(estimates=wt.estimates.FModel(4, deterministic=True)),
    wt.simulation.Case(estimates=wt.estimates.ExactEstimates()),
    wt.simulation.Case(wt.Easy(backfill_order=wt.SJF), wt.estimates.Mualem01(), seed=2**64 - 1),
    wt.simulation.Case(estimates=JOBS.requested + 100),
    wt.simulation.Case(wt.Conservative()),
]


def one_by_one(jobs: wt.Workload, case: wt.simulation.Case, **options) -> wt.Schedule:
    if isinstance(case.estimates, np.ndarray):
        jobs = jobs.with_planned(case.estimates)
    elif case.estimates is not None:
        jobs = jobs.with_estimates(case.estimates, seed=case.seed)
    return wt.simulate(jobs, case.policy, **options)


def assert_same(found, expected) -> None:
    for name, value in dataclasses.asdict(expected).items():
        assert getattr(found, name) == value or (value != value and getattr(found, name) != getattr(found, name)), name
        assert type(getattr(found, name)) is type(value), name


@pytest.mark.parametrize("trim", ["none", "tsafrir06"])
@pytest.mark.parametrize("overrun", ["kill", "extend", "continue"])
def test_simulate_many__gives_what_simulate_gives(trim, overrun):
    batch = wt.simulate_many(JOBS, CASES, trim=trim, overrun=overrun, dynamics=True)
    for case, summary, dynamics in zip(CASES, batch.summaries, batch.dynamics, strict=True):
        schedule = one_by_one(JOBS, case, overrun=overrun, dynamics=True)
        assert_same(summary, schedule.summary(trim))
        assert_same(dynamics, schedule.dynamics_summary(trim))


def test_simulate_many__with_feedback_and_one_pass_per_event():
    jobs = MODELS["feitelson96"].generate(400, 64, 0.8, seed=3).with_feedback()
    cases = [wt.simulation.Case(estimates=wt.estimates.FModel(4), seed=seed) for seed in range(3)]
    batch = wt.simulate_many(jobs, cases, coincident="sequential")
    for case, summary in zip(cases, batch.summaries, strict=True):
        assert_same(summary, one_by_one(jobs, case, coincident="sequential").summary())


@examples(100)
@given(jobs=workloads(), seed=st.integers(0, 3), trim=st.sampled_from(["none", "tsafrir06"]))
def test_simulate_many__on_any_workload(jobs, seed, trim):
    case = wt.simulation.Case(wt.Easy(), wt.estimates.FModel(3), seed)
    schedule = one_by_one(jobs, case)
    try:
        expected = schedule.summary(trim)
    except wt.WorkloadError as error:
        with raises(wt.WorkloadError, error.code):
            wt.simulate_many(jobs, [case], trim=trim, workers=1)
        return
    assert_same(wt.simulate_many(jobs, [case], trim=trim, workers=1).summaries[0], expected)


def test_simulate_many__does_not_depend_on_the_threads():
    tables = [wt.simulate_many(JOBS, CASES, workers=workers).table() for workers in (1, 2, 5)]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])


def test_batch__table_and_values():
    batch = wt.simulate_many(JOBS, CASES[:3], dynamics=True)
    table = batch.table()
    assert table["policy"].to_list() == ["easy", "fcfs", "conservative"]
    assert table["mean_wait"].to_list() == batch.values("mean_wait").tolist()
    assert table["sjfness"].to_list() == batch.values("sjfness").tolist()
    assert wt.simulate_many(JOBS, CASES[:3]).dynamics is None


def test_simulate_many__without_cases_or_jobs():
    assert wt.simulate_many(JOBS, []).summaries == []
    empty = wt.Workload.from_arrays(submit=[], runtime=[], procs=[], machine_procs=4)
    assert math.isnan(wt.simulate_many(empty, [wt.simulation.Case()]).summaries[0].mean_wait)


@pytest.mark.parametrize(
    ("case", "options", "message"),
    [
        (wt.simulation.Case(estimates=np.ones(3, np.int64)), {}, ("wrong_length",)),
        (wt.simulation.Case(estimates=JOBS.requested.astype(float)), {}, ("wrong_length",)),
        (wt.simulation.Case(), {"trim": "p4"}, ("unknown_trim",)),
        (wt.simulation.Case(), {"overrun": "never"}, ("unknown_overrun_rule",)),
        (wt.simulation.Case(), {"coincident": "never"}, ("wrong_value", "coincident")),
        (wt.simulation.Case(estimates=wt.estimates.FModel(4), seed=-1), {}, ("number_out_of_range", "seed", "0")),
    ],
)
def test_simulate_many__refuses_what_it_does_not_know(case, options, message):
    with raises(wt.WalltimeError, *message):
        wt.simulate_many(JOBS, [case], **options)


def test_in_threads__stops_all_when_one_fails():
    begun = []

    def work(number, check):
        begun.append(number)
        if number == 3:
            raise ValueError("three")
        while number > 3:
            check()  # for ever, if nobody says stop

    with pytest.raises(ValueError, match="three"):
        in_threads(work, 1000, workers=4)
    assert len(begun) < 1000


def test_in_threads__tells_how_far_it_is():
    seen = []
    assert in_threads(lambda number, check: number * number, 50, workers=3, progress=seen.append) == [n * n for n in range(50)]
    assert seen == sorted(seen)
    assert seen[-1] == 50
