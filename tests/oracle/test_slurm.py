"""Slurm's scheduling: the kernel equals the reference, and the auditor, which steps the reference along the schedule, finds no fault."""

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.oracle.test_machines import machine_of, workload_of
from tests.profiles import scaled
from walltime import simulate
from walltime.engine.machines import NEVER
from walltime.errors import EngineError, WorkloadError
from walltime.machine import Limit, Machine, Outage, Partition, Pool, Qos, Reservation, Share
from walltime.policy import Slurm
from walltime.workload import Workload

KINDS = ("parameters", "priorities", "time-min", "everything", "shapes", "reservations", "node-limits")


def policy_of(draw: random.Random, kind: str) -> Slurm:
    """Parameters that matter for some dozen jobs of some seconds."""
    options = {
        "bf_interval": draw.choice((1, 2, 5, 30)),
        "bf_resolution": draw.choice((1, 3, 7, 60)),
        "sched_interval": draw.choice((-1, 1, 4, 60)),
        "bf_window": draw.choice((1, 1440)),
    }
    if kind in ("parameters", "everything"):
        few = (0, 0, 0, 1, 2, 3)
        names = ("bf_max_job_user", "bf_max_job_part", "bf_max_job_user_part", "bf_max_job_start", "bf_job_part_count_reserve")
        options |= {name: draw.choice(few) for name in (*names, "partition_job_depth")}
        options |= {"default_queue_depth": draw.choice((0, 1, 3, 100)), "bf_max_job_test": draw.choice((1, 3, 500))}
        options |= {"defer": draw.random() < 0.3, "bf_min_age_reserve": draw.choice((0, 0, 5, 20))}
        options["scheduler_type"] = draw.choice(("backfill", "backfill", "builtin"))
        options["select_type"] = draw.choice(("cons_tres", "cons_tres", "linear"))
        options["priority_type"] = draw.choice(("basic", "multifactor"))
    if kind in ("priorities", "everything"):
        weights = ("age", "fairshare", "job_size", "partition", "qos", "assoc")
        options |= {f"priority_weight_{name}": draw.choice((0, 10, 1000)) for name in weights}
        options["priority_weight_tres"] = draw.choice(("", "", "CPU=100", "Node=7:GRES/gpu=900.5:Mem=3"))
        options["fair_share_dampening_factor"] = draw.choice((None, 1, 3))
        options |= {"priority_max_age": draw.choice((20, 100)), "priority_decay_half_life": draw.choice((0, 10, 100))}
        options |= {"priority_calc_period": draw.choice((1, 7, 30)), "priority_favor_small": draw.random() < 0.5}
        options["priority_flags"] = draw.choice(("", "NO_FAIR_TREE", "SMALL_RELATIVE_TO_TIME", "NO_FAIR_TREE:SMALL_RELATIVE_TO_TIME"))
        options["bf_min_prio_reserve"] = draw.choice((0, 0, 500))
    if kind in ("time-min", "everything"):
        options |= {"time_min_as_soft_limit": draw.random() < 0.4, "soft_limit_running": draw.choice(("half", "limit"))}
    return Slurm(**options)


