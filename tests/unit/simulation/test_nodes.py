"""Policies of pools on single nodes: which machines have them, and what jobs take of them."""

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.errors import raises
from walltime import PolicyError, Simulation, WorkloadError, simulate
from walltime.comparison.caveats import caveats_of, placement_note
from walltime.machine import Machine, Outage, Partition, Pool, Window, omission_sentences
from walltime.node_demands import runs_on_nodes
from walltime.policy import parse_policy
from walltime.workload import Origin, Workload

PLAIN = Machine((Pool("a", 2, 4, 2),), (Partition("all", ("a",)),))


def with_pools(**fields):
    return replace(PLAIN, pools=tuple(replace(pool, **fields) for pool in PLAIN.pools))


def jobs_of(procs, **columns):
    names = {"constraints": ("intel", "amd"), "requested_gpu_type": ("a100", "v100")}
    count = len(procs)
    return Workload.from_arrays(
        submit=range(count),
        runtime=[10] * count,
        procs=procs,
        machine_procs=8,
        columns={name: np.array(values) for name, values in columns.items()},
        origin=Origin(names=names, unix_start_time=0, time_zone="UTC"),
    )


@pytest.mark.parametrize(
    ("machine", "policy", "on_nodes"),
    [
        (PLAIN, "easy", False),
        (PLAIN, "slurm", True),
        (with_pools(memory=100), "easy", True),
        (with_pools(features=("intel",)), "conservative", True),
        (with_pools(gpu_type="a100"), "fcfs:order=sjf", True),
        (with_pools(gpu_type="a100"), "slack", False),
        (replace(PLAIN, by_node=True), "easy", True),
        (replace(with_pools(memory=100), by_node=False), "easy", False),
        (replace(with_pools(memory=100), windows=(Window("08:00", "09:00"),)), "easy", False),
    ],
)
def test_machines__are_of_nodes_where_pools_have_what_only_nodes_have(machine, policy, on_nodes):
    assert runs_on_nodes(parse_policy(policy), machine) == on_nodes


def test_by_node__rejects_what_nodes_do_not_support():
    jobs, machine = jobs_of([1, 2]), replace(PLAIN, by_node=True)
    with raises(PolicyError, "unsupported_policy", "slack"):
        simulate(jobs, "slack", machine=machine)
    with raises(PolicyError, "unsupported_policy", "easy", "by_node"):
        simulate(jobs, "easy", machine=replace(machine, windows=(Window("08:00", "09:00"),)))
    many = with_pools(second=0, gpu_types={f"1g.{k}gb": 100 for k in range(5)})
    with raises(WorkloadError, "too_many_types", "5 types of GPUs, and up to 100 of one", "63 of each"):
        simulate(jobs, "easy", machine=many)
    assert len(simulate(jobs, "easy", machine=with_pools(second=0, gpu_types={f"1g.{k}gb": 63 for k in range(5)})))


def starts(machine, jobs, policy="easy"):
    kernel, reference = (simulate(jobs, policy, machine=machine, engine=engine) for engine in ("kernel", "reference"))
    assert kernel.simulated_on == "nodes"
    assert kernel.start.tolist() == reference.start.tolist()
    assert kernel.audit().ok
    return kernel.start.tolist()


def test_memory__of_a_node_is_not_shared_by_two_jobs_that_need_more_together():
    jobs = jobs_of([1, 1, 1], nodes=[1, 1, 1], mem_mb=[60, 60, 60])
    assert starts(with_pools(memory=100), jobs) == [0, 1, 10]
    assert starts(with_pools(memory=120), jobs) == [0, 1, 2]


def test_a_second_resource__in_total_is_of_any_nodes_and_per_node_of_each():
    assert starts(replace(PLAIN, by_node=True), jobs_of([1, 2], gpus=[1, 3])) == [0, 1]
    assert starts(replace(PLAIN, by_node=True), jobs_of([1, 2], gpus=[1, 4], nodes=[1, 2])) == [0, 10]


def test_whole_nodes__wait_for_a_free_node_and_keep_others_away():
    jobs = jobs_of([1, 1, 1, 1], exclusive=[-1, 1, 1, -1])
    assert starts(replace(PLAIN, by_node=True), jobs) == [0, 1, 10, 11]  # the last one would leave no whole node at 10 s


