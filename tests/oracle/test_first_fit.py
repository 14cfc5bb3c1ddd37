"""Policies on single nodes by first fit: the kernel equals the reference, no node has more than it has, and one node is a pool."""

import os
import random
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from tests.oracle.test_slurm import ran, shaped, site_of
from tests.profiles import PROFILE, scaled
from walltime import simulate
from walltime.auditor import audit
from walltime.machine import Machine, Overhead, Partition, Pool
from walltime.workload import Origin, Workload

COMPILED = (
    "fcfs",
    "fcfs:order=sjf",
    "easy",
    "easy:order=sjf",
    "easy:order=wfp",
    "easy:order=wfp:starvation=20,backfill-order=sjf",
    "easy:backfill-order=saf",
    "easy:order=expr:wait/planned-procs",
    "hybrid:depth=0",
    "hybrid:depth=1,fit=best",
    "hybrid:depth=2",
    "hybrid:depth=3,order=wfp",
    "conservative",
    "conservative:order=wfp",
    "conservative-scratch",
    "conservative-scratch:order=saf",
)
COUNT = 600


def case_of(seed, policy):
    """A machine of nodes and jobs that request all kinds of what nodes have, a fifth with the scheduler's overheads."""
    draw = random.Random(f"first fit {policy} {seed}")
    machine, workload = shaped(draw, *site_of(draw, "parameters"))
    overhead = Overhead(draw.choice((0, 2)), draw.choice((0, 3)), draw.choice((1, 4))) if draw.random() < 0.2 else machine.overhead
    return replace(machine, overhead=overhead, by_node=True), workload, draw.choice(("kill", "extend", "continue"))


def columns_of(schedule):
    found = {name: getattr(schedule, name).tolist() for name in ("start", "end", "kind", "reserved_start", "given", "submit")}
    return found | {"slots": [values.tolist() for values in schedule.slots]}


