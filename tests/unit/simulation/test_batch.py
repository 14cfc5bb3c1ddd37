"""Many simulations of one workload: their averages are those of the simulations one by one."""

from __future__ import annotations

import dataclasses
import math
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import walltime as wt
from tests.errors import raises
from tests.strategies import examples, workloads
from walltime.engine.interface.load import load
from walltime.engine.kernel.draw import RandomSource
from walltime.estimates.fmodel import STREAM_F
from walltime.simulation.threads import in_threads
from walltime.workload.models import MODELS
from walltime.workload.workload import MAX_TIME

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
        jobs = jobs.with_believed(case.estimates)
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

    def make_worker():
        def work(number, check):
            begun.append(number)
            if number == 3:
                raise ValueError("three")
            while number > 3:
                check()  # for ever, if nobody says stop

        return work

    with pytest.raises(ValueError, match="three"):
        in_threads(make_worker, 1000, workers=4)
    assert len(begun) < 1000


def test_in_threads__tells_how_far_it_is():
    seen = []
    assert in_threads(lambda: lambda number, check: number * number, 50, workers=3, progress=seen.append) == [n * n for n in range(50)]
    assert seen == sorted(seen)
    assert seen[-1] == 50


def test_in_threads__keeps_a_worker_for_as_long_as_there_are_numbers():
    made = []
    both_at_work = threading.Barrier(2)

    def make_worker():
        made.append(threading.get_ident())
        both_at_work.wait(timeout=60)
        return lambda number, check: number

    in_threads(make_worker, 100, workers=2)
    assert len(made) == len(set(made)) == 2


# ------------------------------------------------------------------- the compiled parts


@examples(200)
@given(
    seed=st.integers(0, 2**64 - 1),
    ids=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20),
    factor=st.floats(1.0, 1e6).filter(lambda factor: factor > 1),
    truncated=st.one_of(st.none(), st.integers(1, 10**6)),
    data=st.data(),
)
def test_draw_f_estimates__equals_the_model_bit_for_bit(seed, ids, factor, truncated, data):
    ids = sorted(set(ids))
    runtime = data.draw(st.lists(st.integers(0, 10**7), min_size=len(ids), max_size=len(ids)))
    jobs = wt.Workload.from_arrays(submit=[0] * len(ids), runtime=runtime, procs=[1] * len(ids), machine_procs=1)
    jobs = dataclasses.replace(jobs, job_id=np.array(ids, np.int64))
    expected = wt.estimates.FModel(factor, truncated=truncated).draw(jobs, seed)
    found = np.empty(len(ids), np.int64)
    source = RandomSource(np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32), np.uint64(STREAM_F))
    fixed = [array.copy() for array in (jobs.job_id, jobs.runtime)]
    for array in fixed:
        array.flags.writeable = False
    load("draw")(source, *fixed, float(factor), truncated or MAX_TIME, float(MAX_TIME), found)
    assert found.tolist() == expected.tolist()
