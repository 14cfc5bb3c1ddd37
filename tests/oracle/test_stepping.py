"""However a simulation is stepped through, its schedule is the one of `walltime.simulate`; a copy goes on as the original does."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.errors import raises
from tests.strategies import OVERRUN, crowded, examples, policies, predictors, with_users, workloads

RULES = ("papers", "pyss", "rlscheduler", "mualem01-measured")
COLUMNS = ("start", "end", "kind", "reserved_start", "submit")


def assert_equal(one: wt.Schedule, other: wt.Schedule) -> None:
    for name in COLUMNS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert one.engine == other.engine
    assert one.label == other.label
    if one.predictions is not None:
        assert np.array_equal(one.predictions.predicted, other.predictions.predicted)
        assert np.array_equal(one.predictions.corrections, other.predictions.corrections)


def step_about(simulation: wt.Simulation, ways: list[int]) -> None:
    """A step for a 0, nothing for a 1, else some seconds."""
    for way in ways:
        if way == 0:
            simulation.step()
        elif way == 1:
            simulation.state()
        else:
            simulation.run_until(simulation.now + (way - 2) ** 3)


WAYS = st.lists(st.integers(0, 6), max_size=12)


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("rules", RULES)
@examples(25)
@given(data=st.data())
def test_schedule__is_that_of_simulate_however_it_is_stepped_through(rules, engine, data):
    predicted = rules in ("papers", "pyss") and data.draw(st.booleans(), label="predicted")
    jobs = data.draw(with_users(workloads()) if predicted else st.one_of(workloads(), crowded(max_size=30)), label="jobs")
    options = {"dialect": rules, "overrun": data.draw(st.sampled_from(OVERRUN)), "engine": engine}
    if predicted:
        options["prediction"] = wt.Prediction(data.draw(predictors(), label="predictor"))
    policy = data.draw(policies("easy" if rules == "rlscheduler" else None, own=False), label="policy")
    expected = wt.simulate(jobs, policy, **options)
    simulation = wt.Simulation(jobs, policy, **options)
    step_about(simulation, data.draw(WAYS, label="before"))
    ahead = simulation.copy()
    assert np.array_equal(ahead.state().queue, simulation.state().queue)
    step_about(ahead, data.draw(WAYS, label="ahead"))
    ahead.finish()
    step_about(simulation, data.draw(WAYS, label="after"))
    other = simulation.copy()
    assert_equal(simulation.finish(), expected)
    assert_equal(other.finish(), expected)
    assert simulation.done
    assert not simulation.step()


@pytest.mark.parametrize("rules", RULES)
@examples(25)
@given(data=st.data())
@pytest.mark.slow
def test_jobs_submitted_on_the_way__are_scheduled_as_if_they_had_been_known(rules, data):
    jobs = data.draw(st.one_of(workloads(), crowded(max_size=30)), label="jobs")
    policy = data.draw(policies("easy" if rules == "rlscheduler" else None), label="policy")
    simulation = wt.Simulation(jobs, policy, dialect=rules)
    for gap, runtime, procs in data.draw(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(1, jobs.machine_procs)))):
        step_about(simulation, data.draw(WAYS))
        seen = simulation.state()
        simulation.submit({"submit": simulation.now + gap, "runtime": runtime, "procs": procs, "user": 2})
        again = simulation.state()
        assert (seen.now, seen.free) == (again.now, again.free)
        for name in ("queue", "planned", "running", "expected_end"):
            assert np.array_equal(getattr(seen, name), getattr(again, name)), name
    assert_equal(simulation.finish(), wt.simulate(simulation.workload, policy, dialect=rules))


@pytest.mark.slow
@examples(180)
@given(data=st.data())
def test_copies__go_on_in_any_turns_and_take_other_jobs(data):
    jobs = data.draw(st.one_of(workloads(max_size=25), crowded()), label="jobs")
    policy = data.draw(policies(), label="policy")
    rules = {"dialect": data.draw(st.sampled_from(("papers", "pyss"))), "overrun": data.draw(st.sampled_from(OVERRUN))}
    simulations = [wt.Simulation(jobs, policy, **rules)]
    for which, way in data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 8)), max_size=30), label="turns"):
        chosen = simulations[which % len(simulations)]
        if way == 7:
            simulations.append(chosen.copy())
        elif way == 8:
            columns = {"user": which, "queue": which} if jobs.columns else {}
            chosen.submit({"submit": chosen.now + 1 + which, "runtime": 4 + which, "procs": 1 + which % jobs.machine_procs, **columns})
        else:
            step_about(chosen, [way])
    for one in simulations:
        assert_equal(one.finish(), wt.simulate(one.workload, policy, **rules))


@examples(20)
@given(jobs=crowded(), policy=policies(), ways=WAYS)
def test_copy__is_in_the_same_state(jobs, policy, ways):
    simulation = wt.Simulation(jobs, policy)
    step_about(simulation, ways)
    seen, ahead = simulation.state(), simulation.copy().state()
    assert (seen.now, seen.free) == (ahead.now, ahead.free)
    for name in ("queue", "planned", "running", "expected_end"):
        assert np.array_equal(getattr(seen, name), getattr(ahead, name)), name


@examples(25)
@given(jobs=crowded(), policy=policies(), sequential=st.booleans())
def test_state__is_the_same_on_both_engines_after_every_step(jobs, policy, sequential):
    rules = "pyss" if sequential else "papers"
    fast, slow = (wt.Simulation(jobs, policy, dialect=rules, engine=engine) for engine in ("auto", "reference"))
    while fast.step():
        assert slow.step()
        one, other = fast.state(), slow.state()
        assert (one.now, one.free) == (other.now, other.free)
        assert one.queue.tolist() == other.queue.tolist()
        assert one.planned.tolist() == other.planned.tolist()
        assert sorted(zip(one.running, one.expected_end, strict=True)) == sorted(zip(other.running, other.expected_end, strict=True))
    assert not slow.step()


class Widest(wt.PlainPolicy):
    """Starts the widest job that fits."""

    def choose(self, now, waiting, running, free):
        for job in sorted(waiting, key=lambda job: -job.procs):
            if job.procs <= free:
                free -= job.procs
                yield job


@examples(10)
@given(jobs=crowded(), ways=WAYS)
def test_policy_in_plain_python__is_copied_with_the_simulation(jobs, ways):
    simulation = wt.Simulation(jobs, Widest())
    assert simulation.engine == "reference"
    step_about(simulation, ways)
    other = simulation.copy()
    expected = wt.simulate(jobs, Widest())
    assert_equal(simulation.finish(), expected)
    assert_equal(other.finish(), expected)


JOBS = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4)


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"submit": 5, "runtime": 1, "procs": 1}, ("past_time", "5")),
        ({"submit": 6, "runtime": 1, "procs": 1, "job_id": 3}, ("repeated_job", "3")),
        ({"submit": 6, "runtime": 1, "procs": 5}, ("job_too_wide", "5")),
        ({"submit": 6, "runtime": 1, "procs": 1, "size": 5}, ("unknown_column", "'size'", "submit")),
        ({"submit": 6}, ("missing_column",)),
        (6, ("missing_column",)),
    ],
)
def test_submit__of_an_impossible_job(job, message):
    simulation = wt.Simulation(JOBS, "easy")
    simulation.run_until(5)
    with raises(wt.WorkloadError, *message):
        simulation.submit(job)
    assert len(simulation.finish().start) == 3


def test_submit__not_where_jobs_wait_for_others():
    jobs = wt.Workload.from_arrays(submit=[0, 1], runtime=[1, 1], procs=[1, 1], machine_procs=1, columns={"preceding_job": [-1, 1]})
    simulation = wt.Simulation(jobs.with_feedback(), "easy")
    with raises(wt.WorkloadError, "feedback"):
        simulation.submit({"submit": 5, "runtime": 1, "procs": 1})


def test_copy__where_jobs_wait_for_others():
    links = {"preceding_job": [-1, 1, 2, -1]}
    jobs = wt.Workload.from_arrays(submit=[0, 1, 2, 9], runtime=[5, 4, 3, 2], procs=[1, 1, 1, 1], machine_procs=1, columns=links)
    simulation = wt.Simulation(jobs.with_feedback(), "easy")
    simulation.run_until(6)
    ahead = simulation.copy()
    ahead.run_until(10)
    expected = wt.simulate(jobs.with_feedback(), "easy")
    assert_equal(simulation.finish(), expected)
    assert_equal(ahead.finish(), expected)


@pytest.mark.parametrize("time", [4, -1, 5.5, None, True])
def test_run_until__a_time_that_is_none(time):
    simulation = wt.Simulation(JOBS, "easy")
    simulation.run_until(5)
    with raises(wt.WorkloadError, "past_time", "5"):
        simulation.run_until(time)


def test_simulation__of_no_jobs_is_done():
    simulation = wt.Simulation(wt.Workload.from_arrays(submit=[], runtime=[], procs=[], machine_procs=4), "easy")
    assert simulation.done
    assert not simulation.step()
    assert len(simulation.finish().start) == 0


def test_pickled_simulation__continues_from_its_time():
    jobs = wt.workloads.Lublin99().generate(100, 64, 0.9, 1)
    for until in (None, 20_000, 10**9):
        simulation = wt.Simulation(jobs, "easy")
        if until is not None:
            simulation.run_until(until)
        for other in (pickle.loads(pickle.dumps(simulation)), copy.deepcopy(simulation)):
            state, same = simulation.state(), other.state()
            assert (state.now, state.free, state.queue.tolist()) == (same.now, same.free, same.queue.tolist())
            assert other.done == simulation.done
            assert other.finish().start.tolist() == wt.simulate(jobs, "easy").start.tolist()