def test_constraints_and_types__leave_the_nodes_that_have_them():
    pools = (Pool("a", 1, 4, 2, features=("intel",), gpu_type="a100"), Pool("b", 1, 4, 2, features=("amd",), gpu_type="v100"))
    machine = Machine(pools, (Partition("all", ("a", "b")),))
    assert starts(machine, jobs_of([4, 4, 1], constraints=[1, 1, 2])) == [0, 10, 2]
    assert starts(machine, jobs_of([1, 1, 1], gpus=[2, 2, 2], requested_gpu_type=[2, 2, 1])) == [0, 10, 2]


def test_outages__take_nodes_from_plans():
    machine = replace(PLAIN, by_node=True)
    assert starts(machine, jobs_of([4, 4])) == [0, 1]
    assert starts(replace(machine, outages=(Outage("a", 5, 20, 1, announced=0),)), jobs_of([4, 4])) == [0, 10]


def test_answers__name_the_placement_and_no_requests_as_not_modelled():
    jobs = jobs_of([1, 1], mem_mb=[60, 60])
    on_nodes = simulate(jobs, "easy", machine=with_pools(memory=100))
    assert "memory" in placement_note(on_nodes)
    assert omission_sentences([on_nodes.workload]) == []
    on_pools = simulate(jobs, "easy", machine=replace(with_pools(memory=100), by_node=False))
    assert "memory" in omission_sentences([on_pools.workload])[0]


def test_steps_and_copies__go_on_as_the_whole_does():
    machine, jobs = with_pools(memory=100), jobs_of([3, 4, 2, 1, 3, 2], mem_mb=[60, 40, 90, 10, 50, 20])
    whole = simulate(jobs, "easy", machine=machine).start.tolist()
    simulation = Simulation(jobs, "easy", machine=machine)
    simulation.run_until(5)
    copied = simulation.copy()
    assert simulation.finish().start.tolist() == copied.finish().start.tolist() == whole


@pytest.mark.slow
def test_conservative__keeps_a_place_on_nodes_that_give_gpus_only():
    """A job with a total of GPUs may have a node's GPUs and none of its processors, which others then use up."""
    draw, count = random.Random(3), 120
    submit = np.cumsum([draw.randint(1, 60) for _ in range(count)])
    runtime = np.array([draw.randint(5, 300) for _ in range(count)])
    jobs = Workload.from_arrays(
        submit=submit,
        runtime=runtime,
        requested=runtime + np.array([draw.randint(0, 200) for _ in range(count)]),
        procs=[draw.choice((1, 2, 4, 6)) for _ in range(count)],
        machine_procs=24,
        columns={
            "gpus": np.array([draw.choice((0, 0, 1, 2)) for _ in range(count)]),
            "mem_mb": np.array([draw.choice((10, 40, 90, 150)) for _ in range(count)]),
        },
    )
    pools = (Pool("a", 2, 4, 2, memory=100), Pool("b", 2, 8, memory=200))
    schedule = simulate(jobs, "conservative", machine=Machine(pools, (Partition("all", ("a", "b")),)))
    assert (schedule.start <= schedule.reserved_start).all()
    assert schedule.audit().ok


def test_notes__say_which_requests_the_machine_does_not_know():
    machine = replace(with_pools(second=0, gpu_types={"a100": 2, "v100": 2}, features=("intel",)), second="gpus")
    jobs = jobs_of([1, 1, 1, 1], constraints=[1, 2, -1, -1], gpus=[0, 0, 1, 1], requested_gpu_type=[-1, -1, 1, -1])
    notes = caveats_of([simulate(jobs, "slurm", machine=machine)], "none")
    assert sum("1 (25 %) of the jobs" in note and "unknown_features" in note for note in notes) == 1
    assert sum("1 (25 %) of the jobs" in note and "unknown_gpu_type" in note for note in notes) == 1
    known = jobs_of([1, 1], constraints=[1, -1], gpus=[0, 1], requested_gpu_type=[-1, 2])
    known = caveats_of([simulate(known, "slurm", machine=machine)], "none")
    assert not any("unknown_" in note for note in known)
