"""Machines of several pools: the kernel equals the reference, and the auditor, which knows neither, agrees with both."""

import random
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from tests.profiles import PROFILE, scaled
from walltime import simulate
from walltime.errors import EngineError, WorkloadError
from walltime.machine import Limit, Machine, Outage, Partition, Pool
from walltime.policy import Kind
from walltime.workload import Origin, Workload

POLICIES = (
    "fcfs",
    "fcfs:order=sjf",
    "easy",
    "easy:order=wfp",
    "easy:order=sjf",
    "easy:backfill-order=sjf",
    "hybrid:depth=0",
    "hybrid:depth=0,backfill-order=sjf",
    "hybrid:depth=2,backfill-order=sjf",
    "hybrid:depth=2,order=wfp,backfill-order=sjf",
    "hybrid:depth=3",
    "conservative-scratch",
    "conservative",
    "conservative:order=sjf",
)
DEEP = (
    "fcfs",
    "easy",
    "easy:order=sjf",
    "easy:backfill-order=sjf",
    "hybrid:depth=2",
    "conservative",
    "fcfs:order=wfp",
    "easy:order=wfp",
    "easy:order=wfp:starvation=20,backfill-order=wfp",
    "easy:order=sjf:starvation=9",
    "easy:order=wfp,predictor=tsafrir07",
    "hybrid:depth=2,order=wfp,backfill-order=sjf",
    "conservative-scratch:order=wfp",
    "easy:order=lxf",
)
PREDICTIONS = (
    "predictor=tsafrir07",
    "predictor=tsafrir07,correction=double",
    "predictor=last,predictions-for=011,correction=half",
    "predictor=last,predictions-for=selective",
    "predictor=last,predictions-for=010,correction=estimate",
    "predictor=exact,predictions-for=011",
    "predictor=user,predictions-for=001",
    "predictor=tang13,predictions-for=selective",
    "predictor=tang13,predictions-for=011,correction=none",
    "predictor=similar15",
    "predictor=gaussier15",
)


def machine_of(draw: random.Random) -> Machine:
    """One to three pools, partitions that share or split them, outages of all kinds, limits."""
    pools = tuple(Pool(f"p{k}", draw.choice((1, 2, 4)), draw.choice((1, 2)), draw.choice((0, 0, 1))) for k in range(draw.randint(1, 3)))
    partitions = []
    for k in range(draw.randint(1, 3)):
        chosen = draw.sample(pools, draw.randint(1, len(pools)))
        exclusive = draw.random() < 0.3 and len({pool.procs for pool in chosen}) == 1
        longest = draw.choice((None, None, 20))
        partitions.append(Partition(str(k + 1), tuple(pool.name for pool in chosen), exclusive, draw.choice((0, 0, 1)), longest))
    outages = []
    for _ in range(draw.choice((0, 0, 1, 2))):
        pool, begin = draw.choice(pools), draw.randint(0, 60)
        known = draw.choice((None, begin - 10, begin - 100))
        outages.append(Outage(pool.name, begin, begin + draw.randint(1, 40), draw.randint(1, pool.nodes), known))
    limits = [
        Limit(
            draw.choice((("user",), ("partition",), ("user", "partition"), ())), None, *draw.choice(((1,), (2,), (3,), (None, 8), (4, 9)))
        )
        for _ in range(draw.choice((0, 0, 1, 2)))
    ]
    return Machine(pools, tuple(partitions), tuple(outages), tuple(limits))


