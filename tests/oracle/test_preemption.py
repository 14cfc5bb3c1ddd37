"""Jobs that end early under Slurm's scheduling, by preemption or with a node: kernel, reference and auditor agree."""

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.oracle.test_slurm import KINDS, columns_of, policy_of, ran, reserved, shaped, site_of
from tests.profiles import scaled
from walltime import simulate
from walltime.machine import Failure, Machine, Outage, Partition, Pool, Qos
from walltime.policy import Slurm
from walltime.workload import Workload

MODES = ("cancel", "cancel", "requeue", "requeue", "off")


def preempting(draw: random.Random, machine: Machine, workload: Workload, policy: Slurm) -> tuple[Machine, Workload, Slurm]:
    """The same with partitions of other tiers, or qualities of service, whose jobs may be preempted."""
    policy = replace(
        policy,
        preempt_youngest_first=draw.random() < 0.3,
        preempt_reorder_count=draw.choice((0, 1, 1, 2)),
        preempt_strict_order=draw.random() < 0.3,
        preempt_exempt_time=draw.choice((0, 0, 0, 5, 30)),
    )
    if len(machine.partitions) > 1 and draw.random() < 0.5:
        partitions = [
            replace(one, tier=draw.choice((0, 1, 2)), preempt=draw.choice(MODES), grace=draw.choice((0, 0, 0, 3, 20)))
            for one in machine.partitions
        ]
        return replace(machine, partitions=tuple(partitions)), workload, policy
    lists = {"1": (("2",), ("3",), ("2", "3")), "2": ((), ("3",), ("3",)), "3": ((),)}
    qos = [
        Qos(
            name,
            draw.randint(0, 3),
            draw.choice((1.0, 1.0, 0.5)),
            draw.random() < 0.2,
            draw.choice(lists[name]),
            draw.choice(MODES),
            draw.choice((0, 0, 3)),
            draw.choice((None, None, 0, 7)),
        )
        for name in ("1", "2", "3")
    ]
    queue = np.array([draw.choice((-1, 1, 2, 3)) for _ in range(len(workload))])
    return replace(machine, qos=tuple(qos)), replace(workload, columns={**workload.columns, "queue": queue}), policy


def failing(draw: random.Random, machine: Machine, workload: Workload) -> Machine:
    """The same with outages, given and at random, that end jobs, or let them continue."""
    last = int(workload.submit.max())
    outages = list(machine.outages)
    for _ in range(draw.randint(1, 3)):
        pool, begin = draw.choice(machine.pools), draw.randint(0, 2 * last + 20)
        nodes, known = draw.choice((None, 1, str(draw.randint(1, pool.nodes)))), draw.choice((None, 0))
        outages.append(Outage(pool.name, begin, begin + draw.randint(1, 200), nodes, known, draw.choice(("requeue", "cancel", "continue"))))
    failure = Failure(
        draw.choice(machine.pools).name, draw.choice((500, 2000)), draw.choice((10, 100)), draw.choice(("requeue", "cancel")), seed=last
    )
    return replace(machine, outages=tuple(outages), failures=(failure,) * draw.randint(0, 1))


def longer(workload: Workload) -> Workload:
    """The same with longer jobs, so that more of them run when others come."""
    return replace(workload, runtime=20 * workload.runtime, requested=20 * workload.requested, planned=20 * workload.planned)


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cause", ["preemption", "failure", "both"])
def test_jobs_that_end_early__kernel_equals_reference_and_passes_the_audit(kind, cause, monkeypatch):
    monkeypatch.setattr("walltime.machine.failures.REPEATED_FOR", 1000)
    requeued = cancelled = 0
    for seed in range(scaled({"preemption": 400, "failure": 100, "both": 200}[cause])):
        draw = random.Random(f"{kind} {seed} preemption")
        basis = draw.choice(KINDS[:4]) if kind in KINDS[4:] else kind
        machine, workload = site_of(draw, basis)
        if kind == "shapes" or (kind == "reservations" and draw.random() < 0.4):
            machine, workload = shaped(draw, machine, workload)
        if kind == "reservations":
            machine, workload = reserved(draw, machine, workload)
        workload, policy = longer(workload), policy_of(draw, basis)
        if cause != "failure":
            machine, workload, policy = preempting(draw, machine, workload, policy)
        machine = failing(draw, machine, workload) if cause != "preemption" else machine
        overrun = draw.choice(("kill", "extend", "continue"))
        kernel, reference = (ran(workload, policy, machine, overrun=overrun, engine=engine) for engine in ("kernel", "reference"))
        if isinstance(kernel, type):
            assert kernel is reference, f"seed {seed}"
            continue
        assert columns_of(kernel) == columns_of(reference), f"seed {seed}"
        if kernel.lost is None:
            assert reference.lost is None, f"seed {seed}"
            continue
        assert [runs.tolist() for runs in kernel.lost] == [runs.tolist() for runs in reference.lost], f"seed {seed}"
        assert kernel.audit().ok, f"seed {seed}: {kernel.audit()}"
        requeued += int((kernel.lost.requeued > 0).sum())
        cancelled += int((kernel.lost.requeued == 0).sum())
    assert requeued > 0 or scaled(400) < 100
    assert cancelled > 0 or scaled(400) < 100


def test_a_preempted_job_whose_node_fails__ends_then():
    """Jobs 0 and 1 are preempted at 10 with 20 s of grace; the node of job 0 fails at 20, so it ends then, and job 1 at 30."""
    partitions = (Partition("1", ("a",), tier=1, preempt="requeue", grace=20), Partition("2", ("a",), tier=2))
    slurm = {"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE"}
    machine = Machine((Pool("a", 2, 4),), partitions, outages=(Outage("a", 20, 60, "1", None, jobs="requeue"),), slurm=slurm)
    jobs = Workload.from_arrays(
        submit=[0, 1, 10], runtime=[100, 100, 5], procs=[4, 4, 8], machine_procs=8, columns={"partition": np.array([1, 1, 2])}
    )
    for engine in ("kernel", "reference"):
        found = simulate(jobs, "slurm:bf_interval=1,bf_resolution=1", machine=machine, engine=engine)
        assert (found.lost.end.tolist(), found.lost.failed.tolist(), found.start[2]) == ([20, 30], [1, 0], 60)
        assert found.audit().ok, found.audit()
