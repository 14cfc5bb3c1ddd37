"""What jobs request of nodes, under Slurm's scheduling: features, memory, GPUs and tasks, worked by hand."""

import random
from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from tests.oracle.test_slurm import KINDS, policy_of, ran, shaped, site_of
from tests.unit.policy.test_slurm_policy import ENGINES, nodes_of
from walltime.machine import Limit, Machine, Partition, Pool
from walltime.workload import Origin, Workload

NAMES = {"constraints": ("intel", "amd|big", "none"), "requested_gpu_type": ("a100", "v100"), "licences": ("fast:2", "fast", "fast:4")}


def machine_of(*pools: Pool, **options) -> Machine:
    return Machine(pools, (Partition("main", tuple(pool.name for pool in pools)),), **options)


def run(machine: Machine, rows, **columns) -> wt.Schedule:
    """The schedule of jobs given as (submit, length, procs), the same in both engines, and audited."""
    submit, length, procs = map(list, zip(*rows, strict=True))
    workload = Workload.from_arrays(
        submit=submit, runtime=length, requested=length, procs=procs, machine_procs=machine.procs,
        columns={name: np.array(values) for name, values in columns.items()}, origin=Origin("log", names=NAMES),
    )  # fmt: skip
    kernel, reference = (wt.simulate(workload, "slurm:bf_interval=1,bf_resolution=1", machine=machine, engine=engine) for engine in ENGINES)
    np.testing.assert_array_equal(kernel.start, reference.start)
    for mine, other in zip(kernel.slots, reference.slots, strict=True):
        np.testing.assert_array_equal(mine, other)
    assert kernel.audit().ok, kernel.audit()
    return kernel


def test_features__the_job_waits_for_nodes_that_have_them():
    """Node 0 is intel, nodes 1 and 2 are amd, and 2 is big: the second intel job waits, a job for any node does not."""
    machine = machine_of(Pool("i", 1, 4, features=("intel",)), Pool("a", 1, 4, features=("amd",)), Pool("b", 1, 4, features=("amd", "big")))
    found = run(machine, [(0, 50, 4), (1, 10, 2), (2, 10, 4), (3, 10, 4)], constraints=[1, 1, 2, -1])
    assert found.start.tolist() == [0, 50, 2, 3]
    assert [nodes_of(found, k) for k in range(4)] == [{0: 4}, {0: 2}, {1: 4}, {2: 4}]
    unknown = run(machine, [(0, 50, 4)], constraints=[3])
    assert nodes_of(unknown, 0) == {0: 4}
    assert unknown.workload.origin.changed["unknown_features"] == 1


def test_gpu_types__are_on_their_nodes():
    machine = machine_of(Pool("a", 1, 8, 4, gpu_type="a100"), Pool("v", 1, 8, 4, gpu_type="v100"), Pool("c", 1, 8))
    found = run(machine, [(0, 90, 1), (1, 90, 1), (2, 9, 1)], gpus=[4, 4, 4], requested_gpu_type=[2, 1, -1], gpus_per_node=[4, 4, 4])
    assert [nodes_of(found, k) for k in range(3)] == [{1: 1}, {0: 1}, {1: 1}]
    assert found.start.tolist() == [0, 1, 90]


def test_gpus_per_node__are_not_collected_from_several_nodes():
    """Two nodes with 4 GPUs: 3 of each are free; a job of 4 on one node waits, a job of 4 in total does not."""
    machine = machine_of(Pool("a", 2, 8, 4))
    jobs = [(0, 50, 2), (1, 9, 2), (2, 9, 2)]
    found = run(machine, jobs, gpus=[2, 4, 4], nodes=[2, 1, 1], gpus_per_node=[1, 4, 0])
    assert found.start.tolist() == [0, 50, 2]
    assert nodes_of(found, 2) == {0: 2, 1: 0}
    per_task = run(
        machine, [(0, 50, 2), (1, 9, 8)], gpus=[2, 8], gpus_per_node=[1, -1], gpus_per_task=[-1, 2], cpus_per_task=[-1, 2], nodes=[2, 1]
    )
    assert per_task.start.tolist() == [0, 50], "each node has GPUs for one more task of 2 processors"


