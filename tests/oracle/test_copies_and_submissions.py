"""A simulation that is copied at every step, each copy, and one that gets its jobs one by one, give the schedule of `simulate`.

The machines are those of the other tests of this folder; the policies come from the registry, so that one that is added is tried as well.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.oracle import test_machines, test_oar, test_slurm, test_windows
from tests.profiles import scaled
from walltime.engine.interface import agenda
from walltime.errors import EngineError, PolicyError, WorkloadError
from walltime.machine import Machine, Partition, Pool, windows
from walltime.policy import parse_policy
from walltime.policy.registry import NAMED_ORDERS, POLICIES, has_option
from walltime.predictors import PREDICTORS

WORKLOADS = scaled(1_600)
"""Workloads for each kind of machine."""
SHARES = 4
"""Tests that share the workloads of a kind, so that workers can."""
ORDERS = (
    *NAMED_ORDERS,
    "expr:-procs",
    "expr:log(wait+60)-log(area)",
    "linear:wait=1.2,area=-0.3",
    "wfp:starvation=20",
    "sjf:max-wait-share=0.5",
)
OFTEN = ("easy", "hybrid")
"""Most of the policies are of these, which have two orders."""
PREDICTED = (*(name for name in PREDICTORS.variants if name not in ("column", "file")), "tsafrir07:k=1,recompute=yes")
COLUMNS = ("start", "end", "kind", "reserved_start", "submit", "runtime")


def scheduler_of(draw: random.Random, predicted: bool = True) -> str:
    """A policy of the registry with orders and, often, a predictor."""
    names = [name for name, variant in POLICIES.variants.items() if variant.loaded().machines["number"].engine]
    name = draw.choice(OFTEN if draw.random() < 0.7 else names)
    options = [f"depth={draw.choice((0, 1, 2, 3))}"] if name == "hybrid" else []
    if has_option(name, "order") and draw.random() < 0.8:
        options.append(f"order={draw.choice(ORDERS)}")
    if has_option(name, "backfill-order") and draw.random() < 0.3:
        options.append(f"backfill-order={draw.choice(ORDERS)}")
    if predicted and draw.random() < 0.25:
        options.append(f"predictor={draw.choice(PREDICTED)}")
    return f"{name}:{','.join(options)}" if options else name


def number(draw: random.Random):
    """Jobs on a number of processors."""
    workload = test_machines.workload_of(draw, Machine.one_pool(8))
    kept = ("user", "group", "executable", "preceding_job", "think_time")
    columns = {name: workload.columns[name] for name in kept}
    return replace(workload, machine_procs=8, columns=columns), None, scheduler_of(draw)


def pools(draw: random.Random):
    """Jobs on pools: with every restraint, or a full queue on one or two pools that partitions of several tiers share."""
    if draw.random() < 0.3:
        machine = test_machines.machine_of(draw)
        return test_machines.workload_of(draw, machine), machine, scheduler_of(draw)
    nodes, count = draw.randint(2, 5), draw.randint(4, 10)
    names = ("a", "b")[: draw.choice((1, 1, 2))]
    machine = Machine(
        tuple(Pool(name, nodes, 1) for name in names),
        tuple(Partition(str(k), draw.choice((names, names, names, names[:1])), tier=draw.randint(0, 2)) for k in range(1, 4)),
    )
    runtime = [draw.choice((1, 3, 5, 9, 20)) for _ in range(count)]
    workload = wt.Workload.from_arrays(
        submit=sorted(draw.choice((0, 0, 1, 1, 2, 7)) for _ in range(count)),
        runtime=runtime,
        requested=[one + draw.choice((0, 0, 2, 9)) for one in runtime],
        procs=[draw.choice((1, 1, 2, nodes)) for _ in range(count)],
        machine_procs=nodes * len(names),
        columns={name: np.array([draw.randint(1, 3) for _ in range(count)]) for name in ("partition", "user", "group", "executable")},
    )
    return workload, machine, scheduler_of(draw)


def slurm(draw: random.Random):
    """Jobs on Slurm's nodes."""
    kind = draw.choice(test_slurm.KINDS)
    machine, workload = test_slurm.site_of(draw, kind)
    return workload, machine, test_slurm.policy_of(draw, kind)


def oar(draw: random.Random):
    """Jobs on OAR's nodes."""
    machine, workload = test_oar.site_of(draw)
    return workload, machine, test_oar.policy_of(draw, draw.choice(test_oar.KINDS))


def windowed(draw: random.Random):
    """Jobs on pools with hours in which they do not start, long after the last submission."""
    _, workload, machine, policy = test_windows.case_of(draw.random(), days=30, jobs=10)
    return workload, machine, policy


MACHINES = {"number": number, "pools": pools, "slurm": slurm, "oar": oar, "windows": windowed}


def columns_of(schedule, rows=None):
    """What a schedule holds of its jobs; `rows`: of these, in this order."""
    rows = slice(None) if rows is None else rows
    found = {name: getattr(schedule, name)[rows].tolist() for name in COLUMNS}
    if schedule.given is not None:
        found["given"] = schedule.given[rows].tolist()
    if schedule.predictions is not None:
        found["predicted"] = schedule.predictions.predicted[rows].tolist()
    return found


