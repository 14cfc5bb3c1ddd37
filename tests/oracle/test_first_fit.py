"""FCFS and EASY on single nodes: the kernel equals the reference, no node has more than it has, and one node is a pool of processors."""

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.oracle.test_slurm import ran, shaped, site_of
from tests.profiles import scaled
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
    "easy:order=expr:wait/believed-procs",
    "hybrid:depth=0",
    "hybrid:depth=1,fit=best",
)
COUNT = 2000


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
    assert errors < scaled(COUNT) / 2
    assert policy.startswith("fcfs") or min(seen["backfilled"], seen["reserved"] + policy.startswith("hybrid:depth=0")) > 0, seen


PLAIN = ("conservative", "conservative-scratch", "hybrid:depth=2", "hybrid:depth=0,backfill-order=sjf", "relaxed", "easy:order=fair")


@pytest.mark.parametrize("policy", (*COMPILED, *PLAIN))
def test_schedules_pass_the_audit_and_moved_starts_do_not(policy):
    tried = missed = 0
    for seed in range(scaled(300)):
        machine, workload, overrun = case_of(seed, policy)
        schedule = ran(workload, policy, machine, overrun=overrun)
        if isinstance(schedule, type):
            continue
        assert_no_node_has_more(schedule)
        report = schedule.audit()
        assert report.ok, f"seed {seed}: {report}"
        draw, free = random.Random(seed), np.flatnonzero(schedule.placement.since > schedule.start)
        if schedule.workload.feedback or not len(free):
            continue
        start, end, job = schedule.start.copy(), schedule.end.copy(), int(draw.choice(free.tolist()))
        start[job] += 1
        end[job] += 1
        columns = {"job_id": schedule.workload.job_id, "start": start, "end": end}
        moved = audit(schedule.workload, columns, schedule.policy, overrun=overrun, placement=schedule.placement, slots=schedule.slots)
        tried += 1
        missed += moved.ok
    assert tried > scaled(100)
    assert missed < tried / 5