def workload_of(draw: random.Random, machine: Machine) -> Workload:
    """Random jobs, some with dependencies, arrays, and places from the beginning; some outlive their estimates."""
    count, now = draw.randint(1, 30), 0
    rows = []
    for _ in range(count):
        now += draw.choice((0, 0, 0, 1, 2, 5))
        runtime = draw.choice((0, 1, 2, 3, 5, 8, 13, 30))
        requested = max(1, runtime + draw.choice((0, 0, 0, 1, 3, 10, -1, -5)))
        rows.append(
            (now, runtime, requested, draw.choice((1, 1, 2, 3, 8)), draw.randint(1, len(machine.partitions)), draw.choice((0, 0, 0, 1, 2)))
        )
    submit, runtime, requested, procs, partition, gpus = map(list, zip(*rows, strict=True))
    columns = {
        "partition": partition,
        "gpus": gpus,
        "user": [draw.randint(1, 3) for _ in rows],
        "group": [draw.randint(1, 2) for _ in rows],
    }
    columns["depends_on"] = [draw.randint(1, k) if k and draw.random() < 0.15 else -1 for k in range(count)]
    columns["depends_on_success"] = [draw.randint(1, k) if k and draw.random() < 0.1 else -1 for k in range(count)]
    columns["status"] = [draw.choice((1, 1, 1, 0)) for _ in rows]
    columns["singleton"] = [draw.choice((0, 0, 0, 1)) for _ in rows]
    columns["executable"] = [draw.randint(1, 3) for _ in rows]
    columns["array_job"] = [draw.choice((-1, -1, 5)) for _ in rows]
    columns["array_limit"] = [2] * count
    at_first = min(draw.choice((0, 0, 1, 2)), count)
    columns["running_since"] = [-1 - draw.randint(1, 5) if k < at_first else -1 for k in range(count)]
    if at_first:
        for k in range(at_first):
            columns["depends_on"][k] = columns["depends_on_success"][k] = -1
            columns["singleton"][k] = 0
    columns["preceding_job"] = [draw.randint(1, k) if k and draw.random() < 0.2 else -1 for k in range(count)]
    columns["think_time"] = [draw.choice((0, 1, 7)) for _ in rows]
    return Workload.from_arrays(
        submit=submit, runtime=runtime, requested=requested, procs=procs, machine_procs=99,
        columns={name: np.array(values) for name, values in columns.items()},
    )  # fmt: skip


def ran(workload, policy, machine, **options):
    """The schedule, or the kind of error."""
    try:
        return simulate(workload, policy, machine=machine, **options)
    except (EngineError, WorkloadError) as error:
        return type(error)


def columns_of(schedule):
    names = ("start", "end", "kind", "reserved_start", "given", "submit")
    return {name: getattr(schedule, name).tolist() for name in names}


@pytest.mark.parametrize("policy", POLICIES)
def test_kernel_equals_reference_and_passes_the_audit(policy):
    errors = 0
    for seed in range(scaled(150)):
        draw = random.Random(f"{policy} {seed}")
        machine = machine_of(draw)
        workload = workload_of(draw, machine)
        overrun = draw.choice(("kill", "extend", "continue"))
        kernel, reference = (ran(workload, policy, machine, overrun=overrun, engine=engine) for engine in ("kernel", "reference"))
        if isinstance(kernel, type):
            assert kernel is reference
            errors += 1
            continue
        assert columns_of(kernel) == columns_of(reference), f"seed {seed}"
        report = kernel.audit()
        assert not report.violations, f"seed {seed}: {report}"
    assert errors < 0.7 * scaled(150)


def deep_case(draw: random.Random, count: int) -> tuple[Workload, Machine]:
    """Many jobs of users who may run one or two at a time, on two pools."""
    pools = (Pool("a", draw.choice((6, 12)), 1), Pool("b", 6, 1))
    partitions = (Partition("1", ("a", "b")), Partition("2", ("b",)), Partition("3", ("b", "a"), tier=draw.choice((0, 1))))
    limits = [Limit(("user",), None, draw.choice((1, 2)))]
    limits += [Limit(draw.choice(((), ("partition",))), None, None, draw.choice((8, 9)))] if draw.random() < 0.5 else []
    outages = (Outage("b", 40, 60, 3, 20),) if draw.random() < 0.3 else ()
    runtime = [draw.choice((1, 2, 3, 8)) for _ in range(count)]
    workload = Workload.from_arrays(
        submit=sorted(draw.choice((0, 0, 10, 20)) for _ in runtime),
        runtime=runtime,
        requested=[one + draw.choice((0, 0, 2)) for one in runtime],
        procs=[draw.choice((1, 1, 1, 2, 6)) for _ in runtime],
        machine_procs=18,
        columns={
            "user": np.array([draw.choice((1, 1, 2, 3, 4)) for _ in runtime]),
            "partition": np.array([draw.randint(1, 3) for _ in runtime]),
        },
    )
    return workload, Machine(pools, partitions, outages, tuple(limits))