def test_memory__of_nodes_and_of_processors():
    """Node 0 has 7 processors, but memory for 2 only: a job of 3 goes to node 1, one of 2 to the tighter node 0."""
    machine = machine_of(Pool("a", 2, 8, 100), second="mem_mb")
    jobs = [(0, 50, 1), (1, 50, 3), (2, 50, 2), (3, 5, 1)]
    found = run(machine, jobs, mem_mb=[80, 30, 20, 90], mem_mb_per_node=[80, -1, -1, 90], mem_mb_per_cpu=[-1, 10, 10, -1])
    assert [nodes_of(found, k) for k in range(4)] == [{0: 1}, {1: 3}, {0: 2}, {1: 1}]
    assert found.start.tolist() == [0, 1, 2, 51], "90 MB are free on node 1 when its job has ended"


@pytest.mark.parametrize(("memory", "start"), [(0, [0, 1]), (100, [0, 40])])
def test_memory_beside_gpus(memory, start):
    machine = machine_of(Pool("a", 1, 8, 4, memory=memory))
    found = run(machine, [(0, 40, 1), (1, 5, 1)], gpus=[1, 1], gpus_per_node=[1, 1], mem_mb=[60, 50], mem_mb_per_node=[60, 50])
    assert found.start.tolist() == start


def test_memory__default_per_processor():
    """Without a request, memory is DefMemPerCPU for each processor, on any nodes; else it is of each node."""
    machine = machine_of(Pool("a", 2, 8, 100), second="mem_mb", slurm={"DefMemPerCPU": "10"})
    found = run(machine, [(0, 50, 8), (1, 50, 8), (2, 50, 1)], mem_mb=[80, 80, 30], nodes=[1, 1, 1])
    assert found.start.tolist() == [0, 1, 50]


def test_tasks__do_not_cross_nodes():
    """Three processors are free on each node: two tasks of 2 are on two nodes, one of 4 waits, and one for each of two nodes fits."""
    machine = machine_of(Pool("a", 2, 4))
    found = run(machine, [(0, 50, 2), (1, 9, 4), (2, 9, 4)], nodes=[2, 1, 1], cpus_per_task=[-1, 2, 4])
    assert found.start.tolist() == [0, 1, 50]
    assert nodes_of(found, 1) == {0: 2, 1: 2}
    found = run(machine, [(0, 50, 1), (1, 9, 4)], nodes=[1, 2], tasks_per_node=[-1, 2])
    assert nodes_of(found, 1) == {0: 2, 1: 2}


def test_most_nodes__small_free_parts_are_left_out():
    """1, 2, 4 and 4 processors are free: 5 on two nodes are 1 and 4, 6 are 2 and 4; 8 wait until two nodes have them."""
    machine = machine_of(Pool("a", 4, 4))
    first = [(0, 90, 3), (0, 30, 2)]
    for procs, nodes in ((5, {0: 1, 2: 4}), (6, {1: 2, 2: 4}), (7, {2: 4, 3: 3})):
        assert nodes_of(run(machine, [*first, (1, 9, procs)], most_nodes=[-1, -1, 2]), 2) == nodes
    found = run(machine, [*first, (1, 40, 3), (2, 9, 8)], most_nodes=[-1, -1, -1, 2])
    assert found.start.tolist() == [0, 0, 1, 30]
    assert run(machine, [*first, (1, 9, 3)], most_nodes=[-1, -1, 1]).slots[1].tolist() == [0, 1, 2]


