"""Preemption under Slurm's scheduling: the kernel equals the reference, and the auditor finds no fault in these schedules."""

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.oracle.test_slurm import KINDS, columns_of, policy_of, ran, reserved, shaped, site_of
from tests.profiles import scaled
from walltime.machine import Machine, Qos
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


def longer(workload: Workload) -> Workload:
    """The same with longer jobs, so that more of them run when others come."""
    return replace(workload, runtime=20 * workload.runtime, requested=20 * workload.requested, believed=20 * workload.believed)


@pytest.mark.parametrize("kind", KINDS)
def test_preemption__kernel_equals_reference_and_passes_the_audit(kind):
    requeued = cancelled = 0
    for seed in range(scaled(400)):
        draw = random.Random(f"{kind} {seed} preemption")
        basis = draw.choice(KINDS[:4]) if kind in KINDS[4:] else kind
        machine, workload = site_of(draw, basis)
        if kind == "shapes" or (kind == "reservations" and draw.random() < 0.4):
            machine, workload = shaped(draw, machine, workload)
        if kind == "reservations":
            machine, workload = reserved(draw, machine, workload)
        machine, workload, policy = preempting(draw, machine, longer(workload), policy_of(draw, basis))
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
    assert requeued > 0
    assert cancelled > 0