def copied_at_every_step(draw, workload, policy, options):
    """The schedules of the simulation and of some of the copies; each step goes on with the simulation or with its copy."""
    simulation = wt.Simulation(workload, policy, **options)
    while simulation.step():
        other = simulation.copy()
        if draw.random() < 0.5:
            simulation, other = other, simulation
        if draw.random() < 0.1:
            yield other.finish()
    yield simulation.finish()


def submitted_one_by_one(draw, workload, policy, options):
    """The schedule of a simulation of the first jobs to which the others are submitted, each before it arrives."""
    first = (workload.submit == workload.submit[0]) | (workload.columns.get("running_since", workload.submit * 0 - 1) != -1)
    simulation = wt.Simulation(workload.take(first, ""), policy, **options)
    for place in np.flatnonzero(~first).tolist():
        own = {name: int(values[place]) for name, values in workload.columns.items()}
        for name in ("submit", "runtime", "procs", "requested", "planned", "job_id"):
            own[name] = int(getattr(workload, name)[place])
        last = own["submit"] - 1
        if last > simulation.now and draw.random() < 0.7:
            simulation.run_until(draw.randint(simulation.now, last))
        if draw.random() < 0.3:
            simulation = simulation.copy()
        simulation.submit(own)
    return simulation.finish()


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("kind", MACHINES)
def test_schedule__copied_at_every_step_and_submitted_one_by_one(kind, share, monkeypatch):
    done = copies = 0
    monkeypatch.setattr(windows, "ROOM", 4 * test_windows.DAY)  # so little is known ahead that all copies must look further
    monkeypatch.setattr(agenda, "AHEAD", 4 * test_windows.DAY)
    count = WORKLOADS // 8 if kind == "windows" else WORKLOADS  # which take long, as windows are looked up again and again
    for seed in range(share, count, SHARES):
        draw = random.Random(f"copied {kind} {seed}")
        workload, machine, policy = MACHINES[kind](draw)
        workload = workload.with_feedback(False).take(np.arange(len(workload)) < 12, "")
        options = {"machine": machine, "overrun": draw.choice(("kill", "extend", "continue"))}
        fed = workload.with_feedback(kind != "oar" and draw.random() < 0.2)
        try:
            expected = wt.simulate(fed, policy, **options)
        except (EngineError, PolicyError, WorkloadError):
            continue
        done += 1
        for schedule in copied_at_every_step(draw, fed, policy, options):
            assert columns_of(schedule) == columns_of(expected), f"{kind} {seed}, copied: {policy}"
            copies += 1
        if not fed.feedback:
            placed = expected.workload  # the jobs that can run on the machine
            jobs = workload.take(np.isin(workload.job_id, placed.job_id), "")
            schedule = submitted_one_by_one(draw, jobs, policy, options)
            rows = np.argsort(schedule.workload.job_id)[np.argsort(np.argsort(placed.job_id))]
            assert columns_of(schedule, rows) == columns_of(expected), f"{kind} {seed}, submitted: {policy}"
    assert done >= count / SHARES / 2
    assert copies > done


@pytest.mark.parametrize("order", ["expr:-procs", "lcfs", "saf", "f1", "lxf", "unicef"])
def test_copy__where_a_partition_of_a_higher_tier_backfills_first(order):
    """Job 0 holds two of three processors, job 1 needs all; jobs 2 and 3 fit beside job 0, and job 3 is of the higher tier."""
    partition = np.array([2, 2, 1, 2])
    jobs = wt.Workload.from_arrays(
        submit=[0, 1, 2, 2], runtime=[99, 9, 9, 9], procs=[2, 3, 1, 1], machine_procs=3, columns={"partition": partition}
    )
    machine = Machine((Pool("a", 3, 1),), (Partition("1", ("a",)), Partition("2", ("a",), tier=1)))
    simulation = wt.Simulation(jobs, f"easy:order={order}", machine=machine)
    other = simulation.copy()
    assert simulation.finish().start.tolist() == [0, 99, 11, 2]
    assert other.finish().start.tolist() == [0, 99, 11, 2]


@pytest.mark.parametrize("moment", [0, 1000], ids=["before the first event", "after all jobs have ended"])
def test_submit__of_half_a_node_where_jobs_use_whole_ones(moment):
    jobs = wt.Workload.from_arrays(submit=[15, 24], runtime=[1, 1], procs=[2, 2], machine_procs=4)
    machine = Machine((Pool("a", 2, 2),), (Partition("1", ("a",)),))
    simulation = wt.Simulation(jobs, "slurm", machine=machine)
    simulation.run_until(moment)
    simulation.submit({"submit": moment + 31, "runtime": 9, "procs": 1})
    assert columns_of(simulation.finish()) == columns_of(wt.simulate(simulation.workload, "slurm", machine=machine))


def test_submit__of_a_job_with_which_the_policy_does_not_run_on_the_machine():
    """One pool is a number of processors, on which los runs, until its jobs together need more GPUs than it has."""
    machine = Machine((Pool("a", 1, 4, second=1),), (Partition("1", ("a",)),))
    columns = {"gpus": np.array([1, -1])}
    jobs = wt.Workload.from_arrays(submit=[0, 5], runtime=[9, 9], procs=[2, 3], machine_procs=4, columns=columns)
    simulation = wt.Simulation(jobs, "los", machine=machine)
    simulation.run_until(1)
    with pytest.raises(PolicyError):
        simulation.submit({"submit": 6, "runtime": 9, "procs": 1, "gpus": 1})
    assert columns_of(simulation.finish()) == columns_of(wt.simulate(jobs, parse_policy("los"), machine=machine))