def test_whole_nodes_of_several_sizes():
    """A whole node is the tightest that is enough: 3 processors get node 0 of 4, and 6 get node 1 of 8."""
    machine = machine_of(Pool("small", 1, 4), Pool("large", 2, 8))
    found = run(machine, [(0, 9, 3), (1, 9, 6), (2, 9, 1)], exclusive=[1, 1, -1], requested_procs=[3, 6, 1])
    assert [nodes_of(found, k) for k in range(3)] == [{0: 4}, {1: 8}, {2: 1}]
    assert found.start.tolist() == [0, 1, 2]


def test_least_loaded_nodes_come_first():
    """Shares of 1/4, 1/2 and 5/8 are free on nodes of one weight: the last comes first, a heavier idle node comes last."""
    pools = Pool("a", 2, 4), Pool("b", 1, 8), Pool("c", 1, 4, weight=2)
    plain = Partition("1", ("a", "b", "c"))
    machine = Machine(pools, (plain, replace(plain, name="2", least_loaded=True)))
    jobs = [(0, 90, 3), (1, 90, 2), (2, 90, 3), (3, 90, 1), (4, 90, 7)]
    found = run(machine, jobs, partition=[1, 1, 1, 2, 2], constraints=[-1] * 5)
    assert [nodes_of(found, k) for k in range(5)] == [{0: 3}, {1: 2}, {2: 3}, {2: 1}, {1: 2, 2: 4, 0: 1}]


def test_spread_jobs_take_nodes_in_order():
    """One processor of node 0 is free, and nodes 2 and 3: two nodes of one run are 2 and 3, but in order 0 and 2."""
    machine, jobs = machine_of(Pool("a", 4, 4)), [(0, 90, 3), (0, 90, 4), (1, 9, 2)]
    assert nodes_of(run(machine, jobs, nodes=[-1, -1, 2], spread=[-1, -1, -1]), 2) == {2: 1, 3: 1}
    assert nodes_of(run(machine, jobs, nodes=[-1, -1, 2], spread=[-1, -1, 1]), 2) == {0: 1, 2: 1}


def test_nodes_of_one_user__have_no_jobs_of_others():
    """User 2 has node 1 alone; the job of user 3 waits until no other user has jobs on node 0."""
    machine, jobs = machine_of(Pool("a", 2, 4)), [(0, 50, 1), (1, 50, 1), (2, 10, 1), (3, 10, 1), (4, 10, 1)]
    found = run(machine, jobs, user=[1, 2, 3, 2, 3], exclusive=[-1, 2, -1, -1, 2])
    assert found.start.tolist() == [0, 1, 2, 3, 50]
    assert [nodes_of(found, k) for k in range(5)] == [{0: 1}, {1: 1}, {0: 1}, {0: 1}, {0: 1}]


def test_licences__are_counted_over_the_machine():
    """Of 3 licences job 0 has 2, so job 1, which needs 2, waits; job 4 needs more than there are, but ran: it is not limited."""
    machine = machine_of(Pool("a", 4, 4), licences={"fast": 3})
    found = run(machine, [(0, 50, 1), (1, 20, 1), (2, 30, 1), (3, 20, 1), (4, 10, 1)], licences=[1, 1, 2, -1, 3])
    assert found.start.tolist() == [0, 50, 2, 3, 4]
    assert found.workload.origin.changed == {"over_limit": 1}
    assert not found.workload.origin.omissions
    assert run(machine_of(Pool("a", 4, 4)), [(0, 50, 1)], licences=[1]).workload.origin.omissions == {"licences": 1.0}


def test_limits_on_resources__are_counted_for_each_user():
    """Two nodes for each user: jobs 0 and 1 have those of user 1, so job 2, a whole node, waits; job 3 is of user 2; job 4 of 3 ran."""
    limit = Limit(("user",), resources={"node": 2})
    jobs, users = [(0, 50, 4), (1, 20, 1), (2, 9, 4), (3, 9, 8), (4, 9, 12)], [1, 1, 1, 2, 2]
    found = run(machine_of(Pool("a", 8, 4), limits=(limit,)), jobs, user=users, nodes=[1, 1, 1, 2, 3])
    assert found.start.tolist() == [0, 1, 21, 3, 4]
    assert found.workload.origin.changed == {"over_limit": 1}
    assert not found.workload.origin.omissions


