"""Simulations with decisions of the caller."""

import numpy as np
import pytest
from hypothesis import given

import walltime as wt
from tests.strategies import examples, workloads
from walltime.errors import EngineError, WalltimeError


def jobs_of(*rows, machine=4):
    submit, runtime, procs = zip(*rows, strict=True)
    return wt.Workload.from_arrays(submit=submit, runtime=runtime, procs=procs, machine_procs=machine)


def first_come(simulation):
    """Start jobs in order of arrival while they fit."""
    while not simulation.done:
        for job in simulation.waiting:
            if job.procs > simulation.free:
                break
            simulation.start(job)
        simulation.advance()
    return simulation.finish()


@examples(50)
@given(workload=workloads(max_size=20))
def test_first_come_first_served__by_hand_is_fcfs(workload):
    mine, theirs = first_come(wt.Simulation(workload)), wt.simulate(workload, "fcfs")
    for name in ("start", "end", "kind"):
        assert np.array_equal(getattr(mine, name), getattr(theirs, name)), name
    assert mine.audit().ok


def test_decisions__follow_the_rules():
    simulation = wt.Simulation(jobs_of((0, 10, 3), (0, 10, 2), (5, 10, 1)))
    faults = []
    assert simulation.advance() == ((), (0, 1))
    simulation.start(2, processors=[0, 3])
    assert (simulation.free, simulation.processors_of(2), [job.job_id for job in simulation.running]) == (2, (0, 3), [2])
    assert simulation.advance() == ((), (2,))
    for act in (
        lambda: simulation.start(1),
        lambda: simulation.start(3, processors=[0]),
        lambda: simulation.start(3, processors=[1, 1]),
        lambda: simulation.start(2),
        lambda: simulation.start(9),
        lambda: simulation.kill(1),
        lambda: simulation.advance(-1),
        lambda: simulation.advance("x"),
        simulation.finish,
    ):
        with pytest.raises(WalltimeError) as error:
            act()
        faults.append(error.value.code)
    assert faults == [
        "choice_too_large",
        "wrong_processors",
        "wrong_processors",
        "not_waiting",
        "unknown_job",
        "not_running",
        "past_time",
        "past_time",
        "not_done",
    ]
    with pytest.raises(AttributeError):
        _ = simulation.waiting[0].runtime


def test_kill_and_reject__end_a_job_early_and_leave_one_out():
    simulation = wt.Simulation(jobs_of((0, 10, 3), (0, 10, 2)))
    simulation.advance()
    simulation.start(1)
    copied = simulation.copy()
    assert simulation.advance(until=4) == ((), ())
    simulation.kill(1)
    simulation.reject(2)
    schedule = simulation.finish()
    assert (schedule.workload.job_id.tolist(), schedule.end.tolist()) == ([1], [4])
    assert copied.state().running.tolist() == [0]
    assert copied.advance() == ((0,), ())


def test_decisions__that_start_nothing_are_an_error():
    simulation = wt.Simulation(jobs_of((0, 10, 3)))
    simulation.advance()
    with pytest.raises(EngineError) as error:
        simulation.advance()
    assert error.value.code == "endless_wait"


@pytest.mark.parametrize("rules", [{"prediction": "tsafrir07"}, {"dialect": "pyss"}, {"engine": "kernel"}])
def test_decisions__have_no_policy_options(rules):
    with pytest.raises(wt.PolicyError) as error:
        wt.Simulation(jobs_of((0, 10, 3)), **rules)
    assert error.value.code == "unsupported_option"