def assert_no_node_has_more(schedule):
    """At each start, the running jobs use no more of a node than it has, each on nodes with the features that it requested."""
    machine, w = schedule.placement.machine, schedule.workload
    of_node = [pool for pool in machine.pools for _ in range(pool.nodes)]
    capacity = np.array([(pool.procs, pool.second) for pool in of_node])
    job, node, *amounts = schedule.slots
    for k, moment in enumerate(schedule.start):
        runs = (schedule.start[job] <= moment) & (schedule.end[job] > moment)
        used = np.zeros_like(capacity)
        np.add.at(used, node[runs], np.stack(amounts, axis=1)[runs])
        assert (used <= capacity).all(), w.job_id[k]
    for k, n in zip(job.tolist(), node.tolist(), strict=True):
        assert of_node[n].name in machine.partitions[schedule.placement.partition[k]].pools


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("policy", COMPILED)
def test_kernel_equals_reference(policy):
    errors, seen = 0, {"backfilled": 0, "reserved": 0}
    for seed in range(scaled(COUNT)):
        machine, workload, overrun = case_of(seed, policy)
        kernel, reference = (ran(workload, policy, machine, overrun=overrun, engine=engine) for engine in ("kernel", "reference"))
        if isinstance(kernel, type):
            assert kernel is reference, f"seed {seed}"
            errors += 1
            continue
        assert kernel.simulated_on == "nodes"
        assert columns_of(kernel) == columns_of(reference), f"seed {seed}"
        assert_no_node_has_more(kernel)
        seen["backfilled"] += bool((kernel.kind == 2).any())
        seen["reserved"] += bool((kernel.reserved_start >= 0).any())
    assert errors < 0.7 * scaled(COUNT)
    assert policy.startswith("fcfs") or min(seen["backfilled"], seen["reserved"] + policy.startswith("hybrid:depth=0")) > 0, seen


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["easy", "easy:backfill-order=sjf", "easy:order=wfp", "conservative", "conservative-scratch"])
def test_long_queue_on_forty_nodes__kernel_equals_reference(policy):
    """Tasks of several processors, memory and two partitions, so that the nodes that a job gets first often delay a head."""
    for seed in range(scaled(20)):
        draw, count = np.random.default_rng(seed), 400 if PROFILE == "nightly" else 150
        sizes = zip((0, 4, 8, 4, 2), (64, 128, 256, 128, 96), strict=True)
        pools = tuple(Pool(f"p{k}", 8, 16, gpus, memory=memory) for k, (gpus, memory) in enumerate(sizes))
        machine = Machine(pools, (Partition("1", tuple(pool.name for pool in pools)), Partition("2", ("p1", "p2"))), by_node=True)
        runtime, tasks = draw.lognormal(6, 1.5, count).astype(int) + 1, draw.choice([1, 2, 4, 6, 8], count)
        procs = np.maximum(2 ** draw.integers(0, 8, count) // tasks, 1) * tasks
        gap = (procs * runtime).mean() / (40 * 16 * 0.8)
        jobs = Workload.from_arrays(
            submit=np.cumsum(draw.exponential(gap, count)).astype(int),
            runtime=runtime,
            requested=runtime * draw.integers(1, 6, count),
            procs=procs,
            machine_procs=640,
            columns={
                "mem_mb_per_cpu": draw.choice([1, 2, 4, 8], count),
                "cpus_per_task": tasks,
                "partition": draw.choice([1, 1, 2], count),
            },
        )
        kernel, reference = (simulate(jobs, policy, machine=machine, engine=engine) for engine in ("kernel", "reference"))
        assert columns_of(kernel) == columns_of(reference), f"seed {seed}"


PLAIN = (
    "hybrid:depth=2,backfill-order=sjf",
    "hybrid:depth=0,backfill-order=sjf",
    "relaxed",
    "selective",
)


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("policy", [*COMPILED, *PLAIN])
def test_schedules_pass_the_audit_and_moved_starts_do_not(policy):
    tried = missed = 0
    for seed in range(scaled(300)):
        machine, workload, overrun = case_of(seed, policy)
        schedule = ran(workload, policy, machine, overrun=overrun)
        if isinstance(schedule, type):
            continue
        assert_no_node_has_more(schedule)
        report = schedule.audit()
        assert not report.violations, f"seed {seed}: {report}"
        draw, free = random.Random(seed), np.flatnonzero(schedule.placement.since > schedule.start)
        if schedule.workload.feedback or not len(free):
            continue
        start, end, job = schedule.start.copy(), schedule.end.copy(), int(draw.choice(free.tolist()))
        start[job] += 1
        end[job] += 1
        columns = {"job_id": schedule.workload.job_id, "start": start, "end": end}
        moved = audit(schedule.workload, columns, schedule.policy, overrun=overrun, placement=schedule.placement, slots=schedule.slots)
        tried += 1
        missed += not moved.violations
    assert tried >= scaled(60)
    assert missed < tried / 5


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fcfs", "easy", "easy:order=sjf", "easy:backfill-order=sjf", "hybrid:depth=2", "conservative"])
@pytest.mark.parametrize("of_one", [False, True])
def test_equal_nodes_of_one_processor_and_a_single_node_are_a_pool_of_processors(policy, of_one):
    """Where any free processors will do, the schedule is that of a number of processors, with and without the compiler."""
    for seed in range(scaled(300)):
        draw = random.Random(f"{policy} {seed}")
        count, size = draw.randint(2, 25), draw.choice((4, 8))
        submit = sorted(draw.randint(0, 40) for _ in range(count))
        runtime = [draw.randint(1, 12) for _ in range(count)]
        requested = [own + draw.choice((0, 0, 2, 9)) for own in runtime]
        procs = [draw.randint(1, size) for _ in range(count)]
        jobs = Workload.from_arrays(submit=submit, runtime=runtime, requested=requested, procs=procs, machine_procs=size)
        pool = Pool("all", 1, size) if of_one else Pool("all", size, 1)
        machine = Machine((pool,), (Partition("all", ("all",)),), by_node=True)
        alike, schedule = simulate(jobs, policy), simulate(jobs, policy, machine=machine)
        assert schedule.simulated_on == "nodes"
        if policy in ("hybrid:depth=2", "conservative") and not of_one:
            continue  # which nodes a reservation has matters
        assert schedule.start.tolist() == alike.start.tolist(), f"seed {seed}"
        assert (schedule.kind == alike.kind).all(), f"seed {seed}"


def example():
    """Nodes 0 and 1 have 4 processors, 2 A100 and 100 MB, nodes 2 and 3 have 8, 1 V100 and 200 MB; and seven jobs."""
    machine = Machine(
        (Pool("a", 2, 4, 2, memory=100, gpu_type="a100"), Pool("b", 2, 8, 1, memory=200, gpu_type="v100")),
        (Partition("all", ("a", "b")),),
    )
    columns = {
        "gpus": [2, 0, 4, 1, 0, 0, 0],
        "nodes": [1, -1, 2, 1, 1, 1, -1],
        "mem_mb": [100, 80, 20, 20, 150, 150, 8],
        "requested_gpu_type": [1, -1, 1, 2, -1, -1, -1],
    }
    return machine, Workload.from_arrays(
        submit=[0, 1, 2, 3, 4, 5, 6],
        runtime=[10, 20, 5, 30, 6, 8, 3],
        requested=[12, 20, 6, 30, 6, 40, 15],
        procs=[4, 8, 2, 2, 8, 2, 4],
        machine_procs=24,
        columns={name: np.array(values) for name, values in columns.items()},
        origin=Origin(names={"requested_gpu_type": ("a100", "v100")}),
    )


def test_worked_example__several_types_of_gpus_on_a_node():
    """Two nodes have an A100 and two slices each, a third has four A100s.

    Jobs 0 to 2 request slices, so job 2 gets the other slice of the first node; job 3 needs two A100s on one node. Job 4 requests GPUs of
    any type, and the log records that it got a slice: it waits for job 2, the first to end. Job 5 takes an A100 of the first node at once,
    but under Slurm's scheduling only in the backfill cycle at 30 s, as job 4 closes the nodes.
    """
    pools = Pool("mixed", 2, 8, gpu_types={"a100": 1, "1g.10gb": 2}), Pool("alike", 1, 8, 4, gpu_type="a100")
    machine = Machine(pools, (Partition("all", ("mixed", "alike")),))
    columns = {
        "gpus": [1, 2, 1, 2, 1, 1],
        "nodes": [1] * 6,
        "requested_gpu_type": [2, 2, 2, 1, -1, 1],
        "gpu_type": [2, 2, 2, 1, 2, 1],
    }
    names = dict.fromkeys(("requested_gpu_type", "gpu_type"), ("a100", "1g.10gb"))
    jobs = Workload.from_arrays(
        submit=[0, 1, 2, 3, 4, 5],
        runtime=[100, 100, 50, 100, 30, 20],
        requested=[100, 100, 50, 100, 30, 20],
        procs=[1] * 6,
        machine_procs=24,
        columns={name: np.array(values) for name, values in columns.items()},
        origin=Origin(names=names),
    )
    for policy, last in (("easy", 5), ("conservative", 5), ("slurm", 30)):
        for engine in ("kernel", "reference"):
            schedule = simulate(jobs, policy, machine=machine, engine=engine)
            assert schedule.start.tolist() == [0, 1, 2, 3, 52, last]
            assert schedule.slots[1][:5].tolist() == [0, 1, 0, 2, 0]
            assert "unknown_gpu_type" not in schedule.workload.origin.changed
            assert schedule.audit().ok
    untyped = replace(jobs, columns=jobs.columns | {"gpu_type": np.full(6, -1)})
    schedule = simulate(untyped, "easy", machine=machine)  # job 4 gets an A100
    assert schedule.start.tolist() == [0, 1, 2, 3, 4, 5]
    assert schedule.workload.origin.changed["unknown_gpu_type"] == 1


def test_worked_example__easy():
    """EASY by hand, where job 3 is the head from 2 s on.

    * Job 1 takes node 0, job 2 with 10 MB for each processor half of its processors on node 1 and half on node 2, until 21 s.
    * Job 3 needs both nodes with A100, which have a processor each at 21 s: its shadow time.
    * Job 4 needs a V100, and job 5 has 150 MB: they leave nodes 0 and 1 alone, and start at once on nodes 2 and 3.
    * Job 6 needs 150 MB on a node: node 2 has 140 MB, so it waits until job 5 ends at 10 s.
    * Job 7 finds its four processors on node 0 at 10 s; it would run until 25 s, and job 3 would not fit at 21 s.
    """
    machine, jobs = example()
    schedule = simulate(jobs, "easy", machine=machine)
    assert schedule.start.tolist() == [0, 1, 21, 3, 4, 10, 21]
    assert schedule.kind.tolist() == [0, 0, 1, 2, 2, 2, 1]
    assert schedule.reserved_start.tolist() == [-1, -1, 21, -1, -1, -1, -1]
    job, node, procs, gpus = (values.tolist() for values in schedule.slots)
    assert list(zip(job, node, procs, gpus, strict=True)) == [
        *((0, 0, 4, 2), (1, 1, 4, 0), (1, 2, 4, 0), (2, 0, 1, 2), (2, 1, 1, 2)),
        *((3, 2, 2, 1), (4, 3, 8, 0), (5, 3, 2, 0), (6, 0, 3, 0), (6, 1, 1, 0)),
    ]
    shorter = replace(jobs, requested=np.array([12, 20, 6, 30, 6, 40, 11]), planned=np.array([12, 20, 6, 30, 6, 40, 11]))
    assert simulate(shorter, "easy", machine=machine).start.tolist() == [0, 1, 21, 3, 4, 10, 10]


@pytest.mark.parametrize(("policy", "starts"), [("easy", [0, 10, 4, 2, 4]), ("easy:backfill-order=sjf", [0, 10, 2, 2, 4])])
def test_a_job_that_a_head_keeps_out__starts_once_other_jobs_have_the_nodes_that_the_head_needs(policy, starts):
    """Node 0 has 2 processors, node 1 has 5.

    * Job 1 has 3 processors of node 1 until 10 s. Job 2, whose tasks have 2 processors each, needs all of node 0 and 4 of node 1 then.
    * Job 3 would get node 0 for 20 s, so it waits, until job 4 has node 0 from 2 to 7 s: then it gets node 1, of which 4 are left at 10 s.
    * In arrival order, it is considered before job 4 at 2 s, and next when job 5 arrives at 4 s; it starts at once.
    """
    machine = Machine((Pool("a", 1, 2), Pool("b", 1, 5)), (Partition("all", ("a", "b")),), by_node=True)
    jobs = Workload.from_arrays(
        submit=[0, 1, 1, 2, 4],
        runtime=[10, 5, 20, 5, 1],
        requested=[10, 5, 20, 5, 1],
        procs=[3, 6, 1, 2, 1],
        machine_procs=7,
        columns={"cpus_per_task": np.array([3, 2, 1, 1, 1])},
    )
    for engine in ("kernel", "reference"):
        assert simulate(jobs, policy, machine=machine, engine=engine).start.tolist() == starts


def test_worked_example__fcfs_and_pools():
    """Under FCFS, all jobs behind job 3 wait for it, and job 6 for the memory of job 5; on pools, job 3 gets GPUs of any type at once."""
    machine, jobs = example()
    assert simulate(jobs, "fcfs", machine=machine).start.tolist() == [0, 1, 21, 21, 21, 27, 27]
    pools = simulate(jobs, "easy", machine=replace(machine, by_node=False))
    assert pools.simulated_on == "pools"
    assert pools.start[2] == 2


KEPT = """
import numpy as np
from walltime import Workload, simulate
from walltime.machine import Machine, Partition, Pool
submit, hundred = np.arange(40), np.full(40, 100)
jobs = Workload.from_arrays(submit=submit, runtime=hundred, requested=hundred, procs=np.ones(40, int), machine_procs=40)
machine = Machine((Pool("all", 1, 40),), (Partition("all", ("all",)),), by_node=True)
print((simulate(jobs, "conservative", machine=machine).start - submit).max())
"""


@pytest.mark.slow
def test_kept_places__do_not_outgrow_their_memory():
    """Forty jobs start before the first one ends, and leave gaps. Without the compiler, an index out of bounds is an error."""
    command = [sys.executable, "-c", KEPT]
    done = subprocess.run(command, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=False)
    assert done.stdout == "0\n", done.stderr