@pytest.mark.slow
@pytest.mark.parametrize("policy", DEEP)
def test_deep_queues_of_jobs_over_limits__kernel_equals_reference(policy):
    for seed in range(scaled(15)):
        workload, machine = deep_case(random.Random(f"deep {policy} {seed}"), 150 if PROFILE == "nightly" else 80)
        kernel, reference = (simulate(workload, policy, machine=machine, engine=engine) for engine in ("kernel", "reference"))
        assert columns_of(kernel) == columns_of(reference), f"seed {seed}"


def test_conservative_where_a_limit_opens_for_many__kernel_equals_reference():
    """Most of those who wait for it get a place only to lose it in the same second; who comes behind them sees it, and it is recorded."""
    for seed in range(scaled(120)):
        draw = random.Random(f"opens {seed}")
        pools = (Pool("a", draw.choice((3, 6)), 1), Pool("b", 3, 1))
        partitions = (Partition("1", ("a", "b")), Partition("2", ("b",)))
        limits = [Limit(("user",), jobs=draw.choice((1, 2)))]
        runtime = [draw.choice((1, 2, 3, 8)) for _ in range(40)]
        workload = Workload.from_arrays(
            submit=sorted(draw.randint(0, 30) for _ in runtime),
            runtime=runtime,
            requested=[one + draw.choice((0, 0, 2)) for one in runtime],
            procs=[draw.choice((1, 1, 1, 2, 3)) for _ in runtime],
            machine_procs=pools[0].nodes + 3,
            columns={
                "user": np.array([draw.choice((1, 1, 2, 3, 4)) for _ in runtime]),
                "partition": np.array([draw.randint(1, 2) for _ in runtime]),
            },
        )
        machine = Machine(pools, partitions, (), tuple(limits))
        kernel, reference = (simulate(workload, "conservative", machine=machine, engine=engine) for engine in ("kernel", "reference"))
        assert columns_of(kernel) == columns_of(reference), f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_predictions_and_feedback__kernel_equals_reference(policy):
    errors = 0
    for seed in range(scaled(150)):
        draw = random.Random(f"{policy} predicted {seed}")
        machine = machine_of(draw)
        workload = workload_of(draw, machine).with_feedback(draw.random() < 0.5)
        scheduler = policy + (",", ":")[":" not in policy] + draw.choice(PREDICTIONS) if draw.random() < 0.9 else policy
        overrun = draw.choice(("kill", "extend", "continue"))
        kernel, reference = (ran(workload, scheduler, machine, overrun=overrun, engine=engine) for engine in ("kernel", "reference"))
        if isinstance(kernel, type):
            assert kernel is reference
            errors += 1
            continue
        assert columns_of(kernel) == columns_of(reference), f"seed {seed}, {scheduler}"
        if kernel.predictions is not None:
            for name in ("predicted", "basis", "corrections"):
                assert getattr(kernel.predictions, name).tolist() == getattr(reference.predictions, name).tolist(), (
                    f"seed {seed}, {scheduler}"
                )
        report = kernel.audit()
        assert not report.violations, f"seed {seed}: {report}"
    assert errors < 0.7 * scaled(150)


SAME = (
    ("relaxed:omega=0", "easy"),
    ("relaxed:omega=0,order=sjf", "easy:order=sjf"),
    ("relaxed:omega=0,backfill-order=sjf", "easy:backfill-order=sjf"),
    ("selective:threshold=0", "conservative-scratch"),
    ("selective:threshold=0,order=wfp", "conservative-scratch:order=wfp"),
    ("selective:threshold=1e9", "hybrid:depth=0"),
)
"""Policies at the ends of their parameters, and what they are there."""


@pytest.mark.parametrize(("policy", "known"), SAME)
def test_policies_in_plain_python__are_known_ones_at_the_ends_of_their_parameters(policy, known):
    compared = 0
    for seed in range(scaled(60)):
        draw = random.Random(f"{policy} {seed}")
        machine = machine_of(draw)
        workload = workload_of(draw, machine)
        overrun = draw.choice(("kill", "extend", "continue"))
        own, other = ran(workload, policy, machine, overrun=overrun, engine="reference"), ran(workload, known, machine, overrun=overrun)
        if isinstance(own, type):
            assert own is other
            continue
        assert own.simulated_on == "pools"
        for name in ("start", "reserved_start", "given"):
            if name != "reserved_start" or known != "hybrid:depth=0":
                assert getattr(own, name).tolist() == getattr(other, name).tolist(), f"seed {seed}: {name}"
        compared += 1
    assert compared > scaled(60) / 2


