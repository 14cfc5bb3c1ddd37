"""A machine of pools that is only a number of processors for its jobs is simulated as one, and the schedule is the same, job for job."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.strategies import CORRECTIONS, OVERRUN, POLICY_KINDS, crowded, examples, policies, predictors, shrunk, with_users, workloads
from walltime.engine.interface.choice import choose, support
from walltime.engine.interface.number import NumberEngine
from walltime.engine.interface.plain import ReferenceEngine
from walltime.engine.interface.pools import PoolsEngine
from walltime.engine.problem import as_number
from walltime.machine import Limit, Machine, Outage, Partition, Pool
from walltime.simulation.run import run_of
from walltime.simulation.specification import Scheduler

NOT_ON_POOLS = ("los", "greedy", "slack", "plan")
KINDS = tuple(kind for kind in POLICY_KINDS if kind not in NOT_ON_POOLS)
ANY_WORKLOAD = st.one_of(workloads(max_size=20), crowded(max_size=30))
COLUMNS = ("start", "submit", "runtime", "kind", "reserved_start", "predicted", "basis", "corrections")
PREDICTIONS = st.one_of(
    st.none(),
    st.builds(
        wt.Prediction,
        predictors(),
        predictions_for=st.sampled_from(("regular", "selective", "011", "101", "001", "010")),
        correction=st.sampled_from(CORRECTIONS),
    ),
)


@st.composite
def machines_of_one_pool(draw, procs):
    """A machine of which the jobs can use one pool only, with what does not matter for them."""
    node = draw(st.sampled_from([size for size in (1, 2, 4) if procs % size == 0]))
    pools = (Pool("all", procs // node, node, draw(st.sampled_from((0, 10)))), Pool("idle", 3, 5))
    partitions = (
        Partition("1", ("all",)),
        Partition("2", ("all",), max_time=draw(st.sampled_from((None, 8)))),
        Partition("3", ("idle",), tier=1),
    )
    limits = draw(st.sampled_from(((), (Limit(("user",), jobs=100),), (Limit((), procs=10_000),))))
    return Machine(pools, partitions, limits=limits)


def outcomes(run):
    """What the loop of pools and that of a number give."""
    number = as_number(run.problem)
    assert number is not None
    compiled = support(run.problem.policy, "pools").engine == "kernel"
    engines = (PoolsEngine(run.problem) if compiled else ReferenceEngine(run.problem), NumberEngine(number))
    for engine in engines:
        engine.run()
    return [engine.outcome() for engine in engines]


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("predicting", [False, True], ids=["estimates", "predictions"])
@given(data=st.data(), overrun=st.sampled_from(OVERRUN), feedback=st.booleans())
@examples(40)
def test_one_pool__gives_the_schedule_of_a_number(kind, predicting, data, overrun, feedback):
    workload, policy = data.draw(with_users(ANY_WORKLOAD)), data.draw(policies(kind))
    prediction = data.draw(PREDICTIONS) if predicting else None
    machine = data.draw(machines_of_one_pool(workload.machine_procs))
    place = st.lists(st.sampled_from((-1, 1, 2)), min_size=len(workload), max_size=len(workload))
    before = [data.draw(st.one_of(st.just(-1), st.integers(0, k))) for k in range(len(workload))] if feedback else []
    columns = {"partition": np.array(data.draw(place), np.int64)}
    if feedback:
        columns |= {"preceding_job": np.array(before, np.int64), "think_time": np.arange(len(workload)) % 3}
    workload = replace(workload, columns={**workload.columns, **columns}, feedback=feedback)
    run = run_of(workload, Scheduler(policy, prediction), overrun=overrun, machine=machine)
    if as_number(run.problem) is None:  # somebody may be overdue
        assert policy.passes.backfills
        assert choose(run.problem) == (support(policy, "pools").engine, run.problem)
        return
    pools, number = outcomes(run)
    for name in COLUMNS:
        assert np.array_equal(getattr(pools, name), getattr(number, name)), f"{name} under {policy!r}, {feedback}: {shrunk(workload)}"
    assert (run.schedule(number).given == pools.given).all()
    report = run.schedule(number).audit()
    assert not report.violations, f"{report}: {shrunk(workload)}"


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@examples(20)
def test_jobs_that_run_at_first__come_when_they_started(kind, data):
    workload, policy = data.draw(ANY_WORKLOAD), data.draw(policies(kind))
    machine = data.draw(machines_of_one_pool(workload.machine_procs))
    first = int(workload.submit[0]) if len(workload) else 0
    fits = (workload.submit == first) & (np.cumsum(workload.procs) <= workload.machine_procs)
    running = {"running_since": np.where(fits, first, -1)}
    later = np.where(fits, workload.submit, workload.submit + 1)
    workload = replace(workload, submit=later, columns={**workload.columns, **running})
    run = run_of(workload, Scheduler(policy, None), overrun="kill", machine=machine)
    if as_number(run.problem) is None:  # there are no jobs, or somebody may be overdue
        assert policy.passes.backfills or not len(workload)
        return
    pools, number = outcomes(run)
    for name in ("start", "submit", "runtime"):
        assert np.array_equal(getattr(pools, name), getattr(number, name)), f"{name} under {policy!r}: {shrunk(workload)}"


def jobs(**columns):
    return wt.Workload.from_arrays(
        submit=[0, 1, 2],
        runtime=[10, 10, 5],
        procs=[3, 4, 1],
        machine_procs=4,
        columns={name: np.array(values) for name, values in columns.items()},
    )


ONE = Machine((Pool("a", 4, 1, 1), Pool("b", 4, 1)), (Partition("1", ("a",)), Partition("2", ("b",)), Partition("3", ("a",), tier=1)))


@pytest.mark.parametrize(
    ("machine", "columns"),
    [
        (replace(ONE, outages=(Outage("b", 3, 5),)), {}),
        (replace(ONE, limits=(Limit(("user",), jobs=1),)), {"user": [1, 2, 1]}),
        (replace(ONE, limits=(Limit((), procs=4),)), {}),
        (ONE, {"partition": [1, 2, 1]}),
        (ONE, {"partition": [1, 1, 3]}),
        (replace(ONE, partitions=(Partition("1", ("b", "a")),)), {}),
        (ONE, {"gpus": [2, 3, 0]}),
        (ONE, {"depends_on": [-1, 1, -1]}),
        (ONE, {"running_since": [-1, 0, -1]}),
    ],
    ids=["outage", "limit of jobs", "limit of all", "two pools", "tiers", "a partition of two", "second", "waits", "ran before"],
)
def test_pools__that_are_more_than_a_number_are_simulated_as_pools(machine, columns):
    schedule = wt.simulate(jobs(**columns), "easy", machine=machine)
    assert (schedule.engine, schedule.simulated_on) == ("kernel", "pools")


def test_pools__that_are_only_a_number_are_simulated_as_one_and_say_so():
    schedule, plain = wt.simulate(jobs(), "easy", machine=ONE), wt.simulate(jobs(), "easy")
    assert (schedule.engine, schedule.simulated_on, plain.simulated_on) == ("kernel", "number", "number")
    assert schedule.start.tolist() == plain.start.tolist()
    assert schedule.given.tolist() == [[[3, 0], [0, 0]], [[4, 0], [0, 0]], [[1, 0], [0, 0]]]
    reference = wt.simulate(jobs(), "easy", machine=ONE, engine="reference")
    assert (reference.engine, reference.simulated_on) == ("reference", "pools")
    assert wt.explain(schedule, 3, sooner=False).sentences == wt.explain(reference, 3, sooner=False).sentences
    late = wt.simulate(replace(jobs(), planned=np.array([10, 9, 5])), "easy", machine=ONE)
    assert late.simulated_on == "pools", "a job may be overdue"


def test_reference__stays_on_the_machine_that_was_described():
    run = run_of(jobs(), Scheduler.of("easy"), machine=ONE)
    assert isinstance(run.engine("reference"), ReferenceEngine)
    assert run.engine("reference").machine == "pools"


@pytest.mark.parametrize(
    "policy", ["los", "hybrid:1,fit=greedy", "slack", "easy:order=wfp:threshold=0.5", "easy:extra=literal", "fcfs:window=2"]
)
def test_policies_that_no_pools_have__run_where_pools_are_a_number(policy):
    assert not support(wt.policy.parse_policy(policy), "pools", ["threshold"]).engine
    schedule, plain = wt.simulate(jobs(), policy, machine=ONE), wt.simulate(jobs(), policy)
    assert (schedule.engine, schedule.simulated_on) == (plain.engine, "number")
    assert schedule.start.tolist() == plain.start.tolist()
    reference = wt.simulate(jobs(), policy, machine=ONE, engine="reference")
    assert (reference.simulated_on, reference.start.tolist()) == ("number", plain.start.tolist())