def site_of(draw: random.Random, kind: str) -> tuple[Machine, Workload]:
    """A machine and jobs as for other policies, with what only Slurm reads: weights, nodes, holds, least runtimes, accounts and shares."""
    machine = machine_of(draw)
    size = draw.choice((1, 1, 4))
    pools = [replace(one, procs=size * one.procs, second=draw.choice((1, 3)) * one.second) for one in machine.pools]
    pools = [replace(one, weight=draw.choice((1, 1, 7))) for one in pools]
    partitions = [replace(one, job_factor=draw.randint(0, 5)) for one in machine.partitions]
    machine = replace(machine, pools=tuple(pools), partitions=tuple(partitions))
    workload = workload_of(draw, machine)
    count = len(workload)
    columns = dict(workload.columns)
    columns["nodes"] = np.array([draw.choice((-1, -1, 1, 2, 3)) for _ in range(count)])
    columns["held"] = np.array([draw.choice((-1, 0, 0, 3, 20)) for _ in range(count)])
    columns["exclusive"] = np.array([draw.choice((-1, -1, -1, 1)) for _ in range(count)])
    if kind in ("time-min", "everything"):
        # Long requests behind a queue: what is backfilled starts with less than it asked for.
        columns["time_min"] = np.array([draw.choice((-1, 1, 1, 1, 2, 5, 60)) for _ in range(count)])
        workload = replace(workload, requested=np.where(workload.runtime > 2, workload.requested * 40, workload.requested))
        workload = replace(workload, planned=workload.requested)
    if kind in ("priorities", "everything"):
        columns["group"] = np.array([draw.choice((-1, 1, 2, 3)) for _ in range(count)])
        columns["queue"] = np.array([draw.choice((1, 2)) for _ in range(count)])
        columns["site_factor"] = np.array([draw.choice((-1, 0, 0, 400, -30)) for _ in range(count)])
        shares = [Share("1", shares=draw.randint(0, 3), priority=draw.choice((None, 4)))]
        shares += [Share("2", parent="1", shares=2), Share("2", "1", shares=draw.randint(0, 3), priority=draw.choice((None, 9)))]
        qos = (Qos("1", draw.randint(0, 9), draw.choice((1.0, 0.3, 2.5)), draw.random() < 0.3), Qos("2", 3))
        machine = replace(machine, shares=tuple(shares[: draw.randint(0, 3)]), qos=qos)
    if kind in ("parameters", "everything") and draw.random() < 0.3:
        timed = Limit(draw.choice((("user",), ("queue",), ())), jobs=draw.choice((None, 3)), run_minutes=draw.choice((5, 20, 60)))
        machine = replace(machine, limits=(*machine.limits, timed))
    return machine, replace(workload, columns=columns).with_feedback(draw.random() < 0.3)


def shaped(draw: random.Random, machine: Machine, workload: Workload) -> tuple[Machine, Workload]:
    """The same with features and types of nodes, larger nodes, and all requests for nodes and for what they have."""
    features = (("intel",), ("intel", "big"), ("amd",), ())
    pools = [replace(one, procs=draw.choice((1, 2, 5)) * one.procs, second=draw.choice((1, 7)) * one.second) for one in machine.pools]
    pools = [replace(one, memory=draw.choice((0, 4, 9, 9, 30))) for one in pools] if draw.random() < 0.6 else pools
    pools = [replace(one, features=draw.choice(features), gpu_type=draw.choice(("", "a100", "v100"))) for one in pools]
    if draw.random() < 0.3:  # several types on each node
        types = [{"a100": draw.randint(1, 3), "v100": draw.randint(1, 9)} for _ in pools]
        mixed = [draw.random() < 0.6 for _ in pools]
        pools = [
            replace(one, second=0, gpu_type="", gpu_types=own) if has else one for one, own, has in zip(pools, types, mixed, strict=True)
        ]
    partitions = [replace(one, exclusive=False) for one in machine.partitions] if draw.random() < 0.7 else machine.partitions
    partitions = [replace(one, least_loaded=draw.random() < 0.25) for one in partitions]
    sizes = {one.name: one.procs for one in pools}
    partitions = [replace(one, exclusive=one.exclusive and len({sizes[p] for p in one.pools}) == 1) for one in partitions]
    machine = replace(machine, pools=tuple(pools), partitions=tuple(partitions))
    choices = {
        "constraints": (-1, -1, 1, 2, 3, 4),
        "requested_gpu_type": (-1, -1, -1, 1, 2),
        "cpus_per_task": (-1, -1, 1, 2, 3),
        "tasks_per_node": (-1, -1, -1, 1, 2),
        "most_nodes": (-1, -1, 1, 2, 3),
        "gpus_per_node": (-1, -1, 0, 1, 2, 3),
        "gpus_per_task": (-1, -1, -1, -1, 1),
        "gpus_per_cpu": (-1, -1, -1, 1, 2),
        "mem_mb": (-1, -1, 1, 2, 4, 6, 8),
        "mem_mb_per_node": (-1, -1, -1, 2, 4),
        "mem_mb_per_cpu": (-1, -1, -1, 1, 2),
        "requested_procs": (-1, 1, 2, 5),
    }
    columns = workload.columns | {name: np.array([draw.choice(some) for _ in range(len(workload))]) for name, some in choices.items()}
    names = {"constraints": ("intel", "intel&big", "amd|big", "none"), "requested_gpu_type": ("a100", "v100")}
    procs = np.array([draw.choice((1, 1, 2, 4, 6, 12)) for _ in range(len(workload))])
    return machine, replace(workload, columns=columns, procs=procs, origin=replace(workload.origin, names=names))