@pytest.mark.parametrize(
    "policy", ["relaxed", "relaxed:omega=3", "selective", "selective:threshold=adaptive", "multiqueue:bounds=3/9", "double"]
)
def test_policies_in_plain_python__keep_the_rules_of_the_machine(policy):
    for seed in range(scaled(40)):
        draw = random.Random(f"{policy} {seed}")
        machine = machine_of(draw)
        schedule = ran(workload_of(draw, machine), policy, machine, engine="reference")
        if not isinstance(schedule, type):
            assert (schedule.start >= schedule.submit).sum() >= len(schedule.start) - 2, "but for those that ran before"
            report = schedule.audit()
            assert not report.violations, f"seed {seed}: {report}"
            assert "not checked" in report.skipped["left_waiting"]


def test_the_auditor_sees_what_is_wrong():
    """A schedule that is right is made wrong in one way at a time."""
    machine = Machine(
        (Pool("a", 2, 2, 1), Pool("b", 2, 2)),
        (Partition("1", ("a",)), Partition("2", ("b", "a"))),
        limits=(Limit(("user",), jobs=2),),
    )
    columns = {"partition": np.array([1, 2, 1, 2]), "user": np.array([1, 1, 1, 2]), "depends_on": np.array([-1, -1, -1, 1])}
    workload = Workload.from_arrays(submit=[0, 0, 0, 0], runtime=[10] * 4, procs=[4, 4, 2, 2], machine_procs=8, columns=columns)
    schedule = simulate(workload, "easy", machine=machine)
    assert schedule.start.tolist() == [0, 0, 10, 10]
    assert schedule.audit().ok

    def broken(**changes):
        return set(replace(schedule, **changes).audit().counts)

    start = np.array([0, 0, 0, 10])
    assert broken(start=start, end=start + 10) == {"capacity", "limit_exceeded", "out_of_turn", "pool_capacity"}
    start = np.array([0, 0, 10, 0])
    assert broken(start=start, end=start + 10) == {"capacity", "dependency", "out_of_turn", "pool_capacity", "start_before_submit"}
    given = schedule.given.copy()
    given[1] = [[2, 0], [2, 0]]
    assert broken(given=given) == {"pool_capacity", "pool_order"}
    given = schedule.given.copy()
    given[2] = [[0, 0], [2, 0]]
    assert broken(given=given) == {"pool_capacity", "pool_order"}, "the partition has not that pool"
    without = replace(schedule, given=None)
    assert without.audit().ok
    start = np.array([0, 0, 10, 10])
    start[3] = 0
    assert "pool_capacity" in set(replace(without, start=start, end=start + 10).audit().counts)


def test_by_hand__maintenance_drain_and_dates():
    """Jobs of 10 s on 4 processors of a pool that loses 2 of them from 20 s to 50 s, known from 5 s on or not at all."""
    start = datetime(2026, 3, 1, tzinfo=UTC)
    origin = Origin("log", unix_start_time=int(start.timestamp()))
    workload = Workload.from_arrays(submit=[0, 12, 12], runtime=[10, 10, 10], procs=[4, 4, 2], machine_procs=4, origin=origin)
    pool, partition = (Pool("all", 2, 2),), (Partition("all", ("all",)),)
    dates = [datetime(2026, 3, 1, 0, 0, second) for second in (20, 50, 5)]
    announced = Machine(pool, partition, (Outage("all", dates[0], dates[1], 1, dates[2]),))
    sudden = Machine(pool, partition, (Outage("all", 20, 50, 1),))
    assert simulate(workload, "easy", machine=announced).start.tolist() == [0, 50, 12], "nothing of four processors fits before it"
    assert simulate(workload, "easy", machine=sudden).start.tolist() == [0, 12, 22], "what runs runs on, and what is left is given out"
    assert simulate(workload, "fcfs", machine=announced).start.tolist() == [0, 50, 60]


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_by_hand__two_outages_that_are_alike_are_two(policy):
    workload = Workload.from_arrays(submit=[0, 21], runtime=[10, 10], procs=[3, 2], machine_procs=3)
    machine = Machine((Pool("all", 3, 1),), (Partition("all", ("all",)),), (Outage("all", 20, 50, 1),) * 2)
    schedule = simulate(workload, policy, machine=machine)
    assert schedule.start.tolist() == [0, 50]
    assert schedule.audit().ok


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_by_hand__an_announcement_breaks_the_reservations_of_the_first_round_of_its_instant_only(engine):
    """At 10 s an outage from 20 s on becomes known, and the second job starts and ends.

    The fourth job has been reserved 11 s then, so the third, of 10 s, cannot start now that there is room before the outage.
    """
    workload = Workload.from_arrays(
        submit=[0, 1, 2, 3], runtime=[10, 0, 10, 5], requested=[10, 1, 10, 5], procs=[4, 4, 4, 4], machine_procs=4
    )
    machine = Machine((Pool("all", 1, 4),), (Partition("all", ("all",)),), (Outage("all", 20, 30, 1, 10),))
    schedule = simulate(workload, "conservative", machine=machine, engine=engine)
    assert schedule.start.tolist() == [0, 10, 30, 10]
    assert schedule.audit().ok


