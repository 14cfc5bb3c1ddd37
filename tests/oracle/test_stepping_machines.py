"""On pools and on nodes, too, a simulation that is stepped through gives the schedule of `walltime.simulate`, and takes jobs on the way."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from tests.oracle import test_machines, test_oar, test_slurm
from tests.profiles import scaled
from walltime.errors import EngineError, WorkloadError
from walltime.machine import Limit, Machine, Outage, Partition, Pool


def pools(draw):
    """Jobs, a machine of pools, and a policy for it, often with predictions."""
    machine = test_machines.machine_of(draw)
    policy = draw.choice(test_machines.POLICIES)
    if draw.random() < 0.5:
        policy += (",", ":")[":" not in policy] + draw.choice(test_machines.PREDICTIONS)
    return test_machines.workload_of(draw, machine).with_feedback(draw.random() < 0.3), machine, policy


def slurm(draw):
    """Jobs, a machine of nodes, and parameters of Slurm."""
    kind = draw.choice(test_slurm.KINDS)
    machine, workload = test_slurm.site_of(draw, kind)
    return workload, machine, test_slurm.policy_of(draw, kind)


def oar(draw):
    """Jobs, a machine of nodes, and parameters of OAR."""
    machine, workload = test_oar.site_of(draw)
    return workload, machine, test_oar.policy_of(draw, draw.choice(test_oar.KINDS))


MACHINES = {"pools": pools, "slurm": slurm, "oar": oar}


def cases(kind, what, count):
    """Problems that can be simulated, and how they are."""
    found = 0
    for seed in range(3 * scaled(count)):
        draw = random.Random(f"{what} {kind} {seed}")
        workload, machine, policy = MACHINES[kind](draw)
        options = {"machine": machine, "overrun": draw.choice(("kill", "extend", "continue"))}
        try:
            expected = wt.simulate(workload, policy, **options)
        except (EngineError, WorkloadError):
            continue
        yield seed, draw, workload, policy, options, expected
        found += 1
        if found == scaled(count):
            return


def columns_of(schedule):
    """All that a schedule says of its jobs."""
    names = ("start", "end", "kind", "reserved_start", "given", "submit", "runtime")
    return {name: getattr(schedule, name).tolist() for name in names} | {"slots": [one.tolist() for one in schedule.slots or ()]}


def outcome(simulate, *arguments, **options):
    """The schedule, or the code of the error: a submitted job may be one that no limit lets start."""
    try:
        return columns_of(simulate(*arguments, **options))
    except EngineError as error:
        return error.code


def step_about(draw, simulation, most=12):
    """Some steps, and some runs of some seconds."""
    for _ in range(draw.randrange(most)):
        if draw.random() < 0.5:
            simulation.step()
        else:
            simulation.run_until(simulation.now + draw.choice((0, 1, 1, 3, 10, 40)))


def seen(simulation):
    """The state, by the numbers of jobs, without the order of those that are expected to end at once."""
    state, number = simulation.state(), simulation.workload.job_id
    running = sorted(zip(state.expected_end.tolist(), number[state.running].tolist(), strict=True))
    waiting = zip(number[state.queue].tolist(), state.planned.tolist(), state.reserved.tolist(), strict=True)
    return state.now, state.free, list(waiting), running


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("kind", MACHINES)
def test_schedule__is_that_of_simulate_however_it_is_stepped_through(kind, engine):
    for seed, draw, workload, policy, options, expected in cases(kind, f"stepped {engine}", 40):
        simulation = wt.Simulation(workload, policy, engine=engine, **options)
        step_about(draw, simulation)
        ahead = simulation.copy()
        assert seen(ahead) == seen(simulation), f"seed {seed}"
        step_about(draw, ahead)
        assert columns_of(ahead.finish()) == columns_of(expected), f"seed {seed}"
        step_about(draw, simulation)
        other = simulation.copy()
        assert columns_of(simulation.finish()) == columns_of(expected), f"seed {seed}"
        assert columns_of(other.finish()) == columns_of(expected), f"seed {seed}"
        assert simulation.done
        assert not simulation.step()


@pytest.mark.parametrize("kind", MACHINES)
def test_state__is_the_same_on_both_engines_after_every_step(kind):
    for seed, _, workload, policy, options, _ in cases(kind, "states", 25):
        fast, slow = (wt.Simulation(workload, policy, engine=engine, **options) for engine in ("auto", "reference"))
        while fast.step():
            assert slow.step(), f"seed {seed}"
            assert seen(fast) == seen(slow), f"seed {seed}"
        assert not slow.step(), f"seed {seed}"


@pytest.mark.parametrize("kind", MACHINES)
def test_jobs_submitted_on_the_way__are_scheduled_as_if_they_had_been_known(kind):
    for seed, draw, workload, policy, options, _ in cases(kind, "submitted", 25):
        simulation = wt.Simulation(workload.with_feedback(False), policy, **options)
        for _ in range(draw.randrange(6)):
            step_about(draw, simulation, 5)
            job = {"runtime": draw.randint(0, 9), "procs": 1, "user": draw.randint(1, 3), "partition": 1, "group": 1, "queue": 1}
            known = {name: value for name, value in job.items() if name in ("runtime", "procs", *workload.columns)}
            simulation.submit({"submit": simulation.now + draw.choice((1, 1, 4, 30)), **known})
            simulation.state()
        again = wt.simulate(simulation.workload, policy, **options)
        assert columns_of(simulation.finish()) == columns_of(again), f"seed {seed}"


@pytest.mark.parametrize("kind", MACHINES)
def test_copies__go_on_in_any_turns_and_take_other_jobs(kind):
    for seed, draw, workload, policy, options, _ in cases(kind, "copies 3", 80):
        linked = {"depends_on", "depends_on_success", "singleton"} if draw.random() < 0.8 else {}
        columns = {name: values for name, values in workload.columns.items() if name not in linked}
        if kind == "pools" and draw.random() < 0.7:
            policy = policy.partition("predictor")[0].rstrip(",:")
        jobs = replace(workload, columns=columns).with_feedback(False)
        simulations = [wt.Simulation(jobs, policy, **options)]
        for _ in range(draw.randrange(25)):
            chosen = draw.choice(simulations)
            if draw.random() < 0.4 and len(simulations) < 5:
                simulations.append(chosen.copy())
                assert seen(simulations[-1]) == seen(chosen), f"seed {seed}"
            elif draw.random() < 0.2:
                more = {name: draw.randint(1, 2) for name in ("user", "group", "queue", "partition") if name in columns}
                more["partition"] = 1
                before = seen(chosen)
                chosen.submit({"submit": chosen.now + draw.choice((1, 4, 30)), "runtime": draw.randint(0, 9), "procs": 1, **more})
                if kind != "slurm":  # a user who is new there has a share of the past
                    assert seen(chosen) == before, f"seed {seed}"
            else:
                step_about(draw, chosen, 3)
        for one in simulations:
            assert outcome(one.finish) == outcome(wt.simulate, one.workload, policy, **options), f"seed {seed}"


@pytest.mark.parametrize("policy", ["easy", "easy:order=wfp"])
def test_copies__where_many_are_over_a_limit(policy):
    for seed in range(scaled(60)):
        draw = random.Random(f"over limits {seed}")
        workload, machine = test_machines.deep_case(draw, 60)
        simulation, slow = (wt.Simulation(workload, policy, machine=machine, engine=engine) for engine in ("auto", "reference"))
        while simulation.step():
            slow.step()
            if draw.random() < 0.2:
                simulation = simulation.copy()
            assert seen(simulation) == seen(slow), f"seed {seed}"
        assert columns_of(simulation.finish()) == columns_of(slow.finish()), f"seed {seed}"


MACHINE = Machine((Pool("a", 2, 2), Pool("b", 1, 4)), (Partition("1", ("a",)), Partition("2", ("b",))), name="two pools")
JOBS = wt.Workload.from_arrays(
    submit=[0, 1, 2, 3], runtime=[10, 10, 5, 5], procs=[4, 4, 1, 2], machine_procs=8, columns={"partition": [1, 1, 2, 2]}
)


@pytest.mark.parametrize("policy", ["easy", "conservative", "slurm"])
def test_simulation__on_pools_and_nodes(policy):
    simulation = wt.Simulation(JOBS, policy, machine=MACHINE)
    simulation.run_until(5)
    state = simulation.state()
    assert (state.now, state.free, state.queue.tolist(), state.running.tolist()) == (5, 1, [1], [2, 3, 0])
    assert state.expected_end.tolist() == [7, 8, 10]
    simulation.submit({"submit": 6, "runtime": 1, "procs": 1, "partition": 2})
    assert simulation.finish().start.tolist()[:2] == [0, 10]


def test_submit__of_a_job_that_cannot_run_on_the_machine():
    simulation = wt.Simulation(JOBS, "easy", machine=MACHINE)
    with raises(WorkloadError, "no_job_fits", "5"):
        simulation.submit({"submit": 6, "runtime": 1, "procs": 5, "partition": 2})
    assert len(simulation.finish().start) == 4


def test_run_until__waits_where_only_another_job_could_go_on():
    machine = replace(MACHINE, outages=(Outage("a", 20),))
    jobs = JOBS.take(np.array([True, True, False, False]), "")
    simulation = wt.Simulation(jobs, "easy", machine=replace(machine, outages=(Outage("a", 5),)))
    simulation.run_until(1000)
    assert simulation.state().queue.tolist() == [1]
    assert not simulation.done
    with raises(EngineError, "endless_wait", "1"):
        simulation.step()


def test_limits_hold_while_it_is_stepped_through():
    machine = replace(MACHINE, limits=(Limit((), jobs=1),))
    simulation = wt.Simulation(JOBS, "easy", machine=machine)
    running = []
    while simulation.step():
        running.append(len(simulation.state().running))
    assert max(running) == 1


@pytest.mark.parametrize("policy", ["relaxed", "selective", "double", "multiqueue", "slurm", "oar"])
def test_every_policy_that_runs_on_a_machine__is_stepped_through_and_copied(policy):
    machine = Machine((Pool("a", 2, 2), Pool("b", 1, 2)), (Partition("1", ("a",)), Partition("2", ("a", "b"))))
    jobs = JOBS.take(np.array([False, True, True, True]), "")
    expected = wt.simulate(jobs, policy, machine=machine)
    simulation = wt.Simulation(jobs, policy, machine=machine)
    simulation.run_until(4)
    simulation.copy().finish()
    while simulation.step():
        simulation.state()
    assert columns_of(simulation.finish()) == columns_of(expected)


@pytest.mark.parametrize("kind", MACHINES)
def test_a_piece__ends_when_the_awaited_job_has_started(kind):
    for seed, draw, workload, policy, options, expected in cases(kind, "awaited", 25):
        engine = wt.Simulation(workload, policy, **options)._engine
        place = draw.choice(np.flatnonzero(expected.start >= 0).tolist())
        engine.await_start(place)
        while engine.start_of(place) < 0:
            engine.advance()
        assert engine.start.max() <= expected.start[place] + (20 if kind == "oar" else 0), f"seed {seed}"
        engine.await_start(-1)
        engine.run()
        assert columns_of(expected)["start"] == engine.start.tolist(), f"seed {seed}"