def reserved(draw: random.Random, machine: Machine, workload: Workload) -> tuple[Machine, Workload]:
    """The same with reservations, licences, limits on resources, and jobs that request these, nodes for their users alone, or spread."""
    tables = []
    for _ in range(draw.randint(1, 4)):
        pool, begin = draw.choice(machine.pools), draw.randint(0, 80)
        first = draw.randint(1, pool.nodes)
        nodes = draw.choice((None, draw.randint(1, pool.nodes), f"{first}-{draw.randint(first, pool.nodes)}"))
        flags = draw.choice(((), (), ("FLEX",)))
        announced, users = draw.choice((0, None, begin // 2)), draw.choice(((), (), ("1", "2")))
        tables.append(Reservation(draw.choice("12"), pool.name, begin, begin + draw.randint(1, 60), nodes, announced, users, (), flags))
    machine = replace(machine, reservations=tuple(tables), licences=draw.choice(({}, {"fast": 3, "big": 5})))
    resources = draw.choice(({}, {"node": 3}, {"mem": 9000}, {"gres/gpu:a100": 2, "license/fast": 2}))
    machine = replace(machine, limits=(*machine.limits, *([Limit(draw.choice(((), ("user",))), resources=resources)] if resources else [])))
    choices = {"reservation": (-1, -1, -1, 1, 1, 2, 3), "exclusive": (-1, -1, -1, 1, 2, 2), "spread": (-1, -1, 1)}
    choices["licences"] = (-1, -1, -1, 1, 2, 3, 4)
    origin = replace(workload.origin, names=dict(workload.origin.names) | {"licences": ("fast:2", "fast", "big:3,fast", "big:9")})
    columns = workload.columns | {name: np.array([draw.choice(some) for _ in range(len(workload))]) for name, some in choices.items()}
    return machine, replace(workload, columns=columns, origin=origin)


def node_limited(draw: random.Random, machine: Machine, workload: Workload) -> tuple[Machine, Workload]:
    """The same, or one of the last two, with limits on nodes."""
    if draw.random() < 0.4:
        machine, workload = shaped(draw, machine, workload)
    if draw.random() < 0.3:
        machine, workload = reserved(draw, machine, workload)
    groups = [draw.choice(((), ("user",), ("queue",))) for _ in range(draw.randint(1, 2))]
    limits = [Limit(by, resources={"node": draw.randint(1, 4)}) for by in groups]
    return replace(machine, limits=(*machine.limits, *limits)), workload


def ran(workload, policy, machine, **options):
    """The schedule, or the kind of error."""
    try:
        return simulate(workload, policy, machine=machine, **options)
    except (EngineError, WorkloadError) as error:
        return type(error)


def columns_of(schedule):
    names = ("start", "end", "kind", "reserved_start", "given", "submit", "runtime")
    found = {name: getattr(schedule, name).tolist() for name in names}
    found["slots"] = [values.tolist() for values in schedule.slots]
    found["limit"] = None if schedule.limit is None else schedule.limit.tolist()
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_kernel_equals_reference_and_passes_the_audit(kind):
    errors = 0
    seen = {"shortened": 0, "backfilled": 0, "reserved": 0, "shared": 0}
    for seed in range(scaled(300)):
        draw = random.Random(f"{kind} {seed}")
        basis = draw.choice(KINDS[:4]) if kind in KINDS[4:] else kind
        machine, workload = site_of(draw, basis)
        if kind == "shapes" or (kind == "reservations" and draw.random() < 0.4):
            machine, workload = shaped(draw, machine, workload)
        if kind == "reservations":
            machine, workload = reserved(draw, machine, workload)
        if kind == "node-limits":
            machine, workload = node_limited(draw, machine, workload)
        policy = policy_of(draw, basis)
        overrun = draw.choice(("kill", "extend", "continue"))
        kernel, reference = (ran(workload, policy, machine, overrun=overrun, engine=engine) for engine in ("kernel", "reference"))
        if isinstance(kernel, type):
            assert kernel is reference, f"seed {seed}"
            errors += 1
            continue
        assert columns_of(kernel) == columns_of(reference), f"seed {seed}"
        report = kernel.audit()
        assert report.ok, f"seed {seed}: {report}"
        seen["shared"] += check_node_limits(kernel)
        seen["shortened"] += kernel.limit is not None
        seen["backfilled"] += bool((kernel.kind == 2).any())
        seen["reserved"] += bool((kernel.reserved_start >= 0).any())
    assert errors < 0.7 * scaled(300)
    assert scaled(300) < 100 or min(seen["backfilled"], seen["reserved"]) > 0, seen
    assert kind != "time-min" or scaled(300) < 100 or seen["shortened"] > 0
    assert kind != "node-limits" or scaled(300) < 100 or seen["shared"] > 0


def test_a_node_counts_once_towards_a_limit_on_nodes():
    """Small jobs of a user share two nodes, even if one must use both; a large one waits for them, and another user's does not."""
    columns = {"user": np.array([1, 1, 1, 1, 2]), "nodes": np.array([1, 1, 1, 2, 1])}
    arrays = {"submit": [0, 1, 2, 3, 4], "runtime": [100] * 5, "requested": [100] * 5, "procs": [3, 3, 1, 8, 4], "machine_procs": 16}
    workload = Workload.from_arrays(**arrays, columns=columns)
    machine = Machine((Pool("a", 4, 4),), (Partition("1", ("a",)),), limits=(Limit(("user",), resources={"node": 2}),))
    for engine in ("kernel", "reference"):
        schedule = simulate(workload, Slurm(), machine=machine, engine=engine)
        assert schedule.start.tolist() == [0, 1, 2, 102, 4]
        assert [values.tolist() for values in schedule.slots[:2]] == [[0, 1, 1, 2, 3, 3, 4], [0, 0, 1, 1, 0, 1, 2]]
        assert schedule.audit().ok


def check_node_limits(schedule):
    """Return 1 if two jobs of a limit on nodes share a node at a time; only a job that starts alone, or runs at first, exceeds it."""
    placement, shared = schedule.placement, 0
    jobs, nodes = schedule.slots[0], schedule.slots[1]
    for number, most in enumerate(placement.node_limits):
        group = [k for k, own in enumerate(placement.limits_of) if number in own]
        for moment in np.unique(schedule.start[group]):
            runs = [k for k in group if schedule.start[k] <= moment < schedule.end[k]]
            used = nodes[np.isin(jobs, runs)]
            assert len(runs) < 2 or len(np.unique(used)) <= most or (placement.since[runs] < NEVER).any()
            shared |= len(np.unique(used)) < len(used)
    return shared


@pytest.mark.parametrize("seed", [1226, 2687, 2870])
def test_soft_limits__jobs_on_nodes_that_are_kept_for_those_ahead(seed):
    """Backfill starts a job for longer than it planned it, so less is free of the nodes that others are to have."""
    draw = random.Random(f"time-min {seed}")
    machine, workload = site_of(draw, "time-min")
    policy = policy_of(draw, "time-min")
    overrun = draw.choice(("kill", "extend", "continue"))
    kernel, reference = (simulate(workload, policy, machine=machine, overrun=overrun, engine=engine) for engine in ("kernel", "reference"))
    assert columns_of(kernel) == columns_of(reference)


@pytest.mark.slow
def test_processors_counted_together():
    """Where everything is a multiple of a power of two, the schedule is that of so many fewer processors, on the same nodes."""
    draw = random.Random("together")
    runtime = [draw.randint(1, 900) for _ in range(80)]
    procs = [4 * draw.randint(1, 12) for _ in range(80)]
    for fewest, size in ((1, 8), (3, 4), (1, 12)):
        workload = Workload.from_arrays(
            submit=sorted(draw.randint(0, 9000) for _ in range(80)),
            runtime=runtime,
            requested=[3 * seconds for seconds in runtime],
            procs=procs,
            machine_procs=12 * size,
            columns={"nodes": np.full(80, fewest)},
        )
        machine = Machine((Pool("a", 12, size),), (Partition("1", ("a",)),))
        kernel, reference = (simulate(workload, Slurm(), machine=machine, engine=engine) for engine in ("kernel", "reference"))
        assert columns_of(kernel) == columns_of(reference)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.nightly] * (kind == "reservations")) for kind in KINDS])