def outages_as_jobs_of_no_length_end(draw: random.Random) -> tuple[Workload, Machine]:
    """Jobs of no length on pools with tiers, and outages that become known, or begin, at their instants."""
    count, instant = draw.randint(3, 8), draw.choice((0, 0, 5))
    runtime = [draw.choice((0, 0, 1, 4, 25)) for _ in range(count)]
    requested = [max(1, length + draw.choice((0, 0, 6, 28))) for length in runtime]
    columns = {"partition": np.array([draw.choice((1, 1, 2, 2, 3)) for _ in range(count)])}
    workload = Workload.from_arrays(
        submit=sorted(draw.choice((instant, instant, 0)) for _ in range(count)), runtime=runtime, requested=requested,
        procs=[draw.randint(1, 3) for _ in range(count)], machine_procs=3, columns=columns,
        origin=Origin("log", names={"partition": ("low", "high", "both")}),
    )  # fmt: skip
    partitions = Partition("low", ("a",)), Partition("high", ("a",), tier=2), Partition("both", ("b", "a"), tier=draw.choice((0, 1)))
    outages = []
    for _ in range(draw.choice((1, 1, 2))):
        begin = instant + draw.choice((0, 7, 12, 20, 44))
        outages.append(Outage(draw.choice("aab"), begin, begin + draw.choice((3, 24)), draw.randint(1, 3), instant))
    return workload, Machine((Pool("a", 3, 1), Pool("b", 3, 1)), partitions, tuple(outages))


@pytest.mark.slow
def test_conservative__moves_no_reservation_later_that_it_has_made_at_the_same_instant():
    """Once all outages are known and nothing is late, each job starts no later than the first place that it got from then on."""
    judged = 0
    for seed in range(scaled(6000)):
        draw = random.Random(f"rounds {seed}")
        workload, machine = outages_as_jobs_of_no_length_end(draw)
        policy = draw.choice(("conservative", "conservative", "conservative:order=sjf", "conservative:predictor=exact,predictions-for=011"))
        schedule = simulate(workload, policy, machine=machine)
        plain = simulate(workload, policy, machine=machine, engine="reference")
        assert columns_of(schedule) == columns_of(plain), f"seed {seed}"
        assert not schedule.audit().violations, f"seed {seed}"
        broken = max(min(one.begin, one.announced) for one in machine.outages)
        late = schedule.workload.submit >= broken
        judged += int(late.sum())
        assert (schedule.start[late] <= schedule.reserved_start[late]).all(), f"seed {seed}"
    assert judged


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_by_hand__without_reservations_only_who_waits_ahead_for_a_pool_is_jumped(engine):
    """The second job waits for pool a. The third takes of both, so it jumps ahead; the last needs b alone, for which nobody ahead waits."""
    columns = {"partition": np.array([1, 1, 2, 3])}
    workload = Workload.from_arrays(submit=[0, 5, 10, 10], runtime=[100, 10, 10, 20], procs=[1, 2, 2, 2], machine_procs=5, columns=columns)
    pools = Pool("a", 2, 1), Pool("b", 3, 1)
    machine = Machine(pools, (Partition("1", ("a",)), Partition("2", ("a", "b")), Partition("3", ("b",))))
    schedule = simulate(workload, "hybrid:depth=0,backfill-order=sjf", machine=machine, engine=engine)
    assert schedule.start.tolist() == [0, 100, 10, 10]
    assert schedule.kind.tolist() == [Kind.IMMEDIATE, Kind.RESERVED, Kind.BACKFILLED, Kind.IMMEDIATE]