@pytest.mark.parametrize(
    ("resources", "columns", "starts"),
    [
        ({"mem": 6000}, {"mem_mb": [4000, 3000, 2000]}, [0, 50, 2]),
        ({"gres/gpu:a100": 3}, {"gpus": [2, 2, 1], "requested_gpu_type": [1, 1, 1], "gpus_per_node": [2, 2, 1]}, [0, 50, 2]),
        ({"gres/gpu:v100": 3}, {"gpus": [2, 2, 1], "requested_gpu_type": [1, 1, 1], "gpus_per_node": [2, 2, 1]}, [0, 1, 2]),
        ({"gres/gpu": 3, "license/fast": 9}, {"gpus": [2, 2, 1], "licences": [3, -1, 2]}, [0, 50, 2]),
        ({"license/fast": 5}, {"licences": [3, 1, 2]}, [0, 50, 2]),
    ],
)
def test_limits_on_resources__memory_gpus_and_licences(resources, columns, starts):
    machine = machine_of(Pool("a", 3, 4, 4, memory=9000, gpu_type="a100"), limits=(Limit((), resources=resources),))
    assert run(machine, [(0, 50, 1), (1, 20, 1), (2, 9, 1)], **columns).start.tolist() == starts


def test_limits_on_resources__are_named_where_they_are_not_modelled():
    machine = machine_of(Pool("a", 3, 4, memory=2000), limits=(Limit((), resources={"mem": 6000, "license/fast": 1}),))
    lacking = {"limits on mem, which the log lacks": None, "limits on license/fast, which the log lacks": None}
    assert run(machine, [(0, 50, 1)]).workload.origin.omissions == lacking
    jobs = Workload.from_arrays(submit=[0], runtime=[9], procs=[1], machine_procs=12)
    assert wt.simulate(jobs, "easy", machine=machine).workload.origin.omissions["limits on other resources"] is None


@pytest.mark.parametrize("resources", [{"bb/x": 3}, {"node": -1}, {"node": 2**60}])
def test_limits_on_resources__wrong_ones(resources):
    with raises(wt.WorkloadError, "wrong_limit"):
        Limit((), resources=resources)


def test_nice__lowers_the_priority():
    """Job 2 has a priority of 100, job 1 of 70; without weights, jobs are served in order of submission."""
    machine, jobs = machine_of(Pool("a", 1, 4)), [(0, 50, 4), (1, 9, 4), (2, 9, 4)]
    assert run(machine, jobs, nice=[-1, 30, -1]).start.tolist() == [0, 50, 59]
    weighed = replace(machine, slurm={"PriorityType": "priority/multifactor", "PriorityWeightPartition": "100"})
    assert run(weighed, jobs, nice=[-1, 30, -1]).start.tolist() == [0, 59, 50]


@pytest.mark.slow
def test_the_auditor__reports_every_other_choice_of_nodes():
    """One node of a job is replaced by another one, in schedules with all kinds of requests."""
    wrong = 0
    for seed in range(40):
        draw = random.Random(f"moved {seed}")
        kind = draw.choice(KINDS[:4])
        machine, workload = shaped(draw, *site_of(draw, kind))
        schedule = ran(workload, policy_of(draw, kind), machine, engine="reference")
        nodes = sum(pool.nodes for pool in machine.pools)
        if isinstance(schedule, type) or nodes < 2 or not len(schedule.slots[0]):
            continue
        job, node, procs, second = (np.array(values) for values in schedule.slots)
        at = draw.randrange(len(job))
        own = set(node[job == job[at]].tolist())
        others = sorted(set(range(nodes)) - own)
        if others:
            node[at] = draw.choice(others)
            counts = replace(schedule, slots=(job, node, procs, second)).audit().counts
            assert set(counts) & {"node_order", "node_capacity"}, f"seed {seed}"
            wrong += 1
    assert wrong > 15