def test_long_queues(kind):
    """The same where many jobs wait for many nodes, so that plans are continued and searches begin late."""
    for seed in range(scaled(3)):
        draw = random.Random(f"long {kind} {seed}")
        rng = np.random.default_rng(seed)
        count, nodes, size = draw.randint(80, 200), draw.choice((10, 30)), draw.choice((1, 1, 4))
        runtime = rng.integers(0, 3000, count)
        columns = {"partition": rng.integers(1, 3, count), "user": rng.integers(1, 5, count), "group": rng.integers(1, 3, count)}
        columns["gpus"] = np.where(rng.random(count) < 0.2, rng.integers(0, 3, count), 0)
        if kind in ("time-min", "everything"):
            columns["time_min"] = np.where(rng.random(count) < 0.4, rng.integers(60, 2000, count), -1)
        workload = Workload.from_arrays(
            submit=np.sort(rng.integers(0, draw.choice((3000, 30_000)), count)),
            runtime=runtime,
            requested=np.maximum(runtime + rng.integers(-300, 4000, count), 1) // 60 * 60 + 60,
            procs=np.minimum(2 ** rng.integers(0, 7, count), nodes * size),
            machine_procs=nodes * size,
            columns=columns,
        )
        pools = (Pool("a", nodes // 2, size, 1), Pool("b", nodes - nodes // 2, size))
        outages = (Outage("b", 5000, 9000, 3, 1000), Outage("a", 7000, 8000))[: draw.randint(0, 2)]
        partitions = (Partition("1", ("a", "b")), Partition("2", draw.choice((("b",), ("b", "a"))), tier=draw.choice((0, 0, 1))))
        machine = Machine(pools, partitions, outages, (Limit(("user",), procs=nodes * size),)[: draw.randint(0, 1)])
        if kind == "node-limits":
            machine = replace(machine, limits=(*machine.limits, Limit(("user",), resources={"node": draw.randint(2, nodes // 2)})))
        policy = replace(policy_of(draw, kind), bf_interval=30, bf_resolution=60, priority_calc_period=draw.choice((None, 300)))
        kernel, reference = (ran(workload, policy, machine, engine=engine) for engine in ("kernel", "reference"))
        if isinstance(kernel, type):
            assert kernel is reference, f"seed {seed}"
            continue
        assert columns_of(kernel) == columns_of(reference), f"seed {seed}"
        report = kernel.audit()
        assert report.ok, f"seed {seed}: {report}"
